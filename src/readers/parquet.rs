//! Reads Parquet files: each row is a page. Only the columns that the job names are read, row group by row group, in small batches.
//!
//! The types are those of the Parquet schema, not the Arrow types noted in its metadata, so text is read as text whatever program
//! wrote it. A row group that does not decode gives one reject for each of its remaining rows, and reading continues with the next
//! group. A column inside a group is named with dots: `metadata.url`.

use std::borrow::Cow;
use std::fs::File;

use ::parquet::arrow::ProjectionMask;
use ::parquet::arrow::arrow_reader::{
    ArrowReaderMetadata, ArrowReaderOptions, ParquetRecordBatchReader, ParquetRecordBatchReaderBuilder,
};
use ::parquet::errors::ParquetError;
use anyhow::{Context as _, bail};
use arrow_array::cast::AsArray as _;
use arrow_array::types::{
    TimestampMicrosecondType, TimestampMillisecondType, TimestampNanosecondType, TimestampSecondType,
};
use arrow_array::{Array, RecordBatch};
use arrow_schema::{DataType, TimeUnit};

use super::item::{Item, Reader, Reject, Unread};
use super::rows::PageRow;
use crate::config::Reading;

/// The most rows in a batch: the text of a batch is in memory.
const BATCH: usize = 128;
/// The decoded bytes of a batch if every row has the mean size of its row group. There is no bound for rows far larger than the
/// mean, nor for rows that a dictionary makes small in the file.
const BATCH_BYTES: u64 = 4 << 20;

/// Reads the pages of one Parquet file.
pub struct ParquetReader {
    file: File,
    metadata: ArrowReaderMetadata,
    mask: ProjectionMask,
    reading: Reading,
    name: String,
    bytes: u64,
    /// The row group to open next.
    next_group: usize,
    /// The number, in the file, of the first row of that group.
    next_group_row: u64,
    batches: Option<ParquetRecordBatchReader>,
    batch: Option<RowBatch>,
    /// The number, in the file, of the next row.
    row: u64,
    /// Rows of a damaged row group that are still to be rejected.
    rows_to_reject: u64,
}

/// Makes the reader of a local file, named `name` in errors. A file that is not a whole Parquet file is one reject.
///
/// # Errors
/// If the file cannot be read, or lacks a column of the job.
pub fn open(file: File, name: &str, reading: &Reading) -> anyhow::Result<Box<dyn Reader>> {
    let bytes = file.metadata().with_context(|| format!("cannot read {name}"))?.len();
    let options = ArrowReaderOptions::new().with_skip_arrow_metadata(true);
    match ArrowReaderMetadata::load(&file, options) {
        Ok(metadata) => Ok(Box::new(ParquetReader::new(file, metadata, bytes, name, reading)?)),
        Err(ParquetError::External(error)) if error.is::<std::io::Error>() => {
            Err(anyhow::Error::from_boxed(error)).with_context(|| format!("cannot read {name}"))
        }
        Err(_) => {
            let reject = Reject { offset: 0, url: None, reason: "parquet: not a whole file".to_owned() };
            Ok(Box::new(BrokenParquet { reject: Some(reject), bytes }))
        }
    }
}

/// The reader of a file without a readable footer: the whole file is one reject.
struct BrokenParquet {
    reject: Option<Reject>,
    bytes: u64,
}

impl Reader for BrokenParquet {
    fn next(&mut self) -> anyhow::Result<Option<Item>> {
        Ok(self.reject.take().map(Item::Reject))
    }

    fn position(&self) -> u64 {
        if self.reject.is_none() { self.bytes } else { 0 }
    }

    fn unread(&self) -> Unread {
        Unread { bytes: self.position(), ends_early: false }
    }
}

/// Rows that are decoded, by column.
struct RowBatch {
    rows: usize,
    /// The index in the batch of the next row.
    next: usize,
    url: ColumnValues,
    text: Option<ColumnValues>,
    html: Option<ColumnValues>,
    ip: Option<ColumnValues>,
    date: Option<ColumnValues>,
}

