//! The spill buffer: blocks that wait until their time is complete, by partition, in memory and
//! beyond a budget in a file.
//!
//! The file is removed from its folder as soon as it is open, so the system frees its space when
//! the process ends, in whatever way. Each block is read back with one call: blocks are large
//! enough for that.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fs::File;
use std::marker::PhantomData;
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use bytemuck::Pod;

use crate::blocks::block::{Block, BlockOf, RecordLayout};

/// Blocks by time and partition, whose records are of the type `R`.
pub struct SpillBuffer<R> {
    waiting: WaitingBlocks,
    records: PhantomData<R>,
}

/// Blocks by time and partition.
pub(crate) struct WaitingBlocks {
    folder: PathBuf,
    /// Bytes of records that may be in memory.
    budget: u64,
    /// Bytes of records that are in memory.
    bytes: u64,
    times: BTreeMap<u64, BTreeMap<u64, Vec<WaitingBlock>>>,
    spill: Option<SpillFile>,
}

/// A block that waits, and where its records are.
enum WaitingBlock {
    Memory(Block),
    /// In the spill file.
    File {
        offset: u64,
        length: u64,
        common: u64,
        from: u32,
        record: RecordLayout,
    },
}

/// A file without a name, for blocks beyond the budget.
struct SpillFile {
    file: File,
    /// The name that the file had, for messages.
    path: PathBuf,
    length: u64,
    /// Blocks in the file that are still needed. When none is, the file is written from its
    /// beginning again.
    blocks: usize,
}

/// The blocks of one partition at one time; they can be read several times.
pub struct Partition<'a, R> {
    /// The number of the partition.
    pub part: u64,
    waiting: WaitingPartition<'a>,
    records: PhantomData<R>,
}

/// The blocks of one partition at one time, which do not know the type of their records.
#[derive(Clone, Copy)]
pub(crate) struct WaitingPartition<'a> {
    pub(crate) part: u64,
    blocks: &'a [WaitingBlock],
    spill: Option<&'a SpillFile>,
}

impl<R: Pod> SpillBuffer<R> {
    /// Makes a buffer that keeps up to `budget` bytes of records in memory, and the rest in a file
    /// in `folder`, which is made when it is needed.
    pub fn new(folder: &Path, budget: u64) -> SpillBuffer<R> {
        let waiting =
            WaitingBlocks { folder: folder.to_owned(), budget, bytes: 0, times: BTreeMap::new(), spill: None };
        SpillBuffer { waiting, records: PhantomData }
    }

    /// The blocks without the type of their records.
    pub(crate) fn into_waiting(self) -> WaitingBlocks {
        self.waiting
    }

    /// Adds a block of a time.
    ///
    /// # Errors
    /// Names the file that cannot be written.
    pub fn push(&mut self, time: u64, block: BlockOf<R>) -> Result<()> {
        self.waiting.push(time, block.into_block())
    }

    /// The first partition of a time that has blocks.
    pub fn first(&self, time: u64) -> Option<Partition<'_, R>> {
        self.waiting.first(time).map(Partition::of)
    }

    /// Drops the blocks of the first partition of a time.
    pub fn remove_first(&mut self, time: u64) {
        self.waiting.remove_first(time);
    }
}

impl WaitingBlocks {
    pub(crate) fn push(&mut self, time: u64, block: Block) -> Result<()> {
        let (part, length) = (block.part, block.bytes().len() as u64);
        // What is in memory stays there: only blocks that come when it is full go to the file.
        let waiting = if self.bytes + length <= self.budget {
            self.bytes += length;
            WaitingBlock::Memory(block)
        } else {
            let spill = match &mut self.spill {
                Some(spill) => spill,
                none => none.insert(SpillFile::create(&self.folder)?),
            };
            let offset = spill.length;
            spill
                .file
                .write_all_at(block.bytes(), offset)
                .with_context(|| format!("cannot write {} bytes of records to {}", length, spill.path.display()))?;
            spill.length += length;
            spill.blocks += 1;
            WaitingBlock::File { offset, length, common: block.common, from: block.from, record: block.record }
        };
        self.times.entry(time).or_default().entry(part).or_default().push(waiting);
        Ok(())
    }

    pub(crate) fn first(&self, time: u64) -> Option<WaitingPartition<'_>> {
        let (part, blocks) = self.times.get(&time)?.first_key_value()?;
        Some(WaitingPartition { part: *part, blocks, spill: self.spill.as_ref() })
    }

    pub(crate) fn remove_first(&mut self, time: u64) {
        let Some(partitions) = self.times.get_mut(&time) else { return };
        let blocks = partitions.pop_first().map(|(_, blocks)| blocks).unwrap_or_default();
        if partitions.is_empty() {
            self.times.remove(&time);
        }
        for block in blocks {
            match block {
                WaitingBlock::Memory(block) => self.bytes -= block.bytes().len() as u64,
                WaitingBlock::File { .. } => {
                    if let Some(spill) = &mut self.spill {
                        spill.blocks -= 1;
                        if spill.blocks == 0 {
                            spill.length = 0;
                        }
                    }
                }
            }
        }
    }
}

