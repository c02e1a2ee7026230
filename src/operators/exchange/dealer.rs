//! The dealer: it deals records into one open block for each partition, and emits the blocks that are full.

use std::marker::PhantomData;
use std::sync::Arc;

use bytemuck::Pod;

use super::block::{Block, HALF, Memory};
use super::buffers::{BLOCK_BYTES, BlockMemory, LINE, fresh};
use crate::kernels::memory::fetch_to_write;
use crate::watch::Watch;

/// Collects records into blocks, one open block a partition.
pub struct Dealer<T> {
    open: Vec<OpenBlock>,
    /// What the numbers of each open block count from.
    bases: Vec<u64>,
    /// The partition of the first of `open`.
    first: u64,
    from: u32,
    full: Vec<Block<T>>,
    watch: Arc<Watch>,
}

/// A block that takes records: 16 bytes, so that those of a thousand partitions stay in the first cache.
#[derive(Default)]
struct OpenBlock {
    memory: Option<BlockMemory>,
    count: u32,
    /// The number of the last record, where they are told by their gaps.
    last: u32,
}

impl OpenBlock {
    /// Adds a record; tells whether there is a block, and was room in it.
    #[inline]
    fn push<T: Pod>(&mut self, record: T) -> bool {
        let at = self.count as usize * size_of::<T>();
        let Some(memory) = &mut self.memory else { return false };
        if at + size_of::<T>() > BLOCK_BYTES {
            return false;
        }
        // The first record that begins in a line of the cache fetches the next line, early enough and not too early.
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
    /// A dealer of this worker to the partitions `0..parts`.
    pub fn new(worker: usize, parts: usize, watch: &Arc<Watch>) -> Dealer<T> {
        let (open, bases) = (Self::closed(parts), vec![0; parts]);
        Dealer { open, bases, first: 0, from: worker as u32, full: Vec::new(), watch: watch.clone() }
    }

    fn closed(parts: usize) -> Vec<OpenBlock> {
        (0..parts).map(|_| OpenBlock::default()).collect()
    }

    /// Deals to other partitions from here on; every block was given out before.
    pub fn turn_to(&mut self, parts: std::ops::Range<u64>) {
        debug_assert!(self.full.is_empty() && self.open.iter().all(|open| open.count == 0));
        let count = (parts.end - parts.start) as usize;
        (self.open, self.bases, self.first) = (Self::closed(count), vec![0; count], parts.start);
    }

    /// Adds a record to a partition.
    #[inline]
    pub fn deal(&mut self, part: u64, record: T) {
        let at = (part - self.first) as usize;
        if !self.open[at].push(record) {
            self.begin(at, self.bases[at], record);
        }
    }

    /// Adds a record that tells how far its number is from the one before it: `record` makes it from that gap, which is 0
    /// for the first of a block, whose number is the block's base. Numbers ascend, and lie so near each other that few
    /// gaps are wider than 16 bits: each of those begins a block.
    #[inline]
    pub fn deal_gap(&mut self, part: u64, number: u32, record: impl Fn(u16) -> T) {
        let at = (part - self.first) as usize;
        let open = &mut self.open[at];
        let gap = number.wrapping_sub(std::mem::replace(&mut open.last, number));
        if gap > u32::from(u16::MAX) || !open.push(record(gap as u16)) {
            self.begin(at, number.into(), record(0));
        }
    }

    /// Begins a block of a partition, with a record; the one before it is closed.
    #[inline(never)]
    fn begin(&mut self, at: usize, base: u64, record: T) {
        if self.open[at].count > 0 {
            self.close(at);
        }
        self.bases[at] = base;
        self.open[at].memory = Some(fresh());
        assert!(self.open[at].push(record), "a block has room for a record");
    }

    fn close(&mut self, at: usize) {
        let open = &mut self.open[at];
        let count = std::mem::take(&mut open.count) as usize;
        let bytes = count * size_of::<T>();
        let memory = match open.memory.take() {
            Some(full) if bytes < HALF => {
                // A block that is closed early must not keep the memory of a full one.
                let words = full[..bytes.div_ceil(8)].into();
                drop(Memory::Full(Some(full)));
                Memory::Cut(words)
            }
            Some(full) => Memory::Full(Some(full)),
            None => Memory::default(),
        };
        self.watch.add_exchanged(count as u64, bytes as u64);
        let (part, base, from) = (self.first + at as u64, self.bases[at], self.from);
        self.full.push(Block { part, base, from, count, memory, records: PhantomData });
    }

    /// The blocks that are full, but for those that nothing was dealt to since.
    pub fn full(&mut self) -> impl Iterator<Item = Block<T>> {
        self.full.drain(..)
    }

    /// All blocks, full or not; the dealer is empty after it.
    pub fn finish(&mut self) -> impl Iterator<Item = Block<T>> {
        self.close_all();
        self.full.drain(..)
    }

    /// Gives the base of the blocks to come; those before it are closed.
    pub fn rebase(&mut self, base: u64) {
        self.close_all();
        self.bases.fill(base);
    }

    fn close_all(&mut self) {
        for at in 0..self.open.len() {
            if self.open[at].count > 0 {
                self.close(at);
            }
        }
    }
}
