//! Updates last week's roots to this week's, from the documents that changed.
//!
//! A delta is worth it below about 2.5% of changed documents, or 2.2% without postings; above, full
//! clustering is faster (SPEED.md, section 4). Its cost is one pass over the hashes of both weeks'
//! vectors, and work in proportion to the change; without postings, one pass over this week's
//! supershingles, too.
//!
//! ```text
//! changes            documents whose vectors differ: retracted with the old vector, inserted with the new one
//! remaining members  the smallest unchanged member of each cluster that a changed document had. A retracted document needs
//!                    no certificate if its old cluster has no unchanged member, or one with the identical vector: that
//!                    member has all of its keys
//! candidates         unchanged documents that share enough supershingles with the changed ones: by postings, or by a scan
//! key holders        changed documents and candidates, by key, at the key's owner; a few candidates for each key
//! certificate        proves that a retracted document does not split its cluster, by its own keys, or by all keys of their
//!                    holders; without a proof the cluster is uncertified
//! split components   the components of what remains of uncertified clusters: most are still whole
//! leaves             changed documents that join one cluster and nothing else take its label
//! relabel            the other changed documents, the split components, and one node for each other cluster that a key
//!                    reaches: differences of labels, by differential dataflow
//! apply              the new roots of all these; clusters that were joined, or lost their root, get a new root as a whole
//! ```
//!
//! The result is that of full clustering of this week's vectors: every step is exact, or errs
//! towards examining a whole cluster.
//!
//! If too much changed for the memory, the change is cut into slices of rows, each a step of its
//! own: before a step the documents of its slice and of later ones have their old vectors, and
//! after it those of its slice and of earlier ones have their new ones.
//!
//! Postings are an inverted index (`sharing/postings.rs`): a merge-join of the supershingles to
//! look up with sorted runs on disk, a word for each posting. They are of supershingles and not of
//! keys: six for each document instead of fifteen, and the vector of a candidate, which has the
//! keys, must be read in any case. A store has postings after its first delta, which makes them of
//! all vectors. Without them, and between slices, where some vectors are this week's, the column of
//! supershingles is read once in the order of documents. Everything else is read at its rows: the
//! vectors of documents that changed, that share supershingles with these, or whose clusters are
//! uncertified.

use std::rc::Rc;

use anyhow::{Result, bail, ensure};
use bytemuck::{Pod, Zeroable};
use nigh_exchange::{BlockOf, Context, LocalAnswers, all_to_all, blocks, lookup};

use super::step::{Delta, RowSlice, SliceStep};
use crate::kernels::{Kernels, chosen};
use crate::operators::delta::relabel::{NewRoots, incremental_labels};
use crate::operators::delta::sharing::{
    ChangedKeys, DealtHolders, DocSet, HolderReply, KeyGroups, KeyHolder, KeyRole, Remainder, RootOf, changes, doc_of,
    word_of,
};
use crate::operators::delta::splits::{
    Remaining, RemainingHolder, SplitMember, Uncertified, is_certified, label_leaves, remaining, split_components,
    take_leaves, wide_certificates,
};
use crate::operators::scan::VectorRoots;
use crate::records::DocId;
use crate::state::PostingRuns;
use crate::structures::{ByKey, CompactSort, DocFilter};
use crate::watch::Stage;

/// What a delta did at one worker.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DeltaStats {
    /// Own documents whose vectors changed, appeared or disappeared.
    pub changed: u64,
    /// Own unchanged documents of uncertified clusters, which were clustered again; one for each
    /// distinct vector.
    pub examined: u64,
    /// Own changed documents whose old cluster has unchanged members.
    pub retracted: u64,
    /// Those of them that have no certificate.
    pub uncertified: u64,
    /// Own candidates: unchanged documents whose keys were looked at, because they share
    /// supershingles with changed ones.
    pub candidates: u64,
    /// Differences of edges that went to differential dataflow.
    pub edges: u64,
    /// Differences of labels that came from it.
    pub differences: u64,
    /// The roots of all clusters of which anything changed, members or a vector; of all workers,
    /// ascending.
    pub changed_clusters: Vec<DocId>,
    /// The runs of postings with the one that this week adds, if [`Delta::next_run`] says where.
    pub postings: Option<PostingRuns>,
}

