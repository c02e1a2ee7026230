//! Last week's clusters, brought to this week by what changed: the cost is one pass over the hashes of both weeks' vectors, and
//! work in proportion to the change; without postings, one pass over this week's supershingles, too.
//!
//! ```text
//! changes      documents whose vectors differ, retracted with the old one and inserted with the new one
//! heirs        who stays in the clusters that they had. Whoever leaves nobody behind, or somebody with the very vector,
//!              is retracted without more ado: those who stay hold all that it held
//! filter       supershingles of the others, and of new vectors, at every process
//! candidates   documents that stay and share enough of them: of postings, or of all vectors
//! holders      of keys whose supershingles somebody else has, too; of those who stay, a few of each key
//! certificate  whoever is retracted and cannot be shown to part nobody, by its own keys or by others of those who hold
//!              them: its cluster is in doubt
//! pieces       what clusters in doubt fall into without those that are retracted: most are still one piece
//! leaves       changed documents that join one cluster, and nothing else, take its label
//! relabel      other changed documents, the pieces, and one node for each other cluster that a key reaches: label
//!              differences, by differential dataflow
//! apply        labels of these documents; clusters that were joined, or lost their root, are renamed as a whole
//! ```
//!
//! The result is that of `clusters` on this week's vectors: every step is exact, or errs towards looking at a whole cluster.
//!
//! Where too much changed for the memory, documents are taken slice by slice of their rows, each a step of its own from a
//! week to a week: before the step, the slices behind it have their old vectors, and after it the slices up to it have
//! their new ones.
//!
//! Postings tell who holds a supershingle (`postings.rs`): a merge-join of what is asked for with sorted runs on disk, a word
//! each. They are of supershingles, not of keys: six a document instead of fifteen, and a holder's vector, which tells the
//! keys, must be looked at in any case. A store has them after its first step that followed the change, which made them of
//! all vectors; without them, and where slices leave some vectors this week's, the column of supershingles is read once in
//! the order of documents. Everything else is read where it lies: the hashes of vectors, then vectors of documents that
//! changed, that share supershingles with these, or whose clusters are in doubt.

use std::rc::Rc;

use anyhow::{Result, bail, ensure};
use timely::worker::Worker;

use super::step::{Delta, Slice, SliceStep};
use crate::kernels::{Kernels, chosen};
use crate::operators::delta::relabel::{NewRoots, relabel};
use crate::operators::delta::sharing::{
    ChangedKeys, DocSet, HolderReply, KeyGroups, KeyHolder, NEW, Remainder, RootOf, STAYS, changes, doc, word,
};
use crate::operators::delta::splits::{
    Remaining, RemainingHolder, Unproven, bridged, holds, leaves, remaining, split_components, with_leaves,
};
use crate::operators::exchange::{Block, Dealer, LocalAnswers, all_gather, all_to_all, blocks, lookup};
use crate::operators::scan::VectorRoots;
use crate::records::DocId;
use crate::state::PostingRuns;
use crate::structures::{ByKey, DocFilter};
use crate::watch::Stage;

/// What the step did at one worker.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DeltaStats {
    /// Own documents whose vectors changed, came or went.
    pub changed: u64,
    /// Other own documents, of clusters in doubt, which were put together again.
    pub examined: u64,
    /// Own documents that were retracted from among others who stay, and of these, those that might have parted them.
    pub retracted: u64,
    /// See `retracted`.
    pub failed: u64,
    /// Documents of which others than they share supershingles were looked at, as holders of a changed key.
    pub candidates: u64,
    /// Edges that went to differential dataflow, and labels that came and went.
    pub edges: u64,
    /// See `edges`.
    pub differences: u64,
    /// One document of each cluster of which anything changed, of all workers, ascending: its members, or a vector.
    pub marks: Vec<DocId>,
    /// The postings with what this week adds to them, where they were asked for.
    pub postings: Option<PostingRuns>,
}

