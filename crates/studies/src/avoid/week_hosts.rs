//! Hosts of a week: what is known of each, and the one order that decides which copy stays.

use std::collections::HashMap;

use anyhow::{Context as _, Result};

use super::last_week::LastWeek;
use super::redirects::WeekRedirects;
use crate::host_order::{HostFacts, HostLeads, HostNumber, HostRank, host_hash, places};

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
        self.facts.push(HostFacts::NONE);
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

    /// What is known of each host.
    pub fn facts(&self) -> &[HostFacts] {
        &self.facts
    }

    /// Puts the hosts in order. `more` are pairs of hosts of which the first has more.
    pub fn put_in_order(&mut self, more: &[(HostNumber, HostNumber)], leads: &HostLeads) {
        self.facts.iter_mut().zip(&self.hashes).for_each(|(facts, hash)| facts.lead = leads.of(*hash));
        let ranks: Vec<HostRank> = self.facts.iter().zip(&self.hashes).map(|(facts, hash)| facts.rank(*hash)).collect();
        self.places = places(&ranks, more);
    }

    /// The place of a host in the order: of several copies that on the first host stays.
    pub fn place(&self, host: HostNumber) -> u32 {
        self.places[host as usize]
    }
}
