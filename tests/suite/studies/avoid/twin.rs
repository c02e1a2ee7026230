//! The list by brute force: from the tables of the week and of the studies, with sets of texts,
//! page by page and pair by pair.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use nigh::records::checksum;

use super::made::{PrefixRow, directories};
use crate::program::{rows_of, week};
use crate::studies::host_order::leads;
use crate::weeks::redirected::Redirects;

const WHYS: [&str; 6] = ["alias", "redirect", "mirror by content", "mirror by URL", "collection", "exact copies"];

#[derive(Clone, Debug)]
struct AvoidPage {
    doc: i64,
    url: String,
    host: String,
    /// The root of its cluster of very similar pages.
    unit: i64,
    /// Its set of exact copies.
    copies: Option<String>,
}

/// A relation of two hosts.
type SharingHosts = BTreeMap<(String, String), BTreeSet<usize>>;

pub struct AvoidTwin {
    pages: Vec<AvoidPage>,
    /// The page, the URL that it links to, its page, and the page that this leads to.
    links: Vec<(i64, String, Option<i64>, Option<i64>)>,
    redirects: Vec<(String, Option<i64>)>,
    pairs: SharingHosts,
    redirected: Vec<(String, String)>,
    listed: Vec<(String, String)>,
    addresses: BTreeMap<String, BTreeSet<String>>,
    first_seen: BTreeMap<i64, usize>,
    leads: BTreeMap<String, i64>,
    purity: f64,
    least: usize,
    /// Hosts in their order.
    order: Vec<String>,
}

#[derive(Default)]
struct OfPage {
    whys: BTreeSet<usize>,
    is_later: bool,
}

#[derive(Clone)]
struct TwinCandidate {
    prefix: String,
    whys: Vec<String>,
    counts: [u64; 3],
    rank: (bool, bool, Reverse<usize>, bool),
    keep: Option<String>,
}

fn is_below(url: &str, prefix: &str) -> bool {
    url.starts_with(prefix)
}

