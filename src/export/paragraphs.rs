//! Paragraphs that documents repeat: the first one stays, and the others go.
//!
//! ```text
//! documents that stay ─▶ paragraphs (hash, place)     sorted by hash and place
//! equal paragraphs    ─▶ all but the first            sorted by place ─▶ beside the verdicts
//! ```
//!
//! A paragraph is a line of a text, without the white space around it. Two paragraphs are equal if their 128-bit hashes are: of 10^12
//! different ones, two have the same hash with a probability below 10^-14. Both sorts are external.

use std::path::Path;

use anyhow::{Result, bail, ensure};
use serde::{Deserialize, Serialize};
use xxhash_rust::xxh3::xxh3_128;

use super::dataset::each_file;
use super::file::changed;
use super::verdicts::{Verdict, Verdicts};
use crate::config::Reading;
use crate::readers::{Body, Format, Input, Item, open};
use crate::records::checksum;
use crate::structures::{ExternalSort, Sortable, Sorted};

/// Which paragraphs go.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ParagraphRules {
    /// How often a paragraph is there at least, if all but the first go.
    pub least_count: u64,
    /// The characters of a paragraph at least; shorter ones stay.
    pub least_characters: u64,
}

/// A paragraph of a document.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
struct Paragraph {
    hash: u128,
    place: ParagraphPlace,
}

/// Where a paragraph is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub(super) struct ParagraphPlace {
    pub(super) file: u32,
    pub(super) offset: u64,
    /// The number of the line in the text, from 0.
    pub(super) line: u32,
}

impl Sortable for Paragraph {
    type Key = Paragraph;

    fn key(&self) -> Paragraph {
        *self
    }

    fn weight(&self) -> usize {
        size_of::<Paragraph>()
    }
}

impl Sortable for ParagraphPlace {
    type Key = ParagraphPlace;

    fn key(&self) -> ParagraphPlace {
        *self
    }

    fn weight(&self) -> usize {
        size_of::<ParagraphPlace>()
    }
}

/// The paragraphs of a text: the numbers of their lines, and the paragraphs, those without a character left out.
fn paragraphs(text: &str) -> impl Iterator<Item = (u32, &str)> {
    text.split('\n').zip(0..).map(|(line, number)| (number, line.trim())).filter(|(_, paragraph)| !paragraph.is_empty())
}

/// Finds the paragraphs that go, in the order of their places.
pub(super) struct Finding<'a> {
    pub(super) inputs: &'a [Input],
    pub(super) reading: &'a Reading,
    pub(super) rules: ParagraphRules,
    pub(super) scratch: &'a Path,
    /// Memory for both sorts, in bytes.
    pub(super) memory: u64,
    pub(super) threads: usize,
}

impl Finding<'_> {
    /// Reads the documents that stay.
    ///
    /// # Errors
    /// If an input cannot be read or has changed, or has documents that are no text; or a run cannot be written.
    pub(super) fn find(&self, verdicts: Verdicts) -> Result<Sorted<ParagraphPlace>> {
        let mut all = ExternalSort::new(&self.scratch.join("paragraphs"), self.memory / 2);
        let (sender, receiver) = std::sync::mpsc::sync_channel::<Vec<Paragraph>>(self.threads);
        let read = {
            let sender = std::sync::Mutex::new(sender);
            move |number: usize, verdicts: &[Verdict]| {
                let sender = super::dataset::locked(&sender).clone();
                self.read(number, verdicts, &mut |found| sender.send(found).is_ok())
            }
        };
        std::thread::scope(|scope| -> Result<()> {
            let reading = scope.spawn(move || each_file(self.inputs, verdicts, self.threads, &read));
            for found in receiver {
                found.into_iter().try_for_each(|paragraph| all.push(paragraph))?;
            }
            reading.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
        })?;
        let mut gone = ExternalSort::new(&self.scratch.join("gone"), self.memory / 2);
        let mut all = all.sorted()?;
        let mut next = all.record()?;
        let mut group: Vec<ParagraphPlace> = Vec::new();
        while let Some(Paragraph { hash, .. }) = next {
            // Until there are enough of them, all but the first wait.
            let mut count = 1;
            group.clear();
            next = all.record()?;
            while let Some(other) = next.take_if(|other| other.hash == hash) {
                count += 1;
                group.push(other.place);
                if count >= self.rules.least_count {
                    group.drain(..).try_for_each(|place| gone.push(place))?;
                }
                next = all.record()?;
            }
        }
        gone.sorted()
    }

    /// Hands on the paragraphs of a file's documents that stay.
    fn read(&self, number: usize, verdicts: &[Verdict], send: &mut dyn FnMut(Vec<Paragraph>) -> bool) -> Result<()> {
        let input = &self.inputs[number];
        ensure!(
            matches!(input.format, Format::Jsonl | Format::Parquet | Format::Text),
            "{} is {}, of which paragraphs cannot be taken out: they can of JSON Lines, Parquet and text files",
            input.name,
            input.format
        );
        let mut reader = open(input, self.reading)?;
        let mut verdicts = verdicts.iter().peekable();
        let mut found = Vec::new();
        while let Some(item) = reader.next()? {
            let Item::Page(page) = item else { continue };
            let Some(verdict) = verdicts.next_if(|verdict| verdict.offset == page.offset) else { continue };
            if checksum(page.body.as_bytes()) != verdict.checksum {
                return Err(changed(input, page.offset));
            }
            // Of a text that was cut the rest is not known.
            if !verdict.stays || page.cut {
                continue;
            }
            let Some(text) = text_of(&page.body) else {
                bail!(
                    "{} has a document at {} that is no text in UTF-8, so it has no paragraphs",
                    input.name,
                    page.offset
                );
            };
            for (line, paragraph) in paragraphs(text) {
                if (paragraph.chars().count() as u64) < self.rules.least_characters {
                    continue;
                }
                let place = ParagraphPlace { file: number as u32, offset: page.offset, line };
                found.push(Paragraph { hash: xxh3_128(paragraph.as_bytes()), place });
            }
            if found.len() > 1 << 14 && !send(std::mem::take(&mut found)) {
                return Ok(());
            }
        }
        send(found);
        Ok(())
    }
}

/// The text of a document; `None` if it is HTML, or not UTF-8.
pub(super) fn text_of(body: &Body) -> Option<&str> {
    match body {
        Body::Text(text) => Some(text),
        Body::Plain(bytes) => std::str::from_utf8(bytes).ok(),
        Body::Html(_) => None,
    }
}

/// A text without some of its lines, ascending; `None` if no paragraph is left.
pub(super) fn without(text: &str, lines: &[u32]) -> Option<String> {
    let mut gone = lines.iter().peekable();
    let mut kept = String::with_capacity(text.len());
    for (line, number) in text.split_inclusive('\n').zip(0..) {
        if gone.next_if(|gone| **gone == number).is_none() {
            kept.push_str(line);
        }
    }
    (!kept.trim().is_empty()).then_some(kept)
}
