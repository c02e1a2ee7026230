//! The evolution of clusters against a twin that goes over URLs one by one, on stores with random
//! histories.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Instant;

use arrow_array::{Array, Date32Array, Float64Array, Int32Array, Int64Array, StringArray};
use nigh::config::Method;
use nigh::records::{DocId, KeyHash, Week, mix};
use nigh::state::{
    CommittedWeek, InputKey, Manifest, Piece, ReadingCounts, Segment, Store, TablePart, WeekFiles, WeekJournal,
    WholeWeek,
};
use nigh::tables::{ClusterRow, DocumentRow, FeatureRow, Scan, Table, UrlRow, Writer, field};

use crate::program::{Made, bytes, features, job, longs, nigh, run, run_well, tables, texts};

/// Words that name a size class, and the largest size of each.
const CLASSES: [(u64, &str); 8] = [
    (0, "0"),
    (1, "1"),
    (10, "2-10"),
    (100, "11-100"),
    (1_000, "101-1000"),
    (10_000, "1001-10000"),
    (100_000, "10001-100000"),
    (u64::MAX, "above 100000"),
];

fn class(size: u64) -> &'static str {
    CLASSES.iter().find(|(top, _)| size <= *top).unwrap().1
}

/// A row of any of the tables: its words and whole numbers as text, and its fractions.
type EvolutionRow = (Vec<String>, Vec<Option<f64>>);

/// What the job's tables should hold, by table.
type ExpectedTables = BTreeMap<&'static str, Vec<EvolutionRow>>;

/// One page of a week.
struct EvolvingPage {
    host: String,
    root: i64,
    checksum: Vec<u8>,
    features: Vec<u16>,
}

/// A week of a store, as its tables have it.
struct WeekSeen {
    week: String,
    pages: BTreeMap<i64, EvolvingPage>,
    /// All URLs first seen in this week or before.
    known: BTreeSet<i64>,
}

impl WeekSeen {
    /// The URLs of the cluster of a known URL.
    fn cluster(&self, doc: i64) -> BTreeSet<i64> {
        let root = |doc: &i64| self.pages.get(doc).map(|page| page.root);
        self.known.iter().filter(|other| root(other) == root(&doc)).copied().collect()
    }
}

/// Reads the committed weeks of a store, from its url tables and week by week.
fn seen(store: &Path) -> Vec<WeekSeen> {
    let manifest = Store::at(store).manifest().unwrap().unwrap();
    let mut known = BTreeSet::new();
    let read = |committed: &CommittedWeek| {
        let folder = crate::program::week(store, &committed.week.to_string());
        known.extend(longs(&folder, "urls", "doc"));
        let checksums: BTreeMap<i64, Vec<u8>> =
            longs(&folder, "documents", "doc").into_iter().zip(bytes(&folder, "documents", "checksum")).collect();
        let mut features = features(&folder);
        let clusters = longs(&folder, "clusters", "doc").into_iter();
        let clusters = clusters.zip(longs(&folder, "clusters", "similar_root"));
        let pages = clusters.zip(texts(&folder, "clusters", "host")).map(|((doc, root), host)| {
            let features = features.remove(&doc).unwrap_or_default();
            (doc, EvolvingPage { host, root, checksum: checksums[&doc].clone(), features })
        });
        WeekSeen { week: committed.week.to_string(), pages: pages.collect(), known: known.clone() }
    };
    manifest.weeks.iter().map(read).collect()
}

fn mean(all: &[f64]) -> Option<f64> {
    (!all.is_empty()).then(|| all.iter().sum::<f64>() / all.len() as f64)
}

fn row(words: &[&dyn ToString], fractions: &[Option<f64>]) -> EvolutionRow {
    (words.iter().map(|word| word.to_string()).collect(), fractions.to_vec())
}

/// The tables of the evolution job by brute force, from the tables of any store; `amounts` is the
/// number of features of a page and two.
fn twin(weeks: &[WeekSeen], amounts: usize) -> ExpectedTables {
    let pairs = DownloadPairs::of(weeks);
    ExpectedTables::from([
        ("retention", retention(weeks)),
        ("host-changes", host_changes(&weeks[0], &weeks[weeks.len() - 1])),
        ("amounts", change_amounts(&pairs, amounts)),
        ("change-classes", change_classes(&pairs, amounts - 2)),
        ("births", weeks.windows(2).flat_map(|two| births(&two[0], &two[1])).collect()),
        ("deaths", weeks.windows(2).flat_map(|two| deaths(&two[0], &two[1])).collect()),
    ])
}

/// The classes of clusters that have pages.
fn classes_with_pages() -> impl Iterator<Item = &'static str> {
    CLASSES[1..].iter().map(|(_, name)| *name)
}

