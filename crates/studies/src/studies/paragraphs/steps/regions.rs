//! Clusters and pages by region of the web: all of it, the connected part, and the rest (Pereira
//! 2006, Tables 2 to 6, Fig. 2 to 4).
//!
//! Restricted to a region, the `n` pages that a cluster has there are `n - 1` duplicates.

use std::collections::BTreeMap;

use anyhow::Result;
use nigh_exchange::Context;

use crate::operators::output::{ClusterSizes, cluster_sizes};
use crate::records::DocId;
use crate::structures::Ownership;

/// The clusters of one relation, by region of the web. Regions are all of it, the connected part,
/// the rest.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RegionCounts {
    /// By region: its clusters of so many pages there, pages alone included.
    pub sizes: [BTreeMap<u64, u64>; 3],
    /// By region: clusters of several pages that have a page there; and pages there that are in no
    /// cluster.
    pub with_page: [u64; 3],
    /// As for `with_page`.
    pub unique: [u64; 3],
}

impl RegionCounts {
    /// The pages of a region.
    pub fn documents(&self, region: usize) -> u64 {
        self.sizes[region].iter().map(|(size, clusters)| size * clusters).sum()
    }

    /// The clusters of several pages in a region.
    pub fn clusters(&self, region: usize) -> u64 {
        self.sizes[region].range(2..).map(|(_, clusters)| clusters).sum()
    }

    /// The duplicates in a region.
    pub fn duplicates(&self, region: usize) -> u64 {
        self.sizes[region].range(2..).map(|(size, clusters)| (size - 1) * clusters).sum()
    }
}

/// Counts the clusters with these roots by region of the web, over all workers. Returns also the
/// sizes of the clusters of own pages.
///
/// # Errors
/// If a worker of this process failed.
pub fn region_counts(
    cx: &mut Context,
    owned: &Ownership,
    roots: &[DocId],
    connected: &[bool],
) -> Result<(RegionCounts, ClusterSizes)> {
    let all = cluster_sizes(cx, owned, roots.iter().copied())?;
    let there = roots.iter().zip(connected).map(|(root, connected)| if *connected { *root } else { DocId::NONE });
    let there = cluster_sizes(cx, owned, there)?;
    let mut own: BTreeMap<[u64; 2], u64> = BTreeMap::new();
    for (root, size) in all.of_own_roots() {
        *own.entry([size, there.members(root)]).or_default() += 1;
    }
    let mut counts = RegionCounts::default();
    for ([size, there], clusters) in cx.concat(own.into_iter().collect())? {
        for (region, pages) in [size, there, size - there].into_iter().enumerate().filter(|(_, pages)| *pages > 0) {
            *counts.sizes[region].entry(pages).or_default() += clusters;
            let count = if size > 1 { &mut counts.with_page } else { &mut counts.unique };
            count[region] += clusters;
        }
    }
    Ok((counts, all))
}
