//! Turns the rows of a Parquet file into items: pages and rejects.

use std::borrow::Cow;
use std::fs::File;
use std::sync::Arc;

use ::parquet::errors::{ParquetError, Result as ParquetResult};
use ::parquet::file::metadata::{ColumnChunkMetaData, ParquetMetaData, ParquetMetaDataReader};
use anyhow::{Context as _, bail};

use super::column::Column;
use super::file::{ChunkedFile, ColumnPages, TOO_LONG};
use crate::readers::fields::{self, Date};
use crate::readers::item::{Item, Nothing, Reader, Reject, RejectedFile};
use crate::readers::pieces::{InputPiece, cut};
use crate::readers::rows::page_row::{PageFields, PageRow};
use crate::reading::{Columns, Reading, TextColumns};
use nigh_text::contained::contained;

/// Reads the pages of one Parquet file.
pub struct ParquetReader {
    file: Arc<ChunkedFile>,
    metadata: ParquetMetaData,
    columns: PageFields<usize>,
    reading: Reading,
    name: String,
    bytes: u64,
    /// The row group to open next, and the one after the last.
    next_group: usize,
    end: usize,
    /// The number, in the file, of the first row to read.
    first_row: u64,
    /// The number, in the file, of the first row of that group.
    next_group_row: u64,
    /// The columns of the open row group.
    group: Option<Box<PageFields<Column>>>,
    /// The number, in the file, of the next row.
    row: u64,
    damage: Option<GroupDamage>,
}

/// A damaged row group, of which rows are still to be rejected.
struct GroupDamage {
    reason: String,
    rows: u64,
}

/// Makes the reader of a local file, named `name` in errors. A file that is not a whole Parquet
/// file is one reject.
///
/// # Errors
/// If the file cannot be read, or lacks a column of the job.
pub fn open(file: File, name: &str, reading: &Reading) -> anyhow::Result<Box<dyn Reader>> {
    open_piece(file, name, reading, InputPiece::WHOLE)
}

/// As [`open`], for some of the row groups. The reject of a file that is not whole is in its first
/// piece.
///
/// # Errors
/// As [`open`].
pub fn open_piece(file: File, name: &str, reading: &Reading, piece: InputPiece) -> anyhow::Result<Box<dyn Reader>> {
    Ok(match open_columns(file, name, reading)? {
        Ok(reader) => Box::new(reader.of_piece(piece)),
        Err(damaged) if piece.number == 0 => Box::new(damaged),
        Err(_) => Box::new(Nothing),
    })
}

/// Checks that a file can be read, and has the columns of the job. Returns whether it has that of
/// the URLs; `None` if it is not a whole Parquet file.
///
/// # Errors
/// As [`open`].
pub fn check(file: File, name: &str, reading: &Reading) -> anyhow::Result<Option<bool>> {
    Ok(open_columns(file, name, reading)?.ok().map(|reader| reader.columns.url.is_some()))
}

/// The names of the columns of a file, and which of those whose values are kept it has; `None` if
/// it is not a whole Parquet file.
///
/// # Errors
/// As [`open`].
pub fn columns(file: File, name: &str, reading: &Reading) -> anyhow::Result<Option<(Vec<String>, Vec<bool>)>> {
    Ok(open_columns(file, name, reading)?.ok().map(|reader| {
        let schema = reader.metadata.file_metadata().schema_descr();
        let names = schema.columns().iter().map(|column| column.path().string()).collect();
        (names, reader.columns.values.iter().map(Option::is_some).collect())
    }))
}

