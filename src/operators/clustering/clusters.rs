//! The clusters of a week's vectors: the stage that every job with clusters stands on (Fetterly 2004, section 2).
//!
//! ```text
//! vectors ──collapse──▶ duplicates, representatives         identical vectors become one node
//!         ──prune─────▶ survivors: about one in seven       those of which enough supershingles occur elsewhere
//!         ──pairs─────▶ forest, one for each process        survivors that share a choice of supershingles, joined
//!         ──components▶ labels                              forests joined over processes, by label propagation
//!         ──resolve───▶ roots                               the smallest vector of each cluster
//!         ──lookup────▶ names                               roots and neighbours by the names that their owners give them
//! ```
//!
//! The column of supershingles is read five times at least (of six to a vector), in large pieces, each time side by side
//! with the exchange. Where the system keeps it in memory, and the files of a shard follow each other, to read it again
//! costs less than to take fresh memory for what is needed of it. What is in flight is bounded by `memory`: keys go
//! range by range where they must, and blocks to a file where even that is not enough. For what lasts 20 bytes a vector
//! are set aside, eight of them for the caller's names.

use std::cell::Cell;
use std::rc::Rc;
use std::sync::Arc;

use anyhow::{Result, bail};
use timely::worker::Worker;

use super::collapse::{Collapsed, collapse};
use super::pairs::pairs;
use super::prune::prune;
use super::stage::{ClusterStats, Clustering};
use super::survivors::Survivors;
use crate::kernels::memory::{SIDE_BY_SIDE, advise_huge_pages};
use crate::operators::components::{JoinedForests, join_forests};
use crate::operators::exchange::{LocalAnswers, NodeAnswers, all_gather, barrier, lookup, release_spare, sort_spare};
use crate::records::DocId;
use crate::structures::{Numbering, Ownership, RankBitmap, UnionFind};
use crate::watch::Stage;

/// The clusters of the own vectors. A vector that is in neither list is alone.
#[derive(Debug, Default)]
pub struct Clusters {
    /// Vectors that are the same as a smaller one.
    pub duplicates: NodeClusters,
    /// Vectors that may agree with others, and are the same as no smaller one. One that is its own neighbour is alone.
    pub survivors: NodeClusters,
    /// What it took.
    pub took: ClusterStats,
}

/// What was found of some own vectors.
#[derive(Debug, Default)]
pub struct NodeClusters {
    /// Which of the own vectors they are, ascending.
    pub own: Vec<u32>,
    /// The name of the smallest vector of each one's cluster.
    pub roots: Vec<u64>,
    /// The name of a neighbour of each. Of a duplicate: the smallest vector that is the same. Of others: the smallest
    /// of the vectors that are the smallest to share some choice of supershingles with it, of all or of their shard
    /// (see `pairs`); where that is itself, the smallest other one.
    pub neighbours: Vec<u64>,
}

impl NodeClusters {
    /// Each vector with its root and its neighbour.
    pub fn iter(&self) -> impl Iterator<Item = (u32, u64, u64)> {
        let (roots, neighbours) = (self.roots.iter(), self.neighbours.iter());
        self.own.iter().zip(roots).zip(neighbours).map(|((own, root), neighbour)| (*own, *root, *neighbour))
    }
}

/// Finds the clusters. `name` gives the name of an own vector; names ascend with vectors.
///
/// # Errors
/// Where vectors cannot be read, or a worker of this process failed.
pub fn clusters(
    worker: &mut Worker,
    stage: &Clustering,
    name: impl Fn(usize) -> u64 + Send + Sync + 'static,
) -> Result<Clusters> {
    let watch = &stage.watch;
    if stage.files.len() > u64::from(u32::MAX) {
        bail!("{} pages are more than one worker can cluster: use more workers", stage.files.len());
    }
    watch.enter(Stage::Collapse);
    let vectors = Ownership::new(worker.index(), worker.peers(), &stage.numbering.rows());
    let Collapsed { marks, firsts } = collapse(worker, stage, &vectors)?;
    sort_spare();
    watch.enter(Stage::Prune);
    let representatives = (marks.len() - firsts.len()) as u64;
    let survivors = prune(worker, stage, &vectors, marks, representatives)?;
    watch.enter(Stage::Pairs);
    let nodes = nodes(worker, stage, &survivors)?;
    // The forest has the pages that blocks of the phase before had.
    release_spare(nodes.numbering.len() as usize / stage.threads * UnionFind::NODE_BYTES);
    let forest = stage.shared.union_find.of(|| UnionFind::new(nodes.numbering.len() as usize));
    forest.take_pages(worker.index() % stage.threads, stage.threads);
    let (survivors, mut took) = pairs(worker, stage, &vectors, &nodes.numbering, survivors, &forest)?;
    // What follows needs memory of other kinds, and few blocks.
    release_spare(usize::MAX);
    let (survivors, duplicates) = survivors.into_lists();
    let duplicates = Duplicates::new(duplicates, firsts);
    (took.duplicates, took.survivors) = (duplicates.own.len() as u64, survivors.len() as u64);
    watch.enter(Stage::Components);
    let joined = join_forests(worker, &nodes.numbering, &nodes.owned, forest, stage.threads, watch)?;
    (took.forest_edges, took.rounds) = (joined.edges, joined.rounds);
    let (duplicates, survivors) = named(worker, stage, (&vectors, &nodes.owned), survivors, joined, duplicates, name)?;
    release_spare(usize::MAX);
    Ok(Clusters { duplicates, survivors, took })
}

