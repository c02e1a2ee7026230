//! Records with the URL or id of another one: counted, or bad records.

use std::collections::BTreeMap;

use anyhow::Result;

use super::capture::{Capture, CaptureKey};
use super::notes::BadRecord;
use crate::config::SameId;
use crate::plan::Plan;
use crate::records::{DocId, DocumentKey};
use crate::state::ReadingCounts;
use crate::structures::CompactSort as _;

/// The records with a URL or id of another one, of one shard and wave, that are rows of `rejects`;
/// further ones are only counted.
const MOST_LISTED: usize = 10_000;

/// Records of earlier waves whose documents are looked up at once.
const LOOKED_UP: usize = 1 << 20;

/// The reason of a record that has the id of another one, and another text.
pub const ANOTHER_TEXT: &str = "duplicate of an id, with another text";

/// What the document of an earlier wave has.
pub(super) type ReadChecksums<'a> = &'a dyn Fn(&mut dyn FnMut(DocId, u128)) -> Result<()>;

/// The records of a shard and wave whose URL or id another record had before.
pub(super) struct Duplicates<'a> {
    plan: &'a Plan,
    /// Those with the same text, or of a URL.
    count: u64,
    /// Those with another text.
    different: u64,
    /// The first of them, if they are bad records.
    rejected: Vec<BadRecord>,
    /// The number of the others, by input.
    unlisted: BTreeMap<u32, u64>,
    /// Those of documents of earlier waves: the document, and the checksum of the record.
    earlier: Vec<(DocId, u128)>,
}

/// The record that a duplicate has its URL or id from.
pub(super) enum Same {
    /// Of this wave, with this checksum.
    Here(u128),
    /// Of an earlier wave.
    Earlier(DocId),
}

impl Duplicates<'_> {
    /// There are none yet.
    pub(super) fn new(plan: &Plan) -> Duplicates<'_> {
        Duplicates {
            plan,
            count: 0,
            different: 0,
            rejected: Vec::new(),
            unlisted: BTreeMap::new(),
            earlier: Vec::new(),
        }
    }

    fn are_bad(&self) -> bool {
        self.plan.reading.same_id == SameId::Reject
    }

    /// Adds a record. `checksums` reads those of the documents of earlier waves.
    ///
    /// # Errors
    /// If these cannot be read.
    pub(super) fn add(
        &mut self,
        CaptureKey { file, ordinal, .. }: CaptureKey,
        capture: &Capture,
        same: Same,
        checksums: ReadChecksums<'_>,
    ) -> Result<()> {
        let Capture { offset, given_url, url, checksum, .. } = *capture;
        match same {
            _ if self.plan.method.documents != DocumentKey::Id => self.count += 1,
            Same::Here(of_document) if of_document == checksum => self.count += 1,
            Same::Here(_) => self.different += 1,
            Same::Earlier(doc) => {
                self.earlier.push((doc, checksum));
                if self.earlier.len() == LOOKED_UP {
                    self.compare(checksums)?;
                }
            }
        }
        if !self.are_bad() {
            return Ok(());
        }
        if self.rejected.len() == MOST_LISTED {
            *self.unlisted.entry(file).or_default() += 1;
            return Ok(());
        }
        let (url, reason) = (given_url.or(url).map(str::to_owned), self.reason().to_owned());
        self.rejected.push(BadRecord { file, ordinal, offset, url, reason, is_duplicate: true });
        Ok(())
    }

    /// Compares those of earlier waves with their documents.
    fn compare(&mut self, checksums: ReadChecksums<'_>) -> Result<()> {
        let mut earlier = std::mem::take(&mut self.earlier);
        if earlier.is_empty() {
            return Ok(());
        }
        earlier.sort_rows_by_key(|(doc, _)| *doc);
        checksums(&mut |doc, of_document| {
            let first = earlier.partition_point(|(of, _)| *of < doc);
            for (_, checksum) in earlier[first..].iter().take_while(|(of, _)| *of == doc) {
                *(if *checksum == of_document { &mut self.count } else { &mut self.different }) += 1;
            }
        })
    }

    fn reason(&self) -> &'static str {
        match self.plan.method.documents {
            DocumentKey::Url => "duplicate of a URL",
            DocumentKey::Id => "duplicate of an id",
            DocumentKey::Row => "duplicate of a row",
        }
    }

    /// Counts them, and returns those that are rows of `rejects`.
    ///
    /// # Errors
    /// As [`add`](Duplicates::add).
    pub(super) fn count(mut self, counts: &mut ReadingCounts, checksums: ReadChecksums<'_>) -> Result<Vec<BadRecord>> {
        self.compare(checksums)?;
        let reason = self.reason();
        let of_kind = if self.are_bad() { &mut counts.rejects } else { &mut counts.skipped };
        let another = if self.plan.reading.same_id == SameId::Reject { reason } else { ANOTHER_TEXT };
        for (count, reason) in [(self.count, reason), (self.different, another)] {
            if count > 0 {
                *of_kind.entry(reason.to_owned()).or_default() += count;
            }
        }
        for (file, count) in self.unlisted {
            *counts.unlisted.entry(self.plan.inputs[file as usize].name.clone()).or_default() += count;
        }
        Ok(self.rejected)
    }
}
