//! Shingles: the 64-bit Rabin fingerprint (*pre-image*) of each run of words of a text (Fetterly
//! 2004, section 2).
//!
//! Every word starts exactly one shingle of `width` words; the text wraps around at its end. The
//! words of a shingle are joined by NUL. No word contains NUL, so two different shingles are two
//! different byte strings.

use nigh_kernels::kernels::{JoinedWords, Kernels, ShingleConstants};

use super::cutter::WordCutter;
use crate::method::{Method, TextForm, WordRule};

/// Turns texts into pre-images; its buffers are reused from text to text.
pub struct Shingler {
    kernels: &'static Kernels,
    cutter: WordCutter,
    shingles: ShingleConstants,
    /// Start and end of each word of the text.
    bounds: Vec<u32>,
    preimages: Vec<u64>,
}

impl Shingler {
    /// Makes a shingler of `width` words (1 to 64) of letters and digits, with the polynomial
    /// `t^64 + p`.
    pub fn new(p: u64, width: usize, kernels: &'static Kernels) -> Shingler {
        let cutter = WordCutter::new(&WordRule::Letters, TextForm::default(), kernels);
        Shingler {
            kernels,
            cutter,
            shingles: ShingleConstants::new(p, width),
            bounds: Vec::new(),
            preimages: Vec::new(),
        }
    }

    /// The shingler of a method, which cuts words by its rule.
    pub(super) fn of_method(p: u64, method: &Method, kernels: &'static Kernels) -> Shingler {
        let cutter = WordCutter::new(&method.rule, method.form, kernels);
        Shingler { cutter, ..Shingler::new(p, method.words, kernels) }
    }

    /// Computes the pre-images of a text, one for each word, in the order of the words. Bytes that
    /// are not UTF-8 are not part of a word.
    ///
    /// ```
    /// use nigh_kernels::kernels;
    /// use nigh_text::features::Shingler;
    /// let mut shingler = Shingler::new(0x1B, 2, kernels::chosen()?); // shingles of two words
    /// let preimages = shingler.preimages(b"to be or not to be").to_vec();
    /// assert_eq!(preimages.len(), 6);
    /// assert_eq!(preimages[0], preimages[4]); // "to be" twice
    /// # anyhow::Ok(())
    /// ```
    pub fn preimages(&mut self, text: &[u8]) -> &[u64] {
        self.cutter.cut(text, &mut self.bounds);
        self.kernels.preimages(&self.shingles, text, &self.bounds, &mut self.preimages);
        &self.preimages
    }

    /// The pre-images of the last text.
    pub fn last(&self) -> &[u64] {
        &self.preimages
    }

    /// The words of the last text, which is given again.
    pub(super) fn last_words<'a>(&self, text: &'a [u8]) -> impl Iterator<Item = &'a [u8]> {
        self.bounds.as_chunks().0.iter().map(|[start, end]| &text[*start as usize..*end as usize])
    }

    /// As [`preimages`](Shingler::preimages), and joins the words: see [`Kernels::join`].
    pub fn preimages_and_words(&mut self, text: &[u8], line_end: u8, joined: &mut JoinedWords) -> &[u64] {
        if self.cutter.is_kernel() {
            self.kernels.join(text, line_end, &mut self.bounds, joined);
        } else {
            self.cutter.cut(text, &mut self.bounds);
            self.kernels.join_given(text, &self.bounds, line_end, joined);
        }
        self.kernels.preimages(&self.shingles, text, &self.bounds, &mut self.preimages);
        &self.preimages
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use nigh_kernels::kernels::{Polynomial, chosen};
    use proptest::prelude::*;

    fn preimages(text: &str) -> Vec<u64> {
        Shingler::new(0x1B, 5, chosen().unwrap()).preimages(text.as_bytes()).to_vec()
    }

    /// The definition, with strings.
    fn naive(text: &str, width: usize) -> Vec<u64> {
        let words: Vec<&str> = text.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty()).collect();
        (0..words.len())
            .map(|first| {
                let shingle: Vec<&str> = words.iter().cycle().skip(first).take(width).copied().collect();
                Polynomial::new(0x1B).append(0, shingle.join("\0").as_bytes())
            })
            .collect()
    }

    #[test]
    fn every_word_starts_one_shingle() {
        assert_eq!(preimages("a b c d e f g").len(), 7);
        assert_eq!(preimages("one").len(), 1);
        assert_eq!(preimages(" .,; "), Vec::<u64>::new());
    }

    #[test]
    fn the_text_wraps_around() {
        let rotated = |text: &str, by: usize| {
            let mut all = preimages(text);
            all.rotate_left(by);
            all
        };
        assert_eq!(preimages("c d e f a b"), rotated("a b c d e f", 2));
        assert_eq!(preimages("x x x"), vec![preimages("x")[0]; 3]);
    }

    #[test]
    fn where_words_end_matters_and_what_separates_them_does_not() {
        assert_ne!(preimages("ab c d e f"), preimages("a bc d e f"));
        assert_eq!(preimages("ab, c -- d\te\n f"), preimages("ab c d e f"));
    }

    proptest! {
        #[test]
        fn shingles_are_those_of_the_definition(text in "[a-cé中0 .]{0,60}", width in 1usize..8) {
            let mut shingler = Shingler::new(0x1B, width, chosen().unwrap());
            prop_assert_eq!(shingler.preimages(text.as_bytes()), &naive(&text, width)[..]);
        }
    }
}
