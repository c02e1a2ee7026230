//! A lock-free union-find that all workers of a process share.
//!
//! Nodes are the numbers `0..n`. The parent of a node is a smaller node of the same component, so a
//! root is the smallest node of its component. Morally it does this, on a vector of parents that
//! starts as `parent[node] = node`:
//!
//! ```text
//! root(node):  while parent[node] != node
//!                  parent[node] = parent[parent[node]]                        halve the path
//!                  node = parent[node]
//!              return node
//! join(a, b):  loop
//!                  (low, high) = sort(root(a), root(b))
//!                  if low == high or compare_and_swap(parent[high], high -> low)
//!                      return
//! ```
//!
//! Workers join at the same time (Anderson and Woll 1991; Jayanti and Tarjan 2016). A parent is
//! always an ancestor and smaller than its node, so path halving may race with a compare-and-swap.
//! A parent of 0 in memory means that the node is its own parent: memory pages of nodes without
//! edges are never written, and the system need not provide them.

use std::ops::Range;
use std::sync::atomic::{AtomicU32, Ordering};

use anyhow::{Result, bail};
use bytemuck::Zeroable;

use crate::kernels::memory::{SIDE_BY_SIDE, advise_huge_pages, preload};

/// The nodes in a memory page of 4 KiB.
const NODES_PER_PAGE: usize = 4096 / size_of::<Node>();

/// A node: its parent and its smallest neighbour.
#[derive(Zeroable)]
struct Node {
    /// The parent plus one; 0 for a root.
    parent: AtomicU32,
    /// `u32::MAX` minus the smallest neighbour; 0 for none.
    neighbour: AtomicU32,
}

/// The union-find of a process: 8 bytes a node.
///
/// ```
/// use nigh_kernels::structures::UnionFind;
///
/// let components = UnionFind::new(5);
/// components.join(&[(4, 1), (1, 3)])?;
/// assert!(components.roots(0..5).eq([(0, 0), (1, 1), (2, 2), (3, 1), (4, 1)]));
/// # Ok::<(), anyhow::Error>(())
/// ```
pub struct UnionFind {
    nodes: Vec<Node>,
}

impl UnionFind {
    /// The bytes that a node takes.
    pub const NODE_BYTES: usize = size_of::<Node>();

    /// A union-find of the nodes `0..nodes`, each a component of its own.
    pub fn new(nodes: usize) -> UnionFind {
        let mut nodes = bytemuck::allocation::zeroed_vec(nodes);
        advise_huge_pages(&mut nodes);
        UnionFind { nodes }
    }

    /// Makes the system provide the memory pages of part `part` of the nodes, of `parts` equal
    /// parts: now, while it still has the pages that blocks returned. It writes zeros over zeros,
    /// so other workers may join edges at the same time.
    pub fn take_pages(&self, part: usize, parts: usize) {
        let each = self.nodes.len().div_ceil(parts).max(1);
        for node in self.nodes.iter().skip(part * each).take(each).step_by(NODES_PER_PAGE) {
            // A parent that another worker wrote stays.
            let _ = node.parent.compare_exchange(0, 0, Ordering::Relaxed, Ordering::Relaxed);
        }
    }

    /// The number of nodes.
    pub fn len(&self) -> usize {
        self.nodes.len()
    }

    /// Whether there are no nodes.
    pub fn is_empty(&self) -> bool {
        self.nodes.is_empty()
    }

    #[inline]
    fn parent(&self, node: u32) -> u32 {
        match self.nodes[node as usize].parent.load(Ordering::Acquire) {
            0 => node,
            parent => parent - 1,
        }
    }

    /// The root of a node: the smallest node of its component so far.
    #[inline]
    pub fn root(&self, mut node: u32) -> u32 {
        let mut parent = self.parent(node);
        while parent != node {
            let next = self.parent(parent);
            if next == parent {
                return parent;
            }
            self.nodes[node as usize].parent.store(next + 1, Ordering::Release);
            (node, parent) = (next, self.parent(next));
        }
        node
    }

    /// Joins the components of two nodes.
    fn join_two(&self, a: u32, b: u32) {
        let (mut a, mut b) = (self.root(a), self.root(b));
        while a != b {
            let (low, high) = (a.min(b), a.max(b));
            let parent_of_high = &self.nodes[high as usize].parent;
            if parent_of_high.compare_exchange(0, low + 1, Ordering::AcqRel, Ordering::Acquire).is_ok() {
                return;
            }
            (a, b) = (self.root(low), self.root(high));
        }
    }

    /// Joins the two nodes of every edge, then checks that they have one root.
    ///
    /// # Errors
    /// If the nodes of an edge still have two roots: a fault in this program, or in the machine.
    pub fn join(&self, edges: &[(u32, u32)]) -> Result<()> {
        for batch in edges.chunks(SIDE_BY_SIDE) {
            // Most edges connect nodes that are joined already, and many of these a node with its
            // parent: skip the latter, without a branch.
            let (mut edges, mut count) = ([(0, 0); SIDE_BY_SIDE], 0);
            for (a, b) in batch {
                edges[count] = (*a, *b);
                count += usize::from(self.parent(*a) != *b);
            }
            let edges = &edges[..count];
            self.preload_parents(edges.iter().flat_map(|(a, b)| [*a, *b]));
            edges.iter().for_each(|(a, b)| self.join_two(*a, *b));
            if let Some((a, b)) = edges.iter().find(|(a, b)| !self.joined(*a, *b)) {
                bail!("the nodes {a} and {b} of an edge have two roots: a fault in this program, please report it");
            }
        }
        Ok(())
    }

