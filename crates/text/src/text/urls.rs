//! URLs: their canonical form, the links of a page, and the registered domain of a host.
//!
//! Two spellings of one URL must be one key in all tables. The canonical form is the serialization of the WHATWG URL
//! standard (crate `url`), without the fragment, which is not sent to servers, and without user and password.

pub use super::plain::URL_BYTES;
use super::plain::{Plain, Resolution};
use std::fmt;
use std::hash::{BuildHasher, RandomState};
use std::net::Ipv4Addr;
use std::sync::LazyLock;

use url::{Position, Url};
use xxhash_rust::xxh3::xxh3_64_with_seed;

use nigh_kernels::structures::TextList;

/// The maximum number of bytes of links of one page. Otherwise a page with a long URL and many short hrefs would grow by
/// a factor of hundreds.
const LINK_BYTES: usize = 32 << 20;

/// A URL in canonical form.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Canonical {
    url: Url,
}

impl Canonical {
    /// The whole URL.
    pub fn as_str(&self) -> &str {
        self.url.as_str()
    }

    /// The host: `host`, or `host:port` if the port is not the default one of the scheme.
    pub fn host(&self) -> &str {
        &self.url[Position::BeforeHost..Position::AfterPort]
    }

    /// Resolves a reference as a browser does on this page. `None` if it is not an `http` or `https` URL, or longer than
    /// [`URL_BYTES`].
    pub fn resolve(&self, href: &str) -> Option<Canonical> {
        resolve(&self.url, href)
    }
}

impl fmt::Display for Canonical {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl From<Canonical> for String {
    fn from(canonical: Canonical) -> String {
        canonical.url.into()
    }
}

/// Returns the canonical form of a URL: parsed by the WHATWG rules; fragment, user, password and default port dropped; host
/// in lower case and ASCII. `None` if it is not an `http` or `https` URL, or longer than [`URL_BYTES`] before or after.
///
/// ```
/// # use nigh_text::text::canonical;
/// let url = canonical("HTTP://user@Example.COM:80/a/../b c?q#top").unwrap();
/// assert_eq!(url.as_str(), "http://example.com/b%20c?q");
/// assert_eq!(canonical("http://example.com:8080").unwrap().host(), "example.com:8080");
/// assert!(canonical("ftp://example.com/").is_none());
/// ```
pub fn canonical(url: &str) -> Option<Canonical> {
    if url.len() > URL_BYTES {
        return None;
    }
    canonical_form(Url::parse(url).ok()?)
}

/// Resolves the hrefs of a page against its `<base>` (itself relative to the page), or else against the page; of a page without a URL only
/// those count that need none. Returns the
/// canonical forms of those that are `http` or `https`, each once, in order of first appearance. It stops at 32 MiB of
/// links, repeated ones included. A link to the page itself (`#top`) counts like any other.
///
/// ```
/// # use nigh_text::text::{canonical, out_links};
/// let page = canonical("http://example.com/a/b").unwrap();
/// let hrefs = ["c", "#top", "mailto:d@example.com", "./c"];
/// let links = out_links(Some(&page), None, hrefs);
/// assert_eq!(links, ["http://example.com/a/c", "http://example.com/a/b"]);
/// assert_eq!(out_links(None, None, ["c", "http://b.example"]), ["http://b.example/"]);
/// ```
pub fn out_links<'a>(
    page: Option<&Canonical>,
    base: Option<&str>,
    hrefs: impl IntoIterator<Item = &'a str, IntoIter: ExactSizeIterator>,
) -> TextList {
    let base = base
        .filter(|base| base.len() <= URL_BYTES)
        .and_then(|base| page.map_or_else(|| Url::parse(base), |page| page.url.join(base)).ok())
        .filter(|base| !matches!(base.scheme(), "data" | "javascript"))
        .filter(|base| base.as_str().len() <= URL_BYTES);
    let base = base.as_ref().or(page.map(|page| &page.url));
    let plain = base.and_then(Plain::new);
    let hrefs = hrefs.into_iter();
    let mut distinct = DistinctLinks::new(hrefs.len());
    let mut link = String::new();
    let mut bytes = 0;
    for href in hrefs {
        link.clear();
        match plain.as_ref().map_or(Resolution::General, |plain| plain.resolve(href, &mut link)) {
            Resolution::Plain => {}
            Resolution::NotWeb => continue,
            Resolution::General => match base.map_or_else(|| canonical(href), |base| resolve(base, href)) {
                Some(resolved) => link = resolved.into(),
                None => continue,
            },
        }
        bytes += link.len();
        if bytes > LINK_BYTES {
            break;
        }
        distinct.insert(&link);
    }
    distinct.links.shrink_to_fit();
    distinct.links
}

