//! The bytes of an input, in order, for those who copy some of its records.

use std::io;
use std::io::Read;

use anyhow::Context as _;

use crate::readers::input::{Format, Input};
use crate::readers::item::CountedIn;
use crate::readers::streams::{MemberStep, Members, Stored};

/// Bytes that are read from a stored input at once.
const CHUNK: usize = 256 << 10;

/// The bytes of an input, as the places of its items count them: from the place of one to that of
/// the next they are its own.
pub struct RawBytes {
    source: RawSource,
    /// Bytes that were read and not yet handed on, from `next` on.
    buffer: Vec<u8>,
    next: usize,
    /// The place of `buffer[next]`.
    at: u64,
}

enum RawSource {
    Stored(Box<dyn Read + Send>),
    Decoded(Box<Members>),
    Ended,
}

impl RawBytes {
    /// Opens an input whose places are counted in stored or in decoded bytes.
    ///
    /// # Errors
    /// If it cannot be read.
    pub fn open(input: &Input, counted_in: CountedIn) -> anyhow::Result<RawBytes> {
        let source = super::source::source(&input.name, input.bytes, &input.place)?;
        let source = match counted_in {
            CountedIn::Stored | CountedIn::Shared => RawSource::Stored(source),
            CountedIn::Decoded => {
                let members = Members::new(Stored::new(source), input.format.reader().acceptable());
                let members = members.with_context(|| format!("cannot read {}", input.name))?;
                // The bytes that the reader of the items has.
                RawSource::Decoded(Box::new(match input.format.dialect() {
                    Some(dialect) => members.sparing(dialect.spared()),
                    None => members,
                }))
            }
        };
        Ok(RawBytes { source, buffer: Vec::new(), next: 0, at: 0 })
    }

    /// The place of the next byte.
    pub fn place(&self) -> u64 {
        self.at
    }

    /// Returns the next bytes without taking them; none at the end.
    ///
    /// # Errors
    /// If the input cannot be read.
    pub fn peek(&mut self) -> io::Result<&[u8]> {
        self.fill(u64::MAX)?;
        Ok(&self.buffer[self.next..])
    }

    /// Returns the next bytes, of those before the place `end`; none if there is none before it.
    ///
    /// # Errors
    /// If the input cannot be read.
    pub fn before(&mut self, end: u64) -> io::Result<&[u8]> {
        self.fill(end)?;
        let from = self.next;
        let wanted = usize::try_from(end.saturating_sub(self.at)).unwrap_or(usize::MAX);
        self.next += wanted.min(self.buffer.len() - from);
        self.at += (self.next - from) as u64;
        Ok(&self.buffer[from..self.next])
    }

    /// Reads bytes, if there are none and the place `end` is not reached.
    fn fill(&mut self, end: u64) -> io::Result<()> {
        while self.next == self.buffer.len() && self.at < end {
            self.buffer.clear();
            self.next = 0;
            match &mut self.source {
                RawSource::Stored(source) => {
                    self.buffer.resize(CHUNK, 0);
                    let count = source.read(&mut self.buffer)?;
                    self.buffer.truncate(count);
                    if count == 0 {
                        self.source = RawSource::Ended;
                    }
                }
                RawSource::Decoded(members) => {
                    if members.step(&mut self.buffer)? == MemberStep::End {
                        self.source = RawSource::Ended;
                    }
                }
                RawSource::Ended => break,
            }
        }
        Ok(())
    }
}

/// The decoded bytes of a record that is stored as `stored`, of an input of this format.
///
/// # Errors
/// If they are damaged.
pub fn decoded(stored: Vec<u8>, format: Format) -> io::Result<Vec<u8>> {
    let stored = Stored::new(Box::new(io::Cursor::new(stored)));
    let mut members = Members::new(stored, format.reader().acceptable())?;
    let mut bytes = Vec::new();
    loop {
        match members.step(&mut bytes)? {
            MemberStep::Bytes | MemberStep::Start(_) => {}
            MemberStep::Damage { reason, .. } => return Err(io::Error::new(io::ErrorKind::InvalidData, reason)),
            MemberStep::End => return Ok(bytes),
        }
    }
}
