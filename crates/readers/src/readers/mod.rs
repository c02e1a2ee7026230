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
//! format), `opened` (an input to its reader, or to its bytes), `pieces` (parts of it); the readers
//! of `warc`, `wacz`, `rows` (JSON Lines, CSV, Parquet and Arrow), `whole` (a file is one page) and
//! `failed`; and what they share: `streams` (compressed files as streams of bytes and lines),
//! `fields` (dates and UTF-8), `sniff` (what bytes are, whatever their label says); `url_list`
//! (files with URLs instead of pages).

mod failed;
mod fields;
mod find;
mod formats;
mod input;
mod item;
mod opened;
mod pieces;
mod rows;
mod sniff;
mod streams;
mod url_list;
mod wacz;
mod warc;
mod whole;

pub use self::find::{FoundInputs, LeftOut, Pipes, Spool, is_passing, list, list_again, list_with_pipes, url_files};
pub use self::formats::{LineKind, RecordKind};
pub use self::input::{Format, Input, Location, Packing};
pub use self::item::{
    ArchiveEntry, Body, CountedIn, Failure, Item, Page, Profile, Reader, RecordNames, RedirectAnswer, Reject, Revisit,
    Skip, Skipped, StoredRecord, Unread,
};
pub use self::opened::{
    JsonLines, KeysOfInput, RawBytes, check, columns, damage, decoded, keys, open, open_at, stored_file,
};
pub use self::pieces::{InputPiece, open_piece, pieces};
pub use self::rows::{ColumnValue, LONGEST, SIGNATURE, Searched, check_once, ordered_arrow};
pub use self::url_list::{ListLines, Listed, UrlFile, each_listed_url};
pub use self::wacz::wacz_entries;
pub use self::warc::{
    Dialect, REACH as REQUEST_REACH, WITHIN as REQUEST_WITHIN, arc_record, dechunk, end_of_head, split_head,
};
pub use self::whole::PageKind;
