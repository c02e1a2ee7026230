//! Finds the clusters of a week's vectors: the stage that every job with clusters uses (Fetterly
//! 2004, section 2).
//!
//! ```text
//! vectors ──collapse──▶ duplicates, representatives     identical vectors become one node
//!         ──prune─────▶ survivors, about one in seven   enough of their supershingles occur elsewhere
//!         ──pairs─────▶ a union-find for each process   survivors that share a choice of supershingles are joined
//!         ──components▶ labels                          label propagation over the union-finds of all processes
//!         ──resolve───▶ roots                           the smallest vector of each cluster
//!         ──lookup────▶ ids                             the caller's ids of roots and neighbours
//! ```
//!
//! The column of supershingles (six to a vector) is read at least five times, in large pieces, each
//! time while records are exchanged. If the system caches the files, and those of a shard follow
//! each other, reading again costs less than newly allocated memory for what is needed of them.
//! Records in flight are bounded by `memory`: keys are processed range by range where they must be,
//! and blocks spill to a file where even that is not enough. Some bytes for each vector are set
//! aside for what is retained ([`Clustering::in_flight`]).

use std::cell::Cell;
use std::rc::Rc;
use std::sync::Arc;

use anyhow::{Result, bail};
use nigh_exchange::{Context, LocalAnswers, NodeAnswers, lookup, release_spare, sort_spare};

use super::collapse::{Collapsed, collapse};
use super::pairs::pairs;
use super::prune::prune;
use super::stage::{ClusterStats, Clustering};
use super::survivors::Survivors;
use crate::kernels::memory::{SIDE_BY_SIDE, advise_huge_pages};
use crate::operators::components::{JoinedForests, join_forests};
use crate::records::DocId;
use crate::structures::{Numbering, Ownership, RankBitmap, UnionFind};
use crate::watch::Stage;

/// The clusters of the own vectors. A vector in neither list is in no cluster.
#[derive(Debug, Default)]
pub struct OwnClusters {
    /// Vectors that are identical to one with a smaller number.
    pub duplicates: NodeClusters,
    /// Of the other vectors, those that were compared. One that is its own neighbour is in no
    /// cluster.
    pub survivors: NodeClusters,
    /// What was done to find them.
    pub stats: ClusterStats,
}

/// The roots and neighbours of some own vectors.
#[derive(Debug, Default)]
pub struct NodeClusters {
    /// The own numbers of the vectors, ascending.
    pub vectors: Vec<u32>,
    /// For each, the id of the smallest vector of its cluster.
    pub roots: Vec<u64>,
    /// For each, the id of a neighbour. For a duplicate this is the smallest identical vector. For
    /// a survivor: for each choice of supershingles that it shares, `pairs` notes the smallest
    /// vector that shares it, of all or of the survivor's shard; the neighbour is the smallest of
    /// these, or the smallest other one if that is the survivor itself.
    pub neighbours: Vec<u64>,
}

impl NodeClusters {
    /// Every vector's own number with the ids of its root and its neighbour.
    pub fn iter(&self) -> impl Iterator<Item = (u32, u64, u64)> {
        let (roots, neighbours) = (self.roots.iter(), self.neighbours.iter());
        self.vectors.iter().zip(roots).zip(neighbours).map(|((vector, root), neighbour)| (*vector, *root, *neighbour))
    }
}

