//! Prefixes: the rarest elements of a set, as many as another set must share one of to be a pair
//! with it.
//!
//! Two sets that are a pair share elements of some weight. If their rarest shared element is not in
//! the prefix of one of them, then all shared elements follow that prefix; but what follows it
//! weighs less than the requirement asks for. So the most common elements of a set propose no
//! pairs, and none is lost (Chaudhuri, Ganti, Kaushik 2006; Xiao et al. 2008).

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::fmt;
use std::rc::Rc;
use std::sync::Arc;

use anyhow::{Result, bail};
use bytemuck::{Pod, Zeroable};
use nigh_exchange::{BlockOf, Context, Dealer, KeyRanges, Partition, RangeDealer, by_key};

use crate::operators::set_join::families::Families;
use crate::operators::set_join::merged_elements::SortedSets;
use crate::operators::set_join::requirement::Requirement;
use crate::operators::set_join::stage::SetJoinStage;
use crate::records::spread;

/// Records of a partition, at most: their sorting stays in the second-level cache.
const MOST_RECORDS: u64 = 1 << 15;
/// Sets that are dealt at once, between two checks of the clock.
pub(in crate::operators::set_join) const SETS: usize = 1 << 10;
/// An element with more pairs than so many postings have is dealt to several workers, by blocks of
/// its postings: a pair of blocks then proposes about a million pairs, however popular the element.
const BLOCK: u64 = 1024;
/// The elements that a refusal names.
const NAMED: usize = 10;

/// A set that has an element in its prefix.
#[derive(Clone, Copy, Pod, Zeroable)]
#[repr(C)]
struct CountedPosting {
    element: u64,
    /// The name of the set.
    name: u64,
    /// Twice the family of the set, whose pairs are not looked at; and one more if the set is
    /// old.
    family: u32,
    /// Its position among the postings of the sender.
    position: u32,
}

/// A posting at the owner of the element: the element, the family and the name of the set as in a
/// record, the sender and its position there.
type PostingOf = (u64, u32, u64, u32, u32);

/// The blocks of an element, on their way back to the worker of a posting.
#[derive(Clone, Copy, Pod, Zeroable)]
#[repr(C)]
struct BlocksRecord {
    position: u32,
    blocks: u32,
}

/// An element that is in the prefixes of many sets.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct FrequentElement {
    /// The pairs of sets that it proposes, without those of one family.
    pub pairs: u64,
    /// The sets in whose prefixes it is: its postings.
    pub sets: u64,
    /// The smallest of their names.
    pub example: u64,
}

/// Error: a join would look at too many pairs of sets.
#[derive(Clone, Debug)]
pub struct TooManyPairs {
    /// The pairs that it would look at, at most: one with several rare elements in common counts
    /// for each.
    pub pairs: u64,
    /// The most that it may look at.
    pub most: u64,
    /// The elements that propose most of them.
    pub elements: Vec<FrequentElement>,
}

impl fmt::Display for TooManyPairs {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let TooManyPairs { pairs, most, .. } = self;
        write!(f, "up to {pairs} pairs would be looked at, and at most {most} may be")
    }
}

impl std::error::Error for TooManyPairs {}

/// What the prefixes of all sets propose.
#[derive(Debug, Default)]
pub(in crate::operators::set_join) struct Proposed {
    /// Pairs of sets that have an element in their prefixes, counted once for each such element;
    /// without known ones.
    pub pairs: u64,
    /// The elements with the most pairs, the largest first.
    pub most: Vec<FrequentElement>,
    /// The number of own postings.
    pub own: usize,
    /// By position among these: the blocks into which the postings of the element are dealt, if
    /// they are more than one.
    pub blocks: BTreeMap<u32, u32>,
}

impl Proposed {
    /// What the stars of all elements propose: fewer pairs than there are postings.
    ///
    /// # Errors
    /// If a worker of this process failed.
    pub fn stars(cx: &mut Context, stage: &SetJoinStage, sets: &SortedSets) -> Result<Proposed> {
        let own: usize = sets.living().map(|set| prefix(stage.requirement, sets, set)).sum();
        let pairs = cx.sum(own as u64)?;
        Ok(Proposed { pairs, own, ..Proposed::default() })
    }

    /// The same, if the pairs are not too many.
    ///
    /// # Errors
    /// [`TooManyPairs`], at every worker.
    pub fn allowed(self, stage: &SetJoinStage) -> Result<Proposed> {
        if self.pairs > stage.max_pairs {
            bail!(TooManyPairs { pairs: self.pairs, most: stage.max_pairs, elements: self.most });
        }
        Ok(self)
    }
}