impl DeltaStats {
    /// Adds what the next step did.
    fn add(&mut self, step: DeltaStats) {
        self.changed += step.changed;
        self.examined += step.examined;
        self.retracted += step.retracted;
        self.uncertified += step.uncertified;
        self.candidates += step.candidates;
        self.edges += step.edges;
        self.differences += step.differences;
        self.changed_clusters.extend(step.changed_clusters);
        self.postings = step.postings;
    }
}

/// Updates the roots of last week's vectors to those of this week's, slice by slice.
///
/// # Errors
/// If vectors cannot be read or a table is damaged, or a worker of this process failed.
pub fn delta(cx: &mut Context, delta: &Delta<'_>, roots: &mut VectorRoots) -> Result<DeltaStats> {
    debug_assert!(delta.slices == 1 || delta.index.is_none(), "between slices some vectors are not in the postings");
    let mut stats = DeltaStats::default();
    for index in 0..delta.slices {
        let slice = RowSlice { index, count: delta.slices, owned: delta.owned };
        let changes = changes(delta.before, delta.after, |doc| slice.order(doc).is_eq())?;
        if let Some(doc) = changes.docs.iter().find(|doc| !delta.owned.knows(**doc)) {
            bail!("features has document {doc}, unknown to its shard: the table is damaged");
        }
        stats.add(SliceStep { delta, slice, changes }.update_roots(cx, roots)?);
    }
    // A later slice may have given a new root to a cluster that an earlier one reported. The
    // reported document is still a member, or its new cluster was reported again.
    let own = stats.changed_clusters.iter().filter(|root| delta.owned.has(**root));
    let new_roots =
        own.map(|root| roots.similar[delta.owned.index(*root)]).filter(|root| *root != DocId::NONE).collect();
    stats.changed_clusters = cx.sorted(new_roots)?;
    stats.changed_clusters.dedup();
    Ok(stats)
}

/// The changes of the roots of virtually identical documents.
struct IdenticalRoots {
    /// The new root of each own changed document that has a vector other documents have, too.
    of_changed: RootOf,
    /// The new root of each class that has another one now, by the old one; at all workers.
    renamed: RootOf,
}

/// To the owner of a document: its new root among virtually identical documents.
#[derive(Clone, Copy, Debug, Pod, Zeroable)]
#[repr(C)]
struct NewIdenticalRoot {
    doc: DocId,
    root: DocId,
}

