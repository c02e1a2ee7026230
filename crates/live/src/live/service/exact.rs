//! Exact similarities: the share of shingles that two texts have in common, where both texts are at
//! hand.
//!
//! The text of a document that came since the last commit is a line of the journal. That of another
//! one is where the table `documents` says: in a file that a commit or a run has read, if that is
//! still there and has the page of that checksum. Texts on servers are not fetched.

use std::collections::{BTreeMap, BTreeSet};

use super::Service;
use crate::config::Verify;
use crate::live::batch::{Content, Limits, read_batch};
use crate::live::engine::{Near, TextPlace};
use crate::live::refusal::Refusal;
use crate::look::{LookedWeek, shingles};
use crate::plan::{inputs_at_hand, job_of_week};
use crate::readers::Body;
use crate::records::DocId;

/// The most documents that are compared with a text. Meanwhile no other request is answered.
const COMPARED: usize = 100;

/// The shingles of a text.
type Shingles = BTreeSet<u64>;

/// Compares a page with those that are near.
///
/// # Errors
/// If a text is there, and cannot be read.
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
    let shared = a.intersection(b).count();
    let either = a.len() + b.len() - shared;
    if either == 0 { 0.0 } else { shared as f64 / either as f64 }
}

/// The shingles of documents whose texts are at hand, by their names.
fn texts<'a>(
    service: &mut Service,
    names: impl Iterator<Item = &'a str>,
) -> Result<BTreeMap<String, Shingles>, Refusal> {
    let mut found = BTreeMap::new();
    let mut of_tables = BTreeMap::new();
    for name in names {
        match service.engine.text_of(name) {
            Some(TextPlace::Journal { at, bytes }) => {
                let unable = |error: anyhow::Error| Refusal::unable(format!("{error:#}"));
                let line = service.journal.read_at(at, bytes as usize).map_err(unable)?;
                let records = read_batch(&line, service.engine.method(), &Limits::none())?;
                if let Some(Content::Page(body)) = records.into_iter().next().and_then(|record| record.body) {
                    found.insert(name.to_owned(), service.engine.shingles(&body));
                }
            }
            Some(TextPlace::Tables { doc, checksum }) => {
                of_tables.insert(DocId::from_table(doc), (name, checksum));
            }
            None => {}
        }
    }
    if !of_tables.is_empty() {
        let wanted = of_tables.iter().map(|(doc, (_, checksum))| (*doc, *checksum)).collect();
        let read = of_week(service, &wanted).map_err(|error| Refusal::unable(format!("{error:#}")))?;
        for (doc, shingles) in read {
            if let Some((name, _)) = of_tables.get(&doc) {
                found.insert((*name).to_owned(), shingles);
            }
        }
    }
    Ok(found)
}

/// The shingles of documents of the tables.
fn of_week(service: &Service, wanted: &BTreeMap<DocId, u128>) -> anyhow::Result<BTreeMap<DocId, Shingles>> {
    let Some(manifest) = service.store.manifest()? else { return Ok(BTreeMap::new()) };
    let Some(week) = manifest.weeks.last() else { return Ok(BTreeMap::new()) };
    let looked = LookedWeek::open(&service.store, &manifest, week)?;
    let reading = job_of_week(&service.store, week)?.read;
    // As for samples: no server is asked.
    let inputs = inputs_at_hand(looked.input_names(), &reading, Verify::None, true);
    shingles(&looked, wanted, &inputs, &reading)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::records::DocumentKey;
    use crate::state::Store;

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
