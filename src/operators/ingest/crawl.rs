//! The source: each worker reads its share of a wave's files and takes every page apart.
//!
//! It does one slice of work at a time and yields, so that the worker's other operators run; and it
//! begins a wave only when the wave before the last is committed, since timely has no backpressure:
//! at most two waves are in flight.

use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use serde::{Deserialize, Serialize};
use timely::container::CapacityContainerBuilder;
use timely::dataflow::operators::generic::operator::source;
use timely::dataflow::operators::probe::Handle;
use timely::dataflow::{Scope, StreamVec};

use super::failures::FailedDownload;
use crate::features::{Fingerprinter, Sketch};
use crate::plan::Plan;
use crate::readers::{Body, Failure, Format, Item, Page, Reader, Reject, Skip};
use crate::records::{UrlHash, checksum};
use crate::state::Counts;
use crate::structures::Sortable;
use crate::text::urls;
use crate::watch::Watch;

/// How long a slice of work lasts before other operators get their turn.
const SLICE: Duration = Duration::from_millis(5);
/// Bad records of one file that are listed; further ones are only counted.
const LISTED: u64 = 10_000;
/// Bytes of a bad record's URL that are kept.
const BAD_URL_BYTES: usize = 2048;
/// How often a source that waits for a commit looks again.
const WAIT: Duration = Duration::from_millis(5);

/// What one URL answered, taken apart.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Capture {
    /// The hash of the canonical URL; its shard owns the answer.
    pub hash: UrlHash,
    /// The input's number in the plan.
    pub file: u32,
    /// The record's number in the input: of several answers of a URL, the first by (file, ordinal) is the page.
    pub ordinal: u64,
    /// The canonical URL.
    pub url: String,
    /// Its host.
    pub host: String,
    /// The machine that answered.
    pub ip: Option<String>,
    /// When, in microseconds UTC.
    pub fetched: Option<i64>,
    /// HTTP status.
    pub status: u16,
    /// Media type, without parameters.
    pub media_type: String,
    /// Bytes of the body as read.
    pub bytes: u64,
    /// Their checksum.
    pub checksum: u128,
    /// Words of the text.
    pub words: u64,
    /// The title.
    pub title: String,
    /// Where in the input.
    pub offset: u64,
    /// Whether the body was cut.
    pub cut: bool,
    /// Supershingles and features; empty for a page without words.
    pub sketch: Sketch,
    /// Canonical out-links.
    pub links: Vec<String>,
}

impl Sortable for Capture {
    type Key = (UrlHash, u32, u64);

    fn key(&self) -> Self::Key {
        (self.hash, self.file, self.ordinal)
    }

    fn weight(&self) -> usize {
        size_of::<Capture>()
            + self.url.len()
            + self.host.len()
            + self.title.len()
            + self.media_type.len()
            + 8 * self.sketch.supershingles.len()
            + 4 * self.sketch.features.len()
            + self.links.iter().map(|link| size_of::<String>() + link.len()).sum::<usize>()
    }
}

/// A bad record, with its place.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct BadRecord {
    /// The input's number in the plan.
    pub file: u32,
    /// The record's number in the input.
    pub ordinal: u64,
    /// Where in the input.
    pub offset: u64,
    /// Its URL, where that much could be read.
    pub url: Option<String>,
    /// What is wrong with it.
    pub reason: String,
}

impl Sortable for BadRecord {
    type Key = (u32, u64);

    fn key(&self) -> Self::Key {
        (self.file, self.ordinal)
    }

    fn weight(&self) -> usize {
        size_of::<BadRecord>() + self.url.as_ref().map_or(0, |url| url.len()) + self.reason.len()
    }
}

/// What the source gives.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub enum CrawlRecord {
    /// A page.
    Answer(Box<Capture>),
    /// A download that failed.
    Failed(FailedDownload),
    /// A bad record.
    Bad(BadRecord),
    /// What was counted in a worker's share of a wave; every worker gives one a wave.
    Counted(Box<Counts>),
}

