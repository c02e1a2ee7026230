//! A union-find that one thread has to itself: 4 bytes a node, and nodes may be added.
//!
//! The parent of a node is a smaller node of the same component, so a root is the smallest node of
//! its component, and the roots do not depend on the order of the joins. [`root`] halves the path.
//! What the workers of a process join together is in [`UnionFind`](crate::structures::UnionFind).
//!
//! [`root`]: OwnUnionFind::root

/// The union-find of one thread.
///
/// ```
/// use nigh_kernels::structures::OwnUnionFind;
///
/// let mut joined = OwnUnionFind::new(4);
/// assert_eq!(joined.push(), 4);
/// assert_eq!(joined.join([4, 1]), Some([1, 4]));
/// assert_eq!(joined.join([3, 4]), Some([1, 3]));
/// assert_eq!(joined.join([1, 3]), None);
/// assert!(joined.roots().eq([0, 1, 2]));
/// assert_eq!(joined.into_root_of_each(), [0, 1, 2, 1, 1]);
/// ```
#[derive(Clone, Debug, Default)]
pub struct OwnUnionFind {
    parents: Vec<u32>,
}

impl OwnUnionFind {
    /// A union-find of the nodes `0..nodes`, each a component of its own.
    ///
    /// # Panics
    /// If there are more than 2^32 nodes.
    pub fn new(nodes: usize) -> OwnUnionFind {
        assert!(nodes as u64 <= 1 << 32, "nodes are counted in 32 bits");
        OwnUnionFind { parents: (0..nodes).map(|node| node as u32).collect() }
    }

    /// Adds a node, a component of its own, and returns its number: the next one.
    ///
    /// # Panics
    /// If there are 2^32 nodes.
    pub fn push(&mut self) -> u32 {
        let node = u32::try_from(self.parents.len()).expect("nodes are counted in 32 bits");
        self.parents.push(node);
        node
    }

    /// The root of a node: the smallest node of its component so far.
    #[inline]
    pub fn root(&mut self, mut node: u32) -> u32 {
        loop {
            let parent = self.parents[node as usize];
            let above = self.parents[parent as usize];
            if above == parent {
                return parent;
            }
            self.parents[node as usize] = above;
            node = above;
        }
    }

    /// Joins the components of two nodes. Returns the roots that these had, the smaller one first,
    /// which is the root of both now; `None` if they are one component already.
    #[inline]
    pub fn join(&mut self, [a, b]: [u32; 2]) -> Option<[u32; 2]> {
        let (a, b) = (self.root(a), self.root(b));
        let [low, high] = [a.min(b), a.max(b)];
        self.parents[high as usize] = low;
        (low != high).then_some([low, high])
    }

    /// The roots, ascending: one for each component.
    pub fn roots(&self) -> impl Iterator<Item = u32> {
        (0..).zip(&self.parents).filter(|(node, parent)| node == *parent).map(|(node, _)| node)
    }

    /// The root of each node.
    pub fn into_root_of_each(mut self) -> Vec<u32> {
        // A parent is smaller than its node, and has its root already.
        for node in 0..self.parents.len() {
            self.parents[node] = self.parents[self.parents[node] as usize];
        }
        self.parents
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;

    use super::*;

    /// The smallest node that edges connect each node to: every node takes the smallest label of
    /// its neighbours, until nothing changes.
    fn slow_roots(nodes: usize, edges: &[[u32; 2]]) -> Vec<u32> {
        let mut labels: Vec<u32> = (0..nodes as u32).collect();
        loop {
            let before = labels.clone();
            for edge in edges {
                let least = edge.map(|node| labels[node as usize]).into_iter().min().unwrap();
                edge.iter().for_each(|node| labels[*node as usize] = least);
            }
            if labels == before {
                return labels;
            }
        }
    }

    proptest! {
        #[test]
        fn roots_are_the_smallest_nodes(
            edges in prop::collection::vec((0u32..40, 0u32..40).prop_map(|(a, b)| [a, b]), 0..60),
            first in 0usize..=40,
        ) {
            let mut joined = OwnUnionFind::new(first);
            (first..40).for_each(|node| assert_eq!(joined.push() as usize, node));
            for (done, edge) in edges.iter().enumerate() {
                let before = slow_roots(40, &edges[..done]);
                let [a, b] = edge.map(|node| before[node as usize]);
                let expected = (a != b).then_some([a.min(b), a.max(b)]);
                prop_assert_eq!(joined.join(*edge), expected);
            }
            let roots = slow_roots(40, &edges);
            prop_assert!(joined.roots().eq(roots.iter().copied().collect::<BTreeSet<u32>>()));
            prop_assert!((0..40).map(|node| joined.clone().root(node)).eq(roots.iter().copied()));
            prop_assert!((0..40).rev().all(|node| joined.root(node) == roots[node as usize]));
            prop_assert_eq!(joined.into_root_of_each(), roots);
        }
    }

    #[test]
    fn chains_are_halved_and_no_nodes_have_no_roots() {
        let mut joined = OwnUnionFind::new(10_000);
        // Each join replaces a root: a chain of all nodes.
        (1..10_000).rev().for_each(|node| assert_eq!(joined.join([node - 1, node]), Some([node - 1, node])));
        let steps = |joined: &OwnUnionFind| {
            let mut node = 9_999;
            std::iter::from_fn(|| {
                let parent = joined.parents[node as usize];
                (parent != node).then(|| node = parent)
            })
            .count()
        };
        assert_eq!(steps(&joined), 9_999);
        assert_eq!(joined.root(9_999), 0);
        assert_eq!(steps(&joined), 5_000);
        assert_eq!(joined.into_root_of_each(), [0; 10_000]);
        assert_eq!(OwnUnionFind::default().roots().count(), 0);
        assert_eq!(OwnUnionFind::default().into_root_of_each(), [0; 0]);
    }
}
