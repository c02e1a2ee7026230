//! Exports of archives: revisits, WACZ and indexes; pywb replays them.

use std::io::{Read as _, Write as _};
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;

use crate::program::{job, ran, run, run_well, skipped, texts, week};
use crate::skips::Need;

const DATE: &str = "2024-01-08";

/// Runs the script that makes and replays archives; `None`, and a skip of the test, if it lacks a
/// package.
pub(crate) fn script(arguments: &[&Path]) -> Option<String> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/python/replay.py");
    if Command::new("python3").arg("--version").output().is_err() {
        skipped(Need::Replay, "exports are not replayed");
        return None;
    }
    let ran = ran(Command::new("python3").arg(path).args(arguments));
    if ran.code == Some(4) {
        skipped(Need::Replay, &format!("exports are not replayed ({})", ran.stderr.trim()));
        return None;
    }
    assert_eq!(ran.code, Some(0), "{}\n{}", ran.stdout, ran.stderr);
    Some(ran.stdout)
}

/// A folder with archives, a store of them, and exports.
pub(crate) struct ReplayedCrawl {
    pub(crate) folder: tempfile::TempDir,
}

impl ReplayedCrawl {
    pub(crate) fn new() -> ReplayedCrawl {
        let crawl = ReplayedCrawl { folder: tempfile::tempdir().unwrap() };
        std::fs::create_dir(crawl.path("in")).unwrap();
        crawl
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn cluster(&self, store: &str, input: &str) {
        let [store, input] = [store, input].map(|name| self.path(name));
        let arguments = ["run", "-q", "--no-accuracy", "--week", DATE, "--store", store.to_str().unwrap(), "--input"];
        run_well(&[&arguments[..], &[input.to_str().unwrap()]].concat());
    }

    /// Exports at level exact, and returns what is printed as JSON.
    pub(crate) fn export(&self, out: &str, flags: &[&str]) -> Value {
        let [store, out] = ["store", out].map(|name| self.path(name));
        let arguments =
            ["export", store.to_str().unwrap(), "--out", out.to_str().unwrap(), "--level", "exact", "--json"];
        serde_json::from_str(&run_well(&[&arguments[..], flags].concat()).stdout).unwrap()
    }

    pub(crate) fn bytes(&self, name: &str) -> Vec<u8> {
        std::fs::read(self.path(name)).unwrap()
    }
}

/// The text of page `n`.
pub(crate) fn text(n: usize) -> String {
    let words = (0..80).map(|place| format!("w{}", (n + 1) * 7919 + place * 31));
    words.collect::<Vec<_>>().join(" ")
}

/// The response with this text at this URL. `fields` are more fields of its head.
fn response(url: &str, text: &str, fields: &str) -> String {
    let block = format!("HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n\r\n<p>{text}");
    format!(
        "WARC/1.0\r\nWARC-Type: response\r\nWARC-Record-ID: <urn:x:{url}>\r\nWARC-Date: 2024-01-02T03:04:05Z\r\nWARC-Target-URI: \
         {url}\r\n{fields}Content-Type: application/http\r\nContent-Length: {}\r\n\r\n{block}\r\n\r\n",
        block.len()
    )
}

pub(crate) fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::default());
    gzip.write_all(bytes).unwrap();
    gzip.finish().unwrap()
}

fn gunzip(bytes: &[u8]) -> String {
    let mut text = Vec::new();
    flate2::read::MultiGzDecoder::new(bytes).read_to_end(&mut text).unwrap();
    String::from_utf8_lossy(&text).into_owned()
}

