//! Deleted pages leave no trace, and the rest is as if they had not been crawled.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::rc::Rc;
use std::time::{Duration, Instant};

use arrow_array::{Array, StringArray};
use nigh::tables::WEEK_TABLES;
use nigh::text::UrlPatterns;
use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;

use crate::program::{copy_folder, each, files, has_week, longs, nigh, records, run, run_well, tables, texts, week};

pub(super) const WEEKS: [&str; 4] = ["2024-01-08", "2024-01-15", "2024-01-22", "2024-01-29"];
const HOSTS: usize = 6;

/// A page of a made-up crawl: its URL, and its line of the file.
fn page(number: usize, week: usize) -> (String, String) {
    let url = |number: usize| format!("http://h{}.example/d{}/p{number}", number % HOSTS, number % 4);
    // Five pages are much alike; from week to week some become another text, or one of another
    // five.
    let moved = if (number * 7 + week * 3).is_multiple_of(11) { week } else { 0 };
    let text = (number / 5 + moved * 3) % 60;
    let words: Vec<String> = (0..80).map(|at| format!("t{text}w{at}")).collect();
    let own = format!("p{}", if number.is_multiple_of(3) { number } else { 0 });
    let links: String = (1..4).map(|step| format!("<a href='{}'>x</a>", url((number + step * 17) % 320))).collect();
    let html = format!("<title>page {number}</title><p>{} {own}</p>{links}", words.join(" "));
    (url(number), serde_json::json!({ "url": url(number), "html": html }).to_string() + "\n")
}

/// The lines of a week's crawl; of 300 URLs some are not there, and every week has new ones.
fn crawl(week: usize, without: &UrlPatterns) -> String {
    let numbers = (0..300 + 5 * week).filter(|number| week == 0 || !(number + week).is_multiple_of(13));
    numbers.map(|number| page(number, week)).filter(|(url, _)| !without.matches(url)).map(|(_, line)| line).collect()
}

/// A store of some of the weeks.
pub(super) struct StoreOfWeeks {
    folder: tempfile::TempDir,
    /// Where its crawls are, and those of its copies: tables name the file of a page.
    crawls: Rc<tempfile::TempDir>,
}

impl StoreOfWeeks {
    /// The first so many weeks.
    pub(super) fn new(weeks: usize) -> StoreOfWeeks {
        let [folder, crawls] = [(); 2].map(|()| tempfile::tempdir().unwrap());
        let made = StoreOfWeeks { folder, crawls: Rc::new(crawls) };
        (0..weeks).for_each(|week| made.add(week, &UrlPatterns::default()));
        made
    }

    pub(super) fn add(&self, week: usize, without: &UrlPatterns) {
        let (job, input) = (self.folder.path().join("job.toml"), self.crawls.path().join("crawl.jsonl"));
        let kind = if week == 0 { "cluster" } else { "weekly" };
        let method = if week == 0 { "[cluster.method]\nshards = 8\n" } else { "" };
        let columns = format!("[{kind}.read.columns]\nurl = \"url\"\nhtml = \"html\"\n");
        std::fs::write(&job, format!("[{kind}]\nwave-bytes = 1\n{method}{columns}")).unwrap();
        std::fs::write(&input, crawl(week, without)).unwrap();
        let [job, input] = [&job, &input].map(|path| path.to_str().unwrap());
        run_well(&["run", job, "-q", "--store", &self.store(), "--week", WEEKS[week], "--input", input]);
    }

    pub(super) fn store(&self) -> String {
        self.folder.path().join("store").to_str().unwrap().to_owned()
    }

    pub(super) fn week(&self, week: usize) -> PathBuf {
        crate::program::week(Path::new(&self.store()), WEEKS[week])
    }

    pub(super) fn delete(&self, flags: &[&str]) -> String {
        run_well(&[&["delete", "-q", "--store", &self.store()], flags].concat()).stdout
    }

    /// The same store elsewhere.
    pub(super) fn copy(&self) -> StoreOfWeeks {
        let copy = StoreOfWeeks { folder: tempfile::tempdir().unwrap(), crawls: self.crawls.clone() };
        let store = self.store();
        if Path::new(&store).exists() {
            copy_folder(Path::new(&store), Path::new(&copy.store()));
        }
        copy
    }

