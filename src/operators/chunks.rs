//! The supershingles of own documents, in large pieces, in the order of documents; nothing else of the files is read.
//!
//! Within a file rows ascend by document. In a store's first week the files of a shard follow each other, and a piece is
//! the column as it lies in the file. In later weeks the files of a shard (one a wave) hold known documents and new ones
//! alike: they are merged while they are read, through a heap of their heads.

use std::borrow::Cow;
use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::path::{Path, PathBuf};
use std::rc::Rc;

use anyhow::{Result, bail, ensure};
use arrow_array::{FixedSizeBinaryArray, Int64Array, RecordBatch};
use bytes::Bytes;

use super::phase::Owned;
use super::vectors::own_segments;
use crate::records::DocId;
use crate::state::{Journal, Segment};
use crate::tables::{FeatureRow, PlainColumn, Scan, Table, field};

/// The files that hold a worker's own vectors.
///
/// A vector is known by its row among all vectors of its shard, in the order of documents.
#[derive(Clone)]
pub struct VectorFiles {
    files: Rc<[VectorFile]>,
    order: Order,
    only: Option<Only>,
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

/// How the files of one shard lie to each other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Order {
    /// Every document of a file comes before those of the next.
    Following,
    /// Any.
    Merged,
}

/// Some of the vectors: which, and how many they are.
#[derive(Clone)]
struct Only {
    wanted: Rc<dyn Fn(DocId) -> bool>,
    rows: u64,
}

/// Rows that are read at a time: large against the partitions that they are dealt to.
const CHUNK_ROWS: usize = 1 << 15;
/// Rows of each file that are read at a time where files are merged.
const MERGED_ROWS: usize = 1 << 12;

/// Some vectors of one shard.
pub struct Chunk {
    /// The shard.
    pub shard: u32,
    /// The row of the first of them.
    pub first: u64,
    vectors: Column,
    docs: Vec<DocId>,
    width: usize,
}

/// Supershingles: as they lie in a file, or taken from several.
enum Column {
    File(Bytes),
    Words(Vec<u64>),
}

impl VectorFiles {
    /// The vectors in these files, shard by shard, each of `width` supershingles; those of one shard follow each other.
    pub fn new(files: Vec<VectorFile>, width: usize) -> VectorFiles {
        let files = files.into_iter().filter(|file| file.rows > 0).collect();
        VectorFiles { files, order: Order::Following, only: None, width }
    }

    /// The vectors of the own shards of a week whose tables are in `folder`.
    pub fn of_week(folder: &Path, journal: &Journal, owned: &Owned, width: usize) -> VectorFiles {
        let file = |segment: Segment| VectorFile {
            path: folder.join(FeatureRow::NAME).join(segment.file()),
            shard: segment.shard,
            rows: segment.features,
        };
        let segments = own_segments(journal, owned);
        // New documents are numbered wave by wave; those of earlier weeks come in any wave.
        let later = segments.iter().any(|segment| segment.urls < segment.documents);
        let files = VectorFiles::new(segments.into_iter().map(file).collect(), width);
        let several = files.files.windows(2).any(|pair| pair[0].shard == pair[1].shard);
        VectorFiles { order: if later && several { Order::Merged } else { Order::Following }, ..files }
    }

    /// The vectors in these files, of which those of one shard hold documents in any order to each other.
    #[cfg(test)]
    pub fn merged(files: Vec<VectorFile>, width: usize) -> VectorFiles {
        VectorFiles { order: Order::Merged, ..VectorFiles::new(files, width) }
    }

    /// The vectors of some of the shards.
    pub fn of_shards(&self, shards: &[u32]) -> VectorFiles {
        let files = self.files.iter().filter(|file| shards.contains(&file.shard)).cloned().collect();
        VectorFiles { files, ..self.clone() }
    }

    /// Those of the vectors whose documents are wanted: `rows` of them.
    pub fn only(&self, wanted: impl Fn(DocId) -> bool + 'static, rows: u64) -> VectorFiles {
        VectorFiles { only: Some(Only { wanted: Rc::new(wanted), rows }), ..self.clone() }
    }

