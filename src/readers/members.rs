//! The members of a compressed file: gzip members, zstd frames, or a plain file as one member.
//!
//! Crawls compress every record by itself, so that one record can be fetched and one bad record lost. [`Members`] inflates
//! such a file as a stream, says where each member begins, checks every checksum, and after damage goes on at the next
//! member that decodes to an acceptable beginning. That one may begin *before* the point where inflating noticed the damage
//! (a cut member swallows its successor), so the last [`WINDOW`] stored bytes of a member stay reachable.
//!
//! The kind is found by its magic bytes, never by a name. Of zstd's skippable frames the leading one of magic 0x184D2A5D is
//! the dictionary of all frames (IIPC, *WARC-ZSTD*), itself perhaps a zstd frame. Zero bytes between members are padding.
//!
//! Memory: the window, a chunk of input, and whatever the caller keeps. Time: linear; each damage in a row halves the window
//! and what is inflated at once, and what is looked at to find the next member is a small multiple of what is passed, so that
//! hostile files cannot make the same bytes be inflated over and over.

use std::io;

use flate2::{Decompress, FlushDecompress, Status};
use memchr::memmem;
use zstd::stream::raw::{Decoder, InBuffer, Operation, OutBuffer};

use super::stored::Stored;

/// Stored bytes of a member that stay reachable, 8 MiB.
const WINDOW: u64 = 8 << 20;
/// Room made for decoded bytes before each step.
const ROOM: usize = 64 << 10;
/// Stored bytes looked at to judge whether a member begins here: a gzip header and its first block's tables, a zstd block.
const PROBE: usize = 132 << 10;
/// Stored bytes that may be looked at again for each byte passed while looking for the next member.
const AGAIN: u64 = 4;
/// Stored bytes that may be looked at again whatever was passed.
const AGAIN_AT_LEAST: u64 = 4 << 20;
/// Decoded bytes to judge it by.
const BEGINNING: usize = 64;
/// Stored bytes given to a decoder at once.
const SLICE: usize = 256 << 10;
/// The largest dictionary taken from a skippable frame.
const DICTIONARY: usize = 64 << 20;

const GZIP: &[u8] = &[0x1f, 0x8b, 0x08];
const ZSTD: &[u8] = &[0x28, 0xb5, 0x2f, 0xfd];

/// One step through the members of a file.
#[derive(Debug, PartialEq)]
pub enum Piece {
    /// A member begins at this stored offset; its bytes follow.
    Start(u64),
    /// Decoded bytes were appended.
    Bytes,
    /// The member that began at `offset` is damaged (or no member begins there); what follows belongs to another. The last
    /// bytes before the damage may have been appended.
    Damage {
        /// Where the damaged part begins, in stored bytes.
        offset: u64,
        /// What is wrong, as a short stable phrase.
        reason: &'static str,
    },
    /// The file has ended.
    End,
}

/// Whether decoded bytes can be the beginning of a member, judged after damage.
pub type Acceptable = fn(&[u8]) -> bool;

/// A file as the sequence of its members.
pub struct Members {
    stored: Stored,
    codec: Codec,
    place: Place,
    acceptable: Acceptable,
    dictionary: Vec<u8>,
    /// Damages since the last member that ended well.
    failures: u32,
}

enum Codec {
    Plain,
    Gzip(Box<Decompress>),
    Zstd(Decoder<'static>),
}

enum Place {
    Between,
    Inside(u64),
    Ended,
}

/// What one call of a decoder did.
struct Step {
    taken: usize,
    ended: bool,
}

impl Members {
    /// Looks at the first bytes and gets ready to read the members of `stored`.
    ///
    /// # Errors
    /// When the source cannot be read.
    pub fn new(mut stored: Stored, acceptable: Acceptable) -> io::Result<Self> {
        stored.need(PROBE)?;
        let codec = match kind(stored.ahead()) {
            Some(codec) => codec?,
            // Garbage before the first member: only when what follows it decodes to something acceptable.
            None if acceptable(stored.ahead()) => Codec::Plain,
            None => {
                let found = memmem::find(stored.ahead(), GZIP);
                match found.is_some_and(|at| begins_gzip(&stored.ahead()[at..], acceptable).0) {
                    true => gzip(),
                    false => Codec::Plain,
                }
            }
        };
        Ok(Members { stored, codec, place: Place::Between, acceptable, dictionary: Vec::new(), failures: 0 })
    }

    /// Whether the file is stored as it is.
    pub fn plain(&self) -> bool {
        matches!(self.codec, Codec::Plain)
    }

    /// Gives the number of stored bytes that came from the source.
    pub fn position(&self) -> u64 {
        self.stored.position()
    }