/// How the clusters of the first week keep together (Fig. 4, 5 and 7).
fn retention(weeks: &[WeekSeen]) -> Vec<EvolutionRow> {
    weeks.iter().flat_map(|week| retention_in(&weeks[0], week)).collect()
}

/// The means of a week: of every URL of the first week, its cluster there against its cluster in
/// this week.
fn retention_in(first: &WeekSeen, week: &WeekSeen) -> Vec<EvolutionRow> {
    // Clusters as sets, once each: by root. A URL without a page in the week has no root there: it
    // is in the cluster of what could not be downloaded.
    let mut first_clusters: BTreeMap<i64, BTreeSet<i64>> = BTreeMap::new();
    let mut clusters: BTreeMap<Option<i64>, BTreeSet<i64>> = BTreeMap::new();
    let mut shares_of_class: BTreeMap<&str, [Vec<f64>; 3]> = BTreeMap::new();
    for (doc, page) in &first.pages {
        let root = week.pages.get(doc).map(|page| page.root);
        let was = &*first_clusters.entry(page.root).or_insert_with(|| first.cluster(*doc));
        let is = &*clusters.entry(root).or_insert_with(|| week.cluster(*doc));
        let common = was.intersection(is).count() as f64;
        let [retention, similarity, reverse] = shares_of_class.entry(class(was.len() as u64)).or_default();
        retention.push(common / was.len() as f64);
        similarity.push(common / was.union(is).count() as f64);
        reverse.push(common / is.len() as f64);
    }
    let row_of = |class| {
        let shares = shares_of_class.get(class).cloned().unwrap_or_default();
        row(&[&week.week, &class, &shares[0].len()], &shares.each_ref().map(|shares| mean(shares)))
    };
    classes_with_pages().map(row_of).collect()
}

/// Hosts by the change of their number of clusters (Fig. 6).
fn host_changes(first: &WeekSeen, last: &WeekSeen) -> Vec<EvolutionRow> {
    let clusters_of_hosts = |week: &WeekSeen| {
        let mut roots: BTreeMap<String, BTreeSet<i64>> = BTreeMap::new();
        for page in week.pages.values() {
            roots.entry(page.host.clone()).or_default().insert(page.root);
        }
        roots.into_iter().map(|(host, roots)| (host, roots.len() as i64)).collect::<BTreeMap<_, _>>()
    };
    let (was, is) = (clusters_of_hosts(first), clusters_of_hosts(last));
    let clusters = |of: &BTreeMap<String, i64>, host| of.get(host).copied().unwrap_or_default();
    let mut hosts_of_change: BTreeMap<i64, u64> = BTreeMap::new();
    for host in was.keys().chain(is.keys()).collect::<BTreeSet<_>>() {
        *hosts_of_change.entry(clusters(&is, host) - clusters(&was, host)).or_default() += 1;
    }
    hosts_of_change.iter().map(|(change, hosts)| row(&[change, hosts], &[])).collect()
}

/// Pairs of successive downloads of a URL.
struct DownloadPairs {
    /// How many there are, by equal features (`None` where the bytes are equal) and the class of
    /// the URL's cluster at its first download.
    counts: BTreeMap<(Option<usize>, &'static str), usize>,
}

impl DownloadPairs {
    fn of(weeks: &[WeekSeen]) -> DownloadPairs {
        let mut counts = BTreeMap::new();
        for doc in &weeks[weeks.len() - 1].known {
            let downloads: Vec<&WeekSeen> = weeks.iter().filter(|week| week.pages.contains_key(doc)).collect();
            for two in downloads.windows(2) {
                let (earlier, later) = (&two[0].pages[doc], &two[1].pages[doc]);
                let equal = earlier.features.iter().zip(&later.features).filter(|(a, b)| a == b).count();
                let amount = (earlier.checksum != later.checksum).then_some(equal);
                let root = downloads[0].pages[doc].root;
                let size = downloads[0].pages.values().filter(|page| page.root == root).count();
                *counts.entry((amount, class(size as u64))).or_default() += 1;
            }
        }
        DownloadPairs { counts }
    }

