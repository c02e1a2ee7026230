//! The connected part of a web: the pages that links lead to from its core, and the rest (Pereira
//! 2006, Tables 4 to 6).
//!
//! The core is the largest strongly connected component in which one of the 20 pages lies that most
//! links of other hosts lead to: those that its page leads to, and that lead to its page. Or the
//! seeds are given.
//!
//! ```text
//! links, turned round ─▶ owner of the target: links from other hosts, from any          16 bytes a link
//! the page with most of them ─▶ forward and backward closure, one bit a page: its core
//! those of the 20 that are not in it ─▶ both closures, a bit for each
//! ```
//!
//! Whether two pages are on one host is decided by 32 bits of a hash.

use std::cmp::Reverse;
use std::rc::Rc;

use anyhow::Result;
use nigh_exchange::{Context, KeptRecords, all_to_all};

use super::closure::closure;
use super::out_links::{LinkArrays, OpenLinks, OutLinks, PageLink};
use super::page_marks::PageMarks;
use crate::kernels::memory::{SIDE_BY_SIDE, preload};
use crate::records::DocId;
use crate::structures::{CompactSort, Ownership};

/// The pages of which one is taken for a page of the core.
const CANDIDATES: usize = 20;
/// Links that are exchanged at once.
const LINKS_AT_ONCE: usize = 1 << 19;

/// A page from which links are followed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LinkSeed {
    /// The page.
    pub doc: DocId,
    /// Links that lead to it: from pages of other hosts, and from all pages; `None` if the seed was
    /// given.
    pub in_links: Option<[u64; 2]>,
    /// The pages that it leads to, itself included.
    pub reached: u64,
    /// The pages of its strongly connected component; `None` if the seed was given.
    pub core: Option<u64>,
    /// Whether the connected part is what it leads to.
    pub is_chosen: bool,
}

/// The connected part.
#[derive(Clone, Debug, Default)]
pub struct Connected {
    /// By own number: whether the page is in it.
    pub pages: Vec<bool>,
    /// The given seeds; or the candidates for a page of the core, by their links. The same at every
    /// worker.
    pub seeds: Vec<LinkSeed>,
}

/// Finds what links lead to from `seeds`, which are the same at every worker; without seeds, from
/// the core that is found. `hosts` has a hash of the host of each own page, 0 for numbers without a
/// page.
///
/// # Errors
/// If links cannot be read or kept, or a worker of this process failed.
pub fn connected<'a>(
    cx: &mut Context,
    owned: &Ownership,
    hosts: &[u64],
    open: &'a OpenLinks<'a>,
    seeds: &[DocId],
) -> Result<Connected> {
    let (pages, memory) = (owned.len(), cx.memory());
    if !seeds.is_empty() {
        let links = OutLinks::of_table(cx, open, pages, memory)?;
        let marked: Vec<(DocId, u32)> = seeds.iter().map(|doc| (*doc, 0)).collect();
        let marks = closure(cx, owned, hosts, &links, &marked)?;
        let reached = pages_with(&marks, hosts, 0);

        let all = cx.sum(reached.iter().filter(|page| **page).count() as u64)?;
        let seed = |doc: &DocId| LinkSeed { doc: *doc, in_links: None, reached: all, core: None, is_chosen: true };
        return Ok(Connected { pages: reached, seeds: seeds.iter().map(seed).collect() });
    }
    let (turned, forward_links) = TurnedLinks::read(cx, owned, hosts, open)?;
    let mut candidates = turned.candidates(cx, owned)?;
    let Some(first) = candidates.first().map(|seed| seed.doc) else {
        return Ok(Connected { pages: vec![false; pages], seeds: Vec::new() });
    };
    let search = ClosureContext { owned, hosts };
    let forward = search.closure(cx, &forward_links, &[first])?;
    drop(forward_links);
    let backward_links = OutLinks::of_kept(cx, turned.links, turned.counts, memory)?;
    let backward = search.closure(cx, &backward_links, &[first])?;
    let counts = search.count(cx, 1, &forward, &backward)?[0];
    // Candidates in the core of the first one have the same core, and reach the same pages.
    let in_core =
        |doc: &&DocId| owned.has(**doc) && forward.of(owned.index(**doc)) & backward.of(owned.index(**doc)) > 0;
    let docs: Vec<DocId> = candidates.iter().map(|seed| seed.doc).collect();
    let in_core = cx.sorted(docs.iter().filter(in_core).copied().collect())?;
    let rest: Vec<DocId> = docs.into_iter().filter(|doc| in_core.binary_search(doc).is_err()).collect();
    let (mut rest_forward, mut rest_counts) = (None, Vec::new());
    if !rest.is_empty() {
        let backward = search.closure(cx, &backward_links, &rest)?;
        drop(backward_links);
        let links = OutLinks::of_table(cx, open, pages, memory)?;
        let forward = search.closure(cx, &links, &rest)?;
        rest_counts = search.count(cx, rest.len(), &forward, &backward)?;
        rest_forward = Some(forward);
    }
    for seed in &mut candidates {
        let of_rest = rest.iter().position(|doc| *doc == seed.doc);
        let [reached, core] = of_rest.map_or(counts, |at| rest_counts[at]);
        (seed.reached, seed.core) = (reached, Some(core));
    }
    let largest = candidates.iter_mut().zip(0..).max_by_key(|(seed, number)| (seed.core, Reverse(*number)));
    let chosen = largest.map_or(first, |(seed, _)| {
        seed.is_chosen = true;
        seed.doc
    });
    let reached = match (rest.iter().position(|doc| *doc == chosen), rest_forward) {
        (Some(at), Some(forward)) => pages_with(&forward, hosts, at),
        _ => pages_with(&forward, hosts, 0),
    };
    Ok(Connected { pages: reached, seeds: candidates })
}

