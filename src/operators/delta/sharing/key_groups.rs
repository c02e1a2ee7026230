//! Who holds the keys of documents that changed, as the owners of the keys know it: what they tell the owners of
//! documents that are retracted, and the edges that keys make before the change and after it.

use std::collections::{BTreeMap, HashSet};
use std::hash::BuildHasherDefault;
use std::rc::Rc;
use std::sync::Arc;

use anyhow::Result;
use bytemuck::{Pod, Zeroable};
use timely::worker::Worker;

use crate::kernels::memory::advise_huge_pages;
use crate::operators::delta::relabel::EdgeDifference;
use crate::operators::exchange::{Block, Dealer, LocalAnswers, lookup};
use crate::records::{DocId, Key};
use crate::structures::{ByKey, DocHasher, Ownership};
use crate::watch::Watch;

/// Who holds a key, at the key's owner.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Pod, Zeroable)]
#[repr(C)]
pub(crate) struct KeyHolder {
    pub(crate) key: Key,
    pub(crate) role: u32,
    /// Which of the document's keys.
    pub(crate) slot: u32,
    pub(crate) doc: DocId,
    /// The root that the document had.
    pub(crate) root: DocId,
}

/// The document had the key, and does not have that vector any more.
pub(crate) const OLD: u32 = 0;
/// The document has the key with its new vector.
pub(crate) const NEW: u32 = 1;
/// The document has it and did not change.
pub(crate) const STAYS: u32 = 2;

/// To the owner of a document that is retracted: who holds one of its keys.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Pod, Zeroable)]
#[repr(C)]
pub(crate) struct HolderReply {
    pub(crate) doc: DocId,
    pub(crate) stays: DocId,
    pub(crate) slot: u64,
}

/// Holders of a key that stay, of which a certificate makes use: with two as many were certified as with 24 (`nigh bench
/// weeks` at 1%), because what they hold besides is looked up where their own keys do not do.
pub(crate) const MOST_HOLDERS: usize = 4;
/// Added to the root of a cluster that is left as it is, to name its node.
pub(crate) const CLUSTER: u64 = 1 << 63;

pub(crate) type RootOf = ByKey<DocId, DocId>;
pub(crate) type DocSet = HashSet<DocId, BuildHasherDefault<DocHasher>>;

pub(crate) fn word(doc: DocId) -> u64 {
    doc.to_table() as u64
}

pub(crate) fn doc(word: u64) -> DocId {
    DocId::from_table(word as i64)
}

/// What the owners of some keys know.
pub(crate) struct KeyGroups {
    /// Holders, by partition; in order.
    parts: BTreeMap<u64, Vec<KeyHolder>>,
}

impl KeyGroups {
    pub(crate) fn new(blocks: Vec<Block<KeyHolder>>) -> KeyGroups {
        let mut sizes: BTreeMap<u64, usize> = BTreeMap::new();
        for block in &blocks {
            *sizes.entry(block.part).or_default() += block.records().len();
        }
        let empty = |size| {
            let mut part = Vec::with_capacity(size);
            advise_huge_pages(part.spare_capacity_mut());
            part
        };
        let mut parts: BTreeMap<u64, Vec<KeyHolder>> =
            sizes.into_iter().map(|(part, size)| (part, empty(size))).collect();
        for block in blocks {
            parts.entry(block.part).or_default().extend_from_slice(block.records());
        }
        parts.values_mut().for_each(|part| part.sort_unstable());
        KeyGroups { parts }
    }

    /// To the owners of retracted documents: who holds their keys besides.
    pub(crate) fn replies(&self, worker: &Worker, watch: &Arc<Watch>) -> Dealer<HolderReply> {
        let peers = worker.peers();
        let mut dealer = Dealer::new(worker.index(), peers, watch);
        for of_key in self.keys() {
            let old = of_key.iter().take_while(|held| held.role == OLD).count();
            let stay = of_key.iter().filter(|held| held.role == STAYS).take(MOST_HOLDERS);
            let stay: Vec<DocId> = stay.map(|held| held.doc).collect();
            if old + stay.len() < 2 {
                continue;
            }
            for held in &of_key[..old] {
                let mut tell = |stays| {
                    let reply = HolderReply { doc: held.doc, stays, slot: held.slot.into() };
                    dealer.deal(held.doc.owner(peers) as u64, reply);
                };
                match stay.is_empty() {
                    true => tell(DocId::NONE),
                    false => stay.iter().for_each(|doc| tell(*doc)),
                }
            }
        }
        dealer
    }

