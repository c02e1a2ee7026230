//! Interrupted runs continue where they stopped; full disks and damaged stores are reported.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::{Duration, Instant};

use nigh::config::Reading;
use nigh::plan::cut_waves;
use nigh::readers::{self, Item};
use nigh::records::KeyHash;
use nigh::state::{BundleName, Piece, Segment, Store, Unfinished};
use nigh::tables::{FailedUrlRow, WEEK_TABLES};
use nigh::text::canonical;

use crate::program::{Made, has_week, job, nigh, output, ran, records, run, run_well, skipped, tables, week};
use crate::skips::Need;

/// The inputs of [`waves`].
const INPUTS: [&str; 4] =
    ["tests/data/week-2024-01-08", "tests/data/dirty", "tests/data/formats/html", "tests/data/formats/*.*"];

/// A job of many waves, so that there is something to go on from.
pub fn waves(folder: &Path) -> PathBuf {
    let text = format!(
        "[cluster]\nweek = \"2024-01-08\"\nwave-bytes = 1\nmax-reject-share = 1.0\ninput = {INPUTS:?}\n[cluster.method]\nshards = 8\n"
    );
    job(folder, &text)
}

/// Writes the failed downloads of all waves of [`waves`] where a run keeps them until the commit.
fn write_failed_urls(unfinished: &Unfinished) {
    let reading = Reading::default();
    let inputs = readers::list(&INPUTS.map(str::to_owned), &reading).unwrap();
    for (wave, (first, end)) in cut_waves(&inputs, 1).into_iter().enumerate() {
        let mut rows: BTreeMap<KeyHash, FailedUrlRow> = BTreeMap::new();
        for input in &inputs[first..end] {
            let mut reader = readers::open(input, &reading).unwrap();
            while let Some(item) = reader.next().unwrap() {
                let Item::Failed(failure) = item else { continue };
                let Some(url) = canonical(&failure.url) else { continue };
                let (hash, host) = (KeyHash::of(url.as_str()), url.host().to_owned());
                let redirect =
                    failure.redirect.and_then(|answer| Some((url.resolve(&answer.location)?, answer.status)));
                rows.entry(hash).or_insert(FailedUrlRow {
                    hash: hash.to_bytes(),
                    host,
                    reason: failure.reason,
                    url: redirect.is_some().then(|| url.into()),
                    status: redirect.as_ref().map_or(0, |(_, status)| (*status).into()),
                    target_url: redirect.map(|(target, _)| target.into()),
                });
            }
        }
        let mut bundle = unfinished.bundle(BundleName::Wave(wave, 0));
        for shard in 0..8 {
            let of_shard = rows.iter().filter(|(hash, _)| hash.shard(8) == shard);
            of_shard.for_each(|(_, row)| bundle.push(row.clone()).unwrap());
            bundle.end_piece(&format!("shard{shard:05}-failed-wave{wave:05}.parquet")).unwrap();
        }
        bundle.finish().unwrap();
    }
}

#[test]
fn after_a_kill_at_any_moment_a_rerun_ends_with_the_same_bytes() {
    let folder = tempfile::tempdir().unwrap();
    let job = waves(folder.path());
    let job = job.to_str().unwrap();
    let undisturbed = Made::with_job(Path::new(job), &["--workers", "2"]);
    let begun = Instant::now();
    Made::with_job(Path::new(job), &["--workers", "2"]);
    let whole = begun.elapsed();
    let mut resumed = 0;
    for (round, processes) in (0..24).zip(["1", "2"].into_iter().cycle()) {
        let store = folder.path().join(format!("store-{round}"));
        let arguments =
            ["run", job, "-q", "--workers", "2", "--processes", processes, "--store", store.to_str().unwrap()];
        let mut child = nigh(&arguments).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
        std::thread::sleep(whole * round / 22);
        // SIGKILL: nothing of the program runs any more.
        child.kill().unwrap();
        child.wait().unwrap();
        // What a killed run leaves is no week: there is none, or a whole one.
        let week = store.join("week=2024-01-08");
        if has_week(&week) {
            assert!(tables(&week) == undisturbed.tables());
        }
        let again = run_well(&[&arguments[..2], &arguments[3..]].concat());
        resumed += usize::from(again.stderr.contains("resuming after wave"));
        assert!(tables(&week) == undisturbed.tables(), "round {round}");
        assert!(!store.join("_nigh/work").exists());
    }
    eprintln!("{resumed} of 24 runs went on from a committed wave");
    assert!(resumed > 0, "no run was killed between two waves");
}

