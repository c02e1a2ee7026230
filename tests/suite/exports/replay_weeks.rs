//! Exports of a week that refer to pages of the weeks before.
//!
//! `NIGH_HISTORIES` is how many random stores are tried, with seeds from 0 on; without it 6.

use std::collections::BTreeMap;
use std::path::Path;

use serde_json::Value;
use xxhash_rust::xxh3::xxh3_64;

use crate::exports::replay::{ReplayedCrawl, gzip, script, text};
use crate::program::{run, run_well};

const DATES: [&str; 4] = ["2024-01-08", "2024-01-15", "2024-01-22", "2024-01-29"];

/// A response: its path at a host, its text, and how it is written.
#[derive(Clone, Copy)]
struct ReplayedCapture<'a> {
    host: &'a str,
    path: usize,
    text: usize,
    form: WrittenForm,
}

#[derive(Clone, Copy, PartialEq)]
enum WrittenForm {
    Plain,
    Gzip,
    /// With the digest in lower-case hexadecimal digits.
    Digest,
    /// In upper-case base32.
    Base32,
}

fn page(path: usize, text: usize) -> ReplayedCapture<'static> {
    ReplayedCapture { host: "h", path, text, form: WrittenForm::Plain }
}

/// Its text; those from 20 to 23 are near-duplicates.
fn words(number: usize) -> String {
    if (20..24).contains(&number) { format!("{} last{number}", text(20)) } else { text(number) }
}

/// Its record, in the week with this number.
fn record(week: usize, capture: ReplayedCapture<'_>) -> Vec<u8> {
    let ReplayedCapture { host, path, text: number, form } = capture;
    let body = format!("<p>{}", words(number)).into_bytes();
    let (encoding, body) = match form {
        WrittenForm::Gzip => ("Content-Encoding: gzip\r\n", gzip(&body)),
        _ => ("", body),
    };
    let digest = ring::digest::digest(&ring::digest::SHA1_FOR_LEGACY_USE_ONLY, &body);
    let digest = match form {
        WrittenForm::Digest => {
            let digits: String = digest.as_ref().iter().map(|byte| format!("{byte:02x}")).collect();
            format!("WARC-Payload-Digest: sha1:{digits}\r\n")
        }
        WrittenForm::Base32 => format!("WARC-Payload-Digest: sha1:{}\r\n", base32(digest.as_ref())),
        _ => String::new(),
    };
    let http = format!("HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n{encoding}\r\n");
    let block = [http.as_bytes(), &body].concat();
    let (url, date) = (format!("http://{host}.example/{path}"), DATES[week]);
    let head = format!(
        "WARC/1.0\r\nWARC-Type: response\r\nWARC-Record-ID: <urn:x:{week}:{host}:{path}>\r\nWARC-Date: \
         {date}T03:04:05Z\r\nWARC-Target-URI: {url}\r\n{digest}Content-Type: application/http\r\nContent-Length: {}\r\n\r\n",
        block.len()
    );
    [head.as_bytes(), &block, b"\r\n\r\n"].concat()
}

fn base32(bytes: &[u8]) -> String {
    let bits: String = bytes.iter().map(|byte| format!("{byte:08b}")).collect();
    let value = |bits: &str| usize::from_str_radix(bits, 2).unwrap();
    (0..bits.len()).step_by(5).map(|at| b"ABCDEFGHIJKLMNOPQRSTUVWXYZ234567"[value(&bits[at..at + 5])] as char).collect()
}

