//! Graphs for the benchmark of connected components. Any edge can be computed by itself.
//!
//! The ids of nodes and the order of edges are random permutations, so a worker's part of the
//! edges, and a shard's part of the nodes, come from all over the graph. The shapes are hard cases
//! for component algorithms: a chain has the longest paths, a star one node that all edges share, a
//! grid many long paths. Components by a power law resemble clusters of pages.

use clap::ValueEnum;
use serde::{Deserialize, Serialize};

use super::permutation::{Permutation, below};
use super::sizes::{SizeCount, mean, sizes};
use crate::records::mix;

/// The exponent of component sizes, as of the clusters in the study (Fetterly 2004, section 2).
const EXPONENT: f64 = 2.5;
/// The bound on component sizes by the power law: large enough for any number of nodes, and quick
/// to plan.
const CAP: u64 = 1 << 20;

/// The shape of a graph.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum GraphShape {
    /// One path through all nodes.
    Chain,
    /// One node that is joined to all others.
    Star,
    /// Many components with sizes by a power law, and one with 1% of the nodes: random trees with
    /// additional edges.
    PowerLaw,
    /// A square lattice.
    Grid,
}

/// A graph of some shape.
pub struct Graph {
    plan: GraphPlan,
    edges: u64,
    /// From nodes of the plan to node ids.
    ids: Permutation,
    /// From numbers of edges to edges of the plan.
    order: Permutation,
}

/// The graph before nodes and edges are permuted.
enum GraphPlan {
    Chain,
    Star,
    Forest(Vec<ComponentsOfSize>),
    Grid { nodes: u64, width: u64 },
}

/// Successive components of one size.
struct ComponentsOfSize {
    size: u64,
    /// The first node of the first of them.
    node: u64,
    /// The first edge of the first of them.
    edge: u64,
}

impl Graph {
    /// The graph of this shape with `nodes` nodes.
    pub fn new(shape: GraphShape, nodes: u32) -> Graph {
        let nodes = u64::from(nodes);
        let (plan, edges) = match shape {
            GraphShape::Chain => (GraphPlan::Chain, nodes.saturating_sub(1)),
            GraphShape::Star => (GraphPlan::Star, nodes.saturating_sub(1)),
            GraphShape::PowerLaw => forest(nodes),
            GraphShape::Grid => grid(nodes),
        };
        Graph { plan, edges, ids: Permutation::new(nodes, 2), order: Permutation::new(edges, 3) }
    }

    /// The number of edges.
    pub fn edges(&self) -> u64 {
        self.edges
    }

    /// The two nodes of the edge with this number.
    pub fn edge(&self, number: u64) -> (u32, u32) {
        let edge = self.order.at(number);
        let (a, b) = match &self.plan {
            GraphPlan::Chain => (edge, edge + 1),
            GraphPlan::Star => (0, edge + 1),
            GraphPlan::Forest(runs) => forest_edge(runs, edge),
            GraphPlan::Grid { nodes, width } => grid_edge(*nodes, *width, edge),
        };
        // There are at most 2^32 nodes.
        (self.ids.at(a) as u32, self.ids.at(b) as u32)
    }
}

/// A lattice as wide as high, or slightly wider; its last row may be shorter. Returns the plan and
/// the number of edges.
fn grid(nodes: u64) -> (GraphPlan, u64) {
    let width = nodes.isqrt() + u64::from(!is_square(nodes));
    let rows = if nodes == 0 { 0 } else { nodes.div_ceil(width) };
    (GraphPlan::Grid { nodes, width }, (nodes - width) + (nodes - rows))
}

fn is_square(number: u64) -> bool {
    number.isqrt().pow(2) == number
}

/// The edge with this number: first all edges to the node below, then all edges to the node on the
/// right.
fn grid_edge(nodes: u64, width: u64, edge: u64) -> (u64, u64) {
    match edge.checked_sub(nodes - width) {
        None => (edge, edge + width),
        Some(edge) => {
            let node = edge / (width - 1) * width + edge % (width - 1);
            (node, node + 1)
        }
    }
}

/// Components by a power law. Returns the plan and the number of edges.
fn forest(nodes: u64) -> (GraphPlan, u64) {
    let giant = nodes / 100;
    let range = 1..=(giant / 2).clamp(1, CAP);
    let rest = nodes - giant;
    // The sizes add up to at most the mean times their number plus half the largest size, so never
    // to more than `rest`.
    let clusters = (rest.saturating_sub(*range.end()) as f64 / mean(EXPONENT, &range)) as u64;
    let mut components = vec![SizeCount { size: giant, clusters: u64::from(giant > 0) }];
    components.extend(sizes(EXPONENT, &range, clusters));
    let (mut node, mut edge, mut runs) = (0, 0, Vec::new());
    for SizeCount { size, clusters } in components {
        runs.push(ComponentsOfSize { size, node, edge });
        node += size * clusters;
        edge += edges_of(size) * clusters;
    }
    // The other nodes are components of one node, without edges.
    debug_assert!(node <= nodes);
    (GraphPlan::Forest(runs), edge)
}

/// The number of edges of a component: those of a tree, and one more for every four nodes.
fn edges_of(size: u64) -> u64 {
    size.saturating_sub(1) + size / 4
}

