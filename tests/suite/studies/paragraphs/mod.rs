//! Shingle paragraphs, what links lead to, and where text comes from, against a twin by brute
//! force: on random weeks, on real pages and on the made web.

mod twin;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Instant;

use nigh::records::mix;

use self::twin::{ParagraphsSettings, ParagraphsTwin};
use crate::program::{
    Made, WEEK, copy_folder, corpus, files, job, kill_at_moments, longs, rows_of, run, run_well, tables, week,
};
use crate::web::truth::CorePart;
use crate::web::{WEEKS, Web, WebSize, WebStore};

/// A store with weeks of random pages: texts of few different paragraphs, some repeated, some pages
/// short, with links; from week to week pages come, go, change, and copy others.
struct RandomWeeks {
    folder: tempfile::TempDir,
    seed: u64,
    /// The paragraphs of each page; none if it is not there.
    texts: Vec<Vec<u64>>,
    weeks: usize,
}

/// Pages of a random week, at most.
const PAGES: usize = 120;

impl RandomWeeks {
    fn new(seed: u64, weeks: usize) -> RandomWeeks {
        let texts = vec![Vec::new(); PAGES];
        let mut made = RandomWeeks { folder: tempfile::tempdir().unwrap(), seed, texts, weeks: 0 };
        (0..weeks).for_each(|_| made.next_week());
        made
    }

    fn store(&self) -> PathBuf {
        self.folder.path().join("store")
    }

    fn number(&self, place: u64, below: u64) -> u64 {
        mix(mix(self.seed) ^ mix(place << 8 | self.weeks as u64)) % below
    }

    fn url(page: u64) -> String {
        // Two hosts of one site, and two of another one.
        let hosts = ["h0", "h1", "www.h1", "h3", "h4", "h5", "www.h5"];
        format!("http://{}.example/page{page}", hosts[page as usize % 7])
    }

    /// Paragraphs of a text of its own: three sentences each.
    fn own(&self, place: u64) -> Vec<u64> {
        let count = 1 + self.number(place + 1, 9);
        let kinds = [12, 60, 1 << 40][(self.seed % 3) as usize];
        (0..count).map(|at| self.number(place + 10 + at, kinds)).collect()
    }

    fn next_week(&mut self) {
        let before = self.texts.clone();
        for page in 0..PAGES {
            let place = 1000 * (page as u64 + 1);
            let of = |place| before[self.number(place, PAGES as u64) as usize].clone();
            let text = match self.number(place, if self.weeks == 0 { 5 } else { 16 }) {
                0 => Vec::new(),
                1 | 2 => self.own(place),
                3 => {
                    // A copy of a page that was written before, with a paragraph more.
                    let mut copy = self.texts[self.number(place + 3, page as u64 + 1) as usize].clone();
                    if self.number(place + 4, 2) == 0 {
                        copy.push(self.number(place + 5, 12));
                    }
                    copy
                }
                4 => {
                    // Text that repeats a paragraph.
                    let mut text = self.own(place);
                    text.push(text[0]);
                    text
                }
                5 => [of(place + 6), of(place + 7), self.own(place)].concat(),
                _ => before[page].clone(),
            };
            self.texts[page] = text;
        }
        self.commit();
    }

