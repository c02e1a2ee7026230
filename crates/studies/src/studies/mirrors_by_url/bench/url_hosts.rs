//! Hosts of some hundred URLs, of which some have the paths of others: for mirrors by URL.
//!
//! An eighth of all hosts are copies of a third as many others. A copy lacks one path in ten, and
//! has another one in its place.

use std::fmt::Write as _;

use crate::records::{fold, mix};

/// URLs of a host.
const PATHS: u64 = 160;

/// The URLs of some hosts.
pub(super) struct UrlHosts {
    hosts: u64,
}

impl UrlHosts {
    /// About `urls` URLs.
    pub fn new(urls: u64) -> UrlHosts {
        UrlHosts { hosts: (urls / PATHS).max(50) }
    }

    /// The number of URLs.
    pub fn urls(&self) -> u64 {
        self.hosts * PATHS
    }

    /// The host whose paths a host has.
    fn source(&self, host: u64) -> u64 {
        let sources = (self.hosts / 25).max(1);
        if host >= sources && mix(host).is_multiple_of(8) { mix(host ^ 0xC0B1) % sources } else { host }
    }

    /// Writes a URL behind `text`, by its number.
    pub fn url(&self, number: u64, text: &mut String) {
        let (host, place) = (number / PATHS, number % PATHS);
        let source = self.source(host);
        let of = if source != host && mix(fold(&[host, place])).is_multiple_of(10) { host } else { source };
        let path = mix(fold(&[of, place]));
        let (name, domain) = (mix(host) % 1_000_000_000, mix(host ^ 7) % 50_000);
        let (directory, section, page) = (mix(of) % 100_000, path % 7, path % 1_000_000_007);
        // A String can be written to.
        let _ = write!(text, "http://www{}.h{name}.d{domain}.example/", host % 3);
        let _ = write!(text, "manual{directory}/section{section}/page{page}.html");
    }
}
