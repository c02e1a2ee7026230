//! Columns: elements that the same rows have are one column, which weighs what they weigh together;
//! and each row's columns in the order in which all rows have them, the rarest first.
//!
//! ```text
//! record: hash of an element, code of its row, its place      20 bytes, to the element's partition
//! reply: that place, number of rows, sum of their codes       16 bytes, of elements of several rows
//! ```
//!
//! Two elements are in the same rows if the sums of their rows' codes are equal. So a row can put
//! them together by itself, and the sum is the id of the column.

use std::cell::RefCell;
use std::rc::Rc;

use anyhow::Result;
use bytemuck::{Pod, Zeroable};
use nigh_exchange::{BlockOf, Context, Dealer, KeyRanges, Partition, RangeDealer, by_key};

use super::alone::{ELEMENTS, is_heavy, unshared};
use super::joined_rows::RowSets;
use super::sets::WeightedSets;
use super::stage::SetJoinStage;
use crate::records::{mix, spread};

/// Records of a partition, at most: their sorting stays in the second-level cache.
const MOST_RECORDS: u64 = 1 << 15;
/// Changes names of rows to codes.
const CODES: u64 = 0x5BD1_E995_9D1B_58A3;

/// An element of a row.
#[derive(Clone, Copy, Pod, Zeroable)]
#[repr(C)]
struct ElementRecord {
    hash: [u32; 2],
    code: [u32; 2],
    place: u32,
}

/// What is known of an element after all rows have named theirs.
#[derive(Clone, Copy, Pod, Zeroable)]
#[repr(C)]
struct ColumnRecord {
    column: u64,
    place: u32,
    rows: u32,
}

/// A column of a row: 16 bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Pod, Zeroable)]
#[repr(C)]
pub(super) struct RowColumn {
    /// The number of rows that have it. Columns are in the order of this number, then of their ids.
    pub rows: u32,
    /// What it weighs in this row.
    pub weight: u32,
    /// Its id, the same in all rows.
    pub id: u64,
}

impl RowColumn {
    /// The place of the column in the order of all rows.
    pub fn rank(self) -> (u32, u64) {
        (self.rows, self.id)
    }
}

/// The rows of a worker, with their columns in order.
#[derive(Debug, Default)]
pub(super) struct SortedSets {
    /// The name of each row.
    pub names: Vec<u64>,
    /// The size of the sets of each row.
    pub sizes: Vec<u32>,
    /// What the columns of each row weigh.
    pub weights: Vec<u64>,
    /// The number of sets of each row.
    pub members: Vec<u32>,
    /// The number of old sets of each row.
    pub old: Vec<u32>,
    /// The known family of each row, or 0.
    pub known_family: Vec<u32>,
    starts: Vec<usize>,
    columns: Vec<RowColumn>,
}

impl SortedSets {
    /// The number of own sets that are numbered, rows or not.
    pub fn len(&self) -> usize {
        self.names.len()
    }

    /// The columns of a row, in order.
    pub fn columns(&self, row: usize) -> &[RowColumn] {
        &self.columns[self.starts[row]..self.starts[row + 1]]
    }

    /// The number of columns of all rows.
    pub fn column_count(&self) -> usize {
        self.columns.len()
    }

    /// Whether all sets of a row are old.
    pub fn is_old(&self, row: usize) -> bool {
        self.old[row] == self.members[row]
    }

    /// The rows that can be pairs with others.
    pub fn living(&self) -> impl Iterator<Item = usize> {
        (0..self.len()).filter(|row| self.starts[*row] < self.starts[*row + 1])
    }
}

/// The elements of the own rows, and what they became.
pub(super) struct RowElements {
    sets: WeightedSets,
    /// By place: the column of the element and the number of rows that have it; nothing if one row
    /// has it alone.
    columns: Vec<(u64, u32)>,
}

impl RowElements {
    /// The elements of a row that at least so many rows have, ascending.
    pub fn of(&self, row: usize, least: u64) -> Vec<u64> {
        let places = self.sets.places(row).filter(|place| u64::from(self.columns[*place].1) >= least);
        let mut elements: Vec<u64> = places.map(|place| self.sets.hash(place)).collect();
        elements.sort_unstable();
        elements
    }
}

