//! Batches that are added to a store, whose documents stay: against one run over everything.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use crate::choices::datasets::{lines, text};
use crate::program::{booleans, features, job, longs, rows_of, run, run_well, tables, texts, vectors, week};
use crate::weeks::partial::Lcg;

const DATES: [&str; 4] = ["2024-01-08", "2024-01-09", "2024-02-01", "2024-03-04"];

/// A store to which batches are added.
struct Batches<'a> {
    folder: &'a Path,
    store: PathBuf,
    method: &'a str,
}

impl Batches<'_> {
    fn new<'a>(folder: &'a Path, name: &str, method: &'a str) -> Batches<'a> {
        Batches { folder, store: folder.join(name), method }
    }

    /// Adds files as the batch of a date.
    fn add(&self, date: &str, files: &[PathBuf], mode: &str, flags: &[&str]) {
        let text = format!(
            "[cluster]\nmode = \"{mode}\"\n[cluster.read.columns]\nid = \"id\"\n[cluster.method]\nshards = 4\nsimilarity = 0.8\n{}\n",
            self.method
        );
        let job = job(self.folder, &text);
        let mut arguments =
            vec!["add", self.store.to_str().unwrap(), job.to_str().unwrap(), "-q", "--week", date, "--input"];
        arguments.extend(files.iter().map(|file| file.to_str().unwrap()));
        arguments.extend(flags);
        run_well(&arguments);
    }

    /// The documents of a week by id: the names of those in a cluster with it, by level, and
    /// whether it is canonical.
    fn documents(&self, date: &str) -> BTreeMap<String, ([BTreeSet<String>; 3], bool)> {
        let of = week(&self.store, date);
        let ids = texts(&of, "clusters", "id");
        let mut clusters: [BTreeMap<i64, BTreeSet<String>>; 3] = Default::default();
        let roots = ["similar_root", "identical_root", "exact_root"].map(|column| longs(&of, "clusters", column));
        for (level, roots) in roots.iter().enumerate() {
            for (id, root) in ids.iter().zip(roots) {
                clusters[level].entry(*root).or_default().insert(id.clone());
            }
        }
        let canonical = booleans(&of, "clusters", "canonical");
        ids.iter()
            .enumerate()
            .map(|(row, id)| {
                let of_level = |level: usize| clusters[level][&roots[level][row]].clone();
                (id.clone(), ([of_level(0), of_level(1), of_level(2)], canonical[row]))
            })
            .collect()
    }
}

/// Writes records as a file of JSON Lines.
fn file(folder: &Path, name: &str, records: &[(usize, String)]) -> PathBuf {
    let path = folder.join(name);
    let texts: Vec<String> = records.iter().map(|(_, text)| text.clone()).collect();
    std::fs::write(&path, lines(&texts, |place| format!("\"id\": {}, ", records[place].0))).unwrap();
    path
}

/// Text `n` of 25 families; some are exact copies.
fn record(n: usize) -> (usize, String) {
    (n, text(if n.is_multiple_of(7) { n % 25 } else { n }, 25))
}

#[test]
fn batches_that_add_up_are_one_run_over_everything() {
    for (seed, method, batches) in [(0, "", 3), (1, "verify = \"exact\"", 4), (2, "verify = \"estimate\"", 2)] {
        let mut numbers = Lcg(seed);
        let folder = tempfile::tempdir().unwrap();
        let mut of_batch: Vec<Vec<(usize, String)>> = vec![Vec::new(); batches];
        (0..130).for_each(|n| of_batch[numbers.below(batches)].push(record(n)));
        let files: Vec<PathBuf> =
            (0..batches).map(|batch| file(folder.path(), &format!("b{batch}.jsonl"), &of_batch[batch])).collect();
        let last = DATES[batches - 1];
        let one = Batches::new(folder.path(), "one", method);
        one.add(last, &files, "full", &[]);
        let wanted = one.documents(last);
        assert!(wanted.values().filter(|(levels, _)| levels[0].len() > 1).count() > 100);
        let mut made: Option<BTreeMap<String, Vec<u8>>> = None;
        for (mode, workers, processes) in [("full", "1", "1"), ("delta", "2", "1"), ("auto", "2", "2")] {
            let added = Batches::new(folder.path(), &format!("added-{mode}"), method);
            for (date, file) in DATES.iter().zip(&files) {
                added.add(date, std::slice::from_ref(file), mode, &["--workers", workers, "--processes", processes]);
            }
            assert!(added.documents(last) == wanted, "seed {seed}, {mode}");
            let missing = longs(&week(&added.store, last), "missing", "doc");
            assert!(missing.is_empty(), "{missing:?}");
            let tables = tables(&week(&added.store, last));
            match &made {
                Some(made) => assert!(tables == *made, "seed {seed}, {mode}: other bytes"),
                None => made = Some(tables),
            }
        }
    }
}

