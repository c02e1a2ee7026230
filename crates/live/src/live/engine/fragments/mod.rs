//! Fragments: sets of nodes that are known to be connected, and the labels of the graph that they
//! make.
//!
//! Labels of single nodes cost what a cluster has of them: a document that joins two clusters of
//! 100,000 would change 100,000 labels, and a chain of as many would take as many rounds. So the
//! graph of differential dataflow has fragments as its nodes, as that of a weekly delta has one
//! node for each cluster that stays whole:
//!
//! ```text
//! the clusters of a store            one fragment each
//! new nodes of a batch               one fragment for those that share keys with each other; if that shares keys with one other
//!                                    fragment only, it becomes a part of it
//! edges between two fragments        an edge of the graph: this is what joins clusters, and what goes with its documents
//! an edge goes inside of a fragment  its ends search for each other there, all at once; those whose search ends without the others
//!                                    have found all of a part, which becomes a fragment
//! many fragments of one cluster      become one fragment before the next batch
//! ```
//!
//! So a merge costs an edge, a split costs the smaller part, and the graph stays small. A node is
//! always connected to the others of its fragment by edges inside of it.

pub(super) mod labels;

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use anyhow::Result;

use self::labels::{Difference, LabelWorkers};
use crate::live::engine::keys::EdgeChange;
use crate::live::engine::parts::SharedKeys;
use crate::live::engine::sets::Sets;
use crate::structures::ByKey;

/// A cluster of more fragments is made one fragment. Tests have small clusters.
const MOST_FRAGMENTS: usize = if cfg!(test) { 3 } else { 32 };

/// The fragments of all nodes.
pub(super) struct Fragments {
    /// A fragment is a set of nodes.
    pub(super) sets: Sets,
    /// The number of edges between each two fragments, in both orders.
    between: BTreeMap<(u32, u32), u32>,
    differences: Vec<Difference>,
    /// Labels that had many fragments after the last batch.
    crowded: BTreeSet<u32>,
    workers: LabelWorkers,
}

impl Fragments {
    pub(super) fn new(workers: LabelWorkers) -> Fragments {
        Fragments {
            sets: Sets::default(),
            between: BTreeMap::new(),
            differences: Vec::new(),
            crowded: BTreeSet::new(),
            workers,
        }
    }

    /// Makes one fragment of each cluster that has many: before a batch, so that all of them had
    /// the same id.
    pub(super) fn contract(&mut self) {
        for label in std::mem::take(&mut self.crowded) {
            let class = self.sets.class(label);
            if class.len() <= MOST_FRAGMENTS {
                continue;
            }
            let size = |fragment: &u32| self.sets.members(*fragment).len();
            let Some(largest) = class.iter().copied().max_by_key(size) else { continue };
            for fragment in class.into_iter().filter(|fragment| *fragment != largest) {
                self.merge(fragment, largest);
            }
        }
    }

    /// Brings fragments and labels up to date. `added` and `removed` are the nodes that come and
    /// go, `edges` their edges, of which `keys` has those that are there now.
    ///
    /// # Errors
    /// If a worker has ended, or a process that has a part of the keys.
    pub(super) fn update(
        &mut self,
        keys: &mut SharedKeys,
        (added, removed): (&[u32], &[u32]),
        edges: Vec<EdgeChange>,
    ) -> Result<()> {
        let mut fresh = BTreeSet::new();
        for node in added {
            self.sets.grow(*node);
            let fragment = self.sets.make();
            self.sets.put(*node, fragment);
            fresh.insert(fragment);
        }
        let mut ends: BTreeMap<u32, Vec<u32>> = BTreeMap::new();
        for EdgeChange { a, b, difference } in net(edges) {
            let (of_a, of_b) = (self.sets.of(a), self.sets.of(b));
            if of_a != of_b {
                self.change_between(of_a, of_b, difference);
            } else if difference < 0 {
                ends.entry(of_a).or_default().extend([a, b]);
            }
        }
        for node in removed {
            self.sets.take(*node);
        }
        for (fragment, mut ends) in ends {
            ends.retain(|node| self.sets.of(*node) == fragment);
            ends.sort_unstable();
            ends.dedup();
            self.split(keys, fragment, ends)?;
        }
        self.join_fresh(fresh);
        self.relabel()
    }

