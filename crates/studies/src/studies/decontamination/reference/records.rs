//! The records of the files of a reference, with the texts of the columns that the job names.
//!
//! ```text
//! JSON Lines, Parquet        rows as JSON objects; a column is a text, or texts in lists and objects
//! CSV, TSV, Arrow            a text for each column; the texts of a file are in memory
//! WARC, HTML, text           pages
//! a store                    the documents of its last week, read again from its input files
//! ```
//!
//! A column may be within objects: `choices.text`, unless a field has just that name. Numbers,
//! booleans and nulls are no texts.

use std::collections::{BTreeMap, BTreeSet};

use anyhow::{Context as _, Result, bail, ensure};
use arrow_array::RecordBatch;
use arrow_json::writer::{LineDelimited, WriterBuilder};
use nigh_readers::units::{Bytes, Share};
use nigh_text::contained::contained;
use parquet::arrow::ProjectionMask;
use parquet::arrow::arrow_reader::{ParquetRecordBatchReader, ParquetRecordBatchReaderBuilder};
use serde_json::{Map, Value};

use super::store_documents::{DocumentsOfFile, StoreDocuments};
use super::texts::with_texts;
use crate::config::Reading;
use crate::readers::{self, Body, Format, Item, JsonLines, LineKind, Reader, RecordKind, Searched, Unread};
use crate::sheet::plural;
use crate::studies::ReferenceFile;

/// Rows of a batch of Parquet.
const BATCH: usize = 1024;

/// A record of a file.
pub struct ReferenceRecord {
    /// The number of its file.
    pub file: usize,
    /// Its number in the file, from 0; records that cannot be read count.
    pub number: u64,
    /// Its id, if it has one.
    pub id: Option<String>,
    /// Its texts, each with its charset and the number of its column.
    pub texts: Vec<RecordText>,
}

/// A text of a record.
pub struct RecordText {
    /// The number of the column; 0 of a page.
    pub column: usize,
    /// The text.
    pub body: Body,
    /// The charset that its record says.
    pub label: Option<String>,
}

/// What comes next in a reference.
pub enum NextRecord {
    /// A record.
    Record(ReferenceRecord),
    /// One that cannot be read.
    Bad,
}

/// The records of all files, in order.
pub struct ReferenceRecords<'a> {
    files: &'a [ReferenceFile],
    columns: Vec<String>,
    id: Option<String>,
    /// The share of the bytes of a file that may be unread.
    max_unread: Share,
    /// The number of the file that is open, or comes next.
    file: usize,
    open: Option<OpenReference>,
    of_store: StoreDocuments,
    number: u64,
    /// How many of the records of the open file can be read.
    good: u64,
    /// Which columns, and the id, some file has.
    has: Vec<bool>,
    has_id: bool,
    /// Whether the open file has a column.
    file_has: bool,
    /// The names of the fields of records: some, for messages.
    names: BTreeSet<String>,
    of_file: BTreeSet<String>,
}

/// The most names in a message.
const MOST_NAMES: usize = 40;

/// The id and the texts of a record; `None` if it cannot be read.
type IdAndTexts = Option<(Option<String>, Vec<RecordText>)>;

enum OpenReference {
    Json(Box<JsonLines>),
    Parquet {
        batches: Box<ParquetRecordBatchReader>,
        rows: std::vec::IntoIter<Map<String, Value>>,
    },
    /// By the places of records.
    Columns {
        records: std::collections::btree_map::IntoIter<u64, IdAndTexts>,
        unread: Unread,
    },
    Pages {
        reader: Box<dyn Reader>,
        /// Of an input of a store, its documents.
        documents: Option<DocumentsOfFile>,
    },
}

impl OpenReference {
    /// What could not be read so far.
    fn unread(&self) -> Unread {
        match self {
            OpenReference::Json(lines) => lines.unread(),
            // One that is not whole is an error.
            OpenReference::Parquet { .. } => Unread::default(),
            OpenReference::Columns { unread, .. } => *unread,
            OpenReference::Pages { reader, .. } => reader.unread(),
        }
    }
}

