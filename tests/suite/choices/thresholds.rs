//! Exports of clusters at another similarity than that of the run, and of a number of records:
//! against all pairs, compared one by one.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use serde_json::Value;

use crate::choices::chosen::{DATE, RecordsByRoot, clusters};
use crate::program::{job, run, run_well};

/// The first of two batches.
const FIRST: &str = "2024-01-01";
const FAMILIES: usize = 9;
const RECORDS: usize = 110;

/// Something of record `n` that looks random.
fn random(n: usize, salt: usize) -> usize {
    (n * 2_654_435_761 + salt * 40_503).wrapping_mul(2_246_822_519) >> 13
}

/// The text of record `n`: that of its family with some words changed. Some are equal word for
/// word, some byte for byte, and some are of no family.
fn text(n: usize) -> String {
    let family = n % (FAMILIES + 2);
    let family = if family < FAMILIES { family } else { 1000 + n };
    let (changes, end) = match random(n, 0) % 8 {
        0 => (0, ""),
        1 => (0, "."),
        changes => (changes, ""),
    };
    let changed: BTreeMap<usize, usize> =
        (0..changes).map(|of| (random(n, 10 + of) % 90, random(n, 20 + of) % 3)).collect();
    let word = |place: usize| match changed.get(&place) {
        Some(other) => format!("x{family}y{place}z{other}"),
        None => format!("w{family}v{place}"),
    };
    (0..90).map(word).collect::<Vec<_>>().join(" ") + end
}

fn source(n: usize) -> Option<&'static str> {
    [Some("a"), Some("b"), None][random(n, 3) % 3]
}

fn line(n: usize) -> String {
    serde_json::json!({"id": n.to_string(), "text": text(n), "source": source(n)}).to_string() + "\n"
}

/// The shingles of a record: five words that follow each other, around the end.
fn shingles(n: usize) -> BTreeSet<Vec<String>> {
    let text = text(n);
    let words: Vec<String> = text.trim_end_matches('.').split(' ').map(str::to_owned).collect();
    (0..words.len()).map(|first| (0..5).map(|at| words[(first + at) % words.len()].clone()).collect()).collect()
}

/// The similarities of all pairs of records.
fn similarities() -> BTreeMap<[usize; 2], f64> {
    let all: Vec<_> = (0..RECORDS).map(shingles).collect();
    let mut pairs = BTreeMap::new();
    for a in 0..RECORDS {
        for b in a + 1..RECORDS {
            let shared = all[a].intersection(&all[b]).count();
            if shared > 0 {
                pairs.insert([a, b], shared as f64 / (all[a].len() + all[b].len() - shared) as f64);
            }
        }
    }
    pairs
}

/// The parts of clusters at a threshold.
fn parts(clusters: &RecordsByRoot, pairs: &BTreeMap<[usize; 2], f64>, least: f64) -> Vec<BTreeSet<usize>> {
    let mut parts: Vec<BTreeSet<usize>> = Vec::new();
    for cluster in clusters.values() {
        let mut of_cluster: Vec<BTreeSet<usize>> = cluster.iter().map(|n| BTreeSet::from([*n])).collect();
        for ([a, b], _) in
            pairs.iter().filter(|([a, b], of)| **of >= least && cluster.contains(a) && cluster.contains(b))
        {
            let part_of = |n| of_cluster.iter().position(|part: &BTreeSet<usize>| part.contains(n)).unwrap();
            let (first, second) = (part_of(a).min(part_of(b)), part_of(a).max(part_of(b)));
            if first != second {
                let part = of_cluster.remove(second);
                of_cluster[first].extend(part);
            }
        }
        parts.extend(of_cluster);
    }
    parts
}

/// The first records that stay, by their numbers: so many of each source, or of each part.
fn kept(parts: &[BTreeSet<usize>], most: usize, by_source: bool, since: usize) -> BTreeSet<usize> {
    let mut kept = BTreeSet::new();
    for part in parts {
        let mut before: BTreeMap<Option<&str>, usize> = BTreeMap::new();
        for n in part {
            let number = before.entry(source(*n).filter(|_| by_source)).or_default();
            if *number < most || part.len() == 1 {
                kept.insert(*n);
            }
            *number += 1;
        }
    }
    kept.retain(|n| *n >= since);
    kept
}

