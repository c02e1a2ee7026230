//! Crawls of a part of the pages, against crawls of all pages as they are.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::time::Instant;

use nigh::state::{Piece, Store, TablePart};
use nigh::tables::{FeatureRow, RowRange, Scan, Writer};

use crate::program::{
    copy_folder, has_week, job, kill_at_moments, longs, records, rows_of, run_well, tables, texts, value_text, week,
};

pub const DATES: [&str; 5] = ["2024-01-08", "2024-01-15", "2024-01-22", "2024-01-29", "2024-02-05"];
pub(super) const PAGES: usize = 90;
pub const JOB: &str =
    "[cluster]\n[cluster.read.columns]\nhtml = \"html\"\ntext = \"text\"\n[cluster.method]\nshards = 4\n";

/// A linear congruential generator: numbers that are the same each time.
pub struct Lcg(pub u64);

impl Lcg {
    pub fn below(&mut self, bound: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) as usize % bound
    }
}

pub fn url(page: usize) -> String {
    format!("http://h{}.example/{page}", page % 5)
}

/// A page in a version: near-duplicates in families, each with links.
pub fn html(page: usize, version: usize) -> String {
    let word = |place: usize| match place {
        40 => format!("own{page}"),
        80..=84 => format!("version{version}x{place}"),
        _ => format!("w{}", (page % 20 * 7919 + place * 104_729) % 99_991),
    };
    let text: Vec<String> = (0..160).map(word).collect();
    let lines: Vec<String> = text.chunks(20).map(|line| format!("<p>{}</p>", line.join(" "))).collect();
    let links: Vec<String> =
        (1..4).map(|step| format!("<a href='{}'>x</a>", url((page * 7 + step * 11 + version) % PAGES))).collect();
    format!("<title>page {page}</title>{}{}", lines.concat(), links.concat())
}

/// A store, and the folder of its crawls.
pub struct CrawledStore<'a> {
    pub folder: &'a Path,
    pub name: &'a str,
    /// The name of its crawls.
    pub input: &'a str,
    pub job: &'a str,
}

