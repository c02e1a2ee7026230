//! Random histories against a full clustering of what is there after each batch.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

use super::*;
use crate::records::{FeatureBits, Level, mix};

/// What is there, by name.
type There = BTreeMap<String, Features>;

/// Clusters, each by its documents.
type NameSets = Vec<BTreeSet<String>>;

fn features(checksum: u128, supershingles: &[u64]) -> Features {
    let features = supershingles.iter().flat_map(|word| [*word as FeatureBits; 14]).collect();
    let sketch = Sketch { features, supershingles: supershingles.to_vec() };
    Features { checksum, facts: PageFacts { sketch, ..PageFacts::default() } }
}

/// Whether two pages are linked at a level.
fn are_linked(level: Level, a: &Features, b: &Features) -> bool {
    let (one, other) = (&a.facts.sketch.supershingles, &b.facts.sketch.supershingles);
    if one.is_empty() || other.is_empty() {
        return one.is_empty() && other.is_empty() && a.checksum == b.checksum;
    }
    match level {
        Level::Similar => one.iter().zip(other).filter(|(a, b)| a == b).count() >= 2,
        Level::Identical => one == other,
        Level::Exact => one == other && a.checksum == b.checksum,
    }
}

/// The clusters of a level, of one document or more: every pair is compared.
fn clustered(there: &There, level: Level) -> NameSets {
    let mut sets: NameSets = Vec::new();
    for (name, page) in there {
        let (joined, mut apart): (NameSets, NameSets) =
            sets.into_iter().partition(|set| set.iter().any(|other| are_linked(level, page, &there[other])));
        apart.push(joined.into_iter().flatten().chain([name.clone()]).collect());
        sets = apart;
    }
    sets.sort();
    sets
}

/// The ids and changes that the rule gives, from the sets of the batch before.
fn named(
    before: &BTreeMap<i64, BTreeSet<String>>,
    now: &NameSets,
    given: &mut i64,
    rank: impl Fn(&str) -> u32,
) -> (BTreeMap<i64, BTreeSet<String>>, Vec<ClusterChange>) {
    let root = |set: &BTreeSet<String>| set.iter().map(|name| rank(name)).min().unwrap();
    let mut now: Vec<&BTreeSet<String>> = now.iter().filter(|set| set.len() > 1).collect();
    now.sort_by_key(|set| root(set));
    let shared = |id: &i64, set: &BTreeSet<String>| before[id].intersection(set).count() as u64;
    let successor = |id: &i64| {
        let sets = now.iter().enumerate().filter(|(_, set)| shared(id, set) > 0);
        sets.max_by_key(|(at, set)| (shared(id, set), Reverse(*at))).map(|(at, _)| at)
    };
    let successors: BTreeMap<i64, Option<usize>> = before.keys().map(|id| (*id, successor(id))).collect();
    let mut after = BTreeMap::new();
    for (at, set) in now.iter().enumerate() {
        let succeeded = before.keys().copied().filter(|id| successors[id] == Some(at));
        let best = succeeded.max_by_key(|id| (shared(id, set), *id > 0, Reverse(id.unsigned_abs())));
        let id = best.unwrap_or_else(|| {
            *given += 1;
            -*given
        });
        after.insert(id, (*set).clone());
    }
    let mut changes = Vec::new();
    let mut push = |event, cluster, into, sizes: (usize, usize), documents| {
        changes.push(ClusterChange { event, cluster, into, before: sizes.0 as u64, after: sizes.1 as u64, documents });
    };
    for (id, set) in &after {
        if before.keys().all(|id| shared(id, set) == 0) {
            push("birth", *id, None, (0, set.len()), set.len() as u64);
        }
    }
    for (id, set) in before {
        if successors[id].is_none() {
            push("death", *id, None, (set.len(), 0), set.len() as u64);
        }
        for (other, members) in after.iter().filter(|(_, members)| shared(id, members) > 0) {
            let sizes = (set.len(), members.len());
            if other != id {
                let succeeds = successors[id].is_some_and(|at| now[at] == members);
                push(if succeeds { "merge" } else { "split" }, *id, Some(*other), sizes, shared(id, members));
            } else if sizes.0 < sizes.1 {
                push("grow", *id, None, sizes, (sizes.1 - sizes.0) as u64);
            } else if sizes.0 > sizes.1 {
                push("shrink", *id, None, sizes, (sizes.0 - sizes.1) as u64);
            }
        }
    }
    changes.sort_by_key(|change| (change.cluster, change.event, change.into));
    (after, changes)
}

