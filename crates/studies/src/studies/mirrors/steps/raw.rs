//! Raw pairs: hosts that share enough pages.
//!
//! Three ways to count them. *All*: `a` has enough pages in clusters that `b` is in, and `b` in
//! clusters that `a` is in (the text of Fetterly 2004, section 2). *Root*: the host of each
//! cluster's root is paired with each other host in it, and the pages of the other are counted, as
//! the study counted. *First*: the same for the first host of each cluster in the place of its
//! root's: so several mirrors of one host are all paired with one of them.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;
use std::sync::Arc;

use anyhow::{Result, ensure};
use bytemuck::{Pod, Zeroable};
use nigh_exchange::{BlockOf, Context, Dealer, all_to_all, by_group};

use super::MirrorStage;
use super::entries::{ClusterEntry, ClusterRoot, Counting, candidates_of, entries};
use super::host_name::HostName;
use super::hosts::Hosts;
use crate::operators::set_join::{Element, SetJoin, TooManyPairs, WeightedSets, set_join};
use crate::records::mix;
use crate::structures::Sums;

/// The raw pairs of a week, the same at every worker.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RawPairs {
    /// Pairs of different hosts, each once; which of the two names comes first has no meaning.
    pub pairs: Vec<(HostName, HostName)>,
    /// Those that stand for a farm: its first host with each other one, the smaller name first;
    /// ascending. They are in `pairs`, too.
    pub farm: Vec<(HostName, HostName)>,
    /// All pairs of farms, those included.
    pub farm_pairs: u64,
    /// Hosts that are pairs with themselves, and the pages counted.
    pub auto: Vec<(HostName, u64)>,
}

/// Finds the raw pairs. `roots` are needed if pairs of the root's host are counted.
///
/// # Errors
/// [`TooManyPairs`]; if a file cannot be read or written, or a worker of this process failed.
pub fn raw_pairs(
    cx: &mut Context,
    stage: &MirrorStage,
    hosts: &Hosts,
    roots: &[ClusterRoot],
    counting: Counting,
) -> Result<RawPairs> {
    match counting {
        Counting::All => all_pairs(cx, stage, hosts),
        Counting::First | Counting::Root => pairs_of_one(cx, stage, hosts, roots, counting),
    }
}

/// Pairs of one host of each cluster with the others, by the pages of the others.
fn pairs_of_one(
    cx: &mut Context,
    stage: &MirrorStage,
    hosts: &Hosts,
    roots: &[ClusterRoot],
    counting: Counting,
) -> Result<RawPairs> {
    let sums: Rc<RefCell<Sums<(HostName, HostName)>>> = Rc::default();
    let each = {
        let sums = sums.clone();
        move |entries: &[ClusterEntry], _: &mut Dealer<u8>| {
            let (Some(first), entries) = candidates_of(entries, counting) else { return };
            let mut sums = sums.borrow_mut();
            for of_host in entries.chunk_by(|a, b| a.host == b.host) {
                let ClusterEntry { host, pages, .. } = of_host[0];
                let counted = if host == first { pages - 1 } else { pages };
                if counted > 0 {
                    sums.add((first, host), counted);
                }
            }
        }
    };
    by_group(cx, "Stars", entries(hosts, stage.least, roots), each, |_: BlockOf<u8>| {})?;
    let peers = cx.peers();
    let mut dealer = cx.dealer();
    for ((first, other), pages) in sums.take().finish() {
        dealer.deal(mix(first.0 ^ other.0.rotate_left(32)) % peers as u64, CountedHost { first, other, pages });
    }
    let mut sums = Sums::default();
    for block in all_to_all(cx, dealer)? {
        block.records().iter().for_each(|counted| sums.add((counted.first, counted.other), counted.pages));
    }
    let enough = sums.finish().into_iter().filter(|(_, pages)| *pages >= stage.least.into());
    let mut raw = RawPairs::default();
    for ((first, other), pages) in cx.sorted(enough.collect())? {
        if first == other {
            raw.auto.push((first, pages));
        } else {
            raw.pairs.push((first, other));
        }
    }
    raw.check(cx, stage)
}

