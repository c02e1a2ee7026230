//! Pages and hosts that share chunks, against a twin that compares all pairs: on real pages, on the
//! made web and on random pages.

mod twin;
mod weeks;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Instant;

use nigh::records::mix;
use nigh::tables::result_tables;

use self::twin::{OverlapSettings, assert_families_are_right, assert_right, rows, units};
use crate::program::{Made, WEEK, data, files, job, kill_at_moments, longs, run, run_well, tables, week};
use crate::web::{COLUMNS, Web};

/// Random numbers below some bound.
fn random_numbers(seed: u64) -> impl FnMut(u64) -> u64 {
    let mut state = seed;
    move |below| {
        state = mix(state);
        state % below
    }
}

/// A store of random pages: some like one of three templates with lines left out, some with one
/// text, some of few lines.
fn random_store(seed: u64, count: u64) -> Made {
    let folder = tempfile::tempdir().unwrap();
    let mut random = random_numbers(seed);
    let mut lines: Vec<String> = Vec::new();
    for number in 0..count {
        let (kind, host) = (random(5), random(9));
        let mut text: Vec<String> = Vec::new();
        if kind < 3 {
            let least = 40 + random(20);
            text.extend(
                (0..70)
                    .filter(|line| *line < least || random(10) > 0)
                    .map(|line| format!("template {kind} has line {line}")),
            );
        }
        // Lines of few pages, and of this one.
        let from = random(40);
        text.extend((from..from + random(30)).map(|line| format!("some pages say {line} of this")));
        text.extend((0..random(12)).map(|line| format!("only page {number} says {line}")));
        if random(6) == 0 {
            text = (0..60).map(|line| format!("copied text {} with line {line}", host % 2)).collect();
        }
        let ip = if host == 8 { serde_json::Value::Null } else { format!("10.0.0.{}", host % 5).into() };
        let url = format!("http://h{host}.example/page{number}");
        lines.push(serde_json::json!({"url": url, "text": text.join("\n"), "ip": ip}).to_string());
    }
    made_of(&folder, &(lines.join("\n") + "\n"), "[cluster.read.columns]\nip = \"ip\"\n")
}

/// A store of JSON Lines.
fn made_of(folder: &tempfile::TempDir, lines: &str, columns: &str) -> Made {
    let input = folder.path().join("pages.jsonl");
    std::fs::write(&input, lines).unwrap();
    let text =
        format!("[cluster]\nweek = \"{WEEK}\"\nallow-empty = true\ninput = [\"{}\"]\n{columns}", input.display());
    Made::with_job(&job(folder.path(), &text), &[])
}

#[test]
fn pairs_of_random_pages_are_those_of_brute_force() {
    for (seed, thresholds) in [(1, [1, 1, 2]), (2, [1, 2, 15]), (3, [1, 15, 25])] {
        let made = random_store(seed, 150);
        let store = made.store();
        for (at, (content, host)) in
            [(false, false), (true, false), (false, true), (true, true)].into_iter().enumerate()
        {
            let settings = OverlapSettings { content, host, thresholds, ..OverlapSettings::default() };
            let listed = settings.run(&store, &["--workers", "2"]);
            assert!(assert_right(&store, WEEK, &settings) > 20, "seed {seed}");
            for method in ["sort", "coarse"] {
                let other = OverlapSettings { method, ..settings }.run(&store, &["--workers", "2"]);
                assert!(other == listed, "{method} gives other tables than prefix, seed {seed}");
            }
            // Each of four with each unit, with one store or another.
            let ways = [(3, 0.0), (1, 0.2), (2, 0.5), (8, 1.0)];
            for (hashes, pilot) in [0, 1].map(|way| ways[(2 * way + at + seed as usize) % 4]) {
                let coarse = OverlapSettings { method: "coarse", hashes, pilot, ..settings };
                let other = coarse.run(&store, &["--workers", "2"]);
                assert!(other == listed, "{hashes} hash functions, a pilot of {pilot}, seed {seed}");
            }
            let families = OverlapSettings { family: 5, list: false, ..settings };
            families.run(&store, &["--workers", "2"]);
            let implied = assert_families_are_right(&store, WEEK, &families);
            assert!(implied > 0 || host, "seed {seed}");
        }
    }
}

