//! The edges that one worker finds, as long as they join something: so it keeps fewer edges than it
//! has nodes.

use crate::records::{DocId, Edge};
use crate::structures::ByKey;

/// Components of the edges that one worker finds, so that it keeps one edge for each join.
#[derive(Default)]
pub struct OwnForest {
    parents: ByKey<u64, u64>,
    edges: Vec<Edge>,
}

impl OwnForest {
    fn root(&mut self, unit: u64) -> u64 {
        let mut root = unit;
        while let Some(parent) = self.parents.get(&root) {
            root = *parent;
        }
        // The path is shortened.
        let mut at = unit;
        while at != root {
            at = self.parents.insert(at, root).unwrap_or(root);
        }
        root
    }

    /// Joins two units.
    pub fn join(&mut self, a: u64, b: u64) {
        let (a_root, b_root) = (self.root(a), self.root(b));
        if a_root != b_root {
            self.parents.insert(a_root.max(b_root), a_root.min(b_root));
            self.edges.push(edge(a, b));
        }
    }

    /// The edges that joined components.
    pub fn into_edges(self) -> Vec<Edge> {
        self.edges
    }
}

/// An edge of two units.
pub fn edge(a: u64, b: u64) -> Edge {
    let unit = |name: u64| DocId::from_table(name as i64);
    Edge { doc: unit(a.max(b)), root: unit(a.min(b)) }
}
