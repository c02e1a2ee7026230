//! WARC records framed out of the members of a file.
//!
//! A record is a head, a block of Content-Length bytes, and two line ends. [`Records`] believes none of that more than it must:
//!
//! - a record is given only when what follows it is right: a record, the end of the member with its checksum, or the file's end;
//! - a block that runs over the end of a member goes on in the next one, unless that begins with `WARC/`: then the length is wrong;
//! - after a bad record it looks for the next member that begins with `WARC/`, or the next line that is a version (`WARC/1.1`),
//!   from the bad record's block on, so that a wrong length does not swallow what follows.
//!
//! Nothing is allocated by a claimed length: bytes are kept as they come, at most the cap for the record's kind, and the rest
//! passed over. A version line inside the block of a *bad* record is taken for a record; one inside a good record is not.

use std::collections::VecDeque;
use std::io;
use std::ops::Range;

use memchr::{memchr, memmem};

use super::record::{Kind, RecordHead, parse};
use crate::readers::item::Reject;
use crate::readers::streams::{MemberStep, Members};

/// The longest head of a record.
const HEAD: usize = 1 << 20;
/// Block bytes kept of records that hold no page, in files where members bound what a wrong length can swallow.
const KEPT: u64 = 1 << 20;
/// Capacity that the buffer shrinks to after a large record.
const BUFFER: usize = 1 << 20;

const VERSION: &[u8] = b"WARC/";

/// Whether a member that begins with these bytes may be one of a WARC file.
pub fn acceptable(bytes: &[u8]) -> bool {
    bytes.starts_with(VERSION)
}

/// The next thing in a file.
#[derive(Debug)]
pub enum FramedRecord {
    /// A whole record.
    Record(RecordHead),
    /// Something that is none.
    Reject(Reject),
}

/// A change of member at a position of the decoded stream.
#[derive(Clone, Copy)]
struct Mark {
    at: u64,
    kind: MarkKind,
}

#[derive(Clone, Copy)]
enum MarkKind {
    Start(u64),
    Damage(u64, &'static str),
}

/// How far a walk towards a position came.
enum Reach {
    There,
    /// A member that begins with a record begins at this position.
    NextRecord(u64),
    /// The member is damaged at this position.
    Damage(u64, &'static str),
    End,
}

/// The records of a file.
pub struct Records {
    members: Members,
    /// Decoded bytes; `buffer[0]` is at position `base` of the decoded stream.
    buffer: Vec<u8>,
    base: u64,
    /// Position up to which all is done.
    head: u64,
    marks: VecDeque<Mark>,
    ended: bool,
    /// Stored offset of the member at `head`, and whether a record began in it.
    member: u64,
    opened: bool,
    /// Size of the file, if known and stored plain.
    plain_size: Option<u64>,
    /// Block bytes kept of a record that may hold a page.
    cap: u64,
    block: RecordBlock,
}

/// Where the block of the record given last is.
enum RecordBlock {
    Buffered(Range<u64>),
    Moved(Vec<u8>),
}

impl Records {
    /// Frames the records of a file of `size` stored bytes, keeping at most `cap` bytes of a block.
    pub fn new(members: Members, size: u64, cap: u64) -> Self {
        let plain_size = members.plain().then_some(size).filter(|&size| size > 0);
        Records {
            members,
            buffer: Vec::new(),
            base: 0,
            head: 0,
            marks: VecDeque::new(),
            ended: false,
            member: 0,
            opened: false,
            plain_size,
            cap,
            block: RecordBlock::Moved(Vec::new()),
        }
    }

    /// Gives the number of stored bytes taken.
    pub fn position(&self) -> u64 {
        self.members.position()
    }

    /// Gives the block of the record that [`Records::advance`] gave last.
    pub fn block(&self) -> &[u8] {
        match &self.block {
            RecordBlock::Buffered(range) => &self.buffer[self.index(range.start)..self.index(range.end)],
            RecordBlock::Moved(bytes) => bytes,
        }
    }

