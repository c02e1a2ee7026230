//! Cluster ids that stay the same from week to week, and what became of last week's clusters.
//!
//! The *successor* of a last week's cluster is the cluster that now has most of its documents (of
//! equals, the one with the smallest root). Of the clusters that a cluster succeeds, it takes the
//! id of the one of which it has most documents (of equals, the smallest id). A cluster that
//! succeeds none gets a new id, which no cluster had before: the shard of its root, and the next
//! number there.
//!
//! Owners of last week's ids find the successors, owners of roots assign the ids: three or four
//! all-to-alls with a record for each pair of overlapping clusters, and a lookup of the ids by all
//! clustered documents. Everything is in memory.

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::rc::Rc;

use anyhow::{Result, ensure};
use bytemuck::{Pod, Zeroable};
use nigh_exchange::{Context, LocalAnswers, all_to_all, blocks, lookup};

use super::cluster_sizes::{ClusterSizes, LevelClusters};
use super::overlaps::{ClusterOverlap, overlaps};
use crate::operators::scan::PastClusters;
use crate::records::DocId;
use crate::structures::{Ownership, SparseDocs};
use crate::tables::{ChangeRow, Event};

/// The ids of this week's clusters.
pub struct ClusterIds {
    /// The id of each own document's cluster, by number; none for a document without a cluster.
    pub of_docs: SparseDocs,
    /// How many new ids each own shard has assigned: shard and count.
    pub new_ids: Vec<(u32, u64)>,
    /// Rows of the table `changes` by own shard, in the order of the table.
    pub changes: BTreeMap<u32, Vec<ChangeRow>>,
}

/// A last week's cluster, and the part of it that is in a cluster of this week: for the owner of
/// the new cluster's root. The size or the root of a cluster travels to the owner of its id in the
/// same record, with the other fields [`DocId::NONE`] or 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Pod, Zeroable)]
#[repr(C)]
struct IdClaim {
    /// The root of the new cluster.
    root: DocId,
    /// The id of the old cluster.
    id: DocId,
    /// Documents of the old cluster.
    before: u64,
    /// Those of them that are in the new cluster.
    shared: u64,
    /// 1 if the new cluster is the successor of the old one, otherwise 0.
    succeeds: u64,
}

