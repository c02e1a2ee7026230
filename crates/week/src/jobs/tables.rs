//! Writes the tables of a week from the roots of its documents: evidence, cluster map, cluster ids
//! and changes, statistics.
//!
//! Each worker writes the files of its own shards; worker 0 writes the tables that are one file.
//!
//! Cost: one pass over `documents` for the cluster map; evidence reads each document's sketch once.
//! About 55 bytes a document are in memory, which the job's `memory` does not bound: documents that
//! are alone take least.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::{Context as _, Result, ensure};
use arrow_array::{ArrayRef, BooleanArray, Float32Array, Int32Array, Int64Array, RecordBatch, StringArray};
use nigh_exchange::Context;

use super::accuracy::LinkSamples;
use super::roots::{KnownNeighbours, VerifiedClusters, WeekRoots};
use super::week::{BaseWeek, IngestedWeek};
use crate::config::Verify;
use crate::operators::delta::ModeChoice;
use crate::operators::output;
use crate::operators::output::{Agreement, CanonicalStage, ClusterIds, IdSource, InputNumbers, LevelClusters};
use crate::operators::scan::{PastClusters, own_segments, read_past};
use crate::operators::set_join::NearestSet;
use crate::records::{DocId, Level};
use crate::state::{BundleWriter, shard_file};
use crate::stats;
use crate::structures::SparseDocs;
use crate::summary::{AccuracySummary, LargestCluster, LevelSummary, Since, Summary};
use crate::tables::{
    ChangeRow, ClusterRow, EvidenceRow, Found, LargestRow, PieceScan, RowRange, Scan, SizeRow, SplitOffRow, SummaryRow,
    Table, field,
};
use crate::watch::Watch;

/// The columns of `clusters` that are those of `documents`, in their order.
const PAGE_COLUMNS: [&str; 4] = ["id", "url", "host", "doc"];

/// The number of clusters of each size, by level (its place in the list of levels) and size.
type SizeCounts = BTreeMap<(usize, u64), u64>;

/// Writes `evidence`: for each document except roots, a neighbour in its very similar cluster and
/// what the two share. Of unchanged clusters it is copied from the base week. Returns samples of
/// the rows.
pub(crate) fn evidence(
    cx: &mut Context,
    week: &IngestedWeek<'_>,
    roots: &WeekRoots,
    base: Option<&BaseWeek>,
) -> Result<LinkSamples> {
    let WeekRoots { similar, identical, exact, neighbours, known, .. } = roots;
    let method = &week.plan.method;
    let all = Agreement { agreements: method.supershingles as u32, equal: method.features as u32 };
    // The first document that is equal to each, and how they are found to be equal.
    let (firsts, equal) = match method.verify {
        Verify::Exact => (exact, Found::Bytes),
        Verify::None | Verify::Estimate => (identical, Found::Features),
    };
    // Documents are compared with their neighbour, except roots, unchanged ones, those equal to
    // their neighbour, and those that verification has compared. A document that is its own
    // neighbour is not compared.
    let has_agreement = |number: usize| match &roots.verified {
        Some(VerifiedClusters { candidates, doubtful, agreements: Some(_), .. }) => {
            !doubtful.has(candidates.similar[number])
        }
        _ => false,
    };
    let compared = week.owned.docs().enumerate().map(|(number, doc)| {
        let is_settled = similar[number] == doc || firsts[number] != doc || !roots.knows(number);
        if is_settled || has_agreement(number) { doc } else { neighbours[number] }
    });
    let compared: Vec<DocId> = compared.collect();
    let memory = week.plan.worker_memory / 2;
    let mut agreements = output::evidence(cx, week.owned, compared, &week.sketches()?, memory)?;
    if let Some(VerifiedClusters { agreements: Some(before), .. }) = &roots.verified {
        let with_agreement = (0..before.len()).filter(|number| has_agreement(*number));
        with_agreement.for_each(|number| agreements[number] = before[number]);
    }
    let nearest = roots.verified.as_ref().map_or(&[][..], |verified| &verified.nearest);
    let mut nearest = nearest.iter().peekable();
    let mut wordless = roots.wordless.iter().peekable();

    let mut samples = LinkSamples::new(week);
    // Own documents come shard by shard.
    let mut docs = week.owned.docs().enumerate().peekable();
    cx.watch().expect_steps(week.owned.shards().count());
    let mut writer: BundleWriter<EvidenceRow> = week.bundle();
    for shard in week.owned.shards() {
        let mut base_rows = match (known, base) {
            (KnownNeighbours::OfRoots(_), Some(base)) => {
                BaseEvidence::open(base.tables.of_shard(EvidenceRow::NAME, shard), method.verify)?
            }
            _ => BaseEvidence::default(),
        };
        while let Some((number, doc)) = docs.next_if(|(_, doc)| doc.shard() == shard) {
            let is_wordless = wordless.next_if(|(wordless, _)| *wordless == doc).is_some();
            if [doc, DocId::NONE].contains(&similar[number]) {
                continue;
            }
            if is_wordless {
                let (doc, neighbour) = (doc.to_table(), neighbours[number].to_table());
                // Accuracy is that of pages with words: a million empty ones would say nothing of
                // others.
                writer.push(EvidenceRow { doc, neighbour, agreements: 0, similarity: 1.0, found: Found::Bytes })?;
                continue;
            }
            if !roots.knows(number) {
                let row = base_rows.row(doc)?;
                samples.add(&row);
                writer.push(row)?;
                continue;
            }
            while nearest.next_if(|nearest| nearest.doc < doc).is_some() {}
            let by_shingles = nearest.peek().filter(|nearest| nearest.doc == doc);
            let agreement = if firsts[number] == doc { agreements[number] } else { all };
            let (similarity, found) = match by_shingles {
                _ if firsts[number] != doc => (1.0, equal),
                Some(NearestSet { shared, sizes, .. }) => (*shared as f32 / (sizes - shared) as f32, Found::Shingles),
                None => (agreement.equal as f32 / method.features as f32, Found::Features),
            };
            let row = EvidenceRow {
                doc: doc.to_table(),
                neighbour: neighbours[number].to_table(),
                agreements: agreement.agreements as i32,
                similarity,
                found,
            };
            samples.add(&row);
            writer.push(row)?;
        }
        writer.end_piece(&shard_file(shard))?;
        cx.watch().add_steps(1);
    }
    writer.finish()?;
    Ok(samples)
}

