//! One union-find that all workers of a process share.
//!
//! A node is a number; its parent is a smaller node of the same component, so that a root is the smallest node that it
//! joins. Workers join at the same time: a root is hung below a smaller one by compare-and-swap, paths are halved on
//! the way (Anderson and Woll 1991; Jayanti and Tarjan 2016). A parent is always an ancestor and smaller than its
//! node, which is why halving may race with hanging. Zeros stand for "itself": pages of nodes that no edge touches
//! need not be there.

use std::ops::Range;
use std::sync::atomic::{AtomicU32, Ordering};

use anyhow::{Result, bail};
use bytemuck::Zeroable;

use crate::kernels::memory::{SIDE_BY_SIDE, advise_huge_pages, preload};

/// Nodes of a page of 4 KiB.
const PAGE: usize = 4096 / size_of::<Node>();

/// What is known of a node.
#[derive(Zeroable)]
struct Node {
    /// Its parent plus one, or 0 for a root.
    parent: AtomicU32,
    /// All ones minus its smallest neighbour, or 0 for none.
    neighbour: AtomicU32,
}

/// The union-find of a process.
pub struct UnionFind {
    nodes: Vec<Node>,
}

impl UnionFind {
    /// Bytes of a node.
    pub const NODE_BYTES: usize = size_of::<Node>();

    /// A forest of so many nodes, each on its own.
    pub fn new(nodes: usize) -> UnionFind {
        let mut nodes = bytemuck::allocation::zeroed_vec(nodes);
        advise_huge_pages(&mut nodes);
        UnionFind { nodes }
    }

    /// Takes the pages of one of so many `parts` of the nodes now, by zeros that are written over zeros: while the system still
    /// has at hand what blocks gave back. Edges may be joined meanwhile.
    pub fn take_pages(&self, part: usize, parts: usize) {
        let each = self.nodes.len().div_ceil(parts).max(1);
        for node in self.nodes.iter().skip(part * each).take(each).step_by(PAGE) {
            // What another worker wrote stays.
            let _ = node.parent.compare_exchange(0, 0, Ordering::Relaxed, Ordering::Relaxed);
        }
    }

    /// How many nodes.
    pub fn len(&self) -> usize {
        self.nodes.len()
    }

    /// Whether there is none.
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

    /// The root of a node: the smallest node that it is joined with so far.
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

    fn join_two(&self, a: u32, b: u32) {
        let (mut a, mut b) = (self.root(a), self.root(b));
        while a != b {
            let (low, high) = (a.min(b), a.max(b));
            let root = &self.nodes[high as usize].parent;
            if root.compare_exchange(0, low + 1, Ordering::AcqRel, Ordering::Acquire).is_ok() {
                return;
            }
            (a, b) = (self.root(low), self.root(high));
        }
    }

    /// Joins the nodes of every edge, and checks that they are joined.
    ///
    /// # Errors
    /// Where an edge's nodes have two roots after it: a fault in this program, or in the machine.
    pub fn join(&self, edges: &[(u32, u32)]) -> Result<()> {
        for batch in edges.chunks(SIDE_BY_SIDE) {
            // Most edges join what is joined, and many of those a node with its parent: of these no more is asked. Which they
            // are decides no branch.
            let (mut open, mut count) = ([(0, 0); SIDE_BY_SIDE], 0);
            for (a, b) in batch {
                open[count] = (*a, *b);
                count += usize::from(self.parent(*a) != *b);
            }
            let open = &open[..count];
            self.touch(open.iter().flat_map(|(a, b)| [*a, *b]));
            open.iter().for_each(|(a, b)| self.join_two(*a, *b));
            // Others may move a root between the two looks, only ever down and for both: look again.
            if let Some((a, b)) = open.iter().find(|(a, b)| !self.joined(*a, *b)) {
                bail!("the nodes {a} and {b} of an edge have two roots: a fault in this program, please report it");
            }
        }
        Ok(())
    }

    /// Brings the parents of some nodes, at most those of a batch of edges, and the parents of these into the cache.
    /// Loads that wait for nothing run side by side.
    #[inline]
    fn touch(&self, nodes: impl Iterator<Item = u32>) {
        let (mut parents, mut count) = ([0; 2 * SIDE_BY_SIDE], 0);
        for (parent, node) in parents.iter_mut().zip(nodes) {
            *parent = self.parent(node);
            count += 1;
        }
        preload(parents[..count].iter().map(|parent| self.parent(*parent).into()));
    }

