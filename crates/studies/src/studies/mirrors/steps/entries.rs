//! The pages of candidates in clusters, as they are sent to the owners of clusters.

use anyhow::Result;
use arrow_array::{Int64Array, StringArray};
use bytemuck::{Pod, Zeroable};
use nigh_exchange::Keyed;

use super::host_name::HostName;
use super::hosts::Hosts;
use crate::state::History;
use crate::structures::Ownership;
use crate::tables::{ClusterRow, Scan, Table, field};

/// Which pairs of a cluster are counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Counting {
    /// The first host with each other one.
    First,
    /// The host of the cluster's root with each other one, if it is a candidate.
    Root,
    /// All.
    All,
}

/// A cluster of at least two pages, and the host of its root.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ClusterRoot {
    /// The cluster, by the id of its root.
    pub cluster: u64,
    /// The host of the root.
    pub host: HostName,
}

/// The clusters of week number `number` whose roots are in own shards.
///
/// # Errors
/// If a file cannot be read; names it.
pub fn cluster_roots(history: &History, number: usize, owned: &Ownership) -> Result<Vec<ClusterRoot>> {
    let (tables, mut roots) = (history.tables(number), Vec::new());
    for shard in owned.shards() {
        for rows in history.rows(number, &tables, ClusterRow::NAME, shard)? {
            Scan::open(&rows, &["doc", "host", "similar_root", "similar_size"])?.for_each(|batch| {
                let hosts: &StringArray = field(batch, "host")?;
                let column = |name| field::<Int64Array>(batch, name);
                let (docs, of_docs, sizes) = (column("doc")?, column("similar_root")?, column("similar_size")?);
                let is_root = |row: &usize| sizes.value(*row) > 1 && of_docs.value(*row) == docs.value(*row);
                roots.extend(
                    (0..batch.num_rows()).filter(is_root).map(|row| ClusterRoot {
                        cluster: docs.value(row) as u64,
                        host: HostName::of(hosts.value(row)),
                    }),
                );
                Ok(())
            })?;
        }
    }
    Ok(roots)
}

/// The pages of a candidate in a cluster, with one of its addresses. Of no pages: it names the host
/// of the cluster's root.
///
/// Its order is the cluster, then the host of the root, then the order of candidates.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Pod, Zeroable)]
#[repr(C)]
pub(super) struct ClusterEntry {
    pub cluster: u64,
    /// All ones less the pages that have near-duplicates; 0 for the host of the root.
    rank: u64,
    pub host: HostName,
    /// The hash of the address, or 0.
    pub address: u64,
    pub pages: u64,
}

impl Keyed for ClusterEntry {
    fn key(&self) -> u64 {
        self.cluster
    }
}

/// The entries of all own candidates: one for each address of a host; and one for each of `roots`.
pub(super) fn entries(hosts: &Hosts, least: u32, roots: &[ClusterRoot]) -> Vec<ClusterEntry> {
    let of_root =
        |root: &ClusterRoot| ClusterEntry { cluster: root.cluster, rank: 0, host: root.host, address: 0, pages: 0 };
    let mut entries: Vec<ClusterEntry> = roots.iter().map(of_root).collect();
    for host in hosts.iter().filter(|host| host.clustered >= least.into()) {
        let addresses = if host.addresses.is_empty() { &[0][..] } else { host.addresses };
        for of_cluster in host.entries {
            entries.extend(addresses.iter().map(|address| ClusterEntry {
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

/// The entries of the candidates in a cluster, and the host that is paired with the others: `None`
/// if all are, or none.
pub(super) fn candidates_of(entries: &[ClusterEntry], counting: Counting) -> (Option<HostName>, &[ClusterEntry]) {
    let (root, candidates) = match entries.split_first() {
        Some((first, others)) if first.pages == 0 => (Some(first.host), others),
        _ => (None, entries),
    };
    let paired = match counting {
        Counting::First => candidates.first().map(|entry| entry.host),
        Counting::Root => root.filter(|host| candidates.iter().any(|entry| entry.host == *host)),
        Counting::All => None,
    };
    (paired, candidates)
}
