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
    /// The numbers of the processes, ascending. A process has the number of its host in the config,
    /// which names its certificate. A generation without some of the hosts has gaps here. The place
    /// of a number is the rank of its process, from 0 without gaps, as the engine counts processes.
    pub numbers: Vec<usize>,
    /// The addresses at which the processes listen, by rank.
    pub addresses: Vec<SocketAddr>,
    /// A connection whose machine does not answer for this time is ended.
    pub peer_timeout: Duration,
}

impl Roster {
    /// A roster of processes of all hosts, with the default timeout.
    pub fn new(job: u64, epoch: u64, addresses: Vec<SocketAddr>) -> Roster {
        Roster { job, epoch, numbers: (0..addresses.len()).collect(), addresses, peer_timeout: PEER_TIMEOUT }
    }

    /// The rank of the process with a number; `None` if it is not of this generation.
    ///
    /// ```
    /// use nigh_launch::launch::Roster;
    ///
    /// let address = "127.0.0.1:7".parse()?;
    /// let roster = Roster { numbers: vec![0, 2], ..Roster::new(7, 1, vec![address; 2]) };
    /// assert_eq!((roster.rank(0), roster.rank(1), roster.rank(2)), (Some(0), None, Some(1)));
    /// # Ok::<(), std::net::AddrParseError>(())
    /// ```
    pub fn rank(&self, number: usize) -> Option<usize> {
        self.numbers.binary_search(&number).ok().filter(|rank| *rank < self.addresses.len())
    }

    /// A hash of the whole roster.
    pub(crate) fn hash(&self) -> u64 {
        let bytes = serde_json::to_vec(self).expect("a roster is plain data");
        xxhash_rust::xxh3::xxh3_64(&bytes)
    }
}
