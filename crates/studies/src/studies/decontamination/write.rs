//! The tables of the decontamination job: the matches of a shard are written by its owner, and the
//! items by worker 0.

use std::collections::BTreeMap;

use anyhow::Result;

use super::Decontamination;
use super::reference::ReferenceItem;
use super::steps::Match;
use super::summary::ReferenceFileSummary;
use crate::structures::{Ownership, Sorted};
use crate::studies::StudyPlan;
use crate::studies::shards::ShardRows;
use crate::tables::studies::decontamination::{ReferenceItemRow, ReferenceMatchRow};
use crate::tables::{Table as _, Writer};

/// What was written.
#[derive(Default)]
pub(super) struct WrittenMatches {
    /// How many own documents match each item.
    pub documents_of: BTreeMap<u64, u64>,
    /// How many matches there are.
    pub found: FoundMatches,
}

/// How many matches there are.
#[derive(Clone, Copy, Default)]
pub(super) struct FoundMatches {
    documents: u64,
    matches: u64,
    by_containment: u64,
    by_passage: u64,
    by_similarity: u64,
}

impl FoundMatches {
    /// All of them.
    pub fn numbers(self) -> [u64; 5] {
        let FoundMatches { documents, matches, by_containment, by_passage, by_similarity } = self;
        [documents, matches, by_containment, by_passage, by_similarity]
    }
}

/// Writes the matches of own documents, which are in order.
pub(super) fn write_matches(plan: &StudyPlan, owned: &Ownership, mut matches: Sorted<Match>) -> Result<WrittenMatches> {
    let mut files = ShardRows::new(plan, owned);
    let mut written = WrittenMatches::default();
    let mut last = None;
    while let Some(found) = matches.record()? {
        let counts = &mut written.found;
        counts.documents += u64::from(last.replace(found.doc) != Some(found.doc));
        counts.matches += 1;
        counts.by_containment += u64::from(found.grams.is_some());
        counts.by_passage += u64::from(found.passage.is_some());
        counts.by_similarity += u64::from(found.similarity.is_some());
        *written.documents_of.entry(found.item).or_default() += 1;
        files.push(found.doc.shard(), row(&found))?;
    }
    files.finish()?;
    Ok(written)
}

fn row(found: &Match) -> ReferenceMatchRow {
    let [word, end] = found.words;
    ReferenceMatchRow {
        doc: found.doc.to_table(),
        item: found.item as i64,
        containment: found.containment(),
        grams: found.grams.map(|[grams, _]| grams as i32),
        passage: found.passage.map(|words| words as i32),
        similarity: found.similarity,
        word: word as i32,
        words: (end - word) as i32,
        offset: found.bytes.map(|[start, _]| i64::from(start)),
        bytes: found.bytes.map(|[start, end]| i64::from(end - start)),
    }
}

/// Writes the items, and counts those of each file.
pub(super) fn write_items(
    plan: &StudyPlan,
    job: &Decontamination,
    mut items: Sorted<ReferenceItem>,
    documents_of: &BTreeMap<u64, u64>,
    of_files: &mut [ReferenceFileSummary],
) -> Result<()> {
    let columns = job.columns();
    let mut writer: Writer<ReferenceItemRow> = Writer::create(&plan.results().table(ReferenceItemRow::NAME, 0))?;
    while let Some(item) = items.record()? {
        let documents = documents_of.get(&item.first.unwrap_or(item.number)).copied().unwrap_or(0);
        let file = &mut of_files[item.file as usize];
        file.items += 1;
        file.compared += u64::from(item.is_compared);
        file.matched += u64::from(documents > 0);
        writer.push(ReferenceItemRow {
            item: item.number as i64,
            file: file.name.clone(),
            record: item.record as i64,
            id: item.id,
            column: item.column.and_then(|column| columns.get(column as usize).cloned()),
            words: item.words as i64,
            grams: item.grams as i32,
            first: item.first.unwrap_or(item.number) as i64,
            compared: item.is_compared,
            documents: documents as i64,
            begins: item.begins,
        })?;
    }
    writer.finish().map(|_| ())
}
