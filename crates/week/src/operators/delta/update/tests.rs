//! Deltas against brute force: histories of small random weeks, whose roots must be those of
//! comparing all with all.

use std::collections::{BTreeMap, HashSet};
use std::path::Path;
use std::sync::Arc;

use super::*;
use crate::config::Method;
use crate::features::VectorKeys;
use crate::kernels::polynomials;
use crate::operators::delta::sharing::post_all;
use crate::operators::delta::{NextRun, PostingIndex};
use crate::operators::scan::{VectorFile, VectorFiles};
use crate::records::mix;
use crate::state::Coding;
use crate::structures::Ownership;
use crate::tables::{FeatureRow, Writer};

const SHARDS: u64 = 4;

/// Supershingles of a vector, as by default.
const WIDTH: usize = 6;

/// A week: the vector of each document that has one.
type WeekVectors = BTreeMap<DocId, Vec<u64>>;

/// The root of each document among very similar documents, and among virtually identical ones.
type Roots = BTreeMap<DocId, (DocId, DocId)>;

/// How a delta is run.
#[derive(Clone, Copy, Debug)]
struct Setup {
    workers: usize,
    slices: u64,
    /// Waves of the later week: with several, the files of a shard have documents in any order.
    waves: u64,
}

/// A folder of postings, and the runs of the week before; they are made if there are none.
#[derive(Clone)]
struct PostingFolder<'a> {
    folder: &'a Path,
    runs: Option<PostingRuns>,
}

/// Writes a week's vectors to a file for each shard and wave, documents to waves at random.
fn write_week(folder: &Path, week: &WeekVectors, waves: u64) -> Vec<VectorFile> {
    let mut files = Vec::new();
    for (shard, wave) in (0..SHARDS as u32).flat_map(|shard| (0..waves).map(move |wave| (shard, wave))) {
        let path = folder.join(format!("shard{shard}-wave{wave}.parquet"));
        let mut writer: Writer<FeatureRow> = Writer::create(&path).unwrap();
        let is_in_file = |doc: &DocId| doc.shard() == shard && mix(doc.row() ^ 7) % waves == wave;
        for (doc, vector) in week.iter().filter(|(doc, _)| is_in_file(doc)) {
            let supershingles: Vec<u8> = vector.iter().flat_map(|word| word.to_le_bytes()).collect();
            writer.push(FeatureRow::new(doc.to_table(), &supershingles, &[0; 4])).unwrap();
        }
        let rows = writer.finish_if_any().unwrap();
        files.push(VectorFile::new(path.into(), shard, rows));
    }
    files
}

/// The roots of a week by comparing all with all: very similar documents agree in two supershingles
/// at least.
fn brute_force(week: &WeekVectors) -> Roots {
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
            let agreements = all[a].1.iter().zip(all[b].1).filter(|(a, b)| a == b).count();
            if agreements >= 2 {
                let (root_a, root_b) = (root(&parent, a), root(&parent, b));
                parent[root_a.max(root_b)] = root_a.min(root_b);
            }
            if agreements == WIDTH && identical[b] == b {
                identical[b] = a;
            }
        }
    }
    (0..all.len()).map(|at| (*all[at].0, (*all[root(&parent, at)].0, *all[identical[at]].0))).collect()
}

