//! The accuracy of clusters: samples against a plain walk over all pages.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use arrow_array::{Array, Float32Array, Float64Array, Int64Array};
use nigh::config::STUDY;
use nigh::operators::accuracy::sample_hash;
use nigh::records::{DocId, mix};
use nigh::stats::{BANDS, band};

use crate::program::{Made, each, features, job, longs, roots, texts};

/// Pages of families whose members differ by some words, so that similarities of all sizes occur.
pub fn pages(count: u64, vocabulary: u64) -> BTreeMap<String, String> {
    let mut state = 3;
    let mut random = |below: u64| {
        state = mix(state);
        state % below
    };
    let mut all: Vec<Vec<u64>> = Vec::new();
    for number in 0..count {
        let mut words: Vec<u64> = match all.len() as u64 {
            known if known > 0 && random(3) > 0 => all[random(known) as usize].clone(),
            _ => (0..200).map(|_| random(vocabulary)).collect(),
        };
        let changed = random(20);
        (0..changed).for_each(|_| words[random(200) as usize] = 1_000_000 + number);
        all.push(words);
    }
    let text = |words: Vec<u64>| words.iter().map(|word| format!("w{word}")).collect::<Vec<_>>().join(" ");
    all.into_iter().enumerate().map(|(n, words)| (format!("http://h{}.example/{n}", n % 9), text(words))).collect()
}

/// Writes pages as JSON Lines.
pub fn write(path: &Path, pages: &BTreeMap<String, String>) {
    let lines = pages.iter().map(|(url, text)| format!("{{\"url\": \"{url}\", \"text\": \"{text}\"}}\n"));
    std::fs::write(path, lines.collect::<String>()).unwrap();
}

fn resemblance(a: &str, b: &str) -> f64 {
    let set = |text: &str| -> BTreeSet<String> {
        let words: Vec<&str> = text.split(' ').collect();
        (0..words.len())
            .map(|at| words.iter().cycle().skip(at).take(5).copied().collect::<Vec<_>>().join(" "))
            .collect()
    };
    let (a, b) = (set(a), set(b));
    let shared = a.intersection(&b).count();
    shared as f64 / (a.len() + b.len() - shared) as f64
}

/// A row of the table: its kind, the cluster or the lower end of the band, and the numbers of
/// pairs.
type BandRow = (String, i64, [i64; 4]);

fn rows(week: &Path) -> Vec<BandRow> {
    let mut keys = Vec::new();
    each(week, "accuracy", "low", |array: &Float64Array| {
        keys.extend(
            (0..array.len()).map(|at| if array.is_null(at) { -1 } else { (array.value(at) * 100.0).round() as i64 }),
        );
    });
    let mut at = 0;
    each(week, "accuracy", "cluster", |array: &Int64Array| {
        for cluster in array.iter() {
            keys[at] = cluster.unwrap_or(keys[at]);
            at += 1;
        }
    });
    let numbers = ["population", "sampled", "exact", "good"].map(|name| longs(week, "accuracy", name));
    let kinds = texts(week, "accuracy", "kind");
    let row = |(at, kind): (usize, String)| (kind, keys[at], numbers.each_ref().map(|column| column[at]));
    kinds.into_iter().enumerate().map(row).collect()
}

/// The things with the smallest hashes.
fn smallest<T: Ord>(things: impl Iterator<Item = (u64, T)>, most: usize) -> Vec<T> {
    let mut all: Vec<(u64, T)> = things.collect();
    all.sort_unstable();
    all.truncate(most);
    all.into_iter().map(|(_, thing)| thing).collect()
}

/// Of pages that have at least `least` features in common with the first of them, at most `most`.
pub fn representatives(features: &BTreeMap<i64, Vec<u16>>, pages: &[i64], least: usize, most: usize) -> Vec<i64> {
    let mut families: Vec<Vec<i64>> = Vec::new();
    for page in pages {
        let equal = |other: i64| features[&other].iter().zip(&features[page]).filter(|(a, b)| a == b).count();
        match families.iter_mut().find(|family| equal(family[0]) >= least) {
            Some(family) => family.push(*page),
            None => families.push(vec![*page]),
        }
    }
    families.into_iter().flat_map(|family| family.into_iter().take(most)).collect()
}

