//! A week again, as if some pages had not been in its crawl.
//!
//! ```text
//! urls of all weeks ─▶ deleted       which ids are meant (`matching`, before the workers start)
//! week as it is     ─▶ segments      its tables without these pages, and without links to their URLs
//! roots, tables                      as of any later week (`cluster.rs`), from the week as it is and what is gone
//! ```
//!
//! The new week takes the old one's place by one rename ([`Store::commit`]); after that the URLs' rows are dropped from
//! the `urls` of all weeks. A URL that a later crawl brings again is a new one.
//!
//! Cost: one pass over all URLs; over `doc` of the week's tables, and over all of the files that hold
//! anything to leave out. Other files are not copied: the week has them from the one that it replaces.
//! Limitation: tables of earlier weeks keep their pages until they are removed ([`Store::vacuum`]).

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use anyhow::Result;
use arrow_array::{BooleanArray, Int64Array, RecordBatch, StringArray};
use timely::worker::Worker;

use crate::operators::exchange::all_gather;
use crate::operators::scan::own_segments;
use crate::plan::{Deletion, Plan};
use crate::records::{DocId, UrlHash, Week};
use crate::state::{Earlier, Journal, Segment, Store, Unfinished, sync_folder};
use crate::structures::Ownership;
use crate::tables::{
    DeletedRow, DocumentRow, FeatureRow, LinkRow, MissingRow, RejectRow, Scan, Table, UrlRow, Writer, copy_rows, field,
};
use crate::text::{UrlPatterns, canonical};
use crate::watch::{Stage, Watch};

/// The ids of all URLs of some weeks that are meant, ascending; `threads` look for them.
///
/// # Errors
/// Names the file that cannot be read.
pub fn matching_docs(
    store: &Store,
    weeks: &Earlier,
    patterns: &UrlPatterns,
    shards: u32,
    threads: usize,
) -> Result<Vec<DocId>> {
    let mut files = store.url_files(weeks)?;
    if let Some(urls) = patterns.only_urls() {
        let of_urls: BTreeSet<u32> = urls.iter().map(|url| UrlHash::of(url).shard(shards)).collect();
        files.retain(|shard, _| of_urls.contains(shard));
    }
    let files: Vec<_> = files.into_values().flatten().collect();
    let (next, found) = (AtomicUsize::new(0), Mutex::new(Vec::new()));
    let search = || -> Result<()> {
        while let Some(path) = files.get(next.fetch_add(1, Ordering::Relaxed)) {
            let mut mine = Vec::new();
            Scan::open(path, &["doc", "url"])?.for_each(|batch| {
                let (docs, urls): (&Int64Array, &StringArray) = (field(batch, "doc")?, field(batch, "url")?);
                let meant = (0..batch.num_rows()).filter(|row| patterns.matches(urls.value(*row)));
                mine.extend(meant.map(|row| DocId::from_table(docs.value(row))));
                Ok(())
            })?;
            found.lock().unwrap_or_else(|poisoned| poisoned.into_inner()).append(&mut mine);
        }
        Ok(())
    };
    std::thread::scope(|scope| {
        let threads: Vec<_> = (0..threads).map(|_| scope.spawn(search)).collect();
        threads.into_iter().try_for_each(|thread| thread.join().expect("the search does not panic"))
    })?;
    let mut found = found.into_inner().unwrap_or_else(|poisoned| poisoned.into_inner());
    found.sort_unstable();
    Ok(found)
}

/// Whether links or bad records of a committed week name a URL that is meant, be it of a page or not.
///
/// # Errors
/// Names the file that cannot be read.
pub fn is_mentioned(store: &Store, week: Week, patterns: &UrlPatterns) -> Result<bool> {
    let (folder, journal) = (store.week(week), store.whole(week)?.journal);
    let links = journal.segments.iter().filter(|segment| segment.links > 0);
    let links = links.map(|segment| (folder.join(LinkRow::NAME).join(segment.file()), "target_url"));
    let rejects = (0..journal.waves).map(|wave| (folder.join(RejectRow::NAME).join(RejectRow::file(wave)), "url"));
    for (path, column) in links.chain(rejects) {
        let mut scan = Scan::open(&path, &[column])?;
        while let Some(batch) = scan.batch()? {
            let urls: &StringArray = field(&batch, column)?;
            if urls.iter().flatten().any(|url| is_meant(patterns, url)) {
                return Ok(true);
            }
        }
    }
    Ok(false)
}

