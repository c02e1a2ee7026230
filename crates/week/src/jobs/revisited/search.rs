//! Which capture a revisit means, of all that are seen: pages of weeks, and later captures of their
//! URLs.
//!
//! ```text
//! 1. the capture with the record id that it names, unless their digests differ
//! 2. of the URL that it names, or of its own:
//!        with a digest:  the capture that has it
//!        else of those whose digest does not differ:
//!            with a date:     the nearest one that is at most a second off
//!            without a date:  the last one that is not after the revisit
//! 3. any capture with its digest
//! ```
//!
//! Of several the one of the newest week counts, the page of the week before later captures of it,
//! and the smallest document.

use std::cmp::{Ordering, Reverse};
use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

use crate::operators::ingest::{NamedCapture, PayloadDigest};
use crate::records::DocId;

/// How many seconds a date may be off: some writers round, and some take the time of the end of the
/// download.
const SECONDS_OFF: u64 = 1;

/// A revisit: its worker, and its number among those of the worker.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub(super) struct AskingRevisit {
    pub worker: usize,
    pub number: usize,
}

/// Where a page is. Places are ordered as they count: the newest week first, pages before later
/// captures, then by document. The number of a row says nothing about rows of other shards, for it
/// depends on the number of workers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct CapturePlace {
    /// 0 for this week, 1 for the week before, and so on.
    pub week: usize,
    /// 0 for the page of the week; for later captures, the number of the row in the own pieces of
    /// `captures`, from 1.
    pub row: u64,
    pub doc: DocId,
}

impl CapturePlace {
    fn order(&self) -> (usize, bool, DocId, u64) {
        (self.week, self.row > 0, self.doc, self.row)
    }
}

impl Ord for CapturePlace {
    fn cmp(&self, other: &CapturePlace) -> Ordering {
        self.order().cmp(&other.order())
    }
}

impl PartialOrd for CapturePlace {
    fn partial_cmp(&self, other: &CapturePlace) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

/// A capture, as the tables have it.
#[derive(Clone, Copy, Debug)]
pub(super) struct StoredCapture {
    pub place: CapturePlace,
    pub digest: Option<PayloadDigest>,
    /// The hash of its record id.
    pub id: Option<u64>,
    /// Microseconds since 1970.
    pub fetched: Option<i64>,
    /// Whether it has the bytes of the page of the week: then that is read.
    pub same: bool,
}

impl StoredCapture {
    fn page(&self) -> CapturePlace {
        CapturePlace { row: if self.same { 0 } else { self.place.row }, ..self.place }
    }

    /// Whether it can have the page of a revisit with this digest.
    fn can_be(&self, digest: Option<PayloadDigest>) -> bool {
        !digest.zip(self.digest).is_some_and(|(wanted, own)| wanted.differs_from(&own))
    }
}

/// A revisit that looks for a capture of a document.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub(super) struct CaptureQuestion {
    pub named: NamedCapture,
    pub from: AskingRevisit,
}

/// A revisit that looks for a record.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub(super) struct IdQuestion {
    pub id: u64,
    pub digest: Option<PayloadDigest>,
    pub from: AskingRevisit,
}

/// What was found for a question.
#[derive(Clone, Copy, Debug, Default)]
struct BestCaptures {
    by_digest: Option<CapturePlace>,
    /// With how far it is off, in seconds and in microseconds.
    by_date: Option<((u64, u64), CapturePlace)>,
    last: Option<(Age, CapturePlace)>,
    /// Whether a page of a week is among those for `last`: those of older weeks are older states.
    has_page: bool,
}

/// How late a capture is: whether it is not after the revisit, when it was fetched, its week, and
/// its place there.
type Age = (bool, i64, Reverse<usize>, u64);

