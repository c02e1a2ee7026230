//! Every URL's downloads, week after week: the tables of one shard of all weeks, read side by side.
//!
//! Files ascend by document, and several files (waves) of a week may interleave, so that all are merged: of each file
//! one batch is in memory, and of all documents the downloads of one. A document costs a step in the heap of its
//! week's files for each of its downloads.
//!
//! Limitation: all files of three tables of the shard are open at once, 3 x weeks x waves of them. Reading a page of
//! features takes about 1 MiB a file whatever `memory` says.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::path::PathBuf;

use anyhow::{Context, Result, bail, ensure};
use arrow_array::{FixedSizeBinaryArray, Int64Array, RecordBatch};

use super::weeks::History;
use crate::records::DocId;
use crate::tables::{ClusterRow, DocumentRow, FeatureRow, Scan, Table, field};

/// One successful download of a URL.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Download {
    /// The number of the week.
    pub week: usize,
    /// The checksum of the body.
    pub checksum: u128,
    /// Pages of its cluster of very similar pages.
    pub size: u64,
    /// The features as the table holds them; none of a page without words.
    pub features: Vec<u8>,
}

/// Goes over the documents of a shard.
pub struct Downloads {
    weeks: Vec<WeekTables>,
    /// The downloads of one document; those before `count` count, the others are memory to be used again.
    found: Vec<Download>,
    count: usize,
    features: usize,
}

/// One week's tables of the shard.
struct WeekTables {
    documents: Merged,
    clusters: Merged,
    features: Merged,
}

impl Downloads {
    /// Opens the shard's tables of all weeks; batches take about `memory` bytes in all, and a few rows at least.
    ///
    /// # Errors
    /// Names the file that is missing or damaged.
    pub fn open(history: &History, shard: u32, memory: u64) -> Result<Downloads> {
        let weeks = 0..history.weeks.len();
        let files: usize = weeks.clone().map(|at| history.files(at, DocumentRow::NAME, shard).count()).sum();
        // A row of the three tables, as arrow and as Parquet has it.
        let row = 2 * (4 * history.features as u64 + 48);
        let rows = (memory / row / files.max(1) as u64).clamp(64, 4096) as usize;
        let merged = |at, table, column| Merged::open(history, at, shard, table, column, rows);
        let open = |at| {
            Ok(WeekTables {
                documents: merged(at, DocumentRow::NAME, "checksum")?,
                clusters: merged(at, ClusterRow::NAME, "similar_size")?,
                features: merged(at, FeatureRow::NAME, "features")?,
            })
        };
        let weeks = weeks.map(open).collect::<Result<Vec<WeekTables>>>()?;
        let found = vec![Download::default(); weeks.len()];
        Ok(Downloads { weeks, found, count: 0, features: history.features })
    }

    /// The next document that was ever downloaded, in ascending order, and its downloads by week; `None` at the end.
    ///
    /// # Errors
    /// Names the file that is damaged, or that has other documents than the week's other tables.
    pub fn document(&mut self) -> Result<Option<(DocId, &[Download])>> {
        let Some(doc) = self.weeks.iter().filter_map(|week| week.first()).min() else { return Ok(None) };
        self.count = 0;
        for (at, week) in self.weeks.iter_mut().enumerate().filter(|(_, week)| week.first() == Some(doc)) {
            let download = &mut self.found[self.count];
            self.count += 1;
            download.week = at;
            week.take(doc, self.features, download)?;
        }
        Ok(Some((DocId::from_table(doc), &self.found[..self.count])))
    }
}

impl WeekTables {
    fn first(&self) -> Option<i64> {
        [&self.documents, &self.clusters, &self.features].into_iter().filter_map(|table| table.first()).min()
    }

    /// Takes the rows of a document.
    fn take(&mut self, doc: i64, features: usize, download: &mut Download) -> Result<()> {
        for (table, name) in [(&self.documents, DocumentRow::NAME), (&self.clusters, ClusterRow::NAME)] {
            ensure!(
                table.first() == Some(doc),
                "{} is damaged: its `{name}` lack the document {doc}, which is in its other tables",
                table.folder.display()
            );
        }
        let bytes = self.documents.bytes("checksum")?;
        download.checksum = u128::from_be_bytes(bytes.try_into().context("a checksum has 16 bytes")?);
        download.size = self.clusters.long("similar_size")?.max(0) as u64;
        download.features.clear();
        if self.features.first() == Some(doc) {
            let bytes = self.features.bytes("features")?;
            ensure!(
                bytes.len() == 4 * features,
                "{} is damaged: features of {} bytes, not of {}",
                self.features.folder.display(),
                bytes.len(),
                4 * features
            );
            download.features.extend_from_slice(bytes);
            self.features.advance()?;
        }
        self.documents.advance()?;
        self.clusters.advance()
    }
}

/// The rows of some files of one table, merged by document.
struct Merged {
    /// The week's folder, for messages.
    folder: PathBuf,
    cursors: Vec<DownloadCursor>,
    /// The next document of each file.
    heap: BinaryHeap<Reverse<(i64, usize)>>,
}

