//! What the mirrors job knows of the pairs of a week, and of the paths of mirrors; the same at
//! every worker.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;

use anyhow::Result;
use nigh_exchange::Context;

use super::MirrorCounts;
use super::steps::{
    HostName, HostPairCounts, ListedHost, MATCHES, PairTable, PathCounts, RawPairs, RedirectedHost, paths,
};
use crate::host_order::{HostLeads, HostsOfWeek};
use crate::state::History;
use crate::stats::ratio;
use crate::structures::Ownership;

/// The class of a pair of different hosts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum PairClass {
    Unresolved,
    Farm,
    Kept,
    Alias,
}

impl PairClass {
    /// Its name in the table `pairs`.
    pub(super) fn name(self) -> &'static str {
        match self {
            PairClass::Unresolved => "unresolved",
            PairClass::Farm => "farm",
            PairClass::Kept => "kept",
            PairClass::Alias => "alias",
        }
    }
}

/// What is known of a pair of different hosts.
#[derive(Clone, Debug)]
pub(super) struct FoundPair {
    pub(super) class: PairClass,
    pub(super) counts: HostPairCounts,
    pub(super) size: u64,
    pub(super) matches: [u64; MATCHES],
    pub(super) is_mirror: bool,
}

/// What is known of the pairs of a week; the same at every worker.
pub(super) struct WeekOfPairs {
    pub(super) table: Rc<PairTable>,
    pub(super) raw: RawPairs,
    /// By number of the pair.
    pub(super) found: Vec<FoundPair>,
    /// The names of hosts by number.
    pub(super) names: Vec<String>,
    /// The numbers of hosts that are mirrors, ascending.
    pub(super) mirror_hosts: Vec<u32>,
    /// What the week says of them, in that order.
    pub(super) of_hosts: HostsOfWeek,
    pub(super) redirected: Vec<RedirectedHost>,
    pub(super) has_addresses: bool,
    /// The number of mirrored pages, of all workers.
    pub(super) mirrored: u64,
    /// What the study counts.
    pub(super) study: StudyCounts,
}

/// The classes of a week and its mirrored pages as the study counts them: pairs of the host of a
/// cluster's root with each other host, without regard to redirects.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct StudyCounts {
    pub(super) counts: MirrorCounts,
    pub(super) mirrored: u64,
}

impl WeekOfPairs {
    /// The pairs by class; `least` is the number of pages that match, at least.
    pub(super) fn counts(&self, least: u32) -> MirrorCounts {
        let of_class = |class: PairClass| self.found.iter().filter(|found| found.class == class).count() as u64;
        let pairs = || self.table.pairs.iter().zip(&self.found).filter(|(_, found)| found.class == PairClass::Kept);
        let matched = |place: usize| pairs().filter(|(_, found)| found.matches[place] >= least.into()).count() as u64;
        // Farms that are unresolved are counted as such where they are listed.
        let listed_farms = self.raw.farm.len() as u64;
        let mut counts = MirrorCounts {
            raw: 0,
            auto: self.raw.auto.len() as u64,
            alias: of_class(PairClass::Alias),
            unresolved: of_class(PairClass::Unresolved),
            farm: self.raw.farm_pairs - listed_farms.min(self.raw.farm_pairs) + of_class(PairClass::Farm),
            kept: of_class(PairClass::Kept),
            www: pairs().filter(|((a, b), _)| differ_in_www(self.name(*a), self.name(*b))).count() as u64,
            last_arc: matched(0),
            last_four_arcs: matched(3),
        };
        counts.raw = counts.auto + counts.alias + counts.unresolved + counts.farm + counts.kept;
        counts
    }

    /// The pairs of mirrors, and what is known of them.
    pub(super) fn mirrors(&self) -> impl Iterator<Item = ((u32, u32), &FoundPair)> {
        self.table.pairs.iter().copied().zip(&self.found).filter(|(_, found)| found.is_mirror)
    }

    /// The name of a host of the table.
    pub(super) fn name(&self, host: u32) -> &str {
        &self.names[host as usize]
    }

