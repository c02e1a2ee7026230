//! False matches: a page that repeats a paragraph, and another page with the same number of
//! paragraphs that has all of them and others (Pereira 2006, Fig. 1). The study's test takes them
//! for duplicates, so nigh does, too, and counts them apart.
//!
//! Only pages that repeat a paragraph are asked for, each by its rarest paragraph. One page of each
//! class asks and answers.
//!
//! ```text
//! frequencies   how many pages have a paragraph, about: counters of a sample of the pages
//! keys          of each page that repeats one: its number of paragraphs and its rarest paragraph; every worker knows all
//! exchange      pages that ask, and pages that have the paragraph: candidates, unless their sizes or kinds of paragraphs refuse it
//! compare       the set of the page that asks with that of the other, exactly
//! ```
//!
//! Known limit: 8 bytes at every worker for each class that repeats a paragraph; and the sets of
//! all candidates are in memory.

use std::cell::RefCell;
use std::rc::Rc;

use anyhow::Result;
use bytemuck::{Pod, Zeroable};
use nigh_exchange::{BlockOf, Context, Dealer, KeptRecords, Keyed, all_to_all, by_group};
use serde::{Deserialize, Serialize};

use super::classes::{DuplicateClass, FalseMatch};
use crate::kernels::BitSet;
use crate::records::{DocId, fold, mix};
use crate::structures::Ownership;
use crate::studies::paragraphs::steps::compare_sets::{PagePair, compare_sets};
use crate::studies::paragraphs::steps::page_sets::{PageSets, SetOfPage};
use crate::studies::paragraphs::steps::source::ParagraphSource;

/// Counters of frequencies.
const COUNTERS: usize = 1 << 18;
/// Keys for each word of their filter: about one in twenty other keys passes, and meets no page
/// that asks.
const KEYS_OF_WORD: usize = 4;
/// One of so many pages is in the sample of frequencies.
const SAMPLE: u64 = 8;

/// How many pages of a sample have a paragraph, at most: paragraphs share counters.
#[derive(Clone, Debug, Default)]
pub(in crate::studies::paragraphs::steps) struct Frequencies(Vec<u32>);

impl Frequencies {
    /// Counts the paragraphs of a page, if it is in the sample.
    #[inline]
    pub fn add(&mut self, doc: DocId, paragraphs: &[u64]) {
        if mix(doc.to_table() as u64).is_multiple_of(SAMPLE) {
            self.0.resize(COUNTERS, 0);
            for paragraph in paragraphs {
                let counter = &mut self.0[*paragraph as usize % COUNTERS];
                *counter = counter.saturating_add(1);
            }
        }
    }

    /// The sums over all workers.
    fn of_all(self, cx: &mut Context) -> Result<Frequencies> {
        let own = self.0.into_iter().zip(0u32..).filter(|(count, _)| *count > 0);
        let mut all = Frequencies(vec![0; COUNTERS]);
        for (count, counter) in cx.concat(own.collect())? {
            all.0[counter as usize] += count;
        }
        Ok(all)
    }

    fn of(&self, paragraph: u64) -> u32 {
        self.0[paragraph as usize % COUNTERS]
    }
}

/// A page at the owner of a number of paragraphs and a paragraph.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Pod, Zeroable)]
#[repr(C)]
struct ParagraphProbe {
    key: u64,
    /// 1 if the page asks.
    asks: u32,
    /// The number of its distinct paragraphs.
    distinct: u32,
    /// Which kinds of hashes its paragraphs have: see [`SetOfPage`].
    signature: u64,
    doc: DocId,
}

impl Keyed for ParagraphProbe {
    fn key(&self) -> u64 {
        self.key
    }
}

/// A false match on its way to every worker.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Pod, Zeroable, Serialize, Deserialize)]
#[repr(C)]
struct SentMatch {
    docs: [DocId; 2],
    /// Size and part of either class.
    classes: [[u32; 2]; 2],
}