    fn commit(&mut self) {
        let mut lines = String::new();
        for (page, text) in (0..).zip(&self.texts).filter(|(_, text)| !text.is_empty()) {
            let paragraph = |number: &u64| {
                format!("Paragraph {number} begins so. Its second sentence, with {} words. And it ends.", number % 10)
            };
            let text: Vec<String> = text.iter().map(paragraph).collect();
            // Few links, so that not all pages are connected.
            let links: String = (0..self.number(page + 77, 3))
                .map(|link| RandomWeeks::url(self.number(100 * page + link, PAGES as u64)))
                .map(|url| format!("<a href=\"{url}\"></a>"))
                .collect();
            let date = format!("2024-01-08T00:00:{:02}Z", self.number(page + 55, 60));
            let html = format!("<p>{}</p>{links}", text.join(" "));
            lines +=
                &(serde_json::json!({"url": RandomWeeks::url(page), "html": html, "date": date}).to_string() + "\n");
        }
        let kind = if self.weeks == 0 { "cluster" } else { "weekly" };
        let shards = if self.weeks == 0 { "[cluster.method]\nshards = 4\n" } else { "" };
        let input = self.folder.path().join("pages.jsonl");
        std::fs::write(&input, lines).unwrap();
        let text = format!("[{kind}]\n[{kind}.read.columns]\nhtml = \"html\"\ndate = \"date\"\n{shards}");
        let (path, store) = (job(self.folder.path(), &text), self.store());
        let flags = ["-q", "--week", WEEKS[self.weeks], "--input", input.to_str().unwrap()];
        run_well(&[&["run", path.to_str().unwrap()][..], &flags, &["--store", store.to_str().unwrap()]].concat());
        self.weeks += 1;
    }
}

/// Settings that differ in each parameter.
fn all_settings() -> Vec<ParagraphsSettings> {
    let default = ParagraphsSettings::default();
    vec![
        default.clone(),
        ParagraphsSettings { crawl: true, parts: 7, ..default.clone() },
        ParagraphsSettings { least_characters: 0, boilerplate: 2, parts: 1, ..default.clone() },
        ParagraphsSettings { near: vec![1.0, 0.3], seeds: vec![RandomWeeks::url(3)], parts: 50, ..default.clone() },
        ParagraphsSettings { near: Vec::new(), least_characters: 300, ..default },
    ]
}

#[test]
fn tables_of_random_weeks_are_those_of_brute_force() {
    let (mut parents, mut near) = (0, 0);
    for seed in 0..6 {
        let made = RandomWeeks::new(seed, 4);
        let store = made.store();
        for mut settings in all_settings() {
            let urls = rows_of(&week(&store, WEEKS[3]), "documents", &["url"]).concat();
            settings.seeds.retain(|seed| urls.contains(seed));
            let twin = ParagraphsTwin::of(&store, &WEEKS, &settings);
            settings.run(&store, &["--workers", "2"]);
            twin.assert_is(&store, &format!("seed {seed}, {}", settings.toml()));
            parents += twin.count("parents");
            near += twin.count("near");
        }
    }
    assert!(parents > 150 && near > 1000, "{parents}, {near}");
}

#[test]
fn workers_processes_and_memory_do_not_change_a_byte() {
    let made = RandomWeeks::new(1, 3);
    let store = made.store();
    let folder = tempfile::tempdir().unwrap();
    let little = folder.path().join("little.toml");
    std::fs::write(&little, "memory = \"64KiB\"\n").unwrap();
    let summary = |flags: &[&str]| {
        let settings = ParagraphsSettings { mode: "full", ..ParagraphsSettings::default() };
        let tables = settings.run(&store, flags);
        let text = run(&["show", store.to_str().unwrap(), "--job", "paragraphs"]).stdout;
        (tables, text)
    };
    let one = summary(&["--workers", "1"]);
    assert!(one.0.len() >= 13 && one.0.values().map(Vec::len).sum::<usize>() > 10_000);
    for flags in [
        &["--workers", "2"][..],
        &["--workers", "4"],
        &["--workers", "1", "--processes", "2"],
        &["--workers", "2", "--processes", "2"],
        &["--workers", "2", "--config", little.to_str().unwrap()],
    ] {
        assert!(summary(flags) == one, "{flags:?}");
    }
}

