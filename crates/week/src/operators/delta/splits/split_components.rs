//! Split components: the components into which clusters fall when some of their documents leave.
//!
//! This is grouping by key, as for a whole crawl, on the members of a few clusters: every key makes
//! a star of the members that have it, one union-find per process takes the stars, and the
//! union-finds of all processes are joined. Members with identical vectors are joined at once.
//! Memory: the vector of each member until its keys are sent, and 12 bytes for each key of each
//! distinct vector of a worker.

use std::collections::hash_map::Entry;
use std::collections::{BTreeMap, HashMap};
use std::hash::BuildHasherDefault;
use std::sync::Arc;

use anyhow::{Result, ensure};
use bytemuck::{Pod, Zeroable};
use nigh_exchange::{BlockOf, Context, Dealer, LocalAnswers, all_to_all, lookup};

use crate::features::VectorKeys;
use crate::operators::components::join_forests;
use crate::records::{DocId, fold};
use crate::structures::{DocHasher, Grouper, Numbering, Ownership, UnionFind};
use crate::watch::Watch;

/// A key of a member. The member's number is that of the dense numbering of all members.
#[derive(Clone, Copy, Debug, Pod, Zeroable)]
#[repr(C)]
struct MemberKey {
    key: [u32; 2],
    number: u32,
}

/// Partitions of keys for each worker.
const PARTITIONS: u64 = 64;

/// An unchanged member of a cluster that may split.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SplitMember {
    pub(crate) doc: DocId,
    /// The smallest document of its split component.
    pub(crate) component: DocId,
}

/// Own unchanged documents of some clusters, ascending, with their vectors.
#[derive(Debug, Default)]
pub struct RemainingMembers {
    /// The documents.
    pub docs: Vec<DocId>,
    /// Their vectors, concatenated.
    pub words: Vec<u64>,
}

impl RemainingMembers {
    /// Merges two lists without a common document, each ascending; vectors have `width` words.
    pub fn merged([a, b]: [RemainingMembers; 2], width: usize) -> RemainingMembers {
        if b.docs.is_empty() {
            return a;
        }
        let mut members: Vec<(DocId, &[u64])> = Vec::with_capacity(a.docs.len() + b.docs.len());
        for list in [&a, &b] {
            members.extend(list.docs.iter().copied().zip(list.words.chunks_exact(width)));
        }
        members.sort_unstable_by_key(|(doc, _)| *doc);
        RemainingMembers {
            docs: members.iter().map(|(doc, _)| *doc).collect(),
            words: members.iter().flat_map(|(_, vector)| *vector).copied().collect(),
        }
    }
}

/// Returns the smallest document of the split component of each member, in the order of the
/// members.
///
/// `union_find` is shared by the `threads` workers of a process. `owned` are all documents of this
/// worker.
///
/// ```text
/// number the members of all workers densely
/// for each own member:
///     if an earlier own member has the same vector: union(member, earlier)
///     else: send (key, member) to the key's worker, for each key of the member
/// for each key received:
///     union(member, first member of the key), for each member of the key
/// join the union-finds of all processes
/// return the document of each own member's root
/// ```
///
/// # Errors
/// If there are more members than one run can join, or a worker of this process failed.
pub fn split_components(
    cx: &mut Context,
    members: RemainingMembers,
    keys: &VectorKeys,
    threads: usize,
    owned: &Ownership,
) -> Result<Vec<DocId>> {
    let watch = &cx.watch().clone();
    // Number the members.
    let RemainingMembers { docs, words } = members;
    let mut counts: BTreeMap<u32, u64> = owned.shards().map(|shard| (shard, 0)).collect();
    docs.iter().for_each(|doc| *counts.entry(doc.shard()).or_default() += 1);
    let counts = cx.sorted(counts.into_iter().collect())?;
    let rows: Vec<u64> = counts.into_iter().map(|(_, count)| count).collect();
    let numbering = Numbering::new(&rows);
    if numbering.is_empty() {
        return Ok(Vec::new());
    }
    ensure!(
        numbering.len() < u64::from(u32::MAX),
        "cannot join {} documents of clusters that may split: one run can join {} at most",
        numbering.len(),
        u32::MAX - 1
    );
    let dense = Ownership::new(cx.index(), cx.peers(), &rows);
    let union_find = cx.shared().of(|| UnionFind::new(numbering.len() as usize));
    // All workers of the process have it before any of them drops it.
    cx.barrier()?;

    // Group them by key.
    let width = words.len().checked_div(docs.len()).unwrap_or(0);
    let numbered = NumberedMembers { words, width, numbering: &numbering, dense: &dense };
    let member_keys = numbered.deal_keys(cx, keys, &union_find, watch)?;
    drop(numbered);
    join_members_of_keys(all_to_all(cx, member_keys)?, &union_find)?;
    cx.barrier()?;

    // Their roots, as documents.
    let roots = join_forests(cx, &numbering, &dense, union_find, threads)?.roots;
    let mut components = vec![DocId::NONE; docs.len()];
    let local = LocalAnswers::own(cx, move |member: usize| [docs[member].to_table() as u64]);
    let questions = move || roots.clone().into_iter();
    lookup(cx, &dense, questions, &local, |member, [root]| {
        components[member] = DocId::from_table(root as i64);
    })?;
    Ok(components)
}