/// Finds the clusters of the vectors of all workers, and returns those of the own ones.
///
/// `id` gives the id of an own vector, by own number. Ids must ascend as the numbers of vectors do.
///
/// # Errors
/// Where vectors cannot be read or are too many for a worker or a run, or a worker of this process
/// failed.
pub fn clusters(
    cx: &mut Context,
    stage: &Clustering,
    id: impl Fn(usize) -> u64 + Send + Sync + 'static,
) -> Result<OwnClusters> {
    if stage.files.len() > u64::from(u32::MAX) {
        bail!("one worker cannot cluster {} pages: use more workers", stage.files.len());
    }
    cx.enter(Stage::Collapse);
    let vectors = Ownership::new(cx.index(), cx.peers(), &stage.numbering.rows());
    let Collapsed { marks, firsts } = collapse(cx, stage, &vectors)?;
    sort_spare();
    cx.enter(Stage::Prune);
    let cx = &mut Clustering::for_duplicates(cx, firsts.len() as u64, marks.vectors() as u64)?;
    let representatives = (marks.vectors() - firsts.len()) as u64;
    let survivors = prune(cx, stage, &vectors, marks, representatives)?;
    cx.enter(Stage::Pairs);
    let nodes = nodes(cx, stage, &survivors)?;
    // The union-find gets the memory pages that the blocks of the phase before had.
    release_spare(nodes.numbering.len() as usize / stage.threads * UnionFind::NODE_BYTES);
    let union_find = cx.shared().of(|| UnionFind::new(nodes.numbering.len() as usize));
    union_find.take_pages(cx.index() % stage.threads, stage.threads);
    let (survivors, mut stats) = pairs(cx, stage, &vectors, &nodes.numbering, survivors, &union_find)?;
    // The next phases need memory for other things, and few blocks.
    release_spare(usize::MAX);
    let (survivors, duplicates) = survivors.into_lists();
    let duplicates = DuplicateVectors::new(duplicates, firsts);
    (stats.duplicates, stats.survivors) = (duplicates.vectors.len() as u64, survivors.len() as u64);
    cx.enter(Stage::Components);
    let joined = join_forests(cx, &nodes.numbering, &nodes.owned, union_find, stage.threads)?;
    (stats.forest_edges, stats.rounds) = (joined.edges, joined.rounds);
    let survivors = survivors_with_ids(cx, &nodes.owned, survivors, joined, &id)?;
    let (duplicates, survivors) = duplicates_with_ids(cx, stage, &vectors, duplicates, survivors, id)?;
    release_spare(usize::MAX);
    Ok(OwnClusters { duplicates, survivors, stats })
}

/// The survivors as nodes of a graph.
struct Nodes {
    /// Numbers the survivors of all workers.
    numbering: Numbering,
    owned: Ownership,
}

/// Numbers the survivors of all workers, in the order of their vectors.
fn nodes(cx: &mut Context, stage: &Clustering, survivors: &Survivors) -> Result<Nodes> {
    let counts = survivors.shard_counts.iter().enumerate().filter(|(_, count)| **count > 0);
    let counts: Vec<(u64, u64)> = counts.map(|(shard, count)| (shard as u64, *count)).collect();
    let mut rows = vec![0; stage.numbering.shards()];
    for (shard, count) in cx.sorted(counts)? {
        rows[shard as usize] = count;
    }
    let numbering = Numbering::new(&rows);
    if numbering.len() >= u64::from(u32::MAX) {
        bail!("{} pages to compare are too many for one run", numbering.len());
    }
    Ok(Nodes { numbering, owned: Ownership::new(cx.index(), cx.peers(), &rows) })
}

/// The own duplicates, before the roots of their representatives are known.
struct DuplicateVectors {
    /// Their own numbers, ascending.
    vectors: Vec<u32>,
    /// The number of the smallest identical vector of each.
    firsts: Vec<u64>,
    /// Room for the ids of their roots.
    roots: Vec<u64>,
}

impl DuplicateVectors {
    fn new(vectors: Vec<u32>, firsts: Vec<u64>) -> DuplicateVectors {
        let mut roots = Vec::with_capacity(vectors.len());
        advise_huge_pages(roots.spare_capacity_mut());
        // Written now, into memory pages that blocks just gave back: zeroed pages of the system
        // would be allocated only at their first use.
        roots.resize(vectors.len(), 0);
        DuplicateVectors { vectors, firsts, roots }
    }
}

