//! All that a report of a week shows: totals, clusters with sample pages, weeks, studies.

use std::collections::BTreeMap;

use anyhow::Result;
use arrow_array::{Array as _, Float64Array, Int32Array, Int64Array, RecordBatch, StringArray};
use serde::Serialize;

use super::compare::{Comparison, compare_docs};
use super::lists::{LookedCluster, largest, pages_of_cluster};
use super::week::LookedWeek;
use crate::config::Reading;
use crate::readers::Input;
use crate::records::{DocId, Level};
use crate::state::Results;
use crate::summary::{CurvePoint, StudySummary, Summary};
use crate::tables::{AccuracyRow, AmountRow, ChangeRow, RetentionRow, RowGroups, Scan, SizeRow, Table as _, field};

/// Clusters of each level that are listed.
const LISTED: usize = 100;
/// Clusters of each kind that are shown with two of their pages.
const SHOWN: usize = 5;

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
    /// What the study of evolution found week by week, if the store has it.
    pub evolution: Option<EvolutionCurves>,
}

/// What a store has besides the tables of a week.
#[derive(Clone, Debug)]
pub struct StoreFindings {
    /// The summaries of all weeks until the one that is shown, oldest first.
    pub weeks: Vec<Summary>,
    /// What the studies found.
    pub studies: Vec<StudySummary>,
    /// What the study of evolution found week by week, if the store has it.
    pub evolution: Option<EvolutionCurves>,
}

/// How clusters keep together and how much pages change, of the tables `retention` and `amounts` (Fetterly 2004, section 3).
#[derive(Clone, Debug, Serialize)]
pub struct EvolutionCurves {
    /// The classes of cluster sizes that have pages, from the smallest.
    pub classes: Vec<ClassCurve>,
    /// Pairs of successive downloads by change amount: 0 to the number of features, and one more for equal pages.
    pub amounts: Vec<u64>,
}

/// The retention of a class of cluster sizes.
#[derive(Clone, Debug, Serialize)]
pub struct ClassCurve {
    /// The class.
    pub class: String,
    /// The mean retention of its pages in each week, from the first.
    pub retention: Vec<f64>,
}

