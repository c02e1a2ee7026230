//! Parents: for each born page a few older pages that have all of its inherited paragraphs.
//!
//! ```text
//! left = the paragraphs of the page that some older page has
//! while left is not empty:
//!     parent = the older page that has most of left; of several, the smallest
//!     left = left without the paragraphs of parent
//! ```
//!
//! Of a paragraph that many older pages have, only the 100 with the smallest ids can be parents for it. What a parent and the page have in
//! common is counted exactly, from both sets.

use std::collections::BTreeMap;
use std::rc::Rc;

use anyhow::Result;
use timely::worker::Worker;

use super::changes::{Change, TwoWeeks};
use super::holders::HeldParagraph;
use crate::operators::exchange::{Kept, LocalAnswers, lookup};
use crate::operators::paragraphs::{ComparedPair, PagePair, PageSets, ParagraphSource, ParagraphStage, compare_sets};
use crate::records::DocId;
use crate::structures::{ExternalSort, Ownership, Sortable};

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
    /// Paragraphs that this parent has, and no parent before it: of those for which it was looked at.
    pub adds: u32,
    /// The distinct paragraphs that both have.
    pub shared: u32,
    /// The distinct paragraphs of the parent.
    pub of_parent: u32,
    /// Whether it is on the host of the born page.
    pub is_same_host: bool,
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

/// Chooses the parents of own born pages, from the older pages that have their paragraphs. Both lists are in the order of the pages.
///
/// # Errors
/// If pages or files cannot be read or written, or a worker of this process failed.
pub fn births<S: ParagraphSource>(
    worker: &mut Worker,
    stage: &ParagraphStage,
    owned: &Ownership,
    sources: [&S; 2],
    weeks: TwoWeeks<'_>,
    held: Kept<HeldParagraph>,
) -> Result<(Vec<Birth>, Vec<Parent>)> {
    let (mut births, mut sets) = (BTreeMap::new(), PageSets::default());
    sources[1].each(|doc, paragraphs| {
        if weeks.change(owned.index(doc)) == Change::Born {
            let mut distinct = 0;
            sets.each(paragraphs, |_| distinct += 1);
            births.insert(doc, Birth { doc, paragraphs: distinct, inherited: 0, parents: 0 });
        }
        Ok(())
    })?;
    let mut sort = ExternalSort::new(&stage.scratch.join("held"), stage.memory / 4);
    for block in 0..held.blocks() {
        held.block(block, |records| records.iter().try_for_each(|record| sort.push(*record)))??;
    }
    drop(held);
    let (mut sorted, mut of_page, mut parents) = (sort.sorted()?, Vec::<HeldParagraph>::new(), Vec::new());
    loop {
        let next = sorted.record()?;
        if let Some(first) = of_page.first()
            && next.is_none_or(|next: HeldParagraph| next.doc != first.doc)
        {
            if let Some(birth) = births.get_mut(&first.doc) {
                let chosen = choose(&of_page);
                birth.inherited = of_page.chunk_by(|a, b| a.paragraph == b.paragraph).count() as u32;
                birth.parents = chosen.len() as u32;
                parents.extend(chosen);
            }
            of_page.clear();
        }
        match next {
            Some(next) => of_page.push(next),
            None => break,
        }
    }
    let pairs: Vec<PagePair> = parents.iter().map(|of| PagePair { own: of.doc, other: of.parent }).collect();
    let mut compared = compare_sets(worker, stage, [sources[1], sources[0]], &pairs)?;
    compared.sort_unstable();
    for parent in &mut parents {
        let pair = PagePair { own: parent.doc, other: parent.parent };
        if let Ok(at) = compared.binary_search_by_key(&pair, |compared| compared.pair) {
            let ComparedPair { shared, sizes, .. } = compared[at];
            (parent.shared, parent.of_parent) = (shared, sizes[1]);
        }
    }
    if let Some(hosts) = weeks.hosts {
        find_hosts(worker, stage, owned, hosts, &mut parents)?;
    }
    Ok((births.into_values().collect(), parents))
}

/// Finds which parents are on the host of the born page.
fn find_hosts(
    worker: &mut Worker,
    stage: &ParagraphStage,
    owned: &Ownership,
    [before, now]: [&[u64]; 2],
    parents: &mut [Parent],
) -> Result<()> {
    let asked: Rc<Vec<DocId>> = Rc::new(parents.iter().map(|of| of.parent).collect());
    let before = before.to_vec();
    let local = LocalAnswers::own(worker, move |page: usize| [before[page]]);
    let questions = || {
        let asked = asked.clone();
        (0..asked.len()).map(move |place| asked[place])
    };
    lookup(worker, owned, questions, &local, &stage.watch, |place, [host]| {
        let of = &mut parents[place];
        of.is_same_host = now[owned.index(of.doc)] == host;
    })
}

/// Chooses the parents of one page. Its records are in the order of paragraphs and older pages.
fn choose(of_page: &[HeldParagraph]) -> Vec<Parent> {
    let mut holders: BTreeMap<DocId, Vec<u32>> = BTreeMap::new();
    let mut count = 0;
    for (number, of_paragraph) in (0u32..).zip(of_page.chunk_by(|a, b| a.paragraph == b.paragraph)) {
        of_paragraph.iter().for_each(|held| holders.entry(held.older).or_default().push(number));
        count = number as usize + 1;
    }
    let (mut is_left, mut left, mut parents) = (vec![true; count], count, Vec::new());
    while left > 0 {
        holders.values_mut().for_each(|paragraphs| paragraphs.retain(|paragraph| is_left[*paragraph as usize]));
        holders.retain(|_, paragraphs| !paragraphs.is_empty());
        let most = holders.iter().max_by_key(|(doc, paragraphs)| (paragraphs.len(), std::cmp::Reverse(**doc)));
        let Some((parent, covered)) = most else { break };
        covered.iter().for_each(|paragraph| is_left[*paragraph as usize] = false);
        left -= covered.len();
        parents.push(Parent {
            doc: of_page[0].doc,
            rank: parents.len() as u32 + 1,
            parent: *parent,
            adds: covered.len() as u32,
            shared: 0,
            of_parent: 0,
            is_same_host: false,
        });
    }
    parents
}
