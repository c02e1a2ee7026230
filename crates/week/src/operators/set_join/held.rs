//! Held elements: those that two sets have at least. Of the others nothing is kept.
//!
//! A set whose held elements weigh less than the requirement asks for is no pair with any. Most
//! sets of a crawl fall here, before anything of them is kept. The test need not be exact: an
//! element that is taken for a held one by mistake falls in `alone.rs`.
//!
//! Records and replies are those of `sighting`: there, the holder of a value is an element's
//! position.
//!
//! Which elements are taken for held ones by mistake depends on the hashes of all elements, and on
//! nothing else: the slots in which they are counted are as many for any number of workers and
//! partitions.
//!
//! *Positions* number the elements of a worker's own sets, in the order of a pass. An element that
//! a worker has sent twice is held: it is not sent again as long as a small table knows it, so that
//! an element of all sets does not overload its owner.

use std::cell::RefCell;
use std::rc::Rc;

use anyhow::{Result, ensure};
use nigh_exchange::{BlockOf, Context, Dealer, KeyRanges, Partition, RangeDealer, by_key};

use super::requirement::Requirement;
use super::sets::{Element, SetPass, SetSource, WeightedSets, weight_in_all};
use super::stage::SetJoinStage;
use crate::operators::sighting::{SharedFinder, Sighting};
use crate::records::spread;

/// Records of a partition, at most: so few that the table that counts them stays in the
/// second-level cache.
const MOST_RECORDS: u64 = 3 << 16;
/// Slots for each element of all sets, on average: see [`Counters`](crate::structures::Counters).
const SLOTS: u64 = 32;
/// The bits of a hash that a record has.
const BITS: u32 = 24;
/// Sets that are dealt at once, between two checks of the clock.
const SETS: usize = 256;
/// Elements that a worker remembers.
const REMEMBERED: usize = 1 << 14;

/// What is left of the own sets, and which sets they are.
pub(super) struct HeldSets {
    /// The sets, with their held elements.
    pub sets: WeightedSets,
    /// The number of each in the source.
    pub numbers: Vec<u32>,
}

/// The sets of `source` that can be pairs, with the elements that another set may have, too.
///
/// Morally it does this:
///
/// ```text
/// for each set s: for each element e of s: count[e] += 1
/// for each set s: left = [e of s if count[e] >= 2]
///     keep left if weight(left) >= requirement.least(size(s))
/// ```
///
/// # Errors
/// If the sets cannot be read, a worker has 2^32 elements or more, or a worker of this process
/// failed.
pub(super) fn held<S: SetSource + Clone + 'static>(
    cx: &mut Context,
    stage: &SetJoinStage,
    source: &S,
) -> Result<HeldSets> {
    let requirement = stage.requirement;
    ensure!(source.len() <= u32::MAX as usize, "{} sets are too many for one worker: use more workers", source.len());
    let own = own_elements(source, requirement)?;
    ensure!(
        own <= u32::MAX.into(),
        "{own} elements are too many for one worker, at most {}: use more workers",
        u32::MAX
    );
    let all: u64 = cx.sum(own)?;
    let cut = KeyRanges::new(all, MOST_RECORDS, size_of::<Sighting>(), 1, cx.peers(), cx.memory());
    // A hash gives its partition, and then its slot there.
    let of_partition = cut.partitions.trailing_zeros();
    let bits =
        (all * SLOTS).next_power_of_two().trailing_zeros().clamp(of_partition, of_partition + BITS) - of_partition;
    let marks = Rc::new(RefCell::new(vec![0u64; (own as usize).div_ceil(64)]));
    let open = {
        let (source, marks) = (source.clone(), marks.clone());
        move || {
            let mut pass = HeldPass::new(&source, requirement, of_partition, marks.clone());
            move |deal: &mut RangeDealer<'_, Sighting>| pass.as_mut().map_err(take_error)?.next(deal)
        }
    };
    let mut finder = SharedFinder::default();
    let find = move |partition: &Partition<'_, Sighting>, dealer: &mut Dealer<u32>| {
        finder.find_in_slots(partition, bits, dealer)
    };
    let mark = {
        let marks = marks.clone();
        move |block: BlockOf<u32>| {
            let mut marks = marks.borrow_mut();
            block.records().iter().for_each(|position| set_bit(&mut marks, *position as usize));
        }
    };
    by_key(cx, "Held", cut, cx.spill_buffer(), open, find, mark)?;
    keep(source, requirement, &marks.take())
}

