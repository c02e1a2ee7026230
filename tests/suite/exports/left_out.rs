//! What an export of archives leaves out: pages that the store does not have now, and what belongs
//! to them.

use std::path::Path;

use crate::program::{run, run_well};

/// How a file is stored, and where the requests of its captures are.
const FORMS: [(&str, bool); 3] = [("plain.warc", true), ("members.warc.gz", false), ("frames.warc.zst", true)];

fn record(kind: &str, id: &str, url: &str, more: &str, block: &str) -> String {
    format!(
        "WARC/1.1\r\nWARC-Type: {kind}\r\nWARC-Record-ID: <urn:x:{id}>\r\nWARC-Date: 2024-01-01T00:00:00Z\r\nWARC-Target-URI: {url}\r\n{more}\
         Content-Type: application/http\r\nContent-Length: {}\r\n\r\n{block}\r\n\r\n",
        block.len()
    )
}

fn answer(status: &str, kind: &str, body: &str) -> String {
    format!("HTTP/1.1 {status}\r\nContent-Type: {kind}\r\n\r\n{body}")
}

/// A capture of a page: its request, the response, and metadata. The request names the response, or
/// is named by it.
fn capture(url: &str, version: usize, request_first: bool) -> Vec<String> {
    let id = |kind: &str| format!("{kind}-{version}-{}", url.len());
    let words: Vec<String> = (0..50).map(|place| format!("v{version}x{place}")).collect();
    let block = answer("200 OK", "text/html", &format!("<p>{url} {}", words.join(" ")));
    let metadata = record(
        "metadata",
        &id("metadata"),
        url,
        &format!("WARC-Concurrent-To: <urn:x:{}>\r\n", id("response")),
        "seed: true",
    );
    if request_first {
        let request = record("request", &id("request"), url, "", "GET / HTTP/1.1\r\n\r\n");
        let named = format!("WARC-Concurrent-To: <urn:x:{}>\r\n", id("request"));
        vec![request, record("response", &id("response"), url, &named, &block), metadata]
    } else {
        let named = format!("WARC-Concurrent-To: <urn:x:{}>\r\n", id("response"));
        let request = record("request", &id("request"), url, &named, "GET / HTTP/1.1\r\n\r\n");
        vec![record("response", &id("response"), url, "", &block), request, metadata]
    }
}

fn stored(records: &[String], form: &str) -> Vec<u8> {
    let gzip = |bytes: &[u8]| {
        let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::default());
        std::io::Write::write_all(&mut gzip, bytes).unwrap();
        gzip.finish().unwrap()
    };
    let record = |record: &String| match form {
        "plain.warc" => record.clone().into_bytes(),
        "members.warc.gz" => gzip(record.as_bytes()),
        _ => zstd::bulk::compress(record.as_bytes(), 1).unwrap(),
    };
    records.iter().flat_map(record).collect()
}

fn text(path: &Path) -> String {
    let bytes = std::fs::read(path).unwrap();
    let bytes = match path.extension().unwrap().to_str().unwrap() {
        "gz" => {
            let mut text = Vec::new();
            std::io::Read::read_to_end(&mut flate2::read::MultiGzDecoder::new(&bytes[..]), &mut text).unwrap();
            text
        }
        "zst" => zstd::stream::decode_all(&bytes[..]).unwrap(),
        _ => bytes,
    };
    String::from_utf8(bytes).unwrap()
}

