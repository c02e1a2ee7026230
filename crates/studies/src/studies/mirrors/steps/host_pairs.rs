//! The table of pairs of hosts, the same at every worker.

use std::cmp::Reverse;
use std::collections::BTreeSet;

use anyhow::Result;
use nigh_exchange::Context;
use serde::{Deserialize, Serialize};

use super::host_name::HostName;
use super::hosts::Hosts;
use crate::structures::ByKey;

/// A host that is in a pair.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct ListedHost {
    /// Its pages that have near-duplicates: hosts with more come first.
    pub clustered: Reverse<u64>,
    /// Its name.
    pub name: HostName,
    /// All of its pages.
    pub pages: u64,
    /// The number of its addresses.
    pub addresses: u32,
}

/// Pairs of hosts. Hosts are numbered in the order of candidates; a pair has the smaller number
/// first.
#[derive(Clone, Debug, Default)]
pub struct PairTable {
    /// The hosts, by number.
    pub hosts: Vec<ListedHost>,
    numbers: ByKey<u64, u32>,
    /// The pairs, in order.
    pub pairs: Vec<(u32, u32)>,
    /// Where the pairs of each host begin that has the smaller number in them; one more at the end.
    starts: Vec<usize>,
}

impl PairTable {
    /// The table of these pairs, and of single hosts, at every worker. `pairs` and `singles` are
    /// the same at every worker.
    ///
    /// # Errors
    /// If a worker of this process failed.
    pub fn new(
        cx: &mut Context,
        hosts: &Hosts,
        pairs: impl IntoIterator<Item = (HostName, HostName)>,
        singles: impl IntoIterator<Item = HostName>,
    ) -> Result<PairTable> {
        let pairs: Vec<(HostName, HostName)> = pairs.into_iter().collect();
        let names: BTreeSet<HostName> = pairs.iter().flat_map(|(a, b)| [*a, *b]).chain(singles).collect();
        let own = names.iter().filter_map(|name| hosts.find(*name)).map(|host| ListedHost {
            clustered: Reverse(host.clustered),
            name: host.name,
            pages: host.pages,
            addresses: host.addresses.len() as u32,
        });
        let own = own.collect();
        Ok(PairTable::of(cx.sorted(own)?, &pairs))
    }

    /// The table of hosts in order, and of pairs of them.
    pub fn of(hosts: Vec<ListedHost>, pairs: &[(HostName, HostName)]) -> PairTable {
        let numbers: ByKey<u64, u32> =
            hosts.iter().enumerate().map(|(number, host)| (host.name.0, number as u32)).collect();
        let number = |name: &HostName| numbers.get(&name.0).copied();
        let pairs = pairs.iter().filter_map(|(a, b)| Some((number(a)?, number(b)?)));
        let mut pairs: Vec<(u32, u32)> = pairs.map(|(a, b)| (a.min(b), a.max(b))).filter(|(a, b)| a != b).collect();
        pairs.sort_unstable();
        pairs.dedup();
        let starts = (0..=hosts.len() as u32).map(|host| pairs.partition_point(|(a, _)| *a < host)).collect();
        PairTable { hosts, numbers, pairs, starts }
    }

    /// The number of a host; `None` if it is in no pair.
    #[inline]
    pub fn number(&self, name: HostName) -> Option<u32> {
        self.numbers.get(&name.0).copied()
    }

    /// The number of a pair of numbers of hosts, the smaller first.
    pub fn pair(&self, a: u32, b: u32) -> Option<usize> {
        self.pairs.binary_search(&(a, b)).ok()
    }

    /// Calls `each` with every pair of `present`, which ascends: the number of the pair, and the
    /// places of its hosts in `present`.
    ///
    /// It goes over the shorter of two lists, for each host: those that are present, and those that
    /// it is in a pair with.
    pub fn pairs_of(&self, present: &[u32], mut each: impl FnMut(usize, usize, usize)) {
        for (place, a) in present.iter().enumerate() {
            let (from, to) = (self.starts[*a as usize], self.starts[*a as usize + 1]);
            let later = &present[place + 1..];
            if to - from < later.len() {
                for (pair, (_, b)) in self.pairs[from..to].iter().enumerate() {
                    if let Ok(other) = later.binary_search(b) {
                        each(from + pair, place, place + 1 + other);
                    }
                }
            } else {
                for (other, b) in later.iter().enumerate() {
                    if let Ok(pair) = self.pairs[from..to].binary_search_by_key(b, |(_, b)| *b) {
                        each(from + pair, place, place + 1 + other);
                    }
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn all_pairs_that_are_present_are_found(
            pairs in proptest::collection::vec((0u64..20, 0u64..20), 0..60),
            present in proptest::collection::btree_set(0u32..20, 0..20),
        ) {
            let host = |number| ListedHost { clustered: Reverse(0), name: HostName(number), pages: 0, addresses: 0 };
            let names: Vec<(HostName, HostName)> = pairs.iter().map(|(a, b)| (HostName(*a), HostName(*b))).collect();
            let table = PairTable::of((0..20).map(host).collect(), &names);
            let present: Vec<u32> = present.into_iter().collect();
            let mut found = BTreeSet::new();
            table.pairs_of(&present, |pair, a, b| {
                assert_eq!(table.pairs[pair], (present[a], present[b]));
                assert!(found.insert(table.pairs[pair]));
            });
            let both = |(a, b): &(u32, u32)| present.contains(a) && present.contains(b);
            let expected: BTreeSet<(u32, u32)> = table.pairs.iter().copied().filter(both).collect();
            prop_assert_eq!(found, expected);
        }
    }
}