/// The values of one column.
struct ColumnValues(arrow_array::ArrayRef);

impl ParquetReader {
    fn new(
        file: File,
        metadata: ArrowReaderMetadata,
        bytes: u64,
        name: &str,
        reading: &Reading,
    ) -> anyhow::Result<Self> {
        let schema = metadata.parquet_schema();
        let paths: Vec<String> = schema.columns().iter().map(|column| column.path().string()).collect();
        let columns = &reading.columns;
        let optional = [&columns.text, &columns.html, &columns.ip, &columns.date];
        let wanted: Vec<&str> = optional.into_iter().flatten().chain([&columns.url]).map(String::as_str).collect();
        for column in &wanted {
            if !paths.iter().any(|path| path == column) {
                bail!(
                    "{name} has no column `{column}` (its columns: {}); set the names in [cluster.read.columns]",
                    paths.join(", ")
                );
            }
        }
        if columns.text.is_none() && columns.html.is_none() {
            bail!("cannot read pages from {name}: set `text` or `html` in [cluster.read.columns]");
        }
        let mask = ProjectionMask::columns(schema, wanted);
        Ok(ParquetReader {
            file,
            metadata,
            mask,
            reading: reading.clone(),
            name: name.to_owned(),
            bytes,
            next_group: 0,
            next_group_row: 0,
            batches: None,
            batch: None,
            row: 0,
            rows_to_reject: 0,
        })
    }

    /// Opens the next row group; returns `false` after the last.
    fn open_group(&mut self) -> anyhow::Result<bool> {
        if self.next_group == self.metadata.metadata().num_row_groups() {
            return Ok(false);
        }
        let group = self.next_group;
        self.next_group += 1;
        self.row = self.next_group_row;
        self.next_group_row += self.metadata.metadata().row_group(group).num_rows().max(0) as u64;
        let file = self.file.try_clone().with_context(|| format!("cannot read {}", self.name))?;
        let builder = ParquetRecordBatchReaderBuilder::new_with_metadata(file, self.metadata.clone());
        let rows = self.batch_rows(group);
        let builder = builder.with_projection(self.mask.clone()).with_row_groups(vec![group]).with_batch_size(rows);
        self.batches = builder.build().ok();
        Ok(true)
    }

    /// Returns the number of rows in a batch of a row group.
    fn batch_rows(&self, group: usize) -> usize {
        let group = self.metadata.metadata().row_group(group);
        let wanted = group.columns().iter().enumerate().filter(|(leaf, _)| self.mask.leaf_included(*leaf));
        let bytes: u64 = wanted.map(|(_, column)| column.uncompressed_size().max(0) as u64).sum();
        let mean = (bytes / group.num_rows().max(1) as u64).max(1);
        (BATCH_BYTES / mean).clamp(1, BATCH as u64) as usize
    }

    /// Finds the columns of the job in a batch; `None` if the batch lacks the URLs.
    fn columns(&self, batch: &RecordBatch) -> Option<RowBatch> {
        let columns = &self.reading.columns;
        let find = |name: &String| find(batch, name);
        Some(RowBatch {
            rows: batch.num_rows(),
            next: 0,
            url: find(&columns.url)?,
            text: columns.text.as_ref().and_then(find),
            html: columns.html.as_ref().and_then(find),
            ip: columns.ip.as_ref().and_then(find),
            date: columns.date.as_ref().and_then(find),
        })
    }
}

impl Reader for ParquetReader {
    fn next(&mut self) -> anyhow::Result<Option<Item>> {
        loop {
            if self.rows_to_reject > 0 {
                let reason = "parquet: damaged row group".to_owned();
                let reject = Reject { offset: self.row, url: None, reason };
                self.rows_to_reject -= 1;
                self.row += 1;
                return Ok(Some(Item::Reject(reject)));
            }
            if let Some(batch) = self.batch.as_mut().filter(|batch| batch.next < batch.rows) {
                let item = batch.item(self.row, &self.reading);
                batch.next += 1;
                self.row += 1;
                return Ok(Some(item));
            }
            self.batch = None;
            let is_damaged = match self.batches.as_mut().map(Iterator::next) {
                Some(Some(Ok(batch))) => {
                    self.batch = self.columns(&batch);
                    self.batch.is_none()
                }
                Some(Some(Err(_))) => true,
                Some(None) | None => {
                    self.batches = None;
                    if !self.open_group()? {
                        return Ok(None);
                    }
                    self.batches.is_none()
                }
            };
            if is_damaged {
                self.batches = None;
                self.rows_to_reject = self.next_group_row.saturating_sub(self.row).max(1);
            }
        }
    }

