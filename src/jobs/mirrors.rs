//! The mirrors job: hosts that mirror each other, by the content of their pages (Fetterly 2004, sections 2 and 4).
//!
//! ```text
//! for each week
//!     hosts, raw pairs          hosts that share enough pages
//!     counts, confirm           the class of each pair, and which are mirrors
//!     mirrored                  the pages that mirrors have in common       4.9% in the study
//! changes of mirrored pages     by size of the mirror                      Fig. 11
//! paths of mirrors              coverage and lag                           beyond the study
//! ```
//!
//! Counts are whole numbers, and pairs have an order that depends on pages and names alone, so no table depends on the number of workers or
//! processes. Worker 0 writes the tables. Every worker has all pairs of a week in memory, and the mirrors of all weeks.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;
use std::sync::Arc;

use anyhow::{Context, Result, bail};
use timely::worker::Worker;

use super::study_plan::StudyPlan;
use crate::config::{HostPairs, Mirrors, Unresolved};
use crate::operators::InProcess;
use crate::operators::exchange::all_gather;
use crate::operators::mirrors::{
    AddressList, Counting, HostName, ListedHost, MATCHES, MirrorStage, MirroredPage, PairCounts, PairTable, PathCounts,
    RawPairs, RedirectedHost, confirm, count, mirrored, own_hosts, paths, raw_pairs, redirected_hosts,
};
use crate::operators::set_join::TooManyPairs;
use crate::records::Week;
use crate::state::{Downloads, History};
use crate::stats::{ChangeAmounts, SizeClass, change_amount, ratio};
use crate::structures::Ownership;
use crate::summary::{MirrorCounts, MirrorsSummary, PUBLISHED_MIRRORED, PUBLISHED_MIRRORS, WeekOfMirrors};
use crate::tables::{
    MirrorChangeRow, MirrorClassRow, MirrorGroupRow, MirrorLagRow, MirrorPairRow, MirrorSizeRow, MirrorSpanRow,
    MirroredRow,
};
use crate::watch::{Stage, Watch};

/// The class of a pair of different hosts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Class {
    Unresolved,
    Farm,
    Kept,
    Alias,
}

impl Class {
    fn name(self) -> &'static str {
        match self {
            Class::Unresolved => "unresolved",
            Class::Farm => "farm",
            Class::Kept => "kept",
            Class::Alias => "alias",
        }
    }
}

/// What is known of a pair of different hosts.
#[derive(Clone, Debug)]
struct FoundPair {
    class: Class,
    counts: PairCounts,
    size: u64,
    matches: [u64; MATCHES],
    is_mirror: bool,
}

/// What is known of the pairs of a week; the same at every worker.
struct WeekOfPairs {
    table: Rc<PairTable>,
    raw: RawPairs,
    /// By number of the pair.
    found: Vec<FoundPair>,
    /// The names of hosts by number.
    names: Vec<String>,
    redirected: Vec<RedirectedHost>,
    has_addresses: bool,
    /// The number of mirrored pages, of all workers.
    mirrored: u64,
}

impl WeekOfPairs {
    /// The pairs of mirrors, and what is known of them.
    fn mirrors(&self) -> impl Iterator<Item = ((u32, u32), &FoundPair)> {
        self.table.pairs.iter().copied().zip(&self.found).filter(|(_, found)| found.is_mirror)
    }

    fn name(&self, host: u32) -> &str {
        &self.names[host as usize]
    }
}

