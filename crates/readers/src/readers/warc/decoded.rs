//! The decoded bytes of a WARC file, addressed by their position in the decoded stream, with the
//! boundaries of the file's members.
//!
//! Bytes are decoded on demand and stay in memory from the cursor on. A boundary is the position at
//! which a member starts or is damaged; the record reader consumes the boundaries in order, as it
//! comes to them.
//!
//! Of a damaged member that gives no record the head of the first one is there all the same, so
//! that the reject has its URL. The damage is behind this head.

use std::collections::VecDeque;
use std::io;
use std::ops::Range;

use memchr::{memchr, memmem};

use super::record::{VERSION, is_version};
use crate::readers::item::Unread;
use crate::readers::streams::{MemberStep, Members};

/// Capacity to which the buffer shrinks after a large record.
const BUFFER: usize = 1 << 20;

/// The longest line of an ARC record that is looked for after damage, in bytes.
const ARC_LINE: u64 = 8 << 10;

/// The longest line that is looked at for a version, in bytes with its end.
const VERSION_LINE: u64 = 16;

/// The form of a file's records.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Dialect {
    /// WARC, WET included: a head of lines, as in mail.
    Warc,
    /// ARC: a head of one line.
    Arc,
}

impl Dialect {
    /// Returns the test whether a member that begins with some bytes can be one of such a file.
    pub fn acceptable(self) -> fn(&[u8]) -> bool {
        match self {
            Dialect::Warc => |bytes| bytes.starts_with(VERSION),
            Dialect::Arc => super::arc::begins,
        }
    }

    /// Returns the function that says how many of the decoded bytes of a damaged member are handed
    /// out: the head of the record that they begin with. If they begin with none, it is one byte: a
    /// record that goes on in this member is a bad one then.
    pub fn spared(self) -> fn(&[u8]) -> usize {
        match self {
            Dialect::Warc => spared_of_warc,
            Dialect::Arc => spared_of_arc,
        }
    }
}

fn spared_of_warc(bytes: &[u8]) -> usize {
    if !bytes.starts_with(VERSION) {
        return bytes.len().min(1);
    }
    let ends = [&b"\n\r\n"[..], b"\n\n"].into_iter();
    ends.filter_map(|end| memmem::find(bytes, end).map(|at| at + end.len())).min().unwrap_or(0)
}

fn spared_of_arc(bytes: &[u8]) -> usize {
    if !super::arc::begins(bytes) {
        return bytes.len().min(1);
    }
    memchr(b'\n', bytes).map_or(0, |at| at + 1)
}

/// A boundary of members in the decoded stream.
#[derive(Clone, Copy)]
pub struct Boundary {
    /// The position in the decoded stream.
    pub at: u64,
    /// What happens there.
    pub kind: BoundaryKind,
}

/// What happens at a [`Boundary`].
#[derive(Clone, Copy)]
pub enum BoundaryKind {
    /// The member with this stored offset starts.
    Start(u64),
    /// The member with this stored offset is damaged, for this reason.
    Damage(u64, &'static str),
}

/// The result of decoding up to a position inside a record.
pub enum Reach {
    /// All bytes before the position are in memory and belong to the record.
    There,
    /// A member that begins with a record starts at this earlier position.
    NextRecord(u64),
    /// The member is damaged at this earlier position.
    Damage(u64, &'static str),
    /// The file ends before.
    End,
}

/// The decoded bytes of a file from a cursor on.
pub struct DecodedStream {
    members: Members,
    /// The form of the records.
    pub dialect: Dialect,
    /// Decoded bytes; `buffer[0]` is at position `base`.
    buffer: Vec<u8>,
    base: u64,
    /// The position up to which the file is framed. Earlier bytes can be dropped.
    pub cursor: u64,
    /// The boundaries in memory that are not yet passed, in order.
    boundaries: VecDeque<Boundary>,
    ended: bool,
    /// The stored offset of the member at the cursor.
    pub member: u64,
    /// How many records began in that member, or continued into it.
    pub records_of_member: u64,
}

impl DecodedStream {
    /// Makes the stream of a file, at its beginning.
    pub fn new(members: Members, dialect: Dialect) -> Self {
        DecodedStream {
            members: members.sparing(dialect.spared()),
            dialect,
            buffer: Vec::new(),
            base: 0,
            cursor: 0,
            boundaries: VecDeque::new(),
            ended: false,
            member: 0,
            records_of_member: 0,
        }
    }

    /// Whether the file is not compressed.
    pub fn is_plain(&self) -> bool {
        self.members.plain()
    }

    /// Returns the number of stored bytes read.
    pub fn stored_position(&self) -> u64 {
        self.members.position()
    }

    /// Returns the stored bytes of damaged and cut members so far.
    pub fn unread(&self) -> Unread {
        self.members.unread()
    }

    /// Whether the cursor is at the end of the file.
    pub fn is_at_end(&self) -> bool {
        self.ended && self.cursor == self.end()
    }

    /// Returns the position after the last decoded byte.
    pub fn end(&self) -> u64 {
        self.base + self.buffer.len() as u64
    }

    /// Returns the bytes at some positions, all of them in memory.
    pub fn bytes(&self, positions: Range<u64>) -> &[u8] {
        &self.buffer[self.index(positions.start)..self.index(positions.end)]
    }

    /// Returns the byte at a position, if it is decoded.
    pub fn byte(&self, position: u64) -> Option<u8> {
        self.buffer.get(self.index(position)).copied()
    }

    /// Returns the next boundary in memory.
    pub fn boundary(&self) -> Option<Boundary> {
        self.boundaries.front().copied()
    }