/// The columns of the own rows, and the elements that they are made of. Elements of one row fall,
/// and rows that become too light.
///
/// # Errors
/// If a worker of this process failed.
pub(super) fn columns(cx: &mut Context, stage: &SetJoinStage, rows: &mut RowSets) -> Result<(SortedSets, RowElements)> {
    let own = rows.sets.elements();
    let all = cx.sum(own as u64)?;
    let cut = KeyRanges::new(all, MOST_RECORDS, size_of::<ElementRecord>(), 1, cx.peers(), cx.memory());
    let sets = Rc::new(std::mem::take(&mut rows.sets));
    let open = {
        let sets = sets.clone();
        move || {
            let (sets, mut row) = (sets.clone(), 0);
            move |deal: &mut RangeDealer<'_, ElementRecord>| {
                let mut dealt = 0;
                while dealt < ELEMENTS && row < sets.count() {
                    let code = mix(sets.name_of(row) ^ CODES);
                    for place in sets.places(row) {
                        let hash = sets.hash(place);
                        let record = ElementRecord {
                            hash: bytemuck::cast(hash),
                            code: bytemuck::cast(code),
                            place: place as u32,
                        };
                        deal.deal(0, spread(hash), record);
                        dealt += 1;
                    }
                    row += 1;
                }
                Ok(row < sets.count())
            }
        }
    };
    let mut records: Vec<(u64, u64, u32, u32)> = Vec::new();
    let find =
        move |partition: &Partition<'_, ElementRecord>, dealer: &mut Dealer<ColumnRecord>| {
            records.clear();
            partition.blocks(|block| {
                records.extend(block.records().iter().map(|record| {
                    (bytemuck::cast(record.hash), bytemuck::cast(record.code), block.from, record.place)
                }));
            })?;
            records.sort_unstable_by_key(|record| record.0);
            for group in records.chunk_by(|a, b| a.0 == b.0) {
                if group.len() > 1 {
                    let column = group.iter().fold(0u64, |sum, record| sum.wrapping_add(record.1));
                    for (_, _, from, place) in group {
                        dealer.deal((*from).into(), ColumnRecord { column, place: *place, rows: group.len() as u32 });
                    }
                }
            }
            Ok(())
        };
    let found = Rc::new(RefCell::new(vec![(0u64, 0u32); own]));
    let take = {
        let found = found.clone();
        move |block: BlockOf<ColumnRecord>| {
            let mut found = found.borrow_mut();
            block.records().iter().for_each(|record| found[record.place as usize] = (record.column, record.rows));
        }
    };
    by_key(cx, "Columns", cut, cx.spill_buffer(), open, find, take)?;
    let (sets, found) = (unshared(cx, sets), found.take());
    let is_heavy = is_heavy(stage.requirement);
    let mut left = SortedSets {
        starts: vec![0],
        members: std::mem::take(&mut rows.members),
        old: std::mem::take(&mut rows.old),
        known_family: std::mem::take(&mut rows.known_family),
        ..SortedSets::default()
    };
    let mut columns: Vec<RowColumn> = Vec::new();
    for row in 0..sets.count() {
        columns.clear();
        let places = sets.places(row).filter(|place| found[*place].1 > 0);
        columns.extend(places.map(|place| {
            let (id, rows) = found[place];
            RowColumn { rows, weight: sets.weight(place), id }
        }));
        columns.sort_unstable_by_key(|column| column.rank());
        columns.dedup_by(|next, column| {
            let is_same = next.rank() == column.rank();
            column.weight += if is_same { next.weight } else { 0 };
            is_same
        });
        let weight = columns.iter().map(|column| u64::from(column.weight)).sum();
        let is_left = is_heavy(sets.size(row), weight);
        if is_left {
            left.columns.extend_from_slice(&columns);
        }
        left.weights.push(if is_left { weight } else { 0 });
        left.starts.push(left.columns.len());
        left.names.push(sets.name_of(row));
        left.sizes.push(sets.size(row));
    }
    Ok((left, RowElements { sets, columns: found }))
}
