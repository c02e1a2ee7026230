//! The supershingles of own documents, in large pieces, in the order of documents; nothing else of the files is read.
//!
//! Within a file rows ascend by document. In a store's first week the files of a shard follow each other, and a piece is
//! the column as it lies in the file. In later weeks the files of a shard (one a wave) hold known documents and new ones
//! alike: they are merged while they are read, through a heap of their heads.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::path::{Path, PathBuf};
use std::rc::Rc;

use anyhow::{Result, ensure};
use arrow_array::Int64Array;

use super::pages::own_segments;
use crate::kernels::memory::advise_huge_pages;
use crate::records::DocId;
use crate::state::{Journal, Segment};
use crate::structures::Ownership;
use crate::tables::{AscendingColumn, FeatureRow, PlainColumn, Scan, Table, Words, field};

/// The files that hold a worker's own vectors.
///
/// A vector is known by its row among all vectors of its shard, in the order of documents.
#[derive(Clone)]
pub struct VectorFiles {
    files: Rc<[VectorFile]>,
    order: Order,
    only: Option<Only>,
    /// The column that is read.
    column: &'static str,
    /// Supershingles of a vector.
    pub width: usize,
}

/// Where a vector lies: a row of one of the files.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct VectorRow {
    file: usize,
    row: u64,
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

/// Words of the column that are read at a time, about: so few that they stay near the core, and so does what they are
/// looked up in.
const CHUNK_WORDS: usize = 1 << 15;
/// The column of vectors, that of their hashes, and that of their documents.
const VECTORS: &str = "supershingles";
const HASHES: &str = "vector";
const DOCS: &str = "doc";

/// Some vectors of one shard.
pub struct VectorChunk {
    /// The shard.
    pub shard: u32,
    /// The row of the first of them.
    pub first: u64,
    vectors: ChunkColumn,
    docs: ChunkColumn,
    places: Located,
    width: usize,
}

/// Words of some vectors or documents: as they lie in a file, or taken from several.
enum ChunkColumn {
    File(Words),
    Words(Vec<u64>),
}

impl ChunkColumn {
    fn words(&self) -> &[u64] {
        match self {
            ChunkColumn::File(words) => words,
            ChunkColumn::Words(words) => words,
        }
    }
}

/// Where some vectors lie: from a place on, or each for itself.
enum Located {
    From(VectorRow),
    Each(Vec<VectorRow>),
}

impl Located {
    fn of(&self, at: usize) -> VectorRow {
        match self {
            Located::From(first) => VectorRow { row: first.row + at as u64, ..*first },
            Located::Each(places) => places[at],
        }
    }
}

impl VectorFiles {
    /// The vectors in these files, shard by shard in ascending order, each of `width` supershingles; those of one shard
    /// follow each other.
    pub fn new(files: Vec<VectorFile>, width: usize) -> VectorFiles {
        let files = files.into_iter().filter(|file| file.rows > 0).collect();
        VectorFiles { files, order: Order::Following, only: None, column: VECTORS, width }
    }

