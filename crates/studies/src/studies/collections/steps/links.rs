//! Reading links: those between pages of different trivial clusters that can be merged, and the
//! number of links that each page has from other hosts.
//!
//! ```text
//! for each link p → q of the week, some at a time
//!     look up the root, the size and the host of q
//!     if q has replicas and is on another host: in_links[q] += 1
//!     if p and q have replicas, their clusters differ and have sizes that can be merged: keep the link
//! ```

use std::rc::Rc;
use std::sync::Arc;

use anyhow::{Result, ensure};
use bytemuck::{Pod, Zeroable};
use nigh_exchange::{Context, KeptRecords, LocalAnswers, all_to_all, lookup};

use super::clustered::ClusteredPages;
use super::stage::CollectionStage;
use crate::operators::scan::{LinkSource, OwnLink};
use crate::records::DocId;
use crate::structures::Ownership;

/// Bytes of a link in a round: itself, its question and its answer.
const LINK_BYTES: u64 = 48;
/// Links of a round, at least and at most: tables are read by thousands of rows, and more than a
/// million links take new memory from the system, which took a third of the time.
const ROUND: [u64; 2] = [1 << 13, 1 << 20];

/// A link between pages of two trivial clusters.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Pod, Zeroable)]
#[repr(C)]
pub struct ClusterLink {
    /// The root of the first page's cluster.
    pub from: DocId,
    /// The root of the second page's cluster.
    pub to: DocId,
    /// The page that links.
    pub page: DocId,
    /// The page that it links to.
    pub target: DocId,
    /// The numbers of pages of the two clusters.
    pub sizes: [u32; 2],
}

/// The links of own pages that may hold collections together, and what else was counted on the way.
pub struct CollectionLinksFound {
    /// The links.
    pub links: KeptRecords<ClusterLink>,
    /// By own page: links from pages of other hosts; counted for pages with replicas.
    pub in_links: Vec<u32>,
    /// Links of own pages to pages that some week has.
    pub read: u64,
}

/// Reads the links of own pages.
///
/// # Errors
/// If links cannot be read, or kept links not written; or a worker of this process failed.
pub fn collection_links(
    cx: &mut Context,
    stage: &CollectionStage,
    owned: &Ownership,
    pages: &Arc<ClusteredPages>,
    source: &mut impl LinkSource,
) -> Result<CollectionLinksFound> {
    let watch = &cx.watch().clone();
    let answers = {
        let pages = pages.clone();
        move |page: usize| [pages.roots[page].to_table() as u64, pages.sizes[page].into(), pages.hosts[page]]
    };
    let local = LocalAnswers::of_process(cx, answers)?;
    let at_once = (cx.memory() / LINK_BYTES).clamp(ROUND[0], ROUND[1]);
    let rounds = cx.max(source.count().div_ceil(at_once))?;
    let mut found = CollectionLinksFound { links: cx.kept(), in_links: vec![0; owned.len()], read: 0 };
    for _ in 0..rounds {
        let links: Rc<Vec<OwnLink>> = Rc::new(source.read(at_once as usize)?);
        found.read += links.len() as u64;
        let questions = || {
            let links = links.clone();
            (0..links.len()).map(move |at| links[at].target)
        };
        let mut in_links = cx.dealer();
        let kept = &mut found.links;
        lookup(cx, owned, questions, &local, |at, [root, size, host]| {
            let (OwnLink { page, doc, target }, root) = (links[at], DocId::from_table(root as i64));
            if root == DocId::NONE {
                return;
            }
            let is_same_host = pages.hosts[page as usize] == host;
            if !is_same_host {
                in_links.deal(owned.owner(target) as u64, owned.index(target) as u32);
            }
            let (from, sizes) = (pages.roots[page as usize], [pages.sizes[page as usize], size as u32]);
            let can_merge = from != DocId::NONE && from != root && stage.condition.can_hold(sizes);
            if can_merge && (is_same_host || !stage.same_host) {
                watch.check(kept.push(ClusterLink { from, to: root, page: doc, target, sizes }));
            }
        })?;
        for block in all_to_all(cx, in_links)? {
            block.records().iter().for_each(|page| found.in_links[*page as usize] += 1);
        }
    }
    ensure!(source.read(1)?.is_empty(), "the table `links` has more rows than the week.json of its week says");
    Ok(found)
}
