//! What a week keeps besides its clusters: chunks of pages, redirects, and failed downloads by
//! host.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use arrow_array::{BinaryArray, Int32Array};
use nigh::config::{Method, Reading};
use nigh::features::{Fingerprinter, PageChunks};
use nigh::readers::{self, Body, Item};
use nigh::text::canonical;

use crate::program::{
    Made, assert_is_whole, bytes, copy_folder, data, each, job, longs, records, run, run_well, shipped_job, tables,
    texts, week,
};
use crate::weeks::missing::{content, shipped_weekly_job, shipped_weeks, side_file, statuses};

const WEEKS: [&str; 3] = ["2024-01-08", "2024-01-15", "2024-01-22"];

fn binaries(week: &Path, table: &str, column: &str) -> Vec<Vec<u8>> {
    let mut all = Vec::new();
    each(week, table, column, |values: &BinaryArray| all.extend(values.iter().map(|value| value.unwrap().to_vec())));
    all
}

/// The rows of `redirects`.
fn redirects(week: &Path) -> BTreeSet<(String, String, i32)> {
    let mut status = Vec::new();
    each(week, "redirects", "status", |values: &Int32Array| status.extend(values.values()));
    let rows = texts(week, "redirects", "url").into_iter().zip(texts(week, "redirects", "target_url")).zip(status);
    rows.map(|((url, target), status)| (url, target, status)).collect()
}

/// The rows of `host-failures`.
fn host_failures(week: &Path) -> BTreeMap<(String, String), i64> {
    let keys = texts(week, "host-failures", "host").into_iter().zip(texts(week, "host-failures", "reason"));
    let rows: Vec<((String, String), i64)> = keys.zip(longs(week, "host-failures", "urls")).collect();
    let found: BTreeMap<_, _> = rows.iter().cloned().collect();
    assert_eq!(found.len(), rows.len(), "each host and reason has one row");
    found
}

/// Segments of a week: rows of `features` and of `chunks`.
fn counted(week: &Path) -> (u64, u64) {
    let whole: serde_json::Value =
        serde_json::from_slice(&std::fs::read(records(week).join("week.json")).unwrap()).unwrap();
    let segments = whole["journal"]["segments"].as_array().unwrap();
    let sum = |field: &str| segments.iter().map(|segment| segment[field].as_u64().unwrap()).sum();
    (sum("features"), sum("chunks"))
}

#[test]
fn every_page_with_words_has_its_chunks() {
    let made = Made::new(&[]);
    let folder = made.week();
    let docs = longs(&folder, "chunks", "doc");
    assert_eq!(docs, longs(&folder, "features", "doc"));
    assert_eq!(counted(&folder), (docs.len() as u64, docs.len() as u64));
    let urls: BTreeMap<i64, String> =
        longs(&folder, "documents", "doc").into_iter().zip(texts(&folder, "documents", "url")).collect();

    let (reading, mut expected) = (Reading::default(), BTreeMap::new());
    let mut fingerprinter = Fingerprinter::of_method(&Method::default()).unwrap().keeping_chunks(true);
    for input in readers::list(&["tests/data/week-2024-01-08/*.warc.gz".to_owned()], &reading).unwrap() {
        let mut reader = readers::open(&input, &reading).unwrap();
        while let Some(item) = reader.next().unwrap() {
            let Item::Page(page) = item else { continue };
            let url = page.url.as_deref().and_then(canonical);
            let (Body::Html(body), Some(url)) = (&page.body, url) else { panic!("{:?}", page.url) };
            if let Some(chunks) = fingerprinter.html(body, page.charset.as_deref(), Some(&url)).chunks {
                expected.entry(url.as_str().to_owned()).or_insert(chunks);
            }
        }
    }
    let (lines, paragraphs) = (binaries(&folder, "chunks", "lines"), binaries(&folder, "chunks", "paragraphs"));
    let (text, characters) = (bytes(&folder, "chunks", "text"), longs(&folder, "chunks", "characters"));
    assert_eq!(docs.len(), expected.len());
    for (row, doc) in docs.iter().enumerate() {
        let chunks = PageChunks {
            text: u128::from_be_bytes(text[row][..].try_into().unwrap()),
            characters: characters[row] as u64,
            lines: lines[row].clone(),
            paragraphs: paragraphs[row].clone(),
        };
        assert_eq!(chunks, expected[&urls[doc]], "{}", urls[doc]);
    }
}

