//! What stays of the week before in a crawl of a part of the pages, and what goes, case by case.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use nigh::records::KeyHash;
use nigh::state::Store;

use crate::program::{job, longs, run, run_well, tables, texts, week};
use crate::weeks::kept::record;
use crate::weeks::partial::{CrawledStore, DATES, JOB, PAGES, every, html, url};

/// Later weeks refer to the chunks of pages that stayed.
#[test]
fn chunks_that_a_later_week_uses_are_not_made_again() {
    let folder = tempfile::tempdir().unwrap();
    let job = format!("{JOB}[cluster.keep]\nchunks = false\n");
    let crawled = CrawledStore { folder: folder.path(), name: "store", input: "parts", job: &job };
    let none = BTreeSet::new();
    crawled.crawl(DATES[0], &every(1, 0), &none, &[]);
    let store = crawled.store();
    let inputs = [0, 1].map(|number| folder.path().join(format!("parts-{}/pages.jsonl", DATES[number])));
    let half = folder.path().join("half.jsonl");
    let text = std::fs::read_to_string(&inputs[0]).unwrap();
    std::fs::write(&half, text.lines().step_by(2).map(|line| format!("{line}\n")).collect::<String>()).unwrap();
    let make = |date: &str, inputs: &[&Path]| {
        let arguments =
            ["run", "jobs/chunks.toml", "-q", "--store", store.to_str().unwrap(), "--week", date, "--input"];
        let inputs = inputs.iter().map(|path| path.to_str().unwrap());
        run(&arguments.into_iter().chain(inputs).collect::<Vec<_>>())
    };
    assert_eq!(make(DATES[0], &[&half]).code, Some(0));
    crawled.crawl(DATES[1], &every(9, 1), &none, &["--absent", "keep"]);
    let before = tables(&store);
    let refused = make(DATES[0], &[&inputs[0]]);
    let wanted = format!("week {} uses chunks of week {}", DATES[1], DATES[0]);
    assert!(refused.code == Some(1) && refused.stderr.contains(&wanted), "{} {}", refused.stdout, refused.stderr);
    assert!(tables(&store) == before);

    assert_eq!(make(DATES[1], &[&inputs[0], &inputs[1]]).code, Some(0));
    assert_eq!(make(DATES[0], &[&inputs[0]]).code, Some(0));
    for date in &DATES[..2] {
        let docs: BTreeSet<i64> = longs(&week(&store, date), "chunks", "doc").into_iter().collect();
        assert_eq!((docs.len(), longs(&week(&store, date), "chunks", "doc").len()), (PAGES, PAGES), "{date}");
    }
}

/// A page without words and links has rows of `documents` and `clusters` only.
#[test]
fn a_deleted_page_without_words_does_not_count() {
    let folder = tempfile::tempdir().unwrap();
    let text = JOB.replace("shards = 4", "shards = 1");
    let crawled = CrawledStore { folder: folder.path(), name: "store", input: "parts", job: &text };
    let (input, empty) = (folder.path().join("first.jsonl"), "http://h0.example/empty");
    let line = |url: &str, html: &str| serde_json::json!({"url": url, "html": html}).to_string() + "\n";
    let pages: String = (0..PAGES).map(|page| line(&url(page), &html(page, 0))).collect();
    std::fs::write(&input, pages + &line(empty, "")).unwrap();
    crawled.run(DATES[0], &input, &[]);
    crawled.crawl(DATES[1], &every(30, 1), &BTreeSet::new(), &["--absent", "keep"]);
    run_well(&["delete", "--store", crawled.store().to_str().unwrap(), "--url", empty]);
    let store = Store::at(&crawled.store());
    let whole = store.whole(store.manifest().unwrap().unwrap().weeks.last().unwrap()).unwrap();
    let of_segments: u64 = whole.journal.segments.iter().map(|segment| segment.documents).sum();
    assert_eq!([of_segments, whole.committed.documents, whole.journal.counts.documents], [PAGES as u64; 3]);
    assert_eq!(longs(&week(&crawled.store(), DATES[1]), "documents", "doc").len(), PAGES);

    // The week before has links to what was deleted, if any page links to it.
    let (job, input) = (job(folder.path(), &text), folder.path().join(format!("parts-{}", DATES[1])));
    let [job, store, input] = [&job, &crawled.store(), &input].map(|path| path.to_str().unwrap().to_owned());
    let arguments = ["run", &job, "-q", "--week", DATES[1], "--store", &store, "--input", &input, "--absent", "keep"];
    let again = run_well(&[&arguments[..], &["--replace"]].concat());
    assert!(again.stderr.contains("pages were deleted from the former week 2024-01-15 (1 URL)"), "{}", again.stderr);
    assert!(again.stderr.contains("`nigh delete` removes them"), "{}", again.stderr);
}

