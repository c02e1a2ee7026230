//! The wanted rows of a table, batch by batch: of a week, of several, or of a study.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;

use anyhow::{Context, Result};
use arrow_array::{ArrayRef, Date32Array, RecordBatch, RecordBatchOptions};
use arrow_schema::{DataType, Field, Schema, SchemaRef};
use arrow_select::filter::filter_record_batch;

use super::condition::{Condition, column_of};
use super::named::NamedTable;
use super::write::{RowSink, TableFormat, TableWriter};
use crate::mirror::ReadStore;
use crate::records::Week;
use crate::state::{CommittedWeek, History, Results};
use crate::tables::{ColumnSpec, RowRange, Scan};

/// Rows of a batch.
const BATCH: usize = 4096;
/// The column that says of which week a row is.
const WEEK: &str = "week";

/// Which columns and rows of a table are wanted.
#[derive(Clone, Debug)]
pub struct RowChoice {
    columns: Vec<&'static ColumnSpec>,
    conditions: Vec<Condition>,
    /// The rows that are wanted, at most.
    limit: Option<u64>,
    /// Whether each row says its week, in a first column.
    has_weeks: bool,
    /// What the table is: its name and its description.
    about: [String; 2],
}

impl RowChoice {
    /// The wanted columns in their order, all if none are named; the conditions, `COLUMN=VALUE`,
    /// which must all hold; and the most rows.
    ///
    /// # Errors
    /// If the table has no such column, or a value is not one of the type of its column.
    pub fn new(
        table: NamedTable,
        columns: &[String],
        conditions: &[String],
        limit: Option<u64>,
        has_weeks: bool,
    ) -> Result<RowChoice, String> {
        let spec = table.spec();
        let named: Result<Vec<&ColumnSpec>, String> = columns.iter().map(|name| column_of(spec, name)).collect();
        let columns = if columns.is_empty() { spec.columns.iter().collect() } else { named? };
        let conditions: Result<Vec<Condition>, String> =
            conditions.iter().map(|text| Condition::read(text, spec)).collect();
        let about = [table.name(), spec.description.to_owned()];
        Ok(RowChoice { columns, conditions: conditions?, limit, has_weeks, about })
    }

    /// The columns that are read.
    fn read(&self) -> Vec<&'static str> {
        let mut names: Vec<&'static str> = Vec::new();
        let conditions = self.conditions.iter().map(|condition| condition.column);
        for name in self.columns.iter().map(|column| column.name).chain(conditions) {
            if !names.contains(&name) {
                names.push(name);
            }
        }
        names
    }
}

/// The wanted rows of some files.
pub struct WantedRows {
    choice: RowChoice,
    files: VecDeque<(Week, RowRange)>,
    scan: Option<(Week, Scan)>,
    schema: SchemaRef,
    /// The rows that may still come.
    left: u64,
}

impl WantedRows {
    /// Opens the rows of files, each with its week; that of tables of studies does not matter.
    ///
    /// # Errors
    /// If the first file cannot be read.
    pub fn open(choice: RowChoice, files: Vec<(Week, RowRange)>) -> Result<WantedRows> {
        let mut files = VecDeque::from(files);
        // The first file says how long byte strings are that all have one length.
        let scan = match files.pop_front() {
            Some((week, file)) => Some((week, Scan::open_by(file, &choice.read(), BATCH)?)),
            None => None,
        };
        let of_file = scan.as_ref().map(|(_, scan)| scan.schema());
        let field = |column: &&ColumnSpec| {
            let of_file = of_file.as_ref().and_then(|schema| schema.field_with_name(column.name).ok());
            let values = of_file.map_or_else(|| column.values.data_type(), |field| field.data_type().clone());
            let about = HashMap::from([("description".to_owned(), column.description.to_owned())]);
            Field::new(column.name, values, column.nullable).with_metadata(about)
        };
        let week = choice.has_weeks.then(|| Field::new(WEEK, DataType::Date32, false));
        let fields: Vec<Field> = week.into_iter().chain(choice.columns.iter().map(field)).collect();
        let [name, description] = choice.about.clone();
        let about = HashMap::from([("nigh.table".to_owned(), name), ("nigh.description".to_owned(), description)]);
        let schema = Arc::new(Schema::new_with_metadata(fields, about));
        let left = choice.limit.unwrap_or(u64::MAX);
        Ok(WantedRows { choice, files, scan, schema, left })
    }