#[test]
fn pairs_of_real_pages_and_of_the_made_web_are_those_of_brute_force() {
    let real = Made::new(&[]);
    let folder = tempfile::tempdir().unwrap();
    Web::small().week(0).write_jsonl(folder.path());
    let text =
        format!("[cluster]\nweek = \"{WEEK}\"\ninput = [\"{}/pages.jsonl\"]\n{COLUMNS}", folder.path().display());
    let web = Made::with_job(&job(folder.path(), &text), &[]);
    for made in [real, web] {
        let store = made.store();
        for (content, host) in [(false, false), (true, false), (false, true)] {
            let settings = OverlapSettings { content, host, ..OverlapSettings::default() };
            let listed = settings.run(&store, &[]);
            assert!(assert_right(&store, WEEK, &settings) > 0);
            assert!(OverlapSettings { method: "sort", ..settings }.run(&store, &[]) == listed);
        }
        let settings = OverlapSettings { thresholds: [1, 1, 2], list: false, family: 20, ..OverlapSettings::default() };
        settings.run(&store, &[]);
        assert!(assert_families_are_right(&store, WEEK, &settings) > 0);
    }
}

#[test]
fn workers_processes_and_memory_do_not_change_a_byte() {
    let made = random_store(7, 200);
    let store = made.store();
    let folder = tempfile::tempdir().unwrap();
    let little = folder.path().join("little.toml");
    std::fs::write(&little, "memory = \"64KiB\"\n").unwrap();
    for host in [false, true] {
        for (method, family, hashes, pilot) in
            [("prefix", 5, 1, 0.0), ("sort", 200, 1, 0.0), ("coarse", 200, 1, 0.0), ("coarse", 200, 2, 0.3)]
        {
            let (thresholds, list) = ([1, 2, 2], false);
            let settings =
                OverlapSettings { host, thresholds, method, family, list, hashes, pilot, ..OverlapSettings::default() };
            let one = settings.run(&store, &["--workers", "1"]);
            assert!(one.len() >= 9 && one.values().map(Vec::len).sum::<usize>() > 10_000);
            for flags in [
                &["--workers", "2"][..],
                &["--workers", "4"],
                &["--workers", "1", "--processes", "2"],
                &["--workers", "2", "--processes", "2"],
                &["--workers", "2", "--config", little.to_str().unwrap()],
            ] {
                assert!(settings.run(&store, flags) == one, "{method}, {flags:?}");
            }
        }
    }
}

#[test]
fn an_empty_week_and_one_page_have_tables_without_pairs() {
    let folder = tempfile::tempdir().unwrap();
    let page = "{\"url\": \"http://a.example/\", \"text\": \"one line\"}\n";
    let without_words = "{\"url\": \"http://a.example/\", \"text\": \"...\"}\n";
    for (lines, units) in [("", 0), (page, 1), (without_words, 0)] {
        let made = made_of(&folder, lines, "");
        let store = made.store();
        for host in [false, true] {
            for method in ["prefix", "sort", "coarse"] {
                let settings = OverlapSettings { host, method, ..OverlapSettings::default() };
                settings.run(&store, &["--workers", "2"]);
                assert_eq!(assert_right(&store, WEEK, &settings), 0);
                assert_eq!(longs(&store.join("overlap"), "savings", "documents"), [units; 3]);
                for table in result_tables("overlap") {
                    assert!(!files(&store.join("overlap"), table.name).is_empty(), "{} has a file", table.name);
                }
            }
        }
    }
}

