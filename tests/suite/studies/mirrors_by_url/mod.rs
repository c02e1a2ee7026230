//! Mirrors by URL against a twin of dictionaries: on random hosts, on real pages and on the made
//! web.

mod known;
mod ranking;
mod twin;

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::time::Instant;

use nigh::records::{checksum, mix};

use self::known::{HostPage, KnownBefore, SaidOfUrl, name};
use self::twin::{MirrorsByUrlSettings, assert_right};
use crate::program::{Made, WEEK, copy_folder, job, kill_at_moments, rows_of, run, run_well, tables};
use crate::studies::avoid::made::{DATES, MadeCrawl, MadeStore};
use crate::web::{COLUMNS, WEEKS, Web, WebStore};

/// Names of hosts: with and without `www`, ports, addresses, and letters beyond ASCII.
const HOSTS: [&str; 14] = [
    "www.north.example",
    "north.example",
    "mirror.north.test",
    "south.example",
    "www2.south.example:8080",
    "south.test",
    "[2001:db8::1]:8080",
    "10.1.2.3",
    "xn--bcher-kva.example",
    "xn--bcher-kva.test:81",
    "d299.books.example",
    "d17.books.example",
    "archive.example",
    "archive.north.example",
];

/// A store of random hosts that copy some sites, with pages missing or rewritten. Pages link to
/// pages of their host and of others that were not fetched. In the second week some URLs are gone.
struct RandomHosts {
    folder: tempfile::TempDir,
}

impl RandomHosts {
    fn new(seed: u64, weeks: usize) -> RandomHosts {
        let made = RandomHosts { folder: tempfile::tempdir().unwrap() };
        for (number, date) in WEEKS.iter().enumerate().take(weeks) {
            let (lines, failed) = RandomHosts::week(seed, number as u64);
            let folder = made.folder.path().join(date);
            std::fs::create_dir(&folder).unwrap();
            std::fs::write(folder.join("pages.jsonl"), lines).unwrap();
            std::fs::write(folder.join("failed.tsv"), failed).unwrap();
            let kind = if number == 0 { "cluster" } else { "weekly" };
            let shards = if number == 0 { "[cluster.method]\nshards = 4\n" } else { "" };
            let job = job(&folder, &format!("[{kind}]\n[{kind}.read.columns]\nhtml = \"html\"\n{shards}"));
            let flags = ["-q", "--week", date, "--input", folder.to_str().unwrap(), "--store"];
            run_well(&[&["run", job.to_str().unwrap()][..], &flags, &[made.path().to_str().unwrap()]].concat());
        }
        made
    }

    fn path(&self) -> PathBuf {
        self.folder.path().join("store")
    }

    /// The URLs of a seed, each with the number of its text.
    fn urls(seed: u64) -> BTreeMap<String, (u64, u64)> {
        let mut urls = BTreeMap::new();
        for (number, host) in HOSTS.iter().enumerate() {
            let of_host = mix(seed ^ number as u64);
            let (site, kept) = (of_host % 4, 4 + of_host / 4 % 9);
            for page in 0..15 + 20 * site {
                let fate = mix(of_host ^ mix(page));
                if fate % 12 >= kept {
                    continue;
                }
                let path = match page % 8 {
                    0 => format!("/s{site}/docs/v{page}/index.html"),
                    1 => format!("/lib/s{site}/chapter{}/page{page}.html", page % 3),
                    2 => format!("/cgi-bin/nph-search/{site}/q{page}"),
                    3 => format!("/s{site}/img?x=/{page}&y=a%20b"),
                    4 if page == 4 => "/".to_owned(),
                    _ => format!("/s{site}/docs/part{}/p{page}.txt", page % 5),
                };
                let scheme = if (fate / 12).is_multiple_of(5) { "https" } else { "http" };
                // Some pages have no words, some are rewritten in part or wholly.
                let text = 1000 * site + page;
                let edit = fate / 64 % 10;
                urls.insert(format!("{scheme}://{host}{path}"), (text, edit));
                // Some pages are there by either scheme, with another text: they are one page.
                if fate.is_multiple_of(7) {
                    let other = if scheme == "http" { "https" } else { "http" };
                    urls.insert(format!("{other}://{host}{path}"), (text, (edit + 1) % 10));
                }
            }
        }
        urls
    }

