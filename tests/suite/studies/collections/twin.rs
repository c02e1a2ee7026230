//! The collections job by brute force: its tables from those of the week, with sets and maps.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use nigh::records::DocId;
use nigh::state::{History, Store};

use crate::program::{PlainUnionFind, Rows, each, job, longs, rows_of, run_well, tables, texts, week};
use crate::studies::host_order::leads;
use crate::weeks::redirected::Redirects;

/// The parameters of a job.
#[derive(Clone, Copy)]
pub struct CollectionsSettings {
    pub level: &'static str,
    pub all_links: bool,
    pub merge: &'static str,
    pub share: f64,
    pub least_size: usize,
    pub purity: f64,
}

impl Default for CollectionsSettings {
    fn default() -> CollectionsSettings {
        CollectionsSettings {
            level: "similar",
            all_links: false,
            merge: "share",
            share: 0.6,
            least_size: 10,
            purity: 0.9,
        }
    }
}

impl CollectionsSettings {
    pub fn toml(&self) -> String {
        let CollectionsSettings { level, all_links, merge, share, least_size, purity } = self;
        let links = if *all_links { "all" } else { "same-host" };
        format!(
            "[collections]\nlevel = \"{level}\"\nlinks = \"{links}\"\nmerge = \"{merge}\"\nshare = {share:?}\nleast-size = {least_size}\npurity = {purity:?}\n"
        )
    }

    /// Runs the job; gives the bytes of its tables.
    pub fn run(&self, store: &Path, flags: &[&str]) -> BTreeMap<String, Vec<u8>> {
        let folder = tempfile::tempdir().unwrap();
        let job = job(folder.path(), &self.toml());
        run_well(&[&["run", job.to_str().unwrap(), "-q", "--store", store.to_str().unwrap()], flags].concat());
        assert!(!store.join("_nigh/work").exists(), "nothing unfinished is left");
        tables(&store.join("collections"))
    }

    fn merges(&self, [from, to]: [usize; 2], s: usize, d: usize) -> bool {
        let covers = |part: usize, of: usize| part as f64 + 1e-9 >= self.share * of as f64;
        match self.merge {
            "strict" => from == s && s == d && d == to,
            "extended" => from == s && s >= d && d == to,
            _ => covers(s, from) && covers(d, to) && covers(from.min(to), from.max(to)),
        }
    }
}

/// A page of a week.
#[derive(Clone, Debug)]
pub struct ReplicaPage {
    pub doc: i64,
    pub url: String,
    pub host: String,
    pub title: String,
    pub bytes: i64,
    /// The root of its trivial cluster, or itself.
    pub root: i64,
    pub links: Vec<i64>,
    /// URLs that it links to and of which no week has a page.
    pub named: Vec<String>,
}

/// The pages of a week, by id.
pub fn pages(store: &Path, date: &str, level: &str) -> BTreeMap<i64, ReplicaPage> {
    let week = week(store, date);
    let mut pages: BTreeMap<i64, ReplicaPage> = BTreeMap::new();
    let documents = longs(&week, "documents", "doc").into_iter().zip(longs(&week, "documents", "bytes"));
    let names = texts(&week, "documents", "url").into_iter().zip(texts(&week, "documents", "host"));
    for (((doc, bytes), (url, host)), title) in documents.zip(names).zip(texts(&week, "documents", "title")) {
        pages
            .insert(doc, ReplicaPage { doc, url, host, title, bytes, root: doc, links: Vec::new(), named: Vec::new() });
    }
    if level == "overlap" {
        let rows = rows_of(&store.join("overlap"), "components", &["chunking", "doc", "component"]);
        for row in rows.into_iter().filter(|row| row[0] == "four-lines") {
            pages.get_mut(&row[1].parse().unwrap()).unwrap().root = row[2].parse().unwrap();
        }
    } else {
        let roots = longs(&week, "clusters", &format!("{level}_root"));
        for (doc, root) in longs(&week, "clusters", "doc").into_iter().zip(roots) {
            pages.get_mut(&doc).unwrap().root = root;
        }
    }
    let by_url: BTreeMap<String, i64> = pages.values().map(|page| (page.url.clone(), page.doc)).collect();
    let redirects = Redirects::of(&week, by_url);
    let mut targets: Vec<Option<i64>> = Vec::new();
    each(&week, "links", "target_doc", |array: &arrow_array::Int64Array| targets.extend(array.iter()));
    let urls = texts(&week, "links", "target_url");
    for ((doc, target), url) in longs(&week, "links", "doc").into_iter().zip(targets).zip(urls) {
        if target.is_none() && redirects.page(&url).is_none() {
            pages.get_mut(&doc).unwrap().named.push(url.clone());
        }
        let target = redirects.page(&url).or(target);
        if let Some(target) = target.filter(|target| pages.contains_key(target) && *target != doc) {
            pages.get_mut(&doc).unwrap().links.push(target);
        }
    }
    pages
}