/// It is alone in its shard: the week moved on with each one.
#[test]
fn an_empty_page_keeps_the_week_that_it_is_stored_in() {
    let folder = tempfile::tempdir().unwrap();
    let crawled = CrawledStore { folder: folder.path(), name: "store", input: "parts", job: JOB };
    let empty = "http://h0.example/empty";
    let shard = |url: &str| KeyHash::of(url).shard(4);
    let line = |url: &str, html: &str| serde_json::json!({"url": url, "html": html}).to_string() + "\n";
    let others: Vec<usize> = (0..PAGES).filter(|page| shard(&url(*page)) != shard(empty)).collect();
    let run = |number: usize, text: &str| {
        let input = folder.path().join(format!("{number}.jsonl"));
        std::fs::write(&input, text).unwrap();
        crawled.run(DATES[number], &input, &["--absent", "keep"]);
        let stored = crawled.rows(DATES[number], "documents", &["url", "stored"]).into_iter();
        stored.filter(|row| row[0] == empty).map(|row| row[1].clone()).collect::<Vec<String>>()
    };
    let first: String = others.iter().map(|page| line(&url(*page), &html(*page, 0))).collect();
    assert_eq!(run(0, &(first + &line(empty, ""))), [DATES[0]]);
    for number in 1..4 {
        assert_eq!(run(number, &line(&url(others[0]), &html(others[0], number))), [DATES[0]], "week {number}");
    }
}

/// The week of the page that links did not know these.
#[test]
fn a_deletion_finds_pages_that_came_later_than_the_links_to_them() {
    let folder = tempfile::tempdir().unwrap();
    let text = JOB.replace("shards = 4", "shards = 2");
    let crawled = CrawledStore { folder: folder.path(), name: "store", input: "parts", job: &text };
    let pages = |name: &str, urls: &[String], targets: &[String]| {
        let line = |(number, (url, target)): (usize, (&String, &String))| {
            let html = format!("{} <a href={target}>x</a>", html(number, 0));
            serde_json::json!({"url": url, "html": html}).to_string() + "\n"
        };
        let path = folder.path().join(name);
        std::fs::write(&path, urls.iter().zip(targets).enumerate().map(line).collect::<String>()).unwrap();
        path
    };
    let urls = |host: &str| (0..30).map(|page| format!("http://{host}.example/{page}")).collect::<Vec<String>>();
    let [first, later] = ["first", "later"].map(urls);
    crawled.run(DATES[0], &pages("first.jsonl", &first, &later), &[]);
    crawled.run(DATES[1], &pages("later.jsonl", &later, &first), &["--absent", "keep"]);
    let targets = || {
        let rows = crawled.rows(DATES[1], "links", &["target_url", "target_doc"]).into_iter();
        rows.filter(|row| row[0].starts_with("http://later.")).map(|row| row[1] != "null").collect::<Vec<bool>>()
    };
    assert_eq!(targets(), [false; 30]);
    let store = crawled.store();
    let one_of_each = ["--url", &first[0], "--url", &later[1]];
    run_well(&[&["delete", "--store", store.to_str().unwrap(), "--workers", "2"][..], &one_of_each].concat());
    assert_eq!(targets(), [true; 28]);
}