#[test]
fn every_page_of_an_export_is_replayed() {
    let crawl = ReplayedCrawl { folder: tempfile::tempdir().unwrap() };
    if script(&[Path::new("make"), &crawl.path("in")]).is_none() {
        return;
    }
    crawl.cluster("store", "in");
    let index = crawl.path("index.cdxj");
    let counts = crawl.export("out", &["--revisits", "--cdxj", index.to_str().unwrap()]);
    let said = ["files", "documents", "written", "revisits", "kept_whole"].map(|name| counts[name].as_u64().unwrap());
    // Kept whole: the first page in gzip; a response of a resource; chunks without a digest; and
    // two pages of the WACZ, which is replayed alone.
    assert_eq!(said, [5, 33, 12, 16, 5]);
    assert_eq!([&counts["index"]["written"], &counts["index"]["removed"]], [33, 16]);
    let Some(seen) = script(&[Path::new("check"), &crawl.path("in"), &crawl.path("out"), &index]) else { return };
    let seen: Value = serde_json::from_str(&seen).unwrap();
    let seen = ["pages", "lines", "response", "resource", "revisit"].map(|name| seen[name].as_u64().unwrap());
    assert_eq!(seen, [33, 33, 16, 1, 16]);
    // The same bytes again.
    crawl.export("again", &["--revisits", "--workers", "1"]);
    for name in ["a.warc.gz", "b.warc.gz", "c.warc", "d.warc.gz", "e.wacz", ".nigh-export/list.jsonl"] {
        let is_list = name.ends_with(".jsonl");
        let bytes = |folder: &str| {
            let bytes = crawl.bytes(&format!("{folder}/{name}"));
            let text = String::from_utf8_lossy(&bytes).into_owned();
            if is_list {
                text.lines().filter(|line| !line.contains("cdxj")).collect::<String>().into_bytes()
            } else {
                bytes
            }
        };
        assert!(bytes("out") == bytes("again"), "{name}");
    }
}

#[test]
fn heads_of_any_kind_names_and_dictionaries_give_revisits() {
    let crawl = ReplayedCrawl::new();
    let records = |host: &str, fields: &str| -> Vec<Vec<u8>> {
        (0..4).map(|n| response(&format!("http://{host}.example/{n}"), &text(n % 3), fields).into_bytes()).collect()
    };
    let write = |name: &str, bytes: Vec<u8>| std::fs::write(crawl.path("in").join(name), bytes).unwrap();
    write("a.warc.gz", records("a", "").iter().flat_map(|record| gzip(record)).collect());
    let line_feeds = |record: Vec<u8>| String::from_utf8(record).unwrap().replace("\r\n", "\n").into_bytes();
    // The length of the block is that with line feeds.
    let shorter = |record: Vec<u8>| {
        let text = String::from_utf8(record).unwrap();
        let (head, block) = text.split_once("\n\n").unwrap();
        let length = block.len() - 2;
        let head = head.lines().filter(|line| !line.starts_with("Content-Length")).collect::<Vec<_>>().join("\n");
        format!("{head}\nContent-Length: {length}\n\n{block}").into_bytes()
    };
    write(
        "b.warc.gz",
        records("b", "").into_iter().map(line_feeds).map(shorter).flat_map(|record| gzip(&record)).collect(),
    );
    let latin1 =
        records("c", "X-Place: Z~rich\r\n").concat().into_iter().map(|byte| if byte == b'~' { 0xfc } else { byte });
    write("c.warc", latin1.collect());
    // Compressed, though the name does not say so.
    write("d.warc", records("d", "").iter().flat_map(|record| gzip(record)).collect());
    let samples: Vec<Vec<u8>> =
        (0..200).map(|n| response(&format!("http://e.example/{n}"), &text(n), "").into_bytes()).collect();
    let dictionary = zstd::dict::from_samples(&samples, 8 << 10).unwrap();
    let mut compressor = zstd::bulk::Compressor::with_dictionary(3, &dictionary).unwrap();
    let mut frames =
        [&0x184D_2A5D_u32.to_le_bytes()[..], &(dictionary.len() as u32).to_le_bytes(), &dictionary].concat();
    records("e", "").iter().for_each(|record| frames.extend(compressor.compress(record).unwrap()));
    write("e.warc.zst", frames);
    crawl.cluster("store", "in");
    let counts = crawl.export("out", &["--revisits"]);
    let said = ["documents", "written", "revisits", "kept_whole"].map(|name| counts[name].as_u64().unwrap());
    assert_eq!(said, [20, 3, 17, 0]);

    let refers = "\r\nWARC-Refers-To: <urn:x:http://a.example/1>\r\nWARC-Refers-To-Target-URI: http://a.example/1\r\n\
                  WARC-Refers-To-Date: 2024-01-02T03:04:05Z\r\n";
    let stored = |name: &str| crawl.bytes(&format!("out/{name}"));
    let frames = stored("e.warc.zst");
    assert!(frames.starts_with(&0x184D_2A5D_u32.to_le_bytes()));
    let mut decoder = zstd::Decoder::with_dictionary(&frames[8 + dictionary.len()..], &dictionary).unwrap();
    let mut of_zstd = String::new();
    decoder.read_to_string(&mut of_zstd).unwrap();
    let texts_of = [
        gunzip(&stored("b.warc.gz")),
        String::from_utf8_lossy(&stored("c.warc")).into_owned(),
        gunzip(&stored("d.warc")),
        of_zstd,
    ];
    for (text, host) in texts_of.iter().zip(["b", "c", "d", "e"]) {
        assert_eq!(text.matches("WARC-Type: revisit\r\n").count(), 4, "{host}: {text}");
        assert!(
            text.contains(refers) && text.contains(&format!("WARC-Target-URI: http://{host}.example/1\r\n")),
            "{host}: {text}"
        );
    }
    assert!(stored("c.warc").windows(6).any(|bytes| bytes == b"Z\xfcrich"));
    // What is written is read again, with every page.
    crawl.cluster("again", "out");
    let mut urls = [
        texts(&week(&crawl.path("store"), DATE), "documents", "url"),
        texts(&week(&crawl.path("again"), DATE), "documents", "url"),
    ];
    urls.iter_mut().for_each(|urls| urls.sort());
    assert!(urls[0] == urls[1] && urls[0].len() == 20, "{urls:?}");
}

