//! `nigh run` of a study: reads committed weeks of a store, and writes tables about them.

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::{Arc, Mutex, PoisonError};

use anyhow::{Result, ensure};

use crate::cli::args::RunArgs;
use crate::cli::errors::WrongUse;
use crate::cli::session::run_record::{Done, RunRecord};
use crate::cli::session::signals::stop_on_signals;
use crate::cli::session::worker;
use crate::cli::session::worker::ProcessWork;
use crate::cli::session::workers::{WorkerCount, warn_above_cores};
use crate::cli::session::{Session, check_name, locate_store, lock, notify, open_bucket, take_work};
use crate::config::{Bytes, Config};
use crate::launch::{Peers, Pool};
use crate::log::Log;
use crate::mirror::WriteGuard;
use crate::records::{DocumentKey, Week};
use crate::report::print;
use crate::sheet::grouped;
use crate::state::{PastWeek, Results, Store};
use crate::studies::{AnyStudy, StudyInput, StudyPlan, StudySummary, StudyTask};

/// Runs the job, and prints its summary.
pub(crate) fn run(
    mut study: AnyStudy,
    config: &Config,
    pool: &Pool,
    args: &RunArgs,
    log: &Log,
    record: &Arc<RunRecord>,
) -> Result<ExitCode> {
    if let Some(store) = &args.store {
        *study.store() = Some(store.clone());
    }
    let folder = check_flags(&mut study, args)?;
    let location = locate_store(&folder, args.mirror.as_deref(), config)?;
    let may_begin = study.works_without_weeks();
    if location.is_in_bucket() && !may_begin {
        location.expect()?;
    }
    let early_guard = open_bucket(&location, args.dry_run, log)?;
    let store = location.store();
    let task = make_task(store, &study, config, args, pool, &|text| log.notice(text))?;
    store.check_writable()?;
    warn_above_cores(task.plan.workers, pool, log);
    if args.dry_run {
        if args.json {
            let plan = serde_json::json!({ "plan": task.plan, "study": task.study });
            print(&record.json_text(&plan, Done::DryRun)?)?;
        } else {
            print(&plan_text(&task, &folder))?;
        }
        return Ok(ExitCode::SUCCESS);
    }
    if args.verbose && !args.json {
        log.lines(&plan_text(&task, &folder));
    }
    let mut guard = early_guard.map_or_else(|| lock(&location, log), Ok)?;
    let store = take_work(store, pool, 0)?;
    store.recover()?;
    // Plan again: the recovery may have finished the commit of a killed run, which adds a week.
    let task = make_task(&store, &study, config, args, pool, &|_| {})?;
    let session = Session { pool, log, bytes: 0, metrics: args.metrics, record: record.clone() };
    let mut summary = compute(task, &session, &store, &folder, &mut guard)?;
    if location.is_in_bucket() {
        // The name of the bucket, not that of the mirror.
        summary.set_store(folder.clone());
    }
    let report = |summary: &StudySummary| summary.report(&folder.join(study.name()));
    print(record.result_text(&summary, Done::Made, args.json, report)?)?;
    Ok(ExitCode::SUCCESS)
}

/// Refuses flags that mean nothing for this study. Returns the name of the store.
fn check_flags(study: &mut AnyStudy, args: &RunArgs) -> Result<PathBuf> {
    let wrong_use = |text: &str| Err(WrongUse(format!("{}: {text}", args.job_name())).into());
    if !args.input.is_empty() {
        let Some(input) = study.input() else {
            return wrong_use("--input is for jobs that read a crawl; this one reads the weeks of a store");
        };
        input.clone_from(&args.input);
    }
    if !args.against.is_empty()
        && let Some(against) = study.against()
    {
        against.clone_from(&args.against);
    }
    if let Some(week) = args.week {
        let Some(week_of_study) = study.week() else {
            return wrong_use("--week is for jobs about one week: set `first` and `last` in the job");
        };
        *week_of_study = Some(week.date(Week::today()));
    }
    if args.replace {
        return wrong_use("--replace is for jobs that make one week: this job always replaces its tables");
    }
    if args.allow_empty || args.no_accuracy || args.absent.is_some() || args.only_older {
        return wrong_use("--allow-empty, --no-accuracy, --absent and --only-older are for jobs that make a week");
    }
    let Some(store) = study.store() else {
        return wrong_use("no store: give --store DIR, or set it in the job");
    };
    check_name(store)?;
    Ok(store.clone())
}

