//! All that a report of a week shows: totals, clusters with sample pages, weeks, studies.

use std::collections::{BTreeMap, BTreeSet};

use anyhow::{Context as _, Result};
use arrow_array::{Array as _, Float64Array, Int64Array, StringArray};
use serde::Serialize;

use super::compare::{TextComparison, texts};
use super::lists::{ClusterSample, LookedCluster, largest, samples};
use super::sketches::SketchComparison;
use super::week::{LookedPage, LookedWeek, page_of};
use crate::config::Reading;
use crate::readers::Input;
use crate::records::{DocId, Level};
use crate::structures::CompactSort;
use crate::studies::{Picture, StudySummary};
use crate::summary::{CurvePoint, Summary};
use crate::tables::{AccuracyRow, ChangeRow, SizeRow, Table as _, field};

/// Clusters of each level that are listed.
const LISTED: usize = 100;
/// Clusters of each kind that are shown with two of their pages.
const SHOWN: usize = 5;
/// Pages of each of these from which the second one is chosen.
const SAMPLED: usize = 200;

/// What a report of a week shows.
#[derive(Clone, Debug, Serialize)]
pub struct Overview {
    /// The summary of the week.
    pub summary: Summary,
    /// The summaries of all weeks until this one, oldest first.
    pub weeks: Vec<Summary>,
    /// The chance that two pages are linked directly, by their similarity.
    pub curve: Vec<CurvePoint>,
    /// How many clusters have which size, at each level.
    pub sizes: Vec<SizesOfLevel>,
    /// The share of similar pairs in one cluster, by their similarity.
    pub recall: Vec<RecallBand>,
    /// The largest clusters of each level.
    pub largest: Vec<(Level, Vec<LookedCluster>)>,
    /// Clusters with two of their pages.
    pub shown: Vec<ShownCluster>,
    /// What the studies of the store found.
    pub studies: Vec<StudySummary>,
    /// The figures of the papers of these studies.
    #[serde(skip)]
    pub pictures: Vec<StudyPicture>,
    /// The studies whose tables were made before the week was changed.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub outdated: Vec<&'static str>,
}

/// What a store has besides the tables of a week.
#[derive(Clone, Debug)]
pub struct StoreFindings {
    /// The summaries of all weeks until the one that is shown, oldest first.
    pub weeks: Vec<Summary>,
    /// What the studies found.
    pub studies: Vec<StudySummary>,
    /// The figures of the papers of these studies.
    pub pictures: Vec<StudyPicture>,
    /// The studies whose tables were made before the week was changed.
    pub outdated: Vec<&'static str>,
}

/// A figure of a study's paper.
#[derive(Clone, Debug)]
pub struct StudyPicture {
    /// The name of the study.
    pub study: &'static str,
    /// The name of the figure.
    pub name: &'static str,
    /// What it shows.
    pub title: &'static str,
    /// The figure.
    pub picture: Picture,
}

/// How many clusters of a level have which size.
#[derive(Clone, Debug, Serialize)]
pub struct SizesOfLevel {
    /// The level.
    pub level: Level,
    /// Sizes, ascending, and the clusters of each.
    pub sizes: Vec<(u64, u64)>,
}

/// How many pairs of some similarity are in one cluster.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct RecallBand {
    /// Their mean similarity.
    pub similarity: f64,
    /// The share of them in one cluster, and its 95% confidence interval.
    pub share: [f64; 3],
    /// The share that the S-curve predicts to be linked directly.
    pub expected: Option<f64>,
    /// The pairs that were compared.
    pub sampled: u64,
}

/// Why a cluster is shown.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Why {
    /// It is one of the largest.
    Largest,
    /// It is one of the loosest of the clusters that were sampled: the mean similarity of pairs of
    /// its pages.
    Loosest(f64),
    /// It gained most pages since the week before, when it had so many.
    Grown(u64),
}

/// The id of a cluster, and why it is to be shown.
type WantedCluster = (i64, Why);

