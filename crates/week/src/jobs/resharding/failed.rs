//! The tables of URLs without a page, of a week that gets more shards: their rows, cut into those
//! of each new shard.
//!
//! They are in the order of ids or of hashes within a shard, so the rows of a new shard keep their
//! order.

use anyhow::Result;
use arrow_array::{Int64Array, RecordBatch, StringArray};

use super::{Source, Splits};
use crate::jobs::week::IngestedWeek;
use crate::plan::{Plan, Resharding};
use crate::records::{DocId, KeyHash};
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

    /// Writes the rows of a new shard, and calls `count` with the document and the reason of each.
    ///
    /// # Errors
    /// If a file cannot be read or written.
    pub(crate) fn shard(
        &mut self,
        shard: u32,
        to: &mut Writer<MissingRow>,
        mut count: impl FnMut(DocId, &str),
    ) -> Result<()> {
        let old = shard / self.source.store.factor;
        let Some(from) = self.source.week().tables.of_shard(MissingRow::NAME, old) else { return Ok(()) };
        let new = self.splits.new_shard(&self.source.store, shard)?;
        let renamed = |batch: RecordBatch| {
            let batch = new.renamed(&batch)?;
            let (docs, reasons): (&Int64Array, &StringArray) = (field(&batch, "doc")?, field(&batch, "reason")?);
            (0..batch.num_rows()).for_each(|row| count(DocId::from_table(docs.value(row)), reasons.value(row)));
            Ok(batch)
        };
        copy_rows_edited(from, to, &["doc"], |batch| new.of_batch(batch), renamed).map(|_| ())
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