/// Looks up the ids of the survivors' roots and neighbours. `vectors` are the survivors' own
/// numbers, `nodes` the ownership of survivors as nodes.
fn survivors_with_ids(
    cx: &mut Context,
    nodes: &Ownership,
    vectors: Vec<u32>,
    joined: JoinedForests,
    id: impl Fn(usize) -> u64,
) -> Result<NodeClusters> {
    let mut ids = Vec::with_capacity(vectors.len());
    advise_huge_pages(ids.spare_capacity_mut());
    ids.extend(vectors.iter().map(|vector| id(*vector as usize)));
    let answers = LocalAnswers::of_process(cx, move |node| [ids[node]])?;
    // Ids replace the nodes that they belong to, in the same memory.
    let node_of = |word: u64| DocId::from_table(word as i64);
    let mut replace_all = |nodes_of_survivors: Vec<DocId>| -> Result<Vec<u64>> {
        let words = in_place(bytemuck::allocation::cast_vec(nodes_of_survivors));
        let questions = questions(&words, node_of);
        lookup(cx, nodes, questions, &answers, |position, [id]| words[position].set(id))?;
        Ok(out_of_place(words))
    };
    let (roots, neighbours) = (replace_all(joined.roots)?, replace_all(joined.neighbours)?);
    assert_eq!(roots.len(), vectors.len(), "every survivor has a root");
    Ok(NodeClusters { vectors, roots, neighbours })
}

/// Looks up the ids of the duplicates' representatives, and of the roots of these. Returns the
/// duplicates and the survivors.
fn duplicates_with_ids(
    cx: &mut Context,
    stage: &Clustering,
    owned: &Ownership,
    duplicates: DuplicateVectors,
    survivors: NodeClusters,
    id: impl Fn(usize) -> u64 + Send + Sync + 'static,
) -> Result<(NodeClusters, NodeClusters)> {
    let survivor_ranks = RankBitmap::new(owned.len(), survivors.vectors.iter().copied());
    let survivor_roots = Arc::new(survivors.roots);
    let root_ids = RootIds { survivor_ranks, survivor_roots: survivor_roots.clone(), id };
    let answers = LocalAnswers::of_process(cx, root_ids)?;
    let (firsts, mut roots) = (in_place(duplicates.firsts), duplicates.roots);
    let numbering = stage.numbering.clone();
    let questions = questions(&firsts, move |number| numbering.id(number));
    lookup(cx, owned, questions, &answers, |position, [id, root]| {
        firsts[position].set(id);
        roots[position] = root;
    })?;
    drop(answers);
    // After the barrier all workers have dropped their answers; timely drops its operators at the
    // next step.
    cx.barrier()?;
    let survivor_roots = Arc::try_unwrap(survivor_roots).unwrap_or_else(|shared| shared.to_vec());
    let duplicates = NodeClusters { vectors: duplicates.vectors, roots, neighbours: out_of_place(firsts) };
    Ok((duplicates, NodeClusters { roots: survivor_roots, ..survivors }))
}

/// Answers with the id of an own vector, and the id of its root. A vector that is not a survivor is
/// its own root.
struct RootIds<I> {
    /// The ranks of survivors among the own vectors.
    survivor_ranks: RankBitmap,
    /// The ids of the survivors' roots, by rank.
    survivor_roots: Arc<Vec<u64>>,
    id: I,
}

impl<I: Fn(usize) -> u64> NodeAnswers<2> for RootIds<I> {
    fn look_up(&self, vectors: &[usize], answers: &mut [[u64; 2]]) {
        debug_assert!(vectors.len() <= SIDE_BY_SIDE);
        let (mut ranks, mut roots) = ([(false, 0); SIDE_BY_SIDE], [0; SIDE_BY_SIDE]);
        self.survivor_ranks.get_all(vectors.iter().copied(), &mut ranks);
        // No branch depends on whether a vector is a survivor. The rank of another vector may lie
        // behind the last root.
        let root_at = |rank| self.survivor_roots.get(rank).copied().unwrap_or_default();
        roots.iter_mut().zip(&ranks[..vectors.len()]).for_each(|(root, (_, rank))| *root = root_at(*rank));
        for (answer, (vector, ((is_survivor, _), root))) in
            answers.iter_mut().zip(vectors.iter().zip(ranks.iter().zip(roots)))
        {
            let id = (self.id)(*vector);
            *answer = [id, std::hint::select_unpredictable(*is_survivor, root, id)];
        }
    }
}

/// Words that are replaced one by one while others of them are read.
fn in_place(words: Vec<u64>) -> Rc<Vec<Cell<u64>>> {
    Rc::new(words.into_iter().map(Cell::new).collect())
}

/// The words after all replacements.
fn out_of_place(words: Rc<Vec<Cell<u64>>>) -> Vec<u64> {
    match Rc::try_unwrap(words) {
        Ok(words) => words.into_iter().map(Cell::into_inner).collect(),
        Err(shared) => shared.iter().map(Cell::get).collect(),
    }
}

