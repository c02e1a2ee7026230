//! Names that clusters keep through the weeks, and what became of last week's clusters.
//!
//! A cluster of last week is succeeded by the one that has most of its pages now (of equals, the one with the smallest
//! root). Of the clusters that it succeeds, a cluster has the name of the one of which it has most pages (of equals, the
//! smallest name). Any other cluster gets a name that nobody ever had: its root's shard, and the next number there.

use std::collections::BTreeMap;
use std::sync::Arc;

use anyhow::{Result, ensure};
use bytemuck::{Pod, Zeroable};
use timely::worker::Worker;

use super::cluster_sizes::{ClusterSizes, LevelClusters};
use super::overlaps::{Overlap, overlaps};
use crate::operators::exchange::{Dealer, LocalAnswers, all_to_all, lookup};
use crate::operators::scan::PastClusters;
use crate::records::DocId;
use crate::structures::Ownership;
use crate::tables::{ChangeRow, Event};
use crate::watch::Watch;

/// The names of this week's clusters.
pub struct ClusterIds {
    /// Of each own document's cluster, by number; [`DocId::NONE`] for a page that is alone, or none.
    pub of_docs: Vec<DocId>,
    /// Names that were given for the first time, by own shard.
    pub given: Vec<(u32, u64)>,
    /// What became of clusters, by own shard, in the order of the table.
    pub changes: BTreeMap<u32, Vec<ChangeRow>>,
}

/// To the owner of a cluster's root: pages that it has of a cluster of last week; or to the owner of a name, with no
/// root: how many pages its cluster had.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Pod, Zeroable)]
#[repr(C)]
struct IdClaim {
    root: DocId,
    name: DocId,
    /// Pages of the old cluster.
    before: u64,
    /// Those that are in the new one.
    count: u64,
    /// 1 where the new cluster succeeds the old one.
    succeeds: u64,
}

