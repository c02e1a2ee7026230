//! Reads crawls and datasets: WARC, WET, ARC, WACZ, JSONL, Parquet, CSV and TSV files, folders of
//! HTML and text, and side files of failed downloads, from disks and object stores.
//!
//! [`list`] finds the input files and [`open`] reads one as a sequence of [`Item`]s. Crawls are
//! dirty. Damaged or malformed data is an [`Item::Reject`] with its place and reason, and reading
//! continues; only a failing disk or network is an error, or an input that does not fit the job. No
//! claimed length is believed, so the memory of a reader is bounded whatever its file says.
//!
//! ```
//! use nigh_readers::reading::Reading;
//! use nigh_readers::readers::{self, Body, Item};
//!
//! let folder = std::env::temp_dir().join(format!("nigh-readers-{}", std::process::id()));
//! std::fs::create_dir_all(&folder)?;
//! let lines = "{\"url\":\"http://a.example/\",\"text\":\"one two\"}\n\
//!     this is not JSON\n\
//!     {\"url\":\"http://b.example/\",\"text\":\"three\"}\n";
//! std::fs::write(folder.join("crawl.jsonl"), lines)?;
//!
//! let reading = Reading::default();
//! let inputs = readers::list(&[folder.display().to_string()], &reading)?;
//! assert_eq!((inputs.len(), inputs[0].bytes), (1, lines.len() as u64));
//! let mut reader = readers::open(&inputs[0], &reading)?;
//! let (mut texts, mut rejects) = (Vec::new(), Vec::new());
//! while let Some(item) = reader.next()? {
//!     match item {
//!         Item::Page(page) => texts.push((page.url, page.body)),
//!         Item::Reject(reject) => rejects.push((reject.offset, reject.reason)),
//!         Item::Failed(_) | Item::Revisit(_) | Item::Skip(_) => {}
//!     }
//! }
//! assert_eq!(texts[0], (Some("http://a.example/".to_owned()), Body::Text("one two".to_owned())));
//! assert_eq!(texts[1], (Some("http://b.example/".to_owned()), Body::Text("three".to_owned())));
//! assert_eq!(rejects, [(45, "jsonl: no JSON object".to_owned())]);
//! std::fs::remove_dir_all(&folder)?;
//! # anyhow::Ok(())
//! ```
//!
//! In reading order: `item` (what a reader returns), `input` (a file or object, its format and
//! location), `find` (from what a user names to inputs), `formats` (what nigh does with each
//! format), `open` (an input to its reader), `piece` (a part of it); the readers of `warc`, `wacz`,
//! `jsonl`, `parquet`, `csv`, `whole` (a file is one page) and `failed`; and what they share:
//! `streams` (compressed files as streams of bytes and lines), `rows` (a row or line as a page),
//! `value` (values that have an order), `fields` (dates and UTF-8), `json_lines` (lines as they
//! are), `sniff` (what bytes are, whatever their label says), `url_list` (files with URLs instead
//! of pages).

mod arrow;
mod csv;
mod failed;
mod fields;
mod find;
mod formats;
mod input;
mod item;
mod json_lines;
mod jsonl;
mod keys;
mod open;
mod parquet;
mod piece;
mod raw;
mod rows;
mod sniff;
mod source;
mod streams;
mod url_list;
mod value;
mod wacz;
mod warc;
mod whole;

pub use self::arrow::SIGNATURE;
pub use self::find::{FoundInputs, LeftOut, Pipes, Spool, is_passing, list, list_again, list_with_pipes, url_files};
pub use self::formats::{LineKind, RecordKind};
pub use self::input::{Format, Input, Location, Packing};
pub use self::item::{
    ArchiveEntry, Body, CountedIn, Failure, Item, Page, Profile, Reader, RecordNames, RedirectAnswer, Reject, Revisit,
    Skip, Skipped, StoredRecord, Unread,
};
pub use self::json_lines::JsonLines;
pub use self::jsonl::Searched;
pub use self::keys::KeysOfInput;
pub use self::open::{check, columns, damage, keys, open, open_at};
pub use self::piece::{InputPiece, open_piece, pieces};
pub use self::raw::{RawBytes, decoded};
pub use self::source::stored_file;
pub use self::url_list::{ListLines, Listed, UrlFile, each_listed_url};
pub use self::value::{ColumnValue, LONGEST};
pub use self::wacz::wacz_entries;
pub use self::warc::{Dialect, arc_record, dechunk, end_of_head, split_head};
pub use self::whole::PageKind;