    /// The pairs of the chosen amounts and classes, of pages with so many features. Equal bytes are
    /// one amount more.
    fn count(&self, features: usize, chosen: impl Fn(usize, &str) -> bool) -> usize {
        let amount = |equal: &Option<usize>| equal.unwrap_or(features + 1);
        self.counts.iter().filter(|((equal, class), _)| chosen(amount(equal), class)).map(|(_, pairs)| pairs).sum()
    }
}

fn share(part: usize, all: usize) -> Option<f64> {
    (all > 0).then(|| part as f64 / all as f64)
}

/// Pairs by change amount and class (Fig. 8 and 9).
fn change_amounts(pairs: &DownloadPairs, amounts: usize) -> Vec<EvolutionRow> {
    let count = |chosen: &dyn Fn(usize, &str) -> bool| pairs.count(amounts - 2, chosen);
    let share_of_class =
        |amount: usize, class: &str| share(count(&|a, c| a == amount && c == class), count(&|a, _| a == amount));
    let mut rows = Vec::new();
    for amount in 0..amounts {
        for class in classes_with_pages() {
            let all = (0..amounts).filter_map(|amount| share_of_class(amount, class));
            let mean = all.sum::<f64>() / amounts as f64;
            let share = share_of_class(amount, class);
            let relative = share.filter(|_| mean > 0.0).map(|share| share / mean);
            let pairs = count(&|a, c| a == amount && c == class);
            rows.push(row(&[&amount, &class, &pairs], &[share, relative]));
        }
    }
    rows
}

/// The changes of each class (Fig. 10): amounts in six ranges, the inner three of a third of the
/// features each.
fn change_classes(pairs: &DownloadPairs, features: usize) -> Vec<EvolutionRow> {
    let third = features / 3;
    let changes = [
        ("complete", 0..1),
        ("large", 1..third + 1),
        ("medium", third + 1..2 * third + 1),
        ("small", 2 * third + 1..features),
        ("no-text-change", features..features + 1),
        ("no-change", features + 1..features + 2),
    ];
    let mut rows = Vec::new();
    for class in classes_with_pages() {
        for (change, range) in &changes {
            let of_change = pairs.count(features, |a, c| range.contains(&a) && c == class);
            let share = share(of_change, pairs.count(features, |_, c| c == class));
            rows.push(row(&[&class, change, &of_change], &[share]));
        }
    }
    rows
}

/// URLs first seen in a week, by how many URLs known before are in their cluster.
fn births(before: &WeekSeen, week: &WeekSeen) -> Vec<EvolutionRow> {
    let born = week.pages.keys().filter(|doc| !before.known.contains(doc));
    let others = born.map(|doc| week.cluster(*doc).intersection(&before.known).count());
    rows_of_classes(&week.week, &CLASSES, others)
}

/// URLs with a page in the week before and none in this one, by the size of the cluster that they
/// leave.
fn deaths(before: &WeekSeen, week: &WeekSeen) -> Vec<EvolutionRow> {
    let gone = before.pages.keys().filter(|doc| !week.pages.contains_key(doc));
    rows_of_classes(&week.week, &CLASSES[1..], gone.map(|doc| before.cluster(*doc).len()))
}

/// A row for each class of a week: how many of the sizes are in it.
fn rows_of_classes(week: &str, classes: &[(u64, &str)], sizes: impl Iterator<Item = usize>) -> Vec<EvolutionRow> {
    let mut urls_of_class: BTreeMap<&str, u64> = BTreeMap::new();
    sizes.for_each(|size| *urls_of_class.entry(class(size as u64)).or_default() += 1);
    let count = |class: &str| urls_of_class.get(class).copied().unwrap_or_default();
    classes.iter().map(|(_, class)| row(&[&week, class, &count(class)], &[])).collect()
}

/// Compares every table that the job made of a store with its twin: of all its weeks, or of some.
pub fn assert_evolution_is_right(store: &Path, weeks: std::ops::Range<usize>) {
    let manifest = Store::at(store).manifest().unwrap().unwrap();
    let all = seen(store);
    let expected = twin(&all[weeks], manifest.method.features + 2);
    let found: BTreeSet<String> = tables(&store.join("evolution")).into_keys().collect();
    let wanted: BTreeSet<String> = expected.keys().map(|table| format!("{table}/00000.parquet")).collect();
    assert_eq!(found, wanted);
    for (table, wanted) in expected {
        let found = rows(&crate::program::files(&store.join("evolution"), table)[0]);
        assert_eq!(found.len(), wanted.len(), "{table}");
        for (found, wanted) in found.iter().zip(&wanted) {
            assert_eq!(found.0, wanted.0, "{table}");
            assert_eq!(found.1.len(), wanted.1.len(), "{table}");
            for (a, b) in found.1.iter().zip(&wanted.1) {
                let close = match (a, b) {
                    (Some(a), Some(b)) => (a - b).abs() < 1e-12,
                    (a, b) => a == b,
                };
                assert!(close, "{table}: {found:?} is not {wanted:?}");
            }
            if table == "retention" {
                assert!(found.1[1] <= found.1[0], "the similarity is never above the retention: {found:?}");
                let singletons = found.0[1] == "1" && found.0[2] != "0";
                assert!(!singletons || found.1[0] == Some(1.0), "singletons retain themselves: {found:?}");
            }
        }
    }
}

/// All rows of a file: columns of fractions apart from the others, in the order of columns.
fn rows(path: &Path) -> Vec<EvolutionRow> {
    let mut columns = vec!["week", "change", "amount", "class", "documents", "hosts", "pairs"];
    columns.extend(["retention", "similarity", "reverse", "share", "relative"]);
    columns.retain(|column| Scan::open(path, &[*column]).is_ok());
    // The twin has the columns as the tables do; the class comes before the change in one of them.
    if columns.starts_with(&["change", "class"]) {
        columns.swap(0, 1);
    }
    let mut rows = Vec::new();
    let mut scan = Scan::open(path, &columns).unwrap();
    while let Some(batch) = scan.batch().unwrap() {
        for at in 0..batch.num_rows() {
            let mut row = EvolutionRow::default();
            for column in &columns {
                if let Ok(texts) = field::<StringArray>(&batch, column) {
                    row.0.push(texts.value(at).to_owned());
                } else if let Ok(dates) = field::<Date32Array>(&batch, column) {
                    row.0.push(dates.value_as_date(at).unwrap().to_string());
                } else if let Ok(longs) = field::<Int64Array>(&batch, column) {
                    row.0.push(longs.value(at).to_string());
                } else if let Ok(ints) = field::<Int32Array>(&batch, column) {
                    row.0.push(ints.value(at).to_string());
                } else {
                    let doubles: &Float64Array = field(&batch, column).unwrap();
                    row.1.push((!doubles.is_null(at)).then(|| doubles.value(at)));
                }
            }
            rows.push(row);
        }
    }
    rows
}

/// A store whose tables are written here: each week's pages are in clusters that are drawn, not
/// found.
pub struct WrittenStore {
    folder: tempfile::TempDir,
    method: Method,
}

/// What is drawn of a URL.
#[derive(Clone)]
struct Url {
    doc: DocId,
    url: String,
    host: String,
    family: u64,
    features: Vec<u16>,
    version: u64,
}

impl WrittenStore {
    /// So many weeks from a seed: URLs are born, fail and come back, change, and move between
    /// clusters.
    pub fn new(seed: u64, weeks: usize) -> WrittenStore {
        eprintln!("seed {seed}, {weeks} weeks");
        let mut state = seed;
        let mut random = move |below: u64| {
            state = mix(state);
            state % below
        };
        let method = Method { shards: 8, features: 12, ..Method::default() };
        let store = WrittenStore { folder: tempfile::tempdir().unwrap(), method };
        let mut manifest = Manifest::new(&store.method).next().unwrap();
        let mut urls: Vec<Url> = Vec::new();
        let mut next_rows = vec![0; store.method.shards as usize];
        for at in 0..weeks {
            let week: Week = format!("2024-01-{:02}", 1 + 7 * at).parse().unwrap();
            let born = urls.len();
            for _ in 0..if at == 0 { 150 } else { random(40) } {
                let number = urls.len() as u64;
                let host = format!("h{}.example", random(20));
                let url = format!("http://{host}/{number}");
                // The last shard never has a page.
                let shard = random(u64::from(store.method.shards) - 1) as u32;
                let doc = DocId::new(shard, next_rows[shard as usize]);
                next_rows[shard as usize] += 1;
                let features = (0..store.method.features).map(|_| random(4) as u16).collect();
                urls.push(Url { doc, url, host, family: family(&mut random), features, version: 0 });
            }
            for url in &mut urls[..born] {
                if random(6) == 0 {
                    url.family = family(&mut random);
                }
                // Most pages stay as they are; some change in markup only, some in some features or
                // in all.
                url.version += random(2);
                for _ in 0..[0, 0, 1, 5, 40][random(5) as usize] {
                    let place = random(url.features.len() as u64) as usize;
                    url.features[place] = random(1000) as u16;
                }
            }
            // Pages first seen in the week are there; others fail now and then, in some weeks all
            // together.
            let fails = [3, 10, 1][random(3) as usize].max(1 + at as u64 % 2);
            let pages: Vec<Url> = urls
                .iter()
                .enumerate()
                .filter(|(number, _)| *number >= born || random(fails + 1) > 0)
                .map(|(_, url)| url.clone())
                .collect();
            let committed = store.write(week, &pages, &urls[born..], &mut random);
            manifest.weeks.push(committed);
        }
        manifest.write(&store.path().join("_nigh/manifest.json")).unwrap();
        store
    }

