//! Confirmation by URL: pages of two hosts, in one cluster, of which the paths end alike (Fetterly
//! 2004, section 4).
//!
//! The study put the ends of paths into a Bloom filter for each cluster; here they are compared
//! exactly, up to collisions of 64-bit hashes.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;

use anyhow::{Result, ensure};
use arrow_array::{Int64Array, StringArray};
use bytemuck::{Pod, Zeroable};
use nigh_exchange::{BlockOf, Context, Dealer, Keyed, by_group};

use super::counts::sum_over_workers;
use super::host_name::HostName;
use super::host_pairs::PairTable;
use crate::records::checksum;
use crate::state::History;
use crate::structures::{CompactSort, Ownership};
use crate::tables::{ClusterRow, Scan, Table, field};

/// What is compared of two paths: their last 1, 2, 3 and 4 arcs, and the whole path.
pub const MATCHES: usize = 5;

/// A page of a host that is in a pair.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Pod, Zeroable)]
#[repr(C)]
struct ClusterPage {
    cluster: u64,
    /// The number of its host, twice, and 1 more if it is the root of its cluster.
    host: u64,
    /// Hashes of the ends of its path, in the order of [`MATCHES`].
    ends: [u64; MATCHES],
}

impl Keyed for ClusterPage {
    fn key(&self) -> u64 {
        self.cluster
    }
}

/// Counts for each pair how many pages of its second host match a page of the first one in the same
/// cluster: in the last arc of the path, in the last two, three and four (or in all, if there are
/// fewer), and in the whole path. The query does not count. Returns the counts by number of the
/// pair, and the text of the hosts' names by number, at every worker.
///
/// If `rooted_at_second` is not empty, only clusters count whose root is on one host of the pair,
/// the first or the second one, and pages of the other host.
///
/// # Errors
/// If a file cannot be read or written, two hosts have the same [`HostName`], or a worker of this
/// process failed.
pub fn confirm(
    cx: &mut Context,
    history: &History,
    number: usize,
    owned: &Ownership,
    table: &Rc<PairTable>,
    rooted_at_second: &[bool],
) -> Result<(Vec<[u64; MATCHES]>, Vec<String>)> {
    let (mut pages, mut names) = (Vec::new(), BTreeMap::new());
    let tables = history.tables(number);
    for shard in owned.shards() {
        for rows in history.rows(number, &tables, ClusterRow::NAME, shard)? {
            Scan::open(&rows, &["doc", "url", "host", "similar_root", "similar_size"])?.for_each(|batch| {
                let (urls, hosts): (&StringArray, &StringArray) = (field(batch, "url")?, field(batch, "host")?);
                let column = |name| field::<Int64Array>(batch, name);
                let (docs, roots, sizes) = (column("doc")?, column("similar_root")?, column("similar_size")?);
                for row in (0..batch.num_rows()).filter(|row| sizes.value(*row) > 1) {
                    let host = hosts.value(row);
                    let Some(number) = table.number(HostName::of(host)) else { continue };
                    let name = names.entry(number).or_insert_with(|| host.to_owned());
                    ensure!(name == host, "the hosts {name} and {host} have hashes that begin with the same 64 bits");
                    let ends = ends_of_path(path_of(urls.value(row)));
                    let host = u64::from(number) << 1 | u64::from(docs.value(row) == roots.value(row));
                    pages.push(ClusterPage { cluster: roots.value(row) as u64, host, ends });
                }
                Ok(())
            })?;
        }
    }
    let matches = Rc::new(RefCell::new(vec![[0; MATCHES]; table.pairs.len()]));
    let each = {
        let (table, matches, rooted) = (table.clone(), matches.clone(), rooted_at_second.to_vec());
        move |pages: &[ClusterPage], _: &mut Dealer<u8>| {
            let of_host: Vec<&[ClusterPage]> = pages.chunk_by(|a, b| a.host >> 1 == b.host >> 1).collect();
            let present: Vec<u32> = of_host.iter().map(|pages| (pages[0].host >> 1) as u32).collect();
            let root = pages.iter().find(|page| page.host & 1 == 1).map(|page| (page.host >> 1) as u32);
            let mut ends: BTreeMap<usize, [Vec<u64>; MATCHES]> = BTreeMap::new();
            let matches = &mut matches.borrow_mut()[..];
            table.pairs_of(&present, |pair, a, b| {
                let (first, other) = match rooted.get(pair) {
                    Some(true) => (b, a),
                    _ => (a, b),
                };
                if !rooted.is_empty() && root != Some(present[first]) {
                    return;
                }
                let ends = ends.entry(first).or_insert_with(|| sorted_ends(of_host[first]));
                for page in of_host[other] {
                    for ((count, end), of_first) in matches[pair].iter_mut().zip(page.ends).zip(&ends[..]) {
                        *count += u64::from(of_first.binary_search(&end).is_ok());
                    }
                }
            });
        }
    };
    by_group(cx, "Confirm", pages, each, |_: BlockOf<u8>| {})?;
    let matches = sum_over_workers(cx, matches.take())?;
    let mut texts = vec![String::new(); table.hosts.len()];
    for (number, name) in cx.sorted(names.into_iter().collect())? {
        let text = &mut texts[number as usize];
        ensure!(
            text.is_empty() || *text == name,
            "the hosts {text} and {name} have hashes that begin with the same 64 bits"
        );
        *text = name;
    }
    Ok((matches, texts))
}

