//! Windows that follow each other become passages.
//!
//! ```text
//! window that stands before   a copy: it goes on while its first occurrence does, too; or while
//!                             it overlaps an equal window, in a text that repeats itself
//! window that stands later    a first occurrence: it goes on while the next window is one
//! ```
//!
//! What is equal is read off fingerprints here, and compared word by word: within the document at
//! once, in another one by `check`.

use nigh_text::features::Words;

use super::fingerprints::WindowPrints;
use super::text_source::CorpusPlace;
use super::windows::RepeatedWindow;
use crate::structures::ByKey;

/// A passage of a document.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stretch {
    /// Its first word.
    pub word: u32,
    /// The word after its last one.
    pub end: u32,
    /// The first word of it that goes, if copies go: those before it are a part of its first
    /// occurrence. `end` if it is a first occurrence.
    pub copied_from: u32,
    /// The most occurrences of one of its windows.
    pub occurrences: u64,
    /// The first occurrence of its first window, by its number among the repeated windows of the
    /// document; it begins at `first_word`.
    pub of: usize,
    /// The first word of its first occurrence.
    pub first_word: u32,
}

/// Words of a document that must stand in another one, or elsewhere in this one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Claim {
    /// The first word.
    pub word: u32,
    /// The word after the last one.
    pub end: u32,
    /// The place of the other document.
    pub first_place: CorpusPlace,
    /// The first word there.
    pub first_word: u32,
}

/// The passages of a document.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Stretches {
    /// In the order of their first words.
    pub passages: Vec<Stretch>,
    /// What is to be compared with other texts.
    pub claims: Vec<Claim>,
    /// Whether two windows with one fingerprint have other words.
    pub has_collision: bool,
}

/// What is done with a run of windows.
#[derive(Clone, Copy, PartialEq, Eq)]
enum WindowRun {
    First,
    Copy,
}

/// Finds the passages of the document at `place`, of at least `least` words. `repeated` are its
/// windows that stand more than once in the corpus, by their first words.
pub fn stretches(
    place: CorpusPlace,
    words: &Words<'_>,
    least: usize,
    prints: WindowPrints<'_>,
    repeated: &[RepeatedWindow],
) -> Stretches {
    let mut found = Stretches::default();
    let known = repeated.iter().enumerate();
    let number_of: ByKey<(u64, u64), usize> =
        known.map(|(number, window)| (prints.get(window.word as usize), number)).collect();
    // Where each window stood last, and the window before the last one that was compared within the
    // document.
    let mut last: Vec<Option<usize>> = vec![None; repeated.len()];
    let mut compared: Option<usize> = None;
    // The passage that goes on, and its last window.
    let mut open: Option<(WindowRun, Stretch, RepeatedWindow)> = None;
    for at in 0..prints.len() {
        let Some(number) = number_of.get(&prints.get(at)).copied() else {
            found.passages.extend(open.take().map(|(_, passage, _)| passage));
            compared = None;
            continue;
        };
        let window = repeated[number];
        let (first_word, end) = (window.first_word, (at + least) as u32);
        let before = last[number].replace(at);
        found.has_collision |= before.is_none() && at != window.word as usize;
        if let Some(before) = before {
            // If the windows before them were equal, only the last words are new.
            let from = if compared.is_some_and(|compared| compared + 1 == before) { least - 1 } else { 0 };
            found.has_collision |= (from..least).any(|word| words.get(at + word) != words.get(before + word));
        }
        compared = before;
        let is_first = window.first_place == place && first_word as usize == at;
        if before.is_none() && !is_first {
            found.claim(Claim { word: at as u32, end, first_place: window.first_place, first_word });
        }
        let kind = if is_first { WindowRun::First } else { WindowRun::Copy };
        let overlaps_itself = before.is_some_and(|before| at - before < least);
        let goes_on = open.as_ref().is_some_and(|(of, _, last)| {
            let advances = last.first_place == window.first_place && last.first_word + 1 == first_word;
            *of == kind && (is_first || advances || overlaps_itself)
        });
        // What is a part of the first occurrence itself is no copy of it.
        let copied_from = match kind {
            WindowRun::First => end,
            WindowRun::Copy if window.first_place == place => (at as u32).max(first_word + least as u32),
            WindowRun::Copy => at as u32,
        };
        match &mut open {
            Some((_, passage, last)) if goes_on => {
                *last = window;
                passage.end = end;
                passage.occurrences = passage.occurrences.max(window.occurrences);
                passage.copied_from = match kind {
                    WindowRun::First => end,
                    WindowRun::Copy => passage.copied_from.min(copied_from),
                };
            }
            _ => {
                found.passages.extend(open.take().map(|(_, passage, _)| passage));
                let occurrences = window.occurrences;
                let passage = Stretch { word: at as u32, end, copied_from, occurrences, of: number, first_word };
                open = Some((kind, passage, window));
            }
        }
    }
    found.passages.extend(open.map(|(_, passage, _)| passage));
    found
}

impl Stretches {
    /// Adds a claim, to the one before it if that goes on.
    fn claim(&mut self, claim: Claim) {
        match self.claims.last_mut() {
            Some(before)
                if before.end + 1 == claim.end
                    && before.first_place == claim.first_place
                    && claim.word - before.word == claim.first_word.wrapping_sub(before.first_word) =>
            {
                before.end = claim.end;
            }
            _ => self.claims.push(claim),
        }
    }
}

/// Ranges of words that overlap or touch become one.
pub fn united(ranges: impl Iterator<Item = [u32; 2]>) -> Vec<[u32; 2]> {
    let mut all: Vec<[u32; 2]> = ranges.filter(|[start, end]| start < end).collect();
    all.sort_unstable();
    let mut united: Vec<[u32; 2]> = Vec::new();
    for [start, end] in all {
        match united.last_mut() {
            Some(before) if start <= before[1] => before[1] = before[1].max(end),
            _ => united.push([start, end]),
        }
    }
    united
}
