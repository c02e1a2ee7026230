//! The mirrors-by-url job by brute force: its tables from those of the week, with dictionaries of
//! texts.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use nigh::records::checksum;

use super::known::KnownBefore;
use crate::program::{PlainUnionFind, job, longs, rows_of, run_well, tables, texts, week};
use crate::studies::host_order::{HostNames, HostTwin, leads};

/// Rows of a table, each with its values as text.
pub type TableRows = Vec<Vec<String>>;

/// The parameters of a job.
#[derive(Clone)]
pub struct MirrorsByUrlSettings {
    pub pages_only: bool,
    pub least_urls: usize,
    pub paths: usize,
    pub most_hosts: usize,
    pub whole_paths: bool,
    pub tests: usize,
    pub similar: f64,
    pub failed: bool,
    /// Further lines of the job.
    pub more: String,
}

impl Default for MirrorsByUrlSettings {
    fn default() -> MirrorsByUrlSettings {
        MirrorsByUrlSettings {
            pages_only: false,
            least_urls: 5,
            paths: 20,
            most_hosts: 20,
            whole_paths: true,
            tests: 9,
            similar: 0.5,
            failed: false,
            more: String::new(),
        }
    }
}

impl MirrorsByUrlSettings {
    pub fn toml(&self) -> String {
        let MirrorsByUrlSettings {
            pages_only,
            least_urls,
            paths,
            most_hosts,
            whole_paths,
            tests,
            similar,
            failed,
            more,
        } = self;
        let urls = if *pages_only { "pages" } else { "pages-and-links" };
        let unfetched = if *failed { "failed" } else { "unknown" };
        format!(
            "[mirrors-by-url]\nurls = \"{urls}\"\nleast-urls = {least_urls}\npaths = {paths}\nmost-hosts = {most_hosts}\nwhole-paths = {whole_paths}\n\
             tests = {tests}\nsimilar = {similar:?}\nunfetched = \"{unfetched}\"\n{more}\n"
        )
    }

    /// Runs the job; gives the bytes of its tables.
    pub fn run(&self, store: &Path, flags: &[&str]) -> BTreeMap<String, Vec<u8>> {
        let folder = tempfile::tempdir().unwrap();
        let job = job(folder.path(), &self.toml());
        run_well(&[&["run", job.to_str().unwrap(), "-q", "--store", store.to_str().unwrap()], flags].concat());
        assert!(!store.join("_nigh/work").exists(), "nothing unfinished is left");
        tables(&store.join("mirrors-by-url"))
    }
}

/// Terms: runs of letters, and `*` for runs of digits. An escape like `%C3` is between terms.
fn terms(text: &str) -> Vec<String> {
    let (mut terms, mut last) = (Vec::<String>::new(), ' ');
    let mut parts = text.split('%');
    let mut unescaped = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let is_escape = part.len() > 1 && part.bytes().take(2).all(|byte| byte.is_ascii_hexdigit());
        unescaped += &format!("-{}", if is_escape { &part[2..] } else { part });
    }
    let text = unescaped;
    for of in text.chars() {
        let of = of.to_ascii_lowercase();
        if of.is_ascii_digit() {
            if !last.is_ascii_digit() {
                terms.push("*".into());
            }
        } else if of.is_ascii_lowercase() {
            if !last.is_ascii_lowercase() {
                terms.push(String::new());
            }
            terms.last_mut().unwrap().push(of);
        }
        last = of;
    }
    terms
}

#[derive(Clone, PartialEq, Eq, PartialOrd, Ord)]
enum Feature {
    Host(String, String),
    Path(usize, String, String),
    Whole(String),
}

const STOP: [&str; 8] = ["htm", "html", "txt", "main", "index", "home", "bin", "cgi"];
const TOOLS: [&str; 3] = ["nph", "dynaweb", "zyview"];

fn path_features(sample: &[String], whole: bool) -> BTreeSet<Feature> {
    let (mut counts, mut features) = (BTreeMap::<Feature, usize>::new(), BTreeSet::new());
    for path in sample {
        let terms = terms(path);
        if terms.iter().any(|term| TOOLS.contains(&term.as_str())) {
            continue;
        }
        if whole && path != "/" {
            features.insert(Feature::Whole(path.clone()));
        }
        for (at, pair) in terms.windows(2).enumerate() {
            if !pair.iter().any(|term| STOP.contains(&term.as_str())) {
                *counts.entry(Feature::Path(at, pair[0].clone(), pair[1].clone())).or_default() += 1;
            }
        }
    }
    features.extend(counts.into_iter().filter(|(_, count)| *count > 1).map(|(feature, _)| feature));
    features
}

