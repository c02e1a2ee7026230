//! Collapse: vectors that are identical become one node.
//!
//! This is the virtually-identical clustering itself (Fetterly 2004, section 2: all supershingles
//! agree), since equality needs no propagation. Every vector's sender hears whether a smaller vector is the same, and
//! which is the smallest; only those smallest ones, the *representatives*, go on to be compared.
//!
//! Identical vectors have the same first supershingle. So vectors meet by that one, and in passing their owner sees
//! which representatives share it with another: what `prune` finds out for the other supershingles.
//!
//! ```text
//! 24 bits of the first supershingle's hash, 40 of the vector's, and in
//! 16 how far it lies behind the vector of the record before it           10 bytes, to the partition of the former
//! vector, its representative's number                                    12 bytes back to a duplicate
//! vector                                                                 12 bytes back to a representative whose first
//!                                                                        supershingle is shared
//! ```
//!
//! With the bits of the partition, 74 bits tell vectors apart at 150 million documents and 77 at a billion: two
//! different vectors are taken for one with a chance of one in 1.7 million, or of one in 300,000.
//!
//! A page that is everywhere (a blank one, an error) would make its partition's owner the bottleneck. So a sender
//! remembers the vectors that it met lately, and keeps a vector that it meets again to itself.

use std::cell::RefCell;
use std::rc::Rc;

use anyhow::{Result, ensure};
use bytemuck::{Pod, Zeroable};
use timely::dataflow::operators::Probe;
use timely::dataflow::operators::probe::Handle;
use timely::worker::Worker;

use super::stage::{CHANGED, Clustering, is_expected};
use crate::kernels::memory::{SIDE_BY_SIDE, advise_huge_pages, fetch_to_write, preload};
use crate::operators::exchange::{
    Block, Dealer, KeyRanges, Partition, RangeDealer, each_partition, ranges, received, run_to_end,
};
use crate::records::{fold, spread};
use crate::structures::{BitColumns, Counters, Numbering, OwnNumbers, Ownership, RankBitmap};

/// A vector, where vectors with the same first supershingle meet: bytes, since records are packed.
#[derive(Clone, Copy, Debug, Pod, Zeroable)]
#[repr(C)]
struct Vectored {
    key: [u8; 8],
    /// How far it lies behind that of the record before it, among the own vectors of its sender.
    gap: [u8; 2],
}

impl Vectored {
    /// The record of a vector whose hash is `vector`, and whose first supershingle's hash is `hash`.
    #[inline]
    fn new(hash: u64, vector: u64, gap: u16) -> Vectored {
        let key = hash << 40 | vector & 0xFF_FFFF_FFFF;
        Vectored { key: key.to_le_bytes(), gap: gap.to_le_bytes() }
    }

    /// What identical vectors have in common: the rest of the first supershingle's hash, then bits of the vector's.
    #[inline]
    fn key(&self) -> u64 {
        u64::from_le_bytes(self.key)
    }

    #[inline]
    fn gap(&self) -> u64 {
        u16::from_le_bytes(self.gap).into()
    }

    /// Bits of the first supershingle's hash that do not tell the partition, at the top of a word.
    #[inline]
    fn rest(&self) -> u32 {
        rest_of(self.key())
    }
}

/// The rest of the first supershingle's hash in the key of a vector.
#[inline]
fn rest_of(key: u64) -> u32 {
    (key >> 32) as u32 & !0xFF
}

/// What the owner of a vector hears of it. Of others it hears nothing.
#[derive(Clone, Copy, Debug, Pod, Zeroable)]
#[repr(C)]
struct DuplicateNotice {
    /// Which of its own vectors.
    own: u32,
    /// The low 32 bits of the number of its representative, which it may be itself.
    low: u32,
    /// Its high 32 bits.
    high: u32,
}

impl DuplicateNotice {
    #[inline]
    fn new(own: u32, first: u64) -> DuplicateNotice {
        DuplicateNotice { own, low: first as u32, high: (first >> 32) as u32 }
    }

