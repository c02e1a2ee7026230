//! `nigh run` of a job that makes a week from a crawl: the first week of a store, or a later one.
//!
//! In reading order: `mod` (the run), `request` (what the user asks for, and its plan), `inputs`
//! (what is checked of the inputs), `changed_inputs` and `job_changes` (which inputs changed, and
//! what the job says unlike the one before).

mod changed_inputs;
mod inputs;
mod job_changes;
mod request;

use std::process::ExitCode;
use std::sync::Arc;

use anyhow::{Context as _, Result};

use self::changed_inputs::{changed_files, changed_while_read};
use self::job_changes::{check_job, other_choice};
use self::request::{WeekRequest, WeekState};
use super::advice::{default_links, few_candidates};
use crate::cli::args::RunArgs;
use crate::cli::session::run_record::{Done, RunRecord};
use crate::cli::session::signals::stop_on_signals;
use crate::cli::session::worker::{ProcessWork, cluster};
use crate::cli::session::workers::{notice_without_shard, warn_above_cores};
use crate::cli::session::{Session, locate_store, lock, notify, open_bucket, refuse_pending, take_work};
use crate::cli::store::DELETED_SINCE;
use crate::config::{Cluster, Config, SameId};
use crate::launch::{Peers, Pool};
use crate::log::Log;
use crate::mirror::WriteGuard;
use crate::operators::ingest::ANOTHER_TEXT;
use crate::plan::Plan;
use crate::records::{DocumentKey, Week};
use crate::report;
use crate::report::{Disk, print};
use crate::sheet::grouped;
use crate::state::{Begun, Store, WeekJournal};
use crate::summary::Summary;

/// Makes the week, or resumes making it, and prints its summary.
pub(crate) fn run(
    job: Cluster,
    config: &Config,
    pool: Pool,
    args: &RunArgs,
    log: &Log,
    record: &Arc<RunRecord>,
) -> Result<ExitCode> {
    let mut request = WeekRequest::new(job, config, pool, args, log)?;
    let location = locate_store(&request.store, args.mirror.as_deref(), config)?;
    let store = location.store().clone();
    store.check_writable()?;
    request.documents = request.check_inputs(args.dry_run)?;
    request.check_texts()?;
    if request.documents == Some(DocumentKey::Row) && request.reading().same_id != SameId::Row {
        log.notice(&format!(
            "the input has no field `{}`: each row is a document, known by its file and place. --id, or `id` in [cluster.read.columns], names a column of ids",
            request.reading().columns.url()
        ));
    }
    let early_guard = open_bucket(&location, args.dry_run, log)?;
    request.name_week(&store)?;
    request.name_run(log, record);
    let state = request.week_state(&store)?;
    let (WeekState::Made(plan) | WeekState::ToMake(plan)) = &state;
    if let Some(text) = few_candidates(&plan.method) {
        log.warn(&text);
    }
    if let WeekState::ToMake(plan) = &state {
        warn_above_cores(plan.workers, &request.pool, log);
        notice_without_shard(plan.peers(), plan.method.shards, log);
        let is_first = plan.earlier.weeks.is_empty() && plan.earlier.removed.is_none();
        if let Some(text) = default_links(&plan.method, request.documents).filter(|_| is_first) {
            log.warn(&text);
        }
    }
    if args.dry_run {
        // A mirror may lack the job of the week.
        if let WeekState::Made(plan) = &state
            && !location.is_in_bucket()
        {
            check_job(&store, plan, &request.store, log)?;
        }
        let (WeekState::Made(plan) | WeekState::ToMake(plan)) = state;
        return print_dry_run(&plan, &request.damaged_inputs()?, args.json, record);
    }
    let mut guard = early_guard.map_or_else(|| lock(&location, log), Ok)?;
    refuse_pending(&store)?;
    let store = take_work(&store, &request.pool, 0)?;
    store.recover()?;
    // Look again: before the lock another run may have ended, and the recovery may have finished a
    // killed run's commit.
    request.name_week(&store)?;
    request.name_run(log, record);
    let (mut summary, done) = match request.week_state(&store)? {
        WeekState::Made(plan) => {
            let root = request.store.display();
            check_job(&store, &plan, &request.store, log)?;
            log.notice(&format!("week {} is in {root} already, from the same input: nothing to do", plan.week));
            (read_summary(&store, plan.week)?, Done::Nothing)
        }
        WeekState::ToMake(plan) => (make(*plan, &request, &store, &mut guard, args, log, record)?, Done::Made),
    };
    let different = summary.counts.skipped.get(ANOTHER_TEXT).copied().unwrap_or_default();
    if different > 0 {
        log.warn(&format!(
            "{:.1}% of the records ({}) have an id that another record has with another text, and are no documents: only the first of each id is",
            100.0 * different as f64 / summary.counts.records.max(1) as f64,
            grouped(different)
        ));
    }
    if location.is_in_bucket() {
        // The name of the bucket, not that of the mirror.
        summary.store = request.store.clone();
    }
    print(record.result_text(&summary, done, args.json, report::summary)?)?;
    Ok(ExitCode::SUCCESS)
}

