//! Blocks that wait for their time to be over, by partition: in memory, and past a budget in a file.
//!
//! The file is taken out of its folder as soon as it is made, so that nothing is left of it when the process ends,
//! however that comes about. Each block is read back by itself: blocks are large enough for it.

use std::collections::BTreeMap;
use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use bytemuck::Pod;

use super::block::Block;

/// Blocks by time and partition.
pub struct SpillBuffer<R> {
    folder: PathBuf,
    /// Bytes of records that may be in memory.
    budget: u64,
    bytes: u64,
    times: BTreeMap<u64, BTreeMap<u64, Vec<SpilledBlock<R>>>>,
    file: Option<Spill>,
}

/// One block of a partition.
enum SpilledBlock<R> {
    Memory(Block<R>),
    /// Records in the spill file.
    File {
        at: u64,
        length: u64,
        common: u64,
        from: u32,
    },
}

struct Spill {
    file: File,
    path: PathBuf,
    length: u64,
    /// Blocks in the file that are not let go of yet; without any it is written from its beginning again.
    blocks: usize,
}

/// The records of one partition, which may be gone over several times.
pub struct Partition<'a, R> {
    /// Its number.
    pub part: u64,
    blocks: &'a [SpilledBlock<R>],
    file: Option<&'a Spill>,
}

impl<R: Pod> SpillBuffer<R> {
    /// A stash that keeps about `budget` bytes in memory, and the rest in a file of `folder`.
    pub fn new(folder: &Path, budget: u64) -> SpillBuffer<R> {
        SpillBuffer { folder: folder.to_owned(), budget, bytes: 0, times: BTreeMap::new(), file: None }
    }

    /// Adds a block.
    ///
    /// # Errors
    /// Names the file that cannot be written.
    pub fn push(&mut self, time: u64, block: Block<R>) -> Result<()> {
        let (part, length) = (block.part, block.bytes().len() as u64);
        let held = if self.bytes + length <= self.budget {
            self.bytes += length;
            SpilledBlock::Memory(block)
        } else {
            let spill = match &mut self.file {
                Some(spill) => spill,
                none => none.insert(Spill::create(&self.folder)?),
            };
            let at = spill.length;
            spill
                .file
                .write_all_at(block.bytes(), at)
                .with_context(|| format!("cannot write {} bytes of records to {}", length, spill.path.display()))?;
            spill.length += length;
            spill.blocks += 1;
            SpilledBlock::File { at, length, common: block.common, from: block.from }
        };
        self.times.entry(time).or_default().entry(part).or_default().push(held);
        Ok(())
    }

    /// Whether a time has blocks.
    pub fn has(&self, time: u64) -> bool {
        self.times.contains_key(&time)
    }