#[test]
fn a_wacz_gives_a_wacz_which_is_whole_or_not_there() {
    let crawl = ReplayedCrawl::new();
    let data = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/formats/pages.wacz");
    std::fs::copy(data, crawl.path("in/first.wacz")).unwrap();
    std::fs::write(crawl.path("in/second.warc"), response("http://z.example/", &text(0), "")).unwrap();
    crawl.cluster("store", "in");
    let counts = crawl.export("out", &[]);
    assert_eq!((counts["files"].as_u64(), counts["documents"].as_u64()), (Some(2), Some(11)));
    let whole = crawl.bytes("out/first.wacz");
    assert!(whole.starts_with(b"PK\x03\x04"));
    crawl.cluster("again", "out");
    let urls = |store: &str| texts(&week(&crawl.path(store), DATE), "documents", "url");
    let kept = counts["written"].as_u64().unwrap() as usize;
    assert!(urls("again").len() == kept && urls("again").iter().all(|url| urls("store").contains(url)));
    // As a kill leaves it: no WACZ, and one of its archives in the work folder.
    for damage in [0, 1, 2] {
        let path = crawl.path("out/first.wacz");
        match damage {
            0 => std::fs::remove_file(&path).unwrap(),
            1 => std::fs::write(&path, &whole[1..]).unwrap(),
            _ => {
                std::fs::remove_file(&path).unwrap();
                let work = crawl.path("out/_nigh-export-work");
                std::fs::create_dir(&work).unwrap();
                std::fs::write(work.join("lock"), "nigh export\nprocess 1\n").unwrap();
                std::fs::write(work.join("00000"), "half").unwrap();
                std::fs::create_dir(work.join("00000.work")).unwrap();
            }
        }
        let again = crawl.export("out", &[]);
        assert!(crawl.bytes("out/first.wacz") == whole && again == counts, "{damage}: {again}");
    }
    let names = std::fs::read_dir(crawl.path("out")).unwrap().map(|entry| entry.unwrap().file_name());
    let mut names: Vec<_> = names.collect();
    names.sort();
    assert_eq!(names, [".nigh-export", "first.wacz", "second.warc"]);
    // One WACZ alone has its name, too; and its documents can become rows.
    std::fs::remove_file(crawl.path("in/second.warc")).unwrap();
    std::fs::remove_dir_all(crawl.path("store")).unwrap();
    crawl.cluster("store", "in");
    crawl.export("alone", &[]);
    assert!(crawl.bytes("alone/first.wacz") == whole);
    let rows = crawl.export("rows", &["--format", "jsonl"]);
    assert_eq!(rows["files"], 2);
    assert!(crawl.path("rows/data.jsonl").exists() && crawl.path("rows/more.jsonl").exists());
}

