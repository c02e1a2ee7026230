//! `nigh live`: keeps the clusters of a store right in a process that stays up.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::{Context, Result, bail};
use clap::{Args, ValueEnum};

use super::args::RunArgs;
use super::errors::WrongUse;
use super::session::{check_kernels, check_not_inside, lock, pool_of};
use crate::config::{Config, Count, read_config};
use crate::launch::{EXIT_PANIC, ProcessHost, exit_on_panic, program_command};
use crate::live::{
    Access, CommitEvery, Commitment, Commits, Committed, Follower, KeyProcesses, Limits, Refusal, Server, Service,
    Started, Tls, answer_lines, serve_keys,
};
use crate::log::Log;
use crate::mirror::{StoreLocation, WriteGuard, url_of};
use crate::objects::refuse_secrets;
use crate::records::DocumentKey;
use crate::sheet::{grouped, plural};
use crate::state::Store;

/// Examples at the end of `nigh help live`.
const EXAMPLES: &str = "\
Examples:
    nigh live corpus --by id
    curl -H 'Batch-Id: 1' --data-binary @documents.jsonl http://127.0.0.1:7744/documents
    nigh live corpus --stdin <documents.jsonl >answers.jsonl

Lines are {\"id\": \"17\", \"text\": \"...\"}, with `url` and `html` as well; {\"id\": \"17\", \"delete\": true} deletes. See docs/live.md.";

#[derive(Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct LiveArgs {
    /// Folder of all tables; it is made if it is not there.
    #[arg(value_name = "STORE")]
    store: PathBuf,
    /// Serve HTTP at this address [default: 127.0.0.1:7744, or not at all with --stdin].
    #[arg(long, value_name = "ADDRESS:PORT")]
    listen: Option<SocketAddr>,
    /// Read records from standard input, and print an answer for each.
    #[arg(long, conflicts_with = "listen")]
    stdin: bool,
    /// File with the token that requests must have. Without it only an address of this machine is
    /// allowed.
    #[arg(long, value_name = "FILE", conflicts_with = "stdin")]
    token_file: Option<PathBuf>,
    /// File with the certificate of the server in PEM, and those that lead to its authority:
    /// requests are encrypted. Needed where other machines reach the address.
    #[arg(long, value_name = "FILE", requires = "tls_key", conflicts_with = "stdin")]
    tls_cert: Option<PathBuf>,
    /// File with the key of that certificate in PEM.
    #[arg(long, value_name = "FILE", requires = "tls_cert")]
    tls_key: Option<PathBuf>,
    /// Take requests of other machines without encryption, behind a proxy that has it.
    #[arg(long, conflicts_with_all = ["stdin", "tls_cert"])]
    without_tls: bool,
    /// Take what comes to the files of this folder, too: lines of JSON (.jsonl), pages of archives
    /// (.warc, .warc.gz). Files may only grow.
    #[arg(long, value_name = "DIR", conflicts_with = "stdin")]
    follow: Option<PathBuf>,
    /// Commit by itself: after a time, such as 10min, or a number of lines, such as 50000, or after
    /// what comes first, 10min,50000 [default: only when it is asked to].
    #[arg(long, value_name = "TIME,LINES")]
    commit_every: Option<CommitEvery>,
    /// What a document of a new store is known by [default: url].
    #[arg(long, value_enum, value_name = "KEY")]
    by: Option<By>,
    /// Threads that find features and keep clusters [default: one for each core].
    #[arg(long, value_name = "N")]
    workers: Option<Count>,
    /// Config file: `workers`, `processes`, `timeout`, and [[hosts]], each of which has a part of
    /// the keys and features of documents [default: this machine].
    #[arg(long)]
    config: Option<PathBuf>,
    /// Processes on this machine, each of which has a part of the keys and features. Overrides
    /// `processes` of the config [default: 1].
    #[arg(long, value_name = "N")]
    processes: Option<Count>,
}

/// What a document is known by.
#[derive(Clone, Copy, Debug, ValueEnum)]
enum By {
    /// Its URL.
    Url,
    /// Its id.
    Id,
}

/// Reads the store and its journal, and answers until a signal ends the process, or standard input.
pub(crate) fn run(args: &LiveArgs, log: &Log) -> Result<ExitCode> {
    if url_of(&args.store)?.is_some() {
        if let Some(url) = args.store.to_str() {
            refuse_secrets(url).map_err(WrongUse::from_error)?;
        }
        bail!(WrongUse("`nigh live` works on a store in a folder: one in a bucket is not locked for so long".into()));
    }
    check_not_inside(&args.store)?;
    let config = args.config.as_deref().map_or_else(|| Ok(Config::default()), read_config);
    let config = config.map_err(WrongUse::from_error)?;
    check_kernels()?;
    let access = access(args, log)?;
    let address = args.listen.unwrap_or(([127, 0, 0, 1], 7744).into());
    access.check(address).map_err(WrongUse::from_error)?;
    let location = StoreLocation::at(&args.store, None)?;
    let guard = lock(&location, log)?;
    let store = Store::at(&args.store);
    store.recover()?;
    exit_on_panic(1);
    let by = args.by.map(|by| if matches!(by, By::Url) { DocumentKey::Url } else { DocumentKey::Id });
    let workers = args.workers.map_or_else(|| config.workers(1), |workers| workers.0);
    let limits = Limits::default();
    let others = other_processes(&config, args.processes, log)?;
    let (service, started) = Service::open_with(&store, by, workers, limits, others)?;
    if started.cut > 0 {
        log.notice(&format!(
            "{} at the end of the journal are no whole record, and are removed: a batch that was being written when the process ended",
            plural(started.cut, "byte")
        ));
    }
    let documents = plural(service.counts().0.documents, "document");
    let Started { documents: of_week, batches, .. } = started;
    log.notice(&format!("{documents}: {of_week} of the last week, and {batches} batches of the journal"));
    stop_on_signals(log);
    let commits = commits(args, guard, log);
    if args.stdin {
        answer_lines(service, commits, std::io::stdin(), std::io::stdout().lock(), limits)?;
    } else {
        let scheme = access.scheme();
        let follower = args.follow.as_ref().map(|folder| {
            Follower::new(folder, service.method().clone(), limits, service.followed().clone())
                .map_err(WrongUse::from_error)
        });
        let follower = follower.transpose()?;
        let server = Server::start(service, address, access, limits, commits)?;
        log.notice(&format!("listening at {scheme}://{}", server.address));
        if let Some(follower) = follower {
            let log = log.clone();
            server.follow(follower, move |text| log.warn(text));
        }
        server.wait();
    }
    Ok(ExitCode::SUCCESS)
}

