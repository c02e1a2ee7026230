//! URLs: their canonical form, the links of a page, and the domain that a host is registered under.
//!
//! Two spellings of one URL must be one key in all tables. The canonical form is what the WHATWG URL standard makes of
//! it (crate `url`), without the fragment, which no server sees, and without user and password.

use memchr::memrchr;
use std::fmt;
use std::hash::{BuildHasher, RandomState};
use std::net::Ipv4Addr;
use std::sync::LazyLock;
use url::{Position, Url};
use xxhash_rust::xxh3::xxh3_64_with_seed;

/// The longest URL, in bytes, that is taken for one.
pub const URL_BYTES: usize = 8192;

/// The most bytes of links that one page can have. A page of a long URL and many short hrefs would else become
/// hundreds of times as long as it is.
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

    /// The host, as `host`, or as `host:port` if the port is not the default one of the scheme.
    pub fn host(&self) -> &str {
        &self.url[Position::BeforeHost..Position::AfterPort]
    }

    /// Resolves a reference as a browser would on this page.
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

/// Gives the canonical form of a URL: parsed by the WHATWG rules, fragment, user, password and default port dropped,
/// host in lower case and ASCII. `None` if it is no `http` or `https` URL, or longer than [`URL_BYTES`] before or after.
///
/// ```
/// # use nigh::text::canonical;
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

/// Resolves the hrefs of a page against its `<base>` (itself relative to the page), or else against the page. Gives
/// the canonical forms of those that are `http` or `https`, each once, in order of first appearance, up to 32 MiB of
/// them, repeated ones included. A link to the page itself (`#top`) counts like any other.
///
/// ```
/// # use nigh::text::{canonical, out_links};
/// let page = canonical("http://example.com/a/b").unwrap();
/// let hrefs = ["c", "#top", "mailto:d@example.com", "./c"];
/// let links = out_links(&page, None, hrefs);
/// assert_eq!(links, ["http://example.com/a/c", "http://example.com/a/b"]);
/// ```
pub fn out_links<'a>(
    page: &Canonical,
    base: Option<&str>,
    hrefs: impl IntoIterator<Item = &'a str, IntoIter: ExactSizeIterator>,
) -> Vec<String> {
    let base = base
        .filter(|base| base.len() <= URL_BYTES)
        .and_then(|base| page.url.join(base).ok())
        .filter(|base| !matches!(base.scheme(), "data" | "javascript"))
        .filter(|base| base.as_str().len() <= URL_BYTES);
    let base = base.as_ref().unwrap_or(&page.url);
    let plain = Plain::new(base);
    let hrefs = hrefs.into_iter();
    let mut distinct = Distinct::new(hrefs.len());
    let mut link = String::new();
    let mut bytes = 0;
    for href in hrefs {
        link.clear();
        match plain.as_ref().map_or(Shape::Other, |plain| plain.resolve(href, &mut link)) {
            Shape::Plain => {}
            Shape::NoWeb => continue,
            Shape::Other => match resolve(base, href) {
                Some(found) => link = found.into(),
                None => continue,
            },
        }
        bytes += link.len();
        if bytes > LINK_BYTES {
            break;
        }
        distinct.insert(&link);
    }
    distinct.links
}

/// Links, each once, in order of first appearance.
struct Distinct {
    links: Vec<String>,
    /// By hash, with linear probing: the hash with the number of the link plus one in its lower half, or 0.
    slots: Vec<u64>,
}

impl Distinct {
    /// Room for `count` links.
    fn new(count: usize) -> Distinct {
        Distinct { links: Vec::new(), slots: vec![0; (2 * count + 1).next_power_of_two()] }
    }

    fn insert(&mut self, link: &str) {
        /// Secret, so that no page can be made of which all links fall together.
        static SEED: LazyLock<u64> = LazyLock::new(|| RandomState::new().hash_one(0));
        const NUMBER: u64 = u32::MAX as u64;
        let hash = xxh3_64_with_seed(link.as_bytes(), *SEED);
        let mask = self.slots.len() - 1;
        let mut at = (hash >> 32) as usize & mask;
        loop {
            let slot = self.slots[at];
            if slot == 0 {
                self.links.push(link.to_owned());
                self.slots[at] = hash & !NUMBER | self.links.len() as u64;
                return;
            }
            if slot & !NUMBER == hash & !NUMBER && self.links[(slot & NUMBER) as usize - 1] == link {
                return;
            }
            at = (at + 1) & mask;
        }
    }
}