/// Reads the waves from `first_wave` on; a wave is its own time. `committed` tells which waves are committed.
pub fn crawl<'scope>(
    scope: Scope<'scope, u64>,
    plan: &Arc<Plan>,
    fingerprinter: Fingerprinter,
    first_wave: usize,
    committed: Handle<u64>,
    watch: &Arc<Watch>,
) -> StreamVec<'scope, u64, CrawlRecord> {
    let (index, peers) = (scope.index(), scope.peers());
    let mut share = WaveShare {
        fingerprinter,
        plan: plan.clone(),
        watch: watch.clone(),
        files: Vec::new(),
        open: None,
        counts: Counts::default(),
    };
    let watch = watch.clone();
    source::<_, CapacityContainerBuilder<Vec<CrawlRecord>>, _, _>(scope, "Crawl", |capability, info| {
        let activator = scope.activator_for(info.address);
        let mut held = Some(capability);
        let mut wave = first_wave;
        let mut begun = false;
        move |output| {
            let Some(capability) = held.as_mut() else { return };
            if watch.failed() {
                // The capability is kept: nobody may take the wave for read.
                return;
            }
            if wave == share.plan.waves.len() {
                held = None;
                return;
            }
            if !begun {
                capability.downgrade(&(wave as u64));
                if wave > first_wave + 1 && committed.less_than(&(wave as u64 - 1)) {
                    return activator.activate_after(WAIT);
                }
                share.files = share.plan.share(wave, index, peers);
                share.files.reverse();
                begun = true;
            }
            let mut session = output.session(&*capability);
            let slice = Instant::now();
            while slice.elapsed() < SLICE {
                match watch.check(share.step()) {
                    Some(ReadStep::Give(found)) => session.give(found),
                    Some(ReadStep::Passed) => {}
                    Some(ReadStep::End) => {
                        session.give(CrawlRecord::Counted(Box::new(std::mem::take(&mut share.counts))));
                        wave += 1;
                        begun = false;
                        break;
                    }
                    None => break,
                }
            }
            activator.activate();
        }
    })
}

/// A worker's share of a wave, as it is read.
struct WaveShare {
    plan: Arc<Plan>,
    watch: Arc<Watch>,
    fingerprinter: Fingerprinter,
    /// Inputs still to open, the next one last.
    files: Vec<usize>,
    open: Option<OpenFile>,
    counts: Counts,
}

struct OpenFile {
    number: u32,
    reader: Box<dyn Reader>,
    position: u64,
    ordinal: u64,
    rejects: u64,
}

/// One step through a share: the caller looks at its clock after each.
enum ReadStep {
    Give(CrawlRecord),
    /// Something that is only counted.
    Passed,
    End,
}

