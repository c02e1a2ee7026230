//! Finds the clusters of a week at three levels: the root of every document, from all documents or
//! from the week before and what changed.
//!
//! ```text
//! roots(base) =
//!     if base and delta is predicted to be faster:  similar, identical = update(base)       changed documents
//!     else:                                         similar, identical = cluster(all)       all documents
//!     exact = of documents with the same feature vector, the smallest with the same bytes
//!     without words: at all levels the smallest document without words that has the same bytes
//! ```
//!
//! Verification takes documents without words as alone, for they have no shingles: their copies are
//! joined after it (`WeekRoots::join_wordless`).
//!
//! A delta also clusters the documents of all changed clusters again. That gives their neighbours,
//! and checks the delta: both ways must find the same roots.

use std::collections::BTreeMap;
use std::rc::Rc;
use std::sync::Arc;

use anyhow::{Result, ensure};
use nigh_exchange::Context;

use super::week::{BaseWeek, IngestedWeek};
use crate::config::Mode;
use crate::features::VectorKeys;
use crate::kernels::chosen;
use crate::operators::clustering::{Clustering, OwnClusters, clusters, exact_copies, wordless_copies};
use crate::operators::delta::{Delta, DeltaStats, ModeChoice, NextRun, PostingIndex, choose, delta, post_all};
use crate::operators::output::Agreement;
use crate::operators::scan::{VectorFiles, VectorRoots, pages, read_roots};
use crate::operators::set_join::NearestSet;
use crate::records::DocId;
use crate::state::{PostingRuns, run_folder};
use crate::structures::{DocFilter, Numbering, Ownership};
use crate::tables::{ClusterRow, SplitOffRow, Table};
use crate::watch::Stage;

/// The roots of all own documents at the three levels, by number; [`DocId::NONE`] if a URL has no
/// document this week.
pub(crate) struct WeekRoots {
    pub similar: Vec<DocId>,
    pub identical: Vec<DocId>,
    pub exact: Vec<DocId>,
    /// For each document a neighbour in its very similar cluster, by number: itself if it is alone,
    /// [`DocId::NONE`] if its cluster is not among `known`.
    pub neighbours: Vec<DocId>,
    pub known: KnownNeighbours,
    /// What verification found, if the method asks for it: then `similar` and `identical` are its
    /// clusters, and `known` those of candidates.
    pub verified: Option<VerifiedClusters>,
    /// The own documents without words, ascending, each with its checksum.
    pub wordless: Vec<(DocId, u128)>,
    pub choice: ModeChoice,
    /// The inverted index of the week's supershingles, if a delta made one.
    pub postings: Option<PostingRuns>,
}

/// What verification found besides clusters.
pub(crate) struct VerifiedClusters {
    /// The roots of the clusters of candidates, of own documents by number.
    pub candidates: VectorRoots,
    /// The clusters of candidates of which all pairs were looked at.
    pub doubtful: KnownNeighbours,
    /// The most similar neighbours of own documents, with what they share, ascending; none if
    /// similarities are estimates.
    pub nearest: Vec<NearestSet>,
    /// If candidates were compared with their neighbours: what they agree in, by number. It holds
    /// for the clusters that are not doubtful.
    pub agreements: Option<Vec<Agreement>>,
}

impl WeekRoots {
    /// Whether the neighbours in the cluster of the own document with this number were found in
    /// this run.
    pub(crate) fn knows(&self, number: usize) -> bool {
        let root = self.verified.as_ref().map_or(&self.similar, |verified| &verified.candidates.similar)[number];
        self.known.has(root)
    }

    /// Makes one cluster, at all levels, of documents without words that have the same bytes.
    ///
    /// # Errors
    /// If a worker of this process failed.
    pub(crate) fn join_wordless(&mut self, cx: &mut Context, owned: &Ownership) -> Result<()> {
        let roots = wordless_copies(cx, &self.wordless)?;
        let candidates = self.verified.as_mut().map(|verified| &mut verified.candidates);
        let [mut of_candidates, mut of_identical] =
            candidates.map_or([None, None], |roots| [Some(&mut roots.similar), Some(&mut roots.identical)]);
        for ((doc, _), root) in self.wordless.iter().zip(roots) {
            let number = owned.index(*doc);
            let levels = [&mut self.similar, &mut self.identical, &mut self.exact, &mut self.neighbours];
            let all = levels.into_iter().chain(of_candidates.as_deref_mut()).chain(of_identical.as_deref_mut());
            all.for_each(|roots| roots[number] = root);
        }
        Ok(())
    }
}