    /// Gives the next record or reject; none at the end.
    ///
    /// # Errors
    /// When the file cannot be read.
    pub fn advance(&mut self) -> io::Result<Option<FramedRecord>> {
        self.block = RecordBlock::Moved(Vec::new());
        loop {
            match self.mark_at(self.head) {
                Some(MarkKind::Damage(offset, reason)) => {
                    self.marks.pop_front();
                    return Ok(Some(FramedRecord::Reject(Reject { offset, url: None, reason: reason.to_owned() })));
                }
                Some(MarkKind::Start(offset)) => {
                    (self.member, self.opened) = (offset, false);
                    self.marks.pop_front();
                    continue;
                }
                None => {}
            }
            match self.byte(self.head) {
                Some(b'\r' | b'\n') => self.head += 1,
                Some(_) => return self.record().map(Some),
                None if !self.pull()? => return Ok(None),
                None => {}
            }
        }
    }

    /// Reads the record that begins at `head`.
    fn record(&mut self) -> io::Result<FramedRecord> {
        let begin = self.head;
        // The first member may be the whole file: then only the first record can be fetched by its offset.
        let decoded = self.members.plain() || self.member == 0 && self.opened;
        let offset = if decoded { begin } else { self.member };
        self.opened = true;
        let reject =
            |url: Option<String>, reason: &str| FramedRecord::Reject(Reject { offset, url, reason: reason.to_owned() });

        if !self.begins_record(begin)? {
            self.resume_after(begin)?;
            return Ok(reject(None, "warc: no version line where a record should begin"));
        }
        let start = match self.head_end(begin)? {
            Ok(start) => start,
            Err((reason, resume)) => {
                match resume {
                    Some(at) => self.head = at,
                    None => self.resume_after(begin)?,
                }
                return Ok(reject(None, reason));
            }
        };
        let head = &self.buffer[self.index(begin)..self.index(start)];
        let mut record = match parse(head, offset) {
            Ok(record) => record,
            Err((url, reason)) => {
                self.resume_after(start - 1)?;
                return Ok(reject(url, reason));
            }
        };
        let Some(length) = record.length else {
            let reason = "warc: no Content-Length";
            self.resume_after(start - 1)?;
            return Ok(reject(record.url, reason));
        };
        if self.plain_size.is_some_and(|size| length > size.saturating_sub(start)) {
            self.resume_after(start - 1)?;
            return Ok(reject(record.url, "warc: Content-Length larger than the file"));
        }

        let short = record.kind == Kind::Other && !self.members.plain();
        let kept = length.min(if short { KEPT } else { self.cap });
        let end = start.saturating_add(length);
        let mut reach = self.reach(start + kept)?;
        let moved = kept < length && matches!(reach, Reach::There);
        if moved {
            record.cut = true;
            self.block = RecordBlock::Moved(self.buffer[self.index(start)..self.index(start + kept)].to_vec());
            self.head = start + kept;
            while matches!(reach, Reach::There) && self.head < end {
                let target = end.min(self.end().max(self.head + 1));
                reach = self.reach(target)?;
                if matches!(reach, Reach::There) {
                    self.head = target;
                }
            }
        } else {
            self.block = RecordBlock::Buffered(start..start + kept);
        }
        match reach {
            Reach::There => {}
            Reach::NextRecord(at) => {
                self.head = at;
                return Ok(reject(record.url, "warc: Content-Length larger than the member"));
            }
            Reach::Damage(at, reason) => {
                self.head = at;
                self.marks.pop_front();
                return Ok(reject(record.url, reason));
            }
            Reach::End => {
                let from = if moved { self.end() } else { start - 1 };
                self.resume_after(from)?;
                return Ok(reject(record.url, "warc: the file ends inside a record"));
            }
        }
        match self.trailer(end)? {
            Ok(at) => {
                self.head = at;
                Ok(FramedRecord::Record(record))
            }
            Err(Some(reason)) => Ok(reject(record.url, reason)),
            Err(None) => {
                self.resume_after(if moved { end } else { start - 1 })?;
                Ok(reject(record.url, "warc: Content-Length does not end the block"))
            }
        }
    }