/// What a worker counted for a host and the first one of its clusters.
#[derive(Clone, Copy, Pod, Zeroable)]
#[repr(C)]
struct CountedHost {
    first: HostName,
    other: HostName,
    pages: u64,
}

/// All pairs, by the set join.
fn all_pairs(cx: &mut Context, stage: &MirrorStage, hosts: &Hosts) -> Result<RawPairs> {
    let mut sets = WeightedSets::default();
    let mut names = Vec::new();
    let mut set = Vec::new();
    for host in hosts.iter().filter(|host| host.clustered >= stage.least.into()) {
        set.clear();
        set.extend(host.entries.iter().map(|entry| Element { hash: mix(entry.cluster), weight: entry.pages }));
        sets.push(host.name.0, &set)?;
        names.push(host.name);
    }
    let listed: Rc<RefCell<Vec<(HostName, HostName)>>> = Rc::default();
    let each = {
        let listed = listed.clone();
        move |pair: crate::operators::set_join::SetPair| {
            listed.borrow_mut().push((HostName(pair.names[0]), HostName(pair.names[1])));
            Ok(())
        }
    };
    let joined = set_join(&mut cx.with(cx.memory() / 2, cx.scratch()), &stage.join(), &Arc::new(sets), each)?;
    let rows = JoinedRows::gather(cx, &joined, &names, hosts)?;
    let listed = cx.sorted(listed.take())?;
    let mut raw = rows.pairs(cx, &listed, stage)?;
    let auto = |host: super::hosts::Host<'_>| {
        let pages = host.clustered - host.entries.len() as u64;
        (pages >= stage.least.into()).then_some((host.name, pages))
    };
    raw.auto = cx.sorted(hosts.iter().filter_map(auto).collect())?;
    raw.check(cx, stage)
}

/// The rows of a join that stand for several hosts, or are in a family; at every worker.
#[derive(Default)]
struct JoinedRows {
    /// The hosts of each such row: hosts come in the order of candidates, as (all ones less
    /// clustered pages, name).
    members: BTreeMap<HostName, Vec<(u64, HostName)>>,
    /// Rows of which any two hosts are a pair.
    cliques: Vec<HostName>,
    /// The rows of each family.
    families: BTreeMap<u32, Vec<HostName>>,
}

/// A host on its way to the worker that has its row.
#[derive(Clone, Copy, Pod, Zeroable)]
#[repr(C)]
struct HostOfRow {
    row: u64,
    rank: u64,
    name: HostName,
}

impl JoinedRows {
    fn gather(cx: &mut Context, joined: &SetJoin, names: &[HostName], hosts: &Hosts) -> Result<JoinedRows> {
        let mut dealer = cx.dealer();
        for (set, row) in joined.sets.iter().zip(&joined.distinct_of) {
            let name = names[*set as usize];
            let clustered = hosts.find(name).map_or(0, |host| host.clustered);
            dealer.deal(row.worker.into(), HostOfRow { row: row.number.into(), rank: u64::MAX - clustered, name });
        }
        let (mut members, mut cliques, mut families) = (Vec::new(), Vec::new(), Vec::new());
        for block in all_to_all(cx, dealer)? {
            for member in block.records() {
                let row = &joined.distinct[member.row as usize];
                if row.members > 1 || row.family.is_some() {
                    members.push((HostName(row.name), (member.rank, member.name)));
                }
            }
        }
        for row in joined.distinct.iter().filter(|row| row.members > 0) {
            if row.members > 1 && row.is_clique {
                cliques.push(HostName(row.name));
            }
            families.extend(row.family.map(|family| (family, HostName(row.name))));
        }
        let mut rows = JoinedRows { cliques: cx.sorted(cliques)?, ..JoinedRows::default() };
        for (row, member) in cx.sorted(members)? {
            rows.members.entry(row).or_default().push(member);
        }
        for (family, row) in cx.sorted(families)? {
            rows.families.entry(family).or_default().push(row);
        }
        Ok(rows)
    }

    /// The hosts of a row, in order; the row itself if it has no other.
    fn hosts(&self, row: HostName) -> Vec<HostName> {
        self.members.get(&row).map_or_else(|| vec![row], |members| members.iter().map(|(_, name)| *name).collect())
    }

