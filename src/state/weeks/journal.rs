//! How far an unfinished week is: the waves that are whole, and what was counted in them.

use std::collections::BTreeMap;
use std::path::Path;

use anyhow::{Context, Result};
use serde::{Deserialize, Serialize};

use crate::state::durable::replace;

/// The content of `journal.json` (and, once the week is committed, of `week.json`).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Journal {
    /// What the week is made from: a rerun with another key starts over.
    pub key: InputKey,
    /// Waves whose segments are whole.
    pub waves: usize,
    /// The segments, by wave and shard; a shard without pages has none.
    pub segments: Vec<Segment>,
    /// What was counted in these waves.
    pub counts: Counts,
}

/// What a week is made from.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct InputKey {
    /// The hash of the method, of how pages are read, of the inputs' names and sizes, and of the waves.
    pub hash: String,
    /// Waves in all.
    pub waves: usize,
    /// Input files.
    pub files: usize,
    /// Their bytes, as stored.
    pub bytes: u64,
}

/// The files that one wave gave one shard.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Segment {
    /// The wave, from 0.
    pub wave: usize,
    /// The shard.
    pub shard: u32,
    /// Rows of `documents`.
    pub documents: u64,
    /// Rows of `urls`: those of its URLs that no earlier week has.
    pub urls: u64,
    /// Rows of `features`: documents with words.
    pub features: u64,
    /// Rows of `found-links`.
    pub links: u64,
}

impl Segment {
    /// The name of the segment's file in each of its tables.
    pub fn file(&self) -> String {
        format!("shard{:05}-wave{:05}.parquet", self.shard, self.wave)
    }

    /// The wave in the name of a file that a wave made, of a segment or of anything else.
    pub fn wave_of(file: &str) -> Option<usize> {
        file.strip_suffix(".parquet")?.split_once("-wave")?.1.parse().ok()
    }

    /// The shard in the name of a segment's file.
    pub fn shard_of(file: &str) -> Option<u32> {
        file.strip_prefix("shard")?.split_once("-wave")?.0.parse().ok()
    }
}

/// What was counted while reading.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Counts {
    /// Records read: pages, skipped and bad ones.
    pub records: u64,
    /// Pages kept, one a URL.
    pub documents: u64,
    /// Pages without any word.
    pub empty: u64,
    /// Pages cut at `max-page-bytes`, or marked as cut by the crawler.
    pub cut: u64,
    /// Words of all kept pages.
    pub words: u64,
    /// Bytes of the bodies of all kept pages.
    pub bytes: u64,
    /// Records passed over, by kind.
    pub skipped: BTreeMap<String, u64>,
    /// Bad records, by reason.
    pub rejects: BTreeMap<String, u64>,
    /// Bad records that are counted but not listed in `rejects`, by file: those after the first ten thousand of it.
    pub unlisted: BTreeMap<String, u64>,
}

impl Counts {
    /// Adds what was counted elsewhere.
    pub fn add(&mut self, other: &Counts) {
        self.records += other.records;
        self.documents += other.documents;
        self.empty += other.empty;
        self.cut += other.cut;
        self.words += other.words;
        self.bytes += other.bytes;
        for (sums, counts) in [
            (&mut self.skipped, &other.skipped),
            (&mut self.rejects, &other.rejects),
            (&mut self.unlisted, &other.unlisted),
        ] {
            for (kind, count) in counts {
                *sums.entry(kind.clone()).or_default() += count;
            }
        }
    }

    /// Bad records in all.
    pub fn rejected(&self) -> u64 {
        self.rejects.values().sum()
    }

    /// Bad records over all records; 0 where there are none.
    pub fn reject_share(&self) -> f64 {
        if self.records == 0 { 0.0 } else { self.rejected() as f64 / self.records as f64 }
    }
}

impl Journal {
    /// The journal of a week of which nothing is done yet.
    pub fn new(key: InputKey) -> Journal {
        Journal { key, waves: 0, segments: Vec::new(), counts: Counts::default() }
    }

    /// Reads the journal at `path`; `None` where there is none.
    ///
    /// # Errors
    /// Names the file that cannot be read or is damaged.
    pub fn read(path: &Path) -> Result<Option<Journal>> {
        match std::fs::read_to_string(path) {
            Ok(text) => serde_json::from_str(&text).map(Some).with_context(|| {
                format!("{} is damaged: delete its folder, the week is then made anew", path.display())
            }),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(error).with_context(|| format!("cannot read {}", path.display())),
        }
    }

    /// Writes the journal to `path`, whole or not at all.
    ///
    /// # Errors
    /// Names the file that cannot be written.
    pub fn write(&self, path: &Path) -> Result<()> {
        let text = serde_json::to_vec(self).context("a journal is plain data")?;
        replace(path, &text)
    }

    /// The rows of each shard's url table that this week added so far.
    pub fn urls(&self, shards: u32) -> Vec<u64> {
        let mut rows = vec![0; shards as usize];
        for segment in &self.segments {
            rows[segment.shard as usize] += segment.urls;
        }
        rows
    }

    /// The segments of every shard, in the order of their waves.
    pub fn by_shard(&self) -> BTreeMap<u32, Vec<Segment>> {
        let mut shards: BTreeMap<u32, Vec<Segment>> = BTreeMap::new();
        for segment in &self.segments {
            shards.entry(segment.shard).or_default().push(*segment);
        }
        shards
    }
}