/// It was a folder of that name, which nothing opens.
#[test]
fn a_wacz_that_was_zipped_with_its_folder_gives_a_wacz() {
    let crawl = ReplayedCrawl::new();
    let script = "import sys, zipfile\nold = zipfile.ZipFile(sys.argv[1])\nnew = zipfile.ZipFile(sys.argv[2], 'w')\n\
                  [new.writestr('my crawl/' + name, old.read(name)) for name in old.namelist()]\nnew.close()";
    let data = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/formats/pages.wacz");
    let made = Command::new("python3").args(["-c", script]).arg(&data).arg(crawl.path("in/first.wacz")).status();
    if made.is_err() {
        skipped(Need::Replay, "a WACZ in a folder is not made");
        return;
    }
    crawl.cluster("store", "in");
    crawl.export("out", &[]);
    std::fs::remove_file(crawl.path("in/first.wacz")).unwrap();
    std::fs::copy(data, crawl.path("in/first.wacz")).unwrap();
    crawl.cluster("plain", "in");
    let [plain, out] = ["plain", "plain-out"].map(|name| crawl.path(name).to_str().unwrap().to_owned());
    run_well(&["export", &plain, "--out", &out, "--level", "exact"]);
    assert!(crawl.bytes("out/first.wacz") == crawl.bytes("plain-out/first.wacz"), "as of one without a folder");
}

/// The last one was left out, and counted as written.
#[test]
fn all_pages_of_an_archive_with_another_checksum_in_its_wacz_are_written() {
    let crawl = ReplayedCrawl::new();
    let data = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/formats/pages.wacz");
    let mut bytes = std::fs::read(data).unwrap();
    for name in ["archive/data.warc.gz", "archive/more.warc"] {
        let is_entry =
            |at: &usize| bytes[*at..].starts_with(b"PK\x01\x02") && bytes[at + 46..].starts_with(name.as_bytes());
        let entry = (0..bytes.len() - 100).find(is_entry).unwrap();
        bytes[entry + 16] ^= 1;
    }
    std::fs::write(crawl.path("in/x.wacz"), bytes).unwrap();
    let job = job(crawl.folder.path(), &format!("[cluster]\nweek = \"{DATE}\"\nmax-reject-share = 1.0\n"));
    let [store, input] = ["store", "in"].map(|name| crawl.path(name));
    let arguments = ["run", job.to_str().unwrap(), "-q", "--store", store.to_str().unwrap(), "--input"];
    run_well(&[&arguments[..], &[input.to_str().unwrap()]].concat());
    let reasons = texts(&week(&store, DATE), "rejects", "reason");
    assert_eq!(reasons, ["zip: damaged entry", "zip: damaged entry"]);
    let counts = crawl.export("out", &[]);
    crawl.cluster("again", "out");
    let written = texts(&week(&crawl.path("again"), DATE), "documents", "url").len() as u64;
    assert_eq!(counts["written"].as_u64(), Some(written));
}