#[test]
fn lifetimes_that_go_on_from_a_former_run_are_those_of_all_weeks() {
    let folder = tempfile::tempdir().unwrap();
    let little = folder.path().join("little.toml");
    std::fs::write(&little, "memory = \"64KiB\"\n").unwrap();
    for seed in [2, 3] {
        let mut made = RandomWeeks::new(seed, 1);
        let store = made.store();
        let (delta, full) = (
            ParagraphsSettings { mode: "delta", ..ParagraphsSettings::default() },
            ParagraphsSettings { mode: "full", ..ParagraphsSettings::default() },
        );
        full.run(&store, &[]);
        // After one week, and after two.
        for weeks in [1, 2] {
            (0..weeks).for_each(|_| made.next_week());
            let followed = delta.run(&store, &["--workers", "2", "--config", little.to_str().unwrap()]);
            // The same week again, from its own tables.
            assert!(delta.run(&store, &["--workers", "2", "--processes", "2"]) == followed, "seed {seed}");
            let folder = tempfile::tempdir().unwrap();
            let other = folder.path().join("store");
            copy_folder(&store, &other);
            assert!(full.run(&other, &[]) == followed, "seed {seed}, {} weeks", made.weeks);
            ParagraphsTwin::of(&store, &WEEKS[..made.weeks], &full).assert_is(&store, &format!("seed {seed}"));
        }
    }
}

#[test]
fn a_run_that_cannot_go_on_says_why_or_begins_with_the_first_week() {
    let mut made = RandomWeeks::new(4, 2);
    let store = made.store();
    let folder = tempfile::tempdir().unwrap();
    let fails = |settings: &ParagraphsSettings, flags: &[&str], wanted: &str| {
        let job = job(folder.path(), &settings.toml());
        let ran = run(&[&["run", job.to_str().unwrap(), "-q", "--store", store.to_str().unwrap()], flags].concat());
        assert!(ran.code == Some(1) && ran.stderr.contains(wanted), "{wanted}: {:?} {}", ran.code, ran.stderr);
    };
    let delta = ParagraphsSettings { mode: "delta", ..ParagraphsSettings::default() };
    fails(&delta, &[], "has no tables of this job");
    let full = ParagraphsSettings::default();
    full.run(&store, &["--week", WEEKS[1]]);
    fails(&delta, &["--week", WEEKS[0]], &format!("the run before was for week {}", WEEKS[1]));
    fails(&ParagraphsSettings { least_characters: 7, ..delta.clone() }, &[], "another `least-characters`");
    // An earlier week, though the tables are of a later one; then the later one again.
    full.run(&store, &["--week", WEEKS[0]]);
    ParagraphsTwin::of(&store, &WEEKS[..1], &full).assert_is(&store, "an earlier week");
    made.next_week();
    ParagraphsSettings { mode: "delta", ..full.clone() }.run(&store, &[]);
    ParagraphsTwin::of(&store, &WEEKS[..3], &full).assert_is(&store, "two weeks later");
    fails(
        &ParagraphsSettings { seeds: vec!["http://nowhere.example/".into()], ..full.clone() },
        &[],
        "has no page with the URL http://nowhere.example/",
    );
    fails(&ParagraphsSettings { seeds: vec!["nowhere".into()], ..full }, &[], "nowhere is not the URL of a page");
}

