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
//! A decoder notices most damage at a checksum, behind the wrong bytes. So a member of usual size
//! is handed out when it has ended, and one that is damaged is not: nothing says which of its bytes
//! are right. Of a larger member the bytes before the place where damage is noticed are handed out
//! already, and the reason of the damage says that they may be wrong. Of a member that the end of
//! the file cuts all bytes are handed out. Nothing checks them, but what is missing is behind them.
//!
//! Which bytes are handed out of a file depends on its bytes alone, not on the buffer of a caller:
//! an export reads a file twice side by side, as records and as bytes.
//!
//! The compression is recognised by magic bytes, never by the name. Of zstd's skippable frames, one
//! of magic 0x184D2A5D at the beginning of the file is the dictionary of all frames (IIPC,
//! *WARC-ZSTD*), and can itself be a zstd frame. Zero bytes between members are padding.
//!
//! A gzip member of usual size is inflated at once, from the bytes ahead directly into the caller's
//! buffer. A member that is large or damaged, or whose header has a checksum, and one of another
//! kind is streamed from its beginning:
//!
//! ```text
//! step:
//!     between members:  skip padding; Start(offset) if a magic number is here, else damage
//!     at a member:      inflate it at once; if that fails, decode slices up to its end, or until
//!                       they are too many to wait for it; on an error, damage without any of them
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
use memchr::memmem;
use nigh_kernels::kernels::Inflated;
use zstd::stream::raw::{Decoder, Operation as _};

use super::codec::{Codec, gzip, kind};
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
/// every record of a page fits the first pair. Up to the last pair a member of any kind is handed
/// out only as a whole.
pub(super) const WHOLE: [(usize, usize); 2] = [(64 << 10, 1 << 20), (1 << 20, 8 << 20)];
/// After a member that was too large, at most this many members in a row are streamed without that
/// attempt.
const MAX_STREAMED: u32 = 64;
/// Bytes reserved in the output before each step, and those of a zstd frame that are handed out
/// together.
const ROOM: usize = 64 << 10;
/// The search for the next member may read this many stored bytes for each byte that it passes ...
pub const SEARCH_PER_BYTE: u64 = 4;
/// ... and this many in any case.
pub const SEARCH_AT_LEAST: u64 = 4 << 20;
/// Stored bytes that a decoder receives at once, at most. Slices begin at multiples of this in a
/// member.
const SLICE: usize = 256 << 10;

/// The result of one step through the members of a file.
#[derive(Debug, PartialEq)]
pub enum MemberStep {
    /// A member begins at this stored offset; its bytes follow.
    Start(u64),
    /// Decoded bytes were appended.
    Bytes,
    /// The member that began at `offset` is damaged (or no member begins there); the next bytes
    /// belong to another member. Bytes before the damage may have been appended in this step.
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
    pub(super) codec: Codec,
    state: MemberState,
    acceptable: Acceptable,
    /// Decoded bytes of a member that wait for its end, at most.
    most_held: usize,
    /// The last decoded bytes of a zstd frame, until they are [`ROOM`] or the frame ends: with an
    /// error its decoder loses what it decoded in that call.
    waiting: Vec<u8>,
    /// How many of the first bytes of a damaged member are handed out nevertheless.
    spared: fn(&[u8]) -> usize,
    /// Damaged members in a row.
    failures: u32,
    unread: Unread,
}

