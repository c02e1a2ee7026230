//! Frames the records of a WARC file: finds where each begins and ends, also after damage.
//!
//! A record is a head, a block of Content-Length bytes, and two line ends. [`Records`] believes the
//! length only as far as it can be checked:
//!
//! - A record is returned only if the bytes after it are right: a record, the end of the member
//!   with its checksum, or the end of the file.
//! - A block that reaches the end of a member continues in the next member, unless that begins with
//!   `WARC/`: then the length is wrong.
//! - After a bad record the search for the next one starts in the bad record's block, so a wrong
//!   length does not swallow the records behind it. A record can begin with a member that begins
//!   with `WARC/`, or with a line that is a version (`WARC/1.1`).
//!
//! ```text
//! advance:
//!     report a damaged member, skip line ends
//!     head:    from the version line to the empty line; parse it
//!     block:   decode Content-Length bytes; keep at most the cap, skip the rest
//!     trailer: skip line ends; the next record, member or the end of the file must follow
//!     if one of them fails: reject, and search for the next record
//! ```
//!
//! No claimed length allocates memory: bytes are kept as they are decoded, at most the cap for the
//! record's type. Known limitation: a version line inside the block of a *bad* record is taken for
//! a record; one inside a good record is not.

use std::io;
use std::ops::Range;

use memchr::{memchr, memmem};

use super::decoded::{Boundary, BoundaryKind, DecodedStream, Dialect, Reach};
use super::record::{RecordHead, RecordType, VERSION, parse};
use crate::readers::item::{CountedIn, Reject, Unread};
use crate::readers::streams::Members;

/// The longest head of a record, in bytes.
const HEAD: u64 = 1 << 20;
/// The cap for blocks of records that are not pages, in compressed files: there a wrong length
/// swallows one member at most.
const OTHER_CAP: u64 = 1 << 20;

/// The reasons of rejects whose record may be cut by the end of the file.
const CUT: [&str; 3] = [ENDS_IN_HEAD, ENDS_IN_RECORD, LONGER_THAN_FILE];
/// This line begins the next record, which is read. So of a file of such lines without the end of a
/// head, no line is read twice.
const VERSION_IN_HEAD: &str = "warc: a version line inside a head";
const ENDS_IN_HEAD: &str = "warc: the file ends inside a head";
const ENDS_IN_RECORD: &str = "warc: the file ends inside a record";
const LONGER_THAN_FILE: &str = "warc: Content-Length larger than the file";

/// A record or a reject.
#[derive(Debug)]
pub enum FramedRecord {
    /// A whole record. Its block is [`Records::block`].
    Record(RecordHead),
    /// Bytes that are not a good record.
    Reject(Reject),
}

/// A parsed head, with the positions of the block in the decoded stream.
struct HeadAndBlock {
    head: RecordHead,
    block: Range<u64>,
}

/// Why a head does not end.
struct BrokenHead {
    reason: &'static str,
    /// The position at which to continue; `None`: search for the next record.
    resume: Option<u64>,
}

/// The bytes after a block.
enum Trailer {
    /// The line ends are followed by a record, another member or the end of the file, at this
    /// position.
    Good(u64),
    /// The member is damaged.
    Damage(&'static str),
    /// Other bytes follow: the length is wrong.
    OtherBytes,
}

/// The records of a file.
pub struct Records {
    stream: DecodedStream,
    /// Size of the file in bytes, if it is known and the file is not compressed.
    plain_size: Option<u64>,
    /// Block bytes kept of a record that may be a page.
    cap: u64,
    head: RecordBytes,
    block: RecordBytes,
    /// What the place of the last record or reject is counted in.
    counted_in: CountedIn,
    /// Whether the file was entered at a member other than the first.
    is_part: bool,
    /// What is not read although it is decoded: bad records of a plain file, and a record that the
    /// end of the file cuts.
    not_framed: Unread,
}

/// A part of the record returned last.
enum RecordBytes {
    /// At these positions of the decoded stream.
    Buffered(Range<u64>),
    /// Copied, because the block is longer than the cap.
    Copied(Vec<u8>),
}

impl Records {
    /// Makes the records of a file of `size` stored bytes. Of a block at most `cap` bytes are kept.
    /// `is_part` says that the file was entered at a member other than the first, which cannot be
    /// all of it.
    pub fn new(members: Members, dialect: Dialect, size: u64, cap: u64, is_part: bool) -> Self {
        let plain_size = members.plain().then_some(size).filter(|&size| size > 0);
        let stream = DecodedStream::new(members, dialect);
        Records {
            stream,
            plain_size,
            cap,
            head: RecordBytes::Copied(Vec::new()),
            block: RecordBytes::Copied(Vec::new()),
            counted_in: CountedIn::Stored,
            is_part,
            not_framed: Unread::default(),
        }
    }