#[test]
fn the_summary_has_the_published_figures_beside_ours() {
    let made = Made::new(&[]);
    let store = made.store();
    let arguments = ["run", "jobs/overlap.toml", "--store", store.to_str().unwrap()];
    let text = run_well(&arguments).stdout;
    for wanted in ["Overlap of week 2024-01-08", "four-lines", "22.0%", "64.0%", "same-host"] {
        assert!(text.contains(wanted), "{wanted}: {text}");
    }
    assert_eq!(run_well(&["show", store.to_str().unwrap(), "--job", "overlap"]).stdout, text);
    let json = run_well(&[&arguments[..], &["--json", "--week", WEEK]].concat()).stdout;
    let summary: serde_json::Value = serde_json::from_str(&json).unwrap();
    let four = &summary["chunkings"][1];
    assert_eq!(
        (&summary["first"], &four["chunking"], &four["saving"]["published"]),
        (&WEEK.into(), &"four-lines".into(), &0.29.into())
    );
    assert_eq!(four["pairs"], rows(&store, "overlap").iter().filter(|row| row[0] == "four-lines").count());
    let dry = run_well(&[&arguments[..], &["--dry-run"]].concat()).stdout;
    let pages = longs(&week(&store, WEEK), "documents", "doc").len();
    for wanted in ["2024-01-08", &format!("Pages     {pages} to read"), "for records in flight, about"] {
        assert!(dry.contains(wanted), "{wanted}: {dry}");
    }
}

/// Table 1 of the study: what a run keeps of its steps.
#[test]
fn the_summary_has_what_each_step_needed() {
    let made = random_store(3, 150);
    let store = made.store();
    let all = || twin::pages(&week(&store, WEEK));
    let (of_hosts, centres) = (all(), twin::centres(all()));
    let needs = |settings: &OverlapSettings, workers: &str| -> BTreeMap<(String, String), [Option<f64>; 3]> {
        settings.run(&store, &["--workers", workers]);
        let shown = run_well(&["show", store.to_str().unwrap(), "--job", "overlap", "--json"]).stdout;
        let summary: serde_json::Value = serde_json::from_str(&shown).unwrap();
        assert_eq!(summary["workers"], workers.parse::<u64>().unwrap());
        let text = |value: &serde_json::Value| value.as_str().unwrap_or("all").to_owned();
        let steps = summary["steps"].as_array().unwrap().iter();
        let numbers = |step: &serde_json::Value| ["seconds", "records", "bytes"].map(|name| step[name].as_f64());
        steps.map(|step| ((text(&step["chunking"]), text(&step["step"])), numbers(step))).collect()
    };
    for host in [false, true] {
        let settings = OverlapSettings { host, thresholds: [1, 2, 2], ..OverlapSettings::default() };
        let prefix = needs(&settings, "2");
        let sort = needs(&OverlapSettings { method: "sort", ..settings }, "1");
        let coarse = |hashes, pilot| needs(&OverlapSettings { method: "coarse", hashes, pilot, ..settings }, "1");
        let (one, coarse, whole) = (coarse(1, 0.0), coarse(2, 0.0), coarse(1, 1.0));
        for chunking in ["four-lines", "two-lines"] {
            let of = |needs: &BTreeMap<(String, String), [Option<f64>; 3]>, step: &str| {
                needs.get(&(chunking.to_owned(), step.to_owned())).copied()
            };
            let units = units(if host { &of_hosts } else { &centres }, &store, chunking, &settings);
            let pairs = twin::pairs(&units, 2);
            let fingerprints = units.iter().map(|unit| unit.chunk_count()).sum::<usize>() as f64;
            for needs in [&prefix, &sort, &one, &coarse, &whole] {
                assert_eq!(of(needs, "fingerprints"), Some([None, Some(fingerprints), Some(16.0 * fingerprints)]));
                let [seconds, records, _] = of(needs, "pairs").unwrap();
                assert!(seconds.unwrap() >= 0.0 && records == Some(pairs.len() as f64), "{chunking} {records:?}");
                assert!(of(needs, "components").unwrap()[0].is_some());
            }
            assert_eq!(of(&prefix, "common-chunks"), None);
            let common = twin::pairs(&units, 1).values().sum::<usize>() as f64;
            let right = pairs.values().sum::<usize>() as f64;
            for needs in [&sort, &one, &coarse, &whole] {
                assert_eq!(of(needs, "common-chunks").unwrap()[1], Some(common));
                let exact = of(needs, "counted").unwrap()[1].unwrap();
                assert!((right..=common).contains(&exact), "{right} {exact} {common}");
            }
            assert_eq!(of(&sort, "counted").unwrap()[1], Some(common));
            for needs in [&one, &coarse] {
                assert_eq!(of(needs, "piloted"), None);
            }
            let piloted = of(&whole, "piloted").unwrap()[1].unwrap();
            assert!(0.0 < piloted && piloted <= pairs.len() as f64, "{piloted} of {}", pairs.len());
        }
        for step in ["copies", "tables"] {
            assert!(prefix[&("all".to_owned(), step.to_owned())][0].is_some());
        }
        // Texts of hosts are not compared.
        let copies = prefix[&("all".to_owned(), "copies".to_owned())];
        assert_eq!([copies[1].is_some(), copies[2].is_some()], [!host; 2]);
    }
    let shown = run_well(&["show", store.to_str().unwrap(), "--job", "overlap"]).stdout;
    assert!(shown.contains("steps of 1 worker") && shown.contains("two-lines: fingerprints"), "{shown}");
}