#[test]
fn deleted_and_replaced_pages_are_in_no_export_nor_what_belongs_to_them() {
    let url = |page: usize| format!("http://h.example/{}", "p".repeat(page + 1));
    for (form, request_first) in FORMS {
        let folder = tempfile::tempdir().unwrap();
        let store = folder.path().join("store");
        let store = store.to_str().unwrap();
        let input = |batch: usize| folder.path().join(format!("batch-{batch}")).join(form);
        let capture = |page, version| capture(&url(page), version, request_first);
        let info = record("warcinfo", "info", "", "", "software: test");
        let image = record("response", "image", "http://h.example/i.png", "", &answer("200 OK", "image/png", "\u{1}"));
        let missing =
            record("response", "missing", "http://h.example/m", "", &answer("404 Not Found", "text/html", "x"));
        let own = record("metadata", "own", "metadata://crawl.log", "", "the log");
        // Page 1 is there twice, page 2 is replaced by the second batch, page 3 deleted.
        let first = [
            vec![info.clone()],
            capture(0, 0),
            capture(1, 0),
            capture(1, 1),
            capture(2, 0),
            vec![image, missing, own],
            capture(3, 0),
        ];
        let second = [vec![info], capture(2, 5), capture(4, 0)];
        for (batch, records) in [first.concat(), second.concat()].iter().enumerate() {
            std::fs::create_dir_all(input(batch).parent().unwrap()).unwrap();
            std::fs::write(input(batch), stored(records, form)).unwrap();
            let week = ["2024-01-08", "2024-01-15"][batch];
            run_well(&["add", store, "-q", "--no-accuracy", "--week", week, "--input", input(batch).to_str().unwrap()]);
        }
        run_well(&["delete", "-q", "--store", store, "--url", &url(3)]);
        let export = |name: &str, flags: &[&str]| {
            let out = folder.path().join(name);
            let ran = run_well(&[&["export", store, "--out", out.to_str().unwrap(), "--json"][..], flags].concat());
            let summary: serde_json::Value = serde_json::from_str(&ran.stdout).unwrap();
            ([0, 1].map(|batch| text(&out.join(format!("batch-{batch}")).join(form))), summary)
        };
        let kept = |pages: &[(usize, usize)]| {
            pages.iter().flat_map(|(page, version)| capture(*page, *version)).collect::<String>()
        };
        let info = record("warcinfo", "info", "", "", "software: test");
        let (found, summary) = export("kept", &[]);
        assert_eq!(
            found,
            [format!("{info}{}", kept(&[(0, 0), (1, 0)])), format!("{info}{}", kept(&[(2, 5), (4, 0)]))],
            "{form}"
        );
        assert_eq!((&summary["documents"], &summary["others"]), (&4.into(), &10.into()), "{summary}");
        let left = &summary["left_out"];
        let counts = ["not_of_week", "failed", "media_types", "attached"].map(|name| left[name].as_u64().unwrap());
        assert_eq!(counts, [3, 1, 1, 7], "{summary}");
        // Asked for, the others are there, but still no page that the store does not have.
        let (found, _) = export("others", &["--others"]);
        assert!(found[0].contains("image/png") && found[0].contains("404 Not Found") && found[0].contains("the log"));
        for (page, version) in [(1, 1), (2, 0), (3, 0)] {
            assert!(!found[0].contains(&format!("<p>{} v{version}x0 ", url(page))), "{form}, {page}");
        }
        let refused = run(&["export", store, "--out", "x", "--others", "--what", "removed"]);
        assert!(refused.code == Some(2) && refused.stderr.contains("--what kept"), "{}", refused.stderr);
    }
}

