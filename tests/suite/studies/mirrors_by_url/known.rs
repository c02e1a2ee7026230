//! What is known of hosts, URLs and pages before a mirrors-by-url job, in dictionaries: the tables
//! of a week, and what lists say.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use crate::program::{bytes, features, files, longs, texts, week};

/// A host and a path.
type HostAndPath = (String, String);

/// A page: the smaller number counts, if there are two of one name.
#[derive(Clone)]
pub struct HostPage {
    pub order: i64,
    pub checksum: Vec<u8>,
    /// `None` without words.
    pub features: Option<Vec<u16>>,
}

/// What is said of a URL.
#[derive(Clone, Copy, Default)]
pub struct SaidOfUrl {
    pub fetched: bool,
    pub gone: bool,
    pub listed_fetched: bool,
    pub listed_gone: bool,
    /// Whether it is somewhere with the scheme `http`.
    pub plain: bool,
}

/// What is known before the job.
#[derive(Default)]
pub struct KnownBefore {
    pub urls: BTreeMap<HostAndPath, SaidOfUrl>,
    pub pages: BTreeMap<HostAndPath, HostPage>,
    pub gone: BTreeSet<HostAndPath>,
    /// URLs that redirect to the same path of their host, with a slash more or less at its end.
    slash: BTreeSet<HostAndPath>,
    /// The reasons of failed downloads, and `page` for pages, by host.
    pub said_of_hosts: BTreeMap<String, BTreeSet<String>>,
}

pub fn name(url: &str) -> HostAndPath {
    let rest = url.split_once("://").unwrap().1;
    let slash = rest.find('/').unwrap();
    (rest[..slash].to_owned(), rest[slash..].to_owned())
}

/// The same name with a slash more or less at the end of its path.
fn with_or_without_slash((host, path): &HostAndPath) -> HostAndPath {
    let (path, query) = path.split_at(path.find('?').unwrap_or(path.len()));
    let other = path.strip_suffix('/').map_or_else(|| format!("{path}/"), str::to_owned);
    (host.clone(), other + query)
}

impl KnownBefore {
    /// What a week has.
    pub fn of_week(store: &Path, date: &str, pages_only: bool) -> KnownBefore {
        let (mut known, week) = (KnownBefore::default(), week(store, date));
        let docs = longs(&week, "documents", "doc");
        let (urls, sums) = (texts(&week, "documents", "url"), bytes(&week, "documents", "checksum"));
        let features = features(&week);
        for ((doc, url), checksum) in docs.iter().zip(&urls).zip(sums) {
            known.add(url, SaidOfUrl { fetched: true, ..SaidOfUrl::default() });
            let page = HostPage { order: *doc, checksum, features: features.get(doc).cloned() };
            known.add_page(name(url), page);
            known.said_of_hosts.entry(name(url).0).or_default().insert("page".to_owned());
        }
        let has = |table: &str| week.join(table).exists() || !files(&week, table).is_empty();
        if has("missing") {
            for (url, reason) in texts(&week, "missing", "url").iter().zip(texts(&week, "missing", "reason")) {
                if ["status 404", "status 410"].contains(&reason.as_str()) {
                    known.gone.insert(name(url));
                    if !pages_only {
                        known.add(url, SaidOfUrl { gone: true, ..SaidOfUrl::default() });
                    }
                }
            }
        }
        if has("host-failures") {
            let reasons = texts(&week, "host-failures", "reason");
            for (host, reason) in texts(&week, "host-failures", "host").into_iter().zip(reasons) {
                known.said_of_hosts.entry(host).or_default().insert(reason);
            }
        }
        if !pages_only && has("links") {
            texts(&week, "links", "target_url").iter().for_each(|url| known.add(url, SaidOfUrl::default()));
        }
        if has("redirects") {
            let targets = texts(&week, "redirects", "target_url");
            for (url, target) in texts(&week, "redirects", "url").iter().map(|url| name(url)).zip(targets) {
                if name(&target) == with_or_without_slash(&url) {
                    known.slash.insert(url.clone());
                }
                // A redirect is an answer.
                known.said_of_hosts.entry(url.0.clone()).or_default().insert("page".to_owned());
                known.gone.insert(url);
            }
        }
        known
    }

    pub fn add(&mut self, url: &str, said: SaidOfUrl) {
        let plain = url.starts_with("http:");
        self.urls.entry(name(url)).or_default().add(SaidOfUrl { plain, ..said });
    }

    /// The page of a host at a path, or where it redirects if only a slash is different.
    pub fn page(&self, host: &str, path: &str) -> Option<&HostPage> {
        let name = (host.to_owned(), path.to_owned());
        let other = || self.slash.contains(&name).then(|| self.pages.get(&with_or_without_slash(&name))).flatten();
        self.pages.get(&name).or_else(other)
    }

    /// Whether it is known that the host does not have the page, if nothing is known of a page.
    pub fn has_failed(&self, host: &str, path: &str) -> bool {
        let name = (host.to_owned(), path.to_owned());
        let is_listed_gone = |said: &SaidOfUrl| said.listed_gone && !said.listed_fetched;
        self.gone.contains(&name) || self.urls.get(&name).is_some_and(is_listed_gone)
    }

    /// What does not work at a host that answers nothing.
    pub fn failure(&self, host: &str) -> &'static str {
        let Some(said) = self.said_of_hosts.get(host) else { return "null" };
        let is_error = |reason: &String| reason.starts_with("status 5");
        let is_answer = |reason: &String| reason == "page" || reason.starts_with("status") && !is_error(reason);
        let is_connection = |reason: &String| reason.contains("connection") || reason == "timeout";
        match () {
            _ if said.iter().any(is_answer) => "null",
            _ if said.iter().any(is_error) => "server-error",
            _ if said.iter().any(is_connection) => "connection",
            _ if said.contains("dns") => "dns",
            _ => "null",
        }
    }

    /// Whether two hosts have a page at the same path with the same bytes, or with at least half of
    /// the features.
    pub fn share_a_page(&self, [a, b]: &[String; 2]) -> bool {
        let of_host = self.pages.range((a.clone(), String::new())..).take_while(|(name, _)| name.0 == *a);
        of_host.into_iter().any(|((_, path), page)| {
            let Some(other) = self.pages.get(&(b.clone(), path.clone())) else { return false };
            let alike = |(a, b): (&Vec<u16>, &Vec<u16>)| 2 * a.iter().zip(b).filter(|(a, b)| a == b).count() >= a.len();
            page.checksum == other.checksum || page.features.as_ref().zip(other.features.as_ref()).is_some_and(alike)
        })
    }

    /// Adds all that is known here to `other`.
    pub fn join(&self, other: &mut KnownBefore) {
        for (name, said) in &self.urls {
            other.urls.entry(name.clone()).or_default().add(*said);
        }
    }

    pub fn add_page(&mut self, name: HostAndPath, page: HostPage) {
        match self.pages.get(&name) {
            Some(other) if other.order < page.order => {}
            _ => {
                self.pages.insert(name, page);
            }
        }
    }
}

impl SaidOfUrl {
    fn add(&mut self, other: SaidOfUrl) {
        self.fetched |= other.fetched;
        self.gone |= other.gone;
        self.listed_fetched |= other.listed_fetched;
        self.listed_gone |= other.listed_gone;
        self.plain |= other.plain;
    }
}
