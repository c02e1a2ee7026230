//! Which of several hosts stays: by brute force from the tables of a week, with sets and maps, a
//! host at a time; and what all studies say of cases made by hand.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use nigh::records::{DocId, checksum};
use nigh::state::{History, Store};

use crate::program::{rows_of, week};
use crate::studies::avoid::made::{DATES, MadeCrawl, MadePage, MadeStore, host_of, rows};
use crate::weeks::redirected::Redirects;

/// Hosts that are in a pair, or of which the first comes before the second.
pub type HostNames = BTreeSet<(String, String)>;

/// A week of a store, as the order of hosts needs it; nothing of a store without weeks.
#[derive(Default)]
pub struct HostTwin {
    /// Host, cluster and first week of each page.
    pages: BTreeMap<i64, (String, i64, usize)>,
    /// The pages of each cluster.
    sizes: BTreeMap<i64, usize>,
    /// Links between pages of the week.
    links: Vec<(i64, i64)>,
}

/// The changes that each host had some weeks before a mirror of it, less those that a mirror had
/// before it, by the table `lags`; none if the mirrors job did not read this week.
pub fn leads(store: &Path, date: &str) -> BTreeMap<String, i64> {
    let mut leads = BTreeMap::new();
    let mirrors = store.join("mirrors");
    if !mirrors.exists() || !rows_of(&mirrors, "classes", &["week"]).iter().any(|row| row[0] == date) {
        return leads;
    }
    for row in rows_of(&mirrors, "lags", &["host", "copy", "weeks", "changes"]) {
        let changes: i64 = row[3].parse().unwrap();
        if row[2] != "null" && row[2] != "0" {
            *leads.entry(row[0].clone()).or_default() += changes;
            *leads.entry(row[1].clone()).or_default() -= changes;
        }
    }
    leads
}

impl HostTwin {
    pub fn read(store: &Path, date: &str) -> HostTwin {
        let history = History::open(&Store::at(store), None, None).unwrap();
        let of_week = week(store, date);
        let (mut pages, mut sizes, mut by_url) = (BTreeMap::new(), BTreeMap::new(), BTreeMap::new());
        for row in rows_of(&of_week, "clusters", &["doc", "host", "similar_root", "url"]) {
            let [doc, root]: [i64; 2] = [0, 2].map(|column| row[column].parse().unwrap());
            let first = history.weeks.iter().position(|past| past.knows(DocId::from_table(doc))).unwrap();
            *sizes.entry(root).or_default() += 1;
            by_url.insert(row[3].clone(), doc);
            pages.insert(doc, (row[1].clone(), root, first));
        }
        let redirects = Redirects::of(&of_week, by_url);
        let mut links = Vec::new();
        for row in rows_of(&of_week, "links", &["doc", "target_url", "target_doc"]) {
            let target = redirects.page(&row[1]).or(row[2].parse().ok());
            links.extend(target.filter(|target| pages.contains_key(target)).map(|to| (row[0].parse().unwrap(), to)));
        }
        HostTwin { pages, sizes, links }
    }

    fn clusters<'a>(&'a self, host: &'a str) -> impl Iterator<Item = i64> + 'a {
        self.pages.values().filter(move |page| page.0 == host).map(|page| page.1)
    }

    fn has_alone(&self, host: &str) -> bool {
        self.clusters(host).any(|cluster| self.sizes[&cluster] == 1)
    }

    /// Whether the first host has replicas of nine tenths of the pages of the second, and more.
    fn has_more(&self, more: &str, less: &str) -> bool {
        let of_more: BTreeSet<i64> = self.clusters(more).collect();
        let covered = self.clusters(less).filter(|cluster| of_more.contains(cluster)).count();
        let [more_pages, less_pages] = [more, less].map(|host| self.clusters(host).count());
        covered > 0
            && 10 * covered >= 9 * less_pages
            && (more_pages > less_pages || more_pages == less_pages && self.has_alone(more) && !self.has_alone(less))
    }