/// Writes `split-off`: the pages that verification took out of their clusters of candidates.
pub(crate) fn split_off(week: &IngestedWeek<'_>, roots: &WeekRoots) -> Result<()> {
    let Some(VerifiedClusters { candidates, .. }) = &roots.verified else { return Ok(()) };
    let mut docs = week.owned.docs().enumerate().peekable();
    let mut writer: BundleWriter<SplitOffRow> = week.bundle();
    for shard in week.owned.shards() {
        while let Some((number, doc)) = docs.next_if(|(_, doc)| doc.shard() == shard) {
            let before = [candidates.similar[number], candidates.identical[number]];
            if before != [roots.similar[number], roots.identical[number]] {
                let [similar_root, identical_root] = before.map(DocId::to_table);
                writer.push(SplitOffRow { doc: doc.to_table(), similar_root, identical_root })?;
            }
        }
        writer.end_piece(&shard_file(shard))?;
    }
    writer.finish()
}

/// Which own documents are canonical, by number.
pub(crate) fn canonical(cx: &mut Context, week: &IngestedWeek<'_>, similar: &LevelClusters) -> Result<Vec<bool>> {
    let (mut inputs, mut number) = (InputNumbers::new(), 0);
    for (of, names) in week.journal.inputs(week.plan.week) {
        for name in names.keys() {
            inputs.entry(of.days()).or_default().insert(name.clone(), number);
            number += 1;
        }
    }
    let cx = &mut cx.with(week.plan.worker_memory / 4, &week.unfinished.spill());
    let (canonical, documents, values) = (week.plan.canonical.clone(), week.documents()?, week.values()?);
    let stage = CanonicalStage { canonical, inputs, documents, values };
    output::canonical(cx, stage, week.owned, similar)
}

