//! Pages of which a crawl says only what they are the same as: of another URL, of a week before the
//! last one, or a later capture.
//!
//! ```text
//! revisits ─▶ all workers: those with a record id          ─▶ the capture that has it
//!          ─▶ owner of the URL that they name, or of theirs ─▶ the capture of that URL that they mean
//!          ─▶ if there is none, all workers: their digests  ─▶ a capture that has it          (`search`)
//! rows of these pages ─▶ owners of the revisits ─▶ a segment of each shard, after the waves   (`revisited_rows`)
//! ```
//!
//! New URLs get ids in the order of their hashes, also those of revisits that are not known: they
//! are rows of `missing`. A page that is what it was in the week before is none of these: it is
//! kept where it is ([`kept_pages`](super::kept_pages)).
//!
//! Cost: `captures` of all weeks; of `documents` three columns of this week and, until all pages
//! are found, of each week before, and the record ids if revisits name some; and the rows of the
//! pages that are found. Memory: 200 bytes for each revisit, and the rows of the found pages of own
//! shards.

mod revisited_rows;
mod search;

use std::collections::{BTreeMap, BTreeSet};

use anyhow::Result;
use arrow_array::{Array as _, BooleanArray, Int64Array, StringArray, TimestampMicrosecondArray};
use nigh_exchange::{Context, send_rows};

pub(crate) use self::search::CapturePlace;
use self::search::{AskingRevisit, CaptureQuestion, CaptureSearch, IdQuestion, StoredCapture};
use crate::operators::ingest::{PayloadDigest, Revisited, record_hash};
use crate::operators::scan::{docs_with_urls, own_segments};
use crate::plan::Plan;
use crate::records::{DocId, KeyHash, Week};
use crate::state::{Segment, Unfinished, UrlIndex, WeekJournal, WeekTables};
use crate::structures::Ownership;
use crate::tables::{CaptureRow, DocumentRow, RowRange, Scan, Table, field};

/// What the pages of revisits are found with.
pub(crate) struct RevisitInputs<'a> {
    pub plan: &'a Plan,
    pub unfinished: &'a Unfinished,
    /// The journal of the week, whose waves are all complete.
    pub journal: &'a WeekJournal,
    pub owned: &'a Ownership,
    /// The number of the worker.
    pub worker: usize,
    /// This week, and those before it, the newest first.
    pub weeks: &'a [SearchedWeek],
}

/// A page that was found, and the worker that has its rows.
pub(crate) type PlacedPage = (CapturePlace, usize);

/// A week whose captures are searched.
pub(crate) struct SearchedWeek {
    week: Week,
    /// The tables of an earlier week; `None` for this week.
    tables: Option<WeekTables>,
    /// Its own segments.
    segments: Vec<Segment>,
    /// The own pieces of `captures`, in the order of their names.
    captures: Vec<RowRange>,
}

impl SearchedWeek {
    /// This week, and those before it, the newest first.
    ///
    /// # Errors
    /// If a file cannot be read.
    pub(crate) fn all(
        plan: &Plan,
        unfinished: &Unfinished,
        journal: &WeekJournal,
        owned: &Ownership,
    ) -> Result<Vec<SearchedWeek>> {
        let own_shards: BTreeSet<u32> = owned.shards().collect();
        let is_own = |name: &str| Segment::shard_of(name).is_some_and(|shard| own_shards.contains(&shard));
        let of_week = unfinished.find_all::<CaptureRow>("")?.into_iter();
        let of_week = of_week.filter(|(name, _)| is_own(name) && Segment::wave_of(name) < Some(journal.waves));
        let mut weeks = vec![SearchedWeek {
            week: plan.week,
            tables: None,
            segments: own_segments(journal, owned).into(),
            captures: of_week.map(|(_, rows)| rows).collect(),
        }];
        let store = plan.open_store();
        for week in plan.earlier.weeks.iter().rev() {
            let whole = store.whole(week)?;
            let tables = whole.tables(store.root());
            let captures = tables.pieces(CaptureRow::NAME).into_iter().filter(|(name, _)| is_own(name));
            weeks.push(SearchedWeek {
                week: week.week,
                segments: own_segments(&whole.journal, owned).into(),
                captures: captures.map(|(_, rows)| rows.clone()).collect(),
                tables: Some(tables),
            });
        }
        Ok(weeks)
    }

