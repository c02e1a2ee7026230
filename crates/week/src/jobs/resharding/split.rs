//! Which of the new shards each row of an old shard goes to, and the id that it gets there.
//!
//! A shard is the top bits of the hash of a URL. With `factor` times as many shards, shard `s`
//! becomes the shards `s * factor` up to `s * factor + factor - 1`. Ids are given wave by wave, and
//! within a wave in the order of the hashes. So the rows of one of these shards keep their order,
//! and the new row of a document is its rank among them: as if the store had always had so many
//! shards.
//!
//! ```text
//! urls of all weeks       ─▶ the hash of each row that is left
//! documents of all weeks  ─▶ that of rows whose URL was deleted, if a week has the page
//! other deleted rows      ─▶ between two rows of one wave and one new shard: that shard, since a
//!                            wave is in the order of hashes
//! ```
//!
//! Cost: a pass over the hashes of the shard's URLs. Memory: four bytes for each of its URLs.
//! Limit: a deleted row of which no week has the page, and which lies between two new shards, has
//! no known place. Such a store is refused.

use std::ops::Range;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use anyhow::{Context as _, Result, bail, ensure};
use arrow_array::{Array as _, BooleanArray, FixedSizeBinaryArray, Int64Array, RecordBatch, StringArray};

use crate::records::{DocId, DocumentKey, KeyHash};
use crate::state::{CommittedWeek, Segment, Store, WeekJournal, WeekTables};
use crate::structures::RankBitmap;
use crate::tables::{DocumentRow, RowRange, Scan, Table as _, UrlRow, field};

/// The part of a row that is not known yet.
const UNKNOWN: u32 = u32::MAX;

/// A store whose weeks get more shards.
pub struct OldStore {
    pub(super) weeks: Vec<OldWeek>,
    /// How many new shards each shard becomes.
    pub(super) factor: u32,
    /// The number of its shards.
    shards: u32,
    documents: DocumentKey,
}

/// A week of it.
pub(super) struct OldWeek {
    pub(super) committed: CommittedWeek,
    pub(super) journal: WeekJournal,
    pub(super) tables: WeekTables,
}

/// The parts of an old shard: each becomes a new shard.
pub struct ShardSplit {
    /// The old shard.
    shard: u32,
    /// The number of new shards of the store.
    shards: u32,
    factor: u32,
    /// The part of each row.
    parts: Vec<u32>,
}

/// One of the new shards that an old shard becomes.
pub(super) struct NewShard {
    /// Its number.
    pub(super) number: u32,
    /// The old shard.
    pub(super) old: u32,
    /// The rows of the old shard that it gets.
    rows: RankBitmap,
    /// The number of rows of the old shard.
    len: u64,
}

/// Consecutive rows of an old shard that got their ids in the order of their hashes.
struct Ascending {
    rows: Range<u64>,
    /// Whether nothing else can be before and after them: then the first rows may be of any part
    /// from the first one on, and the last ones of any up to the last.
    is_whole: bool,
}

impl OldStore {
    /// Opens the weeks of a store, which has `shards` shards and whose documents are known by
    /// `documents`, to give it `factor` times as many.
    ///
    /// # Errors
    /// If a `week.json` is missing or damaged.
    pub fn open(
        store: &Store,
        weeks: &[CommittedWeek],
        (shards, factor): (u32, u32),
        documents: DocumentKey,
    ) -> Result<OldStore> {
        let open = |committed: &CommittedWeek| {
            let whole = store.whole(committed)?;
            let tables = whole.tables(store.root());
            Ok(OldWeek { committed: committed.clone(), journal: whole.journal, tables })
        };
        let weeks = weeks.iter().map(open).collect::<Result<_>>()?;
        Ok(OldStore { weeks, factor, shards, documents })
    }

    /// How many ids each week has given in each new shard, found by `threads` threads.
    ///
    /// # Errors
    /// As [`OldStore::split`].
    pub fn new_urls(&self, threads: usize) -> Result<Vec<Vec<u64>>> {
        let next = AtomicU32::new(0);
        let search = || -> Result<Vec<(u32, Vec<Vec<u64>>)>> {
            let mut found = Vec::new();
            loop {
                let shard = next.fetch_add(1, Ordering::Relaxed);
                if shard >= self.shards {
                    return Ok(found);
                }
                let split = self.split(shard)?;
                let counts = (0..self.weeks.len()).map(|week| split.counts(self.rows_of_week(week, shard)));
                found.push((shard, counts.collect()));
            }
        };
        let mut urls = vec![vec![0; (self.shards * self.factor) as usize]; self.weeks.len()];
        let found: Result<Vec<_>> = std::thread::scope(|scope| {
            let threads: Vec<_> = (0..threads.max(1)).map(|_| scope.spawn(search)).collect();
            threads.into_iter().map(|thread| thread.join().expect("the search does not panic")).collect()
        });
        for (shard, counts) in found?.into_iter().flatten() {
            let first = (shard * self.factor) as usize;
            for (of_week, counts) in urls.iter_mut().zip(counts) {
                of_week[first..first + counts.len()].copy_from_slice(&counts);
            }
        }
        Ok(urls)
    }

