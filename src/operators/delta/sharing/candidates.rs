//! Who holds the keys of documents that changed: of the postings of supershingles, or in one pass over the vectors of those
//! that stay.
//!
//! The supershingles of changes are noted in a filter at every process, and documents that stay and share enough of them
//! are kept: postings tell whose vectors need be looked at; without them all are. Then the keys of changes are noted that
//! consist of supershingles which somebody else has; and all who hold one tell its owner, of those who stay a few for each
//! key.

use anyhow::{Result, bail};
use timely::worker::Worker;

use super::filter::{ChangedKeys, KeyFilter};
use super::key_groups::{KeyHolder, NEW, OLD, STAYS};
use super::send_limit::SendLimit;
use crate::operators::delta::splits::{Remaining, RemainingMembers};
use crate::operators::delta::step::SliceStep;
use crate::operators::exchange::{Dealer, all_gather, all_to_all, barrier, blocks};
use crate::operators::scan::{VectorFiles, VectorRoots};
use crate::records::{DocId, Key};
use crate::state::Coding;

/// Partitions of keys for each worker.
const PARTS: u64 = 8;
/// Supershingles that are noted at a time.
const SOME: usize = 1 << 10;
/// The slot of the key that is the whole vector.
const WHOLE: u32 = u32::MAX;
/// The space of the keys of whole vectors.
const VECTORS: u64 = 0x7665_6374_6f72;

/// Who of those that stay has to do with the vector that a changed document had.
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

/// Documents that stay and share supershingles with changes: which ones, by bit; and their vectors, one after the other.
#[derive(Default)]
pub(crate) struct Candidates {
    pub(crate) docs: Vec<(DocId, u64)>,
    words: Vec<u64>,
}

