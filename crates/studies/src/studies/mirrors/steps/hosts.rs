//! The hosts of a week: the pages of each by cluster, and its addresses.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::path::Path;

use anyhow::{Context as _, Result, bail, ensure};
use arrow_array::{Array, StringArray};
use bytemuck::{Pod, Zeroable};
use nigh_exchange::{Context, all_to_all};

use super::host_name::HostName;
use crate::operators::host_pages::{PagesByHost, SINGLETONS, host_owner, pages_by_host};
use crate::records::checksum;
use crate::state::History;
use crate::structures::{CompactSort, Ownership, Sums};
use crate::tables::{DocumentRow, Scan, Table, field};
use crate::text::canonical_host;

/// Some pages of a host in one cluster.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HostEntry {
    /// The cluster, by the id of its root.
    pub cluster: u64,
    /// The number of pages.
    pub pages: u32,
}

/// A host.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Host<'a> {
    /// Its name.
    pub name: HostName,
    /// All of its pages.
    pub pages: u64,
    /// Its pages that have near-duplicates.
    pub clustered: u64,
    /// The clusters of these, ascending.
    pub entries: &'a [HostEntry],
    /// Hashes of its addresses, ascending; none if no page has one.
    pub addresses: &'a [u64],
}

/// Hosts in the order of their names.
#[derive(Clone, Debug, Default)]
pub struct Hosts {
    names: Vec<HostName>,
    pages: Vec<u64>,
    /// Where the entries and the addresses of each host end.
    ends: Vec<(usize, usize)>,
    entries: Vec<HostEntry>,
    addresses: Vec<u64>,
}

impl Hosts {
    /// The hosts that have these pages and addresses; both are in order. Addresses of other hosts
    /// are left out.
    ///
    /// # Errors
    /// If two hosts have the same name: the same high half of their hashes.
    pub fn new(pages: &PagesByHost, addresses: &[(u128, u64)]) -> Result<Hosts> {
        let mut hosts = Hosts::default();
        let mut rest = addresses;
        for of_host in pages.chunk_by(|((a, _), _), ((b, _), _)| a == b) {
            let hash = of_host[0].0.0;
            let name = HostName::of_hash(hash);
            ensure!(
                hosts.names.last() != Some(&name),
                "two hosts have hashes that begin with the same 64 bits, {name:?}"
            );
            let mut all = 0;
            for ((_, cluster), pages) in of_host {
                all += pages;
                if *cluster != SINGLETONS {
                    hosts.entries.push(HostEntry { cluster: *cluster, pages: u32::try_from(*pages)? });
                }
            }
            rest = &rest[rest.partition_point(|(host, _)| *host < hash)..];
            let own = rest.partition_point(|(host, _)| *host == hash);
            hosts.addresses.extend(rest[..own].iter().map(|(_, address)| *address));
            hosts.names.push(name);
            hosts.pages.push(all);
            hosts.ends.push((hosts.entries.len(), hosts.addresses.len()));
        }
        Ok(hosts)
    }

    /// The number of hosts.
    pub fn len(&self) -> usize {
        self.names.len()
    }

    /// Whether there are no hosts.
    pub fn is_empty(&self) -> bool {
        self.names.is_empty()
    }

    /// A host, by its place in the order of names.
    pub fn host(&self, number: usize) -> Host<'_> {
        let (entries_from, addresses_from) = if number == 0 { (0, 0) } else { self.ends[number - 1] };
        let (entries_to, addresses_to) = self.ends[number];
        let entries = &self.entries[entries_from..entries_to];
        Host {
            name: self.names[number],
            pages: self.pages[number],
            clustered: entries.iter().map(|entry| u64::from(entry.pages)).sum(),
            entries,
            addresses: &self.addresses[addresses_from..addresses_to],
        }
    }

    /// All hosts.
    pub fn iter(&self) -> impl Iterator<Item = Host<'_>> {
        (0..self.len()).map(|number| self.host(number))
    }

    /// The host of this name.
    pub fn find(&self, name: HostName) -> Option<Host<'_>> {
        self.names.binary_search(&name).ok().map(|number| self.host(number))
    }

    /// Whether some host has an address.
    pub fn have_addresses(&self) -> bool {
        !self.addresses.is_empty()
    }
}