impl AvoidTwin {
    /// Reads a week; all studies that have tables must be of it. `dates` are the weeks up to it.
    pub fn read(store: &Path, dates: &[&str], purity: f64, least: usize) -> AvoidTwin {
        let date = dates[dates.len() - 1];
        let of_week = week(store, date);
        let has = |study: &str, table: &str| store.join(study).join(table).exists();
        let rows = |study: &str, table: &str, columns: &[&str]| match has(study, table) {
            true => rows_of(&store.join(study), table, columns),
            false => Vec::new(),
        };
        let components: BTreeMap<String, String> = rows("overlap", "components", &["chunking", "doc", "component"])
            .into_iter()
            .filter(|row| row[0] == "document")
            .map(|row| (row[1].clone(), row[2].clone()))
            .collect();
        let columns = ["doc", "url", "host", "similar_root", "exact_root", "exact_size"];
        let pages: Vec<AvoidPage> = rows_of(&of_week, "clusters", &columns)
            .into_iter()
            .map(|row| {
                let copies = match has("overlap", "components") {
                    true => components.get(&row[0]).cloned(),
                    false => (row[5] != "1").then(|| row[4].clone()),
                };
                let [doc, unit] = [0, 3].map(|column| row[column].parse().unwrap());
                AvoidPage { doc, url: row[1].clone(), host: row[2].clone(), unit, copies }
            })
            .collect();
        let by_url = pages.iter().map(|page| (page.url.clone(), page.doc)).collect();
        let followed = Redirects::of(&of_week, by_url);
        let links = rows_of(&of_week, "links", &["doc", "target_url", "target_doc"]).into_iter();
        let links = links
            .map(|row| {
                let target: Option<i64> = row[2].parse().ok();
                (row[0].parse().unwrap(), row[1].clone(), target, followed.page(&row[1]).or(target))
            })
            .collect();
        let targets: BTreeMap<String, String> = rows_of(&of_week, "redirects", &["url", "target_url"])
            .into_iter()
            .map(|row| (row[0].clone(), row[1].clone()))
            .collect();
        let of_url: BTreeMap<&str, &AvoidPage> = pages.iter().map(|page| (&*page.url, page)).collect();
        let last = |url: &str| {
            let mut at = url;
            for _ in 0..20 {
                at = targets.get(at)?;
                if let Some(page) = of_url.get(at) {
                    return Some(page.unit);
                }
            }
            None
        };
        let redirects = targets.keys().filter(|url| !of_url.contains_key(&***url));
        let redirects = redirects.map(|url| (url.clone(), last(url))).collect();
        let mut pairs = SharingHosts::new();
        let mut add = |a: &str, b: &str, why: usize| {
            pairs.entry((a.to_owned(), b.to_owned())).or_default().insert(why);
            pairs.entry((b.to_owned(), a.to_owned())).or_default().insert(why);
        };
        let mut redirected = Vec::new();
        for row in rows("mirrors", "pairs", &["week", "host_a", "host_b", "class"]) {
            match (row[0] == date, &*row[3]) {
                (true, "alias") => add(&row[1], &row[2], 0),
                (true, "kept") => add(&row[1], &row[2], 2),
                (true, "redirect") => redirected.push((row[1].clone(), row[2].clone())),
                _ => {}
            }
        }
        for row in rows("mirrors-by-url", "candidates", &["host_a", "host_b", "level"]) {
            if ["1", "2", "3", "4"].contains(&&*row[2]) {
                add(&row[0], &row[1], 3);
            }
        }
        let listed = rows("collections", "avoid", &["prefix", "principal_url"]).into_iter();
        let listed = listed.map(|row| (row[0].clone(), row[1].clone())).collect();
        let mut addresses: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
        for row in rows_of(&of_week, "documents", &["host", "ip"]) {
            addresses.entry(row[0].clone()).or_default().insert(row[1].clone());
        }
        let mut first_seen = BTreeMap::new();
        for (number, date) in dates.iter().enumerate() {
            for row in rows_of(&week(store, date), "urls", &["doc"]) {
                first_seen.entry(row[0].parse().unwrap()).or_insert(number);
            }
        }
        let order = Vec::new();
        let mut twin = AvoidTwin {
            pages,
            links,
            redirects,
            pairs,
            redirected,
            listed,
            addresses,
            first_seen,
            leads: leads(store, date),
            purity,
            least,
            order,
        };
        twin.order = twin.hosts_in_order();
        twin
    }

    fn size(&self, unit: i64) -> usize {
        self.pages.iter().filter(|page| page.unit == unit).count()
    }

    fn of_host<'a>(&'a self, host: &'a str) -> impl Iterator<Item = &'a AvoidPage> {
        self.pages.iter().filter(move |page| page.host == host)
    }

    fn hosts_in_order(&self) -> Vec<String> {
        let hosts: BTreeSet<String> = self.pages.iter().map(|page| page.host.clone()).collect();
        let sizes: BTreeMap<i64, usize> = self.pages.iter().map(|page| (page.unit, self.size(page.unit))).collect();
        let by_doc: BTreeMap<i64, &AvoidPage> = self.pages.iter().map(|page| (page.doc, page)).collect();
        let rank = |host: &String| {
            let in_links = self.links.iter().filter(|(doc, .., target)| {
                let target = target.and_then(|target| by_doc.get(&target));
                target
                    .is_some_and(|target| target.host == *host && by_doc[doc].host != *host && sizes[&target.unit] > 1)
            });
            let seen = self.of_host(host).map(|page| self.first_seen[&page.doc]).min();
            let hash = (checksum(host.as_bytes()) as u64).max(1);
            let lead = Reverse(self.leads.get(host).copied().unwrap_or(0));
            (Reverse(in_links.count()), Reverse(self.of_host(host).count()), seen, lead, hash)
        };
        let has_more = |more: &String, less: &String| {
            let of_more: BTreeSet<i64> = self.of_host(more).map(|page| page.unit).collect();
            let covered = self.of_host(less).filter(|page| of_more.contains(&page.unit)).count();
            let [pages_more, pages_less] = [more, less].map(|host| self.of_host(host).count());
            let [alone_more, alone_less] =
                [more, less].map(|host| self.of_host(host).any(|page| sizes[&page.unit] == 1));
            let is_related = self.pairs.contains_key(&(more.clone(), less.clone())) && covered > 0;
            let is_covered = covered as f64 + 1e-9 >= self.purity * pages_less as f64;
            is_related
                && is_covered
                && (pages_more > pages_less || pages_more == pages_less && alone_more && !alone_less)
        };
        let mut before: BTreeSet<(String, String)> = BTreeSet::new();
        for more in &hosts {
            for less in hosts.iter().filter(|less| *less != more) {
                let is_target = self.redirected.iter().any(|(host, target)| host == less && target == more);
                if is_target || has_more(more, less) {
                    before.insert((more.clone(), less.clone()));
                }
            }
        }
        let mut left: Vec<String> = hosts.into_iter().collect();
        left.sort_by_key(rank);
        let mut order = Vec::new();
        while !left.is_empty() {
            let is_first = |host: &String| !left.iter().any(|other| before.contains(&(other.clone(), host.clone())));
            let at = left.iter().position(is_first).unwrap_or(0);
            order.push(left.remove(at));
        }
        order
    }