/// Its captures were in no index; and as WARC it had the name of an ARC file.
#[test]
fn an_arc_file_in_a_wacz_is_in_its_index_and_becomes_warc_with_revisits() {
    let crawl = ReplayedCrawl::new();
    let record = |n: usize| {
        let block = format!("HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n\r\n<p>{}", text(n / 2));
        gzip(format!("http://h.example/{n} 192.0.2.1 20240102030405 text/html {}\n{block}\n", block.len()).as_bytes())
    };
    std::fs::write(crawl.path("b.arc.gz"), (0..4).flat_map(record).collect::<Vec<u8>>()).unwrap();
    let pages: String = (0..4).map(|n| format!("{{\"url\": \"http://h.example/{n}\"}}\n")).collect();
    let python = |script: &str, arguments: &[&str]| {
        let script = format!("import gzip, sys, zipfile\n{script}");
        Some(ran(Command::new("python3").args(["-c", &script]).args(arguments))).filter(|ran| ran.code == Some(0))
    };
    let make = "z = zipfile.ZipFile(sys.argv[1], 'w')\nz.write(sys.argv[2], 'archive/b.arc.gz')\n\
                z.writestr('pages/pages.jsonl', sys.argv[3])\nz.close()";
    let [wacz, arc] = ["in/x.wacz", "b.arc.gz"].map(|name| crawl.path(name));
    let has_python = Command::new("python3").arg("--version").output().is_ok();
    if !has_python || python(make, &[wacz.to_str().unwrap(), arc.to_str().unwrap(), &pages]).is_none() {
        skipped(Need::Replay, "a WACZ with an ARC file is not made");
        return;
    }
    crawl.cluster("store", "in");
    let show = "z = zipfile.ZipFile(sys.argv[1])\nprint(*z.namelist(), z.read('pages/pages.jsonl').decode())\n\
                print(gzip.decompress(z.read('indexes/index.cdx.gz')).decode())";
    for (out, flags, name, written, revisits) in
        [("kept", &[][..], "b.arc.gz", 2, 0), ("revisits", &["--revisits"], "b.warc.gz", 4, 2)]
    {
        let index = crawl.path(&format!("{out}.cdxj"));
        let counts = crawl.export(out, &[&["--cdxj", index.to_str().unwrap()][..], flags].concat());
        let of_index = [&counts["index"]["written"], &counts["index"]["removed"]].map(Value::as_u64);
        assert_eq!(of_index, [Some(written), Some(2)], "{out}");
        let shown = python(show, &[crawl.path(&format!("{out}/x.wacz")).to_str().unwrap()]).unwrap().stdout;
        assert!(shown.starts_with(&format!("archive/{name} ")), "{shown}");
        let count = |text: &str| shown.matches(text).count() as u64;
        assert_eq!((count("example,h)/"), count("{\"url\": \"http://h.example/")), (written, written), "{shown}");
        let of_file = (count(&format!("\"filename\":\"{name}\"")), count("\"mime\":\"warc/revisit\""));
        assert_eq!(of_file, (written, revisits), "{shown}");
        let again = format!("again-{out}");
        crawl.cluster(&again, out);
        let of_week = |table: &str| texts(&week(&crawl.path(&again), DATE), table, "url").len() as u64;
        assert_eq!((of_week("documents"), of_week("rejects")), (written, 0), "{out}");
    }
}

#[test]
fn indexes_have_what_is_written_and_what_is_not() {
    let crawl = ReplayedCrawl::new();
    let records: Vec<Vec<u8>> =
        (0..6).map(|n| gzip(response(&format!("http://www.h.example/{n}?b&a"), &text(n / 2), "").as_bytes())).collect();
    std::fs::write(crawl.path("in/x.warc.gz"), records.concat()).unwrap();
    std::fs::write(crawl.path("in/y.jsonl"), "").unwrap();
    crawl.cluster("store", "in");
    let [index, removed] = ["x.cdxj", "x-removed.cdxj"].map(|name| crawl.path(name));
    let cdxj = ["--cdxj", index.to_str().unwrap()];
    let lines = |path: &Path| -> Vec<(String, Value)> {
        let text = std::fs::read_to_string(path).unwrap();
        let line = |line: &str| {
            let (key, fields) = line.split_once(" {").unwrap();
            (key.to_owned(), serde_json::from_str(&format!("{{{fields}")).unwrap())
        };
        text.lines().map(line).collect()
    };
    let keys = |path: &Path| lines(path).into_iter().map(|(key, _)| key).collect::<Vec<_>>();
    let key = |n: usize| format!("example,h)/{n}?a&b 20240102030405");
    for (out, flags, revisits) in [("kept", &[][..], 0), ("revisits", &["--revisits"], 3)] {
        let counts = crawl.export(out, &[&cdxj[..], flags].concat());
        let written: Vec<String> = (0..6).filter(|n| revisits > 0 || n % 2 == 0).map(key).collect();
        assert_eq!((keys(&index), keys(&removed)), (written.clone(), [1, 3, 5].map(key).to_vec()), "{out}");
        assert_eq!(
            (counts["index"]["written"].as_u64(), counts["index"]["removed"].as_u64()),
            (Some(written.len() as u64), Some(3))
        );
        for (folder, path) in [(out, &index), ("in", &removed)] {
            for (_, fields) in lines(path) {
                let number = |name: &str| fields[name].as_str().unwrap().parse::<usize>().unwrap();
                let name = fields["filename"].as_str().unwrap();
                let file = if folder == "in" {
                    std::fs::read(name).unwrap()
                } else {
                    crawl.bytes(&format!("{folder}/{name}"))
                };
                let record = gunzip(&file[number("offset")..][..number("length")]);
                assert_eq!(record.matches("WARC/1.0\r\n").count(), 1, "{record}");
                assert!(
                    record.contains(&format!("WARC-Target-URI: {}\r\n", fields["url"].as_str().unwrap())),
                    "{record}"
                );
                assert_eq!(record.contains("WARC-Type: revisit"), fields["mime"] == "warc/revisit");
            }
        }
        // The same command again replaces its own indexes, and no other file.
        let before = [&index, &removed].map(|path| std::fs::read(path).unwrap());
        std::fs::remove_file(&index).unwrap();
        crawl.export(out, &[&cdxj[..], flags].concat());
        assert_eq!([&index, &removed].map(|path| std::fs::read(path).unwrap()), before);
        std::fs::write(&removed, "precious").unwrap();
        let [store, folder] = ["store", out].map(|name| crawl.path(name));
        let arguments = ["export", store.to_str().unwrap(), "--out", folder.to_str().unwrap(), "--level", "exact"];
        let refused = run(&[&arguments[..], &cdxj, flags].concat());
        assert!(
            refused.code == Some(2) && refused.stderr.contains("x-removed.cdxj was not written"),
            "{}",
            refused.stderr
        );
        assert_eq!(std::fs::read_to_string(&removed).unwrap(), "precious");
        [&index, &removed].iter().for_each(|path| std::fs::remove_file(path).unwrap());
    }
}

