//! A round: every worker gives records to partitions, and gets those that the others gave to its own.

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

/// Sends everything that was dealt to the owners of its partitions; gives the blocks of own partitions, in an order of
/// its own. All of it is in memory. A barrier, too: it returns when every worker has called it.
///
/// # Errors
/// Where a worker of this process failed.
pub fn all_to_all<R: Pod + Send>(worker: &mut Worker, mut dealer: Dealer<R>, watch: &Watch) -> Result<Vec<Block<R>>> {
    let received = Rc::new(RefCell::new(Vec::new()));
    let (probe, kept) = (Handle::new(), received.clone());
    worker.dataflow::<u64, _, _>(|scope| {
        source::<_, BlockBuilder<R>, _, _>(scope, "Give", |capability, _| {
            let mut held = Some(capability);
            move |output| {
                let Some(capability) = held.take() else { return };
                let mut session = output.session_with_builder(&capability);
                dealer.finish().for_each(|mut block| session.give_container(&mut block));
            }
        })
        .unary::<CapacityContainerBuilder<Vec<()>>, _, _, _>(by_part(), "Get", |_, _| {
            move |input, _output| input.for_each(|_, block| kept.borrow_mut().push(std::mem::take(block)))
        })
        .probe_with(&probe);
    });
    run_to_end(worker, &probe, watch)?;
    Ok(received.take())
}

/// All records of some blocks.
pub(crate) fn blocks<R: Pod>(blocks: Vec<Block<R>>) -> Vec<R> {
    let mut records = Vec::with_capacity(blocks.iter().map(|block| block.records().len()).sum());
    advise_huge_pages(records.spare_capacity_mut());
    blocks.into_iter().for_each(|block| records.extend_from_slice(block.records()));
    records
}
