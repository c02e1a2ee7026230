//! The pieces into which clusters fall when some of their documents leave: components of those that stay.
//!
//! It is the work of `pairs` and `join` on the members of a few clusters: stars of the keys that they hold, in one
//! union-find a process, and its forests joined. Members with the same vector are joined where they are. What a member
//! takes is its vector while keys are sent, and 12 bytes a key of each distinct vector at a worker.

use std::collections::hash_map::Entry;
use std::collections::{BTreeMap, HashMap};
use std::hash::BuildHasherDefault;
use std::sync::Arc;

use anyhow::{Result, ensure};
use bytemuck::{Pod, Zeroable};
use timely::worker::Worker;

use crate::features::VectorKeys;
use crate::operators::components::join_forests;
use crate::operators::exchange::{Block, Dealer, LocalAnswers, Shared, all_gather, all_to_all, barrier, lookup};
use crate::records::{DocId, fold};
use crate::structures::{DocHasher, Grouper, Numbering, Ownership, UnionFind};
use crate::watch::Watch;

/// A member under a key that it holds.
#[derive(Clone, Copy, Debug, Pod, Zeroable)]
#[repr(C)]
struct Member {
    key: [u32; 2],
    number: u32,
}

/// Partitions of keys for each worker.
const PARTS: u64 = 64;

/// Own documents that stay in some clusters, ascending, with their vectors.
#[derive(Debug, Default)]
pub struct RemainingMembers {
    /// The documents.
    pub docs: Vec<DocId>,
    /// Their vectors, one after the other.
    pub words: Vec<u64>,
}

impl RemainingMembers {
    /// The members of two lists, each ascending, of vectors of `width` words.
    pub fn merged([a, b]: [RemainingMembers; 2], width: usize) -> RemainingMembers {
        if b.docs.is_empty() {
            return a;
        }
        let mut all: Vec<(DocId, &[u64])> = Vec::with_capacity(a.docs.len() + b.docs.len());
        for members in [&a, &b] {
            all.extend(members.docs.iter().copied().zip(members.words.chunks_exact(width)));
        }
        all.sort_unstable_by_key(|(doc, _)| *doc);
        RemainingMembers {
            docs: all.iter().map(|(doc, _)| *doc).collect(),
            words: all.iter().flat_map(|(_, vector)| *vector).copied().collect(),
        }
    }
}

/// The smallest document of the piece of each member, in their order. `owned` are all documents of this worker.
///
/// # Errors
/// Where there are more members than one run can join, or a worker of this process failed.
pub fn split_components(
    worker: &mut Worker,
    members: RemainingMembers,
    keys: &VectorKeys,
    (forest, threads): (&Shared<UnionFind>, usize),
    owned: &Ownership,
    watch: &Arc<Watch>,
) -> Result<Vec<DocId>> {
    let (index, peers) = (worker.index(), worker.peers());
    let RemainingMembers { docs, words } = members;
    let mut counts: BTreeMap<u32, u64> = owned.shards().map(|shard| (shard, 0)).collect();
    docs.iter().for_each(|doc| *counts.entry(doc.shard()).or_default() += 1);
    let rows: Vec<u64> =
        all_gather(worker, counts.into_iter().collect(), watch)?.into_iter().map(|(_, count)| count).collect();
    let numbering = Numbering::new(&rows);
    if numbering.is_empty() {
        return Ok(Vec::new());
    }
    ensure!(
        numbering.len() < u64::from(u32::MAX),
        "{} pages to compare are more than one run can join",
        numbering.len()
    );
    let dense = Ownership::new(index, peers, &rows);
    let forest = forest.of(|| UnionFind::new(numbering.len() as usize));
    // All of the process have it before anybody may let it go.
    barrier(worker, watch)?;

    let parts = PARTS * peers as u64;
    let mut dealer: Dealer<Member> = Dealer::new(index, parts as usize, watch);
    let mut known: HashMap<u64, u32, BuildHasherDefault<DocHasher>> = HashMap::default();
    let width = words.len().checked_div(docs.len()).unwrap_or(0);
    for (node, vector) in dense.docs().zip(words.chunks_exact(width.max(1))) {
        let number = numbering.number(node) as u32;
        match known.entry(fold(vector)) {
            // Vectors with the same fold are taken for equal only where a key says so too.
            Entry::Occupied(first) if vector == vector_of(&words, &numbering, &dense, *first.get(), width) => {
                forest.join(&[(number, *first.get())])?;
                continue;
            }
            Entry::Occupied(_) => {}
            Entry::Vacant(slot) => _ = slot.insert(number),
        }
        for key in keys.megashingles(vector, u64::MAX) {
            let bits = key.table_bits();
            let member = Member { key: [bits as u32, (bits >> 32) as u32], number };
            dealer.deal(key.partition_bits() % parts, member);
        }
    }
    drop((words, known));
    let mut of_part: BTreeMap<u64, Vec<Block<Member>>> = BTreeMap::new();
    for block in all_to_all(worker, dealer, watch)? {
        of_part.entry(block.part).or_default().push(block);
    }
    let (mut grouper, mut edges) = (Grouper::default(), Vec::new());
    for blocks in of_part.into_values() {
        let records = || blocks.iter().flat_map(|block| block.records());
        grouper.clear(records().count());
        grouper.add_all(records().map(|m| (u64::from(m.key[1]) << 32 | u64::from(m.key[0]), m.number)));
        edges.clear();
        edges.extend(grouper.stars().flat_map(|(middle, others)| others.map(move |node| (node, middle))));
        forest.join(&edges)?;
    }
    barrier(worker, watch)?;
    let roots = join_forests(worker, &numbering, &dense, forest, threads, watch)?.roots;
    let mut pieces = vec![DocId::NONE; docs.len()];
    let known = move |own: usize| [docs[own].to_table() as u64];
    let ask = roots.clone();
    let near = LocalAnswers::own(worker, known);
    lookup(
        worker,
        &dense,
        move || ask.clone().into_iter(),
        &near,
        watch,
        |at, [doc]| {
            pieces[at] = DocId::from_table(doc as i64);
        },
    )?;
    Ok(pieces)
}

/// The vector of a member of this worker, by its number among all.
fn vector_of<'a>(words: &'a [u64], numbering: &Numbering, dense: &Ownership, number: u32, width: usize) -> &'a [u64] {
    let own = dense.index(numbering.id(number.into()));
    &words[own * width..][..width]
}