fn print_dry_run(plan: &Plan, damaged: &[(&str, String)], json: bool, record: &RunRecord) -> Result<ExitCode> {
    let disk = Disk::of(plan);
    if json {
        let result = serde_json::json!({ "plan": plan, "disk": disk, "damaged": damaged });
        print(&record.json_text(&result, Done::DryRun)?)?;
    } else {
        print(report::plan(plan, &disk).fitted())?;
        for (name, reason) in damaged {
            print(&format!("Damaged   {name}: {reason}; the run will list what it cannot read of it in `rejects`\n"))?;
        }
        print("Checked   every input can be opened, the store can be written\n")?;
    }
    Ok(ExitCode::SUCCESS)
}

/// Computes and publishes the week of the plan. The caller has locked the store.
fn make(
    plan: Plan,
    request: &WeekRequest,
    store: &Store,
    guard: &mut WriteGuard,
    args: &RunArgs,
    log: &Log,
    record: &Arc<RunRecord>,
) -> Result<Summary> {
    let week = plan.week;
    let before = WeekJournal::read(&store.unfinished(week).journal())?;
    let Begun { journal, dropped } = store.begin(week, &plan.method, &plan.key())?;
    if dropped > 0 {
        let changed = before.and_then(|before| changed_files(&plan, &before.key));
        let changed = changed.map_or_else(String::new, |changed| format!(" ({changed})"));
        log.notice(&format!(
            "the unfinished week {week} was made from other input{changed}: its {dropped} waves are dropped, and it starts again"
        ));
    }
    if journal.waves > 0 {
        log.notice(&format!("resuming after wave {} of {}", journal.waves, plan.waves.len()));
    }
    if let Some(text) = other_choice(store, &plan)? {
        log.warn(&text);
    }
    if args.verbose && !args.json {
        log.lines(&report::plan(&plan, &Disk::of(&plan)).to_string());
    }
    stop_on_signals(log, &request.pool, guard.publish_handle(), {
        let (store, root) = (store.clone(), request.store.display().to_string());
        let again = if request.spool.is_empty() { "The" } else { "With the same bytes piped into it, the" };
        move || {
            let text = format!("what is committed in {root} is kept. {again} same command continues from there");
            (!store.is_committed(week)).then_some(text)
        }
    });

    let first_input = plan.waves.get(journal.waves).map_or(plan.inputs.len(), |wave| wave.0);
    let bytes = plan.inputs[first_input..].iter().map(|input| input.bytes).sum();
    let session = Session { pool: &request.pool, log, bytes, metrics: args.metrics, record: record.clone() };
    let deleted = deleted_since(store, &plan)?;
    let mut first_work = Some(ProcessWork::Run(Box::new(plan.clone())));
    let work = |epoch| match first_work.take() {
        Some(work) => Ok(Some(work)),
        None => request.remaining_work(&take_work(store, &request.pool, epoch)?),
    };
    let summary = session.compute(work, |watch| cluster(plan, Peers::None, watch))?;
    if let Some(text) = changed_while_read(&request.inputs) {
        log.warn(&text);
    }
    if let Some(deleted) = deleted {
        log.warn(&format!(
            "pages were deleted from the former week {week} ({deleted}). What its crawl has of them is here again, and so are links and redirects to them \
             that the week before has: `nigh delete` removes them"
        ));
    }
    guard.publish(false, &notify(log))?;
    summary.map_or_else(|| read_summary(store, week), Ok)
}

/// What was deleted from the version of the week that this one replaces; `None` if nothing was.
/// What stays of the week before has links and redirects to it.
fn deleted_since(store: &Store, plan: &Plan) -> Result<Option<String>> {
    let weeks = store.manifest()?.map_or_else(Vec::new, |manifest| manifest.weeks);
    let former = weeks.iter().find(|committed| committed.week == plan.week);
    let Some(former) = former else { return Ok(None) };
    let path = store.records(former).join("job.toml");
    let job = std::fs::read_to_string(&path).with_context(|| format!("cannot read {}", path.display()))?;
    let deleted: Vec<&str> = job.lines().filter_map(|line| line.strip_prefix(DELETED_SINCE)).collect();
    let deleted = deleted.iter().map(|text| text.trim_end_matches('.')).collect::<Vec<_>>().join("; ");
    Ok((!deleted.is_empty()).then_some(deleted))
}

/// The summary that is kept with a committed week.
pub(crate) fn read_summary(store: &Store, week: Week) -> Result<Summary> {
    Summary::read(&store.records(&store.committed(week)?))
}
