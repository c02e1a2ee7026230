//! The mode of a job: from what changed, or from all documents.

use serde::{Deserialize, Serialize};

/// How a later week is computed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Mode {
    /// The way that is predicted to be faster.
    #[default]
    Auto,
    /// From the week before and what changed since.
    Delta,
    /// From all documents.
    Full,
}

/// What becomes of the pages of the week before that a crawl has no record of.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, clap::ValueEnum)]
#[serde(rename_all = "kebab-case")]
pub enum Absent {
    /// They are not there: rows of the table `missing`.
    #[default]
    Missing,
    /// They stay as they were, unless a server answered 404 or 410: the week has its crawl, and
    /// what it did not touch.
    Keep,
}