impl EvolutionCurves {
    /// Reads them from what the job has made.
    ///
    /// # Errors
    /// If a table cannot be read.
    pub fn read(results: &Results) -> Result<EvolutionCurves> {
        let each_row = |table, columns: &[&str], each: &mut dyn FnMut(&RecordBatch) -> Result<()>| {
            let files = results.committed_files(table)?;
            files.into_iter().try_for_each(|file| Scan::open(RowGroups::file(file), columns)?.for_each(&mut *each))
        };
        let mut classes: Vec<ClassCurve> = Vec::new();
        each_row(RetentionRow::NAME, &["class", "documents", "retention"], &mut |batch| {
            let names: &StringArray = field(batch, "class")?;
            let documents: &Int64Array = field(batch, "documents")?;
            let retention: &Float64Array = field(batch, "retention")?;
            for row in (0..batch.num_rows()).filter(|row| documents.value(*row) > 0) {
                let (name, share) = (names.value(row), retention.value(row));
                match classes.iter_mut().find(|class| class.class == name) {
                    Some(class) => class.retention.push(share),
                    None => classes.push(ClassCurve { class: name.to_owned(), retention: vec![share] }),
                }
            }
            Ok(())
        })?;
        let mut amounts: Vec<u64> = Vec::new();
        each_row(AmountRow::NAME, &["amount", "pairs"], &mut |batch| {
            let (of_row, pairs): (&Int32Array, &Int64Array) = (field(batch, "amount")?, field(batch, "pairs")?);
            for row in 0..batch.num_rows() {
                let amount = of_row.value(row) as usize;
                amounts.resize(amounts.len().max(amount + 1), 0);
                amounts[amount] += pairs.value(row) as u64;
            }
            Ok(())
        })?;
        Ok(EvolutionCurves { classes, amounts })
    }
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
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Why {
    /// It is one of the largest.
    Largest,
    /// Its pages are least similar to each other.
    Loosest,
    /// It grew most since the week before: by this many pages.
    Grown(u64),
}

/// A cluster, and two of its pages.
#[derive(Clone, Debug, Serialize)]
pub struct ShownCluster {
    /// Why it is shown.
    pub reasons: Vec<Why>,
    /// Its id.
    pub cluster_id: i64,
    /// Its pages.
    pub pages: u64,
    /// Distinct hosts of these.
    pub hosts: u64,
    /// The page that stays and the one that is least similar to its neighbour, of those that were looked at.
    pub comparison: Comparison,
}

/// Reads all of it. `inputs` are the crawl files at hand, read by `reading`.
///
/// # Errors
/// If a table or a crawl file cannot be read.
pub fn overview(
    week: &LookedWeek<'_>,
    StoreFindings { weeks, studies, evolution }: StoreFindings,
    inputs: &[Input],
    reading: &Reading,
) -> Result<Overview> {
    let summary = weeks.last().cloned();
    let summary = summary.ok_or_else(|| anyhow::anyhow!("the week has no summary"))?;
    let mut of_levels = Vec::new();
    for level in Level::ALL {
        of_levels.push((level, largest(week, level, LISTED)?));
    }
    let mut wanted: Vec<(Why, i64)> = Vec::new();
    wanted.extend(of_levels[0].1.iter().take(SHOWN).filter_map(|cluster| Some((Why::Largest, cluster.cluster_id?))));
    for cluster in summary.accuracy.iter().flat_map(|accuracy| accuracy.loosest.iter().chain(&accuracy.loose)) {
        let root = DocId::from_table(cluster.root);
        let id = week.pages([root])?.get(&root).and_then(|page| page.cluster_id);
        wanted.extend(id.map(|id| (Why::Loosest, id)));
    }
    wanted.extend(grown(week)?.into_iter().map(|(id, pages)| (Why::Grown(pages), id)));
    let mut shown: Vec<ShownCluster> = Vec::new();
    for (why, id) in wanted {
        match shown.iter_mut().find(|cluster| cluster.cluster_id == id) {
            Some(cluster) if cluster.reasons.contains(&why) => {}
            Some(cluster) => cluster.reasons.push(why),
            None => shown.extend(shown_cluster(week, why, id, inputs, reading)?),
        }
    }
    let of_curve = |step| f64::from(step) / 100.0;
    let chance = |similarity| CurvePoint { similarity, chance: week.method.shape().chance(similarity) };
    Ok(Overview {
        curve: (0..=100).map(of_curve).map(chance).collect(),
        sizes: sizes(week)?,
        recall: recall(week)?,
        largest: of_levels,
        shown,
        studies,
        evolution,
        weeks,
        summary,
    })
}

/// A cluster with the page that stays and the one that is least like its neighbour.
fn shown_cluster(
    week: &LookedWeek<'_>,
    why: Why,
    cluster_id: i64,
    inputs: &[Input],
    reading: &Reading,
) -> Result<Option<ShownCluster>> {
    let list = pages_of_cluster(week, Level::Similar, cluster_id, LISTED)?;
    let Some(first) = list.listed.first().map(|listed| listed.page.doc) else { return Ok(None) };
    let similarity = |listed: &&super::lists::ListedPage| {
        let similarity = listed.evidence.as_ref().map_or(1.0, |evidence| evidence.similarity);
        (1e6 * similarity) as u64
    };
    let others = list.listed.iter().filter(|listed| listed.page.doc != first);
    let Some(other) = others.min_by_key(similarity).map(|listed| listed.page.doc) else { return Ok(None) };
    let comparison = compare_docs(week, [first, other], ["a page of the cluster"; 2], inputs, reading)?;
    Ok(Some(ShownCluster { reasons: vec![why], cluster_id, pages: list.pages, hosts: list.hosts, comparison }))
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

/// The clusters that grew most since the week before, and by how many pages.
fn grown(week: &LookedWeek<'_>) -> Result<Vec<(i64, u64)>> {
    let mut grown: Vec<(i64, i64)> = Vec::new();
    week.each_row(ChangeRow::NAME, &["cluster_id", "event", "before", "after"], |batch| {
        let events: &StringArray = field(batch, "event")?;
        let [ids, before, after] = ["cluster_id", "before", "after"].map(|name| field::<Int64Array>(batch, name));
        let (ids, before, after) = (ids?, before?, after?);
        let of_growth = (0..batch.num_rows()).filter(|row| events.value(*row) == "grow");
        grown.extend(of_growth.map(|row| (before.value(row) - after.value(row), ids.value(row))));
        grown.sort_unstable();
        grown.truncate(SHOWN);
        Ok(())
    })?;
    Ok(grown.into_iter().map(|(less, id)| (id, less.unsigned_abs())).collect())
}

/// The recall of the table of accuracy, by bands of similarity.
fn recall(week: &LookedWeek<'_>) -> Result<Vec<RecallBand>> {
    let mut bands = Vec::new();
    let columns = ["kind", "similarity", "share", "share_low", "share_high", "expected", "sampled"];
    week.each_row(AccuracyRow::NAME, &columns, |batch| {
        let kinds: &StringArray = field(batch, "kind")?;
        let double = |name| field::<Float64Array>(batch, name);
        let (similarity, expected) = (double("similarity")?, double("expected")?);
        let share = [double("share")?, double("share_low")?, double("share_high")?];
        let sampled: &Int64Array = field(batch, "sampled")?;
        for row in (0..batch.num_rows()).filter(|row| kinds.value(*row) == "recall" && sampled.value(*row) > 0) {
            bands.push(RecallBand {
                similarity: similarity.value(row),
                share: share.map(|share| share.value(row)),
                expected: expected.is_valid(row).then(|| expected.value(row)),
                sampled: sampled.value(row) as u64,
            });
        }
        Ok(())
    })?;
    Ok(bands)
}
