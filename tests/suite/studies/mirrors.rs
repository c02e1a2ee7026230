//! Mirrors by content against a twin that goes over pairs of hosts one by one, and against the
//! truth of a made web.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::time::Instant;

use arrow_array::{Array, BooleanArray, Date32Array, Float64Array, Int64Array, StringArray};
use nigh::state::Store;
use nigh::studies::mirrors::steps::HostName;
use nigh::tables::{Scan, field};

use crate::program::{
    self, bytes, corpus, features, files, job, kill_at_moments, longs, run, run_well, tables, texts, week,
};
use crate::studies::evolution::WrittenStore;
use crate::studies::host_order::{HostNames, HostTwin, leads};
use crate::web::truth::AliasKind;
use crate::web::{WEEKS, Web, WebStore, twins};

/// What a job is given.
#[derive(Clone, Default)]
struct MirrorsParameters {
    least: u64,
    root: bool,
    study: bool,
    smaller: bool,
    keep_unresolved: bool,
    farm: Option<u64>,
    /// Addresses by host, in place of those of pages.
    addresses: Option<BTreeMap<String, BTreeSet<String>>>,
}

impl MirrorsParameters {
    fn least(least: u64) -> MirrorsParameters {
        MirrorsParameters { least, ..MirrorsParameters::default() }
    }

    /// Runs the job on a store, and returns the bytes of its tables.
    fn run(&self, store: &Path, flags: &[&str]) -> BTreeMap<String, Vec<u8>> {
        let folder = tempfile::tempdir().unwrap();
        let mut text = format!("[mirrors]\nleast-pages = {}\n", self.least);
        text += if self.root { "pairs = \"root\"\n" } else { "" };
        text += if self.study { "pairs = \"study\"\n" } else { "" };
        text += if self.smaller { "size = \"smaller\"\n" } else { "" };
        text += if self.keep_unresolved { "unresolved = \"keep\"\n" } else { "" };
        text += &self.farm.map_or_else(String::new, |farm| format!("farm = {farm}\n"));
        if let Some(addresses) = &self.addresses {
            let path = folder.path().join("hosts.tsv");
            let line = |(host, addresses): (&String, &BTreeSet<String>)| {
                format!("{host}\t{}\n", addresses.iter().cloned().collect::<Vec<_>>().join(","))
            };
            std::fs::write(&path, addresses.iter().map(line).collect::<String>()).unwrap();
            text += &format!("addresses = {:?}\n", path.to_str().unwrap());
        }
        let job = job(folder.path(), &text);
        let arguments = ["run", job.to_str().unwrap(), "-q", "--store", store.to_str().unwrap()];
        run_well(&[&arguments[..], flags].concat());
        tables(&store.join("mirrors"))
    }
}

/// A page of a week.
struct SeenPage {
    doc: i64,
    host: String,
    /// The rest of the URL, from the first slash.
    rest: String,
    root: i64,
    is_clustered: bool,
}

/// A week of a store, as its tables have it.
struct SeenWeek {
    date: String,
    pages: Vec<SeenPage>,
    addresses: BTreeMap<String, BTreeSet<String>>,
    redirects: BTreeMap<String, BTreeMap<String, u64>>,
}

impl SeenWeek {
    /// The URLs of a host that redirect to another one, if they are most of its URLs, else 0.
    fn redirected(&self, host: &str, target: &str, least: u64) -> u64 {
        let Some(targets) = self.redirects.get(host) else { return 0 };
        let urls = targets.get(target).copied().unwrap_or_default();
        let pages = self.pages.iter().filter(|page| page.host == host).count() as u64;
        if urls >= least && 2 * urls > pages + targets.values().sum::<u64>() { urls } else { 0 }
    }
}

fn host_of(url: &str) -> String {
    url.split('/').nth(2).unwrap().to_owned()
}

fn seen(store: &Path) -> Vec<SeenWeek> {
    let manifest = Store::at(store).manifest().unwrap().unwrap();
    let read = |date: String| {
        let folder = week(store, &date);
        let columns =
            longs(&folder, "clusters", "similar_root").into_iter().zip(longs(&folder, "clusters", "similar_size"));
        let docs = longs(&folder, "clusters", "doc").into_iter().zip(texts(&folder, "clusters", "url"));
        let pages = docs.zip(columns).zip(texts(&folder, "clusters", "host"));
        let pages = pages.map(|(((doc, url), (root, size)), host)| {
            let rest = format!("/{}", url.splitn(4, '/').nth(3).unwrap());
            SeenPage { doc, host, rest, root, is_clustered: size > 1 }
        });
        let mut addresses: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
        for (host, ip) in texts(&folder, "documents", "host").into_iter().zip(texts(&folder, "documents", "ip")) {
            if !ip.is_empty() {
                addresses.entry(host).or_default().insert(ip);
            }
        }
        let mut redirects: BTreeMap<String, BTreeMap<String, u64>> = BTreeMap::new();
        for (url, target) in texts(&folder, "redirects", "url").iter().zip(texts(&folder, "redirects", "target_url")) {
            *redirects.entry(host_of(url)).or_default().entry(host_of(&target)).or_default() += 1;
        }
        SeenWeek { pages: pages.collect(), date, addresses, redirects }
    };
    manifest.weeks.iter().map(|committed| read(committed.week.to_string())).collect()
}