/// The nodes that the words stand for at the moment, in order: each call iterates over all of them
/// again.
fn questions(
    words: &Rc<Vec<Cell<u64>>>,
    node: impl Fn(u64) -> DocId + Clone + 'static,
) -> impl Fn() -> Box<dyn Iterator<Item = DocId>> {
    let words = words.clone();
    move || {
        let (words, node) = (words.clone(), node.clone());
        Box::new((0..words.len()).map(move |position| node(words[position].get())))
    }
}

#[cfg(test)]
mod tests {
    use std::collections::{BTreeMap, BTreeSet};
    use std::path::{Path, PathBuf};

    use nigh_exchange::SharedValues;
    use timely::worker::Worker;

    use super::*;
    use crate::config::Method;
    use crate::features::VectorKeys;
    use crate::kernels::polynomials;
    use crate::operators::clustering::stage::Clustering;
    use crate::operators::scan::VectorFile;
    use crate::operators::scan::VectorFiles;
    use crate::records::mix;
    use crate::tables::{FeatureRow, Writer};

    /// By vector: the root of its cluster, a neighbour, and the smallest identical vector. Ids are
    /// the vectors' indices.
    type VectorLabels = Vec<[u64; 3]>;

    const SHARDS: usize = 8;

    /// The first vector of a shard, if there are `vectors` in all; for the shard behind the last,
    /// `vectors`.
    fn first_of_shard(shard: usize, vectors: usize) -> usize {
        shard * vectors / SHARDS
    }

    /// Writes vectors to `files_of_shard` files for each shard. The rows of a shard go to its files
    /// by turns.
    fn write(folder: &Path, vectors: &[Vec<u64>], files_of_shard: usize) -> Vec<VectorFile> {
        let n = vectors.len();
        let write_file = |shard: usize, file: usize| {
            let of_shard = &vectors[first_of_shard(shard, n)..first_of_shard(shard + 1, n)];
            let path = folder.join(format!("shard{shard}.{file}.parquet"));
            let mut writer: Writer<FeatureRow> = Writer::create(&path).unwrap();
            let of_file = of_shard.iter().enumerate().skip(file).step_by(files_of_shard);
            let rows = of_file.len() as u64;
            for (row, vector) in of_file {
                let doc = DocId::new(shard as u32, row as u64).to_table();
                let supershingles: Vec<u8> = vector.iter().flat_map(|word| word.to_le_bytes()).collect();
                writer.push(FeatureRow::new(doc, &supershingles, &[0; 4])).unwrap();
            }
            writer.finish().unwrap();
            VectorFile::new(path.into(), shard as u32, rows)
        };
        (0..SHARDS).flat_map(|shard| (0..files_of_shard).map(move |file| write_file(shard, file))).collect()
    }

    /// The labels that the stage gives with `workers` workers, each with `memory` bytes for records
    /// in flight.
    fn labels(folder: &Path, vectors: &[Vec<u64>], agreements: usize, workers: usize, memory: u64) -> VectorLabels {
        labels_of_files(folder, write(folder, vectors, 1), vectors, agreements, workers, memory).unwrap()
    }

    /// As [`labels`], for vectors that were written to files already. Returns the message of the
    /// failure if there is one.
    fn labels_of_files(
        folder: &Path,
        files: Vec<VectorFile>,
        vectors: &[Vec<u64>],
        agreements: usize,
        workers: usize,
        memory: u64,
    ) -> Result<VectorLabels, String> {
        let run = StageRun {
            files,
            vectors: vectors.len(),
            width: vectors.first().map_or(6, Vec::len),
            agreements,
            workers,
            memory,
            scratch: folder.join("scratch"),
            shared: Arc::default(),
        };
        let guards = timely::execute(timely::Config::process(workers), move |worker| run.labels_of_worker(worker));
        let mut all: BTreeMap<u64, [u64; 3]> = BTreeMap::new();
        for labels in guards.unwrap().join() {
            all.extend(labels.unwrap()?);
        }
        assert!(all.keys().copied().eq(0..vectors.len() as u64), "every vector has one owner");
        Ok(all.into_values().collect())
    }

