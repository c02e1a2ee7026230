//! Out-links find their targets: the owner of the target's shard says which document it is.
//!
//! A worker reads its pages' links a round at a time, asks, and writes them with the answers; the owner
//! sorts a round's questions by hash and goes once over its url table.

use std::cell::RefCell;
use std::collections::{BTreeMap, VecDeque};
use std::path::PathBuf;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use anyhow::Result;
use arrow_array::{Int64Array, StringArray};
use bytemuck::{Pod, Zeroable};
use timely::container::CapacityContainerBuilder;
use timely::dataflow::operators::generic::Operator;
use timely::dataflow::operators::generic::operator::source;
use timely::dataflow::operators::probe::Handle;
use timely::dataflow::operators::{FrontierNotificator, Probe};
use timely::worker::Worker;

use crate::operators::exchange::{BlockBuilder, Dealer, by_part, run_to_end};
use crate::operators::scan::own_segments;
use crate::plan::Plan;
use crate::records::{DocId, UrlHash};
use crate::state::{Journal, Segment, Unfinished, UrlIndex};
use crate::structures::Ownership;
use crate::tables::{FoundLinkRow, LinkRow, Scan, Table, Writer, field};
use crate::watch::Watch;

/// How often the source looks whether its round is answered.
const WAIT: Duration = Duration::from_millis(1);

/// "Which document is this?", from the link with this number in the asker's round.
#[derive(Clone, Copy, Pod, Zeroable)]
#[repr(C)]
struct LinkQuestion {
    hash: [u64; 2],
    number: u64,
    worker: u64,
}

#[derive(Clone, Copy, Pod, Zeroable)]
#[repr(C)]
struct LinkAnswer {
    number: u64,
    target: DocId,
}

/// The links of a worker's own pages, as they are read and written.
struct Links {
    unfinished: Unfinished,
    segments: VecDeque<Segment>,
    open: Option<(Segment, Scan)>,
    /// The links of the round, each with its segment's file.
    rows: Vec<(Segment, LinkRow)>,
    writing: Option<(Segment, Writer<LinkRow>)>,
}

impl Links {
    /// Reads some more links of the round; false where there are no more.
    fn read(&mut self) -> Result<bool> {
        loop {
            let Some((segment, scan)) = &mut self.open else {
                let Some(segment) = self.segments.pop_front() else { return Ok(false) };
                let path = self.unfinished.scratch_table(FoundLinkRow::NAME, &segment.file());
                self.open = Some((segment, Scan::open(&path, &["doc", "target_url"])?));
                continue;
            };
            let Some(batch) = scan.batch()? else {
                self.open = None;
                continue;
            };
            let docs: &Int64Array = field(&batch, "doc")?;
            let targets: &StringArray = field(&batch, "target_url")?;
            for row in 0..batch.num_rows() {
                let target_url = targets.value(row).to_owned();
                self.rows.push((*segment, LinkRow { doc: docs.value(row), target_url, target_doc: None }));
            }
            return Ok(true);
        }
    }

    /// Writes the links of the round.
    fn write(&mut self) -> Result<()> {
        for (segment, row) in self.rows.drain(..) {
            if self.writing.as_ref().is_some_and(|(writing, _)| *writing != segment)
                && let Some((_, writer)) = self.writing.take()
            {
                writer.finish()?;
            }
            let (_, writer) = match &mut self.writing {
                Some(writing) => writing,
                none => none.insert((segment, Writer::create(&self.unfinished.table(LinkRow::NAME, &segment.file()))?)),
            };
            writer.push(row)?;
        }
        Ok(())
    }
}

