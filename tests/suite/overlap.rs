//! Pages and hosts that share chunks, against a twin that compares all pairs: on real pages, on the made web and on random pages.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Instant;

use arrow_array::{Array, BinaryArray, Float64Array, Int32Array, Int64Array, StringArray};
use nigh::records::{UrlHash, mix};
use nigh::state::Store;
use nigh::tables::{Scan, field, result_tables};

use crate::program::{Made, UnionFind, WEEK, bytes, data, each, files, job, longs, nigh, run, run_well, tables, texts};
use crate::web::{COLUMNS, Shape, Web};

/// Rows of a table, each with its values as text; in no particular order.
type Rows = BTreeSet<Vec<String>>;

/// What differs from the shipped job.
#[derive(Clone, Copy)]
struct Settings {
    content: bool,
    host: bool,
    thresholds: [u32; 3],
    method: &'static str,
    family: u64,
    list: bool,
}

impl Default for Settings {
    /// All pairs are listed.
    fn default() -> Settings {
        Settings { content: false, host: false, thresholds: [1, 15, 25], method: "prefix", family: 200, list: true }
    }
}

impl Settings {
    fn toml(&self) -> String {
        let Settings { content, host, thresholds, method, family, list } = self;
        let (cut, unit) = (if *content { "content" } else { "count" }, if *host { "host" } else { "document" });
        format!(
            "[overlap]\ncut = \"{cut}\"\nunit = \"{unit}\"\nthresholds = {thresholds:?}\nmethod = \"{method}\"\n\
             family = {family}\nlist-families = {list}\ncounters = \"4kB\"\n"
        )
    }

    /// Runs the job; gives the bytes of its tables.
    fn run(&self, store: &Path, flags: &[&str]) -> BTreeMap<String, Vec<u8>> {
        let folder = tempfile::tempdir().unwrap();
        let job = job(folder.path(), &self.toml());
        run_well(&[&["run", job.to_str().unwrap(), "-q", "--store", store.to_str().unwrap()], flags].concat());
        assert!(!store.join("_nigh/work").exists(), "nothing unfinished is left");
        tables(&store.join("overlap"))
    }
}

const CHUNKINGS: [&str; 3] = ["document", "four-lines", "two-lines"];
const REASONS: [&str; 3] = ["same-host", "same-machine", "other"];
const REPLICAS: [(&str, u64); 7] =
    [("0", 0), ("1", 1), ("2", 2), ("3-9", 9), ("10-99", 99), ("100-999", 999), ("1000 and more", u64::MAX)];

/// A page of a week, as its tables have it.
struct Page {
    doc: i64,
    text: Vec<u8>,
    lines: Vec<u32>,
    host: String,
    ip: String,
    bytes: i64,
    url: String,
    title: String,
}

/// The pages of a week that have chunks.
fn pages(week: &Path) -> Vec<Page> {
    let mut lines = Vec::new();
    each(week, "chunks", "lines", |array: &BinaryArray| {
        lines.extend(array.iter().map(|lines| {
            lines.unwrap().as_chunks::<4>().0.iter().map(|line| u32::from_le_bytes(*line)).collect::<Vec<_>>()
        }));
    });
    let text = |column| texts(week, "documents", column);
    let documents: BTreeMap<i64, usize> = longs(week, "documents", "doc").into_iter().zip(0..).collect();
    let (hosts, ips, urls, titles) = (text("host"), text("ip"), text("url"), text("title"));
    let sizes = longs(week, "documents", "bytes");
    let chunks = longs(week, "chunks", "doc").into_iter().zip(bytes(week, "chunks", "text")).zip(lines);
    let page = |((doc, text), lines): ((i64, Vec<u8>), Vec<u32>)| {
        let at = documents[&doc];
        let (host, ip, url, title) = (hosts[at].clone(), ips[at].clone(), urls[at].clone(), titles[at].clone());
        Page { doc, text, lines, host, ip, bytes: sizes[at], url, title }
    };
    let mut pages: Vec<Page> = chunks.map(page).collect();
    pages.sort_by_key(|page| page.doc);
    pages
}

