//! The command line: flags, exit codes, messages, mistakes in jobs and configs.

use std::path::Path;

use crate::program::{Made, WEEK, data, job, nigh, ran, run, run_well, shipped_job, skipped, tables};
use crate::skips::Need;

#[test]
fn the_readme_command_clusters_the_shipped_crawl() {
    let folder = tempfile::tempdir().unwrap();
    let store = folder.path().join("store");
    let ran = run_well(&["run", "jobs/example.toml", "--store", store.to_str().unwrap()]);
    for wanted in [
        "Week 2024-01-08: 523 documents",
        "very similar",
        "virtually identical",
        "exact copy",
        "Largest",
        "rejected",
        "Tables",
    ] {
        assert!(ran.stdout.contains(wanted), "{wanted}: {}", ran.stdout);
    }
    assert!(ran.stdout.contains(store.join("TABLE/week=2024-01-08").to_str().unwrap()));
    // Lines in a file say of which run they are.
    assert!(ran.stderr.contains("nigh [cluster 2024-01-08]: reading"), "{}", ran.stderr);
    for file in [
        "_nigh/manifest.json",
        "_nigh/week=2024-01-08/00001/job.toml",
        "_nigh/week=2024-01-08/00001/summary.json",
        "views.sql",
    ] {
        assert!(store.join(file).exists(), "{file}");
    }
    assert!(!store.join("_nigh/work").exists(), "nothing unfinished is left");
}

/// The run that an event is of, and which start of its processes.
fn named(event: &serde_json::Value) -> (&str, u64) {
    (event["job"].as_str().unwrap(), event["epoch"].as_u64().unwrap())
}

#[test]
fn json_is_one_object_on_stdout_and_events_on_stderr() {
    let folder = tempfile::tempdir().unwrap();
    let store = folder.path().join("store");
    let ran = run_well(&["run", "jobs/example.toml", "--json", "--store", store.to_str().unwrap()]);
    let summary: serde_json::Value = serde_json::from_str(&ran.stdout).unwrap();
    assert_eq!(summary["week"], WEEK);
    assert_eq!(summary["counts"]["documents"], 523);
    assert_eq!(summary["levels"][0]["level"], "similar");
    let similar = summary["levels"][0]["clustered"].as_u64().unwrap();
    let identical = summary["levels"][1]["clustered"].as_u64().unwrap();
    let exact = summary["levels"][2]["clustered"].as_u64().unwrap();
    assert!(similar >= identical && identical >= exact && exact > 0);
    let lines = ran.stderr.lines().count();
    for (number, line) in ran.stderr.lines().enumerate() {
        let event: serde_json::Value = serde_json::from_str(line).unwrap();
        let is_last = number + 1 == lines;
        assert_eq!(event["event"], if is_last { "stages" } else { "progress" });
        assert_eq!(is_last, event["stages"].as_array().is_some_and(|stages| stages[0]["stage"] == "read"), "{event}");
        assert_eq!(named(&event), ("cluster 2024-01-08", 0));
        assert_eq!(event["process"], 0);
    }
    // What a person sees of the plan, and of the times of a run, is no event.
    let other = folder.path().join("other");
    for job in ["jobs/example.toml", "jobs/evolution.toml"] {
        let verbose = run_well(&["run", job, "--json", "--verbose", "--store", other.to_str().unwrap()]);
        for line in verbose.stderr.lines() {
            assert!(serde_json::from_str::<serde_json::Value>(line).is_ok(), "{line}");
        }
    }
    let again = run_well(&["run", "jobs/example.toml", "--json", "--store", store.to_str().unwrap()]);
    let event: serde_json::Value = serde_json::from_str(again.stderr.trim()).unwrap();
    assert_eq!(event["event"], "notice");
    assert_eq!(named(&event), ("cluster 2024-01-08", 0));
    let failed = run(&["run", "jobs/example.toml", "--json", "--store", store.to_str().unwrap(), "--input", "nothing"]);
    let event: serde_json::Value = serde_json::from_str(failed.stderr.trim()).unwrap();
    assert_eq!((failed.code, &event["event"]), (Some(1), &"error".into()));
    assert_eq!(named(&event), ("cluster 2024-01-08", 0));
    let shown = run_well(&["show", store.to_str().unwrap(), "--json"]);
    let shown: serde_json::Value = serde_json::from_str(&shown.stdout).unwrap();
    for (key, value) in shown.as_object().unwrap() {
        assert_eq!(*value, summary[key], "{key}");
    }
}