/// The directories of a URL.
pub fn directories(url: &str) -> Vec<String> {
    let begin = url.find("://").unwrap() + 3;
    let path = url.split('?').next().unwrap();
    (begin..path.len()).filter(|at| &url[*at..=*at] == "/").map(|at| url[..=at].to_owned()).collect()
}

/// The hash that orders hosts of which nothing else is different.
fn host_hash(host: &str) -> u64 {
    (nigh::records::checksum(host.as_bytes()) as u64).max(1)
}

/// A collection.
struct Collection {
    cluster: i64,
    pages: BTreeSet<i64>,
    in_links: usize,
    is_principal: bool,
    principal: i64,
}

/// The number of the week that saw a page first.
fn first_seen(history: &History, doc: i64) -> usize {
    history.weeks.iter().position(|past| past.knows(DocId::from_table(doc))).unwrap()
}

/// The expected tables but `judged` and `savings`, for a run that follows no other.
pub fn twin(store: &Path, date: &str, settings: &CollectionsSettings) -> BTreeMap<&'static str, Rows> {
    let history = History::open(&Store::at(store), None, None).unwrap();
    let (pages, leads) = (pages(store, date, settings.level), leads(store, date));
    let mut of_root: BTreeMap<i64, BTreeSet<i64>> = BTreeMap::new();
    pages.values().for_each(|page| {
        of_root.entry(page.root).or_default().insert(page.doc);
    });
    let is_clustered = |doc: i64| of_root[&pages[&doc].root].len() > 1;
    // Link statistics.
    let mut links: BTreeMap<(i64, i64), BTreeSet<(i64, i64)>> = BTreeMap::new();
    let mut in_links: BTreeMap<i64, usize> = BTreeMap::new();
    for page in pages.values() {
        for target in page.links.iter().map(|target| &pages[target]) {
            if target.host != page.host {
                *in_links.entry(target.doc).or_default() += 1;
            }
            let counts = settings.all_links || target.host == page.host;
            if counts && target.root != page.root && is_clustered(page.doc) && is_clustered(target.doc) {
                links.entry((page.root, target.root)).or_default().insert((page.doc, target.doc));
            }
        }
    }
    let distinct =
        |all: &BTreeSet<(i64, i64)>, of: fn(&(i64, i64)) -> i64| all.iter().map(of).collect::<BTreeSet<_>>().len();
    links.retain(|(from, to), all| {
        let sizes = [of_root[from].len(), of_root[to].len()];
        settings.merges(sizes, distinct(all, |link| link.0), distinct(all, |link| link.1))
    });
    let mut similar = PlainUnionFind::default();
    links.keys().for_each(|(from, to)| similar.union(*from, *to));
    let mut clusters: BTreeMap<i64, BTreeSet<i64>> = BTreeMap::new();
    for (from, to) in links.keys() {
        let name = similar.find(*from);
        clusters.entry(name).or_default().extend([*from, *to]);
    }
    // Collections, by joining.
    let mut rows: BTreeMap<&'static str, Rows> = BTreeMap::new();
    for table in ["clusters", "collections", "pages", "replicas", "sizes", "avoid"] {
        rows.insert(table, Rows::new());
    }
    let (mut collections, mut sizes): (Vec<Collection>, BTreeMap<(usize, usize), usize>) = Default::default();
    for roots in clusters.values() {
        let cluster = *roots.first().unwrap();
        let members: BTreeSet<i64> = roots.iter().flat_map(|root| of_root[root].iter().copied()).collect();
        let mut of_cluster: Vec<(bool, i64, i64)> = links
            .iter()
            .filter(|((from, _), _)| roots.contains(from))
            .flat_map(|(_, all)| all.iter().map(|(a, b)| (pages[a].host != pages[b].host, *a, *b)))
            .collect();
        of_cluster.sort_unstable();
        let mut partial: Vec<BTreeSet<i64>> = members.iter().map(|doc| BTreeSet::from([*doc])).collect();
        for (_, a, b) in of_cluster {
            let place = |doc: i64| partial.iter().position(|pages| pages.contains(&doc)).unwrap();
            let (a, b) = (place(a), place(b));
            let roots = |at: usize| partial[at].iter().map(|doc| pages[doc].root).collect::<BTreeSet<_>>();
            if a != b && roots(a).is_disjoint(&roots(b)) {
                let taken = partial.remove(a.max(b));
                partial[a.min(b)].extend(taken);
            }
        }
        let of = |collection: &BTreeSet<i64>| {
            collection.iter().map(|doc| in_links.get(doc).copied().unwrap_or(0)).sum::<usize>()
        };
        let largest = partial.iter().map(BTreeSet::len).max().unwrap();
        let host = |all: &BTreeSet<i64>| pages[all.first().unwrap()].host.clone();
        let on_host = |all: &BTreeSet<i64>| {
            let host = host(all);
            pages.values().filter(move |page| page.host == host).collect::<Vec<&ReplicaPage>>()
        };
        let has_own = |all: &BTreeSet<i64>| on_host(all).iter().any(|page| !is_clustered(page.doc));
        let links_to = |all: &BTreeSet<i64>| {
            let to = on_host(all).into_iter().filter(|page| is_clustered(page.doc));
            to.map(|page| in_links.get(&page.doc).copied().unwrap_or(0)).sum::<usize>()
        };
        let rank = |all: &&BTreeSet<i64>| {
            let age = on_host(all).iter().map(|page| first_seen(&history, page.doc)).min();
            let lead = Reverse(leads.get(&host(all)).copied().unwrap_or(0));
            let of_host = (Reverse(links_to(all)), Reverse(on_host(all).len()), age, lead, host_hash(&host(all)));
            (of_host, Reverse(of(all)), Reverse(all.len()), *all.first().unwrap())
        };
        let roots_of = |all: &BTreeSet<i64>| all.iter().map(|doc| pages[doc].root).collect::<BTreeSet<_>>();
        let has_more = |more: &BTreeSet<i64>, less: &BTreeSet<i64>| {
            let is_larger = more.len() > less.len() || !has_own(less) && has_own(more);
            is_larger && roots_of(more).is_superset(&roots_of(less))
        };
        let large: Vec<&BTreeSet<i64>> = partial.iter().filter(|all| 2 * all.len() >= largest).collect();
        let stay = large.iter().copied().filter(|less| !large.iter().any(|more| has_more(more, less)));
        let principal = stay.min_by_key(rank).unwrap();
        let principal = principal.clone();
        let entry =
            principal.iter().min_by_key(|doc| (Reverse(in_links.get(doc).copied().unwrap_or(0)), **doc)).unwrap();
        let cardinality = roots.iter().map(|root| of_root[root].len()).max().unwrap();
        *sizes.entry((cardinality, roots.len())).or_default() += 1;
        let entry = &pages[entry];
        rows.get_mut("clusters").unwrap().insert(vec![
            cluster.to_string(),
            roots.len().to_string(),
            cardinality.to_string(),
            members.len().to_string(),
            partial.len().to_string(),
            (roots.len() < settings.least_size).to_string(),
            entry.title.clone(),
            entry.url.clone(),
        ]);
        let first = *principal.first().unwrap();
        collections.extend(partial.into_iter().map(|all| Collection {
            cluster,
            in_links: of(&all),
            is_principal: all == principal,
            principal: first,
            pages: all,
        }));
    }
    let mut copies: BTreeMap<i64, &Collection> = BTreeMap::new();
    for collection in &collections {
        let first = *collection.pages.first().unwrap();
        rows.get_mut("collections").unwrap().insert(vec![
            collection.cluster.to_string(),
            first.to_string(),
            pages[&first].host.clone(),
            common_directory(&collection.pages, &pages),
            collection.pages.len().to_string(),
            collection.in_links.to_string(),
            collection.is_principal.to_string(),
        ]);
        for doc in &collection.pages {
            let ids = [*doc, collection.cluster, first, pages[doc].root];
            rows.get_mut("pages").unwrap().insert(ids.map(|id| id.to_string()).to_vec());
            let of = collections.iter().find(|all| all.pages.first() == Some(&collection.principal)).unwrap();
            let has_principal = of.pages.iter().any(|other| pages[other].root == pages[doc].root);
            if !collection.is_principal && collection.pages.len() >= settings.least_size && has_principal {
                copies.insert(*doc, collection);
            }
        }
    }
    for ((cardinality, size), clusters) in sizes {
        rows.get_mut("sizes").unwrap().insert([cardinality, size, clusters].map(|of| of.to_string()).to_vec());
    }
    for (name, least, most) in [
        ("0", 0, 0),
        ("1", 1, 1),
        ("2", 2, 2),
        ("3-9", 3, 9),
        ("10-99", 10, 99),
        ("100-999", 100, 999),
        ("1000 and more", 1000, usize::MAX),
    ] {
        let count = pages.values().filter(|page| (least..=most).contains(&(of_root[&page.root].len() - 1))).count();
        let share = if pages.is_empty() { "null".into() } else { (count as f64 / pages.len() as f64).to_string() };
        rows.get_mut("replicas").unwrap().insert(vec![name.into(), count.to_string(), share]);
    }
    let avoid = avoided(&pages, &copies, &collections, settings, date);
    rows.insert("avoid", avoid);
    rows
}