#[test]
fn a_bad_record_is_left_out_and_the_others_are_written() {
    let folder = tempfile::tempdir().unwrap();
    let job = crate::program::job(folder.path(), "[cluster]\nmax-reject-share = 1.0\n");
    for (form, request_first) in FORMS {
        for size in [200, 300_000] {
            let (input, store) = (folder.path().join(form), folder.path().join(format!("store-{size}-{form}")));
            let capture = |page: &str| capture(page, 0, request_first);
            let body = "word ".repeat(size / 5);
            let bad = record("response", "bad", "http://h.example/bad", "", &answer("200 OK", "text/html", &body));
            let bad = bad.replace(
                &format!("Content-Length: {}", bad.len() - bad.find("\r\n\r\n").unwrap() - 8),
                "Content-Length: 50",
            );
            assert!(bad.contains("Content-Length: 50\r\n"));
            let [first, last] = [capture("http://h.example/1"), capture("http://h.example/22")];
            std::fs::write(&input, stored(&[first.clone(), vec![bad], last.clone()].concat(), form)).unwrap();
            let [job, store, input] = [&job, &store, &input].map(|path| path.to_str().unwrap());
            run_well(&["run", job, "-q", "--no-accuracy", "--week", "2024-01-08", "--store", store, "--input", input]);
            let out = folder.path().join(format!("out-{size}-{form}"));
            run_well(&["export", store, "--out", out.to_str().unwrap(), "--workers", "1"]);
            let found = text(&out.join(form));
            assert!(found.starts_with(&first.concat()) && found.contains(&last.concat()), "{form}, {size}: {found}");
            assert!(!found.contains("http://h.example/bad"), "{form}, {size}");
        }
    }
}

#[test]
fn a_request_is_written_with_its_page_wherever_it_is() {
    let folder = tempfile::tempdir().unwrap();
    let job = crate::program::job(folder.path(), "[cluster]\nmax-reject-share = 1.0\n");
    let url = |page: usize| format!("http://h.example/{page}");
    let words = |page: usize| (0..50).map(|place| format!("p{page}x{place}")).collect::<Vec<_>>().join(" ");
    let response = |page: usize| {
        record("response", &format!("r{page}"), &url(page), "", &answer("200 OK", "text/html", &words(page)))
    };
    let request = |page: usize| {
        let named = format!("WARC-Concurrent-To: <urn:x:r{page}>\r\n");
        record("request", &format!("q{page}"), &url(page), &named, "GET / HTTP/1.1\r\n\r\n")
    };
    let image = record("response", "i", "http://h.example/i.png", "", &answer("200 OK", "image/png", "\u{1}"));
    let bad = image.replace("Content-Length: ", "Content-Length: x");
    // All requests first; after images and bad records; each beside its page.
    let orders: [Vec<String>; 3] = [
        vec![request(0), request(1), request(2), response(0), response(1), response(2)],
        vec![response(0), image, request(0), response(1), response(2), bad, request(2), request(1)],
        vec![response(0), request(0), request(1), response(1), response(2), request(2)],
    ];
    for (number, records) in orders.iter().enumerate() {
        for form in ["plain.warc", "members.warc.gz"] {
            let [input, store, out] =
                [form, "store", "out"].map(|name| folder.path().join(format!("{number}-{name}-{form}")));
            std::fs::write(&input, stored(records, form)).unwrap();
            let [job, store, input, to] = [&job, &store, &input, &out].map(|path| path.to_str().unwrap());
            run_well(&["run", job, "-q", "--no-accuracy", "--week", "2024-01-08", "--store", store, "--input", input]);
            run_well(&["delete", "-q", "--store", store, "--url", &url(1)]);
            run_well(&["export", store, "--out", to, "--workers", "1"]);
            let found = text(&out.join(Path::new(input).file_name().unwrap()));
            for page in [0, 2] {
                assert!(found.contains(&response(page)) && found.contains(&request(page)), "{number}, {form}: {found}");
            }
            assert!(!found.contains(&url(1)), "{number}, {form}: {found}");
        }
    }
}