impl WaveShare {
    fn step(&mut self) -> Result<ReadStep> {
        loop {
            let Some(open) = &mut self.open else {
                let Some(file) = self.files.pop() else { return Ok(ReadStep::End) };
                let input = &self.plan.inputs[file];
                let reader = crate::readers::open(input, &self.plan.reading)?;
                self.open = Some(OpenFile { number: file as u32, reader, position: 0, ordinal: 0, rejects: 0 });
                continue;
            };
            let input = &self.plan.inputs[open.number as usize];
            let item = open.reader.next().with_context(|| format!("cannot read {}", input.name))?;
            let position = open.reader.position();
            self.watch.add_bytes(position.saturating_sub(open.position));
            open.position = position.max(open.position);
            let (file, ordinal) = (open.number, open.ordinal);
            open.ordinal += 1;
            let Some(item) = item else {
                self.open = None;
                continue;
            };
            self.counts.records += 1;
            let found = match item {
                Item::Page(page) => match answer(&mut self.fingerprinter, page, file, ordinal) {
                    Ok(answer) => CrawlRecord::Answer(Box::new(answer)),
                    Err(reject) => CrawlRecord::Bad(bad(reject, file, ordinal)),
                },
                Item::Reject(reject) => CrawlRecord::Bad(bad(reject, file, ordinal)),
                Item::Failed(failure) => {
                    *self.counts.skipped.entry(failure_kind(input.format).into()).or_default() += 1;
                    self.watch.add_record(false, false);
                    // In a store's first week no URL is known yet.
                    let known = self.plan.earlier.last().is_some();
                    let failed = known.then(|| failed(failure, file, ordinal)).flatten();
                    return Ok(failed.map_or(ReadStep::Passed, |failed| ReadStep::Give(CrawlRecord::Failed(failed))));
                }
                Item::Skip(skip) => {
                    *self.counts.skipped.entry(skip_kind(skip).into()).or_default() += 1;
                    self.watch.add_record(false, false);
                    return Ok(ReadStep::Passed);
                }
            };
            self.watch.add_record(matches!(found, CrawlRecord::Answer(_)), matches!(found, CrawlRecord::Bad(_)));
            if let CrawlRecord::Bad(bad) = &found {
                *self.counts.rejects.entry(bad.reason.clone()).or_default() += 1;
                open.rejects += 1;
                if open.rejects > LISTED {
                    // A file of nothing but bad records would be a table of its own.
                    *self.counts.unlisted.entry(input.name.clone()).or_default() += 1;
                    return Ok(ReadStep::Passed);
                }
            }
            return Ok(ReadStep::Give(found));
        }
    }
}

/// A bad record, as it is listed.
fn bad(reject: Reject, file: u32, ordinal: u64) -> BadRecord {
    let url = reject.url.map(|mut url| {
        url.truncate(url.floor_char_boundary(BAD_URL_BYTES));
        url
    });
    BadRecord { file, ordinal, offset: reject.offset, url, reason: reject.reason }
}

/// The name under which a skipped record is counted.
fn skip_kind(skip: Skip) -> &'static str {
    match skip {
        Skip::RecordType => "other record type",
        Skip::MediaType => "other media type",
    }
}

/// The name under which a failed download is counted.
fn failure_kind(format: Format) -> &'static str {
    match format {
        Format::Failed => "failed download",
        _ => "status other than 200",
    }
}

/// A failed download, by its URL; none where that is no canonical one, for then no week knows it.
fn failed(failure: Failure, file: u32, ordinal: u64) -> Option<FailedDownload> {
    let url = urls::canonical(&failure.url)?;
    Some(FailedDownload { hash: UrlHash::of(url.as_str()), file, ordinal, reason: failure.reason })
}

/// Takes a page apart.
fn answer(fingerprinter: &mut Fingerprinter, page: Page, file: u32, ordinal: u64) -> Result<Capture, Reject> {
    let Some(url) = urls::canonical(&page.url) else {
        let reason = "url: not an http or https address".into();
        return Err(Reject { offset: page.offset, url: Some(page.url), reason });
    };
    let label = page.charset.as_deref();
    let (bytes, facts) = match &page.body {
        Body::Html(body) => (body.as_slice(), fingerprinter.html(body, label, &url)),
        Body::Plain(body) => (body.as_slice(), fingerprinter.plain(body, label)),
        Body::Text(text) => (text.as_bytes(), fingerprinter.text(text)),
    };
    Ok(Capture {
        hash: UrlHash::of(url.as_str()),
        file,
        ordinal,
        host: url.host().to_owned(),
        url: url.as_str().to_owned(),
        ip: page.ip.map(|ip| ip.to_string()),
        fetched: page.fetched,
        status: page.status,
        media_type: page.media_type,
        bytes: bytes.len() as u64,
        checksum: checksum(bytes),
        words: facts.words,
        title: facts.title,
        offset: page.offset,
        cut: page.cut,
        sketch: facts.sketch,
        links: facts.links,
    })
}
