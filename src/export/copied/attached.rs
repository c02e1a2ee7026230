//! The records beside the pages of a WARC file: requests and metadata, which are written if what they belong to is.
//!
//! A record belongs to a capture (a response, a resource, a revisit) if one of them names the other, by `WARC-Concurrent-To` or
//! `WARC-Refers-To`, wherever they are in the file; one that names none and that none names belongs to the capture beside it that has its URL,
//! and if both have it, it is written if both are. A record whose capture has not come yet waits for it.
//!
//! Memory: 16 bytes for each name of a capture, and the records that wait.

use std::collections::HashMap;

use xxhash_rust::xxh3::xxh3_64;

use crate::export::exported::Exported;
use crate::readers::RecordNames;

/// Bytes of records that wait, at most: no writer puts so much before a capture, and what is more is left out.
const WAITING_BYTES: usize = 64 << 20;

/// The records of one file.
pub(crate) struct Attached {
    /// Whether those that belong to no capture are written.
    others: bool,
    /// Whether captures are written, by the hashes of their ids and of the ids that they name.
    captures: HashMap<u64, bool>,
    named: HashMap<u64, bool>,
    /// The capture beside, and whether it is written; none after a bad record.
    beside: Option<(RecordNames, bool)>,
    /// Records that wait, and their bytes.
    waiting: Vec<(RecordNames, Vec<u8>)>,
    bytes: usize,
}

impl Attached {
    /// Before the first record.
    pub(crate) fn new(others: bool) -> Attached {
        let (captures, named) = (HashMap::new(), HashMap::new());
        Attached { others, captures, named, beside: None, waiting: Vec::new(), bytes: 0 }
    }

    /// Whether a record is written because a capture before it and it name each other; `None` if it has to wait.
    pub(crate) fn is_written(&self, record: &RecordNames) -> Option<bool> {
        let by_own = record.named.iter().find_map(|id| self.captures.get(&hash(id)));
        let by_capture = || record.id.as_ref().and_then(|id| self.named.get(&hash(id)));
        by_own.or_else(by_capture).copied()
    }

    /// Keeps a record until its capture, or the end of the file.
    pub(crate) fn wait(&mut self, record: RecordNames, bytes: Vec<u8>, exported: &mut Exported) {
        self.bytes += bytes.len();
        self.waiting.push((record, bytes));
        if self.bytes > WAITING_BYTES {
            exported.left_out.attached += self.waiting.len() as u64;
            self.waiting.clear();
            self.bytes = 0;
        }
    }

    /// Takes the next capture, and returns the bytes of the records that are written before it.
    pub(crate) fn next_capture(
        &mut self,
        capture: RecordNames,
        is_written: bool,
        exported: &mut Exported,
    ) -> Vec<Vec<u8>> {
        self.captures.extend(capture.id.iter().map(|id| (hash(id), is_written)));
        self.named.extend(capture.named.iter().map(|id| (hash(id), is_written)));
        self.next(Some((capture, is_written)), exported)
    }

    /// Takes a record that cannot be read: it may be a capture.
    pub(crate) fn damage(&mut self, exported: &mut Exported) -> Vec<Vec<u8>> {
        self.next(None, exported)
    }

    /// At the end of the file: returns the bytes of the last records that are written.
    pub(crate) fn end(&mut self, exported: &mut Exported) -> Vec<Vec<u8>> {
        let mut written = self.next(None, exported);
        for (_, bytes) in self.waiting.drain(..) {
            count(self.others, bytes, &mut written, exported);
        }
        written
    }

    fn next(&mut self, capture: Option<(RecordNames, bool)>, exported: &mut Exported) -> Vec<Vec<u8>> {
        let (mut written, mut waiting) = (Vec::new(), Vec::new());
        for (record, bytes) in std::mem::take(&mut self.waiting) {
            let by_url = || {
                let beside = [&capture, &self.beside].into_iter().flatten();
                let of_url = beside.filter(|(capture, _)| has_url_of(&record, capture));
                of_url.map(|(_, is_written)| *is_written).reduce(|a, b| a && b)
            };
            match self.is_written(&record).or_else(by_url) {
                Some(is_written) => count(is_written, bytes, &mut written, exported),
                None => waiting.push((record, bytes)),
            }
        }
        self.bytes = waiting.iter().map(|(_, bytes)| bytes.len()).sum();
        self.waiting = waiting;
        self.beside = capture;
        written
    }
}

fn count(is_written: bool, bytes: Vec<u8>, written: &mut Vec<Vec<u8>>, exported: &mut Exported) {
    if is_written {
        exported.others += 1;
        written.push(bytes);
    } else {
        exported.left_out.attached += 1;
    }
}

/// The hash of a record's id.
fn hash(id: &str) -> u64 {
    xxh3_64(id.as_bytes())
}

/// Whether a record that names no other has the URL of a capture.
fn has_url_of(record: &RecordNames, capture: &RecordNames) -> bool {
    record.named.is_empty() && record.url.is_some() && record.url == capture.url
}
