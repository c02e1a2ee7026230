//! Writing tables: rows to Parquet files.
//!
//! A file is written under a temporary name and gets its own when it is complete, so no reader
//! finds half a file. The commit makes it durable (`state::sync_folder`).

use std::marker::PhantomData;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::{Context, Result, ensure};
use arrow_array::cast::AsArray;
use arrow_array::types::Int64Type;
use arrow_array::{ArrayRef, RecordBatch};
use arrow_schema::{Field, Schema};
use parquet::basic::{Compression, Encoding, ZstdLevel};
use parquet::file::metadata::{KeyValue, SortingColumn};
use parquet::file::properties::{EnabledStatistics, WriterProperties, WriterPropertiesBuilder};
use parquet::schema::types::ColumnPath;

use super::columns::{Row, Table, TableSpec};
use super::describe;
use super::groups::{BATCH, COPIED, Encodings, GroupWriter, HEAVY, PAGE, ROW_GROUP};
use super::guard::decoded;
use super::piece_scan::PieceScan;
use super::row_range::{GroupRows, RowRange};
use super::values::ColumnBuilder;

/// How often a Bloom filter may say that a value is in a row group that lacks it. Filters have
/// powers of two in size: a full row group of distinct values then has 128 KiB, a byte for each;
/// with 0.02 it would have twice as many.
const FALSE_POSITIVES: f64 = 0.03;

/// Row groups that are read and encoded again are joined until they have so many rows: enough that
/// what each costs is little beside its rows, and few enough that a reader of one piece decodes few
/// rows of others.
const MERGED: usize = 1 << 15;
/// The same for rows with large values.
const MERGED_BYTES: u64 = 4 * HEAVY;
/// A row group with values of so many bytes, encoded, is copied however few rows it has. The small
/// ones of a bundle have less: values of [`HEAVY`] bytes, and less than as much for lengths and
/// nulls.
const COPIED_BYTES: i64 = 2 * HEAVY as i64;
/// The rows of a Parquet page of plain values, which are read from the file as they are: a page is
/// one read.
const PLAIN_PAGE: usize = 20_000;
/// Those of a small row group, whose pages cost less.
const SMALL_PAGE: usize = 512;
/// [`COPIED`] as a number of rows of a file.
const COPIED_ROWS: u64 = COPIED as u64;

/// Writes one file of a table, row by row. A writer that is dropped before [`Writer::finish`]
/// leaves no file of that name.
pub struct Writer<T: Table> {
    file: TableFile,
    table: PhantomData<T>,
}

impl<T: Table> Writer<T> {
    /// Makes the folder of `path`, and a writer of the file, which appears when [`Writer::finish`]
    /// is called.
    ///
    /// # Errors
    /// Names the folder that cannot be made.
    pub fn create(path: &Path) -> Result<Writer<T>> {
        Ok(Writer { file: TableFile::create(path, T::SPEC)?, table: PhantomData })
    }

    /// As [`Writer::create`], of a bundle: its rows are read soon, piece by piece, and then packed
    /// into another file with others.
    ///
    /// # Errors
    /// As [`Writer::create`].
    pub fn bundle(path: &Path) -> Result<Writer<T>> {
        let mut writer = Writer::create(path)?;
        writer.file.is_bundle = true;
        Ok(writer)
    }

    /// Gives the columns the types of this row if no row is added: the widths of `features` depend
    /// on the method. The row itself is not written. Must be called before rows are added.
    #[must_use]
    pub fn like(mut self, example: impl Row<Table = T>) -> Writer<T> {
        example.append(self.file.builders());
        self.file.values();
        self
    }

    /// Adds key-values to the file, for instance `nigh.week`. A key that the file has already gets
    /// the new value. Must be called before rows are added.
    #[must_use]
    pub fn labelled(mut self, labels: &[(&str, &str)]) -> Writer<T> {
        labels.iter().for_each(|(key, value)| describe::set(&mut self.file.key_values, key, value));
        self
    }