    /// The documents that have later captures in this week.
    ///
    /// # Errors
    /// If a file cannot be read.
    pub(crate) fn add_with_captures(&self, docs: &mut BTreeSet<DocId>) -> Result<()> {
        for rows in &self.captures {
            Scan::open(rows, &["doc"])?.for_each(|batch| {
                docs.extend(field::<Int64Array>(batch, "doc")?.values().iter().map(|doc| DocId::from_table(*doc)));
                Ok(())
            })?;
        }
        Ok(())
    }
}

impl RevisitInputs<'_> {
    /// Finds the page of each of these revisits of own shards; `None` if it is not known.
    ///
    /// # Errors
    /// If a file cannot be read (names it), or a worker of this process failed.
    pub(crate) fn find(&self, cx: &mut Context, wanted: &[Revisited]) -> Result<Vec<Option<PlacedPage>>> {
        let (index, peers, shards) = (cx.index(), cx.peers(), self.plan.method.shards);
        let asker = |number| AskingRevisit { worker: index, number };
        let (mut by_url, mut by_id) = (Vec::new(), Vec::new());
        for (number, Revisited { named, .. }) in wanted.iter().enumerate() {
            let from = asker(number);
            by_url.extend(
                named
                    .target
                    .map(|target| (target.shard(shards) as usize % peers, CaptureQuestion { named: *named, from })),
            );
            by_id.extend(named.id.map(|id| IdQuestion { id, digest: named.digest, from }));
        }
        let mut by_url = send_rows(cx, by_url)?;
        by_url.sort_unstable();
        let mut search = CaptureSearch::new(self.targets(&by_url)?, cx.sorted(by_id)?);
        self.search(&mut search)?;
        // A record id counts before the URL.
        let by_id = search.found_by_id().map(|(from, place)| (from.worker, (from.number, 0, place, index)));
        let by_url = search.found_by_doc().map(|(from, place)| (from.worker, (from.number, 1, place, index)));
        let mut answers = send_rows(cx, by_id.chain(by_url).collect())?;
        answers.sort_unstable();
        let mut found: Vec<Option<PlacedPage>> = vec![None; wanted.len()];
        for (number, _, place, worker) in answers {
            found[number].get_or_insert((place, worker));
        }
        // Any page with the digest.
        let others = || wanted.iter().enumerate().filter(|(number, _)| found[*number].is_none());
        let digests: BTreeSet<PayloadDigest> = others().filter_map(|(_, revisit)| revisit.named.digest).collect();
        let digests = cx.sorted(digests.into_iter().collect())?;
        let mut search = CaptureSearch::of_digests(digests.into_iter().collect());
        self.search(&mut search)?;
        let same = search.found_by_digest().map(|(digest, place)| (digest, place, index)).collect();
        let mut by_digest: BTreeMap<PayloadDigest, PlacedPage> = BTreeMap::new();
        for (digest, place, worker) in cx.sorted(same)? {
            by_digest.entry(digest).or_insert((place, worker));
        }
        let of_digest = |revisit: &Revisited| by_digest.get(&revisit.named.digest?).copied();
        for (found, revisit) in found.iter_mut().zip(wanted) {
            *found = found.or_else(|| of_digest(revisit));
        }
        Ok(found)
    }

    /// The questions about each document; those about URLs that no week has are left out.
    /// `questions` are sorted.
    fn targets(&self, questions: &[CaptureQuestion]) -> Result<BTreeMap<DocId, Vec<CaptureQuestion>>> {
        let store = self.plan.open_store();
        let (url_files, segments) = (store.url_indexes(&self.plan.earlier)?, self.journal.by_shard());
        let mut by_target: BTreeMap<KeyHash, Vec<CaptureQuestion>> = BTreeMap::new();
        for question in questions {
            if let Some(target) = question.named.target {
                by_target.entry(target).or_default().push(*question);
            }
        }
        let mut by_shard: BTreeMap<u32, Vec<(KeyHash, Vec<CaptureQuestion>)>> = BTreeMap::new();
        for (target, questions) in by_target {
            by_shard.entry(target.shard(self.plan.method.shards)).or_default().push((target, questions));
        }
        let mut by_doc: BTreeMap<DocId, Vec<CaptureQuestion>> = BTreeMap::new();
        for (shard, of_shard) in by_shard {
            let earlier = url_files.get(&shard).map_or(&[][..], |files| files);
            let segments = segments.get(&shard).map_or(&[][..], |segments| segments);
            let index = UrlIndex { unfinished: self.unfinished, shard, segments, earlier };
            let mut urls = index.lookup(self.journal.waves)?;
            for (target, questions) in of_shard {
                if let Some(doc) = urls.find(target)? {
                    by_doc.insert(doc, questions);
                }
            }
        }
        Ok(by_doc)
    }

    /// Looks at the later captures of all weeks, and at their pages, the newest first, until
    /// everything is found. Deleted pages, which earlier weeks have, are not found.
    fn search(&self, search: &mut CaptureSearch) -> Result<()> {
        let has_url = docs_with_urls(&self.plan.open_store().url_files(&self.plan.earlier)?, self.owned)?;
        let is_there = |week: usize, doc: DocId| week == 0 || has_url[self.owned.index(doc)];
        if search.is_over(0) {
            return Ok(());
        }
        for (number, week) in self.weeks.iter().enumerate() {
            for (piece, rows) in week.captures.iter().enumerate() {
                let mut row = first_row(piece);
                see_all(rows.clone(), search, (number, true, true), |doc| {
                    row += 1;
                    is_there(number, doc).then_some(row - 1)
                })?;
            }
        }
        for (number, week) in self.weeks.iter().enumerate() {
            if search.is_over(number) {
                return Ok(());
            }
            let needs_ids = search.needs_ids(number);
            for segment in week.segments.iter().filter(|segment| segment.documents > 0) {
                let rows = match &week.tables {
                    None => self.unfinished.rows::<DocumentRow>(&segment.file())?,
                    Some(tables) => tables.of_segment(DocumentRow::NAME, segment)?,
                };
                see_all(rows, search, (number, false, needs_ids), |doc| is_there(number, doc).then_some(0))?;
            }
        }
        Ok(())
    }
}

