//! Verification: both ends of every edge have the same root.
//!
//! The union-find checks every edge of a star as it joins it (`forest`); what is left to see is that the edges of the
//! processes' forests join equal roots after label propagation and pointer doubling. Always on: it costs a record or
//! two an edge.

use std::sync::Arc;

use anyhow::{Result, bail};
use timely::worker::Worker;

use super::edges::tell_edges;
use crate::kernels::memory::SIDE_BY_SIDE;
use crate::records::{DocId, Edge};
use crate::structures::Ownership;
use crate::watch::Watch;

/// Checks that the ends of every edge have the same root, given the roots of own documents by number.
///
/// # Errors
/// Names an edge whose ends have two roots: a fault in this program, or in the machine.
pub fn verify(
    worker: &mut Worker,
    owned: &Ownership,
    edges: impl Iterator<Item = Edge>,
    roots: &[DocId],
    watch: &Arc<Watch>,
) -> Result<()> {
    let mut wrong = None;
    let root_of = |doc: DocId| roots[owned.index(doc)];
    let mut check = |edge: Edge| {
        let root = root_of(edge.doc);
        if root != edge.root {
            wrong = Some((edge, root));
        }
    };
    // The owner of one end says its root to the owner of the other. Most edges have an own end.
    let (mut unknown, mut said): (Vec<Edge>, Vec<Edge>) = (Vec::new(), Vec::new());
    let (mut edges, mut both) = (edges.fuse().peekable(), Vec::with_capacity(SIDE_BY_SIDE));
    while edges.peek().is_some() {
        for Edge { doc, root } in edges.by_ref().take(SIDE_BY_SIDE) {
            match (owned.has(doc), owned.has(root)) {
                (true, true) => both.push((doc, root)),
                (true, false) => said.push(Edge { doc: root, root: root_of(doc) }),
                (false, true) => said.push(Edge { doc, root: root_of(root) }),
                (false, false) => unknown.push(Edge { doc, root }),
            }
        }
        both.drain(..).for_each(|(doc, root)| check(Edge { doc: root, root: root_of(doc) }));
    }
    tell_edges(worker, unknown, watch, |edge| said.push(Edge { doc: edge.root, root: root_of(edge.doc) }))?;
    tell_edges(worker, said, watch, check)?;
    if let Some((edge, root)) = wrong {
        bail!(
            "page {} has the root {root}, and a page that it was joined with has {}: a fault in this program, please report it",
            edge.doc,
            edge.root
        );
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_edge_between_two_roots_is_found_wherever_its_ends_are() {
        let doc = |i: u64| DocId::new((i % 4) as u32, i / 4);
        for workers in [1, 2, 4] {
            for wrong in [None, Some(0), Some(5), Some(11), Some(600), Some(799)] {
                let guards = timely::execute(timely::Config::process(workers), move |worker| {
                    let owned = Ownership::new(worker.index(), worker.peers(), &[200; 4]);
                    // Two components: even and odd numbers.
                    let root = |i: u64| if wrong == Some(i) { doc(3) } else { doc(i % 2) };
                    let number = |doc: DocId| doc.row() * 4 + u64::from(doc.shard());
                    let roots: Vec<DocId> = owned.docs().map(|doc| root(number(doc))).collect();
                    let edges = (2..800).map(|i| Edge { doc: doc(i), root: doc(i - 2) });
                    let mine = edges.skip(worker.index()).step_by(worker.peers());
                    verify(worker, &owned, mine, &roots, &Arc::default()).is_err()
                });
                let found = guards.unwrap().join().into_iter().any(|found| found.unwrap());
                assert_eq!(found, wrong.is_some(), "{workers} workers, {wrong:?}");
            }
        }
    }
}
