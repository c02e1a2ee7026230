//! The tables of a week, from the roots of its pages.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::rc::Rc;

use anyhow::{Context, Result, ensure};
use arrow_array::{Float32Array, Int32Array, Int64Array, RecordBatch, StringArray};
use timely::worker::Worker;

use super::roots::KnownNeighbours;
use super::week::{LastWeek, ReadWeek};
use crate::operators::delta::Choice;
use crate::operators::exchange::all_gather;
use crate::operators::output::{Agreement, ClusterIds, IdSource, LevelClusters, cluster_ids, evidence, largest};
use crate::operators::scan::{PastClusters, Vectors, own_segments, read_past};
use crate::records::DocId;
use crate::stats;
use crate::summary::{LargestCluster, LevelSummary, Since, Summary};
use crate::tables::{
    ChangeRow, ClusterRow, DocumentRow, EvidenceRow, LargestRow, Scan, SizeRow, SummaryRow, Table, Writer, field,
    link_or_copy,
};

impl ReadWeek<'_> {
    /// Writes `evidence`; of clusters that are as they were, what it said last week.
    pub(crate) fn evidence(
        &self,
        worker: &mut Worker,
        levels: &[LevelClusters; 3],
        neighbours: Vec<DocId>,
        known: &KnownNeighbours,
        last: Option<&LastWeek>,
    ) -> Result<()> {
        let [similar, identical, _] = levels;
        let method = &self.plan.method;
        let all = Agreement { agreements: method.supershingles as u32, equal: method.features as u32 };
        // Asked about: pages that are not root, and not identical to their neighbour.
        let asked: Vec<DocId> = self
            .owned
            .docs()
            .enumerate()
            .map(|(at, doc)| match (similar.roots[at], identical.roots[at]) {
                (similar, identical) if similar == doc || identical != doc || !known.has(similar) => doc,
                _ => neighbours[at],
            })
            .collect();
        let alike = evidence(worker, self.owned, asked, self.vectors(), self.plan.worker_memory / 2, self.watch)?;
        // Own documents come shard by shard.
        let mut docs = self.owned.docs().enumerate().peekable();
        for shard in self.owned.shards() {
            let mut writer: Writer<EvidenceRow> = Writer::create(&self.table(EvidenceRow::NAME, shard))?;
            let mut kept = match (known, last) {
                (KnownNeighbours::Of(_), Some(last)) => {
                    KeptEvidence::open(&last.folder.join(EvidenceRow::NAME).join(shard_file(shard)))?
                }
                _ => KeptEvidence::default(),
            };
            while let Some((at, doc)) = docs.next_if(|(_, doc)| doc.shard() == shard) {
                if [doc, DocId::NONE].contains(&similar.roots[at]) {
                    continue;
                }
                if !known.has(similar.roots[at]) {
                    writer.push(kept.row(doc)?)?;
                    continue;
                }
                let alike = if doc == identical.roots[at] { alike[at] } else { all };
                writer.push(EvidenceRow {
                    doc: doc.to_table(),
                    neighbour: neighbours[at].to_table(),
                    agreements: alike.agreements as i32,
                    similarity: alike.equal as f32 / method.features as f32,
                })?;
            }
            writer.finish_if_any()?;
        }
        Ok(())
    }

    /// Writes `clusters`.
    pub(crate) fn cluster_map(&self, levels: &[LevelClusters; 3], names: &[DocId]) -> Result<()> {
        let owned = self.owned;
        for segment in own_segments(self.journal, owned) {
            let path = self.unfinished.table(ClusterRow::NAME, &segment.file());
            let mut writer: Writer<ClusterRow> = Writer::create(&path)?;
            let documents = self.unfinished.table(DocumentRow::NAME, &segment.file());
            Scan::open(&documents, &["doc", "url", "host"])?.for_each(|batch| {
                let docs: &Int64Array = field(batch, "doc")?;
                let (urls, hosts): (&StringArray, &StringArray) = (field(batch, "url")?, field(batch, "host")?);
                for row in 0..batch.num_rows() {
                    let doc = DocId::from_table(docs.value(row));
                    let at = owned.index(doc);
                    let level = |level: usize| {
                        let root = levels[level].roots[at];
                        (root.to_table(), levels[level].sizes.members(root) as i64)
                    };
                    writer.push(ClusterRow {
                        url: urls.value(row).to_owned(),
                        host: hosts.value(row).to_owned(),
                        doc: doc.to_table(),
                        levels: [level(0), level(1), level(2)],
                        cluster_id: (names[at] != DocId::NONE).then(|| names[at].to_table()),
                        canonical: levels[0].roots[at] == doc,
                    })?;
                }
                Ok(())
            })?;
            writer.finish_if_any()?;
        }
        Ok(())
    }

    /// Counts sizes, finds the largest clusters, fits the power law; worker 0 writes the tables.
    pub(crate) fn statistics(
        &self,
        worker: &mut Worker,
        levels: &[LevelClusters; 3],
        since: Option<Since>,
    ) -> Result<Summary> {
        let mut sizes: BTreeMap<(usize, u64), u64> = BTreeMap::new();
        for (at, clusters) in levels.iter().enumerate() {
            for (_, members) in clusters.sizes.of_own_roots() {
                *sizes.entry((at, members)).or_default() += 1;
            }
        }
        let mine: Vec<((usize, u64), u64)> = sizes.into_iter().collect();
        let mut sizes: BTreeMap<(usize, u64), u64> = BTreeMap::new();
        for (size, clusters) in all_gather(worker, mine, self.watch)? {
            *sizes.entry(size).or_default() += clusters;
        }
        let largest = largest(worker, self.owned, levels, self.unfinished, self.journal, self.watch)?;
        let of = |at: usize| sizes.range((at, 0)..(at + 1, 0)).map(|((_, size), clusters)| (*size, *clusters));
        let summaries: Vec<LevelSummary> = levels
            .iter()
            .enumerate()
            .map(|(at, clusters)| {
                let shared: Vec<(u64, u64)> = of(at).filter(|(size, _)| *size > 1).collect();
                let largest = largest.iter().filter(|row| row.level == clusters.level.name()).map(LargestCluster::from);
                LevelSummary::new(
                    clusters.level,
                    self.journal.counts.documents,
                    &shared,
                    stats::fit(&shared),
                    largest.collect(),
                )
            })
            .collect();
        if worker.index() == 0 {
            self.write_statistics(&sizes, levels, &largest, &summaries)?;
        }
        Ok(Summary::new(self.plan.week, &self.plan.store, &self.plan.method, self.journal, since, summaries))
    }

    fn write_statistics(
        &self,
        sizes: &BTreeMap<(usize, u64), u64>,
        levels: &[LevelClusters; 3],
        largest: &[LargestRow],
        summaries: &[LevelSummary],
    ) -> Result<()> {
        let mut writer: Writer<SizeRow> = Writer::create(&self.unfinished.table(SizeRow::NAME, ALL))?;
        for ((at, size), clusters) in sizes {
            writer.push(SizeRow { level: levels[*at].level.name(), size: *size as i64, clusters: *clusters as i64 })?;
        }
        writer.finish()?;
        let mut writer: Writer<LargestRow> = Writer::create(&self.unfinished.table(LargestRow::NAME, ALL))?;
        largest.iter().try_for_each(|row| writer.push(row.clone()))?;
        writer.finish()?;
        let mut writer: Writer<SummaryRow> = Writer::create(&self.unfinished.table(SummaryRow::NAME, ALL))?;
        summaries.iter().try_for_each(|level| writer.push(level.row()))?;
        writer.finish()?;
        Ok(())
    }

    fn vectors(&self) -> impl Fn() -> Vectors + Clone + 'static {
        let (unfinished, journal, owned) = (self.unfinished.clone(), Rc::new(self.journal.clone()), self.owned.clone());
        move || Vectors::open(&unfinished, &journal, &owned)
    }

    pub(crate) fn table(&self, table: &str, shard: u32) -> PathBuf {
        self.unfinished.table(table, &shard_file(shard))
    }

    /// Names the clusters as in the `last` week that is known, and writes `changes` since the week before.
    pub(crate) fn names(
        &self,
        worker: &mut Worker,
        levels: &LevelClusters,
        last: Option<&LastWeek>,
    ) -> Result<ClusterIds> {
        let (owned, watch) = (self.owned, self.watch);
        let past = |last: Option<&LastWeek>| match last {
            Some(last) => read_past(last.files(ClusterRow::NAME, owned), owned),
            None => Ok(PastClusters { names: vec![DocId::NONE; owned.len()], clusters: Vec::new() }),
        };
        let first = self.plan.named();
        let mut named = cluster_ids(worker, owned, past(last)?, levels, IdSource::After(&first), watch)?;
        match (&self.plan.deletion, self.week_before()?) {
            (None, None) => {}
            (None, Some(_)) => self.changes(&named)?,
            (Some(_), Some(before)) => {
                // Names are those that the week has already; what became of the week before is to be told anew.
                let kept = IdSource::As(&named.of_docs);
                named.changes = cluster_ids(worker, owned, past(Some(&before))?, levels, kept, watch)?.changes;
                self.changes(&named)?;
            }
            (Some(_), None) => self.changes_as_they_are()?,
        }
        Ok(named)
    }

    /// Takes `changes` from the week as it is: the one before, where there was one, is not there any more.
    fn changes_as_they_are(&self) -> Result<()> {
        let folder = self.plan.open_store().week(self.plan.week).join(ChangeRow::NAME);
        for shard in self.owned.shards() {
            let from = folder.join(shard_file(shard));
            if from.exists() {
                link_or_copy(&from, &self.table(ChangeRow::NAME, shard))?;
            }
        }
        Ok(())
    }

    /// Writes `changes`.
    fn changes(&self, names: &ClusterIds) -> Result<()> {
        for (shard, rows) in &names.changes {
            let mut writer: Writer<ChangeRow> = Writer::create(&self.table(ChangeRow::NAME, *shard))?;
            rows.iter().try_for_each(|row| writer.push(row.clone()))?;
            writer.finish_if_any()?;
        }
        Ok(())
    }

    /// What the summary says of the week before.
    pub(crate) fn since(
        &self,
        worker: &mut Worker,
        names: &ClusterIds,
        choice: &Choice,
        missing: BTreeMap<String, u64>,
    ) -> Result<Option<Since>> {
        // Of a week whose predecessor was removed, what became of that one's clusters is what was said of it.
        let former = match (&self.plan.deletion, self.plan.earlier.last()) {
            (Some(_), None) => Summary::read(&self.plan.open_store().week(self.plan.week))?.since,
            _ => None,
        };
        let Some(last) = self.plan.earlier.last().map(|last| last.week).or(former.as_ref().map(|since| since.week))
        else {
            return Ok(None);
        };
        let mut counts: BTreeMap<&str, (u64, u64)> = BTreeMap::new();
        for row in names.changes.values().flatten() {
            let (events, documents) = counts.entry(row.event.name()).or_default();
            (*events, *documents) = (*events + 1, *documents + row.documents as u64);
        }
        let own = counts.into_iter().map(|(event, counts)| (event.to_owned(), counts)).collect();
        let mut changes: BTreeMap<String, (u64, u64)> = BTreeMap::new();
        for (event, (events, documents)) in all_gather(worker, own, self.watch)? {
            let sums = changes.entry(event).or_default();
            *sums = (sums.0 + events, sums.1 + documents);
        }
        let new_urls = self.journal.urls(self.plan.method.shards).iter().sum::<u64>();
        let missing = all_gather(worker, missing.into_iter().collect::<Vec<(String, u64)>>(), self.watch)?;
        let not_downloaded = missing.iter().map(|(_, count)| count).sum();
        let missing = Since::most(missing);
        if let Some(former) = former {
            return Ok(Some(Since { new_urls, not_downloaded, missing, ..former }));
        }
        Ok(Some(Since { week: last, found: choice.to_string(), new_urls, not_downloaded, missing, changes }))
    }
}

