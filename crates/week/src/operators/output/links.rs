//! Out-links: finds the document that each link points to, at the owner of the target's shard, and
//! writes the table `links`.
//!
//! A worker reads some links of its own pages, asks the owners of their targets, and writes the
//! links with the answers: a round, whose size is bounded by the worker's memory. An owner waits
//! for all questions of a round, sorts them by hash and reads its URL indexes once.

use std::cell::RefCell;
use std::collections::{BTreeMap, VecDeque};
use std::rc::Rc;
use std::sync::Arc;

use anyhow::{Context as _, Result};
use arrow_array::{Array, ArrayRef, Int64Array, StringArray};
use bytemuck::{Pod, Zeroable};
use nigh_exchange::{Answerer, Asked, Asker, BlockOf, Context, Dealer, ask};

use crate::operators::scan::own_segments;
use crate::plan::Plan;
use crate::records::{DocId, KeyHash};
use crate::state::{BundleName, BundleWriter, Segment, Unfinished, UrlIndex, WeekJournal};
use crate::structures::Ownership;
use crate::tables::{FoundLinkRow, LinkRow, RowRange, Scan, field};

/// Bytes of a link in a round: its URL, its target and its question.
const LINK_BYTES: u64 = 150;

/// Asks which document has the URL with this hash, for the link with this number in the asker's
/// round.
#[derive(Clone, Copy, Pod, Zeroable)]
#[repr(C)]
struct LinkQuestion {
    hash: [u64; 2],
    number: u64,
    /// The worker that asks.
    worker: u64,
}

/// The document that a link points to. Links to URLs without a document get no answer.
#[derive(Clone, Copy, Pod, Zeroable)]
#[repr(C)]
struct LinkAnswer {
    number: u64,
    target: DocId,
}

/// Writes the table `links` for a worker's own pages, except those whose links stay in the files of
/// an earlier week.
///
/// # Errors
/// Where a table cannot be read or written, or a worker of this process failed.
pub fn links(
    cx: &mut Context,
    plan: &Arc<Plan>,
    (unfinished, journal): (&Unfinished, &WeekJournal),
    owned: &Ownership,
) -> Result<()> {
    let mut segments = VecDeque::new();
    for segment in own_segments(journal, owned) {
        let is_own = segment.links > 0 && segment.origin.is_none();
        // A deletion has copied most links with their targets.
        let is_found = plan.deletion.is_none() || unfinished.find::<FoundLinkRow>(&segment.file())?.is_some();
        if is_own && is_found {
            segments.push_back(segment);
        }
    }
    let links = OwnLinks {
        index: cx.index() as u64,
        peers: cx.peers() as u64,
        shards: plan.method.shards,
        round_rows: (plan.worker_memory / 2 / LINK_BYTES).max(1) as usize,
        unfinished: unfinished.clone(),
        segments,
        reading: None,
        batches: Vec::new(),
        targets: Vec::new(),
        writing: unfinished.bundle(BundleName::After(cx.index())),
        segment: Segment::default(),
    };
    let targets = LinkTargets {
        shards: plan.method.shards,
        unfinished: unfinished.clone(),
        segments: journal.by_shard(),
        earlier: plan.open_store().url_indexes(&plan.earlier)?,
        questions: Vec::new(),
    };
    let links = Rc::new(RefCell::new(links));
    ask(cx, &links, targets)?;
    let links = Rc::into_inner(links).context("the links are asked about")?.into_inner();
    let mut writing = links.writing;
    writing.end_piece(&links.segment.file())?;
    writing.finish()
}

/// The links of a worker's own pages: read, asked about, and written, one round at a time.
struct OwnLinks {
    index: u64,
    peers: u64,
    shards: u32,
    /// Links after which a round ends.
    round_rows: usize,
    unfinished: Unfinished,
    /// Segments that are not read yet.
    segments: VecDeque<Segment>,
    reading: Option<(Segment, Scan)>,
    /// The links of the round, as they were read.
    batches: Vec<LinkBatch>,
    /// The targets of the links of the round, as far as they are known.
    targets: Vec<Option<DocId>>,
    /// The links of the segment that is written.
    writing: BundleWriter<LinkRow<'static>>,
    segment: Segment,
}

/// Some links of the pages of a segment, in order.
struct LinkBatch {
    segment: Segment,
    docs: ArrayRef,
    /// As many.
    urls: StringArray,
}