/// The length of the prefix of a set: what follows it weighs less than any pair asks for.
pub(in crate::operators::set_join) fn prefix(requirement: Requirement, sets: &SortedSets, set: usize) -> usize {
    let elements = sets.elements(set);
    let least = requirement.least(sets.sizes[set].into());
    let mut following = 0;
    let suffix = elements.iter().rev().take_while(|element| {
        following += u64::from(element.weight);
        following < least
    });
    elements.len() - suffix.count()
}

/// Counts the pairs that the prefixes propose.
///
/// # Errors
/// If a worker of this process failed.
pub(in crate::operators::set_join) fn proposed(
    cx: &mut Context,
    stage: &SetJoinStage,
    sets: &Arc<SortedSets>,
    families: &Rc<Families>,
) -> Result<Proposed> {
    let requirement = stage.requirement;
    let own: usize = sets.living().map(|set| prefix(requirement, sets, set)).sum();
    let all = cx.sum(own as u64)?;
    let cut = KeyRanges::new(all, MOST_RECORDS, size_of::<CountedPosting>(), 1, cx.peers(), cx.memory());
    let open = {
        let (sets, families) = (sets.clone(), families.clone());
        move || {
            let (sets, families, mut set, mut position) = (sets.clone(), families.clone(), 0, 0);
            move |deal: &mut RangeDealer<'_, CountedPosting>| {
                let end = (set + SETS).min(sets.len());
                for set in set..end {
                    let family = families.of_set[set] << 1 | u32::from(sets.is_old(set));
                    for element in &sets.elements(set)[..prefix(requirement, &sets, set)] {
                        let record = CountedPosting { element: element.id, name: sets.names[set], family, position };
                        deal.deal(0, spread(element.id), record);
                        position += 1;
                    }
                }
                set = end;
                Ok(end < sets.len())
            }
        }
    };
    let counted = Rc::new(RefCell::new((0u64, Vec::<FrequentElement>::new())));
    let find = {
        let counted = counted.clone();
        let mut records: Vec<PostingOf> = Vec::new();
        move |partition: &Partition<'_, CountedPosting>, dealer: &mut Dealer<BlocksRecord>| {
            records.clear();
            partition.blocks(|block| {
                let posting =
                    |record: &CountedPosting| (record.element, record.family, record.name, block.from, record.position);
                records.extend(block.records().iter().map(posting));
            })?;
            // By element, then family, then new before old: what one element has of a family is a
            // slice.
            records.sort_unstable();
            let (sum, most) = &mut *counted.borrow_mut();
            for group in records.chunk_by(|a, b| a.0 == b.0) {
                let of = |count: usize| count as u64 * (count as u64).saturating_sub(1) / 2;
                // Pairs of one family, and those of old sets: known, if they are not of one family.
                let of_families: u64 = group
                    .chunk_by(|a, b| a.1 >> 1 == b.1 >> 1)
                    .filter(|same| same[0].1 > 1)
                    .map(|same| of(same.len()) - of(same.iter().filter(|posting| posting.1 & 1 == 1).count()))
                    .sum();
                let of_old = of(group.iter().filter(|posting| posting.1 & 1 == 1).count());
                let pairs = of(group.len()) - of_families - of_old;
                *sum += pairs;
                // So many postings without families have as many pairs: n² / 2 pairs need n
                // postings.
                let blocks = (2 * pairs).isqrt().div_ceil(BLOCK) as u32;
                if blocks > 1 {
                    for (.., from, position) in group {
                        dealer.deal((*from).into(), BlocksRecord { position: *position, blocks });
                    }
                }
                let example = group.iter().map(|posting| posting.2).min().unwrap_or_default();
                let element = FrequentElement { pairs, sets: group.len() as u64, example };
                if pairs > 0 && most.get(NAMED - 1).is_none_or(|least| element > *least) {
                    most.push(element);
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
            let of_block = block.records().iter().map(|record| (record.position, record.blocks));
            blocks.borrow_mut().extend(of_block);
        }
    };
    by_key(cx, "Postings", cut, cx.spill_buffer(), open, find, take)?;
    let (sum, most) = counted.take();
    let pairs = cx.sum(sum)?;
    let mut most = cx.sorted(most.iter().map(|most| (most.pairs, most.sets, most.example)).collect())?;
    most.reverse();
    most.truncate(NAMED);
    let most = most.into_iter().map(|(pairs, sets, example)| FrequentElement { pairs, sets, example });
    Ok(Proposed { pairs, most: most.collect(), own, blocks: blocks.take() })
}