    /// The rows of a shard that got their ids in the week with this number.
    fn rows_of_week(&self, week: usize, shard: u32) -> Range<u64> {
        let of = |week: &OldWeek| week.committed.urls.get(shard as usize).copied().unwrap_or(0);
        let first = self.weeks[..week].iter().map(of).sum();
        first..first + of(&self.weeks[week])
    }

    /// The rows of a shard that got their ids in each of its segments of a week, in the order of
    /// waves. `None` if rows of the segments are missing, because pages were deleted from the week:
    /// then it is not known of which segment they were.
    pub(super) fn rows_of_segments(&self, week: usize, shard: u32) -> Option<Vec<(Segment, Range<u64>)>> {
        let rows = self.rows_of_week(week, shard);
        let mut first = rows.start;
        let segments = self.weeks[week].segments(shard).map(|segment| {
            let own = first..first + segment.urls;
            first = own.end;
            (segment, own)
        });
        let segments: Vec<_> = segments.collect();
        (first == rows.end).then_some(segments)
    }

    /// Finds the parts of a shard.
    ///
    /// # Errors
    /// If a file cannot be read; or if the part of a deleted row is not known: the message says
    /// what to do.
    pub fn split(&self, shard: u32) -> Result<ShardSplit> {
        let len = self.weeks.len().checked_sub(1).map_or(0, |last| self.rows_of_week(last, shard).end);
        let parts = vec![UNKNOWN; usize::try_from(len).context("a shard has too many rows")?];
        let mut split = ShardSplit { shard, shards: self.shards * self.factor, factor: self.factor, parts };
        let mut of_segments: Vec<Vec<Option<Range<u64>>>> = Vec::new();
        for week in &self.weeks {
            let mut known = Vec::new();
            for segment in week.segments(shard).filter(|segment| segment.urls > 0) {
                known.push(split.add_urls(week.tables.rows(UrlRow::NAME, &segment.file())?)?);
            }
            of_segments.push(known);
        }
        if split.parts.contains(&UNKNOWN) {
            for week in &self.weeks {
                for segment in week.segments(shard).filter(|segment| segment.documents > 0) {
                    split.add_documents(week.tables.rows(DocumentRow::NAME, &segment.file())?, self.documents)?;
                }
            }
        }
        if split.parts.contains(&UNKNOWN) {
            for (week, known) in of_segments.into_iter().enumerate() {
                split.fill(&self.ascending(week, shard, known));
            }
        }
        if let Some(row) = split.parts.iter().position(|part| *part == UNKNOWN) {
            let of_row = |week: &usize| self.rows_of_week(*week, shard).contains(&(row as u64));
            let week = (0..self.weeks.len()).find(of_row).map(|week| self.weeks[week].committed.week);
            bail!(
                "a page was deleted from week {} whose id was between those of two of the new shards: no table says any more to which \
                 it belonged, and so the ids after it are not known. Run the weeks again, from their inputs, into another --store \
                 with shards = {} in [method]",
                week.map_or_else(String::new, |week| week.to_string()),
                self.shards * self.factor
            );
        }
        Ok(split)
    }

    /// The rows of a week that got their ids in the order of their hashes; `known` has the first
    /// and last rows of each segment with URLs that has some left.
    fn ascending(&self, week: usize, shard: u32, known: Vec<Option<Range<u64>>>) -> Vec<Ascending> {
        if let Some(segments) = self.rows_of_segments(week, shard) {
            return segments.into_iter().map(|(_, rows)| Ascending { rows, is_whole: true }).collect();
        }
        // The rows of revisits have an order of their own, and their segment may be gone.
        let OldWeek { journal, .. } = &self.weeks[week];
        let is_one =
            journal.waves == 1 && journal.counts.revisits == 0 && self.weeks[week].segments(shard).count() == 1;
        if is_one {
            return vec![Ascending { rows: self.rows_of_week(week, shard), is_whole: true }];
        }
        known.into_iter().flatten().map(|rows| Ascending { rows, is_whole: false }).collect()
    }
}

