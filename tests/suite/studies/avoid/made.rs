//! Crawls made in code, with links, redirects and addresses, and stores of them.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use nigh::records::{checksum, mix};

use crate::program::{job, run_well};

/// A page of a made crawl.
#[derive(Clone, Debug)]
pub struct MadePage {
    pub url: String,
    /// Pages with one number have one text; others have no five words in common.
    pub text: u64,
    pub links: Vec<String>,
}

/// What a made crawl brings home.
#[derive(Clone, Debug, Default)]
pub struct MadeCrawl {
    pub pages: Vec<MadePage>,
    /// URLs, and where they redirect to.
    pub redirects: Vec<(String, String)>,
    /// Sets of hosts with one address; all others have one each.
    pub machines: Vec<Vec<String>>,
}

pub fn host_of(url: &str) -> &str {
    url.split('/').nth(2).unwrap()
}

impl MadeCrawl {
    /// Adds a page that does not link anywhere.
    pub fn page(&mut self, url: &str, text: u64) {
        self.pages.push(MadePage { url: url.to_owned(), text, links: Vec::new() });
    }

    /// Adds pages below a directory: `NAME.html` for each text; each links to all others.
    pub fn manual(&mut self, directory: &str, texts: impl IntoIterator<Item = u64>) {
        let texts: Vec<u64> = texts.into_iter().collect();
        let url = |text: &u64| format!("{directory}{text}.html");
        let links: Vec<String> = texts.iter().map(url).collect();
        self.pages.extend(texts.iter().map(|text| MadePage { url: url(text), text: *text, links: links.clone() }));
    }

    pub fn redirect(&mut self, url: &str, target: &str) {
        self.redirects.push((url.to_owned(), target.to_owned()));
    }

    fn address(&self, host: &str) -> String {
        let machine = self.machines.iter().find(|hosts| hosts.iter().any(|of| of == host));
        let hash = checksum(machine.map_or(host, |hosts| &hosts[0]).as_bytes());
        format!("10.{}.{}.{}", hash as u8, (hash >> 8) as u8, (hash >> 16) as u8)
    }

    /// Each URL once: the first of several pages or redirects.
    pub fn tidy(&mut self) {
        let mut seen = BTreeSet::new();
        self.pages.retain(|page| seen.insert(page.url.clone()));
        self.redirects.retain(|(url, _)| seen.insert(url.clone()));
    }

    fn warc(&self) -> String {
        let mut warc = String::new();
        for page in &self.pages {
            let words: Vec<String> =
                (0..60u64).map(|word| format!("w{}", mix(page.text << 8 | word) % 100_000)).collect();
            let links: String = page.links.iter().map(|link| format!("<a href=\"{link}\"></a>")).collect();
            let html = format!("<p>{}</p>{links}", words.join(" "));
            let http = format!("HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n\r\n{html}");
            record(&mut warc, &page.url, &self.address(host_of(&page.url)), &http);
        }
        for (url, target) in &self.redirects {
            let http = format!("HTTP/1.1 301 Moved\r\nLocation: {target}\r\nContent-Length: 0\r\n\r\n");
            record(&mut warc, url, &self.address(host_of(url)), &http);
        }
        warc
    }
}

fn record(warc: &mut String, url: &str, ip: &str, http: &str) {
    let id = checksum(url.as_bytes()) as u64;
    write!(
        warc,
        "WARC/1.1\r\nWARC-Type: response\r\nWARC-Date: 2024-01-08T00:00:00Z\r\nWARC-Record-ID: \
         <urn:uuid:00000000-0000-0000-{:04x}-{:012x}>\r\nWARC-IP-Address: {ip}\r\nWARC-Target-URI: {url}\r\n\
         Content-Type: application/http; msgtype=response\r\nContent-Length: {}\r\n\r\n{http}\r\n\r\n",
        id >> 48,
        id & 0xFFFF_FFFF_FFFF,
        http.len()
    )
    .unwrap();
}

/// A store of made crawls.
pub struct MadeStore {
    folder: tempfile::TempDir,
}

/// The weeks of made stores.
pub const DATES: [&str; 4] = ["2024-01-08", "2024-01-15", "2024-01-22", "2024-01-29"];

impl MadeStore {
    pub fn new(crawls: &[&MadeCrawl]) -> MadeStore {
        let store = MadeStore { folder: tempfile::tempdir().unwrap() };
        crawls.iter().zip(DATES).for_each(|(crawl, date)| store.add(date, crawl));
        store
    }

    /// Adds a week.
    pub fn add(&self, date: &str, crawl: &MadeCrawl) {
        let kind = if self.path().exists() { "weekly" } else { "cluster" };
        let input = self.folder.path().join(format!("{date}.warc"));
        std::fs::write(&input, crawl.warc()).unwrap();
        let job = job(self.folder.path(), &format!("[{kind}]\nallow-empty = true\n"));
        let flags = ["-q", "--week", date, "--input", input.to_str().unwrap(), "--store", self.text()];
        run_well(&[&["run", job.to_str().unwrap()][..], &flags].concat());
    }

    pub fn path(&self) -> PathBuf {
        self.folder.path().join("store")
    }

    /// Its path as text, which lives as long as the store.
    pub fn text(&self) -> &str {
        Box::leak(self.path().to_str().unwrap().to_owned().into_boxed_str())
    }

