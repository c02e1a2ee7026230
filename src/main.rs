//! The program `nigh`: see [`nigh::cli`] for its subcommands, [`nigh::jobs`] for what it computes.

use std::process::ExitCode;

fn main() -> ExitCode {
    nigh::cli::main()
}