    #[inline]
    fn first(&self) -> u64 {
        u64::from(self.high) << 32 | u64::from(self.low)
    }
}

/// The base of blocks of representatives whose first supershingle is shared, surely so or nearly always, and of blocks of
/// duplicates.
const SHARED: u64 = 0;
const DUPLICATES: u64 = 1;

/// What the phase found.
pub struct Collapsed {
    /// Which own vectors are duplicates, and which of the others share their first supershingle.
    pub marks: BitColumns,
    /// The number of the smallest vector that is the same as each duplicate, in the order of these.
    pub firsts: Vec<u64>,
}

/// Vectors of a partition, at most: see `prune`.
const MOST: u64 = 3 << 16;

/// Vectors that a sender met lately, and the number of the first of each: a direct-mapped cache, in which a vector of one
/// document in a thousand is found again 98 times of 100.
struct Recent {
    slots: Vec<(u64, u64)>,
}

impl Recent {
    const SLOTS: usize = 1 << 12;

    fn new() -> Recent {
        let mut slots = vec![(0, 0); Recent::SLOTS];
        // No vector that belongs in a slot is in it: that of the hash 0 belongs in the first.
        slots[0].0 = u64::MAX;
        Recent { slots }
    }

    /// The place of a vector, by its hash; it is there if the place holds the hash.
    #[inline]
    fn slot(&mut self, vector: u64) -> &mut (u64, u64) {
        &mut self.slots[(vector >> 40) as usize % Recent::SLOTS]
    }
}

/// Finds the duplicates among all vectors, of which this worker owns some.
///
/// # Errors
/// Where vectors cannot be read, or a worker of this process failed.
pub fn collapse(worker: &mut Worker, stage: &Clustering, owned: &Ownership) -> Result<Collapsed> {
    let cut = KeyRanges::new(stage.numbering.len(), MOST, size_of::<Vectored>(), 1, worker.peers(), stage.memory);
    let heard = Rc::new(RefCell::new(CollapseReplies {
        marks: BitColumns::new(owned.len(), stage.files.width),
        duplicates: Vec::new(),
        repeated: Vec::new(),
    }));
    let (probe, sending, watch) = (Handle::new(), stage.clone(), &stage.watch);
    let (grouped, repeating, vectors) = (probe.clone(), heard.clone(), Rc::new(owned.clone()));
    let open = move || {
        let (mut chunks, mut recent, mut before) = (sending.files.chunks(), Recent::new(), 0);
        let (numbering, width, heard) = (sending.numbering.clone(), sending.files.width, repeating.clone());
        let vectors = vectors.clone();
        move |deal: &mut RangeDealer<'_, Vectored>| {
            let chunk = chunks.next()?;
            ensure!(is_expected(chunk.as_ref(), before, &vectors), CHANGED);
            let Some(chunk) = chunk else { return Ok(false) };
            let first = numbering.first(chunk.shard) + chunk.first;
            let mut heard = heard.borrow_mut();
            for (at, supershingles) in chunk.words().chunks_exact(width).enumerate() {
                let (hash, vector, number) = (spread(supershingles[0]), fold(supershingles), first + at as u64);
                let met = recent.slot(vector);
                if met.0 != vector {
                    *met = (vector, number);
                    deal.deal_gap(0, hash, (before + at) as u32, |gap| Vectored::new(hash, vector, gap));
                } else if deal.range == 0 {
                    heard.repeated.push(DuplicateNotice::new((before + at) as u32, met.1));
                }
            }
            before += chunk.rows();
            Ok(true)
        }
    };
    let mut collapse = Collapse::new(OwnNumbers::new(&stage.numbering, worker.peers()));
    let (stash, hearing) = (stage.stash(), heard.clone());
    worker.dataflow::<u64, _, _>(|scope| {
        let vectors = ranges(scope, "Vectors", cut, watch, open, move |range| !grouped.less_than(&(range + 1)));
        let each = move |partition: &Partition<'_, Vectored>, dealer: &mut _| collapse.tell(partition, dealer);
        received(each_partition(vectors, "Collapse", stash, watch, each), move |block| {
            hearing.borrow_mut().hear(block)
        })
        .probe_with(&probe);
    });
    run_to_end(worker, &probe, watch)?;
    Ok(heard.take().collapsed(&stage.numbering, owned))
}

