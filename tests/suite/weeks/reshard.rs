//! A store that gets more shards, against its slow twin: a store that was run with so many shards
//! from the first.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use crate::choices::datasets::{lines, text};
use crate::program::{copy_folder, longs, of_features, rows_of, run, run_well, tables, texts, week};

pub(super) const WEEKS: [&str; 4] = ["2024-01-08", "2024-01-15", "2024-01-22", "2024-01-29"];
const URLS: u64 = 260;

/// A number below a bound, the same for the same arguments.
fn choice(of: [u64; 3], bound: u64) -> u64 {
    let bytes: Vec<u8> = of.iter().flat_map(|number| number.to_le_bytes()).collect();
    xxhash_rust::xxh3::xxh3_64(&bytes) % bound
}

fn url(number: u64) -> String {
    format!("http://h{}.example/d{}/p{number}", number % 7, number % 3)
}

/// A record of a crawl.
fn record(kind: &str, number: u64, week: u64, fields: &[String], block: &str) -> String {
    let hour = choice([number, week, 1], 24);
    let fields: String = fields.iter().map(|field| format!("{field}\r\n")).collect();
    format!(
        "WARC/1.1\r\nWARC-Type: {kind}\r\nWARC-Target-URI: {}\r\nWARC-Date: {}T{hour:02}:00:00Z\r\n\
         WARC-Record-ID: <urn:x:{kind}-{number}-{week}>\r\nContent-Type: application/http;msgtype=response\r\n{fields}\
         Content-Length: {}\r\n\r\n{block}\r\n\r\n",
        url(number),
        WEEKS[week as usize],
        block.len()
    )
}

fn digest(content: u64) -> String {
    format!("WARC-Payload-Digest: sha1:{content:040x}")
}

/// A page of a family of texts, with links.
fn page(number: u64, content: u64) -> String {
    let links: String =
        (1..4).map(|step| format!("<a href='{}'>x</a>", url((content + step * 37) % (URLS + 20)))).collect();
    let text = text(content as usize, 40);
    format!(
        "HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n\r\n<title>page {}</title><p>{text}</p>{links}",
        if content.is_multiple_of(5) { number } else { content }
    )
}

/// The files of a week's crawl, in three waves: pages, later captures, revisits, redirects, and
/// failed downloads. Each week has new URLs.
fn crawl(folder: &Path, week: u64) -> Vec<PathBuf> {
    let mut files = vec![String::new(); 3];
    for number in 0..URLS + 15 * week {
        let file = &mut files[choice([number, week, 2], 3) as usize];
        let content = if choice([number, week, 3], 6) == 0 { number + 100 * week } else { number / 2 };
        let html = page(number, content);
        match choice([number, week, 4], 20) {
            0 | 1 => {}
            2 => file.push_str(&record("response", number, week, &[], "HTTP/1.1 404 Not Found\r\n\r\n")),
            3 => {
                let head = format!("HTTP/1.1 301 Moved\r\nLocation: {}\r\n\r\n", url(number / 3));
                file.push_str(&record("response", number, week, &[], &head));
            }
            4 | 5 if week > 0 => {
                let of = if choice([number, week, 5], 4) == 0 { 999_999 } else { number / 2 };
                let profile = "WARC-Profile: http://netpreserve.org/warc/1.1/revisit/identical-payload-digest";
                let head = "HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n\r\n";
                file.push_str(&record("revisit", number, week, &[profile.to_owned(), digest(of)], head));
            }
            6 => {
                file.push_str(&record("response", number, week, &[digest(content)], &html));
                file.push_str(&record("response", number, week, &[digest(content + 1)], &page(number, content + 1)));
            }
            _ => file.push_str(&record("response", number, week, &[digest(content)], &html)),
        }
    }
    let path = |at: usize| folder.join(format!("week{week}-{at}.warc"));
    (0..files.len()).for_each(|at| std::fs::write(path(at), &files[at]).unwrap());
    (0..files.len()).map(path).collect()
}