/// The clusters whose neighbours were found in this run.
#[derive(Clone)]
pub(crate) enum KnownNeighbours {
    /// All clusters.
    All,
    /// The clusters with these roots, ascending. The other clusters are unchanged since the base
    /// week, which has their evidence.
    OfRoots(Vec<DocId>),
}

impl KnownNeighbours {
    /// Whether the neighbours in the cluster with this root are known.
    pub(crate) fn has(&self, root: DocId) -> bool {
        match self {
            KnownNeighbours::All => true,
            KnownNeighbours::OfRoots(roots) => roots.binary_search(&root).is_ok(),
        }
    }
}

/// The clusters of all own vectors, from the two levels that vectors decide.
struct VectorClusters {
    roots: VectorRoots,
    neighbours: Vec<DocId>,
    known: KnownNeighbours,
    choice: ModeChoice,
    postings: Option<PostingRuns>,
}

/// The input of a delta.
struct DeltaInput<'a> {
    base: &'a BaseWeek,
    /// Own vectors of the base week.
    before: &'a VectorFiles,
    /// Own vectors of this week.
    after: &'a VectorFiles,
    /// The number of slices in which the delta is computed, so that each fits in memory.
    slices: u64,
    /// The inverted index of the base week.
    index: Option<PostingIndex>,
}

/// The result of a delta.
struct DeltaRoots {
    roots: VectorRoots,
    /// The neighbours in changed clusters.
    neighbours: Vec<DocId>,
    /// The roots of changed clusters, ascending.
    changed: Vec<DocId>,
    postings: Option<PostingRuns>,
}

/// Finds the clusters of the week at all levels, with the way of the plan: full, delta, or
/// whichever is predicted to be faster.
///
/// # Errors
/// If a table cannot be read, or a worker of this process failed.
pub(crate) fn roots(
    cx: &mut Context,
    week: &IngestedWeek<'_>,
    keys: &Rc<VectorKeys>,
    base: Option<&BaseWeek>,
) -> Result<WeekRoots> {
    let owned = week.owned;
    let VectorClusters { roots, neighbours, known, choice, postings } = vector_clusters(cx, week, keys, base)?;
    let VectorRoots { mut similar, mut identical } = roots;
    let (pages, checksums) = pages(week.unfinished, week.journal, owned)?;
    // A document without words has no vector: it is its own root here. A URL without a document has
    // no root.
    let is_wordless = |number: usize| pages[number] != DocId::NONE && similar[number] == DocId::NONE;
    let wordless = (0..pages.len()).filter(|number| is_wordless(*number));
    let wordless = wordless.map(|number| (pages[number], checksums[number])).collect();
    for roots in [&mut similar, &mut identical] {
        for (root, page) in roots.iter_mut().zip(&pages) {
            if *root == DocId::NONE || *page == DocId::NONE {
                *root = *page;
            }
        }
    }
    let mut exact = pages;
    let duplicates = exact.iter().zip(&identical).filter(|(doc, root)| doc != root);
    let duplicates: Rc<Vec<(DocId, DocId)>> = Rc::new(duplicates.map(|(doc, root)| (*doc, *root)).collect());
    let exact_roots = exact_copies(cx, owned, &duplicates, &Rc::new(checksums))?;
    for ((doc, _), root) in duplicates.iter().zip(exact_roots) {
        exact[owned.index(*doc)] = root;
    }
    Ok(WeekRoots { similar, identical, exact, neighbours, known, verified: None, wordless, choice, postings })
}