    fn place(&self, host: &str) -> Option<usize> {
        self.order.iter().position(|of| of == host)
    }

    /// The hosts that pairs put together with this one, itself included.
    fn group(&self, host: &str) -> BTreeSet<String> {
        let mut group = BTreeSet::from([host.to_owned()]);
        loop {
            let next = self.pairs.keys().filter(|(a, _)| group.contains(a)).map(|(_, b)| b.clone()).collect();
            let before = group.len();
            group = &group | &next;
            if group.len() == before {
                return group;
            }
        }
    }

    fn first_of(&self, copies: &str) -> &AvoidPage {
        let of_listed = |page: &AvoidPage| {
            let is_below_side = |side: fn(&(String, String)) -> &String| {
                self.listed.iter().any(|listed| is_below(&page.url, side(listed)))
            };
            is_below_side(|(prefix, _)| prefix) && !is_below_side(|(_, keep)| keep)
        };
        let same = self.pages.iter().filter(|page| page.copies.as_deref() == Some(copies));
        same.min_by_key(|page| {
            (self.place(&page.host), of_listed(page), !page.url.starts_with("https:"), page.url.len(), &page.url)
        })
        .unwrap()
    }

    fn of(&self, page: &AvoidPage) -> OfPage {
        let mut of = OfPage::default();
        let others: Vec<&AvoidPage> =
            self.pages.iter().filter(|other| other.unit == page.unit && other.doc != page.doc).collect();
        let group = self.group(&page.host);
        let hosts: BTreeSet<&String> =
            others.iter().map(|page| &page.host).filter(|host| **host != page.host && group.contains(*host)).collect();
        if !hosts.is_empty() {
            of.is_later = hosts.iter().any(|host| self.place(host) < self.place(&page.host));
            let of_page = || self.pairs.iter().filter(|((a, _), _)| *a == page.host);
            let direct: Vec<&BTreeSet<usize>> =
                of_page().filter(|((_, b), _)| hosts.contains(b)).map(|(_, whys)| whys).collect();
            let all: Vec<&BTreeSet<usize>> = of_page().map(|(_, whys)| whys).collect();
            (if direct.is_empty() { all } else { direct }).into_iter().for_each(|whys| of.whys.extend(whys));
        }
        for (prefix, keep) in &self.listed {
            if is_below(&page.url, prefix) && others.iter().any(|other| !is_below(&other.url, prefix)) {
                of.whys.insert(4);
                of.is_later = true;
            }
            if is_below(&page.url, keep) && others.iter().any(|other| is_below(&other.url, prefix)) {
                of.whys.insert(4);
            }
        }
        if let Some(copies) = &page.copies {
            let first = self.first_of(copies);
            of.whys.insert(5);
            of.is_later |= first.doc != page.doc;
            if first.host != page.host && !self.addresses[&first.host].is_disjoint(&self.addresses[&page.host]) {
                of.whys.insert(0);
            }
        }
        of
    }

