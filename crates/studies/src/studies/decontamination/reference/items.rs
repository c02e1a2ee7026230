//! The items of a reference: its records, or the columns of these, with their words. They come in
//! slices that fit into memory.
//!
//! Items with the same words are compared once: the first one stands for all.

use anyhow::{Context as _, Result, bail};
use serde::{Deserialize, Serialize};
use xxhash_rust::xxh3::xxh3_128;

use super::records::{NextRecord, RecordText, ReferenceRecord, ReferenceRecords};
use crate::features::WordReader;
use crate::structures::{ByKey, Sortable};
use crate::studies::ReferenceFile;
use crate::studies::decontamination::job::{Decontamination, ItemOf};
use crate::studies::decontamination::steps::{Measures, Slice};
use crate::studies::passages::OpenText;

/// How many words of an item are shown.
const BEGINNING: usize = 12;

/// Ends a word, and a text behind its last word: no word has it, and none is empty.
const END: u8 = 0;

/// An item of a reference.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ReferenceItem {
    /// Its number in the reference, from 0.
    pub number: u64,
    /// The number of its file.
    pub file: u32,
    /// The number of its record there, from 0.
    pub record: u64,
    /// The id of the record, if it has one.
    pub id: Option<String>,
    /// The number of its column, if an item is one.
    pub column: Option<u32>,
    /// Its words.
    pub words: u64,
    /// Its grams for containment, each once; 0 if it is not compared so.
    pub grams: u32,
    /// The number of the first item with its words, if that is another one.
    pub first: Option<u64>,
    /// Whether it, or the first one with its words, is compared with documents.
    pub is_compared: bool,
    /// Its first words.
    pub begins: String,
}

impl Sortable for ReferenceItem {
    type Key = u64;

    fn key(&self) -> u64 {
        self.number
    }

    fn weight(&self) -> usize {
        size_of::<ReferenceItem>() + self.begins.len() + self.id.as_ref().map_or(0, String::len)
    }
}

/// What a reference has.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ItemCounts {
    /// Items.
    pub items: u64,
    /// Those that are compared with documents.
    pub compared: u64,
    /// Those with the words of an earlier one, which is compared in their place.
    pub same: u64,
    /// Those with too few words to be compared.
    pub short: u64,
    /// Those without words.
    pub empty: u64,
    /// Records that cannot be read.
    pub bad: u64,
}

/// Reads the items of a reference.
pub struct ReferenceItems<'a> {
    records: ReferenceRecords<'a>,
    reader: WordReader,
    item: ItemOf,
    measures: Measures,
    /// The words of a text that is compared, for the message if none is.
    shortest: u32,
    /// The items by their words: a hash of 128 bits, the number, and the grams if it is compared.
    known: ByKey<u128, (u64, Option<u32>)>,
    /// What was read so far.
    pub counts: ItemCounts,
    has_ended: bool,
    words: Vec<u8>,
}