fn job_of(folder: &Path) -> PathBuf {
    job_with(folder, "similarity = 0.6\nverify = \"exact\"\n")
}

fn job_with(folder: &Path, how: &str) -> PathBuf {
    let method = format!("[cluster.method]\nshards = 4\n{how}");
    job(folder, &format!("[cluster]\n[cluster.read.columns]\nid = \"id\"\n{method}"))
}

/// A store of all records in two files.
fn store(folder: &Path) -> PathBuf {
    store_with(folder, &job_of(folder))
}

fn store_with(folder: &Path, job: &Path) -> PathBuf {
    let store = folder.join("store");
    for (name, range) in [("a.jsonl", 0..60), ("b.jsonl", 60..RECORDS)] {
        std::fs::write(folder.join(name), range.map(line).collect::<String>()).unwrap();
    }
    let input = folder.join("*.jsonl");
    let [job, store_name, input] = [job, &store, &input].map(|path| path.to_str().unwrap());
    let how = ["--week", DATE, "--workers", "2", "--processes", "2"];
    run_well(&[&["run", job, "-q", "--store", store_name, "--input", input], &how[..]].concat());
    store
}

/// A store of two batches, a file each.
fn batches(folder: &Path, job: &Path) -> PathBuf {
    let store = folder.join("batches");
    for (date, file) in [(FIRST, "a.jsonl"), (DATE, "b.jsonl")] {
        let [store, job, file] = [&store, job, &folder.join(file)].map(|path| path.to_str().unwrap().to_owned());
        run_well(&["add", &store, &job, "-q", "--week", date, "--input", &file]);
    }
    store
}

/// The records that an export lists, and what it prints: `printed_similarity` is the text of the
/// similarity, as `serde_json` does not read each number as it is.
fn listed(folder: &Path, store: &Path, flags: &[&str]) -> (BTreeSet<usize>, Value) {
    let list = folder.join("list.txt");
    let arguments = ["export", store.to_str().unwrap(), "--json", "--list", list.to_str().unwrap(), "--what", "kept"];
    let ran = run_well(&[&arguments[..], flags].concat());
    let ids = std::fs::read_to_string(&list).unwrap().lines().map(|id| id.parse().unwrap()).collect();
    let mut printed: Value = serde_json::from_str(&ran.stdout).unwrap();
    if let Some((_, text)) = ran.stdout.split_once("\"similarity\":") {
        let text = text.split([',', '}', '\n']).next().unwrap().trim();
        printed["printed_similarity"] = text.into();
    }
    (ids, printed)
}

