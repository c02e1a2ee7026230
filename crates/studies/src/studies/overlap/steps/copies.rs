//! Copies: pages with one text. The smallest of them is the centre, which alone goes on (Shivakumar
//! and Garcia-Molina 1998, section 3).

use std::cell::RefCell;
use std::rc::Rc;

use anyhow::Result;
use bytemuck::{Pod, Zeroable};
use nigh_exchange::{BlockOf, Context, Dealer, KeyRanges, Partition, RangeDealer, by_key};

use crate::records::{DocId, Key};
use crate::structures::Ownership;

/// Records of a partition, at most: their sorting stays in the second-level cache.
const MOST_RECORDS: u64 = 1 << 14;
/// Pages that are dealt at once, between two checks of the clock.
const PAGES: usize = 1 << 12;

/// The copies of own pages.
#[derive(Debug)]
pub struct Copies {
    /// By own number: the centre of the page; [`DocId::NONE`] if it has no text.
    pub centre: Vec<DocId>,
    /// By own number: the pages with the text of this page, if it is a centre; else 0.
    pub pages: Vec<u32>,
}

/// A page at the owner of its text.
#[derive(Clone, Copy, Pod, Zeroable)]
#[repr(C)]
struct TextRecord {
    text: Key,
    doc: DocId,
}

/// The centre of a page, and the number of pages with its text, on the way back.
#[derive(Clone, Copy, Pod, Zeroable)]
#[repr(C)]
struct CentreRecord {
    doc: DocId,
    centre: DocId,
    pages: u64,
}

/// Finds the centre of every own page.
///
/// ```text
/// for each page p: centre[p] = the smallest page with the text of p
/// ```
///
/// # Errors
/// If a worker of this process failed, or a file cannot be written.
pub fn copies(cx: &mut Context, owned: &Ownership, texts: Vec<(u128, DocId)>) -> Result<Copies> {
    let all = cx.sum(texts.len() as u64)?;
    let cut = KeyRanges::new(all, MOST_RECORDS, size_of::<TextRecord>(), 1, cx.peers(), cx.memory());
    let mut copies = Copies { centre: vec![DocId::NONE; owned.len()], pages: vec![0; owned.len()] };
    for (_, doc) in &texts {
        (copies.centre[owned.index(*doc)], copies.pages[owned.index(*doc)]) = (*doc, 1);
    }
    let texts = Rc::new(texts);
    let open = move || {
        let (texts, mut next) = (texts.clone(), 0);
        move |deal: &mut RangeDealer<'_, TextRecord>| {
            let end = (next + PAGES).min(texts.len());
            for (text, doc) in &texts[next..end] {
                let text = Key::of_hashes((*text >> 64) as u64, *text as u64);
                deal.deal(0, text.partition_bits(), TextRecord { text, doc: *doc });
            }
            next = end;
            Ok(end < texts.len())
        }
    };
    let mut records: Vec<(Key, DocId, u32)> = Vec::new();
    let find = move |partition: &Partition<'_, TextRecord>, dealer: &mut Dealer<CentreRecord>| {
        records.clear();
        partition.blocks(|block| {
            records.extend(block.records().iter().map(|record| (record.text, record.doc, block.from)));
        })?;
        records.sort_unstable();
        for same in records.chunk_by(|a, b| a.0 == b.0).filter(|same| same.len() > 1) {
            let (centre, pages) = (same[0].1, same.len() as u64);
            for (_, doc, from) in same {
                dealer.deal((*from).into(), CentreRecord { doc: *doc, centre, pages });
            }
        }
        Ok(())
    };
    let copies = Rc::new(RefCell::new(copies));
    let take = {
        let (copies, owned) = (copies.clone(), owned.clone());
        move |block: BlockOf<CentreRecord>| {
            let mut copies = copies.borrow_mut();
            for CentreRecord { doc, centre, pages } in block.records() {
                let page = owned.index(*doc);
                copies.centre[page] = *centre;
                copies.pages[page] = if doc == centre { *pages as u32 } else { 0 };
            }
        }
    };
    by_key(cx, "Copies", cut, cx.spill_buffer(), open, find, take)?;
    Ok(copies.replace(Copies { centre: Vec::new(), pages: Vec::new() }))
}