/// A batch of a history: names, and pages or deletions.
type KnownBatch = Vec<(String, Option<Features>)>;

/// A random batch. `values` of each supershingle: few make large clusters.
fn batch(seed: u64, names: u64, values: u64) -> KnownBatch {
    let random = |salt: u64| mix(seed << 20 ^ salt);
    let record = |at: u64| {
        let random = |salt: u64| random(at << 8 | salt);
        let name = format!("n{}", random(0) % names);
        let page = match random(1) % 10 {
            0..3 => None,
            3 => Some(features(u128::from(random(2) % 2), &[])),
            // Many documents of one vector.
            4 => Some(features(u128::from(random(2) % 3), &[1; 6])),
            _ => {
                let vector: Vec<u64> = (0..6).map(|column| ((random(10 + column) % values) << 3) | column).collect();
                Some(features(u128::from(random(3) % 2), &vector))
            }
        };
        (name, page)
    };
    (0..random(99) % 14).map(record).collect()
}

fn answers(engine: &mut Engine, batch: &KnownBatch) -> Vec<Answer> {
    let records = batch.iter().map(|(name, page)| ((KeyHash::of(name), name.as_str()), page.clone())).collect();
    engine.apply_features(records, &[], &mut NoTexts, Wanted::Answers).unwrap()
}

fn engine(workers: usize) -> Engine {
    of_method(Method::default(), workers)
}

/// An engine with this many workers. With several it has other processes, too, which are threads.
fn of_method(method: Method, workers: usize) -> Engine {
    let others = SharedProcesses::of(KeyProcesses::threads(workers / 2));
    Engine::with_processes(&Method { documents: DocumentKey::Id, ..method }, workers, &others).unwrap()
}

/// Checks what an engine says after a batch. `levels` are the clusters of each level, `candidates`
/// those of documents that share keys.
fn check(
    engine: &mut Engine,
    (there, levels, candidates): (&There, &[NameSets; 3], &NameSets),
    ids: &BTreeMap<i64, BTreeSet<String>>,
    came: &BTreeMap<String, u32>,
    batch: &KnownBatch,
    answers: &[Answer],
    place: &str,
) {
    let set_of = |level: usize, name: &String| levels[level].iter().find(|set| set.contains(name)).unwrap();
    assert_eq!(engine.counts().documents, there.len() as u64);
    assert_eq!(engine.counts().clusters, ids.len() as u64, "{place}");
    for name in there.keys() {
        let answer = engine.document(name).unwrap();
        let similar = set_of(0, name);
        let id = ids.iter().find(|(_, set)| *set == similar).map(|(id, _)| *id);
        assert_eq!((answer.size, answer.cluster), (similar.len() as u64, id), "{name}, {place}");
        let strictest = (0..3).rev().find(|level| set_of(*level, name).len() > 1);
        assert_eq!(answer.level, strictest.map(|level| Level::ALL[level]), "{name}, {place}");
        assert_eq!(answer.canonical.as_ref(), similar.iter().min_by_key(|name| came[*name]), "{name}, {place}");
        let candidates = candidates.iter().find(|set| set.contains(name)).unwrap();
        for near in answer.nearest {
            assert!(near.name != *name && candidates.contains(&near.name), "{name} is near {}, {place}", near.name);
        }
    }
    for (id, set) in ids {
        let cluster = engine.cluster(*id, usize::MAX).unwrap();
        let mut in_order: Vec<&String> = set.iter().collect();
        in_order.sort_by_key(|name| came[*name]);
        assert!(cluster.documents.iter().eq(in_order), "{:?}, {place}", cluster.documents);
        assert_eq!(cluster.canonical, cluster.documents[0]);
    }
    assert_eq!(answers.len(), batch.len());
    for ((name, _), answer) in batch.iter().zip(answers) {
        assert_eq!((answer.id.as_ref(), answer.deleted), (Some(name), !there.contains_key(name)));
        if !answer.deleted {
            let now = engine.document(name).unwrap();
            assert_eq!((answer.cluster, answer.size, &answer.nearest), (now.cluster, now.size, &now.nearest));
        }
    }
}

