//! The name of a host, as it is sent and compared.

use bytemuck::{Pod, Zeroable};
use serde::{Deserialize, Serialize};

/// The name of a host: the high half of the 128-bit hash of its text.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Pod, Zeroable, Serialize, Deserialize)]
#[repr(transparent)]
pub struct HostName(pub u64);

impl HostName {
    /// The name of a host with this hash.
    pub fn of_hash(hash: u128) -> HostName {
        HostName((hash >> 64) as u64)
    }

    /// The name of a host.
    pub fn of(host: &str) -> HostName {
        HostName::of_hash(crate::records::checksum(host.as_bytes()))
    }
}
