//! The cluster map of a committed week: the cluster of very similar pages of each document that a
//! worker owns.
//!
//! A URL that was seen in the week or an earlier one and has no page in the week belongs to the
//! pseudo-cluster could-not-download (Fetterly 2004, section 3). The map takes 16 bytes for every
//! URL of the worker's shards.

use anyhow::{Result, bail};
use arrow_array::Int64Array;
use nigh_exchange::Context;

use crate::records::DocId;
use crate::state::History;
use crate::structures::Ownership;
use crate::tables::{ClusterRow, Scan, Table, field};

/// A cluster that a document belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ClusterOfDoc {
    /// The id of its root; [`COULD_NOT_DOWNLOAD`] for the pseudo-cluster.
    pub root: u64,
    /// The number of its URLs.
    pub size: u64,
}

/// The pseudo-cluster, in place of the id of a root: no document has this id.
pub const COULD_NOT_DOWNLOAD: u64 = u64::MAX;

/// The clusters of a week, as one worker holds them.
#[derive(Debug)]
pub struct ClusterMap {
    /// The cluster of every document of this worker, by its number; of size 0 if the document has
    /// no page.
    clusters: Vec<ClusterOfDoc>,
    /// The number of URLs, of all workers, that could not be downloaded.
    absent: u64,
}

/// The entry of a document without a page.
const NO_PAGE: ClusterOfDoc = ClusterOfDoc { root: COULD_NOT_DOWNLOAD, size: 0 };

impl ClusterMap {
    /// The cluster of document number `number` of this worker; `None` if it has no page in the
    /// week.
    #[inline]
    pub fn page(&self, number: usize) -> Option<ClusterOfDoc> {
        Some(self.clusters[number]).filter(|cluster| cluster.size > 0)
    }

    /// The number of URLs, of all workers, that belong to could-not-download.
    pub fn absent(&self) -> u64 {
        self.absent
    }

    /// The cluster of document number `number` of this worker, which was seen in the week or an
    /// earlier one.
    #[inline]
    pub fn cluster(&self, number: usize) -> ClusterOfDoc {
        self.page(number).unwrap_or(ClusterOfDoc { root: COULD_NOT_DOWNLOAD, size: self.absent })
    }
}

/// Reads the clusters of week number `number` of the history. `owned` are the documents of the last
/// week.
///
/// # Errors
/// If a file cannot be read or contradicts itself (names it), or a worker of this process failed.
pub fn cluster_map(cx: &mut Context, history: &History, number: usize, owned: &Ownership) -> Result<ClusterMap> {
    let week = &history.weeks[number];
    let mut clusters = vec![NO_PAGE; owned.len()];
    let mut pages = 0;
    let tables = history.tables(number);
    for shard in owned.shards() {
        for rows in history.rows(number, &tables, ClusterRow::NAME, shard)? {
            let path = rows.path();
            Scan::open(&rows, &["doc", "similar_root", "similar_size"])?.for_each(|batch| {
                let longs = |name| field::<Int64Array>(batch, name).map(|column| column.values());
                let (docs, roots, sizes) = (longs("doc")?, longs("similar_root")?, longs("similar_size")?);
                for ((doc, root), size) in docs.iter().zip(roots).zip(sizes) {
                    let doc = DocId::from_table(*doc);
                    history.check(number, doc, shard, path)?;
                    let root = DocId::from_table(*root);
                    let cluster = &mut clusters[owned.index(doc)];
                    if *size < 1 || root.shard() as usize >= week.rows.len() || !week.knows(root) {
                        bail!("{} is damaged: the document {doc} has an impossible cluster", path.display());
                    }
                    if cluster.size > 0 {
                        bail!("{} is damaged: the week holds the document {doc} twice", path.display());
                    }
                    *cluster = ClusterOfDoc { root: root.to_table() as u64, size: *size as u64 };
                    pages += 1;
                }
                Ok(())
            })?;
        }
    }
    let urls: u64 = owned.shards().map(|shard| week.rows[shard as usize]).sum();
    let absent = cx.sorted(vec![urls - pages])?.into_iter().sum();
    Ok(ClusterMap { clusters, absent })
}
