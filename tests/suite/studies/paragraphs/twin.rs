//! The paragraphs job by brute force: its tables from those of the weeks, with sets and maps.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use arrow_array::{Array, BinaryArray, TimestampMicrosecondArray};
use nigh::records::mix;

use crate::program::{PlainUnionFind, Rows, each, job, longs, rows_of, run_well, tables, texts, week};
use crate::weeks::redirected::Redirects;

/// The parameters of a job.
#[derive(Clone)]
pub struct ParagraphsSettings {
    pub least_characters: i64,
    pub near: Vec<f64>,
    pub parts: u32,
    pub crawl: bool,
    pub seeds: Vec<String>,
    pub boilerplate: usize,
    pub mode: &'static str,
}

impl Default for ParagraphsSettings {
    fn default() -> ParagraphsSettings {
        ParagraphsSettings {
            least_characters: 150,
            near: vec![0.9, 0.7, 0.5],
            parts: 10,
            crawl: false,
            seeds: Vec::new(),
            boilerplate: 4,
            mode: "auto",
        }
    }
}

impl ParagraphsSettings {
    pub fn toml(&self) -> String {
        let ParagraphsSettings { least_characters, near, parts, crawl, seeds, boilerplate, mode } = self;
        let order = if *crawl { "crawl" } else { "hash" };
        format!(
            "[paragraphs]\nleast-characters = {least_characters}\nnear = {near:?}\nparts = {parts}\norder = \"{order}\"\nseeds = {seeds:?}\n\
             boilerplate = {boilerplate}\nmode = \"{mode}\"\n"
        )
    }

    /// Runs the job; gives the bytes of its tables.
    pub fn run(&self, store: &Path, flags: &[&str]) -> BTreeMap<String, Vec<u8>> {
        let folder = tempfile::tempdir().unwrap();
        let job = job(folder.path(), &self.toml());
        run_well(&[&["run", job.to_str().unwrap(), "-q", "--store", store.to_str().unwrap()], flags].concat());
        assert!(!store.join("_nigh/work").exists(), "nothing unfinished is left");
        tables(&store.join("paragraphs"))
    }
}

/// A page that is long enough.
struct Long {
    paragraphs: Vec<u64>,
    set: BTreeSet<u64>,
}

/// A page of any length.
struct ParagraphPage {
    url: String,
    host: String,
    second: Option<i64>,
}

/// A week, by page.
struct WeekOfPages {
    date: String,
    pages: BTreeMap<i64, ParagraphPage>,
    long: BTreeMap<i64, Long>,
}

impl WeekOfPages {
    fn read(store: &Path, date: &str, least: i64) -> WeekOfPages {
        let path = week(store, date);
        let mut paragraphs = Vec::new();
        each(&path, "chunks", "paragraphs", |array: &BinaryArray| {
            paragraphs.extend(array.iter().map(|bytes| {
                bytes.unwrap().as_chunks::<8>().0.iter().map(|hash| u64::from_le_bytes(*hash)).collect::<Vec<_>>()
            }));
        });
        let mut seconds = Vec::new();
        each(&path, "documents", "fetched", |array: &TimestampMicrosecondArray| {
            seconds
                .extend((0..array.len()).map(|at| array.is_valid(at).then(|| array.value(at).div_euclid(1_000_000))));
        });
        let characters = longs(&path, "chunks", "characters");
        let long = longs(&path, "chunks", "doc").into_iter().zip(characters).zip(paragraphs);
        let long = long.filter(|((_, characters), _)| *characters > least).map(|((doc, _), paragraphs)| {
            let set = paragraphs.iter().copied().collect();
            (doc, Long { paragraphs, set })
        });
        let [urls, hosts] = ["url", "host"].map(|column| texts(&path, "documents", column));
        let pages = longs(&path, "documents", "doc").into_iter().zip(urls.into_iter().zip(hosts)).zip(seconds);
        let pages = pages.map(|((doc, (url, host)), second)| (doc, ParagraphPage { url, host, second }));
        WeekOfPages { date: date.to_owned(), pages: pages.collect(), long: long.collect() }
    }

