//! Which URL has which id: a merge of one shard's url segments, asked in the order of hashes.
//!
//! Segments are sorted by hash, so that a sorted stream of questions is answered by reading each
//! once; nothing but one batch a segment is in memory.

use std::path::PathBuf;

use anyhow::Result;
use arrow_array::{FixedSizeBinaryArray, Int64Array, RecordBatch};

use crate::records::{DocId, UrlHash};
use crate::tables::{Scan, field};

/// The url segments of a shard, read side by side.
pub struct UrlLookup {
    segments: Vec<Cursor>,
    asked: Option<UrlHash>,
}

struct Cursor {
    scan: Scan,
    batch: Option<RecordBatch>,
    row: usize,
}

impl UrlLookup {
    /// Opens the segments at these paths.
    ///
    /// # Errors
    /// Names the file that cannot be read.
    pub fn open(paths: impl IntoIterator<Item = PathBuf>) -> Result<UrlLookup> {
        let open = |path: PathBuf| {
            let mut scan = Scan::open(&path, &["doc", "hash"])?;
            Ok(Cursor { batch: scan.batch()?, scan, row: 0 })
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

impl Cursor {
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
    use crate::tables::{UrlRow, Writer};

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
