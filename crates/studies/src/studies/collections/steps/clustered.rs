//! The pages of the week that have replicas.

use anyhow::{Result, ensure};
use arrow_array::{Int64Array, StringArray};
use nigh_exchange::Context;

use crate::config::Chunking;
use crate::host_order::host_hash;
use crate::operators::output::cluster_sizes;
use crate::records::DocId;
use crate::state::{History, Results};
use crate::structures::Ownership;
use crate::studies::collections::ReplicaLevel;
use crate::tables::studies::overlap::ComponentRow;
use crate::tables::{ClusterRow, Scan, Table, field};

/// The own pages of a week, by number: 20 bytes for every known URL of the worker's shards.
#[derive(Clone, Debug, Default)]
pub struct ClusteredPages {
    /// The root of the page's trivial cluster; [`DocId::NONE`] if the page has no replica, or the
    /// week has no such page.
    pub roots: Vec<DocId>,
    /// The number of pages of that cluster.
    pub sizes: Vec<u32>,
    /// A hash of the host; 0 if the week has no such page.
    pub hosts: Vec<u64>,
}

/// What says which pages are replicas of each other.
#[derive(Clone, Debug)]
pub enum TrivialClusters {
    /// The clusters of a week, by the columns of the root and of the size.
    OfWeek(&'static str, &'static str),
    /// The components of an overlap job.
    Overlap(Results, Chunking),
}

impl TrivialClusters {
    /// Those of a level; `overlap` are the results of the overlap job for the same week.
    pub fn of(level: ReplicaLevel, overlap: Option<Results>, chunking: Chunking) -> TrivialClusters {
        match (level, overlap) {
            (ReplicaLevel::Overlap, Some(overlap)) => TrivialClusters::Overlap(overlap, chunking),
            (ReplicaLevel::Identical, _) => TrivialClusters::OfWeek("identical_root", "identical_size"),
            _ => TrivialClusters::OfWeek("similar_root", "similar_size"),
        }
    }
}

/// Reads the own pages of week number `number`.
///
/// # Errors
/// If a file cannot be read or contradicts itself (names it), or a worker of this process failed.
pub fn clustered_pages(
    cx: &mut Context,
    history: &History,
    number: usize,
    owned: &Ownership,
    clusters: &TrivialClusters,
) -> Result<ClusteredPages> {
    let count = owned.len();
    let mut pages = ClusteredPages { roots: vec![DocId::NONE; count], sizes: vec![0; count], hosts: vec![0; count] };
    let (root, size) = match clusters {
        TrivialClusters::OfWeek(root, size) => (*root, *size),
        TrivialClusters::Overlap(..) => ("similar_root", "similar_size"),
    };
    let tables = history.tables(number);
    for shard in owned.shards() {
        for rows in history.rows(number, &tables, ClusterRow::NAME, shard)? {
            Scan::open(&rows, &["doc", "host", root, size])?.for_each(|batch| {
                let (docs, hosts): (&Int64Array, &StringArray) = (field(batch, "doc")?, field(batch, "host")?);
                let (roots, sizes): (&Int64Array, &Int64Array) = (field(batch, root)?, field(batch, size)?);
                for row in 0..batch.num_rows() {
                    let doc = DocId::from_table(docs.value(row));
                    history.check(number, doc, shard, rows.path())?;
                    let page = owned.index(doc);
                    pages.hosts[page] = host_hash(hosts.value(row));
                    if sizes.value(row) > 1 {
                        let root = DocId::from_table(roots.value(row));
                        ensure!(owned.knows(root), "{} has the unknown root {root}", rows.path().display());
                        (pages.roots[page], pages.sizes[page]) = (root, sizes.value(row) as u32);
                    }
                }
                Ok(())
            })?;
        }
    }
    if let TrivialClusters::Overlap(results, chunking) = clusters {
        read_components(cx, results, *chunking, owned, &mut pages)?;
    }
    Ok(pages)
}

/// Takes the components of an overlap job for the trivial clusters.
fn read_components(
    cx: &mut Context,
    results: &Results,
    chunking: Chunking,
    owned: &Ownership,
    pages: &mut ClusteredPages,
) -> Result<()> {
    pages.roots.fill(DocId::NONE);
    pages.sizes.fill(0);
    for (_, rows) in results.of_own_shards(ComponentRow::NAME, owned)? {
        Scan::open(&rows, &["chunking", "component", "doc"])?.for_each(|batch| {
            let chunkings: &StringArray = field(batch, "chunking")?;
            let (components, docs): (&Int64Array, &Int64Array) = (field(batch, "component")?, field(batch, "doc")?);
            for row in (0..docs.len()).filter(|row| chunkings.value(*row) == chunking.name()) {
                let [component, doc] = [components, docs].map(|ids| DocId::from_table(ids.value(row)));
                ensure!(
                    owned.knows(component) && owned.knows(doc) && owned.has(doc),
                    "{} has the unknown page {component} or {doc}",
                    rows.path().display()
                );
                pages.roots[owned.index(doc)] = component;
            }
            Ok(())
        })?;
    }
    let sizes = cluster_sizes(cx, owned, pages.roots.iter().copied())?;
    let of_page = pages.roots.iter().map(|root| if *root == DocId::NONE { 0 } else { sizes.members(*root) as u32 });
    pages.sizes = of_page.collect();
    Ok(())
}
