//! The summary of a study, whichever it is.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use serde::{Deserialize, Serialize};

use super::{
    CollectionsSummary, EvolutionSummary, MirrorsByUrlSummary, MirrorsSummary, OverlapSummary, ParagraphsSummary,
    SamplersSummary,
};
use crate::records::Week;

/// The summary of a study: kept as `summary.json` with its tables, printed by `run` and `show`.
///
/// As JSON it is the summary itself: each kind has fields that the others lack.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum StudySummary {
    /// Of an evolution job.
    Evolution(EvolutionSummary),
    /// Of a mirrors job.
    Mirrors(MirrorsSummary),
    /// Of an overlap job.
    Overlap(OverlapSummary),
    /// Of a collections job.
    Collections(CollectionsSummary),
    /// Of a mirrors-by-url job.
    MirrorsByUrl(MirrorsByUrlSummary),
    /// Of a paragraphs job.
    Paragraphs(ParagraphsSummary),
    /// Of a samplers job.
    Samplers(SamplersSummary),
}

impl StudySummary {
    /// Reads the `summary.json` of committed results.
    ///
    /// # Errors
    /// Names the file that is missing or damaged.
    pub fn read(path: &Path) -> Result<StudySummary> {
        let text = std::fs::read(path).with_context(|| format!("cannot read {}", path.display()))?;
        serde_json::from_slice(&text).with_context(|| format!("{} is damaged", path.display()))
    }

    /// The last week that it is about.
    pub fn week(&self) -> Option<Week> {
        match self {
            StudySummary::Evolution(summary) => Some(summary.last),
            StudySummary::Mirrors(summary) => Some(summary.last),
            StudySummary::Overlap(summary) => Some(summary.last),
            StudySummary::Collections(summary) => Some(summary.last),
            StudySummary::MirrorsByUrl(summary) => summary.last,
            StudySummary::Paragraphs(summary) => Some(summary.last),
            StudySummary::Samplers(summary) => Some(summary.last),
        }
    }

    /// Names the store as the user does.
    pub fn set_store(&mut self, store: PathBuf) {
        match self {
            StudySummary::Evolution(summary) => summary.store = store,
            StudySummary::Mirrors(summary) => summary.store = store,
            StudySummary::Overlap(summary) => summary.store = store,
            StudySummary::Collections(summary) => summary.store = store,
            StudySummary::MirrorsByUrl(summary) => summary.store = store,
            StudySummary::Paragraphs(summary) => summary.store = store,
            StudySummary::Samplers(summary) => summary.store = store,
        }
    }
}
