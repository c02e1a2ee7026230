//! The tables and the summary of the mirrors job.

use std::collections::BTreeMap;

use anyhow::Result;

use super::known_pairs::{MirrorPaths, WeekOfPairs, differ_in_www, redirects};
use super::steps::{HostName, MirrorStage, RedirectedHost};
use super::{MirrorCounts, MirrorsSummary, PUBLISHED_MIRRORED, PUBLISHED_MIRRORS, WeekOfMirrors};
use crate::host_order::HostLeads;
use crate::records::Week;
use crate::stats::{ChangeAmounts, ratio};
use crate::structures::CompactSort;
use crate::studies::StudyPlan;
use crate::tables::studies::mirrors::{
    MirrorChangeRow, MirrorClassRow, MirrorGroupRow, MirrorLagRow, MirrorPairRow, MirrorSizeRow, MirrorSpanRow,
    MirroredRow,
};

/// Writes the tables, and makes the summary.
pub(super) struct MirrorWriter<'a> {
    pub(super) plan: &'a StudyPlan,
    pub(super) stage: &'a MirrorStage,
    pub(super) weeks: &'a [WeekOfPairs],
    pub(super) of_paths: &'a MirrorPaths,
}

impl MirrorWriter<'_> {
    fn dated(&self) -> impl Iterator<Item = (Week, &WeekOfPairs)> {
        self.plan.history.weeks.iter().map(|week| week.week).zip(self.weeks)
    }

    /// Writes all tables. Worker 0 calls it.
    pub(super) fn write(&self, changes: &ChangeAmounts) -> Result<MirrorsSummary> {
        let (mut pair_rows, mut groups, leads) = (Vec::new(), Vec::new(), self.of_paths.leads());
        for (number, (week, pairs)) in self.dated().enumerate() {
            let mut rows = self.pair_rows(week, number as u64, pairs);
            rows.sort_items_by(|a, b| (&a.host_a, &a.host_b).cmp(&(&b.host_a, &b.host_b)));
            pair_rows.push(rows);
            groups.push(group_rows(week, pairs, &leads));
        }
        let spans = self.spans();
        let summary = self.summary(&pair_rows, &groups, &spans);
        self.write_classes(&summary)?;
        let mut sizes: BTreeMap<(Week, u64), i64> = BTreeMap::new();
        for (week, pairs) in self.dated() {
            pairs.mirrors().for_each(|(_, found)| *sizes.entry((week, found.size)).or_default() += 1);
        }
        let size = |((week, size), pairs)| MirrorSizeRow { week, size: size as i64, pairs };
        self.plan.write(sizes.into_iter().map(size))?;
        let changes = changes.changes();
        self.plan.write(changes.iter().map(|row| MirrorChangeRow {
            class: row.class.name(),
            change: row.change.name(),
            pairs: row.pairs as i64,
            share: row.share,
        }))?;
        self.plan.write(groups.into_iter().flatten())?;
        self.plan.write(pair_rows.into_iter().flatten())?;
        let of_week = |week: &WeekOfMirrors| MirroredRow {
            week: week.week,
            pages: week.mirrored as i64,
            documents: week.documents as i64,
            share: week.share,
            study_share: week.study_share,
        };
        self.plan.write(summary.mirrors.iter().map(of_week))?;
        self.plan.write(spans)?;
        self.plan.write(self.lag_rows())?;
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
        rows.sort_items_by(|a, b| {
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
            let study = week.study.as_ref().map(class_counts);
            for (place, (class, pairs)) in class_counts(&week.counts).into_iter().enumerate() {
                // The study has no farms.
                let published = (number == 0 && class != "farm").then_some(published[place].1 as i64);
                let study = study.map(|of| of[place].1 as i64).filter(|_| class != "farm");
                rows.push(MirrorClassRow { week: week.week, class, pairs: pairs as i64, study, published });
            }
            let (class, pairs) = ("redirect", week.redirect as i64);
            rows.push(MirrorClassRow { week: week.week, class, pairs, study: None, published: None });
        }
        self.plan.write(rows)
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
            let documents = history.weeks[number].documents();
            let (rows, of_groups) = (&pair_rows[number], &groups[number]);
            let coverages: Vec<f64> =
                rows.iter().filter_map(|row| row.coverage[0].zip(row.coverage[1])).map(|(a, b)| a.max(b)).collect();
            mirrors.push(WeekOfMirrors {
                week,
                week_commit: history.weeks[number].made,
                counts: pairs.counts(self.stage.least),
                study: Some(pairs.study.counts),
                study_share: ratio(pairs.study.mirrored, documents),
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
}

/// The classes of the table `classes`, with their numbers.
pub(super) fn class_counts(counts: &MirrorCounts) -> [(&'static str, u64); 9] {
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

/// The groups of a week: the components of its mirrors.
fn group_rows(week: Week, pairs: &WeekOfPairs, leads: &HostLeads) -> Vec<MirrorGroupRow> {
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
    let places = pairs.places(leads);
    let mut groups: Vec<(&str, Vec<u32>)> = groups
        .into_values()
        .filter_map(|hosts| {
            let preferred = hosts.iter().min_by_key(|host| places[*host])?;
            Some((pairs.name(*preferred), hosts))
        })
        .collect();
    groups.sort_items();
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
        rows[from..].sort_items_by(|a, b| a.host.cmp(&b.host));
    }
    rows
}
