//! The parts of a followed file: what came to it, as batches.

use super::Follower;
use super::place::Place;
use crate::live::batch::{Limits, read_batch};
use crate::live::refusal::Refusal;
use crate::readers::{Body, Item, Page};
use crate::text::charset;

/// The records of a part.
const AT_ONCE: usize = 1000;
/// Bad records that are reported of a part.
const REPORTED: usize = 5;

/// A part of a file, as a batch.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Part {
    /// The name of the file in the folder.
    pub file: String,
    /// The lines of the batch.
    pub lines: Vec<u8>,
    /// Where the next part begins.
    pub next: Place,
    /// Why records are passed over, each with its place.
    pub bad: Vec<String>,
}

/// Takes a part: when it returns, the part is in the journal.
pub type TakePart<'a> = dyn FnMut(&Part) -> Result<(), Refusal> + 'a;

/// The part that is being made.
pub(super) struct Parts<'a> {
    follower: &'a Follower,
    part: Part,
    records: usize,
    /// Records that are passed over.
    passed_over: usize,
}

impl<'a> Parts<'a> {
    /// The first part begins at a place of a file.
    pub(super) fn new(follower: &'a Follower, file: &str, first: Place) -> Parts<'a> {
        let part = Part { file: file.to_owned(), next: first, ..Part::default() };
        Parts { follower, part, records: 0, passed_over: 0 }
    }

    /// Why a line is not a record.
    pub(super) fn check(&self, line: &[u8]) -> Result<(), String> {
        let read = read_batch(line, &self.follower.method, &Limits::none());
        read.map(drop).map_err(|refusal| refusal.text.trim_start_matches("line 1: ").to_owned())
    }

    /// Adds a line that is a record, or empty.
    pub(super) fn add(&mut self, line: &[u8], next: Place) {
        let line = line.trim_ascii();
        if !line.is_empty() {
            self.part.lines.extend_from_slice(line);
            self.part.lines.push(b'\n');
            self.records += 1;
        }
        self.part.next = next;
    }

    /// Passes over a record.
    pub(super) fn bad(&mut self, at: u64, next: Place, reason: &str) {
        self.part.next = next;
        self.passed_over += 1;
        if self.passed_over <= REPORTED {
            self.part.bad.push(format!("{}, byte {at}: {reason}", self.part.file));
        }
    }

    /// Adds a page; other items are passed over. What answers POST or HEAD is not the page of its
    /// URL.
    pub(super) fn item(&mut self, item: Item, next: Place) {
        let at = item.offset();
        match item {
            Item::Page(page) if page.is_of_get => {
                let line = line_of(&page);
                match self.check(&line) {
                    Ok(()) => self.add(&line, next),
                    Err(reason) => self.bad(at, next, &reason),
                }
            }
            Item::Reject(reject) => self.bad(at, next, &reject.reason),
            Item::Page(_) | Item::Failed(_) | Item::Revisit(_) | Item::Skip(_) => self.part.next = next,
        }
    }

    /// Gives the part to `take` if it has enough records.
    pub(super) fn give_if_full(&mut self, take: &mut TakePart<'_>) -> Result<(), Refusal> {
        let is_full = self.records >= AT_ONCE || self.part.lines.len() >= self.follower.limits.batch_bytes / 2;
        if is_full { self.give(take) } else { Ok(()) }
    }

    /// Gives the part to `take`, if it has anything.
    pub(super) fn give(&mut self, take: &mut TakePart<'_>) -> Result<(), Refusal> {
        if self.records == 0 && self.passed_over == 0 {
            return Ok(());
        }
        if self.passed_over > REPORTED {
            let text = format!("{}: {} more records are passed over", self.part.file, self.passed_over - REPORTED);
            self.part.bad.push(text);
        }
        take(&self.part)?;
        (self.part.lines, self.part.bad) = (Vec::new(), Vec::new());
        (self.records, self.passed_over) = (0, 0);
        Ok(())
    }
}

/// A page as a line of a batch.
fn line_of(page: &Page) -> Vec<u8> {
    let label = page.charset.as_deref();
    let (field, text) = match &page.body {
        Body::Html(bytes) => ("html", charset::decode(bytes, label).0),
        Body::Plain(bytes) => ("text", charset::decode_plain(bytes, label).0),
        Body::Text(text) => ("text", text.as_str().into()),
    };
    let mut line = serde_json::json!({ "url": page.url, field: text }).to_string().into_bytes();
    line.push(b'\n');
    line
}