impl CrawledStore<'_> {
    pub fn store(&self) -> PathBuf {
        self.folder.join(self.name)
    }

    /// Crawls pages in their versions; some have an answer that they are gone.
    pub(super) fn crawl(&self, date: &str, pages: &BTreeMap<usize, usize>, gone: &BTreeSet<usize>, flags: &[&str]) {
        let input = self.folder.join(format!("{}-{date}", self.input));
        std::fs::create_dir_all(&input).unwrap();
        let line = |(page, version): (&usize, &usize)| {
            serde_json::json!({"url": url(*page), "html": html(*page, *version)}).to_string() + "\n"
        };
        std::fs::write(input.join("pages.jsonl"), pages.iter().map(line).collect::<String>()).unwrap();
        let answers: String = gone
            .iter()
            .map(|page| {
                let http = "HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n";
                format!(
                    "WARC/1.1\r\nWARC-Type: response\r\nWARC-Target-URI: {}\r\nWARC-Date: {date}T00:00:00Z\r\nContent-Type: \
                     application/http; msgtype=response\r\nContent-Length: {}\r\n\r\n{http}\r\n\r\n",
                    url(*page),
                    http.len()
                )
            })
            .collect();
        std::fs::write(input.join("gone.warc"), answers).unwrap();
        self.run(date, &input, flags);
    }

    /// Makes a week of the files of a folder.
    pub fn run(&self, date: &str, input: &Path, flags: &[&str]) {
        let (job, store) = (job(self.folder, self.job), self.store());
        let arguments = ["run", job.to_str().unwrap(), "-q", "--week", date, "--store", store.to_str().unwrap()];
        run_well(&[&arguments[..], &["--input", input.to_str().unwrap()], flags].concat());
    }

    /// The rows of a week's table, those that are in the files of earlier weeks, too; sorted.
    pub(super) fn rows(&self, date: &str, table: &str, columns: &[&str]) -> Vec<Vec<String>> {
        let store = Store::at(&self.store());
        let manifest = store.manifest().unwrap().unwrap();
        let committed = manifest.weeks.iter().find(|committed| committed.week.to_string() == date).unwrap();
        let (whole, tables) = (store.whole(committed).unwrap(), store.tables(committed).unwrap());
        let mut rows = Vec::new();
        for segment in &whole.journal.segments {
            let expected = match table {
                "links" => segment.links,
                "chunks" => segment.chunks,
                "features" => segment.features,
                _ => segment.documents,
            };
            if expected > 0 {
                let of_segment = values(tables.of_segment(table, segment).unwrap(), columns);
                assert_eq!(of_segment.len() as u64, expected, "{table}, {segment:?}");
                rows.extend(of_segment);
            }
        }
        rows.sort();
        rows
    }

    /// Checks that features, links and chunks are found as a user finds them: by the documents of
    /// the week, and the week that these are stored in.
    fn check_joined(&self, date: &str) {
        let stored = rows_of(&week(&self.store(), date), "documents", &["doc", "stored"]);
        let stored: BTreeMap<String, String> = stored.into_iter().map(|row| (row[0].clone(), row[1].clone())).collect();
        for (table, column) in [("features", "vector"), ("links", "target_url"), ("chunks", "characters")] {
            let weeks: BTreeSet<&String> = stored.values().collect();
            let of_week = |date: &&String| {
                let rows = rows_of(&week(&self.store(), date), table, &["doc", column]).into_iter();
                rows.filter(|row| stored.get(&row[0]) == Some(*date)).collect::<Vec<_>>()
            };
            let mut joined: Vec<Vec<String>> = weeks.iter().flat_map(of_week).collect();
            joined.sort();
            assert!(joined == self.rows(date, table, &["doc", column]), "{date}, {table}");
        }
    }

    /// What the week says of its pages.
    pub fn facts(&self, date: &str) -> BTreeMap<&'static str, Vec<Vec<String>>> {
        let of = week(&self.store(), date);
        let sorted = |table: &'static str, columns: &[&str]| {
            let mut rows = rows_of(&of, table, columns);
            rows.sort();
            (table, rows)
        };
        let documents = [
            "doc",
            "url",
            "host",
            "domain",
            "bytes",
            "checksum",
            "words",
            "title",
            "id",
            "given_url",
            "media_type",
            "status",
        ];
        let clusters = [
            "doc",
            "url",
            "similar_root",
            "similar_size",
            "identical_root",
            "identical_size",
            "exact_root",
            "exact_size",
            "cluster_id",
        ];
        [
            ("documents", self.rows(date, "documents", &documents)),
            ("clusters", self.rows(date, "clusters", &clusters)),
            ("features", self.rows(date, "features", &["doc", "vector", "supershingles", "features"])),
            ("chunks", self.rows(date, "chunks", &["doc", "text", "characters", "lines", "paragraphs"])),
            ("links", self.rows(date, "links", &["doc", "target_url"])),
            sorted("sizes", &["level", "size", "clusters"]),
            sorted("missing", &["doc", "url"]),
            sorted("changes", &["cluster_id", "event", "other_cluster_id", "before", "after"]),
        ]
        .into()
    }
}

/// The values of some rows.
fn values(rows: RowRange, columns: &[&str]) -> Vec<Vec<String>> {
    let mut all = Vec::new();
    Scan::open(rows, columns)
        .unwrap()
        .for_each(|batch| {
            let columns = || columns.iter().map(|name| batch.column_by_name(name).unwrap());
            all.extend((0..batch.num_rows()).map(|at| columns().map(|column| value_text(column, at)).collect()));
            Ok(())
        })
        .unwrap();
    all
}

/// The weeks of a history: of each, the versions of the pages that are crawled, and the pages that
/// are gone.
fn history(seed: u64) -> Vec<(BTreeMap<usize, usize>, BTreeSet<usize>)> {
    let mut numbers = Lcg(seed);
    let mut state: BTreeMap<usize, usize> = BTreeMap::new();
    let mut weeks = Vec::new();
    for number in 0..DATES.len() {
        // Few or most pages: what stays of a segment is more or less than half of it.
        let shares = if seed.is_multiple_of(2) { [12, 60, 60, 90] } else { [3, 5, 12, 20] };
        let share = if number == 0 { 70 } else { shares[numbers.below(4)] };
        let (mut crawled, mut gone) = (BTreeMap::new(), BTreeSet::new());
        for page in 0..PAGES {
            match numbers.below(100) {
                n if n < share => {
                    let version = state.get(&page).map_or(0, |version| version + usize::from(numbers.below(2) == 0));
                    crawled.insert(page, version);
                    state.insert(page, version);
                }
                n if n < share + 4 && number > 0 && state.remove(&page).is_some() => drop(gone.insert(page)),
                _ => {}
            }
        }
        weeks.push((crawled, gone));
    }
    weeks
}

