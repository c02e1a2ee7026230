//! Graphs on which connected components are measured, any edge of them by itself.
//!
//! Names of nodes and the order of edges are random permutations, so that a worker's share of the edges, and a
//! partition's share of the nodes, are those of no particular place of the graph. The shapes are what algorithms for
//! components are weak at: a chain has the longest paths, a star one node that every edge meets, a grid long paths and
//! many of them; components by a power law are what clusters of pages look like.

use clap::ValueEnum;
use serde::{Deserialize, Serialize};

use super::permutation::{Permutation, below};
use super::sizes::{Equals, mean, sizes};
use crate::records::mix;

/// The exponent of component sizes: that of the study's clusters (Fetterly 2004, section 2).
const EXPONENT: f64 = 2.5;
/// The largest component by the power law, at most: enough for any number of nodes, and quick to plan.
const CAP: u64 = 1 << 20;

/// What a graph looks like.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum GraphShape {
    /// One path through all nodes.
    Chain,
    /// One node that all others are joined to.
    Star,
    /// Many components, sizes by a power law, and one with a hundredth of the nodes: random trees with some more edges.
    PowerLaw,
    /// A square lattice.
    Grid,
}

/// A graph of some shape.
pub(crate) struct Graph {
    plan: GraphPlan,
    edges: u64,
    /// The names of nodes.
    names: Permutation,
    /// The order of edges.
    order: Permutation,
}

/// The graph before nodes are named and edges put in order.
enum GraphPlan {
    Chain,
    Star,
    Forest(Vec<ComponentsOfSize>),
    Grid { nodes: u64, width: u64 },
}

/// Components of one size, side by side.
struct ComponentsOfSize {
    size: u64,
    /// The first node of the first one.
    node: u64,
    /// The first edge of the first one.
    edge: u64,
}

impl Graph {
    /// The graph of this shape with so many nodes.
    pub(crate) fn new(shape: GraphShape, nodes: u32) -> Graph {
        let nodes = u64::from(nodes);
        let (plan, edges) = match shape {
            GraphShape::Chain => (GraphPlan::Chain, nodes.saturating_sub(1)),
            GraphShape::Star => (GraphPlan::Star, nodes.saturating_sub(1)),
            GraphShape::PowerLaw => forest(nodes),
            GraphShape::Grid => grid(nodes),
        };
        Graph { plan, edges, names: Permutation::new(nodes, 2), order: Permutation::new(edges, 3) }
    }

    /// How many edges there are.
    pub(crate) fn edges(&self) -> u64 {
        self.edges
    }

    /// The ends of an edge, by its number.
    pub(crate) fn edge(&self, number: u64) -> (u32, u32) {
        let edge = self.order.at(number);
        let (a, b) = match &self.plan {
            GraphPlan::Chain => (edge, edge + 1),
            GraphPlan::Star => (0, edge + 1),
            GraphPlan::Forest(runs) => forest_edge(runs, edge),
            GraphPlan::Grid { nodes, width } => grid_edge(*nodes, *width, edge),
        };
        // There are no more than 2^32 nodes.
        (self.names.at(a) as u32, self.names.at(b) as u32)
    }
}

/// A lattice as wide as it is high, or a little wider, whose last row may be short.
fn grid(nodes: u64) -> (GraphPlan, u64) {
    let width = nodes.isqrt() + u64::from(!is_square(nodes));
    let rows = if nodes == 0 { 0 } else { nodes.div_ceil(width) };
    (GraphPlan::Grid { nodes, width }, (nodes - width) + (nodes - rows))
}

fn is_square(number: u64) -> bool {
    number.isqrt().pow(2) == number
}

/// First the edges down, then those to the right.
fn grid_edge(nodes: u64, width: u64, edge: u64) -> (u64, u64) {
    match edge.checked_sub(nodes - width) {
        None => (edge, edge + width),
        Some(edge) => {
            let node = edge / (width - 1) * width + edge % (width - 1);
            (node, node + 1)
        }
    }
}

fn forest(nodes: u64) -> (GraphPlan, u64) {
    let giant = nodes / 100;
    let range = 1..=(giant / 2).clamp(1, CAP);
    let rest = nodes - giant;
    // The sizes sum to the mean's times their number and at most half the largest: never to more than there are nodes.
    let clusters = (rest.saturating_sub(*range.end()) as f64 / mean(EXPONENT, &range)) as u64;
    let mut components = vec![Equals { size: giant, clusters: u64::from(giant > 0) }];
    components.extend(sizes(EXPONENT, &range, clusters));
    let (mut node, mut edge, mut runs) = (0, 0, Vec::new());
    for Equals { size, clusters } in components {
        runs.push(ComponentsOfSize { size, node, edge });
        node += size * clusters;
        edge += edges_of(size) * clusters;
    }
    // Nodes that are left are components of their own, without edges.
    debug_assert!(node <= nodes);
    (GraphPlan::Forest(runs), edge)
}

/// Edges of a component: those of its tree, and one for every four nodes.
fn edges_of(size: u64) -> u64 {
    size.saturating_sub(1) + size / 4
}

fn forest_edge(runs: &[ComponentsOfSize], edge: u64) -> (u64, u64) {
    let run = &runs[runs.partition_point(|run| run.edge <= edge) - 1];
    let (component, number) = ((edge - run.edge) / edges_of(run.size), (edge - run.edge) % edges_of(run.size));
    let first = run.node + component * run.size;
    let random = mix(edge);
    let (a, b) = if number + 1 < run.size {
        // A tree: each node but the first is joined to a random earlier one.
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
    use crate::bench::single_thread as yardstick;

    const SHAPES: [GraphShape; 4] = [GraphShape::Chain, GraphShape::Star, GraphShape::PowerLaw, GraphShape::Grid];

    fn edges(graph: &Graph) -> impl Iterator<Item = (u32, u32)> {
        (0..graph.edges()).map(|number| graph.edge(number))
    }

    /// How many edges meet each node.
    fn degrees(nodes: u32, graph: &Graph) -> Vec<u32> {
        let mut degrees = vec![0; nodes as usize];
        edges(graph).for_each(|(a, b)| [a, b].into_iter().for_each(|node| degrees[node as usize] += 1));
        degrees
    }

    /// Sizes of components, the largest first.
    fn components(nodes: u32, graph: &Graph) -> Vec<u32> {
        let mut sizes: HashMap<u32, u32> = HashMap::new();
        yardstick::components(nodes, edges(graph)).into_iter().for_each(|root| *sizes.entry(root).or_default() += 1);
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
        let more = graph.edges() - (200_000 - sizes.len() as u64);
        assert!(more > 5_000, "{more} edges more than the trees have");
    }

    #[test]
    fn edges_differ_have_two_ends_and_are_the_same_again() {
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
    fn the_most_nodes_have_edges_too() {
        for shape in SHAPES {
            let graph = Graph::new(shape, u32::MAX);
            assert!(graph.edges() > 1 << 31, "{shape:?}");
            let (a, b) = graph.edge(graph.edges() - 1);
            assert_ne!(a, b, "{shape:?}");
        }
    }
}
