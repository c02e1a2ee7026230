//! The main job: a crawl in, cluster tables out (Fetterly 2004, section 2); for a store's first week or a later one.
//!
//! ```text
//! crawl files ─▶ answers ─▶ segments, wave by wave        every page a row, with its sketch
//! vectors     ─▶ roots (`roots.rs`)                       virtually identical, and very similar: from all pages, or from
//!                                                         the week before and what changed
//! checksums   ─▶ exact                                    exact copies among the identical
//! failures    ─▶ missing (`missing.rs`)                   URLs of earlier weeks that could not be downloaded
//! roots       ─▶ tables (`tables.rs`)                     sizes, evidence, links, the cluster map, changes
//! ```
//!
//! Waves are committed one by one; what follows them is computed again when a run is interrupted. The
//! tables do not depend on workers, processes, or the order in which inputs are named.

use std::rc::Rc;
use std::sync::Arc;

use anyhow::{Context, Result};
use timely::dataflow::StreamVec;
use timely::dataflow::operators::probe::Handle;
use timely::dataflow::operators::vec::Map;
use timely::dataflow::operators::{Concat, OkErr, Probe};
use timely::worker::Worker;

use super::deletion::leave_out;
use super::roots::WeekRoots;
use super::week::ReadWeek;
use crate::features::{Fingerprinter, Polynomials, VectorKeys, polynomials};
use crate::kernels;
use crate::operators::InProcess;
use crate::operators::exchange::{all_gather, run_to_end};
use crate::operators::ingest::{
    CrawlRecord, FailedDownload, WaveNote, check_rejects, commit, crawl, failures, segments,
};
use crate::operators::output::{LevelClusters, cluster_sizes, links};
use crate::plan::Plan;
use crate::records::{DocId, Level};
use crate::state::{CommittedWeek, Journal, Unfinished, WholeWeek, sync_folder};
use crate::structures::Ownership;
use crate::summary::Summary;
use crate::watch::{Stage, Watch};

/// Runs the job on one of its workers; every worker of every process calls it with the same plan, after the week was
/// begun ([`Store::begin`](crate::state::Store::begin)). Worker 0 commits the week and returns its summary.
///
/// # Errors
/// Where anything cannot be read or written, or too many records are bad. What was committed stays, and a rerun goes
/// on from it.
pub fn cluster(
    worker: &mut Worker,
    plan: &Arc<Plan>,
    shared: &Arc<InProcess>,
    watch: &Arc<Watch>,
) -> Result<Option<Summary>> {
    let polynomials = polynomials(plan.method.seed, plan.method.features);
    let store = plan.open_store();
    let unfinished = store.unfinished(plan.week);
    let before = read_journal(&unfinished)?;

    if let Some(deletion) = &plan.deletion {
        leave_out(worker, plan, deletion, &unfinished, watch)?;
    } else if before.waves < plan.waves.len() {
        watch.enter(Stage::Read);
        read(worker, plan, &polynomials, before, watch)?;
    }
    let journal = read_journal(&unfinished)?;
    check_rejects(plan, &journal.counts, true)?;

    let owned = Ownership::new(worker.index(), worker.peers(), &plan.urls(&journal));
    let week = ReadWeek { plan, journal: &journal, unfinished: &unfinished, owned: &owned, shared, watch };
    let last = week.last_week()?;
    let keys = Rc::new(VectorKeys::new(&plan.method, &polynomials));
    let WeekRoots { similar, identical, exact, neighbours, known, choice, postings } =
        week.roots(worker, &keys, last.as_ref())?;

    watch.enter(Stage::Tables);
    let level = |level, roots: Vec<DocId>, worker: &mut Worker| -> Result<LevelClusters> {
        Ok(LevelClusters { level, sizes: cluster_sizes(worker, &owned, &roots, watch)?, roots })
    };
    let levels = [
        level(Level::Similar, similar, worker)?,
        level(Level::Identical, identical, worker)?,
        level(Level::Exact, exact, worker)?,
    ];
    week.evidence(worker, &levels, neighbours, &known, last.as_ref())?;
    if plan.deletion.is_none() {
        links(worker, plan, &journal, &owned, watch)?;
    }
    let named = week.names(worker, &levels[0], last.as_ref())?;
    week.cluster_map(&levels, &named.of_docs)?;
    let missing = week.missing(&levels[0].roots)?;
    let since = week.since(worker, &named, &choice, missing)?;
    let summary = week.statistics(worker, &levels, since)?;
    let given = all_gather(worker, named.new_ids, watch)?;
    // Every process makes its tables durable before any of them may be committed.
    sync_folder(unfinished.folder())?;
    all_gather(worker, vec![worker.index() as u64], watch)?;
    if worker.index() > 0 {
        return Ok(None);
    }
    let before = plan.deletion.iter().flat_map(|deletion| deletion.of.named.iter().copied());
    let named = given.into_iter().zip(before.chain(std::iter::repeat(0)));
    let committed = CommittedWeek {
        week: plan.week,
        key: journal.key.hash.clone(),
        documents: journal.counts.documents,
        urls: plan.new_urls(&journal),
        named: named.map(|((_, clusters), before)| before + clusters).collect(),
    };
    let whole = WholeWeek { committed, method: plan.method.clone(), journal };
    let text = serde_json::to_vec_pretty(&summary).context("a summary is plain data")?;
    store.commit(&whole, &plan.job, &text, postings.as_ref())?;
    Ok(Some(summary))
}

fn read_journal(unfinished: &Unfinished) -> Result<Journal> {
    let path = unfinished.journal();
    Journal::read(&path)?.with_context(|| format!("{} is missing: the week was not begun", path.display()))
}

/// Reads the waves that are not committed yet.
fn read(
    worker: &mut Worker,
    plan: &Arc<Plan>,
    polynomials: &Polynomials,
    journal: Journal,
    watch: &Arc<Watch>,
) -> Result<()> {
    let fingerprinter = Fingerprinter::new(&plan.method, polynomials, plan.reading.max_links, kernels::chosen()?);
    let probe = Handle::new();
    worker.dataflow::<u64, _, _>(|scope| {
        let found = crawl(scope, plan, fingerprinter, journal.waves, probe.clone(), watch);
        let (answers, others): (_, StreamVec<'_, u64, Result<FailedDownload, WaveNote>>) =
            found.ok_err(|found| match found {
                CrawlRecord::Answer(answer) => Ok(*answer),
                CrawlRecord::Failed(failed) => Err(Ok(failed)),
                CrawlRecord::Bad(bad) => Err(Err(WaveNote::Bad(bad))),
                CrawlRecord::Counted(counts) => Err(Err(WaveNote::Counted(counts))),
            });
        let (failed, notes) = others.ok_err(|other: Result<FailedDownload, WaveNote>| other);
        let made = segments(answers, plan, journal.waves, &journal.segments, watch);
        let made = made.map(|made| WaveNote::Made(Box::new(made))).concat(notes);
        let failures = failures(failed, plan, journal.waves, watch).map(|()| WaveNote::Failures);
        commit(made.concat(failures), plan, journal, watch).probe_with(&probe);
    });
    run_to_end(worker, &probe, watch)
}
