//! Members: the pages and links of each similar cluster meet at one worker, which grows its
//! collections; the owner of each page learns of its collection.
//!
//! ```text
//! edges of merged clusters ─▶ components of roots: the similar clusters
//! page:   similar cluster, page, root, host and facts of it, links      64 bytes, to the owner of the similar cluster
//! link:   similar cluster, both pages                                          in a record of that size
//! reply:  page, its collection, the principal one, and facts of all            72 bytes, to the owner of the page
//! ```

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;
use std::sync::Arc;

use anyhow::Result;
use bytemuck::{Pod, Zeroable};
use nigh_exchange::{
    BlockOf, Context, Dealer, KeptRecords, KeyRanges, LocalAnswers, Partition, RangeDealer, by_key, lookup,
};

use super::clustered::ClusteredPages;
use super::growth::{GrowingPage, grow};
use super::hosts::{FactsByHost, FirstSeen, host_facts};
use super::statistics::{MergedClusters, MergedLink};
use crate::host_order::{HostFacts, HostLeads};
use crate::operators::components::component_roots;
use crate::operators::output::cluster_sizes;
use crate::records::{DocId, Edge, mix};
use crate::structures::{CompactSort, Ownership};

/// Records of a partition, at most: their sorting stays in the second-level cache.
const MOST_RECORDS: u64 = 1 << 14;
/// Pages or links that are dealt at once, between two checks of the clock.
const AT_ONCE: usize = 1 << 12;

/// A page of a similar cluster with more than one trivial cluster, and its collection.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Pod, Zeroable)]
#[repr(C)]
pub struct CollectionPage {
    /// The page.
    pub doc: DocId,
    /// The similar cluster: its smallest root.
    pub cluster: DocId,
    /// The collection: its smallest page.
    pub collection: DocId,
    /// The smallest page of the principal collection.
    pub principal: DocId,
    /// The page of the principal collection that most links from other hosts lead to; of several,
    /// the smallest.
    pub entry: DocId,
    /// The pages of the collection.
    pub pages: u32,
    /// The links from other hosts to the collection.
    pub in_links: u32,
    /// The trivial clusters of the similar cluster: the size of a whole collection.
    pub size: u32,
    /// The most pages of one of its trivial clusters: the number of collections, if all are whole.
    pub cardinality: u32,
    /// The pages of the similar cluster.
    pub of_cluster: u32,
    /// The collections of the similar cluster.
    pub collections: u32,
    /// 1 if the principal collection has a page of the page's trivial cluster, else 0.
    pub has_principal: u32,
    /// The pages of the largest collection that is not principal.
    pub largest_copy: u32,
}

impl CollectionPage {
    /// Whether the page is of a principal collection.
    pub fn is_principal(&self) -> bool {
        self.collection == self.principal
    }
}

/// A page or a link on its way to the owner of its similar cluster.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Pod, Zeroable)]
#[repr(C)]
struct ClusterRecord {
    cluster: DocId,
    /// 0 for a page, 1 for a link. Pages come first.
    is_link: u64,
    doc: DocId,
    /// The root of the page's trivial cluster, or the page that the link leads to.
    other: DocId,
    host: u64,
    of_host: HostFacts,
    in_links: u32,
}

/// The collections of own pages, and what was counted on the way.
#[derive(Debug, Default)]
pub struct CollectionMembers {
    /// The own pages of similar clusters, ascending by page.
    pub pages: Vec<CollectionPage>,
    /// Links that could have joined two partial collections, and did not; of similar clusters at
    /// this worker.
    pub ambiguous: u64,
}

