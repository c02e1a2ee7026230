//! `nigh show` of clusters, pages and hosts, and `nigh find`, against the tables of the week.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use nigh::state::Store;
use serde_json::Value;

use crate::program::{Made, booleans, features, longs, roots, rows_of, run, run_well, texts, vectors};

fn json(arguments: &[&str]) -> Value {
    serde_json::from_str(&run_well(arguments).stdout).unwrap()
}

/// The clusters of a level with at least two pages: root and pages.
fn clusters(week: &Path, level: &str) -> BTreeMap<i64, Vec<i64>> {
    let mut clusters: BTreeMap<i64, Vec<i64>> = BTreeMap::new();
    roots(week, level).into_iter().for_each(|(doc, root)| clusters.entry(root).or_default().push(doc));
    clusters.retain(|_, pages| pages.len() > 1);
    clusters
}

/// A column of text of the table of clusters, by document.
fn by_doc(week: &Path, column: &str) -> BTreeMap<i64, String> {
    longs(week, "clusters", "doc").into_iter().zip(texts(week, "clusters", column)).collect()
}

fn docs_of(listed: &Value) -> Vec<i64> {
    listed.as_array().unwrap().iter().map(|row| row["page"]["doc"].as_i64().unwrap()).collect()
}

#[test]
fn the_largest_clusters_are_those_of_the_table() {
    let made = Made::new(&[]);
    let (week, store) = (made.week(), made.store());
    let hosts = by_doc(&week, "host");
    for level in ["similar", "identical", "exact"] {
        let mut expected: Vec<(i64, Vec<i64>)> = clusters(&week, level).into_iter().collect();
        expected.sort_by_key(|(root, pages)| (Reverse(pages.len()), *root));
        for top in [1, 7, 10_000] {
            let listed =
                json(&["show", store.to_str().unwrap(), "--level", level, "--top", &top.to_string(), "--json"]);
            let listed = listed.as_array().unwrap();
            assert_eq!(listed.len(), expected.len().min(top));
            for (listed, (root, pages)) in listed.iter().zip(&expected) {
                let of: BTreeSet<&String> = pages.iter().map(|doc| &hosts[doc]).collect();
                assert_eq!(listed["root"], *root);
                assert_eq!(listed["pages"], pages.len());
                assert_eq!(listed["hosts"], of.len());
                assert_eq!(listed["cluster_id"].is_null(), level != "similar");
            }
        }
    }
}

