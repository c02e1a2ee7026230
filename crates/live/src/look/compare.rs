//! Why two pages of a week are in one cluster, or not.

use std::cmp::Reverse;
use std::collections::{BTreeMap, HashSet};
use std::ops::Range;

use anyhow::Result;
use serde::Serialize;

use super::chain::{Values, chain_over};
use super::lists::evidence;
use super::passages::differing;
use super::sketches::{SketchComparison, Sketches};
use super::week::{LookedPage, LookedWeek, page_of};
use crate::config::{Method, Reading, Verify};
use crate::features::{Fingerprinter, WordsAndShingles};
use crate::operators::ingest::{page_shingles, page_words};
use crate::readers::{self, Input, Item, Page, Reader};
use crate::records::{DocId, Level, checksum};
use crate::structures::CompactSort as _;

/// What two pages have in common.
#[derive(Clone, Debug, Serialize)]
pub struct Comparison {
    /// The two pages.
    pub pages: [LookedPage; 2],
    /// Whether they are in one cluster, by level.
    pub together: [(Level, bool); 3],
    /// What their sketches have in common; none if a page has no words.
    pub sketches: Option<SketchComparison>,
    /// What their texts have in common; none if the input files are not at hand, or have other
    /// pages there.
    pub texts: Option<TextComparison>,
    /// The shortest chain of pages from one to the other, if they are in one very similar cluster:
    /// each page with what it has in common with the one before.
    pub chain: Vec<ChainLink>,
}

/// What two texts have in common.
#[derive(Clone, Debug, Serialize)]
pub struct TextComparison {
    /// Shingles of both.
    pub shared: usize,
    /// Shingles of either.
    pub either: usize,
    /// The similarity: the first divided by the second.
    pub similarity: f64,
    /// The passages of each page whose words are in no shingle of the other.
    pub differing: [Vec<Passage>; 2],
}

/// Words that follow each other.
#[derive(Clone, Debug, Serialize)]
pub struct Passage {
    /// The number of the first one, from 1.
    pub word: usize,
    /// The words, with blanks between them.
    pub text: String,
    /// Some words before it.
    pub before: String,
    /// Some words after it.
    pub after: String,
}

/// Words before and after a passage.
const CONTEXT: usize = 8;
/// Up to so many bytes to the next wanted page are read rather than left out.
const GAP: u64 = 128 << 10;

/// A page of a chain.
#[derive(Clone, Debug, Serialize)]
pub struct ChainLink {
    /// The page.
    pub page: LookedPage,
    /// What it has in common with the page before; none for the first one.
    pub with_last: Option<SketchComparison>,
    /// The similarity of the two texts, of a chain over the table of evidence.
    pub exact: Option<f32>,
}

/// Compares two pages, given by their URLs or ids. `inputs` are the crawl files at hand, read by
/// `reading`.
///
/// # Errors
/// If a page is not known or the week has none, or a table or a crawl file cannot be read.
pub fn compare(week: &LookedWeek<'_>, names: [&str; 2], inputs: &[Input], reading: &Reading) -> Result<Comparison> {
    let docs = [week.find(names[0])?, week.find(names[1])?];
    let found = week.pages(docs)?;
    let page = |side: usize| page_of(&found, docs[side], names[side], week.week.week);
    let pages = [page(0)?, page(1)?];
    let level = |(number, level): (usize, Level)| {
        let [a, b] = [&pages[0], &pages[1]].map(|page| page.clusters[number].0);
        (level, a == b)
    };
    let together = [0, 1, 2].map(|number| level((number, Level::ALL[number])));
    let has_words = pages.iter().all(|page| page.words > 0);
    let sketches = if has_words { Some(sketches(week, docs)?) } else { None };
    let chain = if together[0].1 && has_words && docs[0] != docs[1] { chain(week, &pages)? } else { Vec::new() };
    let texts = texts(week, &pages, inputs, reading)?;
    Ok(Comparison { pages, together, sketches, texts, chain })
}

/// What the sketches of two documents with words have in common.
///
/// # Errors
/// If a table cannot be read.
pub fn sketches(week: &LookedWeek<'_>, docs: [DocId; 2]) -> Result<SketchComparison> {
    let [low, high] = [docs[0].min(docs[1]), docs[0].max(docs[1])];
    let ascending = if low == high { vec![low] } else { vec![low, high] };
    Ok(week.sketches(&ascending)?.compare(0, ascending.len() - 1))
}

