//! What a revisit record says of its page, case by case: docs/inputs.md, Revisits.

use std::collections::BTreeMap;
use std::path::PathBuf;

use crate::program::{Ran, job, rows_of, run, run_well, texts, week};
use crate::weeks::partial::DATES;

const HTML: &str = "HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n\r\n";
const SAME: &str = "WARC-Profile: http://netpreserve.org/warc/1.1/revisit/identical-payload-digest";
const NOT_MODIFIED: &str = "WARC-Profile: http://netpreserve.org/warc/1.1/revisit/server-not-modified";
const NOTHING: &str = "sha1:3I42H3S6NNFQ2MSVX7XZKYAYSCX5QBYJ";
const NOT_KNOWN: &str = "revisit of a page that is not known";

/// The body of a page with this title.
fn body(title: &str) -> String {
    let words: Vec<String> = (0..30).map(|word| format!("{title}{word}")).collect();
    format!("<title>{title}</title><p>{}<a href=/a></a><a href=/home></a>", words.join(" "))
}

/// A record at a URL of one host: `time` is of the day of its week, and `fields` are further ones
/// of its head.
fn record(kind: &str, path: &str, time: &str, fields: &[&str], block: &str) -> String {
    let fields: String = fields.iter().map(|field| format!("{field}\r\n")).collect();
    format!(
        "WARC/1.0\r\nWARC-Type: {kind}\r\nWARC-Target-URI: http://a.example{path}\r\nWARC-Date: {time}\r\n{fields}Content-Type: \
         application/http; msgtype=response\r\nContent-Length: {}\r\n\r\n{block}\r\n\r\n",
        block.len()
    )
}

fn page(path: &str, time: &str, title: &str, fields: &[&str]) -> String {
    record("response", path, time, fields, &(HTML.to_owned() + &body(title)))
}

/// A store of small crawls.
struct Crawls {
    folder: tempfile::TempDir,
    job: PathBuf,
    weeks: usize,
}

impl Crawls {
    fn new(fields: &str) -> Crawls {
        let folder = tempfile::tempdir().unwrap();
        let text = format!("[cluster]\naccuracy = false\n{fields}\n[cluster.method]\nshards = 4\n");
        Crawls { job: job(folder.path(), &text), folder, weeks: 0 }
    }

    fn store(&self) -> PathBuf {
        self.folder.path().join("store")
    }

    fn arguments(&self, records: &[String], flags: &[&str]) -> Vec<String> {
        let input = self.folder.path().join(format!("crawl-{}.warc", self.weeks));
        std::fs::write(&input, records.concat()).unwrap();
        let [job, input, store] = [&self.job, &input, &self.store()].map(|path| path.to_str().unwrap().to_owned());
        let fixed = ["run", &job, "--week", DATES[self.weeks], "--input", &input, "--store", &store];
        fixed.iter().chain(flags).map(|argument| (*argument).to_owned()).collect()
    }

    /// Makes the next week of these records; returns what is printed.
    fn add(&mut self, records: &[String], flags: &[&str]) -> String {
        let arguments = self.arguments(records, flags);
        self.weeks += 1;
        run_well(&arguments.iter().map(String::as_str).collect::<Vec<_>>()).stdout
    }

    /// As [`Crawls::add`], where it may fail.
    fn try_add(&mut self, records: &[String], flags: &[&str]) -> Ran {
        let arguments = self.arguments(records, flags);
        run(&arguments.iter().map(String::as_str).collect::<Vec<_>>())
    }

    fn week(&self) -> PathBuf {
        week(&self.store(), DATES[self.weeks - 1])
    }

    /// The titles of the pages of the last week, by path.
    fn titles(&self) -> BTreeMap<String, String> {
        let path = |url: String| url.trim_start_matches("http://a.example").to_owned();
        let urls = texts(&self.week(), "documents", "url").into_iter().map(path);
        urls.zip(texts(&self.week(), "documents", "title")).collect()
    }

    /// The rows of `missing` of the last week, by path.
    fn missing(&self) -> BTreeMap<String, String> {
        let path = |url: String| url.trim_start_matches("http://a.example").to_owned();
        let urls = texts(&self.week(), "missing", "url").into_iter().map(path);
        urls.zip(texts(&self.week(), "missing", "reason")).collect()
    }
}

/// What the files in a folder have.
fn files_under(folder: &std::path::Path) -> Vec<Vec<u8>> {
    let entries = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    entries
        .flat_map(|path| if path.is_dir() { files_under(&path) } else { vec![std::fs::read(&path).unwrap()] })
        .collect()
}