    /// Takes the next step, appending decoded bytes to `out`.
    ///
    /// # Errors
    /// When the source cannot be read. Damage is not an error but a [`Piece`].
    pub fn step(&mut self, out: &mut Vec<u8>) -> io::Result<Piece> {
        match self.place {
            Place::Ended => Ok(Piece::End),
            Place::Between => self.begin(),
            Place::Inside(start) => self.inside(start, out),
        }
    }

    fn begin(&mut self) -> io::Result<Piece> {
        loop {
            if self.stored.need(8)? == 0 {
                self.place = Place::Ended;
                return Ok(Piece::End);
            }
            let start = self.stored.offset();
            self.stored.keep_from(start);
            let ahead = self.stored.ahead();
            let padding = if self.plain() { 0 } else { ahead.iter().take_while(|&&byte| byte == 0).count() };
            if padding > 0 {
                self.stored.take(padding);
                continue;
            }
            let begins = match &mut self.codec {
                Codec::Plain => true,
                Codec::Gzip(inflate) if ahead.starts_with(GZIP) => {
                    **inflate = Decompress::new_gzip(15);
                    true
                }
                Codec::Zstd(decoder) if ahead.starts_with(ZSTD) => {
                    decoder.reinit()?;
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
            self.place = Place::Inside(start);
            return Ok(Piece::Start(start));
        }
    }

    fn inside(&mut self, start: u64, out: &mut Vec<u8>) -> io::Result<Piece> {
        loop {
            let here = self.stored.offset();
            let window = if self.plain() { 0 } else { WINDOW };
            self.stored.keep_from(start.max(here.saturating_sub(window)));
            let more = !self.stored.ahead().is_empty() || self.stored.fill()?;
            let ahead = self.stored.ahead();
            let ahead = &ahead[..ahead.len().min((SLICE >> self.failures.min(16)).max(1024))];
            out.reserve(ROOM);
            let before = out.len();
            let step = match &mut self.codec {
                Codec::Plain if !more => {
                    self.place = Place::Ended;
                    return Ok(Piece::End);
                }
                Codec::Plain => {
                    out.extend_from_slice(ahead);
                    Ok(Step { taken: ahead.len(), ended: false })
                }
                Codec::Gzip(inflate) => inflate_some(inflate, ahead, out),
                Codec::Zstd(decoder) => decode_some(decoder, ahead, out),
            };
            let Ok(step) = step else {
                return self.damage(start, self.codec.damaged());
            };
            self.stored.take(step.taken);
            if step.ended {
                self.failures = 0;
                self.place = Place::Between;
                return Ok(Piece::Bytes);
            }
            if out.len() > before {
                return Ok(Piece::Bytes);
            }
            // Nothing came of all that there is.
            if !more || step.taken == 0 && !self.stored.fill()? {
                return self.damage(start, self.codec.unfinished());
            }
        }
    }

    /// Goes on at the next acceptable member after the damaged one that began at `start`.
    fn damage(&mut self, start: u64, reason: &'static str) -> io::Result<Piece> {
        let reach = WINDOW >> self.failures.min(40);
        self.failures += 1;
        let from = (start + 1).max(self.stored.offset().saturating_sub(reach));
        self.stored.go_to(from);
        self.place = Place::Between;
        let magic = if matches!(self.codec, Codec::Zstd(_)) { ZSTD } else { GZIP };
        let mut looked_at = 0;
        loop {
            let here = self.stored.offset();
            self.stored.keep_from(here);
            match memmem::find(self.stored.ahead(), magic) {
                Some(at) => {
                    self.stored.take(at);
                    self.stored.need(PROBE)?;
                    let ahead = self.stored.ahead();
                    let ahead_len = ahead.len().max(1);
                    let (begins, read) = match self.codec {
                        Codec::Zstd(_) => begins_zstd(ahead, &self.dictionary, self.acceptable),
                        _ => begins_gzip(ahead, self.acceptable),
                    };
                    if begins {
                        break;
                    }
                    looked_at += read;
                    let passed = self.stored.offset() - from;
                    // Out of budget: many false beginnings. Pass as much as this one cost.
                    let spent = looked_at > AGAIN_AT_LEAST + AGAIN * passed;
                    self.stored.take(if spent { (read as usize).clamp(1, ahead_len) } else { 1 });
                }
                None => {
                    let rest = self.stored.ahead().len().saturating_sub(magic.len() - 1);
                    self.stored.take(rest);
                    if !self.stored.fill()? {
                        self.place = Place::Ended;
                        break;
                    }
                }
            }
        }
        Ok(Piece::Damage { offset: start, reason })
    }

    /// Passes a skippable frame, taking the dictionary from a leading one; false when it is damaged.
    fn skip_frame(&mut self, start: u64) -> io::Result<bool> {
        let Some((magic, length)) = skippable(self.stored.ahead()) else {
            return Ok(false);
        };
        self.stored.take(8);
        if magic == 0x184D_2A5D && start == 0 {
            if length > DICTIONARY || self.stored.need(length)? < length {
                return Ok(false);
            }
            let content = &self.stored.ahead()[..length];
            let dictionary = match content.starts_with(ZSTD) {
                true => match zstd::bulk::decompress(content, DICTIONARY) {
                    Ok(dictionary) => dictionary,
                    Err(_) => return Ok(false),
                },
                false => content.to_vec(),
            };
            let Ok(decoder) = Decoder::with_dictionary(&dictionary) else {
                return Ok(false);
            };
            self.codec = Codec::Zstd(decoder);
            self.dictionary = dictionary;
            self.stored.take(length);
            return Ok(true);
        }
        let mut left = length;
        while left > 0 {
            let here = self.stored.need(1)?.min(left);
            if here == 0 {
                return Ok(false);
            }
            self.stored.take(here);
            left -= here;
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
            _ => "gzip: damaged member",
        }
    }

    fn unfinished(&self) -> &'static str {
        match self {
            Codec::Zstd(_) => "zstd: the file ends inside a frame",
            _ => "gzip: the file ends inside a member",
        }
    }

    fn unknown(&self) -> &'static str {
        match self {
            Codec::Zstd(_) => "zstd: bytes that are no frame",
            _ => "gzip: bytes that are no member",
        }
    }
}

fn gzip() -> Codec {
    Codec::Gzip(Box::new(Decompress::new_gzip(15)))
}

fn kind(bytes: &[u8]) -> Option<io::Result<Codec>> {
    if bytes.starts_with(GZIP) {
        return Some(Ok(gzip()));
    }
    if bytes.starts_with(ZSTD) || skippable(bytes).is_some() {
        return Some(Decoder::new().map(Codec::Zstd));
    }
    None
}

/// Gives the magic and the length of the skippable frame that begins here.
fn skippable(bytes: &[u8]) -> Option<(u32, usize)> {
    let head: &[u8; 8] = bytes.first_chunk()?;
    let magic = u32::from_le_bytes([head[0], head[1], head[2], head[3]]);
    let length = u32::from_le_bytes([head[4], head[5], head[6], head[7]]);
    (magic & 0xFFFF_FFF0 == 0x184D_2A50).then_some((magic, length as usize))
}

fn inflate_some(inflate: &mut Decompress, input: &[u8], out: &mut Vec<u8>) -> io::Result<Step> {
    let before = inflate.total_in();
    let status = inflate.decompress_vec(input, out, FlushDecompress::None).map_err(io::Error::other)?;
    Ok(Step { taken: (inflate.total_in() - before) as usize, ended: status == Status::StreamEnd })
}

fn decode_some(decoder: &mut Decoder<'static>, input: &[u8], out: &mut Vec<u8>) -> io::Result<Step> {
    let mut input = InBuffer::around(input);
    let at = out.len();
    let mut output = OutBuffer::around_pos(out, at);
    let hint = decoder.run(&mut input, &mut output)?;
    Ok(Step { taken: input.pos(), ended: hint == 0 })
}

/// Whether a gzip member with an acceptable beginning starts here, and the bytes that it took to know.
fn begins_gzip(bytes: &[u8], acceptable: Acceptable) -> (bool, u64) {
    // The upper flag bits are reserved and zero.
    if !bytes.starts_with(GZIP) || bytes.get(3).is_none_or(|flags| flags & 0xe0 != 0) {
        return (false, 4);
    }
    let mut out = Vec::with_capacity(BEGINNING);
    let probe = &bytes[..bytes.len().min(PROBE)];
    let mut inflate = Decompress::new_gzip(15);
    let step = inflate_some(&mut inflate, probe, &mut out);
    (step.is_ok() && acceptable(&out), inflate.total_in().max(64))
}

/// Whether a zstd frame with an acceptable beginning starts here, and the bytes that it took to know.
fn begins_zstd(bytes: &[u8], dictionary: &[u8], acceptable: Acceptable) -> (bool, u64) {
    let Ok(mut decoder) = Decoder::with_dictionary(dictionary) else {
        return (false, 64);
    };
    let mut out = Vec::with_capacity(BEGINNING);
    let probe = &bytes[..bytes.len().min(PROBE)];
    let step = decode_some(&mut decoder, probe, &mut out);
    let read = step.as_ref().map_or(64, |step| step.taken as u64);
    (step.is_ok() && acceptable(&out), read.max(64))
}
