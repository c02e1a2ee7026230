//! `nigh run` of a chunks job: makes the table `chunks` of a committed week from its crawl files.

use std::process::ExitCode;
use std::sync::Arc;

use anyhow::{Context, Result, bail};

use crate::cli::args::RunArgs;
use crate::cli::errors::WrongUse;
use crate::cli::session::run_record::{Done, RunRecord};
use crate::cli::session::signals::stop_on_signals;
use crate::cli::session::workers::{WorkerCount, warn_above_cores};
use crate::cli::session::{Session, check_name, locate_store, lock, notify, read_manifest, take_work};
use crate::config::{Chunks, Config};
use crate::jobs::chunks::{ChunksPlan, ChunksSummary, make_chunks};
use crate::launch::Pool;
use crate::log::Log;
use crate::plan::{job_of_week, named_inputs};
use crate::records::Week;
use crate::report::print;
use crate::sheet::grouped;
use crate::state::Earlier;

/// Runs the job, and prints what it made.
pub(crate) fn run(
    job: Chunks,
    config: &Config,
    pool: &Pool,
    args: &RunArgs,
    log: &Log,
    record: &Arc<RunRecord>,
) -> Result<ExitCode> {
    let wrong_use = |text: &str| WrongUse(format!("{}: {text}", args.job_name()));
    if args.replace || args.allow_empty || args.no_accuracy || args.absent.is_some() || args.only_older {
        bail!(wrong_use(
            "--replace, --allow-empty, --no-accuracy, --absent and --only-older are for jobs that make a week: this job adds a table to one"
        ));
    }
    if !pool.is_this_process() {
        bail!(wrong_use("this job works in one process: give --workers instead of --processes or a pool"));
    }
    let week = args.week.or(job.week).map(|week| week.date(Week::today()));
    let week = week.ok_or_else(|| wrong_use("no week: give --week YYYY-MM-DD, or set it in the job"))?;
    let folder = args.store.clone().or(job.store);
    let folder = folder.ok_or_else(|| wrong_use("no store: give --store DIR, or set it in the job"))?;
    check_name(&folder)?;
    let input = if args.input.is_empty() { job.input } else { args.input.clone() };
    if input.is_empty() {
        bail!(wrong_use("no input: give --input PATH_OR_GLOB_OR_URL, the files that the week was made from"));
    }
    let location = locate_store(&folder, args.mirror.as_deref(), config)?;
    location.store().check_writable()?;
    location.expect()?;
    let (guard, store) = if args.dry_run {
        location.look(&notify(log))?;
        (None, location.store().clone())
    } else {
        let guard = lock(&location, log)?;
        let store = take_work(location.store(), pool, 0)?;
        store.recover()?;
        (Some(guard), store)
    };
    let manifest = read_manifest(&store, &folder)?;
    let committed = manifest.weeks.iter().find(|committed| committed.week == week);
    let committed = committed.with_context(|| format!("{} has no week {week}", folder.display()))?;
    let segments = store.whole(committed)?.journal.segments;
    if segments.iter().all(|segment| segment.chunks == segment.features) {
        let chunks = segments.iter().map(|segment| segment.chunks).sum();
        let summary = ChunksSummary { week: Some(week), pages: chunks, chunks, ..ChunksSummary::default() };
        print(&if args.json {
            record.json_text(&summary, Done::Nothing)?
        } else {
            format!("Week {week} of {} has its chunks already\n", folder.display())
        })?;
        return Ok(ExitCode::SUCCESS);
    }
    let reading = job_of_week(&store, committed)?.read.here();
    let inputs = crate::readers::list(&input, &reading)?;
    let inputs = named_inputs((&store, &store.whole(committed)?), inputs, &reading);
    let workers = WorkerCount::new(args.workers, config, pool).of_shards(manifest.method.shards as usize)?;
    warn_above_cores(workers, pool, log);
    let Some(mut guard) = guard else {
        let bytes = inputs.iter().map(|input| input.bytes).sum();
        let text = format!("{} files, {}", grouped(inputs.len() as u64), crate::config::Bytes(bytes));
        print(&if args.json {
            let plan = serde_json::json!({ "plan": { "week": week, "inputs": inputs, "workers": workers } });
            record.json_text(&plan, Done::DryRun)?
        } else {
            format!("Would make the chunks of week {week} of {} from {text}\n", folder.display())
        })?;
        return Ok(ExitCode::SUCCESS);
    };
    let plan = ChunksPlan {
        week: committed.clone(),
        earlier: Earlier::before(&manifest, week),
        reading,
        commit: manifest.commits + 1,
        workers,
        memory: config.memory(),
        store: store.clone(),
        inputs,
    };
    stop_on_signals(log, pool, guard.publish_handle(), {
        let text = format!("week {week} of {} is unchanged. The same command starts again", folder.display());
        move || (!store.is_publishing()).then(|| text.clone())
    });
    let bytes = plan.inputs.iter().map(|input| input.bytes).sum();
    let session = Session { pool, log, bytes, metrics: args.metrics, record: record.clone() };
    let summary = session.compute(|_| Ok(None), |watch| make_chunks(&plan, watch).map(Some))?;
    let summary = summary.context("this process makes the summary")?;
    guard.publish(false, &notify(log))?;
    print(&if args.json { record.json_text(&summary, Done::Made)? } else { text(&summary) })?;
    Ok(ExitCode::SUCCESS)
}

/// The summary as text.
fn text(summary: &ChunksSummary) -> String {
    let ChunksSummary { week, pages, chunks, not_found, other_content, missing } = summary;
    let week = week.map_or_else(String::new, |week| week.to_string());
    let mut text = format!("Chunks of week {week}: {} of {} pages with words\n", grouped(*chunks), grouped(*pages));
    if not_found + other_content > 0 {
        text += &format!(
            "         missing: {} not in the files, {} with other content there\n",
            grouped(*not_found),
            grouped(*other_content)
        );
        missing.iter().for_each(|url| text += &format!("         {url}\n"));
        if (missing.len() as u64) < not_found + other_content {
            text += &format!("         and {} more\n", grouped(not_found + other_content - missing.len() as u64));
        }
    }
    text
}