    /// For every key of a changed document that somebody of a cluster in doubt holds and stays: the piece that it
    /// reaches, in the order of keys. All who hold a key and stay are of one piece.
    pub(crate) fn reached(
        &self,
        worker: &mut Worker,
        owned: &Ownership,
        doubtful: &DocSet,
        pieces: &[(DocId, DocId)],
        watch: &Arc<Watch>,
    ) -> Result<Vec<DocId>> {
        let asked: Rc<[DocId]> = self
            .keys()
            .filter(|of_key| of_key[0].role != STAYS)
            .filter_map(|of_key| of_key.iter().find(|held| held.role == STAYS))
            .filter(|held| doubtful.contains(&held.root))
            .map(|held| held.doc)
            .collect();
        let known: ByKey<u64, DocId> = pieces.iter().map(|(doc, piece)| (owned.index(*doc) as u64, *piece)).collect();
        let known = move |own: usize| [known.get(&(own as u64)).map_or(0, |piece| word(*piece))];
        let mut reached = vec![DocId::NONE; asked.len()];
        let ask = move || {
            let asked = asked.clone();
            (0..asked.len()).map(move |at| asked[at])
        };
        let near = LocalAnswers::own(worker, known);
        lookup(worker, owned, ask, &near, watch, |at, [piece]| reached[at] = doc(piece))?;
        Ok(reached)
    }

    /// The holders of each key.
    pub(crate) fn keys(&self) -> impl Iterator<Item = &[KeyHolder]> {
        self.parts.values().flat_map(|part| part.chunk_by(|a, b| a.key == b.key))
    }

    /// The edges that keys make: stars around one of the nodes that hold one, the cluster where there is one, before the
    /// change and after it.
    pub(crate) fn edges(&self, doubtful: &DocSet, reached: Vec<DocId>) -> Vec<EdgeDifference> {
        let mut edges = Vec::new();
        let (mut before, mut after) = (Vec::new(), Vec::new());
        let mut reached = reached.into_iter();
        for of_key in self.keys().filter(|of_key| of_key[0].role != STAYS) {
            before.clear();
            after.clear();
            for held in of_key {
                let is_doubtful = doubtful.contains(&held.root);
                match held.role {
                    OLD if is_doubtful => before.push(word(held.doc)),
                    OLD => {}
                    NEW => after.push(word(held.doc)),
                    // All who hold a key and stay are of one cluster, and of one piece of it: that is one node.
                    _ => {
                        let cluster = if is_doubtful { reached.next().unwrap_or(held.root) } else { held.root };
                        before.push(word(cluster) | CLUSTER);
                        after.push(word(cluster) | CLUSTER);
                        break;
                    }
                }
            }
            for (nodes, time) in [(&mut before, 0), (&mut after, 1)] {
                nodes.sort_unstable();
                nodes.dedup();
                star(nodes, time, 1, &mut edges);
            }
            star(&before, 1, -1, &mut edges);
        }
        consolidate(&mut edges);
        edges
    }
}

/// The edges of a star around the last of some nodes: clusters are behind documents.
fn star(nodes: &[u64], time: u32, difference: i32, edges: &mut Vec<EdgeDifference>) {
    let Some((last, others)) = nodes.split_last() else { return };
    edges.extend(others.iter().map(|node| EdgeDifference { a: *node, b: *last, time, difference }));
}

/// Adds up differences of the same edge at the same time.
fn consolidate(edges: &mut Vec<EdgeDifference>) {
    edges.sort_unstable_by_key(|edge| (edge.time, edge.a, edge.b));
    edges.dedup_by(|next, kept| {
        let same = (next.time, next.a, next.b) == (kept.time, kept.a, kept.b);
        if same {
            kept.difference += next.difference;
        }
        same
    });
    edges.retain(|edge| edge.difference != 0);
}
