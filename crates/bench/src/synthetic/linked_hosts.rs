//! Hosts of thirty pages with links between them, of which some are copies of others: for the
//! statistics of links.
//!
//! An eighth of all hosts are copies of a third as many others. Pages of a copy have the text of
//! the source's, except one in twenty, and the same links within their host. Six of a page's links
//! lead to pages of its host, the others anywhere.

use crate::records::{DocId, fold, mix};

/// Pages of a host.
const PLACES: u64 = 30;
/// Links of a page within its host.
const WITHIN: u64 = 6;
/// Shards, over which pages are dealt.
pub const LINK_SHARDS: u64 = 64;

/// The pages and links of some hosts.
pub struct LinkedHosts {
    /// The number of pages.
    pub pages: u64,
    /// Links of a page.
    links: u64,
    /// By host: the host whose pages it has.
    source: Vec<u32>,
    /// By host: the hosts that have its pages, itself first; none for a copy.
    copies: Vec<Vec<u32>>,
}

impl LinkedHosts {
    /// About `pages` pages, with `links` links each.
    pub fn new(pages: u64, links: u64) -> LinkedHosts {
        let hosts = (pages / PLACES).max(50);
        let sources = (hosts / 25).max(1);
        let mut source: Vec<u32> = (0..hosts as u32).collect();
        let mut copies: Vec<Vec<u32>> = source.iter().map(|host| vec![*host]).collect();
        for host in sources..hosts {
            if mix(host).is_multiple_of(8) {
                let of = mix(host ^ 0xC0B1) % sources;
                source[host as usize] = of as u32;
                copies[host as usize].clear();
                copies[of as usize].push(host as u32);
            }
        }
        LinkedHosts { pages: hosts * PLACES, links, source, copies }
    }

    /// The id of a page.
    pub fn doc(page: u64) -> DocId {
        DocId::new((page % LINK_SHARDS) as u32, page / LINK_SHARDS)
    }

    /// The page of an id.
    pub fn page(doc: DocId) -> u64 {
        doc.row() * LINK_SHARDS + u64::from(doc.shard())
    }

    /// The pages of each shard.
    pub fn rows(&self) -> Vec<u64> {
        (0..LINK_SHARDS).map(|shard| (self.pages + LINK_SHARDS - 1 - shard) / LINK_SHARDS).collect()
    }

    /// A hash of the host of a page.
    pub fn host(page: u64) -> u64 {
        mix(page / PLACES).max(1)
    }

    /// Whether a copy has another text at a place.
    fn is_edited(&self, host: u32, place: u64) -> bool {
        self.source[host as usize] != host && mix(fold(&[host.into(), place])).is_multiple_of(20)
    }

    /// The root and the size of the cluster of a page; [`DocId::NONE`] and 0 if it is alone.
    pub fn cluster(&self, page: u64) -> (DocId, u32) {
        let (host, place) = ((page / PLACES) as u32, page % PLACES);
        let all = &self.copies[self.source[host as usize] as usize];
        if self.is_edited(host, place) || all.len() < 2 {
            return (DocId::NONE, 0);
        }
        let same = all.iter().filter(|host| !self.is_edited(**host, place));
        let docs = same.map(|host| LinkedHosts::doc(u64::from(*host) * PLACES + place));
        let (root, size) = docs.fold((DocId::NONE, 0), |(root, size), doc| (root.min(doc), size + 1));
        if size > 1 { (root, size) } else { (DocId::NONE, 0) }
    }

    /// The pages that a page links to, each once; `links` is cleared.
    pub fn links(&self, page: u64, links: &mut Vec<u64>) {
        let (host, place) = (page / PLACES, page % PLACES);
        let source = u64::from(self.source[host as usize]);
        links.clear();
        for link in 0..self.links {
            let target = match link {
                0..WITHIN => host * PLACES + mix(fold(&[source, place, link])) % PLACES,
                _ => mix(fold(&[page, link])) % self.pages,
            };
            if target != page {
                links.push(target);
            }
        }
        links.sort_unstable();
        links.dedup();
    }
}