/// The survivors as nodes of a graph.
struct Nodes {
    /// Of all workers.
    numbering: Numbering,
    owned: Ownership,
}

/// Numbers the survivors of all workers, in the order of their vectors.
fn nodes(worker: &mut Worker, stage: &Clustering, survivors: &Survivors) -> Result<Nodes> {
    let counts = survivors.of_shards.iter().enumerate().filter(|(_, count)| **count > 0);
    let counts: Vec<(u64, u64)> = counts.map(|(shard, count)| (shard as u64, *count)).collect();
    let mut rows = vec![0; stage.numbering.shards()];
    for (shard, count) in all_gather(worker, counts, &stage.watch)? {
        rows[shard as usize] = count;
    }
    let numbering = Numbering::new(&rows);
    if numbering.len() >= u64::from(u32::MAX) {
        bail!("{} pages to compare are more than one run can join", numbering.len());
    }
    Ok(Nodes { numbering, owned: Ownership::new(worker.index(), worker.peers(), &rows) })
}

/// The own duplicates, whose roots are not known yet.
struct Duplicates {
    /// Which of the own vectors they are, ascending.
    own: Vec<u32>,
    /// The number of the first vector that is the same.
    firsts: Vec<u64>,
    /// Room for the names of their roots.
    roots: Vec<u64>,
}

impl Duplicates {
    fn new(own: Vec<u32>, firsts: Vec<u64>) -> Duplicates {
        let mut roots = Vec::with_capacity(own.len());
        advise_huge_pages(roots.spare_capacity_mut());
        // Written at once, into pages that blocks just gave back: the system's own zeros would be taken only when they are needed.
        roots.resize(own.len(), 0);
        Duplicates { own, firsts, roots }
    }
}

/// Puts names to what was found of survivors and of duplicates.
fn named(
    worker: &mut Worker,
    stage: &Clustering,
    (vectors, nodes): (&Ownership, &Ownership),
    own: Vec<u32>,
    JoinedForests { roots, neighbours, .. }: JoinedForests,
    duplicates: Duplicates,
    name: impl Fn(usize) -> u64 + Send + Sync + 'static,
) -> Result<(NodeClusters, NodeClusters)> {
    let (watch, shared) = (&stage.watch, &stage.shared);
    let mut names = Vec::with_capacity(own.len());
    advise_huge_pages(names.spare_capacity_mut());
    names.extend(own.iter().map(|vector| name(*vector as usize)));
    let near = LocalAnswers::of_process(worker, &shared.survivor_ids, move |node| [names[node]], watch)?;
    // Names take the places of what they are the names of.
    let id = |number: u64| DocId::from_table(number as i64);
    let mut name_all = |ids: Vec<DocId>| -> Result<Vec<u64>> {
        let places = in_place(bytemuck::allocation::cast_vec(ids));
        let ask = questions(&places, id);
        lookup(worker, nodes, ask, &near, watch, |at, [name]| places[at].set(name))?;
        Ok(out_of_place(places))
    };
    let (roots, neighbours) = (Arc::new(name_all(roots)?), name_all(neighbours)?);
    drop(near);
    assert_eq!(roots.len(), own.len(), "every survivor has a root");

    let ranks = RankBitmap::new(vectors.len(), own.iter().copied());
    let near =
        LocalAnswers::of_process(worker, &shared.vector_ids, RootNames { ranks, roots: roots.clone(), name }, watch)?;
    let (identical, mut similar) = (in_place(duplicates.firsts), duplicates.roots);
    let numbering = stage.numbering.clone();
    let ask = questions(&identical, move |number| numbering.id(number));
    lookup(worker, vectors, ask, &near, watch, |at, [name, root]| {
        identical[at].set(name);
        similar[at] = root;
    })?;
    drop(near);
    // All have let go of it, as timely has of its operators at the next step.
    barrier(worker, watch)?;
    let roots = Arc::try_unwrap(roots).unwrap_or_else(|shared| shared.to_vec());
    let duplicates = NodeClusters { own: duplicates.own, roots: similar, neighbours: out_of_place(identical) };
    Ok((duplicates, NodeClusters { own, roots, neighbours }))
}

