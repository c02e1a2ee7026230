//! The tables `redirects` and `host-failures`: what is kept of downloads without a page, also of
//! URLs that no week has a page of.
//!
//! ```text
//! for each URL of the week whose download failed, in the order of the hashes
//!     if an answer was a redirect:           write it to `redirects`
//!     if the URL has no page this week:      count it, with the reason of its first failure, for its host
//! counts of a host ─▶ the owner of the host's shard ─▶ `host-failures`
//! ```
//!
//! In a partial week, in which pages stay that the crawl does not have, redirects stay, too: those
//! of the week before whose URLs have neither a page nor another answer now. A timeout, or a
//! `robots.txt` that forbids the page, is no answer. They come between the others, by their hashes.
//!
//! A deletion copies both tables. It removes redirects from and to deleted URLs, and the rows of
//! deleted hosts. Limit: `host-failures` has no URLs, so the counts of other hosts still include
//! deleted URLs.
//!
//! Cost: the failures are sorted once more, in an eighth of the worker's memory. The counts are in
//! memory: one for each host and reason.

use std::cmp::Ordering;
use std::collections::{BTreeMap, VecDeque};

use anyhow::Result;
use arrow_array::{BooleanArray, Int32Array, StringArray};
use nigh_exchange::{Context, send_rows};

use super::resharding::failed_urls_again;
use super::week::IngestedWeek;
use crate::config::Absent;
use crate::operators::ingest::{FailedUrls, NOT_KNOWN};
use crate::plan::Deletion;
use crate::records::{DocId, KeyHash};
use crate::state::{BundleWriter, UrlIndex, shard_file};
use crate::structures::DocMap;
use crate::tables::{HostFailureRow, RedirectRow, RowRange, Scan, Table, copy_rows, field};

/// The number of failed URLs by the shard of the host, the host and the reason.
type HostCounts = BTreeMap<(u32, String, String), u64>;

/// Writes `redirects` and `host-failures` for own shards. `roots` has a root for every own document
/// of this week.
pub(crate) fn failed_urls(cx: &mut Context, week: &IngestedWeek<'_>, roots: &DocMap) -> Result<()> {
    if let Some(deletion) = &week.plan.deletion {
        return without_deleted(week, deletion);
    }
    if let Some(resharding) = &week.plan.resharding {
        return failed_urls_again(week, resharding);
    }
    let shards = week.plan.method.shards;
    let url_files = week.plan.open_store().url_indexes(&week.plan.earlier)?;
    let segments = week.journal.by_shard();
    let waves = week.journal.waves;
    let before = if week.plan.absent == Absent::Keep { week.week_before()? } else { None };
    let mut counts = HostCounts::new();
    let mut redirects: BundleWriter<RedirectRow> = week.bundle();
    for shard in week.owned.shards() {
        let mut failed = FailedUrls::read(week.unfinished, shard, waves, week.plan.worker_memory / 8)?;
        let segments = segments.get(&shard).map_or(&[][..], |segments| segments);
        let earlier = url_files.get(&shard).map_or(&[][..], |files| files);
        // The URLs of revisits come after the waves.
        let mut urls = UrlIndex { unfinished: week.unfinished, shard, segments, earlier }.lookup(waves + 1)?;
        let has_page = |doc: DocId| roots.of(doc) != DocId::NONE;
        let rows = before.as_ref().and_then(|before| before.tables.of_shard(RedirectRow::NAME, shard));
        let mut earlier_redirects = EarlierRedirects::open(rows)?;
        loop {
            let failed = failed.next_url()?;
            let end = failed.as_ref().map(|failed| (failed.hash, failed.is_answered));
            while let Some((hash, redirect)) = earlier_redirects.before(end)? {
                if !urls.find(hash)?.is_some_and(has_page) {
                    redirects.push(redirect)?;
                }
            }
            let Some(url) = failed else { break };
            if let Some(redirect) = url.redirect {
                let (url, target_url) = (redirect.url, redirect.target_url);
                redirects.push(RedirectRow { url, target_url, status: redirect.status.into() })?;
            }
            let doc = urls.find(url.hash)?;
            // A revisit that may be of no page has no document.
            let is_missing = doc.map_or(url.reason != NOT_KNOWN, |doc| !has_page(doc));
            if is_missing {
                let of_host = KeyHash::of(&url.host).shard(shards);
                *counts.entry((of_host, url.host, url.reason)).or_default() += 1;
            }
        }
        redirects.end_piece(&shard_file(shard))?;
    }
    redirects.finish()?;
    let mut writer: BundleWriter<HostFailureRow> = week.bundle();
    let mut of_shard = 0;
    for ((shard, host, reason), urls) in of_own_hosts(cx, counts)? {
        if shard != of_shard {
            writer.end_piece(&shard_file(of_shard))?;
            of_shard = shard;
        }
        writer.push(HostFailureRow { host, reason, urls: urls as i64 })?;
    }
    writer.end_piece(&shard_file(of_shard))?;
    writer.finish()
}