#[test]
fn pages_that_were_not_crawled_stay_as_they_were() {
    let mut needed = Vec::new();
    for seed in 0..4 {
        let folder = tempfile::tempdir().unwrap();
        let [partial, two, full] = [("partial", "parts"), ("two", "parts"), ("full", "all")]
            .map(|(name, input)| CrawledStore { folder: folder.path(), name, input, job: JOB });
        let mut state: BTreeMap<usize, usize> = BTreeMap::new();
        for (date, (crawled, gone)) in DATES.iter().zip(history(seed)) {
            state.retain(|page, _| !gone.contains(page));
            state.extend(&crawled);
            partial.crawl(date, &crawled, &gone, &["--absent", "keep", "--workers", "1"]);
            two.crawl(date, &crawled, &gone, &["--absent", "keep", "--processes", "2", "--workers", "2"]);
            full.crawl(date, &state, &gone, &[]);
            let (found, wanted) = (partial.facts(date), full.facts(date));
            for (table, rows) in &wanted {
                assert!(found[table] == *rows, "seed {seed}, {date}, {table}");
            }
            assert!(tables(&week(&two.store(), date)) == tables(&week(&partial.store(), date)), "seed {seed}, {date}");
            partial.check_joined(date);
            // The week of the crawl that each page is from, and the reasons of those that are gone.
            let of = week(&partial.store(), date);
            let urls: BTreeSet<String> = crawled.keys().map(|page| url(*page)).collect();
            for row in rows_of(&of, "documents", &["url", "crawled"]) {
                assert_eq!(urls.contains(&row[0]), row[1] == *date, "{row:?}");
            }
            let reasons = texts(&of, "missing", "url").into_iter().zip(texts(&of, "missing", "reason"));
            let reasons: BTreeMap<String, String> = reasons.collect();
            assert!(gone.iter().all(|page| reasons[&url(*page)] == "status 404"), "{reasons:?}");
        }
        needed.push(old_weeks_removed(&partial));
        if seed == 1 {
            studies_and_deletions(&partial, &full);
        }
    }
    assert!(needed.iter().any(|count| *count > 1) && needed.contains(&0), "{needed:?}");
}

/// Without the weeks before, the pages of a week are still there, and only what is needed of the
/// files of those weeks. Returns how many of these are needed.
fn old_weeks_removed(partial: &CrawledStore<'_>) -> usize {
    let last = DATES[DATES.len() - 1];
    let old = CrawledStore { name: "old", ..*partial };
    let store = old.store();
    copy_folder(&partial.store(), &store);
    run_well(&["vacuum", "--store", store.to_str().unwrap(), "--before", last]);
    let wanted = partial.facts(last);
    assert!(old.facts(last) == wanted);
    let state = Store::at(&store);
    let committed = state.manifest().unwrap().unwrap().weeks.pop().unwrap();
    let segments = state.whole(&committed).unwrap().journal.segments;
    let origins: BTreeSet<String> =
        segments.iter().filter_map(|segment| segment.origin).map(|origin| origin.week.to_string()).collect();
    for date in &DATES[..DATES.len() - 1] {
        let has = |table: &str| store.join(table).join(format!("week={date}")).exists();
        let is_needed = origins.contains(*date);
        assert_eq!(
            [has("clusters"), has("features"), has("links"), has("chunks")],
            [false, is_needed, is_needed, is_needed]
        );
    }
    let none = BTreeMap::new();
    let (crawled, next) = (BTreeMap::from([(1, 99)]), "2024-03-04");
    old.crawl(next, &crawled, &BTreeSet::new(), &["--absent", "keep"]);
    assert_eq!(
        longs(&week(&store, next), "documents", "doc").len(),
        wanted["documents"].len() + usize::from(!has(&wanted, 1))
    );
    // A whole crawl of nothing needs nothing of earlier weeks: all of their files go with them.
    old.crawl("2024-03-11", &none, &BTreeSet::new(), &["--allow-empty"]);
    run_well(&["vacuum", "--store", store.to_str().unwrap(), "--before", "2024-03-11"]);
    let weeks: Vec<String> = std::fs::read_dir(store.join("links"))
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    assert_eq!(weeks, ["week=2024-03-11"]);
    origins.len()
}