/// The longest directory of all of these pages.
fn common_directory(docs: &BTreeSet<i64>, pages: &BTreeMap<i64, ReplicaPage>) -> String {
    let all: Vec<Vec<String>> = docs.iter().map(|doc| directories(&pages[doc].url)).collect();
    all[0].iter().rfind(|directory| all.iter().all(|of| of.contains(directory))).cloned().unwrap_or_default()
}

fn avoided(
    pages: &BTreeMap<i64, ReplicaPage>,
    copies: &BTreeMap<i64, &Collection>,
    collections: &[Collection],
    settings: &CollectionsSettings,
    date: &str,
) -> Rows {
    let mut below: BTreeMap<String, BTreeSet<i64>> = BTreeMap::new();
    for page in pages.values() {
        directories(&page.url).into_iter().for_each(|directory| {
            below.entry(directory).or_default().insert(page.doc);
        });
    }
    let copied = |docs: &BTreeSet<i64>| docs.iter().filter(|doc| copies.contains_key(doc)).count();
    let has_copy = |all: &Collection| {
        let of_cluster = collections.iter().filter(|other| other.cluster == all.cluster && !other.is_principal);
        of_cluster.map(|copy| copy.pages.len()).max() >= Some(settings.least_size)
    };
    let kept = collections.iter().filter(|all| all.is_principal && has_copy(all));
    let kept: BTreeSet<i64> = kept.flat_map(|all| all.pages.iter().copied()).collect();
    let innermost = |url: &str| directories(url).last().unwrap().clone();
    let seen: BTreeSet<String> = copies.keys().map(|doc| innermost(&pages[doc].url)).collect();
    let named: BTreeSet<&String> = pages.values().flat_map(|page| &page.named).collect();
    let named_below = |prefix: &str| named.iter().filter(move |url| url.starts_with(prefix)).collect::<Vec<_>>();
    let unseen = |prefix: &str| named_below(prefix).iter().filter(|url| !seen.contains(&innermost(url))).count();
    below.retain(|_, docs| kept.is_disjoint(docs));
    below.retain(|prefix, docs| {
        let known = docs.len() + unseen(prefix);
        copied(docs) > 1 && copied(docs) as f64 + 1e-9 >= settings.purity * known as f64
    });
    // No wider than what was seen.
    below.retain(|prefix, docs| {
        let within = |doc: &i64| directories(&pages[doc].url).into_iter().find(|all| all.len() > prefix.len());
        let within: BTreeSet<Option<String>> = docs.iter().map(within).collect();
        within.len() > 1 || within.contains(&None)
    });
    let outermost = below.iter().filter(|(prefix, _)| {
        !below.keys().any(|outer| outer.len() < prefix.len() && prefix.starts_with(outer.as_str()))
    });
    let row = |(prefix, docs): (&String, &BTreeSet<i64>)| {
        let mut of_collection: BTreeMap<i64, usize> = BTreeMap::new();
        for doc in docs.iter().filter(|doc| copies.contains_key(doc)) {
            *of_collection.entry(*copies[doc].pages.first().unwrap()).or_default() += 1;
        }
        let most = of_collection.iter().min_by_key(|(first, count)| (Reverse(**count), **first)).unwrap().0;
        let principal = collections.iter().find(|all| all.pages.first() == Some(most)).unwrap().principal;
        let of = collections.iter().find(|all| all.pages.first() == Some(&principal)).unwrap();
        let principal_url = match common_directory(&of.pages, pages) {
            none if none.is_empty() => directories(&pages[&principal].url)[0].clone(),
            directory => directory,
        };
        let first = docs.first().unwrap();
        vec![
            prefix.clone(),
            pages[first].host.clone(),
            principal_url,
            docs.len().to_string(),
            copied(docs).to_string(),
            docs.iter().map(|doc| pages[doc].bytes).sum::<i64>().to_string(),
            named_below(prefix).len().to_string(),
            date.to_owned(),
            date.to_owned(),
        ]
    };
    let found = outermost.map(row).collect();
    listed(&Rows::new(), &found)
}