#[test]
fn weeks_without_chunks_and_weeks_that_get_them_later_begin_again() {
    let folder = tempfile::tempdir().unwrap();
    let store = folder.path().join("store");
    let name = store.to_str().unwrap().to_owned();
    let page = |page: u64, text: &[u64]| {
        let text: Vec<String> = text
            .iter()
            .map(|number| format!("Paragraph {number} begins so. It goes on for a while. And it ends."))
            .collect();
        serde_json::json!({"url": format!("http://a.example/{page}"), "text": text.join(" ")}).to_string() + "\n"
    };
    let input = |week: usize| folder.path().join(format!("{week}.jsonl"));
    for (week, date) in WEEKS.iter().enumerate() {
        let texts = [page(0, &[1, 2, 3]), page(1, &[week as u64, 7, 8]), page(10 + week as u64, &[2, 3, week as u64])];
        std::fs::write(input(week), texts.concat()).unwrap();
        let (kind, keep) = (if week == 0 { "cluster" } else { "weekly" }, if week == 1 { "false" } else { "true" });
        let job = job(folder.path(), &format!("[{kind}]\n[{kind}.keep]\nchunks = {keep}\n"));
        let flags =
            ["-q", "--week", date, "--input", input(week).to_str().unwrap(), "--store", &name].map(str::to_owned);
        let flags: Vec<&str> = flags.iter().map(String::as_str).collect();
        run_well(&[&["run", job.to_str().unwrap()][..], &flags].concat());
    }
    let settings = ParagraphsSettings { least_characters: 0, boilerplate: 2, ..ParagraphsSettings::default() };
    let path = job(folder.path(), &settings.toml());
    let ran = run_well(&["run", path.to_str().unwrap(), "--store", &name]);
    assert!(ran.stderr.contains("week 2024-01-15 has no chunks"), "{}", ran.stderr);
    ParagraphsTwin::of(&store, &WEEKS[2..], &settings).assert_is(&store, "since the week after");
    // The tables of the run before are of other weeks, once the chunks are made.
    let chunks = ["run", "jobs/chunks.toml", "-q", "--store", &name, "--week", WEEKS[1], "--input"];
    run_well(&[&chunks[..], &[input(1).to_str().unwrap()]].concat());
    let delta = job(folder.path(), &ParagraphsSettings { mode: "delta", ..settings.clone() }.toml());
    let ran = run(&["run", delta.to_str().unwrap(), "-q", "--store", &name]);
    assert!(ran.code == Some(1) && ran.stderr.contains("no former run can be followed"), "{}", ran.stderr);
    settings.run(&store, &[]);
    ParagraphsTwin::of(&store, &WEEKS, &settings).assert_is(&store, "since the first week");
    // Without genealogy all other tables are the same.
    let without = job(folder.path(), &(settings.toml() + "genealogy = false\n"));
    run_well(&["run", without.to_str().unwrap(), "-q", "--store", &name]);
    for table in ["births", "parents", "lifetimes", "turnover"] {
        assert!(rows_of(&store.join("paragraphs"), table, &[]).is_empty(), "{table} has no rows");
    }
    assert_eq!(rows_of(&store.join("paragraphs"), "estimates", &["of_week"]).len(), 4);
}

#[test]
fn links_that_leave_the_crawl_do_not_end_the_reading_of_links() {
    let folder = tempfile::tempdir().unwrap();
    let outside: String = (0..10_000).map(|link| format!("<a href=\"http://outside.example/{link}\"></a>")).collect();
    let page = |number: u32, html: &str| {
        let text = "One sentence. And another. ".repeat(20);
        serde_json::json!({"url": format!("http://a.example/{number}"), "html": format!("<p>{text}</p>{html}")})
            .to_string()
            + "\n"
    };
    // Pages with more links to nowhere than are read at once; then one that links to the last page.
    let mut lines: String = (0..60).map(|number| page(number, &outside)).collect();
    lines += &(page(60, "<a href=\"http://a.example/61\"></a>") + &page(61, ""));
    let input = folder.path().join("pages.jsonl");
    std::fs::write(&input, lines).unwrap();
    let text = format!(
        "[cluster]\nweek = \"{WEEK}\"\ninput = [\"{}\"]\n[cluster.read.columns]\nhtml = \"html\"\n[cluster.method]\nshards = 1\n",
        input.display()
    );
    let made = Made::with_job(&job(folder.path(), &text), &[]);
    for seeds in [Vec::new(), vec!["http://a.example/60".to_owned()]] {
        let settings = ParagraphsSettings { seeds: seeds.clone(), ..ParagraphsSettings::default() };
        settings.run(&made.store(), &["--workers", "1"]);
        let rows = rows_of(&made.store().join("paragraphs"), "seeds", &["url", "reached"]);
        let wanted = if seeds.is_empty() { ["http://a.example/61", "1"] } else { ["http://a.example/60", "2"] };
        assert_eq!(rows, [wanted.map(str::to_owned)]);
    }
}

