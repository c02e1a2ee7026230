//! The no-split certificate: a proof that a document can leave its cluster without splitting it.
//!
//! The certificate holds if the unchanged documents that have the document's keys connect all of
//! these keys: whatever the document reached by them is then still reached without it. Cost: a
//! union-find over the keys of one document.
//!
//! It is sound for any number of documents that leave at once. Take a path from one unchanged
//! document to another through documents that leave. The first of them shares a key with an
//! unchanged document; by its certificate an unchanged document also has the key by which the path
//! continues, and so on until the last. A document whose keys only leaving documents have is on no
//! such path and needs no certificate.
//!
//! Limit: without a certificate the cluster may still hold together, by connections that were not
//! looked at. It is then taken apart and its components are computed again (`split_components`),
//! which costs time and is never wrong.

use crate::records::DocId;
use crate::structures::OwnUnionFind;

/// A key of the document that leaves, and an unchanged document that has it; or [`DocId::NONE`], if
/// all others that have the key leave too.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct RemainingHolder {
    /// The unchanged document.
    pub doc: DocId,
    /// The number of the key among the keys of the document that leaves.
    pub slot: u32,
}

/// Whether a document can leave its cluster without splitting it.
///
/// `holders` are those of the document's keys that other documents have, in any order; they are
/// sorted. Slots from `own_slots` on are keys that the document does not have: they connect
/// unchanged documents, and need not be connected.
///
/// ```text
/// if no unchanged document has any key of the document: yes
/// for each unchanged document d:
///     union all slots that d has
/// yes, if all slots < own_slots in `holders` are in one set       (a slot that only NONE has stays alone)
/// ```
///
/// ```
/// use nigh_week::operators::delta::{RemainingHolder, is_certified};
/// use nigh_kernels::records::DocId;
///
/// let holder = |row, slot| RemainingHolder { doc: DocId::new(0, row), slot };
/// // Document 1 has key 0, document 2 has key 5, and none has both: they may part.
/// assert!(!is_certified(&mut [holder(1, 0), holder(2, 5)], 15));
/// // Document 3 has both keys.
/// assert!(is_certified(&mut [holder(1, 0), holder(2, 5), holder(3, 0), holder(3, 5)], 15));
/// ```
pub fn is_certified(holders: &mut [RemainingHolder], own_slots: u32) -> bool {
    if holders.iter().all(|holder| holder.doc == DocId::NONE) {
        return true;
    }
    holders.sort_unstable();
    let slots = holders.iter().map(|holder| holder.slot as usize + 1).max().unwrap_or(0);
    let mut joined = OwnUnionFind::new(slots);
    // Slots of one document are adjacent now.
    for pair in holders.windows(2) {
        if pair[0].doc == pair[1].doc && pair[0].doc != DocId::NONE {
            joined.join([pair[0].slot, pair[1].slot]);
        }
    }
    let own = holders.iter().filter(|holder| holder.slot < own_slots);
    let mut roots = own.map(|holder| joined.root(holder.slot));
    let first = roots.next();
    roots.all(|root| Some(root) == first)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Pairs of a document (0: none that is unchanged) and a slot, of a document that has 15 keys.
    fn certified(holders: &[(u64, u32)]) -> bool {
        let holder = |(doc, slot): &(u64, u32)| RemainingHolder {
            doc: if *doc == 0 { DocId::NONE } else { DocId::new(0, *doc) },
            slot: *slot,
        };
        is_certified(&mut holders.iter().map(holder).collect::<Vec<_>>(), 15)
    }

    #[test]
    fn unchanged_documents_must_connect_all_keys() {
        assert!(certified(&[]), "no other document has a key");
        assert!(certified(&[(1, 3), (2, 3), (3, 3)]), "one key connects all three");
        assert!(certified(&[(1, 0), (1, 5), (2, 5)]), "1 has both keys");
        assert!(!certified(&[(1, 0), (2, 5)]), "no document has both keys");
        assert!(certified(&[(1, 0), (1, 1), (2, 1), (2, 2), (9, 2)]), "a chain connects the keys");
        assert!(!certified(&[(1, 0), (1, 1), (0, 2)]), "all others that have the last key leave too");
        assert!(certified(&[(0, 1), (0, 2)]), "all documents that share a key leave too");
        assert!(!certified(&[(0, 1), (5, 2)]), "an unchanged document is not connected to one that leaves");
        assert!(certified(&[(1, 0), (1, 20), (2, 20), (2, 5)]), "1 and 2 share another key, which connects them");
        assert!(certified(&[(1, 0), (1, 20), (2, 21)]), "keys that the document does not have need no connection");
        assert!(!certified(&[(1, 0), (1, 20), (2, 21), (2, 5)]), "no document has both of the other keys");
    }
}
