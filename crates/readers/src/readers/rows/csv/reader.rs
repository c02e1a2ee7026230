//! The reader: each record is a page or a reject.

use std::borrow::Cow;
use std::io;
use std::io::Read;

use anyhow::{Context as _, bail};

use super::records::{CsvRecords, RecordStep};
use crate::readers::fields::{self, Date};
use crate::readers::item::{Item, Reader, Reject, Unread};
use crate::readers::rows::page_row::{PageRow, RowId, check_once};
use crate::readers::rows::value;
use crate::reading::{Columns, Reading, TextColumns};

/// Bytes that a record may have besides the page.
const SLACK: usize = 1 << 20;

/// Reads the pages of one CSV or TSV file, plain or compressed.
pub struct CsvReader {
    pub(super) records: CsvRecords,
    columns: CsvColumns,
    /// Why there are no names of columns, until it is reported.
    no_names: Option<RecordStep>,
    reading: Reading,
    format: &'static str,
    name: String,
}

impl CsvReader {
    /// Makes the reader of `source`, named `name` in errors; `delimiter` is a comma or a tab.
    ///
    /// # Errors
    /// If the first record cannot be read, is not UTF-8, or lacks a column of the job; the message
    /// names those that it has. If it has such a column twice.
    pub fn new(source: Box<dyn Read + Send>, delimiter: u8, name: &str, reading: &Reading) -> anyhow::Result<Self> {
        let failed = || format!("cannot read {name}");
        let longest = reading.page_limit().saturating_add(SLACK);
        let mut records = CsvRecords::new(source, delimiter, longest).with_context(failed)?;
        let (columns, no_names) = match records.advance().with_context(failed)? {
            Some(RecordStep::Record(_)) => {
                let names = records.texts().with_context(|| {
                    format!(
                        "the names of the columns of {name} are not UTF-8: `iconv -f CHARSET -t UTF-8` writes the file again; \
                         CHARSET is that of the file, such as WINDOWS-1252"
                    )
                })?;
                (CsvColumns::find(&names, name, &reading.columns)?, None)
            }
            // Nothing can be told of the others.
            other => (CsvColumns::default(), other),
        };
        let format = if delimiter == b'\t' { "tsv" } else { "csv" };
        Ok(CsvReader { records, columns, no_names, reading: reading.clone(), format, name: name.to_owned() })
    }

    /// Whether the file has the column of the URLs; `None` if it has no record besides the names,
    /// or these are damaged.
    ///
    /// # Errors
    /// If the file cannot be read.
    pub fn has_url(mut self) -> anyhow::Result<Option<bool>> {
        if self.no_names.is_some() {
            return Ok(None);
        }
        let first = self.records.advance().with_context(|| format!("cannot read {}", self.name))?;
        Ok(first.map(|_| self.columns.url.is_some()))
    }

    /// The names of its columns, before its first record is read; and which of those whose values
    /// are kept it has. `None` if they are damaged.
    pub fn columns(&self) -> Option<(Vec<String>, Vec<bool>)> {
        let names = self.records.texts().filter(|_| self.no_names.is_none())?;
        let values = self.columns.values.iter().map(Option::is_some);
        Some((names.into_iter().map(str::to_owned).collect(), values.collect()))
    }

    fn item(&mut self) -> io::Result<Option<Item>> {
        let reject = |offset, reason: String| Some(Item::Reject(Reject { offset, url: None, reason }));
        let step = match self.no_names.take() {
            Some(step) => Some(step),
            None => self.records.advance()?,
        };
        Ok(match step {
            None => None,
            Some(RecordStep::Record(offset)) if self.records.fields() != self.columns.count => {
                reject(offset, format!("{}: another number of fields than names", self.format))
            }
            Some(RecordStep::Record(offset)) => Some(self.page(offset)),
            Some(RecordStep::OpenQuote(offset)) => {
                reject(offset, format!("{}: a quote that is not closed", self.format))
            }
            Some(RecordStep::TooLong(offset)) => {
                reject(offset, format!("{}: record too long for max-page-bytes, or too many fields", self.format))
            }
            Some(RecordStep::Damage(offset, reason)) => reject(offset, reason.to_owned()),
        })
    }