impl SpillFile {
    fn create(folder: &Path) -> Result<SpillFile> {
        let failed = || format!("cannot make a spill file in {}", folder.display());
        std::fs::create_dir_all(folder).with_context(failed)?;
        for attempt in 0u32.. {
            let path = folder.join(format!("records-{}-{attempt}.spill", std::process::id()));
            match File::options().read(true).write(true).create_new(true).mode(0o600).open(&path) {
                Ok(file) => {
                    std::fs::remove_file(&path).with_context(failed)?;
                    return Ok(SpillFile { file, path, length: 0, blocks: 0 });
                }
                Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => {}
                Err(error) => return Err(error).with_context(failed),
            }
        }
        anyhow::bail!("{}: all names are in use", failed())
    }
}

impl WaitingPartition<'_> {
    /// Bytes of all records.
    fn bytes(&self) -> usize {
        let bytes = self.blocks.iter().map(|block| match block {
            WaitingBlock::Memory(block) => block.bytes().len(),
            WaitingBlock::File { length, .. } => *length as usize,
        });
        bytes.sum()
    }

    /// A block by its number, from memory or from the file.
    fn block(&self, number: usize) -> Result<Cow<'_, Block>> {
        match (&self.blocks[number], self.spill) {
            (WaitingBlock::Memory(block), _) => Ok(Cow::Borrowed(block)),
            (WaitingBlock::File { offset, length, common, from, record }, Some(spill)) => {
                let mut bytes = vec![0; *length as usize];
                let failed = || format!("cannot read {length} bytes of records from {}", spill.path.display());
                spill.file.read_exact_at(&mut bytes, *offset).with_context(failed)?;
                let block = Block::of_bytes(self.part, *common, *from, *record, &bytes).with_context(failed)?;
                Ok(Cow::Owned(block))
            }
            (WaitingBlock::File { .. }, None) => unreachable!("a block was written to a file"),
        }
    }
}

impl<'a, R: Pod> Partition<'a, R> {
    /// A partition whose records are of the type `R`.
    pub(crate) fn of(waiting: WaitingPartition<'a>) -> Partition<'a, R> {
        Partition { part: waiting.part, waiting, records: PhantomData }
    }

    /// The number of records.
    pub fn count(&self) -> usize {
        self.waiting.bytes() / size_of::<R>()
    }

    /// The number of blocks.
    pub fn block_count(&self) -> usize {
        self.waiting.blocks.len()
    }

    /// Calls `each` with every block, in the same order at every call. The blocks of one sender are
    /// in the order in which it dealt them.
    ///
    /// # Errors
    /// Names the file that cannot be read.
    pub fn blocks(&self, mut each: impl FnMut(&BlockOf<R>)) -> Result<()> {
        (0..self.block_count()).try_for_each(|number| self.block(number, &mut each))
    }

    /// Calls `take` with one block, by its number from 0.
    ///
    /// # Errors
    /// Names the file that cannot be read.
    pub fn block<T>(&self, number: usize, take: impl FnOnce(&BlockOf<R>) -> T) -> Result<T> {
        Ok(take(self.waiting.block(number)?.view()))
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    fn all(buffer: &mut SpillBuffer<u64>, time: u64) -> Vec<(u64, u32, u64, Vec<u64>)> {
        let mut all = Vec::new();
        let mut add = |partition: &Partition<'_, u64>| {
            let add =
                |block: &BlockOf<u64>| all.push((partition.part, block.from, block.common, block.records().to_vec()));
            partition.blocks(add).unwrap();
        };
        while let Some(partition) = buffer.first(time) {
            // A partition can be read several times.
            (0..2).for_each(|_| add(&partition));
            buffer.remove_first(time);
        }
        all
    }

    #[test]
    fn blocks_from_the_file_equal_blocks_from_memory() {
        let folder = tempfile::tempdir().unwrap();
        let mut of_budgets = Vec::new();
        for budget in [u64::MAX, 2000, 0] {
            let mut buffer = SpillBuffer::new(&folder.path().join("scratch"), budget);
            for i in 0..300u64 {
                let records: Vec<u64> = (0..i % 7 + 1).map(|record| i * 100 + record).collect();
                let block = Block::of_records(i % 5, i, (i % 3) as u32, &records).open();
                buffer.push(i % 2, block).unwrap();
            }
            assert_eq!(buffer.waiting.spill.is_some(), budget < u64::MAX);
            if let Some(spill) = &buffer.waiting.spill {
                assert_eq!(spill.file.metadata().unwrap().permissions().mode() & 0o777, 0o600);
            }
            let of_times = (all(&mut buffer, 0), all(&mut buffer, 1), all(&mut buffer, 2));
            assert_eq!(of_times.0.len() + of_times.1.len(), 600);
            assert!(of_times.2.is_empty());
            assert_eq!(
                buffer.waiting.spill.as_ref().map_or(0, |spill| spill.length),
                0,
                "the file is written from its beginning again"
            );
            assert_eq!(buffer.waiting.bytes, 0);
            of_budgets.push(of_times);
        }
        assert!(of_budgets.windows(2).all(|pair| pair[0] == pair[1]));
        let files = std::fs::read_dir(folder.path().join("scratch")).unwrap().count();
        assert_eq!(files, 0, "the file has no name");
    }

    #[test]
    fn a_folder_that_cannot_be_written_is_named() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("file");
        std::fs::write(&path, "").unwrap();
        let mut buffer: SpillBuffer<u64> = SpillBuffer::new(&path, 0);
        let error = buffer.push(0, Block::of_records(0, 0, 0, &[0u64]).open()).unwrap_err();
        assert!(format!("{error:#}").contains("file"), "{error:#}");
    }
}
