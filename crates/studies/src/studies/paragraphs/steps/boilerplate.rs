//! Paragraphs that many pages have: navigation, licences, notices; over a host, or over the whole
//! crawl.
//!
//! ```text
//! record: paragraph, host, page             24 bytes, for each distinct paragraph of a page, to the owner of the paragraph
//! reply:  paragraph, pages, hosts           to the owner of the page that is the example, if there are enough pages
//!         page                              to the owner of each page that has the paragraph
//! ```
//!
//! Known limit: all pages of one paragraph are in the memory of one worker, 24 bytes each.

use std::cell::RefCell;
use std::rc::Rc;

use anyhow::Result;
use bytemuck::{Pod, Zeroable};
use nigh_exchange::{BlockOf, Context, Dealer, Keyed, by_group};

use super::page_records::PageRecords;
use super::page_sets::PageSets;
use super::source::ParagraphSource;
use super::week_pages::without_host;
use crate::records::DocId;
use crate::structures::{CompactSort, Ownership};

/// A paragraph of enough pages, at the owner of its example.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct RepeatedParagraph {
    /// The example: the smallest page of the host with most pages that have the paragraph; of
    /// several such hosts, that of the smallest page.
    pub doc: DocId,
    /// Where in the example: the first of its paragraphs that is this one, from 0.
    pub place: u32,
    /// The hash of the paragraph.
    pub paragraph: u64,
    /// The pages that have it.
    pub documents: u64,
    /// The hosts of these pages.
    pub hosts: u64,
    /// The pages of the host of the example; 0 if it has none.
    pub on_host: u64,
}

/// The paragraphs that many pages have.
#[derive(Clone, Debug, Default)]
pub struct Boilerplate {
    /// Those whose example is an own page, by example and place.
    pub paragraphs: Vec<RepeatedParagraph>,
    /// By own number: the distinct paragraphs of the page that are among them.
    pub of_pages: Vec<u32>,
}

/// A paragraph of a page.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Pod, Zeroable)]
#[repr(C)]
struct Occurrence {
    paragraph: u64,
    host: u64,
    doc: DocId,
}

impl Keyed for Occurrence {
    fn key(&self) -> u64 {
        self.paragraph
    }
}

/// A reply: to the page that is the example with the counts; to another page without.
#[derive(Clone, Copy, Pod, Zeroable)]
#[repr(C)]
struct Reply {
    doc: DocId,
    paragraph: u64,
    /// 0 for a page that is not the example.
    documents: u64,
    hosts: u64,
    on_host: u64,
}

/// Finds the paragraphs of at least `least` of the pages of `source`, which has about `count`.
/// `hosts` has a hash of the host of each own page.
///
/// # Errors
/// If pages or files cannot be read or written, or a worker of this process failed.
pub fn boilerplate<S: ParagraphSource>(
    cx: &mut Context,
    owned: &Ownership,
    source: &S,
    hosts: &[u64],
    (count, least): (u64, u64),
) -> Result<Boilerplate> {
    let records = {
        let (owned, mut distinct) = (owned.clone(), PageSets::default());
        let hosts = hosts.to_vec();
        PageRecords::new(source, count, move |doc, paragraphs, _, records| {
            let host = hosts[owned.index(doc)];
            distinct.each(paragraphs, |paragraph| records.push(Occurrence { paragraph, host, doc }));
            Ok(())
        })
    };
    let found = Rc::new(RefCell::new(Boilerplate { paragraphs: Vec::new(), of_pages: vec![0; owned.len()] }));
    let take = {
        let (found, owned) = (found.clone(), owned.clone());
        move |block: BlockOf<Reply>| {
            let found = &mut *found.borrow_mut();
            for Reply { doc, paragraph, documents, hosts, on_host } in block.records().iter().copied() {
                found.of_pages[owned.index(doc)] += 1;
                if documents > 0 {
                    let repeated = RepeatedParagraph { doc, place: 0, paragraph, documents, hosts, on_host };
                    found.paragraphs.push(repeated);
                }
            }
        }
    };
    let peers = cx.peers();
    let group = move |pages: &[Occurrence], dealer: &mut Dealer<Reply>| {
        if (pages.len() as u64) < least {
            return;
        }
        let of_hosts = || pages.chunk_by(|a, b| a.host == b.host);
        // The most pages, then the smallest page.
        let most = of_hosts().min_by_key(|of_host| (std::cmp::Reverse(of_host.len()), of_host[0].doc));
        let Some(most) = most else { return };
        let (example, paragraph) = (most[0].doc, pages[0].paragraph);
        for Occurrence { doc, .. } in pages {
            let mut reply = Reply { doc: *doc, paragraph, documents: 0, hosts: 0, on_host: 0 };
            if *doc == example {
                let has_host = |of_host: &[Occurrence]| of_host[0].host != without_host();
                reply.documents = pages.len() as u64;
                reply.hosts = of_hosts().filter(|of_host| has_host(of_host)).count() as u64;
                reply.on_host = if has_host(most) { most.len() as u64 } else { 0 };
            }
            dealer.deal(doc.owner(peers) as u64, reply);
        }
    };
    by_group(cx, "Boilerplate", records, group, take)?;
    let mut found = found.take();
    found.paragraphs.sort_rows_by_key(|repeated| (repeated.doc, repeated.paragraph));
    find_places(source, &mut found.paragraphs)?;
    found.paragraphs.sort_rows();
    Ok(found)
}

/// Finds where in its example each paragraph is; they are sorted by example and paragraph.
fn find_places(source: &impl ParagraphSource, repeated: &mut [RepeatedParagraph]) -> Result<()> {
    if repeated.is_empty() {
        return Ok(());
    }
    source.each(|doc, paragraphs| {
        let from = repeated.partition_point(|repeated| repeated.doc < doc);
        let to = from + repeated[from..].partition_point(|repeated| repeated.doc == doc);
        let of_page = &mut repeated[from..to];
        if !of_page.is_empty() {
            for (place, paragraph) in paragraphs.iter().enumerate().rev() {
                if let Ok(at) = of_page.binary_search_by_key(paragraph, |repeated| repeated.paragraph) {
                    of_page[at].place = place as u32;
                }
            }
        }
        Ok(())
    })
}
