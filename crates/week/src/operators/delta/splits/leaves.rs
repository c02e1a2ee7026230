//! Leaves: changed documents that join one cluster and nothing else. They take its label, so that
//! differential dataflow never sees their edges. Most edited documents stay in their cluster, and
//! most new ones join one.

use std::collections::HashMap;

use anyhow::Result;
use bytemuck::{Pod, Zeroable};
use nigh_exchange::{Context, all_to_all, blocks};

use crate::operators::delta::relabel::EdgeDifference;
use crate::operators::delta::sharing::{CLUSTER, doc_of};
use crate::structures::ByKey;

/// A difference of an edge, at the owner of one of its nodes, which is a document.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Pod, Zeroable)]
#[repr(C)]
struct IncidentEdge {
    node: u64,
    other: u64,
    time: u32,
    difference: i32,
}

/// The node of a document, and the node of the cluster that it joins.
pub(crate) type Leaf = (u64, u64);

/// Separates documents whose only neighbour, after the change, is a cluster. Returns the
/// differences of the other edges, at the owners of their smaller nodes, and the leaves among own
/// documents. At most one node of an edge is a cluster.
///
/// ```text
/// send each edge to the owners of its documents
/// for each own document:
///     neighbours = nodes whose differences sum up to more than 0
///     if neighbours == [a cluster]: it is a leaf
///     else: keep its edges
/// ```
///
/// # Errors
/// If a worker of this process failed.
pub(crate) fn take_leaves(cx: &mut Context, edges: Vec<EdgeDifference>) -> Result<(Vec<EdgeDifference>, Vec<Leaf>)> {
    let peers = cx.peers();
    let mut dealer = cx.dealer();
    for EdgeDifference { a, b, time, difference } in edges {
        for (node, other) in [(a, b), (b, a)].into_iter().filter(|(node, _)| node & CLUSTER == 0) {
            dealer.deal(doc_of(node).owner(peers) as u64, IncidentEdge { node, other, time, difference });
        }
    }
    let mut incident: Vec<IncidentEdge> = blocks(all_to_all(cx, dealer)?);
    incident.sort_unstable();
    let (mut edges, mut leaves) = (Vec::new(), Vec::new());
    for of_node in incident.chunk_by(|a, b| a.node == b.node) {
        let remains = |of_edge: &&[IncidentEdge]| of_edge.iter().map(|edge| edge.difference).sum::<i32>() > 0;
        let mut neighbours = of_node.chunk_by(|a, b| a.other == b.other).filter(remains);
        match (neighbours.next().map(|of_edge| of_edge[0]), neighbours.next()) {
            (Some(IncidentEdge { node, other, .. }), None) if other & CLUSTER != 0 => leaves.push((node, other)),
            // Both owners have an edge of two documents: that of the smaller one keeps it.
            _ => edges.extend(of_node.iter().filter(|edge| edge.node < edge.other).map(|edge| EdgeDifference {
                a: edge.node,
                b: edge.other,
                time: edge.time,
                difference: edge.difference,
            })),
        }
    }
    Ok((edges, leaves))
}

