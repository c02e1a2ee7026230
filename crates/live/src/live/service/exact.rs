//! Exact similarities: the share of shingles that two texts have in common, where both texts are at
//! hand.
//!
//! The text of a document that came since the last commit is a line of the journal. That of another
//! one is where the table `documents` says: in a file that a commit or a run has read, if that is
//! still there and has the page of that checksum. Texts on servers are not fetched.

use std::collections::BTreeMap;

use anyhow::Result;

use super::Service;
use super::journal::Journal;
use crate::config::{Method, Reading, Verify};
use crate::features::Fingerprinter;
use crate::live::batch::{LineContent, read_taken};
use crate::live::engine::{Near, TextPlace, Texts, shingles_of};
use crate::live::refusal::Refusal;
use crate::look::{LookedWeek, shingles};
use crate::plan::job_of_week;
use crate::readers::{Body, Input};
use crate::records::DocId;
use crate::state::Store;

/// The most documents that are compared with a text. Meanwhile no other request is answered.
const COMPARED: usize = 100;

/// The distinct shingles of a text, ascending.
type Shingles = Vec<u64>;

/// Compares a page with those that are near.
///
/// # Errors
/// If the tables or the journal cannot be read.
pub(super) fn compare_body(service: &mut Service, body: &Body, near: &mut [Near]) -> Result<(), Refusal> {
    let own = service.engine.shingles(body);
    let texts = texts(service, near.iter().take(COMPARED).map(|near| near.name.as_str()))?;
    note(Some(&own), &texts, near);
    Ok(())
}

/// Compares a document with those that are near.
///
/// # Errors
/// As [`compare_body`].
pub(super) fn compare_document(service: &mut Service, name: &str, near: &mut [Near]) -> Result<(), Refusal> {
    let names = near.iter().take(COMPARED).map(|near| near.name.as_str());
    let texts = texts(service, names.chain([name]))?;
    note(texts.get(name), &texts, near);
    Ok(())
}

fn note(own: Option<&Shingles>, texts: &BTreeMap<String, Shingles>, near: &mut [Near]) {
    for near in near {
        let other = texts.get(&near.name);
        near.exact = Some(own.zip(other).map(|(own, other)| similarity(own, other)));
    }
}

/// The share of shingles in both.
fn similarity(a: &Shingles, b: &Shingles) -> f64 {
    let shared = a.iter().filter(|shingle| b.binary_search(shingle).is_ok()).count();
    let either = a.len() + b.len() - shared;
    if either == 0 { 0.0 } else { shared as f64 / either as f64 }
}

/// The shingles of documents whose texts are at hand, by their names.
fn texts<'a>(
    service: &mut Service,
    names: impl Iterator<Item = &'a str>,
) -> Result<BTreeMap<String, Shingles>, Refusal> {
    let Service { engine, journal, store, .. } = service;
    let method = engine.method().clone();
    let mut texts = StoreTexts::new(store, &method, |at, bytes| journal.read_at(at, bytes));
    let found = engine.shingles_of_documents(names, &mut texts);
    found.map_err(|error| Refusal::unable(format!("{error:#}")))
}

/// The texts of a journal, and of the last week of a store.
pub(super) struct StoreTexts<'a, R> {
    store: &'a Store,
    method: &'a Method,
    /// Reads so many bytes of the journal, at a place.
    read: R,
    /// The last week, once a text of it was wanted; `None` in it if there is none.
    week: Option<Option<OpenWeek<'a>>>,
}

struct OpenWeek<'a> {
    looked: LookedWeek<'a>,
    inputs: Vec<Input>,
    reading: Reading,
}

impl<'a, R: FnMut(u64, usize) -> Result<Vec<u8>>> StoreTexts<'a, R> {
    pub(super) fn new(store: &'a Store, method: &'a Method, read: R) -> StoreTexts<'a, R> {
        StoreTexts { store, method, read, week: None }
    }

    fn of_week(&mut self, wanted: &BTreeMap<DocId, u128>) -> Result<BTreeMap<DocId, Shingles>> {
        if self.week.is_none() {
            self.week = Some(open_week(self.store)?);
        }
        match self.week.as_ref().and_then(Option::as_ref) {
            Some(OpenWeek { looked, inputs, reading }) => shingles(looked, wanted, inputs, reading),
            None => Ok(BTreeMap::new()),
        }
    }
}

fn open_week(store: &Store) -> Result<Option<OpenWeek<'_>>> {
    let Some(manifest) = store.manifest()? else { return Ok(None) };
    let Some(week) = manifest.weeks.last() else { return Ok(None) };
    let looked = LookedWeek::open(store, &manifest, week)?;
    let reading = job_of_week(store, week)?.read;
    // As for samples: no server is asked.
    let inputs = looked.inputs_at_hand(&reading, Verify::None);
    Ok(Some(OpenWeek { looked, inputs, reading }))
}

