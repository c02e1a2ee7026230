//! A source of keyed records that bounds how many of them are in flight.
//!
//! The key space is cut in partitions, and these in ranges: the source goes over its input once a
//! range and deals only the keys of that range, a range at a time. Timely has no backpressure, so the
//! next range waits until the one before is grouped.

use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::Result;
use bytemuck::Pod;
use timely::dataflow::operators::generic::operator::source;
use timely::dataflow::{Scope, Stream};

use super::block::{BLOCK_BYTES, Block, BlockBuilder, Dealer};
use crate::records::Key;
use crate::watch::Watch;

/// How long a slice of work lasts before other operators get their turn.
const SLICE: Duration = Duration::from_millis(5);
/// How often a source that waits for a range to be grouped looks again.
const WAIT: Duration = Duration::from_millis(1);

/// Records that one partition should hold: its table then stays in the second-level cache.
const PARTITION_RECORDS: u64 = 1 << 16;
/// More partitions than this cost each sender too much memory for open blocks (32 KiB each).
const MAX_PARTITIONS: u64 = 1 << 13;

/// How the key space is cut.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ranges {
    /// Partitions, a power of two.
    pub partitions: u64,
    /// Ranges of partitions, one at a time in memory; divides `partitions`.
    pub ranges: u64,
}

impl Ranges {
    /// Cuts for so many records of `size` bytes over all workers, where all workers together have `memory` bytes.
    ///
    /// Half of it is left to the blocks that each worker holds open, one a partition; collected records take twice
    /// their size at worst, as vectors double.
    pub fn new(records: u64, size: usize, peers: usize, memory: u64) -> Ranges {
        let wanted = records.div_ceil(PARTITION_RECORDS).max(4 * peers as u64).next_power_of_two().min(MAX_PARTITIONS);
        let open = (memory / 2 / peers as u64 / BLOCK_BYTES as u64).max(1);
        let affordable = 1 << open.ilog2();
        let partitions = wanted.min(affordable).max((peers as u64).next_power_of_two());
        let bytes = 2 * records * size as u64;
        let ranges = bytes.div_ceil((memory / 2).max(1)).next_power_of_two().clamp(1, partitions);
        Ranges { partitions, ranges }
    }

    /// The partition of a key.
    #[inline]
    pub fn partition(&self, key: Key) -> u64 {
        key.partition_bits().checked_shr(64 - self.partitions.trailing_zeros()).unwrap_or(0)
    }

    /// The range of a partition.
    #[inline]
    pub fn range(&self, partition: u64) -> u64 {
        partition / (self.partitions / self.ranges)
    }
}

/// Where a dealt record goes: kept only if its key lies in the range of the moment.
pub struct Deal<'a, R> {
    ranges: Ranges,
    range: u64,
    dealer: &'a mut Dealer<R>,
}

impl<R: Pod> Deal<'_, R> {
    /// Deals a record by its key.
    #[inline]
    pub fn deal(&mut self, key: Key, record: R) {
        let partition = self.ranges.partition(key);
        if self.ranges.range(partition) == self.range {
            self.dealer.deal(partition as usize, record);
        }
    }
}

/// Goes over an input once a range. `open` begins it; the feed that it returns deals some more records, and says
/// whether there was any more. `grouped` tells whether a range is grouped. A range is its own time.
pub fn ranges<'scope, R, F>(
    scope: Scope<'scope, u64>,
    name: &str,
    cut: Ranges,
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
        let mut dealer = Dealer::new(cut.partitions as usize, &watch);
        let mut range = 0;
        let mut feed: Option<F> = None;
        move |output| {
            let Some(capability) = held.as_mut() else { return };
            if range == cut.ranges || watch.failed() {
                held = None;
                return;
            }
            capability.downgrade(&range);
            if feed.is_none() && range > 0 && !grouped(range - 1) {
                return activator.activate_after(WAIT);
            }
            let deal_some = feed.get_or_insert_with(&mut open);
            let mut session = output.session_with_builder(&*capability);
            let slice = Instant::now();
            let mut more = true;
            while more && slice.elapsed() < SLICE {
                let dealt = deal_some(&mut Deal { ranges: cut, range, dealer: &mut dealer });
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
        assert_eq!(Ranges::new(1000, 24, 2, 1 << 30), Ranges { partitions: 8, ranges: 1 });
        assert_eq!(Ranges::new(1 << 20, 24, 1, 12 << 20), Ranges { partitions: 16, ranges: 8 });
        assert_eq!(Ranges::new(1 << 40, 24, 1, 1 << 40), Ranges { partitions: MAX_PARTITIONS, ranges: 128 });
        // Hardly any memory: as many partitions as workers, one at a time.
        assert_eq!(Ranges::new(1 << 40, 24, 4, 1), Ranges { partitions: 4, ranges: 4 });
    }

    #[test]
    fn every_partition_is_in_one_range() {
        let cut = Ranges { partitions: 8, ranges: 4 };
        assert_eq!((0..8).map(|p| cut.range(p)).collect::<Vec<_>>(), [0, 0, 1, 1, 2, 2, 3, 3]);
        assert_eq!(Ranges { partitions: 1, ranges: 1 }.partition(Key::of(0, &[1])), 0);
    }
}
