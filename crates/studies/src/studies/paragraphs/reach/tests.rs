//! What links lead to, on made bow-ties, in memory and by passes over the links.

use std::collections::{BTreeMap, BTreeSet};

use anyhow::Result;

use super::*;
use crate::operators::scan::{LinkSource, OwnLink};
use crate::records::{DocId, mix};
use crate::structures::Ownership;
use crate::studies::paragraphs::steps::tests::{PagesOfParagraphs, on_workers_of};

/// The URLs of each shard that is known; not all have a page.
const ROWS: [u64; 5] = [30, 0, 20, 7, 13];

/// Links of own pages in memory.
struct LinkList(Vec<OwnLink>);

impl LinkSource for LinkList {
    fn count(&self) -> u64 {
        self.0.len() as u64
    }

    fn read(&mut self, count: usize) -> Result<Vec<OwnLink>> {
        let rest = self.0.split_off(count.min(self.0.len()));
        Ok(std::mem::replace(&mut self.0, rest))
    }
}

/// A web: pages, their hosts, and their links.
struct LinkedWeb {
    hosts: BTreeMap<DocId, u64>,
    links: BTreeSet<(DocId, DocId)>,
}

impl LinkedWeb {
    /// The pages that links lead to from some pages.
    fn reached(&self, seeds: &[DocId], is_forward: bool) -> BTreeSet<DocId> {
        let mut reached: BTreeSet<DocId> = seeds.iter().copied().filter(|doc| self.hosts.contains_key(doc)).collect();
        loop {
            let before = reached.len();
            for (from, to) in self.links.iter().map(|(a, b)| if is_forward { (a, b) } else { (b, a) }) {
                if reached.contains(from) && self.hosts.contains_key(to) {
                    reached.insert(*to);
                }
            }
            if reached.len() == before {
                return reached;
            }
        }
    }

    /// What `connected` finds on some workers with some bytes of memory: the pages, and the seeds.
    fn connected(&self, workers: usize, memory: u64, seeds: &[DocId]) -> (BTreeSet<DocId>, Vec<LinkSeed>) {
        let (hosts, links, seeds) = (self.hosts.clone(), self.links.clone(), seeds.to_vec());
        let found = on_workers_of(&ROWS, workers, &PagesOfParagraphs::new(), move |cx, _, owned, _| {
            let of_pages: Vec<u64> = owned.docs().map(|doc| hosts.get(&doc).copied().unwrap_or(0)).collect();
            let own = links.iter().filter(|(from, _)| owned.has(*from));
            let own: Vec<OwnLink> = own
                .map(|(doc, target)| OwnLink { page: owned.index(*doc) as u32, doc: *doc, target: *target })
                .collect();
            let open: &OpenLinks<'_> = &|| Ok(Box::new(LinkList(own.clone())));
            let cx = &mut cx.with(memory, cx.scratch());
            let found = connected(cx, owned, &of_pages, open, &seeds)?;
            let pages: Vec<DocId> = owned.docs().zip(&found.pages).filter(|(_, is)| **is).map(|(doc, _)| doc).collect();
            Ok((pages, found.seeds))
        });
        assert!(found.iter().all(|(_, seeds)| *seeds == found[0].1));
        (found.iter().flat_map(|(pages, _)| pages.iter().copied()).collect(), found[0].1.clone())
    }
}

/// A bow-tie: pages of IN, CORE, OUT and others, and links. Half of the core's pages are on one
/// host.
fn bow_tie(seed: u64) -> (LinkedWeb, [BTreeSet<DocId>; 4]) {
    let number = |place: u64, below: u64| mix(mix(seed) ^ place) % below;
    let (mut web, mut parts) =
        (LinkedWeb { hosts: BTreeMap::new(), links: BTreeSet::new() }, [(); 4].map(|()| Vec::new()));
    for (at, doc) in Ownership::new(0, 1, &ROWS).docs().enumerate() {
        let place = 10 * at as u64 + 1;
        // One in nine URLs has no page.
        if number(place, 9) > 0 {
            web.hosts.insert(doc, 1 + number(place + 1, 7));
            parts[number(place + 2, 4) as usize].push(doc);
        }
    }
    let [inner, core, outer, other] = &parts;
    let mut link = |from: &DocId, to: &DocId| web.links.insert((*from, *to));
    for (at, doc) in core.iter().enumerate() {
        link(doc, &core[(at + 1) % core.len()]);
    }
    for (at, doc) in inner.iter().enumerate() {
        // Chains that end in the core.
        link(doc, if at % 3 == 0 { &core[at % core.len()] } else { &inner[at - 1] });
    }
    for (at, doc) in outer.iter().enumerate() {
        link(if at % 3 == 0 { &core[at % core.len()] } else { &outer[at - 1] }, doc);
    }
    // Others: tendrils into OUT, and an island with a ring of its own.
    for (at, doc) in other.iter().enumerate() {
        if at % 2 == 0 {
            link(doc, &outer[at % outer.len()]);
        } else {
            link(doc, &other[(at + 2) % other.len()]);
        }
    }
    (web, parts.map(|part| part.into_iter().collect()))
}

#[test]
fn the_core_of_a_bow_tie_is_found_and_what_it_leads_to() {
    for seed in 0..12 {
        let (web, [inner, core, outer, other]) = bow_tie(seed);
        let wanted: BTreeSet<DocId> = core.union(&outer).copied().collect();
        for (workers, memory) in [(1, 1 << 20), (2, 1 << 20), (4, 1 << 20), (1, 100), (2, 100), (4, 100)] {
            let (pages, seeds) = web.connected(workers, memory, &[]);
            let found = seeds.iter().find(|seed| seed.is_chosen).unwrap();
            assert!(core.contains(&found.doc), "seed {seed}, {workers} workers, {memory} bytes");
            assert_eq!((found.core, found.reached), (Some(core.len() as u64), wanted.len() as u64));
            assert_eq!(pages, wanted, "seed {seed}, {workers} workers, {memory} bytes");
            assert!(pages.is_disjoint(&inner) && pages.is_disjoint(&other));
            for seed in &seeds {
                let links = || web.links.iter().filter(|(from, to)| *to == seed.doc && web.hosts.contains_key(from));
                let of_others = links().filter(|(from, to)| web.hosts[from] != web.hosts[to]).count() as u64;
                assert_eq!(seed.in_links, Some([of_others, links().count() as u64]));
                let [forward, backward] = [true, false].map(|is_forward| web.reached(&[seed.doc], is_forward));
                assert_eq!(seed.reached, forward.len() as u64);
                assert_eq!(seed.core, Some(forward.intersection(&backward).count() as u64));
            }
            // From given pages: from IN more is reached, from OUT less.
            let given = [*inner.first().unwrap(), *outer.last().unwrap()];
            let (pages, seeds) = web.connected(workers, memory, &given);
            assert_eq!(pages, web.reached(&given, true));
            assert!(seeds.iter().all(|seed| seed.reached == pages.len() as u64 && seed.core.is_none()));
        }
    }
}

#[test]
fn a_web_without_links_has_no_core() {
    let (mut web, _) = bow_tie(0);
    web.links.clear();
    for workers in [1, 3] {
        assert_eq!(web.connected(workers, 1 << 20, &[]), (BTreeSet::new(), Vec::new()));
        let (given, _) = (*web.hosts.keys().next().unwrap(), ());
        assert_eq!(web.connected(workers, 1 << 20, &[given]).0, BTreeSet::from([given]));
    }
}
