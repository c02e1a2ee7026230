//! `nigh delete`: computes the last week of a store again without some pages, and forgets their URLs.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context, Result};
use clap::Args;

use super::errors::WrongUse;
use super::print::print_json;
use super::session::{
    Session, check_kernels, check_name, locate_store, lock, notify, pool_of, read_manifest, take_work,
};
use super::signals::stop_on_signals;
use super::week::read_summary;
use super::worker::{ProcessWork, cluster};
use super::workers::{WorkerCount, warn_above_cores};
use crate::config::{Config, Count, Keep, Mode, Reading, read_config};
use crate::jobs::deletion;
use crate::launch::{Peers, Pool};
use crate::log::{Display, Log};
use crate::mirror::WriteGuard;
use crate::plan::{Deletion, Plan};
use crate::records::{DocId, Week};
use crate::report::{grouped, print};
use crate::state::{Earlier, Manifest, Store};
use crate::tables::name_pages;
use crate::text::{InvalidPattern, UrlPatterns, canonical};

/// Examples at the end of `nigh help delete`.
const DELETE_EXAMPLES: &str = "\
Examples:
    nigh delete --store crawls --host private.example --dry-run
    nigh delete --store crawls --prefix https://example.org/~someone/

Tables of earlier weeks keep the pages until `nigh vacuum` removes those weeks.";

#[derive(Args)]
#[command(after_help = DELETE_EXAMPLES)]
pub(crate) struct DeleteArgs {
    /// Folder of all tables, or s3://BUCKET/PREFIX.
    #[arg(long, value_name = "DIR_OR_URL")]
    store: PathBuf,
    /// Local folder for the work on a store in a bucket. Overrides the config.
    #[arg(long, value_name = "DIR")]
    mirror: Option<PathBuf>,
    #[command(flatten)]
    selection: PageSelection,
    /// Config file: where to compute [default: this machine].
    #[arg(long)]
    config: Option<PathBuf>,
    /// Worker threads in each process. Overrides the config.
    #[arg(long, value_name = "N")]
    workers: Option<Count>,
    /// Processes on this machine. Overrides the config.
    #[arg(long, value_name = "N")]
    processes: Option<Count>,
    /// Print how many URLs would be deleted, and stop.
    #[arg(long)]
    dry_run: bool,
    /// Print the result as one JSON object on stdout, and events as JSON lines on stderr.
    #[arg(long)]
    json: bool,
    /// Show no progress.
    #[arg(short, long)]
    quiet: bool,
}

/// The pages to delete.
#[derive(Args)]
#[group(required = true, multiple = true)]
struct PageSelection {
    /// Delete the pages of these URLs.
    #[arg(long, num_args = 1.., value_name = "URL")]
    url: Vec<String>,
    /// Delete the pages of the URLs in this file, one on each line.
    #[arg(long, value_name = "FILE")]
    urls: Option<PathBuf>,
    /// Delete all pages of these hosts, but not of their subdomains.
    #[arg(long, num_args = 1.., value_name = "HOST")]
    host: Vec<String>,
    /// Delete all pages whose URL starts with one of these.
    #[arg(long, num_args = 1.., value_name = "URL")]
    prefix: Vec<String>,
}

/// The result of the command, as `--json` prints it.
#[derive(serde::Serialize)]
struct DeletionSummary {
    /// The week that is computed again.
    week: Week,
    /// Selected URLs that the store has, from any of its weeks.
    urls: u64,
    /// Whether links, redirects or rejects of the week mention selected URLs, although the store has no page of them.
    #[serde(rename = "named")]
    is_mentioned: bool,
    /// Deleted pages of the week; `None` before it is computed again.
    documents: Option<u64>,
    /// Folders of the results of jobs that name pages or hosts, which are removed, too.
    results: Vec<String>,
}

impl DeleteArgs {
    /// The log of the command.
    pub(crate) fn log(&self) -> Log {
        Log::new(Display::new(self.quiet, false, self.json), self.json)
    }
}

