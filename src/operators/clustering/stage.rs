//! The parameters, the memory and the statistics of the clustering stage.

use std::path::PathBuf;
use std::rc::Rc;
use std::sync::Arc;

use anyhow::{Result, ensure};
use bytemuck::Pod;

use crate::features::VectorKeys;
use crate::operators::exchange::SpillBuffer;
use crate::operators::in_process::InProcess;
use crate::operators::scan::{VectorChunk, VectorFiles};
use crate::structures::{Numbering, Ownership};
use crate::watch::Watch;

/// What the stage works on, as one worker sees it.
#[derive(Clone)]
pub struct Clustering {
    /// The own vectors.
    pub files: VectorFiles,
    /// The vectors of all shards.
    pub numbering: Rc<Numbering>,
    /// How documents meet.
    pub keys: Rc<VectorKeys>,
    /// Supershingles in which documents of a cluster agree.
    pub agreements: usize,
    /// Bytes for the records in flight.
    pub memory: u64,
    /// Where blocks go that memory does not hold.
    pub scratch: PathBuf,
    /// What the workers of this process share.
    pub shared: Arc<InProcess>,
    /// Worker threads of each process.
    pub threads: usize,
    /// Counters, and failures.
    pub watch: Arc<Watch>,
}

/// What a worker did; sums over workers, but for `rounds`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ClusterStats {
    /// Vectors that are the same as a smaller one.
    pub duplicates: u64,
    /// Vectors that were compared.
    pub survivors: u64,
    /// Records of survivors under their keys.
    pub pair_records: u64,
    /// Edges of stars.
    pub edges: u64,
    /// Edges of the processes' forests.
    pub forest_edges: u64,
    /// Rounds of label propagation: the most of any worker.
    pub rounds: u64,
}

/// Bytes that last for each own vector, at the worst moment of a usual crawl, eight of them for its name.
const LASTING: u64 = 20;
/// Bytes in flight for each own vector with which the stage still goes on well.
const LEAST: u64 = 4;

/// What is said where the vectors are other ones when they are read again.
pub(crate) const CHANGED: &str = "the vectors of this week changed while they were read";

/// Whether a piece of own vectors begins where the one before it ended, or all were read where it is none.
pub(crate) fn is_expected(chunk: Option<&VectorChunk>, before: usize, owned: &Ownership) -> bool {
    match chunk {
        Some(chunk) => {
            let of_shard = owned.of_shard(chunk.shard);
            of_shard.start + chunk.first as usize == before && before + chunk.rows() <= of_shard.end
        }
        None => before == owned.len(),
    }
}

impl Clustering {
    /// What is left for the records in flight of `memory` bytes that each of `peers` workers has, given the vectors
    /// of every shard: the same for all of them, since all must cut the keys alike.
    ///
    /// # Errors
    /// Where it is too little; says what is needed.
    pub fn in_flight(memory: u64, rows: &[u64], peers: usize) -> Result<u64> {
        let most = (0..peers).map(|worker| rows.iter().skip(worker).step_by(peers).sum()).max().unwrap_or(0u64);
        let least = (LASTING + LEAST) * most;
        ensure!(
            memory >= least,
            "the clusters of {most} pages need at least {} MiB of memory for their worker, and it may use {} MiB: raise `memory` in the \
             config, or use more machines; what was read is kept, and the same command goes on from there",
            least.div_ceil(1 << 20),
            memory >> 20,
        );
        Ok(memory - LASTING * most)
    }

    /// A stash of records in flight.
    pub(crate) fn stash<R: Pod>(&self) -> SpillBuffer<R> {
        SpillBuffer::new(&self.scratch, self.memory)
    }
}