    /// Goes over the vectors.
    pub fn chunks(&self) -> Chunks {
        match (self.order, &self.only) {
            (Order::Following, None) => self.open(false),
            _ => self.open(true),
        }
    }

    /// Goes over the vectors and their documents.
    pub fn chunks_with_docs(&self) -> Chunks {
        self.open(true)
    }

    fn open(&self, docs: bool) -> Chunks {
        Chunks { files: self.clone(), docs, at: 0, first: 0, column: None, open: Vec::new(), heads: BinaryHeap::new() }
    }

    /// How many vectors.
    pub fn len(&self) -> u64 {
        self.only.as_ref().map_or_else(|| self.files.iter().map(|file| file.rows).sum(), |only| only.rows)
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The documents of the vectors, in their order.
    ///
    /// # Errors
    /// Names the file that cannot be read, or that holds a document that its shard has not.
    pub fn docs(&self, owned: &Owned) -> Result<Vec<DocId>> {
        let mut all = Vec::with_capacity(self.len() as usize);
        for file in self.files.iter() {
            Scan::open(&file.path, &["doc"])?.for_each(|batch| {
                let docs: &Int64Array = field(batch, "doc")?;
                for doc in docs.values() {
                    let doc = DocId::from_table(*doc);
                    owned.check(doc, file.shard, &file.path)?;
                    if self.only.as_ref().is_none_or(|only| (only.wanted)(doc)) {
                        all.push(doc);
                    }
                }
                Ok(())
            })?;
        }
        // Only files of one shard can be out of order.
        if self.order == Order::Merged {
            let place = |doc: &DocId| (owned.index(*doc), *doc);
            all.sort_unstable_by_key(place);
        }
        Ok(all)
    }
}

/// Goes over the vectors of [`VectorFiles`].
pub struct Chunks {
    files: VectorFiles,
    /// Whether documents are read with the vectors.
    docs: bool,
    /// The file that is read next.
    at: usize,
    /// The row of the next vector.
    first: u64,
    /// The open file, where they follow each other.
    column: Option<Columns>,
    /// The open files, where they are merged.
    open: Vec<Head>,
    /// The next document of each of them, where they are merged.
    heads: BinaryHeap<Reverse<(DocId, usize)>>,
}

/// An open file.
struct Head {
    scan: Scan,
    file: VectorFile,
    batch: Option<RecordBatch>,
    /// The row of the batch that comes next.
    row: usize,
    read: u64,
}

impl Chunks {
    /// Some more vectors, all of one shard; `None` at the end.
    ///
    /// # Errors
    /// Names the file that cannot be read, or that holds other vectors than are expected of it.
    pub fn next(&mut self) -> Result<Option<Chunk>> {
        loop {
            let chunk = match self.files.order {
                Order::Following => self.following()?,
                Order::Merged => self.merged()?,
            };
            let Some(mut chunk) = chunk else { return Ok(None) };
            if let (Some(first), Some(last)) = (chunk.docs.first(), chunk.docs.last()) {
                ensure!(
                    first.shard() == chunk.shard
                        && last.shard() == chunk.shard
                        && chunk.docs.is_sorted_by(|a, b| a < b),
                    "the features of shard {} are not in order, or of another shard",
                    chunk.shard
                );
            }
            if let Some(only) = &self.files.only {
                chunk.retain(&*only.wanted);
            }
            chunk.first = self.first;
            self.first += chunk.rows() as u64;
            if chunk.rows() > 0 {
                return Ok(Some(chunk));
            }
        }
    }

    /// The next piece of the file that is open.
    fn following(&mut self) -> Result<Option<Chunk>> {
        loop {
            let Some(file) = self.files.files.get(self.at) else { return Ok(None) };
            let columns = match &mut self.column {
                Some(columns) => columns,
                none => {
                    if self.at == 0 || self.files.files[self.at - 1].shard != file.shard {
                        self.first = 0;
                    }
                    none.insert(Columns::open(file, self.files.width, self.docs)?)
                }
            };
            if let Some((vectors, docs)) = columns.next()? {
                return Ok(Some(Chunk {
                    shard: file.shard,
                    first: 0,
                    vectors: Column::File(vectors),
                    docs,
                    width: self.files.width,
                }));
            }
            self.column = None;
            self.at += 1;
        }
    }

