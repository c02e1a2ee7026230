//! The records beside the pages of a WARC file: requests and metadata, which are written if what
//! they belong to is.
//!
//! A record belongs to the captures (responses, resources, revisits) and records that it names by
//! `WARC-Concurrent-To` or `WARC-Refers-To`, and to those that name it, wherever they are in the
//! file: it is written if all of them are. One that names none and that none names belongs to the
//! capture beside it that has its URL; if both have it, it is written if both are. A record that
//! names what has not come yet waits for it. Limitation: a record that was written already stays,
//! if a later capture that is not written names it.
//!
//! Memory: some 40 bytes for each name of a record, and the records that wait, up to 64 MiB of
//! them: then the oldest are decided by what is known.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use xxhash_rust::xxh3::xxh3_64;

use crate::export::dataset::Exported;
use crate::readers::RecordNames;

/// Bytes of records that wait, at most.
const WAITING_BYTES: usize = 64 << 20;

/// The records of one file.
pub(crate) struct Attached {
    /// Whether those that belong to nothing are written.
    others: bool,
    /// Whether records are written, by the hashes of their ids; and captures, by those of the ids
    /// that they name.
    known: HashMap<u64, bool>,
    named: HashMap<u64, bool>,
    /// The capture beside, and whether it is written; none after a bad record.
    beside: Option<(RecordNames, bool)>,
    /// Records that wait, and their bytes, by their number.
    waiting: BTreeMap<u64, (RecordNames, Vec<u8>)>,
    /// The numbers of those that wait for an id, by its hash.
    waits_for: HashMap<u64, Vec<u64>>,
    /// Those that came since the capture beside.
    recent: Vec<u64>,
    /// The hashes of ids that became known since.
    changed: Vec<u64>,
    number: u64,
    bytes: usize,
}

impl Attached {
    /// Before the first record.
    pub(crate) fn new(others: bool) -> Attached {
        Attached {
            others,
            known: HashMap::new(),
            named: HashMap::new(),
            beside: None,
            waiting: BTreeMap::new(),
            waits_for: HashMap::new(),
            recent: Vec::new(),
            changed: Vec::new(),
            number: 0,
            bytes: 0,
        }
    }

    /// Whether a record is written because of what came before it; `None` if it has to wait.
    pub(crate) fn is_written(&mut self, record: &RecordNames) -> Option<bool> {
        let is_written = self.decided(record, false)?;
        self.learn(record, is_written);
        Some(is_written)
    }

    /// Keeps a record until what it names has come. Returns the bytes of older ones that are
    /// written, if too many wait.
    pub(crate) fn wait(&mut self, record: RecordNames, bytes: Vec<u8>, exported: &mut Exported) -> Vec<Vec<u8>> {
        self.number += 1;
        self.bytes += bytes.len();
        for id in record.named.iter().chain(&record.id) {
            self.waits_for.entry(hash(id)).or_default().push(self.number);
        }
        self.recent.push(self.number);
        self.waiting.insert(self.number, (record, bytes));
        let mut written = Vec::new();
        while self.bytes > WAITING_BYTES
            && let Some(oldest) = self.waiting.first_key_value().map(|(number, _)| *number)
        {
            written.extend(self.settle(oldest, None, true, exported));
        }
        written
    }

    /// Takes the next capture, and returns the bytes of the records that are written before it.
    pub(crate) fn next_capture(
        &mut self,
        capture: RecordNames,
        is_written: bool,
        exported: &mut Exported,
    ) -> Vec<Vec<u8>> {
        self.learn(&capture, is_written);
        for id in &capture.named {
            self.named.entry(hash(id)).and_modify(|all| *all &= is_written).or_insert(is_written);
            self.changed.push(hash(id));
        }
        self.next(Some((capture, is_written)), exported)
    }

    /// Takes a record that cannot be read: it may be a capture.
    pub(crate) fn damage(&mut self, exported: &mut Exported) -> Vec<Vec<u8>> {
        self.next(None, exported)
    }

    /// At the end of the file: returns the bytes of the last records that are written.
    pub(crate) fn end(&mut self, exported: &mut Exported) -> Vec<Vec<u8>> {
        let mut written = self.next(None, exported);
        let left: Vec<u64> = self.waiting.keys().copied().collect();
        written.extend(left.into_iter().filter_map(|number| self.settle(number, None, true, exported)));
        written
    }

    /// Decides records that wait, where that is possible now.
    fn next(&mut self, capture: Option<(RecordNames, bool)>, exported: &mut Exported) -> Vec<Vec<u8>> {
        let recent = std::mem::take(&mut self.recent);
        let mut numbers: BTreeSet<u64> = recent.iter().copied().collect();
        let mut written: BTreeMap<u64, Vec<u8>> = BTreeMap::new();
        loop {
            for id in std::mem::take(&mut self.changed) {
                numbers.extend(self.waits_for.remove(&id).unwrap_or_default());
            }
            let Some(number) = numbers.pop_first() else { break };
            let Some((record, _)) = self.waiting.get(&number) else { continue };
            let by_url = if recent.binary_search(&number).is_ok() {
                let beside = [&capture, &self.beside].into_iter().flatten();
                let of_url = beside.filter(|(capture, _)| has_url_of(record, capture));
                of_url.map(|(_, is_written)| *is_written).reduce(|a, b| a && b)
            } else {
                None
            };
            written.extend(self.settle(number, by_url, false, exported).map(|bytes| (number, bytes)));
        }
        self.beside = capture;
        written.into_values().collect()
    }

    /// Decides a record that waits, by its names or else by its URL; `is_last` if nothing more will
    /// be known. Returns its bytes if it is written.
    fn settle(&mut self, number: u64, by_url: Option<bool>, is_last: bool, exported: &mut Exported) -> Option<Vec<u8>> {
        let (record, _) = self.waiting.get(&number)?;
        let decided = self.decided(record, is_last).or(by_url).or(is_last.then_some(self.others));
        let is_written = decided?;
        let (record, bytes) = self.waiting.remove(&number)?;
        self.bytes -= bytes.len();
        self.learn(&record, is_written);
        if is_written {
            exported.others += 1;
            return Some(bytes);
        }
        exported.left_out.attached += 1;
        None
    }

    /// What the names of a record say: that it is written if all is that it belongs to.
    fn decided(&self, record: &RecordNames, is_last: bool) -> Option<bool> {
        let by_own: Vec<Option<bool>> = record.named.iter().map(|id| self.known.get(&hash(id)).copied()).collect();
        let by_capture = record.id.as_ref().and_then(|id| self.named.get(&hash(id))).copied();
        let all = || by_own.iter().copied().chain([by_capture]).flatten();
        let is_complete = by_own.iter().all(Option::is_some);
        match all().reduce(|a, b| a && b) {
            Some(false) => Some(false),
            Some(true) if is_complete || is_last => Some(true),
            _ => None,
        }
    }

    /// Remembers whether a record is written. Of two with one id both must be.
    fn learn(&mut self, record: &RecordNames, is_written: bool) {
        if let Some(id) = record.id.as_ref().map(|id| hash(id)) {
            self.known.entry(id).and_modify(|all| *all &= is_written).or_insert(is_written);
            self.changed.push(id);
        }
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
