//! The notes on a wave that workers send to worker 0, which commits the wave when it has all of
//! them.

use serde::{Deserialize, Serialize};

use crate::state::{AnotherText, ReadingCounts, Segment};
use crate::structures::Sortable;

/// A report on a wave, from the worker that did a part of it.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub enum WaveNote {
    /// A bad record.
    Bad(BadRecord),
    /// The counts of the files that a worker read.
    Counted(Box<ReadingCounts>),
    /// The segments that a worker wrote.
    Made(Box<WaveSegments>),
    /// A worker has written its failed downloads.
    Failures,
}

/// The segments of a wave that one worker wrote.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct WaveSegments {
    /// The segments, by shard.
    pub segments: Vec<Segment>,
    /// The counts of their documents, and of duplicates.
    pub counts: ReadingCounts,
    /// The records with a URL or id of another one, if the job says that these are bad.
    pub rejected: Vec<BadRecord>,
    /// The first record that has the id of another one, and another text.
    pub another_text: Option<AnotherText>,
}

/// A bad record with its reason and place: a row of `rejects`.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct BadRecord {
    /// The input's number in the plan.
    pub file: u32,
    /// The record's number in the input.
    pub ordinal: u64,
    /// The position of the record in the input, in bytes.
    pub offset: u64,
    /// The URL of the record, if it could be read.
    pub url: Option<String>,
    /// The reason.
    pub reason: String,
    /// Whether it is bad because another record has its URL or id.
    pub is_duplicate: bool,
}

impl Sortable for BadRecord {
    type Key = (u32, u64);

    fn key(&self) -> Self::Key {
        (self.file, self.ordinal)
    }

    fn weight(&self) -> usize {
        size_of::<BadRecord>() + self.url.as_ref().map_or(0, |url| url.len()) + self.reason.len()
    }
}
