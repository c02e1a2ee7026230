//! `nigh show`: prints the summary of a week, how its clusters changed, or what a job found.

use std::process::ExitCode;

use anyhow::{Context, Result, ensure};
use clap::Args;

use super::pages::{self, PagesArgs};
use super::{LookArgs, committed_week, warn_if_outdated};
use crate::cli::errors::WrongUse;
use crate::cli::print::{json_text, result_text};
use crate::cli::session::read_manifest;
use crate::log::Log;
use crate::mirror::ReadStore;
use crate::query::{NamedTable, RowChoice, WantedRows, json_rows, ranges_of_results};
use crate::records::Week;
use crate::report;
use crate::report::{WeekChanges, print};
use crate::sheet::Printable;
use crate::state::{Manifest, Results};
use crate::studies::collections::Collections;
use crate::studies::{AnyStudy, Study as _, StudySummary};
use crate::summary::Summary;
use crate::tables::studies::RESULTS;
use crate::tables::studies::collections::AvoidRow;
use crate::tables::{ChangeRow, ClusterRow, Table as _};

/// Examples at the end of `nigh help show`.
const EXAMPLES: &str = "\
Examples:
  The summary of the last week:
    nigh show crawls
  The 50 largest clusters of exact copies:
    nigh show crawls --level exact --top 50
  The pages of a cluster, and why they are in it:
    nigh show crawls --cluster 17
  What is known of a page:
    nigh show crawls --url http://one.example/";

#[derive(Args)]
#[command(after_help = EXAMPLES)]
pub(in crate::cli) struct ShowArgs {
    #[command(flatten)]
    look: LookArgs,
    #[command(flatten)]
    pages: PagesArgs,
    /// Show how clusters changed since the week before.
    #[arg(long)]
    changes: bool,
    #[arg(long, value_name = "NAME", help = job_help(), conflicts_with_all = ["week", "changes"])]
    job: Option<String>,
    /// Print the prefixes of URLs that a crawler need not fetch, one on each line: what
    /// jobs/collections.toml found. With --json, all that is known of them.
    #[arg(long, conflicts_with_all = ["week", "changes", "job"])]
    avoid: bool,
}

/// What `--job` is, with the names of all studies.
fn job_help() -> String {
    let names: Vec<&str> = AnyStudy::all().iter().map(AnyStudy::name).collect();
    let (last, others) = names.split_last().expect("there are studies");
    format!("Show what a job found that reads committed weeks, by its name: {} or {last}", others.join(", "))
}

/// Prints what the flags ask for.
pub(in crate::cli) fn show(args: &ShowArgs, log: &Log) -> Result<ExitCode> {
    if args.pages.is_given() {
        return pages::show(&args.look, &args.pages);
    }
    let text = args.look.of_store(|store| show_text(args, store, log))?;
    print(text).map(|()| ExitCode::SUCCESS)
}

fn show_text(args: &ShowArgs, read_store: &ReadStore, log: &Log) -> Result<Printable> {
    let store = read_store.store();
    let root = args.look.store.display();
    let manifest = read_manifest(store, &args.look.store)?;
    if let Some(job) = &args.job {
        return study_text(args, read_store, &manifest, job, log);
    }
    if args.avoid {
        let results = committed_results(args, read_store, &manifest, Collections::NAME, log)?;
        if args.look.json {
            return Ok((&avoid_json(read_store, &results)?).into());
        }
        let path = results.committed_file("avoid.txt");
        let text = std::fs::read_to_string(&path).with_context(|| format!("cannot read {}", path.display()))?;
        return Ok((&text).into());
    }
    let shown = committed_week(&manifest, &args.look.store, args.look.week)?;
    read_store.need_records(shown)?;
    let mut summary = Summary::read(&store.records(shown))?;
    // The store may have moved since the week was made.
    summary.store = args.look.store.clone();
    if !args.changes {
        return result_text(&summary, args.look.json, report::summary);
    }
    let since = summary.since.with_context(|| {
        format!("week {} is the first of {root}: there is no week before to compare with", shown.week)
    })?;
    let last = manifest.weeks.iter().find(|committed| committed.week == since.week);
    let last = last.with_context(|| format!("week {} is no longer in {root}: it was removed", since.week))?;
    read_store.need_records(last)?;
    for (week, table) in [(shown, ChangeRow::NAME), (shown, ClusterRow::NAME), (last, ClusterRow::NAME)] {
        read_store.need(table, &[&format!("{}/", week.week.folder())])?;
    }
    let changes = report::changes(shown.week, &store.tables(shown)?, &store.tables(last)?, since)?;
    result_text(&changes, args.look.json, WeekChanges::sheet)
}

/// The table `avoid` as one JSON object.
fn avoid_json(read_store: &ReadStore, results: &Results) -> Result<String> {
    let table = NamedTable::find(&format!("{}/{}", Collections::NAME, AvoidRow::NAME)).context("a table of nigh")?;
    let choice = RowChoice::new(table, &[], &[], None, false).map_err(WrongUse)?;
    let files = ranges_of_results(read_store, results, AvoidRow::NAME)?;
    let files = files.into_iter().map(|rows| (Week::from_days(0), rows)).collect();
    let avoid = json_rows(WantedRows::open(choice, files)?)?;
    Ok(format!("{}\n", json_text(&serde_json::json!({ "avoid": avoid }))?))
}

/// The committed results of a job; their own files, but not their tables, are at hand. If they are
/// outdated, it is said.
fn committed_results(
    args: &ShowArgs,
    read_store: &ReadStore,
    manifest: &Manifest,
    job: &str,
    log: &Log,
) -> Result<Results> {
    let (root, made) = (args.look.store.display(), manifest.results.get(job));
    let commit =
        made.with_context(|| format!("{root} has no tables of {job}: `nigh run jobs/{job}.toml` makes them"))?;
    let results = Results::of(read_store.store(), job, *commit);
    read_store.need_own(&results.own_folder())?;
    warn_if_outdated(read_store, manifest, job, &args.look.store, log);
    Ok(results)
}

/// The summary of the results of a job.
fn study_text(args: &ShowArgs, read_store: &ReadStore, manifest: &Manifest, job: &str, log: &Log) -> Result<Printable> {
    let is_known = RESULTS.iter().any(|results| results.folder == job);
    let names = || RESULTS.iter().map(|results| results.folder).collect::<Vec<_>>().join(", ");
    ensure!(is_known, WrongUse(format!("--job {job}: nigh has no such job; those with results are {}", names())));
    let results = committed_results(args, read_store, manifest, job, log)?;
    let mut summary = StudySummary::read(read_store.store(), job, results.commit_number())?;
    // The store may have moved since they were made.
    summary.set_store(args.look.store.clone());
    result_text(&summary, args.look.json, |summary| summary.report(&args.look.store.join(job)))
}
