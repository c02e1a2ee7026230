//! Finds a gzip member or a zstd frame inside a file, so that a part of the file can be read by
//! itself.
//!
//! The bytes of other members can be inside a member as they are: a crawl of compressed files has
//! them in blocks that are stored. But a stored block of deflate has at most 65,535 bytes (RFC
//! 1951, section 3.2.4), and one of zstd at most 128 KiB (RFC 8878, section 3.1.1.2). So a member
//! begins where it and those after it are whole, with the checksums that they have, for more bytes
//! than that, or up to the end of the file. Members that end a stored block do not lead on to those
//! behind it: a gzip member ends with its checksum, and a record with line ends.
//!
//! Cost: the bytes that are searched, and some members for each place where one may begin. Where so
//! many places look like one and are none that this would be more than a small multiple of the
//! bytes that are passed, as many bytes are passed as each of them costs.

use std::collections::HashSet;
use std::fs::File;
use std::io;
use std::ops::Range;

use memchr::memmem;

use super::decoders::{Acceptable, PROBE};
use super::members::{SEARCH_AT_LEAST, SEARCH_PER_BYTE};
use super::packing::{MemberDecoder, MemberPacking, read_at};

/// Stored bytes that members which follow each other must have: more than a stored block can have.
const PROOF: u64 = 160 << 10;
/// Bytes that are searched at once.
const LOOK: usize = 1 << 20;
/// Stored bytes that are read at once for a proof, and bytes that are decoded at once.
const SLICE: usize = 256 << 10;
/// A member with more stored bytes proves nothing: to check it takes too long.
const LONGEST: u64 = 256 << 20;

/// The first place of a range where a member begins whose decoded bytes begin as `acceptable` says,
/// in the first `bytes` bytes of a file.
///
/// # Errors
/// If the file cannot be read.
pub fn member_start(
    file: &File,
    packing: &MemberPacking,
    bytes: u64,
    range: Range<u64>,
    acceptable: Acceptable,
) -> io::Result<Option<u64>> {
    StartSearch::new(file, packing, bytes)?.first(range, acceptable)
}

/// A search, and its buffers.
struct StartSearch<'a> {
    file: &'a File,
    /// The length of the file, whatever is appended.
    bytes: u64,
    packing: &'a MemberPacking,
    decoder: MemberDecoder,
    decoded: Vec<u8>,
    /// Some bytes of the file, and where they begin.
    window: Vec<u8>,
    window_at: u64,
    /// Bytes that were read into the window, or decoded to see how a member begins.
    bytes_read: u64,
    /// Members that are followed too early by what is none.
    disproved: HashSet<u64>,
    last_disproved: u64,
}

