//! What changed since a former week: which texts are new, and which pages stand for the others now.
//!
//! ```text
//! texts of both weeks, each at its centre ─▶ centres whose page or text is another now ─▶ owner of the text
//!                                            renamed[old centre], is_old[new centre]   ◀─ both centres of a text
//! ```
//!
//! Most centres have the same text in both weeks, and are not exchanged. Memory: 25 bytes for every
//! known URL.

use anyhow::Result;
use bytemuck::{Pod, Zeroable};
use nigh_exchange::{Context, all_to_all};

use super::copies::Copies;
use crate::records::{DocId, Key};
use crate::structures::{CompactSort, Ownership};

/// The texts of the own pages of a week, by page; and the centre of each.
pub struct CentresOfWeek<'a> {
    /// The hash of the text of each page.
    pub texts: &'a [(u128, DocId)],
    /// The centres of these pages.
    pub copies: &'a Copies,
}

/// What became of the texts of a former week.
#[derive(Clone, Debug)]
pub struct TextChanges {
    /// By own number: the page that stands now for the text for which this page stood then;
    /// [`DocId::NONE`] if it stood for none, or the text is gone.
    pub renamed: Vec<DocId>,
    /// By own number: whether this page stands for a text that the former week had, too.
    pub is_old: Vec<bool>,
    /// The texts of all workers that are new, and those that are gone.
    pub differing: u64,
    /// The texts of this week, of all workers.
    pub texts: u64,
}

impl TextChanges {
    /// The texts that are new or gone, over the texts of this week.
    pub fn share(&self) -> f64 {
        self.differing as f64 / self.texts.max(1) as f64
    }
}

/// A centre at the owner of its text.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Pod, Zeroable)]
#[repr(C)]
struct CentreOfText {
    text: Key,
    /// 0 for the former week, 1 for this one.
    week: u32,
    from: u32,
    doc: DocId,
}

/// The two centres of a text, on their way back to the owner of one of them.
#[derive(Clone, Copy, Pod, Zeroable)]
#[repr(C)]
struct TextInBoth {
    then: DocId,
    now: DocId,
}

/// Compares the texts of a former week with those of this week.
///
/// # Errors
/// If a worker of this process failed.
pub fn text_changes(
    cx: &mut Context,
    owned: &Ownership,
    then: &CentresOfWeek<'_>,
    now: &CentresOfWeek<'_>,
) -> Result<TextChanges> {
    let (index, peers) = (cx.index(), cx.peers());
    let mut changes = TextChanges {
        renamed: vec![DocId::NONE; owned.len()],
        is_old: vec![false; owned.len()],
        differing: 0,
        texts: 0,
    };
    let mut text_then = vec![0u128; owned.len()];
    for (text, doc) in then.texts {
        let page = owned.index(*doc);
        text_then[page] = *text;
    }
    for (text, doc) in now.texts {
        let page = owned.index(*doc);
        let is_same = then.copies.centre[page] != DocId::NONE && text_then[page] == *text;
        if is_same && then.copies.pages[page] > 0 && now.copies.pages[page] > 0 {
            (changes.renamed[page], changes.is_old[page]) = (*doc, true);
        }
    }
    let mut dealer = cx.dealer();
    for (week, of_week) in [then, now].into_iter().enumerate() {
        for (text, doc) in of_week.texts {
            let page = owned.index(*doc);
            if of_week.copies.pages[page] > 0 && !changes.is_old[page] {
                let text = Key::of_hashes((*text >> 64) as u64, *text as u64);
                let record = CentreOfText { text, week: week as u32, from: index as u32, doc: *doc };
                dealer.deal(text.partition_bits() % peers as u64, record);
            }
        }
    }
    let blocks = all_to_all(cx, dealer)?;
    let mut records: Vec<CentreOfText> = blocks.iter().flat_map(|block| block.records()).copied().collect();
    drop(blocks);
    records.sort_rows();
    let mut dealer = cx.dealer();
    let mut differing = 0;
    for of_text in records.chunk_by(|a, b| a.text == b.text) {
        let [then, now] = of_text else {
            differing += 1;
            continue;
        };
        let both = TextInBoth { then: then.doc, now: now.doc };
        dealer.deal(then.from.into(), both);
        if now.from != then.from {
            dealer.deal(now.from.into(), both);
        }
    }
    for TextInBoth { then, now } in all_to_all(cx, dealer)?.iter().flat_map(|block| block.records()) {
        if owned.has(*then) {
            changes.renamed[owned.index(*then)] = *now;
        }
        if owned.has(*now) {
            changes.is_old[owned.index(*now)] = true;
        }
    }
    let texts = now.copies.pages.iter().filter(|pages| **pages > 0).count() as u64;
    for of_worker in cx.concat(vec![[differing, texts]])? {
        changes.differing += of_worker[0];
        changes.texts += of_worker[1];
    }
    Ok(changes)
}
