//! Web archives as their writers leave them: answers to POST, other schemes, WACZ files with more
//! than WARC files, crawls by name.

use std::io::{BufRead as _, BufReader, Write as _};
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::program::{data, job, longs, nigh, ran, texts, week};

const WEEK: &str = "2024-01-08";

fn record(kind: &str, url: &str, fields: &str, block: &str) -> String {
    let length = block.len();
    format!(
        "WARC/1.1\r\nWARC-Type: {kind}\r\nWARC-Target-URI: {url}\r\n{fields}Content-Length: {length}\r\n\r\n{block}\r\n\r\n"
    )
}

fn response(url: &str, id: &str, words: &str) -> String {
    let block = format!("HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n\r\n<title>{id}</title><p>{words}");
    record("response", url, &format!("WARC-Record-ID: <urn:{id}>\r\n"), &block)
}

fn request(url: &str, of: &str, method: &str) -> String {
    record("request", url, &format!("WARC-Concurrent-To: <urn:{of}>\r\n"), &format!("{method} / HTTP/1.1\r\n\r\n"))
}

fn small_job(folder: &Path) -> PathBuf {
    job(folder, &format!("[cluster]\nweek = \"{WEEK}\"\n[cluster.method]\nshards = 4\n"))
}

fn run(folder: &Path, store: &str, inputs: &[&str], flags: &[&str]) -> Command {
    let (job, store) = (small_job(folder), folder.join(store));
    let mut command = nigh(&["run", job.to_str().unwrap(), "--store", store.to_str().unwrap()]);
    command.args(flags).args(inputs.iter().flat_map(|input| ["--input", input]));
    command
}

#[test]
fn of_answers_to_get_and_post_that_to_get_is_the_document() {
    let folder = tempfile::tempdir().unwrap();
    let write = |name: &str, text: String| {
        let path = folder.path().join(name);
        std::fs::write(&path, text).unwrap();
        path.to_str().unwrap().to_owned()
    };
    let (form, only, last) = ("http://a.example/form", "http://a.example/only", "http://a.example/last");
    let a = write(
        "a.warc",
        response(form, "posted", "one two three")
            + &request(form, "posted", "POST")
            + &response(form, "got", "four five six")
            + &request(form, "got", "GET")
            + &response(only, "only", "seven eight")
            + &request(only, "only", "POST")
            + &request(last, "head", "HEAD")
            + &response(last, "head", ""),
    );
    // In another file, which another worker reads.
    let b = write("b.warc", response(last, "page", "nine ten") + &request(last, "page", "GET"));
    for workers in ["1", "2"] {
        let store = format!("store-{workers}");
        let ran = ran(&mut run(folder.path(), &store, &[&a, &b], &["--workers", workers, "--json"]));
        assert_eq!(ran.code, Some(0), "{}", ran.stderr);
        let week = week(&folder.path().join(&store), WEEK);
        let mut rows: Vec<_> =
            texts(&week, "documents", "url").into_iter().zip(texts(&week, "documents", "title")).collect();
        rows.sort();
        let row = |url: &str, title: &str| (url.to_owned(), title.to_owned());
        assert_eq!(rows, [row(form, "got"), row(last, "page"), row(only, "only")]);
    }
}

#[test]
fn the_segments_of_a_page_are_written_with_it_or_not_at_all() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.warc");
    let url = "http://a.example/segmented";
    let block = "HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n\r\n<p>one two three four";
    let (start, end) = block.split_at(56);
    let first = record("response", url, "WARC-Record-ID: <urn:s>\r\nWARC-Segment-Number: 1\r\n", start);
    let total = block.len();
    let fields = format!(
        "WARC-Record-ID: <urn:s2>\r\nWARC-Segment-Number: 2\r\nWARC-Segment-Origin-ID: <urn:s>\r\nWARC-Segment-Total-Length: {total}\r\n"
    );
    let last = record("continuation", url, &fields, end);
    std::fs::write(&path, first + &response("http://a.example/", "1", "five six") + &last).unwrap();
    let ran_well = |arguments: &[&str]| {
        let ran = ran(&mut nigh(arguments));
        assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    };
    let ran = ran(&mut run(folder.path(), "store", &[path.to_str().unwrap()], &[]));
    assert!(ran.stdout.contains("2 documents") && ran.stdout.contains("0 cut"), "{}", ran.stdout);
    let (store, out) = (folder.path().join("store"), folder.path().join("out"));
    let (store, out) = (store.to_str().unwrap(), out.to_str().unwrap());
    ran_well(&["export", store, "--out", out]);
    let written = |out: &str| {
        let files: Vec<_> = std::fs::read_dir(out).unwrap().map(|entry| entry.unwrap().path()).collect();
        let warc = files.iter().find(|file| file.extension().is_some_and(|ending| ending == "warc")).unwrap();
        std::fs::read(warc).unwrap()
    };
    assert!(written(out) == std::fs::read(&path).unwrap(), "all records stay");
    ran_well(&["delete", "--store", store, "--url", url]);
    let without = format!("{out}-2");
    ran_well(&["export", store, "--out", &without]);
    assert_eq!(String::from_utf8(written(&without)).unwrap(), response("http://a.example/", "1", "five six"));
}

#[test]
fn records_of_other_schemes_have_a_line_of_their_own() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.warc");
    let other = |url: &str| record("resource", url, "Content-Type: text/html\r\n", "<p>words of another scheme");
    let others = ["onreadydom:http://a.example/", "ftp://a.example/", "urn:text:x", "file:///x"].map(other).concat();
    std::fs::write(&path, response("http://a.example/", "1", "one two three") + &others).unwrap();
    let ran = ran(&mut run(folder.path(), "store", &[path.to_str().unwrap()], &[]));
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    assert!(ran.stdout.contains("other scheme") && ran.stdout.contains("0 rejected"), "{}", ran.stdout);
    assert_eq!(longs(&week(&folder.path().join("store"), WEEK), "documents", "doc").len(), 1);
}

