//! The files with the vectors of a worker's documents: which files they are, and lookups in them.
//!
//! A vector is the supershingles of one document (six by default), from the column `supershingles`;
//! other columns are not read. Within a file, rows ascend by document. In a store's first week, the
//! files of a shard (one a wave) follow each other in the order of documents. In later weeks a file
//! may have documents of earlier weeks and new ones, and then the files of a shard are merged while
//! they are read. Files of earlier weeks have the vectors of pages that stayed, beside others,
//! which do not count.
//!
//! `chunks` scans all vectors; this file reads the vectors of some rows or some documents.

use std::rc::Rc;
use std::sync::{Arc, OnceLock};

use anyhow::Result;
use arrow_array::Int64Array;

use super::counting::{CountingRows, DOCS};
use super::pages::own_segments;
use crate::kernels::memory::advise_huge_pages;
use crate::records::{DocId, FeatureBits};
use crate::state::{Segment, WeekJournal};
use crate::structures::Ownership;
use crate::tables::{AscendingColumn, PlainColumn, RowRange, Scan, field};

/// The column of vectors.
const VECTORS: &str = "supershingles";
/// The column of the hashes of vectors.
const HASHES: &str = "vector";
/// The column of features.
const FEATURES: &str = "features";

/// The files that hold the vectors of a worker's documents.
///
/// A vector is known by its number among all vectors of its shard, in the order of documents.
#[derive(Clone)]
pub struct VectorFiles {
    pub(super) files: Rc<[VectorFile]>,
    pub(super) order: ShardOrder,
    pub(super) only: Option<WantedDocs>,
    /// The name of the column that is read.
    pub(super) column: &'static str,
    /// The number of supershingles of a vector, in words of 64 bits.
    pub width: usize,
}

/// The place of a vector: a row of one of the files, counted with the rows that do not count.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct VectorRow {
    pub(super) file: usize,
    pub(super) row: u64,
}

/// Rows with vectors of one shard.
#[derive(Clone, Debug)]
pub struct VectorFile {
    /// The rows of a Parquet file.
    pub range: RowRange,
    /// The shard.
    pub shard: u32,
    /// The number of rows that count.
    pub rows: u64,
    /// Which rows count, once a reader has needed it; only if some do not.
    counting: Arc<OnceLock<Arc<CountingRows>>>,
}

/// The order of documents over the files of one shard.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ShardOrder {
    /// Every document of a file precedes the documents of the next file.
    Consecutive,
    /// The documents of several files interleave.
    Interleaved,
}

/// A part of the vectors: the documents that are wanted, and how many vectors they have.
#[derive(Clone)]
pub(super) struct WantedDocs {
    pub(super) is_wanted: Rc<dyn Fn(DocId) -> bool>,
    rows: u64,
}

impl ShardOrder {
    /// The order of documents over these files, by the first and the last document of each. The
    /// ids of new documents ascend from wave to wave; documents of earlier weeks come in any wave.
    fn of(files: &[VectorFile]) -> Result<ShardOrder> {
        for of_shard in files.chunk_by(|a, b| a.shard == b.shard).filter(|of_shard| of_shard.len() > 1) {
            let mut end = 0;
            for file in of_shard {
                let docs = AscendingColumn::open(file.range.with_all_rows(), DOCS)?.bounds();
                if docs.start < end {
                    return Ok(ShardOrder::Interleaved);
                }
                end = docs.end;
            }
        }
        Ok(ShardOrder::Consecutive)
    }
}

impl VectorFile {
    /// The rows with the vectors of a shard; `rows` of them count.
    pub fn new(range: RowRange, shard: u32, rows: u64) -> VectorFile {
        VectorFile { range, shard, rows, counting: Arc::default() }
    }

    /// Which rows count; `None` if all do. It is found out once for all clones.
    pub(super) fn counting(&self) -> Result<Option<Arc<CountingRows>>> {
        if !self.range.is_sifted() {
            return Ok(None);
        }
        let counting = match self.counting.get() {
            Some(counting) => counting,
            None => {
                let counting = Arc::new(CountingRows::of(&self.range)?);
                self.counting.get_or_init(|| counting)
            }
        };
        Ok(Some(counting.clone()))
    }
}

