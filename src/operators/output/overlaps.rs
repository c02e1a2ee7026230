//! Overlaps: how many documents two clusters have in common, for all pairs of clusters that have any.
//!
//! Every document names two clusters, those that it belongs to in two weeks. A worker sums its own documents by the
//! pair of names, and sends each sum to the owner of the first name, who sums over all workers. What is exchanged is at
//! most a record (24 bytes) for each pair of each worker, and the second name may be anything: nobody owns it.
//!
//! A worker holds its own pairs and the pairs that it is the owner of, 24 bytes each and up to twice of that while they
//! are summed. Leave out pairs that need no company: a cluster of one document in either week overlaps by that
//! document, and its owner knows both sizes.

use std::cell::RefCell;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Instant;

use anyhow::Result;
use bytemuck::{Pod, Zeroable};
use timely::container::CapacityContainerBuilder;
use timely::dataflow::operators::Probe;
use timely::dataflow::operators::generic::Operator;
use timely::dataflow::operators::generic::operator::source;
use timely::dataflow::operators::probe::Handle;
use timely::worker::Worker;

use crate::operators::exchange::{BlockBuilder, Dealer, SLICE, by_part, run_to_end};
use crate::records::DocId;
use crate::structures::Sums;
use crate::watch::Watch;

/// Records that are dealt between two looks at the clock.
const SOME: usize = 1 << 12;

/// The documents that two clusters have in common.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Pod, Zeroable)]
#[repr(C)]
pub struct Overlap {
    /// The first cluster's name: a [`DocId`], whose owner owns the overlap.
    pub a: u64,
    /// The second cluster's name.
    pub b: u64,
    /// How many documents belong to both.
    pub count: u64,
}

/// Sums the own documents' pairs of names over all workers. Each worker gets the overlaps whose `a` it owns
/// ([`DocId::owner`]), every pair once, in order; whatever the workers, all of them together get the same.
///
/// # Errors
/// Where a worker of this process failed.
pub fn overlaps(
    worker: &mut Worker,
    pairs: impl Iterator<Item = (u64, u64)>,
    watch: &Arc<Watch>,
) -> Result<Vec<Overlap>> {
    let (index, peers) = (worker.index(), worker.peers());
    let mut own = Sums::default();
    pairs.for_each(|pair| own.add(pair, 1));
    let mut own = own.finish().into_iter();
    let sums: Rc<RefCell<Sums<(u64, u64)>>> = Rc::default();
    let probe = Handle::new();
    worker.dataflow::<u64, _, _>(|scope| {
        let at_owner = sums.clone();
        let mut dealer = Dealer::new(index, peers, watch);
        source::<_, BlockBuilder<Overlap>, _, _>(scope, "Pairs", |capability, info| {
            let activator = scope.activator_for(info.address);
            let mut held = Some(capability);
            move |output| {
                let Some(capability) = held.as_ref() else { return };
                let mut session = output.session_with_builder(capability);
                let slice = Instant::now();
                while slice.elapsed() < SLICE {
                    if own.len() == 0 {
                        dealer.finish().for_each(|mut block| session.give_container(&mut block));
                        drop(session);
                        held = None;
                        return;
                    }
                    for ((a, b), count) in own.by_ref().take(SOME) {
                        let owner = DocId::from_table(a as i64).owner(peers);
                        dealer.deal(owner as u64, Overlap { a, b, count });
                    }
                    dealer.full().for_each(|mut block| session.give_container(&mut block));
                }
                activator.activate();
            }
        })
        .unary::<CapacityContainerBuilder<Vec<()>>, _, _, _>(by_part(), "Overlaps", |_, _| {
            move |input, _output| {
                let mut sums = at_owner.borrow_mut();
                input.for_each(|_, block| {
                    let block = std::mem::take(block);
                    block.records().iter().for_each(|overlap| sums.add((overlap.a, overlap.b), overlap.count));
                });
            }
        })
        .probe_with(&probe);
    });
    run_to_end(worker, &probe, watch)?;
    let sums = sums.take().finish();
    Ok(sums.into_iter().map(|((a, b), count)| Overlap { a, b, count }).collect())
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;
    use crate::records::mix;

    #[test]
    fn overlaps_are_those_of_a_map_whatever_the_workers() {
        // Few names meet often; some of the second names are no documents.
        let pairs = |documents: u64| -> Vec<(u64, u64)> {
            let name = |hash: u64| DocId::new((hash % 5) as u32, hash % 7).to_table() as u64;
            let second = |hash: u64| if hash.is_multiple_of(3) { u64::MAX } else { name(hash) };
            (0..documents).map(|doc| (name(mix(doc)), second(mix(!doc)))).collect()
        };
        for documents in [0, 1, 40_000] {
            let mut twin: BTreeMap<(u64, u64), u64> = BTreeMap::new();
            pairs(documents).into_iter().for_each(|pair| *twin.entry(pair).or_default() += 1);
            for workers in [1, 2, 4, 7] {
                let guards = timely::execute(timely::Config::process(workers), move |worker| {
                    let (index, peers) = (worker.index(), worker.peers());
                    let own = pairs(documents).into_iter().skip(index).step_by(peers);
                    let found = overlaps(worker, own, &Arc::default()).unwrap();
                    assert!(found.is_sorted());
                    assert!(found.iter().all(|o| DocId::from_table(o.a as i64).owner(peers) == index));
                    found
                });
                let mut all: Vec<Overlap> = guards.unwrap().join().into_iter().flat_map(Result::unwrap).collect();
                all.sort_unstable();
                let wanted = twin.iter().map(|((a, b), count)| Overlap { a: *a, b: *b, count: *count });
                assert!(all.into_iter().eq(wanted), "{documents} documents, {workers} workers");
            }
        }
    }
}
