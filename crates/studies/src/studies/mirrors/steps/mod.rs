//! Mirrors by content: pairs of hosts that have many near-duplicate pages in common (Fetterly 2004,
//! sections 2 and 4).
//!
//! ```text
//! hosts     pages of own hosts by cluster, and their addresses
//! entries   the pages of hosts in clusters, on their way to the owners of clusters
//! raw       pairs of hosts that share enough pages: all of them by the set join, or with one host of each cluster only
//! counts    at the owners of clusters: what the hosts of a pair share, and what is left of it with one host for each address
//! confirm   at the owners of clusters: how many pages of a pair have the same end of their path
//! mirrored  at the owners of clusters: the pages that a pair of mirrors has in common
//! paths     at the owners of paths: paths that both mirrors have, and how long a change takes from one to the other
//! redirects hosts of which most URLs redirect to another host
//! shared    what two hosts or collections have in common, with an example: for the comparison with mirrors by URL
//! ```
//!
//! A *candidate* is a host with enough pages in clusters of at least two. Candidates have an order:
//! more such pages first, of equally many the smaller hash of the name. A host is known by the high
//! half of the 128-bit hash of its name; two names with the same one are an error.
//!
//! Every worker has all pairs: some 120 bytes for each. Records of clusters are grouped one range
//! of them at a time, and go to disk beyond the memory for them; all records of one cluster are in
//! the memory of one worker.

mod confirm;
mod counts;
mod entries;
mod host_name;
mod host_pairs;
mod hosts;
mod mirrored;
mod paths;
mod raw;
mod redirects;
mod shared;

pub use self::confirm::{MATCHES, confirm};
pub use self::counts::{CountedPairs, HostPairCounts, count};
pub use self::entries::{ClusterRoot, Counting, cluster_roots};
pub use self::host_name::HostName;
pub use self::host_pairs::{ListedHost, PairTable};
pub use self::hosts::{AddressList, Hosts, own_hosts};
pub use self::mirrored::{MirroredPage, mirrored};
pub use self::paths::{Lag, PathCounts, paths};
pub use self::raw::{RawPairs, raw_pairs};
pub use self::redirects::{RedirectedHost, redirected_hosts};
pub use self::shared::{PageOfPlace, SharedPages, shared_pages};
use crate::operators::set_join::{Requirement, SetJoinStage};

/// The parameters of the steps, for one worker.
#[derive(Clone)]
pub struct MirrorStage {
    /// The pages that two hosts must have in common, at least.
    pub least: u32,
    /// A cluster in which more hosts than this have enough pages is a farm: its pairs are counted,
    /// and only those of its first host listed.
    pub farm: u64,
    /// The most pairs of hosts to look at.
    pub max_pairs: u64,
}

impl MirrorStage {
    /// The join of hosts over clusters.
    fn join(&self) -> SetJoinStage {
        SetJoinStage {
            requirement: Requirement::Both(self.least),
            // One more than the hosts that a farm may have before it is one.
            family: self.farm + 1,
            with_collections: false,
            has_known: false,
            thorough: false,
            max_pairs: self.max_pairs,
        }
    }
}