impl VectorFiles {
    /// The vectors in these files, each of `width` supershingles. The files are in the order of
    /// shards; files of one shard are in the order of documents.
    pub fn new(files: Vec<VectorFile>, width: usize) -> VectorFiles {
        let files = files.into_iter().filter(|file| file.rows > 0).collect();
        VectorFiles { files, order: ShardOrder::Consecutive, only: None, column: VECTORS, width }
    }

    /// The vectors of a worker's shards, of the week with this journal. `features` finds the rows
    /// that a segment has in `features`.
    ///
    /// # Errors
    /// Those of `features`, and if a file cannot be read: names it.
    pub fn of_week(
        journal: &WeekJournal,
        owned: &Ownership,
        width: usize,
        features: impl Fn(&Segment) -> Result<RowRange>,
    ) -> Result<VectorFiles> {
        let mut segments = own_segments(journal, owned);
        segments.retain(|segment| segment.features > 0);
        let file = |segment: Segment| Ok(VectorFile::new(features(&segment)?, segment.shard, segment.features));
        let files = VectorFiles::new(segments.into_iter().map(file).collect::<Result<_>>()?, width);
        let order = ShardOrder::of(&files.files)?;
        Ok(VectorFiles { order, ..files })
    }

    /// The vectors in these files, whose documents may interleave over the files of one shard.
    #[cfg(test)]
    pub fn merged(files: Vec<VectorFile>, width: usize) -> VectorFiles {
        VectorFiles { order: ShardOrder::Interleaved, ..VectorFiles::new(files, width) }
    }

    /// The vectors of some shards; `shards` ascend.
    pub fn of_shards(&self, shards: &[u32]) -> VectorFiles {
        let before = |shard: u32| self.files.partition_point(|file| file.shard < shard);
        let files = shards.iter().flat_map(|shard| self.files[before(*shard)..before(shard + 1)].iter().cloned());
        VectorFiles { files: files.collect(), ..self.clone() }
    }

    /// The vectors of the documents for which `is_wanted` holds: `rows` vectors.
    pub fn only(&self, is_wanted: impl Fn(DocId) -> bool + 'static, rows: u64) -> VectorFiles {
        VectorFiles { only: Some(WantedDocs { is_wanted: Rc::new(is_wanted), rows }), ..self.clone() }
    }

    /// The hashes of the vectors instead of the vectors: one word for each.
    pub fn hashes(&self) -> VectorFiles {
        VectorFiles { column: HASHES, width: 1, ..self.clone() }
    }

    /// The features instead of the vectors: `count` for each document, four to a word. `None` if
    /// their number is not divisible by four.
    pub fn features(&self, count: usize) -> Option<VectorFiles> {
        (count * size_of::<FeatureBits>()).is_multiple_of(8).then(|| {
            let width = count * size_of::<FeatureBits>() / 8;
            VectorFiles { column: FEATURES, width, ..self.clone() }
        })
    }

    /// Reads the vectors at some places: `width` words for each, in the order of `places`.
    ///
    /// # Errors
    /// If a file cannot be read, or has no such row: names the file.
    pub fn vectors(&self, places: &[VectorRow]) -> Result<Vec<u64>> {
        let mut words = vec![0; places.len() * self.width];
        let mut sorted: Vec<usize> = (0..places.len()).collect();
        sorted.sort_unstable_by_key(|number| places[*number]);
        for of_file in sorted.chunk_by(|a, b| places[*a].file == places[*b].file) {
            let rows: Vec<u64> = of_file.iter().map(|number| places[*number].row).collect();
            let file = &self.files[places[of_file[0]].file];
            let mut numbers = of_file.iter();
            PlainColumn::open(file.range.with_all_rows(), self.column, self.width)?.each(&rows, |value| {
                if let Some(number) = numbers.next() {
                    words[number * self.width..][..self.width].copy_from_slice(value);
                }
            })?;
        }
        Ok(words)
    }

    /// Reads the vectors of some documents, which ascend: returns the documents that have vectors
    /// in these files, in order, and `width` words for each.
    ///
    /// # Errors
    /// If a file cannot be read: names the file.
    pub fn find(&self, wanted: &[DocId]) -> Result<(Vec<DocId>, Vec<u64>)> {
        let (docs, places): (Vec<DocId>, Vec<VectorRow>) = self.places(wanted)?.into_iter().unzip();
        Ok((docs, self.vectors(&places)?))
    }

