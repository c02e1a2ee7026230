//! The tables of the passages job: the rows of a shard are written by its owner.

use std::collections::BTreeMap;

use anyhow::Result;

use super::steps::{DocumentPassage, united};
use crate::records::DocId;
use crate::structures::{Ownership, Sorted};
use crate::studies::StudyPlan;
use crate::studies::shards::ShardRows;
use crate::tables::studies::passages::{PassageRow, PassageSourceRow};

/// Writes the passages of own documents, and where they come from.
pub(super) fn write(plan: &StudyPlan, owned: &Ownership, mut passages: Sorted<DocumentPassage>) -> Result<()> {
    let (mut rows, mut sources) = (ShardRows::new(plan, owned), ShardRows::new(plan, owned));
    let mut of_document: Vec<DocumentPassage> = Vec::new();
    while let Some(passage) = passages.record()? {
        if of_document.last().is_some_and(|last| last.doc != passage.doc) {
            write_sources(&mut sources, &of_document)?;
            of_document.clear();
        }
        rows.push(passage.doc.shard(), row(&passage))?;
        of_document.push(passage);
    }
    write_sources(&mut sources, &of_document)?;
    rows.finish()?;
    sources.finish()
}

fn row(passage: &DocumentPassage) -> PassageRow {
    PassageRow {
        doc: passage.doc.to_table(),
        word: passage.word as i32,
        words: passage.words as i32,
        offset: passage.bytes.map(|bytes| bytes.offset as i64),
        bytes: passage.bytes.map(|bytes| bytes.bytes as i64),
        occurrences: passage.occurrences as i64,
        first_doc: passage.first_doc.to_table(),
        first_word: passage.first_word as i32,
        copied: passage.copied as i32,
        copied_bytes: passage.bytes.map(|bytes| bytes.copied as i64),
    }
}

/// Writes from where the copies in a document are, whose passages these are.
fn write_sources(files: &mut ShardRows<PassageSourceRow>, passages: &[DocumentPassage]) -> Result<()> {
    let mut by_source: BTreeMap<DocId, Vec<[u32; 2]>> = BTreeMap::new();
    for passage in passages.iter().filter(|passage| passage.copied > 0) {
        let end = passage.word + passage.words;
        by_source.entry(passage.first_doc).or_default().push([end - passage.copied, end]);
    }
    let Some(doc) = passages.first().map(|passage| passage.doc) else { return Ok(()) };
    for (source, copies) in by_source {
        let count = copies.len() as i32;
        let words: u32 = united(copies.into_iter()).iter().map(|[start, end]| end - start).sum();
        let row =
            PassageSourceRow { doc: doc.to_table(), source: source.to_table(), passages: count, words: words as i32 };
        files.push(doc.shard(), row)?;
    }
    Ok(())
}
