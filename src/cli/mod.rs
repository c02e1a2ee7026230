//! The command line: the subcommands, and the one place that decides the exit code.
//!
//! The subcommands, each with the files that implement it:
//!
//! - `nigh run` computes a week, or the evolution of a store's weeks; `nigh add` adds a batch;
//!   `nigh studies` runs all studies on all weeks: `job`.
//! - `nigh init`: `init.rs` writes a commented job file.
//! - `nigh completions` and `nigh man`: `help.rs`.
//! - `nigh show`, `nigh why`, `nigh find`, `nigh report`, `nigh browse`, `nigh avoid`,
//!   `nigh figures`, `nigh table`: `look` looks into a store.
//! - `nigh export`: `export` writes the inputs of a week again without duplicates.
//! - `nigh roll-up`: `roll_up.rs` puts each set of replicas once into ranked lists.
//! - `nigh delete`, `nigh verify`, `nigh reshard`, `nigh index`, `nigh vacuum`, `nigh upgrade`,
//!   `nigh catalog`, `nigh check`: `store` changes a store that is there, or finds what is damaged.
//! - `nigh live`: `live.rs` keeps clusters right while documents come and go; only with the feature
//!   `live`.
//! - `nigh bench` measures speed: see `crate::bench`, which is compiled with the feature `bench`.
//! - `nigh pool`: `pool` makes keys and checks the hosts; only with the feature `pool`.
//! - `nigh worker` (`session/worker.rs`), `nigh live-keys` (`live.rs`) and `nigh probe` are hidden:
//!   other processes of `nigh` start them.
//!
//! What they share: `args` (the flags of `run`, with those that set fields of its job),
//! `columns.rs` (whether inputs have the columns that they name), `session` (one run, in this
//! process or in several: what is known of it at its end, how many workers it has, what Ctrl-C
//! does), `print.rs` (results on stdout), `errors.rs` (the exit codes).
//!
//! Results go to stdout, progress and errors to stderr. Exit codes: 0 done, 1 failed, 2 wrong use,
//! 3 too many rejects, 130 and 143 stopped by a signal.

mod args;
mod columns;
mod errors;
mod export;
mod help;
mod init;
mod job;
#[cfg(feature = "live")]
mod live;
mod look;
#[cfg(feature = "pool")]
mod pool;
mod print;
mod roll_up;
mod session;
mod store;

use std::process::ExitCode;
use std::sync::Arc;

use anyhow::Result;
use args::RunArgs;
use clap::{Parser, Subcommand, ValueEnum};
use errors::{WrongUse, exit_code};
use job::run::run;
use job::{add, studies};
#[cfg(feature = "bench")]
use session::check_kernels;
use session::signals::leave_to_handler;
use session::worker::worker;
use store::{catalog, check, delete, index, reshard, upgrade, vacuum, verify};

#[cfg(feature = "bench")]
use crate::bench;
use crate::log::{Display, Log};
use crate::objects::{CREDENTIALS_VARIABLE, use_machine_credentials};

/// Find near-duplicate web pages in weekly crawls, and write the clusters as Parquet tables.
#[derive(Parser)]
#[command(name = "nigh", version, about, max_term_width = 100)]
#[command(
    after_help = "Start with `nigh help run`. Exit codes: 0 done, 1 failed, 2 wrong use, 3 too many bad records."
)]
pub struct Cli {
    #[command(subcommand)]
    command: Command,
    /// Where the credentials of object stores come from [default: environment, or what
    /// NIGH_CLOUD_CREDENTIALS says].
    #[arg(long, global = true, value_enum, value_name = "SOURCE")]
    cloud_credentials: Option<CloudCredentials>,
}

/// Where the credentials of object stores come from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum CloudCredentials {
    /// Environment variables (AWS_*, GOOGLE_*, AZURE_*) only.
    Environment,
    /// Without these, the machine in a cloud that nigh runs on: it is asked at that cloud's
    /// metadata address.
    Instance,
}

