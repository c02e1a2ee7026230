//! The documents of each key, and the edges between documents that share one.
//!
//! A *node* is a vector of supershingles that a document has; virtually identical documents are one
//! node. A *key* is a choice of supershingles with their values (a megashingle). The nodes of a key
//! are a heap in an array: each has an edge to the node at its parent's place. So a key of n nodes
//! has n - 1 edges and paths of log n, a node has few edges for a key, and a node that comes or
//! goes changes few edges, however many nodes the key has.
//!
//! Keys are compared by the supershingles themselves, not by a hash of them. Memory: about six
//! bytes for each key of a node that no other node has, and 4 to 30 bytes for each other one.
//!
//! Several processes share the keys by hash ([`super::parts`]): each has the keys of one
//! [`KeyShare`]. What becomes of a key depends on its own nodes only, so that its edges are the
//! same in any part.

use serde::{Deserialize, Serialize};

use super::tables::id_table::IdTable;
use crate::records::mix;
use crate::structures::ByKey;

/// The most children of a place in a heap.
const CHILDREN: usize = 8;
/// Above this many nodes a key has a map of their places.
const SEARCHED: usize = 32;
/// A number in a table is that of a node, or with this bit that of a key's nodes.
const GROUP: u32 = 1 << 31;
/// No node has this number or a larger one.
pub(super) const MOST_NODES: u32 = GROUP - 1;

/// An edge between two nodes that comes (1) or goes (-1).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub(super) struct EdgeChange {
    pub(super) a: u32,
    pub(super) b: u32,
    pub(super) difference: i32,
}

/// One of `count` parts of the keys, from number 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct KeyShare {
    pub(super) number: u32,
    pub(super) count: u32,
}

impl KeyShare {
    /// All keys.
    #[cfg(test)]
    pub(super) const WHOLE: KeyShare = KeyShare { number: 0, count: 1 };

    fn has(self, hash: u64) -> bool {
        self.number == KeyShare::of(hash, self.count)
    }

    /// The part of a key with this hash. It is of the higher half: tables take the lower one.
    fn of(hash: u64, count: u32) -> u32 {
        (((hash >> 32) * u64::from(count)) >> 32) as u32
    }
}

/// Lists of nodes, one after the other.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct NodeLists {
    /// The number of nodes of each list.
    pub(super) lengths: Vec<u32>,
    pub(super) nodes: Vec<u32>,
}

/// The nodes of each key of a part.
pub(super) struct KeyPart {
    part: KeyShare,
    /// Supershingles of a node.
    width: usize,
    /// The supershingles of each key of a node.
    choices: Vec<Vec<usize>>,
    /// By node.
    vectors: Vec<u64>,
    /// By choice.
    tables: Vec<IdTable>,
    groups: Vec<KeyNodes>,
    free: Vec<u32>,
}

/// The nodes of one key, two or more.
#[derive(Default)]
struct KeyNodes {
    /// A heap: the parent of place `i` is `(i - 1) / CHILDREN`.
    nodes: Vec<u32>,
    /// The place of each node, if there are many.
    places: Option<ByKey<u64, u32>>,
}

impl KeyPart {
    /// A part of the keys of vectors of `width` supershingles, of which `agreements` must agree.
    pub(super) fn new(part: KeyShare, width: usize, agreements: usize) -> KeyPart {
        let mut choices = Vec::new();
        choose(width, agreements, &mut Vec::new(), &mut choices);
        let tables = choices.iter().map(|_| IdTable::default()).collect();
        KeyPart { part, width, choices, vectors: Vec::new(), tables, groups: Vec::new(), free: Vec::new() }
    }

    /// Supershingles of a node.
    pub(super) fn width(&self) -> usize {
        self.width
    }

    /// How many keys a node has in all parts.
    pub(super) fn keys_of_node(&self) -> usize {
        self.choices.len()
    }

    /// The part of each key of a node, in the order of choices.
    pub(super) fn parts_of(&self, node: u32) -> impl Iterator<Item = u32> {
        (0..self.choices.len()).map(move |choice| KeyShare::of(self.hash(choice, self.vector(node)), self.part.count))
    }

