//! `nigh report`: a week as one page of HTML.

use std::fs::File;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context, Result, ensure};
use clap::Args;

use super::LookArgs;
use crate::cli::print::print_json;
use crate::cli::session::read_manifest;
use crate::config::{Bytes, Verify};
use crate::look::{EvolutionCurves, StoreFindings, overview};
use crate::mirror::ReadStore;
use crate::plan::inputs_at_hand;
use crate::records::Week;
use crate::report;
use crate::report::print;
use crate::state::{Manifest, Results};
use crate::studies::StudySummary;
use crate::summary::Summary;
use crate::tables::studies::{AmountRow, RESULTS, RetentionRow};
use crate::tables::{AccuracyRow, ChangeRow, FeatureRow, SizeRow, Table as _};

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
                inputs_at_hand(week.input_names(), reading, Verify::None, true)
            } else {
                crate::readers::list(&args.input, reading)?
            };
            overview(week, findings(read_store, &manifest, week.week.week, &look.store)?, &inputs, reading)
        })
    })?;
    if look.json {
        print_json(&found)?;
    }
    if let Some(out) = out {
        let page = report::page(&found)?;
        out.write(page.as_bytes())?;
        if !look.json {
            print(&format!("Wrote {} ({})\n", out.path.display(), Bytes(page.len() as u64)))?;
        }
    }
    Ok(ExitCode::SUCCESS)
}

/// The summaries of all weeks up to one, and of the studies whose results the store has.
fn findings(read_store: &ReadStore, manifest: &Manifest, until: Week, store: &Path) -> Result<StoreFindings> {
    let mut found = StoreFindings { weeks: Vec::new(), studies: Vec::new(), evolution: None };
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

/// Where a file is to be written whole, or not at all.
pub(super) struct Destination {
    /// The path that the user gave.
    path: PathBuf,
    /// The file that is replaced, if the path is a link.
    file: PathBuf,
    /// Whether that is a pipe or a device, which is written in place.
    in_place: bool,
}

impl Destination {
    /// Checks that a file can be there.
    pub(super) fn at(path: &Path) -> Result<Destination> {
        let failed = || format!("cannot write {}", path.display());
        let file = std::fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
        let found = std::fs::metadata(&file).ok();
        ensure!(
            !found.as_ref().is_some_and(std::fs::Metadata::is_dir),
            "cannot write {}: it is a folder",
            path.display()
        );
        let in_place = found.is_some_and(|found| !found.is_file());
        let folder = match file.parent() {
            Some(folder) if !folder.as_os_str().is_empty() => folder,
            _ => Path::new("."),
        };
        std::fs::metadata(folder).with_context(failed)?;
        Ok(Destination { path: path.to_owned(), file, in_place })
    }

    pub(super) fn write(&self, bytes: &[u8]) -> Result<()> {
        let failed = || format!("cannot write {}", self.path.display());
        if self.in_place {
            return std::fs::write(&self.file, bytes).with_context(failed);
        }
        let name = self.file.file_name().with_context(|| format!("{} is no name of a file", self.path.display()))?;
        let unfinished =
            self.file.with_file_name(format!(".{}.{}.unfinished", name.to_string_lossy(), std::process::id()));
        let written = File::options()
            .write(true)
            .create_new(true)
            .open(&unfinished)
            .and_then(|mut file| file.write_all(bytes).and_then(|()| file.sync_all()))
            .and_then(|()| std::fs::rename(&unfinished, &self.file));
        if written.is_err() {
            // What is left of it is of no use; the first error counts.
            let _ = std::fs::remove_file(&unfinished);
        }
        written.with_context(failed)
    }
}