/// Makes a week of some files of captures.
fn add(crawl: &ReplayedCrawl, week: usize, files: &[(&str, Vec<ReplayedCapture<'_>>)]) {
    let mut names = Vec::new();
    for (name, captures) in files {
        let records = captures.iter().map(|capture| record(week, *capture));
        let records: Vec<u8> =
            records.flat_map(|record| if name.ends_with(".gz") { gzip(&record) } else { record }).collect();
        std::fs::write(crawl.path(name), records).unwrap();
        names.push(crawl.path(name).to_str().unwrap().to_owned());
    }
    cluster(crawl, week, &names);
}

/// Makes a week of these files.
fn cluster(crawl: &ReplayedCrawl, week: usize, names: &[String]) {
    let store = crawl.path("store").to_str().unwrap().to_owned();
    let fixed = ["run", "-q", "--no-accuracy", "--week", DATES[week], "--store", &store, "--input"];
    let names = names.iter().map(String::as_str);
    run_well(&fixed.into_iter().chain(names).collect::<Vec<_>>());
}

/// What each revisit of an export refers to, by its URL: the URL and the day of the other record.
fn references(crawl: &ReplayedCrawl, out: &str) -> BTreeMap<String, (String, String)> {
    let mut found = BTreeMap::new();
    for path in std::fs::read_dir(crawl.path(out)).unwrap().map(|entry| entry.unwrap().path()) {
        let Ok(bytes) = std::fs::read(&path) else { continue };
        let bytes = if bytes.starts_with(&[0x1f, 0x8b]) {
            let mut text = Vec::new();
            std::io::Read::read_to_end(&mut flate2::read::MultiGzDecoder::new(&bytes[..]), &mut text).unwrap();
            text
        } else {
            bytes
        };
        let all = String::from_utf8_lossy(&bytes).into_owned();
        for head in all.split("WARC/1.0\r\nWARC-Type: revisit\r\n").skip(1) {
            let field = |name: &str| {
                let start = head.find(&format!("\r\n{name}: ")).unwrap() + name.len() + 4;
                head[start..].split("\r\n").next().unwrap().to_owned()
            };
            let day = field("WARC-Refers-To-Date")[..10].to_owned();
            let week = DATES.iter().position(|date| *date == day).unwrap();
            let (url, of) = (field("WARC-Target-URI"), field("WARC-Refers-To-Target-URI"));
            let id = of.trim_start_matches("http://").replace(".example/", ":");
            assert_eq!(field("WARC-Refers-To"), format!("<urn:x:{week}:{id}>"));
            found.insert(url, (of, day));
        }
    }
    found
}

fn wanted(pairs: &[(usize, usize, usize)]) -> BTreeMap<String, (String, String)> {
    let url = |path: &usize| format!("http://h.example/{path}");
    pairs.iter().map(|(from, to, week)| (url(from), (url(to), DATES[*week].to_owned()))).collect()
}

fn counts(counts: &Value) -> [u64; 5] {
    ["documents", "written", "revisits", "outside", "kept_whole"].map(|name| counts[name].as_u64().unwrap())
}

#[test]
fn a_page_of_a_week_before_is_referred_to_where_it_was_first() {
    let crawl = ReplayedCrawl::new();
    add(&crawl, 0, &[("a.warc", vec![page(0, 0), page(1, 1), page(2, 2)])]);
    // Page 1 changes, and comes back in the third week. Page 3 has the text of page 2.
    add(&crawl, 1, &[("b.warc", vec![page(0, 0), page(1, 5), page(3, 2), page(4, 5)])]);
    add(
        &crawl,
        2,
        &[("c.warc.gz", vec![page(1, 1), page(4, 5)]), ("d.warc", vec![page(0, 0), page(5, 7), page(6, 7)])],
    );
    let week = |number: usize, out: &str, flags: &[&str]| {
        crawl.export(out, &[&["--revisits", "--week", DATES[number]], flags].concat())
    };
    assert_eq!(counts(&week(0, "first", &[])), [3, 3, 0, 0, 0]);
    assert_eq!(counts(&week(1, "second", &[])), [4, 1, 3, 2, 0]);
    assert_eq!(references(&crawl, "second"), wanted(&[(0, 0, 0), (3, 2, 0), (4, 1, 1)]));
    assert_eq!(counts(&week(2, "third", &[])), [5, 1, 4, 3, 0]);
    assert_eq!(references(&crawl, "third"), wanted(&[(0, 0, 0), (1, 1, 0), (4, 1, 1), (6, 5, 2)]));
    // The same again has nothing to do, and another number of workers writes the same.
    assert_eq!(counts(&week(2, "third", &[])), [5, 1, 4, 3, 0]);
    for workers in ["1", "2", "4"] {
        let out = format!("third-{workers}");
        week(2, &out, &["--workers", workers]);
        for name in ["c.warc.gz", "d.warc"] {
            assert!(
                crawl.bytes(&format!("{out}/{name}")) == crawl.bytes(&format!("third/{name}")),
                "{workers}: {name}"
            );
        }
    }
    // Nothing outside.
    assert_eq!(counts(&week(2, "alone", &["--alone"])), [5, 4, 1, 0, 0]);
    assert_eq!(references(&crawl, "alone"), wanted(&[(6, 5, 2)]));
    let [store, out] = ["store", "said"].map(|name| crawl.path(name).to_str().unwrap().to_owned());
    let command = ["export", &store, "--out", &out, "--level", "exact"];
    let said = run_well(&[&command[..], &["--revisits"]].concat()).stdout;
    assert!(
        said.contains("and 1 revisits of records that stay")
            && said.contains("and 3 revisits of records of earlier weeks"),
        "{said}"
    );
    let refused = run(&[&command[..], &["--alone"]].concat());
    assert!(refused.code == Some(2) && refused.stderr.contains("--revisits"), "{}", refused.stderr);
}

/// What the store or the disk does not have is not referred to.
#[test]
fn a_week_or_a_page_or_a_file_that_went_is_not_referred_to() {
    let crawl = ReplayedCrawl::new();
    let captures = || vec![page(0, 0), page(1, 1), page(2, 2)];
    add(&crawl, 0, &[("a.warc", captures())]);
    add(&crawl, 1, &[("b.warc", captures())]);
    let store = crawl.path("store").to_str().unwrap().to_owned();
    run_well(&["delete", "--store", &store, "--url", "http://h.example/1"]);
    add(&crawl, 2, &[("c.warc", vec![page(0, 0), page(3, 1), page(2, 2)])]);
    crawl.export("deleted", &["--revisits"]);
    assert_eq!(references(&crawl, "deleted"), wanted(&[(0, 0, 0), (2, 2, 0)]), "page 1 was deleted");
    // A file that changed, or is not there.
    let other = [record(0, page(0, 0)), record(0, page(2, 9))].concat();
    std::fs::rename(crawl.path("a.warc"), crawl.path("away")).unwrap();
    for (out, bytes) in [("gone", None), ("changed", Some(other))] {
        bytes.iter().for_each(|bytes| std::fs::write(crawl.path("a.warc"), bytes).unwrap());
        let to = crawl.path(out).to_str().unwrap().to_owned();
        let ran = run_well(&["export", &store, "--out", &to, "--level", "exact", "--revisits"]);
        assert!(ran.stderr.contains("a.warc of week 2024-01-08 is not there as it was"), "{}", ran.stderr);
        assert_eq!(references(&crawl, out), wanted(&[(0, 0, 1), (2, 2, 1)]), "{out}");
    }
    // Told to read it all the same, what is there as it was is referred to.
    crawl.export("touched", &["--revisits", "--touched"]);
    assert_eq!(references(&crawl, "touched"), wanted(&[(0, 0, 0), (2, 2, 1)]));
    std::fs::remove_file(crawl.path("a.warc")).unwrap();
    std::fs::rename(crawl.path("away"), crawl.path("a.warc")).unwrap();
    run_well(&["vacuum", "--store", &store, "--keep", "2"]);
    crawl.export("vacuumed", &["--revisits"]);
    assert_eq!(references(&crawl, "vacuumed"), wanted(&[(0, 0, 1), (2, 2, 1)]));
    run_well(&["vacuum", "--store", &store, "--keep", "1"]);
    assert_eq!(counts(&crawl.export("one", &["--revisits"])), [3, 3, 0, 0, 0]);
}

/// The record of a page can be that of another URL, which was deleted.
#[test]
fn the_record_of_a_deleted_page_is_not_referred_to_as_that_of_another() {
    let crawl = ReplayedCrawl::new();
    add(&crawl, 0, &[("a.warc", vec![page(0, 0)])]);
    let revisit = format!(
        "WARC/1.0\r\nWARC-Type: revisit\r\nWARC-Date: {}T05:00:00Z\r\nWARC-Target-URI: http://h.example/9\r\nWARC-Refers-To: \
         <urn:x:1:h:0>\r\nContent-Length: 0\r\n\r\n\r\n\r\n",
        DATES[1]
    );
    let records = [record(1, page(0, 0)), record(1, page(1, 1)), revisit.into_bytes()].concat();
    std::fs::write(crawl.path("b.warc"), records).unwrap();
    cluster(&crawl, 1, &[crawl.path("b.warc").to_str().unwrap().to_owned()]);
    let third = || add(&crawl, 2, &[("c.warc", vec![page(5, 0), page(1, 1)])]);
    third();
    crawl.export("before", &["--revisits"]);
    assert_eq!(references(&crawl, "before"), wanted(&[(5, 0, 0), (1, 1, 1)]));
    let store = crawl.path("store").to_str().unwrap().to_owned();
    std::fs::remove_dir_all(crawl.path("store")).unwrap();
    add(&crawl, 0, &[("a.warc", vec![page(0, 0)])]);
    cluster(&crawl, 1, &[crawl.path("b.warc").to_str().unwrap().to_owned()]);
    run_well(&["delete", "--store", &store, "--url", "http://h.example/0"]);
    third();
    crawl.export("after", &["--revisits"]);
    assert_eq!(references(&crawl, "after"), wanted(&[(1, 1, 1)]));
}

/// A crawl that writes each week over the one before; and a WACZ, which is replayed alone.
#[test]
fn files_of_this_week_and_packages_are_not_of_a_week_before() {
    let crawl = ReplayedCrawl::new();
    add(&crawl, 0, &[("a.warc", vec![page(0, 0), page(1, 1)])]);
    add(&crawl, 1, &[("a.warc", vec![page(0, 0), page(2, 1)])]);
    assert_eq!(counts(&crawl.export("over", &["--revisits"])), [2, 2, 0, 0, 0]);
    // Cumulative: the same files, and a further one.
    std::fs::remove_dir_all(crawl.path("store")).unwrap();
    let first = vec![page(0, 0), page(1, 1)];
    add(&crawl, 0, &[("a.warc", first.clone())]);
    add(&crawl, 1, &[("b.warc", vec![page(2, 1)]), ("a.warc", first)]);
    assert_eq!(counts(&crawl.export("cumulative", &["--revisits"])), [3, 2, 1, 0, 0]);

    let crawl = ReplayedCrawl::new();
    let data = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/formats/pages.wacz");
    for name in ["one.wacz", "two.wacz"] {
        std::fs::copy(&data, crawl.path(name)).unwrap();
    }
    let store = crawl.path("store").to_str().unwrap().to_owned();
    for (date, name) in DATES.iter().zip(["one.wacz", "two.wacz"]) {
        let input = crawl.path(name).to_str().unwrap().to_owned();
        run_well(&["run", "-q", "--no-accuracy", "--week", date, "--store", &store, "--input", &input]);
    }
    assert_eq!(crawl.export("out", &["--revisits"])["outside"], 0);
}

/// Random weeks, against a twin that keeps every record: of equal payloads the first of the oldest
/// week is referred to, else the first of the week.
#[test]
fn references_of_random_weeks_are_those_of_a_twin() {
    let histories = std::env::var("NIGH_HISTORIES").map_or(6, |count| count.parse().unwrap());
    for seed in 0..histories {
        let crawl = ReplayedCrawl::new();
        let number = |what: &str, of: u64| xxh3_64(format!("{seed} {what}").as_bytes()) % of;
        let per_host = seed % 3 == 2;
        // Body and encoding, host or none, to the URL and the day.
        let mut first: BTreeMap<(usize, bool, String), (String, String)> = BTreeMap::new();
        for (week, date) in DATES.iter().enumerate() {
            let mut files: Vec<(String, Vec<ReplayedCapture<'_>>)> = Vec::new();
            for name in ["a.warc", "b.warc.gz"] {
                let captures = (0..number(&format!("{week} {name} count"), 8)).map(|place| {
                    let number = |what: &str, of| number(&format!("{week} {name} {place} {what}"), of);
                    let form = [WrittenForm::Plain, WrittenForm::Gzip, WrittenForm::Digest, WrittenForm::Base32]
                        [number("form", 4) as usize];
                    let path = place as usize * 2 + usize::from(name == "a.warc");
                    ReplayedCapture {
                        host: ["g", "h"][number("host", 2) as usize],
                        path,
                        text: number("text", 5) as usize,
                        form,
                    }
                });
                files.push((format!("{week}{name}"), captures.collect()));
            }
            files[0].1.push(page(90, 90 + week));
            let named: Vec<(&str, Vec<ReplayedCapture<'_>>)> =
                files.iter().map(|(name, captures)| (name.as_str(), captures.clone())).collect();
            add(&crawl, week, &named);
            let mut wanted = BTreeMap::new();
            for capture in files.iter().flat_map(|(_, captures)| captures) {
                let host = if per_host { capture.host.to_owned() } else { String::new() };
                let url = format!("http://{}.example/{}", capture.host, capture.path);
                let own = (url.clone(), (*date).to_owned());
                let of =
                    first.entry((capture.text, capture.form == WrittenForm::Gzip, host)).or_insert_with(|| own.clone());
                if *of != own {
                    wanted.insert(url, of.clone());
                }
            }
            let keep = if per_host { "per-host" } else { "first" };
            let out = format!("out{week}");
            let said = crawl.export(&out, &["--revisits", "--keep", keep, "--workers", ["1", "2", "4"][week % 3]]);
            let found = references(&crawl, &out);
            assert_eq!(found, wanted, "seed {seed}, {date}, NIGH_HISTORIES={}", seed + 1);
            let outside = wanted.values().filter(|(_, day)| day != date).count();
            assert_eq!((&said["revisits"], &said["outside"]), (&wanted.len().into(), &outside.into()));
        }
    }
}

/// The exports of three weeks together have every page of the inputs.
#[test]
fn the_exports_of_all_weeks_are_replayed_together() {
    let crawl = ReplayedCrawl::new();
    std::fs::create_dir(crawl.path("out")).unwrap();
    let forms = [WrittenForm::Plain, WrittenForm::Gzip, WrittenForm::Digest, WrittenForm::Base32];
    let (mut index, mut said) = (Vec::new(), [0; 5]);
    for week in 0..3 {
        // Texts 20 to 23 are near-duplicates of each other.
        let captures = |from: usize| {
            let form = |path: usize| forms[(path + week) % 4];
            let near = (8..11).map(move |path| (path, 20 + (path + week) % 4));
            let pages = (0..8).map(move |path| (path, (path + week * (path % 2)) % 6)).chain(near);
            pages.map(move |(path, text)| ReplayedCapture { host: ["g", "h"][from], path, text, form: form(path) })
        };
        let [a, b] = [("a", 0), ("b", 1)].map(|(name, from)| (format!("in/{week}{name}.warc.gz"), captures(from)));
        add(&crawl, week, &[(&a.0, a.1.collect()), (&b.0, b.1.collect())]);
        let (out, cdxj) = (format!("out/{week}"), crawl.path(&format!("{week}.cdxj")));
        let flags = ["--revisits", "--near-duplicates", "--cdxj", cdxj.to_str().unwrap()];
        let of_week = counts(&crawl.export(&out, &flags));
        said.iter_mut().zip(of_week).for_each(|(sum, count)| *sum += count);
        index.extend(std::fs::read_to_string(cdxj).unwrap().lines().map(str::to_owned));
    }
    let [documents, written, revisits, outside, kept_whole] = said;
    assert_eq!(documents, 66);
    assert_eq!(written + revisits + kept_whole, documents);
    assert!(outside > 20, "{said:?}");
    index.sort();
    std::fs::write(crawl.path("index.cdxj"), index.join("\n") + "\n").unwrap();
    let checked = script(&[Path::new("check"), &crawl.path("in"), &crawl.path("out"), &crawl.path("index.cdxj")]);
    let Some(seen) = checked else { return };
    let seen: Value = serde_json::from_str(&seen).unwrap();
    assert_eq!([&seen["pages"], &seen["revisit"]], [&Value::from(documents), &Value::from(revisits)]);
    assert!(seen["metadata"].as_u64() > Some(5), "{seen}");
}
