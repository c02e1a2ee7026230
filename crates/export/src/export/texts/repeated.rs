//! Paragraphs that documents repeat: the first one stays, and the others go.
//!
//! ```text
//! documents that stay ─▶ paragraphs (hash, place)     sorted by hash and place
//! equal paragraphs    ─▶ all but the first            sorted by place ─▶ beside the verdicts
//! ```
//!
//! Where paragraphs go for their n-grams, `overlap` finds which.
//!
//! Two paragraphs are equal if their 128-bit hashes are: of 10^12 different ones, two have the same
//! hash with a probability below 10^-14. Both sorts are external.

use std::path::PathBuf;

use anyhow::{Result, bail, ensure};
use nigh_text::features::WordReader;
use serde::{Deserialize, Serialize};
use xxhash_rust::xxh3::xxh3_128;

use super::overlap::{OfText, OverlapRule, Overlaps, grams_of};
use super::paragraph_place::ParagraphPlace;
use super::paragraphs::{ParagraphRules, paragraphs, text_of};
use crate::config::{Method, Reading};
use crate::export::dataset::{changed, each_file};
use crate::export::rows::can_be_cut;
use crate::export::verdicts::{Deciding, Verdict, Verdicts};
use crate::readers::{Input, Item, open};
use crate::structures::{ExternalSort, Sortable, Sorted};

/// A paragraph of a document.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
struct Paragraph {
    hash: u128,
    place: ParagraphPlace,
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

/// What is done with each paragraph of a file: what is found in it is added to the list.
type EachParagraph<T> = Box<dyn FnMut(ParagraphPlace, &str, &mut Vec<T>)>;

/// What repeated paragraphs are found with.
pub struct ParagraphSearch<'a> {
    /// The inputs, in order.
    pub inputs: &'a [Input],
    /// How they were read.
    pub reading: &'a Reading,
    /// What a word is.
    pub method: &'a Method,
    /// Which paragraphs go.
    pub rules: ParagraphRules,
    /// A folder for runs of the sorts.
    pub scratch: PathBuf,
    /// Memory for both sorts, in bytes.
    pub memory: u64,
    /// Threads that read.
    pub threads: usize,
}

impl ParagraphSearch<'_> {
    /// The verdicts, with the paragraphs that go.
    ///
    /// # Errors
    /// If an input cannot be read or has changed, or has documents that are no text; or a run
    /// cannot be written.
    pub fn verdicts(&self, deciding: &Deciding<'_>) -> Result<Verdicts> {
        let verdicts = deciding.verdicts()?;
        let gone = match self.rules.overlap {
            None => self.repeated(verdicts)?,
            Some(rule) => self.overlapping(rule, verdicts)?,
        };
        deciding.without(gone)
    }

    /// The paragraphs most of whose n-grams stand before, in the order of their places.
    fn overlapping(&self, rule: OverlapRule, verdicts: Verdicts) -> Result<Sorted<ParagraphPlace>> {
        let mut overlaps = Overlaps::new(rule, self.scratch.clone(), self.memory);
        let of_file = || -> Result<EachParagraph<OfText>> {
            let mut words = WordReader::of_method(self.method)?;
            Ok(Box::new(move |place, paragraph, found| grams_of(rule, &mut words, place, paragraph, found)))
        };
        self.read_all(verdicts, &of_file, &mut |found| overlaps.push(found))?;
        overlaps.gone()
    }

    /// The paragraphs that are equal to one before, in the order of their places.
    fn repeated(&self, verdicts: Verdicts) -> Result<Sorted<ParagraphPlace>> {
        let mut all = ExternalSort::new(&self.scratch.join("paragraphs"), self.memory / 2);
        let of_file = || -> Result<EachParagraph<Paragraph>> {
            Ok(Box::new(|place, paragraph, found| {
                found.push(Paragraph { hash: xxh3_128(paragraph.as_bytes()), place });
            }))
        };
        self.read_all(verdicts, &of_file, &mut |paragraph| all.push(paragraph))?;
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

    /// Reads the documents that stay, and hands on what is found in their paragraphs, in any order.
    ///
    /// # Errors
    /// If an input cannot be read or has changed, or has documents that are no text; or those of
    /// `take`.
    fn read_all<T: Send>(
        &self,
        verdicts: Verdicts,
        of_file: &(dyn Fn() -> Result<EachParagraph<T>> + Sync),
        take: &mut dyn FnMut(T) -> Result<()>,
    ) -> Result<()> {
        let (sender, receiver) = std::sync::mpsc::sync_channel::<Vec<T>>(self.threads);
        let read = {
            let sender = std::sync::Mutex::new(sender);
            move |number: usize, verdicts: &[Verdict]| {
                let sender = crate::export::dataset::locked(&sender).clone();
                self.read(number, verdicts, &mut *of_file()?, &mut |found| sender.send(found).is_ok())
            }
        };
        std::thread::scope(|scope| -> Result<()> {
            let reading = scope.spawn(move || each_file("read", self.inputs, verdicts, self.threads, &read));
            for found in receiver {
                found.into_iter().try_for_each(&mut *take)?;
            }
            reading.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
        })
    }

    /// Hands on what is found in the paragraphs of a file's documents that stay.
    fn read<T>(
        &self,
        number: usize,
        verdicts: &[Verdict],
        each: &mut dyn FnMut(ParagraphPlace, &str, &mut Vec<T>),
        send: &mut dyn FnMut(Vec<T>) -> bool,
    ) -> Result<()> {
        let input = &self.inputs[number];
        ensure!(
            can_be_cut(input.format),
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
            if !verdict.is_of(&page, input.format) {
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
                let is_short = (paragraph.chars().count() as u64) < self.rules.least_characters;
                if is_short && self.rules.overlap.is_none() {
                    continue;
                }
                let place = ParagraphPlace { file: number as u32, offset: page.offset, line };
                // A short one has no n-grams, and goes with its document alone.
                each(place, if is_short { "" } else { paragraph }, &mut found);
                if found.len() > 1 << 14 && !send(std::mem::take(&mut found)) {
                    return Ok(());
                }
            }
        }
        send(found);
        Ok(())
    }
}
