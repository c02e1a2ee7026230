//! The collections study: pages that are copied together, and what a crawler need not fetch (Cho,
//! Shivakumar and Garcia-Molina 2000).
//!
//! In reading order: `job`, `run` (from top to bottom), `former` (the avoid list of the run
//! before), `steps`, `judge` (what crawls would have been without the pages of a list), `write`,
//! `summary`, `report`, `figures`, `host_rows`, `bench`.

#[cfg(feature = "bench")]
mod bench;
mod figures;
mod former;
mod host_rows;
mod job;
mod judge;
mod report;
mod run;
pub mod steps;
mod summary;
mod write;

pub use self::job::{CollectionLinks, Collections, Merge, ReplicaLevel};
pub use self::summary::{
    CollectionsSummary, LargestCollections, PUBLISHED_LARGEST, PUBLISHED_SAVINGS, PublishedSavings, SimilarCount,
};

use std::path::PathBuf;

use anyhow::Result;
use nigh_exchange::Context;

use self::former::{ListBefore, former_list};
use super::figure::Figure;
use super::host_rows::HostRows;
use super::plan::{StudyInput, StudyPlan};
use super::study::{Runs, Study};
use crate::records::Week;
use crate::sheet::Sheet;
use crate::state::{History, PastWeek, Store};

impl Study for Collections {
    const NAME: &'static str = "collections";
    const TITLE: &'static str = "Replicated collections";
    const JOB: &'static str = include_str!("../../../../../jobs/collections.toml");
    const FIGURES: &'static [Figure] = figures::FIGURES;
    const HOST_ROWS: Option<HostRows> = Some(host_rows::HOST_ROWS);
    const RUNS: Runs = Runs::EachWeek;
    #[cfg(feature = "bench")]
    const BENCH: Option<nigh_bench::AnyBench> = Some(bench::BENCH);

    type Summary = CollectionsSummary;

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
        true
    }

    fn find(&self, store: &Store, notice: &dyn Fn(&str)) -> Result<StudyInput> {
        // All weeks: those before say which pages are old, and those behind judge.
        let history = History::open(store, None, None)?;
        let week = run::check_level(store, &history, self)?;
        let former = match former_list(store, self, week)? {
            ListBefore::Missing => None,
            ListBefore::Continued(commit) => Some(commit),
            ListBefore::Dropped(why) => {
                notice(&why);
                None
            }
        };
        Ok(StudyInput { former, ..history.into() })
    }

    fn weeks_read<'a>(&self, weeks: &'a [PastWeek]) -> &'a [PastWeek] {
        // Its own week, and those that it is judged by.
        let from = weeks.iter().position(|past| Some(past.week) == self.week).unwrap_or(weeks.len() - 1);
        &weeks[from..if self.judge { weeks.len() } else { from + 1 }]
    }

    fn lasting_bytes(&self, plan: &StudyPlan) -> u64 {
        // If a quarter of the pages are in collections.
        80 * plan.urls()
    }

    fn run(&self, cx: &mut Context, plan: &StudyPlan) -> Result<Option<CollectionsSummary>> {
        run::collections(cx, plan, self)
    }

    fn last_week(summary: &CollectionsSummary) -> Option<Week> {
        Some(summary.last)
    }

    fn store_of(summary: &mut CollectionsSummary) -> &mut PathBuf {
        &mut summary.store
    }

    fn report(summary: &CollectionsSummary) -> Sheet {
        report::collections(summary)
    }
}