/// Writes `clusters`, the cluster map: a row for each document of the week. `cluster_ids` are those
/// of own documents, by number, and `canonical` says which of them are.
pub(crate) fn cluster_map(
    watch: &Watch,
    week: &IngestedWeek<'_>,
    levels: &[LevelClusters; 3],
    cluster_ids: &SparseDocs,
    canonical: &[bool],
) -> Result<()> {
    let owned = week.owned;
    let segments = own_segments(week.journal, owned);
    watch.expect_steps(segments.len());
    let mut writer: BundleWriter<ClusterRow> = week.bundle();
    let mut scan = PieceScan::new(week.documents()?, &PAGE_COLUMNS);
    let mut next = scan.batch()?;
    for (piece, segment) in segments.into_iter().enumerate() {
        while let Some((_, batch)) = next.take_if(|(of, _)| *of == piece) {
            next = scan.batch()?;
            let docs: &Int64Array = field(&batch, "doc")?;
            let docs: Vec<DocId> = docs.values().iter().map(|doc| DocId::from_table(*doc)).collect();
            let numbers: Vec<usize> = docs.iter().map(|doc| owned.index(*doc)).collect();
            // The columns of pages as they are, then those of each level, as `ClusterRow` has them.
            let mut columns: Vec<ArrayRef> =
                PAGE_COLUMNS.iter().filter_map(|name| batch.column_by_name(name).cloned()).collect();
            for level in levels {
                let roots: Vec<DocId> = docs.iter().map(|doc| level.roots.of(*doc)).collect();
                let sizes = roots.iter().map(|root| level.sizes.members(*root) as i64);
                let sizes = Int64Array::from_iter_values(sizes);
                columns.push(Arc::new(Int64Array::from_iter_values(roots.into_iter().map(DocId::to_table))));
                columns.push(Arc::new(sizes));
            }
            let ids = numbers.iter().map(|number| cluster_ids.get(*number).map(DocId::to_table));
            columns.push(Arc::new(ids.collect::<Int64Array>()));
            columns.push(Arc::new(BooleanArray::from_iter(numbers.iter().map(|number| Some(canonical[*number])))));
            writer.writer()?.push_columns(columns)?;
        }
        writer.end_piece(&segment.file())?;
        watch.add_steps(1);
    }
    writer.finish()
}

/// Assigns cluster ids, which continue those of the base week, and writes `changes` since the week
/// before.
pub(crate) fn cluster_ids(
    cx: &mut Context,
    week: &IngestedWeek<'_>,
    similar: &LevelClusters,
    base: Option<&BaseWeek>,
) -> Result<ClusterIds> {
    let owned = week.owned;
    let past_clusters = |past: Option<&BaseWeek>| match past {
        Some(past) => read_past(past.rows(ClusterRow::NAME, owned)?.into_iter(), owned),
        None => Ok(PastClusters { names: SparseDocs::new(owned.len(), std::iter::empty()), clusters: Vec::new() }),
    };
    let first_new_ids = week.plan.named();
    let source = IdSource::After(&first_new_ids);
    let mut ids = output::cluster_ids(cx, owned, past_clusters(base)?, similar, source)?;
    match (&week.plan.deletion, week.week_before()?) {
        (None, None) => {}
        (None, Some(_)) => write_changes(week, &ids)?,
        (Some(_), Some(before)) => {
            // The ids continue those of the week before the deletion; the changes are those since
            // the week before.
            let source = IdSource::As(&ids.of_docs);
            let since_before = output::cluster_ids(cx, owned, past_clusters(Some(&before))?, similar, source)?;
            ids.changes = since_before.changes;
            write_changes(week, &ids)?;
        }
        (Some(_), None) => keep_changes(week, base)?,
    }
    Ok(ids)
}

/// Keeps `changes` as the week has it: there is no week before, or it was removed.
fn keep_changes(week: &IngestedWeek<'_>, base: Option<&BaseWeek>) -> Result<()> {
    let mut writer: BundleWriter<ChangeRow> = week.bundle();
    for shard in week.owned.shards() {
        if let Some(rows) = base.and_then(|base| base.tables.of_shard(ChangeRow::NAME, shard)) {
            writer.writer()?.append(&[rows])?;
            writer.end_any_piece(&shard_file(shard))?;
        }
    }
    writer.finish()
}

/// Writes `changes`.
fn write_changes(week: &IngestedWeek<'_>, ids: &ClusterIds) -> Result<()> {
    let mut writer: BundleWriter<ChangeRow> = week.bundle();
    for (shard, rows) in &ids.changes {
        rows.iter().try_for_each(|row| writer.push(row.clone()))?;
        writer.end_piece(&shard_file(*shard))?;
    }
    writer.finish()
}