#[test]
fn show_prints_the_summary_again() {
    let made = Made::new(&[]);
    let store = made.store();
    let shown = run_well(&["show", store.to_str().unwrap(), "--week", WEEK]);
    assert!(shown.stdout.contains("Week 2024-01-08: 523 documents"), "{}", shown.stdout);
    let other = run(&["show", store.to_str().unwrap(), "--week", "2024-01-15"]);
    assert_eq!(other.code, Some(1));
    assert!(other.stderr.contains("has no week 2024-01-15; it has 2024-01-08"), "{}", other.stderr);
    let none = run(&["show", "tests"]);
    assert_eq!(none.code, Some(1));
    assert!(none.stderr.contains("is not a nigh store"), "{}", none.stderr);
}

#[test]
fn a_second_run_over_the_first_changes_nothing() {
    let made = Made::new(&[]);
    let store = made.store();
    let before = made.tables();
    let again = run_well(&["run", "jobs/example.toml", "--store", store.to_str().unwrap()]);
    assert!(again.stderr.contains("nothing to do") && again.stdout.contains("523 documents"), "{}", again.stderr);
    assert!(made.tables() == before);
    // Other input for the same week, and another week, are refused with what to do.
    let other =
        run(&["run", "jobs/example.toml", "--store", store.to_str().unwrap(), "--input", "tests/data/week-2024-01-15"]);
    assert_eq!(other.code, Some(1));
    assert!(other.stderr.contains("made from other input") && other.stderr.contains("--store"), "{}", other.stderr);
    let week = run(&["run", "jobs/example.toml", "--store", store.to_str().unwrap(), "--week", "2024-01-01"]);
    assert_eq!(week.code, Some(1));
    assert!(week.stderr.contains("weeks must be added in order: 2024-01-01 is older"), "{}", week.stderr);
    assert!(made.tables() == before);
}

#[test]
fn a_store_of_other_parameters_is_refused_with_both_values() {
    let made = Made::new(&[]);
    let folder = tempfile::tempdir().unwrap();
    let text = "[cluster]\nweek = \"2024-01-08\"\ninput = [\"tests/data/week-2024-01-08\"]\n[cluster.method]\nagreements = 3\n";
    let job = job(folder.path(), text);
    let refused = run(&["run", job.to_str().unwrap(), "--store", made.store().to_str().unwrap()]);
    assert_eq!(refused.code, Some(1));
    assert!(refused.stderr.contains("agreements = 2 in the store, agreements = 3 in the job"), "{}", refused.stderr);
}

#[test]
fn typos_are_shown_with_their_line_and_column() {
    let folder = tempfile::tempdir().unwrap();
    let cases = [
        ("[clutser]\nweek = \"2024-01-08\"\n", ["line 1", "clutser", "`cluster`"]),
        (
            "[cluster]\nweek = \"2024-01-08\"\n\n[cluster.method]\nfeetures = 84\n",
            ["line 5, column 1", "feetures", "`features`"],
        ),
        ("[cluster.method]\nfeatures = 85\n", ["features = 85", "supershingles = 6", "line 1"]),
        ("[cluster]\nweek = \"2024-13-08\"\n", ["line 2, column 8", "2024-13-08", "YYYY-MM-DD"]),
        ("[cluster]\nweek = 7\n", ["line 2", "invalid type", "week = 7"]),
        ("[cluster\n", ["line 1", "cluster", "^"]),
    ];
    for (text, wanted) in cases {
        let path = job(folder.path(), text);
        let ran = run(&["run", path.to_str().unwrap(), "--store", "nowhere"]);
        assert_eq!(ran.code, Some(2), "{}", ran.stderr);
        for wanted in wanted.iter().chain(&["job.toml", "^"]) {
            assert!(ran.stderr.contains(wanted), "{wanted}: {}", ran.stderr);
        }
    }
    let config = folder.path().join("config.toml");
    std::fs::write(&config, "workers = 2\nmemroy = \"1GiB\"\n").unwrap();
    let ran = run(&["run", "jobs/example.toml", "--config", config.to_str().unwrap(), "--store", "nowhere"]);
    assert_eq!(ran.code, Some(2));
    for wanted in ["config.toml", "line 2, column 1", "memroy", "`memory`", "^"] {
        assert!(ran.stderr.contains(wanted), "{wanted}: {}", ran.stderr);
    }
    assert!(!Path::new("nowhere").exists());
}