    /// The pages of a week as JSON Lines, and its failed downloads.
    fn week(seed: u64, week: u64) -> (String, String) {
        let urls = RandomHosts::urls(seed);
        let all: Vec<&String> = urls.keys().collect();
        let (mut lines, mut failed) = (String::new(), "url\treason\n".to_owned());
        // In the second week some hosts fail wholly.
        let failing = |url: &str| {
            let host = HOSTS.iter().position(|host| *host == name(url).0).unwrap() as u64;
            let reasons = [&["dns"][..], &["connection-reset", "dns"], &["dns", "timeout", "status 503"]];
            (mix(seed ^ mix(host ^ 77)) % 7).checked_sub(4).map(|kind| reasons[kind as usize]).filter(|_| week > 0)
        };
        for (number, (url, (text, edit))) in urls.iter().enumerate() {
            let fate = mix(seed ^ mix(number as u64 ^ week << 32));
            if let Some(reasons) = failing(url) {
                writeln!(failed, "{url}\t{}", reasons[number % reasons.len()]).unwrap();
                continue;
            }
            if fate.is_multiple_of(5) || week == 0 && fate.is_multiple_of(3) {
                if week > 0 {
                    let reason = ["status 404", "status 410", "dns"][(fate / 15 % 3) as usize];
                    writeln!(failed, "{url}\t{reason}").unwrap();
                }
                continue;
            }
            let word = |at: u64, seed: u64| format!("w{}", mix(seed << 20 | at) % 5000);
            let words: Vec<String> = (0..60)
                .map(|at| match edit {
                    0 if at == 30 => word(at, 77 + number as u64),
                    1 if at > 30 => word(at, 77 + number as u64),
                    2 => word(at, 77 + number as u64),
                    _ => word(at, *text),
                })
                .collect();
            let body = if *edit == 3 { String::new() } else { words.join(" ") };
            // Pages whose markup alone differs have the same text.
            let mark = if *edit == 4 { format!("<i class=c{number}></i>") } else { String::new() };
            let links = if *edit > 6 { 0 } else { 6 };
            let links: String = (0..links)
                .map(|link| all[(mix(fate ^ link) % all.len() as u64) as usize])
                .map(|target| format!("<a href=\"{target}\"></a>"))
                .collect();
            let html = format!("<p>{body}</p>{mark}{links}");
            lines += &(serde_json::json!({"url": url, "html": html}).to_string() + "\n");
        }
        (lines, failed)
    }
}

/// Settings that differ in each parameter.
fn all_settings() -> Vec<MirrorsByUrlSettings> {
    let default = MirrorsByUrlSettings::default();
    vec![
        default.clone(),
        MirrorsByUrlSettings { pages_only: true, ..default.clone() },
        MirrorsByUrlSettings { failed: true, whole_paths: false, similar: 0.8, ..default.clone() },
        MirrorsByUrlSettings { least_urls: 20, paths: 4, tests: 3, most_hosts: 3, ..default.clone() },
        MirrorsByUrlSettings {
            failed: true,
            least_urls: 1,
            paths: 7,
            tests: 7,
            most_hosts: 6,
            similar: 0.3,
            ..default
        },
    ]
}