/// Finds the false matches of all workers. Given are, by own number, the paragraphs of the page,
/// the smallest page of its class, and the class.
///
/// # Errors
/// If pages or files cannot be read or written, or a worker of this process failed.
pub(in crate::studies::paragraphs::steps) fn false_matches<S: ParagraphSource>(
    cx: &mut Context,
    owned: &Ownership,
    source: &S,
    frequencies: Frequencies,
    (paragraphs_of, class_of, classes): (&[u32], &[DocId], &[DuplicateClass]),
) -> Result<Vec<FalseMatch>> {
    let peers = cx.peers();
    let frequencies = frequencies.of_all(cx)?;
    let (mut probes, mut distinct) = (KeptRecords::new(cx.scratch(), cx.memory() / 4), PageSets::default());
    let is_first = |doc: DocId| class_of[owned.index(doc)] == doc;
    let probe = |key, asks, set: SetOfPage, doc| ParagraphProbe {
        key,
        asks,
        distinct: set.distinct,
        signature: set.signature,
        doc,
    };
    let mut keys = Vec::new();
    source.each(|doc, paragraphs| {
        let set = distinct.set(paragraphs);
        if (set.distinct as usize) < paragraphs.len() && is_first(doc) {
            let rarest = paragraphs.iter().min_by_key(|paragraph| (frequencies.of(**paragraph), **paragraph));
            let key = key_of(paragraphs, *rarest.unwrap_or(&0));
            keys.push(key);
            probes.push(probe(key, 1, set, doc))?;
        }
        Ok(())
    })?;
    let keys = cx.sorted(keys)?;
    let mut filter = BitSet::new(vec![0; keys.len().div_ceil(KEYS_OF_WORD).next_power_of_two()], &[0]);
    keys.into_iter().for_each(|key| filter.put(key));
    source.each(|doc, paragraphs| {
        if is_first(doc) {
            let set = distinct.set(paragraphs);
            let mut found = Ok(());
            distinct.each(paragraphs, |paragraph| {
                let key = key_of(paragraphs, paragraph);
                if found.is_ok() && filter.has(key) {
                    found = probes.push(probe(key, 0, set, doc));
                }
            });
            found?;
        }
        Ok(())
    })?;
    let candidates = Rc::new(RefCell::new(Vec::new()));
    let take = {
        let candidates = candidates.clone();
        move |block: BlockOf<PagePair>| candidates.borrow_mut().extend_from_slice(block.records())
    };
    let group = move |of_key: &[ParagraphProbe], dealer: &mut Dealer<PagePair>| {
        let (having, asking) = of_key.split_at(of_key.partition_point(|probe| probe.asks == 0));
        for asking in asking {
            let has_all =
                |other: &&ParagraphProbe| other.distinct > asking.distinct && asking.signature & !other.signature == 0;
            for other in having.iter().filter(has_all) {
                dealer.deal(asking.doc.owner(peers) as u64, PagePair { own: asking.doc, other: other.doc });
            }
        }
    };
    by_group(cx, "FalseMatches", probes, group, take)?;
    let candidates = candidates.take();
    if !cx.any(!candidates.is_empty())? {
        return Ok(Vec::new());
    }
    let compared = compare_sets(cx, [source, source], &candidates)?;
    // Two pages of one key may differ in their numbers of paragraphs, if hashes collide: the owner
    // of the second page knows.
    let mut dealer = cx.dealer();
    for compared in compared.iter().filter(|compared| compared.shared.len() == compared.sizes[0] as usize) {
        let PagePair { own, other } = compared.pair;
        let page = owned.index(own);
        let found = AskedMatch { docs: [own, other], paragraphs: paragraphs_of[page].into(), class: classes[page] };
        dealer.deal(other.owner(peers) as u64, found);
    }
    let mut own = Vec::new();
    for AskedMatch { docs, paragraphs, class } in all_to_all(cx, dealer)?.iter().flat_map(BlockOf::records) {
        let page = owned.index(docs[1]);
        if u64::from(paragraphs_of[page]) == *paragraphs {
            own.push(SentMatch { docs: *docs, classes: [*class, classes[page]].map(|class| [class.size, class.part]) });
        }
    }
    let all = cx.sorted(own)?;
    let class = |[size, part]: [u32; 2]| DuplicateClass { size, part };
    Ok(all.into_iter().map(|of| FalseMatch { classes: of.docs, of_classes: of.classes.map(class) }).collect())
}

/// A page that repeats paragraphs, at the owner of one that has all of them.
#[derive(Clone, Copy, Pod, Zeroable)]
#[repr(C)]
struct AskedMatch {
    docs: [DocId; 2],
    paragraphs: u64,
    class: DuplicateClass,
}

/// The key under which pages with this number of paragraphs and this paragraph meet.
fn key_of(paragraphs: &[u64], paragraph: u64) -> u64 {
    fold(&[paragraphs.len() as u64, paragraph])
}