fn hash(path: &str) -> u128 {
    checksum(path.as_bytes()) >> 64
}

/// A test: source, target, path, outcome, similarity, near.
type TestRow = (String, String, String, &'static str, Option<f64>, bool);

/// A pair of the list, with its tests.
struct PairWithTests {
    hosts: [String; 2],
    score: f64,
    features: [usize; 2],
    tests: Vec<TestRow>,
    level: &'static str,
    failures: [&'static str; 2],
}

const OUTCOMES: [&str; 8] = ["SF", "TF", "FM", "FS", "HS", "TS", "NS", "unknown"];

impl PairWithTests {
    fn count(&self, outcome: &str) -> usize {
        self.tests.iter().filter(|test| test.3 == outcome).count()
    }

    fn is_mirror(&self) -> bool {
        ["1", "2", "3", "4"].contains(&self.level)
    }
}

/// The least common multiple of 1 to 20, of which weights are whole numbers.
const WEIGHT: u64 = 232_792_560;

/// Puts the hosts of pairs in order; the second gives the URLs of a host.
type OrderOfHosts<'a> = &'a dyn Fn(&HostNames, &dyn Fn(&str) -> usize) -> Vec<String>;

/// All tables by their names, except the scores of `candidates`, which are returned beside them.
fn expected(
    known: &KnownBefore,
    settings: &MirrorsByUrlSettings,
    order: OrderOfHosts<'_>,
) -> (BTreeMap<&'static str, TableRows>, Vec<f64>) {
    let mut of_hosts: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for ((host, path), said) in &known.urls {
        if said.fetched || !(said.gone || said.listed_gone && !said.listed_fetched) {
            of_hosts.entry(host).or_default().push(path);
        }
    }
    of_hosts.retain(|_, paths| paths.len() >= settings.least_urls);
    let mut samples: BTreeMap<&str, Vec<String>> = BTreeMap::new();
    let mut of_features: BTreeMap<Feature, BTreeSet<&str>> = BTreeMap::new();
    for (host, paths) in &of_hosts {
        let mut sorted = paths.clone();
        sorted.sort_by_key(|path| hash(path));
        let more = (paths.len() as f64 / (5 * settings.paths) as f64).log2().floor().max(0.0) as usize;
        sorted.truncate(settings.paths + more);
        let sample: Vec<String> = sorted.into_iter().map(str::to_owned).collect();
        let names = terms(host);
        let names = names.windows(2).map(|pair| Feature::Host(pair[0].clone(), pair[1].clone()));
        for feature in path_features(&sample, settings.whole_paths).into_iter().chain(names) {
            of_features.entry(feature).or_default().insert(host);
        }
        samples.insert(host, sample);
    }
    // The weight, the number of features and that of features of paths.
    let mut common: BTreeMap<[&str; 2], (u64, usize, usize)> = BTreeMap::new();
    for (feature, hosts) in &of_features {
        if hosts.len() < 2 || hosts.len() > settings.most_hosts {
            continue;
        }
        let of_host = matches!(feature, Feature::Host(..));
        let weight = if of_host { 4 } else { 1 } * WEIGHT / hosts.len() as u64;
        for a in hosts {
            for b in hosts.range(*a..).skip(1) {
                let sums = common.entry([a, b]).or_default();
                *sums = (sums.0 + weight, sums.1 + 1, sums.2 + usize::from(!of_host));
            }
        }
    }
    let urls = |host: &str| of_hosts[host].len();
    let mut pairs = Vec::new();
    for (mut hosts, (weight, features, of_paths)) in common {
        if features < 2 || of_paths == 0 {
            continue;
        }
        hosts.sort_by_key(|host| (Reverse(urls(host)), *host));
        let logarithms: f64 = hosts.iter().map(|host| (urls(host) as f64).ln()).sum();
        let score = weight as f64 / WEIGHT as f64 / (1.0 + 0.1 * logarithms);
        let hosts = hosts.map(str::to_owned);
        let (tests, failures) = (Vec::new(), ["null"; 2]);
        pairs.push(PairWithTests { hosts, score, features: [features, of_paths], tests, level: "few", failures });
    }
    pairs.sort_by(|a, b| b.score.total_cmp(&a.score).then_with(|| a.hosts.cmp(&b.hosts)));
    for pair in &mut pairs {
        test(pair, known, settings, &samples);
    }
    let is_plain = |host: &str| samples[host].iter().any(|path| known.urls[&(host.to_owned(), path.clone())].plain);
    let tables = rows(&pairs, known, &urls, &is_plain, order);
    (tables, pairs.iter().map(|pair| pair.score).collect())
}

fn test(
    pair: &mut PairWithTests,
    known: &KnownBefore,
    settings: &MirrorsByUrlSettings,
    samples: &BTreeMap<&str, Vec<String>>,
) {
    let [a, b] = pair.hosts.clone();
    let mut tests = vec![(a.clone(), b.clone(), "/".to_owned())];
    for (source, target) in [(&a, &b), (&b, &a)] {
        let has = |path: &&String| known.page(source, path).is_some();
        let tested: BTreeSet<String> = tests.iter().map(|(_, _, path)| path.clone()).collect();
        let sample = || samples[source.as_str()].iter().filter(|path| !tested.contains(*path));
        let paths = sample().filter(has).chain(sample().filter(|path| !has(path))).take(settings.tests);
        tests.extend(paths.map(|path| (source.clone(), target.clone(), path.clone())).collect::<Vec<_>>());
    }
    for (source, target, path) in tests {
        let page = |host: &String| known.page(host, &path);
        let failed = |host: &String| settings.failed || known.has_failed(host, &path);
        let (mut similarity, mut near) = (None, false);
        let outcome = match (page(&source), page(&target)) {
            (None, _) => {
                if failed(&source) {
                    "SF"
                } else {
                    "unknown"
                }
            }
            (_, None) => {
                if failed(&target) {
                    "TF"
                } else {
                    "unknown"
                }
            }
            (Some(a), Some(b)) if a.checksum == b.checksum => {
                similarity = Some(1.0);
                "FM"
            }
            (Some(a), Some(b)) => match (&a.features, &b.features) {
                (Some(a), Some(b)) => {
                    let equal = a.iter().zip(b).filter(|(a, b)| a == b).count();
                    let share = equal as f64 / a.len() as f64;
                    (similarity, near) = (Some(share), (share - settings.similar).abs() <= 0.1);
                    match equal {
                        0 => "NS",
                        all if all == a.len() => "FS",
                        some if some as f64 >= settings.similar * a.len() as f64 => "HS",
                        _ => "TS",
                    }
                }
                _ => "NS",
            },
        };
        pair.tests.push((source, target, path, outcome, similarity, near));
    }
    let found: BTreeSet<&str> =
        pair.tests.iter().map(|test| test.3).filter(|of| !["SF", "unknown"].contains(of)).collect();
    let compared = pair.tests.len() - pair.count("SF") - pair.count("unknown");
    let has_pages = |host: &String| pair.tests.iter().any(|test| known.page(host, &test.2).is_some());
    let only = |of: &[&str]| found.iter().all(|outcome| of.contains(outcome));
    pair.failures = pair.hosts.each_ref().map(|host| known.failure(host));
    pair.level = if pair.failures.contains(&"dns") {
        "dns-failure"
    } else if pair.failures != ["null"; 2] {
        "server-failure"
    } else if compared < 3 || !pair.hosts.iter().all(has_pages) {
        "few"
    } else if only(&["FM"]) {
        "1"
    } else if only(&["FM", "FS"]) {
        "2"
    } else if only(&["FM", "FS", "HS"]) {
        "3"
    } else if ["FM", "FS", "HS"].iter().any(|outcome| found.contains(outcome)) {
        "4"
    } else if found.contains("TS") && !found.contains("TF") {
        "5"
    } else {
        "mismatch"
    };
}

fn rows(
    pairs: &[PairWithTests],
    known: &KnownBefore,
    urls: &dyn Fn(&str) -> usize,
    is_plain: &dyn Fn(&str) -> bool,
    order: OrderOfHosts<'_>,
) -> BTreeMap<&'static str, TableRows> {
    let mut tables: BTreeMap<&str, TableRows> = BTreeMap::new();
    let row = |values: &[&dyn ToString]| values.iter().map(|value| value.to_string()).collect::<Vec<String>>();
    let (mut candidates, mut tests, mut probes, mut asked) =
        (TableRows::new(), TableRows::new(), TableRows::new(), BTreeSet::new());
    for (number, pair) in pairs.iter().enumerate() {
        let ([a, b], rank) = (&pair.hosts, number + 1);
        let same_domain = nigh::text::domain(a) == nigh::text::domain(b);
        let mut of_pair =
            row(&[&rank, a, b, &same_domain, &pair.features[0], &pair.features[1], &urls(a), &urls(b), &pair.level]);
        of_pair.extend(pair.failures.map(str::to_owned));
        of_pair.extend(OUTCOMES.map(|outcome| pair.count(outcome).to_string()));
        candidates.push(of_pair);
        for (source, target, path, outcome, similarity, near) in &pair.tests {
            let similarity = similarity.map_or("null".to_owned(), |share| share.to_string());
            tests.push(row(&[&rank, source, target, path, outcome, &similarity, near]));
            for host in [a, b].into_iter().filter(|_| *outcome == "unknown") {
                let of = (host.clone(), path.clone());
                if !known.pages.contains_key(&of) && !known.has_failed(host, path) && asked.insert(of) {
                    let scheme = if is_plain(host) { "http" } else { "https" };
                    probes.push(row(&[&rank, &format!("{scheme}://{host}{path}")]));
                }
            }
        }
    }
    let published = ["9619", "700", "406", "6011", "189", "4895", "null", "null", "null"];
    let untested = ["dns-failure", "server-failure", "few"];
    let levels =
        ["1", "2", "3", "4", "5", "mismatch"].into_iter().chain(untested).zip(published).map(|(level, published)| {
            row(&[&level, &pairs.iter().filter(|pair| pair.level == level).count(), &published])
        });
    tables.insert("levels", levels.collect());
    let ranking = (1..=20).map(|part| {
        let first = pairs[..(pairs.len() * part).div_ceil(20)].iter().filter(|pair| !untested.contains(&pair.level));
        let share = |levels: &[&str]| match first.clone().count() {
            0 => "null".to_owned(),
            all => (first.clone().filter(|pair| levels.contains(&pair.level)).count() as f64 / all as f64).to_string(),
        };
        let all = first.clone().count();
        row(&[&(part as f64 / 20.0), &all, &share(&["1", "2", "3"]), &share(&["1", "2", "3", "4"])])
    });
    tables.insert("ranking", ranking.collect());
    let mut domains: BTreeMap<&str, BTreeMap<[String; 2], usize>> = BTreeMap::new();
    for pair in pairs {
        let group = match pair.level {
            "1" | "2" | "3" => "1-3",
            "4" | "5" => pair.level,
            _ => continue,
        };
        let mut of_pair = pair.hosts.clone().map(|host| {
            let host = if host.starts_with('[') { "0".to_owned() } else { host.split(':').next().unwrap().to_owned() };
            let label = host.split('.').next_back().unwrap().to_owned();
            if label.parse::<u64>().is_ok() { "address".to_owned() } else { label }
        });
        of_pair.sort();
        if of_pair[0] != of_pair[1] {
            *domains.entry(group).or_default().entry(of_pair).or_default() += 1;
        }
    }
    let mut of_domains = TableRows::new();
    for (group, counts) in domains {
        let all: usize = counts.values().sum();
        let mut sorted: Vec<_> = counts.into_iter().collect();
        sorted.sort_by_key(|(domains, pairs)| (Reverse(*pairs), domains.clone()));
        of_domains.extend(
            sorted.into_iter().map(|([a, b], pairs)| row(&[&group, &a, &b, &pairs, &(pairs as f64 / all as f64)])),
        );
    }
    tables.insert("domains", of_domains);
    let hosts: Vec<&String> = pairs.iter().filter(|pair| pair.is_mirror()).flat_map(|pair| &pair.hosts).collect();
    let hosts: Vec<&String> = hosts.into_iter().collect::<BTreeSet<_>>().into_iter().collect();
    let number = |host: &String| hosts.binary_search(&host).unwrap() as i64;
    let mut joined = PlainUnionFind::default();
    for pair in pairs.iter().filter(|pair| pair.is_mirror()) {
        joined.union(number(&pair.hosts[0]), number(&pair.hosts[1]));
    }
    let mut groups: BTreeMap<i64, Vec<&String>> = BTreeMap::new();
    hosts.iter().for_each(|host| groups.entry(joined.find(number(host))).or_default().push(host));
    let mirrors = pairs.iter().filter(|pair| pair.is_mirror()).map(|pair| pair.hosts.clone());
    let order = order(&mirrors.map(|[a, b]| (a, b)).collect(), urls);
    let preferred = |group: &Vec<&String>| order.iter().find(|host| group.contains(host)).unwrap().clone();
    let mut groups: Vec<(String, Vec<&String>)> =
        groups.into_values().map(|group| (preferred(&group), group)).collect();
    groups.sort();
    let of_groups = groups.iter().enumerate().flat_map(|(number, (preferred, group))| {
        group.iter().map(move |host| row(&[&(number + 1), host, &urls(host), &(*host == preferred)]))
    });
    tables.insert("groups", of_groups.collect());
    tables.insert("candidates", candidates);
    tables.insert("tests", tests);
    tables.insert("probes", probes);
    tables
}

/// Clusters of pages of two places, and the first example: of places, the pages by cluster.
fn shared(places: [&BTreeMap<i64, BTreeSet<i64>>; 2], urls: &BTreeMap<i64, String>) -> [String; 3] {
    let both: Vec<&i64> = places[0].keys().filter(|cluster| places[1].contains_key(cluster)).collect();
    let example = |place: usize| match both.first() {
        Some(cluster) => urls[places[place][cluster].first().unwrap()].clone(),
        None => "null".to_owned(),
    };
    [both.len().to_string(), example(0), example(1)]
}

/// The table `compared`: from the tables of all three jobs.
pub fn compared(store: &Path, date: &str) -> TableRows {
    let week = week(store, date);
    let has = |job: &str| store.join(job).exists();
    let (docs, urls) = (longs(&week, "clusters", "doc"), texts(&week, "clusters", "url"));
    let urls: BTreeMap<i64, String> = docs.iter().copied().zip(urls).collect();
    let mut of_hosts: BTreeMap<String, BTreeMap<i64, BTreeSet<i64>>> = BTreeMap::new();
    let (roots, sizes) = (longs(&week, "clusters", "similar_root"), longs(&week, "clusters", "similar_size"));
    for (((doc, host), root), size) in docs.iter().zip(texts(&week, "clusters", "host")).zip(roots).zip(sizes) {
        let of_host = of_hosts.entry(host).or_default();
        if size > 1 {
            of_host.entry(root).or_default().insert(*doc);
        }
    }
    let null = || "null".to_owned();
    let sorted = |a: &String, b: &String| [a.min(b).clone(), a.max(b).clone()];
    // By pair: the class and whether it is a mirror; rank, level and score.
    let (mut content, mut by_url) = (BTreeMap::new(), BTreeMap::new());
    if has("mirrors") {
        let columns = ["week", "host_a", "host_b", "class", "mirror"];
        for row in rows_of(&store.join("mirrors"), "pairs", &columns).into_iter().filter(|row| row[0] == date) {
            let of_pair = content.entry(sorted(&row[1], &row[2])).or_insert((row[3].clone(), false));
            if row[4] == "true" {
                *of_pair = (row[3].clone(), true);
            }
        }
    }
    for row in rows_of(&store.join("mirrors-by-url"), "candidates", &["host_a", "host_b", "rank", "level", "score"]) {
        by_url.insert(sorted(&row[0], &row[1]), row[2..].to_vec());
    }
    let is_mirror = |pair: &[String; 2]| by_url.get(pair).is_some_and(|of| ["1", "2", "3", "4"].contains(&&*of[1]));
    let pairs = content.iter().filter(|(_, of)| of.1).map(|(pair, _)| pair);
    let pairs: BTreeSet<_> = pairs.chain(by_url.keys().filter(|pair| is_mirror(pair))).collect();
    let mut rows = TableRows::new();
    let none = BTreeMap::new();
    for pair in pairs {
        let of_content = has("mirrors").then(|| content.get(pair).is_some_and(|of| of.1));
        let mut row = vec!["host".to_owned(), pair[0].clone(), pair[1].clone(), null(), null(), null(), null()];
        row.push(of_content.map_or_else(null, |is| is.to_string()));
        row.push(is_mirror(pair).to_string());
        row.push(content.get(pair).map_or_else(null, |of| of.0.clone()));
        row.extend(by_url.get(pair).cloned().unwrap_or_else(|| vec![null(); 3]));
        row.extend(shared(pair.each_ref().map(|host| of_hosts.get(host).unwrap_or(&none)), &urls));
        rows.push(row);
    }
    if has("collections") {
        let folder = store.join("collections");
        let mut pages: BTreeMap<String, BTreeMap<i64, BTreeSet<i64>>> = BTreeMap::new();
        for row in rows_of(&folder, "pages", &["collection", "root", "doc"]) {
            let of_collection = pages.entry(row[0].clone()).or_default();
            of_collection.entry(row[1].parse().unwrap()).or_default().insert(row[2].parse().unwrap());
        }
        let columns = ["cluster", "principal", "collection", "host", "prefix", "pages"];
        let all = rows_of(&folder, "collections", &columns);
        let all = || all.iter().filter(|row| row[5].parse::<u64>().unwrap() >= 10 && !row[4].is_empty());
        let mut directories = TableRows::new();
        for principal in all().filter(|row| row[1] == "true") {
            for copy in all().filter(|row| row[0] == principal[0] && row[1] == "false") {
                let hosts = sorted(&principal[3], &copy[3]);
                let mut row = vec!["directory".to_owned()];
                row.extend([principal, copy].map(|of| of[3].clone()));
                row.extend([principal, copy].map(|of| of[4].clone()));
                row.extend([principal, copy].map(|of| of[2].clone()));
                row.extend(["true".to_owned(), is_mirror(&hosts).to_string(), null(), null(), null(), null()]);
                row.extend(shared([principal, copy].map(|of| &pages[&of[2]]), &urls));
                directories.push(row);
            }
        }
        directories.sort_by_key(|row| (row[3].clone(), row[4].clone(), row[1].clone(), row[2].clone()));
        rows.extend(directories);
    }
    rows
}

/// The columns of a table.
pub fn columns(table: &str) -> Vec<&'static str> {
    let tables = nigh::tables::result_tables("mirrors-by-url");
    let described = tables.iter().find(|of| of.name == table).unwrap();
    described.spec.columns.iter().map(|column| column.name).collect()
}

