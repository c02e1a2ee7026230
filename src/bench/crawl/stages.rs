//! The benchmarks of crawl stages: each stage alone, then all of them together.

use std::sync::atomic::{AtomicU64, Ordering};

use anyhow::{Result, bail};

use super::figure_rows::{StageReport, StageRow, WorkDone, clock_rate, cpu_seconds, thread_cpu, wall_seconds};
use super::setting::Setting;
use super::texts::{documents, each_page, made_up, pages};
use crate::config::Method;
use crate::features::{FastFeatures, Fingerprinter, Shingler, Sketch, Sketcher, VectorKeys};
use crate::kernels::{FeatureRuns, Functions, Kernels, Polynomials, ShingleConstants, polynomials};
use crate::readers::{Body, Page};
use crate::text::{charset, html, urls};

/// The lengths of documents in words, with rows of their own.
const LENGTHS: [usize; 3] = [50, 500, 5000];
/// The index in [`LENGTHS`] of the row that stands for the benchmark as a whole: 500 words per
/// document.
const SUM: usize = 1;

/// Measures the reading of crawl files.
pub(crate) fn read(setting: &Setting) -> Result<StageReport> {
    Ok(StageReport::new(crawl(setting, "read", || |_: &Page| 0)?, 0))
}

/// Measures HTML to text, title and links: as a whole, and its stages by differences.
pub(crate) fn html(setting: &Setting) -> Result<StageReport> {
    setting.check_stages()?;
    let pages = pages(setting)?;
    let bodies: Vec<(&[u8], Option<&str>, urls::CanonicalUrl)> = pages
        .iter()
        .filter_map(|page| match (&page.body, page.url.as_deref().and_then(urls::canonical)) {
            (Body::Html(body), Some(url)) => Some((body.as_slice(), page.charset.as_deref(), url)),
            _ => None,
        })
        .collect();
    let (mut decoded, mut bounds, mut extract) = (String::new(), Vec::new(), html::Extract::default());
    let mut work = WorkDone { documents: bodies.len() as u64, ..WorkDone::default() };
    for (body, label, _) in &bodies {
        html::scan(charset::decode_bytes(body, *label, &mut decoded), 0, setting.kernels, &mut extract);
        setting.kernels.words(&extract.text, &mut bounds);
        work.words += bounds.len() as u64 / 2;
        work.bytes += body.len() as u64;
    }
    let links = setting.reading.max_links;
    let decode = cpu_seconds(|| {
        for (body, label, _) in &bodies {
            std::hint::black_box(charset::decode_bytes(body, *label, &mut decoded));
        }
    });
    let scan = cpu_seconds(|| {
        for (body, label, _) in &bodies {
            let decoded = charset::decode_bytes(body, *label, &mut decoded);
            html::scan(decoded, links, setting.kernels, &mut extract);
        }
    });
    let resolve = cpu_seconds(|| {
        for (body, label, url) in &bodies {
            let decoded = charset::decode_bytes(body, *label, &mut decoded);
            html::scan(decoded, links, setting.kernels, &mut extract);
            std::hint::black_box(urls::out_links(Some(url), extract.base.as_deref(), extract.hrefs.iter()));
        }
    });
    let row = |stage, seconds: f64| StageRow::new(stage, setting.kernels, work, seconds.max(1e-9));
    let rows = vec![
        row("html to text and links", resolve),
        row("  decode", decode),
        row("  scan", scan - decode),
        row("  links", resolve - scan),
    ];
    Ok(StageReport::new(rows, 0))
}

/// Measures text to words and pre-images (fingerprints of shingles), for several lengths of
/// documents.
pub(crate) fn text(setting: &Setting) -> Result<StageReport> {
    setting.check_stages()?;
    let mut sums = Vec::new();
    let mut parts = Vec::new();
    each_length(setting, |texts| {
        let stages = Stages::new(setting, texts);
        let (words, preimages) = (stages.words(), stages.preimages());
        sums.push(stages.row("text to pre-images", words + preimages));
        parts.push(stages.row("  words", words));
        parts.push(stages.row("  pre-images", preimages));
    })?;
    Ok(StageReport::new([sums, parts].concat(), SUM))
}

