//! A store in a bucket, on a real server.

mod cloud;
mod exports;
mod leases;

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use serde_json::Value;

pub use self::cloud::{Cloud, jobs, steps, texts};
use self::cloud::{OneWeek, URL, WEEKS, assert_same, texts_of_pages};
use crate::program::{data, nigh, ran, run_well, tables};

/// What a command says, without the seconds that the steps of the overlap job took.
fn without_seconds(text: &str) -> String {
    let Some(steps) = text.find("\nsteps of ") else { return text.to_owned() };
    let is_second = |word: &&str| word.rsplit_once('.').is_some_and(|(_, digits)| digits.len() == 2);
    let kept = |line: &str| line.split_whitespace().filter(|word| !is_second(word)).collect::<Vec<&str>>().join(" ");
    let lines: Vec<String> = text[steps..].lines().map(kept).collect();
    text[..steps].to_owned() + &lines.join("\n")
}

/// The same of a report.
fn leave_out_seconds(value: &mut Value) {
    match value {
        Value::Array(values) => values.iter_mut().for_each(leave_out_seconds),
        Value::Object(fields) => {
            if fields.contains_key("step") {
                assert!(fields.remove("seconds").is_some());
            }
            fields.values_mut().for_each(leave_out_seconds);
        }
        _ => {}
    }
}