    /// The roots of clusters of pages that are related.
    fn roots(&self, related: impl Fn(&Long, &Long) -> bool) -> BTreeMap<i64, i64> {
        let mut forest = PlainUnionFind::default();
        for (a, of_a) in &self.long {
            for (b, of_b) in self.long.range(..a) {
                if related(of_a, of_b) {
                    forest.union(*a, *b);
                }
            }
        }
        self.long.keys().map(|doc| (*doc, forest.find(*doc))).collect()
    }

    /// The part of each page that is long enough.
    fn parts(&self, settings: &ParagraphsSettings) -> BTreeMap<i64, u32> {
        let count = settings.parts;
        let seconds: Vec<i64> = self.pages.values().filter_map(|page| page.second).collect();
        let part = |doc: &i64| {
            if settings.crawl {
                let second = self.pages[doc].second.unwrap();
                let before = seconds.iter().filter(|other| **other < second).count();
                (before * count as usize / seconds.len()) as u32
            } else {
                ((u128::from(mix(*doc as u64)) * u128::from(count)) >> 64) as u32
            }
        };
        self.long.keys().map(|doc| (*doc, part(doc))).collect()
    }

    /// For each step of the study's algorithm what is found so far: pages, clusters, duplicates;
    /// and the pages of clusters that are found.
    fn steps(&self, settings: &ParagraphsSettings) -> Vec<(usize, usize, usize, BTreeSet<i64>)> {
        let parts = self.parts(settings);
        let mut forest = PlainUnionFind::default();
        let mut found = BTreeSet::new();
        (0..settings.parts)
            .map(|step| {
                for (held, of_held) in self.long.iter().filter(|(doc, _)| parts[doc] == step) {
                    for (probed, of_probed) in self.long.iter().filter(|(doc, _)| *doc != held) {
                        if are_duplicates(of_held, of_probed) {
                            forest.union(*held, *probed);
                            found.extend([*held, *probed]);
                        }
                    }
                }
                let roots: BTreeSet<i64> = found.iter().map(|doc| forest.find(*doc)).collect();
                let documents = parts.values().filter(|part| **part <= step).count();
                (documents, roots.len(), found.len() - roots.len(), found.clone())
            })
            .collect()
    }

    /// The smallest page that has each paragraph.
    fn first_pages(&self) -> BTreeMap<u64, i64> {
        let mut first = BTreeMap::new();
        for (doc, long) in &self.long {
            long.set.iter().for_each(|paragraph| {
                first.entry(*paragraph).or_insert(*doc);
            });
        }
        first
    }
}

/// The study's test for duplicates.
fn are_duplicates(a: &Long, b: &Long) -> bool {
    a.paragraphs.len() == b.paragraphs.len() && (a.set.is_subset(&b.set) || b.set.is_subset(&a.set))
}

fn sizes(roots: &BTreeMap<i64, i64>) -> BTreeMap<i64, usize> {
    let mut sizes = BTreeMap::new();
    roots.values().for_each(|root| *sizes.entry(*root).or_default() += 1);
    sizes
}

fn ratio(part: usize, whole: usize) -> String {
    if whole == 0 { "null".to_owned() } else { (part as f64 / whole as f64).to_string() }
}

fn row<const N: usize>(values: [&dyn std::fmt::Display; N]) -> Vec<String> {
    values.into_iter().map(|value| value.to_string()).collect()
}

/// The tables of the job for the last of some weeks, which are all weeks of the store up to it.
pub struct ParagraphsTwin {
    tables: BTreeMap<&'static str, (Vec<&'static str>, Rows)>,
    /// The seeds: the chosen one with what it reaches, and what leads to it, too.
    pub core: Option<(String, usize, usize)>,
}

impl ParagraphsTwin {
    pub fn of(store: &Path, dates: &[&str], settings: &ParagraphsSettings) -> ParagraphsTwin {
        let weeks: Vec<WeekOfPages> =
            dates.iter().map(|date| WeekOfPages::read(store, date, settings.least_characters)).collect();
        let now = &weeks[weeks.len() - 1];
        let before = weeks.len().checked_sub(2).map(|before| &weeks[before]);
        let mut twin = ParagraphsTwin { tables: BTreeMap::new(), core: None };
        let connected = twin.connected(store, now, settings);
        twin.clusters(now, &connected, settings);
        twin.growth(now, before, settings);
        twin.boilerplate(now, settings.boilerplate);
        twin.births(now, before);
        twin.lifetimes(&weeks);
        twin
    }

