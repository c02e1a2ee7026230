//! URLs: their canonical form, the links of a page, and the registered domain of a host.
//!
//! Two spellings of one URL must be one key in all tables. The canonical form is the serialization
//! of the WHATWG URL standard (crate `url`), without the fragment, which is not sent to servers,
//! and without user and password.

use super::plain::{Plain, Resolution, URL_BYTES};
use std::fmt;
use std::hash::{BuildHasher, RandomState};
use std::net::Ipv4Addr;
use std::sync::LazyLock;

use url::{Position, Url};
use xxhash_rust::xxh3::xxh3_64_with_seed;

use nigh_kernels::structures::TextList;

/// The maximum number of bytes of links of one page. Otherwise a page with a long URL and many
/// short hrefs would grow by a factor of hundreds.
const LINK_BYTES: usize = 32 << 20;

/// A URL in canonical form.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct CanonicalUrl {
    url: Url,
}

impl CanonicalUrl {
    /// The whole URL.
    pub fn as_str(&self) -> &str {
        self.url.as_str()
    }

    /// The host: `host`, or `host:port` if the port is not the default one of the scheme.
    pub fn host(&self) -> &str {
        &self.url[Position::BeforeHost..Position::AfterPort]
    }

    /// Resolves a reference as a browser does on this page. `None` if it is not an `http` or
    /// `https` URL, or longer than [`URL_BYTES`].
    pub fn resolve(&self, href: &str) -> Option<CanonicalUrl> {
        resolve(&self.url, href)
    }
}

impl fmt::Display for CanonicalUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl From<CanonicalUrl> for String {
    fn from(canonical: CanonicalUrl) -> String {
        canonical.url.into()
    }
}

/// Returns the canonical form of a URL: parsed by the WHATWG rules; fragment, user, password and
/// default port dropped; host in lower case and ASCII. `None` if it is not an `http` or `https`
/// URL, or longer than [`URL_BYTES`] before or after.
///
/// ```
/// # use nigh_text::text::canonical;
/// let url = canonical("HTTP://user@Example.COM:80/a/../b c?q#top").unwrap();
/// assert_eq!(url.as_str(), "http://example.com/b%20c?q");
/// assert_eq!(canonical("http://example.com:8080").unwrap().host(), "example.com:8080");
/// assert!(canonical("ftp://example.com/").is_none());
/// ```
pub fn canonical(url: &str) -> Option<CanonicalUrl> {
    if url.len() > URL_BYTES {
        return None;
    }
    canonical_form(Url::parse(url).ok()?)
}

/// Returns the canonical form of a host, with its port if that is not 80, as in
/// [`CanonicalUrl::host`]. `None` if the text is not a host alone.
///
/// ```
/// # use nigh_text::text::canonical_host;
/// assert_eq!(canonical_host("B\u{fc}cher.Example:80").as_deref(), Some("xn--bcher-kva.example"));
/// assert_eq!(canonical_host("example.com:8080").as_deref(), Some("example.com:8080"));
/// assert_eq!([canonical_host("example.com/a"), canonical_host("")], [None, None]);
/// ```
pub fn canonical_host(host: &str) -> Option<String> {
    let url = canonical(&format!("http://{host}/")).filter(|url| url.as_str().matches('/').count() == 3);
    let url = url.filter(|_| !host.contains(['@', '?', '#', '/', '\\']) && !host.is_empty());
    url.map(|url| url.host().to_owned())
}