    /// The parameters of one run of the stage, for all of its workers.
    struct StageRun {
        files: Vec<VectorFile>,
        vectors: usize,
        width: usize,
        agreements: usize,
        workers: usize,
        memory: u64,
        scratch: PathBuf,
        shared: Arc<SharedValues>,
    }

    impl StageRun {
        /// Runs the stage on one worker, and returns the labels of its own vectors by id.
        fn labels_of_worker(&self, worker: &Worker) -> Result<BTreeMap<u64, [u64; 3]>, String> {
            let cx = &mut Context::new(worker, &Arc::default(), &self.shared).with(self.memory, &self.scratch);
            let first = |shard| first_of_shard(shard, self.vectors);
            let rows: Vec<u64> = (0..SHARDS).map(|shard| (first(shard + 1) - first(shard)) as u64).collect();
            let (numbering, owned) = (Numbering::new(&rows), Ownership::new(cx.index(), cx.peers(), &rows));
            let stage = self.stage(cx, &numbering);
            let ids: Arc<Vec<u64>> = Arc::new(owned.docs().map(|doc| numbering.number(doc)).collect());
            let clusters = {
                let ids = ids.clone();
                clusters(cx, &stage, move |own| ids[own])
            };
            let failure = |_| cx.watch().take_failure().map_or_else(String::new, |error| error.to_string());
            Ok(labels_by_id(&clusters.map_err(failure)?, &ids))
        }

        fn stage(&self, cx: &Context, numbering: &Numbering) -> Clustering {
            let (width, agreements) = (self.width, self.agreements);
            let method = Method { features: 84 / width * width, supershingles: width, agreements, ..Method::default() };
            let is_own = |file: &&VectorFile| file.shard as usize % cx.peers() == cx.index();
            let own_files: Vec<VectorFile> = self.files.iter().filter(is_own).cloned().collect();
            let several_files_of_shard = self.files.len() > SHARDS;
            Clustering {
                files: if several_files_of_shard {
                    VectorFiles::merged(own_files, width)
                } else {
                    VectorFiles::new(own_files, width)
                },
                numbering: Rc::new(numbering.clone()),
                keys: Rc::new(VectorKeys::new(&method, &polynomials(method.seed, method.features))),
                agreements,
                threads: self.workers,
            }
        }
    }

    /// The label of every own vector by its id. `ids` are those of own vectors.
    fn labels_by_id(clusters: &OwnClusters, ids: &[u64]) -> BTreeMap<u64, [u64; 3]> {
        let mut labels: BTreeMap<u64, [u64; 3]> = ids.iter().map(|id| (*id, [*id; 3])).collect();
        for (own, root, neighbour) in clusters.survivors.iter() {
            let id = ids[own as usize];
            labels.insert(id, [root, neighbour, id]);
        }
        for (own, root, identical) in clusters.duplicates.iter() {
            labels.insert(ids[own as usize], [root, identical, identical]);
        }
        labels
    }

    /// Asserts that labels are those of comparing all vectors with all. A vector may have one of
    /// several neighbours: each is checked to agree with it.
    fn assert_right(vectors: &[Vec<u64>], agreements: usize, labels: &VectorLabels) {
        let agree = |a: usize, b: usize| vectors[a].iter().zip(&vectors[b]).filter(|(a, b)| a == b).count();
        let roots = roots_by_all_pairs(vectors.len(), |a, b| agree(a, b) >= agreements);
        for (vector, [root, neighbour, identical]) in labels.iter().enumerate() {
            assert_eq!(*root as usize, roots[vector], "the root of {vector}");
            let first = (0..=vector).find(|other| vectors[*other] == vectors[vector]).unwrap();
            assert_eq!(*identical as usize, first, "the smallest vector identical to {vector}");
            if *neighbour as usize != vector {
                assert!(agree(vector, *neighbour as usize) >= agreements, "{neighbour} is a neighbour of {vector}");
            } else {
                let alone = vectors.iter().enumerate().all(|(other, _)| {
                    other == vector || vectors[other] == vectors[vector] || agree(vector, other) < agreements
                });
                assert!(alone, "{vector} has a neighbour");
            }
        }
    }

