//! Week over week: `delta`, `full` and `auto` give the same tables, URLs and clusters keep their
//! ids, and a kill never leaves half a week.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::{Duration, Instant};

use arrow_array::{Array, Int64Array, StringArray};
use nigh::tables::{Scan, field};

use crate::studies::evolution::assert_evolution_is_right;
use nigh::tables::WEEK_TABLES;

use crate::program::{copy_folder, corpus, data, files, has_week, nigh, records, rows_of, run, run_well, tables};

const WEEKS: [&str; 3] = ["2024-01-08", "2024-01-15", "2024-01-22"];

/// A store that weeks are added to.
struct Weeks {
    folder: tempfile::TempDir,
    /// The job of the first week.
    first: PathBuf,
    /// The job of the weeks after.
    later: PathBuf,
}

impl Weeks {
    fn new(mode: &str, more: &str) -> Weeks {
        let folder = tempfile::tempdir().unwrap();
        let write = |name: &str, text: String| {
            let path = folder.path().join(name);
            std::fs::write(&path, text).unwrap();
            path
        };
        let first = write("first.toml", format!("[cluster]\n{more}\n[cluster.method]\nshards = 8\n"));
        let later = write("later.toml", format!("[weekly]\nmode = \"{mode}\"\n{more}\n"));
        Weeks { folder, first, later }
    }

    fn store(&self) -> PathBuf {
        self.folder.path().join("store")
    }

    fn week(&self, week: &str) -> PathBuf {
        crate::program::week(&self.store(), week)
    }

    /// The arguments that make a week from an input.
    fn arguments(&self, week: &str, input: &Path, flags: &[&str]) -> Vec<String> {
        let job = if self.store().join("_nigh/manifest.json").exists() { &self.later } else { &self.first };
        let (store, text) = (self.store(), |path: &Path| path.to_str().unwrap().to_owned());
        let mut all = ["run", &text(job), "-q", "--store", &text(&store), "--week", week, "--input", &text(input)]
            .map(str::to_owned)
            .to_vec();
        all.extend(flags.iter().map(|flag| flag.to_string()));
        all
    }

    fn add(&self, week: &str, input: &Path, flags: &[&str]) -> String {
        let arguments = self.arguments(week, input, flags);
        run_well(&arguments.iter().map(String::as_str).collect::<Vec<_>>()).stdout
    }

    /// Adds the shipped weeks.
    fn shipped(mode: &str, more: &str, flags: &[&str]) -> Weeks {
        let weeks = Weeks::new(mode, more);
        WEEKS.iter().for_each(|week| _ = weeks.add(week, &data(&format!("week-{week}")), flags));
        weeks
    }

    /// The bytes of all tables of all weeks.
    fn tables(&self) -> BTreeMap<String, Vec<u8>> {
        tables(&self.store())
    }
}

fn assert_same(a: &Weeks, b: &Weeks, what: &str) {
    let (a, b) = (a.tables(), b.tables());
    assert!(a.len() >= 2 * WEEK_TABLES.len(), "{} tables are too few to compare", a.len());
    assert_eq!(a.keys().collect::<Vec<_>>(), b.keys().collect::<Vec<_>>(), "{what}");
    for (name, bytes) in &a {
        assert!(b[name] == *bytes, "{what}: {name} differs");
    }
}

/// A page of the cluster map.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Clustered {
    doc: i64,
    root: i64,
    size: i64,
    id: Option<i64>,
}