/// Makes a committed week unfinished again, as if killed when all was read and nothing computed.
fn unfinish(store: &Path) -> PathBuf {
    let work = store.join("_nigh/work/week=2024-01-08");
    let scratch = store.join("_nigh/work/scratch-2024-01-08");
    std::fs::create_dir_all(scratch.join("found-links")).unwrap();
    let state = Store::at(store);
    let committed = state.committed("2024-01-08".parse().unwrap()).unwrap();
    let (whole, tables) = (state.whole(&committed).unwrap(), state.tables(&committed).unwrap());
    for table in WEEK_TABLES {
        for (number, Piece(name, rows)) in whole.files[table.name].iter().flat_map(|part| &part.pieces).enumerate() {
            let of_waves =
                ["captures", "documents", "features", "chunks", "urls", "links", "rejects"].contains(&table.name);
            let Some(wave) = Segment::wave_of(name).filter(|_| of_waves) else { continue };
            let path = work.join(table.name).join(BundleName::Wave(wave, number).file());
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            (table.pack)(&[tables.rows(table.name, name).unwrap()], &path, &[]).unwrap();
            let list = serde_json::json!([{ "name": name, "rows": rows, "bytes": 1 }]);
            std::fs::write(path.with_extension("ranges"), list.to_string()).unwrap();
        }
        std::fs::remove_dir_all(store.join(table.name)).unwrap();
    }
    std::fs::remove_dir_all(store.join("_nigh/week=2024-01-08")).unwrap();
    std::fs::remove_file(store.join("_nigh/manifest.json")).unwrap();
    whole.journal.write(&scratch.join("journal.json")).unwrap();
    write_failed_urls(&state.unfinished(committed.week));
    for file in std::fs::read_dir(work.join("links")).unwrap() {
        // Links as pages have them are the same rows with one column more.
        let file = file.unwrap();
        std::fs::rename(file.path(), scratch.join("found-links").join(file.file_name())).unwrap();
    }
    work
}

#[test]
fn a_rerun_does_not_read_committed_waves_again() {
    let folder = tempfile::tempdir().unwrap();
    let job = waves(folder.path());
    let store = folder.path().join("store");
    let arguments = ["run", job.to_str().unwrap(), "--json", "--store", store.to_str().unwrap()];
    let undisturbed = Made::with_job(&job, &[]);
    run_well(&arguments);
    unfinish(&store);
    let again = run_well(&arguments);
    assert!(again.stderr.contains("resuming after wave"), "{}", again.stderr);
    let mut events = again.stderr.lines().map(|line| serde_json::from_str::<serde_json::Value>(line).unwrap());
    let last = events.rfind(|event| event["event"] == "progress").unwrap();
    assert_eq!((&last["bytes"], &last["of_bytes"]), (&0.into(), &0.into()), "no input is read again");
    assert!(tables(&store.join("week=2024-01-08")) == undisturbed.tables());
}

#[test]
fn a_process_that_cannot_write_gets_no_wave_committed() {
    let folder = tempfile::tempdir().unwrap();
    let job = waves(folder.path());
    let store = folder.path().join("store");
    let journal = store.join("_nigh/work/scratch-2024-01-08/journal.json");
    let arguments =
        ["run", job.to_str().unwrap(), "--workers", "1", "--processes", "2", "--store", store.to_str().unwrap()];
    // Begin the week, and stop at once.
    let mut child = nigh(&arguments).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    let begun = Instant::now();
    while !journal.exists() && begun.elapsed() < Duration::from_secs(60) {
        std::thread::sleep(Duration::from_millis(1));
    }
    child.kill().unwrap();
    child.wait().unwrap();
    let waves = |journal: &Path| -> (u64, u64) {
        let journal: serde_json::Value = serde_json::from_slice(&std::fs::read(journal).unwrap()).unwrap();
        (journal["waves"].as_u64().unwrap(), journal["key"]["waves"].as_u64().unwrap())
    };
    // A folder stands where the second process must put the segments of the crawl's first file.
    let (_, all) = waves(&journal);
    // Three files come after it: two of the crawl, and its side file.
    let wave = all - 4;
    let obstacle = store.join(format!("_nigh/work/week=2024-01-08/documents/wave{wave:05}-worker00001.parquet"));
    std::fs::create_dir_all(&obstacle).unwrap();
    let failed = run(&arguments);
    assert_eq!(failed.code, Some(1), "{}", failed.stderr);
    assert!(failed.stderr.contains("worker00001"), "{}", failed.stderr);
    // It began when the wave before the last was committed; the failure may have come before the
    // last one was.
    let committed = waves(&journal).0;
    assert!((wave - 1..=wave).contains(&committed), "{committed} waves committed, wave {wave} lacks a segment");
    std::fs::remove_dir(&obstacle).unwrap();
    run_well(&arguments);
    assert!(tables(&store.join("week=2024-01-08")) == Made::with_job(&job, &[]).tables());
}