/// The chunks of a page, as they are: not as hashes.
fn chunks(page: &Page, chunking: &str, content: bool) -> BTreeSet<Vec<u32>> {
    let length = match chunking {
        "document" => return BTreeSet::from([page.text.iter().map(|byte| u32::from(*byte)).collect()]),
        "four-lines" => 4,
        _ => 2,
    };
    let mut runs = BTreeSet::new();
    let mut run = Vec::new();
    for line in &page.lines {
        run.push(*line);
        let ends = if content {
            (*line as usize).is_multiple_of(length) || run.len() == 4 * length
        } else {
            run.len() == length
        };
        if ends {
            runs.insert(std::mem::take(&mut run));
        }
    }
    if !run.is_empty() {
        runs.insert(run);
    }
    runs
}

/// A page, or a host.
struct Unit<'a> {
    /// The order of units; unique.
    name: (u32, String, i64),
    pages: Vec<&'a Page>,
    chunks: BTreeSet<Vec<u32>>,
}

fn units<'a>(pages: &'a [Page], store: &Path, chunking: &str, settings: &Settings) -> Vec<Unit<'a>> {
    let shards = Store::at(store).manifest().unwrap().unwrap().method.shards;
    let mut units: BTreeMap<(u32, String, i64), Vec<&Page>> = BTreeMap::new();
    for page in pages {
        let name = match settings.host {
            true => (UrlHash::of(&page.host).shard(shards), page.host.clone(), 0),
            false => (0, String::new(), page.doc),
        };
        units.entry(name).or_default().push(page);
    }
    let unit = |(name, pages): (_, Vec<&'a Page>)| {
        let chunks = pages.iter().flat_map(|page| chunks(page, chunking, settings.content)).collect();
        Unit { name, pages, chunks }
    };
    units.into_iter().map(unit).collect()
}

/// Pairs of units with what they share, of all units: copies as well.
fn pairs(units: &[Unit], least: usize) -> BTreeMap<(usize, usize), usize> {
    let mut pairs = BTreeMap::new();
    for (a, one) in units.iter().enumerate() {
        for (b, other) in units.iter().enumerate().skip(a + 1) {
            let shared = one.chunks.intersection(&other.chunks).count();
            if shared >= least {
                pairs.insert((a, b), shared);
            }
        }
    }
    pairs
}

fn row(values: &[&dyn ToString]) -> Vec<String> {
    values.iter().map(|value| value.to_string()).collect()
}

fn class(replicas: u64) -> &'static str {
    REPLICAS.iter().find(|(_, most)| replicas <= *most).unwrap().0
}

