//! Commits waves, one by one and in order, at worker 0.
//!
//! When timely's frontier has passed a wave, and every worker has reported that its segments and
//! failed downloads are durable, worker 0 writes the wave's `rejects` and then the journal. The
//! journal is the commit: what it does not list does not exist for the next run.

use std::collections::BTreeMap;
use std::sync::Arc;

use anyhow::{Result, bail, ensure};
use nigh_exchange::{BlockStream, hold, rows_of, time_of, unary_frontier};
use timely::dataflow::operators::Capability;

use super::crawl::MOST_LISTED;
use super::duplicates::ANOTHER_TEXT;
use super::kept_records::forget_records;
use super::notes::{BadRecord, WaveNote};
use crate::config::{Absent, Bytes, SameId};
use crate::plan::Plan;
use crate::state::{AnotherText, BundleName, BundleWriter, ReadingCounts, Segment, WeekJournal, sync_folder};
use crate::structures::{CompactSort, ExternalSort};
use crate::tables::{RejectRow, Table};
use crate::watch::Watch;

/// The number of records that are read before a share of bad ones can stop the job.
const FEW_RECORDS: u64 = 10_000;

/// The number of reasons or files that an error names.
const MOST_NAMED: usize = 5;

/// The error of a job with too many bad records, or too many unread bytes: exit code 3.
#[derive(Debug)]
pub struct TooManyRejects(pub String);

impl std::fmt::Display for TooManyRejects {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for TooManyRejects {}

/// Commits every wave when all reports on it have arrived, in order. The probe of the returned
/// stream, which carries no records, passes a wave when the wave is committed.
pub fn commit<'scope>(
    notes: BlockStream<'scope>,
    plan: &Arc<Plan>,
    mut journal: WeekJournal,
    watch: &Arc<Watch>,
) -> BlockStream<'scope> {
    let (plan, watch) = (plan.clone(), watch.clone());
    unary_frontier(notes, "Commit", |_, _| {
        let mut waves: BTreeMap<u64, (Capability<u64>, PendingWave)> = BTreeMap::new();
        move |input, frontier, output| {
            input.for_each_stamp(|capability, blocks| {
                let wave = time_of(&capability);
                let begin = || (hold(&capability, output), PendingWave::new(&plan, wave));
                let (_, pending) = waves.entry(wave).or_insert_with(begin);
                for block in blocks {
                    let add = |note: Result<WaveNote>| pending.add(note?);
                    if watch.failed() || watch.check(rows_of(block).try_for_each(add)).is_none() {
                        return;
                    }
                }
            });
            while let Some(complete) = waves.first_entry().filter(|first| !frontier.less_equal(first.key())) {
                let (wave, (_until_committed, pending)) = complete.remove_entry();
                if !watch.failed() {
                    watch.check(commit_wave(&plan, &mut journal, wave as usize, pending));
                }
            }
        }
    })
}

/// The reports on a wave so far.
struct PendingWave {
    counts: ReadingCounts,
    segments: Vec<Segment>,
    another_text: Option<AnotherText>,
    /// The number of workers that have written their segments.
    made: usize,
    /// The number of workers that have written their failed downloads.
    failures: usize,
    rejects: ExternalSort<BadRecord>,
}

impl PendingWave {
    fn new(plan: &Plan, wave: u64) -> PendingWave {
        let spill = plan.open_store().unfinished(plan.week).spill();
        let rejects = ExternalSort::new(&spill.join(format!("rejects-wave{wave}")), plan.worker_memory / 8);
        PendingWave {
            counts: ReadingCounts::default(),
            segments: Vec::new(),
            another_text: None,
            made: 0,
            failures: 0,
            rejects,
        }
    }

    fn add(&mut self, note: WaveNote) -> Result<()> {
        match note {
            WaveNote::Bad(bad) => self.rejects.push(bad)?,
            WaveNote::Counted(counts) => self.counts.add(&counts),
            WaveNote::Made(made) => {
                self.counts.add(&made.counts);
                self.made += 1;
                self.segments.extend(made.segments);
                self.another_text = self.another_text.take().into_iter().chain(made.another_text).min();
                made.rejected.into_iter().try_for_each(|bad| self.rejects.push(bad))?;
            }
            WaveNote::Failures => self.failures += 1,
        }
        Ok(())
    }
}

