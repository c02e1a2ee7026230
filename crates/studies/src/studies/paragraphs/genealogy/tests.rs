//! Genealogy against slow twins, over some weeks of pages in memory.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::holders::MOST_HOLDERS;
use super::page_changes::TwoWeeks;
use super::*;
use crate::records::{DocId, mix};
use crate::structures::Ownership;
use crate::studies::paragraphs::steps::ParagraphsInMemory;
use crate::studies::paragraphs::steps::tests::{PagesOfParagraphs, on_workers_of, set};
use crate::tables::Writer;
use crate::tables::studies::genealogy::LifetimeRow;

/// The URLs of each shard: enough for common paragraphs.
const ROWS: [u64; 5] = [70, 0, 50, 7, 43];
const WEEKS: usize = 5;
const SHARDS: u64 = 3;

/// A week: its pages, and the hosts of all pages, short ones included.
#[derive(Clone, Default)]
struct GenealogyWeek {
    pages: PagesOfParagraphs,
    hosts: BTreeMap<DocId, u64>,
}

/// Weeks of pages that come, go, change and copy others.
fn history(seed: u64) -> Vec<GenealogyWeek> {
    let number = |place: u64, below: u64| mix(mix(seed) ^ place) % below;
    let (kinds, mut weeks) = (8 + number(1, 40), Vec::new());
    for week in 0..WEEKS as u64 {
        let mut now = GenealogyWeek::default();
        let before: Vec<(DocId, Vec<u64>)> =
            weeks.last().map_or_else(Vec::new, |week: &GenealogyWeek| week.pages.clone().into_iter().collect());
        for (at, doc) in Ownership::new(0, 1, &ROWS).docs().enumerate() {
            let place = 1000 * (week * 1000 + at as u64 + 1);
            let old = weeks.last().and_then(|week: &GenealogyWeek| week.pages.get(&doc).cloned());
            let paragraph = |at: u64| mix(7000 + number(place + 20 + at, kinds));
            let own = |count: u64| (0..count).map(paragraph).collect::<Vec<u64>>();
            let paragraphs = match (number(place, 10), old) {
                (0..=4, Some(old)) => old,
                (0..=1, None) => Vec::new(),
                (5, _) | (2, None) if !before.is_empty() => {
                    // Assembled from two pages, with some text of its own.
                    let of = |place| &before[number(place, before.len() as u64) as usize].1;
                    let mut text = [&of(place + 1)[..], &of(place + 2)[..]].concat();
                    text.extend(own(number(place + 3, 3)));
                    text
                }
                // Text of its own, or what it had two weeks before.
                (6, _) => {
                    let earlier = weeks.len().checked_sub(2).and_then(|week| weeks[week].pages.get(&doc));
                    earlier.cloned().unwrap_or_else(|| vec![mix(place)])
                }
                (7, _) => Vec::new(),
                _ => own(1 + number(place + 4, 6)),
            };
            if !paragraphs.is_empty() {
                now.pages.insert(doc, paragraphs);
            }
            // Some pages are too short for the study.
            if now.pages.contains_key(&doc) || number(place + 5, 3) == 0 {
                now.hosts.insert(doc, 1 + mix(doc.to_table() as u64) % 4);
            }
        }
        weeks.push(now);
    }
    weeks
}

/// The smallest page of a week that has each paragraph.
fn first_pages(week: &GenealogyWeek) -> BTreeMap<u64, DocId> {
    let mut first = BTreeMap::new();
    for (doc, paragraphs) in &week.pages {
        for paragraph in paragraphs {
            first.entry(*paragraph).or_insert(*doc);
        }
    }
    first
}