/// What is made of the weeks later is the same, too.
fn studies_and_deletions(partial: &CrawledStore<'_>, full: &CrawledStore<'_>) {
    let last = DATES[DATES.len() - 1];
    let study = |name: &str, crawled: &CrawledStore<'_>| {
        run_well(&["run", &format!("jobs/{name}.toml"), "-q", "--store", crawled.store().to_str().unwrap()]);
        tables(&crawled.store().join(name))
    };
    for name in ["overlap", "evolution", "mirrors", "mirrors-by-url"] {
        assert!(study(name, partial) == study(name, full), "{name}");
    }
    // Pages to which others have links, one of them crawled in the first week only.
    let kept = rows_of(&week(&partial.store(), last), "documents", &["url", "crawled"]);
    let old = &kept.iter().find(|row| row[1] == DATES[0]).expect("some pages stay from the first week")[0];
    let linked = &rows_of(&week(&full.store(), last), "links", &["target_url"])[0][0];
    for crawled in [partial, full] {
        run_well(&["delete", "--store", crawled.store().to_str().unwrap(), "--url", old, "--url", linked]);
    }
    let (found, wanted) = (partial.facts(last), full.facts(last));
    assert!(
        wanted["documents"].iter().all(|row| row[1] != *old) && wanted["links"].iter().all(|row| row[1] != *linked)
    );
    for (table, rows) in &wanted {
        assert!(found[table] == *rows, "after a deletion: {table}");
    }
}

/// Makes the last week of a store one of an older version: those have the features of all pages in
/// files of their own.
fn with_whole_features(store: &Path) {
    let state = Store::at(store);
    let committed = state.manifest().unwrap().unwrap().weeks.pop().unwrap();
    let (mut whole, tables) = (state.whole(&committed).unwrap(), state.tables(&committed).unwrap());
    let folder = store.join("features").join(committed.week.folder());
    for (number, segment) in whole.journal.segments.iter_mut().enumerate() {
        if segment.features == 0 || tables.find("features", &segment.file()).is_some() {
            continue;
        }
        let file = format!("nigh-{:05}-{:05}.parquet", committed.commit, 50_000 + number);
        let mut writer: Writer<FeatureRow<'_>> = Writer::create(&folder.join(&file)).unwrap();
        let rows = tables.of_segment("features", segment).unwrap();
        let scan = Scan::open(rows, &["doc", "vector", "supershingles", "features"]).unwrap();
        scan.for_each(|batch| writer.push_rows(batch)).unwrap();
        let pieces = vec![Piece(segment.file(), writer.finish().unwrap())];
        let bytes = folder.join(&file).metadata().unwrap().len();
        whole.files.get_mut("features").unwrap().push(TablePart { file, bytes, digest: None, pieces });
        if segment.links + segment.chunks == 0 {
            segment.origin = None;
        }
    }
    whole.kept.values_mut().for_each(|files| drop(files.remove("features")));
    whole.write(&state.records(&committed).join("week.json")).unwrap();
}

/// The pages of every `step`th number, in a version.
pub(super) fn every(step: usize, version: usize) -> BTreeMap<usize, usize> {
    (0..PAGES).step_by(step).map(|page| (page, version)).collect()
}

#[test]
fn weeks_of_older_versions_with_all_features_go_on() {
    let texts = "[cluster]\n[cluster.read]\nmax-links = 0\n[cluster.read.columns]\nhtml = \"html\"\ntext = \"text\"\n\
        [cluster.method]\nshards = 4\n[cluster.keep]\nchunks = false\n";
    // If the week that crawled a page is there, its features are; else they are copied.
    for (job, is_removed, is_copied) in
        [(JOB, false, false), (JOB, true, true), (texts, false, false), (texts, true, false)]
    {
        let folder = tempfile::tempdir().unwrap();
        let [old, new] = ["old", "new"].map(|name| CrawledStore { folder: folder.path(), name, input: "parts", job });
        let none = BTreeSet::new();
        let features = |of: &CrawledStore<'_>, date: &str| longs(&week(&of.store(), date), "features", "doc").len();
        for (number, (step, date)) in [1, 9, 7, 8].into_iter().zip(DATES).enumerate() {
            let flags: &[&str] = if number == 0 { &[] } else { &["--absent", "keep"] };
            for store in [&old, &new] {
                store.crawl(date, &every(step, number), &none, flags);
            }
            if number == 1 {
                with_whole_features(&old.store());
                assert_eq!(features(&old, date), PAGES);
            }
            for store in [&old, &new].into_iter().filter(|_| is_removed && number == 1) {
                run_well(&["vacuum", "--store", store.store().to_str().unwrap(), "--keep", "1"]);
            }
            assert!(old.facts(date) == new.facts(date), "{date}");
            [&old, &new].iter().filter(|_| !is_removed).for_each(|store| store.check_joined(date));
            if number == 2 {
                assert_eq!(features(&old, date) > PAGES / 2, is_copied);
                assert!(features(&new, date) < PAGES / 2);
            }
        }
        let (last, some) = (DATES[3], url(3));
        for store in [&old, &new] {
            run_well(&["delete", "--store", store.store().to_str().unwrap(), "--url", &some]);
        }
        assert!(old.facts(last) == new.facts(last) && !has(&old.facts(last), 3));
        if !is_removed {
            old.check_joined(last);
        }
        for store in [&old, &new] {
            run_well(&["vacuum", "--store", store.store().to_str().unwrap(), "--before", last]);
        }
        assert!(old.facts(last) == new.facts(last));
    }
}

