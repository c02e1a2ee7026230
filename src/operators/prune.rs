//! Prune: which supershingles of a vector occur in another one.
//!
//! Two documents that agree in k supershingles share each of these. So a document of which fewer than k
//! supershingles occur elsewhere has nobody to agree with, and of the others only choices of shared supershingles
//! can be shared: 0.8 records a document instead of 15 (`pairs`). Nothing need be exact: a supershingle that is taken
//! for a shared one costs a record, and no more.
//!
//! ```text
//! 24 bits of a supershingle's hash    to its partition: no document is named
//! shared?                             1 bit back, in the same order
//! ```

use std::cell::RefCell;
use std::rc::Rc;

use anyhow::{Result, ensure};
use timely::dataflow::operators::Probe;
use timely::dataflow::operators::probe::Handle;
use timely::worker::Worker;

use super::answers::{Answering, Answers, answered};
use super::block::{BLOCK_BYTES, Block, Dealer};
use super::clusters::Clustering;
use super::collapse::{Identities, Identity};
use super::counters::Counters;
use super::gather::gather;
use super::partitions::each_partition;
use super::phase::run_to_end;
use super::ranges::{Cut, Deal, ranges};
use super::stash::{Partition, Stash};
use crate::kernels::memory::huge;
use crate::records::spread;

/// Supershingles of a partition, at most. Dealing is faster to fewer partitions, and counting is to smaller ones: a
/// table beyond the second-level cache costs less than thousands of open blocks, since a look-up there waits for no
/// other.
const MOST: u64 = 3 << 18;

/// Representatives that are gone over column by column before the next ones: so few that their vectors stay near the
/// core, so many that the open blocks of a column are used often enough to stay there, too.
const AT_ONCE: usize = if cfg!(test) { 1 << 6 } else { 1 << 11 };

/// Bits of a supershingle's hash that do not tell the partition.
type Rest = [u8; 3];

#[inline]
fn rest_of(hash: u64) -> Rest {
    let [a, b, c, ..] = hash.to_le_bytes();
    [a, b, c]
}

/// The rest at the top of a word.
#[inline]
fn hash_of([a, b, c]: Rest) -> u32 {
    u32::from_le_bytes([0, a, b, c])
}

/// Own vectors that are the same as a smaller one.
#[derive(Default)]
pub struct Duplicates {
    /// Which of the own vectors they are, ascending.
    pub own: Vec<u32>,
    /// The number of the smallest vector that is the same.
    pub roots: Vec<u64>,
}

/// Representatives that may agree with others.
pub struct Survivors {
    /// Which of the own vectors they are, ascending.
    pub own: Vec<u32>,
    /// Their shared supershingles, by bit, and their supershingles: `width + 1` words for each, shard by shard. A
    /// shard is a partition of time 0.
    pub rows: Stash<u64>,
    /// How many each shard has; 0 for shards of other workers.
    pub of_shards: Vec<u64>,
    /// Records that they have under their keys.
    pub records: u64,
}

/// What is known of an own vector before other supershingles than the first are asked about.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Class {
    Duplicate,
    /// The first supershingle is its own.
    Alone,
    /// The first supershingle is shared.
    Shared,
}

/// Tells which own vectors are duplicates, and which of the others may agree with somebody in `agreements`
/// supershingles.
///
/// # Errors
/// Where vectors cannot be read, or a worker of this process failed.
pub fn prune(worker: &mut Worker, stage: &Clustering, identities: Identities) -> Result<(Duplicates, Survivors)> {
    let mut classes = Vec::with_capacity(stage.files.len() as usize);
    huge(classes.spare_capacity_mut());
    let sorting = Rc::new(RefCell::new(Sorting { identities, classes, duplicates: Duplicates::default() }));
    let width = stage.files.width;
    let cut =
        Cut::new(stage.numbering.len(), MOST, size_of::<Rest>(), (width - 1).max(1), worker.peers(), stage.memory);
    let answers = Rc::new(RefCell::new(Answers::new(cut.all())));
    let (probe, kept, sending, watch) = (Handle::new(), answers.clone(), stage.clone(), &stage.watch);
    let (grouped, sorted) = (probe.clone(), sorting.clone());
    let open = move || {
        let (mut chunks, stage, sorting) = (sending.files.chunks(), sending.clone(), sorted.clone());
        let (mut before, mut representatives) = (0, Vec::new());
        move |deal: &mut Deal<'_, Rest>| {
            let Some(chunk) = chunks.next()? else { return Ok(false) };
            let (words, mut sorting) = (chunk.words(), sorting.borrow_mut());
            if deal.range == 0 {
                let first = stage.numbering.first(chunk.shard) + chunk.first;
                for (number, supershingles) in (first..).zip(words.chunks_exact(width)) {
                    sorting.sort(number, supershingles);
                }
            }
            representatives.clear();
            representatives.extend(sorting.representatives(before, chunk.rows()));
            before += chunk.rows();
            for some in representatives.chunks(AT_ONCE) {
                for column in 1..width {
                    for row in some {
                        let hash = spread(words[*row as usize * width + column]);
                        deal.deal(column - 1, hash, rest_of(hash));
                    }
                }
            }
            Ok(true)
        }
    };
    let mut prune = Prune::default();
    let stash = stage.stash();
    worker.dataflow::<u64, _, _>(|scope| {
        let rests = ranges(scope, "Supershingles", cut, watch, open, move |range| !grouped.less_than(&(range + 1)));
        let each = move |partition: &Partition<'_, Rest>, dealer: &mut _| prune.answer(partition, dealer);
        answered(each_partition(rests, "Prune", stash, watch, each), &kept).probe_with(&probe);
    });
    run_to_end(worker, &probe, watch)?;
    let mut sorting = sorting.borrow_mut();
    ensure!(sorting.identities.is_read(), "the vectors of this week changed while they were read");
    let survivors = survivors(stage, cut, answers.take(), &sorting)?;
    sorting.classes = Vec::new();
    // Nobody goes on to what needs memory while another one still holds what this phase needed.
    gather(worker, vec![0u8], watch)?;
    Ok((std::mem::take(&mut sorting.duplicates), survivors))
}