    /// Gives the position after the line ends that follow a block, or what is wrong there (none: other bytes follow).
    ///
    /// In a plain file, whatever follows two line ends is no fault of this record. In a member it may come of damage.
    fn trailer(&mut self, end: u64) -> io::Result<Result<u64, Option<&'static str>>> {
        let mut at = end;
        let mut lines = 0;
        loop {
            match self.mark_at(at) {
                // Garbage after a good member is another matter than damage of this one.
                Some(MarkKind::Damage(offset, reason)) if offset == self.member => {
                    self.head = at;
                    self.marks.pop_front();
                    return Ok(Err(Some(reason)));
                }
                Some(_) => return Ok(Ok(at)),
                None => {}
            }
            match self.byte(at) {
                Some(byte @ (b'\r' | b'\n')) => {
                    at += 1;
                    lines += usize::from(byte == b'\n');
                }
                Some(_) if lines > 1 && self.members.plain() || self.begins_record(at)? => {
                    return Ok(Ok(at));
                }
                Some(_) => return Ok(Err(None)),
                None if !self.pull()? => return Ok(Ok(at)),
                None => {}
            }
        }
    }

    /// Gives the position after the head that begins at `begin`, or what is wrong and where to go on.
    #[allow(clippy::type_complexity)]
    fn head_end(&mut self, begin: u64) -> io::Result<Result<u64, (&'static str, Option<u64>)>> {
        let mut line = begin;
        let mut seen = begin;
        loop {
            if seen - begin > HEAD as u64 {
                return Ok(Err(("warc: head too long", None)));
            }
            let (from, to) = (self.index(seen), self.buffer.len());
            if let Some(at) = memchr(b'\n', &self.buffer[from..to]) {
                let newline = seen + at as u64;
                match self.reach(newline + 1)? {
                    Reach::There => {}
                    Reach::NextRecord(at) => {
                        return Ok(Err(("warc: the member ends inside a head", Some(at))));
                    }
                    Reach::Damage(at, reason) => {
                        self.marks.pop_front();
                        return Ok(Err((reason, Some(at))));
                    }
                    Reach::End => {}
                }
                let empty = matches!(&self.buffer[self.index(line)..self.index(newline)], b"" | b"\r");
                (line, seen) = (newline + 1, newline + 1);
                if empty {
                    return Ok(Ok(line));
                }
                continue;
            }
            seen = self.end();
            match self.reach(seen + 1)? {
                Reach::There => {}
                Reach::NextRecord(at) => {
                    return Ok(Err(("warc: the member ends inside a head", Some(at))));
                }
                Reach::Damage(at, reason) => {
                    self.marks.pop_front();
                    return Ok(Err((reason, Some(at))));
                }
                Reach::End => return Ok(Err(("warc: the file ends inside a head", None))),
            }
        }
    }

    /// Makes the bytes before `target` available, passing members that go on with the record.
    fn reach(&mut self, target: u64) -> io::Result<Reach> {
        loop {
            while let Some(&Mark { at, kind }) = self.marks.front() {
                if at >= target {
                    return Ok(Reach::There);
                }
                match kind {
                    MarkKind::Damage(_, reason) => return Ok(Reach::Damage(at, reason)),
                    MarkKind::Start(_) if self.begins_record(at)? => {
                        return Ok(Reach::NextRecord(at));
                    }
                    MarkKind::Start(offset) => {
                        (self.member, self.opened) = (offset, true);
                        self.marks.pop_front();
                    }
                }
            }
            if self.end() >= target {
                return Ok(Reach::There);
            }
            if !self.pull()? {
                return Ok(Reach::End);
            }
        }
    }

    /// Makes `head` the position of the next thing after `from` that looks like a record, or like further trouble.
    ///
    /// Damage of the member that the rejected record is in is no further trouble.
    fn resume_after(&mut self, from: u64) -> io::Result<()> {
        self.head = from;
        let mut seen = from + 1;
        loop {
            let edge = self.marks.front().map_or(self.end(), |mark| mark.at);
            while seen < edge {
                let region = &self.buffer[self.index(seen)..self.index(edge)];
                let Some(at) = memmem::find(region, VERSION) else {
                    break;
                };
                let hit = seen + at as u64;
                seen = hit + 1;
                if self.version_line(hit)? {
                    self.head = hit;
                    return Ok(());
                }
            }
            let Some(&Mark { at, kind }) = self.marks.front() else {
                // A version line may be cut at the end of what is here.
                seen = seen.max(self.end().saturating_sub(VERSION.len() as u64));
                self.head = self.head.max(seen - 1).min(self.end());
                if !self.pull()? {
                    self.head = self.end();
                    return Ok(());
                }
                continue;
            };
            // Marks up to the edge are looked at in turn; bytes after the mark are another member's.
            match kind {
                MarkKind::Damage(offset, _) if offset != self.member => {
                    self.head = at;
                    return Ok(());
                }
                MarkKind::Start(_) if self.begins_record(at)? => {
                    self.head = at;
                    return Ok(());
                }
                MarkKind::Start(offset) => (self.member, self.opened) = (offset, true),
                MarkKind::Damage(..) => {}
            }
            self.marks.pop_front();
            seen = seen.max(at);
            self.head = self.head.max(seen.saturating_sub(1)).min(self.end());
        }
    }

