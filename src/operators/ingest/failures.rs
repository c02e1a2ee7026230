//! Writes the failed downloads of a wave, with their reasons: by document, the URLs that have an id from an earlier week;
//! and by URL, all of them.
//!
//! Like captures, they go to the owner of the URL's shard. Of several failures of one URL in a wave, the first by (file,
//! ordinal) is kept, even if the URL has a document this week: `missing` and `failed_urls` (in `jobs`) skip URLs with
//! a document. The first redirect is kept, too. These tables are not part of a segment; a wave is committed when
//! every worker has written both.
//!
//! Cost: the failures are sorted twice, by hash and by document, within the worker's memory. In every shard with failures,
//! a wave also reads the URL hashes of earlier weeks once more.

use std::collections::BTreeMap;
use std::sync::Arc;

use anyhow::{Context as _, Result};
use arrow_array::{Array, FixedSizeBinaryArray, Int32Array, Int64Array, StringArray};
use nigh_exchange::{BlockStream, RowDealer, emit, rows_of, unary_frontier};
use serde::{Deserialize, Serialize};
use xxhash_rust::xxh3::xxh3_64;

use super::notes::WaveNote;
use crate::plan::Plan;
use crate::records::{DocId, KeyHash};
use crate::state::{BundleName, BundleWriter, Segment, Unfinished, UrlIndex, sync_folder};
use crate::structures::{ExternalSort, Sortable, Sorted};
use crate::tables::{FailedUrlRow, FailureRow, RevisitRow, RowRange, Scan, Table, field, maybe_text};
use crate::watch::Watch;

/// A download that failed.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct FailedDownload {
    /// The hash of the canonical URL; the owner of its shard receives the failure.
    pub hash: KeyHash,
    /// The input's number in the plan.
    pub file: u32,
    /// The record's number in the input. Of several failures of a URL, the first by (file, ordinal) counts.
    pub ordinal: u64,
    /// The host of the URL.
    pub host: String,
    /// The reason, as the crawler recorded it.
    pub reason: String,
    /// Where the answer redirects, if it does.
    pub redirect: Option<Redirect>,
    /// Which page it is, if it is a revisit.
    pub revisit: Option<RevisitOf>,
}

/// The reason of a revisit whose page is not found.
pub const REVISIT: &str = "revisit of a page that is not known";

/// A download whose page is what another one was.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RevisitOf {
    /// The hash of the canonical URL of the other one.
    pub target: KeyHash,
    /// When that was fetched: microseconds since 1970, UTC.
    pub date: Option<i64>,
    /// The digest of the payload of both.
    pub digest: Option<String>,
    /// The canonical URL of the download.
    pub url: String,
    /// The URL as written, if that is not the canonical one.
    pub given_url: Option<String>,
    /// The address of the server.
    pub ip: Option<String>,
    /// When it was fetched.
    pub fetched: Option<i64>,
}

/// A revisit in a finished wave.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Revisited {
    /// The document, if an earlier week has the URL.
    pub doc: Option<DocId>,
    /// The hash of the URL.
    pub hash: KeyHash,
    /// The hash of the URL of the page that it is.
    pub target: KeyHash,
    /// What tells which page of that URL.
    pub same: SamePage,
    /// The canonical URL.
    pub url: String,
    /// The URL as written, if that is not the canonical one.
    pub given_url: Option<String>,
    /// The address of the server.
    pub ip: Option<String>,
    /// When it was fetched: microseconds since 1970, UTC.
    pub fetched: Option<i64>,
}

/// What a revisit says of the page that it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct SamePage {
    /// The [hash](SamePage::hash) of the digest of the payload, if the record has one.
    pub digest: Option<u64>,
    /// When the page was fetched, in microseconds since 1970, if the record says it.
    pub date: Option<i64>,
}

impl SamePage {
    /// The hash of a digest as written: without case, for some write the same digits in another one.
    pub fn hash(digest: &str) -> u64 {
        xxh3_64(digest.to_ascii_lowercase().as_bytes())
    }

    /// Whether a page with this hash of its digest, fetched at this time, is the one: by the digest, else by the time, and by the URL alone if the
    /// record or the page has neither.
    pub fn is_of(&self, digest: Option<u64>, fetched: Option<i64>) -> bool {
        match (self.digest.zip(digest), self.date.zip(fetched)) {
            (Some((wanted, found)), _) => wanted == found,
            // Some records have whole seconds.
            (None, Some((wanted, found))) => wanted.div_euclid(1_000_000) == found.div_euclid(1_000_000),
            (None, None) => true,
        }
    }
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
        size_of::<FailedDownload>() + self.host.len() + self.reason.len() + redirect
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
    reason: String,
}

impl Sortable for FailedDoc {
    type Key = (DocId, u64);

    fn key(&self) -> Self::Key {
        (self.doc, self.wave)
    }

    fn weight(&self) -> usize {
        size_of::<FailedDoc>() + self.reason.len()
    }
}

