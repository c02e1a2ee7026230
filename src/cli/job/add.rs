//! `nigh add`: adds a batch to a store, whose documents stay.

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::{Result, bail};
use clap::Args;

use crate::cli::args::{RunArgs, is_typed};
use crate::cli::errors::WrongUse;
use crate::config::Absent;
use crate::log::Log;

/// Examples at the end of `nigh help add`.
const EXAMPLES: &str = "\
Examples:
    nigh add corpus --input 'batch-1/*.jsonl'
    nigh add corpus --input 'batch-2/*.jsonl'
    nigh export corpus --out batch-2-new --since 2024-02-01
  New documents that are not in the corpus, with what is repeated among them:
    nigh add corpus --only-older --input 'batch-3/*.jsonl'

It is `nigh run --absent keep`: what the batch does not have stays as it was. Without --week the batch is named by today's date.";

#[derive(Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct AddArgs {
    /// Folder of all tables, or s3://BUCKET/PREFIX; it is made if it is not there.
    #[arg(value_name = "STORE")]
    to: PathBuf,
    #[command(flatten)]
    run: RunArgs,
}

/// Adds the batch, and prints the summary of all documents.
pub(crate) fn run(args: AddArgs, log: &Log) -> Result<ExitCode> {
    let AddArgs { to, mut run } = args;
    // Variables are for runs of any command; what this one says overrides them.
    if is_typed("--store") || is_typed("--absent") {
        bail!(WrongUse(
            "`nigh add STORE` names the store, and keeps what is there: leave out --store and --absent".into()
        ));
    }
    if is_typed("--against") {
        bail!(WrongUse(
            "--against compares a batch that is there: add it without, and then `nigh run --store STORE --against REFERENCE`".into()
        ));
    }
    (run.store, run.absent) = (Some(to), Some(Absent::Keep));
    super::run::run_given(&run, &|flag| flag == "--absent" || is_typed(flag), log)
}

impl AddArgs {
    /// The flags of the run.
    pub(crate) fn run(&self) -> &RunArgs {
        &self.run
    }
}
