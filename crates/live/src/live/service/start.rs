//! The documents of a store's last week, as an engine takes them.

use std::collections::BTreeMap;

use anyhow::{Context, Result, ensure};
use arrow_array::{Array as _, FixedSizeBinaryArray, Int64Array, StringArray};

use crate::features::Sketch;
use crate::live::engine::Loaded;
use crate::look::LookedWeek;
use crate::records::DocumentKey;
use crate::state::{Manifest, Store};
use crate::tables::{field, maybe_text};

/// Reads the documents of the last week of a store, in the order of their numbers; none of a store
/// without weeks.
///
/// # Errors
/// If a table cannot be read, or the tables contradict each other.
pub fn last_week(store: &Store, manifest: &Manifest) -> Result<Vec<Loaded>> {
    let Some(week) = manifest.weeks.last() else { return Ok(Vec::new()) };
    let looked = LookedWeek::open(store, manifest, week)?;
    let name = if manifest.method.documents == DocumentKey::Url { "url" } else { "id" };
    let mut documents: BTreeMap<i64, Loaded> = BTreeMap::new();
    looked.each_document_row(&["doc", name, "checksum"], |batch| {
        let (docs, names): (&Int64Array, &StringArray) = (field(batch, "doc")?, field(batch, name)?);
        let checksums: &FixedSizeBinaryArray = field(batch, "checksum")?;
        for row in 0..batch.num_rows() {
            let doc = docs.value(row);
            let name = maybe_text(names, row)
                .with_context(|| format!("document {doc} of the table documents has no {name}"))?;
            let bytes = checksums.value(row).try_into().context("a checksum has 16 bytes")?;
            let loaded = Loaded { doc, name, checksum: u128::from_be_bytes(bytes), ..Loaded::default() };
            documents.insert(doc, loaded);
        }
        Ok(())
    })?;
    let lacks =
        |table: &str, doc: i64| format!("the table {table} has document {doc}, which the table documents lacks");
    looked.each_cluster_row(&["doc", "cluster_id"], |batch| {
        let (docs, ids): (&Int64Array, &Int64Array) = (field(batch, "doc")?, field(batch, "cluster_id")?);
        for row in (0..batch.num_rows()).filter(|row| ids.is_valid(*row)) {
            let doc = docs.value(row);
            documents.get_mut(&doc).with_context(|| lacks("clusters", doc))?.cluster = Some(ids.value(row));
        }
        Ok(())
    })?;
    let (width, count) = (manifest.method.supershingles, manifest.method.features);
    let mut sketches = looked.whole_sketches();
    while let Some(batch) = sketches.batch()? {
        ensure!(
            batch.supershingles.len() == width * batch.docs.len() && batch.features.len() == count * batch.docs.len(),
            "the table features has rows of another width than the method of the store"
        );
        let rows = batch.supershingles.chunks_exact(width).zip(batch.features.chunks_exact(count));
        for (doc, (supershingles, features)) in batch.docs.iter().zip(rows) {
            let doc = doc.to_table();
            let of = documents.get_mut(&doc).with_context(|| lacks("features", doc))?;
            of.sketch = Sketch { supershingles: supershingles.to_vec(), features: features.to_vec() };
        }
    }
    Ok(documents.into_values().collect())
}
