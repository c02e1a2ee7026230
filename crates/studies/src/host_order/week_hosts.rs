//! What a week says of some hosts that are in pairs, from its tables, on all workers.
//!
//! ```text
//! own pages of these hosts     ─▶ sums by host: pages, those without a replica, the first week
//! those with replicas          ─▶ owner of the cluster ─▶ pages that hosts of a pair share
//! own links, and their hosts   ─▶ owner of the target  ─▶ links from other hosts
//! sums of all workers          ─▶ all workers
//! ```
//!
//! Memory of a worker: 4 bytes for every known URL of its shards, 16 for each page of these hosts
//! that has a replica, and the hosts and pairs.

use std::cell::RefCell;
use std::rc::Rc;

use anyhow::{Result, ensure};
use arrow_array::{Int64Array, StringArray};
use bytemuck::{Pod, Zeroable};
use nigh_exchange::{BlockOf, Context, Dealer, Keyed, all_to_all, by_group};

use super::facts::{HostFacts, host_hash};
use super::in_common::{MORE_SHARE, PagesInCommon, RelatedHosts};
use super::leads::HostLeads;
use super::places::{HostNumber, places};
use crate::operators::scan::{LinkReader, LinkSource, UrlTargets};
use crate::records::DocId;
use crate::state::History;
use crate::structures::{ByKey, Ownership};
use crate::tables::{ClusterRow, Scan, Table, field};

/// The host of a page that is on none of the hosts, or that the week does not have.
const NONE: HostNumber = HostNumber::MAX;
/// Set in the number of a page's host if the page has replicas.
const REPLICATED: HostNumber = 1 << 31;
/// Bytes of a link in a round: itself, and on its way.
const LINK_BYTES: u64 = 32;
/// Links of a round, at least and at most.
const ROUND: [u64; 2] = [1 << 13, 1 << 20];

/// Hosts in pairs, and what a week says of them; the same at every worker.
#[derive(Clone, Debug, Default)]
pub struct HostsOfWeek {
    /// By host: the hash of its name.
    hashes: Vec<u64>,
    facts: Vec<HostFacts>,
    /// Pairs of hosts of which the first has more.
    more: Vec<(HostNumber, HostNumber)>,
}

/// A page with replicas, on its way to the owner of its cluster.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Pod, Zeroable)]
#[repr(C)]
struct ReplicaOnHost {
    cluster: u64,
    host: u64,
}

impl Keyed for ReplicaOnHost {
    fn key(&self) -> u64 {
        self.cluster
    }
}

impl HostsOfWeek {
    /// Hosts of which nothing is known, as in a store without weeks.
    pub fn unknown(names: &[&str]) -> HostsOfWeek {
        let hashes: Vec<u64> = names.iter().map(|name| host_hash(name)).collect();
        HostsOfWeek { facts: vec![HostFacts::NONE; hashes.len()], hashes, more: Vec::new() }
    }

    /// Reads what week number `number` says of the hosts of these names, which are in these pairs
    /// of numbers. Names and pairs are the same at every worker. Without pairs nothing is read.
    ///
    /// # Errors
    /// If two names have the same hash, a file cannot be read or written, or a worker of this
    /// process failed.
    pub fn read(
        cx: &mut Context,
        history: &History,
        number: usize,
        owned: &Ownership,
        names: &[&str],
        pairs: &[(HostNumber, HostNumber)],
    ) -> Result<HostsOfWeek> {
        let mut hosts = HostsOfWeek::unknown(names);
        if pairs.is_empty() {
            return Ok(hosts);
        }
        let numbers: ByKey<u64, HostNumber> = hosts.hashes.iter().copied().zip(0..).collect();
        ensure!(numbers.len() == names.len(), "two hosts in pairs have names with the same 64-bit hash");
        let mut related: RelatedHosts = vec![Vec::new(); names.len()];
        for (a, b) in pairs {
            related[*a as usize].push(*b);
            related[*b as usize].push(*a);
        }
        for of_host in &mut related {
            of_host.sort_unstable();
            of_host.dedup();
        }
        let mut own = vec![HostFacts::NONE; names.len()];
        let (of_page, replicas) = own_pages(history, number, owned, &numbers, &mut own)?;
        let mut in_common = in_common(cx, replicas, Rc::new(related))?;
        count_links(cx, history, number, owned, &of_page, &mut own)?;
        let own = own.iter().zip(0u64..).filter(|(facts, _)| **facts != HostFacts::NONE);
        let own: Vec<(u64, [u32; 4])> =
            own.map(|(facts, host)| (host, [facts.pages, facts.alone, facts.in_links, facts.first_seen])).collect();
        for (host, [pages, alone, in_links, first_seen]) in cx.concat(own)? {
            hosts.facts[host as usize].add(&HostFacts { pages, alone, in_links, first_seen, lead: 0 });
        }
        let counts = cx.concat(in_common.take_counts())?;
        in_common.add_counts(counts);
        hosts.more = in_common.more(&hosts.facts, MORE_SHARE);
        Ok(hosts)
    }

