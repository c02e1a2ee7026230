//! All-to-all: every worker deals records to partitions, and receives the records that all workers
//! dealt to its own.
//!
//! It holds everything in memory at once, at the sender and at the receiver. Records that may not
//! fit go through [`each_partition`](super::each_partition), questions and answers through
//! [`ask`](super::ask()).

use std::cell::RefCell;
use std::rc::Rc;

use anyhow::Result;
use bytemuck::Pod;
use nigh_kernels::kernels::memory::advise_huge_pages;
use timely::dataflow::operators::Probe;

use super::context::Context;
use super::dataflow::{run_dataflow, sink, source};
use crate::blocks::block::{Block, BlockOf};
use crate::blocks::dealer::Dealer;

/// Sends all dealt records to the owners of their partitions, and returns the blocks of the
/// worker's own partitions: partition `p` belongs to worker `p` modulo the number of workers. One
/// sender's blocks keep their order, and senders are in the order of their indices. It is a
/// barrier, too: it returns when every worker has called it.
///
/// ```
/// use nigh_exchange::{Context, all_to_all};
///
/// let workers = timely::execute(timely::Config::process(2), |worker| {
///     let cx = &mut Context::alone(worker);
///     let mut dealer = cx.dealer();
///     // Each worker sends its index to worker 1.
///     dealer.deal(1, cx.index() as u64);
///     let blocks = all_to_all(cx, dealer).unwrap();
///     blocks.iter().map(|block| block.records().iter().sum::<u64>()).sum::<u64>()
/// });
/// let sums: Vec<u64> = workers.unwrap().join().into_iter().map(Result::unwrap).collect();
/// assert_eq!(sums, [0, 1]);
/// ```
///
/// # Errors
/// Where a worker of this process failed.
pub fn all_to_all<R: Pod>(cx: &mut Context, mut dealer: Dealer<R>) -> Result<Vec<BlockOf<R>>> {
    let received = exchange_blocks(cx, dealer.finish().collect())?;
    Ok(received.into_iter().map(Block::open).collect())
}

/// Sends blocks to the owners of their partitions, and returns those of the worker's own: the
/// blocks of one sender in their order, and the senders by their index. It is a barrier, too.
///
/// # Errors
/// If a worker of this process failed.
pub(crate) fn exchange_blocks(cx: &mut Context, blocks: Vec<Block>) -> Result<Vec<Block>> {
    let received = Rc::new(RefCell::new(Vec::new()));
    run_dataflow(cx, |scope, probe| {
        let sent = source(scope, "Send", |capability, _| {
            let mut unsent = Some((blocks, capability));
            move |output| {
                let Some((blocks, capability)) = unsent.take() else { return };
                let mut session = output.session_with_builder(&capability);
                blocks.into_iter().for_each(|mut block| session.give_container(&mut block));
            }
        });
        let received = received.clone();
        sink(sent, "Receive", move |block| received.borrow_mut().push(block)).probe_with(probe);
    })?;
    let mut received = received.take();
    received.sort_by_key(|block: &Block| block.from);
    Ok(received)
}

/// Returns all records of some blocks, in the order of the blocks.
pub fn blocks<R: Pod>(blocks: Vec<BlockOf<R>>) -> Vec<R> {
    let mut records = Vec::with_capacity(blocks.iter().map(|block| block.records().len()).sum());
    advise_huge_pages(records.spare_capacity_mut());
    blocks.into_iter().for_each(|block| records.extend_from_slice(block.records()));
    records
}
