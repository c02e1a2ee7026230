//! The members of a compressed file, decoded: gzip members, zstd frames, streams of bzip2 or xz, or
//! a plain file as one member.
//!
//! Crawlers compress each record separately, so that one record can be fetched alone and damage
//! loses one record. [`Members`] decodes such a file as a stream, reports where each member begins
//! and checks every checksum. After damage it continues at the next member that decodes to an
//! acceptable beginning. That member can begin *before* the place where the decoder noticed the
//! damage (a cut member swallows the one after it), so the last [`WINDOW`] stored bytes of a member
//! stay in memory.
//!
//! The compression is recognised by magic bytes, never by the name. Of zstd's skippable frames, one
//! of magic 0x184D2A5D at the beginning of the file is the dictionary of all frames (IIPC,
//! *WARC-ZSTD*), and can itself be a zstd frame. Zero bytes between members are padding.
//!
//! A gzip member of usual size is inflated at once, from the bytes ahead directly into the caller's
//! buffer. A member that is large or damaged, or whose header has a checksum, is streamed from its
//! beginning:
//!
//! ```text
//! step:
//!     between members:  skip padding; Start(offset) if a magic number is here, else damage
//!     at a member:      inflate it at once; if that fails, stream it from its beginning
//!     inside a member:  decode one slice; at its end, be between members; on an error, damage
//! damage:               go back by at most WINDOW, then search for a magic number whose member decodes to an acceptable beginning
//! ```
//!
//! Memory: the window, plus a chunk of input or a member of usual size, plus the caller's buffer.
//! Time: linear, also for hostile files. Each damage in a row halves the window and the slice that
//! is decoded in a step, and the search for the next member reads a small multiple of the bytes
//! that it passes, so the same bytes are not decoded again and again.

use std::io;

use flate2::Decompress;
use liblzma::stream::Stream;
use memchr::memmem;
use nigh_kernels::kernels::{Inflated, Inflater};
use zstd::stream::raw::{Decoder, Operation as _};

use super::decoders::{
    Acceptable, BZIP2, DICTIONARY, DICTIONARY_MAGIC, DecoderStep, GZIP, PROBE, XZ, ZSTD, begins_gzip, begins_xz,
    begins_zstd, decode_some, dictionary_of, expand_some, inflate_some, is_bzip2, skippable, unpack_some, xz_stream,
};
use super::packing::MemberPacking;
use super::stored::Stored;
use crate::readers::item::Unread;

/// Stored bytes of a member that stay in memory, 8 MiB.
const WINDOW: u64 = 8 << 20;
/// The sizes up to which a gzip member is inflated at once: stored bytes, decoded bytes. Nearly
/// every record of a page fits the first pair.
const WHOLE: [(usize, usize); 2] = [(64 << 10, 1 << 20), (1 << 20, 8 << 20)];
/// After a member that was too large, at most this many members in a row are streamed without that
/// attempt.
const MAX_STREAMED: u32 = 64;
/// Bytes reserved in the output before each step.
const ROOM: usize = 64 << 10;
/// The search for the next member may read this many stored bytes for each byte that it passes ...
pub const SEARCH_PER_BYTE: u64 = 4;
/// ... and this many in any case.
pub const SEARCH_AT_LEAST: u64 = 4 << 20;
/// Stored bytes that a decoder receives at once, at most. Slices begin at multiples of this in a
/// member.
const SLICE: usize = 256 << 10;

/// The flag `FHCRC` of a gzip header.
const HEADER_CHECKSUM: u8 = 2;

/// The result of one step through the members of a file.
#[derive(Debug, PartialEq)]
pub enum MemberStep {
    /// A member begins at this stored offset; its bytes follow.
    Start(u64),
    /// Decoded bytes were appended.
    Bytes,
    /// The member that began at `offset` is damaged (or no member begins there); the next bytes
    /// belong to another member. The last bytes before the damage may have been appended in this
    /// step.
    Damage {
        /// Where the damaged part begins, in stored bytes.
        offset: u64,
        /// The reason of a reject.
        reason: &'static str,
    },
    /// The file has ended.
    End,
}

