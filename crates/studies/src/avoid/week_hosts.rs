//! Hosts of a week: what is known of each, and the one order that decides which copy stays.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap};

use anyhow::{Context as _, Result};

use super::last_week::LastWeek;
use super::redirects::WeekRedirects;
use crate::studies::collections::steps::{HostFacts, HostRank, host_hash};

/// The number of a host.
pub(super) type HostNumber = u32;

/// No host: the week has no such page.
const NONE: HostNumber = HostNumber::MAX;
/// Set in the number of a page's host if the page has replicas.
const REPLICATED: HostNumber = 1 << 31;

/// The hosts of a week. Memory: 4 bytes for each known URL, and about 150 for each host.
#[derive(Default)]
pub(super) struct WeekHosts {
    /// By number of a page: the number of its host.
    of_page: Vec<HostNumber>,
    numbers: HashMap<String, HostNumber>,
    facts: Vec<HostFacts>,
    hashes: Vec<u64>,
    /// By host: its place in the order of hosts.
    places: Vec<u32>,
}

impl WeekHosts {
    /// Reads pages and links of the week, and notes the pages at `redirects`. The hosts have no
    /// order yet.
    ///
    /// # Errors
    /// If a file cannot be read: names it.
    pub fn read(pages: &LastWeek<'_>, redirects: &mut WeekRedirects) -> Result<WeekHosts> {
        let mut hosts = WeekHosts { of_page: vec![NONE; pages.urls()], ..WeekHosts::default() };
        let weeks = &pages.history.weeks;
        pages.each(|page| {
            redirects.note(page);
            let number = hosts.add(page.host)?;
            let is_replicated = page.size > 1;
            hosts.of_page[page.number] = number | if is_replicated { REPLICATED } else { 0 };
            let seen = weeks.partition_point(|week| !week.knows(page.doc)) as u32;
            let facts = &mut hosts.facts[number as usize];
            facts.pages += 1;
            facts.alone += u32::from(!is_replicated);
            facts.first_seen = facts.first_seen.min(seen);
            Ok(())
        })?;
        pages.each_link(|link| {
            let redirected = redirects.target(link.url).map(|target| target.page);
            let (from, Some(target)) = (hosts.of_page[link.page], redirected.or(link.target)) else { return };
            let to = hosts.of_page[target];
            if to != NONE && to & REPLICATED > 0 && from | REPLICATED != to {
                let facts = &mut hosts.facts[(to & !REPLICATED) as usize];
                facts.in_links = facts.in_links.saturating_add(1);
            }
        })?;
        Ok(hosts)
    }

    fn add(&mut self, name: &str) -> Result<HostNumber> {
        if let Some(number) = self.numbers.get(name) {
            return Ok(*number);
        }
        let number = u32::try_from(self.facts.len()).ok().filter(|number| *number < REPLICATED - 1);
        let number = number.context("the week has more than 2 billion hosts")?;
        self.numbers.insert(name.to_owned(), number);
        self.facts.push(HostFacts { first_seen: u32::MAX, ..HostFacts::default() });
        self.hashes.push(host_hash(name));
        Ok(number)
    }

    /// The number of hosts.
    pub fn len(&self) -> usize {
        self.facts.len()
    }

    /// The number of the host of a page of the week.
    pub fn of_page(&self, page: usize) -> HostNumber {
        self.of_page[page] & !REPLICATED
    }

    /// The host of this name, if the week has pages of it.
    pub fn find(&self, name: &str) -> Option<HostNumber> {
        self.numbers.get(name).copied()
    }

    /// What is known of a host.
    pub fn facts(&self, host: HostNumber) -> &HostFacts {
        &self.facts[host as usize]
    }

    /// Puts the hosts in order: by their ranks, except that a host that has more comes before one
    /// that has less. `more` are such pairs. Pairs that contradict each other count as far as they
    /// can.
    pub fn put_in_order(&mut self, more: &[(HostNumber, HostNumber)]) {
        let ranks: Vec<HostRank> = self.facts.iter().zip(&self.hashes).map(|(facts, hash)| facts.rank(*hash)).collect();
        self.places = places(&ranks, more);
    }

    /// The place of a host in the order: of several copies that on the first host stays.
    pub fn place(&self, host: HostNumber) -> u32 {
        self.places[host as usize]
    }
}

/// The place of each host: the one with the least rank comes first, of those before which no other
/// must come.
fn places(ranks: &[HostRank], more: &[(HostNumber, HostNumber)]) -> Vec<u32> {
    let mut pairs: Vec<(HostNumber, HostNumber)> = more.iter().copied().filter(|(more, less)| more != less).collect();
    pairs.sort_unstable();
    pairs.dedup();
    // By host: the hosts that must come before it and have no place yet.
    let mut waits_for = vec![0u32; ranks.len()];
    pairs.iter().for_each(|(_, less)| waits_for[*less as usize] += 1);
    let mut places = vec![u32::MAX; ranks.len()];
    let entry = |host: HostNumber| Reverse((ranks[host as usize], host));
    let mut ready: BinaryHeap<_> =
        (0..ranks.len() as u32).filter(|host| waits_for[*host as usize] == 0).map(entry).collect();
    // If hosts wait for each other, the one with the least rank goes first.
    let mut by_rank: Vec<HostNumber> = (0..ranks.len() as u32).collect();
    by_rank.sort_unstable_by_key(|host| (ranks[*host as usize], *host));
    let mut waiting = by_rank.into_iter();
    for place in 0..ranks.len() as u32 {
        let host = match ready.pop() {
            Some(Reverse((_, host))) => host,
            None => match waiting.find(|host| places[*host as usize] == u32::MAX) {
                Some(host) => host,
                None => break,
            },
        };
        places[host as usize] = place;
        let from = pairs.partition_point(|(more, _)| *more < host);
        for (_, less) in pairs[from..].iter().take_while(|(more, _)| *more == host) {
            let waits = &mut waits_for[*less as usize];
            *waits = waits.saturating_sub(1);
            if *waits == 0 && places[*less as usize] == u32::MAX {
                ready.push(entry(*less));
            }
        }
    }
    places
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_host_that_has_more_comes_first_whatever_its_rank() {
        let rank = |in_links: u32, hash: u64| (Reverse(in_links), Reverse(1), 0, hash);
        let ranks = [rank(0, 9), rank(5, 8), rank(5, 7), rank(1, 6)];
        let order = |more: &[(u32, u32)]| {
            let places = places(&ranks, more);
            let mut hosts: Vec<u32> = (0..ranks.len() as u32).collect();
            hosts.sort_unstable_by_key(|host| places[*host as usize]);
            hosts
        };
        assert_eq!(order(&[]), [2, 1, 3, 0]);
        assert_eq!(order(&[(0, 2), (0, 2)]), [1, 3, 0, 2]);
        assert_eq!(order(&[(0, 2), (2, 1)]), [3, 0, 2, 1]);
        // Hosts that wait for each other.
        assert_eq!(order(&[(1, 2), (2, 1), (3, 3)]), [3, 0, 2, 1]);
        assert_eq!(order(&[(0, 2), (2, 0), (1, 0)]), [1, 3, 2, 0]);
    }
}
