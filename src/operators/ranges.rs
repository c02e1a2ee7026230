//! A source of keyed records that bounds how many of them are in flight.
//!
//! The key space is cut in partitions, and these in ranges: the source goes over its input once a
//! range and deals only the keys of that range, a range at a time. Timely has no backpressure, so the
//! next range waits until the one before is grouped.

use std::ops::Range;
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::Result;
use bytemuck::Pod;
use timely::dataflow::operators::generic::operator::source;
use timely::dataflow::{Scope, Stream};

use super::block::{Block, BlockBuilder, Dealer};
use super::spare::BLOCK_BYTES;
use crate::watch::Watch;

/// How long a slice of work lasts before other operators get their turn.
pub const SLICE: Duration = Duration::from_millis(5);
/// How often a source that waits for a range to be grouped looks again.
const WAIT: Duration = Duration::from_millis(1);

/// More partitions than this cost each sender too much memory for open blocks (24 KiB each).
const MAX_PARTITIONS: u64 = 1 << 13;

/// How some key spaces are cut.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cut {
    /// Partitions of each space, a power of two and at least four.
    pub partitions: u64,
    /// Key spaces, one behind the other.
    pub spaces: u64,
    /// Ranges of partitions, one at a time in memory.
    pub ranges: u64,
    /// How far hashes are shifted, so that the bits of the partition are left.
    shift: u32,
}

impl Cut {
    /// Cuts for so many records of `size` bytes in each of `spaces`, over all workers, of which each has `memory`
    /// bytes: for the records that it receives, and for the blocks that it holds open, one a partition. A partition
    /// gets at most `most` records, while there are not too many partitions.
    pub fn new(records: u64, most: u64, size: usize, spaces: usize, peers: usize, memory: u64) -> Cut {
        let workers = peers as u64;
        let partitions = records.div_ceil(most).max(4 * workers).next_power_of_two().min(MAX_PARTITIONS);
        let partitions = partitions.max(workers.next_power_of_two());
        Cut::into_partitions(partitions, records, size, spaces, peers, memory)
    }

    /// As [`Cut::new`], into so many partitions of each space: a power of two, and at least four.
    pub fn into_partitions(
        partitions: u64,
        records: u64,
        size: usize,
        spaces: usize,
        peers: usize,
        memory: u64,
    ) -> Cut {
        let (spaces, peers) = (spaces as u64, peers as u64);
        let received = (spaces * records * size as u64).div_ceil(peers);
        // No worker opens more blocks than it fills, but for the last of each partition.
        let open = (spaces * partitions * BLOCK_BYTES as u64).min(received + (spaces * partitions * size as u64));
        let (all, memory) = (received + open, memory.max(1));
        let ranges = match memory / all.div_ceil(spaces).max(1) {
            0 => all.div_ceil(memory).clamp(1, spaces * partitions),
            at_a_time => spaces.div_ceil(at_a_time),
        };
        Cut::of(partitions, spaces, ranges)
    }

    fn of(partitions: u64, spaces: u64, ranges: u64) -> Cut {
        Cut { partitions, spaces, ranges, shift: 64 - partitions.trailing_zeros() }
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
    pub fn at_least(self, ranges: u64) -> Cut {
        Cut { ranges: self.ranges.max(ranges).min(self.all()), ..self }
    }
}

/// Where a dealt record goes: kept only if its key lies in the range of the moment.
pub struct Deal<'a, R> {
    cut: Cut,
    /// Which range it is.
    pub range: u64,
    parts: Range<u64>,
    dealer: &'a mut Dealer<R>,
}

impl<R: Pod> Deal<'_, R> {
    /// Whether keys of the first space with this hash lie in the range.
    #[inline]
    pub fn takes(&self, hash: u64) -> bool {
        self.parts.contains(&self.cut.partition(0, hash))
    }

    /// The spaces of which keys lie in the range.
    pub fn spaces(&self) -> Range<usize> {
        let end = self.parts.end.div_ceil(self.cut.partitions);
        (self.parts.start / self.cut.partitions) as usize..end as usize
    }

    /// Deals a record by the hash of its key; the space's number is below the cut's.
    #[inline]
    pub fn deal(&mut self, space: usize, hash: u64, record: R) {
        let part = self.cut.partition(space, hash);
        if self.parts.contains(&part) {
            self.dealer.deal(part, record);
        }
    }

    /// Deals a record that tells a gap of numbers, by the hash of its key: see [`Dealer::deal_gap`]. The space's number is
    /// below the cut's.
    #[inline]
    pub fn deal_gap(&mut self, space: usize, hash: u64, number: u32, record: impl Fn(u16) -> R) {
        let part = self.cut.partition(space, hash);
        if self.parts.contains(&part) {
            self.dealer.deal_gap(part, number, record);
        }
    }
}

