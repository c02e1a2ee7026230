//! Hosts that do not answer: their names do not resolve, or their servers fail (Bharat and Broder
//! 1999, section 4).
//!
//! The study sets pairs with such a host apart from those that it tested, in two classes: DNS
//! failure and server failure. A host that says of each page that it is missing does answer.
//!
//! ```text
//! pages, redirects and reasons of failed downloads, by host ─▶ how far any download of the host came
//! ```
//!
//! What tells it: `host-failures` of the week, which has the reasons of URLs that no week had a
//! page of, too, and failed downloads in files for tests. A crawl file has the status of an answer;
//! reasons without an answer stand in side files of failed downloads, in the words of the crawler
//! that wrote them. A reason that is not known here, such as `robots-denied`, tells nothing.

use std::collections::BTreeMap;

use anyhow::Result;
use nigh_exchange::Context;
use serde::{Deserialize, Serialize};

use super::listed::ListedPairs;
use crate::operators::ingest::NOT_KNOWN;

/// How far a download came: of several of one host the farthest counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum DownloadReach {
    /// The host's name did not resolve.
    NoName,
    /// No connection, or one that broke or had no answer in time.
    NoConnection,
    /// The server answered with status 500 to 599.
    ServerError,
    /// A page, a redirect, or another status: the host answers.
    Answer,
}

/// What does not work at a host that answers nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum HostFailure {
    /// Its name.
    Dns,
    /// The connection.
    Connection,
    /// Its server, which answers with errors.
    ServerError,
}

impl HostFailure {
    /// Its name in tables.
    pub fn name(self) -> &'static str {
        match self {
            HostFailure::Dns => "dns",
            HostFailure::Connection => "connection",
            HostFailure::ServerError => "server-error",
        }
    }
}

/// What reasons say of a name that does not resolve: one word, or several one after another, in
/// small letters and without what stands between them. As curl, wget, browsers, resolvers, Java,
/// Python, Node and Scrapy write them.
const OF_NAMES: [&str; 20] = [
    "dns",
    "namenotresolved",
    "notresolve",
    "notresolved",
    "cannotresolve",
    "couldntresolve",
    "failedtoresolve",
    "unabletoresolve",
    "nameresolution",
    "nameorservice",
    "unknownhost",
    "unresolvedaddress",
    "hostnotfound",
    "nosuchhost",
    "nodename",
    "getaddrinfo",
    "gaierror",
    "enotfound",
    "eai",
    "nxdomain",
];

/// The same of a connection.
const OF_CONNECTIONS: [&str; 27] = [
    "timeout",
    "timedout",
    "etimedout",
    "connect",
    "connecting",
    "connection",
    "disconnect",
    "disconnected",
    "econnaborted",
    "econnrefused",
    "econnreset",
    "unreach",
    "unreachable",
    "ehostunreach",
    "enetunreach",
    "noroute",
    "resetbypeer",
    "brokenpipe",
    "epipe",
    "ssl",
    "sslv",
    "openssl",
    "tls",
    "tlsv",
    "cert",
    "certificate",
    "handshake",
];

/// Words before the status of an answer.
const BEFORE_STATUS: [&str; 4] = ["status", "http", "https", "returned"];
/// Words that may stand between such a word and the status, besides the version of HTTP.
const WITHIN_STATUS: [&str; 6] = ["code", "error", "response", "server", "is", "was"];
/// Words behind a status that needs no word before it.
const BEHIND_STATUS: [&str; 4] = ["error", "errors", "response", "responses"];
/// Words behind a number that is no status.
const UNITS: [&str; 10] = ["s", "ms", "sec", "secs", "second", "seconds", "minutes", "bytes", "kb", "mb"];

/// Whether some words one after another are, written together, one of the parts.
fn has_run(words: &[String], parts: &[&str]) -> bool {
    let starts_part = |words: &[String]| {
        parts.iter().any(|part| {
            let mut rest = *part;
            words.iter().any(|word| {
                rest = rest.strip_prefix(word.as_str()).unwrap_or("-");
                rest.is_empty()
            })
        })
    };
    (0..words.len()).any(|first| starts_part(&words[first..]))
}

/// Whether a text is the name of a host, or an address. A name has a dot, and ends in small
/// letters: `java.net.UnknownHostException` does not, and `socket.timeout` ends in what a reason
/// says.
fn is_host(text: &str) -> bool {
    let labels: Vec<&str> = text.trim_end_matches('.').split('.').collect();
    let is_label = |label: &&str| !label.is_empty() && label.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'-');
    let Some(last) = labels.last().filter(|_| labels.len() > 1 && labels.iter().all(is_label)) else {
        return false;
    };
    let is_address = labels.len() == 4 && labels.iter().all(|label| label.bytes().all(|b| b.is_ascii_digit()));
    let is_name = last.len() > 1 && last.bytes().all(|b| b.is_ascii_lowercase());
    is_address || is_name && !OF_NAMES.contains(last) && !OF_CONNECTIONS.contains(last)
}