    /// Takes the key-values of the file of these rows, except the version of the program. Must be
    /// called before rows are added.
    ///
    /// # Errors
    /// Names the file that cannot be read.
    pub(super) fn described_as(mut self, rows: &RowRange) -> Result<Writer<T>> {
        let footer = rows.open()?.footer;
        let described = footer.metadata().file_metadata().key_value_metadata();
        self.file.key_values = described.cloned().unwrap_or_default();
        describe::set(&mut self.file.key_values, describe::VERSION, env!("CARGO_PKG_VERSION"));
        Ok(self)
    }

    /// Adds a row. What it borrows is copied at once.
    ///
    /// # Errors
    /// Names the file that cannot be written, for instance to a full disk.
    pub fn push(&mut self, row: impl Row<Table = T>) -> Result<()> {
        row.append(self.file.builders());
        self.file.add_row()
    }

    /// The number of rows added so far.
    pub fn len(&self) -> u64 {
        self.file.len()
    }

    /// Whether no row has been added.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Adds the rows of a batch, which must have the table's columns.
    ///
    /// # Errors
    /// As [`Writer::push`].
    pub fn push_rows(&mut self, batch: &RecordBatch) -> Result<()> {
        self.file.flush_rows()?;
        self.file.write(batch)
    }

    /// Adds rows as the values of the table's columns, in their order.
    ///
    /// # Errors
    /// As [`Writer::push`].
    pub fn push_columns(&mut self, values: Vec<ArrayRef>) -> Result<()> {
        self.file.flush_rows()?;
        self.file.write_columns(values)
    }

    /// Ends a piece of a [bundle](Writer::bundle). Returns its size in bytes, which depends on its
    /// rows alone.
    ///
    /// # Errors
    /// As [`Writer::push`].
    pub fn end_piece(&mut self) -> Result<u64> {
        self.file.end_piece()
    }

    /// Adds rows of other files, which must have the table's columns: large row groups as they are,
    /// without reading their rows; the others are read and encoded again, together. Returns the
    /// number of rows of each.
    ///
    /// # Errors
    /// Names the file that cannot be read or written, or that has other columns.
    pub fn append(&mut self, sources: &[RowRange]) -> Result<Vec<u64>> {
        self.file.append(sources)
    }

    /// Ends the file, gives it its name, and returns the number of its rows. A file without rows is
    /// written too.
    ///
    /// # Errors
    /// Names the file that cannot be written.
    pub fn finish(self) -> Result<u64> {
        self.file.finish()
    }

    /// As [`Writer::finish`], except that no file is made if there are no rows.
    ///
    /// # Errors
    /// As [`Writer::finish`].
    pub fn finish_if_any(self) -> Result<u64> {
        if self.is_empty() { Ok(0) } else { self.finish() }
    }
}

/// The file of a [`Writer`], of any table.
struct TableFile {
    table: &'static TableSpec,
    target: TemporaryName,
    /// The values of rows that are not written yet. Empty before the first row.
    builders: Vec<ColumnBuilder>,
    /// The number of these rows.
    rows: usize,
    written: u64,
    key_values: Vec<KeyValue>,
    is_bundle: bool,
    writer: Option<GroupWriter>,
}

impl TableFile {
    fn create(path: &Path, table: &'static TableSpec) -> Result<TableFile> {
        let (target, key_values) = (TemporaryName::create(path)?, describe::key_values(table));
        Ok(TableFile {
            is_bundle: false,
            table,
            target,
            builders: Vec::new(),
            rows: 0,
            written: 0,
            key_values,
            writer: None,
        })
    }

    fn len(&self) -> u64 {
        self.written + self.rows as u64
    }

    /// The builders of all columns.
    fn builders(&mut self) -> &mut [ColumnBuilder] {
        if self.builders.is_empty() {
            self.builders = self.table.columns.iter().map(|column| ColumnBuilder::new(column.values)).collect();
        }
        &mut self.builders
    }

