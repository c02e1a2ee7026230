//! The evolution study: how the clusters of a store change from week to week (Fetterly 2004,
//! section 3).
//!
//! In reading order: `job`, `run` (from top to bottom), `steps`, `summary`, `report`, `figures`.

mod figures;
mod job;
mod report;
mod run;
mod steps;
mod summary;

pub(in crate::studies) use self::figures::changes;
pub use self::job::Evolution;
pub use self::summary::{ChangeCount, ClassRetention, EvolutionSummary, HostChanges, PUBLISHED_UNCHANGED, Turnover};

use std::path::PathBuf;

use anyhow::Result;
use nigh_exchange::Context;

use super::figure::Figure;
use super::plan::{StudyInput, StudyPlan};
use super::study::{Runs, Study};
use crate::records::Week;
use crate::sheet::Sheet;
use crate::state::{History, Store};

impl Study for Evolution {
    const NAME: &'static str = "evolution";
    const TITLE: &'static str = "Evolution of clusters";
    const JOB: &'static str = include_str!("../../../../../jobs/evolution.toml");
    const RUNS: Runs = Runs::AllWeeks;
    const FIGURES: &'static [Figure] = figures::FIGURES;

    type Summary = EvolutionSummary;

    fn store(&mut self) -> &mut Option<PathBuf> {
        &mut self.store
    }

    fn week(&mut self) -> Option<&mut Option<Week>> {
        None
    }

    fn find(&self, store: &Store, _notice: &dyn Fn(&str)) -> Result<StudyInput> {
        Ok(History::open(store, self.first, self.last)?.into())
    }

    fn lasting_bytes(&self, plan: &StudyPlan) -> u64 {
        144 * plan.urls()
    }

    fn run(&self, cx: &mut Context, plan: &StudyPlan) -> Result<Option<EvolutionSummary>> {
        run::evolution(cx, plan)
    }

    fn last_week(summary: &EvolutionSummary) -> Option<Week> {
        Some(summary.last)
    }

    fn store_of(summary: &mut EvolutionSummary) -> &mut PathBuf {
        &mut summary.store
    }

    fn report(summary: &EvolutionSummary) -> Sheet {
        report::evolution(summary)
    }
}