    /// The smallest vector of each one's component, by relabelling.
    fn roots_by_all_pairs(vectors: usize, linked: impl Fn(usize, usize) -> bool) -> Vec<usize> {
        let mut roots: Vec<usize> = (0..vectors).collect();
        for a in 0..vectors {
            for b in 0..a {
                if linked(a, b) && roots[a] != roots[b] {
                    let (low, high) = (roots[a].min(roots[b]), roots[a].max(roots[b]));
                    roots.iter_mut().filter(|root| **root == high).for_each(|root| *root = low);
                }
            }
        }
        roots
    }

    /// Random vectors: half of the supershingles come from small pools, and a quarter of the
    /// vectors are copies of others.
    fn random(seed: u64, count: u64, width: usize, pool: u64) -> Vec<Vec<u64>> {
        let word = |i: u64, j: usize| match mix(seed ^ (i << 8) ^ j as u64) {
            // Half of the supershingles occur once.
            hash if hash % 2 == 0 => mix(hash),
            hash => mix((hash % pool) ^ ((j as u64) << 32)),
        };
        (0..count)
            .map(|i| {
                let i = if mix(seed ^ (i << 20)).is_multiple_of(4) { mix(i) % count } else { i };
                (0..width).map(|j| word(i, j)).collect()
            })
            .collect()
    }

    #[test]
    fn clusters_are_those_of_comparing_all_with_all() {
        let folder = tempfile::tempdir().unwrap();
        for (seed, width, agreements) in
            [(1, 6, 2), (2, 6, 1), (3, 6, 6), (4, 6, 3), (5, 1, 1), (6, 2, 2), (7, 12, 2), (8, 9, 4), (9, 64, 2)]
        {
            let vectors = random(seed, 400, width, 300);
            let one = labels(folder.path(), &vectors, agreements, 1, 1 << 30);
            assert_right(&vectors, agreements, &one);
            // The last ones have so little memory that keys are processed in many ranges, and
            // blocks spill to a file.
            for (workers, memory) in [(2, 1 << 30), (4, 1 << 30), (12, 1 << 30), (1, 3000), (2, 500), (4, 0)] {
                let others = labels(folder.path(), &vectors, agreements, workers, memory);
                assert_eq!(others, one, "{workers} workers with {memory} bytes, {agreements} of {width}");
            }
        }
        let left = std::fs::read_dir(folder.path().join("scratch")).unwrap().count();
        assert_eq!(left, 0, "no spill file is left");
    }

    #[test]
    fn just_enough_agreements_link_two_vectors_in_whichever_columns() {
        let folder = tempfile::tempdir().unwrap();
        for (width, agreements) in [(6, 2), (6, 3), (6, 5), (5, 2), (3, 2), (2, 1)] {
            let masks: Vec<u64> = (0..1 << width).filter(|mask: &u64| mask.count_ones() == agreements).collect();
            // For every choice of columns, two vectors that agree in these columns and in nothing
            // else. They are half the list apart; the shards between them hold vectors that agree
            // with none.
            let halves = |half: u64| {
                let of_mask = move |mask: &u64| {
                    let word = |column| match mask >> column & 1 {
                        1 => mask << 8 | column,
                        _ => half << 60 | mask << 8 | column,
                    };
                    (0..width).map(|column| mix(word(column))).collect::<Vec<u64>>()
                };
                masks.iter().map(of_mask)
            };
            let alone =
                (0..2 * masks.len() as u64).map(|at| (0..width).map(move |column| mix(3 << 60 | at << 8 | column)));
            let vectors: Vec<Vec<u64>> = halves(1).chain(alone.map(Iterator::collect)).chain(halves(2)).collect();
            let agreements = agreements as usize;
            let one = labels(folder.path(), &vectors, agreements, 1, 1 << 30);
            assert_right(&vectors, agreements, &one);
            assert_eq!(one.iter().filter(|[root, neighbour, _]| root != neighbour).count(), masks.len());
            for (workers, memory) in [(2, 1 << 30), (4, 1 << 30), (1, 1000), (2, 0)] {
                let others = labels(folder.path(), &vectors, agreements, workers, memory);
                assert_eq!(others, one, "{workers} workers with {memory} bytes, {agreements} of {width}");
            }
        }
    }

