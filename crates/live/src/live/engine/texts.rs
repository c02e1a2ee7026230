//! The texts of documents: in the batch, or where they are kept.

use std::collections::BTreeMap;

use anyhow::Result;

use super::page::Documents;
use super::parts::DocumentFeatures;
use super::tables::doc_table::{Doc, DocTable, TextPlace};
use crate::features::Fingerprinter;
use crate::live::batch::{LineContent, Record, label_of};
use crate::operators::ingest::page_shingles;
use crate::readers::Body;
use crate::records::{FeatureBits, KeyHash};

/// Of equal documents so many texts are looked for.
const TRIED: usize = 4;

/// Where texts of earlier batches and of the tables are read.
pub(in crate::live) trait Texts {
    /// The distinct shingles of texts, ascending; `None` of one that is not at hand.
    ///
    /// # Errors
    /// If the tables or the journal cannot be read.
    fn shingles(&mut self, wanted: &[TextPlace], of: &mut Fingerprinter) -> Result<Vec<Option<Vec<u64>>>>;
}

/// No text is at hand.
pub(in crate::live) struct NoTexts;

impl Texts for NoTexts {
    fn shingles(&mut self, wanted: &[TextPlace], _: &mut Fingerprinter) -> Result<Vec<Option<Vec<u64>>>> {
        Ok(vec![None; wanted.len()])
    }
}

/// The distinct shingles of a page, ascending.
pub(in crate::live) fn shingles_of(fingerprinter: &mut Fingerprinter, body: &Body) -> Vec<u64> {
    let mut shingles = page_shingles(fingerprinter, body, label_of(body));
    shingles.sort_unstable();
    shingles.dedup();
    shingles
}

/// The documents while a batch is applied.
pub(super) struct BatchTexts<'a> {
    pub(super) docs: &'a DocTable,
    pub(super) features: &'a mut DocumentFeatures,
    /// The records of the batch, and the last one of each document.
    pub(super) lines: &'a [Record],
    pub(super) last: &'a BTreeMap<KeyHash, usize>,
    pub(super) fingerprinter: &'a mut Fingerprinter,
    pub(super) texts: &'a mut dyn Texts,
}

impl BatchTexts<'_> {
    /// Where the texts of some equal documents are: those of the batch in memory, then those of the
    /// journal.
    fn places(&self, docs: &[u32]) -> (Option<&Body>, Vec<TextPlace>) {
        let mut places = Vec::new();
        for doc in docs.iter().copied().filter(|doc| self.docs.get(*doc).is_some()) {
            let of_batch = self.last.get(&self.docs.key(doc)).and_then(|at| self.lines.get(*at));
            match of_batch.map(|record| &record.body) {
                Some(Some(LineContent::Page(body))) => return (Some(body), Vec::new()),
                // Where it was before is not where it is now.
                Some(_) => {}
                None => places.extend(self.docs.get(doc).and_then(Doc::text)),
            }
        }
        places.sort_by_key(|place| matches!(place, TextPlace::Tables { .. }));
        places.truncate(TRIED);
        (None, places)
    }
}

impl Documents for BatchTexts<'_> {
    fn features(&self, doc: u32) -> &[FeatureBits] {
        self.features.of(doc)
    }

    fn fetch(&mut self, docs: &[u32]) -> Result<()> {
        self.features.fetch(docs)
    }

    fn is_in_memory(&self, equal: &[u32]) -> bool {
        self.places(equal).0.is_some()
    }

    fn shingles(&mut self, equal: &[Vec<u32>]) -> Result<Vec<Option<Vec<u64>>>> {
        let mut found = vec![None; equal.len()];
        let mut places = Vec::new();
        for (at, docs) in equal.iter().enumerate() {
            let (body, of_docs) = self.places(docs);
            let body = body.cloned();
            found[at] = body.map(|body| shingles_of(self.fingerprinter, &body));
            places.push(of_docs);
        }
        for tried in 0..TRIED {
            let open = (0..equal.len()).filter(|at| found[*at].is_none());
            let wanted: Vec<(usize, TextPlace)> = open.filter_map(|at| Some((at, *places[at].get(tried)?))).collect();
            if wanted.is_empty() {
                break;
            }
            let asked: Vec<TextPlace> = wanted.iter().map(|(_, place)| *place).collect();
            for ((at, _), shingles) in wanted.iter().zip(self.texts.shingles(&asked, self.fingerprinter)?) {
                found[*at] = shingles;
            }
        }
        Ok(found)
    }
}
