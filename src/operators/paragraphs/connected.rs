//! The connected part of a web: the pages that links lead to from its core, and the rest (Pereira 2006, section 4.3).
//!
//! The core is the largest strongly connected component in which one of the 20 pages lies that most links of other hosts lead to: those that
//! its page leads to, and that lead to its page. Or the seeds are given.
//!
//! ```text
//! links, turned round ─▶ owner of the target: links from other hosts, from any          16 bytes a link
//! the 20 pages with most of them ─▶ forward and backward closure, a bit for each page
//! ```
//!
//! Whether two pages are on one host is decided by 32 bits of a hash.

use std::cmp::Reverse;
use std::rc::Rc;

use anyhow::Result;
use timely::worker::Worker;

use super::closure::closure;
use super::marks::Marks;
use super::out_links::{OpenLinks, OutLinks, PageLink};
use super::stage::ParagraphStage;
use crate::operators::exchange::{Dealer, Kept, all_gather, all_to_all, any};
use crate::records::DocId;
use crate::structures::Ownership;

/// The pages of which one is taken for a page of the core.
const CANDIDATES: usize = 20;
/// Links that are exchanged at once.
const LINKS_AT_ONCE: usize = 1 << 19;

/// A page from which links are followed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Seed {
    /// The page.
    pub doc: DocId,
    /// Links that lead to it: from pages of other hosts, and from all pages; `None` if the seed was given.
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
    /// The given seeds; or the candidates for a page of the core, by their links. The same at every worker.
    pub seeds: Vec<Seed>,
}

/// Finds what links lead to from `seeds`, which are the same at every worker; without seeds, from the core that is found. `hosts` has a hash
/// of the host of each own page, 0 for numbers without a page.
///
/// # Errors
/// If links cannot be read or kept, or a worker of this process failed.
pub fn connected<'a>(
    worker: &mut Worker,
    stage: &ParagraphStage,
    owned: &Ownership,
    hosts: &[u64],
    open: &'a OpenLinks<'a>,
    seeds: &[DocId],
) -> Result<Connected> {
    let hosts = Rc::new(hosts.to_vec());
    let (watch, pages, memory) = (&stage.watch, owned.len(), stage.memory);
    if !seeds.is_empty() {
        let links = OutLinks::of_table(worker, open, pages, memory, watch)?;
        let marked: Vec<(DocId, u32)> = seeds.iter().map(|doc| (*doc, 0)).collect();
        let marks = closure(worker, owned, &hosts, links, &marked, watch)?;
        let reached: Vec<bool> = (0..pages).map(|page| marks.of(page) > 0).collect();
        let own = vec![(worker.index(), reached.iter().filter(|page| **page).count() as u64)];
        let all = all_gather(worker, own, watch)?.iter().map(|(_, pages)| pages).sum();
        let seed = |doc: &DocId| Seed { doc: *doc, in_links: None, reached: all, core: None, is_chosen: true };
        return Ok(Connected { pages: reached, seeds: seeds.iter().map(seed).collect() });
    }
    let turned = TurnedLinks::read(worker, stage, owned, &hosts, open)?;
    let candidates = turned.candidates(worker, stage, owned)?;
    if candidates.is_empty() {
        return Ok(Connected { pages: vec![false; pages], seeds: Vec::new() });
    }
    let marked: Vec<(DocId, u32)> = candidates.iter().map(|seed| seed.doc).zip(0..).collect();
    let links = OutLinks::of_table(worker, open, pages, memory, watch)?;
    let forward = closure(worker, owned, &hosts, links, &marked, watch)?;
    let links = OutLinks::of_kept(worker, turned.links, turned.counts, memory, watch)?;
    let backward = closure(worker, owned, &hosts, links, &marked, watch)?;
    let (seeds, chosen) = chosen(worker, stage, candidates, pages, &forward, &backward)?;
    Ok(Connected { pages: (0..pages).map(|page| forward.of(page) >> chosen & 1 > 0).collect(), seeds })
}

