//! The vectors of own documents, read from their segments batch by batch.

use std::borrow::Cow;
use std::collections::VecDeque;
use std::path::{Path, PathBuf};
use std::rc::Rc;

use anyhow::{Context, Result, bail};
use arrow_array::{Array, FixedSizeBinaryArray, Int64Array, RecordBatch};

use super::phase::Owned;
use crate::records::DocId;
use crate::state::{Journal, Segment, Unfinished};
use crate::tables::{DocumentRow, FeatureRow, Scan, Table, field};

/// Sketches of documents with words, as their segments hold them, in the order of segments.
pub struct Vectors {
    unfinished: Unfinished,
    segments: VecDeque<Segment>,
    open: Option<Scan>,
}

/// Some documents' sketches.
#[derive(Clone, Debug, Default)]
pub struct VectorBatch {
    /// The documents, ascending within a segment.
    pub docs: Vec<DocId>,
    /// Their supershingles, one document's after the other's.
    pub supershingles: Vec<u64>,
    /// Their features (low 32 bits), one document's after the other's.
    pub features: Vec<u32>,
}

/// The segments of a worker's own shards, shard by shard.
pub fn own_segments(journal: &Journal, owned: &Owned) -> VecDeque<Segment> {
    let shards = journal.by_shard();
    owned.shards().filter_map(|shard| shards.get(&shard)).flatten().copied().collect()
}

impl Vectors {
    /// The vectors of the own shards, with features.
    pub fn open(unfinished: &Unfinished, journal: &Journal, owned: &Owned) -> Vectors {
        let mut segments = own_segments(journal, owned);
        segments.retain(|segment| segment.features > 0);
        Vectors { unfinished: unfinished.clone(), segments, open: None }
    }

    /// The next documents; `None` at the end.
    ///
    /// # Errors
    /// Names the segment that cannot be read.
    pub fn batch(&mut self) -> Result<Option<VectorBatch>> {
        loop {
            let Some(scan) = &mut self.open else {
                let Some(segment) = self.segments.pop_front() else { return Ok(None) };
                let path = self.unfinished.table(FeatureRow::NAME, &segment.file());
                self.open = Some(Scan::open(&path, &["doc", "supershingles", "features"])?);
                continue;
            };
            let Some(batch) = scan.batch()? else {
                self.open = None;
                continue;
            };
            let docs: &Int64Array = field(&batch, "doc")?;
            let supershingles: &FixedSizeBinaryArray = field(&batch, "supershingles")?;
            return Ok(Some(VectorBatch {
                docs: docs.values().iter().map(|doc| DocId::from_table(*doc)).collect(),
                supershingles: words(supershingles, u64::from_le_bytes),
                features: words(field(&batch, "features")?, u32::from_le_bytes),
            }));
        }
    }
}

/// The fixed-size words of a binary column, one after the other.
fn words<const N: usize, W>(column: &FixedSizeBinaryArray, word: fn([u8; N]) -> W) -> Vec<W> {
    let rows = (0..column.len()).flat_map(|row| column.value(row).as_chunks::<N>().0);
    rows.map(|bytes| word(*bytes)).collect()
}

/// The files that hold a worker's own vectors, and nothing else of them is read than the column of supershingles.
///
/// A vector is known by its row among all vectors of its shard, in the order of files.
#[derive(Clone, Debug)]
pub struct VectorFiles {
    files: Rc<[VectorFile]>,
    /// Supershingles of a vector.
    pub width: usize,
}

/// Vectors of one shard.
#[derive(Clone, Debug)]
pub struct VectorFile {
    /// The Parquet file.
    pub path: PathBuf,
    /// The shard.
    pub shard: u32,
    /// Its rows.
    pub rows: u64,
}

/// Rows that are read at a time: large against the partitions that they are dealt to.
const CHUNK_ROWS: usize = 1 << 15;

/// Some vectors of one shard.
pub struct Chunk {
    /// The shard.
    pub shard: u32,
    /// The row of the first of them.
    pub first: u64,
    batch: RecordBatch,
}

impl VectorFiles {
    /// The vectors in these files, shard by shard, each of `width` supershingles.
    pub fn new(files: Vec<VectorFile>, width: usize) -> VectorFiles {
        VectorFiles { files: files.into_iter().filter(|file| file.rows > 0).collect(), width }
    }

    /// The vectors of the own shards of a week.
    pub fn of_week(unfinished: &Unfinished, journal: &Journal, owned: &Owned, width: usize) -> VectorFiles {
        let file = |segment: Segment| VectorFile {
            path: unfinished.table(FeatureRow::NAME, &segment.file()),
            shard: segment.shard,
            rows: segment.features,
        };
        VectorFiles::new(own_segments(journal, owned).into_iter().map(file).collect(), width)
    }

    /// Goes over the vectors.
    pub fn chunks(&self) -> Chunks {
        Chunks { files: self.files.clone(), width: self.width, at: 0, first: 0, read: 0, open: None }
    }

