//! A store that gets more shards: what is refused, and what a kill leaves.

use std::process::Stdio;
use std::time::{Duration, Instant};

use super::reshard::{CrawlsOfWeeks, WEEKS, reshard, shards_of};
use crate::program::{assert_is_whole, copy_folder, nigh, run, run_well, tables};

#[test]
fn what_cannot_be_done_is_refused_with_clear_words() {
    let crawls = CrawlsOfWeeks::new();
    crawls.run("store", 4, 0..2, "missing", &[]);
    let store = crawls.store("store");
    let name = store.to_str().unwrap();
    let before = tables(&store);
    let refused = |shards: &str, code: i32, words: &[&str]| {
        let ran = run(&["reshard", name, "--shards", shards]);
        assert_eq!(ran.code, Some(code), "{shards}: {}{}", ran.stdout, ran.stderr);
        words.iter().for_each(|word| assert!(ran.stderr.contains(word), "{shards}: {}", ran.stderr));
        assert!(tables(&store) == before, "{shards}");
    };
    refused("12", 2, &["--shards 12", "powers of two"]);
    refused("0", 2, &["powers of two"]);
    refused("131072", 2, &["powers of two from 1 to 65536"]);
    refused("2", 2, &["has 4 shards", "give 8"]);
    // The number that it has is no mistake: a run that was killed at its end may be repeated.
    assert!(run_well(&["reshard", name, "--shards", "4"]).stdout.contains("has 4 shards: nothing to do"));
    let dry: serde_json::Value =
        serde_json::from_str(&run_well(&["reshard", name, "--shards", "8", "--dry-run", "--json"]).stdout).unwrap();
    assert_eq!(dry, serde_json::json!({ "from": 4, "to": 8, "weeks": WEEKS[..2], "results": [] }));
    assert!(tables(&store) == before);
    // Another process writes.
    let lock = nigh::state::Store::at(&store).lock().unwrap();
    refused("8", 1, &["another run writes to the store"]);
    // Dropping it would not be enough: processes that other tests start at the same time inherit
    // it.
    lock.unlock().unwrap();
    // A journal of `nigh live` with a batch.
    let folder = store.join("_nigh/live");
    std::fs::create_dir_all(&folder).unwrap();
    std::fs::write(folder.join("journal"), live_journal(&crawls)).unwrap();
    refused("8", 1, &["_nigh/live/journal has 1 batches of `nigh live`", "POST /commit"]);
    std::fs::remove_dir_all(&folder).unwrap();
    // Weeks that were removed.
    run_well(&["vacuum", "--store", name, "--keep", "1"]);
    let ran = run(&["reshard", name, "--shards", "8"]);
    assert!(ran.code == Some(1) && ran.stderr.contains("weeks before 2024-01-15 were removed"), "{}", ran.stderr);
    let nowhere = crawls.store("nowhere");
    let ran = run(&["reshard", nowhere.to_str().unwrap(), "--shards", "8"]);
    assert!(ran.code == Some(1) && ran.stderr.contains("is not a nigh store") && !nowhere.exists(), "{}", ran.stderr);
}

/// A journal that `nigh live` wrote for another store, with one batch.
fn live_journal(crawls: &CrawlsOfWeeks) -> Vec<u8> {
    let other = crawls.store("live");
    let mut command = nigh(&["live", other.to_str().unwrap(), "--by", "url", "--stdin"]);
    let mut child = command.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    let mut input = child.stdin.take().unwrap();
    std::io::Write::write_all(
        &mut input,
        b"{\"url\": \"http://a.example/\", \"text\": \"one two three four five six\"}\n",
    )
    .unwrap();
    let journal = other.join("_nigh/live/journal");
    let begun = Instant::now();
    while std::fs::metadata(&journal).map_or(0, |file| file.len()) == 0 {
        assert!(begun.elapsed() < Duration::from_secs(60), "the batch is in the journal");
        std::thread::sleep(Duration::from_millis(20));
    }
    child.kill().unwrap();
    child.wait().unwrap();
    std::fs::read(journal).unwrap()
}

