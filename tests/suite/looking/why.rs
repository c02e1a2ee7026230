//! `nigh why` against the tables of the week, and against the texts.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::path::Path;

use serde_json::Value;

use crate::program::{features, job, longs, roots, run, run_well, texts, vectors, week};
use crate::weeks::partial::Lcg;

const DATE: &str = "2024-01-08";
/// Documents of a family: each differs from the one before in a few words.
const FAMILY: usize = 12;
const DOCUMENTS: usize = 8 * FAMILY;

/// The words of a document.
fn words(document: usize) -> Vec<String> {
    let (family, member) = (document / FAMILY, document % FAMILY);
    let mut words: Vec<String> = (0..300).map(|place| format!("f{family}w{place}")).collect();
    for edit in 1..=member {
        for place in [edit * 23, edit * 23 + 1] {
            words[place % 300] = format!("e{edit}p{place}");
        }
    }
    words
}

fn id(document: usize) -> String {
    format!("document-{document}")
}

/// The shingles of some words, by the place of their first one.
fn shingles(words: &[String]) -> Vec<Vec<&str>> {
    let at = |place: usize| words[place % words.len()].as_str();
    (0..words.len()).map(|first| (first..first + 5).map(at).collect()).collect()
}

/// The words that are in no shingle of another text, with their places.
fn differing(words: &[String], other: &[String]) -> Vec<(usize, String)> {
    let others: BTreeSet<Vec<&str>> = shingles(other).into_iter().collect();
    let mut shared = vec![false; words.len()];
    for (first, shingle) in shingles(words).into_iter().enumerate() {
        if others.contains(&shingle) {
            (first..first + 5).for_each(|place| shared[place % words.len()] = true);
        }
    }
    (0..words.len()).filter(|place| !shared[*place]).map(|place| (place + 1, words[place].clone())).collect()
}

/// Links of the shortest chain between two documents of a cluster, by breadth-first search over all
/// pairs.
fn steps(vectors: &BTreeMap<i64, Vec<u64>>, members: &[i64], from: i64, to: i64) -> usize {
    let linked = |a: i64, b: i64| vectors[&a].iter().zip(&vectors[&b]).filter(|(a, b)| a == b).count() >= 2;
    let mut steps = BTreeMap::from([(from, 0)]);
    let mut queue = VecDeque::from([from]);
    while let Some(page) = queue.pop_front() {
        for next in members {
            if linked(page, *next) && !steps.contains_key(next) {
                steps.insert(*next, steps[&page] + 1);
                queue.push_back(*next);
            }
        }
    }
    steps[&to]
}

fn made(folder: &Path, method: &str) -> std::path::PathBuf {
    let lines: String = (0..DOCUMENTS)
        .map(|n| serde_json::json!({"id": id(n), "text": words(n).join(" ")}).to_string() + "\n")
        .collect();
    let input = folder.join("documents.jsonl");
    std::fs::write(&input, lines).unwrap();
    let job =
        job(folder, &format!("[cluster]\n[cluster.read.columns]\nid = \"id\"\n[cluster.method]\nshards = 4\n{method}"));
    let store = folder.join("store");
    let (job, store_name, input) = (job.to_str().unwrap(), store.to_str().unwrap(), input.to_str().unwrap());
    run_well(&["run", job, "-q", "--week", DATE, "--store", store_name, "--input", input]);
    store
}

