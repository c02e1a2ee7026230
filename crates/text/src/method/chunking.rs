//! How pages are cut into chunks (Shivakumar and Garcia-Molina 1998).

use serde::{Deserialize, Serialize};

/// How a page is cut into chunks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Chunking {
    /// The whole text is one chunk.
    Document,
    /// Every four lines are a chunk.
    FourLines,
    /// Every two lines are a chunk.
    TwoLines,
}

impl Chunking {
    /// All chunkings, in the order of the study.
    pub const ALL: [Chunking; 3] = [Chunking::Document, Chunking::FourLines, Chunking::TwoLines];

    /// The name in tables and in jobs.
    pub fn name(self) -> &'static str {
        match self {
            Chunking::Document => "document",
            Chunking::FourLines => "four-lines",
            Chunking::TwoLines => "two-lines",
        }
    }
}

/// Where a run of lines ends.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Cut {
    /// After every four or two lines.
    #[default]
    Count,
    /// After a line whose hash says so: every fourth or second on average. A line more or less
    /// moves the ends of few runs.
    Content,
}