#[test]
fn candidates_and_tests_of_random_hosts_are_those_of_brute_force() {
    let (mut levels, mut outcomes) = (BTreeMap::new(), BTreeMap::new());
    for seed in 1..10 {
        let weeks = 1 + seed as usize % 2;
        let made = RandomHosts::new(seed, weeks);
        for settings in all_settings() {
            settings.run(&made.path(), &["--workers", "2"]);
            let known = KnownBefore::of_week(&made.path(), WEEKS[weeks - 1], settings.pages_only);
            let rows = assert_right(&made.path(), &known, &settings);
            rows["candidates"].iter().for_each(|row| *levels.entry(row[8].clone()).or_insert(0) += 1);
            rows["tests"].iter().for_each(|row| *outcomes.entry(row[4].clone()).or_insert(0) += 1);
        }
    }
    assert!(outcomes.len() == 8 && levels.len() >= 8, "{levels:?} {outcomes:?}");
    assert!(levels["dns-failure"] > 5 && levels["server-failure"] > 5, "{levels:?}");
}

#[test]
fn candidates_and_tests_of_real_pages_and_of_the_made_web_are_those_of_brute_force() {
    let real = Made::new(&[]);
    let web = WebStore::new(Web::small(), 2, true);
    for (store, date) in [(real.store(), WEEK), (web.path(), WEEKS[1])] {
        for settings in [
            MirrorsByUrlSettings::default(),
            MirrorsByUrlSettings { least_urls: 2, failed: true, ..MirrorsByUrlSettings::default() },
        ] {
            settings.run(&store, &[]);
            let rows = assert_right(&store, &KnownBefore::of_week(&store, date, settings.pages_only), &settings);
            assert!(!rows["candidates"].is_empty());
        }
    }
}

#[test]
fn workers_processes_and_memory_do_not_change_a_byte() {
    let made = RandomHosts::new(7, 2);
    let store = made.path();
    let little = made.folder.path().join("little.toml");
    std::fs::write(&little, "memory = \"64KiB\"\n").unwrap();
    let settings = MirrorsByUrlSettings { paths: 9, failed: true, ..MirrorsByUrlSettings::default() };
    let one = settings.run(&store, &["--workers", "1"]);
    let summary = || run_well(&["show", store.to_str().unwrap(), "--job", "mirrors-by-url", "--json"]).stdout;
    let summary_of_one = summary();
    assert_eq!(one.len(), 8);
    for flags in [
        &["--workers", "1"][..],
        &["--workers", "2"],
        &["--workers", "4"],
        &["--workers", "1", "--processes", "2"],
        &["--workers", "2", "--processes", "2"],
        &["--workers", "2", "--config", little.to_str().unwrap()],
    ] {
        assert!(one == settings.run(&store, flags), "{flags:?}");
        assert_eq!(summary(), summary_of_one, "{flags:?}");
    }
    // The best candidates are the first ones of the longer list.
    let all = rows_of(&store.join("mirrors-by-url"), "candidates", &twin::columns("candidates"));
    let few = MirrorsByUrlSettings { more: "most-candidates = 3\n".to_owned(), ..settings };
    few.run(&store, &["--workers", "2"]);
    let listed = rows_of(&store.join("mirrors-by-url"), "candidates", &twin::columns("candidates"));
    assert!(all.len() > 10 && listed == all[..3], "{listed:?}");
    let shown = run_well(&["show", store.to_str().unwrap(), "--job", "mirrors-by-url"]).stdout;
    assert!(shown.contains("are not listed: raise most-candidates"), "{shown}");
}