/// Starts the other processes, which have a part of the keys each: those of the hosts of a pool, or
/// those on this machine besides this one.
fn other_processes(config: &Config, processes: Option<Count>, log: &Log) -> Result<KeyProcesses> {
    let pool = pool_of(config, processes)?;
    let here = usize::from(config.hosts.is_empty());
    let places: Vec<_> = pool.hosts.iter().skip(here).map(ProcessHost::place).collect();
    if places.is_empty() {
        return Ok(KeyProcesses::none());
    }
    let log = log.clone();
    let command = move |number: usize| {
        let launch = pool.hosts[number - 1 + here].launch(&["live-keys"])?;
        Ok((launch.command, launch.first))
    };
    KeyProcesses::start(places, config.timeout(), command, move |text| log.warn(text))
}

/// `nigh live-keys`: keeps a part of the keys for the process that started it.
pub(crate) fn keys() -> Result<ExitCode> {
    exit_on_panic(EXIT_PANIC);
    serve_keys(std::io::stdin().lock(), std::io::stdout().lock())?;
    Ok(ExitCode::SUCCESS)
}

/// How and when the service commits. The commands of a commit have the lock of the store from this
/// process, which keeps it.
fn commits(args: &LiveArgs, guard: WriteGuard, log: &Log) -> Commits {
    let store = args.store.clone();
    let committer = Box::new(move |commitment: &Commitment| {
        commitment.run(&store, || {
            let mut command = program_command()?;
            // They are for other runs: with NIGH_WEEK or NIGH_DRY_RUN a commit would go wrong.
            for flag in RunArgs::augment_args(clap::Command::new("run")).get_arguments() {
                flag.get_env().into_iter().for_each(|variable| _ = command.env_remove(variable));
            }
            command.stdin(guard.lend()?);
            Ok(command)
        })
    });
    let log = log.clone();
    let notice = Box::new(move |committed: &Result<Committed, Refusal>| match committed {
        Ok(Committed { week: Some(week), documents, deleted }) if documents + deleted > 0 => {
            let [documents, deleted] = [documents, deleted].map(|count| grouped(*count));
            log.notice(&format!("committed to week {week}: {documents} added or changed, {deleted} deleted"));
        }
        Ok(_) => {}
        Err(refusal) => log.error(&refusal.to_string()),
    });
    Commits::new(args.commit_every.unwrap_or_default(), committer, notice)
}

/// Who may send requests, by the files of the token and of the certificate.
fn access(args: &LiveArgs, log: &Log) -> Result<Access> {
    let access = Access::new(token(args)?.as_deref());
    let of_file =
        || args.token_file.as_ref().map_or_else(String::new, |path| format!("--token-file {}", path.display()));
    let mut access = access.with_context(of_file).map_err(WrongUse::from_error)?;
    if let (Some(certificate), Some(key)) = (&args.tls_cert, &args.tls_key) {
        let log = log.clone();
        let tls = Tls::read(certificate, key, move |text| log.warn(text));
        access = access.with_tls(tls.map_err(WrongUse::from_error)?);
    }
    Ok(if args.without_tls { access.with_plain() } else { access })
}

/// The token of the file, without the end of its line.
fn token(args: &LiveArgs) -> Result<Option<String>> {
    let Some(path) = &args.token_file else { return Ok(None) };
    let text = std::fs::read_to_string(path).with_context(|| format!("cannot read --token-file {}", path.display()))?;
    Ok(Some(text.trim_end_matches(['\r', '\n']).to_owned()))
}

/// Ends the process on SIGINT or SIGTERM: what was acknowledged is on the disk.
fn stop_on_signals(log: &Log) {
    let signals = signal_hook::iterator::Signals::new([signal_hook::consts::SIGINT, signal_hook::consts::SIGTERM]);
    let Ok(mut signals) = signals else { return };
    let log = log.clone();
    std::thread::spawn(move || {
        if let Some(signal) = signals.forever().next() {
            log.notice("stopped; every acknowledged batch is in the journal, which the next `nigh live` reads");
            std::process::exit(128 + signal);
        }
    });
}