/// The cluster map of a week, by URL.
fn cluster_map(week: &Path) -> BTreeMap<String, Clustered> {
    let mut map = BTreeMap::new();
    for path in files(week, "clusters") {
        let scan = Scan::open(&path, &["url", "doc", "similar_root", "similar_size", "cluster_id"]).unwrap();
        scan.for_each(|batch| {
            let column = |name| field::<Int64Array>(batch, name);
            let (docs, roots, sizes) = (column("doc")?, column("similar_root")?, column("similar_size")?);
            let (ids, urls): (_, &StringArray) = (column("cluster_id")?, field(batch, "url")?);
            for row in 0..batch.num_rows() {
                let id = (!ids.is_null(row)).then(|| ids.value(row));
                let page = Clustered { doc: docs.value(row), root: roots.value(row), size: sizes.value(row), id };
                assert!(map.insert(urls.value(row).to_owned(), page).is_none(), "{}", urls.value(row));
            }
            Ok(())
        })
        .unwrap();
    }
    map
}

/// The clusters as sets of URLs.
fn partition(map: &BTreeMap<String, Clustered>) -> BTreeSet<BTreeSet<String>> {
    let mut clusters: BTreeMap<i64, BTreeSet<String>> = BTreeMap::new();
    map.iter().for_each(|(url, page)| _ = clusters.entry(page.root).or_default().insert(url.clone()));
    clusters.into_values().collect()
}

#[test]
fn full_delta_and_auto_give_the_same_tables_for_any_workers() {
    let full = Weeks::shipped("full", "", &["--workers", "1"]);
    for (mode, workers, processes) in [
        ("delta", "1", "1"),
        ("delta", "2", "1"),
        ("delta", "4", "1"),
        ("delta", "2", "2"),
        ("auto", "3", "1"),
        ("full", "2", "2"),
    ] {
        let other = Weeks::shipped(mode, "", &["--workers", workers, "--processes", processes]);
        assert_same(&full, &other, &format!("{mode}, {workers} workers in {processes} processes"));
        let summary = std::fs::read_to_string(records(&other.week(WEEKS[2])).join("summary.json")).unwrap();
        let found = serde_json::from_str::<serde_json::Value>(&summary).unwrap()["since"]["found"].to_string();
        let way = match mode {
            "delta" => "from what changed, as the job says",
            "full" => "from all pages, as the job says",
            _ => "of the vectors changed",
        };
        assert!(found.contains(way), "{found}");
    }
}

/// The names of the folders of runs of postings that a store has; `None` where it has no postings.
fn posting_runs(weeks: &Weeks) -> Option<Vec<String>> {
    let list = std::fs::read(weeks.store().join("_nigh/postings/postings.json")).ok()?;
    let list: serde_json::Value = serde_json::from_slice(&list).unwrap();
    let listed: Vec<String> =
        list["runs"].as_array().unwrap().iter().map(|run| run["folder"].as_str().unwrap().to_owned()).collect();
    let entries = std::fs::read_dir(weeks.store().join("_nigh/postings")).unwrap().map(|entry| entry.unwrap());
    let folders = entries.filter(|entry| entry.path().is_dir()).map(|entry| entry.file_name().into_string().unwrap());
    assert!(folders.into_iter().all(|folder| listed.contains(&folder)), "nothing else is left: {listed:?}");
    Some(listed)
}

/// A file of the first run of postings.
fn posting_file(weeks: &Weeks) -> PathBuf {
    let run = weeks.store().join("_nigh/postings").join(&posting_runs(weeks).unwrap()[0]);
    let mut files: Vec<PathBuf> = std::fs::read_dir(run).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.sort();
    files.swap_remove(0)
}