/// A row of the table `pairs`.
#[derive(Clone, Debug, PartialEq)]
struct PairRow {
    class: String,
    www: bool,
    /// pages_a, pages_b, clusters, size, matched1 to matched4, matched_path, redirects.
    numbers: [i64; 10],
    mirror: bool,
    coverage: [Option<f64>; 2],
}

/// The rows of a week by the names of the two hosts.
type PairRows = BTreeMap<(String, String), PairRow>;

const NUMBERS: [&str; 10] = [
    "pages_a",
    "pages_b",
    "clusters",
    "size",
    "matched1",
    "matched2",
    "matched3",
    "matched4",
    "matched_path",
    "redirects",
];

/// The rows of the table, by week.
fn found(store: &Path) -> BTreeMap<String, PairRows> {
    let mut weeks: BTreeMap<String, PairRows> = BTreeMap::new();
    let mut columns = vec!["week", "host_a", "host_b", "class", "www", "mirror", "coverage_a", "coverage_b"];
    columns.extend(NUMBERS);
    let mut scan = Scan::open(&files(&store.join("mirrors"), "pairs")[0], &columns).unwrap();
    while let Some(batch) = scan.batch().unwrap() {
        let text = |name| field::<StringArray>(&batch, name).unwrap();
        let truth = |name| field::<BooleanArray>(&batch, name).unwrap();
        let share = |name| field::<Float64Array>(&batch, name).unwrap();
        let dates = field::<Date32Array>(&batch, "week").unwrap();
        for at in 0..batch.num_rows() {
            let coverage =
                ["coverage_a", "coverage_b"].map(|name| share(name).is_valid(at).then(|| share(name).value(at)));
            let row = PairRow {
                class: text("class").value(at).to_owned(),
                www: truth("www").value(at),
                numbers: NUMBERS.map(|name| field::<Int64Array>(&batch, name).unwrap().value(at)),
                mirror: truth("mirror").value(at),
                coverage,
            };
            let hosts = (text("host_a").value(at).to_owned(), text("host_b").value(at).to_owned());
            let date = dates.value_as_date(at).unwrap().to_string();
            assert!(weeks.entry(date).or_default().insert(hosts, row).is_none(), "a pair is listed once");
        }
    }
    weeks
}

/// The last arcs of a path; the whole path with a mark if it has fewer.
fn end(rest: &str, arcs: usize) -> String {
    let path = rest.split('?').next().unwrap();
    let all: Vec<&str> = path[1..].split('/').collect();
    if arcs <= all.len() { all[all.len() - arcs..].join("/") } else { format!("{path} whole") }
}

fn whole(rest: &str) -> String {
    rest.split('?').next().unwrap().to_owned()
}