#[test]
fn wrong_use_exits_with_two() {
    let folder = tempfile::tempdir().unwrap();
    let empty = job(folder.path(), "[cluster]\n");
    let empty = empty.to_str().unwrap();
    for (arguments, wanted) in [
        // A week without a name gets today's date.
        (vec!["run", empty], "--store"),
        (vec!["run", empty, "--store", "nowhere"], "--input"),
        (vec!["run", empty, "--week", "2024-01-08", "--store", "nowhere"], "--input"),
        (vec!["run", "jobs/example.toml", "--week", "yesterday"], "YYYY-MM-DD"),
        (vec!["run", "jobs/example.toml", "--workers", "0"], "1 to 1024"),
        (vec!["run", "jobs/no-such.toml"], "jobs/no-such.toml"),
        (vec!["run", "jobs/cluster.toml", "--week", "2024-01-08"], "jobs/cluster.toml: no store: give --store"),
        (vec!["run", "--week", "2024-01-08"], "the built-in job: no store: give --store"),
        (vec!["run", "jobs/overlap.toml"], "--store"),
        (vec!["run", "jobs/overlap.toml", "--store", "nowhere", "--no-accuracy"], "are for jobs that make a week"),
        (vec!["run", "jobs/overlap.toml", "--store", "nowhere", "--allow-empty"], "are for jobs that make a week"),
        (vec!["run", "jobs/chunks.toml", "--store", "nowhere", "--no-accuracy"], "are for jobs that make a week"),
        (vec!["add", "nowhere", "jobs/overlap.toml"], "jobs/overlap.toml: "),
        (vec!["add", "nowhere", "jobs/chunks.toml"], "jobs/chunks.toml: "),
        (vec!["show", "nowhere", "--url", "http://a.example/", "--top", "5"], "--top"),
        (vec!["init", "clutser"], "possible values: cluster, weekly"),
        (vec!["rnu"], "unrecognized subcommand"),
        (vec![], "Usage"),
    ] {
        let ran = run(&arguments);
        assert_eq!(ran.code, Some(2), "{arguments:?} {}", ran.stderr);
        assert!(ran.stderr.contains(wanted), "{wanted}: {}", ran.stderr);
    }
    assert_eq!(run(&["--help"]).code, Some(0));
    assert_eq!(run(&["--version"]).code, Some(0));
}

#[test]
fn a_program_without_its_clone_has_jobs_completions_and_a_manual() {
    let folder = tempfile::tempdir().unwrap();
    let input = data("week-2024-01-08");
    let here = |arguments: &[&str]| {
        let ran = ran(nigh(arguments).current_dir(folder.path()));
        assert_eq!(ran.code, Some(0), "{arguments:?} {}", ran.stderr);
        ran.stdout
    };
    let week = ["--week", "2024-01-08", "--input", input.to_str().unwrap(), "-q"];
    // Without a job, with the built-in one, and with the one that is written: the same tables.
    here(&[&["run", "--store", "none"], &week[..]].concat());
    here(&[&["run", "jobs/cluster.toml", "--store", "built-in"], &week[..]].concat());
    assert!(here(&["init"]).contains("Wrote cluster.toml"));
    here(&[&["run", "cluster.toml", "--store", "written"], &week[..]].concat());
    let made = |store: &str| tables(&crate::program::week(&folder.path().join(store), "2024-01-08"));
    assert!(made("none") == made("built-in") && made("none") == made("written"));
    here(&["run", "jobs/evolution.toml", "--store", "none", "-q"]);
    assert_eq!(here(&["init", "overlap", "--out", "-"]), std::fs::read_to_string("jobs/overlap.toml").unwrap());
    let again = ran(nigh(&["init"]).current_dir(folder.path()));
    assert!(again.code == Some(2) && again.stderr.contains("cluster.toml exists already"), "{}", again.stderr);
    assert!(!folder.path().join("stores").exists(), "no store that nobody named");

    assert!(here(&["completions", "bash"]).contains("roll-up"));
    assert!(here(&["completions", "zsh"]).starts_with("#compdef nigh"));
    assert!(here(&["completions", "fish"]).contains("complete -c nigh"));
    assert!(here(&["man"]).contains(".TH nigh 1"));
    here(&["man", "--out", "man"]);
    assert!(folder.path().join("man/nigh-run.1").exists());
}