/// The redirects of a shard in the week before, in the order of the hashes of their URLs.
#[derive(Default)]
struct EarlierRedirects {
    scan: Option<Scan>,
    next: VecDeque<(KeyHash, RedirectRow)>,
}

impl EarlierRedirects {
    /// Opens the rows; a week of an older version has none.
    fn open(rows: Option<RowRange>) -> Result<EarlierRedirects> {
        let scan = rows.map(|rows| Scan::open(rows, &["url", "target_url", "status"])).transpose()?;
        Ok(EarlierRedirects { scan, next: VecDeque::new() })
    }

    /// The next one whose hash is at most that of `end`, or any if there is no end. One with this
    /// hash is passed over if its URL has an answer now.
    ///
    /// # Errors
    /// If the table cannot be read: names its file.
    fn before(&mut self, end: Option<(KeyHash, bool)>) -> Result<Option<(KeyHash, RedirectRow)>> {
        loop {
            while let Some((hash, row)) = self.next.pop_front() {
                match end.map(|(end, is_answered)| (hash.cmp(&end), is_answered)) {
                    None | Some((Ordering::Less, _) | (Ordering::Equal, false)) => return Ok(Some((hash, row))),
                    Some((Ordering::Equal, true)) => {}
                    Some((Ordering::Greater, _)) => {
                        self.next.push_front((hash, row));
                        return Ok(None);
                    }
                }
            }
            let Some(batch) = self.scan.as_mut().map(Scan::batch).transpose()?.flatten() else { return Ok(None) };
            let [urls, targets]: [&StringArray; 2] = [field(&batch, "url")?, field(&batch, "target_url")?];
            let statuses: &Int32Array = field(&batch, "status")?;
            self.next.extend((0..batch.num_rows()).map(|row| {
                let [url, target_url] = [urls, targets].map(|texts| texts.value(row).to_owned());
                (KeyHash::of(&url), RedirectRow { url, target_url, status: statuses.value(row) })
            }));
        }
    }
}

/// The sums of all workers' counts, at the owner of each host's shard.
fn of_own_hosts(cx: &mut Context, counts: HostCounts) -> Result<HostCounts> {
    let peers = cx.peers();
    let to_owners = counts.into_iter().map(|(of, count)| (of.0 as usize % peers, (of, count))).collect();
    let mut sums = HostCounts::new();
    for (of, count) in send_rows(cx, to_owners)? {
        *sums.entry(of).or_default() += count;
    }
    Ok(sums)
}

/// Copies both tables of own shards without what the deletion names. A week of an older version
/// lacks them.
fn without_deleted(week: &IngestedWeek<'_>, deletion: &Deletion) -> Result<()> {
    let base = week.plan.open_store().tables(&deletion.of)?;
    let patterns = &deletion.patterns;
    let (mut redirects, mut host_failures) = (week.bundle::<RedirectRow>(), week.bundle::<HostFailureRow>());
    for shard in week.owned.shards() {
        if let Some(from) = base.of_shard(RedirectRow::NAME, shard) {
            copy_rows(from, redirects.writer()?, &["url", "target_url"], |batch| {
                let (urls, targets): (&StringArray, &StringArray) = (field(batch, "url")?, field(batch, "target_url")?);
                let keep = |row| !patterns.matches(urls.value(row)) && !patterns.matches(targets.value(row));
                Ok((0..batch.num_rows()).map(|row| Some(keep(row))).collect::<BooleanArray>())
            })?;
            redirects.end_piece(&shard_file(shard))?;
        }
        if let Some(from) = base.of_shard(HostFailureRow::NAME, shard) {
            copy_rows(from, host_failures.writer()?, &["host"], |batch| {
                let hosts: &StringArray = field(batch, "host")?;
                Ok(hosts.iter().map(|host| host.map(|host| !patterns.has_host(host))).collect::<BooleanArray>())
            })?;
            host_failures.end_piece(&shard_file(shard))?;
        }
    }
    redirects.finish()?;
    host_failures.finish()
}
