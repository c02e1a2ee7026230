//! The tests of listed pairs: pages at the same path of two hosts, compared (Bharat and Broder
//! 1999, section 4).
//!
//! ```text
//! what is known of URLs, and questions of pairs ─▶ the owner of the URL ─▶ answers: page or gone
//! a pair: the root, and the first sampled paths of either host on the other one
//! pages that differ ─▶ their features, from the workers that have them ─▶ the share of equal ones
//! ```
//!
//! A pair is tested by one worker. It has 72 bytes for each sampled path of the hosts of its pairs,
//! on each of the two, and every worker as many for each of its own pages at such a path.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;

use anyhow::{Result, bail};
use bytemuck::{Pod, Zeroable};
use nigh_exchange::{Answerer, Asked, Asker, BlockOf, Context, Dealer, Keyed, ask, by_group};
use serde::{Deserialize, Serialize};

use super::failures::HostFailure;
use super::listed::{ListedPair, ListedPairs};
use super::outcomes::{MirrorLevel, OutcomeCounts, PathOutcome};
use super::test_pages::{KnownUrl, TestPages};
use super::urls::{UrlName, slash_twin, text_hash};
use crate::features::equal_features;
use crate::records::{FeatureBits, fold};
use crate::structures::CompactSort;
use crate::studies::mirrors_by_url::Unfetched;

/// How pairs are tested.
#[derive(Clone, Copy, Debug)]
pub struct TestRules {
    /// The paths of each host that are tested, besides the root.
    pub tests: usize,
    /// The similarity from which on it is high.
    pub similar: f64,
    /// What it means if nothing is known of a page.
    pub unfetched: Unfetched,
    /// The number of features of a page.
    pub features: usize,
}

/// How far from `similar` an estimate may be, if it is to be taken for near: twice its standard
/// error at 0.5, with 84 features.
const NEAR: f64 = 0.1;

/// The test of one path.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct PathTest {
    /// Whether the path is one of the second host of the pair, so that the first one is the target.
    pub from_second: bool,
    /// The hash of the path.
    pub path: u64,
    /// What was found.
    pub outcome: PathOutcome,
    /// The equal features, if both pages were compared by features.
    pub equal: Option<u32>,
    /// Whether it is known of the first and of the second host of the pair that it has the page, or
    /// that it does not.
    pub known: [bool; 2],
}

impl TestRules {
    /// The similarity that a test found: 1 for equal bytes, else the share of equal features.
    pub fn similarity(&self, test: &PathTest) -> Option<f64> {
        match test.outcome {
            PathOutcome::FingerprintMatch => Some(1.0),
            _ => test.equal.map(|equal| f64::from(equal) / self.features as f64),
        }
    }

    /// Whether a similarity is an estimate that is so near to the limit of high similarity that the
    /// outcome is uncertain.
    pub fn is_near(&self, test: &PathTest) -> bool {
        test.equal.is_some_and(|equal| (f64::from(equal) / self.features as f64 - self.similar).abs() <= NEAR)
    }

    /// The outcome of two pages with this number of equal features.
    fn outcome(&self, equal: u32) -> PathOutcome {
        if equal as usize == self.features {
            PathOutcome::FullSimilarity
        } else if f64::from(equal) >= self.similar * self.features as f64 {
            PathOutcome::HighSimilarity
        } else if equal > 0 {
            PathOutcome::TraceSimilarity
        } else {
            PathOutcome::NoSimilarity
        }
    }
}

/// A pair after its tests.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct TestedPair {
    /// Its number in the list.
    pub number: usize,
    /// Whether tests found a page of either host: else nothing is known of one, as where its name
    /// does not resolve.
    pub have_pages: bool,
    /// The tests: the root first, then the paths of the first host, then those of the second.
    pub tests: Vec<PathTest>,
    /// How many there are of each outcome.
    pub counts: OutcomeCounts,
    /// What does not work at its hosts, if they do not answer.
    pub failures: [Option<HostFailure>; 2],
    /// Its level.
    pub level: MirrorLevel,
}

