//! The main job: a crawl in, cluster tables out (Fetterly 2004, section 2).
//!
//! ```text
//! crawl files ─▶ answers ─▶ segments, wave by wave        every page a row, with its sketch
//! vectors     ─▶ clusters (`operators/clusters.rs`)       virtually identical, and very similar
//! checksums   ─▶ exact                                    exact copies among the identical
//! roots       ─▶ tables                                   sizes, evidence, links, the cluster map
//! ```
//!
//! Waves are committed one by one; what follows them is computed again when a run is interrupted. The
//! tables do not depend on workers, processes, or the order in which inputs are named.

use std::collections::BTreeMap;
use std::rc::Rc;
use std::sync::Arc;

use anyhow::{Context, Result};
use arrow_array::{Int64Array, StringArray};
use timely::dataflow::operators::probe::Handle;
use timely::dataflow::operators::vec::Map;
use timely::dataflow::operators::{Concat, OkErr, Probe};
use timely::worker::Worker;

use crate::features::{Fingerprinter, Polynomials, VectorKeys, polynomials};
use crate::kernels;
use crate::operators::{
    Alike, Clustering, Clusters, Found, LevelClusters, Note, Numbering, Owned, SharedForest, VectorFiles, Vectors,
    check_rejects, checksums, clusters, commit, crawl, evidence, exact, gather, largest, links, own_segments,
    run_to_end, segments, tally, vector_docs,
};
use crate::plan::Plan;
use crate::records::{DocId, Level};
use crate::state::{CommittedWeek, Journal, Store, Unfinished, WholeWeek, sync_folder};
use crate::stats;
use crate::summary::{LargestCluster, LevelSummary, Summary};
use crate::tables::{
    ClusterRow, DocumentRow, EvidenceRow, LargestRow, Scan, SizeRow, SummaryRow, Table, Writer, field,
};
use crate::watch::{Stage, Watch};

/// Runs the job on one of its workers; every worker of every process calls it with the same plan, after the week was
/// begun ([`Store::begin`]). Worker 0 commits the week and returns its summary.
///
/// # Errors
/// Where anything cannot be read or written, or too many records are bad. What was committed stays, and a rerun goes
/// on from it.
pub fn cluster(
    worker: &mut Worker,
    plan: &Arc<Plan>,
    forest: &Arc<SharedForest>,
    watch: &Arc<Watch>,
) -> Result<Option<Summary>> {
    let polynomials = polynomials(plan.method.seed, plan.method.features);
    let store = Store::at(&plan.store);
    let unfinished = store.unfinished(plan.week);
    let before = read_journal(&unfinished)?;

    watch.enter(Stage::Read);
    if before.waves < plan.waves.len() {
        read(worker, plan, &polynomials, before, watch)?;
    }
    let journal = read_journal(&unfinished)?;
    check_rejects(plan, &journal.counts, true)?;

    let owned = Owned::new(worker.index(), worker.peers(), &journal.rows(plan.method.shards));
    let week = ReadWeek { plan, journal: &journal, unfinished: &unfinished, owned: &owned, watch };
    let Roots { similar, neighbours, identical, exact } = week.roots(worker, &polynomials, forest)?;
    watch.enter(Stage::Tables);
    let level = |level, roots: Vec<DocId>, worker: &mut Worker| -> Result<LevelClusters> {
        Ok(LevelClusters { level, tallies: tally(worker, &owned, &roots, watch)?, roots })
    };
    let levels = [
        level(Level::Similar, similar, worker)?,
        level(Level::Identical, identical, worker)?,
        level(Level::Exact, exact, worker)?,
    ];
    week.evidence(worker, &levels, neighbours)?;
    links(worker, plan, &journal, &owned, watch)?;
    week.cluster_map(&levels)?;
    let named = gather(worker, levels[0].tallies.named(), watch)?;
    let summary = week.statistics(worker, &levels)?;
    // Every process makes its tables durable before any of them may be committed.
    sync_folder(unfinished.folder())?;
    gather(worker, vec![worker.index() as u64], watch)?;
    if worker.index() > 0 {
        return Ok(None);
    }
    let committed = CommittedWeek {
        week: plan.week,
        documents: journal.counts.documents,
        urls: journal.rows(plan.method.shards),
        named: named.into_iter().map(|(_, clusters)| clusters).collect(),
    };
    let whole = WholeWeek { committed, method: plan.method.clone(), journal };
    store.commit(&whole, &plan.job, &serde_json::to_vec_pretty(&summary).context("a summary is plain data")?)?;
    Ok(Some(summary))
}

