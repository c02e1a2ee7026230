//! Batches of which only documents go that duplicate one of an older batch: against a slow twin.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use crate::choices::chosen::{CHOICES, ChoiceCase, RECORDS, RecordsByRoot, clusters, job_of, record};
use crate::program::{Ran, run, run_well, tables, week};

const DATES: [&str; 4] = ["2024-01-08", "2024-01-09", "2024-02-01", "2024-02-02"];

/// The batch of record `n`; some families are in all batches, some in the last two, some only in
/// the last. In each batch a family has several records.
fn batch_of(n: usize) -> Option<usize> {
    let (batch, family) = (4 * n / RECORDS, n % 20);
    [(0..7).contains(&family), (0..14).contains(&family), true, false][batch].then_some(batch)
}

/// Writes each batch as a file of JSON Lines.
fn written(folder: &Path) -> Vec<PathBuf> {
    let write = |batch: usize| {
        let path = folder.join(format!("{batch}.jsonl"));
        let lines = (0..RECORDS).filter(|n| batch_of(*n) == Some(batch)).map(|n| record(n).to_string() + "\n");
        std::fs::write(&path, lines.collect::<String>()).unwrap();
        path
    };
    (0..3).map(write).collect()
}

fn add(store: &Path, job: &Path, date: &str, input: &Path, flags: &[&str]) -> Ran {
    let (store, job, input) = (store.to_str().unwrap(), job.to_str().unwrap(), input.to_str().unwrap());
    run(&[&["add", store, job, "--week", date, "--input", input], flags].concat())
}

/// The records that stay if batches from `since` on keep their copies: of each cluster that has a
/// record before, the ones that the choice has of these; of others all of the oldest batch.
fn staying(
    choice: &ChoiceCase,
    clusters: &RecordsByRoot,
    docs: &BTreeMap<usize, i64>,
    since: usize,
) -> BTreeSet<usize> {
    let (mut chosen, mut all) = (RecordsByRoot::new(), BTreeSet::new());
    for (root, cluster) in clusters {
        let oldest = cluster.iter().filter_map(|n| batch_of(*n)).min().unwrap();
        if oldest < since {
            chosen.insert(*root, cluster.iter().copied().filter(|n| batch_of(*n).unwrap() < since).collect());
        } else {
            all.extend(cluster.iter().copied().filter(|n| batch_of(*n) == Some(oldest)));
        }
    }
    all.extend(choice.kept(&chosen, docs));
    all
}

/// The records that an export lists.
fn listed(folder: &Path, store: &Path, flags: &[&str]) -> BTreeSet<usize> {
    let list = folder.join("list.txt");
    let arguments = ["export", store.to_str().unwrap(), "--list", list.to_str().unwrap(), "--what", "kept"];
    run_well(&[&arguments[..], flags].concat());
    std::fs::read_to_string(list).unwrap().lines().map(|id| id.parse().unwrap()).collect()
}

#[test]
fn a_batch_keeps_its_copies_that_duplicate_nothing_older() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let files = written(folder);
    for (number, choice) in CHOICES[..2].iter().enumerate() {
        let job = job_of(folder, choice.job, "");
        let mut first = None;
        let counts = [["1", "1"], ["2", "1"], ["4", "1"], ["2", "2"]];
        for [workers, processes] in &counts[..if number == 0 { 4 } else { 1 }] {
            let store = folder.join(format!("store-{number}-{workers}-{processes}"));
            for (batch, file) in files.iter().enumerate() {
                let how = ["-q", "--workers", workers, "--processes", processes];
                let only = if batch == 0 { &[][..] } else { &["--only-older"] };
                let ran = add(&store, &job, DATES[batch], file, &[&how[..], only].concat());
                assert_eq!(ran.code, Some(0), "{}", ran.stderr);
                let (clusters, docs, canonical) = clusters(&store, DATES[batch]);
                let expected = staying(choice, &clusters, &docs, 1);
                assert_eq!(canonical, expected, "{}, batch {batch}", choice.job);
                let is_new = |n: &usize| batch_of(*n) > Some(0);
                let of_new = clusters.values().filter(|cluster| cluster.iter().all(is_new)).count();
                let (new, old) = canonical.iter().copied().partition::<Vec<usize>, _>(is_new);
                assert!(batch == 0 || new.len() > of_new && of_new > 5 && old.len() > 5, "{new:?}, {old:?}");
            }
            let of_week = tables(&week(&store, DATES[2]));
            assert!(
                *first.get_or_insert_with(|| of_week.clone()) == of_week,
                "{workers} workers, {processes} processes"
            );
        }
        let store = folder.join(format!("store-{number}-1-1"));
        let (clusters, docs, canonical) = clusters(&store, DATES[2]);
        let is_since = |batch: usize| move |n: &usize| batch_of(*n).unwrap() >= batch;
        assert_eq!(listed(folder, &store, &[]), canonical);
        let new: BTreeSet<usize> = canonical.iter().copied().filter(is_since(2)).collect();
        assert_eq!(listed(folder, &store, &["--since", DATES[2]]), new);
        // Flags that say how many stay take the place of what the job says of that.
        assert_eq!(listed(folder, &store, &["--most", "1"]), choice.kept(&clusters, &docs));
        // All batches since a date as one.
        let of_new = clusters.values().filter(|cluster| cluster.iter().all(is_since(1)));
        let of_new: BTreeSet<usize> = of_new.flatten().copied().collect();
        assert_eq!(listed(folder, &store, &["--since", DATES[1], "--only-older"]), of_new);
        assert!(of_new.len() > canonical.iter().copied().filter(is_since(1)).count());
        // The job may name the batch, too; an older one makes others stay.
        for since in [0, 2] {
            let job = choice.job.replace(" }", &format!(", only-older = \"{}\" }}", DATES[since]));
            let job = job_of(folder, &job, "");
            let store = folder.join(format!("store-{number}-since-{since}"));
            for (date, file) in DATES.iter().zip(&files) {
                assert_eq!(add(&store, &job, date, file, &["-q"]).code, Some(0));
            }
            let (clusters, docs, canonical) = crate::choices::chosen::clusters(&store, DATES[2]);
            assert_eq!(canonical, staying(choice, &clusters, &docs, since), "{}, since {since}", choice.job);
        }
    }
}