/// Sums up the changes since the week before, for the summary. `missing` counts own rows of
/// `missing` by reason. `None` for a store's first week.
pub(crate) fn since(
    cx: &mut Context,
    week: &IngestedWeek<'_>,
    ids: &ClusterIds,
    choice: &ModeChoice,
    missing: BTreeMap<String, u64>,
) -> Result<Option<Since>> {
    // If the week before was removed since, a deletion cannot compare with it: the former summary
    // has the changes.
    let former = match (&week.plan.deletion, week.plan.earlier.last()) {
        (Some(deletion), None) => Summary::read(&week.plan.open_store().records(&deletion.of))?.since,
        _ => None,
    };
    let before = week.plan.earlier.last().map(|before| before.week);
    let Some(before) = before.or(former.as_ref().map(|since| since.week)) else {
        return Ok(None);
    };
    let changes = sum_changes(cx, ids)?;
    let new_urls = week.journal.urls(week.plan.method.shards).iter().sum::<u64>();
    let missing = cx.sorted(missing.into_iter().collect::<Vec<(String, u64)>>())?;
    let not_downloaded = missing.iter().map(|(_, count)| count).sum();
    let missing = Since::most(missing);
    if let Some(former) = former {
        return Ok(Some(Since { new_urls, not_downloaded, missing, ..former }));
    }
    Ok(Some(Since { week: before, found: choice.to_string(), new_urls, not_downloaded, missing, changes }))
}

/// The number of events and of their documents, by event, of all workers.
fn sum_changes(cx: &mut Context, ids: &ClusterIds) -> Result<BTreeMap<String, (u64, u64)>> {
    let mut own_counts: BTreeMap<&str, (u64, u64)> = BTreeMap::new();
    for row in ids.changes.values().flatten() {
        let (events, documents) = own_counts.entry(row.event.name()).or_default();
        *events += 1;
        *documents += row.documents as u64;
    }
    let own_counts = own_counts.into_iter().map(|(event, counts)| (event.to_owned(), counts)).collect();
    let mut sums: BTreeMap<String, (u64, u64)> = BTreeMap::new();
    for (event, (events, documents)) in cx.sorted(own_counts)? {
        let sum = sums.entry(event).or_default();
        sum.0 += events;
        sum.1 += documents;
    }
    Ok(sums)
}

/// Counts cluster sizes, finds the largest clusters, and fits the power law. `cluster_ids` are
/// those of own documents, by number. Worker 0 writes the tables; every worker returns the summary.
pub(crate) fn statistics(
    cx: &mut Context,
    week: &IngestedWeek<'_>,
    levels: &[LevelClusters; 3],
    cluster_ids: &SparseDocs,
    since: Option<Since>,
    mut accuracy: Option<AccuracySummary>,
) -> Result<Summary> {
    let sizes = count_sizes(cx, levels)?;
    let largest = output::largest(cx, week.owned, levels, cluster_ids, week.unfinished, week.journal)?;
    let summary = |(level, clusters): (usize, &LevelClusters)| {
        let of_level = sizes.range((level, 0)..(level + 1, 0)).map(|((_, size), clusters)| (*size, *clusters));
        let shared: Vec<(u64, u64)> = of_level.filter(|(size, _)| *size > 1).collect();
        let largest = largest.iter().filter(|row| row.level == clusters.level.name()).map(LargestCluster::from);
        let documents = week.journal.counts.documents;
        LevelSummary::new(clusters.level, documents, &shared, stats::fit(&shared), largest.collect())
    };
    let summaries: Vec<LevelSummary> = levels.iter().enumerate().map(summary).collect();
    for cluster in accuracy.iter_mut().flat_map(|accuracy| accuracy.loosest.iter_mut().chain(&mut accuracy.loose)) {
        // It is one of the largest ones, whose names are known.
        let row = largest.iter().find(|row| row.level == Level::Similar.name() && row.doc == cluster.root);
        cluster.name = row.map_or_else(String::new, |row| row.name.clone());
    }
    if cx.index() == 0 {
        write_statistics(week, &sizes, levels, &largest, &summaries)?;
    }
    let summary =
        Summary::new(week.plan.week, week.plan.final_store(), &week.plan.method, week.journal, since, summaries);
    Ok(Summary { accuracy, ..summary })
}

