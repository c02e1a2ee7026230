//! Mirrors by content against a twin that goes over pairs of hosts one by one, and against the
//! truth of a made web.

mod tables;
mod twin;

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::time::Instant;

use self::tables::{assert_right, rows_of};
use self::twin::{MirrorsParameters, found};
use crate::program::{corpus, job, kill_at_moments, run, run_well, tables};
use crate::studies::evolution::WrittenStore;
use crate::web::truth::AliasKind;
use crate::web::{WEEKS, Web, WebStore, twins};

#[test]
fn pairs_are_those_of_brute_force_whatever_the_workers_and_processes() {
    let web = Web::small();
    let made = WebStore::new(web, WEEKS.len(), true);
    let store = made.path();
    let mut classes = BTreeSet::new();
    for parameters in [
        MirrorsParameters::least(10),
        MirrorsParameters::least(3),
        MirrorsParameters { root: true, ..MirrorsParameters::least(10) },
        MirrorsParameters { study: true, ..MirrorsParameters::least(4) },
        MirrorsParameters { keep_unresolved: true, smaller: true, ..MirrorsParameters::least(5) },
    ] {
        let one = parameters.run(&store, &["--workers", "1"]);
        let found = assert_right(&store, &parameters);
        classes.extend(found.into_values().flat_map(BTreeMap::into_values).map(|row| row.class));
        for (workers, processes) in [("2", "1"), ("4", "1"), ("1", "2")] {
            let other = parameters.run(&store, &["--workers", workers, "--processes", processes]);
            assert!(one == other, "{workers} workers in {processes} processes");
        }
    }
    let wanted = ["alias", "auto", "kept", "redirect", "unresolved"].map(str::to_owned);
    assert_eq!(classes, BTreeSet::from(wanted), "the web has pairs of all classes but farms");
}

#[test]
fn pairs_of_random_stores_are_those_of_brute_force() {
    // Of one, two and three weeks.
    for seed in 0..3 {
        let made = WrittenStore::new(100 + seed, 1 + seed as usize);
        let store = made.path();
        // Some of the 20 hosts have one or two of a few addresses.
        let mut addresses: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
        for host in 0..20u64 {
            let draw = nigh::records::mix(seed * 100 + host);
            for part in 0..draw % 3 {
                let address = format!("10.0.0.{}", (draw >> (8 + 8 * part)) % 9);
                addresses.entry(format!("h{host}.example")).or_default().insert(address);
            }
        }
        for (least, root, study) in [(1, false, false), (3, false, false), (3, true, false), (3, false, true)] {
            for addresses in [None, Some(addresses.clone())] {
                let parameters = MirrorsParameters { root, study, addresses, ..MirrorsParameters::least(least) };
                let one = parameters.run(&store, &["--workers", "1"]);
                assert_right(&store, &parameters);
                assert!(one == parameters.run(&store, &["--workers", "3"]));
            }
        }
    }
}

#[test]
fn farms_are_listed_by_their_first_host_and_counted_as_a_whole() {
    let web = Web::small();
    let made = WebStore::new(web, 1, false);
    let store = made.path();
    let all = MirrorsParameters { keep_unresolved: true, ..MirrorsParameters::least(10) };
    all.run(&store, &[]);
    let exact = &found(&store)[WEEKS[0]];
    let parameters = MirrorsParameters { farm: Some(3), ..all };
    let one = parameters.run(&store, &["--workers", "1"]);
    assert!(one == parameters.run(&store, &["--workers", "3"]));
    let listed = &found(&store)[WEEKS[0]];
    assert!(listed.len() < exact.len());
    let farms: BTreeSet<&str> = listed.iter().filter(|(_, row)| row.class == "farm").map(|((a, _), _)| &**a).collect();
    assert!(!farms.is_empty());
    for (hosts, row) in listed {
        let exact = &exact[hosts];
        assert_eq!(row.numbers, exact.numbers, "{hosts:?}");
        assert!(row.class == exact.class || row.class == "farm", "{hosts:?} {row:?}");
    }
    let count = |class: &str| {
        let rows = rows_of(&store, "classes", &["class", "pairs"]);
        rows.iter().find(|row| row[0] == class).unwrap()[1].parse::<usize>().unwrap()
    };
    assert_eq!(count("raw"), exact.values().filter(|row| row.class != "redirect").count(), "none is lost");
    assert_eq!(count("farm"), exact.len() - listed.len() + listed.values().filter(|row| row.class == "farm").count());
}