    /// How many vectors.
    pub fn len(&self) -> u64 {
        self.files.iter().map(|file| file.rows).sum()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.files.is_empty()
    }
}

/// Goes over the vectors of [`VectorFiles`].
pub struct Chunks {
    files: Rc<[VectorFile]>,
    width: usize,
    /// The file that is read.
    at: usize,
    /// The row of its first vector.
    first: u64,
    /// Its rows that are read.
    read: u64,
    open: Option<Scan>,
}

impl Chunks {
    /// Some more vectors, all of one shard; `None` at the end.
    ///
    /// # Errors
    /// Names the file that cannot be read, or that holds other vectors than are expected of it.
    pub fn next(&mut self) -> Result<Option<Chunk>> {
        loop {
            let Some(file) = self.files.get(self.at) else { return Ok(None) };
            let scan = match &mut self.open {
                Some(scan) => scan,
                none => none.insert(Scan::open_by(&file.path, &["supershingles"], CHUNK_ROWS)?),
            };
            let Some(batch) = scan.batch()? else {
                if self.read != file.rows {
                    bail!("{} has {} vectors, {} were expected", file.path.display(), self.read, file.rows);
                }
                (self.at, self.first, self.read, self.open) = (self.at + 1, self.first + file.rows, 0, None);
                if self.files.get(self.at).is_some_and(|next| next.shard != file.shard) {
                    self.first = 0;
                }
                continue;
            };
            let column: &FixedSizeBinaryArray = field(&batch, "supershingles")?;
            if column.value_length() as usize != 8 * self.width || self.read + batch.num_rows() as u64 > file.rows {
                bail!("{} holds other vectors than are expected of it", file.path.display());
            }
            let first = self.first + self.read;
            self.read += batch.num_rows() as u64;
            return Ok(Some(Chunk { shard: file.shard, first, batch }));
        }
    }
}

impl Chunk {
    /// How many vectors.
    pub fn rows(&self) -> usize {
        self.batch.num_rows()
    }

    /// The supershingles, one vector's after the other's.
    ///
    /// # Errors
    /// Where the column is another one than [`Chunks::next`] saw: never.
    pub fn supershingles(&self) -> Result<Cow<'_, [u64]>> {
        let column: &FixedSizeBinaryArray = field(&self.batch, "supershingles")?;
        let bytes = &column.value_data()[..column.len() * column.value_length() as usize];
        // Where the column lies as it should, it is taken as it is.
        Ok(match bytemuck::try_cast_slice(bytes) {
            Ok(words) => Cow::Borrowed(words),
            Err(_) => Cow::Owned(bytes.as_chunks::<8>().0.iter().map(|word| u64::from_le_bytes(*word)).collect()),
        })
    }
}

/// The documents of the own vectors, in their order.
///
/// # Errors
/// Names the file that cannot be read, or that holds a document that its shard has not.
pub fn vector_docs(files: &VectorFiles, owned: &Owned) -> Result<Vec<DocId>> {
    let mut all = Vec::with_capacity(files.len() as usize);
    for file in files.files.iter() {
        Scan::open(&file.path, &["doc"])?.for_each(|batch| {
            let docs: &Int64Array = field(batch, "doc")?;
            for doc in docs.values() {
                let doc = DocId::from_table(*doc);
                check_own(doc, file.shard, owned, &file.path)?;
                all.push(doc);
            }
            Ok(())
        })?;
    }
    Ok(all)
}

/// The checksums of all own documents, by number.
///
/// # Errors
/// Names the segment that cannot be read, or that holds a document that its shard has not.
pub fn checksums(unfinished: &Unfinished, journal: &Journal, owned: &Owned) -> Result<Vec<u128>> {
    let mut checksums = vec![0; owned.len()];
    for segment in own_segments(journal, owned) {
        let path = unfinished.table(DocumentRow::NAME, &segment.file());
        Scan::open(&path, &["doc", "checksum"])?.for_each(|batch| {
            let docs: &Int64Array = field(batch, "doc")?;
            let column: &FixedSizeBinaryArray = field(batch, "checksum")?;
            for row in 0..batch.num_rows() {
                let doc = DocId::from_table(docs.value(row));
                check_own(doc, segment.shard, owned, &path)?;
                let bytes = column.value(row).try_into().context("a checksum has 16 bytes")?;
                checksums[owned.index(doc)] = u128::from_be_bytes(bytes);
            }
            Ok(())
        })?;
    }
    Ok(checksums)
}

/// Refuses a document of a file that is not of the file's shard.
fn check_own(doc: DocId, shard: u32, owned: &Owned, path: &Path) -> Result<()> {
    if doc.shard() != shard || doc.row() >= owned.rows(shard) {
        bail!("{} holds the document {doc}, which is not of its shard", path.display());
    }
    Ok(())
}