/// The roots of the second week by a delta from the roots of the first, and what each worker did.
fn by_delta(
    folders: [&Path; 2],
    weeks: [&WeekVectors; 2],
    roots: &Roots,
    rows: &[u64],
    setup: Setup,
    postings: Option<PostingFolder<'_>>,
) -> (Roots, Vec<DeltaStats>) {
    let files = [write_week(folders[0], weeks[0], 1), write_week(folders[1], weeks[1], setup.waves)];
    let (roots, rows) = (roots.clone(), rows.to_vec());
    let shared = Arc::default();
    let postings = postings.map(|PostingFolder { folder, runs }| (folder.to_owned(), runs));
    let Setup { workers, slices, .. } = setup;
    let guards = timely::execute(timely::Config::process(workers), move |worker| {
        let cx = &mut Context::new(worker, &Arc::default(), &shared);
        let owned = Ownership::new(cx.index(), cx.peers(), &rows);
        let method = Method::default();
        let keys = VectorKeys::new(&method, &polynomials(method.seed, method.features));
        let own_vectors = |files: &[VectorFile]| {
            let is_own = |file: &&VectorFile| owned.shards().any(|shard| shard == file.shard);
            let own = files.iter().filter(is_own).cloned().collect();
            if files.len() > SHARDS as usize { VectorFiles::merged(own, WIDTH) } else { VectorFiles::new(own, WIDTH) }
        };
        let (before, after) = (own_vectors(&files[0]), own_vectors(&files[1]));

        // The postings of the first week.
        let run = |folder: &Path, name: &str| NextRun { made: folder.join(name), name: name.into() };
        let index = postings.as_ref().and_then(|(folder, runs)| {
            let make_all = || {
                let (first, scratch) = (run(folder, "first"), folder.join("scratch"));
                post_all(cx, &before, &rows, &first, 1 << 16, &scratch).unwrap()
            };
            let runs = runs.clone().unwrap_or_else(make_all);
            PostingIndex::open(cx, folder, Some(runs)).unwrap()
        });
        assert_eq!(index.is_some(), postings.is_some());
        let number = postings.iter().flat_map(|(folder, _)| folder.read_dir().unwrap()).count();
        // All workers have counted the runs before any of them adds one.
        cx.barrier().unwrap();
        let next_run = postings.as_ref().map(|(folder, _)| run(folder, &format!("run-{number}")));

        let input = Delta {
            before: &before,
            after: &after,
            owned: &owned,
            keys: &keys,
            agreements: 2,
            slices,
            index: index.as_ref(),
            next_run: next_run.as_ref().filter(|_| index.as_ref().is_some_and(|index| index.takes_more(&rows))),
            threads: workers,
        };
        let root = |doc: DocId| roots.get(&doc).copied().unwrap_or((DocId::NONE, DocId::NONE));
        let mut roots = VectorRoots {
            similar: owned.docs().map(|doc| root(doc).0).collect(),
            identical: owned.docs().map(|doc| root(doc).1).collect(),
        };
        let stats = delta(cx, &input, &mut roots).unwrap();
        let own_roots: Vec<(DocId, (DocId, DocId))> =
            owned.docs().zip(roots.similar.into_iter().zip(roots.identical)).collect();
        (own_roots, stats)
    })
    .unwrap();
    let (mut all_roots, mut all_stats) = (Roots::new(), Vec::new());
    for result in guards.join() {
        let (own_roots, stats) = result.unwrap();
        all_roots.extend(own_roots.into_iter().filter(|(_, root)| root.0 != DocId::NONE));
        all_stats.push(stats);
    }
    (all_roots, all_stats)
}

/// Whether each supershingle of a week has its posting; `None` if there are no postings.
fn is_posted(folder: &Path, runs: Option<&PostingRuns>, week: &WeekVectors) -> Option<bool> {
    let (runs, mut all) = (runs?, HashSet::new());
    for partition in 0..runs.coding.partitions() {
        let files = runs.files(folder, partition).unwrap();
        all.extend(files.iter().flatten().flat_map(|file| file.all().unwrap()).map(|posting| (partition, posting)));
    }
    let has_posting = |doc: &DocId, column: usize, word: u64| {
        let hash = Coding::hash(column, word);
        all.contains(&(runs.coding.partition(hash) as usize, runs.coding.posting(hash, *doc)))
    };
    let all_posted =
        |doc, vector: &[u64]| vector.iter().enumerate().all(|(column, word)| has_posting(doc, column, *word));
    Some(week.iter().all(|(doc, vector)| all_posted(doc, vector)))
}

/// The members of the cluster with this root, and their vectors.
fn members(week: &WeekVectors, roots: &Roots, root: DocId) -> WeekVectors {
    let of_root = roots.iter().filter(|(_, of_doc)| of_doc.0 == root);
    of_root.map(|(doc, _)| (*doc, week[doc].clone())).collect()
}

/// Pseudo-random numbers from a seed.
struct RandomVectors(u64);

impl RandomVectors {
    fn below(&mut self, n: u64) -> u64 {
        self.0 = mix(self.0);
        self.0 % n
    }

    /// A vector that no other document has.
    fn vector(&mut self) -> Vec<u64> {
        (0..WIDTH).map(|_| mix(self.below(1 << 40))).collect()
    }
}