    /// Returns the boundary at a position, if it is the next one.
    pub fn boundary_at(&self, position: u64) -> Option<BoundaryKind> {
        self.boundary().filter(|boundary| boundary.at == position).map(|boundary| boundary.kind)
    }

    /// Passes the next boundary.
    pub fn pass_boundary(&mut self) {
        self.boundaries.pop_front();
    }

    /// Passes the next boundary, the start of the member at this stored offset.
    pub fn enter_member(&mut self, offset: u64, has_record: bool) {
        (self.member, self.records_of_member) = (offset, has_record.into());
        self.pass_boundary();
    }

    /// Decodes the bytes before `target`. Passes the starts of members that continue the record.
    ///
    /// # Errors
    /// If the file cannot be read.
    pub fn reach(&mut self, target: u64) -> io::Result<Reach> {
        loop {
            while let Some(Boundary { at, kind }) = self.boundary() {
                if at >= target {
                    return Ok(Reach::There);
                }
                match kind {
                    BoundaryKind::Damage(_, reason) => return Ok(Reach::Damage(at, reason)),
                    BoundaryKind::Start(_) if self.begins_record(at)? => return Ok(Reach::NextRecord(at)),
                    BoundaryKind::Start(offset) => self.enter_member(offset, true),
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

    /// Moves the cursor to `target`, and drops the bytes before it on the way.
    ///
    /// # Errors
    /// If the file cannot be read.
    pub fn skip_to(&mut self, target: u64) -> io::Result<Reach> {
        while self.cursor < target {
            let next = target.min(self.end().max(self.cursor + 1));
            match self.reach(next)? {
                Reach::There => self.cursor = next,
                obstacle => return Ok(obstacle),
            }
        }
        Ok(Reach::There)
    }

    /// Whether `WARC/` is at a position, or the beginning of a record of an ARC file.
    ///
    /// # Errors
    /// If the file cannot be read.
    pub fn begins_record(&mut self, position: u64) -> io::Result<bool> {
        let opening = match self.dialect {
            Dialect::Warc => VERSION.len(),
            Dialect::Arc => super::arc::OPENING,
        };
        while self.end() < position + opening as u64 && self.pull()? {}
        Ok(self.dialect.acceptable()(&self.buffer[self.index(position)..]))
    }

    /// Whether a line that is only a version (`WARC/1.1`, `WARC/0.18`) begins at a position, or the
    /// line of a record of an ARC file.
    ///
    /// # Errors
    /// If the file cannot be read.
    pub fn begins_version_line(&mut self, position: u64) -> io::Result<bool> {
        let follows_newline = self.index(position).checked_sub(1).is_some_and(|before| self.buffer[before] == b'\n');
        if !follows_newline {
            return Ok(false);
        }
        if self.dialect == Dialect::Arc {
            if !self.begins_record(position)? {
                return Ok(false);
            }
            while self.end() < position + ARC_LINE && memchr(b'\n', &self.buffer[self.index(position)..]).is_none() {
                if !self.pull()? {
                    break;
                }
            }
            let line = self.buffer[self.index(position)..].split(|byte| *byte == b'\n').next().unwrap_or_default();
            return Ok(super::arc::is_record_line(line));
        }
        while self.end() < position + VERSION_LINE && self.pull()? {}
        let rest = &self.buffer[self.index(position)..];
        let end = memchr(b'\n', &rest[..rest.len().min(VERSION_LINE as usize)]);
        Ok(end.is_some_and(|end| is_version(&rest[..end])))
    }

    /// Decodes the first member of a file, or more than its first `most` bytes, before anything is
    /// framed. Returns them, and whether they are more than `most`; `None` if no member begins the
    /// file, or if a smaller one is damaged or is followed by others.
    ///
    /// # Errors
    /// If the file cannot be read.
    pub fn only_member(&mut self, most: usize) -> io::Result<Option<(&[u8], bool)>> {
        self.pull()?;
        if !matches!(self.boundary(), Some(Boundary { at: 0, kind: BoundaryKind::Start(0) })) {
            return Ok(None);
        }
        let has_ended = |stream: &Self| stream.end() > 0 && stream.members.is_between();
        while self.boundaries.len() == 1 && self.buffer.len() <= most && !has_ended(self) && self.pull()? {}
        let is_large = self.buffer.len() > most;
        let is_alone = self.boundaries.len() == 1 && (is_large || !self.members.goes_on()?);
        Ok(is_alone.then_some((&self.buffer[..], is_large)))
    }

    /// Decodes more bytes; returns `false` at the end of the file.
    ///
    /// # Errors
    /// If the file cannot be read.
    pub fn pull(&mut self) -> io::Result<bool> {
        if self.ended {
            return Ok(false);
        }
        let framed = self.index(self.cursor);
        // Linear time: the remaining bytes are moved only when they are the smaller half.
        if framed > self.buffer.len() / 2 {
            self.buffer.drain(..framed);
            self.base = self.cursor;
            if self.buffer.capacity() > 4 * BUFFER && self.buffer.len() < BUFFER {
                self.buffer.shrink_to(BUFFER);
            }
        }
        let kind = match self.members.step(&mut self.buffer)? {
            MemberStep::Bytes => None,
            MemberStep::Start(offset) => Some(BoundaryKind::Start(offset)),
            MemberStep::Damage { offset, reason } => Some(BoundaryKind::Damage(offset, reason)),
            MemberStep::End => {
                self.ended = true;
                None
            }
        };
        // After the step, because damage can come with the last bytes before it.
        let at = self.end();
        self.boundaries.extend(kind.map(|kind| Boundary { at, kind }));
        Ok(!self.ended)
    }

    fn index(&self, position: u64) -> usize {
        (position - self.base) as usize
    }
}