/// Deletes the selected pages, and prints how many there were.
pub(crate) fn run(args: &DeleteArgs, log: &Log) -> Result<ExitCode> {
    let config = args.config.as_deref().map_or_else(|| Ok(Config::default()), read_config);
    let config = config.map_err(WrongUse::from_error)?;
    check_kernels()?;
    let patterns = args.selection.patterns()?;
    let location = locate_store(&args.store, args.mirror.as_deref(), &config)?;
    check_name(&args.store)?;
    location.store().check_writable()?;
    // Locking creates the folder, so check first that it is a store.
    location.expect()?;
    let pool = pool_of(&config, args.processes)?;
    if let Some(manifest) = location.store().manifest().ok().flatten() {
        // Before anything is locked or taken over; a mirror that is not up to date has the shards of its store, too.
        WorkerCount::new(args.workers, &config, &pool).of_shards(manifest.method.shards as usize)?;
    }
    let (mut guard, store) = if args.dry_run {
        location.look(&notify(log))?;
        (None, location.store().clone())
    } else {
        let guard = lock(&location, log)?;
        let store = take_work(location.store(), &pool, 0)?;
        store.recover()?;
        (Some(guard), store)
    };
    let manifest = read_manifest(&store, &args.store)?;
    let plan = make_plan(&store, &manifest, &config, args, &patterns, &pool)?;
    log.name(format!("delete {}", plan.week));
    warn_above_cores(plan.workers, &pool, log);
    let docs = selected_docs(&store, &manifest, &patterns)?;
    // Pages of other URLs may link to a selected URL of which the store has no page.
    let is_mentioned = docs.is_empty() && deletion::is_mentioned(&store, &store.committed(plan.week)?, &patterns)?;
    let is_any = !docs.is_empty() || is_mentioned;
    let results = manifest.results.into_keys().filter(|folder| is_any && name_pages(folder)).collect();
    let mut summary =
        DeletionSummary { week: plan.week, urls: docs.len() as u64, is_mentioned, documents: None, results };
    if let Some(guard) = &mut guard
        && is_any
    {
        let session = Session { pool: &pool, log, bytes: 0, metrics: None };
        summary.documents = Some(delete(plan, &docs, &session, &store, &args.store, guard)?);
    }
    print_result(args, &summary, &patterns, log)
}

/// Computes and publishes the week of the plan without the documents. Returns how many of them were in the week. The caller has
/// locked the store.
fn delete(
    plan: Plan,
    docs: &[DocId],
    session: &Session<'_>,
    store: &Store,
    given_store: &Path,
    guard: &mut WriteGuard,
) -> Result<u64> {
    let Session { pool, log, .. } = *session;
    let week = plan.week;
    let begin = |store: &Store| {
        let dropped = store.begin(week, &plan.method, &plan.key())?.dropped;
        if dropped > 0 {
            log.notice(&format!("week {week} was being computed again: its {dropped} unfinished waves are dropped"));
        }
        deletion::write_deleted(&store.unfinished(week), docs)
    };
    begin(store)?;
    let before = read_summary(store, week)?;
    let is_committed = {
        let (store, key) = (store.clone(), plan.key().hash);
        move || -> Result<bool> {
            let manifest = store.manifest()?;
            let weeks = manifest.map_or_else(Vec::new, |manifest| manifest.weeks);
            Ok(weeks.iter().any(|committed| committed.week == week && committed.key == key))
        }
    };
    stop_on_signals(log, pool, guard.publish_handle(), {
        let (is_committed, root) = (is_committed.clone(), given_store.display().to_string());
        move || {
            let text = format!("week {week} of {root} is unchanged. The same command starts again");
            (!is_committed().unwrap_or(false)).then_some(text)
        }
    });
    let work = |epoch| {
        let mut plan = plan.clone();
        if epoch > 0 {
            let store = take_work(store, pool, epoch)?;
            store.recover()?;
            if is_committed()? {
                return Ok(None);
            }
            begin(&store)?;
            plan.work = store.work_name();
        }
        Ok(Some(ProcessWork::Run(Box::new(plan))))
    };
    let plan_here = plan.clone();
    let after = session.compute(work, |watch| cluster(plan_here, Peers::None, watch))?;
    let after = after.map_or_else(|| read_summary(store, week), Ok)?;
    guard.publish(false, &notify(log))?;
    Ok(before.counts.documents - after.counts.documents)
}