fn map(pairs: &[(&str, &str)]) -> BTreeMap<String, String> {
    pairs.iter().map(|(a, b)| ((*a).to_owned(), (*b).to_owned())).collect()
}

/// They were counted as pages that are what others were, and were in no table.
#[test]
fn revisits_of_pages_outside_of_the_store_are_missing_and_fail_the_run() {
    let mut crawls = Crawls::new("");
    let time = "2024-01-08T01:02:03Z";
    let mut records = vec![page("/a", time, "alpha", &[]), page("/b", time, "beta", &[])];
    for number in 0..3 {
        let digest = format!("WARC-Payload-Digest: md5:{number:032x}");
        records.push(record("revisit", &format!("/old{number}"), time, &[SAME, &digest], HTML));
    }
    let failed = crawls.try_add(&records, &[]);
    assert_eq!(failed.code, Some(3), "{}", failed.stderr);
    for text in ["3 of 5 pages", "60.0%, the job accepts 5.0%", "3 in ", "crawl-0.warc", "max-unknown-share"] {
        assert!(failed.stderr.contains(text), "{text}: {}", failed.stderr);
    }
    let planned = crawls.try_add(&records, &["--dry-run"]);
    assert!(planned.code == Some(0) && planned.stdout.contains("Revisits"), "{}", planned.stdout);
    // What was read is kept: the same command goes on with another field.
    crawls.job = job(
        crawls.folder.path(),
        "[cluster]\naccuracy = false\nmax-unknown-share = 0.6\n[cluster.method]\nshards = 4\n",
    );
    let printed = crawls.add(&records, &[]);
    assert!(printed.contains("3  revisits: pages that are not known"), "{printed}");
    assert_eq!(crawls.titles(), map(&[("/a", "alpha"), ("/b", "beta")]));
    assert_eq!(crawls.missing(), map(&[("/old0", NOT_KNOWN), ("/old1", NOT_KNOWN), ("/old2", NOT_KNOWN)]));
    let summary = crate::program::records(&crawls.week()).join("summary.json");
    let summary: serde_json::Value = serde_json::from_str(&std::fs::read_to_string(summary).unwrap()).unwrap();
    let revisited = &summary["counts"]["revisited"];
    assert_eq!((&revisited["here"], &revisited["earlier"]), (&0.into(), &0.into()));
    assert_eq!(revisited["not_known"].as_object().unwrap().values().collect::<Vec<_>>(), [3]);
    // A later week has them as URLs that it knows, with and without a page.
    let time = "2024-01-15T01:02:03Z";
    crawls.add(&[page("/old1", time, "gamma", &[]), page("/a", time, "alpha", &[])], &[]);
    assert_eq!(crawls.titles(), map(&[("/a", "alpha"), ("/old1", "gamma")]));
    assert_eq!(crawls.missing(), map(&[("/b", "not seen"), ("/old0", "not seen"), ("/old2", "not seen")]));
    // So they can be deleted.
    run_well(&["delete", "--store", crawls.store().to_str().unwrap(), "--url", "http://a.example/old2", "-q"]);
    assert_eq!(crawls.missing(), map(&[("/b", "not seen"), ("/old0", "not seen")]));
}

/// Such a URL made up for a page of an earlier week in the order of documents: the root was not the
/// smallest one, and a delta after it failed.
#[test]
fn a_page_that_is_not_known_leaves_the_roots_as_they_are() {
    let mut crawls = Crawls::new("");
    let of_mode = |crawls: &Crawls, mode: &str| {
        let fields = format!("accuracy = false\nmax-unknown-share = 1.0\nmode = \"{mode}\"");
        job(crawls.folder.path(), &format!("[cluster]\n{fields}\n[cluster.method]\nshards = 1\n"))
    };
    crawls.job = of_mode(&crawls, "full");
    let digest = "WARC-Payload-Digest: sha1:VGMT4NSHA2AWVOR6EVYXQUGCNSONBWE5";
    let time = "2024-01-08T01:02:03Z";
    crawls.add(&[page("/a", time, "alpha", &[]), page("/b", time, "beta", &[digest])], &[]);
    let time = "2024-01-15T01:02:03Z";
    let unknown = "WARC-Payload-Digest: sha1:77777777777777777777777777777777";
    let records = [
        page("/c", time, "beta", &[]),
        record("revisit", "/a", time, &[SAME, digest, "WARC-Refers-To-Target-URI: http://a.example/b"], HTML),
        record("revisit", "/unknown", time, &[SAME, unknown], HTML),
    ];
    crawls.add(&records, &[]);
    let rows: BTreeMap<String, Vec<String>> = rows_of(&crawls.week(), "clusters", &["url", "doc", "similar_root"])
        .into_iter()
        .map(|row| (row[0].clone(), row[1..].to_vec()))
        .collect();
    let a = &rows["http://a.example/a"];
    assert_eq!((&a[1], &rows["http://a.example/c"][1]), (&a[0], &a[0]), "{rows:?}");
    crawls.job = of_mode(&crawls, "delta");
    let time = "2024-01-22T01:02:03Z";
    crawls.add(&[page("/a", time, "beta", &[]), page("/c", time, "beta", &[]), page("/d", time, "beta", &[])], &[]);
    assert_eq!(crawls.titles(), map(&[("/a", "beta"), ("/c", "beta"), ("/d", "beta")]));
}