/// The rows of a week by brute force, without farms.
fn twin(week: &SeenWeek, parameters: &MirrorsParameters) -> PairRows {
    let mut clusters: BTreeMap<i64, BTreeMap<&str, Vec<&SeenPage>>> = BTreeMap::new();
    let mut clustered: BTreeMap<&str, u64> = BTreeMap::new();
    for page in &week.pages {
        if page.is_clustered {
            clusters.entry(page.root).or_default().entry(&page.host).or_default().push(page);
            *clustered.entry(&page.host).or_default() += 1;
        }
    }
    // A host of the list has the addresses there, and another one those of its pages.
    let mut addresses = week.addresses.clone();
    addresses.extend(parameters.addresses.clone().unwrap_or_default());
    let none = BTreeSet::new();
    let of = |host: &str| addresses.get(host).unwrap_or(&none);
    let rank = |host: &str| (Reverse(clustered[host]), HostName::of(host));
    let redirected = |host: &str, target: &str| week.redirected(host, target, parameters.least);
    let mut candidates: Vec<&str> =
        clustered.keys().copied().filter(|host| clustered[host] >= parameters.least).collect();
    candidates.sort_by_key(|host| rank(host));
    // In each cluster the hosts that are kept, one for each address.
    let kept: BTreeMap<i64, BTreeSet<&str>> = clusters
        .iter()
        .map(|(root, hosts)| {
            let mut taken: BTreeSet<&String> = BTreeSet::new();
            let of_cluster = candidates.iter().filter(|host| hosts.contains_key(**host));
            let kept = of_cluster.filter(|host| {
                let is_kept = of(host).iter().all(|address| !taken.contains(address));
                if is_kept {
                    taken.extend(of(host));
                }
                is_kept
            });
            (*root, kept.copied().collect())
        })
        .collect();
    // The host of each cluster's root, if it is a candidate.
    let root_of: BTreeMap<i64, &str> = week
        .pages
        .iter()
        .filter(|page| page.doc == page.root && candidates.contains(&&*page.host))
        .map(|page| (page.root, &*page.host))
        .collect();
    // The host that is paired with the others of a cluster.
    let center = |root: &i64| {
        let first = || candidates.iter().find(|host| clusters[root].contains_key(**host)).copied();
        if parameters.study { root_of.get(root).copied() } else { first() }
    };
    let has_center = parameters.root || parameters.study;
    let has_addresses = week.pages.iter().any(|page| !of(&page.host).is_empty());
    let mut rows = PairRows::new();
    for (place, a) in candidates.iter().enumerate() {
        let auto: u64 = clusters
            .iter()
            .filter(|(root, _)| !has_center || center(root) == Some(a))
            .filter_map(|(_, hosts)| hosts.get(a))
            .map(|pages| pages.len() as u64 - 1)
            .sum();
        if auto >= parameters.least {
            let auto = auto as i64;
            let numbers = [auto, auto, 0, auto, 0, 0, 0, 0, 0, 0];
            let row = PairRow { class: "auto".into(), www: false, numbers, mirror: false, coverage: [None, None] };
            rows.insert((a.to_string(), a.to_string()), row);
        }
        for b in &candidates[place + 1..] {
            // What is counted if `source` is the host that others are compared with.
            let count = |source: &str, other: &str| {
                let (mut counts, mut kept_pages, mut matches) = ([0u64; 3], [0u64; 2], [0u64; 5]);
                for (root, hosts) in &clusters {
                    let (Some(of_source), Some(of_other)) = (hosts.get(source), hosts.get(other)) else { continue };
                    let is_counted = !has_center || center(root) == Some(source);
                    if !is_counted && parameters.study {
                        continue;
                    }
                    for page in of_other {
                        let has = |end_of: &dyn Fn(&str) -> String| {
                            u64::from(of_source.iter().any(|other| end_of(&other.rest) == end_of(&page.rest)))
                        };
                        for (arcs, count) in (1..).zip(&mut matches[..4]) {
                            *count += has(&|rest| end(rest, arcs));
                        }
                        matches[4] += has(&whole);
                    }
                    if !is_counted {
                        continue;
                    }
                    let pages = [hosts[a].len() as u64, hosts[b].len() as u64];
                    counts[0] += pages[0];
                    counts[1] += pages[1];
                    counts[2] += 1;
                    if kept[root].contains(a) && kept[root].contains(b) {
                        kept_pages[0] += pages[0];
                        kept_pages[1] += pages[1];
                    }
                }
                (counts, kept_pages, matches)
            };
            let (at_a, at_b) = (count(a, b), count(b, a));
            let is_rooted_at_b = parameters.study && at_b.0[0] > at_a.0[1];
            let (counts, kept_pages, matches) = if is_rooted_at_b { at_b } else { at_a };
            let enough = |pages: [u64; 2]| match (has_center, is_rooted_at_b) {
                (false, _) => pages[0].min(pages[1]),
                (true, false) => pages[1],
                (true, true) => pages[0],
            };
            let pages = [counts[0], counts[1]];
            if enough(pages) < parameters.least {
                continue;
            }
            let size = if has_center || parameters.smaller { enough(pages) } else { pages[0].max(pages[1]) };
            let redirects = redirected(a, b) + redirected(b, a);
            let is_alias = redirects > 0 && !parameters.study;
            let is_unresolved = has_addresses && !parameters.keep_unresolved && (of(a).is_empty() || of(b).is_empty());
            let class = if is_unresolved {
                "unresolved"
            } else if enough(kept_pages) >= parameters.least && !is_alias {
                "kept"
            } else {
                "alias"
            };
            let mirror = class == "kept" && matches[3] >= parameters.least;
            let paths = |host: &str| -> BTreeSet<&String> {
                week.pages.iter().filter(|page| page.host == host).map(|page| &page.rest).collect()
            };
            let coverage = [(a, b), (b, a)].map(|(a, b)| {
                let (a, b) = (paths(a), paths(b));
                mirror.then(|| a.intersection(&b).count() as f64 / a.len() as f64)
            });
            let [m1, m2, m3, m4, path] = matches.map(|matched| matched as i64);
            let [pages_a, pages_b, shared] = counts.map(|count| count as i64);
            let numbers = [pages_a, pages_b, shared, size as i64, m1, m2, m3, m4, path, redirects as i64];
            let www = a.strip_prefix("www.") == Some(b) || b.strip_prefix("www.") == Some(a);
            let row = PairRow { class: class.into(), www, numbers, mirror, coverage };
            rows.insert((a.to_string(), b.to_string()), row);
        }
    }
    for (host, targets) in &week.redirects {
        for target in targets.keys().filter(|target| *target != host && redirected(host, target) > 0) {
            let is_listed = |a: &String, b: &String| rows.contains_key(&(a.clone(), b.clone()));
            if !is_listed(host, target) && !is_listed(target, host) {
                let numbers = [0, 0, 0, 0, 0, 0, 0, 0, 0, redirected(host, target) as i64];
                let www = host.strip_prefix("www.") == Some(target) || target.strip_prefix("www.") == Some(host);
                let row = PairRow { class: "redirect".into(), www, numbers, mirror: false, coverage: [None, None] };
                rows.insert((host.clone(), target.clone()), row);
            }
        }
    }
    rows
}

/// Compares `pairs` with the twin, and the other tables with what follows from `pairs` and the
/// weeks. Returns the rows.
fn assert_right(store: &Path, parameters: &MirrorsParameters) -> BTreeMap<String, PairRows> {
    let (weeks, found) = (seen(store), found(store));
    for week in &weeks {
        let (found, expected) = (found.get(&week.date).cloned().unwrap_or_default(), twin(week, parameters));
        let names = |rows: &PairRows| rows.keys().cloned().collect::<Vec<_>>();
        assert_eq!(names(&found), names(&expected), "{}", week.date);
        for (hosts, row) in &expected {
            assert_eq!(&found[hosts], row, "{hosts:?} in {}", week.date);
        }
    }
    let mirrors = |date: &str| -> PairRows {
        found
            .get(date)
            .into_iter()
            .flatten()
            .filter(|(_, row)| row.mirror)
            .map(|(a, b)| (a.clone(), b.clone()))
            .collect()
    };
    assert_classes(store, &found, "pairs", parameters.least);
    // What the study counts stands in each store, whatever the job counts.
    let literal =
        MirrorsParameters { study: true, root: false, keep_unresolved: false, farm: None, ..parameters.clone() };
    let as_the_study: BTreeMap<String, PairRows> =
        weeks.iter().map(|week| (week.date.clone(), twin(week, &literal))).collect();
    assert_classes(store, &as_the_study, "study", parameters.least);
    for (row, week) in rows_of(store, "mirrored", &["week", "study_share"]).iter().zip(&weeks) {
        let mirrors = as_the_study[&week.date].clone().into_iter().filter(|(_, row)| row.mirror).collect();
        let share = mirrored_pages(week, &mirrors).len() as f64 / week.pages.len() as f64;
        assert_eq!(row[1], if week.pages.is_empty() { "null".to_owned() } else { share.to_string() }, "{row:?}");
    }
    assert_sizes(store, &found);
    assert_groups(store, &weeks, &mirrors, parameters.least);
    assert_spans(store, &weeks, &mirrors);
    assert_mirrored(store, &weeks, &mirrors);
    assert_lags(store, &weeks, &mirrors);
    found
}

