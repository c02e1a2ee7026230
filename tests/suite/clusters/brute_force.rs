//! Clusters against brute force and sequential union-find.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use arrow_array::{Float32Array, Int32Array};
use nigh::records::mix;

use crate::program::{Made, PlainUnionFind, bytes, each, features, files, job, longs, roots, texts, vectors};

/// Compares every table that follows from the vectors with what brute force over all pairs gives.
fn assert_clusters_are_right(week: &Path, agreements: usize) {
    let docs = longs(week, "documents", "doc");
    let vectors = vectors(week);
    let checksums: BTreeMap<i64, Vec<u8>> = docs.iter().copied().zip(bytes(week, "documents", "checksum")).collect();
    let agree = |a: i64, b: i64| vectors[&a].iter().zip(&vectors[&b]).filter(|(a, b)| a == b).count();

    let mut twins = [PlainUnionFind::default(), PlainUnionFind::default(), PlainUnionFind::default()];
    let all: Vec<i64> = vectors.keys().copied().collect();
    for (i, &a) in all.iter().enumerate() {
        for &b in &all[..i] {
            let shared = agree(a, b);
            let all_agree = shared == vectors[&a].len();
            for (twin, joined) in
                twins.iter_mut().zip([shared >= agreements, all_agree, all_agree && checksums[&a] == checksums[&b]])
            {
                if joined {
                    twin.union(a, b);
                }
            }
        }
    }
    // Documents without words: equal bytes join them at all levels.
    let wordless: Vec<i64> = docs.iter().copied().filter(|doc| !vectors.contains_key(doc)).collect();
    for (i, a) in wordless.iter().enumerate() {
        for b in wordless[..i].iter().filter(|b| checksums[b] == checksums[a]) {
            twins.iter_mut().for_each(|twin| twin.union(*a, *b));
        }
    }
    let mut similar_members = BTreeMap::new();
    for (level, twin) in ["similar", "identical", "exact"].into_iter().zip(&mut twins) {
        let roots = roots(week, level);
        let sizes: BTreeMap<i64, i64> =
            longs(week, "clusters", "doc").into_iter().zip(longs(week, "clusters", &format!("{level}_size"))).collect();
        assert_eq!(roots.len(), docs.len());
        let mut members: BTreeMap<i64, i64> = BTreeMap::new();
        for doc in &docs {
            assert_eq!(roots[doc], twin.find(*doc), "{level} root of {doc}");
            *members.entry(roots[doc]).or_default() += 1;
        }
        for doc in &docs {
            assert_eq!(sizes[doc], members[&roots[doc]], "{level} size of {doc}");
        }
        assert_statistics(week, level, docs.len() as i64, &members);
        if level == "similar" {
            similar_members = members;
        }
    }

    // Evidence: every clustered page but its root has one row, of a real neighbour in its cluster.
    let similar = roots(week, "similar");
    let features = features(week);
    let explained = longs(week, "evidence", "doc");
    let wanted: BTreeSet<i64> = docs.iter().copied().filter(|doc| similar[doc] != *doc).collect();
    assert_eq!(explained.iter().copied().collect::<BTreeSet<i64>>(), wanted);
    assert_eq!(explained.len(), wanted.len());
    let (mut shared_supershingles, mut similarities) = (Vec::new(), Vec::new());
    each(week, "evidence", "agreements", |array: &Int32Array| shared_supershingles.extend(array.values().to_vec()));
    each(week, "evidence", "similarity", |array: &Float32Array| similarities.extend(array.values().to_vec()));
    for (at, (doc, neighbour)) in explained.iter().zip(longs(week, "evidence", "neighbour")).enumerate() {
        assert_ne!(*doc, neighbour);
        assert_eq!(similar[doc], similar[&neighbour]);
        if !vectors.contains_key(doc) {
            assert_eq!((neighbour, shared_supershingles[at], similarities[at]), (similar[doc], 0, 1.0));
            continue;
        }
        assert_eq!(shared_supershingles[at] as usize, agree(*doc, neighbour));
        assert!(shared_supershingles[at] as usize >= agreements);
        let equal = features[doc].iter().zip(&features[&neighbour]).filter(|(a, b)| a == b).count();
        assert_eq!(similarities[at], equal as f32 / features[doc].len() as f32);
    }

    // Cluster ids: one for each cluster of at least two, none for others.
    let mut ids: BTreeMap<i64, i64> = BTreeMap::new();
    let mut at = 0;
    let in_order = longs(week, "clusters", "doc");
    each(week, "clusters", "cluster_id", |array: &arrow_array::Int64Array| {
        for id in array.iter() {
            let root = similar[&in_order[at]];
            assert_eq!(id.is_some(), similar_members[&root] > 1);
            if let Some(id) = id {
                assert_eq!(*ids.entry(root).or_insert(id), id);
            }
            at += 1;
        }
    });
    assert_eq!(ids.values().collect::<BTreeSet<_>>().len(), ids.len(), "no id is given twice");
}

