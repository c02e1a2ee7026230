//! One exchange by key: records go to the owners of their keys, and answers come back to the senders.

use std::sync::Arc;

use anyhow::Result;
use bytemuck::Pod;
use timely::dataflow::operators::Probe;
use timely::dataflow::operators::probe::Handle;
use timely::worker::Worker;

use super::block::Block;
use super::dealer::Dealer;
use super::key_ranges::KeyRanges;
use super::partitions::{each_partition, received};
use super::ranges::{RangeDealer, ranges};
use super::run::run_to_end;
use super::spill::{Partition, SpillBuffer};
use crate::watch::Watch;

/// Deals records by the hashes of their keys, groups one range of keys at a time, and hands the answers to the workers that they are
/// dealt to.
///
/// `open` begins to read the input, once for each range of `cut`; the function that it returns deals some more records, and returns
/// `false` when there were none left. `each` is called with every own partition, and deals answers to partitions that are workers'
/// indices: usually to `from` of a block. `take` receives the answers that are dealt to this worker. Neither may depend on the order of
/// the blocks of two senders.
///
/// ```text
/// for each range of keys:
///     open()(dealer) until it returns false
///     for each own partition:
///         each(partition, dealer)
///     take(block) for each block of answers
/// ```
///
/// # Errors
/// If the input cannot be read, or a worker of this process failed.
#[allow(clippy::too_many_arguments, reason = "each is a part of the exchange, and callers name their own")]
pub fn by_key<R, A, F>(
    worker: &mut Worker,
    name: &str,
    cut: KeyRanges,
    waiting: SpillBuffer<R>,
    watch: &Arc<Watch>,
    open: impl FnMut() -> F + 'static,
    each: impl FnMut(&Partition<'_, R>, &mut Dealer<A>) -> Result<()> + 'static,
    take: impl FnMut(Block<A>) + 'static,
) -> Result<()>
where
    R: Pod + Send,
    A: Pod + Send,
    F: FnMut(&mut RangeDealer<'_, R>) -> Result<bool> + 'static,
{
    let probe = Handle::new();
    worker.dataflow::<u64, _, _>(|scope| {
        let is_grouped = {
            let probe = probe.clone();
            move |range: u64| !probe.less_than(&(range + 1))
        };
        let records = ranges(scope, name, cut, watch, open, is_grouped);
        let answers = each_partition(records, name, waiting, watch, each);
        received(answers, take).probe_with(&probe);
    });
    run_to_end(worker, &probe, watch)
}