    pub fn path(&self) -> PathBuf {
        self.folder.path().join("store")
    }

    /// Writes a week: its pages, in two or three waves that interleave.
    fn write(&self, week: Week, pages: &[Url], born: &[Url], random: &mut impl FnMut(u64) -> u64) -> CommittedWeek {
        let store = Store::at(&self.path());
        let mut files = WeekFiles::new();
        let mut path = |table: &str, name: String, rows: usize| {
            let parts = files.entry(table.to_owned()).or_default();
            let file = format!("nigh-00001-{:05}.parquet", parts.len());
            parts.push(TablePart { file: file.clone(), bytes: 0, pieces: vec![Piece(name, rows as u64)] });
            store.table(table, week).join(file)
        };
        let mut families: BTreeMap<u64, Vec<DocId>> = BTreeMap::new();
        pages.iter().for_each(|page| families.entry(page.family).or_default().push(page.doc));
        families.values_mut().for_each(|docs| docs.sort());
        let waves = 2 + random(2);
        let mut segments = Vec::new();
        let mut dealt: BTreeMap<(u64, u32), Vec<&Url>> = BTreeMap::new();
        for page in pages {
            dealt.entry((random(waves), page.doc.shard())).or_default().push(page);
        }
        for ((wave, shard), mut pages) in dealt {
            pages.sort_by_key(|page| page.doc);
            let mut segment = Segment {
                wave: wave as usize,
                shard,
                documents: pages.len() as u64,
                urls: pages.len() as u64,
                features: 0,
                links: 0,
                chunks: 0,
                origin: None,
            };
            let documents = pages.iter().map(|page| DocumentRow { stored: week, ..document(page) });
            write(&path(DocumentRow::NAME, segment.file(), pages.len()), documents);
            write(
                &path(ClusterRow::NAME, segment.file(), pages.len()),
                pages.iter().map(|page| cluster(page, &families[&page.family])),
            );
            // Every seventh URL is of a page without words.
            let worded: Vec<(i64, Vec<u8>)> =
                pages.iter().filter(|page| !page.doc.row().is_multiple_of(7)).map(|page| feature(page)).collect();
            if !worded.is_empty() {
                let rows = worded.iter().map(|(doc, features)| FeatureRow::new(*doc, &[0; 48], features));
                write(&path(FeatureRow::NAME, segment.file(), worded.len()), rows);
            }
            segment.features = worded.len() as u64;
            segments.push(segment);
        }
        let mut urls = vec![0; self.method.shards as usize];
        for shard in 0..self.method.shards {
            let of_shard: Vec<&Url> = born.iter().filter(|url| url.doc.shard() == shard).collect();
            urls[shard as usize] = of_shard.len() as u64;
            if !of_shard.is_empty() {
                let hash = |url: &Url| KeyHash::of(&url.url).to_bytes();
                let rows = of_shard.iter().copied().map(|url| UrlRow {
                    doc: url.doc.to_table(),
                    hash: hash(url),
                    url: Some(&url.url),
                    id: None,
                });
                write(&path(UrlRow::NAME, format!("shard{shard:05}-wave00000.parquet"), of_shard.len()), rows);
            }
        }
        let committed = CommittedWeek {
            week,
            commit: 1,
            stands_on: String::new(),
            key: String::new(),
            documents: pages.len() as u64,
            urls,
            named: Vec::new(),
        };
        let key =
            InputKey { hash: week.to_string(), waves: waves as usize, files: 1, bytes: 1, stamps: Default::default() };
        let journal = WeekJournal {
            key,
            waves: waves as usize,
            segments,
            counts: ReadingCounts::default(),
            earlier_inputs: BTreeMap::new(),
            another_text: None,
        };
        let whole = WholeWeek {
            committed: committed.clone(),
            method: self.method.clone(),
            journal,
            files,
            kept: BTreeMap::new(),
            folders: BTreeMap::new(),
            readings: Default::default(),
        };
        let records = store.records(&committed);
        std::fs::create_dir_all(&records).unwrap();
        whole.write(&records.join("week.json")).unwrap();
        committed
    }

