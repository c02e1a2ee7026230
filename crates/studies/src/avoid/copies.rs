//! Which pages are copies, by what the studies found.
//!
//! A page is a copy if another page is like it, and a study found that the two belong together:
//!
//! - their hosts are a pair of the mirrors jobs, directly or over other hosts;
//! - one of them is below a prefix of the collections job, and the other below its principal copy,
//!   or anywhere else;
//! - their texts are the same, by the overlap job, or their bytes, if that job has no tables of the
//!   week.
//!
//! Of the two, that on the host that comes first in the order of hosts stays; or that of which the
//! collections job says so. Of exact copies on one host that by https, then that with the shorter
//! URL, then that with the smaller one.

use std::rc::Rc;

use anyhow::Result;
use arrow_array::{Array as _, StringArray};

use super::Settings;
use super::findings::StudyFindings;
use super::last_week::{LastWeek, WeekPage};
use super::week_hosts::WeekHosts;
use super::why::{WhyCopy, Whys};
use crate::host_order::{HostNumber, PagesInCommon};
use crate::structures::{ByKey, UnionFind};
use crate::studies::collections::steps::{directories, directory_hash};
use crate::tables::{DocumentRow, Scan, Table as _, field};

/// Room for the error of a product of a share and a whole number.
pub(super) const ROUNDING: f64 = 1e-9;

/// What is found of a page.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct PageCopies {
    /// Why it and another page are copies of each other; empty if it is none.
    pub whys: Whys,
    /// Whether the other one comes before it.
    pub is_later: bool,
}

/// The page of some copies that stays, and whether these are on one host.
struct First {
    page: usize,
    host: HostNumber,
    key: FirstKey,
}

/// The order of exact copies: the place of the host; whether the collections job lists it; whether
/// it is http, the length of the URL, the URL.
pub(super) type FirstKey = (u32, bool, bool, usize, String);

/// The key of a page among copies of it.
pub(super) fn first_key(place: u32, is_listed: bool, url: &str) -> FirstKey {
    (place, is_listed, !url.starts_with("https:"), url.len(), url.to_owned())
}

/// One of the two prefixes of a listed one: itself, or its principal copy.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Side {
    /// The number of the listed prefix.
    row: u32,
    is_principal: bool,
}

/// Copies. Memory: 16 bytes for each page with replicas on a host in a pair, and for each below a
/// prefix of the collections job, its principal copy included; about 100 for each set of exact
/// copies.
pub(super) struct CopiesOfHosts {
    /// By host: the hosts that it is in a pair with, and why, ascending.
    related: Vec<Vec<(HostNumber, Whys)>>,
    /// By host: why it is in any pair.
    all_related: Vec<Whys>,
    /// By host: the group of hosts that pairs put together.
    groups: Vec<u32>,
    /// Unit, group, place of the host, host: ascending, each once.
    members: Vec<(u64, u32, u32, HostNumber)>,
    /// By the hash of a prefix.
    sides: ByKey<u64, Vec<Side>>,
    /// Unit and side, and the number of pages: ascending.
    below: Vec<(u64, Side, u32)>,
    components: Option<ByKey<u64, u64>>,
    /// By set of exact copies.
    first: ByKey<u64, First>,
    /// By host: hashes of its addresses, ascending.
    addresses: Vec<Vec<u64>>,
}

impl CopiesOfHosts {
    /// Puts the hosts in order, and finds what says which pages are copies. Takes `components` of
    /// what was found.
    ///
    /// # Errors
    /// If a file cannot be read: names it.
    pub fn find(
        pages: &LastWeek<'_>,
        hosts: &mut WeekHosts,
        found: &mut StudyFindings,
        settings: &Settings,
    ) -> Result<CopiesOfHosts> {
        let mut related: Vec<Vec<(HostNumber, Whys)>> = vec![Vec::new(); hosts.len()];
        let mut edges = Vec::new();
        for (names, why) in &found.pairs {
            let [Some(a), Some(b)] = names.each_ref().map(|name| hosts.find(name)) else { continue };
            if a != b {
                edges.push((a, b));
                related[a as usize].push((b, Whys::of(*why)));
                related[b as usize].push((a, Whys::of(*why)));
            }
        }
        related.iter_mut().for_each(joined);
        let joined = UnionFind::new(hosts.len());
        joined.join(&edges)?;
        let groups: Vec<u32> = (0..hosts.len() as u32).map(|host| joined.root(host)).collect();
        let units = units(pages, hosts, &related)?;
        let mut more = hosts_with_more(&units, hosts, &related, settings.purity);
        for [host, target] in &found.redirected {
            more.extend(hosts.find(target).zip(hosts.find(host)));
        }
        hosts.put_in_order(&more, &found.leads);
        let member = |(unit, host): &(u64, HostNumber)| (*unit, groups[*host as usize], hosts.place(*host), *host);
        let mut members: Vec<_> = units.iter().map(member).collect();
        members.sort_unstable();
        members.dedup();
        let all_of = |related: &Vec<(HostNumber, Whys)>| {
            related.iter().fold(Whys::default(), |mut all, (_, whys)| {
                all.add(*whys);
                all
            })
        };
        let mut copies = CopiesOfHosts {
            all_related: related.iter().map(all_of).collect(),
            related,
            groups,
            members,
            sides: ByKey::default(),
            below: Vec::new(),
            components: found.components.take(),
            first: ByKey::default(),
            addresses: Vec::new(),
        };
        for (row, listed) in (0..).zip(&found.listed) {
            for (prefix, is_principal) in [(&listed.prefix, false), (&listed.keep, true)] {
                copies.sides.entry(directory_hash(prefix)).or_default().push(Side { row, is_principal });
            }
        }
        copies.read_pages(pages, hosts)?;
        if !copies.first.is_empty() {
            copies.addresses = addresses(pages, hosts)?;
        }
        Ok(copies)
    }

