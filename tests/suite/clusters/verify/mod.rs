//! Verified clusters against brute force over pairs of pages.

mod twin;

use std::collections::BTreeMap;
use std::io::{Read as _, Write as _};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use nigh::config::Reading;
use nigh::readers;
use nigh::readers::{Body, Format, Item, Page};
use nigh::records::mix;
use nigh::text::{charset, html, words};

use self::twin::{SimilarityMeasure, TextsByUrl, assert_verified};
use crate::program::{Made, has_week, job, kill_at_moments, longs, roots, run, run_well, tables, texts};

/// Random numbers from a seed.
struct RandomNumbers(u64);

impl RandomNumbers {
    fn below(&mut self, bound: u64) -> u64 {
        self.0 = mix(self.0);
        self.0 % bound
    }
}

/// Pages of families: copies, copies with other blanks, and pages with some words changed, of which
/// chains grow.
fn random_pages(random: &mut RandomNumbers, count: u64) -> TextsByUrl {
    let mut pages: Vec<(String, String)> = Vec::new();
    for number in 0..count {
        let text = match random.below(8) {
            0 | 1 if !pages.is_empty() => pages[random.below(pages.len() as u64) as usize].1.clone(),
            2 if !pages.is_empty() => format!(" {}", pages[random.below(pages.len() as u64) as usize].1),
            3..=6 if !pages.is_empty() => {
                let text = pages[random.below(pages.len() as u64) as usize].1.clone();
                edited(random, &text)
            }
            _ => (0..random.below(120)).map(|_| format!("w{}", random.below(500))).collect::<Vec<_>>().join(" "),
        };
        pages.push((format!("http://h{}.example/{number}", number % 5), text));
    }
    pages.into_iter().collect()
}

/// The text with up to five words changed.
fn edited(random: &mut RandomNumbers, text: &str) -> String {
    let mut words: Vec<String> = text.split_whitespace().map(str::to_owned).collect();
    for _ in 0..random.below(6) {
        let at = random.below(words.len().max(1) as u64) as usize;
        if let Some(word) = words.get_mut(at) {
            *word = format!("v{}", random.below(500));
        }
    }
    words.join(" ")
}

/// Writes pages as JSON Lines.
fn write(path: &Path, pages: &TextsByUrl) {
    let lines = pages.iter().map(|(url, text)| format!("{{\"url\": \"{url}\", \"text\": \"{text}\"}}\n"));
    std::fs::write(path, lines.collect::<String>()).unwrap();
}

/// A job of the first week with these fields of the method.
fn method(folder: &Path, fields: &str) -> PathBuf {
    job(folder, &format!("[cluster]\nweek = \"2024-01-08\"\n[cluster.method]\nshards = 4\n{fields}\n"))
}

/// A store of pages, made with a method.
fn made(folder: &Path, pages: &TextsByUrl, fields: &str, flags: &[&str]) -> Made {
    let crawl = folder.join("crawl.jsonl");
    write(&crawl, pages);
    let flags = [&["--input", crawl.to_str().unwrap()], flags].concat();
    Made::with_job(&method(folder, fields), &flags)
}

#[test]
fn random_pages_have_the_verified_clusters_of_brute_force() {
    let folder = tempfile::tempdir().unwrap();
    // Few features: then pages with the same vector can be unlike, too.
    let shapes = [
        ("", 2),
        ("features = 4\nsupershingles = 2\nagreements = 1", 1),
        ("preset = \"minhash-14x8\"", 1),
        ("preset = \"minhash-5x3\"", 1),
    ];
    for seed in 0..24 {
        let pages = random_pages(&mut RandomNumbers(seed), 80);
        let (shape, agreements) = shapes[seed as usize % 4];
        let similarity = [0.8, 0.5, 0.9, 0.65][seed as usize / 3 % 4];
        let (name, measure) =
            [("exact", SimilarityMeasure::Exact), ("estimate", SimilarityMeasure::Estimate)][seed as usize / 12];
        eprintln!("seed {seed}: {name} {similarity} {shape}");
        let numbers = if shape.is_empty() { "features = 84\nsupershingles = 6\nagreements = 2" } else { shape };
        let fields = format!("{numbers}\nsimilarity = {similarity}\nverify = \"{name}\"");
        let workers = ["1", "2", "4"][seed as usize % 3];
        let made = made(folder.path(), &pages, &fields, &["--workers", workers]);
        assert_verified(&made.week(), &pages, agreements, (similarity * 1000.0) as u64, measure);
    }
}

