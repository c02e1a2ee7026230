//! Scripts that are written without blanks between words: each of their characters is a word, once
//! there is a blank on both sides of it.

use std::ops::RangeInclusive;
use std::sync::LazyLock;

/// The blocks of scripts that are written without blanks between words: Thai, Lao; Myanmar; Khmer;
/// the iteration mark and zero of Han; Hiragana and Katakana; Katakana extensions; Han A; Han;
/// Myanmar extensions B and A; compatibility Han; Katakana of half width; Kana supplements; Han B
/// to I and its supplement.
const SPACELESS: [RangeInclusive<u32>; 15] = [
    0xE00..=0xEFF,
    0x1000..=0x109F,
    0x1780..=0x17FF,
    0x3005..=0x3007,
    0x3040..=0x30FF,
    0x31F0..=0x31FF,
    0x3400..=0x4DBF,
    0x4E00..=0x9FFF,
    0xA9E0..=0xA9FF,
    0xAA60..=0xAA7F,
    0xF900..=0xFAFF,
    0xFF66..=0xFF9F,
    0x1_AFF0..=0x1_AFFF,
    0x1_B000..=0x1_B16F,
    0x2_0000..=0x3_FFFF,
];

/// Whether a character is of a script that is written without blanks.
///
/// ```
/// use nigh_kernels::kernels::is_spaceless;
/// assert_eq!(['字', 'ก', 'a', '한'].map(|c| is_spaceless(c.into())), [true, true, false, false]);
/// ```
#[inline]
pub fn is_spaceless(c: u32) -> bool {
    match c {
        0x4E00..=0x9FFF | 0x3040..=0x30FF | 0xE00..=0xEFF => true,
        _ => SPACELESS.iter().any(|block| block.contains(&c)),
    }
}

/// For characters of three bytes, in rows of 64 that share their first two: laid out as in
/// `alphabet`.
#[cfg_attr(not(target_arch = "x86_64"), allow(dead_code, reason = "only AVX-512 looks up a table of this size"))]
pub(in crate::kernels) struct CharacterRows {
    /// Whether all characters of a row are of scripts without blanks: bit `c / 64 % 8` of byte
    /// `c / 512`.
    pub(in crate::kernels) all: [u8; 128],
    /// Whether any is, likewise.
    pub(in crate::kernels) any: [u8; 128],
}

/// The rows, computed at first use.
#[cfg_attr(not(target_arch = "x86_64"), allow(dead_code, reason = "only AVX-512 looks up a table of this size"))]
pub(in crate::kernels) static ROWS: LazyLock<CharacterRows> = LazyLock::new(|| {
    let rows = |predicate: fn(RangeInclusive<u32>) -> bool| -> [u8; 128] {
        std::array::from_fn(|byte| {
            let first = |bit: usize| 64 * (8 * byte + bit) as u32;
            (0..8).fold(0, |bits, bit| bits | u8::from(predicate(first(bit)..=first(bit) + 63)) << bit)
        })
    };
    CharacterRows { all: rows(|mut row| row.all(is_spaceless)), any: rows(|mut row| row.any(is_spaceless)) }
});

/// A blank stands between two bytes that are both no white space, if a character of a script
/// without blanks ends or begins there: the definition.
pub(in crate::kernels) fn scalar(text: &[u8], spaced: &mut Vec<u8>) -> u64 {
    let mut pieces: Vec<(bool, &[u8])> = Vec::new();
    for chunk in text.utf8_chunks() {
        let mut rest = chunk.valid();
        while let Some(c) = rest.chars().next() {
            let (one, after) = rest.split_at(c.len_utf8());
            pieces.push((is_spaceless(c.into()), one.as_bytes()));
            rest = after;
        }
        pieces.extend(chunk.invalid().chunks(1).map(|byte| (false, byte)));
    }
    spaced.clear();
    let (mut blanks, mut was_spaceless) = (0, false);
    for (is_one, piece) in pieces {
        if (was_spaceless || is_one) && spaced.last().is_some_and(|last| *last > b' ') && piece[0] > b' ' {
            spaced.push(b' ');
            blanks += 1;
        }
        spaced.extend_from_slice(piece);
        was_spaceless = is_one;
    }
    blanks
}

/// See [`Kernels::put_blanks`](crate::kernels::Kernels::put_blanks): run by run of such characters, for
/// levels that cannot compress vectors of bytes.
#[cfg(any(target_arch = "x86_64", all(target_arch = "aarch64", target_endian = "little")))]
pub(in crate::kernels) fn by_runs(text: &[u8], spaced: &mut Vec<u8>) -> u64 {
    let mut next = next_spaceless(text, 0);
    if next.is_none() {
        return 0;
    }
    spaced.clear();
    spaced.reserve(text.len() + text.len() / 3 + 64);
    let (mut copied, mut blanks) = (0, 0);
    while let Some(at) = next {
        spaced.extend_from_slice(&text[copied..at]);
        if spaced.last().is_some_and(|last| *last > b' ') {
            spaced.push(b' ');
            blanks += 1;
        }
        let (length, count) = push_run(&text[at..], spaced);
        copied = at + length;
        blanks += count;
        if text.get(copied).is_none_or(|next| *next <= b' ') {
            spaced.pop();
            blanks -= 1;
        }
        next = next_spaceless(text, copied);
    }
    spaced.extend_from_slice(&text[copied..]);
    blanks
}

