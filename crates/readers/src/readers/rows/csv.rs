//! Reads CSV and TSV files: each record is a page, in the columns that the job names.
//!
//! The first record has the names of the columns. Fields are quoted by `"`, which is doubled inside
//! them, so a field can have line breaks (RFC 4180; a TSV file is the same with tabs). The crate
//! `csv-core` finds the fields; it is the parser of `csv` without the buffers, of which this reader
//! bounds its own: one quote that is not closed must not take a whole file into memory.
//!
//! Damage loses the record that it is in, with those of its member that are not returned yet
//! ([`Members`]), and the line in which the file goes on behind it: nothing says whether a record
//! begins there. Known limitation: a quoted field that holds that line break is read as records.

use std::borrow::Cow;
use std::io;
use std::io::Read;

use anyhow::{Context as _, bail};
use csv_core::{ReadRecordResult, ReaderBuilder};

use super::page_row::{PageRow, RowId, check_once};
use super::value;
use crate::readers::fields::{self, Date};
use crate::readers::item::{Item, Reader, Reject, Unread};
use crate::readers::streams::{MemberStep, Members, Stored};
use crate::reading::{Columns, Reading, TextColumns};

/// Bytes that a record may have besides the page.
const SLACK: usize = 1 << 20;
/// The most fields of a record.
const MOST_FIELDS: usize = 1 << 16;

/// The quotes that are not closed of a file, at most: for each one the file is read to its end.
const MOST_OPEN_QUOTES: u32 = 64;