    /// The places of the vectors of some documents, which ascend: of those that have one, in order.
    ///
    /// # Errors
    /// As [`VectorFiles::find`].
    pub(super) fn places(&self, wanted: &[DocId]) -> Result<Vec<(DocId, VectorRow)>> {
        let words: Vec<u64> = wanted.iter().map(|doc| doc.to_table() as u64).collect();
        let mut found = Vec::new();
        for (file, of) in self.files.iter().enumerate() {
            let [from, to] = [of.shard, of.shard + 1].map(|shard| wanted.partition_point(|doc| doc.shard() < shard));
            if from < to {
                let rows = AscendingColumn::open(of.range.with_all_rows(), DOCS)?.find(&words[from..to])?;
                let counting = if rows.is_empty() { None } else { of.counting()? };
                let rows = rows.into_iter().filter(|(_, row)| counting.as_ref().is_none_or(|rows| rows.has(*row)));
                found.extend(rows.map(|(number, row)| (wanted[from + number], VectorRow { file, row })));
            }
        }
        if let Some(only) = &self.only {
            found.retain(|(doc, _)| (only.is_wanted)(*doc));
        }
        // The documents of several files of a shard may interleave.
        found.sort_unstable();
        Ok(found)
    }

    /// The number of vectors.
    pub fn len(&self) -> u64 {
        self.only.as_ref().map_or_else(|| self.files.iter().map(|file| file.rows).sum(), |only| only.rows)
    }