#[test]
fn without_chunks_the_other_tables_are_the_same() {
    let folder = tempfile::tempdir().unwrap();
    let input = format!("input = [\"{}/*.warc.gz\"]", data("week-2024-01-08").display());
    let made = |keep: &str, flags: &[&str]| {
        let job = job(folder.path(), &format!("[cluster]\nweek = \"2024-01-08\"\n{input}\n{keep}"));
        Made::with_job(&job, flags)
    };
    let (with, without) = (made("", &[]), made("[cluster.keep]\nchunks = false\n", &[]));
    let others = |made: &Made| {
        let mut tables = made.tables();
        tables.retain(|name, _| !name.contains("chunks"));
        tables
    };
    assert_eq!(others(&with).keys().collect::<Vec<_>>(), others(&without).keys().collect::<Vec<_>>());
    for (name, bytes) in others(&with) {
        assert!(others(&without)[&name] == bytes, "{name} differs");
    }
    assert_eq!(longs(&without.week(), "chunks", "doc"), [0; 0]);
    let (features, chunks) = counted(&without.week());
    assert!(features > 500 && chunks == 0);
    // The week was made without, and the command says otherwise.
    let store = without.store();
    let again = run(&["run", "jobs/example.toml", "-q", "--store", store.to_str().unwrap(), "--week", "2024-01-08"]);
    assert_ne!(again.code, Some(0), "{}", again.stdout);
}

/// A row of `chunks`: document, text, characters, lines, paragraphs.
type ChunkValues = (i64, Vec<u8>, i64, Vec<u8>, Vec<u8>);

/// The rows of `chunks`.
fn chunks(week: &Path) -> Vec<ChunkValues> {
    let (text, characters) = (bytes(week, "chunks", "text"), longs(week, "chunks", "characters"));
    let (lines, paragraphs) = (binaries(week, "chunks", "lines"), binaries(week, "chunks", "paragraphs"));
    let rows = longs(week, "chunks", "doc").into_iter().zip(text).zip(characters).zip(lines).zip(paragraphs);
    rows.map(|((((doc, text), characters), lines), paragraphs)| (doc, text, characters, lines, paragraphs)).collect()
}

/// The files of a table have its pieces by wave, and then by shard.
#[test]
fn chunks_of_several_waves_are_made_later_in_their_order() {
    let folder = tempfile::tempdir().unwrap();
    let crawl = data("week-2024-01-08");
    let fields = format!("week = \"2024-01-08\"\nwave-bytes = \"1KiB\"\ninput = [\"{}/*.warc.gz\"]", crawl.display());
    let made = |keep: &str| Made::with_job(&job(folder.path(), &format!("[cluster]\n{fields}\n{keep}")), &[]);
    let (with, without) = (made(""), made("[cluster.keep]\nchunks = false\n"));
    let (store, crawl) = (without.store(), format!("{}/*.warc.gz", crawl.display()));
    let store = store.to_str().unwrap();
    run_well(&["run", "jobs/chunks.toml", "-q", "--store", store, "--week", "2024-01-08", "--input", &crawl]);
    let rows = chunks(&with.week());
    assert!(rows.len() > 500 && chunks(&without.week()) == rows);
}

