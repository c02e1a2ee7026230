//! Waves to segments: at its owner, each shard's answers of a wave become rows.
//!
//! Of several answers of one URL the first by (file, ordinal) is the page. A URL of an earlier week has its row; new
//! ones are given in the order of URL hashes, so that they depend on the waves alone. In every file rows ascend: in a
//! store's first week that is the order of hashes, in later weeks a wave's pages are sorted once more.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;

use anyhow::{Context, Result};
use arrow_array::Int64Array;
use serde::{Deserialize, Serialize};
use timely::container::CapacityContainerBuilder;
use timely::dataflow::StreamVec;
use timely::dataflow::channels::pact::Exchange;
use timely::dataflow::operators::generic::Operator;

use super::crawl::Capture;
use crate::plan::Plan;
use crate::records::DocId;
use crate::state::{Counts, Segment, Unfinished, UrlIndex, sync_folder};
use crate::structures::{ExternalSort, Sortable, Sorted};
use crate::tables::{DocumentRow, FeatureRow, FoundLinkRow, Scan, Table, UrlRow, Writer, field};
use crate::text::urls;
use crate::watch::Watch;

/// What one worker made of a wave.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct WaveSegments {
    /// The segments, by shard.
    pub segments: Vec<Segment>,
    /// What was counted while making them.
    pub counts: Counts,
}

/// Writes the segments of every wave; gives what each worker made of it, once it is durable.
///
/// `done` are the segments of the waves before `first_wave`, which an earlier run committed.
pub fn segments<'scope>(
    answers: StreamVec<'scope, u64, Capture>,
    plan: &Arc<Plan>,
    first_wave: usize,
    done: &[Segment],
    watch: &Arc<Watch>,
) -> StreamVec<'scope, u64, WaveSegments> {
    let shards = plan.method.shards;
    let (url_files, earlier) =
        (watch.check(plan.open_store().url_indexes(&plan.earlier)), plan.earlier.urls(plan.method.shards));
    let route = Exchange::new(move |answer: &Capture| u64::from(answer.hash.shard(shards)));
    let (plan, watch) = (plan.clone(), watch.clone());
    let (index, peers) = (answers.scope().index(), answers.scope().peers());
    let done = done.iter().filter(|segment| segment.shard as usize % peers == index);
    let mut shards = Shards::new(&plan, url_files.unwrap_or_default(), earlier, done);
    answers.unary_frontier::<CapacityContainerBuilder<Vec<WaveSegments>>, _, _, _>(
        route,
        "Segments",
        |capability, _| {
            let mut waves: BTreeMap<u64, ExternalSort<Capture>> = BTreeMap::new();
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
                    let sorter = waves.entry(wave).or_insert_with(|| ExternalSort::new(&prefix(), budget));
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
                        let sorter = waves
                            .remove(&wave)
                            .unwrap_or_else(|| ExternalSort::new(&shards.unfinished.spill(), budget));
                        let Some(made) = watch.check(shards.make(sorter, wave as usize)) else { return };
                        output.session(&*capability).give(made);
                        wave += 1;
                    }
                }
            }
        },
    )
}

/// The own shards' url tables, as they grow.
struct Shards {
    plan: Arc<Plan>,
    unfinished: Unfinished,
    /// The url files of earlier weeks, by shard.
    url_files: BTreeMap<u32, Vec<PathBuf>>,
    /// The rows of each shard's url table before this week.
    earlier: Vec<u64>,
    /// All segments of this week so far, by shard.
    segments: BTreeMap<u32, Vec<Segment>>,
    /// Which URLs of earlier weeks were answered this week, by shard.
    answered: BTreeMap<u32, RowSet>,
}

