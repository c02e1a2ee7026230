//! From crawl files to durable waves of documents.
//!
//! In reading order: `crawl` (reads files and fingerprints their pages), `segments` (writes the rows of each shard of a
//! wave), `failures` (writes the failed downloads of a wave), `commit` (makes waves durable, one by one).

mod commit;
mod crawl;
mod failures;
mod segments;

pub use self::commit::{Note, TooManyRejects, check_rejects, commit};
pub use self::crawl::{Answer, Bad, Found, crawl};
pub use self::failures::{Failed, Reasons, failures};
pub use self::segments::{Made, segments};
