//! Which URLs are meant: some by name, all of some hosts, all that begin in some way.

use std::collections::BTreeSet;
use std::ops::Bound;

use serde::{Deserialize, Serialize};

use super::urls::canonical;

/// URLs, hosts and beginnings of URLs, all in canonical form. Cheap to ask however many there are.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct UrlPatterns {
    urls: BTreeSet<String>,
    hosts: BTreeSet<String>,
    /// None begins another one.
    prefixes: BTreeSet<String>,
}

/// What is no `http` or `https` URL, and no host.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NoPattern(pub String);

impl UrlPatterns {
    /// Those URLs, the URLs of those hosts, and URLs that begin so. A host is meant with its port where that is not the
    /// scheme's, and without its subdomains.
    ///
    /// ```
    /// # use nigh::text::UrlPatterns;
    /// let patterns = UrlPatterns::new(&["http://A.org/x"], &["b.org"], &["http://c.org/private/"]).unwrap();
    /// assert!(patterns.matches("http://a.org/x") && !patterns.matches("http://a.org/x/y"));
    /// assert!(patterns.matches("https://b.org/any") && !patterns.matches("https://www.b.org/any"));
    /// assert!(patterns.matches("http://c.org/private/1") && !patterns.matches("http://c.org/privately"));
    /// ```
    ///
    /// # Errors
    /// The first that is neither; and a beginning that is not in its canonical form, for that may mean more.
    pub fn new<T: AsRef<str>>(urls: &[T], hosts: &[T], prefixes: &[T]) -> Result<UrlPatterns, NoPattern> {
        let form = |url: &T| {
            let canonical = canonical(url.as_ref()).map(|url| url.as_str().to_owned());
            canonical.ok_or_else(|| NoPattern(url.as_ref().to_owned()))
        };
        let host = |host: &T| {
            let host = host.as_ref();
            // As the host of a URL, and nothing else of one.
            let whole = canonical(&format!("http://{host}/")).filter(|url| url.as_str().matches('/').count() == 3);
            let whole = whole.filter(|_| !host.contains(['@', '?', '#', '/', '\\']) && !host.is_empty());
            whole.map(|url| url.host().to_owned()).ok_or_else(|| NoPattern(host.to_owned()))
        };
        let prefix = |prefix: &T| {
            let (whole, given) = (form(prefix)?, prefix.as_ref());
            // What is left out of a URL that is read (a fragment, `..`) would leave a prefix that means more.
            let path =
                given.split_once("://").and_then(|(_, rest)| rest.find('/').map(|at| &rest[at..])).unwrap_or("/");
            let kept = whole.ends_with(path) && !given.contains(['#', '@']);
            kept.then_some(whole).ok_or_else(|| NoPattern(given.to_owned()))
        };
        let sorted: BTreeSet<String> = prefixes.iter().map(prefix).collect::<Result<_, _>>()?;
        let mut prefixes: BTreeSet<String> = BTreeSet::new();
        for prefix in sorted {
            // In this order whatever begins a prefix comes before it.
            if !prefixes.last().is_some_and(|last| prefix.starts_with(last.as_str())) {
                prefixes.insert(prefix);
            }
        }
        let (urls, hosts) = (urls.iter().map(form).collect::<Result<_, _>>()?, hosts.iter().map(host));
        Ok(UrlPatterns { urls, hosts: hosts.collect::<Result<_, _>>()?, prefixes })
    }

    /// Whether a canonical URL is meant.
    pub fn matches(&self, url: &str) -> bool {
        let last_prefix = || self.prefixes.range::<str, _>((Bound::Unbounded, Bound::Included(url))).next_back();
        self.urls.contains(url)
            || self.hosts.contains(host(url))
            // No prefix begins another one, so that only the last one before the URL can begin it.
            || last_prefix().is_some_and(|prefix| url.starts_with(prefix.as_str()))
    }

    /// The URLs that are meant by name, where no host and no beginning is.
    pub fn only_urls(&self) -> Option<&BTreeSet<String>> {
        (self.hosts.is_empty() && self.prefixes.is_empty()).then_some(&self.urls)
    }

    /// Whether nothing is meant.
    pub fn is_empty(&self) -> bool {
        self.urls.is_empty() && self.hosts.is_empty() && self.prefixes.is_empty()
    }
}

/// How many there are of each kind.
impl std::fmt::Display for UrlPatterns {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let kinds = [(self.urls.len(), "URL"), (self.hosts.len(), "host"), (self.prefixes.len(), "prefix")];
        let some = kinds.into_iter().filter(|(count, _)| *count > 0).map(|(count, kind)| match (count, kind) {
            (1, _) => format!("1 {kind}"),
            (_, "prefix") => format!("{count} prefixes"),
            _ => format!("{count} {kind}s"),
        });
        f.write_str(&some.collect::<Vec<_>>().join(", "))
    }
}

/// The host of a canonical URL, with its port where it has one.
fn host(url: &str) -> &str {
    let rest = url.split_once("://").map_or("", |(_, rest)| rest);
    rest.split(['/', '?', '#']).next().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn prefixes_mean_what_begins_so_however_they_nest() {
        let texts = ["http://a.org/b", "http://a.org/", "http://a.org/b/c", "http://z.org/x", "http://a.org.evil/q"];
        let patterns = UrlPatterns::new(&[], &[], &texts).unwrap();
        let all = ["http://a.org/", "http://a.org/b", "http://a.org/zz", "http://a.org.evil/q1", "http://z.org/xy"];
        let none = ["http://a.org.evil/", "http://a.orga/", "http://z.org/", "https://a.org/"];
        for url in all.iter().chain(&none) {
            let slow = texts.iter().any(|text| url.starts_with(text));
            assert_eq!((patterns.matches(url), slow), (slow, all.contains(url)), "{url}");
        }
        // A host alone is its root: no other host begins so.
        assert!(!UrlPatterns::new(&[], &[], &["http://a.org"]).unwrap().matches("http://a.org.evil/"));
    }

    #[test]
    fn what_is_no_url_or_host_is_refused() {
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
            assert_eq!(UrlPatterns::new(urls, hosts, prefixes), Err(NoPattern(given)));
        }
        let hosts = UrlPatterns::new(&[], &["A.org:8080", "b.org:80"], &[]).unwrap();
        assert!(
            hosts.matches("http://a.org:8080/") && !hosts.matches("http://a.org/") && hosts.matches("http://b.org/")
        );
        assert_eq!(hosts.to_string(), "2 hosts");
    }
}