#[test]
fn a_signal_stops_the_run_which_prints_how_to_continue() {
    let folder = tempfile::tempdir().unwrap();
    let job = waves(folder.path());
    for (signal, code, processes) in [("INT", 130, "1"), ("TERM", 143, "1"), ("INT", 130, "2"), ("TERM", 143, "2")] {
        let store = folder.path().join(format!("store-{signal}-{processes}"));
        let arguments = [
            "run",
            job.to_str().unwrap(),
            "--workers",
            "1",
            "--processes",
            processes,
            "--store",
            store.to_str().unwrap(),
        ];
        let mut command = nigh(&arguments);
        let child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        // As soon as there is something unfinished: the handler is there before the first wave is.
        let begun = Instant::now();
        let journal = store.join("_nigh/work/week=2024-01-08/documents");
        while !journal.exists() && begun.elapsed() < Duration::from_secs(60) {
            std::thread::sleep(Duration::from_millis(1));
        }
        let id = child.id().to_string();
        assert!(std::process::Command::new("kill").args(["-s", signal, &id]).status().unwrap().success());
        let output = child.wait_with_output().unwrap();
        let stderr = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(code), "{stderr}");
        assert!(
            stderr.contains("stopped") && stderr.contains("continues from there") && stderr.contains("job.toml"),
            "{stderr}"
        );
        run_well(&arguments);
    }
}

#[test]
fn two_runs_into_one_store_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let store = folder.path().join("store");
    let held = nigh::state::Store::at(&store).lock().unwrap();
    let refused = run(&["run", "jobs/example.toml", "--store", store.to_str().unwrap()]);
    assert_eq!(refused.code, Some(1));
    assert!(refused.stderr.contains("another run writes to the store"), "{}", refused.stderr);
    // Not only dropped: what other tests start beside this one inherits it.
    held.unlock().unwrap();
    run_well(&["run", "jobs/example.toml", "--store", store.to_str().unwrap()]);
}

#[test]
fn damaged_files_of_a_store_are_named() {
    let folder = tempfile::tempdir().unwrap();
    let job = waves(folder.path());
    let store = folder.path().join("store");
    let arguments = ["run", job.to_str().unwrap(), "--store", store.to_str().unwrap()];
    run_well(&arguments);
    let work = unfinish(&store);
    let segment = std::fs::read_dir(work.join("documents")).unwrap().next().unwrap().unwrap().path();
    let bytes = std::fs::read(&segment).unwrap();
    std::fs::write(&segment, &bytes[..bytes.len() / 2]).unwrap();
    let damaged = run(&arguments);
    assert_eq!(damaged.code, Some(1));
    assert!(damaged.stderr.contains(segment.file_name().unwrap().to_str().unwrap()), "{}", damaged.stderr);
    std::fs::write(&segment, &bytes).unwrap();
    run_well(&arguments);
    std::fs::write(store.join("_nigh/manifest.json"), "{\"format\":").unwrap();
    let damaged = run(&["show", store.to_str().unwrap()]);
    assert_eq!(damaged.code, Some(1));
    assert!(damaged.stderr.contains("manifest.json is damaged"), "{}", damaged.stderr);
}

/// What is left of a file of so many bytes when it is cut.
fn cuts(bytes: usize) -> [usize; 3] {
    [0, bytes / 2, bytes - 1]
}

