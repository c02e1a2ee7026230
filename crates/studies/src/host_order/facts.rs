//! What is known of a host, and the rank that follows.

use std::cmp::Reverse;

use bytemuck::{Pod, Zeroable};

use crate::records::checksum;

/// A hash of a host, which is never 0.
pub fn host_hash(host: &str) -> u64 {
    (checksum(host.as_bytes()) as u64).max(1)
}

/// What is known of a host.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Pod, Zeroable)]
#[repr(C)]
pub struct HostFacts {
    /// Its crawled pages.
    pub pages: u32,
    /// Those without a replica.
    pub alone: u32,
    /// Links from other hosts to its pages that have replicas.
    pub in_links: u32,
    /// The number of the week that saw the first of its pages.
    pub first_seen: u32,
    /// Of changes that it and mirrors of it have in different weeks: those that it has first, less
    /// those that a mirror has first. See [`HostLeads`](super::HostLeads).
    pub lead: i32,
}

/// The place of a host among hosts of which none has more: that with the least rank comes first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct HostRank {
    in_links: Reverse<u32>,
    pages: Reverse<u32>,
    /// Its distinct URLs, where a study counts them, else 0.
    urls: Reverse<u64>,
    first_seen: u32,
    lead: Reverse<i32>,
    hash: u64,
}

impl HostFacts {
    /// The facts of a host of which nothing is known.
    pub const NONE: HostFacts = HostFacts { pages: 0, alone: 0, in_links: 0, first_seen: u32::MAX, lead: 0 };

    /// The rank of the host whose name has this hash.
    pub fn rank(&self, hash: u64) -> HostRank {
        self.rank_with_urls(hash, 0)
    }

    /// The same, if its distinct URLs are known, too: they count if the pages are equally many.
    pub fn rank_with_urls(&self, hash: u64, urls: u64) -> HostRank {
        let HostFacts { in_links, pages, first_seen, lead, .. } = *self;
        HostRank {
            in_links: Reverse(in_links),
            pages: Reverse(pages),
            urls: Reverse(urls),
            first_seen,
            lead: Reverse(lead),
            hash,
        }
    }

    /// Adds what is known of other pages of the host. `lead` stays.
    pub fn add(&mut self, other: &HostFacts) {
        self.pages += other.pages;
        self.alone += other.alone;
        self.in_links = self.in_links.saturating_add(other.in_links);
        self.first_seen = self.first_seen.min(other.first_seen);
    }

    /// Whether the host has more than another one that has a replica of each of these pages, by the
    /// number of pages; of equally many, if it has pages that are nowhere else, and the other has
    /// none.
    pub fn is_larger(&self, other: &HostFacts) -> bool {
        self.pages > other.pages || self.pages == other.pages && self.alone > 0 && other.alone == 0
    }
}