/// The rows that a walk over all pages gives: for the study's numbers and the similarity 0.8.
fn twin(week: &Path, pages: &BTreeMap<String, String>) -> Vec<BandRow> {
    const SEED: u64 = 20_031_107;
    let docs = longs(week, "documents", "doc");
    let text: BTreeMap<i64, &String> =
        docs.iter().copied().zip(texts(week, "documents", "url").iter().map(|url| &pages[url])).collect();
    let exact = |a: i64, b: i64| resemblance(text[&a], text[&b]);
    let hash = |sample: u64, doc: i64| sample_hash(SEED, sample, DocId::from_table(doc));
    let of_band = (docs.len() / 400).div_ceil(BANDS.len()).clamp(10, 100);
    let size = (docs.len() / 200).clamp(100, 1000);
    let mut found: Vec<BandRow> = Vec::new();

    let mut similarities = Vec::new();
    each(week, "evidence", "similarity", |array: &Float32Array| similarities.extend(array.values().to_vec()));
    let links: Vec<(i64, i64)> =
        longs(week, "evidence", "doc").into_iter().zip(longs(week, "evidence", "neighbour")).collect();
    for (number, low) in BANDS.iter().enumerate() {
        let all = (0..links.len()).filter(|at| band(similarities[*at].into()) == number);
        let population = all.clone().count() as i64;
        let sampled = smallest(all.map(|at| (hash(0, links[at].0), links[at])), of_band);
        let good = sampled.iter().filter(|(a, b)| exact(*a, *b) >= 0.8).count() as i64;
        let count = sampled.len() as i64;
        if count > 0 {
            found.push(("links".into(), (low * 100.0).round() as i64, [population, count, count, good]));
        }
    }

    let root_of = roots(week, "similar");
    let mut clusters: BTreeMap<i64, Vec<i64>> = BTreeMap::new();
    root_of.iter().for_each(|(doc, root)| clusters.entry(*root).or_default().push(*doc));
    let mut largest: Vec<(i64, i64)> = clusters
        .iter()
        .filter(|(_, pages)| pages.len() > 1)
        .map(|(root, pages)| (-(pages.len() as i64), *root))
        .collect();
    largest.sort_unstable();
    for (pages, root) in largest.into_iter().take(20) {
        let members = smallest(clusters[&root].iter().map(|doc| (hash(2, *doc), *doc)), 10);
        let pairs: Vec<f64> = members.chunks_exact(2).map(|pair| exact(pair[0], pair[1])).collect();
        let (count, good) = (pairs.len() as i64, pairs.iter().filter(|pair| **pair >= 0.8).count() as i64);
        found.push(("clusters".into(), root, [-pages, count, count, good]));
    }

    let features = features(week);
    let least = (84.0 * (0.8 - 4.0 * (0.8f64 * 0.2 / 84.0).sqrt())).floor() as usize;
    let sampled = smallest(features.keys().map(|doc| (hash(3, *doc), *doc)), size);
    let probes = representatives(&features, &sampled, least, 4);
    let mut bands: BTreeMap<usize, [i64; 2]> = BTreeMap::new();
    for probe in &probes {
        let equal = |doc: &i64| features[probe].iter().zip(&features[doc]).filter(|(a, b)| a == b).count();
        let near = features.keys().filter(|doc| *doc != probe && equal(doc) >= least);
        let seed = mix(SEED ^ *probe as u64);
        for near in smallest(near.map(|doc| (sample_hash(seed, 1, DocId::from_table(*doc)), *doc)), 4) {
            let similarity = exact(*probe, near);
            if similarity >= 0.8 {
                let counts = bands.entry(band(similarity)).or_default();
                counts[0] += 1;
                counts[1] += i64::from(root_of[probe] == root_of[&near]);
            }
        }
    }
    for (number, [pairs, together]) in bands {
        let low = (BANDS[number].max(0.8) * 100.0).round() as i64;
        found.push(("recall".into(), low, [probes.len() as i64, pairs, pairs, together]));
    }
    found
}

