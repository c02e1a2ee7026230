//! `nigh bench verify`: checks made-up clusters by features, beside the cluster stage that finds
//! their candidates.
//!
//! Without a check, the table `evidence` compares each candidate with its neighbour in any case:
//! that is measured by itself. What a check adds is the difference, and the clusters that it
//! splits.

use std::collections::HashMap;
use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;

use anyhow::Result;
use arrow_array::FixedSizeBinaryArray;
use clap::Args;
use nigh_bench::synthetic::{Dataset, DatasetPlan, FEATURES, Noise, SHARDS, WIDTH};
use nigh_bench::{
    AnyBench, Bench, BenchOutcome, Measure, Measured, Placement, Seconds, Temporary, WorkerCounts, WorkerResult, run,
    single_thread,
};
use nigh_exchange::Context;
use serde::{Deserialize, Serialize};

use super::setup::{OwnedVectors, VectorArgs, WorkerResources};
use crate::config::{Bytes, Count, Method, Share};
use crate::features::equal_features;
use crate::operators::clustering::{OwnClusters, clusters};
use crate::operators::output;
use crate::operators::scan::{SketchFiles, VectorRoots};
use crate::operators::verify::{CheckedFeatures, FeatureCheck, check_by_features};
use crate::records::{DocId, FeatureBits};
use crate::sheet::grouped;
use crate::state::sync_folder;
use crate::tables::{Scan, field};
use crate::watch::{Span, Stage};

/// `nigh bench verify`.
pub(super) const BENCH: AnyBench = AnyBench::of::<VerifyBenchArgs>("verify");

/// A check of made-up clusters by features, beside the stage that finds their candidates.
#[derive(Args)]
struct VerifyBenchArgs {
    #[command(flatten)]
    vectors: VectorArgs,
    /// Share of the vectors that resemble no other one of their cluster.
    #[arg(long, default_value = "0.05", value_name = "SHARE")]
    unlike: f64,
    /// The least similarity of two documents of a cluster, in percent.
    #[arg(long, default_value = "80", value_name = "PERCENT")]
    similarity: Count,
    /// Skip the check against a single thread that compares all pairs.
    #[arg(long)]
    no_check: bool,
}

/// The benchmark as each process receives it.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct VerifyTask {
    /// The folder of the vectors.
    folder: PathBuf,
    documents: u64,
    /// Equal features of two documents of a cluster, at least.
    least: u32,
    resources: WorkerResources,
}

impl VerifyTask {
    fn dataset(&self) -> Dataset {
        Dataset { folder: self.folder.clone(), documents: self.documents, shards: SHARDS }
    }
}

/// What a check counts; sums over workers, except for `doubtful`.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
struct VerifyCounts {
    /// Documents that were taken out of their clusters.
    split_off: u64,
    /// Clusters in doubt, the same at all workers.
    doubtful: u64,
}

impl WorkerCounts for VerifyCounts {
    fn merge(&mut self, other: &VerifyCounts) {
        self.split_off += other.split_off;
        self.doubtful = self.doubtful.max(other.doubtful);
    }
}

/// The figures of the benchmark.
#[derive(Serialize)]
struct VerifyReport {
    documents: u64,
    workers: usize,
    processes: usize,
    memory_bytes: u64,
    unlike: f64,
    cluster_cpu_s: f64,
    cluster_wall_s: f64,
    evidence_cpu_s: f64,
    evidence_wall_s: f64,
    check_cpu_s: f64,
    check_wall_s: f64,
    /// CPU seconds of the check without those that evidence takes in any case, over those of the
    /// cluster stage.
    added_share: f64,
    doubtful_clusters: u64,
    split_off: u64,
    checksum: String,
    labels_match: Option<bool>,
}

impl Bench for VerifyBenchArgs {
    type Task = VerifyTask;

