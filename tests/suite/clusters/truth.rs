//! Recall, estimates and chains against the exact similarity of real pages.
//!
//! The functions that choose features are random by their seed: over seeds, and only over seeds,
//! the published probabilities are exact, since pairs of one crawl share documents and edits. So
//! the crawl is fingerprinted under many seeds, and what is compared is the mean over seeds, with
//! the error that the spread over seeds gives.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::path::{Path, PathBuf};

use arrow_array::{Array, Float64Array, StringArray};
use nigh::config::{Method, Reading, SketchKind};
use nigh::features::{Fingerprinter, Shingler, Sketch, Sketcher};
use nigh::kernels::polynomials;
use nigh::readers;
use nigh::readers::{Body, Item, Page};
use nigh::tables::{Scan, field};
use nigh::text::{charset, html, words};
use ring::digest::{SHA1_FOR_LEGACY_USE_ONLY, digest as digest_of};

use crate::program::{Made, PlainUnionFind, corpus, data, longs, roots, run, run_well, texts, week};

/// The chance that two pages of a similarity share at least two of six supershingles (method of
/// Fetterly 2004, section 2): a supershingle is shared where all of its 14 features are.
fn chance_of_two_supershingles(similarity: f64) -> f64 {
    let one = similarity.powi(14);
    1.0 - (1.0 - one).powi(6) - 6.0 * one * (1.0 - one).powi(5)
}

/// Two URLs, and the exact similarity of their pages.
struct UrlPair {
    a: String,
    b: String,
    similarity: f64,
}

fn shipped_pairs() -> Vec<UrlPair> {
    lines(&data("truth/pairs-2024-01-08.tsv.gz"))
        .map(|line| {
            let [a, b, similarity] = &line[..] else { panic!("{line:?}") };
            UrlPair { a: a.clone(), b: b.clone(), similarity: similarity.parse().unwrap() }
        })
        .collect()
}

fn corpus_pairs(path: &Path) -> Vec<UrlPair> {
    let mut pairs = Vec::new();
    let scan = Scan::open(path, &["url_a", "url_b", "jaccard"]).unwrap();
    scan.for_each(|batch| {
        let text = |name| field::<StringArray>(batch, name);
        let (a, b, similarity) = (text("url_a")?, text("url_b")?, field::<Float64Array>(batch, "jaccard")?);
        pairs.extend((0..a.len()).map(|row| UrlPair {
            a: a.value(row).to_owned(),
            b: b.value(row).to_owned(),
            similarity: similarity.value(row),
        }));
        Ok(())
    })
    .unwrap();
    pairs
}

/// The rows of a gzipped table of tab-separated values, its head left out.
fn lines(path: &Path) -> impl Iterator<Item = Vec<String>> {
    use std::io::Read;
    let mut text = String::new();
    flate2::read::MultiGzDecoder::new(std::fs::File::open(path).unwrap()).read_to_string(&mut text).unwrap();
    let rows: Vec<Vec<String>> =
        text.lines().skip(1).map(|line| line.split('\t').map(str::to_owned).collect()).collect();
    rows.into_iter()
}

/// Every page of a folder.
fn pages(folder: &Path) -> Vec<Page> {
    let reading = Reading::default();
    let mut pages = Vec::new();
    for input in readers::list(&[folder.to_str().unwrap().to_owned()], &reading).unwrap() {
        let mut reader = readers::open(&input, &reading).unwrap();
        while let Some(item) = reader.next().unwrap() {
            if let Item::Page(page) = item {
                pages.push(page);
            }
        }
    }
    pages
}

/// The URL of a page.
fn url(page: &Page) -> &str {
    page.url.as_deref().unwrap()
}

/// The text of a page, as it is fingerprinted.
fn text(page: &Page) -> String {
    let Body::Html(body) = &page.body else { panic!("{} is no HTML", url(page)) };
    let (decoded, _) = charset::decode(body, page.charset.as_deref());
    let mut extract = html::Extract::default();
    html::scan(decoded.as_bytes(), 0, nigh::kernels::chosen().unwrap(), &mut extract);
    String::from_utf8(extract.text).unwrap()
}