/// The number of the first row of an own piece of `captures`, for [`CapturePlace::row`].
fn first_row(piece: usize) -> u64 {
    ((piece as u64) << 32) + 1
}

/// Sees all captures of a piece of `documents`, or of `captures`, of the week with this number.
/// `row_of` gives the [number of the row](CapturePlace::row) of the next document; `None` leaves it
/// out.
fn see_all(
    rows: RowRange,
    search: &mut CaptureSearch,
    (week, is_captures, needs_ids): (usize, bool, bool),
    mut row_of: impl FnMut(DocId) -> Option<u64>,
) -> Result<()> {
    let (ids, same) = (needs_ids.then_some("record_id"), is_captures.then_some("same"));
    let columns: Vec<&str> = ["doc", "digest", "fetched"].into_iter().chain(ids).chain(same).collect();
    Scan::open(rows, &columns)?.for_each(|batch| {
        let (docs, digests): (&Int64Array, &StringArray) = (field(batch, "doc")?, field(batch, "digest")?);
        let times: &TimestampMicrosecondArray = field(batch, "fetched")?;
        let ids: Option<&StringArray> = needs_ids.then(|| field(batch, "record_id")).transpose()?;
        let same: Option<&BooleanArray> = is_captures.then(|| field(batch, "same")).transpose()?;
        for row in 0..batch.num_rows() {
            let doc = DocId::from_table(docs.value(row));
            let Some(number) = row_of(doc) else { continue };
            let id = ids.filter(|ids| ids.is_valid(row)).map(|ids| record_hash(ids.value(row)));
            if !search.looks_at(doc, id) {
                continue;
            }
            search.see(&StoredCapture {
                place: CapturePlace { week, row: number, doc },
                digest: if digests.is_valid(row) { PayloadDigest::read(digests.value(row)) } else { None },
                id,
                fetched: times.is_valid(row).then(|| times.value(row)),
                same: same.is_some_and(|same| same.value(row)),
            });
        }
        Ok(())
    })
}