/// Where ids come from.
#[derive(Clone, Copy)]
pub enum IdSource<'a> {
    /// From the succeeded clusters; the first new id of each shard has this row.
    After(&'a [u64]),
    /// The ids are known already: that of each own document's cluster, by number.
    As(&'a SparseDocs),
}

/// Assigns ids to the clusters of a week, and finds what became of last week's clusters.
///
/// # Errors
/// Where last week's table contradicts itself, or a worker of this process failed.
pub fn cluster_ids(
    cx: &mut Context,
    owned: &Ownership,
    past: PastClusters,
    clusters: &LevelClusters,
    source: IdSource<'_>,
) -> Result<ClusterIds> {
    let pairs = clusters.roots.iter().enumerate().filter(|(_, (_, root))| clusters.is_cluster(*root));
    let pairs = pairs.filter_map(|(number, (_, root))| Some((past.names.get(number)?, root)));
    let pairs = pairs.map(|(id, root)| (id.to_table() as u64, root.to_table() as u64));
    let overlaps = overlaps(cx, pairs)?;

    // At the owners of last week's ids.
    let before = past_sizes(cx, past.clusters)?;
    let roots_of_ids = match source {
        IdSource::After(_) => BTreeMap::new(),
        IdSource::As(ids) => roots_of_ids(cx, owned, ids, &clusters.sizes)?,
    };
    let mut changes: BTreeMap<u32, Vec<ChangeRow>> = BTreeMap::new();
    let claims = claims(cx, &before, &overlaps, &roots_of_ids, &mut changes)?;

    // At the owners of roots.
    let (own_ids, new_ids) = assign_ids(owned, &clusters.sizes, &claims, source, &mut changes);
    changes.values_mut().for_each(|rows| rows.sort_unstable());

    let of_docs = ids_of_docs(cx, owned, clusters, own_ids)?;
    Ok(ClusterIds { of_docs, new_ids: new_ids.into_iter().collect(), changes })
}

/// Sends the id and size of last week's clusters to the owners of the ids, and returns those
/// received, in order.
fn past_sizes(cx: &mut Context, clusters: Vec<(DocId, u64)>) -> Result<Vec<(DocId, u64)>> {
    let peers = cx.peers();
    let mut dealer = cx.dealer();
    for (id, before) in clusters {
        dealer.deal(id.owner(peers) as u64, IdClaim { root: DocId::NONE, id, before, shared: 0, succeeds: 0 });
    }
    let mut sizes: Vec<(DocId, u64)> =
        blocks(all_to_all(cx, dealer)?).into_iter().map(|claim| (claim.id, claim.before)).collect();
    sizes.sort_unstable();
    Ok(sizes)
}

/// The root of the cluster that has each id now, at the owner of the id.
fn roots_of_ids(
    cx: &mut Context,
    owned: &Ownership,
    ids: &SparseDocs,
    sizes: &ClusterSizes,
) -> Result<BTreeMap<DocId, DocId>> {
    let peers = cx.peers();
    let mut dealer = cx.dealer();
    for (root, _) in sizes.own_clusters() {
        let id = ids.get(owned.index(root)).unwrap_or(DocId::NONE);
        dealer.deal(id.owner(peers) as u64, IdClaim { root, id, before: 0, shared: 0, succeeds: 0 });
    }
    let received = all_to_all(cx, dealer)?;
    Ok(received.iter().flat_map(|block| block.records()).map(|claim| (claim.id, claim.root)).collect())
}

/// At the owner of last week's ids: finds the successor of each old cluster, writes down those that
/// died, and sends every overlap to the owner of the new cluster's root. Returns the claims on
/// clusters with own roots, in order.
///
/// `overlaps` and `before` (id and size) are in the order of the ids.
fn claims(
    cx: &mut Context,
    before: &[(DocId, u64)],
    overlaps: &[ClusterOverlap],
    roots_of_ids: &BTreeMap<DocId, DocId>,
    changes: &mut BTreeMap<u32, Vec<ChangeRow>>,
) -> Result<Vec<IdClaim>> {
    let peers = cx.peers();
    let mut dealer = cx.dealer();
    let mut rest = overlaps;
    for &(id, before) in before {
        let of_id = take_while(&mut rest, |overlap| overlap.a == id.to_table() as u64);
        // A cluster that has the id already is the successor, even if it has none of the documents.
        let known = roots_of_ids.get(&id).map(|root| root.to_table() as u64);
        let most = |overlap: &&ClusterOverlap| (overlap.count, Reverse(overlap.b));
        let Some(successor) = known.or_else(|| of_id.iter().max_by_key(most).map(|overlap| overlap.b)) else {
            let death = ChangeRow::new(Event::Death, id, None, (before, 0), before);
            changes.entry(id.shard()).or_default().push(death);
            continue;
        };
        let shares_any = of_id.iter().any(|overlap| overlap.b == successor);
        let empty = (!shares_any).then_some(ClusterOverlap { a: id.to_table() as u64, b: successor, count: 0 });
        for overlap in of_id.iter().copied().chain(empty) {
            let root = DocId::from_table(overlap.b as i64);
            let succeeds = u64::from(overlap.b == successor);
            let claim = IdClaim { root, id, before, shared: overlap.count, succeeds };
            dealer.deal(root.owner(peers) as u64, claim);
        }
    }
    ensure!(rest.is_empty(), "the table `clusters` of the week before has a cluster id without a root");
    let mut claims = blocks(all_to_all(cx, dealer)?);
    claims.sort_unstable();
    Ok(claims)
}

/// At the owner of roots: assigns an id to every cluster with an own root, and adds its `changes`.
/// Returns the ids by the number of the root, and how many new ids each own shard assigned.
///
/// `claims` are in the order of their roots.
fn assign_ids(
    owned: &Ownership,
    sizes: &ClusterSizes,
    claims: &[IdClaim],
    source: IdSource<'_>,
    changes: &mut BTreeMap<u32, Vec<ChangeRow>>,
) -> (SparseDocs, BTreeMap<u32, u64>) {
    let mut own_ids: Vec<(usize, DocId)> = Vec::new();
    let mut new_ids: BTreeMap<u32, u64> = owned.shards().map(|shard| (shard, 0)).collect();
    let mut rest = claims;
    for (root, members) in sizes.own_clusters() {
        let of_root = take_while(&mut rest, |claim| claim.root == root);
        let most = |claim: &&IdClaim| (claim.shared, Reverse(claim.id));
        let succeeded = of_root.iter().filter(|claim| claim.succeeds == 1).max_by_key(most);
        let id = match (source, succeeded) {
            (IdSource::As(ids), _) => ids.get(owned.index(root)).unwrap_or(DocId::NONE),
            (IdSource::After(_), Some(claim)) => claim.id,
            (IdSource::After(first), None) => {
                let assigned = new_ids.entry(root.shard()).or_default();
                *assigned += 1;
                DocId::new(root.shard(), first[root.shard() as usize] + *assigned - 1)
            }
        };
        own_ids.push((owned.index(root), id));
        let rows = changes.entry(root.shard()).or_default();
        if of_root.is_empty() {
            rows.push(ChangeRow::new(Event::Birth, id, None, (0, members), members));
        }
        rows.extend(of_root.iter().filter_map(|claim| change(claim, id, members)));
    }
    (SparseDocs::new(owned.len(), own_ids.into_iter()), new_ids)
}

/// What became of an old cluster, of which a new cluster with this id and size has a part.
fn change(claim: &IdClaim, id: DocId, members: u64) -> Option<ChangeRow> {
    let sizes = (claim.before, members);
    if claim.id != id {
        let event = if claim.succeeds == 1 { Event::Merge } else { Event::Split };
        return Some(ChangeRow::new(event, claim.id, Some(id), sizes, claim.shared));
    }
    match claim.before.cmp(&members) {
        std::cmp::Ordering::Less => Some(ChangeRow::new(Event::Grow, id, None, sizes, members - claim.before)),
        std::cmp::Ordering::Greater => Some(ChangeRow::new(Event::Shrink, id, None, sizes, claim.before - members)),
        std::cmp::Ordering::Equal => None,
    }
}

/// Looks up the id of every own document's cluster at the owner of its root. `own_ids` are the ids
/// of clusters with own roots, by the number of the root.
fn ids_of_docs(
    cx: &mut Context,
    owned: &Ownership,
    clusters: &LevelClusters,
    own_ids: SparseDocs,
) -> Result<SparseDocs> {
    let (is_clustered, roots) = clusters.clustered().into_parts();
    let mut ids = vec![DocId::NONE; roots.len()];
    let roots = Rc::new(roots);
    let questions = || {
        let roots = roots.clone();
        (0..roots.len()).map(move |question| roots[question])
    };
    let id_of = move |root: usize| own_ids.get(root).unwrap_or(DocId::NONE);
    let local = LocalAnswers::own(cx, move |root: usize| [id_of(root).to_table() as u64]);
    lookup(cx, owned, questions, &local, |question, [id]| ids[question] = DocId::from_table(id as i64))?;
    Ok(SparseDocs::of_set(is_clustered, ids))
}

/// Splits the leading items that `belongs` accepts off the front of `items`, and returns them.
fn take_while<'a, T>(items: &mut &'a [T], belongs: impl Fn(&T) -> bool) -> &'a [T] {
    let count = items.iter().take_while(|item| belongs(item)).count();
    let (taken, rest) = items.split_at(count);
    *items = rest;
    taken
}
