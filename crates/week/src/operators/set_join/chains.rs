//! Chains: the clusters by chaining of the pairs of sets, at several requirements, without a list
//! of all pairs.
//!
//! Components alone are wanted, so most pairs need not be looked at. The sets are prepared once,
//! for the weakest requirement.
//!
//! ```text
//! stars: of the sets that have a rare element, the largest with each other one;
//!     a pair is an edge at the strongest requirement that it meets
//! for each requirement, the strongest first:
//!     components = those of the edges so far
//!     all pairs of two components: edges, too
//! ```
//!
//! Sets have the names of documents, and each is at the worker that owns its document. Which pairs
//! are looked at depends on the sets alone, and not on the workers; if the nearest sets are wanted,
//! on the sets of the same cluster alone.

use std::cell::RefCell;
use std::cmp::Ordering;
use std::rc::Rc;

use anyhow::{Result, ensure};
use bytemuck::{Pod, Zeroable};
use nigh_exchange::{Context, LocalAnswers, all_to_all, blocks, lookup};

use super::compare::SetPair;
use super::distinct_sets::SetLocation;
use super::joined::DistinctSet;
use super::prepared::{PreparedSets, WantedPairs};
use super::requirement::Requirement;
use super::sets::SetSource;
use super::stage::SetJoinStage;
use crate::operators::components::{OwnForest, component_roots, edge};
use crate::operators::output::cluster_sizes;
use crate::records::{DocId, Edge};
use crate::structures::{ByKey, Ownership};

/// What is found of the own sets.
#[derive(Debug, Default)]
pub struct Chains {
    /// Edges, by requirement: pairs that meet it and no stronger one. The components of those of
    /// one requirement and of all stronger ones are the clusters at that requirement. Each edge is
    /// at one worker, which need not own its documents.
    pub edges: Vec<Vec<Edge>>,
    /// If they are wanted: for each own set of a cluster, the most similar set of which it is
    /// known; of equals, that with the smallest name. Ascending.
    pub nearest: Vec<NearestSet>,
}

/// A set with another one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Pod, Zeroable)]
#[repr(C)]
pub struct NearestSet {
    /// The set.
    pub doc: DocId,
    /// The other one.
    pub neighbour: DocId,
    /// The weight that they share.
    pub shared: u64,
    /// The sum of their sizes.
    pub sizes: u64,
}

impl NearestSet {
    /// Whether this pair is more similar than another one, or as similar and with a smaller
    /// neighbour: by what is shared of both sizes together.
    pub fn is_nearer_than(&self, other: &NearestSet) -> bool {
        // a / b > c / d, in whole numbers.
        let product = |a: u64, b: u64| u128::from(a) * u128::from(b);
        match product(self.shared, other.sizes).cmp(&product(other.shared, self.sizes)) {
            Ordering::Equal => self.neighbour < other.neighbour,
            order => order.is_gt(),
        }
    }
}

/// Finds the clusters of sets at each of `requirements`, the strongest first; they must be of one
/// kind. Every worker calls it with the sets of its own documents.
///
/// # Errors
/// [`TooManyPairs`](super::TooManyPairs), at every worker; or if sets or files cannot be read or
/// written, or a worker of this process failed.
pub fn chains<S: SetSource + Clone + 'static>(
    cx: &mut Context,
    stage: &SetJoinStage,
    owned: &Ownership,
    source: &S,
    requirements: &[Requirement],
    with_nearest: bool,
) -> Result<Chains> {
    let Some(weakest) = requirements.last() else { return Ok(Chains::default()) };
    let stage_of = |requirement: Requirement| SetJoinStage { requirement, thorough: with_nearest, ..stage.clone() };
    let prepared = PreparedSets::prepare(cx, &stage_of(*weakest), source)?;
    let best_of_set = prepared.joined.distinct.iter().map(|set| {
        // Two members of one distinct set: they are compared with its own name, which the smallest
        // of them has.
        let name = DocId::from_table(set.name as i64);
        let own = NearestSet { doc: name, neighbour: name, shared: set.weight, sizes: 2 * set.size };
        (set.members > 1 && set.is_clique).then_some(own)
    });
    let mut links = Links {
        requirements: Rc::new(requirements.to_vec()),
        edges: vec![Vec::new(); requirements.len()],
        best_of_set: best_of_set.collect(),
        with_nearest,
    };
    links.join(cx, &stage_of(*weakest), &prepared, WantedPairs::Stars)?;
    for (level, requirement) in requirements.iter().enumerate() {
        let components = links.components(cx, owned, &prepared, level)?;
        links.join(cx, &stage_of(*requirement), &prepared, WantedPairs::OtherComponents(&components))?;
    }
    let nearest = links.add_members(cx, source, &prepared)?;
    Ok(Chains { edges: links.edges, nearest })
}