#[test]
fn too_many_pairs_are_refused_with_the_reason() {
    let made = random_store(5, 150);
    let store = made.store();
    let settings = OverlapSettings { thresholds: [1, 2, 2], ..OverlapSettings::default() };
    let before = settings.run(&store, &[]);
    let folder = tempfile::tempdir().unwrap();
    for host in [false, true] {
        for method in ["prefix", "sort", "coarse"] {
            let text = format!("{}max-pairs = 5\n", OverlapSettings { method, host, ..settings }.toml());
            let path = job(folder.path(), &text);
            for processes in ["1", "2"] {
                let flags = ["--processes", processes, "--workers", "2", "--store", store.to_str().unwrap()];
                let ran = run(&[&["run", path.to_str().unwrap()][..], &flags].concat());
                assert_eq!(ran.code, Some(1), "{}", ran.stderr);
                for wanted in ["too many pairs", "allows 5", "http://h", "Raise `max-pairs`"] {
                    assert!(ran.stderr.contains(wanted), "{method}: {wanted}: {}", ran.stderr);
                }
            }
        }
    }
    assert!(tables(&store.join("overlap")) == before, "the former tables stay");
}

#[test]
fn a_store_without_chunks_says_what_to_run() {
    let folder = tempfile::tempdir().unwrap();
    let input = format!("{}/*.warc.gz", data("week-2024-01-08").display());
    let text = format!("[cluster]\nweek = \"{WEEK}\"\ninput = [\"{input}\"]\n[cluster.keep]\nchunks = false\n");
    let made = Made::with_job(&job(folder.path(), &text), &[]);
    let store = made.store();
    let store = store.to_str().unwrap();
    let ran = run(&["run", "jobs/overlap.toml", "--store", store]);
    assert_eq!(ran.code, Some(1), "{}", ran.stderr);
    for wanted in ["week 2024-01-08", "has no chunks", "nigh run jobs/chunks.toml", "--week 2024-01-08 --input"] {
        assert!(ran.stderr.contains(wanted), "{wanted}: {}", ran.stderr);
    }
    assert!(!Path::new(store).join("overlap").exists());
    // Tables that are not made of chunks hold, whatever chunks are made.
    run_well(&["run", "jobs/collections.toml", "-q", "--store", store]);
    let is_outdated = |job: &str| run_well(&["show", store, "--job", job]).stderr.contains("was changed");
    let make_chunks = |input: &str| {
        run_well(&["run", "jobs/chunks.toml", "-q", "--store", store, "--week", WEEK, "--input", input]);
    };
    // A part of the crawl: the other pages are left out, and the summary counts them.
    make_chunks(&format!("{}/crawl-00000.warc.gz", data("week-2024-01-08").display()));
    let shown = run_well(&["run", "jobs/overlap.toml", "--store", store]).stdout;
    let count = |table: &str| longs(&week(Path::new(store), WEEK), table, "doc").len();
    let left_out = count("features") - count("chunks");
    assert!(left_out > 0 && shown.contains(&format!("Left out: {left_out} pages without chunks")), "{shown}");
    assert!(!is_outdated("overlap") && !is_outdated("collections"));
    make_chunks(&input);
    assert!(is_outdated("overlap") && !is_outdated("collections"));
    let list = folder.path().join("list");
    std::fs::write(&list, "http://a.example/\n").unwrap();
    run_well(&["roll-up", "--store", store, list.to_str().unwrap()]);
    OverlapSettings::default().run(Path::new(store), &[]);
    assert!(assert_right(Path::new(store), WEEK, &OverlapSettings::default()) > 0);
}

