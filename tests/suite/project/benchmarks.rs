//! `nigh bench`: a stage has the labels of a single thread, however it is run; and a whole run is
//! measured.

use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::program::{nigh, run, run_well};

fn figures(arguments: &[&str]) -> Value {
    let ran = run_well(&[&["bench"], arguments, &["--json"]].concat());
    serde_json::from_str(&ran.stdout).unwrap()
}

#[test]
fn a_process_that_keeps_clusters_is_measured() {
    let flags = ["--documents", "600", "--words", "40", "--batch", "100", "--cluster", "60", "--seconds", "1"];
    let figures = figures(&[&["live"][..], &flags].concat());
    assert_eq!((&figures["clusters_match"], &figures["documents"]), (&true.into(), &600.into()), "{figures}");
    assert!(figures["clusters"].as_u64().unwrap() > 10, "{figures}");
    for key in ["in_process_per_cpu_s", "by_http_per_s", "vector_bytes_per_document"] {
        assert!(figures[key].as_f64().unwrap() > 0.0, "{key}: {figures}");
    }
}

#[test]
fn the_cluster_stage_has_the_labels_of_a_single_thread() {
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().join("vectors");
    let data = data.to_str().unwrap();
    let mut checksums = Vec::new();
    for flags in [
        &["--workers", "1"][..],
        &["--workers", "2"],
        &["--workers", "4", "--memory", "2MB"],
        &["--workers", "1", "--processes", "2"],
        &["--workers", "2", "--processes", "2", "--memory", "1MB"],
    ] {
        let arguments = [&["cluster", "--documents", "30000", "--data", data], flags].concat();
        let figures = figures(&arguments);
        assert_eq!(figures["labels_match"], true, "{flags:?}");
        assert_eq!(figures["documents"], 30000);
        for key in [
            "workers",
            "processes",
            "wall_s",
            "cpu_ns_per_document",
            "peak_anonymous_bytes",
            "exchanged_bytes_per_document",
            "pair_records_per_document",
            "edges_per_document",
            "rounds",
            "single_thread_s",
        ] {
            assert!(figures[key].is_number(), "{key}: {figures}");
        }
        // 0.2216 when it was measured; the synthetic pages do not depend on the workers.
        assert!((0.20..0.25).contains(&figures["duplicates_per_document"].as_f64().unwrap()), "{figures}");
        checksums.push(figures["checksum"].as_str().unwrap().to_owned());
    }
    assert!(checksums.windows(2).all(|pair| pair[0] == pair[1]), "{checksums:?}");
    // Without noise fewer documents share a key with others: 0.120 of them against 0.159 when it
    // was measured.
    let [noisy, quiet] = [&[][..], &["--noise", "0,0"]].map(|flags| {
        let figures = figures(&[&["cluster", "--documents", "30000"], flags].concat());
        assert_eq!(figures["labels_match"], true);
        figures["survivors_per_document"].as_f64().unwrap()
    });
    assert!(quiet < 0.9 * noisy, "{quiet} {noisy}");
}

#[test]
fn a_whole_run_is_measured_stage_by_stage() {
    for arguments in [
        &["job", "--documents", "2000", "--format", "jsonl", "--runs", "1"][..],
        &["job", "--input", "tests/data/week-2024-01-08/*.warc.gz", "--workers", "2", "--runs", "2"],
    ] {
        let figures = figures(arguments);
        let rows = figures["rows"].as_array().unwrap();
        let stages: Vec<&str> = rows.iter().map(|row| row["stage"].as_str().unwrap()).collect();
        for stage in ["reading", "  records", "  features", "collapsing", "writing tables", "packing tables"] {
            assert!(stages.contains(&stage), "{stages:?}");
        }
        let cpu = |stage: &str| rows.iter().find(|row| row["stage"] == stage).unwrap()["cpu_s"].as_f64().unwrap();
        let parts = ["  records", "  features", "  rows of pages"].map(cpu);
        assert!((parts.iter().sum::<f64>() / cpu("reading") - 1.0).abs() < 1e-6, "{figures}");
        assert!(parts[0] > 0.0 && parts[1] > 0.0, "{figures}");
        let stages = rows.iter().filter(|row| row["wall_s"].is_number()).map(|row| row["cpu_s"].as_f64().unwrap());
        assert!((stages.sum::<f64>() / figures["cpu_s"].as_f64().unwrap() - 1.0).abs() < 1e-6, "{figures}");
        assert!(figures["words"].as_u64() > Some(100_000) && figures["mb_per_cpu_s"].as_f64() > Some(0.0), "{figures}");
    }
    // What only a run refuses: more than four workers for a shard.
    let folder = tempfile::tempdir().unwrap();
    let job = folder.path().join("few.toml");
    std::fs::write(&job, "[cluster.method]\nshards = 1\n").unwrap();
    let input = "tests/data/week-2024-01-08/*.warc.gz";
    let job = job.to_str().unwrap();
    let failed = run(&["bench", "job", "--job", job, "--input", input, "--workers", "5", "--runs", "1"]);
    assert!(failed.code != Some(0) && failed.stderr.contains("the run failed"), "{}", failed.stderr);
}

