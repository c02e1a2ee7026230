//! The decontamination job: the documents of a week against the items of a reference.
//!
//! ```text
//! documents           ─▶ those that are compared, at the readers of their files
//! reference           ─▶ items, in slices that fit into memory                      at each worker
//! slice, texts        ─▶ matches of a document and an item
//! matches             ─▶ the owners of documents ─▶ the table `matches`
//! items, matches      ─▶ the table `items`
//! ```
//!
//! Whether a document and an item match depends on these two alone. So the tables do not depend on
//! slices, workers or processes.
//!
//! Memory: a byte for each URL of a worker's shards, 56 for each document of its files, and one
//! slice of the reference in half of a worker's memory, besides a hash of each distinct item. If
//! the reference is larger, the texts are read once for each slice. Matches and items go to disk.
//!
//! Known limitation: each worker reads the whole reference, so its cost is multiplied by the
//! workers.

use std::collections::BTreeMap;

use anyhow::Result;
use nigh_exchange::Context;

use super::Decontamination;
use super::reference::{ReferenceItem, ReferenceItems};
use super::steps::{Match, MatchCounts, Matching};
use super::summary::{DecontaminationSummary, ReferenceFileSummary};
use super::write::{WrittenMatches, write_items, write_matches};
use crate::features::WordReader;
use crate::kernels;
use crate::studies::StudyPlan;
use crate::studies::passages::{CrawlTexts, PassageDocuments, TextSource as _, send, sort_of};
use crate::watch::Stage;

/// The smallest and the largest memory of a slice, in bytes: places in it have 32 bits.
const SLICE: [u64; 2] = [64 << 10, 16 << 30];

/// The memory of a slice at a worker with this memory.
pub(super) fn slice_memory(worker_memory: u64) -> u64 {
    (worker_memory / 2).clamp(SLICE[0], SLICE[1])
}

/// Compares documents on one worker, as [`run`](crate::studies::run) calls it. Worker 0 returns the
/// summary.
///
/// # Errors
/// If a file cannot be read or written, an input file has changed, the reference has nothing to
/// compare with, or a worker failed.
pub fn decontamination(
    cx: &mut Context,
    plan: &StudyPlan,
    job: &Decontamination,
) -> Result<Option<DecontaminationSummary>> {
    let owned = plan.owned(cx);
    let files = &plan.files;
    let (mut texts, batches) = CrawlTexts::find(cx, plan, &owned, PassageDocuments::All, job.since)?;
    cx.enter(Stage::Read);
    let scratch = plan.results().scratch();
    let cx = &mut cx.with(plan.worker_memory, &scratch);
    let reader = WordReader::new(&files.method, kernels::chosen()?)?;
    let mut reference = ReferenceItems::new(&files.reference, job, job.measures(&files.method), reader);
    let (mut items, mut matches) = (sort_of::<ReferenceItem>(cx, "items"), sort_of::<Match>(cx, "matches"));
    let mut counts = MatchCounts::default();
    // Each worker reads the reference; one keeps what the table says of it.
    let keeps_items = cx.index() == 0;
    let mut take = |item| if keeps_items { items.push(item) } else { Ok(()) };
    while let Some(slice) = reference.next_slice(slice_memory(plan.worker_memory), &mut take)? {
        let mut matching = Matching::new(&slice, &mut matches);
        texts.read(&mut matching)?;
        counts = matching.counts;
    }
    let of_reference = reference.counts;
    let peers = cx.peers();
    let matches = send(cx, "matches", matches.sorted()?, move |found| found.doc.owner(peers))?;
    cx.enter(Stage::Tables);
    let WrittenMatches { documents_of, found } = write_matches(plan, &owned, matches)?;
    let mut documents_of_items: BTreeMap<u64, u64> = BTreeMap::new();
    for (item, documents) in cx.concat(documents_of.into_iter().collect())? {
        *documents_of_items.entry(item).or_default() += documents;
    }
    let [documents, words] = cx.sums([counts.documents, counts.words])?;
    let [with_matches, matches, by_containment, by_passage, by_similarity] = cx.sums(found.numbers())?;
    if cx.index() > 0 {
        return Ok(None);
    }
    let mut of_files: Vec<ReferenceFileSummary> =
        files.reference.iter().map(|file| ReferenceFileSummary::new(&file.input.name)).collect();
    write_items(plan, job, items.sorted()?, &documents_of_items, &mut of_files)?;
    let history = &plan.history;
    Ok(Some(DecontaminationSummary {
        store: history.store.clone(),
        method: history.method.clone(),
        first: history.first().week,
        last: history.last().week,
        since: job.since,
        form: files.method.form.into(),
        grams: job.words,
        shortest: job.shortest(),
        containment: Some(job.containment).filter(|least| *least > 0.0),
        passage: job.passage,
        similarity: job.similarity,
        shingle: files.method.words as u32,
        batches,
        documents,
        words,
        reference: of_files,
        items: of_reference,
        matched_items: documents_of_items.len() as u64,
        with_matches,
        matches,
        by_containment,
        by_passage,
        by_similarity,
    }))
}