#[test]
fn what_is_said_of_two_documents_is_what_the_tables_and_texts_have() {
    let folder = tempfile::tempdir().unwrap();
    let store = made(folder.path(), "");
    let of = week(&store, DATE);
    let docs: BTreeMap<String, i64> =
        texts(&of, "documents", "id").into_iter().zip(longs(&of, "documents", "doc")).collect();
    let (vectors, features) = (vectors(&of), features(&of));
    let levels = ["similar", "identical", "exact"].map(|level| roots(&of, level));
    let mut numbers = Lcg(1);
    let (mut together, mut longest) = (0, 0);
    for _ in 0..60 {
        let first = numbers.below(DOCUMENTS);
        let within = first / FAMILY * FAMILY + numbers.below(FAMILY);
        let second = if numbers.below(4) == 0 { numbers.below(DOCUMENTS) } else { within };
        let [a, b] = [first, second].map(|document| docs[&id(document)]);
        let ran = run_well(&["why", store.to_str().unwrap(), &id(first), &id(second), "--json"]);
        let said: Value = serde_json::from_str(&ran.stdout).unwrap();
        for (level, roots) in levels.iter().enumerate() {
            assert_eq!(said["together"][level][1], roots[&a] == roots[&b], "{first} {second}");
        }
        let agreements = vectors[&a].iter().zip(&vectors[&b]).filter(|(a, b)| a == b).count();
        let equal = features[&a].iter().zip(&features[&b]).filter(|(a, b)| a == b).count();
        assert_eq!(said["sketches"]["agreements"], agreements);
        assert_eq!(said["sketches"]["features"], equal);
        let [of_a, of_b] = [first, second].map(words);
        let sets = [&of_a, &of_b].map(|words| shingles(words).into_iter().collect::<BTreeSet<_>>());
        let shared = sets[0].intersection(&sets[1]).count();
        assert_eq!(said["texts"]["shared"], shared);
        assert_eq!(said["texts"]["either"], sets[0].len() + sets[1].len() - shared);
        for (side, (words, other)) in [(&of_a, &of_b), (&of_b, &of_a)].into_iter().enumerate() {
            let mut found = Vec::new();
            for passage in said["texts"]["differing"][side].as_array().unwrap() {
                let place = passage["word"].as_u64().unwrap() as usize;
                let words = passage["text"].as_str().unwrap().split(' ').map(str::to_owned);
                found.extend((place..).zip(words));
            }
            assert_eq!(found, differing(words, other));
        }
        let chain = said["chain"].as_array().unwrap();
        if levels[0][&a] != levels[0][&b] || a == b {
            assert!(chain.is_empty());
            continue;
        }
        let chain: Vec<i64> = chain.iter().map(|link| link["page"]["doc"].as_i64().unwrap()).collect();
        let members: Vec<i64> =
            levels[0].iter().filter(|(_, root)| **root == levels[0][&a]).map(|(doc, _)| *doc).collect();
        assert_eq!((chain[0], chain[chain.len() - 1]), (a, b));
        assert_eq!(chain.len() - 1, steps(&vectors, &members, a, b));
        for pair in chain.windows(2) {
            assert!(vectors[&pair[0]].iter().zip(&vectors[&pair[1]]).filter(|(a, b)| a == b).count() >= 2);
        }
        together += 1;
        longest = longest.max(chain.len() - 1);
    }
    assert!(together > 20 && longest > 1, "{together} {longest}");
}

/// Members of a family that differ in six edits or more are less than 0.8 similar.
#[test]
fn chains_of_verified_clusters_have_links_that_texts_confirm() {
    let folder = tempfile::tempdir().unwrap();
    let store = made(folder.path(), "similarity = 0.8\nverify = \"exact\"\n");
    let similarity = |a: usize, b: usize| {
        let [of_a, of_b] = [a, b].map(words);
        let [of_a, of_b] = [&of_a, &of_b].map(|words| shingles(words).into_iter().collect::<BTreeSet<_>>());
        of_a.intersection(&of_b).count() as f64 / of_a.union(&of_b).count() as f64
    };
    let number = |link: &Value| -> usize {
        let name = link["page"]["name"].as_str().unwrap();
        name.strip_prefix("document-").unwrap().parse().unwrap()
    };
    let mut confirmed = 0;
    for first in (0..DOCUMENTS).step_by(FAMILY) {
        let (a, b) = (first + 1, first + FAMILY - 1);
        let ran = run_well(&["why", store.to_str().unwrap(), &id(a), &id(b), "--json"]);
        let said: Value = serde_json::from_str(&ran.stdout).unwrap();
        let chain = said["chain"].as_array().unwrap();
        assert!(said["together"][0][1] == true && chain.len() > 2, "{a} {b}: {chain:?}");
        assert_eq!([number(&chain[0]), number(&chain[chain.len() - 1])], [a, b]);
        for pair in chain.windows(2) {
            let Some(exact) = pair[1]["exact"].as_f64() else { continue };
            let similarity = similarity(number(&pair[0]), number(&pair[1]));
            assert!((exact - similarity).abs() < 1e-6 && similarity >= 0.8, "{pair:?}: {similarity}");
        }
        confirmed += usize::from(chain[1..].iter().all(|link| link["exact"].is_number()));
    }
    assert!(confirmed > 0, "the table of evidence leads from no page to another");
}

#[test]
fn what_cannot_be_said_is_named() {
    let folder = tempfile::tempdir().unwrap();
    let store = made(folder.path(), "");
    let store_name = store.to_str().unwrap();
    let unknown = run(&["why", store_name, &id(1), "nobody"]);
    assert!(unknown.code == Some(1) && unknown.stderr.contains("nobody is not known"), "{}", unknown.stderr);
    let no_week = run(&["why", store_name, &id(1), &id(2), "--week", "2020-01-01"]);
    assert!(no_week.code == Some(1) && no_week.stderr.contains("has no week 2020-01-01"), "{}", no_week.stderr);
    // Without the inputs, all but the texts is said.
    std::fs::remove_file(folder.path().join("documents.jsonl")).unwrap();
    let ran = run_well(&["why", store_name, &id(1), &id(2)]);
    assert!(ran.stdout.contains("one cluster, of ") && ran.stdout.contains("give them with --input"), "{}", ran.stdout);
}
