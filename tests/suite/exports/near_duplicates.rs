//! What `nigh export --near-duplicates` says of near-duplicates, against the tables.

use std::collections::{BTreeMap, BTreeSet};

use arrow_array::Float32Array;
use serde_json::Value;

use crate::exports::replay::{ReplayedCrawl, gzip, text};
use crate::program::{features, job, longs, roots, run, run_well, texts, week};

const DATE: &str = "2024-01-08";

/// The words of a page; those of one family are near-duplicates, `other` says of which kind.
fn words(family: usize, other: usize) -> String {
    let more: Vec<String> = (0..other).map(|place| format!("more{place}")).collect();
    format!("{} {}", text(family), more.join(" "))
}

/// The pages: hosts, families and kinds. Kind 0 twice is an exact copy.
fn pages() -> Vec<(&'static str, usize, usize)> {
    let mut pages = Vec::new();
    for family in 0..6 {
        pages.extend([("a", family, 0), ("b", family, 0), ("a", family, 1), ("b", family, 1), ("a", family, 3)]);
    }
    pages.extend([("a", 20, 0), ("b", 21, 0), ("b", 21, 0)]);
    pages
}

fn url(number: usize, host: &str) -> String {
    format!("http://{host}.example/{number}?b&a")
}

fn block(family: usize, kind: usize) -> String {
    format!("HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n\r\n<p>{}", words(family, kind))
}

fn warc(number: usize, host: &str, family: usize, kind: usize) -> Vec<u8> {
    let block = block(family, kind);
    let url = url(number, host);
    let head = "WARC/1.0\r\nWARC-Type: response\r\nWARC-Record-ID: <urn:x:";
    let length = block.len();
    format!("{head}{number}>\r\nWARC-Date: 2024-01-02T03:04:05Z\r\nWARC-Target-URI: {url}\r\nContent-Type: application/http\r\nContent-Length: {length}\r\n\r\n{block}\r\n\r\n").into_bytes()
}

fn arc(number: usize, host: &str, family: usize, kind: usize) -> Vec<u8> {
    let block = block(family, kind);
    format!("{} 192.0.2.1 20240102030405 text/html {}\n{block}\n", url(number, host), block.len()).into_bytes()
}

/// A store of these pages in three files, of which one is ARC.
fn store(fields: &str) -> ReplayedCrawl {
    let crawl = ReplayedCrawl::new();
    let mut files: [Vec<u8>; 3] = Default::default();
    let first = "1 0 Maker\nURL IP-address Archive-date Content-type Archive-length\n";
    let line = format!("filedesc://z.arc.gz 0.0.0.0 20240102030405 text/plain {}\n{first}\n", first.len());
    files[2].extend(gzip(line.as_bytes()));
    for (number, (host, family, kind)) in pages().into_iter().enumerate() {
        match number % 3 {
            0 => files[0].extend(warc(number, host, family, kind)),
            1 => files[1].extend(gzip(&warc(number, host, family, kind))),
            _ => files[2].extend(gzip(&arc(number, host, family, kind))),
        }
    }
    for (name, bytes) in ["x.warc", "y.warc.gz", "z.arc.gz"].iter().zip(files) {
        std::fs::write(crawl.path("in").join(name), bytes).unwrap();
    }
    let job = job(crawl.folder.path(), &format!("[cluster]\naccuracy = false\n{fields}\n"));
    let [job, store, input] =
        [job, crawl.path("store"), crawl.path("in")].map(|path| path.to_str().unwrap().to_owned());
    run_well(&["run", &job, "-q", "--week", DATE, "--store", &store, "--input", &input]);
    crawl
}

/// The heads and blocks of the records of an export.
fn records(crawl: &ReplayedCrawl, out: &str) -> Vec<(BTreeMap<String, String>, String)> {
    let mut all = Vec::new();
    for name in ["x.warc", "y.warc.gz", "z.warc.gz"] {
        let bytes = crawl.bytes(&format!("{out}/{name}"));
        let mut decoded = Vec::new();
        match name.ends_with(".gz") {
            true => _ = std::io::Read::read_to_end(&mut flate2::read::MultiGzDecoder::new(&bytes[..]), &mut decoded),
            false => decoded = bytes,
        }
        let mut rest = &decoded[..];
        while let Some(end) = rest.windows(4).position(|four| four == b"\r\n\r\n") {
            let head = String::from_utf8(rest[..end].to_vec()).unwrap();
            let fields = head.lines().skip(1).map(|line| line.split_once(": ").unwrap());
            let fields: BTreeMap<String, String> = fields.map(|(a, b)| (a.to_owned(), b.to_owned())).collect();
            let length: usize = fields["Content-Length"].parse().unwrap();
            let block = String::from_utf8(rest[end + 4..][..length].to_vec()).unwrap();
            assert_eq!(&rest[end + 4 + length..][..4], b"\r\n\r\n");
            rest = &rest[end + 8 + length..];
            all.push((fields, block));
        }
        assert!(rest.is_empty());
    }
    all
}