/// The characters of a run that are appended at once.
#[cfg(any(target_arch = "x86_64", all(target_arch = "aarch64", target_endian = "little")))]
const RUN: usize = 8;

/// Appends the characters of scripts without blanks with which `text` begins, each with a blank
/// after it. Returns the number of their bytes, and their number.
#[cfg(any(target_arch = "x86_64", all(target_arch = "aarch64", target_endian = "little")))]
#[inline]
fn push_run(text: &[u8], spaced: &mut Vec<u8>) -> (usize, u64) {
    let (mut at, mut count) = (0, 0);
    loop {
        // Nearly all have three bytes: four are read and written at once, the fourth as a blank.
        while let Some(block) = text[at..].first_chunk::<{ 3 * RUN + 1 }>() {
            let (mut run, mut length) = ([[b' '; 4]; RUN], 0);
            for (number, character) in run.iter_mut().enumerate() {
                let four: [u8; 4] = *block[3 * number..].first_chunk().expect("the block has a byte more than the run");
                let is_three_bytes = u32::from_le_bytes(four) & 0xC0_C0F0 == 0x80_80E0;
                if !is_three_bytes || !is_spaceless(of_three_bytes(four[0], four[1], four[2])) {
                    break;
                }
                character[..3].copy_from_slice(&four[..3]);
                length += 1;
            }
            let before = spaced.len();
            spaced.extend_from_slice(run.as_flattened());
            spaced.truncate(before + 4 * length);
            at += 3 * length;
            count += length as u64;
            if length < RUN {
                break;
            }
        }
        // One of four bytes, one near the end of the text, or the end of the run.
        match character(&text[at..]) {
            Some((c, length)) if is_spaceless(c) => {
                spaced.extend_from_slice(&text[at..at + length]);
                spaced.push(b' ');
                at += length;
                count += 1;
            }
            _ => return (at, count),
        }
    }
}

/// The place, from `at` on, of the next character of a script without blanks.
#[cfg(any(target_arch = "x86_64", all(target_arch = "aarch64", target_endian = "little")))]
#[inline]
fn next_spaceless(text: &[u8], mut at: usize) -> Option<usize> {
    loop {
        at = next_candidate(text, at)?;
        match character(&text[at..]) {
            Some((c, _)) if is_spaceless(c) => return Some(at),
            Some((_, length)) => at += length,
            None => at += 1,
        }
    }
}

/// The place, from `at` on, of the next two bytes with which a character of a script without blanks
/// may begin.
#[cfg(any(target_arch = "x86_64", all(target_arch = "aarch64", target_endian = "little")))]
#[inline]
fn next_candidate(text: &[u8], mut at: usize) -> Option<usize> {
    if let [lead, next, ..] = text[at..]
        && may_be_spaceless(lead, next)
    {
        return Some(at);
    }
    while let Some(block) = text[at..].first_chunk::<65>() {
        // Without branches within the block, so that it becomes vectors; first in short, for ASCII
        // and for characters of two bytes.
        if block.iter().fold(false, |any, byte| any | (*byte >= 0xE0 && *byte != 0xE2))
            && block.iter().zip(&block[1..]).fold(false, |any, (lead, next)| any | may_be_spaceless(*lead, *next))
        {
            break;
        }
        at += 64;
    }
    text[at..].windows(2).position(|two| two[0] >= 0xE0 && may_be_spaceless(two[0], two[1])).map(|place| at + place)
}

/// Whether a character of a script without blanks may begin with these two bytes. None of Latin,
/// Greek, Cyrillic, Arabic or Hangul does, and no punctuation from U+2000 to U+2FFF; a test
/// computes this from [`SPACELESS`].
#[cfg(any(test, target_arch = "x86_64", all(target_arch = "aarch64", target_endian = "little")))]
#[inline(always)]
fn may_be_spaceless(lead: u8, next: u8) -> bool {
    let is_in = |byte: u8, from: u8, to: u8| byte.wrapping_sub(from) <= to - from;
    is_in(lead, 0xE3, 0xE9)
        | (lead == 0xE0) & is_in(next, 0xB8, 0xBB)
        | (lead == 0xE1) & (is_in(next, 0x80, 0x82) | is_in(next, 0x9E, 0x9F))
        | (lead == 0xEA) & ((next == 0xA7) | (next == 0xA9))
        | (lead == 0xEF) & (is_in(next, 0xA4, 0xAB) | is_in(next, 0xBD, 0xBE))
        | (lead == 0xF0) & (is_in(next, 0x9A, 0x9B) | is_in(next, 0xA0, 0xBF))
}

