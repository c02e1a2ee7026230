//! Merged elements: elements that the same distinct sets have become one *merged element*, which
//! weighs what they weigh together. Each set then has its elements in one order for all sets, the
//! rarest first.
//!
//! ```text
//! record: hash of an element, code of its set, its position   20 bytes, to the element's partition
//! reply: that position, number of sets, sum of their codes    16 bytes, of elements of several sets
//! ```
//!
//! Two elements are in the same sets if the sums of the codes of their sets are equal. So a worker
//! merges the elements of its sets by itself, and the sum is the id of the merged element.

use std::cell::RefCell;
use std::rc::Rc;

use anyhow::Result;
use bytemuck::{Pod, Zeroable};
use nigh_exchange::{BlockOf, Context, Dealer, KeyRanges, Partition, RangeDealer, by_key};

use super::alone::{ELEMENTS, is_heavy, unshared};
use super::distinct_sets::DistinctSets;
use super::sets::WeightedSets;
use super::stage::SetJoinStage;
use crate::records::{mix, spread};

/// Records of a partition, at most: their sorting stays in the second-level cache.
const MOST_RECORDS: u64 = 1 << 15;
/// Changes names of sets to codes.
const CODES: u64 = 0x5BD1_E995_9D1B_58A3;

/// An element of a distinct set.
#[derive(Clone, Copy, Pod, Zeroable)]
#[repr(C)]
struct ElementRecord {
    hash: [u32; 2],
    code: [u32; 2],
    position: u32,
}

/// What is known of an element after all sets have named theirs.
#[derive(Clone, Copy, Pod, Zeroable)]
#[repr(C)]
struct MergedRecord {
    /// The id of the merged element.
    id: u64,
    position: u32,
    sets: u32,
}

/// A merged element of a distinct set: 16 bytes. From here on, it is called an element.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Pod, Zeroable)]
#[repr(C)]
pub(super) struct MergedElement {
    /// The number of distinct sets that have it. Elements are in the order of this number, then of
    /// their ids.
    pub sets: u32,
    /// What it weighs in this set.
    pub weight: u32,
    /// Its id, the same in all sets.
    pub id: u64,
}

impl MergedElement {
    /// What elements are ordered by, in all sets: the rarest come first.
    pub fn rank(self) -> (u32, u64) {
        (self.sets, self.id)
    }
}

/// The distinct sets of a worker, with their merged elements in order.
#[derive(Debug, Default)]
pub(super) struct SortedSets {
    /// The name of each set.
    pub names: Vec<u64>,
    /// The size of each.
    pub sizes: Vec<u32>,
    /// What the elements of each weigh.
    pub weights: Vec<u64>,
    /// The number of members of each: the equal sets that it stands for.
    pub members: Vec<u32>,
    /// The number of old members of each.
    pub old: Vec<u32>,
    /// The known family of each, or 0.
    pub known_family: Vec<u32>,
    starts: Vec<usize>,
    elements: Vec<MergedElement>,
}

impl SortedSets {
    /// The number of own sets that are numbered, distinct or not.
    pub fn len(&self) -> usize {
        self.names.len()
    }

    /// The elements of a set, in order.
    pub fn elements(&self, set: usize) -> &[MergedElement] {
        &self.elements[self.starts[set]..self.starts[set + 1]]
    }

    /// The number of elements of all sets.
    pub fn element_count(&self) -> usize {
        self.elements.len()
    }

    /// Whether all members of a set are old.
    pub fn is_old(&self, set: usize) -> bool {
        self.old[set] == self.members[set]
    }

    /// The sets that can be pairs with others.
    pub fn living(&self) -> impl Iterator<Item = usize> {
        (0..self.len()).filter(|set| self.starts[*set] < self.starts[*set + 1])
    }
}

/// The elements of the own distinct sets before they were merged.
pub(super) struct UnmergedElements {
    sets: WeightedSets,
    /// By position: the merged element that it became, and the number of sets that have it; zeros
    /// if one set has it alone.
    merged: Vec<(u64, u32)>,
}

impl UnmergedElements {
    /// The elements of a set that at least so many sets have, ascending.
    pub fn of(&self, set: usize, least: u64) -> Vec<u64> {
        let positions = self.sets.positions(set).filter(|position| u64::from(self.merged[*position].1) >= least);
        let mut elements: Vec<u64> = positions.map(|position| self.sets.hash(position)).collect();
        elements.sort_unstable();
        elements
    }
}

