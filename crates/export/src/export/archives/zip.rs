//! Writes a zip file whose entries are stored as they are (PKWARE, *APPNOTE*, sections 4.3.7 to
//! 4.3.16), with 64-bit sizes where they are needed.
//!
//! All entries have the same date, 1980-01-01, so that the same entries give the same file.

use std::fs::File;
use std::io::{BufWriter, Read, Write};
use std::path::Path;

use flate2::Crc;
use ring::digest::{Context as Sha, SHA256};

use crate::export::revisits::hexadecimal;

/// Bytes that are read at once.
const CHUNK: usize = 1 << 18;
/// The date 1980-01-01, the first one that the format has.
const DATE: u16 = 1 << 5 | 1;
/// Names are UTF-8.
const UTF8: u16 = 1 << 11;
/// The largest number that a field of 32 bits has, which says that the number is in a field of 64
/// bits.
const MOST: u64 = u32::MAX as u64;

/// A zip file that is written.
pub(super) struct Zip<W: Write> {
    out: BufWriter<W>,
    at: u64,
    entries: Vec<WrittenEntry>,
    /// From this number on, fields of 64 bits are used.
    most: u64,
}

/// An entry that was written.
pub(super) struct WrittenEntry {
    pub(super) name: String,
    pub(super) bytes: u64,
    /// SHA-256, hexadecimal.
    pub(super) sha256: String,
    checksum: u32,
    start: u64,
}

impl<W: Write> Zip<W> {
    pub(super) fn new(out: W) -> Zip<W> {
        Zip { out: BufWriter::with_capacity(1 << 20, out), at: 0, entries: Vec::new(), most: MOST }
    }

    /// The entries so far.
    pub(super) fn entries(&self) -> &[WrittenEntry] {
        &self.entries
    }

    /// Adds a file.
    ///
    /// # Errors
    /// If it cannot be read, or has changed while it was; or the zip file cannot be written.
    pub(super) fn add_file(&mut self, name: &str, path: &Path) -> std::io::Result<()> {
        self.add(name, || File::open(path))
    }

    /// Adds some bytes.
    ///
    /// # Errors
    /// If the zip file cannot be written.
    pub(super) fn add_bytes(&mut self, name: &str, bytes: &[u8]) -> std::io::Result<()> {
        self.add(name, || Ok(bytes))
    }

    /// Reads a source twice: the checksum comes before the bytes.
    fn add<R: Read>(&mut self, name: &str, open: impl Fn() -> std::io::Result<R>) -> std::io::Result<()> {
        let (mut checksum, mut sha) = (Crc::new(), Sha::new(&SHA256));
        let bytes = each_chunk(open()?, |chunk| {
            checksum.update(chunk);
            sha.update(chunk);
            Ok(())
        })?;
        let sha256 = hexadecimal(sha.finish().as_ref());
        let entry = WrittenEntry { name: name.to_owned(), bytes, sha256, checksum: checksum.sum(), start: self.at };
        self.put(&self.local(&entry))?;
        self.put(name.as_bytes())?;
        self.put(&self.extra(&[entry.bytes, entry.bytes]))?;
        let mut again = Crc::new();
        let out = &mut self.out;
        let copied = each_chunk(open()?, |chunk| {
            again.update(chunk);
            out.write_all(chunk)
        })?;
        if (copied, again.sum()) != (entry.bytes, entry.checksum) {
            return Err(std::io::Error::other(format!("{name} changed while it was read")));
        }
        self.at += copied;
        self.entries.push(entry);
        Ok(())
    }

    /// Ends the file.
    ///
    /// # Errors
    /// If it cannot be written.
    pub(super) fn finish(mut self) -> std::io::Result<W> {
        let start = self.at;
        let table: Vec<Vec<u8>> = self.entries.iter().map(|entry| self.central(entry)).collect();
        table.iter().try_for_each(|entry| self.put(entry))?;
        let (count, length) = (self.entries.len() as u64, self.at - start);
        let is_large = count >= u64::from(u16::MAX) || start >= self.most || length >= self.most;
        if is_large {
            let end = self.at;
            let mut record = b"PK\x06\x06".to_vec();
            record.extend_from_slice(&44_u64.to_le_bytes());
            record.extend([45_u16, 45].iter().flat_map(|version| version.to_le_bytes()));
            record.extend_from_slice(&[0; 8]);
            record.extend([count, count, length, start].iter().flat_map(|number| number.to_le_bytes()));
            record.extend_from_slice(b"PK\x06\x07\0\0\0\0");
            record.extend_from_slice(&end.to_le_bytes());
            record.extend_from_slice(&1_u32.to_le_bytes());
            self.put(&record)?;
        }
        let (count, length, start) = if is_large { (u16::MAX, MOST, MOST) } else { (count as u16, length, start) };
        let mut record = b"PK\x05\x06\0\0\0\0".to_vec();
        record.extend([count, count].iter().flat_map(|count| count.to_le_bytes()));
        record.extend([length as u32, start as u32].iter().flat_map(|number| number.to_le_bytes()));
        record.extend_from_slice(&[0; 2]);
        self.put(&record)?;
        self.out.into_inner().map_err(std::io::IntoInnerError::into_error)
    }

