//! The pages that have the paragraphs of changed pages, in both weeks: so the paragraphs that
//! appear or leave, and where born pages can have theirs from.
//!
//! ```text
//! record: paragraph, kind, page        24 bytes, to the owner of the paragraph, for
//!           each paragraph of a changed page: then, now
//!           each of them that an unchanged page has
//! reply:  paragraph, born page, older page     for each older page of a paragraph of a born page; for the smallest one if more than 100 have
//!                                              it: then it is common
//! ```

use std::cell::RefCell;
use std::rc::Rc;

use anyhow::Result;
use bytemuck::{Pod, Zeroable};
use nigh_exchange::{BlockOf, Context, Dealer, KeptRecords, Keyed, by_group};
use serde::{Deserialize, Serialize};

use super::page_changes::{PageChange, TwoWeeks};
use crate::kernels::BitSet;
use crate::records::DocId;
use crate::structures::{CompactSort, Ownership};
use crate::studies::paragraphs::steps::{PageSets, ParagraphSource};

/// Paragraphs for each word of their filter: about one in twenty others passes, and has no changed
/// page in its group.
const OF_WORD: usize = 4;
/// A paragraph of more older pages is common.
pub(super) const MOST_HOLDERS: usize = 100;

/// Kinds of holders, in the order of records: a page that has the paragraph in both weeks, then
/// only, now only, and a born page.
const BOTH: u64 = 0;
const THEN: u64 = 1;
const NOW: u64 = 2;
const BORN: u64 = 3;

/// A page that has a paragraph, at the owner of the paragraph.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Pod, Zeroable)]
#[repr(C)]
struct ParagraphHolder {
    paragraph: u64,
    kind: u64,
    doc: DocId,
}

impl Keyed for ParagraphHolder {
    fn key(&self) -> u64 {
        self.paragraph
    }
}

/// A paragraph of a born page that an older page has, at the owner of the born page.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Pod, Zeroable, Serialize, Deserialize)]
#[repr(C)]
pub struct HeldParagraph {
    /// The born page.
    pub doc: DocId,
    /// The paragraph.
    pub paragraph: u64,
    /// The older page.
    pub older: DocId,
    /// 1 if the paragraph is common: more than 100 older pages have it, and this is the one with
    /// the smallest id.
    pub is_common: u64,
}

/// A paragraph that no page had the week before, or that no page has now; at the worker that owns
/// it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Pod, Zeroable)]
#[repr(C)]
pub struct ParagraphEvent {
    /// The paragraph.
    pub paragraph: u64,
    /// 0 if it leaves, 1 if it appears.
    pub appears: u64,
    /// The smallest page that has it: this week if it appears, the week before if it leaves.
    pub doc: DocId,
}

/// What the holders of paragraphs of changed pages say.
pub struct Appearances {
    /// Paragraphs that appear or leave, in no particular order.
    pub events: KeptRecords<ParagraphEvent>,
    /// Paragraphs of own born pages that older pages have, with these; in no particular order.
    pub held: KeptRecords<HeldParagraph>,
}