#[test]
fn an_id_that_comes_again_is_another_document_and_deletions_hold() {
    let folder = tempfile::tempdir().unwrap();
    let batches = Batches::new(folder.path(), "store", "");
    let first: Vec<(usize, String)> = (0..60).map(record).collect();
    // Ten ids come again with the text of another family, and ten are new.
    let second: Vec<(usize, String)> = (50..60).map(|n| (n, text(n + 3, 25))).chain((60..70).map(record)).collect();
    let files = [file(folder.path(), "a.jsonl", &first), file(folder.path(), "b.jsonl", &second)];
    batches.add(DATES[0], &files[..1], "auto", &[]);
    batches.add(DATES[1], &files[1..], "auto", &[]);
    let all: Vec<(usize, String)> = first[..50].iter().chain(&second).cloned().collect();
    let one = Batches::new(folder.path(), "one", "");
    one.add(DATES[1], &[file(folder.path(), "c.jsonl", &all)], "full", &[]);
    assert!(batches.documents(DATES[1]) == one.documents(DATES[1]));
    // The documents of the first batch that stay are of its crawl.
    let of = week(&batches.store, DATES[1]);
    let names = texts(&of, "documents", "file");
    assert_eq!(names.iter().filter(|name| name.ends_with("a.jsonl")).count(), 50);

    for store in [&batches, &one] {
        run_well(&["delete", "--store", store.store.to_str().unwrap(), "--id", "3", "--id", "55"]);
    }
    let left = batches.documents(DATES[1]);
    assert!(left == one.documents(DATES[1]) && left.len() == 68 && !left.contains_key("3"));
    // What was deleted does not come back with the next batch.
    let third = file(folder.path(), "d.jsonl", &[record(70)]);
    batches.add(DATES[2], std::slice::from_ref(&third), "auto", &[]);
    assert_eq!(batches.documents(DATES[2]).len(), 69);
    assert!(!batches.documents(DATES[2]).contains_key("3"));
}

/// What a command prints as JSON, without where documents are from, and whether there was an index.
fn found(arguments: &[&str]) -> serde_json::Value {
    fn leave_out_places(value: &mut serde_json::Value) {
        match value {
            serde_json::Value::Object(fields) => {
                ["file", "offset", "crawled", "way"].iter().for_each(|name| drop(fields.remove(*name)));
                fields.values_mut().for_each(leave_out_places);
            }
            serde_json::Value::Array(values) => values.iter_mut().for_each(leave_out_places),
            _ => {}
        }
    }
    let mut value = serde_json::from_str(&run_well(&[arguments, &["--json"]].concat()).stdout).unwrap();
    leave_out_places(&mut value);
    value
}

/// What a store says of a week is what one says whose last week came with all documents.
fn assert_like_whole(added: &Batches<'_>, whole: &Batches<'_>, date: &str) {
    assert!(added.documents(date) == whole.documents(date), "{date}");
    let [of_added, of_whole] = [added, whole].map(|batches| week(&batches.store, date));
    assert!(features(&of_added) == features(&of_whole) && vectors(&of_added) == vectors(&of_whole), "{date}");
    let says = |batches: &Batches<'_>| {
        let store = batches.store.to_str().unwrap();
        let mut said =
            vec![found(&["why", store, "3", "28", "--week", date]), found(&["why", store, "4", "59", "--week", date])];
        let ids = added.documents(date);
        for id in ["2", "17", "51", "58", "64"].into_iter().filter(|id| ids.contains_key(*id)) {
            said.push(found(&["find", store, "--url", id, "--week", date]));
            said.push(found(&["find", store, "--url", id, "--week", date, "--all"]));
        }
        said
    };
    assert!(says(added) == says(whole), "{date}");
}

