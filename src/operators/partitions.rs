//! Partition by partition: records are collected until their time is over, then handled in cache.

use std::collections::BTreeMap;
use std::sync::Arc;

use bytemuck::Pod;
use timely::dataflow::Stream;
use timely::dataflow::operators::FrontierNotificator;
use timely::dataflow::operators::generic::Operator;

use super::block::{Block, BlockBuilder, Dealer, by_part};
use crate::watch::Watch;

/// Exchanges blocks to the owners of their partitions, and when a time is over hands each partition's records to
/// `each`, in the order of partitions; what `each` deals goes out in blocks of that time. The order of the records
/// within a partition depends on how they arrived: what `each` does with them must not.
pub fn each_partition<'scope, R: Pod + Send, O: Pod + Send>(
    blocks: Stream<'scope, u64, Block<R>>,
    name: &str,
    watch: &Arc<Watch>,
    mut each: impl FnMut(&[R], &mut Dealer<O>) + 'static,
) -> Stream<'scope, u64, Block<O>> {
    let mut dealer = Dealer::new(blocks.scope().peers(), watch);
    blocks.unary_frontier::<BlockBuilder<O>, _, _, _>(by_part(), name, |_, _| {
        let mut stash: BTreeMap<u64, BTreeMap<u64, Vec<R>>> = BTreeMap::new();
        let mut notificator = FrontierNotificator::default();
        move |(input, frontier), output| {
            input.for_each_time(|capability, blocks| {
                let partitions = stash.entry(*capability.time()).or_default();
                for block in blocks {
                    partitions.entry(block.part).or_default().append(&mut block.records);
                }
                notificator.notify_at(capability.retain(output.output_index()));
            });
            notificator.for_each(&[frontier], |capability, _| {
                let mut session = output.session_with_builder(&capability);
                for records in stash.remove(capability.time()).unwrap_or_default().into_values() {
                    each(&records, &mut dealer);
                    dealer.full().for_each(|mut block| session.give_container(&mut block));
                }
                dealer.finish().for_each(|mut block| session.give_container(&mut block));
            });
        }
    })
}