/// A page that was gone, or had moved, became a page with status 200.
#[test]
fn the_stored_head_decides_the_status_the_type_and_the_redirect() {
    for absent in ["missing", "keep"] {
        let mut crawls = Crawls::new("max-unknown-share = 0.0");
        let digest = "WARC-Payload-Digest: sha1:VGMT4NSHA2AWVOR6EVYXQUGCNSONBWE5";
        let time = "2024-01-08T01:02:03Z";
        let paths = ["/soft", "/gone", "/moved", "/broken", "/image", "/same"];
        let first: Vec<String> = paths.iter().map(|path| page(path, time, "soft", &[digest])).collect();
        crawls.add(&first, &[]);
        let time = "2024-01-15T01:02:03Z";
        let of_soft = "WARC-Refers-To-Target-URI: http://a.example/soft";
        let heads = [
            ("/gone", "HTTP/1.1 410 Gone\r\n\r\n"),
            ("/moved", "HTTP/1.1 302 Found\r\nLocation: soft?x\r\n\r\n"),
            ("/broken", "HTTP/1.0 500 Oops\r\nContent-Type: text/html\r\n\r\n"),
            ("/image", "HTTP/1.1 200 OK\r\nContent-Type: image/gif\r\n\r\n"),
            ("/same", "HTTP/1.1 200 OK\r\nContent-Type: application/xhtml+xml; charset=x\r\n\r\n"),
        ];
        let mut second: Vec<String> =
            heads.iter().map(|(path, head)| record("revisit", path, time, &[SAME, digest, of_soft], head)).collect();
        second.push(page("/soft", time, "soft", &[digest]));
        crawls.add(&second, &["--absent", absent]);
        let mut titles = map(&[("/same", "soft"), ("/soft", "soft")]);
        let mut missing = map(&[("/gone", "status 410")]);
        // Other answers without a page do not say that it is gone.
        let others = [("/moved", "status 302"), ("/broken", "status 500"), ("/image", "not seen")];
        match absent {
            "keep" => titles.extend(map(&others.map(|(path, _)| (path, "soft")))),
            _ => missing.extend(map(&others)),
        }
        assert_eq!((crawls.titles(), crawls.missing()), (titles, missing), "{absent}");
        let redirects = rows_of(&crawls.week(), "redirects", &["url", "target_url", "status"]);
        assert_eq!(redirects, [["http://a.example/moved", "http://a.example/soft?x", "302"]]);
    }
}

/// Such a new URL was counted as one that earlier weeks have.
#[test]
fn known_urls_without_a_page_are_those_of_earlier_weeks() {
    let mut crawls = Crawls::new("max-unknown-share = 1.0");
    let time = "2024-01-08T01:02:03Z";
    let of_page = "WARC-Payload-Digest: sha1:VGMT4NSHA2AWVOR6EVYXQUGCNSONBWE5";
    crawls.add(&["/a", "/b", "/c"].map(|path| page(path, time, &path[1..], &[of_page])), &[]);
    let time = "2024-01-15T01:02:03Z";
    let digest = "WARC-Payload-Digest: sha1:77777777777777777777777777777777";
    let revisit = |path: &str| record("revisit", path, time, &[SAME, digest], HTML);
    let printed = crawls.add(&[page("/a", time, "a", &[]), revisit("/b"), revisit("/new")], &[]);
    assert_eq!(crawls.missing(), map(&[("/b", NOT_KNOWN), ("/c", "not seen"), ("/new", NOT_KNOWN)]));
    assert!(printed.contains("1 new URL; 2 known ones not downloaded"), "{printed}");
    let counts = |crawls: &Crawls| {
        let summary = std::fs::read(crate::program::records(&crawls.week()).join("summary.json")).unwrap();
        let since = serde_json::from_slice::<serde_json::Value>(&summary).unwrap()["since"].take();
        (since["not_downloaded"].as_u64().unwrap(), since["missing"][NOT_KNOWN].as_u64().unwrap())
    };
    assert_eq!(counts(&crawls), (2, 1));
    run_well(&["delete", "--store", crawls.store().to_str().unwrap(), "--url", "http://a.example/c", "-q"]);
    assert_eq!((counts(&crawls), crawls.missing().len()), ((1, 1), 2));
}

