//! Links of pages that stay, to pages and through redirects that came in another batch: studies of
//! a store of batches find what they find in one week of all pages.

use std::collections::BTreeMap;
use std::path::Path;

use crate::program::{job, rows_of, run_well, week};
use crate::weeks::partial::{DATES, Lcg};

const HOSTS: usize = 3;
const PAGES: usize = 12;

/// A record of a crawl: an answer with this head and body.
fn record(url: &str, head: &str, body: &str) -> String {
    let http = format!("HTTP/1.1 {head}\r\n\r\n{body}");
    format!(
        "WARC/1.1\r\nWARC-Type: response\r\nWARC-Target-URI: {url}\r\nWARC-Date: 2024-01-08T00:00:00Z\r\nContent-Type: \
         application/http; msgtype=response\r\nContent-Length: {}\r\n\r\n{http}\r\n\r\n",
        http.len()
    )
}

fn url(host: usize, page: usize) -> String {
    format!("http://h{host}.example/d/{page}")
}

/// Copies of one manual on some hosts, whose pages link to each other, some through redirects; and
/// a page that links to one of them.
fn records(random: &mut Lcg) -> Vec<String> {
    let mut records = Vec::new();
    for host in 0..HOSTS {
        for page in 0..PAGES {
            let words: String = (0..40).map(|word| format!("w{} ", (page * 7919 + word * 104_729) % 99_991)).collect();
            let mut link = |to: usize| {
                if random.below(3) > 0 {
                    return url(host, to);
                }
                let (url, target_url) = (format!("http://h{host}.example/r/{page}-{to}"), url(host, to));
                let head = format!("301 Moved Permanently\r\nLocation: {target_url}\r\nContent-Length: 0");
                records.push(record(&url, &head, ""));
                url
            };
            let links = [link((page + 1) % PAGES), link((page * 5 + 2) % PAGES)];
            let links: String = links.iter().map(|link| format!("<a href=\"{link}\">x</a>")).collect();
            records.push(record(
                &url(host, page),
                "200 OK\r\nContent-Type: text/html",
                &format!("<p>{words}</p>{links}"),
            ));
        }
    }
    let link = format!("<p>all of it is elsewhere</p><a href=\"{}\">x</a>", url(1, 3));
    records.push(record("http://other.example/", "200 OK\r\nContent-Type: text/html", &link));
    records
}

/// What studies say that goes by links, without ids.
fn findings(store: &Path) -> BTreeMap<&'static str, Vec<Vec<String>>> {
    let name = store.to_str().unwrap();
    for job in ["jobs/collections.toml", "jobs/mirrors.toml"] {
        run_well(&["run", job, "-q", "--store", name]);
    }
    let sorted = |study: &str, table: &str, columns: &[&str]| {
        let mut rows = rows_of(&store.join(study), table, columns);
        rows.sort();
        rows
    };
    let avoided = run_well(&["avoid", name, "--json"]).stdout;
    let mut avoided: serde_json::Value = serde_json::from_str(&avoided).unwrap();
    for prefix in avoided["prefixes"].as_array_mut().unwrap() {
        // Which pages are in a sample depends on their ids.
        let sample = prefix.as_object_mut().unwrap().remove("sample").unwrap();
        assert!(!sample.as_array().unwrap().is_empty());
    }
    let redirects = rows_of(&week(store, &last_week(store)), "redirects", &["url", "target_url", "status"]);
    BTreeMap::from([
        ("collections", sorted("collections", "collections", &["host", "prefix", "pages", "in_links", "principal"])),
        ("avoid", sorted("collections", "avoid", &["prefix", "principal_url", "pages", "copies", "named"])),
        ("mirrors", sorted("mirrors", "pairs", &["host_a", "host_b", "class", "redirects"])),
        ("prefixes", vec![vec![avoided["prefixes"].to_string()]]),
        ("redirects", redirects),
    ])
}