/// The rows of `stay`, and those of `now` that do not avoid the principal copy of another one.
fn listed(stay: &Rows, now: &Rows) -> Rows {
    let mut all: Vec<Vec<String>> = stay.iter().cloned().collect();
    let mut principals: Vec<String> = all.iter().map(|row| row[2].clone()).collect();
    let mut now: Vec<&Vec<String>> = now.iter().collect();
    now.sort_by_key(|row| (Reverse(row[4].parse::<u64>().unwrap()), &row[0]));
    for row in now {
        let is_avoided = all.iter().any(|other| row[2].starts_with(&other[0]));
        let avoids = principals.iter().any(|principal| principal.starts_with(&row[0]));
        if is_avoided || avoids {
            continue;
        }
        let mut row = row.clone();
        if let Some(at) = all.iter().position(|other| other[0] == row[0]) {
            row[7] = all.remove(at)[7].clone();
        }
        principals.push(row[2].clone());
        all.push(row);
    }
    let is_within = |row: &Vec<String>| all.iter().any(|outer| outer[0] != row[0] && row[0].starts_with(&outer[0]));
    all.iter().filter(|row| !is_within(row)).cloned().collect()
}

/// What the crawl of a week would have been without the pages below some prefixes: pages, skipped,
/// bytes, similar before and after, duplicates before and after, lost.
pub fn savings(store: &Path, date: &str, level: &str, prefixes: &[String]) -> Vec<String> {
    let pages = pages(store, date, if level == "overlap" { "similar" } else { level });
    let is_skipped = |page: &ReplicaPage| prefixes.iter().any(|prefix| page.url.starts_with(prefix.as_str()));
    let mut clusters: BTreeMap<i64, Vec<bool>> = BTreeMap::new();
    pages.values().for_each(|page| clusters.entry(page.root).or_default().push(is_skipped(page)));
    let left = |of: &Vec<bool>| of.iter().filter(|skipped| !**skipped).count();
    let several = |count: usize| if count > 1 { count } else { 0 };
    let skipped = pages.values().filter(|page| is_skipped(page)).count();
    let share = |part: usize, of: usize| if of == 0 { 0.0 } else { part as f64 / of as f64 }.to_string();
    vec![
        pages.len().to_string(),
        skipped.to_string(),
        pages.values().filter(|page| is_skipped(page)).map(|page| page.bytes).sum::<i64>().to_string(),
        share(clusters.values().map(|of| several(of.len())).sum(), pages.len()),
        share(clusters.values().map(|of| several(left(of))).sum(), pages.len() - skipped),
        clusters.values().map(|of| of.len() - 1).sum::<usize>().to_string(),
        clusters.values().map(|of| left(of).saturating_sub(1)).sum::<usize>().to_string(),
        clusters.values().filter(|of| left(of) == 0).map(Vec::len).sum::<usize>().to_string(),
    ]
}

