//! The words of a text with one blank between them, and where lines and sentences may end in them.

/// The words of a text with one blank after each, and the places in them of which chunks are made.
/// Reuse it from text to text.
///
/// ```
/// use nigh_kernels::kernels::{JoinedWords, chosen};
/// let (mut bounds, mut joined) = (Vec::new(), JoinedWords::default());
/// chosen()?.join(b"Two  lines.\nOne page", b'\n', &mut bounds, &mut joined);
/// assert_eq!(joined.words(), b"Two lines One page");
/// assert_eq!((joined.line_starts(), joined.sentence_starts(), joined.characters()), (&[10][..], &[10][..], 19));
/// # anyhow::Ok(())
/// ```
#[derive(Clone, Debug, Default)]
pub struct JoinedWords {
    /// The words with one blank after each, and room for what a move or a vector writes beyond.
    pub(in crate::kernels) bytes: Vec<u8>,
    /// The bytes that count, the last blank included.
    pub(in crate::kernels) length: usize,
    /// Likewise, those that count are the first.
    pub(in crate::kernels) lines: Vec<u32>,
    pub(in crate::kernels) line_count: usize,
    pub(in crate::kernels) sentences: Vec<u32>,
    pub(in crate::kernels) sentence_count: usize,
    pub(in crate::kernels) characters: u64,
}

/// What a level may write beyond the words: a vector of 64 bytes.
pub(in crate::kernels) const BEYOND: usize = 64;
/// The positions that a level may write beyond those that count.
const SPARE: usize = 8;
/// A word of up to this many bytes is copied with one move.
const MOVED: usize = 16;

impl JoinedWords {
    /// The words, with one blank between two of them.
    pub fn words(&self) -> &[u8] {
        &self.bytes[..self.length.saturating_sub(1)]
    }

    /// The positions in [`words`](JoinedWords::words) of the words that follow a line end.
    pub fn line_starts(&self) -> &[u32] {
        &self.lines[..self.line_count]
    }

    /// The positions of the words that follow a period.
    pub fn sentence_starts(&self) -> &[u32] {
        &self.sentences[..self.sentence_count]
    }

    /// The number of characters of the text, each run of white space and control characters as one,
    /// without those at the ends. A byte that does not continue a character begins one.
    pub fn characters(&self) -> u64 {
        self.characters
    }

    /// Counts some characters less, which were put into the text.
    pub fn leave_out(&mut self, characters: u64) {
        self.characters = self.characters.saturating_sub(characters);
    }

    /// Empties it, and makes room for a text of `length` bytes and `words` words.
    pub(in crate::kernels) fn begin(&mut self, length: usize, words: usize) {
        let room = length + 1 + BEYOND;
        if self.bytes.len() < room {
            self.bytes.resize(room, 0);
        }
        for starts in [&mut self.lines, &mut self.sentences] {
            if starts.len() < words + SPARE {
                starts.resize(words + SPARE, 0);
            }
        }
        (self.length, self.line_count, self.sentence_count, self.characters) = (0, 0, 0, 0);
    }
}

/// The words of a text, joined, for levels that cannot compress vectors of bytes: word by word,
/// with few branches.
#[cfg(any(target_arch = "x86_64", all(target_arch = "aarch64", target_endian = "little")))]
pub(in crate::kernels) fn by_words(text: &[u8], bounds: &[u32], line_end: u8, joined: &mut JoinedWords) {
    let (words, _) = bounds.as_chunks::<2>();
    joined.begin(text.len(), words.len());
    fill(text, words, line_end, joined);
}

/// As [`by_words`], of words that need not have a byte between them.
pub(in crate::kernels) fn of_given_words(text: &[u8], bounds: &[u32], line_end: u8, joined: &mut JoinedWords) {
    let (words, _) = bounds.as_chunks::<2>();
    joined.begin(text.len() + words.len(), words.len());
    fill(text, words, line_end, joined);
}

#[inline(always)]
fn fill(text: &[u8], words: &[[u32; 2]], line_end: u8, joined: &mut JoinedWords) {
    let JoinedWords { bytes, lines, sentences, .. } = joined;
    let (mut line_count, mut sentence_count) = (0, 0);
    let (mut before, mut start) = (0, 0);
    for [from, to] in words {
        let (from, to) = (*from as usize, *to as usize);
        let (ends_line, ends_sentence) = ends(text, before, from, line_end);
        before = to;
        // Without branches, which would often be mispredicted.
        lines[line_count] = start as u32;
        line_count += usize::from(ends_line);
        sentences[sentence_count] = start as u32;
        sentence_count += usize::from(ends_sentence);
        let size = to - from;
        match text[from..].first_chunk::<MOVED>() {
            Some(moved) if size <= MOVED => bytes[start..start + MOVED].copy_from_slice(moved),
            _ => bytes[start..start + size].copy_from_slice(&text[from..to]),
        }
        bytes[start + size] = b' ';
        start += size + 1;
    }
    (joined.length, joined.line_count, joined.sentence_count) = (start, line_count, sentence_count);
    joined.characters = characters(text);
}

/// Whether a line ends, and whether a sentence ends, in a gap between two words. Reads eight bytes
/// at a time: most gaps have one or two.
#[inline(always)]
fn ends(text: &[u8], mut from: usize, to: usize, line_end: u8) -> (bool, bool) {
    const ONES: u64 = u64::MAX / 255;
    let has = |word: u64, byte: u8| {
        let different = word ^ (ONES * u64::from(byte));
        different.wrapping_sub(ONES) & !different & (ONES << 7)
    };
    let (mut line_ends, mut periods) = (0, 0);
    loop {
        let bytes = to - from;
        let Some(word) = text[from..].first_chunk() else {
            let rest = &text[from..to];
            return (line_ends != 0 || rest.contains(&line_end), periods != 0 || rest.contains(&b'.'));
        };
        // Bytes beyond the gap become zeros.
        let word = u64::from_le_bytes(*word) & if bytes < 8 { (1 << (8 * bytes)) - 1 } else { u64::MAX };
        line_ends |= has(word, line_end);
        periods |= has(word, b'.');
        if bytes <= 8 {
            return (line_ends != 0, periods != 0);
        }
        from += 8;
    }
}

/// The number of characters of a text: see [`JoinedWords::characters`].
fn characters(text: &[u8]) -> u64 {
    let (Some(first), Some(last)) = (text.first(), text.last()) else { return 0 };
    let mut sum = u64::from(begins(*first));
    // Sums of bytes do not overflow within 255 of them, and the compiler makes vectors of them.
    for (now, before) in text[1..].chunks(255).zip(text.chunks(255)) {
        let counted = |(now, before): (&u8, &u8)| {
            u8::from(begins(*now)) & !(u8::from(is_blank(*now)) & u8::from(is_blank(*before)))
        };
        sum += u64::from(now.iter().zip(before).map(counted).sum::<u8>());
    }
    without_ends(sum, *first, *last)
}

/// The number of characters without the blanks at the ends, given that with them.
pub(in crate::kernels) fn without_ends(characters: u64, first: u8, last: u8) -> u64 {
    // A text of blanks alone is one blank.
    characters.saturating_sub(u64::from(is_blank(first)) + u64::from(is_blank(last)))
}

/// Whether a byte is white space or a control character.
pub(in crate::kernels) fn is_blank(byte: u8) -> bool {
    byte <= b' '
}

/// Whether a byte begins a character.
pub(in crate::kernels) fn begins(byte: u8) -> bool {
    byte & 0xC0 != 0x80
}
