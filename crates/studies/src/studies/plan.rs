//! The plan of a study, and how it writes its tables.

use std::path::PathBuf;

use anyhow::{Result, bail};
use nigh_exchange::Context;
use serde::{Deserialize, Serialize};

use crate::config::{Method, Reading};
use crate::jobs::packing::TablePacking;
use crate::readers::{Input, UrlFile};
use crate::records::Week;
use crate::state::{History, Results, Store, WeekFiles};
use crate::structures::Ownership;
use crate::tables::{Table, Writer, result_tables};

/// What a run of a study reads.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct StudyInput {
    /// The weeks.
    pub history: History,
    /// The number of the commit whose tables of the same study the run follows. For overlap they
    /// are those of the first week to read.
    pub former: Option<u64>,
    /// Files that the job names besides the weeks.
    pub files: StudyFiles,
}

/// Weeks alone.
impl From<History> for StudyInput {
    fn from(history: History) -> StudyInput {
        StudyInput { history, former: None, files: StudyFiles::default() }
    }
}

/// The plan of a run, the same in every process.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct StudyPlan {
    /// The folder of its tables.
    pub folder: String,
    /// The weeks to read.
    pub history: History,
    /// As in [`StudyInput`].
    pub former: Option<u64>,
    /// As in [`StudyInput`].
    pub files: StudyFiles,
    /// The name of the store's folder for unfinished work.
    pub work: String,
    /// The number of the commit that makes the tables.
    pub commit: u64,
    /// The number of processes.
    pub processes: usize,
    /// The number of workers in each process.
    pub workers: usize,
    /// Memory for the buffers of one worker, in bytes.
    pub worker_memory: u64,
}

/// Files that a job names besides the weeks of a store, and how they are read.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct StudyFiles {
    /// Lists of URLs.
    pub lists: Vec<UrlFile>,
    /// Crawl files.
    pub crawl: Vec<Input>,
    /// How pages of crawl files are read.
    pub reading: Reading,
    /// The parameters of their features.
    pub method: Method,
    /// Files of a reference.
    pub reference: Vec<ReferenceFile>,
}

/// A file of a reference, with which documents are compared.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct ReferenceFile {
    /// The file.
    pub input: Input,
    /// How it is read.
    pub reading: Reading,
    /// The store that it is an input of, if it is: then its documents there are the reference, and
    /// not what columns of the job have.
    pub of_store: Option<ReferenceStore>,
}

/// A store whose documents of a week are a reference.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReferenceStore {
    /// Its folder.
    pub store: PathBuf,
    /// Its last week.
    pub week: Week,
}

impl StudyPlan {
    /// The results, while they are made.
    pub fn results(&self) -> Results {
        Results::of(&Store::at(&self.history.store).working_in(&self.work), &self.folder, self.commit)
    }

    /// The URLs of the last week that a worker owns; none without weeks.
    pub(crate) fn owned(&self, cx: &Context) -> Ownership {
        Ownership::new(cx.index(), cx.peers(), self.history.rows_by_shard())
    }

    /// The URLs of the last week.
    pub fn urls(&self) -> u64 {
        self.history.rows_by_shard().iter().sum()
    }

    /// Writes a small table into one file, even without rows. Worker 0 calls it.
    pub(crate) fn write<T: Table>(&self, rows: impl IntoIterator<Item = T>) -> Result<()> {
        let mut writer: Writer<T> = Writer::create(&self.results().table(T::NAME, 0))?;
        rows.into_iter().try_for_each(|row| writer.push(row))?;
        writer.finish().map(|_| ())
    }

    /// Packs the rows that all workers have written shard by shard. Every worker calls it; returns
    /// the files.
    pub(super) fn pack(&self, cx: &mut Context) -> Result<WeekFiles> {
        let results = self.results();
        let packing = TablePacking {
            unfinished: &results.unfinished(),
            owned: &self.owned(cx),
            tables: result_tables(&self.folder).iter().collect(),
            always: 0,
            staged: &|table, part| results.table(table, part),
            labels: &[],
        };
        packing.pack(cx)
    }
}

/// Checks that the last week of a history has chunks, for a job that is named `study`.
///
/// # Errors
/// If it has pages with words and no chunks: says how to make them.
pub fn check_chunks(history: &History, study: &str) -> Result<()> {
    if let (1.., 0) = history.last().pages_with_chunks() {
        let (week, store) = (history.last().week, history.store.display());
        bail!(
            "week {week} of {store} has no chunks, which the {study} job reads. This makes them: \
             `nigh run jobs/chunks.toml --store {store} --week {week} --input FILES`, with the crawl files of the week"
        );
    }
    Ok(())
}
