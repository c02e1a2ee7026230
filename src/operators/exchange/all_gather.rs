//! All-gather and barrier: every worker receives the items of all workers, or only waits for the other workers.
//!
//! Every worker of every process must call them, in the same order. An all-gather sends every item to every worker, so it is
//! for small results: counts, extremes, lists of a few rows. Records that have one owner go by
//! [`all_to_all`](super::all_to_all()).

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
/// ```
/// use nigh::operators::exchange::all_gather;
/// use nigh::watch::Watch;
///
/// let workers = timely::execute(timely::Config::process(2), |worker| {
///     let own = vec![10 * worker.index()];
///     all_gather(worker, own, &Watch::default()).unwrap()
/// });
/// for gathered in workers.unwrap().join() {
///     assert_eq!(gathered.unwrap(), [0, 10]);
/// }
/// ```
///
/// # Errors
/// Where a worker of this process failed.
pub fn all_gather<T: ExchangeData + Clone + Ord>(worker: &mut Worker, items: Vec<T>, watch: &Watch) -> Result<Vec<T>> {
    let gathered = Rc::new(RefCell::new(Vec::new()));
    let probe = Handle::new();
    worker.dataflow::<u64, _, _>(|scope| {
        let gathered = gathered.clone();
        items
            .to_stream(scope)
            .container::<Vec<T>>()
            .broadcast()
            .unary::<CapacityContainerBuilder<Vec<()>>, _, _, _>(Pipeline, "Gather", |_, _| {
                move |input, _output| input.for_each(|_, items| gathered.borrow_mut().append(items))
            })
            .probe_with(&probe);
    });
    run_to_end(worker, &probe, watch)?;
    let mut gathered = gathered.take();
    gathered.sort_unstable();
    Ok(gathered)
}

/// Returns when every worker of every process has called it: an all-gather of one byte of each worker.
///
/// # Errors
/// Where a worker of this process failed.
pub fn barrier(worker: &mut Worker, watch: &Watch) -> Result<()> {
    all_gather(worker, vec![0u8], watch).map(drop)
}

/// Whether any worker says so; the same at every worker.
///
/// # Errors
/// Where a worker of this process failed.
pub fn any(worker: &mut Worker, says: bool, watch: &Watch) -> Result<bool> {
    Ok(all_gather(worker, vec![says], watch)?.contains(&true))
}
