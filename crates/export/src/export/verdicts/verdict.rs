//! What becomes of one record.

use serde::{Deserialize, Serialize};

use crate::export::matched::Matched;
use crate::export::near_duplicates::NearDuplicate;
use crate::export::revisits::RevisitedRecord;
use crate::export::texts::Gone;
use crate::readers::{Format, Page};
use crate::records::checksum;
use crate::structures::Sortable;
use crate::text::canonical;

/// What becomes of a record.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Verdict {
    /// Its document id.
    pub doc: i64,
    /// The number of its input, among those whose documents have verdicts.
    pub file: u32,
    /// Its place there: see [`Page::offset`](crate::readers::Page::offset).
    pub offset: u64,
    /// The checksum of its body.
    pub checksum: u128,
    /// The root of its cluster.
    pub cluster: i64,
    /// The records of the cluster.
    pub size: u64,
    /// Its rank in the cluster, from 1.
    pub rank: u64,
    /// Whether it stays.
    pub stays: bool,
    /// The mean of the numbers that the records of its cluster have in a column, if that is asked
    /// for.
    pub score: Option<f64>,
    /// How it is known, if that is asked for.
    pub names: Option<Box<RecordKey>>,
    /// The document, if its URL is not that of the record, which its revisit names.
    pub revisiting: Option<Box<RevisitingDocument>>,
    /// What goes from its text.
    pub gone: Gone,
    /// The group of its cluster, of which some stay: the hash of its host, say; 0 if the cluster is
    /// one group.
    pub group: u64,
    /// What it refers to, if it goes and is replaced by a revisit record.
    pub original: Option<Box<RevisitedRecord>>,
    /// What is said of it, if it is a near-duplicate and that is asked for.
    pub near: Option<Box<NearDuplicate>>,
    /// The items of a reference that it matches, if it matches some and that is asked for.
    pub matched: Option<Matched>,
}

impl Verdict {
    /// Whether another document's page is that of the same record.
    pub(super) fn is_of_same_record(&self, other: &Verdict) -> bool {
        (self.file, self.offset, self.checksum) == (other.file, other.offset, other.checksum)
    }

    /// Whether a page is that of the verdict: by its text and, where the verdict has names, its id
    /// or else its URL. In archives only the text counts.
    pub(in crate::export) fn is_of(&self, page: &Page, format: Format) -> bool {
        let url = |url: &Option<String>| {
            url.as_deref().map(|url| canonical(url).map_or_else(|| url.to_owned(), |url| url.as_str().to_owned()))
        };
        let has_names = self.names.as_deref().is_none_or(|names| match (&names.id, &page.id) {
            (None, None) if format.has_captures() => true,
            (None, None) => url(&names.url) == url(&page.url),
            (known, found) => known == found && (names.url.is_none() || url(&names.url) == url(&page.url)),
        });
        has_names && checksum(page.body.as_bytes()) == self.checksum
    }
}

/// How a record is known.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct RecordKey {
    /// Its id.
    pub id: Option<String>,
    /// Its URL: as the input has it, or in canonical form where it is not that of the document,
    /// whose revisit names the record.
    pub url: Option<String>,
}

/// What a revisit says of its document, whose page is the record of another URL.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RevisitingDocument {
    /// Its URL, as the revisit has it.
    pub url: String,
    /// When it was fetched, in microseconds since 1970.
    pub fetched: Option<i64>,
    /// Its media type.
    pub media_type: Option<String>,
}

impl Sortable for Verdict {
    type Key = (u32, u64, i64);

    fn key(&self) -> (u32, u64, i64) {
        (self.file, self.offset, self.doc)
    }

    fn weight(&self) -> usize {
        let names = self.names.as_ref().map_or(0, |names| names.bytes());
        size_of::<Verdict>() + names + self.revisiting.as_ref().map_or(0, |document| document.bytes())
    }
}

impl RecordKey {
    fn bytes(&self) -> usize {
        size_of::<RecordKey>() + [&self.id, &self.url].into_iter().flatten().map(String::len).sum::<usize>()
    }
}

impl RevisitingDocument {
    fn bytes(&self) -> usize {
        size_of::<RevisitingDocument>() + self.url.len() + self.media_type.as_ref().map_or(0, String::len)
    }
}