impl Merged {
    fn open(history: &History, at: usize, shard: u32, table: &str, column: &str, rows: usize) -> Result<Merged> {
        let folder = history.store.join(history.weeks[at].week.folder());
        let mut merged = Merged { folder, cursors: Vec::new(), heap: BinaryHeap::new() };
        for path in history.files(at, table, shard) {
            let scan = Scan::open_by(&path, &["doc", column], rows)?;
            let end = DocId::new(shard, 0).to_table() + history.weeks[at].rows[shard as usize] as i64;
            let from = DocId::new(shard, 0).to_table();
            let mut cursor = DownloadCursor { path, scan, batch: None, row: 0, from, end };
            if let Some(doc) = cursor.load()? {
                merged.heap.push(Reverse((doc, merged.cursors.len())));
                merged.cursors.push(cursor);
            }
        }
        Ok(merged)
    }

    fn first(&self) -> Option<i64> {
        self.heap.peek().map(|Reverse((doc, _))| *doc)
    }

    /// The file of the first row, its batch, and the row there.
    fn top(&self) -> Result<(&RecordBatch, usize)> {
        let top = self.heap.peek().map(|Reverse((_, file))| &self.cursors[*file]);
        let cursor = top.with_context(|| format!("{} has no more rows", self.folder.display()))?;
        Ok((cursor.batch.as_ref().context("a file with a next document has a batch")?, cursor.row))
    }

    fn bytes(&self, column: &str) -> Result<&[u8]> {
        let (batch, row) = self.top()?;
        Ok(field::<FixedSizeBinaryArray>(batch, column)?.value(row))
    }

    fn long(&self, column: &str) -> Result<i64> {
        let (batch, row) = self.top()?;
        Ok(field::<Int64Array>(batch, column)?.value(row))
    }

    /// Goes past the first row.
    fn advance(&mut self) -> Result<()> {
        let Some(Reverse((doc, file))) = self.heap.pop() else { return Ok(()) };
        if let Some(next) = self.cursors[file].advance()? {
            self.heap.push(Reverse((next, file)));
        }
        if self.first() == Some(doc) {
            bail!("{} is damaged: a table holds the document {doc} twice", self.folder.display());
        }
        Ok(())
    }
}

/// One file, at one of its rows.
struct DownloadCursor {
    path: PathBuf,
    scan: Scan,
    batch: Option<RecordBatch>,
    row: usize,
    /// The least document that the next row may have, and the one that none may reach.
    from: i64,
    end: i64,
}

impl DownloadCursor {
    fn advance(&mut self) -> Result<Option<i64>> {
        self.row += 1;
        self.load()
    }