/// All rows of a table, each column as text.
fn rows_of(store: &Path, table: &str, columns: &[&str]) -> Vec<Vec<String>> {
    program::rows_of(&store.join("mirrors"), table, columns)
}

/// Compares a column of `classes` with the rows of pairs.
fn assert_classes(store: &Path, found: &BTreeMap<String, PairRows>, column: &str, least: u64) {
    for row in rows_of(store, "classes", &["week", "class", column]) {
        let rows: Vec<&PairRow> = found.get(&row[0]).into_iter().flat_map(BTreeMap::values).collect();
        let count = |test: &dyn Fn(&PairRow) -> bool| rows.iter().filter(|row| test(row)).count();
        let kept = |test: &dyn Fn(&PairRow) -> bool| count(&|row| row.class == "kept" && test(row));
        let expected = match &*row[1] {
            "raw" => count(&|row| row.class != "redirect"),
            "kept-www" => kept(&|row| row.www),
            "kept-last-arc" => kept(&|row| row.numbers[4] >= least as i64),
            "kept-last-four-arcs" => kept(&|row| row.mirror),
            "farm" | "redirect" if column == "study" => {
                assert_eq!(row[2], "null");
                continue;
            }
            class => count(&|row| row.class == class),
        };
        assert_eq!(row[2], expected.to_string(), "{row:?}, {column}");
    }
}

fn assert_sizes(store: &Path, found: &BTreeMap<String, PairRows>) {
    let mut sizes: BTreeMap<(String, i64), u64> = BTreeMap::new();
    for (week, rows) in found {
        for row in rows.values().filter(|row| row.mirror) {
            *sizes.entry((week.clone(), row.numbers[3])).or_default() += 1;
        }
    }
    let sizes: Vec<Vec<String>> =
        sizes.into_iter().map(|((week, size), pairs)| vec![week, size.to_string(), pairs.to_string()]).collect();
    assert_eq!(rows_of(store, "sizes", &["week", "size", "pairs"]), sizes);
}

fn assert_groups(store: &Path, weeks: &[SeenWeek], mirrors: &dyn Fn(&str) -> PairRows, least: u64) {
    let mut expected = Vec::new();
    for week in weeks {
        let pairs: HostNames = mirrors(&week.date).into_keys().collect();
        let hosts: BTreeSet<&String> = pairs.iter().flat_map(|(a, b)| [a, b]).collect();
        let both = hosts.iter().flat_map(|target| hosts.iter().map(move |host| (*target, *host)));
        let before = both.filter(|(target, host)| target != host && week.redirected(host, target, least) > 0);
        let before: HostNames = before.map(|(target, host)| (target.clone(), host.clone())).collect();
        let order = match pairs.is_empty() {
            true => Vec::new(),
            false => HostTwin::read(store, &week.date).order(&pairs, &before, &leads(store, &week.date), &|_| 0),
        };
        let mut groups: Vec<BTreeSet<String>> = Vec::new();
        for (a, b) in mirrors(&week.date).into_keys() {
            let mut joined = BTreeSet::from([a, b]);
            groups.retain(|group| {
                let is_apart = group.is_disjoint(&joined);
                if !is_apart {
                    joined.extend(group.iter().cloned());
                }
                is_apart
            });
            groups.push(joined);
        }
        let pages = |host: &String| week.pages.iter().filter(|page| page.host == *host).count();
        let preferred = |group: &BTreeSet<String>| order.iter().find(|host| group.contains(*host)).cloned();
        groups.sort_by_key(|group| preferred(group));
        for (number, group) in (1..).zip(&groups) {
            let chosen = preferred(group).unwrap();
            for host in group {
                let row = [week.date.clone(), i32::to_string(&number), host.clone(), pages(host).to_string()];
                expected.push([&row[..], &[(*host == chosen).to_string()]].concat());
            }
        }
    }
    assert_eq!(rows_of(store, "groups", &["week", "group", "host", "pages", "preferred"]), expected);
}