/// A text of words with the same beginning, and its number in it at `places` many places.
fn variant(words: usize, changed: std::ops::Range<usize>) -> String {
    let word = |at: usize| if changed.contains(&at) { format!("x{at}") } else { format!("w{at}") };
    (0..words).map(word).collect::<Vec<_>>().join(" ")
}

#[test]
fn a_chain_with_a_false_middle_is_split_and_a_clique_without_an_edge_is_not() {
    let folder = tempfile::tempdir().unwrap();
    // a resembles b, and c resembles d; b and c share half: as candidates they are one chain. Of
    // 400 words a run of n changed ones costs n + 4 shingles.
    let chain = [variant(400, 0..0), variant(400, 0..10), variant(400, 0..150), variant(400, 0..160)];
    // Any two of these differ in at most 60 words, but the first and the last.
    let clique = [variant(300, 0..0), variant(300, 0..14), variant(300, 7..21), variant(300, 7..28)];
    let clique = clique.map(|text| text.replace('w', "u"));
    let page = |(number, text): (usize, String)| (format!("http://a.example/{number}"), text);
    let pages: TextsByUrl = chain.into_iter().chain(clique).enumerate().map(page).collect();
    let shape = "features = 80\nsupershingles = 40\nagreements = 1\nsimilarity = 0.85\nverify = ";
    for (name, measure) in [("exact", SimilarityMeasure::Exact), ("estimate", SimilarityMeasure::Estimate)] {
        let made = made(folder.path(), &pages, &format!("{shape}\"{name}\""), &[]);
        let week = made.week();
        if measure == SimilarityMeasure::Exact {
            assert_verified(&week, &pages, 1, 850, measure);
            let urls = texts(&week, "clusters", "url");
            let root_of: BTreeMap<String, i64> =
                urls.into_iter().zip(longs(&week, "clusters", "similar_root")).collect();
            let root = |number: usize| root_of[&format!("http://a.example/{number}")];
            assert!(root(0) == root(1) && root(2) == root(3) && root(1) != root(2), "{root_of:?}");
            assert!((5..8).all(|number| root(number) == root(4)), "{root_of:?}");
        } else {
            assert_verified(&week, &pages, 1, 850, measure);
        }
    }
    // Without verification the chain is one cluster.
    let made = made(folder.path(), &pages, "features = 80\nsupershingles = 40\nagreements = 1", &[]);
    let clusters: std::collections::BTreeSet<i64> = roots(&made.week(), "similar").into_values().collect();
    assert_eq!(clusters.len(), 2);
}

#[test]
fn many_equal_pages_and_a_near_one_take_no_time() {
    let folder = tempfile::tempdir().unwrap();
    let mut pages: TextsByUrl = (0..20_000).map(|n| (format!("http://a.example/{n}"), variant(200, 0..0))).collect();
    pages.insert("http://b.example/".into(), variant(200, 0..3));
    pages.insert("http://c.example/".into(), variant(200, 0..90));
    let begun = Instant::now();
    let made = made(folder.path(), &pages, "similarity = 0.8\nverify = \"exact\"", &[]);
    assert!(begun.elapsed() < Duration::from_secs(60), "20,000 equal pages are one");
    let urls = texts(&made.week(), "clusters", "url");
    let sizes: BTreeMap<String, i64> = urls.into_iter().zip(longs(&made.week(), "clusters", "similar_size")).collect();
    assert_eq!((sizes["http://a.example/7"], sizes["http://b.example/"]), (20_001, 20_001));
    assert_eq!(sizes["http://c.example/"], 1);
}

