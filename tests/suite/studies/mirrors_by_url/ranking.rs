//! The list of mirrors by URL beside what is known: mirrors lead it, and it is compared with
//! mirrors by content.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;

use nigh::records::checksum;

use super::known::KnownBefore;
use super::twin::{self, MirrorsByUrlSettings, assert_right};
use crate::program::{WEEK, corpus, job, rows_of, run_well};
use crate::web::twins::similar_pages_of_research;
use crate::web::{COLUMNS, WEEKS, Web, WebSize, WebStore};

/// The average precision of a ranking: the mean, over the pairs that it shall have, of the
/// precision of the list down to the pair. Pairs that are `neither` right nor wrong are passed
/// over.
fn average_precision(ranked: &[[String; 2]], right: &BTreeSet<[String; 2]>, neither: &BTreeSet<[String; 2]>) -> f64 {
    let (mut sum, mut found) = (0.0, 0);
    for (place, pair) in ranked.iter().filter(|pair| !neither.contains(*pair)).enumerate() {
        if right.contains(pair) {
            found += 1;
            sum += found as f64 / (place + 1) as f64;
        }
    }
    sum / right.len() as f64
}

fn sorted(a: &str, b: &str) -> [String; 2] {
    let mut pair = [a.to_owned(), b.to_owned()];
    pair.sort();
    pair
}

/// All pairs of some hosts.
fn pairs_of<'a>(hosts: impl IntoIterator<Item = &'a String>) -> BTreeSet<[String; 2]> {
    let hosts: Vec<&String> = hosts.into_iter().collect();
    hosts.iter().enumerate().flat_map(|(at, a)| hosts[..at].iter().map(|b| sorted(a, b))).collect()
}

/// The bars of the research, with all pages known and with a quarter of them and their links:
/// against brute force over the whole web, where hosts are mirrors if 10 pages or more have a
/// resemblance of 0.8 and more at the same path.
#[test]
fn mirrors_of_a_made_web_lead_the_list() {
    let web = Web::of_research();
    let crawl = web.week(0);
    let mut shared: BTreeMap<[String; 2], usize> = BTreeMap::new();
    for (a, b, _) in similar_pages_of_research() {
        let (a, b) = (&crawl.pages[*a], &crawl.pages[*b]);
        if a.host != b.host && a.path == b.path {
            *shared.entry(sorted(&a.host, &b.host)).or_default() += 1;
        }
    }
    // Hosts of a farm have one page in copies at different paths; no page links to them, so a
    // quarter of the pages does not show their URLs.
    let farms: BTreeSet<[String; 2]> = web.truth.farms.iter().flat_map(|farm| pairs_of(&farm.hosts)).collect();
    let right = shared.iter().filter(|(pair, pages)| **pages >= 10 && !farms.contains(*pair));
    let right: BTreeSet<[String; 2]> = right.map(|(pair, _)| pair.clone()).collect();
    let mirrors = web.truth.mirrors.iter().filter(|mirror| mirror.copying.weeks.contains(&0));
    let mirrors: BTreeSet<[String; 2]> = mirrors.map(|mirror| sorted(&mirror.host, &mirror.of)).collect();
    // Copies and other names of one host, which were not made as mirrors of each other.
    let mut sources: BTreeMap<&String, BTreeSet<&String>> = BTreeMap::new();
    let copies = web.truth.mirrors.iter().map(|mirror| (&mirror.of, &mirror.host));
    for (of, host) in copies.chain(web.truth.aliases.iter().map(|alias| (&alias.of, &alias.host))) {
        sources.entry(of).or_insert_with(|| BTreeSet::from([of])).insert(host);
    }
    let of_sources = sources.into_values().flat_map(pairs_of);
    let related: BTreeSet<[String; 2]> = of_sources.filter(|pair| !mirrors.contains(pair)).collect();
    assert!(mirrors.is_subset(&right) && mirrors.len() >= 30 && right.len() > 80, "{} {}", mirrors.len(), right.len());
    for is_quarter in [false, true] {
        let folder = tempfile::tempdir().unwrap();
        let is_known = |url: &str| !is_quarter || checksum(url.as_bytes()).is_multiple_of(4);
        let mut lines = String::new();
        for page in crawl.pages.iter().filter(|page| is_known(&page.url)) {
            let row = serde_json::json!({"url": page.url, "html": page.html, "ip": page.ip, "fetched": page.fetched});
            writeln!(lines, "{row}").unwrap();
        }
        std::fs::write(folder.path().join("pages.jsonl"), lines).unwrap();
        let (cluster, store) = (job(folder.path(), COLUMNS), folder.path().join("store"));
        let input = folder.path().join("pages.jsonl");
        let flags = ["-q", "--week", WEEK, "--input", input.to_str().unwrap(), "--store", store.to_str().unwrap()];
        run_well(&[&["run", cluster.to_str().unwrap()][..], &flags].concat());
        MirrorsByUrlSettings::default().run(&store, &[]);
        let known = KnownBefore::of_week(&store, WEEK, false);
        let rows = assert_right(&store, &known, &MirrorsByUrlSettings::default());
        let pair = |row: &Vec<String>| sorted(&row[1], &row[2]);
        let ranked: Vec<[String; 2]> = rows["candidates"].iter().map(pair).collect();
        let precision = average_precision(&ranked, &right, &farms);
        eprintln!(
            "a quarter: {is_quarter}; average precision {precision:.3}; of the mirrors as they were made {:.3}",
            average_precision(&ranked, &mirrors, &related)
        );
        assert!(precision >= 0.95, "{precision}");
        let is_mirror = |row: &&Vec<String>| ["1", "2", "3", "4"].contains(&row[8].as_str());
        let of_levels: BTreeSet<[String; 2]> = rows["candidates"].iter().filter(is_mirror).map(pair).collect();
        let wrong: Vec<_> = of_levels.iter().filter(|pair| !known.share_a_page(pair)).collect();
        assert!(!of_levels.is_empty() && wrong.is_empty(), "levels 1 to 4 without a page in common: {wrong:?}");
        assert!(is_quarter || mirrors.is_subset(&of_levels), "{:?}", mirrors.difference(&of_levels));
    }
}