#[test]
fn chunks_are_made_later() {
    let folder = tempfile::tempdir().unwrap();
    let (cluster, weekly) = (folder.path().join("cluster.toml"), folder.path().join("weekly.toml"));
    std::fs::write(&cluster, "[cluster]\n[cluster.keep]\nchunks = false\n").unwrap();
    std::fs::write(&weekly, "[weekly]\n[weekly.keep]\nchunks = false\n").unwrap();
    let with = shipped_weeks(&shipped_job(), &shipped_weekly_job(), &[]);
    let without = shipped_weeks(&cluster, &weekly, &[]);
    let (path, crawl) = (without.store(), data(&format!("week-{}", WEEKS[1])));
    let job = ["run", "jobs/chunks.toml", "-q", "--store", path.to_str().unwrap(), "--week", WEEKS[1], "--input"];
    let made = |inputs: &[&str]| run_well(&[&job[..], inputs].concat()).stdout;

    let planned = made(&[crawl.to_str().unwrap(), "--dry-run", "--json"]);
    let planned: serde_json::Value = serde_json::from_str(&planned).unwrap();
    assert!(planned["done"] == "dry run" && planned["plan"]["inputs"].as_array().unwrap().len() > 1, "{planned}");

    // A part of the crawl: the other pages are missing.
    let first = made(&[crawl.join("crawl-00000.warc.gz").to_str().unwrap()]);
    let found = chunks(&week(&path, WEEKS[1]));
    let pages = longs(&week(&path, WEEKS[1]), "features", "doc").len();
    assert!(!found.is_empty() && found.len() < pages, "{} of {pages}", found.len());
    assert!(first.contains(&format!("{} of {pages} pages", found.len())) && first.contains("http://"), "{first}");
    assert_eq!(counted(&week(&path, WEEKS[1])), (pages as u64, found.len() as u64));

    // Another week's pages of the same URLs: those that changed do not count.
    let other = made(&[data("week-2024-01-22").to_str().unwrap()]);
    assert!(!other.contains(" 0 with other content"), "{other}");
    assert!(chunks(&week(&path, WEEKS[1])).iter().all(|row| chunks(&week(&with.store(), WEEKS[1])).contains(row)));

    // All of it.
    for workers in ["1", "2", "4"] {
        let copy = folder.path().join(workers);
        copy_folder(&path, &copy);
        let job = [
            "run",
            "jobs/chunks.toml",
            "-q",
            "--store",
            copy.to_str().unwrap(),
            "--week",
            WEEKS[1],
            "--workers",
            workers,
        ];
        let said = run_well(&[&job[..], &["--input", crawl.to_str().unwrap()]].concat()).stdout;
        assert_is_whole(&copy);
        assert!(said.contains(&format!("{pages} of {pages} pages")) && !said.contains("missing"), "{said}");
        let (expected, found) = (tables(&week(&with.store(), WEEKS[1])), tables(&week(&copy, WEEKS[1])));
        assert_eq!(expected.keys().collect::<Vec<_>>(), found.keys().collect::<Vec<_>>());
        expected.iter().for_each(|(name, bytes)| assert!(found[name] == *bytes, "{workers} workers: {name} differs"));
        let again = run_well(&[&job[..], &["--input", crawl.to_str().unwrap()]].concat()).stdout;
        assert!(again.contains("already"), "{again}");
        // Later weeks go on.
        let next = data("week-2024-01-22");
        run_well(&[
            "run",
            "jobs/weekly.toml",
            "-q",
            "--store",
            copy.to_str().unwrap(),
            "--week",
            "2024-01-29",
            "--input",
            next.to_str().unwrap(),
        ]);
    }

    // Files of something else change nothing.
    let (before, other) = (tables(&path), folder.path().join("other.warc"));
    std::fs::write(&other, record("http://nowhere.example/", 200, "", "<p>words")).unwrap();
    let wrong = run(&[&job[..], &[other.to_str().unwrap()]].concat());
    assert!(wrong.code == Some(1) && wrong.stderr.contains("no page of these files"), "{}", wrong.stderr);
    assert!(tables(&path) == before);
}

