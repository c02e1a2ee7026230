//! From crawl files to durable waves of documents.
//!
//! In reading order: `crawl` (reads files and fingerprints their pages), `segments` (writes the rows of each shard of a
//! wave), `failures` (writes the failed downloads of a wave), `commit` (makes waves durable, one by one).

mod commit;
mod crawl;
mod failures;
mod segments;

pub use self::commit::{TooManyRejects, WaveNote, check_rejects, commit};
pub use self::crawl::{BadRecord, Capture, CrawlRecord, crawl};
pub use self::failures::{FailedDownload, FailureReasons, failures};
pub use self::segments::{WaveSegments, segments};