/// The largest file of a folder, or the file itself.
fn largest(path: &Path) -> Option<PathBuf> {
    if path.is_file() {
        return Some(path.to_owned());
    }
    let files = std::fs::read_dir(path).unwrap().map(|entry| entry.unwrap().path());
    files.max_by_key(|path| std::fs::metadata(path).unwrap().len())
}

/// Cuts a file, and runs the program: it names the file, or makes of the rest what it would have
/// made of the whole.
fn cut(path: &Path, arguments: &[&str], undisturbed: &dyn Fn() -> bool) -> bool {
    let bytes = std::fs::read(path).unwrap();
    let name = path.file_name().unwrap().to_str().unwrap();
    let mut refused = false;
    for left in cuts(bytes.len()) {
        std::fs::write(path, &bytes[..left]).unwrap();
        let ran = run(arguments);
        let what = format!("{} cut to {left} of {} bytes: {}", path.display(), bytes.len(), ran.stderr);
        assert!(!ran.stderr.contains("panicked") && !ran.stderr.contains("a fault in this program"), "{what}");
        match ran.code {
            Some(0) => assert!(undisturbed(), "{what}"),
            Some(1) => assert!(ran.stderr.contains(name), "{what}"),
            code => panic!("exit code {code:?}, {what}"),
        }
        refused |= ran.code == Some(1);
        if ran.code == Some(0) {
            // The file was written again: it is no longer the one that was cut.
            return refused;
        }
    }
    std::fs::write(path, &bytes).unwrap();
    refused
}

#[test]
fn truncated_files_of_an_unfinished_week_are_named_or_written_again() {
    let folder = tempfile::tempdir().unwrap();
    let job = waves(folder.path());
    let undisturbed = Made::with_job(&job, &[]);
    let whole = undisturbed.tables();
    let mut refused = Vec::new();
    for table in ["documents", "features", "urls", "found-links", "journal.json"] {
        let store = folder.path().join(table);
        crate::program::copy_folder(&undisturbed.store(), &store);
        let work = unfinish(&store);
        let (in_week, in_scratch) = (work.join(table), store.join("_nigh/work/scratch-2024-01-08").join(table));
        let path = largest(if in_week.exists() { &in_week } else { &in_scratch }).unwrap();
        let arguments = ["run", job.to_str().unwrap(), "-q", "--store", store.to_str().unwrap()];
        if cut(&path, &arguments, &|| tables(&store.join("week=2024-01-08")) == whole) {
            refused.push(table);
            // With the file as it was the same command goes on.
            if path.exists() {
                run_well(&arguments);
                assert!(tables(&store.join("week=2024-01-08")) == whole, "{table}");
            }
        }
    }
    assert!(refused.contains(&"documents") && refused.contains(&"features"), "{refused:?}");
}

#[test]
fn truncated_files_of_a_committed_week_are_named_by_the_next_week_or_not_needed() {
    let folder = tempfile::tempdir().unwrap();
    let first = Made::with_job(&waves(folder.path()), &[]);
    let later = |mode: &str| {
        let path = folder.path().join(format!("{mode}.toml"));
        let input = "input = [\"tests/data/week-2024-01-15\"]";
        let text = format!("[weekly]\nweek = \"2024-01-15\"\nmax-reject-share = 1.0\nmode = \"{mode}\"\n{input}\n");
        std::fs::write(&path, text).unwrap();
        path.to_str().unwrap().to_owned()
    };
    let (delta, full) = (later("delta"), later("full"));
    let copy = |name: &str| {
        let store = folder.path().join(name);
        crate::program::copy_folder(&first.store(), &store);
        store
    };
    let store = copy("whole");
    run_well(&["run", &delta, "-q", "--store", store.to_str().unwrap()]);
    let whole = tables(&store.join("week=2024-01-15"));
    let mut refused = Vec::new();
    for (job, needed) in [
        (&delta, &["features", "clusters", "urls", "week.json", "manifest.json"][..]),
        (&full, &["urls", "documents", "features"]),
    ] {
        for table in needed {
            let store = copy(&format!("{table}-{}", job == &full));
            let week = store.join("week=2024-01-08");
            let path = match *table {
                "manifest.json" => store.join("_nigh/manifest.json"),
                "week.json" => records(&week).join("week.json"),
                table => store.join(table).join("week=2024-01-08"),
            };
            let arguments = ["run", job, "-q", "--store", store.to_str().unwrap()];
            if cut(&largest(&path).unwrap(), &arguments, &|| tables(&store.join("week=2024-01-15")) == whole) {
                refused.push(*table);
            }
            assert!(!has_week(&store.join("week=2024-01-15")) || tables(&store.join("week=2024-01-15")) == whole);
        }
    }
    assert!(["features", "clusters", "urls", "week.json", "manifest.json"].iter().all(|table| refused.contains(table)));
}