/// Measures text to features and megashingles, for several lengths of documents; with input also
/// pages and crawls to features.
pub(crate) fn features(setting: &Setting) -> Result<StageReport> {
    setting.check_stages()?;
    // Those of fast sketches are not part of the sums, unless the job asks for them: then minima
    // are not.
    let (mut sums, mut parts, mut fast) = (Vec::new(), Vec::new(), Vec::new());
    // The lower bound in nanoseconds per shingle: one matrix product per cycle, and eight products
    // give the leading byte of 64 images.
    let floor = 8.0 / 64.0 * setting.method.features as f64 / clock_rate();
    each_length(setting, |texts| {
        let stages = Stages::new(setting, texts);
        parts.push(stages.row("  words", stages.words()));
        let preimages = stages.preimages();
        parts.push(stages.row("  pre-images", preimages));
        let mut minima = stages.row("  minima", stages.minima());
        if setting.kernels.name() == "avx512" {
            minima.share_of_limit = Some(floor / minima.ns_per_shingle);
        }
        parts.push(minima);
        fast.push(stages.row("features, fast", stages.fast_features()));
        let supershingles = stages.supershingles();
        parts.push(stages.row("  supershingles", supershingles));
        let megashingles = stages.megashingles();
        parts.push(stages.row("  megashingles", megashingles));
        let all = stages.all();
        sums.push(stages.row("text to features", all));
    })?;
    let mut rows = [sums, parts, fast].concat();
    if !setting.input.is_empty() {
        let polynomials = polynomials(setting.method.seed, setting.method.features);
        rows.push(pages_to_features(setting, "pages to features", fingerprinter(setting, &polynomials))?);
        let with_chunks = || fingerprinter(setting, &polynomials).keeping_chunks(true);
        rows.push(pages_to_features(setting, "  and to chunks", with_chunks())?);
        rows.extend(crawl(setting, "crawl to features", || {
            let mut fingerprinter = fingerprinter(setting, &polynomials);
            move |page: &Page| fingerprint(&mut fingerprinter, page)
        })?);
        rows.extend(crawl(setting, "  and to chunks", || {
            let mut fingerprinter = with_chunks();
            move |page: &Page| fingerprint(&mut fingerprinter, page)
        })?);
    }
    Ok(StageReport::new(rows, SUM))
}

/// Calls `measure` with documents of each length, then with the whole texts of the input, if there
/// is input.
fn each_length(setting: &Setting, mut measure: impl FnMut(&[&str])) -> Result<()> {
    let texts: Vec<String> = if setting.input.is_empty() { vec![made_up()] } else { texts(setting)? };
    let whole = texts.join("\n");
    for length in LENGTHS {
        let documents = documents(setting.kernels, &whole, length);
        if documents.is_empty() {
            bail!("the input has fewer than {length} words: too few to measure with");
        }
        measure(&documents);
    }
    if !setting.input.is_empty() {
        measure(&texts.iter().map(String::as_str).collect::<Vec<_>>());
    }
    Ok(())
}

/// The texts of the input's pages, without pages that have no words. Each run of white space and
/// line ends becomes one space.
fn texts(setting: &Setting) -> Result<Vec<String>> {
    let (mut buffer, mut extract) = (String::new(), html::Extract::default());
    let mut all = Vec::new();
    for page in pages(setting)? {
        let bytes = match &page.body {
            Body::Html(body) => {
                let decoded = charset::decode_bytes(body, page.charset.as_deref(), &mut buffer);
                html::scan(decoded, 0, setting.kernels, &mut extract);
                &extract.text
            }
            Body::Plain(body) => charset::decode_plain_bytes(body, page.charset.as_deref(), &mut buffer),
            Body::Text(text) => text.as_bytes(),
        };
        let text = String::from_utf8_lossy(bytes).replace(char::from(html::LINE_END), " ");
        let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
        if text.contains(char::is_alphanumeric) {
            all.push(text);
        }
    }
    Ok(all)
}

/// The stages from text to megashingles, each over all documents.
struct Stages<'a> {
    kernels: &'static Kernels,
    method: &'a Method,
    polynomials: Polynomials,
    texts: &'a [&'a str],
    shingles: ShingleConstants,
    functions: Functions,
    runs: FeatureRuns,
    keys: VectorKeys,
    bounds: Vec<Vec<u32>>,
    all_preimages: Vec<Vec<u64>>,
    work: WorkDone,
}