/// The share of pages whose words are those of the reference, and the URLs of the others.
fn words_agree(pages: &[Page], docs: &Path) -> (f64, Vec<String>) {
    let wanted: HashMap<String, String> = lines(docs).map(|line| (line[0].clone(), line[4].clone())).collect();
    let mut others = Vec::new();
    for page in pages {
        let text = text(page);
        let joined = words::words(&text).collect::<Vec<_>>().join(" ");
        let sha: String = digest_of(&SHA1_FOR_LEGACY_USE_ONLY, joined.as_bytes())
            .as_ref()
            .iter()
            .map(|byte| format!("{byte:02x}"))
            .collect();
        if wanted.get(url(page)) != Some(&sha) {
            others.push(url(page).to_owned());
        }
    }
    assert_eq!(pages.len(), wanted.len());
    (1.0 - others.len() as f64 / pages.len() as f64, others)
}

/// The bands of similarity in which recall is looked at.
const BANDS: [(f64, f64); 8] =
    [(0.5, 0.7), (0.7, 0.8), (0.8, 0.85), (0.85, 0.9), (0.9, 0.95), (0.95, 0.98), (0.98, 1.0), (1.0, 1.1)];

/// What is compared in a band of similarity.
#[derive(Default, Clone)]
struct TruthBand {
    pairs: usize,
    /// A value a seed, the mean over pairs: whether two or more supershingles are shared, less the
    /// chance of that.
    two: Vec<f64>,
    /// The same for all six supershingles.
    six: Vec<f64>,
    /// The same for the share of equal features, less the similarity.
    estimate: Vec<f64>,
    /// The means over pairs and seeds: pairs that share two or more supershingles, and the chance
    /// of that.
    recall: f64,
    expected: f64,
    /// The means over pairs and seeds: the squared error of the estimate, and the variance of the
    /// binomial distribution.
    spread: f64,
    binomial: f64,
}

impl TruthBand {
    /// Adds what one seed gave.
    fn add(&mut self, sums: &BandSums, seeds: u64) {
        let pairs = sums.pairs as f64;
        self.pairs = sums.pairs;
        self.two.push(sums.two / pairs);
        self.six.push(sums.six / pairs);
        self.estimate.push(sums.estimate / pairs);
        self.recall += sums.recall / pairs / seeds as f64;
        self.expected += sums.expected / pairs / seeds as f64;
        self.spread += sums.spread / pairs / seeds as f64;
        self.binomial += sums.binomial / pairs / seeds as f64;
    }

    fn assert_as_expected(&self, (low, high): (f64, f64), sketch: SketchKind, seeds: u64, what: &str) {
        let ((two, two_error), (six, six_error)) = (mean_and_error(&self.two), mean_and_error(&self.six));
        let (estimate, estimate_error) = mean_and_error(&self.estimate);
        eprintln!(
            "{what} {low:.2}-{:.2}: {:5} pairs, recall {:.4} (expected {:.4}, difference {two:+.4} +- {two_error:.4}), \
             six {six:+.4} +- {six_error:.4}, estimate {estimate:+.5} +- {estimate_error:.5}, spread {:.4} (binomial {:.4})",
            high.min(1.0),
            self.pairs,
            self.recall,
            self.expected,
            self.spread.sqrt(),
            self.binomial.sqrt(),
        );
        // Four errors of the mean; and for rare events what three of them among all trials would
        // make.
        let rare = 3.0 / (self.pairs as f64 * seeds as f64);
        match sketch {
            SketchKind::MinWise => {
                assert!(two.abs() <= 4.0 * two_error + rare, "{what} {low}: two of six");
                assert!(six.abs() <= 4.0 * six_error + rare, "{what} {low}: six of six");
            }
            // Features of a fast sketch are drawn without replacement: dissimilar pages agree in
            // two more seldom, similar ones more often, and those that differ at all more seldom in
            // six.
            SketchKind::Fast => {
                assert!(low >= 0.9 || two <= 4.0 * two_error + rare, "{what} {low}: two of six");
                assert!(low < 0.9 || two >= -4.0 * two_error - rare, "{what} {low}: two of six");
                assert!(six <= 4.0 * six_error + rare, "{what} {low}: six of six");
            }
        }
        assert!(estimate.abs() <= 4.0 * estimate_error + 1e-12, "{what} {low}: equal features");
        // The spread of one estimate is that of the binomial distribution: within 15%, over all
        // pairs and seeds. That of a fast sketch is less, where there are enough pairs to see it.
        let ratio = if low < 1.0 { (self.spread / self.binomial).sqrt() } else { 1.0 };
        let wanted = match sketch {
            SketchKind::MinWise => 0.85..1.15,
            SketchKind::Fast => 0.7..if low < 0.98 { 1.0 } else { 1.15 },
        };
        assert!(wanted.contains(&ratio), "{what} {low}: spread over binomial {ratio}");
    }
}

