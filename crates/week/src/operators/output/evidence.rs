//! Evidence: how many supershingles and features a document shares with a neighbour in its cluster.
//!
//! A document's sketch (its supershingles and features) is sent to the owner of its neighbour. The
//! owner sorts the sketches of a round by neighbour, reads its own sketches of these once, and
//! replies with two counts. The asker's memory bounds a round; the next one begins when all
//! workers' sketches so far are answered.
//!
//! Documents with identical vectors are not compared here: all of their supershingles agree, and so
//! do all of their features, unless two fingerprints collide (once in 2^64).
//!
//! The dataflow is that of [`ask`](nigh_exchange::ask()), written by hand because the width of a
//! sketch is known only at run time, so it is not a fixed-size record.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context as _, Result, bail};
use bytemuck::{Pod, Zeroable};
use nigh_exchange::{
    Block, BlockOf, BlockStream, Context, Dealer, RowDealer, bytes_of_rows, hold, received, run_dataflow, source,
    time_of, unary_frontier,
};
use timely::dataflow::Scope;
use timely::dataflow::operators::probe::Handle;
use timely::dataflow::operators::{Capability, Probe};

use crate::features::equal_features;
use crate::operators::scan::{SketchFiles, VectorBatch, Vectors};
use crate::records::{DocId, FeatureBits};
use crate::structures::Ownership;
use crate::watch::Watch;

/// How often a source whose round is not answered yet checks again.
const POLL: Duration = Duration::from_millis(1);

/// How similar two documents are.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Agreement {
    /// Supershingles that agree.
    pub agreements: u32,
    /// Features that are equal.
    pub equal: u32,
}

/// A document's sketch, for the owner of its neighbour: a row of the exchange is this, the
/// supershingles, and the features.
#[derive(Clone, Copy, Pod, Zeroable)]
#[repr(C)]
struct SketchHead {
    neighbour: DocId,
    doc: DocId,
}

/// A document's sketch, as its neighbour's owner received it.
struct SketchQuestion<'a> {
    head: SketchHead,
    /// Supershingles and features, as bytes.
    sketch: &'a [u8],
}

impl SketchQuestion<'_> {
    fn read(row: &[u8]) -> Result<SketchQuestion<'_>> {
        let (head, sketch) = row.split_at_checked(size_of::<SketchHead>()).context("a sketch is cut")?;
        Ok(SketchQuestion { head: bytemuck::pod_read_unaligned(head), sketch })
    }

    /// The supershingles, of which there are so many, and the features.
    fn sketch(&self, supershingles: usize) -> Result<(&[u64], &[FeatureBits])> {
        let (supershingles, features) = self.sketch.split_at_checked(8 * supershingles).context("a sketch is cut")?;
        let (Ok(supershingles), Ok(features)) =
            (bytemuck::try_cast_slice(supershingles), bytemuck::try_cast_slice(features))
        else {
            bail!("a sketch is cut");
        };
        Ok((supershingles, features))
    }
}

/// The agreement of a document with its neighbour.
#[derive(Clone, Copy, Pod, Zeroable)]
#[repr(C)]
struct SketchAnswer {
    doc: DocId,
    agreements: u32,
    equal: u32,
}