#[test]
fn postings_are_those_of_the_last_week_and_may_be_lost() {
    let input = |at: usize| data(&format!("week-{}", WEEKS[at]));
    let full = Weeks::shipped("full", "", &["--workers", "1"]);
    assert_eq!(posting_runs(&full), None, "nothing followed a change");
    type Damage = fn(&Weeks);
    let damages: [(&str, Damage); 6] = [
        ("untouched", |_| {}),
        ("without postings", |weeks| std::fs::remove_dir_all(weeks.store().join("_nigh/postings")).unwrap()),
        ("without a file", |weeks| std::fs::remove_file(posting_file(weeks)).unwrap()),
        ("with a cut file", |weeks| {
            let file = std::fs::File::options().write(true).open(posting_file(weeks)).unwrap();
            file.set_len(file.metadata().unwrap().len() - 8).unwrap();
        }),
        ("with a cut list", |weeks| {
            let list = weeks.store().join("_nigh/postings/postings.json");
            let bytes = std::fs::read(&list).unwrap();
            std::fs::write(&list, &bytes[..bytes.len() / 2]).unwrap();
        }),
        ("with those of another week", |weeks| {
            let list = weeks.store().join("_nigh/postings/postings.json");
            let text = std::fs::read_to_string(&list).unwrap().replace(WEEKS[1], WEEKS[0]);
            std::fs::write(&list, text).unwrap();
        }),
    ];
    let two_weeks = Weeks::new("delta", "");
    two_weeks.add(WEEKS[0], &input(0), &[]);
    assert_eq!(posting_runs(&two_weeks), None);
    two_weeks.add(WEEKS[1], &input(1), &[]);
    let first = posting_runs(&two_weeks).unwrap();
    assert!(first.len() == 1 && first[0].contains(WEEKS[1]), "{first:?}");
    for (what, damage) in damages {
        let weeks = Weeks::new("delta", "");
        copy_folder(&two_weeks.store(), &weeks.store());
        damage(&weeks);
        weeks.add(WEEKS[2], &input(2), &[]);
        assert_same(&full, &weeks, what);
        let then = posting_runs(&weeks).unwrap();
        let is_new = then[0] != first[0];
        assert!(then.iter().any(|run| run.contains(WEEKS[2])), "{what}: {then:?}");
        assert_eq!(is_new, what != "untouched", "{what}: {then:?}");
        // The same week once more stands on the postings of the week before, which are gone.
        weeks.add(WEEKS[2], &input(2), &["--replace"]);
        assert_same(&full, &weeks, what);
        assert_eq!(posting_runs(&weeks).unwrap().len(), 1, "{what}");
        let store = weeks.store();
        let host = ["delete", "--store", store.to_str().unwrap(), "--host", "arm64.guide.debian.example", "-q"];
        run_well(&host);
        assert_eq!(posting_runs(&weeks), None, "nothing of deleted pages is kept");
    }
}

#[test]
fn damaged_postings_are_named() {
    let weeks = Weeks::new("delta", "");
    (0..2).for_each(|at| _ = weeks.add(WEEKS[at], &data(&format!("week-{}", WEEKS[at])), &[]));
    let folder = weeks.store().join("_nigh/postings").join(&posting_runs(&weeks).unwrap()[0]);
    // Postings that do not ascend, behind heads that do.
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let mut bytes = std::fs::read(&path).unwrap();
        // A head, a checksum and 64 postings for each block.
        let heads = 2 * 8 * (bytes.len() / 8).div_ceil(66);
        bytes[heads + 8..].chunks_exact_mut(8).for_each(|posting| posting.fill(0));
        std::fs::write(&path, bytes).unwrap();
    }
    let before = weeks.tables();
    let arguments = weeks.arguments(WEEKS[2], &data(&format!("week-{}", WEEKS[2])), &[]);
    let ran = run(&arguments.iter().map(String::as_str).collect::<Vec<_>>());
    assert_eq!(ran.code, Some(1));
    assert!(ran.stderr.contains("_nigh/postings") && ran.stderr.contains("remove"), "{}", ran.stderr);
    assert!(weeks.tables() == before, "the weeks that were there are as they were");
    std::fs::remove_dir_all(weeks.store().join("_nigh/postings")).unwrap();
    weeks.add(WEEKS[2], &data(&format!("week-{}", WEEKS[2])), &[]);
    assert_same(&Weeks::shipped("full", "", &[]), &weeks, "without the damaged postings");
}