#[test]
fn what_is_said_of_copies_within_a_batch() {
    let folder = tempfile::tempdir().unwrap();
    let (folder, store) = (folder.path(), folder.path().join("store"));
    let files = written(folder);
    let choice = &CHOICES[0];
    let job = job_of(folder, choice.job, "");
    assert_eq!(add(&store, &job, DATES[0], &files[0], &["-q"]).code, Some(0));
    let add = |date: usize, file: usize, flags: &[&str]| {
        let ran = add(&store, &job, DATES[date], &files[file], flags);
        assert_eq!(ran.code, Some(0), "{}", ran.stderr);
        ran.stderr
    };
    let chose = "chose the canonical document of a cluster by";
    let said = add(1, 1, &["--only-older"]);
    assert!(!said.contains(chose), "{said}");
    // The same command again, and a batch that is made again.
    assert!(add(1, 1, &["--only-older"]).contains("nothing to do"));
    let before = tables(&week(&store, DATES[1]));
    add(1, 1, &["--only-older", "--replace"]);
    assert!(before == tables(&week(&store, DATES[1])));
    // What is deleted is replaced by what it stood for.
    let (.., canonical) = clusters(&store, DATES[1]);
    let gone: Vec<String> = canonical.iter().take(9).map(usize::to_string).collect();
    let gone: Vec<&str> = gone.iter().map(String::as_str).collect();
    run_well(&[&["delete", "--quiet", "--store", store.to_str().unwrap(), "--id"], &gone[..]].concat());
    let (left, docs, canonical) = clusters(&store, DATES[1]);
    assert_eq!(canonical, staying(choice, &left, &docs, 1));
    // Without the flag copies within all batches go, and the run warns.
    let said = add(2, 2, &["-q"]);
    assert!(
        said.contains(chose) && said.contains("from 2024-01-09 on, all that duplicate nothing of an older batch"),
        "{said}"
    );
    let (all, docs, canonical) = clusters(&store, DATES[2]);
    assert_eq!(canonical, choice.kept(&all, &docs));

    let (store, input) = (store.to_str().unwrap(), files[2].to_str().unwrap());
    let of_two = folder.join("two");
    std::fs::create_dir(&of_two).unwrap();
    let of_two = job_of(&of_two, "{ most = 2 }", "");
    let (job, of_two) = (job.to_str().unwrap(), of_two.to_str().unwrap());
    for (arguments, wanted) in [
        (&["run", job, "--store", store, "--week", DATES[3], "--input", input][..], "`nigh add`, or --absent keep"),
        (&["add", store, of_two, "--week", DATES[3], "--input", input], "leave out one of the two"),
        (&["run", "jobs/overlap.toml", "--store", store], "--only-older are for jobs that make a week"),
        (&["run", "jobs/chunks.toml", "--store", store], "--only-older are for jobs that make a week"),
    ] {
        let ran = run(&[arguments, &["--only-older"]].concat());
        assert!(ran.code == Some(2) && ran.stderr.contains(wanted), "{arguments:?}: {}", ran.stderr);
    }
}
