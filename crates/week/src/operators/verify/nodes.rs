//! Nodes: the pages that verification compares. Of equal pages the first one stands for all, and a
//! cluster of only equal pages needs no verification.

use std::collections::BTreeSet;

use anyhow::Result;
use nigh_exchange::{Context, all_to_all};

use crate::records::DocId;
use crate::structures::Ownership;

/// The own nodes, ascending: documents that are the first of their equals, in clusters with several
/// of these. Only clusters with a `wanted` root have nodes.
///
/// `roots` are the roots of own documents, and `firsts` the first document that is equal to each,
/// both by number; [`DocId::NONE`] for a URL without a document. The root of a cluster is the first
/// of its equals.
///
/// # Errors
/// If a worker of this process failed.
pub fn nodes(
    cx: &mut Context,
    owned: &Ownership,
    roots: &[DocId],
    firsts: &[DocId],
    wanted: impl Fn(DocId) -> bool,
) -> Result<Vec<DocId>> {
    let mut nodes: Vec<DocId> = Vec::new();
    let mut roots_of_nodes: BTreeSet<DocId> = BTreeSet::new();
    for (doc, (root, first)) in owned.docs().zip(roots.iter().zip(firsts)) {
        if *first == doc && *root != doc && *root != DocId::NONE && wanted(*root) {
            nodes.push(doc);
            roots_of_nodes.insert(*root);
        }
    }
    // The root of a cluster learns from the others that it is a node, too.
    let mut dealer = cx.dealer();
    for root in roots_of_nodes {
        dealer.deal(root.owner(cx.peers()) as u64, root);
    }
    let mut own_roots: Vec<DocId> = Vec::new();
    all_to_all(cx, dealer)?.iter().for_each(|block| own_roots.extend_from_slice(block.records()));
    nodes.append(&mut own_roots);
    nodes.sort_unstable();
    nodes.dedup();
    Ok(nodes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn clusters_of_equal_pages_have_no_nodes() {
        let doc = |row: u64| DocId::new(row as u32 % 3, row / 3);
        // Pages 0 to 3 are one cluster of two distinct pages, 4 to 6 one of equal pages, 7 is
        // alone, and 8 has no page.
        let roots = [0, 0, 0, 0, 4, 4, 4, 7].map(doc);
        let firsts = [0, 0, 2, 2, 4, 4, 4, 7].map(doc);
        for workers in [1, 2, 3] {
            let found = timely::execute(timely::Config::process(workers), move |worker| {
                let cx = &mut Context::alone(worker);
                let owned = Ownership::new(cx.index(), cx.peers(), &[3, 3, 3]);
                let row = |doc: DocId| (doc.row() * 3 + u64::from(doc.shard())) as usize;
                let own = |all: &[DocId; 8]| -> Vec<DocId> {
                    owned.docs().map(|doc| all.get(row(doc)).copied().unwrap_or(DocId::NONE)).collect()
                };
                nodes(cx, &owned, &own(&roots), &own(&firsts), |_| true).unwrap()
            });
            let mut found: Vec<DocId> = found.unwrap().join().into_iter().flat_map(Result::unwrap).collect();
            found.sort_unstable();
            assert_eq!(found, [doc(0), doc(2)], "{workers} workers");
        }
    }
}