/// The links that lead to own pages.
struct TurnedLinks {
    links: Kept<PageLink>,
    /// By own number: the links that lead to the page, and those of them from other hosts.
    counts: Vec<u32>,
    from_others: Vec<u32>,
}

impl TurnedLinks {
    fn read(
        worker: &mut Worker,
        stage: &ParagraphStage,
        owned: &Ownership,
        hosts: &[u64],
        open: &OpenLinks<'_>,
    ) -> Result<TurnedLinks> {
        let [counts, from_others] = [(); 2].map(|()| vec![0; owned.len()]);
        let links = Kept::new(&stage.scratch, stage.memory / 2);
        let mut turned = TurnedLinks { links, counts, from_others };
        let mut source = open()?;
        loop {
            let links = source.read(LINKS_AT_ONCE)?;
            let mut dealer = Dealer::new(worker.index(), worker.peers(), &stage.watch);
            for link in &links {
                let (page, host) = (owned.index(link.target) as u32, hosts[link.page as usize] as u32);
                dealer.deal(owned.owner(link.target) as u64, PageLink { page, host, other: link.doc });
            }
            for link in all_to_all(worker, dealer, &stage.watch)?.iter().flat_map(|block| block.records()) {
                let page = link.page as usize;
                if hosts[page] > 0 {
                    turned.counts[page] += 1;
                    turned.from_others[page] += u32::from(hosts[page] as u32 != link.host);
                    turned.links.push(*link)?;
                }
            }
            if !any(worker, !links.is_empty(), &stage.watch)? {
                return Ok(turned);
            }
        }
    }

    /// The pages to which most links lead: from other hosts, then from any, then the smallest.
    fn candidates(&self, worker: &mut Worker, stage: &ParagraphStage, owned: &Ownership) -> Result<Vec<Seed>> {
        let counts = self.from_others.iter().zip(&self.counts).zip(owned.docs());
        let linked = counts.filter(|((_, all), _)| **all > 0);
        let mut own: Vec<_> = linked.map(|((others, all), doc)| (Reverse(*others), Reverse(*all), doc)).collect();
        if own.len() > CANDIDATES {
            own.select_nth_unstable(CANDIDATES);
            own.truncate(CANDIDATES);
        }
        let own = own.into_iter().map(|(others, all, doc)| (others.0, all.0, doc)).collect();
        let mut all = all_gather(worker, own, &stage.watch)?;
        all.sort_unstable_by_key(|(others, all, doc)| (Reverse(*others), Reverse(*all), *doc));
        all.truncate(CANDIDATES);
        let seed = |(others, all, doc): (u32, u32, DocId)| Seed {
            doc,
            in_links: Some([others.into(), all.into()]),
            reached: 0,
            core: None,
            is_chosen: false,
        };
        Ok(all.into_iter().map(seed).collect())
    }
}

/// The candidates with what they reach and their components; and the number of the one with the largest component, the first of several.
fn chosen(
    worker: &mut Worker,
    stage: &ParagraphStage,
    mut candidates: Vec<Seed>,
    pages: usize,
    forward: &Marks,
    backward: &Marks,
) -> Result<(Vec<Seed>, usize)> {
    let mut own = vec![[0u64; 2]; candidates.len()];
    for page in 0..pages {
        let (forward, backward) = (forward.of(page), backward.of(page));
        for (seed, counts) in own.iter_mut().enumerate().filter(|(seed, _)| forward >> seed & 1 > 0) {
            counts[0] += 1;
            counts[1] += u64::from(backward >> seed & 1);
        }
    }
    let index = worker.index();
    let own = own.into_iter().enumerate().map(|(seed, counts)| (seed, index, counts)).collect();
    for (seed, _, [reached, core]) in all_gather(worker, own, &stage.watch)? {
        candidates[seed].reached += reached;
        candidates[seed].core = Some(candidates[seed].core.unwrap_or(0) + core);
    }
    let largest = candidates.iter().zip(0..).max_by_key(|(seed, number)| (seed.core, Reverse(*number)));
    let chosen = largest.map_or(0, |(_, number)| number);
    candidates[chosen].is_chosen = true;
    Ok((candidates, chosen))
}
