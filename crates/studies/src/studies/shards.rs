//! Tables with one file for each shard, written by its owner: so no table depends on the number of
//! workers or processes.

use anyhow::Result;

use super::plan::StudyPlan;
use crate::structures::Ownership;
use crate::tables::{Table, Writer};

/// The files of a table, one for each shard that has rows; the first shard has one in any case.
pub(super) struct ShardFiles<'a, T: Table> {
    plan: &'a StudyPlan,
    /// Whether this worker has shard 0, and its file is not begun.
    has_first: bool,
    writer: Option<(u32, Writer<T>)>,
}

impl<'a, T: Table> ShardFiles<'a, T> {
    /// The files of own shards, without rows.
    pub fn new(plan: &'a StudyPlan, owned: &Ownership) -> ShardFiles<'a, T> {
        ShardFiles { plan, has_first: owned.shards().next() == Some(0), writer: None }
    }

    /// Adds a row to the file of a shard. Shards ascend.
    pub fn push(&mut self, shard: u32, row: T) -> Result<()> {
        if self.writer.as_ref().is_none_or(|(of, _)| *of != shard) {
            self.turn_to(shard)?;
        }
        self.writer.as_mut().map_or(Ok(()), |(_, writer)| writer.push(row))
    }

    fn turn_to(&mut self, shard: u32) -> Result<()> {
        if let Some((_, writer)) = self.writer.take() {
            writer.finish()?;
        }
        if self.has_first && shard > 0 {
            self.plan.write(0, std::iter::empty::<T>())?;
        }
        self.has_first = false;
        let path = self.plan.results().table(T::NAME, shard as usize);
        self.writer = Some((shard, Writer::create(&path)?));
        Ok(())
    }

    pub fn finish(mut self) -> Result<()> {
        if let Some((_, writer)) = self.writer.take() {
            writer.finish()?;
        }
        if self.has_first { self.plan.write(0, std::iter::empty::<T>()) } else { Ok(()) }
    }
}
