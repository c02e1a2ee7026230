//! Which URL has which id: one shard's url segments, merged, asked in the order of hashes.
//!
//! A URL stands in the segments of the week in which it was first seen, and keeps its id for ever. The files of earlier
//! weeks are all opened at once, one for each week and wave that brought URLs of the shard: that is the limit of a store
//! that goes on for years.
//!
//! Segments are sorted by hash, so that a sorted stream of questions is answered by reading each
//! once; nothing but one batch a segment is in memory. Every sixteenth wave the last sixteen segments
//! are merged into a run, every sixteenth run into a longer one, and so on: however many waves a
//! week has, a question looks into some dozens of its files at most, and a hash is written once more for
//! every factor of sixteen. Runs are an index beside the tables; they are not kept with the week.

use std::path::PathBuf;

use anyhow::Result;
use arrow_array::{FixedSizeBinaryArray, Int64Array, RecordBatch};

use crate::records::{DocId, UrlHash};
use crate::state::weeks::{Segment, Unfinished};
use crate::tables::{Column, Scan, Table, UrlRow, Writer, field};

/// Waves of a run, and runs of a longer one.
const FAN: usize = 16;

/// A row of a run: the columns of `urls` that a question needs.
pub(crate) struct RunRow {
    pub doc: i64,
    pub hash: [u8; 16],
}

impl Table for RunRow {
    const NAME: &'static str = "url-runs";
    const UNIQUE: &'static [&'static str] = &["doc", "hash"];
    const RANDOM: &'static [&'static str] = &["hash"];

    fn columns(rows: &[Self]) -> Vec<Column> {
        vec![
            Column::longs("doc", rows.iter().map(|row| row.doc)),
            Column::bytes("hash", 16, rows.iter().map(|row| &row.hash[..])),
        ]
    }
}

/// The url segments and runs of one shard of a week that is being made, and the url segments of earlier weeks.
pub struct UrlIndex<'a> {
    /// The week.
    pub unfinished: &'a Unfinished,
    /// The shard.
    pub shard: u32,
    /// The shard's segments so far, by wave.
    pub segments: &'a [Segment],
    /// The shard's files of earlier weeks.
    pub earlier: &'a [PathBuf],
}

impl UrlIndex<'_> {
    fn run(&self, level: usize, last: usize) -> PathBuf {
        let file = format!("shard{:05}-level{level}-wave{last:05}.parquet", self.shard);
        self.unfinished.scratch_table(RunRow::NAME, &file)
    }

    /// The fewest files that hold the URLs of the waves from `first` to before `end`, where `first` begins a run of `level`.
    fn files(&self, level: usize, first: usize, end: usize, files: &mut Vec<PathBuf>) {
        if level == 0 {
            let within =
                self.segments.iter().filter(|segment| (first..end).contains(&segment.wave) && segment.urls > 0);
            return files.extend(within.map(|segment| self.unfinished.table(UrlRow::NAME, &segment.file())));
        }
        let span = FAN.pow(level as u32);
        let mut at = first;
        while at + span <= end {
            let run = self.run(level, at + span - 1);
            match run.exists() {
                true => files.push(run),
                // Waves without pages of this shard, or an index that was deleted.
                false => self.files(level - 1, at, at + span, files),
            }
            at += span;
        }
        self.files(level - 1, at, end, files);
    }

    /// Opens everything that is known before a wave.
    ///
    /// # Errors
    /// Names the file that cannot be read.
    pub fn lookup(&self, waves: usize) -> Result<UrlLookup> {
        let mut files = self.earlier.to_vec();
        let levels = (0..).find(|level| FAN.pow(level + 1) > waves).unwrap_or(0);
        self.files(levels as usize, 0, waves, &mut files);
        UrlLookup::open(files)
    }

    /// Merges segments and runs, where a wave completes sixteen of them.
    ///
    /// # Errors
    /// Names the file that cannot be read or written.
    pub fn merge(&self, wave: usize) -> Result<()> {
        for level in 1.. {
            let span = FAN.pow(level);
            if !(wave + 1).is_multiple_of(span) {
                return Ok(());
            }
            let mut files = Vec::new();
            self.files(level as usize - 1, wave + 1 - span, wave + 1, &mut files);
            let mut writer: Writer<RunRow> = Writer::create(&self.run(level as usize, wave))?;
            let mut urls = UrlLookup::open(files)?;
            while let Some((hash, doc)) = urls.next()? {
                writer.push(RunRow { doc: doc.to_table(), hash: hash.to_bytes() })?;
            }
            writer.finish_if_any()?;
        }
        Ok(())
    }
}

/// The url segments of a shard, read side by side.
pub struct UrlLookup {
    segments: Vec<UrlCursor>,
    asked: Option<UrlHash>,
}

struct UrlCursor {
    scan: Scan,
    batch: Option<RecordBatch>,
    row: usize,
}

impl UrlLookup {
    /// Opens the segments at these paths.
    ///
    /// # Errors
    /// Names the file that cannot be read.
    pub(crate) fn open(paths: impl IntoIterator<Item = PathBuf>) -> Result<UrlLookup> {
        let open = |path: PathBuf| {
            let mut scan = Scan::open(&path, &["doc", "hash"])?;
            Ok(UrlCursor { batch: scan.batch()?, scan, row: 0 })
        };
        let segments = paths.into_iter().map(open).collect::<Result<_>>()?;
        Ok(UrlLookup { segments, asked: None })
    }

