//! The table of contents with which a file ends, and files whose schema stands only there.
//!
//! Polars 2 writes files without the message of a schema, and with the dictionaries behind the
//! batches. Readers that go by the table of contents notice neither. Such a file is read as a
//! stream in the order that others have:
//!
//! ```text
//! file:   ARROW1, other bytes, messages, an end marker, a table of contents, its length, ARROW1
//! stream: ARROW1, zeros, schema, dictionaries, batches, the same end
//! ```
//!
//! The head of the schema is the table of contents, with a root before it that points to the
//! schema in there.

use std::collections::VecDeque;
use std::fs::File;
use std::io;
use std::io::{Cursor, Read};
use std::os::unix::fs::FileExt as _;

use arrow_ipc::{Footer, MessageHeader, root_as_footer};
use nigh_kernels::structures::CompactSort;
use nigh_text::contained::contained;

use crate::readers::streams::read_at;

/// The first bytes of a file, two zeros follow; and its last ones.
pub const SIGNATURE: &[u8] = b"ARROW1";
/// The first bytes of a message.
pub const MARKER: [u8; 4] = [0xff; 4];
/// The longest head of a message, and the longest table of contents, in bytes.
pub const HEAD: usize = 64 << 20;
/// The bytes behind a table of contents: its length, and the signature.
pub const TAIL: usize = 4 + SIGNATURE.len();
/// The bytes of a file that show whether it begins with a schema.
pub const FIRST: usize = 256;

/// A file whose schema stands in its table of contents only, as a stream.
pub struct OrderedFile {
    /// The stream.
    pub bytes: Box<dyn Read + Send>,
    /// Where its dictionaries and batches begin, ascending.
    pub starts: Vec<u64>,
}

/// Whether these are the first bytes of a file without a message of a schema at its beginning.
pub fn lacks_schema(first: &[u8]) -> bool {
    let Some(mut rest) = first.strip_prefix(SIGNATURE).and_then(|rest| rest.get(2..)) else { return false };
    while let Some(behind) = rest.strip_prefix(&[0_u8; 4]) {
        rest = behind;
    }
    // Before version 0.15 the marker was missing.
    let (rest, prefix) = rest.strip_prefix(&MARKER).map_or((rest, 4), |rest| (rest, 8));
    let word = |at: usize| rest.get(at..).and_then(|rest| rest.first_chunk()).map(|word| u32::from_le_bytes(*word));
    match (word(0), word(4)) {
        // A head is filled up to a multiple of eight bytes, and begins with the place of its table.
        (Some(length), Some(place)) => place >= length || (length % 8 + prefix) % 8 != 0,
        _ => false,
    }
}

/// A file as a stream, if it has no schema at its beginning; `None` if it has one, or its table of
/// contents is damaged.
///
/// # Errors
/// If it cannot be read.
pub fn ordered_arrow(file: &File) -> io::Result<Option<OrderedFile>> {
    let Some((place, end)) = end_of(file)? else { return Ok(None) };
    let mut first = vec![0; FIRST];
    let count = read_at(file, &mut first, 0)?;
    if !lacks_schema(&first[..count]) {
        return Ok(None);
    }
    let table = &end[..end.len() - TAIL];
    let parts = contents(&end, |footer| Some((schema_head(table, footer)?, messages(footer, place)?)));
    let Some((schema, messages)) = parts.flatten() else { return Ok(None) };
    let length = (schema.len() as u32).to_le_bytes();
    let begin = [SIGNATURE, &[0; 2][..], &MARKER[..], &length[..], &schema[..]].concat();
    let mut starts = Vec::with_capacity(messages.len());
    let mut next = begin.len() as u64;
    for (_, length) in &messages {
        starts.push(next);
        next += length;
    }
    let end = [&MARKER[..], &[0; 4][..], &end[..]].concat();
    let messages = FileParts { file: file.try_clone()?, parts: messages.into() };
    let bytes = Box::new(Cursor::new(begin).chain(messages).chain(Cursor::new(end)));
    Ok(Some(OrderedFile { bytes, starts }))
}

