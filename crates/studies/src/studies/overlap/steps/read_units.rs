//! Reads the units of a week from its tables `chunks` and `documents`.

use anyhow::{Result, bail};
use arrow_array::{Array, FixedSizeBinaryArray, Int64Array, StringArray};
use nigh_exchange::Context;

use super::hosts::{HostPages, number_hosts};
use super::units::{Units, hash_of};
use crate::records::DocId;
use crate::state::History;
use crate::structures::{CompactSort, Ownership};
use crate::tables::{ChunkRow, DocumentRow, Scan, Table, field};

/// The own pages of the last week as units, and the hash of the text of each.
///
/// # Errors
/// If a file cannot be read or contradicts itself (names it).
pub fn pages(history: &History, owned: &Ownership) -> Result<(Units, Vec<(u128, DocId)>)> {
    let texts = texts(history, history.weeks.len() - 1, owned)?;
    let mut units = Units::new(owned.clone());
    texts.iter().for_each(|(_, doc)| units.pages[owned.index(*doc)] = 1);
    each_document(history, owned, |doc, [host, ip], bytes| {
        let unit = owned.index(doc);
        if units.pages[unit] > 0 {
            (units.first[unit], units.bytes[unit], units.host[unit]) = (doc, bytes, host.map_or(0, hash_of));
            units.machines.extend(ip.map(|ip| (unit as u32, hash_of(ip))));
        }
    })?;
    units.machines.sort_rows();
    check(history, texts.iter().find(|(_, doc)| units.first[owned.index(*doc)] == DocId::NONE))?;
    Ok((units, texts))
}

/// The own hosts of the last week as units: those of pages that have chunks.
///
/// # Errors
/// If a file cannot be read or contradicts itself (names it), or a worker of this process failed.
pub fn hosts(cx: &mut Context, history: &History, owned: &Ownership) -> Result<Units> {
    let (texts, mut has_chunks) = (texts(history, history.weeks.len() - 1, owned)?, vec![false; owned.len()]);
    texts.iter().for_each(|(_, doc)| has_chunks[owned.index(*doc)] = true);
    let mut of_host = HostPages::default();
    each_document(history, owned, |doc, [host, ip], bytes| {
        if std::mem::take(&mut has_chunks[owned.index(doc)]) {
            of_host.add(host.unwrap_or_default(), doc, ip.map(hash_of), bytes);
        }
    })?;
    check(history, texts.iter().find(|(_, doc)| has_chunks[owned.index(*doc)]))?;
    // All workers have read their pages, or none goes on.
    cx.barrier()?;
    number_hosts(cx, owned, history.last().rows.len() as u32, of_host)
}

/// Refuses a page that has chunks and is not in the table `documents`.
fn check(history: &History, without_document: Option<&(u128, DocId)>) -> Result<()> {
    if let Some((_, doc)) = without_document {
        let (store, week) = (history.store.display(), history.last().week);
        bail!("{store} is damaged: `chunks` of week {week} has the document {doc}, and `documents` lacks it");
    }
    Ok(())
}

/// The hash of the text of each own page that has chunks in week number `number`.
///
/// # Errors
/// If a file cannot be read or contradicts itself (names it).
pub fn texts(history: &History, number: usize, owned: &Ownership) -> Result<Vec<(u128, DocId)>> {
    let tables = history.tables(number);
    let mut texts = Vec::new();
    for shard in owned.shards() {
        for rows in history.rows(number, &tables, ChunkRow::NAME, shard)? {
            Scan::open(&rows, &["doc", "text"])?.for_each(|batch| {
                let (docs, hashes): (&Int64Array, &FixedSizeBinaryArray) =
                    (field(batch, "doc")?, field(batch, "text")?);
                for (row, doc) in docs.values().iter().enumerate() {
                    let doc = DocId::from_table(*doc);
                    history.check(number, doc, shard, rows.path())?;
                    texts.push((u128::from_be_bytes(hashes.value(row).try_into().unwrap_or_default()), doc));
                }
                Ok(())
            })?;
        }
    }
    Ok(texts)
}

/// Calls `each` with every own page of the last week: its id, its host and address if it has them,
/// and its bytes.
fn each_document(
    history: &History,
    owned: &Ownership,
    mut each: impl FnMut(DocId, [Option<&str>; 2], u64),
) -> Result<()> {
    let number = history.weeks.len() - 1;
    let tables = history.tables(number);
    for shard in owned.shards() {
        for rows in history.rows(number, &tables, DocumentRow::NAME, shard)? {
            Scan::open(&rows, &["doc", "host", "ip", "bytes"])?.for_each(|batch| {
                let (docs, bytes): (&Int64Array, &Int64Array) = (field(batch, "doc")?, field(batch, "bytes")?);
                let (hosts, ips): (&StringArray, &StringArray) = (field(batch, "host")?, field(batch, "ip")?);
                for row in 0..batch.num_rows() {
                    let doc = DocId::from_table(docs.value(row));
                    history.check(number, doc, shard, rows.path())?;
                    let texts = [hosts, ips].map(|column| column.is_valid(row).then(|| column.value(row)));
                    each(doc, texts, bytes.value(row) as u64);
                }
                Ok(())
            })?;
        }
    }
    Ok(())
}
