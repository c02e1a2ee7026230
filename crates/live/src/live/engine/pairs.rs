//! Whether two pages are similar enough: by their features, or by the shingles of their texts.
//!
//! Texts are read when pages are compared. Where a text is not at hand, the features decide. What a
//! batch may compare is bounded, so that a very large cluster of candidates does not stop the
//! process: beyond [`MOST_ELEMENTS`] the features decide, and beyond [`MOST_PAIRS`] pages are taken
//! as unlike.

use std::collections::VecDeque;
use std::sync::Arc;

use anyhow::{Context, Result};

use super::page::{AT_ONCE, PageSource};
use crate::config::{Method, Verify};
use crate::features::equal_features;
use crate::operators::set_join::{ExactShare, Requirement};
use crate::structures::{ByKey, WordSet};

/// The shingles of compared texts that a batch looks at, at most. A text that is read counts as
/// [`READ`] of them, and each time that some are read as [`PASS`], for a file may have to be read
/// from its beginning; texts of the batch are there.
const MOST_ELEMENTS: u64 = 1 << 30;
const READ: u64 = 1 << 16;
const PASS: u64 = 1 << 23;
/// The pairs that a batch compares by features, at most.
const MOST_PAIRS: u64 = 1 << 28;
/// Bytes of shingles that are kept; a quarter of them is read before pages are compared. Tests have
/// few texts.
const KEPT: usize = if cfg!(test) { 20_000 } else { 128 << 20 };
/// Texts that are read at once, at first: then more, if they are short.
const READ_AT_ONCE: usize = 8;

/// A page whose text was not looked for, and one whose text is not at hand: instead of the number
/// of its shingles.
const UNKNOWN: u32 = u32::MAX;
const MISSING: u32 = 0;

/// Compares pages.
pub(super) struct Pairs {
    /// The least number of equal features.
    least: usize,
    /// What shingles must have in common, if texts decide.
    by_text: Option<Requirement>,
    /// The number of shingles of each page, [`UNKNOWN`] or [`MISSING`].
    sizes: Vec<u32>,
    /// Shingles by page, and the pages in the order in which they came.
    kept: ByKey<u64, Arc<[u64]>>,
    order: VecDeque<u32>,
    bytes: usize,
    /// The shingles of the page that is compared.
    elements: WordSet,
    /// What a batch may look at, and what this one still may: shingles, and pairs by features.
    pub(super) most: [u64; 2],
    elements_left: u64,
    pairs_left: u64,
    /// Whether a bound decided since this was asked.
    is_rough: bool,
}

impl Pairs {
    /// Compares as a method says; `None` if it links documents by supershingles alone.
    pub(super) fn of_method(method: &Method) -> Result<Option<Pairs>> {
        let Some(similarity) = method.similarity.filter(|_| method.verify != Verify::None) else { return Ok(None) };
        let share = ExactShare::of_millionths(similarity.millionths()).context("a similarity is above 0")?;
        let least = (u64::from(similarity.millionths()) * method.features as u64).div_ceil(1_000_000);
        Ok(Some(Pairs {
            least: least as usize,
            by_text: (method.verify == Verify::Exact).then_some(Requirement::Resemblance(share)),
            sizes: Vec::new(),
            kept: ByKey::default(),
            order: VecDeque::new(),
            bytes: 0,
            elements: WordSet::default(),
            most: [MOST_ELEMENTS, MOST_PAIRS],
            elements_left: MOST_ELEMENTS,
            pairs_left: MOST_PAIRS,
            is_rough: false,
        }))
    }

    /// Whether texts decide.
    pub(super) fn is_by_text(&self) -> bool {
        self.by_text.is_some()
    }

    /// Begins a batch.
    pub(super) fn begin(&mut self) {
        [self.elements_left, self.pairs_left] = self.most;
    }

    /// Whether nothing more is compared in this batch.
    pub(super) fn is_spent(&mut self) -> bool {
        self.is_rough |= self.pairs_left == 0;
        self.pairs_left == 0
    }

    /// Whether a bound decided about a pair since this was asked.
    pub(super) fn take_rough(&mut self) -> bool {
        std::mem::take(&mut self.is_rough)
    }

    /// Whether the text of a page was looked for, and is not at hand.
    pub(super) fn is_missing(&self, page: u32) -> bool {
        self.sizes.get(page as usize) == Some(&MISSING)
    }

    /// Forgets the text of a page.
    pub(super) fn forget(&mut self, page: u32) {
        if let Some(size) = self.sizes.get_mut(page as usize) {
            *size = UNKNOWN;
        }
        if let Some(shingles) = self.kept.remove(&u64::from(page)) {
            self.bytes -= size_of_val(&*shingles);
        }
        if self.order.len() > 2 * self.kept.len() + AT_ONCE {
            self.order.retain(|page| self.kept.contains_key(&u64::from(*page)));
        }
    }