    /// The hosts of these pairs in their order. The first host of each pair of `before` comes
    /// before the second.
    pub fn order(
        &self,
        pairs: &HostNames,
        before: &HostNames,
        leads: &BTreeMap<String, i64>,
        urls: &dyn Fn(&str) -> usize,
    ) -> Vec<String> {
        let hosts: BTreeSet<&String> = pairs.iter().flat_map(|(a, b)| [a, b]).collect();
        let mut in_links: BTreeMap<&str, usize> = BTreeMap::new();
        for (from, to) in &self.links {
            let (host, cluster, _) = &self.pages[to];
            if self.pages[from].0 != *host && self.sizes[cluster] > 1 {
                *in_links.entry(host).or_default() += 1;
            }
        }
        let rank = |host: &&String| {
            let first = self.pages.values().filter(|page| page.0 == **host).map(|page| page.2).min();
            (
                Reverse(in_links.get(&***host).copied().unwrap_or(0)),
                Reverse(self.clusters(host).count()),
                Reverse(urls(host)),
                first.unwrap_or(usize::MAX),
                Reverse(leads.get(*host).copied().unwrap_or(0)),
                (checksum(host.as_bytes()) as u64).max(1),
            )
        };
        let mut waits: HostNames = before.clone();
        for (a, b) in pairs {
            for (more, less) in [(a, b), (b, a)] {
                if self.has_more(more, less) {
                    waits.insert((more.clone(), less.clone()));
                }
            }
        }
        let mut left: Vec<&String> = hosts.into_iter().collect();
        left.sort_by_cached_key(rank);
        let mut order = Vec::new();
        while !left.is_empty() {
            let is_first =
                |host: &&String| !left.iter().any(|other| waits.contains(&((*other).clone(), (*host).clone())));
            let at = left.iter().position(is_first).unwrap_or(0);
            order.push(left.remove(at).clone());
        }
        order
    }
}

/// Pages of a host that all link to each other, and to `links`.
fn site(crawl: &mut MadeCrawl, host: &str, texts: impl IntoIterator<Item = u64>, links: &[String]) {
    directory(crawl, &format!("http://{host}/docs/"), texts, links);
}

fn directory(crawl: &mut MadeCrawl, prefix: &str, texts: impl IntoIterator<Item = u64>, links: &[String]) {
    let texts: Vec<u64> = texts.into_iter().collect();
    let urls: Vec<String> = (0..texts.len()).map(|page| format!("{prefix}{page}.html")).collect();
    for (url, text) in urls.iter().zip(texts) {
        let links = urls.iter().chain(links).cloned().collect();
        crawl.pages.push(MadePage { url: url.clone(), text, links });
    }
}

/// The host that each study lets stay, of two mirrors: mirrors, mirrors-by-url, collections, avoid.
fn stay(store: &MadeStore, date: &str) -> [String; 4] {
    let rows_of = |study: &str, table: &str, columns: &[&str]| rows_of(&store.path().join(study), table, columns);
    let one = |mut hosts: Vec<String>| {
        hosts.dedup();
        hosts.join(" and ")
    };
    let groups = rows_of("mirrors", "groups", &["host", "preferred", "week"]).into_iter();
    let by_content = groups.filter(|row| row[1] == "true" && row[2] == date).map(|row| row[0].clone());
    let groups = rows_of("mirrors-by-url", "groups", &["host", "preferred"]).into_iter();
    let by_url = groups.filter(|row| row[1] == "true").map(|row| row[0].clone());
    let collections = rows_of("collections", "collections", &["host", "principal"]).into_iter();
    let principals = collections.filter(|row| row[1] == "true").map(|row| row[0].clone());
    let kept = rows(&store.avoid(&[])).into_iter().map(|row| host_of(&row.keep).to_owned());
    [by_content.collect(), by_url.collect(), principals.collect(), kept.collect()].map(one)
}