    /// Counts a row whose values have been appended.
    fn add_row(&mut self) -> Result<()> {
        self.rows += 1;
        if self.rows == BATCH { self.flush() } else { Ok(()) }
    }

    /// The values of all columns; the builders have none then.
    fn values(&mut self) -> Vec<ArrayRef> {
        self.builders().iter_mut().map(ColumnBuilder::finish).collect()
    }

    fn flush(&mut self) -> Result<()> {
        self.rows = 0;
        let values = self.values();
        self.write_columns(values)
    }

    fn flush_rows(&mut self) -> Result<()> {
        if self.rows > 0 { self.flush() } else { Ok(()) }
    }

    fn write_columns(&mut self, values: Vec<ArrayRef>) -> Result<()> {
        let TableSpec { name, columns, .. } = self.table;
        ensure!(columns.len() == values.len(), "{name} has {} columns, not {}", columns.len(), values.len());
        let batch = RecordBatch::try_new(Arc::new(describe::schema(columns, &values)), values)
            .with_context(|| format!("cannot write {}", self.target.temporary().display()))?;
        self.write(&batch)
    }

    fn write(&mut self, batch: &RecordBatch) -> Result<()> {
        if self.writer.is_none() {
            // The batch itself may come from another file, and then its schema has that file's
            // key-values.
            self.open(describe::schema(self.table.columns, batch.columns()))?;
        }
        let writer = self.writer.as_mut().expect("the file is open");
        writer.write(batch).with_context(|| format!("cannot write {}", self.target.temporary().display()))?;
        self.written += batch.num_rows() as u64;
        Ok(())
    }

    /// Makes the file, for columns of these types.
    fn open(&mut self, schema: Schema) -> Result<()> {
        let schema = Arc::new(schema.with_metadata(describe::of_schema(&self.key_values)));
        let full = properties(self.table).set_key_value_metadata(Some(self.key_values.clone())).build();
        let batch = properties(self.table).set_max_row_group_row_count(Some(BATCH)).build();
        let encodings = Encodings { full, batch, small: small_properties(self.table), is_bundle: self.is_bundle };
        let writer = GroupWriter::create(self.target.temporary(), schema, encodings);
        self.writer = Some(writer.with_context(|| format!("cannot write {}", self.target.temporary().display()))?);
        Ok(())
    }

    fn end_piece(&mut self) -> Result<u64> {
        self.flush_rows()?;
        let failed = || format!("cannot write {}", self.target.temporary().display());
        self.writer.as_mut().map_or(Ok(0), GroupWriter::end_piece).with_context(failed)
    }

    fn append(&mut self, sources: &[RowRange]) -> Result<Vec<u64>> {
        self.flush_rows()?;
        let parts = parts(sources)?;
        // Without rows, the first source says what types the columns have.
        let Some(first) = parts.first().map(|part| &part.rows).or(sources.first()) else { return Ok(Vec::new()) };
        let schema = first.open()?.footer.schema().as_ref().clone();
        if self.writer.is_none() {
            self.open(schema.clone())?;
        }
        let names: Vec<&str> = schema.fields().iter().map(|field| field.name().as_str()).collect();
        let small = parts.iter().filter(|part| part.copied.is_none()).map(|part| part.rows.clone());
        let mut small = PieceScan::new(small.collect(), &names).by(batch_rows(&parts)?);
        let mut next = small.batch()?;
        let (mut counts, mut piece) = (vec![0; sources.len()], 0);
        let mut last = None;
        for RowSource { source, rows, copied } in &parts {
            let opened = rows.open()?;
            ensure!(
                have_same_columns(opened.footer.schema(), &schema),
                "{} has other columns than {}",
                rows.path().display(),
                first.path().display()
            );
            let count = opened.rows.end - opened.rows.start;
            counts[*source] += count;
            let writer = self.writer.as_mut().expect("the file is open");
            if let Some(number) = copied {
                let failed =
                    || format!("cannot copy {} to {}", rows.path().display(), self.target.temporary().display());
                decoded(rows.path(), || writer.append(&opened, *number).with_context(failed))?;
                self.written += count;
                continue;
            }
            let (rows_so_far, bytes) = writer.size();
            if (rows_so_far >= MERGED || bytes >= MERGED_BYTES) && !self.is_bundle {
                self.end_group()?;
            }
            while let Some((_, batch)) = next.take_if(|(of, _)| *of == piece) {
                let ascends = self.table.columns.iter().find(|column| column.sorted).map(|column| column.name);
                let ends = ascends.and_then(|name| ends_of(&batch, name));
                // The rows of a row group ascend, as the file says.
                if last.zip(ends).is_some_and(|(last, [first, _])| first < last) && !self.is_bundle {
                    self.end_group()?;
                }
                last = ends.map(|[_, last]| last);
                self.write(&batch)?;
                next = small.batch()?;
            }
            piece += 1;
        }
        Ok(counts)
    }