#[test]
fn full_and_delta_give_the_same_tables_with_many_waves_and_little_memory() {
    let more = "wave-bytes = 1";
    let full = Weeks::shipped("full", more, &["--workers", "1"]);
    let config = full.folder.path().join("config.toml");
    // So little that a change is taken in many slices.
    std::fs::write(&config, "memory = 60000\n").unwrap();
    let config = config.to_str().unwrap();
    for (mode, processes) in [("delta", "1"), ("delta", "2"), ("full", "1")] {
        let other = Weeks::shipped(mode, more, &["--workers", "2", "--processes", processes, "--config", config]);
        assert_same(&full, &other, &format!("{mode} in {processes} processes"));
    }
}

#[test]
fn a_week_has_the_clusters_that_its_crawl_alone_has_and_urls_keep_their_ids() {
    let weeks = Weeks::shipped("delta", "", &[]);
    let mut ids: BTreeMap<String, i64> = BTreeMap::new();
    for week in WEEKS {
        let map = cluster_map(&weeks.week(week));
        let alone = Weeks::new("full", "");
        alone.add(week, &data(&format!("week-{week}")), &[]);
        assert_eq!(partition(&map), partition(&cluster_map(&alone.week(week))), "{week}");
        for (url, page) in map {
            assert_eq!(*ids.entry(url.clone()).or_insert(page.doc), page.doc, "{url}");
        }
    }
    let distinct: BTreeSet<&i64> = ids.values().collect();
    assert_eq!(distinct.len(), ids.len(), "an id is of one URL");
}

/// Works out from the cluster maps of two weeks which ids the clusters of the later one should have
/// and which changes its table should list. `known` are the ids of all clusters so far.
fn assert_cluster_ids_and_changes_are_right(weeks: &Weeks, before: &str, after: &str, known: &BTreeSet<i64>) {
    let (old, new) = (cluster_map(&weeks.week(before)), cluster_map(&weeks.week(after)));
    // How many pages a cluster of the earlier week, by id, has in each cluster of the later one, by
    // root.
    let mut shared: BTreeMap<i64, BTreeMap<i64, i64>> = BTreeMap::new();
    for (url, page) in &new {
        if let Some(id) = old.get(url).and_then(|page| page.id)
            && page.size > 1
        {
            *shared.entry(id).or_default().entry(page.root).or_default() += 1;
        }
    }
    let successor = |parts: &BTreeMap<i64, i64>| {
        parts.iter().max_by_key(|(root, count)| (**count, std::cmp::Reverse(**root))).map(|(root, _)| *root)
    };
    let mut events: BTreeSet<(i64, String, Option<i64>, i64, i64, i64)> = BTreeSet::new();
    let roots = |map: &BTreeMap<String, Clustered>| -> BTreeMap<i64, Clustered> {
        let roots = map.values().filter(|page| page.doc == page.root && page.size > 1);
        roots.map(|page| (page.root, page.clone())).collect()
    };
    let (old_roots, new_roots) = (roots(&old), roots(&new));
    let old_sizes: BTreeMap<i64, i64> = old_roots.values().map(|page| (page.id.unwrap(), page.size)).collect();
    for (id, size) in &old_sizes {
        if !shared.contains_key(id) {
            events.insert((*id, "death".into(), None, *size, 0, *size));
        }
    }
    for (root, page) in &new_roots {
        let parts: Vec<(i64, i64, bool)> = shared
            .iter()
            .filter_map(|(id, parts)| Some((*id, *parts.get(root)?, successor(parts) == Some(*root))))
            .collect();
        // Of the clusters that this one succeeds, the one with most pages here passes on its id.
        let predecessors = parts.iter().filter(|(_, _, succeeds)| *succeeds);
        let inherited = predecessors.max_by_key(|(id, count, _)| (*count, std::cmp::Reverse(*id))).map(|part| part.0);
        let id = page.id.unwrap();
        match inherited {
            Some(inherited) => assert_eq!(id, inherited, "{}", page.root),
            None => assert!(!known.contains(&id), "{id} was given before"),
        }
        if parts.is_empty() {
            events.insert((id, "birth".into(), None, 0, page.size, page.size));
        }
        for (part, count, succeeds) in parts {
            let was = old_sizes[&part];
            if part == id {
                let event = if was < page.size { "grow" } else { "shrink" };
                if was != page.size {
                    events.insert((id, event.into(), None, was, page.size, (page.size - was).abs()));
                }
            } else {
                let event = if succeeds { "merge" } else { "split" };
                events.insert((part, event.into(), Some(id), was, page.size, count));
            }
        }
    }
    let mut found = BTreeSet::new();
    for path in files(&weeks.week(after), "changes") {
        let scan =
            Scan::open(&path, &["cluster_id", "event", "other_cluster_id", "before", "after", "documents"]).unwrap();
        scan.for_each(|batch| {
            let column = |name| field::<Int64Array>(batch, name);
            let (ids, others, befores) = (column("cluster_id")?, column("other_cluster_id")?, column("before")?);
            let (afters, documents) = (column("after")?, column("documents")?);
            let names: &StringArray = field(batch, "event")?;
            for row in 0..batch.num_rows() {
                let other = (!others.is_null(row)).then(|| others.value(row));
                let event = names.value(row).to_owned();
                found.insert((
                    ids.value(row),
                    event,
                    other,
                    befores.value(row),
                    afters.value(row),
                    documents.value(row),
                ));
            }
            Ok(())
        })
        .unwrap();
    }
    assert_eq!(found, events, "{before} to {after}");
}

