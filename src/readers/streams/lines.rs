//! The lines of a file, plain, gzip or zstd, with their places.
//!
//! A line ends in LF or with the file; its place is its offset in the uncompressed stream. A line longer than a limit
//! is told and passed over. Damage costs the line that it hits: lines that were whole before it are good, and the next
//! member begins another.
//!
//! Memory: about twice the longest line. Time: linear.

use std::io;
use std::io::Read;
use std::ops::Range;

use memchr::memchr;

use super::members::{MemberStep, Members};
use super::stored::Stored;

/// The lines of one file.
pub struct Lines {
    members: Members,
    /// The longest line that is given, in bytes.
    longest: usize,
    buffer: Vec<u8>,
    /// Offset in the uncompressed stream of `buffer[0]`.
    base: u64,
    /// The line given last.
    given: Range<usize>,
    /// Index in `buffer` of the next line, and up to where no newline is.
    line: usize,
    seen: usize,
    /// Whether the line at `line` is being passed over: it was too long, or its beginning was damaged.
    passing: bool,
    damage: Option<&'static str>,
    ended: bool,
}

/// One step through the lines, with the offset of the line that it is about.
#[derive(Debug, PartialEq)]
pub enum LineStep {
    /// A line: [`Lines::line`].
    Line(u64),
    /// A line that is too long.
    TooLong(u64),
    /// A line that is damaged, and why: a short stable phrase.
    Damage(u64, &'static str),
}

impl Lines {
    /// Reads from the beginning of `source` lines of at most `longest` bytes.
    ///
    /// # Errors
    /// When its first bytes cannot be read.
    pub fn new(source: Box<dyn Read + Send>, longest: usize) -> io::Result<Self> {
        Ok(Lines {
            members: Members::new(Stored::new(source), |bytes| !bytes.is_empty())?,
            longest,
            buffer: Vec::new(),
            base: 0,
            given: 0..0,
            line: 0,
            seen: 0,
            passing: false,
            damage: None,
            ended: false,
        })
    }

    /// Goes on to the next line, which may be blank; none at the end.
    ///
    /// # Errors
    /// When the source cannot be read.
    pub fn advance(&mut self) -> io::Result<Option<LineStep>> {
        loop {
            if let Some(at) = memchr(b'\n', &self.buffer[self.seen..]) {
                let line = self.line..self.seen + at;
                let offset = self.base + line.start as u64;
                (self.line, self.seen) = (line.end + 1, line.end + 1);
                if std::mem::take(&mut self.passing) {
                    continue;
                }
                if line.len() > self.longest {
                    return Ok(Some(LineStep::TooLong(offset)));
                }
                self.given = line;
                return Ok(Some(LineStep::Line(offset)));
            }
            self.seen = self.buffer.len();
            let offset = self.base + self.line as u64;
            if let Some(reason) = self.damage.take() {
                self.line = self.seen;
                self.passing = false;
                return Ok(Some(LineStep::Damage(offset, reason)));
            }
            // However much of it a step has brought, so that this depends on the line alone.
            if !self.passing && self.seen - self.line > self.longest {
                self.passing = true;
                self.line = self.seen;
                return Ok(Some(LineStep::TooLong(offset)));
            }
            if self.ended {
                self.given = self.line..self.seen;
                self.line = self.seen;
                let passing = std::mem::replace(&mut self.passing, true);
                return Ok((!passing && !self.given.is_empty()).then_some(LineStep::Line(offset)));
            }
            if self.passing {
                self.line = self.seen;
            }
            if self.line > self.buffer.len() / 2 {
                self.buffer.drain(..self.line);
                self.base += self.line as u64;
                self.seen -= self.line;
                self.line = 0;
            }
            match self.members.step(&mut self.buffer)? {
                MemberStep::Bytes | MemberStep::Start(_) => {}
                MemberStep::Damage { reason, .. } => {
                    // Lines that were whole before the damage are good; the next member begins somewhere inside
                    // another.
                    self.damage = Some(reason);
                }
                MemberStep::End => self.ended = true,
            }
        }
    }

    /// The line that [`Lines::advance`] gave last, without its LF.
    pub fn line(&self) -> &[u8] {
        &self.buffer[self.given.clone()]
    }

    /// The stored bytes taken so far.
    pub fn position(&self) -> u64 {
        self.members.position()
    }
}