fn read_journal(unfinished: &Unfinished) -> Result<Journal> {
    let path = unfinished.journal();
    Journal::read(&path)?.with_context(|| format!("{} is missing: the week was not begun", path.display()))
}

/// Reads the waves that are not committed yet.
fn read(
    worker: &mut Worker,
    plan: &Arc<Plan>,
    polynomials: &Polynomials,
    journal: Journal,
    watch: &Arc<Watch>,
) -> Result<()> {
    let fingerprinter = Fingerprinter::new(&plan.method, polynomials, plan.reading.max_links, kernels::chosen()?);
    let probe = Handle::new();
    worker.dataflow::<u64, _, _>(|scope| {
        let found = crawl(scope, plan, fingerprinter, journal.waves, probe.clone(), watch);
        let (answers, notes) = found.ok_err(|found| match found {
            Found::Answer(answer) => Ok(*answer),
            Found::Bad(bad) => Err(Note::Bad(bad)),
            Found::Counted(counts) => Err(Note::Counted(counts)),
        });
        let made = segments(answers, plan, journal.waves, &journal.segments, watch);
        commit(made.map(|made| Note::Made(Box::new(made))).concat(notes), plan, journal, watch).probe_with(&probe);
    });
    run_to_end(worker, &probe, watch)
}

/// A week whose waves are all committed, as one worker sees it.
struct ReadWeek<'a> {
    plan: &'a Arc<Plan>,
    journal: &'a Journal,
    unfinished: &'a Unfinished,
    owned: &'a Owned,
    watch: &'a Arc<Watch>,
}

/// The roots of all own documents at the three levels, by number, and a neighbour of each at the first (itself if it
/// has none).
struct Roots {
    similar: Vec<DocId>,
    neighbours: Vec<DocId>,
    identical: Vec<DocId>,
    exact: Vec<DocId>,
}

