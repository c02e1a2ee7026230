//! The list of a week judged by the pages of the next one, on a made web; beside the list that the
//! collections job made before its prefixes were as narrow as what was seen, and beside the hosts
//! that the mirrors job does not prefer.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use nigh::records::DocId;
use nigh::state::{History, Store};

use super::made::{directories, rows};
use crate::program::{PlainUnionFind, job, rows_of, run_well, week};
use crate::web::{WEEKS, Web, WebSize, WebStore};

/// Pages of a week that a list skips, and those of them of which no page like them is left.
#[derive(Debug)]
struct Judged {
    skipped: usize,
    lost: usize,
}

fn judged(store: &Path, date: &str, prefixes: &[String]) -> Judged {
    let mut clusters: BTreeMap<String, Vec<bool>> = BTreeMap::new();
    for row in rows_of(&week(store, date), "clusters", &["similar_root", "url"]) {
        let is_skipped = prefixes.iter().any(|prefix| row[1].starts_with(prefix.as_str()));
        clusters.entry(row[0].clone()).or_default().push(is_skipped);
    }
    let lost = clusters.values().filter(|of| of.iter().all(|skipped| *skipped)).map(Vec::len).sum();
    Judged { skipped: clusters.values().flatten().filter(|skipped| **skipped).count(), lost }
}

/// A collection of the job, as it grew; which one stays is decided here.
#[derive(Clone, Debug, Default)]
struct OldCollection {
    cluster: i64,
    in_links: i64,
    /// Documents, and the roots of their clusters.
    pages: BTreeMap<i64, i64>,
}

/// The list of the collections job as it was: of the collections of a cluster that with the most
/// links stays, whatever the others have, and a directory is listed if nine tenths of its crawled
/// pages are copies, whatever links name there and however little of it was crawled.
fn old_list(store: &Path, date: &str) -> Vec<String> {
    let history = History::open(&Store::at(store), None, None).unwrap();
    let seen = |doc: i64| history.weeks.iter().position(|past| past.knows(DocId::from_table(doc)));
    let folder = store.join("collections");
    let number = |row: &Vec<String>, column: usize| row[column].parse::<i64>().unwrap();
    let mut collections: BTreeMap<i64, OldCollection> = BTreeMap::new();
    for row in rows_of(&folder, "collections", &["collection", "cluster", "in_links"]) {
        let (cluster, in_links) = (number(&row, 1), number(&row, 2));
        collections.insert(number(&row, 0), OldCollection { cluster, in_links, pages: BTreeMap::new() });
    }
    for row in rows_of(&folder, "pages", &["collection", "doc", "root"]) {
        collections.get_mut(&number(&row, 0)).unwrap().pages.insert(number(&row, 1), number(&row, 2));
    }
    let mut of_clusters: BTreeMap<i64, Vec<&OldCollection>> = BTreeMap::new();
    collections.values().for_each(|of| of_clusters.entry(of.cluster).or_default().push(of));
    // Copies with the pages of their principal collection, and the pages of principal ones.
    let (mut copies, mut kept): (BTreeMap<i64, Vec<i64>>, BTreeSet<i64>) = Default::default();
    for all in of_clusters.values() {
        let largest = all.iter().map(|of| of.pages.len()).max().unwrap();
        let key = |of: &&&OldCollection| {
            let age = of.pages.keys().map(|doc| seen(*doc)).min();
            (Reverse(of.in_links), Reverse(of.pages.len()), age, *of.pages.keys().next().unwrap())
        };
        let principal = *all.iter().filter(|of| 2 * of.pages.len() >= largest).min_by_key(key).unwrap();
        let roots: BTreeSet<i64> = principal.pages.values().copied().collect();
        let others = || all.iter().filter(|of| !std::ptr::eq(**of, principal) && of.pages.len() >= 10);
        if others().next().is_some() {
            kept.extend(principal.pages.keys());
        }
        for (doc, _) in others().flat_map(|of| &of.pages).filter(|(_, root)| roots.contains(root)) {
            copies.insert(*doc, principal.pages.keys().copied().collect());
        }
    }
    let urls: BTreeMap<i64, String> = rows_of(&week(store, date), "clusters", &["doc", "url"])
        .into_iter()
        .map(|row| (number(&row, 0), row[1].clone()))
        .collect();
    let mut below: BTreeMap<&str, BTreeSet<i64>> = BTreeMap::new();
    for (doc, url) in &urls {
        directories(url).into_iter().for_each(|of| _ = below.entry(of).or_default().insert(*doc));
    }
    let copied = |docs: &BTreeSet<i64>| docs.iter().filter(|doc| copies.contains_key(doc)).count();
    below.retain(|_, docs| {
        kept.is_disjoint(docs) && copied(docs) > 1 && copied(docs) as f64 + 1e-9 >= 0.9 * docs.len() as f64
    });
    let is_within = |prefix: &str| below.keys().any(|outer| outer.len() < prefix.len() && prefix.starts_with(outer));
    let outermost = below.iter().filter(|(prefix, _)| !is_within(prefix));
    // Each with the directory that the principal collection of its first copy has in common.
    let mut found: Vec<(Reverse<usize>, &str, String)> = outermost
        .map(|(prefix, docs)| {
            let of_copy = copies.iter().find(|(doc, _)| docs.contains(doc)).unwrap().1;
            let common = directories(&urls[&of_copy[0]])
                .into_iter()
                .rfind(|directory| of_copy.iter().all(|doc| urls[doc].starts_with(directory)));
            (Reverse(copied(docs)), *prefix, common.unwrap_or_default().to_owned())
        })
        .collect();
    found.sort();
    let (mut list, mut principals): (Vec<String>, Vec<String>) = Default::default();
    for (_, prefix, principal) in found {
        let is_avoided = list.iter().any(|listed| principal.starts_with(listed.as_str()));
        if !is_avoided && !principals.iter().any(|of| of.starts_with(prefix)) {
            list.push(prefix.to_owned());
            principals.push(principal);
        }
    }
    list
}

