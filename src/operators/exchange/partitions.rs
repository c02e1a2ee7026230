//! Partition by partition: records are collected until their time is over, then handled in cache.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Instant;

use anyhow::Result;
use bytemuck::Pod;
use timely::container::CapacityContainerBuilder;
use timely::dataflow::operators::FrontierNotificator;
use timely::dataflow::operators::generic::Operator;
use timely::dataflow::{Stream, StreamVec};

use super::block::{Block, BlockBuilder, by_part};
use super::dealer::Dealer;
use super::ranges::SLICE;
use super::spill::{Partition, SpillBuffer};
use crate::watch::Watch;

/// Exchanges blocks to the owners of their partitions, and when a time is over hands its partitions to `each`, in their
/// order; what `each` deals to the workers goes out in blocks of that time. The order of the blocks of two senders
/// depends on how they arrived: what `each` does with them must not.
pub fn each_partition<'scope, R: Pod + Send, O: Pod + Send>(
    blocks: Stream<'scope, u64, Block<R>>,
    name: &str,
    mut stash: SpillBuffer<R>,
    watch: &Arc<Watch>,
    mut each: impl FnMut(&Partition<'_, R>, &mut Dealer<O>) -> Result<()> + 'static,
) -> Stream<'scope, u64, Block<O>> {
    let scope = blocks.scope();
    let mut dealer = Dealer::new(scope.index(), scope.peers(), watch);
    let watch = watch.clone();
    blocks.unary_frontier::<BlockBuilder<O>, _, _, _>(by_part(), name, |_, info| {
        let activator = scope.activator_for(info.address);
        let mut notificator = FrontierNotificator::default();
        let mut over = VecDeque::new();
        move |(input, frontier), output| {
            // After a failure nothing more is done, and what is held is kept: silence would be taken for an end.
            if watch.failed() {
                return;
            }
            // In the order of arrival: `Partition::blocks` keeps that of each sender.
            input.for_each(|capability, block| {
                let time = *capability.time();
                if !stash.has(time) {
                    notificator.notify_at(capability.retain(output.output_index()));
                }
                watch.check(stash.push(time, std::mem::take(block)));
            });
            notificator.for_each(&[frontier], |capability, _| over.push_back(capability));
            let slice = Instant::now();
            while let Some(capability) = over.front() {
                let mut session = output.session_with_builder(capability);
                while let Some(partition) = stash.first(*capability.time()) {
                    if watch.check(each(&partition, &mut dealer)).is_none() {
                        return;
                    }
                    stash.remove_first(*capability.time());
                    dealer.full().for_each(|mut block| session.give_container(&mut block));
                    if slice.elapsed() > SLICE {
                        return activator.activate();
                    }
                }
                dealer.finish().for_each(|mut block| session.give_container(&mut block));
                drop(session);
                over.pop_front();
            }
        }
    })
}

/// Exchanges blocks to the workers that their partitions name, and hands them to `take` there.
pub fn received<'scope, R: Pod + Send>(
    blocks: Stream<'scope, u64, Block<R>>,
    mut take: impl FnMut(Block<R>) + 'static,
) -> StreamVec<'scope, u64, ()> {
    blocks.unary::<CapacityContainerBuilder<Vec<()>>, _, _, _>(by_part(), "Received", |_, _| {
        move |input, _output| input.for_each(|_, block| take(std::mem::take(block)))
    })
}
