//! Why a document is in its cluster: how alike it is to a neighbour there.
//!
//! A document's sketch travels to the owner of its neighbour, which reads its own features once over
//! and answers with two counts. Documents with identical vectors are compared by that alone: all
//! supershingles agree, hence (fingerprints apart, once in 2^64) all features.

use std::cell::RefCell;
use std::rc::Rc;
use std::sync::Arc;

use anyhow::{Result, bail};
use bytemuck::{Pod, Zeroable};
use serde::{Deserialize, Serialize};
use timely::container::CapacityContainerBuilder;
use timely::dataflow::channels::pact::{Exchange, Pipeline};
use timely::dataflow::operators::generic::Operator;
use timely::dataflow::operators::generic::operator::source;
use timely::dataflow::operators::probe::Handle;
use timely::dataflow::operators::{FrontierNotificator, Probe};
use timely::worker::Worker;

use crate::features::equal_features;
use crate::operators::exchange::{BlockBuilder, Dealer, by_part, run_to_end};
use crate::operators::scan::{VectorBatch, Vectors};
use crate::records::DocId;
use crate::structures::Ownership;
use crate::watch::Watch;

/// How alike two documents are.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Agreement {
    /// Supershingles that agree.
    pub agreements: u32,
    /// Features that are equal.
    pub equal: u32,
}

/// A document's sketch, for the owner of its neighbour.
#[derive(Clone, Serialize, Deserialize)]
struct SketchQuestion {
    neighbour: u64,
    doc: u64,
    supershingles: Vec<u64>,
    features: Vec<u32>,
}

/// What the owner of the neighbour found.
#[derive(Clone, Copy, Pod, Zeroable)]
#[repr(C)]
struct SketchAnswer {
    doc: DocId,
    agreements: u32,
    equal: u32,
}

fn id(doc: DocId) -> u64 {
    doc.to_table() as u64
}

fn doc(id: u64) -> DocId {
    DocId::from_table(id as i64)
}

