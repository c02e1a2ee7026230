//! Commands and queries of README.md and docs/ print what these say: `scripts/documents.py` runs
//! them.

use std::path::Path;
use std::process::Command;

use crate::program::{ran, skipped};
use crate::skips::Need;

/// Runs the blocks of these kinds, which must print what stands behind them.
fn run_blocks(kinds: &[&str], least: usize) {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("scripts/documents.py");
    if Command::new("python3").arg("--version").output().is_err() {
        return skipped(Need::Engines, "the blocks of the documentation (no python3)");
    }
    let kinds = kinds.iter().flat_map(|kind| ["--kind", kind]);
    let ran = ran(Command::new("python3").arg(script).args(kinds).env("NIGH", env!("CARGO_BIN_EXE_nigh")));
    if ran.code == Some(4) {
        return skipped(Need::Engines, &format!("the queries of the documentation ({})", ran.stderr.trim()));
    }
    assert_eq!(ran.code, Some(0), "{}\n{}", ran.stdout, ran.stderr);
    let count = ran.stdout.lines().last().and_then(|line| line.split(' ').next()?.parse::<usize>().ok());
    assert!(count.is_some_and(|count| count >= least), "{}", ran.stdout);
}

#[test]
fn the_commands_of_the_docs_print_what_they_say() {
    run_blocks(&["sh"], 20);
}

#[test]
fn the_queries_of_the_docs_give_what_they_say() {
    run_blocks(&["sql", "python"], 21);
}
