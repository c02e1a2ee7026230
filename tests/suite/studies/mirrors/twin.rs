//! The pairs of mirrors by brute force, from the tables of a store.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use arrow_array::{Array, BooleanArray, Date32Array, Float64Array, Int64Array, StringArray};
use nigh::state::Store;
use nigh::studies::mirrors::steps::HostName;
use nigh::tables::{Scan, field};

use crate::program::{files, job, longs, run_well, tables, texts, week};

/// What a job is given.
#[derive(Clone, Default)]
pub struct MirrorsParameters {
    pub least: u64,
    pub root: bool,
    pub study: bool,
    pub smaller: bool,
    pub keep_unresolved: bool,
    pub farm: Option<u64>,
    /// Addresses by host, in place of those of pages.
    pub addresses: Option<BTreeMap<String, BTreeSet<String>>>,
}

impl MirrorsParameters {
    pub fn least(least: u64) -> MirrorsParameters {
        MirrorsParameters { least, ..MirrorsParameters::default() }
    }

    /// Runs the job on a store, and returns the bytes of its tables.
    pub fn run(&self, store: &Path, flags: &[&str]) -> BTreeMap<String, Vec<u8>> {
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
pub struct SeenPage {
    pub doc: i64,
    pub host: String,
    /// The rest of the URL, from the first slash.
    pub rest: String,
    pub root: i64,
    pub is_clustered: bool,
}

/// A week of a store, as its tables have it.
pub struct SeenWeek {
    pub date: String,
    pub pages: Vec<SeenPage>,
    pub addresses: BTreeMap<String, BTreeSet<String>>,
    pub redirects: BTreeMap<String, BTreeMap<String, u64>>,
}

impl SeenWeek {
    /// The URLs of a host that redirect to another one, if they are most of its URLs, else 0.
    pub fn redirected(&self, host: &str, target: &str, least: u64) -> u64 {
        let Some(targets) = self.redirects.get(host) else { return 0 };
        let urls = targets.get(target).copied().unwrap_or_default();
        let pages = self.pages.iter().filter(|page| page.host == host).count() as u64;
        if urls >= least && 2 * urls > pages + targets.values().sum::<u64>() { urls } else { 0 }
    }
}

fn host_of(url: &str) -> String {
    url.split('/').nth(2).unwrap().to_owned()
}

pub fn seen(store: &Path) -> Vec<SeenWeek> {
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
pub struct PairRow {
    pub class: String,
    pub www: bool,
    /// pages_a, pages_b, clusters, size, matched1 to matched4, matched_path, redirects.
    pub numbers: [i64; 10],
    pub mirror: bool,
    pub coverage: [Option<f64>; 2],
}

/// The rows of a week by the names of the two hosts.
pub type PairRows = BTreeMap<(String, String), PairRow>;

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
pub fn found(store: &Path) -> BTreeMap<String, PairRows> {
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
pub fn twin(week: &SeenWeek, parameters: &MirrorsParameters) -> PairRows {
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
