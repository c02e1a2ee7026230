//! The dealer: deals records into one open block for each partition, and returns the blocks that
//! are full.
//!
//! Records go by [`Dealer::deal`], or, where they name ascending numbers, by [`Dealer::deal_gap`],
//! which stores the gaps in 16 bits.
//!
//! To collect the records of a partition in one line of the cache before they go to its block was
//! not faster.

use std::marker::PhantomData;
use std::sync::Arc;

use bytemuck::{Pod, TransparentWrapper};
use nigh_kernels::kernels::memory::fetch_to_write;

use super::block::{Block, HALF, Memory, RecordLayout};
use super::buffers::{BLOCK_BYTES, BlockMemory, LINE, take_buffer};
use crate::watch::Watch;

/// Collects records into blocks: one open block for each partition.
#[derive(TransparentWrapper)]
#[transparent(OpenBlocks)]
#[repr(transparent)]
pub struct Dealer<T> {
    blocks: OpenBlocks,
    records: PhantomData<T>,
}

/// The blocks of a dealer, which do not know the type of their records.
pub(crate) struct OpenBlocks {
    open: Vec<OpenBlock>,
    /// What the records of each open block have in common.
    commons: Vec<u64>,
    /// The partition of the first of `open`.
    first: u64,
    from: u32,
    record: RecordLayout,
    full: Vec<Block>,
    watch: Arc<Watch>,
}

/// A block that takes records: 16 bytes, so that those of a thousand partitions stay in the first
/// cache.
#[derive(Default)]
struct OpenBlock {
    memory: Option<BlockMemory>,
    count: u32,
    /// The number of the last record, if records are dealt by their gaps.
    last: u32,
}

impl OpenBlock {
    /// Adds a record; `false` if there is no block, or no room in it.
    #[inline]
    fn push<T: Pod>(&mut self, record: T) -> bool {
        let at = self.count as usize * size_of::<T>();
        let Some(memory) = &mut self.memory else { return false };
        if at + size_of::<T>() > BLOCK_BYTES {
            return false;
        }
        // The first record that begins in a line of the cache fetches the next line, early enough
        // and not too early.
        if at % LINE < size_of::<T>() {
            fetch_to_write(&memory[..], (at + LINE) / 8);
        }
        bytemuck::cast_slice_mut::<u64, u8>(&mut memory[..])[at..at + size_of::<T>()]
            .copy_from_slice(bytemuck::bytes_of(&record));
        self.count += 1;
        true
    }
}

impl<T: Pod> Dealer<T> {
    /// Makes a dealer of this worker to the partitions `0..parts`.
    pub fn new(worker: usize, parts: usize, watch: &Arc<Watch>) -> Dealer<T> {
        Dealer { blocks: OpenBlocks::new(RecordLayout::of::<T>(), worker, parts, watch), records: PhantomData }
    }

    /// The dealer of blocks that were made for records of this type.
    pub(crate) fn of(blocks: &mut OpenBlocks) -> &mut Dealer<T> {
        debug_assert_eq!(blocks.record, RecordLayout::of::<T>());
        Dealer::wrap_mut(blocks)
    }

    /// The blocks without the type of their records.
    pub(crate) fn into_blocks(self) -> OpenBlocks {
        self.blocks
    }

    /// Deals to other partitions from here on. All blocks must have been taken before.
    pub fn turn_to(&mut self, parts: std::ops::Range<u64>) {
        self.blocks.turn_to(parts);
    }

    /// Adds a record to a partition.
    #[inline]
    pub fn deal(&mut self, part: u64, record: T) {
        let at = (part - self.blocks.first) as usize;
        if !self.blocks.open[at].push(record) {
            self.begin(at, self.blocks.commons[at], record);
        }
    }

    /// Adds the record of a number by its gap to the number before it. `record` makes the record
    /// from the gap. The first record of a block has the gap 0, and its number is
    /// [`Block::common`]. Numbers ascend. A gap of more than 16 bits begins a block, so such gaps
    /// should be rare.
    #[inline]
    pub fn deal_gap(&mut self, part: u64, number: u32, record: impl Fn(u16) -> T) {
        let at = (part - self.blocks.first) as usize;
        let open = &mut self.blocks.open[at];
        let gap = number.wrapping_sub(std::mem::replace(&mut open.last, number));
        if gap > u32::from(u16::MAX) || !open.push(record(gap as u16)) {
            self.begin(at, number.into(), record(0));
        }
    }

    /// Begins a block of a partition with a record, and closes the block before it.
    #[inline(never)]
    fn begin(&mut self, at: usize, common: u64, record: T) {
        self.blocks.begin(at, common);
        assert!(self.blocks.open[at].push(record), "a block has room for a record");
    }

    /// Takes the full blocks. A block that just became full is taken only after the next record of
    /// its partition.
    pub fn full(&mut self) -> impl Iterator<Item = Block> {
        self.blocks.full()
    }

    /// Takes all blocks, full or not.
    pub fn finish(&mut self) -> impl Iterator<Item = Block> {
        self.blocks.finish()
    }

    /// Closes all blocks, and sets what the records of the blocks to come have in common.
    pub fn set_common(&mut self, common: u64) {
        self.blocks.close_all();
        self.blocks.commons.fill(common);
    }
}

impl OpenBlocks {
    fn new(record: RecordLayout, worker: usize, parts: usize, watch: &Arc<Watch>) -> OpenBlocks {
        let (open, commons) = (Self::closed(parts), vec![0; parts]);
        OpenBlocks { open, commons, first: 0, from: worker as u32, record, full: Vec::new(), watch: watch.clone() }
    }

    fn closed(parts: usize) -> Vec<OpenBlock> {
        (0..parts).map(|_| OpenBlock::default()).collect()
    }

    pub(crate) fn turn_to(&mut self, parts: std::ops::Range<u64>) {
        debug_assert!(self.full.is_empty() && self.open.iter().all(|open| open.count == 0));
        let count = (parts.end - parts.start) as usize;
        (self.open, self.commons, self.first) = (Self::closed(count), vec![0; count], parts.start);
    }

    fn begin(&mut self, at: usize, common: u64) {
        if self.open[at].count > 0 {
            self.close(at);
        }
        self.commons[at] = common;
        self.open[at].memory = Some(take_buffer());
    }

    fn close(&mut self, at: usize) {
        let open = &mut self.open[at];
        let count = std::mem::take(&mut open.count) as usize;
        let bytes = count * self.record.width as usize;
        let memory = match open.memory.take() {
            Some(full) if bytes < HALF => {
                // A block that is closed early returns the memory of a full one to the pool.
                let words = full[..bytes.div_ceil(8)].into();
                drop(Memory::Full(Some(full)));
                Memory::Cut(words)
            }
            Some(full) => Memory::Full(Some(full)),
            None => Memory::default(),
        };
        self.watch.add_exchanged(count as u64, bytes as u64);
        let (part, common, from) = (self.first + at as u64, self.commons[at], self.from);
        self.full.push(Block { part, common, from, count, record: self.record, memory });
    }

    fn close_all(&mut self) {
        for at in 0..self.open.len() {
            if self.open[at].count > 0 {
                self.close(at);
            }
        }
    }

    pub(crate) fn full(&mut self) -> std::vec::Drain<'_, Block> {
        self.full.drain(..)
    }

    pub(crate) fn finish(&mut self) -> std::vec::Drain<'_, Block> {
        self.close_all();
        self.full.drain(..)
    }
}