/// Reads the pages of one CSV or TSV file, plain or compressed.
pub struct CsvReader {
    records: CsvRecords,
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
    /// If the first record cannot be read, or lacks a column of the job; the message names those
    /// that it has. If it has such a column twice.
    pub fn new(source: Box<dyn Read + Send>, delimiter: u8, name: &str, reading: &Reading) -> anyhow::Result<Self> {
        let failed = || format!("cannot read {name}");
        let longest = reading.page_limit().saturating_add(SLACK);
        let mut records = CsvRecords::new(source, delimiter, longest).with_context(failed)?;
        let (columns, no_names) = match records.advance().with_context(failed)? {
            Some(RecordStep::Record(_)) => (CsvColumns::find(&records, name, &reading.columns)?, None),
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
        let names = (0..self.records.fields()).map(|number| fields::utf8(self.records.field(number)).into_owned());
        let values = self.columns.values.iter().map(Option::is_some);
        self.no_names.is_none().then(|| (names.collect(), values.collect()))
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

    /// Makes the page of the record that was read last.
    fn page(&self, offset: u64) -> Item {
        let CsvColumns { id, url, html, ip, date, .. } = self.columns;
        let values = self.columns.values.iter();
        let field = |column: Option<usize>| column.map(|column| self.records.field(column));
        let text_of = |column| field(column).map(fields::utf8);
        let html = field(html).filter(|html| !html.is_empty());
        let row = PageRow {
            id: field(id).map_or(RowId::None, RowId::of_bytes),
            url: field(url).map(fields::url),
            html: html.map(Cow::Borrowed),
            html_is_text: true,
            // Read only if needed: it would be searched for invalid UTF-8.
            text: if html.is_some() {
                None
            } else {
                TextColumns::joined(self.columns.text.iter().copied().map(text_of))
            },
            ip: text_of(ip),
            fetched: text_of(date).map_or(Date::None, |date| fields::date(&date)),
            values: values.map(|column| field(*column).and_then(value::of_bytes)).collect(),
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
    /// Finds the columns by their names, which are the record that was read last.
    fn find(names: &CsvRecords, file: &str, columns: &Columns) -> anyhow::Result<CsvColumns> {
        let all: Vec<Cow<'_, str>> = (0..names.fields()).map(|number| fields::utf8(names.field(number))).collect();
        let position = |name: &str| all.iter().position(|other| other == name);
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

/// The records of one file.
struct CsvRecords {
    members: Members,
    parser: csv_core::Reader,
    /// The longest record that is returned, in bytes.
    longest: usize,
    /// Decoded bytes; those before `next` are parsed.
    buffer: Vec<u8>,
    next: usize,
    /// Offset in the uncompressed stream of `buffer[0]`.
    base: u64,
    /// Where in the buffer the record begins that is being read, while all of it is there.
    start: Option<usize>,
    /// How often the file was read to its end for a quote that is not closed, and the bytes that
    /// were lost so.
    open_quotes: u32,
    lost: u64,
    /// The fields of the record, one after the other, and the end of each.
    text: Vec<u8>,
    ends: Vec<usize>,
    /// The fields of the record that was read last.
    fields: usize,
    /// The reason of damage at the end of `buffer`, until it is reported.
    damage: Option<&'static str>,
    /// Whether the next bytes are the rest of a line that damage has lost.
    in_lost_line: bool,
    ended: bool,
}

/// The next record of a file, or why it is missing, with its offset.
#[derive(Debug, PartialEq)]
enum RecordStep {
    /// A record.
    Record(u64),
    /// A record that is too long, or has too many fields.
    TooLong(u64),
    /// A record with a quote that the rest of the file does not close: the next one is that of the
    /// next line.
    OpenQuote(u64),
    /// A damaged record, with the reason of its reject.
    Damage(u64, &'static str),
}

impl CsvRecords {
    fn new(source: Box<dyn Read + Send>, delimiter: u8, longest: usize) -> io::Result<CsvRecords> {
        let mut records = CsvRecords {
            members: Members::new(Stored::new(source), |bytes| !bytes.is_empty())?,
            parser: ReaderBuilder::new().delimiter(delimiter).build(),
            longest,
            buffer: Vec::new(),
            next: 0,
            base: 0,
            start: None,
            open_quotes: 0,
            lost: 0,
            text: vec![0; 1 << 12],
            ends: vec![0; 1 << 6],
            fields: 0,
            damage: None,
            in_lost_line: false,
            ended: false,
        };
        // A byte order mark is no part of the first name.
        while records.buffer.len() < 3 && records.damage.is_none() && !records.ended {
            records.fill()?;
        }
        if records.buffer.starts_with(b"\xef\xbb\xbf") {
            records.next = 3;
        }
        Ok(records)
    }

    /// Lets the parser begin at a record. A byte order mark there is text: the parser takes one
    /// away that it begins with, so it begins with a line break.
    fn reset(&mut self) {
        self.parser.reset();
        self.parser.read_record(b"\n", &mut self.text, &mut self.ends);
    }

    /// Reads more bytes.
    fn fill(&mut self) -> io::Result<()> {
        // What was read of a record is kept as long as it may be one.
        self.start = self.start.filter(|start| self.next - start <= self.longest);
        let done = self.start.unwrap_or(self.next);
        self.base += done as u64;
        self.buffer.drain(..done);
        self.next -= done;
        self.start = self.start.map(|_| 0);
        match self.members.step(&mut self.buffer)? {
            MemberStep::Bytes | MemberStep::Start(_) => {}
            // Whole records before the damage are returned first.
            MemberStep::Damage { reason, .. } => self.damage = Some(reason),
            MemberStep::End => self.ended = true,
        }
        Ok(())
    }

    /// Takes the damage, if there is some at the end of the buffer, which is parsed.
    fn take_damage(&mut self) -> Option<&'static str> {
        let reason = self.damage.take()?;
        self.reset();
        (self.start, self.in_lost_line) = (None, true);
        Some(reason)
    }

    /// Advances to the next record; returns `None` at the end.
    fn advance(&mut self) -> io::Result<Option<RecordStep>> {
        let (mut length, mut fields, mut too_long) = (0, 0, false);
        // Line breaks before a record are no part of it.
        loop {
            if self.in_lost_line {
                let rest = &self.buffer[self.next..];
                let end = rest.iter().position(|byte| matches!(byte, b'\r' | b'\n'));
                self.in_lost_line = end.is_none();
                self.next += end.unwrap_or(rest.len());
            }
            let blank = self.buffer[self.next..].iter().take_while(|byte| matches!(byte, b'\r' | b'\n')).count();
            self.next += blank;
            if self.next < self.buffer.len() || self.ended {
                break;
            }
            if let Some(reason) = self.take_damage() {
                return Ok(Some(RecordStep::Damage(self.base + self.next as u64, reason)));
            }
            self.fill()?;
        }
        let offset = self.base + self.next as u64;
        self.start = Some(self.next);
        loop {
            let input = &self.buffer[self.next..];
            if input.is_empty() && !self.ended {
                if let Some(reason) = self.take_damage() {
                    return Ok(Some(RecordStep::Damage(offset, reason)));
                }
                self.fill()?;
                continue;
            }
            // A last line break ends the last record, if it is not within a quote.
            let is_end = input.is_empty();
            let input = if is_end { b"\n" } else { input };
            let (step, read, written, ended) =
                self.parser.read_record(input, &mut self.text[length..], &mut self.ends[fields..]);
            self.next += if is_end { 0 } else { read };
            length += written;
            fields += ended;
            match step {
                ReadRecordResult::InputEmpty if is_end => {
                    self.reset();
                    if self.base + self.next as u64 == offset {
                        return Ok(None);
                    }
                    self.open_quotes += 1;
                    match self.start.take().filter(|_| self.open_quotes <= MOST_OPEN_QUOTES) {
                        Some(start) => {
                            let line = self.buffer[start..].iter().position(|byte| matches!(byte, b'\r' | b'\n'));
                            self.next = line.map_or(self.buffer.len(), |end| start + end);
                        }
                        // If the record is too long to be kept, the rest of the file is lost with
                        // it.
                        None => self.lost += self.base + self.next as u64 - offset,
                    }
                    return Ok(Some(RecordStep::OpenQuote(offset)));
                }
                ReadRecordResult::InputEmpty => {}
                ReadRecordResult::OutputFull if self.text.len() <= self.longest => {
                    self.text.resize(2 * self.text.len(), 0);
                }
                ReadRecordResult::OutputFull => (length, too_long) = (0, true),
                ReadRecordResult::OutputEndsFull if self.ends.len() < MOST_FIELDS => {
                    self.ends.resize(2 * self.ends.len(), 0);
                }
                ReadRecordResult::OutputEndsFull => (fields, too_long) = (0, true),
                ReadRecordResult::Record => {
                    (self.fields, self.start) = (fields, None);
                    let step = if too_long { RecordStep::TooLong(offset) } else { RecordStep::Record(offset) };
                    return Ok(Some(step));
                }
                ReadRecordResult::End => return Ok(None),
            }
        }
    }

    /// The number of fields of the record that was read last.
    fn fields(&self) -> usize {
        self.fields
    }

    /// A field of the record that was read last.
    fn field(&self, number: usize) -> &[u8] {
        let start = number.checked_sub(1).map_or(0, |before| self.ends[before]);
        &self.text[start..self.ends[number]]
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;

    use flate2::Compression;
    use flate2::write::GzEncoder;

    use super::*;
    use crate::readers::item::{Body, Page};
    use crate::units::Bytes;

    fn reader(bytes: &[u8], delimiter: u8, reading: &Reading) -> anyhow::Result<CsvReader> {
        CsvReader::new(Box::new(io::Cursor::new(bytes.to_vec())), delimiter, "x.csv", reading)
    }

    /// Reads all items, each as one line.
    fn read(bytes: &[u8], delimiter: u8, reading: &Reading) -> Vec<String> {
        let mut reader = reader(bytes, delimiter, reading).unwrap();
        let line = |item: Item| match item {
            Item::Page(Page { id, url, body: Body::Text(text), offset, .. }) => {
                format!("{offset} {id:?} {url:?} {text}")
            }
            Item::Reject(reject) => format!("{} {}", reject.offset, reject.reason),
            other => format!("{other:?}"),
        };
        std::iter::from_fn(|| reader.next().unwrap()).map(line).collect()
    }

    fn by_id() -> Reading {
        Reading { columns: Columns { id: Some("id".into()), ..Columns::default() }, ..Reading::default() }
    }

    #[test]
    fn a_quote_that_is_not_closed_loses_one_record() {
        let csv = "id,text\n1,first row\n2,\"second row\n3,third row\n\n4,\"fourth\nrow\"\n5,\"fifth";
        for lines in [csv.to_owned(), csv.replace('\n', "\r\n")] {
            let last = lines.len() - "5,\"fifth".len();
            // All quotes of the rest are paired but the last one.
            let found = read(lines.as_bytes(), b',', &by_id());
            assert_eq!(found.last().unwrap(), &format!("{last} csv: a quote that is not closed"), "{found:?}");
        }
        let csv = "id,text\n1,first row\n2,\"second row\n3,third row\n4,fourth row\n";
        let found = read(csv.as_bytes(), b',', &by_id());
        let wanted = [
            "8 Some(\"1\") None first row",
            "20 csv: a quote that is not closed",
            "34 Some(\"3\") None third row",
            "46 Some(\"4\") None fourth row",
        ];
        assert_eq!(found, wanted);
    }

    #[test]
    fn a_record_is_a_page_or_a_reject_with_its_place() {
        let records = "\u{feff}id,more,text\r\n1,x,\"one, \"\"two\"\"\nthree\"\r\n\r\n2,x\r\n3,,last \"word";
        let expected = [
            "17 Some(\"1\") None one, \"two\"\nthree",
            "45 csv: another number of fields than names",
            "50 Some(\"3\") None last \"word",
        ];
        assert_eq!(read(records.as_bytes(), b',', &by_id()), expected);
        let mut gzip = GzEncoder::new(Vec::new(), Compression::default());
        gzip.write_all(records.as_bytes()).unwrap();
        assert_eq!(read(&gzip.finish().unwrap(), b',', &by_id()), expected);
        let tabs = read(b"url\ttext\nhttp://a/\tone, two\n\t\n", b'\t', &Reading::default());
        assert_eq!(tabs, ["9 None Some(\"http://a/\") one, two", "28 None None "]);
    }

    #[test]
    fn a_slow_twin_finds_the_same_records_wherever_the_bytes_are_cut() {
        // A source that gives a few bytes at a time.
        struct Few(Vec<u8>, usize);
        impl Read for Few {
            fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
                let count = out.len().min(self.1).min(self.0.len());
                out[..count].copy_from_slice(&self.0[..count]);
                self.0.drain(..count);
                Ok(count)
            }
        }
        let rows: Vec<[String; 2]> = (0..200)
            .map(|n| [format!("{n}"), ["a", "\"", "\n", ",", "\r\n", "\u{e4}"].map(|part| part.repeat(n % 4)).concat()])
            .collect();
        let quoted = |field: &String| format!("\"{}\"", field.replace('"', "\"\""));
        let mut file = "id,text\n".to_owned();
        let mut offsets = Vec::new();
        for row in &rows {
            offsets.push(file.len() as u64);
            file.push_str(&row.iter().map(quoted).collect::<Vec<_>>().join(","));
            file.push('\n');
        }
        for few in [1, 2, 3, 7, 1000] {
            let source = Box::new(Few(file.clone().into_bytes(), few));
            let mut reader = CsvReader::new(source, b',', "x.csv", &by_id()).unwrap();
            for (row, offset) in rows.iter().zip(&offsets) {
                let Some(Item::Page(page)) = reader.next().unwrap() else { panic!("no page") };
                assert_eq!((page.id.as_ref(), &page.body), (Some(&row[0]), &Body::Text(row[1].clone())));
                assert_eq!(page.offset, *offset);
            }
            assert_eq!(reader.next().unwrap(), None);
        }
    }

    #[test]
    fn a_byte_order_mark_behind_a_quote_that_is_not_closed_is_text() {
        let csv = "text,id\n\"open,1\n\u{feff}\n\u{feff}text,2\n";
        let wanted = [
            "8 csv: a quote that is not closed",
            "16 csv: another number of fields than names",
            "20 Some(\"2\") None \u{feff}text",
        ];
        assert_eq!(read(csv.as_bytes(), b',', &by_id()), wanted);
    }

    #[test]
    fn a_quote_that_is_not_closed_takes_bounded_memory() {
        let reading = Reading { max_page_bytes: Bytes(16), ..by_id() };
        let mut file = b"id,text\n1,\"".to_vec();
        file.resize(8 << 20, b'x');
        file.extend_from_slice(b"\"\n2,short\n");
        let mut reader = reader(&file, b',', &reading).unwrap();
        let Some(Item::Reject(reject)) = reader.next().unwrap() else { panic!("no reject") };
        let reason = "csv: record too long for max-page-bytes, or too many fields";
        assert_eq!((reject.offset, reject.reason.as_str()), (8, reason));
        assert!(reader.records.text.len() <= 4 << 20, "{}", reader.records.text.len());
        let Some(Item::Page(page)) = reader.next().unwrap() else { panic!("no page") };
        assert_eq!((page.id.as_deref(), page.body), (Some("2"), Body::Text("short".into())));
    }

    /// A member of gzip for each of some pieces, the `damaged`th without what `damage` takes.
    fn members(text: &[u8], piece: usize, damaged: usize, damage: fn(&mut Vec<u8>)) -> Vec<u8> {
        let member = |(number, piece): (usize, &[u8])| {
            let mut gzip = GzEncoder::new(Vec::new(), Compression::default());
            gzip.write_all(piece).unwrap();
            let mut member = gzip.finish().unwrap();
            if number == damaged {
                damage(&mut member);
            }
            member
        };
        text.chunks(piece).enumerate().flat_map(member).collect()
    }

    /// Another checksum, and a beginning that is none.
    const DAMAGES: [fn(&mut Vec<u8>); 2] = [
        |member| {
            let checksum = member.len() - 8;
            member[checksum] ^= 1;
        },
        |member| member[0] = 1,
    ];

    #[test]
    fn damage_loses_the_records_that_it_is_in_and_makes_no_others() {
        let text = |n: usize| format!("row {n} has, \"it\" and {} of its own", n * 7919);
        let row = |n: usize| format!("\"{}\",{n}\r\n", text(n).replace('"', "\"\""));
        let file = "text,id\r\n".to_owned() + &(0..2000).map(row).collect::<String>();
        for damaged in [5, 9] {
            for damage in DAMAGES {
                let found = read(&members(file.as_bytes(), 4096, damaged, damage), b',', &by_id());
                let rejects: Vec<&String> = found.iter().filter(|line| line.contains("gzip: ")).collect();
                assert_eq!(rejects.len(), 1, "{rejects:?}");
                let pages = found.iter().filter(|line| !line.contains("gzip: "));
                let known: std::collections::BTreeSet<String> =
                    (0..2000).map(|n| format!("Some(\"{n}\") None {}", text(n))).collect();
                for page in pages.clone() {
                    assert!(known.contains(page.split_once(' ').unwrap().1), "{page}");
                }
                // The others are in the member, or in the line in which the file goes on.
                assert_eq!(pages.count(), 1917);
            }
        }
    }

    #[test]
    fn a_file_that_is_damaged_from_its_beginning_is_one_reject() {
        let file = b"id,text\n1,one\n2,two\n3,thr";
        let found = |damage| read(&members(file, 1000, 0, damage), b',', &by_id());
        assert_eq!(found(DAMAGES[0]), ["0 gzip: damaged member"]);
        let cut: fn(&mut Vec<u8>) = |member| member.truncate(member.len() - 8);
        let pages = ["8 Some(\"1\") None one", "14 Some(\"2\") None two", "20 gzip: the file ends inside a member"];
        assert_eq!(found(cut), pages);
        // Its magic bytes stay, and what follows is no block.
        let no_block: fn(&mut Vec<u8>) = |member| member[10..].fill(0xff);
        assert_eq!(found(no_block), ["0 gzip: damaged member"]);
        let reader = || reader(&members(file, 1000, 0, no_block), b',', &by_id()).unwrap();
        assert_eq!((reader().columns(), reader().has_url().unwrap()), (None, None));
        let more = [&members(file, 1000, 0, no_block)[..], &members(b"x\n1,one\n", 1000, 9, no_block)].concat();
        let more = read(&more, b',', &by_id());
        assert_eq!(more, ["0 gzip: damaged member", "2 csv: another number of fields than names"]);
    }

    #[test]
    fn a_missing_column_is_an_error_that_names_the_columns_of_the_file() {
        let error = reader(b"id,content\n1,x\n", b',', &Reading::default()).err().unwrap().to_string();
        let named = "x.csv has no column `text` (its columns: id, content); set the names in [cluster.read.columns], or by --id, --url and --text";
        assert_eq!(error, named);
        let has_url = |bytes: &[u8]| reader(bytes, b',', &Reading::default()).unwrap().has_url().unwrap();
        assert_eq!(has_url(b"url,text\nhttp://a/,x\n"), Some(true));
        assert_eq!(has_url(b"id,text\n1,x\n"), Some(false));
        assert_eq!((has_url(b""), has_url(b"id,text\n")), (None, None));
    }
}