    /// Returns the number of stored bytes read.
    pub fn position(&self) -> u64 {
        self.stream.stored_position()
    }

    /// Returns the stored bytes that could not be read so far.
    pub fn unread(&self) -> Unread {
        let (decoding, framing) = (self.stream.unread(), self.not_framed);
        let ends_early = decoding.ends_early || framing.ends_early;
        Unread { bytes: decoding.bytes + framing.bytes, ends_early }
    }

    /// Returns what the place of the record or reject that [`Records::advance`] returned last is
    /// counted in.
    pub fn counted_in(&self) -> CountedIn {
        self.counted_in
    }

    /// Returns the head of the record that [`Records::advance`] returned last; empty after a
    /// reject.
    pub fn head_bytes(&self) -> &[u8] {
        self.bytes(&self.head)
    }

    /// Returns the block of the record that [`Records::advance`] returned last.
    pub fn block(&self) -> &[u8] {
        self.bytes(&self.block)
    }

    fn bytes<'a>(&'a self, part: &'a RecordBytes) -> &'a [u8] {
        match part {
            RecordBytes::Buffered(range) => self.stream.bytes(range.clone()),
            RecordBytes::Copied(bytes) => bytes,
        }
    }

    /// Returns the next record or reject, or `None` at the end.
    ///
    /// # Errors
    /// If the file cannot be read.
    pub fn advance(&mut self) -> io::Result<Option<FramedRecord>> {
        self.head = RecordBytes::Copied(Vec::new());
        self.block = RecordBytes::Copied(Vec::new());
        loop {
            match self.stream.boundary_at(self.stream.cursor) {
                Some(BoundaryKind::Damage(offset, reason)) => {
                    self.stream.pass_boundary();
                    self.counted_in = CountedIn::Stored;
                    return Ok(Some(FramedRecord::Reject(Reject { offset, url: None, reason: reason.to_owned() })));
                }
                Some(BoundaryKind::Start(offset)) => {
                    self.stream.enter_member(offset, false);
                    continue;
                }
                None => {}
            }
            match self.stream.byte(self.stream.cursor) {
                // Zeros pad a file, as they do between members.
                Some(b'\r' | b'\n' | 0) => self.stream.cursor += 1,
                Some(_) => {
                    let begin = self.stream.cursor;
                    let frame = self.record()?;
                    if let FramedRecord::Reject(reject) = &frame {
                        self.count_unread(begin, &reject.reason);
                    }
                    return Ok(Some(frame));
                }
                None if !self.stream.pull()? => return Ok(None),
                None => {}
            }
        }
    }

    /// Counts the bad record that began at `begin`: the cursor is where reading continues.
    fn count_unread(&mut self, begin: u64, reason: &str) {
        if self.stream.is_plain() {
            self.not_framed.bytes += self.stream.cursor - begin;
        }
        self.not_framed.ends_early |= CUT.contains(&reason) && self.stream.is_at_end();
    }

