//! Scans vectors chunk by chunk, in the order of documents.
//!
//! Within a file, rows ascend by document. If every document of a file precedes the documents of
//! the next file of its shard, a chunk is the column as it lies in the file, without the rows that
//! do not count. Else the files of a shard are merged:
//!
//! ```text
//! heads = min-heap of (next document, file), for the files of the shard
//! while the chunk is not full, and heads.pop() is (doc, file)
//!     do
//!         take the vector of doc from the file
//!         doc = the next document of the file
//!     while doc < the document of heads.peek()
//!     heads.push(doc, file)
//! ```

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use anyhow::{Result, ensure};

use super::columns::{FileColumns, RowCursor, rows_per_chunk};
use super::vectors::{ShardOrder, VectorFiles, VectorRow};
use crate::records::DocId;
use crate::tables::WordSlice;

/// Consecutive vectors of one shard.
pub struct VectorChunk {
    /// The shard.
    pub shard: u32,
    /// The number of the first vector of the chunk, among the vectors of the shard.
    pub first: u64,
    vectors: ChunkColumn,
    docs: ChunkColumn,
    rows: ChunkRows,
    width: usize,
}

/// The words of a column: as they lie in a file, or copied from several places.
enum ChunkColumn {
    File(WordSlice),
    Copied(Vec<u64>),
}

impl ChunkColumn {
    fn words(&self) -> &[u64] {
        match self {
            ChunkColumn::File(words) => words,
            ChunkColumn::Copied(words) => words,
        }
    }
}

/// The rows of files that have the vectors of a chunk.
enum ChunkRows {
    /// Consecutive rows of one file, from this one.
    From(VectorRow),
    /// One row for each vector.
    Each(Vec<VectorRow>),
}

impl ChunkRows {
    fn row_of(&self, vector: usize) -> VectorRow {
        match self {
            ChunkRows::From(first) => VectorRow { row: first.row + vector as u64, ..*first },
            ChunkRows::Each(rows) => rows[vector],
        }
    }
}

impl VectorChunk {
    /// The number of vectors.
    pub fn rows(&self) -> usize {
        self.words().len() / self.width
    }

    /// The documents of the vectors; empty if they were not read (see
    /// [`VectorFiles::chunks_with_docs`]).
    pub fn docs(&self) -> &[DocId] {
        bytemuck::cast_slice(self.docs.words())
    }

    /// The row that has vector number `vector` of the chunk.
    pub fn place(&self, vector: usize) -> VectorRow {
        self.rows.row_of(vector)
    }

    /// The vectors one after the other: `rows()` times the width in words.
    pub fn words(&self) -> &[u64] {
        self.vectors.words()
    }

    /// Keeps the vectors for whose numbers in the chunk `is_wanted` holds.
    fn retain(&mut self, is_wanted: impl Fn(&VectorChunk, usize) -> bool) {
        let wanted: Vec<usize> = (0..self.rows()).filter(|vector| is_wanted(self, *vector)).collect();
        if wanted.len() == self.rows() {
            return;
        }
        let (vectors, docs, width) = (self.words(), self.docs(), self.width);
        let words = wanted.iter().flat_map(|vector| &vectors[vector * width..(vector + 1) * width]).copied().collect();
        // Without documents, if they were not read.
        let docs = wanted.iter().filter_map(|vector| docs.get(*vector)).map(|doc| doc.to_table() as u64).collect();
        self.rows = ChunkRows::Each(wanted.iter().map(|vector| self.rows.row_of(*vector)).collect());
        (self.vectors, self.docs) = (ChunkColumn::Copied(words), ChunkColumn::Copied(docs));
    }

    /// Checks that the documents ascend and belong to the shard.
    fn check(&self) -> Result<()> {
        if let (Some(first), Some(last)) = (self.docs().first(), self.docs().last()) {
            ensure!(
                first.shard() == self.shard && last.shard() == self.shard && self.docs().is_sorted_by(|a, b| a < b),
                "the features of shard {} are out of order, or of another shard",
                self.shard
            );
        }
        Ok(())
    }
}

/// A scan of the vectors of [`VectorFiles`].
pub struct ChunkScan {
    files: VectorFiles,
    /// Whether documents are read with the vectors.
    with_docs: bool,
    /// The number of the file that is opened next.
    next_file: usize,
    /// The number of the next vector, among the vectors of its shard.
    first: u64,
    /// The open file, if files are read one after the other.
    columns: Option<FileColumns>,
    /// The open files of a shard, if they are merged.
    cursors: Vec<RowCursor>,
    /// The number of the file of the first cursor.
    first_file: usize,
    /// The next document of each cursor, and the number of the cursor.
    heads: BinaryHeap<Reverse<(DocId, usize)>>,
}

impl VectorFiles {
    /// Scans the vectors. Documents are read only if they are needed for the order or to select
    /// vectors.
    pub fn chunks(&self) -> ChunkScan {
        match (self.order, &self.only) {
            (ShardOrder::Consecutive, None) => ChunkScan::new(self.clone(), false),
            _ => ChunkScan::new(self.clone(), true),
        }
    }

