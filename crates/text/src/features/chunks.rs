//! Chunks: the hashes of a page's text, lines and paragraphs, from which studies of overlapping
//! pages are made (Shivakumar and Garcia-Molina 1998; Pereira, Baeza-Yates and Ziviani 2006,
//! definition 1).
//!
//! Everything follows from the bounds of the words, which shingles need, too. The words are copied
//! with one blank between them. Then a text, a line and a sentence are slices of the copy, and each
//! is hashed once.
//!
//! ```text
//! line         the words up to a line end, or up to the word that would pass 80 columns; a longer word is cut at 80
//! sentence     the words up to a period, or the word that has the 150th character
//! paragraph    three sentences; the last paragraph of a page may have fewer
//! ```
//!
//! A line end is a byte between two words: [`LINE_END`](crate::text::html::LINE_END) for HTML,
//! where line ends of the source are blanks like others, and `\n` for text. Columns, and the
//! characters of a sentence, are counted with one blank between words, without punctuation.
//!
//! Cost: 5 ns a word with AVX-512, about 12 without (Zen 4). A word takes 70 ns from a compressed
//! WARC file to its features. Half of the cost is hashing.
//!
//! Limitation: in a text that is not UTF-8, each byte that does not continue a character counts as
//! one.

use memchr::{memchr, memrchr};
use nigh_kernels::kernels::{JoinedWords, Kernels};
use nigh_kernels::records::fold;

/// The most characters of a line.
const COLUMNS: usize = 80;
/// A line that is not the last one before a line end has about as many: the word that would follow
/// has a few letters.
const USUAL_COLUMNS: usize = COLUMNS - 6;
/// The characters after which a sentence ends.
const SENTENCE: usize = 150;
/// The sentences of a paragraph.
const SENTENCES: usize = 3;

/// The chunks of a page.
#[derive(Clone, Debug, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct PageChunks {
    /// XXH3-128 of the words with one blank between them.
    pub text: u128,
    /// The number of characters of the text, each run of white space and control characters as one
    /// blank; none at the ends.
    pub characters: u64,
    /// The low 4 bytes of the XXH3-64 of each line, little-endian, in order.
    pub lines: Vec<u8>,
    /// 8 bytes for each paragraph, little-endian, in order: [`fold`] of the XXH3-64 of its words
    /// with one blank between them, and of where its sentences end in them, except the last.
    pub paragraphs: Vec<u8>,
}

impl PageChunks {
    /// The chunks of a text that [`Kernels::join`](nigh_kernels::kernels::Kernels::join) joined;
    /// `None` if it has no words.
    ///
    /// ```
    /// use nigh_kernels::kernels;
    /// use nigh_text::features::PageChunks;
    /// let (mut bounds, mut joined) = (Vec::new(), kernels::JoinedWords::default());
    /// let kernels = kernels::chosen()?;
    /// let mut chunks = |text: &str| {
    ///     kernels.join(text.as_bytes(), b'\n', &mut bounds, &mut joined);
    ///     anyhow::Ok(PageChunks::of(&joined, kernels).unwrap_or_default())
    /// };
    /// let page = chunks("One line.\nAnother  line\n")?;
    /// assert_eq!((page.lines.len(), page.paragraphs.len(), page.characters), (2 * 4, 8, 22));
    /// assert_eq!(page.lines[..4], chunks("One line")?.lines);
    /// # anyhow::Ok(())
    /// ```
    pub fn of(joined: &JoinedWords, kernels: &Kernels) -> Option<PageChunks> {
        let words = joined.words();
        if words.is_empty() {
            return None;
        }
        let sentences = joined.sentence_starts().len() + words.len() / SENTENCE + 1;
        let mut chunks = PageChunks {
            text: kernels.hash_128(words),
            characters: joined.characters(),
            lines: Vec::with_capacity(4 * (joined.line_starts().len() + 1 + words.len() / USUAL_COLUMNS)),
            paragraphs: Vec::with_capacity(8 * sentences.div_ceil(SENTENCES)),
        };
        let columns = CharacterCounter { is_ascii: words.is_ascii() };
        let lines = &mut chunks.lines;
        pieces(words, joined.line_starts(), |from, to| push_lines(&words[from..to], columns, kernels, lines));
        let mut paragraph = OpenSentences { words, columns, kernels, ends: [0; SENTENCES], sentences: 0, from: 0 };
        pieces(words, joined.sentence_starts(), |from, to| paragraph.push_all(from, to, &mut chunks.paragraphs));
        paragraph.end(&mut chunks.paragraphs);
        Some(chunks)
    }
}

