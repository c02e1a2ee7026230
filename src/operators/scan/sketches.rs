//! The vectors of own documents, read from their segments batch by batch.

use std::collections::VecDeque;

use anyhow::Result;
use arrow_array::{Array, FixedSizeBinaryArray, Int64Array};

use super::pages::own_segments;
use crate::records::DocId;
use crate::state::{Journal, Segment, Unfinished};
use crate::structures::Ownership;
use crate::tables::{FeatureRow, Scan, Table, field};

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

impl Vectors {
    /// The vectors of the own shards, with features.
    pub fn open(unfinished: &Unfinished, journal: &Journal, owned: &Ownership) -> Vectors {
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
