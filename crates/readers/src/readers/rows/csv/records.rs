//! The records of a CSV or TSV file.
//!
//! Fields are quoted by `"`, which is doubled inside them, so a field can have line breaks (RFC
//! 4180; a TSV file is the same with tabs). The crate `csv-core` finds the fields; it is the parser
//! of `csv` without the buffers, of which this reader bounds its own: one quote that is not closed
//! must not take a whole file into memory.
//!
//! Damage loses the record that it is in, with those of its member that are not returned yet
//! ([`Members`]), and the line in which the file goes on behind it: nothing says whether a record
//! begins there. Known limitation: a quoted field that holds that line break is read as records.

use std::io;
use std::io::Read;

use csv_core::{ReadRecordResult, ReaderBuilder};

use crate::readers::streams::{MemberStep, Members, Stored};

/// The most fields of a record.
const MOST_FIELDS: usize = 1 << 16;

/// The quotes that are not closed of a file, at most: for each one the file is read to its end.
const MOST_OPEN_QUOTES: u32 = 64;

/// The records of one file.
pub(super) struct CsvRecords {
    pub(super) members: Members,
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
    pub(super) lost: u64,
    /// The fields of the record, one after the other, and the end of each.
    pub(super) text: Vec<u8>,
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
pub(super) enum RecordStep {
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
    pub(super) fn new(source: Box<dyn Read + Send>, delimiter: u8, longest: usize) -> io::Result<CsvRecords> {
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
    pub(super) fn advance(&mut self) -> io::Result<Option<RecordStep>> {
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
    pub(super) fn fields(&self) -> usize {
        self.fields
    }

    /// The fields of the record that was read last; `None` if one is not UTF-8.
    pub(super) fn texts(&self) -> Option<Vec<&str>> {
        (0..self.fields).map(|number| simdutf8::basic::from_utf8(self.field(number)).ok()).collect()
    }

    /// A field of the record that was read last.
    pub(super) fn field(&self, number: usize) -> &[u8] {
        let start = number.checked_sub(1).map_or(0, |before| self.ends[before]);
        &self.text[start..self.ends[number]]
    }
}
