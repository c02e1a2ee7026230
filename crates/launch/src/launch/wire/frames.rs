//! The length limit of the engine's frames: refuses a frame with a larger length.
//!
//! The engine puts a header of 48 bytes before each message, six big-endian numbers, of which the
//! fifth is the message's length. It allocates any length that it reads. [`Frames`] follows the
//! headers in the bytes on their way to the engine: a length beyond the limit ends the connection
//! before the engine reads it. It does not read the messages, so the cost is too small to measure.
//!
//! The format is that of `timely_communication` 0.32 (`MessageHeader`), whose version is pinned for
//! this reason; a test compares.

use std::io;

/// The most bytes of one message. Messages are blocks of 24 KiB, small batches, and all-gathers;
/// all are much smaller.
pub const MAX_FRAME_BYTES: u64 = 1 << 30;
/// The bytes of a header.
const HEADER: usize = 48;
/// The position of the length in the header.
const LENGTH: std::ops::Range<usize> = 32..40;
/// The beginning of the error message of a refused frame.
pub(crate) const REFUSED: &str = "refused a frame";

/// The position in a stream of frames.
#[derive(Clone)]
pub struct Frames {
    header: [u8; HEADER],
    /// Bytes of the current header that have passed.
    read: usize,
    /// Bytes of the current message that have not passed yet.
    left: u64,
}

impl Default for Frames {
    fn default() -> Frames {
        Frames { header: [0; HEADER], read: 0, left: 0 }
    }
}

impl Frames {
    /// Follows the next bytes of the stream.
    ///
    /// # Errors
    /// A header has a length of more than [`MAX_FRAME_BYTES`].
    pub fn pass(&mut self, mut bytes: &[u8]) -> io::Result<()> {
        loop {
            let skipped = usize::try_from(self.left).unwrap_or(usize::MAX).min(bytes.len());
            self.left -= skipped as u64;
            bytes = &bytes[skipped..];
            if bytes.is_empty() {
                return Ok(());
            }
            let more = (HEADER - self.read).min(bytes.len());
            self.header[self.read..self.read + more].copy_from_slice(&bytes[..more]);
            self.read += more;
            bytes = &bytes[more..];
            if self.read == HEADER {
                self.read = 0;
                self.left = u64::from_be_bytes(self.header[LENGTH].try_into().expect("a length has eight bytes"));
                if self.left > MAX_FRAME_BYTES {
                    let text = format!("{REFUSED} of {} bytes: at most {MAX_FRAME_BYTES} are allowed", self.left);
                    return Err(io::Error::new(io::ErrorKind::InvalidData, text));
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use timely_communication::networking::MessageHeader;

    use super::*;

    fn frame(length: usize, bytes: usize) -> Vec<u8> {
        let header = MessageHeader { channel: 1, source: 2, target_lower: 3, target_upper: 4, length, seqno: 5 };
        let mut all = Vec::new();
        header.write_to(&mut all).unwrap();
        all.resize(HEADER + bytes, 0xff);
        all
    }

    #[test]
    fn frames_of_the_engine_pass_in_chunks_of_any_size() {
        let bytes: Vec<u8> = [0, 1, 47, 48, 49, 1000, 0, 0].iter().flat_map(|length| frame(*length, *length)).collect();
        for step in 1..200 {
            let mut frames = Frames::default();
            bytes.chunks(step).for_each(|chunk| frames.pass(chunk).unwrap());
            assert_eq!((frames.left, frames.read), (0, 0), "{step}");
        }
    }

    #[test]
    fn a_frame_that_is_too_long_is_refused_at_the_last_byte_of_its_header() {
        let limit = MAX_FRAME_BYTES as usize;
        Frames::default().pass(&frame(limit, 100)).unwrap();
        for claim in [limit + 1, 1 << 60, usize::MAX] {
            for step in 1..200 {
                let bytes = [frame(70, 70), frame(claim, 0)].concat();
                let mut frames = Frames::default();
                let (last, before) = (bytes.len() - 1, &bytes[..bytes.len() - 1]);
                before.chunks(step).for_each(|chunk| frames.pass(chunk).unwrap());
                let error = frames.pass(&bytes[last..]).unwrap_err();
                assert!(error.to_string().contains(&claim.to_string()), "{error}");
            }
        }
    }
}