    /// Frames the record that begins at the cursor.
    fn record(&mut self) -> io::Result<FramedRecord> {
        let begin = self.stream.cursor;
        // The first member may be the whole file: then only its first record can be found by the
        // offset of the member.
        let (member, is_first) = (self.stream.member, !self.stream.member_has_record);
        self.counted_in = match member {
            _ if self.stream.is_plain() || is_first => CountedIn::Stored,
            0 if !self.is_part => CountedIn::Decoded,
            _ => CountedIn::Shared,
        };
        let by_position = self.stream.is_plain() || self.counted_in == CountedIn::Decoded;
        let offset = if by_position { begin } else { member };
        self.stream.member_has_record = true;

        let HeadAndBlock { mut head, block } = match self.head(begin, offset)? {
            Ok(head_and_block) => head_and_block,
            Err(reject) => return Ok(FramedRecord::Reject(reject)),
        };
        self.head = RecordBytes::Buffered(begin..block.start);
        Ok(match self.take_block(&mut head, block)? {
            Ok(()) => {
                head.entry.length = self.stored_end().and_then(|end| end.checked_sub(offset));
                FramedRecord::Record(head)
            }
            Err(reason) => {
                // Its bytes may be gone.
                self.head = RecordBytes::Copied(Vec::new());
                FramedRecord::Reject(Reject { offset, url: head.url, reason: reason.to_owned() })
            }
        })
    }

    /// The stored position at which the record before the cursor ends, if it can be read alone.
    fn stored_end(&self) -> Option<u64> {
        if self.stream.is_plain() {
            return Some(self.stream.cursor);
        }
        match self.stream.boundary_at(self.stream.cursor) {
            _ if self.counted_in != CountedIn::Stored => None,
            Some(BoundaryKind::Start(offset) | BoundaryKind::Damage(offset, _)) => Some(offset),
            None => self.stream.is_at_end().then(|| self.stream.stored_position()),
        }
    }

    /// Reads the head that begins at `begin`; if it is bad, searches for the next record.
    fn head(&mut self, begin: u64, offset: u64) -> io::Result<Result<HeadAndBlock, Reject>> {
        let reject = |url: Option<String>, reason: &str| Ok(Err(Reject { offset, url, reason: reason.to_owned() }));

        if !self.stream.begins_record(begin)? {
            self.resume_after(begin)?;
            return reject(None, "warc: no version line where a record should begin");
        }
        let start = match self.head_end(begin)? {
            Ok(start) => start,
            Err(BrokenHead { reason, resume }) => {
                match resume {
                    Some(position) => self.stream.cursor = position,
                    None => self.resume_after(begin)?,
                }
                return reject(None, reason);
            }
        };
        let bytes = self.stream.bytes(begin..start);
        let parsed = match self.stream.dialect {
            Dialect::Warc => parse(bytes, offset),
            Dialect::Arc => super::arc::parse(bytes, offset),
        };
        let head = match parsed {
            Ok(head) => head,
            Err((url, reason)) => {
                self.resume_after(start - 1)?;
                return reject(url, reason);
            }
        };
        let Some(length) = head.length else {
            self.resume_after(start - 1)?;
            return reject(head.url, "warc: no Content-Length");
        };
        if self.plain_size.is_some_and(|size| length > size.saturating_sub(start)) {
            self.resume_after(start - 1)?;
            return reject(head.url, LONGER_THAN_FILE);
        }
        Ok(Ok(HeadAndBlock { head, block: start..start.saturating_add(length) }))
    }

    /// Returns the position after the head that begins at `begin`.
    fn head_end(&mut self, begin: u64) -> io::Result<Result<u64, BrokenHead>> {
        let mut line = begin;
        let mut searched = begin;
        loop {
            if searched - begin > HEAD {
                return Ok(Err(BrokenHead { reason: "warc: head too long", resume: None }));
            }
            let end = self.stream.end();
            let newline = memchr(b'\n', self.stream.bytes(searched..end)).map(|index| searched + index as u64);
            let is_there = match self.reach_in_head(newline.unwrap_or(end) + 1)? {
                Ok(is_there) => is_there,
                Err(broken) => return Ok(Err(broken)),
            };
            match newline {
                Some(newline) => {
                    let is_empty = matches!(self.stream.bytes(line..newline), b"" | b"\r");
                    let is_record = line > begin && self.stream.bytes(line..newline).starts_with(VERSION);
                    if is_record && self.stream.dialect == Dialect::Warc {
                        return Ok(Err(BrokenHead { reason: VERSION_IN_HEAD, resume: Some(line) }));
                    }
                    (line, searched) = (newline + 1, newline + 1);
                    if is_empty || self.stream.dialect == Dialect::Arc {
                        return Ok(Ok(line));
                    }
                }
                None if is_there => searched = end,
                None => return Ok(Err(BrokenHead { reason: ENDS_IN_HEAD, resume: None })),
            }
        }
    }

