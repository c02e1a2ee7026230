//! The pages that a mirror has in common with another one.

use std::cell::RefCell;
use std::rc::Rc;

use anyhow::Result;
use arrow_array::{Int64Array, StringArray};
use bytemuck::{Pod, Zeroable};
use nigh_exchange::{BlockOf, Context, Dealer, Keyed, by_group};

use super::host_name::HostName;
use super::host_pairs::PairTable;
use crate::records::DocId;
use crate::state::History;
use crate::structures::{CompactSort, Ownership};
use crate::tables::{ClusterRow, Scan, Table, field};

/// A page that its host has in common with a mirror of the host.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct MirroredPage {
    /// The page.
    pub doc: DocId,
    /// The largest size of the pairs that it is counted for.
    pub size: u64,
}

/// A page of a mirror, on its way to the owner of its cluster.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Pod, Zeroable)]
#[repr(C)]
struct PageOfMirror {
    cluster: u64,
    host: u64,
    /// Which of the pages that its worker sent.
    number: u64,
    worker: u64,
}

impl Keyed for PageOfMirror {
    fn key(&self) -> u64 {
        self.cluster
    }
}

/// Finds the own pages that are in a cluster with a page of a mirror of their host, ascending by
/// id. `table` has the pairs of mirrors, `sizes` their sizes by number.
///
/// # Errors
/// If a file cannot be read or written, or a worker of this process failed.
pub fn mirrored(
    cx: &mut Context,
    history: &History,
    number: usize,
    owned: &Ownership,
    table: &Rc<PairTable>,
    sizes: Vec<u64>,
) -> Result<Vec<MirroredPage>> {
    let (mut pages, mut docs) = (Vec::new(), Vec::new());
    let tables = history.tables(number);
    for shard in owned.shards() {
        for rows in history.rows(number, &tables, ClusterRow::NAME, shard)? {
            Scan::open(&rows, &["doc", "host", "similar_root", "similar_size"])?.for_each(|batch| {
                let hosts: &StringArray = field(batch, "host")?;
                let column = |name| field::<Int64Array>(batch, name);
                let (ids, roots, sizes) = (column("doc")?, column("similar_root")?, column("similar_size")?);
                for row in (0..batch.num_rows()).filter(|row| sizes.value(*row) > 1) {
                    if let Some(host) = table.number(HostName::of(hosts.value(row))) {
                        let (cluster, number) = (roots.value(row) as u64, docs.len() as u64);
                        pages.push(PageOfMirror { cluster, host: host.into(), number, worker: cx.index() as u64 });
                        docs.push(DocId::from_table(ids.value(row)));
                    }
                }
                Ok(())
            })?;
        }
    }
    let each = {
        let table = table.clone();
        move |pages: &[PageOfMirror], answers: &mut Dealer<[u64; 2]>| {
            let of_host: Vec<&[PageOfMirror]> = pages.chunk_by(|a, b| a.host == b.host).collect();
            let present: Vec<u32> = of_host.iter().map(|pages| pages[0].host as u32).collect();
            let mut largest = vec![0; present.len()];
            table.pairs_of(&present, |pair, a, b| {
                [a, b].into_iter().for_each(|place| largest[place] = largest[place].max(sizes[pair]));
            });
            for (pages, size) in of_host.iter().zip(&largest).filter(|(_, size)| **size > 0) {
                pages.iter().for_each(|page| answers.deal(page.worker, [page.number, *size]));
            }
        }
    };
    let found = Rc::new(RefCell::new(Vec::new()));
    let take = {
        let found = found.clone();
        move |block: BlockOf<[u64; 2]>| {
            let page = |[number, size]: &[u64; 2]| MirroredPage { doc: docs[*number as usize], size: *size };
            found.borrow_mut().extend(block.records().iter().map(page));
        }
    };
    by_group(cx, "Mirrored", pages, each, take)?;
    let mut found = found.take();
    found.sort_rows();
    Ok(found)
}
