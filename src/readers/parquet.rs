//! Pages of Parquet files: a page a row, only the columns that the job names, row group by row group in small batches.
//!
//! The file's own types are read, not the Arrow types noted beside them, so text is text however it was written. A row group
//! that does not decode is a reject for each of its rows, and the next is read. Columns inside a group are named with a dot: `metadata.url`.

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

use super::item::{Item, Reader, Reject};
use super::rows::PageRow;
use crate::config::Reading;

/// Rows decoded at once, at most: their text is in memory.
const BATCH: usize = 128;
/// Bytes that so many rows may have where all are of the row group's mean size. Rows far larger than the mean are not bounded,
/// nor those that a dictionary makes of few bytes.
const BATCH_BYTES: u64 = 4 << 20;

/// Reads the pages of one Parquet file.
pub struct ParquetReader {
    file: File,
    metadata: ArrowReaderMetadata,
    mask: ProjectionMask,
    reading: Reading,
    name: String,
    bytes: u64,
    /// The next row group, and the rows of the file before it.
    group: usize,
    next_row: u64,
    batches: Option<ParquetRecordBatchReader>,
    batch: Option<Batch>,
    /// Number of the next row of the file.
    row: u64,
    /// Rows still to be rejected of a row group that is damaged.
    lost: u64,
}

/// A file that is no whole Parquet file: one bad record.
struct NotWhole {
    reject: Option<Reject>,
    bytes: u64,
}

impl Reader for NotWhole {
    fn next(&mut self) -> anyhow::Result<Option<Item>> {
        Ok(self.reject.take().map(Item::Reject))
    }

    fn position(&self) -> u64 {
        if self.reject.is_none() { self.bytes } else { 0 }
    }
}

/// Opens a local file, called `name` in errors.
///
/// # Errors
/// When the file cannot be read, or lacks a column of the job.
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
            Ok(Box::new(NotWhole { reject: Some(reject), bytes }))
        }
    }
}

/// The columns of some rows.
struct Batch {
    rows: usize,
    at: usize,
    url: ColumnPath,
    text: Option<ColumnPath>,
    html: Option<ColumnPath>,
    ip: Option<ColumnPath>,
    date: Option<ColumnPath>,
}

/// A column, possibly inside groups.
struct ColumnPath(arrow_array::ArrayRef);

impl ParquetReader {
    fn new(
        file: File,
        metadata: ArrowReaderMetadata,
        bytes: u64,
        name: &str,
        reading: &Reading,
    ) -> anyhow::Result<Self> {
        let schema = metadata.parquet_schema();
        let there: Vec<String> = schema.columns().iter().map(|column| column.path().string()).collect();
        let columns = &reading.columns;
        let optional = [&columns.text, &columns.html, &columns.ip, &columns.date];
        let wanted: Vec<&str> = optional.into_iter().flatten().chain([&columns.url]).map(String::as_str).collect();
        for column in &wanted {
            if !there.iter().any(|path| path == column) {
                bail!(
                    "{name} has no column `{column}`: it has {}; set the names in [cluster.read.columns]",
                    there.join(", ")
                );
            }
        }
        if columns.text.is_none() && columns.html.is_none() {
            bail!("no column holds the pages of {name}: set `text` or `html` in [cluster.read.columns]");
        }
        let mask = ProjectionMask::columns(schema, wanted);
        Ok(ParquetReader {
            file,
            metadata,
            mask,
            reading: reading.clone(),
            name: name.to_owned(),
            bytes,
            group: 0,
            next_row: 0,
            batches: None,
            batch: None,
            row: 0,
            lost: 0,
        })
    }

    /// Opens the next row group; false after the last.
    fn open_group(&mut self) -> anyhow::Result<bool> {
        if self.group == self.metadata.metadata().num_row_groups() {
            return Ok(false);
        }
        let group = self.group;
        self.group += 1;
        self.row = self.next_row;
        self.next_row += self.metadata.metadata().row_group(group).num_rows().max(0) as u64;
        let file = self.file.try_clone().with_context(|| format!("cannot read {}", self.name))?;
        let builder = ParquetRecordBatchReaderBuilder::new_with_metadata(file, self.metadata.clone());
        let rows = self.batch_rows(group);
        let builder = builder.with_projection(self.mask.clone()).with_row_groups(vec![group]).with_batch_size(rows);
        self.batches = builder.build().ok();
        Ok(true)
    }

    /// Gives the number of rows of a row group to decode at once.
    fn batch_rows(&self, group: usize) -> usize {
        let group = self.metadata.metadata().row_group(group);
        let wanted = group.columns().iter().enumerate().filter(|(leaf, _)| self.mask.leaf_included(*leaf));
        let bytes: u64 = wanted.map(|(_, column)| column.uncompressed_size().max(0) as u64).sum();
        let mean = (bytes / group.num_rows().max(1) as u64).max(1);
        (BATCH_BYTES / mean).clamp(1, BATCH as u64) as usize
    }