/// The media type of a page that comes from elsewhere is that of the answer.
#[test]
fn a_page_has_the_media_type_of_its_own_answer() {
    let mut crawls = Crawls::new("");
    let digest = "WARC-Payload-Digest: sha256:ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";
    let time = "2024-01-08T01:02:03Z";
    let head = "HTTP/1.1 200 OK\r\nContent-Type: Application/XHTML+xml\r\n\r\n";
    let other_spelling = "WARC-Payload-Digest: XJ4BNP4PAHH6UQKBIDPF3LRCEOYAGYNDSYLXVHFUCD7WD4QACWWQ====";
    crawls.add(&[page("/a", time, "alpha", &[digest]), record("revisit", "/b", time, &[other_spelling], head)], &[]);
    let rows = rows_of(&crawls.week(), "documents", &["url", "media_type", "status", "record_url"]);
    let rows: BTreeMap<String, Vec<String>> = rows.into_iter().map(|row| (row[0].clone(), row[1..].to_vec())).collect();
    assert_eq!(rows["http://a.example/a"], ["text/html", "200", "null"]);
    assert_eq!(rows["http://a.example/b"], ["application/xhtml+xml", "200", "http://a.example/a"]);
}

/// The page was lost, or became any empty page.
#[test]
fn the_digest_of_nothing_names_no_page() {
    let time = "2024-01-08T01:02:03Z";
    let spellings = [
        NOTHING,
        "SHA1:3i42h3s6nnfq2msvx7xzkyayscx5qbyj",
        "da39a3ee5e6b4b0d3255bfef95601890afd80709",
        "md5:D41D8CD98F00B204E9800998ECF8427E",
        "sha-256:4OYMIQUY7QOBJGX36TEJS35ZEQT24QPEMSNZGTFESWMRW6CSXBKQ====",
    ];
    for digest in spellings {
        let digest = format!("WARC-Payload-Digest: {digest}");
        let mut crawls = Crawls::new("max-unknown-share = 1.0");
        let empty = record("response", "/empty", time, &[&digest], HTML);
        crawls.add(&[page("/x", time, "xray", &[]), page("/y", time, "yankee", &[]), empty], &[]);
        let time = "2024-01-15T01:02:03Z";
        let not_modified = "HTTP/1.1 304 Not Modified\r\n\r\n";
        let own = "WARC-Refers-To-Target-URI: http://a.example/y";
        let records = [
            record("revisit", "/x", time, &[NOT_MODIFIED, &digest], ""),
            record("revisit", "/y", time, &[NOT_MODIFIED, &digest, own], not_modified),
            record("response", "/empty", time, &[&digest], HTML),
            // The payload was received, and is empty: that of a page which is not named.
            record("revisit", "/z", time, &[SAME, &digest], HTML),
        ];
        crawls.add(&records, &[]);
        assert_eq!(crawls.titles(), map(&[("/empty", ""), ("/x", "xray"), ("/y", "yankee")]), "{digest}");
        assert_eq!(crawls.missing(), map(&[("/z", NOT_KNOWN)]), "{digest}");
        // Nor is a digest looked up that a page has, if the server said that nothing changed.
        let time = "2024-01-22T01:02:03Z";
        let of_y = "WARC-Payload-Digest: sha1:VGMT4NSHA2AWVOR6EVYXQUGCNSONBWE5";
        let records = [
            page("/y", time, "yankee", &[of_y]),
            record("revisit", "/x", time, &[NOT_MODIFIED, of_y], ""),
            record("revisit", "/empty", time, &[SAME, of_y], not_modified),
        ];
        crawls.add(&records, &[]);
        assert_eq!(crawls.titles(), map(&[("/empty", ""), ("/x", "xray"), ("/y", "yankee")]), "{digest}");
    }
}