#[test]
fn the_pages_of_a_cluster_and_of_a_host_are_those_of_the_table() {
    let made = Made::new(&[]);
    let (week, store) = (made.week(), made.store());
    let store = store.to_str().unwrap();
    let (urls, hosts) = (by_doc(&week, "url"), by_doc(&week, "host"));
    let docs = longs(&week, "clusters", "doc");
    let canonical: BTreeMap<i64, bool> = docs.iter().copied().zip(booleans(&week, "clusters", "canonical")).collect();
    let evidence: BTreeMap<String, Vec<String>> =
        rows_of(&week, "evidence", &["doc", "neighbour", "agreements", "found"])
            .into_iter()
            .map(|row| (row[0].clone(), row[1..].to_vec()))
            .collect();

    let rows = rows_of(&week, "clusters", &["doc", "cluster_id"]);
    let ids: BTreeMap<i64, String> = rows.into_iter().map(|row| (row[0].parse().unwrap(), row[1].clone())).collect();
    let mut with_evidence = 0;
    for (root, pages) in clusters(&week, "similar").into_iter().step_by(9) {
        let listed = json(&["show", store, "--cluster", &ids[&root], "--top", "1000", "--json"]);
        let mut expected = pages.clone();
        expected.sort_by_key(|doc| (!canonical[doc], *doc));
        assert_eq!(docs_of(&listed["listed"]), expected);
        assert_eq!(listed["pages"], pages.len());
        assert_eq!(listed["duplicates"], pages.len() - 1);
        for row in listed["listed"].as_array().unwrap() {
            let doc = row["page"]["doc"].as_i64().unwrap();
            assert_eq!(row["page"]["name"], urls[&doc]);
            match evidence.get(&doc.to_string()) {
                None => assert!(row["evidence"].is_null()),
                Some(of_table) => {
                    assert_eq!(row["evidence"]["neighbour"], urls[&of_table[0].parse().unwrap()]);
                    assert_eq!(row["evidence"]["agreements"].to_string(), of_table[1]);
                    assert_eq!(row["evidence"]["found"], of_table[2]);
                    with_evidence += 1;
                }
            }
        }
        let first = json(&["show", store, "--cluster", &ids[&root], "--top", "1", "--json"]);
        assert_eq!((docs_of(&first["listed"]), &first["pages"]), (expected[..1].to_vec(), &listed["pages"]));
    }
    assert!(with_evidence > 10, "{with_evidence}");
    let (root, pages) = clusters(&week, "exact").into_iter().nth(3).unwrap();
    let listed = json(&["show", store, "--level", "exact", "--cluster", &root.to_string(), "--json"]);
    assert_eq!(docs_of(&listed["listed"]).into_iter().collect::<BTreeSet<_>>(), pages.into_iter().collect());

    let all_hosts: BTreeSet<&String> = hosts.values().collect();
    let sizes = longs(&week, "clusters", "similar_size");
    let sizes: BTreeMap<i64, i64> = docs.iter().copied().zip(sizes).collect();
    for host in all_hosts.into_iter().step_by(5) {
        let listed = json(&["show", store, "--host", host, "--top", "12", "--json"]);
        let of_url = json(&["show", store, "--host", &format!("{}:80", host.to_uppercase()), "--top", "12", "--json"]);
        assert_eq!(of_url, listed);
        let mut pages: Vec<i64> = docs.iter().copied().filter(|doc| hosts[doc] == *host).collect();
        pages.sort_by_key(|doc| (-sizes[doc], !canonical[doc], *doc));
        assert_eq!(listed["pages"], pages.len());
        assert_eq!(listed["duplicates"], pages.iter().filter(|doc| !canonical[doc]).count());
        assert_eq!(docs_of(&listed["listed"]), pages[..pages.len().min(12)]);
    }
}

#[test]
fn what_is_known_of_a_page_is_in_the_tables() {
    let made = Made::new(&[]);
    let (week, store) = (made.week(), made.store());
    let store = store.to_str().unwrap();
    let (urls, similar) = (by_doc(&week, "url"), roots(&week, "similar"));
    let canonical: BTreeMap<i64, bool> =
        longs(&week, "clusters", "doc").into_iter().zip(booleans(&week, "clusters", "canonical")).collect();
    for (doc, url) in urls.iter().step_by(37) {
        let known = json(&["show", store, "--url", url, "--json"]);
        assert_eq!(known["known"]["page"]["doc"], *doc);
        let stays = similar.iter().find(|(other, root)| **root == similar[doc] && canonical[other]).unwrap();
        assert_eq!(known["known"]["canonical"], urls[stays.0], "{url}");
    }
    let second = crate::program::data("week-2024-01-15");
    let job = crate::program::shipped_job();
    let (job, second) = (job.to_str().unwrap(), second.to_str().unwrap());
    run_well(&["run", job, "-q", "--store", store, "--week", "2024-01-15", "--input", second]);
    let gone = rows_of(&made.store().join("week=2024-01-15"), "missing", &["url", "reason"]);
    assert!(!gone.is_empty());
    for row in gone.iter().step_by(10) {
        assert_eq!(json(&["show", store, "--url", &row[0], "--json"])["missing"], row[1]);
    }
    let unknown = run(&["show", store, "--url", "http://nobody.example/"]);
    assert!(unknown.code == Some(1) && unknown.stderr.contains("is not known"), "{}", unknown.stderr);
    let none = run(&["show", store, "--cluster", "12345678901"]);
    assert!(none.code == Some(1) && none.stderr.contains("--level similar"), "{}", none.stderr);
}