/// Puts together the collections of all similar clusters.
///
/// # Errors
/// If a file cannot be read or written (names it), or a worker of this process failed.
pub fn members(
    cx: &mut Context,
    owned: &Ownership,
    pages: &Arc<ClusteredPages>,
    in_links: Vec<u32>,
    merged: MergedClusters,
    first_seen: FirstSeen,
    leads: &HostLeads,
) -> Result<CollectionMembers> {
    let MergedClusters { edges, links, .. } = merged;
    let hosts = host_facts(cx, owned, pages, &in_links, &first_seen, leads)?;
    let clusters = Rc::new(similar_clusters(cx, owned, pages, edges)?);
    let own = clusters.iter().filter(|cluster| **cluster != DocId::NONE).count() + links.len();
    let all = cx.sum(own as u64)?;
    let cut = KeyRanges::new(all, MOST_RECORDS, size_of::<ClusterRecord>(), 1, cx.peers(), cx.memory());
    let source = Rc::new(PartSource {
        shards: owned.shards().collect(),
        owned: owned.clone(),
        pages: pages.clone(),
        clusters,
        in_links,
        hosts,
        links,
    });
    let open = move || {
        let (source, mut at) = (source.clone(), PartPlace::default());
        move |deal: &mut RangeDealer<'_, ClusterRecord>| source.deal(&mut at, deal)
    };
    let ambiguous = Rc::new(RefCell::new(0));
    let find = {
        let (ambiguous, peers) = (ambiguous.clone(), cx.peers());
        let mut parts: Vec<ClusterRecord> = Vec::new();
        move |partition: &Partition<'_, ClusterRecord>, dealer: &mut Dealer<CollectionPage>| {
            parts.clear();
            partition.blocks(|block| parts.extend(block.records()))?;
            parts.sort_rows();
            for cluster in parts.chunk_by(|a, b| a.cluster == b.cluster) {
                *ambiguous.borrow_mut() +=
                    grow_cluster(cluster, |page| dealer.deal(page.doc.owner(peers) as u64, page));
            }
            Ok(())
        }
    };
    let found: Rc<RefCell<Vec<CollectionPage>>> = Rc::default();
    let take = {
        let found = found.clone();
        move |block: BlockOf<CollectionPage>| found.borrow_mut().extend(block.records())
    };
    by_key(cx, "Members", cut, cx.spill_buffer(), open, find, take)?;
    let mut pages = found.take();
    pages.sort_rows();
    let ambiguous = *ambiguous.borrow();
    Ok(CollectionMembers { pages, ambiguous })
}

/// By own page: its similar cluster, if that has more than one trivial cluster, else
/// [`DocId::NONE`].
fn similar_clusters(
    cx: &mut Context,
    owned: &Ownership,
    pages: &ClusteredPages,
    edges: Vec<Edge>,
) -> Result<Vec<DocId>> {
    let components = component_roots(cx, owned, edges)?;
    // Nodes that are no roots of trivial clusters are alone.
    let sizes = cluster_sizes(cx, owned, components.iter().copied())?;
    let of_root: Vec<u64> = components
        .iter()
        .map(|component| if sizes.members(*component) > 1 { *component } else { DocId::NONE }.to_table() as u64)
        .collect();
    let local = LocalAnswers::own(cx, move |root: usize| [of_root[root]]);
    let numbers: Vec<u32> =
        (0..).zip(&pages.roots).filter(|(_, root)| **root != DocId::NONE).map(|(at, _)| at).collect();
    let roots: Rc<Vec<DocId>> = Rc::new(numbers.iter().map(|page| pages.roots[*page as usize]).collect());
    let questions = || {
        let roots = roots.clone();
        (0..roots.len()).map(move |at| roots[at])
    };
    let mut clusters = vec![DocId::NONE; owned.len()];
    lookup(cx, owned, questions, &local, |at, [cluster]| {
        clusters[numbers[at] as usize] = DocId::from_table(cluster as i64);
    })?;
    Ok(clusters)
}

/// How far the parts are dealt.
#[derive(Default)]
struct PartPlace {
    /// Among own shards.
    shard: usize,
    row: usize,
    /// Of links.
    block: usize,
}

/// The own pages of similar clusters, and their links.
struct PartSource {
    owned: Ownership,
    shards: Vec<u32>,
    pages: Arc<ClusteredPages>,
    /// By own page: its similar cluster.
    clusters: Rc<Vec<DocId>>,
    in_links: Vec<u32>,
    hosts: FactsByHost,
    links: KeptRecords<MergedLink>,
}

