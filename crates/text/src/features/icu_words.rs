//! Words as ICU cuts them (`words = "icu"`): the rules of Unicode (UAX #29), and dictionaries for
//! scripts without blanks.
//!
//! A segment counts if it is a word or a number: not white space, punctuation or a symbol. The
//! dictionaries have Chinese and Japanese words (one for both), and those of Thai, Lao, Khmer and
//! Burmese; of several words that begin at a place the longest is taken. What no dictionary has is
//! cut after each cluster of letters.
//!
//! Cost: linear in the text, also where it has no blank, as measured (docs/method.md); and 8 bytes
//! for each word of the longest run of letters of a script without blanks.
//!
//! The words are those of the data of the crate `icu_segmenter`: other versions may cut in other
//! places.

/// Cuts texts into words.
#[cfg(feature = "icu-words")]
pub(super) struct IcuWords(icu_segmenter::WordSegmenterBorrowed<'static>);

#[cfg(feature = "icu-words")]
impl IcuWords {
    pub fn new() -> IcuWords {
        IcuWords(icu_segmenter::WordSegmenter::new_dictionary(Default::default()))
    }

    /// Calls `each` with the start and the end of each word, in order.
    pub fn words(&self, text: &str, each: &mut dyn FnMut(usize, usize)) {
        let mut start = 0;
        for (end, kind) in self.0.segment_str(text).iter_with_word_type() {
            if kind.is_word_like() {
                visible(&text[start..end], &mut |first, last| each(start + first, start + last));
            }
            start = end;
        }
    }
}

/// Calls `each` with the parts of a segment that have a letter or a digit. A segment has a blank
/// where marks without a letter follow the blank.
#[cfg(feature = "icu-words")]
fn visible(segment: &str, each: &mut dyn FnMut(usize, usize)) {
    let is_between = |c: char| c.is_whitespace() || c.is_control() || c == char::REPLACEMENT_CHARACTER;
    let mut start = 0;
    for part in segment.split_inclusive(is_between) {
        let word = part.trim_end_matches(is_between);
        if word.contains(char::is_alphanumeric) {
            each(start, start + word.len());
        }
        start += part.len();
    }
}

/// Without the feature there are none; a job that asks for them is refused before.
#[cfg(not(feature = "icu-words"))]
pub(super) struct IcuWords;

#[cfg(not(feature = "icu-words"))]
impl IcuWords {
    pub fn new() -> IcuWords {
        IcuWords
    }

    pub fn words(&self, _: &str, _: &mut dyn FnMut(usize, usize)) {}
}

#[cfg(all(test, feature = "icu-words"))]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn words(text: &str) -> Vec<&str> {
        let mut words = Vec::new();
        IcuWords::new().words(text, &mut |start, end| words.push(&text[start..end]));
        words
    }

    #[test]
    fn words_are_those_of_dictionaries() {
        for (text, expected) in [
            ("Don\u{2019}t stop, e.g. 3.14 times!", "Don\u{2019}t|stop|e.g|3.14|times"),
            ("東京都に住んでいます。", "東京|都|に|住|んで|いま|す"),
            ("我们在北京大学学习。", "我们|在|北京|大学|学习"),
            ("ฉันรักภาษาไทย", "ฉัน|รัก|ภาษา|ไทย"),
            ("ພາສາລາວ", "ພາສາ|ລາວ"),
            ("ភាសាខ្មែរ", "ភាសាខ្មែរ"),
            ("မြန်မာစာ", "မြန်မာ|စာ"),
            ("x\0y 😀 \u{fffd} -", "x|y"),
        ] {
            assert_eq!(words(text).join("|"), expected, "{text}");
        }
    }

    #[test]
    fn a_long_text_without_a_blank_is_cut() {
        for (piece, most) in
            [("ก", 1), ("ภาษาไทย", 2), ("東京", 2), ("一", 1), ("ក", 1), ("ア", 1), ("a", 1), ("ก\u{e49}", 1)]
        {
            let text = piece.repeat(40_000);
            let found = words(&text);
            assert!(found.len() >= most && found.concat() == text, "{piece}: {} words", found.len());
        }
        let marks = format!("ก{}ข", "\u{e49}".repeat(100_000));
        assert_eq!(words(&marks).concat(), marks);
    }

    proptest! {
        #[test]
        fn words_follow_each_other_and_have_a_letter_or_digit(
            text in "([ก-๎ກ-ໝក-៓က-႟一-丯ぁ-ヿ]{0,6}|\\PC|[a-z0-9 .'\\u{0}\\u{fffd}\\u{200d}\\u{301}]{0,4}){0,20}"
        ) {
            let mut last = 0;
            IcuWords::new().words(&text, &mut |start, end| {
                assert!(last <= start && start < end && text.is_char_boundary(start) && text.is_char_boundary(end));
                assert!(!text[start..end].contains(['\0', '\u{fffd}', ' ']), "{text:?}");
                last = end;
            });
        }
    }
}
