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
pub use self::job::{PassageDocuments, Passages};
pub use self::summary::{FrequentPassage, PassagesSummary};

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result};
use nigh_exchange::Context;

use super::plan::{StudyFiles, StudyInput, StudyPlan};
use super::study::{Runs, Study};
use crate::config::{Cluster, Method, Verify};
use crate::plan::{inputs_at_hand, job_of_week};
use crate::readers::Input;
use crate::records::Week;
use crate::sheet::Sheet;
use crate::state::{History, Store};

impl Study for Passages {
    const NAME: &'static str = "passages";
    const TITLE: &'static str = "Repeated passages";

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
        let files = self.files(store, history.last().week)?;
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

    fn report(summary: &PassagesSummary, tables: &Path) -> Sheet {
        report::passages(summary, tables)
    }
}

impl Passages {
    /// The input files of a week in the order of the corpus: those of earlier batches whose
    /// documents stay, as far as they are at hand, and those that the job names, or that the job of
    /// the week names.
    fn files(&self, store: &Store, week: Week) -> Result<StudyFiles> {
        let committed = store.committed(week)?;
        let Cluster { input, read: reading, .. } = job_of_week(store, &committed)?;
        let input = if self.input.is_empty() { input } else { self.input.clone() };
        let own = crate::readers::list(&input, &reading)
            .with_context(|| format!("the input files of week {week} are read again: give them with --input"))?;
        let journal = store.whole(&committed)?.journal;
        let earlier = journal.earlier_inputs.values().flat_map(|names| names.keys()).map(String::as_str);
        let earlier = inputs_at_hand(earlier, &reading, Verify::Exact, true);
        let mut at_hand: BTreeMap<String, Input> =
            earlier.into_iter().chain(own).map(|input| (input.name.clone(), input)).collect();
        let names = journal.inputs(week).flat_map(|(_, names)| names.keys());
        let crawl = names.filter_map(|name| at_hand.remove(name)).collect();
        let method = store.manifest()?.map_or_else(Method::default, |manifest| manifest.method);
        Ok(StudyFiles { lists: Vec::new(), crawl, reading, method })
    }
}