    #[test]
    fn vectors_of_merged_files_have_the_same_clusters() {
        let folder = tempfile::tempdir().unwrap();
        let vectors = random(11, 400, 6, 300);
        let one = labels(folder.path(), &vectors, 2, 1, 1 << 30);
        for (workers, memory) in [(1, 1 << 30), (2, 1 << 30), (3, 500)] {
            let files = write(folder.path(), &vectors, 3);
            let merged = labels_of_files(folder.path(), files, &vectors, 2, workers, memory);
            assert_eq!(merged.as_ref(), Ok(&one), "{workers} workers");
        }
    }

    #[test]
    fn missing_and_repeated_files_are_errors() {
        let folder = tempfile::tempdir().unwrap();
        let vectors = random(12, 80, 6, 30);
        let changes: [fn(&mut Vec<VectorFile>); 3] =
            [|files| _ = files.remove(3), |files| _ = files.pop(), |files| files[1] = files[0].clone()];
        for change in changes {
            let mut files = write(folder.path(), &vectors, 1);
            change(&mut files);
            let error = labels_of_files(folder.path(), files, &vectors, 2, 1, 1 << 30).unwrap_err();
            assert!(error.contains("changed while they were read"), "{error}");
        }
    }

    #[test]
    fn keys_and_vectors_of_very_many_documents_are_chained() {
        // Of every ten vectors, eight share the first two supershingles: of each shard these are
        // more than may be sent under one key. The ninth is one page that occurs everywhere. The
        // tenth belongs to a second crowd with another first two.
        let folder = tempfile::tempdir().unwrap();
        let count = 8 * 1500;
        let mut vectors: Vec<Vec<u64>> = (0..count)
            .map(|i| match i % 10 {
                0..8 => [1, 2].into_iter().chain((2..6).map(|j| mix(i << 8 | j))).collect(),
                8 => vec![7; 6],
                _ => [3, 4].into_iter().chain((2..6).map(|j| mix(i << 8 | j))).collect(),
            })
            .collect();
        // One vector of each crowd: they agree in the last four supershingles, and so link the two
        // crowds.
        vectors[7009] = vec![1, 2, 3, 4, 5, 6];
        vectors[7019] = vec![3, 4, 3, 4, 5, 6];
        let one = labels(folder.path(), &vectors, 2, 1, 1 << 30);
        let roots: BTreeSet<u64> = one.iter().map(|[root, ..]| *root).collect();
        assert_eq!(roots.into_iter().collect::<Vec<u64>>(), [0, 8]);
        for (i, [_, neighbour, identical]) in one.iter().enumerate() {
            let agree = vectors[i].iter().zip(&vectors[*neighbour as usize]).filter(|(a, b)| a == b).count();
            assert!(agree >= 2 && (*neighbour as usize != i || i == 8), "{neighbour} is a neighbour of {i}");
            assert_eq!(*identical as usize, if i % 10 == 8 { 8 } else { i });
        }
        for (workers, memory) in [(2, 1 << 30), (4, 30_000), (1, 100_000)] {
            assert_eq!(labels(folder.path(), &vectors, 2, workers, memory), one, "{workers} workers, {memory} bytes");
        }
    }

    #[test]
    fn no_vectors_have_no_clusters() {
        let folder = tempfile::tempdir().unwrap();
        for count in 0..4u64 {
            let vectors: Vec<Vec<u64>> = (0..count).map(|i| vec![mix(i); 6]).collect();
            let alone: VectorLabels = (0..count).map(|i| [i; 3]).collect();
            assert_eq!(labels(folder.path(), &vectors, 2, 2, 1 << 20), alone);
        }
    }

    #[test]
    fn too_little_memory_is_refused_with_both_figures() {
        let rows = [1_000_000, 10, 10, 10];
        assert_eq!(Clustering::in_flight(1 << 30, &rows, 1, 8).unwrap(), (1 << 30) - 16 * 1_000_030);
        assert_eq!(Clustering::in_flight(1 << 30, &rows, 4, 8).unwrap(), (1 << 30) - 16 * 1_000_000);
        let error = Clustering::in_flight(16 << 20, &rows, 4, 8).unwrap_err().to_string();
        assert!(error.contains("at least 20 MiB") && error.contains("only 16 MiB"), "{error}");
    }
}
