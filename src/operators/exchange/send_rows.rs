//! Rows of any size: they go to the workers that they are for, one by one. Records of a fixed size travel in blocks: see
//! [`all_to_all`](super::all_to_all()).

use std::cell::RefCell;
use std::rc::Rc;

use anyhow::Result;
use timely::ExchangeData;
use timely::container::CapacityContainerBuilder;
use timely::dataflow::channels::pact::Exchange;
use timely::dataflow::operators::generic::Operator;
use timely::dataflow::operators::probe::Handle;
use timely::dataflow::operators::{Probe, ToStream};
use timely::worker::Worker;

use super::run::run_to_end;
use crate::watch::Watch;

/// Sends rows of any size to the workers that they are for, and returns the received ones, in no particular order.
///
/// # Errors
/// If a worker of this process failed.
pub fn send_rows<T: ExchangeData + Clone>(worker: &mut Worker, rows: Vec<(usize, T)>, watch: &Watch) -> Result<Vec<T>> {
    let received = Rc::new(RefCell::new(Vec::new()));
    let probe = Handle::new();
    worker.dataflow::<u64, _, _>(|scope| {
        let received = received.clone();
        rows.to_stream(scope)
            .container::<Vec<(usize, T)>>()
            .unary::<CapacityContainerBuilder<Vec<()>>, _, _, _>(
                Exchange::new(|(to, _): &(usize, T)| *to as u64),
                "Rows",
                |_, _| {
                    move |input, _output| {
                        input.for_each(|_, rows| received.borrow_mut().extend(rows.drain(..).map(|(_, row)| row)))
                    }
                },
            )
            .probe_with(&probe);
    });
    run_to_end(worker, &probe, watch)?;
    Ok(received.take())
}
