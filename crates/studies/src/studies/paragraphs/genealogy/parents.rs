//! Parents: for each born page a few older pages that have all of its inherited paragraphs.
//!
//! A paragraph is *common* if more than 100 older pages have it. Common ones do not choose parents,
//! as long as others do:
//!
//! ```text
//! left = the inherited paragraphs of the page that are not common
//! while left is not empty:
//!     parent = the older page that has most of left; of several, the smallest
//!     left = left without the paragraphs of parent
//! left = the common paragraphs that no parent has
//! for each older page that is the smallest to have one of left, those of most of them first:
//!     it is a parent, too, if it has paragraphs of left, which are left no more
//! ```
//!
//! What a parent and the page have in common is counted from both sets.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, BinaryHeap};
use std::rc::Rc;

use anyhow::Result;
use nigh_exchange::{Context, KeptRecords, LocalAnswers, lookup};

use super::holders::HeldParagraph;
use super::page_changes::{PageChange, TwoWeeks};
use crate::records::DocId;
use crate::structures::{ExternalSort, Ownership, Sortable};
use crate::studies::paragraphs::steps::{
    ComparedPair, PagePair, PageSets, ParagraphSource, compare_sets, without_host,
};

/// A born page, and how much of it is inherited.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Birth {
    /// The page.
    pub doc: DocId,
    /// Its distinct paragraphs.
    pub paragraphs: u32,
    /// Those of them that some page of the week before had.
    pub inherited: u32,
    /// Its parents.
    pub parents: u32,
}

/// A parent of a born page.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Parent {
    /// The born page.
    pub doc: DocId,
    /// The number of the parent in the order in which it was chosen, from 1.
    pub rank: u32,
    /// The parent: a page of the week before.
    pub parent: DocId,
    /// Paragraphs that this parent has, and no parent before it.
    pub adds: u32,
    /// The distinct paragraphs that both have.
    pub shared: u32,
    /// The distinct paragraphs of the parent.
    pub of_parent: u32,
    /// Whether it is on the host of the born page; `None` if one of both has no host.
    pub is_same_host: Option<bool>,
}

impl Sortable for HeldParagraph {
    type Key = HeldParagraph;

    fn key(&self) -> HeldParagraph {
        *self
    }

    fn weight(&self) -> usize {
        size_of::<HeldParagraph>()
    }
}

/// Chooses the parents of own born pages, from the older pages that have their paragraphs. Both
/// lists are in the order of the pages.
///
/// # Errors
/// If pages or files cannot be read or written, or a worker of this process failed.
pub fn births<S: ParagraphSource>(
    cx: &mut Context,
    owned: &Ownership,
    sources: [&S; 2],
    weeks: TwoWeeks<'_>,
    held: KeptRecords<HeldParagraph>,
) -> Result<(Vec<Birth>, Vec<Parent>)> {
    let (mut births, mut sets) = (BTreeMap::new(), PageSets::default());
    sources[1].each(|doc, paragraphs| {
        if weeks.change(owned.index(doc)) == PageChange::Born {
            let mut distinct = 0;
            sets.each(paragraphs, |_| distinct += 1);
            births.insert(doc, Birth { doc, paragraphs: distinct, inherited: 0, parents: 0 });
        }
        Ok(())
    })?;
    let mut sort = ExternalSort::new(&cx.scratch().join("held"), cx.memory() / 4);
    for block in 0..held.blocks() {
        held.block(block, |records| records.iter().try_for_each(|record| sort.push(*record)))??;
    }
    drop(held);
    let (mut sorted, mut of_page, mut pages) = (sort.sorted()?, Vec::<HeldParagraph>::new(), Vec::new());
    loop {
        let next = sorted.record()?;
        if let Some(first) = of_page.first()
            && next.is_none_or(|next: HeldParagraph| next.doc != first.doc)
        {
            pages.push(Inherited::of(&of_page));
            of_page.clear();
        }
        match next {
            Some(next) => of_page.push(next),
            None => break,
        }
    }
    // First those of paragraphs that are not common, then those of common ones that no such parent
    // has.
    for is_first in [true, false] {
        let asked = |page: &Inherited| -> Vec<PagePair> {
            let others = if is_first { &page.chosen } else { &page.candidates };
            others.iter().map(|other| PagePair { own: page.doc, other: *other }).collect()
        };
        let pairs: Vec<PagePair> = pages.iter().flat_map(asked).collect();
        let mut compared = compare_sets(cx, [sources[1], sources[0]], &pairs)?;
        compared.sort_unstable();
        for page in &mut pages {
            page.explain(&compared, is_first);
        }
    }
    let mut parents = Vec::new();
    for page in pages {
        if let Some(birth) = births.get_mut(&page.doc) {
            (birth.inherited, birth.parents) = (page.inherited, page.parents.len() as u32);
            parents.extend(page.parents);
        }
    }
    if let Some(hosts) = weeks.hosts {
        find_hosts(cx, owned, hosts, &mut parents)?;
    }
    Ok((births.into_values().collect(), parents))
}