/// Calls `each` with the bounds of the words from one of `starts` to the next one. Before a start
/// there is a blank, except before the first word.
#[inline(always)]
fn pieces(words: &[u8], starts: &[u32], mut each: impl FnMut(usize, usize)) {
    let mut from = 0;
    for next in starts.iter().map(|start| *start as usize).filter(|start| *start > 0) {
        each(from, next - 1);
        from = next;
    }
    each(from, words.len());
}

/// Appends the hashes of the lines of words between two line ends.
fn push_lines(mut words: &[u8], columns: CharacterCounter, kernels: &Kernels, lines: &mut Vec<u8>) {
    // A character has at least one byte: a line of few bytes is not counted.
    while words.len() > COLUMNS {
        let limit = columns.prefix::<COLUMNS>(words);
        if limit == words.len() {
            break;
        }
        // The last blank at which the words before it fit; else the long word is cut.
        match last_blank(&words[..=limit]) {
            Some(blank) => {
                push_line(&words[..blank], kernels, lines);
                words = &words[blank + 1..];
            }
            None => {
                push_line(&words[..limit], kernels, lines);
                words = &words[limit..];
            }
        }
    }
    push_line(words, kernels, lines);
}

/// Appends the hash of a line.
#[inline]
fn push_line(line: &[u8], kernels: &Kernels, lines: &mut Vec<u8>) {
    lines.extend_from_slice(&(kernels.hash_64(line) as u32).to_le_bytes());
}

/// The place of the last blank. Nearly always it is among the last 16 bytes: a look at these takes
/// less time than a call of `memrchr`.
#[inline]
fn last_blank(bytes: &[u8]) -> Option<usize> {
    match bytes.last_chunk().map_or(0, blanks) {
        0 => memrchr(b' ', bytes),
        blanks => Some(bytes.len() - 1 - blanks.leading_zeros() as usize / 8),
    }
}

/// The place of the first blank, likewise.
#[inline]
fn first_blank(bytes: &[u8]) -> Option<usize> {
    match bytes.first_chunk().map_or(0, blanks) {
        0 => memchr(b' ', bytes),
        blanks => Some(blanks.trailing_zeros() as usize / 8),
    }
}

/// The highest bit of each byte that is a blank.
#[inline]
fn blanks(bytes: &[u8; 16]) -> u128 {
    const ONES: u128 = u128::MAX / 255;
    const LOW: u128 = ONES * 0x7F;
    let others = u128::from_le_bytes(*bytes) ^ (ONES * b' ' as u128);
    // Of zeros, only the highest bit is not set. No carry leaves a byte.
    !(((others & LOW) + LOW) | others | LOW)
}

/// The sentences of a paragraph so far.
struct OpenSentences<'a> {
    /// The words of the text.
    words: &'a [u8],
    columns: CharacterCounter,
    kernels: &'a Kernels,
    /// Where in them the paragraph begins.
    from: usize,
    /// The ends of its sentences.
    ends: [usize; SENTENCES],
    sentences: usize,
}

