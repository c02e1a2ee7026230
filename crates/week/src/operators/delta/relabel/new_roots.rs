//! The roots of clusters after a change, from the labels of the nodes that it touched.

use std::collections::HashMap;

use crate::operators::delta::sharing::{CLUSTER, RootOf, doc_of};
use crate::records::DocId;
use crate::structures::ByKey;

/// The new roots of touched documents and clusters.
pub(crate) struct NewRoots {
    /// The smallest document of each component, by its label.
    pub(crate) roots: ByKey<u64, DocId>,
    /// The label of each document that has edges.
    labels: ByKey<DocId, u64>,
    /// The new root of each cluster that stays whole and has another root now, by its old root.
    /// Split components count as clusters, by their smallest document.
    pub(crate) clusters: RootOf,
}

impl NewRoots {
    /// Takes the (node, label) pairs of all nodes with edges, and the smallest remaining member of
    /// each cluster that lost its root, by that root.
    ///
    /// ```text
    /// root[label] = smallest document of the nodes with this label,
    ///               where a cluster node counts as its smallest remaining member
    /// clusters    = smallest_remaining, overridden by root[label] for clusters with edges
    /// ```
    pub(crate) fn new(labels: &[(u64, u64)], smallest_remaining: RootOf) -> NewRoots {
        let smallest_of = |node: u64| {
            let doc = doc_of(node & !CLUSTER);
            let is_cluster = node & CLUSTER != 0;
            if is_cluster { smallest_remaining.get(&doc).copied().unwrap_or(doc) } else { doc }
        };
        let mut roots: ByKey<u64, DocId> = HashMap::default();
        for (node, label) in labels {
            let smallest = roots.entry(*label).or_insert(DocId::NONE);
            *smallest = smallest_of(*node).min(*smallest);
        }
        let mut new_roots = NewRoots { labels: HashMap::default(), clusters: smallest_remaining, roots };
        for (node, label) in labels {
            if node & CLUSTER == 0 {
                new_roots.labels.insert(doc_of(*node), *label);
            } else {
                new_roots.clusters.insert(doc_of(node & !CLUSTER), new_roots.roots[label]);
            }
        }
        new_roots.clusters.retain(|old, new| old != new);
        new_roots
    }

    /// The new root of a changed document; itself if it has no edge.
    pub(crate) fn of_doc(&self, doc: DocId) -> DocId {
        self.labels.get(&doc).map_or(doc, |label| self.roots[label])
    }

    /// The new root of a cluster that stays whole, or of a split component.
    pub(crate) fn of_cluster(&self, root: DocId) -> DocId {
        self.clusters.get(&root).copied().unwrap_or(root)
    }
}
