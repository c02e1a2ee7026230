//! Sets that are ready to be joined: rows with their columns.

use std::rc::Rc;
use std::sync::Arc;

use anyhow::{Result, ensure};
use nigh_exchange::Context;

use super::alone::drop_alone;
use super::compare::{RowPair, compare};
use super::families::Families;
use super::held::held;
use super::joined::{SetJoin, joined_rows};
use super::joined_rows::rows;
use super::known::probed;
use super::meet::{Meeting, candidates};
use super::prefixes::{Proposed, proposed};
use super::row_columns::{RowElements, SortedSets, columns};
use super::sets::SetSource;
use super::stage::{SetJoinStage, SetJoinStats};

/// Sets that are ready to be joined: rows with their columns. If components alone are wanted, they
/// can be joined several times, with requirements that are at least as strong as that which they
/// were prepared for.
pub(super) struct PreparedSets {
    /// What is known of the own sets and rows, without families.
    pub joined: SetJoin,
    pub rows: Arc<SortedSets>,
}

/// Which pairs a join of prepared sets looks at.
#[derive(Clone, Copy, Debug)]
pub(super) enum WantedPairs<'a> {
    /// For each column, the pairs of the heaviest row that has it in its prefix with all others:
    /// few, from which components begin.
    Stars,
    /// All pairs of rows of different components. Given is by own row the number of its component,
    /// from 1, the same at every worker; 0 for a row that is alone.
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

    /// Calls `each` with the wanted pairs of rows that meet the requirement of `stage`, as
    /// [`set_join`] does.
    ///
    /// # Errors
    /// As [`set_join`]; or if there are 2^31 components or more.
    pub fn join(
        &self,
        cx: &mut Context,
        stage: &SetJoinStage,
        wanted: WantedPairs<'_>,
        each: impl FnMut(RowPair) -> Result<()> + 'static,
    ) -> Result<()> {
        let of_row = match wanted {
            WantedPairs::Stars => vec![0; self.rows.len()],
            WantedPairs::OtherComponents(components) => components.to_vec(),
        };
        ensure!(of_row.iter().all(|component| *component < 1 << 31), "more than 2^31 components of sets");
        // No pair of one family is looked at: so components are families here.
        let families = Rc::new(Families { of_row, ..Families::default() });
        let (proposed, meeting) = match wanted {
            WantedPairs::Stars => (Proposed::stars(cx, stage, &self.rows)?, Meeting::Stars),
            WantedPairs::OtherComponents(_) => {
                (proposed(cx, stage, &self.rows, &families)?.allowed(stage)?, Meeting::All)
            }
        };
        let candidates = candidates(cx, stage, &self.rows, &families, proposed, meeting)?;
        compare(cx, stage, &self.rows, candidates, each).map(drop)
    }
}

/// Makes rows and columns of the sets: those that can be in pairs.
pub(super) fn prepare<S: SetSource + Clone + 'static>(
    cx: &mut Context,
    stage: &SetJoinStage,
    source: &S,
) -> Result<(PreparedSets, RowElements)> {
    let mut kept = if stage.has_known { probed(cx, stage, source)? } else { held(cx, stage, source)? };
    kept = drop_alone(cx, stage, kept)?;
    let stats = SetJoinStats {
        sets: source.len() as u64,
        kept: kept.sets.count() as u64,
        kept_elements: kept.sets.elements() as u64,
        ..SetJoinStats::default()
    };
    let sizes = (0..kept.sets.count()).map(|set| kept.sets.size(set)).collect();
    let mut row_sets = rows(cx, stage, source, &mut kept)?;
    let joined = SetJoin {
        sizes,
        sets: kept.numbers,
        row_of: std::mem::take(&mut row_sets.row_of),
        rows: joined_rows(&row_sets, stage.requirement),
        stats,
        ..SetJoin::default()
    };
    let (rows, elements) = columns(cx, stage, &mut row_sets)?;
    Ok((PreparedSets { joined, rows: Arc::new(rows) }, elements))
}
