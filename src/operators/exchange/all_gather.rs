//! All-gather and barrier: every worker receives the small results of all workers, or only waits for them.

use std::cell::RefCell;
use std::rc::Rc;

use anyhow::Result;
use timely::ExchangeData;
use timely::container::CapacityContainerBuilder;
use timely::dataflow::channels::pact::Pipeline;
use timely::dataflow::operators::generic::Operator;
use timely::dataflow::operators::probe::Handle;
use timely::dataflow::operators::vec::Broadcast;
use timely::dataflow::operators::{Probe, ToStream};
use timely::worker::Worker;

use super::run::run_to_end;
use crate::watch::Watch;

/// Returns the items of all workers, sorted, at every worker of every process. It returns when every worker has called it.
///
/// # Errors
/// Where a worker of this process failed.
pub fn all_gather<T: ExchangeData + Clone + Ord>(worker: &mut Worker, items: Vec<T>, watch: &Watch) -> Result<Vec<T>> {
    let gathered = Rc::new(RefCell::new(Vec::new()));
    let (probe, kept) = (Handle::new(), gathered.clone());
    worker.dataflow::<u64, _, _>(|scope| {
        items
            .to_stream(scope)
            .container::<Vec<T>>()
            .broadcast()
            .unary::<CapacityContainerBuilder<Vec<()>>, _, _, _>(Pipeline, "Gather", |_, _| {
                move |input, _output| input.for_each(|_, items| kept.borrow_mut().append(items))
            })
            .probe_with(&probe);
    });
    run_to_end(worker, &probe, watch)?;
    let mut gathered = gathered.take();
    gathered.sort_unstable();
    Ok(gathered)
}

/// Waits until every worker of every process has called it: an all-gather of nothing but one byte each.
///
/// # Errors
/// Where a worker of this process failed.
pub fn barrier(worker: &mut Worker, watch: &Watch) -> Result<()> {
    all_gather(worker, vec![0u8], watch).map(drop)
}