/// Records of WARC 1.0 have nothing else: the page stayed what it was, or was lost.
#[test]
fn a_record_id_names_the_page_before_any_url() {
    let id = |name: &str| format!("WARC-Record-ID: <urn:uuid:{name}>");
    let of = |name: &str| format!("WARC-Refers-To: <urn:uuid:{name}>");
    let mut crawls = Crawls::new("max-unknown-share = 1.0");
    let time = "2024-01-08T01:02:03Z";
    let records = [
        page("/x", time, "xray", &[&id("x-1")]),
        page("/y", time, "yankee", &[&id("y-1"), "WARC-Payload-Digest: sha1:VGMT4NSHA2AWVOR6EVYXQUGCNSONBWE5"]),
        page("/x", "2024-01-08T09:00:00Z", "later", &[&id("x-2")]),
    ];
    crawls.add(&records, &[]);
    let time = "2024-01-15T01:02:03Z";
    let of_x = "WARC-Refers-To-Target-URI: http://a.example/x";
    let records = [
        record("revisit", "/y", time, &[SAME, &of("x-1")], HTML),
        record("revisit", "/new", time, &[NOT_MODIFIED, &of("y-1"), of_x], ""),
        record("revisit", "/later", time, &[&of("x-2")], HTML),
        record("response", "/x", time, &[&of("x-2")], "HTTP/1.1 304 Not Modified\r\n\r\n"),
        // Its digest is another one: it is not that record.
        record("revisit", "/other", time, &[SAME, &of("y-1"), "WARC-Payload-Digest: sha1:7777"], HTML),
        // A record that no week has: the last capture of the URL.
        record("revisit", "/by-url", time, &[NOT_MODIFIED, &of("unknown"), of_x], ""),
    ];
    crawls.add(&records, &[]);
    let titles = [("/by-url", "later"), ("/later", "later"), ("/new", "yankee"), ("/x", "later"), ("/y", "xray")];
    assert_eq!(crawls.titles(), map(&titles));
    assert_eq!(crawls.missing(), map(&[("/other", NOT_KNOWN)]));
}

/// The record of the page that goes has the URL of one that stays.
#[test]
fn a_list_names_the_document_that_goes_and_not_that_of_its_record() {
    let mut crawls = Crawls::new("max-unknown-share = 1.0");
    crawls.add(&[page("/b", "2024-01-08T01:02:03Z", "old", &["WARC-Record-ID: <urn:uuid:b-1>"])], &[]);
    let time = "2024-01-15T01:02:03Z";
    let of_b = ["WARC-Refers-To: <urn:uuid:b-1>", "WARC-Refers-To-Target-URI: http://a.example/b"];
    let records = [
        record("revisit", "/longer", time, &[NOT_MODIFIED, of_b[0], of_b[1]], ""),
        page("/b", time, "new", &[]),
        page("/c", time, "old", &[]),
    ];
    crawls.add(&records, &[]);
    assert_eq!(crawls.titles(), map(&[("/b", "new"), ("/c", "old"), ("/longer", "old")]));
    let (store, list) = (crawls.store(), crawls.folder.path().join("list.txt"));
    let (store, list) = (store.to_str().unwrap(), list.to_str().unwrap());
    run_well(&["export", store, "--keep", "shortest-url", "--list", list]);
    assert_eq!(std::fs::read_to_string(list).unwrap(), "http://a.example/longer\n");
    run_well(&["delete", "--store", store, "--urls", list]);
    assert_eq!(crawls.titles(), map(&[("/b", "new"), ("/c", "old")]));
}