impl<'a> ReferenceItems<'a> {
    /// The items of these files; `reader` reads their words.
    pub fn new(
        files: &'a [ReferenceFile],
        job: &Decontamination,
        measures: Measures,
        reader: WordReader,
    ) -> ReferenceItems<'a> {
        ReferenceItems {
            records: ReferenceRecords::new(files, job.columns(), job.id.clone(), job.max_unread_share),
            reader,
            item: job.item,
            measures,
            shortest: job.shortest(),
            known: ByKey::default(),
            counts: ItemCounts::default(),
            has_ended: false,
            words: Vec::new(),
        }
    }

    /// The next items, of which a slice takes about `memory` bytes; `take` is called with each
    /// item. `None` if there are no more.
    ///
    /// # Errors
    /// If a file cannot be read; if no file has one of the columns; or, at the end, if the
    /// reference has no item that can be compared.
    pub fn next_slice(
        &mut self,
        memory: u64,
        take: &mut dyn FnMut(ReferenceItem) -> Result<()>,
    ) -> Result<Option<Slice>> {
        if self.has_ended {
            return Ok(None);
        }
        let mut slice = Slice::new(&self.measures);
        // At least one item, however little memory there is.
        while slice.items.is_empty() || slice.memory() < memory {
            match self.records.next()? {
                Some(NextRecord::Record(record)) => self.add_record(record, &mut slice, take)?,
                Some(NextRecord::Bad) => self.counts.bad += 1,
                None => {
                    self.has_ended = true;
                    self.check()?;
                    break;
                }
            }
        }
        slice.finish();
        Ok(Some(slice))
    }

    /// Checks, at the end, that something can be compared.
    fn check(&self) -> Result<()> {
        let ItemCounts { items, compared, short, empty, bad, .. } = self.counts;
        if compared > 0 {
            return Ok(());
        }
        let few = match self.measures.containment {
            Some(_) => {
                format!("fewer than {} words (`shortest`, which is `words` if the job does not say it)", self.shortest)
            }
            None => "too few words".to_owned(),
        };
        bail!(
            "the reference has nothing to compare with: of its {items} items {empty} have no words and {short} have {few}; {bad} \
             records cannot be read"
        )
    }

    fn add_record(
        &mut self,
        record: ReferenceRecord,
        slice: &mut Slice,
        take: &mut dyn FnMut(ReferenceItem) -> Result<()>,
    ) -> Result<()> {
        match self.item {
            ItemOf::Record => self.add(&record, &record.texts, None, slice, take),
            ItemOf::Column if record.texts.is_empty() => self.add(&record, &[], None, slice, take),
            ItemOf::Column => record.texts.iter().try_for_each(|text| {
                let column = Some(text.column as u32);
                self.add(&record, std::slice::from_ref(text), column, slice, take)
            }),
        }
    }

    /// Adds an item of these texts.
    fn add(
        &mut self,
        record: &ReferenceRecord,
        texts: &[RecordText],
        column: Option<u32>,
        slice: &mut Slice,
        take: &mut dyn FnMut(ReferenceItem) -> Result<()>,
    ) -> Result<()> {
        let (mut count, mut begins) = (0, String::new());
        self.words.clear();
        for RecordText { body, label, .. } in texts {
            for word in (OpenText { reader: &mut self.reader, body, label: label.as_deref() }).words().iter() {
                if count < BEGINNING as u64 {
                    begins.push_str(if count > 0 { " " } else { "" });
                    begins.push_str(&String::from_utf8_lossy(word));
                }
                count += 1;
                self.words.extend_from_slice(word);
                self.words.push(END);
            }
            self.words.push(END);
        }
        let number = self.counts.items;
        self.counts.items += 1;
        let mut item = ReferenceItem {
            number,
            file: u32::try_from(record.file).context("there are less than 2^32 files")?,
            record: record.number,
            id: record.id.clone(),
            column,
            words: count,
            grams: 0,
            first: None,
            is_compared: false,
            begins,
        };
        if count == 0 {
            self.counts.empty += 1;
            return take(item);
        }
        let hash = xxh3_128(&self.words);
        if let Some((first, grams)) = self.known.get(&hash).copied() {
            (item.first, item.is_compared, item.grams) = (Some(first), grams.is_some(), grams.unwrap_or(0));
            *(if grams.is_some() { &mut self.counts.same } else { &mut self.counts.short }) += 1;
            return take(item);
        }
        slice.begin();
        let words: Vec<&[u8]> = self.words.split(|byte| *byte == END).collect();
        for text in words.split(|word| word.is_empty()).filter(|text| !text.is_empty()) {
            slice.add_text(text.iter().copied());
        }
        let (grams, is_compared) = slice.end(number);
        (item.grams, item.is_compared) = (grams, is_compared);
        *(if is_compared { &mut self.counts.compared } else { &mut self.counts.short }) += 1;
        self.known.insert(hash, (number, is_compared.then_some(grams)));
        take(item)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::{Method, Reading};
    use crate::readers;
    use crate::studies::decontamination::steps::GramRule;

    #[test]
    fn items_with_the_same_words_are_compared_once_over_all_slices() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("reference.jsonl");
        let texts = ["a b c d", "A, b: c d!", "a b", "", "a b c e", "a b c d", "A b", "x y z"];
        let lines: String = texts.iter().map(|text| serde_json::json!({ "text": text }).to_string() + "\n").collect();
        std::fs::write(&path, lines + "[]\n").unwrap();
        let reading = Reading::default();
        let inputs = readers::list(&[path.to_str().unwrap().to_owned()], &reading).unwrap();
        let file = |input| ReferenceFile { input, reading: reading.clone(), of_store: None };
        let files: Vec<ReferenceFile> = inputs.into_iter().map(file).collect();
        let measures =
            Measures { containment: Some(GramRule { words: 3, shortest: 3, share: 1.0 }), ..Measures::default() };
        for memory in [0, 1 << 20] {
            let job = Decontamination::default();
            let mut method = Method::default();
            job.set_words(&mut method).unwrap();
            let reader = WordReader::of_method(&method).unwrap();
            let mut reference = ReferenceItems::new(&files, &job, measures, reader);
            let (mut all, mut slices) = (Vec::new(), Vec::new());
            let mut take = |item| {
                all.push(item);
                Ok(())
            };
            while let Some(slice) = reference.next_slice(memory, &mut take).unwrap() {
                slices.extend(slice.items);
            }
            assert_eq!(slices.iter().filter(|number| [0, 4, 7].contains(*number)).count(), 3, "{slices:?}");
            assert!(slices.is_sorted() && !slices.contains(&1) && !slices.contains(&5), "{slices:?}");
            let firsts: Vec<Option<u64>> = all.iter().map(|item| item.first).collect();
            assert_eq!(firsts, [None, Some(0), None, None, None, Some(0), Some(2), None]);
            let grams: Vec<(u32, bool)> = all.iter().map(|item| (item.grams, item.is_compared)).collect();
            let (two, none) = ((2, true), (0, false));
            assert_eq!(grams, [two, two, none, none, two, two, none, (1, true)]);
            let counts = ItemCounts { items: 8, compared: 3, same: 2, short: 2, empty: 1, bad: 1 };
            assert_eq!(reference.counts, counts);
            assert_eq!(all[1].begins, "a b c d");
        }
    }
}