    fn end_group(&mut self) -> Result<()> {
        let failed = || format!("cannot write {}", self.target.temporary().display());
        self.writer.as_mut().map_or(Ok(()), GroupWriter::end_group).with_context(failed)
    }

    fn finish(mut self) -> Result<u64> {
        if self.rows > 0 || self.writer.is_none() {
            self.flush()?;
        }
        let failed = || format!("cannot write {}", self.target.temporary().display());
        self.writer.take().expect("flush made the writer").finish().with_context(failed)?;
        self.target.finish()?;
        Ok(self.written)
    }
}

/// Rows that are added in one way.
struct RowSource {
    /// The number of their source.
    source: usize,
    rows: RowRange,
    /// The number of the row group that they are, if it is copied as it is.
    copied: Option<usize>,
}

/// Cuts sources into large row groups and what lies between them. Parts without rows are left out.
fn parts(sources: &[RowRange]) -> Result<Vec<RowSource>> {
    let mut parts = Vec::new();
    for (source, rows) in sources.iter().enumerate() {
        if rows.known_rows() == Some(0) {
            continue;
        }
        let opened = rows.open()?;
        let first = opened.rows.start;
        let mut small: Option<Range<u64>> = None;
        let part = |range: Range<u64>, copied| RowSource { source, rows: rows.part(range), copied };
        for GroupRows { group, rows: of_group, is_whole } in opened.by_group() {
            let range = of_group.start - first..of_group.end - first;
            let is_heavy = opened.footer.metadata().row_group(group).total_byte_size() >= COPIED_BYTES;
            if is_whole && (is_heavy || range.end - range.start >= COPIED_ROWS) {
                parts.extend(small.take().map(|small| part(small, None)));
                parts.push(part(range, Some(group)));
            } else {
                small = Some(small.map_or(range.start, |small| small.start)..range.end);
            }
        }
        parts.extend(small.map(|small| part(small, None)));
    }
    Ok(parts)
}

/// The rows of a batch in which small parts are read: few if their values are large.
fn batch_rows(parts: &[RowSource]) -> Result<usize> {
    let mut rows = BATCH as u64;
    for part in parts.iter().filter(|part| part.copied.is_none()) {
        let opened = part.rows.open()?;
        for GroupRows { group, .. } in opened.by_group() {
            let group = opened.footer.metadata().row_group(group);
            let bytes_of_row = group.total_byte_size().unsigned_abs() / group.num_rows().unsigned_abs().max(1);
            rows = rows.min(HEAVY / bytes_of_row.max(1));
        }
    }
    Ok(rows.max(16) as usize)
}