impl Shards {
    fn new<'a>(
        plan: &Arc<Plan>,
        url_files: BTreeMap<u32, Vec<PathBuf>>,
        earlier: Vec<u64>,
        done: impl Iterator<Item = &'a Segment>,
    ) -> Shards {
        let mut segments: BTreeMap<u32, Vec<Segment>> = BTreeMap::new();
        for segment in done {
            segments.entry(segment.shard).or_default().push(*segment);
        }
        let unfinished = plan.open_store().unfinished(plan.week);
        Shards { unfinished, plan: plan.clone(), url_files, earlier, segments, answered: BTreeMap::new() }
    }

    /// Writes all segments of a wave that this worker owns.
    fn make(&mut self, sorter: ExternalSort<Capture>, wave: usize) -> Result<WaveSegments> {
        let mut sorted = sorter.sorted()?;
        let mut made = WaveSegments { segments: Vec::new(), counts: Counts::default() };
        let mut next = sorted.record()?;
        while let Some(first) = next.take() {
            next = self.make_shard(first, &mut sorted, wave, &mut made)?;
        }
        for (shard, segments) in &self.segments {
            let earlier = self.url_files.get(shard).map_or(&[][..], |files| files);
            UrlIndex { unfinished: &self.unfinished, shard: *shard, segments, earlier }.merge(wave)?;
        }
        sync_folder(self.unfinished.folder())?;
        Ok(made)
    }

    /// Writes the segment of the shard of `first`, whose other answers come next; gives the first one of another shard.
    fn make_shard(
        &mut self,
        first: Capture,
        sorted: &mut Sorted<Capture>,
        wave: usize,
        made: &mut WaveSegments,
    ) -> Result<Option<Capture>> {
        let shards = self.plan.method.shards;
        let shard = first.hash.shard(shards);
        let mut answered = self.answered(shard)?;
        let (segments, earlier) = (self.segments.entry(shard).or_default(), self.earlier[shard as usize]);
        let url_files = self.url_files.get(&shard).map_or(&[][..], |files| files);
        let index = UrlIndex { unfinished: &self.unfinished, shard, segments, earlier: url_files };
        let mut urls = index.lookup(wave)?;
        let mut row = earlier + segments.iter().map(|segment| segment.urls).sum::<u64>();
        let mut writer = SegmentWriter::create(&self.plan, &self.unfinished, wave, shard, row)?;
        let prefix = self.unfinished.spill().join(format!("shard{shard}-wave{wave}"));
        let mut known = ExternalSort::new(&prefix, self.plan.worker_memory / 8);
        let (mut next, mut duplicates) = (Some(first), 0);
        while let Some(page) = next.take_if(|answer| answer.hash.shard(shards) == shard) {
            // Answers of one URL come one after the other, the first one first.
            let hash = page.hash;
            let doc = match urls.find(hash)? {
                Some(doc) if doc.row() < earlier && answered.add(doc.row()) => Some(doc),
                Some(_) => None,
                None => {
                    row += 1;
                    Some(DocId::new(shard, row - 1))
                }
            };
            match doc {
                None => duplicates += 1,
                Some(doc) if earlier == 0 => writer.push(doc, page, &mut made.counts)?,
                Some(doc) => known.push(Placed { doc, page })?,
            }
            next = sorted.record()?;
            while next.as_ref().is_some_and(|answer| answer.hash == hash) {
                duplicates += 1;
                next = sorted.record()?;
            }
        }
        let mut placed = known.sorted()?;
        while let Some(Placed { doc, page }) = placed.record()? {
            writer.push(doc, page, &mut made.counts)?;
        }
        let segment = writer.finish()?;
        self.answered.insert(shard, answered);
        if segment.documents > 0 {
            segments.push(segment);
            made.segments.push(segment);
        }
        if duplicates > 0 {
            *made.counts.skipped.entry("duplicate of a URL".into()).or_default() += duplicates;
        }
        Ok(next)
    }

    /// Takes the rows of earlier weeks that were answered in this week's waves so far.
    fn answered(&mut self, shard: u32) -> Result<RowSet> {
        if let Some(rows) = self.answered.remove(&shard) {
            return Ok(rows);
        }
        let earlier = self.earlier[shard as usize];
        let mut rows = RowSet::new(earlier);
        for segment in self.segments.get(&shard).into_iter().flatten() {
            let path = self.unfinished.table(DocumentRow::NAME, &segment.file());
            Scan::open(&path, &["doc"])?.for_each(|batch| {
                let docs: &Int64Array = field(batch, "doc")?;
                let all = docs.values().iter().map(|doc| DocId::from_table(*doc).row());
                all.filter(|row| *row < earlier).for_each(|row| _ = rows.add(row));
                Ok(())
            })?;
        }
        Ok(rows)
    }
}

/// A set of rows, a bit for each.
struct RowSet(Vec<u64>);

impl RowSet {
    fn new(rows: u64) -> RowSet {
        RowSet(vec![0; rows.div_ceil(64) as usize])
    }

    /// Adds a row; false where it was there.
    fn add(&mut self, row: u64) -> bool {
        let (word, bit) = (&mut self.0[row as usize / 64], 1 << (row % 64));
        let new = *word & bit == 0;
        *word |= bit;
        new
    }
}

/// A page whose document is known.
#[derive(Serialize, Deserialize)]
struct Placed {
    doc: DocId,
    page: Capture,
}

impl Sortable for Placed {
    type Key = DocId;

    fn key(&self) -> DocId {
        self.doc
    }

    fn weight(&self) -> usize {
        size_of::<DocId>() + self.page.weight()
    }
}

/// The files of one segment.
struct SegmentWriter {
    plan: Arc<Plan>,
    segment: Segment,
    /// The first row that no URL has yet.
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
        let segment = Segment { wave, shard, documents: 0, urls: 0, features: 0, links: 0 };
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

    fn push(&mut self, doc: DocId, page: Capture, counts: &mut Counts) -> Result<()> {
        let (new, doc) = (doc.row() >= self.first_row, doc.to_table());
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
        if new {
            self.urls.push(UrlRow { doc, hash: page.hash.to_bytes(), url: page.url.clone() })?;
        }
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
        self.segment.urls = self.urls.finish_if_any()?;
        self.segment.documents = self.documents.finish_if_any()?;
        Ok(self.segment)
    }
}
