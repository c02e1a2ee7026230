//! The mirrors study: hosts that mirror each other, by the content of their pages (Fetterly 2004,
//! sections 2 and 4).
//!
//! In reading order: `job`, `run` (from top to bottom), `known_pairs` (what is known of the pairs
//! of a week), `steps`, `write`, `summary`, `report`, `figures`, `host_rows`, `bench`.

#[cfg(feature = "bench")]
mod bench;
mod figures;
mod host_rows;
mod job;
mod known_pairs;
mod report;
mod run;
pub mod steps;
mod summary;
mod write;

pub use self::job::{HostPairs, MirrorSize, Mirrors, Unresolved};
pub use self::summary::{MirrorCounts, MirrorsSummary, PUBLISHED_MIRRORED, PUBLISHED_MIRRORS, WeekOfMirrors};

use std::path::PathBuf;

use anyhow::Result;
use nigh_exchange::Context;

use super::figure::Figure;
use super::host_rows::HostRows;
use super::plan::{StudyInput, StudyPlan};
use super::study::{Runs, Study};
use crate::records::Week;
use crate::sheet::Sheet;
use crate::state::{History, PastWeek, Store};

impl Study for Mirrors {
    const NAME: &'static str = "mirrors";
    const TITLE: &'static str = "Mirrors by content";
    const JOB: &'static str = include_str!("../../../../../jobs/mirrors.toml");
    const RUNS: Runs = Runs::AllWeeks;
    #[cfg(feature = "bench")]
    const BENCH: Option<nigh_bench::AnyBench> = Some(bench::BENCH);
    const FIGURES: &'static [Figure] = figures::FIGURES;
    const HOST_ROWS: Option<HostRows> = Some(host_rows::HOST_ROWS);

    type Summary = MirrorsSummary;

    fn check(&self) -> Result<(), String> {
        self.check_values()
    }

    fn store(&mut self) -> &mut Option<PathBuf> {
        &mut self.store
    }

    fn week(&mut self) -> Option<&mut Option<Week>> {
        None
    }

    fn compares_hosts(&self) -> bool {
        true
    }

    fn find(&self, store: &Store, _notice: &dyn Fn(&str)) -> Result<StudyInput> {
        Ok(History::open(store, self.first, self.last)?.into())
    }

    fn lasting_bytes(&self, plan: &StudyPlan) -> u64 {
        // If all pages of the largest week are on hosts in pairs; and the host of each URL.
        4 * plan.urls() + 56 * plan.history.weeks.iter().map(PastWeek::documents).max().unwrap_or_default()
    }

    fn run(&self, cx: &mut Context, plan: &StudyPlan) -> Result<Option<MirrorsSummary>> {
        run::mirrors(cx, plan, self)
    }

    fn last_week(summary: &MirrorsSummary) -> Option<Week> {
        Some(summary.last)
    }

    fn store_of(summary: &mut MirrorsSummary) -> &mut PathBuf {
        &mut summary.store
    }

    fn report(summary: &MirrorsSummary) -> Sheet {
        report::mirrors(summary)
    }
}