/// What the owner of vectors has heard of them.
#[derive(Default)]
struct CollapseReplies {
    marks: BitColumns,
    /// Duplicates with their representatives, as they came.
    duplicates: Vec<Block<DuplicateNotice>>,
    /// Vectors that were not sent, each with the number of one that was, and is the same.
    repeated: Vec<DuplicateNotice>,
}

impl CollapseReplies {
    fn hear(&mut self, block: Block<DuplicateNotice>) {
        let vectors = block.records().iter().map(|told| told.own);
        if block.common == SHARED {
            self.marks.share(0, vectors);
        } else {
            self.marks.set_duplicates(vectors);
            self.duplicates.push(block);
        }
    }

    /// Puts the duplicates in order.
    fn collapsed(self, numbering: &Numbering, owned: &Ownership) -> Collapsed {
        let CollapseReplies { mut marks, duplicates, repeated } = self;
        marks.set_duplicates(repeated.iter().map(|told| told.own));
        let ranks = RankBitmap::of_bits(marks.duplicate_bits());
        let mut firsts = vec![0; ranks.len()];
        advise_huge_pages(&mut firsts);
        for block in duplicates {
            for told in block.records().chunks(SIDE_BY_SIDE) {
                let mut places = [(true, 0); SIDE_BY_SIDE];
                ranks.get_all(told.iter().map(|told| told.own as usize), &mut places);
                let places = &places[..told.len()];
                places.iter().for_each(|(_, place)| fetch_to_write(&firsts, *place));
                places.iter().zip(told).for_each(|((_, place), told)| firsts[*place] = told.first());
            }
        }
        for told in repeated {
            let same = told.first();
            let first = match ranks.get(owned.index(numbering.id(same))) {
                (true, rank) => firsts[rank],
                (false, _) => same,
            };
            firsts[ranks.get(told.own as usize).1] = first;
        }
        Collapsed { marks, firsts }
    }
}

/// Finds identical vectors in a partition.
struct Collapse {
    numbers: OwnNumbers,
    counters: Counters,
    /// Keys of vectors of a block whose first supershingle occurs again, each with its place among its sender's vectors.
    shared: Vec<(u64, u64)>,
    candidates: Vec<Candidate>,
    /// Open addressing by vector: the number of a representative plus one, or 0.
    slots: Vec<u32>,
    representatives: Vec<Representative>,
}

/// A vector whose first supershingle occurs again.
struct Candidate {
    place: VectorOrigin,
    representative: u32,
}

/// Where a vector lies: which of the own ones of its sender it is.
#[derive(Clone, Copy, PartialEq, Eq)]
struct VectorOrigin {
    sender: u32,
    own: u32,
}

struct Representative {
    key: u64,
    /// The smallest of them.
    number: u64,
    place: VectorOrigin,
}

impl Collapse {
    fn new(numbers: OwnNumbers) -> Collapse {
        Collapse {
            numbers,
            counters: Counters::default(),
            shared: Vec::new(),
            candidates: Vec::new(),
            slots: Vec::new(),
            representatives: Vec::new(),
        }
    }

