//! What `nigh bench cluster`, `weeks` and `verify` share: arguments, the files of made-up vectors,
//! and the cluster stage over them as one worker sets it up.

use std::path::{Path, PathBuf};
use std::rc::Rc;

use anyhow::Result;
use clap::Args;
use indicatif::ProgressBar;
use nigh_bench::Temporary;
use nigh_bench::synthetic::{Dataset, DatasetPlan, files};
use nigh_exchange::Context;
use serde::{Deserialize, Serialize};

use crate::config::{Bytes, Config, Count, Method};
use crate::features::VectorKeys;
use crate::kernels::polynomials;
use crate::operators::clustering::Clustering;
use crate::operators::scan::VectorFiles;
use crate::structures::{Numbering, Ownership};

/// Arguments of benchmarks over made-up vectors.
#[derive(Args)]
pub(crate) struct VectorArgs {
    /// Number of documents (in each week).
    #[arg(long, value_name = "N")]
    pub documents: u64,
    /// Worker threads of each process.
    #[arg(long, default_value = "2", value_name = "N")]
    pub workers: Count,
    /// Processes on this machine.
    #[arg(long, default_value = "1", value_name = "N")]
    pub processes: Count,
    /// Memory of all processes together; half of the machine's by default.
    #[arg(long, value_name = "BYTES")]
    memory: Option<Bytes>,
    /// Folder to keep the vectors in and use them again; by default a temporary folder, removed at
    /// the end.
    #[arg(long, value_name = "DIR")]
    data: Option<PathBuf>,
    /// Print one JSON object.
    #[arg(long)]
    pub json: bool,
}

/// What a process of the benchmark may use.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct WorkerResources {
    /// Worker threads of each process.
    pub threads: usize,
    /// Memory of one worker in bytes.
    pub worker_memory: u64,
    /// The folder for buffers that do not fit in memory.
    pub scratch: PathBuf,
}

impl VectorArgs {
    /// Memory of all processes together, in bytes.
    pub fn memory(&self) -> u64 {
        self.memory.map_or_else(|| Config::default().memory(), |bytes| bytes.0)
    }

    /// What each process may use.
    pub fn resources(&self, temporary: &Temporary) -> WorkerResources {
        let workers = (self.workers.0 * self.processes.0) as u64;
        WorkerResources {
            threads: self.workers.0,
            worker_memory: self.memory() / workers,
            scratch: temporary.folder.join("scratch"),
        }
    }

    /// The folder of the vectors: `--data`, or `name` in the temporary folder.
    pub fn folder(&self, temporary: &Temporary, name: &str) -> PathBuf {
        self.data.clone().unwrap_or_else(|| temporary.folder.join(name))
    }

    /// Writes the vectors of each plan to its folder, except files that are there already, and
    /// shows a progress bar.
    ///
    /// # Errors
    /// If a folder has other files, or cannot be written.
    pub fn write(&self, plans: &[(&Path, DatasetPlan)]) -> Result<()> {
        let threads = std::thread::available_parallelism().map_or(1, usize::from);
        let documents = plans.iter().map(|(_, plan)| plan.documents).sum();
        let bar = if self.json { ProgressBar::hidden() } else { ProgressBar::new(documents) };
        for (folder, plan) in plans {
            Dataset::make(folder, plan, threads, |documents| bar.inc(documents))?;
        }
        bar.finish_and_clear();
        Ok(())
    }
}

/// The vectors that one worker owns, and the keys by which documents are grouped.
pub(crate) struct OwnedVectors {
    pub method: Method,
    /// The number of documents of every shard.
    pub rows: Vec<u64>,
    pub owned: Ownership,
    pub keys: Rc<VectorKeys>,
}

impl OwnedVectors {
    /// The part of a dataset that `worker` owns.
    pub fn new(cx: &Context, dataset: &Dataset) -> OwnedVectors {
        let method = Method::default();
        let rows = dataset.rows();
        let owned = Ownership::new(cx.index(), cx.peers(), &rows);
        let keys = Rc::new(VectorKeys::new(&method, &polynomials(method.seed, method.features)));
        OwnedVectors { method, rows, owned, keys }
    }

    /// The files of a dataset that this worker owns.
    pub fn files(&self, dataset: &Dataset) -> VectorFiles {
        files(dataset, self.owned.shards())
    }

    /// The cluster stage over these files.
    ///
    /// # Errors
    /// If the memory is too small; the message says what is needed.
    pub fn stage(
        &self,
        cx: &Context,
        files: VectorFiles,
        resources: &WorkerResources,
    ) -> Result<(Context, Clustering)> {
        let memory = Clustering::in_flight(resources.worker_memory, &self.rows, cx.peers(), 0)?;
        let stage = Clustering {
            files,
            numbering: Rc::new(Numbering::new(&self.rows)),
            keys: self.keys.clone(),
            agreements: self.method.agreements,
            threads: resources.threads,
        };
        Ok((cx.with(memory, &resources.scratch), stage))
    }
}
