//! The messages of Arrow streams and files, framed, and how many bytes of a file belong to none and
//! are not read.
//!
//! ```text
//! message: FFFFFFFF, length of the head, head, body
//! stream:  a message with the schema, others, an end marker (a length of zero); the next stream
//! file:    ARROW1, zeros, a stream, a table of contents, its length, ARROW1
//! ```
//!
//! Streams may stand one behind the other, with some zeros between them; behind the table of
//! contents of a file is nothing. Other bytes are not read, and counted. Of a stream that the end
//! of the file cuts, all bytes are: nothing tells how many are missing. After a head that cannot be
//! read, a local file is read on from the next message that its table of contents names.
//!
//! Bytes are counted as stored. Of a compressed file the decoded bytes are known, and the stored
//! ones are taken to be in proportion.

use std::fs::File;
use std::io;
use std::io::Read;

use arrow_buffer::Buffer;
use arrow_ipc::{MessageHeader, root_as_message};
use nigh_text::contained::contained;

use super::contents::{HEAD, MARKER, SIGNATURE, TAIL, contents, starts};
use crate::readers::item::Unread;
use crate::readers::streams::{MemberStep, Members, Stored};
use crate::reading::Reading;

/// The most bytes of a batch or dictionary as stored.
pub const BODY: u64 = 1 << 31;
/// The error of a batch that is longer than the memory allows. Not a reject: which rows there are
/// does not depend on the memory.
pub const NO_MEMORY: &str =
    "a batch is larger than the memory of a worker allows: raise `memory`, or run fewer workers";
/// The most zeros between two streams, and behind the last one. More are what was never written of
/// a file whose end was lost.
const PADDING: u64 = 4096;

const CUT: &str = "arrow: the file ends inside a message";
const NO_MESSAGE: &str = "arrow: no message where one should begin";
const BEHIND_STREAM: &str = "arrow: bytes behind the end of a stream that are no stream";
const NO_CONTENTS: &str = "arrow: the file does not end with its table of contents";

/// Whether a file or a pipe begins with these bytes: the signature of a file, or the first message
/// of a stream.
pub fn begins(first: &[u8]) -> bool {
    let word = |at: usize| first.get(at..).and_then(|rest| rest.first_chunk()).map(|word| u32::from_le_bytes(*word));
    // The head of the message, with its marker and length, is filled up to a multiple of eight
    // bytes. It begins with the place of its table.
    let is_stream = || match (word(0), word(4), word(8)) {
        (Some(u32::MAX), Some(length), Some(place)) => {
            (16..=HEAD as u64).contains(&length.into()) && length.is_multiple_of(8) && place < length
        }
        _ => false,
    };
    first.starts_with(SIGNATURE) || is_stream()
}

/// A message: its head, a flatbuffer, and its body.
pub struct IpcMessage {
    pub head: Vec<u8>,
    pub body: Buffer,
    /// Whether it is a schema, with which a stream begins.
    pub is_schema: bool,
    /// Whether it is the first one, or the one before it was the end of a stream.
    pub follows_end: bool,
    /// All of its bytes, decoded.
    pub length: u64,
}

