//! The places of lines in an input.

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
