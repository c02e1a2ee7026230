//! Near-duplicates: pages that have a share of their distinct paragraphs in common, 2 |A ∩ B| /
//! (|A| + |B|) (Pereira 2006), at several thresholds, and their clusters by chaining.
//!
//! ```text
//! edges = those of `chains` over the sets of distinct paragraphs
//! for each threshold, the highest first:
//!     clusters = components of the edges that reach it, and of duplicates
//! ```
//!
//! Pages with equal sets go into the joins once. A duplicate is a near-duplicate, too, a false
//! match included.

use std::sync::Arc;

use anyhow::Result;
use nigh_exchange::Context;

use super::duplicates::WeekDuplicates;
use super::page_sets::PageSets;
use super::source::{ParagraphPass, ParagraphSource};
use super::stage::ParagraphStage;
use crate::operators::components::component_roots;
use crate::operators::set_join::{Element, ExactShare, Requirement, SetPass, SetSource, chains};
use crate::records::{DocId, Edge};
use crate::structures::Ownership;

/// Finds the clusters of near-duplicates at each of `thresholds`, which descend. Returns the roots
/// of own pages, as [`WeekDuplicates::roots`] has them, for each threshold.
///
/// # Errors
/// [`TooManyPairs`](crate::operators::set_join::TooManyPairs), at every worker; or if pages or
/// files cannot be read or written, or a worker of this process failed.
pub fn near_duplicates<S: ParagraphSource>(
    cx: &mut Context,
    stage: &ParagraphStage,
    owned: &Ownership,
    source: &S,
    duplicates: &WeekDuplicates,
    thresholds: &[ExactShare],
) -> Result<Vec<Vec<DocId>>> {
    let sets = CentreSets::new(source.clone(), owned, duplicates);
    let requirements: Vec<Requirement> = thresholds.iter().map(|share| Requirement::Dice(*share)).collect();
    let Some(weakest) = requirements.last() else { return Ok(Vec::new()) };
    let chains = chains(cx, &stage.join(*weakest), owned, &sets, &requirements, false)?;
    let mut all: Vec<Edge> = Vec::new();
    let pages = owned.docs().zip(&duplicates.roots).filter(|(doc, first)| **first != DocId::NONE && doc != *first);
    all.extend(pages.map(|(doc, first)| Edge { doc, root: *first }));
    all.extend(&duplicates.copies);
    let mut roots = Vec::new();
    for of_level in chains.edges {
        all.extend(of_level);
        let mut of_pages = component_roots(cx, owned, all.clone())?;
        let pages = of_pages.iter_mut().zip(&duplicates.roots);
        pages.filter(|(_, root)| **root == DocId::NONE).for_each(|(root, _)| *root = DocId::NONE);
        roots.push(of_pages);
    }
    Ok(roots)
}

/// The sets of some own pages, of which no two are equal.
#[derive(Clone)]
struct CentreSets<S> {
    source: S,
    owned: Ownership,
    /// By own number: whether the page is one of them.
    has: Arc<Vec<bool>>,
    /// The pages, in the order of the source.
    names: Arc<Vec<u64>>,
}

impl<S> CentreSets<S> {
    fn new(source: S, owned: &Ownership, duplicates: &WeekDuplicates) -> CentreSets<S> {
        let mut has: Vec<bool> = duplicates.roots.iter().map(|root| *root != DocId::NONE).collect();
        duplicates.copies.iter().for_each(|copy| has[owned.index(copy.doc)] = false);
        let centres = duplicates.order.iter().filter(|doc| has[owned.index(**doc)]);
        let names = centres.map(|doc| doc.to_table() as u64).collect();
        CentreSets { source, owned: owned.clone(), has: Arc::new(has), names: Arc::new(names) }
    }
}

impl<S: ParagraphSource> SetSource for CentreSets<S> {
    type Pass = CentrePass<S>;

    fn len(&self) -> usize {
        self.names.len()
    }

    fn name(&self, set: usize) -> u64 {
        self.names[set]
    }

    fn pass(&self) -> Result<CentrePass<S>> {
        let pass = self.source.pass()?;
        Ok(CentrePass { sets: self.clone(), pass, paragraphs: Vec::new(), distinct: PageSets::default() })
    }
}

/// A pass over the sets of some own pages.
struct CentrePass<S: ParagraphSource> {
    sets: CentreSets<S>,
    pass: S::Pass,
    paragraphs: Vec<u64>,
    distinct: PageSets,
}

impl<S: ParagraphSource> SetPass for CentrePass<S> {
    fn next(&mut self, set: &mut Vec<Element>) -> Result<bool> {
        set.clear();
        while let Some(doc) = self.pass.next(&mut self.paragraphs)? {
            if self.sets.has[self.sets.owned.index(doc)] {
                self.distinct.each(&self.paragraphs, |hash| set.push(Element { hash, weight: 1 }));
                return Ok(true);
            }
        }
        Ok(false)
    }
}
