//! The overlap job by brute force: all pairs of pages, or of hosts, and the tables that follow from
//! them.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use arrow_array::BinaryArray;
use nigh::config::{Chunking, Cut};
use nigh::features::chunk_set;
use nigh::records::{DocId, KeyHash};
use nigh::state::Store;
use nigh::tables::result_tables;

use crate::program::{PlainUnionFind, Rows, bytes, each, job, longs, rows_of, run_well, tables, texts};

/// What differs from the shipped job.
#[derive(Clone, Copy)]
pub struct OverlapSettings {
    pub content: bool,
    pub host: bool,
    pub thresholds: [u32; 3],
    pub method: &'static str,
    pub family: u64,
    pub list: bool,
    pub mode: &'static str,
    pub hashes: u32,
    pub pilot: f64,
}

impl Default for OverlapSettings {
    /// All pairs are listed.
    fn default() -> OverlapSettings {
        let (thresholds, method, mode) = ([1, 15, 25], "prefix", "full");
        let (content, host, family, list, hashes, pilot) = (false, false, 200, true, 1, 0.0);
        OverlapSettings { content, host, thresholds, method, family, list, mode, hashes, pilot }
    }
}

impl OverlapSettings {
    pub fn toml(&self) -> String {
        let OverlapSettings { content, host, thresholds, method, family, list, mode, hashes, pilot } = self;
        let (cut, unit) = (if *content { "content" } else { "count" }, if *host { "host" } else { "document" });
        format!(
            "[overlap]\ncut = \"{cut}\"\nunit = \"{unit}\"\nthresholds = {thresholds:?}\nmethod = \"{method}\"\n\
             family = {family}\nlist-families = {list}\nmode = \"{mode}\"\ncounters = \"4kB\"\n\
             hashes = {hashes}\npilot = {pilot:?}\n"
        )
    }

    /// Runs the job; gives the bytes of its tables.
    pub fn run(&self, store: &Path, flags: &[&str]) -> BTreeMap<String, Vec<u8>> {
        let folder = tempfile::tempdir().unwrap();
        let job = job(folder.path(), &self.toml());
        run_well(&[&["run", job.to_str().unwrap(), "-q", "--store", store.to_str().unwrap()], flags].concat());
        assert!(!store.join("_nigh/work").exists(), "nothing unfinished is left");
        tables(&store.join("overlap"))
    }
}

pub const CHUNKINGS: [&str; 3] = ["document", "four-lines", "two-lines"];
const REASONS: [&str; 3] = ["same-host", "same-machine", "other"];
const REPLICAS: [(&str, u64); 7] =
    [("0", 0), ("1", 1), ("2", 2), ("3-9", 9), ("10-99", 99), ("100-999", 999), ("1000 and more", u64::MAX)];

/// A page of a week, as its tables have it.
pub struct ChunkedPage {
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
pub fn pages(week: &Path) -> Vec<ChunkedPage> {
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
        ChunkedPage { doc, text, lines, host, ip, bytes: sizes[at], url, title }
    };
    let mut pages: Vec<ChunkedPage> = chunks.map(page).collect();
    pages.sort_by_key(|page| page.doc);
    pages
}

/// Of pages with one text the first one.
pub fn centres(pages: Vec<ChunkedPage>) -> Vec<ChunkedPage> {
    let mut texts = BTreeSet::new();
    pages.into_iter().filter(|page| texts.insert(page.text.clone())).collect()
}

/// The chunks of a page, as they are: not as hashes.
pub fn chunks(page: &ChunkedPage, chunking: &str, content: bool) -> BTreeSet<Vec<u32>> {
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
pub struct ChunkedUnit<'a> {
    /// The order of units; unique.
    name: (u32, String, i64),
    pages: Vec<&'a ChunkedPage>,
    chunks: BTreeSet<Vec<u32>>,
}

impl ChunkedUnit<'_> {
    pub fn chunk_count(&self) -> usize {
        self.chunks.len()
    }
}

pub fn units<'a>(
    pages: &'a [ChunkedPage],
    store: &Path,
    chunking: &str,
    settings: &OverlapSettings,
) -> Vec<ChunkedUnit<'a>> {
    let shards = Store::at(store).manifest().unwrap().unwrap().method.shards;
    let mut units: BTreeMap<(u32, String, i64), Vec<&ChunkedPage>> = BTreeMap::new();
    for page in pages {
        let name = match settings.host {
            true => (KeyHash::of(&page.host).shard(shards), page.host.clone(), 0),
            false => (0, String::new(), page.doc),
        };
        units.entry(name).or_default().push(page);
    }
    let unit = |(name, pages): (_, Vec<&'a ChunkedPage>)| {
        let chunks = pages.iter().flat_map(|page| chunks(page, chunking, settings.content)).collect();
        ChunkedUnit { name, pages, chunks }
    };
    units.into_iter().map(unit).collect()
}

/// Pairs of units with what they share, of all units: copies as well.
pub fn pairs(units: &[ChunkedUnit], least: usize) -> BTreeMap<(usize, usize), usize> {
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

pub fn row(values: &[&dyn ToString]) -> Vec<String> {
    values.iter().map(|value| value.to_string()).collect()
}

pub fn class(replicas: u64) -> &'static str {
    REPLICAS.iter().find(|(_, most)| replicas <= *most).unwrap().0
}