#[test]
fn real_pages_and_the_made_web_have_the_tables_of_brute_force() {
    let real = Made::new(&[]);
    let settings =
        ParagraphsSettings { least_characters: 450, parts: 50, boilerplate: 10, ..ParagraphsSettings::default() };
    settings.run(&real.store(), &["--workers", "2"]);
    let twin = ParagraphsTwin::of(&real.store(), &[WEEK], &settings);
    twin.assert_is(&real.store(), "real pages");
    assert!(twin.count("boilerplate") > 0);
    let web = WebStore::new(Web::small(), 2, false);
    settings.run(&web.path(), &[]);
    ParagraphsTwin::of(&web.path(), &WEEKS[..2], &settings).assert_is(&web.path(), "the made web");
}

#[test]
fn the_connected_part_of_the_made_web_is_the_core_of_its_bow_tie_and_out() {
    for shape in [WebSize::small(), WebSize { hosts: 120, pages: 3_000, seed: 5 }] {
        let web = Web::of(&shape);
        let made = WebStore::new(&web, 1, false);
        ParagraphsSettings { least_characters: 0, ..ParagraphsSettings::default() }
            .run(&made.path(), &["--workers", "2"]);
        let crawl = web.week(0);
        let part_of: BTreeMap<&str, CorePart> =
            crawl.pages.iter().map(|page| (&*page.url, web.truth.bow_tie.part(&page.host, &page.path))).collect();
        let documents = rows_of(&week(&made.path(), WEEKS[0]), "documents", &["doc", "url"]);
        let url_of: BTreeMap<String, String> =
            documents.into_iter().map(|row| (row[0].clone(), row[1].clone())).collect();
        let rows = |table: &str, columns: &[&str]| rows_of(&made.path().join("paragraphs"), table, columns);
        let (mut connected, pages) = (0, rows("pages", &["doc", "connected"]));
        for row in &pages {
            let part = part_of[&*url_of[&row[0]]];
            assert_eq!(row[1] == "true", matches!(part, CorePart::Core | CorePart::Out), "{}", url_of[&row[0]]);
            connected += usize::from(row[1] == "true");
        }
        assert!(connected > 100 && pages.len() > connected + 100, "{connected} of {}", pages.len());
        let seed = rows("seeds", &["chosen", "url", "core"]).into_iter().find(|row| row[0] == "true").unwrap();
        assert_eq!(part_of[&*seed[1]], CorePart::Core);
        let core = part_of.values().filter(|part| **part == CorePart::Core).count();
        assert_eq!(seed[2], core.to_string());
    }
}

#[test]
fn empty_weeks_single_pages_and_endless_sentences_have_tables() {
    let endless = "word ".repeat(100_000);
    let page = |text: &str| serde_json::json!({"url": "http://a.example/", "text": text}).to_string() + "\n";
    for (lines, pages, paragraphs) in [
        (String::new(), 0, 0),
        (page("one line"), 0, 0),
        (page("..."), 0, 0),
        // A sentence ends with the 31st word: the 150th character is the blank before it.
        (page(&endless), 1, 1076),
        (page(&"x".repeat(1000)), 1, 1),
    ] {
        let folder = tempfile::tempdir().unwrap();
        let input = folder.path().join("pages.jsonl");
        std::fs::write(&input, lines).unwrap();
        let text = format!("[cluster]\nweek = \"{WEEK}\"\nallow-empty = true\ninput = [\"{}\"]\n", input.display());
        let made = Made::with_job(&job(folder.path(), &text), &[]);
        let settings = ParagraphsSettings { least_characters: 450, ..ParagraphsSettings::default() };
        settings.run(&made.store(), &["--workers", "2"]);
        ParagraphsTwin::of(&made.store(), &[WEEK], &settings).assert_is(&made.store(), "few pages");
        let found = longs_of(&made.store(), "pages");
        assert_eq!((found.len(), found.iter().sum::<i64>()), (pages, paragraphs));
        for table in nigh::tables::result_tables("paragraphs") {
            assert!(!files(&made.store().join("paragraphs"), table.name).is_empty(), "{} has a file", table.name);
        }
    }
}