fn assert_spans(store: &Path, weeks: &[SeenWeek], mirrors: &dyn Fn(&str) -> PairRows) {
    let by_name = |(a, b): (String, String)| if a < b { (a, b) } else { (b, a) };
    let of_weeks: Vec<BTreeSet<(String, String)>> =
        weeks.iter().map(|week| mirrors(&week.date).into_keys().map(by_name).collect()).collect();
    let mut expected = Vec::new();
    for pair in of_weeks.iter().flatten().collect::<BTreeSet<_>>() {
        for begin in 0..weeks.len() {
            let is_mirror = |at: usize| of_weeks.get(at).is_some_and(|pairs| pairs.contains(pair));
            if is_mirror(begin) && (begin == 0 || !is_mirror(begin - 1)) {
                let end = (begin..).find(|at| !is_mirror(*at)).unwrap();
                let (first, last) = (weeks[begin].date.clone(), weeks[end - 1].date.clone());
                let (length, ended) = ((end - begin).to_string(), (end < weeks.len()).to_string());
                expected.push(vec![pair.0.clone(), pair.1.clone(), first, last, length, ended]);
            }
        }
    }
    assert_eq!(rows_of(store, "spans", &["host_a", "host_b", "first", "last", "weeks", "ended"]), expected);
}

/// The pages of a week in a cluster with a page of a mirror of their host, and the largest size of
/// these mirrors.
fn mirrored_pages(week: &SeenWeek, mirrors: &PairRows) -> BTreeMap<i64, i64> {
    let mut hosts: BTreeMap<i64, BTreeSet<&str>> = BTreeMap::new();
    let clustered = || week.pages.iter().filter(|page| page.is_clustered);
    clustered().for_each(|page| _ = hosts.entry(page.root).or_default().insert(&page.host));
    let mut found = BTreeMap::new();
    for page in clustered() {
        let sizes = mirrors.iter().filter_map(|((a, b), row)| {
            let other = if *a == page.host { b } else { a };
            let is_of_page = *a == page.host || *b == page.host;
            (is_of_page && hosts[&page.root].contains(&**other)).then_some(row.numbers[3])
        });
        found.extend(sizes.max().map(|size| (page.doc, size)));
    }
    found
}

/// The checksum and the features of a page.
type PageDownload = (Vec<u8>, Vec<u16>);

fn assert_mirrored(store: &Path, weeks: &[SeenWeek], mirrors: &dyn Fn(&str) -> PairRows) {
    let row = |week: &SeenWeek| {
        let pages = mirrored_pages(week, &mirrors(&week.date)).len();
        vec![week.date.clone(), pages.to_string(), week.pages.len().to_string()]
    };
    let expected: Vec<Vec<String>> = weeks.iter().map(row).collect();
    assert_eq!(rows_of(store, "mirrored", &["week", "pages", "documents"]), expected);
    // Changes of the pages that are mirrored in the first week, by size.
    let first = mirrored_pages(&weeks[0], &mirrors(&weeks[0].date));
    let mut downloads: BTreeMap<i64, Vec<PageDownload>> = BTreeMap::new();
    let count = Store::at(store).manifest().unwrap().unwrap().method.features;
    for seen in weeks {
        let folder = week(store, &seen.date);
        let vectors = features(&folder);
        for (doc, checksum) in
            longs(&folder, "documents", "doc").into_iter().zip(bytes(&folder, "documents", "checksum"))
        {
            downloads.entry(doc).or_default().push((checksum, vectors.get(&doc).cloned().unwrap_or_default()));
        }
    }
    let mut expected: BTreeMap<(String, String), u64> = BTreeMap::new();
    for (doc, size) in first {
        let class = match size {
            1 => "1",
            2..=10 => "2-10",
            11..=100 => "11-100",
            _ => "101-1000",
        };
        for pair in downloads[&doc].windows(2) {
            let equal = pair[0].1.iter().zip(&pair[1].1).filter(|(a, b)| a == b).count();
            let change = match equal {
                _ if pair[0].0 == pair[1].0 => "no-change",
                _ if equal == count => "no-text-change",
                0 => "complete",
                _ if equal <= count / 3 => "large",
                _ if equal <= 2 * (count / 3) => "medium",
                _ => "small",
            };
            *expected.entry((class.to_owned(), change.to_owned())).or_default() += 1;
        }
    }
    let found = rows_of(store, "changes", &["class", "change", "pairs"]).into_iter().filter(|row| row[2] != "0");
    let found: BTreeMap<(String, String), u64> =
        found.map(|row| ((row[0].clone(), row[1].clone()), row[2].parse().unwrap())).collect();
    assert_eq!(found, expected);
}

fn assert_lags(store: &Path, weeks: &[SeenWeek], mirrors: &dyn Fn(&str) -> PairRows) {
    // The features of each path of each host, by week.
    let mut contents: BTreeMap<(&str, &str), BTreeMap<usize, i64>> = BTreeMap::new();
    for (number, seen) in weeks.iter().enumerate() {
        let folder = week(store, &seen.date);
        let vectors = longs(&folder, "features", "doc").into_iter().zip(longs(&folder, "features", "vector"));
        let vectors: BTreeMap<i64, i64> = vectors.collect();
        for page in &seen.pages {
            let vector = vectors.get(&page.doc).copied().unwrap_or_default();
            contents.entry((&page.host, &page.rest)).or_default().insert(number, vector);
        }
    }
    let pairs: BTreeSet<(String, String)> = weeks.iter().flat_map(|week| mirrors(&week.date).into_keys()).collect();
    let both = pairs.into_iter().flat_map(|(a, b)| [(a.clone(), b.clone()), (b, a)]);
    let mut lags: BTreeMap<(String, String, bool, Option<usize>), u64> = BTreeMap::new();
    for (host, copy) in both.collect::<BTreeSet<_>>() {
        for ((_, path), of_host) in contents.iter().filter(|((of, _), _)| *of == host) {
            let Some(of_copy) = contents.get(&(&*copy, path)) else { continue };
            for at in 1..weeks.len() {
                let (Some(old), Some(new)) = (of_host.get(&(at - 1)), of_host.get(&at)) else { continue };
                if old == new || *new == 0 || !of_copy.contains_key(&at) || of_copy.get(&(at - 1)) == Some(new) {
                    continue;
                }
                let lag = (at..weeks.len()).find(|later| of_copy.get(later) == Some(new)).map(|later| later - at);
                *lags.entry((host.clone(), copy.clone(), lag.is_none(), lag)).or_default() += 1;
            }
        }
    }
    let row = |((host, copy, _, lag), changes): ((String, String, bool, Option<usize>), u64)| {
        vec![host, copy, lag.map_or_else(|| "null".to_owned(), |lag| lag.to_string()), changes.to_string()]
    };
    let expected: Vec<Vec<String>> = lags.into_iter().map(row).collect();
    assert_eq!(rows_of(store, "lags", &["host", "copy", "weeks", "changes"]), expected);
}