/// Of texts without links and chunks, too: features are most of what is known of these.
#[test]
fn features_of_documents_that_stay_are_not_written_again() {
    let folder = tempfile::tempdir().unwrap();
    let shape = "features = 84\nsupershingles = 6\nagreements = 2\n";
    let [exact, estimate] =
        ["exact", "estimate"].map(|verify| format!("{shape}verify = \"{verify}\"\n[cluster.keep]\nchunks = false\n"));
    let first: Vec<(usize, String)> = (0..60).map(record).collect();
    // Ten documents come again with another text, and ten are new; then five and five.
    let second: Vec<(usize, String)> = (50..60).map(|n| (n, text(n + 3, 25))).chain((60..70).map(record)).collect();
    let third: Vec<(usize, String)> = (48..53).map(|n| (n, text(n + 9, 25))).chain((70..75).map(record)).collect();
    let mut state: Vec<(usize, String)> = Vec::new();
    let batches = [first, second, third];
    let files = batches.each_ref().map(|records| file(folder.path(), &format!("b{}.jsonl", records.len()), records));
    let all = [0, 1, 2].map(|batch| {
        state.retain(|(id, _)| batches[batch].iter().all(|(other, _)| id != other));
        state.extend(batches[batch].iter().cloned());
        file(folder.path(), &format!("all{batch}.jsonl"), &state)
    });
    let store = |name| Batches::new(folder.path(), name, &exact);
    let [by_delta, in_full, whole] = ["delta", "full", "whole"].map(store);
    // The documents of a batch, and those with features in its own files.
    let own_docs = |batches: &Batches<'_>, date: &str| {
        let of = week(&batches.store, date);
        let crawled = rows_of(&of, "documents", &["doc", "crawled"]).into_iter().filter(|row| row[1] == date);
        let crawled: BTreeSet<i64> = crawled.map(|row| row[0].parse().unwrap()).collect();
        let with_features: BTreeSet<i64> = longs(&of, "features", "doc").into_iter().collect();
        (crawled, with_features)
    };
    for (batch, date) in DATES.iter().enumerate().take(3) {
        let method = if batch == 2 { &estimate } else { &exact };
        Batches::new(folder.path(), "delta", method).add(date, &files[batch..=batch], "delta", &["--workers", "1"]);
        Batches::new(folder.path(), "full", method).add(
            date,
            &files[batch..=batch],
            "full",
            &["--processes", "2", "--workers", "2"],
        );
        Batches::new(folder.path(), "whole", method).add(date, &all[batch..=batch], "full", &[]);
        assert!(tables(&week(&by_delta.store, date)) == tables(&week(&in_full.store, date)), "{date}");
        let (crawled, with_features) = own_docs(&by_delta, date);
        assert_eq!(crawled, with_features, "{date}");
        assert_eq!(crawled.len(), [60, 20, 10][batch]);
        assert!(longs(&week(&by_delta.store, date), "links", "doc").is_empty());
        for store in [&by_delta, &in_full] {
            assert_like_whole(store, &whole, date);
        }
        if batch == 1 {
            // The last week is made again, from features; then the index is.
            for store in [&by_delta, &in_full, &whole].map(|batches| batches.store.to_str().unwrap()) {
                run_well(&["verify", store, "--by", "estimate"]);
            }
            assert_eq!(own_docs(&by_delta, date), (crawled, with_features));
            assert_like_whole(&by_delta, &whole, date);
            run_well(&["index", by_delta.store.to_str().unwrap()]);
            assert_like_whole(&by_delta, &whole, date);
        }
    }
    // The files of the weeks before stay as long as they are needed.
    for batches in [&by_delta, &whole] {
        run_well(&["vacuum", "--store", batches.store.to_str().unwrap(), "--keep", "1"]);
    }
    let needed =
        |batches: &Batches<'_>, date: &str| batches.store.join("features").join(format!("week={date}")).exists();
    assert_eq!(DATES[..3].iter().map(|date| needed(&by_delta, date)).collect::<Vec<_>>(), [true; 3]);
    assert_eq!(DATES[..3].iter().map(|date| needed(&whole, date)).collect::<Vec<_>>(), [false, false, true]);
    assert_eq!(
        found(&["find", by_delta.store.to_str().unwrap(), "--url", "2", "--all"]),
        found(&["find", whole.store.to_str().unwrap(), "--url", "2", "--all"])
    );
}

