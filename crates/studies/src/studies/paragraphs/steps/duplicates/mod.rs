//! Duplicates: pages with equal numbers of paragraphs, of which each paragraph of one is found in
//! the other (Pereira 2006), and their clusters by chaining.
//!
//! Pages with the same set of paragraphs and the same number of them are duplicates of each other:
//! a *class*, found by one exchange. A page that repeats a paragraph can also have a proper part of
//! the set of another page with the same number: a *false match*, as the study calls it. It joins
//! two classes: see `false_matches`.
//!
//! ```text
//! record: sums of the set, number, part, page      32 bytes, to the owner of the set
//! reply:  first page of the class, of the set      32 bytes, if there is another page
//! ```

pub(super) mod classes;
mod false_matches;
pub(super) mod growth;

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;

use anyhow::{Context as _, Result};
use bytemuck::{Pod, Zeroable};
use nigh_exchange::{BlockOf, Context, Dealer, Keyed, by_group};

use self::classes::{DuplicateClass, FalseMatch};
use self::false_matches::{Frequencies, false_matches};
use self::growth::Growth;
use crate::operators::components::component_roots;
use crate::records::{DocId, Edge};
use crate::structures::Ownership;
use crate::studies::paragraphs::steps::page_parts::PageParts;
use crate::studies::paragraphs::steps::page_records::PageRecords;
use crate::studies::paragraphs::steps::page_sets::PageSets;
use crate::studies::paragraphs::steps::source::ParagraphSource;

/// The duplicates of a week, as one worker knows them.
#[derive(Clone, Debug, Default)]
pub struct WeekDuplicates {
    /// The own pages, in the order of the source.
    pub order: Vec<DocId>,
    /// By own number: the paragraphs of the page, repeated ones included; 0 if there is no such
    /// page.
    pub paragraphs: Vec<u32>,
    /// By own number: a hash of the set of paragraphs; 0 if there is no such page.
    pub sets: Vec<u64>,
    /// By own number: the smallest page of the cluster; the page itself if it is in none, and
    /// [`DocId::NONE`] if there is no such page.
    pub roots: Vec<DocId>,
    /// The own pages whose set of paragraphs a smaller page has, too, whatever their numbers: each
    /// with the smallest such page.
    pub copies: Vec<Edge>,
    /// The paragraphs of all own pages, repeated ones included.
    pub count: u64,
    /// The false matches, the same at every worker.
    pub false_matches: Vec<FalseMatch>,
    /// How clusters are found part by part, of all workers.
    pub growth: Growth,
}

/// A page at the owner of its set.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Pod, Zeroable)]
#[repr(C)]
struct PageRecord {
    sums: [u64; 2],
    paragraphs: u32,
    part: u32,
    doc: DocId,
}

impl Keyed for PageRecord {
    fn key(&self) -> u64 {
        self.sums[0]
    }
}

/// What the owner of its set answers to a page that is not alone.
#[derive(Clone, Copy, Pod, Zeroable)]
#[repr(C)]
struct PageReply {
    doc: DocId,
    /// The smallest page of the class.
    class: DocId,
    /// The smallest page with the set.
    centre: DocId,
    /// The pages of the class.
    size: u32,
    /// The smallest part of a page of the class.
    part: u32,
}

/// What is read of own pages, and what the owners of their sets reply.
#[derive(Default)]
struct PagesRead {
    found: WeekDuplicates,
    /// By own number.
    classes: Vec<DuplicateClass>,
    /// The pages of each part.
    documents: Vec<u64>,
    frequencies: Frequencies,
    /// Whether a page repeats a paragraph.
    repeats: bool,
}