impl BestCaptures {
    fn see(&mut self, capture: &StoredCapture, named: &NamedCapture) {
        let first = |best: &mut Option<CapturePlace>, place: CapturePlace| {
            *best = Some(best.map_or(place, |best| best.min(place)));
        };
        if named.digest.is_some() && named.digest == capture.digest {
            first(&mut self.by_digest, capture.page());
        }
        if !capture.can_be(named.digest) {
            return;
        }
        let week = capture.place.week;
        if let Some(wanted) = named.date {
            let off = capture.fetched.map(|fetched| (seconds_between(wanted, fetched), wanted.abs_diff(fetched)));
            let off = off.filter(|(seconds, _)| *seconds <= SECONDS_OFF);
            if let Some(off) = off
                && self.by_date.is_none_or(|(best, place)| (place.week, best, place) > (week, off, capture.page()))
            {
                self.by_date = Some((off, capture.page()));
            }
            return;
        }
        let not_after = capture.fetched.zip(named.before).is_none_or(|(own, before)| seconds(own) <= seconds(before));
        let is_page = capture.place.row == 0;
        if week == 0 && !not_after || is_page && self.has_page {
            return;
        }
        self.has_page |= is_page;
        let age = (not_after, capture.fetched.unwrap_or(i64::MIN), Reverse(week), capture.place.row);
        if self.last.is_none_or(|(best, _)| age > best) {
            self.last = Some((age, capture.page()));
        }
    }

    /// Whether pages of older weeks cannot change it, once those of so many weeks are seen.
    fn is_final(&self, named: &NamedCapture, weeks: usize) -> bool {
        match (named.digest, named.date) {
            (Some(_), _) => is_seen(self.by_digest, weeks),
            (None, Some(_)) => is_seen(self.by_date.map(|(_, place)| place), weeks),
            (None, None) => self.has_page,
        }
    }

    fn place(&self) -> Option<CapturePlace> {
        self.by_digest.or(self.by_date.map(|(_, place)| place)).or(self.last.map(|(_, place)| place))
    }
}

/// What is searched, and what was found. Later captures of all weeks are seen before pages, which
/// are seen from the newest week on.
#[derive(Default)]
pub(super) struct CaptureSearch {
    by_doc: BTreeMap<DocId, Vec<(CaptureQuestion, BestCaptures)>>,
    by_id: BTreeMap<u64, Vec<(IdQuestion, Option<CapturePlace>)>>,
    by_digest: BTreeMap<PayloadDigest, Option<CapturePlace>>,
}

impl CaptureSearch {
    /// A search by document and by record id.
    pub(super) fn new(by_doc: BTreeMap<DocId, Vec<CaptureQuestion>>, by_id: Vec<IdQuestion>) -> CaptureSearch {
        let with_found =
            |questions: Vec<CaptureQuestion>| questions.into_iter().map(|question| (question, BestCaptures::default()));
        let mut search = CaptureSearch {
            by_doc: by_doc.into_iter().map(|(doc, questions)| (doc, with_found(questions).collect())).collect(),
            ..CaptureSearch::default()
        };
        for question in by_id {
            search.by_id.entry(question.id).or_default().push((question, None));
        }
        search
    }

    /// A search by digest alone.
    pub(super) fn of_digests(digests: BTreeSet<PayloadDigest>) -> CaptureSearch {
        CaptureSearch {
            by_digest: digests.into_iter().map(|digest| (digest, None)).collect(),
            ..CaptureSearch::default()
        }
    }

    /// Whether record ids are needed, once the pages of so many weeks are seen.
    pub(super) fn needs_ids(&self, weeks: usize) -> bool {
        self.by_id.values().flatten().any(|(_, place)| !is_seen(*place, weeks))
    }

    /// Whether the pages of older weeks cannot change anything, once those of so many are seen.
    pub(super) fn is_over(&self, weeks: usize) -> bool {
        let is_final = |(question, found): &(CaptureQuestion, BestCaptures)| found.is_final(&question.named, weeks);
        !self.needs_ids(weeks)
            && self.by_digest.values().all(|place| is_seen(*place, weeks))
            && self.by_doc.values().flatten().all(is_final)
    }

    /// Whether a capture of a document, with this record id, can be what is searched.
    pub(super) fn looks_at(&self, doc: DocId, id: Option<u64>) -> bool {
        !self.by_digest.is_empty()
            || self.by_doc.contains_key(&doc)
            || id.is_some_and(|id| self.by_id.contains_key(&id))
    }

