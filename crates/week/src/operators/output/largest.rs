//! The largest clusters of each level, with their hosts and machines (Fetterly 2004, tables 1 and
//! 2).
//!
//! Every worker proposes its largest clusters, and an all-gather chooses the largest of all. Then
//! every worker reads its own documents for the hosts, addresses and root pages of these clusters,
//! and two more all-gathers bring them together.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use anyhow::Result;
use arrow_array::{Array, Int64Array, StringArray};
use nigh_exchange::Context;
use serde::{Deserialize, Serialize};

use super::cluster_sizes::LevelClusters;
use crate::operators::scan::own_segments;
use crate::records::{DocId, Level};
use crate::state::{Unfinished, WeekJournal};
use crate::stats::machines;
use crate::structures::{CompactSort, Ownership, SparseDocs};
use crate::tables::{DocumentRow, LargestRow, Names, PieceScan, field};

/// Clusters of each level in the table.
const SHOWN: usize = 20;

/// The level's position, `u64::MAX` less the cluster's size, and the root: in this order, larger
/// clusters come first, and of equal ones the one with the smaller root.
type RankedCluster = (usize, u64, i64);

/// The largest clusters of every level, the same at every worker. Of clusters of equal size the one
/// with the smaller root comes first. `cluster_ids` are those of own documents, by number.
///
/// # Errors
/// Where a segment cannot be read, or a worker of this process failed.
pub fn largest(
    cx: &mut Context,
    owned: &Ownership,
    levels: &[LevelClusters],
    cluster_ids: &SparseDocs,
    unfinished: &Unfinished,
    journal: &WeekJournal,
) -> Result<Vec<LargestRow>> {
    let chosen = choose(cx, levels)?;
    let mut own = read_details(owned, levels, &chosen, unfinished, journal)?;
    for RootPage { doc, cluster_id, .. } in &mut own.pages {
        *cluster_id = cluster_ids.get(owned.index(*doc));
    }
    let details = ClusterDetails { hosts: cx.sorted(own.hosts)?, pages: cx.sorted(own.pages)? };
    Ok(rows(levels, &chosen, details))
}

/// The largest clusters of each level, by level and then by size.
fn choose(cx: &mut Context, levels: &[LevelClusters]) -> Result<Vec<RankedCluster>> {
    let mut own: Vec<RankedCluster> = Vec::new();
    for (level, clusters) in levels.iter().enumerate() {
        let of_level = clusters.sizes.own_clusters();
        let mut of_level: Vec<RankedCluster> =
            of_level.map(|(root, members)| (level, u64::MAX - members, root.to_table())).collect();
        of_level.sort_rows();
        own.extend(of_level.into_iter().take(SHOWN));
    }
    let all = cx.sorted(own)?;
    Ok(all.chunk_by(|a, b| a.0 == b.0).flat_map(|of_level| of_level.iter().take(SHOWN)).copied().collect())
}

/// Details of the chosen clusters, each with the cluster's position among them.
struct ClusterDetails {
    /// Hosts, with the address of the machine where it is known.
    hosts: Vec<(usize, String, Option<String>)>,
    pages: Vec<RootPage>,
}

/// The root of a chosen cluster.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
struct RootPage {
    /// The cluster's position among the chosen ones.
    position: usize,
    doc: DocId,
    name: String,
    title: String,
    cluster_id: Option<DocId>,
}

/// Reads the details of the chosen clusters from the own documents.
fn read_details(
    owned: &Ownership,
    levels: &[LevelClusters],
    chosen: &[RankedCluster],
    unfinished: &Unfinished,
    journal: &WeekJournal,
) -> Result<ClusterDetails> {
    let positions: HashMap<(usize, i64), usize> =
        chosen.iter().enumerate().map(|(position, (level, _, root))| ((*level, *root), position)).collect();
    let mut hosts: BTreeSet<(usize, String, Option<String>)> = BTreeSet::new();
    let mut pages: Vec<RootPage> = Vec::new();
    let segments = own_segments(journal, owned).into_iter();
    let rows = segments.map(|segment| unfinished.rows::<DocumentRow>(&segment.file())).collect::<Result<Vec<_>>>()?;
    let columns = [&["doc", "host", "ip", "title"][..], &Names::COLUMNS].concat();
    PieceScan::new(rows, &columns).for_each(|_, batch| {
        let docs: &Int64Array = field(batch, "doc")?;
        let text = |name| field::<StringArray>(batch, name);
        let (of_pages, ips, titles) = (text("host")?, text("ip")?, text("title")?);
        let names = Names::of(batch)?;
        for row in 0..batch.num_rows() {
            let doc = DocId::from_table(docs.value(row));
            for (level, clusters) in levels.iter().enumerate() {
                let root = clusters.roots.of(doc);
                let Some(&position) = positions.get(&(level, root.to_table())) else { continue };
                let ip = (!ips.is_null(row)).then(|| ips.value(row).to_owned());
                if of_pages.is_valid(row) {
                    hosts.insert((position, of_pages.value(row).to_owned(), ip));
                }
                if root == doc {
                    let (name, title) = (names.name(row).into_owned(), titles.value(row).to_owned());
                    pages.push(RootPage { position, doc, name, title, cluster_id: None });
                }
            }
        }
        Ok(())
    })?;
    Ok(ClusterDetails { hosts: hosts.into_iter().collect(), pages })
}

/// The rows of the table, from the details of all workers.
fn rows(levels: &[LevelClusters], chosen: &[RankedCluster], details: ClusterDetails) -> Vec<LargestRow> {
    let mut pages: BTreeMap<usize, RootPage> = details.pages.into_iter().map(|page| (page.position, page)).collect();
    let mut rows: Vec<LargestRow> = Vec::new();
    for (position, (level, members, root)) in chosen.iter().enumerate() {
        let LevelClusters { level, .. } = &levels[*level];
        let is_similar = *level == Level::Similar;
        let level = level.name();
        let rank = rows.iter().filter(|row| row.level == level).count() as i32 + 1;
        // Whether any document of a host has the address of a machine.
        let mut resolved: BTreeMap<&str, bool> = BTreeMap::new();
        let hosts = details.hosts.iter().filter(|host| host.0 == position);
        let addresses = hosts.clone().filter_map(|(_, host, ip)| Some((host, ip.as_ref()?)));
        for (_, host, ip) in hosts {
            *resolved.entry(host).or_default() |= ip.is_some();
        }
        let (name, title, cluster_id) =
            pages.remove(&position).map(|page| (page.name, page.title, page.cluster_id)).unwrap_or_default();
        rows.push(LargestRow {
            level,
            rank,
            urls: (u64::MAX - members) as i64,
            hosts: resolved.len() as i64,
            machines: machines(addresses) as i64,
            unresolved: resolved.values().filter(|has_address| !**has_address).count() as i64,
            title,
            name,
            doc: *root,
            cluster_id: cluster_id.filter(|_| is_similar).map(DocId::to_table),
        });
    }
    rows
}
