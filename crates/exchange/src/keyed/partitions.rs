//! Receiving by partition: blocks wait until their range has arrived, then each partition is
//! processed by itself.
//!
//! A partition is small enough that its work stays in the cache ([`KeyRanges`](super::KeyRanges)
//! cuts it so). Waiting blocks are in memory up to a budget, and beyond it in a file
//! ([`SpillBuffer`]).

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Instant;

use anyhow::Result;
use bytemuck::Pod;
use timely::dataflow::operators::FrontierNotificator;

use super::ranges::SLICE;
use super::spill::{Partition, SpillBuffer, WaitingBlocks, WaitingPartition};
use crate::blocks::block::BlockOf;
use crate::blocks::dealer::{Dealer, OpenBlocks};
use crate::dataflow::{BlockStream, sink, unary_frontier};
use crate::watch::Watch;

/// Exchanges blocks to the owners of their partitions. When all blocks of a time have arrived,
/// calls `each` with every partition of that time, in ascending order. Records that `each` deals,
/// to partitions that are workers' indices, are emitted in blocks of that time. The blocks of two
/// senders are in the order of their arrival, which differs from run to run, so a result of `each`
/// must not depend on it.
///
/// ```text
/// for each time, when all of its blocks have arrived:
///     for each own partition with records, ascending:
///         each(partition, dealer)
///         send the full blocks of the dealer
/// ```
pub fn each_partition<'scope, R: Pod, O: Pod>(
    blocks: BlockStream<'scope>,
    name: &str,
    waiting: SpillBuffer<R>,
    watch: &Arc<Watch>,
    mut each: impl FnMut(&Partition<'_, R>, &mut Dealer<O>) -> Result<()> + 'static,
) -> BlockStream<'scope> {
    let dealer = Dealer::<O>::new(blocks.scope().index(), blocks.scope().peers(), watch).into_blocks();
    let each = move |partition: WaitingPartition<'_>, dealer: &mut OpenBlocks| {
        each(&Partition::of(partition), Dealer::of(dealer))
    };
    group_blocks(blocks, name, waiting.into_waiting(), dealer, watch, Box::new(each))
}

/// Processes one partition, and deals the answers.
pub(super) type EachPartition = Box<dyn FnMut(WaitingPartition<'_>, &mut OpenBlocks) -> Result<()>>;

/// [`each_partition`] for records of any type.
pub(super) fn group_blocks<'scope>(
    blocks: BlockStream<'scope>,
    name: &str,
    mut waiting: WaitingBlocks,
    mut dealer: OpenBlocks,
    watch: &Arc<Watch>,
    mut each: EachPartition,
) -> BlockStream<'scope> {
    let scope = blocks.scope();
    let watch = watch.clone();
    unary_frontier(blocks, name, |_, info| {
        let activator = scope.activator_for(info.address);
        let mut notificator = FrontierNotificator::default();
        // Own partitions that are passed, with records or without: they ascend from time to time.
        let (index, peers) = (scope.index() as u64, scope.peers() as u64);
        let mut passed = 0;
        // Capabilities of the times whose blocks have all arrived.
        let mut complete = VecDeque::new();
        move |input, frontier, output| {
            // After a failure nothing is done, and capabilities are kept: other workers would take
            // silence for an end.
            if watch.failed() {
                return;
            }
            // In the order of arrival, so that `Partition::blocks` keeps the order of each sender.
            input.for_each(|capability, block| {
                let time = *capability.time();
                if !waiting.has(time) {
                    notificator.notify_at(capability.retain(output.output_index()));
                }
                watch.check(waiting.push(time, std::mem::take(block)));
            });
            notificator.for_each(&[frontier], |capability, _| complete.push_back(capability));
            let slice = Instant::now();
            while let Some(capability) = complete.front() {
                let mut session = output.session_with_builder(capability);
                while let Some(partition) = waiting.first(*capability.time()) {
                    if watch.check(each(partition, &mut dealer)).is_none() {
                        return;
                    }
                    let own = (partition.part.saturating_sub(index) / peers + 1) as usize;
                    watch.add_steps(own.saturating_sub(passed));
                    passed = passed.max(own);
                    waiting.remove_first(*capability.time());
                    dealer.full().for_each(|mut block| session.give_container(&mut block));
                    if slice.elapsed() > SLICE {
                        return activator.activate();
                    }
                }
                dealer.finish().for_each(|mut block| session.give_container(&mut block));
                drop(session);
                complete.pop_front();
            }
        }
    })
}

/// Exchanges blocks to the owners of their partitions, and calls `take` with each block there.
pub fn received<'scope, R: Pod>(
    blocks: BlockStream<'scope>,
    mut take: impl FnMut(BlockOf<R>) + 'static,
) -> BlockStream<'scope> {
    sink(blocks, "Received", move |block| take(block.open()))
}
