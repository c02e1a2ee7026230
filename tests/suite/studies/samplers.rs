//! Samplers of shingles: against sets of images, one by one.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use arrow_array::Float64Array;
use nigh::config::Method;
use nigh::features::Fingerprinter;
use nigh::kernels::{Polynomial, polynomials};
use nigh::operators::accuracy::sample_hash;
use nigh::operators::ingest::page_shingles;
use nigh::readers::Body;
use nigh::records::{DocId, mix};
use nigh::stats::{BANDS, band};

use crate::clusters::accuracy::{pages, representatives, write};
use crate::program::{Made, each, features, job, longs, roots, run, run_well, tables, texts};

const SEED: u64 = 20_031_107;

/// A store of made-up pages, whose crawl file stays.
struct Sampled {
    folder: tempfile::TempDir,
    pages: BTreeMap<String, String>,
    made: Made,
}

impl Sampled {
    fn new(count: u64) -> Sampled {
        let folder = tempfile::tempdir().unwrap();
        let (pages, crawl) = (pages(count, 3000), folder.path().join("crawl.jsonl"));
        write(&crawl, &pages);
        let job =
            job(folder.path(), "[cluster]\nweek = \"2024-01-08\"\naccuracy = false\n[cluster.method]\nshards = 8\n");
        let made = Made::with_job(&job, &["--input", crawl.to_str().unwrap()]);
        Sampled { folder, pages, made }
    }

    /// Runs the job with these lines and flags, and returns the bytes of its tables.
    fn samplers(&self, lines: &str, flags: &[&str]) -> BTreeMap<String, Vec<u8>> {
        let job = job(self.folder.path(), &format!("[samplers]\n{lines}"));
        let store = self.made.store();
        let arguments = ["run", job.to_str().unwrap(), "-q", "--store", store.to_str().unwrap()];
        run_well(&[&arguments[..], flags].concat());
        tables(&store.join("samplers"))
    }

    /// A column of `sampler-errors`; -1 stands for null.
    fn errors(&self, column: &str) -> Vec<f64> {
        let mut values = Vec::new();
        each(&self.made.store().join("samplers"), "sampler-errors", column, |array: &Float64Array| {
            values.extend(array.iter().map(|value| value.unwrap_or(-1.0)));
        });
        values
    }
}

/// A pair with its hash.
type HashedPair = (u64, i64, i64);

/// The pairs of a walk over all pairs of pages: by band of their estimate, those with the smallest
/// hashes, of each cluster one at most.
fn chosen(week: &Path, most: usize) -> Vec<(i64, i64)> {
    let (features, roots) = (features(week), roots(week, "similar"));
    let mut bands: Vec<BTreeMap<i64, BTreeSet<HashedPair>>> = vec![BTreeMap::new(); BANDS.len()];
    let probes: BTreeSet<i64> =
        representatives(&features, &features.keys().copied().collect::<Vec<_>>(), 42, 8).into_iter().collect();
    for (a, of_a) in &features {
        for (b, of_b) in features.range(a + 1..) {
            let equal = of_a.iter().zip(of_b).filter(|(a, b)| a == b).count();
            if (42..84).contains(&equal) {
                let hash = sample_hash(mix(SEED ^ *a as u64), 5, DocId::from_table(*b));
                let of_band = &mut bands[band(equal as f64 / 84.0)];
                for doc in [a, b].into_iter().filter(|doc| probes.contains(doc)) {
                    of_band.entry(roots[doc]).or_default().insert((hash, *a, *b));
                }
            }
        }
    }
    let mut all = Vec::new();
    for of_band in bands {
        let first: BTreeSet<HashedPair> = of_band.values().filter_map(|pairs| pairs.first().copied()).collect();
        let (mut used, mut count) = (BTreeSet::new(), 0);
        for (hash, a, b) in first {
            if count < most && !used.contains(&roots[&a]) && !used.contains(&roots[&b]) {
                used.extend([roots[&a], roots[&b]]);
                count += 1;
                all.push((hash, a, b));
            }
        }
    }
    all.into_iter().map(|(_, a, b)| (a, b)).collect()
}

/// What a walk says of one sampler and band: pairs; mean resemblance, bias, error, and the share
/// without an estimate.
type WalkRow = (i64, [f64; 4]);

/// The exact resemblance of pairs, and the errors of all estimates.
type Errors = (Vec<f64>, Vec<Option<f64>>);

/// Whether an image of two sets of images is in their samples.
type SamplerRule<'a> = &'a dyn Fn(&BTreeSet<u64>, &BTreeSet<u64>, u64) -> bool;

