//! `nigh init`: writes a commented job file.

use std::io::Write as _;
use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::{Context, Result};
use clap::Args;
use clap::builder::PossibleValuesParser;

use super::errors::WrongUse;
use crate::job_file::{built_in_job, built_in_jobs};
use crate::report::print;

#[derive(Args)]
pub(crate) struct InitArgs {
    /// The kind of job.
    #[arg(default_value = "cluster", value_parser = PossibleValuesParser::new(built_in_jobs()))]
    job: String,
    /// The file to write, or `-` for standard output [default: JOB.toml].
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,
}

/// Writes the job file, which must not exist.
pub(crate) fn run(args: &InitArgs) -> Result<ExitCode> {
    let text = built_in_job(&args.job).context("the name of a job has a text")?;
    let path = args.out.clone().unwrap_or_else(|| format!("{}.toml", args.job).into());
    if path.as_os_str() == "-" {
        print(text)?;
        return Ok(ExitCode::SUCCESS);
    }
    let name = path.display();
    let mut file = std::fs::File::create_new(&path).map_err(|error| match error.kind() {
        std::io::ErrorKind::AlreadyExists => WrongUse(format!("{name} exists already: give another --out FILE")).into(),
        _ => anyhow::Error::new(error).context(format!("cannot write {name}")),
    })?;
    file.write_all(text.as_bytes()).with_context(|| format!("cannot write {name}"))?;
    print(&format!("Wrote {name}. Every field is there with its default; run it with `nigh run {name}`\n"))?;
    Ok(ExitCode::SUCCESS)
}
