//! Cuts texts into words, by the rule of a method.
//!
//! The default, letters and digits, is a kernel, and so is what follows for every rule: shingles
//! need the bounds of words only. The other rules go character by character.
//!
//! Bytes that are not UTF-8 are not part of a word, and neither is U+FFFD, with which a decoder
//! would replace them; nor is NUL, which joins the words of a shingle.

use nigh_kernels::kernels::{Kernels, TEXT_BYTES, is_spaceless};

use super::icu_words::IcuWords;
use crate::method::{Spaceless, TextForm, WordPattern, WordRule};

/// Cuts texts into words.
pub(super) struct WordCutter {
    kernels: &'static Kernels,
    rule: Rule,
}

enum Rule {
    /// Runs of letters and digits.
    Runs,
    Code {
        /// Whether each letter of a script without blanks is a word.
        letters: bool,
    },
    Characters,
    Icu(IcuWords),
    Pattern(Box<WordPattern>),
}

impl WordCutter {
    pub(super) fn new(rule: &WordRule, form: TextForm, kernels: &'static Kernels) -> WordCutter {
        let rule = match rule {
            WordRule::Letters => Rule::Runs,
            WordRule::Code => Rule::Code { letters: form.spaceless != Spaceless::Runs },
            WordRule::Characters => Rule::Characters,
            WordRule::Icu => Rule::Icu(IcuWords::new()),
            WordRule::Pattern(pattern) => Rule::Pattern(Box::new(pattern.clone())),
        };
        WordCutter { kernels, rule }
    }

    /// Whether words are cut by the kernel.
    pub(super) fn is_kernel(&self) -> bool {
        matches!(self.rule, Rule::Runs)
    }

    /// Writes the start and the end of each word of a text, in order.
    ///
    /// # Panics
    /// If the text is longer than [`TEXT_BYTES`](nigh_kernels::kernels::TEXT_BYTES).
    pub(super) fn cut(&self, text: &[u8], bounds: &mut Vec<u32>) {
        match &self.rule {
            Rule::Runs => return self.kernels.words(text, bounds),
            _ => bounds.clear(),
        }
        assert!(text.len() <= TEXT_BYTES, "the text has {} bytes, more than {TEXT_BYTES}", text.len());
        let mut at = 0;
        for chunk in text.utf8_chunks() {
            let valid = chunk.valid();
            match &self.rule {
                Rule::Runs => {}
                Rule::Code { letters } => code(valid, at, *letters, bounds),
                Rule::Characters => {
                    let counts = |c: &(usize, char)| is_visible(c.1);
                    let visible = valid.char_indices().filter(counts);
                    visible.for_each(|(start, c)| push(bounds, at + start, at + start + c.len_utf8()));
                }
                Rule::Icu(icu) => icu.words(valid, &mut |start, end| push(bounds, at + start, at + end)),
                Rule::Pattern(pattern) => matches(pattern, valid, at, bounds),
            }
            at += valid.len() + chunk.invalid().len();
        }
    }
}

/// Adds a word.
fn push(bounds: &mut Vec<u32>, start: usize, end: usize) {
    bounds.extend([start as u32, end as u32]);
}

/// Whether a character is neither white space nor a control character, nor one that stands for what
/// is no text.
fn is_visible(c: char) -> bool {
    !c.is_whitespace() && !c.is_control() && c != char::REPLACEMENT_CHARACTER
}

/// The words of source code; `at` is where it begins in the text.
fn code(text: &str, at: usize, letters: bool, bounds: &mut Vec<u32>) {
    let mut open: Option<usize> = None;
    for (start, c) in text.char_indices() {
        let is_own = letters && !c.is_ascii() && is_spaceless(c.into());
        if (c.is_alphanumeric() || c == '_') && !is_own {
            open.get_or_insert(start);
            continue;
        }
        if let Some(first) = open.take() {
            push(bounds, at + first, at + start);
        }
        if is_visible(c) {
            push(bounds, at + start, at + start + c.len_utf8());
        }
    }
    if let Some(first) = open {
        push(bounds, at + first, at + text.len());
    }
}

/// The matches of a pattern, in parts without NUL and U+FFFD.
fn matches(pattern: &WordPattern, text: &str, at: usize, bounds: &mut Vec<u32>) {
    for found in pattern.regex().find_iter(text) {
        let mut open: Option<usize> = None;
        let start = at + found.start();
        for (place, c) in text[found.range()].char_indices() {
            if !matches!(c, '\0' | char::REPLACEMENT_CHARACTER) {
                open.get_or_insert(place);
            } else if let Some(first) = open.take() {
                push(bounds, start + first, start + place);
            }
        }
        if let Some(first) = open {
            push(bounds, start + first, at + found.end());
        }
    }
}