/// The sums over the pairs of a band, by the features of one seed; the fields are those of
/// [`TruthBand`].
#[derive(Default)]
struct BandSums {
    pairs: usize,
    two: f64,
    six: f64,
    estimate: f64,
    recall: f64,
    expected: f64,
    spread: f64,
    binomial: f64,
}

impl BandSums {
    fn add(&mut self, similarity: f64, a: &Sketch, b: &Sketch) {
        let shared = a.supershingles.iter().zip(&b.supershingles).filter(|(a, b)| a == b).count();
        let estimate = a.features.iter().zip(&b.features).filter(|(a, b)| a == b).count() as f64 / 84.0;
        let expected = chance_of_two_supershingles(similarity);
        self.pairs += 1;
        self.two += f64::from(shared >= 2) - expected;
        self.six += f64::from(shared == 6) - similarity.powi(84);
        self.estimate += estimate - similarity;
        self.recall += f64::from(shared >= 2);
        self.expected += expected;
        self.spread += (estimate - similarity).powi(2);
        self.binomial += similarity * (1.0 - similarity) / 84.0;
    }
}

fn mean_and_error(values: &[f64]) -> (f64, f64) {
    let mean = values.iter().sum::<f64>() / values.len() as f64;
    let variance = values.iter().map(|value| (value - mean).powi(2)).sum::<f64>() / (values.len() - 1) as f64;
    (mean, (variance / values.len() as f64).sqrt())
}

/// Fingerprints pages under many seeds, and checks recall and estimates of pairs of them against
/// the exact similarity. The pages `others` have other words than the reference: the similarity
/// that it gives is not theirs.
fn assert_probabilities(
    pages: &[Page],
    pairs: &[UrlPair],
    others: &[String],
    sketch: SketchKind,
    seeds: u64,
    what: &str,
) {
    let pairs: Vec<&UrlPair> =
        pairs.iter().filter(|pair| !others.contains(&pair.a) && !others.contains(&pair.b)).collect();
    let texts: HashMap<&str, String> = pages.iter().map(|page| (url(page), text(page))).collect();
    let used: BTreeSet<&str> = pairs.iter().flat_map(|pair| [pair.a.as_str(), pair.b.as_str()]).collect();
    let mut bands: BTreeMap<usize, TruthBand> = BTreeMap::new();
    let kernels = nigh::kernels::chosen().unwrap();
    for seed in 0..seeds {
        let method = Method { seed: 1_000_003 * seed + 20_031_107, sketch, ..Method::default() };
        let polynomials = polynomials(method.seed, method.features);
        let mut shingler = Shingler::new(polynomials.shingles, method.words, kernels);
        let mut sketcher = Sketcher::new(&method, &polynomials, kernels);
        let mut sketches: HashMap<&str, Sketch> = HashMap::new();
        let mut known: HashMap<&str, Sketch> = HashMap::new();
        for url in &used {
            let text = texts[url].as_str();
            let sketch = known.entry(text).or_insert_with(|| {
                let mut sketch = Sketch::default();
                sketcher.sketch(shingler.preimages(text.as_bytes()), &mut sketch);
                sketch
            });
            sketches.insert(url, sketch.clone());
        }
        for (at, (low, high)) in BANDS.iter().enumerate() {
            let mut sums = BandSums::default();
            for pair in pairs.iter().filter(|pair| (*low..*high).contains(&pair.similarity)) {
                sums.add(pair.similarity, &sketches[pair.a.as_str()], &sketches[pair.b.as_str()]);
            }
            if sums.pairs > 0 {
                bands.entry(at).or_default().add(&sums, seeds);
            }
        }
    }
    // Seven of eight bands have pairs in the shipped crawl. With few, hardly anything would be
    // compared.
    assert!(bands.len() >= 5, "{what}: pairs in {} bands", bands.len());
    for (at, band) in bands {
        band.assert_as_expected(BANDS[at], sketch, seeds, what);
    }
}

