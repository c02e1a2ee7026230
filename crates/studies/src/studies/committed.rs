//! What an earlier run of a study left in the store.

use anyhow::{Context as _, Result};

use super::study::Study;
use crate::state::{Results, Store};

/// The committed tables of a study, and its summary.
pub struct CommittedTables<S: Study> {
    /// The tables.
    pub results: Results,
    /// The summary.
    pub summary: S::Summary,
}

impl<S: Study> CommittedTables<S> {
    /// Those of the store; `None` if it has none.
    ///
    /// # Errors
    /// Names the file that is missing or damaged.
    pub fn find(store: &Store) -> Result<Option<CommittedTables<S>>> {
        Results::committed(store, S::NAME)?.map(CommittedTables::of).transpose()
    }

    /// Those of the commit with this number.
    ///
    /// # Errors
    /// As [`find`](CommittedTables::find).
    pub fn numbered(store: &Store, commit: u64) -> Result<CommittedTables<S>> {
        CommittedTables::of(Results::of(store, S::NAME, commit))
    }

    fn of(results: Results) -> Result<CommittedTables<S>> {
        let path = results.committed_file("summary.json");
        let text = std::fs::read(&path).with_context(|| format!("cannot read {}", path.display()))?;
        let summary = serde_json::from_slice(&text).with_context(|| format!("{} is damaged", path.display()))?;
        Ok(CommittedTables { results, summary })
    }

    /// The job that made them; `None` if this version of nigh reads it no more.
    ///
    /// # Errors
    /// If the file cannot be read.
    pub fn job(&self) -> Result<Option<S>> {
        let path = self.results.committed_file("job.toml");
        let text = std::fs::read_to_string(&path).with_context(|| format!("cannot read {}", path.display()))?;
        let table = toml::from_str::<toml::Table>(&text).ok().and_then(|mut tables| tables.remove(S::NAME));
        Ok(table.and_then(|table| S::deserialize(table).ok()))
    }
}