/// Finds mirrors on one worker, as [`study`](super::study::study) calls it. Worker 0 writes the tables and returns the summary.
///
/// # Errors
/// If there are too many pairs to look at, a file cannot be read or written, or a worker failed.
pub fn mirrors(
    worker: &mut Worker,
    plan: &StudyPlan,
    job: &Mirrors,
    in_process: &Arc<InProcess>,
    watch: &Arc<Watch>,
) -> Result<Option<MirrorsSummary>> {
    let stage = MirrorStage {
        least: job.least_pages.get(),
        farm: u64::from(job.farm.get()),
        max_pairs: job.max_pairs,
        memory: plan.worker_memory / 2,
        scratch: plan.results().scratch(),
        shared: in_process.clone(),
        watch: watch.clone(),
    };
    let list = job.addresses.as_ref().map(|path| AddressList::read(path, worker.index(), worker.peers()));
    let finder = Finder { plan, job, stage: &stage, list: list.transpose()?, owned: plan.owned(worker) };
    let (mut weeks, mut first_pages) = (Vec::new(), Vec::new());
    for number in 0..plan.history.weeks.len() {
        let week = plan.history.weeks[number].week;
        let (pairs, pages) = finder.week(worker, number).with_context(|| format!("finding mirrors of week {week}"))?;
        if number == 0 {
            first_pages = pages;
        }
        weeks.push(pairs);
    }
    let changes = finder.changes(worker, &first_pages)?;
    let of_paths = MirrorPaths::find(worker, &finder, &weeks)?;
    watch.enter(Stage::Tables);
    if worker.index() > 0 {
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

impl Finder<'_> {
    /// Finds the pairs of a week, and the own pages that mirrors have in common.
    fn week(&self, worker: &mut Worker, number: usize) -> Result<(WeekOfPairs, Vec<MirroredPage>)> {
        let (stage, history) = (self.stage, &self.plan.history);
        let hosts = own_hosts(worker, history, number, &self.owned, self.list.as_ref(), &stage.watch)?;
        let has_addresses = all_gather(worker, vec![hosts.have_addresses()], &stage.watch)?.contains(&true);
        let counting = match self.job.pairs {
            HostPairs::All => Counting::All,
            HostPairs::Root => Counting::First,
        };
        let raw = match raw_pairs(worker, stage, &hosts, counting) {
            Ok(raw) => raw,
            Err(error) => match error.downcast_ref::<TooManyPairs>() {
                Some(TooManyPairs { pairs, most, .. }) => bail!(
                    "up to {pairs} pairs of hosts would be looked at, and max-pairs = {most}: raise it, or least-pages, or lower `farm`"
                ),
                None => return Err(error),
            },
        };
        let redirected = redirected_hosts(worker, stage, history, number, &hosts)?;
        let autos = raw.auto.iter().map(|(name, _)| *name);
        let table = PairTable::new(worker, &hosts, raw.pairs.iter().copied(), autos, &stage.watch)?;
        let table = Rc::new(table);
        let counts = count(worker, stage, &hosts, counting, &table)?;
        let (matches, names) = confirm(worker, stage, history, number, &self.owned, &table)?;
        let mut found = Vec::new();
        for ((pair, counts), matches) in table.pairs.iter().zip(counts).zip(matches) {
            found.push(self.pair(&table, *pair, counts, matches, &raw, &names, &redirected, has_addresses));
        }
        let mut week = WeekOfPairs { table, raw, found, names, redirected, has_addresses, mirrored: 0 };
        let (mirror_pairs, sizes): (Vec<_>, Vec<u64>) = week
            .mirrors()
            .map(|((a, b), found)| {
                let name = |host: u32| week.table.hosts[host as usize].name;
                ((name(a), name(b)), found.size)
            })
            .unzip();
        let table = Rc::new(PairTable::new(worker, &hosts, mirror_pairs, [], &stage.watch)?);
        let pages = mirrored(worker, stage, history, number, &self.owned, &table, sizes)?;
        week.mirrored = all_gather(worker, vec![(worker.index(), pages.len() as u64)], &stage.watch)?
            .iter()
            .map(|(_, pages)| pages)
            .sum();
        Ok((week, pages))
    }

    /// The class of a pair, and whether it is a pair of mirrors.
    #[allow(clippy::too_many_arguments, reason = "each is a finding of one step")]
    fn pair(
        &self,
        table: &PairTable,
        (a, b): (u32, u32),
        counts: PairCounts,
        matches: [u64; MATCHES],
        raw: &RawPairs,
        names: &[String],
        redirected: &[RedirectedHost],
        has_addresses: bool,
    ) -> FoundPair {
        let least = u64::from(self.stage.least);
        let hosts = [a, b].map(|host| &table.hosts[host as usize]);
        let [name, other] = hosts.map(|host| host.name);
        let is_unresolved =
            has_addresses && self.job.unresolved == Unresolved::Drop && hosts.iter().any(|host| host.addresses == 0);
        let (size, kept) = match self.job.pairs {
            HostPairs::All => (counts.pages[0].min(counts.pages[1]), counts.kept[0].min(counts.kept[1])),
            HostPairs::Root => (counts.pages[1], counts.kept[1]),
        };
        let class = if is_unresolved {
            Class::Unresolved
        } else if raw.farm.binary_search(&(name.min(other), name.max(other))).is_ok() {
            Class::Farm
        } else if kept >= least && redirects(redirected, &names[a as usize], &names[b as usize]) == 0 {
            Class::Kept
        } else {
            Class::Alias
        };
        let is_mirror = class == Class::Kept && matches[3] >= least;
        FoundPair { class, counts, size, matches, is_mirror }
    }

    /// How much the pages change that mirrors of the first week have in common, by the size of the mirror.
    fn changes(&self, worker: &mut Worker, pages: &[MirroredPage]) -> Result<ChangeAmounts> {
        let history = &self.plan.history;
        let features = history.features;
        let mut own = ChangeAmounts::new(features);
        for of_shard in pages.chunk_by(|a, b| a.doc.shard() == b.doc.shard()) {
            let mut downloads = Downloads::open(history, of_shard[0].doc.shard(), self.stage.memory)?;
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
        all_gather(worker, vec![own], &self.stage.watch)?.iter().for_each(|amounts| all.merge(amounts));
        Ok(all)
    }
}

/// The URLs of one of two hosts that redirect to the other, if they are most of its URLs.
fn redirects(redirected: &[RedirectedHost], a: &str, b: &str) -> u64 {
    let of = |host: &str, target: &str| {
        let place = redirected.binary_search_by(|other| (&*other.host, &*other.target).cmp(&(host, target)));
        place.map_or(0, |place| redirected[place].urls)
    };
    of(a, b) + of(b, a)
}

/// The paths of all hosts that are mirrors in some week.
struct MirrorPaths {
    /// All pairs of mirrors, by their names' order.
    table: Rc<PairTable>,
    names: BTreeMap<HostName, String>,
    counts: PathCounts,
}

impl MirrorPaths {
    fn find(worker: &mut Worker, finder: &Finder<'_>, weeks: &[WeekOfPairs]) -> Result<MirrorPaths> {
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
        let counts = paths(worker, finder.stage, &finder.plan.history, &finder.owned, &table)?;
        Ok(MirrorPaths { table, names, counts })
    }

    fn name(&self, host: u32) -> &str {
        self.names.get(&self.table.hosts[host as usize].name).map_or("", |name| name)
    }

    /// The share of the paths of each host that the other one has, in a week.
    fn coverage(&self, a: HostName, b: HostName, week: u64) -> [Option<f64>; 2] {
        let (Some(a), Some(b)) = (self.table.number(a), self.table.number(b)) else { return [None, None] };
        let Some(pair) = self.table.pair(a.min(b), a.max(b)) else { return [None, None] };
        let common = self.counts.common.get(&(pair as u64, week)).copied().unwrap_or_default();
        [a, b].map(|host| ratio(common, self.counts.of_host.get(&(host.into(), week)).copied().unwrap_or_default()))
    }
}

/// Writes the tables, and makes the summary.
struct MirrorWriter<'a> {
    plan: &'a StudyPlan,
    stage: &'a MirrorStage,
    weeks: &'a [WeekOfPairs],
    of_paths: &'a MirrorPaths,
}

impl MirrorWriter<'_> {
    fn dated(&self) -> impl Iterator<Item = (Week, &WeekOfPairs)> {
        self.plan.history.weeks.iter().map(|week| week.week).zip(self.weeks)
    }

    fn write(&self, changes: &ChangeAmounts) -> Result<MirrorsSummary> {
        let (mut pair_rows, mut groups) = (Vec::new(), Vec::new());
        for (number, (week, pairs)) in self.dated().enumerate() {
            let mut rows = self.pair_rows(week, number as u64, pairs);
            rows.sort_by(|a, b| (&a.host_a, &a.host_b).cmp(&(&b.host_a, &b.host_b)));
            pair_rows.push(rows);
            groups.push(group_rows(week, pairs));
        }
        let spans = self.spans();
        let summary = self.summary(&pair_rows, &groups, &spans);
        self.write_classes(&summary)?;
        let mut sizes: BTreeMap<(Week, u64), i64> = BTreeMap::new();
        for (week, pairs) in self.dated() {
            pairs.mirrors().for_each(|(_, found)| *sizes.entry((week, found.size)).or_default() += 1);
        }
        let size = |((week, size), pairs)| MirrorSizeRow { week, size: size as i64, pairs };
        self.plan.write(0, sizes.into_iter().map(size))?;
        let changes = changes.changes();
        self.plan.write(
            0,
            changes.iter().map(|row| MirrorChangeRow {
                class: row.class.name(),
                change: row.change.name(),
                pairs: row.pairs as i64,
                share: row.share,
            }),
        )?;
        self.plan.write(0, groups.into_iter().flatten())?;
        self.plan.write(0, pair_rows.into_iter().flatten())?;
        let of_week = |week: &WeekOfMirrors| MirroredRow {
            week: week.week,
            pages: week.mirrored as i64,
            documents: week.documents as i64,
            share: week.share,
        };
        self.plan.write(0, summary.mirrors.iter().map(of_week))?;
        self.plan.write(0, spans)?;
        self.plan.write(0, self.lag_rows())?;
        Ok(summary)
    }

    fn pair_rows(&self, week: Week, number: u64, pairs: &WeekOfPairs) -> Vec<MirrorPairRow> {
        let mut rows = Vec::new();
        for ((a, b), found) in pairs.table.pairs.iter().zip(&pairs.found) {
            let [host_a, host_b] = [*a, *b].map(|host| pairs.name(host).to_owned());
            let [name_a, name_b] = [*a, *b].map(|host| pairs.table.hosts[host as usize].name);
            let coverage = if found.is_mirror { self.of_paths.coverage(name_a, name_b, number) } else { [None, None] };
            rows.push(MirrorPairRow {
                week,
                class: found.class.name(),
                www: differ_in_www(&host_a, &host_b),
                pages_a: found.counts.pages[0] as i64,
                pages_b: found.counts.pages[1] as i64,
                clusters: found.counts.clusters as i64,
                size: found.size as i64,
                matched: found.matches.map(|matched| matched as i64),
                mirror: found.is_mirror,
                redirects: redirects(&pairs.redirected, &host_a, &host_b) as i64,
                coverage,
                host_a,
                host_b,
            });
        }
        for (name, pages) in &pairs.raw.auto {
            let Some(host) = pairs.table.number(*name) else { continue };
            let (name, pages) = (pairs.name(host).to_owned(), *pages as i64);
            let row = MirrorPairRow::new(week, name.clone(), name, "auto");
            rows.push(MirrorPairRow { pages_a: pages, pages_b: pages, size: pages, ..row });
        }
        for redirected in only_redirected(pairs) {
            let RedirectedHost { host, target, urls, .. } = redirected.clone();
            let www = differ_in_www(&host, &target);
            rows.push(MirrorPairRow {
                www,
                redirects: urls as i64,
                ..MirrorPairRow::new(week, host, target, "redirect")
            });
        }
        rows
    }

    fn lag_rows(&self) -> Vec<MirrorLagRow> {
        let mut rows = Vec::new();
        for (lag, changes) in &self.of_paths.counts.lags {
            let (a, b) = self.of_paths.table.pairs[lag.pair as usize];
            let (host, copy) = if lag.from_second { (b, a) } else { (a, b) };
            rows.push(MirrorLagRow {
                host: self.of_paths.name(host).to_owned(),
                copy: self.of_paths.name(copy).to_owned(),
                weeks: lag.weeks.map(|weeks| weeks as i64),
                changes: *changes as i64,
            });
        }
        rows.sort_by(|a, b| {
            (&a.host, &a.copy, a.weeks.is_none(), a.weeks).cmp(&(&b.host, &b.copy, b.weeks.is_none(), b.weeks))
        });
        rows
    }

    /// The weeks in which two hosts are mirrors, in the order of their names.
    fn spans(&self) -> Vec<MirrorSpanRow> {
        let mut weeks_of: BTreeMap<(&str, &str), Vec<usize>> = BTreeMap::new();
        for (number, week) in self.weeks.iter().enumerate() {
            for ((a, b), _) in week.mirrors() {
                let (a, b) = (week.name(a), week.name(b));
                weeks_of.entry((a.min(b), a.max(b))).or_default().push(number);
            }
        }
        let date = |number: usize| self.plan.history.weeks[number].week;
        let mut spans = Vec::new();
        for ((a, b), weeks) in weeks_of {
            for run in weeks.chunk_by(|earlier, later| earlier + 1 == *later) {
                let last = run[run.len() - 1];
                spans.push(MirrorSpanRow {
                    host_a: a.to_owned(),
                    host_b: b.to_owned(),
                    first: date(run[0]),
                    last: date(last),
                    weeks: run.len() as i64,
                    ended: last + 1 < self.weeks.len(),
                });
            }
        }
        spans
    }

    fn write_classes(&self, summary: &MirrorsSummary) -> Result<()> {
        let mut rows = Vec::new();
        let published = class_counts(&summary.published);
        for (number, week) in summary.mirrors.iter().enumerate() {
            for ((class, pairs), (_, published)) in class_counts(&week.counts).into_iter().zip(published) {
                // The study has no farms.
                let published = (number == 0 && class != "farm").then_some(published as i64);
                rows.push(MirrorClassRow { week: week.week, class, pairs: pairs as i64, published });
            }
            let redirect = week.redirect as i64;
            rows.push(MirrorClassRow { week: week.week, class: "redirect", pairs: redirect, published: None });
        }
        self.plan.write(0, rows)
    }

    fn summary(
        &self,
        pair_rows: &[Vec<MirrorPairRow>],
        groups: &[Vec<MirrorGroupRow>],
        spans: &[MirrorSpanRow],
    ) -> MirrorsSummary {
        let history = &self.plan.history;
        let mut mirrors = Vec::new();
        for (number, (week, pairs)) in self.dated().enumerate() {
            let documents = documents_of(history, number);
            let (rows, of_groups) = (&pair_rows[number], &groups[number]);
            let coverages: Vec<f64> =
                rows.iter().filter_map(|row| row.coverage[0].zip(row.coverage[1])).map(|(a, b)| a.max(b)).collect();
            mirrors.push(WeekOfMirrors {
                week,
                counts: self.counts(pairs, rows),
                redirect: only_redirected(pairs).count() as u64,
                groups: of_groups.last().map_or(0, |row| row.group as u64),
                hosts: of_groups.len() as u64,
                begun: spans.iter().filter(|span| span.first == week).count() as u64,
                ended: match number {
                    0 => 0,
                    _ => spans.iter().filter(|span| span.ended && span.last == history.weeks[number - 1].week).count()
                        as u64,
                },
                mirrored: pairs.mirrored,
                documents,
                share: ratio(pairs.mirrored, documents),
                coverage: (!coverages.is_empty()).then(|| coverages.iter().sum::<f64>() / coverages.len() as f64),
            });
        }
        let mut lags: BTreeMap<(bool, Option<u64>), u64> = BTreeMap::new();
        for (lag, changes) in &self.of_paths.counts.lags {
            *lags.entry((lag.weeks.is_none(), lag.weeks)).or_default() += changes;
        }
        MirrorsSummary {
            store: history.store.clone(),
            method: history.method.clone(),
            first: history.first().week,
            last: history.last().week,
            least_pages: self.stage.least,
            addresses: self.weeks.iter().any(|week| week.has_addresses),
            mirrors,
            published: PUBLISHED_MIRRORS,
            published_share: PUBLISHED_MIRRORED,
            lags: lags.into_iter().map(|((_, weeks), changes)| (weeks, changes)).collect(),
        }
    }

    fn counts(&self, pairs: &WeekOfPairs, rows: &[MirrorPairRow]) -> MirrorCounts {
        let of_class = |class: Class| pairs.found.iter().filter(|found| found.class == class).count() as u64;
        let kept = || rows.iter().filter(|row| row.class == Class::Kept.name());
        let matched =
            |place: usize| kept().filter(|row| row.matched[place] >= i64::from(self.stage.least)).count() as u64;
        // Farms that are unresolved are counted as such where they are listed.
        let listed_farms = pairs.raw.farm.len() as u64;
        let mut counts = MirrorCounts {
            raw: 0,
            auto: pairs.raw.auto.len() as u64,
            alias: of_class(Class::Alias),
            unresolved: of_class(Class::Unresolved),
            farm: pairs.raw.farm_pairs - listed_farms.min(pairs.raw.farm_pairs) + of_class(Class::Farm),
            kept: of_class(Class::Kept),
            www: kept().filter(|row| row.www).count() as u64,
            last_arc: matched(0),
            last_four_arcs: matched(3),
        };
        counts.raw = counts.auto + counts.alias + counts.unresolved + counts.farm + counts.kept;
        counts
    }
}