/// The tables of the job by brute force, if all pairs are listed.
fn twin(store: &Path, date: &str, settings: &Settings) -> BTreeMap<&'static str, Rows> {
    let pages = pages(&crate::program::week(store, date));
    let mut tables: BTreeMap<&str, Rows> =
        result_tables("overlap").iter().map(|table| (table.name, Rows::new())).collect();
    let mut add = |table: &str, values: &[&dyn ToString]| {
        assert!(tables.get_mut(table).unwrap().insert(row(values)), "{table}: a row comes twice");
    };
    for (chunking, least) in CHUNKINGS.iter().zip(settings.thresholds) {
        let units = units(&pages, store, chunking, settings);
        let pairs = pairs(&units, least as usize);
        let centre = |unit: usize| {
            let of = &units[unit].pages[0].text;
            if settings.host { unit } else { units.iter().position(|unit| unit.pages[0].text == *of).unwrap() }
        };
        let centres: Vec<usize> = (0..units.len()).map(centre).collect();
        let mut replicas = vec![0u64; units.len()];
        let mut components = UnionFind::default();
        // Units of one text overlap however few chunks they have.
        for a in 0..units.len() {
            for b in a + 1..units.len() {
                if centres[a] == centres[b] || pairs.contains_key(&(a, b)) {
                    replicas[a] += 1;
                    replicas[b] += 1;
                    components.union(a as i64, b as i64);
                }
            }
        }
        for ((a, b), shared) in &pairs {
            let (mut a, mut b) = (*a, *b);
            if centres[a] != a || centres[b] != b || centres[a] == centres[b] {
                continue;
            }
            if settings.host && units[a].name.1 > units[b].name.1 {
                (a, b) = (b, a);
            }
            let containment = |unit: usize| *shared as f64 / units[unit].chunks.len() as f64;
            let shares = (containment(a), containment(b));
            if settings.host {
                let (a, b) = (&units[a].name.1, &units[b].name.1);
                add("host-overlap", &[chunking, a, b, shared, &shares.0, &shares.1]);
            } else {
                let (a, b) = (units[a].name.2, units[b].name.2);
                add("overlap", &[chunking, &a, &b, shared, &shares.0, &shares.1]);
            }
        }
        if *chunking == "document" && !settings.host {
            for (unit, centre) in centres.iter().enumerate() {
                if centres.iter().filter(|other| *other == centre).count() > 1 {
                    add("families", &[chunking, &units[*centre].name.2, &units[unit].name.2, &"null", &1, &1]);
                }
            }
        }
        let roots: Vec<usize> = (0..units.len()).map(|unit| components.find(unit as i64) as usize).collect();
        let members = |root: usize| (0..units.len()).filter(|unit| roots[*unit] == root).collect::<Vec<_>>();
        let sizes: Vec<u64> = roots.iter().map(|root| members(*root).len() as u64 - 1).collect();
        let share = |part: usize| match units.len() {
            0 => "null".to_owned(),
            all => (part as f64 / all as f64).to_string(),
        };
        for (name, _) in REPLICAS {
            let documents = replicas.iter().filter(|count| class(**count) == name).count();
            let by_cluster = sizes.iter().filter(|count| class(**count) == name).count();
            let published = match (settings.host, *chunking, name) {
                (false, "document", "0") => "0.64",
                (false, "document", "1") => "0.18",
                (false, "document", "10-99") => "0.05",
                (false, "two-lines", "0") => "0.52",
                _ => "null",
            };
            add("replicas", &[chunking, &name, &documents, &share(documents), &by_cluster, &published]);
        }
        let copies: Vec<usize> = (0..units.len()).filter(|unit| roots[*unit] != *unit).collect();
        let size = |unit: &usize| units[*unit].pages.iter().map(|page| page.bytes).sum::<i64>();
        let published = match (settings.host, *chunking) {
            (true, _) => "null",
            (_, "document") => "0.22",
            (_, "four-lines") => "0.29",
            _ => "0.33",
        };
        let saved = copies.iter().map(size).sum::<i64>();
        add("savings", &[chunking, &units.len(), &copies.len(), &share(copies.len()), &saved, &published]);
        for (number, name) in REASONS.iter().enumerate() {
            let reason = |unit: &&usize| {
                let (root, unit) = (&units[roots[**unit]], &units[**unit]);
                let first = smallest_address(root);
                if unit.pages[0].host == root.pages[0].host {
                    0
                } else if first.is_some_and(|first| unit.pages.iter().any(|page| page.ip == first)) {
                    1
                } else {
                    2
                }
            };
            add("reasons", &[chunking, name, &copies.iter().filter(|unit| reason(unit) == number).count()]);
        }
        let mut groups: Vec<(usize, Vec<usize>)> = (0..units.len()).map(|root| (root, members(root))).collect();
        groups.retain(|(_, members)| members.len() > 1);
        groups.sort_by_key(|(root, members)| (usize::MAX - members.len(), *root));
        for (rank, (_, members)) in groups.iter().take(20).enumerate() {
            let pages: Vec<&Page> = members.iter().flat_map(|unit| units[*unit].pages.iter().copied()).collect();
            let first = pages.iter().min_by_key(|page| page.doc).unwrap();
            let distinct = |of: fn(&Page) -> &str| {
                pages.iter().map(|page| of(page)).filter(|text| !text.is_empty()).collect::<BTreeSet<_>>().len()
            };
            let (hosts, machines) = (distinct(|page| &page.host), distinct(|page| &page.ip));
            add(
                "most",
                &[chunking, &(rank + 1), &pages.len(), &hosts, &machines, &first.title, &first.url, &first.doc],
            );
        }
    }
    tables
}

/// The address of a unit that stands for it: the first by its hash.
fn smallest_address(unit: &Unit) -> Option<String> {
    let addresses = unit.pages.iter().filter(|page| !page.ip.is_empty()).map(|page| page.ip.clone());
    addresses.min_by_key(|ip| nigh::records::checksum(ip.as_bytes()) as u64)
}