/// The columns of a table, in order.
pub fn columns(table: &str) -> Vec<&'static str> {
    let tables = nigh::tables::result_tables("collections");
    let described = tables.iter().find(|described| described.name == table).unwrap();
    described.spec.columns.iter().map(|column| column.name).collect()
}

/// The rows of a table of the job.
pub fn rows(store: &Path, table: &str) -> Rows {
    let all = rows_of(&store.join("collections"), table, &columns(table));
    let (count, rows) = (all.len(), Rows::from_iter(all));
    assert_eq!(rows.len(), count, "{table}: a row comes twice");
    rows
}

/// Compares the tables of the last run, which followed no other, with brute force. Returns the rows
/// of `collections` and of `avoid`.
pub fn assert_right(store: &Path, date: &str, settings: &CollectionsSettings) -> [usize; 2] {
    let expected = twin(store, date, settings);
    for (table, wanted) in &expected {
        let found = rows(store, table);
        let differ: Vec<_> = found.symmetric_difference(wanted).take(6).collect();
        assert!(differ.is_empty(), "{table}: {} and {} rows, {differ:#?}", found.len(), wanted.len());
    }
    ["collections", "avoid"].map(|table| expected[table].len())
}

/// The expected rows of `judged` and of `avoid` of a run for a week that follows one with the rows
/// `former` of `avoid`; `now` are the rows of `avoid` that the week alone gives.
pub fn judged(store: &Path, date: &str, settings: &CollectionsSettings, former: &Rows, now: &Rows) -> [Rows; 2] {
    let level = if settings.level == "overlap" { "similar" } else { settings.level };
    let pages = pages(store, date, level);
    let below = |prefix: &str| pages.values().filter(|page| page.url.starts_with(prefix)).collect::<Vec<_>>();
    let is_skipped = |page: &ReplicaPage| former.iter().any(|row| page.url.starts_with(&row[0]));
    let has_left = |root: i64| pages.values().any(|page| page.root == root && !is_skipped(page));
    let (mut judged, mut stay, mut dropped) = (Rows::new(), Rows::new(), BTreeSet::new());
    for row in former {
        let of_prefix = below(&row[0]);
        let lost = of_prefix.iter().filter(|page| !has_left(page.root)).count();
        let of_principal = below(&row[2]).len();
        let verdict = match (of_principal, of_prefix.len(), lost) {
            (0, ..) => "principal gone",
            (_, 0, _) => "not crawled",
            (_, pages, lost) if ((pages - lost) as f64) + 1e-9 < settings.purity * pages as f64 => "losing",
            _ if now.iter().any(|own| own[0].starts_with(&row[0]))
                && !now.iter().any(|own| row[0].starts_with(&own[0])) =>
            {
                "too wide"
            }
            _ => "kept",
        };
        let counts = [of_prefix.len(), lost, of_principal].map(|count| count.to_string());
        judged.insert([&row[..], &counts, &[verdict.to_owned()]].concat());
        if ["kept", "not crawled"].contains(&verdict) {
            stay.insert(row.clone());
        } else {
            dropped.insert(row[0].clone());
        }
    }
    let is_around = |row: &&Vec<String>| dropped.iter().any(|prefix: &String| prefix.starts_with(&row[0]));
    let now = now.iter().filter(|row| !is_around(row)).cloned().collect();
    [judged, listed(&stay, &now)]
}