/// Compares every own document with its neighbour, given by number; a document that is its own
/// neighbour is not compared. `sketches` are those of own documents. About `memory` bytes of
/// sketches are in flight for each worker.
///
/// # Errors
/// Where a neighbour has no features, a segment cannot be read, or a worker of this process failed.
pub fn evidence(
    cx: &mut Context,
    owned: &Ownership,
    neighbours: Vec<DocId>,
    sketches: &SketchFiles,
    memory: u64,
) -> Result<Vec<Agreement>> {
    let watch = &cx.watch().clone();
    let agreements = Rc::new(RefCell::new(vec![Agreement::default(); owned.len()]));
    let compared = owned.docs().zip(&neighbours).filter(|(doc, neighbour)| doc != *neighbour);
    let compared: Vec<DocId> = compared.map(|(doc, _)| doc).collect();
    let (left, vectors) = (compared.len(), sketches.of_docs(compared));
    let own = OwnSketches { vectors, owned: owned.clone(), neighbours, left, peers: cx.peers() };
    run_dataflow(cx, |scope, probe| {
        let questions = send_sketches(scope, own, memory, probe.clone(), watch);
        let answers = compare_sketches(questions, sketches.clone(), watch);
        let (agreements, owned) = (agreements.clone(), owned.clone());
        let take = move |block: BlockOf<SketchAnswer>| {
            let mut of_docs = agreements.borrow_mut();
            for SketchAnswer { doc, agreements, equal } in block.records() {
                of_docs[owned.index(*doc)] = Agreement { agreements: *agreements, equal: *equal };
            }
        };
        received(answers, take).probe_with(probe);
    })?;
    Ok(agreements.take())
}

/// The source: it sends the sketches of own documents, one round at a time. A round is its own
/// time.
fn send_sketches<'scope>(
    scope: Scope<'scope, u64>,
    mut sketches: OwnSketches,
    memory: u64,
    answered: Handle<u64>,
    watch: &Arc<Watch>,
) -> BlockStream<'scope> {
    let mut dealer = RowDealer::new(scope.index(), scope.peers(), watch);
    let watch = watch.clone();
    source(scope, "Sketches", |capability, info| {
        let activator = scope.activator_for(info.address);
        let mut capability = Some(capability);
        // The round, and the bytes of its sketches so far.
        let (mut round, mut bytes) = (0, 0);
        move |output| {
            let Some(current) = capability.as_mut() else { return };
            // After a failure the capability is kept: other workers would take silence for an end.
            if watch.failed() {
                return;
            }
            if round > 0 && bytes == 0 && answered.less_than(&round) {
                return activator.activate_after(POLL);
            }
            let Some(batch) = watch.check(sketches.next()) else { return };
            let Some(batch) = batch else {
                capability = None;
                return;
            };
            let (asked, asked_bytes) = sketches.ask(&batch, &mut dealer);
            sketches.left -= asked;
            bytes += asked_bytes;
            let mut session = output.session_with_builder(&*current);
            dealer.finish().for_each(|mut block| session.give_container(&mut block));
            drop(session);
            if bytes as u64 > memory {
                (round, bytes) = (round + 1, 0);
                current.downgrade(&round);
            }
            activator.activate();
        }
    })
}

/// Exchanges sketches to the owners of the neighbours, and when all sketches of a round have
/// arrived compares them there.
fn compare_sketches<'scope>(
    questions: BlockStream<'scope>,
    sketches: SketchFiles,
    watch: &Arc<Watch>,
) -> BlockStream<'scope> {
    let scope = questions.scope();
    let peers = scope.peers();
    let mut dealer = Dealer::<SketchAnswer>::new(scope.index(), peers, watch);
    let watch = watch.clone();
    unary_frontier(questions, "Compare", |_, _| {
        let mut rounds: BTreeMap<u64, (Capability<u64>, Vec<Block>)> = BTreeMap::new();
        move |input, frontier, output| {
            // As above, capabilities are kept after a failure.
            if watch.failed() {
                return;
            }
            input.for_each_stamp(|capability, blocks| {
                let held =
                    rounds.entry(time_of(&capability)).or_insert_with(|| (hold(&capability, output), Vec::new()));
                held.1.extend(blocks.map(std::mem::take));
            });
            while let Some(round) = rounds.first_entry().filter(|first| !frontier.less_equal(first.key())) {
                let (capability, questions) = round.get();
                let Some(answers) = watch.check(compare(questions, &sketches)) else { return };
                let mut session = output.session_with_builder(capability);
                answers.into_iter().for_each(|answer| dealer.deal(answer.doc.owner(peers) as u64, answer));
                dealer.finish().for_each(|mut block| session.give_container(&mut block));
                drop(session);
                round.remove();
            }
        }
    })
}