#[test]
fn samples_are_those_of_a_walk_over_all_pages() {
    assert_eq!((STUDY.features, STUDY.supershingles), (84, 6));
    let folder = tempfile::tempdir().unwrap();
    let (pages, crawl) = (pages(1500, 3000), folder.path().join("crawl.jsonl"));
    write(&crawl, &pages);
    let job = job(folder.path(), "[cluster]\nweek = \"2024-01-08\"\n[cluster.method]\nshards = 8\n");
    let made = Made::with_job(&job, &["--input", crawl.to_str().unwrap(), "--workers", "2"]);
    let (found, wanted) = (rows(&made.week()), twin(&made.week(), &pages));
    assert!(wanted.iter().filter(|row| row.0 == "recall").count() >= 3, "{wanted:?}");
    assert_eq!(found, wanted);
    // Whatever the workers, and whichever shares: the same bytes.
    let tables = |flags: &[&str]| {
        let flags = [&["--input", crawl.to_str().unwrap()], flags].concat();
        Made::with_job(&job, &flags).tables()
    };
    let one = tables(&["--workers", "1"]);
    assert!(tables(&["--workers", "4"]) == one && tables(&["--processes", "2"]) == one && made.tables() == one);
}

#[test]
fn shares_have_intervals_and_recall_is_near_what_the_curve_says() {
    let folder = tempfile::tempdir().unwrap();
    let (pages, crawl) = (pages(6000, 4000), folder.path().join("crawl.jsonl"));
    write(&crawl, &pages);
    let job = job(folder.path(), "[cluster]\nweek = \"2024-01-08\"\n[cluster.method]\nshards = 8\n");
    let made = Made::with_job(&job, &["--input", crawl.to_str().unwrap()]);
    let column = |name: &str| {
        let mut values = Vec::new();
        each(&made.week(), "accuracy", name, |array: &Float64Array| values.extend(array.iter()));
        values
    };
    let (low, share, high) = (column("share_low"), column("share"), column("share_high"));
    assert!(!share.is_empty() && (0..share.len()).all(|at| low[at] <= share[at] && share[at] <= high[at]));
    let (kinds, expected) = (texts(&made.week(), "accuracy", "kind"), column("expected"));
    for at in (0..kinds.len()).filter(|at| kinds[*at] == "recall") {
        // Pairs that are linked directly share a cluster; others may, too.
        assert!(high[at] >= expected[at], "{:?} {:?}", high[at], expected[at]);
    }
}

#[test]
fn loose_clusters_are_an_alarm_that_verification_ends() {
    let folder = tempfile::tempdir().unwrap();
    let crawl = folder.path().join("crawl.jsonl");
    // A few words only: pages share shingles by chance, and single features link them to one chain.
    write(&crawl, &pages(800, 12));
    let run = |more: &str, flags: &[&str]| {
        let text = format!(
            "[cluster]\nweek = \"2024-01-08\"\n[cluster.method]\nshards = 4\npreset = \"minhash-64x1\"\n{more}"
        );
        let (job, store) = (job(folder.path(), &text), tempfile::tempdir().unwrap());
        let path = store.path().join("store");
        let arguments = ["run", job.to_str().unwrap(), "-q", "--store", path.to_str().unwrap()];
        let arguments = [&arguments[..], &["--input", crawl.to_str().unwrap()], flags].concat();
        crate::program::run_well(&arguments).stdout
    };
    let loose = run("", &[]);
    assert!(loose.contains("ALARM    the cluster of http://") && loose.contains("% of all pages"), "{loose}");
    assert!(loose.contains("of the links are at least 0.80 similar"), "{loose}");
    // All links of a verified store are exact, and similar enough.
    let verified = run("similarity = 0.8\nverify = \"exact\"\n", &[]);
    assert!(!verified.contains("holds pages that are not similar"), "{verified}");
    assert!(verified.contains("Accuracy 100.0% (100.0% to 100.0%) of the links"), "{verified}");
    let without = run("", &["--no-accuracy"]);
    assert!(!without.contains("ALARM") && !without.contains("Accuracy"), "{without}");
}

