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
//! 24 bits of the first supershingle's hash, 40 of the vector's, number   12 bytes, to the partition of the former
//! duplicate?, first supershingle shared?                                 2 bits back; to a duplicate also the
//!                                                                        representative's number, 8 bytes
//! ```
//!
//! With the bits of the partition, 74 bits tell vectors apart at 150 million documents and 77 at a billion: two
//! different vectors are taken for one with a chance of one in 1.7 million, or of one in 300,000.
//!
//! A page that is everywhere (a blank one, an error) would make its partition's owner the bottleneck. So a sender
//! remembers the vectors that it met lately, and keeps a vector that it meets again to itself.

use std::cell::RefCell;
use std::rc::Rc;

use anyhow::Result;
use bytemuck::{Pod, Zeroable};
use timely::dataflow::operators::Probe;
use timely::dataflow::operators::probe::Handle;
use timely::worker::Worker;

use super::answers::{Answering, Answers, answered};
use super::block::Dealer;
use super::clusters::Clustering;
use super::counters::Counters;
use super::partitions::each_partition;
use super::phase::run_to_end;
use super::ranges::{Cut, Deal, ranges};
use super::stash::Partition;
use crate::records::{fold, spread};

/// A vector, where vectors with the same first supershingle meet: three words, since records are packed.
#[derive(Clone, Copy, Debug, Pod, Zeroable)]
#[repr(C)]
struct Vectored {
    /// The low 32 bits of the key.
    low: u32,
    /// Its high 32 bits.
    high: u32,
    /// The vector's number, relative to the block's base.
    number: u32,
}

impl Vectored {
    /// The record of a vector whose hash is `vector`, and whose first supershingle's hash is `hash`.
    #[inline]
    fn new(hash: u64, vector: u64, number: u32) -> Vectored {
        Vectored { low: vector as u32, high: (hash as u32) << 8 | (vector >> 32) as u32 & 0xFF, number }
    }

    /// What identical vectors have in common: the rest of the first supershingle's hash, then bits of the vector's.
    #[inline]
    fn key(&self) -> u64 {
        u64::from(self.high) << 32 | u64::from(self.low)
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

/// What the owner of a vector hears of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Identity {
    /// The smallest vector that is the same has this number.
    Duplicate(u64),
    /// No smaller vector is the same; whether its first supershingle may be shared with another representative.
    Representative {
        /// Surely so where it is; hardly ever where it is not.
        shared: bool,
    },
}

/// Vectors of a partition, at most: see `prune`, where less is looked up.
const MOST: u64 = 3 << 16;
/// Bits of an answer.
const BITS: usize = 2;

/// Vectors that a sender met lately, and a number for each: a direct-mapped cache, in which a vector of one document
/// in a thousand is found again 98 times of 100.
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

/// Sends all own vectors where identical ones meet, and keeps what is answered.
///
/// # Errors
/// Where vectors cannot be read, or a worker of this process failed.
pub fn collapse(worker: &mut Worker, stage: &Clustering) -> Result<Identities> {
    let cut = Cut::new(stage.numbering.len(), MOST, size_of::<Vectored>(), 1, worker.peers(), stage.memory);
    let answers = Rc::new(RefCell::new(Answers::new(cut.all())));
    let (probe, kept, sending, watch) = (Handle::new(), answers.clone(), stage.clone(), &stage.watch);
    let grouped = probe.clone();
    let open = move || {
        let (mut chunks, mut recent) = (sending.files.chunks(), Recent::new());
        let (numbering, width) = (sending.numbering.clone(), sending.files.width);
        move |deal: &mut Deal<'_, Vectored>| {
            let Some(chunk) = chunks.next()? else { return Ok(false) };
            let first = numbering.first(chunk.shard) + chunk.first;
            for (number, supershingles) in (first..).zip(chunk.words().chunks_exact(width)) {
                let (hash, vector) = (spread(supershingles[0]), fold(supershingles));
                let met = recent.slot(vector);
                if met.0 != vector {
                    met.0 = vector;
                    let record = |number| Vectored::new(hash, vector, number);
                    deal.deal_relative(hash, number, record);
                }
            }
            Ok(true)
        }
    };
    let mut collapse = Collapse::default();
    let stash = stage.stash();
    worker.dataflow::<u64, _, _>(|scope| {
        let vectors = ranges(scope, "Vectors", cut, watch, open, move |range| !grouped.less_than(&(range + 1)));
        let each = move |partition: &Partition<'_, Vectored>, dealer: &mut _| collapse.answer(partition, dealer);
        answered(each_partition(vectors, "Collapse", stash, watch, each), &kept).probe_with(&probe);
    });
    run_to_end(worker, &probe, watch)?;
    Ok(Identities { cut, answers: answers.take(), recent: Recent::new() })
}

