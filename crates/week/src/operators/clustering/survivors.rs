//! Survivors: the vectors that are left after collapse and prune, about one in seven.
//!
//! In memory are their own numbers, and bits for which of their supershingles are shared. The
//! supershingles themselves are read again from the files when they are needed, a shard at a time:
//! that costs less than to hold them all in newly allocated memory.

use std::ops::Range;
use std::path::Path;

use anyhow::{Result, ensure};
use nigh_exchange::{BLOCK_BYTES, Block, Partition, SpillBuffer, release_spare};

use super::stage::{Clustering, VECTORS_CHANGED};
use crate::kernels::memory::advise_huge_pages;
use crate::operators::scan::{ChunkScan, VectorFiles};
use crate::structures::{BitColumns, Ownership};

/// The own vectors that are left after collapse and prune.
#[derive(Clone)]
pub struct Survivors {
    /// Their own numbers, ascending.
    pub vectors: Vec<u32>,
    /// How many of them each shard has; 0 for shards of other workers.
    pub shard_counts: Vec<u64>,
    /// How many keys they may share, summed over all of them.
    pub keys: u64,
    marks: BitColumns,
    agreements: usize,
}

impl Survivors {
    /// The own vectors that are not marked as duplicates and have at least `stage.agreements`
    /// supershingles marked as shared. Their list takes memory that was kept for blocks.
    pub fn new(stage: &Clustering, owned: &Ownership, marks: BitColumns) -> Survivors {
        let count = marks.count(stage.agreements);
        release_spare(count * size_of::<u32>());
        // The ids of survivors are looked up by this list, in any order.
        let mut vectors = Vec::with_capacity(count);
        advise_huge_pages(vectors.spare_capacity_mut());
        let shard_counts = vec![0; stage.numbering.shards()];
        let mut survivors = Survivors { vectors, shard_counts, keys: 0, marks, agreements: stage.agreements };
        for shard in owned.shards() {
            let before = survivors.vectors.len();
            let Survivors { vectors, marks, .. } = &mut survivors;
            marks.representatives(owned.of_shard(shard), stage.agreements, |vector| vectors.push(vector as u32));
            let of_shard = &survivors.vectors[before..];
            survivors.shard_counts[shard as usize] = of_shard.len() as u64;
            survivors.keys +=
                of_shard.iter().map(|vector| stage.keys.within(survivors.marks.shared(*vector as usize))).sum::<u64>();
        }
        survivors
    }

    /// The own numbers of the survivors, and those of the duplicates; both ascending.
    pub fn into_lists(self) -> (Vec<u32>, Vec<u32>) {
        (self.vectors, self.marks.duplicates())
    }

    /// Calls `each` with the survivors of a range of own vectors, in ascending order.
    fn within(&self, vectors: Range<usize>, each: impl FnMut(usize)) {
        self.marks.representatives(vectors, self.agreements, each);
    }
}

/// Reads the supershingles of survivors, shard by shard. A row is a mask of the shared
/// supershingles, by bit, then all supershingles.
pub struct SurvivorRows {
    files: VectorFiles,
    owned: Ownership,
    /// The own shards that are not read yet, the next one last.
    shards: Vec<u32>,
    /// Set while a shard is read: the scan of its files, and its own numbers that are not read yet.
    reading: Option<(ChunkScan, Range<usize>)>,
    /// The rows of the shard, as the one partition of time 0.
    spill: SpillBuffer<u64>,
    /// Rows of `shard` that are not in `spill` yet.
    pending: Vec<u64>,
    shard: u32,
    /// The block of `spill` that comes next.
    next_block: usize,
}

impl SurvivorRows {
    /// Words of a block of rows, at most.
    const WORDS: usize = BLOCK_BYTES / 8;

    /// Begins at the first own shard that has survivors. Of the rows of one shard about `memory`
    /// bytes are held in memory; the others spill to a file.
    pub fn new(
        files: &VectorFiles,
        owned: &Ownership,
        survivors: &Survivors,
        (memory, scratch): (u64, &Path),
    ) -> SurvivorRows {
        let mut shards: Vec<u32> = owned.shards().filter(|shard| survivors.shard_counts[*shard as usize] > 0).collect();
        shards.reverse();
        SurvivorRows {
            files: files.clone(),
            owned: owned.clone(),
            shards,
            reading: None,
            spill: SpillBuffer::new(scratch, memory),
            pending: Vec::with_capacity(SurvivorRows::WORDS),
            shard: 0,
            next_block: 0,
        }
    }

    /// Does the next piece of work: reads one chunk of a file; or calls `each` with all rows of a
    /// shard and the number of the block that comes next. Returns `false` when all shards are done.
    ///
    /// # Errors
    /// Where vectors cannot be read, or differ from those of the first read; and those of `each`.
    pub fn next(
        &mut self,
        survivors: &Survivors,
        each: impl FnOnce(&Partition<'_, u64>, usize) -> Result<()>,
    ) -> Result<bool> {
        if let Some((mut chunks, mut left)) = self.reading.take() {
            if let Some(chunk) = chunks.next_chunk()? {
                ensure!(chunk.rows() <= left.len(), VECTORS_CHANGED);
                let (width, first) = (self.files.width, left.start);
                left.start += chunk.rows();
                let mut pushed = Ok(());
                survivors.within(first..left.start, |vector| {
                    let supershingles = &chunk.words()[(vector - first) * width..][..width];
                    if pushed.is_ok() {
                        pushed = self.push(survivors.marks.shared(vector), supershingles);
                    }
                });
                pushed?;
                self.reading = Some((chunks, left));
            } else {
                ensure!(left.is_empty(), VECTORS_CHANGED);
                self.flush()?;
            }
        } else if let Some(rows) = self.spill.first(0).filter(|rows| self.next_block < rows.block_count()) {
            each(&rows, self.next_block)?;
            self.next_block += 1;
        } else {
            self.spill.remove_first(0);
            let Some(shard) = self.shards.pop() else { return Ok(false) };
            self.reading = Some((self.files.of_shards(&[shard]).chunks(), self.owned.of_shard(shard)));
            (self.shard, self.next_block) = (shard, 0);
        }
        Ok(true)
    }

    #[inline]
    fn push(&mut self, mask: u64, supershingles: &[u64]) -> Result<()> {
        if self.pending.len() + supershingles.len() >= SurvivorRows::WORDS {
            self.flush()?;
        }
        self.pending.push(mask);
        self.pending.extend_from_slice(supershingles);
        Ok(())
    }

    /// Moves the pending rows to the spill buffer, as one block of whole rows.
    fn flush(&mut self) -> Result<()> {
        if !self.pending.is_empty() {
            self.spill.push(0, Block::of_records(self.shard.into(), 0, 0, &self.pending).open())?;
            self.pending.clear();
        }
        Ok(())
    }
}