/// The week after had no chunks of pages that stayed.
#[test]
fn chunks_that_are_made_later_stay_too() {
    let folder = tempfile::tempdir().unwrap();
    let job = format!("{JOB}[cluster.keep]\nchunks = false\n");
    let crawled = CrawledStore { folder: folder.path(), name: "store", input: "parts", job: &job };
    let none = BTreeSet::new();
    crawled.crawl(DATES[0], &every(1, 0), &none, &[]);
    crawled.crawl(DATES[1], &every(9, 1), &none, &["--absent", "keep"]);
    let store = crawled.store();
    let store = store.to_str().unwrap();
    let inputs = [0, 1].map(|number| folder.path().join(format!("parts-{}/pages.jsonl", DATES[number])));
    let inputs = inputs.each_ref().map(|path| path.to_str().unwrap());
    let arguments = ["run", "jobs/chunks.toml", "-q", "--store", store, "--week", DATES[1], "--input"];
    run_well(&[&arguments[..], &inputs].concat());
    let chunks = |date: &str| crawled.rows(date, "chunks", &["doc", "text", "characters"]);
    let mut wanted = chunks(DATES[1]);
    assert_eq!(wanted.len(), PAGES);
    for (date, step) in [(DATES[2], 7), (DATES[3], 8)] {
        crawled.crawl(date, &every(step, 2), &none, &["--absent", "keep"]);
        let crawled_now = rows_of(&week(&crawled.store(), date), "documents", &["doc", "crawled"]).into_iter();
        let crawled_now: BTreeSet<String> =
            crawled_now.filter(|row| row[1] == date).map(|row| row[0].clone()).collect();
        wanted.retain(|row| !crawled_now.contains(&row[0]));
        assert!(wanted.len() > PAGES / 2 && chunks(date) == wanted, "{date}");
    }
    run_well(&["delete", "--store", store, "--url", &url(3)]);
    assert_eq!(chunks(DATES[3]).len(), wanted.len() - 1);
}

fn has(facts: &BTreeMap<&'static str, Vec<Vec<String>>>, page: usize) -> bool {
    facts["documents"].iter().any(|row| row[1] == url(page))
}

#[test]
fn a_partial_week_that_is_killed_is_made_the_same() {
    let folder = tempfile::tempdir().unwrap();
    let whole = CrawledStore { folder: folder.path(), name: "whole", input: "parts", job: JOB };
    let versions = |of: &dyn Fn(usize) -> bool, version: usize| -> BTreeMap<usize, usize> {
        (0..PAGES).filter(|page| of(*page)).map(|page| (page, version)).collect()
    };
    let gone = BTreeSet::from([5]);
    whole.crawl(DATES[0], &versions(&|page| page < 80, 0), &BTreeSet::new(), &[]);
    whole.crawl(DATES[1], &versions(&|page| page.is_multiple_of(9), 1), &BTreeSet::new(), &["--absent", "keep"]);
    let killed = CrawledStore { name: "killed", ..whole };
    copy_folder(&whole.store(), &killed.store());
    let begun = Instant::now();
    whole.crawl(DATES[2], &versions(&|page| page.is_multiple_of(7) && page != 5, 2), &gone, &["--absent", "keep"]);
    let took = begun.elapsed();
    let wanted = tables(&week(&whole.store(), DATES[2]));
    let [job, store, input] = [folder.path().join("job.toml"), killed.store(), folder.path().join("parts-2024-01-22")];
    let arguments = ["run", job.to_str().unwrap(), "-q", "--week", DATES[2], "--store", store.to_str().unwrap()];
    let arguments = [&arguments[..], &["--input", input.to_str().unwrap(), "--absent", "keep"]].concat();
    kill_at_moments(&arguments, took, 14, |round| {
        let of = week(&store, DATES[2]);
        assert!(!has_week(&of) || tables(&of) == wanted, "round {round}");
    });
    run_well(&arguments);
    assert!(tables(&week(&store, DATES[2])) == wanted);
    assert!(killed.facts(DATES[2]) == whole.facts(DATES[2]));
    let summaries = [&whole, &killed].map(|of| records(&week(&of.store(), DATES[2])).join("summary.json"));
    let documents = summaries.map(|path| {
        let summary: serde_json::Value = serde_json::from_slice(&std::fs::read(path).unwrap()).unwrap();
        (summary["counts"].clone(), summary["counts"]["documents"].as_u64().unwrap())
    });
    assert!(documents[0] == documents[1], "{documents:?}");
}

