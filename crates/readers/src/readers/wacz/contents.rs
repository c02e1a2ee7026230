//! The table of contents of a zip file (PKWARE, *APPNOTE*, sections 4.3.7 to 4.3.16 and 4.5.3),
//! with the 64-bit sizes of zip64.
//!
//! The table is at the end of the file. Each entry has also a header of its own, in front of its
//! bytes; of that only its length is read. Numbers are claims: every offset is checked against the
//! size of the file, and no number reserves memory beyond the table, which must be in the file and
//! at most 64 MiB long. Entries that overlap are damage: a small file could have the same bytes in
//! thousands of entries.
//!
//! Known limitation: a zip file after other bytes (a program that unpacks itself) or in several
//! parts is damage.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt as _;

use nigh_kernels::structures::CompactSort;

use super::packing;
use crate::readers::input::Packing;

/// An entry of a zip file.
#[derive(Debug, PartialEq)]
pub struct ZipEntry {
    /// Its name, with folders.
    pub name: String,
    /// The offset of its bytes in the file.
    pub start: u64,
    /// Its size in the file.
    pub packed: u64,
    /// Its size.
    pub unpacked: u64,
    /// The CRC-32 of its content.
    pub checksum: u32,
    /// How it is packed.
    pub packing: Packing,
}

/// The longest table of contents, in bytes.
const TABLE: u64 = 64 << 20;
/// The last record of a file without its comment, and the longest comment.
const END: usize = 22;
const COMMENT: usize = 65_535;
/// The length of an entry in the table without name, extra fields and comment; and of the header in
/// front of its bytes.
const CENTRAL: usize = 46;
const LOCAL: usize = 30;

const NOT_WHOLE: &str = "zip: not a whole file";
const DAMAGED: &str = "zip: damaged table of contents";

/// Reads the entries of a zip file, or returns the reason of a reject.
///
/// # Errors
/// If the file cannot be read.
pub fn read(file: &File) -> io::Result<Result<Vec<ZipEntry>, &'static str>> {
    let bytes = file.metadata()?.len();
    let tail_start = bytes.saturating_sub((END + COMMENT) as u64);
    let tail = part(file, tail_start, bytes - tail_start)?;
    let Some(end) = memchr::memmem::rfind(&tail, b"PK\x05\x06").filter(|end| tail.len() - end >= END) else {
        return Ok(Err(NOT_WHOLE));
    };
    let (mut length, mut start) = (u64::from(u32_at(&tail, end + 12)), u64::from(u32_at(&tail, end + 16)));
    if length == u64::from(u32::MAX) || start == u64::from(u32::MAX) || u16_at(&tail, end + 10) == u16::MAX {
        let locator = end.checked_sub(20).filter(|locator| tail[*locator..].starts_with(b"PK\x06\x07"));
        let record = match locator.map(|locator| u64_at(&tail, locator + 8)) {
            Some(offset) if offset.checked_add(56).is_some_and(|end| end <= bytes) => part(file, offset, 56)?,
            _ => return Ok(Err(DAMAGED)),
        };
        if !record.starts_with(b"PK\x06\x06") {
            return Ok(Err(DAMAGED));
        }
        (length, start) = (u64_at(&record, 40), u64_at(&record, 48));
    }
    if length > TABLE || start.checked_add(length).is_none_or(|end| end > bytes) {
        return Ok(Err(DAMAGED));
    }
    let table = part(file, start, length)?;
    let Some(mut entries) = entries(&table) else {
        return Ok(Err(DAMAGED));
    };
    for entry in &mut entries {
        if entry.start.checked_add(LOCAL as u64).is_none_or(|end| end > bytes) {
            return Ok(Err(DAMAGED));
        }
        let header = part(file, entry.start, LOCAL as u64)?;
        if !header.starts_with(b"PK\x03\x04") {
            return Ok(Err(DAMAGED));
        }
        entry.start += (LOCAL + usize::from(u16_at(&header, 26)) + usize::from(u16_at(&header, 28))) as u64;
    }
    let mut ranges: Vec<(u64, u64)> = entries.iter().map(|entry| (entry.start, entry.packed)).collect();
    ranges.sort_rows();
    let overlap = |pair: &[(u64, u64)]| pair[0].0.checked_add(pair[0].1).is_none_or(|end| end > pair[1].0);
    if ranges.windows(2).any(overlap) {
        return Ok(Err("zip: entries overlap"));
    }
    Ok(Ok(entries))
}