/// They would be those of the rule by default.
#[test]
fn stages_are_not_measured_for_a_job_of_another_rule_of_words() {
    let folder = tempfile::tempdir().unwrap();
    let job = folder.path().join("job.toml");
    for method in ["words = \"code\"", "fold-case = true"] {
        std::fs::write(&job, format!("[cluster.method]\n{method}\n")).unwrap();
        for arguments in [&["text"][..], &["features"], &["html", "--input", "tests/data/week-2024-01-08/*.warc.gz"]] {
            let failed = run(&[&["bench"], arguments, &["--job", job.to_str().unwrap()]].concat());
            assert_eq!(failed.code, Some(1), "{method}: {}", failed.stderr);
            assert!(failed.stderr.contains("the job has another rule of words, form or content"), "{}", failed.stderr);
        }
    }
}

#[test]
fn a_check_by_features_has_the_labels_of_a_single_thread() {
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().join("sketches");
    let mut checksums = Vec::new();
    for flags in [
        &["--workers", "1"][..],
        &["--workers", "2"],
        &["--workers", "4", "--memory", "4MB"],
        &["--workers", "1", "--processes", "2"],
    ] {
        let arguments = ["verify", "--documents", "30000", "--unlike", "0.2", "--data", data.to_str().unwrap()];
        let figures = figures(&[&arguments[..], flags].concat());
        assert_eq!(figures["labels_match"], true, "{flags:?}");
        assert!(figures["split_off"].as_u64().unwrap() > 100, "{figures}");
        assert!(figures["doubtful_clusters"].as_u64().unwrap() > 100, "{figures}");
        checksums.push(figures["checksum"].as_str().unwrap().to_owned());
    }
    assert!(checksums.windows(2).all(|pair| pair[0] == pair[1]), "{checksums:?}");
}

#[test]
fn components_of_every_shape_have_the_labels_of_a_single_thread() {
    for shape in ["chain", "star", "power-law", "grid"] {
        for flags in [&["--workers", "1"][..], &["--apart"], &["--workers", "4", "--apart"], &["--processes", "2"]] {
            let figures = figures(&[&["components", "--nodes", "20000", "--shape", shape], flags].concat());
            assert_eq!(figures["labels_match"], true, "{shape} {flags:?}");
            // Plain label propagation would need as many rounds as a chain has nodes. The most
            // measured is 15, of chains.
            assert!(figures["rounds"].as_u64().unwrap() <= 40, "{shape} {flags:?}: {figures}");
            for key in ["nodes", "edges", "wall_s", "single_thread_s", "max_worker_share"] {
                assert!(figures[key].is_number(), "{key}: {figures}");
            }
        }
    }
}

#[test]
fn too_little_memory_and_strange_folders_are_refused() {
    let refused = |arguments: &[&str], words: &[&str]| {
        let ran = run(&[&["bench", "cluster", "--documents", "30000"], arguments].concat());
        assert_eq!(ran.code, Some(1), "{}", ran.stderr);
        words.iter().for_each(|word| assert!(ran.stderr.contains(word), "{word}: {}", ran.stderr));
    };
    refused(&["--memory", "300kB"], &["at least", "MiB of memory"]);
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("thesis.txt"), "dear").unwrap();
    refused(&["--data", folder.path().to_str().unwrap()], &[folder.path().to_str().unwrap()]);
}