/// A cluster, and two of its pages.
#[derive(Clone, Debug, Serialize)]
pub struct ShownCluster {
    /// Why it is shown.
    pub reasons: Vec<Why>,
    /// Its id.
    pub cluster_id: i64,
    /// Its pages.
    pub pages: u64,
    /// Distinct hosts of these; 0 if they have no URLs.
    pub hosts: u64,
    /// The page that stays if duplicates are removed, and the one of a sample of the others with
    /// the fewest features of it.
    pub pair: [LookedPage; 2],
    /// What their sketches have in common; none if they have no words.
    pub sketches: Option<SketchComparison>,
    /// What their texts have in common; none if the input files are not at hand, or have other
    /// pages there.
    pub texts: Option<TextComparison>,
    /// Why their texts could not be read, if that failed.
    pub unread: Option<String>,
}

/// Reads all of it. `inputs` are the crawl files at hand, read by `reading`.
///
/// Cost: three passes over some columns of the table of clusters, and the rows of the pages that
/// are shown.
///
/// # Errors
/// If a table cannot be read.
pub fn overview(
    week: &LookedWeek<'_>,
    StoreFindings { weeks, studies, pictures, outdated }: StoreFindings,
    inputs: &[Input],
    reading: &Reading,
) -> Result<Overview> {
    let summary = weeks.last().context("the week has no summary")?.clone();
    let of_levels: Vec<(Level, Vec<LookedCluster>)> =
        Level::ALL.into_iter().zip(largest(week, &Level::ALL, LISTED)?).collect();
    let mut wanted: Vec<WantedCluster> = Vec::new();
    wanted.extend(of_levels[0].1.iter().take(SHOWN).filter_map(|cluster| Some((cluster.cluster_id?, Why::Largest))));
    let (recall, loosest) = accuracy(week)?;
    wanted.extend(loosest);
    wanted.extend(grown(week)?);
    let of_curve = |step| f64::from(step) / 100.0;
    let chance = |similarity| CurvePoint { similarity, chance: week.method.shape().chance(similarity) };
    Ok(Overview {
        curve: (0..=100).map(of_curve).map(chance).collect(),
        sizes: sizes(week)?,
        recall,
        shown: shown(week, &wanted, inputs, reading)?,
        largest: of_levels,
        studies,
        pictures,
        outdated,
        weeks,
        summary,
    })
}

/// The wanted clusters, each once, in their order, with two of their pages.
fn shown(
    week: &LookedWeek<'_>,
    wanted: &[WantedCluster],
    inputs: &[Input],
    reading: &Reading,
) -> Result<Vec<ShownCluster>> {
    let samples = samples(week, &wanted.iter().map(|(id, _)| *id).collect(), SAMPLED)?;
    let docs: BTreeSet<DocId> =
        samples.values().flat_map(|sample| sample.others.iter().chain([&sample.canonical])).copied().collect();
    let sketches = week.sketches_of_any(&docs.into_iter().collect::<Vec<DocId>>())?;
    let place = |doc: &DocId| sketches.docs.binary_search(doc).ok();
    let compared = |a: &DocId, b: &DocId| Some(sketches.compare(place(a)?, place(b)?));
    let pair_of = |sample: &ClusterSample| {
        let features = |other: &&DocId| compared(&sample.canonical, other).map_or(usize::MAX, |both| both.features);
        sample.others.iter().min_by_key(features).map(|other| [sample.canonical, *other])
    };
    let pairs: BTreeMap<i64, [DocId; 2]> =
        samples.iter().filter_map(|(id, sample)| Some((*id, pair_of(sample)?))).collect();
    let pages = week.pages(pairs.values().flatten().copied())?;
    let mut shown: Vec<ShownCluster> = Vec::new();
    for (id, why) in wanted {
        if let Some(cluster) = shown.iter_mut().find(|cluster| cluster.cluster_id == *id) {
            cluster.reasons.push(*why);
            continue;
        }
        // A cluster of the changes may have lost pages, or all of them, in a deletion.
        let (Some(sample), Some(pair)) = (samples.get(id), pairs.get(id)) else { continue };
        if matches!(why, Why::Grown(before) if sample.pages <= *before) {
            continue;
        }
        let page = |side: usize| page_of(&pages, pair[side], "a page of a cluster", week.week.week);
        let of_pair = [page(0)?, page(1)?];
        let read = texts(week, &of_pair, inputs, reading);
        shown.push(ShownCluster {
            reasons: vec![*why],
            cluster_id: *id,
            pages: sample.pages,
            hosts: sample.hosts,
            sketches: compared(&pair[0], &pair[1]),
            unread: read.as_ref().err().map(|error| format!("{error:#}")),
            texts: read.ok().flatten(),
            pair: of_pair,
        });
    }
    Ok(shown)
}