/// The bar of the research: of the first 20 candidates of the public corpus at least half are
/// mirrors.
#[test]
fn the_first_candidates_of_the_corpus_are_mirrors() {
    let Some(crawl) = corpus("week-01", "mirrors by URL of the corpus") else { return };
    let folder = tempfile::tempdir().unwrap();
    let store = folder.path().join("store");
    let flags = ["-q", "--week", WEEK, "--input", crawl.to_str().unwrap(), "--store", store.to_str().unwrap()];
    run_well(&[&["run", "jobs/example.toml"][..], &flags].concat());
    let settings = MirrorsByUrlSettings { least_urls: 10, ..MirrorsByUrlSettings::default() };
    settings.run(&store, &["--workers", "2"]);
    let rows = assert_right(&store, &KnownBefore::of_week(&store, WEEK, false), &settings);
    let first = rows["candidates"].iter().take(20).filter(|row| ["1", "2", "3", "4"].contains(&row[8].as_str()));
    assert!(first.clone().count() >= 10, "{:?}", first.collect::<Vec<_>>());
}

#[test]
fn both_ways_are_side_by_side() {
    let web = Web::of(&WebSize { hosts: 80, pages: 2_400, ..WebSize::small() });
    let made = WebStore::new(&web, 2, true);
    let store = made.path();
    let (store_text, folder) = (store.to_str().unwrap(), store.join("mirrors-by-url"));
    let compared = || rows_of(&folder, "compared", &twin::columns("compared"));
    let show = || run_well(&["show", store_text, "--job", "mirrors-by-url"]).stdout;
    let settings = MirrorsByUrlSettings::default();
    settings.run(&store, &["--week", WEEKS[0]]);
    assert_eq!(compared(), twin::compared(&store, WEEKS[0]));
    assert!(show().contains("By content: unknown; jobs/mirrors.toml"), "{}", show());
    run_well(&["run", "jobs/mirrors.toml", "-q", "--store", store_text]);
    run_well(&["run", "jobs/collections.toml", "-q", "--store", store_text, "--week", WEEKS[0]]);
    let one = settings.run(&store, &["--week", WEEKS[0], "--workers", "1"]);
    for flags in [&["--workers", "2"][..], &["--workers", "2", "--processes", "2"]] {
        assert!(one == settings.run(&store, &[&["--week", WEEKS[0]], flags].concat()), "{flags:?}");
    }
    let rows = compared();
    assert_eq!(rows, twin::compared(&store, WEEKS[0]));
    let mut ways: BTreeSet<[String; 3]> = BTreeSet::new();
    let mut add =
        |rows: &twin::TableRows| ways.extend(rows.iter().map(|row| [0, 7, 8].map(|column| row[column].clone())));
    add(&rows);
    // Hosts of fewer URLs are found by content only.
    MirrorsByUrlSettings { least_urls: 40, ..settings.clone() }.run(&store, &["--week", WEEKS[0]]);
    assert_eq!(compared(), twin::compared(&store, WEEKS[0]));
    add(&compared());
    for way in
        [["host", "true", "true"], ["host", "true", "false"], ["host", "false", "true"], ["directory", "true", "true"]]
    {
        assert!(ways.contains(&way.map(str::to_owned)), "{way:?}: {ways:?}");
    }
    assert!(show().contains("By content and by URL: ") && show().contains("Mirrored directories"), "{}", show());
    // The other week has mirrors, but no collections.
    settings.run(&store, &[]);
    let rows = compared();
    assert!(rows.iter().all(|row| row[0] == "host") && rows.iter().any(|row| row[7] == "true"));
    std::fs::remove_dir_all(store.join("collections")).unwrap();
    assert_eq!(rows, twin::compared(&store, WEEKS[1]));
}
