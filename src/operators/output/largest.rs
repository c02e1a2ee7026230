//! The largest clusters of each level, with their hosts and machines (Fetterly 2004, tables 1 and 2).

use std::collections::{BTreeMap, BTreeSet, HashMap};

use anyhow::Result;
use arrow_array::{Array, Int64Array, StringArray};
use timely::worker::Worker;

use super::cluster_sizes::LevelClusters;
use crate::operators::exchange::all_gather;
use crate::operators::scan::own_segments;
use crate::records::DocId;
use crate::state::{Journal, Unfinished};
use crate::structures::Ownership;
use crate::tables::{DocumentRow, LargestRow, Scan, Table, field};
use crate::watch::Watch;

/// Clusters shown of each level.
const SHOWN: usize = 20;

/// The largest clusters of every level, the same at every worker; of equal ones the smaller root comes first.
///
/// # Errors
/// Where a segment cannot be read, or a worker of this process failed.
pub fn largest(
    worker: &mut Worker,
    owned: &Ownership,
    levels: &[LevelClusters],
    unfinished: &Unfinished,
    journal: &Journal,
    watch: &Watch,
) -> Result<Vec<LargestRow>> {
    // Each worker's largest, then the largest of these: (level, members from the top, root).
    let mut mine: Vec<(usize, u64, i64)> = Vec::new();
    for (at, clusters) in levels.iter().enumerate() {
        let own = clusters.sizes.of_own_roots().filter(|(_, members)| *members > 1);
        let mut own: Vec<_> = own.map(|(root, members)| (at, u64::MAX - members, root.to_table())).collect();
        own.sort_unstable();
        mine.extend(own.into_iter().take(SHOWN));
    }
    let all = all_gather(worker, mine, watch)?;
    let chosen: Vec<(usize, u64, i64)> =
        all.chunk_by(|a, b| a.0 == b.0).flat_map(|level| level.iter().take(SHOWN)).copied().collect();

    // What own documents of these clusters say of hosts, machines, and the canonical page.
    let places: HashMap<(usize, i64), usize> =
        chosen.iter().enumerate().map(|(place, (level, _, root))| ((*level, *root), place)).collect();
    let mut hosts: BTreeSet<(usize, String, Option<String>)> = BTreeSet::new();
    let mut pages: Vec<(usize, String, String)> = Vec::new();
    for segment in own_segments(journal, owned) {
        let path = unfinished.table(DocumentRow::NAME, &segment.file());
        Scan::open(&path, &["doc", "url", "host", "ip", "title"])?.for_each(|batch| {
            let docs: &Int64Array = field(batch, "doc")?;
            let text = |name| field::<StringArray>(batch, name);
            let (urls, names, ips, titles) = (text("url")?, text("host")?, text("ip")?, text("title")?);
            for row in 0..batch.num_rows() {
                let doc = DocId::from_table(docs.value(row));
                for (at, clusters) in levels.iter().enumerate() {
                    let root = clusters.roots[owned.index(doc)];
                    let Some(&place) = places.get(&(at, root.to_table())) else { continue };
                    let ip = (!ips.is_null(row)).then(|| ips.value(row).to_owned());
                    hosts.insert((place, names.value(row).to_owned(), ip));
                    if root == doc {
                        pages.push((place, urls.value(row).to_owned(), titles.value(row).to_owned()));
                    }
                }
            }
            Ok(())
        })?;
    }
    let hosts = all_gather(worker, hosts.into_iter().collect(), watch)?;
    let pages: BTreeMap<usize, (String, String)> =
        all_gather(worker, pages, watch)?.into_iter().map(|(place, url, title)| (place, (url, title))).collect();

    let mut rows: Vec<LargestRow> = Vec::new();
    for (place, (level, members, root)) in chosen.iter().enumerate() {
        let level = levels[*level].level.name();
        let rank = rows.iter().filter(|row| row.level == level).count() as i32 + 1;
        let mut resolved: BTreeMap<&str, bool> = BTreeMap::new();
        let mut machines: BTreeSet<&str> = BTreeSet::new();
        for (_, host, ip) in hosts.iter().filter(|host| host.0 == place) {
            *resolved.entry(host).or_default() |= ip.is_some();
            machines.extend(ip.as_deref());
        }
        let (url, title) = pages.get(&place).cloned().unwrap_or_default();
        rows.push(LargestRow {
            level,
            rank,
            urls: (u64::MAX - members) as i64,
            hosts: resolved.len() as i64,
            machines: machines.len() as i64,
            unresolved: resolved.values().filter(|known| !**known).count() as i64,
            title,
            url,
            root: *root,
        });
    }
    Ok(rows)
}