#[test]
fn an_unfinished_week_of_other_input_is_dropped_with_a_message() {
    let folder = tempfile::tempdir().unwrap();
    let job = waves(folder.path());
    let store = folder.path().join("store");
    run_well(&["run", job.to_str().unwrap(), "-q", "--store", store.to_str().unwrap()]);
    unfinish(&store);
    let other = ["run", "jobs/example.toml", "--store", store.to_str().unwrap()];
    let text = std::fs::read_to_string("jobs/example.toml").unwrap().replace("shards = 64", "shards = 8");
    std::fs::write(&job, text).unwrap();
    let again = run_well(&[&["run", job.to_str().unwrap()], &other[2..]].concat());
    assert!(again.stderr.contains("waves are dropped, and it starts again"), "{}", again.stderr);
    assert!(again.stdout.contains("523 documents"), "{}", again.stdout);
}

#[test]
fn a_full_disk_is_reported_and_loses_nothing() {
    // A file system of its own, of 1 MiB: needs rights that not every machine gives.
    let folder = tempfile::tempdir().unwrap();
    let small = folder.path().join("small");
    std::fs::create_dir(&small).unwrap();
    let mount =
        std::process::Command::new("mount").args(["-t", "tmpfs", "-o", "size=1m", "nigh-test"]).arg(&small).output();
    if !mount.is_ok_and(|output| output.status.success()) {
        skipped(Need::Mount, "a full disk");
        return;
    }
    let store = small.join("store");
    let results: Vec<_> = ["1", "2"]
        .into_iter()
        .map(|processes| {
            run(&[
                "run",
                "jobs/example.toml",
                "--workers",
                "2",
                "--processes",
                processes,
                "--store",
                store.to_str().unwrap(),
            ])
        })
        .collect();
    let remount = ran(std::process::Command::new("mount").args(["-o", "remount,size=64m"]).arg(&small));
    let again = run(&["run", "jobs/example.toml", "--store", store.to_str().unwrap()]);
    let found = tables(&store.join("week=2024-01-08"));
    output(std::process::Command::new("umount").arg(&small));
    for result in results {
        assert_eq!(result.code, Some(1), "{}", result.stderr);
        assert!(
            result.stderr.contains("No space left on device") && result.stderr.contains("store"),
            "{}",
            result.stderr
        );
    }
    assert_eq!(remount.code, Some(0));
    assert_eq!(again.code, Some(0), "{}", again.stderr);
    assert!(found == Made::new(&[]).tables());
}

#[test]
fn a_limit_of_the_size_of_files_is_reported_and_loses_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let store = folder.path().join("store");
    let arguments = ["run", "jobs/example.toml", "-q", "--store", store.to_str().unwrap()];
    let program = nigh(&arguments);
    let mut limited = std::process::Command::new("sh");
    limited.args(["-c", "ulimit -f 64; exec \"$0\" \"$@\""]).arg(program.get_program()).args(arguments);
    limited.current_dir(env!("CARGO_MANIFEST_DIR"));
    let result = ran(&mut limited);
    assert!(result.code == Some(1) && result.stderr.contains("File too large"), "{}", result.stderr);
    assert!(result.stderr.contains(store.to_str().unwrap()), "{}", result.stderr);
    run_well(&arguments);
    assert!(tables(&week(&store, "2024-01-08")) == Made::new(&[]).tables());
}

#[test]
fn a_store_that_cannot_be_written_is_refused() {
    let ran = run(&["run", "jobs/example.toml", "--store", "/proc/nigh-store"]);
    assert_eq!(ran.code, Some(1));
    assert!(ran.stderr.contains("/proc/nigh-store") && ran.stderr.contains("--store"), "{}", ran.stderr);
}