/// The sketches of own documents, as they are read.
struct OwnSketches {
    vectors: Vectors,
    owned: Ownership,
    /// The neighbour of each own document, by number.
    neighbours: Vec<DocId>,
    /// The documents that are still to be compared; documents without words are never compared.
    left: usize,
    /// The number of workers.
    peers: usize,
}

impl OwnSketches {
    /// The next sketches; `None` if all documents are compared, or at the end.
    fn next(&mut self) -> Result<Option<VectorBatch>> {
        if self.left == 0 { Ok(None) } else { self.vectors.batch() }
    }

    /// Deals the sketches of a batch of own documents to the owners of their neighbours. Returns
    /// their number, and the bytes that they take at their sender and their receiver together.
    fn ask(&self, batch: &VectorBatch, dealer: &mut RowDealer) -> (usize, usize) {
        let (supershingles, features) = widths(batch);
        let bytes = size_of::<SketchHead>() + 8 * supershingles + features * size_of::<FeatureBits>();
        let mut asked = 0;
        for (row, doc) in batch.docs.iter().enumerate() {
            let neighbour = self.neighbours[self.owned.index(*doc)];
            if neighbour != *doc {
                let head = SketchHead { neighbour, doc: *doc };
                let of_doc = &batch.supershingles[row * supershingles..][..supershingles];
                let (of_doc, features) = (of_doc, &batch.features[row * features..][..features]);
                let row = [bytemuck::bytes_of(&head), bytemuck::cast_slice(of_doc), bytemuck::cast_slice(features)];
                dealer.deal_bytes(neighbour.owner(self.peers), &row);
                asked += 1;
            }
        }
        (asked, 2 * asked * bytes)
    }
}

/// The supershingles and the features of each document of a batch.
fn widths(batch: &VectorBatch) -> (usize, usize) {
    let width = |values: usize| values.checked_div(batch.docs.len()).unwrap_or(0);
    (width(batch.supershingles.len()), width(batch.features.len()))
}

/// Answers questions about own documents, in one pass over their vectors.
fn compare(questions: &[Block], sketches: &SketchFiles) -> Result<Vec<SketchAnswer>> {
    let rows = questions.iter().flat_map(bytes_of_rows);
    let mut questions = rows.map(|row| SketchQuestion::read(row?)).collect::<Result<Vec<_>>>()?;
    questions.sort_unstable_by_key(|question| question.head.neighbour);
    let mut neighbours: Vec<DocId> = questions.iter().map(|question| question.head.neighbour).collect();
    neighbours.dedup();
    let mut vectors = sketches.of_docs(neighbours);
    let mut answers = Vec::with_capacity(questions.len());
    while answers.len() < questions.len() {
        let Some(batch) = vectors.batch()? else { bail!("a neighbour has no features: its segment is damaged") };
        let Some(first) = batch.docs.first() else { continue };
        let (supershingles, features) = widths(&batch);
        // Documents ascend within a batch, but the batches of a shard's segments may overlap: each
        // batch searches its start.
        let start = questions.partition_point(|question| question.head.neighbour < *first);
        let mut rest = questions[start..].iter().peekable();
        for (row, neighbour) in batch.docs.iter().enumerate() {
            while rest.next_if(|question| question.head.neighbour < *neighbour).is_some() {}
            while let Some(question) = rest.next_if(|question| question.head.neighbour == *neighbour) {
                let of_neighbour = &batch.supershingles[row * supershingles..][..supershingles];
                let (asked, asked_features) = question.sketch(supershingles)?;
                let agreements = asked.iter().zip(of_neighbour).filter(|(a, b)| a == b).count() as u32;
                let of_neighbour = &batch.features[row * features..][..features];
                let equal = equal_features(asked_features, of_neighbour) as u32;
                answers.push(SketchAnswer { doc: question.head.doc, agreements, equal });
            }
        }
    }
    Ok(answers)
}
