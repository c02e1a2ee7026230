//! What two hosts of a pair have in common: clusters, pages in them, and what is left with one host
//! for each address.

use std::cell::RefCell;
use std::rc::Rc;

use anyhow::Result;
use bytemuck::{Pod, Zeroable};
use nigh_exchange::{BlockOf, Context, Dealer, all_to_all, by_group};
use serde::{Deserialize, Serialize};

use super::MirrorStage;
use super::entries::{ClusterEntry, ClusterRoot, Counting, candidates_of, entries};
use super::host_pairs::PairTable;
use super::hosts::Hosts;

/// What the two hosts of a pair have in common.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Pod, Zeroable, Serialize, Deserialize)]
#[repr(C)]
pub struct HostPairCounts {
    /// Clusters with pages of both.
    pub clusters: u64,
    /// The pages of the first and of the second host in them.
    pub pages: [u64; 2],
    /// The same in clusters where neither is another name of a host before it.
    pub kept: [u64; 2],
}

impl HostPairCounts {
    fn add(&mut self, pages: [u64; 2], are_kept: bool) {
        self.clusters += 1;
        self.pages.iter_mut().zip(pages).for_each(|(sum, pages)| *sum += pages);
        if are_kept {
            self.kept.iter_mut().zip(pages).for_each(|(sum, pages)| *sum += pages);
        }
    }
}

/// What the hosts of each pair have in common, by the number of the pair.
#[derive(Clone, Debug, Default)]
pub struct CountedPairs {
    /// What is counted.
    pub counts: Vec<HostPairCounts>,
    /// Whether it is counted in clusters whose roots are on the second host, so that the pages of
    /// the first one count: of the two hosts that whose clusters have more pages of the other.
    /// Empty if the pairs of roots' hosts are not those that are counted.
    pub rooted_at_second: Vec<bool>,
}

/// Counts what the hosts of each pair have in common; every worker returns the same.
///
/// In each cluster hosts are kept in the order of candidates, but for those with an address that a
/// kept host has. If only the pairs of one host of a cluster are counted, so it is here.
///
/// # Errors
/// If a file cannot be read or written, or a worker of this process failed.
pub fn count(
    cx: &mut Context,
    stage: &MirrorStage,
    hosts: &Hosts,
    roots: &[ClusterRoot],
    counting: Counting,
    table: &Rc<PairTable>,
) -> Result<CountedPairs> {
    // Of roots' hosts, both directions of each pair.
    let sides = if counting == Counting::Root { 2 } else { 1 };
    let counts = Rc::new(RefCell::new(vec![HostPairCounts::default(); sides * table.pairs.len()]));
    let each = {
        let (table, counts) = (table.clone(), counts.clone());
        let (mut present, mut taken) = (Present::default(), Vec::new());
        move |entries: &[ClusterEntry], _: &mut Dealer<u8>| {
            let (paired, entries) = candidates_of(entries, counting);
            present.fill(entries, &table, &mut taken);
            let paired = paired.and_then(|host| table.number(host));
            let counts = &mut counts.borrow_mut()[..];
            table.pairs_of(&present.hosts, |pair, a, b| {
                let is_paired = |place: usize| Some(present.hosts[place]) == paired;
                if counting != Counting::All && !is_paired(a) && !(sides == 2 && is_paired(b)) {
                    return;
                }
                let place = sides * pair + usize::from(sides == 2 && is_paired(b));
                let (pages_a, a_is_kept) = present.pages[a];
                let (pages_b, b_is_kept) = present.pages[b];
                counts[place].add([pages_a, pages_b], a_is_kept && b_is_kept);
            });
        }
    };
    by_group(cx, "Count", entries(hosts, stage.least, roots), each, |_: BlockOf<u8>| {})?;
    let counts = sum_over_workers(cx, counts.take())?;
    if sides == 1 {
        return Ok(CountedPairs { counts, rooted_at_second: Vec::new() });
    }
    let chosen = counts.as_chunks().0.iter().map(|[at_first, at_second]: &[HostPairCounts; 2]| {
        let is_second = at_second.pages[0] > at_first.pages[1];
        (if is_second { *at_second } else { *at_first }, is_second)
    });
    let (counts, rooted_at_second) = chosen.unzip();
    Ok(CountedPairs { counts, rooted_at_second })
}

/// The hosts of a cluster that are in pairs.
#[derive(Default)]
struct Present {
    /// Their numbers, ascending.
    hosts: Vec<u32>,
    /// The pages of each, and whether the host is kept.
    pages: Vec<(u64, bool)>,
}

impl Present {
    fn fill(&mut self, entries: &[ClusterEntry], table: &PairTable, taken: &mut Vec<u64>) {
        self.hosts.clear();
        self.pages.clear();
        taken.clear();
        for of_host in entries.chunk_by(|a, b| a.host == b.host) {
            let addresses = of_host.iter().map(|entry| entry.address).filter(|address| *address != 0);
            let is_kept = !addresses.clone().any(|address| taken.contains(&address));
            if is_kept {
                taken.extend(addresses);
            }
            // The order of entries is that of the numbers of hosts.
            if let Some(number) = table.number(of_host[0].host) {
                self.hosts.push(number);
                self.pages.push((of_host[0].pages, is_kept));
            }
        }
    }
}

/// Adds the counts of all workers, by place; every worker returns the sums.
///
/// # Errors
/// If a worker of this process failed.
pub(super) fn sum_over_workers<C: Pod + Default>(cx: &mut Context, counts: Vec<C>) -> Result<Vec<C>> {
    const { assert!(size_of::<C>() == size_of::<[u64; COUNTS]>(), "each is so many counts") };
    let peers = cx.peers();
    let words: &[[u64; COUNTS]] = bytemuck::cast_slice(&counts);
    let mut dealer = cx.dealer();
    for (place, own) in words.iter().enumerate().filter(|(_, own)| **own != [0; COUNTS]) {
        dealer.deal((place % peers) as u64, PartOfSum { place: place as u64, counts: *own });
    }
    let mut own: Vec<[u64; COUNTS]> = vec![[0; COUNTS]; counts.len().div_ceil(peers)];
    for block in all_to_all(cx, dealer)? {
        for part in block.records() {
            let sum = &mut own[part.place as usize / peers];
            sum.iter_mut().zip(part.counts).for_each(|(sum, count)| *sum += count);
        }
    }
    let index = cx.index();
    let sums = own.into_iter().enumerate().filter(|(_, sum)| *sum != [0; COUNTS]);
    let sums = sums.map(|(place, sum)| ((place * peers + index) as u64, sum)).collect();
    let mut all = vec![C::default(); counts.len()];
    let words: &mut [[u64; COUNTS]] = bytemuck::cast_slice_mut(&mut all);
    cx.sorted(sums)?.into_iter().for_each(|(place, sum)| words[place as usize] = sum);
    Ok(all)
}

/// The counts of a pair, as words.
const COUNTS: usize = 5;

/// What a worker counted for a pair, on its way to the worker that adds.
#[derive(Clone, Copy, Pod, Zeroable)]
#[repr(C)]
struct PartOfSum {
    place: u64,
    counts: [u64; COUNTS],
}
