//! The weeks of a store that another one stands on: those that are there, and what is left of those that were removed.

use serde::{Deserialize, Serialize};

use super::manifest::{CommittedWeek, Manifest, RemovedWeeks};
use crate::records::Week;

/// The weeks before one.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Earlier {
    /// What is left of weeks that were removed.
    pub removed: Option<RemovedWeeks>,
    /// The others, in order.
    pub weeks: Vec<CommittedWeek>,
}

impl Earlier {
    /// The weeks of a manifest before one that it has, or that is to come.
    pub fn before(manifest: &Manifest, week: Week) -> Earlier {
        let weeks = manifest.weeks.iter().filter(|committed| committed.week < week).cloned().collect();
        Earlier { removed: manifest.removed.clone(), weeks }
    }

    /// The week before; `None` for a store's first.
    pub fn last(&self) -> Option<&CommittedWeek> {
        self.weeks.last()
    }

    /// How many ids were given to URLs in each of so many shards.
    pub fn urls(&self, shards: u32) -> Vec<u64> {
        self.sums(shards, self.removed.as_ref().map(|removed| &removed.urls), |week| &week.urls)
    }

    /// How many names were given to clusters in each of so many shards.
    pub fn named(&self, shards: u32) -> Vec<u64> {
        self.sums(shards, self.removed.as_ref().map(|removed| &removed.named), |week| &week.named)
    }

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