/// Computes and publishes the tables. The caller has locked the store.
fn compute(
    mut task: StudyTask,
    session: &Session<'_>,
    store: &Store,
    folder: &Path,
    guard: &mut WriteGuard,
) -> Result<StudySummary> {
    let Session { pool, log, .. } = *session;
    let tables = task.study.name();
    let results = Results::next(store, tables)?;
    results.begin()?;
    task.plan.commit = results.commit_number();
    // A restart begins new results, and the signal handler must look at those.
    let results = Arc::new(Mutex::new(results));
    stop_on_signals(log, pool, guard.publish_handle(), {
        let (results, tables) = (results.clone(), folder.join(tables).display().to_string());
        move || {
            let results = results.lock().unwrap_or_else(PoisonError::into_inner);
            // Once the commit has begun, the run ends by itself.
            let text = format!("{tables} is unchanged. The same command starts again");
            (!results.has_begun_to_commit()).then_some(text)
        }
    });
    let work = |epoch| {
        let mut task = task.clone();
        if epoch > 0 {
            let mut results = results.lock().unwrap_or_else(PoisonError::into_inner);
            let store = take_work(store, pool, epoch)?;
            store.recover()?;
            if results.is_committed() {
                // The processes committed the tables, and failed before they reported it.
                return Ok(None);
            }
            // Unfinished tables are made again.
            *results = Results::next(&store, tables)?;
            results.begin()?;
            (task.plan.work, task.plan.commit) = (store.work_name(), results.commit_number());
        }
        Ok(Some(ProcessWork::Study(Box::new(task))))
    };
    let task_here = task.clone();
    let summary = session.compute(work, move |watch| worker::study(task_here, Peers::None, watch))?;
    let summary = match summary {
        Some(summary) => summary,
        None => {
            let commit = results.lock().unwrap_or_else(PoisonError::into_inner).commit_number();
            StudySummary::read(store, tables, commit)?
        }
    };
    guard.publish(false, &notify(log))?;
    Ok(summary)
}

/// The task: what the study finds to read, with config and flags applied.
fn make_task(
    store: &Store,
    study: &AnyStudy,
    config: &Config,
    args: &RunArgs,
    pool: &Pool,
    notice: &dyn Fn(&str),
) -> Result<StudyTask> {
    let processes = pool.processes();
    if let Some(manifest) = store.manifest()? {
        let documents = manifest.method.documents;
        ensure!(
            !study.compares_hosts() || documents == DocumentKey::Url,
            "this study compares hosts, and the store knows documents by their {documents}, not by URLs"
        );
    }
    let StudyInput { history, former, files } = study.find(store, notice)?;
    let workers = WorkerCount::new(args.workers, config, pool).of_shards(match history.weeks.last() {
        Some(week) => week.rows.len(),
        None => files.method.shards as usize,
    })?;
    let plan = StudyPlan {
        folder: study.name().to_owned(),
        work: store.work_name(),
        commit: 0,
        former,
        files,
        history,
        processes,
        workers,
        worker_memory: config.memory() / (processes * workers) as u64,
    };
    Ok(StudyTask { study: study.clone(), plan })
}

/// The plan as a dry run prints it.
fn plan_text(task: &StudyTask, store: &Path) -> String {
    let StudyTask { study, plan } = task;
    let (history, files) = (&plan.history, &plan.files);
    let weeks = match (history.weeks.first(), history.weeks.last()) {
        (Some(first), Some(last)) => format!("{}, {} to {}", history.weeks.len(), first.week, last.week),
        _ => "none".to_owned(),
    };
    let mut of_files = String::new();
    for (name, count, bytes) in [
        ("Lists", files.lists.len(), files.lists.iter().map(|file| file.bytes).sum()),
        ("Input", files.crawl.len(), files.crawl.iter().map(|input| input.bytes).sum()),
        ("Against", files.reference.len(), files.reference.iter().map(|file| file.input.bytes).sum()),
    ] {
        if count > 0 {
            of_files += &format!("{name:9} {} files, {}\n", grouped(count as u64), Bytes(bytes));
        }
    }
    let pages: u64 = study.weeks_read(&history.weeks).iter().map(PastWeek::documents).sum();
    format!(
        "Store     {}\nWeeks     {weeks}\nURLs      {}\nPages     {} to read\n{of_files}Memory    {} for records in flight, about \
         {} besides\nWorkers   {} in each of {} processes\n",
        store.display(),
        grouped(plan.urls()),
        grouped(pages),
        Bytes(plan.worker_memory * (plan.processes * plan.workers) as u64),
        Bytes(study.lasting_bytes(plan)),
        plan.workers,
        plan.processes
    )
}
