//! One open file of vectors: its columns, read from the first row to the last.

use std::sync::Arc;

use anyhow::{Result, ensure};

use super::counting::{CountingRows, DOCS};
use super::vectors::{VectorFile, VectorFiles};
use crate::records::DocId;
use crate::tables::{AscendingColumn, PlainColumn, WordSlice};

/// The number of words of a column that are read at a time, about: few enough that they stay in
/// cache, together with the table in which the reader looks them up.
const CHUNK_WORDS: usize = 1 << 15;

/// The number of rows that are read at a time, of `width` words each.
pub(super) fn rows_per_chunk(width: usize) -> usize {
    CHUNK_WORDS.div_ceil(width)
}

/// An open file: its column of vectors (or of their hashes), and its documents if the reader needs
/// them.
pub(super) struct FileColumns {
    file: VectorFile,
    vectors: PlainColumn,
    docs: Option<AscendingColumn>,
    /// Which rows count; `None` if all do.
    counting: Option<Arc<CountingRows>>,
    /// The words of a vector.
    width: usize,
    /// The number of rows that were read.
    rows_read: u64,
}

/// Consecutive rows of a file, those that do not count among them: vectors one after the other, and
/// their documents if they are read.
pub(super) struct FileRows {
    pub(super) vectors: WordSlice,
    pub(super) docs: WordSlice,
}

impl FileColumns {
    /// Opens a file of `files`, with its documents or without.
    ///
    /// # Errors
    /// If the file cannot be read, or has another number of rows that count than expected: names
    /// the file.
    pub(super) fn open(file: &VectorFile, files: &VectorFiles, with_docs: bool) -> Result<FileColumns> {
        let range = file.range.with_all_rows();
        let vectors = PlainColumn::open(&range, files.column, files.width)?;
        let docs = if with_docs { Some(AscendingColumn::open(&range, DOCS)?) } else { None };
        let counting = file.counting()?;
        let rows = counting.as_ref().map_or(vectors.rows(), |rows| rows.count());
        let (path, expected) = (range.path().display(), file.rows);
        ensure!(rows == expected, "{path} has {rows} vectors, {expected} were expected");
        Ok(FileColumns { vectors, docs, counting, file: file.clone(), width: files.width, rows_read: 0 })
    }

    /// The file.
    pub(super) fn file(&self) -> &VectorFile {
        &self.file
    }

    /// Which rows count; `None` if all do.
    pub(super) fn counting(&self) -> Option<&CountingRows> {
        self.counting.as_deref()
    }

    /// The number of rows that were read.
    pub(super) fn rows_read(&self) -> u64 {
        self.rows_read
    }

    /// Reads the next rows; `None` at the end of the file.
    pub(super) fn read(&mut self) -> Result<Option<FileRows>> {
        let rows = (self.vectors.rows() - self.rows_read).min(rows_per_chunk(self.width) as u64);
        if rows == 0 {
            return Ok(None);
        }
        let docs = match &self.docs {
            Some(docs) => docs.read(self.rows_read, rows as usize)?,
            None => WordSlice::default(),
        };
        let vectors = self.vectors.read(self.rows_read, rows as usize)?;
        self.rows_read += rows;
        Ok(Some(FileRows { vectors, docs }))
    }
}

/// Reads the rows of a file that count, with their documents, row by row.
pub(super) struct RowCursor {
    columns: FileColumns,
    /// The rows that were read last.
    rows: Option<FileRows>,
    /// The position of the next row in `rows`.
    position: usize,
    /// The number of the next row in the file.
    row: u64,
}

impl RowCursor {
    /// Starts at the first row of a file that was opened with its documents.
    pub(super) fn new(columns: FileColumns) -> RowCursor {
        RowCursor { columns, rows: None, position: 0, row: 0 }
    }

    /// The file.
    pub(super) fn file(&self) -> &VectorFile {
        self.columns.file()
    }

    /// The number of the next row in the file; that of [`RowCursor::doc`] after a call of it.
    pub(super) fn row(&self) -> u64 {
        self.row
    }

    /// The document of the next row that counts; `None` at the end of the file.
    pub(super) fn doc(&mut self) -> Result<Option<DocId>> {
        loop {
            while let Some(doc) = self.rows.as_ref().and_then(|rows| rows.docs.get(self.position)) {
                if self.columns.counting().is_none_or(|rows| rows.has(self.row)) {
                    return Ok(Some(DocId::from_table(*doc as i64)));
                }
                (self.position, self.row) = (self.position + 1, self.row + 1);
            }
            (self.rows, self.position) = (self.columns.read()?, 0);
            if self.rows.is_none() {
                return Ok(None);
            }
        }
    }

    /// Appends the vector of the next row to `words`, and moves behind that row.
    pub(super) fn take(&mut self, words: &mut Vec<u64>) {
        if let Some(rows) = &self.rows {
            let width = self.columns.width;
            words.extend_from_slice(&rows.vectors[self.position * width..][..width]);
            self.position += 1;
            self.row += 1;
        }
    }
}
