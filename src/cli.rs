//! The command line: subcommands, their flags, and what they do.
//!
//! Results go to stdout, progress and errors to stderr. Exit codes: 0 done, 1 failed, 2 wrong use, 3 too many
//! rejects, 130 and 143 stopped by a signal.

mod check;
mod delete;
mod evolution;
mod pool;
mod tasks;
mod vacuum;
mod week;

use std::ffi::OsString;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use anyhow::{Context, Result, bail};
use clap::{Args, Parser, Subcommand};
use timely::worker::Worker;

use crate::config::{Config, Count, Job, read_config, read_job};
use crate::jobs::evolution::EvolutionPlan;
use crate::kernels;
use crate::launch::{
    EXIT_PANIC, Outcome, Peers, Pool, Voice, exit_on_panic, run_workers, serve, serve_probe, supervise,
};
use crate::log::{Display, Log};
use crate::metrics::Metrics;
use crate::mirror::{Held, Home, Look, Say, url_of};
use crate::operators::{InProcess, TooManyRejects};
use crate::plan::Plan;
use crate::progress;
use crate::records::{Week, short_hash};
use crate::report::{self, say};
use crate::state::Store;
use crate::summary::Summary;
use crate::watch::{Progress, Watch};
use crate::{bench, jobs};
use tasks::Part;
use week::Crawled;

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
    /// A pool of machines: keys by which its processes know each other, and whether it is fit to run on.
    Pool(pool::PoolArgs),
    /// One process of several; started by `run`.
    #[command(hide = true)]
    Worker,
    /// What a host finds out about itself; started by `pool check`.
    #[command(hide = true)]
    Probe,
}

#[derive(Args)]
struct RunArgs {
    /// The job: what to compute (jobs/cluster.toml, for instance).
    job: PathBuf,
    /// The config: where to compute.
    #[arg(long)]
    config: Option<PathBuf>,
    /// Crawl files instead of the job's: paths, folders, globs, listings (*.paths, *.paths.gz), URLs.
    #[arg(long, num_args = 1.., value_name = "PATH_OR_GLOB_OR_URL")]
    input: Vec<String>,
    /// The week of the crawl, instead of the job's.
    #[arg(long, value_name = "YYYY-MM-DD")]
    week: Option<Week>,
    /// The folder of tables, or s3://BUCKET/PREFIX, instead of the job's.
    #[arg(long, value_name = "DIR_OR_URL")]
    store: Option<PathBuf>,
    /// The folder in which a store in a bucket is worked on, instead of the config's.
    #[arg(long, value_name = "DIR")]
    mirror: Option<PathBuf>,
    /// Worker threads of each process, instead of the config's.
    #[arg(long, value_name = "N")]
    workers: Option<Count>,
    /// Processes on this machine, instead of the config's.
    #[arg(long, value_name = "N")]
    processes: Option<Count>,
    /// Make the store's last week anew, where it is there already.
    #[arg(long)]
    replace: bool,
    /// Print what would be done and needed, check inputs and store, and stop.
    #[arg(long)]
    dry_run: bool,
    /// Print one JSON object on stdout, and JSON events on stderr.
    #[arg(long)]
    json: bool,
    /// Serve the run's counters for Prometheus, for all of its processes, at this address: 127.0.0.1:9184, for instance.
    #[arg(long, value_name = "ADDR:PORT")]
    metrics: Option<SocketAddr>,
    /// No progress.
    #[arg(short, long, conflicts_with = "verbose")]
    quiet: bool,
    /// Print the plan before the run, and how long each part took after it (where it runs in one process).
    #[arg(short, long)]
    verbose: bool,
}

#[derive(Args)]
struct ShowArgs {
    /// The folder of tables, or s3://BUCKET/PREFIX.
    store: PathBuf,
    /// The week; the last one where it is not given.
    #[arg(long, value_name = "YYYY-MM-DD")]
    week: Option<Week>,
    /// What became of the clusters of the week before.
    #[arg(long)]
    changes: bool,
    /// Print one JSON object.
    #[arg(long)]
    json: bool,
}