#[test]
fn pairs_are_those_of_brute_force_whatever_the_workers_and_processes() {
    let web = Web::small();
    let made = WebStore::new(web, WEEKS.len(), true);
    let store = made.path();
    let mut classes = BTreeSet::new();
    for parameters in [
        MirrorsParameters::least(10),
        MirrorsParameters::least(3),
        MirrorsParameters { root: true, ..MirrorsParameters::least(10) },
        MirrorsParameters { study: true, ..MirrorsParameters::least(4) },
        MirrorsParameters { keep_unresolved: true, smaller: true, ..MirrorsParameters::least(5) },
    ] {
        let one = parameters.run(&store, &["--workers", "1"]);
        let found = assert_right(&store, &parameters);
        classes.extend(found.into_values().flat_map(BTreeMap::into_values).map(|row| row.class));
        for (workers, processes) in [("2", "1"), ("4", "1"), ("1", "2")] {
            let other = parameters.run(&store, &["--workers", workers, "--processes", processes]);
            assert!(one == other, "{workers} workers in {processes} processes");
        }
    }
    let wanted = ["alias", "auto", "kept", "redirect", "unresolved"].map(str::to_owned);
    assert_eq!(classes, BTreeSet::from(wanted), "the web has pairs of all classes but farms");
}

#[test]
fn pairs_of_random_stores_are_those_of_brute_force() {
    // Of one, two and three weeks.
    for seed in 0..3 {
        let made = WrittenStore::new(100 + seed, 1 + seed as usize);
        let store = made.path();
        // Some of the 20 hosts have one or two of a few addresses.
        let mut addresses: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
        for host in 0..20u64 {
            let draw = nigh::records::mix(seed * 100 + host);
            for part in 0..draw % 3 {
                let address = format!("10.0.0.{}", (draw >> (8 + 8 * part)) % 9);
                addresses.entry(format!("h{host}.example")).or_default().insert(address);
            }
        }
        for (least, root, study) in [(1, false, false), (3, false, false), (3, true, false), (3, false, true)] {
            for addresses in [None, Some(addresses.clone())] {
                let parameters = MirrorsParameters { root, study, addresses, ..MirrorsParameters::least(least) };
                let one = parameters.run(&store, &["--workers", "1"]);
                assert_right(&store, &parameters);
                assert!(one == parameters.run(&store, &["--workers", "3"]));
            }
        }
    }
}

#[test]
fn farms_are_listed_by_their_first_host_and_counted_as_a_whole() {
    let web = Web::small();
    let made = WebStore::new(web, 1, false);
    let store = made.path();
    let all = MirrorsParameters { keep_unresolved: true, ..MirrorsParameters::least(10) };
    all.run(&store, &[]);
    let exact = &found(&store)[WEEKS[0]];
    let parameters = MirrorsParameters { farm: Some(3), ..all };
    let one = parameters.run(&store, &["--workers", "1"]);
    assert!(one == parameters.run(&store, &["--workers", "3"]));
    let listed = &found(&store)[WEEKS[0]];
    assert!(listed.len() < exact.len());
    let farms: BTreeSet<&str> = listed.iter().filter(|(_, row)| row.class == "farm").map(|((a, _), _)| &**a).collect();
    assert!(!farms.is_empty());
    for (hosts, row) in listed {
        let exact = &exact[hosts];
        assert_eq!(row.numbers, exact.numbers, "{hosts:?}");
        assert!(row.class == exact.class || row.class == "farm", "{hosts:?} {row:?}");
    }
    let count = |class: &str| {
        let rows = rows_of(&store, "classes", &["class", "pairs"]);
        rows.iter().find(|row| row[0] == class).unwrap()[1].parse::<usize>().unwrap()
    };
    assert_eq!(count("raw"), exact.values().filter(|row| row.class != "redirect").count(), "none is lost");
    assert_eq!(count("farm"), exact.len() - listed.len() + listed.values().filter(|row| row.class == "farm").count());
}

