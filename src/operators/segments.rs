//! Waves to segments: at its owner, each shard's answers of a wave become rows.
//!
//! Of several answers of one URL the first by (file, ordinal) is the page. Rows are given in the order
//! of URL hashes, so that they depend on the wave alone.

use std::collections::BTreeMap;
use std::sync::Arc;

use anyhow::{Context, Result};
use serde::{Deserialize, Serialize};
use timely::container::CapacityContainerBuilder;
use timely::dataflow::StreamVec;
use timely::dataflow::channels::pact::Exchange;
use timely::dataflow::operators::generic::Operator;

use super::crawl::Answer;
use super::spill::Sorter;
use crate::plan::Plan;
use crate::records::DocId;
use crate::state::{Counts, Segment, Store, Unfinished, UrlIndex, sync_folder};
use crate::tables::{DocumentRow, FeatureRow, FoundLinkRow, Table, UrlRow, Writer};
use crate::text::urls;
use crate::watch::Watch;

/// What one worker made of a wave.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Made {
    /// The segments, by shard.
    pub segments: Vec<Segment>,
    /// What was counted while making them.
    pub counts: Counts,
}

/// Writes the segments of every wave; gives what each worker made of it, once it is durable.
///
/// `done` are the segments of the waves before `first_wave`, which an earlier run committed.
pub fn segments<'scope>(
    answers: StreamVec<'scope, u64, Answer>,
    plan: &Arc<Plan>,
    first_wave: usize,
    done: &[Segment],
    watch: &Arc<Watch>,
) -> StreamVec<'scope, u64, Made> {
    let shards = plan.method.shards;
    let route = Exchange::new(move |answer: &Answer| u64::from(answer.hash.shard(shards)));
    let (plan, watch) = (plan.clone(), watch.clone());
    let (index, peers) = (answers.scope().index(), answers.scope().peers());
    let mut shards = Shards::new(&plan, done.iter().filter(|segment| segment.shard as usize % peers == index));
    answers.unary_frontier::<CapacityContainerBuilder<Vec<Made>>, _, _, _>(route, "Segments", |capability, _| {
        let mut waves: BTreeMap<u64, Sorter<Answer>> = BTreeMap::new();
        // Two waves are in flight at most, and half of the memory is left to what comes with them.
        let budget = plan.worker_memory / 4;
        // Every worker says of every wave what it made of it, be it nothing: the commit counts them. A worker that
        // failed keeps its capability, so that no other process takes the wave for whole.
        let mut held = Some(capability);
        let mut wave = first_wave as u64;
        move |(input, frontier), output| {
            input.for_each_time(|capability, batches| {
                let wave = *capability.time();
                let prefix = || shards.unfinished.spill().join(format!("worker{index}-wave{wave}"));
                let sorter = waves.entry(wave).or_insert_with(|| Sorter::new(&prefix(), budget));
                for answer in batches.flat_map(|batch| batch.drain(..)) {
                    if watch.failed() || watch.check(sorter.push(answer)).is_none() {
                        return;
                    }
                }
            });
            while let Some(capability) = &mut held
                && !watch.failed()
            {
                if wave as usize == plan.waves.len() {
                    held = None;
                } else if frontier.less_equal(&wave) {
                    break;
                } else {
                    capability.downgrade(&wave);
                    let sorter = waves.remove(&wave).unwrap_or_else(|| Sorter::new(&shards.unfinished.spill(), budget));
                    let Some(made) = watch.check(shards.make(sorter, wave as usize)) else { return };
                    output.session(&*capability).give(made);
                    wave += 1;
                }
            }
        }
    })
}

/// The own shards' url tables, as they grow.
struct Shards {
    plan: Arc<Plan>,
    unfinished: Unfinished,
    /// All segments of this week so far, by shard.
    segments: BTreeMap<u32, Vec<Segment>>,
}