/// The lifetimes of paragraphs after some weeks, and what each week after the first brought.
fn lifetimes_of(weeks: &[GenealogyWeek]) -> (BTreeSet<Lifetime>, Vec<WeekTurnover>) {
    let first_of: Vec<BTreeMap<u64, DocId>> = weeks.iter().map(first_pages).collect();
    let all: BTreeSet<u64> = first_of.iter().flat_map(|of| of.keys().copied()).collect();
    let (mut lifetimes, mut turnover) = (BTreeSet::new(), vec![WeekTurnover::default(); weeks.len() - 1]);
    for paragraph in all {
        let having: Vec<(i32, DocId)> =
            (0..).zip(&first_of).filter_map(|(week, of)| Some((week, *of.get(&paragraph)?))).collect();
        let (first, last) = (having[0], having[having.len() - 1]);
        let first = (first.0 > 0).then_some(first);
        let last = ((last.0 as usize) < weeks.len() - 1).then_some(last);
        if first.is_some() || last.is_some() {
            lifetimes.insert(Lifetime { paragraph, first, last });
        }
        for week in 1..weeks.len() {
            let [before, now] = [week - 1, week].map(|week| first_of[week].contains_key(&paragraph));
            let was_there = having[0].0 < week as i32;
            turnover[week - 1].first_seen += u64::from(now && !before && !was_there);
            turnover[week - 1].returned += u64::from(now && !before && was_there);
            turnover[week - 1].left += u64::from(before && !now);
        }
    }
    (lifetimes, turnover)
}

/// The births of a week and their parents, by brute force.
fn births_of(before: &GenealogyWeek, now: &GenealogyWeek) -> (BTreeMap<DocId, (u32, u32)>, Vec<Parent>) {
    let (mut births, mut parents) = (BTreeMap::new(), Vec::new());
    // The pages of the earlier week that have each paragraph, ascending.
    let mut holders: BTreeMap<u64, Vec<DocId>> = BTreeMap::new();
    for (doc, paragraphs) in &before.pages {
        set(paragraphs).into_iter().for_each(|paragraph| holders.entry(paragraph).or_default().push(*doc));
    }
    let having = |paragraph: &u64| holders.get(paragraph).map_or(&[][..], |docs| docs);
    for (doc, paragraphs) in now.pages.iter().filter(|(doc, _)| !before.hosts.contains_key(doc)) {
        let own = set(paragraphs);
        let mut left: BTreeSet<u64> = own.iter().copied().filter(|paragraph| !having(paragraph).is_empty()).collect();
        births.insert(*doc, (own.len() as u32, left.len() as u32));
        let is_common = |paragraph: &u64| having(paragraph).len() > MOST_HOLDERS;
        let mut chosen = Vec::new();
        let mut rare: BTreeSet<u64> = left.iter().copied().filter(|paragraph| !is_common(paragraph)).collect();
        while !rare.is_empty() {
            let mut counts: BTreeMap<DocId, usize> = BTreeMap::new();
            rare.iter().flat_map(having).for_each(|older| *counts.entry(*older).or_default() += 1);
            let most = *counts.values().max().unwrap();
            let parent = *counts.iter().find(|(_, count)| **count == most).unwrap().0;
            rare.retain(|paragraph| !before.pages[&parent].contains(paragraph));
            chosen.push(parent);
        }
        let mut rank = 0;
        let mut add = |parent: DocId, left: &mut BTreeSet<u64>| {
            let of_parent = set(&before.pages[&parent]);
            let adds = left.intersection(&of_parent).count() as u32;
            left.retain(|paragraph| !of_parent.contains(paragraph));
            if adds > 0 {
                rank += 1;
                let (shared, of_parent) = (own.intersection(&of_parent).count() as u32, of_parent.len() as u32);
                let is_same_host = Some(now.hosts[doc] == before.hosts[&parent]);
                parents.push(Parent { doc: *doc, rank, parent, adds, shared, of_parent, is_same_host });
            }
        };
        chosen.into_iter().for_each(|parent| add(parent, &mut left));
        let mut smallest: BTreeMap<DocId, usize> = BTreeMap::new();
        left.iter().for_each(|paragraph| *smallest.entry(having(paragraph)[0]).or_default() += 1);
        let mut order: Vec<(std::cmp::Reverse<usize>, DocId)> =
            smallest.into_iter().map(|(doc, count)| (std::cmp::Reverse(count), doc)).collect();
        order.sort();
        order.into_iter().for_each(|(_, parent)| add(parent, &mut left));
        assert!(left.is_empty());
    }
    (births, parents)
}

/// What one worker finds: births and parents of the last week, lifetimes, and turnover.
type GenealogyRows = (Vec<Birth>, Vec<Parent>, Vec<(u32, Lifetime)>, Vec<WeekTurnover>);

