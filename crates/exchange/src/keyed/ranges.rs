//! A source of keyed records that bounds how many records are in flight.
//!
//! Keys are cut into partitions, and partitions into ranges ([`KeyRanges`]). The source reads its
//! whole input once for each range and deals only the records whose keys lie in that range. Timely
//! has no backpressure, so a range begins only when the range before it is grouped. With `n` ranges
//! the input is read `n` times, and about an `n`-th of the records are in memory.

use std::ops::Range;
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::Result;
use bytemuck::Pod;
use timely::dataflow::Scope;

use super::key_ranges::KeyRanges;
use crate::blocks::dealer::{Dealer, OpenBlocks};
use crate::dataflow::{BlockStream, source};
use crate::watch::Watch;

/// How long an operator works before other operators get their turn.
pub const SLICE: Duration = Duration::from_millis(5);
/// How often a source that waits for a range to be grouped checks again.
const WAIT: Duration = Duration::from_millis(1);

/// A dealer for one range: it deals a record if the key lies in the range, and drops it otherwise.
pub struct RangeDealer<'a, R> {
    cut: KeyRanges,
    /// The number of the range.
    pub range: u64,
    parts: Range<u64>,
    dealer: &'a mut Dealer<R>,
}

impl<R: Pod> RangeDealer<'_, R> {
    /// Whether keys of the first space with this hash lie in the range.
    #[inline]
    pub fn takes(&self, hash: u64) -> bool {
        self.parts.contains(&self.cut.partition(0, hash))
    }

    /// The spaces that have partitions in the range.
    pub fn spaces(&self) -> Range<usize> {
        let end = self.parts.end.div_ceil(self.cut.partitions);
        (self.parts.start / self.cut.partitions) as usize..end as usize
    }

    /// Deals a record by the hash of its key. `space` must be less than the number of spaces.
    #[inline]
    pub fn deal(&mut self, space: usize, hash: u64, record: R) {
        let part = self.cut.partition(space, hash);
        if self.parts.contains(&part) {
            self.dealer.deal(part, record);
        }
    }

    /// Deals a record that holds the gap to the number before it, by the hash of its key: see
    /// [`Dealer::deal_gap`]. `space` must be less than the number of spaces.
    #[inline]
    pub fn deal_gap(&mut self, space: usize, hash: u64, number: u32, record: impl Fn(u16) -> R) {
        let part = self.cut.partition(space, hash);
        if self.parts.contains(&part) {
            self.dealer.deal_gap(part, number, record);
        }
    }
}

