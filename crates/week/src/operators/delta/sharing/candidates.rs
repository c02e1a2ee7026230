//! Candidates: the unchanged documents that may share a key with a changed one, and the keys that
//! they have.
//!
//! ```text
//! insert   the supershingles of changed documents, into a filter at every process
//! find     unchanged documents with enough of them: by the inverted index, or by a scan of all vectors
//! insert   the keys of changed documents whose supershingles another document has, into a second filter
//! deal     changed documents and candidates, to the owners of these keys; of candidates a few for each key
//! ```
//!
//! The index names the documents whose vectors must be looked at. Without it, and between slices,
//! all vectors are read once.

use std::sync::Arc;

use anyhow::{Result, bail};
use nigh_exchange::{Context, Dealer, all_to_all, blocks};

use super::filter::{ChangedKeys, KeyFilter};
use super::key_groups::{KeyHolder, KeyRole};
use super::send_limit::SendLimit;
use crate::operators::delta::splits::{Remaining, RemainingMembers};
use crate::operators::delta::step::SliceStep;
use crate::operators::scan::{VectorFiles, VectorRoots};
use crate::records::{DocId, Key};
use crate::state::Coding;
use crate::watch::Watch;

/// Partitions of keys for each worker.
const PARTITIONS: u64 = 8;
/// Places that are collected before they are inserted into a filter.
const BATCH: usize = 1 << 10;
/// The slot of the key that stands for the whole vector.
const WHOLE_VECTOR: u32 = u32::MAX;
/// The key space of whole vectors.
const VECTOR_SPACE: u64 = 0x7665_6374_6f72;

/// What remains of the cluster that a changed document had.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Remainder {
    /// No document: it had no cluster, or no other member of it is unchanged.
    None,
    /// An unchanged document with the identical vector.
    SameVector(DocId),
    /// Other unchanged members of its cluster.
    Others,
}

/// A key of a document's new vector.
struct NewKey {
    slot: u32,
    key: Key,
    /// Whether the old vector had it, too.
    kept: bool,
}

/// The supershingles of a changed document that another document may have, too: a bit for each
/// column.
#[derive(Clone, Copy)]
struct SharedOldAndNew {
    /// Of the old vector; 0 if its retraction cannot split a cluster.
    old: u64,
    /// Of the new vector.
    new: u64,
}

/// Unchanged documents that share supershingles with changed ones.
#[derive(Default)]
pub(crate) struct SharingDocuments {
    /// Each with its shared supershingles: a bit for each column.
    pub(crate) docs: Vec<(DocId, u64)>,
    /// Their vectors, concatenated.
    words: Vec<u64>,
}

/// Holders on their way to the owners of keys.
pub(crate) struct DealtHolders {
    /// By key.
    pub(crate) by_key: Dealer<KeyHolder>,
    /// By whole vector: they show which documents are identical.
    pub(crate) by_vector: Dealer<KeyHolder>,
    partitions: u64,
}

impl DealtHolders {
    fn new(cx: &Context, watch: &Arc<Watch>) -> DealtHolders {
        let partitions = PARTITIONS * cx.peers() as u64;
        let dealer = || Dealer::new(cx.index(), partitions as usize, watch);
        DealtHolders { by_key: dealer(), by_vector: dealer(), partitions }
    }

    fn deal_by_key(&mut self, holder: KeyHolder) {
        self.by_key.deal(holder.key.partition_bits() % self.partitions, holder);
    }

    fn deal_by_vector(&mut self, holder: KeyHolder) {
        self.by_vector.deal(holder.key.partition_bits() % self.partitions, holder);
    }
}

