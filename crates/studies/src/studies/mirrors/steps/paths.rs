//! What mirrors have of each other by path: how much of one the other has (coverage), and how long
//! a change takes from one to the other (lag).

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;

use anyhow::Result;
use arrow_array::{Int64Array, StringArray};
use bytemuck::{Pod, Zeroable};
use nigh_exchange::{BlockOf, Context, Dealer, Keyed, by_group};

use super::confirm::path_and_query;
use super::host_name::HostName;
use super::host_pairs::PairTable;
use crate::records::checksum;
use crate::state::History;
use crate::structures::{Ownership, Sums};
use crate::tables::{ClusterRow, FeatureRow, Scan, Table, field};

/// A week's page of a mirror, by its path.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Pod, Zeroable)]
#[repr(C)]
struct PathPage {
    path: u64,
    host: u64,
    /// The number of the week.
    week: u64,
    /// The hash of its features, or 0 if it has no words.
    vector: u64,
}

impl Keyed for PathPage {
    fn key(&self) -> u64 {
        self.path
    }
}

/// How many changes of a host came to another one, after how many weeks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Lag {
    /// The number of the pair.
    pub pair: u64,
    /// Whether the change was at the second host of the pair first.
    pub from_second: bool,
    /// After how many weeks the other host had it: 0 if in the same week, `None` if not until the
    /// last week.
    pub weeks: Option<u64>,
}

/// What mirrors have of each other by path.
#[derive(Clone, Debug, Default)]
pub struct PathCounts {
    /// Paths that both hosts of a pair have in a week, by number of the pair and of the week.
    pub common: BTreeMap<(u64, u64), u64>,
    /// Paths of a host in a week, by numbers.
    pub of_host: BTreeMap<(u64, u64), u64>,
    /// Changes by lag.
    pub lags: BTreeMap<Lag, u64>,
}

/// Compares the paths of the hosts of each pair of `table` in all weeks, queries included. A change
/// is a page whose features differ from those of the week before; it counts if the other host has
/// the path in that week, and did not have the new content the week before. Every worker returns
/// all counts.
///
/// # Errors
/// If a file cannot be read or written, or a worker of this process failed.
pub fn paths(cx: &mut Context, history: &History, owned: &Ownership, table: &Rc<PairTable>) -> Result<PathCounts> {
    let mut pages = Vec::new();
    for week in 0..history.weeks.len() {
        for shard in owned.shards() {
            read_pages(history, week, shard, table, &mut pages)?;
        }
    }
    let counters: Rc<RefCell<PathSums>> = Rc::default();
    let each = {
        let (table, counters) = (table.clone(), counters.clone());
        move |pages: &[PathPage], _: &mut Dealer<u8>| {
            let of_host: Vec<&[PathPage]> = pages.chunk_by(|a, b| a.host == b.host).collect();
            let present: Vec<u32> = of_host.iter().map(|pages| pages[0].host as u32).collect();
            let counters = &mut *counters.borrow_mut();
            for of_week in of_host.iter().flat_map(|pages| pages.chunk_by(|a, b| a.week == b.week)) {
                counters.of_host.add((of_week[0].host, of_week[0].week), 1);
            }
            table.pairs_of(&present, |pair, a, b| {
                let (a, b) = (VectorsByWeek::of(of_host[a]), VectorsByWeek::of(of_host[b]));
                counters.compare(pair as u64, &a, &b);
            });
        }
    };
    by_group(cx, "Paths", pages, each, |_: BlockOf<u8>| {})?;
    let PathSums { common, of_host, lags } = counters.take();
    let mut counts = PathCounts::default();
    for (key, count) in cx.sorted(common.finish())? {
        *counts.common.entry(key).or_default() += count;
    }
    for (key, count) in cx.sorted(of_host.finish())? {
        *counts.of_host.entry(key).or_default() += count;
    }
    for ((pair, from_second, weeks), count) in cx.sorted(lags.finish())? {
        *counts.lags.entry(Lag { pair, from_second, weeks }).or_default() += count;
    }
    Ok(counts)
}