#[test]
fn tables_do_not_depend_on_workers_processes_or_memory() {
    let folder = tempfile::tempdir().unwrap();
    let pages = random_pages(&mut RandomNumbers(99), 300);
    let config = folder.path().join("little.toml");
    std::fs::write(&config, "memory = \"1MiB\"\n").unwrap();
    for name in ["exact", "estimate"] {
        let fields = format!("preset = \"minhash-14x8\"\nsimilarity = 0.75\nverify = \"{name}\"");
        let of = |flags: &[&str]| made(folder.path(), &pages, &fields, flags).tables();
        let one = of(&["--workers", "1"]);
        let others: [&[&str]; 4] = [
            &["--workers", "2"],
            &["--workers", "4"],
            &["--workers", "1", "--processes", "2"],
            &["--workers", "2", "--config", config.to_str().unwrap()],
        ];
        for flags in others {
            assert!(of(flags) == one, "{name} {flags:?}");
        }
    }
}

const WEEKS: [&str; 4] = ["2024-01-08", "2024-01-15", "2024-01-22", "2024-01-29"];

/// The next week of a crawl: pages that are edited, gone, new, or have other blanks and so the same
/// shingles.
fn next_week(random: &mut RandomNumbers, pages: &TextsByUrl) -> TextsByUrl {
    let mut next = random_pages(random, 100);
    let fresh: Vec<String> = next.values().cloned().collect();
    next.clear();
    for (url, text) in pages {
        match random.below(12) {
            0 => {}
            1 => _ = next.insert(url.clone(), edited(random, text)),
            2 => _ = next.insert(url.clone(), format!(" {text}")),
            3 => _ = next.insert(url.clone(), fresh[random.below(fresh.len() as u64) as usize].clone()),
            _ => _ = next.insert(url.clone(), text.clone()),
        }
    }
    for _ in 0..random.below(8) {
        let of = pages.values().nth(random.below(pages.len() as u64) as usize).unwrap().clone();
        next.insert(format!("http://new.example/{}", random.below(1 << 40)), edited(random, &of));
    }
    next
}

/// Makes weeks of a random history; returns the tables of the last week.
fn history(folder: &Path, seed: u64, name: &str, mode: &str, flags: &[&str]) -> BTreeMap<String, Vec<u8>> {
    let mut random = RandomNumbers(seed);
    let similarity = [0.8, 0.6, 0.9][seed as usize % 3];
    let shape = ["features = 84\nsupershingles = 6\nagreements = 2", "features = 4\nsupershingles = 2\nagreements = 1"]
        [seed as usize % 2];
    let fields = format!("{shape}\nsimilarity = {similarity}\nverify = \"{name}\"");
    let (first, later) = (method(folder, &fields), folder.join("later.toml"));
    std::fs::write(&later, format!("[weekly]\nmode = \"{mode}\"\n")).unwrap();
    let store = folder.join(format!("store-{name}-{mode}-{seed}"));
    let text = |path: &Path| path.to_str().unwrap().to_owned();
    let mut pages = random_pages(&mut random, 100);
    for (number, week) in WEEKS.iter().enumerate() {
        if number > 0 {
            pages = next_week(&mut random, &pages);
        }
        let crawl = folder.join(format!("crawl-{week}.jsonl"));
        write(&crawl, &pages);
        let job = if number == 0 { &first } else { &later };
        let arguments = ["run", &text(job), "-q", "--store", &text(&store), "--week", week, "--input", &text(&crawl)];
        run_well(&[&arguments[..], flags].concat());
        if number == 2 {
            // A page goes: what it held together may fall apart.
            let url = pages.keys().nth(random.below(pages.len() as u64) as usize).unwrap().clone();
            run_well(&["delete", "--store", &text(&store), "--quiet", "--url", &url]);
            pages.remove(&url);
        }
        let measure = if name == "exact" { SimilarityMeasure::Exact } else { SimilarityMeasure::Estimate };
        let agreements = if seed.is_multiple_of(2) { 2 } else { 1 };
        let week = crate::program::week(&store, week);
        assert_verified(&week, &pages, agreements, (similarity * 1000.0) as u64, measure);
    }
    tables(&crate::program::week(&store, WEEKS[3]))
}

