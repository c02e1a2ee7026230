//! The texts of the corpus, as steps read them: each document by the worker that reads its file, in
//! the order of the corpus.

use anyhow::Result;
use bytemuck::{Pod, Zeroable};
use nigh_text::features::{WordReader, Words};
use serde::{Deserialize, Serialize};

use crate::readers::Body;
use crate::records::DocId;

/// The place of a document in the corpus: first by its file, and then by its place there.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Pod, Zeroable, Serialize, Deserialize)]
#[repr(transparent)]
pub struct CorpusPlace(u64);

/// The bits of the number of a document in its file.
const NUMBER_BITS: u32 = 40;

impl CorpusPlace {
    /// The document with this number in the file with this number. There are less than 2^24 files,
    /// and 2^40 documents in each.
    pub fn new(file: u64, number: u64) -> CorpusPlace {
        debug_assert!(file >> (64 - NUMBER_BITS) == 0 && number >> NUMBER_BITS == 0);
        CorpusPlace(file << NUMBER_BITS | number)
    }

    /// The number of its file.
    pub fn file(self) -> usize {
        (self.0 >> NUMBER_BITS) as usize
    }
}

/// The texts that one worker reads.
pub trait TextSource {
    /// Which worker reads each file.
    fn readers(&self) -> &[usize];

    /// Reads the documents that `reader` wants.
    ///
    /// # Errors
    /// If a file cannot be read or has changed; or an error of the reader.
    fn read(&mut self, reader: &mut dyn ReadTexts) -> Result<()>;
}

/// A step that reads texts.
pub trait ReadTexts {
    /// The number of the next document that it wants, among those of the worker, which are in the
    /// order of their places. They ascend.
    ///
    /// # Errors
    /// If what is known of documents cannot be read.
    fn next(&mut self, documents: &[(CorpusPlace, DocId)]) -> Result<Option<usize>>;

    /// Takes the text of that document.
    ///
    /// # Errors
    /// If what is found cannot be written.
    fn take(&mut self, document: (CorpusPlace, DocId), text: &mut OpenText<'_>) -> Result<()>;
}

/// The text of a document.
pub struct OpenText<'a> {
    /// Reads its words.
    pub reader: &'a mut WordReader,
    /// The content of the document.
    pub body: &'a Body,
    /// The charset that its record says.
    pub label: Option<&'a str>,
}

impl OpenText<'_> {
    /// Its words.
    pub fn words(&mut self) -> Words<'_> {
        match self.body {
            Body::Html(body) => self.reader.html(body, self.label),
            Body::Plain(body) => self.reader.plain(body, self.label),
            Body::Text(text) => self.reader.text(text),
        }
    }

    /// Where each of its words is in the text, in bytes. `None` if it has markup, or is in another
    /// charset than UTF-8.
    pub fn places(&mut self) -> Option<Vec<[u32; 2]>> {
        let places = match self.body {
            Body::Html(_) => return None,
            Body::Plain(body) => self.reader.places(std::str::from_utf8(body).ok()?),
            Body::Text(text) => self.reader.places(text),
        };
        // A text that is valid UTF-8 can be in another charset.
        (places.len() == self.words().len()).then_some(places)
    }
}

/// The number of the document at a place.
pub fn number_of(documents: &[(CorpusPlace, DocId)], place: CorpusPlace) -> usize {
    documents.partition_point(|(other, _)| *other < place)
}