    /// A file beside the store.
    pub fn beside(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// Runs a study with what differs from its defaults.
    pub fn study(&self, name: &str, fields: &str, flags: &[&str]) {
        let job = job(self.folder.path(), &format!("[{name}]\n{fields}"));
        run_well(&[&["run", job.to_str().unwrap(), "-q", "--store", self.text()], flags].concat());
    }

    /// Runs all studies that the list is made from, for the last week.
    pub fn studies(&self) {
        self.study("collections", "", &[]);
        self.study("mirrors", "", &[]);
        self.study("mirrors-by-url", "least-urls = 10\n", &[]);
        self.study("overlap", "", &[]);
    }

    /// The list, as JSON.
    pub fn avoid(&self, flags: &[&str]) -> serde_json::Value {
        let ran = run_well(&[&["avoid", self.text(), "--json"], flags].concat());
        serde_json::from_str(&ran.stdout).unwrap()
    }

    /// The prefixes of the list.
    pub fn prefixes(&self, flags: &[&str]) -> Vec<String> {
        rows(&self.avoid(flags)).iter().map(|row| row.prefix.clone()).collect()
    }
}

/// A row of the list.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct PrefixRow {
    pub prefix: String,
    pub keep: String,
    pub why: Vec<String>,
    /// Pages, redirects, named, lost.
    pub counts: [u64; 4],
    pub sample: Vec<String>,
}

/// The rows of a list.
pub fn rows(list: &serde_json::Value) -> Vec<PrefixRow> {
    let texts = |value: &serde_json::Value| -> Vec<String> {
        value.as_array().unwrap().iter().map(|text| text.as_str().unwrap().to_owned()).collect()
    };
    let row = |row: &serde_json::Value| PrefixRow {
        prefix: row["prefix"].as_str().unwrap().to_owned(),
        keep: row["keep"].as_str().unwrap().to_owned(),
        why: texts(&row["why"]),
        counts: ["pages", "redirects", "named", "lost"].map(|name| row[name].as_u64().unwrap()),
        sample: texts(&row["sample"]),
    };
    list["prefixes"].as_array().unwrap().iter().map(row).collect()
}

/// The directories of a URL, the outermost first.
pub fn directories(url: &str) -> Vec<&str> {
    let begin = url.find("://").unwrap() + 3;
    let path = url.split('?').next().unwrap();
    (begin..path.len()).filter(|at| &url[*at..=*at] == "/").map(|at| &url[..=at]).collect()
}

/// Counts what a list says by the pages of the crawl itself, and checks that it does not contradict
/// itself.
pub fn recount(crawl: &MadeCrawl, list: &serde_json::Value, purity: f64) {
    let rows = rows(list);
    let is_below = |url: &str| rows.iter().any(|row| url.starts_with(&row.prefix));
    let fetched: BTreeSet<&str> =
        crawl.pages.iter().map(|page| &*page.url).chain(crawl.redirects.iter().map(|(url, _)| &**url)).collect();
    let is_lost = |text: u64| !crawl.pages.iter().any(|other| other.text == text && !is_below(&other.url));
    for row in &rows {
        let PrefixRow { prefix, keep, counts, sample, .. } = row;
        assert!(prefix.ends_with('/') && keep.ends_with('/'), "{row:?}");
        assert_eq!(rows.iter().filter(|other| prefix.starts_with(&other.prefix)).count(), 1, "{prefix} is in another");
        assert!(!is_below(keep), "{prefix} is avoided for {keep}, which is avoided itself");
        let pages: Vec<&MadePage> = crawl.pages.iter().filter(|page| page.url.starts_with(prefix)).collect();
        let redirects = crawl.redirects.iter().filter(|(url, _)| url.starts_with(prefix)).count();
        let lost = pages.iter().filter(|page| is_lost(page.text)).count();
        let named: BTreeSet<&str> = crawl
            .pages
            .iter()
            .flat_map(|page| &page.links)
            .map(|link| &**link)
            .filter(|link| link.starts_with(prefix) && !fetched.contains(link))
            .collect();
        assert_eq!(*counts, [pages.len(), redirects, named.len(), lost].map(|count| count as u64), "{row:?}");
        // No prefix is wider than what was seen.
        let has_copy =
            |page: &MadePage| crawl.pages.iter().any(|other| other.text == page.text && !other.url.starts_with(prefix));
        let copies: Vec<&&MadePage> = pages.iter().filter(|page| has_copy(page)).collect();
        let with_copies: BTreeSet<&str> = copies
            .iter()
            .map(|page| &*page.url)
            .chain(crawl.redirects.iter().map(|(url, _)| &**url))
            .filter_map(|url| directories(url).last().copied())
            .collect();
        let unseen = named.iter().filter(|url| !with_copies.contains(directories(url).last().unwrap())).count();
        let known = (pages.len() + redirects + unseen) as f64;
        assert!((copies.len() + redirects) as f64 + 1e-9 >= purity * known, "{row:?}: {unseen} of {known} unseen");
        let texts: BTreeSet<u64> = pages.iter().map(|page| page.text).collect();
        if !pages.is_empty() && redirects == 0 {
            let stays = |page: &&MadePage| texts.contains(&page.text) && page.url.starts_with(keep);
            assert!(crawl.pages.iter().any(|page| stays(&page)), "{row:?}");
        }
        assert!(sample.iter().all(|url| url.starts_with(prefix)), "{row:?}");
        assert_eq!(sample.len(), pages.len().min(10), "{row:?}");
    }
    let skipped: Vec<&MadePage> = crawl.pages.iter().filter(|page| is_below(&page.url)).collect();
    let lost = skipped.iter().filter(|page| is_lost(page.text)).count();
    let counts = ["documents", "skipped", "lost"].map(|name| list[name].as_u64().unwrap() as usize);
    assert_eq!(counts, [crawl.pages.len(), skipped.len(), lost]);
    assert!(lost as f64 <= (1.0 - purity) * skipped.len() as f64 + 1e-9, "{counts:?}");
}

/// Files of a folder, by name.
pub fn read(path: &Path) -> String {
    std::fs::read_to_string(path).unwrap()
}
