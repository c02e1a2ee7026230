//! What items name, in folders that the tests make.

use std::fs;
use std::path::Path;

use super::recognised::format_of_name;
use super::{Pipes, list, list_with_pipes};
use crate::readers::input::Format;
use crate::reading::Reading;

/// A temporary folder with these files; each contains its own name.
fn folder(files: &[&str]) -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    for file in files {
        let path = folder.path().join(file);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, file).unwrap();
    }
    folder
}

/// The names, below the folder, of the inputs that the items name.
fn names(folder: &Path, items: &[&str], reading: &Reading) -> Vec<String> {
    let items: Vec<String> = items.iter().map(|item| format!("{}/{item}", folder.display())).collect();
    let root = format!("{}/", folder.display());
    list(&items, reading).unwrap().into_iter().map(|input| input.name.replace(&root, "")).collect()
}

fn error(items: &[&str]) -> String {
    let items: Vec<String> = items.iter().map(|&item| item.to_owned()).collect();
    format!("{:#}", list(&items, &Reading::default()).unwrap_err())
}

const FILES: [&str; 8] = [
    "week-01/b.warc.gz",
    "week-01/a.warc.gz",
    "week-01/notes.txt",
    "week-01/x/c.jsonl",
    "week-01/report.json",
    "week-01/_old.warc",
    "week-02/d.warc.wet.gz",
    "week-02/e.parquet",
];

#[test]
fn folders_globs_and_files_give_sorted_inputs_without_duplicates() {
    let folder = folder(&FILES);
    let names = |items: &[&str]| names(folder.path(), items, &Reading::default());
    assert_eq!(names(&["week-01"]), ["week-01/a.warc.gz", "week-01/b.warc.gz", "week-01/x/c.jsonl"]);
    assert_eq!(names(&["week-01/*.warc.gz", "week-01/./a.warc.gz"]), ["week-01/a.warc.gz", "week-01/b.warc.gz"]);
    assert_eq!(names(&["**/*.jsonl"]), ["week-01/x/c.jsonl"]);
    assert_eq!(names(&["week-0?/{d,e}*"]), ["week-02/d.warc.wet.gz", "week-02/e.parquet"]);
    assert_eq!(names(&["week-0[2-3]"]), ["week-02/d.warc.wet.gz", "week-02/e.parquet"]);
    assert_eq!(names(&["week-01/report.json"]), ["week-01/report.json"]);
    assert_eq!(names(&["week-01/_old.warc"]), ["week-01/_old.warc"]);
}

#[test]
fn globs_pass_over_hidden_folders() {
    let folder = folder(&["g/a.jsonl", "g/d/b.jsonl", "g/_tmp/c.jsonl", "g/.x/d.jsonl", "g/d/_tmp/e.jsonl"]);
    let names = |items: &[&str]| names(folder.path(), items, &Reading::default());
    for glob in ["g/*", "g/**", "g/**/*", "?/**/*.jsonl", "g*"] {
        assert_eq!(names(&[glob]), ["g/a.jsonl", "g/d/b.jsonl"], "{glob}");
    }
    // Named itself, a folder is read.
    assert_eq!(names(&["g/_tmp", "g/.x/*"]), ["g/.x/d.jsonl", "g/_tmp/c.jsonl"]);
}

#[test]
fn side_files_of_failed_downloads_are_recognised_by_their_names() {
    let files =
        ["w/failed.tsv", "w/failed-00001.tsv.gz", "w/x/Failed.TSV", "w/index.tsv.gz", "w/_failed.tsv", "w/failed"];
    let folder = folder(&files);
    let names = |items: &[&str]| names(folder.path(), items, &Reading::default());
    assert_eq!(names(&["w"]), ["w/failed-00001.tsv.gz", "w/failed.tsv", "w/x/Failed.TSV"]);
    assert_eq!(names(&["w/*"]), ["w/failed-00001.tsv.gz", "w/failed.tsv", "w/x/Failed.TSV"]);
    assert_eq!(names(&["w/failed*"]), ["w/failed-00001.tsv.gz", "w/failed.tsv"]);
    let inputs = list(&[folder.path().display().to_string()], &Reading::default()).unwrap();
    assert!(inputs.iter().all(|input| input.format == Format::Failed));
}

