//! `nigh run`: reads the job and the config, finds the pool of processes, and starts the job.

use std::process::ExitCode;

use anyhow::Result;

use super::args::RunArgs;
use super::errors::{WrongUse, exit_code};
use super::session::{check_kernels, pool_of};
use super::signals::leave_to_handler;
use super::tasks::{TaskRole, task_role};
use crate::config::{Cluster, Config, read_config};
use crate::job_file::{Job, read_job};
use crate::launch::Pool;
use crate::log::Log;

/// Runs the job. In a task that a scheduler started, other than the first, serves the run instead.
pub(crate) fn run(args: &RunArgs, log: &Log) -> Result<ExitCode> {
    let job = match &args.job {
        Some(path) => read_job(path).map_err(WrongUse::from_error)?,
        None => Job::Cluster(Cluster::default()),
    };
    log.name(job_name(&job, args));
    if args.job.is_none() {
        log.notice("no job file is given: every field has the default that `nigh init --out -` prints");
    }
    let config = args.config.as_deref().map_or_else(|| Ok(Config::default()), read_config);
    let mut config = config.map_err(WrongUse::from_error)?;
    check_kernels()?;
    let pool = match config.tasks.clone() {
        None => pool_of(&config, args.processes)?,
        Some(table) => match task_role(&table, &mut config, args, log)? {
            TaskRole::Supervisor(pool) => pool,
            TaskRole::Served(code) => return Ok(ExitCode::from(code)),
        },
    };
    let agents = pool.agents.clone();
    let result = run_job(job, &config, pool, args, log);
    leave_to_handler(log);
    if let Some(agents) = agents {
        agents.finish(result.as_ref().map_or_else(exit_code, |_| 0));
    }
    result
}

fn run_job(job: Job, config: &Config, pool: Pool, args: &RunArgs, log: &Log) -> Result<ExitCode> {
    match job {
        Job::Cluster(job) => super::week::run(job, config, pool, args, log),
        Job::Chunks(job) => super::chunks::run(job, config, &pool, args, log),
        Job::Study(study) => super::study::run(study, config, &pool, args, log),
    }
}

/// The name of the run in log lines: the kind of the job, and its week.
fn job_name(job: &Job, args: &RunArgs) -> String {
    let (kind, week) = match job {
        Job::Cluster(job) => ("cluster", args.week.or(job.week)),
        Job::Chunks(job) => ("chunks", args.week.or(job.week)),
        Job::Study(study) => (study.name(), study.clone().week().and_then(|week| args.week.or(*week))),
    };
    week.map_or_else(|| kind.to_owned(), |week| format!("{kind} {week}"))
}
