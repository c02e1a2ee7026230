//! Changed documents that hang on one cluster and on nothing else: they take its label, and differential dataflow need not
//! hear of them. Most that are edited keep to their cluster, and most that come join one.

use std::collections::HashMap;
use std::sync::Arc;

use anyhow::Result;
use bytemuck::{Pod, Zeroable};
use timely::worker::Worker;

use crate::operators::delta::relabel::EdgeDifference;
use crate::operators::delta::sharing::{CLUSTER, doc};
use crate::operators::exchange::{Dealer, all_gather, all_to_all, blocks};
use crate::structures::ByKey;
use crate::watch::Watch;

/// A difference of an edge, at the owner of one of its nodes, which is a document.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Pod, Zeroable)]
#[repr(C)]
struct Incident {
    node: u64,
    other: u64,
    time: u32,
    difference: i32,
}

/// A document, and the cluster that it joins: nodes.
pub(crate) type Leaf = (u64, u64);

/// Takes out the edges of documents that in the end have one neighbour, a cluster: gives the other differences, at the
/// owners of their smaller nodes, and own documents with their clusters. Of two nodes of an edge at most one is a cluster.
///
/// # Errors
/// Where a worker of this process failed.
pub(crate) fn leaves(
    worker: &mut Worker,
    edges: Vec<EdgeDifference>,
    watch: &Arc<Watch>,
) -> Result<(Vec<EdgeDifference>, Vec<Leaf>)> {
    let peers = worker.peers();
    let mut dealer = Dealer::new(worker.index(), peers, watch);
    for EdgeDifference { a, b, time, difference } in edges {
        for (node, other) in [(a, b), (b, a)].into_iter().filter(|(node, _)| node & CLUSTER == 0) {
            dealer.deal(doc(node).owner(peers) as u64, Incident { node, other, time, difference });
        }
    }
    let mut incident: Vec<Incident> = blocks(all_to_all(worker, dealer, watch)?);
    incident.sort_unstable();
    let (mut kept, mut leaves) = (Vec::new(), Vec::new());
    for of_node in incident.chunk_by(|a, b| a.node == b.node) {
        let in_the_end = |of_edge: &&[Incident]| of_edge.iter().map(|edge| edge.difference).sum::<i32>() > 0;
        let mut neighbours = of_node.chunk_by(|a, b| a.other == b.other).filter(in_the_end);
        match (neighbours.next().map(|of_edge| of_edge[0]), neighbours.next()) {
            (Some(Incident { node, other, .. }), None) if other & CLUSTER != 0 => leaves.push((node, other)),
            _ => kept.extend(of_node.iter().filter(|edge| edge.node < edge.other).map(|edge| EdgeDifference {
                a: edge.node,
                b: edge.other,
                time: edge.time,
                difference: edge.difference,
            })),
        }
    }
    Ok((kept, leaves))
}

/// The labels of all workers, and of the documents and clusters of all leaves.
///
/// # Errors
/// Where a worker of this process failed.
pub(crate) fn with_leaves(
    worker: &mut Worker,
    labels: Vec<(u64, u64)>,
    leaves: Vec<Leaf>,
    watch: &Watch,
) -> Result<Vec<(u64, u64)>> {
    let mut labels = all_gather(worker, labels, watch)?;
    let leaves = all_gather(worker, leaves, watch)?;
    let mut known: ByKey<u64, u64> = HashMap::default();
    known.extend(labels.iter().copied().filter(|(node, _)| node & CLUSTER != 0));
    for (node, cluster) in leaves {
        // A cluster that no other edge touches is a component of its own.
        let label = *known.entry(cluster).or_insert_with(|| {
            labels.push((cluster, cluster));
            cluster
        });
        labels.push((node, label));
    }
    Ok(labels)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;
    use crate::records::mix;

    /// The smallest node of the component of each node, of edges that are there in the end.
    fn components(edges: &[EdgeDifference]) -> BTreeMap<u64, u64> {
        let mut sums: BTreeMap<(u64, u64), i32> = BTreeMap::new();
        edges.iter().for_each(|edge| *sums.entry((edge.a, edge.b)).or_default() += edge.difference);
        let there: Vec<(u64, u64)> = sums.into_iter().filter(|(_, sum)| *sum > 0).map(|(edge, _)| edge).collect();
        let mut label: BTreeMap<u64, u64> = there.iter().flat_map(|(a, b)| [(*a, *a), (*b, *b)]).collect();
        for _ in 0..=label.len() {
            for (a, b) in &there {
                let least = label[a].min(label[b]);
                label.extend([(*a, least), (*b, least)]);
            }
        }
        label
    }

    #[test]
    fn components_with_their_leaves_are_those_of_all_edges() {
        let (mut all_kept, mut all_leaves) = (0, 0);
        for (seed, workers) in (0..60).map(|seed| (seed, 1 + seed as usize % 3)) {
            let random = |at: u64, salt: u64, below: u64| mix(mix(seed << 32 ^ at) ^ salt) % below;
            let edge = |at: u64| {
                let (a, to_cluster) = (random(at, 1, 30), random(at, 2, 4) > 0);
                let b = if to_cluster { random(at, 3, 8) | CLUSTER } else { a + 1 + random(at, 3, 9) };
                let difference = |time, difference| EdgeDifference { a, b, time, difference };
                // It comes; or was there and stays; or was there and goes.
                match random(at, 4, 3) {
                    0 => vec![difference(1, 1)],
                    1 => vec![difference(0, 1)],
                    _ => vec![difference(0, 1), difference(1, -1)],
                }
            };
            let edges: Vec<EdgeDifference> = (0..random(0, 5, 40)).flat_map(edge).collect();
            let given = edges.clone();
            let guards = timely::execute(timely::Config::process(workers), move |worker| {
                let own = given.iter().skip(worker.index()).step_by(worker.peers()).copied().collect();
                let (kept, leaves) = leaves(worker, own, &Arc::default()).unwrap();
                // Labels as differential dataflow would give them: of all that is kept.
                let told = kept.iter().map(|edge| (edge.a, edge.b, edge.time, edge.difference)).collect();
                let all = all_gather(worker, told, &Watch::default()).unwrap().into_iter();
                let all: Vec<_> =
                    all.map(|(a, b, time, difference)| EdgeDifference { a, b, time, difference }).collect();
                let labels = if worker.index() == 0 { components(&all).into_iter().collect() } else { Vec::new() };
                let count = leaves.len();
                (kept.len(), count, with_leaves(worker, labels, leaves, &Watch::default()).unwrap())
            });
            let wanted = components(&edges);
            for found in guards.unwrap().join() {
                let (kept, leaves, labels) = found.unwrap();
                (all_kept, all_leaves) = (all_kept + kept, all_leaves + leaves);
                let labels: BTreeMap<u64, u64> = labels.into_iter().collect();
                let nodes: Vec<u64> = wanted.keys().copied().collect();
                assert_eq!(labels.keys().copied().collect::<Vec<_>>(), nodes, "seed {seed}, {workers} workers");
                for (a, b) in nodes.iter().flat_map(|a| nodes.iter().map(move |b| (a, b))) {
                    assert_eq!(labels[a] == labels[b], wanted[a] == wanted[b], "seed {seed}: {a:x}, {b:x}");
                }
            }
        }
        assert!(all_kept > 300 && all_leaves > 100, "{all_kept} {all_leaves}");
    }
}
