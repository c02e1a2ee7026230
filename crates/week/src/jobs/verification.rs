//! Verifies the clusters of a week: candidates that are not similar enough are split off.
//!
//! ```text
//! wanted   clusters of candidates to verify: all; or those that changed, or have a page whose bytes changed, since the base week
//! nodes    the first of equal pages, in wanted clusters with several
//! chains   pairs of nodes that are similar enough: by shingles, read again from the crawl files, or by features
//! roots    their components; of other clusters, those of the base week
//! ```

use anyhow::{Context as _, Result};
use arrow_array::{FixedSizeBinaryArray, Int64Array};
use nigh_exchange::Context;

use super::page_places::{PagePlaces, files_again, places};
use super::roots::{KnownNeighbours, VerifiedClusters, WeekRoots};
use super::week::{BaseWeek, IngestedWeek};
use crate::config::{Similarity, Verify};
use crate::kernels::Polynomials;
use crate::operators::output::{Agreement, cluster_sizes};
use crate::operators::scan::{VectorRoots, pages, read_roots};
use crate::operators::set_join::{ExactShare, NearestSet, Requirement, SetJoinStage};
use crate::operators::verify::{
    CandidateClusters, CheckedFeatures, FeatureCheck, IfMissing, SplitClusters, check_by_features, large_clusters,
    nodes, similar_pairs, split,
};
use crate::records::DocId;
use crate::structures::CompactSort;
use crate::tables::{ClusterRow, DocumentRow, Scan, Table, field};
use crate::watch::Stage;

/// What the user can do if a crawl file is not there.
const IF_MISSING: IfMissing =
    IfMissing::Fail { otherwise: "run `nigh verify --by estimate` on the store, which needs no file" };

/// Verifies the clusters of candidates in `roots`, and puts those that are left in their place.
/// Does nothing if the method does not ask for it.
///
/// # Errors
/// If a crawl file has changed since, a table cannot be read, or a worker of this process failed.
pub(super) fn verify(
    cx: &mut Context,
    week: &IngestedWeek<'_>,
    base: Option<&BaseWeek>,
    polynomials: &Polynomials,
    roots: &mut WeekRoots,
) -> Result<()> {
    let method = &week.plan.method;
    let Some(similarity) = method.similarity.filter(|_| method.verify != Verify::None) else { return Ok(()) };
    cx.enter(Stage::Verify);
    let candidates = VectorRoots { similar: roots.similar.clone(), identical: roots.identical.clone() };
    let CheckedClusters { split, doubtful, nearest, agreements } = if method.verify == Verify::Exact {
        if let (KnownNeighbours::OfRoots(changed), Some(base)) = (&mut roots.known, base) {
            *changed = with_new_bytes(cx, week, base, &candidates.similar, std::mem::take(changed))?;
        }
        by_shingles(cx, week, similarity, polynomials, &candidates, roots)?
    } else {
        by_features(cx, week, similarity, &candidates, roots)?
    };
    let VectorRoots { mut similar, mut identical } = split;
    if let (KnownNeighbours::OfRoots(_), Some(base)) = (&roots.known, base) {
        let before = read_roots(base.rows(ClusterRow::NAME, week.owned)?.into_iter(), week.owned)?;
        // The smallest page of a cluster stays its own root; and it may be a page without words,
        // which had others in the base week.
        for (number, (doc, candidate)) in week.owned.docs().zip(&candidates.similar).enumerate() {
            if *candidate != doc && *candidate != DocId::NONE && !roots.known.has(*candidate) {
                (similar[number], identical[number]) = (before.similar[number], before.identical[number]);
            }
        }
    }
    // The neighbour of a node is its nearest one, that of another page the first of its equals.
    let firsts = if method.verify == Verify::Exact { &roots.exact } else { &roots.identical };
    for (number, candidate) in candidates.similar.iter().enumerate() {
        if doubtful.has(*candidate) {
            roots.neighbours[number] = firsts[number];
        }
    }
    for nearest in &nearest {
        roots.neighbours[week.owned.index(nearest.doc)] = nearest.neighbour;
    }
    (roots.similar, roots.identical) = (similar, identical);
    let nearest = if method.verify == Verify::Exact { nearest } else { Vec::new() };
    roots.verified = Some(VerifiedClusters { candidates, doubtful, nearest, agreements });
    Ok(())
}

/// What a check of clusters finds.
struct CheckedClusters {
    /// The clusters that are left, of own documents by number.
    split: VectorRoots,
    /// The clusters of candidates whose pairs were looked at.
    doubtful: KnownNeighbours,
    /// The most similar neighbours of nodes in these.
    nearest: Vec<NearestSet>,
    /// If candidates were compared with their neighbours: what they agree in, by number.
    agreements: Option<Vec<Agreement>>,
}