impl<'a> ReferenceRecords<'a> {
    /// The records of these files, of each of which this share of the bytes may be unread.
    pub fn new(
        files: &'a [ReferenceFile],
        columns: Vec<String>,
        id: Option<String>,
        max_unread: Share,
    ) -> ReferenceRecords<'a> {
        let has = vec![false; columns.len()];
        ReferenceRecords {
            files,
            columns,
            id,
            max_unread,
            file: 0,
            open: None,
            of_store: StoreDocuments::default(),
            number: 0,
            good: 0,
            has,
            has_id: false,
            file_has: false,
            names: BTreeSet::new(),
            of_file: BTreeSet::new(),
        }
    }

    /// The next record.
    ///
    /// # Errors
    /// If a file cannot be read, or not all of it, has no good record or none of the columns; or,
    /// at the end, if no file has one of them, or a store has documents elsewhere.
    pub fn next(&mut self) -> Result<Option<NextRecord>> {
        loop {
            let Some(file) = self.files.get(self.file) else {
                self.of_store.check_all_opened()?;
                self.check_columns()?;
                return Ok(None);
            };
            if self.open.is_none() {
                (self.number, self.good, self.file_has) = (0, 0, false);
                self.of_file.clear();
                self.open = Some(self.open_file(file)?);
            }
            if let Some(found) = self.of_open_file(file)? {
                return Ok(Some(found));
            }
            self.check_file(file)?;
            (self.open, self.file) = (None, self.file + 1);
        }
    }

    fn of_open_file(&mut self, file: &ReferenceFile) -> Result<Option<NextRecord>> {
        let failed = || format!("cannot read {} of the reference", file.input.name);
        let number = self.number;
        let found = match self.open.as_mut().context("a file is open")? {
            OpenReference::Json(lines) => match lines.line().with_context(failed)? {
                None => return Ok(None),
                Some(Ok(line)) if number == 0 && line.starts_with(b"[") => bail!(
                    "{} of the reference is a JSON array, and nigh reads JSON Lines: `jq -c '.[]'` makes lines of it",
                    file.input.name
                ),
                Some(line) => {
                    let object = line.ok().and_then(|line| serde_json::from_slice::<Map<String, Value>>(line).ok());
                    object.map_or(NextRecord::Bad, |object| NextRecord::Record(self.of_object(&object)))
                }
            },
            OpenReference::Parquet { batches, rows } => {
                let row = loop {
                    if let Some(row) = rows.next() {
                        break row;
                    }
                    match objects_of_next(batches).with_context(failed)? {
                        Some(objects) => *rows = objects.into_iter(),
                        None => return Ok(None),
                    }
                };
                NextRecord::Record(self.of_object(&row))
            }
            OpenReference::Columns { records, .. } => match records.next() {
                None => return Ok(None),
                Some((_, None)) => NextRecord::Bad,
                Some((_, Some((id, texts)))) => {
                    NextRecord::Record(ReferenceRecord { file: self.file, number, id, texts })
                }
            },
            OpenReference::Pages { reader, documents } => loop {
                match reader.next().with_context(failed)? {
                    None => return Ok(None),
                    // It was deleted since, or another record has taken its place.
                    Some(Item::Page(page)) if documents.as_mut().is_some_and(|documents| !documents.has(&page)) => {
                        self.number += 1;
                    }
                    Some(Item::Page(page)) => {
                        let number = self.number;
                        let id = page.id.or(page.url);
                        let texts = vec![RecordText { column: 0, body: page.body, label: page.charset }];
                        break NextRecord::Record(ReferenceRecord { file: self.file, number, id, texts });
                    }
                    Some(Item::Reject(_)) => break NextRecord::Bad,
                    Some(Item::Failed(_) | Item::Revisit(_) | Item::Skip(_)) => {}
                }
            },
        };
        self.number += 1;
        self.good += u64::from(matches!(found, NextRecord::Record(_)));
        Ok(Some(found))
    }

    /// The record of a row.
    fn of_object(&mut self, object: &Map<String, Value>) -> ReferenceRecord {
        for name in object.keys() {
            if self.of_file.len() < MOST_NAMES && !self.of_file.contains(name) {
                self.of_file.insert(name.clone());
            }
        }
        let mut texts = Vec::new();
        for (column, name) in self.columns.iter().enumerate() {
            let Some(value) = value_at(object, name) else { continue };
            (self.has[column], self.file_has) = (true, true);
            let mut text = String::new();
            add_texts(value, &mut text);
            if !text.is_empty() {
                texts.push(RecordText { column, body: Body::Text(text), label: None });
            }
        }
        let id = self.id.as_ref().and_then(|name| value_at(object, name));
        self.has_id |= id.is_some();
        let id = id.and_then(|id| match id {
            Value::String(text) => Some(text.clone()),
            Value::Number(number) => Some(number.to_string()),
            _ => None,
        });
        ReferenceRecord { file: self.file, number: self.number, id, texts }
    }

    fn open_file(&mut self, file: &ReferenceFile) -> Result<OpenReference> {
        let ReferenceFile { input, reading, of_store } = file;
        match input.format.records() {
            RecordKind::Lines(LineKind::Json) if of_store.is_none() => {
                let longest = reading.page_limit().saturating_mul(6);
                Ok(OpenReference::Json(Box::new(JsonLines::open(input, longest)?)))
            }
            RecordKind::Rows if of_store.is_none() && input.format == Format::Parquet => self.parquet(file),
            RecordKind::Lines(_) | RecordKind::Rows if of_store.is_none() => self.by_columns(file),
            _ => {
                // Pages have no columns of the job, and need none.
                self.file_has = true;
                let mut reader = readers::open(input, reading)?;
                reader.without_waiting();
                let in_file = |of_store| self.of_store.in_file(of_store, &input.name);
                let documents = of_store.as_ref().map(in_file).transpose()?;
                Ok(OpenReference::Pages { reader, documents })
            }
        }
    }

    fn parquet(&mut self, file: &ReferenceFile) -> Result<OpenReference> {
        let name = &file.input.name;
        let failed = || format!("cannot read {name} of the reference");
        let opened = readers::stored_file(&file.input).with_context(failed)?;
        let builder = contained(|| ParquetRecordBatchReaderBuilder::try_new(opened));
        let builder = builder.map_err(anyhow::Error::msg).with_context(failed)?.with_context(failed)?;
        let roots: Vec<String> =
            builder.parquet_schema().root_schema().get_fields().iter().map(|field| field.name().to_owned()).collect();
        self.of_file = roots.iter().take(MOST_NAMES).cloned().collect();
        let wanted: Vec<&String> = self.columns.iter().chain(&self.id).collect();
        let is_wanted = |root: &str| {
            let within =
                |name: &str| name.strip_prefix(root).is_some_and(|rest| rest.is_empty() || rest.starts_with('.'));
            wanted.iter().any(|name| within(name))
        };
        for root in roots.iter().filter(|root| is_wanted(root)) {
            readers::check_once(name, root, roots.iter().filter(|other| *other == root).count())?;
        }
        let wanted = (0..roots.len()).filter(|root| is_wanted(&roots[*root]));
        let mask = ProjectionMask::roots(builder.parquet_schema(), wanted.collect::<Vec<_>>());
        let batches = contained(|| builder.with_projection(mask).with_batch_size(BATCH).build());
        let batches = batches.map_err(anyhow::Error::msg).with_context(failed)?.with_context(failed)?;
        Ok(OpenReference::Parquet { batches: Box::new(batches), rows: Vec::new().into_iter() })
    }

    /// Reads a file once for each column that it has.
    fn by_columns(&mut self, file: &ReferenceFile) -> Result<OpenReference> {
        let ReferenceFile { input, reading, .. } = file;
        let Some((names, _)) = readers::columns(input, reading, Searched::First)? else {
            bail!(
                "{} of the reference is damaged at its beginning, and none of it can be read: fetch or write it again",
                input.name
            );
        };
        self.of_file = names.iter().take(MOST_NAMES).cloned().collect();
        let has = |column: &String| names.contains(column);
        let id = self.id.clone().filter(has);
        self.has_id |= id.is_some();
        let (mut records, mut unread): (BTreeMap<u64, IdAndTexts>, Unread) = Default::default();
        for (column, name) in self.columns.iter().enumerate().filter(|(_, name)| names.contains(name)) {
            (self.has[column], self.file_has) = (true, true);
            let columns = crate::config::Columns { id: id.clone(), text: name.as_str().into(), ..Default::default() };
            let mut reader = readers::open(input, &Reading { columns, ..reading.clone() })?;
            while let Some(item) = reader.next()? {
                let record = records.entry(item.offset()).or_default();
                if let Item::Page(page) = item {
                    let (_, texts) = record.get_or_insert_with(|| (page.id, Vec::new()));
                    texts.push(RecordText { column, body: page.body, label: page.charset });
                }
            }
            let Unread { bytes, ends_early } = reader.unread();
            unread = Unread { bytes: unread.bytes.max(bytes), ends_early: unread.ends_early || ends_early };
        }
        Ok(OpenReference::Columns { records: records.into_iter(), unread })
    }

    /// Checks that a file that was read has records, and one of the columns. A store may have files
    /// of bad records: their job has rejected these.
    fn check_file(&mut self, file: &ReferenceFile) -> Result<()> {
        let Unread { bytes, ends_early } = self.open.as_ref().map(OpenReference::unread).unwrap_or_default();
        if let (Some(OpenReference::Pages { documents: Some(documents), .. }), Some(of_store)) =
            (&self.open, &file.of_store)
        {
            let missing = documents.missing();
            ensure!(
                missing == 0,
                "{} has changed since week {} of {} was made from it: {} not there any more. Put the file back as it was, or \
                 name files instead of the store",
                file.input.name,
                of_store.week,
                of_store.store.display(),
                match missing {
                    1 => "a document of it is".to_owned(),
                    count => format!("{} of it are", plural(count, "document")),
                }
            );
        }
        let (Share(max), all) = (self.max_unread, file.input.bytes);
        let is_whole = bytes as f64 <= max * all as f64 && (!ends_early || max > 0.0);
        ensure!(
            is_whole || file.of_store.is_some(),
            "{} of {} of {} of the reference could not be read{}: {} could, and what is missing would not be compared. Fetch or write \
             the file again, or set max-unread-share in [decontamination] to accept it",
            Bytes(bytes),
            Bytes(all),
            file.input.name,
            if ends_early { ", for it ends early" } else { "" },
            plural(self.good, "record"),
        );
        ensure!(
            self.good > 0 || self.number == 0 || file.of_store.is_some(),
            "{} of the reference has {}, of which none can be read: look whether it is what its name says",
            file.input.name,
            plural(self.number, "record")
        );
        ensure!(
            self.file_has || self.number == 0 || self.of_file.is_empty(),
            "{} of the reference has none of the columns {}: it has {}. Name those with texts in `columns` of [decontamination]",
            file.input.name,
            list(self.columns.iter()),
            list(self.of_file.iter())
        );
        self.names.extend(std::mem::take(&mut self.of_file));
        Ok(())
    }

    /// Checks, at the end, that some file has each column.
    fn check_columns(&self) -> Result<()> {
        let missing = self.columns.iter().zip(&self.has).find(|(_, has)| !**has).map(|(column, _)| column);
        let missing = missing.or(self.id.as_ref().filter(|_| !self.has_id));
        match missing.filter(|_| !self.names.is_empty()) {
            Some(column) => bail!(
                "no file of the reference has the column `{column}` of [decontamination]: they have {}",
                list(self.names.iter().take(MOST_NAMES))
            ),
            None => Ok(()),
        }
    }
}