/// Of the pairs of pages that a store joins, the share that a chain of pairs of similarity 0.8 and
/// more links.
fn chained(week: &Path, pairs: &[UrlPair]) -> f64 {
    let ids: HashMap<String, i64> =
        texts(week, "documents", "url").into_iter().zip(longs(week, "documents", "doc")).collect();
    let mut sets = PlainUnionFind::default();
    for pair in pairs.iter().filter(|pair| pair.similarity >= 0.8) {
        sets.union(ids[&pair.a], ids[&pair.b]);
    }
    let mut clusters: BTreeMap<i64, Vec<i64>> = BTreeMap::new();
    roots(week, "similar").into_iter().for_each(|(doc, root)| clusters.entry(root).or_default().push(doc));
    let (mut joined, mut linked) = (0u64, 0u64);
    for docs in clusters.values() {
        for (at, a) in docs.iter().enumerate() {
            for b in &docs[..at] {
                joined += 1;
                linked += u64::from(sets.find(*a) == sets.find(*b));
            }
        }
    }
    linked as f64 / joined as f64
}

#[test]
fn the_words_of_the_shipped_crawl_are_those_of_the_reference() {
    let (_, mut others) = words_agree(&pages(&data("week-2024-01-08")), &data("truth/docs-2024-01-08.tsv.gz"));
    others.sort();
    // A comment within an attribute's value: see text/html.
    assert_eq!(others, ["http://www.boost.example/common/heading.html"]);
}

#[test]
fn the_shipped_crawl_is_joined_as_its_similarity_says() {
    let pages = pages(&data("week-2024-01-08"));
    let (_, others) = words_agree(&pages, &data("truth/docs-2024-01-08.tsv.gz"));
    assert_probabilities(&pages, &shipped_pairs(), &others, SketchKind::MinWise, 40, "shipped");
    assert_probabilities(&pages, &shipped_pairs(), &others, SketchKind::Fast, 40, "shipped, fast sketches");
    let made = Made::new(&["--workers", "2"]);
    let share = chained(&made.week(), &shipped_pairs());
    eprintln!("shipped: {share:.4} of joined pairs are linked by a chain of pairs >= 0.8");
    // 1.0 when it was measured: chains of dissimilar pages are rare.
    assert!(share > 0.95, "{share}");
}

#[test]
fn the_corpus_is_joined_as_its_similarity_says() {
    let Some(corpus) = corpus("", "truth of weeks 1 and 11") else { return };
    for week in ["01", "11"] {
        let folder: PathBuf = corpus.join(format!("week-{week}/warc"));
        let pages = pages(&folder);
        let (share, others) = words_agree(&pages, &corpus.join(format!("truth/docs-week-{week}.tsv.gz")));
        eprintln!("week {week}: words of {:.4} of {} pages agree; not those of {others:?}", share, pages.len());
        assert!(share >= 0.995, "{share}");
        let pairs = corpus_pairs(&corpus.join(format!("truth/pairs-week-{week}.parquet")));
        assert_probabilities(&pages, &pairs, &others, SketchKind::MinWise, 12, &format!("week {week}"));
        let what = format!("week {week}, fast sketches");
        assert_probabilities(&pages, &pairs, &others, SketchKind::Fast, 12, &what);
        let made = Made::new(&["--workers", "2", "--input", folder.to_str().unwrap()]);
        let share = chained(&made.week(), &pairs);
        eprintln!("week {week}: {share:.4} of joined pairs are linked by a chain of pairs >= 0.8");
        assert!(share > 0.95, "{share}");
    }
}

/// The features that a page has in common with itself a week later are its change amount (Fetterly
/// 2003): 84 times the exact similarity on average, with the binomial's spread.
#[test]
fn change_amounts_are_what_the_similarity_of_successive_weeks_says() {
    let Some(corpus) = corpus("", "truth of successive weeks") else { return };
    // The reference has the words of the first and last week; a URL whose words differ there is
    // left out of all weeks.
    let mut different: BTreeSet<String> = BTreeSet::new();
    let (mut all, mut others): (Vec<Page>, Vec<String>) = Default::default();
    let name = |week: &str, url: &str| format!("{}: {url}", week.trim_start_matches('0'));
    for week in (1..=11).map(|week| format!("{week:02}")) {
        let pages = pages(&corpus.join(format!("week-{week}/warc")));
        let docs = corpus.join(format!("truth/docs-week-{week}.tsv.gz"));
        if docs.exists() {
            different.extend(words_agree(&pages, &docs).1);
        }
        all.extend(pages.into_iter().map(|page| Page { url: Some(name(&week, url(&page))), ..page }));
    }
    for page in &all {
        let of_week = url(page).split_once(": ").unwrap().1;
        // Pages without words have no features.
        if different.contains(of_week) || words::words(&text(page)).next().is_none() {
            others.push(url(page).to_owned());
        }
    }
    let pairs: Vec<UrlPair> = lines(&corpus.join("truth/evolution.tsv.gz"))
        .map(|line| {
            let [before, after, url, similarity] = &line[..] else { panic!("{line:?}") };
            UrlPair { a: name(before, url), b: name(after, url), similarity: similarity.parse().unwrap() }
        })
        .collect();
    let changed = pairs.iter().filter(|pair| pair.similarity < 1.0).count();
    eprintln!("{} pairs of successive weeks, {changed} with other words", pairs.len());
    assert!(changed > 1000, "{changed}");
    assert_probabilities(&all, &pairs, &others, SketchKind::MinWise, 12, "week to week");
}