    fn position(&self) -> u64 {
        let rows = self.metadata.metadata().file_metadata().num_rows().max(1) as u64;
        (u128::from(self.bytes) * u128::from(self.row.min(rows)) / u128::from(rows)) as u64
    }
}

impl RowBatch {
    /// Makes the page of the next row, or a reject.
    fn item(&self, offset: u64, reading: &Reading) -> Item {
        let row = self.next;
        let html = self.html.as_ref().and_then(|column| column.bytes(row)).map(Cow::Borrowed);
        let page_row = PageRow {
            url: self.url.text(row),
            // Read only if needed: text from a binary column would be searched for invalid UTF-8.
            text: self.text.as_ref().filter(|_| html.is_none()).and_then(|column| column.text(row)),
            html,
            // A string column is UTF-8, whatever charset the page declares.
            html_is_text: self.html.as_ref().is_some_and(ColumnValues::is_text),
            ip: self.ip.as_ref().and_then(|column| column.text(row)),
            fetched: self.date.as_ref().and_then(|column| column.microseconds(row)),
        };
        page_row.item(offset, reading.page_limit(), "parquet")
    }
}

impl ColumnValues {
    fn is_text(&self) -> bool {
        matches!(self.0.data_type(), DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View)
    }

    fn bytes(&self, row: usize) -> Option<&[u8]> {
        let array = &self.0;
        if array.is_null(row) {
            return None;
        }
        match array.data_type() {
            DataType::Utf8 => Some(array.as_string::<i32>().value(row).as_bytes()),
            DataType::LargeUtf8 => Some(array.as_string::<i64>().value(row).as_bytes()),
            DataType::Utf8View => Some(array.as_string_view().value(row).as_bytes()),
            DataType::Binary => Some(array.as_binary::<i32>().value(row)),
            DataType::LargeBinary => Some(array.as_binary::<i64>().value(row)),
            DataType::BinaryView => Some(array.as_binary_view().value(row)),
            _ => None,
        }
    }

    /// Returns a value as text. Values of string columns are valid UTF-8 and are not checked again.
    fn text(&self, row: usize) -> Option<Cow<'_, str>> {
        let array = &self.0;
        if array.is_null(row) {
            return None;
        }
        match array.data_type() {
            DataType::Utf8 => Some(Cow::Borrowed(array.as_string::<i32>().value(row))),
            DataType::LargeUtf8 => Some(Cow::Borrowed(array.as_string::<i64>().value(row))),
            DataType::Utf8View => Some(Cow::Borrowed(array.as_string_view().value(row))),
            _ => self.bytes(row).map(super::fields::utf8),
        }
    }

    fn microseconds(&self, row: usize) -> Option<i64> {
        let array = &self.0;
        if array.is_null(row) {
            return None;
        }
        match array.data_type() {
            DataType::Timestamp(TimeUnit::Second, _) => {
                array.as_primitive::<TimestampSecondType>().value(row).checked_mul(1_000_000)
            }
            DataType::Timestamp(TimeUnit::Millisecond, _) => {
                array.as_primitive::<TimestampMillisecondType>().value(row).checked_mul(1000)
            }
            DataType::Timestamp(TimeUnit::Microsecond, _) => {
                Some(array.as_primitive::<TimestampMicrosecondType>().value(row))
            }
            DataType::Timestamp(TimeUnit::Nanosecond, _) => {
                Some(array.as_primitive::<TimestampNanosecondType>().value(row).div_euclid(1000))
            }
            _ => {
                self.bytes(row).and_then(|bytes| std::str::from_utf8(bytes).ok()).and_then(super::fields::microseconds)
            }
        }
    }
}