/// A set at the worker of its distinct set.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Pod, Zeroable)]
#[repr(C)]
struct DistinctMember {
    distinct: u64,
    doc: DocId,
}

/// The best pair of a distinct set, at its worker.
#[derive(Clone, Copy, Pod, Zeroable)]
#[repr(C)]
struct PairedSet {
    set: u64,
    best: NearestSet,
}

/// The edges that are found, by requirement.
struct Links {
    requirements: Rc<Vec<Requirement>>,
    edges: Vec<Vec<Edge>>,
    /// By own distinct set: the best pair of its members with others, or of two of its members.
    /// Only sets of several members have one, if the nearest sets are not wanted.
    best_of_set: Vec<Option<NearestSet>>,
    with_nearest: bool,
}

/// What is noted as pairs are listed.
#[derive(Default)]
struct ListingNotes {
    forests: Vec<OwnForest>,
    /// By worker and number of a distinct set: its best pair.
    best: ByKey<u64, NearestSet>,
}

impl ListingNotes {
    fn note(&mut self, set: SetLocation, pair: NearestSet) {
        let key = u64::from(set.worker) << 32 | u64::from(set.number);
        let best = self.best.entry(key).or_insert(pair);
        if pair.is_nearer_than(best) {
            *best = pair;
        }
    }
}

/// The number of the strongest requirement that a pair meets.
fn level_of(requirements: &[Requirement], shared: [u64; 2], sizes: [u64; 2]) -> Option<usize> {
    requirements.iter().position(|requirement| requirement.holds(shared, sizes))
}

impl Links {
    /// Joins the sets, and notes each pair at the strongest requirement that it meets.
    fn join(
        &mut self,
        cx: &mut Context,
        stage: &SetJoinStage,
        prepared: &PreparedSets,
        wanted: WantedPairs<'_>,
    ) -> Result<()> {
        let index = cx.index() as u32;
        let forests = self.edges.iter().map(|_| OwnForest::default()).collect();
        let listed = Rc::new(RefCell::new(ListingNotes { forests, best: ByKey::default() }));
        let each = {
            let (listed, requirements, with_nearest) = (listed.clone(), self.requirements.clone(), self.with_nearest);
            move |pair: SetPair| {
                let SetPair { own, other, names, members, sizes, shared, .. } = pair;
                let level = level_of(&requirements, shared, sizes);
                ensure!(level.is_some(), "a pair is listed that meets no requirement");
                let listed = &mut *listed.borrow_mut();
                listed.forests[level.unwrap_or_default()].join(names[0], names[1]);
                let [doc, neighbour] = names.map(|name| DocId::from_table(name as i64));
                let pair = NearestSet { doc, neighbour, shared: shared[0].min(shared[1]), sizes: sizes[0] + sizes[1] };
                if members[0] > 1 || with_nearest {
                    listed.note(SetLocation { worker: index, number: own }, pair);
                }
                if members[1] > 1 || with_nearest {
                    listed.note(other, NearestSet { doc: neighbour, neighbour: doc, ..pair });
                }
                Ok(())
            }
        };
        prepared.join(cx, stage, wanted, each)?;
        let ListingNotes { forests, best } = listed.take();
        for (edges, forest) in self.edges.iter_mut().zip(forests) {
            edges.extend(forest.into_edges());
        }
        let mut dealer = cx.dealer();
        for (key, best) in best {
            dealer.deal(key >> 32, PairedSet { set: u64::from(key as u32), best });
        }
        let paired = all_to_all(cx, dealer)?;
        for PairedSet { set, best } in paired.iter().flat_map(|block| block.records()) {
            let of_set = &mut self.best_of_set[*set as usize];
            if of_set.is_none_or(|known| best.is_nearer_than(&known)) {
                *of_set = Some(*best);
            }
        }
        Ok(())
    }

