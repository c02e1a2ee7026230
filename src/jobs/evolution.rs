//! How clusters evolve over the weeks of a store (Fetterly 2004, section 3).
//!
//! ```text
//! cluster maps of the first week and each week ─▶ overlaps ─▶ retention        Fig. 4, 5, 7
//! cluster maps of successive weeks             ─▶ births, deaths               beyond the study
//! clusters of hosts, first and last week       ─▶ host-changes                 Fig. 6
//! downloads of each URL, week after week       ─▶ amounts, change-classes      Fig. 8, 9, 10
//! ```
//!
//! Clusters are those of very similar pages. All counts are whole numbers, and all means are of sums in fixed point, so
//! that no table depends on workers or processes. Worker 0 writes the tables, which are small whatever the store.
//!
//! A worker holds three cluster maps at a time (48 bytes for each URL of its shards), the pairs of larger clusters of
//! two weeks that it owns, and one batch of each file of one shard.

use std::collections::BTreeMap;
use std::rc::Rc;
use std::sync::Arc;

use anyhow::{Context, Result};
use serde::{Deserialize, Serialize};
use timely::worker::Worker;

use crate::operators::evolution::{births, change_amounts, cluster_map, deaths, host_clusters, retention};
use crate::operators::exchange::all_gather;
use crate::records::Week;
use crate::state::{History, Results, Store, replace};
use crate::stats::{BySize, Change, ChangeAmounts, RetentionSums, SizeClass, add_by_size, cluster_changes, ratio};
use crate::structures::Ownership;
use crate::summary::{ChangeCount, ClassRetention, EvolutionSummary, HostChanges, PUBLISHED_UNCHANGED, Turnover};
use crate::tables::{AmountRow, BirthRow, ChangeClassRow, DeathRow, HostChangeRow, RetentionRow, Table, Writer};
use crate::watch::{Stage, Watch};

/// The folder of the store that holds the tables.
pub const FOLDER: &str = "evolution";

/// What every process of a run knows.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct EvolutionPlan {
    /// The weeks.
    pub history: History,
    /// The name of the store's folder of unfinished work.
    pub work: String,
    /// The job with all flags applied, as it is kept with the tables.
    pub job: String,
    /// Processes.
    pub processes: usize,
    /// Worker threads of each process.
    pub workers: usize,
    /// Memory for the buffers of one worker, in bytes.
    pub worker_memory: u64,
}

/// What is counted of one week.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
struct WeekCounts {
    retained: [RetentionSums; SizeClass::ALL.len()],
    births: BySize,
    deaths: BySize,
}

/// All that the tables hold.
struct EvolutionRows {
    weeks: Vec<WeekCounts>,
    /// Hosts by the change of their number of clusters.
    hosts: BTreeMap<i64, u64>,
    amounts: ChangeAmounts,
}

/// Runs the job on one of its workers; every worker of every process calls it with the same plan, after
/// [`Results::begin`]. Worker 0 puts the tables in their place and returns the summary.
///
/// # Errors
/// Where anything cannot be read or written. The tables of the last run stay as they are.
pub fn evolution(worker: &mut Worker, plan: &EvolutionPlan, watch: &Arc<Watch>) -> Result<Option<EvolutionSummary>> {
    watch.enter(Stage::Weeks);
    let owned = Ownership::new(worker.index(), worker.peers(), &plan.history.last().rows);
    let weeks = weeks(worker, plan, &owned, watch)?;
    let hosts = hosts(worker, plan, &owned, watch)?;
    let amounts = change_amounts(worker, &plan.history, &owned, plan.worker_memory / 2, watch)?;
    watch.enter(Stage::Tables);
    if worker.index() > 0 {
        return Ok(None);
    }
    let found = EvolutionRows { weeks, hosts, amounts };
    let results = Results::of(&Store::at(&plan.history.store).working_in(&plan.work), FOLDER);
    write(&found, &plan.history, &results)?;
    let summary = summary(&found, &plan.history);
    replace(&results.file("job.toml"), plan.job.as_bytes())?;
    replace(&results.file("summary.json"), &serde_json::to_vec_pretty(&summary).context("a summary is plain data")?)?;
    results.commit()?;
    Ok(Some(summary))
}