/// Compares every own document that has one with its neighbour (by number; a document that is its own neighbour has
/// none). `open` goes over the own vectors with features. About `memory` bytes of questions are in flight.
///
/// # Errors
/// Where a worker of this process failed.
pub fn evidence(
    worker: &mut Worker,
    owned: &Ownership,
    neighbours: Vec<DocId>,
    open: impl Fn() -> Vectors + Clone + 'static,
    memory: u64,
    watch: &Arc<Watch>,
) -> Result<Vec<Agreement>> {
    let (index, peers) = (worker.index(), worker.peers());
    let found = Rc::new(RefCell::new(vec![Agreement::default(); owned.len()]));
    let probe = Handle::new();
    let (again, answered) = (open.clone(), probe.clone());
    worker.dataflow::<u64, _, _>(|scope| {
        let kept = found.clone();
        let (asking, answering, telling) = (watch.clone(), watch.clone(), owned.clone());
        let (own, mut dealer) = (owned.clone(), Dealer::<SketchAnswer>::new(index, peers, watch));
        source::<_, CapacityContainerBuilder<Vec<SketchQuestion>>, _, _>(scope, "Sketches", |capability, info| {
            let activator = scope.activator_for(info.address);
            let mut held = Some(capability);
            let mut vectors = open();
            let (mut round, mut bytes) = (0, 0);
            move |output| {
                let Some(capability) = held.as_mut() else { return };
                if round > 0 && bytes == 0 && answered.less_than(&round) {
                    return activator.activate_after(std::time::Duration::from_millis(1));
                }
                let batch = if asking.failed() { None } else { asking.check(vectors.batch()).flatten() };
                let Some(batch) = batch else {
                    held = None;
                    return;
                };
                let mut session = output.session(&*capability);
                for question in questions(&batch, &own, &neighbours) {
                    bytes += 2
                        * (size_of::<SketchQuestion>()
                            + 8 * question.supershingles.len()
                            + 4 * question.features.len());
                    session.give(question);
                }
                drop(session);
                if bytes as u64 > memory {
                    (round, bytes) = (round + 1, 0);
                    capability.downgrade(&round);
                }
                activator.activate();
            }
        })
        .unary_frontier::<BlockBuilder<SketchAnswer>, _, _, _>(
            Exchange::new(move |q: &SketchQuestion| doc(q.neighbour).owner(peers) as u64),
            "Compare",
            |_, _| {
                let mut stash: std::collections::BTreeMap<u64, Vec<SketchQuestion>> = Default::default();
                let mut notificator = FrontierNotificator::default();
                move |(input, frontier), output| {
                    input.for_each_time(|capability, batches| {
                        stash.entry(*capability.time()).or_default().extend(batches.flat_map(|b| b.drain(..)));
                        notificator.notify_at(capability.retain(output.output_index()));
                    });
                    notificator.for_each(&[frontier], |capability, _| {
                        let questions = stash.remove(capability.time()).unwrap_or_default();
                        let Some(answers) = answering.check(compare(questions, again())) else { return };
                        let mut session = output.session_with_builder(&capability);
                        answers.into_iter().for_each(|answer| dealer.deal(answer.doc.owner(peers) as u64, answer));
                        dealer.finish().for_each(|mut block| session.give_container(&mut block));
                    });
                }
            },
        )
        .unary::<BlockBuilder<SketchAnswer>, _, _, _>(by_part(), "Alike", |_, _| {
            move |input, _output| {
                let mut kept = kept.borrow_mut();
                input.for_each(|_, block| {
                    for SketchAnswer { doc, agreements, equal } in std::mem::take(block).records() {
                        kept[telling.index(*doc)] = Agreement { agreements: *agreements, equal: *equal };
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
    Ok(found.take())
}

/// The questions that a batch of own documents has.
fn questions<'a>(
    batch: &'a VectorBatch,
    owned: &'a Ownership,
    neighbours: &'a [DocId],
) -> impl Iterator<Item = SketchQuestion> + 'a {
    let width = |all: usize| all.checked_div(batch.docs.len()).unwrap_or(0);
    let (wide, long) = (width(batch.supershingles.len()), width(batch.features.len()));
    batch.docs.iter().enumerate().filter_map(move |(at, doc)| {
        let neighbour = neighbours[owned.index(*doc)];
        (neighbour != *doc).then(|| SketchQuestion {
            neighbour: id(neighbour),
            doc: id(*doc),
            supershingles: batch.supershingles[at * wide..][..wide].to_vec(),
            features: batch.features[at * long..][..long].to_vec(),
        })
    })
}

/// Answers questions about own documents, reading their vectors once over.
fn compare(mut questions: Vec<SketchQuestion>, mut vectors: Vectors) -> Result<Vec<SketchAnswer>> {
    questions.sort_unstable_by_key(|question| question.neighbour);
    let mut answers = Vec::with_capacity(questions.len());
    while answers.len() < questions.len() {
        let Some(batch) = vectors.batch()? else { bail!("a neighbour has no features: its segment is damaged") };
        let width = |all: usize| all.checked_div(batch.docs.len()).unwrap_or(0);
        let (wide, long) = (width(batch.supershingles.len()), width(batch.features.len()));
        // Documents ascend within a batch; a shard's segments may interleave.
        let first = batch.docs.first().map_or(0, |first| id(*first));
        let mut asked = questions[questions.partition_point(|question| question.neighbour < first)..].iter().peekable();
        for (at, neighbour) in batch.docs.iter().enumerate() {
            while asked.next_if(|question| question.neighbour < id(*neighbour)).is_some() {}
            while let Some(question) = asked.next_if(|question| question.neighbour == id(*neighbour)) {
                let theirs = &batch.supershingles[at * wide..][..wide];
                let agreements = question.supershingles.iter().zip(theirs).filter(|(a, b)| a == b).count() as u32;
                let equal = equal_features(&question.features, &batch.features[at * long..][..long]) as u32;
                answers.push(SketchAnswer { doc: doc(question.doc), agreements, equal });
            }
        }
    }
    Ok(answers)
}