#[test]
fn more_workers_than_four_a_shard_are_refused_before_anything_is_written() {
    let folder = tempfile::tempdir().unwrap();
    let (store, config) = (folder.path().join("store"), folder.path().join("config.toml"));
    let path = store.to_str().unwrap();
    std::fs::write(&config, "workers = 129\nprocesses = 2\n").unwrap();
    let first = ["run", "jobs/example.toml", "--store", path];
    for (flags, number) in [
        (&["--workers", "1000"][..], "1000 workers"),
        (&["--workers", "160", "--processes", "2"], "320 workers"),
        (&["--processes", "257"], "257 processes"),
        (&["--config", config.to_str().unwrap()], "258 workers"),
        (&["--dry-run", "--workers", "257"], "257 workers"),
    ] {
        let ran = run(&[&first[..], flags].concat());
        assert_eq!(ran.code, Some(2), "{flags:?} {}", ran.stderr);
        for wanted in [number, "64 shards", "use "] {
            assert!(ran.stderr.contains(wanted), "{wanted}: {}", ran.stderr);
        }
    }
    assert!(!store.exists());
    run_well(&first);
    let later =
        ["run", "jobs/weekly.toml", "--store", path, "--week", "2024-01-15", "--input", "tests/data/week-2024-01-15"];
    let evolution = ["run", "jobs/evolution.toml", "--store", path];
    let deletion = ["delete", "--store", path, "--host", "arm64.guide.debian.example"];
    for arguments in [&later[..], &evolution, &deletion] {
        let ran = run(&[arguments, &["--workers", "257"]].concat());
        assert_eq!(ran.code, Some(2), "{arguments:?} {}", ran.stderr);
        assert!(ran.stderr.contains("257 workers are too many for the store's 64 shards"), "{}", ran.stderr);
    }
}

#[test]
fn more_workers_than_cores_are_warned_of() {
    let arguments = ["run", "jobs/example.toml", "--dry-run", "--store", "nowhere", "--workers"];
    let cores = std::thread::available_parallelism().unwrap().get();
    if cores < 64 {
        let ran = run_well(&[&arguments[..], &[&format!("{}", cores + 1)]].concat());
        assert!(ran.stderr.contains(&format!("{} workers share {cores} core", cores + 1)), "{}", ran.stderr);
    }
    let ran = run_well(&[&arguments[..], &["1"]].concat());
    assert!(!ran.stderr.contains("share"), "{}", ran.stderr);
}

/// A reason, a title and a name that would act on a terminal.
const HOSTILE: &str = "\x1b]0;pwned\x07\x1b[2J";

