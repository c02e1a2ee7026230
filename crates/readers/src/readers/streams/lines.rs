//! The lines of a file, plain or compressed, with their offsets in the uncompressed stream.
//!
//! A line ends in LF or with the file. A line longer than a limit is skipped and reported. Damage
//! loses the line that it is in, with all lines of its member that are not returned yet
//! ([`Members`]); the next member begins another line.
//!
//! Memory: about twice the longest line, or a member of usual size. Time: linear.

use std::io;
use std::io::Read;
use std::ops::Range;

use memchr::memchr;

use super::members::{MemberStep, Members};
use super::stored::Stored;
use crate::readers::item::Unread;

/// The lines of one file.
pub struct LineReader {
    members: Members,
    /// The longest line that is returned, in bytes.
    longest: usize,
    buffer: Vec<u8>,
    /// Offset in the uncompressed stream of `buffer[0]`.
    base: u64,
    /// The line returned last, in `buffer`.
    current: Range<usize>,
    /// Index in `buffer` of the next line.
    next: usize,
    /// Index in `buffer` before which the next line has no newline.
    searched: usize,
    /// Whether the next line is being skipped up to its newline: it is too long and was reported.
    skipping: bool,
    /// The reason of damage at the end of `buffer`, until it is reported.
    damage: Option<&'static str>,
    ended: bool,
}

/// The next line of a file, or why it is missing, with its offset.
#[derive(Debug, PartialEq)]
pub enum LineStep {
    /// A line: its bytes are [`LineReader::line`].
    Line(u64),
    /// A line that is too long.
    TooLong(u64),
    /// A damaged line and those behind it, with the reason of their reject.
    Damage(u64, &'static str),
}

impl LineReader {
    /// Makes the lines of `source`, each of at most `longest` bytes.
    ///
    /// # Errors
    /// If the first bytes cannot be read.
    pub fn new(source: Box<dyn Read + Send>, longest: usize) -> io::Result<Self> {
        Ok(LineReader::of(Members::new(Stored::new(source), |bytes| !bytes.is_empty())?, longest))
    }

    /// The lines of a part of a file that is not compressed.
    pub fn of_plain(source: Box<dyn Read + Send>, longest: usize) -> Self {
        LineReader::of(Members::of_plain(Stored::new(source), |bytes| !bytes.is_empty()), longest)
    }

    fn of(members: Members, longest: usize) -> Self {
        LineReader {
            members,
            longest,
            buffer: Vec::new(),
            base: 0,
            current: 0..0,
            next: 0,
            searched: 0,
            skipping: false,
            damage: None,
            ended: false,
        }
    }

    /// Advances to the next line, which may be blank; returns `None` at the end.
    ///
    /// # Errors
    /// If the source cannot be read.
    pub fn advance(&mut self) -> io::Result<Option<LineStep>> {
        loop {
            if let Some(index) = memchr(b'\n', &self.buffer[self.searched..]) {
                let line = self.next..self.searched + index;
                let offset = self.base + line.start as u64;
                (self.next, self.searched) = (line.end + 1, line.end + 1);
                if std::mem::take(&mut self.skipping) {
                    continue;
                }
                if line.len() > self.longest {
                    return Ok(Some(LineStep::TooLong(offset)));
                }
                self.current = line;
                return Ok(Some(LineStep::Line(offset)));
            }
            self.searched = self.buffer.len();
            let offset = self.base + self.next as u64;
            if let Some(reason) = self.damage.take() {
                self.next = self.searched;
                self.skipping = false;
                return Ok(Some(LineStep::Damage(offset, reason)));
            }
            // The same limit as above, so that the result does not depend on how many bytes a step
            // appended.
            if !self.skipping && self.searched - self.next > self.longest {
                self.skipping = true;
                self.next = self.searched;
                return Ok(Some(LineStep::TooLong(offset)));
            }
            if self.ended {
                self.current = self.next..self.searched;
                self.next = self.searched;
                let skipping = std::mem::replace(&mut self.skipping, true);
                return Ok((!skipping && !self.current.is_empty()).then_some(LineStep::Line(offset)));
            }
            if self.skipping {
                self.next = self.searched;
            }
            if self.next > self.buffer.len() / 2 {
                self.buffer.drain(..self.next);
                self.base += self.next as u64;
                self.searched -= self.next;
                self.next = 0;
            }
            match self.members.step(&mut self.buffer)? {
                MemberStep::Bytes | MemberStep::Start(_) => {}
                // Whole lines before the damage are returned first.
                MemberStep::Damage { reason, .. } => self.damage = Some(reason),
                MemberStep::End => self.ended = true,
            }
        }
    }

    /// Returns the line that [`LineReader::advance`] found last, without its LF.
    pub fn line(&self) -> &[u8] {
        &self.buffer[self.current.clone()]
    }

    /// Returns the stored bytes that could not be read so far.
    pub fn unread(&self) -> Unread {
        self.members.unread()
    }

    /// Returns the number of stored bytes read so far.
    pub fn position(&self) -> u64 {
        self.members.position()
    }
}
