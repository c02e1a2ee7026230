//! Sets of documents: single URLs or ids, all URLs of a host, all URLs with a prefix.

use std::collections::BTreeSet;
use std::ops::Bound;

use serde::{Deserialize, Serialize};

use super::canonical::{canonical, canonical_host};

/// A set of URLs given by URLs, hosts and prefixes, all in canonical form. A lookup takes time
/// logarithmic in their number.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct UrlPatterns {
    urls: BTreeSet<String>,
    hosts: BTreeSet<String>,
    /// No prefix is a prefix of another one.
    prefixes: BTreeSet<String>,
    ids: BTreeSet<String>,
}

/// The text that is not a valid pattern: not an `http` or `https` URL, not a host, or an ambiguous
/// prefix.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InvalidPattern(pub String);

impl UrlPatterns {
    /// Makes the set of these URLs, all URLs of these hosts, and all URLs with these prefixes. A
    /// host includes its port if that is not the default one of the scheme, and does not include
    /// its subdomains.
    ///
    /// ```
    /// # use nigh_text::text::UrlPatterns;
    /// let patterns = UrlPatterns::new(&["http://A.org/x"], &["b.org"], &["http://c.org/private/"]).unwrap();
    /// assert!(patterns.matches("http://a.org/x") && !patterns.matches("http://a.org/x/y"));
    /// assert!(patterns.matches("https://b.org/any") && !patterns.matches("https://www.b.org/any"));
    /// assert!(patterns.matches("http://c.org/private/1") && !patterns.matches("http://c.org/privately"));
    /// ```
    ///
    /// # Errors
    /// The first text that is not an `http` or `https` URL or not a host, or a prefix whose path is
    /// not in canonical form: the canonical form may match more URLs than were meant.
    pub fn new<T: AsRef<str>>(urls: &[T], hosts: &[T], prefixes: &[T]) -> Result<UrlPatterns, InvalidPattern> {
        let form = |url: &T| {
            let canonical = canonical(url.as_ref()).map(|url| url.as_str().to_owned());
            canonical.ok_or_else(|| InvalidPattern(url.as_ref().to_owned()))
        };
        let host = |host: &T| canonical_host(host.as_ref()).ok_or_else(|| InvalidPattern(host.as_ref().to_owned()));
        let prefix = |prefix: &T| {
            let (url, given) = (form(prefix)?, prefix.as_ref());
            // The canonical form drops parts (a fragment, `..`): the shorter prefix would match
            // more URLs.
            let path =
                given.split_once("://").and_then(|(_, rest)| rest.find('/').map(|at| &rest[at..])).unwrap_or("/");
            let is_canonical = url.ends_with(path) && !given.contains(['#', '@']);
            is_canonical.then_some(url).ok_or_else(|| InvalidPattern(given.to_owned()))
        };
        let sorted: BTreeSet<String> = prefixes.iter().map(prefix).collect::<Result<_, _>>()?;
        let mut prefixes: BTreeSet<String> = BTreeSet::new();
        for prefix in sorted {
            // In sorted order, a prefix of another prefix comes before it.
            if !prefixes.last().is_some_and(|last| prefix.starts_with(last.as_str())) {
                prefixes.insert(prefix);
            }
        }
        let (urls, hosts) = (urls.iter().map(form).collect::<Result<_, _>>()?, hosts.iter().map(host));
        Ok(UrlPatterns { urls, hosts: hosts.collect::<Result<_, _>>()?, prefixes, ids: BTreeSet::new() })
    }

    /// The set of the documents with these ids.
    pub fn of_ids(ids: impl IntoIterator<Item = String>) -> UrlPatterns {
        UrlPatterns { ids: ids.into_iter().collect(), ..UrlPatterns::default() }
    }

    /// Whether the set has an id.
    pub fn has_id(&self, id: &str) -> bool {
        self.ids.contains(id)
    }

    /// Whether a canonical URL is in the set.
    pub fn matches(&self, url: &str) -> bool {
        self.matched_by(Some(url), None).next().is_some()
    }

