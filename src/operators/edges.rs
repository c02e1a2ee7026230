//! Edges: documents that share a megashingle, as a star around the smallest of them.
//!
//! A star joins the same documents as all pairs would, with one edge a member; components need no more.

use std::collections::BTreeMap;
use std::sync::Arc;

use timely::dataflow::Stream;
use timely::dataflow::operators::FrontierNotificator;
use timely::dataflow::operators::generic::Operator;

use super::block::{Block, BlockBuilder, Dealer, by_part};
use super::group::Grouper;
use crate::records::{Edge, Keyed};
use crate::watch::Watch;

/// Groups documents by key and gives the edges, each for the owner of its `doc`: `(member, smallest)` for every
/// member but the smallest, and once a key `(smallest, second smallest)`, so that the middle of a star knows a
/// neighbour too.
pub fn edges<'scope>(
    keyed: Stream<'scope, u64, Block<Keyed>>,
    peers: usize,
    watch: &Arc<Watch>,
) -> Stream<'scope, u64, Block<Edge>> {
    let mut dealer = Dealer::new(peers, watch);
    keyed.unary_frontier::<BlockBuilder<Edge>, _, _, _>(by_part(), "Edges", |_, _| {
        let mut stash: BTreeMap<u64, BTreeMap<u64, Vec<Keyed>>> = BTreeMap::new();
        let mut notificator = FrontierNotificator::default();
        let mut grouper = Grouper::default();
        move |(input, frontier), output| {
            input.for_each_time(|capability, blocks| {
                let partitions = stash.entry(*capability.time()).or_default();
                for block in blocks {
                    partitions.entry(block.part).or_default().append(&mut block.records);
                }
                notificator.notify_at(capability.retain(output.output_index()));
            });
            notificator.for_each(&[frontier], |capability, _| {
                let mut session = output.session_with_builder(&capability);
                for keyed in stash.remove(capability.time()).unwrap_or_default().into_values() {
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
                    dealer.full().for_each(|mut block| session.give_container(&mut block));
                }
                dealer.finish().for_each(|mut block| session.give_container(&mut block));
            });
        }
    })
}