    fn bench(&self, as_text: impl Fn(VerifyTask) -> Result<String>) -> Result<BenchOutcome> {
        let temporary = Temporary::of_process();
        let task = VerifyTask {
            folder: self.vectors.folder(&temporary, "sketches"),
            documents: self.vectors.documents,
            least: (self.similarity.0 * FEATURES).div_ceil(100) as u32,
            resources: self.vectors.resources(&temporary),
        };
        let unlike = Some(Share::try_from(self.unlike).map_err(anyhow::Error::msg)?.0);
        let plan =
            DatasetPlan { documents: task.documents, shards: SHARDS, noise: Noise::default(), change: 0.0, unlike };
        self.vectors.write(&[(&task.folder, plan)])?;
        // Writes to the disk that are still under way would disturb the measurement.
        sync_folder(&task.folder)?;
        let measured = run(&task, Placement::of(self.vectors.processes.0), as_text)?;
        let baseline = if self.no_check { None } else { Some(baseline(&task)?) };
        let report = VerifyReport::new(self, &measured, baseline);
        BenchOutcome::new(report.labels_match != Some(false), &report, self.vectors.json)
    }
}

/// The checksum of the labels that a single thread finds: all pairs of each cluster are compared.
fn baseline(task: &VerifyTask) -> Result<u64> {
    let (mut vectors, mut sketches) = (Vec::<[u64; WIDTH]>::new(), Vec::<[FeatureBits; FEATURES]>::new());
    let dataset = task.dataset();
    for shard in 0..SHARDS {
        Scan::open(dataset.path(shard), &["supershingles", "features"])?.for_each(|batch| {
            let column = |name| field::<FixedSizeBinaryArray>(batch, name);
            let (supershingles, features) = (column("supershingles")?, column("features")?);
            for row in 0..batch.num_rows() {
                vectors.push(bytemuck::pod_read_unaligned(supershingles.value(row)));
                sketches.push(bytemuck::pod_read_unaligned(features.value(row)));
            }
            Ok(())
        })?;
    }
    let candidates = single_thread::clusters(&vectors, Method::default().agreements);
    let mut members: HashMap<u32, Vec<usize>> = HashMap::new();
    candidates.iter().enumerate().for_each(|(document, root)| members.entry(*root).or_default().push(document));
    let mut labels: Vec<usize> = (0..vectors.len()).collect();
    fn root(labels: &[usize], mut document: usize) -> usize {
        while labels[document] != document {
            document = labels[document];
        }
        document
    }
    for members in members.values() {
        let mut first_of: HashMap<[u64; WIDTH], usize> = HashMap::new();
        let mut distinct: Vec<usize> = Vec::new();
        for document in members {
            match first_of.get(&vectors[*document]) {
                Some(first) => labels[*document] = *first,
                None => {
                    first_of.insert(vectors[*document], *document);
                    distinct.push(*document);
                }
            }
        }
        for (place, document) in distinct.iter().enumerate() {
            for other in &distinct[..place] {
                let (a, b) = (root(&labels, *document), root(&labels, *other));
                if a != b && equal_features(&sketches[*document], &sketches[*other]) >= task.least as usize {
                    labels[a.max(b)] = a.min(b);
                }
            }
        }
    }
    let roots = (0..labels.len()).map(|document| (document as u64, root(&labels, document) as u64));
    Ok(single_thread::checksum(roots))
}

impl VerifyReport {
    fn new(args: &VerifyBenchArgs, measured: &Measured<VerifyCounts>, baseline: Option<u64>) -> VerifyReport {
        let of = |is_counted: fn(&Span) -> bool| measured.seconds(is_counted);
        let cluster: Seconds = of(|span| ![Stage::Tables, Stage::Verify, Stage::Accuracy].contains(&span.stage));
        let (evidence, check) = (of(|span| span.stage == Stage::Tables), of(|span| span.stage == Stage::Verify));
        VerifyReport {
            documents: args.vectors.documents,
            workers: args.vectors.workers.0,
            processes: args.vectors.processes.0,
            memory_bytes: args.vectors.memory(),
            unlike: args.unlike,
            cluster_cpu_s: cluster.cpu,
            cluster_wall_s: cluster.wall,
            evidence_cpu_s: evidence.cpu,
            evidence_wall_s: evidence.wall,
            check_cpu_s: check.cpu,
            check_wall_s: check.wall,
            added_share: (check.cpu - evidence.cpu) / cluster.cpu.max(1e-9),
            doubtful_clusters: measured.counts.doubtful,
            split_off: measured.counts.split_off,
            checksum: format!("{:016x}", measured.checksum),
            labels_match: baseline.map(|baseline| baseline == measured.checksum),
        }
    }
}

impl Measure for VerifyTask {
    type Counts = VerifyCounts;

    fn threads(&self) -> usize {
        self.resources.threads
    }