#[test]
fn text_of_inputs_does_not_act_on_the_terminal() {
    let folder = tempfile::tempdir().unwrap();
    let store = folder.path().join("store");
    let path = store.to_str().unwrap();
    let line = |name: &str, text: &str| {
        let page = serde_json::json!({ "url": format!("http://a.example/{name}"), "text": text });
        format!("{page}\n")
    };
    // Two pages that are nearly the same, with a title that turns the order of the line round.
    let html = "<title>safe\u{202e}gpj.exe</title>".to_owned() + &"some words of the page ".repeat(20);
    let pages: String = ["1", "2", "3"].iter().map(|name| line(name, &html).replace("\"text\"", "\"html\"")).collect();
    let first = folder.path().join(format!("{HOSTILE}.jsonl"));
    std::fs::write(&first, &pages).unwrap();
    let columns = |kind: &str| format!("[{kind}.read.columns]\nhtml = \"html\"\n");
    let job = |name: &str, text: String| {
        let path = folder.path().join(name);
        std::fs::write(&path, text).unwrap();
        path.display().to_string()
    };
    let cluster = job("first.toml", format!("[cluster]\nmax-reject-share = 1.0\n{}", columns("cluster")));
    let weekly = job("later.toml", format!("[weekly]\nmax-reject-share = 1.0\n{}", columns("weekly")));
    let second = folder.path().join("second");
    std::fs::create_dir(&second).unwrap();
    std::fs::write(second.join("pages.jsonl"), pages.lines().next().unwrap()).unwrap();
    let failed = format!("url\treason\nhttp://a.example/2\t{HOSTILE}\nhttp://a.example/3\tcut\u{202e}\u{85}\n");
    std::fs::write(second.join("failed.tsv"), failed).unwrap();
    let inert = |text: &str| {
        let acts = |c: char| c.is_control() && c != '\n' || "\u{202e}\u{2028}\u{200e}".contains(c);
        assert!(!text.contains(acts), "{text:?}");
    };

    let input = first.to_str().unwrap();
    let ran = run_well(&["run", &cluster, "--store", path, "--week", "2024-01-08", "--input", input, "--verbose"]);
    inert(&ran.stdout);
    inert(&ran.stderr);
    assert!(ran.stdout.contains(r"safe\u{202e}gpj.exe"), "{}", ran.stdout);
    let input = second.to_str().unwrap();
    let ran = run_well(&["run", &weekly, "--store", path, "--week", "2024-01-15", "--input", input]);
    let shown = run_well(&["show", path]);
    let changes = run_well(&["show", path, "--changes"]);
    for text in [&ran.stdout, &ran.stderr, &shown.stdout, &changes.stdout] {
        inert(text);
    }
    for text in [&ran.stdout, &shown.stdout, &changes.stdout] {
        assert!(text.contains(r"1 \u{1b}]0;pwned\u{7}\u{1b}[2J"), "{text}");
    }
    // Colours are all that acts on a terminal.
    for (arguments, plain) in [(&["show", path][..], &shown), (&["show", path, "--changes"], &changes)] {
        let painted = nigh(arguments).env("CLICOLOR_FORCE", "1").output().unwrap();
        let painted = String::from_utf8(painted.stdout).unwrap();
        assert!(painted.contains("\u{1b}[1m") && painted.contains("\u{1b}[36m"), "{painted:?}");
        let without =
            ["\u{1b}[1m", "\u{1b}[36m", "\u{1b}[0m"].iter().fold(painted, |text, code| text.replace(code, ""));
        assert_eq!(without, plain.stdout);
    }
    // A program that reads the JSON has the text as it is, and a terminal that shows it is not
    // commanded either.
    let json = run_well(&["show", path, "--json"]).stdout;
    inert(&json);
    let summary: serde_json::Value = serde_json::from_str(&json).unwrap();
    assert_eq!(summary["since"]["missing"][HOSTILE], 1, "{json}");

    let missing = folder.path().join(format!("none{HOSTILE}.jsonl"));
    for json in [&["--json"][..], &[]] {
        let arguments = ["run", &cluster, "--store", "nowhere", "--week", "2024-01-08", "--input"];
        let ran = run(&[&arguments[..], &[missing.to_str().unwrap()], json].concat());
        assert_eq!(ran.code, Some(1));
        inert(&ran.stderr);
    }
}

#[test]
fn urls_with_passwords_and_signatures_are_refused_and_not_shown() {
    let folder = tempfile::tempdir().unwrap();
    let store = folder.path().join("store");
    let (store, listing) = (store.to_str().unwrap(), folder.path().join("crawl.paths"));
    let base = job(
        folder.path(),
        "[cluster]\nweek = \"2024-01-08\"\n[cluster.read]\nbase-url = \"http://u:s3cret@127.0.0.1/\"\n",
    );
    let shipped = shipped_job();
    let run_of = |job: &Path, input: &str| run(&["run", job.to_str().unwrap(), "--store", store, "--input", input]);
    for url in [
        "http://user:s3cret@127.0.0.1/t.warc",
        "https://127.0.0.1/t.warc?X-Amz-Signature=s3cret",
        "s3://bucket/t.warc?X-Amz-Signature=s3cret",
    ] {
        std::fs::write(&listing, format!("{url}\n")).unwrap();
        for ran in [run_of(&shipped, url), run_of(&shipped, listing.to_str().unwrap())] {
            assert_ne!(ran.code, Some(0));
            assert!(ran.stderr.contains("environment") || ran.stderr.contains("`cloud`"), "{}", ran.stderr);
            assert!(!ran.stderr.contains("s3cret"), "{}", ran.stderr);
        }
        assert_eq!(run_of(&shipped, url).code, Some(2));
    }
    assert_eq!(run_of(&base, "tests/data/week-2024-01-08").code, Some(2));
    let bucket = "s3://user:s3cret@bucket/store";
    let deletion = ["delete", "--host", "a.example", "--store", bucket];
    let first = ["run", "jobs/example.toml", "--store", bucket];
    for arguments in [&first[..], &deletion, &["show", bucket], &["vacuum", "--keep", "1", "--store", bucket]] {
        let ran = run(arguments);
        assert_eq!(ran.code, Some(2), "{arguments:?} {}", ran.stderr);
        assert!(ran.stderr.contains("password") && !ran.stderr.contains("s3cret"), "{}", ran.stderr);
    }
    assert!(!Path::new(store).exists());
}

