//! Sets of members: each member, a node or a page, is in one set, and sets of one label are one
//! cluster.
//!
//! A member has a weight, the number of its documents. The documents of a set that stayed in a
//! batch were in one cluster before it: so the ids of clusters are found set by set.

use std::collections::{BTreeMap, BTreeSet};

use super::tables::lists::ShortLists;
use crate::structures::ByKey;

/// The set of a member that is not there.
pub(super) const NONE: u32 = u32::MAX;
/// The id of a cluster of one document.
pub(super) const NO_ID: i64 = i64::MIN;
/// The smallest document of a set, if that is not known.
const UNKNOWN: u32 = u32::MAX - 1;

/// Members that are in one cluster.
#[derive(Clone, Copy, Debug)]
pub(super) struct Set {
    /// The id of the cluster to which it belonged after the batch before.
    pub(super) id: i64,
    /// Documents of the members.
    docs: u32,
    /// Those of them that came with the last batch.
    entered: u32,
    /// The smallest document, [`NONE`] if there is none, or [`UNKNOWN`].
    first: u32,
}

impl Default for Set {
    fn default() -> Set {
        Set { id: NO_ID, docs: 0, entered: 0, first: NONE }
    }
}

impl Set {
    /// Documents of the members.
    pub(super) fn docs(&self) -> u64 {
        self.docs.into()
    }

    /// The documents that were there before the last batch.
    pub(super) fn stayed(&self) -> u64 {
        (self.docs - self.entered).into()
    }

    /// Ends a batch, after which it belongs to this cluster.
    pub(super) fn end_batch(&mut self, id: i64) {
        (self.id, self.entered) = (id, 0);
    }

    /// The smallest document, [`NONE`] if there is none; if that is known.
    pub(super) fn first(&self) -> Option<u32> {
        (self.first != UNKNOWN).then_some(self.first)
    }
}

/// The sets of all members, and their labels.
#[derive(Default)]
pub(super) struct Sets {
    /// The set of each member, its place there, and the documents of the member.
    of: Vec<u32>,
    place: Vec<u32>,
    weight: Vec<u32>,
    all: Vec<Set>,
    members: ShortLists,
    free: Vec<u32>,
    /// Freed since the last batch: the labels, and the clusters before it, still have these.
    freed: Vec<u32>,
    /// The labels of sets that may share one; the label of any other one is the set itself.
    labels: ByKey<u64, u32>,
    /// The sets of each label.
    classes: BTreeMap<u32, BTreeSet<u32>>,
    /// Sets of which anything changed in the last batch.
    changed: BTreeSet<u32>,
}

impl Sets {
    /// The set of a member that is there.
    pub(super) fn of(&self, member: u32) -> u32 {
        self.of[member as usize]
    }

    /// Whether a member is there.
    pub(super) fn has(&self, member: u32) -> bool {
        self.of(member) != NONE
    }

    pub(super) fn set(&self, set: u32) -> &Set {
        &self.all[set as usize]
    }

    pub(super) fn set_mut(&mut self, set: u32) -> &mut Set {
        &mut self.all[set as usize]
    }

    /// The members of a set.
    pub(super) fn members(&self, set: u32) -> &[u32] {
        self.members.get(set)
    }

    /// The label of a set: sets of one cluster have the same.
    pub(super) fn label(&self, set: u32) -> u32 {
        self.labels.get(&u64::from(set)).copied().unwrap_or(set)
    }

    /// The label of the set of a member.
    pub(super) fn label_of(&self, member: u32) -> u32 {
        self.label(self.of(member))
    }

    /// The sets of a label, ascending.
    pub(super) fn class(&self, label: u32) -> Vec<u32> {
        self.classes.get(&label).map_or_else(|| vec![label], |class| class.iter().copied().collect())
    }

    /// The labels of several sets.
    pub(super) fn joined(&self) -> Vec<u32> {
        self.classes.iter().filter(|(_, class)| class.len() > 1).map(|(label, _)| *label).collect()
    }

    /// Documents of the sets of a label.
    pub(super) fn docs_of(&self, label: u32) -> u64 {
        self.class(label).iter().map(|set| self.set(*set).docs()).sum()
    }

    /// Documents of a member.
    pub(super) fn weight(&self, member: u32) -> u32 {
        self.weight[member as usize]
    }

    /// The smallest document of a set; `of_member` is that of a member. [`NONE`] if there is none.
    pub(super) fn first_of(&mut self, set: u32, of_member: impl Fn(u32) -> Option<u32>) -> u32 {
        let found = || self.members(set).iter().filter_map(|member| of_member(*member)).min();
        let first = self.set(set).first().unwrap_or_else(|| found().unwrap_or(NONE));
        self.set_mut(set).first = first;
        first
    }

    /// Takes the sets that changed in the last batch and are still there.
    pub(super) fn take_changed(&mut self) -> BTreeSet<u32> {
        let mut changed = std::mem::take(&mut self.changed);
        changed.retain(|set| self.is_there(*set));
        changed
    }