#[test]
fn pages_are_read_again_from_every_format_that_allows_it() {
    use std::io::Write as _;
    use std::sync::Arc;

    use arrow_array::{ArrayRef, RecordBatch, StringArray};

    let folder = tempfile::tempdir().unwrap();
    let [plain, packed, rows_of] =
        ["crawl.jsonl", "crawl.jsonl.gz", "crawl.parquet"].map(|name| folder.path().join(name));
    let all = pages(500, 3000);
    write(&plain, &all);
    let text = std::fs::read_to_string(&plain).unwrap();
    let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    gzip.write_all(text.as_bytes()).unwrap();
    std::fs::write(&packed, gzip.finish().unwrap()).unwrap();
    let lines: Vec<serde_json::Value> = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let column =
        |name: &str| Arc::new(StringArray::from_iter(lines.iter().map(|line| line[name].as_str()))) as ArrayRef;
    let batch = RecordBatch::try_from_iter([("url", column("url")), ("text", column("text"))]).unwrap();
    let properties =
        parquet::file::properties::WriterProperties::builder().set_max_row_group_row_count(Some(130)).build();
    let file = std::fs::File::create(&rows_of).unwrap();
    let mut writer = parquet::arrow::ArrowWriter::try_new(file, batch.schema(), Some(properties)).unwrap();
    writer.write(&batch).unwrap();
    writer.close().unwrap();
    let job = job(folder.path(), "[cluster]\nweek = \"2024-01-08\"\n[cluster.method]\nshards = 4\n");
    let exact = |input: &Path| rows(&Made::with_job(&job, &["--input", input.to_str().unwrap()]).week());
    let wanted = exact(&plain);
    assert!(wanted.iter().all(|(_, _, [_, sampled, exact, _])| *sampled > 0 && exact == sampled), "{wanted:?}");
    // Small inputs are read from their beginning.
    assert_eq!(exact(&packed), wanted);
    assert_eq!(exact(&rows_of), wanted);
    // Without their files, pages are compared by their features, and the line says so.
    let made = Made::with_job(&job, &["--input", plain.to_str().unwrap()]);
    let store = made.store();
    std::fs::remove_file(&plain).unwrap();
    let verified =
        crate::program::run_well(&["delete", "--store", store.to_str().unwrap(), "--url", all.keys().next().unwrap()]);
    assert!(!verified.stdout.is_empty());
    let estimated = rows(&made.week());
    assert!(estimated.iter().all(|(_, _, [_, sampled, exact, _])| *sampled > 0 && *exact == 0), "{estimated:?}");
    let shown = crate::program::run_well(&["show", store.to_str().unwrap()]).stdout;
    assert!(shown.contains("by estimates of their features"), "{shown}");
}

#[test]
fn a_summary_says_that_pages_were_not_read_again_if_no_estimate_can_count() {
    let folder = tempfile::tempdir().unwrap();
    let (all, crawl) = (pages(500, 3000), folder.path().join("crawl.jsonl"));
    write(&crawl, &all);
    // An estimate counts from 0.998 on: only if all 84 features are equal.
    let shape = "features = 84\nsupershingles = 6\nagreements = 2\n";
    let method = format!("[cluster.method]\nshards = 4\nsimilarity = 0.95\n{shape}");
    let job = job(folder.path(), &format!("[cluster]\nweek = \"2024-01-08\"\n{method}"));
    let made = Made::with_job(&job, &["--input", crawl.to_str().unwrap()]);
    let store = made.store();
    std::fs::remove_file(&crawl).unwrap();
    crate::program::run_well(&["delete", "--store", store.to_str().unwrap(), "--url", all.keys().next().unwrap()]);
    let shown = crate::program::run_well(&["show", store.to_str().unwrap()]).stdout;
    assert!(shown.contains("are in one cluster: pages were not read again"), "{shown}");
    assert!(rows(&made.week()).iter().all(|row| row.0 != "recall"));
}