/// Issue 22's bars for the made web of the research.
#[test]
fn mirrors_of_a_made_web_are_found() {
    let web = Web::of_research();
    let made = WebStore::new(web, 1, true);
    let store = made.path();
    // Every pair by exact resemblance, aliases included.
    let expected = twins::host_pairs(&web.week(0).pages, twins::similar_pages_of_research(), 10);
    let expected: BTreeSet<(String, String)> = expected.into_iter().map(|pair| (pair.a, pair.b)).collect();
    let pairs = || -> BTreeSet<(String, String)> {
        let rows = found(&store).remove(WEEKS[0]).unwrap().into_iter();
        let pairs = rows.filter(|(_, row)| !["auto", "redirect"].contains(&&*row.class));
        pairs.map(|((a, b), _)| if a < b { (a, b) } else { (b, a) }).collect()
    };
    MirrorsParameters::least(10).run(&store, &[]);
    let all = pairs();
    let right = all.intersection(&expected).count();
    eprintln!("all: {} of {} pairs, {} found", right, expected.len(), all.len());
    assert_eq!(right, all.len(), "precision 1.0");
    assert!(right as f64 >= 0.97 * expected.len() as f64, "recall");
    let rows = found(&store).remove(WEEKS[0]).unwrap();
    let row = |a: &str, b: &str| rows.get(&(a.to_owned(), b.to_owned())).or(rows.get(&(b.to_owned(), a.to_owned())));
    // One host of several with the same address is kept in a cluster: the source of a mirror, or
    // another name of the source.
    let names = |host: &str| -> Vec<String> {
        let others = web.truth.aliases.iter().filter(|alias| alias.of == host).map(|alias| alias.host.clone());
        others.chain([host.to_owned()]).collect()
    };
    for mirror in web.truth.mirrors.iter().filter(|mirror| mirror.copying.weeks.contains(&0)) {
        let direct = row(&mirror.host, &mirror.of).unwrap_or_else(|| panic!("{mirror:?}"));
        assert_eq!(direct.www, mirror.www);
        if [&mirror.host, &mirror.of].iter().any(|host| web.truth.unresolved.contains(*host)) {
            assert_eq!(direct.class, "unresolved", "{mirror:?}");
            continue;
        }
        let is_kept = |of: &String| row(&mirror.host, of).is_some_and(|row| row.mirror && row.class == "kept");
        assert!(names(&mirror.of).iter().any(is_kept), "{mirror:?}");
    }
    for alias in &web.truth.aliases {
        let row = row(&alias.host, &alias.of).unwrap_or_else(|| panic!("{alias:?}"));
        let classes: &[&str] = if alias.kind == AliasKind::Redirect { &["alias", "redirect"] } else { &["alias"] };
        assert!(classes.contains(&&*row.class), "{alias:?} {row:?}");
    }
    MirrorsParameters { root: true, ..MirrorsParameters::least(10) }.run(&store, &[]);
    let root = pairs();
    let right = root.intersection(&expected).count();
    eprintln!("root: {} of {} pairs, {} found", right, expected.len(), root.len());
    assert_eq!(right, root.len());
}