/// Issue 22's bars for the made web of the research.
#[test]
fn mirrors_of_a_made_web_are_found() {
    let web = Web::of_research();
    let made = WebStore::new(web, 1, true);
    let store = made.path();
    // Every pair by exact resemblance, aliases included.
    let expected = twins::host_pairs(&web.week(0).pages, twins::similar_pages_of_research(), 10);
    let expected: BTreeSet<(String, String)> = expected.into_iter().map(|pair| (pair.a, pair.b)).collect();
    let pairs = || -> BTreeSet<(String, String)> {
        let rows = found(&store).remove(WEEKS[0]).unwrap().into_iter();
        let pairs = rows.filter(|(_, row)| !["auto", "redirect"].contains(&&*row.class));
        pairs.map(|((a, b), _)| if a < b { (a, b) } else { (b, a) }).collect()
    };
    MirrorsParameters::least(10).run(&store, &[]);
    let all = pairs();
    let right = all.intersection(&expected).count();
    eprintln!("all: {} of {} pairs, {} found", right, expected.len(), all.len());
    assert_eq!(right, all.len(), "precision 1.0");
    assert!(right as f64 >= 0.97 * expected.len() as f64, "recall");
    let rows = found(&store).remove(WEEKS[0]).unwrap();
    let row = |a: &str, b: &str| rows.get(&(a.to_owned(), b.to_owned())).or(rows.get(&(b.to_owned(), a.to_owned())));
    // One host of several with the same address is kept in a cluster: the source of a mirror, or
    // another name of the source.
    let names = |host: &str| -> Vec<String> {
        let others = web.truth.aliases.iter().filter(|alias| alias.of == host).map(|alias| alias.host.clone());
        others.chain([host.to_owned()]).collect()
    };
    for mirror in web.truth.mirrors.iter().filter(|mirror| mirror.copying.weeks.contains(&0)) {
        let direct = row(&mirror.host, &mirror.of).unwrap_or_else(|| panic!("{mirror:?}"));
        assert_eq!(direct.www, mirror.www);
        if [&mirror.host, &mirror.of].iter().any(|host| web.truth.unresolved.contains(*host)) {
            assert_eq!(direct.class, "unresolved", "{mirror:?}");
            continue;
        }
        let is_kept = |of: &String| row(&mirror.host, of).is_some_and(|row| row.mirror && row.class == "kept");
        assert!(names(&mirror.of).iter().any(is_kept), "{mirror:?}");
    }
    for alias in &web.truth.aliases {
        let row = row(&alias.host, &alias.of).unwrap_or_else(|| panic!("{alias:?}"));
        let classes: &[&str] = if alias.kind == AliasKind::Redirect { &["alias", "redirect"] } else { &["alias"] };
        assert!(classes.contains(&&*row.class), "{alias:?} {row:?}");
    }
    MirrorsParameters { root: true, ..MirrorsParameters::least(10) }.run(&store, &[]);
    let root = pairs();
    let right = root.intersection(&expected).count();
    eprintln!("root: {} of {} pairs, {} found", right, expected.len(), root.len());
    assert_eq!(right, root.len());
}

#[test]
fn mirrors_of_the_corpus_are_found() {
    let Some(crawl) = corpus("week-01/warc", "mirrors of the corpus") else { return };
    let Some(truth) = corpus("truth/mirrors.tsv", "mirrors of the corpus") else { return };
    let folder = tempfile::tempdir().unwrap();
    let store = folder.path().join("store");
    let (store_text, crawl) = (store.to_str().unwrap(), crawl.to_str().unwrap());
    run_well(&["run", "jobs/example.toml", "-q", "--store", store_text, "--week", WEEKS[0], "--input", crawl]);
    MirrorsParameters::least(10).run(&store, &[]);
    let rows = found(&store).remove(WEEKS[0]).unwrap();
    assert_eq!(rows.values().filter(|row| row.class == "auto").count(), 3);
    let row = |a: &str, b: &str| rows.get(&(a.to_owned(), b.to_owned())).or(rows.get(&(b.to_owned(), a.to_owned())));
    let (mut mirrors, mut aliases) = (Vec::new(), Vec::new());
    for line in std::fs::read_to_string(truth).unwrap().lines().skip(1) {
        let columns: Vec<&str> = line.split('\t').collect();
        let [host_a, _, host_b, _, kind, ..] = columns[..] else { panic!("{line}") };
        let class = row(host_a, host_b).map(|row| row.class.clone());
        match kind {
            _ if kind.starts_with("alias") => aliases.push((host_b.to_owned(), class)),
            // Collections are directories of one host, redirecting hosts have no pages, and one
            // mirror comes later.
            _ if ["replicated", "redirecting", "appears"].iter().any(|other| kind.starts_with(other)) => {}
            _ => mirrors.push((host_b.to_owned(), class)),
        }
    }
    eprintln!("{mirrors:?}\n{aliases:?}");
    assert_eq!(mirrors.len(), 8);
    // That in another encoding, with a banner, shares fewer than ten similar pages.
    assert_eq!(mirrors.iter().filter(|(_, class)| class.as_deref() == Some("kept")).count(), 7);
    for alias in
        ["www.httpd.apache.example", "debian-faq.example", "www.rust-book.example", "x86-64.guide.debian.example"]
    {
        let found = aliases.iter().any(|(host, class)| host == alias && class.as_deref() == Some("alias"));
        assert!(found, "{alias}");
    }
}

