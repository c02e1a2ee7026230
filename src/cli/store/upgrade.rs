//! `nigh upgrade`: brings a store that an older version made up to date.

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::Result;
use clap::Args;

use crate::cli::print::print_json;
use crate::cli::session::{locate_store, notify, take_store};
use crate::config::Config;
use crate::log::Log;
use crate::report::print;

#[derive(Args)]
#[command(after_help = "Example:\n    nigh upgrade crawls")]
pub(crate) struct UpgradeArgs {
    /// Folder of all tables, or s3://BUCKET/PREFIX.
    #[arg(value_name = "STORE")]
    store: PathBuf,
    /// Local folder for the work on a store in a bucket [default: a folder in your cache].
    #[arg(long, value_name = "DIR")]
    mirror: Option<PathBuf>,
    /// Print one JSON object.
    #[arg(long)]
    pub json: bool,
}

/// Brings the store up to date, and prints what was done.
pub(crate) fn run(args: &UpgradeArgs, log: &Log) -> Result<ExitCode> {
    log.name("upgrade".to_owned());
    let location = locate_store(&args.store, args.mirror.as_deref(), &Config::default())?;
    let store = location.store();
    let mut guard = take_store(&location, log)?;
    let upgraded = store.upgrade()?;
    guard.publish(true, &notify(log))?;
    if args.json {
        print_json(&upgraded)?;
    } else if upgraded.from == upgraded.to {
        print(&format!("{} has format {}: nothing to do\n", args.store.display(), upgraded.to))?;
    } else {
        print(&format!(
            "{} has format {} now, instead of {}, with {} {}\n",
            args.store.display(),
            upgraded.to,
            upgraded.from,
            upgraded.weeks.len(),
            if upgraded.weeks.len() == 1 { "week" } else { "weeks" }
        ))?;
    }
    Ok(ExitCode::SUCCESS)
}
