//! The source: each worker reads pieces of a wave's files, and computes the features of every page.
//!
//! The operator works for 5 ms at a time and then yields, so that the worker's other operators run.
//! Timely has no backpressure: the operator starts wave `n` only when wave `n - 2` is committed, so
//! that at most two waves are in progress.

use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use nigh_exchange::{BlockBuilder, BlockStream, RowDealer, emit};
use timely::dataflow::Scope;
use timely::dataflow::operators::generic::OutputBuilder;
use timely::dataflow::operators::generic::builder_rc::OperatorBuilder;
use timely::dataflow::operators::probe::Handle;

use super::capture::{Capture, CaptureKey};
use super::failures::{FailedDownload, Redirect};
use super::kept_records::{CrawlRecord, KeptRecord, RecordReader, RecordWriter, kept_records};
use super::kept_shingles::{KeptPage, ShingleWriter, kept_shingles};
use super::keys::PageKey;
use super::notes::{BadRecord, WaveNote};
use super::revisits::{NOT_KNOWN, RevisitOf};
use super::unread::{NextPiece, UnreadPieces};
use crate::features::{Fingerprinter, PageFacts, WordsAndShingles};
use crate::plan::Plan;
use crate::readers::{
    Body, Failure, Format, Input, InputPiece, Item, Page, Reader, RecordKind, RedirectAnswer, Reject, Revisit, Skip,
    Unread, open_piece,
};
use crate::records::{DocumentKey, KeyHash};
use crate::state::ReadingCounts;
use crate::text::urls;
use crate::watch::Watch;

/// How long the operator works before it yields to others.
const TIME_SLICE: Duration = Duration::from_millis(5);
/// The number of bad records of one file that are rows of `rejects`; further ones are only counted.
pub(super) const MOST_LISTED: u64 = 10_000;
/// The number of bytes of a bad record's URL that are kept.
const BAD_URL_BYTES: usize = 2048;
/// The time between two checks of an operator that waits for a commit.
const COMMIT_POLL: Duration = Duration::from_millis(5);
/// The time between two checks of an operator that waits for a piece.
const PIECE_POLL: Duration = Duration::from_millis(1);

/// What a crawl consists of.
pub struct Crawled<'scope> {
    /// Rows: the keys and rows of captures (`PackedCapture::parts`), for the owners of their
    /// shards.
    pub captures: BlockStream<'scope>,
    /// Rows: the downloads that failed, for the owners of their shards.
    pub failed: BlockStream<'scope>,
    /// Rows: the `WaveNote`s of bad records and of the counts of each wave, for worker 0.
    pub notes: BlockStream<'scope>,
}

/// Reads the waves from `first_wave` to the end of `unread`, which is that of the plan unless the
/// run is ended earlier: the pieces that [`deal`](super::deal()) gives to the process, which its
/// workers take from `unread`. The number of a wave is the timestamp of its records. Each worker
/// counts what it read of each wave. `committed` is the probe behind [`commit`](super::commit()):
/// it has passed the waves that are committed.
pub fn crawl<'scope>(
    scope: Scope<'scope, u64>,
    plan: &Arc<Plan>,
    fingerprinter: Fingerprinter,
    unread: Arc<UnreadPieces>,
    first_wave: usize,
    committed: Handle<u64>,
    watch: &Arc<Watch>,
) -> Crawled<'scope> {
    let mut part = WavePart {
        fingerprinter,
        plan: plan.clone(),
        watch: watch.clone(),
        wave: first_wave,
        unread,
        open: None,
        kept: None,
        counts: ReadingCounts::default(),
    };
    let (shards, watch) = (plan.method.shards, watch.clone());
    let mut capture_rows = RowDealer::new(scope.index(), scope.peers(), &watch);
    let mut failed_rows = RowDealer::new(scope.index(), scope.peers(), &watch);
    let mut note_rows = RowDealer::new(scope.index(), 1, &watch);
    let peers = scope.peers();
    let mut builder = OperatorBuilder::new("Crawl".to_owned(), scope);
    let activator = scope.activator_for(builder.operator_info().address);
    let (captures_output, captures) = builder.new_output();
    let (failed_output, failed) = builder.new_output();
    let (notes_output, notes) = builder.new_output();
    builder.build(move |capabilities| {
        let mut captures = OutputBuilder::<_, BlockBuilder>::from(captures_output);
        let mut failed = OutputBuilder::<_, BlockBuilder>::from(failed_output);
        let mut notes = OutputBuilder::<_, BlockBuilder>::from(notes_output);
        // One for each output, in their order.
        let mut capabilities = Some(capabilities);
        let mut wave = first_wave;
        let mut begun = false;
        move |_frontiers| {
            // After a failure the operator keeps its capabilities, so that no worker takes the wave
            // for completely read.
            if watch.failed() {
                return;
            }
            if wave == part.unread.end() {
                capabilities = None;
            }
            let Some(capabilities) = &mut capabilities else { return };
            if !begun {
                capabilities.iter_mut().for_each(|capability| capability.downgrade(&(wave as u64)));
                if wave > first_wave + 1 && committed.less_than(&(wave as u64 - 1)) {
                    return activator.activate_after(COMMIT_POLL);
                }
                part.wave = wave;
                begun = true;
            }
            let [at_captures, at_failed, at_notes] = &capabilities[..] else { return };
            let owner = |hash: KeyHash| hash.shard(shards) as usize % peers;
            let slice = Instant::now();
            let mut waits = false;
            while slice.elapsed() < TIME_SLICE {
                match watch.check(part.step()) {
                    Some(ReadStep::Emit(CrawlRecord::Answer(capture))) => {
                        capture_rows.deal_bytes(owner(capture.key.hash()), &capture.parts());
                    }
                    Some(ReadStep::Emit(CrawlRecord::Failed(failed))) => failed_rows.deal(owner(failed.hash), &failed),
                    Some(ReadStep::Emit(CrawlRecord::Bad(bad))) => note_rows.deal(0, &WaveNote::Bad(bad)),
                    Some(ReadStep::OnlyCounted) => {}
                    Some(ReadStep::End) => {
                        note_rows.deal(0, &WaveNote::Counted(Box::new(std::mem::take(&mut part.counts))));
                        wave += 1;
                        begun = false;
                        break;
                    }
                    Some(ReadStep::NotYet) => {
                        waits = true;
                        break;
                    }
                    None => break,
                }
            }
            emit(capture_rows.finish(), &mut captures.activate(), at_captures);
            emit(failed_rows.finish(), &mut failed.activate(), at_failed);
            emit(note_rows.finish(), &mut notes.activate(), at_notes);
            if waits { activator.activate_after(PIECE_POLL) } else { activator.activate() }
        }
    });
    Crawled { captures, failed, notes }
}