/// The record of a page that was deleted is that of another document: it is written as that one.
#[test]
fn an_export_has_the_urls_of_documents_and_not_those_of_their_records() {
    let mut crawls = Crawls::new("max-unknown-share = 1.0");
    let time = "2024-01-08T01:02:03Z";
    let of_b = ["WARC-Refers-To: <urn:uuid:b-1>", "WARC-Refers-To-Target-URI: http://a.example/b"];
    let records = [
        page("/b", time, "old", &["WARC-Record-ID: <urn:uuid:b-1>"]),
        record("request", "/b", time, &["WARC-Concurrent-To: <urn:uuid:b-1>"], "GET /b HTTP/1.1\r\n\r\n"),
        record("revisit", "/longer", "2024-01-09T01:02:03Z", &[NOT_MODIFIED, of_b[0], of_b[1]], ""),
    ];
    crawls.add(&records, &[]);
    let (store, list) = (crawls.store(), crawls.folder.path().join("list.txt"));
    let (store, list) = (store.to_str().unwrap(), list.to_str().unwrap());
    std::fs::write(list, "http://a.example/b\n").unwrap();
    run_well(&["delete", "--store", store, "--urls", list]);
    assert_eq!(crawls.titles(), map(&[("/longer", "old")]));
    let exported = |name: &str, flags: &[&str]| {
        let out = crawls.folder.path().join(name);
        run_well(&[&["export", store, "--out", out.to_str().unwrap()], flags].concat());
        files_under(&out).iter().map(|file| String::from_utf8_lossy(file).into_owned()).collect::<String>()
    };
    let index = crawls.folder.path().join("index.cdxj");
    let warc = exported("warc", &["--cdxj", index.to_str().unwrap()]);
    assert!(warc.contains("WARC-Target-URI: http://a.example/longer\r\nWARC-Date: 2024-01-09T01:02:03Z\r\n"), "{warc}");
    assert!(warc.contains("<title>old</title>") && !warc.contains("a.example/b") && !warc.contains("GET /b"), "{warc}");
    let index = std::fs::read_to_string(index).unwrap();
    assert!(index.lines().count() == 1 && index.contains("http://a.example/longer"), "{index}");
    let rows = exported("rows", &["--format", "jsonl"]);
    assert!(rows.contains("http://a.example/longer") && rows.contains("2024-01-09T01:02:03"), "{rows}");
    assert!(!rows.contains("a.example/b"), "{rows}");
}

/// Only the first capture of a URL in a week was known.
#[test]
fn every_capture_of_a_week_can_be_named() {
    let mut crawls = Crawls::new("max-unknown-share = 1.0");
    let digests = [
        "sha1:VGMT4NSHA2AWVOR6EVYXQUGCNSONBWE5",
        "md5:00000000000000000000000000000001",
        "sha1:77777777777777777777777777777777",
    ];
    let digests = digests.map(|digest| format!("WARC-Payload-Digest: {digest}"));
    let day = |time: &str| format!("2024-01-08T{time}Z");
    let mut records: Vec<String> = [("01:00:00", "first"), ("09:00:00.75", "second"), ("15:00:00", "third")]
        .iter()
        .zip(&digests)
        .map(|((time, title), digest)| {
            page("/x", &day(time), title, &[digest, &format!("WARC-Record-ID: <urn:x:{title}>")])
        })
        .collect();
    // In the same week, too, whatever the order of the records.
    let of_x = "WARC-Refers-To-Target-URI: http://a.example/x";
    records.insert(0, record("revisit", "/copy", &day("20:00:00"), &[SAME, &digests[1], of_x], HTML));
    // With the bytes of the first, again.
    records.push(page("/x", &day("16:00:00"), "first", &[&digests[0]]));
    crawls.add(&records, &[]);
    assert_eq!(crawls.titles(), map(&[("/copy", "second"), ("/x", "first")]));
    let captures = rows_of(&crawls.week(), "captures", &["url", "title", "record_id", "same", "words"]);
    let x = "http://a.example/x";
    assert_eq!(
        captures,
        [
            [x, "second", "urn:x:second", "false", "31"],
            [x, "third", "urn:x:third", "false", "31"],
            [x, "first", "null", "true", "31"]
        ]
    );
    let time = "2024-01-15T01:02:03Z";
    let date = |date: &str| format!("WARC-Refers-To-Date: 2024-01-08T{date}Z");
    let records = [
        record("revisit", "/by-digest", time, &[SAME, &digests[2]], HTML),
        record("revisit", "/by-date", time, &[NOT_MODIFIED, of_x, &date("09:00:00")], ""),
        record("revisit", "/second-off", time, &[NOT_MODIFIED, of_x, &date("14:59:59.9")], ""),
        record("revisit", "/far-off", time, &[NOT_MODIFIED, of_x, &date("14:59:57")], ""),
        record("revisit", "/by-id", time, &["WARC-Refers-To: <urn:x:third>"], HTML),
        record("revisit", "/again", time, &[NOT_MODIFIED, of_x, &date("16:00:01")], ""),
        record("revisit", "/x", time, &[SAME, &digests[1], of_x], HTML),
    ];
    crawls.add(&records, &[]);
    let titles = [
        ("/again", "first"),
        ("/by-date", "second"),
        ("/by-digest", "third"),
        ("/by-id", "third"),
        ("/second-off", "third"),
        ("/x", "second"),
    ];
    assert_eq!(crawls.titles(), map(&titles));
    assert_eq!(crawls.missing(), map(&[("/copy", "not seen"), ("/far-off", NOT_KNOWN)]));
    // The pages are whole: each has its features, links and lines.
    let of_week = crawls.week();
    for table in ["features", "chunks", "clusters"] {
        assert_eq!(rows_of(&of_week, table, &["doc"]).len(), titles.len(), "{table}");
    }
    // They can be read again where they are: an export has the records of all three.
    let out = crawls.folder.path().join("out");
    run_well(&["export", crawls.store().to_str().unwrap(), "--out", out.to_str().unwrap(), "--level", "exact"]);
    let exported: String = files_under(&out).iter().map(|file| String::from_utf8_lossy(file).into_owned()).collect();
    for title in ["first", "second", "third"] {
        assert!(exported.contains(&format!("<title>{title}</title>")), "{title}");
    }
    // The last state of /x is that of the revisit, not the last capture.
    crawls.add(&[record("revisit", "/x", "2024-01-22T01:02:03Z", &[NOT_MODIFIED], "")], &[]);
    assert_eq!(crawls.titles(), map(&[("/x", "second")]));
}

