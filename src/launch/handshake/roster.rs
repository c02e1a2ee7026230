//! The roster: the processes of a generation and their addresses.

use std::net::SocketAddr;
use std::time::Duration;

/// The default timeout of a machine that does not answer.
const PEER_TIMEOUT: Duration = Duration::from_secs(20);

/// The processes of one generation of a run; all have the same roster.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Roster {
    /// A hash of the work of the run.
    pub job: u64,
    /// The number of the generation, from 0: a process of an earlier generation is refused.
    pub epoch: u64,
    /// The addresses at which the processes listen, by process number.
    pub addresses: Vec<SocketAddr>,
    /// A connection whose machine does not answer for this time is ended.
    pub peer_timeout: Duration,
}

impl Roster {
    /// A roster with the default timeout.
    pub fn new(job: u64, epoch: u64, addresses: Vec<SocketAddr>) -> Roster {
        Roster { job, epoch, addresses, peer_timeout: PEER_TIMEOUT }
    }

    /// A hash of the whole roster.
    pub(crate) fn hash(&self) -> u64 {
        let bytes = serde_json::to_vec(self).expect("a roster is plain data");
        xxhash_rust::xxh3::xxh3_64(&bytes)
    }
}