/// The character with these three bytes.
#[inline(always)]
fn of_three_bytes(lead: u8, a: u8, b: u8) -> u32 {
    u32::from(lead & 0x0F) << 12 | u32::from(a & 0x3F) << 6 | u32::from(b & 0x3F)
}

/// The length of the character of a script without blanks with which some bytes begin; 0 if they do
/// not.
#[cfg_attr(not(target_arch = "x86_64"), allow(dead_code, reason = "only AVX-512 asks for one character"))]
#[inline]
pub(in crate::kernels) fn spaceless_length(bytes: &[u8]) -> usize {
    character(bytes).filter(|(c, _)| is_spaceless(*c)).map_or(0, |(_, length)| length)
}

/// The character with which some bytes begin, and its length in bytes; `None` if they are not
/// UTF-8.
///
/// ```
/// use nigh_kernels::kernels::character;
/// assert_eq!(character("字a".as_bytes()), Some((0x5B57, 3)));
/// assert_eq!(character(b"\xFF"), None);
/// ```
#[inline]
pub fn character(bytes: &[u8]) -> Option<(u32, usize)> {
    // Of three bytes, and no surrogate: nearly all that come here.
    if let [lead @ (0xE1..=0xEC | 0xEE..=0xEF), a @ 0x80..=0xBF, b @ 0x80..=0xBF, ..] = *bytes {
        return Some((of_three_bytes(lead, a, b), 3));
    }
    let length = match bytes.first()? {
        0x00..=0x7F => 1,
        0xC2..=0xDF => 2,
        0xE0..=0xEF => 3,
        0xF0..=0xF4 => 4,
        _ => return None,
    };
    let c = std::str::from_utf8(bytes.get(..length)?).ok()?.chars().next()?;
    Some((c.into(), length))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::kernels::available;

    /// Compares all levels on a text.
    fn same_blanks(text: &[u8], description: &dyn Fn() -> String) {
        let (mut expected, mut spaced) = (Vec::new(), b"left from another text".to_vec());
        let blanks = scalar(text, &mut expected);
        for level in available() {
            assert_eq!(level.put_blanks(text, &mut spaced), blanks, "{}: {}", level.name(), description());
            if blanks > 0 {
                assert_eq!(spaced, expected, "{}: {}", level.name(), description());
            }
        }
    }

    #[test]
    fn no_character_of_a_script_without_blanks_begins_with_other_bytes() {
        for c in SPACELESS.into_iter().flatten().filter_map(char::from_u32) {
            let mut bytes = [0; 4];
            c.encode_utf8(&mut bytes);
            assert!(may_be_spaceless(bytes[0], bytes[1]), "{c:?}");
        }
        // What is passed over without a look at each character.
        for c in ('\0'..='\u{7FF}')
            .chain('\u{900}'..='\u{DFF}')
            .chain('\u{2000}'..='\u{2FFF}')
            .chain('\u{AC00}'..='\u{D7FF}')
        {
            let mut bytes = [0; 4];
            c.encode_utf8(&mut bytes);
            assert!(!may_be_spaceless(bytes[0], bytes[1]), "{c:?}");
        }
    }

    #[test]
    fn every_character_gets_its_blanks() {
        for c in ('\0'..='\u{FFFF}').chain(('\u{10000}'..=char::MAX).step_by(5)).chain('\u{1AFE0}'..='\u{1B180}') {
            for text in [format!("a{c}b"), format!("{c}{c}"), format!("{0}{c}{0}", "x".repeat(62))] {
                same_blanks(text.as_bytes(), &|| format!("{c:?}"));
            }
        }
    }

    #[test]
    fn a_character_may_stand_at_any_place_of_a_block() {
        for c in ["字", "々", "。", "ｱ", "\u{20000}", "é", "한"] {
            for before in 0..140 {
                for after in [0, 1, 2, 30, 64, 70] {
                    for (beside, many) in [("x", 1), (" ", 1), ("x", 9), ("中", 25)] {
                        let text = beside.repeat(before) + &c.repeat(many) + &beside.repeat(after);
                        same_blanks(text.as_bytes(), &|| format!("{before} {after} {many} {c}"));
                    }
                }
            }
        }
    }

    proptest! {
        #[test]
        fn blanks_are_those_of_the_definition(
            pieces in prop::collection::vec(prop_oneof![
                "[a-zé €]{0,40}", "[ぁ-ヿ一-龥]{1,30}", "[ぁ-ヿ一-龥、。々]{1,30}", "[ก-๛ ]{1,20}", "[가-힣]{1,30}", "[\u{20000}😀ﬁｱ\u{1000}]{1,9}", "\\PC{0,9}",
            ], 0..8),
            cuts in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 0..4),
        ) {
            // Some bytes are overwritten, so that it is not all UTF-8.
            let mut text = pieces.concat().into_bytes();
            for (place, byte) in cuts {
                if !text.is_empty() {
                    let place = place.index(text.len());
                    text[place] = byte;
                }
            }
            same_blanks(&text, &|| format!("{text:x?}"));
        }
    }
}