/// Goes over an input once a range. `open` begins it; the feed that it returns deals some more records, and says
/// whether there was any more. `grouped` tells whether a range is grouped. A range is its own time.
pub fn ranges<'scope, R, F>(
    scope: Scope<'scope, u64>,
    name: &str,
    cut: Cut,
    watch: &Arc<Watch>,
    mut open: impl FnMut() -> F + 'static,
    grouped: impl Fn(u64) -> bool + 'static,
) -> Stream<'scope, u64, Block<R>>
where
    R: Pod + Send,
    F: FnMut(&mut Deal<'_, R>) -> Result<bool> + 'static,
{
    let watch = watch.clone();
    source::<_, BlockBuilder<R>, _, _>(scope, name, |capability, info| {
        let activator = scope.activator_for(info.address);
        let mut held = Some(capability);
        let mut dealer = Dealer::new(scope.index(), 0, &watch);
        let mut range = 0;
        let mut feed: Option<F> = None;
        move |output| {
            let Some(capability) = held.as_mut() else { return };
            // After a failure what is held is kept: silence would be taken for an end.
            if watch.failed() {
                return;
            }
            if range == cut.ranges {
                held = None;
                return;
            }
            capability.downgrade(&range);
            if feed.is_none() && range > 0 && !grouped(range - 1) {
                return activator.activate_after(WAIT);
            }
            let deal_some = feed.get_or_insert_with(|| {
                dealer.turn_to(cut.range(range));
                open()
            });
            let mut session = output.session_with_builder(&*capability);
            let slice = Instant::now();
            let mut more = true;
            while more && slice.elapsed() < SLICE {
                let parts = cut.range(range);
                let dealt = deal_some(&mut Deal { cut, range, parts, dealer: &mut dealer });
                let Some(any) = watch.check(dealt) else { break };
                more = any;
                dealer.full().for_each(|mut block| session.give_container(&mut block));
            }
            if !more {
                dealer.finish().for_each(|mut block| session.give_container(&mut block));
                feed = None;
                range += 1;
            }
            activator.activate();
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_small_memory_cuts_more_ranges() {
        assert_eq!(Cut::new(1000, 1 << 16, 24, 1, 2, 1 << 30), Cut::of(8, 1, 1));
        assert_eq!(Cut::new(1 << 20, 1 << 16, 16, 1, 1, 4 << 20), Cut::of(16, 1, 5));
        assert_eq!(Cut::new(1 << 20, 1 << 16, 4, 5, 1, 4 << 20), Cut::of(16, 5, 6));
        assert_eq!(Cut::new(1 << 40, 1 << 16, 16, 1, 1, 1 << 40).partitions, MAX_PARTITIONS);
        // Whole spaces, as many as fit: of five the memory holds two, or one.
        let five = |memory| Cut::new(1 << 20, 1 << 16, 4, 5, 1, memory).ranges;
        assert_eq!([25 << 20, 10 << 20, 6 << 20].map(five), [1, 3, 5]);
        // Hardly any memory: a partition at a time.
        assert_eq!(Cut::new(1 << 40, 1 << 16, 16, 1, 4, 1).ranges, MAX_PARTITIONS);
    }

    #[test]
    fn every_partition_is_in_one_range() {
        for ranges in 1..=24 {
            let cut = Cut::of(8, 3, ranges);
            let all: Vec<u64> = (0..ranges).flat_map(|range| cut.range(range)).collect();
            assert!(all.into_iter().eq(0..24));
            assert!(ranges > 3 || (0..ranges).all(|range| cut.range(range).start.is_multiple_of(8)), "whole spaces");
            assert_eq!(cut.partition(2, u64::MAX), 23);
            assert_eq!(cut.partition(1, 0), 8);
            for range in 0..ranges {
                let (mut dealer, parts) = (Dealer::<u8>::new(0, 0, &Arc::default()), cut.range(range));
                let spaces = Deal { cut, range, parts: parts.clone(), dealer: &mut dealer }.spaces();
                assert!(
                    parts.map(|part| part as usize / 8).all(|space| spaces.contains(&space)),
                    "{range} of {ranges}"
                );
                assert!(ranges > 3 || spaces.len() == cut.range(range).count() / 8);
            }
        }
        assert_eq!(Cut::of(8, 3, 5).at_least(2), Cut::of(8, 3, 5));
        assert_eq!(Cut::of(8, 3, 1).at_least(2), Cut::of(8, 3, 2));
        assert_eq!(Cut::of(8, 3, 1).at_least(200), Cut::of(8, 3, 24));
    }
}