    fn candidates(&self) -> Vec<TwinCandidate> {
        let of_pages: Vec<OfPage> = self.pages.iter().map(|page| self.of(page)).collect();
        let mut all: BTreeSet<&str> = self.pages.iter().flat_map(|page| directories(&page.url)).collect();
        all.extend(self.redirects.iter().flat_map(|(url, _)| directories(url)));
        all.extend(self.listed.iter().map(|(prefix, _)| prefix.as_str()));
        let last = |url: &str| directories(url).last().unwrap().to_string();
        let pages_with_copies = self.pages.iter().zip(&of_pages).filter(|(_, of)| !of.whys.is_empty());
        let with_copies: BTreeSet<String> = pages_with_copies
            .map(|(page, _)| last(&page.url))
            .chain(self.redirects.iter().filter(|(_, unit)| unit.is_some()).map(|(url, _)| last(url)))
            .collect();
        let named: BTreeSet<&String> = self
            .links
            .iter()
            .filter(|(_, url, target, _)| target.is_none() && !self.redirects.iter().any(|(of, _)| of == url))
            .map(|(_, url, ..)| url)
            .collect();
        let mut candidates = Vec::new();
        for prefix in all {
            let below: Vec<(&AvoidPage, &OfPage)> =
                self.pages.iter().zip(&of_pages).filter(|(page, _)| is_below(&page.url, prefix)).collect();
            let redirects: Vec<&(String, Option<i64>)> =
                self.redirects.iter().filter(|(url, _)| is_below(url, prefix)).collect();
            let named: Vec<&&String> = named.iter().filter(|url| is_below(url, prefix)).collect();
            let unseen = named.iter().filter(|url| !with_copies.contains(&last(url))).count();
            let leading = redirects.iter().filter(|(_, unit)| unit.is_some()).count();
            let later = below.iter().filter(|(_, of)| of.is_later).count() + leading;
            let either = below.iter().filter(|(_, of)| !of.whys.is_empty()).count() + leading;
            let known = below.len() + redirects.len() + unseen;
            let is_pure = |copies: usize| copies as f64 + 1e-9 >= self.purity * known as f64;
            let urls: Vec<&str> =
                below.iter().map(|(page, _)| &*page.url).chain(redirects.iter().map(|(url, _)| &**url)).collect();
            let parts: BTreeSet<&str> = urls
                .iter()
                .map(|url| directories(url).into_iter().find(|of| of.len() > prefix.len()).unwrap_or(prefix))
                .collect();
            let is_wider = parts.len() == 1 && !parts.contains(prefix);
            let is_enough = |copies: usize| copies >= self.least && is_pure(copies) && !is_wider;
            let keep = self.listed.iter().find(|(listed, _)| listed == prefix).map(|(_, keep)| keep.clone());
            let is_shown = !urls.is_empty();
            let is_listed = keep.is_some() && (!is_shown || is_pure(either));
            if !is_enough(later) && !is_enough(either) && !is_listed {
                continue;
            }
            let mut counts = [0; 6];
            for (_, of) in &below {
                of.whys.iter().for_each(|why| counts[*why] += 1);
            }
            counts[1] += leading;
            let most = *counts.iter().max().unwrap();
            let is_finding = |count: usize| count > 0 && (2 * count >= either || count == most);
            let whys = WHYS.iter().zip(counts).filter(|(_, count)| is_finding(*count)).map(|(why, _)| why.to_string());
            let copies = if is_enough(later) { later } else { either };
            candidates.push(TwinCandidate {
                prefix: prefix.to_owned(),
                whys: if is_shown { whys.collect() } else { vec!["collection".to_owned()] },
                counts: [below.len(), redirects.len(), named.len()].map(|count| count as u64),
                rank: (!is_shown, !is_enough(later), Reverse(copies), !is_listed),
                keep: keep.filter(|_| is_listed),
            });
        }
        candidates.sort_by(|a, b| (a.rank, a.prefix.len(), &a.prefix).cmp(&(b.rank, b.prefix.len(), &b.prefix)));
        candidates
    }