#[test]
fn html_files_get_their_urls_from_base_url_or_from_the_layout() {
    let folder = folder(&["www.a.example/index.html", "www.a.example/p/q ü.htm", "www.a.example/s.css", "r?x=1.html"]);
    let urls = |items: &[&str], base: Option<&str>| -> anyhow::Result<Vec<String>> {
        let items: Vec<String> = items.iter().map(|item| format!("{}/{item}", folder.path().display())).collect();
        let reading = Reading { base_url: base.map(str::to_owned), ..Reading::default() };
        Ok(list(&items, &reading)?.into_iter().filter_map(|input| input.page_url).collect())
    };
    let base = Some("http://b.example/");
    assert_eq!(
        urls(&["www.a.example"], base).unwrap(),
        ["http://b.example/index.html", "http://b.example/p/q%20%C3%BC.htm"]
    );
    assert_eq!(urls(&["*.example/*.html"], None).unwrap(), ["http://www.a.example/index.html"]);
    let error = format!("{:#}", urls(&["www.a.example"], None).unwrap_err());
    assert!(error.contains("set base-url"), "{error}");
}

#[test]
fn relative_lines_of_listings_are_below_base_url() {
    let folder = folder(&FILES);
    let reading = Reading { base_url: Some(folder.path().display().to_string()), ..Reading::default() };
    fs::write(folder.path().join("warc.paths"), "week-01/b.warc.gz\n\n# a note\nweek-02/e.parquet\n").unwrap();
    fs::write(folder.path().join("list"), "week-01/a.warc.gz\n").unwrap();
    assert_eq!(names(folder.path(), &["warc.paths"], &reading), ["week-01/b.warc.gz", "week-02/e.parquet"]);
    let listing = format!("@{}/list", folder.path().display());
    assert_eq!(list(&[listing], &reading).unwrap().len(), 1);
}

#[test]
fn files_without_a_known_ending_are_recognised_by_their_first_bytes() {
    let folder = tempfile::tempdir().unwrap();
    let reading = Reading { base_url: Some("http://a".into()), ..Reading::default() };
    let format = |content: &[u8]| {
        let path = folder.path().join("data");
        fs::write(&path, content).unwrap();
        list(&[path.display().to_string()], &reading).map(|inputs| inputs[0].format)
    };
    assert_eq!(format(b"WARC/1.0\r\n").unwrap(), Format::Warc);
    assert_eq!(format(&zstd::bulk::compress(b"WARC/1.0\r\n", 1).unwrap()).unwrap(), Format::Warc);
    assert_eq!(format(b"{\"url\":").unwrap(), Format::Jsonl);
    assert_eq!(format(b"filedesc://a.arc 0.0.0.0 20240108000000 text/plain 9\n").unwrap(), Format::Arc);
    assert_eq!(format(b"PAR1").unwrap(), Format::Parquet);
    assert_eq!(format(b"PK\x03\x04, and no table of contents").unwrap(), Format::Wacz);
    assert_eq!(format(b"url\tdate\treason\n").unwrap(), Format::Failed);
    assert_eq!(format(b"<!doctype html>").unwrap(), Format::Html);
    assert!(format(b" [{\"url\": 1}]").unwrap_err().to_string().contains("jq -c '.[]'"));
    let pointer = b"version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 1\n";
    assert!(format(pointer).unwrap_err().to_string().contains("`git lfs pull`"));
    let index = "com,example)/ 20240108010203 http://example.com/ text/html 200 ABC - - 700 0 a.warc.gz\n";
    let header = format!(" CDX N b a m s k r M S V g\n{index}");
    let json = "com,example)/ 20240108010203 {\"url\": \"http://example.com/\", \"filename\": \"a.warc.gz\"}\n";
    let with_meta = format!("!OpenWayback-CDXJ 1.0\n{json}");
    for text in [index, &header, json, &with_meta] {
        for bytes in [text.as_bytes().to_vec(), zstd::bulk::compress(text.as_bytes(), 1).unwrap()] {
            let error = format(&bytes).unwrap_err().to_string();
            assert!(error.contains("is an index (CDX)") && error.contains("give the WARC files"), "{error}");
        }
    }
    assert!(format(b"hello").unwrap_err().to_string().contains("cannot tell"));
}

