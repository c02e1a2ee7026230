//! The passages job: each passage of some words that stands more than once in a corpus.
//!
//! ```text
//! documents, clusters     ─▶ documents   those that are compared, at the readers of their files
//! texts                   ─▶ grams       selected ones that stand twice
//! texts with such grams   ─▶ windows     of the least words of a passage, that stand twice
//! texts with such windows ─▶ passages    windows that follow each other
//! passages, texts         ─▶ comparison  word by word, with the first occurrences
//! passages                ─▶ the tables  `passages`, `sources`
//! ```
//!
//! Grams are selected by winnowing (Schleimer, Wilkerson, Aiken 2003), so that no passage is
//! missed; fingerprints only say where to compare. If two of different words are equal, the
//! comparison finds it, and the search begins again with other ones.
//!
//! Memory: a byte for each URL of a worker's shards, 56 for each document of its files, and the
//! words of one document. Grams, windows and passages in flight go to disk beyond `memory`; all
//! documents that have one gram or one window are in the memory of one worker, with 16 and 48 bytes
//! each.

use anyhow::Result;
use nigh_exchange::Context;

use super::Passages;
use super::documents::CrawlTexts;
use super::steps::{FoundCounts, Hashing, MostRepeated, ReadCounts, RepeatedPassages, repeated};
use super::summary::{FrequentPassage, PassagesSummary};
use super::write::write;
use crate::records::mix;
use crate::studies::StudyPlan;
use crate::watch::Stage;

/// Finds passages on one worker, as [`run`](crate::studies::run) calls it. Worker 0 returns the
/// summary.
///
/// # Errors
/// If a file cannot be read or written, an input file has changed, or a worker failed.
pub fn passages(cx: &mut Context, plan: &StudyPlan, job: &Passages) -> Result<Option<PassagesSummary>> {
    let owned = plan.owned(cx);
    let (mut texts, batches) = CrawlTexts::find(cx, plan, &owned, job.documents, None)?;
    cx.enter(Stage::Read);
    let scratch = plan.results().scratch();
    let hashing = |round: u64| Hashing::new(job.words as usize, mix(round));
    let found = repeated(&mut cx.with(plan.worker_memory, &scratch), &mut texts, &hashing)?;
    let RepeatedPassages { passages, read, found, most } = found;
    cx.enter(Stage::Tables);
    write(plan, &owned, passages)?;
    let (mut all_read, mut all_found) = (ReadCounts::default(), FoundCounts::default());
    for (read, found) in cx.concat(vec![(read, found)])? {
        all_read.merge(&read);
        all_found.merge(&found);
    }
    let mut most = cx.concat(most)?;
    MostRepeated::leave_most(&mut most);
    if cx.index() > 0 {
        return Ok(None);
    }
    let frequent = |MostRepeated { occurrences, doc, word, words, text, .. }: MostRepeated| FrequentPassage {
        occurrences,
        doc,
        word,
        words,
        text,
    };
    let history = &plan.history;
    Ok(Some(PassagesSummary {
        store: history.store.clone(),
        method: history.method.clone(),
        first: history.first().week,
        last: history.last().week,
        least: job.words,
        documents: job.documents,
        batches,
        compared: all_read.compared,
        words: all_read.words,
        passages: all_found.passages,
        first_occurrences: all_found.first,
        with_passages: all_found.documents,
        repeated_words: all_found.words,
        copied_words: all_found.copied_words,
        repeated_bytes: all_found.bytes,
        copied_bytes: all_found.copied_bytes,
        most: most.into_iter().map(frequent).collect(),
    }))
}