impl OldWeek {
    /// The segments of a shard, in the order of the waves.
    pub(super) fn segments(&self, shard: u32) -> impl Iterator<Item = Segment> {
        let mut segments: Vec<Segment> =
            self.journal.segments.iter().filter(|segment| segment.shard == shard).copied().collect();
        segments.sort_unstable();
        segments.into_iter()
    }
}

impl ShardSplit {
    /// Notes the part of a document, by the hash of its key.
    fn add(&mut self, doc: DocId, hash: KeyHash, path: &Path) -> Result<()> {
        let (row, number) = (doc.row() as usize, hash.shard(self.shards));
        ensure!(
            doc.shard() == self.shard && row < self.parts.len() && number / self.factor == self.shard,
            "{} holds the document {doc}, which does not belong to its shard",
            path.display()
        );
        self.parts[row] = number % self.factor;
        Ok(())
    }

    /// Notes the parts of the rows of a segment in `urls`. Returns its rows from the first to the
    /// last one; `None` if it has none.
    fn add_urls(&mut self, rows: RowRange) -> Result<Option<Range<u64>>> {
        let (path, mut known) = (rows.path().to_owned(), None::<Range<u64>>);
        Scan::open(rows, &["doc", "hash"])?.for_each(|batch| {
            let (docs, hashes): (&Int64Array, &FixedSizeBinaryArray) = (field(batch, "doc")?, field(batch, "hash")?);
            for (row, doc) in docs.values().iter().enumerate() {
                let doc = DocId::from_table(*doc);
                let hash = KeyHash::from_bytes(hashes.value(row).try_into().context("a hash has 16 bytes")?);
                self.add(doc, hash, &path)?;
                let first = known.as_ref().map_or(doc.row(), |known| known.start);
                known = Some(first..doc.row() + 1);
            }
            Ok(())
        })?;
        Ok(known)
    }

    /// Notes the parts of documents whose part is not known: their URLs were deleted since.
    fn add_documents(&mut self, rows: RowRange, documents: DocumentKey) -> Result<()> {
        let path = rows.path().to_owned();
        let columns: &[&str] = match documents {
            DocumentKey::Url => &["doc", "url"],
            DocumentKey::Id => &["doc", "id"],
            DocumentKey::Row => &["doc", "file", "offset"],
        };
        Scan::open(rows, columns)?.for_each(|batch| {
            let docs: &Int64Array = field(batch, "doc")?;
            for (row, doc) in docs.values().iter().enumerate() {
                let doc = DocId::from_table(*doc);
                if self.parts.get(doc.row() as usize) != Some(&UNKNOWN) {
                    continue;
                }
                if let Some(hash) = hash_of(batch, row, documents)? {
                    self.add(doc, hash, &path)?;
                }
            }
            Ok(())
        })
    }

    /// Finds the parts of rows that lie between two rows of the same part.
    fn fill(&mut self, ascending: &[Ascending]) {
        for Ascending { rows, is_whole } in ascending {
            let parts = &mut self.parts[rows.start as usize..rows.end as usize];
            let mut before = is_whole.then_some(0);
            let mut row = 0;
            while row < parts.len() {
                if parts[row] != UNKNOWN {
                    before = Some(parts[row]);
                    row += 1;
                    continue;
                }
                let end =
                    parts[row..].iter().position(|part| *part != UNKNOWN).map_or(parts.len(), |known| row + known);
                let after = parts.get(end).copied().or(is_whole.then_some(self.factor - 1));
                if before == after
                    && let Some(part) = before
                {
                    parts[row..end].fill(part);
                }
                row = end;
            }
        }
    }

    /// How many of some rows go to each part.
    fn counts(&self, rows: Range<u64>) -> Vec<u64> {
        let mut counts = vec![0; self.factor as usize];
        self.parts[rows.start as usize..rows.end as usize].iter().for_each(|part| counts[*part as usize] += 1);
        counts
    }

    /// The part with this number.
    pub(super) fn part(&self, part: u32) -> NewShard {
        let mut bits = vec![0u64; self.parts.len().div_ceil(64)];
        for (row, _) in self.parts.iter().enumerate().filter(|(_, of)| **of == part) {
            bits[row / 64] |= 1 << (row % 64);
        }
        let (number, len) = (self.shard * self.factor + part, self.parts.len() as u64);
        NewShard { number, old: self.shard, rows: RankBitmap::of_bits(&bits), len }
    }
}

impl NewShard {
    /// The new id of a document of the old shard; `None` if it goes to another of the new shards.
    ///
    /// # Errors
    /// If the old shard has no such document: the table is damaged.
    pub(super) fn new_doc(&self, doc: DocId) -> Result<Option<DocId>> {
        ensure!(
            doc.shard() == self.old && doc.row() < self.len,
            "the document {doc} is not of shard {}: the table is damaged",
            self.old
        );
        let (is_own, rank) = self.rows.get(doc.row() as usize);
        Ok(is_own.then(|| DocId::new(self.number, rank as u64)))
    }

