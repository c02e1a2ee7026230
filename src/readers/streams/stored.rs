//! The stored bytes of one input, with a window to go back in.
//!
//! A decoder takes bytes from the front. Bytes it has taken stay reachable as long as they are asked for with
//! [`Stored::keep_from`], so that a search for the next good member can begin before the place where damage was noticed.

use std::io;
use std::io::Read;

/// Bytes asked of the source at once.
const CHUNK: usize = 256 << 10;

/// A source of stored bytes, counted from the beginning of the file.
pub struct Stored {
    source: Box<dyn Read + Send>,
    buffer: Vec<u8>,
    /// Index in `buffer` of the next byte to be taken.
    at: usize,
    /// Offset in the file of `buffer[0]`.
    base: u64,
    /// First offset that must stay reachable.
    kept: u64,
    ended: bool,
}

impl Stored {
    /// Reads from the beginning of `source`.
    pub fn new(source: Box<dyn Read + Send>) -> Self {
        Stored { source, buffer: Vec::new(), at: 0, base: 0, kept: 0, ended: false }
    }

    /// Gives the offset in the file of the next byte to be taken.
    pub fn offset(&self) -> u64 {
        self.base + self.at as u64
    }

    /// Gives the number of bytes that came from the source.
    pub fn position(&self) -> u64 {
        self.base + self.buffer.len() as u64
    }

    /// Gives the bytes that are here and not yet taken.
    pub fn ahead(&self) -> &[u8] {
        &self.buffer[self.at..]
    }

    /// Takes `count` of the bytes ahead.
    pub fn take(&mut self, count: usize) {
        self.at = (self.at + count).min(self.buffer.len());
    }

    /// Keeps the bytes from `offset` on reachable for [`Stored::go_to`]; earlier ones may be forgotten.
    pub fn keep_from(&mut self, offset: u64) {
        self.kept = self.kept.max(offset);
    }

    /// Makes the byte at `offset` the next to be taken: taken ones again, or some ahead never. It stays within what is here.
    pub fn go_to(&mut self, offset: u64) {
        let first = offset.max(self.kept).max(self.base).min(self.position());
        self.at = (first - self.base) as usize;
    }

    /// Reads more bytes from the source; false at its end.
    ///
    /// # Errors
    /// When the source cannot be read.
    pub fn fill(&mut self) -> io::Result<bool> {
        if self.ended {
            return Ok(false);
        }
        let forgotten = (self.kept.min(self.offset()) - self.base) as usize;
        // Moving the rest only when it is the smaller half keeps the work linear.
        if forgotten > self.buffer.len() / 2 {
            self.buffer.drain(..forgotten);
            self.at -= forgotten;
            self.base += forgotten as u64;
        }
        let got = self.source.by_ref().take(CHUNK as u64).read_to_end(&mut self.buffer)?;
        self.ended = got == 0;
        Ok(got > 0)
    }

    /// Reads until `count` bytes are ahead or the source ends, and gives how many are ahead.
    ///
    /// # Errors
    /// When the source cannot be read.
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
