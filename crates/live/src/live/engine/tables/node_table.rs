//! The documents of each node. A node whose documents have words has a vector; documents without
//! words that have the same checksum are a node without one.

use std::collections::BTreeMap;

use super::doc_table::{DocTable, NONE};
use super::lists::ShortLists;
use crate::live::engine::keys::MOST_NODES;

/// Above this many documents a node has a map of its checksums.
const COUNTED: usize = 32;

/// The documents of all nodes.
#[derive(Default)]
pub(in crate::live::engine) struct NodeTable {
    docs: ShortLists,
    free: Vec<u32>,
    /// The number of documents of a node by checksum, if there are many.
    copies: BTreeMap<u32, BTreeMap<u128, u32>>,
    /// The nodes without words by checksum, and their checksums.
    wordless: BTreeMap<u128, u32>,
    checksums: BTreeMap<u32, u128>,
}

impl NodeTable {
    /// How many nodes there are.
    pub(in crate::live::engine) fn count(&self) -> u64 {
        (self.docs.len() - self.free.len()) as u64
    }

    /// The documents of a node.
    pub(in crate::live::engine) fn docs(&self, node: u32) -> &[u32] {
        self.docs.get(node)
    }

    /// The smallest document of a node.
    pub(in crate::live::engine) fn first(&self, node: u32) -> Option<u32> {
        self.docs(node).iter().copied().min()
    }

    /// How many documents of a node have a checksum.
    pub(in crate::live::engine) fn copies(&self, node: u32, checksum: u128, docs: &DocTable) -> u32 {
        match self.copies.get(&node) {
            Some(copies) => copies.get(&checksum).copied().unwrap_or_default(),
            None => {
                let of = self.docs(node).iter().filter_map(|doc| docs.get(*doc));
                of.filter(|doc| doc.checksum() == checksum).count() as u32
            }
        }
    }

    /// Whether a node has a vector.
    pub(in crate::live::engine) fn has_vector(&self, node: u32) -> bool {
        !self.checksums.contains_key(&node)
    }

    /// The node of documents without words that have this checksum.
    pub(in crate::live::engine) fn without_words(&self, checksum: u128) -> Option<u32> {
        self.wordless.get(&checksum).copied()
    }

    /// A node without documents: with a vector, or without words and with this checksum.
    pub(in crate::live::engine) fn make(&mut self, wordless: Option<u128>) -> u32 {
        let node = self.free.pop().unwrap_or(self.docs.len() as u32);
        assert!(node < MOST_NODES, "two billion vectors");
        self.docs.grow(node as usize + 1);
        if let Some(checksum) = wordless {
            self.wordless.insert(checksum, node);
            self.checksums.insert(node, checksum);
        }
        node
    }

    /// Forgets what is known of a node without documents. [`NodeTable::reuse`] gives its number
    /// again.
    pub(in crate::live::engine) fn forget(&mut self, node: u32) {
        self.copies.remove(&node);
        if let Some(checksum) = self.checksums.remove(&node) {
            self.wordless.remove(&checksum);
        }
    }

    /// Nodes that were forgotten may be made again.
    pub(in crate::live::engine) fn reuse(&mut self, nodes: Vec<u32>) {
        self.free.extend(nodes);
    }

    /// Adds a document to a node.
    pub(in crate::live::engine) fn put(&mut self, docs: &mut DocTable, doc: u32, node: u32) {
        let place = self.docs.push(node, doc);
        let Some(page) = docs.get_mut(doc) else { return };
        (page.node, page.place) = (node, place);
        let checksum = page.checksum();
        if let Some(copies) = self.copies.get_mut(&node) {
            *copies.entry(checksum).or_default() += 1;
        } else if place as usize >= COUNTED {
            let mut copies: BTreeMap<u128, u32> = BTreeMap::new();
            for doc in self.docs.get(node).iter().filter_map(|doc| docs.get(*doc)) {
                *copies.entry(doc.checksum()).or_default() += 1;
            }
            self.copies.insert(node, copies);
        }
    }

    /// Takes a document from its node.
    pub(in crate::live::engine) fn take(&mut self, docs: &mut DocTable, doc: u32) {
        let Some(page) = docs.get_mut(doc) else { return };
        let (node, place) = (page.node, page.place);
        page.node = NONE;
        if let Some(copies) = self.copies.get_mut(&node) {
            let count = copies.entry(page.checksum()).or_default();
            *count -= 1;
            if *count == 0 {
                copies.remove(&page.checksum());
            }
        }
        let moved = self.docs.swap_remove(node, place);
        if let Some(moved) = moved.and_then(|moved| docs.get_mut(moved)) {
            moved.place = place;
        }
    }
}