/// Whether a URL is meant that may stand there as it was found.
fn is_meant(patterns: &UrlPatterns, url: &str) -> bool {
    patterns.matches(url) || canonical(url).is_some_and(|url| patterns.matches(url.as_str()))
}

/// Writes what is deleted into the unfinished week: a run of the plan leaves it out, and the store forgets it after that.
///
/// # Errors
/// Names the file that cannot be written.
pub fn write_deleted(unfinished: &Unfinished, docs: &[DocId]) -> Result<()> {
    let mut writer: Writer<DeletedRow> = Writer::create(&unfinished.table(DeletedRow::NAME, ALL))?;
    docs.iter().try_for_each(|doc| writer.push(DeletedRow { doc: doc.to_table() }))?;
    writer.finish().map(|_| ())
}

/// Makes the segments of a week without what is deleted from it; worker 0 writes the journal.
pub(crate) fn leave_out(
    worker: &mut Worker,
    plan: &Plan,
    deletion: &Deletion,
    unfinished: &Unfinished,
    watch: &Watch,
) -> Result<()> {
    watch.enter(Stage::LeaveOut);
    let store = plan.open_store();
    let (old, folder) = (store.whole(plan.week)?.journal, store.week(plan.week));
    let owned = Ownership::new(worker.index(), worker.peers(), &plan.urls(&old));
    let week = Without { folder: &folder, unfinished, deleted: read_deleted(unfinished, &owned)?, deletion };
    let (mut segments, mut gone) = (Vec::new(), DeletedCounts::default());
    for segment in own_segments(&old, &owned) {
        let left = week.segment(segment, &mut gone)?;
        segments.extend((left.documents > 0).then_some(left));
    }
    let mut journal = Journal::new(plan.key());
    let segments = all_gather(worker, segments, watch)?;
    let gone = all_gather(worker, vec![gone], watch)?;
    if worker.index() == 0 {
        journal.counts = old.counts;
        for gone in gone {
            journal.counts.documents -= gone.documents;
            journal.counts.empty -= gone.empty;
            journal.counts.words -= gone.words;
            journal.counts.bytes -= gone.bytes;
        }
        for (reason, count) in week.rejects(old.waves)? {
            let left = journal.counts.rejects.entry(reason).or_default();
            *left = left.saturating_sub(count);
        }
        journal.counts.rejects.retain(|_, count| *count > 0);
        (journal.waves, journal.segments) = (old.waves, segments);
        sync_folder(unfinished.folder())?;
        unfinished.write_journal(&journal)?;
    }
    // The journal stands before anybody goes on.
    all_gather(worker, vec![worker.index() as u64], watch).map(|_| ())
}

/// Writes a shard's `missing` without what is deleted, and counts the reasons of its rows.
pub(crate) fn missing_without(from: &Path, to: &Path, deletion: &Deletion, mut count: impl FnMut(&str)) -> Result<()> {
    if !from.exists() {
        return Ok(());
    }
    copy_rows::<MissingRow>(from, to, &["url", "reason"], |batch| {
        let (urls, reasons): (&StringArray, &StringArray) = (field(batch, "url")?, field(batch, "reason")?);
        let kept: BooleanArray = urls.iter().map(|url| url.map(|url| !deletion.patterns.matches(url))).collect();
        (0..batch.num_rows()).filter(|row| kept.value(*row)).for_each(|row| count(reasons.value(row)));
        Ok(kept)
    })
    .map(|_| ())
}

/// What is not in the week any more.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, serde::Serialize, serde::Deserialize)]
struct DeletedCounts {
    documents: u64,
    empty: u64,
    words: u64,
    bytes: u64,
}

/// A committed week, of which a part is left out.
struct Without<'a> {
    folder: &'a Path,
    unfinished: &'a Unfinished,
    /// The own ids that are deleted, ascending.
    deleted: Vec<DocId>,
    deletion: &'a Deletion,
}