/// Brings the roots of last week's vectors to this week's.
///
/// # Errors
/// Where vectors cannot be read, or a worker of this process failed.
pub fn delta(worker: &mut Worker, stage: &Delta<'_>, roots: &mut VectorRoots) -> Result<DeltaStats> {
    debug_assert!(stage.slices == 1 || stage.index.is_none(), "of a slice some vectors are this week's");
    let mut all = DeltaStats::default();
    for at in 0..stage.slices {
        let slice = Slice { at, of: stage.slices, owned: stage.owned };
        let changes = changes(stage.before, stage.after, |doc| slice.of(doc).is_eq())?;
        if let Some(doc) = changes.docs.iter().find(|doc| !stage.owned.knows(**doc)) {
            bail!("the features hold the document {doc}, which its shard has not: a table is damaged");
        }
        let step = SliceStep { stage, slice, changes };
        let DeltaStats { changed, examined, retracted, failed, candidates, edges, differences, marks, postings } =
            step.take(worker, roots)?;
        all.changed += changed;
        all.examined += examined;
        all.retracted += retracted;
        all.failed += failed;
        all.candidates += candidates;
        all.edges += edges;
        all.differences += differences;
        all.marks.extend(marks);
        all.postings = postings;
    }
    // Later slices may have renamed what earlier ones marked; who marks is still a member, or marked its cluster again.
    let own = all.marks.iter().filter(|mark| stage.owned.has(**mark));
    let own = own.map(|mark| roots.similar[stage.owned.index(*mark)]).filter(|root| *root != DocId::NONE).collect();
    all.marks = all_gather(worker, own, stage.watch)?;
    all.marks.dedup();
    Ok(all)
}

