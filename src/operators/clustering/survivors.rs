//! Survivors: representatives that may agree with others, about one vector in seven.
//!
//! Which they are is kept, and which of their supershingles are shared. The supershingles themselves are read once more
//! when they are needed, a shard at a time: that costs less than to have them all in fresh memory.

use std::ops::Range;

use anyhow::{Result, ensure};

use super::stage::{CHANGED, Clustering};
use crate::kernels::memory::advise_huge_pages;
use crate::operators::exchange::{BLOCK_BYTES, Block, Partition, SpillBuffer, release_spare};
use crate::operators::scan::{ChunkScan, VectorFiles};
use crate::structures::{BitColumns, Ownership};

/// Representatives that may agree with others.
#[derive(Clone)]
pub struct Survivors {
    /// Which of the own vectors they are, ascending.
    pub own: Vec<u32>,
    /// How many each shard has; 0 for shards of other workers.
    pub of_shards: Vec<u64>,
    /// Records that they have under their keys.
    pub records: u64,
    marks: BitColumns,
    agreements: usize,
}

impl Survivors {
    /// Those of the own vectors of which enough supershingles are marked as shared. Their list takes memory that is kept for
    /// blocks.
    pub fn new(stage: &Clustering, owned: &Ownership, marks: BitColumns) -> Survivors {
        let count = marks.count(stage.agreements);
        release_spare(count * size_of::<u32>());
        // Names are looked up by it in any order.
        let mut own = Vec::with_capacity(count);
        advise_huge_pages(own.spare_capacity_mut());
        let of_shards = vec![0; stage.numbering.shards()];
        let mut survivors = Survivors { own, of_shards, records: 0, marks, agreements: stage.agreements };
        for shard in owned.shards() {
            let before = survivors.own.len();
            let Survivors { own, marks, .. } = &mut survivors;
            marks.representatives(owned.of_shard(shard), stage.agreements, |vector| own.push(vector as u32));
            let of_shard = &survivors.own[before..];
            survivors.of_shards[shard as usize] = of_shard.len() as u64;
            survivors.records +=
                of_shard.iter().map(|own| stage.keys.within(survivors.marks.shared(*own as usize))).sum::<u64>();
        }
        survivors
    }

    /// Which of the own vectors they are, and which are duplicates; both ascending.
    pub fn into_lists(self) -> (Vec<u32>, Vec<u32>) {
        (self.own, self.marks.duplicates())
    }

    /// Calls `each` with those of some own vectors that are survivors, in ascending order.
    fn among(&self, vectors: Range<usize>, each: impl FnMut(usize)) {
        self.marks.representatives(vectors, self.agreements, each);
    }
}

/// Goes over the rows of survivors, shard by shard. A row is a mask of the shared supershingles, by bit, then all
/// supershingles.
pub struct SurvivorRows {
    files: VectorFiles,
    owned: Ownership,
    /// The own shards that are not read yet, the next one last.
    shards: Vec<u32>,
    /// The shard that is read, and those of its own vectors that are not.
    reading: Option<(ChunkScan, Range<usize>)>,
    /// The rows of a shard: a partition of time 0.
    stash: SpillBuffer<u64>,
    /// Rows on their way there, and their shard.
    words: Vec<u64>,
    shard: u32,
    /// Which block of them comes next.
    at: usize,
}

impl SurvivorRows {
    const WORDS: usize = BLOCK_BYTES / 8;

    /// Goes over the rows of survivors among the own vectors. Of those of one shard about `memory` bytes are in memory, and
    /// the others in a file.
    pub fn new(stage: &Clustering, owned: &Ownership, survivors: &Survivors, memory: u64) -> SurvivorRows {
        let mut shards: Vec<u32> = owned.shards().filter(|shard| survivors.of_shards[*shard as usize] > 0).collect();
        shards.reverse();
        SurvivorRows {
            files: stage.files.clone(),
            owned: owned.clone(),
            shards,
            reading: None,
            stash: SpillBuffer::new(&stage.scratch, memory),
            words: Vec::with_capacity(SurvivorRows::WORDS),
            shard: 0,
            at: 0,
        }
    }

    /// Reads a piece of a file, or calls `each` with the rows of a shard and one of their blocks after the other. Tells
    /// whether there was any more.
    ///
    /// # Errors
    /// Where vectors cannot be read, or are other ones than before; and those of `each`.
    pub fn next(
        &mut self,
        survivors: &Survivors,
        each: impl FnOnce(&Partition<'_, u64>, usize) -> Result<()>,
    ) -> Result<bool> {
        if let Some((mut chunks, mut left)) = self.reading.take() {
            if let Some(chunk) = chunks.next()? {
                ensure!(chunk.rows() <= left.len(), CHANGED);
                let (width, first) = (self.files.width, left.start);
                left.start += chunk.rows();
                let mut pushed = Ok(());
                survivors.among(first..left.start, |vector| {
                    let supershingles = &chunk.words()[(vector - first) * width..][..width];
                    if pushed.is_ok() {
                        pushed = self.push(survivors.marks.shared(vector), supershingles);
                    }
                });
                pushed?;
                self.reading = Some((chunks, left));
            } else {
                ensure!(left.is_empty(), CHANGED);
                self.flush()?;
            }
        } else if let Some(rows) = self.stash.first(0).filter(|rows| self.at < rows.len()) {
            each(&rows, self.at)?;
            self.at += 1;
        } else {
            self.stash.remove_first(0);
            let Some(shard) = self.shards.pop() else { return Ok(false) };
            self.reading = Some((self.files.of_shards(&[shard]).chunks(), self.owned.of_shard(shard)));
            (self.shard, self.at) = (shard, 0);
        }
        Ok(true)
    }

    #[inline]
    fn push(&mut self, mask: u64, supershingles: &[u64]) -> Result<()> {
        if self.words.len() + supershingles.len() >= SurvivorRows::WORDS {
            self.flush()?;
        }
        self.words.push(mask);
        self.words.extend_from_slice(supershingles);
        Ok(())
    }

    /// Puts rows to the stash, as a block of whole rows.
    fn flush(&mut self) -> Result<()> {
        if !self.words.is_empty() {
            self.stash.push(0, Block::of_records(self.shard.into(), 0, 0, &self.words))?;
            self.words.clear();
        }
        Ok(())
    }
}