/// The members of one file.
pub struct Members {
    stored: Stored,
    codec: Codec,
    state: MemberState,
    acceptable: Acceptable,
    /// Damaged members in a row.
    failures: u32,
    unread: Unread,
}

enum Codec {
    Plain,
    Gzip(Gzip),
    Zstd(Decoder<'static>),
    Bzip2(Option<Box<bzip2::Decompress>>),
    Xz(Option<Stream>),
}

/// The two ways to decode a gzip member: at once or streamed.
struct Gzip {
    whole: Inflater,
    stream: Option<Box<Decompress>>,
    /// Members that are still to be streamed without an attempt to inflate them at once.
    to_stream: u32,
    /// The value that `to_stream` had after the last member that was too large; doubled each time.
    penalty: u32,
}

/// Where the next step is. The numbers are the stored offsets of members.
enum MemberState {
    Between,
    /// At the beginning of a gzip member that may be inflated at once.
    AtStart(u64),
    Inside(u64),
    Ended,
}

impl Members {
    /// Recognises the compression of `stored` by its first bytes. `acceptable` decides where to
    /// continue after damage.
    ///
    /// # Errors
    /// If the source cannot be read.
    pub fn new(mut stored: Stored, acceptable: Acceptable) -> io::Result<Self> {
        stored.need(PROBE)?;
        let codec = match kind(stored.ahead()) {
            Some(codec) => codec?,
            // Other bytes before the first member are accepted only if that member decodes to an
            // acceptable beginning.
            None if acceptable(stored.ahead()) => Codec::Plain,
            None => {
                let member = memmem::find(stored.ahead(), GZIP);
                if member.is_some_and(|start| begins_gzip(&stored.ahead()[start..], acceptable).0) {
                    gzip()
                } else {
                    Codec::Plain
                }
            }
        };
        Ok(Members::of(stored, codec, acceptable))
    }

    /// The bytes of `stored`, which are not compressed, whatever they begin with.
    pub fn of_plain(stored: Stored, acceptable: Acceptable) -> Self {
        Members::of(stored, Codec::Plain, acceptable)
    }

    /// The members of `stored`, which begins with one of them, of a file that is packed in this
    /// way.
    ///
    /// # Errors
    /// If there is no memory for a decoder.
    pub fn from_member(stored: Stored, packing: &MemberPacking, acceptable: Acceptable) -> io::Result<Self> {
        let codec = match packing {
            MemberPacking::Plain => Codec::Plain,
            MemberPacking::Gzip => gzip(),
            MemberPacking::Zstd(dictionary) => Codec::Zstd(Decoder::with_dictionary(dictionary)?),
        };
        Ok(Members::of(stored, codec, acceptable))
    }

    fn of(stored: Stored, codec: Codec, acceptable: Acceptable) -> Self {
        Members { stored, codec, state: MemberState::Between, acceptable, failures: 0, unread: Unread::default() }
    }

    /// Whether the file is not compressed.
    pub fn plain(&self) -> bool {
        matches!(self.codec, Codec::Plain)
    }

    /// Returns the number of stored bytes read from the source.
    pub fn position(&self) -> u64 {
        self.stored.position()
    }

    /// Returns the stored bytes of damaged and cut members so far.
    pub fn unread(&self) -> Unread {
        self.unread
    }

    /// Takes the next step, appending decoded bytes to `out`.
    ///
    /// # Errors
    /// If the source cannot be read. Damage is not an error but a [`MemberStep`].
    pub fn step(&mut self, out: &mut Vec<u8>) -> io::Result<MemberStep> {
        match self.state {
            MemberState::Ended => Ok(MemberStep::End),
            MemberState::Between => self.begin(),
            MemberState::AtStart(start) => {
                if self.inflate_at_once(out)? {
                    self.state = MemberState::Between;
                    return Ok(MemberStep::Bytes);
                }
                self.state = MemberState::Inside(start);
                self.stream(start, out)
            }
            MemberState::Inside(start) => self.stream(start, out),
        }
    }