    pub(super) fn tables(&self) -> BTreeMap<String, Vec<u8>> {
        tables(Path::new(&self.store()))
    }
}

/// The names of tables that differ.
pub(super) fn differing(a: &BTreeMap<String, Vec<u8>>, b: &BTreeMap<String, Vec<u8>>) -> Vec<String> {
    assert!(a.len() >= WEEK_TABLES.len() - 1, "{} tables are too few to compare", a.len());
    let names: BTreeSet<&String> = a.keys().chain(b.keys()).collect();
    names.into_iter().filter(|name| a.get(*name) != b.get(*name)).cloned().collect()
}

/// Every text in the tables among these files, and those in folders among them, that is one of
/// these URLs; and every small file that names their hosts.
fn traces(paths: &[PathBuf], patterns: &UrlPatterns, hosts: &[&str]) -> Vec<String> {
    let mut found = Vec::new();
    for entry in paths.iter().flat_map(walkdir::WalkDir::new) {
        let path = entry.unwrap().into_path();
        if path.extension().is_some_and(|extension| extension == "parquet") {
            let file = std::fs::File::open(&path).unwrap();
            for batch in ParquetRecordBatchReaderBuilder::try_new(file).unwrap().build().unwrap() {
                for column in batch.unwrap().columns() {
                    let texts = column.as_any().downcast_ref::<StringArray>();
                    let texts = texts.into_iter().flat_map(|texts| texts.iter().flatten());
                    let traces = texts.filter(|text| patterns.matches(text) || hosts.contains(text));
                    found.extend(traces.map(|text| format!("{}: {text}", path.display())));
                }
            }
        } else if path.is_file() {
            let text = std::fs::read_to_string(&path).unwrap();
            found.extend(
                hosts.iter().filter(|host| text.contains(**host)).map(|host| format!("{}: {host}", path.display())),
            );
        }
    }
    found
}

/// The files of a week: its tables and its records.
fn paths_of(week: &Path) -> Vec<PathBuf> {
    let tables = WEEK_TABLES.iter().flat_map(|table| files(week, table.name));
    tables.chain([records(week)]).collect()
}

/// The rows of a week by URL, without ids: what must be the same if some pages had not been
/// crawled.
#[derive(Debug, Default, PartialEq)]
struct ByUrl {
    documents: BTreeMap<String, (String, i64, i64, Vec<u8>)>,
    clusters: BTreeMap<String, (Vec<String>, Vec<i64>)>,
    evidence: BTreeMap<String, (String, i32, f32)>,
    links: BTreeSet<(String, String, Option<String>)>,
    missing: BTreeMap<String, String>,
    sizes: BTreeSet<(String, i64, i64)>,
    largest: BTreeSet<(String, i64, i64, String)>,
    changes: Vec<(String, i64, i64, i64)>,
}