impl Asker<LinkQuestion, LinkAnswer> for OwnLinks {
    fn ask(&mut self, questions: &mut Dealer<LinkQuestion>) -> Result<Asked> {
        let Some(batch) = self.read()? else { return Ok(Asked::All) };
        let first = self.targets.len();
        self.targets.resize(first + batch.urls.len(), None);
        for (number, url) in (first as u64..).zip(batch.urls.iter()) {
            let hash = KeyHash::of(url.unwrap_or_default());
            let question = LinkQuestion { hash: hash.halves(), number, worker: self.index };
            questions.deal(u64::from(hash.shard(self.shards)) % self.peers, question);
        }
        self.batches.push(batch);
        Ok(if self.targets.len() >= self.round_rows { Asked::Round } else { Asked::More })
    }

    fn take(&mut self, answers: &BlockOf<LinkAnswer>) {
        for LinkAnswer { number, target } in answers.records() {
            self.targets[*number as usize] = Some(*target);
        }
    }

    /// Writes the links of the round.
    fn end_round(&mut self) -> Result<()> {
        let mut targets = self.targets.drain(..);
        for LinkBatch { segment, docs, urls } in self.batches.drain(..) {
            if self.segment != segment {
                self.writing.end_piece(&self.segment.file())?;
                self.segment = segment;
            }
            let of_batch = targets.by_ref().take(urls.len()).map(|target| target.map(DocId::to_table));
            let of_batch: Int64Array = of_batch.collect();
            self.writing.writer()?.push_columns(vec![docs, Arc::new(urls), Arc::new(of_batch)])?;
        }
        Ok(())
    }
}

impl OwnLinks {
    /// Reads some links; `None` if there are no more.
    fn read(&mut self) -> Result<Option<LinkBatch>> {
        loop {
            let Some((segment, scan)) = &mut self.reading else {
                let Some(segment) = self.segments.pop_front() else { return Ok(None) };
                let rows = self.unfinished.rows::<FoundLinkRow>(&segment.file())?;
                self.reading = Some((segment, Scan::open(rows, &["doc", "target_url"])?));
                continue;
            };
            let Some(batch) = scan.batch()? else {
                self.reading = None;
                continue;
            };
            let docs: &Int64Array = field(&batch, "doc")?;
            let urls: &StringArray = field(&batch, "target_url")?;
            return Ok(Some(LinkBatch { segment: *segment, docs: Arc::new(docs.clone()), urls: urls.clone() }));
        }
    }
}

/// The URL indexes of own shards, in which the targets of all workers' links are found.
struct LinkTargets {
    shards: u32,
    unfinished: Unfinished,
    /// This week's segments, by shard.
    segments: BTreeMap<u32, Vec<Segment>>,
    /// The URL indexes of earlier weeks, by shard.
    earlier: BTreeMap<u32, Vec<RowRange>>,
    /// The questions of the round.
    questions: Vec<LinkQuestion>,
}

impl Answerer<LinkQuestion, LinkAnswer> for LinkTargets {
    fn answer(&mut self, questions: &BlockOf<LinkQuestion>, _: &mut Dealer<LinkAnswer>) -> Result<()> {
        self.questions.extend(questions.records());
        Ok(())
    }

    fn end_round(&mut self, answers: &mut Dealer<LinkAnswer>) -> Result<()> {
        let mut questions = std::mem::take(&mut self.questions);
        questions.sort_unstable_by_key(|question| question.hash);
        let hash = |question: &LinkQuestion| KeyHash::from_halves(question.hash);
        for of_shard in questions.chunk_by(|a, b| hash(a).shard(self.shards) == hash(b).shard(self.shards)) {
            let shard = hash(&of_shard[0]).shard(self.shards);
            let segments = self.segments.get(&shard).map_or(&[][..], |segments| segments);
            let waves = segments.last().map_or(0, |segment| segment.wave + 1);
            let earlier = self.earlier.get(&shard).map_or(&[][..], |files| files);
            let mut lookup = UrlIndex { unfinished: &self.unfinished, shard, segments, earlier }.lookup(waves)?;
            for question in of_shard {
                if let Some(target) = lookup.find(hash(question))? {
                    answers.deal(question.worker, LinkAnswer { number: question.number, target });
                }
            }
        }
        Ok(())
    }
}
