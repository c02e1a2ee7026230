//! Chunk sets: the chunks of a page as a set of hashes, from the hashes of its text and lines
//! (Shivakumar and Garcia-Molina 1998, section 2).
//!
//! ```text
//! document      the text
//! four-lines    runs of four lines; the last run of a page may be shorter
//! two-lines     runs of two lines; likewise
//! ```
//!
//! With `cut = "content"`, which is not in the study, a run ends after a line whose hash is 0
//! modulo 4 (modulo 2), or after 16 (8) lines. So a line that is inserted moves the ends of few
//! runs, where in the study it moves all that follow.
//!
//! A chunk has 64 bits: with the study's 32, a crawl of 150 million pages would fill all numbers
//! there are.

use nigh_kernels::records::fold;

use crate::method::{Chunking, Cut};

/// Replaces `set` by the distinct chunks of a page, ascending. `text` and `lines` are as in the
/// table `chunks`.
///
/// ```
/// use nigh_text::method::{Chunking, Cut};
/// use nigh_text::features::chunk_set;
///
/// let lines: Vec<u8> = [7u32, 8, 7, 8, 9].iter().flat_map(|line| line.to_le_bytes()).collect();
/// let mut set = Vec::new();
/// chunk_set(Chunking::TwoLines, Cut::Count, &[0; 16], &lines, &mut set);
/// assert_eq!(set.len(), 2, "7 and 8, which come twice, and 9 alone");
/// ```
pub fn chunk_set(chunking: Chunking, cut: Cut, text: &[u8], lines: &[u8], set: &mut Vec<u64>) {
    set.clear();
    let length = match chunking {
        Chunking::Document => return set.push(text_hash(text)),
        Chunking::FourLines => 4,
        Chunking::TwoLines => 2,
    };
    let (mut run, mut count) = ([0u64; 16], 0);
    let lines = lines.as_chunks::<4>().0;
    for line in lines {
        let line = u64::from(u32::from_le_bytes(*line));
        run[count] = line;
        count += 1;
        let ends = match cut {
            Cut::Count => count == length,
            Cut::Content => line.is_multiple_of(length as u64) || count == 4 * length,
        };
        if ends {
            set.push(fold(&run[..count]));
            count = 0;
        }
    }
    if count > 0 {
        set.push(fold(&run[..count]));
    }
    set.sort_unstable();
    set.dedup();
}

/// The low half of the hash of a text.
fn text_hash(text: &[u8]) -> u64 {
    text.last_chunk().map_or(0, |low| u64::from_be_bytes(*low))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// The runs of lines, by the definition.
    fn runs(lines: &[u32], length: usize, cut: Cut) -> Vec<Vec<u32>> {
        if cut == Cut::Count {
            return lines.chunks(length).map(<[u32]>::to_vec).collect();
        }
        let mut runs: Vec<Vec<u32>> = vec![Vec::new()];
        for line in lines {
            runs.last_mut().unwrap().push(*line);
            let last = runs.last().unwrap();
            if (*line as usize).is_multiple_of(length) || last.len() == 4 * length {
                runs.push(Vec::new());
            }
        }
        runs.retain(|run| !run.is_empty());
        runs
    }

    fn set(chunking: Chunking, cut: Cut, lines: &[u32]) -> Vec<u64> {
        let bytes: Vec<u8> = lines.iter().flat_map(|line| line.to_le_bytes()).collect();
        let mut set = vec![1, 2, 3];
        chunk_set(chunking, cut, &[9; 16], &bytes, &mut set);
        set
    }

    proptest! {
        #[test]
        fn chunks_are_the_distinct_runs_of_lines(lines in prop::collection::vec(prop_oneof![0..20u32, any::<u32>()], 0..90)) {
            for (chunking, length) in [(Chunking::FourLines, 4), (Chunking::TwoLines, 2)] {
                for cut in [Cut::Count, Cut::Content] {
                    let hash = |run: &Vec<u32>| fold(&run.iter().map(|line| u64::from(*line)).collect::<Vec<_>>());
                    let expected: std::collections::BTreeSet<u64> = runs(&lines, length, cut).iter().map(hash).collect();
                    prop_assert_eq!(set(chunking, cut, &lines), expected.into_iter().collect::<Vec<_>>());
                }
            }
        }
    }

    #[test]
    fn a_document_is_one_chunk_whatever_its_lines_are() {
        assert_eq!(set(Chunking::Document, Cut::Count, &[1, 2, 3, 4, 5]), set(Chunking::Document, Cut::Content, &[]));
    }

    #[test]
    fn runs_of_four_are_cut_by_count_and_by_content() {
        let fold_of = |runs: &[&[u64]]| {
            let mut set: Vec<u64> = runs.iter().map(|run| fold(run)).collect();
            set.sort_unstable();
            set
        };
        let lines = [1, 2, 3, 5, 6, 8, 9];
        assert_eq!(set(Chunking::FourLines, Cut::Count, &lines), fold_of(&[&[1, 2, 3, 5], &[6, 8, 9]]));
        assert_eq!(set(Chunking::FourLines, Cut::Content, &lines), fold_of(&[&[1, 2, 3, 5, 6, 8], &[9]]));
        assert_eq!(set(Chunking::TwoLines, Cut::Content, &lines), fold_of(&[&[1, 2], &[3, 5, 6], &[8], &[9]]));
        assert_eq!(set(Chunking::TwoLines, Cut::Content, &[1; 9]), fold_of(&[&[1; 8], &[1]]));
    }

    #[test]
    fn a_line_more_moves_all_runs_by_count_and_few_by_content() {
        let before: Vec<u32> = (0..400u64).map(|line| nigh_kernels::records::mix(line) as u32).collect();
        let after = [&before[..1], &[77], &before[1..]].concat();
        let common = |cut| {
            let (a, b) = (set(Chunking::FourLines, cut, &before), set(Chunking::FourLines, cut, &after));
            a.iter().filter(|chunk| b.binary_search(chunk).is_ok()).count()
        };
        assert!(common(Cut::Count) == 0 && common(Cut::Content) > 80);
    }
}
