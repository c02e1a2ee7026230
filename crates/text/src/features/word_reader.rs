//! Reads the words of a text in the form in which they are compared, and where they are in the text
//! as it is.
//!
//! A word in its form can be shorter or longer than in the text: case, diacritics and normal forms
//! change its bytes, and a letter of a script without blanks is a word by itself. So its place is
//! that of the characters that became a part of it.

use std::borrow::Cow;
use std::collections::BTreeSet;
use std::sync::LazyLock;

use anyhow::Result;
use icu_normalizer::{ComposingNormalizerBorrowed, DecomposingNormalizerBorrowed};
use icu_properties::CodePointMapData;
use icu_properties::props::GeneralCategory;
use nigh_kernels::kernels::{Kernels, chosen, is_spaceless};

use super::cutter::WordCutter;
use super::form::TextFormer;
use crate::method::{Content, Method, Spaceless, TextForm, Unicode};
use crate::text::{charset, html, scan_content};

/// Reads the words of texts; its buffers are reused from text to text.
pub struct WordReader {
    form: TextForm,
    former: TextFormer,
    cutter: WordCutter,
    content: Content,
    kernels: &'static Kernels,
    decoded: String,
    extract: html::Extract,
    bounds: Vec<u32>,
}

/// The words of a text, in the form in which they are compared.
///
/// ```
/// use nigh_text::features::WordReader;
/// use nigh_text::method::Method;
///
/// let mut reader = WordReader::of_method(&Method::default())?;
/// let words = reader.text("To be, or not to be");
/// assert_eq!((words.len(), words.get(2)), (6, &b"or"[..]));
/// # anyhow::Ok(())
/// ```
#[derive(Clone, Copy)]
pub struct Words<'a> {
    text: &'a [u8],
    /// Start and end of each word.
    bounds: &'a [[u32; 2]],
}

impl<'a> Words<'a> {
    /// The number of words.
    pub fn len(&self) -> usize {
        self.bounds.len()
    }

    /// Whether there are no words.
    pub fn is_empty(&self) -> bool {
        self.bounds.is_empty()
    }

    /// A word, by its number from 0.
    pub fn get(&self, number: usize) -> &'a [u8] {
        let [start, end] = self.bounds[number];
        &self.text[start as usize..end as usize]
    }

    /// The words in order.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = &'a [u8]> {
        let text = self.text;
        self.bounds.iter().map(move |[start, end]| &text[*start as usize..*end as usize])
    }
}

impl WordReader {
    /// A reader of the words of a method.
    ///
    /// # Errors
    /// If the method asks for the main content of pages, or for words of ICU, and this program is
    /// built without them.
    pub fn new(method: &Method, kernels: &'static Kernels) -> Result<WordReader> {
        method.content.check()?;
        method.rule.check()?;
        Ok(WordReader {
            form: method.form,
            former: TextFormer::of_method(method, kernels),
            cutter: WordCutter::new(&method.rule, method.form, kernels),
            content: method.content,
            kernels,
            decoded: String::new(),
            extract: html::Extract::default(),
            bounds: Vec::new(),
        })
    }

    /// The reader of the words of a method, which finds its kernels itself.
    ///
    /// # Errors
    /// As [`new`](WordReader::new); and if `NIGH_KERNELS` names a level of kernels that this
    /// machine does not have.
    pub fn of_method(method: &Method) -> Result<WordReader> {
        WordReader::new(method, chosen()?)
    }

    /// The words of an HTML page. `label` is the charset of its HTTP header.
    pub fn html(&mut self, body: &[u8], label: Option<&str>) -> Words<'_> {
        let WordReader { former, cutter, content, kernels, decoded, extract, bounds, .. } = self;
        scan_content(charset::decode_bytes(body, label, decoded), *content, 0, kernels, extract);
        words(former, cutter, bounds, &extract.text)
    }

    /// The words of plain text, as bytes in some charset. `label` is the charset of its HTTP
    /// header.
    pub fn plain<'a>(&'a mut self, body: &'a [u8], label: Option<&str>) -> Words<'a> {
        let WordReader { former, cutter, decoded, bounds, .. } = self;
        words(former, cutter, bounds, charset::decode_plain_bytes(body, label, decoded))
    }

    /// The words of a text.
    pub fn text<'a>(&'a mut self, text: &'a str) -> Words<'a> {
        let WordReader { former, cutter, bounds, .. } = self;
        words(former, cutter, bounds, text.as_bytes())
    }

    /// Where each word is in a text: its first byte, and the byte after its last one. A word that
    /// shares characters with another one, because a normal form made one of theirs, has the place
    /// of both.
    ///
    /// ```
    /// use nigh_text::features::WordReader;
    /// use nigh_text::method::{Method, TextForm};
    ///
    /// let form = TextForm { fold_case: true, ..TextForm::default() };
    /// let mut reader = WordReader::of_method(&Method { form, ..Method::default() })?;
    /// assert_eq!(reader.places("Où est-il ?"), [[0, 3], [4, 7], [8, 10]]);
    /// # anyhow::Ok(())
    /// ```
    pub fn places(&mut self, text: &str) -> Vec<[u32; 2]> {
        let WordReader { form, former, cutter, bounds, .. } = self;
        let formed = former.form(text.as_bytes());
        if formed.as_ptr() == text.as_ptr() || text.is_ascii() {
            // Nothing moved: of ASCII, only case changes.
            cutter.cut(formed, bounds);
            return bounds.as_chunks().0.to_vec();
        }
        let each = |add: &mut dyn FnMut(char, [u32; 2])| match form.unicode {
            Unicode::AsIs => each_character(text, 0, &mut |c, place| add(c, place)),
            Unicode::Nfc => each_composed(text, &mut |c, place| add(c, place)),
        };
        if cutter.is_kernel() {
            let mut found = WordPlaces { form: *form, places: Vec::new(), open: None };
            each(&mut |c, place| found.add(former, c, place));
            found.end();
            return found.places;
        }
        let mut formed = FormedText::default();
        each(&mut |c, place| formed.add(former, c, place));
        cutter.cut(formed.text.as_bytes(), bounds);
        bounds.as_chunks().0.iter().map(|word| formed.place(*word)).collect()
    }
}