#[test]
#[cfg(not(feature = "pool"))]
fn other_machines_are_refused_without_the_feature_pool() {
    for (config, table) in [("pool", "[[hosts]]"), ("slurm", "[tasks]"), ("kubernetes", "[tasks]")] {
        let config = format!("configs/{config}.toml");
        let ran = run(&["run", "jobs/example.toml", "--config", &config, "--store", "nowhere"]);
        assert_eq!(ran.code, Some(2), "{}", ran.stderr);
        for wanted in [config.as_str(), table, "built without the feature `pool`"] {
            assert!(ran.stderr.contains(wanted), "{wanted}: {}", ran.stderr);
        }
    }
    let ran = run(&["pool", "keys", "--processes", "2", "--out", "nowhere"]);
    assert_eq!(ran.code, Some(2));
    assert!(ran.stderr.contains("unrecognized subcommand"), "{}", ran.stderr);
    assert!(!Path::new("nowhere").exists());
}

#[test]
fn missing_and_unreadable_inputs_are_refused_before_anything_is_written() {
    let folder = tempfile::tempdir().unwrap();
    let store = folder.path().join("store");
    let store = store.to_str().unwrap();
    let secret = folder.path().join("secret.warc.gz");
    std::fs::write(&secret, "").unwrap();
    std::fs::set_permissions(&secret, std::os::unix::fs::PermissionsExt::from_mode(0o000)).unwrap();
    let mut inputs = vec!["no/such/file.warc.gz", "tests/data/*.nothing", "tests/data/no-such-folder"];
    match std::fs::File::open(&secret) {
        Ok(_) => skipped(Need::User, "an unreadable input"),
        Err(_) => inputs.push(secret.to_str().unwrap()),
    }
    for input in inputs {
        let ran = run(&["run", "jobs/example.toml", "--store", store, "--input", input]);
        assert_eq!(ran.code, Some(1), "{}", ran.stderr);
        assert!(ran.stderr.contains(input), "{}", ran.stderr);
    }
    assert!(!Path::new(store).exists());
}

#[test]
fn a_dry_run_prints_what_a_run_needs_and_writes_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let store = folder.path().join("store");
    let arguments = [
        "run",
        "jobs/example.toml",
        "--dry-run",
        "--workers",
        "2",
        "--processes",
        "3",
        "--store",
        store.to_str().unwrap(),
    ];
    let ran = run_well(&arguments);
    for wanted in ["3 files", "every input", "2 in each of 3 processes", "Memory", "Disk", "free", "words = 5"] {
        assert!(ran.stdout.contains(wanted), "{wanted}: {}", ran.stdout);
    }
    let json = run_well(&[&arguments[..], &["--json"]].concat());
    let plan: serde_json::Value = serde_json::from_str(&json.stdout).unwrap();
    assert_eq!(plan["plan"]["inputs"].as_array().unwrap().len(), 3);
    assert!(plan["disk"]["free"].as_u64().unwrap() > 0);
    assert!(!store.exists());
    // A store that cannot be made is found out here, too.
    let file = folder.path().join("file");
    std::fs::write(&file, "").unwrap();
    let ran = run(&["run", "jobs/example.toml", "--dry-run", "--store", file.join("store").to_str().unwrap()]);
    assert_eq!(ran.code, Some(1));
    assert!(ran.stderr.contains("is a file"), "{}", ran.stderr);
}