/// The ids of the clusters of a week.
fn cluster_ids(map: &BTreeMap<String, Clustered>) -> BTreeSet<i64> {
    map.values().filter_map(|page| page.id).collect()
}

#[test]
fn clusters_keep_their_ids_and_every_change_is_listed() {
    let weeks = Weeks::shipped("delta", "canonical = \"longest\"", &["--workers", "3"]);
    let mut known = cluster_ids(&cluster_map(&weeks.week(WEEKS[0])));
    for pair in WEEKS.windows(2) {
        assert_cluster_ids_and_changes_are_right(&weeks, pair[0], pair[1], &known);
        known.extend(cluster_ids(&cluster_map(&weeks.week(pair[1]))));
    }
    let store = weeks.store();
    let shown = run_well(&["show", store.to_str().unwrap(), "--changes"]).stdout;
    for wanted in ["Since    2024-01-15", "death", "shrink", "http"] {
        assert!(shown.contains(wanted), "{wanted}: {shown}");
    }
    let json = run_well(&["show", store.to_str().unwrap(), "--changes", "--json"]).stdout;
    let json: serde_json::Value = serde_json::from_str(&json).unwrap();
    assert_eq!(json["week"], WEEKS[2]);
    // A cluster has the name of its root, whichever page stays.
    let mut names: BTreeMap<String, String> = BTreeMap::new();
    for week in &WEEKS[1..] {
        let rows = rows_of(&weeks.week(week), "clusters", &["doc", "similar_root", "cluster_id", "url"]);
        names.extend(rows.into_iter().filter(|row| row[0] == row[1]).map(|row| (row[2].clone(), row[3].clone())));
    }
    for event in json["largest"].as_array().unwrap() {
        assert_eq!(event["name"], names[&event["cluster_id"].to_string()], "{event}");
    }
    let first = run(&["show", store.to_str().unwrap(), "--changes", "--week", WEEKS[0]]);
    assert!(first.code == Some(1) && first.stderr.contains("is the first"), "{}", first.stderr);
}

#[test]
fn the_evolution_of_three_weeks_is_that_of_brute_force() {
    let weeks = Weeks::shipped("auto", "wave-bytes = 1", &[]);
    let store = weeks.store();
    let made = |flags: &[&str]| {
        let arguments = ["run", "jobs/evolution.toml", "-q", "--store", store.to_str().unwrap()];
        run_well(&[&arguments[..], flags].concat());
        tables(&store.join("evolution"))
    };
    let one = made(&["--workers", "1"]);
    assert_evolution_is_right(&store, 0..3);
    assert!(one == made(&["--workers", "2", "--processes", "2"]));
}