/// The tables of the job by brute force, if all pairs are listed.
pub fn twin(store: &Path, date: &str, settings: &OverlapSettings) -> BTreeMap<&'static str, Rows> {
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
        let mut components = PlainUnionFind::default();
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
        for unit in (0..units.len()).filter(|unit| sizes[*unit] > 0) {
            let number = |unit: usize| if settings.host { host_number(&units, unit) } else { units[unit].name.2 };
            let host = if settings.host { &units[unit].name.1 } else { "null" };
            add("components", &[chunking, &number(roots[unit]), &number(unit), &host]);
        }
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
            let pages: Vec<&ChunkedPage> = members.iter().flat_map(|unit| units[*unit].pages.iter().copied()).collect();
            let first = pages.iter().min_by_key(|page| page.doc).unwrap();
            let distinct = |of: fn(&ChunkedPage) -> &str| {
                pages.iter().map(|page| of(page)).filter(|text| !text.is_empty()).collect::<BTreeSet<_>>().len()
            };
            let (hosts, machines) = (distinct(|page| &page.host), machines(&pages));
            add(
                "most",
                &[chunking, &(rank + 1), &pages.len(), &hosts, &machines, &first.title, &first.url, &first.doc],
            );
        }
    }
    tables
}

/// The machines of pages: sets of hosts, put together as long as two have an address in common.
fn machines(pages: &[&ChunkedPage]) -> usize {
    let with_address = pages.iter().filter(|page| !page.ip.is_empty());
    let mut addresses: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
    with_address.for_each(|page| _ = addresses.entry(&page.host).or_default().insert(&page.ip));
    let mut machines: Vec<BTreeSet<&str>> = Vec::new();
    for mut machine in addresses.into_values() {
        while let Some(other) = machines.iter().position(|other| !other.is_disjoint(&machine)) {
            machine.append(&mut machines.remove(other));
        }
        machines.push(machine);
    }
    machines.len()
}

/// The id that nigh gives a host: its shard, and its place among the hosts of the shard in the
/// order of the alphabet.
fn host_number(units: &[ChunkedUnit], host: usize) -> i64 {
    let shard = units[host].name.0;
    DocId::new(shard, units[..host].iter().filter(|unit| unit.name.0 == shard).count() as u64).to_table()
}

/// The address of a unit that stands for it: the first by its hash.
pub fn smallest_address(unit: &ChunkedUnit) -> Option<String> {
    let addresses = unit.pages.iter().filter(|page| !page.ip.is_empty()).map(|page| page.ip.clone());
    addresses.min_by_key(|ip| nigh::records::checksum(ip.as_bytes()) as u64)
}

/// All rows of a table of the job.
pub fn rows(store: &Path, table: &str) -> Rows {
    let columns: Vec<&str> = {
        let described = result_tables("overlap").iter().find(|described| described.name == table).unwrap();
        described.spec.columns.iter().map(|column| column.name).collect()
    };
    let all = rows_of(&store.join("overlap"), table, &columns);
    let (count, rows) = (all.len(), Rows::from_iter(all));
    assert_eq!(rows.len(), count, "{table}: a row comes twice");
    rows
}

/// Compares the tables of the last run, where all pairs were listed, with brute force. Returns the
/// number of pairs.
pub fn assert_right(store: &Path, date: &str, settings: &OverlapSettings) -> usize {
    let expected = twin(store, date, settings);
    for (table, wanted) in &expected {
        let found = rows(store, table);
        let differ: Vec<_> = found.symmetric_difference(wanted).take(6).collect();
        assert!(differ.is_empty(), "{table}: {} and {} rows, {differ:?}", found.len(), wanted.len());
    }
    expected["overlap"].len() + expected["host-overlap"].len()
}

/// Checks that listed pairs and those of families are all pairs, each once, and that the other
/// tables are as if all were listed.
pub fn assert_families_are_right(store: &Path, date: &str, settings: &OverlapSettings) -> usize {
    let expected = twin(store, date, settings);
    for table in ["components", "replicas", "savings", "most", "reasons"] {
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
    if !settings.host {
        assert_collections_are_right(store, date, settings);
    }
    implied
}

/// Checks that each family has one collection, of which each member has as many chunks as the table
/// says.
fn assert_collections_are_right(store: &Path, date: &str, settings: &OverlapSettings) {
    let pages: BTreeMap<String, ChunkedPage> =
        pages(&crate::program::week(store, date)).into_iter().map(|page| (page.doc.to_string(), page)).collect();
    let mut collections: BTreeMap<(String, String), BTreeSet<u64>> = BTreeMap::new();
    for row in rows(store, "family-chunks") {
        let chunk = row[2].parse::<i64>().unwrap() as u64;
        collections.entry((row[0].clone(), row[1].clone())).or_default().insert(chunk);
    }
    let mut of_families = BTreeSet::new();
    for row in rows(store, "families").into_iter().filter(|row| row[0] != "document") {
        let page = &pages[&row[2]];
        let lines: Vec<u8> = page.lines.iter().flat_map(|line| line.to_le_bytes()).collect();
        let chunking = if row[0] == "four-lines" { Chunking::FourLines } else { Chunking::TwoLines };
        let (cut, mut chunks) = (if settings.content { Cut::Content } else { Cut::Count }, Vec::new());
        chunk_set(chunking, cut, &page.text, &lines, &mut chunks);
        let family = (row[0].clone(), row[1].clone());
        let collection = &collections[&family];
        let of_page = chunks.iter().filter(|chunk| collection.contains(chunk)).count();
        assert_eq!([of_page, collection.len()].map(|count| count.to_string()), [row[4].clone(), row[5].clone()]);
        of_families.insert(family);
    }
    assert!(of_families.iter().eq(collections.keys()));
}
