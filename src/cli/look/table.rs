//! `nigh table`: the rows of a table, as other programs read them.

use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::atomic::Ordering;

use anyhow::{Context, Result, bail, ensure};
use clap::Args;
use serde::Serialize;

use super::destination::Destination;
use super::{LookArgs, committed_week, warn_if_outdated};
use crate::cli::errors::WrongUse;
use crate::cli::print::result_text;
use crate::cli::session::read_manifest;
use crate::log::Log;
use crate::mirror::ReadStore;
use crate::query::{NamedTable, RowChoice, RowSink, TableFormat, WantedRows, ranges_of_results, ranges_of_week};
use crate::records::Week;
use crate::report::print;
use crate::sheet::{Grid, GridColumn, Sheet};
use crate::state::{Manifest, Results};
use crate::tables::RowRange;
use crate::tables::studies::RESULTS;

/// Examples at the end of `nigh help table`.
const EXAMPLES: &str = "\
Examples:
  The tables that a store has:
    nigh table crawls
  A table of the last week, as CSV:
    nigh table crawls largest
  Some columns of some rows of all weeks:
    nigh table crawls sizes --all-weeks --where level=similar --columns size,clusters
  A table of a study, for Python or R:
    nigh table crawls evolution/retention --format parquet --out retention.parquet";

#[derive(Args)]
#[command(after_help = EXAMPLES)]
pub(in crate::cli) struct TableArgs {
    /// Folder of all tables, or s3://BUCKET/PREFIX.
    #[arg(value_name = "STORE")]
    store: PathBuf,
    /// The table: `clusters`, or of a study `evolution/amounts` [default: list the tables].
    #[arg(value_name = "NAME")]
    name: Option<String>,
    /// Week of the table [default: the last one].
    #[arg(long, value_name = "YYYY-MM-DD", requires = "name")]
    week: Option<Week>,
    /// The rows of all weeks, with a column `week` before the others.
    #[arg(long, conflicts_with = "week", requires = "name")]
    all_weeks: bool,
    /// The format of the rows.
    #[arg(long, value_enum, value_name = "FORMAT", default_value = "csv")]
    format: TableFormat,
    /// Only rows with this value in this column; without a value, rows that have none there. May be
    /// given several times: then all must hold.
    #[arg(long = "where", value_name = "COLUMN=VALUE", requires = "name")]
    conditions: Vec<String>,
    /// Only these columns, in this order.
    #[arg(long, value_name = "A,B", value_delimiter = ',', requires = "name")]
    columns: Vec<String>,
    /// At most so many rows.
    #[arg(long, value_name = "N", requires = "name")]
    limit: Option<u64>,
    /// File to write [default: standard output]; one that is there is replaced.
    #[arg(long, value_name = "FILE", requires = "name")]
    out: Option<PathBuf>,
    /// Print the list of tables as one JSON object.
    #[arg(long, conflicts_with = "name")]
    json: bool,
}

/// Writes the rows, or lists the tables.
pub(in crate::cli) fn table(args: &TableArgs, log: &Log) -> Result<ExitCode> {
    let look = LookArgs { store: args.store.clone(), week: args.week, json: args.json };
    let Some(name) = &args.name else {
        let listed = look.of_store(|store| listed(&look, &read_manifest(store.store(), &look.store)?))?;
        print(result_text(&listed, args.json, TableList::sheet)?)?;
        return Ok(ExitCode::SUCCESS);
    };
    let named = NamedTable::find(name).with_context(|| WrongUse(unknown(name)))?;
    if args.all_weeks || args.week.is_some() {
        let flag = if args.all_weeks { "--all-weeks" } else { "--week" };
        let of_study = matches!(named, NamedTable::OfStudy(..));
        ensure!(!of_study, WrongUse(format!("{flag}: {name} is a table of a study, which has one version only")));
    }
    let choice = RowChoice::new(named, &args.columns, &args.conditions, args.limit, args.all_weeks);
    let choice = choice.map_err(WrongUse)?;
    let destination = args.out.as_deref().map(Destination::at).transpose()?;
    let mut has_begun = false;
    look.of_store(|store| {
        // A store in a bucket is read again if it is published meanwhile; rows that are written
        // already must not come twice.
        ensure!(!has_begun, "{} was replaced while it was read: give the command again", look.store.display());
        let mut rows = WantedRows::open(choice.clone(), files(&look, store, named, args.all_weeks, log)?)?;
        has_begun = true;
        match &destination {
            Some(to) => to.write_by(|file| {
                let target = if to.is_file() { RowSink::file(file) } else { RowSink::of(Box::new(file)) };
                rows.write(args.format, target)
            }),
            None => to_stdout(&mut rows, args.format),
        }
    })?;
    Ok(ExitCode::SUCCESS)
}