/// The names of own vectors, and those of their roots. Survivors have these roots, by their ranks; others are alone.
struct RootNames<N> {
    ranks: RankBitmap,
    roots: Arc<Vec<u64>>,
    name: N,
}

impl<N: Fn(usize) -> u64> NodeAnswers<2> for RootNames<N> {
    fn look_up(&self, vectors: &[usize], answers: &mut [[u64; 2]]) {
        debug_assert!(vectors.len() <= SIDE_BY_SIDE);
        let (mut ranks, mut roots) = ([(false, 0); SIDE_BY_SIDE], [0; SIDE_BY_SIDE]);
        self.ranks.get_all(vectors.iter().copied(), &mut ranks);
        // Whether a vector is a survivor decides no branch. The rank of one that is none may lie behind the last root.
        let root = |rank| self.roots.get(rank).copied().unwrap_or_default();
        roots.iter_mut().zip(&ranks[..vectors.len()]).for_each(|(to, (_, rank))| *to = root(*rank));
        for (answer, (vector, ((found, _), root))) in
            answers.iter_mut().zip(vectors.iter().zip(ranks.iter().zip(roots)))
        {
            let own = (self.name)(*vector);
            *answer = [own, std::hint::select_unpredictable(*found, root, own)];
        }
    }
}

/// Words that are replaced one by one while others of them are read.
fn in_place(words: Vec<u64>) -> Rc<Vec<Cell<u64>>> {
    Rc::new(words.into_iter().map(Cell::new).collect())
}

fn out_of_place(cells: Rc<Vec<Cell<u64>>>) -> Vec<u64> {
    match Rc::try_unwrap(cells) {
        Ok(cells) => cells.into_iter().map(Cell::into_inner).collect(),
        Err(shared) => shared.iter().map(Cell::get).collect(),
    }
}

/// Goes over the nodes that words stand for, as often as it is asked to.
fn questions(
    words: &Rc<Vec<Cell<u64>>>,
    node: impl Fn(u64) -> DocId + Clone + 'static,
) -> impl Fn() -> Box<dyn Iterator<Item = DocId>> {
    let words = words.clone();
    move || {
        let (words, node) = (words.clone(), node.clone());
        Box::new((0..words.len()).map(move |at| node(words[at].get())))
    }
}

#[cfg(test)]
mod tests {
    use crate::features::VectorKeys;
    use crate::operators::InProcess;
    use crate::operators::scan::VectorFiles;
    use std::collections::{BTreeMap, BTreeSet};
    use std::path::Path;

    use super::*;
    use crate::config::Method;
    use crate::features::polynomials;
    use crate::operators::clustering::stage::Clustering;
    use crate::operators::scan::VectorFile;
    use crate::records::mix;
    use crate::tables::{FeatureRow, Writer};

    /// Each vector's roots and neighbour, by vector: similar, neighbour, identical.
    type Labels = Vec<[u64; 3]>;

    const SHARDS: usize = 8;

    /// Writes vectors to the files of shards, some of each by turns: vector i is in the shard i * SHARDS / n.
    fn write(folder: &Path, vectors: &[Vec<u64>], files_of_shard: usize) -> Vec<VectorFile> {
        let n = vectors.len();
        let file = |shard: usize, file: usize| {
            let of_shard = &vectors[shard * n / SHARDS..(shard + 1) * n / SHARDS];
            let path = folder.join(format!("shard{shard}.{file}.parquet"));
            let mut writer: Writer<FeatureRow> = Writer::create(&path).unwrap();
            let of_file = of_shard.iter().enumerate().skip(file).step_by(files_of_shard);
            let rows = of_file.len() as u64;
            for (row, vector) in of_file {
                let doc = DocId::new(shard as u32, row as u64).to_table();
                let supershingles = vector.iter().flat_map(|word| word.to_le_bytes()).collect();
                writer.push(FeatureRow { doc, supershingles, features: vec![0; 4] }).unwrap();
            }
            writer.finish().unwrap();
            VectorFile { path, shard: shard as u32, rows }
        };
        (0..SHARDS).flat_map(|shard| (0..files_of_shard).map(move |of_shard| file(shard, of_shard))).collect()
    }

