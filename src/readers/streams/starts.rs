//! Finds a gzip member inside a file, so that a part of the file can be read by itself.
//!
//! The bytes of other members can be inside a member as they are: a crawl of compressed files has them in stored blocks of deflate. But a stored
//! block has at most 65,535 bytes (RFC 1951, section 3.2.4). So a member begins where it and those after it are whole, with their
//! checksums, for more bytes than that, or up to the end of the file.
//!
//! Cost: the bytes that are searched, and some members for each place where one may begin. Where so many places look like one and are none
//! that this would be more than a small multiple of the bytes that are passed, as many bytes are passed as each of them costs.

use std::collections::HashSet;
use std::fs::File;
use std::io;
use std::ops::Range;
use std::os::unix::fs::FileExt as _;

use flate2::{Decompress, FlushDecompress, Status};
use memchr::memmem;

use super::members::{Acceptable, GZIP, PROBE, SEARCH_AT_LEAST, SEARCH_PER_BYTE, begins_gzip};

/// Stored bytes that members which follow each other must have: more than a stored block of deflate can have.
const PROOF: u64 = 128 << 10;
/// Bytes that are searched at once.
const LOOK: usize = 1 << 20;
/// Stored bytes that are read at once for a proof, and decoded bytes that are inflated at once.
const SLICE: usize = 256 << 10;
/// A member with more stored bytes proves nothing: to check it takes too long.
const LONGEST: u64 = 256 << 20;

/// The first place of a range where a gzip member begins whose decoded bytes begin as `acceptable` says, in the first `bytes` bytes of a file.
///
/// # Errors
/// If the file cannot be read.
pub fn member_start(file: &File, bytes: u64, range: Range<u64>, acceptable: Acceptable) -> io::Result<Option<u64>> {
    StartSearch::new(file, bytes).first(range, acceptable)
}

/// A search, and its buffers.
struct StartSearch<'a> {
    file: &'a File,
    /// The length of the file, whatever is appended.
    bytes: u64,
    stream: Decompress,
    decoded: Vec<u8>,
    /// Some bytes of the file, and where they begin.
    window: Vec<u8>,
    window_at: u64,
    /// Bytes that were read into the window, or inflated to see how a member begins.
    bytes_read: u64,
    /// Members that are followed too early by what is none.
    disproved: HashSet<u64>,
    last_disproved: u64,
}

