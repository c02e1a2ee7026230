//! Removes the elements that occur in one set only, exactly; then the sets that are too light to be
//! in any pair. Repeats this until fewer than 1% of the sets go.

use std::cell::RefCell;
use std::rc::Rc;

use anyhow::Result;
use bytemuck::{Pod, Zeroable};
use nigh_exchange::{BlockOf, Context, Dealer, KeyRanges, Partition, RangeDealer, by_key};

use super::held::{HeldSets, has_bit, set_bit};
use super::requirement::Requirement;
use super::sets::WeightedSets;
use super::stage::SetJoinStage;
use crate::records::spread;

/// Records of a partition, at most: their sorting stays in the second-level cache.
const MOST_RECORDS: u64 = 1 << 16;
/// Elements that are dealt at once, between two checks of the clock.
pub(super) const ELEMENTS: usize = 1 << 13;
/// The rounds end when less than one in this many sets falls: each exchanges all elements that are
/// left, and sets that stay too long only make more candidates.
const FEW: u64 = 100;

/// An element of a set, and its position among the sender's elements.
#[derive(Clone, Copy, Pod, Zeroable)]
#[repr(C)]
struct ElementAt {
    hash: [u32; 2],
    position: u32,
}

/// Removes elements of one set alone, and sets that cannot be pairs any more.
///
/// ```text
/// repeat until less than 1% of the sets falls, or none if the stage is thorough:
///     for each element e: remove e from its set if no other set has it
///     for each set s: remove s if weight(s) < requirement.least(size(s))
/// ```
///
/// # Errors
/// If a worker of this process failed.
pub(super) fn drop_alone(cx: &mut Context, stage: &SetJoinStage, mut kept: HeldSets) -> Result<HeldSets> {
    loop {
        let before = kept.sets.count() as u64;
        let alone = alone(cx, &mut kept.sets)?;
        let mut numbers = Vec::new();
        let is_heavy = is_heavy(stage.requirement);
        kept.sets =
            kept.sets.without(|position| has_bit(&alone, position), is_heavy, |set| numbers.push(kept.numbers[set]));
        kept.numbers = numbers;
        let fell = before - kept.sets.count() as u64;
        let [before, fell] = cx.sums([before, fell])?;
        if fell == 0 || !stage.thorough && fell * FEW <= before {
            return Ok(kept);
        }
    }
}

/// Whether a set of some size is kept with what is left of its weight.
pub(super) fn is_heavy(requirement: Requirement) -> impl Fn(u32, u64) -> bool + Copy {
    move |size, weight| weight >= requirement.least(size.into())
}

/// Marks the positions of the elements that no other set has.
fn alone(cx: &mut Context, sets: &mut WeightedSets) -> Result<Vec<u64>> {
    let own = sets.elements() as u64;
    let all = cx.sum(own)?;
    let cut = KeyRanges::new(all, MOST_RECORDS, size_of::<ElementAt>(), 1, cx.peers(), cx.memory());
    let alone = Rc::new(RefCell::new(vec![0u64; sets.elements().div_ceil(64)]));
    // The operators share the sets for as long as they run.
    let shared = Rc::new(std::mem::take(sets));
    let open = {
        let sets = shared.clone();
        move || {
            let (sets, mut next) = (sets.clone(), 0);
            move |deal: &mut RangeDealer<'_, ElementAt>| {
                let end = (next + ELEMENTS).min(sets.elements());
                for position in next..end {
                    let hash = sets.hash(position);
                    let record = ElementAt { hash: bytemuck::cast(hash), position: position as u32 };
                    deal.deal(0, spread(hash), record);
                }
                next = end;
                Ok(end < sets.elements())
            }
        }
    };
    let mut records: Vec<(u64, u32, u32)> = Vec::new();
    let find = move |partition: &Partition<'_, ElementAt>, dealer: &mut Dealer<u32>| {
        records.clear();
        partition.blocks(|block| {
            let of_block = block.records().iter();
            records.extend(of_block.map(|record| (bytemuck::cast(record.hash), block.from, record.position)));
        })?;
        // Elements of one set alone are rare by now (`held` has dropped most), so most groups have
        // no reply.
        records.sort_unstable();
        for group in records.chunk_by(|a, b| a.0 == b.0) {
            if let [(_, from, position)] = group {
                dealer.deal((*from).into(), *position);
            }
        }
        Ok(())
    };
    let mark = {
        let alone = alone.clone();
        move |block: BlockOf<u32>| {
            let mut alone = alone.borrow_mut();
            block.records().iter().for_each(|position| set_bit(&mut alone, *position as usize));
        }
    };
    by_key(cx, "Alone", cut, cx.spill_buffer(), open, find, mark)?;
    *sets = unshared(cx, shared);
    Ok(alone.take())
}

/// Takes a value back that operators have shared: after a step of the worker they are gone.
pub(super) fn unshared<T: Clone>(cx: &mut Context, shared: Rc<T>) -> T {
    cx.worker().step();
    debug_assert_eq!(Rc::strong_count(&shared), 1, "a step drops the operators of a dataflow that has ended");
    Rc::try_unwrap(shared).unwrap_or_else(|shared| (*shared).clone())
}