/// Runs all steps over some weeks; the lifetimes go on from those of a former run, which are given
/// by shard.
fn run(
    workers: usize,
    memory: u64,
    weeks: &[GenealogyWeek],
    from: usize,
    former: &[Vec<Lifetime>],
) -> Vec<GenealogyRows> {
    let (weeks, former) = (weeks.to_vec(), former.to_vec());
    on_workers_of(&ROWS, workers, &PagesOfParagraphs::new(), move |cx, _, owned, _| {
        let cx = &mut cx.with(memory, cx.scratch());
        let sources: Vec<Arc<ParagraphsInMemory>> = weeks
            .iter()
            .map(|week| {
                let mut own = ParagraphsInMemory::default();
                let pages = week.pages.iter().filter(|(doc, _)| owned.has(**doc));
                pages.for_each(|(doc, paragraphs)| own.push(*doc, paragraphs));
                Arc::new(own)
            })
            .collect();
        let hosts = |week: &GenealogyWeek| -> Vec<u64> {
            owned.docs().map(|doc| week.hosts.get(&doc).copied().unwrap_or(0)).collect()
        };
        let mut lifetimes = Lifetimes::new(&cx.scratch().join("events"), SHARDS, 500);
        let mut last = (Vec::new(), Vec::new());
        for week in from + 1..weeks.len() {
            let [before, now] = [week - 1, week].map(|week| sets_of_pages(owned, &sources[week]).unwrap());
            let of_hosts = [week - 1, week].map(|week| hosts(&weeks[week]));
            let two = TwoWeeks { sets: [&before, &now], hosts: Some([&of_hosts[0], &of_hosts[1]]) };
            let sources = [&sources[week - 1], &sources[week]];
            let found = held_paragraphs(cx, owned, sources, two)?;
            lifetimes.add(cx, [week as i32 - 1, week as i32], &found.events)?;
            last = births(cx, owned, sources, two, found.held)?;
        }
        let folder = tempfile::tempdir()?;
        let mut files = Vec::new();
        for (shard, of_shard) in (0..).zip(&former).skip(cx.index()).step_by(cx.peers()) {
            let path = folder.path().join(format!("{shard}.parquet"));
            let mut writer: Writer<LifetimeRow> = Writer::create(&path)?;
            of_shard.iter().try_for_each(|lifetime| writer.push(LifetimeRow::from(*lifetime)))?;
            writer.finish()?;
            files.push((shard, path.into()));
        }
        let mut all = Vec::new();
        let counts = lifetimes.finish(LifetimeReader::of(files), |shard, lifetime| {
            all.push((shard, lifetime));
            Ok(())
        })?;
        assert_eq!(counts.rows, all.len() as u64);
        Ok((last.0, last.1, all, counts.turnover))
    })
}

#[test]
fn births_parents_and_lifetimes_are_those_of_brute_force() {
    let (mut assembled, mut returned) = (0, 0);
    for seed in 0..12 {
        let weeks = history(seed);
        let (lifetimes, turnover) = lifetimes_of(&weeks);
        let (twin, parents) = births_of(&weeks[WEEKS - 2], &weeks[WEEKS - 1]);
        assembled += parents.iter().filter(|of| of.rank == 2).count();
        returned += turnover.iter().map(|of| of.returned).sum::<u64>();
        // With little memory the paragraphs of all pages are exchanged.
        for (workers, memory) in [(1, 1 << 20), (2, 1 << 20), (4, 1 << 20), (1, 64), (3, 64)] {
            let found = run(workers, memory, &weeks, 0, &[]);
            let births: Vec<Birth> = found.iter().flat_map(|found| found.0.iter().copied()).collect();
            assert_eq!(births.len(), twin.len(), "seed {seed}, {workers} workers");
            for birth in births {
                assert_eq!((birth.paragraphs, birth.inherited), twin[&birth.doc], "seed {seed}, {}", birth.doc);
                assert_eq!(birth.parents as usize, parents.iter().filter(|of| of.doc == birth.doc).count());
            }
            let mut of_all: Vec<Parent> = found.iter().flat_map(|found| found.1.iter().copied()).collect();
            of_all.sort_unstable();
            assert_eq!(of_all, parents, "seed {seed}, {workers} workers, {memory} bytes");
            assert_lifetimes(&found, &lifetimes, &turnover);
        }
    }
    assert!(assembled > 40 && returned > 10, "{assembled}, {returned}");
}

