//! `nigh delete`: pages leave a store's last week, and their URLs the store.

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::{Context, Result};
use clap::Args;

use super::errors::WrongUse;
use super::print::say_json;
use super::session::{Session, end_when_lost, home, notify, pool_of, take_work};
use super::signals::stop_on_signals;
use super::worker::{ProcessWork, cluster};
use crate::config::{Config, Count, Mode, Reading, read_config};
use crate::jobs::deletion;
use crate::launch::{Peers, Pool};
use crate::log::{Display, Log};
use crate::plan::{Deletion, Plan};
use crate::records::{DocId, Week};
use crate::report::{grouped, print};
use crate::state::{Earlier, Manifest, Store};
use crate::summary::Summary;
use crate::text::{InvalidPattern, UrlPatterns, canonical};

#[derive(Args)]
pub(crate) struct DeleteArgs {
    /// The folder of tables, or s3://BUCKET/PREFIX.
    #[arg(long, value_name = "DIR_OR_URL")]
    store: PathBuf,
    /// The folder in which a store in a bucket is worked on, instead of the config's.
    #[arg(long, value_name = "DIR")]
    mirror: Option<PathBuf>,
    #[command(flatten)]
    meant: Meant,
    /// The config: where to compute.
    #[arg(long)]
    config: Option<PathBuf>,
    /// Worker threads of each process, instead of the config's.
    #[arg(long, value_name = "N")]
    workers: Option<Count>,
    /// Processes on this machine, instead of the config's.
    #[arg(long, value_name = "N")]
    processes: Option<Count>,
    /// Print how many URLs would be deleted, and stop.
    #[arg(long)]
    dry_run: bool,
    /// Print one JSON object on stdout, and JSON events on stderr.
    #[arg(long)]
    json: bool,
    /// No progress.
    #[arg(short, long)]
    quiet: bool,
}

/// Which pages.
#[derive(Args)]
#[group(required = true, multiple = true)]
struct Meant {
    /// The pages of these URLs.
    #[arg(long, num_args = 1.., value_name = "URL")]
    url: Vec<String>,
    /// The pages of URLs listed in a file, one a line.
    #[arg(long, value_name = "FILE")]
    urls: Option<PathBuf>,
    /// All pages of these hosts, not of their subdomains.
    #[arg(long, num_args = 1.., value_name = "HOST")]
    host: Vec<String>,
    /// All pages whose URL begins so.
    #[arg(long, num_args = 1.., value_name = "URL")]
    prefix: Vec<String>,
}

/// What was deleted.
#[derive(serde::Serialize)]
struct Deleted {
    /// From which week.
    week: Week,
    /// URLs of the store that were meant.
    urls: u64,
    /// Whether links or bad records of the week name such URLs, where none of them is the store's.
    named: bool,
    /// Their pages in the week; not known before it is made anew.
    documents: Option<u64>,
}

impl DeleteArgs {
    /// The log of the command.
    pub(crate) fn log(&self) -> Log {
        Log::new(Display::new(self.quiet, false, self.json), self.json)
    }
}

/// Deletes pages, and says how many.
pub(crate) fn run(args: &DeleteArgs, log: &Log) -> Result<ExitCode> {
    let wrong_use = |error: anyhow::Error| WrongUse(format!("{error:#}"));
    let config = args.config.as_deref().map_or_else(|| Ok(Config::default()), read_config).map_err(wrong_use)?;
    super::session::known_kernels()?;
    let patterns = args.meant.patterns()?;
    let home = home(&args.store, args.mirror.as_deref(), &config)?;
    let store = home.store().clone();
    if args.store.to_str().is_none() {
        return Err(WrongUse(format!("--store {}: the name is no UTF-8", args.store.display())).into());
    }
    store.check_writable()?;
    // A folder that is no store is not made one by its lock.
    home.expect()?;
    let pool = pool_of(&config, args.processes)?;
    let notify_user = notify(log);
    let mut taken = match args.dry_run {
        true => home.look(&notify_user).map(|()| None)?,
        false => Some(home.take(&notify_user, end_when_lost(log))?),
    };
    let store = if taken.is_some() { take_work(&store, &pool, 0)? } else { store };
    if taken.is_some() {
        store.recover()?;
    }
    let manifest = manifest(&store)?;
    let plan = plan(&store, &manifest, &config, args, &patterns, &pool)?;
    log.name(format!("delete {}", plan.week));
    let docs = find(&store, &manifest, &patterns)?;
    // Others may still name what has no page here.
    let named = docs.is_empty() && deletion::is_named(&store, plan.week, &patterns)?;
    let mut deleted = Deleted { week: plan.week, urls: docs.len() as u64, named, documents: None };
    let Some(taken) = taken.as_mut().filter(|_| !docs.is_empty() || named) else {
        return done(args, &deleted, &patterns, log);
    };
    let begin = |store: &Store| {
        let dropped = store.begin(plan.week, &plan.method, &plan.key())?.dropped;
        if dropped > 0 {
            log.notice(&format!("week {} was being made anew: its {dropped} waves are dropped", plan.week));
        }
        deletion::note(&store.unfinished(plan.week), &docs)
    };
    begin(&store)?;
    let before = Summary::read(&store.week(plan.week))?;
    let (kept, week, key) = (store.clone(), plan.week, plan.key().hash);
    let is_made = move || -> Result<bool> {
        let manifest = kept.manifest()?;
        Ok(manifest.is_some_and(|manifest| manifest.weeks.iter().any(|known| known.week == week && known.key == key)))
    };
    let (made, root) = (is_made.clone(), args.store.display().to_string());
    stop_on_signals(log, &pool, taken.publish_handle(), move || {
        let text = format!("week {week} of {root} is as it was. The same command begins anew");
        (!made().unwrap_or(false)).then_some(text)
    });
    let run = Session { pool: &pool, log, bytes: 0, metrics: None };
    let work = |epoch| {
        let mut plan = plan.clone();
        if epoch > 0 {
            let store = take_work(&store, &pool, epoch)?;
            store.recover()?;
            if is_made()? {
                return Ok(None);
            }
            begin(&store)?;
            plan.work = store.work_name();
        }
        Ok(Some(ProcessWork::Run(Box::new(plan))))
    };
    let alone = plan.clone();
    let after = match run.compute(work, |watch| cluster(alone, Peers::None, watch))? {
        Some(summary) => summary,
        None => Summary::read(&store.week(week))?,
    };
    taken.publish(false, &notify_user)?;
    deleted.documents = Some(before.counts.documents - after.counts.documents);
    done(args, &deleted, &patterns, log)
}