#[test]
fn copies_are_found_by_fast_sketches_too() {
    let folder = tempfile::tempdir().unwrap();
    let job = folder.path().join("fast.toml");
    std::fs::write(&job, "[cluster.method]\nsketch = \"fast\"\n").unwrap();
    let store = folder.path().join("store");
    let (job, store) = (job.to_str().unwrap(), store.to_str().unwrap());
    let input = format!("{}/*.warc.gz", data("week-2024-01-08").display());
    run_well(&["run", job, "--store", store, "--input", &input, "--week", "2024-01-08", "--workers", "2"]);
    let (fast, made) = (week(Path::new(store), "2024-01-08"), Made::new(&[]));
    let exact = |week: &Path| roots(week, "exact");
    assert_eq!(exact(&fast), exact(&made.week()));
    // The sketches are those of the library, and other ones than those of min-wise functions.
    let method = Method { sketch: SketchKind::Fast, ..Method::default() };
    let mut fingerprinter = Fingerprinter::of_method(&method).unwrap();
    let (of_fast, of_made) = (crate::program::vectors(&fast), crate::program::vectors(&made.week()));
    let ids: HashMap<String, i64> =
        texts(&fast, "documents", "url").into_iter().zip(longs(&fast, "documents", "doc")).collect();
    for page in pages(&data("week-2024-01-08")) {
        let (facts, doc) = (fingerprinter.text(&text(&page)), ids[url(&page)]);
        if facts.words > 0 {
            assert_eq!(of_fast[&doc], facts.sketch.supershingles, "{}", url(&page));
            assert_ne!(of_fast[&doc], of_made[&doc], "{}", url(&page));
        }
    }
    // A later week from what changed is that from all pages, by every way to make it.
    let next = format!("{}/*.warc.gz", data("week-2024-01-15").display());
    let weekly = |store: &str, mode: &str| {
        let job = folder.path().join(format!("{mode}.toml"));
        std::fs::write(&job, format!("[cluster]\nmode = \"{mode}\"\n[cluster.method]\nsketch = \"fast\"\n")).unwrap();
        let job = job.to_str().unwrap();
        run_well(&["run", job, "--store", store, "--input", &next, "--week", "2024-01-15"]);
        roots(&week(Path::new(store), "2024-01-15"), "similar")
    };
    let again = folder.path().join("again");
    let again = again.to_str().unwrap();
    run_well(&["run", job, "--store", again, "--input", &input, "--week", "2024-01-08"]);
    assert_eq!(weekly(store, "delta"), weekly(again, "full"));
    let other = folder.path().join("min-wise.toml");
    std::fs::write(&other, "[cluster.method]\nsketch = \"min-wise\"\n").unwrap();
    let last = format!("{}/*.warc.gz", data("week-2024-01-22").display());
    let other = run(&["run", other.to_str().unwrap(), "--store", store, "--input", &last, "--week", "2024-01-22"]);
    assert!(other.code != Some(0) && other.stderr.contains("sketch = fast"), "{}", other.stderr);
}

#[test]
fn the_program_sketches_as_the_library_does() {
    let made = Made::new(&[]);
    let week = made.week();
    let ids: HashMap<String, i64> =
        texts(&week, "documents", "url").into_iter().zip(longs(&week, "documents", "doc")).collect();
    let vectors = crate::program::vectors(&week);
    let method = Method::default();
    let kernels = nigh::kernels::chosen().unwrap();
    let mut fingerprinter =
        Fingerprinter::new(&method, &polynomials(method.seed, method.features), 0, kernels).unwrap();
    let mut compared = 0;
    for page in pages(&data("week-2024-01-08")) {
        let facts = fingerprinter.text(&text(&page));
        if facts.words > 0 {
            assert_eq!(vectors[&ids[url(&page)]], facts.sketch.supershingles, "{}", url(&page));
            compared += 1;
        }
    }
    assert_eq!(compared, 523 - 12);
}
