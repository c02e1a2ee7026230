//! Runs that nobody watches: flags instead of a job, weeks by the clock, variables, events, and
//! what is known at the end.

use std::collections::BTreeSet;
use std::io::{Read as _, Write as _};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use nigh::config::{Method, WeekName};
use nigh::records::Week;
use serde_json::Value;

use crate::choices::datasets::{lines, text};
use crate::program::{Ran, has_week, job, nigh, ran, records, run, run_well, skipped, tables, week};
use crate::skips::Need;

const DATE: &str = "2024-01-08";

/// Sixty records with the fields `key` and `body`, in families of three.
fn shards(folder: &Path) -> PathBuf {
    let path = folder.join("shards.jsonl");
    let texts: Vec<String> = (0..60).map(|number| text(number, 20)).collect();
    let rows = lines(&texts, |number| format!("\"key\": {number}, ")).replace("\"text\"", "\"body\"");
    std::fs::write(&path, rows).unwrap();
    path
}

/// A run of a dataset into a store, with flags.
fn run_of(input: &Path, store: &Path, flags: &[&str]) -> Ran {
    let last = ["--week", DATE, "--store", store.to_str().unwrap(), "--input", input.to_str().unwrap()];
    run(&[&["run"], flags, &last].concat())
}

#[test]
fn flags_are_as_the_fields_of_the_job() {
    let folder = tempfile::tempdir().unwrap();
    let input = shards(folder.path());
    let [by_flags, by_job, by_both] = ["flags", "job", "both"].map(|name| folder.path().join(name));
    let columns = ["--id", "key", "--text", "body", "--same-id", "first"];
    let method = ["--similarity", "0.8", "--verify", "exact", "--fold-case"];
    let ran_of = |ran: Ran| assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    ran_of(run_of(&input, &by_flags, &[&columns[..], &method].concat()));
    let of_columns = "[cluster.read]\nsame-id = \"first\"\ncolumns = { id = \"key\", text = \"body\" }\n";
    let of_method = "[cluster.method]\nsimilarity = 0.8\nverify = \"exact\"\nfold-case = true\n";
    let written = job(folder.path(), &format!("[cluster]\n{of_columns}{of_method}"));
    let written = written.to_str().unwrap();
    ran_of(run_of(&input, &by_job, &[written]));
    let of = |store: &Path| tables(&week(store, DATE));
    let job_of = |store: &Path| std::fs::read_to_string(records(&week(store, DATE)).join("job.toml")).unwrap();
    let named = |text: String, store: &str| text.replace(store, "STORE");
    assert!(of(&by_flags) == of(&by_job));
    assert_eq!(named(job_of(&by_flags), "flags"), named(job_of(&by_job), "job"), "the week remembers the flags");
    // Flags take the place of what the job says, and only of that.
    let other =
        job(folder.path(), &format!("[cluster]\n{of_columns}[cluster.method]\nsimilarity = 0.9\nfold-case = true\n"));
    ran_of(run_of(&input, &by_both, &[&[other.to_str().unwrap()], &method[..4]].concat()));
    assert!(of(&by_both) == of(&by_job));
    // The preset of a job is in the way of a similarity, and goes: the run says so.
    let preset = job(folder.path(), "[cluster.method]\npreset = \"fetterly-2004\"\n");
    let store = folder.path().join("preset");
    let flags = [&[preset.to_str().unwrap()], &columns[..4], &["--similarity", "0.8"]].concat();
    let ran = run_of(&input, &store, &flags);
    assert!(
        ran.stderr.contains("take the place of what the job says of the method: preset = \"fetterly-2004\""),
        "{}",
        ran.stderr
    );
    assert!(!ran.stderr.contains("are linked directly"), "{}", ran.stderr);
}