/// Finds which parents are on the host of the born page.
fn find_hosts(cx: &mut Context, owned: &Ownership, [before, now]: [&[u64]; 2], parents: &mut [Parent]) -> Result<()> {
    let asked: Rc<Vec<DocId>> = Rc::new(parents.iter().map(|of| of.parent).collect());
    let before = before.to_vec();
    let local = LocalAnswers::own(cx, move |page: usize| [before[page]]);
    let questions = || {
        let asked = asked.clone();
        (0..asked.len()).map(move |place| asked[place])
    };
    lookup(cx, owned, questions, &local, |place, [host]| {
        let of = &mut parents[place];
        let of_both = [now[owned.index(of.doc)], host];
        of.is_same_host = (!of_both.contains(&without_host())).then_some(of_both[0] == of_both[1]);
    })
}

/// A born page while its parents are chosen.
struct Inherited {
    doc: DocId,
    /// The number of inherited paragraphs.
    inherited: u32,
    /// The older pages that have all inherited paragraphs that are not common, in order.
    chosen: Vec<DocId>,
    /// The inherited paragraphs that no parent explains yet.
    left: BTreeSet<u64>,
    /// For each common paragraph the smallest older page that has it.
    common: Vec<(u64, DocId)>,
    /// Older pages that may explain common paragraphs, in order.
    candidates: Vec<DocId>,
    parents: Vec<Parent>,
}

impl Inherited {
    /// The paragraphs of a page, from its records in the order of paragraphs and older pages.
    fn of(of_page: &[HeldParagraph]) -> Inherited {
        let paragraphs = || of_page.chunk_by(|a, b| a.paragraph == b.paragraph);
        let common = of_page.iter().filter(|held| held.is_common > 0).map(|held| (held.paragraph, held.older));
        Inherited {
            doc: of_page[0].doc,
            inherited: paragraphs().count() as u32,
            chosen: chosen(paragraphs().filter(|of| of[0].is_common == 0)),
            left: paragraphs().map(|of| of[0].paragraph).collect(),
            common: common.collect(),
            candidates: Vec::new(),
            parents: Vec::new(),
        }
    }

    /// Makes parents of the older pages that were compared, in order, and finds what is left.
    /// Chosen ones are parents in any case.
    fn explain(&mut self, compared: &[ComparedPair], are_chosen: bool) {
        let others = if are_chosen { std::mem::take(&mut self.chosen) } else { std::mem::take(&mut self.candidates) };
        for other in others {
            let pair = PagePair { own: self.doc, other };
            let Ok(at) = compared.binary_search_by_key(&pair, |compared| compared.pair) else { continue };
            let ComparedPair { shared, sizes, .. } = &compared[at];
            let adds = shared.iter().filter(|paragraph| self.left.remove(paragraph)).count() as u32;
            if adds > 0 {
                self.parents.push(Parent {
                    doc: self.doc,
                    rank: self.parents.len() as u32 + 1,
                    parent: other,
                    adds,
                    shared: shared.len() as u32,
                    of_parent: sizes[1],
                    is_same_host: None,
                });
            }
        }
        if are_chosen {
            let mut counts: BTreeMap<DocId, u32> = BTreeMap::new();
            let left = self.common.iter().filter(|(paragraph, _)| self.left.contains(paragraph));
            left.for_each(|(_, smallest)| *counts.entry(*smallest).or_default() += 1);
            let mut candidates: Vec<(Reverse<u32>, DocId)> =
                counts.into_iter().map(|(doc, count)| (Reverse(count), doc)).collect();
            candidates.sort_unstable();
            self.candidates = candidates.into_iter().map(|(_, doc)| doc).collect();
        }
    }
}

/// Chooses older pages that have all paragraphs of a page, given the records of each paragraph:
/// greedily.
fn chosen<'a>(paragraphs: impl Iterator<Item = &'a [HeldParagraph]>) -> Vec<DocId> {
    let mut holders: BTreeMap<DocId, Vec<u32>> = BTreeMap::new();
    let mut having: Vec<Vec<DocId>> = Vec::new();
    for (number, of_paragraph) in (0u32..).zip(paragraphs) {
        of_paragraph.iter().for_each(|held| holders.entry(held.older).or_default().push(number));
        having.push(of_paragraph.iter().map(|held| held.older).collect());
    }
    // What each page has of what is left. A heap of what they had is corrected as it is read: the
    // counts only fall.
    let mut counts: BTreeMap<DocId, usize> = holders.iter().map(|(doc, of)| (*doc, of.len())).collect();
    let mut heap: BinaryHeap<(usize, Reverse<DocId>)> =
        counts.iter().map(|(doc, count)| (*count, Reverse(*doc))).collect();
    let mut chosen = Vec::new();
    while let Some((count, Reverse(doc))) = heap.pop() {
        let now = counts.get(&doc).copied().unwrap_or(0);
        if now == 0 {
            continue;
        }
        if now < count {
            heap.push((now, Reverse(doc)));
            continue;
        }
        for number in &holders[&doc] {
            for other in std::mem::take(&mut having[*number as usize]) {
                if let Some(count) = counts.get_mut(&other) {
                    *count -= 1;
                }
            }
        }
        chosen.push(doc);
    }
    chosen
}