/// Names, as a message lists them.
fn list<'a>(names: impl Iterator<Item = &'a String>) -> String {
    let names: Vec<String> = names.map(|name| format!("`{name}`")).collect();
    if names.is_empty() { "none".to_owned() } else { names.join(", ") }
}

/// The rows of the next batch.
fn objects_of_next(batches: &mut ParquetRecordBatchReader) -> Result<Option<Vec<Map<String, Value>>>> {
    let Some(batch) = contained(|| batches.next()).map_err(anyhow::Error::msg)?.transpose()? else { return Ok(None) };
    if batch.num_columns() == 0 {
        return Ok(Some(vec![Map::new(); batch.num_rows()]));
    }
    let names: Vec<String> = batch.schema().fields().iter().map(|field| field.name().clone()).collect();
    let columns = names.iter().zip(batch.columns().iter().map(with_texts)).map(|(name, column)| (name, column, true));
    let batch = RecordBatch::try_from_iter_with_nullable(columns)?;
    let mut writer = WriterBuilder::new().with_explicit_nulls(true).build::<_, LineDelimited>(Vec::new());
    writer.write(&batch)?;
    writer.finish()?;
    let lines = writer.into_inner();
    let objects = lines.split(|byte| *byte == b'\n').filter(|line| !line.is_empty());
    Ok(Some(objects.map(serde_json::from_slice).collect::<Result<_, _>>()?))
}

