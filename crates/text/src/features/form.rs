//! The form in which words are compared: a text becomes another one, which is then cut into words.
//!
//! ```text
//! text ─▶ normal form of Unicode ─▶ without diacritics, without case ─▶ a blank beside each letter of a script without blanks
//! ```
//!
//! A step that changes nothing costs one look at the bytes, and copies nothing. Case and diacritics
//! go character by character, by a table for those of two bytes, so that they do not depend on
//! neighbours.

use std::borrow::Cow;
use std::sync::OnceLock;

use icu_normalizer::{ComposingNormalizerBorrowed, DecomposingNormalizerBorrowed};
use icu_properties::CodePointMapData;
use icu_properties::props::GeneralCategory;

use nigh_kernels::kernels::{Kernels, character};

use crate::method::{Method, Spaceless, TextForm, Unicode, WordRule};

/// The characters of two bytes.
const TWO_BYTES: usize = 0x800;

/// Brings texts into a form; its buffers are reused from text to text.
pub(super) struct TextFormer {
    form: TextForm,
    kernels: &'static Kernels,
    /// What case and diacritics make of characters; `None` if they are kept.
    mapping: Option<&'static Mapping>,
    mapped: Vec<u8>,
    spaced: Vec<u8>,
    /// The blanks put into the last text.
    blanks: u64,
}

impl TextFormer {
    /// Brings texts into the form of a method. Blanks are put for the kernel that cuts at them, and
    /// for no other rule.
    pub(super) fn of_method(method: &Method, kernels: &'static Kernels) -> TextFormer {
        let puts_blanks = method.rule == WordRule::Letters && method.form.spaceless == Spaceless::Letters;
        let spaceless = if puts_blanks { Spaceless::Letters } else { Spaceless::Runs };
        TextFormer::new(TextForm { spaceless, ..method.form }, kernels)
    }

    fn new(form: TextForm, kernels: &'static Kernels) -> TextFormer {
        TextFormer { form, kernels, mapping: Mapping::of(form), mapped: Vec::new(), spaced: Vec::new(), blanks: 0 }
    }

    /// A text in the form. Bytes that are not UTF-8 may become U+FFFD, which is no part of a word
    /// either.
    pub(super) fn form<'a>(&'a mut self, text: &'a [u8]) -> &'a [u8] {
        let TextFormer { form, kernels, mapping, mapped, spaced, blanks } = self;
        *blanks = 0;
        let composed = match form.unicode {
            Unicode::AsIs => Cow::Borrowed(text),
            Unicode::Nfc => composed(text),
        };
        let is_mapped = match mapping {
            Some(mapping) => {
                mapping.map(&composed, mapped);
                true
            }
            None => match composed {
                Cow::Borrowed(_) => false,
                Cow::Owned(composed) => {
                    *mapped = composed;
                    true
                }
            },
        };
        let text = if is_mapped { &mapped[..] } else { text };
        if form.spaceless == Spaceless::Letters {
            *blanks = kernels.put_blanks(text, spaced);
        }
        if *blanks > 0 { &spaced[..] } else { text }
    }

    /// What case and diacritics make of a character of the normal form: nothing, of a mark that is
    /// stripped.
    pub(super) fn character(&self, c: char) -> String {
        self.mapping.map_or_else(|| c.into(), |mapping| mapping.character(c))
    }

    /// The blanks that the last text got, each between two characters that are no white space.
    pub(super) fn blanks(&self) -> u64 {
        self.blanks
    }
}

/// A text in form C.
fn composed(text: &[u8]) -> Cow<'_, [u8]> {
    if text.is_ascii() {
        return Cow::Borrowed(text);
    }
    let normalizer = ComposingNormalizerBorrowed::new_nfc();
    let composed = |text: &str| match normalizer.normalize(text) {
        Cow::Borrowed(_) => None,
        Cow::Owned(composed) => Some(composed.into_bytes()),
    };
    match String::from_utf8_lossy(text) {
        Cow::Borrowed(valid) => composed(valid).map_or(Cow::Borrowed(text), Cow::Owned),
        Cow::Owned(replaced) => Cow::Owned(composed(&replaced).unwrap_or_else(|| replaced.into_bytes())),
    }
}

/// What case and diacritics make of characters.
struct Mapping {
    fold_case: bool,
    strip_diacritics: bool,
    /// Of each character below [`TWO_BYTES`]: its bytes, and their number. Characters that become
    /// longer are not in it: their number is [`OTHER`].
    small: [([u8; 3], u8); TWO_BYTES],
    /// Of each character of the first plane, as bits: whether it becomes another one.
    changes: Box<[u64; 1024]>,
}

/// The length of what is not in the table.
const OTHER: u8 = 4;