    /// The next vectors of all files of a shard.
    fn merged(&mut self) -> Result<Option<Chunk>> {
        let width = self.files.width;
        if self.heads.is_empty() {
            let files = self.files.files.clone();
            let Some(shard) = files.get(self.at).map(|file| file.shard) else { return Ok(None) };
            self.open.clear();
            self.first = 0;
            while let Some(file) = files.get(self.at).filter(|file| file.shard == shard) {
                self.at += 1;
                let mut head = Head::open(file, &["doc", "supershingles"], MERGED_ROWS)?;
                if let Some(doc) = head.doc(width)? {
                    self.heads.push(Reverse((doc, self.open.len())));
                }
                self.open.push(head);
            }
        }
        let Some(shard) = self.open.first().map(|head| head.file.shard) else { return Ok(None) };
        let (mut docs, mut words) = (Vec::new(), Vec::with_capacity(CHUNK_ROWS * width));
        while docs.len() < CHUNK_ROWS
            && let Some(Reverse((mut doc, at))) = self.heads.pop()
        {
            let next = self.heads.peek().map(|Reverse((doc, _))| *doc);
            let head = &mut self.open[at];
            loop {
                docs.push(doc);
                head.take(&mut words)?;
                match head.doc(width)? {
                    None => break,
                    Some(following) => {
                        ensure!(following > doc, "{} is not in order", head.file.path.display());
                        doc = following;
                    }
                }
                if next.is_some_and(|next| next < doc) || docs.len() >= CHUNK_ROWS {
                    self.heads.push(Reverse((doc, at)));
                    break;
                }
            }
        }
        Ok(Some(Chunk { shard, first: 0, vectors: Column::Words(words), docs, width }))
    }
}

/// The columns of an open file that are read as they lie.
struct Columns {
    vectors: PlainColumn,
    docs: Option<Scan>,
    /// Documents that are read, and the first of them that comes next.
    ahead: (Vec<DocId>, usize),
    file: VectorFile,
    width: usize,
    read: u64,
}

impl Columns {
    fn open(file: &VectorFile, width: usize, docs: bool) -> Result<Columns> {
        let vectors = PlainColumn::open(&file.path, "supershingles", 8 * width)?;
        let docs = if docs { Some(Scan::open_by(&file.path, &["doc"], CHUNK_ROWS)?) } else { None };
        Ok(Columns { vectors, docs, ahead: (Vec::new(), 0), file: file.clone(), width, read: 0 })
    }

    /// The vectors of a page, and their documents.
    fn next(&mut self) -> Result<Option<(Bytes, Vec<DocId>)>> {
        let VectorFile { path, rows, .. } = &self.file;
        let Some(page) = self.vectors.page()? else {
            ensure!(self.read == *rows, "{} has {} vectors, {rows} were expected", path.display(), self.read);
            return Ok(None);
        };
        let count = page.len() / (8 * self.width);
        self.read += count as u64;
        ensure!(self.read <= *rows, "{} has more than the {rows} vectors that were expected", path.display());
        let mut docs = Vec::with_capacity(if self.docs.is_some() { count } else { 0 });
        while let Some(scan) = &mut self.docs
            && docs.len() < count
        {
            let (ahead, at) = &mut self.ahead;
            let taken = (count - docs.len()).min(ahead.len() - *at);
            docs.extend_from_slice(&ahead[*at..*at + taken]);
            *at += taken;
            if docs.len() < count {
                let Some(batch) = scan.batch()? else { bail!("{} has fewer documents than vectors", path.display()) };
                ahead.clear();
                *at = 0;
                ahead.extend(field::<Int64Array>(&batch, "doc")?.values().iter().map(|doc| DocId::from_table(*doc)));
            }
        }
        Ok(Some((page, docs)))
    }
}

impl Head {
    fn open(file: &VectorFile, columns: &[&str], rows: usize) -> Result<Head> {
        Ok(Head { scan: Scan::open_by(&file.path, columns, rows)?, file: file.clone(), batch: None, row: 0, read: 0 })
    }