/// Most crawlers write revisits of images and styles, too.
#[test]
fn a_revisit_of_what_is_not_a_page_is_not_missed() {
    let mut crawls = Crawls::new("max-unknown-share = 0.0");
    let time = "2024-01-08T01:02:03Z";
    let records = [
        page("/a", time, "alpha", &[]),
        record(
            "revisit",
            "/style.css",
            time,
            &[SAME, "WARC-Payload-Digest: sha1:77777777777777777777777777777777"],
            HTML,
        ),
        record("response", "/logo.PNG?v=2", time, &[], "HTTP/1.1 304 Not Modified\r\n\r\n"),
    ];
    // This one says that it is a page.
    let failed = crawls.try_add(&records, &[]);
    assert!(failed.code == Some(3) && failed.stderr.contains("1 of 2 pages"), "{}", failed.stderr);
    let mut crawls = Crawls::new("max-unknown-share = 0.0");
    let records = [records[0].clone(), records[2].clone(), record("revisit", "/style.css", time, &[NOT_MODIFIED], "")];
    let printed = crawls.add(&records, &[]);
    assert!(printed.contains("2  revisits: other records"), "{printed}");
    assert_eq!((crawls.titles(), crawls.missing()), (map(&[("/a", "alpha")]), map(&[])));
    assert!(rows_of(&crawls.week(), "host-failures", &["host", "reason", "urls"]).is_empty());
}

/// An answer with a page counts before one without it, as of two responses.
#[test]
fn a_revisit_counts_before_a_failed_download_and_after_a_page() {
    let mut crawls = Crawls::new("max-unknown-share = 1.0");
    let time = "2024-01-08T01:02:03Z";
    let digest = "WARC-Payload-Digest: sha1:VGMT4NSHA2AWVOR6EVYXQUGCNSONBWE5";
    let unknown = "WARC-Payload-Digest: sha1:77777777777777777777777777777777";
    let gone = |path: &str| record("response", path, time, &[], "HTTP/1.1 404 Not Found\r\n\r\n");
    let records = [
        page("/a", time, "alpha", &[digest]),
        gone("/b"),
        record("revisit", "/b", time, &[SAME, unknown], HTML),
        record("revisit", "/b", time, &[SAME, digest], HTML),
        record("revisit", "/c", time, &[SAME, digest], HTML),
        page("/c", time, "gamma", &[]),
    ];
    let printed = crawls.add(&records, &[]);
    assert_eq!(crawls.titles(), map(&[("/a", "alpha"), ("/b", "alpha"), ("/c", "gamma")]));
    assert!(
        printed.contains("1  revisits: pages of this crawl") && printed.contains("2  revisits: other"),
        "{printed}"
    );
    assert!(rows_of(&crawls.week(), "host-failures", &["reason"]).is_empty());
}

