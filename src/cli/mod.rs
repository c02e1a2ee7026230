//! The command line: subcommands, their flags, and what they do.
//!
//! Results go to stdout, progress and errors to stderr. Exit codes: 0 done, 1 failed, 2 wrong use, 3 too many
//! rejects, 130 and 143 stopped by a signal.

mod args;
#[cfg(feature = "pool")]
mod check;
mod delete;
mod errors;
mod evolution;
#[cfg(feature = "pool")]
mod pool;
mod print;
mod run;
mod session;
mod show;
mod signals;
mod tasks;
mod vacuum;
mod week;
mod worker;

use std::process::ExitCode;

use args::{RunArgs, ShowArgs};
use clap::{Parser, Subcommand};
use errors::exit_code;
use run::run;
use session::known_kernels;
use show::show;
use signals::leave_to_handler;
use worker::{ProcessWork, worker};

use crate::bench;
use crate::log::{Display, Log};

/// Clusters near-duplicate web pages of weekly crawls.
#[derive(Parser)]
#[command(name = "nigh", version, about, max_term_width = 100)]
pub struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Run a job: read a crawl, find its clusters, write tables; or compare the weeks of a store.
    Run(RunArgs),
    /// Print the summary of a store's week.
    Show(ShowArgs),
    /// Delete pages from a store's last week, and their URLs from the store.
    Delete(delete::DeleteArgs),
    /// Remove old weeks from a store.
    Vacuum(vacuum::VacuumArgs),
    /// Measure how fast this machine reads, fingerprints and clusters.
    Bench(bench::BenchArgs),
    #[cfg(feature = "pool")]
    /// A pool of machines: keys by which its processes know each other, and whether it is fit to run on.
    Pool(pool::PoolArgs),
    /// One process of several; started by `run`.
    #[command(hide = true)]
    Worker,
    #[cfg(feature = "pool")]
    /// What a host finds out about itself; started by `pool check`.
    #[command(hide = true)]
    Probe,
}

/// Runs the program with this process' arguments; the one place that decides the exit code.
pub fn main() -> ExitCode {
    let cli = Cli::parse();
    raise_open_files();
    let log = match &cli.command {
        Command::Run(args) => Log::new(Display::new(args.quiet, args.verbose, args.json), args.json),
        Command::Delete(args) => args.log(),
        Command::Vacuum(args) => Log::new(Display::Person, args.json),
        _ => Log::new(Display::Person, false),
    };
    let result = match cli.command {
        Command::Run(args) => run(&args, &log),
        Command::Show(args) => show(&args),
        Command::Delete(args) => delete::run(&args, &log),
        Command::Vacuum(args) => vacuum::run(&args, &log),
        Command::Bench(args) => {
            known_kernels().and_then(|()| bench::bench(&args, |task| ProcessWork::Bench(task).told()))
        }
        #[cfg(feature = "pool")]
        Command::Pool(args) => pool::pool(&args),
        Command::Worker => worker(),
        #[cfg(feature = "pool")]
        Command::Probe => crate::launch::serve_probe().map(|()| ExitCode::SUCCESS),
    };
    leave_to_handler(&log);
    match result {
        Ok(code) => code,
        Err(error) => {
            log.error(&format!("{error:#}"));
            ExitCode::from(exit_code(&error))
        }
    }
}

/// Raises the number of files that may be open to what the system allows: a week's waves, and the weeks before it, are a
/// file each in every table of a shard.
fn raise_open_files() {
    use rustix::process::{Resource, getrlimit, setrlimit};
    let limit = getrlimit(Resource::Nofile);
    // Where it cannot be raised it stays: what opens too many files says so.
    let _ = setrlimit(Resource::Nofile, rustix::process::Rlimit { current: limit.maximum, ..limit });
}
