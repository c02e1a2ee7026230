//! `nigh show`: prints the summary of a week, how its clusters changed, or what a job found.

use std::process::ExitCode;

use anyhow::{Context, Result, ensure};

use super::args::ShowArgs;
use super::errors::WrongUse;
use super::print::{json_text, summary_text};
use super::session::{check_not_inside, read_manifest};
use crate::mirror::ReadStore;
use crate::objects::refuse_secrets;
use crate::report;
use crate::report::print;
use crate::state::{Manifest, Results};
use crate::summary::{StudySummary, Summary};
use crate::tables::{ChangeRow, ClusterRow, RESULTS, Table as _};

/// Prints what the flags ask for. A store in a bucket is read in place: only the files that are needed are fetched.
pub(crate) fn show(args: &ShowArgs) -> Result<ExitCode> {
    if let Some(url) = args.store.to_str() {
        refuse_secrets(url).map_err(WrongUse::from_error)?;
    }
    check_not_inside(&args.store)?;
    let text = ReadStore::at(&args.store, |store| show_text(args, store))?;
    print(&text).map(|()| ExitCode::SUCCESS)
}

fn show_text(args: &ShowArgs, read_store: &ReadStore) -> Result<String> {
    let store = read_store.store();
    let root = args.store.display();
    let manifest = read_manifest(store, &args.store)?;
    if let Some(job) = &args.job {
        return study_text(args, read_store, &manifest, job);
    }
    if args.avoid {
        let path = committed_results(args, read_store, &manifest, "collections")?.committed_file("avoid.txt");
        return std::fs::read_to_string(&path).with_context(|| format!("cannot read {}", path.display()));
    }
    let weeks: Vec<String> = manifest.weeks.iter().map(|week| week.week.to_string()).collect();
    let shown = match args.week {
        Some(week) => manifest
            .weeks
            .iter()
            .find(|committed| committed.week == week)
            .with_context(|| format!("{root} has no week {week}; it has {}", weeks.join(", ")))?,
        None => manifest.weeks.last().with_context(|| format!("{root} has no week yet"))?,
    };
    read_store.need_records(shown)?;
    let mut summary = Summary::read(&store.records(shown))?;
    // The store may have moved since the week was made.
    summary.store = args.store.clone();
    if !args.changes {
        return summary_text(&summary, args.json);
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
    if args.json { Ok(format!("{}\n", json_text(&changes)?)) } else { Ok(changes.to_string()) }
}

/// The committed results of a job; their own files, but not their tables, are at hand.
fn committed_results(args: &ShowArgs, read_store: &ReadStore, manifest: &Manifest, job: &str) -> Result<Results> {
    let (root, made) = (args.store.display(), manifest.results.get(job));
    let commit =
        made.with_context(|| format!("{root} has no tables of {job}: `nigh run jobs/{job}.toml` makes them"))?;
    let results = Results::of(read_store.store(), job, *commit);
    read_store.need_own(&results.own_folder())?;
    Ok(results)
}

/// The summary of the results of a job.
fn study_text(args: &ShowArgs, read_store: &ReadStore, manifest: &Manifest, job: &str) -> Result<String> {
    let is_known = RESULTS.iter().any(|results| results.folder == job);
    let names = || RESULTS.map(|results| results.folder).join(", ");
    ensure!(is_known, WrongUse(format!("--job {job}: nigh has no such job; those with results are {}", names())));
    let results = committed_results(args, read_store, manifest, job)?;
    let mut summary = StudySummary::read(&results.committed_file("summary.json"))?;
    // The store may have moved since they were made.
    summary.set_store(args.store.clone());
    if args.json {
        return Ok(format!("{}\n", json_text(&summary)?));
    }
    Ok(report::study(&summary, &args.store.join(job)))
}
