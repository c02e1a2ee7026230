//! The pages of hosts by cluster: how many pages of a host are in each cluster of very similar
//! pages.
//!
//! Hosts are distributed over the workers by a 128-bit hash of their names. A worker holds 48 bytes
//! for each pair of one of its hosts and a cluster of several pages: up to twice that while they
//! are counted, and 32 bytes more while they are exchanged.

use anyhow::Result;
use arrow_array::{Int64Array, StringArray};
use bytemuck::{Pod, Zeroable};
use nigh_exchange::{Context, all_to_all};

use crate::records::checksum;
use crate::state::History;
use crate::structures::{Ownership, Sums};
use crate::tables::{ClusterRow, Scan, Table, field};

/// The pages of one host in one cluster.
#[derive(Clone, Copy, Pod, Zeroable)]
#[repr(C)]
struct HostCluster {
    /// The hash of the host: its high half, then its low half.
    host: [u64; 2],
    /// The id of the cluster's root, or [`SINGLETONS`].
    cluster: u64,
    /// The number of pages.
    pages: u64,
}

/// All clusters of one page together: no document has this id.
pub const SINGLETONS: u64 = u64::MAX;

/// The number of pages by hash of the host and cluster, in order.
pub type PagesByHost = Vec<((u128, u64), u64)>;

/// The worker that owns a host, by the hash of the host.
pub fn host_owner(host: u128, peers: usize) -> u64 {
    ((host >> 64) as u64) % peers as u64
}

/// The hash that stands for the host of pages that are not known by URL, and have none.
pub fn without_host() -> u128 {
    checksum(b"")
}

/// Counts the pages of week number `number` of the history, by host and cluster. Returns those of
/// the hosts that this worker owns.
///
/// # Errors
/// If a file cannot be read (names it), or a worker of this process failed.
pub fn pages_by_host(cx: &mut Context, history: &History, number: usize, owned: &Ownership) -> Result<PagesByHost> {
    let pages = read_pages(history, number, owned)?;
    add_over_workers(cx, pages)
}

/// Counts the pages of this worker's shards by host and cluster.
fn read_pages(history: &History, number: usize, owned: &Ownership) -> Result<PagesByHost> {
    let mut pages = Sums::default();
    let tables = history.tables(number);
    for shard in owned.shards() {
        for rows in history.rows(number, &tables, ClusterRow::NAME, shard)? {
            Scan::open(&rows, &["host", "similar_root", "similar_size"])?.for_each(|batch| {
                let hosts: &StringArray = field(batch, "host")?;
                let (roots, sizes): (&Int64Array, &Int64Array) =
                    (field(batch, "similar_root")?, field(batch, "similar_size")?);
                for (row, (root, size)) in roots.values().iter().zip(sizes.values()).enumerate() {
                    let cluster = if *size > 1 { *root as u64 } else { SINGLETONS };
                    pages.add((checksum(hosts.value(row).as_bytes()), cluster), 1);
                }
                Ok(())
            })?;
        }
    }
    Ok(pages.finish())
}

/// Adds the counts of all workers; each worker receives the counts of the hosts whose hashes it
/// owns.
fn add_over_workers(cx: &mut Context, pages: PagesByHost) -> Result<PagesByHost> {
    let peers = cx.peers();
    let mut dealer = cx.dealer();
    for ((host, cluster), pages) in pages {
        let [high, low] = [(host >> 64) as u64, host as u64];
        dealer.deal(host_owner(host, peers), HostCluster { host: [high, low], cluster, pages });
    }
    let mut sums = Sums::default();
    for block in all_to_all(cx, dealer)? {
        for HostCluster { host: [high, low], cluster, pages } in block.records() {
            sums.add((u128::from(*high) << 64 | u128::from(*low), *cluster), *pages);
        }
    }
    Ok(sums.finish())
}