fn to_stdout(rows: &mut WantedRows, format: TableFormat) -> Result<()> {
    let target = RowSink::stdout();
    if target.is_terminal() && !format.is_text() {
        bail!(WrongUse(format!("a terminal cannot show {}: give --out FILE, or a pipe", format.extension())));
    }
    let is_closed = target.is_closed();
    match rows.write(format, target) {
        // `head` has read enough.
        Err(_) if is_closed.load(Ordering::Relaxed) => Ok(()),
        written => written,
    }
}

/// The files of the table, each with its week.
fn files(
    look: &LookArgs,
    store: &ReadStore,
    named: NamedTable,
    all_weeks: bool,
    log: &Log,
) -> Result<Vec<(Week, RowRange)>> {
    let manifest = read_manifest(store.store(), &look.store)?;
    match named {
        NamedTable::OfWeeks(table) if all_weeks => {
            let of_weeks = manifest.weeks.iter().map(|week| ranges_of_week(store, week, table.name));
            Ok(of_weeks.collect::<Result<Vec<_>>>()?.concat())
        }
        NamedTable::OfWeeks(table) => {
            ranges_of_week(store, committed_week(&manifest, &look.store, look.week)?, table.name)
        }
        NamedTable::OfStudy(results, table) => {
            let commit = manifest.results.get(results.folder).with_context(|| {
                format!(
                    "{} has no tables of {}: {} makes them",
                    look.store.display(),
                    results.folder,
                    job(look, results.folder)
                )
            })?;
            let results = Results::of(store.store(), results.folder, *commit);
            store.need_own(&results.own_folder())?;
            warn_if_outdated(store, &manifest, results.name(), &look.store, log);
            let files = ranges_of_results(store, &results, table.name)?;
            Ok(files.into_iter().map(|rows| (Week::from_days(0), rows)).collect())
        }
    }
}

/// The command that makes the tables of a study.
fn job(look: &LookArgs, study: &str) -> String {
    format!("`nigh run jobs/{study}.toml --store {}`", look.store.display())
}

/// What to say about a name that is none of a table: which there are, those that are like it first.
fn unknown(name: &str) -> String {
    let names: Vec<String> = NamedTable::all().map(NamedTable::name).collect();
    let last = |name: &str| name.rsplit('/').next().unwrap_or_default().to_lowercase();
    let alike: Vec<&String> = names.iter().filter(|of| last(of) == last(&name.replace('_', "-"))).collect();
    if let [one] = alike[..] {
        return format!("there is no table {name:?}; {one} is one");
    }
    format!("there is no table {name:?}: the tables are {}", names.join(", "))
}

/// The tables of a store.
#[derive(Serialize)]
struct TableList {
    tables: Vec<DescribedTable>,
    /// The studies without tables, and what makes them.
    absent: Vec<AbsentStudy>,
}

#[derive(Serialize)]
struct DescribedTable {
    name: String,
    description: &'static str,
    columns: Vec<&'static str>,
}

#[derive(Serialize)]
struct AbsentStudy {
    study: &'static str,
    command: String,
}

fn listed(look: &LookArgs, manifest: &Manifest) -> Result<TableList> {
    let is_there = |table: &NamedTable| match table {
        NamedTable::OfWeeks(_) => !manifest.weeks.is_empty(),
        NamedTable::OfStudy(results, _) => manifest.results.contains_key(results.folder),
    };
    let tables = NamedTable::all().filter(is_there).map(|table| DescribedTable {
        name: table.name(),
        description: table.spec().description,
        columns: table.spec().columns.iter().map(|column| column.name).collect(),
    });
    let absent = RESULTS.iter().filter(|results| !manifest.results.contains_key(results.folder));
    let absent = absent.map(|results| AbsentStudy { study: results.folder, command: job(look, results.folder) });
    Ok(TableList { tables: tables.collect(), absent: absent.collect() })
}

impl TableList {
    fn sheet(&self) -> Sheet {
        let mut sheet = Sheet::default();
        let mut grid = Grid::new([("table", GridColumn::Number), ("rows", GridColumn::Text)]);
        let longest = self.tables.iter().map(|table| table.name.len()).max().unwrap_or(0);
        for table in &self.tables {
            let sentence = table.description.split(". ").next().unwrap_or_default().trim_end_matches('.');
            grid.row([format!("{:longest$}", table.name), sentence.to_owned()]);
        }
        sheet.grid(grid);
        for absent in &self.absent {
            sheet.line(format!("No tables of {} yet: {} makes them", absent.study, absent.command));
        }
        sheet
    }
}
