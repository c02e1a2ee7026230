//! Values of columns that the store does not have, read from the inputs when these are exported.
//!
//! ```text
//! documents in clusters, by file and place ─▶ each input, read once, with the columns
//!     ─▶ (segment, document, column, value), sorted ─▶ a file of the table `values` for each segment
//! ```
//!
//! So the order can be chosen after the run. It costs one reading of the inputs; the sorts are
//! external.

use std::path::PathBuf;

use anyhow::{Context as _, Result};
use serde::{Deserialize, Serialize};

use super::deciding::{Deciding, SegmentPage};
use super::sequence::Verdicts;
use super::verdict::Verdict;
use crate::config::{Canonical, CanonicalOrder, Policy, Reading};
use crate::export::dataset::{changed, each_file, locked};
use crate::readers::{Input, Item, open};
use crate::structures::{ExternalSort, Sortable, Sorted};
use crate::tables::{ValueRow, Writer};

/// Values that a thread collects before it hands them on.
const HANDED: usize = 1 << 12;

/// A value of a document.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct InputValue {
    /// The number of the segment that has the document.
    segment: u32,
    doc: i64,
    /// The number of the column.
    column: u32,
    value: String,
}

impl Sortable for InputValue {
    type Key = (u32, i64, u32);

    fn key(&self) -> Self::Key {
        (self.segment, self.doc, self.column)
    }

    fn weight(&self) -> usize {
        size_of::<InputValue>() + self.value.len()
    }
}

/// What values are read from.
pub struct InputValues<'a> {
    /// All inputs of the week, in order.
    pub inputs: &'a [Input],
    /// How they are read: its `values` are the columns.
    pub reading: &'a Reading,
    /// A folder for runs of the sorts, and for the values.
    pub scratch: PathBuf,
    /// Memory for both sorts, in bytes.
    pub memory: u64,
    /// Threads that read.
    pub threads: usize,
}

impl InputValues<'_> {
    /// Reads the values of the documents in clusters, and of all if there are scores. Returns the
    /// folder that has them: see `Deciding::values`.
    ///
    /// # Errors
    /// If an input cannot be read or has changed, or a file cannot be written.
    pub fn read(&self, deciding: &Deciding<'_>) -> Result<PathBuf> {
        let verdicts = self.places(deciding)?;
        let mut values = self.values(verdicts)?;
        let (folder, columns) = (self.scratch.join("values"), &self.reading.columns.values);
        std::fs::create_dir_all(&folder).with_context(|| format!("cannot write {}", folder.display()))?;
        let mut next = values.record()?;
        while let Some(InputValue { segment, .. }) = next {
            let file = folder.join(deciding.segments[segment as usize].file());
            let mut writer: Writer<ValueRow<'_>> = Writer::create(&file)?;
            while let Some(InputValue { doc, column, value, .. }) = next.take_if(|next| next.segment == segment) {
                writer.push(ValueRow { doc, column: &columns[column as usize], value: &value })?;
                next = values.record()?;
            }
            writer.finish()?;
        }
        Ok(folder)
    }

    /// The documents whose values are read, by file and place. The group of each is the number of
    /// its segment.
    fn places(&self, deciding: &Deciding<'_>) -> Result<Verdicts> {
        let root = Canonical::from(CanonicalOrder::Policy(Policy::Root));
        let has_scores = deciding.score.is_some();
        let all = Deciding { canonical: &root, since: None, score: None, values: None, ..deciding.clone() };
        let mut places = ExternalSort::new(&self.scratch.join("places"), self.memory / 2);
        let (files, segments) = (all.files(), (0..).zip(all.segments));
        for (number, segment) in segments.filter(|(_, segment)| segment.documents > 0) {
            all.segment(&segment.file(), &files, &[], &mut |SegmentPage { verdict, order, .. }| {
                let is_needed = has_scores || order.is_some();
                if is_needed { places.push(Verdict { group: number, ..verdict }) } else { Ok(()) }
            })?;
        }
        Verdicts::of_places(places.sorted()?)
    }

    /// The values of these documents, by segment, document and column.
    fn values(&self, verdicts: Verdicts) -> Result<Sorted<InputValue>> {
        let mut all = ExternalSort::new(&self.scratch.join("input-values"), self.memory / 2);
        let (sender, receiver) = std::sync::mpsc::sync_channel::<Vec<InputValue>>(self.threads);
        let read = {
            let sender = std::sync::Mutex::new(sender);
            move |number: usize, verdicts: &[Verdict]| {
                let sender = locked(&sender).clone();
                self.read_file(number, verdicts, &mut |values| sender.send(values).is_ok())
            }
        };
        std::thread::scope(|scope| -> Result<()> {
            let reading = scope.spawn(move || each_file("read", self.inputs, verdicts, self.threads, &read));
            for values in receiver {
                values.into_iter().try_for_each(|value| all.push(value))?;
            }
            reading.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
        })?;
        all.sorted()
    }

    /// Hands on the values of a file's documents.
    fn read_file(
        &self,
        number: usize,
        verdicts: &[Verdict],
        send: &mut dyn FnMut(Vec<InputValue>) -> bool,
    ) -> Result<()> {
        let input = &self.inputs[number];
        if verdicts.is_empty() {
            return Ok(());
        }
        let mut reader = open(input, self.reading)?;
        let mut verdicts = verdicts.iter().peekable();
        let mut found = Vec::new();
        while let Some(item) = reader.next()? {
            let Item::Page(page) = item else { continue };
            let Some(verdict) = verdicts.next_if(|verdict| verdict.offset == page.offset) else { continue };
            if !verdict.is_of(&page, input.format) {
                return Err(changed(input, page.offset));
            }
            for (column, value) in (0..).zip(page.values) {
                if let Some(value) = value {
                    found.push(InputValue { segment: verdict.group as u32, doc: verdict.doc, column, value });
                }
            }
            if found.len() > HANDED && !send(std::mem::take(&mut found)) {
                return Ok(());
            }
        }
        if let Some(verdict) = verdicts.next() {
            return Err(changed(input, verdict.offset));
        }
        send(found);
        Ok(())
    }
}