impl<'a> Stages<'a> {
    fn new(setting: &'a Setting, texts: &'a [&'a str]) -> Stages<'a> {
        let method = &setting.method;
        let polynomials = polynomials(method.seed, method.features);
        let kernels = setting.kernels;
        let shingles = ShingleConstants::new(polynomials.shingles, method.words);
        let (mut bounds, mut all_preimages, mut words) = (Vec::new(), Vec::new(), 0);
        for text in texts {
            let (mut of_text, mut preimages) = (Vec::new(), Vec::new());
            kernels.words(text.as_bytes(), &mut of_text);
            kernels.preimages(&shingles, text.as_bytes(), &of_text, &mut preimages);
            words += preimages.len() as u64;
            bounds.push(of_text);
            all_preimages.push(preimages);
        }
        Stages {
            kernels,
            method,
            texts,
            shingles,
            functions: Functions::new(&polynomials.features),
            runs: FeatureRuns::new(polynomials.supershingles, method.features / method.supershingles),
            keys: VectorKeys::new(method, &polynomials),
            polynomials,
            bounds,
            all_preimages,
            work: WorkDone {
                documents: texts.len() as u64,
                words,
                bytes: texts.iter().map(|text| text.len() as u64).sum(),
            },
        }
    }

    fn row(&self, stage: &'static str, seconds: f64) -> StageRow {
        StageRow::new(stage, self.kernels, self.work, seconds)
    }

    fn words(&self) -> f64 {
        let mut bounds = Vec::new();
        cpu_seconds(|| self.texts.iter().for_each(|text| self.kernels.words(text.as_bytes(), &mut bounds)))
    }

    fn preimages(&self) -> f64 {
        let mut preimages = Vec::new();
        cpu_seconds(|| {
            for (text, bounds) in self.texts.iter().zip(&self.bounds) {
                self.kernels.preimages(&self.shingles, text.as_bytes(), bounds, &mut preimages);
            }
        })
    }

    fn minima(&self) -> f64 {
        let mut minima = Vec::new();
        cpu_seconds(|| {
            self.all_preimages
                .iter()
                .for_each(|preimages| self.kernels.minima(&self.functions, preimages, &mut minima));
        })
    }

    fn fast_features(&self) -> f64 {
        let mut fast = FastFeatures::new(self.method.features, self.method.seed);
        let mut features = Vec::new();
        cpu_seconds(|| self.all_preimages.iter().for_each(|preimages| fast.write(preimages, &mut features)))
    }

    fn supershingles(&self) -> f64 {
        let (mut minima, mut supershingles) = (Vec::new(), Vec::new());
        self.kernels.minima(&self.functions, &self.all_preimages[0], &mut minima);
        cpu_seconds(|| {
            self.texts.iter().for_each(|_| self.kernels.supershingles(&self.runs, &minima, &mut supershingles));
        })
    }

    fn megashingles(&self) -> f64 {
        let supershingles: Vec<u64> = (0..self.method.supershingles as u64).collect();
        cpu_seconds(|| {
            for _ in self.texts {
                self.keys.megashingles(std::hint::black_box(&supershingles), u64::MAX).for_each(|key| {
                    std::hint::black_box(key);
                });
            }
        })
    }

    /// All stages, one document after the other.
    fn all(&self) -> f64 {
        let mut shingler = Shingler::new(self.polynomials.shingles, self.method.words, self.kernels);
        let mut sketcher = Sketcher::new(self.method, &self.polynomials, self.kernels);
        let mut sketch = Sketch::default();
        cpu_seconds(|| {
            for text in self.texts {
                sketcher.sketch(shingler.preimages(text.as_bytes()), &mut sketch);
                self.keys.megashingles(&sketch.supershingles, u64::MAX).for_each(|key| {
                    std::hint::black_box(key);
                });
            }
        })
    }
}

fn fingerprinter(setting: &Setting, polynomials: &Polynomials) -> Fingerprinter {
    Fingerprinter::new(&setting.method, polynomials, setting.reading.max_links, setting.kernels)
        .expect("the content of a setting is checked")
}

/// Fingerprints a page, and returns its number of words.
fn fingerprint(fingerprinter: &mut Fingerprinter, page: &Page) -> u64 {
    let url = page.url.as_deref().and_then(urls::canonical);
    let label = page.charset.as_deref();
    let facts = match &page.body {
        Body::Html(body) => fingerprinter.html(body, label, url.as_ref()),
        Body::Plain(body) => fingerprinter.plain(body, label),
        Body::Text(text) => fingerprinter.text(text),
    };
    facts.words
}

/// Measures pages in memory to features, title and links, and to chunks if the fingerprinter keeps
/// them.
fn pages_to_features(setting: &Setting, stage: &'static str, mut fingerprinter: Fingerprinter) -> Result<StageRow> {
    let pages = pages(setting)?;
    let mut work = WorkDone::default();
    let seconds = cpu_seconds(|| {
        work = WorkDone::default();
        for page in &pages {
            work.documents += 1;
            work.bytes += page.body.bytes();
            work.words += fingerprint(&mut fingerprinter, page);
        }
    });
    Ok(StageRow::new(stage, setting.kernels, work, seconds))
}

/// CPU seconds of one pass of one thread over the whole input, and what was read: with features of
/// each page, and chunks if the job keeps them, if `fingerprints`.
pub(crate) fn crawl_once(setting: &Setting, fingerprints: bool) -> Result<(f64, WorkDone)> {
    let polynomials = polynomials(setting.method.seed, setting.method.features);
    let mut fingerprinter = fingerprints.then(|| fingerprinter(setting, &polynomials).keeping_chunks(setting.chunks));
    let mut work = WorkDone::default();
    let begun = thread_cpu();
    each_page(setting, 0, 1, |page| {
        work.documents += 1;
        work.bytes += page.body.bytes();
        work.words += fingerprinter.as_mut().map_or(0, |fingerprinter| fingerprint(fingerprinter, &page));
    })?;
    Ok((thread_cpu() - begun, work))
}

/// Measures the reading of the whole input: CPU time of one thread, then, if there are several,
/// wall-clock time of one and of all.
///
/// Each thread reads its part of the files and calls a function made by `start` with every page,
/// which returns the page's number of words. MB/s count bytes of page bodies. What `start` does is
/// not measured: to make a fingerprinter takes as long as a small file.
fn crawl<F: FnMut(&Page) -> u64 + Send>(
    setting: &Setting,
    stage: &'static str,
    start: impl Fn() -> F,
) -> Result<Vec<StageRow>> {
    let [documents, words, bytes] = [const { AtomicU64::new(0) }; 3];
    let share = |each: &mut F, worker: usize, workers: usize| {
        each_page(setting, worker, workers, |page| {
            documents.fetch_add(1, Ordering::Relaxed);
            bytes.fetch_add(page.body.bytes(), Ordering::Relaxed);
            words.fetch_add(each(&page), Ordering::Relaxed);
        })
    };
    let work = || WorkDone {
        documents: documents.swap(0, Ordering::Relaxed),
        words: words.swap(0, Ordering::Relaxed),
        bytes: bytes.swap(0, Ordering::Relaxed),
    };
    // One pass before the timed ones, so that a file that cannot be read is an error.
    let mut each = start();
    share(&mut each, 0, 1)?;
    let counted = work();
    let seconds = cpu_seconds(|| drop(share(&mut each, 0, 1)));
    let mut rows = vec![StageRow::new(stage, setting.kernels, counted, seconds)];
    if setting.workers > 1 {
        let share = &share;
        let all = |workers: usize| {
            let mut threads: Vec<F> = (0..workers).map(|_| start()).collect();
            wall_seconds(|| {
                std::thread::scope(|scope| {
                    for (worker, each) in threads.iter_mut().enumerate() {
                        scope.spawn(move || share(each, worker, workers));
                    }
                });
            })
        };
        rows.push(StageRow::new("  by the clock, 1", setting.kernels, counted, all(1)));
        rows.push(StageRow::new("  by the clock, all", setting.kernels, counted, all(setting.workers)));
    }
    Ok(rows)
}
