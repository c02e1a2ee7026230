//! Near-duplicates: pages that have a share of their distinct paragraphs in common, 2 |A ∩ B| / (|A| + |B|) (Pereira 2006, definition 4), at
//! several thresholds, and their clusters by chaining.
//!
//! One set join at the lowest threshold finds all pairs, each with its exact share, so it serves the others, too. Only of two pages of one
//! *family* the share is not known: for these there is a join at the next threshold, of the pages in families alone; and so on.
//!
//! ```text
//! for each threshold, the lowest first:
//!     join the sets; of a listed pair with share s: an edge at the highest threshold that s reaches
//!     rows of equal sets, and families: edges, too
//!     sets = those in families
//! for each threshold, the highest first:
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

use super::distinct::Distinct;
use super::duplicates::Duplicates;
use super::source::{ParagraphPass, ParagraphSource};
use super::stage::ParagraphStage;
use crate::operators::components::{OwnForest, component_roots};
use crate::operators::exchange::{Dealer, all_gather, all_to_all, any};
use crate::operators::set_join::{Element, Place, Requirement, RowPair, SetJoin, SetPass, SetSource, Share, set_join};
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
    let watch = &stage.watch;
    let mut sets = CentreSets::new(source.clone(), owned, duplicates);
    let mut edges: Vec<Vec<Edge>> = vec![Vec::new(); thresholds.len()];
    for level in (0..thresholds.len()).rev() {
        let joined = LevelJoin::run(worker, stage, &sets, thresholds, level)?;
        for (edges, forest) in edges.iter_mut().zip(joined.forests) {
            edges.extend(forest.into_edges());
        }
        if !any(worker, !joined.of_families.is_empty(), watch)? {
            break;
        }
        sets = sets.only(joined.of_families);
    }
    let mut all: Vec<Edge> = Vec::new();
    for firsts in [&duplicates.roots, &duplicates.centres] {
        let pages = owned.docs().zip(firsts).filter(|(doc, first)| **first != DocId::NONE && doc != *first);
        all.extend(pages.map(|(doc, first)| Edge { doc, root: *first }));
    }
    let mut roots = Vec::new();
    for of_level in edges {
        all.extend(of_level);
        let mut of_pages = component_roots(worker, owned, all.clone(), watch)?;
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
        let is_centre = |doc: &&DocId| duplicates.centres[owned.index(**doc)] == **doc;
        let names: Vec<u64> = duplicates.order.iter().filter(is_centre).map(|doc| doc.to_table() as u64).collect();
        let mut has = vec![false; owned.len()];
        names.iter().for_each(|name| has[owned.index(DocId::from_table(*name as i64))] = true);
        CentreSets { source, owned: owned.clone(), has: Arc::new(has), names: Arc::new(names) }
    }

    /// Those of some pages only.
    fn only(&self, pages: Vec<DocId>) -> CentreSets<S>
    where
        S: Clone,
    {
        let mut has = vec![false; self.owned.len()];
        pages.into_iter().for_each(|doc| has[self.owned.index(doc)] = true);
        let is_in = |name: &&u64| has[self.owned.index(DocId::from_table(**name as i64))];
        let names = self.names.iter().filter(is_in).copied().collect();
        CentreSets {
            source: self.source.clone(),
            owned: self.owned.clone(),
            has: Arc::new(has),
            names: Arc::new(names),
        }
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
        Ok(CentrePass { sets: self.clone(), pass, paragraphs: Vec::new(), distinct: Distinct::default() })
    }
}