/// The rows of `sampler-errors` by sampler and band, from sets of images.
fn twin(sampled: &Sampled, most: usize, seeds: u64) -> BTreeMap<(String, usize), WalkRow> {
    let week = sampled.made.week();
    let mut fingerprinter = Fingerprinter::of_method(&Method::default()).unwrap();
    let docs = longs(&week, "documents", "doc").into_iter().zip(texts(&week, "documents", "url"));
    let mut set = |url: &String| -> BTreeSet<u64> {
        page_shingles(&mut fingerprinter, &Body::Text(sampled.pages[url].clone()), None).into_iter().collect()
    };
    let sets: BTreeMap<i64, BTreeSet<u64>> = docs.map(|(doc, url)| (doc, set(&url))).collect();
    let resemblance = |a: &BTreeSet<u64>, b: &BTreeSet<u64>| {
        let union = a.union(b).count();
        (union > 0).then(|| a.intersection(b).count() as f64 / union as f64)
    };
    let functions: Vec<Vec<Polynomial>> = (1..=seeds)
        .map(|seed| polynomials(mix(SEED ^ seed), 84).features.iter().map(|p| Polynomial::new(*p)).collect())
        .collect();
    let mut errors: BTreeMap<(String, usize), Errors> = BTreeMap::new();
    let mut counts = [0; BANDS.len()];
    for (a, b) in chosen(&week, most) {
        let (a, b) = (&sets[&a], &sets[&b]);
        let exact = resemblance(a, b).unwrap();
        let band = band(exact);
        if !(1..BANDS.len() - 1).contains(&band) || counts[band] == most {
            continue;
        }
        counts[band] += 1;
        let mut add = |sampler: &str, estimates: Vec<Option<f64>>| {
            let (similarities, all) = errors.entry((sampler.to_owned(), band)).or_default();
            similarities.push(exact);
            all.extend(estimates.into_iter().map(|estimate| estimate.map(|estimate| estimate - exact)));
        };
        let minimum = |set: &BTreeSet<u64>, f: &Polynomial| *set.iter().min_by_key(|x| f.image(**x)).unwrap();
        let equal_by = |functions: &[Polynomial], bits: u32| {
            let low = |x: u64| mix(x) & (u64::MAX >> (64 - bits));
            let is_equal = |f: &&Polynomial| low(minimum(a, f)) == low(minimum(b, f));
            functions.iter().filter(is_equal).count() as f64 / 84.0
        };
        add("functions", functions.iter().map(|of_seed| Some(equal_by(of_seed, 64))).collect());
        add("functions, 2 bits", functions.iter().map(|of_seed| Some((equal_by(of_seed, 2) - 0.25) / 0.75)).collect());
        let images =
            |set: &BTreeSet<u64>, f: &Polynomial| -> BTreeSet<u64> { set.iter().map(|x| f.image(*x)).collect() };
        let of_samples = |keep: SamplerRule<'_>| -> Vec<Option<f64>> {
            let of_seed = |of_seed: &Vec<Polynomial>| {
                let (a, b) = (images(a, &of_seed[0]), images(b, &of_seed[0]));
                let sample = |set: &BTreeSet<u64>| set.iter().copied().filter(|x| keep(&a, &b, *x)).collect();
                resemblance(&sample(&a), &sample(&b))
            };
            functions.iter().map(of_seed).collect()
        };
        add("min", of_samples(&|a, b, x| a.union(b).take(84).any(|small| *small == x)));
        add("mod 8", of_samples(&|_, _, x| x % 8 == 0));
        let power =
            |a: &BTreeSet<u64>, b: &BTreeSet<u64>| (a.len().max(b.len()) as f64 / 84.0).log2().max(0.0).round() as u32;
        add("mod 2^i", of_samples(&|a, b, x| x % (1 << power(a, b)) == 0));
        add("mod 5000", of_samples(&|_, _, x| x % 5000 == 0));
    }
    let row = |(key, (similarities, errors)): (_, Errors)| {
        let mean = |values: &[f64]| values.iter().sum::<f64>() / values.len().max(1) as f64;
        let known: Vec<f64> = errors.iter().flatten().copied().collect();
        let squares: Vec<f64> = known.iter().map(|error| error * error).collect();
        let without = 1.0 - known.len() as f64 / errors.len() as f64;
        let of_known = |value: f64| if known.is_empty() { -1.0 } else { value };
        let (bias, error) = (of_known(mean(&known)), of_known(mean(&squares).sqrt()));
        (key, (similarities.len() as i64, [mean(&similarities), bias, error, without]))
    };
    errors.into_iter().map(row).collect()
}

#[test]
fn estimates_are_those_of_sets_of_images() {
    let sampled = Sampled::new(1500);
    let lines = "pairs = 9\nseeds = 3\nbits = [2]\nmoduli = [8, 5000]\n";
    let one = sampled.samplers(lines, &["--workers", "1"]);
    let folder = sampled.made.store().join("samplers");
    let columns = ["similarity", "bias", "error", "without"].map(|column| sampled.errors(column));
    let lows = sampled.errors("low");
    let samplers = texts(&folder, "sampler-errors", "sampler");
    let pairs = longs(&folder, "sampler-errors", "pairs");
    let wanted = twin(&sampled, 9, 3);
    assert!(wanted.len() == samplers.len() && wanted.len() >= 6 * 6, "{} {}", wanted.len(), samplers.len());
    for at in 0..samplers.len() {
        let (count, values) = wanted[&(samplers[at].clone(), band(lows[at]))];
        let found = columns.each_ref().map(|column| column[at]);
        assert_eq!(pairs[at], count, "{} {}", samplers[at], lows[at]);
        for (found, wanted) in found.iter().zip(values) {
            assert!((found - wanted).abs() < 1e-9, "{} {}: {found} {wanted}", samplers[at], lows[at]);
        }
    }
    // The same bytes, whatever the workers.
    for flags in [["--workers", "2"], ["--workers", "4"], ["--processes", "2"]] {
        assert!(sampled.samplers(lines, &flags) == one, "{flags:?}");
    }
}

