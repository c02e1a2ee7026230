//! Key groups: all documents that have a key of a changed document, at the key's owner.
//!
//! From them come the holders that certificates need, and the edges that keys make before the
//! change and after it. Memory: 40 bytes for each holder of a key.

use std::collections::{BTreeMap, HashSet};
use std::hash::BuildHasherDefault;
use std::rc::Rc;
use std::sync::Arc;

use anyhow::Result;
use bytemuck::{Pod, Zeroable};
use nigh_exchange::{BlockOf, Context, Dealer, LocalAnswers, lookup};

use crate::kernels::memory::advise_huge_pages;
use crate::operators::delta::relabel::EdgeDifference;
use crate::operators::delta::splits::SplitMember;
use crate::records::{DocId, Key};
use crate::structures::{ByKey, DocHasher, Ownership};
use crate::watch::Watch;

/// A document that has a key, at the key's owner. They sort by key, then by role.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Pod, Zeroable)]
#[repr(C)]
pub(crate) struct KeyHolder {
    pub(crate) key: Key,
    /// A [`KeyRole`], as a number: plain data has no enums.
    role: u32,
    /// The number of the key among the document's keys.
    pub(crate) slot: u32,
    pub(crate) doc: DocId,
    /// The root that the document had.
    pub(crate) root: DocId,
}

/// When a document has a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum KeyRole {
    /// Before the change: its old vector has the key.
    Old,
    /// After the change: its new vector has the key.
    New,
    /// Before and after: the document did not change.
    Unchanged,
}

impl KeyHolder {
    /// A holder of a key. `slot` is the number of the key among the document's keys.
    pub(crate) fn new(key: Key, role: KeyRole, slot: u32, doc: DocId, root: DocId) -> KeyHolder {
        let role = match role {
            KeyRole::Old => 0,
            KeyRole::New => 1,
            KeyRole::Unchanged => 2,
        };
        KeyHolder { key, role, slot, doc, root }
    }

    /// When the document has the key.
    #[inline]
    pub(crate) fn role(&self) -> KeyRole {
        match self.role {
            0 => KeyRole::Old,
            1 => KeyRole::New,
            _ => KeyRole::Unchanged,
        }
    }

    fn is_unchanged(&self) -> bool {
        self.role() == KeyRole::Unchanged
    }
}

/// To the owner of a retracted document: another document that has one of its keys.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Pod, Zeroable)]
#[repr(C)]
pub(crate) struct HolderReply {
    pub(crate) retracted: DocId,
    /// An unchanged document, or [`DocId::NONE`] if all others that have the key are retracted too.
    pub(crate) holder: DocId,
    pub(crate) slot: u64,
}

/// Unchanged holders of a key that a certificate uses, at most. With two, as many documents were
/// certified as with 24 (`nigh bench weeks` at 1%), because the wide certificate looks at the
/// holders' other keys.
pub(crate) const MOST_HOLDERS: usize = 4;
/// The bit of a node that is a cluster, or a split component: its other bits are the root. A node
/// without it is a document.
pub(crate) const CLUSTER: u64 = 1 << 63;

pub(crate) type RootOf = ByKey<DocId, DocId>;
pub(crate) type DocSet = HashSet<DocId, BuildHasherDefault<DocHasher>>;

/// The word, or node, of a document.
pub(crate) fn word_of(doc: DocId) -> u64 {
    doc.to_table() as u64
}

/// The document of a word that [`word_of`] returned.
pub(crate) fn doc_of(word: u64) -> DocId {
    DocId::from_table(word as i64)
}

/// The holders of the keys that a worker owns.
pub(crate) struct KeyGroups {
    /// By partition; sorted.
    partitions: BTreeMap<u64, Vec<KeyHolder>>,
}

impl KeyGroups {
    /// Sorts the holders of all blocks by key.
    pub(crate) fn new(blocks: Vec<BlockOf<KeyHolder>>) -> KeyGroups {
        let mut sizes: BTreeMap<u64, usize> = BTreeMap::new();
        for block in &blocks {
            *sizes.entry(block.part).or_default() += block.records().len();
        }
        let empty = |size| {
            let mut holders = Vec::with_capacity(size);
            advise_huge_pages(holders.spare_capacity_mut());
            holders
        };
        let mut partitions: BTreeMap<u64, Vec<KeyHolder>> =
            sizes.into_iter().map(|(partition, size)| (partition, empty(size))).collect();
        for block in blocks {
            partitions.entry(block.part).or_default().extend_from_slice(block.records());
        }
        partitions.values_mut().for_each(|holders| holders.sort_unstable());
        KeyGroups { partitions }
    }

    /// The holders of each key.
    pub(crate) fn groups(&self) -> impl Iterator<Item = &[KeyHolder]> {
        self.partitions.values().flat_map(|holders| holders.chunk_by(|a, b| a.key == b.key))
    }

