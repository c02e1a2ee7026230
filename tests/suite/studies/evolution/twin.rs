//! The tables of the job by brute force, from the tables of any store.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use arrow_array::{Array, Date32Array, Float64Array, Int32Array, Int64Array, StringArray};
use nigh::state::{CommittedWeek, Store};
use nigh::tables::{Scan, field};

use crate::program::{bytes, features, longs, tables, texts};

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
pub type EvolutionRow = (Vec<String>, Vec<Option<f64>>);

/// What the job's tables should hold, by table.
pub type ExpectedTables = BTreeMap<&'static str, Vec<EvolutionRow>>;

/// One page of a week.
pub struct EvolvingPage {
    pub host: String,
    pub root: i64,
    pub checksum: Vec<u8>,
    pub features: Vec<u16>,
}

/// A week of a store, as its tables have it.
pub struct WeekSeen {
    pub week: String,
    pub pages: BTreeMap<i64, EvolvingPage>,
    /// All URLs first seen in this week or before.
    pub known: BTreeSet<i64>,
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
pub fn twin(weeks: &[WeekSeen], amounts: usize) -> ExpectedTables {
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
