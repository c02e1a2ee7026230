//! Records with the URL or id of another one: counted, or bad records.

use std::collections::BTreeMap;

use anyhow::Result;

use super::capture::{Capture, CaptureKey};
use super::notes::{BadRecord, WaveSegments};
use crate::config::SameId;
use crate::plan::Plan;
use crate::records::{DocId, DocumentKey};
use crate::state::AnotherText;
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
    /// Those of documents of earlier waves: the document, the checksum of the record, and the
    /// number of its input with its place there.
    earlier: Vec<(DocId, u128, (u32, u64))>,
    /// The first with another text: the number of its input, its place there, and its id, if the
    /// document is of this wave.
    first_different: Option<(u32, u64, Option<String>)>,
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
            first_different: None,
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
        let Capture { offset, id, given_url, url, checksum, .. } = *capture;
        match same {
            _ if self.plan.method.documents != DocumentKey::Id => self.count += 1,
            Same::Here(of_document) if of_document == checksum => self.count += 1,
            Same::Here(_) => {
                self.different += 1;
                self.note_different((file, offset), id);
            }
            Same::Earlier(doc) => {
                self.earlier.push((doc, checksum, (file, offset)));
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
        earlier.sort_rows_by_key(|(doc, ..)| *doc);
        checksums(&mut |doc, of_document| {
            let first = earlier.partition_point(|(of, ..)| *of < doc);
            for (_, checksum, place) in earlier[first..].iter().take_while(|(of, ..)| *of == doc) {
                if *checksum == of_document {
                    self.count += 1;
                } else {
                    self.different += 1;
                    self.note_different(*place, None);
                }
            }
        })
    }

    fn note_different(&mut self, place: (u32, u64), id: Option<&str>) {
        if self.first_different.as_ref().is_none_or(|(file, offset, _)| place < (*file, *offset)) {
            self.first_different = Some((place.0, place.1, id.map(str::to_owned)));
        }
    }

    fn reason(&self) -> &'static str {
        match self.plan.method.documents {
            DocumentKey::Url => "duplicate of a URL",
            DocumentKey::Id => "duplicate of an id",
            DocumentKey::Row => "duplicate of a row",
        }
    }

    /// Adds them to what is written: the counts, the first with another text, and those that are
    /// rows of `rejects`.
    ///
    /// # Errors
    /// As [`add`](Duplicates::add).
    pub(super) fn count(mut self, written: &mut WaveSegments, checksums: ReadChecksums<'_>) -> Result<()> {
        self.compare(checksums)?;
        let counts = &mut written.counts;
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
        let first = self.first_different.map(|(file, offset, id)| {
            let file = self.plan.inputs[file as usize].name.clone();
            AnotherText { file, offset, id }
        });
        written.another_text = written.another_text.take().into_iter().chain(first).min();
        written.rejected.append(&mut self.rejected);
        Ok(())
    }
}
