//! Verification: both ends of every edge have the same root.
//!
//! The union-find checks every edge of a star when it joins it (`structures::components`). This
//! check is for the edges of the processes' union-finds: after label propagation and pointer
//! doubling, both ends have the same root. It is always on, and costs one or two records for each
//! edge.

use anyhow::{Result, bail};
use nigh_exchange::Context;

use super::edges::send_edges;
use crate::kernels::memory::SIDE_BY_SIDE;
use crate::records::{DocId, Edge};
use crate::structures::Ownership;

/// Checks that both ends of every edge have the same root. `roots` are those of own documents, by
/// own number; the edges of a worker may have ends that other workers own.
///
/// # Errors
/// Names a document of an edge whose ends have different roots (a fault in this program, or in the
/// machine). The worker that owns this document returns the error.
pub fn verify(cx: &mut Context, owned: &Ownership, edges: impl Iterator<Item = Edge>, roots: &[DocId]) -> Result<()> {
    let mut mismatch = None;
    let root_of = |doc: DocId| roots[owned.index(doc)];
    // `expected.doc`, an own document, must have the root `expected.root`.
    let mut check = |expected: Edge| {
        let root = root_of(expected.doc);
        if root != expected.root {
            mismatch = Some((expected, root));
        }
    };
    // The owner of one end sends its root to the owner of the other end. An edge with two foreign
    // ends goes to the owner of one of them first; most edges have an own end.
    let (mut foreign, mut expectations): (Vec<Edge>, Vec<Edge>) = (Vec::new(), Vec::new());
    let (mut edges, mut own_edges) = (edges.fuse().peekable(), Vec::with_capacity(SIDE_BY_SIDE));
    while edges.peek().is_some() {
        for Edge { doc, root } in edges.by_ref().take(SIDE_BY_SIDE) {
            match (owned.has(doc), owned.has(root)) {
                (true, true) => own_edges.push((doc, root)),
                (true, false) => expectations.push(Edge { doc: root, root: root_of(doc) }),
                (false, true) => expectations.push(Edge { doc, root: root_of(root) }),
                (false, false) => foreign.push(Edge { doc, root }),
            }
        }
        own_edges.drain(..).for_each(|(doc, root)| check(Edge { doc: root, root: root_of(doc) }));
    }
    send_edges(cx, foreign, |edge| expectations.push(Edge { doc: edge.root, root: root_of(edge.doc) }))?;
    send_edges(cx, expectations, check)?;
    if let Some((expected, root)) = mismatch {
        bail!(
            "document {} has the root {root}, but a document that is linked to it has the root {}: \
             a fault in this program, please report it",
            expected.doc,
            expected.root
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
                    let cx = &mut Context::alone(worker);
                    let owned = Ownership::new(cx.index(), cx.peers(), &[200; 4]);
                    // Two components: even and odd numbers. One document has the wrong root.
                    let root = |i: u64| if wrong == Some(i) { doc(3) } else { doc(i % 2) };
                    let number = |doc: DocId| doc.row() * 4 + u64::from(doc.shard());
                    let roots: Vec<DocId> = owned.docs().map(|doc| root(number(doc))).collect();
                    let edges = (2..800).map(|i| Edge { doc: doc(i), root: doc(i - 2) });
                    let share = edges.skip(cx.index()).step_by(cx.peers());
                    verify(cx, &owned, share, &roots).is_err()
                });
                let reported = guards.unwrap().join().into_iter().any(|failed| failed.unwrap());
                assert_eq!(reported, wrong.is_some(), "{workers} workers, {wrong:?}");
            }
        }
    }
}