/// The value of a column, which may be within objects.
fn value_at<'a>(object: &'a Map<String, Value>, name: &str) -> Option<&'a Value> {
    if let Some(value) = object.get(name) {
        return Some(value);
    }
    name.match_indices('.').find_map(|(at, _)| value_at(object.get(&name[..at])?.as_object()?, &name[at + 1..]))
}

/// Adds the texts of a value, each on a line of its own.
fn add_texts(value: &Value, to: &mut String) {
    match value {
        Value::String(text) => {
            if !to.is_empty() {
                to.push('\n');
            }
            to.push_str(text);
        }
        Value::Array(values) => values.iter().for_each(|value| add_texts(value, to)),
        Value::Object(fields) => fields.values().for_each(|value| add_texts(value, to)),
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_may_be_within_objects_and_lists() {
        let text =
            r#"{"a":"one","b":{"c":{"d":["two",3,["four",null]]},"c.d":"five"},"x.y":"six","x":{"y":"seven"},"n":4}"#;
        let object: Map<String, Value> = serde_json::from_str(text).unwrap();
        let text = |name: &str| {
            value_at(&object, name).map(|value| {
                let mut text = String::new();
                add_texts(value, &mut text);
                text
            })
        };
        assert_eq!(text("a").as_deref(), Some("one"));
        assert_eq!(text("b.c").as_deref(), Some("two\nfour"));
        assert_eq!(text("b.c.d").as_deref(), Some("five"), "a field that has just that name");
        assert_eq!(text("b").as_deref(), Some("two\nfour\nfive"));
        assert_eq!(text("x.y").as_deref(), Some("six"));
        assert_eq!(text("n").as_deref(), Some(""));
        assert_eq!([text("b.e"), text("c"), text("a.b")], [None, None, None]);
    }

    #[test]
    fn a_file_of_bad_records_is_named() {
        let folder = tempfile::tempdir().unwrap();
        let path = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
        std::fs::write(path("good.jsonl"), "{\"text\":\"one two\"}\nnot JSON\n").unwrap();
        std::fs::write(path("empty.jsonl"), "").unwrap();
        // An object over several lines is no line of JSON.
        std::fs::write(path("pretty.jsonl"), "{\n  \"text\": \"three four\"\n}\n").unwrap();
        let reading = Reading::default();
        let count = |names: &[&str]| -> Result<[usize; 2]> {
            let paths: Vec<String> = names.iter().map(|name| path(name)).collect();
            let file = |input| ReferenceFile { input, reading: reading.clone(), of_store: None };
            let files: Vec<ReferenceFile> = readers::list(&paths, &reading)?.into_iter().map(file).collect();
            let mut records = ReferenceRecords::new(&files, vec!["text".to_owned()], None, Share(0.0));
            let mut counts = [0, 0];
            while let Some(found) = records.next()? {
                counts[usize::from(matches!(found, NextRecord::Bad))] += 1;
            }
            Ok(counts)
        };
        assert_eq!(count(&["good.jsonl", "empty.jsonl"]).unwrap(), [1, 1]);
        let error = count(&["good.jsonl", "pretty.jsonl"]).unwrap_err().to_string();
        assert!(error.contains("pretty.jsonl of the reference has 3 records, of which none can be read"), "{error}");
    }
}
