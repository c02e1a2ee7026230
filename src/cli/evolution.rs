//! `nigh run` of an evolution job: the weeks of a store in, tables about them out.

use std::path::Path;
use std::process::ExitCode;
use std::sync::{Arc, Mutex, PoisonError};

use anyhow::{Context, Result, bail};

use super::args::RunArgs;
use super::errors::WrongUse;
use super::print::say_json;
use super::session::{Session, end_when_lost, home, notify, take_work};
use super::signals::stop_on_signals;
use super::worker::{ProcessWork, evolution};
use crate::config::{Config, Evolution, Job};
use crate::jobs::{EvolutionPlan, FOLDER};
use crate::launch::{Peers, Pool};
use crate::log::Log;
use crate::report;
use crate::report::print;
use crate::state::{History, Results, Store};
use crate::summary::EvolutionSummary;

/// Runs the job, and prints its summary.
pub(crate) fn run(mut job: Evolution, config: &Config, pool: &Pool, args: &RunArgs, log: &Log) -> Result<ExitCode> {
    job.store = args.store.clone().or(job.store);
    let place = args.job.display();
    let wrong_use = |text: String| -> Result<ExitCode> { Err(WrongUse(format!("{place}: {text}")).into()) };
    if !args.input.is_empty() {
        return wrong_use("--input is for jobs that read a crawl, this one reads the weeks of a store".into());
    }
    if args.week.is_some() {
        return wrong_use("--week is for jobs that make one week: set `first` and `last` in the job".into());
    }
    if args.replace {
        return wrong_use("--replace is for jobs that make one week: this one's tables are always made anew".into());
    }
    let Some(folder) = &job.store else {
        return wrong_use("no store: give --store DIR, or set it in the job".into());
    };
    if folder.to_str().is_none() {
        return wrong_use(format!("--store {}: the name is no UTF-8", folder.display()));
    }
    let home = home(folder, args.mirror.as_deref(), config)?;
    let notify_user = notify(log);
    let take = || home.take(&notify_user, end_when_lost(log));
    let early = match home.is_in_bucket() {
        true => {
            home.expect()?;
            match args.dry_run {
                true => home.look(&notify_user).map(|()| None)?,
                false => Some(take()?),
            }
        }
        false => None,
    };
    let store = home.store();
    let checked = plan(store, &job, config, args, pool)?;
    store.check_writable()?;
    if args.dry_run {
        match args.json {
            true => say_json(&serde_json::json!({ "plan": checked }))?,
            false => print(&planned(&checked, folder))?,
        }
        return Ok(ExitCode::SUCCESS);
    }
    if args.verbose && !args.json {
        eprint!("{}", planned(&checked, folder));
    }
    // What a run that was killed left is mended under the lock; what it was about to list is then a week, too.
    let mut taken = early.map_or_else(take, Ok)?;
    let store = take_work(store, pool, 0)?;
    store.recover()?;
    let plan = plan(&store, &job, config, args, pool)?;
    let results = Results::of(&store, FOLDER);
    results.begin()?;
    let made = Arc::new(Mutex::new(results));
    let now = made.clone();
    let former = folder.join(FOLDER).display().to_string();
    stop_on_signals(log, pool, taken.publish_handle(), move || {
        let results = now.lock().unwrap_or_else(PoisonError::into_inner);
        // Afterwards there is as little to stop as after a week's commit.
        (!results.has_begun_to_commit()).then(|| format!("{former} is as it was. The same command begins anew"))
    });
    let run = Session { pool, log, bytes: 0, metrics: args.metrics };
    let work = |epoch| {
        let mut plan = plan.clone();
        if epoch > 0 {
            let mut made = made.lock().unwrap_or_else(PoisonError::into_inner);
            if made.is_committed() {
                // The processes before did all of it, and did not live to tell.
                return Ok(None);
            }
            // What they were making is made again.
            let store = take_work(&store, pool, epoch)?;
            let results = Results::of(&store, FOLDER);
            results.begin()?;
            plan.work = store.work_name();
            *made = results;
        }
        Ok(Some(ProcessWork::Evolution(Box::new(plan))))
    };
    let alone = plan.clone();
    let mut summary: EvolutionSummary = match run.compute(work, move |watch| evolution(alone, Peers::None, watch))? {
        Some(summary) => summary,
        None => read_summary(&store)?,
    };
    taken.publish(false, &notify_user)?;
    if home.is_in_bucket() {
        summary.store = folder.clone();
    }
    match args.json {
        true => say_json(&summary)?,
        false => print(&report::evolution(&summary, &folder.join(FOLDER)))?,
    }
    Ok(ExitCode::SUCCESS)
}

/// The summary of the tables in a store.
fn read_summary(store: &Store) -> Result<EvolutionSummary> {
    let path = Results::of(store, FOLDER).folder().join("summary.json");
    let text = std::fs::read(&path).with_context(|| format!("cannot read {}", path.display()))?;
    serde_json::from_slice(&text).with_context(|| format!("{} is damaged", path.display()))
}

/// The job's weeks, with config and flags.
pub(crate) fn plan(
    store: &Store,
    job: &Evolution,
    config: &Config,
    args: &RunArgs,
    pool: &Pool,
) -> Result<EvolutionPlan> {
    let processes = pool.processes();
    let workers = args.workers.map_or(config.workers(processes), |count| count.0);
    let history = History::open(store, job.first, job.last)?;
    let Ok(text) = toml::to_string(&Job::Evolution(job.clone())) else { bail!("the job cannot be written down") };
    let worker_memory = config.memory() / (processes * workers) as u64;
    Ok(EvolutionPlan { work: store.work_name(), history, job: text, processes, workers, worker_memory })
}

/// What a run would do.
fn planned(plan: &EvolutionPlan, store: &Path) -> String {
    let history = &plan.history;
    let urls: u64 = history.last().rows.iter().sum();
    let (first, last, weeks) = (history.first().week, history.last().week, history.weeks.len());
    format!(
        "Store     {}\nWeeks     {weeks}, {first} to {last}\nURLs      {}\nWorkers   {} in each of {} processes\n",
        store.display(),
        report::grouped(urls),
        plan.workers,
        plan.processes
    )
}