#[test]
fn too_many_rejects_exit_with_three_and_keep_what_was_read() {
    let folder = tempfile::tempdir().unwrap();
    let store = folder.path().join("store");
    let bad = data("dirty/gzip-truncated-middle.warc.gz");
    let arguments = ["run", "jobs/example.toml", "--store", store.to_str().unwrap(), "--input", bad.to_str().unwrap()];
    for processes in ["1", "2"] {
        let ran = run(&[&arguments[..], &["--processes", processes]].concat());
        assert_eq!(ran.code, Some(3), "{}", ran.stderr);
        for wanted in ["1 of 6 records are bad (16.7%, the job accepts 5.0%)", "gzip", "max-reject-share"] {
            assert!(ran.stderr.contains(wanted), "{wanted}: {}", ran.stderr);
        }
        assert!(!store.join("_nigh/manifest.json").exists());
    }
    // The same input under a job that accepts them goes on from what was read.
    let text =
        std::fs::read_to_string(shipped_job()).unwrap().replace("[cluster]\n", "[cluster]\nmax-reject-share = 1.0\n");
    let job = job(folder.path(), &text);
    let ran =
        run_well(&["run", job.to_str().unwrap(), "--store", store.to_str().unwrap(), "--input", bad.to_str().unwrap()]);
    assert!(ran.stderr.contains("resuming after wave 1 of 1"), "{}", ran.stderr);
    assert!(ran.stdout.contains("4 documents") && ran.stdout.contains("1 rejected"), "{}", ran.stdout);
}

#[test]
fn an_empty_input_is_a_week_without_pages_if_the_user_says_so() {
    let folder = tempfile::tempdir().unwrap();
    let empty = folder.path().join("empty.warc.gz");
    std::fs::write(&empty, "").unwrap();
    for processes in ["1", "2"] {
        let made = Made::new(&["--input", empty.to_str().unwrap(), "--processes", processes, "--allow-empty"]);
        let shown = run_well(&["show", made.store().to_str().unwrap()]);
        assert!(shown.stdout.contains("0 documents"), "{}", shown.stdout);
    }
}

#[test]
fn benchmarks_give_their_figures() {
    let input = data("week-2024-01-08");
    let input = ["--input", input.to_str().unwrap()];
    for (what, input, stages, length) in [
        ("read", &input[..], &["read"][..], 0.0),
        ("html", &input, &["html to text and links", "  decode", "  scan", "  links"], 261.0),
        ("text", &[], &["text to pre-images", "  words", "  pre-images"], 500.0),
        ("features", &[], &["text to features", "  minima", "  supershingles", "  megashingles"], 500.0),
        ("features", &input, &["text to features", "pages to features", "crawl to features"], 500.0),
    ] {
        let ran = run_well(&[&["bench", what, "--json"][..], input].concat());
        let figures: serde_json::Value = serde_json::from_str(&ran.stdout).unwrap();
        assert_eq!(figures["words_per_document"].as_f64().unwrap().round(), length, "{figures}");
        let rows = figures["rows"].as_array().unwrap();
        for row in rows.iter().chain([&figures]) {
            for key in ["words_per_document", "ns_per_word", "ns_per_shingle", "mb_per_s", "documents_per_s", "bytes"] {
                assert!(row[key].is_number(), "{key}: {row}");
            }
            assert!(["avx512", "avx2", "pmull", "scalar"].contains(&row["kernel"].as_str().unwrap()), "{row}");
            assert!(row["documents"].as_u64().unwrap() > 0, "{row}");
        }
        for stage in stages {
            assert!(rows.iter().any(|row| row["stage"] == *stage), "{stage}: {figures}");
        }
    }
}

#[test]
fn a_closed_stdout_is_not_an_error() {
    let made = Made::new(&[]);
    let mut command = nigh(&["show", made.store().to_str().unwrap()]);
    let (reader, writer) = std::io::pipe().unwrap();
    drop(reader);
    assert_eq!(command.stdout(writer).status().unwrap().code(), Some(0));
    assert_eq!(ran(&mut nigh(&["show", made.store().to_str().unwrap()])).code, Some(0));
}

#[test]
fn a_closed_stderr_is_not_an_error() {
    let folder = tempfile::tempdir().unwrap();
    let store = folder.path().join("store");
    for job in ["jobs/example.toml", "jobs/overlap.toml"] {
        let mut command = nigh(&["run", job, "--verbose", "--store", store.to_str().unwrap()]);
        let (reader, writer) = std::io::pipe().unwrap();
        drop(reader);
        let status = command.stdout(std::process::Stdio::null()).stderr(writer).status().unwrap();
        assert_eq!(status.code(), Some(0), "{job}");
    }
}