/// Finds the holders of all paragraphs of changed pages. `sources` are the pages of the week before
/// and of this week.
///
/// # Errors
/// If pages or files cannot be read or written, or a worker of this process failed.
pub fn held_paragraphs<S: ParagraphSource>(
    cx: &mut Context,
    owned: &Ownership,
    sources: [&S; 2],
    weeks: TwoWeeks<'_>,
) -> Result<Appearances> {
    let mut holders = KeptRecords::new(cx.scratch(), cx.memory() / 4);
    let filter = changed_holders(cx, owned, sources, weeks, &mut holders)?;
    let mut distinct = PageSets::default();
    sources[1].each(|doc, paragraphs| {
        let mut pushed = Ok(());
        if weeks.change(owned.index(doc)) == PageChange::Unchanged {
            distinct.each(paragraphs, |paragraph| {
                if pushed.is_ok() && filter.as_ref().is_none_or(|filter| filter.has(paragraph)) {
                    pushed = holders.push(ParagraphHolder { paragraph, kind: BOTH, doc });
                }
            });
        }
        pushed
    })?;
    drop(filter);
    let (events, held) =
        (KeptRecords::new(cx.scratch(), cx.memory() / 8), KeptRecords::new(cx.scratch(), cx.memory() / 8));
    let (events, held) = (Rc::new(RefCell::new(events)), Rc::new(RefCell::new(held)));
    let (peers, watch) = (cx.peers(), cx.watch().clone());
    let group = {
        let (events, watch) = (events.clone(), watch.clone());
        move |holders: &[ParagraphHolder], dealer: &mut Dealer<HeldParagraph>| {
            let place = |kind| holders.partition_point(|holder| holder.kind < kind);
            let (then, now, born) = (place(THEN), place(NOW), place(BORN));
            let (older, newer) = holders.split_at(now);
            let paragraph = holders[0].paragraph;
            let event = |appears, of: &[ParagraphHolder]| {
                let doc = of.iter().map(|holder| holder.doc).min().unwrap_or(DocId::NONE);
                watch.check(events.borrow_mut().push(ParagraphEvent { paragraph, appears, doc }));
            };
            if older.is_empty() {
                event(1, newer);
            } else if newer.is_empty() && then == 0 {
                event(0, older);
            } else if born < holders.len() {
                let is_common = older.len() > MOST_HOLDERS;
                let docs = older.iter().map(|holder| holder.doc);
                let docs: Vec<DocId> = if is_common { docs.min().into_iter().collect() } else { docs.collect() };
                for ParagraphHolder { doc, .. } in &holders[born..] {
                    for older in docs.iter().copied() {
                        let held = HeldParagraph { doc: *doc, paragraph, older, is_common: is_common.into() };
                        dealer.deal(doc.owner(peers) as u64, held);
                    }
                }
            }
        }
    };
    let take = {
        let (held, watch) = (held.clone(), watch);
        move |block: BlockOf<HeldParagraph>| {
            let mut held = held.borrow_mut();
            watch.check(block.records().iter().try_for_each(|record| held.push(*record)));
        }
    };
    by_group(cx, "Holders", holders, group, take)?;
    Ok(Appearances {
        events: events.replace(KeptRecords::new(cx.scratch(), 0)),
        held: held.replace(KeptRecords::new(cx.scratch(), 0)),
    })
}

/// Adds the paragraphs of changed pages, and returns a filter of them; `None` if they are too many
/// for the memory.
fn changed_holders<S: ParagraphSource>(
    cx: &mut Context,
    owned: &Ownership,
    sources: [&S; 2],
    weeks: TwoWeeks<'_>,
    holders: &mut KeptRecords<ParagraphHolder>,
) -> Result<Option<BitSet>> {
    let (mut distinct, mut own) = (PageSets::default(), Vec::new());
    // Paragraphs of all workers are in memory at once.
    let most = cx.memory() as usize / 8 / cx.peers();
    let mut is_too_many = false;
    for (source, kind) in sources.into_iter().zip([THEN, NOW]) {
        source.each(|doc, paragraphs| {
            let (change, mut pushed) = (weeks.change(owned.index(doc)), Ok(()));
            if matches!(change, PageChange::Changed | PageChange::Born) {
                let kind = if change == PageChange::Born { BORN } else { kind };
                distinct.each(paragraphs, |paragraph| {
                    if pushed.is_ok() {
                        pushed = holders.push(ParagraphHolder { paragraph, kind, doc });
                    }
                    own.push(paragraph);
                });
                is_too_many |= own.len() > most;
                if is_too_many {
                    own.clear();
                }
            }
            pushed
        })?;
    }
    if cx.any(is_too_many)? {
        return Ok(None);
    }
    own.sort_rows();
    own.dedup();
    let all = cx.sorted(own)?;
    let mut filter = BitSet::new(vec![0; all.len().div_ceil(OF_WORD).next_power_of_two()], &[0]);
    all.into_iter().for_each(|paragraph| filter.put(paragraph));
    Ok(Some(filter))
}
