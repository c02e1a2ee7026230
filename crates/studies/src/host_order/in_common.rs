//! Which of two hosts has more: the pages that hosts of a pair have in common, cluster by cluster.

use std::rc::Rc;

use super::facts::HostFacts;
use super::places::HostNumber;
use crate::structures::{ByKey, CompactSort};

/// Room for the error of a product of a share and a whole number.
const ROUNDING: f64 = 1e-9;

/// The share of a host's pages that another host has replicas of, at least, if that one has more.
pub(super) const MORE_SHARE: f64 = 0.9;

/// By host: the hosts that it is in a pair with, ascending.
pub type RelatedHosts = Vec<Vec<HostNumber>>;

/// The pages of each host that a host in a pair with it has replicas of.
pub struct PagesInCommon {
    related: Rc<RelatedHosts>,
    /// By both hosts: the pages of the second of which the first has a replica.
    shared: ByKey<u64, u32>,
}

impl PagesInCommon {
    /// None yet.
    pub fn new(related: Rc<RelatedHosts>) -> PagesInCommon {
        PagesInCommon { related, shared: ByKey::default() }
    }

    /// Adds a cluster: its hosts, ascending, and their pages in it.
    pub fn add(&mut self, cluster: &[(HostNumber, u32)]) {
        for (host, count) in cluster {
            let related = &self.related[*host as usize];
            let mut add = |other: HostNumber| *self.shared.entry(key(other, *host)).or_default() += count;
            // The shorter list is gone through.
            if related.len() < cluster.len() {
                let others = related.iter().copied();
                others.filter(|other| cluster.binary_search_by_key(other, |of| of.0).is_ok()).for_each(&mut add);
            } else {
                let others = cluster.iter().map(|(other, _)| *other);
                others.filter(|other| related.binary_search(other).is_ok()).for_each(&mut add);
            }
        }
    }

    /// Takes what was counted, in no order.
    pub fn take_counts(&mut self) -> Vec<(u64, u32)> {
        std::mem::take(&mut self.shared).into_iter().collect()
    }

    /// Adds what this worker or another one counted.
    pub fn add_counts(&mut self, counts: Vec<(u64, u32)>) {
        counts.into_iter().for_each(|(pair, pages)| *self.shared.entry(pair).or_default() += pages);
    }

    /// Pairs of hosts of which the first has more, ascending: it has replicas of `share` of the
    /// pages of the second, and is [larger](HostFacts::is_larger).
    pub fn more(&self, facts: &[HostFacts], share: f64) -> Vec<(HostNumber, HostNumber)> {
        let has_more = |(pair, shared): (&u64, &u32)| {
            let (more, less) = ((pair >> 32) as HostNumber, *pair as HostNumber);
            let [of_more, of_less] = [more, less].map(|host| &facts[host as usize]);
            let is_covered = f64::from(*shared) + ROUNDING >= share * f64::from(of_less.pages);
            (is_covered && of_more.is_larger(of_less)).then_some((more, less))
        };
        let mut more: Vec<(HostNumber, HostNumber)> = self.shared.iter().filter_map(has_more).collect();
        more.sort_rows();
        more
    }
}

fn key(more: HostNumber, less: HostNumber) -> u64 {
    u64::from(more) << 32 | u64::from(less)
}