/// What one worker reads of a wave, and the progress in it.
struct WavePart {
    plan: Arc<Plan>,
    watch: Arc<Watch>,
    fingerprinter: Fingerprinter,
    wave: usize,
    unread: Arc<UnreadPieces>,
    open: Option<OpenInput>,
    /// A piece that an earlier run has read, instead.
    kept: Option<RecordReader>,
    counts: ReadingCounts,
}

/// The piece of an input that is read, and how far.
struct OpenInput {
    /// The input's number in the plan.
    number: u32,
    piece: InputPiece,
    reader: Box<dyn Reader>,
    /// The bytes that were read.
    position: u64,
    /// The number of the next record.
    ordinal: u64,
    /// The number of bad records so far.
    rejects: u64,
    /// Where the shingles of its pages are kept, if the job says so.
    kept: Option<ShingleWriter>,
    /// Where its records are kept until the wave is committed, if the config says so.
    records: Option<RecordWriter>,
    counts: ReadingCounts,
}

/// The result of one step: one record, usually. The caller checks its time slice after each step.
enum ReadStep {
    /// A record for the dataflow.
    Emit(CrawlRecord),
    /// A record that is counted and not emitted.
    OnlyCounted,
    /// The worker waits for a piece.
    NotYet,
    /// All pieces of the wave are read, or other workers read them.
    End,
}

impl WavePart {
    /// Reads the next record, and keeps it if the config says so.
    fn step(&mut self) -> Result<ReadStep> {
        let step = self.read()?;
        let records = self.open.as_mut().and_then(|open| open.records.as_mut());
        if let (ReadStep::Emit(record), Some(records)) = (&step, records) {
            records.push(&KeptRecord::Emitted(record))?;
        }
        Ok(step)
    }

