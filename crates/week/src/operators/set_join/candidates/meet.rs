//! Meeting: the postings of an element meet at its owner, and any two become a candidate: a pair
//! that is compared. A *posting* is a set that has the element in its prefix; those of one element
//! are its entry in the inverted index.
//!
//! A popular element with n postings makes n² pairs at one worker. So its postings are split into
//! blocks. Each pair of blocks is a *cell* with its own key, and so its own worker: a posting goes
//! to the cells of its block. Sets of one family do not meet, nor do two old sets.

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

use super::prefixes::{Proposed, SETS, prefix};
use crate::operators::set_join::distinct_sets::SetLocation;
use crate::operators::set_join::families::Families;
use crate::operators::set_join::merged_elements::SortedSets;
use crate::operators::set_join::requirement::Requirement;
use crate::operators::set_join::stage::SetJoinStage;
use crate::records::{fold, mix, spread};
use crate::structures::{ExternalSort, Sortable, Sorted};

/// Records of a partition, at most: at 44 bytes each, their sorting stays in the second-level
/// cache.
const MOST_RECORDS: u64 = 1 << 14;
/// Bytes of a candidate while they are sorted.
const CANDIDATE: usize = size_of::<PairToCompare>();

/// A set that has an element in its prefix.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Pod, Zeroable)]
#[repr(C)]
struct PrefixPosting {
    /// The element, or a cell of it.
    key: [u32; 2],
    /// Which block of the cell the set is of; [`BOTH`] in a cell of one block.
    side: u32,
    /// The family of the set; [`OLD`] is added if the set is old. So the postings of a side
    /// are in the order new and old, then of families.
    family: u32,
    location: SetLocation,
    /// The halves of the name of the set.
    name: [u32; 2],
    /// The weight of this element of the set and of all that follow it.
    rest: u32,
    size: u32,
    /// The number of elements of the set.
    elements: u32,
}

/// Which sets of an element meet each other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::operators::set_join) enum Meeting {
    /// All that are not of one family.
    All,
    /// The heaviest with each other one.
    Stars,
}

/// The side of a set in a cell whose sets all meet each other.
const BOTH: u32 = 2;
/// The bit of an old set beside its family.
const OLD: u32 = 1 << 31;

