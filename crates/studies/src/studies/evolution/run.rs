//! The evolution job: measures how clusters change over the weeks of a store (Fetterly 2004,
//! section 3).
//!
//! ```text
//! cluster maps of the first week and each week ─▶ overlaps ─▶ retention        Fig. 4, 5, 7
//! cluster maps of successive weeks             ─▶ births, deaths               beyond the study
//! clusters of hosts, first and last week       ─▶ host-changes                 Fig. 6
//! downloads of each URL, week after week       ─▶ amounts, change-classes      Fig. 8, 9, 10
//! ```
//!
//! Clusters are those of very similar documents. All counts are whole numbers, and all means are of
//! sums in fixed point, so no table depends on the number of workers or processes. Worker 0 writes
//! the tables; they are small, however large the store is.
//!
//! Memory: a worker has three cluster maps at a time (48 bytes for each URL of its shards), the
//! pairs of larger clusters of two weeks that it owns, and one batch of each file of one shard.

use std::collections::BTreeMap;
use std::rc::Rc;

use anyhow::{Context as _, Result};
use nigh_exchange::Context;
use serde::{Deserialize, Serialize};

use super::steps::{births, change_amounts, cluster_map, deaths, host_clusters, retention};
use super::{ChangeCount, ClassRetention, EvolutionSummary, HostChanges, PUBLISHED_UNCHANGED, Turnover};
use crate::records::Week;
use crate::state::History;
use crate::stats::{BySize, Change, ChangeAmounts, RetentionSums, SizeClass, add_by_size, cluster_changes, ratio};
use crate::structures::Ownership;
use crate::studies::StudyPlan;
use crate::tables::studies::evolution::{AmountRow, BirthRow, ChangeClassRow, DeathRow, HostChangeRow, RetentionRow};
use crate::watch::Stage;

/// The counts of one week.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
struct WeekCounts {
    retained: [RetentionSums; SizeClass::ALL.len()],
    births: BySize,
    deaths: BySize,
}

/// What the tables are written from.
struct EvolutionRows {
    weeks: Vec<WeekCounts>,
    /// The number of hosts by the change of their number of clusters.
    hosts: BTreeMap<i64, u64>,
    amounts: ChangeAmounts,
}

/// Measures on one worker, as [`run`](crate::studies::run) calls it. Worker 0 writes the tables and
/// returns the summary.
///
/// # Errors
/// If a file cannot be read or written, or a worker failed.
pub fn evolution(cx: &mut Context, plan: &StudyPlan) -> Result<Option<EvolutionSummary>> {
    let owned = plan.owned(cx);
    let weeks = weeks(cx, plan, &owned)?;
    let hosts = hosts(cx, plan, &owned)?;
    let amounts = change_amounts(cx, &plan.history, &owned, plan.worker_memory / 2)?;
    cx.enter(Stage::Tables);
    if cx.index() > 0 {
        return Ok(None);
    }
    let rows = EvolutionRows { weeks, hosts, amounts };
    write(&rows, plan)?;
    Ok(Some(summary(&rows, &plan.history)))
}

/// The counts of each week, of all workers: retention since the first week, births and deaths since
/// the week before.
fn weeks(cx: &mut Context, plan: &StudyPlan, owned: &Ownership) -> Result<Vec<WeekCounts>> {
    let history = &plan.history;
    let first = Rc::new(cluster_map(cx, history, 0, owned)?);
    let mut before = first.clone();
    let mut own_counts: Vec<(usize, WeekCounts)> = Vec::new();
    for index in 0..history.weeks.len() {
        let mut counts = WeekCounts::default();
        let map = if index == 0 { first.clone() } else { Rc::new(cluster_map(cx, history, index, owned)?) };
        let weeks = || format!("comparing week {} with {}", history.weeks[index].week, history.first().week);
        counts.retained = retention(cx, owned, &first, &map).with_context(weeks)?;
        if index > 0 {
            let week_before = &history.weeks[index - 1];
            counts.births = births(cx, owned, week_before, &map).with_context(weeks)?;
            counts.deaths = deaths(owned, &before, &map);
        }
        own_counts.push((index, counts));
        before = map;
    }
    let mut all = vec![WeekCounts::default(); history.weeks.len()];
    for (index, counts) in cx.sorted(own_counts)? {
        let sums = &mut all[index];
        sums.retained.iter_mut().zip(&counts.retained).for_each(|(sum, part)| sum.merge(part));
        add_by_size(&mut sums.births, &counts.births);
        add_by_size(&mut sums.deaths, &counts.deaths);
    }
    Ok(all)
}