fn by_url(weeks: &StoreOfWeeks, week: usize, without: &UrlPatterns) -> ByUrl {
    let urls: BTreeMap<i64, String> = (0..=week)
        .flat_map(|week| {
            longs(&weeks.week(week), "urls", "doc").into_iter().zip(texts(&weeks.week(week), "urls", "url"))
        })
        .collect();
    let folder = weeks.week(week);
    let of = |docs: Vec<i64>| -> Vec<String> { docs.iter().map(|doc| urls[doc].clone()).collect() };
    let mut all = ByUrl::default();
    let long = |table: &str, column: &str| longs(&folder, table, column);
    let text = |table: &str, column: &str| texts(&folder, table, column);
    let (titles, bytes, words) = (text("documents", "title"), long("documents", "bytes"), long("documents", "words"));
    let checksums = crate::program::bytes(&folder, "documents", "checksum");
    for (at, url) in text("documents", "url").into_iter().enumerate() {
        all.documents.insert(url, (titles[at].clone(), bytes[at], words[at], checksums[at].clone()));
    }
    let levels = ["similar", "identical", "exact"];
    let roots = levels.map(|level| of(long("clusters", &format!("{level}_root"))));
    let sizes = levels.map(|level| long("clusters", &format!("{level}_size")));
    for (at, url) in text("clusters", "url").into_iter().enumerate() {
        let (roots, sizes) = (roots.iter().map(|r| r[at].clone()), sizes.iter().map(|s| s[at]));
        all.clusters.insert(url, (roots.collect(), sizes.collect()));
    }
    let (mut agreements, mut similarities) = (Vec::new(), Vec::new());
    each(&folder, "evidence", "agreements", |a: &arrow_array::Int32Array| {
        agreements.extend(a.values().iter().copied())
    });
    each(&folder, "evidence", "similarity", |a: &arrow_array::Float32Array| {
        similarities.extend(a.values().iter().copied())
    });
    let neighbours = of(long("evidence", "neighbour"));
    for (at, url) in of(long("evidence", "doc")).into_iter().enumerate() {
        all.evidence.insert(url, (neighbours[at].clone(), agreements[at], similarities[at]));
    }
    let mut targets = Vec::new();
    each(&folder, "links", "target_doc", |a: &arrow_array::Int64Array| targets.extend(a.iter()));
    let (pages, links) = (of(long("links", "doc")), text("links", "target_url"));
    for ((page, link), target) in pages.into_iter().zip(links).zip(targets) {
        if !without.matches(&link) {
            all.links.insert((page, link, target.map(|target| urls[&target].clone())));
        }
    }
    let missing = text("missing", "url").into_iter().zip(text("missing", "reason"));
    all.missing = missing.filter(|(url, _)| !without.matches(url)).collect();
    let (level, size, clusters) = (text("sizes", "level"), long("sizes", "size"), long("sizes", "clusters"));
    all.sizes = level.into_iter().zip(size).zip(clusters).map(|((a, b), c)| (a, b, c)).collect();
    let (level, rank) = (text("largest", "level"), long("largest", "urls"));
    let (hosts, url) = (long("largest", "hosts"), text("largest", "name"));
    for (((level, urls), hosts), url) in level.into_iter().zip(rank).zip(hosts).zip(url) {
        all.largest.insert((level, urls, hosts, url));
    }
    let (before, after) = (long("changes", "before"), long("changes", "after"));
    let documents = long("changes", "documents");
    let changes = text("changes", "event").into_iter().zip(before).zip(after).zip(documents);
    all.changes = changes.map(|(((event, before), after), documents)| (event, before, after, documents)).collect();
    all.changes.sort();
    all
}

fn assert_same(a: &ByUrl, b: &ByUrl, what: &str) {
    assert_eq!(a.documents, b.documents, "{what}");
    assert_eq!(a.clusters, b.clusters, "{what}");
    assert_eq!(a.evidence, b.evidence, "{what}");
    assert_eq!(a.links, b.links, "{what}");
    assert_eq!(a.missing, b.missing, "{what}");
    assert_eq!(a.sizes, b.sizes, "{what}");
    assert_eq!(a.largest, b.largest, "{what}");
    assert_eq!(a.changes, b.changes, "{what}");
}