#[test]
fn clusters_at_a_threshold_are_those_of_all_pairs() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let (store, pairs) = (store(folder), similarities());
    let (clusters, ..) = clusters(&store, DATE);
    let mut rows = BTreeSet::new();
    for least in ["0.6", "0.65", "0.7", "0.75", "0.8", "0.85", "0.9", "0.95", "1"] {
        let parts = parts(&clusters, &pairs, least.parse().unwrap());
        let (ids, printed) = listed(folder, &store, &["--at-similarity", least]);
        assert_eq!(ids, kept(&parts, 1, false, 0), "{least}");
        let several = parts.iter().filter(|part| part.len() > 1).count();
        assert_eq!(printed["threshold"]["clusters"], several, "{printed}");
        rows.insert(ids.len());
        let flags = ["--at-similarity", least, "--each", "source", "--most", "2"];
        assert_eq!(listed(folder, &store, &flags).0, kept(&parts, 2, true, 0), "{least}");
    }
    assert!(rows.len() > 4, "{rows:?}");
    // The run's own similarity gives what the run has.
    assert_eq!(listed(folder, &store, &["--at-similarity", "0.6"]).0, listed(folder, &store, &[]).0);

    // The same bytes for any number of workers, with the sizes of the clusters.
    let parts = parts(&clusters, &pairs, 0.8);
    let mut first = None;
    for workers in ["1", "2", "4"] {
        let out = folder.join(format!("out-{workers}"));
        let flags = ["--at-similarity", "0.8", "--what", "annotated", "--card", "--workers", workers];
        run_well(&[&["export", store.to_str().unwrap(), "--out", out.to_str().unwrap()], &flags[..]].concat());
        let texts = ["a.jsonl", "b.jsonl", "README.md"].map(|name| std::fs::read_to_string(out.join(name)).unwrap());
        assert!(*first.get_or_insert_with(|| texts.clone()) == texts, "{workers} workers");
        let mut of_clusters: BTreeMap<u64, BTreeSet<usize>> = BTreeMap::new();
        for row in texts[..2].iter().flat_map(|text| text.lines()) {
            let row: Value = serde_json::from_str(row).unwrap();
            let n: usize = row["id"].as_str().unwrap().parse().unwrap();
            let part = parts.iter().find(|part| part.contains(&n)).unwrap();
            assert_eq!(row["nigh_size"], part.len(), "{row}");
            assert_eq!(row["nigh_stays"].as_bool().unwrap(), part.first() == Some(&n), "{row}");
            of_clusters.entry(row["nigh_cluster"].as_u64().unwrap()).or_default().insert(n);
        }
        assert_eq!(of_clusters.values().collect::<BTreeSet<_>>(), parts.iter().collect());
        let several = parts.iter().filter(|part| part.len() > 1);
        let documents = several.clone().map(BTreeSet::len).sum::<usize>();
        let row = format!("| clusters of two and more | {}, of {documents} records |", several.count());
        assert!(texts[2].contains(&row) && !texts[2].contains("Accuracy"), "{}", texts[2]);
        assert!(texts[2].contains("| pairs that make clusters | those with a similarity of 0.8 or more |"));
    }
}

/// The largest threshold at which no more than `wanted` stay, of all that change something.
fn slow_choice(rows: &BTreeMap<u64, usize>, all: usize, wanted: usize) -> Option<(Option<f64>, usize)> {
    if all <= wanted {
        return Some((None, all));
    }
    let similarity = |bits: u64| Some(f64::from_bits(bits));
    rows.iter().rev().find(|(_, rows)| **rows <= wanted).map(|(bits, rows)| (similarity(*bits), *rows))
}

#[test]
fn as_many_records_stay_as_are_wanted_or_the_next_fewer() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let pairs = similarities();
    let one_run = store(folder);
    // Two batches have the clusters of one run.
    let batches = batches(folder, &job_of(folder));
    for (store, flags, most, by_source, since) in [
        (&one_run, &[][..], 1, false, 0),
        (&batches, &[], 1, false, 0),
        (&batches, &["--since", DATE], 1, false, 60),
        (&batches, &["--since", DATE, "--each", "source"], 1, true, 60),
        (&one_run, &["--most", "2"], 2, false, 0),
        (&one_run, &["--most", "0"], 0, false, 0),
    ] {
        let (clusters, ..) = clusters(store, DATE);
        let at = |least: f64| kept(&parts(&clusters, &pairs, least), most, by_source, since);
        let all = RECORDS - since;
        // How many stay at each similarity of a pair; not at those that change nothing.
        let thresholds: BTreeSet<u64> = pairs.values().filter(|of| **of >= 0.6).map(|of| of.to_bits()).collect();
        let (mut rows, mut before) = (BTreeMap::new(), all);
        for bits in thresholds.into_iter().rev() {
            let staying = at(f64::from_bits(bits)).len();
            if staying < before {
                rows.insert(bits, staying);
                before = staying;
            }
        }
        let least = before;
        assert!(rows.len() > 3 && least + 8 < all, "{flags:?}: {rows:?}");
        for wanted in [least, least + 1, least + 5, (least + all) / 2, all - 1, all, all + 7] {
            let name = wanted.to_string();
            let (ids, printed) = listed(folder, store, &[&["--keep-rows", &name], flags].concat());
            let (similarity, staying) = slow_choice(&rows, all, wanted).unwrap();
            let exact = printed["printed_similarity"].as_str().unwrap();
            let printed = &printed["threshold"];
            let of_rows = &printed["keep_rows"];
            assert_eq!(
                (of_rows["wanted"].as_u64(), of_rows["rows"].as_u64()),
                (Some(wanted as u64), Some(staying as u64))
            );
            assert_eq!(ids.len(), staying, "{flags:?}, {wanted}");
            assert_eq!(exact.parse().ok(), similarity, "{printed}");
            assert_eq!(ids, at(similarity.unwrap_or(2.0)), "{flags:?}, {wanted}");
            let below = similarity.map_or(u64::MAX, f64::to_bits);
            let below = rows.range(..below).next_back().map(|(_, rows)| *rows as u64);
            assert_eq!(of_rows["below"]["rows"].as_u64(), below, "{printed}");
            let above = similarity.map(|at| {
                let above = rows.range(at.to_bits() + 1..).next().map(|(_, rows)| *rows as u64);
                above.unwrap_or(all as u64)
            });
            assert_eq!(of_rows["above"]["rows"].as_u64(), above, "{printed}");
            if similarity.is_some() {
                // The threshold that is printed gives the same records.
                assert_eq!(listed(folder, store, &[&["--at-similarity", exact], flags].concat()).0, ids);
            }
        }
        let list = folder.join("too-few.txt");
        let arguments = ["export", store.to_str().unwrap(), "--list", list.to_str().unwrap(), "--keep-rows"];
        for fewer in [least - 1, 0] {
            let too_few = run(&[&arguments[..], &[&fewer.to_string()], flags].concat());
            let wanted = format!("at least {least} records stay, and {fewer} are wanted");
            assert!(too_few.code == Some(1) && too_few.stderr.contains(&wanted), "{}", too_few.stderr);
            assert!(too_few.stderr.contains("A run with a smaller --similarity"), "{}", too_few.stderr);
        }
    }
}