impl<R: FnMut(u64, usize) -> Result<Vec<u8>>> Texts for StoreTexts<'_, R> {
    fn shingles(&mut self, wanted: &[TextPlace], fingerprinter: &mut Fingerprinter) -> Result<Vec<Option<Shingles>>> {
        let of_tables = wanted.iter().filter_map(|place| match place {
            TextPlace::Tables { doc, checksum } => Some((DocId::from_table(*doc), *checksum)),
            TextPlace::Journal { .. } => None,
        });
        let of_tables: BTreeMap<DocId, u128> = of_tables.collect();
        let of_week = if of_tables.is_empty() { BTreeMap::new() } else { self.of_week(&of_tables)? };
        let mut found = Vec::with_capacity(wanted.len());
        for place in wanted {
            found.push(match *place {
                TextPlace::Tables { doc, .. } => of_week.get(&DocId::from_table(doc)).cloned(),
                TextPlace::Journal { at, bytes } => {
                    let line = (self.read)(at, bytes as usize)?;
                    let record = read_taken(&line, self.method)?.into_iter().next();
                    match record.and_then(|record| record.body) {
                        Some(LineContent::Page(body)) => Some(shingles_of(fingerprinter, &body)),
                        _ => None,
                    }
                }
            });
        }
        Ok(found)
    }
}

/// Reads a journal that another handle may write.
#[derive(Default)]
pub(super) struct JournalReader(Option<Journal>);

impl JournalReader {
    /// Some bytes of the journal at a path.
    ///
    /// # Errors
    /// If they cannot be read.
    pub(super) fn read_at(&mut self, path: &std::path::Path, at: u64, bytes: usize) -> Result<Vec<u8>> {
        if self.0.is_none() {
            self.0 = Some(Journal::at(path)?.0);
        }
        self.0.as_mut().map_or_else(|| Ok(Vec::new()), |journal| journal.read_at(at, bytes))
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use crate::live::batch::Limits;
    use crate::records::DocumentKey;

    /// The share of shingles in both, as the method has them: a run of so many words begins with
    /// each word, past the end with the first.
    fn twin(a: &str, b: &str) -> f64 {
        let of = |text: &str| -> BTreeSet<Vec<String>> {
            let words: Vec<String> = text.split(' ').map(str::to_owned).collect();
            let run = |from: usize| {
                let places = from..from + crate::config::Method::default().words;
                places.map(|place| words[place % words.len()].clone()).collect()
            };
            (0..words.len()).map(run).collect()
        };
        let (a, b) = (of(a), of(b));
        let shared = a.intersection(&b).count();
        shared as f64 / (a.len() + b.len() - shared) as f64
    }

    /// Whether JSON has this number. What reads it here may miss the last bit.
    fn is_share(read: &serde_json::Value, wanted: f64) -> bool {
        read.as_f64().is_some_and(|read| (read - wanted).abs() < 1e-15)
    }

    #[test]
    fn texts_of_the_journal_are_compared_word_by_word() {
        let folder = tempfile::tempdir().unwrap();
        let store = Store::at(folder.path());
        let text = |change: usize| {
            let word =
                |at: usize| if at % 50 == 7 && at / 50 < change { format!("c{change}x{at}") } else { format!("w{at}") };
            (0..300).map(word).collect::<Vec<_>>().join(" ")
        };
        let open = || Service::open(&store, Some(DocumentKey::Id), 1, Limits::default()).unwrap().0;
        let mut service = open();
        let line = |id: usize, text: &str| format!("  {{\"id\":{id},\"text\":\"{text}\"}}\n\n");
        let batch: String = (0..5).map(|id| line(id, &text(id))).collect();
        service.add(None, batch.as_bytes()).unwrap();
        // A text that was replaced, in a batch without a last line end.
        service.add(None, line(3, &text(1)).trim_end().as_bytes()).unwrap();
        for _ in 0..2 {
            let values = |lines: &[u8]| -> Vec<serde_json::Value> {
                lines
                    .split(|byte| *byte == b'\n')
                    .filter(|line| !line.is_empty())
                    .map(|line| serde_json::from_slice(line).unwrap())
                    .collect()
            };
            let body = serde_json::json!({"text": text(2)}).to_string();
            let near = values(&service.similar(body.as_bytes(), 10, true).unwrap());
            assert!(near.len() >= 4, "{near:?}");
            for near in &near {
                let id: usize = near["name"].as_str().unwrap().parse().unwrap();
                let other = text(if id == 3 { 1 } else { id });
                assert!(is_share(&near["exact"], twin(&text(2), &other)), "{near}");
            }
            let answer = values(&service.document("3", true).unwrap()).remove(0);
            for near in answer["nearest"].as_array().unwrap() {
                let id: usize = near["name"].as_str().unwrap().parse().unwrap();
                assert!(is_share(&near["exact"], twin(&text(1), &text(id))), "{near}");
            }
            let plain = values(&service.document("3", false).unwrap()).remove(0);
            assert!(plain["nearest"].as_array().unwrap().iter().all(|near| near.get("exact").is_none()));
            // And after a start.
            drop(service);
            service = open();
        }
    }
}
