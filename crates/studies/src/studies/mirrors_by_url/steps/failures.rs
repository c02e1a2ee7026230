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

/// Parts of reasons, in small letters and digits only, of a name that does not resolve: as curl,
/// wget, browsers, resolvers, Java, Python, Node and Scrapy write them.
const OF_NAMES: [&str; 11] = [
    "dns",
    "namenotresolved",
    "notresolve",
    "unabletoresolve",
    "nameresolution",
    "nameorservice",
    "unknownhost",
    "nosuchhost",
    "nodename",
    "enotfound",
    "nxdomain",
];

/// The same of a connection.
const OF_CONNECTIONS: [&str; 13] = [
    "timeout",
    "timedout",
    "connect",
    "econn",
    "unreach",
    "noroute",
    "reset",
    "refused",
    "brokenpipe",
    "ssl",
    "tls",
    "certificate",
    "handshake",
];

impl DownloadReach {
    /// How far a download with this reason came; `None` if the reason does not tell.
    pub fn of_reason(reason: &str) -> Option<DownloadReach> {
        if let Some(status) = reason.strip_prefix("status ") {
            let is_error = status.len() == 3 && status.starts_with('5');
            return Some(if is_error { DownloadReach::ServerError } else { DownloadReach::Answer });
        }
        // Codes of Heritrix: no name (also of a host that must answer first); no connection, a
        // broken one, none in time.
        match reason {
            "-1" | "-6" => return Some(DownloadReach::NoName),
            "-2" | "-3" | "-4" => return Some(DownloadReach::NoConnection),
            _ => {}
        }
        let kept = reason.bytes().filter(u8::is_ascii_alphanumeric).map(|byte| char::from(byte.to_ascii_lowercase()));
        let letters: String = kept.collect();
        let has = |parts: &[&str]| parts.iter().any(|part| letters.contains(part));
        if has(&OF_NAMES) {
            Some(DownloadReach::NoName)
        } else {
            has(&OF_CONNECTIONS).then_some(DownloadReach::NoConnection)
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
            ],
            Some(DownloadReach::NoConnection),
        );
        all_are(&["status 500", "status 503", "status 599"], Some(DownloadReach::ServerError));
        all_are(&["status 404", "status 410", "status 301", "status 403", "status 5"], Some(DownloadReach::Answer));
        all_are(&["robots-denied", "-9998", "not seen", "503", "too large"], None);
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
