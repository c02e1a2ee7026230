//! The documents of a week that are most like a text or a page.
//!
//! ```text
//! candidates   documents that share a supershingle: by the inverted index if the store has one of the week, else by a scan of all
//! ranked       by equal features
//! ```
//!
//! Two documents share one of six supershingles of 14 features with a chance of 1 - (1 - s^14)^6,
//! for a similarity s: 0.79 at 0.9, 0.24 at 0.8. A pass over the features of all documents finds
//! less similar ones, too.

use std::cmp::Reverse;
use std::collections::BTreeSet;

use anyhow::{Result, ensure};
use serde::Serialize;

use super::sketches::{SketchComparison, compare_sketches};
use super::week::{LookedPage, LookedWeek, page_of};
use crate::features::{Fingerprinter, PageFacts, Sketch, equal_features};
use crate::records::DocId;
use crate::state::Coding;
use crate::structures::CompactSort;

/// Candidates whose sketches are in memory at a time.
const AT_ONCE: usize = 1 << 16;

/// What documents are compared with.
#[derive(Clone, Debug)]
pub struct Query {
    sketch: Sketch,
    /// The document itself, which is not among the documents found.
    own: Option<DocId>,
}

/// The documents that are most like a text or a page.
#[derive(Clone, Debug, Serialize)]
pub struct Nearest {
    /// How candidates were found.
    pub way: Way,
    /// Candidates: documents whose features were compared.
    pub candidates: u64,
    /// The most similar ones, in descending order.
    pub found: Vec<NearPage>,
}

/// How candidates are found.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Way {
    /// By the inverted index.
    Index,
    /// By a scan of all supershingles.
    Supershingles,
    /// By a scan of all features.
    Features,
}

/// A document that is like a text or a page.
#[derive(Clone, Debug, Serialize)]
pub struct NearPage {
    /// The page.
    pub page: LookedPage,
    /// What its sketch has in common.
    #[serde(flatten)]
    pub sketch: SketchComparison,
}

impl Query {
    /// A text, in the form in which the store compares texts; `None` if it has no word. `is_html`
    /// says that it is a page with markup.
    ///
    /// # Errors
    /// If this program cannot read words as the store does.
    pub fn of_text(week: &LookedWeek<'_>, bytes: &[u8], is_html: bool) -> Result<Option<Query>> {
        let mut fingerprinter = Fingerprinter::of_method(&week.method)?;
        let PageFacts { words, sketch, .. } =
            if is_html { fingerprinter.html(bytes, None, None) } else { fingerprinter.plain(bytes, None) };
        Ok((words > 0).then_some(Query { sketch, own: None }))
    }

    /// A page of the week, by its URL or id.
    ///
    /// # Errors
    /// If the week has no page of it, or one without words.
    pub fn of_page(week: &LookedWeek<'_>, name: &str) -> Result<Query> {
        let doc = week.find(name)?;
        let page = page_of(&week.pages([doc])?, doc, name, week.week.week)?;
        ensure!(page.words > 0, "{name} has no word");
        let sketches = week.sketches(&[doc])?;
        let (supershingles, features) = sketches.of(0);
        let sketch = Sketch { supershingles: supershingles.to_vec(), features: features.to_vec() };
        Ok(Query { sketch, own: Some(doc) })
    }
}

/// The `top` documents of a week that are most like `query`. `of_all` compares the features of all
/// documents.
///
/// # Errors
/// If a table or the index cannot be read.
pub fn nearest(week: &LookedWeek<'_>, query: &Query, top: usize, of_all: bool) -> Result<Nearest> {
    let (way, compared, docs) = if of_all {
        let (compared, docs) = by_features(week, query, top)?;
        (Way::Features, Some(compared), docs)
    } else {
        let (way, mut docs) = match by_index(week, query)? {
            Some(docs) => (Way::Index, docs),
            None => (Way::Supershingles, by_supershingles(week, query)?),
        };
        docs.retain(|doc| query.own != Some(*doc));
        (way, None, docs)
    };
    let (ranked, shared) = ranked(week, query, docs, top, of_all)?;
    let candidates = compared.unwrap_or(shared);
    let pages = week.pages(ranked.iter().map(|(doc, _)| *doc))?;
    let near =
        |(doc, sketch)| Ok(NearPage { page: page_of(&pages, doc, "a page of the list", week.week.week)?, sketch });
    Ok(Nearest { way, candidates, found: ranked.into_iter().map(near).collect::<Result<_>>()? })
}