impl CloudCredentials {
    /// What the environment says.
    ///
    /// # Errors
    /// If it says something else.
    fn of_environment() -> Result<CloudCredentials> {
        let Some(value) = std::env::var_os(CREDENTIALS_VARIABLE).filter(|value| !value.is_empty()) else {
            return Ok(CloudCredentials::Environment);
        };
        let value = value.to_string_lossy();
        CloudCredentials::from_str(&value, true).map_err(|_| {
            WrongUse(format!("{CREDENTIALS_VARIABLE}={value} is neither `environment` nor `instance`")).into()
        })
    }
}

#[derive(Subcommand)]
enum Command {
    /// Run a job: cluster the pages of a crawl, or compare the weeks of a store.
    Run(Box<RunArgs>),
    /// Add a batch to a store: its documents are compared with all that are there, which stay.
    Add(Box<add::AddArgs>),
    /// Keep clusters right in a process that stays up, while documents come and go over HTTP.
    #[cfg(feature = "live")]
    Live(live::LiveArgs),
    /// Run all studies on all weeks of a store, in order.
    Studies(studies::StudiesArgs),
    /// Write a commented job file.
    Init(init::InitArgs),
    /// Print the summary of a week; or its largest clusters, the pages of one or of a host, or what
    /// is known of a page.
    Show(look::ShowArgs),
    /// Say why two pages are in one cluster, or not: by levels, a chain of links, and the words
    /// that differ.
    Why(look::WhyArgs),
    /// Find the documents of a week that are most like a text or a page.
    Find(look::FindArgs),
    /// Write a page about a week: plots, clusters with their words, weeks and studies, in one file
    /// of HTML.
    Report(look::ReportArgs),
    /// Serve pages to a browser on this machine: clusters, their pages side by side, hosts, and a
    /// search.
    #[cfg(feature = "live")]
    Browse(look::BrowseArgs),
    /// List what a crawler need not fetch: prefixes of URLs whose pages are copies, by all studies
    /// of the store.
    Avoid(look::AvoidArgs),
    /// Draw every figure and table of the studies' papers from the tables of a store: pictures, CSV
    /// and one page with all.
    Figures(look::FiguresArgs),
    /// Write the rows of a table as CSV, TSV, JSON Lines, Parquet or Arrow; or list the tables.
    Table(look::TableArgs),
    /// Make the index of the last week, so that `nigh find` need not scan.
    Index(index::IndexArgs),
    /// Write the inputs of a week again without duplicates, or only these, or with what is known of
    /// each record.
    Export(export::ExportArgs),
    /// Put each set of replicas and each replicated collection once into ranked lists of URLs.
    RollUp(roll_up::RollUpArgs),
    /// Delete pages from the last week of a store, and forget their URLs.
    Delete(delete::DeleteArgs),
    /// Check the clusters of the last week of a store: pages that are not similar enough are split
    /// off.
    Verify(verify::VerifyArgs),
    /// Give a store more shards, so that more workers can write its tables.
    Reshard(reshard::ReshardArgs),
    /// Remove old weeks from a store.
    Vacuum(vacuum::VacuumArgs),
    /// Bring a store that an older version made up to date; its tables stay as they are.
    Upgrade(upgrade::UpgradeArgs),
    /// Keep the tables of a store as Delta Lake tables, too: metadata only, over the same files.
    Catalog(catalog::CatalogArgs),
    /// Read the files of a store, and report those that are damaged.
    Check(check::CheckStoreArgs),
    /// Measure how fast this machine reads, fingerprints and clusters.
    #[cfg(feature = "bench")]
    Bench(bench::BenchArgs),
    /// Measure how fast this machine reads, fingerprints and clusters: not in this program.
    #[cfg(not(feature = "bench"))]
    Bench(help::AbsentBench),
    /// Make TLS keys for a pool of machines, or check that the machines are ready.
    #[cfg(feature = "pool")]
    Pool(pool::PoolArgs),
    /// Print the completions of a shell.
    Completions(help::CompletionsArgs),
    /// Print the manual page.
    Man(help::ManArgs),
    /// Work as one process of several; `nigh run` starts it.
    #[command(hide = true)]
    Worker,
    /// Keep a part of the keys of `nigh live`, which starts it.
    #[cfg(feature = "live")]
    #[command(hide = true)]
    LiveKeys,
    /// Report on this host; `nigh pool check` starts it.
    #[cfg(feature = "pool")]
    #[command(hide = true)]
    Probe,
}

