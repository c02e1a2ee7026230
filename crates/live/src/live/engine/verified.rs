//! Verified clusters: candidates that are not similar enough are apart.
//!
//! Equal pages are one *page*: documents of one vector, and if texts decide, of one checksum. The
//! fragments and their labels are clusters of candidates. In each of these, all pairs of pages that
//! are similar enough are edges, and what edges connect is a *part*: the clusters.
//!
//! ```text
//! of a part                 edges that connect its pages are known; those of the tables are not: a part of the tables is taken as it is
//! two parts, one group      no page of the one is similar enough to one of the other: the pages of a group were compared
//! a page that comes         is compared with the pages of all parts, until one of a part is similar enough
//! candidates that merge     are of two groups: the pages of the smaller one are compared with those of the other
//! a page that goes          its edges go, and so do those between candidates that are apart now: the pieces of the part are compared
//! ```
//!
//! So the edges and groups are enough: nothing is kept of pairs that are not similar.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use anyhow::{Result, ensure};

use super::clusters::{ANOTHER_WAY, ClusterChange, Clusters, Moved};
use super::page::{Documents, EqualPage, PageSource};
use super::pairs::Pairs;
use super::sets::Sets;

/// Pages whose texts are read ahead.
const READ_AHEAD: usize = 2048;
/// The group of a page that was not compared with all others.
const NO_GROUP: u64 = 0;

/// The verified clusters.
pub(super) struct Verified {
    /// A set is a part of pages, or a piece of one; those of one part have one label until the next
    /// batch.
    pub(super) parts: Sets,
    pages: Vec<EqualPage>,
    free: Vec<u32>,
    by_node: BTreeMap<(u32, u128), u32>,
    pub(super) pairs: Pairs,
    /// Groups that were given.
    groups: u64,
    /// Whether the text of a document was never there.
    has_ready: bool,
    /// Of the batch: pages that were made, that lost documents, and that are to be compared again.
    made: Vec<u32>,
    left: BTreeSet<u32>,
    reopened: BTreeSet<u32>,
}

/// What a batch changed, between both steps of an update.
pub(super) struct Touched {
    /// The pages of each cluster of candidates of which anything changed.
    candidates: Vec<Vec<u32>>,
    /// The part that a piece was of.
    origins: BTreeMap<u32, u32>,
    freed: Vec<u32>,
}

impl Verified {
    pub(super) fn new(pairs: Pairs) -> Verified {
        Verified {
            parts: Sets::default(),
            pages: Vec::new(),
            free: Vec::new(),
            by_node: BTreeMap::new(),
            pairs,
            groups: NO_GROUP,
            has_ready: false,
            made: Vec::new(),
            left: BTreeSet::new(),
            reopened: BTreeSet::new(),
        }
    }

    /// The page of a document of a node with this checksum.
    pub(super) fn page_of(&self, node: u32, checksum: u128) -> u32 {
        *self.by_node.get(&self.key(node, checksum)).expect("a page that is there")
    }

    pub(super) fn page(&self, page: u32) -> &EqualPage {
        &self.pages[page as usize]
    }

    /// The pages of a node.
    pub(super) fn pages_of(&self, node: u32) -> impl Iterator<Item = u32> {
        self.by_node.range((node, 0)..=(node, u128::MAX)).map(|(_, page)| *page)
    }

    /// Whether features decided about a pair of a page's candidates, though texts should; or a
    /// bound did.
    pub(super) fn is_estimated(&self, page: u32) -> bool {
        self.page(page).is_estimated
    }

    fn key(&self, node: u32, checksum: u128) -> (u32, u128) {
        (node, if self.pairs.is_by_text() { checksum } else { 0 })
    }

    /// The page of a document that comes to a node; it is made if it is not there.
    fn make(&mut self, node: u32, checksum: u128) -> (u32, bool) {
        let key = self.key(node, checksum);
        if let Some(page) = self.by_node.get(&key) {
            return (*page, false);
        }
        let page = self.free.pop().unwrap_or(self.pages.len() as u32);
        if page as usize == self.pages.len() {
            self.pages.push(EqualPage::default());
        }
        self.by_node.insert(key, page);
        self.pages[page as usize] = EqualPage { node, checksum: key.1, ..EqualPage::default() };
        self.parts.grow(page);
        (page, true)
    }