/// How an href is resolved.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Shape {
    /// By [`Plain`]: the link is found.
    Plain,
    /// It is no web address: `mailto:`, `javascript:`.
    NoWeb,
    /// By the `url` crate.
    Other,
}

/// The base of a page, cut up for [`Plain::resolve`].
struct Plain<'a> {
    scheme: &'a str,
    /// Without fragment.
    url: &'a str,
    /// The host, where it is plain.
    host: &'a str,
    path_start: usize,
    /// Behind the last `/` of the path.
    folder_end: usize,
    path_end: usize,
}

/// The longest href that is resolved plainly: three bytes for each of it are no [`URL_BYTES`].
const PLAIN_BYTES: usize = 2048;

impl<'a> Plain<'a> {
    /// `None` for a base of another scheme, with a user, or with a segment like a drive (`c:`), which the `url` crate does
    /// not climb out of.
    fn new(base: &'a Url) -> Option<Plain<'a>> {
        let is_plain = matches!(base.scheme(), "http" | "https")
            && base.username().is_empty()
            && base.password().is_none()
            && base.host_str().is_some_and(|host| !host.is_empty())
            && !base
                .path()
                .split('/')
                .any(|segment| matches!(segment.as_bytes(), [letter, b':' | b'|'] if letter.is_ascii_alphabetic()));
        is_plain.then(|| {
            let host = &base[Position::BeforeHost..Position::AfterPort];
            let path_start = base[..Position::BeforePath].len();
            Plain {
                scheme: base.scheme(),
                url: &base[..Position::AfterQuery],
                host: if is_plain_host(host.as_bytes()) { host } else { "" },
                path_start,
                folder_end: path_start + folder(base.path()),
                path_end: base[..Position::AfterPath].len(),
            }
        })
    }

    /// Resolves the shapes that nearly all hrefs of real pages have, in which the URL standard changes nothing: it joins
    /// strings. That is for speed only: where the shape is not [`Shape::Other`], the general path gives the same.
    fn resolve(&self, href: &str, link: &mut String) -> Shape {
        if href.len() > PLAIN_BYTES || self.url.len() + href.len() >= URL_BYTES {
            return Shape::Other;
        }
        let (prefix, rest) = match href.as_bytes() {
            [] | [b'#', ..] => (self.url, ""),
            [b'?', ..] => (&self.url[..self.path_end], href),
            [b'/', b'/', ..] => return self.other_host(self.scheme, &href[2..], link),
            [b'/', ..] => (&self.url[..self.path_start], href),
            [b'h', b't', b't', b'p', b':', b'/', b'/', ..] => return self.other_host("http", &href[7..], link),
            [b'h', b't', b't', b'p', b's', b':', b'/', b'/', ..] => return self.other_host("https", &href[8..], link),
            _ => self.relative(href),
        };
        link.push_str(prefix);
        let shape = append_plain(rest, link);
        if shape == Shape::Other && href.starts_with(|c: char| c.is_ascii_lowercase()) && !href.starts_with("http") {
            let scheme = href.bytes().take_while(u8::is_ascii_lowercase).count();
            return if href[scheme..].starts_with(':') { Shape::NoWeb } else { Shape::Other };
        }
        shape
    }

    /// The folder that a relative path begins in, and what is left of the path without its leading dots.
    fn relative<'b>(&self, mut href: &'b str) -> (&'a str, &'b str) {
        let mut end = self.folder_end;
        loop {
            if let Some(rest) = href.strip_prefix("../") {
                href = rest;
                if end > self.path_start + 1 {
                    end = self.path_start + folder(&self.url[self.path_start..end - 1]);
                }
            } else if let Some(rest) = href.strip_prefix("./") {
                href = rest;
            } else {
                return (&self.url[..end], href);
            }
        }
    }

