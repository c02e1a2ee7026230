//! `journal.json`: the complete waves of an unfinished week, and what was counted in them.
//!
//! `_nigh/work/scratch-DATE/journal.json` is one JSON object, replaced atomically after each wave.
//! A wave is complete if and only if the journal counts it; a rerun removes the files of other
//! waves and continues after the last complete one.
//!
//! ```text
//! {
//!   "key": { "hash": "…", "waves": 9, "files": 70, "bytes": 123 },     what the week is made from
//!   "waves": 3,                                                        complete waves
//!   "segments": [ { "wave": 0, "shard": 5, "documents": 7, "urls": 7, "features": 6, "links": 4, "chunks": 6 } ],
//!   "counts": {…}                                                      of these waves
//! }
//! ```
//!
//! A segment has at most one piece in each table, named `shard00005-wave00000.parquet` (see
//! `bundles.rs`); a table without rows has none. Once the week is committed, the journal is a field
//! of `week.json`.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use anyhow::{Context, Result};
use serde::{Deserialize, Serialize};

use crate::records::Week;
use crate::state::durable::replace;
use crate::structures::CompactSort;

/// The content of `journal.json`, and once the week is committed the field `journal` of
/// `week.json`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct WeekJournal {
    /// What the week is made from. A rerun with another key starts from nothing.
    pub key: InputKey,
    /// The number of complete waves.
    pub waves: usize,
    /// The segments of these waves, and those of pages of earlier weeks that stay, whose waves come
    /// after them. A wave has no segment for a shard without documents in it.
    pub segments: Vec<Segment>,
    /// What was counted in these waves, and of the pages of earlier weeks that stay.
    pub counts: ReadingCounts,
    /// The inputs of earlier weeks whose pages may be among the documents, by week: their names and
    /// stamps, as [`InputKey::stamps`].
    #[serde(default)]
    pub earlier_inputs: BTreeMap<Week, BTreeMap<String, String>>,
    /// The first record that has the id of another one, and another text, of the first wave with
    /// one; none in weeks of older versions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub another_text: Option<AnotherText>,
}

/// A record that has the id of another one, and another text. In the order of files and places.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct AnotherText {
    /// The name of its input.
    pub file: String,
    /// The position of the record in the input, as `offset` of tables.
    pub offset: u64,
    /// The id; none if the other record is of an earlier wave.
    pub id: Option<String>,
}

impl std::fmt::Display for AnotherText {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match &self.id {
            Some(id) => write!(f, "the id {id:?}, at {} of {}", self.offset, self.file),
            None => write!(f, "the id of the record at {} of {}", self.offset, self.file),
        }
    }
}

/// What a week is made from.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct InputKey {
    /// The hash of the method, of how pages are read, of the inputs' names, sizes and stamps, and
    /// of the waves.
    pub hash: String,
    /// The number of waves.
    pub waves: usize,
    /// The number of input files.
    pub files: usize,
    /// The size of the input files in bytes, as stored.
    pub bytes: u64,
    /// The hash of the size and stamp of each input, by its name, in the order of the inputs:
    /// enough to name the files that changed.
    pub stamps: BTreeMap<String, String>,
}

/// The rows of one shard and one wave: at most one piece in each table.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Segment {
    /// The wave, from 0.
    pub wave: usize,
    /// The shard that all rows belong to.
    pub shard: u32,
    /// Rows of `documents`.
    pub documents: u64,
    /// Rows of `urls`: URLs that no earlier week has.
    pub urls: u64,
    /// Rows of `features`: documents with words.
    pub features: u64,
    /// Rows of `found-links`.
    pub links: u64,
    /// Rows of `chunks`: as many as of `features`, or none if the week does not keep chunks. This
    /// is how a later job finds out, so the option needs no field of its own, and a week may get
    /// its chunks later. Weeks of older versions have none.
    #[serde(default)]
    pub chunks: u64,
    /// Where the rows of `features`, `links` and `chunks` are, if they stayed in an earlier week:
    /// see [`WeekTables::of_segment`](super::WeekTables::of_segment).
    #[serde(default)]
    pub origin: Option<SegmentOrigin>,
}

/// A segment of an earlier week, some of whose pages stay though they were not crawled again. Their
/// rows of `features`, `links` and `chunks`, which are most of what is known of a page, stay in
/// that week's files.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct SegmentOrigin {
    /// The week whose crawl has the pages.
    pub week: Week,
    /// The wave of the segment there.
    pub wave: usize,
    /// The documents that it had.
    pub documents: u64,
}

impl Segment {
    /// The name of the segment's piece in each of its tables.
    pub fn file(&self) -> String {
        format!("shard{:05}-wave{:05}.parquet", self.shard, self.wave)
    }

