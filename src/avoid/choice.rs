//! The choice of prefixes, of those that may be on the list.
//!
//! ```text
//! candidates in order: those whose copies come later first, of these the ones with more copies
//!     not if it is below a chosen one, or a chosen one below it
//!     not if more than 1 - purity of its pages would be lost, with all that is chosen
//! then prefixes of the collections job of which the week shows nothing
//! ```
//!
//! A page is *lost* if its unit has no page that is not below a chosen prefix. So the second of two
//! copies is never chosen if the first is.

use std::collections::HashSet;

use anyhow::Result;

use super::Settings;
use super::copies::ROUNDING;
use super::directories::{Candidate, hashed};
use super::pages::WeekPages;
use super::redirects::Redirects;
use crate::structures::ByKey;
use crate::studies::collections::steps::{directory_hash, directory_texts};

/// A chosen prefix.
pub(super) struct Chosen {
    pub candidate: Candidate,
    /// The units of the pages below it, ascending; a unit comes once for each page.
    pub units: Vec<u64>,
    /// The units that the redirects below it lead to.
    pub redirected: Vec<u64>,
}

/// The chosen prefixes, and what they leave.
#[derive(Default)]
pub(super) struct Choice {
    /// In the order of prefixes.
    pub chosen: Vec<Chosen>,
    /// The units with pages below some candidate.
    units: ByKey<u64, Unit>,
}

/// The pages of a unit.
#[derive(Clone, Copy, Debug, Default)]
struct Unit {
    pages: u64,
    /// Those below chosen prefixes.
    skipped: u64,
}

impl Choice {
    /// Whether nothing is left of a unit.
    pub fn is_lost(&self, unit: u64) -> bool {
        self.units.get(&unit).is_some_and(|of| of.skipped == of.pages)
    }

    /// Chooses.
    ///
    /// # Errors
    /// If a file cannot be read: names it.
    pub fn of(
        pages: &WeekPages<'_>,
        redirects: &Redirects,
        mut candidates: Vec<Candidate>,
        settings: &Settings,
    ) -> Result<Choice> {
        let numbers: ByKey<u64, usize> = candidates.iter().map(|of| of.hash).zip(0..).collect();
        let keeps: HashSet<u64> = candidates.iter().filter_map(|of| of.keep.as_deref().map(directory_hash)).collect();
        let mut crawled_keeps: HashSet<u64> = HashSet::new();
        let mut units: Vec<[Vec<u64>; 2]> = vec![Default::default(); candidates.len()];
        let mut choice = Choice::default();
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
                choice.units.insert(page.unit, Unit { pages: page.size, skipped: 0 });
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
        let mut ordered: Vec<(Candidate, [Vec<u64>; 2])> = candidates.into_iter().zip(units).collect();
        ordered.sort_by(|(a, _), (b, _)| {
            let key = |of: &Candidate| (of.below.pages + of.below.redirects == 0, of.rank, of.prefix.len());
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
            let lost = choice.lost_with(&units);
            if lost as f64 > (1.0 - settings.purity) * units.len() as f64 + ROUNDING {
                continue;
            }
            choice.skip(&units);
            prefixes.insert(candidate.hash);
            around.extend(directory_texts(&candidate.prefix).map(directory_hash));
            choice.chosen.push(Chosen { candidate, units, redirected });
        }
        choice.chosen.sort_by(|a, b| a.candidate.prefix.cmp(&b.candidate.prefix));
        Ok(choice)
    }

    /// The pages that would be lost if pages of these units were skipped, too.
    fn lost_with(&self, units: &[u64]) -> u64 {
        let lost = |same: &[u64]| {
            let of = self.units.get(&same[0]).copied().unwrap_or_default();
            if of.skipped + same.len() as u64 >= of.pages { of.pages } else { 0 }
        };
        units.chunk_by(|a, b| a == b).map(lost).sum()
    }

    fn skip(&mut self, units: &[u64]) {
        for unit in units {
            self.units.entry(*unit).or_default().skipped += 1;
        }
    }
}

const PAGES: usize = 0;
const REDIRECTS: usize = 1;