/// The head of a message of the schema that a table of contents has.
fn schema_head(table: &[u8], footer: Footer<'_>) -> Option<Vec<u8>> {
    /// Where the root has the place of the schema, counted from there.
    const PLACE: usize = 20;
    /// The bytes before the table of contents.
    const BEFORE: usize = 32;
    let place = u32::try_from(BEFORE - PLACE + footer.schema()?._tab.loc()).ok()?;
    let mut head = Vec::with_capacity(BEFORE + table.len() + 8);
    head.extend(16_u32.to_le_bytes());
    // The lengths of the list of fields and of the root; where the root has its version, the kind
    // of the message and the schema. It has no length of a body.
    head.extend([12_u16, 12, 8, 10, 4, 0].into_iter().flat_map(u16::to_le_bytes));
    // The root: it begins so many bytes behind its list of fields.
    head.extend(12_i32.to_le_bytes());
    head.extend(place.to_le_bytes());
    head.extend(footer.version().0.to_le_bytes());
    head.push(MessageHeader::Schema.0);
    head.resize(BEFORE, 0);
    head.extend_from_slice(table);
    head.resize(head.len().next_multiple_of(8), 0);
    Some(head)
}

/// Where the messages of a file begin and how long they are: its dictionaries, then its batches.
/// `None` if one is not before the place `end`, or two have bytes in common.
fn messages(footer: Footer<'_>, end: u64) -> Option<Vec<(u64, u64)>> {
    let mut messages = Vec::new();
    for blocks in [footer.dictionaries(), footer.recordBatches()].into_iter().flatten() {
        for block in blocks {
            let head = u64::try_from(block.metaDataLength()).ok()?;
            let body = u64::try_from(block.bodyLength()).ok()?;
            messages.push((u64::try_from(block.offset()).ok()?, head.checked_add(body)?));
        }
    }
    let mut ascending = messages.clone();
    ascending.sort_rows();
    let mut free = SIGNATURE.len() as u64;
    for (start, length) in ascending {
        if start < free {
            return None;
        }
        free = start.checked_add(length)?;
    }
    (free <= end).then_some(messages)
}

/// Parts of a file, by their places and lengths.
struct FileParts {
    file: File,
    parts: VecDeque<(u64, u64)>,
}

impl Read for FileParts {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        while let Some((place, left)) = self.parts.front_mut() {
            if *left == 0 {
                self.parts.pop_front();
                continue;
            }
            let most = buffer.len().min(usize::try_from(*left).unwrap_or(usize::MAX));
            let count = self.file.read_at(&mut buffer[..most], *place)?;
            *place += count as u64;
            *left -= count as u64;
            return Ok(count);
        }
        Ok(0)
    }
}

/// What `take` makes of the table of contents with which a file ends; `None` if it is damaged, or
/// there is something else than zeros before it.
pub fn contents<T>(end: &[u8], take: impl FnOnce(Footer<'_>) -> T) -> Option<T> {
    let (before, length) = end.strip_suffix(SIGNATURE)?.split_last_chunk()?;
    let start = before.len().checked_sub(u32::from_le_bytes(*length) as usize)?;
    let (zeros, table) = before.split_at(start);
    let taken = || root_as_footer(table).ok().map(take);
    if zeros.iter().all(|byte| *byte == 0) { contained(taken).ok()? } else { None }
}

/// Where the messages of a file begin, ascending, as its table of contents says.
///
/// # Errors
/// If the file cannot be read.
pub fn starts(file: &File) -> io::Result<Vec<u64>> {
    let Some((_, end)) = end_of(file)? else { return Ok(Vec::new()) };
    let starts = contents(&end, |table| {
        let blocks = [table.dictionaries(), table.recordBatches()].into_iter().flatten();
        let starts = blocks.flat_map(|blocks| blocks.into_iter().map(|block| block.offset()).collect::<Vec<_>>());
        let mut starts: Vec<u64> = starts.filter_map(|start| start.try_into().ok()).collect();
        starts.sort_rows();
        starts
    });
    Ok(starts.unwrap_or_default())
}

/// The end of a file from the place on where its table of contents begins; `None` if the file is
/// too short for the length that it says.
fn end_of(file: &File) -> io::Result<Option<(u64, Vec<u8>)>> {
    let mut tail = [0; TAIL];
    let Some(at) = file.metadata()?.len().checked_sub(TAIL as u64) else { return Ok(None) };
    file.read_exact_at(&mut tail, at)?;
    let length = tail.first_chunk().map_or(0, |length| u32::from_le_bytes(*length)) as usize;
    let Some(start) = at.checked_sub(length as u64).filter(|_| length <= HEAD) else { return Ok(None) };
    let mut end = vec![0; length + TAIL];
    file.read_exact_at(&mut end, start)?;
    Ok(Some((start, end)))
}
