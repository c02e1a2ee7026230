//! Made webs are what their truth says.

use std::collections::{BTreeMap, BTreeSet};

use nigh::text::html;

use super::crawl::CrawlRedirect;
use super::truth::{AliasKind, Copying, CorePart, Fate, Mirror, UNTITLED};
use super::{COLUMNS, Crawl, CrawledPage, WEEKS, Web, WebSize, exact_resemblance};
use crate::program::{Made, job, longs, texts, vectors};

fn by_place(crawl: &Crawl) -> BTreeMap<(&str, &str), &CrawledPage> {
    crawl.pages.iter().map(|page| ((&*page.host, &*page.path), page)).collect()
}

fn hosts(crawl: &Crawl) -> BTreeSet<&str> {
    crawl.pages.iter().map(|page| &*page.host).collect()
}

#[test]
fn a_seed_gives_the_same_bytes_and_another_seed_gives_others() {
    let files = |seed| {
        let web = Web::of(&WebSize { seed, ..WebSize::small() });
        let folder = tempfile::tempdir().unwrap();
        let mut files = Vec::new();
        for week in 0..WEEKS.len() {
            web.week(week).write_jsonl(folder.path());
            web.week(week).write_warc(folder.path());
            files.push(
                ["pages.jsonl", "crawl.warc", "failed.tsv"]
                    .map(|name| std::fs::read(folder.path().join(name)).unwrap()),
            );
        }
        files
    };
    let first = files(1);
    assert!(first == files(1));
    assert!(first != files(2));
}

#[test]
fn webs_have_the_size_asked_for() {
    for (shape, hosts_made, least, most) in [
        (WebSize::small(), 40, 720, 880),
        (WebSize { seed: 7, ..WebSize::small() }, 40, 720, 880),
        (WebSize { hosts: 150, pages: 4_000, seed: 3 }, 150, 3_600, 4_400),
        (WebSize::default(), 390, 14_600, 16_200),
    ] {
        let web = Web::of(&shape);
        assert_eq!(web.truth.hosts.len(), hosts_made);
        assert_eq!(web.truth.hosts.iter().collect::<BTreeSet<_>>().len(), hosts_made, "names are used once");
        let first = web.week(0);
        let pages = first.pages.len();
        assert!((least..=most).contains(&pages), "{shape:?}: {pages} pages");
        // One host begins a week later, and some only redirect.
        let without: Vec<&String> = web.truth.hosts.iter().filter(|host| !hosts(&first).contains(&***host)).collect();
        let redirects = web.truth.aliases.iter().filter(|alias| alias.copying.kept == 0.0).count();
        assert_eq!(without.len(), redirects + 1, "{without:?}");
        let urls: BTreeSet<&String> = first.pages.iter().map(|page| &page.url).collect();
        assert_eq!(urls.len(), pages);
    }
}

#[test]
fn the_small_web_has_every_construct() {
    for seed in 1..5 {
        let web = Web::of(&WebSize { seed, ..WebSize::small() });
        let truth = &web.truth;
        let weeks = WEEKS.len();
        let mirror = |test: &dyn Fn(&Mirror) -> bool| truth.mirrors.iter().any(test);
        assert!(mirror(&|mirror| mirror.copying.kept == 1.0 && mirror.copying.lag == 0));
        assert!(mirror(&|mirror| mirror.copying.kept == 0.6
            && mirror.copying.light > 0.0
            && mirror.copying.heavy > 0.0));
        assert!(mirror(&|mirror| mirror.www && mirror.host == format!("www.{}", mirror.of)));
        assert!(mirror(&|mirror| mirror.copying.lag == 1));
        assert!(mirror(&|mirror| mirror.copying.weeks == (1..weeks)));
        assert!(mirror(&|mirror| mirror.copying.weeks == (0..weeks - 1)));
        assert!(mirror(&|mirror| truth.unresolved.contains(&mirror.host)));
        for kind in [AliasKind::Address, AliasKind::Www, AliasKind::Redirect] {
            assert!(truth.aliases.iter().any(|alias| alias.kind == kind), "{kind:?}");
        }
        assert!(truth.collections.len() >= 4 && !truth.siblings.is_empty() && truth.family.len() >= 6);
        assert!(truth.farms.iter().all(|farm| farm.hosts.len() >= 4 && farm.pages >= 10));
        for part in [CorePart::In, CorePart::Core, CorePart::Out, CorePart::Disconnected] {
            assert!(!truth.bow_tie.hosts(part).is_empty(), "{part:?}");
        }
        let first = web.week(0);
        let sizes = truth.collections.iter().map(|collection| {
            let is_inside =
                |page: &&CrawledPage| page.host == collection.host && page.path.starts_with(&collection.prefix);
            first.pages.iter().filter(is_inside).count()
        });
        let sizes: Vec<usize> = sizes.collect();
        assert!(sizes.iter().all(|size| (3..=60).contains(size)) && sizes.iter().any(|size| *size >= 10), "{sizes:?}");
        let untitled = first.pages.iter().filter(|page| page.path == UNTITLED);
        assert!(untitled.clone().all(|page| page.text == "Untitled document"));
        assert!(untitled.count() >= 20);
        for host in &truth.family {
            let products = first.pages.iter().filter(|page| page.host == *host && page.path.starts_with("/product"));
            assert!((3..=8).contains(&products.count()));
        }
    }
}

