//! Tables with rows of each shard: its owner writes them to a bundle, and the bundles of all
//! workers are packed into few files ([`StudyPlan::pack`]). So no table depends on the number of
//! workers or processes.

use anyhow::Result;

use super::plan::StudyPlan;
use crate::state::{BundleName, BundleWriter, shard_file};
use crate::structures::Ownership;
use crate::tables::Table;

/// The rows of own shards, a piece for each shard that has some; the first shard has one in any
/// case, so that there is a file without rows.
pub(super) struct ShardRows<T: Table> {
    bundle: BundleWriter<T>,
    /// The shard whose piece has not ended; `None` if no shard is own.
    shard: Option<u32>,
}

impl<T: Table> ShardRows<T> {
    /// No rows yet.
    pub fn new(plan: &StudyPlan, owned: &Ownership) -> ShardRows<T> {
        let bundle = plan.results().unfinished().bundle(BundleName::After(owned.worker()));
        ShardRows { bundle, shard: owned.shards().next() }
    }

    /// Adds a row of a shard. Shards ascend.
    pub fn push(&mut self, shard: u32, row: T) -> Result<()> {
        if self.shard != Some(shard) {
            self.end_shard()?;
            self.shard = Some(shard);
        }
        self.bundle.push(row)
    }

    fn end_shard(&mut self) -> Result<()> {
        match self.shard {
            Some(0) => self.bundle.end_any_piece(&shard_file(0)).map(drop),
            Some(shard) => self.bundle.end_piece(&shard_file(shard)).map(drop),
            None => Ok(()),
        }
    }

    pub fn finish(mut self) -> Result<()> {
        self.end_shard()?;
        self.bundle.finish()
    }
}
