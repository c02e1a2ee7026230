//! `nigh catalog`: keeps a description of the tables for the readers of a table format, beside the
//! tables.

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::Result;
use clap::{Args, ValueEnum};

use crate::cli::print::print_json;
use crate::cli::session::{locate_store, notify, read_manifest, take_store};
use crate::config::Config;
use crate::log::Log;
use crate::report::print;
use crate::state::CatalogFormat;

#[derive(Args)]
#[command(after_help = "Example:\n    nigh catalog crawls --format delta")]
pub(crate) struct CatalogArgs {
    /// Folder of all tables, or s3://BUCKET/PREFIX.
    #[arg(value_name = "STORE")]
    store: PathBuf,
    /// The description to keep. Every later commit to the store brings it up to date.
    #[arg(long, value_enum)]
    format: FormatArg,
    /// Local folder for the work on a store in a bucket [default: a folder in your cache].
    #[arg(long, value_name = "DIR")]
    mirror: Option<PathBuf>,
    /// Print one JSON object.
    #[arg(long)]
    pub json: bool,
}

/// A description, or none.
#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum FormatArg {
    /// Each folder of a table is a table of Delta Lake
    Delta,
    /// Remove the description
    None,
}

/// Turns the description on or off, and prints the tables.
pub(crate) fn run(args: &CatalogArgs, log: &Log) -> Result<ExitCode> {
    log.name("catalog".to_owned());
    let location = locate_store(&args.store, args.mirror.as_deref(), &Config::default())?;
    let store = location.store();
    let mut guard = take_store(&location, log)?;
    read_manifest(store, &args.store)?;
    let catalog = match args.format {
        FormatArg::Delta => Some(CatalogFormat::Delta),
        FormatArg::None => None,
    };
    let folders = store.set_catalog(catalog)?;
    guard.publish(true, &notify(log))?;
    if args.json {
        print_json(&serde_json::json!({ "format": catalog, "tables": folders }))?;
    } else if catalog.is_some() {
        let given = args.store.display().to_string();
        let given = given.trim_end_matches('/');
        print(&format!(
            "{} tables of {given} are Delta tables, and stay so with every commit. In Python: deltalake.DeltaTable('{given}/clusters')\n",
            folders.len()
        ))?;
    } else {
        print(&format!("The tables of {given} are not Delta tables\n", given = args.store.display()))?;
    }
    Ok(ExitCode::SUCCESS)
}