#[test]
fn documents_without_urls_are_on_no_site() {
    let text = "One paragraph that is long enough. ".repeat(40);
    let folder = tempfile::tempdir().unwrap();
    let input = folder.path().join("pages.jsonl");
    let line = |id| serde_json::json!({"id": id, "text": text}).to_string() + "\n";
    std::fs::write(&input, ["a", "b", "c"].map(line).concat()).unwrap();
    let read = "[cluster.read.columns]\nid = \"id\"\n";
    let text = format!("[cluster]\nweek = \"{WEEK}\"\ninput = [\"{}\"]\n{read}", input.display());
    let made = Made::with_job(&job(folder.path(), &text), &[]);
    ParagraphsSettings::default().run(&made.store(), &["--workers", "2"]);
    let rows = |table, columns: &[&str]| rows_of(&made.store().join("paragraphs"), table, columns);
    assert!(rows("sizes", &["size"]).contains(&vec!["3".to_owned()]));
    assert!(rows("sites", &["size"]).is_empty());
    let shown = run_well(&["show", made.store().to_str().unwrap(), "--job", "paragraphs"]).stdout;
    assert!(!shown.contains("on one site"), "{shown}");

    // A week with two documents more, which have the paragraphs of the others. No other study has
    // hosts either.
    let more = std::fs::read_to_string(&input).unwrap() + &line("d") + &line("e");
    std::fs::write(&input, more).unwrap();
    let store = made.store();
    let (store, input) = (store.to_str().unwrap(), input.to_str().unwrap());
    run_well(&["run", "-q", "--store", store, "--id", "id", "--week", "2024-01-15", "--input", input]);
    ParagraphsSettings { boilerplate: 2, ..ParagraphsSettings::default() }.run(&made.store(), &[]);
    let rows = |table, columns: &[&str]| rows_of(&made.store().join("paragraphs"), table, columns);
    assert_eq!(rows("parents", &["same_host"]), [["false"], ["false"]]);
    let boilerplate = rows("boilerplate", &["documents", "hosts", "on_host"]);
    assert!(!boilerplate.is_empty() && boilerplate.iter().all(|row| *row == ["5", "0", "0"]), "{boilerplate:?}");
    let shown = run_well(&["show", store, "--job", "paragraphs"]).stdout;
    assert!(shown.contains("2 pages") && shown.contains("0 first from other hosts"), "{shown}");
    for study in ["overlap", "evolution"] {
        run_well(&["run", &format!("jobs/{study}.toml"), "-q", "--store", store]);
    }
    let rows = |table, columns: &[&str]| rows_of(&made.store().join("overlap"), table, columns);
    assert!(rows("reasons", &["documents"]).iter().all(|row| *row == ["0"]));
    assert!(rows("most", &["documents", "hosts"]).iter().all(|row| *row == ["5", "0"]));
    let shown = run_well(&["show", store, "--job", "overlap"]).stdout;
    assert!(shown.contains("5 pages: ") && !shown.contains("host"), "{shown}");
    assert!(rows_of(&made.store().join("evolution"), "host-changes", &["hosts"]).is_empty());
}

/// The paragraphs of each page of the tables of the job.
fn longs_of(store: &Path, table: &str) -> Vec<i64> {
    let rows = rows_of(&store.join("paragraphs"), table, &["paragraphs"]);
    rows.into_iter().map(|row| row[0].parse().unwrap()).collect()
}

