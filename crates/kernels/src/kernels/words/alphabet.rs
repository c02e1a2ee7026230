//! Bitmaps of the alphanumeric characters (`char::is_alphanumeric`), laid out for lookups by UTF-8
//! bytes.

use std::sync::LazyLock;

/// The alphanumeric characters.
pub(in crate::kernels) struct Alphabet {
    /// Whether the character `c` below 2^16 is alphanumeric: bit `c % 64` of word `c / 64`.
    plane: Box<[u64; 1024]>,
    /// The same as bytes, for characters of one and two bytes: bit `c % 8` of byte `c / 8`.
    #[cfg_attr(not(target_arch = "x86_64"), allow(dead_code, reason = "only AVX-512 looks up a table of this size"))]
    pub(in crate::kernels) two: [u8; 256],
    /// Whether all of the 64 characters that share the first two of their three bytes are
    /// alphanumeric: bit `c / 64 % 8` of byte `c / 512`.
    #[cfg_attr(not(target_arch = "x86_64"), allow(dead_code, reason = "only AVX-512 looks up a table of this size"))]
    pub(in crate::kernels) all: [u8; 128],
    /// Whether any of these 64 characters is alphanumeric, likewise.
    #[cfg_attr(not(target_arch = "x86_64"), allow(dead_code, reason = "only AVX-512 looks up a table of this size"))]
    pub(in crate::kernels) any: [u8; 128],
}

/// The bitmaps, computed from the standard library at first use.
pub(in crate::kernels) static ALPHABET: LazyLock<Alphabet> = LazyLock::new(|| {
    let alphanumeric = |c: usize| char::from_u32(c as u32).is_some_and(char::is_alphanumeric);
    let plane: Box<[u64; 1024]> = Box::new(std::array::from_fn(|row| {
        (0..64).fold(0, |word, bit| word | u64::from(alphanumeric(64 * row + bit)) << bit)
    }));
    // Characters below 2^11 have no valid form of three bytes, so rows below 32 are not part of a
    // word.
    let rows = |predicate: fn(u64) -> bool| -> [u8; 128] {
        std::array::from_fn(|byte| {
            (0..8).fold(0, |bits, bit| {
                let row = 8 * byte + bit;
                bits | u8::from(row >= 32 && predicate(plane[row])) << bit
            })
        })
    };
    let (all, any) = (rows(|row| row == u64::MAX), rows(|row| row != 0));
    let two = std::array::from_fn(|byte| (plane[byte / 8] >> (8 * (byte % 8))) as u8);
    Alphabet { plane, two, all, any }
});

impl Alphabet {
    /// The length of the alphanumeric character of two to four bytes with which `bytes` begin. 0 if
    /// they begin with any other character, or with bytes that are not UTF-8.
    #[inline]
    pub(in crate::kernels) fn leads(&self, bytes: [u8; 4]) -> usize {
        let [lead, rest @ ..] = bytes.map(u32::from);
        let follows = |byte: u32| byte & 0xC0 == 0x80;
        let in_plane = |c: u32| self.plane[c as usize / 64] >> (c % 64) & 1 == 1;
        match lead {
            0xC2..0xE0 if follows(rest[0]) && in_plane((lead & 0x1F) << 6 | rest[0] & 0x3F) => 2,
            0xE0..0xF0 if follows(rest[0]) && follows(rest[1]) => {
                let c = (lead & 0x0F) << 12 | (rest[0] & 0x3F) << 6 | rest[1] & 0x3F;
                if c >= 0x800 && in_plane(c) { 3 } else { 0 }
            }
            0xF0..0xF5 if follows(rest[0]) && follows(rest[1]) && follows(rest[2]) => {
                let c = (lead & 7) << 18 | (rest[0] & 0x3F) << 12 | (rest[1] & 0x3F) << 6 | rest[2] & 0x3F;
                if c >= 0x1_0000 && char::from_u32(c).is_some_and(char::is_alphanumeric) { 4 } else { 0 }
            }
            _ => 0,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_character_is_classified_by_its_bytes() {
        for c in '\u{80}'..=char::MAX {
            let mut bytes = [0; 4];
            let length = c.encode_utf8(&mut bytes).len();
            assert_eq!(ALPHABET.leads(bytes), if c.is_alphanumeric() { length } else { 0 }, "{c:?}");
        }
    }

    #[test]
    fn bytes_that_are_not_utf8_begin_no_character() {
        // Every sequence of three bytes, followed by one that continues it and by one that does
        // not.
        for bytes in 0..1u32 << 24 {
            let [_, a, b, c] = bytes.to_be_bytes();
            for d in [0x80, 0x41] {
                let bytes = [a, b, c, d];
                let length = ALPHABET.leads(bytes);
                let first = bytes.utf8_chunks().next().and_then(|chunk| chunk.valid().chars().next());
                let expected = first.filter(|c| !c.is_ascii() && c.is_alphanumeric()).map_or(0, char::len_utf8);
                assert_eq!(length, expected, "{bytes:x?}");
            }
        }
    }
}