/// What is deleted in a test: flags, and the same as patterns.
fn meant() -> [(Vec<&'static str>, UrlPatterns); 3] {
    let none: [&str; 0] = [];
    [
        (vec!["--host", "h1.example"], UrlPatterns::new(&none, &["h1.example"], &none).unwrap()),
        (
            vec!["--prefix", "http://h2.example/d0", "http://h3.example/", "--url", "http://h4.example/d0/p4"],
            UrlPatterns::new(&["http://h4.example/d0/p4"], &[], &["http://h2.example/d0", "http://h3.example/"])
                .unwrap(),
        ),
        (
            vec!["--url", "http://h0.example/d2/p6", "http://h0.example/d0/p0", "http://h5.example/d3/p11"],
            UrlPatterns::new(
                &["http://h0.example/d2/p6", "http://h0.example/d0/p0", "http://h5.example/d3/p11"],
                &[],
                &[],
            )
            .unwrap(),
        ),
    ]
}

#[test]
fn the_week_is_as_if_deleted_pages_had_not_been_crawled() {
    for weeks in [1, 3] {
        let (base, earlier) = (StoreOfWeeks::new(weeks), StoreOfWeeks::new(weeks - 1));
        for (flags, patterns) in meant() {
            let (changed, twin) = (base.copy(), earlier.copy());
            let said = changed.delete(&flags);
            twin.add(weeks - 1, &patterns);
            let what = format!("{weeks} weeks, {flags:?}: {said}");
            let (a, b) = (by_url(&changed, weeks - 1, &patterns), by_url(&twin, weeks - 1, &patterns));
            assert_same(&a, &b, &what);
            let count = |weeks: &StoreOfWeeks| longs(&weeks.week(weeks_of(weeks) - 1), "documents", "doc").len();
            let gone = count(&base) - count(&changed);
            assert!(gone > 1 && said.contains(&format!("Deleted {gone} pages")), "{what}");
            let counts = |weeks: &StoreOfWeeks, at: usize| {
                let text = std::fs::read_to_string(records(&weeks.week(at)).join("summary.json")).unwrap();
                let mut json: serde_json::Value = serde_json::from_str(&text).unwrap();
                json["counts"]["records"].take();
                json["counts"].clone()
            };
            assert_eq!(counts(&changed, weeks - 1), counts(&twin, weeks - 1), "{what}");
            // Earlier weeks are as they were, but for the list of URLs.
            for week in 0..weeks - 1 {
                let others = |weeks: &StoreOfWeeks| {
                    let mut all = tables(&weeks.week(week));
                    all.retain(|name, _| !name.starts_with("urls/"));
                    all
                };
                assert!(others(&changed) == others(&base), "{what}");
            }
            assert!(!Path::new(&changed.store()).join("_nigh/work").exists(), "{what}");
        }
    }
}

fn weeks_of(weeks: &StoreOfWeeks) -> usize {
    WEEKS.iter().filter(|date| has_week(&week(Path::new(&weeks.store()), date))).count()
}

#[test]
fn clusters_keep_their_ids_when_pages_are_deleted() {
    let base = StoreOfWeeks::new(2);
    let names = |weeks: &StoreOfWeeks| -> BTreeMap<String, i64> {
        let mut ids = Vec::new();
        each(&weeks.week(1), "clusters", "cluster_id", |a: &arrow_array::Int64Array| ids.extend(a.iter()));
        let urls = texts(&weeks.week(1), "clusters", "url").into_iter().zip(ids);
        urls.filter_map(|(url, id)| Some((url, id?))).collect()
    };
    let before = names(&base);
    let mut split = 0;
    for (flags, _) in meant() {
        let changed = base.copy();
        changed.delete(&flags);
        let after = names(&changed);
        let given: BTreeSet<i64> = before.values().copied().collect();
        // Of each cluster that is left, the part with most of its pages bears its name.
        let mut parts: BTreeMap<i64, BTreeMap<i64, usize>> = BTreeMap::new();
        after.iter().for_each(|(url, id)| *parts.entry(before[url]).or_default().entry(*id).or_default() += 1);
        for (name, parts) in &parts {
            let most = parts.values().max().unwrap();
            assert_eq!(parts.get(name), Some(most), "{flags:?}: {name} is in {parts:?}");
        }
        assert!(parts.len() > 5);
        let mut clusters: BTreeMap<i64, Vec<i64>> = BTreeMap::new();
        after.iter().for_each(|(url, id)| clusters.entry(*id).or_default().push(before[url]));
        for (id, was) in clusters {
            // Pages of a cluster were together before; it keeps its id, or has a new one.
            assert!(was.iter().all(|before| *before == was[0]), "{flags:?}: {id} was {was:?}");
            assert!(id == was[0] || !given.contains(&id), "{flags:?}: {id} was {was:?}");
            split += usize::from(id != was[0]);
        }
    }
    eprintln!("{split} clusters came apart");
}

/// What became of the clusters of the week before: event, name, other name, pages before and after.
fn events(weeks: &StoreOfWeeks, week: usize) -> Vec<(String, i64, Option<i64>, i64, i64)> {
    let folder = weeks.week(week);
    let mut others = Vec::new();
    each(&folder, "changes", "other_cluster_id", |a: &arrow_array::Int64Array| others.extend(a.iter()));
    let long = |column: &str| longs(&folder, "changes", column);
    let (ids, before, after) = (long("cluster_id"), long("before"), long("after"));
    let rows = texts(&folder, "changes", "event").into_iter().enumerate();
    let mut all: Vec<_> = rows.map(|(at, event)| (event, ids[at], others[at], before[at], after[at])).collect();
    all.sort();
    all
}

#[test]
fn the_changes_table_agrees_with_the_cluster_ids_of_both_weeks() {
    let folder = tempfile::tempdir().unwrap();
    let (store, crawl) = (folder.path().join("store"), folder.path().join("crawl.jsonl"));
    let job = |name: &str, text: &str| {
        let path = folder.path().join(name);
        std::fs::write(&path, text).unwrap();
        path.to_str().unwrap().to_owned()
    };
    let jobs = [job("first.toml", "[cluster]\n[cluster.method]\nshards = 4\n"), job("later.toml", "[weekly]\n")];
    let add = |week: usize, texts: &dyn Fn(usize) -> Option<usize>| {
        let words = |text: usize| (0..60).map(|at| format!("t{text}w{at}")).collect::<Vec<_>>().join(" ");
        let page = |number: usize| {
            let url = format!("http://{}.example/{number}", if number < 3 { "gone" } else { "here" });
            Some(serde_json::json!({ "url": url, "text": words(texts(number)?) }).to_string() + "\n")
        };
        std::fs::write(&crawl, (0..14).filter_map(page).collect::<String>()).unwrap();
        let [store, crawl] = [&store, &crawl].map(|path| path.to_str().unwrap());
        run_well(&["run", &jobs[week.min(1)], "-q", "--store", store, "--week", WEEKS[week], "--input", crawl]);
    };
    // Ten pages are one cluster; of these six stay, and four are another. Four pages come.
    add(0, &|number| (number < 10).then_some(0));
    add(1, &|number| {
        Some(if number < 6 {
            0
        } else if number < 10 {
            1
        } else {
            2
        })
    });
    let weeks = StoreOfWeeks { folder, crawls: Rc::new(tempfile::tempdir().unwrap()) };
    let before = events(&weeks, 1);
    let a = before.iter().find(|row| row.0 == "shrink").unwrap().1;
    let c = before.iter().find(|row| row.0 == "split").unwrap().2.unwrap();
    let birth = before.iter().find(|row| row.0 == "birth").unwrap().clone();
    let shrunk = |left| ("shrink".to_owned(), a, None, 10, left);
    let split = ("split".to_owned(), a, Some(c), 10, 4);
    assert_eq!(before, [birth.clone(), shrunk(6), split.clone()]);
    // Three of the six go: the four have most of the old cluster's pages now, and the name stays
    // where it is.
    weeks.delete(&["--host", "gone.example"]);
    assert_eq!(events(&weeks, 1), [birth.clone(), shrunk(3), split]);
    // The name goes with its last pair of pages: what is left of the old cluster has another one.
    weeks.delete(&["--url", "http://here.example/3", "http://here.example/4"]);
    assert_eq!(events(&weeks, 1), [birth, ("merge".to_owned(), a, Some(c), 10, 4)]);
}

#[test]
fn deleted_pages_leave_nothing_in_the_store_and_do_not_come_back() {
    let weeks = StoreOfWeeks::new(3);
    let (flags, patterns) = &meant()[0];
    let store = weeks.store();
    assert!(!traces(&paths_of(&weeks.week(2)), patterns, &["h1.example"]).is_empty());
    weeks.delete(flags);
    assert_eq!(traces(&paths_of(&weeks.week(2)), patterns, &["h1.example"]), [""; 0]);
    for week in 0..3 {
        assert_eq!(traces(&files(&weeks.week(week), "urls"), patterns, &[]), [""; 0]);
    }
    // A later week that does not have them does not miss them; and old weeks go.
    weeks.add(3, patterns);
    let crawled = traces(&paths_of(&weeks.week(3)), patterns, &["h1.example"]);
    assert!(crawled.iter().all(|trace| trace.contains("/links/")), "others still link there: {crawled:?}");
    assert!(!crawled.is_empty());
    let said = weeks.delete(flags);
    assert!(said.contains("Removed links, redirects and rejects"), "{said}");
    assert!(weeks.delete(flags).contains("nothing to delete"));
    run_well(&["vacuum", "--store", &store, "--keep", "1"]);
    assert_eq!(traces(&[PathBuf::from(&store)], patterns, &["h1.example"]), [""; 0]);
}

#[test]
fn a_deleted_url_that_is_crawled_again_gets_a_new_id() {
    let weeks = StoreOfWeeks::new(3);
    let ids = |week: usize| -> BTreeMap<String, i64> {
        let docs = longs(&weeks.week(week), "documents", "doc");
        texts(&weeks.week(week), "documents", "url").into_iter().zip(docs).collect()
    };
    let before = ids(2);
    let (flags, patterns) = &meant()[1];
    weeks.delete(flags);
    weeks.add(3, &UrlPatterns::default());
    let known: BTreeSet<i64> = (0..3).flat_map(|week| longs(&weeks.week(week), "documents", "doc")).collect();
    let mut again = 0;
    for (url, id) in ids(3) {
        if patterns.matches(&url) {
            again += 1;
            assert!(!known.contains(&id), "{url}");
        } else if let Some(before) = before.get(&url) {
            assert_eq!(id, *before, "{url}");
        }
    }
    // A whole host and parts of two others are deleted: far more than 20 URLs.
    assert!(again > 20, "{again}");
}

#[test]
fn a_deletion_gives_the_same_bytes_for_any_workers_and_processes() {
    let base = StoreOfWeeks::new(2);
    let flags = &meant()[1].0;
    let deleted = |more: &[&str]| {
        let copy = base.copy();
        copy.delete(&[&flags[..], more].concat());
        copy.tables()
    };
    let one = deleted(&["--workers", "1"]);
    assert!(one.len() >= 2 * WEEK_TABLES.len());
    for more in [&["--workers", "2"][..], &["--workers", "4"], &["--workers", "2", "--processes", "2"]] {
        assert!(deleted(more) == one, "{more:?}");
    }
}

#[test]
fn a_deletion_that_is_not_possible_is_refused_with_the_reason() {
    let weeks = StoreOfWeeks::new(1);
    let store = weeks.store();
    let before = weeks.tables();
    let assert_prints = |flags: &[&str], code: i32, wanted: &str| {
        let ran = run(&[&["delete", "--store", &store], flags].concat());
        let text = ran.stdout + &ran.stderr;
        assert!(ran.code == Some(code) && text.contains(wanted), "{flags:?}: {:?} {text}", ran.code);
    };
    assert_prints(&[], 2, "--host");
    assert_prints(&["--host", "http://h1.example/"], 2, "--host: `http://h1.example/` is not a host");
    assert_prints(&["--url", "h1.example/x"], 2, "`h1.example/x` is not an http or https URL");
    assert_prints(&["--urls", "/nowhere"], 2, "cannot read /nowhere");
    assert_prints(&["--host", "h9.example"], 0, "nothing to delete");
    assert_prints(&["--host", "h1.example", "--dry-run"], 0, "Would delete 50 URLs");
    assert_prints(&["--host", "h1.example", "--dry-run", "--json"], 0, "\"urls\":50");
    // What the store does not have is said, by ten names at most.
    let some = ["--url", "http://h1.example/d1/p1", "http://h1.example/none", "--host", "h9.example", "--dry-run"];
    assert_prints(&some, 0, " has no page of 2 of these: \"http://h1.example/none\", \"h9.example\"\n");
    let in_json = "\"not_found\":2,\"first_not_found\":[\"http://h1.example/none\",\"h9.example\"]";
    assert_prints(&[&some[..], &["--json"]].concat(), 0, in_json);
    let many: Vec<String> = (10..22).map(|n| format!("http://h9.example/{n}")).collect();
    let many: Vec<&str> = ["--dry-run", "--url"].into_iter().chain(many.iter().map(String::as_str)).collect();
    assert_prints(&many, 0, "12 of these: \"http://h9.example/10\", ");
    assert_prints(&many, 0, "\"http://h9.example/19\", 2 more\n");
    assert!(weeks.tables() == before);
    let nowhere = weeks.folder.path().join("nowhere");
    let ran = run(&["delete", "--store", nowhere.to_str().unwrap(), "--host", "h1.example"]);
    assert!(ran.code == Some(1) && ran.stderr.contains("is not a nigh store"), "{}", ran.stderr);
    assert!(!nowhere.exists());
    let list = weeks.folder.path().join("list");
    std::fs::write(&list, "http://h1.example/d1/p1\n\n http://H1.example/d3/p7\n").unwrap();
    assert_prints(&["--urls", list.to_str().unwrap()], 0, "Deleted 2 pages");
    std::fs::write(&list, "http://h1.example/d1/p13\nhalf a line\n").unwrap();
    assert_prints(&["--urls", list.to_str().unwrap()], 2, "list, line 2: `half a line`");
    assert_prints(&["--prefix", "http://h1.example/#x"], 2, "canonical form");
    // All of it.
    assert_prints(&["--prefix", "http://h0.example/", "--host", "h1.example", "h2.example"], 0, "Deleted 148 pages");
    assert_prints(&["--host", "h3.example", "h4.example", "h5.example"], 0, "Deleted 150 pages");
    assert_eq!(longs(&weeks.week(0), "documents", "doc"), [0; 0]);
    weeks.add(1, &UrlPatterns::default());
    assert!(longs(&weeks.week(1), "documents", "doc").len() > 200);
}

#[test]
fn a_deletion_killed_at_any_moment_is_done_or_not_begun_and_a_rerun_ends_the_same() {
    let base = StoreOfWeeks::new(2);
    let flags = &meant()[1].0;
    let whole = base.copy();
    let begun = Instant::now();
    whole.delete(flags);
    let (took, whole, before) = (begun.elapsed(), whole.tables(), base.tables());
    let (mut undone, mut done) = (0, 0);
    for round in 0..10 {
        let copy = base.copy();
        let store = copy.store();
        let processes = ["1", "2"][round % 2];
        let arguments = [&["delete", "--store", &store, "--processes", processes], &flags[..]].concat();
        let mut child = nigh(&arguments).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
        std::thread::sleep(took * round as u32 / 8);
        child.kill().unwrap();
        child.wait().unwrap();
        let week = |all: &BTreeMap<String, Vec<u8>>| -> BTreeMap<String, Vec<u8>> {
            let tables = all.iter().filter(|(name, _)| name.contains("/week=2024-01-15/"));
            tables.map(|(name, bytes)| (name.clone(), bytes.clone())).collect()
        };
        let left = week(&copy.tables());
        assert!(left == week(&before) || left == week(&whole), "round {round}");
        *(if left == week(&before) { &mut undone } else { &mut done }) += 1;
        copy.delete(flags);
        assert_eq!(differing(&copy.tables(), &whole), [""; 0], "round {round}");
        assert!(!Path::new(&store).join("_nigh/work").exists(), "round {round}");
    }
    eprintln!("{undone} of 10 killed deletions were undone, {done} done");
    // If hardly any kill came before the end, nothing would be tested.
    assert!(undone > 1);
}

/// Whether the unfinished week of a store has its segments: what comes then takes most of the time.
fn has_segments(store: &str) -> bool {
    let mut folders = vec![Path::new(store).join("_nigh")];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
            let path = entry.path();
            if path.ends_with("journal.json")
                && std::fs::read_to_string(&path).is_ok_and(|text| text.contains("\"segments\":[{"))
            {
                return true;
            }
            folders.extend(path.is_dir().then_some(path));
        }
    }
    false
}

#[test]
fn a_killed_deletion_goes_on_with_other_workers() {
    let base = StoreOfWeeks::new(2);
    let flags = &meant()[1].0;
    let whole = base.copy();
    whole.delete(flags);
    let (whole, mut killed) = (whole.tables(), 0);
    for (first, second) in [("4", "1"), ("1", "4"), ("4", "2"), ("2", "8"), ("8", "3"), ("3", "2")] {
        let copy = base.copy();
        let store = copy.store();
        let arguments = [&["delete", "--store", &store, "--workers", first], &flags[..]].concat();
        let mut child = nigh(&arguments).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
        while child.try_wait().unwrap().is_none() && !has_segments(&store) {
            std::thread::sleep(Duration::from_millis(1));
        }
        child.kill().unwrap();
        child.wait().unwrap();
        killed += u32::from(has_segments(&store));
        copy.delete(&[&["--workers", second], &flags[..]].concat());
        assert_eq!(differing(&copy.tables(), &whole), [""; 0], "{first} workers, then {second}");
    }
    assert!(killed > 2, "{killed} kills came between the segments and the commit");
}