/// All hosts of groups of mirrors but the one with the most pages: what docs/mirrors.md advised.
fn old_hosts(store: &Path, date: &str) -> Vec<String> {
    let mut pages: BTreeMap<String, usize> = BTreeMap::new();
    for row in rows_of(&week(store, date), "clusters", &["host"]) {
        *pages.entry(row[0].clone()).or_default() += 1;
    }
    let names: Vec<&String> = pages.keys().collect();
    let number = |host: &String| names.binary_search(&host).unwrap() as i64;
    let (mut joined, mut hosts) = (PlainUnionFind::default(), BTreeSet::new());
    for row in rows_of(&store.join("mirrors"), "pairs", &["host_a", "host_b", "mirror", "week"]) {
        if row[2] == "true" && row[3] == date {
            joined.union(number(&row[0]), number(&row[1]));
            hosts.extend([row[0].clone(), row[1].clone()]);
        }
    }
    let mut groups: BTreeMap<i64, Vec<&String>> = BTreeMap::new();
    hosts.iter().for_each(|host| groups.entry(joined.find(number(host))).or_default().push(host));
    let mut dropped = Vec::new();
    for mut group in groups.into_values() {
        group.sort_by_key(|host| (Reverse(pages[*host]), *host));
        dropped.extend(group[1..].iter().map(|host| format!("http://{host}/")));
    }
    dropped
}

/// The figures are in docs/avoid.md.
#[test]
fn a_list_skips_more_and_loses_less_a_week_later_than_the_old_ones_did() {
    let web = Web::of(&WebSize::default());
    let made = WebStore::new(&web, 1, true);
    let (store, text) = (made.path(), made.path().display().to_string());
    for study in ["[collections]", "[mirrors]", "[mirrors-by-url]\nleast-urls = 10", "[overlap]"] {
        let job = job(made.folder.path(), study);
        run_well(&["run", job.to_str().unwrap(), "-q", "--store", &text]);
    }
    let list = |flags: &[&str]| -> Vec<String> {
        let list = run_well(&[&["avoid", text.as_str(), "--json"], flags].concat()).stdout;
        rows(&serde_json::from_str(&list).unwrap()).into_iter().map(|row| row.prefix).collect()
    };
    let [impure, default, pure] = [list(&["--purity", "0.9"]), list(&[]), list(&["--purity", "0.95"])];
    let lists = [impure, default, pure, old_list(&store, WEEKS[0]), old_hosts(&store, WEEKS[0])];
    made.add(&web.week(1), true);
    for date in &WEEKS[..2] {
        let judged = lists.each_ref().map(|list| judged(&store, date, list));
        let names = ["purity 0.9", "the default purity", "purity 0.95", "the old list", "the old advice on hosts"];
        for (name, Judged { skipped, lost }) in names.iter().zip(&judged) {
            eprintln!("{date}, {name}: {skipped} skipped, {lost} lost");
        }
        let [impure, default, pure, old, hosts] = judged;
        assert!(impure.skipped >= old.skipped.max(hosts.skipped) && 4 * impure.lost <= hosts.lost, "{impure:?}");
        if *date == WEEKS[1] {
            assert!(default.skipped >= hosts.skipped && 5 * default.lost <= hosts.lost, "{default:?} {hosts:?}");
        }
        assert!(pure.skipped >= old.skipped && 3 * pure.lost <= old.lost, "{pure:?} {old:?}");
    }
}
