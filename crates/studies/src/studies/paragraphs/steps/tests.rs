//! The steps against slow twins: pages in memory, few different paragraphs, so that all cases
//! occur.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use anyhow::Result;
use nigh_exchange::Context;

use super::*;
use crate::operators::set_join::ExactShare;
use crate::records::{DocId, mix};
use crate::structures::Ownership;

/// The URLs of each shard that is known; not all have a page.
const ROWS: [u64; 5] = [30, 0, 20, 7, 13];

/// Pages and their paragraphs.
pub(in crate::studies::paragraphs) type PagesOfParagraphs = BTreeMap<DocId, Vec<u64>>;

/// Runs `run` on some workers, each with its part of the pages; returns what each returned.
fn on_workers<T: Send + 'static>(
    workers: usize,
    pages: &PagesOfParagraphs,
    run: impl Fn(&mut Context, &ParagraphStage, &Ownership, &Arc<ParagraphsInMemory>) -> Result<T> + Send + Sync + 'static,
) -> Vec<T> {
    on_workers_of(&ROWS, workers, pages, run)
}

/// The same with other URLs.
pub(in crate::studies::paragraphs) fn on_workers_of<T: Send + 'static>(
    rows: &'static [u64],
    workers: usize,
    pages: &PagesOfParagraphs,
    run: impl Fn(&mut Context, &ParagraphStage, &Ownership, &Arc<ParagraphsInMemory>) -> Result<T> + Send + Sync + 'static,
) -> Vec<T> {
    let (pages, shared) = (pages.clone(), Arc::default());
    let folder = tempfile::tempdir().unwrap();
    let scratch = folder.path().to_owned();
    let guards = timely::execute(timely::Config::process(workers), move |worker| {
        let scratch = scratch.join(worker.index().to_string());
        let cx = &mut Context::new(worker, &Arc::default(), &shared).with(4 << 10, &scratch);
        let owned = Ownership::new(cx.index(), cx.peers(), rows);
        let mut own = ParagraphsInMemory::default();
        pages.iter().filter(|(doc, _)| owned.has(**doc)).for_each(|(doc, paragraphs)| own.push(*doc, paragraphs));
        let stage = ParagraphStage { max_pairs: 1 << 40 };
        run(cx, &stage, &owned, &Arc::new(own)).unwrap()
    });
    guards.unwrap().join().into_iter().map(|end| end.unwrap()).collect()
}

/// Components of pages that are related, by their smallest page; of all pages.
fn components(pages: &PagesOfParagraphs, related: impl Fn(&[u64], &[u64]) -> bool) -> BTreeMap<DocId, DocId> {
    let mut roots: BTreeMap<DocId, DocId> = pages.keys().map(|doc| (*doc, *doc)).collect();
    for (a, of_a) in pages {
        for (b, of_b) in pages.range(..a) {
            if related(of_a, of_b) && roots[a] != roots[b] {
                let (low, high) = (roots[a].min(roots[b]), roots[a].max(roots[b]));
                roots.values_mut().filter(|root| **root == high).for_each(|root| *root = low);
            }
        }
    }
    roots
}

pub(in crate::studies::paragraphs) fn set(paragraphs: &[u64]) -> BTreeSet<u64> {
    paragraphs.iter().copied().collect()
}

/// The study's test for duplicates.
fn are_duplicates(a: &[u64], b: &[u64]) -> bool {
    let (of_a, of_b) = (set(a), set(b));
    a.len() == b.len() && (of_a.is_subset(&of_b) || of_b.is_subset(&of_a))
}

/// Some pages with few different paragraphs: many are equal, and many repeat one.
fn random_pages(seed: u64) -> PagesOfParagraphs {
    let number = |place: u64, below: u64| mix(mix(seed) ^ place) % below;
    let docs = Ownership::new(0, 1, &ROWS).docs().collect::<Vec<_>>();
    let (kinds, lengths) = (2 + number(1, 6), 1 + number(2, 6));
    let mut pages = PagesOfParagraphs::new();
    for (at, doc) in docs.into_iter().enumerate() {
        let place = 100 * (at as u64 + 1);
        if number(place, 3) > 0 {
            let length = 1 + number(place + 1, lengths);
            let paragraph = |at| mix(number(place + 2 + at, kinds) * number(place + 50 + at, 3).min(1) + 1000);
            pages.insert(doc, (0..length).map(paragraph).collect());
        }
    }
    pages
}