    /// The columns.
    pub fn schema(&self) -> SchemaRef {
        self.schema.clone()
    }

    /// The next rows; `None` after the last one.
    ///
    /// # Errors
    /// Names the file that cannot be read.
    pub fn batch(&mut self) -> Result<Option<RecordBatch>> {
        while self.left > 0 {
            let Some((week, scan)) = &mut self.scan else {
                let Some((week, file)) = self.files.pop_front() else { break };
                self.scan = Some((week, Scan::open_by(file, &self.choice.read(), BATCH)?));
                continue;
            };
            let week = *week;
            let Some(batch) = scan.batch()? else {
                self.scan = None;
                continue;
            };
            let batch = self.wanted(week, batch)?;
            let count = (batch.num_rows() as u64).min(self.left);
            if count > 0 {
                self.left -= count;
                return Ok(Some(batch.slice(0, count as usize)));
            }
        }
        Ok(None)
    }

    /// The wanted columns of the wanted rows of a batch.
    fn wanted(&self, week: Week, mut batch: RecordBatch) -> Result<RecordBatch> {
        for condition in &self.choice.conditions {
            batch = filter_record_batch(&batch, &condition.mask(&batch)?)?;
        }
        let rows = batch.num_rows();
        let mut columns: Vec<ArrayRef> = Vec::with_capacity(self.schema.fields().len());
        if self.choice.has_weeks {
            columns.push(Arc::new(Date32Array::from_value(week.days(), rows)));
        }
        for column in &self.choice.columns {
            let values = batch.column_by_name(column.name).with_context(|| format!("no column `{}`", column.name))?;
            columns.push(values.clone());
        }
        let options = RecordBatchOptions::new().with_row_count(Some(rows));
        let wanted = RecordBatch::try_new_with_options(self.schema.clone(), columns, &options);
        wanted.context("a file of the table has columns of other types than the first one")
    }

    /// Writes all rows.
    ///
    /// # Errors
    /// If a file cannot be read, or the rows cannot be written.
    pub fn write(&mut self, format: TableFormat, target: RowSink) -> Result<()> {
        let mut writer = TableWriter::new(format, target, self.schema())?;
        while let Some(batch) = self.batch()? {
            writer.write(&batch)?;
        }
        writer.finish()
    }
}

/// The files of a table of a week, and their rows that count. Fetches them, if the store is in a
/// bucket.
///
/// # Errors
/// If the week is damaged, or a file cannot be fetched.
pub fn ranges_of_week(store: &ReadStore, week: &CommittedWeek, table: &str) -> Result<Vec<(Week, RowRange)>> {
    store.need_records(week)?;
    let whole = store.store().whole(week)?;
    store.need_table(week, table)?;
    let ranges = if whole.kept.values().any(|files| files.contains_key(table)) {
        // Rows of pages that stayed are in the files of the weeks that crawled them, beside rows of
        // other pages.
        let history = History::open(store.store(), Some(week.week), Some(week.week))?;
        let tables = history.tables(0);
        let mut ranges = Vec::new();
        for shard in 0..history.rows_by_shard().len() as u32 {
            ranges.extend(history.rows(0, &tables, table, shard)?);
        }
        ranges
    } else {
        whole.tables(store.store().root()).all(table).to_vec()
    };
    Ok(ranges.into_iter().map(|rows| (week.week, rows)).collect())
}

/// The files of a table of a study. Fetches them, if the store is in a bucket.
///
/// # Errors
/// If a file cannot be fetched, or another run replaced the table meanwhile.
pub fn ranges_of_results(store: &ReadStore, results: &Results, table: &str) -> Result<Vec<RowRange>> {
    store.need(results.name(), &[&format!("{table}/")])?;
    Ok(results.committed_files(table)?.into_iter().map(RowRange::file).collect())
}

/// All rows as plain data: an object for each. For tables that are small.
///
/// # Errors
/// If a file cannot be read.
pub fn json_rows(mut rows: WantedRows) -> Result<Vec<serde_json::Value>> {
    let written = super::write::Collected::default();
    rows.write(TableFormat::Jsonl, RowSink::of(Box::new(written.clone())))?;
    let lines = written.take();
    let lines = lines.split(|byte| *byte == b'\n').filter(|line| !line.is_empty());
    lines.map(|line| serde_json::from_slice(line).context("a row is plain data")).collect()
}