/// What is known of a URL, or a question for it; on its way to the URL's owner.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Pod, Zeroable)]
#[repr(C)]
struct UrlFact {
    key: u64,
    host: u64,
    path: u64,
    /// [`PAGE`] and so on: of several the first one counts.
    kind: u64,
    /// The order of the page: it comes before the worker, so that the page that counts does not
    /// depend on who has it.
    order: u64,
    /// The worker that knows it, or that asks.
    from: u64,
    /// The number of the page, or of the question, at that worker.
    number: u64,
    checksum: [u64; 2],
    vector: u64,
}

/// The kinds of facts.
const PAGE: u64 = 0;
const SLASH: u64 = 1;
const GONE: u64 = 2;
const LISTED: u64 = 3;
const LISTED_GONE: u64 = 4;
const QUESTION: u64 = 5;

impl Keyed for UrlFact {
    fn key(&self) -> u64 {
        self.key
    }
}

/// The answer to a question.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Pod, Zeroable)]
#[repr(C)]
struct UrlAnswer {
    question: u64,
    kind: u64,
    /// The worker that has the page, and its number there.
    from: u64,
    number: u64,
    checksum: [u64; 2],
    vector: u64,
}

/// Tests all listed pairs. `pages` is what this worker knows. Every worker returns all pairs, in
/// the order of the list.
///
/// # Errors
/// If a file cannot be read or written, or a worker of this process failed.
pub fn compare(
    cx: &mut Context,
    listed: &ListedPairs,
    mut pages: TestPages,
    rules: TestRules,
) -> Result<Vec<TestedPair>> {
    let failures = std::mem::take(&mut pages.reaches).failures(cx, listed)?;
    let own: Vec<usize> = (cx.index()..listed.pairs.len()).step_by(cx.peers()).collect();
    let (mut asked, mut twins) = (Vec::new(), BTreeMap::new());
    for number in &own {
        let [a, b] = listed.pairs[*number].hosts;
        let sampled = || [a, b].into_iter().flat_map(|host| &listed.hosts[host].sample);
        twins.extend(sampled().filter_map(|(path, text)| Some((*path, text_hash(&slash_twin(text)?)))));
        let paths = sampled().map(|(path, _)| *path);
        let paths = paths.clone().chain(paths.filter_map(|path| twins.get(&path).copied())).chain([text_hash("/")]);
        asked.extend(paths.flat_map(|path| [a, b].map(|host| UrlName { host: listed.hosts[host].hash, path })));
    }
    asked.sort_rows();
    asked.dedup();
    let answers = look_up(cx, &pages, &asked)?;
    let known = KnownUrls { asked, answers, twins };
    let (mut tested, mut undecided) = (Vec::new(), Vec::new());
    for number in own {
        let mut tests = Vec::new();
        let hosts = listed.pairs[number].hosts.map(|host| listed.hosts[host].hash);
        let mut have_pages = [false; 2];
        for (from_second, path) in known.paths(listed, &listed.pairs[number], rules.tests) {
            let [source, target] = if from_second { [hosts[1], hosts[0]] } else { hosts };
            let states = [source, target].map(|host| known.of(UrlName { host, path }));
            let of_hosts = hosts.map(|host| known.of(UrlName { host, path }));
            for (has_pages, answer) in have_pages.iter_mut().zip(of_hosts) {
                *has_pages |= answer.is_some_and(|answer| answer.kind == PAGE);
            }
            let (outcome, equal) = match decide(states, rules) {
                Ok(found) => found,
                Err(pages) => {
                    undecided.push((tested.len(), tests.len(), pages));
                    (PathOutcome::Unknown, None)
                }
            };
            tests.push(PathTest { from_second, path, outcome, equal, known: of_hosts.map(|answer| answer.is_some()) });
        }
        let (have_pages, counts) = (have_pages == [true; 2], OutcomeCounts::default());
        let failures = listed.pairs[number].hosts.map(|host| failures[host]);
        tested.push(TestedPair { number, have_pages, tests, counts, failures, level: MirrorLevel::Few });
    }
    let places = undecided.iter().map(|(.., pages)| *pages).collect();
    for ((pair, test, _), equal) in undecided.iter().zip(equal_of_pairs(cx, pages, places, rules)?) {
        let test: &mut PathTest = &mut tested[*pair].tests[*test];
        (test.outcome, test.equal) = (rules.outcome(equal), Some(equal));
    }
    for pair in &mut tested {
        pair.tests.iter().for_each(|test| pair.counts.add(test.outcome));
        // A host that does not answer has no page.
        let untested = || MirrorLevel::of_failures(pair.failures).unwrap_or(MirrorLevel::Few);
        pair.level = if pair.have_pages { MirrorLevel::of(&pair.counts) } else { untested() };
    }
    cx.sorted(tested)
}