impl ReadWeek<'_> {
    fn vectors(&self) -> impl Fn() -> Vectors + Clone + 'static {
        let (unfinished, journal, owned) = (self.unfinished.clone(), Rc::new(self.journal.clone()), self.owned.clone());
        move || Vectors::open(&unfinished, &journal, &owned)
    }

    /// Finds the clusters at all levels.
    fn roots(&self, worker: &mut Worker, polynomials: &Polynomials, forest: &Arc<SharedForest>) -> Result<Roots> {
        let (plan, owned, watch) = (self.plan, self.owned, self.watch);
        let files = VectorFiles::of_week(self.unfinished, self.journal, owned, plan.method.supershingles);
        let docs = Rc::new(vector_docs(&files, owned)?);
        let mut rows = vec![0; plan.method.shards as usize];
        self.journal.segments.iter().for_each(|segment| rows[segment.shard as usize] += segment.features);
        let clustering = Clustering {
            memory: Clustering::in_flight(plan.worker_memory, &rows, plan.peers())?,
            files,
            numbering: Rc::new(Numbering::new(&rows)),
            keys: Rc::new(VectorKeys::new(&plan.method, polynomials)),
            agreements: plan.method.agreements,
            scratch: self.unfinished.spill(),
            forest: forest.clone(),
            threads: plan.workers,
            watch: watch.clone(),
        };
        let named = docs.clone();
        let Clusters { duplicates, survivors, .. } =
            clusters(worker, &clustering, move |vector| named[vector].to_table() as u64)?;
        let doc = |name: u64| DocId::from_table(name as i64);
        let own: Vec<DocId> = owned.docs().collect();
        let mut roots = Roots { similar: own.clone(), neighbours: own.clone(), identical: own.clone(), exact: own };
        for (vector, root, neighbour) in survivors.iter().chain(duplicates.iter()) {
            let at = owned.index(docs[vector as usize]);
            (roots.similar[at], roots.neighbours[at]) = (doc(root), doc(neighbour));
        }
        // A duplicate goes where its representative goes.
        let duplicates: Rc<Vec<(DocId, DocId)>> =
            Rc::new(duplicates.iter().map(|(vector, _, same)| (docs[vector as usize], doc(same))).collect());
        duplicates.iter().for_each(|(duplicate, same)| roots.identical[owned.index(*duplicate)] = *same);
        let checksums = Rc::new(checksums(self.unfinished, self.journal, owned)?);
        for ((copy, _), root) in duplicates.iter().zip(exact(worker, owned, &duplicates, &checksums, watch)?) {
            roots.exact[owned.index(*copy)] = root;
        }
        Ok(roots)
    }

    /// Writes `evidence`.
    fn evidence(&self, worker: &mut Worker, levels: &[LevelClusters; 3], neighbours: Vec<DocId>) -> Result<()> {
        let [similar, identical, _] = levels;
        let method = &self.plan.method;
        let all = Alike { agreements: method.supershingles as u32, equal: method.features as u32 };
        // Asked about: pages that are not root, and not known to be identical to their neighbour.
        let asked: Vec<DocId> = self
            .owned
            .docs()
            .enumerate()
            .map(|(at, doc)| if doc == similar.roots[at] || doc != identical.roots[at] { doc } else { neighbours[at] })
            .collect();
        let alike = evidence(worker, self.owned, asked, self.vectors(), self.plan.worker_memory / 2, self.watch)?;
        // Own documents come shard by shard.
        let mut docs = self.owned.docs().enumerate().peekable();
        for shard in self.owned.shards() {
            let mut writer: Writer<EvidenceRow> = Writer::create(&self.table(EvidenceRow::NAME, shard))?;
            while let Some((at, doc)) = docs.next_if(|(_, doc)| doc.shard() == shard) {
                if doc == similar.roots[at] {
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
    fn cluster_map(&self, levels: &[LevelClusters; 3]) -> Result<()> {
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
                        (root.to_table(), levels[level].tallies.members(root) as i64)
                    };
                    let root = levels[0].roots[at];
                    let number = levels[0].tallies.number(root);
                    writer.push(ClusterRow {
                        url: urls.value(row).to_owned(),
                        host: hosts.value(row).to_owned(),
                        doc: doc.to_table(),
                        levels: [level(0), level(1), level(2)],
                        cluster_id: number.map(|number| DocId::new(root.shard(), number).to_table()),
                        canonical: root == doc,
                    })?;
                }
                Ok(())
            })?;
            writer.finish_if_any()?;
        }
        Ok(())
    }

    /// Counts sizes, finds the largest clusters, fits the power law; worker 0 writes the tables.
    fn statistics(&self, worker: &mut Worker, levels: &[LevelClusters; 3]) -> Result<Summary> {
        let mut sizes: BTreeMap<(usize, u64), u64> = BTreeMap::new();
        for (at, clusters) in levels.iter().enumerate() {
            for (_, members) in clusters.tallies.own() {
                *sizes.entry((at, members)).or_default() += 1;
            }
        }
        let mine: Vec<((usize, u64), u64)> = sizes.into_iter().collect();
        let mut sizes: BTreeMap<(usize, u64), u64> = BTreeMap::new();
        for (size, clusters) in gather(worker, mine, self.watch)? {
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
        Ok(Summary::new(self.plan.week, &self.plan.store, &self.plan.method, self.journal, summaries))
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

    fn table(&self, table: &str, shard: u32) -> std::path::PathBuf {
        self.unfinished.table(table, &format!("shard{shard:05}.parquet"))
    }
}

/// The file of a table that one worker writes alone.
const ALL: &str = "all.parquet";
