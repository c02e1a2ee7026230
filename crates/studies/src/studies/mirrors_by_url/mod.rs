//! The mirrors-by-url study: hosts that mirror each other, by their URLs (Bharat and Broder 1999).
//!
//! In reading order: `job`, `run` (from top to bottom), `steps`, `compared` (mirrors by URL beside
//! those by content), `write`, `summary`, `report`, `figures`, `host_rows`, `bench`.

#[cfg(feature = "bench")]
mod bench;
mod compared;
mod figures;
mod host_rows;
mod job;
mod report;
mod run;
pub mod steps;
mod summary;
mod write;

pub use self::job::{MirrorsByUrl, Unfetched, UrlChoice};
pub use self::summary::{MirrorWays, MirrorsByUrlSummary, PUBLISHED_URLS, PublishedUrls};

use std::path::PathBuf;

use anyhow::Result;
use nigh_exchange::Context;

use super::figure::Figure;
use super::host_rows::HostRows;
use super::plan::{StudyFiles, StudyInput, StudyPlan};
use super::study::{Runs, Study};
use crate::config::{Method, Reading};
use crate::plan::job_of_week;
use crate::records::Week;
use crate::sheet::Sheet;
use crate::state::{History, PastWeek, Store};

impl Study for MirrorsByUrl {
    const NAME: &'static str = "mirrors-by-url";
    const TITLE: &'static str = "Mirrors by URL";
    const JOB: &'static str = include_str!("../../../../../jobs/mirrors-by-url.toml");
    const RUNS: Runs = Runs::LastWeek;
    #[cfg(feature = "bench")]
    const BENCH: Option<nigh_bench::AnyBench> = Some(bench::BENCH);
    const FIGURES: &'static [Figure] = figures::FIGURES;
    const HOST_ROWS: Option<HostRows> = Some(host_rows::HOST_ROWS);

    type Summary = MirrorsByUrlSummary;

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

    fn compares_hosts(&self) -> bool {
        true
    }

    fn works_without_weeks(&self) -> bool {
        !self.lists.is_empty()
    }

    fn find(&self, store: &Store, notice: &dyn Fn(&str)) -> Result<StudyInput> {
        let history = self.history_beside_lists(store, notice)?;
        let files = self.files(store, &history)?;
        Ok(StudyInput { history, former: None, files })
    }

    fn weeks_read<'a>(&self, weeks: &'a [PastWeek]) -> &'a [PastWeek] {
        &weeks[weeks.len().saturating_sub(1)..]
    }

    fn lasting_bytes(&self, plan: &StudyPlan) -> u64 {
        // If each host has just enough URLs, a fifth of them are sampled: 120 bytes each. A line of
        // a list has about 60 bytes. Every worker has the listed hosts: about 4 kB a pair, if they
        // are so many.
        let urls = plan.urls() + plan.files.lists.iter().map(|file| file.bytes).sum::<u64>() / 60;
        let pairs = u64::from(self.most_candidates.get()).min(urls / (2 * u64::from(self.least_urls.get())));
        24 * urls + 4000 * pairs * (plan.processes * plan.workers) as u64
    }

    fn run(&self, cx: &mut Context, plan: &StudyPlan) -> Result<Option<MirrorsByUrlSummary>> {
        run::mirrors_by_url(cx, plan, self)
    }

    fn last_week(summary: &MirrorsByUrlSummary) -> Option<Week> {
        summary.last
    }

    fn store_of(summary: &mut MirrorsByUrlSummary) -> &mut PathBuf {
        &mut summary.store
    }

    fn report(summary: &MirrorsByUrlSummary) -> Sheet {
        report::mirrors_by_url(summary)
    }
}

impl MirrorsByUrl {
    /// The weeks up to that of the job; none, if the store has no week yet and the job has lists.
    fn history_beside_lists(&self, store: &Store, notice: &dyn Fn(&str)) -> Result<History> {
        let last = store.manifest()?.and_then(|manifest| manifest.weeks.last().map(|week| week.week));
        let week = self.week.or(last);
        if self.lists.is_empty() || week.is_some() {
            // The weeks before say how old hosts are.
            return History::open(store, None, week);
        }
        notice(&format!("{} has no week: the URLs are those of the lists", store.root().display()));
        Ok(History::without_weeks(store))
    }

    /// The files that the job names. Pages are read as those of its week were.
    fn files(&self, store: &Store, history: &History) -> Result<StudyFiles> {
        let lists = if self.lists.is_empty() { Vec::new() } else { crate::readers::url_files(&self.lists)? };
        let manifest = store.manifest()?;
        let reading = match history.weeks.last() {
            Some(week) if !self.input.is_empty() => job_of_week(store, &store.committed(week.week)?)?.read.here(),
            _ => Reading::default(),
        };
        let crawl = if self.input.is_empty() { Vec::new() } else { crate::readers::list(&self.input, &reading)? };
        crawl.iter().try_for_each(|input| crate::readers::check(input, &reading).map(drop))?;
        let method = manifest.map_or_else(Method::default, |manifest| manifest.method);
        Ok(StudyFiles { lists, crawl, reading, method, reference: Vec::new() })
    }
}
