//! What the two places of a pair have in common: clusters with pages of both, and an example.
//! Places are hosts, or collections of pages.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;

use anyhow::Result;
use bytemuck::{Pod, Zeroable};
use nigh_exchange::{BlockOf, Context, Dealer, Keyed, by_group};
use serde::{Deserialize, Serialize};

use super::host_pairs::PairTable;
use crate::records::DocId;

/// A page of a place that is in a pair.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Pod, Zeroable)]
#[repr(C)]
pub struct PageOfPlace {
    /// The root of its cluster.
    pub cluster: DocId,
    /// The number of the place.
    pub place: u64,
    /// The page.
    pub doc: DocId,
}

impl Keyed for PageOfPlace {
    fn key(&self) -> u64 {
        self.cluster.to_table() as u64
    }
}

/// What the two places of a pair have in common.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct SharedPages {
    /// Clusters with pages of both.
    pub clusters: u64,
    /// The smallest page of either in the first of these clusters.
    pub example: [DocId; 2],
}

/// Counts what the places of each pair have in common; `pages` are those of own shards. Returns
/// what there is, by the number of the pair, at every worker.
///
/// # Errors
/// If a file cannot be read or written, or a worker of this process failed.
pub fn shared_pages(
    cx: &mut Context,
    pages: Vec<PageOfPlace>,
    table: &Rc<PairTable>,
) -> Result<BTreeMap<usize, SharedPages>> {
    let found: Rc<RefCell<FoundPairs>> = Rc::default();
    let each = {
        let (table, found) = (table.clone(), found.clone());
        move |pages: &[PageOfPlace], _: &mut Dealer<u8>| {
            let of_places = pages.chunk_by(|a, b| a.place == b.place);
            let first: Vec<&PageOfPlace> = of_places.map(|of_place| &of_place[0]).collect();
            let present: Vec<u32> = first.iter().map(|page| page.place as u32).collect();
            table.pairs_of(&present, |pair, a, b| {
                let shared = SharedPages { clusters: 1, example: [first[a].doc, first[b].doc] };
                add(&mut found.borrow_mut(), pair, (pages[0].cluster, shared));
            });
        }
    };
    by_group(cx, "Shared", pages, each, |_: BlockOf<u8>| {})?;
    let own = found.take().into_iter().collect();
    let mut all = FoundPairs::new();
    for (pair, of_worker) in cx.sorted(own)? {
        add(&mut all, pair, of_worker);
    }
    Ok(all.into_iter().map(|(pair, (_, shared))| (pair, shared)).collect())
}

/// What pairs have in common so far, and the first cluster, by number.
type FoundPairs = BTreeMap<usize, (DocId, SharedPages)>;

fn add(found: &mut FoundPairs, pair: usize, (cluster, shared): (DocId, SharedPages)) {
    let (first, of_pair) = found.entry(pair).or_insert((cluster, SharedPages { clusters: 0, ..shared }));
    of_pair.clusters += shared.clusters;
    if cluster < *first {
        (*first, of_pair.example) = (cluster, shared.example);
    }
}