impl PartSource {
    /// Deals some parts: first pages, by shard, then links. Returns `false` when there were none
    /// left.
    fn deal(&self, at: &mut PartPlace, deal: &mut RangeDealer<'_, ClusterRecord>) -> Result<bool> {
        let Some(shard) = self.shards.get(at.shard).copied() else { return self.deal_links(at, deal) };
        let of_shard = self.owned.of_shard(shard);
        let end = (at.row + AT_ONCE).min(of_shard.len());
        for row in at.row..end {
            let page = of_shard.start + row;
            let cluster = self.clusters[page];
            if cluster != DocId::NONE {
                let doc = DocId::new(shard, row as u64);
                let part = ClusterRecord {
                    cluster,
                    is_link: 0,
                    doc,
                    other: self.pages.roots[page],
                    host: self.pages.hosts[page],
                    in_links: self.in_links[page],
                    of_host: self.hosts.get(&self.pages.hosts[page]).copied().unwrap_or_default(),
                };
                deal.deal(0, mix(cluster.to_table() as u64), part);
            }
        }
        (at.shard, at.row) = if end == of_shard.len() { (at.shard + 1, 0) } else { (at.shard, end) };
        Ok(true)
    }

    fn deal_links(&self, at: &mut PartPlace, deal: &mut RangeDealer<'_, ClusterRecord>) -> Result<bool> {
        self.links.block(at.block, |links| {
            for MergedLink { page, target } in links {
                let cluster = self.clusters[self.owned.index(*page)];
                let part = ClusterRecord { cluster, is_link: 1, doc: *page, other: *target, ..ClusterRecord::zeroed() };
                deal.deal(0, mix(cluster.to_table() as u64), part);
            }
        })?;
        at.block += 1;
        Ok(at.block < self.links.blocks())
    }
}

/// Grows the collections of one similar cluster, and calls `each` with its pages. Returns the
/// number of ambiguous links.
fn grow_cluster(parts: &[ClusterRecord], mut each: impl FnMut(CollectionPage)) -> u64 {
    let (pages, links) = parts.split_at(parts.partition_point(|part| part.is_link == 0));
    let pages: Vec<GrowingPage> = pages
        .iter()
        .map(|part| GrowingPage {
            doc: part.doc,
            root: part.other,
            host: part.host,
            in_links: part.in_links,
            of_host: part.of_host,
        })
        .collect();
    let links: Vec<(DocId, DocId)> = links.iter().map(|part| (part.doc, part.other)).collect();
    let grown = grow(&pages, &links);
    let mut of_root: BTreeMap<DocId, u32> = BTreeMap::new();
    pages.iter().for_each(|page| *of_root.entry(page.root).or_default() += 1);
    let Some(principal) = grown.collections.first() else { return 0 };
    let doc = |page: u32| pages[page as usize].doc;
    let entry = principal.pages.iter().max_by_key(|page| (pages[**page as usize].in_links, std::cmp::Reverse(**page)));
    let of_cluster = CollectionPage {
        cluster: parts[0].cluster,
        principal: doc(principal.pages[0]),
        entry: entry.map_or(DocId::NONE, |page| doc(*page)),
        size: of_root.len() as u32,
        cardinality: of_root.values().copied().max().unwrap_or_default(),
        of_cluster: pages.len() as u32,
        collections: grown.collections.len() as u32,
        largest_copy: grown.collections[1..].iter().map(|copy| copy.pages.len() as u32).max().unwrap_or_default(),
        ..CollectionPage::zeroed()
    };
    let root = |page: &u32| pages[*page as usize].root;
    let of_principal: BTreeSet<DocId> = principal.pages.iter().map(root).collect();
    for collection in &grown.collections {
        let (first, count) = (doc(collection.pages[0]), collection.pages.len() as u32);
        let in_links = collection.in_links.min(u32::MAX.into()) as u32;
        let of_collection = CollectionPage { collection: first, pages: count, in_links, ..of_cluster };
        for page in &collection.pages {
            let has_principal = of_principal.contains(&root(page)).into();
            each(CollectionPage { doc: doc(*page), has_principal, ..of_collection });
        }
    }
    grown.ambiguous
}