/// Compares the pages below a prefix with those of the source, and counts the fates.
fn assert_is_copy(
    crawls: &[Crawl],
    week: usize,
    copy: (&str, &str),
    of: (&str, &str),
    copying: &Copying,
) -> BTreeMap<Fate, usize> {
    let (pages, sources) = (by_place(&crawls[week]), by_place(&crawls[copying.week_of_source(week)]));
    let mut fates: BTreeMap<Fate, usize> = BTreeMap::new();
    let mut copies = 0;
    for ((_, path), source) in sources.iter().filter(|((host, path), _)| *host == of.0 && path.starts_with(of.1)) {
        // Of a host, the path; of a directory, what follows its prefix.
        let below = if of.1 == "/" { path } else { &path[of.1.len()..] };
        let at = if of.1 == "/" { (*path).to_owned() } else { format!("{}{below}", copy.1) };
        let page = pages.get(&(copy.0, &*at));
        let fate = copying.fate(below);
        *fates.entry(fate).or_default() += 1;
        copies += usize::from(page.is_some());
        let Some(page) = page else {
            assert_eq!(fate, Fate::Missing, "{}{at}", copy.0);
            continue;
        };
        let resemblance = exact_resemblance(&page.text, &source.text);
        let is_right = match fate {
            Fate::Missing => false,
            Fate::Same => page.html == source.html,
            Fate::Light => (0.8..1.0).contains(&resemblance),
            Fate::Heavy => resemblance < 0.8,
        };
        assert!(is_right, "{}{at} is {fate:?}: {resemblance}", copy.0);
    }
    assert_eq!(pages.keys().filter(|(host, path)| *host == copy.0 && path.starts_with(copy.1)).count(), copies);
    fates
}

/// Numbers of pages against the shares that they should be.
#[derive(Default)]
struct Shares {
    measured: f64,
    expected: f64,
    variance: f64,
}

impl Shares {
    fn add(&mut self, measured: usize, share: f64, of: usize) {
        self.measured += measured as f64;
        self.expected += share * of as f64;
        self.variance += share * (1.0 - share) * of as f64;
    }

    fn assert_near(&self) {
        let Shares { measured, expected, variance } = self;
        assert!(*variance > 15.0, "{variance}: too few pages");
        assert!((measured - expected).abs() <= 3.0 * variance.sqrt(), "{measured} instead of {expected}");
    }
}

#[test]
fn mirrors_are_what_the_truth_says_of_them() {
    let web = Web::of(&WebSize { hosts: 120, pages: 4_000, ..WebSize::small() });
    let crawls: Vec<Crawl> = (0..WEEKS.len()).map(|week| web.week(week)).collect();
    let (mut kept, mut light, mut heavy) = (Shares::default(), Shares::default(), Shares::default());
    for mirror in &web.truth.mirrors {
        let copying = &mirror.copying;
        let weeks: Vec<usize> = (0..WEEKS.len()).filter(|week| hosts(&crawls[*week]).contains(&*mirror.host)).collect();
        assert_eq!(weeks, copying.weeks.clone().collect::<Vec<_>>());
        for week in &weeks {
            let fates = assert_is_copy(&crawls, *week, (&mirror.host, "/"), (&mirror.of, "/"), copying);
            // The fate of a page is the same in all weeks: the pages of one week are enough for the
            // shares.
            if *week == weeks[0] {
                let is_always_copied = |page: &&CrawledPage| {
                    let path = &page.path;
                    page.host == mirror.host
                        && (path == UNTITLED || path.ends_with('/') || path.ends_with("index.html"))
                };
                let pages = fates.values().sum::<usize>() - crawls[*week].pages.iter().filter(is_always_copied).count();
                let of = |fate| fates.get(&fate).copied().unwrap_or_default();
                let copies = pages - of(Fate::Missing);
                kept.add(copies, copying.kept, pages);
                light.add(of(Fate::Light), copying.light, copies);
                heavy.add(of(Fate::Heavy), copying.heavy, copies);
            }
        }
    }
    [kept, light, heavy].iter().for_each(Shares::assert_near);
}