/// The first and the last value of a column of numbers; `None` of a column of another type, or
/// without rows.
fn ends_of(batch: &RecordBatch, name: &str) -> Option<[i64; 2]> {
    let values = batch.column_by_name(name)?.as_primitive_opt::<Int64Type>()?.values();
    Some([*values.first()?, *values.last()?])
}

/// Whether columns have the same names and types.
fn have_same_columns(these: &Schema, others: &Schema) -> bool {
    let column = |field: &Arc<Field>| (field.name().clone(), field.data_type().clone());
    these.fields().iter().map(column).eq(others.fields().iter().map(column))
}

/// The name of a file that is being written, and its temporary name until it is complete.
pub(super) struct TemporaryName {
    path: PathBuf,
    temporary: PathBuf,
}

impl TemporaryName {
    /// Makes the folder of `path`, if there is none.
    pub(super) fn create(path: &Path) -> Result<TemporaryName> {
        if let Some(folder) = path.parent().filter(|folder| !folder.is_dir()) {
            std::fs::create_dir_all(folder).with_context(|| format!("cannot make the folder {}", folder.display()))?;
        }
        Ok(TemporaryName { path: path.to_owned(), temporary: path.with_extension("parquet.tmp") })
    }

    /// The name under which to write.
    pub(super) fn temporary(&self) -> &Path {
        &self.temporary
    }

    /// Gives the file its name.
    pub(super) fn finish(self) -> Result<()> {
        std::fs::rename(&self.temporary, &self.path)
            .with_context(|| format!("cannot rename {} to its final name", self.temporary.display()))
    }
}

/// How the columns of a table are encoded and compressed: what they declare as settings of the
/// Parquet writer.
pub(super) fn properties(table: &TableSpec) -> WriterPropertiesBuilder {
    let zstd = Compression::ZSTD(ZstdLevel::try_new(3).expect("zstd has a level 3"));
    let mut properties = WriterProperties::builder()
        .set_compression(zstd)
        .set_max_row_group_row_count(Some(ROW_GROUP))
        .set_data_page_row_count_limit(PAGE)
        .set_created_by(format!("nigh {}", env!("CARGO_PKG_VERSION")));
    if table.is_scratch {
        properties = properties.set_compression(Compression::LZ4_RAW).set_statistics_enabled(EnabledStatistics::None);
    }
    for (place, column) in (0..).zip(table.columns) {
        let path = || ColumnPath::from(column.name);
        if column.unique {
            properties = properties.set_column_dictionary_enabled(path(), false);
        }
        if column.random {
            properties = properties.set_column_data_page_row_count_limit(path(), PLAIN_PAGE);
        }
        if column.unordered {
            properties = properties.set_column_statistics_enabled(path(), EnabledStatistics::None);
        }
        if column.searched {
            // A filter begins with room for a full row group of distinct values, and is folded to
            // the values that it got.
            properties = properties.set_column_bloom_filter_fpp(path(), FALSE_POSITIVES);
        }
        if column.sorted {
            let ascending = SortingColumn { column_idx: place, descending: false, nulls_first: false };
            properties = properties.set_sorting_columns(Some(vec![ascending]));
        }
    }
    numbers(properties, table)
}

/// The same for a row group of few rows: nothing that has to be set up.
fn small_properties(table: &TableSpec) -> WriterProperties {
    let properties = WriterProperties::builder()
        .set_compression(Compression::LZ4_RAW)
        .set_statistics_enabled(EnabledStatistics::None)
        .set_dictionary_enabled(false)
        .set_data_page_row_count_limit(SMALL_PAGE)
        .set_write_batch_size(SMALL_PAGE);
    numbers(properties, table).build()
}

/// How columns of numbers and hashes are encoded in any row group.
fn numbers(mut properties: WriterPropertiesBuilder, table: &TableSpec) -> WriterPropertiesBuilder {
    for column in table.columns {
        let path = || ColumnPath::from(column.name);
        if column.ascending {
            properties = properties
                .set_column_dictionary_enabled(path(), false)
                .set_column_encoding(path(), Encoding::DELTA_BINARY_PACKED);
        }
        if column.random || column.ascending {
            properties = properties.set_column_compression(path(), Compression::UNCOMPRESSED);
        }
    }
    properties
}

