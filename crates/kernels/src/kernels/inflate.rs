//! Decompression of whole gzip members by libdeflate: faster than a stream, since it keeps no state
//! between calls.
//!
//! It checks everything that RFC 1952 allows to check, except the checksum of a header (`FHCRC`),
//! which it skips. It accepts some invalid codes that zlib refuses; no compressor writes them.

use std::ptr::{self, NonNull};

use libdeflate_sys::{
    libdeflate_alloc_decompressor, libdeflate_decompressor, libdeflate_free_decompressor,
    libdeflate_gzip_decompress_ex, libdeflate_result_LIBDEFLATE_INSUFFICIENT_SPACE as INSUFFICIENT_SPACE,
    libdeflate_result_LIBDEFLATE_SUCCESS as SUCCESS,
};

/// A decompressor: about 11 kB of tables, reused for each member.
pub struct Inflater(NonNull<libdeflate_decompressor>);

// SAFETY: one value owns the memory of the tables. Outside of them libdeflate only keeps which
// instructions the machine has. By libdeflate.h one thread at a time may use a decompressor: each
// use here has `&mut self`.
unsafe impl Send for Inflater {}

/// The outcome of [`Inflater::member`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Inflated {
    /// A complete member was inflated; it has this many compressed bytes.
    Member(usize),
    /// The content is longer than allowed; the member may be cut.
    MoreRoom,
    /// The bytes do not begin with a complete valid member: it is cut or damaged.
    NoMember,
}

impl Default for Inflater {
    /// Makes a decompressor.
    ///
    /// # Panics
    /// If there is no memory for it.
    fn default() -> Inflater {
        // SAFETY: the call has no arguments, and returns a decompressor or null.
        let tables = unsafe { libdeflate_alloc_decompressor() };
        Inflater(NonNull::new(tables).expect("there is memory for 11 kB"))
    }
}

impl Inflater {
    /// Inflates the gzip member at the start of `stored`, and appends its content to `out` if that
    /// is at most `most` bytes. Unless the outcome is [`Inflated::Member`], `out` is unchanged.
    /// Reserves `most` bytes in `out`.
    ///
    /// ```
    /// use nigh_kernels::kernels::{Inflated, Inflater};
    /// // An empty gzip member: a header of 10 bytes, an empty block, checksum and length.
    /// let member = [0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 255, 3, 0, 0, 0, 0, 0, 0, 0, 0, 0];
    /// let (mut inflater, mut out) = (Inflater::default(), Vec::new());
    /// assert_eq!(inflater.member(&member, 100, &mut out), Inflated::Member(20));
    /// assert_eq!(inflater.member(&member[..19], 100, &mut out), Inflated::NoMember);
    /// ```
    pub fn member(&mut self, stored: &[u8], most: usize, out: &mut Vec<u8>) -> Inflated {
        out.reserve(most);
        let mut read = 0;
        let mut written = 0;
        // SAFETY: `self.0` is a decompressor that only this call uses (`&mut self`), and that
        // `drop` frees later. The input is a whole slice; the output is the first `most` bytes of
        // the spare capacity reserved above, which libdeflate only writes. (A null instead of
        // `&mut written` would ask for exactly `most` bytes.)
        let result = unsafe {
            let room = out.spare_capacity_mut();
            debug_assert!(room.len() >= most);
            libdeflate_gzip_decompress_ex(
                self.0.as_ptr(),
                stored.as_ptr().cast(),
                stored.len(),
                room.as_mut_ptr().cast(),
                most,
                ptr::from_mut(&mut read),
                ptr::from_mut(&mut written),
            )
        };
        match result {
            SUCCESS => {
                let length = out.len() + written.min(most);
                // SAFETY: on success libdeflate wrote the first `written` bytes of the spare
                // capacity, at most `most`.
                unsafe { out.set_len(length) };
                Inflated::Member(read.min(stored.len()))
            }
            INSUFFICIENT_SPACE => Inflated::MoreRoom,
            _ => Inflated::NoMember,
        }
    }
}

impl Drop for Inflater {
    fn drop(&mut self) {
        // SAFETY: the decompressor came from `libdeflate_alloc_decompressor` and is not used again.
        unsafe { libdeflate_free_decompressor(self.0.as_ptr()) };
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;

    use flate2::Compression;
    use flate2::write::GzEncoder;

    use super::*;

    fn gzip(bytes: &[u8]) -> Vec<u8> {
        let mut gzip = GzEncoder::new(Vec::new(), Compression::default());
        gzip.write_all(bytes).unwrap();
        gzip.finish().unwrap()
    }

    #[test]
    fn a_member_is_appended_whole_or_not_at_all() {
        let words = b"words and more words, ".repeat(1000);
        let (member, mut inflater) = (gzip(&words), Inflater::default());
        let two = [&member[..], &gzip(b"next")].concat();
        let mut out = b"before ".to_vec();
        assert_eq!(inflater.member(&two, words.len(), &mut out), Inflated::Member(member.len()));
        assert_eq!(out, [b"before ", &words[..]].concat());
        assert_eq!(inflater.member(&two, words.len() - 1, &mut out), Inflated::MoreRoom);
        for cut in [0, 1, 10, 17, 18, 30, member.len() - 1] {
            assert!(!matches!(inflater.member(&member[..cut], words.len(), &mut out), Inflated::Member(_)), "{cut}");
        }
        assert_eq!(out.len(), 7 + words.len());
        assert_eq!(inflater.member(&gzip(b""), 0, &mut Vec::new()), Inflated::Member(20));
    }

    #[test]
    fn a_member_with_a_wrong_checksum_or_size_is_refused() {
        let member = gzip(b"words");
        for back in 1..=8 {
            let mut wrong = member.clone();
            let at = wrong.len() - back;
            wrong[at] ^= 1;
            assert_eq!(Inflater::default().member(&wrong, 100, &mut Vec::new()), Inflated::NoMember, "{back}");
        }
    }
}