    /// How many of some rows of the old shard it gets.
    pub(super) fn count(&self, rows: &Range<u64>) -> u64 {
        let rank = |row: u64| if row < self.len { self.rows.get(row as usize).1 } else { self.rows.count() };
        (rank(rows.end) - rank(rows.start)) as u64
    }

    /// Which rows of a table are of its documents.
    pub(super) fn of_batch(&self, batch: &RecordBatch) -> Result<BooleanArray> {
        let docs: &Int64Array = field(batch, "doc")?;
        docs.values().iter().map(|doc| Ok(Some(self.new_doc(DocId::from_table(*doc))?.is_some()))).collect()
    }

    /// Rows that are all of its documents, with their new ids.
    pub(super) fn renamed(&self, batch: &RecordBatch) -> Result<RecordBatch> {
        let docs: &Int64Array = field(batch, "doc")?;
        let new = |doc: &i64| -> Result<i64> {
            let doc = self.new_doc(DocId::from_table(*doc))?;
            Ok(doc.context("only rows of its documents are written")?.to_table())
        };
        let docs: Vec<i64> = docs.values().iter().map(new).collect::<Result<_>>()?;
        let mut columns = batch.columns().to_vec();
        columns[batch.schema().index_of("doc")?] = Arc::new(Int64Array::from(docs));
        Ok(RecordBatch::try_new(batch.schema(), columns)?)
    }
}

/// The hash of the key of a document; `None` if the row does not have the key.
fn hash_of(batch: &RecordBatch, row: usize, documents: DocumentKey) -> Result<Option<KeyHash>> {
    let text = |name| -> Result<Option<&str>> {
        let texts: &StringArray = field(batch, name)?;
        Ok(texts.is_valid(row).then(|| texts.value(row)))
    };
    Ok(match documents {
        DocumentKey::Url => text("url")?.map(KeyHash::of),
        DocumentKey::Id => text("id")?.map(KeyHash::of),
        DocumentKey::Row => {
            let offset = field::<Int64Array>(batch, "offset")?.value(row) as u64;
            text("file")?.map(|file| KeyHash::of_place(file, offset))
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A split of rows with these parts.
    fn split(parts: &[u32]) -> ShardSplit {
        ShardSplit { shard: 3, shards: 16, factor: 4, parts: parts.to_vec() }
    }

    #[test]
    fn a_new_row_is_the_rank_among_the_rows_of_the_new_shard() {
        let parts: Vec<u32> = (0..1000).map(|row: u32| row * row % 7 % 4).collect();
        let split = split(&parts);
        for part in 0..4 {
            let new = split.part(part);
            let mut next = 0;
            for (row, of) in parts.iter().enumerate() {
                let found = new.new_doc(DocId::new(3, row as u64)).unwrap();
                let wanted = (*of == part).then(|| DocId::new(12 + part, next));
                assert_eq!(found, wanted, "{row}");
                assert_eq!(new.count(&(0..row as u64)), next);
                next += u64::from(found.is_some());
            }
            assert_eq!(new.count(&(0..1000)), next);
            assert_eq!(split.counts(0..1000)[part as usize], next);
            assert!(new.new_doc(DocId::new(3, 1000)).is_err() && new.new_doc(DocId::new(2, 0)).is_err());
        }
    }

    #[test]
    fn a_deleted_row_is_of_the_shard_of_both_of_its_neighbours() {
        let u = UNKNOWN;
        let filled = |parts: &[u32], rows: &[(Range<u64>, bool)]| {
            let mut split = split(parts);
            let rows = rows.iter().cloned().map(|(rows, is_whole)| Ascending { rows, is_whole });
            split.fill(&rows.collect::<Vec<_>>());
            split.parts
        };
        let parts = [u, 0, u, u, 0, u, 1, 3, u];
        assert_eq!(filled(&parts, &[(0..9, true)]), [0, 0, 0, 0, 0, u, 1, 3, 3]);
        // Without the ends of the wave nothing is known of its first and last rows.
        assert_eq!(filled(&parts, &[(0..9, false)]), [u, 0, 0, 0, 0, u, 1, 3, u]);
        // A wave ends where another begins.
        assert_eq!(filled(&[1, u, 1, 2], &[(0..1, true), (1..4, true)]), [1, u, 1, 2]);
        assert_eq!(filled(&[1, u, 1, 2], &[(0..4, true)]), [1, 1, 1, 2]);
    }
}