/// What each step of the study's algorithm finds: pages, clusters and duplicates so far.
fn steps(pages: &PagesOfParagraphs, parts: u32) -> Vec<(u64, i64, u64)> {
    let part = |doc: &DocId| PageParts::Hash(parts).of(*doc, 0);
    let mut found: BTreeMap<DocId, DocId> = pages.keys().map(|doc| (*doc, *doc)).collect();
    (0..parts)
        .map(|step| {
            // The paragraphs of one part are held, and all pages are probed.
            for (held, of_held) in pages.iter().filter(|(doc, _)| part(doc) == step) {
                for (probed, of_probed) in pages {
                    if probed != held && are_duplicates(of_held, of_probed) && found[held] != found[probed] {
                        let (low, high) = (found[held].min(found[probed]), found[held].max(found[probed]));
                        found.values_mut().filter(|root| **root == high).for_each(|root| *root = low);
                    }
                }
            }
            let mut sizes: BTreeMap<DocId, u64> = BTreeMap::new();
            found.values().for_each(|root| *sizes.entry(*root).or_default() += 1);
            let clusters = sizes.values().filter(|size| **size > 1);
            let documents = pages.keys().filter(|doc| part(doc) <= step).count() as u64;
            (documents, clusters.clone().count() as i64, clusters.map(|size| size - 1).sum())
        })
        .collect()
}

#[test]
fn duplicates_and_their_growth_are_those_of_the_literal_algorithm() {
    let mut with_false_matches = 0;
    for seed in 0..60 {
        let (pages, parts) = (random_pages(seed), 1 + (seed % 9) as u32);
        let (twin, twin_steps) = (components(&pages, are_duplicates), steps(&pages, parts));
        let equal = |a: &[u64], b: &[u64]| set(a) == set(b);
        let centres = components(&pages, equal);
        let exact = |a: &[u64], b: &[u64]| equal(a, b) || !are_duplicates(a, b);
        let false_pairs = pages
            .iter()
            .flat_map(|(a, of_a)| pages.range(..a).map(move |(_, of_b)| (of_a, of_b)))
            .filter(|(a, b)| !exact(a, b))
            .count() as u64;
        with_false_matches += u64::from(false_pairs > 0);
        for workers in [1, 2, 4] {
            let found = on_workers(workers, &pages, move |cx, _, owned, source| {
                let found = duplicates(cx, owned, source, &PageParts::Hash(parts))?;
                let docs: Vec<DocId> = owned.docs().collect();
                Ok((docs, found))
            });
            for (docs, found) in &found {
                for (page, doc) in docs.iter().enumerate() {
                    let of = |twin: &BTreeMap<DocId, DocId>| twin.get(doc).copied().unwrap_or(DocId::NONE);
                    assert_eq!(found.roots[page], of(&twin), "seed {seed}, {workers} workers, {doc}");
                    let copy = found.copies.iter().find(|copy| copy.doc == *doc).map(|copy| copy.root);
                    let centre = of(&centres);
                    assert_eq!(copy, (centre != *doc && centre != DocId::NONE).then_some(centre), "seed {seed}, {doc}");
                    assert_eq!(found.paragraphs[page] as usize, pages.get(doc).map_or(0, Vec::len));
                }
                assert_eq!(found.false_matches.iter().map(FalseMatch::pairs).sum::<u64>(), false_pairs);
                let mut sum = (0, 0, 0);
                let steps = found.growth.steps.iter().map(|step| {
                    sum = (sum.0 + step.documents, sum.1 + step.clusters, sum.2 + step.duplicates);
                    sum
                });
                assert_eq!(steps.collect::<Vec<_>>(), twin_steps, "seed {seed}, {workers} workers");
                let all: u64 = found.growth.found.iter().map(|((_, size), clusters)| (size - 1) * clusters).sum();
                assert_eq!(all, twin_steps.last().map_or(0, |step| step.2));
            }
        }
    }
    assert!(with_false_matches > 10, "{with_false_matches}");
}

#[test]
fn the_example_of_the_study() {
    // Fig. 1: 20 documents of four paragraphs. Document 2 is searched for: 19 is a duplicate; 3
    // repeats a paragraph, and is a false match.
    let doc = |number: u64| DocId::new(0, number);
    let mut pages: PagesOfParagraphs =
        (1..=20).map(|number| (doc(number), (0..4).map(|at| mix(100 * number + at)).collect())).collect();
    let [a, b, c, d] = [1, 2, 3, 4].map(mix);
    pages.insert(doc(2), vec![a, b, c, d]);
    pages.insert(doc(19), vec![a, b, c, d]);
    pages.insert(doc(3), vec![a, c, c, d]);
    // Two of the four are not enough.
    pages.insert(doc(7), vec![a, mix(99), c, mix(98)]);
    let found = on_workers(2, &pages, |cx, _, owned, source| {
        let found = duplicates(cx, owned, source, &PageParts::Hash(15))?;
        let pages = owned.docs().zip(found.roots).filter(|(doc, root)| *root != DocId::NONE && doc != root);
        let matches = found.false_matches.iter().map(|of| of.classes).collect::<Vec<_>>();
        Ok((pages.collect::<Vec<_>>(), matches, found.growth.steps.iter().map(|step| step.duplicates).sum::<u64>()))
    });
    let clustered: Vec<(DocId, DocId)> = found.iter().flat_map(|found| found.0.clone()).collect();
    assert_eq!(clustered, [(doc(3), doc(2)), (doc(19), doc(2))]);
    assert!(found.iter().all(|(_, matches, duplicates)| *matches == [[doc(3), doc(2)]] && *duplicates == 2));
}