    /// Adds a document to its page, before any batch. [`Verified::finish_load`] counts it.
    pub(super) fn load(&mut self, doc: u32, node: u32, checksum: u128) -> u32 {
        let page = self.make(node, checksum).0;
        self.pages[page as usize].docs.insert(doc);
        page
    }

    /// Makes parts of the pages that are there from the beginning, each with the id of its cluster.
    /// Returns the parts of several documents by id.
    ///
    /// # Errors
    /// If the ids are not those of parts of candidates.
    pub(super) fn finish_load(&mut self, ids: &[Option<i64>], candidates: &Sets) -> Result<BTreeMap<i64, u32>> {
        let mut roots: Vec<u32> = (0..self.pages.len() as u32).collect();
        let mut first_of: BTreeMap<i64, u32> = BTreeMap::new();
        for (page, id) in (0..).zip(ids) {
            let Some(id) = id else {
                ensure!(self.page(page).docs.len() == 1, ANOTHER_WAY);
                continue;
            };
            let first = *first_of.entry(*id).or_insert(page);
            let [of_first, own] = [first, page].map(|page| candidates.of(self.page(page).node));
            ensure!(of_first == own, ANOTHER_WAY);
            roots[page as usize] = first;
        }
        let pages = &self.pages;
        self.parts.load(&roots, |page| pages[page as usize].docs.len() as u32);
        let mut group_of: BTreeMap<u32, u64> = BTreeMap::new();
        for page in &mut self.pages {
            let of = candidates.of(page.node);
            let next = self.groups + 1;
            page.group = *group_of.entry(of).or_insert(next);
            self.groups = self.groups.max(page.group);
        }
        let named: BTreeMap<i64, u32> = first_of.iter().map(|(id, page)| (*id, self.parts.of(*page))).collect();
        for (id, part) in &named {
            ensure!(self.parts.set(*part).docs() > 1, ANOTHER_WAY);
            self.parts.set_mut(*part).id = *id;
        }
        Ok(named)
    }

    /// Begins a batch: the pieces of each part become one.
    pub(super) fn begin(&mut self) {
        self.pairs.begin();
        for label in self.parts.joined() {
            let class = self.parts.class(label);
            class.iter().for_each(|part| _ = self.parts.change_label(*part, label, -1));
            let size = |part: &u32| self.parts.members(*part).len();
            let Some(largest) = class.iter().copied().max_by_key(size) else { continue };
            class.into_iter().filter(|part| *part != largest).for_each(|part| self.parts.merge(part, largest));
        }
    }

    /// Adds a document to its page, which is made if it is not there. `has_text` says whether the
    /// document comes with its text. [`Verified::enter`] counts it.
    pub(super) fn put(&mut self, doc: u32, node: u32, checksum: u128, has_text: bool) -> u32 {
        let (page, is_made) = self.make(node, checksum);
        if is_made {
            let part = self.parts.make();
            self.parts.put(page, part);
            self.made.push(page);
        } else if self.pairs.is_by_text() && (!has_text || self.pairs.is_missing(page)) {
            self.reopened.insert(page);
        }
        self.has_ready |= self.pairs.is_by_text() && !has_text;
        self.pages[page as usize].docs.insert(doc);
        page
    }

    /// Takes a document from its page.
    pub(super) fn take(&mut self, doc: u32, page: u32) {
        self.pages[page as usize].docs.remove(&doc);
        self.parts.leave(page, doc);
        self.left.insert(page);
        // The other documents may have no text.
        if self.has_ready {
            self.reopened.insert(page);
        }
    }

    /// Counts a document that was put.
    pub(super) fn enter(&mut self, doc: u32, page: u32) {
        self.parts.enter(page, doc);
    }