/// An error of whoever called: exit code 2.
#[derive(Debug)]
struct WrongUse(String);

impl std::fmt::Display for WrongUse {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for WrongUse {}

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
        Command::Bench(args) => known_kernels().and_then(|()| bench::bench(&args, |task| Work::Bench(task).told())),
        Command::Pool(args) => pool::pool(&args),
        Command::Worker => worker(),
        Command::Probe => serve_probe().map(|()| ExitCode::SUCCESS),
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

fn exit_code(error: &anyhow::Error) -> u8 {
    if error.is::<WrongUse>() {
        2
    } else if error.is::<TooManyRejects>() {
        3
    } else {
        1
    }
}

/// Finds out before anything is done whether `NIGH_KERNELS` names a level that this machine has.
fn known_kernels() -> Result<()> {
    kernels::chosen().map(|_| ()).map_err(|error| WrongUse(format!("{error:#}")).into())
}

fn run(args: &RunArgs, log: &Log) -> Result<ExitCode> {
    let wrong_use = |error: anyhow::Error| WrongUse(format!("{error:#}"));
    let job = read_job(&args.job).map_err(wrong_use)?;
    log.name(job_name(&job, args));
    let mut config = args.config.as_deref().map_or_else(|| Ok(Config::default()), read_config).map_err(wrong_use)?;
    known_kernels()?;
    let pool = match config.tasks.clone() {
        None => pool_of(&config, args.processes)?,
        Some(table) => match tasks::part(&table, &mut config, args, log)? {
            Part::Supervisor(pool) => pool,
            Part::Over(code) => return Ok(ExitCode::from(code)),
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
        Job::Cluster(job) => week::run(Crawled::First(job), config, pool, args, log),
        Job::Weekly(job) => week::run(Crawled::Later(job), config, pool, args, log),
        Job::Evolution(job) => evolution::run(job, config, &pool, args, log),
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

/// How a run is computed, and shown.
struct Run<'a> {
    pool: &'a Pool,
    log: &'a Log,
    /// Bytes of input that are still to be read.
    bytes: u64,
    /// Where metrics are served.
    metrics: Option<SocketAddr>,
}

impl Run<'_> {
    /// Does the work in this process, by `alone`, or in several; `None` where a generation of processes did all of it
    /// and did not live to tell. What the processes are to do comes from `work`, made anew for each generation.
    fn compute<S: serde::de::DeserializeOwned>(
        &self,
        mut work: impl FnMut(u64) -> Result<Option<Work>>,
        alone: impl FnOnce(&Arc<Watch>) -> Result<Option<S>>,
    ) -> Result<Option<S>> {
        if self.pool.is_this_process() {
            exit_on_panic(1);
            self.log.is_of(0);
            let watch = Arc::new(Watch::default());
            let read = watch.clone();
            let _metrics = self.serve_metrics(move || vec![read.progress()])?;
            let read = watch.clone();
            let shown = progress::show(self.log, self.bytes, move || read.progress());
            let summary = alone(&watch)?;
            drop(shown);
            self.log.spans(&watch.spans());
            return summary.context("worker 0 gives the summary").map(Some);
        }
        let progresses = Arc::new(Mutex::new(Vec::<Progress>::new()));
        let read = progresses.clone();
        let _metrics =
            self.serve_metrics(move || read.lock().unwrap_or_else(|poisoned| poisoned.into_inner()).clone())?;
        let read = progresses.clone();
        let _shown = progress::show(self.log, self.bytes, move || {
            let progresses = read.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
            progresses.iter().copied().reduce(Progress::sum).unwrap_or_default()
        });
        let log = self.log.clone();
        let voice: Voice = Arc::new(move |event| {
            // A plan may be asked for and come to nothing: only a restart begins an epoch.
            if event.kind == "restart" {
                log.begins(event.epoch);
            }
            log.event(event);
        });
        let mut plans = |epoch| work(epoch)?.map(|work| work.told()).transpose();
        match supervise(self.pool, &mut plans, &progresses, &voice)? {
            Outcome::Done(summary) => {
                summary.map(|summary| serde_json::from_str(&summary).context("a summary is plain data")).transpose()
            }
            Outcome::Failed { message, code: 3, .. } => Err(TooManyRejects(message).into()),
            Outcome::Failed { message, .. } => bail!(message),
        }
    }
}

impl Run<'_> {
    fn serve_metrics(&self, read: impl Fn() -> Vec<Progress> + Send + 'static) -> Result<Option<Metrics>> {
        let Some(address) = self.metrics else { return Ok(None) };
        let metrics = Metrics::serve(address, read)?;
        self.log.notice(&format!("metrics are at http://{}/metrics", metrics.address));
        Ok(Some(metrics))
    }
}

/// The machines of a config, with the command's flags.
fn pool_of(config: &Config, processes: Option<Count>) -> Result<Pool> {
    if config.tasks.is_some() {
        bail!(WrongUse("a config with [tasks] is for `nigh run`, which the scheduler starts".into()));
    }
    match processes {
        Some(_) if !config.hosts.is_empty() => bail!(WrongUse(
            "--processes is for this machine alone: a pool has as many processes as its config has [[hosts]]".into()
        )),
        Some(count) => Ok(Pool::here(count.0, config)),
        None => Pool::new(config),
    }
}

/// The store of a command: what is given, worked on where the flag, the config or this user's cache says.
fn home(given: &Path, flag: Option<&Path>, config: &Config) -> Result<Home> {
    let mirror = flag.or(config.mirror.as_deref());
    let is_shared = !config.hosts.is_empty() || config.tasks.is_some();
    if mirror.is_none() && is_shared && url_of(given)?.is_some() {
        let text = format!(
            "a pool works on {} in a folder that all of its machines see: give it as `mirror` in the config, or by --mirror",
            given.display()
        );
        return Err(WrongUse(text).into());
    }
    Home::at(given, mirror)
}

/// Says what a person should know.
fn say_notices(log: &Log) -> Say {
    let log = log.clone();
    Arc::new(move |text| log.notice(text))
}

/// Ends the run whose lock is another's.
fn end_when_lost(log: &Log) -> impl Fn(&str) + Send + 'static {
    let log = log.clone();
    move |reason| {
        log.error(reason);
        std::process::exit(1);
    }
}