impl SliceStep<'_> {
    /// Updates the roots to what they are after the changes of this slice: the heart of the weekly
    /// update.
    ///
    /// Morally it does this:
    ///
    /// ```text
    /// remaining   = smallest unchanged member of each cluster that a changed document had
    /// holders     = by key: changed documents before and after, unchanged documents that share the key
    /// uncertified = clusters of retracted documents that have no certificate
    /// components  = what the unchanged members of each uncertified cluster fall into
    /// nodes       = changed documents, components, and every other cluster with a holder as one node
    /// edges       = between all nodes that hold a key, before and after the change
    /// label       = the component of each node by the edges after the change; computed from the differences of edges
    /// for each document d of a touched cluster:
    ///     root[d] = smallest document of all nodes with the label of d's node
    /// ```
    fn update_roots(&self, cx: &mut Context, roots: &mut VectorRoots) -> Result<DeltaStats> {
        let delta = self.delta;
        let mut stats = DeltaStats { changed: self.changes.len() as u64, ..DeltaStats::default() };

        // Changes: how many there are, and their postings.
        let all_changed: u64 = cx.sum(stats.changed)?;
        if let (Some(index), Some(next)) = (delta.index, delta.next_run) {
            cx.enter(Stage::Postings);
            stats.postings = Some(index.add(cx, &self.changes, next)?);
        }
        if all_changed == 0 {
            return Ok(stats);
        }

        // Remaining members.
        cx.enter(Stage::Holders);
        let (width, kernels) = (delta.after.width, chosen()?);
        let remaining = remaining(cx, &self.changes.docs, roots, delta.owned, kernels)?;
        let remainders = self.remainders(roots, &remaining);
        stats.retracted = remainders.iter().filter(|remainder| **remainder != Remainder::None).count() as u64;

        // Candidates.
        let filter = cx.shared().of(|| ChangedKeys::new(2 * all_changed * width as u64, width, kernels));
        self.insert_supershingles(cx, &filter, &remainders)?;
        let candidates = self.find_candidates(cx, &filter, roots, &remaining, &remainders)?;
        stats.candidates = candidates.docs.len() as u64;

        // Key holders.
        let DealtHolders { by_key, by_vector, .. } = self.deal_holders(cx, &filter, candidates, roots, &remainders)?;
        let key_groups = KeyGroups::new(all_to_all(cx, by_key)?);
        let by_vector = all_to_all(cx, by_vector)?;
        drop(filter);

        // Certificates.
        cx.enter(Stage::Certificates);
        let uncertified = self.uncertified_clusters(cx, &key_groups, roots, &mut stats)?;

        // Split components.
        let split_members = self.split_members(cx, &uncertified, roots, &remaining, &mut stats)?;
        let reached = key_groups.reached_components(cx, delta.owned, &uncertified, &split_members)?;

        // Leaves.
        cx.enter(Stage::Relabel);
        let (edges, leaves) = take_leaves(cx, key_groups.edges(&uncertified, reached))?;
        stats.edges = edges.len() as u64;

        // Relabel.
        let (labels, differences) = incremental_labels(cx, edges)?;
        stats.differences = differences;
        let labels = label_leaves(cx, labels, leaves)?;

        // New roots: a cluster that stays whole and lost its root has another smallest member.
        let Remaining { similar: mut smallest_remaining, identical: first_identical, .. } = remaining;
        smallest_remaining.retain(|root, smallest| root != smallest && !uncertified.contains(root));
        let new_roots = NewRoots::new(&labels, smallest_remaining);
        let changed = self.changed_clusters(roots, &remainders, &uncertified, &split_members, &labels, &new_roots);
        stats.changed_clusters = cx.sorted(changed)?;
        stats.changed_clusters.dedup();
        let identical = self.identical_roots(cx, by_vector, first_identical)?;

        // Apply.
        self.apply(roots, &split_members, &new_roots, &identical, kernels);
        Ok(stats)
    }

    /// The old roots, at all workers, of clusters that a retracted document without a certificate
    /// leaves.
    ///
    /// Most documents are certified by their own keys. The few others are tried again, by all keys
    /// of the holders of these.
    fn uncertified_clusters(
        &self,
        cx: &mut Context,
        key_groups: &KeyGroups,
        roots: &VectorRoots,
        stats: &mut DeltaStats,
    ) -> Result<DocSet> {
        let (delta, watch) = (self.delta, cx.watch());
        let mut replies: Vec<HolderReply> = blocks(all_to_all(cx, key_groups.replies(cx, watch))?);
        replies.sort_rows();
        let mut by_own_keys = Vec::new();
        for of_doc in replies.chunk_by(|a, b| a.retracted == b.retracted) {
            let holder = |reply: &HolderReply| RemainingHolder { doc: reply.holder, slot: reply.slot as u32 };
            let mut holders: Vec<RemainingHolder> = of_doc.iter().map(holder).collect();
            if !is_certified(&mut holders, u32::MAX) {
                by_own_keys.push(Uncertified { doc: of_doc[0].retracted, holders });
            }
        }
        let unchanged = |docs: &[DocId]| self.unchanged_vectors(docs);
        let before = |doc| self.changes.docs.binary_search(&doc).ok().and_then(|index| self.changes.before(index));
        let mut uncertified = DocSet::default();
        for (doc, is_certified) in wide_certificates(cx, by_own_keys, unchanged, before, delta.keys)? {
            if !is_certified {
                stats.uncertified += 1;
                uncertified.insert(roots.similar[delta.owned.index(doc)]);
            }
        }
        Ok(cx.sorted(uncertified.into_iter().collect())?.into_iter().collect())
    }

    /// The own unchanged members of uncertified clusters, ascending, with their split components.
    ///
    /// Of members with the identical vector only the first is examined; the others follow it.
    fn split_members(
        &self,
        cx: &mut Context,
        uncertified: &DocSet,
        roots: &VectorRoots,
        remaining: &Remaining,
        stats: &mut DeltaStats,
    ) -> Result<Vec<SplitMember>> {
        if uncertified.is_empty() {
            return Ok(Vec::new());
        }
        let delta = self.delta;
        let similar_root = |doc| roots.similar[delta.owned.index(doc)];
        let identical_root = |doc| roots.identical[delta.owned.index(doc)];

        // The members, and the first that is identical to each. Few unchanged members of touched
        // clusters are in an uncertified one: the filter rejects most others.
        let filter = DocFilter::new(uncertified.iter(), chosen()?);
        let is_uncertified = |root| filter.may_have(root) && uncertified.contains(&root);
        let members: Vec<DocId> =
            remaining.members.iter().copied().filter(|doc| is_uncertified(similar_root(*doc))).collect();
        let first_of = |doc: &DocId| {
            let root = identical_root(*doc);
            remaining.identical.get(&root).copied().unwrap_or(root)
        };
        let firsts: Vec<DocId> = members.iter().map(first_of).collect();

        // The components of the first ones.
        let own_firsts: Vec<DocId> =
            members.iter().zip(&firsts).filter(|(doc, first)| doc == first).map(|(doc, _)| *doc).collect();
        let vectors = self.unchanged_vectors(&own_firsts)?;
        ensure!(vectors.docs == own_firsts, "features lacks documents of last week's clusters: a table is damaged");
        stats.examined = own_firsts.len() as u64;
        let components = split_components(cx, vectors, delta.keys, delta.threads, delta.owned)?;

        // The components of all members: a first one may have another owner.
        let index_of = |doc: &DocId| delta.owned.index(*doc) as u64;
        let component_of: ByKey<u64, DocId> = own_firsts.iter().map(index_of).zip(components).collect();
        let answer = move |index: usize| {
            let component = component_of.get(&(index as u64)).copied();
            [word_of(component.unwrap_or(DocId::NONE))]
        };
        let local = LocalAnswers::own(cx, answer);
        let firsts: Rc<[DocId]> = firsts.into();
        let questions = || {
            let firsts = firsts.clone();
            (0..firsts.len()).map(move |member| firsts[member])
        };
        let mut split_members = Vec::with_capacity(members.len());
        lookup(cx, delta.owned, questions, &local, |member, [component]| {
            split_members.push(SplitMember { doc: members[member], component: doc_of(component) });
        })?;
        if let Some(SplitMember { doc, .. }) = split_members.iter().find(|member| member.component == DocId::NONE) {
            bail!("document {doc} is not in the cluster of the first document identical to it: a table is damaged");
        }
        Ok(split_members)
    }

    /// The new roots of clusters of which anything changed; at the owners of documents that show
    /// it, some more than once.
    fn changed_clusters(
        &self,
        roots: &VectorRoots,
        remainders: &[Remainder],
        uncertified: &DocSet,
        split_members: &[SplitMember],
        labels: &[(u64, u64)],
        new_roots: &NewRoots,
    ) -> Vec<DocId> {
        let owned = self.delta.owned;
        // Certified clusters that lost documents.
        let retracted =
            self.changes.docs.iter().zip(remainders).filter(|(_, remainder)| **remainder != Remainder::None);
        let old_roots = retracted.map(|(doc, _)| roots.similar[owned.index(*doc)]);
        let certified = old_roots.filter(|root| !uncertified.contains(root));
        let mut changed: Vec<DocId> = certified.map(|root| new_roots.of_cluster(root)).collect();
        // What uncertified clusters became.
        let components = split_members.iter().filter(|member| member.doc == member.component);
        changed.extend(components.map(|member| new_roots.of_cluster(member.component)));
        // Clusters that inserted documents joined, or made.
        let joined = labels.iter().map(|(_, label)| new_roots.roots[label]);
        changed.extend(joined.filter(|root| owned.has(*root)));
        changed
    }

    /// The changes of the roots of virtually identical documents.
    ///
    /// `by_vector` are the documents of each vector that a changed document has; `first_identical`
    /// is the smallest unchanged document of each class that a changed document had, by its old
    /// root.
    ///
    /// ```text
    /// for each vector:
    ///     smallest = smallest of: its inserted documents, the first of its unchanged ones
    ///     root[d] = smallest, for each inserted document d
    ///     renamed[old root of its unchanged documents] = smallest
    /// ```
    fn identical_roots(
        &self,
        cx: &mut Context,
        by_vector: Vec<BlockOf<KeyHolder>>,
        first_identical: RootOf,
    ) -> Result<IdenticalRoots> {
        let mut dealer = cx.dealer();
        let mut new_roots: Vec<(DocId, DocId)> = Vec::new();
        let by_vector = KeyGroups::new(by_vector);
        for group in by_vector.groups() {
            let inserted = || group.iter().filter(|holder| holder.role() == KeyRole::New).map(|holder| holder.doc);
            // All unchanged documents have the same root.
            let old_root = group.iter().find(|holder| holder.role() == KeyRole::Unchanged).map(|holder| holder.root);
            let first = old_root.map(|root| first_identical.get(&root).copied().unwrap_or(root));
            let Some(root) = inserted().chain(first).min() else { continue };
            for doc in inserted() {
                dealer.deal(doc.owner(cx.peers()) as u64, NewIdenticalRoot { doc, root });
            }
            new_roots.extend(old_root.map(|old_root| (old_root, root)));
        }
        let of_changed = blocks(all_to_all(cx, dealer)?);
        let of_changed = of_changed.into_iter().map(|NewIdenticalRoot { doc, root }| (doc, root)).collect();
        let mut renamed = first_identical;
        renamed.extend(cx.sorted(new_roots)?);
        renamed.retain(|old, new| old != new);
        Ok(IdenticalRoots { of_changed, renamed })
    }

    /// Writes the new roots of own documents: whole clusters, then split members, then changed
    /// documents.
    fn apply(
        &self,
        roots: &mut VectorRoots,
        split_members: &[SplitMember],
        new_roots: &NewRoots,
        identical: &IdenticalRoots,
        kernels: &'static Kernels,
    ) {
        let owned = self.delta.owned;
        if !new_roots.clusters.is_empty() {
            let filter = DocFilter::new(new_roots.clusters.keys(), kernels);
            filter.change(&mut roots.similar, |root| *root = new_roots.of_cluster(*root));
        }
        for SplitMember { doc, component } in split_members {
            roots.similar[owned.index(*doc)] = new_roots.of_cluster(*component);
        }
        let IdenticalRoots { of_changed, renamed } = identical;
        if !renamed.is_empty() {
            let filter = DocFilter::new(renamed.keys(), kernels);
            filter.change(&mut roots.identical, |root| *root = renamed.get(root).copied().unwrap_or(*root));
        }
        for (at, doc) in self.changes.docs.iter().enumerate() {
            let has_vector = self.changes.after(at).is_some();
            let index = owned.index(*doc);
            roots.similar[index] = if has_vector { new_roots.of_doc(*doc) } else { DocId::NONE };
            roots.identical[index] =
                if has_vector { of_changed.get(doc).copied().unwrap_or(*doc) } else { DocId::NONE };
        }
    }
}

#[cfg(test)]
mod tests;