    /// Whether there are no vectors.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Reads the documents of the vectors, in the order of the vectors.
    ///
    /// # Errors
    /// If a file cannot be read, or has a document that does not belong to its shard: names the
    /// file.
    pub fn docs(&self, owned: &Ownership) -> Result<Vec<DocId>> {
        let mut all = Vec::with_capacity(self.len() as usize);
        // Callers read the list in random order.
        advise_huge_pages(all.spare_capacity_mut());
        for file in self.files.iter() {
            Scan::open(&file.range, &[DOCS])?.for_each(|batch| {
                let docs: &Int64Array = field(batch, DOCS)?;
                for doc in docs.values() {
                    let doc = DocId::from_table(*doc);
                    owned.check(doc, file.shard, file.range.path())?;
                    if self.only.as_ref().is_none_or(|only| (only.is_wanted)(doc)) {
                        all.push(doc);
                    }
                }
                Ok(())
            })?;
        }
        // Only documents of one shard can be out of order.
        if self.order == ShardOrder::Interleaved {
            all.sort_unstable_by_key(|doc| (owned.index(*doc), *doc));
        }
        Ok(all)
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;
    use crate::records::{fold, mix};
    use crate::tables::{FeatureRow, Writer};

    const WIDTH: usize = 6;

    /// A vector that depends on its document.
    fn vector(doc: DocId) -> [u64; WIDTH] {
        std::array::from_fn(|column| mix(doc.to_table() as u64 + column as u64))
    }

    /// Writes one file for each list of documents.
    fn write(folder: &Path, of_files: &[Vec<DocId>]) -> Vec<VectorFile> {
        let file = |(number, docs): (usize, &Vec<DocId>)| {
            let path = folder.join(format!("{number}.parquet"));
            let mut writer: Writer<FeatureRow> = Writer::create(&path).unwrap();
            for doc in docs {
                let supershingles: Vec<u8> = vector(*doc).iter().flat_map(|word| word.to_le_bytes()).collect();
                writer.push(FeatureRow::new(doc.to_table(), &supershingles, &[0; 4])).unwrap();
            }
            VectorFile::new(path.into(), docs[0].shard(), writer.finish().unwrap())
        };
        of_files.iter().enumerate().map(file).collect()
    }

    /// Writes the rows of the documents with their vectors; of those that do not count, other
    /// vectors. Beside it is a file of the documents whose rows count.
    fn write_sifted(folder: &Path, number: usize, docs: &[DocId], counts: impl Fn(DocId) -> bool) -> VectorFile {
        let [path, live] = ["sifted", "live"].map(|name| folder.join(format!("{name}-{number}.parquet")));
        let mut writer: Writer<FeatureRow> = Writer::create(&path).unwrap();
        let mut live_docs: Writer<FeatureRow> = Writer::create(&live).unwrap();
        let mut rows = 0;
        for doc in docs {
            let of = if counts(*doc) { *doc } else { DocId::new(doc.shard() + 99, doc.row()) };
            let supershingles: Vec<u8> = vector(of).iter().flat_map(|word| word.to_le_bytes()).collect();
            let row = FeatureRow::new(doc.to_table(), &supershingles, &[0; 4]);
            writer.push(row.clone()).unwrap();
            if counts(*doc) {
                rows += 1;
                live_docs.push(row).unwrap();
            }
            // A page without words has no features.
            if doc.row() % 10 == 8 {
                live_docs.push(FeatureRow::new(doc.to_table() + 1, &[0; 48], &[0; 4])).unwrap();
            }
        }
        writer.finish().unwrap();
        live_docs.finish().unwrap();
        let all = RowRange::file(path).part(0..docs.len() as u64);
        VectorFile::new(all.live_in(live.into()), docs[0].shard(), rows)
    }

    /// Reads all documents by chunks; checks their vectors and the numbers of the chunks.
    fn read(files: &VectorFiles) -> Vec<DocId> {
        let (mut all, mut chunks) = (Vec::new(), files.chunks_with_docs());
        let mut next = std::collections::BTreeMap::new();
        while let Some(chunk) = chunks.next_chunk().unwrap() {
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

    /// Looks up every document, every third one and so on, and none; each time together with
    /// documents that have no vector.
    fn look_up(files: &VectorFiles, docs: &[DocId]) {
        for step in [1, 3, 500, docs.len()] {
            let present: Vec<DocId> = docs.iter().copied().step_by(step).collect();
            let next = present.iter().map(|doc| DocId::new(doc.shard(), doc.row() + 1));
            let mut wanted: Vec<DocId> = next.filter(|doc| docs.binary_search(doc).is_err()).collect();
            wanted.extend(&present);
            wanted.sort_unstable();
            let (found, words) = files.find(&wanted).unwrap();
            assert_eq!(found, present);
            assert!(words.chunks_exact(WIDTH).zip(present).all(|(words, doc)| words == vector(doc)), "every {step}");
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
        let merged = VectorFiles { order: ShardOrder::Interleaved, ..VectorFiles::new(files, WIDTH) };
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
    fn the_order_of_files_is_that_of_their_documents() {
        let order_of = |of_files: &[Vec<DocId>]| {
            let folder = tempfile::tempdir().unwrap();
            ShardOrder::of(&write(folder.path(), of_files)).unwrap()
        };
        let (first, second) = (docs(0, 10..20), docs(0, 20..21));
        assert_eq!(order_of(&[first.clone(), second.clone(), docs(1, 5..6)]), ShardOrder::Consecutive);
        assert_eq!(order_of(&[second.clone(), docs(1, 5..6)]), ShardOrder::Consecutive);
        assert_eq!(order_of(&[second, first.clone()]), ShardOrder::Interleaved);
        assert_eq!(order_of(&[first, docs(0, 5..6), docs(1, 5..6)]), ShardOrder::Interleaved);
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
        let first = chunks.next_chunk().unwrap().unwrap();
        assert!(first.docs().is_empty() && first.rows() > 1000);
        assert_eq!(first.words()[..WIDTH], vector(DocId::new(0, 0)));
    }

    /// A page that changed has a row in an old file, which does not count, and one in a newer file.
    #[test]
    fn rows_that_do_not_count_are_passed_over() {
        // How many of 100 rows do not count.
        for (seed, share) in [(1, 0), (2, 1), (3, 40), (4, 97), (5, 100)] {
            for order in [ShardOrder::Consecutive, ShardOrder::Interleaved] {
                let folder = tempfile::tempdir().unwrap();
                let random = |doc: DocId, salt: u64| mix(doc.to_table() as u64 ^ (seed << 8 | salt) << 48);
                let is_gone = |doc: DocId| random(doc, 1) % 100 < share;
                // The file with the row of a document that counts, if it is not gone.
                let home = |doc: DocId| match order {
                    ShardOrder::Consecutive => doc.row() as usize / 8_000,
                    ShardOrder::Interleaved => random(doc, 2) as usize % 3,
                };
                let is_in = |file: usize, doc: &DocId| {
                    let others = if order == ShardOrder::Interleaved { share } else { 0 };
                    doc.row() % 10 != 9 && (home(*doc) == file || random(*doc, 3 + file as u64) % 200 < others)
                };
                let counts = |file: usize| move |doc: DocId| home(doc) == file && !is_gone(doc);
                let mut files = Vec::new();
                for file in 0..3 {
                    let of_file: Vec<DocId> = docs(0, 0..24_000).into_iter().filter(|doc| is_in(file, doc)).collect();
                    files.push(write_sifted(folder.path(), file, &of_file, counts(file)));
                }
                files.extend(write(folder.path(), &[docs(0, 30_000..30_003), docs(2, 5..9)]));
                let mut wanted: Vec<DocId> = docs(0, 0..24_000);
                wanted.retain(|doc| doc.row() % 10 != 9 && !is_gone(*doc));
                wanted.extend([docs(0, 30_000..30_003), docs(2, 5..9)].concat());
                let files = VectorFiles { order, ..VectorFiles::new(files, WIDTH) };
                assert_eq!(files.len(), wanted.len() as u64);
                assert!(read(&files) == wanted, "seed {seed}, {order:?}");
                let owned = Ownership::new(0, 2, &[30_003, 0, 10]);
                assert!(files.docs(&owned).unwrap() == wanted);
                look_up(&files, &wanted);
                let (mut chunks, mut hashes) = (files.chunks(), files.hashes().chunks());
                let (mut words, mut found, mut places) = (Vec::new(), Vec::new(), Vec::new());
                while let Some(chunk) = chunks.next_chunk().unwrap() {
                    words.extend_from_slice(chunk.words());
                    places.extend((0..chunk.rows()).map(|vector| chunk.place(vector)));
                }
                while let Some(chunk) = hashes.next_chunk().unwrap() {
                    found.extend_from_slice(chunk.words());
                }
                let vectors = wanted.iter().map(|doc| vector(*doc));
                assert!(words.chunks_exact(WIDTH).eq(vectors.clone()) && words == files.vectors(&places).unwrap());
                assert!(found.into_iter().eq(vectors.map(|words| fold(&words))), "seed {seed}, {order:?}");
                let odd = |doc: &DocId| doc.row() % 2 == 1;
                wanted.retain(odd);
                let only = files.only(move |doc| odd(&doc), wanted.len() as u64);
                assert!(read(&only) == wanted && only.docs(&owned).unwrap() == wanted);
                look_up(&only, &wanted);
            }
        }
    }

    #[test]
    fn a_file_with_another_number_of_rows_that_count_is_named() {
        let folder = tempfile::tempdir().unwrap();
        let docs = docs(0, (0..100).filter(|row| row % 10 != 9));
        let file = write_sifted(folder.path(), 0, &docs, |doc| doc.row() % 3 == 0);
        for (rows, order) in [(29, ShardOrder::Consecutive), (31, ShardOrder::Interleaved)] {
            let files = VectorFiles { order, ..VectorFiles::new(vec![VectorFile { rows, ..file.clone() }], WIDTH) };
            let error = files.chunks().next_chunk().err().unwrap().to_string();
            assert!(error.contains("sifted-0.parquet has 30 vectors, "), "{error}");
        }
    }

    #[test]
    fn a_file_with_another_number_of_rows_is_named() {
        let folder = tempfile::tempdir().unwrap();
        let mut files = write(folder.path(), &[docs(0, 0..10)]);
        for rows in [9, 11] {
            files[0].rows = rows;
            for order in [ShardOrder::Consecutive, ShardOrder::Interleaved] {
                let files = VectorFiles { order, ..VectorFiles::new(files.clone(), WIDTH) };
                let mut chunks = files.chunks();
                let read = || -> Result<()> {
                    while chunks.next_chunk()?.is_some() {}
                    Ok(())
                };
                let error = { read }().unwrap_err().to_string();
                assert!(error.contains("0.parquet"), "{error}");
            }
        }
    }
}
