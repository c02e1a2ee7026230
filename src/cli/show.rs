//! `nigh show`: the summary of a week.

use std::process::ExitCode;

use anyhow::{Context, Result};

use super::args::ShowArgs;
use super::print::summary_text;
use crate::mirror::ReadStore;
use crate::report;
use crate::report::print;
use crate::summary::Summary;

pub(crate) fn show(args: &ShowArgs) -> Result<ExitCode> {
    let text = ReadStore::at(&args.store, |look| shown(args, look))?;
    print(&text).map(|()| ExitCode::SUCCESS)
}

/// What is to be said of a store.
pub(crate) fn shown(args: &ShowArgs, look: &ReadStore) -> Result<String> {
    let store = look.store();
    let manifest = store.manifest()?.with_context(|| {
        format!("{} is not a nigh store (no manifest.json): `nigh run` makes a store", args.store.display())
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