/// Retention against the first week, births and deaths against the week before: of all workers together.
fn weeks(worker: &mut Worker, plan: &EvolutionPlan, owned: &Ownership, watch: &Arc<Watch>) -> Result<Vec<WeekCounts>> {
    let history = &plan.history;
    let first = Rc::new(cluster_map(worker, history, 0, owned, watch)?);
    let mut before = first.clone();
    let mut mine: Vec<(usize, WeekCounts)> = Vec::new();
    for at in 0..history.weeks.len() {
        let mut counts = WeekCounts::default();
        let map = if at == 0 { first.clone() } else { Rc::new(cluster_map(worker, history, at, owned, watch)?) };
        let weeks = || format!("week {} against {}", history.weeks[at].week, history.first().week);
        counts.retained = retention(worker, owned, &first, &map, watch).with_context(weeks)?;
        if at > 0 {
            let known = &history.weeks[at - 1];
            counts.births = births(worker, owned, known, &map, watch).with_context(weeks)?;
            counts.deaths = deaths(owned, &before, &map);
        }
        mine.push((at, counts));
        before = map;
    }
    let mut all = vec![WeekCounts::default(); history.weeks.len()];
    for (at, counts) in all_gather(worker, mine, watch)? {
        all[at].retained.iter_mut().zip(&counts.retained).for_each(|(sum, part)| sum.merge(part));
        add_by_size(&mut all[at].births, &counts.births);
        add_by_size(&mut all[at].deaths, &counts.deaths);
    }
    Ok(all)
}

/// Hosts of all workers, by the change of their number of clusters.
fn hosts(
    worker: &mut Worker,
    plan: &EvolutionPlan,
    owned: &Ownership,
    watch: &Arc<Watch>,
) -> Result<BTreeMap<i64, u64>> {
    let history = &plan.history;
    let first = host_clusters(worker, history, 0, owned, watch)?;
    let last = host_clusters(worker, history, history.weeks.len() - 1, owned, watch)?;
    let count = |counts: &mut BTreeMap<i64, u64>, (change, hosts)| *counts.entry(change).or_default() += hosts;
    let (mut mine, mut all) = (BTreeMap::new(), BTreeMap::new());
    cluster_changes(&first, &last).into_iter().for_each(|change| count(&mut mine, (change, 1)));
    all_gather(worker, mine.into_iter().collect(), watch)?.into_iter().for_each(|of| count(&mut all, of));
    Ok(all)
}

fn write(found: &EvolutionRows, history: &History, results: &Results) -> Result<()> {
    let weeks = || history.weeks.iter().map(|week| week.week).zip(&found.weeks);
    let retention = weeks().flat_map(|(week, counts)| SizeClass::study().map(move |class| (week, counts, class)));
    table(
        results,
        retention.map(|(week, counts, class)| {
            let retained = &counts.retained[class as usize];
            RetentionRow {
                week: week.to_string(),
                class: class.name(),
                documents: retained.documents as i64,
                retention: retained.retention(),
                similarity: retained.similarity(),
                reverse: retained.reverse(),
            }
        }),
    )?;
    let hosts = found.hosts.iter();
    table(results, hosts.map(|(change, hosts)| HostChangeRow { change: *change, hosts: *hosts as i64 }))?;
    table(
        results,
        found.amounts.shares().iter().map(|row| AmountRow {
            amount: row.amount as i32,
            class: row.class.name(),
            pairs: row.pairs as i64,
            share: row.share,
            relative: row.relative,
        }),
    )?;
    table(
        results,
        found.amounts.changes().iter().map(|row| ChangeClassRow {
            class: row.class.name(),
            change: row.change.name(),
            pairs: row.pairs as i64,
            share: row.share,
        }),
    )?;
    // The first week has none before it.
    let classes = |of: fn(&WeekCounts) -> &BySize, smallest: usize| {
        let row = move |week: Week, counts, class: SizeClass| {
            (week.to_string(), class.name(), of(counts)[class as usize] as i64)
        };
        let classes = move || SizeClass::ALL.into_iter().skip(smallest);
        weeks().skip(1).flat_map(move |(week, counts)| classes().map(move |class| row(week, counts, class)))
    };
    let births = classes(|counts| &counts.births, 0);
    table(results, births.map(|(week, class, documents)| BirthRow { week, class, documents }))?;
    let deaths = classes(|counts| &counts.deaths, 1);
    table(results, deaths.map(|(week, class, documents)| DeathRow { week, class, documents }))
}

fn table<T: Table>(results: &Results, rows: impl Iterator<Item = T>) -> Result<()> {
    let mut writer: Writer<T> = Writer::create(&results.table(T::NAME))?;
    for row in rows {
        writer.push(row)?;
    }
    writer.finish().map(|_| ())
}

fn summary(found: &EvolutionRows, history: &History) -> EvolutionSummary {
    let retained = found.weeks.last().map(|counts| counts.retained).unwrap_or_default();
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
    let (hosts, unchanged) = (found.hosts.values().sum(), found.hosts.get(&0).copied().unwrap_or_default());
    let pairs = found.amounts.changes();
    let of = |change: Change| pairs.iter().filter(|row| row.change == change).map(|row| row.pairs).sum();
    let all = pairs.iter().map(|row| row.pairs).sum();
    let change = |change: Change| {
        let pairs = of(change);
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
        turnover: history.weeks.iter().map(|week| week.week).zip(&found.weeks).skip(1).map(turnover).collect(),
    }
}