#[test]
fn an_export_since_a_batch_has_what_duplicates_nothing_older() {
    let folder = tempfile::tempdir().unwrap();
    let batches = Batches::new(folder.path(), "store", "");
    let parts = [0..40, 40..75, 75..120];
    let files: Vec<PathBuf> = parts
        .iter()
        .enumerate()
        .map(|(batch, part)| {
            file(
                folder.path(),
                &format!("b{batch}.jsonl"),
                &part.clone().map(|n| if n < 100 { record(n) } else { (n, text(n, 1000)) }).collect::<Vec<_>>(),
            )
        })
        .collect();
    for (date, file) in DATES.iter().zip(&files) {
        batches.add(date, std::slice::from_ref(file), "auto", &[]);
    }
    let documents = batches.documents(DATES[2]);
    for (keep, since) in [("first", 1), ("longest", 1), ("root", 2)] {
        let out = folder.path().join(format!("{keep}-{since}"));
        let store = batches.store.to_str().unwrap();
        run_well(&["export", store, "--out", out.to_str().unwrap(), "--keep", keep, "--since", DATES[since]]);
        let mut found = BTreeSet::new();
        for batch in 0..3 {
            let path = out.join(format!("b{batch}.jsonl"));
            assert_eq!(path.exists(), batch >= since, "{keep}");
            let text = std::fs::read_to_string(path).unwrap_or_default();
            let id = |line: &str| serde_json::from_str::<serde_json::Value>(line).unwrap()["id"].to_string();
            found.extend(text.lines().map(id));
        }
        let is_new = |id: &str| id.parse::<usize>().unwrap() >= parts[since].start;
        let of_new: BTreeSet<&BTreeSet<String>> = documents
            .values()
            .map(|(levels, _)| &levels[0])
            .filter(|cluster| cluster.iter().all(|id| is_new(id)))
            .collect();
        assert!(of_new.len() > 15);
        assert_eq!(found.len(), of_new.len(), "{keep}: one of each cluster of new documents");
        assert!(of_new.iter().all(|cluster| cluster.intersection(&found).count() == 1), "{keep}");
    }
    // All batches, as one dataset.
    let out = folder.path().join("all");
    run_well(&["export", batches.store.to_str().unwrap(), "--out", out.to_str().unwrap()]);
    let kept: usize =
        (0..3).map(|batch| std::fs::read_to_string(out.join(format!("b{batch}.jsonl"))).unwrap().lines().count()).sum();
    assert_eq!(kept, documents.values().filter(|(_, is_canonical)| *is_canonical).count());
    std::fs::remove_file(&files[0]).unwrap();
    let refused = run(&["export", batches.store.to_str().unwrap(), "--out", folder.path().join("x").to_str().unwrap()]);
    assert!(refused.code == Some(1) && refused.stderr.contains("b0.jsonl, which is not there"), "{}", refused.stderr);
}

#[test]
fn a_batch_without_a_name_has_todays_and_the_same_again_is_nothing_to_do() {
    let folder = tempfile::tempdir().unwrap();
    let store = folder.path().join("store");
    let first = file(folder.path(), "a.jsonl", &(0..40).map(record).collect::<Vec<_>>());
    let second = file(folder.path(), "b.jsonl", &(40..60).map(record).collect::<Vec<_>>());
    let job =
        job(folder.path(), "[cluster.read.columns]\nid = \"id\"\n[cluster.method]\nshards = 4\nsimilarity = 0.8\n");
    let add = |input: &Path| {
        run_well(&["add", store.to_str().unwrap(), job.to_str().unwrap(), "--input", input.to_str().unwrap()])
    };
    add(&first);
    assert!(add(&first).stderr.contains("nothing to do"));
    add(&second);
    assert!(add(&second).stderr.contains("nothing to do"));
    let weeks = || std::fs::read_dir(store.join("clusters")).unwrap().count();
    assert_eq!(weeks(), 2);
    let refused = run(&["add", store.to_str().unwrap(), "--store", "x", "--input", "y"]);
    assert_eq!(refused.code, Some(2), "{}", refused.stderr);
    // A job that makes no week has no pages to keep.
    for name in ["jobs/evolution.toml", "jobs/chunks.toml"] {
        let refused = run(&["run", name, "--store", store.to_str().unwrap(), "--absent", "keep"]);
        assert!(refused.code == Some(2) && refused.stderr.contains("--absent"), "{}", refused.stderr);
    }
}

#[test]
fn a_batch_without_a_page_makes_no_week() {
    let folder = tempfile::tempdir().unwrap();
    let batches = Batches::new(folder.path(), "store", "");
    let first = file(folder.path(), "a.jsonl", &(0..40).map(record).collect::<Vec<_>>());
    batches.add(DATES[0], std::slice::from_ref(&first), "auto", &[]);
    let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::default());
    std::io::Write::write_all(&mut gzip, b"\n").unwrap();
    for (name, bytes) in [("e.jsonl.gz", gzip.finish().unwrap()), ("zero.jsonl", Vec::new())] {
        let input = folder.path().join(name);
        std::fs::write(&input, bytes).unwrap();
        let store = batches.store.to_str().unwrap();
        let add = ["add", store, "--id", "id", "-q", "--week", DATES[1], "--input", input.to_str().unwrap()];
        let refused = run(&add);
        assert!(refused.code == Some(1) && refused.stderr.contains("the input has no page"), "{}", refused.stderr);
        assert!(refused.stderr.contains("the week before once more"), "{}", refused.stderr);
        assert!(!batches.store.join("clusters").join(format!("week={}", DATES[1])).exists());
    }
    // With the flag it is the week before once more.
    let empty = folder.path().join("zero.jsonl");
    batches.add(DATES[1], &[empty], "auto", &["--allow-empty"]);
    assert!(batches.documents(DATES[1]) == batches.documents(DATES[0]));
}