    /// The supershingles of a node.
    pub(super) fn vector(&self, node: u32) -> &[u64] {
        &self.vectors[node as usize * self.width..][..self.width]
    }

    /// Notes the supershingles of a node, which has no keys yet.
    pub(super) fn set_vector(&mut self, node: u32, vector: &[u64]) {
        let end = (node as usize + 1) * self.width;
        if self.vectors.len() < end {
            self.vectors.resize(end, 0);
        }
        self.vectors[end - self.width..end].copy_from_slice(vector);
    }

    /// Adds a node to its keys. `each` is called with the edges that come.
    pub(super) fn insert(&mut self, node: u32, each: &mut impl FnMut(EdgeChange)) {
        for choice in 0..self.choices.len() {
            let hash = self.hash(choice, self.vector(node));
            if !self.part.has(hash) {
                continue;
            }
            match self.stored(choice, hash, self.vector(node)) {
                None => {
                    let KeyPart { tables, groups, vectors, choices, width, .. } = self;
                    let chosen = &choices[choice];
                    let hash_of = |stored| hash_of(choice, chosen, vector_of(vectors, *width, groups, stored));
                    tables[choice].insert(hash, node, hash_of);
                }
                Some(first) if first & GROUP == 0 => {
                    let group = self.free.pop().unwrap_or(self.groups.len() as u32);
                    if group as usize == self.groups.len() {
                        self.groups.push(KeyNodes::default());
                    }
                    self.groups[group as usize].nodes.extend([first, node]);
                    self.tables[choice].replace(hash, first, GROUP | group);
                    each(EdgeChange { a: node, b: first, difference: 1 });
                }
                Some(group) => {
                    let parent = self.groups[(group & !GROUP) as usize].push(node);
                    each(EdgeChange { a: node, b: parent, difference: 1 });
                }
            }
        }
    }

    /// Takes a node out of its keys. `each` is called with the edges that go and come.
    pub(super) fn remove(&mut self, node: u32, each: &mut impl FnMut(EdgeChange)) {
        for choice in 0..self.choices.len() {
            let hash = self.hash(choice, self.vector(node));
            if !self.part.has(hash) {
                continue;
            }
            let stored = self.stored(choice, hash, self.vector(node)).expect("the node was inserted");
            if stored & GROUP == 0 {
                let KeyPart { tables, groups, vectors, choices, width, .. } = self;
                let chosen = &choices[choice];
                let hash_of = |stored| hash_of(choice, chosen, vector_of(vectors, *width, groups, stored));
                tables[choice].remove(hash, node, hash_of);
                continue;
            }
            let group = &mut self.groups[(stored & !GROUP) as usize];
            group.remove(node, each);
            if let [last] = group.nodes[..] {
                self.tables[choice].replace(hash, stored, last);
                *group = KeyNodes::default();
                self.free.push(stored & !GROUP);
            }
        }
    }

    /// Adds the other ends of the edges of a node, a list for each of its keys in the part, in the
    /// order of choices.
    pub(super) fn neighbours(&self, node: u32, found: &mut NodeLists) {
        for choice in 0..self.choices.len() {
            let hash = self.hash(choice, self.vector(node));
            if !self.part.has(hash) {
                continue;
            }
            let before = found.nodes.len();
            if let Some(stored) = self.stored(choice, hash, self.vector(node)).filter(|stored| stored & GROUP != 0) {
                let group = &self.groups[(stored & !GROUP) as usize];
                let (nodes, place) = (&group.nodes, group.place(node));
                found.nodes.extend((place > 0).then(|| nodes[parent(place)]));
                found.nodes.extend(children(place, nodes.len()).map(|child| nodes[child]));
            }
            found.lengths.push((found.nodes.len() - before) as u32);
        }
    }