    /// Scans the vectors and their documents.
    pub fn chunks_with_docs(&self) -> ChunkScan {
        ChunkScan::new(self.clone(), true)
    }
}

impl ChunkScan {
    /// Starts a scan, with the documents of the vectors or without.
    fn new(files: VectorFiles, with_docs: bool) -> ChunkScan {
        ChunkScan {
            files,
            with_docs,
            next_file: 0,
            first: 0,
            columns: None,
            cursors: Vec::new(),
            first_file: 0,
            heads: BinaryHeap::new(),
        }
    }

    /// Returns the next vectors, all of one shard; `None` at the end.
    ///
    /// # Errors
    /// If a file cannot be read, or has other vectors than expected: names the file, or the shard.
    pub fn next_chunk(&mut self) -> Result<Option<VectorChunk>> {
        loop {
            let chunk = match self.files.order {
                ShardOrder::Consecutive => self.next_of_file()?,
                ShardOrder::Interleaved => self.next_merged()?,
            };
            let Some(mut chunk) = chunk else { return Ok(None) };
            chunk.check()?;
            if let Some(only) = &self.files.only {
                chunk.retain(|chunk, vector| (only.is_wanted)(chunk.docs()[vector]));
            }
            chunk.first = self.first;
            self.first += chunk.rows() as u64;
            if chunk.rows() > 0 {
                return Ok(Some(chunk));
            }
        }
    }

    /// The next vectors of the open file, or the first ones of the next file.
    fn next_of_file(&mut self) -> Result<Option<VectorChunk>> {
        loop {
            let Some(file) = self.files.files.get(self.next_file) else { return Ok(None) };
            let columns = match &mut self.columns {
                Some(columns) => columns,
                closed => {
                    if self.next_file == 0 || self.files.files[self.next_file - 1].shard != file.shard {
                        self.first = 0;
                    }
                    closed.insert(FileColumns::open(file, &self.files, self.with_docs)?)
                }
            };
            let row = columns.rows_read();
            if let Some(rows) = columns.read()? {
                let mut chunk = VectorChunk {
                    shard: file.shard,
                    first: 0,
                    vectors: ChunkColumn::File(rows.vectors),
                    docs: ChunkColumn::File(rows.docs),
                    rows: ChunkRows::From(VectorRow { file: self.next_file, row }),
                    width: self.files.width,
                };
                if let Some(counting) = columns.counting() {
                    chunk.retain(|_, vector| counting.has(row + vector as u64));
                }
                return Ok(Some(chunk));
            }
            self.columns = None;
            self.next_file += 1;
        }
    }

    /// Opens all files of the next shard; returns false if there is none.
    fn open_shard(&mut self) -> Result<bool> {
        let files = self.files.files.clone();
        let Some(shard) = files.get(self.next_file).map(|file| file.shard) else { return Ok(false) };
        self.cursors.clear();
        self.first_file = self.next_file;
        self.first = 0;
        while let Some(file) = files.get(self.next_file).filter(|file| file.shard == shard) {
            self.next_file += 1;
            let mut cursor = RowCursor::new(FileColumns::open(file, &self.files, true)?);
            if let Some(doc) = cursor.doc()? {
                self.heads.push(Reverse((doc, self.cursors.len())));
            }
            self.cursors.push(cursor);
        }
        Ok(true)
    }

    /// The next vectors of the open shard, merged from its files, or the first ones of the next
    /// shard.
    fn next_merged(&mut self) -> Result<Option<VectorChunk>> {
        if self.heads.is_empty() && !self.open_shard()? {
            return Ok(None);
        }
        let Some(shard) = self.cursors.first().map(|cursor| cursor.file().shard) else { return Ok(None) };
        let width = self.files.width;
        let most = rows_per_chunk(width);
        let (mut docs, mut words, mut rows) = (Vec::new(), Vec::with_capacity(most * width), Vec::new());
        while docs.len() < most
            && let Some(Reverse((mut doc, number))) = self.heads.pop()
        {
            let other = self.heads.peek().map(|Reverse((doc, _))| *doc);
            let cursor = &mut self.cursors[number];
            loop {
                docs.push(doc.to_table() as u64);
                rows.push(VectorRow { file: self.first_file + number, row: cursor.row() });
                cursor.take(&mut words);
                let Some(following) = cursor.doc()? else { break };
                ensure!(following > doc, "{} is out of order", cursor.file().range.path().display());
                doc = following;
                if other.is_some_and(|other| other < doc) || docs.len() >= most {
                    self.heads.push(Reverse((doc, number)));
                    break;
                }
            }
        }
        let (vectors, docs) = (ChunkColumn::Copied(words), ChunkColumn::Copied(docs));
        Ok(Some(VectorChunk { shard, first: 0, vectors, docs, rows: ChunkRows::Each(rows), width }))
    }
}