    /// Runs the job; gives the tables' bytes.
    fn evolution(&self, flags: &[&str]) -> BTreeMap<String, Vec<u8>> {
        let store = self.path();
        let arguments = ["run", "jobs/evolution.toml", "--quiet", "--store", store.to_str().unwrap()];
        run_well(&[&arguments[..], flags].concat());
        assert!(!store.join("_nigh/work").exists(), "nothing unfinished is left");
        tables(&store.join("evolution"))
    }
}

/// A family of pages: a large one, several small ones, or one of its own.
fn family(random: &mut impl FnMut(u64) -> u64) -> u64 {
    match random(4) {
        0 => 0,
        1 => 1 + random(3),
        2 => 4 + random(30),
        _ => 100 + random(1 << 40),
    }
}

fn document(page: &Url) -> DocumentRow<'_> {
    let body = format!("{:?} {}", page.features, page.version);
    DocumentRow {
        doc: page.doc.to_table(),
        id: None,
        url: Some(&page.url),
        given_url: None,
        host: Some(&page.host),
        domain: Some("example"),
        ip: None,
        fetched: None,
        status: Some(200),
        media_type: Some("text/html"),
        bytes: body.len() as i64,
        checksum: nigh::records::checksum(body.as_bytes()).to_be_bytes(),
        words: 1,
        title: "",
        file: "none",
        offset: 0,
        crawled: "2024-01-08".parse().unwrap(),
        stored: "2024-01-08".parse().unwrap(),
        charset: None,
        digest: None,
        record_id: None,
        length: None,
        record_url: None,
    }
}