    /// Tells the owners of a partition's vectors what there is to tell.
    fn tell(&mut self, vectors: &Partition<'_, Vectored>, dealer: &mut Dealer<DuplicateNotice>) -> Result<()> {
        let Collapse { numbers, counters, shared, candidates, slots, representatives } = self;
        counters.clear(vectors.count());
        vectors.blocks(|block| block.records().iter().for_each(|record| counters.add(record.rest())))?;
        candidates.clear();
        representatives.clear();
        // A third of all vectors share their first supershingle, and they are a tenth as many different ones as there are
        // vectors: the table is made for few, that it stay near the core, and grows.
        let mut table = VectorTable::new(slots, vectors.count() / 8);
        vectors.blocks(|block| {
            shared.resize(block.records().len().max(shared.len()), (0, 0));
            // No branch: a third of them are candidates.
            let (mut own, mut count) = (block.common, 0);
            for record in block.records() {
                own += record.gap();
                shared[count] = (record.key(), own);
                count += usize::from(counters.again(record.rest()));
            }
            let mut walk = numbers.walk(block.from as usize, block.common);
            for some in shared[..count].chunks(SIDE_BY_SIDE) {
                table.fetch(representatives, some);
                for (key, own) in some {
                    let place = VectorOrigin { sender: block.from, own: *own as u32 };
                    let one = Representative { key: *key, number: walk.number(*own), place };
                    candidates.push(Candidate { place, representative: table.representative(representatives, one) });
                }
            }
        })?;
        counters.clear(representatives.len());
        representatives.iter().for_each(|representative| counters.add(rest_of(representative.key)));
        let all = || candidates.iter().map(|one| (one, &representatives[one.representative as usize]));
        dealer.set_common(SHARED);
        let firsts = representatives.iter().filter(|first| counters.again(rest_of(first.key)));
        firsts.for_each(|first| {
            dealer.deal(first.place.sender.into(), DuplicateNotice::new(first.place.own, first.number))
        });
        dealer.set_common(DUPLICATES);
        for (Candidate { place, .. }, first) in all().filter(|(one, first)| one.place != first.place) {
            dealer.deal(place.sender.into(), DuplicateNotice::new(place.own, first.number));
        }
        Ok(())
    }
}

/// Representatives by vector.
struct VectorTable<'a> {
    slots: &'a mut Vec<u32>,
    shift: u32,
}

impl VectorTable<'_> {
    fn new(slots: &mut Vec<u32>, expected: usize) -> VectorTable<'_> {
        let capacity = (expected * 2).next_power_of_two().max(16);
        slots.clear();
        slots.resize(capacity, 0);
        VectorTable { shift: 64 - capacity.trailing_zeros(), slots }
    }

    /// Keys of a partition may have the high bits in common, and representatives their first supershingle: the low
    /// bits tell.
    #[inline]
    fn slot(&self, key: u64) -> usize {
        (spread(key) >> self.shift) as usize
    }

    /// Looks at the representatives of some vectors, so that the branches of `representative` wait for nothing. An empty slot
    /// looks at the first one.
    fn fetch(&self, all: &[Representative], some: &[(u64, u64)]) {
        if !all.is_empty() {
            let number = |key| all[(self.slots[self.slot(key)] as usize).saturating_sub(1)].number;
            preload(some.iter().map(|(key, _)| number(*key)));
        }
    }

    /// The representative of a vector, of which the smallest number is kept.
    fn representative(&mut self, all: &mut Vec<Representative>, one: Representative) -> u32 {
        if all.len() * 2 >= self.slots.len() {
            self.grow(all);
        }
        let mut slot = self.slot(one.key);
        loop {
            match self.slots[slot] {
                0 => {
                    all.push(one);
                    self.slots[slot] = all.len() as u32;
                    return all.len() as u32 - 1;
                }
                taken => {
                    let known = &mut all[taken as usize - 1];
                    if known.key == one.key {
                        if one.number < known.number {
                            *known = one;
                        }
                        return taken - 1;
                    }
                    slot = (slot + 1) & (self.slots.len() - 1);
                }
            }
        }
    }

    fn grow(&mut self, all: &[Representative]) {
        let capacity = self.slots.len() * 2;
        self.slots.clear();
        self.slots.resize(capacity, 0);
        self.shift -= 1;
        for (at, known) in all.iter().enumerate() {
            let mut slot = self.slot(known.key);
            while self.slots[slot] != 0 {
                slot = (slot + 1) & (capacity - 1);
            }
            self.slots[slot] = at as u32 + 1;
        }
    }
}