/// The number of clusters of each size, of all workers.
fn count_sizes(cx: &mut Context, levels: &[LevelClusters; 3]) -> Result<SizeCounts> {
    let mut own_counts = SizeCounts::new();
    for (level, clusters) in levels.iter().enumerate() {
        for (_, members) in clusters.sizes.of_own_roots() {
            *own_counts.entry((level, members)).or_default() += 1;
        }
    }
    let own_counts: Vec<((usize, u64), u64)> = own_counts.into_iter().collect();
    let mut sums = SizeCounts::new();
    for (size, clusters) in cx.sorted(own_counts)? {
        *sums.entry(size).or_default() += clusters;
    }
    Ok(sums)
}

/// Writes `sizes`, `largest` and `summary`.
fn write_statistics(
    week: &IngestedWeek<'_>,
    sizes: &SizeCounts,
    levels: &[LevelClusters; 3],
    largest: &[LargestRow],
    summaries: &[LevelSummary],
) -> Result<()> {
    let mut writer: BundleWriter<SizeRow> = week.bundle();
    for ((level, size), clusters) in sizes {
        let level = levels[*level].level.name();
        writer.push(SizeRow { level, size: *size as i64, clusters: *clusters as i64 })?;
    }
    writer.end_any_piece(ALL)?;
    writer.finish()?;
    let mut writer: BundleWriter<LargestRow> = week.bundle();
    largest.iter().try_for_each(|row| writer.push(row.clone()))?;
    writer.end_any_piece(ALL)?;
    writer.finish()?;
    let mut writer: BundleWriter<SummaryRow> = week.bundle();
    summaries.iter().try_for_each(|level| writer.push(level.row()))?;
    writer.end_any_piece(ALL)?;
    writer.finish()
}

/// The rows of `evidence` of the base week in one shard, read in order of documents.
#[derive(Default)]
struct BaseEvidence {
    path: PathBuf,
    scan: Option<Scan>,
    batch: Option<RecordBatch>,
    /// The next row of `batch`.
    next: usize,
    /// Whether the column `found` is read.
    has_found: bool,
}

impl BaseEvidence {
    /// Opens the rows of a shard; a shard without clusters has none.
    fn open(rows: Option<RowRange>, verify: Verify) -> Result<BaseEvidence> {
        let path = rows.as_ref().map_or_else(PathBuf::new, |rows| rows.path().to_owned());
        // Without exact verification all similarities that are read here are found from features
        // (rows of pages without words are made in each week), and weeks of an older version lack
        // the column.
        let has_found = verify == Verify::Exact;
        let columns = ["doc", "neighbour", "agreements", "similarity", "found"];
        let open = |rows| Scan::open(rows, &columns[..if has_found { 5 } else { 4 }]);
        Ok(BaseEvidence { path, scan: rows.map(open).transpose()?, has_found, ..BaseEvidence::default() })
    }

    /// How the similarity of the next row was found.
    fn found(&self, batch: &RecordBatch) -> Result<Found> {
        if !self.has_found {
            return Ok(Found::Features);
        }
        let name = field::<StringArray>(batch, "found")?.value(self.next);
        Found::of_name(name)
            .with_context(|| format!("{} has `found` {name}: the table is damaged", self.path.display()))
    }

    /// The row of a document. Each call must be for a larger document than the one before.
    fn row(&mut self, doc: DocId) -> Result<EvidenceRow> {
        let missing = |path: &Path| format!("{} has no row of {doc}: the table is damaged", path.display());
        loop {
            if let Some(batch) = &self.batch {
                let docs: &Int64Array = field(batch, "doc")?;
                while self.next < docs.len() && docs.value(self.next) < doc.to_table() {
                    self.next += 1;
                }
                if self.next < docs.len() {
                    ensure!(docs.value(self.next) == doc.to_table(), missing(&self.path));
                    return Ok(EvidenceRow {
                        doc: doc.to_table(),
                        neighbour: field::<Int64Array>(batch, "neighbour")?.value(self.next),
                        agreements: field::<Int32Array>(batch, "agreements")?.value(self.next),
                        similarity: field::<Float32Array>(batch, "similarity")?.value(self.next),
                        found: self.found(batch)?,
                    });
                }
            }
            let batch = self.scan.as_mut().map(Scan::batch).transpose()?.flatten();
            self.batch = Some(batch.with_context(|| missing(&self.path))?);
            self.next = 0;
        }
    }
}

/// The file of a table that one worker writes alone.
const ALL: &str = "all.parquet";