    fn columns(&self, batch: &RecordBatch) -> Option<Batch> {
        let columns = &self.reading.columns;
        let find = |name: &String| find(batch, name);
        Some(Batch {
            rows: batch.num_rows(),
            at: 0,
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
            if self.lost > 0 {
                // Every row that is lost with its group is a bad record.
                let reason = "parquet: damaged row group".to_owned();
                let reject = Reject { offset: self.row, url: None, reason };
                self.lost -= 1;
                self.row += 1;
                return Ok(Some(Item::Reject(reject)));
            }
            if let Some(batch) = self.batch.as_mut().filter(|batch| batch.at < batch.rows) {
                let item = batch.item(self.row, &self.reading);
                batch.at += 1;
                self.row += 1;
                return Ok(Some(item));
            }
            self.batch = None;
            let broken = match self.batches.as_mut().map(Iterator::next) {
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
            if broken {
                self.batches = None;
                self.lost = self.next_row.saturating_sub(self.row).max(1);
            }
        }
    }

    fn position(&self) -> u64 {
        let rows = self.metadata.metadata().file_metadata().num_rows().max(1) as u64;
        (u128::from(self.bytes) * u128::from(self.row.min(rows)) / u128::from(rows)) as u64
    }
}

impl Batch {
    fn item(&self, offset: u64, reading: &Reading) -> Item {
        let at = self.at;
        let html = self.html.as_ref().and_then(|column| column.bytes(at)).map(Cow::Borrowed);
        let row = PageRow {
            url: self.url.text(at),
            // Not looked at in vain: what is no string yet would be searched for bad bytes.
            text: self.text.as_ref().filter(|_| html.is_none()).and_then(|column| column.text(at)),
            html,
            // A string column is UTF-8 whatever the page says of itself.
            html_is_text: self.html.as_ref().is_some_and(ColumnPath::is_text),
            ip: self.ip.as_ref().and_then(|column| column.text(at)),
            fetched: self.date.as_ref().and_then(|column| column.microseconds(at)),
        };
        row.item(offset, reading.page_limit(), "parquet")
    }
}

impl ColumnPath {
    fn is_text(&self) -> bool {
        matches!(self.0.data_type(), DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View)
    }

    fn bytes(&self, at: usize) -> Option<&[u8]> {
        let array = &self.0;
        if array.is_null(at) {
            return None;
        }
        match array.data_type() {
            DataType::Utf8 => Some(array.as_string::<i32>().value(at).as_bytes()),
            DataType::LargeUtf8 => Some(array.as_string::<i64>().value(at).as_bytes()),
            DataType::Utf8View => Some(array.as_string_view().value(at).as_bytes()),
            DataType::Binary => Some(array.as_binary::<i32>().value(at)),
            DataType::LargeBinary => Some(array.as_binary::<i64>().value(at)),
            DataType::BinaryView => Some(array.as_binary_view().value(at)),
            _ => None,
        }
    }

    /// Gives a value as text; what is a string in the file is not looked at again.
    fn text(&self, at: usize) -> Option<Cow<'_, str>> {
        let array = &self.0;
        if array.is_null(at) {
            return None;
        }
        match array.data_type() {
            DataType::Utf8 => Some(Cow::Borrowed(array.as_string::<i32>().value(at))),
            DataType::LargeUtf8 => Some(Cow::Borrowed(array.as_string::<i64>().value(at))),
            DataType::Utf8View => Some(Cow::Borrowed(array.as_string_view().value(at))),
            _ => self.bytes(at).map(super::fields::utf8),
        }
    }

    fn microseconds(&self, at: usize) -> Option<i64> {
        let array = &self.0;
        if array.is_null(at) {
            return None;
        }
        match array.data_type() {
            DataType::Timestamp(TimeUnit::Second, _) => {
                array.as_primitive::<TimestampSecondType>().value(at).checked_mul(1_000_000)
            }
            DataType::Timestamp(TimeUnit::Millisecond, _) => {
                array.as_primitive::<TimestampMillisecondType>().value(at).checked_mul(1000)
            }
            DataType::Timestamp(TimeUnit::Microsecond, _) => {
                Some(array.as_primitive::<TimestampMicrosecondType>().value(at))
            }
            DataType::Timestamp(TimeUnit::Nanosecond, _) => {
                Some(array.as_primitive::<TimestampNanosecondType>().value(at).div_euclid(1000))
            }
            _ => self.bytes(at).and_then(|bytes| std::str::from_utf8(bytes).ok()).and_then(super::fields::microseconds),
        }
    }
}

/// Gives a column by its name, inside groups by its path.
fn find(batch: &RecordBatch, name: &str) -> Option<ColumnPath> {
    if let Some(column) = batch.column_by_name(name) {
        return Some(ColumnPath(column.clone()));
    }
    let mut parts = name.split('.');
    let mut array = batch.column_by_name(parts.next()?)?.clone();
    for part in parts {
        array = array.as_struct_opt()?.column_by_name(part)?.clone();
    }
    Some(ColumnPath(array))
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
    fn large_rows_are_decoded_a_few_at_a_time() {
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
    fn bytes_that_are_no_text_are_replaced_and_pages_cut_at_a_character() {
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
    fn columns_are_those_of_the_job_and_gaps_are_rejects() {
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
    fn a_missing_column_is_named_with_those_there_are() {
        let file = written(vec![("url", text(&[Some("http://a/")])), ("content", text(&[Some("x")]))], 100);
        let error = open(file, "test.parquet", &Reading::default()).err().unwrap().to_string();
        assert_eq!(
            error,
            "test.parquet has no column `text`: it has url, content; set the names in [cluster.read.columns]"
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
        // Of the group of 5,000 rows, all that were not given before the damage was met.
        assert!((1..=5000).contains(&rejects.len()), "{}", rejects.len());
        assert!(items.len() == 20_000 && matches!(items.last(), Some(Item::Page(page)) if page.offset == 19_999));
    }
}
