//! The mirrors job: hosts that mirror each other, by the content of their pages (Fetterly 2004,
//! sections 2 and 4).
//!
//! ```text
//! for each week
//!     hosts, raw pairs          hosts that share enough pages
//!     counts, confirm           the class of each pair, and which are mirrors
//!     mirrored                  the pages that mirrors have in common       4.9% in the study
//!     the order of hosts        which mirror of a group stays               beyond the study
//!     the same once more        as the study counts pairs, for the numbers beside its own
//! changes of mirrored pages     by size of the mirror                      Fig. 11
//! paths of mirrors              coverage and lag                           beyond the study
//! ```
//!
//! Counts are whole numbers, and pairs have an order that depends on pages and names alone, so no
//! table depends on the number of workers or processes. Worker 0 writes the tables. Every worker
//! has all pairs of a week in memory, and the mirrors of all weeks.

use std::collections::BTreeSet;
use std::rc::Rc;

use anyhow::{Context as _, Result, bail};
use nigh_exchange::Context;

use super::known_pairs::{FoundPair, MirrorPaths, PairClass, StudyCounts, WeekOfPairs, redirects};
use super::steps::{
    AddressList, ClusterRoot, Counting, Hosts, MirrorStage, MirroredPage, PairTable, RedirectedHost, cluster_roots,
    confirm, count, mirrored, own_hosts, raw_pairs, redirected_hosts,
};
use super::write::MirrorWriter;
use super::{HostPairs, MirrorSize, Mirrors, MirrorsSummary, Unresolved};
use crate::host_order::HostsOfWeek;
use crate::operators::set_join::TooManyPairs;
use crate::state::Downloads;
use crate::stats::{ChangeAmounts, SizeClass, change_amount};
use crate::structures::Ownership;
use crate::studies::StudyPlan;
use crate::watch::Stage;

/// Finds mirrors on one worker, as [`run`](crate::studies::run) calls it. Worker 0 writes the
/// tables and returns the summary.
///
/// # Errors
/// If there are too many pairs to look at, a file cannot be read or written, or a worker failed.
pub fn mirrors(cx: &mut Context, plan: &StudyPlan, job: &Mirrors) -> Result<Option<MirrorsSummary>> {
    let cx = &mut cx.with(plan.worker_memory / 2, &plan.results().scratch());
    let stage = MirrorStage { least: job.least_pages.get(), farm: u64::from(job.farm.get()), max_pairs: job.max_pairs };
    let list = job.addresses.as_ref().map(|path| AddressList::read(path, cx.index(), cx.peers()));
    let finder = Finder { plan, job, stage: &stage, list: list.transpose()?, owned: plan.owned(cx) };
    let (mut weeks, mut first_pages) = (Vec::new(), Vec::new());
    for number in 0..plan.history.weeks.len() {
        let week = plan.history.weeks[number].week;
        let (pairs, pages) = finder.week(cx, number).with_context(|| format!("finding mirrors of week {week}"))?;
        if number == 0 {
            first_pages = pages;
        }
        weeks.push(pairs);
    }
    let changes = finder.changes(cx, &first_pages)?;
    let of_paths = MirrorPaths::find(cx, &plan.history, &finder.owned, &weeks)?;
    cx.enter(Stage::Tables);
    if cx.index() > 0 {
        return Ok(None);
    }
    let writer = MirrorWriter { plan, stage: &stage, weeks: &weeks, of_paths: &of_paths };
    writer.write(&changes).map(Some)
}

/// What all steps of a worker need.
struct Finder<'a> {
    plan: &'a StudyPlan,
    job: &'a Mirrors,
    stage: &'a MirrorStage,
    list: Option<AddressList>,
    owned: Ownership,
}

/// The hosts of a week, however its pairs are counted.
struct WeekOfHosts {
    number: usize,
    hosts: Hosts,
    /// Of clusters with their roots in own shards.
    roots: Vec<ClusterRoot>,
    has_addresses: bool,
    redirected: Vec<RedirectedHost>,
}