/// All rows of a table of the job.
fn rows(store: &Path, table: &str) -> Rows {
    let columns: Vec<&str> = {
        let described = result_tables("overlap").iter().find(|described| described.name == table).unwrap();
        (described.describe)().columns.iter().map(|column| column.name).collect()
    };
    let mut rows = Rows::new();
    for file in files(&store.join("overlap"), table) {
        let mut scan = Scan::open(&file, &columns).unwrap();
        while let Some(batch) = scan.batch().unwrap() {
            for at in 0..batch.num_rows() {
                let value = |column: &&str| {
                    if batch.column_by_name(column).unwrap().is_null(at) {
                        "null".to_owned()
                    } else if let Ok(texts) = field::<StringArray>(&batch, column) {
                        texts.value(at).to_owned()
                    } else if let Ok(longs) = field::<Int64Array>(&batch, column) {
                        longs.value(at).to_string()
                    } else if let Ok(ints) = field::<Int32Array>(&batch, column) {
                        ints.value(at).to_string()
                    } else {
                        field::<Float64Array>(&batch, column).unwrap().value(at).to_string()
                    }
                };
                assert!(rows.insert(columns.iter().map(value).collect()), "{table}: a row comes twice");
            }
        }
    }
    rows
}

/// Compares the tables of the last run, where all pairs were listed, with brute force. Returns the number of pairs.
fn assert_right(store: &Path, date: &str, settings: &Settings) -> usize {
    let expected = twin(store, date, settings);
    for (table, wanted) in &expected {
        let found = rows(store, table);
        let differ: Vec<_> = found.symmetric_difference(wanted).take(6).collect();
        assert!(differ.is_empty(), "{table}: {} and {} rows, {differ:?}", found.len(), wanted.len());
    }
    expected["overlap"].len() + expected["host-overlap"].len()
}

/// Checks that listed pairs and those of families are all pairs, each once, and that the other tables are as if all were listed.
fn assert_families_are_right(store: &Path, date: &str, settings: &Settings) -> usize {
    let expected = twin(store, date, settings);
    for table in ["replicas", "savings", "most", "reasons"] {
        assert_eq!(rows(store, table), expected[table], "{table}");
    }
    let (table, names) = if settings.host { ("host-overlap", 3) } else { ("overlap", 2) };
    let least = |chunking: &str| settings.thresholds[CHUNKINGS.iter().position(|name| *name == chunking).unwrap()];
    let mut families: BTreeMap<(String, String), Vec<Vec<String>>> = BTreeMap::new();
    let mut members = BTreeSet::new();
    for row in rows(store, "families") {
        if row[0] == "document" && !settings.host {
            assert!(expected["families"].contains(&row));
            continue;
        }
        assert!(members.insert((row[0].clone(), row[2].clone())), "a unit is in one family");
        families.entry((row[0].clone(), row[1].clone())).or_default().push(row);
    }
    let listed = rows(store, table);
    assert!(listed.is_subset(&expected[table]));
    let mut pairs: BTreeMap<Vec<String>, u32> =
        expected[table].iter().map(|row| (row[..3].to_vec(), row[3].parse().unwrap())).collect();
    listed.iter().for_each(|row| _ = pairs.remove(&row[..3]).unwrap());
    let mut implied = 0;
    for ((chunking, name), mut members) in families {
        assert!(members.len() as u64 >= settings.family.min(2));
        let number = |row: &Vec<String>| row[2].parse::<i64>().unwrap();
        assert_eq!(members.iter().map(number).min().unwrap().to_string(), name);
        members.sort_by_key(|row| (row[names].parse::<i64>().ok(), row[names].clone()));
        for (at, a) in members.iter().enumerate() {
            for b in &members[at + 1..] {
                let weight = |row: &Vec<String>, at: usize| row[at].parse::<u32>().unwrap();
                let at_least = weight(a, 4) + weight(b, 4) - weight(a, 5);
                let shared = pairs.remove(&vec![chunking.clone(), a[names].clone(), b[names].clone()]);
                let shared = shared.unwrap_or_else(|| panic!("{a:?} and {b:?} are no pair, or listed"));
                assert!(at_least >= least(&chunking) && at_least <= shared, "{a:?}, {b:?}: {shared}");
                implied += 1;
            }
        }
    }
    assert!(pairs.is_empty(), "{} pairs are neither listed nor of a family", pairs.len());
    implied
}