impl OpenSentences<'_> {
    /// Adds the sentences of the words between two periods.
    fn push_all(&mut self, mut from: usize, to: usize, paragraphs: &mut Vec<u8>) {
        // As in `push_lines`: few bytes are not counted.
        while to - from >= SENTENCE {
            let words = &self.words[from..to];
            let last = self.columns.prefix::<{ SENTENCE - 1 }>(words);
            // The end of the word that has this character, or of the next word if it is a blank.
            let rest = words.get(last + 1..).unwrap_or_default();
            let Some(blank) = first_blank(rest) else { break };
            let end = from + last + 1 + blank;
            self.push(from, end, paragraphs);
            from = end + 1;
        }
        self.push(from, to, paragraphs);
    }

    /// Adds a sentence; ends the paragraph if it was the last.
    fn push(&mut self, from: usize, to: usize, paragraphs: &mut Vec<u8>) {
        if self.sentences == 0 {
            self.from = from;
        }
        self.ends[self.sentences] = to;
        self.sentences += 1;
        if self.sentences == SENTENCES {
            self.end(paragraphs);
        }
    }

    /// Appends the hash of the paragraph, if it has a sentence.
    fn end(&mut self, paragraphs: &mut Vec<u8>) {
        if let Some(last) = self.sentences.checked_sub(1) {
            let mut parts = [0; SENTENCES];
            parts[0] = self.kernels.hash_64(&self.words[self.from..self.ends[last]]);
            for (part, end) in parts[1..].iter_mut().zip(&self.ends[..last]) {
                *part = (end - self.from) as u64;
            }
            paragraphs.extend_from_slice(&fold(&parts[..=last]).to_le_bytes());
            self.sentences = 0;
        }
    }
}

/// Counts characters of the words of a page.
#[derive(Clone, Copy)]
struct CharacterCounter {
    /// Whether each byte is a character.
    is_ascii: bool,
}

impl CharacterCounter {
    /// The length in bytes of the first `CHARACTERS` characters, at most 255.
    #[inline(always)]
    fn prefix<const CHARACTERS: usize>(self, bytes: &[u8]) -> usize {
        let Some(first) = bytes.first_chunk::<CHARACTERS>() else { return bytes.len() };
        if self.is_ascii {
            return CHARACTERS;
        }
        // The bytes that continue a character among these make room for as many more. A sum of
        // bytes: the compiler makes vectors of it.
        let mut missing: u8 = first.iter().map(|byte| u8::from(!begins(*byte))).sum();
        let mut at = CHARACTERS;
        while let Some(eight) = bytes[at..].first_chunk()
            && let begun = begun(eight)
            && begun <= missing
        {
            missing -= begun;
            at += 8;
        }
        while at < bytes.len() && (missing > 0 || !begins(bytes[at])) {
            missing -= u8::from(begins(bytes[at]));
            at += 1;
        }
        at
    }
}

/// How many of eight bytes begin a character.
#[inline]
fn begun(eight: &[u8; 8]) -> u8 {
    const ONES: u64 = u64::MAX / 255;
    let word = u64::from_le_bytes(*eight);
    // One for each byte that continues a character: its highest bit is set, and the next one is
    // not.
    let continuing = (word & !(word << 1)) >> 7 & ONES;
    // The highest byte of the product is their sum.
    8 - (continuing.wrapping_mul(ONES) >> 56) as u8
}

/// Whether a byte begins a character.
fn begins(byte: u8) -> bool {
    byte & 0xC0 != 0x80
}

#[cfg(test)]
pub(crate) mod tests {
    use std::fs::File;
    use std::io::Read;
    use std::path::Path;

    use nigh_kernels::kernels::chosen;
    use proptest::prelude::*;
    use xxhash_rust::xxh3::{xxh3_64, xxh3_128};

    use super::*;
    use crate::features::Fingerprinter;
    use crate::method::{Method, Spaceless, TextForm};
    use crate::text::html::LINE_END;
    use crate::text::html::twin::by_html5gum;
    use crate::text::{canonical, decode, words};

    fn chunks(text: &[u8], line_end: u8) -> Option<PageChunks> {
        let (mut bounds, mut joined) = (Vec::new(), JoinedWords::default());
        chosen().unwrap().join(text, line_end, &mut bounds, &mut joined);
        PageChunks::of(&joined, chosen().unwrap())
    }

    fn bytes<const N: usize>(hashes: impl Iterator<Item = [u8; N]>) -> Vec<u8> {
        hashes.flatten().collect()
    }

    /// The lines of a text, by the definition.
    pub(crate) fn naive_lines(text: &str, line_end: char) -> Vec<String> {
        let mut lines: Vec<String> = Vec::new();
        for block in text.split(line_end) {
            let mut line: Vec<String> = Vec::new();
            for word in words(block) {
                if line.join(" ").chars().count() + 1 + word.chars().count() > 80 && !line.is_empty() {
                    lines.push(line.join(" "));
                    line.clear();
                }
                let mut word: Vec<char> = word.chars().collect();
                while word.len() > 80 {
                    lines.push(word.drain(..80).collect());
                }
                line.push(word.into_iter().collect());
            }
            lines.extend(Some(line.join(" ")).filter(|line| !line.is_empty()));
        }
        lines
    }