/// The vectors of own members, found by their numbers among all members.
struct NumberedMembers<'a> {
    words: Vec<u64>,
    width: usize,
    numbering: &'a Numbering,
    dense: &'a Ownership,
}

impl NumberedMembers<'_> {
    /// The vector of an own member.
    fn vector(&self, number: u32) -> &[u64] {
        let index = self.dense.index(self.numbering.id(number.into()));
        &self.words[index * self.width..][..self.width]
    }

    /// Deals out the keys of own members, for the first of each identical vector; joins the others
    /// with it.
    fn deal_keys(
        &self,
        cx: &Context,
        keys: &VectorKeys,
        union_find: &UnionFind,
        watch: &Arc<Watch>,
    ) -> Result<Dealer<MemberKey>> {
        let partitions = PARTITIONS * cx.peers() as u64;
        let mut dealer = Dealer::new(cx.index(), partitions as usize, watch);
        let mut first_of: HashMap<u64, u32, BuildHasherDefault<DocHasher>> = HashMap::default();
        for (node, vector) in self.dense.docs().zip(self.words.chunks_exact(self.width.max(1))) {
            let number = self.numbering.number(node) as u32;
            match first_of.entry(fold(vector)) {
                // Equal hashes do not prove that vectors are equal: their words do.
                Entry::Occupied(first) if vector == self.vector(*first.get()) => {
                    union_find.join(&[(number, *first.get())])?;
                    continue;
                }
                Entry::Occupied(_) => {}
                Entry::Vacant(entry) => _ = entry.insert(number),
            }
            for key in keys.megashingles(vector, u64::MAX) {
                let bits = key.table_bits();
                let member = MemberKey { key: [bits as u32, (bits >> 32) as u32], number };
                dealer.deal(key.partition_bits() % partitions, member);
            }
        }
        Ok(dealer)
    }
}

/// Joins the members that have a key, for every key of the blocks.
fn join_members_of_keys(blocks: Vec<BlockOf<MemberKey>>, union_find: &UnionFind) -> Result<()> {
    let mut of_partition: BTreeMap<u64, Vec<BlockOf<MemberKey>>> = BTreeMap::new();
    for block in blocks {
        of_partition.entry(block.part).or_default().push(block);
    }
    let (mut grouper, mut edges) = (Grouper::default(), Vec::new());
    for blocks in of_partition.into_values() {
        let members = || blocks.iter().flat_map(|block| block.records());
        grouper.clear(members().count());
        grouper.add_all(members().map(|m| (u64::from(m.key[1]) << 32 | u64::from(m.key[0]), m.number)));
        edges.clear();
        edges.extend(grouper.stars().flat_map(|(middle, others)| others.map(move |node| (node, middle))));
        union_find.join(&edges)?;
    }
    Ok(())
}