#[test]
fn aliases_collections_and_siblings_are_copies() {
    let web = Web::small();
    let crawls: Vec<Crawl> = (0..WEEKS.len()).map(|week| web.week(week)).collect();
    let ips = |crawl: &Crawl, host: &str| -> BTreeSet<Option<String>> {
        crawl.pages.iter().filter(|page| page.host == host).map(|page| page.ip.clone()).collect()
    };
    for (week, crawl) in crawls.iter().enumerate() {
        for alias in &web.truth.aliases {
            let fates = assert_is_copy(&crawls, week, (&alias.host, "/"), (&alias.of, "/"), &alias.copying);
            let redirects =
                crawl.redirects.iter().filter(|redirect| redirect.url.starts_with(&format!("http://{}/", alias.host)));
            let redirects: Vec<&CrawlRedirect> = redirects.collect();
            match alias.kind {
                AliasKind::Address | AliasKind::Www => {
                    assert_eq!(ips(crawl, &alias.host), ips(crawl, &alias.of));
                    assert!(redirects.is_empty());
                }
                AliasKind::Redirect => {
                    let urls: usize = fates.values().sum();
                    assert_eq!(redirects.len(), fates[&Fate::Missing]);
                    assert!(2 * redirects.len() > urls, "{} of {urls}", redirects.len());
                    let is_page = |url: &String| crawl.pages.iter().any(|page| page.url == *url);
                    assert!(redirects.iter().all(|redirect| is_page(&redirect.target) && !is_page(&redirect.url)));
                }
            }
        }
        for collection in &web.truth.collections {
            let (copy, of) = ((&*collection.host, &*collection.prefix), (&*collection.of_host, &*collection.of_prefix));
            let fates = assert_is_copy(&crawls, week, copy, of, &collection.copying);
            assert!(fates.values().sum::<usize>() >= 5);
            // The links of the copy stay in the copy, except the one to the home page.
            let places = by_place(crawl);
            let pages = places.values().filter(|page| page.host == copy.0 && page.path.starts_with(copy.1));
            let home = format!("http://{}/", copy.0);
            let prefix = format!("http://{}{}", copy.0, copy.1);
            for link in pages.flat_map(|page| &page.links) {
                assert!(*link == home || link.starts_with(&prefix), "{link}");
            }
            assert!(places[&(copy.0, "/")].links.contains(&format!("{prefix}index.html")));
        }
        for siblings in &web.truth.siblings {
            let whole = Copying { kept: 1.0, light: 0.0, heavy: 0.0, lag: 0, ..web.truth.mirrors[0].copying.clone() };
            let [first, second] = &siblings.hosts[..] else { panic!("{siblings:?}") };
            for prefix in &siblings.directories {
                assert!(assert_is_copy(&crawls, week, (second, prefix), (first, prefix), &whole)[&Fate::Same] >= 4);
            }
            let pages = |host: &str| -> BTreeSet<&str> {
                crawl.pages.iter().filter(|page| page.host == host).map(|page| &*page.text).collect()
            };
            assert!(pages(first).difference(&pages(second)).count() > 1);
            assert!(pages(second).difference(&pages(first)).count() > 1);
        }
    }
    for crawl in &crawls {
        let without = crawl.pages.iter().filter(|page| page.ip.is_none()).map(|page| &page.host);
        assert!(without.collect::<BTreeSet<_>>().is_subset(&web.truth.unresolved.iter().collect()));
    }
}

/// The bow-tie by closure: forward and backward from a page of the core.
fn bow_tie_by_closure(crawl: &Crawl, seed: &str) -> BTreeMap<String, CorePart> {
    let mut forward: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    let mut backward: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    let urls: BTreeSet<&str> = crawl.pages.iter().map(|page| &*page.url).collect();
    for page in &crawl.pages {
        for link in page.links.iter().filter(|link| urls.contains(&***link)) {
            forward.entry(&page.url).or_default().push(link);
            backward.entry(link).or_default().push(&page.url);
        }
    }
    let closure = |edges: &BTreeMap<&str, Vec<&str>>| {
        let mut reached = BTreeSet::from([seed.to_owned()]);
        let mut open = vec![seed.to_owned()];
        while let Some(page) = open.pop() {
            for next in edges.get(&*page).into_iter().flatten() {
                if reached.insert((*next).to_owned()) {
                    open.push((*next).to_owned());
                }
            }
        }
        reached
    };
    let (after, before) = (closure(&forward), closure(&backward));
    let part = |url: &str| match (before.contains(url), after.contains(url)) {
        (true, true) => CorePart::Core,
        (true, false) => CorePart::In,
        (false, true) => CorePart::Out,
        (false, false) => CorePart::Disconnected,
    };
    urls.into_iter().map(|url| (url.to_owned(), part(url))).collect()
}