/// One URL may have several answers in a crawl.
#[test]
fn a_page_is_gone_whatever_else_the_server_said() {
    let answers = [(3, "503"), (3, "404"), (4, "301"), (4, "410"), (5, "404"), (5, "503"), (6, "503"), (6, "500")];
    // All answers in one wave, and each in a wave of its own.
    for wave in ["1GiB", "1KiB"] {
        let folder = tempfile::tempdir().unwrap();
        let job = JOB.replace("[cluster]\n", &format!("[cluster]\nwave-bytes = \"{wave}\"\n"));
        let crawled = CrawledStore { folder: folder.path(), name: "store", input: "parts", job: &job };
        crawled.crawl(DATES[0], &every(1, 0), &BTreeSet::new(), &[]);
        let input = folder.path().join("answers");
        std::fs::create_dir(&input).unwrap();
        for (number, (page, status)) in answers.iter().enumerate() {
            let answer = record(&url(*page), status.parse().unwrap(), "Location: /elsewhere\r\n", "");
            std::fs::write(input.join(format!("{number}.warc")), answer).unwrap();
        }
        crawled.run(DATES[1], &input, &["--absent", "keep"]);
        let of = week(&crawled.store(), DATES[1]);
        let stay: BTreeSet<String> = texts(&of, "documents", "url").into_iter().collect();
        let wanted: BTreeSet<String> = (0..PAGES).filter(|page| ![3, 4, 5].contains(page)).map(url).collect();
        assert_eq!(stay, wanted, "{wave}");
        let reasons = texts(&of, "missing", "url").into_iter().zip(texts(&of, "missing", "reason"));
        let reasons: BTreeMap<String, String> = reasons.filter(|(url, _)| !wanted.contains(url)).collect();
        let first = [(3, "status 503"), (4, "status 301"), (5, "status 404")];
        assert_eq!(reasons, first.map(|(page, reason)| (url(page), reason.to_owned())).into(), "{wave}");
    }
}

/// A download that failed without an answer says nothing of what the URL is.
#[test]
fn a_redirect_stays_until_its_url_is_answered() {
    let folder = tempfile::tempdir().unwrap();
    let crawled = CrawledStore { folder: folder.path(), name: "store", input: "parts", job: JOB };
    let moved = |number: usize| format!("http://h0.example/moved/{number}");
    let input = |name: &str| {
        let path = folder.path().join(name);
        std::fs::create_dir(&path).unwrap();
        path
    };
    let first = input("first");
    let answers: String = (0..6).map(|number| record(&moved(number), 301, "Location: /1\r\n", "")).collect();
    std::fs::write(first.join("answers.warc"), answers).unwrap();
    let line = |page: usize| serde_json::json!({"url": url(page), "html": html(page, 0)}).to_string() + "\n";
    std::fs::write(first.join("pages.jsonl"), (0..9).map(line).collect::<String>()).unwrap();
    crawled.run(DATES[0], &first, &[]);

    // 0 and 1 have no answer, 2 and 3 have one, of 4 a timeout comes before it; of 5 there is
    // nothing.
    let second = input("second");
    let reasons = [(0, "timeout"), (1, "robots-denied"), (3, "status 503"), (4, "timeout")];
    let failed: String = reasons.iter().map(|(number, reason)| format!("{}\t{reason}\n", moved(*number))).collect();
    std::fs::write(second.join("failed.tsv"), format!("url\treason\n{failed}")).unwrap();
    let answers: String = [2, 4].map(|number| record(&moved(number), 404, "", "")).concat();
    std::fs::write(second.join("zanswers.warc"), answers).unwrap();
    crawled.run(DATES[1], &second, &["--absent", "keep", "--allow-empty"]);
    let mut stay = texts(&week(&crawled.store(), DATES[1]), "redirects", "url");
    stay.sort();
    assert_eq!(stay, [0, 1, 5].map(moved));
}