/// Reads the hosts of week number `number` of the history that this worker owns, with the addresses
/// of `list`; a host that it does not name has those of its pages.
///
/// # Errors
/// If a file cannot be read (names it), or a worker of this process failed.
pub fn own_hosts(
    cx: &mut Context,
    history: &History,
    number: usize,
    owned: &Ownership,
    list: Option<&AddressList>,
) -> Result<Hosts> {
    let pages = pages_by_host(cx, history, number, owned)?;
    let mut addresses = addresses_of_pages(cx, history, number, owned)?;
    if let Some(list) = list {
        addresses.retain(|(host, _)| list.0.binary_search_by_key(host, |(listed, _)| *listed).is_err());
        addresses.extend(&list.0);
        addresses.sort_rows();
    }
    Hosts::new(&pages, &addresses)
}

/// An address of a host, on its way to the owner of the host.
#[derive(Clone, Copy, Pod, Zeroable)]
#[repr(C)]
struct AddressRecord {
    host: [u64; 2],
    address: u64,
}

/// The addresses of the own hosts, from the pages of all workers.
fn addresses_of_pages(
    cx: &mut Context,
    history: &History,
    number: usize,
    owned: &Ownership,
) -> Result<Vec<(u128, u64)>> {
    let mut read = Sums::default();
    let tables = history.tables(number);
    for shard in owned.shards() {
        for rows in history.rows(number, &tables, DocumentRow::NAME, shard)? {
            Scan::open(&rows, &["host", "ip"])?.for_each(|batch| {
                let (hosts, addresses): (&StringArray, &StringArray) = (field(batch, "host")?, field(batch, "ip")?);
                for row in (0..batch.num_rows()).filter(|row| addresses.is_valid(*row)) {
                    let address = hash_of_address(addresses.value(row));
                    read.add((checksum(hosts.value(row).as_bytes()), address), 1);
                }
                Ok(())
            })?;
        }
    }
    let peers = cx.peers();
    let mut dealer = cx.dealer();
    for ((host, address), _) in read.finish() {
        dealer.deal(host_owner(host, peers), AddressRecord { host: [(host >> 64) as u64, host as u64], address });
    }
    let mut own: Vec<(u128, u64)> = Vec::new();
    for block in all_to_all(cx, dealer)? {
        let host = |[high, low]: [u64; 2]| u128::from(high) << 64 | u128::from(low);
        own.extend(block.records().iter().map(|record| (host(record.host), record.address)));
    }
    own.sort_rows();
    own.dedup();
    Ok(own)
}

fn hash_of_address(address: &str) -> u64 {
    (checksum(address.as_bytes()) >> 64) as u64
}

/// Addresses of hosts from a file: a host, a tab, and its addresses with commas between them on
/// each line.
#[derive(Clone, Debug, Default)]
pub struct AddressList(Vec<(u128, u64)>);

