//! How many machines some hosts are on (Fetterly 2004, section 2; Shivakumar 1998, table 2).

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;

use nigh_kernels::structures::OwnUnionFind;

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
    let (mut hosts, mut of_address): (BTreeMap<H, u32>, BTreeMap<A, u32>) = Default::default();
    let mut joined = OwnUnionFind::default();
    for (host, address) in addresses {
        let host = *hosts.entry(host).or_insert_with(|| joined.push());
        match of_address.entry(address) {
            Entry::Vacant(entry) => _ = entry.insert(host),
            Entry::Occupied(entry) => _ = joined.join([*entry.get(), host]),
        }
    }
    joined.roots().count() as u64
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