/// Reads an input once for each range, and emits the records of that range. A range is its own
/// time.
///
/// `open` begins to read the input. It returns a function that deals some more records, and returns
/// false when there were none left. `grouped(range)` is true when the next range may begin.
///
/// ```text
/// for range in 0..cut.ranges {
///     wait until grouped(range - 1)
///     let deal_some = open();
///     while deal_some(dealer of the range)? { send the full blocks of the dealer }
///     send all blocks of the dealer
/// }
/// ```
pub fn ranges<'scope, R, F>(
    scope: Scope<'scope, u64>,
    name: &str,
    cut: KeyRanges,
    watch: &Arc<Watch>,
    open: impl FnMut() -> F + 'static,
    grouped: impl Fn(u64) -> bool + 'static,
) -> BlockStream<'scope>
where
    R: Pod,
    F: FnMut(&mut RangeDealer<'_, R>) -> Result<bool> + 'static,
{
    let dealer = Dealer::<R>::new(scope.index(), 0, watch).into_blocks();
    deal_ranges(scope, name, cut, dealer, watch, opener(cut, open), Box::new(grouped))
}

/// Deals some more records of the range with this number; `false` if there were none left.
pub(super) type DealSome = Box<dyn FnMut(u64, &mut OpenBlocks) -> Result<bool>>;
/// Begins to read the input.
pub(super) type BeginInput = Box<dyn FnMut() -> DealSome>;

/// Hides the type of the records that `open` deals.
pub(super) fn opener<R, F>(cut: KeyRanges, mut open: impl FnMut() -> F + 'static) -> BeginInput
where
    R: Pod,
    F: FnMut(&mut RangeDealer<'_, R>) -> Result<bool> + 'static,
{
    Box::new(move || {
        let mut deal_some = open();
        Box::new(move |range, blocks| {
            deal_some(&mut RangeDealer { cut, range, parts: cut.range(range), dealer: Dealer::of(blocks) })
        })
    })
}

/// [`ranges()`] for records of any type.
pub(super) fn deal_ranges<'scope>(
    scope: Scope<'scope, u64>,
    name: &str,
    cut: KeyRanges,
    mut dealer: OpenBlocks,
    watch: &Arc<Watch>,
    mut open: BeginInput,
    grouped: Box<dyn Fn(u64) -> bool>,
) -> BlockStream<'scope> {
    let watch = watch.clone();
    source(scope, name, |capability, info| {
        let activator = scope.activator_for(info.address);
        let mut capability = Some(capability);
        let mut range = 0;
        // Reads the input for the current range.
        let mut reading: Option<DealSome> = None;
        // A step for each own partition when it is dealt, and one when it is grouped.
        let (index, peers) = (scope.index() as u64, scope.peers() as u64);
        let own = move |parts: Range<u64>| parts.filter(|part| part % peers == index).count();
        watch.expect_steps(2 * own(0..cut.all()));
        move |output| {
            let Some(current) = capability.as_mut() else { return };
            // After a failure the capability is kept: other workers would take silence for an end.
            if watch.failed() {
                return;
            }
            if range == cut.ranges {
                capability = None;
                return;
            }
            current.downgrade(&range);
            if reading.is_none() && range > 0 && !grouped(range - 1) {
                return activator.activate_after(WAIT);
            }
            let deal_some = reading.get_or_insert_with(|| {
                dealer.turn_to(cut.range(range));
                open()
            });
            let mut session = output.session_with_builder(&*current);
            let slice = Instant::now();
            let mut more = true;
            while more && slice.elapsed() < SLICE {
                let Some(has_more) = watch.check(deal_some(range, &mut dealer)) else { break };
                more = has_more;
                dealer.full().for_each(|mut block| session.give_container(&mut block));
            }
            if !more {
                dealer.finish().for_each(|mut block| session.give_container(&mut block));
                reading = None;
                watch.add_steps(own(cut.range(range)));
                range += 1;
            }
            activator.activate();
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::keyed::key_ranges::{KeyRanges, MAX_PARTITIONS};

    #[test]
    fn a_small_memory_cuts_more_ranges() {
        assert_eq!(KeyRanges::new(1000, 1 << 16, 24, 1, 2, 1 << 30), KeyRanges::of(8, 1, 1));
        assert_eq!(KeyRanges::new(1 << 20, 1 << 16, 16, 1, 1, 4 << 20), KeyRanges::of(16, 1, 5));
        assert_eq!(KeyRanges::new(1 << 20, 1 << 16, 4, 5, 1, 4 << 20), KeyRanges::of(16, 5, 6));
        assert_eq!(KeyRanges::new(1 << 40, 1 << 16, 16, 1, 1, 1 << 40).partitions, MAX_PARTITIONS);
        // Whole spaces, as many as fit: of five the memory holds two, or one.
        let five = |memory| KeyRanges::new(1 << 20, 1 << 16, 4, 5, 1, memory).ranges;
        assert_eq!([25 << 20, 10 << 20, 6 << 20].map(five), [1, 3, 5]);
        // Hardly any memory: a partition at a time.
        assert_eq!(KeyRanges::new(1 << 40, 1 << 16, 16, 1, 4, 1).ranges, MAX_PARTITIONS);
    }

    #[test]
    fn every_partition_is_in_one_range() {
        for ranges in 1..=24 {
            let cut = KeyRanges::of(8, 3, ranges);
            let all: Vec<u64> = (0..ranges).flat_map(|range| cut.range(range)).collect();
            assert!(all.into_iter().eq(0..24));
            assert!(ranges > 3 || (0..ranges).all(|range| cut.range(range).start.is_multiple_of(8)), "whole spaces");
            assert_eq!(cut.partition(2, u64::MAX), 23);
            assert_eq!(cut.partition(1, 0), 8);
            for range in 0..ranges {
                let (mut dealer, parts) = (Dealer::<u8>::new(0, 0, &Arc::default()), cut.range(range));
                let spaces = RangeDealer { cut, range, parts: parts.clone(), dealer: &mut dealer }.spaces();
                assert!(
                    parts.map(|part| part as usize / 8).all(|space| spaces.contains(&space)),
                    "{range} of {ranges}"
                );
                assert!(ranges > 3 || spaces.len() == cut.range(range).count() / 8);
            }
        }
        assert_eq!(KeyRanges::of(8, 3, 5).at_least(2), KeyRanges::of(8, 3, 5));
        assert_eq!(KeyRanges::of(8, 3, 1).at_least(2), KeyRanges::of(8, 3, 2));
        assert_eq!(KeyRanges::of(8, 3, 1).at_least(200), KeyRanges::of(8, 3, 24));
    }
}
