//! The place of each host in the order.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use super::facts::HostRank;

/// The number of a host.
pub type HostNumber = u32;

/// The place of each host: the one with the least rank comes first, of those before which no other
/// must come. `more` are pairs of hosts of which the first has more: it comes before the second,
/// whatever their ranks. Pairs that contradict each other count as far as they can.
pub fn places(ranks: &[HostRank], more: &[(HostNumber, HostNumber)]) -> Vec<u32> {
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
    use crate::host_order::HostFacts;

    #[test]
    fn a_host_that_has_more_comes_first_whatever_its_rank() {
        let rank = |in_links: u32, hash: u64| HostFacts { in_links, pages: 1, ..HostFacts::NONE }.rank(hash);
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
    #[test]
    fn ranks_go_from_links_to_the_hash_of_the_name() {
        let facts = HostFacts { in_links: 3, pages: 9, alone: 2, first_seen: 1, lead: -4 };
        let ranks = [
            HostFacts { in_links: 4, pages: 1, ..HostFacts::NONE }.rank(9),
            HostFacts { pages: 10, first_seen: 5, ..facts }.rank(9),
            HostFacts { first_seen: 5, ..facts }.rank_with_urls(9, 7),
            HostFacts { first_seen: 0, lead: -9, ..facts }.rank(9),
            HostFacts { lead: 0, ..facts }.rank(9),
            facts.rank(8),
            facts.rank(9),
        ];
        assert!(ranks.is_sorted_by(|a, b| a < b), "{ranks:?}");
    }
}