/// Changes a week: documents disappear, appear, and take supershingles of others or new ones. A
/// document changes or disappears with a chance of one in twelve; in one week of four, every
/// sixteenth document with a chance of one half. Roots and hubs are the smallest documents of each
/// shard.
fn next_week(week: &WeekVectors, rows: &mut [u64], random: &mut RandomVectors) -> WeekVectors {
    let mut next = week.clone();
    let docs: Vec<DocId> = week.keys().copied().collect();
    let change_hubs = random.below(4) == 0;
    for (at, doc) in docs.iter().enumerate() {
        let rate = if change_hubs && at % 16 == 0 { 2 } else { 12 };
        match random.below(3 * rate) {
            0 => _ = next.remove(doc),
            1..=2 => _ = next.insert(*doc, vector_like_others(&docs, week, random)),
            _ => {}
        }
    }
    for _ in 0..random.below(12) {
        let shard = random.below(SHARDS);
        let doc = DocId::new(shard as u32, rows[shard as usize]);
        rows[shard as usize] += 1;
        next.insert(doc, vector_like_others(&docs, week, random));
    }
    next
}

/// A new vector that takes supershingles of none, one or two other documents; of one in three of
/// these it takes all.
fn vector_like_others(docs: &[DocId], week: &WeekVectors, random: &mut RandomVectors) -> Vec<u64> {
    let mut vector = random.vector();
    if docs.is_empty() {
        return vector;
    }
    for _ in 0..random.below(3) {
        let other = &week[&docs[random.below(docs.len() as u64) as usize]];
        let taken = random.below(1 << WIDTH) | if random.below(3) == 0 { (1 << WIDTH) - 1 } else { 0 };
        (0..WIDTH).filter(|column| taken >> column & 1 == 1).for_each(|column| vector[column] = other[column]);
    }
    vector
}

#[test]
fn every_history_ends_in_the_clusters_of_its_last_week() {
    let folder = tempfile::tempdir().unwrap();
    let paths = [folder.path().join("a"), folder.path().join("b")];
    // Sums over all deltas, to see that the histories test what they should: certificates that
    // fail, labels that change, postings that are added, merged, and dropped because they grew too
    // much.
    let (mut uncertified, mut retracted, mut differences) = (0, 0, 0);
    let (mut posted, mut merged, mut dropped) = (0, 0, 0);
    for seed in 0..60 {
        let posting_folder = folder.path().join(format!("postings-{seed}"));
        std::fs::create_dir(&posting_folder).unwrap();
        let mut runs: Option<PostingRuns> = None;
        let mut random = RandomVectors(seed);
        let mut rows = vec![0; SHARDS as usize];
        let mut week = WeekVectors::new();
        for _ in 0..8 {
            week = next_week(&week, &mut rows, &mut random);
        }
        let mut roots = brute_force(&week);
        for step in 0..4u64 {
            let next = next_week(&week, &mut rows, &mut random);
            let expected = brute_force(&next);
            let setup = Setup {
                workers: [1, 2, 3][(seed + step) as usize % 3],
                slices: [1, 1, 3][step as usize % 3],
                waves: 1 + (seed + step) % 2,
            };
            let context = format!("seed {seed}, step {step}: {setup:?}");
            let with_postings = setup.slices == 1 && seed % 4 > 0;
            let postings = with_postings.then(|| PostingFolder { folder: &posting_folder, runs: runs.take() });
            let count = |runs: &Option<PostingRuns>| runs.as_ref().map(|runs| runs.runs.len());
            let runs_before = postings.as_ref().and_then(|postings| count(&postings.runs));
            let (found, stats) = by_delta([&paths[0], &paths[1]], [&week, &next], &roots, &rows, setup, postings);

            runs = stats[0].postings.clone();
            assert!(stats.iter().all(|stats| stats.postings == runs), "all workers have the same list of runs");
            assert_ne!(is_posted(&posting_folder, runs.as_ref(), &next), Some(false), "{context}");
            posted += usize::from(runs.is_some());
            match (runs_before, count(&runs)) {
                (Some(before), Some(now)) => merged += usize::from(now <= before),
                (Some(_), None) => dropped += 1,
                _ => {}
            }
            assert_eq!(found, expected, "{context}");
            // A cluster that is not reported as changed has the members that it had, with the same
            // vectors.
            let changed: HashSet<DocId> =
                stats.iter().flat_map(|stats| stats.changed_clusters.iter().copied()).collect();
            for (doc, (root, _)) in &found {
                let now = members(&next, &found, *root);
                if !changed.contains(root) && now.len() > 1 {
                    assert_eq!(now, members(&week, &roots, roots[doc].0), "{context}, {doc}");
                }
            }
            uncertified += stats.iter().map(|stats| stats.uncertified).sum::<u64>();
            retracted += stats.iter().map(|stats| stats.retracted).sum::<u64>();
            differences += stats.iter().map(|stats| stats.differences).sum::<u64>();
            (week, roots) = (next, expected);
        }
    }
    assert!(
        uncertified > 50 && retracted > 2 * uncertified && differences > 100,
        "{uncertified} {retracted} {differences}"
    );
    assert!(posted > 100 && merged > 20 && dropped > 0, "{posted} {merged} {dropped}");
}