/// Where names come from.
#[derive(Clone, Copy)]
pub enum IdSource<'a> {
    /// From the clusters that are succeeded, and after those given in each shard before, which are so many.
    After(&'a [u64]),
    /// They are given: that of each own document's cluster, by number.
    As(&'a [DocId]),
}

/// Names the clusters of a week, and tells what became of the past ones.
///
/// # Errors
/// Where a worker of this process failed.
pub fn cluster_ids(
    worker: &mut Worker,
    owned: &Ownership,
    past: PastClusters,
    clusters: &LevelClusters,
    naming: IdSource<'_>,
    watch: &Arc<Watch>,
) -> Result<ClusterIds> {
    let (peers, LevelClusters { roots, tallies, .. }) = (worker.peers(), clusters);
    let is_cluster = |root: DocId| root != DocId::NONE && tallies.members(root) > 1;
    let pairs = past.names.iter().zip(roots).filter(|(name, root)| **name != DocId::NONE && is_cluster(**root));
    let pairs = pairs.map(|(name, root)| (name.to_table() as u64, root.to_table() as u64));
    let shared = overlaps(worker, pairs, watch)?;
    let mut changes: BTreeMap<u32, Vec<ChangeRow>> = BTreeMap::new();

    // The owners of last week's names know what became of them.
    let mut dealer = Dealer::new(worker.index(), peers, watch);
    for (name, before) in past.clusters {
        dealer.deal(name.owner(peers) as u64, IdClaim { root: DocId::NONE, name, before, count: 0, succeeds: 0 });
    }
    let mut sizes: Vec<(DocId, u64)> = Vec::new();
    for block in all_to_all(worker, dealer, watch)? {
        sizes.extend(block.records().iter().map(|part| (part.name, part.before)));
    }
    sizes.sort_unstable();
    let bearers = match naming {
        IdSource::After(_) => BTreeMap::new(),
        IdSource::As(names) => bearers(worker, owned, names, tallies, watch)?,
    };
    let mut dealer = Dealer::new(worker.index(), peers, watch);
    let mut shared = shared.as_slice();
    for (name, before) in sizes {
        let here = shared.iter().take_while(|overlap| overlap.a == name.to_table() as u64).count();
        let (parts, rest) = shared.split_at(here);
        shared = rest;
        let most = |overlap: &&Overlap| (overlap.count, std::cmp::Reverse(overlap.b));
        // Who bears the name succeeds, whatever it has of the pages.
        let bearer = bearers.get(&name).map(|root| root.to_table() as u64);
        let Some(successor) = bearer.or_else(|| parts.iter().max_by_key(most).map(|overlap| overlap.b)) else {
            let died = ChangeRow::new(Event::Death, name, None, (before, 0), before);
            changes.entry(name.shard()).or_default().push(died);
            continue;
        };
        let has_any = parts.iter().any(|overlap| overlap.b == successor);
        let none = (!has_any).then_some(Overlap { a: name.to_table() as u64, b: successor, count: 0 });
        for overlap in parts.iter().copied().chain(none) {
            let root = DocId::from_table(overlap.b as i64);
            let succeeds = u64::from(overlap.b == successor);
            let part = IdClaim { root, name, before, count: overlap.count, succeeds };
            dealer.deal(root.owner(peers) as u64, part);
        }
    }
    ensure!(shared.is_empty(), "the `clusters` of the week before name a cluster that has no root");
    let mut parts: Vec<IdClaim> = Vec::new();
    for block in all_to_all(worker, dealer, watch)? {
        parts.extend_from_slice(block.records());
    }
    parts.sort_unstable();

    // The owners of roots name them.
    let mut own_names: Vec<DocId> = vec![DocId::NONE; owned.len()];
    let mut given: BTreeMap<u32, u64> = owned.shards().map(|shard| (shard, 0)).collect();
    let mut parts = parts.as_slice();
    for (root, members) in tallies.own().filter(|(_, members)| *members > 1) {
        let here = parts.iter().take_while(|part| part.root == root).count();
        let (of_root, rest) = parts.split_at(here);
        parts = rest;
        let most = |part: &&IdClaim| (part.count, std::cmp::Reverse(part.name));
        let heir = of_root.iter().filter(|part| part.succeeds == 1).max_by_key(most);
        let name = match (naming, heir) {
            (IdSource::As(names), _) => names[owned.index(root)],
            (IdSource::After(_), Some(part)) => part.name,
            (IdSource::After(first), None) => {
                let given = given.entry(root.shard()).or_default();
                *given += 1;
                DocId::new(root.shard(), first[root.shard() as usize] + *given - 1)
            }
        };
        own_names[owned.index(root)] = name;
        let rows = changes.entry(root.shard()).or_default();
        if of_root.is_empty() {
            rows.push(ChangeRow::new(Event::Birth, name, None, (0, members), members));
        }
        for part in of_root {
            let sizes = (part.before, members);
            match (part.name == name, part.succeeds == 1) {
                (true, _) if part.before < members => {
                    rows.push(ChangeRow::new(Event::Grow, name, None, sizes, members - part.before));
                }
                (true, _) if part.before > members => {
                    rows.push(ChangeRow::new(Event::Shrink, name, None, sizes, part.before - members));
                }
                (true, _) => {}
                (false, true) => rows.push(ChangeRow::new(Event::Merge, part.name, Some(name), sizes, part.count)),
                (false, false) => rows.push(ChangeRow::new(Event::Split, part.name, Some(name), sizes, part.count)),
            }
        }
    }
    changes.values_mut().for_each(|rows| rows.sort_unstable());

    let mut of_docs = vec![DocId::NONE; roots.len()];
    let asked: std::rc::Rc<Vec<(usize, DocId)>> = std::rc::Rc::new(
        (0..).zip(roots).filter(|(_, root)| is_cluster(**root)).map(|(at, root)| (at, *root)).collect(),
    );
    let (asking, known) = (asked.clone(), move |own: usize| [own_names[own].to_table() as u64]);
    let ask = move || {
        let asking = asking.clone();
        (0..asking.len()).map(move |at| asking[at].1)
    };
    let near = LocalAnswers::own(worker, known);
    lookup(worker, owned, ask, &near, watch, |at, [name]| of_docs[asked[at].0] = DocId::from_table(name as i64))?;
    Ok(ClusterIds { of_docs, given: given.into_iter().collect(), changes })
}

/// The roots of the clusters that bear names, at the names' owners.
fn bearers(
    worker: &mut Worker,
    owned: &Ownership,
    names: &[DocId],
    tallies: &ClusterSizes,
    watch: &Arc<Watch>,
) -> Result<BTreeMap<DocId, DocId>> {
    let mut dealer = Dealer::new(worker.index(), worker.peers(), watch);
    for (root, _) in tallies.own().filter(|(_, members)| *members > 1) {
        let name = names[owned.index(root)];
        dealer.deal(name.owner(worker.peers()) as u64, IdClaim { root, name, before: 0, count: 0, succeeds: 0 });
    }
    let blocks = all_to_all(worker, dealer, watch)?;
    Ok(blocks.iter().flat_map(|block| block.records()).map(|part| (part.name, part.root)).collect())
}