#[test]
fn a_record_that_is_the_page_of_several_urls_is_known_by_its_own() {
    let folder = tempfile::tempdir().unwrap();
    let page = answer("200 OK", "text/html", "<p>one two three four five six seven");
    let revisit = |url: &str, of: &str| {
        let more = format!(
            "WARC-Profile: http://netpreserve.org/warc/1.1/revisit/identical-payload-digest\r\nWARC-Refers-To-Target-URI: {of}\r\n"
        );
        record("revisit", url, url, &more, "")
    };
    let urls: Vec<String> = ["z", "y", "x", "w", "v"].iter().map(|host| format!("http://{host}.example/")).collect();
    let (a, c) = ("http://a.example/", "http://c.example/");
    let line = "{\"url\":\"http://a.example/\",\"text\":\"one two three four five six seven\"}\n";
    let first_lines = folder.path().join("a.jsonl");
    std::fs::write(&first_lines, line).unwrap();
    for (number, first) in [None, Some([a, c]), Some([c, a])].into_iter().enumerate() {
        let mut records: Vec<String> =
            first.iter().flatten().map(|url| record("response", url, url, "", &page)).collect();
        // Of rows, too, revisits of other URLs can be the pages.
        records.extend(first.is_none().then(|| record("response", "s", "http://s.example/", "", &page)));
        records.extend(urls.iter().map(|url| revisit(url, a)));
        let [input, store, list, out] =
            ["1.warc", "store", "list.txt", "out"].map(|name| folder.path().join(format!("{number}-{name}")));
        std::fs::write(&input, records.concat()).unwrap();
        let [input, store, list, to] = [&input, &store, &list, &out].map(|path| path.to_str().unwrap());
        let mut inputs = vec!["add", store, "-q", "--no-accuracy", "--week", "2024-01-08", "--input", input];
        inputs.extend(first.is_none().then(|| first_lines.to_str().unwrap()));
        run_well(&inputs);
        let flags: &[&str] = if first.is_none() { &["--touched"] } else { &[] };
        run_well(&[&["export", store, "--out", to, "--level", "exact", "--revisits"][..], flags].concat());
        let found = std::fs::read_to_string(out.join(Path::new(input).file_name().unwrap())).unwrap();
        if let Some([kept, dropped]) = first {
            assert!(found.contains(&record("response", kept, kept, "", &page)), "{number}: {found}");
            assert!(found.contains(&format!("WARC-Refers-To-Target-URI: {kept}\r\n")), "{number}: {found}");
            run_well(&["export", store, "--list", list]);
            assert_eq!(std::fs::read_to_string(list).unwrap(), format!("{dropped}\n"), "{number}");
        } else {
            let kept = std::fs::read_to_string(out.join("a.jsonl")).unwrap();
            assert!(kept == line || found.contains("s.example"), "{kept} {found}");
        }
    }
}

#[test]
fn a_record_of_a_deleted_page_is_left_out_though_it_is_one_of_another_page_too() {
    let folder = tempfile::tempdir().unwrap();
    let url = |page: &str| format!("http://{page}.example/");
    let response = |page: &str, named: &str| {
        let words: Vec<String> = (0..50).map(|place| format!("{page}x{place}")).collect();
        record("response", page, &url(page), named, &answer("200 OK", "text/html", &words.join(" ")))
    };
    let beside = |kind: &str, id: &str, named: &[&str]| {
        let named: String = named.iter().map(|id| format!("WARC-Concurrent-To: <urn:x:{id}>\r\n")).collect();
        record(kind, id, "http://other.example/", &named, "secret")
    };
    let names = |id: &str| format!("WARC-Concurrent-To: <urn:x:{id}>\r\n");
    let orders: [Vec<String>; 4] = [
        // Metadata of both pages; a request that both pages name; metadata of the request of the
        // deleted page.
        vec![response("kept", ""), beside("metadata", "m", &["kept", "gone"]), response("gone", "")],
        vec![beside("request", "q", &[]), response("gone", &names("q")), response("kept", &names("q"))],
        vec![
            response("kept", ""),
            beside("request", "q", &["gone"]),
            beside("metadata", "m", &["q"]),
            response("gone", ""),
        ],
        vec![
            beside("metadata", "m", &["q"]),
            response("gone", ""),
            beside("request", "q", &["gone"]),
            response("kept", ""),
        ],
    ];
    for (number, records) in orders.iter().enumerate() {
        let [input, store, out] = ["1.warc", "store", "out"].map(|name| folder.path().join(format!("{number}-{name}")));
        std::fs::write(&input, records.concat()).unwrap();
        let [from, store, to] = [&input, &store, &out].map(|path| path.to_str().unwrap());
        run_well(&["add", store, "-q", "--no-accuracy", "--week", "2024-01-08", "--input", from]);
        run_well(&["delete", "-q", "--store", store, "--url", &url("gone")]);
        for others in [&[][..], &["--others"]] {
            let to = format!("{to}{}", others.len());
            run_well(&[&["export", store, "--out", &to][..], others].concat());
            let found = std::fs::read_to_string(Path::new(&to).join(input.file_name().unwrap())).unwrap();
            assert!(found.contains(&response("kept", "")) || number == 1, "{number}: {found}");
            assert!(!found.contains("secret") && found.contains("keptx1 "), "{number}, {others:?}: {found}");
        }
    }
}

