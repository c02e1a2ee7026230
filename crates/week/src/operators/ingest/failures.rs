//! Writes the failed downloads of a wave, with their reasons: by document, the URLs that have an id
//! from an earlier week; and by URL, all of them.
//!
//! Like captures, they go to the owner of the URL's shard. Of several failures of one URL in a
//! wave, the first by (file, ordinal) is kept, even if the URL has a document this week: `missing`
//! and `failed_urls` (in `jobs`) skip URLs with a document. The first redirect is kept, too, and
//! all revisits: see `revisits`. These tables are not part of a segment; a wave is committed when
//! every worker has written both.
//!
//! Cost: the failures are sorted twice, by hash and by document, within the worker's memory. In
//! every shard with failures, a wave also reads the URL hashes of earlier weeks once more.

use std::collections::BTreeMap;
use std::sync::Arc;

use anyhow::Result;
use arrow_array::{Array, FixedSizeBinaryArray, Int32Array, Int64Array, StringArray};
use nigh_exchange::{BlockStream, RowDealer, emit, rows_of, time_of, unary_frontier};
use serde::{Deserialize, Serialize};

use super::failed_pieces::{piece, pieces};
use super::notes::WaveNote;
use super::revisits::{NOT_KNOWN, RevisitOf};
use super::unread::UnreadPieces;
use crate::plan::Plan;
use crate::records::{DocId, KeyHash};
use crate::state::{BundleName, BundleWriter, Unfinished, UrlIndex, sync_folder};
use crate::structures::{ExternalSort, Sortable, Sorted};
use crate::tables::{FailedUrlRow, FailureRow, RevisitRow, RowRange, Scan, field};
use crate::watch::Watch;

/// A download that failed.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct FailedDownload {
    /// The hash of the canonical URL; the owner of its shard receives the failure.
    pub hash: KeyHash,
    /// The input's number in the plan.
    pub file: u32,
    /// The record's number in the input. Of several failures of a URL, the first by (file, ordinal)
    /// counts.
    pub ordinal: u64,
    /// The host of the URL.
    pub host: String,
    /// The reason, as the crawler recorded it.
    pub reason: String,
    /// Where the answer redirects, if it does.
    pub redirect: Option<Redirect>,
    /// Which page it is, if it is a revisit.
    pub revisit: Option<Box<RevisitOf>>,
}

/// An answer that names another URL.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Redirect {
    /// The canonical URL.
    pub url: String,
    /// The canonical URL of the target.
    pub target_url: String,
    /// The HTTP status.
    pub status: u16,
}

impl Sortable for FailedDownload {
    type Key = (KeyHash, u32, u64);

    fn key(&self) -> Self::Key {
        (self.hash, self.file, self.ordinal)
    }

    fn weight(&self) -> usize {
        let redirect = self.redirect.as_ref().map_or(0, |redirect| redirect.url.len() + redirect.target_url.len());
        let revisit = self.revisit.as_ref().map_or(0, |revisit| revisit.weight());
        size_of::<FailedDownload>() + self.host.len() + self.reason.len() + redirect + revisit
    }
}

impl FailedDownload {
    fn row(self) -> FailedUrlRow {
        let FailedDownload { hash, host, reason, redirect, .. } = self;
        let (hash, status) = (hash.to_bytes(), redirect.as_ref().map_or(0, |redirect| redirect.status.into()));
        let (url, target_url) = redirect.map(|redirect| (redirect.url, redirect.target_url)).unzip();
        FailedUrlRow { hash, host, reason, url, target_url, status }
    }
}

/// A failed download of a URL that has a document id, in one of the week's waves.
#[derive(Serialize, Deserialize)]
struct FailedDoc {
    doc: DocId,
    wave: u64,
    /// Where it stands among those of the wave: the first counts.
    place: u64,
    reason: String,
}

impl Sortable for FailedDoc {
    type Key = (DocId, u64, u64);

    fn key(&self) -> Self::Key {
        (self.doc, self.wave, self.place)
    }

    fn weight(&self) -> usize {
        size_of::<FailedDoc>() + self.reason.len()
    }
}