#[test]
fn the_bow_tie_is_that_of_the_links() {
    for shape in [WebSize::small(), WebSize { hosts: 120, pages: 3_000, seed: 5 }] {
        let web = Web::of(&shape);
        for week in 0..WEEKS.len() {
            let crawl = web.week(week);
            let core = web.truth.bow_tie.hosts(CorePart::Core);
            let seed = format!("http://{}/", core.first().unwrap());
            let parts = bow_tie_by_closure(&crawl, &seed);
            for page in &crawl.pages {
                assert_eq!(
                    parts[&page.url],
                    web.truth.bow_tie.part(&page.host, &page.path),
                    "{} in week {week}",
                    page.url
                );
            }
        }
    }
}

#[test]
fn pages_change_appear_and_vanish_week_by_week() {
    let web = Web::small();
    for week in 1..WEEKS.len() {
        let (before, after) = (web.week(week - 1), web.week(week));
        assert!(before.date < after.date);
        let (old, new) = (by_place(&before), by_place(&after));
        let common: Vec<_> = old.keys().filter(|place| new.contains_key(*place)).collect();
        let changed = common.iter().filter(|place| old[**place].text != new[**place].text).count();
        let much =
            common.iter().filter(|place| exact_resemblance(&old[**place].text, &new[**place].text) < 0.8).count();
        assert!(changed > 30 && changed < common.len() / 2, "{changed} of {} changed", common.len());
        assert!(much > 2 && much < changed);
        assert!(new.keys().filter(|place| !old.contains_key(*place)).count() > 5);
        let gone: BTreeSet<String> =
            old.iter().filter(|(place, _)| !new.contains_key(*place)).map(|(_, page)| page.url.clone()).collect();
        assert!(gone.len() > 5);
        let redirects: BTreeSet<String> = after.redirects.iter().map(|redirect| redirect.url.clone()).collect();
        let failures: BTreeSet<String> = after.failures.iter().map(|failure| failure.url.clone()).collect();
        assert_eq!(failures, gone.difference(&redirects).cloned().collect());
        let ended = after.failures.iter().any(|failure| failure.reason == "dns");
        assert_eq!(ended, week == WEEKS.len() - 1, "one mirror ends in the last week");
    }
    assert!(web.week(0).failures.is_empty());
}

#[test]
fn the_program_reads_the_same_pages_from_both_kinds_of_files() {
    let web = Web::small();
    let crawl = web.week(0);
    let run = |write: fn(&Crawl, &std::path::Path), columns: &str| {
        let folder = tempfile::tempdir().unwrap();
        let input = folder.path().join("crawl");
        std::fs::create_dir(&input).unwrap();
        write(&crawl, &input);
        let text = format!("[cluster]\nweek = {:?}\ninput = [{:?}]\n{columns}", crawl.date, input.to_str().unwrap());
        let made = Made::with_job(&job(folder.path(), &text), &[]);
        let week = made.week();
        let vectors = vectors(&week);
        let rows = longs(&week, "documents", "doc").into_iter().zip(texts(&week, "documents", "ip"));
        let rows = rows.map(|(doc, ip)| (ip, vectors[&doc].clone()));
        texts(&week, "documents", "url").into_iter().zip(rows).collect::<BTreeMap<_, _>>()
    };
    let rows = run(Crawl::write_jsonl, COLUMNS);
    assert!(rows == run(Crawl::write_warc, ""));
    assert_eq!(rows.len(), crawl.pages.len());
    for page in &crawl.pages {
        assert_eq!(rows[&page.url].0, page.ip.clone().unwrap_or_default(), "{}", page.url);
    }
}

#[test]
fn texts_and_links_are_those_of_the_html() {
    let crawl = Web::small().week(1);
    let kernels = nigh::kernels::chosen().unwrap();
    for page in &crawl.pages {
        let mut extract = html::Extract::default();
        html::scan(page.html.as_bytes(), 1_000, kernels, &mut extract);
        let text = String::from_utf8(extract.text).unwrap();
        assert!(nigh::text::words(&text).eq(nigh::text::words(&page.text)), "{}\n{text}\n{}", page.url, page.text);
        let url = nigh::text::canonical(&page.url).unwrap();
        let links = nigh::text::out_links(Some(&url), None, extract.hrefs.iter());
        let mut once = BTreeSet::new();
        assert_eq!(
            links.iter().collect::<Vec<_>>(),
            page.links.iter().filter(|link| once.insert(*link)).collect::<Vec<_>>()
        );
    }
}
