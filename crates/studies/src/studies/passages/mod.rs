//! The passages study: passages of texts that stand more than once in a corpus, word by word.
//!
//! In reading order: `job`, `documents` (which texts are compared, and how they are read again),
//! `run` (from top to bottom), `steps`, `write`, `summary`, `report`.

mod documents;
mod job;
mod report;
mod run;
mod steps;
mod summary;
mod write;

pub use self::documents::ComparedBatch;
pub(in crate::studies) use self::documents::{CrawlTexts, corpus_of_week};
pub use self::job::{PassageDocuments, Passages};
pub(in crate::studies) use self::steps::{CorpusPlace, OpenText, ReadTexts, TextSource, polynomials, send, sort_of};
pub use self::summary::{FrequentPassage, PassagesSummary};

use std::path::PathBuf;

use anyhow::Result;
use nigh_exchange::Context;

use super::plan::{StudyInput, StudyPlan};
use super::study::{Runs, Study};
use crate::records::Week;
use crate::sheet::Sheet;
use crate::state::{History, Store};

impl Study for Passages {
    const NAME: &'static str = "passages";
    const TITLE: &'static str = "Repeated passages";
    const JOB: &'static str = include_str!("../../../../../jobs/passages.toml");
    const RUNS: Runs = Runs::LastWeek;

    type Summary = PassagesSummary;

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
        let files = corpus_of_week(store, history.last().week, &self.input)?;
        Ok(StudyInput { history, former: None, files })
    }

    fn lasting_bytes(&self, plan: &StudyPlan) -> u64 {
        plan.urls() + 56 * plan.history.last().documents()
    }

    fn run(&self, cx: &mut Context, plan: &StudyPlan) -> Result<Option<PassagesSummary>> {
        run::passages(cx, plan, self)
    }

    fn last_week(summary: &PassagesSummary) -> Option<Week> {
        Some(summary.last)
    }

    fn store_of(summary: &mut PassagesSummary) -> &mut PathBuf {
        &mut summary.store
    }

    fn report(summary: &PassagesSummary) -> Sheet {
        report::passages(summary)
    }
}