/// The store, for the generation of processes of this number. Processes on this machine are surely gone before the next
/// ones begin; one on a host that cannot be reached is not, and would find its folder of work moved away.
fn take_work(store: &Store, pool: &Pool, epoch: u64) -> Result<Store> {
    let store = match pool.is_on_this_machine() {
        true => Store::at(store.root()),
        false => {
            let name = format!("{} {} {epoch}", std::process::id(), jiff::Timestamp::now());
            store.working_in(&format!("_work-{}", short_hash(name.as_bytes())))
        }
    };
    store.take_work()?;
    Ok(store)
}

/// Whether an error may be gone at the next attempt: what comes from a network, or from a file system that is on one.
fn passes(error: &anyhow::Error) -> bool {
    use std::io::ErrorKind;
    let network = |error: &std::io::Error| {
        matches!(
            error.kind(),
            ErrorKind::TimedOut
                | ErrorKind::ConnectionReset
                | ErrorKind::ConnectionAborted
                | ErrorKind::BrokenPipe
                | ErrorKind::NetworkUnreachable
                | ErrorKind::HostUnreachable
                | ErrorKind::StaleNetworkFileHandle
        ) || error.raw_os_error() == Some(rustix::io::Errno::IO.raw_os_error())
    };
    error.chain().any(|cause| cause.downcast_ref().is_some_and(network))
}