impl Finder<'_> {
    /// Finds the pairs of a week, and the own pages that mirrors have in common.
    fn week(&self, cx: &mut Context, number: usize) -> Result<(WeekOfPairs, Vec<MirroredPage>)> {
        let history = &self.plan.history;
        let hosts = own_hosts(cx, history, number, &self.owned, self.list.as_ref())?;
        let of_week = WeekOfHosts {
            number,
            roots: cluster_roots(history, number, &self.owned)?,
            has_addresses: cx.sorted(vec![hosts.have_addresses()])?.contains(&true),
            redirected: redirected_hosts(cx, self.stage, history, number, &hosts)?,
            hosts,
        };
        let (mut week, pages) = self.pairs(cx, &of_week, self.job.pairs, self.job.unresolved)?;
        let is_of_study = (self.job.pairs, self.job.unresolved) == (HostPairs::Study, Unresolved::Drop);
        let study =
            if is_of_study { None } else { Some(self.pairs(cx, &of_week, HostPairs::Study, Unresolved::Drop)?.0) };
        let study = study.as_ref().unwrap_or(&week);
        week.study = StudyCounts { counts: study.counts(self.stage.least), mirrored: study.mirrored };
        self.read_mirror_hosts(cx, number, &mut week)?;
        Ok((week, pages))
    }

    /// Reads what the order of hosts needs to know of mirrors.
    fn read_mirror_hosts(&self, cx: &mut Context, number: usize, week: &mut WeekOfPairs) -> Result<()> {
        let pairs: Vec<(u32, u32)> = week.mirrors().map(|(pair, _)| pair).collect();
        let hosts: BTreeSet<u32> = pairs.iter().flat_map(|(a, b)| [*a, *b]).collect();
        let hosts: Vec<u32> = hosts.into_iter().collect();
        let names: Vec<&str> = hosts.iter().map(|host| week.name(*host)).collect();
        let place = |host: u32| hosts.partition_point(|other| *other < host) as u32;
        let pairs: Vec<(u32, u32)> = pairs.into_iter().map(|(a, b)| (place(a), place(b))).collect();
        week.of_hosts = HostsOfWeek::read(cx, &self.plan.history, number, &self.owned, &names, &pairs)?;
        week.mirror_hosts = hosts;
        Ok(())
    }

    /// Finds the pairs of a week that are counted in one way, and the own pages that mirrors of
    /// them have in common.
    fn pairs(
        &self,
        cx: &mut Context,
        of_week: &WeekOfHosts,
        pairs: HostPairs,
        unresolved: Unresolved,
    ) -> Result<(WeekOfPairs, Vec<MirroredPage>)> {
        let (stage, history) = (self.stage, &self.plan.history);
        let WeekOfHosts { number, hosts, roots, has_addresses, redirected } = of_week;
        let (counting, roots) = match pairs {
            HostPairs::All => (Counting::All, &[][..]),
            HostPairs::Root => (Counting::First, &[][..]),
            HostPairs::Study => (Counting::Root, &roots[..]),
        };
        let raw = match raw_pairs(cx, stage, hosts, roots, counting) {
            Ok(raw) => raw,
            Err(error) => match error.downcast_ref::<TooManyPairs>() {
                Some(TooManyPairs { pairs, most, .. }) if counting == Counting::Root => bail!(
                    "up to {pairs} pairs of hosts would be looked at to count as the study does, for `classes.study`, and max-pairs = {most}: \
                     raise it, or least-pages"
                ),
                Some(TooManyPairs { pairs, most, .. }) => bail!(
                    "up to {pairs} pairs of hosts would be looked at, and max-pairs = {most}: raise it, or least-pages, or lower `farm`"
                ),
                None => return Err(error),
            },
        };
        let autos = raw.auto.iter().map(|(name, _)| *name);
        let table = Rc::new(PairTable::new(cx, hosts, raw.pairs.iter().copied(), autos)?);
        let counted = count(cx, stage, hosts, roots, counting, &table)?;
        let (matches, names) = confirm(cx, history, *number, &self.owned, &table, &counted.rooted_at_second)?;
        let mut found = Vec::new();
        for (place, (counts, matches)) in counted.counts.into_iter().zip(matches).enumerate() {
            let (a, b) = table.pairs[place];
            let hosts = [a, b].map(|host| &table.hosts[host as usize]);
            let [name, other] = hosts.map(|host| host.name);
            let is_unresolved =
                *has_addresses && unresolved == Unresolved::Drop && hosts.iter().any(|host| host.addresses == 0);
            let enough = |pages: [u64; 2]| match pairs {
                HostPairs::All => pages[0].min(pages[1]),
                HostPairs::Root => pages[1],
                HostPairs::Study => pages[usize::from(!counted.rooted_at_second[place])],
            };
            let size = match (pairs, self.job.size) {
                (HostPairs::All, MirrorSize::Larger) => counts.pages[0].max(counts.pages[1]),
                _ => enough(counts.pages),
            };
            // The study knows nothing of redirects.
            let are_redirected =
                pairs != HostPairs::Study && redirects(redirected, &names[a as usize], &names[b as usize]) > 0;
            let class = if is_unresolved {
                PairClass::Unresolved
            } else if raw.farm.binary_search(&(name.min(other), name.max(other))).is_ok() {
                PairClass::Farm
            } else if enough(counts.kept) >= stage.least.into() && !are_redirected {
                PairClass::Kept
            } else {
                PairClass::Alias
            };
            let is_mirror = class == PairClass::Kept && matches[3] >= stage.least.into();
            found.push(FoundPair { class, counts, size, matches, is_mirror });
        }
        let mut week = WeekOfPairs {
            table,
            raw,
            found,
            names,
            mirror_hosts: Vec::new(),
            of_hosts: HostsOfWeek::default(),
            redirected: redirected.clone(),
            has_addresses: *has_addresses,
            mirrored: 0,
            study: StudyCounts::default(),
        };
        let (mirror_pairs, sizes): (Vec<_>, Vec<u64>) = week
            .mirrors()
            .map(|((a, b), found)| {
                let name = |host: u32| week.table.hosts[host as usize].name;
                ((name(a), name(b)), found.size)
            })
            .unzip();
        let table = Rc::new(PairTable::new(cx, hosts, mirror_pairs, [])?);
        let pages = mirrored(cx, history, *number, &self.owned, &table, sizes)?;
        week.mirrored = cx.sum(pages.len() as u64)?;
        Ok((week, pages))
    }

    /// How much the pages change that mirrors of the first week have in common, by the size of the
    /// mirror.
    fn changes(&self, cx: &mut Context, pages: &[MirroredPage]) -> Result<ChangeAmounts> {
        let history = &self.plan.history;
        let features = history.features;
        let mut own = ChangeAmounts::new(features);
        for of_shard in pages.chunk_by(|a, b| a.doc.shard() == b.doc.shard()) {
            let mut downloads = Downloads::open(history, of_shard[0].doc.shard(), cx.memory())?;
            while let Some((doc, of_url)) = downloads.document()? {
                let Ok(place) = of_shard.binary_search_by_key(&doc, |page| page.doc) else { continue };
                let class = SizeClass::of(of_shard[place].size);
                for pair in of_url.windows(2) {
                    let (earlier, later) = (&pair[0], &pair[1]);
                    let is_same = earlier.checksum == later.checksum;
                    own.add(change_amount(is_same, &earlier.features, &later.features, features), class);
                }
            }
        }
        let mut all = ChangeAmounts::new(features);
        cx.sorted(vec![own])?.iter().for_each(|amounts| all.merge(amounts));
        Ok(all)
    }
}
