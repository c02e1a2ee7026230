//! A week of a made web as a crawler sees it, and its files.

use std::collections::BTreeSet;
use std::fmt::Write;
use std::path::Path;

use xxhash_rust::xxh3::xxh3_64;

use super::truth::{AliasKind, Fate};
use super::{WEEKS, Web};

/// What a job needs to read the files of [`Crawl::write_jsonl`].
pub const COLUMNS: &str = "[cluster.read.columns]\nurl = \"url\"\nhtml = \"html\"\nip = \"ip\"\ndate = \"fetched\"\n";

/// A page of a week.
#[derive(Clone, Debug, PartialEq)]
pub struct CrawledPage {
    pub url: String,
    pub host: String,
    pub path: String,
    pub html: String,
    /// The text of the HTML.
    pub text: String,
    /// The URLs that it links to, in order.
    pub links: Vec<String>,
    pub ip: Option<String>,
    pub fetched: String,
}

/// A URL that answers with another URL.
#[derive(Clone, Debug, PartialEq)]
pub struct CrawlRedirect {
    pub url: String,
    pub target: String,
    pub status: u16,
    pub ip: Option<String>,
    pub fetched: String,
}

/// A URL of the week before that gives no page.
#[derive(Clone, Debug, PartialEq)]
pub struct FailedFetch {
    pub url: String,
    /// `status 404`, or `dns` where the whole host is gone.
    pub reason: String,
}

/// What a crawler brings home in a week. All lists are in the order of URLs.
pub struct Crawl {
    pub date: &'static str,
    pub pages: Vec<CrawledPage>,
    pub redirects: Vec<CrawlRedirect>,
    pub failures: Vec<FailedFetch>,
}

impl Crawl {
    pub(super) fn of(web: &Web, week: usize) -> Crawl {
        let hosts = &web.weeks[week];
        let date = WEEKS[week];
        let fetched = |url: &str| {
            let second = xxh3_64(url.as_bytes()) % 86_400;
            format!("{date}T{:02}:{:02}:{:02}Z", second / 3_600, second / 60 % 60, second % 60)
        };
        let ip = |host: &str, path: &str| {
            let addresses = web.addresses.get(host)?;
            Some(addresses[(xxh3_64(path.as_bytes()) % addresses.len() as u64) as usize].clone())
        };
        let mut pages = Vec::new();
        for (host, docs) in hosts {
            for (path, doc) in docs {
                let url = format!("http://{host}{path}");
                let links = doc.links.iter().map(|link| resolved(&link.href, host, path)).collect();
                let (html, text, ip, fetched) = (doc.html(), doc.text(), ip(host, path), fetched(&url));
                pages.push(CrawledPage { url, host: host.clone(), path: path.clone(), html, text, links, ip, fetched });
            }
        }
        let mut redirects = Vec::new();
        for alias in web.truth.aliases.iter().filter(|alias| alias.kind == AliasKind::Redirect) {
            let moved = hosts[&alias.of].keys().filter(|path| alias.copying.fate(path) == Fate::Missing);
            redirects.extend(moved.map(|path| {
                let url = format!("http://{}{path}", alias.host);
                let status = [301, 302, 307, 308][(xxh3_64(path.as_bytes()) % 4) as usize];
                let (ip, fetched) = (ip(&alias.host, path), fetched(&url));
                CrawlRedirect { target: format!("http://{}{path}", alias.of), url, status, ip, fetched }
            }));
        }
        redirects.sort_by(|a, b| a.url.cmp(&b.url));
        let answered: BTreeSet<&str> =
            pages.iter().map(|page| &*page.url).chain(redirects.iter().map(|redirect| &*redirect.url)).collect();
        let mut failures = Vec::new();
        if let Some(before) = week.checked_sub(1) {
            for (host, docs) in &web.weeks[before] {
                let reason = if hosts.contains_key(host) { "status 404" } else { "dns" };
                let urls = docs.keys().map(|path| format!("http://{host}{path}"));
                let gone = urls.filter(|url| !answered.contains(&**url));
                failures.extend(gone.map(|url| FailedFetch { url, reason: reason.to_owned() }));
            }
        }
        Crawl { date, pages, redirects, failures }
    }

    /// Writes `pages.jsonl` and `failed.tsv`. JSON Lines have no redirects.
    pub fn write_jsonl(&self, folder: &Path) {
        let line = |page: &CrawledPage| {
            let CrawledPage { url, html, ip, fetched, .. } = page;
            serde_json::json!({"url": url, "html": html, "ip": ip, "fetched": fetched}).to_string() + "\n"
        };
        std::fs::write(folder.join("pages.jsonl"), self.pages.iter().map(line).collect::<String>()).unwrap();
        self.write_failures(folder);
    }

    /// Writes `crawl.warc` with pages and redirects, and `failed.tsv`.
    pub fn write_warc(&self, folder: &Path) {
        let mut warc = String::new();
        for page in &self.pages {
            let http = format!(
                "HTTP/1.1 200 OK\r\nContent-Type: text/html; charset=utf-8\r\nContent-Length: {}\r\n\r\n{}",
                page.html.len(),
                page.html
            );
            record(&mut warc, &page.url, &page.fetched, page.ip.as_deref(), &http);
        }
        for redirect in &self.redirects {
            let CrawlRedirect { url, target, status, ip, fetched } = redirect;
            let http = format!("HTTP/1.1 {status} Moved\r\nLocation: {target}\r\nContent-Length: 0\r\n\r\n");
            record(&mut warc, url, fetched, ip.as_deref(), &http);
        }
        std::fs::write(folder.join("crawl.warc"), warc).unwrap();
        self.write_failures(folder);
    }

    fn write_failures(&self, folder: &Path) {
        let row = |failure: &FailedFetch| format!("{}\t{}\n", failure.url, failure.reason);
        let rows: String = self.failures.iter().map(row).collect();
        std::fs::write(folder.join("failed.tsv"), format!("url\treason\n{rows}")).unwrap();
    }
}

/// Appends a WARC record of a response.
fn record(warc: &mut String, url: &str, fetched: &str, ip: Option<&str>, http: &str) {
    let id = xxh3_64(url.as_bytes());
    let ip = ip.map(|ip| format!("WARC-IP-Address: {ip}\r\n")).unwrap_or_default();
    write!(
        warc,
        "WARC/1.1\r\nWARC-Type: response\r\nWARC-Date: {fetched}\r\nWARC-Record-ID: <urn:uuid:00000000-0000-0000-{:04x}-{:012x}>\r\n\
         {ip}WARC-Target-URI: {url}\r\nContent-Type: application/http; msgtype=response\r\nContent-Length: {}\r\n\r\n{http}\r\n\r\n",
        id >> 48,
        id & 0xFFFF_FFFF_FFFF,
        http.len()
    )
    .unwrap();
}

/// The URL of a link; made pages have no `.` or `..` in theirs.
fn resolved(href: &str, host: &str, path: &str) -> String {
    if href.starts_with("http") {
        href.to_owned()
    } else if href.starts_with('/') {
        format!("http://{host}{href}")
    } else {
        let folder = &path[..=path.rfind('/').unwrap()];
        format!("http://{host}{folder}{href}")
    }
}
