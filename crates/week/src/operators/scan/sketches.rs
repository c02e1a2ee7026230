//! Sketches: the supershingles and features of a worker's documents, read batch by batch.
//!
//! All of them are read from segment to segment. Of few documents each is read at its row: both
//! columns are plain values of one width.
//!
//! Documents without words have no sketch, and no row in the segments.

use anyhow::Result;
use arrow_array::{Array, FixedSizeBinaryArray, Int64Array};

use super::vectors::{VectorFiles, VectorRow};
use crate::records::{DocId, FeatureBits};
use crate::tables::{PieceScan, RowRange, field};

/// Sketches are read at their rows if they are of one of so many documents, or of fewer. Of more,
/// most pages of the files have one, and a pass over all reads each page once.
const FEW: u64 = 16;
/// The documents of a batch that are read at their rows.
const BATCH: usize = 4096;

/// The files of the sketches of a worker's documents.
#[derive(Clone)]
pub struct SketchFiles {
    files: VectorFiles,
    /// The features of a document.
    features: usize,
}

impl SketchFiles {
    /// The sketches, with so many features, of the documents of these vectors.
    pub fn new(files: VectorFiles, features: usize) -> SketchFiles {
        SketchFiles { files, features }
    }

    /// Starts a scan of all of them.
    pub fn all(&self) -> Vectors {
        Vectors::of_rows(self.files.files.iter().map(|file| file.range.clone()))
    }

    /// Starts a scan of those of these own documents, which ascend, each once; it may have others,
    /// too.
    pub fn of_docs(&self, docs: Vec<DocId>) -> Vectors {
        match self.files.features(self.features) {
            Some(features) if docs.len() as u64 * FEW <= self.files.len() => {
                let rows = SketchRows { vectors: self.files.clone(), features, docs: docs.into_iter() };
                Vectors { source: SketchSource::Rows(rows) }
            }
            _ => self.all(),
        }
    }

    /// The documents among `wanted`, own ones that ascend, that have features; and the features of
    /// each.
    ///
    /// # Errors
    /// If a segment cannot be read: names its file.
    pub fn features(&self, wanted: &[DocId]) -> Result<(Vec<DocId>, Vec<FeatureBits>)> {
        match self.files.features(self.features) {
            Some(files) => {
                let (docs, words) = files.find(wanted)?;
                Ok((docs, bytemuck::cast_slice(&words).to_vec()))
            }
            None => scanned_features(wanted, self.all()),
        }
    }
}

/// The documents among `wanted` that have features, in their order, and these, from a scan of all
/// own ones.
fn scanned_features(wanted: &[DocId], mut vectors: Vectors) -> Result<(Vec<DocId>, Vec<FeatureBits>)> {
    let mut found: Vec<(DocId, Vec<FeatureBits>)> = Vec::new();
    while found.len() < wanted.len() {
        let Some(batch) = vectors.batch()? else { break };
        let (Some(first), Some(last)) = (batch.docs.first(), batch.docs.last()) else { continue };
        let width = batch.features.len() / batch.docs.len();
        let [from, to] = [wanted.partition_point(|doc| doc < first), wanted.partition_point(|doc| doc <= last)];
        for doc in &wanted[from..to] {
            if let Ok(row) = batch.docs.binary_search(doc) {
                found.push((*doc, batch.features[row * width..][..width].to_vec()));
            }
        }
    }
    // The documents of several waves of a shard interleave.
    found.sort_unstable();
    let features = found.iter().flat_map(|(_, features)| features).copied().collect();
    Ok((found.into_iter().map(|(doc, _)| doc).collect(), features))
}

/// A scan of sketches, in batches.
pub struct Vectors {
    source: SketchSource,
}

/// Where the sketches of a scan are read from.
enum SketchSource {
    /// All rows of segments, one after the other.
    All(PieceScan<'static>),
    Rows(SketchRows),
}

/// The sketches of some documents, each read at its row.
struct SketchRows {
    vectors: VectorFiles,
    features: VectorFiles,
    docs: std::vec::IntoIter<DocId>,
}

impl SketchRows {
    fn batch(&mut self) -> Result<Option<VectorBatch>> {
        loop {
            let wanted: Vec<DocId> = self.docs.by_ref().take(BATCH).collect();
            if wanted.is_empty() {
                return Ok(None);
            }
            let (docs, rows): (Vec<DocId>, Vec<VectorRow>) = self.vectors.places(&wanted)?.into_iter().unzip();
            if !docs.is_empty() {
                let (supershingles, features) = (self.vectors.vectors(&rows)?, self.features.vectors(&rows)?);
                return Ok(Some(VectorBatch {
                    docs,
                    supershingles,
                    features: bytemuck::cast_slice(&features).to_vec(),
                }));
            }
        }
    }
}

/// The sketches of some documents.
#[derive(Clone, Debug, Default)]
pub struct VectorBatch {
    /// The documents, ascending within a segment.
    pub docs: Vec<DocId>,
    /// The supershingles of the documents, one document after the other.
    pub supershingles: Vec<u64>,
    /// What is kept of the features of the documents, one document after the other.
    pub features: Vec<FeatureBits>,
}

impl Vectors {
    /// Starts a scan of these rows, which have the columns `doc`, `supershingles` and `features`.
    pub fn of_rows(rows: impl Iterator<Item = RowRange>) -> Vectors {
        let scan = PieceScan::new(rows.collect(), &["doc", "supershingles", "features"]);
        Vectors { source: SketchSource::All(scan) }
    }

