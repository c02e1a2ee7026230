//! `nigh run`: reads a job and a config, and starts the job.

use std::process::ExitCode;

use anyhow::Result;

use super::args::RunArgs;
use super::errors::{WrongUse, exit_code};
use super::session::{known_kernels, pool_of};
use super::signals::leave_to_handler;
use super::tasks::TaskRole;
use super::week::Crawled;
use crate::config::{Config, Job, read_config, read_job};
use crate::launch::Pool;
use crate::log::Log;

pub(crate) fn run(args: &RunArgs, log: &Log) -> Result<ExitCode> {
    let wrong_use = |error: anyhow::Error| WrongUse(format!("{error:#}"));
    let job = read_job(&args.job).map_err(wrong_use)?;
    log.name(job_name(&job, args));
    let mut config = args.config.as_deref().map_or_else(|| Ok(Config::default()), read_config).map_err(wrong_use)?;
    known_kernels()?;
    let pool = match config.tasks.clone() {
        None => pool_of(&config, args.processes)?,
        Some(table) => match super::tasks::part(&table, &mut config, args, log)? {
            TaskRole::Supervisor(pool) => pool,
            TaskRole::Over(code) => return Ok(ExitCode::from(code)),
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
        Job::Cluster(job) => super::week::run(Crawled::First(job), config, pool, args, log),
        Job::Weekly(job) => super::week::run(Crawled::Later(job), config, pool, args, log),
        Job::Evolution(job) => super::evolution::run(job, config, &pool, args, log),
    }
}

/// What log lines call a run.
fn job_name(job: &Job, args: &RunArgs) -> String {
    let (kind, week) = match job {
        Job::Cluster(job) => ("cluster", args.week.or(job.week)),
        Job::Weekly(job) => ("weekly", args.week.or(job.week)),
        Job::Evolution(_) => ("evolution", None),
    };
    week.map_or_else(|| kind.to_owned(), |week| format!("{kind} {week}"))
}
