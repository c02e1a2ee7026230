//! The documents of a store's last week, as an engine takes them.

use anyhow::{Context, Result, ensure};
use arrow_array::{Array as _, FixedSizeBinaryArray, Int64Array, StringArray};

use crate::live::engine::Engine;
use crate::look::LookedWeek;
use crate::records::DocumentKey;
use crate::state::{Manifest, Store};
use crate::tables::field;

/// A row of `documents`, with its cluster.
struct StoredDocument {
    doc: i64,
    checksum: u128,
    /// Where its name begins, and its bytes.
    name: (u64, u32),
    cluster: Option<i64>,
}

/// Gives an engine that has no document those of the last week of a store, in the order of their
/// numbers; none of a store without weeks. Returns how many these are.
///
/// # Errors
/// If a table cannot be read, or the tables contradict each other, or the clusters are not those
/// of the method.
pub fn load_last_week(store: &Store, manifest: &Manifest, engine: &mut Engine) -> Result<u64> {
    let Some(week) = manifest.weeks.last() else { return Ok(0) };
    let looked = LookedWeek::open(store, manifest, week)?;
    let column = if manifest.method.documents == DocumentKey::Url { "url" } else { "id" };
    let (mut rows, mut all_names): (Vec<StoredDocument>, String) = (Vec::new(), String::new());
    looked.each_document_row(&["doc", column, "checksum"], |batch| {
        let (docs, names): (&Int64Array, &StringArray) = (field(batch, "doc")?, field(batch, column)?);
        let checksums: &FixedSizeBinaryArray = field(batch, "checksum")?;
        for row in 0..batch.num_rows() {
            let doc = docs.value(row);
            let name = names.is_valid(row).then(|| names.value(row));
            let name = name.with_context(|| format!("document {doc} of the table documents has no {column}"))?;
            let bytes = checksums.value(row).try_into().context("a checksum has 16 bytes")?;
            let place = (all_names.len() as u64, u32::try_from(name.len()).context("a name has 4 GiB or more")?);
            rows.push(StoredDocument { doc, checksum: u128::from_be_bytes(bytes), name: place, cluster: None });
            all_names.push_str(name);
        }
        Ok(())
    })?;
    rows.sort_unstable_by_key(|row| row.doc);
    // The clusters ascend: each is near the one before.
    let mut place = 0;
    looked.each_cluster_row(&["doc", "cluster_id"], |batch| {
        let (docs, ids): (&Int64Array, &Int64Array) = (field(batch, "doc")?, field(batch, "cluster_id")?);
        for row in (0..batch.num_rows()).filter(|row| ids.is_valid(*row)) {
            let doc = docs.value(row);
            let is_here = |row: &StoredDocument| row.doc == doc;
            if !rows.get(place).is_some_and(is_here) {
                place = rows.partition_point(|row| row.doc < doc);
            }
            let row_of = rows.get_mut(place).filter(|row| row.doc == doc);
            let row_of = row_of
                .with_context(|| format!("the table clusters has document {doc}, which the table documents lacks"))?;
            row_of.cluster = Some(ids.value(row));
            place += 1;
        }
        Ok(())
    })?;
    let count = rows.len();
    let mut load = engine.load(count, all_names.len());
    for StoredDocument { doc, checksum, name: (at, bytes), cluster } in rows {
        load.document(doc, &all_names[at as usize..][..bytes as usize], checksum, cluster)?;
    }
    drop(all_names);
    let (width, features) = (manifest.method.supershingles, manifest.method.features);
    let mut sketches = looked.whole_sketches()?;
    while let Some(batch) = sketches.batch()? {
        ensure!(
            batch.supershingles.len() == width * batch.docs.len()
                && batch.features.len() == features * batch.docs.len(),
            "the table features has rows of another width than the method of the store"
        );
        let of_docs = batch.supershingles.chunks_exact(width).zip(batch.features.chunks_exact(features));
        for (doc, (supershingles, features)) in batch.docs.iter().zip(of_docs) {
            load.sketch(doc.to_table(), supershingles, features)?;
        }
    }
    load.finish()?;
    Ok(count as u64)
}