#[test]
fn flags_against_a_store_or_a_job_are_refused_with_what_to_do() {
    let folder = tempfile::tempdir().unwrap();
    let input = shards(folder.path());
    let store = folder.path().join("store");
    let columns = ["--id", "key", "--text", "body"];
    assert_eq!(run_of(&input, &store, &[&columns[..], &["--similarity", "0.8"]].concat()).code, Some(0));
    let add = ["add", store.to_str().unwrap(), "--week", "2024-01-15", "--input", input.to_str().unwrap()];
    for (flags, code, wanted) in [
        (vec!["--similarity", "0.9"], 1, "similarity = 0.8 in the store, similarity = 0.9 in the job"),
        (vec!["--similarity", "0.8", "--fold-case"], 1, "fold-case = false in the store, fold-case = true in the job"),
        (vec!["--preset", "minhash-14x8"], 1, "or the flags for it, or use another --store"),
        (vec!["--verify", "exact"], 2, "with --verify exact --id key --text body: verify needs a similarity"),
        (vec!["--similarity", "1.5"], 2, "allowed is 0.5 to 0.99"),
        (vec!["--verify", "exactly"], 2, "[possible values: none, estimate, exact]"),
        (vec!["--preset", "minhash"], 2, "allowed are"),
    ] {
        let ran = run(&[&add[..], &columns, &flags].concat());
        assert_eq!(ran.code, Some(code), "{flags:?} {}", ran.stderr);
        assert!(ran.stderr.contains(wanted), "{wanted}: {}", ran.stderr);
    }
    let study = run(&["run", "jobs/overlap.toml", "--store", store.to_str().unwrap(), "--text", "body"]);
    assert!(study.code == Some(2) && study.stderr.contains("--text is for jobs that make a week"), "{}", study.stderr);
    assert!(!has_week(&week(&store, "2024-01-15")));
    // What the store has is taken where nothing is said.
    run_well(&[&add[..], &columns].concat());
}

#[test]
fn a_dataset_without_a_similarity_is_told_what_the_default_numbers_link() {
    let folder = tempfile::tempdir().unwrap();
    let input = shards(folder.path());
    let chance = Method::default().shape().chance(0.8);
    let wanted = format!("80% similar, the default numbers link {:.1}%: --similarity 0.8", 100.0 * chance);
    let columns = ["--text", "body", "--dry-run"];
    let told = |flags: &[&str], is_told: bool| {
        let ran = run_of(&input, &folder.path().join("store"), &[&columns[..], flags].concat());
        assert_eq!(ran.code, Some(0), "{}", ran.stderr);
        assert_eq!(ran.stderr.contains(&wanted), is_told, "{flags:?}: {}", ran.stderr);
    };
    told(&[], true);
    told(&["--id", "key"], true);
    told(&["--id", "key", "--similarity", "0.9"], false);
    told(&["--preset", "minhash-14x8"], false);
    // Without progress and notices there are warnings, also as events.
    told(&["-q"], true);
    told(&["-q", "--json"], true);
    let has_notice = |flags: &[&str]| {
        let ran = run_of(&input, &folder.path().join("store"), &[&columns[..], flags].concat());
        ran.stderr.contains("each row is a document")
    };
    assert!(has_notice(&[]) && !has_notice(&["-q"]));
    let crawl = run_well(&["run", "jobs/example.toml", "--dry-run", "--store", "nowhere"]);
    assert!(!crawl.stderr.contains("default numbers"), "{}", crawl.stderr);
}

#[test]
fn a_week_by_the_clock_is_the_same_one_when_the_command_is_given_again() {
    let folder = tempfile::tempdir().unwrap();
    let input = folder.path().join("crawl.jsonl");
    let texts: Vec<String> = (0..12).map(|number| text(number, 4)).collect();
    let good = lines(&texts, |number| format!("\"url\": \"http://a.example/{number}\", "));
    std::fs::write(&input, good.clone() + &"no JSON\n".repeat(9)).unwrap();
    let store = folder.path().join("store");
    let job = job(folder.path(), "[cluster]\nmax-reject-share = 1.0\n");
    let run_named = |flags: &[&str]| {
        let last = ["--store", store.to_str().unwrap(), "--input", input.to_str().unwrap()];
        run(&[&["run"], flags, &last].concat())
    };
    // A run of an earlier day, which stopped after its wave was committed.
    let stopped = run_named(&["--week", DATE]);
    assert_eq!(stopped.code, Some(3), "{}", stopped.stderr);
    let tolerant = job.to_str().unwrap();
    let resumed = run_named(&[tolerant, "--week", "today"]);
    assert!(resumed.stderr.contains("resuming after wave 1 of 1"), "{}", resumed.stderr);
    assert!(resumed.stdout.contains(&format!("Week {DATE}: 12 documents")), "{}", resumed.stdout);
    for name in ["today", "monday"] {
        let again = run_named(&[tolerant, "--week", name]);
        assert!(
            again.stderr.contains(&format!("week {DATE} is in")) && again.stderr.contains("nothing to do"),
            "{}",
            again.stderr
        );
        assert!(again.stderr.contains(&format!("nigh [cluster {DATE}")), "{}", again.stderr);
    }
    // Another crawl is another week, whose name is the date.
    std::fs::write(&input, good).unwrap();
    let before = Week::today();
    let made = run_named(&["--week", "monday"]);
    let mondays = [before, Week::today()].map(|day| WeekName::Monday.date(day));
    let said = |monday: Week| made.stdout.contains(&format!("Week {monday}: 12 documents"));
    assert!(mondays.into_iter().any(said), "{} {}", made.stdout, made.stderr);
    // In a job, too.
    let of_job = crate::program::job(folder.path(), "[cluster]\nweek = \"tuesday\"\n");
    let refused = run_named(&[of_job.to_str().unwrap()]);
    assert!(refused.code == Some(2) && refused.stderr.contains("nor `today`, nor `monday`"), "{}", refused.stderr);
    let of_job = crate::program::job(folder.path(), "[cluster]\nweek = \"monday\"\n");
    assert!(run_named(&[of_job.to_str().unwrap()]).stderr.contains("nothing to do"));
}