#[test]
fn a_summary_says_of_which_study_it_is_and_one_of_an_older_version_is_read() {
    let made = Made::new(&[]);
    let store = made.store();
    let root = store.to_str().unwrap();
    run_well(&["run", "jobs/mirrors.toml", "-q", "--store", root]);
    let shown = run(&["show", root, "--job", "mirrors"]);
    let summary = json(&["show", root, "--job", "mirrors", "--json"]);
    assert_eq!(summary["kind"], "mirrors");
    let commit = Store::at(&store).manifest().unwrap().unwrap().results["mirrors"];
    let path = store.join(format!("_nigh/mirrors/{commit:05}/summary.json"));
    let mut old: serde_json::Value = serde_json::from_slice(&std::fs::read(&path).unwrap()).unwrap();
    assert_eq!(old.as_object_mut().unwrap().remove("kind").unwrap(), "mirrors");
    std::fs::write(&path, old.to_string()).unwrap();
    assert_eq!(run(&["show", root, "--job", "mirrors"]).stdout, shown.stdout);
    assert_eq!(json(&["show", root, "--job", "mirrors", "--json"]), summary);
    let report = json(&["report", root, "--json"]);
    assert_eq!(report["studies"][0], summary);
}

#[test]
fn reports_fit_every_screen_and_lose_nothing_in_a_file() {
    use nigh::report;
    use nigh::sheet::Sheet;
    use nigh::studies::StudySummary;
    use nigh::summary::Summary;
    use unicode_width::UnicodeWidthStr as _;

    let made = Made::new(&[]);
    let store = made.store();
    let mut summary = Summary::read(&store.join("_nigh/week=2024-01-08/00001")).unwrap();
    summary.store = "s".into();
    let mut sheets: Vec<Sheet> = vec![report::summary(&summary)];
    for job in ["evolution", "mirrors", "collections", "mirrors-by-url", "overlap", "paragraphs"] {
        run_well(&["run", &format!("jobs/{job}.toml"), "-q", "--store", store.to_str().unwrap()]);
        let store = Store::at(&store);
        let commit = store.manifest().unwrap().unwrap().results[job];
        sheets.push(StudySummary::read(&store, job, commit).unwrap().report(Path::new("s")));
    }
    for sheet in sheets {
        for width in [60, 80, 132] {
            for line in sheet.lines(Some(width)) {
                assert!(line.width() <= width, "{width}: {line}");
            }
        }
        assert!(!sheet.to_string().contains('…'));
    }
}

/// The documents that share at least `least` supershingles with one, as `nigh find` ranks them:
/// document, equal features and shared supershingles.
fn nearest(week: &Path, of: i64, least: usize) -> Vec<(i64, usize, usize)> {
    let (vectors, features) = (vectors(week), features(week));
    let equal = |a: &[u64], b: &[u64]| a.iter().zip(b).filter(|(a, b)| a == b).count();
    let others = vectors.keys().filter(|doc| **doc != of);
    let mut near: Vec<(i64, usize, usize)> = others
        .map(|doc| {
            let same = features[doc].iter().zip(&features[&of]).filter(|(a, b)| a == b).count();
            (*doc, same, equal(&vectors[doc], &vectors[&of]))
        })
        .filter(|(_, same, shared)| *shared >= least && *same > 0)
        .collect();
    near.sort_by_key(|(doc, same, shared)| (Reverse((*same, *shared)), *doc));
    near
}

fn found(arguments: &[&str]) -> (Value, Vec<(i64, usize, usize)>) {
    let said = json(arguments);
    let number = |row: &Value, name: &str| row[name].as_u64().unwrap() as usize;
    let rows = said["found"].as_array().unwrap().iter();
    let rows = rows
        .map(|row| (row["page"]["doc"].as_i64().unwrap(), number(row, "features"), number(row, "agreements")))
        .collect();
    (said["way"].clone(), rows)
}