/// The own distinct sets with their merged elements, and the elements that these are made of.
/// Elements of one set fall, and sets that become too light.
///
/// # Errors
/// If a worker of this process failed.
pub(super) fn merged(
    cx: &mut Context,
    stage: &SetJoinStage,
    distinct: &mut DistinctSets,
) -> Result<(SortedSets, UnmergedElements)> {
    let own = distinct.sets.elements();
    let all = cx.sum(own as u64)?;
    let cut = KeyRanges::new(all, MOST_RECORDS, size_of::<ElementRecord>(), 1, cx.peers(), cx.memory());
    let sets = Rc::new(std::mem::take(&mut distinct.sets));
    let open = {
        let sets = sets.clone();
        move || {
            let (sets, mut set) = (sets.clone(), 0);
            move |deal: &mut RangeDealer<'_, ElementRecord>| {
                let mut dealt = 0;
                while dealt < ELEMENTS && set < sets.count() {
                    let code = mix(sets.name_of(set) ^ CODES);
                    for position in sets.positions(set) {
                        let hash = sets.hash(position);
                        let record = ElementRecord {
                            hash: bytemuck::cast(hash),
                            code: bytemuck::cast(code),
                            position: position as u32,
                        };
                        deal.deal(0, spread(hash), record);
                        dealt += 1;
                    }
                    set += 1;
                }
                Ok(set < sets.count())
            }
        }
    };
    // By hash alone: the sum of the codes is the same in any order, and each reply names its
    // position.
    let mut records: Vec<(u64, u64, u32, u32)> = Vec::new();
    let find =
        move |partition: &Partition<'_, ElementRecord>, dealer: &mut Dealer<MergedRecord>| {
            records.clear();
            partition.blocks(|block| {
                records.extend(block.records().iter().map(|record| {
                    (bytemuck::cast(record.hash), bytemuck::cast(record.code), block.from, record.position)
                }));
            })?;
            records.sort_unstable_by_key(|record| record.0);
            for group in records.chunk_by(|a, b| a.0 == b.0) {
                if group.len() > 1 {
                    let id = group.iter().fold(0u64, |sum, record| sum.wrapping_add(record.1));
                    for (_, _, from, position) in group {
                        dealer.deal((*from).into(), MergedRecord { id, position: *position, sets: group.len() as u32 });
                    }
                }
            }
            Ok(())
        };
    // By position. No reply comes for an element of one set: it stays (0, 0), and falls below.
    let found = Rc::new(RefCell::new(vec![(0u64, 0u32); own]));
    let take = {
        let found = found.clone();
        move |block: BlockOf<MergedRecord>| {
            let mut found = found.borrow_mut();
            block.records().iter().for_each(|record| found[record.position as usize] = (record.id, record.sets));
        }
    };
    by_key(cx, "Merged", cut, cx.spill_buffer(), open, find, take)?;
    let (sets, found) = (unshared(cx, sets), found.take());
    let is_heavy = is_heavy(stage.requirement);
    let mut left = SortedSets {
        starts: vec![0],
        members: std::mem::take(&mut distinct.members),
        old: std::mem::take(&mut distinct.old),
        known_family: std::mem::take(&mut distinct.known_family),
        ..SortedSets::default()
    };
    let mut elements: Vec<MergedElement> = Vec::new();
    for set in 0..sets.count() {
        elements.clear();
        let positions = sets.positions(set).filter(|position| found[*position].1 > 0);
        elements.extend(positions.map(|position| {
            let (id, sets_with) = found[position];
            MergedElement { sets: sets_with, weight: sets.weight(position), id }
        }));
        // The rarest first, for `prefixes`. Elements that the same sets have share their rank, so
        // they are next to each other now, and become one.
        elements.sort_unstable_by_key(|element| element.rank());
        elements.dedup_by(|next, element| {
            let is_same = next.rank() == element.rank();
            element.weight += if is_same { next.weight } else { 0 };
            is_same
        });
        let weight = elements.iter().map(|element| u64::from(element.weight)).sum();
        // A set that is too light keeps its number, without elements: see `SortedSets::living`.
        let is_left = is_heavy(sets.size(set), weight);
        if is_left {
            left.elements.extend_from_slice(&elements);
        }
        left.weights.push(if is_left { weight } else { 0 });
        left.starts.push(left.elements.len());
        left.names.push(sets.name_of(set));
        left.sizes.push(sets.size(set));
    }
    Ok((left, UnmergedElements { sets, merged: found }))
}