/// The lines of stderr as events.
fn events(ran: &Ran) -> Vec<Value> {
    ran.stderr.lines().map(|line| serde_json::from_str(line).expect(line)).collect()
}

#[test]
fn events_have_a_time_a_level_and_the_run_and_the_result_says_what_the_run_needed() {
    let folder = tempfile::tempdir().unwrap();
    let store = folder.path().join("store");
    for (processes, id) in [("1", None), ("2", Some("weekly-17"))] {
        let store = store.join(processes);
        let arguments =
            ["run", "jobs/example.toml", "--json", "--store", store.to_str().unwrap(), "--processes", processes];
        let id_flag = id.map_or(vec![], |id| vec!["--run-id", id]);
        let before = seconds_now();
        let ran = run_well(&[&arguments[..], &id_flag].concat());
        let after = seconds_now();
        let result: Value = serde_json::from_str(&ran.stdout).unwrap();
        assert_eq!((&result["done"], &result["week"]), (&"tables made".into(), &DATE.into()));
        assert_eq!((&result["version"], &result["restarts"]), (&env!("CARGO_PKG_VERSION").into(), &0.into()));
        let run = result["run"].as_str().unwrap();
        assert!(id.is_none_or(|id| id == run) && run.len() >= 9, "{run}");
        let seconds = result["seconds"].as_f64().unwrap();
        assert!(seconds > 0.0 && seconds < after - before + 1.0, "{seconds}");
        let resources = &result["resources"];
        assert_eq!(resources["bytes_read"], result["input_bytes"]);
        assert!(resources["cpu_seconds"].as_f64().unwrap() > 0.0, "{resources}");
        let least = processes.parse::<u64>().unwrap() * (4 << 20);
        assert!((least..8 << 30).contains(&resources["peak_memory_bytes"].as_u64().unwrap()), "{resources}");
        let events = events(&ran);
        assert!(!events.is_empty());
        for event in &events {
            let time = event["time"].as_str().unwrap();
            assert!(time.len() == "2024-01-08T08:30:00.250Z".len() && time.ends_with('Z'), "{time}");
            let seconds = time.parse::<jiff::Timestamp>().unwrap().as_millisecond() as f64 / 1e3;
            assert!(seconds > before - 0.01 && seconds < after + 0.01, "{time}");
            assert_eq!((&event["run"], &event["level"]), (&run.into(), &"info".into()), "{event}");
        }
        let again = run_well(&arguments);
        let result: Value = serde_json::from_str(&again.stdout).unwrap();
        assert_eq!((&result["done"], &result["resources"]["bytes_read"]), (&"nothing to do".into(), &0.into()));
        assert_ne!(result["run"], run, "another run has another id");
    }
    let shown: Value =
        serde_json::from_str(&run_well(&["show", store.join("1").to_str().unwrap(), "--json"]).stdout).unwrap();
    assert!(shown["run"].is_null() && shown["counts"]["documents"] == 523, "it is the week that is shown, and no run");
    let dry = run_well(&["run", "jobs/example.toml", "--json", "--dry-run", "--store", "nowhere"]);
    assert_eq!(serde_json::from_str::<Value>(&dry.stdout).unwrap()["done"], "dry run");
    let failed = run(&["run", "jobs/example.toml", "--json", "--store", "nowhere", "--input", "nothing"]);
    let event = events(&failed).pop().unwrap();
    assert_eq!((&event["event"], &event["level"]), (&"error".into(), &"error".into()), "{event}");
    let study = run_well(&["run", "jobs/overlap.toml", "--json", "--store", store.join("1").to_str().unwrap()]);
    let study: Value = serde_json::from_str(&study.stdout).unwrap();
    assert_eq!((&study["done"], study["seconds"].is_f64()), (&"tables made".into(), true));
}