    /// Makes the page of the record that was read last, or a reject.
    fn page(&self, offset: u64) -> Item {
        let CsvColumns { id, url, html, ip, date, .. } = self.columns;
        let Some(texts) = self.records.texts() else {
            let url = url.and_then(|url| std::str::from_utf8(self.records.field(url)).ok());
            let url = url.filter(|url| !url.is_empty()).map(str::to_owned);
            return Item::Reject(Reject { offset, url, reason: format!("{}: not UTF-8", self.format) });
        };
        let field = |column: Option<usize>| column.map(|column| texts[column]);
        let text_of = |column: Option<usize>| field(column).map(Cow::Borrowed);
        let html = field(html).filter(|html| !html.is_empty());
        let row = PageRow {
            id: text_of(id).map_or(RowId::None, RowId::Text),
            url: text_of(url),
            html: html.map(|html| Cow::Borrowed(html.as_bytes())),
            html_is_text: true,
            text: if html.is_some() {
                None
            } else {
                TextColumns::joined(self.columns.text.iter().copied().map(text_of))
            },
            ip: text_of(ip),
            fetched: field(date).map_or(Date::None, fields::date),
            values: self.columns.values.iter().map(|column| text_of(*column).and_then(value::of_text)).collect(),
        };
        row.item(offset, self.reading.page_limit(), self.format)
    }
}

impl Reader for CsvReader {
    fn next(&mut self) -> anyhow::Result<Option<Item>> {
        self.item().with_context(|| format!("cannot read {}", self.name))
    }

    fn position(&self) -> u64 {
        self.records.members.position()
    }

    fn unread(&self) -> Unread {
        let unread = self.records.members.unread();
        // Lost bytes are counted as decoded: of a compressed file they are more than are stored.
        Unread { bytes: unread.bytes + self.records.lost.min(self.position()), ..unread }
    }
}

/// The numbers of the columns that the job names, from 0.
#[derive(Clone, Debug, Default)]
struct CsvColumns {
    /// All columns of the file.
    count: usize,
    id: Option<usize>,
    url: Option<usize>,
    text: Vec<Option<usize>>,
    html: Option<usize>,
    ip: Option<usize>,
    date: Option<usize>,
    values: Vec<Option<usize>>,
}

impl CsvColumns {
    /// Finds the columns by their names, which are these.
    fn find(all: &[&str], file: &str, columns: &Columns) -> anyhow::Result<CsvColumns> {
        let position = |name: &str| all.iter().position(|other| *other == name);
        let wanted = |name: &Option<String>| -> anyhow::Result<Option<usize>> {
            let Some(name) = name else { return Ok(None) };
            match position(name) {
                Some(number) => Ok(Some(number)),
                None => bail!(
                    "{file} has no column `{name}` (its columns: {}); set the names in [cluster.read.columns], or by --id, --url and --text",
                    all.join(", ")
                ),
            }
        };
        if columns.text.is_empty() && columns.html.is_none() {
            bail!("cannot read pages from {file}: set `text` or `html` in [cluster.read.columns]");
        }
        for name in all.iter().filter(|name| columns.reads(name)) {
            check_once(file, name, all.iter().filter(|other| *other == name).count())?;
        }
        Ok(CsvColumns {
            count: all.len(),
            id: wanted(&columns.id)?,
            url: if columns.url.is_some() { wanted(&columns.url)? } else { position(columns.url()) },
            text: columns
                .texts_of_file(|name| position(name).is_some())
                .iter()
                .map(wanted)
                .collect::<Result<_, _>>()?,
            html: wanted(&columns.html)?,
            ip: wanted(&columns.ip)?,
            date: wanted(&columns.date)?,
            values: columns.values.iter().map(|name| position(name)).collect(),
        })
    }
}