/// A text in its form, with where each of its characters was.
#[derive(Default)]
struct FormedText {
    text: String,
    /// Where each character begins in `text`, and the place that it was made of.
    characters: Vec<(u32, [u32; 2])>,
}

impl FormedText {
    /// Adds a character of the normal form, which was made of the bytes at `place`.
    fn add(&mut self, former: &TextFormer, c: char, place: [u32; 2]) {
        for c in former.character(c).chars() {
            self.characters.push((self.text.len() as u32, place));
            self.text.push(c);
        }
    }

    /// The place of a word.
    fn place(&self, [start, end]: [u32; 2]) -> [u32; 2] {
        let before = |end: u32| self.characters.partition_point(|(at, _)| *at < end);
        let (_, [first, _]) = self.characters[before(start)];
        let (_, [_, last]) = self.characters[before(end) - 1];
        [first, last]
    }
}

/// The words of a text that is brought into the form first.
fn words<'a>(former: &'a mut TextFormer, cutter: &WordCutter, bounds: &'a mut Vec<u32>, text: &'a [u8]) -> Words<'a> {
    let text = former.form(text);
    cutter.cut(text, bounds);
    Words { text, bounds: bounds.as_chunks().0 }
}

/// The places of words, while a text is read character by character.
struct WordPlaces {
    form: TextForm,
    places: Vec<[u32; 2]>,
    /// The word that goes on.
    open: Option<[u32; 2]>,
}

impl WordPlaces {
    /// Adds a character of the normal form, which was made of the bytes at `place`.
    fn add(&mut self, former: &TextFormer, c: char, place: [u32; 2]) {
        if c.is_ascii() {
            self.add_one(c, place);
        } else {
            former.character(c).chars().for_each(|c| self.add_one(c, place));
        }
    }

    fn add_one(&mut self, c: char, [start, end]: [u32; 2]) {
        let is_word = self.form.spaceless == Spaceless::Letters && is_spaceless(c as u32);
        if is_word || !c.is_alphanumeric() {
            self.end();
        }
        if c.is_alphanumeric() {
            let [first, _] = self.open.unwrap_or([start, end]);
            self.open = Some([first, end]);
        }
        if is_word {
            self.end();
        }
    }

    fn end(&mut self) {
        self.places.extend(self.open.take());
    }
}

/// Calls `each` with the characters of a text, and their places; the text begins at byte `at`.
fn each_character(text: &str, at: usize, each: &mut impl FnMut(char, [u32; 2])) {
    for (start, c) in text.char_indices() {
        each(c, [(at + start) as u32, (at + start + c.len_utf8()) as u32]);
    }
}

/// Calls `each` with the characters of the normal form C of a text, and the places of what became
/// each: the text is cut before each character that no character before it changes, and each part
/// has one place.
fn each_composed(text: &str, each: &mut impl FnMut(char, [u32; 2])) {
    let normalizer = ComposingNormalizerBorrowed::new_nfc();
    let mut start = 0;
    while start < text.len() {
        let next = text[start..].char_indices().skip(1).find(|(_, c)| begins_part(*c));
        let end = next.map_or(text.len(), |(at, _)| start + at);
        let place = [start as u32, end as u32];
        match normalizer.normalize(&text[start..end]) {
            Cow::Borrowed(same) => each_character(same, start, each),
            Cow::Owned(composed) => composed.chars().for_each(|c| each(c, place)),
        }
        start = end;
    }
}

/// Whether a character neither composes with one before it nor is put before one: it is no mark,
/// and the last one of no decomposition.
fn begins_part(c: char) -> bool {
    static LAST: LazyLock<BTreeSet<char>> = LazyLock::new(|| {
        let normalizer = DecomposingNormalizerBorrowed::new_nfd();
        let decomposed = |c: char| match normalizer.normalize(c.encode_utf8(&mut [0; 4])) {
            Cow::Owned(parts) => parts.chars().skip(1).last(),
            Cow::Borrowed(_) => None,
        };
        (char::MIN..=char::MAX).filter_map(decomposed).collect()
    });
    let categories = CodePointMapData::<GeneralCategory>::new();
    let is_mark = |category| {
        use GeneralCategory::{EnclosingMark, NonspacingMark, SpacingMark};
        matches!(category, NonspacingMark | SpacingMark | EnclosingMark)
    };
    c.is_ascii() || !is_mark(categories.get(c)) && !LAST.contains(&c)
}