/// Where the next step is. The numbers are the stored offsets of members.
enum MemberState {
    Between,
    /// In a member of which nothing was handed out. `at_once`: it may be inflated at once.
    AtStart {
        start: u64,
        at_once: bool,
    },
    /// In a member of which bytes were handed out, or in a plain file.
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
        Members {
            stored,
            codec,
            state: MemberState::Between,
            acceptable,
            most_held: WHOLE[1].1,
            waiting: Vec::new(),
            spared: |_| 0,
            failures: 0,
            unread: Unread::default(),
        }
    }

    /// The same, but of a damaged member as many of its first bytes are handed out as `spared`
    /// returns for all that was decoded of it.
    #[must_use]
    pub fn sparing(self, spared: fn(&[u8]) -> usize) -> Self {
        Members { spared, ..self }
    }

    /// The same, but all bytes are handed out as they are decoded, whether or not they are right:
    /// for what looks at the first ones of a file only.
    #[must_use]
    pub fn unheld(self) -> Self {
        Members { most_held: 0, ..self }
    }

    /// Whether the file is not compressed.
    pub fn plain(&self) -> bool {
        matches!(self.codec, Codec::Plain)
    }

    /// Whether the next step begins a member, or the file ends.
    pub fn is_between(&self) -> bool {
        matches!(self.state, MemberState::Between | MemberState::Ended)
    }

    /// Whether further stored bytes follow what was decoded.
    ///
    /// # Errors
    /// If the source cannot be read.
    pub fn goes_on(&mut self) -> io::Result<bool> {
        Ok(self.stored.need(1)? > 0)
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
            MemberState::AtStart { start, at_once } => {
                if at_once && self.inflate_at_once(out)? {
                    self.state = MemberState::Between;
                    return Ok(MemberStep::Bytes);
                }
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
            let mut state = MemberState::AtStart { start, at_once: false };
            let begins = match &mut self.codec {
                Codec::Plain => {
                    state = MemberState::Inside(start);
                    true
                }
                Codec::Gzip(gzip) if ahead.starts_with(GZIP) => {
                    gzip.stream = None;
                    let at_once = gzip.tries_at_once(ahead) && self.failures == 0;
                    state = MemberState::AtStart { start, at_once };
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
                    return self.damage(start, "zstd: damaged dictionary or skippable frame", false);
                }
                _ => false,
            };
            if !begins {
                return self.damage(start, self.codec.unknown(), false);
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

    /// Decodes the next slice of the member that began at `start`. At its beginning, decodes slices
    /// until it ends or is too large to be handed out as a whole.
    fn stream(&mut self, start: u64, out: &mut Vec<u8>) -> io::Result<MemberStep> {
        let begin = out.len();
        loop {
            let offset = self.stored.offset();
            let window = if self.plain() { 0 } else { WINDOW + SLICE as u64 };
            self.stored.keep_from(start.max(offset.saturating_sub(window)));
            let has_input = !self.stored.ahead().is_empty() || self.stored.fill()?;
            let ahead = self.stored.ahead();
            let to_slice = SLICE - ((offset - start) % SLICE as u64) as usize;
            let ahead = &ahead[..ahead.len().min(to_slice).min((SLICE >> self.failures.min(16)).max(1024))];
            out.reserve(ROOM);
            let before = out.len() + self.waiting.len();
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
                Codec::Zstd(decoder) => {
                    self.waiting.reserve_exact(ROOM.saturating_sub(self.waiting.len()));
                    let step = decode_some(decoder, ahead, &mut self.waiting);
                    if self.waiting.len() >= ROOM || step.as_ref().is_ok_and(|step| step.ended) {
                        out.append(&mut self.waiting);
                    }
                    step
                }
                Codec::Bzip2(stream) => {
                    let stream = stream.get_or_insert_with(|| Box::new(bzip2::Decompress::new(false)));
                    unpack_some(stream, ahead, out)
                }
                Codec::Xz(stream) => xz_stream(stream).and_then(|stream| expand_some(stream, ahead, out)),
            };
            let is_held = matches!(self.state, MemberState::AtStart { .. }) && out.len() - begin <= self.most_held;
            let step = match step {
                Ok(step) => step,
                Err(error) => {
                    let reason = match error.kind() {
                        io::ErrorKind::OutOfMemory => "xz: a dictionary of more than 128 MiB",
                        _ => self.codec.damaged(is_held),
                    };
                    self.waiting.clear();
                    if is_held {
                        self.take_back(begin, out);
                    }
                    return self.damage(start, reason, is_held);
                }
            };
            self.stored.take(step.taken);
            if step.ended {
                self.failures = 0;
                self.state = MemberState::Between;
                return Ok(MemberStep::Bytes);
            }
            // Slices end there in any case: so the same members are too large, however many bytes
            // are ahead.
            if !is_held || self.stored.offset() - start >= WHOLE[1].0 as u64 {
                self.state = MemberState::Inside(start);
                if out.len() > begin {
                    return Ok(MemberStep::Bytes);
                }
            }
            // The decoder produced nothing from all bytes of the file.
            let has_nothing = out.len() + self.waiting.len() == before;
            if has_nothing && (!has_input || step.taken == 0 && !self.stored.fill()?) {
                out.append(&mut self.waiting);
                let damage = self.damage(start, self.codec.unfinished(), is_held)?;
                // If another member follows, it was not the end of the file that cut this one.
                if is_held && !matches!(self.state, MemberState::Ended) {
                    self.take_back(begin, out);
                }
                return Ok(damage);
            }
        }
    }

    /// Takes back the bytes of a damaged member, which begin at `begin`, except those to be spared.
    fn take_back(&self, begin: usize, out: &mut Vec<u8>) {
        let spared = (self.spared)(&out[begin..]);
        out.truncate(begin + spared);
    }

    /// Moves to the next acceptable member after the damaged one that began at `start`, and returns
    /// the damage. `is_held`: nothing of it was handed out.
    fn damage(&mut self, start: u64, reason: &'static str, is_held: bool) -> io::Result<MemberStep> {
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
        let unread_from = if is_held { start } else { noticed };
        self.unread.bytes += match self.state {
            MemberState::Ended if reason == self.codec.unfinished() => {
                self.unread.ends_early = true;
                self.stored.position() - start
            }
            MemberState::Ended => self.stored.position() - unread_from,
            // The decoder took bytes of the next member for this one's.
            _ if self.stored.offset() < noticed => self.stored.offset() - start,
            _ => self.stored.offset() - unread_from,
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