    /// Begins the next member, after padding and skippable frames.
    fn begin(&mut self) -> io::Result<MemberStep> {
        loop {
            if self.stored.need(10)? == 0 {
                self.state = MemberState::Ended;
                return Ok(MemberStep::End);
            }
            let start = self.stored.offset();
            self.stored.keep_from(start);
            let ahead = self.stored.ahead();
            let padding = if self.plain() { 0 } else { ahead.iter().take_while(|&&byte| byte == 0).count() };
            if padding > 0 {
                self.stored.take(padding);
                continue;
            }
            let mut state = MemberState::Inside(start);
            let begins = match &mut self.codec {
                Codec::Plain => true,
                Codec::Gzip(gzip) if ahead.starts_with(GZIP) => {
                    gzip.stream = None;
                    if gzip.tries_at_once(ahead) && self.failures == 0 {
                        state = MemberState::AtStart(start);
                    }
                    true
                }
                Codec::Zstd(decoder) if ahead.starts_with(ZSTD) => {
                    decoder.reinit()?;
                    true
                }
                Codec::Bzip2(stream) if is_bzip2(ahead) => {
                    *stream = None;
                    true
                }
                Codec::Xz(stream) if ahead.starts_with(XZ) => {
                    *stream = None;
                    true
                }
                Codec::Zstd(_) if skippable(ahead).is_some() => {
                    if self.skip_frame(start)? {
                        continue;
                    }
                    return self.damage(start, "zstd: damaged dictionary or skippable frame");
                }
                _ => false,
            };
            if !begins {
                return self.damage(start, self.codec.unknown());
            }
            self.state = state;
            return Ok(MemberStep::Start(start));
        }
    }

    /// Inflates the gzip member that begins here at once. If it is damaged or too large, returns
    /// `false` and leaves `out` as it was.
    ///
    /// Damage, a cut member and a longer member look alike here; streaming from its beginning tells
    /// them apart.
    fn inflate_at_once(&mut self, out: &mut Vec<u8>) -> io::Result<bool> {
        let Codec::Gzip(gzip) = &mut self.codec else {
            return Ok(false);
        };
        for (stored, decoded) in WHOLE {
            let available = self.stored.need(stored)?;
            let ahead = self.stored.ahead();
            let inflated = gzip.whole.member(&ahead[..available.min(WHOLE[1].0)], decoded, out);
            if let Inflated::Member(taken) = inflated {
                self.stored.take(taken);
                gzip.penalty = 0;
                return Ok(true);
            }
            if inflated == Inflated::NoMember && available < stored {
                return Ok(false);
            }
        }
        // Without this, a file of large members would be inflated nearly twice. Damage with many
        // bytes ahead counts as a large member.
        gzip.penalty = (2 * gzip.penalty + 1).min(MAX_STREAMED);
        gzip.to_stream = gzip.penalty;
        Ok(false)
    }

    /// Decodes the next slice of the member that began at `start`.
    fn stream(&mut self, start: u64, out: &mut Vec<u8>) -> io::Result<MemberStep> {
        loop {
            let offset = self.stored.offset();
            let window = if self.plain() { 0 } else { WINDOW + SLICE as u64 };
            self.stored.keep_from(start.max(offset.saturating_sub(window)));
            let has_input = !self.stored.ahead().is_empty() || self.stored.fill()?;
            let ahead = self.stored.ahead();
            let to_slice = SLICE - ((offset - start) % SLICE as u64) as usize;
            let ahead = &ahead[..ahead.len().min(to_slice).min((SLICE >> self.failures.min(16)).max(1024))];
            out.reserve(ROOM);
            let before = out.len();
            let step = match &mut self.codec {
                Codec::Plain if !has_input => {
                    self.state = MemberState::Ended;
                    return Ok(MemberStep::End);
                }
                Codec::Plain => {
                    out.extend_from_slice(ahead);
                    Ok(DecoderStep { taken: ahead.len(), ended: false })
                }
                Codec::Gzip(gzip) => {
                    let stream = gzip.stream.get_or_insert_with(|| Box::new(Decompress::new_gzip(15)));
                    inflate_some(stream, ahead, out)
                }
                Codec::Zstd(decoder) => decode_some(decoder, ahead, out),
                Codec::Bzip2(stream) => {
                    let stream = stream.get_or_insert_with(|| Box::new(bzip2::Decompress::new(false)));
                    unpack_some(stream, ahead, out)
                }
                Codec::Xz(stream) => xz_stream(stream).and_then(|stream| expand_some(stream, ahead, out)),
            };
            let step = match step {
                Ok(step) => step,
                Err(error) if error.kind() == io::ErrorKind::OutOfMemory => {
                    return self.damage(start, "xz: a dictionary of more than 128 MiB");
                }
                Err(_) => return self.damage(start, self.codec.damaged()),
            };
            self.stored.take(step.taken);
            if step.ended {
                self.failures = 0;
                self.state = MemberState::Between;
                return Ok(MemberStep::Bytes);
            }
            if out.len() > before {
                return Ok(MemberStep::Bytes);
            }
            // The decoder produced nothing from all bytes of the file.
            if !has_input || step.taken == 0 && !self.stored.fill()? {
                return self.damage(start, self.codec.unfinished());
            }
        }
    }