fn forest_edge(runs: &[ComponentsOfSize], edge: u64) -> (u64, u64) {
    let run = &runs[runs.partition_point(|run| run.edge <= edge) - 1];
    let (component, number) = ((edge - run.edge) / edges_of(run.size), (edge - run.edge) % edges_of(run.size));
    let first = run.node + component * run.size;
    let random = mix(edge);
    let (a, b) = if number + 1 < run.size {
        // The tree: each node except the first is joined to a random earlier one.
        (number + 1, below(random, number + 1))
    } else {
        let a = below(random, run.size);
        (a, (a + 1 + below(mix(random), run.size - 1)) % run.size)
    };
    (first + a, first + b)
}

#[cfg(test)]
mod tests {
    use std::collections::{HashMap, HashSet};

    use super::*;
    use crate::single_thread;

    const SHAPES: [GraphShape; 4] = [GraphShape::Chain, GraphShape::Star, GraphShape::PowerLaw, GraphShape::Grid];

    fn edges(graph: &Graph) -> impl Iterator<Item = (u32, u32)> {
        (0..graph.edges()).map(|number| graph.edge(number))
    }

    /// The number of edges of each node.
    fn degrees(nodes: u32, graph: &Graph) -> Vec<u32> {
        let mut degrees = vec![0; nodes as usize];
        edges(graph).for_each(|(a, b)| [a, b].into_iter().for_each(|node| degrees[node as usize] += 1));
        degrees
    }

    /// Sizes of components, the largest first.
    fn components(nodes: u32, graph: &Graph) -> Vec<u32> {
        let mut sizes: HashMap<u32, u32> = HashMap::new();
        single_thread::components(nodes, edges(graph))
            .into_iter()
            .for_each(|root| *sizes.entry(root).or_default() += 1);
        let mut sizes: Vec<u32> = sizes.into_values().collect();
        sizes.sort_by(|a, b| b.cmp(a));
        sizes
    }

    #[test]
    fn a_chain_is_one_path() {
        let graph = Graph::new(GraphShape::Chain, 10_000);
        assert_eq!(graph.edges(), 9_999);
        assert_eq!(components(10_000, &graph), [10_000]);
        let degrees = degrees(10_000, &graph);
        assert_eq!([1, 2].map(|degree| degrees.iter().filter(|d| **d == degree).count()), [2, 9_998]);
    }

    #[test]
    fn a_star_has_one_hub() {
        let graph = Graph::new(GraphShape::Star, 10_000);
        assert_eq!(components(10_000, &graph), [10_000]);
        let degrees = degrees(10_000, &graph);
        assert_eq!([1, 9_999].map(|degree| degrees.iter().filter(|d| **d == degree).count()), [9_999, 1]);
    }

    #[test]
    fn a_grid_is_a_lattice() {
        let graph = Graph::new(GraphShape::Grid, 100 * 100);
        assert_eq!(graph.edges(), 2 * 100 * 99);
        assert_eq!(components(100 * 100, &graph), [100 * 100]);
        let degrees = degrees(100 * 100, &graph);
        assert_eq!([2, 3, 4].map(|degree| degrees.iter().filter(|d| **d == degree).count()), [4, 4 * 98, 98 * 98]);
        // Rows of 4, 4 and 2: 2 + 4 edges down, 3 + 3 + 1 to the right.
        assert_eq!(Graph::new(GraphShape::Grid, 10).edges(), 13);
    }

    #[test]
    fn a_power_law_has_one_giant_and_many_small_components() {
        let graph = Graph::new(GraphShape::PowerLaw, 200_000);
        let sizes = components(200_000, &graph);
        assert_eq!(sizes[0], 2_000);
        assert!(sizes[1] <= 1_000, "{}", sizes[1]);
        let of = |size| sizes.iter().filter(|s| **s == size).count() as f64;
        assert!((of(1) / of(2) - 5.66).abs() < 0.2, "{} of 1, {} of 2", of(1), of(2));
        assert!((of(2) / of(4) - 5.66).abs() < 0.2, "{} of 2, {} of 4", of(2), of(4));
        let additional = graph.edges() - (200_000 - sizes.len() as u64);
        assert!(additional > 5_000, "{additional} edges besides those of trees");
    }

    #[test]
    fn edges_are_distinct_join_two_nodes_and_can_be_computed_again() {
        for shape in SHAPES {
            for nodes in (0..40).chain([99, 100, 101, 399, 400, 1_000, 5_000]) {
                let graph = Graph::new(shape, nodes);
                assert!(edges(&graph).all(|(a, b)| a != b && a < nodes && b < nodes), "{shape:?} of {nodes}");
                assert!(edges(&graph).eq(edges(&Graph::new(shape, nodes))), "{shape:?} of {nodes}");
                if shape != GraphShape::PowerLaw {
                    let distinct: HashSet<_> = edges(&graph).map(|(a, b)| (a.min(b), a.max(b))).collect();
                    assert_eq!(distinct.len() as u64, graph.edges(), "{shape:?} of {nodes}");
                    assert_eq!(components(nodes, &graph).len(), usize::from(nodes > 0), "{shape:?} of {nodes}");
                }
            }
        }
    }

    #[test]
    fn a_graph_can_have_the_largest_number_of_nodes() {
        for shape in SHAPES {
            let graph = Graph::new(shape, u32::MAX);
            assert!(graph.edges() > 1 << 31, "{shape:?}");
            let (a, b) = graph.edge(graph.edges() - 1);
            assert_ne!(a, b, "{shape:?}");
        }
    }
}