    /// The document of the row, of the next batch where this one is over; `None` at the end.
    fn load(&mut self) -> Result<Option<i64>> {
        while self.batch.as_ref().is_none_or(|batch| self.row >= batch.num_rows()) {
            (self.batch, self.row) = (self.scan.batch()?, 0);
            if self.batch.is_none() {
                return Ok(None);
            }
        }
        let batch = self.batch.as_ref().context("the batch was read")?;
        let doc = field::<Int64Array>(batch, "doc").with_context(|| self.path.display().to_string())?.value(self.row);
        if !(self.from..self.end).contains(&doc) {
            bail!("{} is damaged: it holds the document {doc}, out of order or not of its shard", self.path.display());
        }
        self.from = doc + 1;
        Ok(Some(doc))
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;
    use std::path::Path;

    use super::*;
    use crate::records::mix;
    use crate::state::history::weeks::PastWeek;
    use crate::state::store::Store;
    use crate::state::weeks::Segment;
    use crate::tables::{Column, Writer};

    /// The columns that are read, and no others.
    struct DocumentPart(i64, [u8; 16]);

    struct ClusterPart(i64, i64);

    struct FeaturePart(i64, Vec<u8>);

    impl Table for DocumentPart {
        const NAME: &'static str = DocumentRow::NAME;

        fn columns(rows: &[Self]) -> Vec<Column> {
            let docs = Column::longs("doc", rows.iter().map(|row| row.0));
            vec![docs, Column::bytes("checksum", 16, rows.iter().map(|row| &row.1[..]))]
        }
    }

    impl Table for ClusterPart {
        const NAME: &'static str = ClusterRow::NAME;

        fn columns(rows: &[Self]) -> Vec<Column> {
            let docs = Column::longs("doc", rows.iter().map(|row| row.0));
            vec![docs, Column::longs("similar_size", rows.iter().map(|row| row.1))]
        }
    }

    impl Table for FeaturePart {
        const NAME: &'static str = FeatureRow::NAME;

        fn columns(rows: &[Self]) -> Vec<Column> {
            let docs = Column::longs("doc", rows.iter().map(|row| row.0));
            vec![docs, Column::bytes("features", 8, rows.iter().map(|row| &row.1[..]))]
        }
    }

    const SHARD: u32 = 3;

    const ROWS: u64 = 700;

    fn write<T: Table>(folder: &Path, segment: &Segment, rows: impl Iterator<Item = T>) {
        let mut writer: Writer<T> = Writer::create(&folder.join(T::NAME).join(segment.file())).unwrap();
        rows.for_each(|row| writer.push(row).unwrap());
        writer.finish().unwrap();
    }

    /// Weeks of which each has two of three pages, in three waves that interleave; and what was written.
    fn made(store: &Path) -> (History, BTreeMap<DocId, Vec<Download>>) {
        let mut written: BTreeMap<DocId, Vec<Download>> = BTreeMap::new();
        let mut weeks = Vec::new();
        for (at, date) in ["2024-01-08", "2024-01-15", "2024-01-22"].into_iter().enumerate() {
            let mut waves: [Vec<(DocId, Download)>; 3] = Default::default();
            for row in 0..ROWS {
                let (doc, hash) = (DocId::new(SHARD, row), mix(at as u64 * ROWS + row));
                if hash.is_multiple_of(3) {
                    continue;
                }
                let features = if hash.is_multiple_of(5) { Vec::new() } else { hash.to_le_bytes().to_vec() };
                let download = Download { week: at, checksum: hash.into(), size: 1 + hash % 9, features };
                written.entry(doc).or_default().push(download.clone());
                waves[(hash >> 32) as usize % 3].push((doc, download));
            }
            let week = date.parse().unwrap();
            let folder = Store::at(store).week(week);
            let mut segments = Vec::new();
            for (wave, pages) in waves.iter().enumerate() {
                let features: Vec<FeaturePart> = pages
                    .iter()
                    .filter(|(_, page)| !page.features.is_empty())
                    .map(|(doc, page)| FeaturePart(doc.to_table(), page.features.clone()))
                    .collect();
                let (documents, features_of) = (pages.len() as u64, features.len() as u64);
                let segment =
                    Segment { wave, shard: SHARD, documents, urls: documents, features: features_of, links: 0 };
                let document =
                    |(doc, page): &(DocId, Download)| DocumentPart(doc.to_table(), page.checksum.to_be_bytes());
                write(&folder, &segment, pages.iter().map(document));
                write(&folder, &segment, pages.iter().map(|(doc, page)| ClusterPart(doc.to_table(), page.size as i64)));
                write(&folder, &segment, features.into_iter());
                segments.push(segment);
            }
            weeks.push(PastWeek { week, rows: vec![0, 0, 0, ROWS], segments });
        }
        (History { store: store.to_owned(), method: String::new(), features: 2, weeks }, written)
    }

    #[test]
    fn every_download_comes_once_and_in_order() {
        let folder = tempfile::tempdir().unwrap();
        let (history, written) = made(folder.path());
        // Of little memory batches are small, and files are read in many.
        for memory in [0, 1 << 30] {
            let mut found = Vec::new();
            let mut downloads = Downloads::open(&history, SHARD, memory).unwrap();
            while let Some((doc, of_url)) = downloads.document().unwrap() {
                found.push((doc, of_url.to_vec()));
            }
            assert!(found.into_iter().eq(written.clone()));
        }
        assert!(Downloads::open(&history, 0, 0).unwrap().document().unwrap().is_none());
    }

    #[test]
    fn rows_that_cannot_be_are_told() {
        let told = |damage: &dyn Fn(&Path, &Segment, i64)| {
            let folder = tempfile::tempdir().unwrap();
            let (history, written) = made(folder.path());
            let week = &history.weeks[1];
            let doc = written.iter().find(|(_, of_url)| of_url.iter().any(|download| download.week == 1)).unwrap().0;
            // The first document of the week, in the segment that has it.
            let segment = &week.segments[(mix(ROWS + doc.row()) >> 32) as usize % 3];
            damage(&Store::at(folder.path()).week(week.week), segment, doc.to_table());
            let run = || -> Result<()> {
                let mut downloads = Downloads::open(&history, SHARD, 0)?;
                while downloads.document()?.is_some() {}
                Ok(())
            };
            run().unwrap_err().to_string()
        };
        let document = |doc: i64| DocumentPart(doc, [0; 16]);
        let backwards = told(&|week, segment, doc| write(week, segment, [doc, doc].into_iter().map(document)));
        assert!(backwards.contains("documents/shard00003-wave") && backwards.contains("out of order"));
        let beyond = DocId::new(SHARD, ROWS).to_table();
        assert!(
            told(&|week, segment, _| write(week, segment, [document(beyond)].into_iter())).contains("of its shard")
        );
        assert!(told(&|week, segment, _| write(week, segment, std::iter::empty::<ClusterPart>())).contains("lack"));
        let twice = |week: &Path, segment: &Segment, doc: i64| {
            let again = Segment { wave: (segment.wave + 1) % 3, ..*segment };
            for segment in [segment, &again] {
                write(week, segment, [document(doc)].into_iter());
                write(week, segment, [ClusterPart(doc, 1)].into_iter());
                write(week, segment, std::iter::empty::<FeaturePart>());
            }
        };
        assert!(told(&twice).contains("twice"));
    }
}
