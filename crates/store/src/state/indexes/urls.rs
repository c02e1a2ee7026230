//! The index from a URL's hash to its document id: one shard's sorted files, read side by side.
//!
//! A URL has one row in `urls`, in a segment of the week that first saw it; its id never changes.
//! Every segment is sorted by hash, so a lookup of ascending hashes reads each file once, with one
//! batch of it in memory.
//!
//! To bound the number of files, segments are merged like the levels of a log-structured merge
//! tree. After every 16th wave the last 16 segments are merged into a run of level 1, after every
//! 16th such run into a run of level 2, and so on:
//!
//! ```text
//! _nigh/work/week=DATE/urls/wave00017-worker00001.parquet                   columns doc, hash, url, id; the shards of worker 1
//! _nigh/work/scratch-DATE/url-runs/shard00005-level1-wave00015.parquet      columns doc, hash; waves 0 to 15
//! urls/week=DATE/nigh-00001-00000.parquet                                   the segments of a committed week, packed
//! _nigh/before=DATE/COMMIT/urls|url-runs/shard00005.parquet                 the URLs of removed weeks
//! ```
//!
//! A lookup opens at most a few dozen files of a week (15 per level and 15 segments), however many
//! waves it has. Each hash is written once more for every factor of 16. Runs can be made again from
//! segments; they are not kept with the week.
//!
//! Limitation: of earlier weeks all segments of the shard are open at once, one per week and wave
//! with new URLs. After years of weeks that is many files; removing old weeks
//! ([`Store::vacuum`](crate::state::Store::vacuum)) merges them into one.

use std::path::PathBuf;

use anyhow::Result;
use arrow_array::{FixedSizeBinaryArray, Int64Array, RecordBatch};

use crate::records::{DocId, KeyHash};
use crate::state::weeks::{Segment, Unfinished};
use crate::tables::{RowRange, Scan, Table, UrlRow, Writer, field};

/// Segments per run of level 1, and runs per run of the next level.
const FAN: usize = 16;

/// A row of a run: the columns of `urls` that a lookup needs.
#[derive(Table)]
#[table(name = "url-runs")]
pub(crate) struct UrlRunRow {
    #[column(unique)]
    pub doc: i64,
    #[column(unique, random)]
    pub hash: [u8; 16],
}

/// The files in which the URLs of one shard are looked up: of an unfinished week, and of earlier
/// weeks.
pub struct UrlIndex<'a> {
    /// The unfinished week.
    pub unfinished: &'a Unfinished,
    /// The shard.
    pub shard: u32,
    /// The segments of the shard so far, by wave.
    pub segments: &'a [Segment],
    /// The URLs of the shard of earlier weeks, as
    /// [`Store::url_indexes`](crate::state::Store::url_indexes) lists them.
    pub earlier: &'a [RowRange],
}

