//! The lines of an input of JSON Lines, as they are, for those who read other fields than a page
//! has.

use std::io;

use anyhow::Context as _;

use crate::readers::input::Input;
use crate::readers::item::Unread;
use crate::readers::rows::jsonl::longest;
use crate::readers::streams::{LineReader, LineStep};
use crate::reading::Reading;

/// The lines of an input, plain or compressed.
pub struct JsonLines {
    lines: LineReader,
    name: String,
    /// The number of the last line, from 1.
    number: u64,
}

impl JsonLines {
    /// Opens an input; a line has at most `longest` bytes.
    ///
    /// # Errors
    /// If it cannot be read.
    pub fn open(input: &Input, longest: usize) -> anyhow::Result<JsonLines> {
        let source = super::source::source(&input.name, input.bytes, &input.place)?;
        let lines = LineReader::new(source, longest).with_context(|| format!("cannot read {}", input.name))?;
        Ok(JsonLines { lines, name: input.name.clone(), number: 0 })
    }

    /// Opens an input whose lines are as long as a run takes them.
    ///
    /// # Errors
    /// As [`JsonLines::open`].
    pub fn of_documents(input: &Input, reading: &Reading) -> anyhow::Result<JsonLines> {
        JsonLines::open(input, longest(&input.reading(reading)))
    }

    /// The number of the last line, from 1, among those before any damage.
    pub fn number(&self) -> u64 {
        self.number
    }

    /// Returns what could not be read so far.
    pub fn unread(&self) -> Unread {
        self.lines.unread()
    }

    /// The next line that is not blank, without white space around it; or why there is none where
    /// one begins.
    ///
    /// # Errors
    /// If the input cannot be read.
    pub fn line(&mut self) -> anyhow::Result<Option<Result<&[u8], &'static str>>> {
        loop {
            let step: io::Result<Option<LineStep>> = self.lines.advance();
            self.number += 1;
            match step.with_context(|| format!("cannot read {}", self.name))? {
                None => return Ok(None),
                Some(LineStep::TooLong(_)) => return Ok(Some(Err("line too long for max-page-bytes"))),
                Some(LineStep::Damage(_, reason)) => return Ok(Some(Err(reason))),
                Some(LineStep::Line(_)) if self.lines.line().trim_ascii().is_empty() => {}
                Some(LineStep::Line(_)) => break,
            }
        }
        let line = self.lines.line().trim_ascii();
        Ok(Some(Ok(line.strip_prefix(b"\xef\xbb\xbf").unwrap_or(line))))
    }
}