/// A captured page that was deleted does not come back from a later capture, as it does not from
/// `documents`.
#[test]
fn later_captures_of_a_deleted_page_are_deleted() {
    let mut crawls = Crawls::new("max-unknown-share = 1.0");
    let digest = |number: u32| format!("WARC-Payload-Digest: md5:{number:032x}");
    let captures = |path: &str, first: u32| {
        [1, 2].map(|hour| {
            page(
                path,
                &format!("2024-01-08T0{hour}:00:00Z"),
                &format!("{}{hour}", &path[1..]),
                &[&digest(first + hour)],
            )
        })
    };
    crawls.add(&[captures("/a", 10), captures("/b", 20)].concat(), &[]);
    assert_eq!(texts(&crawls.week(), "captures", "title").len(), 2);
    assert!(texts(&crawls.week(), "captures", "links").iter().all(|links| links.contains("example/a")));
    run_well(&["delete", "--store", crawls.store().to_str().unwrap(), "--url", "http://a.example/a", "-q"]);
    assert_eq!(rows_of(&crawls.week(), "captures", &["title", "links"]), [["b2", "http://a.example/home"]]);
    let time = "2024-01-15T01:02:03Z";
    let records = [
        record("revisit", "/c", time, &[SAME, &digest(12)], HTML),
        record("revisit", "/d", time, &[SAME, &digest(22)], HTML),
    ];
    crawls.add(&records, &[]);
    assert_eq!((crawls.titles(), crawls.missing()["/c"].as_str()), (map(&[("/d", "b2")]), NOT_KNOWN));
}

/// The page of such a document is in a record of another URL.
#[test]
fn chunks_that_are_made_later_are_those_of_revisits_too() {
    let digest = "WARC-Payload-Digest: sha1:VGMT4NSHA2AWVOR6EVYXQUGCNSONBWE5";
    let of_week = |chunks: bool| {
        let mut crawls = Crawls::new(&format!("max-unknown-share = 0.0\nkeep = {{ chunks = {chunks} }}"));
        let time = "2024-01-08T01:02:03Z";
        crawls.add(&[page("/a", time, "alpha", &[]), page("/b", time, "beta", &[digest])], &[]);
        let time = "2024-01-15T01:02:03Z";
        let of_b = "WARC-Refers-To-Target-URI: http://a.example/b";
        let revisits = ["/a", "/new"].map(|path| record("revisit", path, time, &[SAME, digest, of_b], HTML));
        crawls.add(&[&revisits[..], &[page("/b", time, "other", &[])]].concat(), &[]);
        assert_eq!(crawls.titles(), map(&[("/a", "beta"), ("/b", "other"), ("/new", "beta")]));
        crawls
    };
    let chunks = |crawls: &Crawls| {
        let mut rows = rows_of(&crawls.week(), "chunks", &["doc", "text", "characters", "lines", "paragraphs"]);
        rows.sort();
        rows
    };
    let (with, without) = (of_week(true), of_week(false));
    assert_eq!((chunks(&with).len(), chunks(&without).len()), (3, 0));
    let inputs = [0, 1].map(|number| without.folder.path().join(format!("crawl-{number}.warc")));
    let store = without.store();
    let [store, first, second] = [&store, &inputs[0], &inputs[1]].map(|path| path.to_str().unwrap());
    let job = ["run", "jobs/chunks.toml", "--store", store, "--week", DATES[1], "--input", first, second];
    let printed = run_well(&job).stdout;
    assert!(printed.contains("3 of 3 pages") && !printed.contains("missing"), "{printed}");
    assert_eq!(chunks(&without), chunks(&with));
}

/// A page of a revisit is read again from the file of an earlier week.
#[test]
fn a_store_of_revisits_as_a_reference_has_the_pages_that_they_name() {
    let mut crawls = Crawls::new("");
    let digest = "WARC-Payload-Digest: sha1:VGMT4NSHA2AWVOR6EVYXQUGCNSONBWE5";
    let time = "2024-01-08T01:02:03Z";
    crawls.add(&[page("/a", time, "alpha", &[digest]), page("/gone", time, "beta", &[])], &[]);
    let time = "2024-01-15T01:02:03Z";
    crawls.add(&[record("revisit", "/b", time, &[SAME, digest], HTML), page("/c", time, "gamma", &[])], &[]);
    assert_eq!(crawls.titles(), map(&[("/b", "alpha"), ("/c", "gamma")]));
    let texts = crawls.folder.path().join("texts.jsonl");
    std::fs::write(&texts, "{\"text\":\"of no page\"}\n").unwrap();
    let [store, input, others] =
        [&crawls.folder.path().join("other"), &texts, &crawls.store()].map(|path| path.to_str().unwrap().to_owned());
    run_well(&["run", "--week", DATES[0], "--store", &store, "--input", &input, "-q"]);
    run_well(&["run", "--store", &store, "--against", &others, "-q"]);
    let items = rows_of(&crawls.folder.path().join("other/decontamination"), "items", &["id"]);
    assert_eq!(items.concat(), ["http://a.example/a", "http://a.example/c"]);
}