/// A store of random pages: some like one of three templates with lines left out, some with one text, some of few lines.
fn random_store(seed: u64, count: u64) -> Made {
    let folder = tempfile::tempdir().unwrap();
    let mut state = seed;
    let mut random = move |below: u64| {
        state = mix(state);
        state % below
    };
    let mut lines: Vec<String> = Vec::new();
    for number in 0..count {
        let (kind, host) = (random(5), random(9));
        let mut text: Vec<String> = Vec::new();
        if kind < 3 {
            let least = 40 + random(20);
            text.extend(
                (0..70)
                    .filter(|line| *line < least || random(10) > 0)
                    .map(|line| format!("template {kind} has line {line}")),
            );
        }
        // Lines of few pages, and of this one.
        let from = random(40);
        text.extend((from..from + random(30)).map(|line| format!("some pages say {line} of this")));
        text.extend((0..random(12)).map(|line| format!("only page {number} says {line}")));
        if random(6) == 0 {
            text = (0..60).map(|line| format!("copied text {} with line {line}", host % 2)).collect();
        }
        let ip = if host == 8 { serde_json::Value::Null } else { format!("10.0.0.{}", host % 5).into() };
        let url = format!("http://h{host}.example/page{number}");
        lines.push(serde_json::json!({"url": url, "text": text.join("\n"), "ip": ip}).to_string());
    }
    made_of(&folder, &(lines.join("\n") + "\n"), "[cluster.read.columns]\nip = \"ip\"\n")
}

/// A store of JSON Lines.
fn made_of(folder: &tempfile::TempDir, lines: &str, columns: &str) -> Made {
    let input = folder.path().join("pages.jsonl");
    std::fs::write(&input, lines).unwrap();
    let text =
        format!("[cluster]\nweek = \"{WEEK}\"\nallow-empty = true\ninput = [\"{}\"]\n{columns}", input.display());
    Made::with_job(&job(folder.path(), &text), &[])
}

#[test]
fn pairs_of_random_pages_are_those_of_brute_force() {
    for (seed, thresholds) in [(1, [1, 1, 2]), (2, [1, 2, 15]), (3, [1, 15, 25])] {
        let made = random_store(seed, 150);
        let store = made.store();
        for (content, host) in [(false, false), (true, false), (false, true), (true, true)] {
            let settings = Settings { content, host, thresholds, ..Settings::default() };
            let listed = settings.run(&store, &["--workers", "2"]);
            assert!(assert_right(&store, WEEK, &settings) > 20, "seed {seed}");
            for method in ["sort", "coarse"] {
                let other = Settings { method, ..settings }.run(&store, &["--workers", "2"]);
                assert!(other == listed, "{method} gives other tables than prefix, seed {seed}");
            }
            let families = Settings { family: 5, list: false, ..settings };
            families.run(&store, &["--workers", "2"]);
            let implied = assert_families_are_right(&store, WEEK, &families);
            assert!(implied > 0 || host, "seed {seed}");
        }
    }
}

#[test]
fn pairs_of_real_pages_and_of_the_made_web_are_those_of_brute_force() {
    let real = Made::new(&[]);
    let folder = tempfile::tempdir().unwrap();
    Web::of(&Shape::small()).week(0).write_jsonl(folder.path());
    let text =
        format!("[cluster]\nweek = \"{WEEK}\"\ninput = [\"{}/pages.jsonl\"]\n{COLUMNS}", folder.path().display());
    let web = Made::with_job(&job(folder.path(), &text), &[]);
    for made in [real, web] {
        let store = made.store();
        for (content, host) in [(false, false), (true, false), (false, true)] {
            let settings = Settings { content, host, ..Settings::default() };
            let listed = settings.run(&store, &[]);
            assert!(assert_right(&store, WEEK, &settings) > 0);
            assert!(Settings { method: "sort", ..settings }.run(&store, &[]) == listed);
        }
        let settings = Settings { thresholds: [1, 1, 2], list: false, family: 20, ..Settings::default() };
        settings.run(&store, &[]);
        assert!(assert_families_are_right(&store, WEEK, &settings) > 0);
    }
}

