//! Prefixes: the rarest columns of a row, as many as another row must share one of to be a pair
//! with it.
//!
//! Two rows that are a pair share columns of some weight. If their rarest shared column is not in
//! the prefix of one of them, then all shared columns are behind that prefix; but what is behind it
//! weighs less than the requirement asks for. So the most common columns of a row propose no pairs,
//! and none is lost (Chaudhuri, Ganti, Kaushik 2006; Xiao et al. 2008).

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::fmt;
use std::rc::Rc;
use std::sync::Arc;

use anyhow::{Result, bail};
use bytemuck::{Pod, Zeroable};
use nigh_exchange::{BlockOf, Context, Dealer, KeyRanges, Partition, RangeDealer, by_key};

use super::families::Families;
use super::requirement::Requirement;
use super::row_columns::SortedSets;
use super::stage::SetJoinStage;
use crate::records::spread;

/// Records of a partition, at most: their sorting stays in the second-level cache.
const MOST_RECORDS: u64 = 1 << 15;
/// Rows that are dealt at once, between two checks of the clock.
pub(super) const ROWS: usize = 1 << 10;
/// A column with more pairs than so many holders have is dealt to several workers, by blocks of its
/// holders.
const BLOCK: u64 = 1024;
/// The columns that a refusal names.
const NAMED: usize = 10;

/// A column in the prefix of a row.
#[derive(Clone, Copy, Pod, Zeroable)]
#[repr(C)]
struct HolderRecord {
    column: u64,
    /// The name of the row.
    name: u64,
    /// Twice the family of the row, whose pairs are not looked at; and one more if all sets of the
    /// row are old.
    family: u32,
    /// The place of the column among those in the prefixes of the sender.
    place: u32,
}

/// A holder at the owner of the column: the column, the family and the name of the row as in a
/// record, the sender and the place there.
type HolderOf = (u64, u32, u64, u32, u32);

/// The blocks of a column, on their way back to a holder.
#[derive(Clone, Copy, Pod, Zeroable)]
#[repr(C)]
struct BlocksRecord {
    place: u32,
    blocks: u32,
}

/// A column that is in the prefixes of many rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct FrequentColumn {
    /// The pairs of rows that it proposes, without those of one family.
    pub pairs: u64,
    /// The rows in whose prefixes it is.
    pub holders: u64,
    /// The smallest of their names.
    pub example: u64,
}

/// Error: a join would look at too many pairs of rows.
#[derive(Clone, Debug)]
pub struct TooManyPairs {
    /// The pairs that it would look at, at most: one with several rare elements in common counts
    /// for each.
    pub pairs: u64,
    /// The most that it may look at.
    pub most: u64,
    /// The elements that propose most of them.
    pub columns: Vec<FrequentColumn>,
}

impl fmt::Display for TooManyPairs {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let TooManyPairs { pairs, most, .. } = self;
        write!(f, "up to {pairs} pairs would be looked at, and at most {most} may be")
    }
}

impl std::error::Error for TooManyPairs {}

/// What the prefixes of all rows propose.
#[derive(Debug, Default)]
pub(super) struct Proposed {
    /// Pairs of rows that have a column in their prefixes, counted once for each such column;
    /// without known ones.
    pub pairs: u64,
    /// The columns with the most pairs, the largest first.
    pub most: Vec<FrequentColumn>,
    /// The number of own columns in prefixes.
    pub own: usize,
    /// By place among these: the blocks into which the holders of the column are dealt, if they are
    /// more than one.
    pub blocks: BTreeMap<u32, u32>,
}

impl Proposed {
    /// What the stars of all columns propose: fewer pairs than there are columns in prefixes.
    ///
    /// # Errors
    /// If a worker of this process failed.
    pub fn stars(cx: &mut Context, stage: &SetJoinStage, rows: &SortedSets) -> Result<Proposed> {
        let own: usize = rows.living().map(|row| prefix(stage.requirement, rows, row)).sum();
        let pairs = cx.sum(own as u64)?;
        Ok(Proposed { pairs, own, ..Proposed::default() })
    }

    /// The same, if the pairs are not too many.
    ///
    /// # Errors
    /// [`TooManyPairs`], at every worker.
    pub fn allowed(self, stage: &SetJoinStage) -> Result<Proposed> {
        if self.pairs > stage.max_pairs {
            bail!(TooManyPairs { pairs: self.pairs, most: stage.max_pairs, columns: self.most });
        }
        Ok(self)
    }
}