/// The `top` of some documents with the most equal features; of equally similar ones, those that
/// share more supershingles come first. And how many of all share one.
fn ranked(
    week: &LookedWeek<'_>,
    query: &Query,
    mut docs: Vec<DocId>,
    top: usize,
    of_all: bool,
) -> Result<(Vec<(DocId, SketchComparison)>, u64)> {
    docs.sort_rows();
    let own = (query.sketch.supershingles.as_slice(), query.sketch.features.as_slice());
    let (mut best, mut shared): (Vec<(DocId, SketchComparison)>, u64) = (Vec::new(), 0);
    for some in docs.chunks(AT_ONCE) {
        let sketches = week.sketches_of_any(some)?;
        let compare = |(place, doc): (usize, &DocId)| (*doc, compare_sketches(own, sketches.of(place)));
        // A posting can be of an earlier vector of the document, or of one that is gone.
        for near in sketches.docs.iter().enumerate().map(compare).filter(|(_, near)| of_all || near.agreements > 0) {
            shared += u64::from(near.1.agreements > 0);
            best.push(near);
        }
        best.sort_items_by_key(|(doc, sketch)| (Reverse((sketch.features, sketch.agreements)), *doc));
        best.truncate(top);
    }
    Ok((best, shared))
}

/// Documents that share a supershingle, by the index; `None` if there is none, or not all of it.
fn by_index(week: &LookedWeek<'_>, query: &Query) -> Result<Option<Vec<DocId>>> {
    let Some((folder, runs)) = week.postings() else { return Ok(None) };
    let coding = runs.coding;
    let mut docs = BTreeSet::new();
    for (column, supershingle) in query.sketch.supershingles.iter().enumerate() {
        let hash = Coding::hash(column, *supershingle);
        let Ok(files) = runs.files(&folder, coding.partition(hash) as usize) else { return Ok(None) };
        for file in files.iter().flatten() {
            file.of(coding, &[coding.first(hash)], |posting| _ = docs.insert(coding.doc(posting)))?;
        }
    }
    Ok(Some(docs.into_iter().collect()))
}

/// As [`by_index`], by a scan of the supershingles of all documents.
fn by_supershingles(week: &LookedWeek<'_>, query: &Query) -> Result<Vec<DocId>> {
    let mut docs = Vec::new();
    let mut chunks = week.vectors()?.chunks_with_docs();
    while let Some(chunk) = chunks.next_chunk()? {
        for (doc, vector) in chunk.docs().iter().zip(chunk.words().chunks_exact(week.method.supershingles)) {
            if vector.iter().zip(&query.sketch.supershingles).any(|(a, b)| a == b) {
                docs.push(*doc);
            }
        }
    }
    Ok(docs)
}

/// The `top` documents with the most equal features, and how many were compared.
fn by_features(week: &LookedWeek<'_>, query: &Query, top: usize) -> Result<(u64, Vec<DocId>)> {
    let (mut compared, mut best) = (0, BTreeSet::new());
    let mut sketches = week.whole_sketches()?;
    while let Some(batch) = sketches.batch()? {
        for (doc, features) in batch.docs.iter().zip(batch.features.chunks_exact(week.method.features)) {
            if query.own == Some(*doc) {
                continue;
            }
            let equal = equal_features(features, &query.sketch.features);
            compared += 1;
            if equal > 0 {
                best.insert((Reverse(equal), *doc));
                if best.len() > top {
                    best.pop_last();
                }
            }
        }
    }
    Ok((compared, best.into_iter().map(|(_, doc)| doc).collect()))
}
