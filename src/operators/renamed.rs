//! What clusters are called after a change: label differences, turned into roots.

use std::collections::HashMap;

use super::keyed::{ByKey, CLUSTER, Roots, doc, word};
use crate::records::{DocId, spread};

/// The new roots, by what was there before.
pub(super) struct Renamed {
    /// By label: the smallest document of the component.
    pub(super) roots: ByKey<u64, DocId>,
    /// The label of documents that have edges.
    labels: ByKey<DocId, u64>,
    /// Of clusters that stay as a whole and have another root now.
    pub(super) clusters: Roots,
}

impl Renamed {
    /// From the labels of all nodes with edges, and the smallest members of clusters that lost their root.
    pub(super) fn new(labels: &[(u64, u64)], heirs: &Roots) -> Renamed {
        let member = |node: u64| match node & CLUSTER {
            0 => doc(node),
            _ => heirs.get(&doc(node & !CLUSTER)).copied().unwrap_or(doc(node & !CLUSTER)),
        };
        let mut roots: ByKey<u64, DocId> = HashMap::default();
        for (node, label) in labels {
            let smallest = roots.entry(*label).or_insert(DocId::NONE);
            *smallest = member(*node).min(*smallest);
        }
        let mut renamed = Renamed { labels: HashMap::default(), clusters: heirs.clone(), roots };
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
    pub(super) fn doc(&self, doc: DocId) -> DocId {
        self.labels.get(&doc).map_or(doc, |label| self.roots[label])
    }

    /// The root of a cluster that stayed as a whole.
    pub(super) fn cluster(&self, root: DocId) -> DocId {
        self.clusters.get(&root).copied().unwrap_or(root)
    }
}

/// Some documents, for a quick look whether one may be among them: most are not.
pub(super) struct Sieve {
    bits: Vec<u64>,
    shift: u32,
}

impl Sieve {
    pub(super) fn new<'a>(docs: impl Iterator<Item = &'a DocId> + Clone) -> Sieve {
        let bits = (docs.clone().count() as u64 * 16).next_power_of_two().max(64);
        let mut sieve = Sieve { bits: vec![0; bits as usize / 64], shift: 64 - bits.trailing_zeros() };
        for doc in docs {
            let place = sieve.place(*doc);
            sieve.bits[place / 64] |= 1 << (place % 64);
        }
        sieve
    }

    fn place(&self, doc: DocId) -> usize {
        (spread(word(doc)) >> self.shift) as usize
    }

    #[inline]
    pub(super) fn may_have(&self, doc: DocId) -> bool {
        let place = self.place(doc);
        self.bits[place / 64] >> (place % 64) & 1 == 1
    }
}
