//! Finds a record inside a plain WARC file, so that a part of the file can be read by itself.
//!
//! A record begins with a line that is a version, after a line end, if its head has a length and
//! another record, or the end of the file, follows its block. A page can have such a record inside,
//! so the reader of the part before checks that it comes to the place.
//!
//! Cost: the bytes that are searched, and a head for each line that looks like a version; of many
//! that are none, as many bytes are passed as each of them costs.

use std::fs::File;
use std::io;
use std::ops::Range;

use memchr::memmem;

use super::record::VERSION;
use super::record::parse;
use crate::readers::streams::{SEARCH_AT_LEAST, SEARCH_PER_BYTE, read_at};

/// Bytes that are searched at once.
const LOOK: usize = 1 << 20;
/// A longer head proves nothing.
const HEAD: usize = 64 << 10;
/// The most bytes of line ends between a block and the next record.
const LINE_ENDS: usize = 64;

/// The first place of a range where a record begins, in the first `bytes` bytes of a file.
///
/// # Errors
/// If the file cannot be read.
pub fn record_start(file: &File, bytes: u64, Range { start: from, end: to }: Range<u64>) -> io::Result<Option<u64>> {
    let (mut buffer, mut head) = (vec![0; LOOK], vec![0; HEAD]);
    // A record begins after a line end.
    let mut at = from.saturating_sub(1);
    let (mut passed, mut bytes_read) = (from, 0);
    while at < to {
        let count = read_in(file, bytes, &mut buffer, at)?;
        for index in memmem::find_iter(&buffer[..count], VERSION) {
            let place = at + index as u64;
            if place >= to {
                return Ok(None);
            }
            let follows_line_end = index.checked_sub(1).is_some_and(|before| buffer[before] == b'\n');
            if place < passed || !follows_line_end {
                continue;
            }
            let in_head = read_in(file, bytes, &mut head, place)?;
            bytes_read += in_head as u64;
            if is_record(file, bytes, place, &head[..in_head])? {
                return Ok(Some(place));
            }
            if bytes_read > SEARCH_AT_LEAST + SEARCH_PER_BYTE * (place - from) {
                passed = place + in_head as u64;
            }
        }
        if count < LOOK {
            return Ok(None);
        }
        // A version can be in two buffers, and the line end before it.
        at += (LOOK - VERSION.len()) as u64;
    }
    Ok(None)
}

/// Whether a record begins here whose length leads to the next one. `ahead` are the bytes from here
/// on.
fn is_record(file: &File, bytes: u64, place: u64, ahead: &[u8]) -> io::Result<bool> {
    let ends = [&b"\n\r\n"[..], b"\n\n"].map(|end| memmem::find(ahead, end).map(|index| index + end.len()));
    let Some(end) = ends.into_iter().flatten().min() else { return Ok(false) };
    let Ok(record) = parse(&ahead[..end], place) else { return Ok(false) };
    let Some(length) = record.length else { return Ok(false) };
    let block_end = (place + end as u64).saturating_add(length);
    if block_end > bytes {
        return Ok(false);
    }
    let mut after = [0; LINE_ENDS + VERSION.len()];
    let count = read_in(file, bytes, &mut after, block_end)?;
    let rest = after[..count].trim_ascii_start();
    Ok(rest.starts_with(VERSION) || rest.is_empty() && block_end + count as u64 == bytes)
}

/// As [`read_at`], as if the file had so many bytes.
fn read_in(file: &File, bytes: u64, buffer: &mut [u8], at: u64) -> io::Result<usize> {
    let room = usize::try_from(bytes.saturating_sub(at)).unwrap_or(usize::MAX).min(buffer.len());
    read_at(file, &mut buffer[..room], at)
}
