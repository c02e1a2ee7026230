//! The decontamination study: which documents of a store match which items of a reference, such as
//! the questions of benchmarks, or another corpus. The reference is not clustered, and is not part
//! of the store.
//!
//! In reading order: `job`, `reference` (its files and items), `run` (from top to bottom), `steps`,
//! `write`, `summary`, `report`.

mod job;
mod reference;
mod report;
mod run;
mod steps;
mod summary;
mod write;

pub use self::job::{Decontamination, Form, ItemOf};
pub use self::reference::ItemCounts;
pub use self::summary::{ComparedForm, DecontaminationSummary, ReferenceFileSummary};

use std::path::PathBuf;

use anyhow::Result;
use nigh_exchange::Context;

use super::passages::corpus_of_week;
use super::plan::{StudyFiles, StudyInput, StudyPlan};
use super::study::{Runs, Study};
use crate::records::Week;
use crate::sheet::Sheet;
use crate::state::{History, Store};

impl Study for Decontamination {
    const NAME: &'static str = "decontamination";
    const TITLE: &'static str = "Matches with a reference";
    const JOB: &'static str = include_str!("../../../../../jobs/decontamination.toml");
    const RUNS: Runs = Runs::LastWeek;

    type Summary = DecontaminationSummary;

    fn check(&self) -> Result<(), String> {
        self.check_values()
    }

    fn store(&mut self) -> &mut Option<PathBuf> {
        &mut self.store
    }

    fn week(&mut self) -> Option<&mut Option<Week>> {
        Some(&mut self.week)
    }

    fn input(&mut self) -> Option<&mut Vec<String>> {
        Some(&mut self.input)
    }

    fn against(&mut self) -> Option<&mut Vec<String>> {
        Some(&mut self.against)
    }

    fn find(&self, store: &Store, notice: &dyn Fn(&str)) -> Result<StudyInput> {
        let last = store.manifest()?.and_then(|manifest| manifest.weeks.last().map(|week| week.week));
        let week = self.week.or(last);
        let history = History::open(store, week, week)?;
        let mut files = corpus_of_week(store, history.last().week, &self.input)?;
        self.set_words(&mut files.method)?;
        let reference = reference::find(self, store, notice)?;
        Ok(StudyInput { history, former: None, files: StudyFiles { reference, ..files } })
    }

    fn lasting_bytes(&self, plan: &StudyPlan) -> u64 {
        let reference: u64 = plan.files.reference.iter().map(|file| file.input.bytes).sum();
        let workers = (plan.processes * plan.workers) as u64;
        // A word of six bytes is in one gram, of about 60 bytes.
        let slice = reference.saturating_mul(12).min(run::slice_memory(plan.worker_memory));
        plan.urls() + 56 * plan.history.last().documents() + workers * slice
    }

    fn run(&self, cx: &mut Context, plan: &StudyPlan) -> Result<Option<DecontaminationSummary>> {
        run::decontamination(cx, plan, self)
    }

    fn last_week(summary: &DecontaminationSummary) -> Option<Week> {
        Some(summary.last)
    }

    fn store_of(summary: &mut DecontaminationSummary) -> &mut PathBuf {
        &mut summary.store
    }

    fn report(summary: &DecontaminationSummary) -> Sheet {
        report::decontamination(summary)
    }
}
