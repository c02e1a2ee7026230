//! A week while it is made, once all of its waves are committed; and the committed weeks that it is computed from.

use std::path::PathBuf;
use std::rc::Rc;
use std::sync::Arc;

use anyhow::Result;

use crate::config::Method;
use crate::operators::scan::{VectorFiles, Vectors, own_segments};
use crate::plan::Plan;
use crate::state::{CommittedWeek, Journal, PostingRuns, Segment, Unfinished, WeekTables, shard_file};
use crate::structures::Ownership;
use crate::tables::{DocumentRow, FeatureRow, RowGroups, Table as _};

/// A week whose waves are all committed, as one worker sees it.
pub(crate) struct IngestedWeek<'a> {
    pub plan: &'a Arc<Plan>,
    pub journal: &'a Journal,
    pub unfinished: &'a Unfinished,
    /// The documents of this week and of all earlier ones that the worker owns.
    pub owned: &'a Ownership,
}

/// A committed week that the new one is computed from, or compared with.
pub(crate) struct BaseWeek {
    pub tables: WeekTables,
    pub journal: Journal,
    /// Its parameters. It may have been verified in another way than the new week.
    pub method: Method,
    /// The inverted index of its supershingles, if the store has one.
    pub postings: Option<PostingRuns>,
}

impl IngestedWeek<'_> {
    /// The week that this one is computed from: the week before, or this week before the deletion. `None` for a store's first
    /// week.
    pub(crate) fn base(&self) -> Result<Option<BaseWeek>> {
        self.base_committed().map(|base| self.open(base)).transpose()
    }

    /// As [`IngestedWeek::base`], not opened.
    pub(crate) fn base_committed(&self) -> Option<&CommittedWeek> {
        self.plan.deletion.as_ref().map(|deletion| &deletion.of).or(self.plan.earlier.last())
    }

    /// The week before; `None` for a store's first week.
    pub(crate) fn week_before(&self) -> Result<Option<BaseWeek>> {
        self.plan.earlier.last().map(|before| self.open(before)).transpose()
    }

    fn open(&self, week: &CommittedWeek) -> Result<BaseWeek> {
        let store = self.plan.open_store();
        let whole = store.whole(week)?;
        let tables = whole.tables(store.root());
        Ok(BaseWeek { tables, journal: whole.journal, method: whole.method, postings: store.postings(week) })
    }

    /// The file of a table with one file for each shard.
    pub(crate) fn table(&self, table: &str, shard: u32) -> PathBuf {
        self.unfinished.table(table, &shard_file(shard))
    }

    /// The own rows of the table `documents`.
    pub(crate) fn documents(&self) -> impl Iterator<Item = RowGroups> {
        let segments = own_segments(self.journal, self.owned).into_iter();
        segments.map(|segment| self.unfinished.table(DocumentRow::NAME, &segment.file()).into())
    }

    /// The own vectors, `width` supershingles each.
    pub(crate) fn vector_files(&self, width: usize) -> Result<VectorFiles> {
        let file = |segment: &Segment| Ok(self.unfinished.table(FeatureRow::NAME, &segment.file()).into());
        VectorFiles::of_week(self.journal, self.owned, width, file)
    }

    /// A function that opens the own feature vectors for reading.
    pub(crate) fn vectors(&self) -> impl Fn() -> Vectors + Clone + 'static {
        let (unfinished, journal, owned) = (self.unfinished.clone(), Rc::new(self.journal.clone()), self.owned.clone());
        move || Vectors::open(&unfinished, &journal, &owned)
    }
}

impl BaseWeek {
    /// The rows of own shards in a table that has rows for each segment, segment by segment; each with its shard.
    ///
    /// # Errors
    /// If the week lacks some: the store is damaged.
    pub(crate) fn rows(&self, table: &str, owned: &Ownership) -> Result<Vec<(RowGroups, u32)>> {
        let segments = own_segments(&self.journal, owned).into_iter();
        segments.map(|segment| Ok((self.tables.rows(table, &segment.file())?, segment.shard))).collect()
    }

    /// The own vectors.
    ///
    /// # Errors
    /// As [`BaseWeek::rows`].
    pub(crate) fn vectors(&self, owned: &Ownership, width: usize) -> Result<VectorFiles> {
        VectorFiles::of_week(&self.journal, owned, width, |segment| self.tables.rows(FeatureRow::NAME, &segment.file()))
    }
}
