//! `nigh index`: makes the inverted index of the last week.

use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;

use anyhow::{Context, Result};
use clap::Args;

use super::remake::{Opened, RemakeArgs};
use crate::cli::errors::WrongUse;
use crate::cli::print::print_json;
use crate::cli::session::Session;
use crate::cli::session::run_record::RunRecord;
use crate::cli::session::signals::stop_on_signals;
use crate::cli::session::workers::WorkerCount;
use crate::jobs::index::{IndexPlan, index};
use crate::launch::{Peers, run_workers};
use crate::log::Log;
use crate::mirror::url_of;
use crate::report::print;
use crate::sheet::plural;
use crate::state::{Earlier, PostingRuns};
use crate::watch::Watch;

#[derive(Args)]
#[command(after_help = "Example:\n    nigh index crawls")]
pub(crate) struct IndexArgs {
    /// Folder of all tables.
    #[arg(value_name = "STORE")]
    store: PathBuf,
    #[command(flatten)]
    pub(crate) remake: RemakeArgs,
}

/// Makes the index, unless the store has it.
pub(crate) fn run(args: &IndexArgs, log: &Log) -> Result<ExitCode> {
    let wrong_use = |text: &str| WrongUse(text.to_owned());
    if url_of(&args.store)?.is_some() {
        return Err(wrong_use("the index stays on the machine that made it: a store in a bucket has none").into());
    }
    let opened = Opened::new(&args.store, &args.remake, false, log)?;
    let Opened { pool, store, manifest, config, guard, .. } = &opened;
    if !pool.is_this_process() {
        return Err(wrong_use("the index is made in one process: give --workers instead of --processes").into());
    }
    let week = manifest.weeks.last().with_context(|| format!("{} has no week yet", args.store.display()))?;
    let is_whole = store.postings(week).is_some_and(|runs| runs.are_whole(&store.postings_folder()));
    let made = if is_whole {
        None
    } else {
        let workers = WorkerCount::new(args.remake.workers, config, pool).of_shards(manifest.method.shards as usize)?;
        let plan = IndexPlan {
            store: store.clone(),
            week: week.clone(),
            weeks: Earlier { removed: manifest.removed.clone(), weeks: manifest.weeks.clone() },
            memory: config.memory() / workers as u64 / 2,
        };
        let guard = guard.as_ref().context("the store is locked")?;
        stop_on_signals(log, pool, guard.publish_handle(), {
            let text = format!("{} has no index yet. The same command starts again", args.store.display());
            move || Some(text.clone())
        });
        let session = Session { pool, log, bytes: 0, metrics: None, record: Arc::new(RunRecord::new(log)) };
        session.compute(|_| Ok(None), |watch| make(plan, workers, watch).map(Some))?
    };
    if args.remake.json {
        print_json(&serde_json::json!({ "week": week.week, "postings": made }))?;
    } else {
        let name = args.store.display();
        print(&match made {
            None => format!("{name} has the index of week {} already\n", week.week),
            Some(postings) => {
                format!("Made the index of week {} of {name}: {}\n", week.week, plural(postings, "posting"))
            }
        })?;
    }
    Ok(ExitCode::SUCCESS)
}

/// Makes and publishes the index. Returns the number of postings.
fn make(plan: IndexPlan, workers: usize, watch: &Arc<Watch>) -> Result<u64> {
    let (store, week) = (plan.store.clone(), plan.week.clone());
    let runs = run_workers(workers, Peers::None, watch, move |cx| index(cx, &plan))?;
    // All workers return the same list.
    store.keep_postings(&week, &store.unfinished(week.week), runs.first())?;
    Ok(runs.first().map_or(0, PostingRuns::count))
}
