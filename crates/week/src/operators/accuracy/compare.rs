//! The exact similarity of some pairs of pages, which are read again.

use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;

use anyhow::Result;
use nigh_exchange::Context;

use crate::operators::verify::{CandidateSource, gather};
use crate::records::DocId;
use crate::structures::WordSet;

/// Reads the sets of pages from every worker's `source`, and compares them at worker 0: the
/// similarity of each pair, by its documents. A pair with a page that was not read is left out; so
/// are all pairs at other workers.
///
/// # Errors
/// If sets cannot be read, a file cannot be written, or a worker of this process failed.
pub fn compare_pairs(
    cx: &mut Context,
    pairs: &BTreeSet<(DocId, DocId)>,
    source: impl CandidateSource + 'static,
) -> Result<BTreeMap<(DocId, DocId), f64>> {
    let mut sets = gather(cx, source, &Rc::from([]))?.small;
    let mut elements: BTreeMap<DocId, Vec<u64>> = BTreeMap::new();
    while let Some(set) = sets.record()? {
        elements.insert(set.doc, set.elements);
    }
    let (mut found, mut of_first) = (BTreeMap::new(), WordSet::default());
    for (a, b) in pairs {
        let (Some(first), Some(second)) = (elements.get(a), elements.get(b)) else { continue };
        let shared = shared_elements(first, second, &mut of_first);
        let union = first.len() + second.len() - shared;
        found.insert((*a, *b), if union == 0 { 0.0 } else { shared as f64 / union as f64 });
    }
    Ok(found)
}

/// How many elements two sets have both. `of_first` is used for it.
pub fn shared_elements(first: &[u64], second: &[u64], of_first: &mut WordSet) -> usize {
    of_first.reset(first.len());
    first.iter().for_each(|element| _ = of_first.insert(*element));
    of_first.count_in(second, 0).unwrap_or_default()
}
