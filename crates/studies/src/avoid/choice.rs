//! The choice of prefixes, of those that may be on the list.
//!
//! ```text
//! candidates in order: those whose copies come later first, of these the ones with more copies
//!     not if it is below a chosen one, or a chosen one below it
//!     not if more than 1 - purity of its pages, or of those of a chosen one, would be lost
//! then prefixes of the collections job of which the week shows nothing
//! ```
//!
//! A page is *lost* if its unit has no page that is not below a chosen prefix. So the second of two
//! copies is never chosen if the first is.

use std::collections::HashSet;

use anyhow::Result;

use super::Settings;
use super::copies::ROUNDING;
use super::directories::{CandidatePrefix, hashed};
use super::last_week::LastWeek;
use super::redirects::WeekRedirects;
use crate::structures::ByKey;
use crate::studies::collections::steps::{directory_hash, directory_texts};

/// A chosen prefix.
pub(super) struct ChosenPrefix {
    pub candidate: CandidatePrefix,
    /// The units of the pages below it, ascending; a unit comes once for each page.
    pub units: Vec<u64>,
    /// The units that the redirects below it lead to.
    pub redirected: Vec<u64>,
}

/// The chosen prefixes, and what they leave.
#[derive(Default)]
pub(super) struct ChosenPrefixes {
    /// In the order of prefixes.
    pub chosen: Vec<ChosenPrefix>,
    /// The units with pages below some candidate.
    units: ByKey<u64, UnitPages>,
    /// By chosen prefix, in the order of choice: its pages, and how many of them are lost.
    losses: Vec<[u64; 2]>,
    /// By unit: the chosen prefixes with pages of it, by their places in `losses`, and how many.
    chosen_with: ByKey<u64, Vec<(usize, u64)>>,
}

/// The pages of a unit.
#[derive(Clone, Copy, Debug, Default)]
struct UnitPages {
    pages: u64,
    /// Those below chosen prefixes.
    skipped: u64,
}

impl ChosenPrefixes {
    /// Whether nothing is left of a unit.
    pub fn is_lost(&self, unit: u64) -> bool {
        self.units.get(&unit).is_some_and(|of| of.skipped == of.pages)
    }

    /// Chooses.
    ///
    /// # Errors
    /// If a file cannot be read: names it.
    pub fn of(
        pages: &LastWeek<'_>,
        redirects: &WeekRedirects,
        mut candidates: Vec<CandidatePrefix>,
        settings: &Settings,
    ) -> Result<ChosenPrefixes> {
        let numbers: ByKey<u64, usize> = candidates.iter().map(|of| of.hash).zip(0..).collect();
        let keeps: HashSet<u64> = candidates.iter().filter_map(|of| of.keep.as_deref().map(directory_hash)).collect();
        let mut crawled_keeps: HashSet<u64> = HashSet::new();
        let mut units: Vec<[Vec<u64>; 2]> = vec![Default::default(); candidates.len()];
        let mut choice = ChosenPrefixes::default();
        let mut texts: Vec<String> = vec![String::new(); candidates.len()];
        let mut add = |url: &str, place: usize, unit: u64| {
            let mut is_below = false;
            for (hash, text) in hashed(url) {
                if place == PAGES && keeps.contains(&hash) {
                    crawled_keeps.insert(hash);
                }
                if let Some(number) = numbers.get(&hash) {
                    if texts[*number].is_empty() {
                        text.clone_into(&mut texts[*number]);
                    }
                    units[*number][place].push(unit);
                    is_below = true;
                }
            }
            is_below
        };
        pages.each(|page| {
            if add(page.url, PAGES, page.unit) {
                choice.units.insert(page.unit, UnitPages { pages: page.size, skipped: 0 });
            }
            Ok(())
        })?;
        redirects.each(pages, |url, unit| {
            if let Some(unit) = unit {
                add(url, REDIRECTS, unit);
            }
        })?;
        for (candidate, text) in candidates.iter_mut().zip(texts) {
            if candidate.prefix.is_empty() {
                candidate.prefix = text;
            }
        }
        units.iter_mut().flatten().for_each(|units| units.sort_unstable());
        let mut ordered: Vec<(CandidatePrefix, [Vec<u64>; 2])> = candidates.into_iter().zip(units).collect();
        ordered.sort_by(|(a, _), (b, _)| {
            let key = |of: &CandidatePrefix| (of.below.pages + of.below.redirects == 0, of.rank, of.prefix.len());
            (key(a), &a.prefix).cmp(&(key(b), &b.prefix))
        });
        // The chosen prefixes, and the directories that these lie in.
        let (mut prefixes, mut around): (HashSet<u64>, HashSet<u64>) = Default::default();
        for (candidate, [units, redirected]) in ordered {
            let is_within = |url: &str, prefixes: &HashSet<u64>| {
                directory_texts(url).any(|text| prefixes.contains(&directory_hash(text)))
            };
            if is_within(&candidate.prefix, &prefixes) || around.contains(&candidate.hash) {
                continue;
            }
            // Without pages and redirects, the page that stays is known by its prefix alone.
            let is_shown = candidate.below.pages + candidate.below.redirects > 0;
            let has_keep = candidate.keep.as_deref().is_some_and(|keep| crawled_keeps.contains(&directory_hash(keep)));
            if !is_shown && !has_keep {
                continue;
            }
            if !choice.skip(&units, settings.purity) {
                continue;
            }
            prefixes.insert(candidate.hash);
            around.extend(directory_texts(&candidate.prefix).map(directory_hash));
            choice.chosen.push(ChosenPrefix { candidate, units, redirected });
        }
        choice.chosen.sort_by(|a, b| a.candidate.prefix.cmp(&b.candidate.prefix));
        Ok(choice)
    }

    /// Skips pages of these units, unless more than 1 - `purity` of them, or of the pages below a
    /// chosen prefix, would be lost. Returns whether it did.
    fn skip(&mut self, units: &[u64], purity: f64) -> bool {
        let is_too_much = |lost: u64, pages: u64| lost as f64 > (1.0 - purity) * pages as f64 + ROUNDING;
        let counts: Vec<(u64, u64)> = units.chunk_by(|a, b| a == b).map(|same| (same[0], same.len() as u64)).collect();
        // What becomes lost: of all pages, of those below the prefix, and of those below each
        // chosen one.
        let (mut lost, mut own, mut of_chosen) = (0, 0, ByKey::<usize, u64>::default());
        for (unit, count) in &counts {
            let of = self.units.get(unit).copied().unwrap_or_default();
            if of.skipped + count < of.pages {
                continue;
            }
            (lost, own) = (lost + of.pages, own + count);
            for (chosen, count) in self.chosen_with.get(unit).into_iter().flatten() {
                *of_chosen.entry(*chosen).or_default() += count;
            }
        }
        let breaks = |(chosen, more): (&usize, &u64)| {
            let [pages, lost] = self.losses[*chosen];
            is_too_much(lost + more, pages)
        };
        if is_too_much(lost, units.len() as u64) || of_chosen.iter().any(breaks) {
            return false;
        }
        of_chosen.iter().for_each(|(chosen, more)| self.losses[*chosen][1] += more);
        let number = self.losses.len();
        self.losses.push([units.len() as u64, own]);
        for (unit, count) in counts {
            self.units.entry(unit).or_default().skipped += count;
            self.chosen_with.entry(unit).or_default().push((number, count));
        }
        true
    }
}

const PAGES: usize = 0;
const REDIRECTS: usize = 1;