/// Seconds since 1970.
/// Answers one request of the script that sends traces, and returns it as JSON.
fn collector() -> (String, std::thread::JoinHandle<Value>) {
    let server = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = format!("http://{}/", server.local_addr().unwrap());
    let thread = std::thread::spawn(move || {
        let mut connection = server.accept().unwrap().0;
        connection.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
        let mut request = Vec::new();
        loop {
            let mut bytes = [0; 4096];
            let count = connection.read(&mut bytes).unwrap();
            assert!(count > 0, "the request ended early: {}", String::from_utf8_lossy(&request));
            request.extend_from_slice(&bytes[..count]);
            let text = std::str::from_utf8(&request).unwrap();
            let Some((head, body)) = text.split_once("\r\n\r\n") else { continue };
            let Ok(body) = serde_json::from_str(body) else { continue };
            assert!(head.starts_with("POST /v1/traces HTTP/1.1") && head.contains("Api-Key: a b"), "{head}");
            connection.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}").unwrap();
            return body;
        }
    });
    (address, thread)
}

#[test]
fn the_stages_of_a_run_are_spans_of_a_trace() {
    if Command::new("python3").arg("--version").output().is_err() {
        return skipped(Need::Engines, "traces (no python3)");
    }
    let folder = tempfile::tempdir().unwrap();
    let written = folder.path().join("events");
    let send = |endpoint: &str, events: &Path| {
        let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("scripts/otlp_traces.py");
        let mut command = Command::new("python3");
        command.arg(script).env("OTEL_EXPORTER_OTLP_ENDPOINT", endpoint);
        ran(command.env("OTEL_EXPORTER_OTLP_HEADERS", "api-key=a%20b").stdin(std::fs::File::open(events).unwrap()))
    };
    for processes in ["1", "2"] {
        let store = folder.path().join(processes);
        let arguments = ["run", "jobs/example.toml", "--json", "--store", store.to_str().unwrap()];
        let run = run_well(&[&arguments[..], &["--processes", processes]].concat());
        std::fs::write(&written, &run.stderr).unwrap();
        let (address, thread) = collector();
        let sent = send(&address, &written);
        assert_eq!(sent.code, Some(0), "{}", sent.stderr);
        let trace = thread.join().unwrap();
        let spans = trace["resourceSpans"][0]["scopeSpans"][0]["spans"].as_array().unwrap();
        let nanoseconds = |span: &Value, name: &str| span[name].as_str().unwrap().parse::<u64>().unwrap();
        let [begin, end] = ["startTimeUnixNano", "endTimeUnixNano"];
        let [parent, stages @ ..] = &spans[..] else { panic!("there are spans") };
        let mut at = nanoseconds(parent, begin);
        for span in stages {
            assert_eq!((nanoseconds(span, begin), &span["parentSpanId"]), (at, &parent["spanId"]), "{span}");
            at = nanoseconds(span, end);
        }
        assert_eq!(at, nanoseconds(parent, end));
        let ids: BTreeSet<&str> = spans.iter().map(|span| span["spanId"].as_str().unwrap()).collect();
        assert_eq!(ids.len(), spans.len());
        assert!(spans.iter().all(|span| span["traceId"] == parent["traceId"]));
        let events = events(&run);
        let names = |of: &[Value], field: &str| of.iter().map(|of| of[field].clone()).collect::<Vec<_>>();
        if processes == "1" {
            let of_event =
                events.iter().find(|event| event["event"] == "stages").unwrap()["stages"].as_array().unwrap();
            assert_eq!(names(stages, "name"), names(of_event, "stage"));
            for (span, stage) in stages.iter().zip(of_event) {
                let seconds = (nanoseconds(span, end) - nanoseconds(span, begin)) as f64 / 1e9;
                assert!((seconds - stage["wall_s"].as_f64().unwrap()).abs() < 1e-6, "{span}");
            }
        } else {
            let mut seen = names(&events, "stage");
            seen.retain(|stage| !stage.is_null());
            seen.dedup();
            assert_eq!(names(stages, "name"), seen);
        }
    }
    // A collector that is not there, and events without stages.
    let refused = send("http://127.0.0.1:1", &written);
    assert!(refused.code == Some(1) && refused.stderr.contains("http://127.0.0.1:1/v1/traces"), "{}", refused.stderr);
    let nothing = send("http://127.0.0.1:1", &Path::new(env!("CARGO_MANIFEST_DIR")).join("jobs/example.toml"));
    assert!(nothing.code == Some(2) && nothing.stderr.contains("nigh run --json"), "{}", nothing.stderr);
}