/// Plays a history on engines: after every batch the clusters are those that `levels_of` finds, and
/// the ids and changes those of the rule. `answer` applies a batch to the engine with this number.
/// Returns after how many batches the clusters were not all that keys connect.
fn play(
    engines: &mut [Engine],
    history: impl Iterator<Item = (String, KnownBatch)>,
    mut answer: impl FnMut(usize, &mut Engine, &KnownBatch) -> Vec<Answer>,
    levels_of: impl Fn(&There) -> [NameSets; 3],
) -> usize {
    let mut apart = 0;
    let (mut there, mut ids, mut given) = (There::new(), BTreeMap::new(), 0);
    // By name: in which place the document came that is there.
    let (mut came, mut next) = (BTreeMap::new(), 0u32);
    for (place, batch) in history {
        let known: BTreeSet<String> = there.keys().cloned().collect();
        for (at, (name, page)) in batch.iter().enumerate() {
            let is_last = batch[at + 1..].iter().all(|(other, _)| other != name);
            if is_last && page.is_none() {
                came.remove(name);
            } else if is_last && !came.contains_key(name) {
                came.insert(name.clone(), next);
                next += 1;
            }
            match page {
                Some(page) => _ = there.insert(name.clone(), page.clone()),
                None => _ = there.remove(name),
            }
        }
        let changed = engines[0].changed;
        let all: Vec<Vec<Answer>> =
            engines.iter_mut().enumerate().map(|(number, engine)| answer(number, engine, &batch)).collect();
        assert!(
            all.iter().all(|answers| *answers == all[0]),
            "{place}: the same for any number of workers and processes"
        );
        let engine = &mut engines[0];
        let rank = |name: &str| came[name];
        let levels = levels_of(&there);
        let (after, changes) = named(&ids, &levels[0], &mut given, rank);
        let found = engine.changes_since(changed, usize::MAX).unwrap();
        assert_eq!(found.into_iter().map(|change| change.change).collect::<Vec<_>>(), changes, "{place}");
        ids = after;
        for answer in all[0].iter().filter(|answer| !answer.deleted) {
            assert_eq!(answer.new, !known.contains(answer.id.as_ref().unwrap()), "{place}");
        }
        let candidates = clustered(&there, Level::Similar);
        apart += usize::from(levels[0] != candidates);
        check(engine, (&there, &levels, &candidates), &ids, &came, &batch, &all[0], &place);
    }
    apart
}

#[test]
fn after_every_batch_the_clusters_are_those_of_a_full_clustering() {
    for (seed, names, values) in [(1u64, 30u64, 4u64), (2, 60, 8), (3, 15, 3), (4, 60, 20), (5, 200, 12), (6, 100, 6)] {
        let history =
            (0..60).map(|step| (format!("seed {seed}, step {step}"), batch(seed << 10 | step, names, values)));
        let levels_of = |there: &There| Level::ALL.map(|level| clustered(there, level));
        let apart = play(&mut [1, 2, 4].map(engine), history, |_, engine, batch| answers(engine, batch), levels_of);
        assert_eq!(apart, 0);
    }
}

#[test]
fn the_order_within_a_batch_is_of_no_account_for_the_clusters() {
    for seed in 0..20u64 {
        let (mut one, mut other) = (engine(1), engine(2));
        for step in 0..6 {
            let mut batch = batch(seed << 30 | step, 40, 6);
            let mut seen = BTreeSet::new();
            batch.retain(|(name, _)| seen.insert(name.clone()));
            answers(&mut one, &batch);
            batch.reverse();
            answers(&mut other, &batch);
        }
        let sizes = |engine: &mut Engine| {
            (0..40)
                .map(|name| engine.document(&format!("n{name}")).map(|answer| (answer.size, answer.level)).ok())
                .collect::<Vec<_>>()
        };
        assert_eq!(sizes(&mut one), sizes(&mut other), "{seed}");
    }
}

