//! Remaining members: the smallest unchanged document of each cluster, and of each class of
//! documents with the identical vector, that changed documents had.
//!
//! Cost: two all-gathers, of the roots that changed documents had and of their remaining members;
//! and one pass over the roots of own documents, behind a filter that few of them pass.

use anyhow::Result;
use nigh_exchange::Context;

use crate::kernels::Kernels;
use crate::operators::delta::sharing::RootOf;
use crate::operators::scan::VectorRoots;
use crate::records::DocId;
use crate::structures::{CompactSort, DocFilter, Ownership};

/// The unchanged members of touched clusters: those that changed documents had. A cluster without
/// an unchanged member is in neither map.
#[derive(Debug, Default)]
pub(crate) struct Remaining {
    /// The smallest unchanged member of a cluster of very similar documents, by its last root; at
    /// all workers.
    pub(crate) similar: RootOf,
    /// The same of virtually identical documents.
    pub(crate) identical: RootOf,
    /// All own unchanged members of touched clusters of very similar documents, ascending.
    pub(crate) members: Vec<DocId>,
}

/// Finds the unchanged members of the clusters that changed documents had. `changed` are own
/// documents, ascending.
///
/// # Errors
/// If a worker of this process failed.
pub(crate) fn remaining(
    cx: &mut Context,
    changed: &[DocId],
    roots: &VectorRoots,
    owned: &Ownership,
    kernels: &'static Kernels,
) -> Result<Remaining> {
    // The roots that changed documents had: (whether of identical ones, root).
    let mut touched: Vec<(bool, DocId)> = Vec::new();
    for index in changed.iter().map(|doc| owned.index(*doc)).filter(|index| roots.similar[*index] != DocId::NONE) {
        touched.extend([(false, roots.similar[index]), (true, roots.identical[index])]);
    }
    touched.sort_rows();
    touched.dedup();
    let touched = cx.sorted(touched)?;
    let (of_similar, of_identical) = touched.split_at(touched.partition_point(|(is_identical, _)| !is_identical));
    let [mut similar, mut identical] = [of_similar, of_identical]
        .map(|touched| touched.iter().map(|(_, root)| (*root, DocId::NONE)).collect::<RootOf>());

    // The smallest own unchanged document of each. Documents with the identical vector are in one
    // cluster, so one filter is enough for both levels.
    let filter = DocFilter::new(similar.keys(), kernels);
    let mut changed = changed.iter().copied().peekable();
    let mut members = Vec::new();
    for shard in owned.shards() {
        let first = owned.index(DocId::new(shard, 0));
        filter.each(&roots.similar[first..][..owned.rows(shard) as usize], |row| {
            let (doc, index) = (DocId::new(shard, row as u64), first + row);
            while changed.next_if(|changed| *changed < doc).is_some() {}
            let is_unchanged = changed.peek() != Some(&doc);
            let Some(smallest) = similar.get_mut(&roots.similar[index]).filter(|_| is_unchanged) else {
                return;
            };
            members.push(doc);
            *smallest = doc.min(*smallest);
            if let Some(smallest) = identical.get_mut(&roots.identical[index]) {
                *smallest = doc.min(*smallest);
            }
        });
    }

    // The smallest of all workers.
    let mut smallest: Vec<(bool, DocId, DocId)> = Vec::new();
    for (smallest_of, is_identical) in [(&similar, false), (&identical, true)] {
        let present = smallest_of.iter().filter(|(_, doc)| **doc != DocId::NONE);
        smallest.extend(present.map(|(root, doc)| (is_identical, *root, *doc)));
    }
    let mut remaining = Remaining { members, ..Remaining::default() };
    for (is_identical, root, doc) in cx.sorted(smallest)? {
        let smallest_of = if is_identical { &mut remaining.identical } else { &mut remaining.similar };
        // They come sorted: the smallest first.
        smallest_of.entry(root).or_insert(doc);
    }
    Ok(remaining)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;
    use crate::kernels::chosen;
    use crate::records::mix;

    #[test]
    fn remaining_members_are_those_of_a_plain_search() {
        let rows = [40, 0, 25, 31, 7];
        let docs: Vec<DocId> = Ownership::new(0, 1, &rows).docs().collect();
        for (seed, workers) in (0..30).map(|seed| (seed, 1 + seed as usize % 3)) {
            let random =
                |doc: DocId, salt: u64, below: u64| mix(mix(seed ^ salt << 32) ^ doc.to_table() as u64) % below;
            // A document is in one of 20 clusters and in one of its three classes of identical
            // documents; one in eight has no vector, and one in three changes.
            let cluster = |doc: DocId| random(doc, 1, 20);
            let class = |doc: DocId| (cluster(doc), random(doc, 2, 3));
            let had_vector = |doc: &&DocId| random(**doc, 3, 8) > 0;
            let changes = |doc: &&DocId| random(**doc, 4, 3) == 0;
            let first_with =
                |like: &dyn Fn(DocId) -> bool| *docs.iter().filter(had_vector).find(|other| like(**other)).unwrap();
            let roots_of = |doc: &DocId| {
                if had_vector(&doc) {
                    let similar = first_with(&|other| cluster(other) == cluster(*doc));
                    let identical = first_with(&|other| class(other) == class(*doc));
                    (similar, identical)
                } else {
                    (DocId::NONE, DocId::NONE)
                }
            };
            let roots: BTreeMap<DocId, (DocId, DocId)> = docs.iter().map(|doc| (*doc, roots_of(doc))).collect();

            // The plain search, for each changed document.
            let [mut similar, mut identical] = [RootOf::default(), RootOf::default()];
            for changed in docs.iter().filter(had_vector).filter(changes) {
                let unchanged = || docs.iter().filter(had_vector).filter(|doc| !changes(doc));
                let (similar_root, identical_root) = roots[changed];
                let smallest = unchanged().find(|doc| roots[doc].0 == similar_root);
                similar.extend(smallest.map(|doc| (similar_root, *doc)));
                let smallest = unchanged().find(|doc| roots[doc].1 == identical_root);
                identical.extend(smallest.map(|doc| (identical_root, *doc)));
            }

            let changed: Vec<DocId> = docs.iter().filter(changes).copied().collect();
            let guards = timely::execute(timely::Config::process(workers), move |worker| {
                let cx = &mut Context::alone(worker);
                let owned = Ownership::new(cx.index(), cx.peers(), &rows);
                let changed: Vec<DocId> = changed.iter().copied().filter(|doc| owned.has(*doc)).collect();
                let own_roots = VectorRoots {
                    similar: owned.docs().map(|doc| roots[&doc].0).collect(),
                    identical: owned.docs().map(|doc| roots[&doc].1).collect(),
                };
                let found = remaining(cx, &changed, &own_roots, &owned, chosen().unwrap()).unwrap();
                let is_member = |doc: &DocId| !changed.contains(doc) && found.similar.contains_key(&roots[doc].0);
                assert!(found.members.iter().copied().eq(owned.docs().filter(is_member)), "seed {seed}");
                found
            });
            for found in guards.unwrap().join() {
                let found = found.unwrap();
                assert_eq!(
                    (&found.similar, &found.identical),
                    (&similar, &identical),
                    "seed {seed}, {workers} workers"
                );
            }
            assert!(similar.len() > 3 && identical.len() > 3);
        }
    }
}