/// The ends of the paths of some pages, in order.
fn sorted_ends(pages: &[ClusterPage]) -> [Vec<u64>; MATCHES] {
    std::array::from_fn(|place| {
        let mut ends: Vec<u64> = pages.iter().map(|page| page.ends[place]).collect();
        ends.sort_rows();
        ends.dedup();
        ends
    })
}

/// The path of a canonical URL, with its first slash and without the query.
pub(super) fn path_of(url: &str) -> &str {
    let path = path_and_query(url);
    path.split_once('?').map_or(path, |(path, _)| path)
}

/// The path of a canonical URL, with its first slash and its query.
pub(super) fn path_and_query(url: &str) -> &str {
    let rest = url.split_once("://").map_or(url, |(_, rest)| rest);
    rest.find('/').map_or("/", |slash| &rest[slash..])
}

/// Hashes of the last 1, 2, 3 and 4 arcs of a path, and of the whole path. A path with fewer arcs
/// matches only the same whole path.
fn ends_of_path(path: &str) -> [u64; MATCHES] {
    let hash = |text: &str| (checksum(text.as_bytes()) >> 64) as u64;
    let whole = hash(path);
    let mut ends = [whole; MATCHES];
    let mut slashes = path.rmatch_indices('/').map(|(slash, _)| slash);
    for end in &mut ends[..MATCHES - 1] {
        // The first slash of the path is before its first arc.
        match slashes.next() {
            Some(slash) => *end = hash(&path[slash + 1..]),
            None => break,
        }
    }
    ends
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_match_in_their_last_arcs() {
        let matches = |a: &str, b: &str| {
            let (a, b) = (ends_of_path(path_of(a)), ends_of_path(path_of(b)));
            a.iter().zip(b).map(|(a, b)| u8::from(*a == b)).collect::<Vec<u8>>()
        };
        assert_eq!(matches("http://a/x/y/z/v/w.html?q", "http://b/u/y/z/v/w.html"), [1, 1, 1, 1, 0]);
        assert_eq!(matches("http://a/y/w.html", "http://b:8080/y/w.html?q=/r/"), [1, 1, 1, 1, 1]);
        assert_eq!(
            matches("http://a/y/w.html", "http://b/x/y/w.html"),
            [1, 1, 0, 0, 0],
            "all arcs, if there are fewer"
        );
        assert_eq!(matches("http://a/y/w.html", "http://b/z/w.html"), [1, 0, 0, 0, 0]);
        assert_eq!(matches("http://a/", "http://b/"), [1, 1, 1, 1, 1]);
        assert_eq!(matches("http://a/y/", "http://b/z/"), [1, 0, 0, 0, 0], "the last arc is empty");
    }
}
