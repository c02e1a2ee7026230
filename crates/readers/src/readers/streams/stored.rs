//! The bytes of one input as stored, with a window to go back in.
//!
//! A decoder takes bytes from the front. Taken bytes stay in memory from the offset that
//! [`Stored::keep_from`] sets, so that a search for the next good member can begin before the place
//! where the decoder noticed damage.

use std::io;
use std::io::Read;

/// Bytes that are requested from the source at once: few at first, as a reader may want one record
/// alone, then twice as many each time.
const CHUNKS: std::ops::RangeInclusive<usize> = 32 << 10..=256 << 10;

/// A source of stored bytes. Offsets are counted from the beginning of the file.
pub struct Stored {
    source: Box<dyn Read + Send>,
    buffer: Vec<u8>,
    /// Index in `buffer` of the next byte to take.
    next: usize,
    /// Offset in the file of `buffer[0]`.
    base: u64,
    /// First offset that must stay in memory.
    keep_from: u64,
    /// Bytes of the next request.
    chunk: usize,
    ended: bool,
}

impl Stored {
    /// Makes the stream of `source`, at its beginning.
    pub fn new(source: Box<dyn Read + Send>) -> Self {
        Stored { source, buffer: Vec::new(), next: 0, base: 0, keep_from: 0, chunk: *CHUNKS.start(), ended: false }
    }

    /// Returns the offset in the file of the next byte to take.
    pub fn offset(&self) -> u64 {
        self.base + self.next as u64
    }

    /// Returns the number of bytes read from the source.
    pub fn position(&self) -> u64 {
        self.base + self.buffer.len() as u64
    }

    /// Returns the bytes that are in memory and not yet taken.
    pub fn ahead(&self) -> &[u8] {
        &self.buffer[self.next..]
    }

    /// Takes `count` of the bytes ahead.
    pub fn take(&mut self, count: usize) {
        self.next = (self.next + count).min(self.buffer.len());
    }

    /// Keeps the bytes from `offset` in memory, for [`Stored::go_to`]; earlier bytes may be
    /// dropped.
    pub fn keep_from(&mut self, offset: u64) {
        self.keep_from = self.keep_from.max(offset);
    }

    /// Makes the byte at `offset` the next to take: back to bytes already taken, or past some
    /// ahead. The offset is clamped to the bytes in memory.
    pub fn go_to(&mut self, offset: u64) {
        let first = offset.max(self.keep_from).max(self.base).min(self.position());
        self.next = (first - self.base) as usize;
    }

    /// Reads more bytes from the source; returns `false` at its end.
    ///
    /// # Errors
    /// If the source cannot be read.
    pub fn fill(&mut self) -> io::Result<bool> {
        if self.ended {
            return Ok(false);
        }
        let dropped = (self.keep_from.min(self.offset()) - self.base) as usize;
        // Linear time: the remaining bytes are moved only when they are the smaller half.
        if dropped > self.buffer.len() / 2 {
            self.buffer.drain(..dropped);
            self.next -= dropped;
            self.base += dropped as u64;
        }
        // Else the buffer grows by probing: reads of 32 bytes, 8 KiB, 16 KiB and so on.
        self.buffer.reserve(self.chunk);
        let count = self.source.by_ref().take(self.chunk as u64).read_to_end(&mut self.buffer)?;
        self.chunk = (2 * self.chunk).min(*CHUNKS.end());
        self.ended = count == 0;
        Ok(count > 0)
    }

    /// Reads until `count` bytes are ahead or the source ends; returns how many are ahead.
    ///
    /// # Errors
    /// If the source cannot be read.
    pub fn need(&mut self, count: usize) -> io::Result<usize> {
        while self.ahead().len() < count && self.fill()? {}
        Ok(self.ahead().len())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kept_bytes_can_be_taken_again() {
        let bytes: Vec<u8> = (0..3_000_000_u32).map(|i| (i % 251) as u8).collect();
        let mut stored = Stored::new(Box::new(io::Cursor::new(bytes.clone())));
        let mut seen = Vec::new();
        while stored.need(1).unwrap() > 0 {
            seen.extend_from_slice(stored.ahead());
            stored.take(usize::MAX >> 1);
            let reach = stored.offset().saturating_sub(1000);
            stored.keep_from(reach);
        }
        assert_eq!(seen, bytes);
        stored.go_to(0);
        assert_eq!(stored.ahead(), &bytes[bytes.len() - 1000..]);
        assert_eq!(stored.offset(), bytes.len() as u64 - 1000);
    }
}
