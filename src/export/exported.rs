//! Which records an export has, and what was written of an input.

use serde::{Deserialize, Serialize};

use super::verdicts::Verdict;
use crate::readers::Input;

/// Which records are written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, clap::ValueEnum)]
#[serde(rename_all = "kebab-case")]
pub enum What {
    /// Those that stay: one of each cluster, and those without a duplicate.
    #[default]
    Kept,
    /// The others.
    Removed,
    /// All, with further fields: the cluster (the smallest document id of it), its size, the rank in it, and whether the record stays.
    Annotated,
}

impl What {
    /// Whether a record is written.
    pub(super) fn wants(self, verdict: &Verdict) -> bool {
        match self {
            What::Kept => verdict.stays,
            What::Removed => !verdict.stays,
            What::Annotated => true,
        }
    }
}

/// What was written of an input.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Exported {
    /// Records that are documents.
    pub documents: u64,
    /// Those that were written.
    pub written: u64,
    /// Records that are no documents, and were not written: bad ones, and those with an id that another one had before.
    pub no_document: u64,
    /// Records of WARC and ARC files that are no documents, and were written.
    pub others: u64,
    /// Paragraphs that went from documents that stay.
    #[serde(default)]
    pub paragraphs: u64,
    /// The bytes of their lines.
    #[serde(default)]
    pub paragraph_bytes: u64,
    /// Documents that stay, of which no paragraph was left: they were not written.
    #[serde(default)]
    pub emptied: u64,
}

impl Exported {
    /// Counts a document.
    pub(super) fn add(&mut self, verdict: &Verdict, what: What) {
        self.documents += 1;
        self.written += u64::from(what.wants(verdict));
    }

    /// Counts the paragraphs that go from a document that stays, and the document itself if none is left.
    pub(super) fn add_gone(&mut self, verdict: &Verdict, before: &str, after: Option<&str>) {
        self.paragraphs += verdict.gone.len() as u64;
        self.paragraph_bytes += (before.len() - after.map_or(0, str::len)) as u64;
        if after.is_none() {
            self.emptied += 1;
            self.written -= 1;
        }
    }

    /// Adds the counts of another input.
    pub fn merge(&mut self, other: Exported) {
        self.documents += other.documents;
        self.written += other.written;
        self.no_document += other.no_document;
        self.others += other.others;
        self.paragraphs += other.paragraphs;
        self.paragraph_bytes += other.paragraph_bytes;
        self.emptied += other.emptied;
    }
}

/// The error of an input that is not what the week was made from.
pub(super) fn changed(input: &Input, offset: u64) -> anyhow::Error {
    anyhow::anyhow!(
        "{} has changed since the week was made: it does not have the record of the week at {offset}. Restore the file, or make the week again",
        input.name
    )
}