#[test]
fn lists_and_indexes_need_no_week_and_join_one() {
    let folder = tempfile::tempdir().unwrap();
    let (store, lists) = (folder.path().join("store"), folder.path().join("lists"));
    std::fs::create_dir(&lists).unwrap();
    let urls: Vec<String> = RandomHosts::urls(3).into_keys().collect();
    let (mut known, mut plain, mut index) =
        (KnownBefore::default(), String::new(), " CDX N b a m s k r M S V g\n".to_owned());
    for (number, url) in urls.iter().enumerate() {
        let status = ["200", "404", "-", "301"][number % 4];
        if number % 3 > 0 {
            writeln!(index, "key 20240108000000 {url} text/html {status} AAAA - - 10 20 file").unwrap();
            known.add(
                url,
                SaidOfUrl { listed_fetched: status == "200", listed_gone: status == "404", ..SaidOfUrl::default() },
            );
        }
        if number % 3 < 2 {
            writeln!(plain, "{url}").unwrap();
            known.add(url, SaidOfUrl::default());
        }
    }
    std::fs::write(lists.join("plain.txt"), plain).unwrap();
    std::fs::write(lists.join("index.cdx"), index).unwrap();
    let settings = MirrorsByUrlSettings {
        more: format!("lists = [{:?}]\n", lists.to_str().unwrap()),
        ..MirrorsByUrlSettings::default()
    };
    settings.run(&store, &["--workers", "2"]);
    let rows = assert_right(&store, &known, &settings);
    assert!(rows["candidates"].len() > 5 && rows["candidates"].iter().all(|row| row[8] == "few"));
    let shown = run_well(&["show", store.to_str().unwrap(), "--job", "mirrors-by-url"]).stdout;
    assert!(shown.starts_with("Mirrors by URL of lists:"), "{shown}");
    // The store takes its first week, with parameters of its own; the lists join its URLs, and its
    // pages are tested.
    let (lines, _) = RandomHosts::week(3, 1);
    std::fs::write(folder.path().join("pages.jsonl"), lines).unwrap();
    let cluster = job(
        folder.path(),
        "[cluster]\n[cluster.read.columns]\nhtml = \"html\"\n[cluster.method]\nshards = 8\nfeatures = 60\n",
    );
    let input = folder.path().join("pages.jsonl");
    let flags = ["-q", "--week", WEEK, "--input", input.to_str().unwrap(), "--store", store.to_str().unwrap()];
    run_well(&[&["run", cluster.to_str().unwrap()][..], &flags].concat());
    settings.run(&store, &[]);
    let mut joined = KnownBefore::of_week(&store, WEEK, false);
    known.join(&mut joined);
    let rows = assert_right(&store, &joined, &settings);
    assert!(rows["candidates"].iter().any(|row| row[8] != "few"));
}