    /// The wave in the name of a file that a wave wrote: of a segment, or of another table.
    ///
    /// ```
    /// use nigh_store::state::Segment;
    ///
    /// let segment = Segment { wave: 17, shard: 3, documents: 9, urls: 9, features: 8, links: 0, chunks: 0, origin: None };
    /// assert_eq!(segment.file(), "shard00003-wave00017.parquet");
    /// assert_eq!(Segment::wave_of(&segment.file()), Some(17));
    /// assert_eq!(Segment::shard_of(&segment.file()), Some(3));
    /// ```
    pub fn wave_of(file: &str) -> Option<usize> {
        let name = file.strip_suffix(".parquet").or_else(|| file.strip_suffix(".shingles"))?;
        name.split_once("-wave")?.1.parse().ok()
    }

    /// The shard in the name of a segment's file.
    pub fn shard_of(file: &str) -> Option<u32> {
        file.strip_prefix("shard")?.split_once("-wave")?.0.parse().ok()
    }
}

/// Counts of the reading of the input.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReadingCounts {
    /// Records read: pages, skipped records and bad records.
    pub records: u64,
    /// Pages kept, one per URL.
    pub documents: u64,
    /// Pages without words.
    pub empty: u64,
    /// Of these, pages without bytes; 0 in weeks of older versions.
    #[serde(default)]
    pub no_bytes: u64,
    /// Pages with fewer words than a shingle has, and at least one; 0 in weeks of older versions.
    #[serde(default)]
    pub short: u64,
    /// Pages cut at `max-page-bytes`, or marked as cut by the crawler.
    pub cut: u64,
    /// Pages whose fetch date could not be parsed; duplicates of a URL are counted, too.
    #[serde(default)]
    pub unread_dates: u64,
    /// Pages read whose main content was asked for and not found, so that all of their text counts;
    /// duplicates of a URL are counted, too.
    #[serde(default)]
    pub whole_pages: u64,
    /// Words of all kept pages.
    pub words: u64,
    /// Bytes of the bodies of all kept pages.
    pub bytes: u64,
    /// Revisit records and answers 304: downloads whose page is that of another one.
    #[serde(default)]
    pub revisits: u64,
    /// What came of them, once all waves are read; none if there are none, and in weeks of older
    /// versions.
    #[serde(default)]
    pub revisited: Option<RevisitCounts>,
    /// Skipped records, by kind.
    pub skipped: BTreeMap<String, u64>,
    /// Bad records, by reason.
    pub rejects: BTreeMap<String, u64>,
    /// Bad records that are counted but not listed in `rejects`, by file: those after the first ten
    /// thousand of the file.
    pub unlisted: BTreeMap<String, u64>,
    /// Bytes that could not be read, as stored, by file: those of damaged and cut members, and of
    /// files that are not whole.
    #[serde(default)]
    pub unread: BTreeMap<String, u64>,
    /// The files that end inside a member or a record.
    #[serde(default)]
    pub ends_early: BTreeSet<String>,
}

/// What came of revisits. Those that are not counted here are of a URL that has a page already, or
/// has another revisit; of an image or the like; or of a store that does not know documents by
/// their URLs.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct RevisitCounts {
    /// URLs whose page is one of this crawl.
    pub here: u64,
    /// URLs whose page is one of an earlier week.
    pub earlier: u64,
    /// URLs whose page is not known, by the file of the record: what it refers to is not in the
    /// store.
    pub not_known: BTreeMap<String, u64>,
}

impl RevisitCounts {
    /// Adds other counts to these.
    pub fn add(&mut self, other: RevisitCounts) {
        self.here += other.here;
        self.earlier += other.earlier;
        for (file, count) in other.not_known {
            *self.not_known.entry(file).or_default() += count;
        }
    }

    /// The number of URLs whose page is not known.
    pub fn unknown(&self) -> u64 {
        self.not_known.values().sum()
    }
}

impl ReadingCounts {
    /// Adds other counts to these, except what came of revisits: it is counted once, after all
    /// waves.
    pub fn add(&mut self, other: &ReadingCounts) {
        self.records += other.records;
        self.documents += other.documents;
        self.empty += other.empty;
        self.no_bytes += other.no_bytes;
        self.short += other.short;
        self.cut += other.cut;
        self.unread_dates += other.unread_dates;
        self.whole_pages += other.whole_pages;
        self.revisits += other.revisits;
        self.words += other.words;
        self.bytes += other.bytes;
        for (sums, counts) in [
            (&mut self.skipped, &other.skipped),
            (&mut self.rejects, &other.rejects),
            (&mut self.unlisted, &other.unlisted),
            (&mut self.unread, &other.unread),
        ] {
            for (kind, count) in counts {
                *sums.entry(kind.clone()).or_default() += count;
            }
        }
        self.ends_early.extend(other.ends_early.iter().cloned());
    }

    /// The number of bytes that could not be read.
    pub fn unread_bytes(&self) -> u64 {
        self.unread.values().sum()
    }

