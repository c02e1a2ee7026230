//! Meeting: rows that have a column in their prefixes meet at its owner, and become candidates:
//! pairs that are compared.
//!
//! A column of many holders would be the work of one worker, and its pairs are the square of its
//! holders. They are dealt into blocks, and each pair of blocks is a *cell* with a key of its own:
//! a row goes to the cells of its block. Rows of one family do not meet, nor do two old rows.

use std::cell::RefCell;
use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::path::Path;
use std::rc::Rc;
use std::sync::Arc;

use anyhow::Result;
use bytemuck::{Pod, Zeroable};
use nigh_exchange::{BlockOf, Context, Dealer, KeyRanges, Partition, RangeDealer, by_key};
use serde::{Deserialize, Serialize};

use super::families::Families;
use super::joined_rows::SetPlace;
use super::prefixes::{Proposed, ROWS, prefix};
use super::requirement::Requirement;
use super::row_columns::SortedSets;
use super::stage::SetJoinStage;
use crate::records::{fold, mix, spread};
use crate::structures::{ExternalSort, Sortable, Sorted};

/// Records of a partition, at most: their sorting stays in the second-level cache.
const MOST_RECORDS: u64 = 1 << 14;
/// Bytes of a candidate while they are sorted.
const CANDIDATE: usize = size_of::<PairToCompare>();

/// A row at one of its columns.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Pod, Zeroable)]
#[repr(C)]
struct Holder {
    /// The column, or a cell of it.
    key: [u32; 2],
    /// Which block of the cell the row is of; [`BOTH`] in a cell of one block.
    side: u32,
    /// The family of the row; [`OLD`] is added if all sets of the row are old. So the holders of a
    /// side are in the order new and old, then of families.
    family: u32,
    place: SetPlace,
    /// The halves of the name of the row.
    name: [u32; 2],
    /// The weight of this column of the row and of those behind it.
    rest: u32,
    size: u32,
    /// The number of columns of the row.
    columns: u32,
}

/// Which rows of a column meet each other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Meeting {
    /// All that are not of one family.
    All,
    /// The heaviest with each other one.
    Stars,
}

/// The side of a row in a cell whose rows all meet each other.
const BOTH: u32 = 2;
/// The bit of an old row beside its family.
const OLD: u32 = 1 << 31;

/// A pair to compare, at the worker of the row with more columns; on a tie, at that of the greater
/// [`SetPlace`]. Those of one other row follow each other.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Pod, Zeroable, Serialize, Deserialize)]
#[repr(C)]
pub(super) struct PairToCompare {
    /// The worker of the other row.
    pub worker: u32,
    /// The number of the other row.
    pub other: u32,
    /// The own row.
    pub own: u32,
}

impl Sortable for PairToCompare {
    /// The fields in their order, in fewer comparisons.
    type Key = (u64, u32);

    fn key(&self) -> (u64, u32) {
        (u64::from(self.worker) << 32 | u64::from(self.other), self.own)
    }

    fn weight(&self) -> usize {
        CANDIDATE
    }
}

/// The candidates of which this worker has the row with more columns, in order. A candidate of
/// several columns comes several times.
///
/// ```text
/// for each column c:
///     for each pair (a, b) of rows that have c in their prefixes, not of one family, not both old:
///         if a pair of their sizes can share as little as what is left of a and of b from c on: emit (a, b)
/// ```
///
/// # Errors
/// If a file cannot be written, or a worker of this process failed.
pub(super) fn candidates(
    cx: &mut Context,
    stage: &SetJoinStage,
    rows: &Arc<SortedSets>,
    families: &Rc<Families>,
    proposed: Proposed,
    meeting: Meeting,
) -> Result<Sorted<PairToCompare>> {
    let (requirement, index) = (stage.requirement, cx.index() as u32);
    // Each holder of a column of `n` blocks goes to `n` cells.
    let copies: u64 = proposed.blocks.values().map(|blocks| u64::from(*blocks) - 1).sum();
    let own = proposed.own as u64 + copies;
    let all = cx.sum(own)?;
    // A range is bounded by its holders and by what they propose.
    let bytes = proposed.pairs.saturating_mul(CANDIDATE as u64) / cx.peers() as u64;
    let cut = KeyRanges::new(all, MOST_RECORDS, size_of::<Holder>(), 1, cx.peers(), cx.memory());
    let cut = cut.at_least(bytes.div_ceil(cx.memory().max(1)));
    let blocks = Rc::new(proposed.blocks);
    let open = {
        let (rows, families, blocks) = (rows.clone(), families.clone(), blocks.clone());
        move || {
            let mut pass = HolderPass {
                requirement,
                rows: rows.clone(),
                families: families.clone(),
                blocks: blocks.clone(),
                worker: index,
                row: 0,
                place: 0,
            };
            move |deal: &mut RangeDealer<'_, Holder>| Ok(pass.next(deal))
        }
    };
    let mut holders: Vec<Holder> = Vec::new();
    let find = move |partition: &Partition<'_, Holder>, dealer: &mut Dealer<PairToCompare>| {
        holders.clear();
        partition.blocks(|block| holders.extend_from_slice(block.records()))?;
        holders.sort_unstable();
        for cell in holders.chunk_by(|a, b| a.key == b.key) {
            if meeting == Meeting::Stars {
                let heaviest = cell.iter().max_by_key(|holder| (holder.rest, Reverse(holder.size), holder.name));
                let Some(heaviest) = heaviest else { continue };
                let others = cell.iter().filter(|other| other.place != heaviest.place);
                others.for_each(|other| heaviest.meet(other, requirement, dealer));
                continue;
            }
            let ones = cell.partition_point(|holder| holder.side == 0);
            for (number, a) in cell.iter().enumerate() {
                // In a cell of two blocks the first side meets the second; else each row meets
                // those behind it.
                let others = match a.side {
                    0 => &cell[ones..],
                    BOTH => &cell[number + 1..],
                    _ => &[],
                };
                let (new, old) = others.split_at(others.partition_point(|other| other.family < OLD));
                a.meet_all(new, requirement, dealer);
                if a.family < OLD {
                    a.meet_all(old, requirement, dealer);
                }
            }
        }
        Ok(())
    };
    let (folder, memory) = (cx.scratch().join(format!("candidates-{index}")), cx.memory());
    let sort = Rc::new(RefCell::new(sort_in(&folder, memory)));
    let take = {
        let (sort, watch) = (sort.clone(), cx.watch().clone());
        move |block: BlockOf<PairToCompare>| {
            let mut sort = sort.borrow_mut();
            watch.check(block.records().iter().try_for_each(|candidate| sort.push(*candidate)));
        }
    };
    by_key(cx, "Meet", cut, cx.spill_buffer(), open, find, take)?;
    sort.replace(sort_in(&folder, memory)).sorted()
}