impl SliceStep<'_> {
    /// Who stays of the kin of each document that changed.
    pub(crate) fn kin(&self, roots: &VectorRoots, heirs: &Remaining) -> Vec<Remainder> {
        let kin = |doc: &DocId| {
            let own = self.stage.owned.index(*doc);
            match heirs.identical.get(&roots.identical[own]) {
                Some(twin) => Remainder::SameVector(*twin),
                None if heirs.similar.contains_key(&roots.similar[own]) => Remainder::Others,
                None => Remainder::None,
            }
        };
        self.changes.docs.iter().map(kin).collect()
    }

    /// The supershingles of a document that changed which somebody else may have: those of its new vector, and of the one
    /// that it had where others stay whom it may part; each once, with its place in the vector.
    fn noted(&self, at: usize, kin: Remainder) -> impl Iterator<Item = (usize, &u64)> {
        let old = self.changes.before(at).filter(|_| kin == Remainder::Others).unwrap_or_default();
        let new = self.changes.after(at).unwrap_or_default();
        // What was noted already is not noted twice: the document is not another one than itself.
        let fresh = |(column, word): &(usize, &u64)| old.get(*column) != Some(word);
        old.iter().enumerate().chain(new.iter().enumerate().filter(fresh))
    }

    /// Notes the supershingles of changes in the filter of every process.
    ///
    /// Where a twin stays, it holds the keys that the document keeps; where nobody stays, nobody does. So supershingles
    /// that the document keeps matter only beside others.
    pub(crate) fn note(&self, worker: &mut Worker, filter: &ChangedKeys, kin: &[Remainder]) -> Result<()> {
        let alone = worker.peers() == self.stage.threads;
        let (mut places, mut matter) = (Vec::new(), Vec::new());
        let (mut all_places, mut all_matter) = (Vec::new(), Vec::new());
        for (at, kin) in kin.iter().enumerate() {
            let old = self.changes.before(at).unwrap_or_default();
            let of_others = if *kin == Remainder::Others { old } else { &[] };
            let new = self.changes.after(at).unwrap_or_default();
            let place = |(column, word): (usize, &u64)| filter.place(column, *word);
            places.extend(self.noted(at, *kin).map(place));
            matter.extend(of_others.iter().enumerate().map(place));
            let changed = |(column, word): &(usize, &u64)| old.get(*column) != Some(word);
            matter.extend(new.iter().enumerate().filter(changed).map(place));
            if places.len() >= SOME || at + 1 == self.changes.len() {
                filter.note(&places);
                filter.note_matter(&matter);
                if !alone {
                    all_places.extend_from_slice(&places);
                    all_matter.extend_from_slice(&matter);
                }
                places.clear();
                matter.clear();
            }
        }
        self.tell(worker, all_places, |place| filter.note(&[place]))?;
        self.tell(worker, all_matter, |place| filter.note_matter(&[place]))
    }

    /// Own documents that stay and share enough supershingles with changes.
    pub(crate) fn candidates(
        &self,
        worker: &mut Worker,
        filter: &ChangedKeys,
        roots: &VectorRoots,
        heirs: &Remaining,
        kin: &[Remainder],
    ) -> Result<Candidates> {
        let alone = worker.peers() == self.stage.threads;
        let (mut candidates, mut newly) = (Candidates::default(), Vec::new());
        // Of those who stay and have the same vector, the first one holds all that the others hold.
        let is_first = |doc| {
            let twin = roots.identical[self.stage.owned.index(doc)];
            twin == doc || heirs.identical.get(&twin) == Some(&doc)
        };
        let mut each = |doc, vector: &[u64], mask: u64| {
            if !is_first(doc) {
                return;
            }
            for (column, word) in vector.iter().enumerate().filter(|(column, _)| mask >> column & 1 == 1) {
                let place = filter.place(column, *word);
                if filter.meet(place) && !alone {
                    newly.push(place);
                }
            }
            candidates.docs.push((doc, mask));
            candidates.words.extend_from_slice(vector);
        };
        match self.stage.index {
            None => self.each_sharing(filter, each)?,
            Some(index) => {
                let asked = kin.iter().enumerate().flat_map(|(at, kin)| self.noted(at, *kin));
                let asked = asked.map(|(column, word)| Coding::hash(column, *word));
                let (stage, watch) = (self.stage, self.stage.watch);
                let mut docs = index.holding(worker, asked, stage.agreements, stage.owned, watch)?;
                docs.retain(|doc| is_first(*doc) && self.changes.docs.binary_search(doc).is_err());
                let RemainingMembers { docs, words } = self.staying(&docs)?;
                filter.sharing(&words, stage.agreements as u32, &mut Vec::new(), |at, mask| {
                    each(docs[at], &words[at * stage.after.width..][..stage.after.width], mask);
                });
            }
        }
        self.tell(worker, newly, |place| _ = filter.meet(place))?;
        Ok(candidates)
    }

    /// Which supershingles of the old and of the new vector of each change somebody else may have; none of old ones that
    /// part nobody.
    fn met(&self, filter: &ChangedKeys, kin: &[Remainder]) -> Vec<[u64; 2]> {
        let met = |(at, kin): (usize, &Remainder)| {
            let old = self.changes.before(at).filter(|_| *kin == Remainder::Others);
            [old, self.changes.after(at)].map(|vector| vector.map_or(0, |vector| filter.met(vector)))
        };
        kin.iter().enumerate().map(met).collect()
    }

    /// Notes keys of changes, of supershingles that somebody else may have, in the filter of every process.
    fn note_keys(&self, worker: &mut Worker, filter: &KeyFilter, kin: &[Remainder], met: &[[u64; 2]]) -> Result<()> {
        let alone = worker.peers() == self.stage.threads;
        let (mut places, mut all_places) = (Vec::new(), Vec::new());
        for (at, (kin, [old_mask, new_mask])) in kin.iter().zip(met).enumerate() {
            let old = self.stage.keys.megashingles(self.changes.before(at).unwrap_or_default(), *old_mask);
            places.extend(old.map(|key| filter.place(key)));
            // A key that the document keeps is not one that two have. Who leaves nobody behind did not note it.
            let noted = self.new_keys(at, *new_mask).filter(|new| !new.kept || *kin == Remainder::None);
            places.extend(noted.map(|new| filter.place(new.key)));
            if places.len() >= SOME || at + 1 == self.changes.len() {
                filter.note(&places);
                if !alone {
                    all_places.extend_from_slice(&places);
                }
                places.clear();
            }
        }
        self.tell(worker, all_places, |place| filter.note(&[place]))
    }

    /// The supershingles of a document that changed which it keeps, by bit.
    fn kept(&self, at: usize) -> u64 {
        let (old, new) = (self.changes.before(at).unwrap_or_default(), self.changes.after(at).unwrap_or_default());
        let same = old.iter().zip(new).enumerate().filter(|(_, (old, new))| old == new);
        same.fold(0, |mask, (column, _)| mask | 1 << column)
    }

    /// The keys of the new vector of a document that changed within a mask of supershingles, and which of them the old one
    /// had.
    fn new_keys(&self, at: usize, mask: u64) -> impl Iterator<Item = NewKey> {
        let new = self.changes.after(at).unwrap_or_default();
        // They are in the same order as all of them. The vector as a whole is another one.
        let mut kept = self.stage.keys.megashingles(new, self.kept(at) & mask).peekable();
        let told = move |(slot, key)| NewKey { slot, key, kept: slot != WHOLE && kept.next_if_eq(&key).is_some() };
        self.keys(new, mask).map(told)
    }

    /// The keys of a vector within a mask of supershingles, each with its slot: first the vector's own, if the mask has
    /// it whole, then those of megashingles.
    fn keys(&self, vector: &[u64], mask: u64) -> impl Iterator<Item = (u32, Key)> {
        let whole = !vector.is_empty() && mask.count_ones() as usize >= vector.len();
        let own = whole.then(|| (WHOLE, Key::of(VECTORS, vector)));
        let numbered = self.stage.keys.numbered(vector, mask);
        own.into_iter().chain(numbered.map(|(slot, key)| (slot as u32, key)))
    }

    /// Tells the other processes of places; returns when all have heard.
    fn tell(&self, worker: &mut Worker, places: Vec<u64>, hear: impl Fn(u64)) -> Result<()> {
        let (index, peers, threads) = (worker.index(), worker.peers(), self.stage.threads);
        let mut dealer = Dealer::new(index, peers, self.stage.watch);
        let others = (0..peers / threads).filter(|process| *process != index / threads);
        for process in others {
            places.iter().for_each(|place| dealer.deal((process * threads) as u64, *place));
        }
        blocks(all_to_all(worker, dealer, self.stage.watch)?).into_iter().for_each(hear);
        // Those who heard have noted it before anybody looks.
        barrier(worker, self.stage.watch)
    }

    /// Deals out who holds the keys of changed documents, and who has their vectors.
    pub(crate) fn holders(
        &self,
        worker: &mut Worker,
        filter: &ChangedKeys,
        candidates: Candidates,
        roots: &VectorRoots,
        kin: &[Remainder],
    ) -> Result<(Dealer<KeyHolder>, Dealer<KeyHolder>)> {
        let stage = self.stage;
        let met = self.met(filter, kin);
        let within = |masks: &[u64; 2]| masks.iter().map(|mask| stage.keys.within(*mask) + 1).sum::<u64>();
        let keys = all_gather(worker, vec![(worker.index(), met.iter().map(within).sum::<u64>())], stage.watch)?;
        let filter = filter.keys(keys.iter().map(|(_, keys)| keys).sum());
        self.note_keys(worker, filter, kin, &met)?;

        let parts = PARTS * worker.peers() as u64;
        let new_dealer = || Dealer::new(worker.index(), parts as usize, stage.watch);
        let (mut held, mut twins) = (new_dealer(), new_dealer());
        let mut sent = SendLimit::new(candidates.docs.len() as u64 * stage.keys.count() as u64);
        let alone = worker.peers() == stage.threads;
        let mut newly = Vec::new();
        for ((doc, mask), vector) in candidates.docs.iter().zip(candidates.words.chunks_exact(stage.after.width)) {
            let own = stage.owned.index(*doc);
            for (slot, key) in self.keys(vector, *mask) {
                let place = filter.place(key);
                if !filter.has(place) {
                    continue;
                }
                if filter.share(place) && !alone {
                    newly.push(place);
                }
                let record = |root| KeyHolder { key, role: STAYS, slot: 0, doc: *doc, root };
                if slot == WHOLE {
                    twins.deal(key.partition_bits() % parts, record(roots.identical[own]));
                } else if sent.sends(key) {
                    held.deal(key.partition_bits() % parts, record(roots.similar[own]));
                }
            }
        }
        drop((sent, candidates));
        self.tell(worker, newly, |place| _ = filter.share(place))?;
        let shared = |key: Key| filter.is_shared(filter.place(key));
        for (at, (kin, [old_mask, new_mask])) in kin.iter().zip(&met).enumerate() {
            let doc = self.changes.docs[at];
            let root = roots.similar[stage.owned.index(doc)];
            let old = stage.keys.numbered(self.changes.before(at).unwrap_or_default(), *old_mask);
            for (slot, key) in old.filter(|(_, key)| shared(*key)) {
                held.deal(key.partition_bits() % parts, KeyHolder { key, role: OLD, slot: slot as u32, doc, root });
            }
            for NewKey { slot, key, .. } in self
                .new_keys(at, *new_mask)
                .filter(|new| shared(new.key) && !(new.kept && matches!(kin, Remainder::SameVector(_))))
            {
                let dealer = if slot == WHOLE { &mut twins } else { &mut held };
                dealer.deal(key.partition_bits() % parts, KeyHolder { key, role: NEW, slot, doc, root });
            }
            // All that it keeps, its twin holds: one such key joins them.
            let kept = stage.keys.megashingles(self.changes.after(at).unwrap_or_default(), self.kept(at)).next();
            if let (Remainder::SameVector(twin), Some(key)) = (kin, kept) {
                for (role, doc) in [(NEW, doc), (STAYS, *twin)] {
                    held.deal(key.partition_bits() % parts, KeyHolder { key, role, slot: 0, doc, root });
                }
            }
        }
        Ok((held, twins))
    }

    /// Calls `each` for all own documents that did not change in this step and may share enough supershingles with those
    /// that did: with the vectors that they have then, and with which ones these are.
    fn each_sharing(&self, filter: &ChangedKeys, mut each: impl FnMut(DocId, &[u64], u64)) -> Result<()> {
        let slice = self.slice;
        let mut changed = self.changes.docs.iter().copied().peekable();
        self.each(self.stage.after, filter, |doc, vector, mask| {
            while changed.next_if(|changed| *changed < doc).is_some() {}
            if changed.peek() != Some(&doc) && slice.of(doc).is_le() {
                each(doc, vector, mask);
            }
        })?;
        if slice.at + 1 < slice.of {
            self.each(self.stage.before, filter, |doc, vector, mask| {
                if slice.of(doc).is_gt() {
                    each(doc, vector, mask);
                }
            })?;
        }
        Ok(())
    }

    fn each(&self, files: &VectorFiles, filter: &ChangedKeys, mut each: impl FnMut(DocId, &[u64], u64)) -> Result<()> {
        let mut chunks = files.chunks_with_docs();
        let mut held = Vec::new();
        while let Some(chunk) = chunks.next()? {
            let (words, docs) = (chunk.words(), chunk.docs());
            // Documents ascend: the last one tells of all.
            if let Some(last) = docs.last().filter(|last| !self.stage.owned.knows(**last)) {
                bail!("the features of shard {} hold the document {last}, which the shard has not", chunk.shard);
            }
            filter.sharing(words, self.stage.agreements as u32, &mut held, |at, mask| {
                each(docs[at], &words[at * files.width..][..files.width], mask);
            });
        }
        Ok(())
    }
}