    /// Whether a set has members.
    pub(super) fn is_there(&self, set: u32) -> bool {
        !self.members(set).is_empty()
    }

    /// Counts a document that comes to a member, which is in a set.
    pub(super) fn enter(&mut self, member: u32, doc: u32) {
        self.weight[member as usize] += 1;
        let of = self.of(member);
        let set = self.set_mut(of);
        (set.docs, set.entered) = (set.docs + 1, set.entered + 1);
        if set.first != UNKNOWN {
            set.first = set.first.min(doc);
        }
        self.changed.insert(of);
    }

    /// Counts a document that goes from a member.
    pub(super) fn leave(&mut self, member: u32, doc: u32) {
        self.weight[member as usize] -= 1;
        let of = self.of(member);
        let set = self.set_mut(of);
        set.docs -= 1;
        if set.first == doc {
            set.first = UNKNOWN;
        }
        self.changed.insert(of);
    }

    /// Makes sets of members that are there from the beginning. `roots` has for each member another
    /// one of its set, itself for one, and `docs` the number of its documents.
    pub(super) fn load(&mut self, roots: &[u32], docs: impl Fn(u32) -> u32) {
        let mut of_root = vec![NONE; roots.len()];
        self.of.reserve(roots.len());
        self.place.reserve(roots.len());
        self.weight.reserve(roots.len());
        for (member, root) in (0..).zip(roots) {
            let set = match of_root[*root as usize] {
                NONE => self.add(),
                set => set,
            };
            of_root[*root as usize] = set;
            self.grow(member);
            self.weight[member as usize] = docs(member);
            self.put(member, set);
        }
    }

    /// Changes the label of a set: a difference below 0 takes it away. Returns how many sets have
    /// the label now.
    pub(super) fn change_label(&mut self, set: u32, label: u32, difference: i32) -> usize {
        self.changed.insert(set);
        if difference > 0 {
            self.labels.insert(u64::from(set), label);
            let class = self.classes.entry(label).or_default();
            class.insert(set);
            return class.len();
        }
        // The new label may have come before: only the old one is taken away.
        if self.labels.get(&u64::from(set)) == Some(&label) {
            self.labels.remove(&u64::from(set));
        }
        let Some(class) = self.classes.get_mut(&label) else { return 0 };
        class.remove(&set);
        let left = class.len();
        if left == 0 {
            self.classes.remove(&label);
        }
        left
    }

    /// Sets that were freed may be used again.
    pub(super) fn reuse_freed(&mut self) {
        self.free.append(&mut self.freed);
    }

    /// Makes the members of a set members of another one.
    pub(super) fn merge(&mut self, from: u32, to: u32) {
        let Set { docs, entered, id, first } = std::mem::take(self.set_mut(from));
        self.freed.push(from);
        for member in self.members.take(from) {
            (self.of[member as usize], self.place[member as usize]) = (to, self.members.push(to, member));
        }
        let set = self.set_mut(to);
        set.docs += docs;
        set.entered += entered;
        set.first = if [set.first, first].contains(&UNKNOWN) { UNKNOWN } else { set.first.min(first) };
        if set.id == NO_ID {
            set.id = id;
        }
        self.changed.insert(to);
    }

    /// A set without members.
    pub(super) fn make(&mut self) -> u32 {
        let set = self.free.pop().unwrap_or_else(|| self.add());
        self.changed.insert(set);
        set
    }

    fn add(&mut self) -> u32 {
        self.all.push(Set::default());
        self.members.grow(self.all.len());
        self.all.len() as u32 - 1
    }

    /// Makes room for a member.
    pub(super) fn grow(&mut self, member: u32) {
        let count = member as usize + 1;
        if self.of.len() < count {
            self.of.resize(count, NONE);
            self.place.resize(count, 0);
            self.weight.resize(count, 0);
        }
    }

    pub(super) fn put(&mut self, member: u32, set: u32) {
        let weight = self.weight[member as usize];
        let to = self.set_mut(set);
        to.docs += weight;
        if weight > 0 {
            to.first = UNKNOWN;
        }
        (self.of[member as usize], self.place[member as usize]) = (set, self.members.push(set, member));
    }

    pub(super) fn take(&mut self, member: u32) {
        let (of, place) = (self.of(member), self.place[member as usize]);
        let weight = self.weight[member as usize];
        let set = self.set_mut(of);
        set.docs -= weight;
        if weight > 0 {
            set.first = UNKNOWN;
        }
        if let Some(moved) = self.members.swap_remove(of, place) {
            self.place[moved as usize] = place;
        }
        if !self.is_there(of) {
            *self.set_mut(of) = Set::default();
            self.freed.push(of);
        }
        self.of[member as usize] = NONE;
        self.changed.insert(of);
    }
}