/// A link between two documents, by their places, and what these have in common.
pub type JoiningLink = ([usize; 2], SketchComparison);

/// Links that join groups of documents of one cluster: of the pairs of two groups that the method
/// links, those with most in common, until no groups can be joined any more. `docs` ascend and have
/// words; `groups` has the group of each.
///
/// # Errors
/// If a table cannot be read.
pub fn joining_links(week: &LookedWeek<'_>, docs: &[DocId], groups: &[usize]) -> Result<Vec<JoiningLink>> {
    let (sketches, method) = (week.sketches(docs)?, &week.method);
    let is_link = |of: &SketchComparison| match method.similarity.filter(|_| method.verify != Verify::None) {
        Some(similarity) => of.features >= least_features(method, similarity.millionths()),
        None => of.agreements >= method.agreements,
    };
    let mut links: Vec<JoiningLink> = (0..docs.len())
        .flat_map(|a| (a + 1..docs.len()).map(move |b| [a, b]))
        .filter(|[a, b]| groups[*a] != groups[*b])
        .map(|[a, b]| ([a, b], sketches.compare(a, b)))
        .filter(|(_, of)| is_link(of))
        .collect();
    links.sort_items_by_key(|(places, of)| (Reverse(of.features), Reverse(of.agreements), *places));
    let mut groups = groups.to_vec();
    links.retain(|([a, b], _)| {
        let (one, other) = (groups[*a], groups[*b]);
        groups.iter_mut().filter(|group| **group == other).for_each(|group| *group = one);
        one != other
    });
    Ok(links)
}

/// The features that two pages of a similarity have in common, by estimate.
fn least_features(method: &Method, millionths: u32) -> usize {
    (u64::from(millionths) * method.features as u64).div_ceil(1_000_000) as usize
}

/// The shortest chain between two of the documents, by what links pages: agreeing supershingles, or
/// if clusters are verified a similarity, which features estimate. `None` if the estimates are too
/// low somewhere.
fn chain_of(sketches: &Sketches, method: &Method, from: usize, to: usize) -> Option<Vec<usize>> {
    let by_supershingles = Values { values: &sketches.supershingles, width: method.supershingles };
    let Some(similarity) = method.similarity.filter(|_| method.verify != Verify::None) else {
        return by_supershingles.chain(from, to, method.agreements);
    };
    let values: Vec<u64> = sketches.features.iter().map(|feature| u64::from(*feature)).collect();
    let least = least_features(method, similarity.millionths());
    let by_features = Values { values: &values, width: method.features };
    // Clusters that were verified by shingles can have estimates a little below.
    (0..=least).rev().take(1 + method.features / 8).find_map(|least| by_features.chain(from, to, least.max(1)))
}

/// The shortest chain of links between two pages of a cluster.
fn chain(week: &LookedWeek<'_>, pages: &[LookedPage; 2]) -> Result<Vec<ChainLink>> {
    let members = week.members(pages[0].clusters[0].0)?;
    // Pages without words are in no cluster with these.
    let sketches = week.sketches(&members)?;
    let place = |page: &LookedPage| members.binary_search(&page.doc).ok();
    let (Some(from), Some(to)) = (place(&pages[0]), place(&pages[1])) else { return Ok(Vec::new()) };
    // Features may be too few of pages whose texts are similar enough, or the other way round.
    let confirmed = if week.method.verify == Verify::Exact { confirmed(week, &members)? } else { BTreeMap::new() };
    let over_confirmed = chain_over(&confirmed.keys().copied().collect(), from, to);
    let Some(numbers) = over_confirmed.or_else(|| chain_of(&sketches, &week.method, from, to)) else {
        return Ok(Vec::new());
    };
    let mut with_last = vec![(None, None)];
    with_last.extend(numbers.windows(2).map(|pair| {
        let [a, b] = [pair[0].min(pair[1]), pair[0].max(pair[1])];
        (Some(sketches.compare(a, b)), confirmed.get(&[a, b]).copied())
    }));
    let docs: Vec<DocId> = numbers.iter().map(|number| members[*number]).collect();
    let found = week.pages(docs.iter().copied())?;
    let of_doc = |doc: &DocId| page_of(&found, *doc, "a page of the cluster", week.week.week);
    let pages: Vec<LookedPage> = docs.iter().map(of_doc).collect::<Result<_>>()?;
    Ok(pages
        .into_iter()
        .zip(with_last)
        .map(|(page, (with_last, exact))| ChainLink { page, with_last, exact })
        .collect())
}