    /// The components of distinct sets at requirement number `level`, as far as edges are known:
    /// numbers from 1 by own set, 0 for a set that is alone.
    fn components(
        &self,
        cx: &mut Context,
        owned: &Ownership,
        prepared: &PreparedSets,
        level: usize,
    ) -> Result<Vec<u32>> {
        let sets = &prepared.joined.distinct;
        let edges = self.edges[..=level].concat();
        let roots = component_roots(cx, owned, edges)?;
        // A distinct set is at the owner of its smallest document.
        let with_docs = |(number, set): (u32, &DistinctSet)| {
            (set.members > 0).then(|| (number, owned.index(DocId::from_table(set.name as i64))))
        };
        let docs_of_sets: Vec<(u32, usize)> = (0..).zip(sets).filter_map(with_docs).collect();
        let mut by_doc = vec![DocId::NONE; owned.len()];
        docs_of_sets.iter().for_each(|(_, doc)| by_doc[*doc] = roots[*doc]);
        let sizes = cluster_sizes(cx, owned, by_doc.into_iter())?;
        let several: Vec<DocId> = sizes.own_clusters().map(|(root, _)| root).collect();
        let counts = cx.concat(vec![several.len() as u64])?;
        let before: u64 = counts[..cx.index()].iter().sum();
        let mut numbers = vec![0u64; owned.len()];
        several.iter().zip(before + 1..).for_each(|(root, number)| numbers[owned.index(*root)] = number);
        let asked =
            docs_of_sets.iter().map(|(set, doc)| (*set, roots[*doc])).filter(|(_, root)| sizes.members(*root) > 1);
        let asked: Rc<Vec<(u32, DocId)>> = Rc::new(asked.collect());
        let local = LocalAnswers::own(cx, move |doc: usize| [numbers[doc]]);
        let questions = || {
            let asked = asked.clone();
            (0..asked.len()).map(move |question| asked[question].1)
        };
        let mut components = vec![0; sets.len()];
        lookup(cx, owned, questions, &local, |question, [number]| {
            // Refused later, if it does not fit.
            components[asked[question].0 as usize] = u32::try_from(number).unwrap_or(u32::MAX);
        })?;
        Ok(components)
    }

    /// Adds the edges between the members of each distinct set, and returns the nearest of each own
    /// set, if they are wanted.
    fn add_members<S: SetSource>(
        &mut self,
        cx: &mut Context,
        source: &S,
        prepared: &PreparedSets,
    ) -> Result<Vec<NearestSet>> {
        let joined = &prepared.joined;
        let mut dealer = cx.dealer();
        for (set, distinct) in joined.sets.iter().zip(&joined.distinct_of) {
            let doc = DocId::from_table(source.name(*set as usize) as i64);
            dealer.deal(distinct.worker.into(), DistinctMember { distinct: distinct.number.into(), doc });
        }
        let members = all_to_all(cx, dealer)?;
        let mut nearest = cx.dealer();
        // The smallest member, whose name the distinct set has, is near the next one.
        let mut seconds: ByKey<u64, DocId> = ByKey::default();
        let records = || members.iter().flat_map(|block| block.records());
        for DistinctMember { distinct, doc } in records() {
            if doc.to_table() as u64 != joined.distinct[*distinct as usize].name {
                let second = seconds.entry(*distinct).or_insert(*doc);
                *second = (*doc).min(*second);
            }
        }
        for DistinctMember { distinct, doc } in records() {
            let DistinctSet { name, size, .. } = joined.distinct[*distinct as usize];
            let best = self.best_of_set[*distinct as usize];
            let Some(mut best) = best else { continue };
            let own_name = doc.to_table() as u64;
            let level = level_of(&self.requirements, [best.shared; 2], [size, best.sizes - size]);
            if let Some(edges) = level.and_then(|level| self.edges.get_mut(level)).filter(|_| own_name != name) {
                edges.push(edge(name, own_name));
            }
            if self.with_nearest {
                if best.neighbour == *doc {
                    best.neighbour = seconds.get(distinct).copied().unwrap_or(best.neighbour);
                }
                nearest.deal(doc.owner(cx.peers()) as u64, NearestSet { doc: *doc, ..best });
            }
        }
        let mut nearest: Vec<NearestSet> = blocks(all_to_all(cx, nearest)?);
        nearest.sort_unstable_by_key(|nearest| nearest.doc);
        Ok(nearest)
    }
}