#[test]
fn long_chains_and_large_clusters_merge_and_split() {
    // Each document shares two supershingles with the one before it and two others with the one
    // after it.
    let link =
        |at: u64| features(u128::from(at), &[2 * at, 2 * at + 1, 2 * at + 2, 2 * at + 3, 7 << 40 | at, 8 << 40 | at]);
    let shifted = |at: u64| {
        let mut page = link(at);
        // The shared ones are at the same places.
        let words = page.facts.sketch.supershingles.clone();
        if at % 2 == 1 {
            page.facts.sketch.supershingles = vec![words[2], words[3], words[0], words[1], words[4], words[5]];
        }
        page
    };
    let mut engine = engine(2);
    let name = |at: u64| format!("{at}");
    // Even numbers first, one batch each ten: parts that are joined later, by batches of a few.
    let put = |at: u64| (name(at), Some(shifted(at)));
    for part in 0..10 {
        answers(&mut engine, &(part * 200..part * 200 + 200).filter(|at| at % 10 > 0).map(put).collect());
    }
    assert_eq!(engine.document("5").unwrap().size, 9);
    for part in 0..50u64 {
        answers(&mut engine, &(0..4).map(|at| put((part * 4 + at) * 10)).collect());
    }
    assert_eq!(engine.document("5").unwrap().size, 2000);
    answers(&mut engine, &vec![(name(700), None)]);
    let sizes = ["5", "1999"].map(|name| engine.document(name).unwrap().size);
    assert_eq!(sizes, [700, 1299]);
    assert_ne!(engine.document("5").unwrap().cluster, engine.document("1999").unwrap().cluster);
    answers(&mut engine, &vec![put(700)]);
    assert_eq!(engine.document("5").unwrap().size, 2000);
}

#[test]
fn a_store_goes_on_with_its_ids() {
    let page = |at: u64| {
        features(u128::from(at), &[at / 3, at / 3 + 5, 1 << 30 | at, 2 << 30 | at, 3 << 30 | at, 4 << 30 | at])
    };
    // Sketches come in another order than documents.
    let load = |engine: &mut Engine, clusters: &[Option<i64>]| {
        let mut load = engine.load(clusters.len(), 0);
        for (at, cluster) in (0..).zip(clusters) {
            load.document(at, &at.to_string(), page(at as u64).checksum, *cluster)?;
        }
        for at in (0..clusters.len() as u64).rev() {
            let Sketch { supershingles, features } = page(at).facts.sketch;
            load.sketch(at as i64, &supershingles, &features)?;
        }
        load.finish()
    };
    let mut engine = engine(2);
    load(&mut engine, &(0..9).map(|at| Some(100 + at / 3)).collect::<Vec<_>>()).unwrap();
    assert_eq!(engine.document("4").unwrap().cluster, Some(101));
    let found = answers(&mut engine, &vec![("x".to_owned(), Some(page(3))), ("5".to_owned(), Some(page(0)))]);
    assert_eq!((found[0].cluster, found[0].size, found[0].doc), (Some(101), 3, None));
    assert_eq!(
        (found[1].cluster, found[1].size, found[1].doc, found[1].level),
        (Some(100), 4, Some(5), Some(Level::Exact))
    );
    let events: Vec<_> = found[1].changes.iter().map(|change| (change.event, change.cluster, change.into)).collect();
    assert_eq!(events, [("grow", 100, None), ("split", 101, Some(100))]);
    // Tables of other clusters are refused.
    for wrong in [[Some(1), Some(1), None], [Some(1), Some(1), Some(2)], [None; 3]] {
        let error = load(&mut self::engine(1), &wrong).unwrap_err().to_string();
        assert!(error.contains("made in another way"), "{error}");
    }
    // And tables that contradict each other.
    let mut engine = self::engine(1);
    let mut load = engine.load(1, 0);
    load.document(7, "a", 1, None).unwrap();
    assert_eq!(load.document(7, "b", 1, None).unwrap_err().to_string(), "the table documents has document 7 twice");
    let error = load.sketch(8, &[1; 6], &[1; 84]).unwrap_err().to_string();
    assert_eq!(error, "the table features has document 8, which the table documents lacks");
    load.sketch(7, &[1; 6], &[1; 84]).unwrap();
    let error = load.sketch(7, &[1; 6], &[1; 84]).unwrap_err().to_string();
    assert_eq!(error, "the table features has document 7 twice");
}

