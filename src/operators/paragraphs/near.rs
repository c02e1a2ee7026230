//! Near-duplicates: pages that have a share of their distinct paragraphs in common, 2 |A ∩ B| / (|A| + |B|) (Pereira 2006), at
//! several thresholds, and their clusters by chaining.
//!
//! Components alone are wanted, so most pairs need not be looked at. The sets are prepared once, for the lowest threshold.
//!
//! ```text
//! stars: of the sets that have a rare paragraph, the largest with each other one; a pair with share s is an edge at the highest threshold that
//!        s reaches
//! for each threshold, the highest first:
//!     components = those of the edges so far
//!     all pairs of two components: edges, too
//!     clusters = components of the edges so far, and of duplicates
//! ```
//!
//! Pages with equal sets go into the joins once. A duplicate is a near-duplicate, too, a false match included.

use std::cell::RefCell;
use std::rc::Rc;
use std::sync::Arc;

use anyhow::{Context, Result};
use bytemuck::{Pod, Zeroable};
use timely::worker::Worker;

use super::duplicates::Duplicates;
use super::page_sets::PageSets;
use super::source::{ParagraphPass, ParagraphSource};
use super::stage::ParagraphStage;
use crate::operators::components::{OwnForest, component_roots, edge};
use crate::operators::exchange::{Dealer, LocalAnswers, all_gather, all_to_all, lookup};
use crate::operators::output::cluster_sizes;
use crate::operators::set_join::{
    Element, JoinedRow, Place, PreparedSets, Requirement, RowPair, SetJoin, SetPass, SetSource, Share, Wanted,
};
use crate::records::{DocId, Edge};
use crate::structures::{ByKey, Ownership};

