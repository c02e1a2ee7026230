//! Links through redirects: to the studies they are links to the page that they lead to.

use std::collections::BTreeMap;
use std::path::Path;

use crate::program::rows_of;
use crate::studies::avoid::made::{MadeCrawl, MadePage, MadeStore};

/// The redirects of a week, followed one by one.
pub struct Redirects {
    targets: BTreeMap<String, String>,
    pages: BTreeMap<String, i64>,
}

impl Redirects {
    /// Those of a week, and its pages by URL.
    pub fn of(week: &Path, pages: BTreeMap<String, i64>) -> Redirects {
        let rows = rows_of(week, "redirects", &["url", "target_url"]).into_iter();
        Redirects { targets: rows.map(|row| (row[0].clone(), row[1].clone())).collect(), pages }
    }

    /// The page that a URL without a page leads to in the end.
    pub fn page(&self, url: &str) -> Option<i64> {
        if self.pages.contains_key(url) {
            return None;
        }
        let mut at = url;
        for _ in 0..20 {
            at = self.targets.get(at)?;
            if let Some(page) = self.pages.get(at) {
                return Some(*page);
            }
        }
        None
    }
}

fn linking(url: &str, text: u64, links: &[&str]) -> MadePage {
    MadePage { url: url.to_owned(), text, links: links.iter().map(|link| (*link).to_owned()).collect() }
}

#[test]
fn a_page_behind_a_redirect_is_connected() {
    let mut crawl = MadeCrawl::default();
    let at = |name: &str| format!("http://a.example/{name}");
    // seed -> r -> r2 -> t; o is not linked to; l and m redirect to each other, and x leaves the
    // crawl.
    let links = [at("r"), at("l"), at("x"), at("self")];
    let links: Vec<&str> = links.iter().map(|link| &**link).collect();
    crawl.pages.push(linking(&at("seed"), 1, &links));
    crawl.pages.push(linking(&at("t"), 2, &[]));
    crawl.pages.push(linking(&at("o"), 3, &[]));
    for (url, target) in [("r", "r2"), ("r2", "t"), ("l", "m"), ("m", "l"), ("x", "nowhere"), ("self", "seed")] {
        crawl.redirect(&at(url), &at(target));
    }
    let store = MadeStore::new(&[&crawl]);
    let fields = format!("seeds = [{:?}]\nleast-characters = 10\n", at("seed"));
    let mut found = Vec::new();
    for flags in [["--workers", "1"], ["--workers", "3"], ["--processes", "2"]] {
        store.study("paragraphs", &fields, &flags);
        let urls: BTreeMap<String, String> = rows_of(
            &crate::program::week(&store.path(), crate::studies::avoid::made::DATES[0]),
            "documents",
            &["doc", "url"],
        )
        .into_iter()
        .map(|row| (row[0].clone(), row[1].clone()))
        .collect();
        let rows = rows_of(&store.path().join("paragraphs"), "pages", &["doc", "connected"]);
        let mut connected: Vec<String> =
            rows.into_iter().filter(|row| row[1] == "true").map(|row| urls[&row[0]].clone()).collect();
        connected.sort();
        found.push(connected);
    }
    assert!(found.iter().all(|connected| *connected == [at("seed"), at("t")]), "{found:?}");
}

#[test]
fn collections_are_held_together_by_links_that_redirect() {
    let mut crawl = MadeCrawl::default();
    for host in ["one", "two"] {
        let url = |page: u64| format!("http://{host}.example/m/{page}/");
        let links: Vec<String> = (0..21).map(|page| format!("http://{host}.example/m/{page}")).collect();
        for page in 0..21 {
            crawl.pages.push(MadePage { url: url(page), text: page, links: links.clone() });
            crawl.redirect(&links[page as usize], &url(page));
        }
    }
    let store = MadeStore::new(&[&crawl]);
    store.study("collections", "", &[]);
    let collections = || rows_of(&store.path().join("collections"), "collections", &["prefix", "pages", "principal"]);
    let pages: Vec<String> = collections().iter().map(|row| row[1].clone()).collect();
    assert_eq!(pages, ["21", "21"]);
    let avoid = rows_of(&store.path().join("collections"), "avoid", &["pages"]);
    assert_eq!(avoid, [["21"]]);
    let one = crate::program::tables(&store.path().join("collections"));
    for flags in [["--workers", "4"], ["--processes", "2"]] {
        store.study("collections", "", &flags);
        assert!(one == crate::program::tables(&store.path().join("collections")), "{flags:?}");
    }
}