fn cluster(plan: Plan, peers: Peers, watch: &Arc<Watch>) -> Result<Option<Summary>> {
    let (workers, plan, watched) = (plan.workers, Arc::new(plan), watch.clone());
    let shared = Arc::<InProcess>::default();
    let work = move |worker: &mut Worker| jobs::cluster::cluster(worker, &plan, &shared, &watched);
    let summaries = run_workers(workers, peers, watch, work)?;
    Ok(summaries.into_iter().flatten().next())
}

/// What one process of several is started for.
#[derive(serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "kebab-case")]
enum Work {
    /// A run.
    Run(Box<Plan>),
    /// The run of an evolution job.
    Evolution(Box<EvolutionPlan>),
    /// A benchmark.
    Bench(bench::Task),
}

impl Work {
    /// As the process is told it.
    fn told(&self) -> Result<String> {
        serde_json::to_string(self).context("a plan is plain data")
    }
}

/// A summary as one line of JSON.
fn told(summary: &impl serde::Serialize) -> Result<String> {
    serde_json::to_string(summary).context("a summary is plain data")
}

/// One process of several.
fn worker() -> Result<ExitCode> {
    exit_on_panic(EXIT_PANIC);
    let failed = |error: &anyhow::Error| Outcome::Failed {
        message: format!("{error:#}"),
        code: exit_code(error),
        passes: passes(error),
    };
    let work = |plan: &str, peers: Peers, watch: Arc<Watch>| {
        let run = || -> Result<Option<String>> {
            match serde_json::from_str(plan).context("the supervisor speaks another version")? {
                Work::Run(plan) => cluster(*plan, peers, &watch)?.as_ref().map(told).transpose(),
                Work::Evolution(plan) => evolution::evolution(*plan, peers, &watch)?.as_ref().map(told).transpose(),
                Work::Bench(task) => bench::serve_task(&task, peers, &watch),
            }
        };
        run().map_or_else(|error| failed(&error), Outcome::Done)
    };
    Ok(ExitCode::from(serve(work, failed)?))
}

/// Whether a signal ends the run in order, as [`stop_on_signals`] does.
static STOPS_IN_ORDER: AtomicBool = AtomicBool::new(false);

/// What is kept of a run that was stopped while it published.
const MADE_NOT_PUBLISHED: &str = "what was made is kept, and the store is as it was. The same command publishes it";

/// How long the end of a stopped run may take once all is said: freeing the lock in a bucket that does not answer.
const LAST_WORDS: Duration = Duration::from_secs(5);

/// Ends the run when a signal asks for it. What is committed stays, as `kept` says; other processes end with this one.
/// Where it says nothing all is committed already, and the run is not stopped any more; but what is not published yet can be
/// published by the next run. Nothing is published after it was said that it is not.
fn stop_on_signals(log: &Log, pool: &Pool, held: Held, kept: impl Fn() -> Option<String> + Send + 'static) {
    let signals = signal_hook::iterator::Signals::new([signal_hook::consts::SIGINT, signal_hook::consts::SIGTERM]);
    // Without the handler a signal still ends the run, only without a word.
    let Ok(mut signals) = signals else { return };
    STOPS_IN_ORDER.store(true, Ordering::Release);
    let (agents, log) = (pool.agents.clone(), log.clone());
    std::thread::spawn(move || {
        for signal in signals.forever() {
            let unpublished = || (!held.is_published()).then(|| MADE_NOT_PUBLISHED.to_owned());
            let Some(kept) = kept().or_else(unpublished) else { continue };
            let text = format!("stopped; {kept}: {}", command_text(std::env::args_os()));
            // A commit that has begun meanwhile is let end.
            if !held.give_up() {
                continue;
            }
            log.stopped(&text);
            agents.iter().for_each(|agents| agents.finish((128 + signal) as u8));
            held.free(LAST_WORDS);
            std::process::exit(128 + signal);
        }
    });
}

/// Waits for the end that a signal's handler has begun: a run that fails because of it has nothing to say.
fn leave_to_handler(log: &Log) {
    if log.is_stopped() {
        // The handler ends the process long before.
        std::thread::sleep(Duration::from_secs(60));
    }
}

