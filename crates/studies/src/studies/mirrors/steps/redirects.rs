//! Hosts of which most URLs redirect to another host: other names of it that show few pages, or
//! none.

use std::collections::{BTreeMap, BTreeSet};

use anyhow::Result;
use arrow_array::StringArray;
use bytemuck::{Pod, Zeroable};
use nigh_exchange::{Context, all_to_all};
use serde::{Deserialize, Serialize};

use super::MirrorStage;
use super::host_name::HostName;
use super::hosts::Hosts;
use crate::operators::host_pages::host_owner;
use crate::records::checksum;
use crate::state::History;
use crate::structures::{CompactSort, Sums};
use crate::tables::{RedirectRow, Scan, Table, field};
use crate::text::canonical;

/// A host of which most URLs redirect to another one.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct RedirectedHost {
    /// The host.
    pub host: String,
    /// Where its URLs redirect to.
    pub target: String,
    /// The number of these URLs.
    pub urls: u64,
    /// The pages of the host.
    pub pages: u64,
}

/// Redirects from one host to another.
#[derive(Clone, Copy, Pod, Zeroable)]
#[repr(C)]
struct RedirectRecord {
    host: [u64; 2],
    target: [u64; 2],
    urls: u64,
}

/// Finds hosts of which at least `least` URLs redirect to one other host, and these are more than
/// half of its redirects and pages. Every worker returns all of them, in order.
///
/// # Errors
/// If a file cannot be read (names it), or a worker of this process failed.
pub fn redirected_hosts(
    cx: &mut Context,
    stage: &MirrorStage,
    history: &History,
    number: usize,
    hosts: &Hosts,
) -> Result<Vec<RedirectedHost>> {
    let (index, peers) = (cx.index(), cx.peers());
    let mut read = Sums::default();
    each_redirect(history, number, index, peers, |host, target| {
        read.add((checksum(host.as_bytes()), checksum(target.as_bytes())), 1);
    })?;
    let mut dealer = cx.dealer();
    let halves = |hash: u128| [(hash >> 64) as u64, hash as u64];
    for ((host, target), urls) in read.finish() {
        dealer.deal(host_owner(host, peers), RedirectRecord { host: halves(host), target: halves(target), urls });
    }
    let mut sums = Sums::default();
    for block in all_to_all(cx, dealer)? {
        block.records().iter().for_each(|record| sums.add((record.host, record.target), record.urls));
    }
    let mut found = Vec::new();
    for of_host in sums.finish().chunk_by(|((a, _), _), ((b, _), _)| a == b) {
        let ([high, low], _) = of_host[0].0;
        let name = HostName::of_hash(u128::from(high) << 64 | u128::from(low));
        let pages = hosts.find(name).map_or(0, |host| host.pages);
        let all = pages + of_host.iter().map(|(_, urls)| urls).sum::<u64>();
        let most = of_host.iter().filter(|(_, urls)| *urls >= stage.least.into() && 2 * urls > all);
        found.extend(
            most.filter(|((host, target), _)| host != target)
                .map(|((host, target), urls)| (*host, *target, *urls, pages)),
        );
    }
    let found = cx.sorted(found)?;
    // The names of these hosts, from the workers that read their redirects.
    let wanted: BTreeSet<[u64; 2]> = found.iter().flat_map(|(host, target, ..)| [*host, *target]).collect();
    let mut names = BTreeSet::new();
    if !wanted.is_empty() {
        each_redirect(history, number, index, peers, |host, target| {
            for name in [host, target] {
                let hash = halves(checksum(name.as_bytes()));
                if wanted.contains(&hash) && !names.contains(&(hash, name.to_owned())) {
                    names.insert((hash, name.to_owned()));
                }
            }
        })?;
    }
    let names: BTreeMap<[u64; 2], String> = cx.sorted(names.into_iter().collect())?.into_iter().collect();
    let text = |hash: [u64; 2]| names.get(&hash).cloned().unwrap_or_default();
    let host = |(host, target, urls, pages)| RedirectedHost { host: text(host), target: text(target), urls, pages };
    let mut hosts: Vec<RedirectedHost> = found.into_iter().map(host).collect();
    hosts.sort_items();
    Ok(hosts)
}

/// Calls `each` with the two hosts of every redirect in the files that this worker reads.
fn each_redirect(
    history: &History,
    number: usize,
    index: usize,
    peers: usize,
    mut each: impl FnMut(&str, &str),
) -> Result<()> {
    let tables = history.tables(number);
    for rows in tables.all(RedirectRow::NAME).iter().skip(index).step_by(peers) {
        Scan::open(rows, &["url", "target_url"])?.for_each(|batch| {
            let (urls, targets): (&StringArray, &StringArray) = (field(batch, "url")?, field(batch, "target_url")?);
            for row in 0..batch.num_rows() {
                if let (Some(url), Some(target)) = (canonical(urls.value(row)), canonical(targets.value(row))) {
                    each(url.host(), target.host());
                }
            }
            Ok(())
        })?;
    }
    Ok(())
}