/// Runs the program with this process' arguments. The only place that decides the exit code.
pub fn main() -> ExitCode {
    let cli = Cli::parse();
    raise_open_files();
    report_large_files();
    let log = match &cli.command {
        Command::Run(args) => args.log(),
        Command::Add(args) => args.run().log(),
        Command::Index(args) => args.remake.log(),
        Command::Delete(args) => args.remake.log(),
        Command::Verify(args) => args.remake.log(),
        Command::Reshard(args) => args.remake.log(),
        Command::Studies(args) => args.log(),
        Command::Export(args) => Log::new(Display::Person, args.json),
        Command::Vacuum(args) => Log::new(Display::Person, args.json),
        Command::Catalog(args) => Log::new(Display::Person, args.json),
        Command::Upgrade(args) => Log::new(Display::Person, args.json),
        Command::Check(args) => Log::new(Display::Person, args.json),
        _ => Log::new(Display::Person, false),
    };
    match cli.cloud_credentials.map_or_else(CloudCredentials::of_environment, Ok) {
        Ok(CloudCredentials::Environment) => {}
        Ok(CloudCredentials::Instance) => use_machine_credentials(),
        Err(error) => {
            log.error(&format!("{error:#}"));
            return ExitCode::from(exit_code(&error));
        }
    }
    let result = match cli.command {
        Command::Run(args) => run(&args, &log),
        Command::Add(args) => add::run(*args, &log),
        #[cfg(feature = "live")]
        Command::Live(args) => live::run(&args, &log),
        Command::Init(args) => init::run(&args),
        Command::Show(args) => look::show(&args, &log),
        Command::Why(args) => look::why(&args),
        Command::Find(args) => look::find(&args),
        Command::Report(args) => look::report(&args),
        #[cfg(feature = "live")]
        Command::Browse(args) => look::browse(&args, &log),
        Command::Avoid(args) => look::avoid(&args),
        Command::Figures(args) => look::figures(&args),
        Command::Table(args) => look::table(&args, &log),
        Command::Studies(args) => studies::run(&args, &log),
        Command::Index(args) => index::run(&args, &log),
        Command::Export(args) => export::run(&args, &log),
        Command::RollUp(args) => roll_up::run(&args),
        Command::Delete(args) => delete::run(&args, &log),
        Command::Verify(args) => verify::run(&args, &log),
        Command::Reshard(args) => reshard::run(&args, &log),
        Command::Vacuum(args) => vacuum::run(&args, &log),
        Command::Catalog(args) => catalog::run(&args, &log),
        Command::Check(args) => check::run(&args, &log),
        Command::Upgrade(args) => upgrade::run(&args, &log),
        #[cfg(not(feature = "bench"))]
        Command::Bench(args) => args.refuse(),
        #[cfg(feature = "bench")]
        Command::Bench(args) => check_kernels()
            .and_then(|()| bench::bench(&args, |task| session::worker::ProcessWork::Bench(task).json_text())),
        #[cfg(feature = "pool")]
        Command::Pool(args) => pool::pool(&args),
        Command::Completions(args) => help::completions(&args),
        Command::Man(args) => help::man(&args),
        Command::Worker => worker(),
        #[cfg(feature = "live")]
        Command::LiveKeys => live::keys(),
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

/// Raises the limit on open files as far as the system allows. A worker opens many: each table of a
/// shard has one file for each wave of each week.
fn raise_open_files() {
    use rustix::process::{Resource, getrlimit, setrlimit};
    let limit = getrlimit(Resource::Nofile);
    // If this fails, the old limit holds, and opening one file too many is reported as an error.
    let _ = setrlimit(Resource::Nofile, rustix::process::Rlimit { current: limit.maximum, ..limit });
}

/// A file that would grow past the limit of sizes (`ulimit -f`) is an error of its write, which
/// names it. By default the signal of it ends the process without a word.
fn report_large_files() {
    // If this fails, it does.
    let _ = signal_hook::flag::register(signal_hook::consts::SIGXFSZ, Arc::default());
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use clap::CommandFactory as _;

    use super::*;

    #[test]
    fn every_command_has_help_and_run_has_examples() {
        let mut command = Cli::command();
        command.build();
        command.clone().debug_assert();
        for subcommand in command.get_subcommands() {
            assert!(subcommand.get_about().is_some(), "{}", subcommand.get_name());
        }
        let run = command.find_subcommand("run").unwrap().clone().render_long_help().to_string();
        assert!(run.contains("nigh run --input"), "{run}");
    }

    #[test]
    fn every_flag_of_run_is_a_variable_of_its_name() {
        let mut command = Cli::command();
        command.build();
        for name in ["run", "add"] {
            let flags = command.find_subcommand(name).unwrap().get_arguments();
            // The variable of a flag of all commands is read where it is used.
            let flags = flags.filter(|flag| !flag.is_global_set());
            for flag in flags.filter(|flag| !matches!(flag.get_id().as_str(), "help" | "job" | "to")) {
                let expected = format!("NIGH_{}", flag.get_long().unwrap().to_uppercase().replace('-', "_"));
                assert_eq!(flag.get_env(), Some(expected.as_ref()), "{name}");
                assert!(flag.is_hide_env_set(), "{expected} is named once, at the end of the help");
            }
        }
    }

    #[test]
    fn the_docs_list_the_commands_and_the_flags_of_run() {
        let path = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/running.md");
        let page = std::fs::read_to_string(path).unwrap();
        let mut command = Cli::command();
        command.build();
        let shown = |command: &clap::Command| {
            let names = command.get_subcommands().filter(|inner| !inner.is_hide_set() && inner.get_name() != "help");
            names.map(|inner| inner.get_name().to_owned()).collect::<Vec<_>>()
        };
        for name in shown(&command) {
            assert!(page.contains(&format!("| `nigh {name}")), "{name}");
        }
        for name in shown(command.find_subcommand("bench").unwrap()) {
            assert!(page.contains(&format!("\n| `{name}` |")), "bench {name}");
        }
        let run = command.find_subcommand("run").unwrap();
        for flag in run.get_arguments().filter(|flag| flag.get_id() != "help") {
            let Some(long) = flag.get_long() else { continue };
            let mut names = vec![format!("`--{long}`"), format!("`--{long} ")];
            names.extend(flag.get_short().map(|short| format!("`-{short}`")));
            assert!(names.iter().any(|name| page.contains(name)), "--{long}");
        }
    }

    /// The variables that a text names.
    fn variables(text: &str) -> BTreeSet<&str> {
        let is_part = |c: char| c.is_ascii_uppercase() || c == '_';
        let named = text.match_indices("NIGH_").map(|(at, _)| &text[at..]);
        let whole = named.map(|rest| rest.split(|c| !is_part(c)).next().unwrap_or_default());
        whole.filter(|name| name.len() > "NIGH_".len()).collect()
    }

    #[test]
    fn the_docs_list_the_variables_of_the_code() {
        let root = std::path::Path::new(env!("CARGO_MANIFEST_DIR"));
        let sources = ["src", "crates"].map(|folder| walkdir::WalkDir::new(root.join(folder)));
        let files = sources.into_iter().flatten().map(|entry| entry.unwrap().into_path());
        let texts: Vec<String> = files
            .filter(|path| path.extension().is_some_and(|extension| extension == "rs"))
            .map(|path| std::fs::read_to_string(path).unwrap())
            .collect();
        let of_code: BTreeSet<&str> = texts.iter().flat_map(|text| variables(text)).collect();
        let page = std::fs::read_to_string(root.join("docs/running.md")).unwrap();
        let section = page.split("\n## Variables\n").nth(1).unwrap().split("\n## ").next().unwrap();
        assert_eq!(variables(section), of_code);
    }
}
