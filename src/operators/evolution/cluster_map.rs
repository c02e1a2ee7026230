//! The cluster map of a committed week: which cluster of very similar pages each own document belongs to.
//!
//! A URL that was seen in the week or before, and has no page in it, belongs to the one pseudo-cluster
//! could-not-download (Fetterly 2004, section 3). Takes 16 bytes for every URL of the own shards.

use anyhow::{Result, bail};
use arrow_array::Int64Array;
use timely::worker::Worker;

use crate::operators::exchange::all_gather;
use crate::records::DocId;
use crate::state::History;
use crate::structures::Ownership;
use crate::tables::{ClusterRow, Scan, Table, field};
use crate::watch::Watch;

/// A cluster that a document belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ClusterOfDoc {
    /// Its root, as a word; [`COULD_NOT_DOWNLOAD`] of the pseudo-cluster.
    pub name: u64,
    /// Its URLs.
    pub size: u64,
}

/// The name of the pseudo-cluster: no document has it.
pub const COULD_NOT_DOWNLOAD: u64 = u64::MAX;

/// The clusters of a week.
#[derive(Debug)]
pub struct ClusterMap {
    /// The cluster of every own document, by number; of size 0 where it has no page.
    of: Vec<ClusterOfDoc>,
    /// URLs of all workers that could not be downloaded.
    absent: u64,
}

const NOTHING: ClusterOfDoc = ClusterOfDoc { name: COULD_NOT_DOWNLOAD, size: 0 };

impl ClusterMap {
    /// The cluster of an own document's page, by number; `None` where it has no page in the week.
    #[inline]
    pub fn page(&self, at: usize) -> Option<ClusterOfDoc> {
        Some(self.of[at]).filter(|cluster| cluster.size > 0)
    }

    /// URLs of all workers that belong to could-not-download.
    pub fn absent(&self) -> u64 {
        self.absent
    }

    /// The cluster of an own document that was seen in the week or before, by number.
    #[inline]
    pub fn cluster(&self, at: usize) -> ClusterOfDoc {
        self.page(at).unwrap_or(ClusterOfDoc { name: COULD_NOT_DOWNLOAD, size: self.absent })
    }
}

/// Reads the clusters of the week number `at`. `owned` are the documents of the last week.
///
/// # Errors
/// Names the file that cannot be read, or that holds what cannot be; or where a worker of this process failed.
pub fn cluster_map(
    worker: &mut Worker,
    history: &History,
    at: usize,
    owned: &Ownership,
    watch: &Watch,
) -> Result<ClusterMap> {
    let week = &history.weeks[at];
    let mut of = vec![NOTHING; owned.len()];
    let mut pages = 0;
    for shard in owned.shards() {
        for path in history.files(at, ClusterRow::NAME, shard) {
            Scan::open(&path, &["doc", "similar_root", "similar_size"])?.for_each(|batch| {
                let longs = |name| field::<Int64Array>(batch, name).map(|column| column.values());
                let (docs, roots, sizes) = (longs("doc")?, longs("similar_root")?, longs("similar_size")?);
                for ((doc, root), size) in docs.iter().zip(roots).zip(sizes) {
                    let doc = DocId::from_table(*doc);
                    history.check(at, doc, shard, &path)?;
                    let root = DocId::from_table(*root);
                    let place = &mut of[owned.index(doc)];
                    if *size < 1 || root.shard() as usize >= week.rows.len() || !week.knows(root) {
                        bail!("{} is damaged: the document {doc} has no possible cluster", path.display());
                    }
                    if place.size > 0 {
                        bail!("{} is damaged: the week holds the document {doc} twice", path.display());
                    }
                    *place = ClusterOfDoc { name: root.to_table() as u64, size: *size as u64 };
                    pages += 1;
                }
                Ok(())
            })?;
        }
    }
    let known: u64 = owned.shards().map(|shard| week.rows[shard as usize]).sum();
    let absent = all_gather(worker, vec![known - pages], watch)?.into_iter().sum();
    Ok(ClusterMap { of, absent })
}
