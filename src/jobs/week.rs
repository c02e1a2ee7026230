//! A week whose waves are all read: what the steps after it need.

use std::path::PathBuf;
use std::sync::Arc;

use crate::operators::InProcess;
use crate::operators::scan::own_segments;
use crate::plan::Plan;
use crate::state::{Journal, PostingRuns, Unfinished};
use crate::structures::Ownership;
use crate::watch::Watch;

/// A committed week, as the next one finds it.
pub(crate) struct LastWeek {
    pub folder: PathBuf,
    pub journal: Journal,
    /// The postings of its vectors, if there are any.
    pub postings: Option<PostingRuns>,
}

impl LastWeek {
    /// The files of a table of own shards that segments gave, each with its shard.
    pub(crate) fn files(&self, table: &str, owned: &Ownership) -> impl Iterator<Item = (PathBuf, u32)> {
        let segments = own_segments(&self.journal, owned).into_iter();
        let folder = self.folder.join(table);
        segments.map(move |segment| (folder.join(segment.file()), segment.shard))
    }
}

/// A week whose waves are all committed, as one worker sees it.
pub(crate) struct ReadWeek<'a> {
    pub plan: &'a Arc<Plan>,
    pub journal: &'a Journal,
    pub unfinished: &'a Unfinished,
    /// The documents of this week and of all earlier ones.
    pub owned: &'a Ownership,
    pub shared: &'a Arc<InProcess>,
    pub watch: &'a Arc<Watch>,
}