/// The links between members of a cluster that were compared by their texts and found similar
/// enough, by the places of both, with their similarity: those of the table of evidence.
fn confirmed(week: &LookedWeek<'_>, members: &[DocId]) -> Result<BTreeMap<[usize; 2], f32>> {
    let least = week.method.similarity.map_or(0.0, f64::from) as f32;
    let mut links = BTreeMap::new();
    for (doc, (neighbour, of)) in evidence(week, members)? {
        let [a, b] = [doc.min(neighbour), doc.max(neighbour)].map(|doc| members.binary_search(&doc).ok());
        if let (Some(a), Some(b)) = (a, b)
            && of.found == "shingles"
            && of.similarity >= least
        {
            links.insert([a, b], of.similarity);
        }
    }
    Ok(links)
}

/// Compares the texts of two pages, if both can be read again.
pub(super) fn texts(
    week: &LookedWeek<'_>,
    pages: &[LookedPage; 2],
    inputs: &[Input],
    reading: &Reading,
) -> Result<Option<TextComparison>> {
    let words = words_of_pages(week, pages, inputs, reading)?;
    Ok(words.map(|[a, b]| compare_texts(&a, &b, week.method.words)))
}

/// The words of two pages, read again from the crawl files; `None` if one of them is not at hand,
/// or has another page there.
///
/// # Errors
/// If a table or a crawl file cannot be read.
pub fn words_of_pages(
    week: &LookedWeek<'_>,
    pages: &[LookedPage; 2],
    inputs: &[Input],
    reading: &Reading,
) -> Result<Option<[WordsAndShingles; 2]>> {
    let mut fingerprinter = Fingerprinter::of_method(&week.method)?;
    let mut read = |page: &LookedPage| -> Result<Option<WordsAndShingles>> {
        let Some(input) = inputs.iter().find(|input| input.name == page.file) else { return Ok(None) };
        let sum = week.checksum(page.doc)?;
        read_again(input, reading, page.offset, sum, &mut fingerprinter)
    };
    let (Some(a), Some(b)) = (read(&pages[0])?, read(&pages[1])?) else { return Ok(None) };
    Ok(Some([a, b]))
}

/// What two texts have in common; `width` are the words of a shingle.
pub fn compare_texts(a: &WordsAndShingles, b: &WordsAndShingles, width: usize) -> TextComparison {
    let [of_a, of_b] = [a, b].map(|text| text.shingles.iter().copied().collect::<HashSet<u64>>());
    let shared = of_a.intersection(&of_b).count();
    let either = of_a.len() + of_b.len() - shared;
    let passages = |text: &WordsAndShingles, other: &HashSet<u64>| {
        let ranges = differing(text, other, width).into_iter();
        let words = |from: usize, to: usize| text.words[from..to.min(text.words.len())].join(" ");
        let passage = |range: Range<usize>| Passage {
            word: range.start + 1,
            before: words(range.start.saturating_sub(CONTEXT), range.start),
            after: words(range.end, range.end + CONTEXT),
            text: words(range.start, range.end),
        };
        ranges.map(passage).collect()
    };
    let differing = [passages(a, &of_b), passages(b, &of_a)];
    let similarity = if either == 0 { 0.0 } else { shared as f64 / either as f64 };
    TextComparison { shared, either, similarity, differing }
}