    /// The labels by the stage, with so many workers that each have `memory` bytes for the records in flight.
    fn labels(folder: &Path, vectors: &[Vec<u64>], agreements: usize, workers: usize, memory: u64) -> Labels {
        labels_of_files(folder, write(folder, vectors, 1), vectors, agreements, workers, memory).unwrap()
    }

    /// As [`labels`], of vectors that were written to files; or what is wrong with these.
    fn labels_of_files(
        folder: &Path,
        files: Vec<VectorFile>,
        vectors: &[Vec<u64>],
        agreements: usize,
        workers: usize,
        memory: u64,
    ) -> Result<Labels, String> {
        let n = vectors.len();
        let merged = files.len() > SHARDS;
        let (width, shared) = (vectors.first().map_or(6, Vec::len), Arc::<InProcess>::default());
        let scratch = folder.join("scratch");
        let guards = timely::execute(timely::Config::process(workers), move |worker| {
            let method = Method { features: 84 / width * width, supershingles: width, agreements, ..Method::default() };
            let rows: Vec<u64> =
                (0..SHARDS).map(|shard| ((shard + 1) * n / SHARDS - shard * n / SHARDS) as u64).collect();
            let (numbering, owned) = (Numbering::new(&rows), Ownership::new(worker.index(), worker.peers(), &rows));
            let is_own = |file: &&VectorFile| file.shard as usize % worker.peers() == worker.index();
            let of_worker: Vec<VectorFile> = files.iter().filter(is_own).cloned().collect();
            let clustering = Clustering {
                files: if merged { VectorFiles::merged(of_worker, width) } else { VectorFiles::new(of_worker, width) },
                numbering: Rc::new(numbering.clone()),
                keys: Rc::new(VectorKeys::new(&method, &polynomials(1, method.features))),
                agreements,
                memory,
                scratch: scratch.clone(),
                shared: shared.clone(),
                threads: workers,
                watch: Arc::default(),
            };
            let names: Arc<Vec<u64>> = Arc::new(owned.docs().map(|doc| numbering.number(doc)).collect());
            let named = names.clone();
            let found = clusters(worker, &clustering, move |own| named[own]);
            let failure = |_| clustering.watch.take_failure().map_or_else(String::new, |error| error.to_string());
            let Clusters { duplicates, survivors, .. } = found.map_err(failure)?;
            let mut labels: BTreeMap<u64, [u64; 3]> = names.iter().map(|name| (*name, [*name; 3])).collect();
            for (own, root, neighbour) in survivors.iter() {
                let name = names[own as usize];
                labels.insert(name, [root, neighbour, name]);
            }
            for (own, root, same) in duplicates.iter() {
                labels.insert(names[own as usize], [root, same, same]);
            }
            Ok::<_, String>(labels)
        });
        let mut all: BTreeMap<u64, [u64; 3]> = BTreeMap::new();
        for labels in guards.unwrap().join() {
            all.extend(labels.unwrap()?);
        }
        assert!(all.keys().copied().eq(0..vectors.len() as u64), "every vector has one owner");
        Ok(all.into_values().collect())
    }