/// Resolves the hrefs of a page against its `<base>` (itself relative to the page), or else against
/// the page; of a page without a URL only those count that need none. Returns the canonical forms
/// of those that are `http` or `https`, each once, in order of first appearance. It stops at 32 MiB
/// of links, repeated ones included. A link to the page itself (`#top`) counts like any other.
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
    page: Option<&CanonicalUrl>,
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
    // The href before: the next one, with another fragment, is the same link.
    let mut before = None;
    for href in hrefs {
        if before.replace(href).is_some_and(|before| differ_in_fragment(before, href)) {
            bytes += link.len();
            if bytes > LINK_BYTES {
                break;
            }
            continue;
        }
        link.clear();
        match plain.as_ref().map_or(Resolution::General, |plain| plain.resolve(href, &mut link)) {
            Resolution::Plain => {}
            Resolution::NotWeb => {
                link.clear();
                continue;
            }
            Resolution::General => match base.map_or_else(|| canonical(href), |base| resolve(base, href)) {
                Some(resolved) => link = resolved.into(),
                None => {
                    link.clear();
                    continue;
                }
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

/// Whether two hrefs certainly have the same link, because they differ only in their fragments.
fn differ_in_fragment(a: &str, b: &str) -> bool {
    let Some(end) = same_target(a.as_bytes(), b.as_bytes()) else { return false };
    // White space at an end is dropped, and an href that is too long as a whole.
    !a[..end].ends_with(|c: char| c <= ' ') && a.len() <= URL_BYTES && b.len() <= URL_BYTES
}

/// Where the fragments of two hrefs begin, or the hrefs end, if they are the same up to there.
/// Compares eight bytes at a time.
fn same_target(a: &[u8], b: &[u8]) -> Option<usize> {
    const ONES: u64 = u64::MAX / 255;
    let mut at = 0;
    while let (Some(of_a), Some(of_b)) = (a[at..].first_chunk(), b[at..].first_chunk()) {
        let (of_a, of_b) = (u64::from_le_bytes(*of_a), u64::from_le_bytes(*of_b));
        let (differences, others) = (of_a ^ of_b, of_a ^ (ONES * u64::from(b'#')));
        // The lowest bit is that of the first `#`; it may set higher ones.
        let fragments = others.wrapping_sub(ONES) & !others & (ONES << 7);
        if differences | fragments != 0 {
            let fragment = fragments.trailing_zeros() / 8;
            return (fragment < differences.trailing_zeros() / 8).then_some(at + fragment as usize);
        }
        at += 8;
    }
    loop {
        match (a.get(at), b.get(at)) {
            (None | Some(b'#'), None | Some(b'#')) => return Some(at),
            (of_a, of_b) if of_a == of_b => at += 1,
            _ => return None,
        }
    }
}

/// Distinct links, in order of first appearance.
struct DistinctLinks {
    links: TextList,
    /// A hash table with linear probing. A slot is 0, or has the upper half of the hash of a link
    /// and, in its lower half, the index of the link plus one.
    slots: Vec<u64>,
}

impl DistinctLinks {
    /// Makes room for `count` links.
    fn new(count: usize) -> DistinctLinks {
        /// Room for so many links at most, of so many bytes each: a list that grows is copied
        /// several times.
        const ROOM: (usize, usize) = (1024, 64);
        let room = count.min(ROOM.0);
        let links = TextList::with_capacity(room, room * ROOM.1);
        DistinctLinks { links, slots: vec![0; (2 * count + 1).next_power_of_two()] }
    }

    fn insert(&mut self, link: &str) {
        /// Secret, so that a page whose links all collide cannot be made. The result does not
        /// depend on it.
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

/// Returns the registered domain of a host: one label below the public suffix (`www.bbc.co.uk` to
/// `bbc.co.uk`). If there is none (an IP address, `localhost`, a public suffix), it is the host
/// itself. A port is dropped.
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
    nigh_domains::registered_domain(name).unwrap_or(name)
}

/// Resolves an href against a base by the `url` crate.
pub(super) fn resolve(base: &Url, href: &str) -> Option<CanonicalUrl> {
    if href.len() > URL_BYTES {
        return None;
    }
    canonical_form(base.join(href).ok()?)
}

fn canonical_form(mut url: Url) -> Option<CanonicalUrl> {
    if !matches!(url.scheme(), "http" | "https") || url.host_str().is_none_or(str::is_empty) {
        return None;
    }
    url.set_fragment(None);
    if !url.username().is_empty() || url.password().is_some() {
        url.set_password(None).ok()?;
        url.set_username("").ok()?;
    }
    (url.as_str().len() <= URL_BYTES).then_some(CanonicalUrl { url })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

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

    proptest! {
        #[test]
        fn targets_are_the_same_up_to_the_fragments(a in "[ab#]{0,20}", b in "[ab#]{0,20}", target in "[ab]{0,20}") {
            let of = |href: &str| href.split('#').next().unwrap_or_default().to_owned();
            for (a, b) in [(&a, &b), (&format!("{target}#{a}"), &format!("{target}#{b}")), (&format!("{target}{a}"), &target)] {
                let expected = (of(a) == of(b)).then_some(of(a).len());
                prop_assert_eq!(same_target(a.as_bytes(), b.as_bytes()), expected, "{} {}", a, b);
            }
        }
    }

    #[test]
    fn a_link_with_several_fragments_is_one() {
        let hrefs =
            ["b#1", "b#2", "b", "b ", "b #3", "#4", "", "#5", "\t#6", "b?#7", "b?", "mailto:a#8", "mailto:a", "c#9"];
        assert_eq!(
            links("http://a.example/", None, &hrefs),
            [
                "http://a.example/b",
                "http://a.example/b%20",
                "http://a.example/",
                "http://a.example/b?",
                "http://a.example/c"
            ]
        );
        let long = format!("b#{}", "x".repeat(URL_BYTES));
        assert_eq!(links("http://a.example/", None, &[&long, "b", &long]), ["http://a.example/b"]);
    }

    proptest! {
        #[test]
        fn links_are_the_distinct_ones_of_the_general_path(
            page in prop::sample::select(&["http://a.example/b/c?d", "https://a.example:81/b c/", "http://1.2.3.4"][..]),
            base in prop::option::of(prop::sample::select(&["../e/", "http://b.example/f#g", "mailto:a@b", "about:blank", "ftp://c.example/"][..])),
            has_page: bool,
            pieces in prop::collection::vec(
                (
                    prop::sample::select(&["", "", "a", "../a.html", "b/c", "http://a.example", "//b.example/c", "?q", "HTTP://A/", "mailto:a", " ", "é"][..]),
                    prop::sample::select(&["", "", "", " ", "\n", "/", "d e", "%41"][..]),
                    prop::sample::select(&["", "", "#", "#a", "#b c", " #", "#\t"][..]),
                ),
                0..30,
            ),
        ) {
            let page = has_page.then(|| canonical(page).unwrap());
            let hrefs: Vec<String> = pieces.iter().map(|(a, b, c)| format!("{a}{b}{c}")).collect();
            let found = out_links(page.as_ref(), base, hrefs.iter().map(String::as_str));
            let base = base.and_then(|base| page.as_ref().map_or_else(|| Url::parse(base), |page| page.url.join(base)).ok());
            let base = base.as_ref().or(page.as_ref().map(|page| &page.url));
            let mut expected: Vec<String> = Vec::new();
            for href in &hrefs {
                let link = base.map_or_else(|| canonical(href), |base| resolve(base, href)).map(String::from);
                expected.extend(link.filter(|link| !expected.contains(link)));
            }
            prop_assert_eq!(found.iter().collect::<Vec<_>>(), expected);
        }
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