/// Writes the failures of every wave from `first_wave` to the end of `unread`. Each worker emits
/// one record for every wave, once its failures are durable.
pub fn failures<'scope>(
    failed: BlockStream<'scope>,
    plan: &Arc<Plan>,
    (first_wave, unread): (usize, &Arc<UnreadPieces>),
    watch: &Arc<Watch>,
) -> BlockStream<'scope> {
    let (shards, index) = (plan.method.shards, failed.scope().index());
    let store = plan.open_store();
    let url_files = watch.check(store.url_indexes(&plan.earlier)).unwrap_or_default();
    let owner = FailureOwner {
        shards,
        worker: index,
        unfinished: store.unfinished(plan.week),
        url_files,
        budget: plan.worker_memory / 32,
    };
    let (unread, watch) = (unread.clone(), watch.clone());
    let mut notes = RowDealer::new(index, 1, &watch);
    unary_frontier(failed, "Failures", |capability, _| {
        let mut waves: BTreeMap<u64, ExternalSort<FailedDownload>> = BTreeMap::new();
        // As in `segments`: every worker reports every wave, and keeps its capability after a
        // failure.
        let mut capability = Some(capability);
        let mut wave = first_wave as u64;
        move |input, frontier, output| {
            input.for_each_stamp(|capability, blocks| {
                let wave = time_of(&capability);
                let sort =
                    waves.entry(wave).or_insert_with(|| owner.external_sort(&format!("worker{index}-wave{wave}")));
                for block in blocks {
                    let push = |failed: Result<FailedDownload>| sort.push(failed?);
                    if watch.failed() || watch.check(rows_of(block).try_for_each(push)).is_none() {
                        return;
                    }
                }
            });
            while let Some(at_wave) = &mut capability
                && !watch.failed()
            {
                if wave as usize == unread.end() {
                    capability = None;
                } else if frontier.less_equal(&wave) {
                    break;
                } else {
                    at_wave.downgrade(&wave);
                    if let Some(sort) = waves.remove(&wave)
                        && watch.check(owner.write(sort, wave)).is_none()
                    {
                        return;
                    }
                    notes.deal(0, &WaveNote::Failures);
                    emit(notes.finish(), output, &*at_wave);
                    wave += 1;
                }
            }
        }
    })
}

/// Writes the failures of the shards that a worker owns.
struct FailureOwner {
    shards: u32,
    /// The number of the worker.
    worker: usize,
    unfinished: Unfinished,
    /// The url files of earlier weeks, by shard.
    url_files: BTreeMap<u32, Vec<RowRange>>,
    /// The memory of one external sort, in bytes. Three exist at a time: two waves are in progress,
    /// and one of them is written, which needs a second sort.
    budget: u64,
}

impl FailureOwner {
    fn external_sort<T: Sortable>(&self, name: &str) -> ExternalSort<T> {
        ExternalSort::new(&self.unfinished.spill().join(format!("failed-{name}")), self.budget)
    }

    /// Writes the failures of a wave, shard by shard.
    fn write(&self, sort: ExternalSort<FailedDownload>, wave: u64) -> Result<()> {
        let mut sorted = sort.sorted()?;
        let mut next = sorted.record()?;
        if next.is_none() {
            return Ok(());
        }
        let name = BundleName::Wave(wave as usize, self.worker);
        let mut bundles = FailureBundles {
            by_url: self.unfinished.bundle(name),
            revisits: self.unfinished.bundle(name),
            by_doc: self.unfinished.bundle(name),
        };
        while let Some(first) = next.take() {
            next = self.write_shard(first, &mut sorted, wave, &mut bundles)?;
        }
        bundles.by_url.finish()?;
        bundles.revisits.finish()?;
        bundles.by_doc.finish()?;
        sync_folder(self.unfinished.scratch_folder())
    }

    /// Writes the failures of the shard of `first`: `sorted` has the other failures of the shard
    /// next. Returns the first failure of another shard.
    fn write_shard(
        &self,
        first: FailedDownload,
        sorted: &mut Sorted<FailedDownload>,
        wave: u64,
        bundles: &mut FailureBundles,
    ) -> Result<Option<FailedDownload>> {
        let shard = first.hash.shard(self.shards);
        let earlier = self.url_files.get(&shard).map_or(&[][..], |files| files);
        let mut urls = UrlIndex { unfinished: &self.unfinished, shard, segments: &[], earlier }.lookup(0)?;
        let mut by_doc = self.external_sort(&format!("shard{shard}-wave{wave}"));
        let mut next = Some(first);
        while let Some(mut failed) = next.take_if(|failed| failed.hash.shard(self.shards) == shard) {
            let hash = failed.hash;
            let doc = urls.find(hash)?;
            if let Some(doc) = doc {
                by_doc.push(FailedDoc { doc, wave, place: 0, reason: failed.reason.clone() })?;
            }
            let mut is_known_as_gone = is_gone(&failed.reason);
            let mut push_revisit = |failed: &mut FailedDownload| match failed.revisit.take() {
                Some(revisit) => bundles.revisits.push(revisit.row(doc, hash, failed.file)),
                None => Ok(()),
            };
            push_revisit(&mut failed)?;
            let (mut has_redirect, mut is_answered) = (failed.redirect.is_some(), is_answer(&failed.reason));
            bundles.by_url.push(failed.row())?;
            next = sorted.record()?;
            while let Some(mut again) = next.take_if(|failed| failed.hash == hash) {
                push_revisit(&mut again)?;
                if let Some(doc) = doc.filter(|_| !is_known_as_gone && is_gone(&again.reason)) {
                    is_known_as_gone = true;
                    by_doc.push(FailedDoc { doc, wave, place: 1, reason: again.reason.clone() })?;
                }
                let is_first_answer = !is_answered && is_answer(&again.reason);
                if again.redirect.is_some() && !has_redirect || is_first_answer {
                    has_redirect |= again.redirect.is_some();
                    is_answered |= is_first_answer;
                    bundles.by_url.push(again.row())?;
                }
                next = sorted.record()?;
            }
        }
        let mut by_doc = by_doc.sorted()?;
        while let Some(FailedDoc { doc, reason, .. }) = by_doc.record()? {
            bundles.by_doc.push(FailureRow { doc: doc.to_table(), reason })?;
        }
        let piece = piece(shard, wave as usize);
        bundles.by_url.end_piece(&piece)?;
        bundles.revisits.end_piece(&piece)?;
        bundles.by_doc.end_piece(&piece)?;
        Ok(next)
    }
}