impl Mapping {
    /// The mapping of a form; `None` if it keeps case and diacritics. Each of the three is made
    /// once in a process: it takes some milliseconds.
    fn of(form: TextForm) -> Option<&'static Mapping> {
        static MADE: [OnceLock<Mapping>; 3] = [const { OnceLock::new() }; 3];
        let made = match (form.fold_case, form.strip_diacritics) {
            (false, false) => return None,
            (true, false) => &MADE[0],
            (false, true) => &MADE[1],
            (true, true) => &MADE[2],
        };
        Some(made.get_or_init(|| Mapping::new(form.fold_case, form.strip_diacritics)))
    }

    fn new(fold_case: bool, strip_diacritics: bool) -> Mapping {
        let (small, changes) = ([([0; 3], OTHER); TWO_BYTES], Box::new([0; 1024]));
        let mut mapping = Mapping { fold_case, strip_diacritics, small, changes };
        for c in (0..=0xFFFF).filter_map(char::from_u32) {
            let mapped = mapping.character(c);
            let bytes = mapped.as_bytes();
            let (number, mut one) = (c as usize, [0; 4]);
            if bytes != c.encode_utf8(&mut one).as_bytes() {
                mapping.changes[number / 64] |= 1 << (number % 64);
            }
            if number < TWO_BYTES && bytes.len() <= 3 {
                let mut entry = [0; 3];
                entry[..bytes.len()].copy_from_slice(bytes);
                mapping.small[number] = (entry, bytes.len() as u8);
            }
        }
        mapping
    }

    /// What becomes of a character: nothing, of a mark that is stripped.
    fn character(&self, c: char) -> String {
        let mut text = String::from(c);
        if self.strip_diacritics {
            let categories = CodePointMapData::<GeneralCategory>::new();
            let decomposed = DecomposingNormalizerBorrowed::new_nfd().normalize(&text).into_owned();
            let kept = decomposed.chars().filter(|c| categories.get(*c) != GeneralCategory::NonspacingMark);
            let kept: String = kept.collect();
            // Only diacritics are taken apart: syllables of Hangul stay.
            if kept.len() < decomposed.len() {
                text = kept;
            }
        }
        if self.fold_case {
            text = text.chars().flat_map(char::to_lowercase).collect();
        }
        text
    }

    /// Maps a text; bytes that are not UTF-8 stay.
    fn map(&self, text: &[u8], mapped: &mut Vec<u8>) {
        mapped.clear();
        mapped.reserve(text.len() + text.len() / 8 + 64);
        let mut at = 0;
        while at < text.len() {
            if let Some(eight) = text[at..].first_chunk::<8>() {
                let word = u64::from_le_bytes(*eight);
                if word & HIGH == 0 {
                    let word = if self.fold_case { lower(word) } else { word };
                    mapped.extend_from_slice(&word.to_le_bytes());
                    at += 8;
                    continue;
                }
            }
            at += self.map_one(&text[at..], mapped);
        }
    }

    /// Maps the character with which some bytes begin; returns its length.
    #[inline]
    fn map_one(&self, bytes: &[u8], mapped: &mut Vec<u8>) -> usize {
        let (number, length) = match *bytes {
            [byte @ 0..0x80, ..] => (usize::from(byte), 1),
            [lead @ 0xC2..=0xDF, next @ 0x80..=0xBF, ..] => {
                (usize::from(lead & 0x1F) << 6 | usize::from(next & 0x3F), 2)
            }
            _ => match character(bytes) {
                Some((c, length)) => (c as usize, length),
                None => {
                    mapped.push(bytes[0]);
                    return 1;
                }
            },
        };
        if let Some((entry, count @ 0..OTHER)) = self.small.get(number) {
            mapped.extend_from_slice(&entry[..usize::from(*count)]);
            return length;
        }
        let is_same = number < 0x1_0000 && self.changes[number / 64] >> (number % 64) & 1 == 0;
        match char::from_u32(number as u32) {
            Some(c) if !is_same => mapped.extend_from_slice(self.character(c).as_bytes()),
            _ => mapped.extend_from_slice(&bytes[..length]),
        }
        length
    }
}

/// The highest bit of each byte.
const HIGH: u64 = 0x8080_8080_8080_8080;

/// Eight characters of ASCII, with their letters in lower case.
#[inline]
fn lower(word: u64) -> u64 {
    const ONES: u64 = HIGH >> 7;
    // The highest bit of a byte, once the distance to it is added: of bytes from `A` on, and of
    // bytes beyond `Z`.
    let from_a = word + ONES * u64::from(0x80 - b'A');
    let beyond_z = word + ONES * u64::from(0x7F - b'Z');
    word | (from_a & !beyond_z & HIGH) >> 2
}

#[cfg(test)]
mod tests {
    use nigh_kernels::kernels::{chosen, is_spaceless};
    use proptest::prelude::*;

    use super::*;

    fn formed(form: TextForm, text: &str) -> String {
        String::from_utf8(TextFormer::new(form, chosen().unwrap()).form(text.as_bytes()).to_vec()).unwrap()
    }

