//! The words of a text that are in no shingle of another text.

use std::collections::HashSet;
use std::ops::Range;

use crate::features::WordsAndShingles;

/// The words that one text has and another does not, as ranges of its words: those that are in no
/// shingle of both. `width` are the words of a shingle; the text wraps around at its end.
pub(super) fn differing(text: &WordsAndShingles, other: &HashSet<u64>, width: usize) -> Vec<Range<usize>> {
    let count = text.words.len();
    let mut is_shared = vec![false; count];
    for first in (0..count).filter(|first| other.contains(&text.shingles[*first])) {
        (first..first + width.min(count)).for_each(|word| is_shared[word % count] = true);
    }
    let mut ranges: Vec<Range<usize>> = Vec::new();
    for word in (0..count).filter(|word| !is_shared[*word]) {
        match ranges.last_mut() {
            Some(last) if last.end == word => last.end += 1,
            _ => ranges.push(word..word + 1),
        }
    }
    ranges
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Method;
    use crate::features::Fingerprinter;

    #[test]
    fn changed_words_are_found_and_no_others() {
        let mut fingerprinter = Fingerprinter::of_method(&Method::default()).unwrap();
        let mut read = |words: &[String]| fingerprinter.words_of_text(&words.join(" "));
        let words: Vec<String> = (0..60).map(|n| format!("w{n}")).collect();
        let mut other = words.clone();
        other[20] = "x".to_owned();
        other.splice(40..42, ["y".to_owned(), "z".to_owned(), "z".to_owned()]);
        let [a, b] = [&words, &other].map(|words| read(words));
        let [of_a, of_b] = [&a, &b].map(|text| text.shingles.iter().copied().collect::<HashSet<u64>>());
        assert_eq!(differing(&a, &of_b, 5), [20..21, 40..42]);
        assert_eq!(differing(&b, &of_a, 5), [20..21, 40..43]);
        assert!(differing(&a, &of_a, 5).is_empty());
        let nothing = HashSet::new();
        assert!(matches!(differing(&a, &nothing, 5).as_slice(), [whole] if *whole == (0..60)));
        let few = read(&["a".to_owned(), "b".to_owned()]);
        assert!(differing(&few, &few.shingles.iter().copied().collect(), 5).is_empty());
    }
}
