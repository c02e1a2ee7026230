//! How many machines some hosts are on (Fetterly 2004, section 2; Shivakumar 1998, table 2).

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;

/// The number of machines of hosts with their addresses: two hosts are on one machine if they have
/// an address in common, directly or over other hosts. So there are at most as many as hosts.
///
/// ```
/// use nigh_tables::stats::machines;
///
/// // A host with two addresses is on one machine; b and c share 10.0.0.2.
/// let addresses = [("a", "10.0.0.1"), ("a", "10.0.0.9"), ("b", "10.0.0.2"), ("c", "10.0.0.2")];
/// assert_eq!(machines(addresses), 2);
/// ```
pub fn machines<H: Ord, A: Ord>(addresses: impl IntoIterator<Item = (H, A)>) -> u64 {
    let (mut hosts, mut of_address): (BTreeMap<H, usize>, BTreeMap<A, usize>) = Default::default();
    // By host: another host of its machine, or itself.
    let mut parents: Vec<usize> = Vec::new();
    for (host, address) in addresses {
        let next = hosts.len();
        let host = *hosts.entry(host).or_insert(next);
        if host == parents.len() {
            parents.push(host);
        }
        match of_address.entry(address) {
            Entry::Vacant(entry) => _ = entry.insert(host),
            Entry::Occupied(entry) => {
                let (a, b) = (root(&mut parents, *entry.get()), root(&mut parents, host));
                parents[a.max(b)] = a.min(b);
            }
        }
    }
    (0..parents.len()).filter(|host| parents[*host] == *host).count() as u64
}

/// The host that stands for the machine of a host. Halves the way to it.
fn root(parents: &mut [usize], mut host: usize) -> usize {
    while parents[host] != host {
        parents[host] = parents[parents[host]];
        host = parents[host];
    }
    host
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;

    use super::*;

    /// Spreads a mark over all hosts that share an address with a marked one, until nothing
    /// changes.
    fn by_spreading(addresses: &[(u8, u8)]) -> u64 {
        let mut left: BTreeSet<u8> = addresses.iter().map(|(host, _)| *host).collect();
        let mut machines = 0;
        while let Some(first) = left.pop_first() {
            machines += 1;
            let mut marked = BTreeSet::from([first]);
            loop {
                let is_marked = |host: &u8| marked.contains(host);
                let reached: BTreeSet<u8> = addresses.iter().filter(|(host, _)| is_marked(host)).map(|a| a.1).collect();
                let more: BTreeSet<u8> = addresses.iter().filter(|(_, of)| reached.contains(of)).map(|a| a.0).collect();
                if more == marked {
                    break;
                }
                marked = more;
            }
            left.retain(|host| !marked.contains(host));
        }
        machines
    }

    proptest! {
        #[test]
        fn machines_are_what_addresses_join(addresses in prop::collection::vec((0u8..12, 0u8..12), 0..30)) {
            prop_assert_eq!(machines(addresses.iter().copied()), by_spreading(&addresses));
        }
    }
}
