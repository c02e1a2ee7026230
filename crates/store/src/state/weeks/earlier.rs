//! The weeks of a store before a given one: those that are present, and what the manifest keeps of
//! the removed ones.

use serde::{Deserialize, Serialize};

use super::manifest::{CommittedWeek, Manifest, RemovedWeeks};
use crate::records::Week;

/// The weeks before a given week. A week builds on them: on the ids of their URLs, and on the
/// clusters of the last one.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Earlier {
    /// What the manifest keeps of removed weeks.
    pub removed: Option<RemovedWeeks>,
    /// The weeks that are present, in order.
    pub weeks: Vec<CommittedWeek>,
}

impl Earlier {
    /// The weeks of a manifest before `week`, which may be committed or not.
    pub fn before(manifest: &Manifest, week: Week) -> Earlier {
        let weeks = manifest.weeks.iter().filter(|committed| committed.week < week).cloned().collect();
        Earlier { removed: manifest.removed.clone(), weeks }
    }

    /// Whether there are none, and never were any.
    pub fn is_empty(&self) -> bool {
        self.weeks.is_empty() && self.removed.is_none()
    }

    /// The last of them; `None` before the first week of a store.
    pub fn last(&self) -> Option<&CommittedWeek> {
        self.weeks.last()
    }

    /// The number of URLs that have an id, in each of `shards` shards.
    pub fn urls(&self, shards: u32) -> Vec<u64> {
        self.sums(shards, self.removed.as_ref().map(|removed| &removed.urls), |week| &week.urls)
    }

    /// The number of cluster ids given, in each of `shards` shards.
    pub fn named(&self, shards: u32) -> Vec<u64> {
        self.sums(shards, self.removed.as_ref().map(|removed| &removed.named), |week| &week.named)
    }

    /// Adds up counts by shard: those of the removed weeks, and `of` each week.
    fn sums<'a>(
        &'a self,
        shards: u32,
        removed: Option<&'a Vec<u64>>,
        of: impl Fn(&'a CommittedWeek) -> &'a Vec<u64>,
    ) -> Vec<u64> {
        let mut sums = vec![0; shards as usize];
        for counts in removed.into_iter().chain(self.weeks.iter().map(of)) {
            sums.iter_mut().zip(counts).for_each(|(sum, count)| *sum += count);
        }
        sums
    }
}
