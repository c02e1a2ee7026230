//! Partitions and ranges of keys: how keys are cut so that the records of one range fit into the
//! given memory.
//!
//! The high bits of a key's hash are its partition. Consecutive partitions form a range, and ranges
//! are processed one after the other ([`ranges`](super::ranges())). Records with several keys have
//! a *key space* for each of them; all spaces have the same number of partitions.

use std::ops::Range;

use crate::blocks::buffers::BLOCK_BYTES;

/// The most partitions of a space: each sender holds an open block of 24 KiB for each partition,
/// 192 MiB in all. With more than 1.6 billion documents the partitions of clustering get so large
/// that they no longer stay in a cache.
pub(crate) const MAX_PARTITIONS: u64 = 1 << 13;

/// How one or more key spaces are cut.
///
/// ```
/// use nigh_exchange::KeyRanges;
///
/// // A million records of 16 bytes on one worker with 4 MiB: five ranges of 16 partitions.
/// let cut = KeyRanges::new(1 << 20, 1 << 16, 16, 1, 1, 4 << 20);
/// assert_eq!((cut.partitions, cut.ranges), (16, 5));
/// assert_eq!(cut.range(0), 0..4);
/// assert_eq!(cut.partition(0, u64::MAX), 15);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KeyRanges {
    /// Partitions of each space, a power of two and at least four.
    pub partitions: u64,
    /// Key spaces. The partitions of a space follow those of the space before it.
    pub spaces: u64,
    /// Ranges of partitions. The records of one range are in memory at a time.
    pub ranges: u64,
    /// A hash shifted right by this is its partition.
    shift: u32,
}

impl KeyRanges {
    /// Cuts for `records` records of `size` bytes in each of `spaces` spaces, counted over all
    /// `peers` workers. Each worker has `memory` bytes for the records that it receives and for its
    /// open blocks, one for each partition. A partition gets about `most` records, unless that
    /// needs more partitions than the limit.
    pub fn new(records: u64, most: u64, size: usize, spaces: usize, peers: usize, memory: u64) -> KeyRanges {
        let workers = peers as u64;
        let partitions = records.div_ceil(most).max(4 * workers).next_power_of_two().min(MAX_PARTITIONS);
        let partitions = partitions.max(workers.next_power_of_two());
        KeyRanges::into_partitions(partitions, records, size, spaces, peers, memory)
    }

    /// As [`KeyRanges::new`], with the given number of partitions of each space: a power of two,
    /// and at least four.
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
        // A worker opens no more blocks than it fills, and one more for each partition.
        let open = (spaces * partitions * BLOCK_BYTES as u64).min(received + (spaces * partitions * size as u64));
        let (bytes, memory) = (received + open, memory.max(1));
        // Whole spaces if at least one fits, as many at a time as fit.
        let ranges = match memory / bytes.div_ceil(spaces).max(1) {
            0 => bytes.div_ceil(memory).clamp(1, spaces * partitions),
            spaces_at_a_time => spaces.div_ceil(spaces_at_a_time),
        };
        KeyRanges::of(partitions, spaces, ranges)
    }

    pub(crate) fn of(partitions: u64, spaces: u64, ranges: u64) -> KeyRanges {
        KeyRanges { partitions, spaces, ranges, shift: 64 - partitions.trailing_zeros() }
    }

    /// The partition of a key with this hash, in the space with this number.
    #[inline]
    pub fn partition(&self, space: usize, hash: u64) -> u64 {
        space as u64 * self.partitions + (hash >> self.shift)
    }

    /// The number of partitions of all spaces.
    pub fn all(&self) -> u64 {
        self.spaces * self.partitions
    }

    /// The partitions of a range. If there are no more ranges than spaces, a range is one or more
    /// whole spaces.
    pub fn range(&self, range: u64) -> Range<u64> {
        let (all, each) = if self.ranges <= self.spaces { (self.spaces, self.partitions) } else { (self.all(), 1) };
        // The last range is the smallest one.
        let start = |range: u64| (u128::from(range) * u128::from(all)).div_ceil(self.ranges.into()) as u64 * each;
        start(range)..start(range + 1)
    }

    /// The same cut in at least `ranges` ranges, and no more than there are partitions.
    pub fn at_least(self, ranges: u64) -> KeyRanges {
        KeyRanges { ranges: self.ranges.max(ranges).min(self.all()), ..self }
    }
}