#[test]
fn workers_processes_and_memory_do_not_change_a_byte() {
    let made = random_store(7, 200);
    let store = made.store();
    let folder = tempfile::tempdir().unwrap();
    let little = folder.path().join("little.toml");
    std::fs::write(&little, "memory = \"64KiB\"\n").unwrap();
    for host in [false, true] {
        for (method, family) in [("prefix", 5), ("sort", 200), ("coarse", 200)] {
            let settings = Settings { host, thresholds: [1, 2, 2], method, family, list: false, ..Settings::default() };
            let one = settings.run(&store, &["--workers", "1"]);
            assert!(one.len() >= 7 && one.values().map(Vec::len).sum::<usize>() > 10_000);
            for flags in [
                &["--workers", "2"][..],
                &["--workers", "4"],
                &["--workers", "1", "--processes", "2"],
                &["--workers", "2", "--processes", "2"],
                &["--workers", "2", "--config", little.to_str().unwrap()],
            ] {
                assert!(settings.run(&store, flags) == one, "{method}, {flags:?}");
            }
        }
    }
}

#[test]
fn an_empty_week_and_one_page_have_tables_without_pairs() {
    let folder = tempfile::tempdir().unwrap();
    let page = "{\"url\": \"http://a.example/\", \"text\": \"one line\"}\n";
    let without_words = "{\"url\": \"http://a.example/\", \"text\": \"...\"}\n";
    for (lines, units) in [("", 0), (page, 1), (without_words, 0)] {
        let made = made_of(&folder, lines, "");
        let store = made.store();
        for host in [false, true] {
            for method in ["prefix", "sort", "coarse"] {
                let settings = Settings { host, method, ..Settings::default() };
                settings.run(&store, &["--workers", "2"]);
                assert_eq!(assert_right(&store, WEEK, &settings), 0);
                assert_eq!(longs(&store.join("overlap"), "savings", "documents"), [units; 3]);
                for table in result_tables("overlap") {
                    assert!(!files(&store.join("overlap"), table.name).is_empty(), "{} has a file", table.name);
                }
            }
        }
    }
}

#[test]
fn the_summary_has_the_published_figures_beside_ours() {
    let made = Made::new(&[]);
    let store = made.store();
    let arguments = ["run", "jobs/overlap.toml", "--store", store.to_str().unwrap()];
    let text = run_well(&arguments).stdout;
    for wanted in ["Overlap of week 2024-01-08", "four-lines", "22.0%", "64.0%", "same-host"] {
        assert!(text.contains(wanted), "{wanted}: {text}");
    }
    assert_eq!(run_well(&["show", store.to_str().unwrap(), "--job", "overlap"]).stdout, text);
    let json = run_well(&[&arguments[..], &["--json", "--week", WEEK]].concat()).stdout;
    let summary: serde_json::Value = serde_json::from_str(&json).unwrap();
    let four = &summary["chunkings"][1];
    assert_eq!(
        (&summary["first"], &four["chunking"], &four["saving"]["published"]),
        (&WEEK.into(), &"four-lines".into(), &0.29.into())
    );
    assert_eq!(four["pairs"], rows(&store, "overlap").iter().filter(|row| row[0] == "four-lines").count());
    let dry = run_well(&[&arguments[..], &["--dry-run"]].concat()).stdout;
    assert!(dry.contains("2024-01-08"), "{dry}");
}

#[test]
fn too_many_pairs_are_refused_with_the_reason() {
    let made = random_store(5, 150);
    let store = made.store();
    let settings = Settings { thresholds: [1, 2, 2], ..Settings::default() };
    let before = settings.run(&store, &[]);
    let folder = tempfile::tempdir().unwrap();
    for host in [false, true] {
        for method in ["prefix", "sort", "coarse"] {
            let text = format!("{}max-pairs = 5\n", Settings { method, host, ..settings }.toml());
            let path = job(folder.path(), &text);
            for processes in ["1", "2"] {
                let flags = ["--processes", processes, "--workers", "2", "--store", store.to_str().unwrap()];
                let ran = run(&[&["run", path.to_str().unwrap()][..], &flags].concat());
                assert_eq!(ran.code, Some(1), "{}", ran.stderr);
                for wanted in ["too many pairs", "allows 5", "http://h", "Raise `max-pairs`"] {
                    assert!(ran.stderr.contains(wanted), "{method}: {wanted}: {}", ran.stderr);
                }
            }
        }
    }
    assert!(tables(&store.join("overlap")) == before, "the former tables stay");
}