fn cluster<'a>(page: &'a Url, members: &[DocId]) -> ClusterRow<'a> {
    cluster_row(page.doc.to_table(), Some(page), members[0].to_table(), members.len() as i64)
}

/// A row with one cluster at all levels.
fn cluster_row(doc: i64, page: Option<&Url>, root: i64, size: i64) -> ClusterRow<'_> {
    ClusterRow {
        id: None,
        url: page.map(|page| page.url.as_str()),
        host: page.map(|page| page.host.as_str()),
        doc,
        similar_root: root,
        similar_size: size,
        identical_root: root,
        identical_size: size,
        exact_root: root,
        exact_size: size,
        cluster_id: None,
        canonical: root == doc && page.is_some(),
    }
}

/// The document id and the features of a page.
fn feature(page: &Url) -> (i64, Vec<u8>) {
    (page.doc.to_table(), page.features.iter().flat_map(|feature| feature.to_le_bytes()).collect())
}

fn write<R: nigh::tables::Row>(path: &Path, rows: impl Iterator<Item = R>) {
    let mut writer: Writer<R::Table> = Writer::create(path).unwrap();
    rows.for_each(|row| writer.push(row).unwrap());
    writer.finish().unwrap();
}

/// Two weeks whose figures are worked out by hand: what the twin says is checked, too.
#[test]
fn the_twin_gives_the_figures_of_a_store_that_is_worked_out_by_hand() {
    let page = |doc: i64, host: &str, root: i64, checksum: u8, features: [u16; 3]| {
        (doc, EvolvingPage { host: host.into(), root, checksum: vec![checksum], features: features.to_vec() })
    };
    // The clusters {1, 2} and {3}.
    let first = [page(1, "a", 1, 1, [1, 2, 3]), page(2, "a", 1, 2, [1, 2, 3]), page(3, "c", 3, 3, [7, 8, 9])];
    // Page 1 keeps one feature of three and is in a cluster with a new page, 4. Pages 2 and 3 could
    // not be downloaded.
    let second = [page(1, "a", 1, 9, [1, 5, 6]), page(4, "b", 1, 4, [1, 5, 6])];
    let weeks = [
        WeekSeen { week: "first".into(), pages: first.into(), known: [1, 2, 3].into() },
        WeekSeen { week: "second".into(), pages: second.into(), known: [1, 2, 3, 4].into() },
    ];
    let tables = twin(&weeks, 5);
    // The rows of a table that count something: the count is the last of the words.
    let rows = |table: &str| -> Vec<EvolutionRow> {
        tables[table].iter().filter(|(words, _)| words.last().unwrap() != "0").cloned().collect()
    };
    let row = |words: &[&str], fractions: &[Option<f64>]| -> EvolutionRow {
        (words.iter().map(|word| word.to_string()).collect(), fractions.to_vec())
    };
    let retention = [
        row(&["first", "1", "1"], &[Some(1.0); 3]),
        row(&["first", "2-10", "2"], &[Some(1.0); 3]),
        // Page 3 was alone, and is with 2 in the cluster of what could not be downloaded.
        row(&["second", "1", "1"], &[Some(1.0), Some(1.0 / 2.0), Some(1.0 / 2.0)]),
        // Page 1 was with 2 and is with 4; page 2 was with 1 and is with 3.
        row(&["second", "2-10", "2"], &[Some(1.0 / 2.0), Some(1.0 / 3.0), Some(1.0 / 2.0)]),
    ];
    assert_eq!(rows("retention"), retention);
    // Host c lost its cluster, a has one as before, b has one for the first time.
    assert_eq!(rows("host-changes"), [row(&["-1", "1"], &[]), row(&["0", "1"], &[]), row(&["1", "1"], &[])]);
    // Page 1 alone was downloaded twice. Its amount is one of five, so the mean share is a fifth.
    assert_eq!(rows("amounts"), [row(&["1", "2-10", "1"], &[Some(1.0), Some(5.0)])]);
    assert_eq!(rows("change-classes"), [row(&["2-10", "large", "1"], &[Some(1.0)])]);
    assert_eq!(rows("births"), [row(&["second", "1", "1"], &[])]);
    assert_eq!(rows("deaths"), [row(&["second", "1", "1"], &[]), row(&["second", "2-10", "1"], &[])]);
}

