//! Who stays where documents leave: the smallest of each cluster, and of each class of documents with the same vector.

use anyhow::Result;
use timely::worker::Worker;

use super::delta::VectorRoots;
use super::gather::gather;
use super::keyed::Roots;
use super::phase::Owned;
use super::sieve::Sieve;
use crate::records::DocId;
use crate::watch::Watch;

/// The smallest documents that stay, by the roots that they had; of clusters that changed documents had, and only of those
/// where somebody stays.
#[derive(Debug, Default)]
pub(super) struct Heirs {
    /// Of clusters of very similar documents.
    pub(super) similar: Roots,
    /// Of those of virtually identical ones.
    pub(super) identical: Roots,
}

/// Finds who stays in the clusters that changed documents had. `changed` are own ones, ascending.
///
/// # Errors
/// Where a worker of this process failed.
pub(super) fn heirs(
    worker: &mut Worker,
    changed: &[DocId],
    roots: &VectorRoots,
    owned: &Owned,
    watch: &Watch,
) -> Result<Heirs> {
    let mut had: Vec<(bool, DocId)> = Vec::new();
    for own in changed.iter().map(|doc| owned.index(*doc)).filter(|own| roots.similar[*own] != DocId::NONE) {
        had.extend([(false, roots.similar[own]), (true, roots.identical[own])]);
    }
    had.sort_unstable();
    had.dedup();
    let had = gather(worker, had, watch)?;
    let asked =
        |identical: bool| had.iter().filter(move |had| had.0 == identical).map(|(_, root)| (*root, DocId::NONE));
    let [mut similar, mut identical]: [Roots; 2] = [asked(false).collect(), asked(true).collect()];
    // Documents with the same vector are of one cluster: whoever passes the sieve may be asked for both.
    let sieve = Sieve::new(similar.keys());
    let mut changed = changed.iter().copied().peekable();
    for (own, doc) in owned.docs().enumerate().filter(|(own, _)| sieve.may_have(roots.similar[*own])) {
        while changed.next_if(|changed| *changed < doc).is_some() {}
        if changed.peek() == Some(&doc) {
            continue;
        }
        for (heirs, root) in [(&mut similar, roots.similar[own]), (&mut identical, roots.identical[own])] {
            // Documents ascend: the first one stays the smallest.
            if let Some(heir) = heirs.get_mut(&root).filter(|heir| **heir == DocId::NONE) {
                *heir = doc;
            }
        }
    }
    let mut found: Vec<(bool, DocId, DocId)> = Vec::new();
    for (heirs, is_identical) in [(&similar, false), (&identical, true)] {
        let some = heirs.iter().filter(|(_, heir)| **heir != DocId::NONE);
        found.extend(some.map(|(root, heir)| (is_identical, *root, *heir)));
    }
    let mut heirs = Heirs::default();
    for (is_identical, root, heir) in gather(worker, found, watch)? {
        // In order: the smallest comes first.
        (if is_identical { &mut heirs.identical } else { &mut heirs.similar }).entry(root).or_insert(heir);
    }
    Ok(heirs)
}
