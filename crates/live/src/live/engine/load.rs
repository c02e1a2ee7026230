//! The documents of a store, before any batch: table after table, so that nothing is kept twice.
//!
//! Clusters are found by union-find, without the workers. They must be those that the tables say.

use std::collections::BTreeMap;

use anyhow::{Context, Result, ensure};

use super::Engine;
use super::clusters::ANOTHER_WAY;
use super::parts::SharedKeys;
use super::sets::NO_ID;
use super::tables::doc_table::NONE;
use crate::records::FeatureBits;
use crate::structures::OwnUnionFind;

/// The nodes that are added to their keys at once.
const AT_ONCE: usize = 4096;

/// A load: first all documents, then the sketches of those that have words, then
/// [`Load::finish`].
pub struct Load<'a> {
    engine: &'a mut Engine,
    /// The cluster of each document in the tables, or [`NO_ID`].
    clusters: Vec<i64>,
    /// Nodes that share keys are joined.
    joined: OwnUnionFind,
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
        Load { engine: self, clusters, joined: OwnUnionFind::default(), made: Vec::new(), last: NONE }
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
            let added = self.joined.push();
            debug_assert_eq!(added, node, "nodes of a load are numbered as they come");
            self.made.push(node);
            if self.made.len() == AT_ONCE {
                connect(&mut engine.keys, &mut self.joined, &std::mem::take(&mut self.made))?;
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
        let Load { engine, clusters, mut joined, made, .. } = self;
        connect(&mut engine.keys, &mut joined, &made)?;
        let mut of_pages: Vec<Option<i64>> = Vec::new();
        for (doc, cluster) in engine.docs.numbers().zip(&clusters) {
            let of = engine.docs.get(doc).map(|of| (of.node, of.checksum()));
            let Some((mut node, checksum)) = of else { continue };
            if node == NONE {
                let (wordless, is_made) = engine.node_of(checksum, &[]);
                if is_made {
                    let added = joined.push();
                    debug_assert_eq!(added, wordless, "nodes of a load are numbered as they come");
                }
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
        let nodes = &engine.nodes;
        let sets = &mut engine.fragments.sets;
        sets.load(&joined.into_root_of_each(), |node| nodes.docs(node).len() as u32);
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

/// Adds nodes to their keys, and joins those that share one.
fn connect(keys: &mut SharedKeys, joined: &mut OwnUnionFind, nodes: &[u32]) -> Result<()> {
    for edge in keys.change(&[], nodes)? {
        joined.join([edge.a, edge.b]);
    }
    Ok(())
}