/// The bundles of one wave and worker, while they are written.
struct FailureBundles {
    by_url: BundleWriter<FailedUrlRow>,
    revisits: BundleWriter<RevisitRow>,
    by_doc: BundleWriter<FailureRow>,
}

/// The reasons why documents of a shard could not be downloaded, in the order of documents.
pub struct FailureReasons {
    /// The failures of all waves, by document and wave.
    failures: Sorted<FailedDoc>,
    next: Option<FailedDoc>,
}

impl FailureReasons {
    /// Reads the failures of a shard in the first `waves` waves, and sorts them within `memory`
    /// bytes.
    ///
    /// # Errors
    /// If a file cannot be read: names it.
    pub fn read(unfinished: &Unfinished, shard: u32, waves: usize, memory: u64) -> Result<FailureReasons> {
        let mut failures = ExternalSort::new(&unfinished.spill().join(format!("failed-shard{shard}")), memory);
        for (wave, rows) in pieces::<FailureRow>(unfinished, shard, waves)? {
            let mut places = 0..;
            Scan::open(rows, &["doc", "reason"])?.for_each(|batch| {
                let (docs, reasons): (&Int64Array, &StringArray) = (field(batch, "doc")?, field(batch, "reason")?);
                (0..batch.num_rows()).zip(&mut places).try_for_each(|(row, place)| {
                    let (doc, reason) = (DocId::from_table(docs.value(row)), reasons.value(row).to_owned());
                    failures.push(FailedDoc { doc, wave: wave as u64, place, reason })
                })
            })?;
        }
        let mut failures = failures.sorted()?;
        Ok(FailureReasons { next: failures.record()?, failures })
    }

    /// The reason why a document could not be downloaded, from the first wave that has one; `None`
    /// if no wave has. Call it with ascending documents, once for each.
    ///
    /// # Errors
    /// If a run of the external sort cannot be read: names its file.
    pub fn of(&mut self, doc: DocId) -> Result<Option<String>> {
        while self.next.as_ref().is_some_and(|failed| failed.doc < doc) {
            self.next = self.failures.record()?;
        }
        match self.next.take_if(|failed| failed.doc == doc) {
            Some(failed) => {
                self.next = self.failures.record()?;
                Ok(Some(failed.reason))
            }
            None => Ok(None),
        }
    }
}

/// The documents of earlier weeks that a server said are gone, status 404 or 410, in the first
/// `waves` waves.
///
/// # Errors
/// If a file cannot be read: names it.
pub fn gone_documents(unfinished: &Unfinished, shard: u32, waves: usize) -> Result<Vec<DocId>> {
    let mut gone = Vec::new();
    for (_, rows) in pieces::<FailureRow>(unfinished, shard, waves)? {
        Scan::open(rows, &["doc", "reason"])?.for_each(|batch| {
            let (docs, reasons): (&Int64Array, &StringArray) = (field(batch, "doc")?, field(batch, "reason")?);
            let rows = docs.values().iter().zip(reasons.iter().flatten()).filter(|(_, reason)| is_gone(reason));
            gone.extend(rows.map(|(doc, _)| DocId::from_table(*doc)));
            Ok(())
        })?;
    }
    Ok(gone)
}

/// Whether a failure is an answer of the server: not a timeout, a name without an address, or a
/// robots.txt that forbids the page.
fn is_answer(reason: &str) -> bool {
    reason.starts_with("status ") || reason == NOT_KNOWN
}

/// Whether a failure says that the page is no more.
pub fn is_gone(reason: &str) -> bool {
    matches!(reason, "status 404" | "status 410")
}

/// A URL whose download failed, in one of the week's waves.
#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
struct FailedUrlOfWave {
    /// The number of the wave and of the row in its file: the order of the failures of one URL.
    place: (u64, u64),
    failed: FailedUrl,
}

