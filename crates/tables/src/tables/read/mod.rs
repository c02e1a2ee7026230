//! Reading tables: Parquet files to arrow record batches, only the columns asked for.
//!
//! A file is read front to back, batch by batch: memory is that of one batch, and of the Parquet
//! reader's page of each column.
//!
//! In reading order: `row_range` (a file or some rows of it, as all readers take it), `shared_file`
//! (a file that is open), `guard` (damaged files are errors), `page_choice` (which pages can have a
//! value), `piece_scan` (pieces one after the other), `value_rows` (the values of documents),
//! `plain` (an uncompressed column read straight from the file), `ascending` (a column of document
//! ids, searched by id).

pub(super) mod ascending;
pub(super) mod guard;
mod page_choice;
pub(super) mod piece_scan;
pub(super) mod plain;
pub(super) mod row_range;
mod shared_file;
pub(super) mod value_rows;

use std::ops::Range;
use std::path::PathBuf;

use anyhow::{Context, Result, bail, ensure};
use arrow_array::{Array, Int64Array, RecordBatch, RecordBatchReader as _, StringArray};
use arrow_schema::SchemaRef;
use arrow_select::filter::filter_record_batch;
use parquet::arrow::ProjectionMask;
use parquet::arrow::arrow_reader::{ParquetRecordBatchReader, ParquetRecordBatchReaderBuilder, RowSelection};

use guard::{damaged, decoded};
use page_choice::rows_of_pages;
use row_range::{OpenRange, RowRange};

/// Rows of a batch.
const BATCH: usize = 4096;

/// A reader of one file, or some rows of it, and of some of its columns, in batches of rows.
pub struct Scan {
    path: PathBuf,
    batches: ParquetRecordBatchReader,
    /// If some rows do not count: which do.
    live: Option<Box<LiveRows>>,
}

