//! How many clusters each host has in a week (Fetterly 2004, section 3, Fig. 6).
//!
//! A cluster counts for every host with a page in it, a singleton too: the study's cluster map gives every URL a
//! cluster. Could-not-download is none, as it has no pages. Hosts are dealt by a 128-bit hash of their names. A worker
//! holds 48 bytes for each of its hosts, and for each pair of a host and a cluster of several pages; up to twice of
//! that while they are summed.

use std::cell::RefCell;
use std::rc::Rc;
use std::sync::Arc;

use anyhow::Result;
use arrow_array::{Int64Array, StringArray};
use bytemuck::{Pod, Zeroable};
use timely::container::CapacityContainerBuilder;
use timely::dataflow::channels::pact::Pipeline;
use timely::dataflow::operators::Probe;
use timely::dataflow::operators::generic::Operator;
use timely::dataflow::operators::generic::operator::source;
use timely::dataflow::operators::probe::Handle;
use timely::worker::Worker;

use crate::operators::exchange::{BlockBuilder, Dealer, by_part, run_to_end};
use crate::records::checksum;
use crate::state::History;
use crate::structures::{Ownership, Sums};
use crate::tables::{ClusterRow, Scan, Table, field};
use crate::watch::Watch;

/// Pages of a host in a cluster.
#[derive(Clone, Copy, Pod, Zeroable)]
#[repr(C)]
struct OnHost {
    host: [u64; 2],
    /// The cluster's root, or [`SINGLETONS`].
    cluster: u64,
    pages: u64,
}

/// All clusters of one page: no document has this name.
const SINGLETONS: u64 = u64::MAX;

/// The clusters of the hosts that fall to this worker, in the week number `at`: the hash of each host with pages, once,
/// in order, and its clusters.
///
/// # Errors
/// Names the file that cannot be read; or where a worker of this process failed.
pub fn host_clusters(
    worker: &mut Worker,
    history: &History,
    at: usize,
    owned: &Ownership,
    watch: &Arc<Watch>,
) -> Result<Vec<(u128, u64)>> {
    let mut own: Sums<(u128, u64)> = Sums::default();
    for shard in owned.shards() {
        for path in history.files(at, ClusterRow::NAME, shard) {
            Scan::open(&path, &["host", "similar_root", "similar_size"])?.for_each(|batch| {
                let hosts: &StringArray = field(batch, "host")?;
                let (roots, sizes): (&Int64Array, &Int64Array) =
                    (field(batch, "similar_root")?, field(batch, "similar_size")?);
                for (row, (root, size)) in roots.values().iter().zip(sizes.values()).enumerate() {
                    let cluster = if *size > 1 { *root as u64 } else { SINGLETONS };
                    own.add((checksum(hosts.value(row).as_bytes()), cluster), 1);
                }
                Ok(())
            })?;
        }
    }
    let met = exchanged(worker, own.finish(), watch)?;
    let mut hosts: Vec<(u128, u64)> = Vec::new();
    for of_host in met.chunk_by(|((a, _), _), ((b, _), _)| a == b) {
        let clusters = of_host.iter().map(|((_, cluster), pages)| if *cluster == SINGLETONS { *pages } else { 1 });
        hosts.push((of_host[0].0.0, clusters.sum()));
    }
    Ok(hosts)
}

/// Sums the pages of (host, cluster) over all workers; each gets the hosts that fall to it.
fn exchanged(worker: &mut Worker, own: Vec<((u128, u64), u64)>, watch: &Arc<Watch>) -> Result<Vec<((u128, u64), u64)>> {
    let (index, peers) = (worker.index(), worker.peers());
    let sums: Rc<RefCell<Sums<(u128, u64)>>> = Rc::default();
    let probe = Handle::new();
    worker.dataflow::<u64, _, _>(|scope| {
        let kept = sums.clone();
        let mut dealer = Dealer::new(index, peers, watch);
        source::<_, BlockBuilder<OnHost>, _, _>(scope, "Hosts", |capability, _| {
            let mut held = Some((capability, own));
            move |output| {
                let Some((capability, own)) = held.take() else { return };
                let mut session = output.session_with_builder(&capability);
                for ((host, cluster), pages) in own {
                    let halves = [(host >> 64) as u64, host as u64];
                    dealer.deal(halves[0] % peers as u64, OnHost { host: halves, cluster, pages });
                    dealer.full().for_each(|mut block| session.give_container(&mut block));
                }
                dealer.finish().for_each(|mut block| session.give_container(&mut block));
            }
        })
        .unary::<BlockBuilder<OnHost>, _, _, _>(by_part(), "Clusters", |_, _| {
            move |input, _output| {
                let mut sums = kept.borrow_mut();
                input.for_each(|_, block| {
                    for OnHost { host: [high, low], cluster, pages } in std::mem::take(block).records() {
                        sums.add((u128::from(*high) << 64 | u128::from(*low), *cluster), *pages);
                    }
                });
            }
        })
        .unary::<CapacityContainerBuilder<Vec<()>>, _, _, _>(Pipeline, "End", |_, _| {
            |input, _| input.for_each(|_, _| {})
        })
        .probe_with(&probe);
    });
    run_to_end(worker, &probe, watch)?;
    Ok(sums.take().finish())
}