#[test]
fn mirrors_of_the_corpus_are_found() {
    let Some(crawl) = corpus("week-01/warc", "mirrors of the corpus") else { return };
    let Some(truth) = corpus("truth/mirrors.tsv", "mirrors of the corpus") else { return };
    let folder = tempfile::tempdir().unwrap();
    let store = folder.path().join("store");
    let (store_text, crawl) = (store.to_str().unwrap(), crawl.to_str().unwrap());
    run_well(&["run", "jobs/example.toml", "-q", "--store", store_text, "--week", WEEKS[0], "--input", crawl]);
    MirrorsParameters::least(10).run(&store, &[]);
    let rows = found(&store).remove(WEEKS[0]).unwrap();
    assert_eq!(rows.values().filter(|row| row.class == "auto").count(), 3);
    let row = |a: &str, b: &str| rows.get(&(a.to_owned(), b.to_owned())).or(rows.get(&(b.to_owned(), a.to_owned())));
    let (mut mirrors, mut aliases) = (Vec::new(), Vec::new());
    for line in std::fs::read_to_string(truth).unwrap().lines().skip(1) {
        let columns: Vec<&str> = line.split('\t').collect();
        let [host_a, _, host_b, _, kind, ..] = columns[..] else { panic!("{line}") };
        let class = row(host_a, host_b).map(|row| row.class.clone());
        match kind {
            _ if kind.starts_with("alias") => aliases.push((host_b.to_owned(), class)),
            // Collections are directories of one host, redirecting hosts have no pages, and one
            // mirror comes later.
            _ if ["replicated", "redirecting", "appears"].iter().any(|other| kind.starts_with(other)) => {}
            _ => mirrors.push((host_b.to_owned(), class)),
        }
    }
    eprintln!("{mirrors:?}\n{aliases:?}");
    assert_eq!(mirrors.len(), 8);
    // That in another encoding, with a banner, shares fewer than ten similar pages.
    assert_eq!(mirrors.iter().filter(|(_, class)| class.as_deref() == Some("kept")).count(), 7);
    for alias in
        ["www.httpd.apache.example", "debian-faq.example", "www.rust-book.example", "x86-64.guide.debian.example"]
    {
        let found = aliases.iter().any(|(host, class)| host == alias && class.as_deref() == Some("alias"));
        assert!(found, "{alias}");
    }
}

#[test]
fn small_stores_and_wrong_jobs_are_told() {
    let folder = tempfile::tempdir().unwrap();
    let input = folder.path().join("pages.jsonl");
    let store = folder.path().join("store");
    let store_text = store.to_str().unwrap();
    std::fs::write(&input, "{\"url\": \"http://a.example/\", \"text\": \"one page on one host is no mirror\"}\n")
        .unwrap();
    let make = |week: &str, kind: &str, input: &Path| {
        let job = format!("jobs/{kind}.toml");
        let flags = ["-q", "--allow-empty", "--week", week, "--input", input.to_str().unwrap(), "--store", store_text];
        run_well(&[&["run", &job][..], &flags].concat());
    };
    make(WEEKS[0], "cluster", &input);
    let ran = run_well(&["run", "jobs/mirrors.toml", "--store", store_text]);
    assert!(
        ran.stdout.contains("0 pairs of mirrors") && ran.stdout.contains("No host has an IP address"),
        "{}",
        ran.stdout
    );
    let empty = folder.path().join("empty.jsonl");
    std::fs::write(&empty, "").unwrap();
    make(WEEKS[1], "weekly", &empty);
    run_well(&["run", "jobs/mirrors.toml", "-q", "--store", store_text]);
    assert_right(&store, &MirrorsParameters::least(10));
    let shown = run_well(&["show", store_text, "--job", "mirrors", "--json"]);
    let shown: serde_json::Value = serde_json::from_str(&shown.stdout).unwrap();
    assert_eq!((&shown["published"]["raw"], &shown["mirrors"][1]["documents"]), (&231_709.into(), &0.into()));
    let ran = run(&["show", store_text, "--job", "evolution"]);
    assert!(ran.code == Some(1) && ran.stderr.contains("nigh run jobs/evolution.toml"), "{}", ran.stderr);
    assert_eq!(run(&["show", store_text, "--job", "mirorrs"]).code, Some(2));
    for (text, wanted) in [
        ("[mirrors]\nleast-pages = 0\n", "least-pages"),
        ("[mirrors]\npairs = \"some\"\n", "`all`, `root`, `study`"),
        ("[mirrors]\nleast = 3\n", "unknown field `least`"),
    ] {
        let job = job(folder.path(), text);
        let ran = run(&["run", job.to_str().unwrap(), "--store", store_text]);
        assert!(ran.code == Some(2) && ran.stderr.contains(wanted), "{:?} {}", ran.code, ran.stderr);
    }
}

