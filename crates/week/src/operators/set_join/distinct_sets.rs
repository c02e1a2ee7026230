//! Distinct sets: sets that are left with equal elements, and that are of the same known family or
//! of none, are *one distinct set*. Of these equal sets, its *members*, the one with the smallest
//! name stands for all.

use std::cell::RefCell;
use std::rc::Rc;

use anyhow::Result;
use bytemuck::{Pod, Zeroable};
use nigh_exchange::{BlockOf, Context, Dealer, KeyRanges, Partition, RangeDealer, by_key};

use super::alone::unshared;
use super::held::HeldSets;
use super::sets::{KnownSet, SetSource, WeightedSets};
use super::stage::SetJoinStage;
use crate::records::{Key, fold};

/// Records of a partition, at most: their sorting stays in the second-level cache.
const MOST_RECORDS: u64 = 1 << 14;
/// Sets that are dealt at once, between two checks of the clock.
const SETS: usize = 1 << 10;

/// Where a set is: its worker, and its number there.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Pod, Zeroable)]
#[repr(C)]
pub struct SetLocation {
    /// The worker.
    pub worker: u32,
    /// The number of the set at this worker.
    pub number: u32,
}

/// A set on its way to the others that have its elements.
#[derive(Clone, Copy, Pod, Zeroable)]
#[repr(C)]
struct SetRecord {
    key: Key,
    name: u64,
    number: u32,
    is_old: u32,
}

/// The distinct set of a set, on its way back.
#[derive(Clone, Copy, Pod, Zeroable)]
#[repr(C)]
struct DistinctRecord {
    /// The number of the set at the worker that has it.
    number: u32,
    /// How many members that has.
    members: u32,
    /// How many of them are old.
    old: u32,
    /// The member that stands for it.
    distinct: SetLocation,
}

/// The distinct sets of a worker.
pub(super) struct DistinctSets {
    /// The sets; a distinct one has the number of the member that stands for it.
    pub sets: WeightedSets,
    /// The number of members of each; 0 of a set that another one stands for.
    pub members: Vec<u32>,
    /// The number of old members of each.
    pub old: Vec<u32>,
    /// The known family of each, or 0.
    pub known_family: Vec<u32>,
    /// The distinct set of each kept set: see [`HeldSets`].
    pub distinct_of: Vec<SetLocation>,
}

/// Makes one distinct set of equal sets.
///
/// ```text
/// for each set s: distinct[s] = the set with the smallest name of those with the elements of s
/// ```
///
/// # Errors
/// If a worker of this process failed.
pub(super) fn distinct_sets<S: SetSource>(
    cx: &mut Context,
    stage: &SetJoinStage,
    source: &S,
    kept: &mut HeldSets,
) -> Result<DistinctSets> {
    let own = kept.sets.count();
    let all = cx.sum(own as u64)?;
    let cut = KeyRanges::new(all, MOST_RECORDS, size_of::<SetRecord>(), 1, cx.peers(), cx.memory());
    let with_sizes = stage.requirement.depends_on_sizes();
    let sets = Rc::new(std::mem::take(&mut kept.sets));
    let known = |set: &u32| if stage.has_known { source.known(*set as usize) } else { KnownSet::default() };
    let known: Rc<Vec<KnownSet>> = Rc::new(kept.numbers.iter().map(known).collect());
    let open = {
        let (sets, known) = (sets.clone(), known.clone());
        move || {
            let (sets, known, mut next, mut words) = (sets.clone(), known.clone(), 0, Vec::new());
            move |deal: &mut RangeDealer<'_, SetRecord>| {
                let end = (next + SETS).min(sets.count());
                for number in next..end {
                    let size = if with_sizes { sets.size(number) } else { 0 };
                    let KnownSet { is_old, family } = known[number];
                    let key = key_of(&sets, number, [size, family], &mut words);
                    let name = sets.name_of(number);
                    let record = SetRecord { key, name, number: number as u32, is_old: is_old.into() };
                    deal.deal(0, key.partition_bits(), record);
                }
                next = end;
                Ok(end < sets.count())
            }
        }
    };
    let mut records: Vec<(Key, u64, SetLocation, u32)> = Vec::new();
    let find = move |partition: &Partition<'_, SetRecord>, dealer: &mut Dealer<DistinctRecord>| {
        records.clear();
        partition.blocks(|block| {
            let location = |record: &SetRecord| SetLocation { worker: block.from, number: record.number };
            let of_record = |record: &SetRecord| (record.key, record.name, location(record), record.is_old);
            records.extend(block.records().iter().map(of_record));
        })?;
        records.sort_unstable();
        for equal in records.chunk_by(|a, b| a.0 == b.0) {
            let distinct = equal[0].2;
            let old = equal.iter().map(|record| record.3).sum();
            for (_, _, location, _) in equal {
                let record = DistinctRecord { number: location.number, members: equal.len() as u32, old, distinct };
                dealer.deal(location.worker.into(), record);
            }
        }
        Ok(())
    };
    let found = Rc::new(RefCell::new(vec![(SetLocation { worker: 0, number: 0 }, [0, 0]); own]));
    let take = {
        let found = found.clone();
        move |block: BlockOf<DistinctRecord>| {
            let mut found = found.borrow_mut();
            block
                .records()
                .iter()
                .for_each(|record| found[record.number as usize] = (record.distinct, [record.members, record.old]));
        }
    };
    by_key(cx, "Distinct", cut, cx.spill_buffer(), open, find, take)?;
    let sets = unshared(cx, sets);
    let known_family = known.iter().map(|known| known.family).collect();
    Ok(DistinctSets::new(cx.index() as u32, sets, known_family, found.take()))
}

impl DistinctSets {
    /// Keeps the sets that stand for themselves and their equals. They keep their numbers, so each
    /// other set leaves an empty one.
    fn new(
        worker: u32,
        sets: WeightedSets,
        known_family: Vec<u32>,
        found: Vec<(SetLocation, [u32; 2])>,
    ) -> DistinctSets {
        let own = |number: usize| found[number].0 == SetLocation { worker, number: number as u32 };
        let mut distinct = WeightedSets::default();
        for number in 0..sets.count() {
            let part = sets.set(number).filter(|_| own(number));
            distinct.push_part(sets.name_of(number), sets.size(number), part);
        }
        let counts = found.iter().enumerate().map(|(number, (_, counts))| if own(number) { *counts } else { [0, 0] });
        let (members, old) = counts.map(|[members, old]| (members, old)).unzip();
        let distinct_of = found.into_iter().map(|(location, _)| location).collect();
        DistinctSets { sets: distinct, members, old, known_family, distinct_of }
    }
}

/// A key that equal sets of equal sizes and of one known family have in common, in whatever order
/// their elements are.
fn key_of(sets: &WeightedSets, set: usize, [size, family]: [u32; 2], words: &mut Vec<u64>) -> Key {
    words.clear();
    words.extend(sets.set(set).map(|element| fold(&[element.hash, element.weight.into()])));
    words.sort_unstable();
    Key::of(u64::from(family) << 32 | u64::from(size), words)
}