    /// Decodes the bytes before `target`, which is in a head; returns `false` if the file ends
    /// before.
    fn reach_in_head(&mut self, target: u64) -> io::Result<Result<bool, BrokenHead>> {
        Ok(match self.stream.reach(target)? {
            Reach::There => Ok(true),
            Reach::End => Ok(false),
            Reach::NextRecord(position) => {
                Err(BrokenHead { reason: "warc: the member ends inside a head", resume: Some(position) })
            }
            Reach::Damage(position, reason) => {
                self.stream.pass_boundary();
                Err(BrokenHead { reason, resume: Some(position) })
            }
        })
    }

    /// Keeps the block of a record and moves the cursor after its trailer. If that fails, moves the
    /// cursor to the next record and returns the reason.
    fn take_block(&mut self, head: &mut RecordHead, block: Range<u64>) -> io::Result<Result<(), &'static str>> {
        let is_other = matches!(head.kind, RecordType::Other | RecordType::Request) && !self.stream.is_plain();
        let cap = if is_other { OTHER_CAP } else { self.cap };
        let kept = block.start..block.start + (block.end - block.start).min(cap);
        let mut reach = self.stream.reach(kept.end)?;
        let is_cut = kept.end < block.end && matches!(reach, Reach::There);
        if is_cut {
            head.cut = true;
            self.head = RecordBytes::Copied(self.head_bytes().to_vec());
            self.block = RecordBytes::Copied(self.stream.bytes(kept.clone()).to_vec());
            self.stream.cursor = kept.end;
            reach = self.stream.skip_to(block.end)?;
        } else {
            self.block = RecordBytes::Buffered(kept);
        }
        match reach {
            Reach::There => {}
            Reach::NextRecord(position) => {
                self.stream.cursor = position;
                return Ok(Err("warc: Content-Length larger than the member"));
            }
            Reach::Damage(position, reason) => {
                self.stream.cursor = position;
                self.stream.pass_boundary();
                return Ok(Err(reason));
            }
            Reach::End => {
                self.resume_after(if is_cut { self.stream.end() } else { block.start - 1 })?;
                return Ok(Err(ENDS_IN_RECORD));
            }
        }
        match self.trailer(block.end)? {
            Trailer::Good(position) => {
                self.stream.cursor = position;
                Ok(Ok(()))
            }
            Trailer::Damage(reason) => Ok(Err(reason)),
            Trailer::OtherBytes => {
                self.resume_after(if is_cut { block.end } else { block.start - 1 })?;
                Ok(Err("warc: Content-Length does not end the block"))
            }
        }
    }

    /// Checks the bytes after the block that ends at `end`.
    ///
    /// In a plain file, any bytes after the line ends are accepted: they are not this record's
    /// fault. In a member they may be the result of damage.
    fn trailer(&mut self, end: u64) -> io::Result<Trailer> {
        let line_ends = match self.stream.dialect {
            Dialect::Warc => 2,
            Dialect::Arc => 1,
        };
        let mut position = end;
        let mut lines = 0;
        loop {
            match self.stream.boundary_at(position) {
                // Damage of another member means other bytes after this one, which is good.
                Some(BoundaryKind::Damage(offset, reason)) if offset == self.stream.member => {
                    self.stream.cursor = position;
                    self.stream.pass_boundary();
                    return Ok(Trailer::Damage(reason));
                }
                Some(_) => return Ok(Trailer::Good(position)),
                None => {}
            }
            match self.stream.byte(position) {
                Some(byte @ (b'\r' | b'\n')) => {
                    position += 1;
                    lines += usize::from(byte == b'\n');
                }
                Some(_) if lines >= line_ends && self.stream.is_plain() || self.stream.begins_record(position)? => {
                    return Ok(Trailer::Good(position));
                }
                // Padding.
                Some(0) if lines >= line_ends => position += 1,
                Some(_) => return Ok(Trailer::OtherBytes),
                None if !self.stream.pull()? => return Ok(Trailer::Good(position)),
                None => {}
            }
        }
    }

