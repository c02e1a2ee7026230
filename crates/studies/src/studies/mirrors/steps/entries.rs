//! The pages of candidates in clusters, as they are sent to the owners of clusters.

use bytemuck::{Pod, Zeroable};
use nigh_exchange::Keyed;

use super::host_name::HostName;
use super::hosts::Hosts;

/// Which pairs of a cluster are counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Counting {
    /// The first host with each other one.
    First,
    /// All.
    All,
}

/// The pages of a candidate in a cluster, with one of its addresses.
///
/// Its order is the cluster, then the order of candidates.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Pod, Zeroable)]
#[repr(C)]
pub(super) struct Entry {
    pub cluster: u64,
    /// All ones less the pages that have near-duplicates.
    rank: u64,
    pub host: HostName,
    /// The hash of the address, or 0.
    pub address: u64,
    pub pages: u64,
}

impl Keyed for Entry {
    fn key(&self) -> u64 {
        self.cluster
    }
}

/// The entries of all own candidates: one for each address of a host.
pub(super) fn entries(hosts: &Hosts, least: u32) -> Vec<Entry> {
    let mut entries = Vec::new();
    for host in hosts.iter().filter(|host| host.clustered >= least.into()) {
        let addresses = if host.addresses.is_empty() { &[0][..] } else { host.addresses };
        for of_cluster in host.entries {
            entries.extend(addresses.iter().map(|address| Entry {
                cluster: of_cluster.cluster,
                rank: u64::MAX - host.clustered,
                host: host.name,
                address: *address,
                pages: of_cluster.pages.into(),
            }));
        }
    }
    entries
}