#[test]
fn endings_of_compressed_files_and_archives_are_known() {
    for (name, format) in [
        ("a.warc.bz2", Format::Warc),
        ("a.warc.wet.xz", Format::Warc),
        ("a.arc", Format::Arc),
        ("A.ARC.GZ", Format::Arc),
        ("a.jsonl.xz", Format::Jsonl),
        ("failed.tsv.bz2", Format::Failed),
        ("a.wacz", Format::Wacz),
        ("a.csv", Format::Csv),
        ("a.TSV.gz", Format::Tsv),
        ("a.txt.zst", Format::Text),
        ("README.md", Format::Text),
        ("a.html.gz", Format::Html),
    ] {
        assert_eq!(format_of_name(name), Some(format), "{name}");
    }
    assert_eq!(format_of_name("a.tar.xz"), None);
}

#[test]
fn devices_are_refused_and_pipes_are_left_out_of_folders_and_globs() {
    let folder = folder(&["a.jsonl"]);
    let pipe = folder.path().join("b.jsonl");
    rustix::fs::mknodat(rustix::fs::CWD, &pipe, rustix::fs::FileType::Fifo, 0o600.into(), 0).unwrap();
    let item = pipe.to_str().unwrap();
    assert!(error(&[item]).starts_with(&format!("{item} is a pipe")), "{}", error(&[item]));
    assert!(error(&["/dev/zero"]).starts_with("/dev/zero is a socket or a device"), "{}", error(&["/dev/zero"]));
    for item in ["", "*.jsonl"] {
        assert_eq!(names(folder.path(), &[item], &Reading::default()), ["a.jsonl"]);
    }
}

fn left_out(folder: &Path, items: &[&str]) -> String {
    let items: Vec<String> = items.iter().map(|item| format!("{}/{item}", folder.display())).collect();
    let found = list_with_pipes(&items, &Reading::default(), Pipes::Refuse("")).unwrap();
    found.left_out.to_string().replace(&format!("{}/", folder.display()), "")
}

#[test]
fn files_of_other_endings_are_counted_and_named() {
    let folder = folder(&["a.jsonl", "b.txt", "c.txt", "x/d.md", "x/e.json", "LICENCE", ".hidden.txt"]);
    let wanted = "*.txt: 2 (b.txt and others), *.json: 1 (x/e.json), *.md: 1 (x/d.md), without ending: 1 (LICENCE)";
    let actual = left_out(folder.path(), &[""]);
    // The system lists a folder in any order.
    assert_eq!(actual.replace("c.txt and", "b.txt and"), wanted);
    assert_eq!(left_out(folder.path(), &["*.jsonl"]), "");
}