#[test]
fn a_store_in_a_bucket_has_the_tables_of_one_in_a_folder() {
    let Some(server) = Cloud::start("a store in a bucket") else { return };
    let folder = tempfile::tempdir().unwrap();
    let (jobs, store) = (jobs(folder.path()), folder.path().join("store"));
    let url = "s3://bucket/some/where";
    // Every command is given on another machine than the one before.
    let machines = [folder.path().join("one"), folder.path().join("two")];
    let both = steps(&jobs, store.to_str().unwrap()).into_iter().zip(steps(&jobs, url));
    for (at, (plain, remote)) in both.enumerate() {
        let said = ran(&mut nigh(&texts(&plain)));
        assert_eq!(said.code, Some(0), "{}", said.stderr);
        let in_bucket = server.run_well(&machines[at % 2], &texts(&remote));
        let there = in_bucket.stdout.replace(url, store.to_str().unwrap());
        // Except for the bytes of what a deletion or a vacuum removed: the job is kept with the
        // week, and names the store.
        let without_bytes = |text: &str| {
            text.split(" KiB").next().unwrap_or_default().trim_end_matches(|c: char| !c.is_alphabetic()).to_owned()
        };
        match at {
            8 | 9 => assert_eq!(without_bytes(&there), without_bytes(&said.stdout)),
            _ => assert_eq!(without_seconds(&there), without_seconds(&said.stdout), "a command says the same"),
        }
        assert_same(&server.tables(url), &tables(&store), &format!("after {plain:?}"));
        let shown = server.run_well(&folder.path().join("nowhere"), &["show", url]);
        assert_eq!(
            shown.stdout.replace(url, store.to_str().unwrap()),
            ran(&mut nigh(&["show", store.to_str().unwrap()])).stdout
        );
        if at == 1 {
            let changes =
                |store: &str| server.run_well(&folder.path().join("nowhere"), &["show", store, "--changes"]).stdout;
            assert_eq!(changes(url), changes(store.to_str().unwrap()));
        }
        if at == 5 {
            let nowhere = folder.path().join("nowhere");
            let list = folder.path().join("list");
            std::fs::write(&list, texts_of_pages(&store)).unwrap();
            for (flags, store_at) in [(vec!["show"], 1), (vec!["roll-up", "--store"], 2)] {
                let more: &[&str] = if store_at == 1 { &["--avoid"] } else { &[list.to_str().unwrap()] };
                let said = |store: &str| {
                    [&flags[..], &[store], more].concat().iter().map(|part| part.to_string()).collect::<Vec<_>>()
                };
                let there = server.run_well(&nowhere, &texts(&said(url)));
                let here = ran(&mut nigh(&texts(&said(store.to_str().unwrap()))));
                assert!(here.code == Some(0) && !here.stdout.is_empty());
                assert_eq!(there.stdout, here.stdout, "{flags:?}");
            }
            let local = store.to_str().unwrap();
            let report = |store: &str| {
                let text = server.run_well(&nowhere, &["report", store, "--json"]).stdout.replace(url, local);
                let mut report = serde_json::from_str(&text).unwrap();
                leave_out_seconds(&mut report);
                report
            };
            assert_eq!(report(url), report(local), "a report of what is in the bucket");
        }
        // What is in the bucket is just that: each file is an object, beside one list for each
        // folder, the manifest, the lock and the views.
        let is_published = |path: &Path| {
            let own = path.strip_prefix(store.join("_nigh"));
            own.map_or(true, |own| {
                ["digests", "week=", "before=", "evolution", "mirrors", "overlap", "collections", "paragraphs"]
                    .iter()
                    .any(|name| own.to_string_lossy().starts_with(name))
            })
        };
        let entries = walkdir::WalkDir::new(&store).min_depth(2).into_iter().map(|entry| entry.unwrap());
        let files: Vec<PathBuf> = entries
            .filter(|entry| entry.file_type().is_file() && is_published(entry.path()))
            .map(|entry| entry.path().strip_prefix(&store).unwrap().to_owned())
            .collect();
        let folders: BTreeSet<_> = files.iter().map(|path| path.iter().next().unwrap()).collect();
        let keys = server.keys("some/where");
        assert_eq!(keys.len(), files.len() + folders.len() + 3, "{keys:?}");
        // The views name each file of a table, so what no commit lists is not seen.
        let views = String::from_utf8(server.get("/some/where/views.sql")).unwrap();
        let named = views.split("|| '").skip(1).map(|rest| rest.split('\'').next().unwrap().to_owned());
        let is_of_table = |key: &String| key.ends_with(".parquet") && !key.starts_with("_nigh/");
        assert_eq!(
            named.collect::<BTreeSet<_>>(),
            keys.into_iter().filter(is_of_table).collect::<BTreeSet<_>>(),
            "after {plain:?}"
        );
    }
    assert!(!folder.path().join("nowhere").exists(), "what is only read needs no mirror");
    let again =
        server.run_well(&machines[1], &["delete", "--store", url, "--host", "arm64.guide.debian.example", "--dry-run"]);
    assert!(again.stdout.contains("has no such URL"), "{}", again.stdout);
    let none = server.run(&machines[0], &["vacuum", "--store", "s3://bucket/none", "--keep", "1"]);
    assert!(none.code == Some(1) && none.stderr.contains("s3://bucket/none is not a nigh store"), "{}", none.stderr);
    // A store may begin with the tables of a job that needs no week.
    let (lists, job) = (folder.path().join("list"), folder.path().join("lists.toml"));
    let text = format!("[mirrors-by-url]\nleast-urls = 5\nlists = [{:?}]\n", lists.to_str().unwrap());
    std::fs::write(&job, text).unwrap();
    let (begun, job) = (folder.path().join("begun"), job.to_str().unwrap());
    let here = run_well(&["run", job, "--store", begun.to_str().unwrap()]);
    let there = server.run_well(&machines[0], &["run", job, "--store", "s3://bucket/lists"]);
    let of_url = there.stdout.replace("s3://bucket/lists", begun.to_str().unwrap());
    assert!(of_url == here.stdout && here.stdout.contains("of lists"), "{}", there.stdout);
    let shown =
        server.run_well(&folder.path().join("nowhere"), &["show", "s3://bucket/lists", "--job", "mirrors-by-url"]);
    assert_eq!(shown.stdout, there.stdout);
}

