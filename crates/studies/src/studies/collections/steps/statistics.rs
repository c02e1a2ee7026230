//! Link statistics: how many pages of one trivial cluster link to how many of another, and which
//! clusters that merges (Cho 2000, section 3).
//!
//! ```text
//! record: both roots, both pages, both sizes     40 bytes, to the owner of the pair of clusters
//! reply:  both pages                             16 bytes, if the clusters are merged
//! ```

use std::cell::RefCell;
use std::rc::Rc;

use anyhow::Result;
use bytemuck::{Pod, Zeroable};
use nigh_exchange::{BlockOf, Context, Dealer, KeptRecords, KeyRanges, Partition, RangeDealer, by_key};

use super::links::ClusterLink;
use super::stage::CollectionStage;
use crate::records::{DocId, Edge, fold};

/// Records of a partition, at most: their sorting stays in the second-level cache.
const MOST_RECORDS: u64 = 1 << 14;

/// A link between pages of two clusters that are merged.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Pod, Zeroable)]
#[repr(C)]
pub struct MergedLink {
    /// The page that links.
    pub page: DocId,
    /// The page that it links to.
    pub target: DocId,
}

/// The clusters that are merged, as one worker knows them.
pub struct MergedClusters {
    /// Pairs of merged clusters, by their roots. Every pair is at one worker.
    pub edges: Vec<Edge>,
    /// The links of own pages between merged clusters.
    pub links: KeptRecords<MergedLink>,
    /// Pairs of clusters with a link, in each direction; those of this worker.
    pub pairs: u64,
}

/// Counts the links between clusters, and merges these.
///
/// # Errors
/// If a file cannot be read or written (names it), or a worker of this process failed.
pub fn merged_clusters(
    cx: &mut Context,
    stage: &CollectionStage,
    links: KeptRecords<ClusterLink>,
) -> Result<MergedClusters> {
    let all = cx.sum(links.len() as u64)?;
    let cut = KeyRanges::new(all, MOST_RECORDS, size_of::<ClusterLink>(), 1, cx.peers(), cx.memory());
    let links = Rc::new(links);
    let open = move || {
        let (links, mut block) = (links.clone(), 0);
        move |deal: &mut RangeDealer<'_, ClusterLink>| {
            links.block(block, |links| {
                for link in links {
                    deal.deal(0, fold(&[link.from.to_table() as u64, link.to.to_table() as u64]), *link);
                }
            })?;
            block += 1;
            Ok(block < links.blocks())
        }
    };
    let found = Rc::new(RefCell::new((Vec::new(), 0u64)));
    let find = {
        let (found, condition) = (found.clone(), stage.condition);
        let (mut records, mut targets): (Vec<(ClusterLink, u32)>, Vec<DocId>) = (Vec::new(), Vec::new());
        move |partition: &Partition<'_, ClusterLink>, dealer: &mut Dealer<MergedLink>| {
            let (edges, pairs) = &mut *found.borrow_mut();
            records.clear();
            partition.blocks(|block| records.extend(block.records().iter().map(|link| (*link, block.from))))?;
            records.sort_unstable_by_key(|(link, _)| (link.from, link.to, link.page));
            for pair in records.chunk_by(|(a, _), (b, _)| (a.from, a.to) == (b.from, b.to)) {
                *pairs += 1;
                let ClusterLink { from, to, sizes, .. } = pair[0].0;
                let linking = pair.chunk_by(|(a, _), (b, _)| a.page == b.page).count() as u32;
                if !condition.holds(sizes, linking, sizes[1]) {
                    continue;
                }
                targets.clear();
                targets.extend(pair.iter().map(|(link, _)| link.target));
                targets.sort_unstable();
                targets.dedup();
                if condition.holds(sizes, linking, targets.len() as u32) {
                    edges.push(Edge { doc: from.max(to), root: from.min(to) });
                    for (link, from) in pair {
                        dealer.deal((*from).into(), MergedLink { page: link.page, target: link.target });
                    }
                }
            }
            Ok(())
        }
    };
    let merged = Rc::new(RefCell::new(cx.kept()));
    let take = {
        let (merged, watch) = (merged.clone(), cx.watch().clone());
        move |block: BlockOf<MergedLink>| {
            let mut merged = merged.borrow_mut();
            watch.check(block.records().iter().try_for_each(|link| merged.push(*link)));
        }
    };
    by_key(cx, "Links", cut, cx.spill_buffer(), open, find, take)?;
    let (edges, pairs) = found.take();
    Ok(MergedClusters { edges, links: merged.replace(cx.kept()), pairs })
}