fn run_studies(store: &MadeStore) {
    for (study, fields) in
        [("mirrors", ""), ("collections", ""), ("mirrors-by-url", "least-urls = 10\n"), ("overlap", "")]
    {
        store.study(study, fields, &[]);
    }
}

/// Names of which sometimes the first and sometimes the second has the smaller hash, and the
/// smaller text.
const NAMES: [[&str; 2]; 2] = [["left.example", "right.example"], ["up.example", "down.example"]];

#[test]
fn a_mirror_that_has_less_stays_in_no_study_whatever_links_say() {
    for names in NAMES {
        for [whole, part] in [names, [names[1], names[0]]] {
            let mut crawl = MadeCrawl::default();
            site(&mut crawl, whole, 0..40, &[]);
            site(&mut crawl, part, 0..29, &[]);
            // The links of others lead to the mirror.
            let links: Vec<String> = (0..29).map(|page| format!("http://{part}/docs/{page}.html")).collect();
            site(&mut crawl, "others.example", 1000..1005, &links);
            let store = MadeStore::new(&[&crawl]);
            run_studies(&store);
            assert_eq!(stay(&store, DATES[0]), [whole; 4].map(str::to_owned));
        }
    }
}

#[test]
fn links_then_pages_then_age_decide_between_hosts_that_have_not_more() {
    for names in NAMES {
        for [first, second] in [names, [names[1], names[0]]] {
            let own = |of: &str| if of == first { 500..512u64 } else { 600..612 };
            let both = |crawl: &mut MadeCrawl, more: u64| {
                for host in [first, second] {
                    site(crawl, host, 0..30, &[]);
                    directory(crawl, &format!("http://{host}/{host}/"), own(host), &[]);
                }
                directory(crawl, &format!("http://{first}/more/"), 700..700 + more, &[]);
            };
            let of_links = |links: usize| {
                let (mut crawl, url) = (MadeCrawl::default(), format!("http://{first}/docs/3.html"));
                both(&mut crawl, 0);
                site(&mut crawl, "others.example", 1000..1005, &vec![url; links]);
                crawl
            };
            let mut of_pages = MadeCrawl::default();
            both(&mut of_pages, 3);
            let mut before = MadeCrawl::default();
            site(&mut before, first, 0..30, &[]);
            for crawls in [vec![&of_links(1)], vec![&of_pages], vec![&before, &of_links(0)]] {
                let store = MadeStore::new(&crawls);
                run_studies(&store);
                assert_eq!(
                    stay(&store, DATES[crawls.len() - 1]),
                    [first; 4].map(str::to_owned),
                    "{} weeks",
                    crawls.len()
                );
            }
        }
    }
}

#[test]
fn of_equal_mirrors_the_one_that_changes_first_stays() {
    for names in NAMES {
        let mut without = BTreeSet::new();
        for [leader, follower] in [names, [names[1], names[0]]] {
            let crawl = |changed_at_leader: u64, changed_at_follower: u64| {
                let texts = |changed: u64| (0..30u64).map(move |page| if page < changed { page + 100 } else { page });
                let mut crawl = MadeCrawl::default();
                site(&mut crawl, leader, texts(changed_at_leader), &[]);
                site(&mut crawl, follower, texts(changed_at_follower), &[]);
                crawl
            };
            let store = MadeStore::new(&[&crawl(0, 0), &crawl(4, 0), &crawl(4, 4)]);
            // Without tables of the mirrors job it is not known which one changes first.
            store.study("collections", "", &[]);
            let rows = rows_of(&store.path().join("collections"), "collections", &["host", "principal"]);
            without.extend(rows.into_iter().filter(|row| row[1] == "true").map(|row| row[0].clone()));
            run_studies(&store);
            assert_eq!(leads(&store.path(), DATES[2])[leader], 4);
            assert_eq!(stay(&store, DATES[2]), [leader; 4].map(str::to_owned));
        }
        assert_eq!(without.len(), 1, "the name decides, if nothing else does: {without:?}");
    }
}