/// Neither of a page as it is, nor of a version of before, in files that pages of other segments
/// need.
#[test]
fn what_is_deleted_is_in_no_file_after_old_weeks_are_removed() {
    for (chunks, workers) in [("", "1"), ("keep.chunks = false\n", "2")] {
        let folder = tempfile::tempdir().unwrap();
        let job = JOB.replacen("[cluster]\n", &format!("[cluster]\n{chunks}"), 1);
        let [deleted, never] = [("deleted", "parts"), ("never", "others")].map(|(name, input)| CrawledStore {
            folder: folder.path(),
            name,
            input,
            job: &job,
        });
        let (all, none): (BTreeMap<usize, usize>, _) = ((0..PAGES).map(|page| (page, 0)).collect(), BTreeSet::new());
        // Page 3 is as it was, page 4 in a later version, and page 5 is gone before it is deleted.
        let changed = BTreeMap::from([(4, 1), (50, 1)]);
        for store in [&deleted, &never] {
            store.crawl(DATES[0], &all, &none, &["--absent", "keep"]);
            store.crawl(DATES[1], &changed, &none, &["--absent", "keep", "--workers", workers]);
            store.crawl(DATES[2], &BTreeMap::from([(51, 1)]), &BTreeSet::from([5]), &["--absent", "keep"]);
        }
        let of_pages = rows_of(&week(&deleted.store(), DATES[0]), "documents", &["doc", "url"]);
        let urls: Vec<String> = [3, 4, 5].map(url).to_vec();
        let docs: Vec<&String> = of_pages.iter().filter(|row| urls.contains(&row[1])).map(|row| &row[0]).collect();
        assert_eq!(docs.len(), 3);
        let name = deleted.store().to_str().unwrap().to_owned();
        let flags: Vec<&str> = urls.iter().flat_map(|url| ["--url", url.as_str()]).collect();
        run_well(&[&["delete", "-q", "--store", &name, "--workers", workers][..], &flags].concat());
        let kept = deleted.facts(DATES[2]);
        run_well(&["vacuum", "--store", &name, "--keep", "1"]);
        assert!(deleted.facts(DATES[2]) == kept);
        // A link to one of them is no row either.
        let files = walkdir::WalkDir::new(deleted.store()).into_iter().map(|entry| entry.unwrap().into_path());
        let mut read = BTreeSet::new();
        for file in files.filter(|path| path.extension().is_some_and(|extension| extension == "parquet")) {
            let table = file.strip_prefix(deleted.store()).unwrap().iter().next().unwrap().to_str().unwrap().to_owned();
            for (column, wanted) in
                [("doc", &docs), ("target_url", &urls.iter().collect()), ("url", &urls.iter().collect())]
            {
                let Ok(mut scan) = Scan::open(&file, &[column]) else { continue };
                while let Some(batch) = scan.batch().unwrap() {
                    read.insert(table.clone());
                    for row in 0..batch.num_rows() {
                        let value = value_text(batch.column(0).as_ref(), row);
                        assert!(!wanted.contains(&&value), "{}: {column} {value}", file.display());
                    }
                }
            }
        }
        assert!(["features", "links", "documents", "_nigh"].iter().all(|table| read.contains(*table)), "{read:?}");
        assert_eq!(read.contains("chunks"), chunks.is_empty());
        // What stays is what it is without a deletion.
        let of_never = never.rows(DATES[2], "features", &["doc", "vector", "features"]);
        let stay = of_never.into_iter().filter(|row| !docs.contains(&&row[0])).collect::<Vec<_>>();
        assert!(deleted.rows(DATES[2], "features", &["doc", "vector", "features"]) == stay);
    }
}