    /// The first partition of a time.
    pub fn first(&self, time: u64) -> Option<Partition<'_, R>> {
        let (part, blocks) = self.times.get(&time)?.first_key_value()?;
        Some(Partition { part: *part, blocks, file: self.file.as_ref() })
    }

    /// Lets the first partition of a time go.
    pub fn remove_first(&mut self, time: u64) {
        let Some(partitions) = self.times.get_mut(&time) else { return };
        let blocks = partitions.pop_first().map(|(_, blocks)| blocks).unwrap_or_default();
        if partitions.is_empty() {
            self.times.remove(&time);
        }
        for held in blocks {
            match held {
                SpilledBlock::Memory(block) => self.bytes -= block.bytes().len() as u64,
                SpilledBlock::File { .. } => {
                    if let Some(spill) = &mut self.file {
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

impl Spill {
    fn create(folder: &Path) -> Result<Spill> {
        let failed = || format!("cannot make a file for records in {}", folder.display());
        std::fs::create_dir_all(folder).with_context(failed)?;
        for attempt in 0u32.. {
            let path = folder.join(format!("records-{}-{attempt}.spill", std::process::id()));
            match File::options().read(true).write(true).create_new(true).open(&path) {
                Ok(file) => {
                    std::fs::remove_file(&path).with_context(failed)?;
                    return Ok(Spill { file, path, length: 0, blocks: 0 });
                }
                Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => {}
                Err(error) => return Err(error).with_context(failed),
            }
        }
        anyhow::bail!("{}: every name is taken", failed())
    }
}

impl<R: Pod> Partition<'_, R> {
    /// How many records there are.
    pub fn count(&self) -> usize {
        let bytes = self.blocks.iter().map(|held| match held {
            SpilledBlock::Memory(block) => block.bytes().len(),
            SpilledBlock::File { length, .. } => *length as usize,
        });
        bytes.sum::<usize>() / size_of::<R>()
    }

    /// How many blocks there are.
    pub(crate) fn len(&self) -> usize {
        self.blocks.len()
    }

    /// Calls `each` with every block, those of one sender in the order in which it dealt them; the same order every
    /// time.
    ///
    /// # Errors
    /// Names the file that cannot be read.
    pub fn blocks(&self, mut each: impl FnMut(&Block<R>)) -> Result<()> {
        (0..self.len()).try_for_each(|at| self.block(at, &mut each))
    }

    /// Calls `take` with the block of a number.
    ///
    /// # Errors
    /// Names the file that cannot be read.
    pub fn block<T>(&self, at: usize, take: impl FnOnce(&Block<R>) -> T) -> Result<T> {
        match (&self.blocks[at], self.file) {
            (SpilledBlock::Memory(block), _) => Ok(take(block)),
            (SpilledBlock::File { at, length, common, from }, Some(spill)) => {
                let mut bytes = vec![0; *length as usize];
                let failed = || format!("cannot read {length} bytes of records from {}", spill.path.display());
                spill.file.read_exact_at(&mut bytes, *at).with_context(failed)?;
                Ok(take(&Block::of_bytes(self.part, *common, *from, &bytes).with_context(failed)?))
            }
            (SpilledBlock::File { .. }, None) => unreachable!("a block in a file has one"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn all(stash: &mut SpillBuffer<u64>, time: u64) -> Vec<(u64, u32, u64, Vec<u64>)> {
        let mut all = Vec::new();
        let mut add = |partition: &Partition<'_, u64>| {
            let add =
                |block: &Block<u64>| all.push((partition.part, block.from, block.common, block.records().to_vec()));
            partition.blocks(add).unwrap();
        };
        while let Some(partition) = stash.first(time) {
            // A partition may be gone over several times.
            (0..2).for_each(|_| add(&partition));
            stash.remove_first(time);
        }
        all
    }

    #[test]
    fn what_was_spilled_is_as_what_was_kept() {
        let folder = tempfile::tempdir().unwrap();
        let mut given = Vec::new();
        for budget in [u64::MAX, 2000, 0] {
            let mut stash = SpillBuffer::new(&folder.path().join("scratch"), budget);
            for i in 0..300u64 {
                let records: Vec<u64> = (0..i % 7 + 1).map(|record| i * 100 + record).collect();
                let block = Block::of_bytes(i % 5, i, (i % 3) as u32, bytemuck::cast_slice(&records)).unwrap();
                stash.push(i % 2, block).unwrap();
            }
            assert_eq!(stash.file.is_some(), budget < u64::MAX);
            let of_both = (all(&mut stash, 0), all(&mut stash, 1), all(&mut stash, 2));
            assert_eq!(of_both.0.len() + of_both.1.len(), 600);
            assert!(of_both.2.is_empty());
            assert_eq!(stash.file.as_ref().map_or(0, |spill| spill.length), 0, "the file begins anew");
            assert_eq!(stash.bytes, 0);
            given.push(of_both);
        }
        assert!(given.windows(2).all(|pair| pair[0] == pair[1]));
        let left = std::fs::read_dir(folder.path().join("scratch")).unwrap().count();
        assert_eq!(left, 0, "the file has no name");
    }

    #[test]
    fn a_folder_that_cannot_be_written_is_named() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("file");
        std::fs::write(&path, "").unwrap();
        let mut stash = SpillBuffer::new(&path, 0);
        let error = stash.push(0, Block::of_bytes(0, 0, 0, &[0; 8]).unwrap() as Block<u64>).unwrap_err();
        assert!(format!("{error:#}").contains("file"), "{error:#}");
    }
}