    /// The vectors of the own shards of a week whose tables are in `folder`.
    pub fn of_week(folder: &Path, journal: &Journal, owned: &Ownership, width: usize) -> VectorFiles {
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

    /// The vectors of some of the shards, which ascend.
    pub fn of_shards(&self, shards: &[u32]) -> VectorFiles {
        let before = |shard: u32| self.files.partition_point(|file| file.shard < shard);
        let files = shards.iter().flat_map(|shard| self.files[before(*shard)..before(shard + 1)].iter().cloned());
        VectorFiles { files: files.collect(), ..self.clone() }
    }

    /// Those of the vectors whose documents are wanted: `rows` of them.
    pub fn only(&self, wanted: impl Fn(DocId) -> bool + 'static, rows: u64) -> VectorFiles {
        VectorFiles { only: Some(Only { wanted: Rc::new(wanted), rows }), ..self.clone() }
    }

    /// The hashes of the vectors, in their place: one word for each.
    pub fn hashes(&self) -> VectorFiles {
        VectorFiles { column: HASHES, width: 1, ..self.clone() }
    }

    /// Reads the vectors at some places: one after the other, in the order of `places`.
    ///
    /// # Errors
    /// Names the file that cannot be read, or has no such row.
    pub fn vectors(&self, places: &[VectorRow]) -> Result<Vec<u64>> {
        let mut words = vec![0; places.len() * self.width];
        let mut order: Vec<usize> = (0..places.len()).collect();
        order.sort_unstable_by_key(|at| places[*at]);
        for of_file in order.chunk_by(|a, b| places[*a].file == places[*b].file) {
            let rows: Vec<u64> = of_file.iter().map(|at| places[*at].row).collect();
            let file = &self.files[places[of_file[0]].file];
            let mut of_file = of_file.iter();
            PlainColumn::open(&file.path, self.column, self.width)?.each(&rows, |value| {
                if let Some(at) = of_file.next() {
                    words[at * self.width..][..self.width].copy_from_slice(value);
                }
            })?;
        }
        Ok(words)
    }

    /// Those of the wanted documents, which ascend, that have vectors here; and their vectors.
    ///
    /// # Errors
    /// Names the file that cannot be read.
    pub fn find(&self, wanted: &[DocId]) -> Result<(Vec<DocId>, Vec<u64>)> {
        let words: Vec<u64> = wanted.iter().map(|doc| doc.to_table() as u64).collect();
        let mut found = Vec::new();
        for (file, VectorFile { path, shard, .. }) in self.files.iter().enumerate() {
            let [from, to] = [*shard, shard + 1].map(|shard| wanted.partition_point(|doc| doc.shard() < shard));
            if from < to {
                let rows = AscendingColumn::open(path, DOCS)?.find(&words[from..to])?.into_iter();
                found.extend(rows.map(|(at, row)| (wanted[from + at], VectorRow { file, row })));
            }
        }
        if let Some(only) = &self.only {
            found.retain(|(doc, _)| (only.wanted)(*doc));
        }
        // Files of one shard may hold documents in any order to each other.
        found.sort_unstable();
        let places: Vec<VectorRow> = found.iter().map(|(_, place)| *place).collect();
        Ok((found.into_iter().map(|(doc, _)| doc).collect(), self.vectors(&places)?))
    }

    /// Goes over the vectors.
    pub fn chunks(&self) -> ChunkScan {
        match (self.order, &self.only) {
            (Order::Following, None) => self.open(false),
            _ => self.open(true),
        }
    }

    /// Goes over the vectors and their documents.
    pub fn chunks_with_docs(&self) -> ChunkScan {
        self.open(true)
    }

    fn open(&self, docs: bool) -> ChunkScan {
        ChunkScan {
            files: self.clone(),
            docs,
            at: 0,
            first: 0,
            column: None,
            open: Vec::new(),
            opened: 0,
            heads: BinaryHeap::new(),
        }
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
    pub fn docs(&self, owned: &Ownership) -> Result<Vec<DocId>> {
        let mut all = Vec::with_capacity(self.len() as usize);
        // Names are looked up in any order.
        advise_huge_pages(all.spare_capacity_mut());
        for file in self.files.iter() {
            Scan::open(&file.path, &[DOCS])?.for_each(|batch| {
                let docs: &Int64Array = field(batch, DOCS)?;
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
pub struct ChunkScan {
    files: VectorFiles,
    /// Whether documents are read with the vectors.
    docs: bool,
    /// The file that is read next.
    at: usize,
    /// The row of the next vector.
    first: u64,
    /// The open file, where they follow each other.
    column: Option<FileColumns>,
    /// The open files, where they are merged, and the number of the first of them.
    open: Vec<OpenFile>,
    opened: usize,
    /// The next document of each of them, where they are merged.
    heads: BinaryHeap<Reverse<(DocId, usize)>>,
}

/// An open file, and the piece of it that comes next.
struct OpenFile {
    columns: FileColumns,
    piece: Option<FilePiece>,
    /// The first of the piece that was not taken, and its row in the file.
    at: usize,
    row: u64,
}

/// Some vectors of a file as they lie, and their documents where they were asked for.
type FilePiece = (Words, Words);

impl ChunkScan {
    /// Some more vectors, all of one shard; `None` at the end.
    ///
    /// # Errors
    /// Names the file that cannot be read, or that holds other vectors than are expected of it.
    pub(crate) fn next(&mut self) -> Result<Option<VectorChunk>> {
        loop {
            let chunk = match self.files.order {
                Order::Following => self.following()?,
                Order::Merged => self.merged()?,
            };
            let Some(mut chunk) = chunk else { return Ok(None) };
            if let (Some(first), Some(last)) = (chunk.docs().first(), chunk.docs().last()) {
                ensure!(
                    first.shard() == chunk.shard
                        && last.shard() == chunk.shard
                        && chunk.docs().is_sorted_by(|a, b| a < b),
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
    fn following(&mut self) -> Result<Option<VectorChunk>> {
        loop {
            let Some(file) = self.files.files.get(self.at) else { return Ok(None) };
            let columns = match &mut self.column {
                Some(columns) => columns,
                none => {
                    if self.at == 0 || self.files.files[self.at - 1].shard != file.shard {
                        self.first = 0;
                    }
                    none.insert(FileColumns::open(file, (self.files.column, self.files.width), self.docs)?)
                }
            };
            let row = columns.read;
            if let Some((vectors, docs)) = columns.next(self.files.width)? {
                return Ok(Some(VectorChunk {
                    shard: file.shard,
                    first: 0,
                    vectors: ChunkColumn::File(vectors),
                    docs: ChunkColumn::File(docs),
                    places: Located::From(VectorRow { file: self.at, row }),
                    width: self.files.width,
                }));
            }
            self.column = None;
            self.at += 1;
        }
    }

    /// The next vectors of all files of a shard.
    fn merged(&mut self) -> Result<Option<VectorChunk>> {
        let width = self.files.width;
        if self.heads.is_empty() {
            let files = self.files.files.clone();
            let Some(shard) = files.get(self.at).map(|file| file.shard) else { return Ok(None) };
            self.open.clear();
            self.opened = self.at;
            self.first = 0;
            while let Some(file) = files.get(self.at).filter(|file| file.shard == shard) {
                self.at += 1;
                let columns = FileColumns::open(file, (self.files.column, width), true)?;
                let mut head = OpenFile { columns, piece: None, at: 0, row: 0 };
                if let Some(doc) = head.doc(width)? {
                    self.heads.push(Reverse((doc, self.open.len())));
                }
                self.open.push(head);
            }
        }
        let Some(shard) = self.open.first().map(|head| head.columns.file.shard) else { return Ok(None) };
        let rows = CHUNK_WORDS.div_ceil(width);
        let (mut docs, mut words, mut places) = (Vec::new(), Vec::with_capacity(rows * width), Vec::new());
        while docs.len() < rows
            && let Some(Reverse((mut doc, at))) = self.heads.pop()
        {
            let next = self.heads.peek().map(|Reverse((doc, _))| *doc);
            let head = &mut self.open[at];
            loop {
                docs.push(doc.to_table() as u64);
                places.push(VectorRow { file: self.opened + at, row: head.row });
                head.take(&mut words, width);
                match head.doc(width)? {
                    None => break,
                    Some(following) => {
                        ensure!(following > doc, "{} is not in order", head.columns.file.path.display());
                        doc = following;
                    }
                }
                if next.is_some_and(|next| next < doc) || docs.len() >= rows {
                    self.heads.push(Reverse((doc, at)));
                    break;
                }
            }
        }
        let (vectors, docs) = (ChunkColumn::Words(words), ChunkColumn::Words(docs));
        Ok(Some(VectorChunk { shard, first: 0, vectors, docs, places: Located::Each(places), width }))
    }
}

/// The columns of an open file, as they lie.
struct FileColumns {
    vectors: PlainColumn,
    docs: Option<AscendingColumn>,
    file: VectorFile,
    /// Rows that were read.
    read: u64,
}

impl FileColumns {
    fn open(file: &VectorFile, (name, width): (&'static str, usize), docs: bool) -> Result<FileColumns> {
        let vectors = PlainColumn::open(&file.path, name, width)?;
        let docs = if docs { Some(AscendingColumn::open(&file.path, DOCS)?) } else { None };
        let (path, found, wanted) = (file.path.display(), vectors.rows(), file.rows);
        ensure!(found == wanted, "{path} has {found} vectors, {wanted} were expected");
        Ok(FileColumns { vectors, docs, file: file.clone(), read: 0 })
    }

    /// Some more vectors, and their documents.
    fn next(&mut self, width: usize) -> Result<Option<FilePiece>> {
        let rows = (self.file.rows - self.read).min(CHUNK_WORDS.div_ceil(width) as u64);
        if rows == 0 {
            return Ok(None);
        }
        let docs = self.docs.as_ref().map_or(Ok(Words::default()), |docs| docs.read(self.read, rows as usize));
        let piece = (self.vectors.read(self.read, rows as usize)?, docs?);
        self.read += rows;
        Ok(Some(piece))
    }
}

impl OpenFile {
    /// The document that comes next; `None` at the end of the file.
    fn doc(&mut self, width: usize) -> Result<Option<DocId>> {
        loop {
            if let Some(doc) = self.piece.as_ref().and_then(|(_, docs)| docs.get(self.at)) {
                return Ok(Some(DocId::from_table(*doc as i64)));
            }
            (self.piece, self.at) = (self.columns.next(width)?, 0);
            if self.piece.is_none() {
                return Ok(None);
            }
        }
    }

    /// Takes the vector of the document that comes next.
    fn take(&mut self, words: &mut Vec<u64>, width: usize) {
        if let Some((vectors, _)) = &self.piece {
            words.extend_from_slice(&vectors[self.at * width..][..width]);
            self.at += 1;
            self.row += 1;
        }
    }
}

impl VectorChunk {
    /// How many vectors.
    pub fn rows(&self) -> usize {
        self.words().len() / self.width
    }

    /// Their documents; none where they were not asked for ([`VectorFiles::chunks_with_docs`]).
    pub fn docs(&self) -> &[DocId] {
        bytemuck::cast_slice(self.docs.words())
    }

    /// Where one of them lies.
    pub fn place(&self, at: usize) -> VectorRow {
        self.places.of(at)
    }

    /// The words of the column, one vector's after the other's.
    pub fn words(&self) -> &[u64] {
        self.vectors.words()
    }

    /// Keeps the vectors of wanted documents.
    fn retain(&mut self, wanted: &dyn Fn(DocId) -> bool) {
        let (all, docs, width) = (self.words(), self.docs(), self.width);
        let kept: Vec<usize> = (0..docs.len()).filter(|at| wanted(docs[*at])).collect();
        let words = kept.iter().flat_map(|at| &all[at * width..(at + 1) * width]).copied().collect();
        let docs = kept.iter().map(|at| docs[*at].to_table() as u64).collect();
        self.places = Located::Each(kept.iter().map(|at| self.places.of(*at)).collect());
        (self.vectors, self.docs) = (ChunkColumn::Words(words), ChunkColumn::Words(docs));
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
            for (doc, words) in chunk.docs().iter().zip(chunk.words().chunks_exact(WIDTH)) {
                assert_eq!(words, vector(*doc));
            }
            all.extend_from_slice(chunk.docs());
        }
        all
    }

    /// Looks up one document in some, all of them, and none; and, beside them, what is not there.
    fn look_up(files: &VectorFiles, docs: &[DocId]) {
        for step in [1, 3, 500, docs.len()] {
            let held: Vec<DocId> = docs.iter().copied().step_by(step).collect();
            let next = held.iter().map(|doc| DocId::new(doc.shard(), doc.row() + 1));
            let mut wanted: Vec<DocId> = next.filter(|doc| docs.binary_search(doc).is_err()).collect();
            wanted.extend(&held);
            wanted.sort_unstable();
            let (found, words) = files.find(&wanted).unwrap();
            assert_eq!(found, held);
            assert!(words.chunks_exact(WIDTH).zip(held).all(|(words, doc)| words == vector(doc)), "every {step}");
        }
        assert_eq!(files.find(&[]).unwrap(), (Vec::new(), Vec::new()));
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
        let owned = Ownership::new(0, 2, &[90_000, 0, 10]);
        assert_eq!(merged.docs(&owned).unwrap(), wanted);
        look_up(&merged, &wanted);
        let odd = |doc: &DocId| doc.row() % 2 == 1;
        wanted.retain(odd);
        let only = merged.only(move |doc| odd(&doc), wanted.len() as u64);
        assert_eq!(
            (read(&only), only.len(), only.docs(&owned).unwrap()),
            (wanted.clone(), wanted.len() as u64, wanted.clone())
        );
        look_up(&only, &wanted);
    }

    #[test]
    fn files_that_follow_each_other_are_read_as_they_lie() {
        let folder = tempfile::tempdir().unwrap();
        let of_files = [docs(0, 0..50_000), docs(0, 50_000..50_001), docs(1, 3..4), docs(4, 0..30_000)];
        let files = VectorFiles::new(write(folder.path(), &of_files), WIDTH);
        assert_eq!(read(&files), of_files.concat());
        look_up(&files, &of_files.concat());
        assert_eq!(read(&files.of_shards(&[1, 4])), of_files[2..].concat());
        let mut chunks = files.chunks();
        let first = chunks.next().unwrap().unwrap();
        assert!(first.docs().is_empty() && first.rows() > 1000);
        assert_eq!(first.words()[..WIDTH], vector(DocId::new(0, 0)));
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
