//! `nigh completions` and `nigh man`: what a shell and `man` know of the command line, made from
//! its definition.

use std::io::Write as _;
use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::{Context, Result};
use clap::{Args, CommandFactory as _};
use clap_complete::Shell;

use super::Cli;
use crate::report::print;

#[derive(Args)]
pub(crate) struct CompletionsArgs {
    /// The shell.
    shell: Shell,
}

#[derive(Args)]
pub(crate) struct ManArgs {
    /// A folder for one page of each command, instead of the page of `nigh` on standard output.
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
}

/// Prints the completions of a shell.
pub(crate) fn completions(args: &CompletionsArgs) -> Result<ExitCode> {
    let mut text = Vec::new();
    clap_complete::generate(args.shell, &mut Cli::command(), "nigh", &mut text);
    print(&*String::from_utf8_lossy(&text))?;
    Ok(ExitCode::SUCCESS)
}

/// Prints the manual page, or writes one for each command.
pub(crate) fn man(args: &ManArgs) -> Result<ExitCode> {
    let command = Cli::command();
    let Some(folder) = &args.out else {
        let mut page = Vec::new();
        clap_mangen::Man::new(command).render(&mut page).context("cannot write the page")?;
        print(&*String::from_utf8_lossy(&page))?;
        return Ok(ExitCode::SUCCESS);
    };
    std::fs::create_dir_all(folder).with_context(|| format!("cannot make {}", folder.display()))?;
    clap_mangen::generate_to(command, folder)
        .with_context(|| format!("cannot write the pages to {}", folder.display()))?;
    std::io::stdout().flush().context("cannot write to standard output")?;
    Ok(ExitCode::SUCCESS)
}

/// `nigh bench` of a program that is built without its benchmarks.
#[cfg(not(feature = "bench"))]
#[derive(clap::Args)]
pub(crate) struct AbsentBench {
    /// What would be measured.
    #[arg(trailing_var_arg = true, allow_hyphen_values = true, hide = true)]
    _of: Vec<String>,
}

#[cfg(not(feature = "bench"))]
impl AbsentBench {
    /// Says how to build the program with them.
    pub(crate) fn refuse(&self) -> Result<ExitCode> {
        anyhow::bail!(
            "this nigh is built without its benchmarks: `cargo build --release --features bench` makes one that has them"
        )
    }
}