#[test]
fn small_stores_and_wrong_jobs_are_told() {
    let folder = tempfile::tempdir().unwrap();
    let input = folder.path().join("pages.jsonl");
    let store = folder.path().join("store");
    let store_text = store.to_str().unwrap();
    std::fs::write(&input, "{\"url\": \"http://a.example/\", \"text\": \"one page on one host is no mirror\"}\n")
        .unwrap();
    let make = |week: &str, kind: &str, input: &Path| {
        let job = format!("jobs/{kind}.toml");
        let flags = ["-q", "--allow-empty", "--week", week, "--input", input.to_str().unwrap(), "--store", store_text];
        run_well(&[&["run", &job][..], &flags].concat());
    };
    make(WEEKS[0], "cluster", &input);
    let ran = run_well(&["run", "jobs/mirrors.toml", "--store", store_text]);
    assert!(
        ran.stdout.contains("0 pairs of mirrors") && ran.stdout.contains("No host has an IP address"),
        "{}",
        ran.stdout
    );
    let empty = folder.path().join("empty.jsonl");
    std::fs::write(&empty, "").unwrap();
    make(WEEKS[1], "weekly", &empty);
    run_well(&["run", "jobs/mirrors.toml", "-q", "--store", store_text]);
    assert_right(&store, &MirrorsParameters::least(10));
    let shown = run_well(&["show", store_text, "--job", "mirrors", "--json"]);
    let shown: serde_json::Value = serde_json::from_str(&shown.stdout).unwrap();
    assert_eq!((&shown["published"]["raw"], &shown["mirrors"][1]["documents"]), (&231_709.into(), &0.into()));
    let ran = run(&["show", store_text, "--job", "evolution"]);
    assert!(ran.code == Some(1) && ran.stderr.contains("nigh run jobs/evolution.toml"), "{}", ran.stderr);
    assert_eq!(run(&["show", store_text, "--job", "mirorrs"]).code, Some(2));
    for (text, wanted) in [
        ("[mirrors]\nleast-pages = 0\n", "least-pages"),
        ("[mirrors]\npairs = \"some\"\n", "`all`, `root`, `study`"),
        ("[mirrors]\nleast = 3\n", "unknown field `least`"),
    ] {
        let job = job(folder.path(), text);
        let ran = run(&["run", job.to_str().unwrap(), "--store", store_text]);
        assert!(ran.code == Some(2) && ran.stderr.contains(wanted), "{:?} {}", ran.code, ran.stderr);
    }
}

#[test]
fn too_many_pairs_are_refused_and_the_former_tables_stay() {
    let made = WebStore::new(Web::small(), 1, false);
    let store = made.path();
    let before = MirrorsParameters::least(10).run(&store, &[]);
    for (pairs, advice) in [("all", "or lower `farm`"), ("study", "to count as the study does")] {
        let text = format!("[mirrors]\nleast-pages = 2\nmax-pairs = 3\npairs = \"{pairs}\"\n");
        let job = job(made.folder.path(), &text);
        let ran = run(&["run", job.to_str().unwrap(), "-q", "--store", store.to_str().unwrap()]);
        assert_eq!(ran.code, Some(1));
        assert!(ran.stderr.contains("max-pairs = 3") && ran.stderr.contains(WEEKS[0]), "{}", ran.stderr);
        assert!(ran.stderr.contains(advice), "{}", ran.stderr);
    }
    assert!(tables(&store.join("mirrors")) == before);
}

#[test]
fn a_run_killed_at_any_moment_leaves_the_former_tables_or_the_new_ones() {
    let made = WebStore::new(Web::small(), 2, false);
    let store = made.path();
    let begun = Instant::now();
    let new = MirrorsParameters::least(3).run(&store, &["--workers", "2"]);
    let whole = begun.elapsed();
    let before = MirrorsParameters::least(10).run(&store, &[]);
    assert!(before != new);
    let job = job(made.folder.path(), "[mirrors]\nleast-pages = 3\n");
    let arguments = ["run", job.to_str().unwrap(), "-q", "--workers", "2", "--store", store.to_str().unwrap()];
    kill_at_moments(&arguments, whole, 10, |round| {
        assert!([&before, &new].contains(&&tables(&store.join("mirrors"))), "round {round}");
    });
    assert!(MirrorsParameters::least(10).run(&store, &[]) == before);
}

/// What is said of deleted pages and of removed weeks goes with them.
#[test]
fn deletions_and_vacuums_remove_the_tables() {
    let web = Web::small();
    let made = WebStore::new(web, 2, false);
    let (store, parameters) = (made.path(), MirrorsParameters::least(10));
    let store_text = store.to_str().unwrap();
    parameters.run(&store, &[]);
    run_well(&["run", "jobs/evolution.toml", "-q", "--store", store_text]);
    let host = &web.truth.mirrors[0].host;
    let dry = run_well(&["delete", "--store", store_text, "--host", host, "--dry-run"]);
    assert!(
        dry.stdout.contains("Would remove the tables of mirrors") && store.join("mirrors").exists(),
        "{}",
        dry.stdout
    );
    let ran = run_well(&["delete", "--store", store_text, "--host", host]);
    assert!(ran.stdout.contains("Removed the tables of mirrors"), "{}", ran.stdout);
    assert!(!store.join("mirrors").exists() && !store.join("_nigh/mirrors").exists());
    assert!(store.join("evolution").exists(), "it names no page");
    parameters.run(&store, &[]);
    let rows = found(&store).remove(WEEKS[1]).unwrap();
    assert!(rows.keys().all(|(a, b)| a != host && b != host));
    let ran = run_well(&["vacuum", "--store", store_text, "--keep", "1"]);
    assert!(ran.stdout.contains("mirrors (made of removed weeks; run its job again)"), "{}", ran.stdout);
    assert!(!store.join("mirrors").exists() && store.join("evolution").exists());
    parameters.run(&store, &[]);
    assert_right(&store, &parameters);
    // Tables of weeks that all stay, stay.
    run_well(&["vacuum", "--store", store_text, "--keep", "1"]);
    assert!(store.join("mirrors").exists());
}