#[cfg(test)]
mod tests {
    use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;
    use parquet::bloom_filter::Sbbf;
    use parquet::file::reader::{FileReader, SerializedFileReader};

    use std::fs::File;
    use std::path::Path;

    use super::*;
    use crate::tables::{FeatureRow, MissingRow, Scan, UrlRow, field};

    fn urls(path: &Path, count: i64) {
        let mut writer: Writer<UrlRow> = Writer::create(path).unwrap();
        for doc in 0..count {
            let url = format!("http://h/{doc}");
            writer.push(UrlRow { doc, hash: [doc as u8; 16], url: Some(&url), id: None }).unwrap();
        }
        writer.finish().unwrap();
    }

    #[test]
    fn a_bloom_filter_fits_the_rows_and_finds_what_is_there() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("urls.parquet");
        for (count, most) in [(1000, 2100), (5000, 9000), (150_000, 140_000)] {
            urls(&path, count);
            let reader = SerializedFileReader::new(File::open(&path).unwrap()).unwrap();
            let column = reader.metadata().row_group(0).column(2).clone();
            assert!((32..most).contains(&column.bloom_filter_length().unwrap()), "{:?}", column.bloom_filter_length());
            let filter = Sbbf::read_from_column_chunk(&column, &File::open(&path).unwrap()).unwrap().unwrap();
            assert!((0..count.min(100_000)).all(|doc| filter.check(format!("http://h/{doc}").as_str())));
            let wrong = (0..10_000).filter(|doc| filter.check(format!("http://other/{doc}").as_str())).count();
            assert!(wrong < 500, "{wrong} of 10,000 for {count} rows");
            assert!(reader.metadata().row_group(0).column(1).bloom_filter_length().is_none());
        }
    }

    #[test]
    fn a_small_row_group_has_nothing_that_must_be_set_up() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("urls.parquet");
        let mut writer: Writer<UrlRow> = Writer::create(&path).unwrap();
        // Two row groups of few rows, and one of many between them.
        for (group, rows) in [999, 1000, 1].into_iter().enumerate() {
            for doc in 0..rows {
                let url = format!("http://h{group}/{doc}");
                writer.push(UrlRow { doc, hash: [doc as u8; 16], url: Some(&url), id: None }).unwrap();
            }
            writer.file.flush_rows().unwrap();
            writer.file.end_group().unwrap();
        }
        assert_eq!(writer.finish().unwrap(), 2000);
        let reader = SerializedFileReader::new(File::open(&path).unwrap()).unwrap();
        let described: Vec<_> = reader
            .metadata()
            .row_groups()
            .iter()
            .map(|group| {
                let url = group.column(2);
                (group.num_rows(), url.compression(), url.statistics().is_some(), url.bloom_filter_length().is_some())
            })
            .collect();
        let zstd = Compression::ZSTD(ZstdLevel::try_new(1).unwrap());
        let (small, full) = ((Compression::LZ4_RAW, false, false), (zstd, true, true));
        for ((rows, compression, ..), (expected, of)) in described.iter().zip([(999, small), (1000, full), (1, small)])
        {
            assert_eq!((*rows, std::mem::discriminant(compression)), (expected, std::mem::discriminant(&of.0)));
        }
        assert_eq!(
            described.iter().map(|of| (of.2, of.3)).collect::<Vec<_>>(),
            [(false, false), (true, true), (false, false)]
        );
        let mut urls = Vec::new();
        Scan::open(&path, &["url"])
            .unwrap()
            .for_each(|batch| {
                let column: &arrow_array::StringArray = field(batch, "url")?;
                urls.extend(column.iter().map(|url| url.unwrap().to_owned()));
                Ok(())
            })
            .unwrap();
        let expected = [999, 1000, 1].into_iter().enumerate();
        let expected = expected.flat_map(|(group, rows)| (0..rows).map(move |doc| format!("http://h{group}/{doc}")));
        assert!(urls.into_iter().eq(expected));
    }

    #[test]
    fn a_file_names_its_table_its_order_and_its_labels() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("missing.parquet");
        let writer: Writer<MissingRow> = Writer::create(&path).unwrap();
        let mut writer = writer.labelled(&[("nigh.week", "2024-01-01"), ("nigh.week", "2024-01-08")]);
        writer.push(MissingRow { doc: 1, url: Some("http://h/".into()), id: None, reason: "not seen".into() }).unwrap();
        writer.finish().unwrap();
        let reader = SerializedFileReader::new(File::open(&path).unwrap()).unwrap();
        let metadata = reader.metadata();
        let pairs = metadata.file_metadata().key_value_metadata().unwrap();
        let value = |key: &str| {
            let of_key = pairs.iter().filter(|pair| pair.key == key);
            of_key.map(|pair| pair.value.clone().unwrap()).collect::<Vec<_>>().join(" and ")
        };
        assert_eq!(value("nigh.table"), "missing");
        assert_eq!(value("nigh.week"), "2024-01-08");
        assert_eq!(value("nigh.version"), env!("CARGO_PKG_VERSION"));
        assert_eq!(value("nigh.column.url"), "canonical URL, as in `urls`");
        assert!(value("nigh.description").starts_with("One row for each URL"));
        let sorted = metadata.row_group(0).sorting_columns().unwrap();
        assert_eq!(sorted, &vec![SortingColumn { column_idx: 0, descending: false, nulls_first: false }]);
    }

    #[test]
    fn a_file_without_rows_has_the_types_of_one_with_rows() {
        let folder = tempfile::tempdir().unwrap();
        let schema = |path: &Path| {
            let builder = ParquetRecordBatchReaderBuilder::try_new(File::open(path).unwrap()).unwrap();
            builder.schema().clone()
        };
        for (supershingles, features) in [(48, 168), (32, 16)] {
            let [full, empty] = ["full.parquet", "empty.parquet"].map(|name| folder.path().join(name));
            let (supershingles, features) = (vec![1; supershingles], vec![2; features]);
            let row = || FeatureRow::new(1, &supershingles, &features);
            let mut writer: Writer<FeatureRow> = Writer::create(&full).unwrap();
            writer.push(row()).unwrap();
            writer.finish().unwrap();
            assert_eq!(Writer::<FeatureRow>::create(&empty).unwrap().like(row()).finish().unwrap(), 0);
            assert_eq!(schema(&empty), schema(&full));
        }
        // Without an example they are those of the study.
        let [full, empty] = ["full.parquet", "empty.parquet"].map(|name| folder.path().join(name));
        let mut writer: Writer<FeatureRow> = Writer::create(&full).unwrap();
        writer.push(FeatureRow::new(1, &[1; 48], &[2; 168])).unwrap();
        writer.finish().unwrap();
        Writer::<FeatureRow>::create(&empty).unwrap().finish().unwrap();
        assert_eq!(schema(&empty), schema(&full));
    }

    #[test]
    fn hashes_of_a_page_have_no_statistics() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("features.parquet");
        let mut writer: Writer<FeatureRow> = Writer::create(&path).unwrap();
        for doc in 0..1000 {
            writer.push(FeatureRow::new(doc, &[1; 48], &[2; 168])).unwrap();
        }
        writer.finish().unwrap();
        let reader = SerializedFileReader::new(File::open(&path).unwrap()).unwrap();
        let columns = reader.metadata().row_group(0).columns();
        let with: Vec<&str> =
            columns.iter().filter(|c| c.statistics().is_some()).map(|c| c.column_descr().name()).collect();
        assert_eq!(with, ["doc"]);
    }
}