    /// Sees a capture.
    pub(super) fn see(&mut self, capture: &StoredCapture) {
        for (question, found) in self.by_doc.get_mut(&capture.place.doc).into_iter().flatten() {
            found.see(capture, &question.named);
        }
        let first = |best: &mut Option<CapturePlace>| {
            *best = Some(best.map_or(capture.page(), |best| best.min(capture.page())))
        };
        if let Some(questions) = capture.id.and_then(|id| self.by_id.get_mut(&id)) {
            questions
                .iter_mut()
                .filter(|(question, _)| capture.can_be(question.digest))
                .for_each(|(_, best)| first(best));
        }
        if let Some(best) = capture.digest.and_then(|digest| self.by_digest.get_mut(&digest)) {
            first(best);
        }
    }

    /// What was found by document.
    pub(super) fn found_by_doc(&self) -> impl Iterator<Item = (AskingRevisit, CapturePlace)> {
        let all = self.by_doc.values().flatten();
        all.filter_map(|(question, found)| Some((question.from, found.place()?)))
    }

    /// What was found by record id.
    pub(super) fn found_by_id(&self) -> impl Iterator<Item = (AskingRevisit, CapturePlace)> {
        self.by_id.values().flatten().filter_map(|(question, place)| Some((question.from, (*place)?)))
    }

    /// What was found by digest alone.
    pub(super) fn found_by_digest(&self) -> impl Iterator<Item = (PayloadDigest, CapturePlace)> {
        self.by_digest.iter().filter_map(|(digest, place)| Some((*digest, (*place)?)))
    }
}

/// Whether a place is found that counts before all pages of further weeks, once those of so many
/// weeks are seen: later captures of all weeks are seen first, and their week may not be among
/// these.
fn is_seen(place: Option<CapturePlace>, weeks: usize) -> bool {
    place.is_some_and(|place| place.week < weeks)
}

fn seconds(micros: i64) -> i64 {
    micros.div_euclid(1_000_000)
}

