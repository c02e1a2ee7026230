//! The records beside the pages of a WARC file: requests and metadata, which are written if what they belong to is.
//!
//! A record belongs to a capture (a response, a resource, a revisit) if one of them names the other, by `WARC-Concurrent-To` or
//! `WARC-Refers-To`; one that names none and that none names belongs to the capture beside it that has its URL, and if both have it, it is
//! written if both are. Writers put the records of a capture side by side, in any order: those that the capture before does not explain wait
//! for the next one.

use std::collections::VecDeque;

use super::exported::Exported;
use crate::readers::RecordNames;

/// Bytes of records that wait, at most: no writer puts so much before a capture, and what is more is left out.
const WAITING_BYTES: usize = 64 << 20;

/// The records of one file.
pub(super) struct Attached {
    /// Whether those that belong to no capture are written.
    others: bool,
    /// The last capture, and whether it is written.
    capture: Option<(RecordNames, bool)>,
    /// Records after it that do not belong to it, and their bytes.
    waiting: VecDeque<(RecordNames, Vec<u8>)>,
    bytes: usize,
}

impl Attached {
    /// Before the first record.
    pub(super) fn new(others: bool) -> Attached {
        Attached { others, capture: None, waiting: VecDeque::new(), bytes: 0 }
    }

    /// Whether a record is written because it and the capture before it name each other; `None` if it has to wait for the next one.
    pub(super) fn is_written(&self, record: &RecordNames) -> Option<bool> {
        // Records stay in their order.
        if !self.waiting.is_empty() {
            return None;
        }
        self.capture.as_ref().filter(|(capture, _)| name_each_other(record, capture)).map(|(_, is_written)| *is_written)
    }

    /// Keeps a record until the next capture.
    pub(super) fn wait(&mut self, record: RecordNames, bytes: Vec<u8>, exported: &mut Exported) {
        self.bytes += bytes.len();
        self.waiting.push_back((record, bytes));
        while self.bytes > WAITING_BYTES
            && let Some((_, bytes)) = self.waiting.pop_front()
        {
            self.bytes -= bytes.len();
            exported.left_out.attached += 1;
        }
    }

    /// Takes the next capture, or the end of the file, and returns the bytes of the records that are written before it.
    pub(super) fn next_capture(
        &mut self,
        capture: Option<(RecordNames, bool)>,
        exported: &mut Exported,
    ) -> Vec<Vec<u8>> {
        let mut written = Vec::new();
        for (record, bytes) in self.waiting.drain(..) {
            let beside = || [&capture, &self.capture].into_iter().flatten();
            let is_written = match beside().find(|(capture, _)| name_each_other(&record, capture)) {
                Some((_, is_written)) => *is_written,
                None => {
                    let of_url = beside().filter(|(capture, _)| has_url_of(&record, capture));
                    of_url.map(|(_, is_written)| *is_written).reduce(|a, b| a && b).unwrap_or(self.others)
                }
            };
            if is_written {
                exported.others += 1;
                written.push(bytes);
            } else {
                exported.left_out.attached += 1;
            }
        }
        self.bytes = 0;
        self.capture = capture;
        written
    }
}

/// Whether a record and a capture name each other.
fn name_each_other(record: &RecordNames, capture: &RecordNames) -> bool {
    let names = |one: &RecordNames, other: &RecordNames| other.id.as_ref().is_some_and(|id| one.named.contains(id));
    names(record, capture) || names(capture, record)
}

/// Whether a record that names no other has the URL of a capture.
fn has_url_of(record: &RecordNames, capture: &RecordNames) -> bool {
    record.named.is_empty() && record.url.is_some() && record.url == capture.url
}