#[test]
fn answers_to_probes_come_back_as_input() {
    let made = RandomHosts::new(4, 2);
    let store = made.path();
    let settings = MirrorsByUrlSettings::default();
    settings.run(&store, &[]);
    let mut known = KnownBefore::of_week(&store, WEEKS[1], false);
    let before = assert_right(&store, &known, &settings);
    // A crawler fetches what the table asks for: pages, missing pages, and some that it cannot
    // reach.
    let (mut pages, mut failed) = (String::new(), "url\treason\n".to_owned());
    let method = nigh::config::Method::default();
    let mut fingerprinter = nigh::features::Fingerprinter::of_method(&method).unwrap();
    for (number, row) in before["probes"].iter().enumerate() {
        let url = &row[1];
        match number % 4 {
            0 => writeln!(failed, "{url}\tstatus 404").unwrap(),
            1 => {
                writeln!(failed, "{url}\tconnection refused").unwrap();
                known.said_of_hosts.entry(name(url).0).or_default().insert("connection refused".to_owned());
            }
            _ => {
                let (host, path) = name(url);
                let text = format!("{} text of {path}", if number % 3 == 0 { &host } else { "" });
                let html = format!("<p>{text} {}", "and some more words that all pages have ".repeat(3));
                writeln!(pages, "{}", serde_json::json!({"url": url, "html": html})).unwrap();
                let canonical = nigh::text::canonical(url).unwrap();
                let sketch = fingerprinter.html(html.as_bytes(), Some("utf-8"), Some(&canonical)).sketch;
                let (checksum, features) = (checksum(html.as_bytes()).to_be_bytes().to_vec(), Some(sketch.features));
                known.add_page(name(url), HostPage { order: i64::MAX, checksum, features });
            }
        }
        if number % 4 == 0 {
            known.gone.insert(name(url));
        }
        if number % 4 != 1 {
            known.said_of_hosts.entry(name(url).0).or_default().insert("page".to_owned());
        }
    }
    // A page that the week has: that of the week counts.
    let (host, path) = known.pages.keys().next().unwrap();
    let row = serde_json::json!({"url": format!("http://{host}{path}"), "html": "<p>other words"});
    writeln!(pages, "{row}").unwrap();
    // A page that no test asks for.
    writeln!(pages, "{}", serde_json::json!({"url": "http://elsewhere.example/", "html": "x"})).unwrap();
    let answers = made.folder.path().join("answers");
    std::fs::create_dir(&answers).unwrap();
    std::fs::write(answers.join("pages.jsonl"), pages).unwrap();
    std::fs::write(answers.join("failed.tsv"), failed).unwrap();
    let folder = answers.to_str().unwrap();
    let tables = settings.run(&store, &["--workers", "2", "--input", folder]);
    let after = assert_right(&store, &known, &settings);
    assert!(!before["probes"].is_empty() && after["probes"].len() < before["probes"].len());
    let few = |rows: &BTreeMap<&str, twin::TableRows>| rows["candidates"].iter().filter(|row| row[8] == "few").count();
    assert!(few(&after) < few(&before), "{} {}", few(&after), few(&before));
    assert!(settings.run(&store, &["--workers", "1", "--input", folder]) == tables);
    let shown = run_well(&["show", store.to_str().unwrap(), "--job", "mirrors-by-url"]).stdout;
    assert!(shown.contains("2 crawl files for tests"), "{shown}");
    // A damaged file is refused: a test without its page would be another result.
    let packed = answers.join("pages.jsonl.gz");
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::default());
    std::io::Write::write_all(&mut encoder, &std::fs::read(answers.join("pages.jsonl")).unwrap()).unwrap();
    let bytes = encoder.finish().unwrap();
    std::fs::write(&packed, &bytes[..bytes.len() / 2]).unwrap();
    let job = job(made.folder.path(), &settings.toml());
    let ran =
        run(&["run", job.to_str().unwrap(), "--store", store.to_str().unwrap(), "--input", packed.to_str().unwrap()]);
    assert!(ran.code == Some(1) && ran.stderr.contains("Restore the file"), "{}", ran.stderr);
}

/// A store of one week of pages, each with its links.
fn linked(folder: &Path, pages: &[(String, Vec<String>)]) -> PathBuf {
    let line = |(url, links): &(String, Vec<String>)| {
        let links: String = links.iter().map(|link| format!("<a href=\"{link}\">")).collect();
        serde_json::json!({"url": url, "html": format!("<p>words of {url}</p>{links}")}).to_string() + "\n"
    };
    std::fs::write(folder.join("pages.jsonl"), pages.iter().map(line).collect::<String>()).unwrap();
    let job = job(folder, "[cluster]\nallow-empty = true\n[cluster.read.columns]\nhtml = \"html\"\n");
    let (input, store) = (folder.join("pages.jsonl"), folder.join("store"));
    let flags = ["-q", "--week", WEEK, "--input", input.to_str().unwrap(), "--store", store.to_str().unwrap()];
    run_well(&[&["run", job.to_str().unwrap()][..], &flags].concat());
    store
}

#[test]
fn a_host_of_a_million_links_to_itself_and_hosts_of_one_page() {
    let folder = tempfile::tempdir().unwrap();
    let itself = "http://a.example/x/y".to_owned();
    let mut pages = vec![(itself.clone(), vec![itself; 1_000_000])];
    pages.extend((0..15).map(|host| (format!("http://h{host}.example/x/y"), Vec::new())));
    let store = linked(folder.path(), &pages);
    for least_urls in [1, 2] {
        let settings = MirrorsByUrlSettings { least_urls, ..MirrorsByUrlSettings::default() };
        settings.run(&store, &["--workers", "2"]);
        let rows = assert_right(&store, &KnownBefore::of_week(&store, WEEK, false), &settings);
        assert_eq!(rows["candidates"].is_empty(), least_urls == 2);
    }
}

