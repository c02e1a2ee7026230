//! Waves are committed one by one: worker 0 writes the rejects, then the journal.

use std::collections::BTreeMap;
use std::sync::Arc;

use anyhow::{Result, bail, ensure};
use serde::{Deserialize, Serialize};
use timely::container::CapacityContainerBuilder;
use timely::dataflow::StreamVec;
use timely::dataflow::channels::pact::Exchange;
use timely::dataflow::operators::FrontierNotificator;
use timely::dataflow::operators::generic::Operator;

use super::crawl::BadRecord;
use super::segments::WaveSegments;
use crate::plan::Plan;
use crate::state::{Counts, Journal, Segment, sync_folder};
use crate::structures::ExternalSort;
use crate::tables::{RejectRow, Table, Writer};
use crate::watch::Watch;

/// Before so many records are read, no share of bad ones stops the job.
const FEW_RECORDS: u64 = 10_000;

/// The error of a job with too many bad records; `main` turns it into exit code 3.
#[derive(Debug)]
pub struct TooManyRejects(pub String);

impl std::fmt::Display for TooManyRejects {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for TooManyRejects {}

/// What is known of a wave.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub enum WaveNote {
    /// A bad record.
    Bad(BadRecord),
    /// What a worker read.
    Counted(Box<Counts>),
    /// What a worker wrote.
    Made(Box<WaveSegments>),
    /// A worker wrote the failed downloads.
    Failures,
}

/// Commits every wave, in order, when all is known of it.
pub fn commit<'scope>(
    notes: StreamVec<'scope, u64, WaveNote>,
    plan: &Arc<Plan>,
    mut journal: Journal,
    watch: &Arc<Watch>,
) -> StreamVec<'scope, u64, ()> {
    let (plan, watch) = (plan.clone(), watch.clone());
    let to_first = Exchange::new(|_: &WaveNote| 0);
    notes.unary_frontier::<CapacityContainerBuilder<Vec<()>>, _, _, _>(to_first, "Commit", |_, _| {
        let mut waves: BTreeMap<u64, Wave> = BTreeMap::new();
        let mut notificator = FrontierNotificator::default();
        move |(input, frontier), output| {
            input.for_each_time(|capability, batches| {
                let wave = *capability.time();
                let known = waves.entry(wave).or_insert_with(|| Wave::new(&plan, wave));
                for note in batches.flat_map(|batch| batch.drain(..)) {
                    if watch.failed() || watch.check(known.note(note)).is_none() {
                        return;
                    }
                }
                notificator.notify_at(capability.retain(output.output_index()));
            });
            notificator.for_each(&[frontier], |capability, _| {
                let wave = *capability.time();
                let Some(known) = waves.remove(&wave) else { return };
                if !watch.failed() {
                    watch.check(commit_wave(&plan, &mut journal, wave as usize, known));
                }
            });
        }
    })
}

/// What is known of a wave so far.
struct Wave {
    counts: Counts,
    segments: Vec<Segment>,
    /// Workers that said what they made.
    made: usize,
    /// Workers that wrote the failed downloads.
    failures: usize,
    rejects: ExternalSort<BadRecord>,
}

impl Wave {
    fn new(plan: &Plan, wave: u64) -> Wave {
        let spill = plan.open_store().unfinished(plan.week).spill();
        let rejects = ExternalSort::new(&spill.join(format!("rejects-wave{wave}")), plan.worker_memory / 8);
        Wave { counts: Counts::default(), segments: Vec::new(), made: 0, failures: 0, rejects }
    }

    fn note(&mut self, note: WaveNote) -> Result<()> {
        match note {
            WaveNote::Bad(bad) => self.rejects.push(bad)?,
            WaveNote::Counted(counts) => self.counts.add(&counts),
            WaveNote::Made(made) => {
                self.counts.add(&made.counts);
                self.made += 1;
                self.segments.extend(made.segments);
            }
            WaveNote::Failures => self.failures += 1,
        }
        Ok(())
    }
}

fn commit_wave(plan: &Plan, journal: &mut Journal, wave: usize, known: Wave) -> Result<()> {
    let unfinished = plan.open_store().unfinished(plan.week);
    let whole = known.made.min(known.failures);
    ensure!(whole == plan.peers(), "wave {wave} is not whole: {whole} of {} workers wrote it", plan.peers());
    journal.counts.add(&known.counts);
    journal.segments.extend(known.segments);
    journal.segments.sort_unstable();
    journal.waves = wave + 1;
    let mut writer: Writer<RejectRow> = Writer::create(&unfinished.table(RejectRow::NAME, &RejectRow::file(wave)))?;
    let mut rejects = known.rejects.sorted()?;
    while let Some(bad) = rejects.record()? {
        writer.push(RejectRow {
            file: plan.inputs[bad.file as usize].name.clone(),
            offset: bad.offset as i64,
            url: bad.url,
            reason: bad.reason,
        })?;
    }
    writer.finish()?;
    sync_folder(unfinished.folder())?;
    unfinished.write_journal(journal)?;
    check_rejects(plan, &journal.counts, journal.waves == plan.waves.len())
}

/// Stops a job with too many bad records: at its end, and earlier once many records were read.
pub fn check_rejects(plan: &Plan, counts: &Counts, end: bool) -> Result<()> {
    let share = counts.reject_share();
    if share <= plan.max_reject_share || !(end || counts.records >= FEW_RECORDS) {
        return Ok(());
    }
    let mut reasons: Vec<(&String, &u64)> = counts.rejects.iter().collect();
    reasons.sort_by_key(|(_, count)| std::cmp::Reverse(**count));
    let reasons: Vec<String> = reasons.iter().take(5).map(|(reason, count)| format!("{count} x {reason}")).collect();
    let folder = plan.open_store().unfinished(plan.week).folder().join(RejectRow::NAME);
    bail!(TooManyRejects(format!(
        "{} of {} records are bad ({:.1}%, the job accepts {:.1}%): {}. Where they are: {}. Raise max-reject-share to accept them; what was read is kept",
        counts.rejected(),
        counts.records,
        100.0 * share,
        100.0 * plan.max_reject_share,
        reasons.join(", "),
        folder.display(),
    )))
}
