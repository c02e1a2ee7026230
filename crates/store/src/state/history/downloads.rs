//! Every document's downloads, week by week: a merge of one shard's tables of all weeks.
//!
//! Each file ascends by document id, but the files of a week (one per wave) interleave, so they are
//! merged through a heap. In memory are one batch of each file, and the downloads of one document.
//! A download costs one step in the heap of its week's files, for each of three tables.
//!
//! Limitation: all files of three tables of the shard are open at once: 3 x weeks x waves. Reading
//! a Parquet page of features takes about 1 MiB per file, whatever `memory` is.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::path::PathBuf;

use anyhow::{Context, Result, bail, ensure};
use arrow_array::{FixedSizeBinaryArray, Int64Array, RecordBatch};

use super::weeks::History;
use crate::records::{DocId, FeatureBits, Week};
use crate::state::weeks::WeekTables;
use crate::tables::{ClusterRow, DocumentRow, FeatureRow, RowRange, Scan, Table, field};

/// One successful download of a document.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Download {
    /// The number of the week in the [`History`], from 0.
    pub week: usize,
    /// The checksum of the body.
    pub checksum: u128,
    /// The number of documents in its very similar cluster.
    pub size: u64,
    /// What is kept of the features, as in the table; empty for a document without words.
    pub features: Vec<u8>,
}

/// Reads the documents of a shard in ascending order, each with its downloads.
pub struct Downloads {
    weeks: Vec<ShardTables>,
    /// The downloads of the current document: the first `count` items. The others are buffers for
    /// later documents.
    downloads: Vec<Download>,
    count: usize,
    features: usize,
}

/// The shard's three tables of one week.
struct ShardTables {
    documents: MergedTable,
    clusters: MergedTable,
    features: MergedTable,
}

impl Downloads {
    /// Opens the shard's tables of all weeks. All batches together take about `memory` bytes, but a
    /// batch has at least 64 rows.
    ///
    /// # Errors
    /// If a file is missing or damaged.
    pub fn open(history: &History, shard: u32, memory: u64) -> Result<Downloads> {
        let weeks = 0..history.weeks.len();
        let tables: Vec<WeekTables> = weeks.clone().map(|at| history.tables(at)).collect();
        let mut files = 0;
        for (at, tables) in tables.iter().enumerate() {
            files += history.rows(at, tables, DocumentRow::NAME, shard)?.len();
        }
        // Bytes of a row of the three tables, once in Arrow and once in Parquet.
        let row = 2 * ((size_of::<FeatureBits>() * history.features) as u64 + 48);
        let rows = (memory / row / files.max(1) as u64).clamp(64, 4096) as usize;
        let merged = |at, table, column| {
            let files = history.rows(at, &tables[at], table, shard)?;
            MergedTable::open(history, at, shard, files, column, rows)
        };
        let open = |at| {
            Ok(ShardTables {
                documents: merged(at, DocumentRow::NAME, "checksum")?,
                clusters: merged(at, ClusterRow::NAME, "similar_size")?,
                features: merged(at, FeatureRow::NAME, "features")?,
            })
        };
        let weeks = weeks.map(open).collect::<Result<Vec<ShardTables>>>()?;
        let downloads = vec![Download::default(); weeks.len()];
        Ok(Downloads { weeks, downloads, count: 0, features: history.features })
    }

    /// The next document, in ascending order, and its downloads by week (at least one); `None` at
    /// the end.
    ///
    /// # Errors
    /// If a table is damaged, or lacks a document that another table of the week has.
    pub fn document(&mut self) -> Result<Option<(DocId, &[Download])>> {
        let Some(doc) = self.weeks.iter().filter_map(|week| week.first()).min() else { return Ok(None) };
        self.count = 0;
        for (at, week) in self.weeks.iter_mut().enumerate().filter(|(_, week)| week.first() == Some(doc)) {
            let download = &mut self.downloads[self.count];
            self.count += 1;
            download.week = at;
            week.take(doc, self.features, download)?;
        }
        Ok(Some((DocId::from_table(doc), &self.downloads[..self.count])))
    }
}

impl ShardTables {
    /// The smallest document that is not yet taken.
    fn first(&self) -> Option<i64> {
        [&self.documents, &self.clusters, &self.features].into_iter().filter_map(|table| table.first()).min()
    }

    /// Moves past the rows of a document, and copies them to `download`.
    fn take(&mut self, doc: i64, features: usize, download: &mut Download) -> Result<()> {
        for (table, name) in [(&self.documents, DocumentRow::NAME), (&self.clusters, ClusterRow::NAME)] {
            ensure!(
                table.first() == Some(doc),
                "week {} is damaged: its `{name}` lack document {doc}, which is in other tables of the week",
                table.week
            );
        }
        let bytes = self.documents.bytes("checksum")?;
        download.checksum = u128::from_be_bytes(bytes.try_into().context("a checksum has 16 bytes")?);
        download.size = self.clusters.long("similar_size")?.max(0) as u64;
        download.features.clear();
        if self.features.first() == Some(doc) {
            let bytes = self.features.bytes("features")?;
            ensure!(
                bytes.len() == size_of::<FeatureBits>() * features,
                "week {} is damaged: features of {} bytes, instead of {}",
                self.features.week,
                bytes.len(),
                size_of::<FeatureBits>() * features
            );
            download.features.extend_from_slice(bytes);
            self.features.advance()?;
        }
        self.documents.advance()?;
        self.clusters.advance()
    }
}