/// The outcome of a test, if it shows without the features; else the places of the pages.
fn decide(states: [Option<UrlAnswer>; 2], rules: TestRules) -> Result<(PathOutcome, Option<u32>), [PageOfWorker; 2]> {
    let is_unknown = |state: &Option<UrlAnswer>| state.is_none() && rules.unfetched == Unfetched::Unknown;
    let page = |state: Option<UrlAnswer>| state.filter(|answer| answer.kind == PAGE);
    let [source, target] = states.map(page);
    let outcome = match (source, target) {
        (None, _) if is_unknown(&states[0]) => PathOutcome::Unknown,
        (None, _) => PathOutcome::SourceFailure,
        (Some(_), None) if is_unknown(&states[1]) => PathOutcome::Unknown,
        (Some(_), None) => PathOutcome::TargetFailure,
        (Some(a), Some(b)) if a.checksum == b.checksum => PathOutcome::FingerprintMatch,
        // A page without words resembles none.
        (Some(a), Some(b)) if a.vector == 0 || b.vector == 0 => PathOutcome::NoSimilarity,
        (Some(a), Some(b)) if a.vector == b.vector => {
            return Ok((PathOutcome::FullSimilarity, Some(rules.features as u32)));
        }
        (Some(a), Some(b)) => {
            return Err([a, b].map(|answer| PageOfWorker { worker: answer.from, page: answer.number }));
        }
    };
    Ok((outcome, None))
}

/// What one worker knows of the URLs that its tests ask for.
struct KnownUrls {
    /// In order.
    asked: Vec<UrlName>,
    answers: Vec<Option<UrlAnswer>>,
    /// By path: the one that differs in a slash at its end.
    twins: BTreeMap<u64, u64>,
}

impl KnownUrls {
    /// What is known of a URL. If it redirects to the same path with a slash more or less, that is
    /// the page there.
    fn of(&self, name: UrlName) -> Option<UrlAnswer> {
        let answer = self.answer(name)?;
        if answer.kind != SLASH {
            return Some(answer);
        }
        let twin = self.twins.get(&name.path).and_then(|path| self.answer(UrlName { path: *path, ..name }));
        Some(twin.filter(|twin| twin.kind == PAGE).unwrap_or(UrlAnswer { kind: GONE, ..answer }))
    }

    fn answer(&self, name: UrlName) -> Option<UrlAnswer> {
        self.answers[self.asked.binary_search(&name).ok()?]
    }