    /// Loads the parents and grandparents of nodes into the cache: at most the nodes of a batch of
    /// edges. The loads do not depend on each other, so the processor runs them in parallel.
    #[inline]
    fn preload_parents(&self, nodes: impl Iterator<Item = u32>) {
        let (mut parents, mut count) = ([0; 2 * SIDE_BY_SIDE], 0);
        for (parent, node) in parents.iter_mut().zip(nodes) {
            *parent = self.parent(node);
            count += 1;
        }
        preload(parents[..count].iter().map(|parent| self.parent(*parent).into()));
    }

    /// The nodes of a range, each with its root.
    pub fn roots(&self, nodes: Range<u32>) -> impl Iterator<Item = (u32, u32)> {
        nodes.clone().step_by(SIDE_BY_SIDE).flat_map(move |first| {
            let batch = first..nodes.end.min(first.saturating_add(SIDE_BY_SIDE as u32));
            self.preload_parents(batch.clone());
            batch.map(|node| (node, self.root(node)))
        })
    }

    /// Whether two nodes have one root. Other workers may replace a root by a smaller one between
    /// the two lookups; then it looks again.
    fn joined(&self, a: u32, b: u32) -> bool {
        loop {
            let (root_a, root_b) = (self.root(a), self.root(b));
            if root_a == root_b {
                return true;
            }
            // Both are roots at the same time: the nodes are in two components.
            if self.parent(root_a) == root_a && self.parent(root_b) == root_b {
                return false;
            }
        }
    }

    /// Notes, for each pair, the second node as a neighbour of the first. A node keeps its smallest
    /// neighbour.
    pub fn note_neighbours(&self, pairs: &[(u32, u32)]) {
        for batch in pairs.chunks(SIDE_BY_SIDE) {
            preload(batch.iter().map(|(node, _)| self.parent(*node).into()));
            for (node, neighbour) in batch {
                let (smallest, inverted) = (&self.nodes[*node as usize].neighbour, u32::MAX - neighbour);
                if smallest.load(Ordering::Relaxed) < inverted {
                    smallest.fetch_max(inverted, Ordering::Relaxed);
                }
            }
        }
    }

    /// The smallest neighbour that was noted for a node.
    pub fn neighbour(&self, node: u32) -> Option<u32> {
        match self.nodes[node as usize].neighbour.load(Ordering::Relaxed) {
            0 => None,
            inverted => Some(u32::MAX - inverted),
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::records::mix;

    /// Computes the roots one edge after the other.
    fn naive_roots(nodes: usize, edges: &[(u32, u32)]) -> Vec<u32> {
        let mut roots: Vec<u32> = (0..nodes as u32).collect();
        for (a, b) in edges {
            let (a, b) = (roots[*a as usize], roots[*b as usize]);
            roots.iter_mut().filter(|root| **root == a || **root == b).for_each(|root| *root = a.min(b));
        }
        roots
    }

    proptest! {
        #[test]
        fn roots_are_the_smallest_nodes(edges in prop::collection::vec((0u32..60, 0u32..60), 0..80)) {
            let union_find = UnionFind::new(60);
            // The second time all edges are joined already.
            for _ in 0..2 {
                union_find.join(&edges).unwrap();
                union_find.take_pages(0, 1);
                prop_assert!((0..60).map(|node| union_find.root(node)).eq(naive_roots(60, &edges)));
            }
            let roots = naive_roots(60, &edges);
            let from = edges.len() as u32 / 2;
            prop_assert!(union_find.roots(from..60).eq((from..60).zip(roots[from as usize..].iter().copied())));
        }
    }

    #[test]
    fn threads_join_at_the_same_time() {
        let nodes = 3000;
        for seed in 0..20 {
            let node = |i: u64| (mix(seed << 32 | i) % nodes as u64) as u32;
            let mut edges: Vec<(u32, u32)> = (0..2000).map(|i| (node(2 * i), node(2 * i + 1))).collect();
            // A chain in descending order, where every join replaces a root; and stars whose edges
            // are repeated.
            edges.extend((1..1000).rev().map(|i| (i - 1, i)));
            edges.extend((0..2000).map(|i| (1000 + node(i) / 2, 1000 + i as u32 % 3)));
            let union_find = UnionFind::new(nodes);
            std::thread::scope(|scope| {
                for (number, part) in edges.chunks(edges.len().div_ceil(4)).enumerate() {
                    let union_find = &union_find;
                    scope.spawn(move || {
                        union_find.join(part).unwrap();
                        union_find.take_pages(number, 4);
                        union_find.join(part).unwrap();
                    });
                }
            });
            let roots: Vec<u32> = union_find.roots(0..nodes as u32).map(|(_, root)| root).collect();
            assert_eq!(roots, naive_roots(nodes, &edges), "seed {seed}");
        }
    }

    #[test]
    fn the_smallest_neighbour_is_kept() {
        let union_find = UnionFind::new(3);
        assert_eq!(union_find.neighbour(1), None);
        union_find.note_neighbours(&[(1, 7), (1, 3), (1, 5)]);
        assert_eq!(union_find.neighbour(1), Some(3));
        union_find.note_neighbours(&[(0, 0)]);
        assert_eq!(union_find.neighbour(0), Some(0));
    }
}
