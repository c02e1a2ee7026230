//! The records of a file, and their blocks.

use std::io;
use std::ops::Range;

use memchr::{memchr, memmem};

use crate::readers::item::{CountedIn, Reject, Unread};
use crate::readers::streams::Members;
use crate::readers::warc::arc;
use crate::readers::warc::decoded::{Boundary, BoundaryKind, DecodedStream, Dialect, Reach};
use crate::readers::warc::header::end_of_head;
use crate::readers::warc::record::{RecordHead, RecordType, VERSION, parse};

/// The cap for blocks of records that are not pages, in compressed files: there a wrong length
/// swallows one member at most.
const OTHER_CAP: u64 = 1 << 20;

/// The reasons of rejects whose record may be cut by the end of the file.
const CUT: [&str; 3] = [ENDS_IN_HEAD, ENDS_IN_RECORD, LONGER_THAN_FILE];

pub(super) const ENDS_IN_HEAD: &str = "warc: the file ends inside a head";
const ENDS_IN_RECORD: &str = "warc: the file ends inside a record";
pub(super) const LONGER_THAN_FILE: &str = "warc: Content-Length larger than the file";
/// The size of a large member, decoded. What compresses blocks of a file separately makes them
/// smaller.
const LARGE: usize = 8 << 20;
/// What may follow a record that is alone in its member.
const LINE_ENDS: usize = 16;
/// The records of a member have as many places as the member has bytes.
const CROWDED: &str = "warc: the compressed member before has more records than bytes";

/// A record or a reject.
#[derive(Debug)]
pub enum FramedRecord {
    /// A whole record. Its block is [`Records::block`].
    Record(RecordHead),
    /// Bytes that are not a good record.
    Reject(Reject),
}

/// A parsed head, with the positions of the block in the decoded stream.
pub(super) struct HeadAndBlock {
    pub(super) head: RecordHead,
    pub(super) block: Range<u64>,
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
    pub(super) stream: DecodedStream,
    /// Size of the file in bytes, if it is known and the file is not compressed.
    pub(super) plain_size: Option<u64>,
    /// Block bytes kept of a record that may be a page.
    cap: u64,
    head: RecordBytes,
    block: RecordBytes,
    /// What the place of the last record or reject is counted in.
    counted_in: CountedIn,
    /// Whether places are those in the decoded bytes, because the file may be one member. `None` if
    /// that is not known yet.
    is_one_stream: Option<bool>,
    /// The last place that is counted in stored bytes.
    last_stored: Option<u64>,
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
            is_one_stream: (is_part || stream.is_plain()).then_some(false),
            stream,
            plain_size,
            cap,
            head: RecordBytes::Copied(Vec::new()),
            block: RecordBytes::Copied(Vec::new()),
            counted_in: CountedIn::Stored,
            last_stored: None,
            not_framed: Unread::default(),
        }
    }

    /// Says that the stream begins at a member that is not the first of its file.
    pub fn begins_inside(&mut self) {
        self.is_one_stream = Some(false);
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
        self.is_one_stream()?;
        self.head = RecordBytes::Copied(Vec::new());
        self.block = RecordBytes::Copied(Vec::new());
        loop {
            match self.stream.boundary_at(self.stream.cursor) {
                Some(BoundaryKind::Damage(stored, reason)) => {
                    self.stream.pass_boundary();
                    let is_one_stream = self.is_one_stream == Some(true);
                    let offset = if is_one_stream { self.stream.cursor } else { stored };
                    self.counted_in = if is_one_stream { CountedIn::Decoded } else { CountedIn::Stored };
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

    /// Whether places are those in the decoded bytes: the first member has several records, and may
    /// be the whole file: it is large, or nothing follows it.
    ///
    /// # Errors
    /// If the file cannot be read.
    pub fn is_one_stream(&mut self) -> io::Result<bool> {
        if let Some(known) = self.is_one_stream {
            return Ok(known);
        }
        let dialect = self.stream.dialect;
        let is_one_stream = match self.stream.only_member(LARGE)? {
            Some((bytes, true)) => first_record_ends_in(bytes, dialect),
            alone => alone.is_some(),
        };
        self.is_one_stream = Some(is_one_stream);
        Ok(is_one_stream)
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
        let (member, before) = (self.stream.member, self.stream.records_of_member);
        self.stream.records_of_member += 1;
        let is_one_stream = self.is_one_stream == Some(true);
        self.counted_in = match before {
            _ if self.stream.is_plain() => CountedIn::Stored,
            _ if is_one_stream && (member, before) != (0, 0) => CountedIn::Decoded,
            0 => CountedIn::Stored,
            _ => CountedIn::Shared,
        };
        // Ascending, because a member has more bytes than records.
        let by_position = self.stream.is_plain() || self.counted_in == CountedIn::Decoded;
        let offset = if by_position { begin } else { member + before };
        let is_taken = !by_position && self.last_stored >= Some(offset);
        if !by_position {
            self.last_stored = self.last_stored.max(Some(offset));
        }

        let HeadAndBlock { mut head, block } = match self.head(begin, offset)? {
            Ok(head_and_block) => head_and_block,
            Err(reject) => return Ok(FramedRecord::Reject(reject)),
        };
        self.head = RecordBytes::Buffered(begin..block.start);
        Ok(match self.take_block(&mut head, block)?.and(if is_taken { Err(CROWDED) } else { Ok(()) }) {
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
    pub(super) fn resume_after(&mut self, from: u64) -> io::Result<()> {
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

/// Whether the first record ends in the first bytes of a longer member, so that others follow it
/// there.
fn first_record_ends_in(bytes: &[u8], dialect: Dialect) -> bool {
    let parsed = match dialect {
        Dialect::Warc => end_of_head(bytes).map(|end| (end, parse(&bytes[..end], 0))),
        Dialect::Arc => memchr(b'\n', bytes).map(|end| (end + 1, arc::parse(&bytes[..=end], 0))),
    };
    let Some((end, Ok(RecordHead { length: Some(length), .. }))) = parsed else { return false };
    (end + LINE_ENDS) as u64 + length < bytes.len() as u64
}