/// Which rows are read.
enum ReadRows<'a> {
    All,
    /// Those with these numbers, which ascend.
    Rows(&'a [u64]),
    /// Those with the numbers of these ranges, which ascend.
    Ranges(&'a [Range<u64>]),
}

/// The documents whose rows count.
struct LiveRows {
    docs: Scan,
    /// Some of them, ascending, and how many are passed.
    batch: Vec<i64>,
    at: usize,
    /// Whether the caller wants the column `doc`.
    is_wanted: bool,
}

impl Scan {
    /// Opens `rows`, a path or some rows of a file, and selects the named columns.
    ///
    /// # Errors
    /// Names the file that cannot be opened, is not a Parquet file, or lacks one of the columns or
    /// rows.
    pub fn open(rows: impl Into<RowRange>, columns: &[&str]) -> Result<Scan> {
        Scan::open_by(rows, columns, BATCH)
    }

    /// As [`Scan::open`], with batches of `size` rows.
    ///
    /// # Errors
    /// As [`Scan::open`].
    pub fn open_by(rows: impl Into<RowRange>, columns: &[&str], size: usize) -> Result<Scan> {
        Scan::select(rows.into(), columns, size, ReadRows::All)
    }

    /// Calls `each` with the rows of some documents, which ascend, as the column `doc` of `of`
    /// must. Pages of the file without such a row are not read, if the file has an index of its
    /// pages, as those of this program have.
    ///
    /// Cost: the pages of the column `doc` that can have one of the documents, and those of the
    /// other columns that have one.
    ///
    /// # Errors
    /// As [`Scan::open`] and [`Scan::for_each`].
    pub fn each_of_docs(
        of: impl Into<RowRange>,
        columns: &[&str],
        docs: &[i64],
        each: impl FnMut(&RecordBatch) -> Result<()>,
    ) -> Result<()> {
        let of = of.into();
        let opened = of.open_all()?;
        let ranges = decoded(of.path(), || Ok(rows_of_pages(&opened, "doc", docs)))?;
        let (mut numbers, mut at) = (Vec::new(), 0);
        if !ranges.is_empty() {
            let mut rows = ranges.iter().cloned().flatten();
            Scan::select(of.with_all_rows(), &["doc"], BATCH, ReadRows::Ranges(&ranges))?.for_each(|batch| {
                for (doc, row) in field::<Int64Array>(batch, "doc")?.values().iter().zip(&mut rows) {
                    at += docs[at..].iter().take_while(|wanted| *wanted < doc).count();
                    if docs.get(at) == Some(doc) {
                        numbers.push(row);
                    }
                }
                Ok(())
            })?;
        }
        if numbers.is_empty() {
            Ok(())
        } else {
            Scan::select(of, columns, BATCH, ReadRows::Rows(&numbers))?.for_each(each)
        }
    }

    /// Opens some rows of one column, by their ascending numbers in `of`. Pages of the file without
    /// such a row are not read, if the file has an index of its pages, as those of this program
    /// have.
    ///
    /// # Errors
    /// As [`Scan::open`]; and if some rows of `of` do not count.
    pub fn of_rows(of: impl Into<RowRange>, column: &str, rows: &[u64]) -> Result<Scan> {
        Scan::columns_of_rows(of, &[column], rows)
    }

    /// As [`Scan::of_rows`], of several columns.
    ///
    /// # Errors
    /// As [`Scan::of_rows`].
    pub fn columns_of_rows(of: impl Into<RowRange>, columns: &[&str], rows: &[u64]) -> Result<Scan> {
        let of = of.into();
        of.check_all_count()?;
        Scan::select(of, columns, BATCH, ReadRows::Rows(rows))
    }

    /// Opens the chosen rows.
    fn select(rows: RowRange, columns: &[&str], size: usize, chosen: ReadRows<'_>) -> Result<Scan> {
        decoded(rows.path(), || Scan::select_rows(&rows, columns, size, chosen))
    }

    fn select_rows(rows: &RowRange, columns: &[&str], size: usize, chosen: ReadRows<'_>) -> Result<Scan> {
        let opened = rows.open_all()?;
        let (groups, before) = opened.groups();
        let OpenRange { file, footer, rows: range } = opened;
        let mut builder = ParquetRecordBatchReaderBuilder::new_with_metadata(file, footer);
        let (path, schema) = (rows.path(), builder.schema());
        if let Some(missing) = columns.iter().find(|column| schema.index_of(column).is_err()) {
            bail!("{} has no column `{missing}`", path.display());
        }
        let live = rows.live().map(|live| -> Result<Box<LiveRows>> {
            let docs = Scan::open_by(live, &["doc"], size)?;
            Ok(Box::new(LiveRows { docs, batch: Vec::new(), at: 0, is_wanted: columns.contains(&"doc") }))
        });
        let live = live.transpose()?;
        let doc = live.as_ref().map(|_| "doc");
        let mask = ProjectionMask::columns(builder.parquet_schema(), columns.iter().copied().chain(doc));
        let of_groups = |group: usize| builder.metadata().row_group(group).num_rows() as u64;
        let (count, in_groups) = (range.end - range.start, groups.clone().map(of_groups).sum::<u64>());
        let end = match chosen {
            ReadRows::All => 0,
            ReadRows::Rows(numbers) => numbers.last().map_or(0, |last| last + 1),
            ReadRows::Ranges(ranges) => ranges.last().map_or(0, |last| last.end),
        };
        ensure!(end <= count, "{} has {count} rows, but row {} was expected", path.display(), end.saturating_sub(1));
        let in_order = |ranges: &mut dyn Iterator<Item = (u64, u64)>| {
            let ranges = ranges.map(|(first, end)| (before + first) as usize..(before + end) as usize);
            RowSelection::from_consecutive_ranges(ranges, in_groups as usize)
        };
        builder = match chosen {
            ReadRows::Rows(numbers) => {
                builder.with_row_selection(in_order(&mut numbers.iter().map(|row| (*row, row + 1))))
            }
            ReadRows::Ranges(ranges) => {
                builder.with_row_selection(in_order(&mut ranges.iter().map(|rows| (rows.start, rows.end))))
            }
            ReadRows::All if count < in_groups => builder.with_row_selection(in_order(&mut [(0, count)].into_iter())),
            ReadRows::All => builder,
        };
        let batches = builder.with_projection(mask).with_row_groups(groups.collect()).with_batch_size(size).build();
        let batches = batches.with_context(|| format!("cannot read {}", path.display()))?;
        Ok(Scan { path: path.to_owned(), batches, live })
    }

    /// The columns that are read, in the order and with the types that they have in the file.
    pub fn schema(&self) -> SchemaRef {
        self.batches.schema()
    }

    /// Reads the next batch; `None` after the last row.
    ///
    /// # Errors
    /// Names the damaged file.
    pub fn batch(&mut self) -> Result<Option<RecordBatch>> {
        loop {
            let damaged = || damaged(&self.path);
            let batches = &mut self.batches;
            let batch = decoded(&self.path, || batches.next().transpose().with_context(damaged))?;
            let Some(batch) = batch else { return Ok(None) };
            let Some(live) = &mut self.live else { return Ok(Some(batch)) };
            let batch = live.sift(batch).with_context(damaged)?;
            if batch.num_rows() > 0 {
                return Ok(Some(batch));
            }
        }
    }

    /// Calls `each` with every batch, in the order of the rows.
    ///
    /// # Errors
    /// Names the damaged file; or returns the first error of `each`.
    pub fn for_each(mut self, mut each: impl FnMut(&RecordBatch) -> Result<()>) -> Result<()> {
        while let Some(batch) = self.batch()? {
            each(&batch)?;
        }
        Ok(())
    }
}

impl LiveRows {
    /// The rows of a batch that count.
    fn sift(&mut self, batch: RecordBatch) -> Result<RecordBatch> {
        let mut mask = Vec::with_capacity(batch.num_rows());
        for doc in field::<Int64Array>(&batch, "doc")?.values() {
            mask.push(self.advance_to(*doc)? == Some(*doc));
        }
        let batch = filter_record_batch(&batch, &mask.into())?;
        if self.is_wanted {
            return Ok(batch);
        }
        let doc = batch.schema().index_of("doc")?;
        let others: Vec<usize> = (0..batch.num_columns()).filter(|column| *column != doc).collect();
        Ok(batch.project(&others)?)
    }

    /// The first of the documents that is `doc` or after it.
    fn advance_to(&mut self, doc: i64) -> Result<Option<i64>> {
        loop {
            match self.batch.get(self.at) {
                Some(live) if *live >= doc => return Ok(Some(*live)),
                Some(_) => self.at += 1,
                None => {
                    let Some(batch) = self.docs.batch()? else { return Ok(None) };
                    (self.batch, self.at) = (field::<Int64Array>(&batch, "doc")?.values().to_vec(), 0);
                }
            }
        }
    }
}

/// The text in a row of a column; `None` if it is null.
pub fn maybe_text(column: &StringArray, row: usize) -> Option<String> {
    column.is_valid(row).then(|| column.value(row).to_owned())
}

/// A column of a batch, as the array type that the column has.
///
/// ```
/// use std::sync::Arc;
///
/// use arrow_array::{ArrayRef, Int64Array, RecordBatch, StringArray};
/// use nigh_tables::tables::field;
///
/// let clusters: ArrayRef = Arc::new(Int64Array::from(vec![8]));
/// let batch = RecordBatch::try_from_iter([("clusters", clusters)]).unwrap();
/// assert_eq!(field::<Int64Array>(&batch, "clusters").unwrap().value(0), 8);
/// assert!(field::<StringArray>(&batch, "clusters").is_err());
/// ```
///
/// # Errors
/// If the batch lacks the column, or the column has another type: then this program did not write
/// the file.
pub fn field<'a, A: Array + 'static>(batch: &'a RecordBatch, name: &str) -> Result<&'a A> {
    let column = batch.column_by_name(name).with_context(|| format!("no column `{name}`"))?;
    column
        .as_any()
        .downcast_ref::<A>()
        .with_context(|| format!("column `{name}` has the unexpected type {}", column.data_type()))
}
