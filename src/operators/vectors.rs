//! The vectors of own documents, read from their segments batch by batch.

use std::collections::VecDeque;

use anyhow::{Context, Result, bail};
use arrow_array::{Array, FixedSizeBinaryArray, Int64Array};

use super::phase::Owned;
use crate::records::DocId;
use crate::state::{Journal, Segment, Unfinished};
use crate::tables::{DocumentRow, FeatureRow, Scan, Table, field};

/// Sketches of documents with words, as their segments hold them, in the order of segments.
pub struct Vectors {
    unfinished: Unfinished,
    segments: VecDeque<Segment>,
    columns: Vec<&'static str>,
    open: Option<Scan>,
}

/// Some documents' sketches.
#[derive(Clone, Debug, Default)]
pub struct VectorBatch {
    /// The documents, ascending within a segment.
    pub docs: Vec<DocId>,
    /// Their supershingles, one document's after the other's.
    pub supershingles: Vec<u64>,
    /// Their features (low 32 bits), one document's after the other's; empty where they were not asked for.
    pub features: Vec<u32>,
}

/// The segments of a worker's own shards, shard by shard.
pub fn own_segments(journal: &Journal, owned: &Owned) -> VecDeque<Segment> {
    let shards = journal.by_shard();
    owned.shards().filter_map(|shard| shards.get(&shard)).flatten().copied().collect()
}

impl Vectors {
    /// The vectors of the own shards; with features where they are wanted.
    pub fn open(unfinished: &Unfinished, journal: &Journal, owned: &Owned, features: bool) -> Vectors {
        let mut segments = own_segments(journal, owned);
        segments.retain(|segment| segment.features > 0);
        let mut columns = vec!["doc", "supershingles"];
        if features {
            columns.push("features");
        }
        Vectors { unfinished: unfinished.clone(), segments, columns, open: None }
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
                self.open = Some(Scan::open(&path, &self.columns)?);
                continue;
            };
            let Some(batch) = scan.batch()? else {
                self.open = None;
                continue;
            };
            let docs: &Int64Array = field(&batch, "doc")?;
            let supershingles: &FixedSizeBinaryArray = field(&batch, "supershingles")?;
            let mut vectors = VectorBatch {
                docs: docs.values().iter().map(|doc| DocId::from_table(*doc)).collect(),
                supershingles: words(supershingles, u64::from_le_bytes),
                features: Vec::new(),
            };
            if self.columns.contains(&"features") {
                vectors.features = words(field(&batch, "features")?, u32::from_le_bytes);
            }
            return Ok(Some(vectors));
        }
    }
}

/// The fixed-size words of a binary column, one after the other.
fn words<const N: usize, W>(column: &FixedSizeBinaryArray, word: fn([u8; N]) -> W) -> Vec<W> {
    let rows = (0..column.len()).flat_map(|row| column.value(row).as_chunks::<N>().0);
    rows.map(|bytes| word(*bytes)).collect()
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
                if doc.shard() != segment.shard || owned.index(doc) >= checksums.len() {
                    bail!("{} holds the document {doc}, which is not of its shard", path.display());
                }
                let bytes = column.value(row).try_into().context("a checksum has 16 bytes")?;
                checksums[owned.index(doc)] = u128::from_be_bytes(bytes);
            }
            Ok(())
        })?;
    }
    Ok(checksums)
}
