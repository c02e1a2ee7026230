//! From crawl files to durable waves of documents.
//!
//! In reading order:
//!
//! - `keys`: what makes two records the same document;
//! - `deal`: which process reads which pieces of the inputs;
//! - `unread`: the pieces that a process was given and has not read;
//! - `capture`: a fetch of a page, as it crosses workers and is sorted;
//! - `crawl`: reads input files, and computes the features of their pages;
//! - `kept_records`: what was read of a wave, for the next run if this one is interrupted;
//! - `segments`: the captures of a wave become the rows of each shard's tables;
//! - `duplicates`: the captures whose URL or id another one had before;
//! - `kept_shingles`: the shingles of pages, if a later step wants them again;
//! - `failures`: the failed downloads of a wave become rows, too, in pieces of their own
//!   (`failed_pieces`);
//! - `revisits`: downloads whose page is what another one was, and `digests`, by which that one is
//!   found;
//! - `notes`: what workers report on a wave;
//! - `commit`: worker 0 makes the waves durable, one by one.
//!
//! A wave is a timestamp of the dataflow. At most two waves are in progress at a time. If the run
//! is interrupted, the next run starts after the last committed wave.

mod capture;
mod commit;
mod crawl;
mod deal;
mod digests;
mod duplicates;
mod failed_pieces;
mod failures;
mod kept_records;
mod kept_shingles;
mod keys;
mod notes;
mod revisits;
mod segments;
mod unread;

pub use self::commit::{TooManyRejects, check_pages, check_rejects, check_revisits, commit};
pub use self::crawl::{Crawled, crawl, page_facts, page_shingles, page_words};
pub use self::deal::deal;
pub use self::digests::PayloadDigest;
pub use self::duplicates::ANOTHER_TEXT;
pub use self::failures::{
    FailedDownload, FailedUrl, FailedUrls, FailureReasons, Redirect, failures, gone_documents, is_gone,
};
pub use self::kept_shingles::{KeptPage, ShingleReader, ShingleWriter, kept_shingles};
pub use self::keys::PageKey;
pub use self::notes::BadRecord;
pub use self::revisits::{NOT_KNOWN, NamedCapture, RevisitOf, Revisited, record_hash, revisits};
pub use self::segments::segments;
pub use self::unread::UnreadPieces;