fn assert_lifetimes(found: &[GenealogyRows], lifetimes: &BTreeSet<Lifetime>, turnover: &[WeekTurnover]) {
    let all: Vec<Lifetime> = found.iter().flat_map(|found| found.2.iter().map(|(_, lifetime)| *lifetime)).collect();
    assert_eq!(all.len(), lifetimes.len());
    assert_eq!(all.into_iter().collect::<BTreeSet<_>>(), *lifetimes);
    assert!(found.iter().all(|found| found.2.is_sorted_by_key(|(shard, lifetime)| (*shard, lifetime.paragraph))));
    let sum = |of: fn(&WeekTurnover) -> u64, week: usize| found.iter().map(|found| of(&found.3[week])).sum::<u64>();
    for (week, wanted) in turnover.iter().enumerate() {
        let of = WeekTurnover {
            first_seen: sum(|of| of.first_seen, week),
            returned: sum(|of| of.returned, week),
            left: sum(|of| of.left, week),
        };
        assert_eq!(of, *wanted, "week {week}");
    }
}

#[test]
fn a_copy_has_one_parent_though_many_pages_have_its_header() {
    let docs: Vec<DocId> = Ownership::new(0, 1, &ROWS).docs().collect();
    let [header, footer] = [1, 2].map(mix);
    let page = |number: usize| vec![header, mix(1000 + number as u64), mix(2000 + number as u64), footer];
    let (mut before, mut now) = (GenealogyWeek::default(), GenealogyWeek::default());
    for (number, doc) in docs.iter().enumerate().take(150) {
        before.pages.insert(*doc, page(number));
        before.hosts.insert(*doc, 7);
    }
    now.clone_from(&before);
    // A copy; one with the header alone; text of two pages; and of one page, with a paragraph of
    // its own.
    let news = [page(120), vec![header], [page(3), page(99)].concat(), [page(120), vec![mix(9)]].concat()];
    for (doc, paragraphs) in docs[150..].iter().zip(news) {
        now.pages.insert(*doc, paragraphs);
        now.hosts.insert(*doc, 7);
    }
    for workers in [1, 3] {
        let found = run(workers, 1 << 20, &[before.clone(), now.clone()], 0, &[]);
        let parents: BTreeMap<DocId, Vec<(DocId, u32)>> =
            found.iter().flat_map(|found| &found.1).fold(BTreeMap::new(), |mut all, of| {
                all.entry(of.doc).or_insert_with(Vec::new).push((of.parent, of.adds));
                all
            });
        assert_eq!(parents[&docs[150]], [(docs[120], 4)]);
        assert_eq!(parents[&docs[151]], [(docs[0], 1)]);
        assert_eq!(parents[&docs[152]], [(docs[3], 4), (docs[99], 2)]);
        assert_eq!(parents[&docs[153]], [(docs[120], 4)]);
        let births: BTreeMap<DocId, Birth> = found.iter().flat_map(|found| &found.0).map(|of| (of.doc, *of)).collect();
        let counts = |doc: &DocId| (births[doc].paragraphs, births[doc].inherited, births[doc].parents);
        assert_eq!(docs[150..154].iter().map(counts).collect::<Vec<_>>(), [(4, 4, 1), (1, 1, 1), (6, 6, 2), (5, 4, 1)]);
    }
}

#[test]
fn lifetimes_go_on_from_those_of_a_former_week() {
    for seed in 100..106 {
        let weeks = history(seed);
        for then in 1..WEEKS {
            let mut former: Vec<Vec<Lifetime>> = vec![Vec::new(); SHARDS as usize];
            for (shard, lifetime) in run(2, 1 << 20, &weeks[..=then], 0, &[]).into_iter().flat_map(|found| found.2) {
                former[shard as usize].push(lifetime);
            }
            let (lifetimes, turnover) = lifetimes_of(&weeks);
            for workers in [1, 3] {
                let found = run(workers, 1 << 20, &weeks, then, &former);
                assert_lifetimes(&found, &lifetimes, &turnover[then..]);
            }
        }
    }
}