#[test]
fn weeks_are_added_in_order_and_only_the_last_can_be_replaced() {
    let weeks = Weeks::new("delta", "");
    let input = |week: &str| data(&format!("week-{week}"));
    weeks.add(WEEKS[0], &input(WEEKS[0]), &[]);
    // A gap of a week, and a crawl that is not the week's.
    weeks.add(WEEKS[2], &input(WEEKS[1]), &[]);
    let refused = |week: &str, flags: &[&str], wanted: &str| {
        let arguments = weeks.arguments(week, &input(WEEKS[2]), flags);
        let ran = run(&arguments.iter().map(String::as_str).collect::<Vec<_>>());
        assert!(ran.code == Some(1) && ran.stderr.contains(wanted), "{wanted}: {}", ran.stderr);
    };
    refused(WEEKS[1], &[], "2024-01-15 is older");
    refused(WEEKS[2], &[], "made from other input");
    refused(WEEKS[0], &["--replace"], "only the last week of");
    let untouched = tables(&weeks.week(WEEKS[0]));
    weeks.add(WEEKS[2], &input(WEEKS[2]), &["--replace"]);
    assert!(tables(&weeks.week(WEEKS[0])) == untouched);
    let fresh = Weeks::new("full", "");
    fresh.add(WEEKS[0], &input(WEEKS[0]), &[]);
    fresh.add(WEEKS[2], &input(WEEKS[2]), &[]);
    assert_same(&weeks, &fresh, "the last week replaced");
    assert!(!weeks.store().join("_nigh/work").exists());
    // The same again is nothing to do.
    let arguments = weeks.arguments(WEEKS[2], &input(WEEKS[2]), &[]);
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).filter(|argument| *argument != "-q").collect();
    let again = run_well(&arguments);
    assert!(again.stderr.contains("nothing to do"), "{}", again.stderr);
}

#[test]
fn one_job_begins_a_store_and_continues_it() {
    let weeks = Weeks::new("auto", "");
    let input = |week: &str| data(&format!("week-{week}"));
    for week in &WEEKS[..2] {
        weeks.add(week, &input(week), &[]);
    }
    for job in ["first", "later"] {
        let one = Weeks::new("auto", "");
        let job = if job == "first" { &one.first } else { &one.later };
        for week in &WEEKS[..2] {
            let (store, input) = (one.store(), input(week));
            let arguments = ["run", job.to_str().unwrap(), "-q", "--store", store.to_str().unwrap(), "--week", week];
            run_well(&[&arguments[..], &["--input", input.to_str().unwrap()]].concat());
        }
        // The first week of a `[weekly]` job has the numbers of the study, not those of this store.
        if job == &one.first {
            assert_same(&weeks, &one, "one job");
        } else {
            assert!(WEEKS[..2].iter().all(|week| has_week(&one.week(week))));
        }
    }
}

#[test]
fn jobs_that_do_not_fit_their_store_are_refused() {
    let weeks = Weeks::new("auto", "");
    let (store, input) = (weeks.store(), data("week-2024-01-15"));
    let run_job = |job: &Path, week: &str| {
        run(&[
            "run",
            job.to_str().unwrap(),
            "--store",
            store.to_str().unwrap(),
            "--week",
            week,
            "--input",
            input.to_str().unwrap(),
        ])
    };
    weeks.add(WEEKS[0], &data("week-2024-01-08"), &[]);
    let other = weeks.folder.path().join("other.toml");
    std::fs::write(&other, "[weekly.method]\nagreements = 3\nshards = 8\n").unwrap();
    let method = run_job(&other, WEEKS[1]);
    assert!(method.code == Some(1), "{}", method.stderr);
    assert!(method.stderr.contains("agreements = 2 in the store, agreements = 3 in the job"), "{}", method.stderr);
    std::fs::write(&other, "[weekly]\nmode = \"fast\"\n").unwrap();
    let mode = run_job(&other, WEEKS[1]);
    assert!(mode.code == Some(2), "{}", mode.stderr);
    assert!(mode.stderr.contains("`fast`") && mode.stderr.contains("`delta`"), "{}", mode.stderr);
}