    /// The hosts that are mirrors, each with its place in the order of hosts, by number.
    pub(super) fn places(&self, leads: &HostLeads) -> BTreeMap<u32, u32> {
        let number = |name: &str| {
            let host = self.table.number(HostName::of(name))?;
            self.mirror_hosts.binary_search(&host).ok().map(|host| host as u32)
        };
        let redirected = self.redirected.iter().filter_map(|of| number(&of.target).zip(number(&of.host)));
        let places = self.of_hosts.places(leads, |_| 0, redirected);
        self.mirror_hosts.iter().copied().zip(places).collect()
    }
}

/// Whether two names differ only in a leading `www.`.
pub(super) fn differ_in_www(a: &str, b: &str) -> bool {
    a.strip_prefix("www.") == Some(b) || b.strip_prefix("www.") == Some(a)
}

/// The URLs of one of two hosts that redirect to the other, if they are most of its URLs.
pub(super) fn redirects(redirected: &[RedirectedHost], a: &str, b: &str) -> u64 {
    let of = |host: &str, target: &str| {
        let place = redirected.binary_search_by(|other| (&*other.host, &*other.target).cmp(&(host, target)));
        place.map_or(0, |place| redirected[place].urls)
    };
    of(a, b) + of(b, a)
}

/// The paths of all hosts that are mirrors in some week.
pub(super) struct MirrorPaths {
    /// All pairs of mirrors, by their names' order.
    pub(super) table: Rc<PairTable>,
    pub(super) names: BTreeMap<HostName, String>,
    pub(super) counts: PathCounts,
}

impl MirrorPaths {
    /// Compares the paths of all pairs of mirrors of these weeks.
    pub(super) fn find(
        cx: &mut Context,
        history: &History,
        owned: &Ownership,
        weeks: &[WeekOfPairs],
    ) -> Result<MirrorPaths> {
        let (mut names, mut pairs) = (BTreeMap::new(), BTreeSet::new());
        for week in weeks {
            for ((a, b), _) in week.mirrors() {
                let [a, b] = [a, b].map(|host| (week.table.hosts[host as usize].name, week.name(host)));
                names.extend([a, b].map(|(name, text)| (name, text.to_owned())));
                pairs.insert((a.0.min(b.0), a.0.max(b.0)));
            }
        }
        let host = |name: &HostName| ListedHost { clustered: Reverse(0), name: *name, pages: 0, addresses: 0 };
        let pairs: Vec<(HostName, HostName)> = pairs.into_iter().collect();
        let table = Rc::new(PairTable::of(names.keys().map(host).collect(), &pairs));
        let counts = paths(cx, history, owned, &table)?;
        Ok(MirrorPaths { table, names, counts })
    }

    /// The name of a host of the table.
    pub(super) fn name(&self, host: u32) -> &str {
        self.names.get(&self.table.hosts[host as usize].name).map_or("", |name| name)
    }

    /// Which hosts change first.
    pub(super) fn leads(&self) -> HostLeads {
        let mut leads = HostLeads::default();
        for (lag, changes) in &self.counts.lags {
            let (a, b) = self.table.pairs[lag.pair as usize];
            let (host, copy) = if lag.from_second { (b, a) } else { (a, b) };
            leads.add(self.name(host), self.name(copy), lag.weeks, *changes);
        }
        leads
    }

    /// The share of the paths of each host that the other one has, in a week.
    pub(super) fn coverage(&self, a: HostName, b: HostName, week: u64) -> [Option<f64>; 2] {
        let (Some(a), Some(b)) = (self.table.number(a), self.table.number(b)) else { return [None, None] };
        let Some(pair) = self.table.pair(a.min(b), a.max(b)) else { return [None, None] };
        let common = self.counts.common.get(&(pair as u64, week)).copied().unwrap_or_default();
        [a, b].map(|host| ratio(common, self.counts.of_host.get(&(host.into(), week)).copied().unwrap_or_default()))
    }
}
