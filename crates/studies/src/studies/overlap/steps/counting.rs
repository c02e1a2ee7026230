//! Pairs by the study's own two ways, for comparison with the set join (Shivakumar and
//! Garcia-Molina 1998, sections 4.1 and 4.2).
//!
//! ```text
//! sort      for each chunk: emit all pairs of its units; sort the pairs; a pair that comes T times or more is one of the answer
//! coarse    for each chunk, for all pairs of its units: counter[hash(pair)] += 1
//!           keep a bit for each counter: whether it is T or more
//!           as sort, with the pairs whose bit is set
//! ```
//!
//! Each pair belongs to one worker, by its hash; so does each counter. The answer is exact whatever
//! the number of counters.
//!
//! Cost: the pairs of each chunk, which are the square of its units: that is what the prefixes of
//! the set join avoid. Known limit: the pairs of some thousand chunks are in memory at once.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;

use anyhow::{Result, bail};
use bytemuck::{Pod, Zeroable};
use nigh_exchange::{BlockOf, Context, Dealer, KeyRanges, Partition, RangeDealer, by_key};

use super::pairs::{PairTables, SharedPair};
use super::prefix::Found;
use crate::operators::components::OwnForest;
use crate::operators::set_join::{FrequentColumn, SetJoinStage, SetPass, SetSource, TooManyPairs};
use crate::records::{DocId, fold, mix, spread};
use crate::structures::{ExternalSort, Ownership};

/// Records of a partition, at most.
const MOST_RECORDS: u64 = 1 << 12;
/// Sets that are dealt at once, between two checks of the clock.
const SETS: usize = 256;
/// Frequent chunks that are named in a refusal.
const NAMED: usize = 10;
/// Bytes of a pair in flight, in all of its forms.
const IN_FLIGHT: u64 = 128;

/// The counters of the coarse way.
#[derive(Clone, Copy, Debug)]
pub struct Coarse {
    /// Bytes for the counters of one worker.
    pub bytes: u64,
}

/// A chunk of a unit.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Pod, Zeroable)]
#[repr(C)]
struct ChunkRecord {
    chunk: u64,
    unit: DocId,
}

/// Two units with a chunk in common; `a < b`.
#[derive(Clone, Copy, Pod, Zeroable)]
#[repr(C)]
struct CommonChunk {
    a: DocId,
    b: DocId,
}

impl CommonChunk {
    fn hash(self) -> u64 {
        mix(fold(&[self.a.to_table() as u64, self.b.to_table() as u64]))
    }
}

/// Finds all pairs of the sets of `source` that share at least `least` chunks, and adds them to
/// `tables`.
///
/// # Errors
/// [`TooManyPairs`], at every worker, before a pair is made; or if sets or files cannot be read or
/// written, or a worker of this process failed.
pub fn counted_pairs<S: SetSource + Clone + 'static>(
    cx: &mut Context,
    stage: &SetJoinStage,
    source: &S,
    least: u32,
    coarse: Option<Coarse>,
    tables: &mut PairTables,
    owned: &Ownership,
) -> Result<Found> {
    let elements = note_sizes(source, tables, owned)?;
    let all = cx.sum(elements)?;
    let cut = KeyRanges::new(all, MOST_RECORDS, size_of::<ChunkRecord>(), 1, cx.peers(), cx.memory());
    refuse_too_many(cx, stage, source, cut)?;
    let heavy = match coarse {
        None => None,
        Some(Coarse { bytes }) => {
            let counters = Rc::new(RefCell::new(vec![0u32; (bytes / 4).max(1) as usize]));
            let count = {
                let counters = counters.clone();
                move |common: CommonChunk| {
                    let mut counters = counters.borrow_mut();
                    let slot = bucket(common, counters.len());
                    counters[slot] = counters[slot].saturating_add(1);
                    Ok(())
                }
            };
            each_common_chunk(cx, source, cut, count)?;
            let counters = counters.take();
            let mut bits = vec![0u64; counters.len().div_ceil(64)];
            for (slot, _) in counters.iter().enumerate().filter(|(_, count)| **count >= least) {
                bits[slot / 64] |= 1 << (slot % 64);
            }
            Some((bits, counters.len()))
        }
    };
    let prefix = cx.scratch().join(format!("common-{}", cx.index()));
    let sort = Rc::new(RefCell::new(ExternalSort::new(&prefix, cx.memory() / 4)));
    let push = {
        let sort = sort.clone();
        move |common: CommonChunk| {
            let is_heavy = heavy.as_ref().is_none_or(|(bits, counters)| {
                let slot = bucket(common, *counters);
                bits[slot / 64] >> (slot % 64) & 1 > 0
            });
            let pair = SharedPair::new(common.a, common.b, 1);
            if is_heavy { sort.borrow_mut().push(pair) } else { Ok(()) }
        }
    };
    each_common_chunk(cx, source, cut, push)?;
    let sort = sort.replace(ExternalSort::new(&prefix, 0));
    let (mut sorted, mut forest, mut current) = (sort.sorted()?, OwnForest::default(), None::<SharedPair>);
    let most = (cx.memory() / IN_FLIGHT).max(1) as usize;
    loop {
        let (mut pairs, mut is_more) = (Vec::new(), true);
        while pairs.len() < most && is_more {
            let next = sorted.record()?;
            is_more = next.is_some();
            match (&mut current, next) {
                (Some(pair), Some(next)) if (pair.a, pair.b) == (next.a, next.b) => pair.shared += 1,
                (of, next) => {
                    if let Some(pair) = std::mem::replace(of, next).filter(|pair| pair.shared >= least) {
                        forest.join(pair.a.to_table() as u64, pair.b.to_table() as u64);
                        pairs.push(pair);
                    }
                }
            }
        }
        tables.add(cx, pairs)?;
        if !cx.any(is_more)? {
            return Ok(Found { edges: forest.into_edges(), ..Found::default() });
        }
    }
}