/// Checks the clusters of candidates that are known, by the shingles of their pages.
fn by_shingles(
    cx: &mut Context,
    week: &IngestedWeek<'_>,
    similarity: Similarity,
    polynomials: &Polynomials,
    candidates: &VectorRoots,
    roots: &WeekRoots,
) -> Result<CheckedClusters> {
    let (plan, owned) = (week.plan, week.owned);
    let wanted = |root: DocId| roots.known.has(root);
    let nodes = nodes(cx, owned, &candidates.similar, &roots.exact, wanted)?;
    let root = |doc| candidates.similar[owned.index(doc)];
    let PagePlaces { places, words } = places(
        week.documents()?.into_iter(),
        (plan.week, plan.method.documents, &plan.inputs_again()),
        &nodes,
        root,
        IF_MISSING,
    )?;
    let large = large_clusters(cx, places.iter().map(|place| place.root).zip(words))?;
    let files = files_again(cx, week, polynomials, places, IF_MISSING)?;
    let share = ExactShare::of_millionths(similarity.millionths()).context("a similarity is above 0")?;
    let cx = &mut cx.with(plan.worker_memory / 4, &week.unfinished.spill());
    let stage = SetJoinStage::of_components(Requirement::Resemblance(share));
    let chains = similar_pairs(cx, &stage, owned, files, large, nodes.len())?;
    let of_nodes = CandidateClusters { roots: candidates, firsts: &roots.exact, nodes: &nodes };
    let SplitClusters { roots: split, nearest } = split(cx, owned, of_nodes, wanted, chains)?;
    Ok(CheckedClusters { split, doubtful: roots.known.clone(), nearest, agreements: None })
}

/// Checks the clusters of candidates that are known, by the features of their pages.
fn by_features(
    cx: &mut Context,
    week: &IngestedWeek<'_>,
    similarity: Similarity,
    candidates: &VectorRoots,
    roots: &WeekRoots,
) -> Result<CheckedClusters> {
    let plan = week.plan;
    let cx = &mut cx.with(plan.worker_memory, &week.unfinished.spill());
    let check = FeatureCheck {
        owned: week.owned,
        candidates,
        neighbours: &roots.neighbours,
        features: plan.method.features,
        least: equal_features(similarity, plan.method.features),
        sketches: &week.sketches()?,
    };
    let checked = check_by_features(cx, &check, |root| roots.known.has(root))?;
    let CheckedFeatures { split: SplitClusters { roots: split, nearest }, doubtful, agreements } = checked;
    Ok(CheckedClusters { split, doubtful: KnownNeighbours::OfRoots(doubtful), nearest, agreements: Some(agreements) })
}

/// The least number of equal features of two documents of this similarity.
fn equal_features(similarity: Similarity, features: usize) -> u32 {
    (u64::from(similarity.millionths()) * features as u64).div_ceil(1_000_000) as u32
}

/// The roots of clusters to verify, ascending: `changed`, and those with a page whose bytes are
/// other ones than in the base week.
fn with_new_bytes(
    cx: &mut Context,
    week: &IngestedWeek<'_>,
    base: &BaseWeek,
    roots: &[DocId],
    mut changed: Vec<DocId>,
) -> Result<Vec<DocId>> {
    let owned = week.owned;
    let (_, checksums) = pages(week.unfinished, week.journal, owned)?;
    let sizes = cluster_sizes(cx, owned, roots.iter().copied())?;
    let mut own: Vec<DocId> = Vec::new();
    for (rows, shard) in base.rows(DocumentRow::NAME, owned)? {
        let path = rows.path().to_owned();
        Scan::open(rows, &["doc", "checksum"])?.for_each(|batch| {
            let docs: &Int64Array = field(batch, "doc")?;
            let before: &FixedSizeBinaryArray = field(batch, "checksum")?;
            for row in 0..batch.num_rows() {
                let doc = DocId::from_table(docs.value(row));
                owned.check(doc, shard, &path)?;
                let number = owned.index(doc);
                let is_clustered = roots[number] != DocId::NONE && sizes.members(roots[number]) > 1;
                if is_clustered && checksums[number].to_be_bytes() != before.value(row) {
                    own.push(roots[number]);
                }
            }
            Ok(())
        })?;
    }
    own.sort_rows();
    own.dedup();
    changed.extend(cx.sorted(own)?);
    changed.sort_rows();
    changed.dedup();
    Ok(changed)
}
