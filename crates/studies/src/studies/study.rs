//! The face of a study.

use std::fmt::Debug;
use std::path::PathBuf;

use anyhow::Result;
use nigh_exchange::Context;
use serde::Serialize;
use serde::de::DeserializeOwned;

use super::figure::Figure;
use super::host_rows::HostRows;
use super::plan::{StudyInput, StudyPlan};
use crate::records::Week;
use crate::sheet::Sheet;
use crate::state::{PastWeek, Store};

/// When `nigh studies` runs a study, so that its tables know all weeks of a store. In this order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Runs {
    /// Once: it reads all weeks.
    AllWeeks,
    /// For each week in order: a run goes on from the tables of the run before.
    EachWeek,
    /// Once, for the last week, after the others.
    LastWeek,
}

/// A study. The value is its table of a job file.
pub trait Study: Clone + Debug + Serialize + DeserializeOwned {
    /// Its name: that of its table in a job file, and of the folder of its tables.
    const NAME: &'static str;
    /// The heading of its part of a report.
    const TITLE: &'static str;
    /// The commented job file, with every key and its default.
    const JOB: &'static str;

    /// The figures and tables of the paper, in the order of the paper.
    const FIGURES: &'static [Figure] = &[];
    /// What it found of hosts, if one of its tables names them.
    const HOST_ROWS: Option<HostRows> = None;
    /// When `nigh studies` runs it.
    const RUNS: Runs;
    /// Its benchmark, if it has one: `nigh bench NAME`.
    #[cfg(feature = "bench")]
    const BENCH: Option<nigh_bench::AnyBench> = None;

    /// What is kept as `summary.json` with the tables, and printed.
    type Summary: Clone + Debug + PartialEq + Serialize + DeserializeOwned;

    /// Checks the rules that the types of the keys do not say.
    ///
    /// # Errors
    /// Names the key, its value, and what is allowed.
    fn check(&self) -> Result<(), String> {
        Ok(())
    }

    /// The store with the weeks, if the job names it.
    fn store(&mut self) -> &mut Option<PathBuf>;

    /// The week, if the study is about one; `--week` sets it.
    fn week(&mut self) -> Option<&mut Option<Week>>;

    /// The crawl files, if the study reads some; `--input` sets them.
    fn input(&mut self) -> Option<&mut Vec<String>> {
        None
    }

    /// What documents are compared with, if the study compares them with a reference; `--against`
    /// sets it. `nigh studies` leaves out a study that needs one and has none.
    fn against(&mut self) -> Option<&mut Vec<String>> {
        None
    }

    /// Whether it compares hosts. Then the store must know documents by their URLs.
    fn compares_hosts(&self) -> bool {
        false
    }

    /// Whether it has work in a store without weeks.
    fn works_without_weeks(&self) -> bool {
        false
    }

    /// Finds what a run reads: the weeks, the run before that it follows, and files. Tells the user
    /// by `notice` what is left out, and why.
    ///
    /// # Errors
    /// Says what is missing, and how to make it.
    fn find(&self, store: &Store, notice: &dyn Fn(&str)) -> Result<StudyInput>;

    /// Of the weeks of a run, those of which every page is read.
    fn weeks_read<'a>(&self, weeks: &'a [PastWeek]) -> &'a [PastWeek] {
        weeks
    }

    /// The bytes, of all processes, of what stays in memory as long as a run computes; records in
    /// flight are not counted. See the section "Memory" of the study's documentation.
    fn lasting_bytes(&self, plan: &StudyPlan) -> u64;

    /// Computes on one worker. Every worker of every process calls it with the same plan. Worker 0
    /// returns the summary, the others `None`.
    ///
    /// # Errors
    /// If a file cannot be read or written, there is more to compare than the job allows, or a
    /// worker failed.
    fn run(&self, cx: &mut Context, plan: &StudyPlan) -> Result<Option<Self::Summary>>;

    /// The last week that a summary is about; none if it is about lists only.
    fn last_week(summary: &Self::Summary) -> Option<Week>;

    /// The store, as a summary names it.
    fn store_of(summary: &mut Self::Summary) -> &mut PathBuf;

    /// A summary for a person. The folder of the tables is added to it.
    fn report(summary: &Self::Summary) -> Sheet;
}
