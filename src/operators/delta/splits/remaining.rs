//! Who stays where documents leave: the smallest of each cluster, and of each class of documents with the same vector.

use anyhow::Result;
use timely::worker::Worker;

use crate::kernels::Kernels;
use crate::operators::delta::sharing::RootOf;
use crate::operators::exchange::all_gather;
use crate::operators::scan::VectorRoots;
use crate::records::DocId;
use crate::structures::{DocFilter, Ownership};
use crate::watch::Watch;

/// The smallest documents that stay, by the roots that they had; of clusters that changed documents had, and only of those
/// where somebody stays.
#[derive(Debug, Default)]
pub(crate) struct Remaining {
    /// Of clusters of very similar documents.
    pub(crate) similar: RootOf,
    /// Of those of virtually identical ones.
    pub(crate) identical: RootOf,
    /// The own documents that stay in the clusters that changed documents had, ascending.
    pub(crate) members: Vec<DocId>,
}

/// Finds who stays in the clusters that changed documents had. `changed` are own ones, ascending.
///
/// # Errors
/// Where a worker of this process failed.
pub(crate) fn remaining(
    worker: &mut Worker,
    changed: &[DocId],
    roots: &VectorRoots,
    owned: &Ownership,
    kernels: &'static Kernels,
    watch: &Watch,
) -> Result<Remaining> {
    let mut had: Vec<(bool, DocId)> = Vec::new();
    for own in changed.iter().map(|doc| owned.index(*doc)).filter(|own| roots.similar[*own] != DocId::NONE) {
        had.extend([(false, roots.similar[own]), (true, roots.identical[own])]);
    }
    had.sort_unstable();
    had.dedup();
    let had = all_gather(worker, had, watch)?;
    let (of_similar, of_identical) = had.split_at(had.partition_point(|(identical, _)| !identical));
    let [mut similar, mut identical] =
        [of_similar, of_identical].map(|had| had.iter().map(|(_, root)| (*root, DocId::NONE)).collect::<RootOf>());
    // Documents with the same vector are of one cluster: whoever passes the sieve may be asked for both.
    let sieve = DocFilter::new(similar.keys(), kernels);
    let mut changed = changed.iter().copied().peekable();
    let mut members = Vec::new();
    for shard in owned.shards() {
        let first = owned.index(DocId::new(shard, 0));
        sieve.each(&roots.similar[first..][..owned.rows(shard) as usize], |row| {
            let (doc, own) = (DocId::new(shard, row as u64), first + row);
            while changed.next_if(|changed| *changed < doc).is_some() {}
            let Some(heir) = similar.get_mut(&roots.similar[own]).filter(|_| changed.peek() != Some(&doc)) else {
                return;
            };
            members.push(doc);
            *heir = doc.min(*heir);
            if let Some(heir) = identical.get_mut(&roots.identical[own]) {
                *heir = doc.min(*heir);
            }
        });
    }
    let mut found: Vec<(bool, DocId, DocId)> = Vec::new();
    for (heirs, is_identical) in [(&similar, false), (&identical, true)] {
        let some = heirs.iter().filter(|(_, heir)| **heir != DocId::NONE);
        found.extend(some.map(|(root, heir)| (is_identical, *root, *heir)));
    }
    let mut heirs = Remaining { members, ..Remaining::default() };
    for (is_identical, root, heir) in all_gather(worker, found, watch)? {
        // In order: the smallest comes first.
        (if is_identical { &mut heirs.identical } else { &mut heirs.similar }).entry(root).or_insert(heir);
    }
    Ok(heirs)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;
    use std::sync::Arc;

    use super::*;
    use crate::kernels::chosen;
    use crate::records::mix;

    #[test]
    fn the_smallest_that_stay_are_those_of_a_plain_search() {
        let rows = [40, 0, 25, 31, 7];
        let all: Vec<DocId> = Ownership::new(0, 1, &rows).docs().collect();
        for (seed, workers) in (0..30).map(|seed| (seed, 1 + seed as usize % 3)) {
            let random =
                |doc: DocId, salt: u64, below: u64| mix(mix(seed ^ salt << 32) ^ doc.to_table() as u64) % below;
            // Clusters by number, of which some members are identical; and some documents without a vector.
            let class = |doc: DocId| (random(doc, 1, 20), random(doc, 2, 3));
            let had = |doc: &&DocId| random(**doc, 3, 8) > 0;
            let changes = |doc: &&DocId| random(**doc, 4, 3) == 0;
            let first = |like: &dyn Fn(DocId) -> bool| *all.iter().filter(had).find(|other| like(**other)).unwrap();
            let root = |doc: &DocId| match had(&doc) {
                true => (first(&|other| class(other).0 == class(*doc).0), first(&|other| class(other) == class(*doc))),
                false => (DocId::NONE, DocId::NONE),
            };
            let roots: BTreeMap<DocId, (DocId, DocId)> = all.iter().map(|doc| (*doc, root(doc))).collect();
            let [mut similar, mut identical] = [RootOf::default(), RootOf::default()];
            for changed in all.iter().filter(had).filter(changes) {
                let stay = || all.iter().filter(had).filter(|doc| !changes(doc));
                let (root, twin) = roots[changed];
                similar.extend(stay().find(|doc| roots[doc].0 == root).map(|heir| (root, *heir)));
                identical.extend(stay().find(|doc| roots[doc].1 == twin).map(|heir| (twin, *heir)));
            }
            let changed: Vec<DocId> = all.iter().filter(changes).copied().collect();
            let (roots, changed) = (roots.clone(), changed.clone());
            let guards = timely::execute(timely::Config::process(workers), move |worker| {
                let owned = Ownership::new(worker.index(), worker.peers(), &rows);
                let changed: Vec<DocId> = changed.iter().copied().filter(|doc| owned.has(*doc)).collect();
                let own = VectorRoots {
                    similar: owned.docs().map(|doc| roots[&doc].0).collect(),
                    identical: owned.docs().map(|doc| roots[&doc].1).collect(),
                };
                let found = remaining(worker, &changed, &own, &owned, chosen().unwrap(), &Arc::default()).unwrap();
                let stay = |doc: &DocId| !changed.contains(doc) && found.similar.contains_key(&roots[doc].0);
                assert!(found.members.iter().copied().eq(owned.docs().filter(stay)), "seed {seed}");
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