    /// Some nodes that follow each other, with their roots.
    pub fn roots(&self, nodes: Range<u32>) -> impl Iterator<Item = (u32, u32)> {
        nodes.clone().step_by(SIDE_BY_SIDE).flat_map(move |first| {
            let batch = first..nodes.end.min(first.saturating_add(SIDE_BY_SIDE as u32));
            self.touch(batch.clone());
            batch.map(|node| (node, self.root(node)))
        })
    }

    /// Whether two nodes have one root.
    fn joined(&self, a: u32, b: u32) -> bool {
        loop {
            let (root_a, root_b) = (self.root(a), self.root(b));
            if root_a == root_b {
                return true;
            }
            // Two roots that both still are roots at once: the nodes are apart.
            if self.parent(root_a) == root_a && self.parent(root_b) == root_b {
                return false;
            }
        }
    }

    /// Notes of every node in a pair that it has the other one as a neighbour; the smallest one is kept.
    pub fn note_neighbours(&self, pairs: &[(u32, u32)]) {
        for batch in pairs.chunks(SIDE_BY_SIDE) {
            preload(batch.iter().map(|(node, _)| self.parent(*node).into()));
            for (node, neighbour) in batch {
                let (kept, noted) = (&self.nodes[*node as usize].neighbour, u32::MAX - neighbour);
                if kept.load(Ordering::Relaxed) < noted {
                    kept.fetch_max(noted, Ordering::Relaxed);
                }
            }
        }
    }

    /// The smallest neighbour that was noted of a node.
    pub fn neighbour(&self, node: u32) -> Option<u32> {
        match self.nodes[node as usize].neighbour.load(Ordering::Relaxed) {
            0 => None,
            kept => Some(u32::MAX - kept),
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::records::mix;

    fn twin(nodes: usize, edges: &[(u32, u32)]) -> Vec<u32> {
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
            let forest = UnionFind::new(60);
            // Once more: of what is joined nothing is asked again.
            for _ in 0..2 {
                forest.join(&edges).unwrap();
                forest.take_pages(0, 1);
                prop_assert!((0..60).map(|node| forest.root(node)).eq(twin(60, &edges)));
            }
            let roots = twin(60, &edges);
            let from = edges.len() as u32 / 2;
            prop_assert!(forest.roots(from..60).eq((from..60).zip(roots[from as usize..].iter().copied())));
        }
    }

    #[test]
    fn threads_join_at_the_same_time() {
        let nodes = 3000;
        for seed in 0..20 {
            let node = |i: u64| (mix(seed << 32 | i) % nodes as u64) as u32;
            let mut edges: Vec<(u32, u32)> = (0..2000).map(|i| (node(2 * i), node(2 * i + 1))).collect();
            // A chain in descending order, where every root moves; and stars whose edges come again and again.
            edges.extend((1..1000).rev().map(|i| (i - 1, i)));
            edges.extend((0..2000).map(|i| (1000 + node(i) / 2, 1000 + i as u32 % 3)));
            let forest = UnionFind::new(nodes);
            std::thread::scope(|scope| {
                for (at, part) in edges.chunks(edges.len().div_ceil(4)).enumerate() {
                    let forest = &forest;
                    scope.spawn(move || {
                        forest.join(part).unwrap();
                        forest.take_pages(at, 4);
                        forest.join(part).unwrap();
                    });
                }
            });
            let roots: Vec<u32> = forest.roots(0..nodes as u32).map(|(_, root)| root).collect();
            assert_eq!(roots, twin(nodes, &edges), "seed {seed}");
        }
    }

    #[test]
    fn the_smallest_neighbour_is_kept() {
        let forest = UnionFind::new(3);
        assert_eq!(forest.neighbour(1), None);
        forest.note_neighbours(&[(1, 7), (1, 3), (1, 5)]);
        assert_eq!(forest.neighbour(1), Some(3));
        forest.note_neighbours(&[(0, 0)]);
        assert_eq!(forest.neighbour(0), Some(0));
    }
}
