//! The ids of clusters, which stay from batch to batch, and what became of the clusters of the
//! batch before.
//!
//! The rule is that of the weeks of a store ([`crate::operators::output`]): the successor of a
//! cluster is the one that now has most of its documents; of the clusters that a cluster succeeds,
//! it takes the id of the one of which it has most. A cluster that succeeds none gets a new id: a
//! negative one, for the ids of the tables are positive. A cluster has two documents or more.
//!
//! Only clusters of which something changed are looked at, set by set: the documents of a
//! set that stayed were in one cluster before, and are in one now.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

use serde::Serialize;

use super::sets::{NO_ID, Sets};

/// Why the clusters of a store are refused.
pub(super) const ANOTHER_WAY: &str = "the table `clusters` of the last week has other clusters than the vectors of its documents make by the method of the \
    store: it was made in another way, which `nigh live` cannot go on from";

/// What became of a cluster, as in the table `changes`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ClusterChange {
    /// `birth`, `death`, `grow`, `shrink`, `merge` or `split`; or `rename`, if the tables have
    /// another id.
    pub event: &'static str,
    /// The cluster.
    pub cluster: i64,
    /// The cluster that has its documents now, after a merge or a split.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub into: Option<i64>,
    /// Documents of the cluster before.
    pub before: u64,
    /// Documents of the cluster now, or of `into`.
    pub after: u64,
    /// Documents that the change is about.
    pub documents: u64,
}

/// A document that was in one cluster and is in a node now, or in none.
pub(super) struct Moved {
    /// The id of the cluster before.
    pub(super) from: i64,
    /// Its node now.
    pub(super) to: Option<u32>,
}

/// The clusters with ids.
#[derive(Default)]
pub(super) struct Clusters {
    by_id: BTreeMap<i64, Named>,
    /// Ids that were given.
    given: i64,
}

/// A cluster as it was after the last batch.
struct Named {
    sets: Vec<u32>,
    docs: u64,
}

impl Clusters {
    /// How many ids were given to clusters that no table has.
    pub(super) fn given(&self) -> i64 {
        self.given
    }

    /// Puts `rename`s in an order in which each can be done for itself: an id is free before a
    /// cluster gets it. Of clusters that exchange their ids, one has the next new id in between,
    /// which is not given by this.
    pub(super) fn one_by_one(&self, renames: Vec<ClusterChange>) -> Vec<ClusterChange> {
        let mut left: BTreeMap<i64, ClusterChange> =
            renames.into_iter().map(|rename| (rename.cluster, rename)).collect();
        let mut ordered = Vec::new();
        while let Some((first, rename)) = left.pop_first() {
            // Each waits for the one that has its new id.
            let mut waiting = vec![rename];
            while let Some(next) = waiting.last().and_then(|rename| left.remove(&rename.into?)) {
                waiting.push(next);
            }
            if waiting.last().is_some_and(|last| last.into == Some(first)) {
                let between = -(self.given + 1);
                let aside = ClusterChange { into: Some(between), after: waiting[0].before, ..waiting[0].clone() };
                waiting[0].cluster = between;
                ordered.push(ClusterChange { documents: aside.before, ..aside });
            }
            ordered.extend(waiting.into_iter().rev());
        }
        ordered
    }

    /// Gives no id again that was given by then.
    pub(super) fn go_on_from(&mut self, given: i64) {
        self.given = self.given.max(given);
    }

    /// The sets of a cluster.
    pub(super) fn sets(&self, id: i64) -> Option<&[u32]> {
        self.by_id.get(&id).map(|named| named.sets.as_slice())
    }

    /// The ids of all clusters, ascending.
    pub(super) fn ids(&self) -> Vec<i64> {
        self.by_id.keys().copied().collect()
    }

    /// The number of clusters.
    pub(super) fn len(&self) -> usize {
        self.by_id.len()
    }

    /// Notes a cluster that is there from the beginning, with its id in the tables.
    pub(super) fn load(&mut self, id: i64, set: u32, docs: u64) {
        self.by_id.insert(id, Named { sets: vec![set], docs });
    }