    /// The patterns that a canonical URL or an id matches.
    ///
    /// ```
    /// # use nigh_text::text::UrlPatterns;
    /// let patterns = UrlPatterns::new(&["http://a.org/x"], &["a.org"], &["http://c.org/"]).unwrap();
    /// let matched: Vec<&str> = patterns.matched_by(Some("http://a.org/x"), None).collect();
    /// assert_eq!(matched, ["http://a.org/x", "a.org"]);
    /// assert_eq!(patterns.all().count(), 3);
    /// ```
    pub fn matched_by<'a>(&'a self, url: Option<&str>, id: Option<&str>) -> impl Iterator<Item = &'a str> + use<'a> {
        // No prefix is a prefix of another one, so only the last one that sorts before the URL can
        // be its prefix.
        let prefix = |url: &str| {
            let last = self.prefixes.range::<str, _>((Bound::Unbounded, Bound::Included(url))).next_back();
            last.filter(|prefix| url.starts_with(prefix.as_str()))
        };
        let patterns = [
            url.and_then(|url| self.urls.get(url)),
            url.and_then(|url| self.hosts.get(host(url))),
            url.and_then(prefix),
            id.and_then(|id| self.ids.get(id)),
        ];
        patterns.into_iter().flatten().map(String::as_str)
    }

    /// All patterns: URLs, hosts, prefixes that are not below another one, and ids, each kind
    /// sorted.
    pub fn all(&self) -> impl Iterator<Item = &str> {
        [&self.urls, &self.hosts, &self.prefixes, &self.ids].into_iter().flatten().map(String::as_str)
    }

    /// Whether the set has all URLs of a host because it names the host.
    ///
    /// ```
    /// # use nigh_text::text::UrlPatterns;
    /// let patterns = UrlPatterns::new(&["http://a.org/x"], &["b.org"], &["http://c.org/"]).unwrap();
    /// assert_eq!(["a.org", "b.org", "c.org"].map(|host| patterns.has_host(host)), [false, true, false]);
    /// ```
    pub fn has_host(&self, host: &str) -> bool {
        self.hosts.contains(host)
    }

    /// The URLs and ids of the set, if it has no host and no prefix.
    pub fn only_keys(&self) -> Option<impl Iterator<Item = &String>> {
        (self.hosts.is_empty() && self.prefixes.is_empty()).then(|| self.urls.iter().chain(&self.ids))
    }

    /// Whether the set has no pattern.
    pub fn is_empty(&self) -> bool {
        self.urls.is_empty() && self.hosts.is_empty() && self.prefixes.is_empty() && self.ids.is_empty()
    }
}

/// The number of patterns of each kind, as in `2 URLs, 1 host`.
impl std::fmt::Display for UrlPatterns {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let kinds = [
            (self.urls.len(), "URL"),
            (self.hosts.len(), "host"),
            (self.prefixes.len(), "prefix"),
            (self.ids.len(), "id"),
        ];
        let counts = kinds.into_iter().filter(|(count, _)| *count > 0).map(|(count, kind)| match (count, kind) {
            (1, _) => format!("1 {kind}"),
            (_, "prefix") => format!("{count} prefixes"),
            _ => format!("{count} {kind}s"),
        });
        f.write_str(&counts.collect::<Vec<_>>().join(", "))
    }
}

/// The host of a canonical URL, with its port if it has one.
fn host(url: &str) -> &str {
    let rest = url.split_once("://").map_or("", |(_, rest)| rest);
    rest.split(['/', '?', '#']).next().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn prefixes_match_all_urls_that_begin_with_them_also_if_they_nest() {
        let texts = ["http://a.org/b", "http://a.org/", "http://a.org/b/c", "http://z.org/x", "http://a.org.evil/q"];
        let patterns = UrlPatterns::new(&[], &[], &texts).unwrap();
        let all = ["http://a.org/", "http://a.org/b", "http://a.org/zz", "http://a.org.evil/q1", "http://z.org/xy"];
        let none = ["http://a.org.evil/", "http://a.orga/", "http://z.org/", "https://a.org/"];
        for url in all.iter().chain(&none) {
            let slow = texts.iter().any(|text| url.starts_with(text));
            assert_eq!((patterns.matches(url), slow), (slow, all.contains(url)), "{url}");
        }
        // A prefix that is a host alone ends in its root `/`, so it does not match a longer host.
        assert!(!UrlPatterns::new(&[], &[], &["http://a.org"]).unwrap().matches("http://a.org.evil/"));
    }

    #[test]
    fn texts_that_are_not_urls_or_hosts_are_refused() {
        for (urls, hosts, prefixes) in [
            (&["a.org/x"][..], &[][..], &[][..]),
            (&[], &["http://a.org"], &[]),
            (&[], &["a.org/x"], &[]),
            (&[], &["me@a.org"], &[]),
            (&[], &[""], &[]),
            (&[], &["a.org?x"], &[]),
            (&[], &[], &["ftp://a.org/"]),
            (&[], &[], &["http://a.org/#!/private/"]),
            (&[], &[], &["http://a.org/."]),
            (&[], &[], &["http://a.org/x/.."]),
            (&[], &[], &["http://a.org/a b"]),
        ] {
            let given = [urls, hosts, prefixes].concat()[0].to_owned();
            assert_eq!(UrlPatterns::new(urls, hosts, prefixes), Err(InvalidPattern(given)));
        }
        let hosts = UrlPatterns::new(&[], &["A.org:8080", "b.org:80"], &[]).unwrap();
        assert!(
            hosts.matches("http://a.org:8080/") && !hosts.matches("http://a.org/") && hosts.matches("http://b.org/")
        );
        assert_eq!(hosts.to_string(), "2 hosts");
    }
}
