//! Overlaps: how many documents two clusters have in common, for all pairs of clusters that share
//! at least one.
//!
//! Every document gives a pair of ids: those of the clusters that it belongs to in two weeks. A
//! worker counts its own documents by pair and sends each count to the owner of the first id, which
//! adds up the counts of all workers. At most one record (24 bytes) for each pair of each worker is
//! exchanged. The second id may be any number: it has no owner.
//!
//! A worker holds the pairs of its own documents and the pairs that it owns, 24 bytes each and up
//! to twice that while they are summed. Callers can leave out clusters of one document: such a
//! cluster overlaps another by that document, and the document's owner knows both sizes.

use std::cell::RefCell;
use std::rc::Rc;
use std::time::Instant;

use anyhow::Result;
use bytemuck::{Pod, Zeroable};
use nigh_exchange::{BlockOf, Context, SLICE, received, run_dataflow, source};
use timely::dataflow::operators::Probe;

use crate::records::DocId;
use crate::structures::Sums;

/// Records that are dealt between two checks of the clock.
const RECORDS: usize = 1 << 12;

/// The documents that two clusters have in common.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Pod, Zeroable)]
#[repr(C)]
pub struct ClusterOverlap {
    /// The id of the first cluster: a [`DocId`], whose owner owns the overlap.
    pub a: u64,
    /// The id of the second cluster.
    pub b: u64,
    /// The number of documents that belong to both.
    pub count: u64,
}

/// Counts the pairs of all workers' documents; `pairs` are those of the own documents. Each worker
/// receives the overlaps whose `a` it owns ([`DocId::owner`]), every pair once, in order. The
/// overlaps of all workers together do not depend on the number of workers.
///
/// # Errors
/// Where a worker of this process failed.
pub fn overlaps(cx: &mut Context, pairs: impl Iterator<Item = (u64, u64)>) -> Result<Vec<ClusterOverlap>> {
    let peers = cx.peers();
    let mut own_counts = Sums::default();
    pairs.for_each(|pair| own_counts.add(pair, 1));
    let mut own_counts = own_counts.finish().into_iter();
    let sums: Rc<RefCell<Sums<(u64, u64)>>> = Rc::default();
    let mut dealer = cx.dealer();
    run_dataflow(cx, |scope, probe| {
        let overlaps = source(scope, "Pairs", |capability, info| {
            let activator = scope.activator_for(info.address);
            let mut capability = Some(capability);
            move |output| {
                let Some(current) = capability.as_ref() else { return };
                let mut session = output.session_with_builder(current);
                let slice = Instant::now();
                while slice.elapsed() < SLICE {
                    if own_counts.len() == 0 {
                        dealer.finish().for_each(|mut block| session.give_container(&mut block));
                        drop(session);
                        capability = None;
                        return;
                    }
                    for ((a, b), count) in own_counts.by_ref().take(RECORDS) {
                        let owner = DocId::from_table(a as i64).owner(peers);
                        dealer.deal(owner as u64, ClusterOverlap { a, b, count });
                    }
                    dealer.full().for_each(|mut block| session.give_container(&mut block));
                }
                activator.activate();
            }
        });
        let sums = sums.clone();
        let add = move |block: BlockOf<ClusterOverlap>| {
            let mut sums = sums.borrow_mut();
            block.records().iter().for_each(|overlap| sums.add((overlap.a, overlap.b), overlap.count));
        };
        received(overlaps, add).probe_with(probe);
    })?;
    let sums = sums.take().finish();
    Ok(sums.into_iter().map(|((a, b), count)| ClusterOverlap { a, b, count }).collect())
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;
    use crate::records::mix;

    #[test]
    fn overlaps_equal_those_of_a_map_with_any_number_of_workers() {
        // Few ids, so that pairs repeat; some of the second ids are not documents.
        let pairs = |documents: u64| -> Vec<(u64, u64)> {
            let id = |hash: u64| DocId::new((hash % 5) as u32, hash % 7).to_table() as u64;
            let second = |hash: u64| if hash.is_multiple_of(3) { u64::MAX } else { id(hash) };
            (0..documents).map(|doc| (id(mix(doc)), second(mix(!doc)))).collect()
        };
        for documents in [0, 1, 40_000] {
            let mut twin: BTreeMap<(u64, u64), u64> = BTreeMap::new();
            pairs(documents).into_iter().for_each(|pair| *twin.entry(pair).or_default() += 1);
            for workers in [1, 2, 4, 7] {
                let guards = timely::execute(timely::Config::process(workers), move |worker| {
                    let cx = &mut Context::alone(worker);
                    let (index, peers) = (cx.index(), cx.peers());
                    let own = pairs(documents).into_iter().skip(index).step_by(peers);
                    let own_overlaps = overlaps(cx, own).unwrap();
                    assert!(own_overlaps.is_sorted());
                    assert!(own_overlaps.iter().all(|o| DocId::from_table(o.a as i64).owner(peers) == index));
                    own_overlaps
                });
                let mut all: Vec<ClusterOverlap> =
                    guards.unwrap().join().into_iter().flat_map(Result::unwrap).collect();
                all.sort_unstable();
                let wanted = twin.iter().map(|((a, b), count)| ClusterOverlap { a: *a, b: *b, count: *count });
                assert!(all.into_iter().eq(wanted), "{documents} documents, {workers} workers");
            }
        }
    }
}