impl StartSearch<'_> {
    fn new<'a>(file: &'a File, packing: &'a MemberPacking, bytes: u64) -> io::Result<StartSearch<'a>> {
        Ok(StartSearch {
            file,
            bytes,
            packing,
            decoder: packing.decoder()?,
            decoded: Vec::with_capacity(SLICE),
            window: Vec::new(),
            window_at: 0,
            bytes_read: 0,
            disproved: HashSet::new(),
            last_disproved: 0,
        })
    }

    fn first(&mut self, Range { start: from, end: to }: Range<u64>, acceptable: Acceptable) -> io::Result<Option<u64>> {
        let (mut buffer, mut probe) = (vec![0; LOOK], vec![0; PROBE]);
        let mut at = from;
        let mut passed = from;
        while at < to {
            let count = self.read(&mut buffer, at)?;
            for index in memmem::find_iter(&buffer[..count], self.packing.magic()) {
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
                    self.decoder.begins(in_buffer, acceptable)
                } else {
                    let probed = self.read(&mut probe, place)?;
                    self.decoder.begins(&probe[..probed], acceptable)
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
            at += (LOOK - self.packing.magic().len() + 1) as u64;
        }
        Ok(None)
    }

    /// Whether whole members follow each other from here on, for enough bytes. If not, they become
    /// disproved.
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

    /// The end of the whole member that begins here; `None` if it is damaged or something else is
    /// here.
    fn member_end(&mut self, start: u64) -> io::Result<Option<u64>> {
        self.decoder.begin()?;
        let mut at = start;
        while at - start < LONGEST {
            self.look(at)?;
            let stored = &self.window[(at - self.window_at) as usize..];
            self.decoded.clear();
            let Ok(step) = self.decoder.decode(stored, &mut self.decoded) else { return Ok(None) };
            at += step.taken as u64;
            if step.ended {
                return Ok(Some(at));
            }
            if step.taken == 0 && self.decoded.is_empty() {
                return Ok(None);
            }
        }
        Ok(None)
    }

    /// The place of the next byte that is neither zero nor in a frame to skip; `None` at the end of
    /// the file.
    fn after_padding(&mut self, mut at: u64) -> io::Result<Option<u64>> {
        loop {
            self.look(at)?;
            let ahead = &self.window[(at - self.window_at) as usize..];
            match ahead.iter().position(|byte| *byte != 0) {
                _ if ahead.is_empty() => return Ok(None),
                Some(index) => {
                    at += index as u64;
                    let mut first = [0; 8];
                    let count = self.read(&mut first, at)?;
                    match self.packing.passed_over(&first[..count]) {
                        0 => return Ok(Some(at)),
                        // A frame that the file does not hold is none to skip, and no member
                        // either.
                        passed if passed > self.bytes - at => return Ok(Some(at)),
                        passed => at += passed,
                    }
                }
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
        read_at(self.file, &mut buffer[..room], at)
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;

    use flate2::Compression;
    use flate2::write::GzEncoder;
    use nigh_kernels::records::mix;

    use super::*;

    fn member(content: &[u8], level: u32) -> Vec<u8> {
        let mut encoder = GzEncoder::new(Vec::new(), Compression::new(level));
        encoder.write_all(content).unwrap();
        encoder.finish().unwrap()
    }

    fn noise(seed: u64, bytes: usize) -> Vec<u8> {
        (0..bytes as u64).map(|place| mix(seed << 32 | place) as u8).collect()
    }

    fn starts(bytes: &[u8], packing: &MemberPacking) -> Vec<u64> {
        let mut file = tempfile::tempfile().unwrap();
        file.write_all(bytes).unwrap();
        let mut starts = Vec::new();
        let mut from = 0;
        while let Some(start) = member_start(&file, packing, bytes.len() as u64, from..bytes.len() as u64, |bytes| {
            bytes.starts_with(b"WARC/")
        })
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
        assert!(memmem::find_iter(&file, MemberPacking::Gzip.magic()).count() > 1000, "the inner members can be seen");
        assert_eq!(starts(&file, &MemberPacking::Gzip), expected);
    }

    #[test]
    fn frames_inside_frames_are_not_taken_for_frames() {
        let frame = |content: &[u8]| zstd::bulk::compress(content, 3).unwrap();
        // So long that what they have in common makes no block worth compressing: the blocks are
        // stored.
        let inner: Vec<u8> =
            (0..240).flat_map(|seed| frame(&[b"WARC/1.0 inner ", &noise(seed, 2000)[..]].concat())).collect();
        assert!(inner.len() > 3 * (128 << 10));
        let (mut file, mut expected) = (Vec::new(), Vec::new());
        for seed in 0..60 {
            expected.push(file.len() as u64);
            let content = if seed % 5 == 2 { inner.clone() } else { noise(seed, 9000) };
            // As every record, it ends with line ends.
            file.extend(frame(&[b"WARC/1.0 outer ", &content[..], b"\r\n\r\n"].concat()));
            // A frame to skip.
            file.extend(b"\x50\x2a\x4d\x18\x04\0\0\0skip".repeat(seed as usize % 3));
        }
        let packing = MemberPacking::Zstd(Vec::new());
        assert!(memmem::find_iter(&file, packing.magic()).count() > 1000, "the inner frames can be seen");
        assert_eq!(starts(&file, &packing), expected);
    }

    #[test]
    fn a_frame_to_skip_that_is_longer_than_the_file_proves_nothing() {
        let frame = zstd::bulk::compress(b"WARC/1.0 short", 3).unwrap();
        let with = |length: u32| [&frame[..], b"\x50\x2a\x4d\x18", &length.to_le_bytes(), b"skip"].concat();
        let packing = MemberPacking::Zstd(Vec::new());
        assert_eq!(starts(&with(4), &packing), [0]);
        assert!(starts(&with(5), &packing).is_empty());
        assert!(starts(&with(u32::MAX), &packing).is_empty());
    }

    #[test]
    fn damaged_members_are_no_proof() {
        let members: Vec<Vec<u8>> =
            (0..60).map(|seed| member(&[b"WARC/1.0 ", &noise(seed, 9000)[..]].concat(), 6)).collect();
        let mut bytes = members.concat();
        let place: usize = members[..20].iter().map(Vec::len).sum();
        bytes[place + 4000] ^= 0x55;
        let found = starts(&bytes, &MemberPacking::Gzip);
        // Those that are followed by enough whole members, or by all up to the end.
        let mut place = 0;
        for (number, member) in members.iter().enumerate() {
            let to_damage: usize = members[number..20.max(number)].iter().map(Vec::len).sum();
            let is_proved = number > 20 || number < 20 && to_damage >= PROOF as usize;
            assert_eq!(found.contains(&place), is_proved, "{number}");
            place += member.len() as u64;
        }
        assert!(starts(&member(&noise(1, 100), 6), &MemberPacking::Gzip).is_empty(), "no record begins there");
        assert!(starts(b"", &MemberPacking::Gzip).is_empty());
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
            let mut search = StartSearch::new(&file, &MemberPacking::Gzip, length).unwrap();
            let found = search.first(0..length, |bytes| bytes.starts_with(b"WARC/")).unwrap();
            assert_eq!(found, None, "{number}");
            let bound = 2 * SEARCH_AT_LEAST + 2 * SEARCH_PER_BYTE * length;
            assert!(search.bytes_read < bound, "{number}: {} bytes of {length}", search.bytes_read);
            assert!(search.disproved.len() < 20_000, "{number}: {}", search.disproved.len());
        }
    }
}