/// A pass over the sets of some own pages.
struct CentrePass<S: ParagraphSource> {
    sets: CentreSets<S>,
    pass: S::Pass,
    paragraphs: Vec<u64>,
    distinct: Distinct,
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

/// What the join at one threshold found.
struct LevelJoin {
    /// By threshold: edges of pairs that reach it, and no higher one.
    forests: Vec<OwnForest>,
    /// The own pages in families.
    of_families: Vec<DocId>,
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

impl LevelJoin {
    fn run<S: ParagraphSource>(
        worker: &mut Worker,
        stage: &ParagraphStage,
        sets: &CentreSets<S>,
        thresholds: &[Share],
        level: usize,
    ) -> Result<LevelJoin> {
        let (index, watch) = (worker.index(), &stage.watch);
        let requirements: Rc<Vec<Requirement>> =
            Rc::new(thresholds[..=level].iter().map(|share| Requirement::Dice(*share)).collect());
        let level_of = {
            let requirements = requirements.clone();
            move |shared, sizes| requirements.iter().position(|requirement| requirement.holds(shared, sizes))
        };
        let forests = thresholds.iter().map(|_| OwnForest::default()).collect();
        let listed = Rc::new(RefCell::new(Listed { forests, levels: ByKey::default() }));
        let each = {
            let (listed, level_of) = (listed.clone(), level_of.clone());
            move |pair: RowPair| {
                let RowPair { own, other, names, members, sizes, shared, .. } = pair;
                let level = level_of(shared, sizes).context("the join lists a pair below its threshold")?;
                let listed = &mut *listed.borrow_mut();
                listed.forests[level].join(names[0], names[1]);
                if members[0] > 1 {
                    listed.note(Place { worker: index as u32, number: own }, level);
                }
                if members[1] > 1 {
                    listed.note(other, level);
                }
                Ok(())
            }
        };
        let joined = set_join(worker, &stage.join(requirements[level]), sets, each)?;
        let Listed { forests, levels } = listed.take();
        let mut dealer = Dealer::new(index, worker.peers(), watch);
        for (place, level) in levels {
            dealer.deal(place >> 32, PairedRow { row: place as u32, level });
        }
        let mut level_of_row = vec![u32::MAX; joined.rows.len()];
        for PairedRow { row, level } in all_to_all(worker, dealer, watch)?.iter().flat_map(|block| block.records()) {
            let best = &mut level_of_row[*row as usize];
            *best = (*level).min(*best);
        }
        for (row, best) in joined.rows.iter().zip(&mut level_of_row).filter(|(row, _)| row.members > 1) {
            let of_row = level_of([row.weight; 2], [row.size; 2]);
            let of_family = row.family.map(|_| level);
            *best = of_row.into_iter().chain(of_family).map(|level| level as u32).fold(*best, u32::min);
        }
        let mut found = LevelJoin { forests, of_families: Vec::new() };
        found.add_families(worker, stage, &joined, level)?;
        found.add_members(worker, stage, sets, &joined, &level_of_row)?;
        Ok(found)
    }

    /// Adds the edges between the rows of each family.
    fn add_families(
        &mut self,
        worker: &mut Worker,
        stage: &ParagraphStage,
        joined: &SetJoin,
        level: usize,
    ) -> Result<()> {
        let mut smallest = vec![u64::MAX; joined.families.len()];
        let rows = || joined.rows.iter().filter_map(|row| Some((row.family? as usize, row.name)));
        rows().for_each(|(family, name)| smallest[family] = name.min(smallest[family]));
        let own = smallest.iter().copied().enumerate().filter(|(_, name)| *name < u64::MAX).collect();
        for (family, name) in all_gather(worker, own, &stage.watch)? {
            smallest[family] = name.min(smallest[family]);
        }
        rows().for_each(|(family, name)| self.forests[level].join(name, smallest[family]));
        Ok(())
    }

    /// Adds the edges of the pages of each row, and finds the own pages in families.
    fn add_members<S: ParagraphSource>(
        &mut self,
        worker: &mut Worker,
        stage: &ParagraphStage,
        sets: &CentreSets<S>,
        joined: &SetJoin,
        level_of_row: &[u32],
    ) -> Result<()> {
        let (index, peers, watch) = (worker.index(), worker.peers(), &stage.watch);
        let mut dealer = Dealer::new(index, peers, watch);
        for (set, place) in joined.sets.iter().zip(&joined.row_of) {
            let doc = DocId::from_table(sets.name(*set as usize) as i64);
            dealer.deal(place.worker.into(), RowMember { row: place.number.into(), doc });
        }
        let members = all_to_all(worker, dealer, watch)?;
        let mut dealer = Dealer::new(index, peers, watch);
        for RowMember { row, doc } in members.iter().flat_map(|block| block.records()) {
            let (row, level) = (&joined.rows[*row as usize], level_of_row[*row as usize]);
            if let Some(forest) = self.forests.get_mut(level as usize) {
                forest.join(row.name, doc.to_table() as u64);
            }
            if row.family.is_some() {
                dealer.deal(doc.owner(peers) as u64, *doc);
            }
        }
        drop(members);
        let of_families = all_to_all(worker, dealer, watch)?;
        self.of_families = of_families.iter().flat_map(|block| block.records()).copied().collect();
        Ok(())
    }
}
