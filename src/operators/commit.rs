//! Waves are committed one by one: worker 0 writes the rejects, then the journal.

use std::collections::BTreeMap;
use std::sync::Arc;

use anyhow::{Result, bail};
use serde::{Deserialize, Serialize};
use timely::container::CapacityContainerBuilder;
use timely::dataflow::StreamVec;
use timely::dataflow::channels::pact::Exchange;
use timely::dataflow::operators::FrontierNotificator;
use timely::dataflow::operators::generic::Operator;

use super::crawl::Bad;
use super::segments::Made;
use crate::plan::Plan;
use crate::state::{Counts, Journal, Store};
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
pub enum Note {
    /// A bad record.
    Bad(Bad),
    /// What a worker read.
    Counted(Counts),
    /// What a worker wrote.
    Made(Made),
}

/// Commits every wave, in order, when all is known of it.
pub fn commit<'scope>(
    notes: StreamVec<'scope, u64, Note>,
    plan: &Arc<Plan>,
    mut journal: Journal,
    watch: &Arc<Watch>,
) -> StreamVec<'scope, u64, ()> {
    let (plan, watch) = (plan.clone(), watch.clone());
    let to_first = Exchange::new(|_: &Note| 0);
    notes.unary_frontier::<CapacityContainerBuilder<Vec<()>>, _, _, _>(to_first, "Commit", |_, _| {
        let mut waves: BTreeMap<u64, Vec<Note>> = BTreeMap::new();
        let mut notificator = FrontierNotificator::default();
        move |(input, frontier), output| {
            input.for_each_time(|capability, batches| {
                waves.entry(*capability.time()).or_default().extend(batches.flat_map(|batch| batch.drain(..)));
                notificator.notify_at(capability.retain(output.output_index()));
            });
            notificator.for_each(&[frontier], |capability, _| {
                let wave = *capability.time();
                let Some(notes) = waves.remove(&wave) else { return };
                if !watch.failed() {
                    watch.check(commit_wave(&plan, &mut journal, wave as usize, notes));
                }
            });
        }
    })
}

fn commit_wave(plan: &Plan, journal: &mut Journal, wave: usize, notes: Vec<Note>) -> Result<()> {
    let unfinished = Store::at(&plan.store).unfinished(plan.week);
    let mut rejects = Vec::new();
    for note in notes {
        match note {
            Note::Bad(bad) => rejects.push(bad),
            Note::Counted(counts) => journal.counts.add(&counts),
            Note::Made(made) => {
                journal.counts.add(&made.counts);
                journal.segments.extend(made.segments);
            }
        }
    }
    journal.segments.sort_unstable();
    journal.waves = wave + 1;
    rejects.sort_unstable();
    let mut writer: Writer<RejectRow> =
        Writer::create(&unfinished.table(RejectRow::NAME, &format!("all-wave{wave:05}.parquet")))?;
    for bad in rejects {
        writer.push(RejectRow {
            file: plan.inputs[bad.file as usize].name.clone(),
            offset: bad.offset as i64,
            url: bad.url,
            reason: bad.reason,
        })?;
    }
    writer.finish()?;
    journal.write(&unfinished.journal())?;
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
    let folder = Store::at(&plan.store).unfinished(plan.week).folder().join(RejectRow::NAME);
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
