//! Incremental labels: the components of a small graph before and after a change, by differential
//! dataflow.
//!
//! Edges of the week before exist at time 0, and differences of edges come at time 1. Label
//! propagation (McSherry's `propagate`: iterated joins with the edges, and minima) is maintained
//! under them. Memory: about 150 bytes an edge.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::rc::Rc;

use anyhow::Result;
use differential_dataflow::VecCollection;
use differential_dataflow::algorithms::graphs::propagate::propagate;
use differential_dataflow::input::Input;
use nigh_exchange::{Context, run_to_end};
use timely::dataflow::operators::probe::Handle;

/// A difference of an edge between two nodes: at time 0 an edge that was there, at time 1 a change.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct EdgeDifference {
    /// One of the nodes.
    pub a: u64,
    /// The other one.
    pub b: u64,
    /// 0 or 1.
    pub time: u32,
    /// How many such edges are added; negative if they are removed.
    pub difference: i32,
}

/// Labels the nodes of edges by the smallest node of their component: (node, label) pairs.
pub fn labels_of_edges(edges: VecCollection<'_, u32, (u64, u64), i32>) -> VecCollection<'_, u32, (u64, u64), i32> {
    let both_ways = edges.clone().map(|(a, b)| (b, a)).concat(edges);
    let nodes = both_ways.clone().map(|(a, _)| (a, a));
    propagate(both_ways, nodes)
}

/// Labels nodes by the smallest node of their component after the change. Returns (node, label)
/// pairs, of which every worker has different ones, for nodes that have edges then; and how many
/// labels this worker added and removed at time 1.
///
/// ```text
/// label[n] = n, for each node n with an edge at time 0
/// repeat until nothing changes: label[n] = min(label[n], label[m] for each edge (n, m))
/// the same for time 1, where only what depends on a difference is computed again
/// ```
///
/// ```
/// use nigh_week::operators::delta::{EdgeDifference, incremental_labels};
/// use nigh_exchange::Context;
///
/// // 1 - 2 - 3 before the change, which removes the edge from 2 to 3 and adds one from 3 to 4.
/// let edge = |a, b, time, difference| EdgeDifference { a, b, time, difference };
/// let edges = vec![edge(1, 2, 0, 1), edge(2, 3, 0, 1), edge(2, 3, 1, -1), edge(3, 4, 1, 1)];
/// let (labels, _) = timely::execute_directly(|worker| incremental_labels(&mut Context::alone(worker), edges))?;
/// assert_eq!(labels, [(1, 1), (2, 1), (3, 3), (4, 3)]);
/// # anyhow::Ok(())
/// ```
///
/// # Errors
/// If a worker of this process failed.
pub fn incremental_labels(cx: &mut Context, mut edges: Vec<EdgeDifference>) -> Result<(Vec<(u64, u64)>, u64)> {
    let probe = Handle::new();
    let labels: Rc<RefCell<BTreeMap<(u64, u64), i32>>> = Rc::default();
    let differences = Rc::new(Cell::new(0));
    let mut input = cx.worker().dataflow::<u32, _, _>(|scope| {
        let (input, edges) = scope.new_collection::<(u64, u64), i32>();
        let (labels, differences) = (labels.clone(), differences.clone());
        labels_of_edges(edges)
            .inspect(move |(labelled, time, difference)| {
                differences.set(differences.get() + u64::from(*time > 0));
                let mut labels = labels.borrow_mut();
                let count = labels.entry(*labelled).or_default();
                *count += difference;
                if *count == 0 {
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
    run_to_end(cx, &probe)?;
    Ok((labels.take().into_keys().collect(), differences.get()))
}
