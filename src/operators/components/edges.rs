//! Edges on their way to the owners of their documents.

use std::cell::RefCell;
use std::rc::Rc;
use std::sync::Arc;

use anyhow::Result;
use timely::container::CapacityContainerBuilder;
use timely::dataflow::channels::pact::Pipeline;
use timely::dataflow::operators::Probe;
use timely::dataflow::operators::generic::Operator;
use timely::dataflow::operators::generic::operator::source;
use timely::dataflow::operators::probe::Handle;
use timely::dataflow::{Scope, Stream};
use timely::worker::Worker;

use crate::operators::exchange::{Block, BlockBuilder, Dealer, by_part, run_to_end};
use crate::records::Edge;
use crate::watch::Watch;

/// Some edges, in blocks for the owners of their documents.
pub fn edges<'scope>(
    scope: Scope<'scope, u64>,
    edges: Vec<Edge>,
    watch: &Arc<Watch>,
) -> Stream<'scope, u64, Block<Edge>> {
    let peers = scope.peers();
    let mut dealer = Dealer::new(scope.index(), peers, watch);
    source::<_, BlockBuilder<Edge>, _, _>(scope, "Edges", |capability, _| {
        let mut held = Some((capability, edges));
        move |output| {
            let Some((capability, edges)) = held.take() else { return };
            let mut session = output.session_with_builder(&capability);
            for edge in edges {
                dealer.deal(edge.doc.owner(peers) as u64, edge);
                dealer.full().for_each(|mut block| session.give_container(&mut block));
            }
            dealer.finish().for_each(|mut block| session.give_container(&mut block));
        }
    })
}

/// Tells edges to the owners of their documents: `each` is called with those that this worker is told.
///
/// # Errors
/// Where a worker of this process failed.
pub fn tell_edges(worker: &mut Worker, some: Vec<Edge>, watch: &Arc<Watch>, mut each: impl FnMut(Edge)) -> Result<()> {
    let told = Rc::new(RefCell::new(Vec::new()));
    let (probe, kept) = (Handle::new(), told.clone());
    worker.dataflow::<u64, _, _>(|scope| {
        edges(scope, some, watch)
            .unary::<BlockBuilder<Edge>, _, _, _>(by_part(), "Tell", |_, _| {
                move |input, _output| input.for_each(|_, block| kept.borrow_mut().push(std::mem::take(block)))
            })
            .unary::<CapacityContainerBuilder<Vec<()>>, _, _, _>(Pipeline, "End", |_, _| {
                |input, _| input.for_each(|_, _| {})
            })
            .probe_with(&probe);
    });
    run_to_end(worker, &probe, watch)?;
    told.take().iter().for_each(|block| block.records().iter().for_each(|edge| each(*edge)));
    Ok(())
}