/// Why a file cannot be read: the first page of each column of the job that is not decoded, for
/// each compression that the column has.
///
/// # Errors
/// As [`open`].
pub fn damage(file: File, name: &str, reading: &Reading) -> anyhow::Result<Option<String>> {
    let reader = match open_columns(file, name, reading)? {
        Ok(reader) => reader,
        Err(mut damaged) => {
            return Ok(damaged.next()?.and_then(|item| match item {
                Item::Reject(reject) => Some(reject.reason),
                _ => None,
            }));
        }
    };
    let leaves: Vec<usize> = reader.columns.all().copied().collect();
    let mut seen = Vec::new();
    for group in reader.metadata.row_groups() {
        for leaf in &leaves {
            let Some(column) = group.columns().get(*leaf) else { continue };
            if column.crypto_metadata().is_some() {
                return Ok(Some(encrypted(column)));
            }
            let kind = (*leaf, column.compression());
            if group.num_rows() == 0 || seen.contains(&kind) {
                continue;
            }
            seen.push(kind);
            let rows = group.num_rows().max(0) as u64;
            let decoded = contained(|| {
                ColumnPages::new(&reader.file, column, rows, reading.max_decoded_bytes)?.next().transpose().map(drop)
            });
            if let Some(error) = reader.file.take_failure() {
                return Err(error).with_context(|| format!("cannot read {name}"));
            }
            let reason = match decoded {
                Ok(Ok(())) => continue,
                Ok(Err(error)) => cause(&error),
                Err(cause) => format!("parquet: damaged row group: {cause}"),
            };
            return Ok(Some(format!(
                "{reason} (column `{}`, {})",
                column.column_path().string(),
                column.compression()
            )));
        }
    }
    Ok(None)
}

fn open_columns(file: File, name: &str, reading: &Reading) -> anyhow::Result<Result<ParquetReader, RejectedFile>> {
    let failed = || format!("cannot read {name}");
    let file = Arc::new(ChunkedFile::new(file).with_context(failed)?);
    let metadata = contained(|| ParquetMetaDataReader::new().parse_and_finish(&*file));
    if let Some(error) = file.take_failure() {
        return Err(error).with_context(failed);
    }
    let reason = match metadata {
        Ok(Ok(metadata)) => return Ok(Ok(ParquetReader::new(file, metadata, name, reading)?)),
        Ok(Err(_)) if file.is_encrypted() => "parquet: an encrypted file".to_owned(),
        Ok(Err(_)) => "parquet: not a whole file".to_owned(),
        Err(cause) => format!("parquet: not a whole file: {cause}"),
    };
    Ok(Err(RejectedFile::new(reason, file.bytes())))
}

impl ParquetReader {
    fn new(file: Arc<ChunkedFile>, metadata: ParquetMetaData, name: &str, reading: &Reading) -> anyhow::Result<Self> {
        let names = &reading.columns;
        if names.text.is_empty() && names.html.is_none() {
            bail!("cannot read pages from {name}: set `text` or `html` in [cluster.read.columns]");
        }
        let schema = metadata.file_metadata().schema_descr();
        let find = |column: &String| {
            let paths = || schema.columns().iter().map(|column| column.path().string());
            let Some(leaf) = paths().position(|path| path == *column) else {
                bail!(
                    "{name} has no column `{column}` (its columns: {}); set the names in [cluster.read.columns], or by --id, --url and --text",
                    paths().collect::<Vec<_>>().join(", ")
                );
            };
            if schema.column(leaf).max_rep_level() > 0 {
                bail!("the column `{column}` of {name} is a list: name a column with one value in each row");
            }
            Ok(leaf)
        };
        let Columns { id, url, text, html, ip, date, values } = names.clone();
        let has_url = || schema.columns().iter().any(|column| column.path().string() == names.url());
        let url = url.or_else(|| has_url().then(|| names.url().to_owned()));
        let has = |name: &String| schema.columns().iter().any(|column| column.path().string() == *name);
        let text = text.of_file(|name| has(&name.to_owned()));
        let values = values.into_iter().map(|name| Some(name).filter(has)).collect();
        let columns = PageFields { id, url, text, html, ip, date, values }.map(find)?;
        Ok(ParquetReader {
            bytes: file.bytes(),
            file,
            metadata,
            columns,
            reading: reading.clone(),
            name: name.to_owned(),
            next_group: 0,
            end: 0,
            first_row: 0,
            next_group_row: 0,
            group: None,
            row: 0,
            damage: None,
        })
    }

    /// The reader of the row groups of a piece.
    fn of_piece(self, piece: InputPiece) -> Self {
        let groups = self.metadata.num_row_groups() as u64;
        let cut = |number: u64| cut(groups, number, piece.of) as usize;
        let (next_group, end) = (cut(piece.number), cut(piece.number + 1));
        let rows = |group: usize| self.metadata.row_group(group).num_rows().max(0) as u64;
        let first_row = (0..next_group).map(rows).fold(0, u64::saturating_add);
        ParquetReader { next_group, end, first_row, next_group_row: first_row, row: first_row, ..self }
    }

