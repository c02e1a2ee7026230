//! The client of object stores with the protocol of S3, Google or Azure, used for inputs and for
//! stores in buckets.
//!
//! In reading order: `client` (the one network thread, and the clients of services), `read` (an
//! object as a plain reader), `credentials` (where they come from), `service_error` (what is said
//! of an error), `bucket` (a folder of a bucket, written by conditional puts), `digest` (the digest
//! of a file's content), `secrets` (URLs that contain one), `faulty` (a service for tests). Built
//! only with the feature `cloud`, except `digest` and `secrets`; without it opening a bucket fails
//! with a message (`absent`).

use std::time::Duration;

#[cfg(not(feature = "cloud"))]
mod absent;
#[cfg(feature = "cloud")]
mod bucket;
#[cfg(feature = "cloud")]
mod client;
#[cfg(feature = "cloud")]
mod credentials;
mod digest;
#[cfg(all(any(test, feature = "faulty"), feature = "cloud"))]
pub mod faulty;
#[cfg(feature = "cloud")]
mod read;
mod secrets;
#[cfg(feature = "cloud")]
mod service_error;

#[cfg(not(feature = "cloud"))]
pub use absent::{Bucket, ObjectVersion, ServiceError, credentials_variable, use_machine_credentials};
#[cfg(feature = "cloud")]
pub use bucket::{Bucket, ObjectVersion};
#[cfg(feature = "cloud")]
pub use client::{ObjectStoreClient, explained, store, wait};
#[cfg(feature = "cloud")]
pub use credentials::{credentials_variable, use_machine_credentials};
pub use digest::{Digest, Digester, FileContent};
#[cfg(feature = "cloud")]
pub use read::{RANGE, read};
pub use secrets::{hide_passwords, refuse_secrets, without_secrets};
#[cfg(feature = "cloud")]
pub use service_error::{ServiceError, causes};

/// The environment variable that says, with the value `instance`, that clients may take the
/// credentials of the machine.
pub const CREDENTIALS_VARIABLE: &str = "NIGH_CLOUD_CREDENTIALS";

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