#[test]
fn an_empty_week_and_mistakes_are_reported() {
    let folder = tempfile::tempdir().unwrap();
    let store = linked(folder.path(), &[]);
    let store_text = store.to_str().unwrap();
    let settings = MirrorsByUrlSettings::default();
    settings.run(&store, &[]);
    assert_right(&store, &KnownBefore::of_week(&store, WEEK, false), &settings);
    let shown = run_well(&["show", store_text, "--job", "mirrors-by-url"]).stdout;
    assert!(shown.contains("179,369,374") && shown.contains("level 4"), "{shown}");
    let empty = folder.path().join("none");
    let list = folder.path().join("list.txt");
    std::fs::write(&list, "one\ntwo\n").unwrap();
    let of_list = format!("[mirrors-by-url]\nlists = [{:?}]\n", list.to_str().unwrap());
    for (text, store, code, wanted) in [
        ("[mirrors-by-url]\nmost-hosts = 1\n", store_text, 2, "most-hosts = 1"),
        ("[mirrors-by-url]\nunfetched = \"no\"\n", store_text, 2, "`failed`"),
        ("[mirrors-by-url]\nleast = 3\n", store_text, 2, "unknown field `least`"),
        ("[mirrors-by-url]\nweek = \"2020-01-06\"\n", store_text, 1, "no week 2020-01-06"),
        ("[mirrors-by-url]\nlists = [\"no/such/list\"]\n", store_text, 1, "no input matches no/such/list"),
        ("[mirrors-by-url]\n", empty.to_str().unwrap(), 1, "not a nigh store"),
        (&of_list, store_text, 1, "none of its 2 lines"),
    ] {
        let job = job(folder.path(), text);
        let ran = run(&["run", job.to_str().unwrap(), "--store", store]);
        assert!(ran.code == Some(code) && ran.stderr.contains(wanted), "{:?} {}", ran.code, ran.stderr);
    }
    assert!(!empty.exists());
}

#[test]
fn a_run_killed_at_any_moment_leaves_the_former_tables_or_the_new_ones() {
    let made = RandomHosts::new(3, 2);
    let store = made.path();
    let settings = |paths| MirrorsByUrlSettings { paths, ..MirrorsByUrlSettings::default() };
    let begun = Instant::now();
    let new = settings(9).run(&store, &["--workers", "2"]);
    let whole = begun.elapsed();
    let before = settings(20).run(&store, &[]);
    assert!(before != new);
    let job = job(made.folder.path(), &settings(9).toml());
    let arguments = ["run", job.to_str().unwrap(), "-q", "--workers", "2", "--store", store.to_str().unwrap()];
    kill_at_moments(&arguments, whole, 10, |round| {
        assert!([&before, &new].contains(&&tables(&store.join("mirrors-by-url"))), "round {round}");
    });
    assert!(settings(20).run(&store, &[]) == before);
}

#[test]
fn deletions_and_vacuums_remove_the_tables() {
    let made = RandomHosts::new(5, 2);
    let store = made.path();
    let store_text = store.to_str().unwrap();
    let settings = MirrorsByUrlSettings::default();
    settings.run(&store, &[]);
    let copy = made.folder.path().join("copy");
    copy_folder(&store, &copy);
    let ran = run_well(&["delete", "--store", store_text, "--host", "north.example"]);
    assert!(ran.stdout.contains("Removed the tables of mirrors-by-url"), "{}", ran.stdout);
    assert!(!store.join("mirrors-by-url").exists() && !store.join("_nigh/mirrors-by-url").exists());
    settings.run(&store, &[]);
    assert_right(&store, &KnownBefore::of_week(&store, WEEKS[1], false), &settings);
    // Tables of the first week go with it.
    settings.run(&copy, &["--week", WEEKS[0]]);
    assert_right(&copy, &KnownBefore::of_week(&copy, WEEKS[0], false), &settings);
    run_well(&["vacuum", "--store", copy.to_str().unwrap(), "--keep", "1"]);
    assert!(!copy.join("mirrors-by-url").exists());
    settings.run(&copy, &[]);
    run_well(&["vacuum", "--store", copy.to_str().unwrap(), "--keep", "1"]);
    assert!(copy.join("mirrors-by-url").exists(), "its week stays");
}

