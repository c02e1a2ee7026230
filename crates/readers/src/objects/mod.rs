//! The client of object stores with the protocol of S3, Google or Azure, used for inputs and for stores in buckets.
//!
//! In reading order: `client` (the one network thread, and the clients of services), `read` (an object as a plain reader),
//! `bucket` (a folder of a bucket, written by conditional puts), `digest` (the digest of a file's content), `secrets` (URLs
//! that contain one), `faulty` (a service for tests). Built only with the feature `cloud`, except `digest` and `secrets`; without it
//! opening a bucket fails with a message (`absent`).

use std::time::Duration;

#[cfg(not(feature = "cloud"))]
mod absent;
#[cfg(feature = "cloud")]
mod bucket;
#[cfg(feature = "cloud")]
mod client;
mod digest;
#[cfg(all(any(test, feature = "faulty"), feature = "cloud"))]
pub mod faulty;
#[cfg(feature = "cloud")]
mod read;
mod secrets;

#[cfg(not(feature = "cloud"))]
pub use absent::{Bucket, ObjectVersion};
#[cfg(feature = "cloud")]
pub use bucket::{Bucket, ObjectVersion};
#[cfg(feature = "cloud")]
pub use client::{Store, explained, store, wait};
pub use digest::{Digest, Digester};
#[cfg(feature = "cloud")]
pub use read::{RANGE, read};
pub use secrets::{hide_passwords, refuse_secrets, without_secrets};

/// The timeout of one request for a small object, such as a lock or a manifest.
pub const PATIENCE: Duration = Duration::from_secs(30);

/// The condition of a put.
#[derive(Clone, Debug)]
pub enum PutCondition {
    /// The object does not exist.
    Absent,
    /// The object still has this version.
    Is(ObjectVersion),
}

/// The result of a conditional put.
#[derive(Clone, Debug)]
pub enum PutOutcome {
    /// The object was put and has this version.
    Done(ObjectVersion),
    /// The condition does not hold; nothing was changed.
    Refused,
}