    /// Moves to the next acceptable member after the damaged one that began at `start`, and returns
    /// the damage.
    fn damage(&mut self, start: u64, reason: &'static str) -> io::Result<MemberStep> {
        // The beginning of the slice of the member in which the damage is: what was decoded of that
        // slice before depends on the buffers.
        let noticed = start + (self.stored.offset() - start) / SLICE as u64 * SLICE as u64;
        let reach = WINDOW >> self.failures.min(40);
        self.failures += 1;
        let from = (start + 1).max(noticed.saturating_sub(reach));
        self.stored.go_to(from);
        self.state = MemberState::Between;
        let magic = match self.codec {
            Codec::Plain | Codec::Gzip(_) => GZIP,
            Codec::Zstd(_) => ZSTD,
            Codec::Bzip2(_) => BZIP2,
            Codec::Xz(_) => XZ,
        };
        let mut bytes_read = 0;
        loop {
            let offset = self.stored.offset();
            self.stored.keep_from(offset);
            match memmem::find(self.stored.ahead(), magic) {
                Some(index) => {
                    self.stored.take(index);
                    self.stored.need(PROBE)?;
                    let ahead = self.stored.ahead();
                    let ahead_len = ahead.len().max(1);
                    let (begins, read) = match &mut self.codec {
                        Codec::Zstd(decoder) => begins_zstd(ahead, decoder, self.acceptable),
                        // A block can be longer than what is ahead; its 80 bits of signature are
                        // enough.
                        Codec::Bzip2(_) => (is_bzip2(ahead), 64),
                        Codec::Xz(_) => begins_xz(ahead, self.acceptable),
                        Codec::Plain | Codec::Gzip(_) => begins_gzip(ahead, self.acceptable),
                    };
                    if begins {
                        break;
                    }
                    bytes_read += read;
                    let passed = self.stored.offset() - from;
                    // After many false beginnings the budget is spent: pass as many bytes as this
                    // one cost.
                    let is_spent = bytes_read > SEARCH_AT_LEAST + SEARCH_PER_BYTE * passed;
                    self.stored.take(if is_spent { (read as usize).clamp(1, ahead_len) } else { 1 });
                }
                None => {
                    let rest = self.stored.ahead().len().saturating_sub(magic.len() - 1);
                    self.stored.take(rest);
                    if !self.stored.fill()? {
                        self.state = MemberState::Ended;
                        break;
                    }
                }
            }
        }
        self.unread.bytes += match self.state {
            MemberState::Ended if reason == self.codec.unfinished() => {
                self.unread.ends_early = true;
                self.stored.position() - start
            }
            MemberState::Ended => self.stored.position() - noticed,
            // The decoder took bytes of the next member for this one's.
            _ if self.stored.offset() < noticed => self.stored.offset() - start,
            _ => self.stored.offset() - noticed,
        };
        Ok(MemberStep::Damage { offset: start, reason })
    }

