//! Cluster sizes: how many documents each cluster has, at every worker that owns one of them.
//!
//! A worker counts its own documents by root and sends the counts of roots that it does not own to
//! their owners. The owners add them up and reply with the totals: two all-to-alls, with one record
//! of 16 bytes each way for every pair of worker and root.

use anyhow::Result;
use bytemuck::{Pod, Zeroable};
use nigh_exchange::{Context, all_to_all};

use crate::records::{DocId, Level};
use crate::structures::{ByKey, DocMap, Ownership, RankBitmap, SparseDocs};

/// The clusters of one level: the root of every own document, and the size of each cluster.
pub struct LevelClusters {
    /// The level.
    pub level: Level,
    /// The root of each own document; [`DocId::NONE`] if it has none.
    pub roots: DocMap,
    /// Sizes by root.
    pub sizes: ClusterSizes,
}

impl LevelClusters {
    /// The roots of own documents in clusters of several, by number.
    pub fn clustered(&self) -> SparseDocs {
        let in_clusters = self.roots.iter().enumerate().filter(|(_, (_, root))| self.is_cluster(*root));
        SparseDocs::new(self.sizes.owned.len(), in_clusters.map(|(number, (_, root))| (number, root)))
    }

    /// Whether a document's root is that of a cluster: of at least two documents.
    pub fn is_cluster(&self, root: DocId) -> bool {
        root != DocId::NONE && self.sizes.members(root) > 1
    }
}

/// Documents of a cluster: one worker's on the way to the owner of the root, all of them on the way
/// back.
#[derive(Clone, Copy, Pod, Zeroable)]
#[repr(C)]
struct RootCount {
    root: DocId,
    members: u64,
}

/// The sizes of the clusters that own documents belong to, at one level.
pub struct ClusterSizes {
    owned: Ownership,
    /// The own documents that are roots.
    own_roots: RankBitmap,
    /// Those of them whose clusters have several documents.
    own_clusters: RankBitmap,
    /// The sizes of these clusters, by rank.
    of_own_clusters: Vec<u64>,
    /// The size of the clusters of own documents whose roots have other owners.
    of_other_roots: ByKey<DocId, u64>,
}

impl ClusterSizes {
    /// The size of the cluster with this root; 0 if no own document belongs to it and its root has
    /// another owner.
    pub fn members(&self, root: DocId) -> u64 {
        if self.owned.has(root) {
            let number = self.owned.index(root);
            match self.own_clusters.get(number) {
                (true, rank) => self.of_own_clusters[rank],
                (false, _) => self.own_roots.get(number).0.into(),
            }
        } else {
            self.of_other_roots.get(&root).copied().unwrap_or(0)
        }
    }

    /// The root and size of every cluster whose root is an own document, in the order of their
    /// numbers.
    pub fn of_own_roots(&self) -> impl Iterator<Item = (DocId, u64)> {
        let sizes = self.own_clusters().map(|(_, members)| members);
        let roots = self.owned.docs().enumerate().filter(|(number, _)| self.own_roots.get(*number).0);
        roots.scan(sizes, |sizes, (number, root)| {
            let has_several = self.own_clusters.get(number).0;
            Some((root, if has_several { sizes.next()? } else { 1 }))
        })
    }

    /// The root and size of every cluster of several documents whose root is an own document, in
    /// the order of their numbers.
    pub fn own_clusters(&self) -> impl Iterator<Item = (DocId, u64)> + Clone {
        let roots = self.owned.docs().enumerate().filter(|(number, _)| self.own_clusters.get(*number).0);
        roots.zip(&self.of_own_clusters).map(|((_, root), members)| (root, *members))
    }
}