/// Chooses between full and delta, and finds the clusters of all own vectors.
fn vector_clusters(
    cx: &mut Context,
    week: &IngestedWeek<'_>,
    keys: &Rc<VectorKeys>,
    base: Option<&BaseWeek>,
) -> Result<VectorClusters> {
    let (plan, owned) = (week.plan, week.owned);
    let width = plan.method.supershingles;
    let after = week.vector_files()?;
    // Of a week that was verified in another way no cluster can be kept.
    let comparable = base.filter(|base| base.method == plan.method);
    let mut choice = ModeChoice::without_base(plan.mode);
    if let Some(base) = comparable {
        cx.enter(Stage::Changes);
        let before = base.vectors(owned, width)?;
        let index = match plan.mode {
            Mode::Full => None,
            _ => PostingIndex::open(cx, &plan.open_store().postings_folder(), base.postings.clone())?,
        };
        let (weeks, has_postings) = ((&before, &after), index.is_some());
        choice = choose(cx, plan.mode, weeks, has_postings, owned, plan.worker_memory)?;
        if choice.way == Mode::Delta {
            let input = DeltaInput { base, before: &before, after: &after, slices: choice.slices, index };
            let DeltaRoots { roots, neighbours, changed, postings } = delta_roots(cx, week, keys, input)?;
            let known = KnownNeighbours::OfRoots(changed);
            return Ok(VectorClusters { roots, neighbours, known, choice, postings });
        }
    }
    let (roots, neighbours) = full_roots(cx, week, keys, &after)?;
    Ok(VectorClusters { roots, neighbours, known: KnownNeighbours::All, choice, postings: None })
}

/// Clusters all vectors of `files`: returns the roots of own documents, and a neighbour of each, by
/// number.
fn full_roots(
    cx: &mut Context,
    week: &IngestedWeek<'_>,
    keys: &Rc<VectorKeys>,
    files: &VectorFiles,
) -> Result<(VectorRoots, Vec<DocId>)> {
    let (plan, owned) = (week.plan, week.owned);
    let docs = Arc::new(files.docs(owned)?);
    let rows = rows_by_shard(cx, week, &docs)?;
    let cx = &mut cx.with(
        Clustering::in_flight(plan.worker_memory, &rows, plan.peers(), size_of::<DocId>() as u64)?,
        &week.unfinished.spill(),
    );
    let clustering = Clustering {
        files: files.clone(),
        numbering: Rc::new(Numbering::new(&rows)),
        keys: keys.clone(),
        agreements: plan.method.agreements,
        threads: plan.workers,
    };
    let id_of_vector = {
        let docs = docs.clone();
        move |vector: usize| docs[vector].to_table() as u64
    };
    let OwnClusters { duplicates, survivors, .. } = clusters(cx, &clustering, id_of_vector)?;

    let doc = |id: u64| DocId::from_table(id as i64);
    let mut similar = vec![DocId::NONE; owned.len()];
    docs.iter().for_each(|doc| similar[owned.index(*doc)] = *doc);
    let (mut neighbours, mut identical) = (similar.clone(), similar.clone());
    for (vector, root, neighbour) in survivors.iter().chain(duplicates.iter()) {
        let number = owned.index(docs[vector as usize]);
        (similar[number], neighbours[number]) = (doc(root), doc(neighbour));
    }
    // The neighbour of a duplicate is the smallest document with the same vector.
    for (vector, _, same) in duplicates.iter() {
        identical[owned.index(docs[vector as usize])] = doc(same);
    }
    Ok((VectorRoots { similar, identical }, neighbours))
}

/// How many vectors each shard has, by shard, from the own `docs` of all workers.
fn rows_by_shard(cx: &mut Context, week: &IngestedWeek<'_>, docs: &[DocId]) -> Result<Vec<u64>> {
    let mut rows: BTreeMap<u32, u64> = (0..week.plan.method.shards).map(|shard| (shard, 0)).collect();
    let mut own_rows: BTreeMap<u32, u64> = BTreeMap::new();
    docs.iter().for_each(|doc| *own_rows.entry(doc.shard()).or_default() += 1);
    rows.extend(cx.sorted(own_rows.into_iter().collect())?);
    Ok(rows.into_values().collect())
}