impl StartSearch<'_> {
    fn new(file: &File, bytes: u64) -> StartSearch<'_> {
        StartSearch {
            file,
            bytes,
            stream: Decompress::new_gzip(15),
            decoded: vec![0; SLICE],
            window: Vec::new(),
            window_at: 0,
            bytes_read: 0,
            disproved: HashSet::new(),
            last_disproved: 0,
        }
    }

    fn first(&mut self, Range { start: from, end: to }: Range<u64>, acceptable: Acceptable) -> io::Result<Option<u64>> {
        let (mut buffer, mut probe) = (vec![0; LOOK], vec![0; PROBE]);
        let mut at = from;
        let mut passed = from;
        while at < to {
            let count = self.read(&mut buffer, at)?;
            for index in memmem::find_iter(&buffer[..count], GZIP) {
                let place = at + index as u64;
                if place >= to {
                    return Ok(None);
                }
                if place > self.last_disproved {
                    self.disproved.clear();
                }
                if place < passed || self.disproved.contains(&place) {
                    continue;
                }
                let before = self.bytes_read;
                let in_buffer = &buffer[index..count];
                let (begins, read) = if in_buffer.len() >= PROBE {
                    begins_gzip(in_buffer, acceptable)
                } else {
                    let probed = self.read(&mut probe, place)?;
                    begins_gzip(&probe[..probed], acceptable)
                };
                self.bytes_read += read;
                if begins && self.is_proved(place)? {
                    return Ok(Some(place));
                }
                if self.bytes_read > SEARCH_AT_LEAST + SEARCH_PER_BYTE * (place - from) {
                    passed = place + (self.bytes_read - before);
                }
            }
            if count < LOOK {
                return Ok(None);
            }
            at += (LOOK - GZIP.len() + 1) as u64;
        }
        Ok(None)
    }

    /// Whether whole members follow each other from here on, for enough bytes. If not, they become disproved.
    fn is_proved(&mut self, place: u64) -> io::Result<bool> {
        let mut at = place;
        let mut followed = vec![place];
        loop {
            let end = if self.disproved.contains(&at) { None } else { self.member_end(at)? };
            let Some(end) = end else {
                self.last_disproved = self.last_disproved.max(at);
                self.disproved.extend(followed);
                return Ok(false);
            };
            if end - place >= PROOF {
                return Ok(true);
            }
            let Some(next) = self.after_padding(end)? else { return Ok(true) };
            followed.push(next);
            at = next;
        }
    }

    /// The end of the whole member that begins here; `None` if it is damaged or something else is here.
    fn member_end(&mut self, start: u64) -> io::Result<Option<u64>> {
        self.stream = Decompress::new_gzip(15);
        let mut at = start;
        while at - start < LONGEST {
            self.look(at)?;
            let stored = &self.window[(at - self.window_at) as usize..];
            let before = (self.stream.total_in(), self.stream.total_out());
            let status = self.stream.decompress(stored, &mut self.decoded, FlushDecompress::None);
            at = start + self.stream.total_in();
            match status {
                Ok(Status::StreamEnd) => return Ok(Some(at)),
                Err(_) => return Ok(None),
                Ok(_) if (self.stream.total_in(), self.stream.total_out()) == before => return Ok(None),
                Ok(_) => {}
            }
        }
        Ok(None)
    }

    /// The place of the next byte that is not zero; `None` at the end of the file.
    fn after_padding(&mut self, mut at: u64) -> io::Result<Option<u64>> {
        loop {
            self.look(at)?;
            let ahead = &self.window[(at - self.window_at) as usize..];
            match ahead.iter().position(|byte| *byte != 0) {
                _ if ahead.is_empty() => return Ok(None),
                Some(index) => return Ok(Some(at + index as u64)),
                None => at += ahead.len() as u64,
            }
        }
    }

    /// Makes the window have the bytes from a place on: at least one, unless the file ends there.
    fn look(&mut self, at: u64) -> io::Result<()> {
        if (self.window_at..self.window_at + self.window.len() as u64).contains(&at) {
            return Ok(());
        }
        let mut window = std::mem::take(&mut self.window);
        window.resize(SLICE, 0);
        let count = self.read(&mut window, at)?;
        window.truncate(count);
        (self.window, self.window_at) = (window, at);
        self.bytes_read += count as u64;
        Ok(())
    }

    /// Reads as much as there is room for, or up to the end of the file.
    fn read(&self, buffer: &mut [u8], at: u64) -> io::Result<usize> {
        let room = usize::try_from(self.bytes.saturating_sub(at)).unwrap_or(usize::MAX).min(buffer.len());
        let mut filled = 0;
        while filled < room {
            match self.file.read_at(&mut buffer[filled..room], at + filled as u64) {
                Ok(0) => break,
                Ok(count) => filled += count,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        Ok(filled)
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;

    use flate2::Compression;
    use flate2::write::GzEncoder;

    use super::*;
    use crate::records::mix;

    fn member(content: &[u8], level: u32) -> Vec<u8> {
        let mut encoder = GzEncoder::new(Vec::new(), Compression::new(level));
        encoder.write_all(content).unwrap();
        encoder.finish().unwrap()
    }

    fn noise(seed: u64, bytes: usize) -> Vec<u8> {
        (0..bytes as u64).map(|place| mix(seed << 32 | place) as u8).collect()
    }

    fn starts(bytes: &[u8]) -> Vec<u64> {
        let mut file = tempfile::tempfile().unwrap();
        file.write_all(bytes).unwrap();
        let mut starts = Vec::new();
        let mut from = 0;
        while let Some(start) =
            member_start(&file, bytes.len() as u64, from..bytes.len() as u64, |bytes| bytes.starts_with(b"WARC/"))
                .unwrap()
        {
            starts.push(start);
            from = start + 1;
        }
        starts
    }

    #[test]
    fn members_inside_members_are_not_taken_for_members() {
        let inner: Vec<u8> =
            (0..900).flat_map(|seed| member(&[b"WARC/1.0 inner ", &noise(seed, 200)[..]].concat(), 6)).collect();
        assert!(inner.len() > 3 * 65_536);
        let (mut file, mut expected) = (Vec::new(), Vec::new());
        for seed in 0..40 {
            expected.push(file.len() as u64);
            // Level 0 has stored blocks: the inner members are in the file as they are.
            let content = if seed % 5 == 2 { inner.clone() } else { noise(seed, 9000) };
            file.extend(member(&[b"WARC/1.0 outer ", &content[..]].concat(), u32::from(seed % 5 != 2)));
            file.extend(vec![0; seed as usize % 3]);
        }
        assert!(memmem::find_iter(&file, GZIP).count() > 1000, "the inner members can be seen");
        assert_eq!(starts(&file), expected);
    }

    #[test]
    fn damaged_members_are_no_proof() {
        let members: Vec<Vec<u8>> =
            (0..60).map(|seed| member(&[b"WARC/1.0 ", &noise(seed, 9000)[..]].concat(), 6)).collect();
        let mut bytes = members.concat();
        let place: usize = members[..20].iter().map(Vec::len).sum();
        bytes[place + 4000] ^= 0x55;
        let found = starts(&bytes);
        // Those that are followed by enough whole members, or by all up to the end.
        let mut place = 0;
        for (number, member) in members.iter().enumerate() {
            let to_damage: usize = members[number..20.max(number)].iter().map(Vec::len).sum();
            let is_proved = number > 20 || number < 20 && to_damage >= PROOF as usize;
            assert_eq!(found.contains(&place), is_proved, "{number}");
            place += member.len() as u64;
        }
        assert!(starts(&member(&noise(1, 100), 6)).is_empty(), "no record begins there");
        assert!(starts(b"").is_empty());
    }

    #[test]
    fn a_search_reads_a_small_multiple_of_what_it_passes() {
        let tiny = member(b"WARC/", 6);
        let unit = [tiny.repeat((120 << 10) / tiny.len()), b"junk".to_vec()].concat();
        let unfinished = member(&[b"WARC/1.0 ", &noise(1, 9000)[..]].concat(), 6);
        let mut damaged = member(&[b"WARC/1.0 ", &noise(1, 9 << 20)[..]].concat(), 0);
        damaged[8 << 20] ^= 1;
        let files =
            [unit.repeat(40), unfinished[..40].repeat(100_000), [0x1f, 0x8b, 8, 0].repeat(1 << 20), damaged.repeat(2)];
        for (number, bytes) in files.iter().enumerate() {
            let mut file = tempfile::tempfile().unwrap();
            file.write_all(bytes).unwrap();
            let length = bytes.len() as u64;
            let mut search = StartSearch::new(&file, length);
            let found = search.first(0..length, |bytes| bytes.starts_with(b"WARC/")).unwrap();
            assert_eq!(found, None, "{number}");
            let bound = 2 * SEARCH_AT_LEAST + 2 * SEARCH_PER_BYTE * length;
            assert!(search.bytes_read < bound, "{number}: {} bytes of {length}", search.bytes_read);
            assert!(search.disproved.len() < 20_000, "{number}: {}", search.disproved.len());
        }
    }
}
