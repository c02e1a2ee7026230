//! The overlap study: pages and hosts that share chunks of text (Shivakumar and Garcia-Molina
//! 1998).
//!
//! In reading order: `job`, `run` (from top to bottom), `followed_run` (the run that a later week
//! follows), `steps`, `counts`, `write`, `summary`, `report`, `figures`, `bench`.

#[cfg(feature = "bench")]
mod bench;
mod counts;
mod figures;
mod followed_run;
mod job;
mod report;
mod run;
pub mod steps;
mod summary;
mod write;

pub use self::job::{Overlap, OverlapMethod, Unit};
pub use self::summary::{
    ChunkingSummary, LargestGroup, OverlapSummary, REASONS, REPLICAS, ReasonCount, ReplicaCount, STEPS, Saving,
    StepNeeds, replica_class,
};

use std::path::PathBuf;

use anyhow::Result;
use nigh_exchange::Context;

use super::figure::Figure;
use super::plan::{StudyInput, StudyPlan, check_chunks};
use super::study::{Runs, Study};
use crate::records::Week;
use crate::sheet::Sheet;
use crate::state::{History, PastWeek, Store};

impl Study for Overlap {
    const NAME: &'static str = "overlap";
    const TITLE: &'static str = "Overlap of pages";
    const JOB: &'static str = include_str!("../../../../../jobs/overlap.toml");
    const FIGURES: &'static [Figure] = figures::FIGURES;
    const RUNS: Runs = Runs::EachWeek;
    #[cfg(feature = "bench")]
    const BENCH: Option<nigh_bench::AnyBench> = Some(bench::BENCH);

    type Summary = OverlapSummary;

    fn check(&self) -> Result<(), String> {
        self.check_values()
    }

    fn store(&mut self) -> &mut Option<PathBuf> {
        &mut self.store
    }

    fn week(&mut self) -> Option<&mut Option<Week>> {
        Some(&mut self.week)
    }

    fn compares_hosts(&self) -> bool {
        self.unit == Unit::Host
    }

    fn find(&self, store: &Store, _notice: &dyn Fn(&str)) -> Result<StudyInput> {
        let followed = followed_run::former_overlap(store, self)?;
        let first = followed.map_or(self.week, |(week, _)| Some(week));
        let history = History::open(store, first, self.week)?;
        check_chunks(&history, Overlap::NAME)?;
        Ok(StudyInput { former: followed.map(|(_, commit)| commit), ..history.into() })
    }

    fn weeks_read<'a>(&self, weeks: &'a [PastWeek]) -> &'a [PastWeek] {
        &weeks[weeks.len() - 1..]
    }

    fn lasting_bytes(&self, plan: &StudyPlan) -> u64 {
        120 * plan.urls()
    }

    fn run(&self, cx: &mut Context, plan: &StudyPlan) -> Result<Option<OverlapSummary>> {
        run::overlap(cx, plan, self)
    }

    fn last_week(summary: &OverlapSummary) -> Option<Week> {
        Some(summary.last)
    }

    fn store_of(summary: &mut OverlapSummary) -> &mut PathBuf {
        &mut summary.store
    }

    fn report(summary: &OverlapSummary) -> Sheet {
        report::overlap(summary)
    }
}