#[test]
fn a_mirror_does_not_use_what_another_machine_has_made_wrong() {
    let Some(server) = Cloud::start("two mirrors by turns") else { return };
    let folder = tempfile::tempdir().unwrap();
    let later = folder.path().join("delta.toml");
    std::fs::write(&later, "[weekly]\nmode = \"delta\"\n").unwrap();
    let [first, ..] = jobs(folder.path());
    let [one, two] = ["one", "two"].map(|name| folder.path().join(name));
    let dates = [WEEKS[0], WEEKS[1], "2024-01-22"];
    let store = folder.path().join("store").display().to_string();
    let run = |store: &str, week: usize, more: &[&str]| {
        let input = data(&format!("week-{}", dates[week])).display().to_string();
        let job = if week == 0 { &first } else { &later };
        let arguments = ["run", job.to_str().unwrap(), "--store", store, "--week", dates[week], "--input", &input];
        arguments.iter().chain(more).map(|text| (*text).to_owned()).collect::<Vec<String>>()
    };
    let delete =
        |store: &str| ["delete", "--store", store, "--host", "arm64.guide.debian.example"].map(str::to_owned).to_vec();
    // The first machine keeps an inverted index of the second week. The second machine deletes
    // pages of that week, and makes it again from the same input, so that the same URLs get other
    // ids. The index must not be used for the third week.
    let history = |store: &str| {
        vec![run(store, 0, &[]), run(store, 1, &[]), delete(store), run(store, 1, &["--replace"]), run(store, 2, &[])]
    };
    let machines = [&one, &one, &two, &two, &one];
    for (machine, (remote, local)) in machines.into_iter().zip(history(URL).into_iter().zip(history(&store))) {
        server.run_well(machine, &texts(&remote));
        let ran = ran(&mut nigh(&texts(&local)));
        assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    }
    assert_same(&server.tables(URL), &tables(Path::new(&store)), "after both machines");
}

#[test]
fn a_damaged_object_is_named_and_restored_by_a_run_that_has_a_good_copy() {
    let Some(OneWeek { server, folder, steps, one }) = OneWeek::new("damaged objects") else { return };
    let keys = server.keys("store");
    let key = keys.iter().find(|key| key.starts_with("clusters/week=2024-01-08/nigh-")).unwrap();
    let path = format!("/store/{}", key.replace('=', "%3D"));
    let whole = server.get(&path);
    let mut other = whole.clone();
    other[100] ^= 1;
    for (damaged, said) in
        [(&whole[..whole.len() / 2], format!("its list has {}", whole.len())), (&other[..], "with digest".into())]
    {
        server.put(&path, damaged);
        let failed = server.run(&folder.path().join("two"), &texts(&steps[1]));
        assert_eq!(failed.code, Some(1), "{}", failed.stderr);
        assert!(
            failed.stderr.contains(&format!("s3://bucket/store/{key}")) && failed.stderr.contains(&said),
            "{}",
            failed.stderr
        );
        assert!(failed.stderr.contains("run `nigh vacuum`"), "{}", failed.stderr);
        let checked = server.run(&folder.path().join("three"), &["check", URL]);
        let found = if damaged.len() == whole.len() { "has other bytes than were written" } else { "bytes, and " };
        assert!(checked.stdout.starts_with(&format!("s3://bucket/store/{key} has ")), "{}", checked.stdout);
        assert!(checked.code == Some(1) && checked.stdout.contains(found), "{}", checked.stderr);
        assert!(checked.stdout.lines().count() == 1 && !folder.path().join("three").exists(), "{}", checked.stdout);
    }
    // By one that looks, or that has something to publish.
    for step in [vec!["vacuum", "--store", URL, "--keep", "9"], texts(&steps[1])] {
        server.put(&path, &whole[..10]);
        server.run_well(&one, &step);
        assert!(server.get(&path) == whole);
        let checked = server.run_well(&folder.path().join("three"), &["check", URL]);
        assert!(checked.stdout.contains("are as they were written"), "{}", checked.stdout);
    }
    server.run_well(&folder.path().join("two"), &texts(&steps[1]));
    // A list, and the manifest.
    let list = server.keys("store").into_iter().find(|key| key.contains("_nigh/files/clusters-")).unwrap();
    server.put(&format!("/store/{}", list.replace('=', "%3D")), b"{}");
    let failed = server.run(&folder.path().join("three"), &["vacuum", "--store", URL, "--keep", "1"]);
    assert!(
        failed.code == Some(1) && failed.stderr.contains(&list) && failed.stderr.contains("is damaged"),
        "{}",
        failed.stderr
    );
    server.put("/store/_nigh/manifest.json", b"{\"format\": 3}");
    let failed = server.run(&one, &["show", URL]);
    assert!(failed.stderr.contains("a store does not work after a copy into a bucket"), "{}", failed.stderr);
}
