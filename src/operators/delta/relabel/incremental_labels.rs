//! The labels of a small graph before and after it changes, by differential dataflow.
//!
//! The edges of the week before are there at time 0, and differences of edges come at time 1; label propagation
//! (McSherry's `propagate`: iterated joins with the edges and minima) is kept up to date under them, and what it says of
//! time 1 are label differences. What goes in costs about 150 bytes an edge.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;

use anyhow::Result;
use differential_dataflow::algorithms::graphs::propagate::propagate;
use differential_dataflow::input::Input;
use timely::dataflow::operators::probe::Handle;
use timely::worker::Worker;

use crate::operators::exchange::run_to_end;
use crate::watch::Watch;

/// A difference of an edge between two nodes: at time 0 what was, at time 1 what changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct EdgeDifference {
    /// One of the nodes.
    pub a: u64,
    /// The other one.
    pub b: u64,
    /// 0 or 1.
    pub time: u32,
    /// How many of it come, or go.
    pub difference: i32,
}

/// The label (smallest node of its component, after the change) of some of the nodes that have edges then; workers
/// have different ones. With it, how many labels came and went at this worker.
///
/// # Errors
/// Where a worker of this process failed.
pub fn relabel(worker: &mut Worker, mut edges: Vec<EdgeDifference>, watch: &Watch) -> Result<(Vec<(u64, u64)>, u64)> {
    let probe = Handle::new();
    let labels: Rc<RefCell<BTreeMap<(u64, u64), i32>>> = Rc::default();
    let differences = Rc::new(std::cell::Cell::new(0));
    let mut input = worker.dataflow::<u32, _, _>(|scope| {
        let (input, edges) = scope.new_collection::<(u64, u64), i32>();
        let both = edges.clone().map(|(a, b)| (b, a)).concat(edges);
        let nodes = both.clone().map(|(a, _)| (a, a));
        let (labels, differences) = (labels.clone(), differences.clone());
        propagate(both, nodes)
            .inspect(move |(labelled, time, difference)| {
                differences.set(differences.get() + u64::from(*time > 0));
                let mut labels = labels.borrow_mut();
                let sum = labels.entry(*labelled).or_default();
                *sum += difference;
                if *sum == 0 {
                    labels.remove(labelled);
                }
            })
            .probe_with(&probe);
        input
    });
    edges.sort_unstable_by_key(|edge| (edge.time, edge.a, edge.b));
    for edge in edges {
        if edge.time > *input.time() {
            input.advance_to(edge.time);
        }
        input.update((edge.a, edge.b), edge.difference);
    }
    input.advance_to(2);
    input.flush();
    drop(input);
    run_to_end(worker, &probe, watch)?;
    Ok((labels.take().into_keys().collect(), differences.get()))
}