    /// Opens the next row group; returns `false` after the last.
    fn open_group(&mut self) -> anyhow::Result<bool> {
        if self.next_group == self.end {
            return Ok(false);
        }
        let group = self.metadata.row_group(self.next_group);
        let rows = group.num_rows().max(0) as u64;
        self.next_group += 1;
        self.row = self.next_group_row;
        self.next_group_row = self.next_group_row.saturating_add(rows);
        let open = |leaf: usize| match group.columns().get(leaf) {
            Some(column) if column.crypto_metadata().is_some() => Err(ParquetError::General(encrypted(column))),
            Some(column) => Column::new(&self.file, column, rows, self.reading.max_decoded_bytes),
            None => Err(ParquetError::General("a row group without a column of the schema".to_owned())),
        };
        let columns = &self.columns;
        let opened = contained(|| columns.map(|leaf| open(*leaf)).map(Box::new));
        self.group = self.unless_damaged(opened)?;
        Ok(true)
    }

    /// Returns what was decoded; `None` if the row group is damaged, whose rows are then to be
    /// rejected.
    fn unless_damaged<T>(&mut self, decoded: Result<ParquetResult<T>, String>) -> anyhow::Result<Option<T>> {
        if let Some(error) = self.file.take_failure() {
            return Err(error).with_context(|| format!("cannot read {}", self.name));
        }
        let reason = match decoded {
            Ok(Ok(decoded)) => return Ok(Some(decoded)),
            Ok(Err(error)) => cause(&error),
            Err(cause) => format!("parquet: damaged row group: {cause}"),
        };
        // A damaged number of rows must not give more rejects than the file can have rows.
        let rows = self.next_group_row.saturating_sub(self.row).clamp(1, self.bytes.max(1));
        self.damage = Some(GroupDamage { reason, rows });
        Ok(None)
    }

    /// Rejects the next row of the damaged row group.
    fn reject(&mut self) -> Option<Item> {
        let damage = self.damage.as_mut().filter(|damage| damage.rows > 0)?;
        damage.rows -= 1;
        let reject = Reject { offset: self.row, url: None, reason: damage.reason.clone() };
        self.row += 1;
        Some(Item::Reject(reject))
    }
}

impl Reader for ParquetReader {
    fn next(&mut self) -> anyhow::Result<Option<Item>> {
        loop {
            if let Some(item) = self.reject() {
                return Ok(Some(item));
            }
            let Some(mut group) = self.group.take().filter(|_| self.row < self.next_group_row) else {
                if !self.open_group()? {
                    return Ok(None);
                }
                continue;
            };
            // After a panic the columns are dropped.
            let advanced = contained(|| {
                group.all_mut().try_for_each(Column::advance)?;
                Ok((page(&group, self.row, &self.reading), group))
            });
            if let Some((item, group)) = self.unless_damaged(advanced)? {
                self.group = Some(group);
                self.row += 1;
                return Ok(Some(item));
            }
        }
    }

    fn skip_to(&mut self, place: u64) -> anyhow::Result<()> {
        // Rows of a damaged group are rejects, each.
        if place <= self.row || self.damage.as_ref().is_some_and(|damage| damage.rows > 0) {
            return Ok(());
        }
        if place >= self.next_group_row {
            self.group = None;
            while self.next_group < self.end {
                let rows = self.metadata.row_group(self.next_group).num_rows().max(0) as u64;
                if place < self.next_group_row.saturating_add(rows) {
                    break;
                }
                self.next_group += 1;
                self.next_group_row = self.next_group_row.saturating_add(rows);
            }
            self.row = self.next_group_row;
            if !self.open_group()? {
                return Ok(());
            }
        }
        let Some(mut group) = self.group.take() else { return Ok(()) };
        let rows = place.min(self.next_group_row).saturating_sub(self.row);
        let skipped = contained(|| {
            group.all_mut().try_for_each(|column| column.skip(rows as usize))?;
            Ok(group)
        });
        self.group = self.unless_damaged(skipped)?;
        if self.group.is_some() {
            self.row += rows;
        }
        Ok(())
    }

    fn position(&self) -> u64 {
        let rows = self.metadata.file_metadata().num_rows().max(1) as u64;
        let until = |row: u64| cut(self.bytes, row.min(rows), rows);
        until(self.row) - until(self.first_row.min(self.row))
    }
}