/// Of each page that is near the first one of its cluster: the URL of that, the similarity and
/// what it is. Without `of_copies` those that are exact copies are left out.
fn wanted(crawl: &ReplayedCrawl, per_host: bool, of_copies: bool) -> BTreeMap<String, (String, String, String)> {
    let week = week(&crawl.path("store"), DATE);
    let docs = longs(&week, "documents", "doc");
    let urls = texts(&week, "documents", "url");
    let [hosts, files] = ["host", "file"].map(|name| texts(&week, "documents", name));
    let offsets = longs(&week, "documents", "offset");
    let (similar, exact, features) = (roots(&week, "similar"), roots(&week, "exact"), features(&week));
    let mut links: BTreeMap<(i64, i64), (f32, &str)> = BTreeMap::new();
    let pairs: Vec<(i64, i64)> =
        longs(&week, "evidence", "doc").into_iter().zip(longs(&week, "evidence", "neighbour")).collect();
    let mut similarities = Vec::new();
    crate::program::each::<Float32Array>(&week, "evidence", "similarity", |column| {
        similarities.extend(column.values().iter().copied())
    });
    for ((pair, similarity), found) in pairs.into_iter().zip(similarities).zip(texts(&week, "evidence", "found")) {
        links.insert(pair, (similarity, if found == "features" { "estimated" } else { "exact" }));
    }
    let mut rows: Vec<usize> = (0..docs.len()).collect();
    rows.sort_by_key(|row| (&files[*row], offsets[*row]));
    let mut first: BTreeMap<(i64, &str), usize> = BTreeMap::new();
    let (mut said, mut contents) = (BTreeMap::new(), BTreeSet::new());
    for row in rows {
        let doc = docs[row];
        let of = *first.entry((similar[&doc], if per_host { &hosts[row] } else { "" })).or_insert(row);
        let other = docs[of];
        let group = if per_host { hosts[row].as_str() } else { "" };
        let is_copy = !contents.insert((exact[&doc], group));
        if exact[&doc] == exact[&other] || is_copy && !of_copies {
            continue;
        }
        let link = links.get(&(doc, other)).or_else(|| links.get(&(other, doc)));
        let (similarity, is) = link.copied().unwrap_or_else(|| {
            let equal = features[&doc].iter().zip(&features[&other]).filter(|(a, b)| a == b).count();
            (equal as f32 / features[&doc].len() as f32, "estimated")
        });
        said.insert(urls[row].clone(), (urls[of].clone(), format!("{similarity:.4}"), is.to_owned()));
    }
    said
}