/// Updates the roots of the base week to this week, and clusters the changed clusters again.
fn delta_roots(
    cx: &mut Context,
    week: &IngestedWeek<'_>,
    keys: &Rc<VectorKeys>,
    input: DeltaInput<'_>,
) -> Result<DeltaRoots> {
    let DeltaInput { base, before, after, slices, index } = input;
    let (plan, owned) = (week.plan, week.owned);
    // The clusters of candidates: where verification has split them, `split-off` has the roots from
    // before.
    let clusters = base.rows(ClusterRow::NAME, owned)?.into_iter();
    let split_off = owned.shards().filter_map(|shard| Some((base.tables.of_shard(SplitOffRow::NAME, shard)?, shard)));
    let mut roots = read_roots(clusters.chain(split_off), owned)?;
    forget_wordless(&mut roots, before, owned)?;
    // With several slices, some vectors in doubt are already this week's, which the index does not
    // have.
    let index = index.filter(|_| slices == 1);
    let rows = plan.urls(week.journal);
    // After a deletion no postings are written: nothing of a deleted page is kept, not even a
    // supershingle. Those of a week that gets more shards would not be used.
    let name = run_folder(plan.week, &week.journal.key.hash);
    let next_run = plan.reads_crawl().then(|| NextRun { made: week.unfinished.postings(), name });
    let stage = Delta {
        before,
        after,
        owned,
        keys,
        agreements: plan.method.agreements,
        slices,
        index: index.as_ref(),
        next_run: next_run.as_ref().filter(|_| index.as_ref().is_some_and(|index| index.takes_more(&rows))),
        threads: plan.workers,
    };
    let DeltaStats { changed_clusters: changed, mut postings, .. } = delta(cx, &stage, &mut roots)?;
    if let (Some(next), None) = (&next_run, &postings) {
        cx.enter(Stage::Postings);
        let memory = plan.worker_memory / 2;
        postings = Some(post_all(cx, after, &rows, next, memory, &week.unfinished.spill())?);
    }
    let neighbours = neighbours_in(cx, week, keys, after, &roots, &changed)?;
    Ok(DeltaRoots { roots, neighbours, changed, postings })
}

/// Takes away the roots of the documents of the base week that have no vector: they have no words,
/// and are joined by their bytes.
///
/// # Errors
/// If a file of `vectors` cannot be read.
fn forget_wordless(roots: &mut VectorRoots, vectors: &VectorFiles, owned: &Ownership) -> Result<()> {
    let documents = roots.similar.iter().filter(|root| **root != DocId::NONE).count() as u64;
    if documents == vectors.len() {
        return Ok(());
    }
    let mut has_vector = vec![false; owned.len()];
    vectors.docs(owned)?.into_iter().for_each(|doc| has_vector[owned.index(doc)] = true);
    for number in (0..has_vector.len()).filter(|number| !has_vector[*number]) {
        (roots.similar[number], roots.identical[number]) = (DocId::NONE, DocId::NONE);
    }
    Ok(())
}

/// Clusters the documents of the changed clusters again: returns their neighbours, by number, and
/// checks that their roots are those that the delta found.
///
/// # Errors
/// If a root differs: that is a fault of this program.
fn neighbours_in(
    cx: &mut Context,
    week: &IngestedWeek<'_>,
    keys: &Rc<VectorKeys>,
    after: &VectorFiles,
    roots: &VectorRoots,
    changed: &[DocId],
) -> Result<Vec<DocId>> {
    let (owned, kernels) = (week.owned, chosen()?);
    let filter = DocFilter::new(changed.iter(), kernels);
    let is_changed = |root: &DocId| filter.may_have(*root) && changed.binary_search(root).is_ok();
    let members = owned.docs().zip(&roots.similar).filter(|(_, root)| is_changed(root));
    let members: Rc<Vec<DocId>> = Rc::new(members.map(|(doc, _)| doc).collect());
    let is_member = {
        let (members, filter) = (members.clone(), DocFilter::new(members.iter(), kernels));
        move |doc| filter.may_have(doc) && members.binary_search(&doc).is_ok()
    };
    let files = after.only(is_member, members.len() as u64);
    let (again, neighbours) = full_roots(cx, week, keys, &files)?;
    for doc in members.iter() {
        let number = owned.index(*doc);
        ensure!(
            (again.similar[number], again.identical[number]) == (roots.similar[number], roots.identical[number]),
            "a fault in this program: document {doc} has the roots {} and {} by the delta, but {} and {} by its whole cluster; \
             `mode = \"full\"` avoids it",
            roots.similar[number],
            roots.identical[number],
            again.similar[number],
            again.identical[number]
        );
    }
    Ok(neighbours)
}