impl PageSelection {
    /// The patterns of the flags.
    ///
    /// # Errors
    /// Names the flag, or the line of the file, that is not a URL or a host.
    fn patterns(&self) -> Result<UrlPatterns> {
        let mut urls = self.url.clone();
        if let Some(path) = &self.urls {
            let text = std::fs::read_to_string(path)
                .map_err(|error| WrongUse(format!("--urls: cannot read {}: {error}", path.display())))?;
            for (index, line) in text.lines().map(str::trim).enumerate().filter(|(_, line)| !line.is_empty()) {
                if canonical(line).is_none() {
                    let place = format!("{}, line {}", path.display(), index + 1);
                    return Err(WrongUse(format!("{place}: `{line}` is not an http or https URL")).into());
                }
                urls.push(line.to_owned());
            }
        }
        let invalid = |InvalidPattern(text): InvalidPattern| {
            let (flag, wanted) = if self.host.contains(&text) {
                ("--host", "a host such as example.com or example.com:8080")
            } else if self.prefix.contains(&text) {
                ("--prefix", "the start of an http or https URL in its canonical form (as tables have URLs)")
            } else {
                ("--url", "an http or https URL")
            };
            WrongUse(format!("{flag}: `{text}` is not {wanted}"))
        };
        let patterns = UrlPatterns::new(&urls, &self.host, &self.prefix).map_err(invalid)?;
        if patterns.is_empty() {
            return Err(WrongUse("--urls: the file has no URL".into()).into());
        }
        Ok(patterns)
    }
}

/// The plan to compute the last week again, from its own tables.
fn make_plan(
    store: &Store,
    manifest: &Manifest,
    config: &Config,
    args: &DeleteArgs,
    patterns: &UrlPatterns,
    pool: &Pool,
) -> Result<Plan> {
    let last = manifest.weeks.last().with_context(|| format!("{} has no week yet", args.store.display()))?;
    let whole = store.whole(last)?;
    let path = store.records(last).join("job.toml");
    let job = std::fs::read_to_string(&path).with_context(|| format!("cannot read {}", path.display()))?;
    let processes = pool.processes();
    let workers = WorkerCount::new(args.workers, config, pool).of_shards(manifest.method.shards as usize)?;
    Ok(Plan {
        week: last.week,
        store: store.root().to_owned(),
        work: store.work_name(),
        earlier: Earlier::before(manifest, last.week),
        stands_on: last.identity(),
        commit: manifest.commits + 1,
        deletion: Some(Deletion { patterns: patterns.clone(), of: last.clone(), key: whole.journal.key }),
        mode: Mode::Auto,
        method: manifest.method.clone(),
        reading: Reading::default(),
        keep: Keep::default(),
        inputs: Vec::new(),
        waves: Vec::new(),
        // The rejects were accepted when the crawl was read.
        max_reject_share: 1.0,
        allow_empty: true,
        job: format!("{job}# Deleted since: {patterns}.\n"),
        processes,
        workers,
        worker_memory: config.memory() / (processes * workers) as u64,
    })
}

/// The ids of all selected URLs that the store has.
fn selected_docs(store: &Store, manifest: &Manifest, patterns: &UrlPatterns) -> Result<Vec<DocId>> {
    let weeks = Earlier { removed: manifest.removed.clone(), weeks: manifest.weeks.clone() };
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    deletion::matching_docs(store, &weeks, patterns, manifest.method.shards, threads)
}

fn print_result(args: &DeleteArgs, summary: &DeletionSummary, patterns: &UrlPatterns, log: &Log) -> Result<ExitCode> {
    if args.json {
        print_json(summary)?;
        return Ok(ExitCode::SUCCESS);
    }
    let DeletionSummary { week, urls, is_mentioned, documents, results } = summary;
    let store = args.store.display();
    let text = match documents {
        None if *is_mentioned => {
            format!("Would remove links, redirects and rejects of week {week} that mention these URLs ({patterns})\n")
        }
        None if *urls == 0 => format!("{store} has no such URL ({patterns}): nothing to delete\n"),
        None => format!("Would delete {} URLs from {store}, week {week} ({patterns})\n", grouped(*urls)),
        Some(_) if *is_mentioned => {
            format!(
                "Removed links, redirects and rejects of week {week} that mention these URLs ({patterns}); the week has no page of them\n"
            )
        }
        Some(documents) => format!(
            "Deleted {} pages from week {week} of {store}; {} URLs are forgotten ({patterns})\n",
            grouped(*documents),
            grouped(*urls)
        ),
    };
    print(&text)?;
    if !results.is_empty() {
        let verb = if documents.is_some() { "Removed" } else { "Would remove" };
        let name = results.join(" and ");
        print(&format!("{verb} the tables of {name}, which name pages: run the job again\n"))?;
    }
    if *urls > 0 && documents.is_some() {
        log.notice("tables of earlier weeks still have these pages: `nigh vacuum` removes old weeks");
    }
    Ok(ExitCode::SUCCESS)
}