    /// Reads the next record.
    fn read(&mut self) -> Result<ReadStep> {
        loop {
            if let Some(kept) = &mut self.kept {
                match kept.next()? {
                    KeptRecord::Emitted(record) => {
                        self.watch.add_record(is_page(&record), is_bad(&record));
                        return Ok(ReadStep::Emit(record));
                    }
                    KeptRecord::End(counts) => {
                        self.counts.add(&counts);
                        self.kept = None;
                        continue;
                    }
                }
            }
            let Some(open) = &mut self.open else {
                let (file, piece) = match self.unread.take(self.wave) {
                    NextPiece::Piece(piece) => piece,
                    NextPiece::NotYet => return Ok(ReadStep::NotYet),
                    NextPiece::End => return Ok(ReadStep::End),
                };
                let input = &self.plan.inputs[file];
                let unfinished = self.plan.open_store().unfinished(self.plan.week);
                let path = kept_records(&unfinished, self.wave, file, piece);
                if self.plan.keep_read
                    && let Some(kept) = RecordReader::open(&path)?
                {
                    self.watch.add_bytes(input.bytes / piece.of);
                    self.kept = Some(kept);
                    continue;
                }
                let reading = self.plan.reading.clone().within(self.plan.worker_memory);
                let reader = open_piece(input, &reading, piece)?;
                let kept = || ShingleWriter::create(kept_shingles(&unfinished, self.wave, file, piece));
                let kept = self.plan.keep.shingles.then(kept).transpose()?;
                let number = file as u32;
                let records = self.plan.keep_read.then(|| RecordWriter::create(path)).transpose()?;
                let (position, ordinal, rejects, counts) = (0, 0, 0, ReadingCounts::default());
                self.open =
                    Some(OpenInput { number, piece, reader, position, ordinal, rejects, kept, records, counts });
                continue;
            };
            let input = &self.plan.inputs[open.number as usize];
            let item = open.reader.next().with_context(|| format!("cannot read {}", input.name))?;
            let position = open.reader.position();
            self.watch.add_bytes(position.saturating_sub(open.position));
            open.position = position.max(open.position);
            let (file, ordinal) = (open.number, open.piece.ordinal(open.ordinal));
            open.ordinal += 1;
            let Some(item) = item else {
                let Unread { bytes, ends_early } = open.reader.unread();
                if bytes > 0 {
                    *open.counts.unread.entry(input.name.clone()).or_default() += bytes;
                }
                if ends_early {
                    open.counts.ends_early.insert(input.name.clone());
                }
                if let Some(OpenInput { kept, records, counts, .. }) = self.open.take() {
                    kept.map_or(Ok(()), ShingleWriter::finish)?;
                    records.map_or(Ok(()), |records| records.finish(&counts))?;
                    self.counts.add(&counts);
                }
                continue;
            };
            open.counts.records += 1;
            let record = match item {
                Item::Page(page) => {
                    open.counts.unread_dates += u64::from(page.date_unread);
                    match PageKey::of(self.plan.method.documents, &page, &input.name) {
                        Ok(PageKey { hash, url }) => {
                            let key = CaptureKey::new(hash, page.is_of_get, (file, ordinal));
                            let (label, url) = (page.charset.as_deref(), url.as_ref());
                            let (bytes, facts) = page_facts(&mut self.fingerprinter, &page.body, label, url);
                            open.counts.whole_pages += u64::from(facts.is_whole);
                            let capture = Capture::of(&page, url, bytes, &facts);
                            if let Some(kept) = open.kept.as_mut().filter(|_| capture.words > 0) {
                                kept.push(kept_page(hash, &capture), self.fingerprinter.last_shingles())?;
                            }
                            CrawlRecord::Answer(capture.packed(key))
                        }
                        Err(reason) => CrawlRecord::Bad(bad(without_key(page, reason, input), file, ordinal)),
                    }
                }
                Item::Reject(reject) => CrawlRecord::Bad(bad(reject, file, ordinal)),
                Item::Failed(failure) => {
                    *open.counts.skipped.entry(failure_kind(input.format).into()).or_default() += 1;
                    self.watch.add_record(false, false);
                    return Ok(failed(failure, file, ordinal).map_or(ReadStep::OnlyCounted, |failed| {
                        ReadStep::Emit(CrawlRecord::Failed(Box::new(failed)))
                    }));
                }
                Item::Revisit(revisit) => {
                    open.counts.revisits += 1;
                    self.watch.add_record(false, false);
                    let is_by_url = self.plan.method.documents == DocumentKey::Url;
                    let revisit = is_by_url.then(|| failed_revisit(*revisit, file, ordinal)).flatten();
                    return Ok(revisit.map_or(ReadStep::OnlyCounted, |revisit| {
                        ReadStep::Emit(CrawlRecord::Failed(Box::new(revisit)))
                    }));
                }
                Item::Skip(skipped) => {
                    *open.counts.skipped.entry(skip_kind(skipped.why).into()).or_default() += 1;
                    self.watch.add_record(false, false);
                    return Ok(ReadStep::OnlyCounted);
                }
            };
            self.watch.add_record(is_page(&record), is_bad(&record));
            if let CrawlRecord::Bad(bad) = &record {
                *open.counts.rejects.entry(bad.reason.clone()).or_default() += 1;
                open.rejects += 1;
                if open.rejects > MOST_LISTED {
                    // A file of only bad records must not fill the table. Of one in pieces, the
                    // commit lists no more than of another.
                    *open.counts.unlisted.entry(input.name.clone()).or_default() += 1;
                    return Ok(ReadStep::OnlyCounted);
                }
            }
            return Ok(ReadStep::Emit(record));
        }
    }
}