    /// Whether a line at `at` is the version of a record and nothing else.
    fn version_line(&mut self, at: u64) -> io::Result<bool> {
        let after_newline = self.index(at).checked_sub(1).is_some_and(|before| self.buffer[before] == b'\n');
        if !after_newline {
            return Ok(false);
        }
        while self.end() < at + 9 && self.pull()? {}
        let line = &self.buffer[self.index(at)..];
        Ok(line.starts_with(b"WARC/1.") && matches!(line.get(7..9), Some([b'0'..=b'9', b'\r' | b'\n'])))
    }

    /// Whether `WARC/` stands at a position.
    fn begins_record(&mut self, at: u64) -> io::Result<bool> {
        while self.end() < at + VERSION.len() as u64 && self.pull()? {}
        Ok(self.buffer[self.index(at)..].starts_with(VERSION))
    }

    /// Gives the change of member at a position, if there is one.
    fn mark_at(&self, position: u64) -> Option<MarkKind> {
        self.marks.front().filter(|mark| mark.at == position).map(|mark| mark.kind)
    }

    fn byte(&self, position: u64) -> Option<u8> {
        self.buffer.get(self.index(position)).copied()
    }

    fn index(&self, position: u64) -> usize {
        (position - self.base) as usize
    }

    fn end(&self) -> u64 {
        self.base + self.buffer.len() as u64
    }

    /// Decodes some more; false at the end of the file.
    fn pull(&mut self) -> io::Result<bool> {
        if self.ended {
            return Ok(false);
        }
        let done = self.index(self.head);
        // Moving the rest only when it is the smaller half keeps the work linear.
        if done > self.buffer.len() / 2 {
            self.buffer.drain(..done);
            self.base = self.head;
            if self.buffer.capacity() > 4 * BUFFER && self.buffer.len() < BUFFER {
                self.buffer.shrink_to(BUFFER);
            }
        }
        let kind = match self.members.step(&mut self.buffer)? {
            MemberStep::Bytes => None,
            MemberStep::Start(offset) => Some(MarkKind::Start(offset)),
            MemberStep::Damage { offset, reason } => Some(MarkKind::Damage(offset, reason)),
            MemberStep::End => {
                self.ended = true;
                None
            }
        };
        // Damage may come with the last bytes before it.
        let at = self.end();
        self.marks.extend(kind.map(|kind| Mark { at, kind }));
        Ok(!self.ended)
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

    /// Reads a file to lines of offset, URL, and block length or reason.
    fn read(file: &[u8]) -> Vec<String> {
        let members = Members::new(Stored::new(Box::new(Cursor::new(file.to_vec()))), acceptable).unwrap();
        let mut records = Records::new(members, file.len() as u64, CAP);
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
    fn records_are_where_an_index_has_them() {
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
    fn a_block_longer_than_the_cap_is_cut_and_passed() {
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
        let one = (0..5_usize, 0..40_usize, "[ -~\r\n]{0,40}").prop_map(|(kind, length, text)| match kind {
            0 => good("a"),
            1 => record("b", length, &text),
            2 => record("c", length * 100, &text),
            3 => text,
            _ => "WARC/1.0\r\n".to_owned(),
        });
        let changes = prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 0..4);
        (prop::collection::vec(one, 0..12), 0..4_u8, changes).prop_map(|(parts, packing, changes)| {
            let mut file: Vec<u8> = match packing {
                0 => parts.concat().into_bytes(),
                1 => gzip(&parts.concat()),
                2 => parts.iter().flat_map(|part| gzip(part)).collect(),
                _ => parts.iter().flat_map(|part| zstd::bulk::compress(part.as_bytes(), 1).unwrap()).collect(),
            };
            for (index, byte) in changes {
                if !file.is_empty() {
                    let at = index.index(file.len());
                    file[at] = byte;
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