#[test]
fn weeks_from_what_changed_are_weeks_from_all_pages() {
    let folder = tempfile::tempdir().unwrap();
    for seed in 0..6 {
        for name in ["exact", "estimate"] {
            eprintln!("seed {seed}: {name}");
            let full = history(folder.path(), seed, name, "full", &["--workers", "1"]);
            let workers = ["2", "4"][seed as usize % 2];
            let delta = history(folder.path(), seed, name, "delta", &["--workers", workers]);
            assert!(full == delta, "seed {seed}, {name}: the tables differ");
        }
    }
}

#[test]
fn a_crawl_file_that_changed_or_is_gone_is_named() {
    let folder = tempfile::tempdir().unwrap();
    let pages = random_pages(&mut RandomNumbers(5), 300);
    let crawl = folder.path().join("crawl.jsonl");
    write(&crawl, &pages);
    let store = folder.path().join("store");
    let job = method(folder.path(), "preset = \"minhash-14x8\"\nsimilarity = 0.8\nverify = \"exact\"");
    let arguments = ["run", job.to_str().unwrap(), "-q", "--store", store.to_str().unwrap(), "--input"];
    run_well(&[&arguments[..], &[crawl.to_str().unwrap()]].concat());
    // A deletion verifies the cluster of the page again.
    let week = crate::program::week(&store, WEEKS[0]);
    let (urls, roots) = (texts(&week, "clusters", "url"), longs(&week, "clusters", "similar_root"));
    let firsts = longs(&week, "clusters", "exact_root");
    let distinct = |root: i64| {
        let members = (0..urls.len()).filter(|at| roots[*at] == root);
        members.map(|at| firsts[at]).collect::<std::collections::BTreeSet<i64>>().len()
    };
    let member = (0..urls.len()).find(|at| distinct(roots[*at]) > 3).expect("a cluster of several pages");
    let delete = ["delete", "--store", store.to_str().unwrap(), "--quiet", "--url", &urls[member]];
    let before = tables(&store);
    let text = std::fs::read_to_string(&crawl).unwrap();
    std::fs::write(&crawl, text.replacen("http://h1", "http://h9", 40)).unwrap();
    let ran = run(&delete);
    assert!(
        ran.code == Some(1) && ran.stderr.contains("crawl.jsonl") && ran.stderr.contains("changed"),
        "{}",
        ran.stderr
    );
    std::fs::remove_file(&crawl).unwrap();
    let ran = run(&delete);
    assert!(ran.code == Some(1) && ran.stderr.contains("crawl.jsonl is not at hand"), "{}", ran.stderr);
    assert!(tables(&store) == before, "the week is as it was");
    std::fs::write(&crawl, text).unwrap();
    run_well(&delete);
}

#[test]
fn a_killed_run_goes_on_to_the_same_tables() {
    let folder = tempfile::tempdir().unwrap();
    let pages = random_pages(&mut RandomNumbers(7), 400);
    let crawl = folder.path().join("crawl.jsonl");
    write(&crawl, &pages);
    let job = method(folder.path(), "preset = \"minhash-14x8\"\nsimilarity = 0.8\nverify = \"exact\"");
    let begun = Instant::now();
    let whole = Made::with_job(&job, &["--input", crawl.to_str().unwrap()]);
    let time = begun.elapsed();
    let store = folder.path().join("store");
    let text = |path: &Path| path.to_str().unwrap().to_owned();
    let arguments = ["run", &text(&job), "--quiet", "--store", &text(&store), "--input", &text(&crawl)];
    kill_at_moments(&arguments, time, 8, |_| {
        let week = crate::program::week(&store, WEEKS[0]);
        assert!(!has_week(&week) || tables(&week) == whole.tables());
    });
    run_well(&arguments);
    assert!(tables(&crate::program::week(&store, WEEKS[0])) == whole.tables());
}

