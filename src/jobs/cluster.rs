//! The main job: a crawl in, cluster tables out (Fetterly 2004, section 2).
//!
//! ```text
//! crawl files ─▶ answers ─▶ segments, wave by wave        every page a row, with its sketch
//! sketches    ─▶ collapse                                 identical vectors, exact copies
//! the rest    ─▶ megashingles ─▶ edges ─▶ components      very similar, by label propagation
//! labels      ─▶ tables                                   sizes, evidence, links, the cluster map
//! ```
//!
//! Waves are committed one by one; what follows them is computed again when a run is interrupted. The
//! tables do not depend on workers, processes, or the order in which inputs are named.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;
use std::sync::Arc;

use anyhow::{Context, Result};
use arrow_array::{Int64Array, StringArray};
use timely::dataflow::operators::probe::Handle;
use timely::dataflow::operators::vec::Map;
use timely::dataflow::operators::{Concat, OkErr, Probe};
use timely::order::Product;
use timely::worker::Worker;

use crate::features::{Fingerprinter, Polynomials, VectorKeys, polynomials};
use crate::kernels;
use crate::operators::{
    Alike, Deal, Found, IdentityRoots, Labels, LevelClusters, Note, Owned, Ranges, Vectored, Vectors, check_rejects,
    checksums, collapse, commit, components, crawl, edges, evidence, gather, keep_roots, largest, links, own_segments,
    ranges, resolve, run_to_end, segments, tally,
};
use crate::plan::Plan;
use crate::records::{DocId, Keyed, Level};
use crate::state::{CommittedWeek, Journal, Store, Unfinished, WholeWeek, sync_folder};
use crate::stats;
use crate::summary::{LargestCluster, LevelSummary, Summary};
use crate::tables::{
    ClusterRow, DocumentRow, EvidenceRow, LargestRow, Scan, SizeRow, SummaryRow, Table, Writer, field,
};
use crate::watch::{Stage, Watch};

/// Runs the job on one of its workers; every worker of every process calls it with the same plan, after the week was begun
/// ([`Store::begin`]). Worker 0 commits the week and returns its summary.
///
/// # Errors
/// Where anything cannot be read or written, or too many records are bad. What was committed stays, and a rerun goes on from it.
pub fn cluster(worker: &mut Worker, plan: &Arc<Plan>, watch: &Arc<Watch>) -> Result<Option<Summary>> {
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
    let clustering = Clustering { plan, journal: &journal, unfinished: &unfinished, owned: &owned, watch };
    watch.enter(Stage::Collapse);
    let identity = clustering.identity(worker)?;
    watch.enter(Stage::Components);
    let (similar, neighbours) = clustering.similar(worker, &identity, &polynomials)?;
    watch.enter(Stage::Tables);
    let level = |level, roots: Vec<DocId>, worker: &mut Worker| -> Result<LevelClusters> {
        Ok(LevelClusters { level, tallies: tally(worker, &owned, &roots, watch)?, roots })
    };
    let levels = [
        level(Level::Similar, similar, worker)?,
        level(Level::Identical, identity.identical, worker)?,
        level(Level::Exact, identity.exact, worker)?,
    ];
    clustering.evidence(worker, &levels, neighbours)?;
    links(worker, plan, &journal, &owned, watch)?;
    clustering.cluster_map(&levels)?;
    let named = gather(worker, levels[0].tallies.named(), watch)?;
    let summary = clustering.statistics(worker, &levels)?;
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
struct Clustering<'a> {
    plan: &'a Arc<Plan>,
    journal: &'a Journal,
    unfinished: &'a Unfinished,
    owned: &'a Owned,
    watch: &'a Arc<Watch>,
}