    /// Takes apart what the batch took apart: parts that lost pages, or whose pages are not of one
    /// cluster of candidates any more. Documents that came are counted after this.
    pub(super) fn cut(&mut self, candidates: &mut Sets) -> Touched {
        let mut broken: BTreeSet<u32> = BTreeSet::new();
        let mut freed = Vec::new();
        let mut open: Vec<u32> = candidates.take_changed().into_iter().map(|set| candidates.label(set)).collect();
        // A text can be replaced by one of the same vector: then the candidates have not changed.
        let made = std::mem::take(&mut self.made).into_iter();
        open.extend(made.map(|page| candidates.label_of(self.page(page).node)));
        for page in std::mem::take(&mut self.left) {
            if !self.pages[page as usize].docs.is_empty() {
                continue;
            }
            self.reopened.remove(&page);
            self.drop_edges(page);
            let part = self.parts.of(page);
            self.parts.take(page);
            broken.insert(part);
            let EqualPage { node, checksum, .. } = std::mem::take(&mut self.pages[page as usize]);
            self.by_node.remove(&(node, checksum));
            self.pairs.forget(page);
            freed.push(page);
            // Of a node that is not there any more, the pages that are left go in this batch, too.
            if candidates.has(node) && self.pages_of(node).next().is_some() {
                open.push(candidates.label_of(node));
            }
        }
        for page in std::mem::take(&mut self.reopened) {
            self.drop_edges(page);
            self.pairs.forget(page);
            self.pages[page as usize].group = NO_GROUP;
            let part = self.parts.of(page);
            let id = self.parts.set(part).id;
            self.parts.take(page);
            broken.insert(part);
            let alone = self.parts.make();
            self.parts.set_mut(alone).id = id;
            self.parts.put(page, alone);
            open.push(candidates.label_of(self.page(page).node));
        }
        broken.retain(|part| self.parts.is_there(*part));

        // The candidates that anything changed of, and those that share a part with them.
        let (mut seen, mut parts, mut pages_of) = (BTreeSet::new(), BTreeSet::new(), Vec::new());
        for part in &broken {
            parts.insert(*part);
            let pages = self.parts.members(*part).iter();
            open.extend(pages.map(|page| candidates.label_of(self.page(*page).node)));
        }
        while let Some(label) = open.pop() {
            if !seen.insert(label) {
                continue;
            }
            let class = candidates.class(label);
            let nodes = class.iter().flat_map(|fragment| candidates.members(*fragment));
            let mut pages: Vec<u32> = nodes.flat_map(|node| self.pages_of(*node)).collect();
            pages.sort_unstable();
            for page in &pages {
                let part = self.parts.of(*page);
                if parts.insert(part) {
                    let others = self.parts.members(part).iter();
                    let labels = others.map(|other| candidates.label_of(self.page(*other).node));
                    let before = open.len();
                    open.extend(labels.filter(|other| *other != label));
                    if open.len() > before {
                        broken.insert(part);
                    }
                }
            }
            pages_of.push((label, pages));
        }
        pages_of.sort_unstable();
        let mut origins = BTreeMap::new();
        for part in broken {
            self.break_up(part, candidates, &mut origins);
        }
        Touched { candidates: pages_of.into_iter().map(|(_, pages)| pages).collect(), origins, freed }
    }

    fn drop_edges(&mut self, page: u32) {
        for other in std::mem::take(&mut self.pages[page as usize].edges) {
            self.pages[other as usize].edges.retain(|end| *end != page);
        }
    }

