//! Kept records: those that a worker makes now and deals later, in order; beyond a budget they wait
//! in a file.

use std::path::Path;

use anyhow::Result;
use bytemuck::Pod;

use super::spill::SpillBuffer;
use crate::blocks::block::Block;

/// Records of a block.
const BLOCK: usize = 1 << 10;

/// Records of one worker, which can be read several times.
///
/// ```
/// use nigh_exchange::KeptRecords;
///
/// # let folder = tempfile::tempdir()?;
/// // A budget of 100 bytes: the rest goes to a file.
/// let mut kept = KeptRecords::new(folder.path(), 100);
/// (0..5000u64).try_for_each(|number| kept.push(number))?;
/// let mut read = Vec::new();
/// for block in 0..kept.blocks() {
///     kept.block(block, |records| read.extend_from_slice(records))?;
/// }
/// assert!(read.into_iter().eq(0..5000));
/// # Ok::<(), anyhow::Error>(())
/// ```
pub struct KeptRecords<R> {
    full: SpillBuffer<R>,
    blocks: usize,
    /// The last records, fewer than a block.
    rest: Vec<R>,
}

impl<R: Pod> KeptRecords<R> {
    /// No records; they take at most `budget` bytes of memory, and the rest goes to a file in
    /// `folder`, which is made when it is needed.
    pub fn new(folder: &Path, budget: u64) -> KeptRecords<R> {
        KeptRecords { full: SpillBuffer::new(folder, budget), blocks: 0, rest: Vec::new() }
    }

    /// Adds a record.
    ///
    /// # Errors
    /// Names the file that cannot be written.
    #[inline]
    pub fn push(&mut self, record: R) -> Result<()> {
        self.rest.push(record);
        if self.rest.len() < BLOCK { Ok(()) } else { self.close() }
    }

    #[cold]
    fn close(&mut self) -> Result<()> {
        self.full.push(0, Block::of_records(0, 0, 0, &self.rest).open())?;
        self.blocks += 1;
        self.rest.clear();
        Ok(())
    }

    /// The number of records.
    pub fn len(&self) -> usize {
        self.blocks * BLOCK + self.rest.len()
    }

    /// Whether there are no records.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The number of blocks, in which the records are read.
    pub fn blocks(&self) -> usize {
        self.blocks + 1
    }

    /// Calls `take` with the records of one block, by its number from 0; the last one may have
    /// none.
    ///
    /// # Errors
    /// Names the file that cannot be read.
    pub fn block<T>(&self, number: usize, take: impl FnOnce(&[R]) -> T) -> Result<T> {
        match self.full.first(0) {
            Some(full) if number < self.blocks => full.block(number, |block| take(block.records())),
            _ => Ok(take(&self.rest)),
        }
    }
}
