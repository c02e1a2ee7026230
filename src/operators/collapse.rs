//! Collapse: documents with identical supershingle vectors become one node.
//!
//! This is the virtually-identical clustering itself (Fetterly 2004, section 2: all supershingles
//! agree), since equality needs no propagation. Exact copies are told apart within it, by checksum.
//! Every document of a cluster hears of its smallest member; only those members, the
//! representatives, go on to be compared by megashingles.

use std::cell::RefCell;
use std::rc::Rc;
use std::sync::Arc;

use bytemuck::{Pod, Zeroable};
use timely::container::CapacityContainerBuilder;
use timely::dataflow::channels::pact::Pipeline;
use timely::dataflow::operators::generic::Operator;
use timely::dataflow::{Stream, StreamVec};

use super::block::{Block, BlockBuilder, by_part};
use super::group::Grouper;
use super::partitions::each_partition;
use super::phase::Owned;
use crate::records::{DocId, Key};
use crate::watch::Watch;

/// A document under the keys of its vector, with and without checksum.
#[derive(Clone, Copy, Debug, Pod, Zeroable)]
#[repr(C)]
pub struct Vectored {
    /// Of all supershingles.
    pub identical: Key,
    /// Of all supershingles and the checksum.
    pub exact: Key,
    /// The document.
    pub doc: DocId,
}

/// A document's roots at the two levels of identity.
#[derive(Clone, Copy, Debug, Pod, Zeroable)]
#[repr(C)]
pub struct Roots {
    /// The document.
    pub doc: DocId,
    /// The smallest document with the same vector.
    pub identical: DocId,
    /// The smallest document with the same vector and checksum.
    pub exact: DocId,
}

/// The roots of all own documents, by number; a document that nothing was said of is its own root.
pub struct IdentityRoots {
    /// At the level of identical vectors.
    pub identical: Vec<DocId>,
    /// At the level of exact copies.
    pub exact: Vec<DocId>,
}

impl IdentityRoots {
    /// Every document its own root.
    pub fn new(owned: &Owned) -> IdentityRoots {
        let own: Vec<DocId> = owned.docs().collect();
        IdentityRoots { identical: own.clone(), exact: own }
    }
}

/// Groups vectors by key; gives the roots of every document that is not its own, for the document's owner.
pub fn collapse<'scope>(
    vectors: Stream<'scope, u64, Block<Vectored>>,
    watch: &Arc<Watch>,
) -> Stream<'scope, u64, Block<Roots>> {
    let peers = vectors.scope().peers();
    let (mut identical, mut exact) = (Grouper::default(), Grouper::default());
    each_partition(vectors, "Collapse", watch, move |vectors: &[Vectored], dealer| {
        identical.fill(vectors.iter().map(|v| (v.identical, v.doc)));
        exact.fill(vectors.iter().map(|v| (v.exact, v.doc)));
        for (at, Vectored { doc, .. }) in vectors.iter().enumerate() {
            let roots = Roots { doc: *doc, identical: identical.group(at).smallest, exact: exact.group(at).smallest };
            // Exact copies are identical: who roots the wider cluster roots the narrower.
            if roots.identical != *doc {
                dealer.deal(doc.owner(peers), roots);
            }
        }
    })
}

/// Keeps the roots at the documents' owners.
pub fn keep_roots<'scope>(
    roots: Stream<'scope, u64, Block<Roots>>,
    owned: &Owned,
    kept: &Rc<RefCell<IdentityRoots>>,
) -> StreamVec<'scope, u64, ()> {
    let (owned, kept) = (owned.clone(), kept.clone());
    let at_owner = roots.unary::<BlockBuilder<Roots>, _, _, _>(by_part(), "Roots", |_, _| {
        move |input, _output| {
            let mut kept = kept.borrow_mut();
            input.for_each(|_, block| {
                for roots in block.records.drain(..) {
                    let at = owned.index(roots.doc);
                    (kept.identical[at], kept.exact[at]) = (roots.identical, roots.exact);
                }
            });
        }
    });
    at_owner.unary::<CapacityContainerBuilder<Vec<()>>, _, _, _>(Pipeline, "Kept", |_, _| {
        |input, _| input.for_each(|_, _| {})
    })
}