/// The length of the prefix of a row: what is behind it weighs less than any pair asks for.
pub(super) fn prefix(requirement: Requirement, rows: &SortedSets, row: usize) -> usize {
    let columns = rows.columns(row);
    let least = requirement.least(rows.sizes[row].into());
    let mut behind = 0;
    let suffix = columns.iter().rev().take_while(|column| {
        behind += u64::from(column.weight);
        behind < least
    });
    columns.len() - suffix.count()
}

/// Counts the pairs that the prefixes propose.
///
/// # Errors
/// If a worker of this process failed.
pub(super) fn proposed(
    cx: &mut Context,
    stage: &SetJoinStage,
    rows: &Arc<SortedSets>,
    families: &Rc<Families>,
) -> Result<Proposed> {
    let requirement = stage.requirement;
    let own: usize = rows.living().map(|row| prefix(requirement, rows, row)).sum();
    let all = cx.sum(own as u64)?;
    let cut = KeyRanges::new(all, MOST_RECORDS, size_of::<HolderRecord>(), 1, cx.peers(), cx.memory());
    let open = {
        let (rows, families) = (rows.clone(), families.clone());
        move || {
            let (rows, families, mut row, mut place) = (rows.clone(), families.clone(), 0, 0);
            move |deal: &mut RangeDealer<'_, HolderRecord>| {
                let end = (row + ROWS).min(rows.len());
                for row in row..end {
                    let family = families.of_row[row] << 1 | u32::from(rows.is_old(row));
                    for column in &rows.columns(row)[..prefix(requirement, &rows, row)] {
                        let record = HolderRecord { column: column.id, name: rows.names[row], family, place };
                        deal.deal(0, spread(column.id), record);
                        place += 1;
                    }
                }
                row = end;
                Ok(end < rows.len())
            }
        }
    };
    let counted = Rc::new(RefCell::new((0u64, Vec::<FrequentColumn>::new())));
    let find = {
        let counted = counted.clone();
        let mut records: Vec<HolderOf> = Vec::new();
        move |partition: &Partition<'_, HolderRecord>, dealer: &mut Dealer<BlocksRecord>| {
            records.clear();
            partition.blocks(|block| {
                let holder =
                    |record: &HolderRecord| (record.column, record.family, record.name, block.from, record.place);
                records.extend(block.records().iter().map(holder));
            })?;
            records.sort_unstable();
            let (sum, most) = &mut *counted.borrow_mut();
            for group in records.chunk_by(|a, b| a.0 == b.0) {
                let of = |count: usize| count as u64 * (count as u64).saturating_sub(1) / 2;
                // Pairs of one family, and those of old rows: known, if they are not of one family.
                let of_families: u64 = group
                    .chunk_by(|a, b| a.1 >> 1 == b.1 >> 1)
                    .filter(|same| same[0].1 > 1)
                    .map(|same| of(same.len()) - of(same.iter().filter(|holder| holder.1 & 1 == 1).count()))
                    .sum();
                let of_old = of(group.iter().filter(|holder| holder.1 & 1 == 1).count());
                let pairs = of(group.len()) - of_families - of_old;
                *sum += pairs;
                // So many holders without families have as many pairs.
                let blocks = (2 * pairs).isqrt().div_ceil(BLOCK) as u32;
                if blocks > 1 {
                    for (.., from, place) in group {
                        dealer.deal((*from).into(), BlocksRecord { place: *place, blocks });
                    }
                }
                let example = group.iter().map(|holder| holder.2).min().unwrap_or_default();
                let column = FrequentColumn { pairs, holders: group.len() as u64, example };
                if pairs > 0 && most.get(NAMED - 1).is_none_or(|least| column > *least) {
                    most.push(column);
                    most.sort_unstable_by(|a, b| b.cmp(a));
                    most.truncate(NAMED);
                }
            }
            Ok(())
        }
    };
    let blocks = Rc::new(RefCell::new(BTreeMap::new()));
    let take = {
        let blocks = blocks.clone();
        move |block: BlockOf<BlocksRecord>| {
            let of_block = block.records().iter().map(|record| (record.place, record.blocks));
            blocks.borrow_mut().extend(of_block);
        }
    };
    by_key(cx, "Holders", cut, cx.spill_buffer(), open, find, take)?;
    let (sum, most) = counted.take();
    let pairs = cx.sum(sum)?;
    let mut most = cx.sorted(most.iter().map(|most| (most.pairs, most.holders, most.example)).collect())?;
    most.reverse();
    most.truncate(NAMED);
    let most = most.into_iter().map(|(pairs, holders, example)| FrequentColumn { pairs, holders, example });
    Ok(Proposed { pairs, most: most.collect(), own, blocks: blocks.take() })
}
