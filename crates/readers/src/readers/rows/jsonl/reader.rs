//! The reader: each line is a page or a reject.

use std::borrow::Cow;
use std::io;
use std::io::Read;

use anyhow::Context as _;

use super::line::{JsonFields, JsonScalar};
use crate::readers::fields::{self, Date};
use crate::readers::item::{Item, Reader, Reject, Unread};
use crate::readers::rows::page_row::PageRow;
use crate::readers::streams::{LineReader, LineStep};
use crate::reading::{Reading, TextColumns};

/// Bytes that a line may have besides the page.
const SLACK: usize = 1 << 20;

/// The reason of a reject.
const TOO_LONG: &str = "jsonl: line too long for max-page-bytes";

/// Reads the pages of one JSON Lines file, plain or compressed.
pub struct JsonlReader {
    pub(super) lines: LineReader,
    reading: Reading,
    name: String,
}

impl JsonlReader {
    /// Makes the reader of `source`, named `name` in errors.
    ///
    /// # Errors
    /// If the first bytes cannot be read.
    pub fn new(source: Box<dyn Read + Send>, name: &str, reading: &Reading) -> io::Result<Self> {
        let lines = LineReader::new(source, longest(reading))?;
        Ok(JsonlReader { lines, reading: reading.clone(), name: name.to_owned() })
    }

    /// The reader of whole lines of a file that is not compressed.
    pub(in crate::readers) fn of_plain_lines(source: Box<dyn Read + Send>, name: &str, reading: &Reading) -> Self {
        let lines = LineReader::of_plain(source, longest(reading));
        JsonlReader { lines, reading: reading.clone(), name: name.to_owned() }
    }

    fn item(&mut self) -> io::Result<Option<Item>> {
        while let Some(step) = self.lines.advance()? {
            let item = match step {
                LineStep::Line(offset) => page(self.lines.line(), offset, &self.reading),
                LineStep::TooLong(offset) => Some(reject(offset, TOO_LONG)),
                LineStep::Damage(offset, reason) => Some(reject(offset, reason)),
            };
            if item.is_some() {
                return Ok(item);
            }
        }
        Ok(None)
    }
}

/// The bytes of the longest line.
pub(in crate::readers) fn longest(reading: &Reading) -> usize {
    // JSON can write one byte as six: \u0001.
    reading.page_limit().saturating_mul(6).saturating_add(SLACK)
}

impl Reader for JsonlReader {
    fn next(&mut self) -> anyhow::Result<Option<Item>> {
        self.item().with_context(|| format!("cannot read {}", self.name))
    }

    fn position(&self) -> u64 {
        self.lines.position()
    }

    fn unread(&self) -> Unread {
        self.lines.unread()
    }
}

/// Makes the page of a line, or a reject; `None` if the line is blank.
fn page(line: &[u8], offset: u64, reading: &Reading) -> Option<Item> {
    let line = line.trim_ascii();
    let line = line.strip_prefix(b"\xef\xbb\xbf").unwrap_or(line);
    if line.is_empty() {
        return None;
    }
    let mut fields = JsonFields::of(&reading.columns);
    if fields.read(line, &reading.columns).is_err() {
        let url = fields.url.text().map(Cow::into_owned);
        return Some(Item::Reject(Reject { offset, url, reason: "jsonl: no JSON object".to_owned() }));
    }
    let row = PageRow {
        id: fields.id,
        url: fields.url.text(),
        html: fields.html.text().map(|html| match html {
            Cow::Borrowed(html) => Cow::Borrowed(html.as_bytes()),
            Cow::Owned(html) => Cow::Owned(html.into_bytes()),
        }),
        html_is_text: true,
        text: TextColumns::joined(fields.text.into_iter().map(JsonScalar::text)),
        ip: fields.ip.text(),
        fetched: match fields.date {
            JsonScalar::Null => Date::None,
            JsonScalar::Text(date) => fields::date(&date),
            JsonScalar::Integer(number) => fields::epoch(number as f64),
            JsonScalar::Float(number) => fields::epoch(number),
            JsonScalar::Other => Date::Unreadable,
        },
        values: fields.values,
    };
    Some(row.item(offset, reading.page_limit(), "jsonl"))
}

fn reject(offset: u64, reason: &str) -> Item {
    Item::Reject(Reject { offset, url: None, reason: reason.to_owned() })
}
