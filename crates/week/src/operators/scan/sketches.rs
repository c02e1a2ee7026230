//! Sketches: the supershingles and features of a worker's documents, read from their segments batch
//! by batch.
//!
//! Documents without words have no sketch, and no row in the segments.

use anyhow::Result;
use arrow_array::{Array, FixedSizeBinaryArray, Int64Array};

use crate::records::{DocId, FeatureBits};
use crate::tables::{PieceScan, RowRange, field};

/// A scan of the sketches of a worker's documents, segment by segment.
pub struct Vectors {
    scan: PieceScan<'static>,
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
        Vectors { scan: PieceScan::new(rows.collect(), &["doc", "supershingles", "features"]) }
    }

    /// Returns the sketches of the next documents; `None` at the end.
    ///
    /// # Errors
    /// If a segment cannot be read: names its file.
    pub fn batch(&mut self) -> Result<Option<VectorBatch>> {
        let Some((_, batch)) = self.scan.batch()? else { return Ok(None) };
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