    /// Refuses a batch that is not what its file should hold.
    fn check(&mut self, batch: &RecordBatch, width: usize) -> Result<()> {
        let column: &FixedSizeBinaryArray = field(batch, "supershingles")?;
        self.read += batch.num_rows() as u64;
        if column.value_length() as usize != 8 * width || self.read > self.file.rows {
            bail!("{} holds other vectors than are expected of it", self.file.path.display());
        }
        Ok(())
    }

    fn check_end(&self) -> Result<()> {
        let VectorFile { path, rows, .. } = &self.file;
        ensure!(self.read == *rows, "{} has {} vectors, {rows} were expected", path.display(), self.read);
        Ok(())
    }

    /// The document that comes next; `None` at the end of the file.
    fn doc(&mut self, width: usize) -> Result<Option<DocId>> {
        loop {
            if let Some(batch) = &self.batch
                && self.row < batch.num_rows()
            {
                return Ok(Some(DocId::from_table(field::<Int64Array>(batch, "doc")?.value(self.row))));
            }
            let Some(batch) = self.scan.batch()? else {
                self.check_end()?;
                return Ok(None);
            };
            self.check(&batch, width)?;
            (self.batch, self.row) = (Some(batch), 0);
        }
    }

    /// Takes the vector of the document that comes next.
    fn take(&mut self, words: &mut Vec<u64>) -> Result<()> {
        if let Some(batch) = &self.batch {
            let column: &FixedSizeBinaryArray = field(batch, "supershingles")?;
            let (vector, _) = column.value(self.row).as_chunks::<8>();
            words.extend(vector.iter().map(|word| u64::from_le_bytes(*word)));
            self.row += 1;
        }
        Ok(())
    }
}

impl Chunk {
    /// How many vectors.
    pub fn rows(&self) -> usize {
        match &self.vectors {
            Column::File(bytes) => bytes.len() / (8 * self.width),
            Column::Words(_) => self.docs.len(),
        }
    }

    /// Their documents; none where they were not asked for ([`VectorFiles::chunks_with_docs`]).
    pub fn docs(&self) -> &[DocId] {
        &self.docs
    }

    /// The supershingles, one vector's after the other's.
    pub fn supershingles(&self) -> Cow<'_, [u64]> {
        let bytes = match &self.vectors {
            Column::File(bytes) => &bytes[..],
            Column::Words(words) => return Cow::Borrowed(words),
        };
        // Where the column lies as it should, it is taken as it is.
        match bytemuck::try_cast_slice(bytes) {
            Ok(words) => Cow::Borrowed(words),
            Err(_) => Cow::Owned(bytes.as_chunks::<8>().0.iter().map(|word| u64::from_le_bytes(*word)).collect()),
        }
    }