/// The text of a page, as it is fingerprinted: words with blanks between them.
fn words_of(page: &Page) -> String {
    let (Body::Html(body) | Body::Plain(body)) = &page.body else { panic!("{:?} is no HTML", page.url) };
    let (decoded, _) = charset::decode(body, page.charset.as_deref());
    let mut extract = html::Extract::default();
    html::scan(decoded.as_bytes(), 0, nigh::kernels::chosen().unwrap(), &mut extract);
    let text = String::from_utf8_lossy(&extract.text).into_owned();
    words(&text).collect::<Vec<_>>().join(" ")
}

#[test]
fn real_pages_are_read_again_at_their_places() {
    let folder = tempfile::tempdir().unwrap();
    let inputs = readers::list(&["tests/data/week-2024-01-08".into()], &Reading::default()).unwrap();
    let mut pages = TextsByUrl::new();
    for input in &inputs {
        let mut reader = readers::open(input, &Reading::default()).unwrap();
        while let Some(item) = reader.next().unwrap() {
            if let Item::Page(page) = item
                && let Some(url) = page.url.as_deref().and_then(nigh::text::canonical)
            {
                pages.entry(url.as_str().to_owned()).or_insert_with(|| words_of(&page));
            }
        }
    }
    let job = method(folder.path(), "preset = \"minhash-14x8\"\nsimilarity = 0.8\nverify = \"exact\"");
    let made = Made::with_job(&job, &["--input", "tests/data/week-2024-01-08", "--workers", "2"]);
    assert_verified(&made.week(), &pages, 1, 800, SimilarityMeasure::Exact);
    assert!(!longs(&made.week(), "split-off", "doc").is_empty(), "the bands link pages that are less similar");

    // The same members in one file, and in one member, where offsets of records lead nowhere.
    let mut members = Vec::new();
    for input in inputs.iter().filter(|input| input.format == Format::Warc) {
        let readers::Location::File(path) = &input.place else { panic!("{} is a file", input.name) };
        members.extend(std::fs::read(path).unwrap());
    }
    let [joined, one_member] = ["joined.warc.gz", "one-member.warc.gz"].map(|name| folder.path().join(name));
    std::fs::write(&joined, &members).unwrap();
    let (mut plain, mut packed) = (Vec::new(), flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast()));
    flate2::read::MultiGzDecoder::new(&members[..]).read_to_end(&mut plain).unwrap();
    packed.write_all(&plain).unwrap();
    std::fs::write(&one_member, packed.finish().unwrap()).unwrap();
    let clusters = |made: &Made| {
        let (urls, roots) = (texts(&made.week(), "clusters", "url"), longs(&made.week(), "clusters", "similar_root"));
        urls.into_iter().zip(roots).collect::<BTreeMap<String, i64>>()
    };
    for path in [joined, one_member] {
        let other = Made::with_job(&job, &["--input", path.to_str().unwrap()]);
        assert_eq!(clusters(&other), clusters(&made), "{}", path.display());
    }
}