    /// Adds a list of the nodes that share a key of the part with a vector: at most `most` of each
    /// key.
    pub(super) fn sharing(&self, vector: &[u64], most: usize, found: &mut NodeLists) {
        let before = found.nodes.len();
        for choice in 0..self.choices.len() {
            // The tables have no key of another part.
            match self.stored(choice, self.hash(choice, vector), vector) {
                None => {}
                Some(node) if node & GROUP == 0 => found.nodes.push(node),
                Some(group) => {
                    let nodes = &self.groups[(group & !GROUP) as usize].nodes;
                    found.nodes.extend(&nodes[..most.min(nodes.len())]);
                }
            }
        }
        found.lengths.push((found.nodes.len() - before) as u32);
    }

    fn hash(&self, choice: usize, vector: &[u64]) -> u64 {
        hash_of(choice, &self.choices[choice], vector)
    }

    /// What the table of a choice has of the key of a vector.
    fn stored(&self, choice: usize, hash: u64, vector: &[u64]) -> Option<u32> {
        let chosen = &self.choices[choice];
        self.tables[choice].find(hash, |stored| {
            let other = vector_of(&self.vectors, self.width, &self.groups, stored);
            chosen.iter().all(|supershingle| other[*supershingle] == vector[*supershingle])
        })
    }
}

impl KeyNodes {
    fn place(&self, node: u32) -> usize {
        match &self.places {
            Some(places) => places.get(&u64::from(node)).map(|place| *place as usize),
            None => self.nodes.iter().position(|other| *other == node),
        }
        .expect("the node has the key")
    }

    /// Adds a node, and returns its parent.
    fn push(&mut self, node: u32) -> u32 {
        let place = self.nodes.len();
        self.nodes.push(node);
        match &mut self.places {
            Some(places) => _ = places.insert(u64::from(node), place as u32),
            None if place >= SEARCHED => {
                self.places = Some(self.nodes.iter().map(|node| u64::from(*node)).zip(0..).collect());
            }
            None => {}
        }
        self.nodes[parent(place)]
    }

    /// Takes a node out: the last one takes its place.
    fn remove(&mut self, node: u32, each: &mut impl FnMut(EdgeChange)) {
        let (place, last) = (self.place(node), self.nodes.len() - 1);
        let moved = self.nodes[last];
        if last > 0 {
            each(EdgeChange { a: moved, b: self.nodes[parent(last)], difference: -1 });
        }
        if place != last {
            let ends = (place > 0).then(|| parent(place)).into_iter().chain(children(place, last));
            for end in ends.map(|end| self.nodes[end]) {
                each(EdgeChange { a: node, b: end, difference: -1 });
                each(EdgeChange { a: moved, b: end, difference: 1 });
            }
            self.nodes[place] = moved;
        }
        self.nodes.pop();
        if let Some(places) = &mut self.places {
            places.insert(u64::from(moved), place as u32);
            places.remove(&u64::from(node));
        }
    }
}

/// The supershingles of the node, or of the first one of the nodes, that a table has stored.
fn vector_of<'a>(vectors: &'a [u64], width: usize, groups: &[KeyNodes], stored: u32) -> &'a [u64] {
    let node = if stored & GROUP == 0 { stored } else { groups[(stored & !GROUP) as usize].nodes[0] };
    &vectors[node as usize * width..][..width]
}

fn hash_of(choice: usize, chosen: &[usize], vector: &[u64]) -> u64 {
    chosen.iter().fold(mix(choice as u64), |hash, supershingle| mix(hash ^ vector[*supershingle]))
}

fn parent(place: usize) -> usize {
    (place - 1) / CHILDREN
}

/// The places below a place, of `count` places.
fn children(place: usize, count: usize) -> std::ops::Range<usize> {
    let first = CHILDREN * place + 1;
    first.min(count)..(first + CHILDREN).min(count)
}

