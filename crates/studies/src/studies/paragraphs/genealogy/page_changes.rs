//! Which pages changed from one week to the next.

use anyhow::Result;

use crate::structures::Ownership;
use crate::studies::paragraphs::steps::{PageSets, ParagraphSource};

/// A hash of the set of paragraphs of each own page of a source, by own number; 0 for a number
/// without a page.
///
/// # Errors
/// If pages cannot be read.
pub fn sets_of_pages(owned: &Ownership, source: &impl ParagraphSource) -> Result<Vec<u64>> {
    let (mut sets, mut hasher) = (vec![0; owned.len()], PageSets::default());
    source.each(|doc, paragraphs| {
        sets[owned.index(doc)] = hasher.hash(paragraphs);
        Ok(())
    })?;
    Ok(sets)
}

/// The own pages of two weeks, by own number.
#[derive(Clone, Copy)]
pub struct TwoWeeks<'a> {
    /// The sets of paragraphs of the week before, and of this one: see [`sets_of_pages`].
    pub sets: [&'a [u64]; 2],
    /// A hash of the host of each page of the week before, and of this one, short pages included; 0
    /// for no page. Without them no page is born.
    pub hosts: Option<[&'a [u64]; 2]>,
}

/// What became of a page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum PageChange {
    /// It is in neither week, or below the length that the job asks for.
    None,
    /// It has the same paragraphs in both weeks.
    Unchanged,
    /// It has others, or is in one of the weeks only.
    Changed,
    /// It is in this week only, and the week before had no page of this URL, not even a short one.
    Born,
}

impl TwoWeeks<'_> {
    /// What became of an own page.
    #[inline]
    pub(super) fn change(&self, page: usize) -> PageChange {
        match self.sets.map(|sets| sets[page]) {
            [0, 0] => PageChange::None,
            [then, now] if then == now => PageChange::Unchanged,
            [0, _] if self.hosts.is_some_and(|[before, _]| before[page] == 0) => PageChange::Born,
            _ => PageChange::Changed,
        }
    }
}
