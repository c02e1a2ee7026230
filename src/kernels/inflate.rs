//! Inflates a whole gzip member at once, by libdeflate: it has no stream to keep, and so is faster than one that has.
//!
//! It checks what RFC 1952 lets it check but for the checksum of a header (`FHCRC`), which it passes over. Of broken codes it
//! takes some that zlib refuses; no compressor makes them.

use std::ptr::{self, NonNull};

use libdeflate_sys::{
    libdeflate_alloc_decompressor, libdeflate_decompressor, libdeflate_free_decompressor,
    libdeflate_gzip_decompress_ex, libdeflate_result_LIBDEFLATE_INSUFFICIENT_SPACE as INSUFFICIENT_SPACE,
    libdeflate_result_LIBDEFLATE_SUCCESS as SUCCESS,
};

/// A decompressor: some 11 kB of tables, used again for each member.
pub struct Inflater(NonNull<libdeflate_decompressor>);

// SAFETY: the tables are memory that one value owns, and what libdeflate keeps beside them is which instructions the machine
// has. By libdeflate.h a decompressor is for one thread at a time: each use here has `&mut self`.
unsafe impl Send for Inflater {}

/// What came of inflating.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Inflated {
    /// A whole member that took this many bytes.
    Member(usize),
    /// More came out than was allowed, or would have come of a member that is cut.
    MoreRoom,
    /// No whole good member begins here: it is cut, or damaged.
    NoMember,
}

impl Default for Inflater {
    /// Makes a decompressor.
    ///
    /// # Panics
    /// Where there is no memory for it.
    fn default() -> Inflater {
        // SAFETY: it takes nothing, and gives a decompressor or null.
        let tables = unsafe { libdeflate_alloc_decompressor() };
        Inflater(NonNull::new(tables).expect("there is memory for 11 kB"))
    }
}

impl Inflater {
    /// Inflates the gzip member that `stored` begins with, and appends its content to `out` where that is at most `most`
    /// bytes. Without a [`Inflated::Member`] `out` has what it had.
    pub fn member(&mut self, stored: &[u8], most: usize, out: &mut Vec<u8>) -> Inflated {
        out.reserve(most);
        let mut taken = 0;
        let mut given = 0;
        // SAFETY: `self.0` is a decompressor that nobody else uses (`&mut self`) until `drop` frees it. The input is the whole
        // of a slice; the output is the first `most` bytes of the spare room reserved above, which it only writes. A null
        // in place of `&mut given` would ask for exactly `most` bytes.
        let result = unsafe {
            let room = out.spare_capacity_mut();
            debug_assert!(room.len() >= most);
            libdeflate_gzip_decompress_ex(
                self.0.as_ptr(),
                stored.as_ptr().cast(),
                stored.len(),
                room.as_mut_ptr().cast(),
                most,
                ptr::from_mut(&mut taken),
                ptr::from_mut(&mut given),
            )
        };
        match result {
            SUCCESS => {
                let length = out.len() + given.min(most);
                // SAFETY: on success it wrote `given` bytes of the spare room from its beginning, at most `most`.
                unsafe { out.set_len(length) };
                Inflated::Member(taken.min(stored.len()))
            }
            INSUFFICIENT_SPACE => Inflated::MoreRoom,
            _ => Inflated::NoMember,
        }
    }
}

impl Drop for Inflater {
    fn drop(&mut self) {
        // SAFETY: it came from `libdeflate_alloc_decompressor`, and is not used again.
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
    fn a_wrong_checksum_or_size_is_no_member() {
        let member = gzip(b"words");
        for back in 1..=8 {
            let mut wrong = member.clone();
            let at = wrong.len() - back;
            wrong[at] ^= 1;
            assert_eq!(Inflater::default().member(&wrong, 100, &mut Vec::new()), Inflated::NoMember, "{back}");
        }
    }
}
