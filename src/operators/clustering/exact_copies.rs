//! Exact copies: among pages with identical vectors, those whose bodies are the same bytes.
//!
//! Equal bytes may still be read as different text, under two charsets, so that the vector is part of the key and
//! levels nest. Nearly every duplicate is a copy of its representative, which a lookup tells. Only those that are not
//! meet each other.

use std::cell::RefCell;
use std::collections::{BTreeMap, HashMap};
use std::hash::BuildHasherDefault;
use std::rc::Rc;
use std::sync::Arc;

use anyhow::Result;
use bytemuck::{Pod, Zeroable};
use timely::container::CapacityContainerBuilder;
use timely::dataflow::channels::pact::Pipeline;
use timely::dataflow::operators::generic::Operator;
use timely::dataflow::operators::generic::operator::source;
use timely::dataflow::operators::probe::Handle;
use timely::dataflow::operators::{FrontierNotificator, Probe};
use timely::worker::Worker;

use crate::operators::exchange::{Block, BlockBuilder, Dealer, LocalAnswers, by_part, lookup, run_to_end};
use crate::records::{DocId, Key};
use crate::structures::{DocHasher, Ownership};
use crate::watch::Watch;

/// A duplicate that is no copy of its representative; or, on the way back, its root.
#[derive(Clone, Copy, Pod, Zeroable)]
#[repr(C)]
struct Copied {
    key: Key,
    doc: DocId,
}

/// The smallest document with the same vector and the same bytes, for each of `duplicates`: own documents that have
/// the same vector as a smaller one, and the smallest of these. `checksums` are those of own documents, by number.
///
/// # Errors
/// Where a worker of this process failed.
pub fn exact_copies(
    worker: &mut Worker,
    owned: &Ownership,
    duplicates: &Rc<Vec<(DocId, DocId)>>,
    checksums: &Rc<Vec<u128>>,
    watch: &Arc<Watch>,
) -> Result<Vec<DocId>> {
    let mut roots: Vec<DocId> = duplicates.iter().map(|(doc, _)| *doc).collect();
    let halves = |checksum: u128| [(checksum >> 64) as u64, checksum as u64];
    let known = {
        let checksums = checksums.clone();
        move |own: usize| halves(checksums[own])
    };
    let questions = || {
        let duplicates = duplicates.clone();
        (0..duplicates.len()).map(move |at| duplicates[at].1)
    };
    let mut others: Vec<Copied> = Vec::new();
    let near = LocalAnswers::own(worker, known);
    lookup(worker, owned, questions, &near, watch, |at, checksum| {
        let (doc, root) = duplicates[at];
        let [high, low] = halves(checksums[owned.index(doc)]);
        match checksum == [high, low] {
            true => roots[at] = root,
            false => others.push(Copied { key: Key::of(0, &[root.to_table() as u64, high, low]), doc }),
        }
    })?;
    // Copies of no representative: they meet by root and checksum.
    let places: Rc<HashMap<DocId, usize, BuildHasherDefault<DocHasher>>> =
        Rc::new(duplicates.iter().enumerate().map(|(at, (doc, _))| (*doc, at)).collect());
    let (peers, index) = (worker.peers(), worker.index());
    let probe = Handle::new();
    let kept = Rc::new(RefCell::new(roots));
    worker.dataflow::<u64, _, _>(|scope| {
        let kept = kept.clone();
        let mut asking = Dealer::new(index, peers, watch);
        let mut answering = Dealer::new(index, peers, watch);
        source::<_, BlockBuilder<Copied>, _, _>(scope, "Copies", |capability, _| {
            let mut held = Some((capability, others));
            move |output| {
                let Some((capability, others)) = held.take() else { return };
                others.into_iter().for_each(|copied| asking.deal(copied.key.partition_bits() % peers as u64, copied));
                let mut session = output.session_with_builder(&capability);
                asking.finish().for_each(|mut block| session.give_container(&mut block));
            }
        })
        .unary_frontier::<BlockBuilder<Copied>, _, _, _>(by_part(), "Exact", |_, _| {
            let mut stash: Vec<Block<Copied>> = Vec::new();
            let mut notificator = FrontierNotificator::default();
            move |(input, frontier), output| {
                input.for_each(|capability, block| {
                    stash.push(std::mem::take(block));
                    notificator.notify_at(capability.retain(output.output_index()));
                });
                notificator.for_each(&[frontier], |capability, _| {
                    let mut smallest: BTreeMap<Key, DocId> = BTreeMap::new();
                    for copied in stash.iter().flat_map(|block| block.records()) {
                        smallest.entry(copied.key).and_modify(|doc| *doc = copied.doc.min(*doc)).or_insert(copied.doc);
                    }
                    for Copied { key, doc } in stash.iter().flat_map(|block| block.records()) {
                        // The root goes where the key was.
                        let root = Key::of_hashes(smallest[key].to_table() as u64, 0);
                        answering.deal(doc.owner(peers) as u64, Copied { key: root, doc: *doc });
                    }
                    stash.clear();
                    let mut session = output.session_with_builder(&capability);
                    answering.finish().for_each(|mut block| session.give_container(&mut block));
                });
            }
        })
        .unary::<BlockBuilder<Copied>, _, _, _>(by_part(), "Told", |_, _| {
            move |input, _output| {
                let mut kept = kept.borrow_mut();
                input.for_each(|_, block| {
                    for Copied { key, doc } in std::mem::take(block).records() {
                        kept[places[doc]] = DocId::from_table(key.partition_bits() as i64);
                    }
                });
            }
        })
        .unary::<CapacityContainerBuilder<Vec<()>>, _, _, _>(Pipeline, "End", |_, _| {
            |input, _| input.for_each(|_, _| {})
        })
        .probe_with(&probe);
    });
    run_to_end(worker, &probe, watch)?;
    Ok(kept.take())
}