    /// Keeps the vectors of wanted documents.
    fn retain(&mut self, wanted: &dyn Fn(DocId) -> bool) {
        let (all, width) = (self.supershingles(), self.width);
        let kept: Vec<usize> = (0..self.docs.len()).filter(|at| wanted(self.docs[*at])).collect();
        let words = kept.iter().flat_map(|at| &all[at * width..(at + 1) * width]).copied().collect();
        self.docs = kept.iter().map(|at| self.docs[*at]).collect();
        self.vectors = Column::Words(words);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::records::mix;
    use crate::tables::Writer;

    const WIDTH: usize = 6;

    /// A vector that tells its document.
    fn vector(doc: DocId) -> [u64; WIDTH] {
        std::array::from_fn(|column| mix(doc.to_table() as u64 + column as u64))
    }

    /// Writes documents, those of one file after those of the other.
    fn write(folder: &Path, of_files: &[Vec<DocId>]) -> Vec<VectorFile> {
        let file = |(number, docs): (usize, &Vec<DocId>)| {
            let path = folder.join(format!("{number}.parquet"));
            let mut writer: Writer<FeatureRow> = Writer::create(&path).unwrap();
            for doc in docs {
                let supershingles = vector(*doc).iter().flat_map(|word| word.to_le_bytes()).collect();
                writer.push(FeatureRow { doc: doc.to_table(), supershingles, features: vec![0; 4] }).unwrap();
            }
            VectorFile { path, shard: docs[0].shard(), rows: writer.finish().unwrap() }
        };
        of_files.iter().enumerate().map(file).collect()
    }

    /// All documents that the pieces hold, checked against their vectors and their places.
    fn read(files: &VectorFiles) -> Vec<DocId> {
        let (mut all, mut chunks) = (Vec::new(), files.chunks_with_docs());
        let mut next = std::collections::BTreeMap::new();
        while let Some(chunk) = chunks.next().unwrap() {
            let first = next.entry(chunk.shard).or_insert(0);
            assert_eq!(chunk.first, *first);
            *first += chunk.rows() as u64;
            assert_eq!(chunk.docs().len(), chunk.rows());
            for (doc, words) in chunk.docs().iter().zip(chunk.supershingles().chunks_exact(WIDTH)) {
                assert_eq!(words, vector(*doc));
            }
            all.extend_from_slice(chunk.docs());
        }
        all
    }

    fn docs(shard: u32, rows: impl Iterator<Item = u64>) -> Vec<DocId> {
        rows.map(|row| DocId::new(shard, row)).collect()
    }

    #[test]
    fn files_that_interleave_are_read_in_the_order_of_documents() {
        let folder = tempfile::tempdir().unwrap();
        let rows = |file: u64| (0..90_000u64).filter(move |row| mix(*row) % 3 == file && row % 7 != 0);
        let of_files = [docs(0, rows(0)), docs(0, rows(1)), docs(0, rows(2)), docs(2, 5..9)];
        let files = write(folder.path(), &of_files);
        let merged = VectorFiles { order: Order::Merged, ..VectorFiles::new(files, WIDTH) };
        let mut wanted = of_files.concat();
        wanted.sort_unstable();
        assert_eq!(read(&merged), wanted);
        let owned = Owned::new(0, 2, &[90_000, 0, 10]);
        assert_eq!(merged.docs(&owned).unwrap(), wanted);
        let odd = |doc: &DocId| doc.row() % 2 == 1;
        wanted.retain(odd);
        let only = merged.only(move |doc| odd(&doc), wanted.len() as u64);
        assert_eq!(
            (read(&only), only.len(), only.docs(&owned).unwrap()),
            (wanted.clone(), wanted.len() as u64, wanted)
        );
    }

    #[test]
    fn files_that_follow_each_other_are_read_as_they_lie() {
        let folder = tempfile::tempdir().unwrap();
        let of_files = [docs(0, 0..50_000), docs(0, 50_000..50_001), docs(1, 3..4), docs(4, 0..30_000)];
        let files = VectorFiles::new(write(folder.path(), &of_files), WIDTH);
        assert_eq!(read(&files), of_files.concat());
        assert_eq!(read(&files.of_shards(&[1, 4])), of_files[2..].concat());
        let mut chunks = files.chunks();
        let first = chunks.next().unwrap().unwrap();
        assert!(first.docs().is_empty() && first.rows() > 1000);
        assert_eq!(first.supershingles()[..WIDTH], vector(DocId::new(0, 0)));
    }

    #[test]
    fn a_file_of_other_rows_is_named() {
        let folder = tempfile::tempdir().unwrap();
        let mut files = write(folder.path(), &[docs(0, 0..10)]);
        for rows in [9, 11] {
            files[0].rows = rows;
            for order in [Order::Following, Order::Merged] {
                let files = VectorFiles { order, ..VectorFiles::new(files.clone(), WIDTH) };
                let mut chunks = files.chunks();
                let read = || -> Result<()> {
                    while chunks.next()?.is_some() {}
                    Ok(())
                };
                let error = { read }().unwrap_err().to_string();
                assert!(error.contains("0.parquet"), "{error}");
            }
        }
    }
}
