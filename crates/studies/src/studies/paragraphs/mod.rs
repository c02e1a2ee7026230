//! The paragraphs study: where duplicates are, and how they grow (Pereira, Baeza-Yates and Ziviani
//! 2006).
//!
//! In reading order: `job`, `run` (from top to bottom), `former` (the weeks before), `steps`,
//! `reach` (pages that links lead to), `genealogy` (where the text of new pages comes from),
//! `followed` (the genealogy week after week), `seeds` (URLs of pages), `estimates`, `summarize`,
//! `write`, `small_tables`, `summary`, `report`, `figures`, `bench`.

#[cfg(feature = "bench")]
mod bench;
mod estimates;
mod figures;
mod followed;
mod former;
pub mod genealogy;
mod job;
pub mod reach;
mod report;
mod run;
mod seeds;
mod small_tables;
pub mod steps;
mod summarize;
mod summary;
mod write;

pub use self::job::{Paragraphs, PartOrder};
pub use self::summary::{
    BirthsSummary, Estimate, FollowedWeek, ParagraphsSummary, PublishedYears, REGIONS, ShapeOfClusters,
    SitesOfClusters, published_coverage, published_of_region,
};

use std::path::PathBuf;

use anyhow::Result;
use nigh_exchange::Context;

use super::figure::Figure;
use super::plan::{StudyInput, StudyPlan, check_chunks};
use super::study::{Runs, Study};
use crate::records::Week;
use crate::sheet::Sheet;
use crate::state::{History, Store};

impl Study for Paragraphs {
    const NAME: &'static str = "paragraphs";
    const TITLE: &'static str = "Paragraphs";
    const JOB: &'static str = include_str!("../../../../../jobs/paragraphs.toml");
    const FIGURES: &'static [Figure] = figures::FIGURES;
    const RUNS: Runs = Runs::EachWeek;
    #[cfg(feature = "bench")]
    const BENCH: Option<nigh_bench::AnyBench> = Some(bench::BENCH);

    type Summary = ParagraphsSummary;

    fn check(&self) -> Result<(), String> {
        self.check_values()
    }

    fn store(&mut self) -> &mut Option<PathBuf> {
        &mut self.store
    }

    fn week(&mut self) -> Option<&mut Option<Week>> {
        Some(&mut self.week)
    }

    fn find(&self, store: &Store, notice: &dyn Fn(&str)) -> Result<StudyInput> {
        let (first, former) = former::former_paragraphs(store, self, notice)?;
        let history = History::open(store, first, self.week)?;
        check_chunks(&history, Paragraphs::NAME)?;
        Ok(StudyInput { former, ..history.into() })
    }

    fn lasting_bytes(&self, plan: &StudyPlan) -> u64 {
        // If each page shares ten of its paragraphs.
        (60 + 8 * self.near.len() as u64 + 160) * plan.urls()
    }

    fn run(&self, cx: &mut Context, plan: &StudyPlan) -> Result<Option<ParagraphsSummary>> {
        run::paragraphs(cx, plan, self)
    }

    fn last_week(summary: &ParagraphsSummary) -> Option<Week> {
        Some(summary.last)
    }

    fn store_of(summary: &mut ParagraphsSummary) -> &mut PathBuf {
        &mut summary.store
    }

    fn report(summary: &ParagraphsSummary) -> Sheet {
        report::paragraphs(summary)
    }
}
