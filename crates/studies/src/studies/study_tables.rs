//! The tables of studies, for figures: whether they are there, and their rows.

use std::cmp::Ordering;
use std::collections::BTreeSet;
use std::path::Path;

use anyhow::{Context, Result};

use super::any_study::StudySummary;
use super::figure_tables::{FigureTables, RowValues, rows};
use super::study::Study;
use crate::query::{ranges_of_results, ranges_of_week};
use crate::records::Week;
use crate::state::{CommittedWeek, Results};
use crate::tables::{RowRange, Table};

/// Whether a study has tables of the weeks that figures are about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TablesUntil {
    /// It has none.
    Absent,
    /// It has tables until the last of the weeks.
    Here,
    /// Its tables are until this week, which is before the last one.
    Earlier(Week),
    /// Its tables are until this week, which is after the last one.
    Later(Week),
    /// They are until this week, the last one or one before it, as it was before it was changed.
    Replaced(Week),
}

impl FigureTables<'_> {
    /// Whether a study has tables of these weeks.
    ///
    /// # Errors
    /// If its summary is damaged.
    pub fn standing(&self, study: &str) -> Result<TablesUntil> {
        let Some(summary) = self.summary_of(study)? else { return Ok(TablesUntil::Absent) };
        let last = self.last()?.week;
        let until = summary.week().unwrap_or(last);
        Ok(match until.cmp(&last) {
            Ordering::Greater => TablesUntil::Later(until),
            _ if self.manifest.outdates(until, study) => TablesUntil::Replaced(until),
            Ordering::Less => TablesUntil::Earlier(until),
            Ordering::Equal => TablesUntil::Here,
        })
    }

    /// What a study found; `None` if it has no tables.
    ///
    /// # Errors
    /// If its summary is damaged.
    pub fn summary_of(&self, study: &str) -> Result<Option<StudySummary>> {
        let Some(results) = self.results(study) else { return Ok(None) };
        self.store.need_own(&results.own_folder())?;
        StudySummary::read(self.store.store(), study, results.commit_number()).map(Some)
    }

    /// Calls `each` with every row of a table of a study that has tables.
    ///
    /// # Errors
    /// As [`FigureTables::of_week`].
    pub fn of_study<S: Study, T: Table>(
        &self,
        columns: &[&str],
        each: impl FnMut(&RowValues<'_>) -> Result<()>,
    ) -> Result<()> {
        let results = self.results(S::NAME).with_context(|| format!("the store has no tables of {}", S::NAME))?;
        rows(ranges_of_results(self.store, &results, T::NAME)?.into_iter(), columns, each)
    }

    /// The bytes of the files of a table of a week, and of a table of a study.
    ///
    /// # Errors
    /// If a file is missing.
    pub fn bytes<S: Study>(&self, week: &CommittedWeek, of_week: &str, of_study: &[&str]) -> Result<[i64; 2]> {
        let files = ranges_of_week(self.store, week, of_week)?;
        let of_week = bytes(files.iter().map(|(_, rows)| rows))?;
        let results = self.results(S::NAME).with_context(|| format!("the store has no tables of {}", S::NAME))?;
        let mut sum = 0;
        for table in of_study {
            sum += bytes(ranges_of_results(self.store, &results, table)?.iter())?;
        }
        Ok([of_week, sum])
    }

    fn results(&self, study: &str) -> Option<Results> {
        let commit = self.manifest.results.get(study)?;
        Some(Results::of(self.store.store(), study, *commit))
    }
}

/// The bytes of files.
fn bytes<'a>(files: impl Iterator<Item = &'a RowRange>) -> Result<i64> {
    // The rows of many shards can be in one file.
    let files: BTreeSet<&Path> = files.map(RowRange::path).collect();
    let mut sum = 0;
    for path in files {
        sum += path.metadata().with_context(|| format!("cannot read {}", path.display()))?.len() as i64;
    }
    Ok(sum)
}