/// Gathers the labels of all workers, and adds those of all leaves and of their clusters. Pairs are
/// (node, label).
///
/// # Errors
/// If a worker of this process failed.
pub(crate) fn label_leaves(cx: &mut Context, labels: Vec<(u64, u64)>, leaves: Vec<Leaf>) -> Result<Vec<(u64, u64)>> {
    let mut labels = cx.sorted(labels)?;
    let leaves = cx.sorted(leaves)?;
    let mut label_of: ByKey<u64, u64> = HashMap::default();
    label_of.extend(labels.iter().copied().filter(|(node, _)| node & CLUSTER != 0));
    for (node, cluster) in leaves {
        // A cluster without any other edge is a component of its own.
        let label = *label_of.entry(cluster).or_insert_with(|| {
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

    /// The smallest node of the component of each node, by the edges that are there after the
    /// change.
    fn components(differences: &[EdgeDifference]) -> BTreeMap<u64, u64> {
        let mut sums: BTreeMap<(u64, u64), i32> = BTreeMap::new();
        differences.iter().for_each(|edge| *sums.entry((edge.a, edge.b)).or_default() += edge.difference);
        let edges: Vec<(u64, u64)> = sums.into_iter().filter(|(_, sum)| *sum > 0).map(|(edge, _)| edge).collect();
        let mut label: BTreeMap<u64, u64> = edges.iter().flat_map(|(a, b)| [(*a, *a), (*b, *b)]).collect();
        for _ in 0..=label.len() {
            for (a, b) in &edges {
                let least = label[a].min(label[b]);
                label.extend([(*a, least), (*b, least)]);
            }
        }
        label
    }

    /// Up to 39 random edges: three in four join one of 30 documents with one of 8 clusters, the
    /// others join it with a later document. A third of them appears, a third was there and
    /// remains, a third disappears.
    fn random_edges(seed: u64) -> Vec<EdgeDifference> {
        let random = |edge: u64, salt: u64, below: u64| mix(mix(seed << 32 ^ edge) ^ salt) % below;
        let differences = |edge: u64| {
            let (a, to_cluster) = (random(edge, 1, 30), random(edge, 2, 4) > 0);
            let b = if to_cluster { random(edge, 3, 8) | CLUSTER } else { a + 1 + random(edge, 3, 9) };
            let at = |time, difference| EdgeDifference { a, b, time, difference };
            match random(edge, 4, 3) {
                0 => vec![at(1, 1)],
                1 => vec![at(0, 1)],
                _ => vec![at(0, 1), at(1, -1)],
            }
        };
        (0..random(0, 5, 40)).flat_map(differences).collect()
    }

    #[test]
    fn components_with_their_leaves_are_those_of_all_edges() {
        let (mut all_edges, mut all_leaves) = (0, 0);
        for (seed, workers) in (0..60).map(|seed| (seed, 1 + seed as usize % 3)) {
            let differences = random_edges(seed);
            let expected = components(&differences);
            let guards = timely::execute(timely::Config::process(workers), move |worker| {
                let cx = &mut Context::alone(worker);
                let own = differences.iter().skip(cx.index()).step_by(cx.peers()).copied().collect();
                let (edges, leaves) = take_leaves(cx, own).unwrap();
                // The first worker labels what all workers kept, in the place of differential
                // dataflow.
                let kept = edges.iter().map(|edge| (edge.a, edge.b, edge.time, edge.difference)).collect();
                let kept = cx.sorted(kept).unwrap().into_iter();
                let kept: Vec<_> =
                    kept.map(|(a, b, time, difference)| EdgeDifference { a, b, time, difference }).collect();
                let labels = if cx.index() == 0 { components(&kept).into_iter().collect() } else { Vec::new() };
                let count = leaves.len();
                (edges.len(), count, label_leaves(cx, labels, leaves).unwrap())
            });
            for result in guards.unwrap().join() {
                let (edges, leaves, labels) = result.unwrap();
                (all_edges, all_leaves) = (all_edges + edges, all_leaves + leaves);
                let labels: BTreeMap<u64, u64> = labels.into_iter().collect();
                let nodes: Vec<u64> = expected.keys().copied().collect();
                assert_eq!(labels.keys().copied().collect::<Vec<_>>(), nodes, "seed {seed}, {workers} workers");
                // A label may be another node of the component: what counts is which nodes have the
                // same.
                for (a, b) in nodes.iter().flat_map(|a| nodes.iter().map(move |b| (a, b))) {
                    assert_eq!(labels[a] == labels[b], expected[a] == expected[b], "seed {seed}: {a:x}, {b:x}");
                }
            }
        }
        assert!(all_edges > 300 && all_leaves > 100, "{all_edges} {all_leaves}");
    }
}