fn seconds_now() -> f64 {
    std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap().as_secs_f64()
}

/// The value of a metric in a file, by the beginning of its line.
fn metric(path: &Path, beginning: &str) -> f64 {
    let text = std::fs::read_to_string(path).unwrap();
    let line = text.lines().find(|line| line.starts_with(beginning)).unwrap_or_else(|| panic!("{beginning}: {text}"));
    line.rsplit(' ').next().unwrap().parse().unwrap()
}

#[test]
fn the_file_of_metrics_is_written_at_the_end_and_keeps_the_last_success() {
    let folder = tempfile::tempdir().unwrap();
    let (store, file) = (folder.path().join("store"), folder.path().join("nigh.prom"));
    let arguments =
        ["run", "jobs/example.toml", "--store", store.to_str().unwrap(), "--metrics-file", file.to_str().unwrap()];
    let before = seconds_now().floor();
    run_well(&[&arguments[..], &["--dry-run"]].concat());
    assert!(!file.exists(), "a dry run is no run");
    run_well(&[&arguments[..], &["--processes", "2"]].concat());
    let labels = format!("{{job=\"cluster\",week=\"{DATE}\"}} ");
    let of_run = |name: &str| metric(&file, &format!("{name}{labels}"));
    assert_eq!((of_run("nigh_run_success"), of_run("nigh_documents_total")), (1.0, 523.0));
    assert!(of_run("nigh_run_cpu_seconds") > 0.0 && of_run("nigh_run_peak_memory_bytes") > 1e6);
    let success = metric(&file, "nigh_last_success_timestamp_seconds{job=\"cluster\"} ");
    assert!(success >= before && success <= seconds_now(), "{success}");
    let failed = run(&[&arguments[..], &["--input", "nothing"]].concat());
    assert_eq!((failed.code, of_run("nigh_run_success")), (Some(1), 0.0), "{}", failed.stderr);
    assert_eq!(metric(&file, "nigh_last_success_timestamp_seconds{job=\"cluster\"} "), success);
    run_well(&arguments);
    assert_eq!((of_run("nigh_run_success"), of_run("nigh_documents_total")), (1.0, 0.0), "nothing was to be done");
    let nowhere = folder.path().join("none/nigh.prom");
    let refused = run(&["run", "jobs/example.toml", "--store", "nowhere", "--metrics-file", nowhere.to_str().unwrap()]);
    assert!(refused.code == Some(2) && refused.stderr.contains("its folder is not there"), "{}", refused.stderr);
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 2, "a store and a file");
}

#[test]
fn variables_are_flags_and_flags_override_them() {
    let folder = tempfile::tempdir().unwrap();
    let store = folder.path().join("store");
    let with = |command: &mut Command| {
        ran(command
            .env("NIGH_STORE", &store)
            .env("NIGH_INPUT", "tests/data/week-2024-01-08/*.warc.gz")
            .env("NIGH_WEEK", DATE)
            .env("NIGH_JSON", "yes")
            .env("NIGH_NO_ACCURACY", "true")
            .env("NIGH_QUIET", "0"))
    };
    let made = with(&mut nigh(&["run"]));
    assert_eq!(made.code, Some(0), "{}", made.stderr);
    let result: Value = serde_json::from_str(&made.stdout).unwrap();
    assert_eq!((&result["counts"]["documents"], &result["accuracy"]), (&523.into(), &Value::Null));
    assert!(has_week(&week(&store, DATE)));
    let other = folder.path().join("other");
    with(&mut nigh(&["run", "--store", other.to_str().unwrap(), "--week", "2024-01-09"]));
    assert!(has_week(&week(&other, "2024-01-09")), "flags override variables");
    // `nigh add` names the store itself, and keeps what is there.
    let added = folder.path().join("added");
    let ran_of_add = with(nigh(&["add", added.to_str().unwrap()]).env("NIGH_ABSENT", "missing"));
    assert_eq!(ran_of_add.code, Some(0), "{}", ran_of_add.stderr);
    assert!(has_week(&week(&added, DATE)));
    let wrong = with(nigh(&["run"]).env("NIGH_REPLACE", "perhaps"));
    assert_eq!(wrong.code, Some(2));
    assert!(wrong.stderr.contains("'perhaps' for '--replace'"), "{}", wrong.stderr);
    let help = run_well(&["run", "--help"]).stdout;
    // Beside that of a flag of all commands, which its help names.
    let of_run = help.replace("NIGH_CLOUD_CREDENTIALS", "");
    assert_eq!(of_run.matches("NIGH_").count(), 2, "each flag is named once: {help}");
}
