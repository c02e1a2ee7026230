//! Joins of which some pairs are known before: those of two *old* sets, and those of two sets of
//! one *known family*. The join finds the others.
//!
//! So a job follows what changed: the sets that did not change are old, and only those of them go
//! on that have enough in common with all sets that are new. To find these, every worker has a
//! filter of the elements of new sets.
//!
//! Memory: at every worker 8 bytes for each element of the new sets of all workers, and 2 to 4 for
//! the filter.

use anyhow::{Result, ensure};
use nigh_exchange::Context;

use super::held::{HeldSets, can_pair};
use super::sets::{SetPass, SetSource, WeightedSets, weight_in_all};
use super::stage::SetJoinStage;
use crate::kernels::BitSet;

/// Elements for each word of the filter: about one in twenty other elements passes, and falls
/// later.
const ELEMENTS_OF_WORD: usize = 4;

/// The sets that can be pairs with a new one, with the elements that a new set may have.
///
/// ```text
/// new = elements of all sets that are not old
/// for each old set s: left = [e of s if e in new]
///     keep left if weight(left) >= requirement.least(size(s))
/// ```
///
/// # Errors
/// If the sets cannot be read, a worker has 2^32 sets or more, or a worker of this process failed.
pub(super) fn probed<S: SetSource>(cx: &mut Context, stage: &SetJoinStage, source: &S) -> Result<HeldSets> {
    let requirement = stage.requirement;
    ensure!(source.len() <= u32::MAX as usize, "{} sets are too many for one worker: use more workers", source.len());
    let (mut pass, mut set, mut own) = (source.pass()?, Vec::new(), Vec::new());
    for number in 0..source.len() {
        if source.known(number).is_old {
            pass.skip()?;
        } else if pass.next(&mut set)? && can_pair(requirement, &set)? {
            own.extend(set.iter().map(|element| element.hash));
        }
    }
    let mut new = cx.sorted(own)?;
    new.dedup();
    let mut filter = BitSet::new(vec![0; new.len().div_ceil(ELEMENTS_OF_WORD).next_power_of_two()], &[0]);
    new.into_iter().for_each(|hash| filter.put(hash));
    let mut kept = HeldSets { sets: WeightedSets::default(), numbers: Vec::new() };
    let mut pass = source.pass()?;
    for number in 0..source.len() {
        if !pass.next(&mut set)? {
            break;
        }
        let size = weight_in_all(&set)?;
        if source.known(number).is_old {
            set.retain(|element| filter.has(element.hash));
        }
        let weight: u64 = set.iter().map(|element| u64::from(element.weight)).sum();
        if weight >= requirement.least(size.into()) {
            kept.sets.push_part(source.name(number), size, set.iter().copied());
            kept.numbers.push(number as u32);
        }
    }
    Ok(kept)
}
