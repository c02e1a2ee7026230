//! Reads crawls and datasets page by page, as `nigh` does: WARC, WACZ, ARC, WET, JSONL, Parquet,
//! Arrow, CSV, HTML and text, compressed or not, from disks, pipes and buckets.
//!
//! ```text
//! readers                    lists of inputs, and pages of an input
//! objects                    the client of object stores
//! reading                    the settings of readers
//! units                      sizes, shares, counts, lengths of time
//! ```

pub mod objects;
pub mod readers;
pub mod reading;
pub mod units;