#[test]
fn a_store_without_chunks_says_what_to_run() {
    let folder = tempfile::tempdir().unwrap();
    let input = format!("{}/*.warc.gz", data("week-2024-01-08").display());
    let text = format!("[cluster]\nweek = \"{WEEK}\"\ninput = [\"{input}\"]\n[cluster.keep]\nchunks = false\n");
    let made = Made::with_job(&job(folder.path(), &text), &[]);
    let store = made.store();
    let store = store.to_str().unwrap();
    let ran = run(&["run", "jobs/overlap.toml", "--store", store]);
    assert_eq!(ran.code, Some(1), "{}", ran.stderr);
    for wanted in ["week 2024-01-08", "has no chunks", "nigh run jobs/chunks.toml", "--week 2024-01-08 --input"] {
        assert!(ran.stderr.contains(wanted), "{wanted}: {}", ran.stderr);
    }
    assert!(!Path::new(store).join("overlap").exists());
    run_well(&["run", "jobs/chunks.toml", "-q", "--store", store, "--week", WEEK, "--input", &input]);
    Settings::default().run(Path::new(store), &[]);
    assert!(assert_right(Path::new(store), WEEK, &Settings::default()) > 0);
}

#[test]
fn a_deletion_removes_the_tables_because_they_name_pages() {
    let made = random_store(9, 60);
    let store: PathBuf = made.store();
    Settings::default().run(&store, &[]);
    assert!(store.join("overlap/overlap").exists());
    run_well(&["delete", "--store", store.to_str().unwrap(), "--host", "h1.example"]);
    assert!(!store.join("overlap").exists() && tables(&store.join("overlap")).is_empty());
    Settings::default().run(&store, &[]);
    assert_right(&store, WEEK, &Settings::default());
}

#[test]
fn a_run_killed_at_any_moment_leaves_the_former_tables_or_the_new_ones() {
    let made = random_store(11, 150);
    let store = made.store();
    let former = Settings::default();
    let begun = Instant::now();
    let new = Settings { thresholds: [1, 2, 2], ..former }.run(&store, &["--workers", "2"]);
    let whole = begun.elapsed();
    let before = former.run(&store, &[]);
    assert!(before != new);
    let folder = tempfile::tempdir().unwrap();
    let path = job(folder.path(), &Settings { thresholds: [1, 2, 2], ..former }.toml());
    for (round, processes) in (0..12).zip(["1", "2"].into_iter().cycle()) {
        let flags = ["-q", "--workers", "2", "--processes", processes, "--store", store.to_str().unwrap()];
        let mut child = nigh(&[&["run", path.to_str().unwrap()][..], &flags].concat())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        std::thread::sleep(whole * round / 10);
        child.kill().unwrap();
        child.wait().unwrap();
        assert!([&before, &new].contains(&&tables(&store.join("overlap"))), "round {round}");
    }
    assert!(former.run(&store, &[]) == before);
}

#[test]
fn mistakes_in_the_job_are_shown() {
    let folder = tempfile::tempdir().unwrap();
    for (text, wanted) in [
        ("[overlap]\nthresholds = [1]\n", "one for each of the 3 chunkings"),
        ("[overlap]\nunit = \"site\"\n", "`host`"),
        ("[overlap]\nlast = \"2024-01-08\"\n", "unknown field `last`"),
        ("[overlap]\n", "no store"),
    ] {
        let path = job(folder.path(), text);
        let ran = run(&["run", path.to_str().unwrap()]);
        assert_eq!(ran.code, Some(2), "{}", ran.stderr);
        assert!(ran.stderr.contains(wanted), "{wanted}: {}", ran.stderr);
    }
    let ran = run(&["run", "jobs/overlap.toml", "--store", "/nowhere/store", "--input", "x"]);
    assert_eq!((ran.code, ran.stderr.contains("--input")), (Some(2), true), "{}", ran.stderr);
}
