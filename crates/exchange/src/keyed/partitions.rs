//! Receiving by partition: blocks wait until their range has arrived, then each partition is
//! processed by itself.
//!
//! A partition is small enough that its work stays in the cache ([`KeyRanges`](super::KeyRanges)
//! cuts it so). Waiting blocks are in memory up to a budget, and beyond it in a file
//! ([`SpillBuffer`]).

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Instant;

use anyhow::Result;
use bytemuck::Pod;

use super::ranges::SLICE;
use super::spill::{Partition, SpillBuffer, WaitingBlocks, WaitingPartition};
use crate::blocks::block::BlockOf;
use crate::blocks::dealer::{Dealer, OpenBlocks};
use crate::dataflow::{BlockStream, hold, sink, time_of, unary_frontier};
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
        // Own partitions that are passed, with records or without: they ascend from time to time.
        let (index, peers) = (scope.index() as u64, scope.peers() as u64);
        let mut passed = 0;
        // Capabilities of the times that have blocks.
        let mut held = BTreeMap::new();
        move |input, frontier, output| {
            // After a failure nothing is done, and capabilities are kept: other workers would take
            // silence for an end.
            if watch.failed() {
                return;
            }
            // In the order of arrival, so that `Partition::blocks` keeps the order of each sender.
            input.for_each(|capability, block| {
                let time = time_of(&capability);
                held.entry(time).or_insert_with(|| hold(&capability, output));
                watch.check(waiting.push(time, std::mem::take(block)));
            });
            let slice = Instant::now();
            // The times whose blocks have all arrived, ascending.
            while let Some(complete) = held.first_entry().filter(|first| !frontier.less_equal(first.key())) {
                let time = *complete.key();
                let mut session = output.session_with_builder(complete.get());
                while let Some(partition) = waiting.first(time) {
                    if watch.check(each(partition, &mut dealer)).is_none() {
                        return;
                    }
                    let own = (partition.part.saturating_sub(index) / peers + 1) as usize;
                    watch.add_steps(own.saturating_sub(passed));
                    passed = passed.max(own);
                    waiting.remove_first(time);
                    dealer.full().for_each(|mut block| session.give_container(&mut block));
                    if slice.elapsed() > SLICE {
                        return activator.activate();
                    }
                }
                dealer.finish().for_each(|mut block| session.give_container(&mut block));
                drop(session);
                complete.remove();
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

#[cfg(test)]
mod tests {
    use std::cell::RefCell;
    use std::rc::Rc;

    use timely::dataflow::operators::Probe;

    use super::*;
    use crate::blocks::block::Block;
    use crate::context::Context;
    use crate::dataflow::{emit, run_dataflow, source};

    /// Times whose blocks a worker sends one after the other; the times of an entry are complete
    /// before those of the next.
    const TIMES: [&[u64]; 4] = [&[2, 0, 1, 2], &[4, 3], &[5], &[7, 6]];

    #[test]
    fn times_are_grouped_in_ascending_order_when_all_of_their_blocks_have_arrived() {
        for workers in [1, 2, 4] {
            let guards = timely::execute(timely::Config::process(workers), move |worker| {
                let cx = &mut Context::alone(worker);
                let watch = &cx.watch().clone();
                let (index, peers) = (cx.index() as u64, cx.peers() as u64);
                // Partitions of a worker are in descending order, too. Workers send with other
                // pauses.
                let parts = (0..3 * peers).rev();
                let times = TIMES.iter().flat_map(|times| {
                    let least = *times.iter().min().unwrap();
                    times.iter().map(move |time| (least, *time))
                });
                let unsent: Vec<_> = times.flat_map(|at| parts.clone().map(move |part| (at, part))).collect();
                let mut unsent = unsent.into_iter();
                let grouped: Rc<RefCell<Vec<_>>> = Rc::default();
                run_dataflow(cx, |scope, probe| {
                    let sent = source(scope, "Sent", |capability, info| {
                        let activator = scope.activator_for(info.address);
                        let mut capability = Some(capability);
                        move |output| {
                            let Some(least) = &mut capability else { return };
                            for _ in 0..=index {
                                let Some(((at_least, time), part)) = unsent.next() else {
                                    capability = None;
                                    return;
                                };
                                least.downgrade(&at_least);
                                let block = Block::of_records(part, 0, index as u32, &[[time, part, index]]);
                                emit(std::iter::once(block), output, &least.delayed(&time));
                            }
                            activator.activate();
                        }
                    });
                    let (grouped, waiting) =
                        (grouped.clone(), SpillBuffer::<[u64; 3]>::new(&std::env::temp_dir(), 1 << 20));
                    let answers = each_partition(sent, "Grouped", waiting, watch, move |partition, dealer| {
                        let mut records = Vec::new();
                        partition.blocks(|block| records.extend_from_slice(block.records()))?;
                        records.sort_unstable();
                        dealer.deal(index, records.len() as u64);
                        grouped.borrow_mut().push(records);
                        Ok(())
                    });
                    received(answers, |_: BlockOf<u64>| {}).probe_with(probe);
                })
                .unwrap();
                let mut times = TIMES.concat();
                times.sort_unstable();
                let expected = times.chunk_by(|a, b| a == b).flat_map(|time| {
                    (index..3 * peers).step_by(peers as usize).map(move |part| {
                        let of_worker = move |worker| time.iter().map(move |time| [*time, part, worker]);
                        (0..peers).flat_map(of_worker).collect::<Vec<_>>()
                    })
                });
                assert!(grouped.take().into_iter().eq(expected), "{workers} workers");
            });
            guards.unwrap().join().into_iter().for_each(|end| end.unwrap());
        }
    }
}