/// Seven hosts with one set of paths, of which six answer in their own way: by hand.
#[test]
fn hosts_without_a_name_or_an_answer_are_classes_of_their_own() {
    let folder = tempfile::tempdir().unwrap();
    let path = |page: u64| format!("/part{}/page{page}", page % 3);
    let mut failed = "url\treason\n".to_owned();
    let fails: [(&str, &[&str]); 6] = [
        ("nameless", &["dns"]),
        ("refused", &["connection-reset", "dns"]),
        ("broken", &["timeout", "status 503", "status 500"]),
        ("missing", &["status 404"]),
        ("closed", &["robots-denied"]),
        // One page is missing there: the host answers.
        ("alive", &["timeout", "dns", "status 404"]),
    ];
    for (host, reasons) in fails {
        for page in 0..30 {
            let reason = reasons[page as usize % reasons.len()];
            writeln!(failed, "http://{host}.example{}\t{reason}", path(page)).unwrap();
        }
    }
    let hosts = fails.map(|(host, _)| host);
    let targets =
        |page: u64| hosts.map(|host| format!("<a href=\"http://{host}.example{}\"></a>", path(page))).concat();
    let line = |page: u64| {
        let html = format!("<p>words of the page {page} and of no other page</p>{}", targets(page));
        serde_json::json!({"url": format!("http://whole.example{}", path(page)), "html": html}).to_string() + "\n"
    };
    std::fs::write(folder.path().join("pages.jsonl"), (0..30).map(line).collect::<String>()).unwrap();
    std::fs::write(folder.path().join("failed.tsv"), failed).unwrap();
    let (cluster, store) = (job(folder.path(), COLUMNS), folder.path().join("store"));
    let flags = ["-q", "--week", WEEK, "--input", folder.path().to_str().unwrap(), "--store", store.to_str().unwrap()];
    run_well(&[&["run", cluster.to_str().unwrap()][..], &flags].concat());
    let settings = MirrorsByUrlSettings { least_urls: 10, ..MirrorsByUrlSettings::default() };
    let one = settings.run(&store, &["--workers", "1"]);
    assert_right(&store, &KnownBefore::of_week(&store, WEEK, false), &settings);
    let of_hosts = |store: &Path| -> BTreeMap<[String; 2], Vec<String>> {
        let columns = ["host_a", "host_b", "level", "failure_a", "failure_b"];
        let rows = rows_of(&store.join("mirrors-by-url"), "candidates", &columns);
        let short = |host: &String| host.trim_end_matches(".example").to_owned();
        rows.iter().map(|row| ([short(&row[0]), short(&row[1])], row[2..].to_vec())).collect()
    };
    let found = of_hosts(&store);
    // Pages of `missing` and `alive` that are gone are known only if an earlier week had them: of a
    // first week they count as URLs.
    for (pair, expected) in [
        (["nameless", "whole"], ["dns-failure", "dns", "null"]),
        (["nameless", "refused"], ["dns-failure", "dns", "connection"]),
        (["refused", "whole"], ["server-failure", "connection", "null"]),
        (["broken", "whole"], ["server-failure", "server-error", "null"]),
        (["broken", "refused"], ["server-failure", "server-error", "connection"]),
        (["missing", "whole"], ["few", "null", "null"]),
        (["closed", "whole"], ["few", "null", "null"]),
        (["alive", "whole"], ["few", "null", "null"]),
    ] {
        assert_eq!(found[&pair.map(str::to_owned)], expected, "{pair:?}");
    }
    let shown = run_well(&["show", store.to_str().unwrap(), "--job", "mirrors-by-url"]).stdout;
    assert!(shown.contains("DNS failure") && shown.contains("server failure"), "{shown}");
    for flags in [&["--workers", "3"][..], &["--processes", "2"]] {
        assert!(one == settings.run(&store, flags), "{flags:?}");
    }
    // A crawler tries the paths again: now `refused` has a page, `broken` one that is what it was,
    // and `nameless` a connection.
    let answers = folder.path().join("answers");
    std::fs::create_dir(&answers).unwrap();
    let page = serde_json::json!({"url": "http://refused.example/part0/page0", "html": "<p>here I am"});
    std::fs::write(answers.join("pages.jsonl"), page.to_string() + "\n").unwrap();
    let failed = "url\treason\nhttp://nameless.example/part0/page0\tConnectionRefusedError\n";
    std::fs::write(answers.join("failed.tsv"), failed).unwrap();
    let http = "HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n\r\n";
    let revisit = [
        "WARC/1.0",
        "WARC-Type: revisit",
        "WARC-Target-URI: http://broken.example/part0/page0",
        "WARC-Date: 2024-01-08T00:00:00Z",
        "WARC-Record-ID: <urn:uuid:12345678-1234-1234-1234-123456789abc>",
        "WARC-Profile: http://netpreserve.org/warc/1.0/revisit/identical-payload-digest",
        "WARC-Payload-Digest: sha1:3I42H3S6NNFQ2MSVX7XZKYAYSCX5QBYJ",
        "Content-Type: application/http; msgtype=response",
        &format!("Content-Length: {}", http.len()),
    ];
    std::fs::write(answers.join("again.warc"), format!("{}\r\n\r\n{http}\r\n\r\n", revisit.join("\r\n"))).unwrap();
    settings.run(&store, &["--input", answers.to_str().unwrap()]);
    let found = of_hosts(&store);
    for (pair, expected) in [
        (["nameless", "whole"], ["server-failure", "connection", "null"]),
        (["refused", "whole"], ["few", "null", "null"]),
        (["broken", "whole"], ["few", "null", "null"]),
    ] {
        assert_eq!(found[&pair.map(str::to_owned)], expected, "{pair:?}");
    }
}

