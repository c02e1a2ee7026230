//! Reads the documents of a week with the checksums of their bodies, and those that have a URL;
//! lists the segments that a worker owns.

use std::collections::{BTreeMap, VecDeque};

use anyhow::{Context, Result};
use arrow_array::{FixedSizeBinaryArray, Int64Array};

use crate::records::DocId;
use crate::state::{Segment, Unfinished, WeekJournal};
use crate::structures::Ownership;
use crate::tables::{DocumentRow, PieceScan, RowRange, field};

/// The segments of a worker's shards that have documents, shard by shard. Those of revisits that
/// are not known have URLs only.
pub fn own_segments(journal: &WeekJournal, owned: &Ownership) -> VecDeque<Segment> {
    let shards = journal.by_shard();
    owned
        .shards()
        .filter_map(|shard| shards.get(&shard))
        .flatten()
        .copied()
        .filter(|segment| segment.documents > 0)
        .collect()
}

/// Which documents of a worker have a row in `urls`, whose files these are, by shard. Those that
/// were deleted have none, although earlier weeks have their pages.
///
/// # Errors
/// If a file cannot be read: names it.
pub fn docs_with_urls(files: &BTreeMap<u32, Vec<RowRange>>, owned: &Ownership) -> Result<Vec<bool>> {
    let mut has_url = vec![false; owned.len()];
    let of_shards = owned.shards().filter_map(|shard| files.get(&shard)).flatten().cloned();
    PieceScan::new(of_shards.collect(), &["doc"]).for_each(|_, batch| {
        let docs: &Int64Array = field(batch, "doc")?;
        docs.values().iter().for_each(|doc| has_url[owned.index(DocId::from_table(*doc))] = true);
        Ok(())
    })?;
    Ok(has_url)
}

/// Reads which documents of a worker have a page in the week, and the checksums of the pages. Both
/// lists are by document number: the document itself, or [`DocId::NONE`] if it has no page; and the
/// checksum, or 0.
///
/// # Errors
/// If a segment cannot be read, or has a document that does not belong to its shard: names its
/// file.
pub fn pages(unfinished: &Unfinished, journal: &WeekJournal, owned: &Ownership) -> Result<(Vec<DocId>, Vec<u128>)> {
    let (mut pages, mut checksums) = (vec![DocId::NONE; owned.len()], vec![0; owned.len()]);
    let segments = own_segments(journal, owned);
    let rows = segments.iter().map(|segment| unfinished.rows::<DocumentRow>(&segment.file()));
    let rows: Vec<RowRange> = rows.collect::<Result<_>>()?;
    PieceScan::new(rows.clone(), &["doc", "checksum"]).for_each(|piece, batch| {
        let docs: &Int64Array = field(batch, "doc")?;
        let column: &FixedSizeBinaryArray = field(batch, "checksum")?;
        for row in 0..batch.num_rows() {
            let doc = DocId::from_table(docs.value(row));
            owned.check(doc, segments[piece].shard, rows[piece].path())?;
            let bytes = column.value(row).try_into().context("a checksum has 16 bytes")?;
            (pages[owned.index(doc)], checksums[owned.index(doc)]) = (doc, u128::from_be_bytes(bytes));
        }
        Ok(())
    })?;
    Ok((pages, checksums))
}