#[test]
fn the_nearest_documents_are_those_of_brute_force() {
    let made = Made::new(&[]);
    let (week, store) = (made.week(), made.store());
    let store = store.to_str().unwrap();
    let urls = by_doc(&week, "url");
    let docs: Vec<i64> = vectors(&week).into_keys().step_by(40).collect();
    for way in ["supershingles", "index"] {
        let mut some = 0;
        for doc in &docs {
            let near = nearest(&week, *doc, 1);
            let (by, found) = found(&["find", store, "--url", &urls[doc], "--top", "30", "--json"]);
            assert_eq!((by, &found), (way.into(), &near[..near.len().min(30)].to_vec()));
            some += found.len();
        }
        assert!(some > 20, "{some}");
        if way != "index" {
            run_well(&["index", store]);
        }
    }
    // An index of which a part is lost is no index, and is made again.
    let parts = walkdir::WalkDir::new(made.store().join("_nigh/postings")).into_iter().map(|entry| entry.unwrap());
    let parts = parts.filter(|entry| entry.file_name().to_str().unwrap().starts_with("part"));
    parts.for_each(|part| std::fs::remove_file(part.path()).unwrap());
    let near = nearest(&week, docs[0], 1);
    let arguments = ["find", store, "--url", &urls[&docs[0]], "--top", "30", "--json"];
    for way in ["supershingles", "index"] {
        assert_eq!(found(&arguments), (way.into(), near[..near.len().min(30)].to_vec()));
        run_well(&["index", store]);
    }
    for doc in docs.iter().step_by(3) {
        let near = nearest(&week, *doc, 0);
        let (way, found) = found(&["find", store, "--url", &urls[doc], "--all", "--top", "8", "--json"]);
        assert_eq!((way, &found), ("features".into(), &near[..near.len().min(8)].to_vec()));
        // The page itself is none of those that it is compared with.
        let said = json(&["find", store, "--url", &urls[doc], "--all", "--json"]);
        assert_eq!(said["candidates"], vectors(&week).len() - 1, "{said}");
    }

    // The next week adds to the index; without deleted pages nothing else changes it.
    let folder = tempfile::tempdir().unwrap();
    let job = crate::program::job(folder.path(), "[weekly]\nmode = \"delta\"\n");
    let (second, date) = (crate::program::data("week-2024-01-15"), "2024-01-15");
    let (job, second) = (job.to_str().unwrap(), second.to_str().unwrap());
    run_well(&["run", job, "-q", "--store", store, "--week", date, "--input", second]);
    let week = made.store().join(format!("week={date}"));
    let urls = by_doc(&week, "url");
    let docs: Vec<i64> = vectors(&week).into_keys().step_by(40).collect();
    for doc in docs {
        let near = nearest(&week, doc, 1);
        let (way, found) = found(&["find", store, "--url", &urls[&doc], "--top", "30", "--json"]);
        assert_eq!((way, &found), ("index".into(), &near[..near.len().min(30)].to_vec()));
        // The index has pages, too, that are gone or others since.
        let said = json(&["find", store, "--url", &urls[&doc], "--json"]);
        assert_eq!(said["candidates"], near.len(), "{said}");
    }
}