impl Without<'_> {
    fn has(&self, doc: i64) -> bool {
        self.deleted.binary_search(&DocId::from_table(doc)).is_ok()
    }

    /// Makes a segment's tables, and adds up what they do not have any more.
    fn segment(&self, segment: Segment, gone: &mut DeletedCounts) -> Result<Segment> {
        let Segment { wave, shard, .. } = segment;
        let documents = self.by_doc::<DocumentRow>(segment)?;
        if documents < segment.documents {
            let path = self.folder.join(DocumentRow::NAME).join(segment.file());
            Scan::open(&path, &["doc", "bytes", "words"])?.for_each(|batch| {
                let column = |name| field::<Int64Array>(batch, name);
                let (docs, bytes, words) = (column("doc")?, column("bytes")?, column("words")?);
                for row in (0..batch.num_rows()).filter(|row| self.has(docs.value(*row))) {
                    gone.documents += 1;
                    gone.empty += u64::from(words.value(row) == 0);
                    gone.words += words.value(row) as u64;
                    gone.bytes += bytes.value(row) as u64;
                }
                Ok(())
            })?;
        }
        let features = if segment.features > 0 { self.by_doc::<FeatureRow>(segment)? } else { 0 };
        let urls = if segment.urls > 0 { self.by_doc::<UrlRow>(segment)? } else { 0 };
        let links = if segment.links > 0 { self.links(segment)? } else { 0 };
        Ok(Segment { wave, shard, documents, urls, features, links })
    }

    fn by_doc<T: Table>(&self, segment: Segment) -> Result<u64> {
        let (from, to) = self.paths(T::NAME, &segment.file());
        let kept = copy_rows::<T>(&from, &to, &["doc"], |batch| {
            let docs: &Int64Array = field(batch, "doc")?;
            Ok(docs.values().iter().map(|doc| Some(!self.has(*doc))).collect())
        })?;
        Ok(kept.kept)
    }

    /// Neither pages that are gone, nor what others say of their URLs.
    fn links(&self, segment: Segment) -> Result<u64> {
        let (from, to) = self.paths(LinkRow::NAME, &segment.file());
        let kept = copy_rows::<LinkRow>(&from, &to, &["doc", "target_url"], |batch| {
            let (docs, targets): (&Int64Array, &StringArray) = (field(batch, "doc")?, field(batch, "target_url")?);
            let keep = |row| !self.has(docs.value(row)) && !self.deletion.patterns.matches(targets.value(row));
            Ok((0..batch.num_rows()).map(|row| Some(keep(row))).collect())
        })?;
        Ok(kept.kept)
    }

    /// Makes the `rejects` of all waves; counts those that are gone by reason.
    fn rejects(&self, waves: usize) -> Result<BTreeMap<String, u64>> {
        let mut gone: BTreeMap<String, u64> = BTreeMap::new();
        for wave in 0..waves {
            let (from, to) = self.paths(RejectRow::NAME, &RejectRow::file(wave));
            let mut keep = |batch: &RecordBatch| {
                let (urls, reasons): (&StringArray, &StringArray) = (field(batch, "url")?, field(batch, "reason")?);
                let meant = |url| is_meant(&self.deletion.patterns, url);
                let kept: BooleanArray = urls.iter().map(|url| Some(!url.is_some_and(meant))).collect();
                for row in (0..batch.num_rows()).filter(|row| !kept.value(*row)) {
                    *gone.entry(reasons.value(row).to_owned()).or_default() += 1;
                }
                Ok(kept)
            };
            if copy_rows::<RejectRow>(&from, &to, &["url", "reason"], &mut keep)?.kept == 0 && !to.exists() {
                // A wave has its file, be there bad records or not.
                Writer::<RejectRow>::create(&to)?.finish()?;
            }
        }
        Ok(gone)
    }

    fn paths(&self, table: &str, file: &str) -> (std::path::PathBuf, std::path::PathBuf) {
        (self.folder.join(table).join(file), self.unfinished.table(table, file))
    }
}

/// The own ids among those that are deleted.
fn read_deleted(unfinished: &Unfinished, owned: &Ownership) -> Result<Vec<DocId>> {
    let own: BTreeSet<u32> = owned.shards().collect();
    let mut deleted = Vec::new();
    Scan::open(&unfinished.table(DeletedRow::NAME, ALL), &["doc"])?.for_each(|batch| {
        let docs = field::<Int64Array>(batch, "doc")?.values().iter().map(|doc| DocId::from_table(*doc));
        deleted.extend(docs.filter(|doc| own.contains(&doc.shard())));
        Ok(())
    })?;
    Ok(deleted)
}

/// The file that holds all of a table.
const ALL: &str = "all.parquet";