impl Clustering<'_> {
    fn vectors(&self, features: bool) -> impl Fn() -> Vectors + Clone + 'static {
        let (unfinished, journal, owned) = (self.unfinished.clone(), Rc::new(self.journal.clone()), self.owned.clone());
        move || Vectors::open(&unfinished, &journal, &owned, features)
    }

    /// Cuts the key space so that `per_document` records of `size` bytes for each page with words fit in memory.
    fn ranges(&self, per_document: usize, size: usize) -> Ranges {
        let documents: u64 = self.journal.segments.iter().map(|segment| segment.features).sum();
        let peers = self.plan.peers();
        Ranges::new(documents * per_document as u64, size, peers, self.plan.worker_memory / 2 * peers as u64)
    }

    /// Collapses identical vectors.
    fn identity(&self, worker: &mut Worker) -> Result<IdentityRoots> {
        let (owned, watch) = (self.owned.clone(), self.watch);
        let checksums = Rc::new(checksums(self.unfinished, self.journal, self.owned)?);
        let kept = Rc::new(RefCell::new(IdentityRoots::new(self.owned)));
        let vectors = self.vectors(false);
        let open = move || {
            let (mut vectors, owned, checksums) = (vectors(), owned.clone(), checksums.clone());
            move |deal: &mut Deal<'_, Vectored>| {
                let Some(batch) = vectors.batch()? else { return Ok(false) };
                let width = batch.supershingles.len() / batch.docs.len().max(1);
                for (doc, vector) in batch.docs.iter().zip(batch.supershingles.chunks_exact(width)) {
                    let identical = VectorKeys::identical(vector);
                    let exact = VectorKeys::exact(vector, checksums[owned.index(*doc)]);
                    deal.deal(identical, Vectored { identical, exact, doc: *doc });
                }
                Ok(true)
            }
        };
        let probe = Handle::new();
        let grouped = probe.clone();
        let cut = self.ranges(1, size_of::<Vectored>());
        worker.dataflow::<u64, _, _>(|scope| {
            let vectors = ranges(scope, "Vectors", cut, watch, open, move |range| !grouped.less_than(&(range + 1)));
            keep_roots(collapse(vectors, watch), self.owned, &kept).probe_with(&probe);
        });
        run_to_end(worker, &probe, watch)?;
        Ok(kept.replace(IdentityRoots { identical: Vec::new(), exact: Vec::new() }))
    }

    /// Joins the representatives by megashingles: the root of every own document, and a neighbour that shows why.
    fn similar(
        &self,
        worker: &mut Worker,
        identity: &IdentityRoots,
        polynomials: &Polynomials,
    ) -> Result<(Vec<DocId>, Vec<DocId>)> {
        let (owned, watch) = (self.owned.clone(), self.watch);
        let keys = Rc::new(VectorKeys::new(&self.plan.method, polynomials));
        let cut = self.ranges(keys.count(), size_of::<Keyed>());
        let represents: Rc<Vec<bool>> =
            Rc::new(owned.docs().zip(&identity.identical).map(|(doc, root)| doc == *root).collect());
        let vectors = self.vectors(false);
        let open = move || {
            let (mut vectors, owned) = (vectors(), owned.clone());
            let (keys, represents) = (keys.clone(), represents.clone());
            move |deal: &mut Deal<'_, Keyed>| {
                let Some(batch) = vectors.batch()? else { return Ok(false) };
                let width = batch.supershingles.len() / batch.docs.len().max(1);
                for (doc, vector) in batch.docs.iter().zip(batch.supershingles.chunks_exact(width)) {
                    if represents[owned.index(*doc)] {
                        keys.megashingles(vector).for_each(|key| deal.deal(key, Keyed { key, doc: *doc }));
                    }
                }
                Ok(true)
            }
        };
        let labels = Rc::new(RefCell::new(Labels::new(self.owned)));
        let probe: Handle<Product<u64, u32>> = Handle::new();
        let grouped = probe.clone();
        worker.dataflow::<u64, _, _>(|scope| {
            let done = move |range| !grouped.less_than(&Product::new(range, u32::MAX));
            let keyed = ranges(scope, "Megashingles", cut, watch, open, done);
            components(scope, edges(keyed, watch), &labels, &probe, watch);
        });
        run_to_end(worker, &probe, watch)?;
        let labels = labels.replace(Labels::new(&Owned::new(0, 1, &[])));
        let (mut label, mut neighbour) = (labels.label, labels.neighbour);
        // A duplicate goes where its representative goes.
        for (at, (doc, root)) in self.owned.docs().zip(&identity.identical).enumerate() {
            if doc != *root {
                (label[at], neighbour[at]) = (*root, *root);
            }
        }
        Ok((resolve(worker, self.owned, label, watch)?, neighbour))
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
        let alike = evidence(worker, self.owned, asked, self.vectors(true), self.plan.worker_memory / 2, self.watch)?;
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