/// What was answered of all own vectors, in their order.
pub struct Identities {
    cut: Cut,
    answers: Answers,
    /// The root of each vector that was met lately.
    recent: Recent,
}

impl Identities {
    /// What was answered of the next vector, and the number of this vector.
    #[inline]
    pub fn next(&mut self, number: u64, supershingles: &[u64]) -> Identity {
        let vector = fold(supershingles);
        let met = self.recent.slot(vector);
        if met.0 == vector {
            return Identity::Duplicate(met.1);
        }
        let part = self.cut.partition(0, spread(supershingles[0]));
        let (identity, root) = match self.answers.bit_pair(part) {
            (true, _) => {
                let root = self.answers.word(part);
                (Identity::Duplicate(root), root)
            }
            (false, shared) => (Identity::Representative { shared }, number),
        };
        *met = (vector, root);
        identity
    }

    /// Whether all was taken: otherwise the vectors were others than those that were sent.
    pub fn is_read(&self) -> bool {
        self.answers.is_read()
    }
}

/// Finds identical vectors in a partition.
#[derive(Default)]
struct Collapse {
    counters: Counters,
    candidates: Vec<Candidate>,
    /// Open addressing by vector: the number of a representative plus one, or 0.
    slots: Vec<u32>,
    representatives: Vec<Representative>,
    /// Records met so far, by sender.
    met: Vec<usize>,
    answering: Answering,
}

/// A vector whose first supershingle occurs again.
struct Candidate {
    number: u64,
    sender: u32,
    /// Its place among the records of its sender.
    at: u32,
    representative: u32,
}

struct Representative {
    key: u64,
    /// The smallest of them.
    number: u64,
}

impl Collapse {
    /// Answers all records of a partition.
    fn answer(&mut self, vectors: &Partition<'_, Vectored>, dealer: &mut Dealer<u64>) -> Result<()> {
        let Collapse { counters, candidates, slots, representatives, met, answering } = self;
        counters.clear(vectors.count());
        vectors.blocks(|block| block.records().iter().for_each(|record| counters.add(record.rest())))?;
        candidates.clear();
        representatives.clear();
        met.clear();
        // A third of all vectors share their first supershingle: the table is made for half, and grows.
        let mut table = Table::new(slots, vectors.count() / 2);
        vectors.blocks(|block| {
            let sender = block.from as usize;
            if met.len() <= sender {
                met.resize(sender + 1, 0);
            }
            for (at, record) in block.records().iter().enumerate() {
                if counters.again(record.rest()) {
                    let number = block.base + u64::from(record.number);
                    let representative = table.representative(representatives, record.key(), number);
                    candidates.push(Candidate {
                        number,
                        sender: block.from,
                        at: (met[sender] + at) as u32,
                        representative,
                    });
                }
            }
            met[sender] += block.records().len();
        })?;
        counters.clear(representatives.len());
        representatives.iter().for_each(|representative| counters.add(rest_of(representative.key)));
        for (sender, met) in met.iter().enumerate() {
            answering.zeros(sender as u32, BITS * met);
        }
        for candidate in candidates.iter() {
            let Representative { key, number } = representatives[candidate.representative as usize];
            if number != candidate.number {
                answering.set(candidate.sender, BITS * candidate.at as usize);
                answering.word(candidate.sender, number);
            } else if counters.again(rest_of(key)) {
                answering.set(candidate.sender, BITS * candidate.at as usize + 1);
            }
        }
        answering.deal(vectors.part, dealer);
        Ok(())
    }
}

/// Representatives by vector.
struct Table<'a> {
    slots: &'a mut Vec<u32>,
    shift: u32,
}

impl Table<'_> {
    fn new(slots: &mut Vec<u32>, expected: usize) -> Table<'_> {
        let capacity = (expected * 2).next_power_of_two().max(16);
        slots.clear();
        slots.resize(capacity, 0);
        Table { shift: 64 - capacity.trailing_zeros(), slots }
    }

    /// Keys of a partition may have the high bits in common, and representatives their first supershingle: the low
    /// bits tell.
    #[inline]
    fn slot(&self, key: u64) -> usize {
        (spread(key) >> self.shift) as usize
    }

    /// The representative of a vector, of which the smallest number is kept.
    fn representative(&mut self, all: &mut Vec<Representative>, key: u64, number: u64) -> u32 {
        if all.len() * 2 >= self.slots.len() {
            self.grow(all);
        }
        let mut slot = self.slot(key);
        loop {
            match self.slots[slot] {
                0 => {
                    all.push(Representative { key, number });
                    self.slots[slot] = all.len() as u32;
                    return all.len() as u32 - 1;
                }
                taken => {
                    let known = &mut all[taken as usize - 1];
                    if known.key == key {
                        known.number = known.number.min(number);
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
