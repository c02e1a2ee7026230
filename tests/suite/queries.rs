//! Tables open in DuckDB, Polars and pyarrow.

use std::process::Command;

use crate::program::{Made, ran, skipped};
use crate::skips::Need;

#[test]
fn duckdb_polars_and_pyarrow_read_the_tables() {
    let made = Made::new(&[]);
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/scripts/queries.py");
    if Command::new("python3").arg("--version").output().is_err() {
        skipped(Need::Engines, "queries by DuckDB, Polars and pyarrow");
        return;
    }
    let ran = ran(Command::new("python3").arg(script).arg(made.store()));
    if ran.code == Some(4) {
        skipped(Need::Engines, &format!("queries by DuckDB, Polars and pyarrow ({})", ran.stderr.trim()));
        return;
    }
    assert_eq!(ran.code, Some(0), "{}\n{}", ran.stdout, ran.stderr);
    for engine in ["DuckDB", "Polars", "pyarrow"] {
        assert!(ran.stdout.contains(engine), "{}", ran.stdout);
    }
    eprintln!("{}", ran.stdout);
}