#[cfg(test)]
mod tests {
    use std::cell::RefCell;
    use std::collections::BTreeMap;

    use proptest::prelude::*;

    use super::*;
    use crate::features::Fingerprinter;
    use crate::method::WordRule;

    thread_local! {
        /// What reads the words of a method, by the method: a fingerprinter takes long to make.
        static READERS: RefCell<BTreeMap<String, (WordReader, Fingerprinter)>> = RefCell::default();
    }

    fn forms() -> Vec<TextForm> {
        let mut all = Vec::new();
        for fold_case in [false, true] {
            for strip_diacritics in [false, true] {
                for unicode in [Unicode::AsIs, Unicode::Nfc] {
                    for spaceless in [Spaceless::Letters, Spaceless::Runs] {
                        all.push(TextForm { fold_case, strip_diacritics, unicode, spaceless });
                    }
                }
            }
        }
        all
    }

    /// The text at each place, read again, is the word.
    fn assert_right(form: TextForm, text: &str) {
        assert_right_by(WordRule::Letters, form, text);
    }

    fn assert_right_by(rule: WordRule, form: TextForm, text: &str) {
        // A dictionary cuts a word in its text.
        let is_cut_alone = rule != WordRule::Icu;
        let method = Method { rule, form, ..Method::default() };
        let make = || (WordReader::of_method(&method).unwrap(), Fingerprinter::of_method(&method).unwrap());
        READERS.with_borrow_mut(|readers| {
            let (reader, fingerprinter) = readers.entry(format!("{method:?}")).or_insert_with(make);
            assert_same_words(reader, fingerprinter, (form, is_cut_alone), text);
        });
    }

    fn assert_same_words(
        reader: &mut WordReader,
        fingerprinter: &mut Fingerprinter,
        (form, is_cut_alone): (TextForm, bool),
        text: &str,
    ) {
        let read: Vec<Vec<u8>> = reader.text(text).iter().map(<[u8]>::to_vec).collect();
        let known = fingerprinter.words_of_text(text).words;
        assert_eq!(read, known.iter().map(|word| word.as_bytes().to_vec()).collect::<Vec<_>>(), "{text:?} {form:?}");
        let places = reader.places(text);
        assert_eq!(places.len(), read.len(), "{text:?} {form:?} {places:?}");
        assert!(places.is_sorted(), "{text:?} {form:?}");
        for ([start, end], word) in places.iter().zip(&read).filter(|_| is_cut_alone) {
            let of_place = &text[*start as usize..*end as usize];
            let again: Vec<&[u8]> = reader.text(of_place).iter().collect();
            assert!(again.contains(&&word[..]), "{text:?} {form:?}: {of_place:?} is not {word:?}");
        }
    }

    #[test]
    fn places_are_those_of_the_characters_of_a_word() {
        for form in forms() {
            for text in [
                "",
                "a",
                "To be, or NOT",
                "Où est-il",
                "東京 to 大阪",
                "e\u{301}te\u{301} A\u{30a}",
                "İstanbul x",
                "ｱ각b",
                "ภาษาไทย ท\u{e4d}า ก\u{301}x",
            ] {
                assert_right(form, text);
                let icu = cfg!(feature = "icu-words").then_some(WordRule::Icu);
                for rule in [WordRule::Code, WordRule::Characters].into_iter().chain(icu) {
                    assert_right_by(rule, form, text);
                }
            }
        }
        let nfc = TextForm { unicode: Unicode::Nfc, ..TextForm::default() };
        let mut reader = WordReader::of_method(&Method { form: nfc, ..Method::default() }).unwrap();
        assert_eq!(reader.places("e\u{301}te\u{301}-x"), [[0, 7], [8, 9]]);
        assert_eq!(reader.places("東京x"), [[0, 3], [3, 6], [6, 7]]);
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(150))]

        #[test]
        fn places_of_any_text_are_those_of_its_words(
            pieces in prop::collection::vec(
                prop::sample::select(
                    &["a", "B", "ß", "é", "e\u{301}", "\u{301}", "\u{315}\u{300}", "字", "ก", "ำ", "각", "\u{1100}\u{1161}", "\u{11a8}", "İ",
                      "ﬁ", " ", ". ", "\n", "-", "\u{fffd}", "\u{20000}", "Ⱥ", "𐐀", "हिन्दी"][..],
                ),
                0..20,
            ),
            form in prop::sample::select(forms()),
        ) {
            let text = pieces.concat();
            for rule in [WordRule::Letters, WordRule::Code, WordRule::Characters] {
                assert_right_by(rule, form, &text);
            }
        }
    }
}
