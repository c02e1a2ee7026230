//! The lines of a piece of JSON Lines, not compressed.

use std::io;
use std::io::{Read as _, Seek as _, SeekFrom};
use std::ops::Range;
use std::os::unix::fs::FileExt as _;

use memchr::memchr;

use super::cuts::Cuts;
use crate::readers::item::{Nothing, Reader};
use crate::readers::opened::FromOffset;
use crate::readers::rows::jsonl::JsonlReader;
use crate::readers::streams::MemberPacking;
use crate::reading::Reading;

/// Bytes that are read at once to find the end of a line.
const LOOK: usize = 64 << 10;

/// The lines of a piece; `None` if the file is compressed.
pub(super) fn lines_of(mut cuts: Cuts, name: &str, reading: &Reading) -> io::Result<Option<Box<dyn Reader>>> {
    if !matches!(cuts.packing, MemberPacking::Plain) {
        return Ok(None);
    }
    let number = cuts.piece.number;
    let Some(start) = cuts.begin(number, line_start)? else { return Ok(Some(Box::new(Nothing))) };
    let end = cuts.next(number + 1, line_start)?.unwrap_or(cuts.bytes);
    cuts.file.seek(SeekFrom::Start(start))?;
    // A line in the middle of the file can begin with any bytes: it is no compressed file.
    let source = Box::new(cuts.file.take(end - start));
    let lines = JsonlReader::of_plain_lines(source, name, reading);
    Ok(Some(Box::new(FromOffset::new(Box::new(lines), start))))
}

/// The first place of a range where a line begins.
fn line_start(cuts: &Cuts, Range { start: from, end: to }: Range<u64>) -> io::Result<Option<u64>> {
    let mut at = from.saturating_sub(1);
    let mut buffer = vec![0; LOOK];
    while at + 1 < to {
        let count = cuts.file.read_at(&mut buffer, at)?;
        if count == 0 {
            break;
        }
        if let Some(newline) = memchr(b'\n', &buffer[..count]) {
            let start = at + newline as u64 + 1;
            return Ok((start < to).then_some(start));
        }
        at += count as u64;
    }
    Ok(None)
}