    fn add(&mut self, table: &'static str, columns: &[&'static str], rows: impl IntoIterator<Item = Vec<String>>) {
        self.tables.insert(table, (columns.to_vec(), rows.into_iter().collect()));
    }

    /// The pages that links lead to.
    fn connected(&mut self, store: &Path, now: &WeekOfPages, settings: &ParagraphsSettings) -> BTreeSet<i64> {
        let path = week(store, &now.date);
        let by_url = now.pages.iter().map(|(doc, page)| (page.url.clone(), *doc)).collect();
        let redirects = Redirects::of(&path, by_url);
        let links = rows_of(&path, "links", &["doc", "target_url", "target_doc"]).into_iter();
        let links = links.filter_map(|row| {
            let (doc, redirected) = (row[0].parse::<i64>().unwrap(), redirects.page(&row[1]));
            let target = redirected.or_else(|| row[2].parse().ok())?;
            (redirected != Some(doc)).then_some((doc, target))
        });
        let links: Vec<(i64, i64)> = links.filter(|(_, to)| now.pages.contains_key(to)).collect();
        let reach = |seeds: &[i64], is_forward: bool| {
            let mut reached: BTreeSet<i64> = seeds.iter().copied().collect();
            loop {
                let before = reached.len();
                for (from, to) in links.iter().map(|(a, b)| if is_forward { (a, b) } else { (b, a) }) {
                    if reached.contains(from) {
                        reached.insert(*to);
                    }
                }
                if reached.len() == before {
                    return reached;
                }
            }
        };
        let columns = ["rank", "doc", "url", "from_hosts", "in_links", "reached", "core", "chosen"];
        let null = "null".to_owned();
        if !settings.seeds.is_empty() {
            let doc = |url: &String| *now.pages.iter().find(|(_, page)| page.url == *url).unwrap().0;
            let seeds: Vec<i64> = settings.seeds.iter().map(doc).collect();
            let reached = reach(&seeds, true);
            let seed = |(rank, doc): (usize, &i64)| {
                row([&(rank + 1), doc, &now.pages[doc].url, &null, &null, &reached.len(), &null, &true])
            };
            self.add("seeds", &columns, seeds.iter().enumerate().map(seed));
            return reached;
        }
        let mut counts: BTreeMap<i64, [usize; 2]> = BTreeMap::new();
        for (from, to) in &links {
            let of = counts.entry(*to).or_default();
            of[0] += usize::from(now.pages[from].host != now.pages[to].host);
            of[1] += 1;
        }
        let mut order: Vec<(Reverse<[usize; 2]>, i64)> =
            counts.into_iter().map(|(doc, counts)| (Reverse(counts), doc)).collect();
        order.sort();
        order.truncate(20);
        let mut best: Option<(usize, i64)> = None;
        let mut found = Vec::new();
        for (Reverse(counts), doc) in order {
            let forward = reach(&[doc], true);
            let core = forward.intersection(&reach(&[doc], false)).count();
            if best.is_none_or(|(most, _)| core > most) {
                best = Some((core, doc));
            }
            found.push((doc, counts, forward.len(), core));
        }
        let Some((core, chosen)) = best else {
            self.add("seeds", &columns, []);
            return BTreeSet::new();
        };
        let seed = |(rank, (doc, counts, reached, core)): (usize, &(i64, [usize; 2], usize, usize))| {
            let url = &now.pages[doc].url;
            row([&(rank + 1), doc, url, &counts[0], &counts[1], reached, core, &(*doc == chosen)])
        };
        self.add("seeds", &columns, found.iter().enumerate().map(seed));
        let reached = reach(&[chosen], true);
        self.core = Some((now.pages[&chosen].url.clone(), reached.len(), core));
        reached
    }

    /// Duplicates, near-duplicates, and where they are.
    fn clusters(&mut self, now: &WeekOfPages, connected: &BTreeSet<i64>, settings: &ParagraphsSettings) {
        let roots = now.roots(are_duplicates);
        let size_of = sizes(&roots);
        let mut common: BTreeMap<u64, usize> = BTreeMap::new();
        now.long.values().flat_map(|long| &long.set).for_each(|paragraph| *common.entry(*paragraph).or_default() += 1);
        let pages = now.long.iter().map(|(doc, long)| {
            let boilerplate = long.set.iter().filter(|paragraph| common[paragraph] >= settings.boilerplate).count();
            let root = roots[doc];
            row([doc, &long.paragraphs.len(), &root, &size_of[&root], &connected.contains(doc), &boilerplate])
        });
        self.add("pages", &["doc", "paragraphs", "root", "size", "connected", "boilerplate"], pages);
        let mut sites: BTreeMap<usize, [usize; 3]> = BTreeMap::new();
        for (root, size) in size_of.iter().filter(|(_, size)| **size > 1) {
            let hosts: BTreeSet<&str> =
                roots.iter().filter(|(_, of)| *of == root).map(|(doc, _)| &*now.pages[doc].host).collect();
            // All hosts of the tests are names in one top-level domain, without ports.
            let site = |host: &&str| host.rsplit('.').take(2).map(str::to_owned).collect::<Vec<_>>();
            let names: BTreeSet<Vec<String>> = hosts.iter().map(site).collect();
            let counts = sites.entry(*size).or_default();
            counts[0] += 1;
            counts[1] += usize::from(hosts.len() == 1);
            counts[2] += usize::from(names.len() == 1);
        }
        let sites = sites.iter().map(|(size, [all, host, site])| row([size, all, host, site]));
        self.add("sites", &["size", "clusters", "one_host", "one_site"], sites);
        let mut levels = vec![("null".to_owned(), roots)];
        let mut near = Rows::new();
        for least in &settings.near {
            let roots = now.roots(|a, b| {
                let shared = a.set.intersection(&b.set).count() as f64;
                are_duplicates(a, b) || 2.0 * shared >= least * (a.set.len() + b.set.len()) as f64 - 1e-9
            });
            let size_of = sizes(&roots);
            let several = roots.iter().filter(|(_, root)| size_of[root] > 1);
            near.extend(several.map(|(doc, root)| row([least, doc, root, &size_of[root]])));
            levels.push((least.to_string(), roots));
        }
        self.add("near", &["near", "doc", "root", "size"], near);
        let in_part = |part: &str, doc: &i64| match part {
            "all" => true,
            "connected" => connected.contains(doc),
            _ => !connected.contains(doc),
        };
        let (mut summary, mut by_size, mut coverage) = (Rows::new(), Rows::new(), Rows::new());
        for part in ["all", "connected", "disconnected"] {
            for (least, roots) in &levels {
                let there: BTreeMap<i64, i64> =
                    roots.iter().filter(|(doc, _)| in_part(part, doc)).map(|(doc, root)| (*doc, *root)).collect();
                let size_of = sizes(&there);
                let clusters = size_of.values().filter(|size| **size > 1).count();
                let duplicates = there.len() - size_of.len();
                let share = ratio(duplicates, there.len());
                summary.insert(row([&part, least, &there.len(), &clusters, &duplicates, &share]));
                if least == "null" {
                    let mut counts: BTreeMap<usize, usize> = BTreeMap::new();
                    size_of.values().filter(|size| **size > 1).for_each(|size| *counts.entry(*size).or_default() += 1);
                    by_size.extend(counts.iter().map(|(size, clusters)| row([&part, size, clusters])));
                    if part != "all" {
                        let all = sizes(roots);
                        let count = |is_several: bool, of: &BTreeMap<i64, usize>| {
                            of.keys().filter(|root| (all[root] > 1) == is_several).count()
                        };
                        let [clusters, clusters_there] = [&all, &size_of].map(|of| count(true, of));
                        let [unique, unique_there] = [&all, &size_of].map(|of| count(false, of));
                        let useful = ratio(clusters_there + unique_there, clusters + unique);
                        coverage.insert(row([&part, &clusters, &clusters_there, &unique, &unique_there, &useful]));
                    }
                }
            }
        }
        self.add("summary", &["region", "near", "documents", "clusters", "duplicates", "share"], summary);
        self.add("sizes", &["region", "size", "clusters"], by_size);
        let columns = ["region", "clusters", "clusters_there", "unique", "unique_there", "useful"];
        self.add("coverage", &columns, coverage);
    }

    /// Growth over parts, and estimates.
    fn growth(&mut self, now: &WeekOfPages, before: Option<&WeekOfPages>, settings: &ParagraphsSettings) {
        let steps = now.steps(settings);
        let rows = steps.iter().enumerate().map(|(step, of)| row([&(step + 1), &of.0, &of.1, &of.2]));
        self.add("growth", &["step", "documents", "clusters", "duplicates"], rows);
        let all = steps.last().map_or(0, |of| of.2);
        let roots = now.roots(are_duplicates);
        let mut estimates = Rows::new();
        for one_of in [5, 2] {
            let count = settings.parts.div_ceil(one_of) as usize;
            let found = steps[count - 1].2;
            let mut add = |of_week: &str, estimated: f64| {
                let share = if now.long.is_empty() { 0.0 } else { estimated / now.long.len() as f64 };
                let error = if all == 0 { "null".to_owned() } else { (estimated / all as f64 - 1.0).to_string() };
                estimates.insert(row([&count, &of_week, &found, &estimated, &all, &share, &error]));
            };
            if let Some(before) = before {
                let steps = before.steps(settings);
                let (part, whole) = (steps[count - 1].2, steps[steps.len() - 1].2);
                if part > 0 {
                    add(&before.date, found as f64 / (part as f64 / whole as f64));
                }
            }
            // A cluster of s pages is found with the probability 1 - (1 - x)^s.
            let missed = 1.0 - count as f64 / f64::from(settings.parts);
            let clusters: BTreeSet<i64> = steps[count - 1].3.iter().map(|doc| roots[doc]).collect();
            let mut by_size: BTreeMap<usize, usize> = BTreeMap::new();
            clusters.iter().for_each(|root| *by_size.entry(sizes(&roots)[root]).or_default() += 1);
            let of_size = by_size
                .iter()
                .map(|(size, clusters)| (clusters * (size - 1)) as f64 / (1.0 - missed.powi(*size as i32)));
            add("null", of_size.sum());
        }
        let columns = ["steps", "of_week", "found", "estimated", "duplicates", "share", "error"];
        self.add("estimates", &columns, estimates);
    }

    fn boilerplate(&mut self, now: &WeekOfPages, least: usize) {
        let mut having: BTreeMap<u64, Vec<i64>> = BTreeMap::new();
        for (doc, long) in &now.long {
            long.set.iter().for_each(|paragraph| having.entry(*paragraph).or_default().push(*doc));
        }
        let rows = having.iter().filter(|(_, docs)| docs.len() >= least).map(|(paragraph, docs)| {
            let mut hosts: BTreeMap<&str, Vec<i64>> = BTreeMap::new();
            docs.iter().for_each(|doc| hosts.entry(&now.pages[doc].host).or_default().push(*doc));
            let most = hosts.values().map(Vec::len).max().unwrap();
            let doc = hosts.values().filter(|docs| docs.len() == most).map(|docs| docs[0]).min().unwrap();
            let place = now.long[&doc].paragraphs.iter().position(|other| other == paragraph).unwrap();
            let ParagraphPage { url, host, .. } = &now.pages[&doc];
            row([&(*paragraph as i64), &docs.len(), &hosts.len(), host, &most, &doc, url, &place])
        });
        let rows: Vec<Vec<String>> = rows.collect();
        let columns = ["paragraph", "documents", "hosts", "host", "on_host", "doc", "url", "place"];
        self.add("boilerplate", &columns, rows);
    }

    /// New pages and their parents.
    fn births(&mut self, now: &WeekOfPages, before: Option<&WeekOfPages>) {
        let (mut births, mut parents) = (Rows::new(), Rows::new());
        for (doc, long) in &now.long {
            let Some(before) = before.filter(|before| !before.pages.contains_key(doc)) else { continue };
            let having = |paragraph: &u64| -> Vec<i64> {
                before.long.iter().filter(|(_, of)| of.set.contains(paragraph)).map(|(doc, _)| *doc).collect()
            };
            let mut left: BTreeSet<u64> =
                long.set.iter().copied().filter(|paragraph| !having(paragraph).is_empty()).collect();
            let (inherited, mut rank) = (left.len(), 0);
            let mut add = |parent: i64, left: &mut BTreeSet<u64>| {
                let of_parent = &before.long[&parent].set;
                let adds = left.intersection(of_parent).count();
                left.retain(|paragraph| !of_parent.contains(paragraph));
                if adds > 0 {
                    rank += 1;
                    let shared = long.set.intersection(of_parent).count();
                    let same_host = now.pages[doc].host == before.pages[&parent].host;
                    let shares = [ratio(shared, long.set.len()), ratio(shared, of_parent.len())];
                    parents.insert(row([doc, &rank, &parent, &same_host, &adds, &shared, &shares[0], &shares[1]]));
                }
            };
            let mut rare: BTreeSet<u64> =
                left.iter().copied().filter(|paragraph| having(paragraph).len() <= 100).collect();
            while !rare.is_empty() {
                let count = |older: &i64| rare.intersection(&before.long[older].set).count();
                let most = before.long.keys().map(count).max().unwrap();
                let parent = *before.long.keys().find(|older| count(older) == most).unwrap();
                rare.retain(|paragraph| !before.long[&parent].set.contains(paragraph));
                add(parent, &mut left);
            }
            let mut smallest: BTreeMap<i64, usize> = BTreeMap::new();
            left.iter().for_each(|paragraph| *smallest.entry(having(paragraph)[0]).or_default() += 1);
            let mut order: Vec<(Reverse<usize>, i64)> =
                smallest.into_iter().map(|(doc, count)| (Reverse(count), doc)).collect();
            order.sort();
            order.into_iter().for_each(|(_, parent)| add(parent, &mut left));
            births.insert(row([doc, &long.set.len(), &inherited, &ratio(inherited, long.set.len()), &rank]));
        }
        self.add("births", &["doc", "paragraphs", "inherited", "share", "parents"], births);
        let columns = ["doc", "rank", "parent", "same_host", "adds", "shared", "share", "share_of_parent"];
        self.add("parents", &columns, parents);
    }

    /// When paragraphs were seen first and last.
    fn lifetimes(&mut self, weeks: &[WeekOfPages]) {
        let first_of: Vec<BTreeMap<u64, i64>> = weeks.iter().map(WeekOfPages::first_pages).collect();
        let all: BTreeSet<u64> = first_of.iter().flat_map(|of| of.keys().copied()).collect();
        let (mut lifetimes, mut turnover) = (Rows::new(), vec![[0; 3]; weeks.len()]);
        for paragraph in all {
            let is_there: Vec<bool> = first_of.iter().map(|of| of.contains_key(&paragraph)).collect();
            let first = is_there.iter().position(|is_there| *is_there).unwrap();
            let last = is_there.iter().rposition(|is_there| *is_there).unwrap();
            let of_week = |week: usize, is_known: bool| match is_known {
                true => [weeks[week].date.clone(), first_of[week][&paragraph].to_string()],
                false => ["null", "null"].map(str::to_owned),
            };
            let (from, to) = (of_week(first, first > 0), of_week(last, last + 1 < weeks.len()));
            if from[0] != "null" || to[0] != "null" {
                lifetimes.insert(row([&(paragraph as i64), &from[0], &from[1], &to[0], &to[1]]));
            }
            for week in 1..weeks.len() {
                match (is_there[week - 1], is_there[week]) {
                    (false, true) => turnover[week][usize::from(first < week)] += 1,
                    (true, false) => turnover[week][2] += 1,
                    _ => {}
                }
            }
        }
        self.add("lifetimes", &["paragraph", "first_week", "first_doc", "last_week", "last_doc"], lifetimes);
        let turnover = weeks.iter().zip(turnover).skip(1);
        let turnover = turnover.map(|(week, [first, returned, gone])| row([&week.date, &first, &returned, &gone]));
        self.add("turnover", &["week", "first_seen", "returned", "gone"], turnover.collect::<Vec<_>>());
    }

    /// The number of rows of a table.
    pub fn count(&self, table: &str) -> usize {
        self.tables[table].1.len()
    }

    /// Asserts that the tables of the store are these.
    pub fn assert_is(&self, store: &Path, what: &str) {
        for (table, (columns, wanted)) in &self.tables {
            let found = rows_of(&store.join("paragraphs"), table, columns);
            assert_eq!(found.len(), wanted.len(), "{what}: rows of {table}");
            let found: Rows = found.into_iter().collect();
            if let Some(missing) = wanted.difference(&found).next() {
                panic!("{what}: {table} lacks {missing:?}; it has {:?}", found.difference(wanted).next());
            }
        }
        let all = nigh::tables::result_tables("paragraphs");
        assert!(all.iter().all(|table| self.tables.contains_key(table.name)), "every table has a twin");
    }
}