/// Lists the ways to choose `left` more of the numbers below `n`, after those that are chosen.
fn choose(n: usize, left: usize, chosen: &mut Vec<usize>, all: &mut Vec<Vec<usize>>) {
    if left == 0 {
        return all.push(chosen.clone());
    }
    for next in chosen.last().map_or(0, |last| last + 1)..=n - left {
        chosen.push(next);
        choose(n, left - 1, chosen, all);
        chosen.pop();
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    /// Adds changes of edges to the number of each edge, and drops those that are gone.
    fn count(edges: &mut BTreeMap<(u32, u32), i32>, change: EdgeChange) {
        let edge = (change.a.min(change.b), change.a.max(change.b));
        let count = edges.entry(edge).or_default();
        *count += change.difference;
        assert!(*count >= 0 && edge.0 < edge.1, "{change:?}");
        if *count == 0 {
            edges.remove(&edge);
        }
    }

    /// The smallest node that each node is connected to.
    fn components(nodes: &[u32], edges: impl Iterator<Item = (u32, u32)> + Clone) -> BTreeMap<u32, u32> {
        let mut labels: BTreeMap<u32, u32> = nodes.iter().map(|node| (*node, *node)).collect();
        loop {
            let before = labels.clone();
            for (a, b) in edges.clone() {
                let smallest = labels[&a].min(labels[&b]);
                labels.extend([(a, smallest), (b, smallest)]);
            }
            if labels == before {
                return labels;
            }
        }
    }

    #[test]
    fn edges_connect_what_shares_a_key_whatever_comes_and_goes() {
        // Few values, so that keys are shared; and one key of hundreds of nodes.
        for (values, seed) in [(4, 1u64), (40, 2), (1, 3)] {
            let (mut keys, mut edges, mut there) =
                (KeyPart::new(KeyShare::WHOLE, 6, 2), BTreeMap::new(), BTreeMap::new());
            for step in 0..600u64 {
                let random = |salt: u64| mix(seed << 50 ^ step << 20 ^ salt);
                let node = (random(0) % 150) as u32;
                if there.remove(&node).is_some() {
                    keys.remove(node, &mut |change| count(&mut edges, change));
                } else {
                    let own = |i: u64| if values == 1 && i > 1 { random(i) } else { random(i) % values };
                    let vector: Vec<u64> = (0..6).map(own).collect();
                    keys.set_vector(node, &vector);
                    keys.insert(node, &mut |change| count(&mut edges, change));
                    there.insert(node, vector);
                }
                if step % 20 > 0 {
                    continue;
                }
                let nodes: Vec<u32> = there.keys().copied().collect();
                let agree = |a: u32, b: u32| there[&a].iter().zip(&there[&b]).filter(|(a, b)| a == b).count() >= 2;
                let pairs = nodes.iter().flat_map(|a| nodes.iter().map(move |b| (*a, *b)));
                let wanted = components(&nodes, pairs.filter(|(a, b)| a < b && agree(*a, *b)));
                assert_eq!(components(&nodes, edges.keys().copied()), wanted, "{values} values, step {step}");
                let mut listed = BTreeMap::new();
                for node in &nodes {
                    let mut found = NodeLists::default();
                    keys.neighbours(*node, &mut found);
                    assert_eq!(found.lengths.len(), keys.keys_of_node());
                    let ends = found.nodes.into_iter();
                    ends.for_each(|b| count(&mut listed, EdgeChange { a: *node, b, difference: 1 }));
                }
                assert_eq!(listed, edges.iter().map(|(edge, count)| (*edge, 2 * count)).collect());
            }
        }
    }

    #[test]
    fn a_key_of_many_nodes_changes_few_edges() {
        let mut keys = KeyPart::new(KeyShare::WHOLE, 6, 2);
        let mut most = 0;
        for node in 0..5000u32 {
            keys.set_vector(node, &[1, 2, 3 + 4 * u64::from(node), 4, mix(u64::from(node)), 6]);
            let mut changes = 0;
            keys.insert(node, &mut |_| changes += 1);
            most = most.max(changes);
        }
        for node in 0..5000 {
            let mut changes = 0;
            keys.remove(node, &mut |_| changes += 1);
            most = most.max(changes);
        }
        // Six keys are shared by all: one edge each comes with a node, and at most 2 * 9 + 1 change
        // when one goes.
        assert!(most <= 6 * 19, "{most}");
    }
}
