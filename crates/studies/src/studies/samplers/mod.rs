//! The samplers study: how well samples of shingles estimate resemblance (Broder 1997; Fetterly
//! 2004, section 2).
//!
//! In reading order: `job`, `run` (from top to bottom), `chosen_pairs` (which pairs of pages are
//! compared), `measure` (what each sampler says of a pair), `errors` (how far that is from the
//! truth, by band of resemblance), `summary`, `report`.

mod chosen_pairs;
mod errors;
mod job;
mod measure;
mod report;
mod run;
mod summary;

pub use self::job::Samplers;
pub use self::summary::{SamplerBand, SamplerSummary, SamplersSummary};

use std::collections::BTreeSet;
use std::path::PathBuf;

use anyhow::{Context as _, Result};
use nigh_exchange::Context;

use super::plan::{StudyFiles, StudyInput, StudyPlan};
use super::study::{Runs, Study};
use crate::config::{Cluster, Method, Verify};
use crate::plan::{inputs_at_hand, job_of_week, named_inputs};
use crate::records::Week;
use crate::sheet::Sheet;
use crate::state::{History, Store};

impl Study for Samplers {
    const NAME: &'static str = "samplers";
    const TITLE: &'static str = "Samplers";
    const JOB: &'static str = include_str!("../../../../../jobs/samplers.toml");
    const RUNS: Runs = Runs::LastWeek;

    type Summary = SamplersSummary;

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

    fn find(&self, store: &Store, _notice: &dyn Fn(&str)) -> Result<StudyInput> {
        let last = store.manifest()?.and_then(|manifest| manifest.weeks.last().map(|week| week.week));
        let week = self.week.or(last);
        let history = History::open(store, week, week)?;
        let files = self.crawl_files(store, history.last().week)?;
        Ok(StudyInput { history, former: None, files })
    }

    fn lasting_bytes(&self, plan: &StudyPlan) -> u64 {
        8 * plan.urls()
    }

    fn run(&self, cx: &mut Context, plan: &StudyPlan) -> Result<Option<SamplersSummary>> {
        run::samplers(cx, plan, self)
    }

    fn last_week(summary: &SamplersSummary) -> Option<Week> {
        Some(summary.last)
    }

    fn store_of(summary: &mut SamplersSummary) -> &mut PathBuf {
        &mut summary.store
    }

    fn report(summary: &SamplersSummary) -> Sheet {
        report::samplers(summary)
    }
}

impl Samplers {
    /// The crawl files of a week: those that the job names, or those that the job of the week
    /// names; and those of earlier weeks with pages that stay, which are at hand.
    fn crawl_files(&self, store: &Store, week: Week) -> Result<StudyFiles> {
        let committed = store.committed(week)?;
        let Cluster { input, read: reading, .. } = job_of_week(store, &committed)?;
        let crawl = match &self.input[..] {
            [] => crate::readers::list(&input, &reading),
            named => crate::readers::list(named, &reading.here()),
        };
        let crawl =
            crawl.with_context(|| format!("the crawl files of week {week} are read again: give them with --input"))?;
        let whole = store.whole(&committed)?;
        let mut crawl = named_inputs((store, &whole), crawl, &reading);
        let names = whole.journal.earlier_names();
        let known: BTreeSet<String> = crawl.iter().map(|input| input.name.clone()).collect();
        let at_hand = inputs_at_hand((store, &whole), names, &reading, Verify::Exact, true);
        crawl.extend(at_hand.into_iter().filter(|input| !known.contains(&input.name)));
        let method = store.manifest()?.map_or_else(Method::default, |manifest| manifest.method);
        Ok(StudyFiles { crawl, reading, method, ..StudyFiles::default() })
    }
}