    fn put(&mut self, bytes: &[u8]) -> std::io::Result<()> {
        self.at += bytes.len() as u64;
        self.out.write_all(bytes)
    }

    /// The header in front of an entry's bytes, without the name and the extra field.
    fn local(&self, entry: &WrittenEntry) -> Vec<u8> {
        let mut header = b"PK\x03\x04".to_vec();
        header.extend_from_slice(&self.shared(entry, self.extra(&[entry.bytes, entry.bytes]).len()));
        header
    }

    /// The entry in the table at the end.
    fn central(&self, entry: &WrittenEntry) -> Vec<u8> {
        let sizes = if entry.bytes >= self.most { vec![entry.bytes, entry.bytes] } else { Vec::new() };
        let start = Some(entry.start).filter(|start| *start >= self.most);
        let extra = self.extra(&sizes.into_iter().chain(start).collect::<Vec<_>>());
        let mut record = b"PK\x01\x02".to_vec();
        record.extend_from_slice(&45_u16.to_le_bytes());
        record.extend_from_slice(&self.shared(entry, extra.len()));
        // No comment, disk or attributes.
        record.extend_from_slice(&[0; 10]);
        record.extend_from_slice(&(if entry.start >= self.most { u32::MAX } else { entry.start as u32 }).to_le_bytes());
        record.extend_from_slice(entry.name.as_bytes());
        record.extend_from_slice(&extra);
        record
    }

    /// What both headers have: from the version that is needed to the length of the extra field.
    fn shared(&self, entry: &WrittenEntry, extra: usize) -> Vec<u8> {
        let size = if entry.bytes >= self.most { u32::MAX } else { entry.bytes as u32 };
        let version = if extra > 0 { 45_u16 } else { 20 };
        let mut fields: Vec<u8> = [version, UTF8, 0, 0, DATE].iter().flat_map(|number| number.to_le_bytes()).collect();
        fields.extend([entry.checksum, size, size].iter().flat_map(|number| number.to_le_bytes()));
        fields.extend([entry.name.len() as u16, extra as u16].iter().flat_map(|number| number.to_le_bytes()));
        fields
    }

    /// The extra field with the numbers that have no room, if one of them has none.
    fn extra(&self, numbers: &[u64]) -> Vec<u8> {
        if numbers.iter().all(|number| *number < self.most) {
            return Vec::new();
        }
        let mut field: Vec<u8> =
            [1, 8 * numbers.len() as u16].iter().flat_map(|number: &u16| number.to_le_bytes()).collect();
        field.extend(numbers.iter().flat_map(|number| number.to_le_bytes()));
        field
    }
}

/// Calls `take` with all bytes of a source, and returns their number.
fn each_chunk(mut source: impl Read, mut take: impl FnMut(&[u8]) -> std::io::Result<()>) -> std::io::Result<u64> {
    let (mut chunk, mut bytes) = (vec![0; CHUNK], 0);
    loop {
        let count = source.read(&mut chunk)?;
        if count == 0 {
            return Ok(bytes);
        }
        take(&chunk[..count])?;
        bytes += count as u64;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Reading;
    use crate::readers::{Item, list, open, wacz_entries};

    /// A response with this page.
    fn record(page: &str) -> String {
        let block = format!("HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n\r\n{page}");
        let head = "WARC/1.0\r\nWARC-Type: response\r\nWARC-Target-URI: http://a.example/";
        format!("{head}{}\r\nContent-Length: {}\r\n\r\n{block}\r\n\r\n", page.len(), block.len())
    }

    #[test]
    fn entries_are_read_as_they_were_written_with_numbers_of_32_and_64_bits() {
        for most in [MOST, 300, 0] {
            let folder = tempfile::tempdir().unwrap();
            let (path, text) = (folder.path().join("x.wacz"), folder.path().join("text"));
            std::fs::write(&text, record("one") + &record("another")).unwrap();
            let mut zip = Zip { most, ..Zip::new(File::create(&path).unwrap()) };
            zip.add_bytes("ä/empty", b"").unwrap();
            zip.add_file("archive/a.warc", &text).unwrap();
            zip.add_bytes("archive/b.warc", record("third").as_bytes()).unwrap();
            assert_eq!(zip.entries()[1].bytes, std::fs::metadata(&text).unwrap().len());
            assert_eq!(zip.entries()[0].sha256, "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
            zip.finish().unwrap();
            let names: Vec<String> = wacz_entries(&path).unwrap().into_iter().map(|entry| entry.name).collect();
            assert_eq!(names, ["ä/empty", "archive/a.warc", "archive/b.warc"], "{most}");
            let mut urls = Vec::new();
            for input in list(&[path.display().to_string()], &Reading::default()).unwrap() {
                let mut reader = open(&input, &Reading::default()).unwrap();
                while let Some(item) = reader.next().unwrap() {
                    let Item::Page(page) = item else { panic!("{item:?}") };
                    urls.extend(page.url);
                }
            }
            assert_eq!(urls, ["http://a.example/3", "http://a.example/7", "http://a.example/5"], "{most}");
        }
    }
}