    /// Makes parts of the pieces of a part: of what edges within one cluster of candidates connect.
    fn break_up(&mut self, part: u32, candidates: &Sets, origins: &mut BTreeMap<u32, u32>) {
        let members = self.parts.members(part).to_vec();
        let label_of = |pages: &[EqualPage], page: u32| candidates.label_of(pages[page as usize].node);
        for page in &members {
            let label = label_of(&self.pages, *page);
            let mut edges = std::mem::take(&mut self.pages[*page as usize].edges);
            edges.retain(|other| label_of(&self.pages, *other) == label);
            self.pages[*page as usize].edges = edges;
        }
        let mut found: BTreeSet<u32> = BTreeSet::new();
        let mut pieces: Vec<Vec<u32>> = Vec::new();
        for page in members {
            if !found.insert(page) {
                continue;
            }
            let (mut piece, mut open) = (vec![page], VecDeque::from([page]));
            while let Some(page) = open.pop_front() {
                for other in &self.page(page).edges {
                    if found.insert(*other) {
                        piece.push(*other);
                        open.push_back(*other);
                    }
                }
            }
            pieces.push(piece);
        }
        if pieces.len() < 2 {
            return;
        }
        let id = self.parts.set(part).id;
        let largest = (0..pieces.len()).max_by_key(|piece| pieces[*piece].len()).unwrap_or_default();
        origins.insert(part, part);
        for (_, piece) in pieces.into_iter().enumerate().filter(|(number, _)| *number != largest) {
            let new = self.parts.make();
            self.parts.set_mut(new).id = id;
            origins.insert(new, part);
            for page in piece {
                self.parts.take(page);
                self.parts.put(page, new);
            }
        }
    }

    /// Compares what is not known to be apart, and gives one label to the pieces of each part.
    ///
    /// # Errors
    /// If a text cannot be looked for, or a process is gone that has features.
    pub(super) fn join(&mut self, touched: Touched, documents: &mut dyn Documents) -> Result<()> {
        let Touched { candidates, origins, freed } = touched;
        let mut rest = &candidates[..];
        while !rest.is_empty() {
            let mut pages = 0;
            let fits = rest.iter().take_while(|candidates| {
                pages += candidates.len();
                pages <= READ_AHEAD
            });
            let (some, others) = rest.split_at(fits.count().max(1));
            let compared = some.iter().filter(|pages| pages.len() > 1).flatten();
            let docs: Vec<u32> = compared.filter_map(|page| self.page(*page).docs.first().copied()).collect();
            documents.fetch(&docs)?;
            self.read_ahead(some, &origins, documents)?;
            for pages in some {
                self.join_candidates(pages, &origins, documents)?;
            }
            rest = others;
        }
        self.free.extend(freed);
        self.parts.reuse_freed();
        Ok(())
    }

    /// Gives ids to the clusters after a batch, and returns what became of those before it.
    pub(super) fn name_clusters(&mut self, clusters: &mut Clusters, moved: &[Moved]) -> Vec<ClusterChange> {
        let pages = &self.pages;
        clusters.update(&mut self.parts, moved, |parts, part| {
            parts.first_of(part, |page| pages[page as usize].docs.first().copied())
        })
    }

    /// The smallest document of a part.
    pub(super) fn first(&mut self, part: u32) -> u32 {
        let pages = &self.pages;
        self.parts.first_of(part, |page| pages[page as usize].docs.first().copied())
    }

    /// Reads the texts that are compared, in few passes: of candidates of which some may have come,
    /// those that did, each with the likeliest one, and then the others.
    fn read_ahead(
        &mut self,
        candidates: &[Vec<u32>],
        origins: &BTreeMap<u32, u32>,
        documents: &mut dyn Documents,
    ) -> Result<()> {
        if !self.pairs.is_by_text() {
            return Ok(());
        }
        let source = &mut PageSource { pages: &self.pages, documents };
        let is_open =
            |page: &u32| source.pages[*page as usize].group == NO_GROUP || origins.contains_key(&self.parts.of(*page));
        let (mut first, mut others) = (Vec::new(), Vec::new());
        for pages in candidates.iter().filter(|pages| pages.len() > 1 && pages.iter().any(is_open)) {
            for page in pages.iter().filter(|page| is_open(page)).take(READ_AHEAD) {
                first.extend([Some(*page), source.likeliest(*page, pages)].into_iter().flatten());
            }
            others.extend(pages.iter().copied().take(READ_AHEAD));
        }
        let mut listed = BTreeSet::new();
        let mut wanted: Vec<u32> = first.into_iter().chain(others).filter(|page| listed.insert(*page)).collect();
        wanted.truncate(READ_AHEAD);
        self.pairs.read(&wanted, source)?;
        Ok(())
    }

