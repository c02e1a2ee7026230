//! Pages of the weeks before, which records of this week may refer to.
//!
//! ```text
//! documents of the weeks before, whose files are there ┐
//! documents of this week                               ┴─▶ by content: the first of each payload
//!                                                          digest, then those of this week
//!                                                      ─▶ the records that are read (`originals`)
//! ```
//!
//! Of one content the pages of the oldest week come first, and of one week in the order in which
//! the policy of the export has them: so the page that is referred to is the one that stays in an
//! export of its week. Only one page of each payload digest is read; pages of which the archive has
//! no digest are all read, up to [`MOST_WITHOUT_DIGEST`] of one content. A page that was deleted is
//! not among them, although the tables of its week still have it.
//!
//! Memory: a byte for each URL of the store; of one content, the pages that may be read. The sort
//! is external.

use std::collections::BTreeMap;
use std::sync::Arc;

use anyhow::{Context, Result};
use arrow_array::{Array, Date32Array, FixedSizeBinaryArray, Int64Array, StringArray, TimestampMicrosecondArray};
use serde::{Deserialize, Serialize};

use super::digest::WarcDigest;
use crate::config::{Canonical, DocumentFacts, DocumentOrder};
use crate::export::texts::Gone;
use crate::export::verdicts::Verdict;
use crate::operators::scan::docs_with_urls;
use crate::records::{DocId, Week};
use crate::state::{Earlier, Segment, Store, WeekTables};
use crate::structures::{ExternalSort, Ownership, Sortable, Sorted};
use crate::tables::{DocumentRow, Scan, Table, ValueRow, ValueRows, field, maybe_text};

/// The most pages of one content that have no payload digest.
const MOST_WITHOUT_DIGEST: usize = 1000;

/// A week before, and the numbers of its input files that are there, by the weeks of the crawls and
/// the names.
pub struct EarlierWeek {
    week: Week,
    tables: WeekTables,
    segments: Vec<Segment>,
    files: BTreeMap<(i32, String), u32>,
}

/// The weeks before.
#[derive(Default)]
pub struct EarlierWeeks {
    weeks: Vec<EarlierWeek>,
    /// The number of files.
    files: u32,
    /// Which documents were not deleted.
    known: Option<(Ownership, Vec<bool>)>,
}

impl EarlierWeeks {
    /// Opens weeks of a store; `files` are the numbers of the input files that are there, by the
    /// weeks of the crawls and the names.
    ///
    /// # Errors
    /// If a file of the store cannot be read.
    pub fn open(
        store: &Store,
        earlier: &Earlier,
        shards: u32,
        files: &BTreeMap<(Week, String), u32>,
    ) -> Result<EarlierWeeks> {
        let owned = Ownership::new(0, 1, &earlier.urls(shards));
        let has_url = docs_with_urls(&store.url_files(earlier)?, &owned)?;
        let open = |week| -> Result<EarlierWeek> {
            let whole = store.whole(week)?;
            let inputs = whole.journal.inputs(week.week);
            let names = inputs.flat_map(|(of, names)| names.keys().map(move |name| (of, name.clone())));
            let numbers = names.filter_map(|(of, name)| {
                let number = *files.get(&(of, name.clone()))?;
                Some(((of.days(), name), number))
            });
            let (files, tables) = (numbers.collect(), whole.tables(store.root()));
            Ok(EarlierWeek { week: week.week, tables, segments: whole.journal.segments.clone(), files })
        };
        let weeks = earlier.weeks.iter().map(open).collect::<Result<_>>()?;
        Ok(EarlierWeeks { weeks, files: files.len() as u32, known: Some((owned, has_url)) })
    }

    /// The number of input files, which have the numbers from 0.
    pub(super) fn files(&self) -> u32 {
        self.files
    }

    /// Adds the pages of the files.
    pub(super) fn add(&self, canonical: &Canonical, pages: &mut ExternalSort<PageOfContent>) -> Result<()> {
        let Some((owned, has_url)) = &self.known else { return Ok(()) };
        let columns: Arc<[String]> = canonical.columns().into();
        let comparison = canonical.comparison(&columns);
        let is_there = |doc: DocId| owned.knows(doc) && has_url[owned.index(doc)];
        for EarlierWeek { week, tables, segments, files } in self.weeks.iter().filter(|week| !week.files.is_empty()) {
            for segment in segments.iter().filter(|segment| segment.documents > 0) {
                let add = |page| pages.push(page);
                let values = ValueRows::open(tables.find(ValueRow::NAME, &segment.file()), columns.clone())?;
                let rows = tables.of_segment(DocumentRow::NAME, segment)?;
                pages_of(rows, week.days(), files, (comparison, values), &is_there, add)?;
            }
        }
        Ok(())
    }
}