/// The crawls of all weeks, which stores are made of.
pub(super) struct CrawlsOfWeeks {
    folder: tempfile::TempDir,
    files: Vec<Vec<PathBuf>>,
    /// Whether weeks have the table `chunks`.
    chunks: bool,
}

impl CrawlsOfWeeks {
    pub(super) fn new() -> CrawlsOfWeeks {
        let folder = tempfile::tempdir().unwrap();
        let files = (0..WEEKS.len() as u64).map(|week| crawl(folder.path(), week)).collect();
        CrawlsOfWeeks { folder, files, chunks: true }
    }

    pub(super) fn store(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// Runs some weeks. The first one makes the shards of the store.
    pub(super) fn run(&self, name: &str, shards: u32, weeks: std::ops::Range<usize>, absent: &str, flags: &[&str]) {
        for week in weeks {
            let job = self.folder.path().join(format!("{name}.toml"));
            let method = if week == 0 { format!("[cluster.method]\nshards = {shards}\n") } else { String::new() };
            let text = format!(
                "[cluster]\nwave-bytes = 1\nabsent = \"{absent}\"\nmax-unknown-share = 1.0\n[cluster.read]\nmax-links = 50\n[cluster.keep]\nchunks = {}\n{method}",
                self.chunks
            );
            std::fs::write(&job, text).unwrap();
            let store = self.store(name);
            let mut arguments = vec![
                "run",
                job.to_str().unwrap(),
                "-q",
                "--store",
                store.to_str().unwrap(),
                "--week",
                WEEKS[week],
                "--input",
            ];
            arguments.extend(self.files[week].iter().map(|file| file.to_str().unwrap()));
            run_well(&[&arguments, flags].concat());
        }
    }

    /// A store of the first weeks, in a folder of its own if it is made again.
    pub(super) fn copy(&self, from: &str, to: &str) -> PathBuf {
        copy_folder(&self.store(from), &self.store(to));
        self.store(to)
    }
}

pub(super) fn reshard(store: &Path, shards: u32, flags: &[&str]) -> String {
    let shards = shards.to_string();
    run_well(&[&["reshard", store.to_str().unwrap(), "--shards", &shards, "-q"], flags].concat()).stdout
}

/// The tables of two stores or weeks that differ.
fn differing(a: &Path, b: &Path) -> Vec<String> {
    let (a, b) = (tables(a), tables(b));
    assert!(a.len() > 10, "{} tables are too few to compare", a.len());
    let names: BTreeSet<&String> = a.keys().chain(b.keys()).collect();
    names.into_iter().filter(|name| a.get(*name) != b.get(*name)).cloned().collect()
}

pub(super) fn shards_of(store: &Path) -> u64 {
    let text = std::fs::read(store.join("_nigh/manifest.json")).unwrap();
    let manifest: serde_json::Value = serde_json::from_slice(&text).unwrap();
    manifest["method"]["shards"].as_u64().unwrap()
}

#[test]
fn a_store_with_more_shards_is_one_that_had_them_from_the_first() {
    let crawls = CrawlsOfWeeks::new();
    for (absent, from, to, how) in [
        ("missing", 1, 2, ["--workers", "4", "--processes", "1"]),
        ("keep", 4, 8, ["--workers", "1", "--processes", "1"]),
        ("keep", 2, 8, ["--workers", "2", "--processes", "1"]),
        ("missing", 4, 16, ["--workers", "2", "--processes", "2"]),
    ] {
        let [name, twin] = ["", "-twin"].map(|end| format!("{absent}-{from}-{to}{end}"));
        crawls.run(&name, from, 0..3, absent, &[]);
        crawls.run(&twin, to, 0..3, absent, &["--workers", "2"]);
        let (store, twin_store) = (crawls.store(&name), crawls.store(&twin));
        assert!(!differing(&store, &twin_store).is_empty());
        let said = reshard(&store, to, &how);
        assert!(said.contains(&format!("has {to} shards now, instead of {from}; 3 weeks made again")), "{said}");
        assert_eq!(differing(&store, &twin_store), [""; 0], "{absent}, {from} to {to}");
        // Something of all kinds was there.
        let last = week(&store, WEEKS[2]);
        for table in ["links", "missing", "redirects", "host-failures", "captures", "changes", "chunks"] {
            assert!(!rows_of(&last, table, &[]).is_empty() || table == "captures", "{table}");
        }
        assert!(longs(&last, "clusters", "similar_size").iter().filter(|size| **size > 1).count() > 50);
        // Both go on, and are the same.
        crawls.run(&name, to, 3..4, absent, &[]);
        crawls.run(&twin, to, 3..4, absent, &[]);
        assert_eq!(differing(&store, &twin_store), [""; 0], "{absent}, {from} to {to}, a week later");
    }
}

/// Adds a batch of records with ids and a score to a store, verified exactly.
fn add(folder: &Path, name: &str, shards: u32, batch: usize) {
    let texts: Vec<String> = (0..90).map(|n| text(n * (batch + 2) % 140, 35)).collect();
    let input = folder.join(format!("batch{batch}.jsonl"));
    if !input.exists() {
        // An input that is written again has another time.
        let fields = |n: usize| format!("\"id\": {}, \"score\": {}, ", batch * 60 + n, n * 7 % 11);
        std::fs::write(&input, lines(&texts, fields)).unwrap();
    }
    let job = folder.join(format!("{name}.toml"));
    // Later batches have the shards of the store, whether they name the rest or nothing.
    let method = match batch {
        0 => format!("[cluster.method]\nshards = {shards}\nsimilarity = 0.8\nverify = \"exact\"\n"),
        1 => String::new(),
        _ => "[cluster.method]\nsimilarity = 0.8\nverify = \"exact\"\n".to_owned(),
    };
    let text =
        format!("[cluster]\ncanonical = {{ by = [\"score desc\"] }}\n[cluster.read.columns]\nid = \"id\"\n{method}");
    std::fs::write(&job, text).unwrap();
    let store = folder.join(name);
    let input = input.to_str().unwrap();
    run_well(&["add", store.to_str().unwrap(), job.to_str().unwrap(), "-q", "--week", WEEKS[batch], "--input", input]);
}

#[test]
fn batches_are_added_to_a_store_with_more_shards() {
    let folder = tempfile::tempdir().unwrap();
    for batch in 0..3 {
        add(folder.path(), "store", 2, batch);
        add(folder.path(), "twin", 8, batch);
    }
    let [store, twin] = ["store", "twin"].map(|name| folder.path().join(name));
    reshard(&store, 8, &["--workers", "2"]);
    assert_eq!(differing(&store, &twin), [""; 0]);
    assert!(!longs(&week(&store, WEEKS[2]), "values", "doc").is_empty());
    ["store", "twin"].iter().for_each(|name| add(folder.path(), name, 8, 3));
    assert_eq!(differing(&store, &twin), [""; 0]);
    // What exact verification reads again must be there.
    let input = folder.path().join("batch1.jsonl");
    let text = std::fs::read_to_string(&input).unwrap();
    std::fs::write(&input, text.to_owned() + "{}\n").unwrap();
    let refused = |found: &str| {
        let ran = run(&["reshard", store.to_str().unwrap(), "--shards", "16"]);
        assert!(
            ran.code == Some(1) && ran.stderr.contains("batch1.jsonl") && ran.stderr.contains(found),
            "{}",
            ran.stderr
        );
        assert!(ran.stderr.contains("shards = 16 in [method]"), "{}", ran.stderr);
    };
    refused("has changed since");
    std::fs::remove_file(&input).unwrap();
    refused("is not there");
    assert_eq!(differing(&store, &twin), [""; 0]);
}

#[test]
fn deleted_pages_keep_their_places() {
    let crawls = CrawlsOfWeeks::new();
    for (name, shards) in [("store", 2), ("twin", 8)] {
        crawls.run(name, shards, 0..3, "keep", &[]);
    }
    let [store, twin] = ["store", "twin"].map(|name| crawls.store(name));
    let last = week(&store, WEEKS[2]);
    // Pages of earlier weeks that are in no cluster: others would take ids of clusters with them.
    let alone: BTreeSet<String> = texts(&last, "clusters", "url")
        .into_iter()
        .zip(longs(&last, "clusters", "similar_size"))
        .filter_map(|(url, size)| (size == 1).then_some(url))
        .collect();
    let earlier: BTreeSet<String> = texts(&week(&store, WEEKS[0]), "urls", "url").into_iter().collect();
    let deleted: Vec<&str> = alone.intersection(&earlier).map(|url| url.as_str()).take(9).collect();
    assert_eq!(deleted.len(), 9);
    for store in [&store, &twin] {
        run_well(&[&["delete", "-q", "--store", store.to_str().unwrap(), "--url"], &deleted[..]].concat());
    }
    reshard(&store, 8, &["--workers", "2"]);
    let ids_of = |store: &Path| -> BTreeMap<String, i64> {
        let last = week(store, WEEKS[2]);
        texts(&last, "documents", "url").into_iter().zip(longs(&last, "documents", "doc")).collect()
    };
    assert_eq!(ids_of(&store), ids_of(&twin));
    // Where the links of pages that stay lie is decided segment by segment.
    let by_rows = |store: &Path, number: usize| {
        let of = week(store, WEEKS[number]);
        let clusters = ["doc", "url", "similar_root", "identical_root", "exact_root", "cluster_id", "canonical"];
        let tables: [(&str, &[&str]); 4] = [
            ("clusters", &clusters),
            ("evidence", &["doc", "neighbour", "agreements", "similarity"]),
            ("missing", &["doc", "url", "reason"]),
            ("changes", &["cluster_id", "event", "before", "after"]),
        ];
        (tables.map(|(table, columns)| rows_of(&of, table, columns)), of_features(&of, "supershingles"))
    };
    assert!(by_rows(&store, 2) == by_rows(&twin, 2));
    for name in ["store", "twin"] {
        crawls.run(name, 8, 3..4, "keep", &[]);
    }
    assert!(by_rows(&store, 3) == by_rows(&twin, 3));
    assert_eq!(ids_of(&store), ids_of(&twin));
}

/// A week in one file: those pages of which `share` in a hundred are crawled.
fn part_of_pages(folder: &Path, week: u64, share: u64) -> Vec<PathBuf> {
    let path = folder.join(format!("week{week}.warc"));
    let numbers = (0..URLS).filter(|number| choice([*number, week, 9], 100) < share);
    let records = numbers.map(|number| record("response", number, week, &[], &page(number, number / 2)));
    std::fs::write(&path, records.collect::<String>()).unwrap();
    vec![path]
}

/// The links of all pages of a week, wherever they lie.
fn links_of_pages(store: &Path, number: usize) -> BTreeMap<i64, BTreeSet<String>> {
    let of = week(store, WEEKS[number]);
    let stored = rows_of(&of, "documents", &["doc", "stored"]);
    let mut links: BTreeMap<i64, BTreeSet<String>> =
        longs(&of, "documents", "doc").into_iter().map(|doc| (doc, BTreeSet::new())).collect();
    for date in &WEEKS[..=number] {
        if !store.join(format!("links/week={date}")).exists() {
            continue;
        }
        let of = week(store, date);
        for (doc, target) in longs(&of, "links", "doc").into_iter().zip(texts(&of, "links", "target_url")) {
            let is_here = stored.iter().any(|row| row[0] == doc.to_string() && row[1] == *date);
            links.get_mut(&doc).filter(|_| is_here).into_iter().for_each(|of_page| _ = of_page.insert(target.clone()));
        }
    }
    links
}

#[test]
fn pages_that_stayed_have_their_links_after_pages_were_deleted() {
    let folder = tempfile::tempdir().unwrap();
    let shares = [100, 65, 10, 30];
    let files = (0..4).map(|week| part_of_pages(folder.path(), week, shares[week as usize])).collect();
    let crawls = CrawlsOfWeeks { folder, files, chunks: true };
    for (name, shards) in [("store", 1), ("twin", 32)] {
        crawls.run(name, shards, 0..3, "keep", &[]);
    }
    let [store, twin] = ["store", "twin"].map(|name| crawls.store(name));
    let last = week(&store, WEEKS[2]);
    let alone = texts(&last, "clusters", "url").into_iter().zip(longs(&last, "clusters", "similar_size"));
    let deleted = alone.filter_map(|(url, size)| (size == 1).then_some(url)).nth(3).unwrap();
    for store in [&store, &twin] {
        run_well(&["delete", "-q", "--store", store.to_str().unwrap(), "--url", &deleted]);
    }
    reshard(&store, 32, &["--workers", "2"]);
    let wanted = links_of_pages(&twin, 2);
    assert!(wanted.values().filter(|links| links.len() > 1).count() > 200);
    assert!(links_of_pages(&store, 2) == wanted);
    for name in ["store", "twin"] {
        crawls.run(name, 32, 3..4, "keep", &[]);
    }
    assert!(links_of_pages(&store, 3) == links_of_pages(&twin, 3));
    run_well(&["delete", "-q", "--store", store.to_str().unwrap(), "--host", "h3.example"]);
}

/// The week before has none of the pages that stayed.
#[test]
fn chunks_that_were_made_later_are_those_of_the_same_pages() {
    let folder = tempfile::tempdir().unwrap();
    let files = [100, 60, 20].iter().zip(0..).map(|(share, week)| part_of_pages(folder.path(), week, *share)).collect();
    let mut crawls = CrawlsOfWeeks { folder, files, chunks: false };
    crawls.run("store", 1, 0..1, "missing", &[]);
    crawls.run("store", 1, 1..2, "keep", &[]);
    let store = crawls.store("store");
    let inputs = crawls.files[..2].iter().flatten().map(|file| file.to_str().unwrap());
    let chunks = ["run", "jobs/chunks.toml", "-q", "--store", store.to_str().unwrap(), "--week", WEEKS[1], "--input"];
    run_well(&chunks.into_iter().chain(inputs).collect::<Vec<_>>());
    // By URL: documents get other ids.
    let of_urls = |number: usize| {
        let of = week(&store, WEEKS[number]);
        let docs = longs(&of, "documents", "doc").into_iter().map(|doc| doc.to_string());
        let urls: BTreeMap<String, String> = docs.zip(texts(&of, "documents", "url")).collect();
        let columns = ["--week", WEEKS[number], "--columns", "doc,text,characters"];
        let rows = run_well(&[&["table", store.to_str().unwrap(), "chunks"][..], &columns].concat()).stdout;
        let rows = rows.lines().skip(1).map(|row| row.split_once(',').unwrap());
        rows.map(|(doc, row)| (urls[doc].clone(), row.to_owned())).collect::<BTreeMap<_, _>>()
    };
    let wanted = of_urls(1);
    assert_eq!(wanted.len() as u64, URLS);
    for shards in [4, 8] {
        reshard(&store, shards, &[]);
        assert!(of_urls(1) == wanted, "{shards} shards");
    }
    // A week that is made again keeps the note of it.
    run_well(&["verify", "-q", store.to_str().unwrap(), "--similarity", "0.8", "--by", "estimate"]);
    reshard(&store, 16, &[]);
    assert!(of_urls(1) == wanted);
    crawls.chunks = true;
    crawls.run("store", 16, 2..3, "keep", &[]);
    let last = of_urls(2);
    reshard(&store, 32, &[]);
    assert!(last.len() as u64 == URLS && of_urls(2) == last && of_urls(1) == wanted);
}

#[test]
fn a_deleted_page_whose_place_is_not_known_is_named() {
    let crawls = CrawlsOfWeeks::new();
    crawls.run("store", 1, 0..1, "missing", &[]);
    // All pages of some hosts: with three waves and one shard some of them were first or last of a
    // new shard.
    let store = crawls.store("store");
    let name = store.to_str().unwrap();
    run_well(&["delete", "-q", "--store", name, "--host", "h1.example", "h2.example", "h3.example"]);
    let before = tables(&store);
    let ran = run(&["reshard", name, "--shards", "4"]);
    assert!(ran.code == Some(1) && ran.stderr.contains("a page was deleted from week 2024-01-08"), "{}", ran.stderr);
    assert!(ran.stderr.contains("another --store with shards = 4 in [method]"), "{}", ran.stderr);
    assert!(tables(&store) == before && shards_of(&store) == 1);
}

#[test]
fn studies_stay_and_are_from_before_and_the_log_of_a_catalog_goes_on() {
    let crawls = CrawlsOfWeeks::new();
    crawls.run("store", 2, 0..2, "keep", &[]);
    let store = crawls.store("store");
    let name = store.to_str().unwrap();
    run_well(&["catalog", name, "--format", "delta"]);
    run_well(&["run", "jobs/overlap.toml", "-q", "--store", name]);
    let of_study = tables(&store.join("overlap"));
    let page = crawls.folder.path().join("report.html");
    let report = || {
        run_well(&["report", name, "--out", page.to_str().unwrap()]);
        std::fs::read_to_string(&page).unwrap()
    };
    let before = report();
    let said = reshard(&store, 4, &[]);
    assert!(said.contains("The tables of overlap have the ids from before"), "{said}");
    assert!(!of_study.is_empty() && tables(&store.join("overlap")) == of_study);
    let outdated = "as it was before week 2024-01-15 was changed";
    assert!(!before.contains(outdated) && report().contains(outdated), "the report says that it is outdated");
    // After a later week, too.
    let later = crawls.copy("store", "later");
    crawls.run("later", 4, 2..3, "keep", &[]);
    run_well(&["report", later.to_str().unwrap(), "--out", page.to_str().unwrap()]);
    assert!(std::fs::read_to_string(&page).unwrap().contains(outdated));
    // The log of each table has the files that are there.
    for table in ["clusters", "links", "urls"] {
        let mut logs: Vec<PathBuf> = std::fs::read_dir(store.join(table).join("_delta_log"))
            .unwrap()
            .map(|entry| entry.unwrap().path())
            .filter(|path| path.extension().is_some_and(|extension| extension == "json"))
            .collect();
        logs.sort();
        let mut listed = BTreeSet::new();
        for line in logs
            .iter()
            .flat_map(|log| std::fs::read_to_string(log).unwrap().lines().map(str::to_owned).collect::<Vec<_>>())
        {
            let action: serde_json::Value = serde_json::from_str(&line).unwrap();
            if let Some(path) = action["add"]["path"].as_str() {
                listed.insert(path.replace("%3D", "="));
            }
            if let Some(path) = action["remove"]["path"].as_str() {
                listed.remove(&path.replace("%3D", "="));
            }
        }
        let files = walkdir::WalkDir::new(store.join(table)).into_iter().map(|entry| entry.unwrap().into_path());
        let parquet = files.filter(|path| path.extension().is_some_and(|extension| extension == "parquet"));
        let there = parquet.map(|path| path.strip_prefix(store.join(table)).unwrap().to_str().unwrap().to_owned());
        assert_eq!(listed, there.collect::<BTreeSet<_>>(), "{table}");
    }
    // The study is made again of the new tables.
    run_well(&["run", "jobs/overlap.toml", "-q", "--store", name]);
    crawls.run("twin", 4, 0..2, "keep", &[]);
    let twin = crawls.store("twin");
    run_well(&["run", "jobs/overlap.toml", "-q", "--store", twin.to_str().unwrap()]);
    assert!(tables(&store.join("overlap")) == tables(&twin.join("overlap")));
    let documents = |json: &str| -> serde_json::Value { serde_json::from_str(json).unwrap() };
    let shown = documents(&run_well(&["show", name, "--json"]).stdout);
    assert_eq!(shown["counts"], documents(&run_well(&["show", twin.to_str().unwrap(), "--json"]).stdout)["counts"]);
}
