//! The means of the numbers that the records of clusters have in a column.

use anyhow::Result;
use serde::{Deserialize, Serialize};

use crate::structures::{Sortable, Sorted};

/// The number that a member of a cluster has in the column of the scores.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub(super) struct Scored {
    pub(super) cluster: i64,
    pub(super) number: f64,
    pub(super) doc: i64,
}

impl Sortable for Scored {
    /// The sum does not depend on document ids.
    type Key = (i64, u64, i64);

    fn key(&self) -> Self::Key {
        (self.cluster, self.number.to_bits(), self.doc)
    }

    fn weight(&self) -> usize {
        size_of::<Scored>()
    }
}

/// The means of the numbers of clusters, which ascend.
pub(super) struct Means {
    sorted: Sorted<Scored>,
    next: Option<Scored>,
}

impl Means {
    pub(super) fn new(mut sorted: Sorted<Scored>) -> Result<Means> {
        let next = sorted.record()?;
        Ok(Means { sorted, next })
    }

    /// The mean of a cluster; `None` if none of its records has a number. Each call must be for a
    /// larger cluster than the one before.
    pub(super) fn of(&mut self, cluster: i64) -> Result<Option<f64>> {
        let (mut sum, mut count) = (0.0, 0_u64);
        while let Some(scored) = self.next.take_if(|next| next.cluster <= cluster) {
            if scored.cluster == cluster {
                (sum, count) = (sum + scored.number, count + 1);
            }
            self.next = self.sorted.record()?;
        }
        let mean = sum / count as f64;
        Ok(Some(mean).filter(|mean| mean.is_finite()))
    }
}