/// The counter of a pair. The low bits of the hash are those by which workers own pairs.
fn bucket(common: CommonChunk, counters: usize) -> usize {
    ((u128::from(common.hash()) * counters as u128) >> 64) as usize
}

/// Notes the sizes of all own units; returns the number of their chunks.
fn note_sizes<S: SetSource>(source: &S, tables: &mut PairTables, owned: &Ownership) -> Result<u64> {
    let (mut pass, mut set, mut elements) = (source.pass()?, Vec::new(), 0);
    for number in 0..source.len() {
        if pass.next(&mut set)? {
            let unit = DocId::from_table(source.name(number) as i64);
            tables.sizes[owned.index(unit)] = set.len() as u32;
            elements += set.len() as u64;
        }
    }
    Ok(elements)
}

/// Deals some more chunks; returns `false` when there were none left.
type Deals = Box<dyn FnMut(&mut RangeDealer<'_, ChunkRecord>) -> Result<bool>>;

/// Deals the chunks of all own units by their hashes.
fn open<S: SetSource + Clone + 'static>(source: &S) -> impl FnMut() -> Deals + 'static {
    let source = source.clone();
    move || {
        let (source, mut pass, mut number, mut set) = (source.clone(), None, 0, Vec::new());
        Box::new(move |deal: &mut RangeDealer<'_, ChunkRecord>| {
            let pass = match &mut pass {
                Some(pass) => pass,
                none => none.insert(source.pass()?),
            };
            for _ in 0..SETS {
                if !pass.next(&mut set)? {
                    return Ok(false);
                }
                let unit = DocId::from_table(source.name(number) as i64);
                number += 1;
                for element in &set {
                    deal.deal(0, spread(element.hash), ChunkRecord { chunk: element.hash, unit });
                }
            }
            Ok(true)
        })
    }
}

/// Calls `each` with the units of every chunk of a partition that has several, ascending.
fn each_chunk(
    partition: &Partition<'_, ChunkRecord>,
    records: &mut Vec<ChunkRecord>,
    mut each: impl FnMut(&[ChunkRecord]),
) -> Result<()> {
    records.clear();
    partition.blocks(|block| records.extend_from_slice(block.records()))?;
    records.sort_unstable();
    records.chunk_by(|a, b| a.chunk == b.chunk).filter(|units| units.len() > 1).for_each(&mut each);
    Ok(())
}

/// Counts the pairs of all chunks, and refuses too many.
fn refuse_too_many<S: SetSource + Clone + 'static>(
    cx: &mut Context,
    stage: &SetJoinStage,
    source: &S,
    cut: KeyRanges,
) -> Result<()> {
    let counted = Rc::new(RefCell::new((0u64, BTreeMap::new())));
    let find = {
        let (counted, mut records) = (counted.clone(), Vec::new());
        move |partition: &Partition<'_, ChunkRecord>, _: &mut Dealer<u8>| {
            let (sum, most) = &mut *counted.borrow_mut();
            each_chunk(partition, &mut records, |units| {
                let holders = units.len() as u64;
                let pairs = holders * (holders - 1) / 2;
                *sum += pairs;
                most.insert((pairs, holders, units[0].unit.to_table() as u64), ());
                if most.len() > NAMED {
                    most.pop_first();
                }
            })
        }
    };
    by_key(cx, "Chunks", cut, cx.spill_buffer(), open(source), find, |_: BlockOf<u8>| ())?;
    let (sum, most) = counted.take();
    let pairs = cx.sum(sum)?;
    let mut most = cx.sorted(most.into_keys().collect())?;
    if pairs > stage.max_pairs {
        most.reverse();
        most.truncate(NAMED);
        let columns = most.into_iter().map(|(pairs, holders, example)| FrequentColumn { pairs, holders, example });
        bail!(TooManyPairs { pairs, most: stage.max_pairs, columns: columns.collect() });
    }
    Ok(())
}

/// Calls `each` with all pairs of all chunks, at the worker that owns the pair.
fn each_common_chunk<S: SetSource + Clone + 'static>(
    cx: &mut Context,
    source: &S,
    cut: KeyRanges,
    mut each: impl FnMut(CommonChunk) -> Result<()> + 'static,
) -> Result<()> {
    let (peers, mut records) = (cx.peers() as u64, Vec::new());
    let find = move |partition: &Partition<'_, ChunkRecord>, dealer: &mut Dealer<CommonChunk>| {
        each_chunk(partition, &mut records, |units| {
            for (number, a) in units.iter().enumerate() {
                for b in &units[number + 1..] {
                    let common = CommonChunk { a: a.unit, b: b.unit };
                    dealer.deal(common.hash() % peers, common);
                }
            }
        })
    };
    let watch = cx.watch().clone();
    let take = move |block: BlockOf<CommonChunk>| {
        let taken = block.records().iter().try_for_each(|common| each(*common));
        watch.check(taken);
    };
    by_key(cx, "Common", cut, cx.spill_buffer(), open(source), find, take)
}