    /// Reads what is below listed prefixes, and the first of exact copies.
    fn read_pages(&mut self, pages: &LastWeek<'_>, hosts: &WeekHosts) -> Result<()> {
        let mut below: Vec<(u64, Side)> = Vec::new();
        pages.each(|page| {
            if page.size > 1 {
                below.extend(self.sides_of(page.url).map(|side| (page.unit, side)));
            }
            if let Some(copies) = self.copies_of(page) {
                let host = hosts.of_page(page.number);
                let (is_principal, is_listed) =
                    self.sides_of(page.url).fold((false, false), |(principal, listed), side| {
                        (principal | side.is_principal, listed | !side.is_principal)
                    });
                let key = first_key(hosts.place(host), is_listed && !is_principal, page.url);
                let first = First { page: page.number, host, key };
                match self.first.entry(copies) {
                    std::collections::hash_map::Entry::Vacant(entry) => {
                        entry.insert(first);
                    }
                    std::collections::hash_map::Entry::Occupied(mut entry) => {
                        if first.key < entry.get().key {
                            entry.insert(first);
                        }
                    }
                }
            }
            Ok(())
        })?;
        below.sort_unstable();
        let count = |same: &[(u64, Side)]| (same[0].0, same[0].1, same.len() as u32);
        self.below = below.chunk_by(|a, b| a == b).map(count).collect();
        Ok(())
    }

    /// The sides of listed prefixes that a URL is below.
    fn sides_of(&self, url: &str) -> impl Iterator<Item = Side> {
        let of = |hash: u64| self.sides.get(&hash).into_iter().flatten().copied();
        let is_needed = !self.sides.is_empty();
        directories(url).take_while(move |_| is_needed).flat_map(move |directory| of(directory.hash))
    }

    /// The set of exact copies that a page is in.
    fn copies_of(&self, page: &WeekPage<'_>) -> Option<u64> {
        match &self.components {
            Some(components) => components.get(&(page.number as u64)).copied(),
            None => page.exact,
        }
    }

    /// The number of pages of a unit that are below one side.
    fn count_below(&self, unit: u64, side: Side) -> u64 {
        let at = self.below.binary_search_by_key(&(unit, side), |(unit, side, _)| (*unit, *side));
        at.map_or(0, |at| self.below[at].2.into())
    }

    /// What is found of a page.
    pub fn of(&self, page: &WeekPage<'_>, hosts: &WeekHosts) -> PageCopies {
        let mut of_page = PageCopies::default();
        let host = hosts.of_page(page.number);
        if page.size > 1 {
            self.add_pairs(page, host, hosts, &mut of_page);
            for side in self.sides_of(page.url) {
                let other = Side { is_principal: !side.is_principal, ..side };
                let is_copy = match side.is_principal {
                    // The principal copy, and other pages, are elsewhere.
                    false => self.count_below(page.unit, side) < page.size,
                    true => self.count_below(page.unit, other) > 0,
                };
                if is_copy {
                    of_page.whys.add(Whys::of(WhyCopy::Collection));
                    of_page.is_later |= !side.is_principal;
                }
            }
        }
        if let Some(first) = self.copies_of(page).and_then(|copies| self.first.get(&copies)) {
            of_page.whys.add(Whys::of(WhyCopy::Copies));
            of_page.is_later |= first.page != page.number;
            if first.host != host && self.share_an_address(first.host, host) {
                of_page.whys.add(Whys::of(WhyCopy::Alias));
            }
        }
        of_page
    }