/// The file of a shard in a table that is made after the waves.
fn shard_file(shard: u32) -> String {
    format!("shard{shard:05}.parquet")
}

/// Rows of last week's evidence, in the order of documents.
#[derive(Default)]
struct KeptEvidence {
    path: PathBuf,
    scan: Option<Scan>,
    batch: Option<RecordBatch>,
    at: usize,
}

impl KeptEvidence {
    fn open(path: &Path) -> Result<KeptEvidence> {
        // A shard without clusters has no file.
        let scan = match path.exists() {
            true => Some(Scan::open(path, &["doc", "neighbour", "agreements", "similarity"])?),
            false => None,
        };
        Ok(KeptEvidence { path: path.to_owned(), scan, ..KeptEvidence::default() })
    }

    /// The row of a document, which is larger than those asked for before.
    fn row(&mut self, doc: DocId) -> Result<EvidenceRow> {
        loop {
            if let Some(batch) = &self.batch {
                let docs: &Int64Array = field(batch, "doc")?;
                while self.at < docs.len() && docs.value(self.at) < doc.to_table() {
                    self.at += 1;
                }
                if self.at < docs.len() {
                    ensure!(docs.value(self.at) == doc.to_table(), "{} has no row of {doc}", self.path.display());
                    return Ok(EvidenceRow {
                        doc: doc.to_table(),
                        neighbour: field::<Int64Array>(batch, "neighbour")?.value(self.at),
                        agreements: field::<Int32Array>(batch, "agreements")?.value(self.at),
                        similarity: field::<Float32Array>(batch, "similarity")?.value(self.at),
                    });
                }
            }
            let next = self.scan.as_mut().map(Scan::batch).transpose()?.flatten();
            let batch = next.with_context(|| format!("{} has no row of {doc}", self.path.display()))?;
            (self.batch, self.at) = (Some(batch), 0);
        }
    }
}

/// The file of a table that one worker writes alone.
const ALL: &str = "all.parquet";