/// A URL whose download failed: all failures of the week in one.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FailedUrl {
    /// The hash of the canonical URL.
    pub hash: KeyHash,
    /// Its host.
    pub host: String,
    /// The reason of the first failure.
    pub reason: String,
    /// The first redirect.
    pub redirect: Option<Redirect>,
    /// Whether the server answered, at least once.
    pub is_answered: bool,
}

impl Sortable for FailedUrlOfWave {
    type Key = (KeyHash, (u64, u64));

    fn key(&self) -> Self::Key {
        (self.failed.hash, self.place)
    }

    fn weight(&self) -> usize {
        let FailedUrl { host, reason, redirect, .. } = &self.failed;
        let redirect = redirect.as_ref().map_or(0, |redirect| redirect.url.len() + redirect.target_url.len());
        size_of::<FailedUrlOfWave>() + host.len() + reason.len() + redirect
    }
}

/// The URLs of a shard whose download failed, in the order of their hashes, each once.
pub struct FailedUrls {
    failures: Sorted<FailedUrlOfWave>,
    next: Option<FailedUrlOfWave>,
}

impl FailedUrls {
    /// Reads the failures of a shard in the first `waves` waves, and sorts them within `memory`
    /// bytes.
    ///
    /// # Errors
    /// If a file cannot be read: names it.
    pub fn read(unfinished: &Unfinished, shard: u32, waves: usize, memory: u64) -> Result<FailedUrls> {
        let mut failures = ExternalSort::new(&unfinished.spill().join(format!("failed-urls-shard{shard}")), memory);
        for (wave, rows) in pieces::<FailedUrlRow>(unfinished, shard, waves)? {
            let mut place = (wave as u64, 0);
            Scan::open(rows, &["hash", "host", "reason", "url", "target_url", "status"])?.for_each(|batch| {
                let hashes: &FixedSizeBinaryArray = field(batch, "hash")?;
                let text = |name| field::<StringArray>(batch, name);
                let (hosts, reasons, urls, targets) =
                    (text("host")?, text("reason")?, text("url")?, text("target_url")?);
                let statuses: &Int32Array = field(batch, "status")?;
                for row in 0..batch.num_rows() {
                    let redirect = urls.is_valid(row).then(|| Redirect {
                        url: urls.value(row).to_owned(),
                        target_url: targets.value(row).to_owned(),
                        status: statuses.value(row) as u16,
                    });
                    let hash = KeyHash::from_bytes(hashes.value(row).try_into().unwrap_or_default());
                    let (host, reason) = (hosts.value(row).to_owned(), reasons.value(row).to_owned());
                    let is_answered = is_answer(&reason);
                    let failed = FailedUrl { hash, host, reason, redirect, is_answered };
                    failures.push(FailedUrlOfWave { place, failed })?;
                    place.1 += 1;
                }
                Ok(())
            })?;
        }
        let mut failures = failures.sorted()?;
        Ok(FailedUrls { next: failures.record()?, failures })
    }

    /// The next URL; `None` at the end.
    ///
    /// # Errors
    /// If a run of the external sort cannot be read: names its file.
    pub fn next_url(&mut self) -> Result<Option<FailedUrl>> {
        let Some(FailedUrlOfWave { mut failed, .. }) = self.next.take() else { return Ok(None) };
        self.next = self.failures.record()?;
        while let Some(again) = self.next.take_if(|next| next.failed.hash == failed.hash) {
            failed.redirect = failed.redirect.or(again.failed.redirect);
            failed.is_answered |= again.failed.is_answered;
            self.next = self.failures.record()?;
        }
        Ok(Some(failed))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::state::Store;

    #[test]
    fn the_first_wave_has_the_reason_with_any_memory() {
        let folder = tempfile::tempdir().unwrap();
        let unfinished = Store::at(folder.path()).unfinished("2024-01-15".parse().unwrap());
        for (wave, rows) in [(0, &[5][..]), (2, &[3, 5, 9])] {
            let mut writer = unfinished.bundle(BundleName::Wave(wave, 0));
            for row in rows {
                let doc = DocId::new(7, *row).to_table();
                writer.push(FailureRow { doc, reason: format!("wave {wave}") }).unwrap();
            }
            writer.end_piece(&piece(7, wave)).unwrap();
            writer.finish().unwrap();
        }
        for memory in [0, 1 << 20] {
            let mut reasons = FailureReasons::read(&unfinished, 7, 3, memory).unwrap();
            let found = [2, 3, 5, 6, 9, 10].map(|row| reasons.of(DocId::new(7, row)).unwrap().unwrap_or_default());
            assert_eq!(found, ["", "wave 2", "wave 0", "", "wave 2", ""]);
        }
    }
}