#[test]
fn links_that_lead_nowhere_end_the_search_only_if_they_are_inputs() {
    use std::os::unix::fs::symlink;
    let folder = folder(&["a.jsonl", "x/b.jsonl", "y/d.jsonl"]);
    let link = |target: &str, name: &str| symlink(target, folder.path().join(name)).unwrap();
    link("nothing", "notes.txt");
    link("self", "self");
    link("..", "x/up");
    for item in ["", "**/*.jsonl"] {
        let wanted = ["a.jsonl", "x/b.jsonl", "y/d.jsonl"];
        assert_eq!(names(folder.path(), &[item], &Reading::default()), wanted);
    }
    let found = left_out(folder.path(), &[""]);
    assert!(
        found.contains("links to no file: 2 (") && found.contains("links to a folder above them: 1 (x/up)"),
        "{found}"
    );
    link("nothing", "c.jsonl");
    for item in ["", "*.jsonl"] {
        let error = error(&[&format!("{}/{item}", folder.path().display())]);
        assert!(error.contains("c.jsonl is a link to a file that does not exist"), "{error}");
    }
    assert_eq!(names(folder.path(), &["y"], &Reading::default()), ["y/d.jsonl"]);
}

#[test]
fn lines_of_listings_stay_below_the_base_unless_the_job_lets_them_leave() {
    let folder = folder(&FILES);
    let root = folder.path().display().to_string();
    let list = |line: &str, base: Option<&str>, anywhere: bool| {
        fs::write(folder.path().join("x.paths"), line).unwrap();
        let base_url = base.map(|base| format!("{root}/{base}"));
        let reading = Reading { base_url, listing_anywhere: anywhere, ..Reading::default() };
        list(&[format!("{root}/x.paths")], &reading).map(|inputs| inputs.len()).map_err(|error| format!("{error:#}"))
    };
    let outside = format!("{root}/week-02/e.parquet");
    assert_eq!(list("b.warc.gz", Some("week-01"), false), Ok(1));
    for line in [outside.as_str(), "../week-02/e.parquet"] {
        let error = list(line, Some("week-01"), false).unwrap_err();
        assert!(error.contains(&format!("`{line}` leaves")) && error.contains("listing-anywhere = true"), "{error}");
        assert_eq!(list(line, Some("week-01"), true), Ok(1));
    }
    assert_eq!(list(&outside, None, false), Ok(1));
}

#[test]
fn errors_name_the_item() {
    assert!(error(&["/no/such/file"]).starts_with("no input matches /no/such/file"));
    assert!(error(&["/no/such/*.warc"]).starts_with("no input matches /no/such/*.warc: there is no folder /no/such"));
    let folder = folder(&["notes.doc"]);
    let glob = format!("{}/*.warc", folder.path().display());
    assert!(error(&[&glob]).contains(&format!("nothing in the folder {} has such a name", folder.path().display())));
    assert!(error(&[&folder.path().display().to_string()]).starts_with("no input in"));
}

#[test]
fn tables_and_texts_are_inputs_if_they_are_named_or_alone() {
    let files = ["mixed/a.jsonl", "mixed/b.csv", "mixed/c.tsv", "mixed/d.txt.gz", "alone/a.csv", "alone/b.md"];
    let folder = folder(&files);
    let names = |items: &[&str]| names(folder.path(), items, &Reading::default());
    assert_eq!(names(&["mixed"]), ["mixed/a.jsonl"]);
    assert_eq!(names(&["mixed/*"]), ["mixed/a.jsonl"]);
    assert_eq!(left_out(folder.path(), &["mixed"]).matches(": 1 (").count(), 3);
    assert_eq!(names(&["mixed/*.csv", "mixed/*.txt.gz"]), ["mixed/b.csv", "mixed/d.txt.gz"]);
    for glob in ["mixed/*.{jsonl,csv}", "mixed/*.[jc]s*"] {
        assert_eq!(names(&[glob]), ["mixed/a.jsonl", "mixed/b.csv"], "{glob}");
    }
    for glob in ["mixed/*", "mixed/*.*"] {
        assert_eq!(names(&[glob]), ["mixed/a.jsonl"], "{glob}");
    }
    assert_eq!(names(&["mixed", "mixed/c.tsv"]), ["mixed/a.jsonl", "mixed/c.tsv"]);
    assert_eq!(names(&["alone"]), ["alone/a.csv", "alone/b.md"]);
}