#[test]
fn near_duplicates_are_those_of_all_pairs() {
    let thresholds = [0.9, 0.7, 0.5, 0.3];
    let mut clustered = [0; 4];
    for seed in 0..60 {
        let pages = random_pages(seed);
        let twins = thresholds.map(|least| {
            components(&pages, |a, b| {
                let (of_a, of_b) = (set(a), set(b));
                let shared = of_a.intersection(&of_b).count() as f64;
                are_duplicates(a, b) || 2.0 * shared >= least * (of_a.len() + of_b.len()) as f64 - 1e-9
            })
        });
        for (count, twin) in clustered.iter_mut().zip(&twins) {
            *count += twin.iter().filter(|(doc, root)| doc != root).count();
        }
        for workers in [1, 2, 4] {
            let found = on_workers(workers, &pages, move |cx, stage, owned, source| {
                let found = duplicates(cx, owned, source, &PageParts::Hash(3))?;
                let shares = thresholds.map(|share| ExactShare::new(share).unwrap());
                let near = near_duplicates(cx, stage, owned, source, &found, &shares)?;
                Ok((owned.docs().collect::<Vec<_>>(), near))
            });
            for (docs, near) in &found {
                for ((twin, roots), least) in twins.iter().zip(near).zip(thresholds) {
                    let wanted = docs.iter().map(|doc| twin.get(doc).copied().unwrap_or(DocId::NONE));
                    assert!(wanted.eq(roots.iter().copied()), "seed {seed}, {workers} workers, {least}");
                }
            }
        }
    }
    assert!(clustered.is_sorted() && clustered[0] < clustered[3], "{clustered:?}");
}

#[test]
fn repeated_paragraphs_are_those_of_a_map() {
    for seed in 0..20 {
        let (pages, least) = (random_pages(seed), 2 + seed % 4);
        let host = |doc: DocId| 1 + mix(doc.to_table() as u64) % 5;
        let mut twin: BTreeMap<u64, Vec<DocId>> = BTreeMap::new();
        for (doc, paragraphs) in &pages {
            set(paragraphs).into_iter().for_each(|paragraph| twin.entry(paragraph).or_default().push(*doc));
        }
        twin.retain(|_, docs| docs.len() as u64 >= least);
        let wanted: BTreeSet<RepeatedParagraph> = twin
            .iter()
            .map(|(paragraph, docs)| {
                let mut hosts: BTreeMap<u64, Vec<DocId>> = BTreeMap::new();
                docs.iter().for_each(|doc| hosts.entry(host(*doc)).or_default().push(*doc));
                let most = hosts.values().map(Vec::len).max().unwrap();
                let doc = hosts.values().filter(|docs| docs.len() == most).map(|docs| docs[0]).min().unwrap();
                let place = pages[&doc].iter().position(|other| other == paragraph).unwrap() as u32;
                let (documents, hosts) = (docs.len() as u64, hosts.len() as u64);
                RepeatedParagraph { doc, place, paragraph: *paragraph, documents, hosts, on_host: most as u64 }
            })
            .collect();
        for workers in [1, 2, 4] {
            let found = on_workers(workers, &pages, move |cx, _, owned, source| {
                let hosts: Vec<u64> = owned.docs().map(host).collect();
                let found = boilerplate(cx, owned, source, &hosts, (300, least))?;
                Ok((owned.docs().zip(found.of_pages).collect::<Vec<_>>(), found.paragraphs))
            });
            assert!(found.iter().all(|(_, paragraphs)| paragraphs.is_sorted()));
            let paragraphs: Vec<RepeatedParagraph> = found.iter().flat_map(|(_, of)| of.iter().copied()).collect();
            assert_eq!(paragraphs.len(), wanted.len(), "seed {seed}, {workers} workers");
            assert_eq!(paragraphs.into_iter().collect::<BTreeSet<_>>(), wanted, "seed {seed}, {workers} workers");
            for (doc, count) in found.iter().flat_map(|(pages, _)| pages) {
                assert_eq!(*count as usize, twin.values().filter(|docs| docs.contains(doc)).count());
            }
        }
    }
}