#[test]
fn a_job_that_cannot_run_says_why() {
    let folder = tempfile::tempdir().unwrap();
    let input = folder.path().join("pages.jsonl");
    let lines: String = (0..40)
        .map(|page| serde_json::json!({"url": format!("http://a.example/{page}"), "text": "One. Two. Three. ".repeat(20) + &page.to_string()}).to_string() + "\n")
        .collect();
    std::fs::write(&input, lines).unwrap();
    let text = format!("[cluster]\nweek = \"{WEEK}\"\ninput = [\"{}\"]\n", input.display());
    let made = Made::with_job(&job(folder.path(), &text), &[]);
    let store = made.store();
    let fails = |job_text: &str, wanted: &str| {
        let path = job(folder.path(), job_text);
        let ran = run(&["run", path.to_str().unwrap(), "-q", "--store", store.to_str().unwrap()]);
        assert!(ran.code == Some(1) && ran.stderr.contains(wanted), "{wanted}: {:?} {}", ran.code, ran.stderr);
        assert!(!store.join("paragraphs").exists(), "no table is left");
    };
    // JSON Lines without a date.
    fails(
        "[paragraphs]\norder = \"crawl\"\nleast-characters = 0\n",
        "40 of 40 pages of week 2024-01-08 have none: use `order = \"hash\"`",
    );
    let without =
        format!("[cluster]\nweek = \"{WEEK}\"\ninput = [\"{}\"]\n[cluster.keep]\nchunks = false\n", input.display());
    let other = Made::with_job(&job(folder.path(), &without), &[]);
    let path = job(folder.path(), "[paragraphs]\n");
    let ran = run(&["run", path.to_str().unwrap(), "-q", "--store", other.store().to_str().unwrap()]);
    assert!(
        ran.code == Some(1) && ran.stderr.contains("has no chunks, which the paragraphs job reads"),
        "{}",
        ran.stderr
    );
    assert!(ran.stderr.contains("jobs/chunks.toml"), "{}", ran.stderr);
}

#[test]
fn too_many_pairs_are_refused_with_the_pages_that_have_most() {
    let made = RandomWeeks::new(0, 1);
    let store = made.store();
    let folder = tempfile::tempdir().unwrap();
    let path = job(folder.path(), "[paragraphs]\nleast-characters = 0\nnear = [0.3]\nmax-pairs = 3\n");
    let ran = run(&["run", path.to_str().unwrap(), "-q", "--store", store.to_str().unwrap()]);
    assert!(ran.code == Some(1) && ran.stderr.contains("too many pairs for near-duplicates"), "{}", ran.stderr);
    assert!(ran.stderr.contains("http://h") && ran.stderr.contains("Raise `max-pairs`"), "{}", ran.stderr);
    assert!(!store.join("paragraphs").exists());
}

#[test]
fn a_kill_at_any_moment_leaves_the_tables_of_the_run_before() {
    let mut made = RandomWeeks::new(5, 2);
    let store = made.store();
    let settings = ParagraphsSettings::default();
    let before = settings.run(&store, &[]);
    made.next_week();
    let folder = tempfile::tempdir().unwrap();
    let path = job(folder.path(), &settings.toml());
    let arguments = ["run", path.to_str().unwrap(), "-q", "--store", store.to_str().unwrap()];
    let copy = folder.path().join("copy");
    copy_folder(&store, &copy);
    let begin = Instant::now();
    let wanted = settings.run(&copy, &[]);
    assert!(wanted != before);
    kill_at_moments(&arguments, begin.elapsed(), 8, |round| {
        let now = tables(&store.join("paragraphs"));
        assert!(now == before || now == wanted, "round {round}");
    });
    run_well(&arguments);
    assert!(tables(&store.join("paragraphs")) == wanted);
    assert!(!store.join("_nigh/work").exists());
}