    /// The pages of which nothing is left if these prefixes are skipped.
    fn lost(&self, prefixes: &[&str]) -> Vec<&AvoidPage> {
        let is_skipped = |page: &AvoidPage| prefixes.iter().any(|prefix| is_below(&page.url, prefix));
        let left: BTreeSet<i64> = self.pages.iter().filter(|page| !is_skipped(page)).map(|page| page.unit).collect();
        self.pages.iter().filter(|page| !left.contains(&page.unit)).collect()
    }

    /// The rows of the list, without samples.
    pub fn rows(&self) -> Vec<PrefixRow> {
        let mut chosen: Vec<TwinCandidate> = Vec::new();
        for candidate in self.candidates() {
            let mut prefixes: Vec<&str> = chosen.iter().map(|of| &*of.prefix).collect();
            if prefixes.iter().any(|prefix| is_below(&candidate.prefix, prefix) || is_below(prefix, &candidate.prefix))
            {
                continue;
            }
            if candidate.rank.0 {
                let keep = candidate.keep.as_deref().unwrap();
                if !self.pages.iter().any(|page| is_below(&page.url, keep)) {
                    continue;
                }
            }
            let before = self.lost(&prefixes).len();
            prefixes.push(&candidate.prefix);
            let lost = self.lost(&prefixes);
            let is_kept =
                |of: &TwinCandidate, lost: usize| lost as f64 <= (1.0 - self.purity) * of.counts[0] as f64 + 1e-9;
            let below = |of: &TwinCandidate| lost.iter().filter(|page| is_below(&page.url, &of.prefix)).count();
            if is_kept(&candidate, lost.len() - before) && chosen.iter().all(|of| is_kept(of, below(of))) {
                chosen.push(candidate);
            }
        }
        let prefixes: Vec<&str> = chosen.iter().map(|of| &*of.prefix).collect();
        let lost = self.lost(&prefixes);
        let keeps: BTreeMap<&str, Option<String>> =
            chosen.iter().map(|of| (&*of.prefix, self.keep(&of.prefix, &prefixes))).collect();
        let mut rows = Vec::new();
        for of in &chosen {
            let keep = match (of.rank.0, &of.keep) {
                (true, Some(keep)) => match prefixes.iter().find(|prefix| is_below(keep, prefix)) {
                    Some(prefix) => keeps[prefix].clone(),
                    None => Some(keep.clone()),
                },
                _ => keeps[&*of.prefix].clone(),
            };
            let Some(keep) = keep else { continue };
            let lost = lost.iter().filter(|page| is_below(&page.url, &of.prefix)).count() as u64;
            let [pages, redirects, named] = of.counts;
            let counts = [pages, redirects, named, lost];
            rows.push(PrefixRow { prefix: of.prefix.clone(), keep, why: of.whys.clone(), counts, sample: Vec::new() });
        }
        rows.sort();
        rows
    }

    fn keep(&self, prefix: &str, prefixes: &[&str]) -> Option<String> {
        let units = self.pages.iter().filter(|page| is_below(&page.url, prefix)).map(|page| page.unit);
        let redirected = self.redirects.iter().filter(|(url, _)| is_below(url, prefix)).filter_map(|(_, unit)| *unit);
        let first = |unit: i64| {
            let left = self
                .pages
                .iter()
                .filter(|page| page.unit == unit && !prefixes.iter().any(|prefix| is_below(&page.url, prefix)));
            left.min_by_key(|page| (self.place(&page.host), !page.url.starts_with("https:"), page.url.len(), &page.url))
        };
        let mut sites: BTreeMap<&str, Vec<&AvoidPage>> = BTreeMap::new();
        for page in units.chain(redirected).filter_map(first) {
            sites.entry(directories(&page.url)[0]).or_default().push(page);
        }
        let common = |pages: &[&AvoidPage]| {
            let of_first = directories(&pages[0].url);
            let is_common = |of: &&&str| pages.iter().all(|page| is_below(&page.url, of));
            of_first.iter().rfind(is_common).unwrap().to_string()
        };
        let key = |pages: &Vec<&AvoidPage>| (Reverse(pages.len()), self.place(&pages[0].host), common(pages));
        sites.values().min_by_key(|pages| key(pages)).map(|pages| common(pages))
    }
}