/// Distinct links, in order of first appearance.
struct DistinctLinks {
    links: TextList,
    /// A hash table with linear probing. A slot is 0, or has the upper half of the hash of a link and, in its lower half,
    /// the index of the link plus one.
    slots: Vec<u64>,
}

impl DistinctLinks {
    /// Makes room for `count` links.
    fn new(count: usize) -> DistinctLinks {
        DistinctLinks { links: TextList::default(), slots: vec![0; (2 * count + 1).next_power_of_two()] }
    }

    fn insert(&mut self, link: &str) {
        /// Secret, so that a page whose links all collide cannot be made. The result does not depend on it.
        static SEED: LazyLock<u64> = LazyLock::new(|| RandomState::new().hash_one(0));
        const INDEX: u64 = u32::MAX as u64;
        let hash = xxh3_64_with_seed(link.as_bytes(), *SEED);
        let mask = self.slots.len() - 1;
        let mut at = (hash >> 32) as usize & mask;
        loop {
            let slot = self.slots[at];
            if slot == 0 {
                self.links.push(link);
                self.slots[at] = hash & !INDEX | self.links.len() as u64;
                return;
            }
            if slot & !INDEX == hash & !INDEX && self.links.get((slot & INDEX) as usize - 1) == Some(link) {
                return;
            }
            at = (at + 1) & mask;
        }
    }
}

/// Returns the registered domain of a host: one label below the public suffix (`www.bbc.co.uk` to `bbc.co.uk`). If there
/// is none (an IP address, `localhost`, a public suffix), it is the host itself. A port is dropped.
///
/// ```
/// # use nigh_text::text::domain;
/// assert_eq!(domain("news.bbc.co.uk:8080"), "bbc.co.uk");
/// assert_eq!(domain("127.0.0.1"), "127.0.0.1");
/// ```
pub fn domain(host: &str) -> &str {
    let name = match host.rsplit_once(':') {
        Some((name, port)) if !port.ends_with(']') => name,
        _ => host,
    };
    if name.starts_with('[') || name.parse::<Ipv4Addr>().is_ok() {
        return name;
    }
    psl::domain_str(name).unwrap_or(name)
}

/// Resolves an href against a base by the `url` crate.
pub(super) fn resolve(base: &Url, href: &str) -> Option<Canonical> {
    if href.len() > URL_BYTES {
        return None;
    }
    canonical_form(base.join(href).ok()?)
}