#[test]
fn changes_that_are_gone_are_refused() {
    let mut engine = engine(1);
    for step in 0..30u64 {
        answers(&mut engine, &batch(step, 20, 3));
    }
    let all = engine.changes_since(0, usize::MAX).unwrap();
    assert_eq!(all.iter().map(|change| change.number).collect::<Vec<_>>(), (1..=engine.changed).collect::<Vec<_>>());
    assert_eq!(engine.changes_since(3, 2).unwrap(), all[3..5]);
    assert_eq!(engine.changes_since(engine.changed, 2).unwrap(), []);
    // What was not given yet, or by a process that knew more.
    for since in [engine.changed + 1, u64::MAX] {
        assert_eq!(engine.changes_since(since, 2).unwrap_err().status, 410);
    }
    engine.changes.drain(..5);
    engine.kept_after = 5;
    assert_eq!(engine.changes_since(4, 1).unwrap_err().status, 410);
    assert_eq!(engine.changes_since(5, 1).unwrap(), all[5..6]);
    // After a gap, as a commit leaves it, changes are found by their numbers.
    engine.changed += 7;
    let (last, next) = (all.len() as u64, engine.changed + 1);
    engine.keep(vec![all[0].change.clone()]);
    for since in [last, last + 3, next - 1] {
        let found = engine.changes_since(since, 9).unwrap();
        assert_eq!(found.iter().map(|change| change.number).collect::<Vec<_>>(), [next], "{since}");
    }
    assert_eq!(engine.changes_since(last - 1, 9).unwrap().len(), 2);
    // Other tables: whichever number a client knows, it reads the clusters again.
    for era in [ERA, 2 * ERA] {
        let before = engine.changed;
        engine.begin_era();
        assert_eq!(engine.changed, era);
        assert_eq!([before, era - 1].map(|since| engine.changes_since(since, 1).unwrap_err().status), [410; 2]);
        assert_eq!(engine.changes_since(era, 1).unwrap(), []);
    }
}

#[test]
fn changes_of_more_batches_than_are_kept_are_refused() {
    let mut engine = engine(1);
    let change = ClusterChange { event: "birth", cluster: -1, into: None, before: 0, after: 2, documents: 2 };
    engine.keep(vec![change.clone(); KEPT_CHANGES]);
    assert_eq!(engine.changes_since(0, 1).unwrap()[0].number, 1);
    engine.keep(vec![change; 3]);
    assert_eq!(engine.changes_since(2, 1).unwrap_err().status, 410);
    assert_eq!(engine.changes_since(3, 1).unwrap()[0].number, 4);
}

#[test]
fn a_batch_without_answers_is_applied_and_one_that_was_there_makes_no_changes() {
    let batch: KnownBatch = (0..3).map(|name| (format!("n{name}"), Some(features(1, &[1; 6])))).collect();
    let mut engines = [Wanted::Answers, Wanted::Changes, Wanted::Nothing].map(|wanted| {
        let mut engine = engine(1);
        let records = batch.iter().map(|(name, page)| ((KeyHash::of(name), name.as_str()), page.clone())).collect();
        let answers = engine.apply_features(records, &[], &mut NoTexts, wanted).unwrap();
        assert_eq!(answers.len(), if wanted == Wanted::Answers { 3 } else { 0 });
        engine
    });
    let changes = engines.each_ref().map(|engine| engine.changes_since(0, 9).unwrap());
    assert!(changes[0].len() == 1 && changes[0] == changes[1] && changes[2].is_empty(), "{changes:?}");
    let clusters = engines.each_mut().map(|engine| engine.cluster(-1, 9).unwrap());
    assert!(clusters.iter().all(|cluster| *cluster == clusters[0] && cluster.size == 3));
}

