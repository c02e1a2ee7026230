//! The paragraphs of pages, which every step reads again: from the table `chunks` of a week, or
//! from memory.
//!
//! A pass over files has one batch of rows in memory.

use std::sync::Arc;

use anyhow::{Result, ensure};
use arrow_array::{BinaryArray, Int64Array, RecordBatch};

use crate::records::DocId;
use crate::state::History;
use crate::structures::Ownership;
use crate::tables::{ChunkRow, RowRange, Scan, Table, field};

/// The paragraphs of the own pages of a worker, which can be read several times, in the same order.
pub trait ParagraphSource: Clone + 'static {
    /// A pass over the pages.
    type Pass: ParagraphPass + 'static;

    /// Begins to read the pages.
    ///
    /// # Errors
    /// If they cannot be read.
    fn pass(&self) -> Result<Self::Pass>;

    /// Calls `take` with every page and its paragraphs, in order.
    ///
    /// # Errors
    /// If a page cannot be read; or the first error of `take`.
    fn each(&self, mut take: impl FnMut(DocId, &[u64]) -> Result<()>) -> Result<()> {
        let (mut pass, mut paragraphs) = (self.pass()?, Vec::new());
        while let Some(doc) = pass.next(&mut paragraphs)? {
            take(doc, &paragraphs)?;
        }
        Ok(())
    }
}

/// A pass over the own pages of a worker.
pub trait ParagraphPass {
    /// Replaces `paragraphs` by the hashes of those of the next page, in order, repeated ones
    /// included. Returns the page, or `None` after the last one.
    ///
    /// # Errors
    /// If the page cannot be read.
    fn next(&mut self, paragraphs: &mut Vec<u64>) -> Result<Option<DocId>>;
}

/// The pages of a week that have more than some characters.
#[derive(Clone)]
pub struct ParagraphFiles(Arc<ChunkFiles>);

struct ChunkFiles {
    /// The files with their shards.
    files: Vec<(u32, RowRange)>,
    owned: Ownership,
    /// A page has more characters.
    least: i64,
}

impl ParagraphFiles {
    /// The own pages of week number `number` that have more than `least` characters.
    ///
    /// # Errors
    /// If the week lacks some of its files.
    pub fn open(history: &History, number: usize, owned: &Ownership, least: u64) -> Result<ParagraphFiles> {
        let (tables, mut files) = (history.tables(number), Vec::new());
        for shard in owned.shards() {
            let of_shard = history.rows(number, &tables, ChunkRow::NAME, shard)?;
            files.extend(of_shard.into_iter().map(|rows| (shard, rows)));
        }
        let least = i64::try_from(least).unwrap_or(i64::MAX);
        Ok(ParagraphFiles(Arc::new(ChunkFiles { files, owned: owned.clone(), least })))
    }
}

impl ParagraphSource for ParagraphFiles {
    type Pass = FilesPass;

    fn pass(&self) -> Result<FilesPass> {
        Ok(FilesPass { files: self.0.clone(), next: 0, scan: None, batch: None, row: 0 })
    }
}

/// A pass over files.
pub struct FilesPass {
    files: Arc<ChunkFiles>,
    /// The number of the next file.
    next: usize,
    scan: Option<Scan>,
    batch: Option<RecordBatch>,
    /// The next row of the batch.
    row: usize,
}

impl FilesPass {
    /// Reads the next batch; `false` after the last one.
    fn next_batch(&mut self) -> Result<bool> {
        loop {
            if let Some(scan) = &mut self.scan {
                (self.batch, self.row) = (scan.batch()?, 0);
                if self.batch.is_some() {
                    return Ok(true);
                }
            }
            let Some((_, rows)) = self.files.files.get(self.next) else { return Ok(false) };
            self.scan = Some(Scan::open(rows, &["doc", "characters", "paragraphs"])?);
            self.next += 1;
        }
    }
}

impl ParagraphPass for FilesPass {
    fn next(&mut self, paragraphs: &mut Vec<u64>) -> Result<Option<DocId>> {
        loop {
            if let Some(batch) = &self.batch {
                let (docs, characters): (&Int64Array, &Int64Array) =
                    (field(batch, "doc")?, field(batch, "characters")?);
                let is_long = |row: &usize| characters.value(*row) > self.files.least;
                if let Some(row) = (self.row..batch.num_rows()).find(is_long) {
                    let all: &BinaryArray = field(batch, "paragraphs")?;
                    let (doc, bytes) = (DocId::from_table(docs.value(row)), all.value(row));
                    let (shard, rows) = &self.files.files[self.next - 1];
                    self.files.owned.check(doc, *shard, rows.path())?;
                    let (hashes, rest) = bytes.as_chunks::<8>();
                    let path = rows.path().display();
                    ensure!(rest.is_empty(), "{path} is damaged: {} bytes of paragraphs of {doc}", bytes.len());
                    paragraphs.clear();
                    paragraphs.extend(hashes.iter().map(|hash| u64::from_le_bytes(*hash)));
                    self.row = row + 1;
                    return Ok(Some(doc));
                }
                self.batch = None;
            }
            if !self.next_batch()? {
                return Ok(None);
            }
        }
    }
}

/// Pages in memory: 16 bytes for a page, and 8 for each of its paragraphs.
///
/// ```
/// use std::sync::Arc;
///
/// use nigh_studies::studies::paragraphs::steps::{ParagraphSource, ParagraphsInMemory};
/// use nigh_kernels::records::DocId;
///
/// let mut pages = ParagraphsInMemory::default();
/// pages.push(DocId::new(0, 3), &[7, 8, 7]);
/// let mut read = Vec::new();
/// Arc::new(pages).each(|doc, paragraphs| Ok(read.push((doc.row(), paragraphs.len()))))?;
/// assert_eq!(read, [(3, 3)]);
/// # anyhow::Ok(())
/// ```
#[derive(Clone, Debug, Default)]
pub struct ParagraphsInMemory {
    /// The pages, and where the paragraphs of each end.
    pages: Vec<(DocId, usize)>,
    paragraphs: Vec<u64>,
}

impl ParagraphsInMemory {
    /// Adds a page.
    pub fn push(&mut self, doc: DocId, paragraphs: &[u64]) {
        self.paragraphs.extend_from_slice(paragraphs);
        self.pages.push((doc, self.paragraphs.len()));
    }
}

impl ParagraphSource for Arc<ParagraphsInMemory> {
    type Pass = MemoryPass;

    fn pass(&self) -> Result<MemoryPass> {
        Ok(MemoryPass { pages: self.clone(), next: 0 })
    }
}

/// A pass over pages in memory.
pub struct MemoryPass {
    pages: Arc<ParagraphsInMemory>,
    next: usize,
}

impl ParagraphPass for MemoryPass {
    fn next(&mut self, paragraphs: &mut Vec<u64>) -> Result<Option<DocId>> {
        let ParagraphsInMemory { pages, paragraphs: all } = &*self.pages;
        let Some((doc, end)) = pages.get(self.next) else { return Ok(None) };
        let start = self.next.checked_sub(1).map_or(0, |before| pages[before].1);
        paragraphs.clear();
        paragraphs.extend_from_slice(&all[start..*end]);
        self.next += 1;
        Ok(Some(*doc))
    }
}