/// Finds a column by its name, or by its path if it is inside groups.
fn find(batch: &RecordBatch, name: &str) -> Option<ColumnValues> {
    if let Some(column) = batch.column_by_name(name) {
        return Some(ColumnValues(column.clone()));
    }
    let mut parts = name.split('.');
    let mut array = batch.column_by_name(parts.next()?)?.clone();
    for part in parts {
        array = array.as_struct_opt()?.column_by_name(part)?.clone();
    }
    Some(ColumnValues(array))
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use ::parquet::arrow::ArrowWriter;
    use ::parquet::file::properties::WriterProperties;
    use arrow_array::{ArrayRef, BinaryArray, LargeStringArray, StringArray, StructArray, TimestampMillisecondArray};

    use super::*;
    use crate::config::Columns;
    use crate::readers::item::Body;

    /// Writes a file with `group` rows in each row group.
    fn written(columns: Vec<(&str, ArrayRef)>, group: usize) -> File {
        let batch =
            RecordBatch::try_from_iter_with_nullable(columns.into_iter().map(|(name, array)| (name, array, true)))
                .unwrap();
        let file = tempfile::tempfile().unwrap();
        let properties = WriterProperties::builder().set_max_row_group_row_count(Some(group)).build();
        let mut writer = ArrowWriter::try_new(file.try_clone().unwrap(), batch.schema(), Some(properties)).unwrap();
        writer.write(&batch).unwrap();
        writer.close().unwrap();
        file
    }

    fn read(file: File, reading: &Reading) -> Vec<Item> {
        let mut reader = open(file, "test.parquet", reading).unwrap();
        std::iter::from_fn(|| reader.next().unwrap()).collect()
    }

    fn text(array: &[Option<&str>]) -> ArrayRef {
        Arc::new(array.iter().copied().collect::<StringArray>())
    }

    #[test]
    fn rows_are_pages_over_all_row_groups() {
        let urls: Vec<String> = (0..1000).map(|row| format!("http://a/{row}")).collect();
        let url = Arc::new(LargeStringArray::from(urls.clone()));
        let body = Arc::new(BinaryArray::from_iter_values(urls.iter().map(|url| url.as_bytes())));
        let items =
            read(written(vec![("url", url), ("other", body.clone()), ("text", body)], 300), &Reading::default());
        assert_eq!(items.len(), 1000);
        for (row, item) in items.iter().enumerate() {
            let Item::Page(page) = item else { panic!("{item:?}") };
            assert_eq!((page.offset, &page.url, &page.body), (row as u64, &urls[row], &Body::Text(urls[row].clone())));
        }
    }

    #[test]
    fn large_rows_are_decoded_in_small_batches() {
        let url: Vec<String> = (0..100).map(|row| format!("http://a/{row}")).collect();
        let body: Vec<String> = (0..100_usize).map(|row| format!("{row} ").repeat(50_000)).collect();
        let columns: Vec<(&str, ArrayRef)> = vec![
            ("url", Arc::new(StringArray::from(url))),
            ("text", Arc::new(StringArray::from(body.clone()))),
            ("html", Arc::new(BinaryArray::from_iter_values(std::iter::repeat_n(b"x", 100)))),
        ];
        let file = written(columns, 60);
        let metadata = ArrowReaderMetadata::load(&file, ArrowReaderOptions::new()).unwrap();
        let reader =
            ParquetReader::new(file.try_clone().unwrap(), metadata, 0, "test.parquet", &Reading::default()).unwrap();
        assert!((20..60).contains(&reader.batch_rows(0)), "{}", reader.batch_rows(0));
        let items = read(file, &Reading::default());
        let pages = items.iter().zip(&body).zip(0..);
        assert!(pages.clone().all(
            |((item, text), row)| matches!(item, Item::Page(page) if page.body == Body::Text(text.clone()) && page.offset == row)
        ));
        assert_eq!(items.len(), 100);
    }

    #[test]
    fn invalid_utf8_is_replaced_and_pages_are_cut_at_the_end_of_a_character() {
        let url = text(&[Some("http://a/"), Some("http://b/"), Some("http://c/")]);
        let body = Arc::new(BinaryArray::from_iter_values([&b"a\xffb"[..], "\u{e4}\u{e4}\u{e4}".as_bytes(), b"words"]));
        let reading = Reading { max_page_bytes: crate::config::Bytes(5), ..Reading::default() };
        let items = read(written(vec![("url", url), ("text", body)], 100), &reading);
        let texts: Vec<(Body, bool)> = items
            .into_iter()
            .map(|item| match item {
                Item::Page(page) => (page.body, page.cut),
                other => panic!("{other:?}"),
            })
            .collect();
        let expected = [("a\u{fffd}b", false), ("\u{e4}\u{e4}", true), ("words", false)];
        assert_eq!(texts, expected.map(|(text, cut)| (Body::Text(text.to_owned()), cut)));
    }

    #[test]
    fn rows_without_url_or_body_in_the_columns_of_the_job_are_rejects() {
        let times = TimestampMillisecondArray::from(vec![Some(1500), None, None]).with_timezone("UTC");
        let inside =
            RecordBatch::try_from_iter(vec![("url", text(&[Some("http://a/"), Some("http://b/"), None]))]).unwrap();
        let columns = vec![
            ("meta", Arc::new(StructArray::from(inside)) as ArrayRef),
            ("raw", text(&[Some("<p>"), None, Some("x")])),
            ("ip", text(&[Some("192.0.2.7"), None, None])),
            ("date", Arc::new(times) as ArrayRef),
        ];
        let reading = Reading {
            columns: Columns {
                url: "meta.url".into(),
                text: None,
                html: Some("raw".into()),
                ip: Some("ip".into()),
                date: Some("date".into()),
            },
            ..Reading::default()
        };
        let items = read(written(columns, 100), &reading);
        let [Item::Page(page), Item::Reject(no_text), Item::Reject(no_url)] = &items[..] else { panic!("{items:?}") };
        assert_eq!((page.body.clone(), page.charset.as_deref()), (Body::Html(b"<p>".to_vec()), Some("utf-8")));
        assert_eq!((page.fetched, page.ip), (Some(1_500_000), Some("192.0.2.7".parse().unwrap())));
        assert_eq!((no_text.reason.as_str(), no_text.url.as_deref()), ("parquet: no text", Some("http://b/")));
        assert_eq!((no_url.reason.as_str(), no_url.offset), ("parquet: no url", 2));
    }

    #[test]
    fn a_missing_column_is_an_error_that_names_the_columns_of_the_file() {
        let file = written(vec![("url", text(&[Some("http://a/")])), ("content", text(&[Some("x")]))], 100);
        let error = open(file, "test.parquet", &Reading::default()).err().unwrap().to_string();
        assert_eq!(
            error,
            "test.parquet has no column `text` (its columns: url, content); set the names in [cluster.read.columns]"
        );
    }

    #[test]
    fn every_row_of_a_damaged_row_group_is_a_reject() {
        use std::io::{Seek as _, SeekFrom, Write as _};
        let urls: Vec<String> = (0..20_000).map(|row| format!("http://a/{}", row * 7919 % 99_991)).collect();
        let column: ArrayRef = Arc::new(StringArray::from(urls));
        let mut file = written(vec![("url", column.clone()), ("text", column)], 5000);
        let length = file.metadata().unwrap().len();
        file.seek(SeekFrom::Start(length * 3 / 8)).unwrap();
        file.write_all(&[0xff; 3000]).unwrap();
        let items = read(file, &Reading::default());
        let rejects: Vec<_> = items.iter().filter(|item| matches!(item, Item::Reject(_))).collect();
        // Rows of a group that were read before the damage are pages; up to 5,000 remain.
        assert!((1..=5000).contains(&rejects.len()), "{}", rejects.len());
        assert!(items.len() == 20_000 && matches!(items.last(), Some(Item::Page(page)) if page.offset == 19_999));
    }
}
