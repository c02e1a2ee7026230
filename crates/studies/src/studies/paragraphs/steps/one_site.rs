//! Whether the pages of a cluster lie on one host, and on one site (Pereira 2006, section 4.1: the
//! study looked at clusters by hand, and found large ones on one site).
//!
//! A site is a registered domain: `a.example` for `www.a.example`.
//!
//! ```text
//! record: root, host, site, pages      32 bytes for each cluster and host of own pages, to the owner of the root
//! ```

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;

use anyhow::Result;
use bytemuck::{Pod, Zeroable};
use nigh_exchange::{BlockOf, Context, Dealer, Keyed, by_group};

use super::week_pages::WeekPages;
use crate::operators::output::ClusterSizes;
use crate::records::DocId;
use crate::structures::CompactSort;

/// The pages of a cluster on a host.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Pod, Zeroable)]
#[repr(C)]
struct HostOfCluster {
    root: DocId,
    site: u64,
    host: u64,
    pages: u64,
}

impl Keyed for HostOfCluster {
    fn key(&self) -> u64 {
        self.root.to_table() as u64
    }
}

/// Clusters of one size.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SiteCounts {
    /// All of them.
    pub clusters: u64,
    /// Those with all pages on one host.
    pub one_host: u64,
    /// Those with all pages on one site.
    pub one_site: u64,
}

impl SiteCounts {
    /// Adds those of other clusters.
    pub fn add(&mut self, other: SiteCounts) {
        self.clusters += other.clusters;
        self.one_host += other.one_host;
        self.one_site += other.one_site;
    }
}

/// Counts the clusters of at least two pages by their size, and those on one host and on one site.
/// Clusters with a page that is not known by URL are left out: it has no host.
/// `roots` and `pages` are by own number, `sizes` has the clusters of own pages. Every worker
/// returns all sizes.
///
/// # Errors
/// If a file cannot be read or written, or a worker of this process failed.
pub fn site_counts(
    cx: &mut Context,
    roots: &[DocId],
    sizes: &ClusterSizes,
    pages: &WeekPages,
) -> Result<BTreeMap<u64, SiteCounts>> {
    let is_in_cluster = |root: DocId| root != DocId::NONE && sizes.members(root) > 1;
    let in_clusters = roots.iter().zip(&pages.hosts).filter(|(root, _)| is_in_cluster(**root));
    let site = |host: u64| pages.sites.get(&host).copied().unwrap_or_default();
    let records =
        in_clusters.map(|(root, host)| HostOfCluster { root: *root, site: site(*host), host: *host, pages: 1 });
    let mut records: Vec<HostOfCluster> = records.collect();
    records.sort_rows();
    records.dedup_by(|record, kept| {
        let is_same = (record.root, record.host) == (kept.root, kept.host);
        kept.pages += if is_same { record.pages } else { 0 };
        is_same
    });
    let own: Rc<RefCell<BTreeMap<u64, SiteCounts>>> = Rc::default();
    let each = {
        let own = own.clone();
        move |of_cluster: &[HostOfCluster], _: &mut Dealer<u8>| {
            // In the order of sites, then of hosts.
            let (first, last) = (of_cluster[0], of_cluster[of_cluster.len() - 1]);
            // The site of a page without a host.
            if first.site == 0 {
                return;
            }
            let size = of_cluster.iter().map(|record| record.pages).sum();
            let one_site = first.site == last.site;
            let one_host = one_site && first.host == last.host;
            let counts = SiteCounts { clusters: 1, one_host: one_host.into(), one_site: one_site.into() };
            own.borrow_mut().entry(size).or_default().add(counts);
        }
    };
    by_group(cx, "Sites", records, each, |_: BlockOf<u8>| {})?;
    let own = own.take().into_iter().map(|(size, of)| (size, [of.clusters, of.one_host, of.one_site])).collect();
    let mut all: BTreeMap<u64, SiteCounts> = BTreeMap::new();
    for (size, [clusters, one_host, one_site]) in cx.concat::<(u64, [u64; 3])>(own)? {
        all.entry(size).or_default().add(SiteCounts { clusters, one_host, one_site });
    }
    Ok(all)
}