#[test]
fn rows_of_every_packing_are_read_again() {
    let folder = tempfile::tempdir().unwrap();
    let pages = random_pages(&mut RandomNumbers(11), 300);
    let fields = "preset = \"minhash-14x8\"\nsimilarity = 0.8\nverify = \"exact\"";
    let plain = made(folder.path(), &pages, fields, &[]);
    let text = std::fs::read(folder.path().join("crawl.jsonl")).unwrap();
    let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    gzip.write_all(&text).unwrap();
    let packed =
        [("packed.jsonl.gz", gzip.finish().unwrap()), ("packed.jsonl.zst", zstd::encode_all(&text[..], 1).unwrap())];
    let of_clusters = |made: &Made| {
        let tables = made.tables().into_iter();
        let is_of = |path: &str| ["clusters", "evidence", "split-off"].iter().any(|table| path.starts_with(table));
        tables.filter(|(path, _)| is_of(path)).collect::<Vec<_>>()
    };
    let kept = format!(
        "[cluster]\nweek = \"2024-01-08\"\n[cluster.keep]\nshingles = true\n[cluster.method]\nshards = 4\n{fields}\n"
    );
    for workers in ["1", "2"] {
        let crawl = folder.path().join("crawl.jsonl");
        let flags = ["--input", crawl.to_str().unwrap(), "--workers", workers];
        let other = Made::with_job(&job(folder.path(), &kept), &flags);
        assert!(of_clusters(&other) == of_clusters(&plain), "kept shingles, {workers} workers");
    }
    for (name, bytes) in packed {
        let path = folder.path().join(name);
        std::fs::write(&path, bytes).unwrap();
        let other = Made::with_job(&method(folder.path(), fields), &["--input", path.to_str().unwrap()]);
        assert!(of_clusters(&other) == of_clusters(&plain), "{name}");
    }
}

#[test]
fn pages_of_every_format_are_read_again() {
    let folder = tempfile::tempdir().unwrap();
    // One equal feature makes a candidate, so nearly all pages are read again.
    let job = method(folder.path(), "preset = \"minhash-64x1\"\nsimilarity = 0.5\nverify = \"exact\"");
    for name in [
        "pages.warc.wet.gz",
        "pages.jsonl.gz",
        "pages.parquet",
        "pages.warc.zst",
        "pages.warc",
        "pages.warc.bz2",
        "pages.warc.xz",
        "pages.arc.gz",
        "pages.wacz",
        "pages-zip64.wacz",
    ] {
        let made = Made::with_job(&job, &["--input", &format!("tests/data/formats/{name}"), "--workers", "2"]);
        let (week, clusters) = (made.week(), roots(&made.week(), "similar"));
        assert!(!longs(&week, "split-off", "doc").is_empty(), "{name}: pages of one site share something");
        let candidates = clusters.iter().filter(|(doc, root)| doc != root).count();
        assert_eq!(longs(&week, "evidence", "doc").len(), candidates, "{name}");
    }
}

#[test]
fn a_committed_week_is_verified_and_so_are_later_ones() {
    let folder = tempfile::tempdir().unwrap();
    let mut random = RandomNumbers(21);
    let pages = random_pages(&mut random, 200);
    let (crawl, store) = (folder.path().join("crawl.jsonl"), folder.path().join("store"));
    write(&crawl, &pages);
    let text = |path: &Path| path.to_str().unwrap().to_owned();
    let job = method(folder.path(), "preset = \"minhash-14x8\"");
    let make = ["run", &text(&job), "-q", "--store", &text(&store), "--input", &text(&crawl)];
    run_well(&make);
    run_well(&["run", "jobs/overlap.toml", "-q", "--store", &text(&store)]);
    let overlap = tables(&store.join("overlap"));
    let week = |date: &str| crate::program::week(&store, date);
    let before = tables(&store);
    let dry = run_well(&["verify", &text(&store), "--similarity", "0.8", "--dry-run"]).stdout;
    assert!(dry.contains("Would verify week 2024-01-08") && tables(&store) == before, "{dry}");
    let wrong = run(&["verify", &text(&store)]);
    assert!(wrong.code == Some(2) && wrong.stderr.contains("give --similarity"), "{}", wrong.stderr);

    for (by, measure) in [("estimate", SimilarityMeasure::Estimate), ("exact", SimilarityMeasure::Exact)] {
        let verify = ["verify", &text(&store), "--similarity", "0.8", "--by", by];
        let ran = run_well(&[&verify[..], &["--quiet"]].concat());
        assert!(ran.stdout.contains("very similar"), "{}", ran.stdout);
        assert_verified(&week(WEEKS[0]), &pages, 1, 800, measure);
        let verified = tables(&store);
        // Tables of studies stay, as of the week before.
        assert!(!overlap.is_empty() && tables(&store.join("overlap")) == overlap);
        let shown = run_well(&["show", &text(&store), "--job", "overlap"]).stderr;
        assert!(shown.contains("were made before week 2024-01-08 was changed"), "{shown}");
        let again = run_well(&verify);
        assert!(again.stdout.contains("is verified already") && tables(&store) == verified, "{}", again.stdout);
    }
    let refused = run(&make);
    assert!(refused.code == Some(1) && refused.stderr.contains("similarity = 0.8 in the store"), "{}", refused.stderr);

    let pages = next_week(&mut random, &pages);
    write(&crawl, &pages);
    let later = folder.path().join("later.toml");
    std::fs::write(&later, "[weekly]\n").unwrap();
    let add = ["run", &text(&later), "-q", "--store", &text(&store), "--week", WEEKS[1], "--input", &text(&crawl)];
    run_well(&add);
    assert_verified(&week(WEEKS[1]), &pages, 1, 800, SimilarityMeasure::Exact);
}