#[test]
fn a_kill_leaves_the_store_as_it_was_or_as_it_becomes_and_a_second_call_finishes_it() {
    let crawls = CrawlsOfWeeks::new();
    crawls.run("base", 2, 0..3, "keep", &[]);
    crawls.run("twin", 8, 0..3, "keep", &[]);
    let (base, twin) = (tables(&crawls.store("base")), tables(&crawls.store("twin")));
    let timed = crawls.copy("base", "timed");
    let begun = Instant::now();
    reshard(&timed, 8, &[]);
    let whole = begun.elapsed();
    assert!(tables(&timed) == twin);
    let (mut resumed, mut unchanged) = (0, 0);
    const ROUNDS: u32 = 12;
    for round in 0..ROUNDS {
        let store = crawls.copy("base", &format!("killed{round}"));
        let processes = ["1", "2"][round as usize % 2];
        let mut command =
            nigh(&["reshard", store.to_str().unwrap(), "--shards", "8", "--processes", processes, "--workers", "1"]);
        let mut child = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
        std::thread::sleep(whole * (round + 1) / (ROUNDS - 1));
        child.kill().unwrap();
        child.wait().unwrap();
        // What readers see: all of it as it was, or all of it as it becomes.
        let left = tables(&store);
        assert!(left == base || left == twin, "round {round}");
        assert_eq!(shards_of(&store), if left == base { 2 } else { 8 }, "round {round}");
        unchanged += u32::from(left == base);
        resumed += u32::from(store.join("_nigh/work/reshard/_nigh/week=2024-01-08").exists());
        assert_is_whole(&store);
        // The weeks that are made already stay, also with other workers.
        reshard(&store, 8, &["--workers", "2"]);
        assert!(tables(&store) == twin, "round {round}");
        assert_is_whole(&store);
        assert!(!store.join("_nigh/work").exists(), "round {round}");
        std::fs::remove_dir_all(&store).unwrap();
    }
    eprintln!("{unchanged} of {ROUNDS} were as before, {resumed} had a week");
    assert!(unchanged > 1 && resumed > 0);
}

#[test]
fn all_weeks_are_made_and_a_kill_came_before_they_were_published() {
    let crawls = CrawlsOfWeeks::new();
    crawls.run("base", 2, 0..2, "missing", &[]);
    let whole = crawls.copy("base", "whole");
    reshard(&whole, 4, &[]);
    let twin = tables(&whole);
    // As it is between the steps of `Store::finish_resharding`.
    for step in ["manifest", "emptied", "renamed"] {
        let store = crawls.copy("base", step);
        let inner = store.join("_nigh/work/reshard");
        // A store with the weeks of the finished one, laid out as the inner one is.
        copy_folder(&whole, &inner);
        let of_whole = std::fs::read_to_string(whole.join("_nigh/manifest.json")).unwrap();
        std::fs::write(inner.join("manifest.json"), &of_whole).unwrap();
        if step != "manifest" {
            std::fs::remove_file(inner.join("_nigh/manifest.json")).unwrap();
            std::fs::remove_file(inner.join("views.sql")).unwrap();
        }
        if step == "renamed" {
            std::fs::remove_file(inner.join("_nigh/lock")).unwrap();
            std::fs::rename(&inner, store.join("_nigh/work/commit")).unwrap();
            // Any command completes it.
            run_well(&["vacuum", "--store", store.to_str().unwrap(), "--keep", "9"]);
        }
        let said = reshard(&store, 4, &[]);
        assert!(said.contains(if step == "renamed" { "nothing to do" } else { "4 shards now" }), "{step}: {said}");
        assert!(tables(&store) == twin && shards_of(&store) == 4, "{step}");
        assert!(!store.join("_nigh/work").exists() && !store.join("manifest.json").exists(), "{step}");
    }
    // Another commit makes the inner store worthless, and removes it.
    let store = crawls.copy("base", "other");
    copy_folder(&whole, &store.join("_nigh/work/reshard"));
    crawls.run("other", 2, 2..3, "missing", &[]);
    assert!(!store.join("_nigh/work").exists() && shards_of(&store) == 2);
}