    /// The place of each host in the order of hosts. `urls` are the distinct URLs of a host, where
    /// they are known, else 0; `more` are further pairs of hosts of which the first comes before
    /// the second.
    pub fn places(
        &self,
        leads: &HostLeads,
        urls: impl Fn(usize) -> u64,
        more: impl IntoIterator<Item = (HostNumber, HostNumber)>,
    ) -> Vec<u32> {
        let rank = |(host, (facts, hash)): (usize, (&HostFacts, &u64))| {
            HostFacts { lead: leads.of(*hash), ..*facts }.rank_with_urls(*hash, urls(host))
        };
        let ranks: Vec<_> = self.facts.iter().zip(&self.hashes).enumerate().map(rank).collect();
        let more: Vec<_> = self.more.iter().copied().chain(more).collect();
        places(&ranks, &more)
    }
}

/// Adds own pages of the hosts to their facts. Returns by own page the number of its host, and the
/// pages that have replicas.
fn own_pages(
    history: &History,
    number: usize,
    owned: &Ownership,
    numbers: &ByKey<u64, HostNumber>,
    facts: &mut [HostFacts],
) -> Result<(Vec<HostNumber>, Vec<ReplicaOnHost>)> {
    let (mut of_page, mut replicas) = (vec![NONE; owned.len()], Vec::new());
    let tables = history.tables(number);
    for shard in owned.shards() {
        for rows in history.rows(number, &tables, ClusterRow::NAME, shard)? {
            Scan::open(&rows, &["doc", "host", "similar_root", "similar_size"])?.for_each(|batch| {
                let names: &StringArray = field(batch, "host")?;
                let column = |name| field::<Int64Array>(batch, name);
                let (docs, roots, sizes) = (column("doc")?, column("similar_root")?, column("similar_size")?);
                for row in 0..batch.num_rows() {
                    let Some(host) = numbers.get(&host_hash(names.value(row))).copied() else { continue };
                    let doc = DocId::from_table(docs.value(row));
                    history.check(number, doc, shard, rows.path())?;
                    let is_alone = sizes.value(row) < 2;
                    of_page[owned.index(doc)] = if is_alone { host } else { host | REPLICATED };
                    let first_seen = history.weeks.partition_point(|week| !week.knows(doc)) as u32;
                    let page = HostFacts { pages: 1, alone: is_alone.into(), first_seen, ..HostFacts::NONE };
                    facts[host as usize].add(&page);
                    if !is_alone {
                        replicas.push(ReplicaOnHost { cluster: roots.value(row) as u64, host: host.into() });
                    }
                }
                Ok(())
            })?;
        }
    }
    Ok((of_page, replicas))
}

/// The pages that hosts of pairs have in common, of clusters that this worker owns.
fn in_common(cx: &mut Context, replicas: Vec<ReplicaOnHost>, related: Rc<RelatedHosts>) -> Result<PagesInCommon> {
    let found = Rc::new(RefCell::new(PagesInCommon::new(related.clone())));
    let each = {
        let (found, mut cluster) = (found.clone(), Vec::new());
        move |pages: &[ReplicaOnHost], _: &mut Dealer<u8>| {
            cluster.clear();
            let of_hosts = pages.chunk_by(|a, b| a.host == b.host);
            cluster.extend(of_hosts.map(|of| (of[0].host as HostNumber, of.len() as u32)));
            found.borrow_mut().add(&cluster);
        }
    };
    by_group(cx, "HostsInCommon", replicas, each, |_: BlockOf<u8>| {})?;
    Ok(found.replace(PagesInCommon::new(related)))
}

/// Adds the links from other hosts to own pages with replicas to the facts of their hosts.
fn count_links(
    cx: &mut Context,
    history: &History,
    number: usize,
    owned: &Ownership,
    of_page: &[HostNumber],
    facts: &mut [HostFacts],
) -> Result<()> {
    let targets = UrlTargets::of_week(cx, history, number, owned)?;
    let mut links = LinkReader::open(history, number, owned, &targets)?;
    let at_once = (cx.memory() / LINK_BYTES).clamp(ROUND[0], ROUND[1]);
    let rounds = cx.max(links.count().div_ceil(at_once))?;
    for _ in 0..rounds {
        let mut dealer: Dealer<[u32; 2]> = cx.dealer();
        for link in links.read(at_once as usize)? {
            let from = of_page[link.page as usize];
            dealer.deal(owned.owner(link.target) as u64, [owned.index(link.target) as u32, from]);
        }
        for block in all_to_all(cx, dealer)? {
            for [target, from] in block.records() {
                let to = of_page[*target as usize];
                if to != NONE && to & REPLICATED > 0 && from | REPLICATED != to {
                    let facts = &mut facts[(to & !REPLICATED) as usize];
                    facts.in_links = facts.in_links.saturating_add(1);
                }
            }
        }
    }
    ensure!(links.read(1)?.is_empty(), "the table `links` has more rows than the week.json of its week says");
    Ok(())
}