/// By own number: whether there is a page, and it has a mark.
fn pages_with(marks: &PageMarks, hosts: &[u64], mark: usize) -> Vec<bool> {
    hosts.iter().enumerate().map(|(page, host)| *host > 0 && marks.of(page) >> mark & 1 > 0).collect()
}

/// What all closures of a web share.
struct ClosureContext<'a> {
    owned: &'a Ownership,
    hosts: &'a [u64],
}

impl ClosureContext<'_> {
    /// The closures of some pages: mark `n` for the page with the number `n`.
    fn closure(&self, cx: &mut Context, links: &OutLinks<'_>, seeds: &[DocId]) -> Result<PageMarks> {
        let marked: Vec<(DocId, u32)> = seeds.iter().copied().zip(0..).collect();
        closure(cx, self.owned, self.hosts, links, &marked)
    }

    /// For each of so many seeds the pages that it leads to, and those of them that lead to it.
    fn count(
        &self,
        cx: &mut Context,
        seeds: usize,
        forward: &PageMarks,
        backward: &PageMarks,
    ) -> Result<Vec<[u64; 2]>> {
        let mut own = vec![[0u64; 2]; seeds];
        for (page, _) in self.hosts.iter().enumerate().filter(|(_, host)| **host > 0) {
            let (forward, backward) = (forward.of(page), backward.of(page));
            if forward > 0 {
                for (seed, counts) in own.iter_mut().enumerate() {
                    let is_reached = forward >> seed & 1;
                    counts[0] += u64::from(is_reached);
                    counts[1] += u64::from(is_reached & backward >> seed);
                }
            }
        }
        let mut all = vec![[0u64; 2]; seeds];
        for (seed, counts) in cx.concat(own.into_iter().enumerate().collect())? {
            all[seed].iter_mut().zip(counts).for_each(|(sum, count)| *sum += count);
        }
        Ok(all)
    }
}

/// The links that lead to own pages.
struct TurnedLinks {
    links: KeptRecords<PageLink>,
    /// By own number: the links that lead to the page, and those of them from other hosts.
    counts: Vec<u32>,
    from_others: Vec<u32>,
}

impl TurnedLinks {
    /// Reads all links once: turned round, and as they are, in memory if they fit.
    fn read<'a>(
        cx: &mut Context,
        owned: &Ownership,
        hosts: &[u64],
        open: &'a OpenLinks<'a>,
    ) -> Result<(TurnedLinks, OutLinks<'a>)> {
        let [counts, from_others] = [(); 2].map(|()| vec![0; owned.len()]);
        let links = KeptRecords::new(cx.scratch(), cx.memory() / 2);
        let mut turned = TurnedLinks { links, counts, from_others };
        let mut source = open()?;
        let memory = cx.memory();
        let mut arrays = LinkArrays::if_fits(cx, owned.len(), source.count(), memory)?;
        loop {
            let links = source.read(LINKS_AT_ONCE)?;
            if let Some(arrays) = &mut arrays {
                arrays.extend(&links);
            }
            let mut dealer = cx.dealer();
            for link in &links {
                let (page, host) = (owned.index(link.target) as u32, hosts[link.page as usize] as u32);
                dealer.deal(owned.owner(link.target) as u64, PageLink { page, host, other: link.doc });
            }
            let is_more = !links.is_empty();
            drop(links);
            for block in all_to_all(cx, dealer)? {
                for links in block.records().chunks(SIDE_BY_SIDE) {
                    preload(links.iter().map(|link| hosts[link.page as usize]));
                    preload(links.iter().map(|link| u64::from(turned.counts[link.page as usize])));
                    preload(links.iter().map(|link| u64::from(turned.from_others[link.page as usize])));
                    for link in links {
                        let page = link.page as usize;
                        if hosts[page] > 0 {
                            turned.counts[page] += 1;
                            turned.from_others[page] += u32::from(hosts[page] as u32 != link.host);
                            turned.links.push(*link)?;
                        }
                    }
                }
            }
            if !cx.any(is_more)? {
                let links = arrays.map_or(OutLinks::Table(open), |arrays| OutLinks::Arrays(Rc::new(arrays)));
                return Ok((turned, links));
            }
        }
    }

    /// The pages to which most links lead: from other hosts, then from any, then the smallest.
    fn candidates(&self, cx: &mut Context, owned: &Ownership) -> Result<Vec<LinkSeed>> {
        let counts = self.from_others.iter().zip(&self.counts).zip(owned.docs());
        let linked = counts.filter(|((_, all), _)| **all > 0);
        let mut own: Vec<_> = linked.map(|((others, all), doc)| (Reverse(*others), Reverse(*all), doc)).collect();
        if own.len() > CANDIDATES {
            own.select_nth_unstable(CANDIDATES);
            own.truncate(CANDIDATES);
        }
        let own = own.into_iter().map(|(others, all, doc)| (others.0, all.0, doc)).collect();
        let mut all = cx.sorted(own)?;
        all.sort_rows_by_key(|(others, all, doc)| (Reverse(*others), Reverse(*all), *doc));
        all.truncate(CANDIDATES);
        let seed = |(others, all, doc): (u32, u32, DocId)| LinkSeed {
            doc,
            in_links: Some([others.into(), all.into()]),
            reached: 0,
            core: None,
            is_chosen: false,
        };
        Ok(all.into_iter().map(seed).collect())
    }
}