/// Adds the pages of a shard in a week that are of hosts in the table.
fn read_pages(history: &History, week: usize, shard: u32, table: &PairTable, pages: &mut Vec<PathPage>) -> Result<()> {
    let (tables, from) = (history.tables(week), pages.len());
    let mut docs = Vec::new();
    for rows in history.rows(week, &tables, ClusterRow::NAME, shard)? {
        Scan::open(&rows, &["doc", "url", "host"])?.for_each(|batch| {
            let (urls, hosts): (&StringArray, &StringArray) = (field(batch, "url")?, field(batch, "host")?);
            let ids: &Int64Array = field(batch, "doc")?;
            for row in 0..batch.num_rows() {
                if let Some(host) = table.number(HostName::of(hosts.value(row))) {
                    let path = (checksum(path_and_query(urls.value(row)).as_bytes()) >> 64) as u64;
                    docs.push((ids.value(row), pages.len()));
                    pages.push(PathPage { path, host: host.into(), week: week as u64, vector: 0 });
                }
            }
            Ok(())
        })?;
    }
    if pages.len() == from {
        return Ok(());
    }
    docs.sort_unstable();
    for rows in history.rows(week, &tables, FeatureRow::NAME, shard)? {
        Scan::open(&rows, &["doc", "vector"])?.for_each(|batch| {
            let (ids, vectors): (&Int64Array, &Int64Array) = (field(batch, "doc")?, field(batch, "vector")?);
            for (doc, vector) in ids.values().iter().zip(vectors.values()) {
                if let Ok(place) = docs.binary_search_by_key(doc, |(doc, _)| *doc) {
                    pages[docs[place].1].vector = *vector as u64;
                }
            }
            Ok(())
        })?;
    }
    Ok(())
}

/// The vectors of one path on one host, by week, ascending; the smallest if a week has the path
/// twice (by `http` and by `https`).
struct VectorsByWeek(Vec<(u64, u64)>);

impl VectorsByWeek {
    fn of(pages: &[PathPage]) -> VectorsByWeek {
        let mut weeks: Vec<(u64, u64)> = pages.iter().map(|page| (page.week, page.vector)).collect();
        weeks.dedup_by_key(|(week, _)| *week);
        VectorsByWeek(weeks)
    }

    fn vector(&self, week: u64) -> Option<u64> {
        let place = self.0.binary_search_by_key(&week, |(week, _)| *week).ok()?;
        Some(self.0[place].1)
    }
}

#[derive(Default)]
struct PathSums {
    common: Sums<(u64, u64)>,
    of_host: Sums<(u64, u64)>,
    lags: Sums<(u64, bool, Option<u64>)>,
}

impl PathSums {
    fn compare(&mut self, pair: u64, a: &VectorsByWeek, b: &VectorsByWeek) {
        let both = a.0.iter().filter(|(week, _)| b.vector(*week).is_some());
        both.for_each(|(week, _)| self.common.add((pair, *week), 1));
        for (from_second, source, copy) in [(false, a, b), (true, b, a)] {
            lags(source, copy, |weeks| self.lags.add((pair, from_second, weeks), 1));
        }
    }
}

/// Calls `each` with the lag of every change of a page and its copy.
///
/// ```text
/// for each week n with a page in n - 1 and in n that differ, a copy in n, and a copy in n - 1 that is not the new page:
///     the first week m >= n in which the copy is the new page: m - n; None if there is no such week
/// ```
fn lags(source: &VectorsByWeek, copy: &VectorsByWeek, mut each: impl FnMut(Option<u64>)) {
    for pair in source.0.windows(2) {
        let [(before, old), (week, new)] = [pair[0], pair[1]];
        let is_change = before + 1 == week && old != new && new != 0;
        if is_change && copy.vector(week).is_some() && copy.vector(before) != Some(new) {
            let first = copy.0.iter().find(|(later, vector)| *later >= week && *vector == new);
            each(first.map(|(later, _)| later - week));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(source: &[(u64, u64)], copy: &[(u64, u64)]) -> Vec<Option<u64>> {
        let mut found = Vec::new();
        lags(&VectorsByWeek(source.to_vec()), &VectorsByWeek(copy.to_vec()), |weeks| found.push(weeks));
        found
    }

    #[test]
    fn a_change_counts_from_the_week_of_the_source() {
        let source = [(0, 5), (1, 6), (2, 6), (3, 7)];
        assert_eq!(found(&source, &[(0, 5), (1, 5), (2, 6), (3, 6)]), [Some(1), None]);
        assert_eq!(found(&source, &[(0, 5), (1, 6), (2, 6), (3, 7)]), [Some(0), Some(0)]);
        assert_eq!(found(&source, &[(0, 6), (1, 6)]), [], "the copy had it before");
        assert_eq!(found(&source, &[(2, 6)]), [], "the copy has no such page in the week of a change");
        assert_eq!(found(&[(0, 5), (2, 6)], &[(0, 5), (2, 6)]), [], "the week of the change is not known");
    }
}