/// An engine whose method verifies clusters.
fn verifying(method: &str, workers: usize) -> Engine {
    of_method(toml::from_str(method).unwrap(), workers)
}

/// The clusters after verification: what pairs connect that are similar enough, within each set of
/// candidates; and documents of one vector, or of one page, in one of these.
fn verified(there: &There, is_similar: impl Fn(&str, &str) -> bool) -> [NameSets; 3] {
    let mut similar: NameSets = Vec::new();
    for candidates in clustered(there, Level::Similar) {
        let mut parts: NameSets = Vec::new();
        for name in candidates {
            let is_one =
                |other: &String| are_linked(Level::Exact, &there[&name], &there[other]) || is_similar(&name, other);
            let (joined, mut apart): (NameSets, NameSets) = parts.into_iter().partition(|part| part.iter().any(is_one));
            apart.push(joined.into_iter().flatten().chain([name.clone()]).collect());
            parts = apart;
        }
        similar.extend(parts);
    }
    similar.sort();
    let identical = similar.iter().flat_map(|part| {
        let of_part: There = part.iter().map(|name| (name.clone(), there[name].clone())).collect();
        clustered(&of_part, Level::Identical)
    });
    let mut identical: NameSets = identical.collect();
    identical.sort();
    [similar, identical, clustered(there, Level::Exact)]
}

#[test]
fn clusters_that_estimates_verify_are_those_of_all_pairs() {
    let histories = [(1u64, 30u64, 4u64), (2, 60, 8), (3, 15, 3), (4, 60, 20), (5, 200, 12), (6, 100, 6), (7, 40, 2)];
    let mut apart = 0;
    for (similarity, (seed, names, values)) in [0.5, 0.8].into_iter().flat_map(|s| histories.map(|of| (s, of))) {
        let method = format!(
            "features = 84\nsupershingles = 6\nagreements = 2\nsimilarity = {similarity}\nverify = \"estimate\""
        );
        let place = |step: u64| format!("similarity {similarity}, seed {seed}, step {step}");
        let history = (0..60).map(|step| (place(step), batch(seed << 10 | step, names, values)));
        let levels_of = |there: &There| {
            let features = |name: &str| &there[name].facts.sketch.features;
            verified(there, |a, b| {
                let equal = features(a).iter().zip(features(b)).filter(|(a, b)| a == b).count();
                equal as f64 >= similarity * 84.0
            })
        };
        let engines = &mut [1, 2, 4].map(|workers| verifying(&method, workers));
        apart += play(engines, history, |_, engine, batch| answers(engine, batch), levels_of);
    }
    assert!(apart > 100, "verification splits clusters after {apart} batches only");
}

/// Texts, one after the other: those of batches are at their places.
struct Kept(String);

impl Texts for Kept {
    fn shingles(&mut self, wanted: &[TextPlace], of: &mut Fingerprinter) -> Result<Vec<Option<Vec<u64>>>> {
        let each = wanted.iter().map(|place| match *place {
            TextPlace::Journal { at, bytes } => {
                let text = self.0[at as usize..][..bytes as usize].to_owned();
                Some(shingles_of(of, &crate::readers::Body::Text(text)))
            }
            TextPlace::Tables { .. } => None,
        });
        Ok(each.collect())
    }
}

/// One of 27 texts, of which three words differ at most.
fn one_of_27(number: u64) -> String {
    let mut words: Vec<String> = (0..40).map(|word| format!("w{word}")).collect();
    [(5, 1), (15, 3), (25, 9)].into_iter().for_each(|(place, digit)| words[place] = format!("c{}", number / digit % 3));
    words.join(" ")
}

