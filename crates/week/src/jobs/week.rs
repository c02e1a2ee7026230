//! A week while it is made, once all of its waves are committed; and the committed weeks that it is
//! computed from.

use std::cell::OnceCell;
use std::sync::Arc;

use anyhow::Result;

use crate::config::Method;
use crate::operators::scan::{SketchFiles, VectorFiles, own_segments};
use crate::plan::Plan;
use crate::state::{
    BundleName, BundleWriter, CommittedWeek, PostingRuns, Segment, Unfinished, WeekJournal, WeekTables,
};
use crate::structures::Ownership;
use crate::tables::{DocumentRow, FeatureRow, RowRange, Table, ValueRow};

/// A week whose waves are all committed, as one worker sees it.
pub(crate) struct IngestedWeek<'a> {
    pub plan: &'a Arc<Plan>,
    pub journal: &'a WeekJournal,
    pub unfinished: &'a Unfinished,
    /// The documents of this week and of all earlier ones that the worker owns.
    pub owned: &'a Ownership,
    /// The number of the worker.
    pub worker: usize,
    /// The week that this one is computed from: the week before, or this week before the deletion.
    /// `None` for a store's first week.
    pub base: Option<&'a BaseWeek>,
    /// The own vectors, once they were needed: of those of pages that stay it is then known which
    /// rows count.
    pub vector_files: OnceCell<VectorFiles>,
}

/// A committed week that the new one is computed from, or compared with.
pub(crate) struct BaseWeek {
    pub tables: WeekTables,
    pub journal: WeekJournal,
    /// Its parameters. It may have been verified in another way than the new week.
    pub method: Method,
    /// The inverted index of its supershingles, if the store has one.
    pub postings: Option<PostingRuns>,
}

impl IngestedWeek<'_> {
    /// The week before; `None` for a store's first week.
    pub(crate) fn week_before(&self) -> Result<Option<BaseWeek>> {
        self.plan.earlier.last().map(|before| BaseWeek::open(self.plan, before)).transpose()
    }

    /// A writer of the worker's rows of a table.
    pub(crate) fn bundle<T: Table>(&self) -> BundleWriter<T> {
        self.unfinished.bundle(BundleName::After(self.worker))
    }

    /// The own rows of the table `documents`, segment by segment.
    ///
    /// # Errors
    /// If the week lacks some, or a file cannot be read.
    pub(crate) fn documents(&self) -> Result<Vec<RowRange>> {
        let segments = own_segments(self.journal, self.owned).into_iter();
        segments.map(|segment| self.unfinished.rows::<DocumentRow>(&segment.file())).collect()
    }

    /// The own rows of the table `values`, segment by segment; `None` for one without values.
    ///
    /// # Errors
    /// If a file cannot be read.
    pub(crate) fn values(&self) -> Result<Vec<Option<RowRange>>> {
        let segments = own_segments(self.journal, self.owned).into_iter();
        segments.map(|segment| self.unfinished.find::<ValueRow>(&segment.file())).collect()
    }

    /// The own vectors.
    ///
    /// # Errors
    /// As [`IngestedWeek::documents`].
    pub(crate) fn vector_files(&self) -> Result<VectorFiles> {
        if let Some(files) = self.vector_files.get() {
            return Ok(files.clone());
        }
        let width = self.plan.method.supershingles;
        let files = VectorFiles::of_week(self.journal, self.owned, width, |segment| self.features_of(segment))?;
        Ok(self.vector_files.get_or_init(|| files).clone())
    }

    /// The own sketches.
    ///
    /// # Errors
    /// As [`IngestedWeek::documents`].
    pub(crate) fn sketches(&self) -> Result<SketchFiles> {
        Ok(SketchFiles::new(self.vector_files()?, self.plan.method.features))
    }

    /// The rows of a segment in the table `features`. Those of pages that stay are in files of the
    /// base, or of a week before it: of these rows those count whose documents the segment has.
    fn features_of(&self, segment: &Segment) -> Result<RowRange> {
        let name = segment.file();
        match (self.unfinished.find::<FeatureRow>(&name)?, segment.origin, self.base) {
            (None, Some(origin), Some(base)) => {
                let rows = base.tables.of_origin(FeatureRow::NAME, segment.shard, origin)?;
                Ok(rows.live_in(self.unfinished.rows::<DocumentRow>(&name)?))
            }
            _ => self.unfinished.rows::<FeatureRow>(&name),
        }
    }
}

impl BaseWeek {
    /// The week that the one of the plan is computed from; `None` for a store's first week.
    ///
    /// # Errors
    /// If its `week.json` cannot be read.
    pub(crate) fn of(plan: &Plan) -> Result<Option<BaseWeek>> {
        BaseWeek::committed(plan).map(|base| BaseWeek::open(plan, base)).transpose()
    }

    /// As [`BaseWeek::of`], not opened.
    pub(crate) fn committed(plan: &Plan) -> Option<&CommittedWeek> {
        plan.deletion.as_ref().map(|deletion| &deletion.of).or(plan.earlier.last())
    }

    fn open(plan: &Plan, week: &CommittedWeek) -> Result<BaseWeek> {
        let store = plan.open_store();
        let whole = store.whole_base(week)?;
        let tables = whole.tables(store.root());
        Ok(BaseWeek { tables, journal: whole.journal, method: whole.method, postings: store.postings(week) })
    }

    /// The rows of own shards in a table that has rows for each segment, segment by segment; each
    /// with its shard.
    ///
    /// # Errors
    /// If the week lacks some: the store is damaged.
    pub(crate) fn rows(&self, table: &str, owned: &Ownership) -> Result<Vec<(RowRange, u32)>> {
        let segments = own_segments(&self.journal, owned).into_iter();
        segments.map(|segment| Ok((self.tables.rows(table, &segment.file())?, segment.shard))).collect()
    }

    /// The own vectors.
    ///
    /// # Errors
    /// As [`BaseWeek::rows`].
    pub(crate) fn vectors(&self, owned: &Ownership, width: usize) -> Result<VectorFiles> {
        VectorFiles::of_week(&self.journal, owned, width, |segment| self.tables.of_segment(FeatureRow::NAME, segment))
    }
}