/// Hands on the pages of a piece of `documents` whose files are among `files`.
fn pages_of(
    rows: crate::tables::RowRange,
    week: i32,
    files: &BTreeMap<(i32, String), u32>,
    (comparison, mut values): (DocumentOrder<'_>, ValueRows),
    is_there: &dyn Fn(DocId) -> bool,
    mut add: impl FnMut(PageOfContent) -> Result<()>,
) -> Result<()> {
    let columns = [
        "doc",
        "file",
        "offset",
        "crawled",
        "checksum",
        "digest",
        "words",
        "bytes",
        "fetched",
        "url",
        "host",
        "record_url",
    ];
    let mut of_file: Option<(i32, String, Option<u32>)> = None;
    Scan::open(rows, &columns)?.for_each(|batch| {
        let longs = |name| field::<Int64Array>(batch, name);
        let (docs, offsets, words, bytes) = (longs("doc")?, longs("offset")?, longs("words")?, longs("bytes")?);
        let texts = |name| field::<StringArray>(batch, name);
        let (names, urls, hosts, digests) = (texts("file")?, texts("url")?, texts("host")?, texts("digest")?);
        let of_others = texts("record_url")?;
        let checksums: &FixedSizeBinaryArray = field(batch, "checksum")?;
        let times: &TimestampMicrosecondArray = field(batch, "fetched")?;
        let weeks: &Date32Array = field(batch, "crawled")?;
        for row in 0..batch.num_rows() {
            let (doc, crawled, name) = (docs.value(row), weeks.value(row), names.value(row));
            let number = match &of_file {
                Some((of, before, number)) if (*of, before.as_str()) == (crawled, name) => *number,
                _ => {
                    let key = (crawled, name.to_owned());
                    let number = files.get(&key).copied();
                    of_file = Some((key.0, key.1, number));
                    number
                }
            };
            // The record of another URL, which a revisit names, is that of the other one: it can be
            // deleted.
            let is_own = of_others.is_null(row) && is_there(DocId::from_table(doc));
            let Some(number) = number.filter(|_| is_own) else { continue };
            let (offset, checksum) = (offsets.value(row) as u64, checksums.value(row));
            let candidate = DocumentFacts {
                file: number,
                offset,
                words: words.value(row) as u64,
                bytes: bytes.value(row) as u64,
                fetched: times.is_valid(row).then(|| times.value(row)),
                url_bytes: urls.is_valid(row).then(|| urls.value(row).len() as u32),
                host: hosts.is_valid(row).then(|| hosts.value(row)),
                crawled,
            };
            let values = values.of(doc)?;
            let mut order = Vec::new();
            comparison.write_order(&candidate, values, &mut order);
            let verdict = Verdict {
                doc,
                file: number,
                offset,
                checksum: u128::from_be_bytes(checksum.try_into().context("a checksum has 16 bytes")?),
                cluster: doc,
                size: 1,
                rank: 1,
                stays: true,
                score: None,
                names: None,
                revisiting: None,
                gone: Gone::default(),
                group: comparison.group(&candidate, values),
                original: None,
                near: None,
                matched: None,
            };
            add(PageOfContent { verdict, week: Some(week), order, digest: maybe_text(digests, row) })?;
        }
        Ok(())
    })
}

/// A page, in the order of the contents.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct PageOfContent {
    verdict: Verdict,
    /// The week before that has it, in days since 1970; `None` if it is of this week.
    week: Option<i32>,
    /// Its order among the pages of its week.
    order: Vec<u8>,
    /// The payload digest that the table has of it.
    digest: Option<String>,
}

impl PageOfContent {
    /// A page of this week.
    pub(super) fn of_week(verdict: Verdict) -> PageOfContent {
        PageOfContent { verdict, week: None, order: Vec::new(), digest: None }
    }

    /// Its body; and its group, if so many of each group of a cluster stay.
    fn content(&self) -> (u128, u64) {
        (self.verdict.checksum, self.verdict.group)
    }
}

impl Sortable for PageOfContent {
    type Key = ((u128, u64), bool, Option<i32>, Vec<u8>, i64);

    fn key(&self) -> Self::Key {
        (self.content(), self.week.is_none(), self.week, self.order.clone(), self.verdict.doc)
    }

    fn weight(&self) -> usize {
        size_of::<PageOfContent>() + self.order.len() + self.digest.as_ref().map_or(0, String::len)
    }
}

/// Adds the pages whose records are read to `wanted`: those of this week that are in clusters, or
/// have the content of one of a week before; and of these the first of each payload digest, with
/// their ranks.
pub(super) fn add_wanted(mut pages: Sorted<PageOfContent>, wanted: &mut ExternalSort<Verdict>) -> Result<()> {
    let mut content = None;
    // Pages of weeks before that have the content, with their digests.
    let mut before: Vec<(Option<WarcDigest>, Verdict)> = Vec::new();
    let (mut is_wanted, mut without) = (false, 0);
    while let Some(page) = pages.record()? {
        if content != Some(page.content()) {
            content = Some(page.content());
            before.clear();
            (is_wanted, without) = (false, 0);
        }
        if page.week.is_some() {
            let digest = page.digest.as_deref().and_then(WarcDigest::parse);
            without += usize::from(digest.is_none());
            let is_read = match &digest {
                None => without <= MOST_WITHOUT_DIGEST,
                Some(_) => before.iter().all(|(other, _)| *other != digest),
            };
            if is_read {
                let rank = before.len() as u64;
                before.push((digest, Verdict { rank, ..page.verdict }));
            }
            continue;
        }
        is_wanted |= !before.is_empty();
        before.drain(..).try_for_each(|(_, verdict)| wanted.push(verdict))?;
        if is_wanted || page.verdict.size > 1 {
            wanted.push(page.verdict)?;
        }
    }
    Ok(())
}