/// A pair to compare. It is sent to the worker of the set with more elements; on a tie, to that of
/// the greater [`SetLocation`]. So of two processes the one with the smaller set sends it, and that
/// set is the one which is marked. Sorted by the other set.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Pod, Zeroable, Serialize, Deserialize)]
#[repr(C)]
pub(in crate::operators::set_join) struct PairToCompare {
    /// The worker of the other set.
    pub worker: u32,
    /// The number of the other set.
    pub other: u32,
    /// The own set.
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

/// The candidates of which this worker has the set with more elements, in order. A candidate comes
/// once for each element that both sets have in their prefixes.
///
/// ```text
/// for each element c:
///     for each pair (a, b) of sets that have c in their prefixes, not of one family, not both old:
///         skip if the weight left in a or b, from c on, is less than a pair of these sizes must share
///         else emit (a, b)
/// ```
///
/// # Errors
/// If a file cannot be written, or a worker of this process failed.
pub(in crate::operators::set_join) fn candidates(
    cx: &mut Context,
    stage: &SetJoinStage,
    sets: &Arc<SortedSets>,
    families: &Rc<Families>,
    proposed: Proposed,
    meeting: Meeting,
) -> Result<Sorted<PairToCompare>> {
    let (requirement, index) = (stage.requirement, cx.index() as u32);
    // Each posting of an element of `n` blocks goes to `n` cells.
    let copies: u64 = proposed.blocks.values().map(|blocks| u64::from(*blocks) - 1).sum();
    let own = proposed.own as u64 + copies;
    let all = cx.sum(own)?;
    // A range is bounded by its postings and by what they propose: the pairs of a range wait in
    // memory for the sort, and may be far more than its postings.
    let bytes = proposed.pairs.saturating_mul(CANDIDATE as u64) / cx.peers() as u64;
    let cut = KeyRanges::new(all, MOST_RECORDS, size_of::<PrefixPosting>(), 1, cx.peers(), cx.memory());
    let cut = cut.at_least(bytes.div_ceil(cx.memory().max(1)));
    let blocks = Rc::new(proposed.blocks);
    let open = {
        let (sets, families, blocks) = (sets.clone(), families.clone(), blocks.clone());
        move || {
            let mut pass = PostingPass {
                requirement,
                sets: sets.clone(),
                families: families.clone(),
                blocks: blocks.clone(),
                worker: index,
                set: 0,
                position: 0,
            };
            move |deal: &mut RangeDealer<'_, PrefixPosting>| Ok(pass.next(deal))
        }
    };
    let mut postings: Vec<PrefixPosting> = Vec::new();
    let find = move |partition: &Partition<'_, PrefixPosting>, dealer: &mut Dealer<PairToCompare>| {
        postings.clear();
        partition.blocks(|block| postings.extend_from_slice(block.records()))?;
        // By cell, side, new before old, then family: `meet_all` leaves out a family as one slice.
        postings.sort_unstable();
        for cell in postings.chunk_by(|a, b| a.key == b.key) {
            if meeting == Meeting::Stars {
                let heaviest = cell.iter().max_by_key(|posting| (posting.rest, Reverse(posting.size), posting.name));
                let Some(heaviest) = heaviest else { continue };
                let others = cell.iter().filter(|other| other.location != heaviest.location);
                others.for_each(|other| heaviest.meet(other, requirement, dealer));
                continue;
            }
            let ones = cell.partition_point(|posting| posting.side == 0);
            for (number, a) in cell.iter().enumerate() {
                // In a cell of two blocks the first side meets the second; else each set meets
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

impl PrefixPosting {
    /// Meets those of `others` that are not of its family. They are all new, or all old, in the
    /// order of families.
    #[inline]
    fn meet_all(&self, others: &[PrefixPosting], requirement: Requirement, dealer: &mut Dealer<PairToCompare>) {
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

    /// Emits the pair with another set, if it can be one.
    #[inline]
    fn meet(&self, other: &PrefixPosting, requirement: Requirement, dealer: &mut Dealer<PairToCompare>) {
        let least = requirement.least_of_pair([self.size.into(), other.size.into()]);
        if least > self.rest.min(other.rest).into() {
            return;
        }
        let (of_more, other) = if (self.elements, self.location) > (other.elements, other.location) {
            (self, other)
        } else {
            (other, self)
        };
        let candidate =
            PairToCompare { own: of_more.location.number, worker: other.location.worker, other: other.location.number };
        dealer.deal(of_more.location.worker.into(), candidate);
    }
}

/// One pass over the own sets: sends the elements of their prefixes whose partitions lie in one
/// range.
struct PostingPass {
    requirement: Requirement,
    sets: Arc<SortedSets>,
    families: Rc<Families>,
    blocks: Rc<BTreeMap<u32, u32>>,
    worker: u32,
    /// The next set.
    set: usize,
    /// The position of its first posting among those of this worker.
    position: u32,
}

impl PostingPass {
    /// Deals the elements of some sets. Returns `false` at the end of the pass.
    fn next(&mut self, deal: &mut RangeDealer<'_, PrefixPosting>) -> bool {
        let end = (self.set + SETS).min(self.sets.len());
        for set in self.set..end {
            let elements = self.sets.elements(set);
            let mut rest = self.sets.weights[set] as u32;
            let family = self.families.of_set[set] | if self.sets.is_old(set) { OLD } else { 0 };
            for element in &elements[..prefix(self.requirement, &self.sets, set)] {
                let posting = PrefixPosting {
                    key: bytemuck::cast(element.id),
                    side: BOTH,
                    location: SetLocation { worker: self.worker, number: set as u32 },
                    name: bytemuck::cast(self.sets.names[set]),
                    rest,
                    size: self.sets.sizes[set],
                    family,
                    elements: elements.len() as u32,
                };
                match self.blocks.get(&self.position) {
                    None => deal.deal(0, spread(element.id), posting),
                    Some(blocks) => deal_to_cells(deal, element.id, *blocks, self.sets.names[set], posting),
                }
                rest -= element.weight;
                self.position += 1;
            }
        }
        self.set = end;
        end < self.sets.len()
    }
}

/// Deals a posting to the cells of its block, of an element with so many blocks.
fn deal_to_cells(
    deal: &mut RangeDealer<'_, PrefixPosting>,
    element: u64,
    blocks: u32,
    name: u64,
    posting: PrefixPosting,
) {
    let own = (mix(name) % u64::from(blocks)) as u32;
    for other in 0..blocks {
        let (first, second) = (own.min(other), own.max(other));
        let key = fold(&[element, u64::from(first) << 32 | u64::from(second)]);
        let side = if own == other { BOTH } else { u32::from(own > other) };
        deal.deal(0, spread(key), PrefixPosting { key: bytemuck::cast(key), side, ..posting });
    }
}