/// Writes the `links` of a worker's own pages.
///
/// # Errors
/// Where a worker of this process failed.
pub fn links(
    worker: &mut Worker,
    plan: &Arc<Plan>,
    journal: &Journal,
    owned: &Ownership,
    watch: &Arc<Watch>,
) -> Result<()> {
    let (index, peers, shards) = (worker.index() as u64, worker.peers(), plan.method.shards);
    let unfinished = plan.open_store().unfinished(plan.week);
    let mut segments = own_segments(journal, owned);
    segments.retain(|segment| segment.links > 0);
    let links = Links { unfinished: unfinished.clone(), segments, open: None, rows: Vec::new(), writing: None };
    let links = Rc::new(RefCell::new(links));
    let urls = Urls { segments: journal.by_shard(), earlier: plan.open_store().url_indexes(&plan.earlier)? };
    let probe = Handle::new();
    // A link of a round costs its URL, its row and its question: about 200 bytes.
    let round_rows = (plan.worker_memory / 2 / 200).max(1) as usize;
    worker.dataflow::<u64, _, _>(|scope| {
        let (reading, writing, answered) = (links.clone(), links.clone(), probe.clone());
        let (asking, answering) = (watch.clone(), watch.clone());
        let mut questions = Dealer::<LinkQuestion>::new(index as usize, peers, watch);
        let mut answers = Dealer::<LinkAnswer>::new(index as usize, peers, watch);
        source::<_, BlockBuilder<LinkQuestion>, _, _>(scope, "Links", |capability, info| {
            let activator = scope.activator_for(info.address);
            let mut held = Some(capability);
            let (mut round, mut asked, mut ended, mut waiting) = (0, 0, false, false);
            move |output| {
                let Some(capability) = held.as_mut() else { return };
                if asking.failed() {
                    held = None;
                    return;
                }
                if ended || asked >= round_rows {
                    // The round is asked: its answers come before the next one begins.
                    if !waiting {
                        round += 1;
                        capability.downgrade(&round);
                        waiting = true;
                    }
                    if answered.less_than(&round) {
                        return activator.activate_after(WAIT);
                    }
                    waiting = false;
                    if asking.check(reading.borrow_mut().write()).is_none() || ended {
                        held = None;
                        return;
                    }
                    asked = 0;
                }
                let mut links = reading.borrow_mut();
                let Some(more) = asking.check(links.read()) else {
                    held = None;
                    return;
                };
                for (number, (_, row)) in links.rows.iter().enumerate().skip(asked) {
                    let hash = UrlHash::of(&row.target_url);
                    let question = LinkQuestion { hash: hash.halves(), number: number as u64, worker: index };
                    questions.deal(u64::from(hash.shard(shards)) % peers as u64, question);
                }
                asked = links.rows.len();
                ended = !more;
                let mut session = output.session_with_builder(&*capability);
                if ended || asked >= round_rows {
                    questions.finish().for_each(|mut block| session.give_container(&mut block));
                } else {
                    questions.full().for_each(|mut block| session.give_container(&mut block));
                }
                activator.activate();
            }
        })
        .unary_frontier::<BlockBuilder<LinkAnswer>, _, _, _>(by_part(), "Targets", |_, _| {
            let mut stash: BTreeMap<u64, Vec<LinkQuestion>> = Default::default();
            let mut notificator = FrontierNotificator::default();
            move |(input, frontier), output| {
                input.for_each_time(|capability, blocks| {
                    let round = stash.entry(*capability.time()).or_default();
                    blocks.for_each(|block| round.extend(std::mem::take(block).records()));
                    notificator.notify_at(capability.retain(output.output_index()));
                });
                notificator.for_each(&[frontier], |capability, _| {
                    let asked = stash.remove(capability.time()).unwrap_or_default();
                    let found = find(asked, shards, &unfinished, &urls, |worker, answer| answers.deal(worker, answer));
                    if answering.check(found).is_some() {
                        let mut session = output.session_with_builder(&capability);
                        answers.finish().for_each(|mut block| session.give_container(&mut block));
                    }
                });
            }
        })
        .unary::<CapacityContainerBuilder<Vec<()>>, _, _, _>(by_part(), "Found", |_, _| {
            move |input, _output| {
                let mut links = writing.borrow_mut();
                input.for_each(|_, block| {
                    for LinkAnswer { number, target } in std::mem::take(block).records() {
                        links.rows[*number as usize].1.target_doc = Some(target.to_table());
                    }
                });
            }
        })
        .probe_with(&probe);
    });
    run_to_end(worker, &probe, watch)?;
    let writing = links.borrow_mut().writing.take();
    if let Some((_, writer)) = writing {
        writer.finish()?;
    }
    Ok(())
}

/// The url tables of all shards.
struct Urls {
    /// This week's segments.
    segments: BTreeMap<u32, Vec<Segment>>,
    /// The files of earlier weeks.
    earlier: BTreeMap<u32, Vec<PathBuf>>,
}

/// Looks questions up in the url tables of own shards.
fn find(
    mut asked: Vec<LinkQuestion>,
    shards: u32,
    unfinished: &Unfinished,
    urls: &Urls,
    mut answer: impl FnMut(u64, LinkAnswer),
) -> Result<()> {
    asked.sort_unstable_by_key(|question| question.hash);
    let hash = |question: &LinkQuestion| UrlHash::from_halves(question.hash);
    for questions in asked.chunk_by(|a, b| hash(a).shard(shards) == hash(b).shard(shards)) {
        let shard = hash(&questions[0]).shard(shards);
        let own = urls.segments.get(&shard).map_or(&[][..], |own| own);
        let waves = own.last().map_or(0, |segment| segment.wave + 1);
        let earlier = urls.earlier.get(&shard).map_or(&[][..], |files| files);
        let mut lookup = UrlIndex { unfinished, shard, segments: own, earlier }.lookup(waves)?;
        for question in questions {
            if let Some(target) = lookup.find(hash(question))? {
                answer(question.worker, LinkAnswer { number: question.number, target });
            }
        }
    }
    Ok(())
}
