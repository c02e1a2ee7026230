//! How many ranges the keys are cut into, so that the records of one range fit into the given memory.

use std::ops::Range;

use super::buffers::BLOCK_BYTES;

/// More partitions than this cost each sender too much memory for open blocks (24 KiB each).
pub(crate) const MAX_PARTITIONS: u64 = 1 << 13;

/// How some key spaces are cut.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KeyRanges {
    /// Partitions of each space, a power of two and at least four.
    pub partitions: u64,
    /// Key spaces, one behind the other.
    pub spaces: u64,
    /// Ranges of partitions, one at a time in memory.
    pub ranges: u64,
    /// How far hashes are shifted, so that the bits of the partition are left.
    shift: u32,
}

impl KeyRanges {
    /// Cuts for so many records of `size` bytes in each of `spaces`, over all workers, of which each has `memory`
    /// bytes: for the records that it receives, and for the blocks that it holds open, one a partition. A partition
    /// gets at most `most` records, while there are not too many partitions.
    pub fn new(records: u64, most: u64, size: usize, spaces: usize, peers: usize, memory: u64) -> KeyRanges {
        let workers = peers as u64;
        let partitions = records.div_ceil(most).max(4 * workers).next_power_of_two().min(MAX_PARTITIONS);
        let partitions = partitions.max(workers.next_power_of_two());
        KeyRanges::into_partitions(partitions, records, size, spaces, peers, memory)
    }

    /// As [`KeyRanges::new`], into so many partitions of each space: a power of two, and at least four.
    pub fn into_partitions(
        partitions: u64,
        records: u64,
        size: usize,
        spaces: usize,
        peers: usize,
        memory: u64,
    ) -> KeyRanges {
        let (spaces, peers) = (spaces as u64, peers as u64);
        let received = (spaces * records * size as u64).div_ceil(peers);
        // No worker opens more blocks than it fills, but for the last of each partition.
        let open = (spaces * partitions * BLOCK_BYTES as u64).min(received + (spaces * partitions * size as u64));
        let (all, memory) = (received + open, memory.max(1));
        let ranges = match memory / all.div_ceil(spaces).max(1) {
            0 => all.div_ceil(memory).clamp(1, spaces * partitions),
            at_a_time => spaces.div_ceil(at_a_time),
        };
        KeyRanges::of(partitions, spaces, ranges)
    }

    pub(crate) fn of(partitions: u64, spaces: u64, ranges: u64) -> KeyRanges {
        KeyRanges { partitions, spaces, ranges, shift: 64 - partitions.trailing_zeros() }
    }

    /// The partition of a key of a space, from the high bits of its hash.
    #[inline]
    pub fn partition(&self, space: usize, hash: u64) -> u64 {
        space as u64 * self.partitions + (hash >> self.shift)
    }

    /// Partitions of all spaces.
    pub fn all(&self) -> u64 {
        self.spaces * self.partitions
    }

    /// The partitions of a range: those of whole spaces, where there are as many spaces as ranges.
    pub fn range(&self, range: u64) -> Range<u64> {
        let (all, each) = if self.ranges <= self.spaces { (self.spaces, self.partitions) } else { (self.all(), 1) };
        // The last range is the smallest one.
        let start = |range: u64| (u128::from(range) * u128::from(all)).div_ceil(self.ranges.into()) as u64 * each;
        start(range)..start(range + 1)
    }

    /// In so many ranges at least, while there are as many partitions.
    pub fn at_least(self, ranges: u64) -> KeyRanges {
        KeyRanges { ranges: self.ranges.max(ranges).min(self.all()), ..self }
    }
}