#[test]
fn too_many_pairs_are_refused_and_the_former_tables_stay() {
    let made = WebStore::new(Web::small(), 1, false);
    let store = made.path();
    let before = MirrorsParameters::least(10).run(&store, &[]);
    for (pairs, advice) in [("all", "or lower `farm`"), ("study", "to count as the study does")] {
        let text = format!("[mirrors]\nleast-pages = 2\nmax-pairs = 3\npairs = \"{pairs}\"\n");
        let job = job(made.folder.path(), &text);
        let ran = run(&["run", job.to_str().unwrap(), "-q", "--store", store.to_str().unwrap()]);
        assert_eq!(ran.code, Some(1));
        assert!(ran.stderr.contains("max-pairs = 3") && ran.stderr.contains(WEEKS[0]), "{}", ran.stderr);
        assert!(ran.stderr.contains(advice), "{}", ran.stderr);
    }
    assert!(tables(&store.join("mirrors")) == before);
}

#[test]
fn a_run_killed_at_any_moment_leaves_the_former_tables_or_the_new_ones() {
    let made = WebStore::new(Web::small(), 2, false);
    let store = made.path();
    let begun = Instant::now();
    let new = MirrorsParameters::least(3).run(&store, &["--workers", "2"]);
    let whole = begun.elapsed();
    let before = MirrorsParameters::least(10).run(&store, &[]);
    assert!(before != new);
    let job = job(made.folder.path(), "[mirrors]\nleast-pages = 3\n");
    let arguments = ["run", job.to_str().unwrap(), "-q", "--workers", "2", "--store", store.to_str().unwrap()];
    kill_at_moments(&arguments, whole, 10, |round| {
        assert!([&before, &new].contains(&&tables(&store.join("mirrors"))), "round {round}");
    });
    assert!(MirrorsParameters::least(10).run(&store, &[]) == before);
}

/// What is said of deleted pages and of removed weeks goes with them.
#[test]
fn deletions_and_vacuums_remove_the_tables() {
    let web = Web::small();
    let made = WebStore::new(web, 2, false);
    let (store, parameters) = (made.path(), MirrorsParameters::least(10));
    let store_text = store.to_str().unwrap();
    parameters.run(&store, &[]);
    run_well(&["run", "jobs/evolution.toml", "-q", "--store", store_text]);
    let host = &web.truth.mirrors[0].host;
    let dry = run_well(&["delete", "--store", store_text, "--host", host, "--dry-run"]);
    assert!(
        dry.stdout.contains("Would remove the tables of mirrors") && store.join("mirrors").exists(),
        "{}",
        dry.stdout
    );
    let ran = run_well(&["delete", "--store", store_text, "--host", host]);
    assert!(ran.stdout.contains("Removed the tables of mirrors"), "{}", ran.stdout);
    assert!(!store.join("mirrors").exists() && !store.join("_nigh/mirrors").exists());
    assert!(store.join("evolution").exists(), "it names no page");
    parameters.run(&store, &[]);
    let rows = found(&store).remove(WEEKS[1]).unwrap();
    assert!(rows.keys().all(|(a, b)| a != host && b != host));
    let ran = run_well(&["vacuum", "--store", store_text, "--keep", "1"]);
    assert!(ran.stdout.contains("mirrors (made of removed weeks; run its job again)"), "{}", ran.stdout);
    assert!(!store.join("mirrors").exists() && store.join("evolution").exists());
    parameters.run(&store, &[]);
    assert_right(&store, &parameters);
    // Tables of weeks that all stay, stay.
    run_well(&["vacuum", "--store", store_text, "--keep", "1"]);
    assert!(store.join("mirrors").exists());
}
