//! Which selected grams of a document stand in another document, or twice in this one: only there
//! can passages be.

use anyhow::Result;
use bytemuck::{Pod, Zeroable};
use nigh_exchange::{Context, KeptRecords, Keyed, by_group};
use serde::{Deserialize, Serialize};

use super::fingerprints::{Fingerprints, Hashing};
use super::send::Arriving;
use super::text_source::{CorpusPlace, OpenText, ReadTexts, TextSource};
use crate::records::DocId;
use crate::structures::{Sortable, Sorted};

/// A gram of a document, whose fingerprint is selected; once for each document.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Pod, Zeroable, Serialize, Deserialize)]
#[repr(C)]
pub struct Gram {
    /// Its fingerprint.
    pub key: u64,
    /// The place of the document.
    pub place: CorpusPlace,
}

impl Keyed for Gram {
    fn key(&self) -> u64 {
        self.key
    }
}

/// In the order of documents.
impl Sortable for Gram {
    type Key = (CorpusPlace, u64);

    fn key(&self) -> (CorpusPlace, u64) {
        (self.place, self.key)
    }

    fn weight(&self) -> usize {
        size_of::<Gram>()
    }
}

/// What was read.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
pub struct ReadCounts {
    /// Documents with as many words as a passage has at least.
    pub compared: u64,
    /// Words of all documents.
    pub words: u64,
}

impl ReadCounts {
    /// Adds those of another worker.
    pub fn merge(&mut self, other: &ReadCounts) {
        self.compared += other.compared;
        self.words += other.words;
    }
}

/// Reads all texts. Returns the grams that stand more than once in the corpus, by document, at the
/// workers that read these.
///
/// # Errors
/// If a text cannot be read, a file cannot be written, or a worker of this process failed.
pub fn repeated_grams(
    cx: &mut Context,
    texts: &mut dyn TextSource,
    hashing: &Hashing,
) -> Result<(Sorted<Gram>, ReadCounts)> {
    let watch = cx.watch().clone();
    let repeated = Arriving::new(cx, "grams");
    let mut selecting = Selecting {
        hashing,
        next: 0,
        prints: Fingerprints::default(),
        keys: Vec::new(),
        all: KeptRecords::new(cx.scratch(), cx.memory() / 4),
        repeated: repeated.clone(),
        counts: ReadCounts::default(),
    };
    texts.read(&mut selecting)?;
    let Selecting { all, counts, .. } = selecting;
    let readers = texts.readers().to_vec();
    let share = move |of_key: &[Gram], answers: &mut nigh_exchange::Dealer<Gram>| {
        if of_key.len() > 1 {
            of_key.iter().for_each(|gram| answers.deal(readers[gram.place.file()] as u64, *gram));
        }
    };
    let take = {
        let repeated = repeated.clone();
        move |block: nigh_exchange::BlockOf<Gram>| {
            watch.check(block.records().iter().try_for_each(|gram| repeated.push(*gram)));
        }
    };
    let scratch = cx.scratch().to_owned();
    by_group(&mut cx.with(cx.memory() / 2, &scratch), "Grams", all, share, take)?;
    Ok((repeated.sorted()?, counts))
}

/// Selects grams of all documents.
struct Selecting<'a> {
    hashing: &'a Hashing,
    next: usize,
    prints: Fingerprints,
    keys: Vec<u64>,
    all: KeptRecords<Gram>,
    repeated: Arriving<Gram>,
    counts: ReadCounts,
}

impl ReadTexts for Selecting<'_> {
    fn next(&mut self, documents: &[(CorpusPlace, DocId)]) -> Result<Option<usize>> {
        self.next += 1;
        Ok((self.next <= documents.len()).then(|| self.next - 1))
    }

    fn take(&mut self, (place, _): (CorpusPlace, DocId), text: &mut OpenText<'_>) -> Result<()> {
        let words = text.words();
        self.counts.words += words.len() as u64;
        if !self.prints.read(&words, self.hashing) {
            return Ok(());
        }
        self.counts.compared += 1;
        let (grams, selected) = self.prints.grams(self.hashing);
        self.keys.clear();
        self.keys.extend(selected.chunk_by(|a, b| a == b).map(|of_gram| grams[of_gram[0] as usize]));
        self.keys.sort_unstable();
        for of_key in self.keys.chunk_by(|a, b| a == b) {
            let gram = Gram { key: of_key[0], place };
            self.all.push(gram)?;
            if of_key.len() > 1 {
                self.repeated.push(gram)?;
            }
        }
        Ok(())
    }
}