/// Finds the clusters of near-duplicates at each of `thresholds`, which descend. Returns the roots of own pages, as
/// [`Duplicates::roots`] has them, for each threshold.
///
/// # Errors
/// [`TooManyPairs`](crate::operators::set_join::TooManyPairs), at every worker; or if pages or files cannot be read or written, or a worker
/// of this process failed.
pub fn near_duplicates<S: ParagraphSource>(
    worker: &mut Worker,
    stage: &ParagraphStage,
    owned: &Ownership,
    source: &S,
    duplicates: &Duplicates,
    thresholds: &[Share],
) -> Result<Vec<Vec<DocId>>> {
    let Some(lowest) = thresholds.last() else { return Ok(Vec::new()) };
    let sets = CentreSets::new(source.clone(), owned, duplicates);
    let prepared = PreparedSets::prepare(worker, &stage.join(Requirement::Dice(*lowest)), &sets)?;
    let mut levels = Levels::new(&prepared, thresholds);
    levels.join(worker, stage, &prepared, thresholds.len() - 1, Wanted::Stars)?;
    for level in 0..thresholds.len() {
        let components = levels.components(worker, stage, owned, &prepared, level)?;
        levels.join(worker, stage, &prepared, level, Wanted::OtherComponents(&components))?;
    }
    levels.add_members(worker, stage, &sets, &prepared.joined)?;
    drop(prepared);
    let mut all: Vec<Edge> = Vec::new();
    let pages = owned.docs().zip(&duplicates.roots).filter(|(doc, first)| **first != DocId::NONE && doc != *first);
    all.extend(pages.map(|(doc, first)| Edge { doc, root: *first }));
    all.extend(&duplicates.copies);
    let mut roots = Vec::new();
    for of_level in levels.edges {
        all.extend(of_level);
        let mut of_pages = component_roots(worker, owned, all.clone(), &stage.watch)?;
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
    fn new(source: S, owned: &Ownership, duplicates: &Duplicates) -> CentreSets<S> {
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

/// A page at the worker of its row.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Pod, Zeroable)]
#[repr(C)]
struct RowMember {
    row: u64,
    doc: DocId,
}

/// A row of several sets that has a pair, and the number of the highest threshold of its pairs.
#[derive(Clone, Copy, Pod, Zeroable)]
#[repr(C)]
struct PairedRow {
    row: u32,
    level: u32,
}

/// The edges that are found, by threshold.
struct Levels {
    requirements: Rc<Vec<Requirement>>,
    /// Edges of pairs that reach a threshold, and no higher one.
    edges: Vec<Vec<Edge>>,
    /// By own row of several sets: the number of the highest threshold of its pairs, or of pairs of its own sets; `u32::MAX` for none.
    level_of_row: Vec<u32>,
}

/// What is noted as pairs are listed.
#[derive(Default)]
struct Listed {
    forests: Vec<OwnForest>,
    /// By worker and number of a row of several sets: the highest threshold of its pairs.
    levels: ByKey<u64, u32>,
}

impl Listed {
    fn note(&mut self, row: Place, level: usize) {
        let key = u64::from(row.worker) << 32 | u64::from(row.number);
        let best = self.levels.entry(key).or_insert(level as u32);
        *best = (*best).min(level as u32);
    }
}

/// The number of the highest threshold that a pair reaches.
fn level_of(requirements: &[Requirement], shared: [u64; 2], sizes: [u64; 2]) -> Option<usize> {
    requirements.iter().position(|requirement| requirement.holds(shared, sizes))
}

impl Levels {
    /// The edges within rows are those of their own sets.
    fn new(prepared: &PreparedSets, thresholds: &[Share]) -> Levels {
        let requirements: Vec<Requirement> = thresholds.iter().map(|share| Requirement::Dice(*share)).collect();
        let of_row = |row: &JoinedRow| match row.members {
            0 | 1 => u32::MAX,
            _ => level_of(&requirements, [row.weight; 2], [row.size; 2]).map_or(u32::MAX, |level| level as u32),
        };
        let level_of_row = prepared.joined.rows.iter().map(of_row).collect();
        Levels { requirements: Rc::new(requirements), edges: vec![Vec::new(); thresholds.len()], level_of_row }
    }

    /// Joins rows at threshold number `level`, and notes each pair at the highest threshold that it reaches.
    fn join(
        &mut self,
        worker: &mut Worker,
        stage: &ParagraphStage,
        prepared: &PreparedSets,
        level: usize,
        wanted: Wanted<'_>,
    ) -> Result<()> {
        let index = worker.index() as u32;
        let forests = self.edges.iter().map(|_| OwnForest::default()).collect();
        let listed = Rc::new(RefCell::new(Listed { forests, levels: ByKey::default() }));
        let each = {
            let (listed, requirements) = (listed.clone(), self.requirements.clone());
            move |pair: RowPair| {
                let RowPair { own, other, names, members, sizes, shared, .. } = pair;
                let level = level_of(&requirements, shared, sizes).context("a pair is listed below its threshold")?;
                let listed = &mut *listed.borrow_mut();
                listed.forests[level].join(names[0], names[1]);
                if members[0] > 1 {
                    listed.note(Place { worker: index, number: own }, level);
                }
                if members[1] > 1 {
                    listed.note(other, level);
                }
                Ok(())
            }
        };
        prepared.join(worker, &stage.join(self.requirements[level]), wanted, each)?;
        let Listed { forests, levels } = listed.take();
        for (edges, forest) in self.edges.iter_mut().zip(forests) {
            edges.extend(forest.into_edges());
        }
        let mut dealer = Dealer::new(worker.index(), worker.peers(), &stage.watch);
        for (place, level) in levels {
            dealer.deal(place >> 32, PairedRow { row: place as u32, level });
        }
        let paired = all_to_all(worker, dealer, &stage.watch)?;
        for PairedRow { row, level } in paired.iter().flat_map(|block| block.records()) {
            let best = &mut self.level_of_row[*row as usize];
            *best = (*level).min(*best);
        }
        Ok(())
    }

    /// The components of rows at threshold number `level`, as far as edges are known: numbers from 1 by own row, 0 for a row that is alone.
    fn components(
        &self,
        worker: &mut Worker,
        stage: &ParagraphStage,
        owned: &Ownership,
        prepared: &PreparedSets,
        level: usize,
    ) -> Result<Vec<u32>> {
        let (rows, watch) = (&prepared.joined.rows, &stage.watch);
        let edges = self.edges[..=level].concat();
        let roots = component_roots(worker, owned, edges, watch)?;
        // A row is at the owner of its smallest page.
        let with_roots = |(number, row): (u32, &JoinedRow)| {
            (row.members > 0).then(|| (number, owned.index(DocId::from_table(row.name as i64))))
        };
        let pages_of_rows: Vec<(u32, usize)> = (0..).zip(rows).filter_map(with_roots).collect();
        let mut by_page = vec![DocId::NONE; owned.len()];
        pages_of_rows.iter().for_each(|(_, page)| by_page[*page] = roots[*page]);
        let sizes = cluster_sizes(worker, owned, &by_page, watch)?;
        let several: Vec<DocId> = sizes.of_own_roots().filter(|(_, rows)| *rows > 1).map(|(root, _)| root).collect();
        let counts = all_gather(worker, vec![(worker.index(), several.len() as u64)], watch)?;
        let before: u64 = counts[..worker.index()].iter().map(|(_, count)| count).sum();
        let mut numbers = vec![0u64; owned.len()];
        several.iter().zip(before + 1..).for_each(|(root, number)| numbers[owned.index(*root)] = number);
        let asked =
            pages_of_rows.iter().map(|(row, page)| (*row, roots[*page])).filter(|(_, root)| sizes.members(*root) > 1);
        let asked: Rc<Vec<(u32, DocId)>> = Rc::new(asked.collect());
        let local = LocalAnswers::own(worker, move |page: usize| [numbers[page]]);
        let questions = || {
            let asked = asked.clone();
            (0..asked.len()).map(move |place| asked[place].1)
        };
        let mut components = vec![0; rows.len()];
        lookup(worker, owned, questions, &local, watch, |place, [number]| {
            // Refused later, if it does not fit.
            components[asked[place].0 as usize] = u32::try_from(number).unwrap_or(u32::MAX);
        })?;
        Ok(components)
    }

    /// Adds the edges between the pages of each row.
    fn add_members<S: ParagraphSource>(
        &mut self,
        worker: &mut Worker,
        stage: &ParagraphStage,
        sets: &CentreSets<S>,
        joined: &SetJoin,
    ) -> Result<()> {
        let mut dealer = Dealer::new(worker.index(), worker.peers(), &stage.watch);
        for (set, place) in joined.sets.iter().zip(&joined.row_of) {
            let doc = DocId::from_table(sets.name(*set as usize) as i64);
            dealer.deal(place.worker.into(), RowMember { row: place.number.into(), doc });
        }
        let members = all_to_all(worker, dealer, &stage.watch)?;
        for RowMember { row, doc } in members.iter().flat_map(|block| block.records()) {
            let (name, level) = (joined.rows[*row as usize].name, self.level_of_row[*row as usize]);
            let doc = doc.to_table() as u64;
            if let Some(edges) = self.edges.get_mut(level as usize).filter(|_| doc != name) {
                edges.push(edge(name, doc));
            }
        }
        Ok(())
    }
}