#[test]
fn clusters_that_texts_verify_are_those_of_all_pairs() {
    // Texts of which few words differ; a few have no words, and some come without their texts.
    let mut apart = 0;
    // In the last ones little else changes when a text is replaced by one of the same vector.
    for (seed, names, similarity, ready, features, most) in [
        (1u64, 30u64, 0.7, 0u64, 12, 12),
        (2, 60, 0.5, 0, 12, 12),
        (3, 12, 0.9, 0, 12, 12),
        (4, 40, 0.7, 4, 12, 12),
        (5, 25, 0.6, 2, 12, 12),
        (6, 120, 0.8, 8, 12, 12),
        (7, 12, 0.85, 0, 6, 3),
        (8, 6, 0.85, 0, 6, 2),
        (9, 8, 0.85, 3, 6, 3),
    ] {
        let method = format!(
            "words = 2\nfeatures = {features}\nsupershingles = 6\nagreements = 2\nsimilarity = {similarity}\nverify = \"exact\""
        );
        let mut engines = [1, 2, 4].map(|workers| verifying(&method, workers));
        let mut fingerprinter = Fingerprinter::of_method(engines[0].method()).unwrap();
        let (mut known, mut texts): (Vec<String>, BTreeMap<u128, String>) = (Vec::new(), BTreeMap::new());
        // By name: whether the text came with it.
        let has_text = std::cell::RefCell::new(BTreeMap::<String, bool>::new());
        let mut history: Vec<(KnownBatch, Vec<Record>)> = Vec::new();
        for step in 0..if most < 4 { 200 } else { 60u64 } {
            let count = mix(seed << 40 | step) % most;
            let (mut of_step, mut records) = (KnownBatch::new(), Vec::new());
            for at in 0..count {
                let random = |salt: u64| mix(seed << 40 | step << 20 | at << 8 | salt);
                let name = format!("n{}", random(0) % names);
                let text = match random(1) % 20 {
                    _ if most < 4 => one_of_27(random(2)),
                    0 => ["", " - "][random(2) as usize % 2].to_owned(),
                    1..5 if !known.is_empty() => known[random(2) as usize % known.len()].clone(),
                    5..16 if !known.is_empty() => {
                        let text = &known[known.len() - 1 - random(2) as usize % known.len().min(12)];
                        let mut words: Vec<String> = text.split(' ').map(str::to_owned).collect();
                        let place = random(3) as usize % words.len();
                        words[place] = format!("c{}", random(4) % 50);
                        words.join(" ")
                    }
                    _ => (0..40).map(|word| format!("w{}", random(100 + word) % 300)).collect::<Vec<_>>().join(" "),
                };
                let body = crate::readers::Body::Text(text.clone());
                let features = crate::live::batch::features_of(&mut fingerprinter, &body).unwrap();
                let features = Features {
                    checksum: features.checksum,
                    facts: PageFacts { sketch: features.facts.sketch, ..PageFacts::default() },
                };
                if text.len() > 3 {
                    known.push(text.clone());
                }
                texts.insert(features.checksum, text);
                let is_deleted = random(5) % 4 == 0;
                let comes_with_text = ready == 0 || random(6) % ready > 0;
                let content = if comes_with_text {
                    LineContent::Page(body)
                } else {
                    LineContent::Ready(Box::new(features.clone()))
                };
                let record = Record {
                    key: KeyHash::of(&name),
                    name: name.clone(),
                    body: (!is_deleted).then_some(content),
                    line: (0, 0),
                };
                of_step.push((name, (!is_deleted).then_some(features)));
                records.push(record);
            }
            history.push((of_step, records));
        }
        let shingles: BTreeMap<u128, Vec<u64>> = texts
            .iter()
            .map(|(sum, text)| (*sum, shingles_of(&mut fingerprinter, &crate::readers::Body::Text(text.clone()))))
            .collect();
        let levels_of = |there: &There| {
            let has_text = has_text.borrow();
            // Of equal pages one text is enough.
            let is_at_hand = |name: &str| {
                there.iter().any(|(other, page)| has_text[other] && are_linked(Level::Exact, page, &there[name]))
            };
            verified(there, |a, b| {
                let [one, other] = [a, b].map(|name| &there[name]);
                if is_at_hand(a) && is_at_hand(b) {
                    let [of_a, of_b] = [one, other].map(|page| &shingles[&page.checksum]);
                    let shared = of_a.iter().filter(|shingle| of_b.contains(shingle)).count();
                    shared as f64 >= similarity * (of_a.len() + of_b.len() - shared) as f64 - 1e-9
                } else {
                    let [of_a, of_b] = [one, other].map(|page| &page.facts.sketch.features);
                    of_a.iter().zip(of_b).filter(|(a, b)| a == b).count() as f64
                        >= similarity * f64::from(features) - 1e-9
                }
            })
        };
        let mut kept = [(); 3].map(|()| Kept(String::new()));
        let (mut steps, mut estimated) = ([0; 3], 0);
        let answer = |number: usize, engine: &mut Engine, batch: &KnownBatch| {
            let mut records = history[steps[number]].1.clone();
            assert_eq!(records.len(), batch.len());
            steps[number] += 1;
            let kept = &mut kept[number];
            let begin = kept.0.len();
            for record in &mut records {
                if let Some(LineContent::Page(crate::readers::Body::Text(text))) = &record.body {
                    record.line = (kept.0.len() - begin, text.len());
                    kept.0 += text;
                }
                let has_text_now = matches!(record.body, Some(LineContent::Page(_)));
                has_text.borrow_mut().insert(record.name.clone(), has_text_now);
            }
            let features = engine.features_of(&records);
            let answers = engine.apply_with(&records, features, kept, Wanted::Answers).unwrap();
            engine.note_texts(&records, begin as u64);
            estimated += answers.iter().filter(|answer| answer.estimated).count();
            answers
        };
        let batches = history.iter().enumerate();
        let batches = batches.map(|(step, (batch, _))| (format!("seed {seed}, step {step}"), batch.clone()));
        apart += play(&mut engines, batches, answer, levels_of);
        assert_eq!(estimated > 0, ready > 0, "{estimated} answers say so");
    }
    assert!(apart > 100, "verification splits clusters after {apart} batches only");
}

