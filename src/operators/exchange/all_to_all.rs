//! All-to-all: every worker deals records to partitions, and receives the records that all workers dealt to its own.
//!
//! It holds everything in memory at once, at the sender and at the receiver. Records that may not fit go through
//! [`each_partition`](super::each_partition), questions and answers through [`ask`](super::ask()).

use std::cell::RefCell;
use std::rc::Rc;

use anyhow::Result;
use bytemuck::Pod;
use timely::container::CapacityContainerBuilder;
use timely::dataflow::operators::Probe;
use timely::dataflow::operators::generic::Operator;
use timely::dataflow::operators::generic::operator::source;
use timely::dataflow::operators::probe::Handle;
use timely::worker::Worker;

use super::block::{Block, BlockBuilder, by_part};
use super::dealer::Dealer;
use super::run::run_to_end;
use crate::kernels::memory::advise_huge_pages;
use crate::watch::Watch;

/// Sends all dealt records to the owners of their partitions, and returns the blocks of the worker's own partitions:
/// partition `p` belongs to worker `p` modulo the number of workers. One sender's blocks of a partition
/// keep their order; otherwise blocks are in any order. It is a barrier, too: it returns when every worker has called it.
///
/// ```
/// use std::sync::Arc;
///
/// use nigh::operators::exchange::{Dealer, all_to_all};
/// use nigh::watch::Watch;
///
/// let workers = timely::execute(timely::Config::process(2), |worker| {
///     let watch = Arc::new(Watch::default());
///     let mut dealer = Dealer::new(worker.index(), worker.peers(), &watch);
///     // Each worker sends its index to worker 1.
///     dealer.deal(1, worker.index() as u64);
///     let blocks = all_to_all(worker, dealer, &watch).unwrap();
///     blocks.iter().map(|block| block.records().iter().sum::<u64>()).sum::<u64>()
/// });
/// let sums: Vec<u64> = workers.unwrap().join().into_iter().map(Result::unwrap).collect();
/// assert_eq!(sums, [0, 1]);
/// ```
///
/// # Errors
/// Where a worker of this process failed.
pub fn all_to_all<R: Pod + Send>(worker: &mut Worker, mut dealer: Dealer<R>, watch: &Watch) -> Result<Vec<Block<R>>> {
    let received = Rc::new(RefCell::new(Vec::new()));
    let probe = Handle::new();
    worker.dataflow::<u64, _, _>(|scope| {
        let received = received.clone();
        source::<_, BlockBuilder<R>, _, _>(scope, "Send", |capability, _| {
            let mut capability = Some(capability);
            move |output| {
                let Some(capability) = capability.take() else { return };
                let mut session = output.session_with_builder(&capability);
                dealer.finish().for_each(|mut block| session.give_container(&mut block));
            }
        })
        .unary::<CapacityContainerBuilder<Vec<()>>, _, _, _>(by_part(), "Receive", |_, _| {
            move |input, _output| input.for_each(|_, block| received.borrow_mut().push(std::mem::take(block)))
        })
        .probe_with(&probe);
    });
    run_to_end(worker, &probe, watch)?;
    Ok(received.take())
}

/// Returns all records of some blocks, in the order of the blocks.
pub(crate) fn blocks<R: Pod>(blocks: Vec<Block<R>>) -> Vec<R> {
    let mut records = Vec::with_capacity(blocks.iter().map(|block| block.records().len()).sum());
    advise_huge_pages(records.spare_capacity_mut());
    blocks.into_iter().for_each(|block| records.extend_from_slice(block.records()));
    records
}