impl SliceStep<'_> {
    /// What remains of the cluster of each changed document.
    pub(crate) fn remainders(&self, roots: &VectorRoots, remaining: &Remaining) -> Vec<Remainder> {
        let remainder = |doc: &DocId| {
            let index = self.delta.owned.index(*doc);
            match remaining.identical.get(&roots.identical[index]) {
                Some(same_vector) => Remainder::SameVector(*same_vector),
                None if remaining.similar.contains_key(&roots.similar[index]) => Remainder::Others,
                None => Remainder::None,
            }
        };
        self.changes.docs.iter().map(remainder).collect()
    }

    /// Inserts the supershingles of changed documents into the filter of every process.
    ///
    /// Supershingles that a document keeps are required only if other members of its cluster
    /// remain. If a document with the identical vector remains, it has all keys that the document
    /// keeps; if none remains, no unchanged document has one.
    pub(crate) fn insert_supershingles(
        &self,
        cx: &mut Context,
        filter: &ChangedKeys,
        remainders: &[Remainder],
    ) -> Result<()> {
        let is_one_process = self.is_one_process(cx);
        let (mut places, mut required) = (Vec::new(), Vec::new());
        let (mut all_places, mut all_required) = (Vec::new(), Vec::new());
        for (index, remainder) in remainders.iter().enumerate() {
            let old = self.changes.before(index).unwrap_or_default();
            let new = self.changes.after(index).unwrap_or_default();
            let old_of_others = if *remainder == Remainder::Others { old } else { &[] };
            let is_changed = |(column, word): &(usize, &u64)| old.get(*column) != Some(word);
            let place = |(column, word): (usize, &u64)| filter.place(column, *word);
            places.extend(self.supershingles(index, *remainder).map(place));
            required.extend(old_of_others.iter().enumerate().map(place));
            required.extend(new.iter().enumerate().filter(is_changed).map(place));
            if places.len() >= BATCH || index + 1 == self.changes.len() {
                filter.insert(&places);
                filter.require(&required);
                if !is_one_process {
                    all_places.extend_from_slice(&places);
                    all_required.extend_from_slice(&required);
                }
                places.clear();
                required.clear();
            }
        }
        self.send_places(cx, all_places, |place| filter.insert(&[place]))?;
        self.send_places(cx, all_required, |place| filter.require(&[place]))
    }

    /// The supershingles of a changed document to look for in others, each once, with its column:
    /// those of its new vector, and those of the old one if its retraction may split a cluster.
    fn supershingles(&self, index: usize, remainder: Remainder) -> impl Iterator<Item = (usize, &u64)> {
        let old = self.changes.before(index).filter(|_| remainder == Remainder::Others).unwrap_or_default();
        let new = self.changes.after(index).unwrap_or_default();
        // A supershingle that was inserted twice would count as one that two documents have.
        let is_changed = |(column, word): &(usize, &u64)| old.get(*column) != Some(word);
        old.iter().enumerate().chain(new.iter().enumerate().filter(is_changed))
    }

    /// Finds own unchanged documents that share enough supershingles with changed ones, and marks
    /// these as shared in the filter of every process.
    pub(crate) fn find_candidates(
        &self,
        cx: &mut Context,
        filter: &ChangedKeys,
        roots: &VectorRoots,
        remaining: &Remaining,
        remainders: &[Remainder],
    ) -> Result<SharingDocuments> {
        let is_one_process = self.is_one_process(cx);
        let (mut candidates, mut newly_shared) = (SharingDocuments::default(), Vec::new());
        // Of unchanged documents with identical vectors, the first has all keys that the others
        // have.
        let is_first = |doc| {
            let root = roots.identical[self.delta.owned.index(doc)];
            root == doc || remaining.identical.get(&root) == Some(&doc)
        };
        let mut add = |doc, vector: &[u64], mask: u64| {
            if !is_first(doc) {
                return;
            }
            for (column, word) in vector.iter().enumerate().filter(|(column, _)| mask >> column & 1 == 1) {
                let place = filter.place(column, *word);
                if filter.mark_shared(place) && !is_one_process {
                    newly_shared.push(place);
                }
            }
            candidates.docs.push((doc, mask));
            candidates.words.extend_from_slice(vector);
        };
        match self.delta.index {
            None => self.scan_unchanged(filter, add)?,
            Some(index) => {
                let (delta, width) = (self.delta, self.delta.after.width);
                let supershingles =
                    remainders.iter().enumerate().flat_map(|(index, remainder)| self.supershingles(index, *remainder));
                let hashes = supershingles.map(|(column, word)| Coding::hash(column, *word));
                let mut docs = index.docs_with(cx, hashes, delta.agreements, delta.owned)?;
                docs.retain(|doc| is_first(*doc) && self.changes.docs.binary_search(doc).is_err());
                let RemainingMembers { docs, words } = self.unchanged_vectors(&docs)?;
                filter.each_candidate(&words, delta.agreements as u32, &mut Vec::new(), |at, mask| {
                    add(docs[at], &words[at * width..][..width], mask);
                });
            }
        }
        self.send_places(cx, newly_shared, |place| _ = filter.mark_shared(place))?;
        Ok(candidates)
    }

    /// Calls `each` for the own unchanged documents of a scan that may share enough supershingles
    /// with changed ones: with their vectors in this step, and a bit for each column that they may
    /// share.
    fn scan_unchanged(&self, filter: &ChangedKeys, mut each: impl FnMut(DocId, &[u64], u64)) -> Result<()> {
        let slice = self.slice;
        let mut changed = self.changes.docs.iter().copied().peekable();
        self.scan(self.delta.after, filter, |doc, vector, mask| {
            while changed.next_if(|changed| *changed < doc).is_some() {}
            if changed.peek() != Some(&doc) && slice.order(doc).is_le() {
                each(doc, vector, mask);
            }
        })?;
        if slice.index + 1 < slice.count {
            self.scan(self.delta.before, filter, |doc, vector, mask| {
                if slice.order(doc).is_gt() {
                    each(doc, vector, mask);
                }
            })?;
        }
        Ok(())
    }

    /// Calls `each` for the documents of some files that may share enough supershingles with
    /// changed ones.
    fn scan(&self, files: &VectorFiles, filter: &ChangedKeys, mut each: impl FnMut(DocId, &[u64], u64)) -> Result<()> {
        let mut chunks = files.chunks_with_docs();
        let mut bits = Vec::new();
        while let Some(chunk) = chunks.next_chunk()? {
            let (words, docs) = (chunk.words(), chunk.docs());
            // Documents ascend: if the shard has the last one, it has all.
            if let Some(last) = docs.last().filter(|last| !self.delta.owned.knows(**last)) {
                bail!("features has document {last}, unknown to its shard {}: the table is damaged", chunk.shard);
            }
            filter.each_candidate(words, self.delta.agreements as u32, &mut bits, |at, mask| {
                each(docs[at], &words[at * files.width..][..files.width], mask);
            });
        }
        Ok(())
    }

    /// Deals out the documents that have a key of a changed document, and those that have the
    /// vector of one.
    pub(crate) fn deal_holders(
        &self,
        cx: &mut Context,
        filter: &ChangedKeys,
        candidates: SharingDocuments,
        roots: &VectorRoots,
        remainders: &[Remainder],
    ) -> Result<DealtHolders> {
        let delta = self.delta;
        let columns = self.shared_columns(filter, remainders);
        let keys_of = |shared: &SharedOldAndNew| delta.keys.within(shared.old) + 1 + delta.keys.within(shared.new) + 1;
        let keys: u64 = columns.iter().map(keys_of).sum();
        let keys = cx.sum(keys)?;
        let filter = filter.keys(keys);
        self.insert_keys(cx, filter, remainders, &columns)?;
        let mut dealt = DealtHolders::new(cx, cx.watch());
        self.deal_candidates(cx, filter, candidates, roots, &mut dealt)?;
        self.deal_changed(filter, roots, remainders, &columns, &mut dealt);
        Ok(dealt)
    }

    /// The supershingles of each changed document that another document may have, too.
    fn shared_columns(&self, filter: &ChangedKeys, remainders: &[Remainder]) -> Vec<SharedOldAndNew> {
        let shared = |vector: Option<&[u64]>| vector.map_or(0, |vector| filter.shared_columns(vector));
        let columns = |(index, remainder): (usize, &Remainder)| {
            let old = self.changes.before(index).filter(|_| *remainder == Remainder::Others);
            SharedOldAndNew { old: shared(old), new: shared(self.changes.after(index)) }
        };
        remainders.iter().enumerate().map(columns).collect()
    }

    /// Inserts the keys of changed documents that consist of shared supershingles into the filter
    /// of every process.
    fn insert_keys(
        &self,
        cx: &mut Context,
        filter: &KeyFilter,
        remainders: &[Remainder],
        columns: &[SharedOldAndNew],
    ) -> Result<()> {
        let is_one_process = self.is_one_process(cx);
        let (mut places, mut all_places) = (Vec::new(), Vec::new());
        for (index, (remainder, shared)) in remainders.iter().zip(columns).enumerate() {
            let old = self.delta.keys.megashingles(self.changes.before(index).unwrap_or_default(), shared.old);
            places.extend(old.map(|key| filter.place(key)));
            // A key that the document keeps was inserted with its old keys, and inserting it twice
            // would mark it as shared. If no document remains, the old keys were not inserted.
            let new = self.new_keys(index, shared.new).filter(|new| !new.kept || *remainder == Remainder::None);
            places.extend(new.map(|new| filter.place(new.key)));
            if places.len() >= BATCH || index + 1 == self.changes.len() {
                filter.insert(&places);
                if !is_one_process {
                    all_places.extend_from_slice(&places);
                }
                places.clear();
            }
        }
        self.send_places(cx, all_places, |place| filter.insert(&[place]))
    }

    /// Deals out the candidates that have keys of changed documents, and marks these keys as shared
    /// in the filter of every process.
    fn deal_candidates(
        &self,
        cx: &mut Context,
        filter: &KeyFilter,
        candidates: SharingDocuments,
        roots: &VectorRoots,
        dealt: &mut DealtHolders,
    ) -> Result<()> {
        let delta = self.delta;
        let is_one_process = self.is_one_process(cx);
        let mut limit = SendLimit::new(candidates.docs.len() as u64 * delta.keys.count() as u64);
        let mut newly_shared = Vec::new();
        for ((doc, mask), vector) in candidates.docs.iter().zip(candidates.words.chunks_exact(delta.after.width)) {
            let index = delta.owned.index(*doc);
            for (slot, key) in self.keys(vector, *mask) {
                let place = filter.place(key);
                if !filter.may_have(place) {
                    continue;
                }
                if filter.mark_shared(place) && !is_one_process {
                    newly_shared.push(place);
                }
                let holder = |root| KeyHolder::new(key, KeyRole::Unchanged, 0, *doc, root);
                if slot == WHOLE_VECTOR {
                    dealt.deal_by_vector(holder(roots.identical[index]));
                } else if limit.sends(key) {
                    dealt.deal_by_key(holder(roots.similar[index]));
                }
            }
        }
        drop((limit, candidates));
        self.send_places(cx, newly_shared, |place| _ = filter.mark_shared(place))
    }

    /// Deals out the changed documents by those of their old and new keys that another document may
    /// have.
    fn deal_changed(
        &self,
        filter: &KeyFilter,
        roots: &VectorRoots,
        remainders: &[Remainder],
        columns: &[SharedOldAndNew],
        dealt: &mut DealtHolders,
    ) {
        let keys = self.delta.keys;
        let is_shared = |key: Key| filter.may_be_shared(filter.place(key));
        for (index, (remainder, shared)) in remainders.iter().zip(columns).enumerate() {
            let doc = self.changes.docs[index];
            let root = roots.similar[self.delta.owned.index(doc)];
            let (old, new) =
                (self.changes.before(index).unwrap_or_default(), self.changes.after(index).unwrap_or_default());
            for (slot, key) in keys.numbered(old, shared.old).filter(|(_, key)| is_shared(*key)) {
                dealt.deal_by_key(KeyHolder::new(key, KeyRole::Old, slot as u32, doc, root));
            }
            let same_vector = match remainder {
                Remainder::SameVector(same_vector) => Some(*same_vector),
                _ => None,
            };
            let new_keys = self.new_keys(index, shared.new);
            for NewKey { slot, key, .. } in
                new_keys.filter(|new| is_shared(new.key) && !(new.kept && same_vector.is_some()))
            {
                let holder = KeyHolder::new(key, KeyRole::New, slot, doc, root);
                if slot == WHOLE_VECTOR {
                    dealt.deal_by_vector(holder);
                } else {
                    dealt.deal_by_key(holder);
                }
            }
            // The unchanged document with the identical vector has all keys that this document
            // keeps: one of them joins the two.
            let kept = keys.megashingles(new, self.kept_columns(index)).next();
            if let (Some(same_vector), Some(key)) = (same_vector, kept) {
                dealt.deal_by_key(KeyHolder::new(key, KeyRole::New, 0, doc, root));
                dealt.deal_by_key(KeyHolder::new(key, KeyRole::Unchanged, 0, same_vector, root));
            }
        }
    }

    /// The supershingles that a changed document keeps: a bit for each column.
    fn kept_columns(&self, index: usize) -> u64 {
        let (old, new) =
            (self.changes.before(index).unwrap_or_default(), self.changes.after(index).unwrap_or_default());
        let same = old.iter().zip(new).enumerate().filter(|(_, (old, new))| old == new);
        same.fold(0, |mask, (column, _)| mask | 1 << column)
    }

    /// The keys of the new vector of a changed document within a mask of columns, and whether the
    /// old vector had them.
    fn new_keys(&self, index: usize, mask: u64) -> impl Iterator<Item = NewKey> {
        let new = self.changes.after(index).unwrap_or_default();
        // Kept keys come in the order of all keys. The vector as a whole is never kept.
        let mut kept = self.delta.keys.megashingles(new, self.kept_columns(index) & mask).peekable();
        let new_key = move |(slot, key)| {
            let kept = slot != WHOLE_VECTOR && kept.next_if_eq(&key).is_some();
            NewKey { slot, key, kept }
        };
        self.keys(new, mask).map(new_key)
    }

    /// The keys of a vector within a mask of columns, each with its slot: first that of the whole
    /// vector, if the mask has all columns, then the megashingles.
    fn keys(&self, vector: &[u64], mask: u64) -> impl Iterator<Item = (u32, Key)> {
        let is_whole = !vector.is_empty() && mask.count_ones() as usize >= vector.len();
        let whole = is_whole.then(|| (WHOLE_VECTOR, Key::of(VECTOR_SPACE, vector)));
        let megashingles = self.delta.keys.numbered(vector, mask);
        whole.into_iter().chain(megashingles.map(|(slot, key)| (slot as u32, key)))
    }

    /// Sends places to the first worker of every other process, and calls `receive` for those that
    /// arrive. Returns when all workers have called it.
    fn send_places(&self, cx: &mut Context, places: Vec<u64>, receive: impl Fn(u64)) -> Result<()> {
        let (index, peers, threads) = (cx.index(), cx.peers(), self.delta.threads);
        let mut dealer = cx.dealer();
        let other_processes = (0..peers / threads).filter(|process| *process != index / threads);
        for process in other_processes {
            places.iter().for_each(|place| dealer.deal((process * threads) as u64, *place));
        }
        blocks(all_to_all(cx, dealer)?).into_iter().for_each(receive);
        // All received places are in the filters before any worker looks one up.
        cx.barrier()
    }

    fn is_one_process(&self, cx: &Context) -> bool {
        cx.peers() == self.delta.threads
    }
}
