//! What was inserted into a text and deleted from it, word by word.
//!
//! ```text
//! equal words at both ends belong together
//! small rest        a longest common subsequence, by the table of all pairs of words
//! large rest        words that stand once on each side and ascend on both (patience diff) cut it into smaller ones
//! nothing to cut    the whole rest is deleted and inserted
//! ```
//!
//! Cost: for texts of n words about n log n, and at most [`CELLS`] pairs of words for all tables
//! together.

use std::collections::HashMap;
use std::ops::Range;

/// Pairs of words of one table, at most.
const TABLE: usize = 1 << 20;
/// Pairs of words of all tables, at most.
const CELLS: usize = 1 << 23;

/// A part of both texts: equal words, or words that one text has and the other one lacks. Of two
/// parts next to each other, one is equal.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct DifferencePart {
    /// Whether the words are equal.
    pub(super) is_equal: bool,
    /// Words of the first text.
    pub(super) deleted: Range<usize>,
    /// Words of the second text.
    pub(super) inserted: Range<usize>,
}

/// The parts of two texts, in order: together they have all words of both.
pub(super) fn difference(a: &[String], b: &[String]) -> Vec<DifferencePart> {
    // Words as numbers: comparing them is cheap.
    let mut numbers: HashMap<&str, u32> = HashMap::new();
    let [mut of_a, mut of_b] = [a, b].map(|words| Vec::with_capacity(words.len()));
    for (words, to) in [(a, &mut of_a), (b, &mut of_b)] {
        for word in words {
            let next = numbers.len() as u32;
            to.push(*numbers.entry(word).or_insert(next));
        }
    }
    let mut matcher = Matcher { a: &of_a, b: &of_b, matches: Vec::new(), cells: CELLS };
    matcher.match_all(0..a.len(), 0..b.len());
    parts(&matcher.matches, [a.len(), b.len()])
}

/// The parts, given the pairs of words that belong together, which ascend.
fn parts(matches: &[(usize, usize)], lengths: [usize; 2]) -> Vec<DifferencePart> {
    let mut parts: Vec<DifferencePart> = Vec::new();
    let (mut from_a, mut from_b) = (0, 0);
    for (in_a, in_b) in matches.iter().copied().chain([(lengths[0], lengths[1])]) {
        if from_a < in_a || from_b < in_b {
            parts.push(DifferencePart { is_equal: false, deleted: from_a..in_a, inserted: from_b..in_b });
        }
        if in_a < lengths[0] && in_b < lengths[1] {
            match parts.last_mut() {
                Some(last) if last.is_equal => {
                    last.deleted.end += 1;
                    last.inserted.end += 1;
                }
                _ => parts.push(DifferencePart { is_equal: true, deleted: in_a..in_a + 1, inserted: in_b..in_b + 1 }),
            }
        }
        (from_a, from_b) = (in_a + 1, in_b + 1);
    }
    parts
}

struct Matcher<'a> {
    a: &'a [u32],
    b: &'a [u32],
    /// Words that belong together; they ascend.
    matches: Vec<(usize, usize)>,
    /// Pairs that tables may still have.
    cells: usize,
}