/// The classes of the table `classes`, with their numbers.
fn class_counts(counts: &MirrorCounts) -> [(&'static str, u64); 9] {
    let MirrorCounts { raw, auto, alias, unresolved, farm, kept, www, last_arc, last_four_arcs } = *counts;
    [
        ("raw", raw),
        ("auto", auto),
        ("alias", alias),
        ("unresolved", unresolved),
        ("farm", farm),
        ("kept", kept),
        ("kept-www", www),
        ("kept-last-arc", last_arc),
        ("kept-last-four-arcs", last_four_arcs),
    ]
}

/// Redirected hosts that are in no listed pair with their target.
fn only_redirected(pairs: &WeekOfPairs) -> impl Iterator<Item = &RedirectedHost> {
    pairs.redirected.iter().filter(|redirected| {
        let numbers = [&redirected.host, &redirected.target].map(|host| pairs.table.number(HostName::of(host)));
        let [Some(a), Some(b)] = numbers else { return true };
        pairs.table.pair(a.min(b), a.max(b)).is_none()
    })
}

/// Whether two names differ only in a leading `www.`.
fn differ_in_www(a: &str, b: &str) -> bool {
    a.strip_prefix("www.") == Some(b) || b.strip_prefix("www.") == Some(a)
}

/// The pages of a week.
fn documents_of(history: &History, number: usize) -> u64 {
    history.weeks[number].documents()
}

/// The groups of a week: the components of its mirrors.
fn group_rows(week: Week, pairs: &WeekOfPairs) -> Vec<MirrorGroupRow> {
    let mut root: BTreeMap<u32, u32> = BTreeMap::new();
    fn find(root: &mut BTreeMap<u32, u32>, host: u32) -> u32 {
        let mut at = host;
        while let Some(next) = root.get(&at).copied().filter(|next| *next != at) {
            at = next;
        }
        root.insert(host, at);
        at
    }
    for ((a, b), _) in pairs.mirrors() {
        let (a, b) = (find(&mut root, a), find(&mut root, b));
        root.insert(a.max(b), a.min(b));
    }
    let mut groups: BTreeMap<u32, Vec<u32>> = BTreeMap::new();
    for host in root.keys().copied().collect::<Vec<_>>() {
        groups.entry(find(&mut root, host)).or_default().push(host);
    }
    // The preferred host of each group, then its hosts.
    let listed = |host: u32| &pairs.table.hosts[host as usize];
    let mut groups: Vec<(&str, Vec<u32>)> = groups
        .into_values()
        .filter_map(|hosts| {
            let preferred = hosts.iter().min_by_key(|host| (Reverse(listed(**host).pages), pairs.name(**host)))?;
            Some((pairs.name(*preferred), hosts))
        })
        .collect();
    groups.sort();
    let mut rows = Vec::new();
    for (number, (preferred, hosts)) in groups.into_iter().enumerate() {
        let from = rows.len();
        rows.extend(hosts.iter().map(|host| MirrorGroupRow {
            week,
            group: number as i64 + 1,
            host: pairs.name(*host).to_owned(),
            pages: listed(*host).pages as i64,
            preferred: pairs.name(*host) == preferred,
            addresses: listed(*host).addresses.into(),
        }));
        rows[from..].sort_by(|a, b| a.host.cmp(&b.host));
    }
    rows
}