fn is_page(record: &CrawlRecord) -> bool {
    matches!(record, CrawlRecord::Answer(_))
}

fn is_bad(record: &CrawlRecord) -> bool {
    matches!(record, CrawlRecord::Bad(_))
}

/// Which page the kept shingles of a capture are of.
fn kept_page(hash: KeyHash, capture: &Capture) -> KeptPage {
    let checksum = [(capture.checksum >> 64) as u64, capture.checksum as u64];
    KeptPage { offset: capture.offset, key: hash.halves(), checksum }
}

/// A page of an input that has not what documents are known by, for `reason`.
fn without_key(page: Page, reason: &str, input: &Input) -> Reject {
    // What the format has no place for is named with the format.
    let reason = if reason.starts_with("no ") { format!("{}: {reason}", input.format) } else { reason.into() };
    Reject { offset: page.offset, url: page.url, reason }
}

/// The row of `rejects` of a bad record: its URL is cut at [`BAD_URL_BYTES`].
fn bad(reject: Reject, file: u32, ordinal: u64) -> BadRecord {
    let url = reject.url.map(|mut url| {
        url.truncate(url.floor_char_boundary(BAD_URL_BYTES));
        url
    });
    BadRecord { file, ordinal, offset: reject.offset, url, reason: reject.reason, is_duplicate: false }
}

/// The name under which a skipped record is counted.
fn skip_kind(skip: Skip) -> &'static str {
    match skip {
        Skip::RecordType => "other record type",
        Skip::MediaType => "other media type",
        Skip::Scheme => "other scheme",
        Skip::Head => "answer to HEAD",
    }
}

/// The name under which a failed download is counted.
fn failure_kind(format: Format) -> &'static str {
    match format.records() {
        RecordKind::Failures => "failed download",
        _ => "status other than 200",
    }
}

/// The failed download of a URL; `None` for a URL without a canonical form, because no week has a
/// document for it. A redirect to something that is not a web address is a failed download like
/// others.
fn failed(failure: Failure, file: u32, ordinal: u64) -> Option<FailedDownload> {
    let url = urls::canonical(&failure.url)?;
    let redirect = failure.redirect.and_then(|RedirectAnswer { status, location }| {
        let target_url = url.resolve(&location)?.into();
        Some(Redirect { url: url.as_str().to_owned(), target_url, status })
    });
    let (hash, host) = (KeyHash::of(url.as_str()), url.host().to_owned());
    Some(FailedDownload { hash, file, ordinal, host, reason: failure.reason, redirect, revisit: None })
}

/// A revisit as a download that failed unless its page is found; `None` for a URL without a
/// canonical form.
fn failed_revisit(revisit: Revisit, file: u32, ordinal: u64) -> Option<FailedDownload> {
    let url = urls::canonical(&revisit.url)?;
    let (hash, host) = (KeyHash::of(url.as_str()), url.host().to_owned());
    let revisit = Some(Box::new(RevisitOf::of(revisit, url)));
    Some(FailedDownload { hash, file, ordinal, host, reason: NOT_KNOWN.to_owned(), redirect: None, revisit })
}

/// The bytes of a page's content at the canonical URL `url`, if it has one, and what is read from
/// them. `label` is the charset of its HTTP header.
pub fn page_facts<'a>(
    fingerprinter: &mut Fingerprinter,
    body: &'a Body,
    label: Option<&str>,
    url: Option<&urls::CanonicalUrl>,
) -> (&'a [u8], PageFacts) {
    match body {
        Body::Html(body) => (body, fingerprinter.html(body, label, url)),
        Body::Plain(body) => (body, fingerprinter.plain(body, label)),
        Body::Text(text) => (text.as_bytes(), fingerprinter.text(text)),
    }
}

/// The distinct shingles of a page. `label` is the charset of its HTTP header.
pub fn page_shingles(fingerprinter: &mut Fingerprinter, body: &Body, label: Option<&str>) -> Vec<u64> {
    match body {
        Body::Html(body) => fingerprinter.html_shingles(body, label),
        Body::Plain(body) => fingerprinter.plain_shingles(body, label),
        Body::Text(text) => fingerprinter.text_shingles(text),
    }
}

/// The words and shingles of a page. `label` is the charset of its HTTP header.
pub fn page_words(fingerprinter: &mut Fingerprinter, body: &Body, label: Option<&str>) -> WordsAndShingles {
    match body {
        Body::Html(body) => fingerprinter.words_of_html(body, label),
        Body::Plain(body) => fingerprinter.words_of_plain(body, label),
        Body::Text(text) => fingerprinter.words_of_text(text),
    }
}