#[test]
fn errors_are_those_of_theory_and_estimates_have_no_bias() {
    let sampled = Sampled::new(4000);
    sampled.samplers("", &[]);
    let folder = sampled.made.store().join("samplers");
    let [bias, bias_error, error, theory] =
        ["bias", "bias_error", "error", "theory"].map(|column| sampled.errors(column));
    let [similarity, joined, expected] = ["similarity", "joined", "expected"].map(|column| sampled.errors(column));
    let samplers = texts(&folder, "sampler-errors", "sampler");
    let pairs = longs(&folder, "sampler-errors", "pairs");
    let mut compared = 0;
    for at in (0..samplers.len()).filter(|at| pairs[*at] >= 50) {
        let what = format!("{} at {:.3}: {} of {} pairs", samplers[at], similarity[at], error[at], pairs[at]);
        assert!(bias[at].abs() <= 3.0 * bias_error[at], "{what}: bias {} {}", bias[at], bias_error[at]);
        if ["functions", "min"].contains(&samplers[at].as_str()) {
            assert!((error[at] / theory[at] - 1.0).abs() < 0.1, "{what}: theory {}", theory[at]);
            compared += 1;
        }
        if samplers[at] == "functions" {
            let by_hand = (similarity[at] * (1.0 - similarity[at]) / 84.0).sqrt();
            assert!((theory[at] / by_hand - 1.0).abs() < 0.02, "{what}: {by_hand}");
            assert!((joined[at] - expected[at]).abs() < 0.05, "{what}: joined {} {}", joined[at], expected[at]);
        }
    }
    assert!(compared >= 8, "{samplers:?} {pairs:?}");
}

#[test]
fn files_that_are_not_there_or_have_changed_are_named() {
    let sampled = Sampled::new(300);
    let before = sampled.samplers("seeds = 1\n", &[]);
    let crawl = sampled.folder.path().join("crawl.jsonl");
    let job = job(sampled.folder.path(), "[samplers]\nseeds = 2\n");
    let store = sampled.made.store();
    let arguments = ["run", job.to_str().unwrap(), "-q", "--store", store.to_str().unwrap()];
    // Every page has one word more.
    let text = std::fs::read_to_string(&crawl).unwrap();
    std::fs::write(&crawl, text.replace("\"}\n", " more\"}\n")).unwrap();
    let changed = run(&arguments);
    assert!(changed.code == Some(1) && changed.stderr.contains("has changed since it was read"), "{}", changed.stderr);
    assert!(changed.stderr.contains("crawl.jsonl") && changed.stderr.contains("--input"), "{}", changed.stderr);
    std::fs::remove_file(&crawl).unwrap();
    let missing = run(&arguments);
    assert!(missing.code == Some(1) && missing.stderr.contains("--input"), "{}", missing.stderr);
    // Other files do not have the pages.
    let other = sampled.folder.path().join("other.jsonl");
    std::fs::write(&other, &text).unwrap();
    let other = run(&[&arguments[..], &["--input", other.to_str().unwrap()]].concat());
    assert!(other.code == Some(1) && other.stderr.contains("crawl.jsonl is not at hand"), "{}", other.stderr);
    assert!(tables(&store.join("samplers")) == before, "the tables of the run before stay");
    std::fs::write(&crawl, &text).unwrap();
    assert_eq!(run_well(&arguments).code, Some(0));
    let dry = run_well(&[&arguments[..], &["--dry-run"]].concat()).stdout;
    assert!(dry.contains("Input     1 files"), "{dry}");
}

#[test]
fn weeks_without_pairs_have_sizes_of_samples_only() {
    for count in [0, 1] {
        let folder = tempfile::tempdir().unwrap();
        let (all, crawl) = (pages(count, 3000), folder.path().join("crawl.jsonl"));
        write(&crawl, &all);
        let text = "[cluster]\nweek = \"2024-01-08\"\nallow-empty = true\n";
        let made = Made::with_job(&job(folder.path(), text), &["--input", crawl.to_str().unwrap()]);
        let sampled = Sampled { folder, pages: all, made };
        sampled.samplers("", &[]);
        let folder = sampled.made.store().join("samplers");
        assert_eq!(texts(&folder, "samplers", "sampler").len(), 1 + 6 + 2 + 2);
        assert!(sampled.errors("bias").is_empty());
    }
}