#[test]
fn rows_of_parquet_and_pages_are_compared_as_lines_are() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let (store, pairs) = (store(folder), similarities());
    let (of_lines, ..) = clusters(&store, DATE);
    let expected = kept(&parts(&of_lines, &pairs, 0.8), 1, false, 0);

    // The records as Parquet, exported as shards of Parquet.
    let rows = folder.join("rows");
    let all = ["--most", "4294967295", "--format", "parquet", "--shards", "1"];
    run_well(&[&["export", store.to_str().unwrap(), "--out", rows.to_str().unwrap()], &all[..]].concat());
    let [job, of_rows, input] = [job_of(folder), folder.join("of-rows"), rows.join("*.parquet")];
    let [job, of_rows, input] = [&job, &of_rows, &input].map(|path| path.to_str().unwrap());
    run_well(&["run", job, "-q", "--week", DATE, "--store", of_rows, "--input", input]);
    let out = folder.join("parquet-out");
    let flags = ["--keep-rows", &expected.len().to_string(), "--json"];
    let ran = run_well(&[&["export", of_rows, "--out", out.to_str().unwrap()], &flags[..]].concat());
    let printed: Value = serde_json::from_str(&ran.stdout).unwrap();
    assert_eq!(printed["written"], expected.len(), "{printed}");
    let again = ["--at-similarity", "0.8"];
    assert_eq!(listed(folder, Path::new(of_rows), &again).0, expected);

    // The records as pages.
    let pages = folder.join("pages.warc");
    let page = |n: usize| {
        let body = format!("HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n\r\n<p>{}</p>", text(n));
        let head = format!(
            "WARC/1.0\r\nWARC-Type: response\r\nWARC-Record-ID: <urn:x:{n}>\r\nWARC-Date: 2024-01-02T03:04:05Z\r\n\
             WARC-Target-URI: http://a.example/{n}\r\nContent-Type: application/http\r\nContent-Length: {}\r\n\r\n",
            body.len()
        );
        head + &body + "\r\n\r\n"
    };
    std::fs::write(&pages, (0..RECORDS).map(page).collect::<String>()).unwrap();
    let of_pages = folder.join("of-pages");
    let flags = ["--similarity", "0.6", "--verify", "exact", "--week", DATE];
    let [of_pages, pages] = [&of_pages, &pages].map(|path| path.to_str().unwrap());
    run_well(&[&["run", "-q", "--store", of_pages, "--input", pages], &flags[..]].concat());
    let list = folder.join("pages.txt");
    let flags = ["--list", list.to_str().unwrap(), "--what", "kept", "--at-similarity", "0.8"];
    run_well(&[&["export", of_pages], &flags[..]].concat());
    let number = |url: &str| url.rsplit('/').next().unwrap().parse::<usize>().unwrap();
    let ids: BTreeSet<usize> = std::fs::read_to_string(&list).unwrap().lines().map(number).collect();
    assert_eq!(ids, expected);
}