impl UrlIndex<'_> {
    /// The path of the run of a level that ends with wave `last`.
    fn run(&self, level: usize, last: usize) -> PathBuf {
        let file = format!("shard{:05}-level{level}-wave{last:05}.parquet", self.shard);
        self.unfinished.scratch_table(UrlRunRow::NAME, &file)
    }

    /// Adds the fewest files that have all URLs of the waves `first..end`. A run of `level` begins
    /// at wave `first`.
    ///
    /// In short: take the runs of `level` that fit, then fill the rest from the level below; level
    /// 0 are the segments.
    fn files(&self, level: usize, first: usize, end: usize, files: &mut Vec<RowRange>) -> Result<()> {
        if level == 0 {
            for segment in
                self.segments.iter().filter(|segment| (first..end).contains(&segment.wave) && segment.urls > 0)
            {
                files.push(self.unfinished.rows::<UrlRow>(&segment.file())?);
            }
            return Ok(());
        }
        let span = FAN.pow(level as u32);
        let mut wave = first;
        while wave + span <= end {
            let run = self.run(level, wave + span - 1);
            if run.exists() {
                files.push(run.into());
            } else {
                // These waves have no pages of this shard, or the run was deleted.
                self.files(level - 1, wave, wave + span, files)?;
            }
            wave += span;
        }
        self.files(level - 1, wave, end, files)
    }

    /// Opens the files with the URLs of earlier weeks and of the first `waves` waves.
    ///
    /// # Errors
    /// If a file cannot be read.
    pub fn lookup(&self, waves: usize) -> Result<UrlLookup> {
        let mut files = self.earlier.to_vec();
        let levels = (0..).find(|level| FAN.pow(level + 1) > waves).unwrap_or(0);
        self.files(levels as usize, 0, waves, &mut files)?;
        UrlLookup::open(files)
    }

    /// Merges the last 16 segments if `wave` completes them, then the last 16 runs of each level
    /// that it completes.
    ///
    /// # Errors
    /// If a file cannot be read or written.
    pub fn merge(&self, wave: usize) -> Result<()> {
        for level in 1.. {
            let span = FAN.pow(level);
            if !(wave + 1).is_multiple_of(span) {
                return Ok(());
            }
            let mut files = Vec::new();
            self.files(level as usize - 1, wave + 1 - span, wave + 1, &mut files)?;
            let mut writer: Writer<UrlRunRow> = Writer::create(&self.run(level as usize, wave))?;
            let mut urls = UrlLookup::open(files)?;
            while let Some((hash, doc)) = urls.next_key()? {
                writer.push(UrlRunRow { doc: doc.to_table(), hash: hash.to_bytes() })?;
            }
            writer.finish_if_any()?;
        }
        Ok(())
    }
}

/// Files of a shard, read side by side in the order of hashes.
pub struct UrlLookup {
    cursors: Vec<UrlCursor>,
    /// The last hash that was looked up.
    last: Option<KeyHash>,
}

/// A position in one file.
struct UrlCursor {
    scan: Scan,
    batch: Option<RecordBatch>,
    row: usize,
}

impl UrlLookup {
    /// Opens these rows.
    ///
    /// # Errors
    /// If a file cannot be read.
    pub fn open(files: impl IntoIterator<Item = RowRange>) -> Result<UrlLookup> {
        let open = |rows: RowRange| {
            let mut scan = Scan::open(rows, &["doc", "hash"])?;
            Ok(UrlCursor { batch: scan.batch()?, scan, row: 0 })
        };
        let cursors = files.into_iter().map(open).collect::<Result<_>>()?;
        Ok(UrlLookup { cursors, last: None })
    }

    /// The document id of a URL; `None` if no file has the URL. Hashes must be looked up in
    /// ascending order.
    ///
    /// # Errors
    /// If a file is damaged.
    pub fn find(&mut self, hash: KeyHash) -> Result<Option<DocId>> {
        debug_assert!(self.last.is_none_or(|last| last <= hash), "hashes are looked up in ascending order");
        self.last = Some(hash);
        for cursor in &mut self.cursors {
            if let Some(doc) = cursor.find(hash)? {
                return Ok(Some(doc));
            }
        }
        Ok(None)
    }

    /// The next URL of all files, in the order of hashes; `None` at the end.
    pub fn next_key(&mut self) -> Result<Option<(KeyHash, DocId)>> {
        let mut smallest: Option<(KeyHash, DocId, usize)> = None;
        for (file, cursor) in self.cursors.iter_mut().enumerate() {
            if let Some((hash, doc)) = cursor.head()?
                && smallest.is_none_or(|(least, ..)| hash < least)
            {
                smallest = Some((hash, doc, file));
            }
        }
        let Some((hash, doc, file)) = smallest else { return Ok(None) };
        self.cursors[file].row += 1;
        Ok(Some((hash, doc)))
    }
}

impl UrlCursor {
    /// The URL at the current row; `None` at the end of the file.
    fn head(&mut self) -> Result<Option<(KeyHash, DocId)>> {
        while let Some(batch) = &self.batch {
            if self.row < batch.num_rows() {
                let (hashes, docs): (&FixedSizeBinaryArray, &Int64Array) =
                    (field(batch, "hash")?, field(batch, "doc")?);
                let hash = KeyHash::from_bytes(hashes.value(self.row).try_into().unwrap_or_default());
                return Ok(Some((hash, DocId::from_table(docs.value(self.row)))));
            }
            self.batch = self.scan.batch()?;
            self.row = 0;
        }
        Ok(None)
    }