/// What comes next.
pub enum MessageStep {
    /// A message.
    Message(IpcMessage),
    /// Bytes that are not read, with the reason of a reject. Others may follow.
    Lost(&'static str),
    /// The file ends before its stream does; with the reason of a reject.
    Cut(&'static str),
    /// The file has ended; whether behind the end of a stream.
    End(bool),
}

/// The decoded bytes of a file, cut into messages.
pub struct MessageBytes {
    members: Members,
    buffer: Vec<u8>,
    /// Where the next message begins in the buffer.
    next: usize,
    /// The decoded bytes before the buffer.
    base: u64,
    /// Whether all that can be decoded is in the buffer.
    ended: bool,
    /// The most bytes of a batch, as stored and as decoded.
    pub longest: u64,
    /// Why not all bytes were decoded, until it is reported, and how many were not.
    damage: Option<&'static str>,
    undecoded: Option<Unread>,
    /// Whether it is a file, not a stream.
    is_file: bool,
    /// The file, if its table of contents can be read.
    contents: Option<File>,
    /// Where messages begin, as the table says: read when the first one is sought.
    places: Option<Vec<u64>>,
    /// Whether a stream has begun; whether the last one has ended.
    has_stream: bool,
    is_between: bool,
    /// The zeros behind the end of the last stream.
    zeros: u64,
    /// Where the stream begins, and what was lost before it.
    stream: u64,
    lost_before: u64,
    /// The stored bytes of messages that are not read.
    lost: u64,
    ends_early: bool,
    has_ended: bool,
}

impl MessageBytes {
    /// The messages of `source`.
    ///
    /// # Errors
    /// If it cannot be read.
    pub fn new(source: Box<dyn Read + Send>, reading: &Reading) -> io::Result<MessageBytes> {
        let mut bytes = MessageBytes {
            members: Members::new(Stored::new(source), |bytes| !bytes.is_empty())?,
            buffer: Vec::new(),
            next: 0,
            base: 0,
            ended: false,
            longest: reading.max_decoded_bytes.saturating_mul(4),
            damage: None,
            undecoded: None,
            is_file: false,
            contents: None,
            places: None,
            has_stream: false,
            is_between: true,
            zeros: 0,
            stream: 0,
            lost_before: 0,
            lost: 0,
            ends_early: false,
            has_ended: false,
        };
        bytes.need(SIGNATURE.len() + 2)?;
        if bytes.ahead().starts_with(SIGNATURE) {
            bytes.is_file = true;
            bytes.pass((SIGNATURE.len() + 2).min(bytes.ahead().len()));
        }
        Ok(bytes)
    }

    /// The same, for the bytes of this local file.
    #[must_use]
    pub fn with_contents(mut self, file: File) -> MessageBytes {
        self.contents = (self.is_file && self.members.plain()).then_some(file);
        self
    }

    /// The same, for a file whose messages begin at these places, ascending.
    #[must_use]
    pub fn with_starts(self, starts: Vec<u64>) -> MessageBytes {
        MessageBytes { places: Some(starts), ..self }
    }

    /// The stored bytes that were taken so far.
    pub fn position(&self) -> u64 {
        self.members.position()
    }

    /// What could not be read so far.
    pub fn unread(&self) -> Unread {
        let Unread { bytes, ends_early } = self.undecoded();
        Unread { bytes: (bytes + self.lost).min(self.position()), ends_early: ends_early || self.ends_early }
    }

    fn undecoded(&self) -> Unread {
        self.undecoded.unwrap_or_else(|| self.members.unread())
    }

    /// Counts decoded bytes that are not read.
    pub fn lose(&mut self, decoded: u64) {
        self.lost += self.stored(decoded);
    }

    /// How many stored bytes become some decoded ones.
    fn stored(&self, decoded: u64) -> u64 {
        if self.members.plain() {
            return decoded;
        }
        let (stored, all) = (self.position().saturating_sub(self.undecoded().bytes), self.decoded().max(1));
        (u128::from(decoded) * u128::from(stored) / u128::from(all)) as u64
    }

    /// The bytes that were decoded so far.
    fn decoded(&self) -> u64 {
        self.base + self.buffer.len() as u64
    }

    fn ahead(&self) -> &[u8] {
        &self.buffer[self.next..]
    }

    fn pass(&mut self, count: usize) {
        self.next += count;
    }

    /// Whether some bytes are ahead, after decoding what they need. Bytes are kept as they come, so
    /// that a claimed length reserves nothing.
    fn need(&mut self, count: usize) -> io::Result<bool> {
        while self.ahead().len() < count && !self.ended {
            // Linear time: the bytes ahead are moved only when they are the smaller half.
            if self.next > self.buffer.len() / 2 {
                self.buffer.drain(..self.next);
                self.base += self.next as u64;
                self.next = 0;
            }
            match self.members.step(&mut self.buffer)? {
                MemberStep::Bytes | MemberStep::Start(_) => {}
                MemberStep::Damage { reason, .. } => {
                    self.damage = Some(reason);
                    self.undecoded = Some(self.pass_members()?);
                    self.ended = true;
                }
                MemberStep::End => self.ended = true,
            }
        }
        Ok(self.ahead().len() >= count)
    }

    /// Passes over the members behind a damaged one, and counts their bytes with the damaged ones.
    fn pass_members(&mut self) -> io::Result<Unread> {
        let unread = self.members.unread();
        let (mut first, mut scratch) = (None, Vec::new());
        loop {
            match self.members.step(&mut scratch)? {
                MemberStep::Start(offset) => first = first.or(Some(offset)),
                MemberStep::Bytes | MemberStep::Damage { .. } => {}
                MemberStep::End => break,
            }
            scratch.clear();
        }
        let behind = first.map_or(0, |first| self.members.position() - first);
        Ok(Unread { bytes: unread.bytes + behind, ..unread })
    }

    /// The next message, or what is in its place.
    ///
    /// # Errors
    /// If the file cannot be read, or a batch is longer than the memory allows.
    pub fn step(&mut self) -> io::Result<MessageStep> {
        while !self.has_ended {
            if !self.need(4)? {
                return Ok(self.end());
            }
            let first = self.word(0);
            if self.is_between && first == 0 {
                self.pass(4);
                self.zeros += 4;
                continue;
            }
            // Before version 0.15 the marker was missing.
            let prefix = if first == u32::MAX { 8 } else { 4 };
            if !self.need(prefix)? {
                return Ok(self.end());
            }
            let length = self.word(prefix - 4) as usize;
            if length == 0 {
                self.pass(prefix);
                (self.is_between, self.zeros) = (true, 0);
                if self.is_file {
                    return self.close_file();
                }
                continue;
            }
            return self.message(prefix, length);
        }
        Ok(MessageStep::End(self.is_between && self.has_stream))
    }

    /// The message whose head has this length, behind a prefix.
    fn message(&mut self, prefix: usize, length: usize) -> io::Result<MessageStep> {
        let start = prefix + length;
        if length > HEAD {
            return self.no_message(NO_MESSAGE);
        }
        if !self.need(start)? {
            return self.too_long();
        }
        let head = &self.ahead()[prefix..start];
        let claims =
            contained(|| root_as_message(head).ok().map(|message| (message.bodyLength(), message.header_type())));
        let Some((body, kind)) = claims.ok().flatten() else { return self.no_message(NO_MESSAGE) };
        let is_schema = kind == MessageHeader::Schema;
        if self.is_between && !is_schema {
            return self.no_message(NO_MESSAGE);
        }
        let body = match u64::try_from(body) {
            Ok(body) if body > BODY => return self.no_message("arrow: a batch claims too many bytes"),
            Ok(body) if body > self.longest => return Err(io::Error::other(NO_MEMORY)),
            Ok(body) => body as usize,
            Err(_) => return self.no_message("arrow: a batch claims too many bytes"),
        };
        if !self.need(start + body)? {
            return self.too_long();
        }
        let head = self.ahead()[prefix..start].to_vec();
        let follows_end = self.is_between;
        if is_schema {
            // A file counts from its signature on.
            self.stream = if self.has_stream || !self.is_file { self.base + self.next as u64 } else { 0 };
            self.lost_before = self.lost;
            (self.has_stream, self.is_between) = (true, false);
        }
        let body = Buffer::from(&self.ahead()[start..start + body]);
        let length = start + body.len();
        self.pass(length);
        Ok(MessageStep::Message(IpcMessage { head, body, is_schema, follows_end, length: length as u64 }))
    }

    fn word(&self, at: usize) -> u32 {
        self.ahead().get(at..).and_then(|rest| rest.first_chunk()).map_or(0, |word| u32::from_le_bytes(*word))
    }

    /// The end of what can be decoded: fewer bytes are ahead than a message has.
    fn end(&mut self) -> MessageStep {
        self.has_ended = true;
        let (is_behind, rest) = (self.is_between && self.has_stream, self.ahead().len() as u64);
        if let Some(reason) = self.damage.take() {
            self.lose(rest);
            return if is_behind { MessageStep::Lost(reason) } else { MessageStep::Cut(reason) };
        }
        let has_rest = self.ahead().iter().any(|byte| *byte != 0);
        if is_behind {
            if !has_rest {
                if self.zeros <= PADDING {
                    return MessageStep::End(true);
                }
                self.lose(self.zeros + rest);
                self.ends_early = true;
                return MessageStep::Cut(CUT);
            }
            self.lose(rest);
            let is_marker = self.ahead().iter().zip(MARKER).all(|(byte, marker)| *byte == marker);
            self.ends_early |= is_marker;
            return if is_marker { MessageStep::Cut(CUT) } else { MessageStep::Lost(BEHIND_STREAM) };
        }
        if !has_rest && !self.is_file {
            return MessageStep::End(false);
        }
        self.lost = self.lost_before + self.stored(self.decoded() - self.stream);
        self.ends_early = true;
        MessageStep::Cut(if has_rest { CUT } else { NO_CONTENTS })
    }

    /// The end of a file, behind its stream.
    fn close_file(&mut self) -> io::Result<MessageStep> {
        if self.is_contents()? {
            self.has_ended = true;
            return Ok(MessageStep::End(true));
        }
        self.lose_rest()?;
        Ok(MessageStep::Lost(self.damage.take().unwrap_or(NO_CONTENTS)))
    }

    /// Whether a table of contents is ahead, behind zeros, and nothing else.
    fn is_contents(&mut self) -> io::Result<bool> {
        if self.need(HEAD + TAIL)? {
            return Ok(false);
        }
        Ok(contents(self.ahead(), |_| ()).is_some())
    }

    /// Passes over what is no message, up to the next one that the table of contents names, or to
    /// the end.
    fn no_message(&mut self, reason: &'static str) -> io::Result<MessageStep> {
        // Old writers end a stream in a file without a marker.
        if self.is_file && self.has_stream && self.is_contents()? {
            (self.has_ended, self.is_between) = (true, true);
            return Ok(MessageStep::End(true));
        }
        let place = self.base + self.next as u64;
        let next = if self.is_between { None } else { self.next_place()? };
        let Some(next) = next else {
            let is_behind = self.is_between && self.has_stream;
            self.lose_rest()?;
            return Ok(MessageStep::Lost(if is_behind { BEHIND_STREAM } else { reason }));
        };
        let mut left = next - place;
        self.lose(left);
        while left > 0 && self.need(1)? {
            let some = self.ahead().len().min(left as usize);
            self.pass(some);
            left -= some as u64;
        }
        Ok(MessageStep::Lost(reason))
    }

    /// A message that claims more bytes than follow: the end of the file, or a length that is
    /// damaged.
    fn too_long(&mut self) -> io::Result<MessageStep> {
        if !self.is_between && self.next_place()?.is_some() { self.no_message(NO_MESSAGE) } else { Ok(self.end()) }
    }

    /// Where the next message begins that the table of contents names.
    fn next_place(&mut self) -> io::Result<Option<u64>> {
        if self.places.is_none() {
            self.places = Some(self.contents.as_ref().map_or_else(|| Ok(Vec::new()), starts)?);
        }
        let (places, here) = (self.places.as_deref().unwrap_or_default(), self.base + self.next as u64);
        Ok(places.get(places.partition_point(|start| *start <= here)).copied())
    }

    /// Passes over all that follows.
    fn lose_rest(&mut self) -> io::Result<()> {
        let mut rest = 0;
        while self.need(1)? {
            rest += self.ahead().len() as u64;
            self.pass(self.ahead().len());
        }
        self.lose(rest);
        self.has_ended = true;
        Ok(())
    }
}