#[test]
fn after_a_kill_at_any_moment_earlier_weeks_are_whole_and_a_rerun_ends_with_the_same_bytes() {
    let begun = Instant::now();
    let whole = Weeks::shipped("delta", "wave-bytes = 1", &["--workers", "2"]);
    let (week, took) = (WEEKS[2], begun.elapsed() / 3);
    let input = data(&format!("week-{week}"));
    let base = Weeks::new("delta", "wave-bytes = 1");
    WEEKS[..2].iter().for_each(|week| _ = base.add(week, &data(&format!("week-{week}")), &["--workers", "2"]));
    let mut unfinished = 0;
    // A new week, and the same week once more.
    for (round, processes) in (0..16).zip(["1", "2"].into_iter().cycle()) {
        let replaces = round >= 8;
        let flags: &[&str] = if replaces { &["--replace"] } else { &[] };
        let arguments = base.arguments(week, &input, &[flags, &["--workers", "2", "--processes", processes]].concat());
        let mut child = nigh(&arguments.iter().map(String::as_str).collect::<Vec<_>>())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        std::thread::sleep(took * (round % 8 + 1) / 7 + Duration::from_millis(3 * u64::from(round)));
        child.kill().unwrap();
        child.wait().unwrap();
        for earlier in &WEEKS[..2] {
            assert!(tables(&base.week(earlier)) == tables(&whole.week(earlier)), "round {round}: {earlier}");
        }
        if has_week(&base.week(week)) {
            assert!(tables(&base.week(week)) == tables(&whole.week(week)), "round {round}");
        }
        unfinished += u32::from(base.store().join("_nigh/work").exists());
        base.add(week, &input, flags);
        assert_same(&base, &whole, &format!("round {round}"));
        assert!(!base.store().join("_nigh/work").exists());
        if !replaces && round < 7 {
            // Back to two weeks.
            let manifest = base.store().join("_nigh/manifest.json");
            let mut json: serde_json::Value = serde_json::from_slice(&std::fs::read(&manifest).unwrap()).unwrap();
            json["weeks"].as_array_mut().unwrap().pop();
            std::fs::write(&manifest, json.to_string()).unwrap();
        }
    }
    eprintln!("{unfinished} of 16 runs were killed with something unfinished");
    // Kills are spread over the time that a run took before. If fewer hit one, the times are wrong
    // and nothing is tested.
    assert!(unfinished > 4);
}

#[test]
fn full_and_delta_give_the_same_tables_over_eleven_weeks_of_a_larger_crawl() {
    let wanted_by = "weekly runs over eleven weeks";
    if corpus("week-01", wanted_by).is_none() {
        return;
    }
    let stores = ["full", "delta"].map(|mode| Weeks::new(mode, ""));
    let mut known = BTreeSet::new();
    let mut last: Option<String> = None;
    for number in 1..=11 {
        let input = corpus(&format!("week-{number:02}"), wanted_by).unwrap().join("warc");
        let week = format!("2024-{number:02}-01");
        for (weeks, workers) in stores.iter().zip(["2", "1"]) {
            weeks.add(&week, &input, &["--workers", workers]);
        }
        let (full, delta) = (tables(&stores[0].week(&week)), tables(&stores[1].week(&week)));
        for (name, bytes) in &full {
            assert!(delta[name] == *bytes, "week {number}: {name}");
        }
        if let Some(last) = &last {
            assert_cluster_ids_and_changes_are_right(&stores[1], last, &week, &known);
        }
        known.extend(cluster_ids(&cluster_map(&stores[1].week(&week))));
        last = Some(week);
    }
    assert!(known.len() > 400, "{}", known.len());
}
