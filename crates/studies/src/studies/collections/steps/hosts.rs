//! Hosts: what the pages of a week say of each host. It decides which of several copies stays.
//!
//! ```text
//! own pages ─▶ sums by host ─▶ to the owner of the host ─▶ sums ─▶ back to all workers with pages of the host
//! ```
//!
//! Memory: about 40 bytes for each host that a worker has pages of.

use std::cmp::Reverse;
use std::rc::Rc;

use anyhow::Result;
use bytemuck::{Pod, Zeroable};
use nigh_exchange::{Context, Dealer, all_to_all};

use super::clustered::ClusteredPages;
use crate::records::{DocId, spread};
use crate::structures::{ByKey, Ownership};

/// The week that saw a page first, by its number.
pub type FirstSeen = Rc<dyn Fn(DocId) -> u32>;

/// What is known of a host.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Pod, Zeroable)]
#[repr(C)]
pub struct HostFacts {
    /// Its crawled pages.
    pub pages: u32,
    /// Those without a replica.
    pub alone: u32,
    /// Links from other hosts to its pages that have replicas.
    pub in_links: u32,
    /// The number of the week that saw the first of its pages.
    pub first_seen: u32,
}

/// The place of a host in the order of hosts: of several copies that on the host with the least
/// rank stays. More links from other hosts to replicated pages come first, then more pages, then
/// the page that was seen first, then the smaller hash of the name.
pub type HostRank = (Reverse<u32>, Reverse<u32>, u32, u64);

impl HostFacts {
    /// The rank of the host whose name has this hash.
    pub fn rank(&self, host: u64) -> HostRank {
        (Reverse(self.in_links), Reverse(self.pages), self.first_seen, host)
    }
}

/// The facts of a host on their way; `from` is the worker that is answered.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Pod, Zeroable)]
#[repr(C)]
struct HostRecord {
    host: u64,
    from: u64,
    facts: HostFacts,
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
) -> Result<FactsByHost> {
    let peers = cx.peers() as u64;
    let mut own = FactsByHost::default();
    for shard in owned.shards() {
        for (row, page) in owned.of_shard(shard).enumerate().filter(|(_, page)| pages.hosts[*page] > 0) {
            let is_alone = pages.roots[page] == DocId::NONE;
            let first_seen = first_seen(DocId::new(shard, row as u64));
            let facts = HostFacts { pages: 1, alone: is_alone.into(), in_links: in_links[page], first_seen };
            add(&mut own, pages.hosts[page], &facts);
        }
    }
    let from = cx.index() as u64;
    let mut dealer: Dealer<HostRecord> = cx.dealer();
    own.iter()
        .for_each(|(host, facts)| dealer.deal(spread(*host) % peers, HostRecord { host: *host, from, facts: *facts }));
    let blocks = all_to_all(cx, dealer)?;
    let records = || blocks.iter().flat_map(|block| block.records());
    let mut sums = FactsByHost::default();
    records().for_each(|record| add(&mut sums, record.host, &record.facts));
    let mut dealer: Dealer<HostRecord> = cx.dealer();
    records().for_each(|record| dealer.deal(record.from, HostRecord { facts: sums[&record.host], ..*record }));
    let blocks = all_to_all(cx, dealer)?;
    Ok(blocks.iter().flat_map(|block| block.records()).map(|record| (record.host, record.facts)).collect())
}

fn add(sums: &mut FactsByHost, host: u64, facts: &HostFacts) {
    let sum = sums.entry(host).or_insert(HostFacts { first_seen: u32::MAX, ..HostFacts::default() });
    sum.pages += facts.pages;
    sum.alone += facts.alone;
    sum.in_links = sum.in_links.saturating_add(facts.in_links);
    sum.first_seen = sum.first_seen.min(facts.first_seen);
}