fn seconds_between(a: i64, b: i64) -> u64 {
    seconds(a).abs_diff(seconds(b))
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: i64 = 1_000_000;

    fn digest(text: &str) -> Option<PayloadDigest> {
        PayloadDigest::read(text)
    }

    fn capture(week: usize, row: u64, text: &str, fetched: i64) -> StoredCapture {
        let place = CapturePlace { week, row, doc: DocId::new(0, 5) };
        StoredCapture { place, digest: digest(text), id: None, fetched: Some(fetched * SECOND), same: false }
    }

    /// The week and the row of the capture that is found.
    fn find(captures: &[StoredCapture], named: NamedCapture) -> Option<(usize, u64)> {
        let asker = AskingRevisit { worker: 0, number: 0 };
        let question = CaptureQuestion { named, from: asker };
        let mut search = CaptureSearch::new([(DocId::new(0, 5), vec![question])].into(), Vec::new());
        captures.iter().for_each(|capture| search.see(capture));
        search.found_by_doc().next().map(|(_, place)| (place.week, place.row))
    }

    #[test]
    fn a_date_may_be_off_by_a_second() {
        let captures = [capture(1, 1, "a:1", 200), capture(1, 2, "a:2", 201), capture(1, 0, "a:0", 100)];
        let at = |date: i64| find(&captures, NamedCapture { date: Some(date), ..NamedCapture::default() });
        assert_eq!([at(200 * SECOND), at(201 * SECOND)], [Some((1, 1)), Some((1, 2))]);
        assert_eq!([at(199 * SECOND), at(202 * SECOND)], [Some((1, 1)), Some((1, 2))]);
        assert_eq!([at(100 * SECOND + 999_999), at(101 * SECOND + 999_999), at(99 * SECOND)], [Some((1, 0)); 3]);
        assert_eq!([at(102 * SECOND), at(98 * SECOND + 999_999)], [None; 2]);
    }

    #[test]
    fn without_a_date_it_is_the_last_capture_before_the_revisit() {
        let captures = [
            capture(0, 1, "a:1", 900),
            capture(1, 4, "a:2", 500),
            capture(2, 3, "a:3", 450),
            capture(1, 0, "a:4", 400),
            capture(2, 0, "a:5", 600),
        ];
        let before =
            |time: i64| find(&captures, NamedCapture { before: Some(time * SECOND), ..NamedCapture::default() });
        assert_eq!([before(901), before(899), before(499)], [Some((0, 1)), Some((1, 4)), Some((2, 3))]);
        // The page of the newest week is what its URL was before this week, whatever the clock
        // says.
        assert_eq!(before(430), Some((1, 0)));
        assert_eq!(find(&captures, NamedCapture::default()), Some((0, 1)));
    }

    #[test]
    fn a_digest_decides_before_a_date_and_one_of_another_kind_says_nothing() {
        let captures = [capture(1, 1, "md5:7", 500), capture(1, 2, "sha1:7", 600), capture(1, 0, "sha1:8", 400)];
        let named = |text: &str, date: Option<i64>| {
            let date = date.map(|date| date * SECOND);
            find(
                &captures,
                NamedCapture { digest: digest(text), date, before: Some(700 * SECOND), ..NamedCapture::default() },
            )
        };
        assert_eq!(named("sha1:8", Some(600)), Some((1, 0)));
        assert_eq!(named("sha1:9", Some(600)), None);
        assert_eq!(named("sha1:9", Some(500)), Some((1, 1)));
        assert_eq!(named("sha256:9", Some(600)), Some((1, 2)));
        assert_eq!(named("sha1:9", None), Some((1, 1)));
    }

    #[test]
    fn a_record_id_is_found_anywhere_unless_the_digests_differ() {
        let asker = |number| AskingRevisit { worker: 3, number };
        let question = |number, text: &str| IdQuestion { id: 77, digest: digest(text), from: asker(number) };
        let mut search =
            CaptureSearch::new(BTreeMap::new(), vec![question(0, ""), question(1, "sha1:1"), question(2, "md5:1")]);
        let capture = |week, doc, text: &str| StoredCapture {
            place: CapturePlace { week, row: 0, doc: DocId::new(0, doc) },
            digest: digest(text),
            id: Some(77),
            fetched: None,
            same: false,
        };
        for (week, doc, text) in [(1, 9, "sha1:2"), (1, 8, "sha1:2"), (2, 3, "sha1:1")] {
            search.see(&capture(week, doc, text));
        }
        let found: Vec<_> = search.found_by_id().map(|(from, place)| (from.number, place.doc.row())).collect();
        assert_eq!(found, [(0, 8), (1, 3), (2, 8)]);
    }

    /// With one worker a later capture was taken, with four a page of the same week.
    #[test]
    fn a_search_goes_on_while_a_page_of_a_newer_week_may_count() {
        let digest = digest("sha1:7");
        let mut search = CaptureSearch::of_digests(digest.into_iter().collect());
        assert!(!search.is_over(0));
        search.see(&capture(1, 3, "sha1:7", 100));
        assert_eq!([0, 1, 2].map(|weeks| search.is_over(weeks)), [false, false, true]);
        search.see(&capture(0, 0, "sha1:7", 100));
        assert_eq!([0, 1].map(|weeks| search.is_over(weeks)), [false, true]);
        assert_eq!(search.found_by_digest().map(|(_, place)| place.week).collect::<Vec<_>>(), [0]);
    }

    /// The rows of `captures` are numbered by worker: which of two documents counts was another
    /// with other workers.
    #[test]
    fn a_page_counts_before_later_captures_and_these_by_document() {
        let place = |week, row, doc| CapturePlace { week, row, doc: DocId::new(0, doc) };
        let mut places = [place(1, 0, 1), place(0, 9, 3), place(0, 2, 4), place(0, 7, 3), place(0, 0, 6)];
        places.sort_unstable();
        assert_eq!(places, [place(0, 0, 6), place(0, 7, 3), place(0, 9, 3), place(0, 2, 4), place(1, 0, 1)]);
    }
}
