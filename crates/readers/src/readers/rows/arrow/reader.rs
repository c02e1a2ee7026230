//! Reads the pages of one file of record batches, or of a pipe.

use std::borrow::Cow;
use std::fs::File;
use std::io;
use std::io::Read;

use anyhow::{Context as _, bail};
use arrow_schema::{DataType, Fields};
use nigh_text::contained::contained;

use super::column::ArrowColumn;
use super::contents::OrderedFile;
use super::messages::{IpcMessage, MessageBytes, MessageStep, NO_MEMORY};
use super::stream::{ArrowStream, dictionary_of, rows_of};
use crate::readers::fields::{self, Date};
use crate::readers::find::STANDARD_INPUT;
use crate::readers::item::{Item, Reader, Reject, Unread};
use crate::readers::rows::page_row::{PageFields, PageRow};
use crate::reading::{Reading, TextColumns};

/// Reads the pages of one file of record batches, plain or compressed as a whole.
pub struct ArrowReader {
    bytes: MessageBytes,
    /// The stream that is being read; `None` if its columns are not those of the job.
    stream: Option<ArrowStream>,
    /// Whether the first stream has the column of the URLs.
    has_url: bool,
    /// Which fields the first stream has.
    has: Vec<bool>,
    /// The batch that is being read, its next row, and its rows.
    batch: Option<(PageFields<ArrowColumn>, usize, usize)>,
    /// The number, in the file, of the next row.
    row: u64,
    /// The batches so far.
    batches: u64,
    ended: bool,
    reading: Reading,
    name: String,
}

impl ArrowReader {
    /// Makes the reader of `source`, named `name` in errors; `None` if it is damaged before its
    /// schema ends.
    ///
    /// # Errors
    /// If it cannot be read, or lacks a column of the job; the message names those that it has. If
    /// it is standard input, and ends before its schema does.
    pub fn new(source: Box<dyn Read + Send>, name: &str, reading: &Reading) -> anyhow::Result<Option<ArrowReader>> {
        let failed = || format!("cannot read {name}");
        let mut bytes = MessageBytes::new(source, reading).with_context(failed)?;
        let head = match bytes.step().with_context(failed)? {
            MessageStep::Message(message) => message.head,
            MessageStep::Cut(_) | MessageStep::End(_) if name == STANDARD_INPUT => bail!(ended_early(0, 0)),
            _ => return Ok(None),
        };
        let Some(stream) = ArrowStream::new(&head, name, &reading.columns)? else { return Ok(None) };
        Ok(Some(ArrowReader {
            bytes,
            has_url: stream.columns.url.is_some(),
            has: stream.columns.has(),
            stream: Some(stream),
            batch: None,
            row: 0,
            batches: 0,
            ended: false,
            reading: reading.clone(),
            name: name.to_owned(),
        }))
    }

    /// The reader of a file whose schema stands in its table of contents only, as
    /// [`new`](ArrowReader::new).
    ///
    /// # Errors
    /// As `new`.
    pub fn ordered(file: OrderedFile, name: &str, reading: &Reading) -> anyhow::Result<Option<ArrowReader>> {
        let OrderedFile { bytes, starts } = file;
        let reader = ArrowReader::new(bytes, name, reading)?;
        Ok(reader.map(|reader| ArrowReader { bytes: reader.bytes.with_starts(starts), ..reader }))
    }

    /// The same as `new`, for the bytes of this local file, whose table of contents says where
    /// messages begin.
    #[must_use]
    pub fn with_contents(self, file: File) -> ArrowReader {
        ArrowReader { bytes: self.bytes.with_contents(file), ..self }
    }

    /// The names of its columns, also of those within structures; and which of those whose values
    /// are kept it has.
    pub fn columns(&self) -> (Vec<String>, Vec<bool>) {
        fn add(prefix: &str, fields: &Fields, names: &mut Vec<String>) {
            for field in fields {
                let name = format!("{prefix}{}", field.name());
                match field.data_type() {
                    DataType::Struct(inner) => add(&format!("{name}."), inner, names),
                    _ => names.push(name),
                }
            }
        }
        let mut names = Vec::new();
        let Some(stream) = &self.stream else { return (names, Vec::new()) };
        add("", stream.schema.fields(), &mut names);
        (names, stream.columns.values.iter().map(Option::is_some).collect())
    }

    /// Whether the file has the column of the URLs.
    pub fn has_url(&self) -> bool {
        self.has_url
    }

