//! The record that a revisit refers to.

use serde::{Deserialize, Serialize};

use crate::structures::Sortable;

/// What a revisit says of the record that it refers to.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct RevisitedRecord {
    /// Its URL as the archive has it.
    pub(in crate::export) url: Vec<u8>,
    /// Its date as WARC has it.
    pub(in crate::export) date: Option<String>,
    /// WARC-Record-ID as written.
    pub(in crate::export) id: Option<Vec<u8>>,
    /// WARC-Payload-Digest as written, or as replayers compute it.
    pub(in crate::export) digest: String,
    /// Whether it is in none of the files that the export writes.
    pub(in crate::export) is_outside: bool,
}

impl RevisitedRecord {
    /// The bytes that it takes in memory.
    pub(super) fn weight(&self) -> usize {
        let RevisitedRecord { url, date, id, digest, .. } = self;
        size_of::<RevisitedRecord>()
            + url.len()
            + digest.len()
            + date.as_ref().map_or(0, String::len)
            + id.as_ref().map_or(0, Vec::len)
    }
}

/// What the record at a place refers to, which is replaced by a revisit.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(in crate::export) struct Reference {
    pub(in crate::export) file: u32,
    pub(in crate::export) offset: u64,
    pub(in crate::export) original: RevisitedRecord,
}

impl Sortable for Reference {
    type Key = (u32, u64);

    fn key(&self) -> (u32, u64) {
        (self.file, self.offset)
    }

    fn weight(&self) -> usize {
        size_of::<Reference>() + self.original.weight()
    }
}
