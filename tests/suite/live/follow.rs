//! Files that grow, which `nigh live` follows; it is killed meanwhile.

use std::collections::BTreeMap;
use std::io::Write;
use std::path::Path;
use std::time::Duration;

use serde_json::{Value, json};

use crate::live::{Live, Numbers, apply, body, found_by_run, found_live, metric, wait_for};
use crate::program::run;

fn append(path: &Path, bytes: &[u8]) {
    std::fs::File::options().create(true).append(true).open(path).unwrap().write_all(bytes).unwrap();
}

/// The records that a process has taken, with those of its journal.
fn records(live: &Live) -> u64 {
    metric(live, "nigh_live_records_total").expect("a server that is there")
}

/// Waits until so many records were taken.
fn wait_for_records(live: &Live, wanted: u64) {
    wait_for(&format!("a server with {wanted} records"), || (records(live) == wanted).then_some(()));
}

#[test]
fn lines_of_files_that_grow_are_taken_once_whenever_it_is_killed() {
    let folder = tempfile::tempdir().unwrap();
    let (store, followed) = (folder.path().join("store"), folder.path().join("in"));
    std::fs::create_dir(&followed).unwrap();
    let (mut numbers, mut there) = (Numbers(31), BTreeMap::new());
    // Each file has documents of its own, so that the order of files does not matter.
    let batches: Vec<(usize, Vec<Value>)> = (0..60)
        .map(|number| {
            let named = |line: Value| {
                let mut line = line;
                line["id"] = json!(format!("{}-{}", number % 3, line["id"]).replace('"', ""));
                line
            };
            (number % 3, numbers.batch(40).into_iter().map(named).collect())
        })
        .collect();
    let text: Vec<(usize, String)> = batches.iter().map(|(file, lines)| (*file, body(lines))).collect();
    // Pieces that end anywhere.
    let mut pieces = text.iter().flat_map(|(file, text)| text.as_bytes().chunks(5000).map(move |piece| (*file, piece)));
    let flags = ["--by", "id", "--follow", followed.to_str().unwrap()];
    let mut is_end = false;
    while !is_end {
        let live = Live::start(&store, &flags);
        for _ in 0..10 {
            match pieces.next() {
                Some((file, piece)) => append(&followed.join(format!("{file}.jsonl")), piece),
                None => is_end = true,
            }
            std::thread::sleep(Duration::from_millis(numbers.below(120)));
        }
        // Killed here.
        drop(live);
    }
    batches.iter().for_each(|(_, batch)| apply(&mut there, batch));
    let all: u64 = batches.iter().map(|(_, batch)| batch.len() as u64).sum();
    let live = Live::start(&store, &flags);
    wait_for_records(&live, all);
    assert_eq!(found_live(&live, &there), found_by_run(folder.path(), "run", &there));
    // The journal of a commit keeps the places.
    assert_eq!(live.send("POST", "/commit", &[], b"").status, 200);
    drop(live);
    let live = Live::start(&store, &flags);
    append(&followed.join("0.jsonl"), b"not JSON\n{\"id\":\"new\",\"text\":\"one two three\"}\n");
    wait_for_records(&live, 1);
    apply(&mut there, &[json!({"id": "new", "text": "one two three"})]);
    assert_eq!(found_live(&live, &there), found_by_run(folder.path(), "committed", &there));
    // One that is there has another text, by HTTP.
    assert_eq!(live.post("1", &[json!({"id": "new", "text": "four five six"})])[0]["new"], false);
}

#[test]
fn pages_of_an_archive_that_grows_are_those_of_a_run_over_it() {
    let folder = tempfile::tempdir().unwrap();
    let (store, followed) = (folder.path().join("store"), folder.path().join("in"));
    std::fs::create_dir(&followed).unwrap();
    let archive = crate::program::data("week-2024-01-08").read_dir().unwrap().map(|entry| entry.unwrap().path());
    let archive = archive.filter(|path| path.to_str().unwrap().ends_with(".warc.gz")).min().unwrap();
    let bytes = std::fs::read(&archive).unwrap();
    let live = Live::start(&store, &["--follow", followed.to_str().unwrap()]);
    let crawl = followed.join("crawl.warc.gz");
    let mut taken = 0;
    for piece in bytes.chunks(bytes.len().div_ceil(5)) {
        append(&crawl, piece);
        // Each piece has whole records.
        taken = wait_for("a record", || Some(records(&live)).filter(|now| *now > taken));
    }
    // The last record counts when the file has not changed for ten seconds.
    let before = std::time::SystemTime::now() - Duration::from_secs(11);
    std::fs::File::options().write(true).open(&crawl).unwrap().set_modified(before).unwrap();
    let other = folder.path().join("other");
    let paths = [&other, &archive].map(|path| path.to_str().unwrap());
    let ran =
        run(&["run", "jobs/cluster.toml", "-q", "--store", paths[0], "--week", "2024-01-08", "--input", paths[1]]);
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    let of = crate::program::week(&other, "2024-01-08");
    let (urls, sizes) =
        (crate::program::texts(&of, "clusters", "url"), crate::program::longs(&of, "clusters", "similar_size"));
    let documents = || metric(&live, "nigh_live_documents").filter(|documents| *documents == urls.len() as u64);
    wait_for(&format!("a server with {} documents", urls.len()), documents);
    for (url, size) in urls.iter().zip(sizes) {
        let encoded = url.replace('%', "%25").replace('?', "%3F").replace('#', "%23");
        assert_eq!(live.get(&format!("/documents/{encoded}"))["size"].as_i64(), Some(size), "{url}");
    }
}

