//! Hosts: what the pages of a week say of each host. The order of hosts follows from it, and that
//! decides which of several copies stays: see [`host_order`](crate::host_order).
//!
//! ```text
//! own pages ─▶ sums by host ─▶ to the owner of the host ─▶ sums ─▶ back to all workers with pages of the host
//! ```
//!
//! Memory: about 40 bytes for each host that a worker has pages of.

use std::rc::Rc;

use anyhow::Result;
use bytemuck::{Pod, Zeroable};
use nigh_exchange::{Context, Dealer, all_to_all};

use super::clustered::ClusteredPages;
use crate::host_order::{HostFacts, HostLeads};
use crate::records::{DocId, spread};
use crate::structures::{ByKey, Ownership};

/// The week that saw a page first, by its number.
pub type FirstSeen = Rc<dyn Fn(DocId) -> u32>;

/// The facts of a host on their way; `from` is the worker that is answered.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Pod, Zeroable)]
#[repr(C)]
struct HostRecord {
    host: u64,
    from: u64,
    facts: HostFacts,
    /// No meaning.
    pad: u32,
}

/// Facts by the hash of a host.
pub type FactsByHost = ByKey<u64, HostFacts>;

/// The facts of all hosts that own pages are on. `in_links` are those of own pages.
///
/// # Errors
/// If a worker failed.
pub fn host_facts(
    cx: &mut Context,
    owned: &Ownership,
    pages: &ClusteredPages,
    in_links: &[u32],
    first_seen: &FirstSeen,
    leads: &HostLeads,
) -> Result<FactsByHost> {
    let peers = cx.peers() as u64;
    let mut own = FactsByHost::default();
    for shard in owned.shards() {
        for (row, page) in owned.of_shard(shard).enumerate().filter(|(_, page)| pages.hosts[*page] > 0) {
            let is_alone = pages.roots[page] == DocId::NONE;
            let first_seen = first_seen(DocId::new(shard, row as u64));
            let facts = HostFacts { pages: 1, alone: is_alone.into(), in_links: in_links[page], first_seen, lead: 0 };
            own.entry(pages.hosts[page]).or_insert(HostFacts::NONE).add(&facts);
        }
    }
    let from = cx.index() as u64;
    let mut dealer: Dealer<HostRecord> = cx.dealer();
    for (host, facts) in &own {
        dealer.deal(spread(*host) % peers, HostRecord { host: *host, from, facts: *facts, pad: 0 });
    }
    let blocks = all_to_all(cx, dealer)?;
    let records = || blocks.iter().flat_map(|block| block.records());
    let mut sums = FactsByHost::default();
    records().for_each(|record| sums.entry(record.host).or_insert(HostFacts::NONE).add(&record.facts));
    sums.iter_mut().for_each(|(host, facts)| facts.lead = leads.of(*host));
    let mut dealer: Dealer<HostRecord> = cx.dealer();
    records().for_each(|record| dealer.deal(record.from, HostRecord { facts: sums[&record.host], ..*record }));
    let blocks = all_to_all(cx, dealer)?;
    Ok(blocks.iter().flat_map(|block| block.records()).map(|record| (record.host, record.facts)).collect())
}