    /// The tests of a pair: each with its path, and whether that is one of the second host. The
    /// root first; then `most` paths of each host: those of which the host's page is known before
    /// the others, by their hashes. Mirrors have the same sample: no path is tested twice.
    fn paths(&self, listed: &ListedPairs, pair: &ListedPair, most: usize) -> Vec<(bool, u64)> {
        let root = text_hash("/");
        let mut tests = vec![(false, root)];
        for (from_second, host) in [false, true].into_iter().zip(pair.hosts) {
            let host = &listed.hosts[host];
            let is_new = |path: &u64| tests.iter().all(|(_, tested)| tested != path);
            let mut paths: Vec<u64> = host.sample.iter().map(|(path, _)| *path).filter(is_new).collect();
            let has_page = |path: u64| self.of(UrlName { host: host.hash, path }).is_some_and(|of| of.kind == PAGE);
            paths.sort_items_by_key(|path| !has_page(*path));
            tests.extend(paths.into_iter().take(most).map(|path| (from_second, path)));
        }
        tests
    }
}

/// What is known of some URLs, by any worker.
fn look_up(cx: &mut Context, pages: &TestPages, asked: &[UrlName]) -> Result<Vec<Option<UrlAnswer>>> {
    let from = cx.index() as u64;
    let empty = UrlFact { from, ..UrlFact::zeroed() };
    let of_name = |UrlName { host, path }: UrlName| UrlFact { key: fold(&[host, path]), host, path, ..empty };
    let known = pages.known.iter().map(|(name, known)| match known {
        KnownUrl::Page(number) => {
            let page = &pages.pages[*number];
            let checksum = [(page.checksum >> 64) as u64, page.checksum as u64];
            let (order, number, vector) = (page.order, *number as u64, page.vector);
            UrlFact { kind: PAGE, order, number, checksum, vector, ..of_name(*name) }
        }
        KnownUrl::Slash => UrlFact { kind: SLASH, ..of_name(*name) },
        KnownUrl::Gone => UrlFact { kind: GONE, ..of_name(*name) },
        KnownUrl::Listed => UrlFact { kind: LISTED, ..of_name(*name) },
        KnownUrl::ListedGone => UrlFact { kind: LISTED_GONE, ..of_name(*name) },
    });
    let questions = asked.iter().enumerate();
    let questions = questions.map(|(number, name)| UrlFact { kind: QUESTION, number: number as u64, ..of_name(*name) });
    let facts: Vec<UrlFact> = known.chain(questions).collect();
    let each = |of_key: &[UrlFact], answers: &mut Dealer<UrlAnswer>| {
        for of_url in of_key.chunk_by(|a, b| (a.host, a.path) == (b.host, b.path)) {
            // The page of the smallest order, if there is one.
            let UrlFact { kind, from, number, checksum, vector, .. } = of_url[0];
            if !matches!(kind, PAGE | SLASH | GONE | LISTED_GONE) {
                continue;
            }
            for UrlFact { from: asker, number: question, .. } in of_url.iter().filter(|fact| fact.kind == QUESTION) {
                answers.deal(*asker, UrlAnswer { question: *question, kind, from, number, checksum, vector });
            }
        }
    };
    let answers = Rc::new(RefCell::new(vec![None; asked.len()]));
    let take = {
        let answers = answers.clone();
        move |block: BlockOf<UrlAnswer>| {
            let mut answers = answers.borrow_mut();
            block.records().iter().for_each(|answer| answers[answer.question as usize] = Some(*answer));
        }
    };
    by_group(cx, "Tests", facts, each, take)?;
    Ok(answers.take())
}

/// Where a page is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct PageOfWorker {
    worker: u64,
    /// Its number at that worker.
    page: u64,
}

/// The number of equal features of each pair of pages.
fn equal_of_pairs(
    cx: &mut Context,
    pages: TestPages,
    pairs: Vec<[PageOfWorker; 2]>,
    rules: TestRules,
) -> Result<Vec<u32>> {
    let at_once = (cx.memory() / (4 * 4 * rules.features.max(1) as u64)).clamp(1 << 6, 1 << 14) as usize;
    let (equal, index) = (Vec::with_capacity(pairs.len()), cx.index() as u64);
    let asker = FeatureAsker { pairs, equal, at_once, features: rules.features, index, read: BTreeMap::new() };
    let asker = Rc::new(RefCell::new(asker));
    ask(cx, &asker, FeatureAnswerer { pages, questions: Vec::new() })?;
    Ok(std::mem::take(&mut asker.borrow_mut().equal))
}