/// A hub, whose 60 to 140 spokes are similar to it and hardly to each other, disappears or gets
/// another vector; then it comes back.
#[test]
fn a_cluster_splits_without_its_hub_and_is_whole_again_with_it() {
    let folder = tempfile::tempdir().unwrap();
    let paths = [folder.path().join("a"), folder.path().join("b")];
    let mut cluster_counts = HashSet::new();
    for seed in 0..12u64 {
        let mut random = RandomVectors(seed ^ 0xAB);
        let hub_vector = random.vector();
        let spokes = 60 + 40 * (seed % 3);
        // The columns in which a spoke agrees with the hub: a key each. Every second seed has three
        // keys only, each with more holders than a certificate looks at.
        let key_columns: &[[usize; 2]] = &[[0, 1], [2, 3], [4, 5], [1, 2], [0, 5], [3, 4], [0, 2], [1, 5]];
        let key_columns = if seed % 2 == 0 { &key_columns[..3] } else { key_columns };
        let hub = DocId::new((seed % SHARDS) as u32, seed % 5 * 7);
        let mut with_hub = WeekVectors::from([(hub, hub_vector.clone())]);
        for spoke in 0..spokes {
            let mut vector = random.vector();
            let columns = key_columns[random.below(key_columns.len() as u64) as usize];
            columns.into_iter().for_each(|column| vector[column] = hub_vector[column]);
            // One spoke in 40 connects others.
            if random.below(40) == 0 {
                vector[..4].copy_from_slice(&hub_vector[..4]);
            }
            with_hub.insert(DocId::new((spoke % SHARDS) as u32, 100 + spoke), vector);
        }
        let rows = vec![1000; SHARDS as usize];
        let mut without_hub = with_hub.clone();
        if random.below(2) == 0 {
            _ = without_hub.remove(&hub)
        } else {
            _ = without_hub.insert(hub, random.vector())
        }
        let (roots_with, roots_without) = (brute_force(&with_hub), brute_force(&without_hub));
        cluster_counts.insert(roots_without.values().map(|root| root.0).collect::<HashSet<_>>().len());

        let setup = Setup { workers: 1 + seed as usize % 3, slices: 1 + seed % 2, waves: 1 };
        let posting_folders = [0, 1].map(|way| folder.path().join(format!("postings-{seed}-{way}")));
        posting_folders.iter().for_each(|folder| std::fs::create_dir(folder).unwrap());
        let with_postings = setup.slices == 1 && seed % 4 == 0;
        let postings = |way: usize| with_postings.then(|| PostingFolder { folder: &posting_folders[way], runs: None });
        let folders = [&*paths[0], &*paths[1]];
        let (found, stats) = by_delta(folders, [&with_hub, &without_hub], &roots_with, &rows, setup, postings(0));
        assert_eq!(found, roots_without, "seed {seed}: {setup:?}");
        assert_eq!(stats.iter().map(|stats| stats.retracted).sum::<u64>(), 1);
        let (found, _) = by_delta(folders, [&without_hub, &with_hub], &roots_without, &rows, setup, postings(1));
        assert_eq!(found, roots_with, "seed {seed}: {setup:?}");
    }
    assert!(cluster_counts.len() > 2, "{cluster_counts:?}");
}

#[test]
fn a_delta_without_changes_does_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let paths = [folder.path().join("a"), folder.path().join("b")];
    let (mut rows, mut week, mut random) = (vec![0; SHARDS as usize], WeekVectors::new(), RandomVectors(7));
    for _ in 0..8 {
        week = next_week(&week, &mut rows, &mut random);
    }
    let roots = brute_force(&week);
    let setup = Setup { workers: 2, slices: 1, waves: 1 };
    let (found, stats) = by_delta([&paths[0], &paths[1]], [&week, &week], &roots, &rows, setup, None);
    assert_eq!(found, roots);
    assert!(stats.iter().all(|stats| *stats == DeltaStats::default()));
}
