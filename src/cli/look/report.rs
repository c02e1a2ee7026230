//! `nigh report`: a week as one page of HTML.

use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context, Result};
use clap::Args;

use super::LookArgs;
use crate::cli::print::print_json;
use crate::cli::session::{inputs_at_hand, read_manifest};
use crate::config::{Bytes, Verify};
use crate::look::{EvolutionCurves, StoreFindings, overview};
use crate::mirror::ReadStore;
use crate::report;
use crate::report::print;
use crate::state::{CommittedWeek, Manifest, Results};
use crate::summary::{StudySummary, Summary};
use crate::tables::{
    AccuracyRow, AmountRow, ChangeRow, EvidenceRow, FeatureRow, RESULTS, RetentionRow, SizeRow, Table as _,
};

#[derive(Args)]
#[command(after_help = "Example:\n    nigh report crawls --out report.html")]
pub(in crate::cli) struct ReportArgs {
    #[command(flatten)]
    look: LookArgs,
    /// The file to write; one that is there is replaced.
    #[arg(long, value_name = "FILE", required_unless_present = "json")]
    out: Option<PathBuf>,
    /// The crawl files, for the words that differ [default: those of the week, if they are at hand].
    #[arg(long, num_args = 1.., value_name = "PATH_OR_GLOB_OR_URL")]
    input: Vec<String>,
}

/// Tables of the week that the report reads, besides documents and clusters.
const TABLES: [&str; 5] = [FeatureRow::NAME, EvidenceRow::NAME, SizeRow::NAME, ChangeRow::NAME, AccuracyRow::NAME];

/// Writes the page, or prints what it would show.
pub(in crate::cli) fn report(args: &ReportArgs) -> Result<ExitCode> {
    let mut of_store = None;
    args.look.of_store(|read_store| {
        let manifest = read_manifest(read_store.store(), &args.look.store)?;
        let committed = super::committed_week(&manifest, &args.look.store, args.look.week)?;
        of_store = Some(findings(read_store, &manifest, committed, &args.look.store)?);
        Ok(())
    })?;
    let of_store = of_store.context("the store was not read")?;
    let found = args.look.of_week(&TABLES, |week, reading| {
        let inputs = if args.input.is_empty() {
            inputs_at_hand(week.input_names(), reading, Verify::Exact, true)
        } else {
            crate::readers::list(&args.input, reading)?
        };
        overview(week, of_store.clone(), &inputs, reading)
    })?;
    if args.look.json {
        print_json(&found)?;
    }
    if let Some(out) = &args.out {
        let page = report::page(&found)?;
        write(out, page.as_bytes())?;
        if !args.look.json {
            print(&format!("Wrote {} ({})\n", out.display(), Bytes(page.len() as u64)))?;
        }
    }
    Ok(ExitCode::SUCCESS)
}

/// The summaries of all weeks up to one, and of the studies whose results the store has.
fn findings(read_store: &ReadStore, manifest: &Manifest, until: &CommittedWeek, store: &Path) -> Result<StoreFindings> {
    let mut found = StoreFindings { weeks: Vec::new(), studies: Vec::new(), evolution: None };
    for week in manifest.weeks.iter().filter(|week| week.week <= until.week) {
        read_store.need_records(week)?;
        let mut summary = Summary::read(&read_store.store().records(week))?;
        // The store may have moved since the week was made.
        summary.store = store.to_owned();
        found.weeks.push(summary);
    }
    for results in RESULTS {
        let Some(commit) = manifest.results.get(results.folder) else { continue };
        let results = Results::of(read_store.store(), results.folder, *commit);
        read_store.need_own(&results.own_folder())?;
        let mut summary = StudySummary::read(&results.committed_file("summary.json"))?;
        if matches!(summary, StudySummary::Evolution(_)) {
            let tables = [RetentionRow::NAME, AmountRow::NAME].map(|table| format!("{table}/"));
            read_store.need(results.name(), &tables.each_ref().map(String::as_str))?;
            found.evolution = Some(EvolutionCurves::read(&results)?);
        }
        summary.set_store(store.to_owned());
        found.studies.push(summary);
    }
    Ok(found)
}

/// Writes a file whole, or leaves what was there.
fn write(path: &Path, bytes: &[u8]) -> Result<()> {
    let failed = || format!("cannot write {}", path.display());
    let name = path.file_name().with_context(|| format!("{} is no name of a file", path.display()))?;
    let unfinished = path.with_file_name(format!(".{}.unfinished", name.to_string_lossy()));
    let written = std::fs::File::create(&unfinished)
        .and_then(|mut file| file.write_all(bytes).and_then(|()| file.sync_all()))
        .and_then(|()| std::fs::rename(&unfinished, path));
    if written.is_err() {
        // What is left of it is of no use; the first error counts.
        let _ = std::fs::remove_file(&unfinished);
    }
    written.with_context(failed)
}
