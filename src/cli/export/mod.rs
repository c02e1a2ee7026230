//! `nigh export`: writes a week's inputs again without duplicates, or lists these.
//!
//! In reading order: `flags` (what a user says), this file (the run), `week` (the export of a
//! week), `choice` (which records stay), `inputs` (what is read again), `card`, `printed`.

mod card;
mod choice;
mod flags;
mod inputs;
mod printed;
mod week;

use std::process::ExitCode;

use anyhow::{Context as _, Result, bail, ensure};

pub(crate) use self::flags::ExportArgs;
use self::printed::ExportSummary;
use self::week::WeekExport;
use super::errors::WrongUse;
use super::print::print_json;
use super::session::{check_not_inside, read_manifest};
use crate::log::Log;
use crate::mirror::ReadStore;
use crate::objects::{ServiceError, refuse_secrets};
use crate::report::print;
use crate::state::{CommittedWeek, Manifest, Results};
use crate::studies::{CommittedTables, Study};
use crate::tables::{ClusterRow, DocumentRow, EvidenceRow, FeatureRow, Table as _};

/// Writes the files or the list, and prints how many records they have.
pub(crate) fn run(args: &ExportArgs, log: &Log) -> Result<ExitCode> {
    log.name("export".to_owned());
    if let Some(url) = args.store.to_str() {
        refuse_secrets(url).map_err(WrongUse::from_error)?;
    }
    args.check()?;
    check_not_inside(&args.store)?;
    let summary = ReadStore::at(&args.store, |store| export_week(args, store, log))?;
    if args.json {
        print_json(&summary)?;
    } else {
        print(&printed::text(args, summary))?;
    }
    Ok(ExitCode::SUCCESS)
}

/// Writes what the command asks for of a week.
fn export_week(args: &ExportArgs, read_store: &ReadStore, log: &Log) -> Result<ExportSummary> {
    let (store, root) = (read_store.store(), args.store.display());
    let manifest = read_manifest(store, &args.store)?;
    let found = match args.week {
        Some(week) => manifest.weeks.iter().find(|committed| committed.week == week),
        None => manifest.weeks.last(),
    };
    let week = found.with_context(|| match args.week {
        Some(week) => format!("{root} has no week {week}"),
        None => format!("{root} has no week yet"),
    })?;
    if let Some(since) = args.since.filter(|since| *since > week.week) {
        let which = if args.week.is_some() { "the week that is exported" } else { "the last week" };
        let week = week.week;
        bail!(WrongUse(format!("--since {since}: {which} of {root} is {week}, and no batch came from that date on")));
    }
    // How the records of earlier batches are read is in the records of these.
    for until in manifest.weeks.iter().filter(|until| until.week <= week.week) {
        read_store.need_records(until)?;
    }
    let of_evidence = [EvidenceRow::NAME, FeatureRow::NAME].into_iter().filter(|_| args.near_duplicates);
    for table in [DocumentRow::NAME, ClusterRow::NAME].into_iter().chain(of_evidence) {
        read_store.need_table(week, table)?;
    }
    let whole = store.whole(week)?;
    let export = WeekExport::of(args, read_store, &manifest, (week, &whole), log)?;
    match &args.out {
        Some(out) => export.files(out),
        None => export.list(),
    }
}

/// The tables of a study of a week, and its summary. Its table `T` is at hand.
///
/// # Errors
/// If there are none, or those of another week, or of the week before it was changed.
fn committed_results<S: Study, T: crate::tables::Table>(
    read_store: &ReadStore,
    manifest: &Manifest,
    week: &CommittedWeek,
    root: &std::path::Display<'_>,
    flags: &str,
) -> Result<(Results, S::Summary)> {
    let (week, name) = (week.week, S::NAME);
    let commit = manifest.results.get(name).copied().with_context(|| {
        format!(
            "{root} has no tables of {name}: `nigh run jobs/{name}.toml --store {root} --week {week}{flags}` makes them"
        )
    })?;
    read_store.need_own(&Results::of(read_store.store(), name, commit).own_folder())?;
    let CommittedTables { results, summary, .. } = CommittedTables::<S>::numbered(read_store.store(), commit)?;
    let of = S::last_week(&summary);
    ensure!(
        of == Some(week),
        "{root} has the {name} of week {}: `nigh run jobs/{name}.toml --store {root} --week {week}{flags}` finds those of {week}",
        of.map_or_else(String::new, |of| of.to_string())
    );
    ensure!(
        !manifest.outdates(week, name),
        "the {name} of {root} were found before week {week} was changed: `nigh run jobs/{name}.toml --store {root} --week {week}{flags}` finds \
         those that it has now"
    );
    read_store.need(name, &[&format!("{}/", T::NAME)])?;
    Ok((results, summary))
}

/// The error of a place that is not free, or of inputs that do not fit: one of wrong use, unless a
/// file cannot be read, or the disk or the system refused.
fn wrong_use(error: anyhow::Error) -> anyhow::Error {
    let is_of_files = |cause: &(dyn std::error::Error + 'static)| {
        cause.is::<std::io::Error>() || cause.is::<parquet::errors::ParquetError>() || cause.is::<ServiceError>()
    };
    if error.chain().any(is_of_files) { error } else { WrongUse::from_error(error).into() }
}