    /// Compares the pages of one cluster of candidates, which ascend.
    fn join_candidates(
        &mut self,
        pages: &[u32],
        origins: &BTreeMap<u32, u32>,
        documents: &mut dyn Documents,
    ) -> Result<()> {
        let mut listed = BTreeSet::new();
        let parts: Vec<u32> =
            pages.iter().map(|page| self.parts.of(*page)).filter(|part| listed.insert(*part)).collect();
        let mut in_group: BTreeMap<u64, usize> = BTreeMap::new();
        for page in pages {
            *in_group.entry(self.page(*page).group).or_default() += 1;
        }
        in_group.remove(&NO_GROUP);
        let largest = in_group.iter().max_by_key(|(_, pages)| **pages).map_or(NO_GROUP, |(group, _)| *group);
        let group = |of: &Verified, part: u32| of.page(of.parts.members(part)[0]).group;
        let is_settled = |of: &Verified, part: u32| {
            let group = group(of, part);
            group != NO_GROUP && group == largest && !origins.contains_key(&part)
        };
        let (settled, open): (Vec<u32>, Vec<u32>) = parts.iter().copied().partition(|part| is_settled(self, *part));
        // Also of one piece alone: the other pieces of its part have the same group.
        if !open.is_empty() {
            let mut connected: Vec<Vec<u32>> = settled.into_iter().map(|part| vec![part]).collect();
            for part in open {
                if self.pairs.is_spent() {
                    connected.push(vec![part]);
                    continue;
                }
                let (mut joined, mut rest) = (vec![part], Vec::with_capacity(connected.len() + 1));
                for others in connected {
                    match self.edge(part, &others, origins, documents)? {
                        Some([page, other]) => {
                            self.pages[page as usize].edges.push(other);
                            self.pages[other as usize].edges.push(page);
                            joined.extend(others);
                        }
                        None => rest.push(others),
                    }
                }
                rest.push(joined);
                connected = rest;
            }
            for parts in connected.iter().filter(|parts| parts.len() > 1) {
                let label = parts.iter().copied().min().unwrap_or_default();
                parts.iter().for_each(|part| _ = self.parts.change_label(*part, label, 1));
            }
            self.groups += 1;
            pages.iter().for_each(|page| self.pages[*page as usize].group = self.groups);
        }
        let is_rough = self.pairs.take_rough() || pages.iter().any(|page| self.page(*page).is_rough);
        let is_estimated = pages.len() > 1 && (is_rough || pages.iter().any(|page| self.pairs.is_missing(*page)));
        for page in pages {
            let page = &mut self.pages[*page as usize];
            (page.is_rough, page.is_estimated) = (is_rough, is_estimated);
        }
        Ok(())
    }

    /// A page of a part, and a page of some others that is similar enough to it and not known to be
    /// apart.
    fn edge(
        &mut self,
        part: u32,
        others: &[u32],
        origins: &BTreeMap<u32, u32>,
        documents: &mut dyn Documents,
    ) -> Result<Option<[u32; 2]>> {
        let Verified { parts, pages, pairs, .. } = self;
        let group = |part: u32| pages[parts.members(part)[0] as usize].group;
        let own = group(part);
        // Pieces of one part were not compared, though they are of one group.
        let is_apart = |other: u32| {
            let origin = origins.get(&part);
            own != NO_GROUP && own == group(other) && (origin.is_none() || origin != origins.get(&other))
        };
        let source = &mut PageSource { pages, documents };
        for page in parts.members(part) {
            let unknown = others.iter().filter(|other| !is_apart(**other));
            let unknown = unknown.flat_map(|other| parts.members(*other)).copied();
            if let Some(other) = pairs.find(*page, unknown, source)? {
                return Ok(Some([*page, other]));
            }
        }
        Ok(None)
    }
}