    /// Passes a skippable frame, and takes the dictionary from one at the beginning of the file;
    /// returns `false` if it is damaged.
    fn skip_frame(&mut self, start: u64) -> io::Result<bool> {
        let Some((magic, length)) = skippable(self.stored.ahead()) else {
            return Ok(false);
        };
        self.stored.take(8);
        if magic == DICTIONARY_MAGIC && start == 0 {
            if length > DICTIONARY || self.stored.need(length)? < length {
                return Ok(false);
            }
            let Some(dictionary) = dictionary_of(&self.stored.ahead()[..length]) else {
                return Ok(false);
            };
            let Ok(decoder) = Decoder::with_dictionary(&dictionary) else {
                return Ok(false);
            };
            self.codec = Codec::Zstd(decoder);
            self.stored.take(length);
            return Ok(true);
        }
        let mut left = length;
        while left > 0 {
            let count = self.stored.need(1)?.min(left);
            if count == 0 {
                return Ok(false);
            }
            self.stored.take(count);
            left -= count;
            let offset = self.stored.offset();
            self.stored.keep_from(offset);
        }
        Ok(true)
    }
}

impl Codec {
    fn damaged(&self) -> &'static str {
        match self {
            Codec::Zstd(_) => "zstd: damaged frame",
            Codec::Bzip2(_) => "bzip2: damaged stream",
            Codec::Xz(_) => "xz: damaged stream",
            Codec::Plain | Codec::Gzip(_) => "gzip: damaged member",
        }
    }

    fn unfinished(&self) -> &'static str {
        match self {
            Codec::Zstd(_) => "zstd: the file ends inside a frame",
            Codec::Bzip2(_) => "bzip2: the file ends inside a stream",
            Codec::Xz(_) => "xz: the file ends inside a stream",
            Codec::Plain | Codec::Gzip(_) => "gzip: the file ends inside a member",
        }
    }

    fn unknown(&self) -> &'static str {
        match self {
            Codec::Zstd(_) => "zstd: bytes that are no frame",
            Codec::Bzip2(_) => "bzip2: bytes that are no stream",
            Codec::Xz(_) => "xz: bytes that are no stream",
            Codec::Plain | Codec::Gzip(_) => "gzip: bytes that are no member",
        }
    }
}

impl Gzip {
    /// Whether to try to inflate the member with this header at once.
    fn tries_at_once(&mut self, header: &[u8]) -> bool {
        let is_streamed = self.to_stream > 0;
        self.to_stream = self.to_stream.saturating_sub(1);
        // Only streaming checks the checksum of a header.
        !is_streamed && header.get(3).is_some_and(|flags| flags & HEADER_CHECKSUM == 0)
    }
}

fn gzip() -> Codec {
    Codec::Gzip(Gzip { whole: Inflater::default(), stream: None, to_stream: 0, penalty: 0 })
}

fn kind(bytes: &[u8]) -> Option<io::Result<Codec>> {
    if bytes.starts_with(GZIP) {
        return Some(Ok(gzip()));
    }
    if bytes.starts_with(ZSTD) || skippable(bytes).is_some() {
        return Some(Decoder::new().map(Codec::Zstd));
    }
    if is_bzip2(bytes) {
        return Some(Ok(Codec::Bzip2(None)));
    }
    bytes.starts_with(XZ).then_some(Ok(Codec::Xz(None)))
}

#[cfg(test)]
mod tests {
    use std::io::{Cursor, Write as _};

    use flate2::{Compression, Crc, GzBuilder};
    use proptest::prelude::{Just, Strategy, any, prop, prop_oneof, proptest};

    use super::*;

    /// Makes every gzip member be streamed.
    fn streaming(mut members: Members) -> Members {
        if let Codec::Gzip(gzip) = &mut members.codec {
            gzip.to_stream = u32::MAX;
        }
        members
    }