/// A command as a shell takes it; what is no UTF-8 in it is shown as such.
fn command_text(arguments: impl Iterator<Item = OsString>) -> String {
    let arguments: Vec<String> = arguments.map(|argument| quoted(&argument.to_string_lossy())).collect();
    arguments.join(" ")
}

/// An argument as a shell takes it.
fn quoted(argument: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_./:=@,+%".contains(c);
    if !argument.is_empty() && argument.chars().all(plain) {
        argument.to_owned()
    } else {
        format!("'{}'", argument.replace('\'', "'\\''"))
    }
}

fn show(args: &ShowArgs) -> Result<ExitCode> {
    let text = Look::at(&args.store, |look| shown(args, look))?;
    say(&text).map(|()| ExitCode::SUCCESS)
}

/// What is to be said of a store.
fn shown(args: &ShowArgs, look: &Look) -> Result<String> {
    let store = look.store();
    let manifest = store.manifest()?.with_context(|| {
        format!("{} is no store: it has no manifest.json (a store is what `nigh run` makes)", args.store.display())
    })?;
    let weeks: Vec<String> = manifest.weeks.iter().map(|week| week.week.to_string()).collect();
    let known = match args.week {
        Some(week) => manifest
            .weeks
            .iter()
            .find(|known| known.week == week)
            .with_context(|| format!("{} has no week {week}; it has {}", args.store.display(), weeks.join(", ")))?,
        None => manifest.weeks.last().with_context(|| format!("{} has no week yet", args.store.display()))?,
    };
    look.need(&known.week.folder(), &["summary.json"])?;
    let mut summary = Summary::read(&store.week(known.week))?;
    // Where the store is now, not where it was made.
    summary.store = args.store.clone();
    if args.changes {
        let since = summary.since.with_context(|| {
            format!("week {} is the first of {}: nothing has changed yet", known.week, args.store.display())
        })?;
        look.need(&known.week.folder(), &["changes/", "clusters/"])?;
        look.need(&since.week.folder(), &["clusters/"])?;
        let changes = report::changes(known.week, &store.week(known.week), &store.week(since.week), since)?;
        return match args.json {
            true => Ok(format!("{}\n", serde_json::to_string(&changes).context("changes are plain data")?)),
            false => Ok(changes.to_string()),
        };
    }
    summary_text(&summary, args.json)
}

fn say_json(summary: &impl serde::Serialize) -> Result<()> {
    say(&format!("{}\n", told(summary)?))
}

fn print_summary(summary: &Summary, json: bool) -> Result<()> {
    say(&summary_text(summary, json)?)
}

fn summary_text(summary: &Summary, json: bool) -> Result<String> {
    match json {
        true => Ok(format!("{}\n", told(summary)?)),
        false => Ok(report::summary(summary)),
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::ffi::OsStringExt as _;

    use super::*;

    #[test]
    fn commands_are_shown_whatever_their_bytes() {
        let arguments =
            [&b"nigh"[..], b"run", b"caf\xe9.toml", b"it's"].map(|bytes| OsString::from_vec(bytes.to_vec()));
        assert_eq!(command_text(arguments.into_iter()), "nigh run 'caf\u{fffd}.toml' 'it'\\''s'");
    }

    #[test]
    fn a_bucket_of_several_machines_wants_a_mirror_that_all_see() {
        let tasks = "keys = \"k\"\n[tasks]\nscheduler = \"slurm\"\n";
        let hosts = "[[hosts]]\nname = \"a\"\n";
        for text in [tasks, hosts] {
            let config: Config = toml::from_str(text).unwrap();
            let error = home(Path::new("s3://bucket/store"), None, &config).unwrap_err();
            assert!(error.is::<WrongUse>() && error.to_string().contains("`mirror` in the config"), "{error}");
            home(Path::new("folder"), None, &config).unwrap();
        }
    }
}