    /// All pairs of hosts, but of farms those with their first host only.
    ///
    /// Equal hosts that are more than a farm has are one, too.
    fn pairs(&self, cx: &Context, listed: &[(HostName, HostName)], stage: &MirrorStage) -> Result<RawPairs> {
        let mut raw = RawPairs::default();
        let square = |count: u64| count * count.saturating_sub(1) / 2;
        let star = |raw: &mut RawPairs, hosts: &[HostName]| {
            let ends = hosts[1..].iter().map(|other| (hosts[0].min(*other), hosts[0].max(*other)));
            raw.farm.extend(ends.clone());
            raw.pairs.extend(ends);
        };
        let is_farm = |hosts: &[HostName]| hosts.len() as u64 > stage.farm;
        for row in &self.cliques {
            let hosts = self.hosts(*row);
            if is_farm(&hosts) {
                star(&mut raw, &hosts);
                raw.farm_pairs += square(hosts.len() as u64);
            } else {
                let others = |place: usize| hosts[place + 1..].iter().map(move |other| (place, *other));
                raw.pairs.extend((0..hosts.len()).flat_map(others).map(|(place, other)| (hosts[place], other)));
                raw.check_size(cx, stage)?;
            }
        }
        for rows in self.families.values() {
            let mut members: Vec<(u64, HostName)> = rows.iter().flat_map(|row| self.members[row].clone()).collect();
            members.sort_unstable();
            let all = members.len() as u64;
            let within: u64 = rows.iter().map(|row| square(self.members[row].len() as u64)).sum();
            raw.farm_pairs += square(all) - within;
            star(&mut raw, &members.iter().map(|(_, name)| *name).collect::<Vec<_>>());
        }
        for (a, b) in listed {
            let (hosts_a, hosts_b) = (self.hosts(*a), self.hosts(*b));
            let part = |hosts: &[HostName]| if is_farm(hosts) { 1 } else { hosts.len() };
            let parts = [part(&hosts_a), part(&hosts_b)];
            let of_a = &hosts_a[..parts[0]];
            raw.pairs.extend(of_a.iter().flat_map(|a| hosts_b[..parts[1]].iter().map(move |b| (*a, *b))));
            raw.farm_pairs += (hosts_a.len() * hosts_b.len() - parts[0] * parts[1]) as u64;
            raw.check_size(cx, stage)?;
        }
        raw.farm.sort_unstable();
        raw.farm.dedup();
        // A pair of a farm's first host may be one of equal hosts, too: then it is listed and
        // counted as such.
        let mut own: Vec<(HostName, HostName)> = Vec::new();
        for row in &self.cliques {
            let hosts = self.hosts(*row);
            if !is_farm(&hosts) {
                own.extend(hosts[1..].iter().map(|other| (hosts[0].min(*other), hosts[0].max(*other))));
            }
        }
        own.sort_unstable();
        raw.farm.retain(|pair| own.binary_search(pair).is_err());
        Ok(raw)
    }
}

/// Bytes that a listed pair takes at each worker, about.
const PAIR_BYTES: u64 = 120;
/// Pairs may take this much, however little memory records in flight may take.
const LEAST_MEMORY: u64 = 1 << 30;

impl RawPairs {
    /// Checks that all workers can hold the pairs.
    fn check_size(&self, cx: &Context, stage: &MirrorStage) -> Result<()> {
        let (pairs, most) = (self.pairs.len() as u64, stage.max_pairs);
        if pairs > most {
            return Err(TooManyPairs { pairs, most, elements: Vec::new() }.into());
        }
        ensure!(
            pairs * PAIR_BYTES <= cx.memory().max(LEAST_MEMORY),
            "{pairs} pairs of hosts and more do not fit into memory: every worker has all of them, {PAIR_BYTES} bytes each"
        );
        Ok(())
    }

    fn check(mut self, cx: &Context, stage: &MirrorStage) -> Result<RawPairs> {
        self.check_size(cx, stage)?;
        self.pairs.iter_mut().for_each(|(a, b)| (*a, *b) = ((*a).min(*b), (*a).max(*b)));
        self.pairs.sort_unstable();
        self.pairs.dedup();
        Ok(self)
    }
}