/// Parses the table; the starts of the entries are those of their headers.
fn entries(mut table: &[u8]) -> Option<Vec<ZipEntry>> {
    let mut entries = Vec::new();
    while table.starts_with(b"PK\x01\x02") && table.len() >= CENTRAL {
        let lengths = [28, 30, 32].map(|place| usize::from(u16_at(table, place)));
        let next = CENTRAL + lengths.iter().sum::<usize>();
        let name = table.get(CENTRAL..CENTRAL + lengths[0])?;
        let mut extra = table.get(CENTRAL + lengths[0]..CENTRAL + lengths[0] + lengths[1])?;
        let [mut packed, mut unpacked, mut start] = [20, 24, 42].map(|place| u64::from(u32_at(table, place)));
        while let Some((head, rest)) = extra.split_first_chunk::<4>() {
            let field = rest.get(..usize::from(u16_at(head, 2)))?;
            if u16_at(head, 0) == 1 {
                // The 64-bit numbers that the entry has no room for, in this order.
                let mut numbers = field.chunks_exact(8).map(|number| u64_at(number, 0));
                for number in [&mut unpacked, &mut packed, &mut start] {
                    if *number == u64::from(u32::MAX) {
                        *number = numbers.next()?;
                    }
                }
            }
            extra = &rest[field.len()..];
        }
        entries.push(ZipEntry {
            // Some programs write the separators of Windows, or a first part that names no folder.
            name: String::from_utf8_lossy(name).replace('\\', "/").trim_start_matches("./").to_owned(),
            start,
            packed,
            unpacked,
            checksum: u32_at(table, 16),
            packing: packing(u16_at(table, 10), u16_at(table, 8) & 1 == 1),
        });
        table = table.get(next..)?;
    }
    table.is_empty().then_some(entries)
}

/// Reads a part of the file, which must have it.
fn part(file: &File, start: u64, length: u64) -> io::Result<Vec<u8>> {
    let mut bytes = vec![0; length as usize];
    file.read_exact_at(&mut bytes, start)?;
    Ok(bytes)
}

fn u16_at(bytes: &[u8], place: usize) -> u16 {
    u64_of(bytes, place, 2) as u16
}

fn u32_at(bytes: &[u8], place: usize) -> u32 {
    u64_of(bytes, place, 4) as u32
}

fn u64_at(bytes: &[u8], place: usize) -> u64 {
    u64_of(bytes, place, 8)
}

/// Returns the little-endian number at a place.
fn u64_of(bytes: &[u8], place: usize, length: usize) -> u64 {
    bytes[place..place + length].iter().rev().fold(0, |number, byte| number << 8 | u64::from(*byte))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Reads a file with these bytes.
    fn read_bytes(bytes: &[u8]) -> Result<Vec<ZipEntry>, &'static str> {
        let file = tempfile::tempfile().unwrap();
        file.write_all_at(bytes, 0).unwrap();
        read(&file).unwrap()
    }

    fn wacz(name: &str) -> Vec<u8> {
        std::fs::read(format!("../../tests/data/formats/{name}")).unwrap()
    }

    #[test]
    fn entries_are_listed_with_and_without_64_bit_sizes() {
        for name in ["pages.wacz", "pages-zip64.wacz"] {
            let entries = read_bytes(&wacz(name)).unwrap();
            let warcs: Vec<_> = entries.iter().filter(|entry| entry.name.starts_with("archive/")).collect();
            let packings: Vec<_> = warcs.iter().map(|entry| (entry.name.as_str(), entry.packing)).collect();
            let expected = [("archive/data.warc.gz", Packing::Stored), ("archive/more.warc", Packing::Deflated)];
            assert_eq!(packings, expected, "{name}");
            assert!(entries.len() > 2 && warcs[0].packed == warcs[0].unpacked && warcs[1].packed < warcs[1].unpacked);
        }
    }

    #[test]
    fn no_changed_or_missing_byte_is_believed() {
        let whole = wacz("pages.wacz");
        let mut reasons = std::collections::BTreeSet::new();
        for length in (0..whole.len()).rev().take(200) {
            reasons.extend(read_bytes(&whole[..length]).err());
        }
        assert!(reasons.contains(NOT_WHOLE), "{reasons:?}");
        let table = memchr::memmem::find(&whole, b"PK\x01\x02").unwrap();
        for place in table..whole.len() {
            for value in [0, 1, 0x7f, 0xff] {
                let mut changed = whole.clone();
                changed[place] = value;
                reasons.extend(read_bytes(&changed).err());
            }
        }
        assert!(reasons.contains(DAMAGED) && reasons.contains("zip: entries overlap"), "{reasons:?}");
    }
}
