//! `nigh pool`: makes TLS keys for several machines, and checks that they are ready to run a job.

mod check;

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::Result;
use clap::{Args, Subcommand};

use self::check::{CheckArgs, check};
use crate::config::Count;
use crate::launch::{DEFAULT_DAYS, MadeKeys};
use crate::report::print;

/// The flags of `nigh pool`.
#[derive(Args)]
pub(crate) struct PoolArgs {
    #[command(subcommand)]
    what: PoolCommand,
}

#[derive(Subcommand)]
enum PoolCommand {
    /// Make an authority, and a key and a certificate for each process, which connect by TLS.
    Keys(KeysArgs),
    /// Check every host (ssh, program, clock, ports, disk, inputs and store) and print what to fix.
    Check(CheckArgs),
}

#[derive(Args)]
struct KeysArgs {
    /// Number of processes. A key that is already in the folder is kept.
    #[arg(long, value_name = "N")]
    processes: Count,
    /// Folder for the keys. An authority that is already there is used.
    #[arg(long, value_name = "DIR")]
    out: PathBuf,
    /// Days for which the certificates are valid.
    #[arg(long, value_name = "N", default_value_t = DEFAULT_DAYS, value_parser = clap::value_parser!(u32).range(1..=3650))]
    days: u32,
}

/// Runs the subcommand.
pub(crate) fn pool(args: &PoolArgs) -> Result<ExitCode> {
    match &args.what {
        PoolCommand::Keys(args) => make_keys(args),
        PoolCommand::Check(args) => check(args),
    }
}

fn make_keys(args: &KeysArgs) -> Result<ExitCode> {
    let MadeKeys { new_authority, made, kept } = crate::launch::make(&args.out, args.processes.0, args.days)?;
    let folder = args.out.display();
    let authority = if new_authority { "a new authority" } else { "the existing authority" };
    let made = match (made.len(), kept.len()) {
        (0, kept) => format!("{folder}: all {kept} processes have keys already, of {authority}: nothing to do\n"),
        (made, 0) => format!("{folder}: keys for {made} processes, of {authority}, valid for {} days\n", args.days),
        (made, kept) => format!(
            "{folder}: keys for {made} more processes, of {authority}, valid for {} days; {kept} had theirs already\n",
            args.days
        ),
    };
    print(&made)?;
    print(
        "Process 7 needs authority.pem, process-007.pem and process-007.key, and so on. Keep authority.key to yourself.\n",
    )?;
    Ok(ExitCode::SUCCESS)
}