/// An error that a pass could not begin, for the operator that reads it.
fn take_error(error: &mut anyhow::Error) -> anyhow::Error {
    std::mem::replace(error, anyhow::anyhow!("the sets could not be read"))
}

/// The elements of the own sets that are large enough.
fn own_elements(source: &impl SetSource, requirement: Requirement) -> Result<u64> {
    let (mut pass, mut set, mut elements) = (source.pass()?, Vec::new(), 0);
    while pass.next(&mut set)? {
        elements += if can_pair(requirement, &set)? { set.len() as u64 } else { 0 };
    }
    Ok(elements)
}

/// Whether a set is large enough to be a pair with any.
pub(super) fn can_pair(requirement: Requirement, set: &[Element]) -> Result<bool> {
    let size = weight_in_all(set)?.into();
    Ok(size >= requirement.least(size))
}

/// The sets with their held elements, of those that are heavy enough. The positions of the held
/// elements are marked.
fn keep(source: &impl SetSource, requirement: Requirement, marks: &[u64]) -> Result<HeldSets> {
    let mut kept = HeldSets { sets: WeightedSets::default(), numbers: Vec::new() };
    let (mut pass, mut set, mut position) = (source.pass()?, Vec::new(), 0);
    for number in 0.. {
        if !pass.next(&mut set)? {
            break;
        }
        if !can_pair(requirement, &set)? {
            continue;
        }
        let size = weight_in_all(&set)?;
        let mut weight = 0;
        set.retain(|element| {
            let is_held = has_bit(marks, position);
            position += 1;
            weight += if is_held { u64::from(element.weight) } else { 0 };
            is_held
        });
        if weight >= requirement.least(size.into()) {
            kept.sets.push_part(source.name(number as usize), size, set.iter().copied());
            kept.numbers.push(number);
        }
    }
    Ok(kept)
}

pub(super) fn set_bit(bits: &mut [u64], at: usize) {
    bits[at / 64] |= 1 << (at % 64);
}

pub(super) fn has_bit(bits: &[u64], at: usize) -> bool {
    bits[at / 64] >> (at % 64) & 1 == 1
}

/// One pass over the own sets: sends the elements whose partitions lie in one range.
struct HeldPass<P> {
    pass: P,
    requirement: Requirement,
    /// The high bits of a hash that give its partition.
    of_partition: u32,
    set: Vec<Element>,
    /// The position of the next element.
    position: usize,
    /// Elements that were sent of late, and how often, at most twice; by the high bits of their
    /// hashes.
    remembered: Vec<(u64, u8)>,
    marks: Rc<RefCell<Vec<u64>>>,
}

impl<P: SetPass> HeldPass<P> {
    fn new<S: SetSource<Pass = P>>(
        source: &S,
        requirement: Requirement,
        of_partition: u32,
        marks: Rc<RefCell<Vec<u64>>>,
    ) -> Result<HeldPass<P>> {
        let pass = source.pass()?;
        let remembered = vec![(0, 0); REMEMBERED];
        Ok(HeldPass { pass, requirement, of_partition, set: Vec::new(), position: 0, remembered, marks })
    }

    /// Deals the elements of some sets. Returns `false` at the end of the pass.
    fn next(&mut self, deal: &mut RangeDealer<'_, Sighting>) -> Result<bool> {
        let mut marks = self.marks.borrow_mut();
        for _ in 0..SETS {
            if !self.pass.next(&mut self.set)? {
                return Ok(false);
            }
            if !can_pair(self.requirement, &self.set)? {
                continue;
            }
            for element in &self.set {
                let (position, hash) = (self.position, spread(element.hash));
                self.position += 1;
                if !deal.takes(hash) {
                    continue;
                }
                let (remembered, sent) = &mut self.remembered[(hash >> 32) as usize % REMEMBERED];
                if *remembered != element.hash {
                    (*remembered, *sent) = (element.hash, 0);
                } else if *sent == 2 {
                    set_bit(&mut marks, position);
                    continue;
                }
                *sent += 1;
                let slot = ((hash << self.of_partition) >> 32) as u32;
                deal.deal_gap(0, hash, position as u32, |gap| Sighting::new(slot, gap));
            }
        }
        Ok(true)
    }
}