#[test]
fn a_file_that_was_replaced_while_no_process_followed_it_is_not_taken_for_one_that_grew() {
    let folder = tempfile::tempdir().unwrap();
    let (store, followed) = (folder.path().join("store"), folder.path().join("in"));
    std::fs::create_dir(&followed).unwrap();
    let flags = ["--by", "id", "--follow", followed.to_str().unwrap()];
    let lines = |from: usize, count: usize| {
        let line = |id: usize| json!({"id": id, "text": format!("some words of {id}")});
        body(&(from..from + count).map(line).collect::<Vec<_>>())
    };
    let file = followed.join("a.jsonl");
    append(&file, lines(0, 10).as_bytes());
    let live = Live::start(&store, &flags);
    wait_for_records(&live, 10);
    // The journal of a commit keeps what the file had.
    assert_eq!(live.send("POST", "/commit", &[], b"").status, 200);
    drop(live);
    std::fs::write(&file, lines(100, 40)).unwrap();
    append(&followed.join("b.jsonl"), lines(10, 1).as_bytes());
    let live = Live::start(&store, &flags);
    wait_for_records(&live, 1);
    assert_eq!(live.get("/documents/10")["new"], false);
    assert!((100..140).all(|id| live.send("GET", &format!("/documents/{id}"), &[], b"").status == 404));
    // Under another name they are taken.
    std::fs::rename(&file, followed.join("c.jsonl")).unwrap();
    wait_for_records(&live, 41);
    assert_eq!(live.get("/documents/139")["size"], 1);
}

#[test]
fn a_folder_that_is_not_there_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let [store, missing] = ["store", "missing"].map(|name| folder.path().join(name).to_str().unwrap().to_owned());
    let refused = run(&["live", &store, "--follow", &missing]);
    assert!(refused.code == Some(2) && refused.stderr.contains("there is no such folder"), "{}", refused.stderr);
}

#[test]
fn what_answers_another_method_is_not_the_page() {
    let folder = tempfile::tempdir().unwrap();
    let (store, followed) = (folder.path().join("store"), folder.path().join("in"));
    std::fs::create_dir(&followed).unwrap();
    let record = |kind: &str, number: usize, of: usize, block: &str| {
        let id = |number: usize| format!("<urn:uuid:00000000-0000-0000-0000-{number:012}>");
        format!(
            "WARC/1.0\r\nWARC-Type: {kind}\r\nWARC-Target-URI: http://a.example/x\r\nWARC-Record-ID: {}\r\nWARC-Concurrent-To: {}\r\n\
             Content-Type: application/http\r\nContent-Length: {}\r\n\r\n{block}\r\n\r\n",
            id(number),
            id(of),
            block.len()
        )
    };
    let answer = |body: &str| format!("HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n\r\n{body}");
    let text = "one two three four five six seven eight nine ten";
    let mut archive = record("response", 1, 2, &answer(text)) + &record("request", 2, 1, "GET /x HTTP/1.1\r\n\r\n");
    for (number, method, body) in [(3, "POST", "a form"), (5, "HEAD", "")] {
        archive += &record("request", number, number + 1, &format!("{method} /x HTTP/1.1\r\n\r\n"));
        archive += &record("response", number + 1, number, &answer(body));
    }
    archive += &record("response", 7, 8, &answer(text)).replace("/x", "/y");
    archive += &record("request", 8, 7, "GET /y HTTP/1.1\r\n\r\n").replace("/x", "/y");
    append(&followed.join("crawl.warc"), archive.as_bytes());
    let live = Live::start(&store, &["--by", "url", "--follow", followed.to_str().unwrap()]);
    let of_two = || (metric(&live, "nigh_live_documents") == Some(2)).then_some(());
    wait_for("two pages", of_two);
    let cluster = live.get("/documents/http%3A%2F%2Fa.example%2Fx");
    assert_eq!((&cluster["size"], &cluster["level"]), (&json!(2), &json!("exact")), "{cluster}");
}