    /// Moves the cursor to the next position after `from` at which a record seems to begin, or
    /// another member is damaged. Damage of the member in which the rejected record began is not
    /// reported a second time.
    fn resume_after(&mut self, from: u64) -> io::Result<()> {
        let stream = &mut self.stream;
        stream.cursor = from;
        let mut searched = from + 1;
        loop {
            let edge = stream.boundary().map_or(stream.end(), |boundary| boundary.at);
            while searched < edge {
                // Every line may be that of an ARC record.
                let (sign, after) = match stream.dialect {
                    Dialect::Warc => (VERSION, 0),
                    Dialect::Arc => (&b"\n"[..], 1),
                };
                let Some(index) = memmem::find(stream.bytes(searched..edge), sign) else {
                    break;
                };
                let line = searched + index as u64 + after;
                searched += index as u64 + 1;
                if stream.begins_version_line(line)? {
                    stream.cursor = line;
                    return Ok(());
                }
            }
            let Some(Boundary { at, kind }) = stream.boundary() else {
                // The last bytes in memory may be the beginning of a version line.
                searched = searched.max(stream.end().saturating_sub(VERSION.len() as u64));
                stream.cursor = stream.cursor.max(searched - 1).min(stream.end());
                if !stream.pull()? {
                    stream.cursor = stream.end();
                    return Ok(());
                }
                continue;
            };
            match kind {
                BoundaryKind::Damage(offset, _) if offset != stream.member => {
                    stream.cursor = at;
                    return Ok(());
                }
                BoundaryKind::Start(_) if stream.begins_record(at)? => {
                    stream.cursor = at;
                    return Ok(());
                }
                BoundaryKind::Start(offset) => stream.enter_member(offset, true),
                BoundaryKind::Damage(..) => stream.pass_boundary(),
            }
            searched = searched.max(at);
            stream.cursor = stream.cursor.max(searched.saturating_sub(1)).min(stream.end());
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io::{Cursor, Write};

    use flate2::Compression;
    use flate2::write::GzEncoder;
    use proptest::prelude::{Strategy, any, prop, proptest};

    use super::*;
    use crate::readers::streams::Stored;

    const CAP: u64 = 1000;

    /// A record whose Content-Length is `length`.
    fn record(name: &str, length: usize, block: &str) -> String {
        format!(
            "WARC/1.1\r\nWARC-Type: response\r\nWARC-Target-URI: {name}\r\nContent-Length: {length}\r\n\r\n{block}\r\n\r\n"
        )
    }

    fn good(name: &str) -> String {
        record(name, 7, "a block")
    }

    fn gzip(bytes: &str) -> Vec<u8> {
        let mut gzip = GzEncoder::new(Vec::new(), Compression::default());
        gzip.write_all(bytes.as_bytes()).unwrap();
        gzip.finish().unwrap()
    }

    #[test]
    fn a_file_that_ends_early_is_told_apart_from_a_bad_record() {
        let unread = |file: &[u8]| {
            let stored = Stored::new(Box::new(Cursor::new(file.to_vec())));
            let members = Members::new(stored, Dialect::Warc.acceptable()).unwrap();
            let mut records = Records::new(members, Dialect::Warc, file.len() as u64, CAP, false);
            while records.advance().unwrap().is_some() {}
            (records.unread().bytes, records.unread().ends_early)
        };
        let (a, b) = (good("a"), good("b"));
        let both = a.clone() + &b;
        assert_eq!(unread(both.as_bytes()), (0, false));
        for cut in [6, 20, b.len() - 8] {
            assert_eq!(unread(&both.as_bytes()[..both.len() - cut]), ((b.len() - cut) as u64, true), "{cut}");
        }
        let wrong = record("x", 3, "a block");
        assert_eq!(unread((a.clone() + &wrong + &b).as_bytes()), (wrong.len() as u64, false));
        let (a, b) = (gzip(&a), gzip(&b));
        assert_eq!(unread(&[&a[..], &b].concat()), (0, false));
        assert_eq!(unread(&[&a[..], &b[..b.len() - 9]].concat()), (b.len() as u64 - 9, true));
        assert_eq!(unread(&gzip(&both[..both.len() - 6])), (0, true));
    }

    /// Reads a file to lines of offset, URL, and block length or reason.
    fn records(file: &[u8]) -> Records {
        let members =
            Members::new(Stored::new(Box::new(Cursor::new(file.to_vec()))), Dialect::Warc.acceptable()).unwrap();
        Records::new(members, Dialect::Warc, file.len() as u64, CAP, false)
    }

    fn read(file: &[u8]) -> Vec<String> {
        let mut records = records(file);
        let mut lines = Vec::new();
        while let Some(frame) = records.advance().unwrap() {
            let (offset, url, rest) = match frame {
                FramedRecord::Record(record) => (
                    record.offset,
                    record.url,
                    format!("{}{}", records.block().len(), if record.cut { " cut" } else { "" }),
                ),
                FramedRecord::Reject(reject) => (reject.offset, reject.url, reject.reason),
            };
            lines.push(format!("{offset} {} {rest}", url.unwrap_or_default()));
        }
        lines
    }

    #[test]
    fn a_plain_file_loses_only_its_bad_records() {
        let (a, b) = (good("a"), good("b"));
        let n = a.len();
        let file = |bad: &str| format!("{a}{bad}{b}{}", good("c")).into_bytes();
        let expect = |bad: &str, reason: &str, url: &str| {
            let next = n + bad.len();
            let expected =
                ["0 a 7".to_owned(), format!("{n} {url} {reason}"), format!("{next} b 7"), format!("{} c 7", next + n)];
            assert_eq!(read(&file(bad)), expected, "{bad}");
        };
        expect(&record("x", 3, "a block"), "warc: Content-Length does not end the block", "x");
        expect(&record("x", 60, "a block"), "warc: Content-Length does not end the block", "x");
        expect(&record("x", 5000, "a block"), "warc: Content-Length larger than the file", "x");
        expect("no record\nat all\n", "warc: no version line where a record should begin", "");
        expect("WARC/9.9\r\nWARC-Type: response\r\n\r\n", "warc: unknown version", "");
        expect("WARC/1.1\r\nContent-Length: 1\r\n\r\nx\r\n", "warc: no WARC-Type", "");
        expect("WARC/1.1\r\nWARC-Type: response\r\n", "warc: a version line inside a head", "");
    }

    #[test]
    fn files_of_every_version_lose_only_their_bad_records() {
        for version in ["WARC/0.17", "WARC/0.18", "WARC/1.0", "WARC/1.1 "] {
            let of_version = |record: String| record.replace("WARC/1.1", version);
            let records: Vec<String> = (0..20).map(|number| of_version(good(&format!("http://a/{number}")))).collect();
            let bad = of_version(record("x", 3, "a block"));
            let file = records[..1].concat() + &bad + &records[1..].concat();
            let mut bzip2 = bzip2::write::BzEncoder::new(Vec::new(), bzip2::Compression::default());
            bzip2.write_all(file.as_bytes()).unwrap();
            let mut xz = liblzma::write::XzEncoder::new(Vec::new(), 1);
            xz.write_all(file.as_bytes()).unwrap();
            let zstd = zstd::bulk::compress(file.as_bytes(), 1).unwrap();
            let files = [file.clone().into_bytes(), gzip(&file), bzip2.finish().unwrap(), xz.finish().unwrap(), zstd];
            for (packing, file) in files.iter().enumerate() {
                let lines = read(file);
                let found = lines.iter().filter(|line| line.ends_with(" 7")).count();
                assert_eq!((found, lines.len()), (20, 21), "{version} {packing}: {lines:?}");
            }
        }
    }

    #[test]
    fn zeros_between_records_and_after_the_last_one_are_padding() {
        let (a, b) = (good("a").into_bytes(), good("b").into_bytes());
        for padding in [1, 512, 3 << 20] {
            let file = [&a[..], &vec![0; padding], &b, &vec![0; padding]].concat();
            let mut records = records(&file);
            let mut count = 0;
            while let Some(frame) = records.advance().unwrap() {
                assert!(matches!(frame, FramedRecord::Record(_)), "{frame:?}");
                count += 1;
            }
            assert_eq!((count, records.unread()), (2, Unread::default()), "{padding}");
        }
        let lines = read(&[&a[..], &[0; 100], b"garbage\n", &b].concat());
        assert!(lines.len() == 3 && lines[1].contains("no version line"), "{lines:?}");
    }

    #[test]
    fn a_length_beyond_the_end_of_a_whole_compressed_file_loses_one_record() {
        let file = good("a") + &record("x", 250, "a block") + &good("b");
        let lines = read(&gzip(&file));
        let reason = "warc: the file ends inside a record";
        let (x, b) = (good("a").len(), file.len() - good("b").len());
        assert_eq!(lines, ["0 a 7".to_owned(), format!("{x} x {reason}"), format!("{b} b 7")]);
    }

    #[test]
    fn version_lines_inside_good_blocks_are_content() {
        let inner = good("inner");
        let outer = record("outer", inner.len(), &inner);
        assert_eq!(read(outer.as_bytes()), [format!("0 outer {}", inner.len())]);
    }

    #[test]
    fn offsets_of_records_are_those_of_a_cdx_index() {
        let (a, b) = (gzip(&good("a")), gzip(&good("b")));
        let file = [&a[..], &b, &gzip(&(good("c") + &good("d"))), &gzip(&good("e"))].concat();
        let offsets = [0, a.len(), a.len() + b.len(), a.len() + b.len()];
        let lines = read(&file);
        for (line, offset) in lines.iter().zip(offsets) {
            assert_eq!(line.split(' ').next(), Some(offset.to_string().as_str()), "{lines:?}");
            assert!(read(&file[offset..])[0].ends_with(" 7"));
        }
        let whole = good("a") + &good("b");
        assert_eq!(read(&gzip(&whole)), ["0 a 7".to_owned(), format!("{} b 7", good("a").len())]);
    }

    #[test]
    fn a_record_is_found_alone_by_its_place_and_length() {
        let names = ["a", "a/longer/name", "c", "d", "e"];
        let all: Vec<String> = names.iter().map(|name| good(name)).collect();
        let two_in_one = [gzip(&all[0]), gzip(&(all[1].clone() + &all[2])), gzip(&all[3]), gzip(&all[4])].concat();
        let (begin, end) = all[3].split_at(40);
        let one_in_two = [gzip(&all[0]), gzip(begin), gzip(end), vec![0; 100], gzip(&all[4])].concat();
        let zstd = all.iter().flat_map(|record| zstd::bulk::compress(record.as_bytes(), 3).unwrap()).collect();
        let files =
            [(all.concat().into_bytes(), vec![]), (two_in_one, vec![1, 2]), (one_in_two, vec![]), (zstd, vec![])];
        for (file, shared) in files {
            let (mut read_again, mut number) = (records(&file), 0);
            while let Some(FramedRecord::Record(record)) = read_again.advance().unwrap() {
                let alone = record.entry.length.map(|length| read(&file[record.offset as usize..][..length as usize]));
                let expected = (!shared.contains(&number)).then(|| vec![format!("0 {} 7", record.url.unwrap())]);
                assert_eq!(alone, expected, "{number}");
                number += 1;
            }
            assert!(number >= 3);
        }
    }

    #[test]
    fn zstd_frames_are_members_with_or_without_a_dictionary() {
        let records: Vec<String> = (0..200).map(|i| good(&format!("http://a.example/{i}"))).collect();
        let samples: Vec<&[u8]> = records.iter().map(String::as_bytes).collect();
        let dictionary = zstd::dict::from_samples(&samples, 2000).unwrap();
        let framed = |dictionary: &[u8]| {
            let mut compressor = zstd::bulk::Compressor::with_dictionary(3, dictionary).unwrap();
            records.iter().flat_map(|record| compressor.compress(record.as_bytes()).unwrap()).collect::<Vec<u8>>()
        };
        let skippable =
            |content: &[u8]| [&[0x5d, 0x2a, 0x4d, 0x18][..], &(content.len() as u32).to_le_bytes(), content].concat();
        let packed = zstd::bulk::compress(&dictionary, 3).unwrap();
        let files = [
            framed(&[]),
            [skippable(&dictionary), framed(&dictionary)].concat(),
            [skippable(&packed), framed(&dictionary)].concat(),
        ];
        for file in files {
            let lines = read(&file);
            assert_eq!(lines.len(), 200);
            assert!(lines.iter().all(|line| line.ends_with(" 7")), "{lines:?}");
            let mut damaged = file.clone();
            let middle = file.len() / 2;
            damaged[middle..middle + 3].fill(0);
            let lines = read(&damaged);
            let lost = lines.iter().filter(|line| line.contains("zstd: ")).count();
            assert!((1..=2).contains(&lost) && lines.len() >= 199, "{lines:?}");
        }
    }

    #[test]
    fn a_block_longer_than_the_cap_is_cut_and_the_next_record_is_read() {
        let file = good("a") + &record("long", 5_000_000, &"x".repeat(5_000_000)) + &good("b");
        let lines = read(file.as_bytes());
        assert!(lines[1].ends_with(" long 1000 cut") && lines[2].ends_with(" b 7"), "{lines:?}");
        let file =
            [gzip(&good("a")), gzip(&record("long", 5_000_000, &"x".repeat(4_999_999))), gzip(&good("b"))].concat();
        let lines = read(&file);
        assert!(lines[2].ends_with(" b 7") && lines.len() == 3, "{lines:?}");
    }

    #[test]
    fn members_cut_short_in_a_row_are_rejects_in_linear_time() {
        let mut cut = gzip(&good("a"));
        cut.truncate(cut.len() - 9);
        let lines = read(&[&cut.repeat(50_000)[..], &gzip(&good("b"))].concat());
        assert!(
            lines.len() > 20_000 && lines.iter().all(|line| !line.contains(" a 7")),
            "{} {:?}",
            lines.len(),
            &lines[..6]
        );
        assert!(lines[lines.len() - 1].ends_with(" b 7"));
    }

    #[test]
    fn garbage_before_the_first_member_is_one_reject() {
        let file = [&b"garbage\r\n"[..], &gzip(&good("a"))].concat();
        assert_eq!(read(&file), ["0  gzip: bytes that are no member", "9 a 7"]);
        let file = [&gzip(&good("a"))[..], &[0; 5000]].concat();
        assert_eq!(read(&file), ["0 a 7"]);
    }

    /// Files of good and bad records, compressed or not, some bytes of them changed.
    fn mangled() -> impl Strategy<Value = Vec<u8>> {
        let part = (0..5_usize, 0..40_usize, "[ -~\r\n]{0,40}").prop_map(|(kind, length, text)| match kind {
            0 => good("a"),
            1 => record("b", length, &text),
            2 => record("c", length * 100, &text),
            3 => text,
            _ => "WARC/1.0\r\n".to_owned(),
        });
        let changes = prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 0..4);
        (prop::collection::vec(part, 0..12), 0..4_u8, changes).prop_map(|(parts, packing, changes)| {
            let mut file: Vec<u8> = match packing {
                0 => parts.concat().into_bytes(),
                1 => gzip(&parts.concat()),
                2 => parts.iter().flat_map(|part| gzip(part)).collect(),
                _ => parts.iter().flat_map(|part| zstd::bulk::compress(part.as_bytes(), 1).unwrap()).collect(),
            };
            for (index, byte) in changes {
                if !file.is_empty() {
                    let changed = index.index(file.len());
                    file[changed] = byte;
                }
            }
            file
        })
    }

    proptest! {
        #[test]
        fn no_file_makes_it_panic_or_run_forever(file in mangled()) {
            let lines = read(&file);
            assert!(lines.len() <= 60, "{lines:?}");
        }
    }
}