fn last_week(store: &Path) -> String {
    let manifest = nigh::state::Store::at(store).manifest().unwrap().unwrap();
    manifest.weeks.last().unwrap().week.to_string()
}

#[test]
fn links_and_redirects_of_earlier_batches_lead_where_they_lead_in_one_week() {
    let folder = tempfile::tempdir().unwrap();
    let job = job(folder.path(), "[cluster]\n[cluster.method]\nshards = 4\n");
    let add = |store: &str, date: &str, records: &[String], workers: &str| {
        let (input, store) = (folder.path().join(format!("{store}-{date}.warc")), folder.path().join(store));
        std::fs::write(&input, records.concat()).unwrap();
        let [job, input, name] = [&job, &input, &store].map(|path| path.to_str().unwrap().to_owned());
        let fixed = ["run", &job, "-q", "--week", date, "--store", &name, "--input", &input];
        run_well(&[&fixed[..], &["--absent", "keep", "--workers", workers]].concat());
        store
    };
    for seed in 0..3 {
        let mut random = Lcg(seed);
        let records = records(&mut random);
        let whole = findings(&add(&format!("whole-{seed}"), DATES[0], &records, "1"));
        assert!(whole["collections"].len() == HOSTS && !whole["avoid"].is_empty(), "{whole:?}");
        assert!(!whole["redirects"].is_empty(), "{whole:?}");
        let mut batches: Vec<Vec<String>> = vec![Vec::new(); 3];
        records.into_iter().for_each(|record| batches[random.below(3)].push(record));
        let mut store = None;
        for (date, batch) in DATES.iter().zip(&batches) {
            store = Some(add(&format!("batches-{seed}"), date, batch, "2"));
        }
        let found = findings(&store.unwrap());
        for (name, rows) in &whole {
            assert_eq!(&found[name], rows, "seed {seed}: {name}");
        }
    }
}

#[test]
fn a_redirect_of_an_earlier_batch_goes_when_its_url_answers_otherwise() {
    let folder = tempfile::tempdir().unwrap();
    let job = job(folder.path(), "[cluster]\nallow-empty = true\n");
    let store = folder.path().join("store");
    let moved = |path: &str, to: &str| {
        let head = format!("302 Found\r\nLocation: http://a.example/{to}\r\nContent-Length: 0");
        record(&format!("http://a.example/{path}"), &head, "")
    };
    let page =
        |path: &str| record(&format!("http://a.example/{path}"), "200 OK\r\nContent-Type: text/html", "<p>words");
    let add = |date: &str, records: &[String], absent: &str| {
        let input = folder.path().join(format!("{date}.warc"));
        std::fs::write(&input, records.concat()).unwrap();
        let [job, input, name] = [&job, &input, &store].map(|path| path.to_str().unwrap().to_owned());
        run_well(&["run", &job, "-q", "--week", date, "--store", &name, "--input", &input, "--absent", absent]);
        let mut rows = rows_of(&week(&store, date), "redirects", &["url", "target_url"]);
        rows.sort();
        rows.into_iter().map(|row| row.join(" ").replace("http://a.example", "")).collect::<Vec<_>>()
    };
    let first = [moved("stays", "t"), moved("page", "t"), moved("gone", "t"), moved("other", "t"), page("t")];
    assert_eq!(add(DATES[0], &first, "keep"), ["/gone /t", "/other /t", "/page /t", "/stays /t"]);
    let gone = record("http://a.example/gone", "404 Not Found\r\nContent-Length: 0", "");
    let second = [page("page"), gone, moved("other", "u"), moved("new", "u")];
    assert_eq!(add(DATES[1], &second, "keep"), ["/new /u", "/other /u", "/stays /t"]);
    // A page that stays, and a batch without redirects.
    assert_eq!(add(DATES[2], &[page("u")], "keep"), ["/new /u", "/other /u", "/stays /t"]);
    // A whole crawl has its own.
    assert_eq!(add(DATES[3], &[page("t"), moved("new", "t")], "missing"), ["/new /t"]);
}
