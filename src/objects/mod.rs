//! Objects in stores that speak the protocol of S3, Google or Azure: the client that inputs and shared stores have in
//! common.
//!
//! In reading order: `client` (the one thread of the network, and the stores), `read` (an object as a plain reader),
//! `bucket` (a folder of objects that is written to, by conditional puts), `digest` (what the content of a file is
//! known by). Built only with the feature `cloud`; without it a bucket cannot be opened, and says so (`absent`).

use std::time::Duration;

#[cfg(not(feature = "cloud"))]
mod absent;
#[cfg(feature = "cloud")]
mod bucket;
#[cfg(feature = "cloud")]
mod client;
mod digest;
#[cfg(all(test, feature = "cloud"))]
pub(crate) mod faulty;
#[cfg(feature = "cloud")]
mod read;

#[cfg(not(feature = "cloud"))]
pub use absent::{Bucket, Tag};
#[cfg(feature = "cloud")]
pub use bucket::{Bucket, Tag};
#[cfg(feature = "cloud")]
pub use client::{Store, explained, store, wait};
pub use digest::{Digest, Summing};
#[cfg(feature = "cloud")]
pub use read::{RANGE, read};

/// A small object is not waited for longer, in one request: what is decided by it is decided in time.
pub const PATIENCE: Duration = Duration::from_secs(30);

/// When an object is put.
#[derive(Clone, Debug)]
pub enum When {
    /// There is none of that name.
    Absent,
    /// It still is what it was.
    Is(Tag),
}

/// How a conditional put ended.
#[derive(Clone, Debug)]
pub enum Put {
    /// The object is there, as this.
    Done(Tag),
    /// The condition does not hold.
    Refused,
}