impl Shards {
    fn new<'a>(plan: &Arc<Plan>, done: impl Iterator<Item = &'a Segment>) -> Shards {
        let mut segments: BTreeMap<u32, Vec<Segment>> = BTreeMap::new();
        for segment in done {
            segments.entry(segment.shard).or_default().push(*segment);
        }
        Shards { unfinished: Store::at(&plan.store).unfinished(plan.week), plan: plan.clone(), segments }
    }

    /// Writes all segments of a wave that this worker owns.
    fn make(&mut self, sorter: Sorter<Answer>, wave: usize) -> Result<Made> {
        let mut sorted = sorter.sorted()?;
        let mut made = Made { segments: Vec::new(), counts: Counts::default() };
        let mut duplicates = 0;
        let mut next = sorted.next()?;
        while let Some(first) = next.take() {
            let shard = first.hash.shard(self.plan.method.shards);
            let earlier = self.segments.entry(shard).or_default();
            let first_row = earlier.iter().map(|segment| segment.documents).sum();
            let mut urls = UrlIndex { unfinished: &self.unfinished, shard, segments: earlier }.lookup(wave)?;
            let mut writer = SegmentWriter::create(&self.plan, &self.unfinished, wave, shard, first_row)?;
            let mut page = first;
            loop {
                // Answers of one URL come one after the other, the first one first.
                let hash = page.hash;
                match urls.find(hash)? {
                    Some(_) => duplicates += 1,
                    None => writer.push(page, &mut made.counts)?,
                }
                next = sorted.next()?;
                while next.as_ref().is_some_and(|answer| answer.hash == hash) {
                    duplicates += 1;
                    next = sorted.next()?;
                }
                match next.take_if(|answer| answer.hash.shard(self.plan.method.shards) == shard) {
                    Some(answer) => page = answer,
                    None => break,
                }
            }
            let segment = writer.finish()?;
            if segment.documents > 0 {
                self.segments.entry(shard).or_default().push(segment);
                made.segments.push(segment);
            }
        }
        for (shard, segments) in &self.segments {
            UrlIndex { unfinished: &self.unfinished, shard: *shard, segments }.merge(wave)?;
        }
        if duplicates > 0 {
            made.counts.skipped.insert("duplicate of a URL".into(), duplicates);
        }
        sync_folder(self.unfinished.folder())?;
        Ok(made)
    }
}

/// The files of one segment.
struct SegmentWriter {
    plan: Arc<Plan>,
    segment: Segment,
    first_row: u64,
    documents: Writer<DocumentRow>,
    features: Writer<FeatureRow>,
    urls: Writer<UrlRow>,
    links: Writer<FoundLinkRow>,
}

impl SegmentWriter {
    fn create(
        plan: &Arc<Plan>,
        unfinished: &Unfinished,
        wave: usize,
        shard: u32,
        first_row: u64,
    ) -> Result<SegmentWriter> {
        let segment = Segment { wave, shard, documents: 0, features: 0, links: 0 };
        let file = segment.file();
        Ok(SegmentWriter {
            plan: plan.clone(),
            segment,
            first_row,
            documents: Writer::create(&unfinished.table(DocumentRow::NAME, &file))?,
            features: Writer::create(&unfinished.table(FeatureRow::NAME, &file))?,
            urls: Writer::create(&unfinished.table(UrlRow::NAME, &file))?,
            links: Writer::create(&unfinished.scratch_table(FoundLinkRow::NAME, &file))?,
        })
    }

    fn push(&mut self, page: Answer, counts: &mut Counts) -> Result<()> {
        let doc = DocId::new(self.segment.shard, self.first_row + self.documents.len()).to_table();
        counts.documents += 1;
        counts.empty += u64::from(page.words == 0);
        counts.cut += u64::from(page.cut);
        counts.words += page.words;
        counts.bytes += page.bytes;
        if page.words > 0 {
            self.features.push(FeatureRow {
                doc,
                supershingles: page.sketch.supershingles.iter().flat_map(|s| s.to_le_bytes()).collect(),
                features: page.sketch.features.iter().flat_map(|f| f.to_le_bytes()).collect(),
            })?;
        }
        for target_url in page.links {
            self.links.push(FoundLinkRow { doc, target_url })?;
        }
        self.urls.push(UrlRow { doc, hash: page.hash.to_bytes(), url: page.url.clone() })?;
        let file = self.plan.inputs.get(page.file as usize).context("an answer names an input of the plan")?;
        self.documents.push(DocumentRow {
            doc,
            domain: urls::domain(&page.host).to_owned(),
            url: page.url,
            host: page.host,
            ip: page.ip,
            fetched: page.fetched,
            status: page.status.into(),
            media_type: page.media_type,
            bytes: page.bytes as i64,
            checksum: page.checksum.to_be_bytes(),
            words: page.words as i64,
            title: page.title,
            file: file.name.clone(),
            offset: page.offset as i64,
        })
    }

    fn finish(mut self) -> Result<Segment> {
        self.segment.features = self.features.finish_if_any()?;
        self.segment.links = self.links.finish_if_any()?;
        self.urls.finish_if_any()?;
        self.segment.documents = self.documents.finish_if_any()?;
        Ok(self.segment)
    }
}
