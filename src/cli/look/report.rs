//! `nigh report`: a week as one page of HTML.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::Result;
use clap::Args;

use super::LookArgs;
use super::destination::Destination;
use crate::cli::print::print_json;
use crate::cli::session::read_manifest;
use crate::config::{Bytes, Verify};
use crate::figures::draw_studies;
use crate::look::{StoreFindings, StudyPicture, overview};
use crate::mirror::ReadStore;
use crate::records::Week;
use crate::report;
use crate::report::print;
use crate::state::{Manifest, Results};
use crate::studies::{Figure, FigureTables, StudySummary, TablesUntil};
use crate::summary::Summary;
use crate::tables::studies::RESULTS;
use crate::tables::{AccuracyRow, ChangeRow, FeatureRow, SizeRow, Table as _};

#[derive(Args)]
#[command(after_help = "Example:\n    nigh report crawls --out report.html")]
pub(in crate::cli) struct ReportArgs {
    #[command(flatten)]
    look: LookArgs,
    /// The file to write; one that is there is replaced.
    #[arg(long, value_name = "FILE", required_unless_present = "json")]
    out: Option<PathBuf>,
    /// The crawl files, for the words that differ [default: those of the week, if they are at
    /// hand].
    #[arg(long, num_args = 1.., value_name = "PATH_OR_GLOB_OR_URL")]
    input: Vec<String>,
}

/// Tables of the week that the report reads, besides documents and clusters.
const TABLES: [&str; 4] = [FeatureRow::NAME, SizeRow::NAME, ChangeRow::NAME, AccuracyRow::NAME];

/// Writes the page, or prints what it would show.
pub(in crate::cli) fn report(args: &ReportArgs) -> Result<ExitCode> {
    let out = args.out.as_deref().map(Destination::at).transpose()?;
    let look = &args.look;
    let found = look.of_store(|read_store| {
        let manifest = read_manifest(read_store.store(), &look.store)?;
        look.of_pages(read_store, &manifest, &TABLES, |week, reading| {
            let inputs = if args.input.is_empty() {
                // Files of servers are not fetched for some words.
                week.inputs_at_hand(reading, Verify::None)
            } else {
                week.named_inputs(&args.input, reading)?
            };
            overview(week, findings(read_store, &manifest, week.week.week, &look.store)?, &inputs, reading)
        })
    })?;
    if look.json {
        print_json(&found)?;
    }
    if let Some(out) = out {
        let page = report::page(&found);
        out.write(page.as_bytes())?;
        if !look.json {
            print(&format!("Wrote {} ({})\n", out.path().display(), Bytes(page.len() as u64)))?;
        }
    }
    Ok(ExitCode::SUCCESS)
}

/// The summaries of all weeks up to one, and of the studies whose results the store has.
fn findings(read_store: &ReadStore, manifest: &Manifest, until: Week, store: &Path) -> Result<StoreFindings> {
    let tables = FigureTables::new(read_store, manifest, until);
    let mut found =
        StoreFindings { weeks: Vec::new(), studies: Vec::new(), pictures: Vec::new(), outdated: Vec::new() };
    for week in manifest.weeks.iter().filter(|week| week.week <= until) {
        let mut summary = Summary::read(&read_store.store().records(week))?;
        // The store may have moved since the week was made.
        summary.store = store.to_owned();
        found.weeks.push(summary);
    }
    for results in RESULTS {
        let Some(commit) = manifest.results.get(results.folder) else { continue };
        let results = Results::of(read_store.store(), results.folder, *commit);
        read_store.need_own(&results.own_folder())?;
        let mut summary = StudySummary::read(read_store.store(), results.name(), *commit)?;
        // What a study found of later weeks says nothing of this one.
        if summary.week().is_none_or(|of| of > until) {
            continue;
        }
        summary.set_store(store.to_owned());
        if matches!(tables.standing(summary.titled().0)?, TablesUntil::Replaced(_)) {
            found.outdated.push(summary.titled().0);
        }
        found.studies.push(summary);
    }
    for (study, Figure { name, title, .. }, picture) in draw_studies(&tables)? {
        found.pictures.push(StudyPicture { study, name, title, picture });
    }
    Ok(found)
}