/// What the shipped weeks say of downloads without a page, read by a plain walk over inputs.
#[test]
fn failures_of_hosts_are_those_of_a_plain_walk() {
    let made = shipped_weeks(&shipped_job(), &shipped_weekly_job(), &["--workers", "2"]);
    for name in WEEKS {
        let folder = week(&made.store(), name);
        let pages: BTreeSet<String> = texts(&folder, "documents", "url").into_iter().collect();
        let mut paths: Vec<PathBuf> =
            std::fs::read_dir(data(&format!("week-{name}"))).unwrap().map(|entry| entry.unwrap().path()).collect();
        paths.sort();
        let mut reasons: BTreeMap<String, String> = BTreeMap::new();
        for path in paths {
            let failures = match path.file_name().unwrap().to_str().unwrap() {
                name if name.starts_with("failed") => side_file(&content(&path)),
                name if name.ends_with(".warc.gz") => statuses(&content(&path)),
                _ => continue,
            };
            for (url, reason) in failures {
                let url = canonical(&url).unwrap().as_str().to_owned();
                reasons.entry(url).or_insert(reason);
            }
        }
        let mut expected: BTreeMap<(String, String), i64> = BTreeMap::new();
        for (url, reason) in reasons.iter().filter(|(url, _)| !pages.contains(*url)) {
            *expected.entry((canonical(url).unwrap().host().to_owned(), reason.clone())).or_default() += 1;
        }
        assert!(expected.len() > 5);
        assert_eq!(host_failures(&folder), expected, "{name}");
        let moved: BTreeSet<String> = redirects(&folder).into_iter().map(|(url, ..)| url).collect();
        let expected: BTreeSet<String> =
            reasons.into_iter().filter(|(_, reason)| reason == "status 301").map(|(url, _)| url).collect();
        assert_eq!(moved, expected, "{name}");
    }
}

/// A record of a WARC file.
pub(super) fn record(url: &str, status: u16, fields: &str, body: &str) -> String {
    let block = format!("HTTP/1.1 {status} X\r\nContent-Type: text/html\r\n{fields}\r\n{body}");
    format!(
        "WARC/1.0\r\nWARC-Type: response\r\nWARC-Target-URI: {url}\r\nContent-Type: application/http\r\nContent-Length: {}\r\n\r\n{block}\r\n\r\n",
        block.len()
    )
}

/// Two weeks of a made-up crawl with redirects and failures, in two files a week.
fn made_crawl(folder: &Path) {
    let to = |location: &str| format!("Location: {location}\r\n");
    let page = "<p>some words of a page";
    let first = [
        record("http://a.example/", 200, "", page),
        record("http://a.example/old/x", 301, &to("../new#part"), ""),
        record("http://a.example/temporary", 302, &to("HTTP://B.example:80/t"), ""),
        record("http://a.example/mail", 307, &to("mailto:me@a.example"), ""),
        record("http://a.example/nowhere", 308, "", ""),
        record("http://a.example/other", 303, &to("/b"), ""),
        record("http://a.example/gone", 404, "", ""),
        record("http://a.example/gone#again", 404, "", ""),
        record("http://a.example/later", 503, "", ""),
        record("http://c.example/moved", 301, &to("http://d.example/"), ""),
    ];
    let second = [
        record("http://a.example/later", 200, "", page),
        record("http://a.example/temporary", 308, &to("/again"), ""),
        record("http://c.example/first-lost", 500, "", ""),
        record("http://c.example/first-lost", 307, &to("/found"), ""),
        record("http://b.example/", 200, "", "<p>another page with other words"),
        record("http://private.example/x", 302, &to("http://a.example/"), ""),
    ];
    std::fs::write(folder.join("crawl-1.warc"), first.concat()).unwrap();
    std::fs::write(folder.join("crawl-2.warc"), second.concat()).unwrap();
    std::fs::write(folder.join("failed.tsv"), "url\treason\nhttp://lost.example/1\tdns\nhttp://lost.example/2\tdns\n")
        .unwrap();
}