/// The end of that reason.
const ENCRYPTED: &str = " is encrypted";

/// The reason of the rejects of a row group with an encrypted column.
fn encrypted(column: &ColumnChunkMetaData) -> String {
    format!("parquet: the column `{}`{ENCRYPTED}", column.column_path().string())
}

/// The reason of the rejects of a row group that does not decode.
fn cause(error: &ParquetError) -> String {
    let known = match error {
        // The only compression of the format that is not read: no program writes it any more.
        ParquetError::NYI(_) => "compressed as LZO, which is not read",
        ParquetError::General(text) if text == TOO_LONG => TOO_LONG,
        ParquetError::General(text) if text.ends_with(ENCRYPTED) => return text.clone(),
        ParquetError::General(text) if text.contains("CRC") => "the checksum of a page is another",
        _ => return "parquet: damaged row group".to_owned(),
    };
    format!("parquet: damaged row group: {known}")
}

/// Makes the page of a row, or a reject.
fn page(group: &PageFields<Column>, offset: u64, reading: &Reading) -> Item {
    let html = group.html.as_ref().and_then(Column::bytes).map(Cow::Borrowed);
    let row = PageRow {
        id: group.id.as_ref().map(Column::id).unwrap_or_default(),
        url: group.url.as_ref().and_then(Column::bytes).map(fields::url),
        // Read only if needed: it would be searched for invalid UTF-8.
        text: match html {
            None => TextColumns::joined(group.text.iter().map(|column| column.as_ref()?.text())),
            Some(_) => None,
        },
        html,
        // A string column is UTF-8, whatever charset the page declares.
        html_is_text: group.html.as_ref().is_some_and(Column::is_text),
        ip: group.ip.as_ref().and_then(Column::text),
        fetched: group.date.as_ref().map_or(Date::None, Column::date),
        values: group.values.iter().map(|column| column.as_ref()?.value()).collect(),
    };
    row.item(offset, reading.page_limit(), "parquet")
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use ::parquet::arrow::ArrowWriter;
    use ::parquet::file::properties::WriterProperties;
    use arrow_array::{
        ArrayRef, BinaryArray, DictionaryArray, Int32Array, Int64Array, LargeStringArray, RecordBatch, StringArray,
        StructArray, TimestampMillisecondArray, UInt64Array,
    };

    use super::*;
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
            assert_eq!(
                (page.offset, page.url.as_ref(), &page.body),
                (row as u64, Some(&urls[row]), &Body::Text(urls[row].clone()))
            );
        }
    }

    #[test]
    fn a_long_dictionary_value_in_many_rows_is_cut_in_each() {
        let urls: Vec<String> = (0..1000).map(|row| format!("http://a/{row}")).collect();
        let long = "w ".repeat(3 << 20);
        let keys = Int32Array::from_iter_values((0..1000).map(|row| i32::from(row % 3 > 0)));
        let values = Arc::new(StringArray::from(vec!["short", long.as_str()]));
        let columns: Vec<(&str, ArrayRef)> = vec![
            ("url", Arc::new(StringArray::from(urls.clone()))),
            ("text", Arc::new(DictionaryArray::new(keys, values))),
        ];
        let reading = Reading { max_page_bytes: crate::units::Bytes(1 << 20), ..Reading::default() };
        // As Arrow strings, a batch of these rows would be 2 GiB or more.
        let mut reader = open(written(columns, 1000), "test.parquet", &reading).unwrap();
        for (row, url) in urls.iter().enumerate() {
            let Some(Item::Page(page)) = reader.next().unwrap() else { panic!("no page at {row}") };
            assert_eq!((page.url.as_ref(), page.cut), (Some(url), row % 3 > 0));
            assert_eq!(page.body.bytes(), if row % 3 > 0 { 1 << 20 } else { 5 });
        }
        assert_eq!(reader.next().unwrap(), None);
    }

    #[test]
    fn values_far_above_the_mean_are_read() {
        let url: Vec<String> = (0..2000).map(|row| format!("http://a/{row}")).collect();
        let body: Vec<String> =
            (0..2000_usize).map(|row| format!("{row} ").repeat(if row % 500 == 7 { 500_000 } else { 3 })).collect();
        let columns: Vec<(&str, ArrayRef)> =
            vec![("url", Arc::new(StringArray::from(url))), ("text", Arc::new(StringArray::from(body.clone())))];
        let items = read(written(columns, 1500), &Reading::default());
        assert_eq!(items.len(), 2000);
        for (row, item) in items.iter().enumerate() {
            let Item::Page(page) = item else { panic!("{item:?}") };
            assert!(page.offset == row as u64 && page.body == Body::Text(body[row].clone()), "{row}");
        }
    }

    #[test]
    fn damage_in_a_column_that_the_job_names_is_rejects() {
        // The Arrow readers of the crate panicked on these.
        for (file, rows) in [("bounds", 50), ("divide", 5)] {
            let open = || File::open(format!("../../tests/data/dirty/parquet-{file}.parquet")).unwrap();
            let pages = read(open(), &Reading::default());
            // Some rows of the files have no text.
            let is_whole = |item: &Item| match item {
                Item::Reject(reject) => reject.reason == "parquet: no text",
                item => matches!(item, Item::Page(_)),
            };
            assert!(pages.len() == rows && pages.iter().all(is_whole), "{pages:?}");
            let columns = Columns { ip: Some("ip".into()), ..Columns::default() };
            let items = read(open(), &Reading { columns, ..Reading::default() });
            let is_reject = |item: &Item| matches!(item, Item::Reject(reject) if reject.reason.starts_with("parquet: damaged row group"));
            assert!(items.len() == rows && items.iter().all(is_reject), "{items:?}");
        }
    }

    #[test]
    fn no_changed_byte_ends_the_program_and_a_panic_is_a_reason() {
        use std::os::unix::fs::FileExt as _;
        let url = text(&[Some("http://a/"), Some("http://b/"), Some("http://c/")]);
        let mut whole = Vec::new();
        let file = written(vec![("url", url.clone()), ("text", url)], 2);
        whole.resize(file.metadata().unwrap().len() as usize, 0);
        file.read_exact_at(&mut whole, 0).unwrap();
        let file = tempfile::tempfile().unwrap();
        let mut reasons = std::collections::BTreeSet::new();
        for (place, byte) in whole.iter().enumerate() {
            for change in [1, 0x80] {
                file.write_all_at(&whole, 0).unwrap();
                file.write_all_at(&[byte ^ change], place as u64).unwrap();
                let Ok(mut reader) = open(file.try_clone().unwrap(), "test.parquet", &Reading::default()) else {
                    continue;
                };
                while let Some(item) = reader.next().unwrap() {
                    if let Item::Reject(reject) = item {
                        reasons.insert(reject.reason);
                    }
                }
            }
        }
        // The lowest bit of a number is its sign.
        let negative = "parquet: damaged row group: column start and length should not be negative";
        assert!(reasons.contains(negative), "{reasons:#?}");
        assert!(reasons.contains("parquet: not a whole file") && reasons.contains("parquet: damaged row group"));
        assert!(reasons.len() < 20, "{reasons:#?}");
    }

    #[test]
    fn invalid_utf8_is_replaced_and_pages_are_cut_at_the_end_of_a_character() {
        let url = text(&[Some("http://a/"), Some("http://b/"), Some("http://c/")]);
        let body = Arc::new(BinaryArray::from_iter_values([&b"a\xffb"[..], "\u{e4}\u{e4}\u{e4}".as_bytes(), b"words"]));
        let reading = Reading { max_page_bytes: crate::units::Bytes(5), ..Reading::default() };
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
    fn rows_without_a_body_in_the_columns_of_the_job_are_rejects() {
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
                id: None,
                url: Some("meta.url".into()),
                text: TextColumns::default(),
                html: Some("raw".into()),
                ip: Some("ip".into()),
                date: Some("date".into()),
                ..Columns::default()
            },
            ..Reading::default()
        };
        let items = read(written(columns, 100), &reading);
        let [Item::Page(page), Item::Reject(no_text), Item::Page(no_url)] = &items[..] else { panic!("{items:?}") };
        assert_eq!((page.body.clone(), page.charset.as_deref()), (Body::Html(b"<p>".to_vec()), Some("utf-8")));
        assert_eq!((page.fetched, page.ip), (Some(1_500_000), Some("192.0.2.7".parse().unwrap())));
        assert_eq!((no_text.reason.as_str(), no_text.url.as_deref()), ("parquet: no text", Some("http://b/")));
        assert_eq!((no_url.url.as_deref(), no_url.offset), (None, 2));
    }

    #[test]
    fn every_codec_is_read_and_a_checksum_is_verified() {
        use std::os::unix::fs::FileExt as _;

        use ::parquet::basic::{BrotliLevel, Compression, GzipLevel, ZstdLevel};

        let urls: Vec<String> = (0..300).map(|row| format!("http://a/{row}")).collect();
        let column: ArrayRef = Arc::new(StringArray::from(urls));
        let batch = RecordBatch::try_from_iter([("url", column.clone()), ("text", column)]).unwrap();
        let written = |properties: WriterProperties| {
            let file = tempfile::tempfile().unwrap();
            let mut writer = ArrowWriter::try_new(file.try_clone().unwrap(), batch.schema(), Some(properties)).unwrap();
            writer.write(&batch).unwrap();
            writer.close().unwrap();
            file
        };
        let reading = Reading::default();
        for codec in [
            Compression::UNCOMPRESSED,
            Compression::SNAPPY,
            Compression::GZIP(GzipLevel::default()),
            Compression::BROTLI(BrotliLevel::default()),
            Compression::LZ4,
            Compression::LZ4_RAW,
            Compression::ZSTD(ZstdLevel::default()),
        ] {
            let file = written(WriterProperties::builder().set_compression(codec).build());
            assert_eq!(damage(file.try_clone().unwrap(), "x", &reading).unwrap(), None, "{codec}");
            let items = read(file, &reading);
            assert!(items.len() == 300 && items.iter().all(|item| matches!(item, Item::Page(_))), "{codec}");
        }
        // One byte of a value, which would otherwise be another value, in a file of a program that
        // writes checksums.
        let bytes = std::fs::read("../../tests/data/checksums.parquet").unwrap();
        let changed = |place: usize, new: &[u8]| {
            let file = tempfile::tempfile().unwrap();
            file.write_all_at(&bytes, 0).unwrap();
            file.write_all_at(new, place as u64).unwrap();
            file
        };
        let place = bytes.windows(12).position(|window| window == b"http://a/210").unwrap();
        let file = changed(place, b"j");
        let reason = "parquet: damaged row group: the checksum of a page is another";
        let items = read(file.try_clone().unwrap(), &reading);
        assert!(
            items.iter().all(|item| matches!(item, Item::Reject(reject) if reject.reason == reason)),
            "{:?}",
            items[0]
        );
        let found = damage(file, "x", &reading).unwrap().unwrap();
        assert_eq!(found, format!("{reason} (column `url`, UNCOMPRESSED)"));
        // A page that becomes more than there is memory for.
        let file = written(WriterProperties::builder().set_dictionary_enabled(false).build());
        let small = Reading { max_decoded_bytes: 1000, ..Reading::default() };
        let error = format!("{:#}", open(file, "x", &small).unwrap().next().unwrap_err());
        assert!(error.starts_with("cannot read x: a page of ") && error.contains("raise `memory`"), "{error}");
        let file = changed(bytes.len() - 4, b"PARE");
        assert!(
            matches!(&read(file, &reading)[..], [Item::Reject(reject)] if reject.reason == "parquet: an encrypted file")
        );
    }

    #[test]
    fn rows_that_are_passed_over_leave_the_others_as_they_are() {
        let urls: Vec<String> = (0..5000).map(|row| format!("http://a/{}", row * 7919 % 997)).collect();
        let bodies: Vec<Option<String>> =
            (0..5000).map(|row| (row % 7 > 0).then(|| format!("{row} ").repeat(row % 50))).collect();
        let columns: Vec<(&str, ArrayRef)> =
            vec![("url", Arc::new(StringArray::from(urls))), ("text", Arc::new(StringArray::from(bodies)))];
        let file = written(columns, 700);
        let all = read(file.try_clone().unwrap(), &Reading::default());
        for step in [1, 3, 11, 698, 701, 2500] {
            let mut reader = open(file.try_clone().unwrap(), "test.parquet", &Reading::default()).unwrap();
            for place in (0..5000).step_by(step) {
                reader.skip_to(place as u64).unwrap();
                assert_eq!(reader.next().unwrap().as_ref(), Some(&all[place]), "{step}");
                // A place that was read changes nothing.
                reader.skip_to(place as u64 / 2).unwrap();
            }
            reader.skip_to(1 << 40).unwrap();
            assert_eq!(reader.next().unwrap(), None);
        }
    }

    #[test]
    fn a_missing_column_is_an_error_that_names_the_columns_of_the_file() {
        let file = written(vec![("url", text(&[Some("http://a/")])), ("content", text(&[Some("x")]))], 100);
        let error = open(file, "test.parquet", &Reading::default()).err().unwrap().to_string();
        assert_eq!(
            error,
            "test.parquet has no column `text` (its columns: url, content); set the names in [cluster.read.columns], or by --id, --url and --text"
        );
    }

    #[test]
    fn ids_are_integers_or_text_and_urls_may_be_missing() {
        let ids = Int64Array::from(vec![Some(i64::MAX), None, Some(-3)]);
        let unsigned = UInt64Array::from(vec![u64::MAX, 1, 2]);
        let names = text(&[Some("a"), Some(""), Some("c")]);
        let body = text(&[Some("x"), Some("y"), Some("z")]);
        let columns: Vec<(&str, ArrayRef)> =
            vec![("n", Arc::new(ids)), ("u", Arc::new(unsigned)), ("s", names), ("text", body)];
        for (id, expected) in [
            ("n", [Some("9223372036854775807"), None, Some("-3")]),
            ("u", [Some("18446744073709551615"), Some("1"), Some("2")]),
            ("s", [Some("a"), None, Some("c")]),
        ] {
            let columns_of_job = Columns { id: Some(id.into()), ..Columns::default() };
            let reading = Reading { columns: columns_of_job, ..Reading::default() };
            let items = read(written(columns.clone(), 100), &reading);
            let found: Vec<_> = items
                .iter()
                .map(|item| match item {
                    Item::Page(page) => (page.id.as_deref(), page.url.as_deref()),
                    other => panic!("{other:?}"),
                })
                .collect();
            assert_eq!(found, expected.map(|id| (id, None)), "{id}");
            assert_eq!(check(written(columns.clone(), 100), "test.parquet", &reading).unwrap(), Some(false));
        }
    }

    #[test]
    fn ids_are_whole_in_every_type_or_a_reject() {
        use arrow_array::{BooleanArray, Decimal128Array, FixedSizeBinaryArray, Float64Array};

        let decimal = |scale| {
            let values = Decimal128Array::from(vec![Some(18_446_744_073_709_551_616), None, Some(-5)]);
            Arc::new(values.with_precision_and_scale(38, scale).unwrap()) as ArrayRef
        };
        let bytes = Arc::new(BinaryArray::from(vec![Some(&b"a\xff"[..]), None, Some(b"b")])) as ArrayRef;
        let uuid = FixedSizeBinaryArray::try_from_iter([[0x12; 16], [0; 16], [0xff; 16]].iter()).unwrap();
        let no_id = "parquet: an id that is neither text nor a whole number";
        let cases: [(ArrayRef, [Option<&str>; 3]); 5] = [
            (decimal(0), [Some("18446744073709551616"), None, Some("-5")]),
            (decimal(2), [Some(no_id), None, Some(no_id)]),
            (bytes, [Some(no_id), None, Some("b")]),
            (Arc::new(Float64Array::from(vec![Some(1.0), None, Some(f64::NAN)])), [Some(no_id), None, Some(no_id)]),
            (Arc::new(BooleanArray::from(vec![true, false, true])), [Some(no_id); 3]),
        ];
        let reading =
            Reading { columns: Columns { id: Some("id".into()), ..Columns::default() }, ..Reading::default() };
        for (ids, wanted) in cases {
            let items = read(written(vec![("id", ids.clone()), ("text", text(&[Some("x"); 3]))], 100), &reading);
            let found: Vec<Option<&str>> = items
                .iter()
                .map(|item| match item {
                    Item::Page(page) => page.id.as_deref(),
                    Item::Reject(reject) => Some(reject.reason.as_str()),
                    other => panic!("{other:?}"),
                })
                .collect();
            assert_eq!(found, wanted, "{}", ids.data_type());
        }
        // Without the type, the bytes of UUIDs are no text.
        let items = read(written(vec![("id", Arc::new(uuid)), ("text", text(&[Some("x"); 3]))], 100), &reading);
        assert!(matches!(&items[2], Item::Reject(reject) if reject.reason == no_id), "{items:?}");
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