#[test]
fn what_a_batch_compares_is_bounded_and_the_answers_say_so() {
    let method = "features = 84\nsupershingles = 6\nagreements = 2\nsimilarity = 0.8\nverify = ";
    // Each two share five supershingles, or two.
    let page = |at: u64| features(u128::from(at), &[1, 2, 3 + at % 2, 5 + at % 2, 7 + at % 2, 100 + at]);
    let name = |at: u64| format!("n{at}");
    let batch = |from: u64| -> KnownBatch { (from..from + 6).map(|at| (name(at), Some(page(at)))).collect() };
    for (kind, most, sizes) in [
        // Texts are not at hand: features decide.
        ("\"exact\"", [1 << 30, 1 << 28], [3, 6]),
        ("\"exact\"", [0, 1 << 28], [3, 6]),
        ("\"exact\"", [0, 0], [1, 1]),
        ("\"estimate\"", [0, 1 << 28], [3, 6]),
        ("\"estimate\"", [0, 0], [1, 1]),
    ] {
        let mut engine = verifying(&format!("{method}{kind}"), 1);
        engine.verified.as_mut().unwrap().pairs.most = most;
        for (from, size) in [(0, sizes[0]), (6, sizes[1])] {
            let answers = answers(&mut engine, &batch(from));
            assert!(answers.iter().all(|answer| answer.size == size), "{kind}, {most:?}: {answers:?}");
            let is_estimated = kind == "\"exact\"" || most[1] == 0;
            assert!(answers.iter().all(|answer| answer.estimated == is_estimated), "{kind}, {most:?}: {answers:?}");
        }
        // Some pairs are enough for some of the pages.
        let mut engine = verifying(&format!("{method}{kind}"), 1);
        engine.verified.as_mut().unwrap().pairs.most = [most[0], 7];
        let answers = answers(&mut engine, &batch(0));
        let joined = answers.iter().filter(|answer| answer.size > 1).count();
        assert!((1..6).contains(&joined) && answers.iter().all(|answer| answer.estimated), "{joined} of 6");
    }
}