    /// Adds what pairs of hosts say.
    fn add_pairs(&self, page: &WeekPage<'_>, host: HostNumber, hosts: &WeekHosts, of_page: &mut PageCopies) {
        let related = &self.related[host as usize];
        if related.is_empty() {
            return;
        }
        let (unit, group) = (page.unit, self.groups[host as usize]);
        let from = self.members.partition_point(|member| (member.0, member.1) < (unit, group));
        let same = &self.members[from..];
        let same = &same[..same.partition_point(|member| (member.0, member.1) == (unit, group))];
        let Some((.., first)) = same.iter().find(|(.., other)| *other != host) else { return };
        of_page.is_later |= hosts.place(*first) < hosts.place(host);
        // A group can have thousands of hosts: the shorter list is gone through, until it can add
        // no more.
        let (all, mut direct) = (self.all_related[host as usize], Whys::default());
        if related.len() < same.len() {
            for (other, whys) in related {
                if direct == all {
                    break;
                }
                if same.binary_search(&(unit, group, hosts.place(*other), *other)).is_ok() {
                    direct.add(*whys);
                }
            }
        } else {
            for (.., other) in same {
                if direct == all {
                    break;
                }
                if let Ok(at) = related.binary_search_by_key(other, |(host, _)| *host) {
                    direct.add(related[at].1);
                }
            }
        }
        of_page.whys.add(if direct.is_empty() { all } else { direct });
    }

    fn share_an_address(&self, a: HostNumber, b: HostNumber) -> bool {
        let [a, b] = [a, b].map(|host| &self.addresses[host as usize]);
        a.iter().any(|address| b.binary_search(address).is_ok())
    }
}

/// Puts what is said of one host together.
fn joined(related: &mut Vec<(HostNumber, Whys)>) {
    related.sort_by_key(|(host, _)| *host);
    related.dedup_by(|later, first| {
        let is_same = later.0 == first.0;
        if is_same {
            first.1.add(later.1);
        }
        is_same
    });
}

/// The unit and the host of every page with replicas on a host in a pair, ascending.
fn units(
    pages: &LastWeek<'_>,
    hosts: &WeekHosts,
    related: &[Vec<(HostNumber, Whys)>],
) -> Result<Vec<(u64, HostNumber)>> {
    let mut units = Vec::new();
    if related.iter().all(Vec::is_empty) {
        return Ok(units);
    }
    pages.each(|page| {
        let host = hosts.of_page(page.number);
        if page.size > 1 && !related[host as usize].is_empty() {
            units.push((page.unit, host));
        }
        Ok(())
    })?;
    units.sort_unstable();
    Ok(units)
}

/// Pairs of hosts of which the first has more.
fn hosts_with_more(
    units: &[(u64, HostNumber)],
    hosts: &WeekHosts,
    related: &[Vec<(HostNumber, Whys)>],
    purity: f64,
) -> Vec<(HostNumber, HostNumber)> {
    let numbers = |related: &Vec<(HostNumber, Whys)>| related.iter().map(|(other, _)| *other).collect();
    let mut in_common = PagesInCommon::new(Rc::new(related.iter().map(numbers).collect()));
    let mut of_unit: Vec<(HostNumber, u32)> = Vec::new();
    for unit in units.chunk_by(|a, b| a.0 == b.0) {
        of_unit.clear();
        of_unit.extend(unit.chunk_by(|a, b| a.1 == b.1).map(|same| (same[0].1, same.len() as u32)));
        in_common.add(&of_unit);
    }
    in_common.more(hosts.facts(), purity)
}

/// The addresses of hosts, from their pages.
fn addresses(pages: &LastWeek<'_>, hosts: &WeekHosts) -> Result<Vec<Vec<u64>>> {
    let mut addresses = vec![Vec::new(); hosts.len()];
    for rows in pages.tables.all(DocumentRow::NAME) {
        Scan::open(rows, &["host", "ip"])?.for_each(|batch| {
            let [names, ips]: [&StringArray; 2] = [field(batch, "host")?, field(batch, "ip")?];
            for row in (0..batch.num_rows()).filter(|row| ips.is_valid(*row) && names.is_valid(*row)) {
                let Some(host) = hosts.find(names.value(row)) else { continue };
                let (of_host, ip): (&mut Vec<u64>, u64) =
                    (&mut addresses[host as usize], directory_hash(ips.value(row)));
                if let Err(at) = of_host.binary_search(&ip) {
                    of_host.insert(at, ip);
                }
            }
            Ok(())
        })?;
    }
    Ok(addresses)
}