/// The number of hosts of all workers, by the change of their number of clusters from the first to
/// the last week.
fn hosts(cx: &mut Context, plan: &StudyPlan, owned: &Ownership) -> Result<BTreeMap<i64, u64>> {
    let history = &plan.history;
    let first = host_clusters(cx, history, 0, owned)?;
    let last = host_clusters(cx, history, history.weeks.len() - 1, owned)?;
    let count = |counts: &mut BTreeMap<i64, u64>, (change, hosts)| *counts.entry(change).or_default() += hosts;
    let (mut own_counts, mut all) = (BTreeMap::new(), BTreeMap::new());
    cluster_changes(&first, &last).into_iter().for_each(|change| count(&mut own_counts, (change, 1)));
    let gathered = cx.sorted(own_counts.into_iter().collect())?;
    gathered.into_iter().for_each(|hosts| count(&mut all, hosts));
    Ok(all)
}

/// Writes all tables of the job.
fn write(rows: &EvolutionRows, plan: &StudyPlan) -> Result<()> {
    let weeks = || plan.history.weeks.iter().map(|week| week.week).zip(&rows.weeks);
    let retention = weeks().flat_map(|(week, counts)| SizeClass::study().map(move |class| (week, counts, class)));
    plan.write(retention.map(|(week, counts, class)| {
        let retained = &counts.retained[class as usize];
        RetentionRow {
            week,
            class: class.name(),
            documents: retained.documents as i64,
            retention: retained.retention(),
            similarity: retained.similarity(),
            reverse: retained.reverse(),
        }
    }))?;
    let hosts = rows.hosts.iter();
    plan.write(hosts.map(|(change, hosts)| HostChangeRow { change: *change, hosts: *hosts as i64 }))?;
    plan.write(rows.amounts.shares().iter().map(|row| AmountRow {
        amount: row.amount as i32,
        class: row.class.name(),
        pairs: row.pairs as i64,
        share: row.share,
        relative: row.relative,
    }))?;
    plan.write(rows.amounts.changes().iter().map(|row| ChangeClassRow {
        class: row.class.name(),
        change: row.change.name(),
        pairs: row.pairs as i64,
        share: row.share,
    }))?;
    // Births and deaths begin with the second week. Class `None` has births only: a document that
    // dies was in a class with itself.
    let classes = |of: fn(&WeekCounts) -> &BySize, smallest: usize| {
        let row = move |week: Week, counts, class: SizeClass| (week, class.name(), of(counts)[class as usize] as i64);
        let classes = move || SizeClass::ALL.into_iter().skip(smallest);
        weeks().skip(1).flat_map(move |(week, counts)| classes().map(move |class| row(week, counts, class)))
    };
    let births = classes(|counts| &counts.births, 0);
    plan.write(births.map(|(week, class, documents)| BirthRow { week, class, documents }))?;
    let deaths = classes(|counts| &counts.deaths, 1);
    plan.write(deaths.map(|(week, class, documents)| DeathRow { week, class, documents }))
}

fn summary(rows: &EvolutionRows, history: &History) -> EvolutionSummary {
    let retained = rows.weeks.last().map(|counts| counts.retained).unwrap_or_default();
    let class = |class: SizeClass| {
        let retained = retained[class as usize];
        Some(ClassRetention {
            class: class.name().into(),
            documents: retained.documents,
            retention: retained.retention()?,
            similarity: retained.similarity()?,
            reverse: retained.reverse()?,
        })
    };
    let (hosts, unchanged) = (rows.hosts.values().sum(), rows.hosts.get(&0).copied().unwrap_or_default());
    let pairs = rows.amounts.changes();
    let pairs_of = |change: Change| pairs.iter().filter(|row| row.change == change).map(|row| row.pairs).sum();
    let all = pairs.iter().map(|row| row.pairs).sum();
    let change = |change: Change| {
        let pairs = pairs_of(change);
        ChangeCount { change: change.name().into(), pairs, share: ratio(pairs, all) }
    };
    let turnover = |(week, counts): (Week, &WeekCounts)| {
        let births = counts.births.iter().sum();
        let joined = births - counts.births[SizeClass::None as usize];
        Turnover { week, births, joined, deaths: counts.deaths.iter().sum() }
    };
    EvolutionSummary {
        store: history.store.clone(),
        method: history.method.clone(),
        first: history.first().week,
        last: history.last().week,
        weeks: history.weeks.len(),
        urls: history.last().rows.iter().sum(),
        documents: retained.iter().map(|retained| retained.documents).sum(),
        retention: SizeClass::study().filter_map(class).collect(),
        hosts: HostChanges { hosts, unchanged, share: ratio(unchanged, hosts), published: PUBLISHED_UNCHANGED },
        changes: Change::ALL.into_iter().map(change).collect(),
        turnover: history.weeks.iter().map(|week| week.week).zip(&rows.weeks).skip(1).map(turnover).collect(),
    }
}