fn canonical_form(mut url: Url) -> Option<Canonical> {
    if !matches!(url.scheme(), "http" | "https") || url.host_str().is_none_or(str::is_empty) {
        return None;
    }
    url.set_fragment(None);
    if !url.username().is_empty() || url.password().is_some() {
        url.set_password(None).ok()?;
        url.set_username("").ok()?;
    }
    (url.as_str().len() <= URL_BYTES).then_some(Canonical { url })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn form(url: &str) -> Option<String> {
        canonical(url).map(String::from)
    }

    fn links(page: &str, base: Option<&str>, hrefs: &[&str]) -> TextList {
        out_links(Some(&canonical(page).unwrap()), base, hrefs.iter().copied())
    }

    #[test]
    fn spellings_of_one_url_have_one_form() {
        for url in [
            "http://example.com",
            " HTTP://EXAMPLE.com:80/# ",
            "http://user:password@example.com/./a/..",
            "http:\\\\example.com\\",
            "ht\ntp://exam\tple.com/",
        ] {
            assert_eq!(form(url).as_deref(), Some("http://example.com/"), "{url}");
        }
    }

    #[test]
    fn case_and_order_of_path_and_query_are_kept() {
        let url = "https://example.com/A/b?Z=1&a=%c3%a9";
        assert_eq!(form(url).as_deref(), Some(url));
        assert_ne!(form("http://example.com/a"), form("http://example.com/a/"));
    }

    #[test]
    fn hosts_are_ascii_and_keep_a_port_that_matters() {
        assert_eq!(canonical("http://Bücher.example:443/").unwrap().host(), "xn--bcher-kva.example:443");
        assert_eq!(canonical("https://Bücher.example:443/").unwrap().host(), "xn--bcher-kva.example");
        assert_eq!(canonical("http://[::1]:8080/").unwrap().host(), "[::1]:8080");
        assert_eq!(canonical("http://0x7f.1/").unwrap().host(), "127.0.0.1");
    }

    #[test]
    fn a_text_that_is_not_a_web_address_has_no_canonical_form() {
        for url in
            ["", "/a", "example.com", "ftp://example.com/", "http://", "http://a b/", "mailto:a@b", "http://a:99999/"]
        {
            assert_eq!(form(url), None, "{url}");
        }
    }

    #[test]
    fn a_url_is_bounded_before_and_after_escaping() {
        let long = |path: &str| form(&format!("http://example.com/{path}"));
        assert!(long(&"a".repeat(URL_BYTES - 19)).is_some());
        assert!(long(&"a".repeat(URL_BYTES - 18)).is_none());
        assert!(long(&"é".repeat(2000)).is_none());
    }

    #[test]
    fn links_are_resolved_against_the_page() {
        assert_eq!(
            links(
                "http://a.example/x/y?z",
                None,
                &["1", "/2", "//b.example/3", "?4", "https:c.example", "../../6", "1#7", " 8\n"]
            ),
            [
                "http://a.example/x/1",
                "http://a.example/2",
                "http://b.example/3",
                "http://a.example/x/y?4",
                "https://c.example/",
                "http://a.example/6",
                "http://a.example/x/8",
            ]
        );
    }

    #[test]
    fn bad_links_are_left_out() {
        let hrefs = ["http://", "javascript:x()", "mailto:a@b", "http://a b/", "tel:1", "http://[::1/", "ok"];
        assert_eq!(links("http://a.example/", None, &hrefs), ["http://a.example/ok"]);
    }

    #[test]
    fn links_of_a_page_are_bounded_in_bytes() {
        let page = canonical(&format!("http://a.example/{}/", "x".repeat(8000))).unwrap();
        let hrefs: Vec<String> = (0..10_000).map(|n| n.to_string()).collect();
        let bytes = out_links(Some(&page), None, hrefs.iter().map(String::as_str)).bytes();
        assert!(bytes <= LINK_BYTES && bytes > LINK_BYTES - URL_BYTES, "{bytes}");
    }

    #[test]
    fn a_base_is_itself_relative_to_the_page() {
        assert_eq!(links("http://a.example/x/y", Some("../z/"), &["1"]), ["http://a.example/z/1"]);
        assert_eq!(links("http://a.example/", Some("//b.example/c/"), &["1"]), ["http://b.example/c/1"]);
    }

    #[test]
    fn a_base_that_cannot_be_one_is_ignored() {
        for base in ["http://", "javascript:x", "data:text/html,x", &"x".repeat(URL_BYTES + 1)] {
            assert_eq!(links("http://a.example/", Some(base), &["1"]), ["http://a.example/1"], "{base}");
        }
        assert_eq!(links("http://a.example/", Some("ftp://b.example/"), &["1"]), [""; 0]);
    }

    #[test]
    fn the_domain_is_one_label_below_the_public_suffix() {
        for (host, expected) in [
            ("www.example.com", "example.com"),
            ("example.com", "example.com"),
            ("a.b.example.co.uk", "example.co.uk"),
            ("user.github.io", "user.github.io"),
            ("kafka.apache.example", "apache.example"),
            ("www.xn--85x722f.com.cn", "xn--85x722f.com.cn"),
            ("www.example.com:8080", "example.com"),
        ] {
            assert_eq!(domain(host), expected);
        }
    }

    #[test]
    fn a_host_without_domain_is_its_own() {
        for host in ["localhost", "com", "co.uk", "192.0.2.1", "[2001:db8::1]", ""] {
            assert_eq!(domain(host), host);
        }
        assert_eq!(domain("192.0.2.1:81"), "192.0.2.1");
        assert_eq!(domain("[2001:db8::1]:81"), "[2001:db8::1]");
        assert_eq!(domain("localhost:81"), "localhost");
    }
}