/// What a reason says besides URLs, paths and names of hosts.
fn without_names(reason: &str) -> String {
    let ends_url = |c: char| c.is_whitespace() || "'\"<>()[]{},".contains(c);
    let mut kept = String::new();
    for part in reason.split_inclusive(ends_url) {
        let (part, end) = match part.char_indices().next_back().filter(|(_, c)| ends_url(*c)) {
            Some((at, _)) => part.split_at(at),
            None => (part, ""),
        };
        // A name and its value are two.
        let pieces: Vec<&str> = if part.contains("://") { Vec::new() } else { part.split('=').collect() };
        for piece in pieces {
            let (head, rest) = piece.split_at(piece.find(['/', ':']).unwrap_or(piece.len()));
            let is_ipv6 = piece.matches(':').count() > 1 && piece.bytes().all(|b| b.is_ascii_hexdigit() || b == b':');
            if piece.starts_with('/') || is_ipv6 {
                continue;
            }
            // Behind a host is its port, its path, or what was found.
            let said = rest.trim_start_matches(':').trim_start_matches(|c: char| c.is_ascii_digit());
            kept.push_str(match is_host(head) {
                true if rest.contains('/') => "",
                true => said,
                false => piece,
            });
            kept.push(' ');
        }
        kept.push_str(end);
    }
    kept
}

/// The words of a reason, in small letters: letters and digits are words of their own, and
/// `DNSLookup` is two. A number below 0 has its sign.
fn words(reason: &str) -> Vec<String> {
    let text: Vec<char> = without_names(reason).chars().collect();
    let kind = |c: char| (c.is_ascii_digit(), c.is_ascii_uppercase());
    let (mut words, mut word) = (Vec::new(), String::new());
    for (at, c) in text.iter().copied().enumerate() {
        let before = at.checked_sub(1).map_or(' ', |at| text[at]);
        let behind = text.get(at + 1).copied().unwrap_or(' ');
        let is_sign = c == '-' && before.is_whitespace() && behind.is_ascii_digit();
        let ((digit, upper), (was_digit, was_upper)) = (kind(c), kind(before));
        let is_capital = upper && (!was_upper || behind.is_ascii_lowercase());
        if !c.is_ascii_alphanumeric() || is_capital || digit != was_digit && before != '-' {
            words.extend(Some(std::mem::take(&mut word)).filter(|word| !word.is_empty()));
        }
        if c.is_ascii_alphanumeric() || is_sign {
            word.push(c.to_ascii_lowercase());
        }
    }
    words.extend(Some(word).filter(|word| !word.is_empty()));
    words
}

/// The status of an answer: three digits at the beginning, behind `status` or `HTTP`, or before
/// `error`. Other numbers are ports, times and codes of systems.
fn status(words: &[String]) -> Option<u32> {
    let is_one_of = |word: Option<&String>, some: &[&str]| word.is_some_and(|word| some.contains(&word.as_str()));
    words.iter().enumerate().find_map(|(at, word)| {
        let number: u32 = word.parse().ok().filter(|number| word.len() == 3 && (100..600).contains(number))?;
        let is_within =
            |word: &&String| word.len() == 1 && word.parse::<u8>().is_ok() || is_one_of(Some(word), &WITHIN_STATUS);
        let before = words[..at].iter().rev().find(|word| !is_within(word));
        let is_status = at == 0 || is_one_of(before, &BEFORE_STATUS) || is_one_of(words.get(at + 1), &BEHIND_STATUS);
        (is_status && !is_one_of(words.get(at + 1), &UNITS)).then_some(number)
    })
}

impl DownloadReach {
    /// How far a download with this reason came; `None` if the reason does not tell.
    pub fn of_reason(reason: &str) -> Option<DownloadReach> {
        // Codes of Heritrix: no name (also of a host that must answer first); no connection, a
        // broken one, none in time.
        match reason {
            "-1" | "-6" => return Some(DownloadReach::NoName),
            "-2" | "-3" | "-4" => return Some(DownloadReach::NoConnection),
            // The page is what it was: there is an answer.
            NOT_KNOWN => return Some(DownloadReach::Answer),
            _ => {}
        }
        let words = words(reason);
        if let Some(status) = status(&words) {
            return Some(if status >= 500 { DownloadReach::ServerError } else { DownloadReach::Answer });
        }
        // A reader of crawl files keeps any status.
        if reason.strip_prefix("status ").is_some_and(|status| status.bytes().all(|b| b.is_ascii_digit())) {
            return Some(DownloadReach::Answer);
        }
        if has_run(&words, &OF_NAMES) {
            Some(DownloadReach::NoName)
        } else {
            has_run(&words, &OF_CONNECTIONS).then_some(DownloadReach::NoConnection)
        }
    }
}

/// How far downloads of some hosts came: by the hash of the host.
#[derive(Clone, Debug, Default)]
pub struct DownloadReaches(BTreeMap<u64, DownloadReach>);

