//! The same bytes whatever the workers, the processes and the order of inputs.

use nigh::tables::WEEK_TABLES;

use crate::program::{Made, data, job, rows_of};

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

/// A file of 130 MiB is read in pieces; the same bytes in gzip, under the same name, are not. Its
/// texts are pairs of near copies.
#[test]
fn a_large_file_that_several_workers_read_gives_the_same_pages() {
    use std::io::Write as _;

    let folder = tempfile::tempdir().unwrap();
    let mut text = String::new();
    for line in 0.. {
        if text.len() > 130 << 20 {
            break;
        }
        // Sixteen times the same sentences, so that it takes little time to make them.
        let words: String = (0..150).map(|word| format!("d{}w{word} ", line / 2)).collect();
        let words = words.repeat(8);
        let end = if line % 2 == 0 { "" } else { "and no more" };
        text.push_str(&format!("{{\"id\":\"n{line}\",\"text\":\"{words}{end}\"}}\n"));
        if line % 1000 == 999 {
            text.push_str("this is no object\n");
        }
    }
    let path = |name: &str| {
        std::fs::create_dir_all(folder.path().join(name)).unwrap();
        folder.path().join(name).join("texts.jsonl")
    };
    let (plain, packed) = (path("plain"), path("packed"));
    std::fs::write(&plain, &text).unwrap();
    let mut encoder =
        flate2::write::GzEncoder::new(std::fs::File::create(&packed).unwrap(), flate2::Compression::fast());
    encoder.write_all(text.as_bytes()).unwrap();
    encoder.finish().unwrap();
    let columns =
        "[cluster.read.columns]\nid = \"id\"\n[cluster.method]\nshards = 4\nsimilarity = 0.8\nverify = \"exact\"\n";
    let job = job(folder.path(), &format!("[cluster]\nweek = \"2024-01-08\"\naccuracy = false\n{columns}"));
    let tables = |input: &std::path::Path, flags: &[&str]| {
        let mut all = vec!["--input", input.to_str().unwrap()];
        all.extend(flags);
        let made = Made::with_job(&job, &all);
        // The name of the file has its folder.
        let of = |table: &str, columns: &[&str]| rows_of(&made.week(), table, columns);
        [
            of("documents", &["doc", "id", "words", "offset", "bytes"]),
            of("clusters", &["doc", "similar_root", "identical_root", "exact_root", "cluster_id", "canonical"]),
            of("evidence", &["doc", "neighbour", "agreements", "found"]),
            of("rejects", &["offset", "reason"]),
        ]
    };
    let whole = tables(&packed, &["--workers", "1"]);
    assert!(whole[0].len() > 10_000 && whole[3].len() > 5 && whole[2].len() > 5_000, "{}", whole[0].len());
    for flags in [
        ["--workers", "1", "--processes", "1"],
        ["--workers", "2", "--processes", "1"],
        ["--workers", "2", "--processes", "2"],
    ] {
        assert!(tables(&plain, &flags) == whole, "{flags:?}");
    }
}