    /// The groups of keys that changed documents have.
    fn changed_groups(&self) -> impl Iterator<Item = &[KeyHolder]> {
        self.groups().filter(|group| !group[0].is_unchanged())
    }

    /// Deals out, to the owners of retracted documents, some unchanged holders of each of their
    /// keys that others have.
    pub(crate) fn replies(&self, cx: &Context, watch: &Arc<Watch>) -> Dealer<HolderReply> {
        let peers = cx.peers();
        let mut dealer = Dealer::new(cx.index(), peers, watch);
        for group in self.groups() {
            let retracted = group.iter().take_while(|holder| holder.role() == KeyRole::Old).count();
            let unchanged = group.iter().filter(|holder| holder.is_unchanged()).take(MOST_HOLDERS);
            let mut unchanged: Vec<DocId> = unchanged.map(|holder| holder.doc).collect();
            if retracted + unchanged.len() < 2 {
                continue;
            }
            if unchanged.is_empty() {
                unchanged.push(DocId::NONE);
            }
            for KeyHolder { doc, slot, .. } in &group[..retracted] {
                for holder in &unchanged {
                    let reply = HolderReply { retracted: *doc, holder: *holder, slot: (*slot).into() };
                    dealer.deal(doc.owner(peers) as u64, reply);
                }
            }
        }
        dealer
    }

    /// The split component that each key of a changed document reaches, in the order of the groups;
    /// only for keys that an unchanged member of an uncertified cluster has. All unchanged holders
    /// of a key are in one split component.
    pub(crate) fn reached_components(
        &self,
        cx: &mut Context,
        owned: &Ownership,
        uncertified: &DocSet,
        split_members: &[SplitMember],
    ) -> Result<Vec<DocId>> {
        let members: Rc<[DocId]> = self
            .changed_groups()
            .filter_map(|group| group.iter().find(|holder| holder.is_unchanged()))
            .filter(|holder| uncertified.contains(&holder.root))
            .map(|holder| holder.doc)
            .collect();
        let component_of: ByKey<u64, DocId> =
            split_members.iter().map(|member| (owned.index(member.doc) as u64, member.component)).collect();
        let answer = move |index: usize| [component_of.get(&(index as u64)).map_or(0, |doc| word_of(*doc))];
        let mut reached = vec![DocId::NONE; members.len()];
        let questions = move || {
            let members = members.clone();
            (0..members.len()).map(move |index| members[index])
        };
        let local = LocalAnswers::own(cx, answer);
        lookup(cx, owned, questions, &local, |at, [component]| reached[at] = doc_of(component))?;
        Ok(reached)
    }

    /// The edges that keys make, before the change and after it.
    ///
    /// `uncertified` are the roots of clusters that may split, and `reached` what
    /// [`KeyGroups::reached_components`] returned.
    ///
    /// ```text
    /// for each key of a changed document:
    ///     node = the one cluster (or split component) of all unchanged holders, if there are any
    ///     before = the documents that had the key, if their cluster may split; and node
    ///     after  = the documents that have the key now; and node
    ///     +1 at time 0: a star of `before`
    ///     -1 at time 1: the same star
    ///     +1 at time 1: a star of `after`
    /// ```
    pub(crate) fn edges(&self, uncertified: &DocSet, reached: Vec<DocId>) -> Vec<EdgeDifference> {
        let mut edges = Vec::new();
        let (mut before, mut after) = (Vec::new(), Vec::new());
        let mut reached = reached.into_iter();
        for group in self.changed_groups() {
            before.clear();
            after.clear();
            for holder in group {
                let may_split = uncertified.contains(&holder.root);
                match holder.role() {
                    KeyRole::Old if may_split => before.push(word_of(holder.doc)),
                    KeyRole::Old => {}
                    KeyRole::New => after.push(word_of(holder.doc)),
                    // The other unchanged holders are in the same cluster and split component: the
                    // same node.
                    KeyRole::Unchanged => {
                        let cluster = if may_split { reached.next().unwrap_or(holder.root) } else { holder.root };
                        before.push(word_of(cluster) | CLUSTER);
                        after.push(word_of(cluster) | CLUSTER);
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

/// Adds a star around the last of some sorted nodes: the cluster if there is one, because clusters
/// come after documents.
fn star(nodes: &[u64], time: u32, difference: i32, edges: &mut Vec<EdgeDifference>) {
    let Some((last, others)) = nodes.split_last() else { return };
    edges.extend(others.iter().map(|node| EdgeDifference { a: *node, b: *last, time, difference }));
}

/// Adds up the differences of an edge at one time, and drops those that are 0.
fn consolidate(edges: &mut Vec<EdgeDifference>) {
    edges.sort_unstable_by_key(|edge| (edge.time, edge.a, edge.b));
    edges.dedup_by(|next, sum| {
        let same = (next.time, next.a, next.b) == (sum.time, sum.a, sum.b);
        if same {
            sum.difference += next.difference;
        }
        same
    });
    edges.retain(|edge| edge.difference != 0);
}
