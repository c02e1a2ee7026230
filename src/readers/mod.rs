//! Reads crawls: WARC, WET, JSONL and Parquet files, folders of HTML and side files of failed downloads, from disks and
//! object stores.
//!
//! [`list`] finds the inputs, [`open`] reads one as a sequence of [`Item`]s. Crawls are dirty: whatever is wrong with a page or
//! a file's bytes is an [`Item::Reject`] with its place, and reading goes on; only a failing disk or network is an error.
//! Memory stays bounded whatever a file holds: no length that a file claims is believed.
//!
//! In reading order: `inputs` finds files, `objects` and `cloud` those in object stores; `stored`, `members`, `record` and
//! `records` take a WARC file apart, `header`, `http`, `encodings` and `sniff` its responses, `warc` makes the pages; `jsonl`,
//! `parquet` and `html` are the other formats of pages, `rows` what the first two of them share; `failed` is what
//! could not be downloaded; `lines` are those of text files.

#[cfg(test)]
mod dirty;
mod failed;
mod fields;
mod find;
mod html;
mod input;
mod item;
mod jsonl;
mod open;
mod parquet;
mod rows;
mod sniff;
mod streams;
mod warc;

pub use self::find::list;
pub use self::input::{Format, Input, Location};
pub use self::item::{Body, Failure, Item, Page, Reader, Reject, Skip};
pub use self::open::{check, open};