/// Two families of pages of one length: more than are compared one by one. Ties are many.
fn large_families(random: &mut RandomNumbers, changed: &[u64]) -> TextsByUrl {
    let mut pages = TextsByUrl::new();
    for family in ["w", "u"] {
        for number in 0..110u64 {
            let mut words: Vec<String> = (0..150).map(|at| format!("{family}{at}")).collect();
            for _ in 0..4 {
                let at = random.below(150) as usize;
                words[at] = format!("x{}", random.below(40));
            }
            if changed.contains(&number) && family == "w" {
                words[3] = "changed".into();
            }
            pages.insert(format!("http://{family}.example/{number}"), words.join(" "));
        }
    }
    pages
}

#[test]
fn large_clusters_have_the_same_tables_whatever_the_workers_and_from_what_changed() {
    let folder = tempfile::tempdir().unwrap();
    for (name, measure) in [("exact", SimilarityMeasure::Exact), ("estimate", SimilarityMeasure::Estimate)] {
        let fields = format!("preset = \"minhash-40x2\"\nsimilarity = 0.72\nverify = \"{name}\"");
        let pages = large_families(&mut RandomNumbers(1), &[]);
        let one = made(folder.path(), &pages, &fields, &["--workers", "1"]);
        assert_verified(&one.week(), &pages, 1, 720, measure);
        for flags in [["--workers", "2"], ["--workers", "4"], ["--processes", "2"]] {
            assert!(made(folder.path(), &pages, &fields, &flags).tables() == one.tables(), "{name} {flags:?}");
        }
        let later = large_families(&mut RandomNumbers(1), &[5, 17, 60]);
        let weeks = |mode: &str| {
            let store = folder.path().join(format!("{name}-{mode}"));
            let (first, other) = (method(folder.path(), &fields), folder.path().join("later.toml"));
            std::fs::write(&other, format!("[weekly]\nmode = \"{mode}\"\n")).unwrap();
            for (job, week, pages) in [(&first, WEEKS[0], &pages), (&other, WEEKS[1], &later)] {
                let crawl = folder.path().join(format!("{week}.jsonl"));
                write(&crawl, pages);
                let text = |path: &Path| path.to_str().unwrap().to_owned();
                run_well(&[
                    "run",
                    &text(job),
                    "-q",
                    "--store",
                    &text(&store),
                    "--week",
                    week,
                    "--input",
                    &text(&crawl),
                ]);
            }
            let week = crate::program::week(&store, WEEKS[1]);
            assert_verified(&week, &later, 1, 720, measure);
            tables(&week)
        };
        assert!(weeks("full") == weeks("delta"), "{name}");
    }
}
