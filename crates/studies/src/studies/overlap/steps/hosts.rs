//! Hosts as units: each has an owner and a number, and the pages of all workers count for it.
//!
//! The shard of a host is that of its name, hashed as a URL is; in a shard hosts are numbered by
//! name. The number of a host is its row. It is not kept: another week has other numbers.
//!
//! Known limit: the names of the hosts of a worker's pages are in its memory.

use std::collections::BTreeMap;

use anyhow::Result;
use nigh_exchange::{Context, send_rows};
use serde::{Deserialize, Serialize};

use super::units::{Units, hash_of};
use crate::records::{DocId, KeyHash};
use crate::structures::{CompactSort, Ownership};

/// The pages of one host at one worker.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
struct PagesOfHost {
    name: String,
    /// The worker.
    from: usize,
    docs: u32,
    first: u64,
    bytes: u64,
    machines: Vec<u64>,
}

/// The hosts of a worker's pages, while they are read.
#[derive(Debug, Default)]
pub(super) struct HostPages {
    hosts: BTreeMap<String, PagesOfHost>,
    /// The pages, each with the hash of its host.
    pages: Vec<(DocId, u64)>,
}

impl HostPages {
    /// Adds a page.
    pub fn add(&mut self, host: &str, doc: DocId, machine: Option<u64>, bytes: u64) {
        self.pages.push((doc, hash_of(host)));
        if !self.hosts.contains_key(host) {
            let none = PagesOfHost { name: host.to_owned(), first: u64::MAX, ..PagesOfHost::default() };
            self.hosts.insert(host.to_owned(), none);
        }
        let Some(pages) = self.hosts.get_mut(host) else { return };
        pages.docs += 1;
        pages.first = pages.first.min(doc.to_table() as u64);
        pages.bytes += bytes;
        if let Some(machine) = machine
            && let Err(place) = pages.machines.binary_search(&machine)
        {
            pages.machines.insert(place, machine);
        }
    }
}

/// Numbers the hosts of all workers' pages.
///
/// # Errors
/// If a worker of this process failed.
pub(super) fn number_hosts(
    cx: &mut Context,
    pages_owned: &Ownership,
    shards: u32,
    of_host: HostPages,
) -> Result<Units> {
    let (index, peers) = (cx.index(), cx.peers());
    let HostPages { hosts, pages } = of_host;
    let shard_of = |name: &str| KeyHash::of(name).shard(shards);
    let sent =
        hosts.into_values().map(|host| (shard_of(&host.name) as usize % peers, PagesOfHost { from: index, ..host }));
    let mut received = send_rows(cx, sent.collect())?;
    // By shard and name; then by worker.
    received.sort_items_by(|a, b| (shard_of(&a.name), a).cmp(&(shard_of(&b.name), b)));
    let mut own_rows: Vec<(u32, u64)> = Vec::new();
    for of_shard in received.chunk_by(|a, b| shard_of(&a.name) == shard_of(&b.name)) {
        let names = of_shard.chunk_by(|a, b| a.name == b.name).count();
        own_rows.push((shard_of(&of_shard[0].name), names as u64));
    }
    let mut rows = vec![0; shards as usize];
    cx.sorted(own_rows)?.into_iter().for_each(|(shard, hosts)| rows[shard as usize] = hosts);
    let owned = Ownership::new(index, peers, &rows);
    let mut units = Units::new(owned.clone());
    let ids: Vec<DocId> = owned.docs().collect();
    let mut answers: Vec<(usize, (u64, u64))> = Vec::new();
    for (unit, parts) in received.chunk_by(|a, b| a.name == b.name).enumerate() {
        let host = hash_of(&parts[0].name);
        let mut machines: Vec<u64> = parts.iter().flat_map(|part| part.machines.iter().copied()).collect();
        machines.sort_rows();
        machines.dedup();
        units.pages[unit] = parts.iter().map(|part| part.docs).sum();
        units.first[unit] = DocId::from_table(parts.iter().map(|part| part.first).min().unwrap_or_default() as i64);
        units.bytes[unit] = parts.iter().map(|part| part.bytes).sum();
        units.host[unit] = host;
        units.machines.extend(machines.into_iter().map(|machine| (unit as u32, machine)));
        answers.extend(parts.iter().map(|part| (part.from, (host, ids[unit].to_table() as u64))));
        units.names.push(parts[0].name.clone());
    }
    let host_ids: BTreeMap<u64, u64> = send_rows(cx, answers)?.into_iter().collect();
    units.host_of = vec![DocId::NONE; pages_owned.len()];
    for (doc, host) in pages {
        units.host_of[pages_owned.index(doc)] = DocId::from_table(host_ids[&host] as i64);
    }
    Ok(units)
}