impl DownloadReaches {
    /// Adds a download of a host.
    pub fn add(&mut self, host: u64, reach: DownloadReach) {
        let of_host = self.0.entry(host).or_insert(reach);
        *of_host = reach.max(*of_host);
    }

    /// What does not work at each listed host, by its number; `None` for hosts that answer, and for
    /// those of which nothing tells. Every worker returns the same.
    ///
    /// # Errors
    /// If a worker of this process failed.
    pub fn failures(self, cx: &mut Context, listed: &ListedPairs) -> Result<Vec<Option<HostFailure>>> {
        let mut all = DownloadReaches::default();
        cx.concat(self.0.into_iter().collect::<Vec<_>>())?.into_iter().for_each(|(host, reach)| all.add(host, reach));
        let failure = |hash: u64| match all.0.get(&hash)? {
            DownloadReach::NoName => Some(HostFailure::Dns),
            DownloadReach::NoConnection => Some(HostFailure::Connection),
            DownloadReach::ServerError => Some(HostFailure::ServerError),
            DownloadReach::Answer => None,
        };
        Ok(listed.hosts.iter().map(|host| failure(host.hash)).collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reasons_of_crawlers_tell_how_far_they_came() {
        let of = |reasons: &[&str]| reasons.iter().map(|reason| DownloadReach::of_reason(reason)).collect::<Vec<_>>();
        let all_are =
            |reasons: &[&str], reach: Option<DownloadReach>| assert_eq!(of(reasons), vec![reach; reasons.len()]);
        all_are(
            &[
                "dns",
                "DNS failure",
                "-1",
                "-6",
                "curl: (6) Could not resolve host: a.example",
                "unable to resolve host address",
                "net::ERR_NAME_NOT_RESOLVED",
                "java.net.UnknownHostException: a.example",
                "[Errno -2] Name or service not known",
                "Temporary failure in name resolution",
                "getaddrinfo ENOTFOUND a.example",
                "dial tcp: lookup a.example: no such host",
                "twisted.internet.error.DNSLookupError",
                "NXDOMAIN",
                // It speaks of a connection, too.
                "ConnectionError: Failed to resolve 'a.example' (nodename nor servname provided)",
                "socket.gaierror: [Errno 11001] getaddrinfo failed",
                "EAI_AGAIN",
                "Host not found, try again",
            ],
            Some(DownloadReach::NoName),
        );
        all_are(
            &[
                "timeout",
                "connection-reset",
                "Connection refused",
                "net::ERR_CONNECTION_TIMED_OUT",
                "ECONNRESET",
                "EHOSTUNREACH",
                "No route to host",
                "-2",
                "-3",
                "-4",
                "TLS handshake failed",
                "SSL: CERTIFICATE_VERIFY_FAILED",
                "curl: (7) Failed to connect to dns.example port 443 after 130 ms: Couldn't connect to server",
                "timeout after 300 seconds",
                "HTTPSConnectionPool(host='dns.example', port=443): Read timed out. (read timeout=300)",
                "dial tcp 192.0.2.7:503: i/o timeout",
                "https://dns.example/error/503: timeout",
                "[Errno 110] Connection timed out",
                "socket.timeout",
                "java.net.ConnectException: refused",
                "TLSv1 alert",
            ],
            Some(DownloadReach::NoConnection),
        );
        all_are(
            &[
                "status 500",
                "status 503",
                "status 599",
                "status 503 Service Unavailable",
                "503",
                "503 Service Unavailable",
                "HTTP/1.1 503",
                "HTTP error 502",
                "status code: 500",
                "curl: (22) The requested URL returned error: 503",
                "Server returned HTTP response code: 503 for URL: http://a.example/404",
                "too many 503 error responses",
            ],
            Some(DownloadReach::ServerError),
        );
        all_are(
            &[
                "status 404",
                "status 410",
                "status 301",
                "status 403",
                "status 5",
                "404",
                "403",
                "HTTP 404",
                "HTTP404",
                "HTTP 404 page not found",
                "http://dns.example/x: 403",
                NOT_KNOWN,
            ],
            Some(DownloadReach::Answer),
        );
        all_are(
            &[
                "robots-denied",
                "-9998",
                "-404",
                "not seen",
                "too large",
                "Page not found",
                "File not found",
                "java.io.FileNotFoundException",
                "blocked NSFW",
                "access limit",
                "process limit",
                "headless login",
                "cookies are set",
                "refused by robots.txt",
                "blocked: http://dns.example/timeout",
                "blocked: timeout-dns.example/ssl",
            ],
            None,
        );
    }

    #[test]
    fn the_farthest_download_of_a_host_counts() {
        let mut reaches = DownloadReaches::default();
        for reach in
            [DownloadReach::NoConnection, DownloadReach::NoName, DownloadReach::ServerError, DownloadReach::NoName]
        {
            reaches.add(7, reach);
        }
        assert_eq!(reaches.0[&7], DownloadReach::ServerError);
    }
}