#[test]
fn a_copy_of_an_older_page_refers_to_it_if_its_file_is_there() {
    let crawl = ReplayedCrawl::new();
    let store = crawl.path("store");
    let add = |date: &str, name: &str, pages: &[(usize, usize)]| {
        let pages = pages.iter().map(|(url, n)| response(&format!("http://h.example/{url}"), &text(*n), ""));
        std::fs::write(crawl.path(name), pages.collect::<String>()).unwrap();
        let job = job(crawl.folder.path(), "[cluster]\n");
        let (job, input) = (job.to_str().unwrap(), crawl.path(name));
        run_well(&["add", store.to_str().unwrap(), job, "-q", "--week", date, "--input", input.to_str().unwrap()]);
    };
    add("2024-01-08", "one.warc", &[(0, 0), (1, 1)]);
    add("2024-01-15", "two.warc", &[(2, 0), (3, 2), (4, 2)]);
    let since = ["--since", "2024-01-15", "--revisits"];
    let counts = crawl.export("out", &since);
    assert_eq!(
        ["documents", "written", "revisits", "kept_whole"].map(|name| counts[name].as_u64().unwrap()),
        [3, 1, 2, 0]
    );
    let written = String::from_utf8(crawl.bytes("out/two.warc")).unwrap();
    assert!(written.contains("WARC-Refers-To-Target-URI: http://h.example/0\r\n"), "{written}");
    assert!(
        written.contains("WARC-Refers-To-Target-URI: http://h.example/3\r\n") && !crawl.path("out/one.warc").exists()
    );
    // Of both weeks together.
    let counts = crawl.export("all", &["--revisits"]);
    assert_eq!(
        ["documents", "written", "revisits", "kept_whole"].map(|name| counts[name].as_u64().unwrap()),
        [5, 3, 2, 0]
    );
    // A file that is not there cannot be compared.
    std::fs::rename(crawl.path("one.warc"), crawl.path("away")).unwrap();
    let arguments =
        ["export", store.to_str().unwrap(), "--out", crawl.path("out-2").to_str().unwrap(), "--level", "exact"]
            .map(str::to_owned);
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).chain(since).collect();
    let said = run_well(&arguments);
    assert!(
        said.stdout.contains("and 1 revisits") && said.stdout.contains("and 1 records that go, kept whole"),
        "{}",
        said.stdout
    );
    assert!(said.stderr.contains("one.warc of week 2024-01-08 is not there"), "{}", said.stderr);
}