#[test]
fn near_duplicates_name_the_page_that_comes_first() {
    for (fields, keep, kinds) in [
        ("", "first", BTreeSet::from(["estimated"])),
        ("[cluster.method]\nsimilarity = 0.5\nverify = \"exact\"", "first", BTreeSet::from(["estimated", "exact"])),
        ("", "per-host", BTreeSet::from(["estimated"])),
    ] {
        let crawl = store(fields);
        let all = wanted(&crawl, keep == "per-host", true);
        let of_firsts = wanted(&crawl, keep == "per-host", false);
        let has_copies = all.len() > of_firsts.len();
        assert!(has_copies == (keep == "first") && of_firsts.len() > 3, "{all:?}");
        assert_eq!(all.values().map(|(_, _, is)| is.as_str()).collect::<BTreeSet<_>>(), kinds);
        for (out, flags) in [
            ("exact", &["--level", "exact"][..]),
            ("revisits", &["--level", "exact", "--revisits"]),
            ("similar", &["--level", "similar"]),
        ] {
            let [store, to] = ["store", out].map(|name| crawl.path(name).to_str().unwrap().to_owned());
            let command = ["export", &store, "--out", &to, "--near-duplicates", "--keep", keep];
            let said: Value =
                serde_json::from_str(&run_well(&[&command[..], flags, &["--json"]].concat()).stdout).unwrap();
            let wanted = if out == "exact" { &of_firsts } else { &all };
            assert_eq!(said["near_duplicates"], wanted.len());
            let records = records(&crawl, out);
            let ids: Vec<&String> = records.iter().map(|(head, _)| &head["WARC-Record-ID"]).collect();
            assert_eq!(ids.iter().collect::<BTreeSet<_>>().len(), ids.len(), "each id is there once");
            let of_page: BTreeMap<&str, (usize, &BTreeMap<String, String>)> = records
                .iter()
                .enumerate()
                .filter(|(_, (head, _))| ["response", "revisit"].contains(&head["WARC-Type"].as_str()))
                .map(|(place, (head, _))| (head["WARC-Target-URI"].as_str(), (place, head)))
                .collect();
            let mut found = BTreeMap::new();
            for (place, (head, block)) in
                records.iter().enumerate().filter(|(_, (head, _))| head["WARC-Type"] == "metadata")
            {
                let url = &head["WARC-Target-URI"];
                assert_eq!(
                    [&head["Content-Type"], &head["WARC-Date"]],
                    ["application/warc-fields", "2024-01-02T03:04:05Z"]
                );
                let fields: BTreeMap<&str, &str> = block.lines().map(|line| line.split_once(": ").unwrap()).collect();
                // It follows the record that it speaks of, and names it; so is the other one there.
                match of_page.get(url.as_str()) {
                    Some((of, page)) => assert_eq!((of + 1, &page["WARC-Record-ID"]), (place, &head["WARC-Refers-To"])),
                    None => assert_eq!(out, "similar"),
                }
                let (_, first) = of_page[fields["nearDuplicateOf"]];
                assert_eq!(first["WARC-Record-ID"], fields["nearDuplicateOfRecordId"]);
                assert_eq!(first["WARC-Date"], fields["nearDuplicateOfDate"]);
                let value = |name: &str| fields[name].to_owned();
                found.insert(url.clone(), (value("nearDuplicateOf"), value("similarity"), value("similarityIs")));
            }
            assert_eq!(found, *wanted, "{out}");
            // The same bytes for any number of workers.
            for workers in ["1", "2", "4"] {
                let to = crawl.path("again").to_str().unwrap().to_owned();
                let command =
                    ["export", &store, "--out", &to, "--near-duplicates", "--keep", keep, "--workers", workers];
                run_well(&[&command[..], flags].concat());
                for name in ["x.warc", "y.warc.gz", "z.warc.gz"] {
                    assert!(
                        crawl.bytes(&format!("again/{name}")) == crawl.bytes(&format!("{out}/{name}")),
                        "{out}, {name}"
                    );
                }
                std::fs::remove_dir_all(crawl.path("again")).unwrap();
            }
        }
    }
}

/// A second export of what was written keeps what is said of pages that stay.
#[test]
fn what_is_said_is_beside_its_page_and_refused_where_nothing_can_be_said() {
    let crawl = store("");
    let [store, out] = ["store", "out"].map(|name| crawl.path(name).to_str().unwrap().to_owned());
    let said = run_well(&["export", &store, "--out", &out, "--level", "exact", "--near-duplicates"]).stdout;
    let count = wanted(&crawl, false, false).len();
    assert!(said.contains(&format!("and {count} metadata records of near-duplicates")), "{said}");
    let again = crawl.path("store-2").to_str().unwrap().to_owned();
    run_well(&["run", "-q", "--no-accuracy", "--week", DATE, "--store", &again, "--input", &out]);
    let to = crawl.path("kept").to_str().unwrap().to_owned();
    run_well(&["export", &again, "--out", &to, "--level", "exact"]);
    let metadata = records(&crawl, "kept").into_iter().filter(|(head, _)| head["WARC-Type"] == "metadata");
    assert_eq!(metadata.count(), count);
    for flags in [&["--what", "removed"][..], &["--level", "paragraph"], &["--format", "jsonl"]] {
        let refused = run(&[&["export", &store, "--out", "x", "--near-duplicates"], flags].concat());
        assert!(refused.code == Some(2) && refused.stderr.contains("--near-duplicates"), "{}", refused.stderr);
    }
}