struct Sorting {
    identities: Identities,
    classes: Vec<Class>,
    duplicates: Duplicates,
}

impl Sorting {
    #[inline]
    fn sort(&mut self, number: u64, supershingles: &[u64]) {
        let class = match self.identities.next(number, supershingles) {
            Identity::Duplicate(root) => {
                self.duplicates.own.push(self.classes.len() as u32);
                self.duplicates.roots.push(root);
                Class::Duplicate
            }
            Identity::Representative { shared: false } => Class::Alone,
            Identity::Representative { shared: true } => Class::Shared,
        };
        self.classes.push(class);
    }

    /// The rows of the representatives among `count` vectors from number `before`.
    fn representatives(&self, before: usize, count: usize) -> impl Iterator<Item = u32> {
        let classes = self.classes[before..][..count].iter();
        (0..).zip(classes).filter(|(_, class)| **class != Class::Duplicate).map(|(row, _)| row)
    }
}

/// Goes over the own vectors once more, and keeps those of which enough supershingles are shared.
fn survivors(stage: &Clustering, cut: Cut, mut answers: Answers, sorting: &Sorting) -> Result<Survivors> {
    let width = stage.files.width;
    let mut survivors = Survivors {
        own: Vec::new(),
        // Half of the memory is for the records that they will have.
        rows: Stash::new(&stage.scratch, stage.memory / 2),
        of_shards: vec![0; stage.numbering.shards()],
        records: 0,
    };
    let mut rows = Rows { words: Vec::with_capacity(Rows::WORDS), shard: 0 };
    let (mut chunks, mut before) = (stage.files.chunks(), 0);
    let (mut masks, mut representatives): (Vec<u64>, Vec<u32>) = (Vec::new(), Vec::new());
    while let Some(chunk) = chunks.next()? {
        representatives.clear();
        representatives.extend(sorting.representatives(before, chunk.rows()));
        masks.clear();
        masks.extend(representatives.iter().map(|row| match sorting.classes[before + *row as usize] {
            Class::Shared => 1,
            Class::Alone | Class::Duplicate => 0,
        }));
        let words = chunk.words();
        for (some, masks) in representatives.chunks(AT_ONCE).zip(masks.chunks_mut(AT_ONCE)) {
            for column in 1..width {
                for (row, mask) in some.iter().zip(&mut *masks) {
                    let part = cut.partition(column - 1, spread(words[*row as usize * width + column]));
                    *mask |= u64::from(answers.bit(part)) << column;
                }
            }
        }
        for (row, mask) in representatives.iter().zip(&masks) {
            if mask.count_ones() as usize >= stage.agreements {
                survivors.own.push(before as u32 + row);
                survivors.of_shards[chunk.shard as usize] += 1;
                survivors.records += stage.keys.within(*mask);
                rows.push(chunk.shard, *mask, &words[*row as usize * width..][..width], &mut survivors.rows)?;
            }
        }
        before += chunk.rows();
        if stage.watch.failed() {
            break;
        }
    }
    ensure!(answers.is_read() || stage.watch.failed(), "the vectors of this week changed while they were read");
    rows.flush(&mut survivors.rows)?;
    Ok(survivors)
}

/// Rows on their way to a stash, in blocks of whole rows.
struct Rows {
    words: Vec<u64>,
    shard: u32,
}

impl Rows {
    const WORDS: usize = BLOCK_BYTES / 8;

    #[inline]
    fn push(&mut self, shard: u32, mask: u64, supershingles: &[u64], stash: &mut Stash<u64>) -> Result<()> {
        if shard != self.shard || self.words.len() + supershingles.len() >= Rows::WORDS {
            self.flush(stash)?;
            self.shard = shard;
        }
        self.words.push(mask);
        self.words.extend_from_slice(supershingles);
        Ok(())
    }

    fn flush(&mut self, stash: &mut Stash<u64>) -> Result<()> {
        if !self.words.is_empty() {
            stash.push(0, Block::of_records(self.shard.into(), 0, 0, &self.words))?;
            self.words.clear();
        }
        Ok(())
    }
}

/// Finds shared supershingles in a partition.
#[derive(Default)]
struct Prune {
    counters: Counters,
    answering: Answering,
}

impl Prune {
    /// Answers all records of a partition.
    fn answer(&mut self, rests: &Partition<'_, Rest>, dealer: &mut Dealer<u64>) -> Result<()> {
        let Prune { counters, answering } = self;
        counters.clear(rests.count());
        rests.blocks(|block| block.records().iter().for_each(|rest| counters.add(hash_of(*rest))))?;
        rests.blocks(|block| {
            for some in block.records().chunks(64) {
                let bits =
                    some.iter().rev().fold(0, |bits, rest| bits << 1 | u64::from(counters.again(hash_of(*rest))));
                answering.bits(block.from, bits, some.len());
            }
        })?;
        answering.deal(rests.part, dealer);
        Ok(())
    }
}
