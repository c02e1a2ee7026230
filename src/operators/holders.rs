//! Who holds the keys of documents that changed: one pass over the vectors of those that stay.
//!
//! The supershingles and keys of changes are noted in a filter at every process; documents that stay and share enough of
//! them tell the owners of their keys, a few for each key.

use anyhow::{Result, bail};
use timely::worker::Worker;

use super::block::Dealer;
use super::chunks::VectorFiles;
use super::delta::{Delved, Step, VectorRoots};
use super::filter::Filter;
use super::gather::gather;
use super::heirs::Heirs;
use super::keyed::{Held, NEW, OLD, STAYS, blocks};
use super::round::round;
use super::sent::Sent;
use crate::records::{DocId, Key};

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
pub(super) enum Kin {
    /// Nobody: it had none, or nobody of its cluster stays.
    Nobody,
    /// Somebody has the very vector.
    Twin(DocId),
    /// Others of its cluster.
    Others,
}

/// A key of a document's new vector.
struct NewKey {
    slot: u32,
    key: Key,
    /// Whether the old vector had it, too.
    kept: bool,
}

impl Step<'_> {
    /// Who stays of the kin of each document that changed.
    pub(super) fn kin(&self, roots: &VectorRoots, heirs: &Heirs) -> Vec<Kin> {
        let kin = |doc: &DocId| {
            let own = self.stage.owned.index(*doc);
            match heirs.identical.get(&roots.identical[own]) {
                Some(twin) => Kin::Twin(*twin),
                None if heirs.similar.contains_key(&roots.similar[own]) => Kin::Others,
                None => Kin::Nobody,
            }
        };
        self.changes.docs.iter().map(kin).collect()
    }

    /// Notes the supershingles and keys of changes in the filter of every process.
    ///
    /// Where a twin stays, it holds the keys that the document keeps; where nobody stays, nobody does. So supershingles
    /// that the document keeps matter only beside others. The keys that it keeps may still be those of others that
    /// changed, and whose clusters nobody stayed in.
    pub(super) fn note(&self, worker: &mut Worker, filter: &Filter, kin: &[Kin]) -> Result<()> {
        let alone = worker.peers() == self.stage.threads;
        let (mut places, mut keys) = (Vec::new(), Vec::new());
        let (mut all_places, mut all_keys) = (Vec::new(), Vec::new());
        for (at, kin) in kin.iter().enumerate() {
            let (old, new) = (self.changes.before(at), self.changes.after(at));
            if let (Kin::Others, Some(old)) = (kin, old) {
                let all = old.iter().enumerate().map(|(column, word)| filter.place(column, *word));
                places.extend(all.flat_map(|place| [place, place + 1]));
                keys.extend(self.stage.keys.megashingles(old, u64::MAX).map(|key| filter.key_place(key)));
            }
            for (column, word) in new.into_iter().flatten().enumerate() {
                let place = filter.place(column, *word);
                places.push(place);
                if old.is_none_or(|old| old[column] != *word) {
                    places.push(place + 1);
                }
            }
            // A key that the document keeps is not one that two have.
            let noted = self.new_keys(at).filter(|new| !new.kept || *kin == Kin::Nobody);
            keys.extend(noted.map(|new| filter.key_place(new.key)));
            if places.len() >= SOME || at + 1 == self.changes.len() {
                filter.note(&places);
                filter.note_keys(&keys);
                if !alone {
                    all_places.extend_from_slice(&places);
                    all_keys.extend_from_slice(&keys);
                }
                places.clear();
                keys.clear();
            }
        }
        self.tell(worker, all_places, |place| filter.note(&[place]))?;
        self.tell(worker, all_keys, |place| filter.note_keys(&[place]))
    }

    /// The keys of the new vector of a document that changed, and which of them the old one had.
    fn new_keys(&self, at: usize) -> impl Iterator<Item = NewKey> {
        let (old, new) = (self.changes.before(at).unwrap_or_default(), self.changes.after(at).unwrap_or_default());
        let same = old.iter().zip(new).enumerate().filter(|(_, (old, new))| old == new);
        let same = same.fold(0, |mask, (column, _)| mask | 1 << column);
        // They are in the same order as all of them. The vector as a whole is another one.
        let mut kept = self.stage.keys.megashingles(new, same).peekable();
        let all = (!new.is_empty()).then(|| self.keys(new, u64::MAX));
        let told = move |(slot, key)| NewKey { slot, key, kept: slot != WHOLE && kept.next_if_eq(&key).is_some() };
        all.into_iter().flatten().map(told)
    }

    /// The keys of a vector within a mask of supershingles, each with its slot: first the vector's own, if the mask has
    /// it whole, then those of megashingles.
    fn keys(&self, vector: &[u64], mask: u64) -> impl Iterator<Item = (u32, Key)> {
        let whole = mask.count_ones() as usize >= vector.len();
        let own = whole.then(|| (WHOLE, Key::of(VECTORS, vector)));
        own.into_iter().chain((0..).zip(self.stage.keys.megashingles(vector, mask)))
    }

    /// Tells the other processes of places; returns when all have heard.
    fn tell(&self, worker: &mut Worker, places: Vec<u64>, hear: impl Fn(u64)) -> Result<()> {
        let (index, peers, threads) = (worker.index(), worker.peers(), self.stage.threads);
        let mut dealer = Dealer::new(index, peers, self.stage.watch);
        let others = (0..peers / threads).filter(|process| *process != index / threads);
        for process in others {
            places.iter().for_each(|place| dealer.deal((process * threads) as u64, *place));
        }
        blocks(round(worker, dealer, self.stage.watch)?).into_iter().for_each(hear);
        // Those who heard have noted it before anybody looks.
        gather(worker, vec![0u8], self.stage.watch).map(drop)
    }

    /// Deals out who holds the keys of changed documents, and who has their vectors.
    pub(super) fn holders(
        &self,
        worker: &mut Worker,
        filter: &Filter,
        roots: &VectorRoots,
        (heirs, kin): (&Heirs, &[Kin]),
        did: &mut Delved,
    ) -> Result<(Dealer<Held>, Dealer<Held>)> {
        let stage = self.stage;
        let parts = PARTS * worker.peers() as u64;
        let new_dealer = || Dealer::new(worker.index(), parts as usize, stage.watch);
        let (mut held, mut twins) = (new_dealer(), new_dealer());
        let mut sent = Sent::new(2 * self.changes.len() as u64 * stage.keys.count() as u64);
        let alone = worker.peers() == stage.threads;
        let mut newly = Vec::new();
        self.each_sharing(filter, |doc, vector, mask| {
            // Of those who stay and have the same vector, the first one holds all that the others hold.
            let own = stage.owned.index(doc);
            let twin = roots.identical[own];
            if twin != doc && heirs.identical.get(&twin) != Some(&doc) {
                return;
            }
            did.candidates += 1;
            for (slot, key) in self.keys(vector, mask) {
                let place = filter.key_place(key);
                if !filter.has_key(place) {
                    continue;
                }
                if filter.share(place) && !alone {
                    newly.push(place);
                }
                let record = |root| Held { key, role: STAYS, slot: 0, doc, root };
                if slot == WHOLE {
                    twins.deal(key.partition_bits() % parts, record(twin));
                } else if sent.sends(key) {
                    held.deal(key.partition_bits() % parts, record(roots.similar[own]));
                }
            }
        })?;
        drop(sent);
        self.tell(worker, newly, |place| _ = filter.share(place))?;
        for (at, kin) in kin.iter().enumerate() {
            let doc = self.changes.docs[at];
            let root = roots.similar[stage.owned.index(doc)];
            let shared = |key: Key| filter.is_shared(filter.key_place(key));
            if let (Kin::Others, Some(old)) = (kin, self.changes.before(at)) {
                let keys = (0..).zip(stage.keys.megashingles(old, u64::MAX)).filter(|(_, key)| shared(*key));
                for (slot, key) in keys {
                    held.deal(key.partition_bits() % parts, Held { key, role: OLD, slot, doc, root });
                }
            }
            // All that it keeps, the twin holds: one such key joins them.
            let mut twin = if let Kin::Twin(twin) = kin { Some(*twin) } else { None };
            for NewKey { slot, key, kept } in self.new_keys(at) {
                let joins = if kept { twin.take() } else { None };
                if joins.is_none() && (kept && matches!(kin, Kin::Twin(_)) || !shared(key)) {
                    continue;
                }
                let part = key.partition_bits() % parts;
                let dealer = if slot == WHOLE { &mut twins } else { &mut held };
                dealer.deal(part, Held { key, role: NEW, slot, doc, root });
                if let Some(twin) = joins {
                    dealer.deal(part, Held { key, role: STAYS, slot: 0, doc: twin, root });
                }
            }
        }
        Ok((held, twins))
    }

    /// Calls `each` for all own documents that did not change in this step and may share enough supershingles with those
    /// that did: with the vectors that they have then, and with which ones these are.
    fn each_sharing(&self, filter: &Filter, mut each: impl FnMut(DocId, &[u64], u64)) -> Result<()> {
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

    fn each(&self, files: &VectorFiles, filter: &Filter, mut each: impl FnMut(DocId, &[u64], u64)) -> Result<()> {
        let mut chunks = files.chunks_with_docs();
        let mut masks = Vec::new();
        while let Some(chunk) = chunks.next()? {
            let words = chunk.words();
            // Documents ascend: the last one tells of all.
            if let Some(last) = chunk.docs().last().filter(|last| !self.stage.owned.knows(**last)) {
                bail!("the features of shard {} hold the document {last}, which the shard has not", chunk.shard);
            }
            filter.masks(&words, files.width, &mut masks);
            let enough =
                masks.iter().enumerate().filter(|(_, mask)| mask.count_ones() as usize >= self.stage.agreements);
            for (at, mask) in enough {
                each(chunk.docs()[at], &words[at * files.width..][..files.width], *mask);
            }
        }
        Ok(())
    }
}