fn sort_in(folder: &Path, memory: u64) -> ExternalSort<PairToCompare> {
    ExternalSort::new(folder, memory)
}

impl Holder {
    /// Meets those of `others` that are not of its family. They are all new, or all old, in the
    /// order of families.
    #[inline]
    fn meet_all(&self, others: &[Holder], requirement: Requirement, dealer: &mut Dealer<PairToCompare>) {
        let family = self.family & !OLD;
        let (before, behind) = if family == 0 {
            (others, &[][..])
        } else {
            let start = others.partition_point(|other| other.family & !OLD < family);
            let end = others.partition_point(|other| other.family & !OLD <= family);
            (&others[..start], &others[end..])
        };
        before.iter().chain(behind).for_each(|other| self.meet(other, requirement, dealer));
    }

    /// Emits the pair with another row, if it can be one.
    #[inline]
    fn meet(&self, other: &Holder, requirement: Requirement, dealer: &mut Dealer<PairToCompare>) {
        let least = requirement.least_of_pair([self.size.into(), other.size.into()]);
        if least > self.rest.min(other.rest).into() {
            return;
        }
        let (of_more, other) =
            if (self.columns, self.place) > (other.columns, other.place) { (self, other) } else { (other, self) };
        let candidate =
            PairToCompare { own: of_more.place.number, worker: other.place.worker, other: other.place.number };
        dealer.deal(of_more.place.worker.into(), candidate);
    }
}

/// One pass over the own rows: sends the columns of their prefixes whose partitions lie in one
/// range.
struct HolderPass {
    requirement: Requirement,
    rows: Arc<SortedSets>,
    families: Rc<Families>,
    blocks: Rc<BTreeMap<u32, u32>>,
    worker: u32,
    /// The next row.
    row: usize,
    /// The place of its first column among those of all prefixes.
    place: u32,
}

impl HolderPass {
    /// Deals the columns of some rows. Returns `false` at the end of the pass.
    fn next(&mut self, deal: &mut RangeDealer<'_, Holder>) -> bool {
        let end = (self.row + ROWS).min(self.rows.len());
        for row in self.row..end {
            let columns = self.rows.columns(row);
            let mut rest = self.rows.weights[row] as u32;
            let family = self.families.of_row[row] | if self.rows.is_old(row) { OLD } else { 0 };
            for column in &columns[..prefix(self.requirement, &self.rows, row)] {
                let holder = Holder {
                    key: bytemuck::cast(column.id),
                    side: BOTH,
                    place: SetPlace { worker: self.worker, number: row as u32 },
                    name: bytemuck::cast(self.rows.names[row]),
                    rest,
                    size: self.rows.sizes[row],
                    family,
                    columns: columns.len() as u32,
                };
                match self.blocks.get(&self.place) {
                    None => deal.deal(0, spread(column.id), holder),
                    Some(blocks) => deal_to_cells(deal, column.id, *blocks, self.rows.names[row], holder),
                }
                rest -= column.weight;
                self.place += 1;
            }
        }
        self.row = end;
        end < self.rows.len()
    }
}

/// Deals a row to the cells of its block of a column with so many blocks.
fn deal_to_cells(deal: &mut RangeDealer<'_, Holder>, column: u64, blocks: u32, name: u64, holder: Holder) {
    let own = (mix(name) % u64::from(blocks)) as u32;
    for other in 0..blocks {
        let (first, second) = (own.min(other), own.max(other));
        let key = fold(&[column, u64::from(first) << 32 | u64::from(second)]);
        let side = if own == other { BOTH } else { u32::from(own > other) };
        deal.deal(0, spread(key), Holder { key: bytemuck::cast(key), side, ..holder });
    }
}