    /// Finds one of some pages that is similar enough to a page.
    ///
    /// # Errors
    /// If a text cannot be looked for.
    pub(super) fn find(
        &mut self,
        page: u32,
        mut others: impl Iterator<Item = u32>,
        source: &mut PageSource<'_>,
    ) -> Result<Option<u32>> {
        let mut chunk: Vec<u32> = others.by_ref().take(AT_ONCE).collect();
        if chunk.is_empty() || self.is_spent() {
            return Ok(None);
        }
        if self.by_text.is_some() {
            self.read(&[page], source)?;
        }
        let Some((requirement, own)) = self.by_text.zip(self.shingles(page)) else {
            for other in chunk.into_iter().chain(others) {
                if self.is_like(page, other, source) {
                    return Ok(Some(other));
                }
                if self.is_spent() {
                    break;
                }
            }
            return Ok(None);
        };
        self.elements_left = self.elements_left.saturating_sub(own.len() as u64);
        self.elements.reset(own.len());
        own.iter().for_each(|element| _ = self.elements.insert(*element));
        // The likeliest one first: most often that is enough.
        let likeliest = source.likeliest(page, &chunk).unwrap_or(chunk[0]);
        chunk.retain(|other| *other != likeliest);
        if self.find_among(page, &[likeliest], (requirement, &own), source)?.is_some() {
            return Ok(Some(likeliest));
        }
        loop {
            if let Some(found) = self.find_among(page, &chunk, (requirement, &own), source)? {
                return Ok(Some(found));
            }
            chunk = others.by_ref().take(AT_ONCE).collect();
            if chunk.is_empty() || self.is_spent() {
                return Ok(None);
            }
        }
    }

    /// Finds one of a few pages that is similar enough to a page, whose shingles are `own`.
    fn find_among(
        &mut self,
        page: u32,
        others: &[u32],
        (requirement, own): (Requirement, &[u64]),
        source: &mut PageSource<'_>,
    ) -> Result<Option<u32>> {
        let can_be = |size: u64| {
            let least = requirement.least_of_pair([own.len() as u64, size]);
            (least <= size.min(own.len() as u64)).then_some(least as usize)
        };
        // Of sizes that differ too much no text is read.
        let is_possible = |other: &u32| match self.sizes.get(*other as usize).copied().unwrap_or(UNKNOWN) {
            UNKNOWN | MISSING => true,
            size => can_be(size.into()).is_some(),
        };
        let others: Vec<u32> = others.iter().copied().filter(is_possible).collect();
        let mut left = &others[..];
        while !left.is_empty() {
            let (read, rest) = left.split_at(self.read(left, source)?);
            left = rest;
            for other in read {
                let is_similar = match self.shingles(*other) {
                    Some(shingles) if self.elements_left > 0 => {
                        self.elements_left = self.elements_left.saturating_sub(shingles.len() as u64);
                        let least = can_be(shingles.len() as u64);
                        least.is_some_and(|least| self.elements.count_in(&shingles, least).is_some())
                    }
                    _ => self.is_like(page, *other, source),
                };
                if is_similar {
                    return Ok(Some(*other));
                }
            }
        }
        Ok(None)
    }

    /// Whether features decide that two pages are similar enough.
    fn is_like(&mut self, page: u32, other: u32, source: &PageSource<'_>) -> bool {
        self.is_rough |= self.by_text.is_some() && self.elements_left == 0;
        if self.is_spent() {
            return false;
        }
        self.pairs_left -= 1;
        equal_features(source.features(page), source.features(other)) >= self.least
    }

    /// The shingles of a page that were read; `None` of one whose text is not at hand, or may not
    /// be read any more.
    fn shingles(&self, page: u32) -> Option<Arc<[u64]>> {
        self.kept.get(&u64::from(page)).cloned()
    }

    /// Reads the texts of some pages, until these are a quarter of what is kept. Returns of how
    /// many pages, at least one.
    ///
    /// # Errors
    /// If a text cannot be looked for.
    pub(super) fn read(&mut self, pages: &[u32], source: &mut PageSource<'_>) -> Result<usize> {
        while self.bytes > KEPT / 4 * 3
            && let Some(page) = self.order.pop_front()
        {
            self.bytes -= self.kept.remove(&u64::from(page)).map_or(0, |shingles| size_of_val(&*shingles));
        }
        let end = pages.iter().max().map_or(0, |last| *last as usize + 1);
        if self.sizes.len() < end {
            self.sizes.resize(end, UNKNOWN);
        }
        let (mut done, mut at_once, before) = (0, READ_AT_ONCE, self.bytes);
        while done < pages.len() && self.bytes - before < KEPT / 4 {
            let some = &pages[done..pages.len().min(done + at_once)];
            done += some.len();
            let is_wanted =
                |page: &u32| !self.kept.contains_key(&u64::from(*page)) && self.sizes[*page as usize] != MISSING;
            let (mut wanted, mut cost) = (Vec::new(), 0);
            for page in some.iter().copied().filter(is_wanted) {
                if cost >= self.elements_left {
                    break;
                }
                if !source.is_in_memory(page) {
                    cost = cost.max(PASS) + READ;
                }
                wanted.push(page);
            }
            if wanted.is_empty() {
                continue;
            }
            self.elements_left = self.elements_left.saturating_sub(cost);
            let mut bytes = 0;
            for (page, shingles) in wanted.iter().zip(source.shingles(&wanted)?) {
                let Some(shingles) = shingles.filter(|shingles| !shingles.is_empty()) else {
                    self.sizes[*page as usize] = MISSING;
                    continue;
                };
                self.sizes[*page as usize] = shingles.len() as u32;
                let shingles: Arc<[u64]> = shingles.into();
                bytes += size_of_val(&*shingles);
                self.kept.insert((*page).into(), shingles);
                self.order.push_back(*page);
            }
            self.bytes += bytes;
            // As many as a quarter of what is kept, if they are as long as those before.
            let of_each = (bytes / wanted.len()).max(1);
            at_once = (4 * at_once).min((KEPT / 4 / of_each).max(READ_AT_ONCE));
        }
        Ok(done)
    }
}