    fn item(&mut self) -> io::Result<Option<Item>> {
        loop {
            let html_is_text = self.stream.as_ref().is_some_and(|stream| stream.html_is_text);
            if let Some((columns, row, rows)) = &mut self.batch
                && row < rows
            {
                let item = contained(|| page(columns, *row, self.row, &self.reading, html_is_text));
                *row += 1;
                self.row += 1;
                return Ok(Some(
                    item.unwrap_or_else(|cause| reject(self.row - 1, format!("arrow: damaged batch: {cause}"))),
                ));
            }
            self.batch = None;
            if self.ended {
                return Ok(None);
            }
            let is_piped = self.name == STANDARD_INPUT;
            let reason = match self.bytes.step()? {
                MessageStep::End(has_marker) => {
                    self.ended = true;
                    if is_piped && !has_marker {
                        return Err(io::Error::other(ended_early(self.batches, self.row)));
                    }
                    return Ok(None);
                }
                MessageStep::Cut(_) if is_piped => {
                    return Err(io::Error::other(ended_early(self.batches, self.row)));
                }
                MessageStep::Message(message) if is_piped && message.is_schema && !message.follows_end => {
                    return Err(io::Error::other(ended_early(self.batches, self.row)));
                }
                MessageStep::Cut(reason) | MessageStep::Lost(reason) => {
                    // Maybe it was a dictionary.
                    self.stream.iter_mut().for_each(|stream| stream.dictionaries.clear());
                    Some((self.row, reason.to_owned()))
                }
                MessageStep::Message(message) => self.read(&message)?,
            };
            if let Some((place, reason)) = reason {
                return Ok(Some(reject(place, reason)));
            }
        }
    }

    /// Reads a message. Returns the place and the reason of a reject if it is damaged.
    fn read(&mut self, message: &IpcMessage) -> io::Result<Option<(u64, String)>> {
        let place = self.row;
        if message.is_schema {
            let stream = ArrowStream::new(&message.head, &self.name, &self.reading.columns);
            self.stream = stream.ok().flatten().filter(|stream| stream.columns.has() == self.has);
            if self.stream.is_some() {
                return Ok(None);
            }
            self.bytes.lose(message.length);
            return Ok(Some((place, "arrow: a stream that does not have the columns of the one before it".to_owned())));
        }
        let Some(stream) = &mut self.stream else {
            self.bytes.lose(message.length);
            return Ok(None);
        };
        let reason = match contained(|| stream.decode(message, self.bytes.longest)) {
            Ok(Ok(None)) => return Ok(None),
            Ok(Ok(Some((columns, rows)))) => {
                self.batch = Some((columns, 0, rows));
                self.batches += 1;
                return Ok(None);
            }
            Ok(Err(NO_MEMORY)) => return Err(io::Error::other(NO_MEMORY)),
            Ok(Err(reason)) => reason.to_owned(),
            Err(cause) => format!("arrow: damaged batch: {cause}"),
        };
        self.bytes.lose(message.length);
        // A batch must not be read with a dictionary that is older than its own.
        match contained(|| dictionary_of(&message.head)) {
            Ok(Some(dictionary)) => drop(stream.dictionaries.remove(&dictionary)),
            Ok(None) => {}
            Err(_) => stream.dictionaries.clear(),
        }
        // Later rows have the places that they would have if this batch were good.
        self.row += contained(|| rows_of(&message.head)).ok().flatten().unwrap_or_default();
        Ok(Some((place, reason)))
    }
}

impl Reader for ArrowReader {
    fn next(&mut self) -> anyhow::Result<Option<Item>> {
        self.item().with_context(|| format!("cannot read {}", self.name))
    }

    fn position(&self) -> u64 {
        self.bytes.position()
    }

    fn unread(&self) -> Unread {
        self.bytes.unread()
    }
}

/// Makes the page of a row, or a reject.
fn page(columns: &PageFields<ArrowColumn>, row: usize, offset: u64, reading: &Reading, html_is_text: bool) -> Item {
    let html = columns.html.as_ref().and_then(|column| column.bytes(row)).map(Cow::Borrowed);
    let page = PageRow {
        id: columns.id.as_ref().map(|column| column.id(row)).unwrap_or_default(),
        url: columns.url.as_ref().and_then(|column| column.bytes(row)).map(fields::url),
        // Read only if needed: it would be searched for invalid UTF-8.
        text: match html {
            None => TextColumns::joined(columns.text.iter().map(|column| column.as_ref()?.text(row))),
            Some(_) => None,
        },
        html,
        html_is_text,
        ip: columns.ip.as_ref().and_then(|column| column.text(row)),
        fetched: columns.date.as_ref().map_or(Date::None, |column| column.date(row)),
        values: columns.values.iter().map(|column| column.as_ref()?.value(row)).collect(),
    };
    page.item(offset, reading.page_limit(), "arrow")
}

fn reject(offset: u64, reason: String) -> Item {
    Item::Reject(Reject { offset, url: None, reason })
}

/// The error of standard input that ends before its stream does.
fn ended_early(batches: u64, rows: u64) -> String {
    format!(
        "the Arrow stream on standard input ended early: it has no end marker after {rows} rows ({batches} batches). The program that writes it \
         was ended, or did not close its writer: it must end the stream. Run both again"
    )
}
