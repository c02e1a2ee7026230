//! The documents of a store, before any batch: table after table, so that nothing is kept twice.
//!
//! Clusters are found by union-find, without the workers. They must be those that the tables say.

use std::collections::BTreeMap;

use anyhow::{Context, Result, ensure};

use super::Engine;
use super::clusters::ANOTHER_WAY;
use super::doc_table::NONE;
use super::parts::SharedKeys;
use super::sets::NO_ID;
use crate::records::FeatureBits;

/// The nodes that are added to their keys at once.
const AT_ONCE: usize = 4096;

/// A load: first all documents, then the sketches of those that have words, then
/// [`Load::finish`].
pub struct Load<'a> {
    engine: &'a mut Engine,
    /// The cluster of each document in the tables, or [`NO_ID`].
    clusters: Vec<i64>,
    /// A forest of nodes: those of a tree share keys.
    parents: Vec<u32>,
    /// Nodes that are not added to their keys yet.
    made: Vec<u32>,
    /// The document whose sketch came last.
    last: u32,
}

impl Engine {
    /// Begins to take so many documents of a store, whose names have so many bytes together. The
    /// engine has none yet.
    pub fn load(&mut self, documents: usize, bytes_of_names: usize) -> Load<'_> {
        self.docs.reserve(documents, bytes_of_names);
        self.features.reserve(documents);
        let clusters = Vec::with_capacity(documents);
        Load { engine: self, clusters, parents: Vec::new(), made: Vec::new(), last: NONE }
    }
}

impl Load<'_> {
    /// Takes a document by its number in the tables, with its cluster there. The numbers ascend.
    ///
    /// # Errors
    /// If the number does not.
    pub fn document(&mut self, number: i64, name: &str, checksum: u128, cluster: Option<i64>) -> Result<()> {
        let docs = &mut self.engine.docs;
        let last = docs.numbers().last().and_then(|last| docs.get(last)?.number());
        ensure!(last.is_none_or(|last| last < number), "the table documents has document {number} twice");
        let doc = docs.add(name, Some(number));
        docs.get_mut(doc).into_iter().for_each(|doc| doc.set_checksum(checksum));
        self.clusters.push(cluster.unwrap_or(NO_ID));
        Ok(())
    }

    /// Takes the sketch of a document, by its number in the tables, after all documents.
    ///
    /// # Errors
    /// If there is no such document, or it has a sketch; or if a process is gone that has a part of
    /// the keys.
    pub fn sketch(&mut self, number: i64, supershingles: &[u64], features: &[FeatureBits]) -> Result<()> {
        let engine = &mut *self.engine;
        // Mostly the next one.
        let next = self.last.wrapping_add(1);
        let is_next = engine.docs.get(next).is_some_and(|doc| doc.number() == Some(number));
        let doc = if is_next { Some(next) } else { engine.docs.find_number(number) };
        let doc =
            doc.with_context(|| format!("the table features has document {number}, which the table documents lacks"))?;
        self.last = doc;
        let of = engine.docs.get(doc).map(|of| (of.node, of.checksum()));
        let Some((NONE, checksum)) = of else { anyhow::bail!("the table features has document {number} twice") };
        let (node, is_made) = engine.node_of(checksum, supershingles);
        engine.features.set(doc, features);
        if engine.features.is_full() {
            engine.features.send()?;
        }
        engine.nodes.put(&mut engine.docs, doc, node);
        if is_made {
            self.parents.push(node);
            self.made.push(node);
            if self.made.len() == AT_ONCE {
                connect(&mut engine.keys, &mut self.parents, &std::mem::take(&mut self.made))?;
            }
        }
        Ok(())
    }

    /// Ends the load: documents without a sketch have no words.
    ///
    /// # Errors
    /// If the documents do not have the clusters that the tables say: then these were made in
    /// another way. Or if a process is gone that has a part of the keys.
    pub fn finish(self) -> Result<()> {
        let Load { engine, clusters, mut parents, made, .. } = self;
        connect(&mut engine.keys, &mut parents, &made)?;
        let mut of_pages: Vec<Option<i64>> = Vec::new();
        for (doc, cluster) in engine.docs.numbers().zip(&clusters) {
            let of = engine.docs.get(doc).map(|of| (of.node, of.checksum()));
            let Some((mut node, checksum)) = of else { continue };
            if node == NONE {
                let (wordless, is_made) = engine.node_of(checksum, &[]);
                parents.extend(is_made.then_some(wordless));
                engine.features.set(doc, &[]);
                engine.nodes.put(&mut engine.docs, doc, wordless);
                node = wordless;
            }
            if let Some(verified) = &mut engine.verified {
                let cluster = (*cluster != NO_ID).then_some(*cluster);
                let page = verified.load(doc, node, checksum) as usize;
                if page == of_pages.len() {
                    of_pages.push(cluster);
                }
                ensure!(of_pages[page] == cluster, ANOTHER_WAY);
            }
        }
        engine.features.send()?;
        for node in 0..parents.len() as u32 {
            parents[node as usize] = root(&mut parents, node);
        }
        let nodes = &engine.nodes;
        let sets = &mut engine.fragments.sets;
        sets.load(&parents, |node| nodes.docs(node).len() as u32);
        drop(parents);
        if let Some(verified) = &mut engine.verified {
            for (id, part) in verified.finish_load(&of_pages, sets)? {
                engine.clusters.load(id, part, verified.parts.set(part).docs());
            }
            return Ok(());
        }
        let mut named: BTreeMap<i64, u32> = BTreeMap::new();
        for (doc, id) in engine.docs.numbers().zip(clusters) {
            let fragment = sets.of(engine.docs.get(doc).map_or(NONE, |doc| doc.node));
            if id == NO_ID {
                ensure!(sets.set(fragment).docs() == 1, ANOTHER_WAY);
                continue;
            }
            ensure!(*named.entry(id).or_insert(fragment) == fragment, ANOTHER_WAY);
            let of = sets.set_mut(fragment);
            ensure!(of.id == id || of.id == NO_ID, ANOTHER_WAY);
            of.id = id;
        }
        for (id, fragment) in named {
            engine.clusters.load(id, fragment, sets.set(fragment).docs());
        }
        Ok(())
    }
}

/// Adds nodes to their keys, and joins the trees of those that share one.
fn connect(keys: &mut SharedKeys, parents: &mut [u32], nodes: &[u32]) -> Result<()> {
    for edge in keys.change(&[], nodes)? {
        let (a, b) = (root(parents, edge.a), root(parents, edge.b));
        parents[a.max(b) as usize] = a.min(b);
    }
    Ok(())
}

/// The root of a node in a forest of parents, with paths halved.
fn root(parents: &mut [u32], mut node: u32) -> u32 {
    while parents[node as usize] != node {
        let next = parents[parents[node as usize] as usize];
        parents[node as usize] = next;
        node = next;
    }
    node
}
