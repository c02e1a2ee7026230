//! `nigh run`: reads the job and the config, finds the pool of processes, and starts the job.

use std::path::Path;
use std::process::ExitCode;
use std::sync::Arc;

use anyhow::{Result, bail};

use super::tasks::{TaskRole, task_role};
use crate::cli::args::{RunArgs, is_typed};
use crate::cli::errors::{WrongUse, exit_code};
use crate::cli::session::run_record::{RunRecord, check_metrics_file};
use crate::cli::session::signals::leave_to_handler;
use crate::cli::session::{check_kernels, pool_of};
use crate::config::{Config, WeekName, read_config};
use crate::job_file::{AnyJob, JobWithFields, read_job_with};
use crate::launch::Pool;
use crate::log::Log;
use crate::records::Week;

/// Runs the job. In a task that a scheduler started, other than the first, serves the run instead.
pub(crate) fn run(args: &RunArgs, log: &Log) -> Result<ExitCode> {
    run_given(args, &is_typed, log)
}

/// As [`run`]; `is_given` says which flags do not come from variables.
pub(super) fn run_given(args: &RunArgs, is_given: &dyn Fn(&str) -> bool, log: &Log) -> Result<ExitCode> {
    let record = Arc::new(RunRecord::new(log));
    check_metrics_file(args.metrics_file.as_ref())?;
    record.read_last_success(args.metrics_file.as_ref());
    let result = read_and_run(args, is_given, log, &record);
    leave_to_handler(log);
    record.write_metrics(args, result.is_ok(), log);
    result
}

fn read_and_run(
    args: &RunArgs,
    is_given: &dyn Fn(&str) -> bool,
    log: &Log,
    record: &Arc<RunRecord>,
) -> Result<ExitCode> {
    let fields = args.fields.fields();
    // A reference says what to do: jobs/decontamination.toml is built in.
    let of_reference = is_given("--against").then_some(Path::new("jobs/decontamination.toml"));
    let path = args.job.as_deref().or(of_reference);
    let JobWithFields { job, replaced } = read_job_with(path, &fields).map_err(WrongUse::from_error)?;
    let args = &args.for_job(&job, is_given);
    if !args.against.is_empty() && !matches!(&job, AnyJob::Study(study) if study.clone().against().is_some()) {
        bail!(WrongUse(format!(
            "{}: --against is for [decontamination]: make the week first, and then compare it, with `nigh run --against` or \
             jobs/decontamination.toml",
            args.job_name()
        )));
    }
    let (kind, week) = name_of(&job, args);
    record.name(kind, week);
    log.name(week.map_or_else(|| kind.to_owned(), |week| format!("{kind} {week}")));
    if path.is_none() {
        log.notice("no job file is given: every field has the default that `nigh init --out -` prints, or the value of its flag");
    }
    if !replaced.is_empty() {
        let text = "the flags take the place of what the job says of the method";
        log.notice(&format!("{}: {text}: {}", args.job_name(), replaced.join(", ")));
    }
    let config = args.config.as_deref().map_or_else(|| Ok(Config::default()), read_config);
    let mut config = config.map_err(WrongUse::from_error)?;
    check_kernels()?;
    let pool = match config.tasks.clone() {
        None => pool_of(&config, args.processes)?,
        Some(table) => match task_role(&table, &mut config, args, log) {
            Ok(TaskRole::Supervisor(pool)) => pool,
            // The first task says what came of the run.
            Ok(TaskRole::Served(code)) => {
                record.set_served();
                return Ok(ExitCode::from(code));
            }
            Err(error) => {
                record.set_served();
                return Err(error);
            }
        },
    };
    let agents = pool.agents.clone();
    let result = run_job(job, &config, pool, args, log, record);
    leave_to_handler(log);
    if let Some(agents) = agents {
        agents.finish(result.as_ref().map_or_else(exit_code, |_| 0));
    }
    result
}

fn run_job(
    job: AnyJob,
    config: &Config,
    pool: Pool,
    args: &RunArgs,
    log: &Log,
    record: &Arc<RunRecord>,
) -> Result<ExitCode> {
    match job {
        AnyJob::Cluster(job) => super::week::run(job, config, pool, args, log, record),
        AnyJob::Chunks(job) => super::chunks::run(job, config, &pool, args, log, record),
        AnyJob::Study(study) => super::study::run(study, config, &pool, args, log, record),
    }
}

/// The kind of the job, and its week, if it is about one and that is known before the store is
/// read.
fn name_of(job: &AnyJob, args: &RunArgs) -> (&'static str, Option<Week>) {
    let by_clock = |of_job: Option<WeekName>| args.week.or(of_job).map(|week| week.date(Week::today()));
    match job {
        AnyJob::Cluster(job) => match args.week.or(job.week) {
            Some(WeekName::Date(week)) => ("cluster", Some(week)),
            _ => ("cluster", None),
        },
        AnyJob::Chunks(job) => ("chunks", by_clock(job.week)),
        AnyJob::Study(study) => {
            let week = study.clone().week().and_then(|week| by_clock(week.map(WeekName::Date)));
            (study.name(), week)
        }
    }
}