    fn other_host(&self, scheme: &str, rest: &str, link: &mut String) -> Shape {
        let end = rest.bytes().position(|b| matches!(b, b'/' | b'?' | b'#')).unwrap_or(rest.len());
        let (host, rest) = rest.split_at(end);
        let is_plain = !host.is_empty() && host == self.host || is_plain_host(host.as_bytes());
        if !is_plain || rest.starts_with('?') {
            return Shape::Other;
        }
        for part in [scheme, "://", host, if rest.starts_with('/') { "" } else { "/" }] {
            link.push_str(part);
        }
        append_plain(rest, link)
    }
}

/// The length of a path up to its last `/`.
fn folder(path: &str) -> usize {
    memrchr(b'/', path.as_bytes()).map_or(0, |slash| slash + 1)
}

/// Whether a host is a name of plain lower-case labels, which no step of the host parser changes: no number, hence no
/// address, and no two hyphens, hence no Punycode.
fn is_plain_host(host: &[u8]) -> bool {
    let is_plain_label = |label: &[u8]| {
        let mut previous = b'-';
        label.iter().all(|&b| {
            let is_plain = b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-' && previous != b'-';
            previous = b;
            is_plain
        }) && previous != b'-'
    };
    let last = host.iter().rposition(|&b| b == b'.').map_or(0, |dot| dot + 1);
    host.len() < 64
        && host.get(last).is_some_and(u8::is_ascii_lowercase)
        && host.split(|&b| b == b'.').all(is_plain_label)
}

/// Appends a path, or query, or both, up to the fragment, if it has only characters that the standard leaves alone, and
/// no segment that might be a dot or two.
fn append_plain(rest: &str, link: &mut String) -> Shape {
    /// What a byte is in a path.
    #[derive(Clone, Copy, PartialEq, Eq)]
    enum Class {
        Plain,
        Dot,
        Percent,
        Colon,
        Query,
        Fragment,
        Other,
    }
    static CLASSES: [Class; 256] = {
        let mut classes = [Class::Other; 256];
        let plain = b"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz/-_~!$&()*+,;=@";
        let mut i = 0;
        while i < plain.len() {
            classes[plain[i] as usize] = Class::Plain;
            i += 1;
        }
        classes[b'.' as usize] = Class::Dot;
        classes[b'%' as usize] = Class::Percent;
        classes[b':' as usize] = Class::Colon;
        classes[b'?' as usize] = Class::Query;
        classes[b'#' as usize] = Class::Fragment;
        classes
    };
    let bytes = rest.as_bytes();
    let mut end = bytes.len();
    let mut in_query = false;
    for (at, &byte) in bytes.iter().enumerate() {
        match CLASSES[usize::from(byte)] {
            Class::Plain => {}
            Class::Dot if in_query || at > 0 && bytes[at - 1] != b'/' => {}
            Class::Percent if in_query || !matches!(bytes[at + 1..], [b'2', b'e' | b'E', ..]) => {} // else a dot
            Class::Colon if in_query || bytes[..at].contains(&b'/') => {} // else it may end a scheme
            Class::Query => in_query = true,
            Class::Fragment => {
                end = at;
                break;
            }
            _ => return Shape::Other,
        }
    }
    link.push_str(&rest[..end]);
    Shape::Plain
}

/// Gives the registered domain of a host, one label below the public suffix (`www.bbc.co.uk` to `bbc.co.uk`). Where
/// there is none (an IP address, `localhost`, a public suffix) it is the host itself. A port is dropped.
///
/// ```
/// # use nigh::text::domain;
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