    /// Splits off the parts of a fragment that are not connected any more. `ends` are the ends of
    /// the edges that went, as far as these are still nodes of the fragment: each part has one of
    /// them.
    fn split(&mut self, keys: &mut SharedKeys, fragment: u32, ends: Vec<u32>) -> Result<()> {
        let mut search = Search::new(ends);
        while search.is_open() {
            search.round(|nodes| {
                let mut found = keys.neighbours(nodes)?;
                found.iter_mut().for_each(|ends| ends.retain(|end| self.sets.of(*end) == fragment));
                Ok(found)
            })?;
        }
        for part in search.ended {
            let new = self.sets.make();
            self.sets.set_mut(new).id = self.sets.set(fragment).id;
            let ends_of_part = keys.neighbours(&part)?;
            for (node, ends) in part.into_iter().zip(ends_of_part) {
                // No edge leads from one part to another.
                self.sets.take(node);
                self.sets.put(node, new);
                for of in ends {
                    let of = self.sets.of(of);
                    if of == fragment || of == new {
                        continue;
                    }
                    self.change_between(fragment, of, -1);
                    self.change_between(new, of, 1);
                }
            }
        }
        Ok(())
    }

    /// Makes one fragment of new ones that share edges, and makes it a part of another one if it
    /// shares edges with that one only.
    fn join_fresh(&mut self, mut fresh: BTreeSet<u32>) {
        for fragment in fresh.clone() {
            if !fresh.contains(&fragment) {
                continue;
            }
            loop {
                let other = self.beside(fragment).find(|other| *other != fragment && fresh.contains(other));
                let Some(other) = other else { break };
                self.merge(other, fragment);
                fresh.remove(&other);
            }
        }
        for fragment in fresh {
            let beside: Vec<u32> = self.beside(fragment).take(2).collect();
            if let [only] = beside[..] {
                let is_larger = self.sets.members(fragment).len() > self.sets.members(only).len();
                let (from, to) = if is_larger { (only, fragment) } else { (fragment, only) };
                self.merge(from, to);
            }
        }
    }

    /// Sends the edges that changed to the workers, and takes the labels.
    fn relabel(&mut self) -> Result<()> {
        let differences = std::mem::take(&mut self.differences);
        for ((fragment, label), difference) in self.workers.step(&differences)? {
            let (fragment, label) = (fragment as u32, label as u32);
            if self.sets.change_label(fragment, label, difference) > MOST_FRAGMENTS {
                self.crowded.insert(label);
            }
        }
        self.sets.reuse_freed();
        Ok(())
    }

    /// The fragments that share edges with one.
    fn beside(&self, fragment: u32) -> impl Iterator<Item = u32> {
        self.between.range((fragment, 0)..=(fragment, u32::MAX)).map(|((_, other), _)| *other)
    }

    /// Changes the number of edges between two fragments.
    fn change_between(&mut self, a: u32, b: u32, difference: i32) {
        let mut now = 0;
        for pair in [(a, b), (b, a)] {
            let count = self.between.entry(pair).or_default();
            *count = count.checked_add_signed(difference).expect("an edge goes once only");
            now = *count;
            if now == 0 {
                self.between.remove(&pair);
            }
        }
        let edge = (u64::from(a.min(b)), u64::from(a.max(b)));
        match (i64::from(now) - i64::from(difference), now) {
            (0, 1..) => self.differences.push((edge, 1)),
            (1.., 0) => self.differences.push((edge, -1)),
            _ => {}
        }
    }

    /// Makes the nodes of a fragment nodes of another one.
    fn merge(&mut self, from: u32, to: u32) {
        for (other, count) in self
            .between
            .range((from, 0)..=(from, u32::MAX))
            .map(|((_, other), count)| (*other, *count as i32))
            .collect::<Vec<_>>()
        {
            self.change_between(from, other, -count);
            if other != to {
                self.change_between(to, other, count);
            }
        }
        self.sets.merge(from, to);
    }
}