/// `sizes`, `summary` and `largest` of one level.
fn assert_statistics(week: &Path, level: &str, documents: i64, members: &BTreeMap<i64, i64>) {
    let of = |table: &str, column: &str| -> Vec<i64> {
        texts(week, table, "level")
            .into_iter()
            .zip(longs(week, table, column))
            .filter(|(row_level, _)| row_level == level)
            .map(|(_, value)| value)
            .collect()
    };
    let mut sizes: BTreeMap<i64, i64> = BTreeMap::new();
    members.values().for_each(|size| *sizes.entry(*size).or_default() += 1);
    assert_eq!(of("sizes", "size").into_iter().zip(of("sizes", "clusters")).collect::<BTreeMap<_, _>>(), sizes);
    let clustered: i64 = members.values().filter(|size| **size > 1).sum();
    let clusters = members.values().filter(|size| **size > 1).count() as i64;
    assert_eq!(of("summary", "documents"), [documents]);
    assert_eq!(of("summary", "clustered"), [clustered]);
    assert_eq!(of("summary", "clusters"), [clusters]);
    assert_eq!(of("summary", "duplicates"), [clustered - clusters]);

    let mut largest: Vec<(i64, i64)> =
        members.iter().filter(|(_, size)| **size > 1).map(|(root, size)| (-size, *root)).collect();
    largest.sort_unstable();
    largest.truncate(20);
    let shown: Vec<(i64, i64)> =
        of("largest", "urls").into_iter().map(|urls| -urls).zip(of("largest", "doc")).collect();
    assert_eq!(shown, largest);
    let (docs, hosts) = (longs(week, "documents", "doc"), texts(week, "documents", "host"));
    let ips = texts(week, "documents", "ip");
    let roots = roots(week, level);
    for (at, (_, root)) in largest.iter().enumerate() {
        let inside: Vec<usize> = (0..docs.len()).filter(|i| roots[&docs[*i]] == *root).collect();
        let distinct =
            |of: &[String]| inside.iter().map(|i| of[*i].clone()).filter(|x| !x.is_empty()).collect::<BTreeSet<_>>();
        assert_eq!(of("largest", "hosts")[at], distinct(&hosts).len() as i64);
        assert_eq!(of("largest", "machines")[at], distinct(&ips).len() as i64);
        let resolved: BTreeSet<&String> = inside.iter().filter(|i| !ips[**i].is_empty()).map(|i| &hosts[*i]).collect();
        assert_eq!(of("largest", "unresolved")[at], (distinct(&hosts).len() - resolved.len()) as i64);
    }
}

#[test]
fn the_shipped_crawl_has_the_clusters_of_brute_force() {
    let made = Made::new(&["--workers", "2"]);
    assert_clusters_are_right(&made.week(), 2);
    // 523, says tests/data/README.md: not a week that lost most of its pages.
    assert!(longs(&made.week(), "documents", "doc").len() > 400);
}

#[test]
fn every_number_of_agreements_is_right() {
    let folder = tempfile::tempdir().unwrap();
    for (agreements, supershingles) in [(1, 6), (3, 6), (6, 6), (2, 12), (4, 12)] {
        let text = format!(
            "[cluster]\nweek = \"2024-01-08\"\ninput = [\"tests/data/week-2024-01-08\"]\n\
             [cluster.method]\nagreements = {agreements}\nsupershingles = {supershingles}\nshards = 8\n"
        );
        let made = Made::with_job(&job(folder.path(), &text), &["--workers", "2"]);
        assert_clusters_are_right(&made.week(), agreements);
    }
}

/// A crawl of random families of pages: copies, near-copies, chains of edits, and pages with
/// nothing in common.
fn random_crawl(seed: u64) -> String {
    let mut state = seed;
    let mut random = |below: u64| {
        state = mix(state);
        state % below
    };
    let mut pages: Vec<Vec<u64>> = Vec::new();
    for _ in 0..60 {
        let text: Vec<u64> = match random(4) {
            0 if !pages.is_empty() => pages[random(pages.len() as u64) as usize].clone(),
            1 | 2 if !pages.is_empty() => {
                // A few words of an earlier page changed: chains of these make the larger clusters.
                let mut text = pages[random(pages.len() as u64) as usize].clone();
                for _ in 0..random(4) {
                    let at = random(text.len().max(1) as u64) as usize;
                    if let Some(word) = text.get_mut(at) {
                        *word = random(10_000);
                    }
                }
                text
            }
            _ => (0..random(300)).map(|_| random(2_000)).collect(),
        };
        pages.push(text);
    }
    let line = |(i, text): (usize, &Vec<u64>)| {
        let words: Vec<String> = text.iter().map(|word| format!("w{word}")).collect();
        format!("{{\"url\": \"http://h{}.example/{i}\", \"text\": \"{}\"}}\n", i % 7, words.join(" "))
    };
    pages.iter().enumerate().map(line).collect()
}

#[test]
fn random_crawls_have_the_clusters_of_brute_force() {
    let folder = tempfile::tempdir().unwrap();
    for seed in 0..12 {
        eprintln!("seed {seed}");
        let crawl = folder.path().join("crawl.jsonl");
        std::fs::write(&crawl, random_crawl(seed)).unwrap();
        let text = "[cluster]\nweek = \"2024-01-08\"\n[cluster.method]\nshards = 4\n";
        let workers = ["1", "2", "3"][seed as usize % 3];
        let made =
            Made::with_job(&job(folder.path(), text), &["--workers", workers, "--input", crawl.to_str().unwrap()]);
        assert_clusters_are_right(&made.week(), 2);
    }
}

#[test]
fn links_name_the_pages_of_the_week_that_they_lead_to() {
    let made = Made::new(&["--workers", "2"]);
    let week = made.week();
    let ids: BTreeMap<String, i64> =
        texts(&week, "documents", "url").into_iter().zip(longs(&week, "documents", "doc")).collect();
    let targets = texts(&week, "links", "target_url");
    let (mut at, mut inside) = (0, 0);
    each(&week, "links", "target_doc", |array: &arrow_array::Int64Array| {
        for target in array.iter() {
            assert_eq!(target, ids.get(&targets[at]).copied(), "{}", targets[at]);
            inside += usize::from(target.is_some());
            at += 1;
        }
    });
    assert_eq!(at, targets.len());
    assert!(inside > 500 && inside < at, "{inside} of {at} links lead to pages of the week");
    assert!(files(&week, "found-links").is_empty());
}