    /// Gives ids to the clusters after a batch, and returns what became of those before it. `first`
    /// is the smallest document of a set.
    pub(super) fn update(
        &mut self,
        sets: &mut Sets,
        moved: &[Moved],
        first: impl Fn(&mut Sets, u32) -> u32,
    ) -> Vec<ClusterChange> {
        // What anything changed of: sets, and the labels and the ids that these have or had.
        let mut open: Vec<u32> = sets.take_changed().into_iter().collect();
        let (mut seen, mut labels, mut ids) = (BTreeSet::new(), BTreeSet::new(), BTreeSet::new());
        for id in moved.iter().map(|moved| moved.from).filter(|id| *id != NO_ID) {
            self.add_id(sets, id, &mut ids, &mut open);
        }
        while let Some(set) = open.pop() {
            if seen.insert(set) {
                let label = sets.label(set);
                if labels.insert(label) {
                    open.extend(sets.class(label));
                }
                self.add_id(sets, sets.set(set).id, &mut ids, &mut open);
            }
        }

        // How many documents of each cluster before are in each one now.
        let sizes: BTreeMap<u32, u64> = labels.iter().map(|label| (*label, sets.docs_of(*label))).collect();
        let mut overlaps: BTreeMap<i64, BTreeMap<u32, u64>> = ids.iter().map(|id| (*id, BTreeMap::new())).collect();
        let mut add = |id: i64, label: u32, docs: u64| {
            if id != NO_ID && docs > 0 && sizes.get(&label).is_some_and(|size| *size > 1) {
                *overlaps.entry(id).or_default().entry(label).or_default() += docs;
            }
        };
        for set in &seen {
            let of = sets.set(*set);
            add(of.id, sets.label(*set), of.stayed());
        }
        for Moved { from, to } in moved {
            to.iter().for_each(|node| add(*from, sets.label(sets.of(*node)), 1));
        }

        // Successors, then ids.
        let root = |sets: &mut Sets, label: u32| {
            let class = sets.class(label).into_iter();
            class.map(|set| first(sets, set)).min().unwrap_or(u32::MAX)
        };
        let mut roots: BTreeMap<u32, u32> = BTreeMap::new();
        for label in labels.iter().filter(|label| sizes[label] > 1) {
            roots.insert(*label, root(sets, *label));
        }
        let successor_of: BTreeMap<i64, u32> = overlaps
            .iter()
            .filter_map(|(id, of)| {
                Some((*id, *of.iter().max_by_key(|(label, docs)| (**docs, Reverse(roots[label])))?.0))
            })
            .collect();
        let mut succeeded_by: BTreeMap<u32, Vec<i64>> = BTreeMap::new();
        successor_of.iter().for_each(|(id, label)| succeeded_by.entry(*label).or_default().push(*id));
        let had_documents: BTreeSet<u32> = overlaps.values().flat_map(BTreeMap::keys).copied().collect();
        let mut in_order: Vec<u32> = roots.keys().copied().collect();
        in_order.sort_unstable_by_key(|label| roots[label]);
        let mut changes = Vec::new();
        let mut id_of: BTreeMap<u32, i64> = BTreeMap::new();
        for label in in_order {
            let succeeded = succeeded_by.get(&label).into_iter().flatten().copied();
            // Of equals the one that the tables have, or the older one.
            let best = succeeded.max_by_key(|id| (overlaps[id][&label], *id > 0, Reverse(id.unsigned_abs())));
            let id = best.unwrap_or_else(|| {
                self.given += 1;
                -self.given
            });
            id_of.insert(label, id);
            if !had_documents.contains(&label) {
                let size = sizes[&label];
                changes.push(ClusterChange {
                    event: "birth",
                    cluster: id,
                    into: None,
                    before: 0,
                    after: size,
                    documents: size,
                });
            }
        }
        for (id, of) in &overlaps {
            let before = self.by_id.get(id).map_or(0, |named| named.docs);
            if of.is_empty() {
                changes.push(ClusterChange {
                    event: "death",
                    cluster: *id,
                    into: None,
                    before,
                    after: 0,
                    documents: before,
                });
            }
            for (label, shared) in of {
                let (now, after) = (id_of[label], sizes[label]);
                let (event, into, documents) = if now != *id {
                    (if successor_of[id] == *label { "merge" } else { "split" }, Some(now), *shared)
                } else if before < after {
                    ("grow", None, after - before)
                } else if before > after {
                    ("shrink", None, before - after)
                } else {
                    continue;
                };
                changes.push(ClusterChange { event, cluster: *id, into, before, after, documents });
            }
        }

        // Take down.
        for id in &ids {
            self.by_id.remove(id);
        }
        for (label, id) in &id_of {
            self.by_id.insert(*id, Named { sets: sets.class(*label), docs: sizes[label] });
        }
        for set in seen {
            let id = id_of.get(&sets.label(set)).copied().unwrap_or(NO_ID);
            sets.set_mut(set).end_batch(id);
        }
        changes.sort_by_key(|change| (change.cluster, change.event, change.into));
        changes
    }

    /// Adds an id, and the sets that had it.
    fn add_id(&self, sets: &Sets, id: i64, ids: &mut BTreeSet<i64>, open: &mut Vec<u32>) {
        if id != NO_ID && ids.insert(id) {
            let had = self.sets(id).unwrap_or_default().iter();
            open.extend(had.filter(|had| sets.is_there(**had) && sets.set(**had).id == id));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn renames_are_done_one_by_one() {
        let clusters = Clusters { given: 4, ..Clusters::default() };
        let rename = |(cluster, into): (i64, i64)| ClusterChange {
            event: "rename",
            cluster,
            into: Some(into),
            before: 2,
            after: 2,
            documents: 2,
        };
        let ordered = |pairs: &[(i64, i64)]| -> Vec<(i64, i64)> {
            let changes = clusters.one_by_one(pairs.iter().copied().map(rename).collect());
            changes.into_iter().map(|change| (change.cluster, change.into.unwrap())).collect()
        };
        assert_eq!(ordered(&[]), []);
        // Chains, from either end.
        assert_eq!(ordered(&[(1, 2), (2, 3), (-1, 1)]), [(2, 3), (1, 2), (-1, 1)]);
        assert_eq!(ordered(&[(3, 2), (2, 1)]), [(2, 1), (3, 2)]);
        // Exchanges, of two and of three.
        assert_eq!(ordered(&[(1, 2), (2, 1)]), [(1, -5), (2, 1), (-5, 2)]);
        assert_eq!(
            ordered(&[(1, 2), (2, 3), (3, 1), (7, 8), (8, 7)]),
            [(1, -5), (3, 1), (2, 3), (-5, 2), (7, -5), (8, 7), (-5, 8)]
        );
    }
}