/// A question for the features of a page.
#[derive(Clone, Copy, Pod, Zeroable)]
#[repr(C)]
struct FeatureQuestion {
    /// The number of the pair, twice, and 1 more for its second page.
    number: u64,
    page: u64,
    /// The worker that asks.
    from: u64,
}

/// Features of an answer.
const PART: usize = 26;

/// Some of the features of a page.
#[derive(Clone, Copy, Pod, Zeroable)]
#[repr(C)]
struct FeaturePart {
    /// The number of the question.
    number: u64,
    /// The number of the first of these features.
    first: u32,
    features: [FeatureBits; PART],
}

/// Asks for the features of pairs of pages, some pairs at a time.
struct FeatureAsker {
    pairs: Vec<[PageOfWorker; 2]>,
    /// The equal features of pairs that are compared.
    equal: Vec<u32>,
    /// The pairs of a round.
    at_once: usize,
    /// The features of a page.
    features: usize,
    index: u64,
    /// The features of the pages of this round, by number of the question.
    read: BTreeMap<u64, Vec<FeatureBits>>,
}

impl FeatureAsker {
    /// The pairs of this round.
    fn round(&self) -> std::ops::Range<usize> {
        self.equal.len()..(self.equal.len() + self.at_once).min(self.pairs.len())
    }
}

impl Asker<FeatureQuestion, FeaturePart> for FeatureAsker {
    fn ask(&mut self, questions: &mut Dealer<FeatureQuestion>) -> Result<Asked> {
        let round = self.round();
        for number in round.clone() {
            for (side, place) in self.pairs[number].iter().enumerate() {
                let number = (2 * number + side) as u64;
                questions.deal(place.worker, FeatureQuestion { number, page: place.page, from: self.index });
            }
        }
        Ok(if round.end == self.pairs.len() { Asked::All } else { Asked::Round })
    }

    fn take(&mut self, answers: &BlockOf<FeaturePart>) {
        for FeaturePart { number, first, features } in answers.records() {
            let of_page = self.read.entry(*number).or_insert_with(|| vec![0; self.features]);
            let rest = &mut of_page[*first as usize..];
            let count = rest.len().min(PART);
            rest[..count].copy_from_slice(&features[..count]);
        }
    }

    fn end_round(&mut self) -> Result<()> {
        for number in self.round() {
            let of_page = |side| self.read.get(&((2 * number + side) as u64));
            let (Some(a), Some(b)) = (of_page(0), of_page(1)) else { bail!("features of compared pages are missing") };
            self.equal.push(equal_features(a, b) as u32);
        }
        self.read.clear();
        Ok(())
    }
}

/// Answers with the features of own pages.
struct FeatureAnswerer {
    pages: TestPages,
    questions: Vec<FeatureQuestion>,
}

impl Answerer<FeatureQuestion, FeaturePart> for FeatureAnswerer {
    fn answer(&mut self, questions: &BlockOf<FeatureQuestion>, _: &mut Dealer<FeaturePart>) -> Result<()> {
        self.questions.extend(questions.records());
        Ok(())
    }

    fn end_round(&mut self, answers: &mut Dealer<FeaturePart>) -> Result<()> {
        let questions = std::mem::take(&mut self.questions);
        let pages: Vec<usize> = questions.iter().map(|question| question.page as usize).collect();
        self.pages.features(&pages, |place, features| {
            let FeatureQuestion { number, from, .. } = questions[place];
            for (part, values) in features.chunks(PART).enumerate() {
                let mut of_part = [0; PART];
                of_part[..values.len()].copy_from_slice(values);
                answers.deal(from, FeaturePart { number, first: (part * PART) as u32, features: of_part });
            }
        })
    }
}
