//! `nigh check`: reads all files of a store, and says which are not as they were written.

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::{Result, bail};
use clap::Args;

use crate::cli::errors::WrongUse;
use crate::cli::print::print_json;
use crate::cli::session::{check_not_inside, notify};
use crate::config::Bytes;
use crate::log::Log;
use crate::mirror::{CheckedStore, check_store, url_of};
use crate::objects::refuse_secrets;
use crate::report::print;
use crate::text::printable;

/// An example, and what is not read, at the end of `nigh help check`.
const ABOUT: &str = "\
Example:
    nigh check crawls

Exit code 1 if a file is damaged. Files that nigh can make again are not read: the index of
`nigh find`, views.sql, logs of Delta Lake. Nor are the journal and the documents of `nigh live`.";

#[derive(Args)]
#[command(after_help = ABOUT)]
pub(crate) struct CheckStoreArgs {
    /// Folder of all tables, or s3://BUCKET/PREFIX.
    #[arg(value_name = "STORE")]
    store: PathBuf,
    /// Print one JSON object.
    #[arg(long)]
    pub json: bool,
}

/// Compares the files of the store with their digests, and prints those that differ.
pub(crate) fn run(args: &CheckStoreArgs, log: &Log) -> Result<ExitCode> {
    if let Some(url) = args.store.to_str() {
        refuse_secrets(url).map_err(WrongUse::from_error)?;
    }
    check_not_inside(&args.store)?;
    let checked = check_store(&args.store, &notify(log))?;
    if args.json {
        print_json(&checked)?;
    } else {
        print(&text(args, &checked))?;
    }
    let CheckedStore { files, damaged, .. } = &checked;
    if damaged.is_empty() {
        return Ok(ExitCode::SUCCESS);
    }
    let what_to_do = if url_of(&args.store)?.is_some() {
        "on a machine whose mirror has them whole, remove these objects and run `nigh vacuum` with a --keep of all weeks: that puts them back"
    } else {
        "restore them from a copy; what can be done without one is in docs/weeks.md, \"Damaged files\""
    };
    bail!("{} of {files} files of {} are damaged: {what_to_do}", damaged.len(), args.store.display())
}

fn text(args: &CheckStoreArgs, checked: &CheckedStore) -> String {
    let CheckedStore { files, bytes, without_digest, damaged } = checked;
    let mut text = String::new();
    for file in damaged {
        text += &format!("{} {}\n", printable(&file.file), printable(&file.found));
    }
    let compared = files - without_digest;
    if damaged.is_empty() && compared > 0 {
        text += &format!("{}: {compared} files, {}, are as they were written\n", args.store.display(), Bytes(*bytes));
    }
    if *without_digest > 0 {
        let why = "an older version wrote them, or the list of digests is damaged or was removed";
        text += &format!("{without_digest} files have no digest, so at most their sizes were compared: {why}\n");
    }
    text
}