    /// The same by comparing all with all, but for neighbours, which are checked for what they are.
    fn assert_right(vectors: &[Vec<u64>], agreements: usize, labels: &Labels) {
        let agree = |a: usize, b: usize| vectors[a].iter().zip(&vectors[b]).filter(|(a, b)| a == b).count();
        let mut roots: Vec<usize> = (0..vectors.len()).collect();
        for a in 0..vectors.len() {
            for b in 0..a {
                if agree(a, b) >= agreements && roots[a] != roots[b] {
                    let (low, high) = (roots[a].min(roots[b]), roots[a].max(roots[b]));
                    roots.iter_mut().filter(|root| **root == high).for_each(|root| *root = low);
                }
            }
        }
        for (vector, [root, neighbour, identical]) in labels.iter().enumerate() {
            assert_eq!(*root as usize, roots[vector], "the root of {vector}");
            let same = (0..=vector).find(|other| vectors[*other] == vectors[vector]).unwrap();
            assert_eq!(*identical as usize, same, "the smallest that is the same as {vector}");
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

    /// Vectors whose supershingles come from small pools, with copies of whole vectors.
    fn random(seed: u64, count: u64, width: usize, pool: u64) -> Vec<Vec<u64>> {
        let word = |i: u64, j: usize| match mix(seed ^ (i << 8) ^ j as u64) {
            // Half of them occur once.
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
            // So little memory that keys go in many ranges, and blocks to a file.
            for (workers, memory) in [(2, 1 << 30), (4, 1 << 30), (12, 1 << 30), (1, 3000), (2, 500), (4, 0)] {
                let others = labels(folder.path(), &vectors, agreements, workers, memory);
                assert_eq!(others, one, "{workers} workers with {memory} bytes, {agreements} of {width}");
            }
        }
        let left = std::fs::read_dir(folder.path().join("scratch")).unwrap().count();
        assert_eq!(left, 0, "nothing is left of spilled blocks");
    }

    #[test]
    fn just_enough_agreements_are_found_wherever_they_are() {
        let folder = tempfile::tempdir().unwrap();
        for (width, agreements) in [(6, 2), (6, 3), (6, 5), (5, 2), (3, 2), (2, 1)] {
            let masks: Vec<u64> = (0..1 << width).filter(|mask: &u64| mask.count_ones() == agreements).collect();
            // Two for every choice that agree in it, and in nothing else with anybody; far from each other, with shards
            // between them that have nobody to compare.
            let of = |half: u64| {
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
            let vectors: Vec<Vec<u64>> = of(1).chain(alone.map(Iterator::collect)).chain(of(2)).collect();
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
    fn missing_and_repeated_files_are_noticed() {
        let folder = tempfile::tempdir().unwrap();
        let vectors = random(12, 80, 6, 30);
        let changes: [fn(&mut Vec<VectorFile>); 3] =
            [|files| _ = files.remove(3), |files| _ = files.pop(), |files| files[1] = files[0].clone()];
        for change in changes {
            let mut files = write(folder.path(), &vectors, 1);
            change(&mut files);
            let wrong = labels_of_files(folder.path(), files, &vectors, 2, 1, 1 << 30).unwrap_err();
            assert!(wrong.contains("changed while they were read"), "{wrong}");
        }
    }

    #[test]
    fn keys_and_vectors_that_everybody_has_are_chained() {
        // In every shard more share the first two supershingles than are sent; a page that is everywhere; and a
        // second crowd that meets the first one in one vector only.
        let folder = tempfile::tempdir().unwrap();
        let count = 8 * 1500;
        let mut vectors: Vec<Vec<u64>> = (0..count)
            .map(|i| match i % 10 {
                0..8 => [1, 2].into_iter().chain((2..6).map(|j| mix(i << 8 | j))).collect(),
                8 => vec![7; 6],
                _ => [3, 4].into_iter().chain((2..6).map(|j| mix(i << 8 | j))).collect(),
            })
            .collect();
        vectors[7009] = vec![1, 2, 3, 4, 5, 6];
        vectors[7019] = vec![3, 4, 3, 4, 5, 6];
        let one = labels(folder.path(), &vectors, 2, 1, 1 << 30);
        let roots: BTreeSet<u64> = one.iter().map(|[root, ..]| *root).collect();
        assert_eq!(roots.into_iter().collect::<Vec<u64>>(), [0, 8]);
        let crowd = |i: usize| {
            if i == 7009 {
                0
            } else if i == 7019 {
                9
            } else {
                i % 10
            }
        };
        for (i, [_, neighbour, identical]) in one.iter().enumerate() {
            let agree = vectors[i].iter().zip(&vectors[*neighbour as usize]).filter(|(a, b)| a == b).count();
            assert!(agree >= 2 && (*neighbour as usize != i || i == 8), "{neighbour} is a neighbour of {i}");
            assert_eq!(*identical as usize, if crowd(i) == 8 { 8 } else { i });
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
            let alone: Labels = (0..count).map(|i| [i; 3]).collect();
            assert_eq!(labels(folder.path(), &vectors, 2, 2, 1 << 20), alone);
        }
    }

    #[test]
    fn too_little_memory_is_refused_with_both_figures() {
        let rows = [1_000_000, 10, 10, 10];
        assert_eq!(Clustering::in_flight(1 << 30, &rows, 1).unwrap(), (1 << 30) - 20 * 1_000_030);
        assert_eq!(Clustering::in_flight(1 << 30, &rows, 4).unwrap(), (1 << 30) - 20 * 1_000_000);
        let error = Clustering::in_flight(20 << 20, &rows, 4).unwrap_err().to_string();
        assert!(error.contains("at least 23 MiB") && error.contains("20 MiB"), "{error}");
    }
}