    /// Moves to the first row whose hash is not smaller than `hash`; its document, if the hash is
    /// equal.
    fn find(&mut self, hash: KeyHash) -> Result<Option<DocId>> {
        while let Some(batch) = &self.batch {
            let hashes: &FixedSizeBinaryArray = field(batch, "hash")?;
            let hash_at = |row: usize| KeyHash::from_bytes(hashes.value(row).try_into().unwrap_or_default());
            let rows = batch.num_rows();
            // A batch whose last hash is smaller is skipped at once; within a batch, rows are
            // compared one by one.
            if rows > 0 && hash_at(rows - 1) >= hash {
                while hash_at(self.row) < hash {
                    self.row += 1;
                }
                let docs: &Int64Array = field(batch, "doc")?;
                return Ok((hash_at(self.row) == hash).then(|| DocId::from_table(docs.value(self.row))));
            }
            self.batch = self.scan.batch()?;
            self.row = 0;
        }
        Ok(None)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::state::weeks::BundleName;

    #[test]
    fn any_number_of_waves_is_looked_up_in_few_files() {
        let folder = tempfile::tempdir().unwrap();
        let week = "2024-01-08".parse().unwrap();
        let unfinished = crate::state::store::Store::at(folder.path()).unfinished(week);
        let mut segments: Vec<Segment> = Vec::new();
        let waves = 300;
        let hash = |wave: usize| KeyHash::of(&format!("http://h/{wave}"));
        for wave in 0..waves {
            let mut written: Vec<KeyHash> = (0..wave).filter(|wave| wave % 7 != 3).map(hash).collect();
            written.sort_unstable();
            let index = UrlIndex { unfinished: &unfinished, shard: 2, segments: &segments, earlier: &[] };
            let mut lookup = index.lookup(wave).unwrap();
            assert!(lookup.cursors.len() <= 3 * FAN, "{} files", lookup.cursors.len());
            if wave % 23 == 0 {
                assert!(written.iter().all(|hash| lookup.find(*hash).unwrap().is_some()), "wave {wave}");
            }
            // Some waves have no pages of the shard.
            if wave % 7 != 3 {
                let segment =
                    Segment { wave, shard: 2, documents: 1, urls: 1, features: 0, links: 0, chunks: 0, origin: None };
                let mut bundle = unfinished.bundle::<UrlRow>(BundleName::Wave(wave, 0));
                bundle.push(UrlRow { doc: wave as i64, hash: hash(wave).to_bytes(), url: None, id: None }).unwrap();
                bundle.end_piece(&segment.file()).unwrap();
                bundle.finish().unwrap();
                segments.push(segment);
            }
            UrlIndex { unfinished: &unfinished, shard: 2, segments: &segments, earlier: &[] }.merge(wave).unwrap();
        }
    }

    #[test]
    fn every_url_of_every_file_is_found() {
        let folder = tempfile::tempdir().unwrap();
        let mut hashes: Vec<KeyHash> = (0..10_000).map(|i| KeyHash::of(&format!("http://h/{i}"))).collect();
        hashes.sort_unstable();
        let paths: Vec<PathBuf> = (0..3).map(|i| folder.path().join(format!("{i}.parquet"))).collect();
        for (i, path) in paths.iter().enumerate() {
            let mut writer: Writer<UrlRow> = Writer::create(path).unwrap();
            // Every fourth URL is in none of the files.
            for (row, hash) in hashes.iter().enumerate().filter(|(row, _)| row % 4 == i) {
                writer.push(UrlRow { doc: row as i64, hash: hash.to_bytes(), url: None, id: None }).unwrap();
            }
            writer.finish().unwrap();
        }
        let mut lookup = UrlLookup::open(paths.into_iter().map(RowRange::file)).unwrap();
        for (row, hash) in hashes.iter().enumerate() {
            let wanted = (row % 4 != 3).then(|| DocId::from_table(row as i64));
            assert_eq!(lookup.find(*hash).unwrap(), wanted, "{row}");
            assert_eq!(lookup.find(*hash).unwrap(), wanted, "looked up twice");
        }
    }
}
