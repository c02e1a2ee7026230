//! The tables that figures are drawn from, row by row.

use anyhow::{Context, Result, bail};
use arrow_array::{
    Array as _, BooleanArray, Date32Array, Float64Array, Int32Array, Int64Array, RecordBatch, StringArray,
};

use crate::mirror::ReadStore;
use crate::query::ranges_of_week;
use crate::records::Week;
use crate::state::{CommittedWeek, Manifest};
use crate::tables::{RowRange, Scan, Table, field};

/// The tables of a store, until a week.
#[derive(Clone, Copy)]
pub struct FigureTables<'a> {
    pub(super) store: &'a ReadStore,
    pub(super) manifest: &'a Manifest,
    weeks: &'a [CommittedWeek],
}

impl<'a> FigureTables<'a> {
    /// Those of a store until a week, which it has.
    pub fn new(store: &'a ReadStore, manifest: &'a Manifest, until: Week) -> FigureTables<'a> {
        let count = manifest.weeks.iter().take_while(|week| week.week <= until).count();
        FigureTables { store, manifest, weeks: &manifest.weeks[..count] }
    }

    /// The weeks, in order.
    pub fn weeks(&self) -> &'a [CommittedWeek] {
        self.weeks
    }

    /// The last week.
    ///
    /// # Errors
    /// If there is none.
    pub fn last(&self) -> Result<&'a CommittedWeek> {
        self.weeks.last().context("the store has no week")
    }

    /// Calls `each` with every row of a table of a week.
    ///
    /// # Errors
    /// If a file cannot be read; or returns the first error of `each`.
    pub fn of_week<T: Table>(
        &self,
        week: &CommittedWeek,
        columns: &[&str],
        each: impl FnMut(&RowValues<'_>) -> Result<()>,
    ) -> Result<()> {
        let files = ranges_of_week(self.store, week, T::NAME)?;
        rows(files.into_iter().map(|(_, rows)| rows), columns, each)
    }
}

/// Calls `each` with every row of files.
pub(super) fn rows(
    files: impl Iterator<Item = RowRange>,
    columns: &[&str],
    mut each: impl FnMut(&RowValues<'_>) -> Result<()>,
) -> Result<()> {
    for file in files {
        Scan::open(file, columns)?
            .for_each(|batch| (0..batch.num_rows()).try_for_each(|row| each(&RowValues::new(batch, row))))?;
    }
    Ok(())
}

/// The values of a row, by column.
pub struct RowValues<'a> {
    batch: &'a RecordBatch,
    row: usize,
}

impl<'a> RowValues<'a> {
    /// Those of a row of a batch, by its number.
    pub fn new(batch: &'a RecordBatch, row: usize) -> RowValues<'a> {
        RowValues { batch, row }
    }
}

impl RowValues<'_> {
    /// A text.
    ///
    /// # Errors
    /// If the table has no such column of texts; so do the others.
    pub fn text(&self, column: &str) -> Result<String> {
        Ok(field::<StringArray>(self.batch, column)?.value(self.row).to_owned())
    }

    /// A whole number.
    ///
    /// # Errors
    /// As [`RowValues::text`].
    pub fn count(&self, column: &str) -> Result<i64> {
        self.maybe_count(column)?.with_context(|| format!("`{column}` has no value"))
    }

    /// A whole number, if there is one.
    ///
    /// # Errors
    /// As [`RowValues::text`].
    pub fn maybe_count(&self, column: &str) -> Result<Option<i64>> {
        let values = self.batch.column_by_name(column).with_context(|| format!("no column `{column}`"))?;
        if values.is_null(self.row) {
            return Ok(None);
        }
        let any = values.as_any();
        match (any.downcast_ref::<Int64Array>(), any.downcast_ref::<Int32Array>()) {
            (Some(longs), _) => Ok(Some(longs.value(self.row))),
            (_, Some(ints)) => Ok(Some(ints.value(self.row).into())),
            _ => bail!("column `{column}` has no whole numbers"),
        }
    }

    /// A number, if there is one.
    ///
    /// # Errors
    /// As [`RowValues::text`].
    pub fn real(&self, column: &str) -> Result<Option<f64>> {
        let values: &Float64Array = field(self.batch, column)?;
        Ok(values.is_valid(self.row).then(|| values.value(self.row)))
    }

    /// Yes or no.
    ///
    /// # Errors
    /// As [`RowValues::text`].
    pub fn truth(&self, column: &str) -> Result<bool> {
        Ok(field::<BooleanArray>(self.batch, column)?.value(self.row))
    }

    /// A week.
    ///
    /// # Errors
    /// As [`RowValues::text`].
    pub fn week(&self, column: &str) -> Result<Week> {
        Ok(Week::from_days(field::<Date32Array>(self.batch, column)?.value(self.row)))
    }

    /// A week, if there is one.
    ///
    /// # Errors
    /// As [`RowValues::text`].
    pub fn maybe_week(&self, column: &str) -> Result<Option<Week>> {
        let weeks: &Date32Array = field(self.batch, column)?;
        Ok(weeks.is_valid(self.row).then(|| Week::from_days(weeks.value(self.row))))
    }
}