    /// The files that were not read whole, each with the number of bytes that were not read, the
    /// most first, and whether it ends early.
    ///
    /// ```
    /// use nigh_store::state::ReadingCounts;
    /// let unread = [("a.gz".to_owned(), 7), ("b.gz".to_owned(), 9)].into();
    /// let ends_early = ["a.gz".to_owned(), "c.warc".to_owned()].into();
    /// let counts = ReadingCounts { unread, ends_early, ..ReadingCounts::default() };
    /// assert_eq!(counts.incomplete(), [("b.gz", 9, false), ("a.gz", 7, true), ("c.warc", 0, true)]);
    /// ```
    pub fn incomplete(&self) -> Vec<(&str, u64, bool)> {
        let names: BTreeSet<&String> = self.unread.keys().chain(&self.ends_early).collect();
        let of = |name: &String| self.unread.get(name).copied().unwrap_or(0);
        let mut files: Vec<(&str, u64, bool)> =
            names.into_iter().map(|name| (name.as_str(), of(name), self.ends_early.contains(name))).collect();
        files.sort_items_by_key(|(_, bytes, _)| std::cmp::Reverse(*bytes));
        files
    }

    /// The number of bad records.
    pub fn rejected(&self) -> u64 {
        self.rejects.values().sum()
    }

    /// The number of URLs of which the crawl has a page or a revisit: those of pages as they were
    /// read, of other pages that revisits name, and of revisits that are not known.
    pub fn answered(&self) -> u64 {
        let others = self.skipped.values().sum::<u64>() + self.rejected() + self.revisits;
        let revisited = self.revisited.as_ref().map_or(0, |of| of.here + of.earlier + of.unknown());
        self.records.saturating_sub(others) + revisited
    }

    /// The share of bad records among all records; 0 if there are no records.
    pub fn reject_share(&self) -> f64 {
        if self.records == 0 { 0.0 } else { self.rejected() as f64 / self.records as f64 }
    }
}

impl WeekJournal {
    /// The journal of a week without a complete wave.
    pub fn new(key: InputKey) -> WeekJournal {
        WeekJournal {
            key,
            waves: 0,
            segments: Vec::new(),
            counts: ReadingCounts::default(),
            earlier_inputs: BTreeMap::new(),
            another_text: None,
        }
    }

    /// Whether the journal has a wave or a segment. Of a week that is made from the tables of
    /// another one, it is written once, with all waves and after all segments.
    pub fn is_begun(&self) -> bool {
        self.waves > 0 || !self.segments.is_empty()
    }

    /// The inputs of the documents of a week, by the week whose crawl they are of: those of earlier
    /// weeks, and its own.
    pub fn inputs(&self, week: Week) -> impl Iterator<Item = (Week, &BTreeMap<String, String>)> {
        self.earlier_inputs.iter().map(|(week, names)| (*week, names)).chain([(week, &self.key.stamps)])
    }

    /// The weeks and names of these inputs.
    pub fn input_names(&self, week: Week) -> impl Iterator<Item = (Week, &str)> {
        self.inputs(week).flat_map(|(week, names)| names.keys().map(move |name| (week, name.as_str())))
    }

    /// The weeks and names of those of earlier weeks.
    pub fn earlier_names(&self) -> impl Iterator<Item = (Week, &str)> {
        self.earlier_inputs.iter().flat_map(|(week, names)| names.keys().map(move |name| (*week, name.as_str())))
    }

    /// Reads the journal at `path`; `None` if it does not exist.
    ///
    /// # Errors
    /// If the file cannot be read or is damaged.
    pub fn read(path: &Path) -> Result<Option<WeekJournal>> {
        match std::fs::read_to_string(path) {
            Ok(text) => serde_json::from_str(&text).map(Some).with_context(|| {
                format!("{} is damaged: remove its folder, and the week is made again from the start", path.display())
            }),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(error).with_context(|| format!("cannot read {}", path.display())),
        }
    }

    /// Writes the journal to `path` atomically and durably.
    ///
    /// # Errors
    /// If the file cannot be written.
    pub fn write(&self, path: &Path) -> Result<()> {
        let text = serde_json::to_vec(self).context("a journal is plain data")?;
        replace(path, &text)
    }

    /// The rows that the complete waves added to `urls`, in each of `shards` shards.
    pub fn urls(&self, shards: u32) -> Vec<u64> {
        let mut rows = vec![0; shards as usize];
        for segment in &self.segments {
            rows[segment.shard as usize] += segment.urls;
        }
        rows
    }

    /// The segments of each shard, in the order of the waves.
    pub fn by_shard(&self) -> BTreeMap<u32, Vec<Segment>> {
        let mut shards: BTreeMap<u32, Vec<Segment>> = BTreeMap::new();
        for segment in &self.segments {
            shards.entry(segment.shard).or_default().push(*segment);
        }
        shards
    }
}