/// The sum of the changes of each edge, without those that cancel; in order.
fn net(mut edges: Vec<EdgeChange>) -> Vec<EdgeChange> {
    edges.iter_mut().filter(|edge| edge.a > edge.b).for_each(|edge| std::mem::swap(&mut edge.a, &mut edge.b));
    edges.sort_unstable();
    let sums = edges.chunk_by(|one, other| (one.a, one.b) == (other.a, other.b));
    let sums = sums.map(|same| EdgeChange { difference: same.iter().map(|edge| edge.difference).sum(), ..same[0] });
    sums.filter(|edge| edge.difference != 0).collect()
}

/// A search from several nodes at once, until all have met, or all others have ended.
struct Search {
    /// The group of each node that was found.
    found: ByKey<u64, usize>,
    /// A group that a group was made a part of; itself for one that is open or has ended.
    part_of: Vec<usize>,
    /// The nodes of each group whose edges were not followed, and all of its nodes.
    queues: Vec<VecDeque<u32>>,
    nodes: Vec<Vec<u32>>,
    /// The groups that search, with some that are parts of others or have ended; and how many
    /// search.
    open: Vec<usize>,
    searching: usize,
    /// The nodes of those that ended: whole parts.
    ended: Vec<Vec<u32>>,
}

impl Search {
    fn new(ends: Vec<u32>) -> Search {
        Search {
            found: ends.iter().map(|node| u64::from(*node)).zip(0..).collect(),
            part_of: (0..ends.len()).collect(),
            queues: ends.iter().map(|node| VecDeque::from([*node])).collect(),
            nodes: ends.iter().map(|node| vec![*node]).collect(),
            open: (0..ends.len()).collect(),
            searching: ends.len(),
            ended: Vec::new(),
        }
    }

    /// Whether two groups search: of a last one it does not matter how large it is.
    fn is_open(&self) -> bool {
        self.searching > 1
    }

    /// Follows the edges of one node of each group. `neighbours` returns the other ends of the
    /// edges of some nodes.
    fn round(&mut self, neighbours: impl FnOnce(&[u32]) -> Result<Vec<Vec<u32>>>) -> Result<()> {
        let (mut open, mut nodes) = (std::mem::take(&mut self.open), Vec::new());
        open.retain(|group| {
            if !self.is_open() || self.part_of[*group] != *group {
                return false;
            }
            let Some(node) = self.queues[*group].pop_front() else {
                self.searching -= 1;
                self.ended.push(std::mem::take(&mut self.nodes[*group]));
                return false;
            };
            nodes.push(node);
            true
        });
        if self.is_open() {
            for (group, ends) in open.iter().zip(neighbours(&nodes)?) {
                ends.into_iter().for_each(|end| self.meet(*group, end));
            }
        }
        self.open = open;
        Ok(())
    }

    /// An edge leads from a group to a node. The group keeps the nodes of any other group that has
    /// that node.
    fn meet(&mut self, group: usize, node: u32) {
        let group = self.root(group);
        match self.found.get(&u64::from(node)).map(|other| self.root(*other)) {
            None => {
                self.found.insert(u64::from(node), group);
                self.queues[group].push_back(node);
                self.nodes[group].push(node);
            }
            Some(other) if other == group => {}
            Some(other) => {
                let (small, large) =
                    if self.nodes[other].len() > self.nodes[group].len() { (group, other) } else { (other, group) };
                self.part_of[small] = large;
                self.searching -= 1;
                let (queue, nodes) = (std::mem::take(&mut self.queues[small]), std::mem::take(&mut self.nodes[small]));
                self.queues[large].extend(queue);
                self.nodes[large].extend(nodes);
            }
        }
    }

    fn root(&self, mut group: usize) -> usize {
        while self.part_of[group] != group {
            group = self.part_of[group];
        }
        group
    }
}
