//! The tables of URLs without a page, of a week that gets more shards: their rows, cut into those
//! of each new shard.
//!
//! They are in the order of ids or of hashes within a shard, so the rows of a new shard keep their
//! order.

use anyhow::Result;
use arrow_array::{BooleanArray, StringArray};

use super::{Source, Splits};
use crate::jobs::week::IngestedWeek;
use crate::plan::{Plan, Resharding};
use crate::records::KeyHash;
use crate::state::shard_file;
use crate::tables::{
    HostFailureRow, MissingRow, RedirectRow, RowRange, Table, Writer, copy_rows, copy_rows_edited, field,
};

/// The table `missing` of the week with fewer shards.
pub(crate) struct MissingAgain {
    source: Source,
    splits: Splits,
}

impl MissingAgain {
    /// Opens the table.
    ///
    /// # Errors
    /// If a `week.json` is missing or damaged.
    pub(crate) fn open(plan: &Plan, resharding: &Resharding) -> Result<MissingAgain> {
        Ok(MissingAgain { source: Source::open(plan, resharding)?, splits: Splits::default() })
    }

    /// Writes the rows of a new shard, and calls `count` with the reason of each.
    ///
    /// # Errors
    /// If a file cannot be read or written.
    pub(crate) fn shard(&mut self, shard: u32, to: &mut Writer<MissingRow>, mut count: impl FnMut(&str)) -> Result<()> {
        let old = shard / self.source.store.factor;
        let Some(from) = self.source.week().tables.of_shard(MissingRow::NAME, old) else { return Ok(()) };
        let new = self.splits.new_shard(&self.source.store, shard)?;
        let keep = |batch: &arrow_array::RecordBatch| {
            let (of_new, reasons): (BooleanArray, &StringArray) = (new.of_batch(batch)?, field(batch, "reason")?);
            (0..batch.num_rows()).filter(|row| of_new.value(*row)).for_each(|row| count(reasons.value(row)));
            Ok(of_new)
        };
        copy_rows_edited(from, to, &["doc", "reason"], keep, |batch| new.renamed(&batch)).map(|_| ())
    }
}

/// Writes `redirects` and `host-failures` for own shards. A week of an older version lacks them.
///
/// # Errors
/// If a file cannot be read or written.
pub(crate) fn failed_urls_again(week: &IngestedWeek<'_>, resharding: &Resharding) -> Result<()> {
    let source = Source::open(week.plan, resharding)?;
    let (tables, shards) = (&source.week().tables, week.plan.method.shards);
    let (mut redirects, mut host_failures) = (week.bundle::<RedirectRow>(), week.bundle::<HostFailureRow>());
    for shard in week.owned.shards() {
        let old = shard / source.store.factor;
        if let Some(from) = tables.of_shard(RedirectRow::NAME, old) {
            copy_of_shard(from, redirects.writer()?, "url", (shard, shards))?;
            redirects.end_piece(&shard_file(shard))?;
        }
        if let Some(from) = tables.of_shard(HostFailureRow::NAME, old) {
            copy_of_shard(from, host_failures.writer()?, "host", (shard, shards))?;
            host_failures.end_piece(&shard_file(shard))?;
        }
    }
    redirects.finish()?;
    host_failures.finish()
}

/// Copies the rows whose text in a column has a hash of a shard, of so many shards.
fn copy_of_shard<T: Table>(
    from: RowRange,
    to: &mut Writer<T>,
    column: &str,
    (shard, shards): (u32, u32),
) -> Result<()> {
    copy_rows(from, to, &[column], |batch| {
        let texts: &StringArray = field(batch, column)?;
        Ok(texts.iter().map(|text| text.map(|text| KeyHash::of(text).shard(shards) == shard)).collect())
    })
    .map(|_| ())
}