#[test]
fn a_threshold_that_cannot_be_taken_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let store = store(folder);
    let out = folder.join("out");
    let refused = |flags: &[&str], wanted: &str| {
        let ran = run(&[&["export", store.to_str().unwrap(), "--out", out.to_str().unwrap()], flags].concat());
        assert!(ran.code == Some(2) && ran.stderr.contains(wanted), "{flags:?}: {}", ran.stderr);
        assert!(!out.exists());
    };
    refused(&["--at-similarity", "0.5"], "the least of the run is 0.6. A run with --similarity 0.5 finds pairs");
    refused(&["--at-similarity", "0.4"], "the least of the run is 0.6, and that of any run is 0.5");
    refused(&["--at-similarity", "1.5"], "is not a share");
    for flags in [["--at-similarity", "0.8"], ["--keep-rows", "50"]] {
        refused(&[&flags[..], &["--drop-passages"]].concat(), "the passages are those of others");
    }
    refused(&["--at-similarity", "0.8", "--keep-rows", "7"], "cannot be used with");
    refused(&["--at-similarity", "0.8", "--level", "exact"], "do not go with --level identical, --level exact");
    refused(&["--keep-rows", "7", "--level", "paragraph"], "Give the similarity that it finds to --at-similarity");
    // What was read again must be there.
    std::fs::write(folder.join("a.jsonl"), (1..60).map(line).collect::<String>()).unwrap();
    let ran = run(&["export", store.to_str().unwrap(), "--out", out.to_str().unwrap(), "--keep-rows", "50"]);
    assert!(ran.code == Some(1) && ran.stderr.contains("a.jsonl has changed since"), "{}", ran.stderr);
    // No folder is left that the command made; one that was there stays.
    assert!(!out.exists());
    std::fs::create_dir(&out).unwrap();
    let again = run(&["export", store.to_str().unwrap(), "--out", out.to_str().unwrap(), "--keep-rows", "50"]);
    assert!(again.code == Some(1) && std::fs::read_dir(&out).unwrap().next().is_none());
}

#[test]
fn an_export_at_a_threshold_goes_on_where_it_was_stopped() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let store = store(folder);
    // One that serde_json reads as its neighbour.
    let number = "0.9308755760368663";
    assert_ne!(serde_json::from_str::<f64>(number).unwrap().to_string(), number);
    let paragraphs = ["--level", "paragraph", "--overlap"];
    for (name, flags) in [("at", &["--at-similarity"][..]), ("overlap", &paragraphs)] {
        let out = folder.join(name);
        let arguments =
            [&["export", store.to_str().unwrap(), "--out", out.to_str().unwrap()], flags, &[number]].concat();
        run_well(&arguments);
        let file = out.join("b.jsonl");
        let text = std::fs::read_to_string(&file).unwrap();
        std::fs::remove_file(&file).unwrap();
        run_well(&arguments);
        assert_eq!(std::fs::read_to_string(&file).unwrap(), text);
        let other = run(&[&arguments[..arguments.len() - 1], &["0.9308755760368664"]].concat());
        assert!(other.code == Some(2) && other.stderr.contains("files of another export"), "{}", other.stderr);
    }
}