#[test]
fn a_deletion_removes_the_tables_because_they_name_pages() {
    let made = random_store(9, 60);
    let store: PathBuf = made.store();
    OverlapSettings::default().run(&store, &[]);
    assert!(store.join("overlap/overlap").exists());
    run_well(&["delete", "--store", store.to_str().unwrap(), "--host", "h1.example"]);
    assert!(!store.join("overlap").exists() && tables(&store.join("overlap")).is_empty());
    OverlapSettings::default().run(&store, &[]);
    assert_right(&store, WEEK, &OverlapSettings::default());
}

#[test]
fn a_run_killed_at_any_moment_leaves_the_former_tables_or_the_new_ones() {
    let made = random_store(11, 150);
    let store = made.store();
    let former = OverlapSettings::default();
    let begun = Instant::now();
    let new = OverlapSettings { thresholds: [1, 2, 2], ..former }.run(&store, &["--workers", "2"]);
    let whole = begun.elapsed();
    let before = former.run(&store, &[]);
    assert!(before != new);
    let folder = tempfile::tempdir().unwrap();
    let path = job(folder.path(), &OverlapSettings { thresholds: [1, 2, 2], ..former }.toml());
    let arguments = ["run", path.to_str().unwrap(), "-q", "--workers", "2", "--store", store.to_str().unwrap()];
    kill_at_moments(&arguments, whole, 12, |round| {
        assert!([&before, &new].contains(&&tables(&store.join("overlap"))), "round {round}");
    });
    assert!(former.run(&store, &[]) == before);
}

#[test]
fn mistakes_in_the_job_are_shown() {
    let folder = tempfile::tempdir().unwrap();
    for (text, wanted) in [
        ("[overlap]\nthresholds = [1]\n", "one for each of the 3 chunkings"),
        ("[overlap]\nunit = \"site\"\n", "`host`"),
        ("[overlap]\nlast = \"2024-01-08\"\n", "unknown field `last`"),
        ("[overlap]\n", "no store"),
    ] {
        let path = job(folder.path(), text);
        let ran = run(&["run", path.to_str().unwrap()]);
        assert_eq!(ran.code, Some(2), "{}", ran.stderr);
        assert!(ran.stderr.contains(wanted), "{wanted}: {}", ran.stderr);
    }
    let ran = run(&["run", "jobs/overlap.toml", "--store", "/nowhere/store", "--input", "x"]);
    assert_eq!((ran.code, ran.stderr.contains("--input")), (Some(2), true), "{}", ran.stderr);
}