#[test]
fn evolution_is_that_of_brute_force_whatever_the_workers_and_processes() {
    for (seed, weeks) in [(1, 3), (2, 5), (3, 2), (4, 4)] {
        let store = WrittenStore::new(seed, weeks);
        let one = store.evolution(&["--workers", "1"]);
        assert_evolution_is_right(&store.path(), 0..weeks);
        for (workers, processes) in [("2", "1"), ("4", "1"), ("1", "2"), ("3", "2")] {
            let other = store.evolution(&["--workers", workers, "--processes", processes]);
            assert!(one == other, "{workers} workers in {processes} processes");
        }
    }
}

#[test]
fn first_and_last_choose_the_weeks_of_the_evolution() {
    let store = WrittenStore::new(5, 4);
    let text = "[evolution]\nfirst = \"2024-01-08\"\nlast = \"2024-01-15\"\n";
    let job = job(store.folder.path(), text);
    let path = store.path();
    let ran = run_well(&["run", job.to_str().unwrap(), "--store", path.to_str().unwrap(), "--workers", "2"]);
    assert_evolution_is_right(&path, 1..3);
    for wanted in ["from 2024-01-08 to 2024-01-15, 2 weeks", "91.8%", "retention of singletons", "births", "Tables"] {
        assert!(ran.stdout.contains(wanted), "{wanted}: {}", ran.stdout);
    }
    eprintln!("{}", ran.stdout);
    let kept = std::fs::read_to_string(path.join("_nigh/evolution/00002/job.toml")).unwrap();
    assert!(kept.contains("first = \"2024-01-08\""), "{kept}");
    // Another run replaces all of it, except a file of the user.
    std::fs::write(path.join("evolution/notes"), "").unwrap();
    store.evolution(&[]);
    assert_evolution_is_right(&path, 0..4);
    assert!(path.join("evolution/notes").exists() && !path.join("_nigh/evolution/00002").exists());
    assert_eq!(
        std::fs::read_dir(path.join("evolution/retention")).unwrap().count(),
        1,
        "only the new tables are there"
    );
}

#[test]
fn one_week_is_compared_with_itself() {
    let made = Made::new(&[]);
    let path = made.store();
    let arguments = ["run", "jobs/evolution.toml", "--store", path.to_str().unwrap()];
    let ran = run_well(&arguments);
    assert_evolution_is_right(&path, 0..1);
    assert!(ran.stdout.contains("one week only") && ran.stdout.contains("100.0%"), "{}", ran.stdout);
    let json = run_well(&[&arguments[..], &["--json"]].concat());
    let summary: serde_json::Value = serde_json::from_str(&json.stdout).unwrap();
    assert_eq!((&summary["documents"], &summary["hosts"]["published"]), (&523.into(), &0.918.into()));
    for line in json.stderr.lines() {
        let event: serde_json::Value = serde_json::from_str(line).unwrap();
        assert!(event["event"] == "progress" || event["event"] == "stages", "{event}");
    }
    let dry = run_well(&[&arguments[..], &["--dry-run"]].concat());
    assert!(dry.stdout.contains("2024-01-08 to 2024-01-08"), "{}", dry.stdout);
    // The store goes on as before.
    run_well(&["show", path.to_str().unwrap()]);
}

#[test]
fn a_run_that_fails_leaves_the_former_tables() {
    let store = WrittenStore::new(6, 2);
    let before = store.evolution(&[]);
    let (folder, damaged) = (store.path().join("evolution"), store.path().join("clusters"));
    std::fs::rename(&damaged, store.path().join("elsewhere")).unwrap();
    let ran = run(&["run", "jobs/evolution.toml", "--store", store.path().to_str().unwrap()]);
    assert_eq!(ran.code, Some(1), "{}", ran.stderr);
    assert!(tables(&folder) == before);
    std::fs::rename(store.path().join("elsewhere"), &damaged).unwrap();
    assert!(store.evolution(&[]) == before);
}

#[test]
fn a_run_killed_at_any_moment_leaves_the_former_tables_or_the_new_ones() {
    let store = WrittenStore::new(10, 3);
    let text = "[evolution]\nlast = \"2024-01-08\"\n";
    let two_weeks = job(store.folder.path(), text);
    let path = store.path();
    let path = path.to_str().unwrap();
    let begun = Instant::now();
    let new = store.evolution(&["--workers", "2"]);
    let whole = begun.elapsed();
    let former = || {
        run_well(&["run", two_weeks.to_str().unwrap(), "--quiet", "--store", path]);
        tables(&store.path().join("evolution"))
    };
    let former_tables = former();
    assert!(former_tables != new);
    for (round, processes) in (0..16).zip(["1", "2"].into_iter().cycle()) {
        assert!(former() == former_tables);
        let arguments =
            ["run", "jobs/evolution.toml", "-q", "--workers", "2", "--processes", processes, "--store", path];
        let mut child = nigh(&arguments).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
        std::thread::sleep(whole * round / 14);
        child.kill().unwrap();
        child.wait().unwrap();
        assert!([&former_tables, &new].contains(&&tables(&store.path().join("evolution"))), "round {round}");
    }
    assert!(store.evolution(&[]) == new);
}