/// Asserts that all tables are those of brute force; returns the rows of each.
pub fn assert_right(
    store: &Path,
    known: &KnownBefore,
    settings: &MirrorsByUrlSettings,
) -> BTreeMap<&'static str, TableRows> {
    let shown = run_well(&["show", store.to_str().unwrap(), "--job", "mirrors-by-url", "--json"]).stdout;
    let summary: serde_json::Value = serde_json::from_str(&shown).unwrap();
    let order = |pairs: &HostNames, urls: &dyn Fn(&str) -> usize| match summary["last"].as_str() {
        Some(date) => HostTwin::read(store, date).order(pairs, &HostNames::new(), &leads(store, date), urls),
        None => HostTwin::default().order(pairs, &HostNames::new(), &BTreeMap::new(), urls),
    };
    let (expected, scores) = expected(known, settings, &order);
    for (table, rows) in &expected {
        let all = columns(table);
        let without_score: Vec<&str> = all.iter().copied().filter(|column| *column != "score").collect();
        let found = rows_of(&store.join("mirrors-by-url"), table, &without_score);
        for (number, (found, expected)) in found.iter().zip(rows).enumerate() {
            assert_eq!(found, expected, "{table}, row {number}; {}", settings.toml());
        }
        assert_eq!(found.len(), rows.len(), "{table}; {}", settings.toml());
    }
    // The study's mirrors are those of levels 1 to 5.
    let mirrors = || expected["candidates"].iter().filter(|row| row[8].parse::<u8>().is_ok());
    let hosts: BTreeSet<&String> = mirrors().flat_map(|row| &row[1..3]).collect();
    assert_eq!(summary["as_the_study"], serde_json::json!([mirrors().count(), hosts.len()]), "{}", settings.toml());
    let found = rows_of(&store.join("mirrors-by-url"), "candidates", &["score"]);
    assert!(found.iter().map(|row| row[0].parse::<f64>().unwrap()).eq(scores), "scores; {}", settings.toml());
    expected
}