impl AddressList {
    /// Reads the addresses of the hosts that worker `index` of `peers` owns.
    ///
    /// # Errors
    /// Names the file that cannot be read, or the line that has no host, no address or something
    /// else that is none.
    pub fn read(path: &Path, index: usize, peers: usize) -> Result<AddressList> {
        let text = std::fs::read_to_string(path)
            .with_context(|| format!("cannot read the addresses in {}", path.display()))?;
        let mut of_host: BTreeMap<u128, Vec<u64>> = BTreeMap::new();
        let text = text.strip_prefix('\u{feff}').unwrap_or(&text);
        for (number, line) in text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty()) {
            let (host, addresses) = line.split_once('\t').unwrap_or((line, ""));
            let mut addresses = addresses.split(',').map(str::trim).filter(|address| !address.is_empty()).peekable();
            if host.trim().is_empty() || addresses.peek().is_none() {
                let place = format!("{}, line {}", path.display(), number + 1);
                bail!("{place}: `{line}` is not a host, a tab and addresses with commas between them");
            }
            let parsed = |address: &str| {
                let place = || format!("{}, line {}: `{address}` is no IP address", path.display(), number + 1);
                address.parse::<IpAddr>().with_context(place)
            };
            let mut addresses: Vec<IpAddr> = addresses.map(parsed).collect::<Result<_>>()?;
            // As of pages: this one is written where none is known.
            addresses.retain(|address| !address.is_unspecified());
            let Some(host) = canonical_host(host.trim()) else {
                bail!("{}, line {}: `{}` is no host", path.display(), number + 1, host.trim());
            };
            let hash = checksum(host.as_bytes());
            if host_owner(hash, peers) == index as u64 {
                let hashes = addresses.into_iter().map(|address| hash_of_address(&address.to_string()));
                of_host.entry(hash).or_default().extend(hashes);
            }
        }
        let pairs =
            of_host.into_iter().flat_map(|(host, addresses)| addresses.into_iter().map(move |address| (host, address)));
        let mut pairs: Vec<(u128, u64)> = pairs.collect();
        pairs.sort_rows();
        pairs.dedup();
        Ok(AddressList(pairs))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hosts_have_their_pages_and_addresses() {
        let host = |number: u128| number << 64 | 7;
        let pages = vec![((host(1), 5), 3), ((host(1), SINGLETONS), 4), ((host(3), SINGLETONS), 1), ((host(4), 9), 2)];
        let hosts = Hosts::new(&pages, &[(host(1), 80), (host(1), 81), (host(2), 82), (host(4), 83)]).unwrap();
        let first = hosts.find(HostName::of_hash(host(1))).unwrap();
        assert_eq!((first.pages, first.clustered, first.addresses), (7, 3, &[80, 81][..]));
        assert_eq!(first.entries, [HostEntry { cluster: 5, pages: 3 }]);
        let second = hosts.host(1);
        assert_eq!((second.pages, second.clustered, second.addresses.len(), second.entries.len()), (1, 0, 0, 0));
        assert_eq!(hosts.host(2).addresses, [83]);
        assert_eq!(hosts.find(HostName::of_hash(host(2))), None);
        let same = vec![((host(1), 5), 3), ((host(1) + 1, 5), 3)];
        assert!(Hosts::new(&same, &[]).unwrap_err().to_string().contains("same 64 bits"));
    }

    #[test]
    fn a_list_of_addresses_names_the_line_that_is_wrong() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("hosts.tsv");
        std::fs::write(&path, "A.example\t10.0.0.1, 10.0.0.2\n\nb.example\t10.0.0.1\n").unwrap();
        let list = AddressList::read(&path, 0, 1).unwrap().0;
        assert_eq!(list.len(), 3);
        assert!(list.iter().filter(|(host, _)| *host == checksum(b"a.example")).count() == 2);
        let parts: usize = (0..3).map(|index| AddressList::read(&path, index, 3).unwrap().0.len()).sum();
        assert_eq!(parts, 3);
        // Hosts and addresses in the forms of the tables, whatever is written.
        let all = |text: &str| {
            std::fs::write(&path, text).unwrap();
            AddressList::read(&path, 0, 1).unwrap().0
        };
        let of_tables = all("a.example\t2001:db8::1,10.0.0.1\nxn--bcher-kva.example\t10.0.0.2\n");
        let as_written = "\u{feff}A.example:80\t2001:0DB8:0::1, 0.0.0.0, 10.0.0.1,::\nB\u{fc}cher.example\t10.0.0.2\n";
        assert_eq!(all(as_written), of_tables);
        assert_eq!(all("a.example\t0.0.0.0\n"), []);
        std::fs::write(&path, "a.example/x\t10.0.0.1\n").unwrap();
        let error = AddressList::read(&path, 0, 1).unwrap_err().to_string();
        assert!(error.contains("line 1: `a.example/x` is no host"), "{error}");
        std::fs::write(&path, "a.example\t10.0.0.1\nb.example 10.0.0.1\n").unwrap();
        let error = AddressList::read(&path, 0, 1).unwrap_err().to_string();
        assert!(error.contains("line 2") && error.contains("b.example"), "{error}");
        std::fs::write(&path, "a.example\t10.0.0.1, xx\n").unwrap();
        let error = AddressList::read(&path, 0, 1).unwrap_err().to_string();
        assert!(error.contains("line 1: `xx` is no IP address"), "{error}");
    }
}