    /// The id of a URL; `None` where no segment has it. Hashes must be asked in ascending order.
    ///
    /// # Errors
    /// Names the file that is damaged.
    pub fn find(&mut self, hash: UrlHash) -> Result<Option<DocId>> {
        debug_assert!(self.asked.is_none_or(|asked| asked <= hash), "hashes are asked in ascending order");
        self.asked = Some(hash);
        for segment in &mut self.segments {
            if let Some(doc) = segment.find(hash)? {
                return Ok(Some(doc));
            }
        }
        Ok(None)
    }
}

impl UrlLookup {
    /// The smallest URL that was not given yet, of all segments.
    pub(crate) fn next(&mut self) -> Result<Option<(UrlHash, DocId)>> {
        let mut smallest: Option<(UrlHash, DocId, usize)> = None;
        for (at, segment) in self.segments.iter_mut().enumerate() {
            if let Some((hash, doc)) = segment.head()?
                && smallest.is_none_or(|(least, ..)| hash < least)
            {
                smallest = Some((hash, doc, at));
            }
        }
        let Some((hash, doc, at)) = smallest else { return Ok(None) };
        self.segments[at].row += 1;
        Ok(Some((hash, doc)))
    }
}

impl UrlCursor {
    /// The URL at which the cursor stands.
    fn head(&mut self) -> Result<Option<(UrlHash, DocId)>> {
        while let Some(batch) = &self.batch {
            if self.row < batch.num_rows() {
                let (hashes, docs): (&FixedSizeBinaryArray, &Int64Array) =
                    (field(batch, "hash")?, field(batch, "doc")?);
                let hash = UrlHash::from_bytes(hashes.value(self.row).try_into().unwrap_or_default());
                return Ok(Some((hash, DocId::from_table(docs.value(self.row)))));
            }
            self.batch = self.scan.batch()?;
            self.row = 0;
        }
        Ok(None)
    }

    fn find(&mut self, hash: UrlHash) -> Result<Option<DocId>> {
        while let Some(batch) = &self.batch {
            let hashes: &FixedSizeBinaryArray = field(batch, "hash")?;
            let at = |row: usize| UrlHash::from_bytes(hashes.value(row).try_into().unwrap_or_default());
            let rows = batch.num_rows();
            // A batch whose last hash is smaller is passed over whole; within one, rows go by one by one.
            if rows > 0 && at(rows - 1) >= hash {
                while at(self.row) < hash {
                    self.row += 1;
                }
                let docs: &Int64Array = field(batch, "doc")?;
                return Ok((at(self.row) == hash).then(|| DocId::from_table(docs.value(self.row))));
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

    #[test]
    fn any_number_of_waves_is_looked_up_in_few_files() {
        let folder = tempfile::tempdir().unwrap();
        let week = "2024-01-08".parse().unwrap();
        let unfinished = crate::state::store::Store::at(folder.path()).unfinished(week);
        let mut segments: Vec<Segment> = Vec::new();
        let waves = 300;
        let hash = |wave: usize| UrlHash::of(&format!("http://h/{wave}"));
        for wave in 0..waves {
            let known: Vec<UrlHash> = {
                let mut known: Vec<UrlHash> = (0..wave).filter(|wave| wave % 7 != 3).map(hash).collect();
                known.sort_unstable();
                known
            };
            let index = UrlIndex { unfinished: &unfinished, shard: 2, segments: &segments, earlier: &[] };
            let mut lookup = index.lookup(wave).unwrap();
            assert!(lookup.segments.len() <= 3 * FAN, "{} files", lookup.segments.len());
            if wave % 23 == 0 {
                assert!(known.iter().all(|hash| lookup.find(*hash).unwrap().is_some()), "wave {wave}");
            }
            // Some waves have nothing of the shard.
            if wave % 7 != 3 {
                let segment = Segment { wave, shard: 2, documents: 1, urls: 1, features: 0, links: 0 };
                let mut writer: Writer<UrlRow> =
                    Writer::create(&unfinished.table(UrlRow::NAME, &segment.file())).unwrap();
                writer.push(UrlRow { doc: wave as i64, hash: hash(wave).to_bytes(), url: String::new() }).unwrap();
                writer.finish().unwrap();
                segments.push(segment);
            }
            UrlIndex { unfinished: &unfinished, shard: 2, segments: &segments, earlier: &[] }.merge(wave).unwrap();
        }
    }

    #[test]
    fn every_url_of_every_segment_is_found() {
        let folder = tempfile::tempdir().unwrap();
        let mut hashes: Vec<UrlHash> = (0..10_000).map(|i| UrlHash::of(&format!("http://h/{i}"))).collect();
        hashes.sort_unstable();
        let paths: Vec<PathBuf> = (0..3).map(|i| folder.path().join(format!("{i}.parquet"))).collect();
        for (i, path) in paths.iter().enumerate() {
            let mut writer: Writer<UrlRow> = Writer::create(path).unwrap();
            // Every fourth URL is in no segment.
            for (row, hash) in hashes.iter().enumerate().filter(|(row, _)| row % 4 == i) {
                writer.push(UrlRow { doc: row as i64, hash: hash.to_bytes(), url: String::new() }).unwrap();
            }
            writer.finish().unwrap();
        }
        let mut lookup = UrlLookup::open(paths).unwrap();
        for (row, hash) in hashes.iter().enumerate() {
            let wanted = (row % 4 != 3).then(|| DocId::from_table(row as i64));
            assert_eq!(lookup.find(*hash).unwrap(), wanted, "{row}");
            assert_eq!(lookup.find(*hash).unwrap(), wanted, "asked twice");
        }
    }
}