    /// The paragraphs of a text as lists of sentences, by the definition.
    pub(crate) fn naive_paragraphs(text: &str) -> Vec<Vec<String>> {
        let mut sentences: Vec<String> = Vec::new();
        for period in text.split('.') {
            let mut sentence: Vec<&str> = Vec::new();
            for word in words(period) {
                sentence.push(word);
                if sentence.join(" ").chars().count() >= 150 {
                    sentences.push(sentence.join(" "));
                    sentence.clear();
                }
            }
            sentences.extend(Some(sentence.join(" ")).filter(|sentence| !sentence.is_empty()));
        }
        sentences.chunks(3).map(<[String]>::to_vec).collect()
    }

    /// The chunks of a text, by the definition.
    pub(crate) fn naive(text: &str, line_end: char) -> Option<PageChunks> {
        let joined = words(text).collect::<Vec<_>>().join(" ");
        let folded = text.split(|c: char| c <= ' ').filter(|piece| !piece.is_empty()).collect::<Vec<_>>().join(" ");
        let paragraph = |sentences: &Vec<String>| {
            let mut parts = vec![xxh3_64(sentences.join(" ").as_bytes())];
            parts.extend((1..sentences.len()).map(|count| sentences[..count].join(" ").len() as u64));
            fold(&parts).to_le_bytes()
        };
        let line = |line: &String| (xxh3_64(line.as_bytes()) as u32).to_le_bytes();
        (!joined.is_empty()).then(|| PageChunks {
            text: xxh3_128(joined.as_bytes()),
            characters: folded.chars().count() as u64,
            lines: bytes(naive_lines(text, line_end).iter().map(line)),
            paragraphs: bytes(naive_paragraphs(text).iter().map(paragraph)),
        })
    }

    fn lines(text: &str) -> usize {
        chunks(text.as_bytes(), b'\n').unwrap().lines.len() / 4
    }

    #[test]
    fn a_line_has_at_most_eighty_columns() {
        let words = |count: usize| vec!["abc"; count].join(", ");
        // Twenty words of three letters with a blank between take 79 columns.
        assert_eq!([1, 20, 21, 40, 41].map(|count| lines(&words(count))), [1, 1, 2, 2, 3]);
        assert_eq!([80, 81, 160, 161].map(|length| lines(&"字".repeat(length))), [1, 2, 2, 3]);
        let cut = chunks("é".repeat(83).as_bytes(), b'\n').unwrap().lines;
        assert_eq!(cut[4..], chunks("ééé".as_bytes(), b'\n').unwrap().lines);
    }

    #[test]
    fn blank_lines_are_not_lines() {
        assert_eq!(lines("\n\n a \n - \n\nb\n"), 2);
        assert_eq!(chunks(b" \n . \n", b'\n'), None);
    }

    #[test]
    fn a_paragraph_has_three_sentences() {
        let of = |text: &str| chunks(text.as_bytes(), b'\n').unwrap().paragraphs;
        assert_eq!([1, 3, 4, 6, 7].map(|sentences| of(&"a b. ".repeat(sentences)).len() / 8), [1, 1, 2, 2, 3]);
        assert_ne!(of("a b. c d."), of("a. b c d."), "where a sentence ends matters");
        assert_eq!(of("a, b.\n c  d ... e"), of("a b. c d. e."), "what is between words does not");
        // Words of nine letters: the fifteenth has the 149th character, the sixteenth the 150th.
        assert_eq!(of(&"abcdefghi ".repeat(48)).len(), 8);
        assert_eq!(of(&"abcdefghi ".repeat(49)).len(), 16);
    }

    #[test]
    fn white_space_is_folded_in_the_number_of_characters() {
        let of = |text: &str| chunks(text.as_bytes(), b'\n').unwrap().characters;
        assert_eq!(of(" \t a -- b.\n\n"), 7);
        assert_eq!(of("(é\u{2014}字)"), 5);
        assert_eq!(of("a \u{1e} \r\n          \u{b} b"), 3);
    }