fn manifest(store: &Store) -> Result<Manifest> {
    store.manifest()?.with_context(|| {
        let root = store.root().display();
        format!("{root} is not a nigh store (no manifest.json): `nigh run jobs/cluster.toml` makes a store")
    })
}

impl Meant {
    fn patterns(&self) -> Result<UrlPatterns> {
        let mut urls = self.url.clone();
        if let Some(path) = &self.urls {
            let text = std::fs::read_to_string(path)
                .map_err(|error| WrongUse(format!("--urls: cannot read {}: {error}", path.display())))?;
            for (number, line) in text.lines().map(str::trim).enumerate().filter(|(_, line)| !line.is_empty()) {
                if canonical(line).is_none() {
                    let place = format!("{}, line {}", path.display(), number + 1);
                    return Err(WrongUse(format!("{place}: `{line}` is not an http or https URL")).into());
                }
                urls.push(line.to_owned());
            }
        }
        let patterns = UrlPatterns::new(&urls, &self.host, &self.prefix).map_err(|InvalidPattern(what)| {
            let flag = match () {
                () if self.host.contains(&what) => "--host",
                () if self.prefix.contains(&what) => "--prefix",
                () => "--url",
            };
            let wanted = match flag {
                "--host" => "a host, as example.com or example.com:8080",
                "--prefix" => "the beginning of an http or https URL in its canonical form (as tables have URLs)",
                _ => "an http or https URL",
            };
            WrongUse(format!("{flag}: `{what}` is not {wanted}"))
        })?;
        if patterns.is_empty() {
            return Err(WrongUse("--urls: the file lists no URL".into()).into());
        }
        Ok(patterns)
    }
}

/// The week as it is to be made.
fn plan(
    store: &Store,
    manifest: &Manifest,
    config: &Config,
    args: &DeleteArgs,
    patterns: &UrlPatterns,
    pool: &Pool,
) -> Result<Plan> {
    let last = manifest.weeks.last().with_context(|| format!("{} has no week yet", store.root().display()))?;
    let whole = store.whole(last.week)?;
    let path = store.week(last.week).join("job.toml");
    let job = std::fs::read_to_string(&path).with_context(|| format!("cannot read {}", path.display()))?;
    let processes = pool.processes();
    let workers = args.workers.map_or(config.workers(processes), |count| count.0);
    Ok(Plan {
        week: last.week,
        store: store.root().to_owned(),
        work: store.work_name(),
        earlier: Earlier::before(manifest, last.week),
        deletion: Some(Deletion { patterns: patterns.clone(), of: last.clone(), key: whole.journal.key }),
        mode: Mode::Auto,
        method: manifest.method.clone(),
        reading: Reading::default(),
        inputs: Vec::new(),
        waves: Vec::new(),
        // What was bad when the crawl was read is no worse now.
        max_reject_share: 1.0,
        job: format!("{job}# Deleted since: {patterns}.\n"),
        processes,
        workers,
        worker_memory: config.memory() / (processes * workers) as u64,
    })
}

/// The ids of all URLs that are meant.
fn find(store: &Store, manifest: &Manifest, patterns: &UrlPatterns) -> Result<Vec<DocId>> {
    let weeks = Earlier { removed: manifest.removed.clone(), weeks: manifest.weeks.clone() };
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    deletion::matching(store, &weeks, patterns, manifest.method.shards, threads)
}

fn done(args: &DeleteArgs, deleted: &Deleted, patterns: &UrlPatterns, log: &Log) -> Result<ExitCode> {
    if args.json {
        say_json(deleted)?;
        return Ok(ExitCode::SUCCESS);
    }
    let Deleted { week, urls, named, documents } = deleted;
    let store = args.store.display();
    let text = match documents {
        None if *named => {
            format!("Would leave out what links and bad records of week {week} say of such URLs ({patterns})\n")
        }
        None if *urls == 0 => format!("{store} knows no such URL ({patterns}): nothing to delete\n"),
        None => format!("Would delete {} URLs from {store}, week {week} ({patterns})\n", grouped(*urls)),
        Some(_) if *named => {
            format!(
                "Left out what links and bad records of week {week} say of such URLs ({patterns}); it has no such page\n"
            )
        }
        Some(documents) => format!(
            "Deleted {} pages from week {week} of {store}; {} URLs are forgotten ({patterns})\n",
            grouped(*documents),
            grouped(*urls)
        ),
    };
    print(&text)?;
    if *urls > 0 && documents.is_some() {
        log.notice("tables of earlier weeks keep their pages: `nigh vacuum` removes weeks");
    }
    Ok(ExitCode::SUCCESS)
}