/// Writes the failures of every wave from `first_wave` on. Each worker emits one record for every wave, once its failures are
/// durable.
pub fn failures<'scope>(
    failed: BlockStream<'scope>,
    plan: &Arc<Plan>,
    first_wave: usize,
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
    let (waves_of_plan, watch) = (plan.waves.len(), watch.clone());
    let mut notes = RowDealer::new(index, 1, &watch);
    unary_frontier(failed, "Failures", |capability, _| {
        let mut waves: BTreeMap<u64, ExternalSort<FailedDownload>> = BTreeMap::new();
        // As in `segments`: every worker reports every wave, and keeps its capability after a failure.
        let mut capability = Some(capability);
        let mut wave = first_wave as u64;
        move |input, frontier, output| {
            input.for_each_time(|time, blocks| {
                let wave = *time.time();
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
                if wave as usize == waves_of_plan {
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
    /// The memory of one external sort, in bytes. Three exist at a time: two waves are in progress, and one of them is
    /// written, which needs a second sort.
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

    /// Writes the failures of the shard of `first`: `sorted` has the other failures of the shard next. Returns the first
    /// failure of another shard.
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
        while let Some(failed) = next.take_if(|failed| failed.hash.shard(self.shards) == shard) {
            let hash = failed.hash;
            let doc = urls.find(hash)?;
            if let Some(doc) = doc {
                by_doc.push(FailedDoc { doc, wave, reason: failed.reason.clone() })?;
            }
            if let Some(RevisitOf { target, date, digest, url, given_url, ip, fetched }) = failed.revisit.clone() {
                let (doc, hash, target) = (doc.map(DocId::to_table), hash.to_bytes(), target.to_bytes());
                bundles.revisits.push(RevisitRow { doc, hash, target, date, digest, url, given_url, ip, fetched })?;
            }
            let mut has_redirect = failed.redirect.is_some();
            bundles.by_url.push(failed.row())?;
            next = sorted.record()?;
            while let Some(again) = next.take_if(|failed| failed.hash == hash) {
                if again.redirect.is_some() && !has_redirect {
                    has_redirect = true;
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
    /// Reads the failures of a shard in the first `waves` waves, and sorts them within `memory` bytes.
    ///
    /// # Errors
    /// If a file cannot be read: names it.
    pub fn read(unfinished: &Unfinished, shard: u32, waves: usize, memory: u64) -> Result<FailureReasons> {
        let mut failures = ExternalSort::new(&unfinished.spill().join(format!("failed-shard{shard}")), memory);
        for (wave, rows) in pieces::<FailureRow>(unfinished, shard, waves)? {
            Scan::open(rows, &["doc", "reason"])?.for_each(|batch| {
                let (docs, reasons): (&Int64Array, &StringArray) = (field(batch, "doc")?, field(batch, "reason")?);
                (0..batch.num_rows()).try_for_each(|row| {
                    let (doc, reason) = (DocId::from_table(docs.value(row)), reasons.value(row).to_owned());
                    failures.push(FailedDoc { doc, wave: wave as u64, reason })
                })
            })?;
        }
        let mut failures = failures.sorted()?;
        Ok(FailureReasons { next: failures.record()?, failures })
    }

    /// The reason why a document could not be downloaded, from the first wave that has one; `None` if no wave has. Call it with
    /// ascending documents, once for each.
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

/// The documents of earlier weeks that a server said are gone, status 404 or 410, in the first `waves` waves.
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

/// The revisits of the first `waves` waves in a shard, in the order of the hashes of their URLs: the first one of each URL.
///
/// # Errors
/// If a file cannot be read: names it.
pub fn revisits(unfinished: &Unfinished, shard: u32, waves: usize) -> Result<Vec<Revisited>> {
    let mut first: BTreeMap<KeyHash, Revisited> = BTreeMap::new();
    for (_, rows) in pieces::<RevisitRow>(unfinished, shard, waves)? {
        let columns = ["doc", "hash", "target", "date", "digest", "url", "given_url", "ip", "fetched"];
        Scan::open(rows, &columns)?.for_each(|batch| {
            let hash_of = |name: &str, row: usize| -> Result<KeyHash> {
                let bytes: &FixedSizeBinaryArray = field(batch, name)?;
                Ok(KeyHash::from_bytes(bytes.value(row).try_into().context("a hash has 16 bytes")?))
            };
            let long = |name: &str, row: usize| -> Result<Option<i64>> {
                let longs: &Int64Array = field(batch, name)?;
                Ok(longs.is_valid(row).then(|| longs.value(row)))
            };
            let text = |name: &str, row: usize| Ok::<_, anyhow::Error>(maybe_text(field(batch, name)?, row));
            for row in 0..batch.num_rows() {
                let hash = hash_of("hash", row)?;
                let digest = text("digest", row)?.map(|digest| SamePage::hash(&digest));
                first.entry(hash).or_insert(Revisited {
                    doc: long("doc", row)?.map(DocId::from_table),
                    hash,
                    target: hash_of("target", row)?,
                    same: SamePage { digest, date: long("date", row)? },
                    url: text("url", row)?.unwrap_or_default(),
                    given_url: text("given_url", row)?,
                    ip: text("ip", row)?,
                    fetched: long("fetched", row)?,
                });
            }
            Ok(())
        })?;
    }
    Ok(first.into_values().collect())
}

/// Whether a failure says that the page is no more.
pub fn is_gone(reason: &str) -> bool {
    matches!(reason, "status 404" | "status 410")
}

/// The name of the piece with a shard's failures in a wave.
fn piece(shard: u32, wave: usize) -> String {
    format!("shard{shard:05}-failed-wave{wave:05}.parquet")
}

/// A shard's failures in the first `waves` waves: those waves that have some, in order.
fn pieces<T: Table>(unfinished: &Unfinished, shard: u32, waves: usize) -> Result<Vec<(usize, RowRange)>> {
    let of_shard = unfinished.find_all::<T>(&format!("shard{shard:05}-failed-wave"))?;
    let with_wave = of_shard.into_iter().filter_map(|(name, rows)| Some((Segment::wave_of(&name)?, rows)));
    Ok(with_wave.filter(|(wave, _)| *wave < waves).collect())
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
    /// Reads the failures of a shard in the first `waves` waves, and sorts them within `memory` bytes.
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
                    failures.push(FailedUrlOfWave { place, failed: FailedUrl { hash, host, reason, redirect } })?;
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
