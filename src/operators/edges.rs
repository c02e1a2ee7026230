//! Edges: documents that share a megashingle, as a star around the smallest of them.
//!
//! A star joins the same documents as all pairs would, with one edge a member; components need no more.

use std::sync::Arc;

use timely::dataflow::Stream;

use super::block::Block;
use super::group::Grouper;
use super::partitions::each_partition;
use crate::records::{Edge, Keyed};
use crate::watch::Watch;

/// Groups documents by key and gives the edges, each for the owner of its `doc`: `(member, smallest)` for every
/// member but the smallest, and once a key `(smallest, second smallest)`, so that the middle of a star knows a
/// neighbour too.
pub fn edges<'scope>(keyed: Stream<'scope, u64, Block<Keyed>>, watch: &Arc<Watch>) -> Stream<'scope, u64, Block<Edge>> {
    let peers = keyed.scope().peers();
    let mut grouper = Grouper::default();
    each_partition(keyed, "Edges", watch, move |keyed: &[Keyed], dealer| {
        grouper.fill(keyed.iter().map(|k| (k.key, k.doc)));
        for (at, Keyed { doc, .. }) in keyed.iter().enumerate() {
            let root = grouper.group(at).smallest;
            if root != *doc {
                dealer.deal(doc.owner(peers), Edge { doc: *doc, root });
            }
        }
        for (smallest, second) in grouper.shared() {
            dealer.deal(smallest.owner(peers), Edge { doc: smallest, root: second });
        }
    })
}