    /// Reads a file: each start, damage and end of its members, with the number and a hash of the
    /// bytes before it.
    fn read(mut members: Members) -> Vec<String> {
        let mut bytes = Vec::new();
        let mut steps = Vec::new();
        loop {
            let step = members.step(&mut bytes).unwrap();
            if step != MemberStep::Bytes {
                let hash = xxhash_rust::xxh3::xxh3_64(&bytes);
                steps.push(format!("{} {hash:x} {step:?}", bytes.len()));
                bytes.clear();
            }
            if step == MemberStep::End {
                return steps;
            }
        }
    }

    /// Asserts that a file gives the same steps whether its members are inflated at once or
    /// streamed; returns the steps.
    fn assert_same_both_ways(file: &[u8]) -> Vec<String> {
        let open = || {
            let stored = Stored::new(Box::new(Cursor::new(file.to_vec())));
            Members::new(stored, |bytes| !bytes.is_empty()).unwrap()
        };
        let steps = read(open());
        assert_eq!(steps, read(streaming(open())));
        steps
    }

    /// `length` bytes: the first `repeat` of them random, then these again and again. The smaller
    /// `repeat`, the better they compress.
    fn content(length: usize, repeat: usize) -> Vec<u8> {
        let mut state = length as u64;
        let random = std::iter::repeat_with(|| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (state >> 56) as u8
        });
        let first: Vec<u8> = random.take(repeat.min(length)).collect();
        first.into_iter().cycle().take(length).collect()
    }

    /// A gzip member with the header fields whose flag bits are set in `fields`.
    fn member(content: &[u8], fields: u8, level: u32) -> Vec<u8> {
        let mut builder = GzBuilder::new().mtime(1);
        if fields & 4 != 0 {
            builder = builder.extra(b"ab\x02\0cd".to_vec());
        }
        if fields & 8 != 0 {
            builder = builder.filename("name");
        }
        if fields & 16 != 0 {
            builder = builder.comment("a comment");
        }
        let mut gzip = builder.write(Vec::new(), Compression::new(level));
        gzip.write_all(content).unwrap();
        let mut member = gzip.finish().unwrap();
        if fields & 2 != 0 {
            let lengths = [(4, 2 + 6), (8, "name\0".len()), (16, "a comment\0".len())];
            let header =
                10 + lengths.iter().map(|(bit, length)| if fields & bit != 0 { *length } else { 0 }).sum::<usize>();
            member[3] |= 2;
            let mut crc = Crc::new();
            crc.update(&member[..header]);
            let sum = (crc.sum() as u16).to_le_bytes();
            member.splice(header..header, sum);
        }
        member
    }

    /// The shortest uncompressed member of at least `stored` stored bytes.
    fn member_of(stored: usize) -> Vec<u8> {
        let content = content(stored, usize::MAX);
        let longer = member(&content, 0, 0).len() - stored;
        (stored - 2 * longer..)
            .map(|length| member(&content[..length], 0, 0))
            .find(|member| member.len() >= stored)
            .unwrap()
    }

    #[test]
    fn members_of_sizes_around_the_limits_are_decoded_whole() {
        let small = member(b"small", 0, 6);
        let check = |large: &[u8], length: usize| {
            let file = [&small[..], large, large, &small, large].concat();
            let steps = assert_same_both_ways(&file);
            assert_eq!(steps.len(), 6, "{steps:?}");
            assert!(steps[2].starts_with(&format!("{length} ")), "{length}: {steps:?}");
            assert_same_both_ways(&file[..file.len() - 1]);
        };
        for (stored, decoded) in WHOLE {
            for by in 0..3 {
                let large = member_of(stored - 1 + by);
                let length = u32::from_le_bytes(*large.last_chunk().unwrap());
                check(&large, length as usize);
                let length = decoded - 1 + by;
                check(&member(&content(length, 1), 0, 6), length);
            }
        }
    }

    /// A stream of bzip2 or xz.
    fn stream(content: &[u8], is_xz: bool) -> Vec<u8> {
        let mut out = Vec::new();
        if is_xz {
            liblzma::write::XzEncoder::new(&mut out, 1).write_all(content).unwrap();
        } else {
            bzip2::write::BzEncoder::new(&mut out, bzip2::Compression::new(1)).write_all(content).unwrap();
        }
        out
    }

    #[test]
    fn streams_of_bzip2_and_xz_are_members_and_damage_loses_one() {
        for is_xz in [false, true] {
            let open = |file: &[u8]| {
                let stored = Stored::new(Box::new(Cursor::new(file.to_vec())));
                read(Members::new(stored, |bytes| !bytes.is_empty()).unwrap())
            };
            let (small, large) = (stream(b"small", is_xz), stream(&content(3 << 20, 500_000), is_xz));
            let steps = open(&[&small[..], &large, &small].concat());
            assert_eq!(steps.len(), 4, "{steps:?}");
            assert!(steps[2].starts_with("3145728 ") && steps[3].starts_with("5 "), "{steps:?}");

            let name = if is_xz { "xz" } else { "bzip2" };
            let cut = open(&[&small[..], &large[..large.len() / 2]].concat());
            assert!(cut[2].contains(&format!("{name}: the file ends inside a stream")), "{cut:?}");
            let garbage = open(&[&small[..], b"garbage between streams", &small].concat());
            assert!(garbage[1].contains(&format!("{name}: bytes that are no stream")), "{garbage:?}");
            assert!(garbage[3].starts_with("5 "), "{garbage:?}");
            let mut bad = large.clone();
            bad[large.len() / 2] ^= 0x10;
            let damaged = open(&[&small[..], &bad, &small].concat());
            assert!(damaged[2].contains(&format!("{name}: damaged stream")), "{damaged:?}");
            assert!(damaged.last().unwrap().starts_with("5 "), "{damaged:?}");
        }
    }

    #[test]
    fn an_xz_stream_that_claims_a_large_dictionary_is_refused() {
        let mut file = stream(b"words", true);
        // The header of the block, after that of the stream: its length in units of 4 bytes, less
        // one; the filter 0x21 with one byte for the size of the dictionary, here 1 GiB; and at its
        // end its checksum.
        let header = 12..12 + 4 * (usize::from(file[12]) + 1);
        let size = memmem::find(&file[header.clone()], &[0x21, 1]).unwrap() + 2;
        file[header.start + size] = 36;
        let mut crc = Crc::new();
        crc.update(&file[header.start..header.end - 4]);
        file[header.end - 4..header.end].copy_from_slice(&crc.sum().to_le_bytes());
        let stored = Stored::new(Box::new(Cursor::new(file)));
        let steps = read(Members::new(stored, |bytes| !bytes.is_empty()).unwrap());
        assert!(steps[1].contains("xz: a dictionary of more than 128 MiB"), "{steps:?}");
    }

    #[test]
    fn wrong_checksums_and_sizes_are_damage() {
        let good = member(b"good", 0, 6);
        for back in 1..=8 {
            let mut bad = member(b"words and words", 28, 6);
            let changed = bad.len() - back;
            bad[changed] ^= 0x10;
            let steps = assert_same_both_ways(&[&good[..], &bad, &good].concat());
            assert!(steps.iter().any(|piece| piece.contains("gzip: damaged member")), "{steps:?}");
            assert!(steps[steps.len() - 1].starts_with("4 "), "{steps:?}");
        }
        let mut bad = member(b"words and words", 2, 6);
        assert_eq!(assert_same_both_ways(&bad).len(), 2);
        bad[5] ^= 1;
        assert_same_both_ways(&bad);
    }

    /// Files of members of all kinds with other bytes between them, some bytes changed and some
    /// missing at the end; and the contents of the members, each as [`read`] writes it.
    fn mangled() -> impl Strategy<Value = (Vec<u8>, Vec<String>)> {
        let length = prop_oneof![20 => 0..2000_usize, 6 => 30_000..140_000_usize, 1 => 900_000..1_300_000_usize];
        let repeat = prop_oneof![Just(1_usize), Just(300), Just(usize::MAX)];
        let fields = prop_oneof![Just(0_u8), (0..32_u8).prop_map(|fields| fields & 30)];
        let member = (length, repeat, fields, 0..10_u32).prop_map(|(length, repeat, fields, level)| {
            let content = content(length, repeat);
            let written = format!("{} {:x}", content.len(), xxhash_rust::xxh3::xxh3_64(&content));
            (member(&content, fields, level), written)
        });
        let between =
            prop_oneof![8 => Just(Vec::new()), 1 => Just(vec![0; 9]), 1 => Just(b"\x1f\x8b\x08 garbage".to_vec())];
        let members = prop::collection::vec((member, between), 0..12);
        let changes = prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 0..4);
        let missing = prop_oneof![3 => Just(0), 1 => 0..100_usize];
        (members, changes, missing).prop_map(|(members, changes, missing)| {
            let contents = members.iter().map(|((_, written), _)| written.clone()).collect();
            let all = members.into_iter();
            let mut file: Vec<u8> = all.flat_map(|((member, _), between)| [member, between].concat()).collect();
            for (index, byte) in changes {
                if !file.is_empty() {
                    let changed = index.index(file.len());
                    file[changed] = byte;
                }
            }
            file.truncate(file.len().saturating_sub(missing));
            (file, contents)
        })
    }

    /// Asserts the same steps both ways, with one exception: a changed member that still decodes to
    /// its content. zlib refuses an incomplete set of codes that libdeflate accepts; checksum and
    /// size are right.
    fn assert_same_both_ways_or_intact(file: &[u8], contents: &[String]) {
        let open = || {
            let stored = Stored::new(Box::new(Cursor::new(file.to_vec())));
            Members::new(stored, |bytes| !bytes.is_empty()).unwrap()
        };
        let (at_once, streamed) = (read(open()), read(streaming(open())));
        let mut after = streamed.iter();
        for step in &at_once {
            let other = after.next().unwrap();
            if step != other {
                let (content, event) = step.split_at(step.match_indices(' ').nth(1).unwrap().0);
                assert!(contents.iter().any(|known| known == content), "{at_once:?} {streamed:?}");
                assert!(other.contains("gzip: damaged member"), "{at_once:?} {streamed:?}");
                let next = after.next().unwrap();
                assert!(next.starts_with("0 ") && next.ends_with(event), "{at_once:?} {streamed:?}");
            }
        }
        assert!(after.next().is_none(), "{at_once:?} {streamed:?}");
    }

    /// What is not read of a file.
    fn unread(file: &[u8]) -> (u64, bool) {
        let stored = Stored::new(Box::new(Cursor::new(file.to_vec())));
        let mut members = Members::new(stored, |bytes| !bytes.is_empty()).unwrap();
        while members.step(&mut Vec::new()).unwrap() != MemberStep::End {}
        (members.unread().bytes, members.unread().ends_early)
    }

    #[test]
    fn stored_bytes_that_are_not_read_are_counted() {
        let (a, b) = (member(&content(3000, 300), 0, 6), member(&content(5000, usize::MAX), 0, 6));
        assert_eq!(unread(&[&a[..], &b, &a].concat()), (0, false));
        // Of a member that the end of the file cuts, nothing tells how much is missing.
        for cut in [1, 9, b.len() / 2] {
            let left = b.len() - cut;
            assert_eq!(unread(&[&a[..], &b[..left]].concat()), (left as u64, true));
        }
        let mut damaged = b.clone();
        damaged[b.len() / 2..][..20].fill(0xff);
        let (bytes, ends_early) = unread(&[&a[..], &damaged, &a].concat());
        assert!(bytes > 0 && bytes <= b.len() as u64 && !ends_early, "{bytes} {ends_early}");
        assert_eq!(unread(&[&a[..], b"garbage", &a].concat()), (7, false));
        let (a, b) = (content(3000, 300), zstd::bulk::compress(&content(900_000, usize::MAX), 1).unwrap());
        let a = zstd::bulk::compress(&a, 1).unwrap();
        assert_eq!(unread(&[&a[..], &b].concat()), (0, false));
        assert_eq!(unread(&[&a[..], &b[..b.len() / 3]].concat()), (b.len() as u64 / 3, true));
    }

    proptest! {
        #[test]
        fn members_inflated_at_once_are_the_members_streamed((file, contents) in mangled()) {
            assert_same_both_ways_or_intact(&file, &contents);
        }
    }
}