#[cfg(test)]
mod tests {
    use nigh_kernels::kernels::chosen;
    use proptest::prelude::*;

    use super::*;

    fn cut<'a>(rule: &WordRule, form: TextForm, text: &'a [u8]) -> Vec<&'a [u8]> {
        let mut bounds = vec![7; 3];
        WordCutter::new(rule, form, chosen().unwrap()).cut(text, &mut bounds);
        bounds.as_chunks().0.iter().map(|[start, end]| &text[*start as usize..*end as usize]).collect()
    }

    fn texts(rule: &WordRule, text: &str) -> String {
        let words = cut(rule, TextForm::default(), text.as_bytes());
        words.into_iter().map(|word| std::str::from_utf8(word).unwrap()).collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn code_has_identifiers_and_symbols() {
        for (text, words) in [
            ("def __init__(self, x2):\n\treturn x2 == 0x1F", "def __init__ ( self , x2 ) : return x2 = = 0x1F"),
            ("a+b", "a + b"),
            ("// 東京 é_ü", "/ / 東 京 é_ü"),
            ("x\u{fffd}y\0z \u{7}😀", "x y z 😀"),
            (" \n\t", ""),
        ] {
            assert_eq!(texts(&WordRule::Code, text), words, "{text:?}");
        }
        let runs = TextForm { spaceless: Spaceless::Runs, ..TextForm::default() };
        assert_eq!(cut(&WordRule::Code, runs, "東京x".as_bytes()).len(), 1);
    }

    #[test]
    fn characters_are_all_that_can_be_seen() {
        assert_eq!(texts(&WordRule::Characters, "a b,\r\n\u{a0}é東😀\0"), "a b , é 東 😀");
        assert_eq!(cut(&WordRule::Characters, TextForm::default(), b"a\xff\xe6\x9db"), [b"a", b"b"]);
    }

    #[test]
    fn a_pattern_has_its_matches() {
        let rule = |text: &str| WordRule::Pattern(WordPattern::new(text).unwrap());
        assert_eq!(texts(&rule(r"[\w-]+"), "well-known: é, 12"), "well-known é 12");
        assert_eq!(texts(&rule("x*"), "axxb"), "xx", "empty matches are no words");
        assert_eq!(texts(&rule("(?s).+"), "a\0\0b\u{fffd}"), "a b");
        assert_eq!(cut(&rule(r"\S+"), TextForm::default(), b"a\xffb c"), [b"a", b"b", b"c"]);
    }

    /// The definitions, character by character, as lists of words.
    fn naive(rule: &WordRule, text: &str) -> Vec<String> {
        let (mut words, mut word) = (Vec::new(), String::new());
        for c in text.chars() {
            let joins = match rule {
                WordRule::Code => (c.is_alphanumeric() || c == '_') && !is_spaceless(c.into()),
                _ => false,
            };
            if joins {
                word.push(c);
                continue;
            }
            words.push(std::mem::take(&mut word));
            if !c.is_whitespace() && !c.is_control() && c != '\u{fffd}' {
                words.push(c.to_string());
            }
        }
        words.push(word);
        words.retain(|word| !word.is_empty());
        words
    }

    proptest! {
        #[test]
        fn words_are_those_of_the_definition(text in "([a-c_0 (){}=+\\n\\t]{0,12}|[ก-ค一-三ぁ]|\\PC|[\\u{0}\\u{fffd}\\u{a0}😀]){0,20}") {
            for rule in [WordRule::Code, WordRule::Characters] {
                let found = cut(&rule, TextForm::default(), text.as_bytes());
                let found: Vec<String> = found.into_iter().map(|word| String::from_utf8(word.to_vec()).unwrap()).collect();
                prop_assert_eq!(found, naive(&rule, &text));
            }
            // What the kernel cuts, a pattern can say, too.
            let letters = WordRule::Pattern(WordPattern::new(r"[\p{Alphabetic}\p{N}]+").unwrap());
            let runs = TextForm { spaceless: Spaceless::Runs, ..TextForm::default() };
            prop_assert_eq!(cut(&letters, runs, text.as_bytes()), cut(&WordRule::Letters, runs, text.as_bytes()));
        }
    }
}