/// The distinct shingles, ascending, of documents whose pages can be read again, by document. Each
/// is given with the checksum of its page. A file that cannot be read has no pages.
///
/// # Errors
/// If a table cannot be read.
pub fn shingles(
    week: &LookedWeek<'_>,
    wanted: &BTreeMap<DocId, u128>,
    inputs: &[Input],
    reading: &Reading,
) -> Result<BTreeMap<DocId, Vec<u64>>> {
    let mut fingerprinter = Fingerprinter::of_method(&week.method)?;
    let mut by_file: BTreeMap<String, BTreeMap<(u64, DocId), u128>> = BTreeMap::new();
    for (doc, page) in week.pages(wanted.keys().copied())? {
        by_file.entry(page.file).or_default().insert((page.offset, doc), wanted[&doc]);
    }
    let mut found = BTreeMap::new();
    for (file, mut places) in by_file {
        let Some(input) = inputs.iter().find(|input| input.name == file) else { continue };
        let mut keep = |doc: DocId, page: &Page| {
            let mut shingles = page_shingles(&mut fingerprinter, &page.body, page.charset.as_deref());
            shingles.sort_unstable();
            shingles.dedup();
            found.insert(doc, shingles);
        };
        // Of a file that cannot be read on, the rest is not at hand.
        let _ = read_places(input, reading, &mut places, &mut keep);
    }
    Ok(found)
}

/// Reads the pages at some places, each with its checksum, in one pass: takes those out that are
/// found.
fn read_places(
    input: &Input,
    reading: &Reading,
    places: &mut BTreeMap<(u64, DocId), u128>,
    keep: &mut impl FnMut(DocId, &Page),
) -> Result<()> {
    let mut at = 0;
    // Where the file can be read at a place: each run of places that are near each other.
    while let Some(first) = places.range((at, DocId::new(0, 0))..).next().map(|((offset, _), _)| *offset)
        && let Some(mut reader) = readers::open_at(input, reading, first)?
    {
        reader.without_waiting();
        let mut last = first;
        while let Some(next) = places.range((last, DocId::new(0, 0))..).next().map(|((offset, _), _)| *offset)
            && next - last <= GAP
        {
            let Some(item) = reader.next()? else { break };
            take_found(&item, places, keep);
            if item.offset() < last {
                break;
            }
            last = item.offset() + 1;
        }
        at = last.max(first + 1);
    }
    if places.is_empty() {
        return Ok(());
    }
    // The place of a record that shares a member is found from the beginning only.
    let mut reader = readers::open(input, reading)?;
    while let Some((next, _)) = places.keys().next().copied() {
        reader.skip_to(next)?;
        let Some(item) = reader.next()? else { break };
        take_found(&item, places, keep);
    }
    Ok(())
}

/// Takes the places of a page, if its checksum is the wanted one.
fn take_found(item: &Item, places: &mut BTreeMap<(u64, DocId), u128>, keep: &mut impl FnMut(DocId, &Page)) {
    let Item::Page(page) = item else { return };
    let here = places.range((page.offset, DocId::new(0, 0))..).take_while(|((offset, _), _)| *offset == page.offset);
    let here: Vec<(DocId, u128)> = here.map(|((_, doc), sum)| (*doc, *sum)).collect();
    for (doc, sum) in here {
        if checksum(page.body.as_bytes()) == sum {
            keep(doc, page);
            places.remove(&(page.offset, doc));
        }
    }
}

/// Reads a page at its place again; `None` if it is not there any more.
fn read_again(
    input: &Input,
    reading: &Reading,
    offset: u64,
    sum: u128,
    fingerprinter: &mut Fingerprinter,
) -> Result<Option<WordsAndShingles>> {
    if let Some(mut reader) = readers::open_at(input, reading, offset)? {
        reader.without_waiting();
        let found = words_of(reader, offset, sum, |place| place > offset, fingerprinter)?;
        if found.is_some() {
            return Ok(found);
        }
    }
    // The place of a record that shares a member is found from the beginning only.
    words_of(readers::open(input, reading)?, offset, sum, |_| false, fingerprinter)
}

/// The words of the page at a place with this checksum; `None` if the reader does not come to it
/// before it is `past` the place.
fn words_of(
    mut reader: Box<dyn Reader>,
    offset: u64,
    sum: u128,
    past: impl Fn(u64) -> bool,
    fingerprinter: &mut Fingerprinter,
) -> Result<Option<WordsAndShingles>> {
    while let Some(item) = reader.next()? {
        match item {
            Item::Page(page) if page.offset == offset && checksum(page.body.as_bytes()) == sum => {
                return Ok(Some(page_words(fingerprinter, &page.body, page.charset.as_deref())));
            }
            item if past(item.offset()) => return Ok(None),
            _ => {}
        }
    }
    Ok(None)
}
