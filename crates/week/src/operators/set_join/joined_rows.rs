//! Rows: sets that are left with equal elements, and that are of the same known family or of none,
//! are one row. The smallest name among them is that of the row, and its set goes on alone.

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
pub struct SetPlace {
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

/// The row of a set, on its way back.
#[derive(Clone, Copy, Pod, Zeroable)]
#[repr(C)]
struct RowRecord {
    /// The number of the set at the worker that has it.
    number: u32,
    /// How many sets the row has.
    members: u32,
    /// How many of them are old.
    old: u32,
    /// The set that stands for the row.
    row: SetPlace,
}

/// The sets that stand for rows, and what each row has.
pub(super) struct RowSets {
    /// The sets; a row has the number of its set.
    pub sets: WeightedSets,
    /// The number of sets of each row.
    pub members: Vec<u32>,
    /// The number of old sets of each row.
    pub old: Vec<u32>,
    /// The known family of each row, or 0.
    pub known_family: Vec<u32>,
    /// The row of each kept set: see [`HeldSets`].
    pub row_of: Vec<SetPlace>,
}

/// Joins equal sets to rows.
///
/// ```text
/// for each set s: row[s] = the set with the smallest name of those with the elements of s
/// ```
///
/// # Errors
/// If a worker of this process failed.
pub(super) fn rows<S: SetSource>(
    cx: &mut Context,
    stage: &SetJoinStage,
    source: &S,
    kept: &mut HeldSets,
) -> Result<RowSets> {
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
    let mut records: Vec<(Key, u64, SetPlace, u32)> = Vec::new();
    let find = move |partition: &Partition<'_, SetRecord>, dealer: &mut Dealer<RowRecord>| {
        records.clear();
        partition.blocks(|block| {
            let place = |record: &SetRecord| SetPlace { worker: block.from, number: record.number };
            let of_record = |record: &SetRecord| (record.key, record.name, place(record), record.is_old);
            records.extend(block.records().iter().map(of_record));
        })?;
        records.sort_unstable();
        for equal in records.chunk_by(|a, b| a.0 == b.0) {
            let row = equal[0].2;
            let old = equal.iter().map(|record| record.3).sum();
            for (_, _, place, _) in equal {
                let record = RowRecord { number: place.number, members: equal.len() as u32, old, row };
                dealer.deal(place.worker.into(), record);
            }
        }
        Ok(())
    };
    let found = Rc::new(RefCell::new(vec![(SetPlace { worker: 0, number: 0 }, [0, 0]); own]));
    let take = {
        let found = found.clone();
        move |block: BlockOf<RowRecord>| {
            let mut found = found.borrow_mut();
            block
                .records()
                .iter()
                .for_each(|record| found[record.number as usize] = (record.row, [record.members, record.old]));
        }
    };
    by_key(cx, "Rows", cut, cx.spill_buffer(), open, find, take)?;
    let sets = unshared(cx, sets);
    let known_family = known.iter().map(|known| known.family).collect();
    Ok(RowSets::new(cx.index() as u32, sets, known_family, found.take()))
}

impl RowSets {
    /// Keeps the sets that stand for rows. The numbers of rows are those of sets, so a set of
    /// another row leaves an empty place.
    fn new(worker: u32, sets: WeightedSets, known_family: Vec<u32>, found: Vec<(SetPlace, [u32; 2])>) -> RowSets {
        let own = |number: usize| found[number].0 == SetPlace { worker, number: number as u32 };
        let mut rows = WeightedSets::default();
        for number in 0..sets.count() {
            let part = sets.set(number).filter(|_| own(number));
            rows.push_part(sets.name_of(number), sets.size(number), part);
        }
        let counts = found.iter().enumerate().map(|(number, (_, counts))| if own(number) { *counts } else { [0, 0] });
        let (members, old) = counts.map(|[members, old]| (members, old)).unzip();
        RowSets { sets: rows, members, old, known_family, row_of: found.into_iter().map(|(row, _)| row).collect() }
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