    #[test]
    fn bytes_that_are_not_utf8_are_not_in_a_line() {
        let page = chunks(b"a\xff b\xc3", b'\n').unwrap();
        assert_eq!((&page.lines, page.text), (&chunks(b"a b", b'\n').unwrap().lines, xxh3_128(b"a b")));
    }

    /// The responses of a WARC file in gzip whose records all say their length: URL, charset of the
    /// header, and body.
    fn responses(path: &Path) -> Vec<(String, Option<String>, Vec<u8>)> {
        let mut bytes = Vec::new();
        flate2::read::MultiGzDecoder::new(File::open(path).unwrap()).read_to_end(&mut bytes).unwrap();
        let (mut left, mut all) = (&bytes[..], Vec::new());
        while let Some((head, after)) = split(left) {
            let value = |head: &str, name: &str| Some(head.split_once(name)?.1.split("\r\n").next()?.trim().to_owned());
            let length = value(&head, "\r\nContent-Length:").unwrap().parse().unwrap();
            if head.contains("WARC-Type: response") {
                let (http, body) = split(&after[..length]).unwrap();
                all.push((value(&head, "WARC-Target-URI:").unwrap(), value(&http, "charset="), body.to_vec()));
            }
            left = after[length..].strip_prefix(b"\r\n\r\n").unwrap();
        }
        all
    }

    /// A head, and what is after the empty line that ends it.
    fn split(bytes: &[u8]) -> Option<(String, &[u8])> {
        let end = bytes.windows(4).position(|window| window == b"\r\n\r\n")?;
        Some((String::from_utf8_lossy(&bytes[..end]).into_owned(), &bytes[end + 4..]))
    }

    /// The shipped crawl, read by another tokenizer of HTML.
    #[test]
    fn pages_of_a_crawl_have_the_chunks_of_the_definition() {
        // The twin has the words of the study.
        let form = TextForm { spaceless: Spaceless::Runs, ..TextForm::default() };
        let method = Method { form, ..Method::default() };
        let mut fingerprinter = Fingerprinter::of_method(&method).unwrap().keeping_chunks(true);
        let crawl = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/data/week-2024-01-08");
        let (mut pages, mut lines, mut paragraphs) = (0, 0, 0);
        for file in ["crawl-00000.warc.gz", "crawl-00001.warc.gz", "crawl-00002.warc.gz"] {
            for (url, label, body) in responses(&crawl.join(file)) {
                let (label, url) = (label.as_deref(), canonical(&url).unwrap());
                let (html, _) = decode(&body, label);
                // The twin does not know that an element of foreign content may close itself.
                if ["<svg", "<math"].iter().any(|foreign| html.contains(foreign)) {
                    continue;
                }
                let expected = naive(&by_html5gum(&html).0, char::from(LINE_END));
                assert_eq!(fingerprinter.html(&body, label, Some(&url)).chunks, expected, "{url}");
                let expected = expected.unwrap_or_default();
                (pages, lines, paragraphs) =
                    (pages + 1, lines + expected.lines.len() / 4, paragraphs + expected.paragraphs.len() / 8);
            }
        }
        assert!(pages > 500 && lines > 20 * pages && paragraphs > 5 * pages, "{pages} {lines} {paragraphs}");
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(3000))]

        #[test]
        fn chunks_are_those_of_the_definition(
            pieces in prop::collection::vec(
                prop::sample::select(
                    &["a", "bc", "def", "ghijklmn", "opqrstuvwxyzabcdefghijklmnopqrstuvwxyzabc", "é", "Straße", "字字字字字", "1.2",
                      " ", " ", " ", "\n", "\u{1e}", ".", ". ", ", ", "--", "\u{a0}", "\u{2014}", "\t    \r\n   ", "...", "\0", "。",
                      "a longer line of words with blanks between them", "字字字字字字字字字字字字字字字字字字字字字字字字字字字字字"][..],
                ),
                0..120,
            ),
        ) {
            let text = pieces.concat();
            for line_end in ['\n', '\u{1e}'] {
                prop_assert_eq!(chunks(text.as_bytes(), line_end as u8), naive(&text, line_end), "{:?}", text);
            }
        }
    }
}