fn resolve(base: &Url, href: &str) -> Option<Canonical> {
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
    use proptest::prelude::*;

    fn form(url: &str) -> Option<String> {
        canonical(url).map(String::from)
    }

    fn links(page: &str, base: Option<&str>, hrefs: &[&str]) -> Vec<String> {
        out_links(&canonical(page).unwrap(), base, hrefs.iter().copied())
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
    fn what_is_no_web_address_has_no_form() {
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
        let bytes: usize = out_links(&page, None, hrefs.iter().map(String::as_str)).iter().map(String::len).sum();
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

    fn general(base: &Url, href: &str) -> Option<String> {
        resolve(base, href).map(String::from)
    }

    /// Checks that what is resolved plainly is as the general path has it; tells whether it is resolved plainly.
    fn assert_plain(base: &str, href: &str) -> bool {
        let base = Url::parse(base).unwrap();
        let Some(plain) = Plain::new(&base) else { return false };
        let mut link = String::new();
        match plain.resolve(href, &mut link) {
            Shape::Plain => assert_eq!(Some(link), general(&base, href), "{href} on {base}"),
            Shape::NoWeb => assert_eq!(None, general(&base, href), "{href} on {base}"),
            Shape::Other => return false,
        }
        true
    }

    #[test]
    fn the_usual_shapes_are_resolved_plainly() {
        for base in ["http://a.example/x/y.html?z", "https://a.example:8080/", "http://127.0.0.1//x//y/#z"] {
            for href in [
                "",
                "#",
                "#a b",
                "?q=1&r=/../%2e",
                "/",
                "/b/c.html#d",
                "b.html",
                "b/c?d=e.f",
                "../b",
                "../../../b/",
                "./b",
                "./",
                "../#a",
                "../?a",
                "b:c/d",
                "..//b",
                "http://b.example",
                "https://b-c.example/d/e:f;g?h",
                "//b.example/c",
                "http://b.example#c",
                "mailto:a@b",
                "javascript:x('y')",
                "a%20b",
                "/b:c",
            ] {
                let is_plain = assert_plain(base, href);
                assert!(is_plain || href == "b:c/d", "{href}");
            }
        }
    }

    #[test]
    fn other_shapes_are_left_to_the_general_path() {
        for href in [
            "a b",
            " a",
            "é",
            "a\tb",
            "a\\b",
            "a'b",
            "a\"b",
            "a/../b",
            "a/.",
            ".",
            "..",
            ".a",
            "%2e/a",
            "a/%2E%2e/b",
            "HTTP://a/",
            "http:a",
            "http:/a",
            "http://A/",
            "http://a:80/",
            "http://b@a/",
            "http://1.2/",
            "http://a.0x1/",
            "http://xn--a/",
            "http://a..b/",
            "http://a./",
            "http://-a/",
            "http://a.b?c",
            "http://",
            "1:2",
            "a+b:c",
            "ht:a",
            "[",
            "a|b",
            "{a}",
        ] {
            assert!(!assert_plain("http://a.example/b/c", href) || href == "ht:a", "{href}");
        }
        assert!(!assert_plain("http://user@a.example/", "b") && !assert_plain("ftp://a.example/", "b"));
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(20_000))]

        #[test]
        fn a_plain_link_is_that_of_the_general_path(
            base in prop::sample::select(&[
                "http://a.example", "https://a.example/b/c/d.html", "http://a.example:81/b//c/?d=/e/#f", "http://1.2.3.4/b",
                "http://a.example//", "http://[::1]/b/", "http://a.example/b?c?d", "https://xn--bcher-kva.example/b/.c",
                "http://a.example/c:/b", "http://a.example/b/C|/d",
            ][..]),
            pieces in prop::collection::vec(
                prop::sample::select(&[
                    "a", "b1", "Z", "/", "//", ".", "..", "../", "./", "?", "#", ":", ";", "=", "&", "%", "%2e", "%41", "-", "_",
                    "~", "@", "!", "$", "'", "\"", "(", "*", "+", ",", "|", "\\", "^", "`", "{", "[", " ", "\t", "\n", "é", "\0",
                    "http", "https", "http://", "https://", "http:", "mailto:", "javascript:", "ftp://", "file:", "a.example",
                    "xn--", "www.", ".com", "0x", "1", "--", ":80", ":443", "index.html",
                ][..]),
                0..8,
            ),
        ) {
            assert_plain(base, &pieces.concat());
        }
    }
}
