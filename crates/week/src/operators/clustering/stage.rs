//! The parameters, the memory and the statistics of the clustering stage.

use std::rc::Rc;

use anyhow::{Result, ensure};
use nigh_exchange::Context;

use crate::features::VectorKeys;
use crate::operators::scan::{VectorChunk, VectorFiles};
use crate::structures::{Numbering, Ownership};

/// The input and the parameters of the clustering stage, for one worker.
#[derive(Clone)]
pub struct Clustering {
    /// The files of the own vectors.
    pub files: VectorFiles,
    /// Numbers the vectors of all shards.
    pub numbering: Rc<Numbering>,
    /// Makes the keys under which documents are grouped.
    pub keys: Rc<VectorKeys>,
    /// Supershingles in which two linked documents agree at least.
    pub agreements: usize,
    /// Worker threads of each process.
    pub threads: usize,
}

/// What one worker did. Over workers these are summed, except `rounds`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ClusterStats {
    /// Vectors that are identical to one with a smaller number.
    pub duplicates: u64,
    /// Vectors that were left after collapse and prune.
    pub survivors: u64,
    /// Records (key, survivor) that were sent.
    pub pair_records: u64,
    /// Edges that were joined in the process' union-find.
    pub edges: u64,
    /// Edges of the processes' union-finds: one for each survivor that is not a root in its
    /// process.
    pub forest_edges: u64,
    /// Rounds of label propagation; over workers, the maximum.
    pub rounds: u64,
}

/// Peak bytes retained for each own vector on a typical crawl, besides what the caller keeps. 5.4
/// were seen for 100 million made-up vectors, and 6.8 for a billion.
const RETAINED_BYTES: u64 = 8;
/// Bytes in flight for each own vector, at least, for the stage to run well.
const LEAST_IN_FLIGHT: u64 = 4;
/// Bytes retained for each duplicate while records are in flight: its own number and the number of
/// the smallest identical vector.
const DUPLICATE_BYTES: u64 = 12;
/// The part of [`RETAINED_BYTES`] that is set aside for duplicates: one vector in four.
const FOR_DUPLICATES: u64 = 3;

/// Error: two reads of the same files gave different vectors.
pub(crate) const VECTORS_CHANGED: &str = "the vectors of this week changed while they were read";

/// Checks that the next chunk of own vectors begins where the chunk before it ended: `read` vectors
/// were read so far. Where there is no next chunk, all own vectors must have been read.
///
/// # Errors
/// Where it is not so: [`VECTORS_CHANGED`].
pub(crate) fn check_next(chunk: Option<&VectorChunk>, read: usize, owned: &Ownership) -> Result<()> {
    let follows = match chunk {
        Some(chunk) => {
            let of_shard = owned.of_shard(chunk.shard);
            of_shard.start + chunk.first as usize == read && read + chunk.rows() <= of_shard.end
        }
        None => read == owned.len(),
    };
    ensure!(follows, VECTORS_CHANGED);
    Ok(())
}

impl Clustering {
    /// Returns the bytes that each worker may use for records in flight, of the `memory` bytes that
    /// it has. The caller keeps `kept` bytes for each own vector, such as its id.
    ///
    /// `rows` are the vectors of every shard. The result is the same for all of the `peers`
    /// workers, those with fewer vectors too, since all must cut the keys into the same ranges.
    ///
    /// ```
    /// use nigh_week::operators::clustering::Clustering;
    ///
    /// // Four workers with 1 GiB each; the first has a million vectors, for which 8 bytes each are retained, and 8 by the caller.
    /// let in_flight = Clustering::in_flight(1 << 30, &[1_000_000, 10, 10, 10], 4, 8).unwrap();
    /// assert_eq!(in_flight, (1 << 30) - 16_000_000);
    /// ```
    ///
    /// # Errors
    /// Where the memory is too small; the message says how much is needed.
    pub fn in_flight(memory: u64, rows: &[u64], peers: usize, kept: u64) -> Result<u64> {
        let vectors = (0..peers).map(|worker| rows.iter().skip(worker).step_by(peers).sum()).max().unwrap_or(0u64);
        let retained = (RETAINED_BYTES + kept) * vectors;
        let needed = retained + LEAST_IN_FLIGHT * vectors;
        ensure!(
            memory >= needed,
            "to cluster {vectors} pages a worker needs at least {} MiB of memory, but may use only {} MiB: raise `memory` in \
             the config, or use more machines; what was read is kept, and the same command continues from there",
            needed.div_ceil(1 << 20),
            memory >> 20,
        );
        Ok(memory - retained)
    }

    /// Reduces the memory in flight by what duplicates take beyond the reserve for them. All
    /// workers use the smallest result.
    ///
    /// # Errors
    /// If a worker of this process failed.
    pub(crate) fn for_duplicates(cx: &mut Context, duplicates: u64, vectors: u64) -> Result<Context> {
        let memory = cx.min(left_beside(cx.memory(), duplicates, vectors))?;
        Ok(cx.with(memory, cx.scratch()))
    }
}

/// What is left of the memory in flight, if so many of the worker's own vectors are duplicates.
fn left_beside(memory: u64, duplicates: u64, vectors: u64) -> u64 {
    let beyond = (DUPLICATE_BYTES * duplicates).saturating_sub(FOR_DUPLICATES * vectors);
    memory.saturating_sub(beyond).max(memory.min(LEAST_IN_FLIGHT * vectors))
}