#[test]
fn a_damaged_or_missing_file_is_named() {
    let file = |store: &Path, table: &str| {
        let mut files = crate::program::files(&store.join("week=2024-01-08"), table);
        files.swap_remove(0)
    };
    for table in ["clusters", "documents", "features"] {
        for processes in ["1", "2"] {
            let store = WrittenStore::new(7, 2);
            let path = store.path();
            let file = file(&path, table);
            let arguments = ["run", "jobs/evolution.toml", "--store", path.to_str().unwrap(), "--processes", processes];
            std::fs::write(&file, "no table").unwrap();
            let ran = run(&arguments);
            assert_eq!(ran.code, Some(1));
            assert!(ran.stderr.contains(file.to_str().unwrap()), "{}", ran.stderr);
            std::fs::remove_file(&file).unwrap();
            let ran = run(&arguments);
            assert_eq!(ran.code, Some(1));
            assert!(ran.stderr.contains(file.to_str().unwrap()), "{}", ran.stderr);
            assert!(!path.join("evolution").exists());
        }
    }
}

#[test]
fn tables_that_contradict_each_other_are_reported_as_damage() {
    let store = WrittenStore::new(8, 2);
    let path = store.path();
    let arguments = ["run", "jobs/evolution.toml", "--store", path.to_str().unwrap()];
    let week = crate::program::week(&path, "2024-01-08");
    let (clusters, documents) = (crate::program::files(&week, "clusters"), crate::program::files(&week, "documents"));
    let kept = std::fs::read(&documents[0]).unwrap();
    // Pages of another shard.
    std::fs::copy(documents.last().unwrap(), &documents[0]).unwrap();
    let ran = run(&arguments);
    assert_eq!(ran.code, Some(1));
    assert!(ran.stderr.contains("is damaged: it holds document"), "{}", ran.stderr);
    std::fs::write(&documents[0], kept).unwrap();
    run_well(&arguments);
    // A cluster of one page that says two.
    let mut scan = Scan::open(&clusters[0], &["doc"]).unwrap();
    let batch = scan.batch().unwrap().unwrap();
    let docs: &Int64Array = field(&batch, "doc").unwrap();
    let claims = docs.values().iter().map(|doc| cluster_row(*doc, None, docs.value(0), 2));
    write(&clusters[0], claims);
    let ran = run(&arguments);
    assert_eq!(ran.code, Some(1));
    assert!(ran.stderr.contains("the store is damaged: "), "{}", ran.stderr);
}

#[test]
fn wrong_use_is_refused_with_the_reason() {
    let folder = tempfile::tempdir().unwrap();
    let nowhere = folder.path().join("nowhere");
    let nowhere = nowhere.to_str().unwrap();
    let evolution = ["run", "jobs/evolution.toml", "--store", nowhere];
    for (arguments, code, wanted) in [
        (evolution.to_vec(), 1, "is not a nigh store"),
        ([&evolution[..], &["--input", "x"]].concat(), 2, "--input"),
        ([&evolution[..], &["--week", "2024-01-08"]].concat(), 2, "`first` and `last`"),
        ([&evolution[..], &["--replace"]].concat(), 2, "--replace"),
        (vec!["bench", "text", "--job", "jobs/evolution.toml"], 1, "[cluster]"),
    ] {
        let ran = run(&arguments);
        assert_eq!(ran.code, Some(code), "{arguments:?} {}", ran.stderr);
        assert!(ran.stderr.contains(wanted), "{wanted}: {}", ran.stderr);
    }
    assert!(!Path::new(nowhere).exists());
    for (text, wanted) in [
        ("[evolution]\nfrist = \"2024-01-08\"\n", ["line 2, column 1", "frist", "`first`"]),
        ("[evolution]\nlast = \"soon\"\n", ["line 2", "soon", "YYYY-MM-DD"]),
        ("[evolution]\n", ["no store", "--store DIR", "job.toml"]),
    ] {
        let path = job(folder.path(), text);
        let ran = run(&["run", path.to_str().unwrap()]);
        assert_eq!(ran.code, Some(2), "{}", ran.stderr);
        for wanted in wanted {
            assert!(ran.stderr.contains(wanted), "{wanted}: {}", ran.stderr);
        }
    }
    let store = WrittenStore::new(9, 2);
    let path = job(folder.path(), "[evolution]\nfirst = \"2024-02-01\"\n");
    let ran = run(&["run", path.to_str().unwrap(), "--store", store.path().to_str().unwrap()]);
    assert_eq!(ran.code, Some(1));
    assert!(ran.stderr.contains("has no week 2024-02-01; it has 2024-01-01, 2024-01-08"), "{}", ran.stderr);
}
