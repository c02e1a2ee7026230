//! The same bytes whatever the workers, the processes and the order of inputs.

use nigh::tables::WEEK_TABLES;

use crate::program::{Made, data, job};

/// Two stores are the same when their tables have the same names and the same bytes.
fn assert_same(a: &Made, b: &Made, what: &str) {
    let (a, b) = (a.tables(), b.tables());
    assert!(a.len() >= WEEK_TABLES.len(), "{} tables are too few to compare", a.len());
    assert_eq!(a.keys().collect::<Vec<_>>(), b.keys().collect::<Vec<_>>(), "{what}");
    for (name, bytes) in &a {
        assert!(b[name] == *bytes, "{what}: {name} differs");
    }
}

#[test]
fn the_tables_do_not_depend_on_workers_and_processes() {
    let one = Made::new(&["--workers", "1"]);
    for (workers, processes) in [("2", "1"), ("4", "1"), ("1", "2"), ("2", "2"), ("3", "3")] {
        let other = Made::new(&["--workers", workers, "--processes", processes]);
        assert_same(&one, &other, &format!("{workers} workers in {processes} processes"));
    }
}

#[test]
fn the_tables_do_not_depend_on_the_order_of_inputs() {
    let names = ["crawl-00000.warc.gz", "crawl-00001.warc.gz", "crawl-00002.warc.gz", "failed.tsv"];
    let files = names.map(|name| data("week-2024-01-08").join(name).to_str().unwrap().to_owned());
    let made = |order: [usize; 4]| {
        let mut flags = vec!["--input"];
        flags.extend(order.iter().map(|i| files[*i].as_str()));
        Made::new(&flags)
    };
    let one = made([0, 1, 2, 3]);
    assert_same(&one, &made([2, 3, 0, 1]), "another order");
    let folder = data("week-2024-01-08");
    assert_same(&one, &Made::new(&["--input", folder.to_str().unwrap()]), "the folder");
}

#[test]
fn waves_and_little_memory_give_the_same_pages_for_any_workers() {
    let folder = tempfile::tempdir().unwrap();
    let job = job(
        folder.path(),
        "[cluster]\nweek = \"2024-01-08\"\nwave-bytes = 1\ninput = [\"tests/data/week-2024-01-08\"]\n",
    );
    let config = folder.path().join("config.toml");
    // So little memory that waves spill, and that keys are taken in many ranges.
    std::fs::write(&config, "memory = 40000\n").unwrap();
    let config = config.to_str().unwrap();
    let one = Made::with_job(&job, &["--workers", "1"]);
    assert_same(&one, &Made::with_job(&job, &["--workers", "2", "--config", config]), "two workers, 40 kB");
    assert_same(
        &one,
        &Made::with_job(&job, &["--workers", "2", "--processes", "2", "--config", config]),
        "two processes, 40 kB",
    );
}
