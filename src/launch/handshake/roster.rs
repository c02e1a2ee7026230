//! The processes of a run: their addresses, and how many workers each of them has.

use std::net::SocketAddr;
use std::time::Duration;

/// How long the other machine may be silent where the roster says nothing else.
const PEER_TIMEOUT: Duration = Duration::from_secs(20);

/// The processes of one generation of a run: started together, ended together.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Roster {
    /// A hash of what the run computes.
    pub job: u64,
    /// Which start of the run's processes this is, from 0: a straggler of an earlier one is refused.
    pub epoch: u64,
    /// Where each process listens, by its number.
    pub addresses: Vec<SocketAddr>,
    /// After so long a machine that does not answer is given up.
    pub peer_timeout: Duration,
}

impl Roster {
    /// A roster with the default timeout.
    pub fn new(job: u64, epoch: u64, addresses: Vec<SocketAddr>) -> Roster {
        Roster { job, epoch, addresses, peer_timeout: PEER_TIMEOUT }
    }

    /// A hash of everything in it.
    pub(crate) fn hash(&self) -> u64 {
        let bytes = serde_json::to_vec(self).expect("a roster is plain data");
        xxhash_rust::xxh3::xxh3_64(&bytes)
    }
}