#[test]
fn deleted_pages_and_removed_weeks_take_the_tables_with_them() {
    let made = RandomWeeks::new(1, 3);
    let store = made.store();
    let name = store.to_str().unwrap();
    let settings = ParagraphsSettings::default();
    settings.run(&store, &[]);
    run_well(&["vacuum", "--store", name, "--keep", "2"]);
    assert!(!store.join("paragraphs").exists(), "lifetimes begin with a removed week");
    settings.run(&store, &[]);
    ParagraphsTwin::of(&store, &WEEKS[1..3], &settings).assert_is(&store, "after vacuum");
    run_well(&["delete", "-q", "--store", name, "--host", "h3.example"]);
    assert!(!store.join("paragraphs").exists(), "pages of the tables are deleted");
    settings.run(&store, &[]);
    ParagraphsTwin::of(&store, &WEEKS[1..3], &settings).assert_is(&store, "after a deletion");
    let urls = rows_of(&store.join("paragraphs"), "boilerplate", &["url"]).concat();
    assert!(!urls.is_empty() && urls.iter().all(|url| !url.contains("h3.example")));
}

#[test]
fn a_dry_run_writes_nothing_and_show_prints_what_the_run_printed() {
    let made = RandomWeeks::new(2, 2);
    let store = made.store();
    let folder = tempfile::tempdir().unwrap();
    let path = job(folder.path(), &ParagraphsSettings::default().toml());
    let arguments = ["run", path.to_str().unwrap(), "--store", store.to_str().unwrap()];
    let plan = run_well(&[&arguments[..], &["--dry-run"]].concat()).stdout;
    assert!(plan.contains("Weeks     2, ") && plan.contains("Pages"), "{plan}");
    assert!(!store.join("paragraphs").exists());
    let printed = run_well(&arguments).stdout;
    assert!(printed.contains("near-duplicates at 50%") && printed.contains("Boilerplate: "), "{printed}");
    assert!(printed.contains("New since 2024-01-08"), "{printed}");
    assert_eq!(run_well(&["show", store.to_str().unwrap(), "--job", "paragraphs"]).stdout, printed);
    let json = run_well(&["show", store.to_str().unwrap(), "--job", "paragraphs", "--json"]).stdout;
    let summary: serde_json::Value = serde_json::from_str(&json).unwrap();
    assert_eq!(summary["regions"].as_array().unwrap().len(), 12);
    assert_eq!(summary["documents"], longs(&store.join("paragraphs"), "pages", "doc").len());
}

#[test]
fn duplicates_of_the_corpus_are_those_of_the_research() {
    // The research's prototype cuts sentences at the character, and nigh at the word: so the shares
    // differ a little, most at 50%.
    for (number, wanted) in [("01", [0.259, 0.322, 0.392, 0.462]), ("11", [0.211, 0.278, 0.379, 0.455])] {
        let path = format!("week-{number}/warc");
        let Some(crawl) = corpus(&path, "duplicates_of_the_corpus_are_those_of_the_research") else { return };
        let folder = tempfile::tempdir().unwrap();
        let text = format!("[cluster]\nweek = \"{WEEK}\"\ninput = [\"{}\"]\n", crawl.display());
        let made = Made::with_job(&job(folder.path(), &text), &[]);
        let settings = ParagraphsSettings { least_characters: 450, parts: 50, ..ParagraphsSettings::default() };
        settings.run(&made.store(), &[]);
        let rows = rows_of(&made.store().join("paragraphs"), "summary", &["region", "near", "share"]);
        for ((near, wanted), most) in ["null", "0.9", "0.7", "0.5"].iter().zip(wanted).zip([0.003, 0.004, 0.003, 0.014])
        {
            let row = rows.iter().find(|row| row[0] == "all" && row[1] == *near).unwrap();
            let share: f64 = row[2].parse().unwrap();
            assert!((share - wanted).abs() < most, "week {number}, {near}: {share} instead of {wanted}");
        }
    }
}