    fn measure(&self, cx: &mut Context) -> Result<WorkerResult<VerifyCounts>> {
        let dataset = self.dataset();
        let vectors = OwnedVectors::new(cx, &dataset);
        let owned = &vectors.owned;
        let vector_files = vectors.files(&dataset);
        let (mut cx, stage) = vectors.stage(cx, vector_files.clone(), &self.resources)?;
        let cx = &mut cx;
        let docs: Arc<Vec<DocId>> = Arc::new(owned.docs().collect());
        cx.barrier()?;
        let OwnClusters { duplicates, survivors, .. } = clusters(cx, &stage, {
            let docs = docs.clone();
            move |vector| docs[vector].to_table() as u64
        })?;
        let doc = |id: u64| DocId::from_table(id as i64);
        let mut candidates = VectorRoots { similar: docs.to_vec(), identical: docs.to_vec() };
        let mut neighbours = docs.to_vec();
        for (vector, root, neighbour) in survivors.iter().chain(duplicates.iter()) {
            (candidates.similar[vector as usize], neighbours[vector as usize]) = (doc(root), doc(neighbour));
        }
        for (vector, _, same) in duplicates.iter() {
            candidates.identical[vector as usize] = doc(same);
        }
        let sketches = SketchFiles::new(vector_files.clone(), FEATURES);

        // What evidence takes in any case.
        cx.barrier()?;
        cx.enter(Stage::Tables);
        let compared = docs.iter().enumerate().map(|(number, doc)| {
            let is_settled = candidates.similar[number] == *doc || candidates.identical[number] != *doc;
            if is_settled { *doc } else { neighbours[number] }
        });
        output::evidence(cx, owned, compared.collect(), &sketches, self.resources.worker_memory / 2)?;

        cx.barrier()?;
        cx.enter(Stage::Verify);
        let cx = &mut cx.with(self.resources.worker_memory, &self.resources.scratch);
        let check = FeatureCheck {
            owned,
            candidates: &candidates,
            neighbours: &neighbours,
            features: FEATURES,
            least: self.least,
            sketches: &sketches,
        };
        let CheckedFeatures { split, doubtful, .. } = check_by_features(cx, &check, |_| true)?;
        cx.barrier()?;
        cx.enter(Stage::Accuracy);
        let number = |doc: DocId| stage.numbering.first(doc.shard()) + doc.row();
        let labels = docs.iter().zip(&split.roots.similar).map(|(doc, root)| (number(*doc), number(*root)));
        let checksum = single_thread::checksum(labels);
        let split_off = candidates.similar.iter().zip(&split.roots.similar).filter(|(before, after)| before != after);
        let counts = VerifyCounts { split_off: split_off.count() as u64, doubtful: doubtful.len() as u64 };
        Ok(WorkerResult { counts, checksum })
    }
}

impl fmt::Display for VerifyReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(
            f,
            "{} documents, {} process(es) of {} worker(s), memory {}; {} of the vectors unlike",
            grouped(self.documents),
            self.processes,
            self.workers,
            Bytes(self.memory_bytes),
            self.unlike
        )?;
        writeln!(f, "{:<14} {:>9} {:>9} {:>12}", "phase", "seconds", "CPU s", "CPU ns/doc")?;
        for (name, wall, cpu) in [
            ("clusters", self.cluster_wall_s, self.cluster_cpu_s),
            ("evidence", self.evidence_wall_s, self.evidence_cpu_s),
            ("check", self.check_wall_s, self.check_cpu_s),
        ] {
            writeln!(f, "{name:<14} {wall:>9.3} {cpu:>9.3} {:>12.1}", cpu * 1e9 / self.documents.max(1) as f64)?;
        }
        writeln!(
            f,
            "the check takes {:.1}% of the clusters' CPU time more than evidence takes without it",
            100.0 * self.added_share
        )?;
        writeln!(
            f,
            "{} clusters in doubt, {} documents split off; checksum of labels {}",
            grouped(self.doubtful_clusters),
            grouped(self.split_off),
            self.checksum
        )?;
        if let Some(same) = self.labels_match {
            let same = if same { "the same labels" } else { "THE LABELS DIFFER: a fault in this program" };
            writeln!(f, "one thread, all pairs of each cluster: {same}")?;
        }
        Ok(())
    }
}
