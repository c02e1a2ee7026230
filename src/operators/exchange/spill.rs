//! The spill buffer: blocks that wait until their time is complete, by partition, in memory and beyond a budget in a file.
//!
//! The file is removed from its folder as soon as it is open, so the system frees its space when the process ends, in
//! whatever way. Each block is read back with one call: blocks are large enough for that.

use std::collections::BTreeMap;
use std::fs::File;
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use bytemuck::Pod;

use super::block::Block;

/// Blocks by time and partition.
pub struct SpillBuffer<R> {
    folder: PathBuf,
    /// Bytes of records that may be in memory.
    budget: u64,
    /// Bytes of records that are in memory.
    bytes: u64,
    times: BTreeMap<u64, BTreeMap<u64, Vec<WaitingBlock<R>>>>,
    spill: Option<SpillFile>,
}

/// A block that waits, and where its records are.
enum WaitingBlock<R> {
    Memory(Block<R>),
    /// In the spill file.
    File {
        offset: u64,
        length: u64,
        common: u64,
        from: u32,
    },
}

/// A file without a name, for blocks beyond the budget.
struct SpillFile {
    file: File,
    /// The name that the file had, for messages.
    path: PathBuf,
    length: u64,
    /// Blocks in the file that are still needed. When none is, the file is written from its beginning again.
    blocks: usize,
}

/// The blocks of one partition at one time; they can be read several times.
pub struct Partition<'a, R> {
    /// The number of the partition.
    pub part: u64,
    blocks: &'a [WaitingBlock<R>],
    spill: Option<&'a SpillFile>,
}

impl<R: Pod> SpillBuffer<R> {
    /// Makes a buffer that keeps up to `budget` bytes of records in memory, and the rest in a file in `folder`, which is
    /// made when it is needed.
    pub fn new(folder: &Path, budget: u64) -> SpillBuffer<R> {
        SpillBuffer { folder: folder.to_owned(), budget, bytes: 0, times: BTreeMap::new(), spill: None }
    }

    /// Adds a block of a time.
    ///
    /// # Errors
    /// Names the file that cannot be written.
    pub fn push(&mut self, time: u64, block: Block<R>) -> Result<()> {
        let (part, length) = (block.part, block.bytes().len() as u64);
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
            WaitingBlock::File { offset, length, common: block.common, from: block.from }
        };
        self.times.entry(time).or_default().entry(part).or_default().push(waiting);
        Ok(())
    }

    /// Whether a time has blocks.
    pub fn has(&self, time: u64) -> bool {
        self.times.contains_key(&time)
    }

    /// The first partition of a time that has blocks.
    pub fn first(&self, time: u64) -> Option<Partition<'_, R>> {
        let (part, blocks) = self.times.get(&time)?.first_key_value()?;
        Some(Partition { part: *part, blocks, spill: self.spill.as_ref() })
    }

    /// Drops the blocks of the first partition of a time.
    pub fn remove_first(&mut self, time: u64) {
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

impl<R: Pod> Partition<'_, R> {
    /// The number of records.
    pub fn count(&self) -> usize {
        let bytes = self.blocks.iter().map(|block| match block {
            WaitingBlock::Memory(block) => block.bytes().len(),
            WaitingBlock::File { length, .. } => *length as usize,
        });
        bytes.sum::<usize>() / size_of::<R>()
    }

    /// The number of blocks.
    pub(crate) fn len(&self) -> usize {
        self.blocks.len()
    }

    /// Calls `each` with every block, in the same order at every call. The blocks of one sender are in the order in which
    /// it dealt them.
    ///
    /// # Errors
    /// Names the file that cannot be read.
    pub fn blocks(&self, mut each: impl FnMut(&Block<R>)) -> Result<()> {
        (0..self.len()).try_for_each(|number| self.block(number, &mut each))
    }

    /// Calls `take` with one block, by its number from 0.
    ///
    /// # Errors
    /// Names the file that cannot be read.
    pub fn block<T>(&self, number: usize, take: impl FnOnce(&Block<R>) -> T) -> Result<T> {
        match (&self.blocks[number], self.spill) {
            (WaitingBlock::Memory(block), _) => Ok(take(block)),
            (WaitingBlock::File { offset, length, common, from }, Some(spill)) => {
                let mut bytes = vec![0; *length as usize];
                let failed = || format!("cannot read {length} bytes of records from {}", spill.path.display());
                spill.file.read_exact_at(&mut bytes, *offset).with_context(failed)?;
                Ok(take(&Block::of_bytes(self.part, *common, *from, &bytes).with_context(failed)?))
            }
            (WaitingBlock::File { .. }, None) => unreachable!("a block was written to a file"),
        }
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
                |block: &Block<u64>| all.push((partition.part, block.from, block.common, block.records().to_vec()));
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
                let block = Block::of_bytes(i % 5, i, (i % 3) as u32, bytemuck::cast_slice(&records)).unwrap();
                buffer.push(i % 2, block).unwrap();
            }
            assert_eq!(buffer.spill.is_some(), budget < u64::MAX);
            if let Some(spill) = &buffer.spill {
                assert_eq!(spill.file.metadata().unwrap().permissions().mode() & 0o777, 0o600);
            }
            let of_times = (all(&mut buffer, 0), all(&mut buffer, 1), all(&mut buffer, 2));
            assert_eq!(of_times.0.len() + of_times.1.len(), 600);
            assert!(of_times.2.is_empty());
            assert_eq!(
                buffer.spill.as_ref().map_or(0, |spill| spill.length),
                0,
                "the file is written from its beginning again"
            );
            assert_eq!(buffer.bytes, 0);
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
        let mut buffer = SpillBuffer::new(&path, 0);
        let error = buffer.push(0, Block::of_bytes(0, 0, 0, &[0; 8]).unwrap() as Block<u64>).unwrap_err();
        assert!(format!("{error:#}").contains("file"), "{error:#}");
    }
}