/// Writes the rejects of a wave, then the journal; stops a job with too many bad records.
fn commit_wave(plan: &Plan, journal: &mut WeekJournal, wave: usize, pending: PendingWave) -> Result<()> {
    let unfinished = plan.open_store().unfinished(plan.week);
    let written = pending.made.min(pending.failures);
    ensure!(written == plan.peers(), "wave {wave} is incomplete: {written} of {} workers wrote it", plan.peers());
    journal.counts.add(&pending.counts);
    journal.segments.extend(pending.segments);
    journal.another_text = journal.another_text.take().or(pending.another_text);
    journal.segments.sort_rows();
    journal.waves = wave + 1;
    let mut writer: BundleWriter<RejectRow> = unfinished.bundle(BundleName::Wave(wave, 0));
    let mut rejects = pending.rejects.sorted()?;
    // The file of the last record, and how many of its records the readers called bad so far.
    let mut of_file = (u32::MAX, 0);
    while let Some(bad) = rejects.record()? {
        let name = &plan.inputs[bad.file as usize].name;
        if !bad.is_duplicate {
            of_file = if bad.file == of_file.0 { (bad.file, of_file.1 + 1) } else { (bad.file, 1) };
            if of_file.1 > MOST_LISTED {
                // Each of its pieces lists that many.
                *journal.counts.unlisted.entry(name.clone()).or_default() += 1;
                continue;
            }
        }
        writer.push(RejectRow { file: name.clone(), offset: bad.offset as i64, url: bad.url, reason: bad.reason })?;
    }
    writer.end_any_piece(&RejectRow::file(wave))?;
    writer.finish()?;
    sync_folder(unfinished.folder())?;
    unfinished.write_journal(journal)?;
    if plan.keep_read {
        forget_records(&unfinished, wave)?;
    }
    check_rejects(plan, journal, journal.waves == plan.waves.len())
}

/// Checks the share of bad records and that of unread bytes: at the end of the job, and before it
/// once 10,000 records were read.
///
/// # Errors
/// If one of the shares is larger than the job accepts: [`TooManyRejects`] with the five most
/// frequent reasons, or the files.
pub fn check_rejects(plan: &Plan, journal: &WeekJournal, end: bool) -> Result<()> {
    let counts = &journal.counts;
    let different = counts.skipped.get(ANOTHER_TEXT).copied().unwrap_or_default();
    let first = journal.another_text.as_ref().map_or_else(String::new, |first| format!(" (the first: {first})"));
    ensure!(
        different == 0 || plan.reading.same_id != SameId::Equal,
        "{different} of {} records have an id that another record has with another text{first}, and would be lost. If ids begin again in each \
         file, set same-id = \"row\" in [cluster.read]: each record is then a document of its own. \"first\" takes the first record of each id",
        counts.records
    );
    if !end && counts.records < FEW_RECORDS {
        return Ok(());
    }
    let share = counts.reject_share();
    if share <= plan.max_reject_share {
        return check_unread(plan, journal);
    }
    let mut reasons: Vec<(&String, &u64)> = counts.rejects.iter().collect();
    reasons.sort_items_by_key(|(_, count)| std::cmp::Reverse(**count));
    let reasons: Vec<String> =
        reasons.iter().take(MOST_NAMED).map(|(reason, count)| format!("{count} x {reason}")).collect();
    let missing = [": no id", ": no url", ": no text"];
    let lacks_column = counts.rejects.keys().any(|reason| missing.iter().any(|missing| reason.ends_with(missing)));
    let hint = if reasons.first().is_some_and(|most| most.ends_with(": not UTF-8")) {
        " `iconv -f CHARSET -t UTF-8` writes a file again that is not UTF-8; CHARSET is its own, such as WINDOWS-1252."
    } else if lacks_column {
        " Fields of other names are set in [cluster.read.columns]."
    } else {
        ""
    };
    let folder = plan.open_store().unfinished(plan.week).folder().join(RejectRow::NAME);
    bail!(TooManyRejects(format!(
        "{} of {} records are bad ({:.1}%, the job accepts {:.1}%): {}. They are listed in {}.{hint} Raise max-reject-share to accept them; what was read is kept",
        counts.rejected(),
        counts.records,
        100.0 * share,
        100.0 * plan.max_reject_share,
        reasons.join(", "),
        folder.display(),
    )))
}