/// Counts the documents of every cluster, given the root of each own document in any order; a
/// document with the root [`DocId::NONE`] is not counted.
///
/// # Errors
/// Where a worker of this process failed.
pub fn cluster_sizes(cx: &mut Context, owned: &Ownership, roots: impl Iterator<Item = DocId>) -> Result<ClusterSizes> {
    let peers = cx.peers();
    let mut of_own_roots = vec![0u64; owned.len()];
    let mut own_parts: ByKey<DocId, u64> = ByKey::default();
    for root in roots.filter(|root| *root != DocId::NONE) {
        if owned.has(root) {
            of_own_roots[owned.index(root)] += 1;
        } else {
            *own_parts.entry(root).or_default() += 1;
        }
    }

    // To the owners of the roots.
    let mut dealer = cx.dealer();
    for (root, members) in own_parts {
        dealer.deal(root.owner(peers) as u64, RootCount { root, members });
    }
    let parts = all_to_all(cx, dealer)?;
    for RootCount { root, members } in parts.iter().flat_map(|block| block.records()) {
        of_own_roots[owned.index(*root)] += members;
    }

    // And back to the senders.
    let mut dealer = cx.dealer();
    for block in parts {
        for RootCount { root, .. } in block.records() {
            dealer.deal(block.from.into(), RootCount { root: *root, members: of_own_roots[owned.index(*root)] });
        }
    }
    let totals = all_to_all(cx, dealer)?;
    let totals = totals.iter().flat_map(|block| block.records()).map(|total| (total.root, total.members));
    let of_other_roots = totals.collect();
    let numbers = |least: u64| {
        let members = (0u32..).zip(&of_own_roots).filter(move |(_, members)| **members >= least);
        RankBitmap::new(owned.len(), members.map(|(number, _)| number))
    };
    let (own_roots, own_clusters) = (numbers(1), numbers(2));
    let mut of_own_clusters = Vec::with_capacity(own_clusters.count());
    of_own_clusters.extend(of_own_roots.iter().copied().filter(|members| *members > 1));
    Ok(ClusterSizes { owned: owned.clone(), own_roots, own_clusters, of_own_clusters, of_other_roots })
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use super::*;
    use crate::records::mix;

    #[test]
    fn every_worker_knows_the_sizes_of_its_documents_clusters() {
        let rows = [40, 0, 100, 7, 2, 0, 50];
        let docs: Vec<DocId> = Ownership::new(0, 1, &rows).docs().collect();
        let all = docs.clone();
        // Most documents share a few roots in all shards; every fifth has none.
        let root_of = move |doc: DocId| {
            let hash = mix(doc.to_table() as u64);
            if hash.is_multiple_of(5) { DocId::NONE } else { all[(hash % 30 * 6) as usize] }
        };
        let mut twin: HashMap<DocId, u64> = HashMap::new();
        docs.iter().map(|doc| root_of(*doc)).for_each(|root| *twin.entry(root).or_default() += 1);
        twin.remove(&DocId::NONE);
        for workers in [1, 2, 4, 7] {
            let (root_of, expected) = (root_of.clone(), twin.clone());
            let guards = timely::execute(timely::Config::process(workers), move |worker| {
                let cx = &mut Context::alone(worker);
                let owned = Ownership::new(cx.index(), cx.peers(), &rows);
                let roots: Vec<DocId> = owned.docs().map(&root_of).collect();
                let sizes = cluster_sizes(cx, &owned, roots.iter().copied()).unwrap();
                for root in roots.into_iter().filter(|root| *root != DocId::NONE) {
                    assert_eq!(sizes.members(root), expected[&root], "{root}, {workers} workers");
                }
                let all: Vec<(DocId, u64)> = sizes.of_own_roots().collect();
                let several = all.iter().copied().filter(|(_, members)| *members > 1);
                assert_eq!(sizes.own_clusters().collect::<Vec<_>>(), several.collect::<Vec<_>>());
                all
            });
            let of_roots = guards.unwrap().join().into_iter().flat_map(Result::unwrap);
            let of_roots: Vec<(DocId, u64)> = of_roots.collect();
            assert_eq!(of_roots.len(), twin.len(), "every root has one owner");
            assert!(of_roots.iter().all(|(root, members)| twin[root] == *members), "{workers} workers");
        }
    }
}