#[test]
fn a_text_is_found_again() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    let text = |n: usize| (0..80).map(|place| format!("d{n}w{place}")).collect::<Vec<_>>().join(" ");
    let lines: String =
        (0..50).map(|n| serde_json::json!({"id": format!("n{n}"), "text": text(n)}).to_string() + "\n").collect();
    std::fs::write(path("texts.jsonl"), lines).unwrap();
    let text_job = "[cluster]\n[cluster.read.columns]\nid = \"id\"\n[cluster.method]\nshards = 4\n";
    let job = crate::program::job(folder.path(), text_job);
    let store = path("store");
    let inputs = path("texts.jsonl");
    run_well(&["run", job.to_str().unwrap(), "-q", "--week", "2024-01-08", "--store", &store, "--input", &inputs]);
    std::fs::write(path("query.txt"), text(7) + " and more").unwrap();
    std::fs::write(path("query.html"), format!("<title>x</title><p>{}</p><!-- {} -->", text(9), text(3))).unwrap();
    for (name, id) in [("query.txt", "n7"), ("query.html", "n9")] {
        let said = json(&["find", &store, "--text", &path(name), "--json"]);
        assert_eq!(said["found"][0]["page"]["name"], id, "{said}");
    }
    // Texts are cut as the run has cut them.
    let cut_job = text_job.replace("[cluster]\n", "[cluster]\n[cluster.read]\nmax-page-bytes = 200\n");
    let (job, cut) = (crate::program::job(folder.path(), &cut_job), path("cut"));
    run_well(&["run", job.to_str().unwrap(), "-q", "--week", "2024-01-08", "--store", &cut, "--input", &inputs]);
    let said = json(&["find", &cut, "--text", &path("query.txt"), "--json"]);
    assert!(said["found"][0]["page"]["name"] == "n7" && said["found"][0]["similarity"] == 1.0, "{said}");
    std::fs::write(path("empty.txt"), " \n").unwrap();
    for (name, message) in [("empty.txt", "has no word"), ("nothing.txt", "cannot read")] {
        let failed = run(&["find", &store, "--text", &path(name)]);
        assert!(failed.code == Some(1) && failed.stderr.contains(message), "{}", failed.stderr);
    }
    assert_eq!(run(&["find", &store]).code, Some(2), "a text or a page must be given");
}

/// With 30 features the sketches are read in a scan; documents of several waves and of a batch
/// before interleave in a shard.
#[test]
fn sketches_of_any_number_of_features_are_found_in_weeks_of_several_waves() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    let text = |n: usize| (0..60).map(|place| format!("d{}w{place}", n % 10)).collect::<Vec<_>>().join(" ");
    let write = |name: &str, numbers: std::ops::Range<usize>| {
        let line =
            |n| serde_json::json!({"id": format!("n{n}"), "text": text(n) + &" more".repeat(n / 10)}).to_string();
        std::fs::write(path(name), numbers.map(|n| line(n) + "\n").collect::<String>()).unwrap();
    };
    write("a.jsonl", 0..40);
    write("b.jsonl", 40..80);
    write("c.jsonl", 30..50);
    let method = "[cluster.method]\nshards = 2\nfeatures = 30\nsupershingles = 6\n";
    let text = format!("[cluster]\nwave-bytes = 1\nabsent = \"keep\"\n[cluster.read.columns]\nid = \"id\"\n{method}");
    let job = crate::program::job(folder.path(), &text);
    let (job, store) = (job.to_str().unwrap(), path("store"));
    let run_of = |week: &str, inputs: &[&str]| {
        let mut arguments = vec!["run", job, "-q", "--week", week, "--store", &store, "--input"];
        arguments.extend(inputs);
        run_well(&arguments);
    };
    run_of("2024-01-08", &[&path("a.jsonl"), &path("b.jsonl")]);
    run_of("2024-01-15", &[&path("c.jsonl")]);
    for date in ["2024-01-08", "2024-01-15"] {
        let week = Path::new(&store).join(format!("week={date}"));
        let ids: BTreeMap<i64, String> =
            longs(&week, "documents", "doc").into_iter().zip(texts(&week, "documents", "id")).collect();
        assert_eq!(ids.len(), 80);
        for (doc, id) in ids.iter().step_by(7) {
            let near = nearest(&week, *doc, 1);
            let (_, found) = found(&["find", &store, "--url", id, "--week", date, "--json"]);
            assert_eq!(found, near[..near.len().min(20)], "{id}");
        }
        let said = json(&["why", &store, "n31", "n41", "--week", date, "--json"]);
        assert!(said["sketches"]["features"].as_u64().unwrap() > 20 && said["together"][0][1] == true, "{said}");
    }
}