#[test]
fn redirects_that_add_or_drop_a_slash_are_followed() {
    let mut crawl = MadeCrawl::default();
    for page in 0..40u64 {
        let path = |host: &str, slash: &str| format!("http://{host}.example/part{}/page{page}{slash}", page % 3);
        crawl.page(&path("one", "/"), page);
        crawl.redirect(&path("one", ""), &path("one", "/"));
        // Of the mirror, half of the pages have no slash, and some redirect elsewhere.
        let (from, to) = if page % 2 == 0 { ("", "/") } else { ("/", "") };
        crawl.page(&path("two", to), page);
        let target = if page % 7 == 0 { "http://two.example/other".to_owned() } else { path("two", to) };
        crawl.redirect(&path("two", from), &target);
    }
    let store = MadeStore::new(&[&crawl]);
    let settings = MirrorsByUrlSettings { least_urls: 10, ..MirrorsByUrlSettings::default() };
    let one = settings.run(&store.path(), &["--workers", "1"]);
    let known = KnownBefore::of_week(&store.path(), DATES[0], false);
    let rows = assert_right(&store.path(), &known, &settings);
    let columns = ["level", "sf", "tf", "fm"];
    let counts = rows_of(&store.path().join("mirrors-by-url"), "candidates", &columns);
    let number = |column: usize| counts[0][column].parse::<usize>().unwrap();
    assert!(rows["candidates"].len() == 1 && number(3) > 10, "{counts:?}");
    for flags in [["--workers", "3"], ["--processes", "2"]] {
        assert!(one == settings.run(&store.path(), &flags), "{flags:?}");
    }
}