/// How many clusters have each size, by level.
fn sizes(week: &LookedWeek<'_>) -> Result<Vec<SizesOfLevel>> {
    let mut sizes: BTreeMap<Level, BTreeMap<u64, u64>> = BTreeMap::new();
    week.each_row(SizeRow::NAME, &["level", "size", "clusters"], |batch| {
        let levels: &StringArray = field(batch, "level")?;
        let [of_size, clusters] = [field::<Int64Array>(batch, "size")?, field(batch, "clusters")?];
        for row in 0..batch.num_rows() {
            let level = Level::ALL.into_iter().find(|level| level.name() == levels.value(row));
            if let Some(level) = level {
                sizes.entry(level).or_default().insert(of_size.value(row) as u64, clusters.value(row) as u64);
            }
        }
        Ok(())
    })?;
    let of_level =
        |(level, sizes): (Level, BTreeMap<u64, u64>)| SizesOfLevel { level, sizes: sizes.into_iter().collect() };
    Ok(sizes.into_iter().map(of_level).collect())
}

/// The clusters that gained most pages since the week before, and how many they had.
fn grown(week: &LookedWeek<'_>) -> Result<Vec<WantedCluster>> {
    // The pages before less those after, the id, and the pages before.
    let mut grown: Vec<(i64, i64, i64)> = Vec::new();
    week.each_row(ChangeRow::NAME, &["cluster_id", "event", "before", "after"], |batch| {
        let events: &StringArray = field(batch, "event")?;
        let [ids, before, after] = ["cluster_id", "before", "after"].map(|name| field::<Int64Array>(batch, name));
        let (ids, before, after) = (ids?, before?, after?);
        let of_growth = (0..batch.num_rows()).filter(|row| events.value(*row) == "grow");
        grown.extend(of_growth.map(|row| (before.value(row) - after.value(row), ids.value(row), before.value(row))));
        grown.sort_rows();
        grown.truncate(SHOWN);
        Ok(())
    })?;
    Ok(grown.into_iter().map(|(_, id, before)| (id, Why::Grown(before as u64))).collect())
}

/// Of the table of accuracy: the recall by bands of similarity, and the loosest of the clusters
/// that were sampled.
fn accuracy(week: &LookedWeek<'_>) -> Result<(Vec<RecallBand>, Vec<WantedCluster>)> {
    let mut bands = Vec::new();
    let mut clusters: Vec<(f64, DocId)> = Vec::new();
    let columns = ["kind", "cluster", "similarity", "share", "share_low", "share_high", "expected", "sampled"];
    week.each_row(AccuracyRow::NAME, &columns, |batch| {
        let kinds: &StringArray = field(batch, "kind")?;
        let double = |name| field::<Float64Array>(batch, name);
        let (similarity, expected) = (double("similarity")?, double("expected")?);
        let share = [double("share")?, double("share_low")?, double("share_high")?];
        let [roots, sampled] = [field::<Int64Array>(batch, "cluster")?, field(batch, "sampled")?];
        for row in (0..batch.num_rows()).filter(|row| sampled.value(*row) > 0) {
            match kinds.value(row) {
                "recall" => bands.push(RecallBand {
                    similarity: similarity.value(row),
                    share: share.map(|share| share.value(row)),
                    expected: expected.is_valid(row).then(|| expected.value(row)),
                    sampled: sampled.value(row) as u64,
                }),
                "clusters" => clusters.push((similarity.value(row), DocId::from_table(roots.value(row)))),
                _ => {}
            }
        }
        Ok(())
    })?;
    clusters.sort_items_by(|a, b| a.0.total_cmp(&b.0).then(a.1.cmp(&b.1)));
    clusters.truncate(SHOWN);
    let pages = week.pages(clusters.iter().map(|(_, root)| *root))?;
    let of_id = |(similarity, root): (f64, DocId)| Some((pages.get(&root)?.cluster_id?, Why::Loosest(similarity)));
    Ok((bands, clusters.into_iter().filter_map(of_id).collect()))
}