/// Checks the share of revisits whose page is not known among the pages of the crawl, once all of
/// it is read.
///
/// # Errors If the share is larger than the job accepts: [`TooManyRejects`] with the files that
/// have most of them.
pub fn check_revisits(plan: &Plan, journal: &WeekJournal) -> Result<()> {
    let counts = &journal.counts;
    let Some(revisited) = counts.revisited.as_ref().filter(|revisited| revisited.unknown() > 0) else { return Ok(()) };
    let (unknown, answered) = (revisited.unknown(), counts.answered());
    let share = unknown as f64 / answered as f64;
    if share <= plan.max_unknown_share {
        return Ok(());
    }
    let mut files: Vec<(&String, &u64)> = revisited.not_known.iter().collect();
    files.sort_items_by_key(|(_, count)| std::cmp::Reverse(**count));
    let more = files.len().saturating_sub(MOST_NAMED);
    let mut named: Vec<String> =
        files.iter().take(MOST_NAMED).map(|(file, count)| format!("{count} in {file}")).collect();
    named.extend((more > 0).then(|| format!("others in {more} more files")));
    let earlier = match plan.earlier.weeks.len() {
        0 => "this is the first week of the store".to_owned(),
        1 => "not in the earlier week of the store".to_owned(),
        weeks => format!("in none of the {weeks} earlier weeks of the store"),
    };
    bail!(TooManyRejects(format!(
        "{unknown} of {answered} pages of the crawl are revisits of pages that are not known ({:.1}%, the job accepts {:.1}%): {}. What they \
         refer to is not in this input, and {earlier}. Add the crawl that has these pages to the input, or make a week of it first. Or raise \
         max-unknown-share to go on without them: they are then rows of `missing`. What was read is kept",
        100.0 * share,
        100.0 * plan.max_unknown_share,
        named.join(", "),
    )))
}

/// Checks that the crawl has pages, once all of it is read and pages of the week before are kept.
///
/// # Errors
/// If the input has no page, and the job does not allow an empty week. Where pages of the week
/// before stay, a crawl without a page that removes some of them (404, 410) makes a week, too.
pub fn check_pages(plan: &Plan, journal: &WeekJournal) -> Result<()> {
    let (counts, files) = (&journal.counts, if plan.inputs.len() == 1 { "file" } else { "files" });
    let before = plan.earlier.last().filter(|_| plan.absent == Absent::Keep).map_or(0, |before| before.documents);
    let crawled: u64 =
        journal.segments.iter().filter(|of| of.wave < journal.waves).map(|segment| segment.documents).sum();
    let revisited = counts.revisited.as_ref().map_or(0, |revisited| revisited.here + revisited.earlier);
    let has_pages = match plan.absent {
        Absent::Missing => counts.documents > 0,
        Absent::Keep => crawled + revisited > 0 || counts.documents != before,
    };
    let result = if before == 0 { "empty" } else { "the week before once more" };
    ensure!(
        has_pages || plan.allow_empty,
        "the input has no page ({} records in {} {files}, {} of them passed over): week {} would be {result}, and is not made. --allow-empty, \
         or allow-empty = true in the job, makes it",
        counts.records,
        plan.inputs.len(),
        counts.skipped.values().sum::<u64>(),
        plan.week
    );
    Ok(())
}

/// Checks the share of bytes that could not be read among the bytes of the waves that were read.
fn check_unread(plan: &Plan, journal: &WeekJournal) -> Result<()> {
    let counts = &journal.counts;
    let (unread, bytes) = (counts.unread_bytes(), plan.bytes_of_waves(journal.waves));
    // A deletion reads no input, and keeps the counts of the week.
    if bytes == 0 || unread as f64 <= plan.max_reject_share * bytes as f64 {
        return Ok(());
    }
    let files = counts.incomplete();
    let more = files.len().saturating_sub(MOST_NAMED);
    let named = files.iter().take(MOST_NAMED).map(|(name, bytes, ends_early)| {
        format!("{} of {name}{}", Bytes(*bytes), if *ends_early { ", which ends early" } else { "" })
    });
    let mut named = named.collect::<Vec<_>>().join("; ");
    if more > 0 {
        named.push_str(&format!("; and of {more} more files"));
    }
    bail!(TooManyRejects(format!(
        "{} of {} could not be read ({:.1}%, the job accepts {:.1}%): {named}. Fetch these files again, or raise max-reject-share to accept them; what was read is kept",
        Bytes(unread),
        Bytes(bytes),
        100.0 * unread as f64 / bytes as f64,
        100.0 * plan.max_reject_share,
    )))
}