impl Matcher<'_> {
    /// Adds what belongs together in these ranges. Ranges that are still to do are on a stack of
    /// its own: texts may be cut very often.
    fn match_all(&mut self, a: Range<usize>, b: Range<usize>) {
        let mut todo = vec![(a, b)];
        while let Some((mut a, mut b)) = todo.pop() {
            while !a.is_empty() && !b.is_empty() && self.a[a.start] == self.b[b.start] {
                self.matches.push((a.start, b.start));
                (a.start, b.start) = (a.start + 1, b.start + 1);
            }
            let same = self.a[a.clone()].iter().rev().zip(self.b[b.clone()].iter().rev());
            let same = same.take_while(|(a, b)| a == b).count();
            if same > 0 {
                let ends = (a.end - same..a.end, b.end - same..b.end);
                (a.end, b.end) = (ends.0.start, ends.1.start);
                // Equal words: they are added when they are taken from the stack.
                todo.push(ends);
            }
            if a.is_empty() || b.is_empty() {
                continue;
            }
            let cells = a.len().saturating_mul(b.len());
            if cells <= TABLE.min(self.cells) {
                self.cells -= cells;
                self.by_table(a, b);
                continue;
            }
            let anchors = self.anchors(&a, &b);
            if anchors.is_empty() {
                continue;
            }
            // From the last to the first: the first is taken from the stack next.
            let (mut end_a, mut end_b) = (a.end, b.end);
            for (in_a, in_b) in anchors.into_iter().rev() {
                todo.push((in_a..end_a, in_b..end_b));
                (end_a, end_b) = (in_a, in_b);
            }
            todo.push((a.start..end_a, b.start..end_b));
        }
    }

    /// A longest common subsequence.
    fn by_table(&mut self, a: Range<usize>, b: Range<usize>) {
        let (of_a, of_b) = (&self.a[a.clone()], &self.b[b.clone()]);
        let width = of_b.len() + 1;
        // The length for what follows each pair of places.
        let mut lengths = vec![0u32; (of_a.len() + 1) * width];
        for in_a in (0..of_a.len()).rev() {
            let (above, below) = lengths.split_at_mut((in_a + 1) * width);
            let row = &mut above[in_a * width..];
            for in_b in (0..of_b.len()).rev() {
                row[in_b] = if of_a[in_a] == of_b[in_b] { 1 + below[in_b + 1] } else { below[in_b].max(row[in_b + 1]) };
            }
        }
        let (mut in_a, mut in_b) = (0, 0);
        while in_a < of_a.len() && in_b < of_b.len() {
            if of_a[in_a] == of_b[in_b] {
                self.matches.push((a.start + in_a, b.start + in_b));
                (in_a, in_b) = (in_a + 1, in_b + 1);
            } else if lengths[(in_a + 1) * width + in_b] >= lengths[in_a * width + in_b + 1] {
                in_a += 1;
            } else {
                in_b += 1;
            }
        }
    }

    /// Pairs of words that stand once in each range, as many as ascend in both.
    fn anchors(&self, a: &Range<usize>, b: &Range<usize>) -> Vec<(usize, usize)> {
        // The places of a word that stands there once.
        let once = |words: &[u32], range: &Range<usize>| {
            let mut places: HashMap<u32, Option<usize>> = HashMap::new();
            for place in range.clone() {
                places.entry(words[place]).and_modify(|place| *place = None).or_insert(Some(place));
            }
            places
        };
        let in_b = once(self.b, b);
        let in_a = once(self.a, a);
        let pair = |place: usize| {
            let word = self.a[place];
            in_a.get(&word).copied().flatten()?;
            Some((place, in_b.get(&word).copied().flatten()?))
        };
        let pairs: Vec<(usize, usize)> = a.clone().filter_map(pair).collect();
        // The longest ascending subsequence of the second places: the ends of the best ones of each
        // length, and what comes before each pair.
        let mut ends: Vec<usize> = Vec::new();
        let mut before: Vec<Option<usize>> = Vec::with_capacity(pairs.len());
        for (number, (_, place)) in pairs.iter().enumerate() {
            let length = ends.partition_point(|end| pairs[*end].1 < *place);
            before.push(length.checked_sub(1).map(|shorter| ends[shorter]));
            if length == ends.len() { ends.push(number) } else { ends[length] = number }
        }
        let mut chain = Vec::with_capacity(ends.len());
        let mut at = ends.last().copied();
        while let Some(number) = at {
            chain.push(pairs[number]);
            at = before[number];
        }
        chain.reverse();
        chain
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::records::mix;

    fn words(seed: u64, count: u64, kinds: u64) -> Vec<String> {
        (0..count).map(|place| format!("w{}", mix(seed << 32 | place) % kinds)).collect()
    }

    /// Checks that the parts have all words of both texts, and returns how many are equal.
    fn check(a: &[String], b: &[String]) -> usize {
        let parts = difference(a, b);
        let (mut of_a, mut of_b, mut equal) = (0, 0, 0);
        for (number, part) in parts.iter().enumerate() {
            assert_eq!((part.deleted.start, part.inserted.start), (of_a, of_b));
            (of_a, of_b) = (part.deleted.end, part.inserted.end);
            assert!(!part.deleted.is_empty() || !part.inserted.is_empty());
            assert!(number == 0 || parts[number - 1].is_equal != part.is_equal, "{parts:?}");
            if part.is_equal {
                assert_eq!(a[part.deleted.clone()], b[part.inserted.clone()]);
                equal += part.deleted.len();
            }
        }
        assert_eq!((of_a, of_b), (a.len(), b.len()));
        equal
    }

    /// The length of a longest common subsequence, by all ways.
    fn longest(a: &[String], b: &[String]) -> usize {
        match (a, b) {
            ([], _) | (_, []) => 0,
            ([first, a @ ..], [second, b @ ..]) if first == second => 1 + longest(a, b),
            ([_, less_a @ ..], [_, less_b @ ..]) => longest(less_a, b).max(longest(a, less_b)),
        }
    }

    #[test]
    fn small_texts_keep_as_many_words_as_can_be_kept() {
        for seed in 0..400 {
            let [of_a, of_b, kinds] = [mix(seed) % 9, mix(seed + 1000) % 9, 1 + mix(seed + 2000) % 5];
            let (a, b) = (words(seed, of_a, kinds), words(seed + 7, of_b, kinds));
            assert_eq!(check(&a, &b), longest(&a, &b), "{a:?} {b:?}");
        }
    }

    #[test]
    fn large_texts_are_cut_where_words_stand_once() {
        let a = words(1, 60_000, 40_000);
        let mut b = a.clone();
        for place in (0..60_000).step_by(997) {
            b[place] = format!("changed{place}");
        }
        b.splice(30_000..30_100, words(2, 5000, 50));
        assert!(check(&a, &b) >= 60_000 - 100 - 61 - 1000, "nearly all words stay");
        assert_eq!(check(&a, &a), 60_000);
        // Words of which none stands once, in texts too large for a table.
        let (a, b) = (words(3, 5000, 3), words(4, 5000, 3));
        check(&a, &b);
        check(&a, &[]);
        // Everything is another word, and one word moves from the front to the end.
        let a: Vec<String> = (0..3000).map(|n| format!("a{n}")).collect();
        let mut b: Vec<String> = (0..3000).map(|n| format!("b{n}")).collect();
        assert_eq!(check(&a, &b), 0);
        b.push("a0".to_owned());
        assert_eq!(check(&a, &b), 1);
    }
}