#[test]
fn a_benchmark_that_is_stopped_leaves_nothing() {
    // Its folder may just be made, or files be written, when the signal comes.
    for later in [0, 1, 10, 100, 500].map(Duration::from_millis) {
        let folder = tempfile::tempdir().unwrap();
        let mut command = nigh(&["bench", "cluster", "--documents", "50000000"]);
        let mut child =
            command.env("TMPDIR", folder.path()).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
        let left = || std::fs::read_dir(folder.path()).unwrap().count();
        let begun = Instant::now();
        while left() == 0 {
            assert!(begun.elapsed() < Duration::from_secs(60), "nothing is written");
            std::thread::sleep(Duration::from_micros(100));
        }
        std::thread::sleep(later);
        let id = child.id().to_string();
        assert!(Command::new("kill").args(["-s", "TERM", &id]).status().unwrap().success());
        assert_eq!(child.wait().unwrap().code(), Some(143), "{later:?}");
        assert_eq!(left(), 0, "{later:?}");
    }
}

#[test]
fn made_up_urls_and_links_give_the_same_for_any_workers() {
    for arguments in [
        &["mirrors-by-url", "--urls", "60000", "--times", "2"][..],
        &["overlap", "--documents", "20000"],
        &["mirrors", "--documents", "100000"],
        &["collections", "--documents", "30000"],
        &["paragraphs", "--documents", "20000"],
        &["paragraphs", "--documents", "30000", "--links", "9"],
    ] {
        let checksums = [
            &["--workers", "1"][..],
            &["--workers", "2", "--memory", "1MB"],
            &["--workers", "4"],
            &["--workers", "1", "--processes", "2"],
        ]
        .map(|flags| figures(&[arguments, flags].concat())["checksum"].as_str().unwrap().to_owned());
        assert!(checksums.windows(2).all(|pair| pair[0] == pair[1]), "{arguments:?}: {checksums:?}");
    }
    let figures = figures(&["mirrors-by-url", "--urls", "60000", "--times", "2"]);
    // 375 hosts of 160 URLs; an eighth of them copy one of 15.
    let [read, urls] = ["read", "urls"].map(|count| figures["urls"][count].as_u64().unwrap());
    assert_eq!((read, urls), (120_000, 60_000), "{figures}");
    assert!((30..600).contains(&figures["candidates"].as_u64().unwrap()), "{figures}");
}

#[cfg(feature = "live")]
#[test]
fn documents_that_come_have_the_same_clusters_in_process_by_http_and_in_the_tables() {
    let flags =
        ["live", "--documents", "3000", "--words", "60", "--batch", "500", "--cluster", "500", "--seconds", "1"];
    let figures = figures(&flags);
    assert_eq!(figures["clusters_match"], true, "{figures}");
    // A tenth of the documents are copies, and two tenths near-duplicates.
    assert!((2500..2900).contains(&figures["distinct_vectors"].as_u64().unwrap()), "{figures}");
    assert!((150..700).contains(&figures["clusters"].as_u64().unwrap()), "{figures}");
    for part in ["in_process", "by_http", "commit", "start"] {
        assert!(figures[part]["wall_s"].as_f64() > Some(0.0), "{figures}");
    }
    for key in ["merge_s", "split_s", "split_of_one_s"] {
        assert!(figures["joins"][key].as_f64() > Some(0.0), "{figures}");
    }
    let single = &figures["single"];
    assert!(single["sent"].as_u64() > Some(0) && single["p50_ms"].as_f64() <= single["p99_ms"].as_f64(), "{figures}");
    // 84 features of two bytes, and six supershingles of eight for each vector.
    let bytes = figures["vector_bytes_per_document"].as_f64().unwrap();
    assert!((168.0..216.0).contains(&bytes), "{figures}");
    let table = run_well(&[&["bench"][..], &flags].concat()).stdout;
    assert!(table.contains("taken and answered, by HTTP") && table.contains("p99"), "{table}");
}