    /// The words of a text by the definition: character by character, from the text in form C.
    fn naive(form: TextForm, text: &str) -> Vec<String> {
        let composed = match form.unicode {
            Unicode::AsIs => text.to_owned(),
            Unicode::Nfc => ComposingNormalizerBorrowed::new_nfc().normalize(text).into_owned(),
        };
        let categories = CodePointMapData::<GeneralCategory>::new();
        let (mut words, mut word) = (Vec::new(), String::new());
        for c in composed.chars() {
            let mut one = vec![c];
            if form.strip_diacritics {
                let decomposed: Vec<char> =
                    DecomposingNormalizerBorrowed::new_nfd().normalize(&String::from(c)).chars().collect();
                let is_mark = |c: &char| categories.get(*c) == GeneralCategory::NonspacingMark;
                if decomposed.iter().any(is_mark) {
                    one = decomposed.into_iter().filter(|c| !is_mark(c)).collect();
                }
            }
            if form.fold_case {
                one = one.into_iter().flat_map(char::to_lowercase).collect();
            }
            for c in one {
                let is_word = form.spaceless == Spaceless::Letters && is_spaceless(c as u32);
                if is_word || !c.is_alphanumeric() {
                    words.push(std::mem::take(&mut word));
                }
                if c.is_alphanumeric() {
                    word.push(c);
                }
                if is_word {
                    words.push(std::mem::take(&mut word));
                }
            }
        }
        words.push(word);
        words.retain(|word| !word.is_empty());
        words
    }

    #[test]
    fn letters_of_scripts_without_blanks_are_words() {
        let form = TextForm::default();
        assert_eq!(formed(form, "私は東京へ行く。New York時間"), "私 は 東 京 へ 行 く 。New York 時 間");
        assert_eq!(formed(form, "ราคา 20 บาท"), "ร า ค า 20 บ า ท");
        assert_eq!(formed(form, "人々\u{20000}x"), "人 々 \u{20000} x");
        for same in ["한국어 텍스트", "हिन्दी", "plain \u{201c}quoted\u{201d}", "", "é", "😀 x"] {
            assert_eq!(formed(form, same), same);
        }
        assert_eq!(formed(TextForm { spaceless: Spaceless::Runs, ..form }, "東京"), "東京");
    }

    #[test]
    fn blanks_are_counted_where_they_stand_between_other_characters() {
        let mut former = TextFormer::new(TextForm::default(), chosen().unwrap());
        for (text, blanks) in [("東京", 1), (" 東 京 ", 0), ("a東b", 2), ("東", 0), ("ab", 0), ("東,\n京", 1)] {
            former.form(text.as_bytes());
            assert_eq!(former.blanks(), blanks, "{text}");
        }
    }

    #[test]
    fn case_and_diacritics_go_character_by_character() {
        let fold = TextForm { fold_case: true, ..TextForm::default() };
        let strip = TextForm { strip_diacritics: true, ..TextForm::default() };
        let both = TextForm { strip_diacritics: true, ..fold };
        assert_eq!(formed(fold, "ÀÉÎ Straße ΣΑΣ ТЕКСТ İ Ⱥ K 𐐀@[`{AZ"), "àéî straße σασ текст i\u{307} ⱥ k 𐐨@[`{az");
        assert_eq!(formed(strip, "ÀÉÎ e\u{301} Ṩ й 한 ﬁ"), "AEI e S и 한 ﬁ");
        assert_eq!(formed(both, "İSTANBUL Ünï"), "istanbul uni");
        let nfc = TextForm { unicode: Unicode::Nfc, ..TextForm::default() };
        assert_eq!(formed(nfc, "e\u{301}A\u{30a}"), "éÅ");
    }

    #[test]
    fn bytes_that_are_not_utf8_stay_or_are_no_part_of_a_word() {
        let bytes = b"A\xff\xe6\x9dB\xe6\x9d\xb1C\xf0\x9f";
        let mut former = TextFormer::new(TextForm { fold_case: true, ..TextForm::default() }, chosen().unwrap());
        assert_eq!(former.form(bytes), b"a\xff\xe6\x9db \xe6\x9d\xb1 c\xf0\x9f");
        let mut former = TextFormer::new(TextForm { unicode: Unicode::Nfc, ..TextForm::default() }, chosen().unwrap());
        assert_eq!(former.form(b"e\xcc\x81\xff"), "é\u{fffd}".as_bytes());
    }

    proptest! {
        #[test]
        fn words_are_those_of_the_definition(
            text in "([a-zA-Z ]{0,12}|[à-ÿĀ-ſİΑ-ω]|[ก-๛]|[ぁ-ヿ一-龥、。]|[가-힣]|\\u{301}|\\u{308}|[\\u{20000}😀ﬁ]|\\PC){0,30}",
            (fold_case, strip_diacritics, nfc, runs) in any::<(bool, bool, bool, bool)>(),
        ) {
            let form = TextForm {
                fold_case,
                strip_diacritics,
                unicode: if nfc { Unicode::Nfc } else { Unicode::AsIs },
                spaceless: if runs { Spaceless::Runs } else { Spaceless::Letters },
            };
            let found = formed(form, &text);
            let found: Vec<&str> = crate::text::words(&found).collect();
            prop_assert_eq!(found, naive(form, &text));
        }
    }
}
