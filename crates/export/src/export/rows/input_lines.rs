//! The lines of an input, as text.

use anyhow::{Context, Result};

use crate::readers::{CountedIn, Input, RawBytes};

/// What some programs write at the beginning of a text.
pub(crate) const BYTE_ORDER_MARK: &[u8] = "\u{feff}".as_bytes();

/// The number of the line that begins at a place, from 1.
///
/// # Errors
/// If the input cannot be read.
pub(crate) fn line_number(input: &Input, place: u64) -> Result<u64> {
    let (mut raw, mut number) = (RawBytes::open(input, CountedIn::Decoded)?, 1);
    loop {
        match raw.before(place).with_context(|| format!("cannot read {}", input.name))? {
            [] => return Ok(number),
            bytes => number += memchr::memchr_iter(b'\n', bytes).count() as u64,
        }
    }
}

/// The lines of an input.
pub(crate) struct InputLines {
    name: String,
    raw: RawBytes,
    /// What was read; the next line begins at `at`.
    bytes: Vec<u8>,
    at: usize,
    ended: bool,
    /// The number of the last line, from 1.
    number: u64,
}

impl InputLines {
    /// Opens an input.
    ///
    /// # Errors
    /// If it cannot be read.
    pub(crate) fn open(input: &Input) -> Result<InputLines> {
        let raw = RawBytes::open(input, CountedIn::Decoded)?;
        Ok(InputLines { name: input.name.clone(), raw, bytes: Vec::new(), at: 0, ended: false, number: 0 })
    }

    /// The next line, and its number, from 1.
    ///
    /// # Errors
    /// If the input cannot be read.
    pub(crate) fn next(&mut self) -> Result<Option<(&[u8], u64)>> {
        let mut searched = self.at;
        let end = loop {
            if let Some(end) = memchr::memchr(b'\n', &self.bytes[searched..]) {
                break searched + end + 1;
            }
            searched = self.bytes.len();
            if self.ended {
                break searched;
            }
            searched -= self.at;
            self.bytes.drain(..self.at);
            self.at = 0;
            let more = self.raw.before(u64::MAX).with_context(|| format!("cannot read {}", self.name))?;
            self.ended = more.is_empty();
            self.bytes.extend_from_slice(more);
        };
        let start = std::mem::replace(&mut self.at, end);
        let line = &self.bytes[start..end];
        // Files that were joined have the mark before later lines, too.
        let line = line.strip_prefix(BYTE_ORDER_MARK).unwrap_or(line);
        self.number += 1;
        Ok((start < end).then_some((line, self.number)))
    }
}
