//! Tables open in DuckDB, Polars, pyarrow, pandas, fastparquet and deltalake.

use std::path::Path;
use std::process::Command;

use nigh::tables::WEEK_TABLES;
use nigh::tables::studies::RESULTS;

use crate::program::{Made, ran, run_well, shipped_job, skipped};
use crate::skips::Need;
use crate::weeks::missing::{shipped_weekly_job, shipped_weeks};

/// Runs a script of the folder `scripts` on a store; `None`, and a skip of the test, if it lacks a
/// package.
fn script(name: &str, store: &Path) -> Option<String> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("scripts").join(name);
    if Command::new("python3").arg("--version").output().is_err() {
        skipped(Need::Engines, name);
        return None;
    }
    let ran = ran(Command::new("python3").arg(path).arg(store));
    if ran.code == Some(4) {
        skipped(Need::Engines, &format!("{name} ({})", ran.stderr.trim()));
        return None;
    }
    assert_eq!(ran.code, Some(0), "{}\n{}", ran.stdout, ran.stderr);
    Some(ran.stdout)
}

#[test]
fn every_table_of_every_week_opens_in_every_engine() {
    let weeks = shipped_weeks(&shipped_job(), &shipped_weekly_job(), &[]);
    let store = weeks.store();
    run_well(&["studies", store.to_str().unwrap(), "--last", "-q"]);
    // The pages of a week against themselves.
    let against = ["--against", "tests/data/week-2024-01-22"];
    run_well(&[&["run", "-q", "--store", store.to_str().unwrap()][..], &against].concat());
    let Some(opened) = script("engines.py", &store) else { return };
    run_well(&["catalog", store.to_str().unwrap(), "--format", "delta"]);
    assert_eq!(script("engines.py", &store).as_ref(), Some(&opened), "the same by the logs of Delta Lake");
    let tables = opened.lines().count();
    let of_jobs: usize = RESULTS.iter().map(|results| results.tables.len()).sum();
    assert_eq!(tables, WEEK_TABLES.len() + of_jobs, "{opened}");
    assert!(opened.contains("clusters\t3 files\t1506 rows"), "{opened}");
}

#[test]
fn duckdb_polars_and_pyarrow_read_the_tables() {
    let made = Made::new(&[]);
    for job in ["mirrors", "overlap", "collections", "mirrors-by-url", "paragraphs"] {
        let job = format!("jobs/{job}.toml");
        run_well(&["run", &job, "-q", "--store", made.store().to_str().unwrap()]);
    }
    let Some(ran) = script("queries.py", &made.store()) else { return };
    for engine in ["DuckDB", "Polars", "pyarrow"] {
        assert!(ran.contains(engine), "{ran}");
    }
    assert!(ran.contains("a part of a larger page") && ran.contains("one text or template"), "{ran}");
    assert!(ran.contains("names and paths in common") && ran.contains("mirrors by content and by URL"), "{ran}");
    assert!(ran.contains("copied most often") && ran.contains("need not be fetched"), "{ran}");
    assert!(ran.contains("a cleaner can drop") && ran.contains("grow with the parts"), "{ran}");
    eprintln!("{ran}");
}