/// Finds the clusters of duplicates of the pages of `source`, and how they grow over `parts`. Every
/// worker calls it with its own pages.
///
/// # Errors
/// If pages or files cannot be read or written, or a worker of this process failed.
pub fn duplicates<S: ParagraphSource>(
    cx: &mut Context,
    owned: &Ownership,
    source: &S,
    parts: &PageParts,
) -> Result<WeekDuplicates> {
    let found = WeekDuplicates {
        paragraphs: vec![0; owned.len()],
        sets: vec![0; owned.len()],
        roots: vec![DocId::NONE; owned.len()],
        ..WeekDuplicates::default()
    };
    let read = PagesRead {
        found,
        classes: vec![DuplicateClass { size: 0, part: 0 }; owned.len()],
        documents: vec![0; parts.count() as usize],
        ..PagesRead::default()
    };
    let replied = Rc::new(RefCell::new(read));
    let records = {
        let (replied, owned, parts, mut distinct) =
            (replied.clone(), owned.clone(), parts.clone(), PageSets::default());
        PageRecords::new(source, owned.len() as u64, move |doc, paragraphs, is_again, records| {
            let (page, set) = (owned.index(doc), distinct.set(paragraphs));
            let (number, part) = (u32::try_from(paragraphs.len())?, parts.of(doc, page));
            records.push(PageRecord { sums: set.sums, paragraphs: number, part, doc });
            if !is_again {
                let read = &mut *replied.borrow_mut();
                read.repeats |= set.distinct < number;
                read.frequencies.add(doc, paragraphs);
                read.documents[part as usize] += 1;
                read.classes[page] = DuplicateClass { size: 1, part };
                (read.found.paragraphs[page], read.found.sets[page]) = (number, set.hash());
                read.found.roots[page] = doc;
                read.found.order.push(doc);
                read.found.count += u64::from(number);
            }
            Ok(())
        })
    };
    let take = {
        let (replied, owned) = (replied.clone(), owned.clone());
        move |block: BlockOf<PageReply>| {
            let PagesRead { found, classes, .. } = &mut *replied.borrow_mut();
            for PageReply { doc, class, centre, size, part } in block.records().iter().copied() {
                let page = owned.index(doc);
                found.roots[page] = class;
                classes[page] = DuplicateClass { size, part };
                if doc != centre {
                    found.copies.push(Edge { doc, root: centre });
                }
            }
        }
    };
    let peers = cx.peers();
    let group = move |records: &[PageRecord], dealer: &mut Dealer<PageReply>| {
        for of_set in records.chunk_by(|a, b| a.sums == b.sums).filter(|of_set| of_set.len() > 1) {
            let centre = of_set.iter().map(|page| page.doc).min().unwrap_or(DocId::NONE);
            for of_class in of_set.chunk_by(|a, b| a.paragraphs == b.paragraphs) {
                let class = of_class.iter().map(|page| page.doc).min().unwrap_or(DocId::NONE);
                // Records are sorted by part before the page.
                let (size, part) = (of_class.len() as u32, of_class[0].part);
                for page in of_class {
                    let reply = PageReply { doc: page.doc, class, centre, size, part };
                    dealer.deal(page.doc.owner(peers) as u64, reply);
                }
            }
        }
    };
    by_group(cx, "Paragraphs", records, group, take)?;
    let PagesRead { mut found, classes, documents, frequencies, repeats } = replied.take();
    if cx.any(repeats)? {
        let of_classes = (&found.paragraphs[..], &found.roots[..], &classes[..]);
        found.false_matches = false_matches(cx, owned, source, frequencies, of_classes)
            .context("finding pages that repeat paragraphs of others")?;
    }
    found.growth = growth(cx, owned, &found, &classes, documents)?;
    if !found.false_matches.is_empty() {
        found.roots = chained(cx, owned, &found)?;
    }
    Ok(found)
}

/// The growth of the clusters of all workers.
fn growth(
    cx: &mut Context,
    owned: &Ownership,
    found: &WeekDuplicates,
    classes: &[DuplicateClass],
    documents: Vec<u64>,
) -> Result<Growth> {
    let mut joined: Vec<DocId> = found.false_matches.iter().flat_map(|of| of.classes).collect();
    joined.sort_unstable();
    joined.dedup();
    let mut counts: BTreeMap<(u32, u64), u64> = BTreeMap::new();
    for (page, doc) in owned.docs().enumerate() {
        let DuplicateClass { size, part } = classes[page];
        if size > 1 && found.roots[page] == doc && joined.binary_search(&doc).is_err() {
            *counts.entry((part, size.into())).or_default() += 1;
        }
    }
    Growth::gather(cx, documents, counts, &found.false_matches)
}

/// The roots of the clusters that false matches join from classes.
fn chained(cx: &mut Context, owned: &Ownership, found: &WeekDuplicates) -> Result<Vec<DocId>> {
    let of_class = owned.docs().zip(&found.roots).filter(|(doc, class)| **class != DocId::NONE && doc != *class);
    let mut edges: Vec<Edge> = of_class.map(|(doc, class)| Edge { doc, root: *class }).collect();
    let own = found.false_matches.iter().map(|of| of.classes).filter(|[one, _]| owned.has(*one));
    edges.extend(own.map(|[one, other]| Edge { doc: one.max(other), root: one.min(other) }));
    let mut roots = component_roots(cx, owned, edges)?;
    roots.iter_mut().zip(&found.roots).filter(|(_, class)| **class == DocId::NONE).for_each(|(root, _)| {
        *root = DocId::NONE;
    });
    Ok(roots)
}