#[test]
fn records_that_belong_to_nothing_are_written_if_they_are_asked_for() {
    let folder = tempfile::tempdir().unwrap();
    let [input, store, out] = ["1.warc", "store", "out"].map(|name| folder.path().join(name));
    let words = |page: usize| (0..50).map(|place| format!("p{page}x{place}")).collect::<Vec<_>>().join(" ");
    // More bytes than wait.
    let mut file = std::io::BufWriter::new(std::fs::File::create(&input).unwrap());
    for page in 0..3 {
        let url = format!("http://h.example/{page}");
        let long = "x".repeat(30 << 20);
        let lost = record("metadata", &format!("m{page}"), &url, "WARC-Concurrent-To: <urn:x:nothing>\r\n", &long);
        std::io::Write::write_all(&mut file, lost.as_bytes()).unwrap();
        let page = record("response", &url, &url, "", &answer("200 OK", "text/html", &words(page)));
        std::io::Write::write_all(&mut file, page.as_bytes()).unwrap();
    }
    drop(file);
    let [from, store, to] = [&input, &store, &out].map(|path| path.to_str().unwrap());
    run_well(&["add", store, "-q", "--no-accuracy", "--week", "2024-01-08", "--input", from]);
    let ran = run_well(&["export", store, "--out", to, "--others", "--json"]);
    let summary: serde_json::Value = serde_json::from_str(&ran.stdout).unwrap();
    assert_eq!((&summary["others"], &summary["left_out"]["attached"]), (&3.into(), &0.into()), "{summary}");
    let sizes = [&input, &out.join("1.warc")].map(|path| std::fs::metadata(path).unwrap().len());
    assert_eq!(sizes[0], sizes[1]);
}

/// The first record of an ARC file says which version of the format it has.
#[test]
fn an_arc_of_what_is_removed_begins_with_its_description() {
    let folder = tempfile::tempdir().unwrap();
    let [input, store] = ["a.arc", "store"].map(|name| folder.path().join(name));
    let page = format!("HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n\r\n<p>{}", "some words of a page ".repeat(20));
    let first = "1 0 Maker\nURL IP-address Archive-date Content-type Archive-length\n";
    let head = format!("filedesc://a.arc 0.0.0.0 20240102030405 text/plain {}\n{first}\n", first.len());
    let record = |number: usize| {
        format!("http://a.example/{number} 192.0.2.1 20240102030405 text/html {}\n{page}\n", page.len())
    };
    std::fs::write(&input, head.clone() + &record(1) + &record(2)).unwrap();
    let [input, store] = [&input, &store].map(|path| path.to_str().unwrap());
    run_well(&["run", "-q", "--no-accuracy", "--week", "2024-01-08", "--store", store, "--input", input]);
    for (what, number) in [("kept", 1), ("removed", 2)] {
        let out = folder.path().join(what);
        run_well(&["export", store, "--what", what, "--out", out.to_str().unwrap()]);
        assert_eq!(std::fs::read_to_string(out.join("a.arc")).unwrap(), head.clone() + &record(number), "{what}");
    }
}
