//! The no-split certificate: a document may leave its cluster without anybody else being parted.
//!
//! The keys of the document that others hold are joined where one document that stays holds both. If all are joined, then
//! whoever was reached through the document is still reached through those that stay. A key of which all other holders
//! leave too is joined with none. So the certificate holds for any number of documents that leave at once: take a path
//! through some of them from one who stays to another; the first holds a key with one who stays, so that by its
//! certificate somebody who stays holds the key by which the path goes on, and so on to the last. Somebody whose keys only
//! leavers hold is on no such path, and needs none. Keys that the document has not bridge just as well, where those who
//! stay hold them. Where it fails, the cluster may still hold together: it is then taken apart and put together again,
//! which costs time and is never wrong.

use crate::records::DocId;

/// A key of the document, with one who stays and holds it; or [`DocId::NONE`], where nobody stays of those who hold it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct RemainingHolder {
    /// Who stays.
    pub stays: DocId,
    /// Which of the document's keys.
    pub slot: u32,
}

/// Whether the document's cluster stays in one piece. `holders` are those of its keys that others hold; they are put in
/// order. Keys from `own` on are not the document's: where those who stay hold them, they are joined by them, too.
pub fn holds(holders: &mut [RemainingHolder], own: u32) -> bool {
    if holders.iter().all(|holder| holder.stays == DocId::NONE) {
        return true;
    }
    holders.sort_unstable();
    let slots = holders.iter().map(|holder| holder.slot as usize + 1).max().unwrap_or(0);
    let mut parent: Vec<u32> = (0..slots as u32).collect();
    fn root(parent: &mut [u32], mut slot: u32) -> u32 {
        while parent[slot as usize] != slot {
            let next = parent[parent[slot as usize] as usize];
            parent[slot as usize] = next;
            slot = next;
        }
        slot
    }
    for pair in holders.windows(2) {
        if pair[0].stays == pair[1].stays && pair[0].stays != DocId::NONE {
            let (a, b) = (root(&mut parent, pair[0].slot), root(&mut parent, pair[1].slot));
            parent[a.max(b) as usize] = a.min(b);
        }
    }
    let mut roots = holders.iter().filter(|holder| holder.slot < own).map(|holder| root(&mut parent, holder.slot));
    let first = roots.next();
    roots.all(|root| Some(root) == first)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn held(holders: &[(u64, u32)]) -> bool {
        let holder = |(doc, slot): &(u64, u32)| RemainingHolder {
            stays: if *doc == 0 { DocId::NONE } else { DocId::new(0, *doc) },
            slot: *slot,
        };
        holds(&mut holders.iter().map(holder).collect::<Vec<_>>(), 15)
    }

    #[test]
    fn keys_must_be_bridged_by_those_who_stay() {
        assert!(held(&[]), "nobody is reached");
        assert!(held(&[(1, 3), (2, 3), (3, 3)]), "one key joins them all");
        assert!(held(&[(1, 0), (1, 5), (2, 5)]), "1 holds both keys");
        assert!(!held(&[(1, 0), (2, 5)]), "nobody holds both");
        assert!(held(&[(1, 0), (1, 1), (2, 1), (2, 2), (9, 2)]), "a chain bridges");
        assert!(!held(&[(1, 0), (1, 1), (0, 2)]), "who shares the last key leaves too");
        assert!(held(&[(0, 1), (0, 2)]), "all who are reached leave too");
        assert!(!held(&[(0, 1), (5, 2)]), "who stays is not bridged to who leaves");
        assert!(held(&[(1, 0), (1, 20), (2, 20), (2, 5)]), "1 and 2 hold another key, which bridges");
        assert!(held(&[(1, 0), (1, 20), (2, 21)]), "keys that are not the document's need no bridge");
        assert!(!held(&[(1, 0), (1, 20), (2, 21), (2, 5)]), "nobody holds both of the others");
    }
}