#[test]
fn pairs_below_the_similarity_of_an_unverified_run_count() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let pairs = similarities();
    for (name, how) in [("none", "similarity = 0.8\n"), ("estimate", "similarity = 0.8\nverify = \"estimate\"\n")] {
        let folder = folder.join(name);
        std::fs::create_dir(&folder).unwrap();
        let store = store_with(&folder, &job_with(&folder, how));
        let (clusters, ..) = clusters(&store, DATE);
        let at = |least: f64| kept(&parts(&clusters, &pairs, least), 1, false, 0);
        for least in ["0.5", "0.7", "0.8", "0.9"] {
            let (ids, _) = listed(&folder, &store, &["--at-similarity", least]);
            assert_eq!(ids, at(least.parse().unwrap()), "{name}, {least}");
        }
        let least = at(0.5).len();
        assert!(least < at(0.8).len(), "{name}: no cluster has a pair below its similarity");
        let (ids, printed) = listed(&folder, &store, &["--keep-rows", &least.to_string()]);
        assert_eq!(ids, at(0.5), "{printed}");
        assert!(printed["threshold"]["similarity"].as_f64().unwrap() < 0.8, "{printed}");
        let list = folder.join("too-few.txt");
        let arguments = ["export", store.to_str().unwrap(), "--list", list.to_str().unwrap()];
        let too_few = run(&[&arguments[..], &["--keep-rows", "0"]].concat());
        let wanted = "pairs that are less similar than 0.5 are not counted";
        assert!(too_few.code == Some(1) && too_few.stderr.contains(wanted), "{}", too_few.stderr);
        assert!(too_few.stderr.contains(&format!("at least {least} records stay, and 0 are wanted")));
        let refused = run(&[&arguments[..], &["--at-similarity", "0.49"]].concat());
        assert!(
            refused.code == Some(2) && refused.stderr.contains("that can be taken here is 0.5"),
            "{}",
            refused.stderr
        );
    }
}

#[test]
fn an_older_week_has_the_least_threshold_of_its_own_run() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    store(folder);
    let store = batches(folder, &job_with(folder, "similarity = 0.8\nverify = \"exact\"\n"));
    run_well(&["verify", store.to_str().unwrap(), "-q", "--similarity", "0.6"]);
    let pairs = similarities();
    for (date, least) in [(FIRST, "0.8"), (DATE, "0.6")] {
        let (clusters, ..) = clusters(&store, date);
        for similarity in [least, "0.85"] {
            let (ids, _) = listed(folder, &store, &["--week", date, "--at-similarity", similarity]);
            let mut expected = kept(&parts(&clusters, &pairs, similarity.parse().unwrap()), 1, false, 0);
            expected.retain(|n| date == DATE || *n < 60);
            assert_eq!(ids, expected, "{date}, {similarity}");
        }
    }
    let list = folder.join("refused.txt");
    let arguments = ["export", store.to_str().unwrap(), "--list", list.to_str().unwrap(), "--week", FIRST];
    let refused = run(&[&arguments[..], &["--at-similarity", "0.6"]].concat());
    assert!(refused.code == Some(2) && refused.stderr.contains("the least of the run is 0.8"), "{}", refused.stderr);
    let too_few = run(&[&arguments[..], &["--keep-rows", "0"]].concat());
    assert!(too_few.code == Some(1) && too_few.stderr.contains("less similar than 0.8"), "{}", too_few.stderr);
}

#[test]
fn documents_without_words_stay_and_all_may_stay() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let job = job_of(folder);
    let texts = ["", "", "...", "...", "?!", "a few words that are there twice", "a few words that are there twice."];
    let line = |(n, text): (usize, &&str)| serde_json::json!({"id": n.to_string(), "text": text}).to_string() + "\n";
    let input = folder.join("a.jsonl");
    std::fs::write(&input, texts.iter().enumerate().map(line).collect::<String>()).unwrap();
    let store = folder.join("store");
    let [job, store_name, input] = [&job, &store, &input].map(|path| path.to_str().unwrap());
    run_well(&["run", job, "-q", "--week", DATE, "--store", store_name, "--input", input]);
    let (plain, _) = listed(folder, &store, &[]);
    assert!(plain.contains(&5) && !plain.contains(&6), "{plain:?}");
    for least in ["0.6", "1"] {
        assert_eq!(listed(folder, &store, &["--at-similarity", least]).0, plain, "{least}");
    }
    assert_eq!(listed(folder, &store, &["--keep-rows", &plain.len().to_string()]).0, plain);

    let out = folder.join("all");
    run_well(&["export", store_name, "--out", out.to_str().unwrap(), "--card", "--keep-rows", "7"]);
    let card = std::fs::read_to_string(out.join("README.md")).unwrap();
    assert!(card.contains("\n# Records with near-duplicates, as they are\n"), "{card}");
    assert!(card.contains("| records here | 7 |\n| records left out | 0 |"), "{card}");
}