    /// Returns the sketches of the next documents; `None` at the end.
    ///
    /// # Errors
    /// If a segment cannot be read: names its file.
    pub fn batch(&mut self) -> Result<Option<VectorBatch>> {
        let scan = match &mut self.source {
            SketchSource::All(scan) => scan,
            SketchSource::Rows(rows) => return rows.batch(),
        };
        let Some((_, batch)) = scan.batch()? else { return Ok(None) };
        let docs: &Int64Array = field(&batch, "doc")?;
        let supershingles: &FixedSizeBinaryArray = field(&batch, "supershingles")?;
        Ok(Some(VectorBatch {
            docs: docs.values().iter().map(|doc| DocId::from_table(*doc)).collect(),
            supershingles: words(supershingles, u64::from_le_bytes),
            features: words(field(&batch, "features")?, FeatureBits::from_le_bytes),
        }))
    }
}

/// The words of a fixed-size binary column: the words of one row after the words of the row before
/// it.
fn words<const N: usize, W>(column: &FixedSizeBinaryArray, word: fn([u8; N]) -> W) -> Vec<W> {
    let rows = (0..column.len()).flat_map(|row| column.value(row).as_chunks::<N>().0);
    rows.map(|bytes| word(*bytes)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::operators::scan::VectorFile;
    use crate::records::mix;
    use crate::tables::{FeatureRow, Writer};

    /// The sketch of a document: six supershingles and 84 features.
    fn sketch(doc: DocId) -> (Vec<u64>, Vec<FeatureBits>) {
        let numbers = (0..90).map(|place| mix(doc.to_table() as u64 * 100 + place));
        let (supershingles, features): (Vec<_>, Vec<_>) = numbers.enumerate().partition(|(place, _)| *place < 6);
        let features = features.into_iter().map(|(_, number)| number as FeatureBits);
        (supershingles.into_iter().map(|(_, number)| number).collect(), features.collect())
    }

    fn read(mut vectors: Vectors) -> Vec<(DocId, Vec<u64>, Vec<FeatureBits>)> {
        let mut all = Vec::new();
        while let Some(VectorBatch { docs, supershingles, features }) = vectors.batch().unwrap() {
            let features = features.chunks_exact(84).map(<[FeatureBits]>::to_vec);
            let rows = docs.iter().zip(supershingles.chunks_exact(6)).zip(features);
            all.extend(rows.map(|((doc, supershingles), features)| (*doc, supershingles.to_vec(), features)));
        }
        all
    }

    #[test]
    fn sketches_of_few_documents_are_those_of_a_scan() {
        let folder = tempfile::tempdir().unwrap();
        let counts = |doc: DocId| doc.row() % 3 != 1;
        // Of the second shard only some rows count.
        let files = [3, 8].map(|shard| {
            let [path, live] = ["all", "live"].map(|name| folder.path().join(format!("{name}-{shard}.parquet")));
            let (mut all, mut counting) = (Writer::<FeatureRow>::create(&path).unwrap(), 0);
            let mut of_counting: Writer<FeatureRow> = Writer::create(&live).unwrap();
            let docs = (0..20_000).map(|row| DocId::new(shard, row)).filter(|doc| doc.row() % 50 != 7);
            for doc in docs {
                let (supershingles, features) = sketch(doc);
                let row = FeatureRow::new(
                    doc.to_table(),
                    bytemuck::cast_slice(&supershingles),
                    bytemuck::cast_slice(&features),
                );
                all.push(row.clone()).unwrap();
                if shard == 3 || counts(doc) {
                    counting += 1;
                    of_counting.push(row).unwrap();
                }
            }
            let rows = all.finish().unwrap();
            of_counting.finish().unwrap();
            let range = RowRange::file(&path);
            let range = if shard == 3 { range } else { range.part(0..rows).live_in(live.into()) };
            VectorFile::new(range, shard, counting)
        });
        let sketches = SketchFiles::new(VectorFiles::new(files.to_vec(), 6), 84);
        let all = read(sketches.all());
        assert!(
            all.iter().all(|(doc, supershingles, features)| sketch(*doc) == (supershingles.clone(), features.clone()))
        );
        for one_in in [16, 25, 400, 10_000] {
            // Some have no sketch, or one that does not count.
            let wanted = [3, 8].into_iter().flat_map(|shard| (0..20_000).map(move |row| DocId::new(shard, row)));
            let wanted: Vec<DocId> = wanted.filter(|doc| mix(doc.to_table() as u64).is_multiple_of(one_in)).collect();
            let few = read(sketches.of_docs(wanted.clone()));
            let expected = all.iter().filter(|(doc, ..)| wanted.binary_search(doc).is_ok());
            let is_scan = wanted.len() as u64 * FEW > sketches.files.len();
            assert_eq!(is_scan, one_in == 16);
            if is_scan {
                assert!(few == all);
            } else {
                assert!(few.iter().eq(expected), "one in {one_in}");
            }
            let (docs, features) = sketches.features(&wanted).unwrap();
            let of_few = few.iter().filter(|(doc, ..)| wanted.binary_search(doc).is_ok());
            assert!(docs.into_iter().zip(features.chunks_exact(84)).eq(of_few.map(|(doc, _, of)| (*doc, &of[..]))));
        }
    }
}
