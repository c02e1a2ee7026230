//! Sets that are ready to be joined: distinct sets with their merged elements.

use std::rc::Rc;
use std::sync::Arc;

use anyhow::{Result, ensure};
use nigh_exchange::Context;

use super::alone::drop_alone;
use super::candidates::meet::{Meeting, candidates};
use super::candidates::prefixes::{Proposed, proposed};
use super::compare::{SetPair, compare};
use super::distinct_sets::distinct_sets;
use super::families::Families;
use super::held::held;
use super::joined::{SetJoin, described};
use super::known::probed;
use super::merged_elements::{SortedSets, UnmergedElements, merged};
use super::sets::SetSource;
use super::stage::{SetJoinStage, SetJoinStats};

/// Sets that are ready to be joined: distinct sets with their merged elements. If components alone
/// are wanted, they can be joined several times, with requirements at least as strong as the one
/// that they were prepared for.
pub(super) struct PreparedSets {
    /// What is known of the own sets, without families.
    pub joined: SetJoin,
    pub sets: Arc<SortedSets>,
}

/// Which pairs a join of prepared sets looks at.
#[derive(Clone, Copy, Debug)]
pub(super) enum WantedPairs<'a> {
    /// For each element, the pairs of the heaviest set that has it in its prefix with all others:
    /// few, from which components begin.
    Stars,
    /// All pairs of sets of different components. Given is by own distinct set the number of its
    /// component, from 1, the same at every worker; 0 for a set that is alone.
    OtherComponents(&'a [u32]),
}

impl PreparedSets {
    /// Prepares sets for joins with the requirement of `stage`, or with stronger ones.
    ///
    /// # Errors
    /// If sets or files cannot be read, or a worker of this process failed.
    pub fn prepare<S: SetSource + Clone + 'static>(
        cx: &mut Context,
        stage: &SetJoinStage,
        source: &S,
    ) -> Result<PreparedSets> {
        Ok(prepare(cx, stage, source)?.0)
    }

    /// Calls `each` with the wanted pairs of sets that meet the requirement of `stage`, as
    /// [`set_join`] does.
    ///
    /// # Errors
    /// As [`set_join`]; or if there are 2^31 components or more.
    pub fn join(
        &self,
        cx: &mut Context,
        stage: &SetJoinStage,
        wanted: WantedPairs<'_>,
        each: impl FnMut(SetPair) -> Result<()> + 'static,
    ) -> Result<()> {
        let of_set = match wanted {
            WantedPairs::Stars => vec![0; self.sets.len()],
            WantedPairs::OtherComponents(components) => components.to_vec(),
        };
        ensure!(of_set.iter().all(|component| *component < 1 << 31), "more than 2^31 components of sets");
        // No pair of one family is looked at: so components are families here.
        let families = Rc::new(Families { of_set, ..Families::default() });
        let (proposed, meeting) = match wanted {
            WantedPairs::Stars => (Proposed::stars(cx, stage, &self.sets)?, Meeting::Stars),
            WantedPairs::OtherComponents(_) => {
                (proposed(cx, stage, &self.sets, &families)?.allowed(stage)?, Meeting::All)
            }
        };
        let candidates = candidates(cx, stage, &self.sets, &families, proposed, meeting)?;
        compare(cx, stage, &self.sets, candidates, each).map(drop)
    }
}

/// Makes distinct sets with merged elements of the sets that can be in pairs.
pub(super) fn prepare<S: SetSource + Clone + 'static>(
    cx: &mut Context,
    stage: &SetJoinStage,
    source: &S,
) -> Result<(PreparedSets, UnmergedElements)> {
    let mut kept = if stage.has_known { probed(cx, stage, source)? } else { held(cx, stage, source)? };
    kept = drop_alone(cx, stage, kept)?;
    let stats = SetJoinStats {
        sets: source.len() as u64,
        kept: kept.sets.count() as u64,
        kept_elements: kept.sets.elements() as u64,
        ..SetJoinStats::default()
    };
    let sizes = (0..kept.sets.count()).map(|set| kept.sets.size(set)).collect();
    let mut distinct = distinct_sets(cx, stage, source, &mut kept)?;
    let joined = SetJoin {
        sizes,
        sets: kept.numbers,
        distinct_of: std::mem::take(&mut distinct.distinct_of),
        distinct: described(&distinct, stage.requirement),
        stats,
        ..SetJoin::default()
    };
    let (sets, elements) = merged(cx, stage, &mut distinct)?;
    Ok((PreparedSets { joined, sets: Arc::new(sets) }, elements))
}