#[test]
fn what_a_wacz_has_besides_archives_is_named_also_by_a_dry_run() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("pages.wacz");
    let mut wacz = std::fs::read(data("formats/pages.wacz")).unwrap();
    let (from, to) = (b"archive/more.warc", b"archive/more.nota");
    let places: Vec<usize> = memchr::memmem::find_iter(&wacz, from).collect();
    assert!(places.len() >= 2, "in front of the entry, and in the table");
    places.iter().for_each(|place| wacz[*place..place + to.len()].copy_from_slice(to));
    std::fs::write(&path, wacz).unwrap();
    for flags in [&["--dry-run"][..], &[]] {
        let ran = ran(&mut run(folder.path(), "store", &[path.to_str().unwrap()], flags));
        assert_eq!(ran.code, Some(0), "{}", ran.stderr);
        let named = format!("*.nota: 1 ({}/archive/more.nota)", path.display());
        assert!(ran.stderr.contains(&named), "{}", ran.stderr);
    }
}

/// Serves the files of a folder over HTTP until the tests end. Returns its address.
fn serve(folder: PathBuf) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = format!("http://{}", listener.local_addr().unwrap());
    std::thread::spawn(move || {
        for connection in listener.incoming().take(200) {
            let mut connection = connection.unwrap();
            let mut request = BufReader::new(connection.try_clone().unwrap());
            let (mut head, mut line) = (String::new(), String::new());
            while request.read_line(&mut line).is_ok_and(|count| count > 2) {
                head.push_str(&line);
                line.clear();
            }
            let path = head.split(' ').nth(1).unwrap_or_default().trim_start_matches('/');
            let file = std::fs::read(folder.join(path)).ok();
            let status = if file.is_some() { "200 OK" } else { "404 Not Found" };
            let body = file.unwrap_or_default();
            let length = body.len();
            let answer = format!("HTTP/1.1 {status}\r\nContent-Length: {length}\r\nConnection: close\r\n\r\n");
            let body = if head.starts_with("HEAD") { &[] } else { &body[..] };
            let _ = connection.write_all(answer.as_bytes()).and_then(|()| connection.write_all(body));
        }
    });
    address
}

#[test]
#[cfg(feature = "cloud")]
fn a_crawl_of_common_crawl_is_read_by_name() {
    let folder = tempfile::tempdir().unwrap();
    let crawl = folder.path().join("data/crawl-data/CC-MAIN-2024-10");
    std::fs::create_dir_all(crawl.join("segments/1/warc")).unwrap();
    std::fs::create_dir_all(crawl.join("segments/1/wet")).unwrap();
    let gzip = |text: &str| {
        let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::default());
        gzip.write_all(text.as_bytes()).unwrap();
        gzip.finish().unwrap()
    };
    let write = |name: &str, text: &str| std::fs::write(crawl.join(name), gzip(text)).unwrap();
    for (kind, format) in [("warc", "warc.gz"), ("wet", "warc.wet.gz")] {
        let of = |number: usize| format!("segments/1/{kind}/{number}.{format}");
        let lines: String = (0..2).map(|number| format!("crawl-data/CC-MAIN-2024-10/{}\n", of(number))).collect();
        write(&format!("{kind}.paths.gz"), &lines);
        for number in 0..2 {
            let url = format!("http://a.example/{kind}/{number}");
            let page = match kind {
                "warc" => response(&url, "x", "one two three"),
                _ => record("conversion", &url, "Content-Type: text/plain\r\n", "one two three four"),
            };
            write(&of(number), &page);
        }
    }
    let address = serve(folder.path().join("data"));
    let local = folder.path().join("data");
    for (store, base) in [("served", address.as_str()), ("local", local.to_str().unwrap())] {
        for (item, kind) in [("cc:CC-MAIN-2024-10", "warc"), ("cc:CC-MAIN-2024-10/wet", "wet")] {
            let store = format!("{store}-{kind}");
            let ran = ran(run(folder.path(), &store, &[item], &[]).env("NIGH_COMMON_CRAWL", base));
            assert_eq!(ran.code, Some(0), "{}", ran.stderr);
            let week = week(&folder.path().join(&store), WEEK);
            let mut urls = texts(&week, "documents", "url");
            urls.sort();
            assert_eq!(urls, [0, 1].map(|number| format!("http://a.example/{kind}/{number}")));
            let files = texts(&week, "documents", "file");
            assert!(
                files.iter().all(|file| file.starts_with(&format!("{base}/crawl-data/CC-MAIN-2024-10/"))),
                "{files:?}"
            );
        }
        let none = ran(run(folder.path(), "none", &["cc:CC-MAIN-1999-01"], &[]).env("NIGH_COMMON_CRAWL", base));
        assert_eq!(none.code, Some(1), "{}", none.stderr);
        assert!(none.stderr.contains("cannot list the files of cc:CC-MAIN-1999-01"), "{}", none.stderr);
    }
}

#[test]
fn an_index_as_input_is_refused_with_what_to_do() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("index.cdxj");
    std::fs::write(&path, "example,a)/ 20240108010203 {\"url\": \"http://a.example/\", \"filename\": \"a.warc.gz\"}\n")
        .unwrap();
    let ran = ran(&mut run(folder.path(), "store", &[path.to_str().unwrap()], &[]));
    assert_eq!(ran.code, Some(1), "{}", ran.stderr);
    assert!(
        ran.stderr.contains("is an index (CDX), which has no pages: give the WARC files that it names"),
        "{}",
        ran.stderr
    );
}