/// The rows of all files of one table, merged by document.
struct MergedTable {
    /// The week, for messages.
    week: Week,
    cursors: Vec<DownloadCursor>,
    /// The next document of each file, and the number of the file.
    heap: BinaryHeap<Reverse<(i64, usize)>>,
}

impl MergedTable {
    fn open(
        history: &History,
        at: usize,
        shard: u32,
        files: Vec<RowRange>,
        column: &str,
        rows: usize,
    ) -> Result<MergedTable> {
        let mut merged = MergedTable { week: history.weeks[at].week, cursors: Vec::new(), heap: BinaryHeap::new() };
        for file in files {
            let path = file.path().to_owned();
            let scan = Scan::open_by(file, &["doc", column], rows)?;
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

    /// The batch that has the first row, and the row's place in it.
    fn top(&self) -> Result<(&RecordBatch, usize)> {
        let top = self.heap.peek().map(|Reverse((_, file))| &self.cursors[*file]);
        let cursor = top.with_context(|| format!("a table of week {} has no more rows", self.week))?;
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

    /// Moves past the first row.
    fn advance(&mut self) -> Result<()> {
        let Some(Reverse((doc, file))) = self.heap.pop() else { return Ok(()) };
        if let Some(next) = self.cursors[file].advance()? {
            self.heap.push(Reverse((next, file)));
        }
        if self.first() == Some(doc) {
            bail!("week {} is damaged: a table holds document {doc} twice", self.week);
        }
        Ok(())
    }
}

/// A position in one file.
struct DownloadCursor {
    path: PathBuf,
    scan: Scan,
    batch: Option<RecordBatch>,
    row: usize,
    /// The smallest document that the next row may have.
    from: i64,
    /// The end of the documents of the shard, exclusive.
    end: i64,
}

impl DownloadCursor {
    fn advance(&mut self) -> Result<Option<i64>> {
        self.row += 1;
        self.load()
    }

    /// The document of the current row, after reading the next batch if needed; `None` at the end
    /// of the file.
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
            bail!(
                "{} is damaged: it holds document {doc}, which is out of order or of another shard",
                self.path.display()
            );
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
    use crate::state::store::part_file;
    use crate::state::weeks::{Piece, Segment, TablePart};
    use crate::tables::Writer;

    // Tables with only the columns that are read.
    #[derive(Clone, Table)]
    #[table(name = "documents")]
    struct DocumentPart {
        doc: i64,
        checksum: [u8; 16],
    }

    #[derive(Clone, Table)]
    #[table(name = "clusters")]
    struct ClusterPart {
        doc: i64,
        similar_size: i64,
    }

    #[derive(Clone, Table)]
    #[table(name = "features")]
    struct FeatureColumns {
        doc: i64,
        features: [u8; 8],
    }

    const SHARD: u32 = 3;

    const ROWS: u64 = 700;

    const WEEKS: [&str; 3] = ["2024-01-08", "2024-01-15", "2024-01-22"];

    /// Writes a table of a segment as a file of its own.
    fn write<T: Table>(store: &Path, week: usize, segment: &Segment, rows: impl Iterator<Item = T>) {
        let folder = store.join(T::NAME).join(format!("week={}", WEEKS[week]));
        let mut writer: Writer<T> = Writer::create(&folder.join(part_file(1, segment.wave))).unwrap();
        rows.for_each(|row| writer.push(row).unwrap());
        writer.finish().unwrap();
    }

    /// A store whose weeks each have two documents of three, in three waves that interleave; and
    /// the downloads written to it.
    fn store_of_three_weeks(store: &Path) -> (History, BTreeMap<DocId, Vec<Download>>) {
        let mut written: BTreeMap<DocId, Vec<Download>> = BTreeMap::new();
        let mut weeks = Vec::new();
        for (at, date) in WEEKS.into_iter().enumerate() {
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
            let mut segments: Vec<Segment> = Vec::new();
            for (wave, pages) in waves.iter().enumerate() {
                let features: Vec<FeatureColumns> = pages
                    .iter()
                    .filter_map(|(doc, page)| Some((doc.to_table(), page.features[..].try_into().ok()?)))
                    .map(|(doc, features)| FeatureColumns { doc, features })
                    .collect();
                let (documents, features_of) = (pages.len() as u64, features.len() as u64);
                let segment = Segment {
                    wave,
                    shard: SHARD,
                    documents,
                    urls: documents,
                    features: features_of,
                    links: 0,
                    chunks: 0,
                    origin: None,
                };
                let document = |(doc, page): &(DocId, Download)| DocumentPart {
                    doc: doc.to_table(),
                    checksum: page.checksum.to_be_bytes(),
                };
                write(store, at, &segment, pages.iter().map(document));
                let cluster = |(doc, page): &(DocId, Download)| ClusterPart {
                    doc: doc.to_table(),
                    similar_size: page.size as i64,
                };
                write(store, at, &segment, pages.iter().map(cluster));
                write(store, at, &segment, features.into_iter());
                segments.push(segment);
            }
            let part = |segment: &Segment, rows| TablePart {
                file: part_file(1, segment.wave),
                bytes: 0,
                digest: None,
                pieces: vec![Piece(segment.file(), rows)],
            };
            let of_pages: Vec<TablePart> = segments.iter().map(|segment| part(segment, segment.documents)).collect();
            let of_vectors = segments.iter().map(|segment| part(segment, segment.features)).collect();
            let files = [
                (DocumentPart::NAME, of_pages.clone()),
                (ClusterPart::NAME, of_pages),
                (FeatureColumns::NAME, of_vectors),
            ]
            .map(|(table, parts)| (table.to_owned(), parts))
            .into();
            weeks.push(PastWeek {
                week: date.parse().unwrap(),
                commit: 1,
                made: 1,
                rows: vec![0, 0, 0, ROWS],
                segments,
                files,
                kept: BTreeMap::new(),
            });
        }
        (History { store: store.to_owned(), method: String::new(), features: 4, weeks }, written)
    }

    #[test]
    fn every_download_comes_once_and_in_order() {
        let folder = tempfile::tempdir().unwrap();
        let (history, written) = store_of_three_weeks(folder.path());
        // With little memory the batches are small, and each file is read in several.
        for memory in [0, 1 << 30] {
            let mut read = Vec::new();
            let mut downloads = Downloads::open(&history, SHARD, memory).unwrap();
            while let Some((doc, of_url)) = downloads.document().unwrap() {
                read.push((doc, of_url.to_vec()));
            }
            assert!(read.into_iter().eq(written.clone()));
        }
        assert!(Downloads::open(&history, 0, 0).unwrap().document().unwrap().is_none());
    }

    #[test]
    fn damaged_tables_are_reported() {
        let error_after = |damage: &dyn Fn(&Path, &Segment, i64)| {
            let folder = tempfile::tempdir().unwrap();
            let (history, written) = store_of_three_weeks(folder.path());
            let week = &history.weeks[1];
            let doc = written.iter().find(|(_, of_url)| of_url.iter().any(|download| download.week == 1)).unwrap().0;
            // The first document of the week, in the segment that has it.
            let segment = &week.segments[(mix(ROWS + doc.row()) >> 32) as usize % 3];
            damage(folder.path(), segment, doc.to_table());
            let run = || -> Result<()> {
                let mut downloads = Downloads::open(&history, SHARD, 0)?;
                while downloads.document()?.is_some() {}
                Ok(())
            };
            run().unwrap_err().to_string()
        };
        let document = |doc: i64| DocumentPart { doc, checksum: [0; 16] };
        /// As many rows as the week has for the segment.
        fn all<R: Clone>(segment: &Segment, row: R) -> impl Iterator<Item = R> {
            std::iter::repeat_n(row, segment.documents as usize)
        }
        let backwards = error_after(&|store, segment, doc| write(store, 1, segment, all(segment, document(doc))));
        assert!(backwards.contains("documents/week=2024-01-15/nigh-00001-0000") && backwards.contains("out of order"));
        let beyond = DocId::new(SHARD, ROWS).to_table();
        assert!(
            error_after(&|store, segment, _| write(store, 1, segment, all(segment, document(beyond))))
                .contains("of another shard")
        );
        let last = DocId::new(SHARD, ROWS - 1).to_table();
        assert!(
            error_after(&|store, segment, _| write(
                store,
                1,
                segment,
                all(segment, ClusterPart { doc: last, similar_size: 1 })
            ))
            .contains("lack")
        );
        let empty = error_after(&|store, segment, _| write(store, 1, segment, std::iter::empty::<ClusterPart>()));
        assert!(empty.contains("clusters/week=2024-01-15/nigh-00001-0000") && empty.contains("has 0 rows"), "{empty}");
        let twice = |store: &Path, segment: &Segment, doc: i64| {
            let again = Segment { wave: (segment.wave + 1) % 3, ..*segment };
            for segment in [segment, &again] {
                // Files with more rows than the week says: those are not read.
                write(store, 1, segment, (doc..).take(ROWS as usize).map(document));
                write(store, 1, segment, (doc..).take(ROWS as usize).map(|doc| ClusterPart { doc, similar_size: 1 }));
                write(
                    store,
                    1,
                    segment,
                    (doc..).take(ROWS as usize).map(|doc| FeatureColumns { doc, features: [0; 8] }),
                );
            }
        };
        assert!(error_after(&twice).contains("twice"));
    }
}