/// Makes the crawl as the first week of a store, or as its second week, too.
fn made_store(folder: &Path, name: &str, weeks: usize, flags: &[&str]) -> PathBuf {
    let (crawl, store) = (folder.join("crawl"), folder.join(name));
    std::fs::create_dir_all(&crawl).unwrap();
    made_crawl(&crawl);
    for (kind, name) in [("cluster", WEEKS[0]), ("weekly", WEEKS[1])].into_iter().take(weeks) {
        let job = folder.join(format!("{kind}.toml"));
        let method = if kind == "cluster" { "[cluster.method]\nshards = 8\n" } else { "" };
        std::fs::write(&job, format!("[{kind}]\nwave-bytes = 1\n{method}")).unwrap();
        let [job, store, crawl] = [&job, &store, &crawl].map(|path| path.to_str().unwrap());
        run_well(&[&["run", job, "-q", "--store", store, "--week", name, "--input", crawl], flags].concat());
    }
    store
}

fn expected_redirects() -> BTreeSet<(String, String, i32)> {
    let rows = [
        ("http://a.example/old/x", "http://a.example/new", 301),
        ("http://a.example/temporary", "http://b.example/t", 302),
        ("http://c.example/first-lost", "http://c.example/found", 307),
        ("http://c.example/moved", "http://d.example/", 301),
        ("http://private.example/x", "http://a.example/", 302),
    ];
    rows.map(|(url, target, status)| (url.to_owned(), target.to_owned(), status)).into()
}

fn expected_failures() -> BTreeMap<(String, String), i64> {
    let rows = [
        (("a.example", "status 301"), 1),
        (("a.example", "status 302"), 1),
        (("a.example", "status 303"), 1),
        (("a.example", "status 307"), 1),
        (("a.example", "status 308"), 1),
        (("a.example", "status 404"), 1),
        (("c.example", "status 301"), 1),
        (("c.example", "status 500"), 1),
        (("lost.example", "dns"), 2),
        (("private.example", "status 302"), 1),
    ];
    rows.map(|((host, reason), urls)| ((host.to_owned(), reason.to_owned()), urls)).into()
}

#[test]
fn redirects_and_failures_are_kept_in_every_week() {
    let folder = tempfile::tempdir().unwrap();
    let store = made_store(folder.path(), "store", 2, &["--workers", "1"]);
    for name in &WEEKS[..2] {
        assert_eq!(redirects(&week(&store, name)), expected_redirects(), "{name}");
        assert_eq!(host_failures(&week(&store, name)), expected_failures(), "{name}");
    }
    for flags in [["--workers", "2"].as_slice(), &["--workers", "4"], &["--workers", "1", "--processes", "2"]] {
        let name = flags.concat();
        let other = made_store(folder.path(), &name, 2, flags);
        assert!(tables(&other) == tables(&store), "{flags:?}");
    }
}

#[test]
fn a_deletion_removes_chunks_and_redirects() {
    let folder = tempfile::tempdir().unwrap();
    let store = made_store(folder.path(), "store", 2, &[]);
    let folder = week(&store, WEEKS[1]);
    let pages = longs(&folder, "chunks", "doc").len();
    let doc = texts(&folder, "documents", "url").iter().position(|url| url == "http://b.example/").unwrap();
    let doc = longs(&folder, "documents", "doc")[doc];
    let store_text = store.to_str().unwrap();
    run_well(&["delete", "-q", "--store", store_text, "--url", "http://b.example/", "--url", "http://c.example/moved"]);
    // It is in no other table than these two.
    run_well(&["delete", "-q", "--store", store_text, "--host", "private.example"]);
    run_well(&["delete", "-q", "--store", store_text, "--url", "http://b.example/t"]);
    let docs = longs(&folder, "chunks", "doc");
    assert!(docs.len() == pages - 1 && !docs.contains(&doc) && docs.is_sorted());
    assert_eq!(docs, longs(&folder, "features", "doc"));
    let mut expected = expected_redirects();
    let is_kept = |url: &str| {
        !["http://c.example/moved", "http://private.example/x", "http://a.example/temporary"].contains(&url)
    };
    expected.retain(|(url, ..)| is_kept(url));
    assert_eq!(redirects(&folder), expected);
    let mut expected = expected_failures();
    expected.retain(|(host, _), _| host != "private.example");
    assert_eq!(host_failures(&folder), expected);
}