impl SliceStep<'_> {
    fn take(&self, worker: &mut Worker, roots: &mut VectorRoots) -> Result<DeltaStats> {
        let (stage, watch) = (self.stage, self.stage.watch);
        let mut did = DeltaStats { changed: self.changes.len() as u64, ..DeltaStats::default() };
        let changed: u64 =
            all_gather(worker, vec![(worker.index(), self.changes.len() as u64)], watch)?.iter().map(|c| c.1).sum();
        if let (Some(index), Some(next)) = (stage.index, stage.next_run) {
            watch.enter(Stage::Postings);
            did.postings = Some(index.add(worker, &self.changes, next, watch)?);
        }
        if changed == 0 {
            return Ok(did);
        }
        watch.enter(Stage::Holders);
        let (width, kernels) = (stage.after.width, chosen()?);
        let heirs = remaining(worker, &self.changes.docs, roots, stage.owned, kernels, watch)?;
        let kin = self.kin(roots, &heirs);
        did.retracted = kin.iter().filter(|kin| **kin != Remainder::None).count() as u64;
        let filter = stage.filter.of(|| ChangedKeys::new(2 * changed * width as u64, width, kernels));
        self.note(worker, &filter, &kin)?;
        let candidates = self.candidates(worker, &filter, roots, &heirs, &kin)?;
        did.candidates = candidates.docs.len() as u64;
        let (held, twins) = self.holders(worker, &filter, candidates, roots, &kin)?;
        let keyed = KeyGroups::new(all_to_all(worker, held, watch)?);
        let twins = all_to_all(worker, twins, watch)?;
        drop(filter);

        // Who leaves without parting anybody?
        watch.enter(Stage::Certificates);
        let mut replies: Vec<HolderReply> = blocks(all_to_all(worker, keyed.replies(worker, watch), watch)?);
        replies.sort_unstable();
        let mut unproven = Vec::new();
        for of_doc in replies.chunk_by(|a, b| a.doc == b.doc) {
            let mut holders: Vec<RemainingHolder> =
                of_doc.iter().map(|reply| RemainingHolder { stays: reply.stays, slot: reply.slot as u32 }).collect();
            let doc = of_doc[0].doc;
            if !holds(&mut holders, u32::MAX) {
                unproven.push(Unproven { doc, holders });
            }
        }
        let mut doubtful = DocSet::default();
        let staying = |docs: &[DocId]| self.staying(docs);
        let before = |doc| self.changes.docs.binary_search(&doc).ok().and_then(|at| self.changes.before(at));
        for (doc, holds) in bridged(worker, unproven, staying, before, stage.keys, watch)? {
            if !holds {
                did.failed += 1;
                doubtful.insert(roots.similar[stage.owned.index(doc)]);
            }
        }
        let doubtful: DocSet = all_gather(worker, doubtful.into_iter().collect(), watch)?.into_iter().collect();
        let pieces = self.split_components(worker, &doubtful, roots, &heirs, &mut did)?;
        let reached = keyed.reached(worker, stage.owned, &doubtful, &pieces, watch)?;
        watch.enter(Stage::Relabel);
        let (edges, leaves) = leaves(worker, keyed.edges(&doubtful, reached), watch)?;
        did.edges = edges.len() as u64;
        let (labels, differences) = relabel(worker, edges, watch)?;
        did.differences = differences;
        let labels = with_leaves(worker, labels, leaves, watch)?;

        // Clusters that stay and lose their root have another smallest member.
        let Remaining { similar: mut smallest, identical: first_twins, .. } = heirs;
        smallest.retain(|root, heir| root != heir && !doubtful.contains(root));
        let renamed = NewRoots::new(&labels, smallest);

        // Whose clusters are no longer what they were.
        let retracted = self.changes.docs.iter().zip(&kin).filter(|(_, kin)| **kin != Remainder::None);
        let left = retracted.map(|(doc, _)| roots.similar[stage.owned.index(*doc)]);
        let mut marks: Vec<DocId> =
            left.filter(|root| !doubtful.contains(root)).map(|root| renamed.cluster(root)).collect();
        let firsts = pieces.iter().filter(|(doc, piece)| doc == piece);
        marks.extend(firsts.map(|(_, piece)| renamed.cluster(*piece)));
        marks.extend(labels.iter().map(|(_, label)| renamed.roots[label]).filter(|root| stage.owned.has(*root)));
        did.marks = all_gather(worker, marks, watch)?;
        did.marks.dedup();

        let (identical, twins) = self.twins(worker, twins, first_twins)?;
        self.apply(roots, &pieces, &renamed, (&identical, &twins), kernels);
        Ok(did)
    }

    /// The own members of clusters in doubt that did not change, ascending, each with the smallest of its piece.
    ///
    /// Of those with the same vector the first is looked at; the others go with it.
    fn split_components(
        &self,
        worker: &mut Worker,
        doubtful: &DocSet,
        roots: &VectorRoots,
        heirs: &Remaining,
        did: &mut DeltaStats,
    ) -> Result<Vec<(DocId, DocId)>> {
        if doubtful.is_empty() {
            return Ok(Vec::new());
        }
        let stage = self.stage;
        let (similar, identical) =
            (|doc| roots.similar[stage.owned.index(doc)], |doc| roots.identical[stage.owned.index(doc)]);
        // Few of those who stay in any cluster that changed are of one in doubt.
        let sieve = DocFilter::new(doubtful.iter(), chosen()?);
        let is_doubtful = |root| sieve.may_have(root) && doubtful.contains(&root);
        let members: Vec<DocId> = heirs.members.iter().copied().filter(|doc| is_doubtful(similar(*doc))).collect();
        let first = |doc: &DocId| heirs.identical.get(&identical(*doc)).copied().unwrap_or(identical(*doc));
        let firsts: Vec<DocId> = members.iter().map(first).collect();
        let of_firsts = members.iter().zip(&firsts).filter(|(doc, first)| doc == first);
        let of_firsts: Vec<DocId> = of_firsts.map(|(doc, _)| *doc).collect();
        let examined = self.staying(&of_firsts)?;
        ensure!(
            examined.docs == of_firsts,
            "the features lack documents that last week's clusters have: a table is damaged"
        );
        did.examined = of_firsts.len() as u64;
        let pieces =
            split_components(worker, examined, stage.keys, (stage.forest, stage.threads), stage.owned, stage.watch)?;
        let own = |doc: &DocId| stage.owned.index(*doc) as u64;
        let pieces: ByKey<u64, DocId> = of_firsts.iter().map(own).zip(pieces).collect();
        let known = move |own: usize| [word(pieces.get(&(own as u64)).copied().unwrap_or(DocId::NONE))];
        let firsts: Rc<[DocId]> = firsts.into();
        let ask = || {
            let firsts = firsts.clone();
            (0..firsts.len()).map(move |at| firsts[at])
        };
        let mut of_members = Vec::with_capacity(members.len());
        let near = LocalAnswers::own(worker, known);
        lookup(worker, stage.owned, ask, &near, stage.watch, |at, [piece]| of_members.push((members[at], doc(piece))))?;
        if let Some((doc, _)) = of_members.iter().find(|(_, piece)| *piece == DocId::NONE) {
            bail!("{doc} is in another cluster than the first page that is identical to it: a table is damaged");
        }
        Ok(of_members)
    }

    /// The roots of changed documents among those with the same vector, and the new roots of the old ones, of which `first`
    /// has the smallest documents that stay.
    fn twins(&self, worker: &mut Worker, twins: Vec<Block<KeyHolder>>, mut first: RootOf) -> Result<(RootOf, RootOf)> {
        let watch = self.stage.watch;
        let mut of_docs = Dealer::new(worker.index(), worker.peers(), watch);
        let mut renamed: Vec<(DocId, DocId)> = Vec::new();
        let twins = KeyGroups::new(twins);
        for same in twins.keys() {
            let came = || same.iter().filter(|twin| twin.role == NEW).map(|twin| twin.doc);
            // All who stay have the same root.
            let was = same.iter().find(|twin| twin.role == STAYS).map(|twin| twin.root);
            let stays = was.map(|was| first.get(&was).copied().unwrap_or(was));
            let Some(root) = came().chain(stays).min() else { continue };
            for doc in came() {
                of_docs.deal(doc.owner(worker.peers()) as u64, HolderReply { doc, stays: root, slot: 0 });
            }
            renamed.extend(was.map(|was| (was, root)));
        }
        let own = blocks(all_to_all(worker, of_docs, watch)?).into_iter().map(|told| (told.doc, told.stays)).collect();
        first.extend(all_gather(worker, renamed, watch)?);
        first.retain(|was, root| was != root);
        Ok((own, first))
    }

    /// Writes the new roots of own documents.
    fn apply(
        &self,
        roots: &mut VectorRoots,
        pieces: &[(DocId, DocId)],
        renamed: &NewRoots,
        (identical, twins): (&RootOf, &RootOf),
        kernels: &'static Kernels,
    ) {
        let owned = self.stage.owned;
        if !renamed.clusters.is_empty() {
            let sieve = DocFilter::new(renamed.clusters.keys(), kernels);
            sieve.change(&mut roots.similar, |root| *root = renamed.cluster(*root));
        }
        for (doc, piece) in pieces {
            roots.similar[owned.index(*doc)] = renamed.cluster(*piece);
        }
        if !twins.is_empty() {
            let sieve = DocFilter::new(twins.keys(), kernels);
            sieve.change(&mut roots.identical, |root| *root = twins.get(root).copied().unwrap_or(*root));
        }
        for (at, doc) in self.changes.docs.iter().enumerate() {
            let own = owned.index(*doc);
            let has = self.changes.after(at).is_some();
            roots.similar[own] = if has { renamed.doc(*doc) } else { DocId::NONE };
            roots.identical[own] = if has { identical.get(doc).copied().unwrap_or(*doc) } else { DocId::NONE };
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use crate::features::VectorKeys;
    use crate::operators::delta::{NextRun, PostingIndex};
    use crate::operators::exchange::{Shared, barrier};
    use crate::operators::scan::VectorFiles;
    use crate::structures::Ownership;
    use std::collections::{BTreeMap, HashSet};
    use std::path::Path;

    use super::*;
    use crate::config::Method;
    use crate::features::polynomials;
    use crate::operators::delta::sharing::post_all;
    use crate::operators::scan::{VectorFile, VectorRoots};
    use crate::records::mix;
    use crate::state::Coding;
    use crate::tables::{FeatureRow, Writer};

    const SHARDS: u64 = 4;

    const WIDTH: usize = 6;

    /// A week: each document's vector, where it has one.
    type Week = BTreeMap<DocId, Vec<u64>>;

    /// Writes a week's vectors to a file for each shard and wave, documents to waves at random.
    fn write(folder: &Path, week: &Week, waves: u64) -> Vec<VectorFile> {
        let mut files = Vec::new();
        for (shard, wave) in (0..SHARDS as u32).flat_map(|shard| (0..waves).map(move |wave| (shard, wave))) {
            let path = folder.join(format!("shard{shard}-wave{wave}.parquet"));
            let mut writer: Writer<FeatureRow> = Writer::create(&path).unwrap();
            let here = |doc: &DocId| doc.shard() == shard && mix(doc.row() ^ 7) % waves == wave;
            for (doc, vector) in week.iter().filter(|(doc, _)| here(doc)) {
                let supershingles = vector.iter().flat_map(|word| word.to_le_bytes()).collect();
                writer.push(FeatureRow { doc: doc.to_table(), supershingles, features: vec![0; 4] }).unwrap();
            }
            let rows = writer.finish_if_any().unwrap();
            files.push(VectorFile { path, shard, rows });
        }
        files
    }

    /// The roots of a week by comparing all with all.
    fn brute_force(week: &Week) -> BTreeMap<DocId, (DocId, DocId)> {
        let all: Vec<(&DocId, &Vec<u64>)> = week.iter().collect();
        let mut parent: Vec<usize> = (0..all.len()).collect();
        fn root(parent: &[usize], mut node: usize) -> usize {
            while parent[node] != node {
                node = parent[node];
            }
            node
        }
        let mut identical: Vec<usize> = (0..all.len()).collect();
        for b in 0..all.len() {
            for a in 0..b {
                let agree = all[a].1.iter().zip(all[b].1).filter(|(a, b)| a == b).count();
                if agree >= 2 {
                    let (x, y) = (root(&parent, a), root(&parent, b));
                    parent[x.max(y)] = x.min(y);
                }
                if agree == WIDTH && identical[b] == b {
                    identical[b] = a;
                }
            }
        }
        (0..all.len()).map(|at| (*all[at].0, (*all[root(&parent, at)].0, *all[identical[at]].0))).collect()
    }

    /// Where postings are, and those of the week before; they are made where there are none.
    type Posted<'a> = Option<(&'a Path, Option<PostingRuns>)>;

    /// The roots of a week from those of the week before.
    fn by_delta(
        folders: [&Path; 2],
        weeks: [&Week; 2],
        roots: &BTreeMap<DocId, (DocId, DocId)>,
        rows: &[u64],
        (workers, slices, waves): (usize, u64, u64),
        posted: Posted<'_>,
    ) -> (BTreeMap<DocId, (DocId, DocId)>, Vec<DeltaStats>) {
        let files = [write(folders[0], weeks[0], 1), write(folders[1], weeks[1], waves)];
        let (roots, rows) = (roots.clone(), rows.to_vec());
        let (filter, forest) = (Arc::new(Shared::default()), Arc::new(Shared::default()));
        let posted = posted.map(|(folder, runs)| (folder.to_owned(), runs));
        let guards = timely::execute(timely::Config::process(workers), move |worker| {
            let owned = Ownership::new(worker.index(), worker.peers(), &rows);
            let method = Method::default();
            let keys = VectorKeys::new(&method, &polynomials(1, method.features));
            let own = |files: &[VectorFile]| {
                let own =
                    files.iter().filter(|file| owned.shards().any(|shard| shard == file.shard)).cloned().collect();
                if files.len() > SHARDS as usize {
                    VectorFiles::merged(own, WIDTH)
                } else {
                    VectorFiles::new(own, WIDTH)
                }
            };
            let (before, after, watch) = (own(&files[0]), own(&files[1]), Arc::default());
            let run = |folder: &Path, name: &str| NextRun { made: folder.join(name), name: name.into() };
            let index = posted.as_ref().and_then(|(folder, runs)| {
                let all = || {
                    let scratch = folder.join("scratch");
                    post_all(worker, &before, &rows, &run(folder, "first"), (1 << 16, &*scratch), &watch).unwrap()
                };
                let runs = runs.clone().unwrap_or_else(all);
                PostingIndex::open(worker, folder, Some(runs), &watch).unwrap()
            });
            assert_eq!(index.is_some(), posted.is_some());
            let number = posted.iter().flat_map(|(folder, _)| folder.read_dir().unwrap()).count();
            // All have counted before any adds one.
            barrier(worker, &watch).unwrap();
            let next_run = posted.as_ref().map(|(folder, _)| run(folder, &format!("run-{number}")));
            let stage = Delta {
                before: &before,
                after: &after,
                owned: &owned,
                keys: &keys,
                agreements: 2,
                slices,
                index: index.as_ref(),
                next_run: next_run.as_ref().filter(|_| index.as_ref().is_some_and(|index| index.takes_more(&rows))),
                threads: workers,
                filter: &filter,
                forest: &forest,
                watch: &watch,
            };
            let root = |doc: DocId| roots.get(&doc).copied().unwrap_or((DocId::NONE, DocId::NONE));
            let mut roots = VectorRoots {
                similar: owned.docs().map(|doc| root(doc).0).collect(),
                identical: owned.docs().map(|doc| root(doc).1).collect(),
            };
            let did = delta(worker, &stage, &mut roots).unwrap();
            let all: Vec<(DocId, (DocId, DocId))> =
                owned.docs().zip(roots.similar.into_iter().zip(roots.identical)).collect();
            (all, did)
        })
        .unwrap();
        let (mut all, mut did) = (BTreeMap::new(), Vec::new());
        for result in guards.join() {
            let (roots, worker_did) = result.unwrap();
            all.extend(roots.into_iter().filter(|(_, root)| root.0 != DocId::NONE));
            did.push(worker_did);
        }
        (all, did)
    }

    /// Whether each supershingle of a week has its posting. `None` where there are none to look at.
    fn is_posted(folder: &Path, runs: Option<&PostingRuns>, week: &Week) -> Option<bool> {
        let (runs, mut all) = (runs?, HashSet::new());
        for partition in 0..runs.coding.partitions() {
            let files = runs.files(folder, partition).unwrap();
            all.extend(files.iter().flatten().flat_map(|file| file.all().unwrap()).map(|posting| (partition, posting)));
        }
        let has = |doc: &DocId, column: usize, word: u64| {
            let hash = Coding::hash(column, word);
            all.contains(&(runs.coding.partition(hash) as usize, runs.coding.posting(hash, *doc)))
        };
        Some(week.iter().all(|(doc, vector)| vector.iter().enumerate().all(|(column, word)| has(doc, column, *word))))
    }

    /// Numbers that look random, the same for a seed.
    struct Random(u64);

    impl Random {
        fn below(&mut self, n: u64) -> u64 {
            self.0 = mix(self.0);
            self.0 % n
        }
    }

    /// Changes a week: documents come, go, and take supershingles of others or new ones.
    fn next_week(week: &Week, rows: &mut [u64], random: &mut Random) -> Week {
        let mut next = week.clone();
        let docs: Vec<DocId> = week.keys().copied().collect();
        let hubs = random.below(4) == 0;
        for (at, doc) in docs.iter().enumerate() {
            // Roots and hubs are the smallest documents of each shard.
            let rate = if hubs && at % 16 == 0 { 2 } else { 12 };
            match random.below(3 * rate) {
                0 => _ = next.remove(doc),
                1..=2 => _ = next.insert(*doc, vector(&docs, week, random)),
                _ => {}
            }
        }
        for _ in 0..random.below(12) {
            let shard = random.below(SHARDS);
            let doc = DocId::new(shard as u32, rows[shard as usize]);
            rows[shard as usize] += 1;
            next.insert(doc, vector(&docs, week, random));
        }
        next
    }

    /// A vector that is new, or another's, or has some supershingles of up to two others.
    fn vector(docs: &[DocId], week: &Week, random: &mut Random) -> Vec<u64> {
        let mut vector: Vec<u64> = (0..WIDTH as u64).map(|_| mix(random.below(1 << 40))).collect();
        if docs.is_empty() {
            return vector;
        }
        for _ in 0..random.below(3) {
            let other = &week[&docs[random.below(docs.len() as u64) as usize]];
            let keep = random.below(1 << WIDTH) | if random.below(3) == 0 { (1 << WIDTH) - 1 } else { 0 };
            (0..WIDTH).filter(|column| keep >> column & 1 == 1).for_each(|column| vector[column] = other[column]);
        }
        vector
    }

    #[test]
    fn every_history_ends_in_the_clusters_of_its_last_week() {
        let folder = tempfile::tempdir().unwrap();
        let paths = [folder.path().join("a"), folder.path().join("b")];
        let (mut failed, mut retracted, mut differences) = (0, 0, 0);
        let (mut posted, mut merged, mut anew) = (0, 0, 0);
        for seed in 0..60 {
            let postings = folder.path().join(format!("postings-{seed}"));
            std::fs::create_dir(&postings).unwrap();
            let mut runs: Option<PostingRuns> = None;
            let mut random = Random(seed);
            let mut rows = vec![0; SHARDS as usize];
            let mut week = Week::new();
            for _ in 0..8 {
                week = next_week(&week, &mut rows, &mut random);
            }
            let mut roots = brute_force(&week);
            for step in 0..4u64 {
                let next = next_week(&week, &mut rows, &mut random);
                let wanted = brute_force(&next);
                let (workers, slices) = ([1, 2, 3][(seed + step) as usize % 3], [1, 1, 3][step as usize % 3]);
                let how = (workers, slices, 1 + (seed + step) % 2);
                let with = (slices == 1 && seed % 4 > 0).then(|| (&*postings, runs.take()));
                let before = with.as_ref().and_then(|(_, runs)| runs.as_ref().map(|runs| runs.runs.len()));
                let (got, did) = by_delta([&paths[0], &paths[1]], [&week, &next], &roots, &rows, how, with);
                runs = did[0].postings.clone();
                assert!(did.iter().all(|did| did.postings == runs), "all workers know the same runs");
                assert_ne!(is_posted(&postings, runs.as_ref(), &next), Some(false), "seed {seed}, step {step}");
                posted += usize::from(runs.is_some());
                match (before, runs.as_ref().map(|runs| runs.runs.len())) {
                    (Some(before), Some(now)) => merged += usize::from(now <= before),
                    (Some(_), None) => anew += 1,
                    _ => {}
                }
                assert_eq!(got, wanted, "seed {seed}, step {step}; workers, slices, waves: {how:?}");
                // Whoever's cluster is not marked has the cluster that it had, of the same vectors.
                let marks: HashSet<DocId> = did.iter().flat_map(|did| did.marks.iter().copied()).collect();
                for (doc, root) in &got {
                    let members = |week: &Week, roots: &BTreeMap<DocId, (DocId, DocId)>, root: DocId| {
                        let of_root = roots.iter().filter(|(_, known)| known.0 == root);
                        of_root.map(|(doc, _)| (*doc, week[doc].clone())).collect::<Week>()
                    };
                    let now = members(&next, &got, root.0);
                    if !marks.contains(&root.0) && now.len() > 1 {
                        assert_eq!(now, members(&week, &roots, roots[doc].0), "seed {seed}, step {step}, {doc}");
                    }
                }
                failed += did.iter().map(|did| did.failed).sum::<u64>();
                retracted += did.iter().map(|did| did.retracted).sum::<u64>();
                differences += did.iter().map(|did| did.differences).sum::<u64>();
                (week, roots) = (next, wanted);
            }
        }
        assert!(failed > 50 && retracted > 2 * failed && differences > 100, "{failed} {retracted} {differences}");
        assert!(posted > 100 && merged > 20 && anew > 0, "{posted} {merged} {anew}");
    }

    #[test]
    fn a_hub_of_many_goes_and_comes_again() {
        let folder = tempfile::tempdir().unwrap();
        let paths = [folder.path().join("a"), folder.path().join("b")];
        let mut parts = HashSet::new();
        for seed in 0..12u64 {
            let mut random = Random(seed ^ 0xAB);
            let new = |random: &mut Random| -> Vec<u64> { (0..WIDTH).map(|_| mix(random.below(1 << 40))).collect() };
            let (hub, spokes) = (new(&mut random), 60 + 40 * (seed % 3));
            // Of some seeds all spokes hold one of three keys, more of each than a certificate looks at.
            let pairs: &[[usize; 2]] = &[[0, 1], [2, 3], [4, 5], [1, 2], [0, 5], [3, 4], [0, 2], [1, 5]];
            let pairs = if seed % 2 == 0 { &pairs[..3] } else { pairs };
            let at = DocId::new((seed % SHARDS) as u32, seed % 5 * 7);
            let mut week = Week::from([(at, hub.clone())]);
            for spoke in 0..spokes {
                let mut vector = new(&mut random);
                let pair = pairs[random.below(pairs.len() as u64) as usize];
                pair.into_iter().for_each(|column| vector[column] = hub[column]);
                // Rarely one that bridges.
                if random.below(40) == 0 {
                    vector[..4].copy_from_slice(&hub[..4]);
                }
                week.insert(DocId::new((spoke % SHARDS) as u32, 100 + spoke), vector);
            }
            let rows = vec![1000; SHARDS as usize];
            let mut without = week.clone();
            if random.below(2) == 0 {
                _ = without.remove(&at)
            } else {
                _ = without.insert(at, new(&mut random))
            }
            let (with_roots, without_roots) = (brute_force(&week), brute_force(&without));
            parts.insert(without_roots.values().map(|root| root.0).collect::<HashSet<_>>().len());
            let how = (1 + seed as usize % 3, 1 + seed % 2, 1);
            let postings = [0, 1].map(|way| folder.path().join(format!("postings-{seed}-{way}")));
            postings.iter().for_each(|folder| std::fs::create_dir(folder).unwrap());
            let posted = |way: usize| (how.1 == 1 && seed % 4 == 0).then(|| (&*postings[way], None));
            let (got, did) = by_delta([&paths[0], &paths[1]], [&week, &without], &with_roots, &rows, how, posted(0));
            assert_eq!(got, without_roots, "seed {seed}: {how:?}");
            assert_eq!(did.iter().map(|did| did.retracted).sum::<u64>(), 1);
            let (got, _) = by_delta([&paths[0], &paths[1]], [&without, &week], &without_roots, &rows, how, posted(1));
            assert_eq!(got, with_roots, "seed {seed}: {how:?}");
        }
        assert!(parts.len() > 2, "{parts:?}");
    }

    #[test]
    fn nothing_changes_where_nothing_changed() {
        let folder = tempfile::tempdir().unwrap();
        let paths = [folder.path().join("a"), folder.path().join("b")];
        let (mut rows, mut week, mut random) = (vec![0; SHARDS as usize], Week::new(), Random(7));
        for _ in 0..8 {
            week = next_week(&week, &mut rows, &mut random);
        }
        let roots = brute_force(&week);
        let (got, did) = by_delta([&paths[0], &paths[1]], [&week, &week], &roots, &rows, (2, 1, 1), None);
        assert_eq!(got, roots);
        assert!(did.iter().all(|did| *did == DeltaStats::default()));
    }
}
