//! Sending edges to the owners of their documents: as a stream inside a dataflow, or by an
//! all-to-all.

use std::sync::Arc;

use anyhow::Result;
use nigh_exchange::{BlockStream, Context, Dealer, all_to_all, source};
use timely::dataflow::Scope;

use crate::records::Edge;
use crate::watch::Watch;

/// A source of the given edges, in blocks addressed to the owner of each edge's `doc`.
pub fn edges<'scope>(scope: Scope<'scope, u64>, edges: Vec<Edge>, watch: &Arc<Watch>) -> BlockStream<'scope> {
    let peers = scope.peers();
    let mut dealer = Dealer::new(scope.index(), peers, watch);
    source(scope, "Edges", |capability, _| {
        let mut unsent = Some((capability, edges));
        move |output| {
            let Some((capability, edges)) = unsent.take() else { return };
            let mut session = output.session_with_builder(&capability);
            for edge in edges {
                dealer.deal(edge.doc.owner(peers) as u64, edge);
                dealer.full().for_each(|mut block| session.give_container(&mut block));
            }
            dealer.finish().for_each(|mut block| session.give_container(&mut block));
        }
    })
}

/// Sends every edge to the owner of its `doc`, and calls `each` with the edges that this worker
/// receives.
///
/// Sent and received edges are held in memory. It returns when every worker of every process has
/// called it.
///
/// # Errors
/// Where a worker of this process failed.
pub fn send_edges(cx: &mut Context, edges: Vec<Edge>, mut each: impl FnMut(Edge)) -> Result<()> {
    let peers = cx.peers();
    let mut dealer = cx.dealer();
    edges.into_iter().for_each(|edge| dealer.deal(edge.doc.owner(peers) as u64, edge));
    let received = all_to_all(cx, dealer)?;
    received.iter().for_each(|block| block.records().iter().for_each(|edge| each(*edge)));
    Ok(())
}
