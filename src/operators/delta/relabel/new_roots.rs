//! What clusters are called after a change: label differences, turned into roots.

use std::collections::HashMap;

use crate::operators::delta::sharing::{CLUSTER, RootOf, doc};
use crate::records::DocId;
use crate::structures::ByKey;

/// The new roots, by what was there before.
pub(crate) struct NewRoots {
    /// By label: the smallest document of the component.
    pub(crate) roots: ByKey<u64, DocId>,
    /// The label of documents that have edges.
    labels: ByKey<DocId, u64>,
    /// Of clusters that stay as a whole and have another root now.
    pub(crate) clusters: RootOf,
}

impl NewRoots {
    /// From the labels of all nodes with edges, and the smallest members of clusters that lost their root.
    pub(crate) fn new(labels: &[(u64, u64)], heirs: RootOf) -> NewRoots {
        let member = |node: u64| match node & CLUSTER {
            0 => doc(node),
            _ => heirs.get(&doc(node & !CLUSTER)).copied().unwrap_or(doc(node & !CLUSTER)),
        };
        let mut roots: ByKey<u64, DocId> = HashMap::default();
        for (node, label) in labels {
            let smallest = roots.entry(*label).or_insert(DocId::NONE);
            *smallest = member(*node).min(*smallest);
        }
        let mut renamed = NewRoots { labels: HashMap::default(), clusters: heirs, roots };
        for (node, label) in labels {
            match node & CLUSTER {
                0 => _ = renamed.labels.insert(doc(*node), *label),
                _ => _ = renamed.clusters.insert(doc(node & !CLUSTER), renamed.roots[label]),
            }
        }
        renamed.clusters.retain(|old, new| old != new);
        renamed
    }

    /// The root of a document that was touched.
    pub(crate) fn doc(&self, doc: DocId) -> DocId {
        self.labels.get(&doc).map_or(doc, |label| self.roots[label])
    }

    /// The root of a cluster that stayed as a whole.
    pub(crate) fn cluster(&self, root: DocId) -> DocId {
        self.clusters.get(&root).copied().unwrap_or(root)
    }
}
