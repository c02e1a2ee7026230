//! What a crawler need not fetch: the list of `nigh avoid` against a twin and against the pages
//! themselves, on random webs and on cases made by hand.

mod later_week;
pub mod made;
mod twin;

use nigh::records::mix;

use self::made::{DATES, MadeCrawl, MadeStore, PrefixRow, read, recount, rows};
use self::twin::AvoidTwin;
use crate::program::{run, tables};

/// What `--purity` is by default.
const PURITY: f64 = 0.92;

fn random_numbers(seed: u64) -> impl FnMut(u64) -> u64 {
    let mut state = seed;
    move |below| {
        state = mix(state);
        state % below
    }
}

/// Originals, and what the web makes of them: whole and partial mirrors, aliases, hosts that
/// redirect, and copied directories.
fn random_web(seed: u64) -> MadeCrawl {
    let mut random = random_numbers(seed);
    let mut crawl = MadeCrawl::default();
    let mut own_text = 1_000_000;
    let mut own = |crawl: &mut MadeCrawl, url: String| {
        own_text += 1;
        crawl.page(&url, own_text);
    };
    for original in 0..4u64 {
        let host = format!("h{original}.example");
        let texts: Vec<u64> = (0..12 + random(14)).map(|page| 1000 * original + page).collect();
        let directory = ["", "docs/", "a/b/"][random(3) as usize];
        crawl.manual(&format!("http://{host}/{directory}"), texts.iter().copied());
        (0..random(5)).for_each(|page| own(&mut crawl, format!("http://{host}/own/{page}.html")));
        for copy in 0..1 + random(3) {
            let other = format!("c{copy}.h{original}.example");
            let share = if random(3) == 0 { 5 + random(6) } else { 10 };
            let copied: Vec<u64> = texts.iter().copied().filter(|text| mix(text ^ seed ^ copy) % 10 < share).collect();
            match random(5) {
                // A mirror under the same paths, with pages of its own or without.
                0 | 1 => {
                    crawl.manual(&format!("http://{other}/{directory}"), copied);
                    (0..random(3)).for_each(|page| own(&mut crawl, format!("http://{other}/own/{page}.html")));
                }
                // Another name of the host.
                2 => {
                    crawl.machines.push(vec![host.clone(), other.clone()]);
                    crawl.manual(&format!("http://{other}/{directory}"), copied);
                }
                // A host that redirects, some of it to nowhere or over others.
                3 => {
                    let target = |text: u64| format!("http://{host}/{directory}{text}.html");
                    for text in &copied {
                        let url = format!("http://{other}/{directory}{text}.html");
                        let step = format!("http://step.{other}/{text}");
                        match random(8) {
                            0 => {
                                crawl.redirect(&url, &step);
                                crawl.redirect(&step, &target(*text));
                            }
                            1 if seed.is_multiple_of(3) => crawl.redirect(&url, &url),
                            2 if seed.is_multiple_of(3) => crawl.redirect(&url, "http://elsewhere.example/"),
                            _ => crawl.redirect(&url, &target(*text)),
                        }
                    }
                    (0..random(3)).for_each(|page| own(&mut crawl, format!("http://{other}/own/{page}.html")));
                }
                // A directory of another original, or of the same host.
                _ => {
                    let into = if random(2) == 0 { (original + 1) % 4 } else { original };
                    crawl.manual(&format!("http://h{into}.example/mirror/of{original}c{copy}/"), copied);
                }
            }
        }
    }
    // Links to pages of other hosts, and to URLs that no crawl has.
    let urls: Vec<String> = crawl.pages.iter().map(|page| page.url.clone()).collect();
    for page in 0..crawl.pages.len() {
        if random(3) == 0 {
            let target = urls[random(urls.len() as u64) as usize].clone();
            crawl.pages[page].links.push(target);
        }
        if random(12) == 0 {
            let beside = format!("nothing{}.html", random(9));
            let host = made::host_of(&urls[page]);
            let link = match random(2) {
                0 => format!("http://{host}/unseen/{beside}"),
                _ => format!("{}{beside}", made::directories(&urls[page]).last().unwrap()),
            };
            crawl.pages[page].links.push(link);
        }
    }
    crawl.tidy();
    crawl
}

fn without_samples(list: &serde_json::Value) -> Vec<PrefixRow> {
    rows(list).into_iter().map(|row| PrefixRow { sample: Vec::new(), ..row }).collect()
}

#[test]
fn the_list_of_random_webs_is_that_of_brute_force() {
    let mut found = std::collections::BTreeMap::<String, usize>::new();
    let mut skipped = 0;
    for seed in 1..9 {
        let crawl = random_web(seed);
        let store = MadeStore::new(&[&crawl]);
        // Not all stores have all studies.
        for (number, study) in ["collections", "mirrors", "mirrors-by-url", "overlap"].into_iter().enumerate() {
            if seed % 5 != number as u64 {
                let fields = if study == "mirrors-by-url" { "least-urls = 10\n" } else { "" };
                store.study(study, fields, &[]);
            }
        }
        for (purity, least) in [(PURITY, 10), (1.0, 3), (0.6, 5)] {
            let flags = [format!("--purity={purity}"), format!("--least={least}")];
            let list = store.avoid(&flags.each_ref().map(String::as_str));
            recount(&crawl, &list, purity);
            let twin = AvoidTwin::read(&store.path(), &DATES[..1], purity, least);
            assert_eq!(without_samples(&list), twin.rows(), "seed {seed}, purity {purity}, least {least}");
            skipped += list["skipped"].as_u64().unwrap();
            rows(&list).iter().flat_map(|row| &row.why).for_each(|why| *found.entry(why.clone()).or_default() += 1);
        }
    }
    assert!(found.len() == 6 && found.values().all(|rows| *rows > 3) && skipped > 1000, "{found:?} {skipped}");
}

#[test]
fn a_later_week_is_judged_by_its_own_pages() {
    for seed in [21, 22] {
        let first = random_web(seed);
        let mut second = first.clone();
        // Some pages change, some are gone, and others are new.
        let mut number = 0;
        second.pages.retain_mut(|page| {
            number += 1;
            if mix(seed ^ number).is_multiple_of(9) {
                page.text = 2_000_000 + number;
            }
            !mix(seed ^ number).is_multiple_of(11)
        });
        second.page("http://h0.example/new/1.html", 3_000_000);
        let store = MadeStore::new(&[&first]);
        store.studies();
        store.add(DATES[1], &second);
        // The studies of the week before: nothing of their pages is believed.
        let list = store.avoid(&[]);
        let state = |study: usize| list["studies"][study]["state"].as_str().unwrap().to_owned();
        assert_eq!([0, 1, 2, 3].map(state), ["older", "older", "older", "too-old"]);
        assert_eq!(list["studies"][0]["of"], DATES[0]);
        let text = store.text();
        for (number, study) in ["collections", "mirrors", "mirrors-by-url", "overlap"].into_iter().enumerate() {
            assert_eq!(list["studies"][number]["study"], study);
            let command = list["studies"][number]["command"].as_str().unwrap();
            assert_eq!(command, format!("nigh run jobs/{study}.toml --store {text}"));
        }
        recount_of_two(&first, &second, &list);
        store.studies();
        let list = store.avoid(&[]);
        assert!((0..4).all(|study| list["studies"][study]["state"] == "read"), "{list}");
        recount_of_two(&first, &second, &list);
        let twin = AvoidTwin::read(&store.path(), &DATES[..2], PURITY, 10);
        assert_eq!(without_samples(&list), twin.rows(), "seed {seed}");
        // The first week, of which only the mirrors job keeps tables.
        let list = store.avoid(&["--week", DATES[0]]);
        let states = [0, 1, 2, 3].map(|study| list["studies"][study]["state"].as_str().unwrap());
        assert_eq!(states, ["later", "read", "later", "later"]);
        let command = list["studies"][0]["command"].as_str().unwrap();
        assert_eq!(command, format!("nigh run jobs/collections.toml --store {text} --week {}", DATES[0]));
        recount(&first, &list, PURITY);
    }
}

/// As [`recount`], for the second of two weeks: URLs of the first count as fetched, and may be in
/// the sample.
fn recount_of_two(first: &MadeCrawl, second: &MadeCrawl, list: &serde_json::Value) {
    let mut list = list.clone();
    for row in list["prefixes"].as_array_mut().unwrap() {
        let prefix = row["prefix"].as_str().unwrap().to_owned();
        let sample = row["sample"].as_array().unwrap().clone();
        let of_week = |crawl: &MadeCrawl, url: &str| crawl.pages.iter().any(|page| page.url == url);
        let is_known = |url: &str| of_week(first, url) || of_week(second, url);
        assert!(sample.iter().all(|url| is_known(url.as_str().unwrap())), "{prefix}");
        let pages = second.pages.iter().filter(|page| page.url.starts_with(&prefix)).count();
        assert!(sample.len() >= pages.min(10));
        *row.get_mut("sample").unwrap() = sample.into_iter().take(pages.min(10)).collect();
    }
    let mut crawl = second.clone();
    let gone = |link: &String| {
        first.pages.iter().any(|page| page.url == *link) && !second.pages.iter().any(|page| page.url == *link)
    };
    crawl.pages.iter_mut().for_each(|page| page.links.retain(|link| !gone(link)));
    recount(&crawl, &list, PURITY);
}

/// A host of which one copied directory was crawled, and of which links name much more.
fn overreach() -> MadeCrawl {
    let mut crawl = MadeCrawl::default();
    crawl.manual("http://docs.example/manual/", 0..21);
    crawl.manual("http://uni.example/mirror/manual/", 0..21);
    (0..5).for_each(|page| crawl.page(&format!("http://other.example/x{page}.html"), 100 + page));
    let papers = (0..60).map(|paper| format!("http://uni.example/research/paper{paper}.html"));
    // And to one page of the original.
    crawl.pages.last_mut().unwrap().links = papers.chain(["http://docs.example/manual/0.html".to_owned()]).collect();
    crawl
}

#[test]
fn a_host_is_not_listed_for_one_copied_directory() {
    let first = overreach();
    let store = MadeStore::new(&[&first]);
    store.studies();
    let prefixes = ["http://uni.example/mirror/manual/"];
    let list = store.avoid(&[]);
    recount(&first, &list, PURITY);
    assert_eq!(store.prefixes(&[]), prefixes);
    assert_eq!(rows(&list)[0].counts, [21, 0, 0, 0]);
    assert_eq!(rows(&list)[0].keep, "http://docs.example/manual/");
    // The next week has the pages that links named: they are not skipped.
    let mut second = first.clone();
    (0..60).for_each(|paper| second.page(&format!("http://uni.example/research/paper{paper}.html"), 300 + paper));
    store.add(DATES[1], &second);
    store.studies();
    let list = store.avoid(&[]);
    assert_eq!(store.prefixes(&[]), prefixes);
    assert_eq!(["skipped", "lost"].map(|name| list[name].as_u64().unwrap()), [21, 0]);
    // A crawler that keeps to the list, and then for another week.
    for date in &DATES[2..] {
        let mut kept = second.clone();
        kept.pages.retain(|page| !page.url.starts_with(prefixes[0]));
        store.add(date, &kept);
        store.studies();
        let list = store.avoid(&[]);
        let row = &rows(&list)[0];
        assert_eq!((&*row.prefix, &*row.keep), (prefixes[0], "http://docs.example/manual/"));
        assert_eq!((row.counts, &row.why), ([0, 0, 0, 0], &vec!["collection".to_owned()]));
        // The pages that the crawl was not asked for are those to fetch again.
        assert!(row.sample.len() == 10 && row.sample.iter().all(|url| url.starts_with(prefixes[0])));
        recount_of_two(&second, &kept, &list);
    }
}

#[test]
fn of_two_mirrors_that_with_less_is_avoided_whatever_they_are_called() {
    for (whole, part) in [("aaa", "zzz"), ("zzz", "aaa"), ("m", "n"), ("n", "m"), ("one", "two"), ("two", "one")] {
        let [whole, part] = [whole, part].map(|name| format!("http://{name}.example/d/"));
        let mut crawl = MadeCrawl::default();
        crawl.manual(&whole, 0..41);
        crawl.manual(&part, 0..30);
        // Links lead to the one with less.
        crawl.page("http://other.example/", 500);
        crawl.pages.last_mut().unwrap().links = (0..30).map(|page| format!("{part}{page}.html")).collect();
        let store = MadeStore::new(&[&crawl]);
        for study in ["collections", "mirrors", "mirrors-by-url", "overlap"] {
            store.study(study, if study == "mirrors-by-url" { "least-urls = 10\n" } else { "" }, &[]);
            let list = store.avoid(&[]);
            recount(&crawl, &list, PURITY);
            let rows = rows(&list);
            assert_eq!(rows.len(), 1, "{whole} {part} {study}: {rows:?}");
            assert_eq!((&rows[0].prefix, &rows[0].keep, rows[0].counts), (&part, &whole, [30, 0, 0, 0]), "{study}");
        }
    }
}

#[test]
fn of_two_hosts_with_several_copied_sets_one_is_avoided() {
    for (a, b) in [("aa0", "bb0"), ("bb1", "aa1"), ("aa2", "bb2"), ("x", "y"), ("y9", "x9")] {
        let mut crawl = MadeCrawl::default();
        for host in [a, b] {
            for (number, set) in ["p", "q", "r"].into_iter().enumerate() {
                let number = number as u64 * 100;
                crawl.manual(&format!("http://{host}.example/{set}/"), number..number + 15);
            }
        }
        for all in [false, true] {
            let store = MadeStore::new(&[&crawl]);
            store.study("collections", "", &[]);
            if all {
                store.studies();
            }
            let list = store.avoid(&[]);
            recount(&crawl, &list, PURITY);
            let rows = rows(&list);
            let hosts: Vec<&str> = rows.iter().map(|row| made::host_of(&row.prefix)).collect();
            assert_eq!(list["skipped"], 45, "{rows:?}");
            assert!(hosts.iter().all(|host| *host == hosts[0]), "{rows:?}");
            assert!(rows.iter().all(|row| made::host_of(&row.keep) != hosts[0]), "{rows:?}");
        }
    }
}

#[test]
fn chains_of_copies_lead_to_what_stays() {
    let mut crawl = MadeCrawl::default();
    // Each is a part of the one before; the last redirects to the one before it.
    crawl.manual("http://a.example/d/", 0..40);
    crawl.manual("http://b.example/d/", 0..30);
    crawl.manual("http://c.example/d/", 0..20);
    (0..20).for_each(|page| {
        crawl.redirect(&format!("http://d.example/d/{page}.html"), &format!("http://c.example/d/{page}.html"));
        crawl.redirect(&format!("http://e.example/{page}"), &format!("http://d.example/d/{page}.html"));
        // Two that redirect to each other, and one that leaves the crawl.
        crawl.redirect(&format!("http://f.example/{page}"), &format!("http://g.example/{page}"));
        crawl.redirect(&format!("http://g.example/{page}"), &format!("http://f.example/{page}"));
        crawl.redirect(&format!("http://h.example/{page}"), &format!("http://elsewhere.example/{page}"));
    });
    let store = MadeStore::new(&[&crawl]);
    store.studies();
    let list = store.avoid(&[]);
    recount(&crawl, &list, PURITY);
    let rows = rows(&list);
    let of: Vec<(&str, &str)> = rows.iter().map(|row| (&*row.prefix, &*row.keep)).collect();
    let keep = "http://a.example/d/";
    let prefixes = ["http://b.example/d/", "http://c.example/d/", "http://d.example/d/", "http://e.example/"];
    assert_eq!(of, prefixes.map(|prefix| (prefix, keep)));
    assert_eq!(
        [2, 3].map(|row| (rows[row].counts, rows[row].why.join(","))),
        [2, 3].map(|_| ([0, 20, 0, 0], "redirect".to_owned()))
    );
}

#[test]
fn a_store_without_studies_has_redirects_and_exact_copies() {
    let mut crawl = MadeCrawl::default();
    crawl.manual("https://a.example/", 0..20);
    (0..20).for_each(|page| {
        crawl.redirect(&format!("http://a.example/{page}.html"), &format!("https://a.example/{page}.html"))
    });
    // Pages without links: the same bytes on two hosts.
    (0..15).for_each(|page| {
        crawl.page(&format!("http://b.example/x/{page}"), 100 + page);
        crawl.page(&format!("http://c.example/y/{page}"), 100 + page);
    });
    let store = MadeStore::new(&[&crawl]);
    let list = store.avoid(&[]);
    recount(&crawl, &list, PURITY);
    let found = rows(&list);
    assert_eq!(found.len(), 2, "{found:?}");
    assert_eq!((&*found[0].prefix, &*found[0].keep), ("http://a.example/", "https://a.example/"));
    assert_eq!((&*found[1].why[0], found[1].counts), ("exact copies", [15, 0, 0, 0]));
    assert!(list["studies"].as_array().unwrap().iter().all(|study| study["state"] == "missing"));
    let ran = run(&["avoid", store.text()]);
    for study in ["collections", "mirrors", "mirrors-by-url", "overlap"] {
        assert!(
            ran.stdout.contains(&format!("no tables; `nigh run jobs/{study}.toml --store {}`", store.text())),
            "{}",
            ran.stdout
        );
    }
}

#[test]
fn a_crawler_that_fetches_the_sample_keeps_the_list() {
    let mut first = MadeCrawl::default();
    let copies = |crawl: &mut MadeCrawl, host: &str| {
        crawl.manual(&format!("http://{host}/a/"), 0..30);
        crawl.manual(&format!("http://{host}/b/c/"), 100..140);
    };
    copies(&mut first, "one.example");
    copies(&mut first, "two.example");
    first.page("http://one.example/", 900);
    let store = MadeStore::new(&[&first]);
    let mut samples = Vec::new();
    for date in DATES.into_iter().skip(1) {
        store.studies();
        let list = store.avoid(&["--sample", store.beside("sample.txt").to_str().unwrap()]);
        let rows = rows(&list);
        assert_eq!(rows.iter().map(|row| &*row.prefix).collect::<Vec<_>>(), ["http://two.example/"]);
        let sample = read(&store.beside("sample.txt"));
        assert_eq!(sample.lines().collect::<Vec<_>>(), rows[0].sample);
        assert_eq!(rows[0].sample.len(), 10);
        // The next week: what is not below the prefix, and the sample.
        let mut next = first.clone();
        next.pages.retain(|page| !page.url.starts_with(&rows[0].prefix) || rows[0].sample.contains(&page.url));
        store.add(date, &next);
        samples.push(sample);
    }
    samples.sort();
    samples.dedup();
    assert_eq!(samples.len(), 3, "each week has another sample");
}

#[test]
fn the_files_and_the_flags_of_avoid() {
    let crawl = overreach();
    let store = MadeStore::new(&[&crawl]);
    store.study("collections", "", &["--workers", "2"]);
    let before = tables(&store.path().join("collections"));
    let out = store.beside("avoid.txt");
    let ran = run(&["avoid", store.text(), "--out", out.to_str().unwrap()]);
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    assert!(
        ran.stdout.starts_with(&format!(
            "Avoid list of week {}: 1 prefix\n21 of 47 pages skipped (44.7%), 0 of these lost",
            DATES[0]
        )),
        "{}",
        ran.stdout
    );
    let text = read(&out);
    let prefixes: Vec<&str> = text.lines().filter(|line| !line.starts_with('#')).collect();
    assert_eq!(prefixes, ["http://uni.example/mirror/manual/"]);
    assert!(text.starts_with("# Avoid list of ") && text.contains("begins with one of them"), "{text}");
    assert_eq!(before, tables(&store.path().join("collections")), "nothing is written into the store");
    let folder = store.beside("");
    for (flags, code, wanted) in [
        (&["--purity", "0"][..], 2, "--purity 0: allowed is more than 0, up to 1"),
        (&["--purity", "NaN"], 2, "allowed is more than 0"),
        (&["--least", "0"], 2, "--least 0"),
        (&["--week", "2023-01-01"], 1, "has no week 2023-01-01"),
        (&["--out", folder.to_str().unwrap()], 1, "it is a folder"),
    ] {
        let ran = run(&[&["avoid", store.text()], flags].concat());
        assert!(ran.code == Some(code) && ran.stderr.contains(wanted), "{flags:?}: {:?} {}", ran.code, ran.stderr);
    }
    let ran = run(&["avoid", folder.to_str().unwrap()]);
    assert!(ran.code == Some(1) && ran.stderr.contains("is not a nigh store"), "{}", ran.stderr);
}

#[test]
fn documents_without_urls_have_no_prefixes() {
    let folder = tempfile::tempdir().unwrap();
    let [input, store] = ["a.jsonl", "store"].map(|name| folder.path().join(name));
    std::fs::write(&input, "{\"id\": \"1\", \"text\": \"one two three four five six\"}\n").unwrap();
    let [input, store] = [&input, &store].map(|path| path.to_str().unwrap());
    let job = crate::program::job(
        folder.path(),
        "[cluster]\n[cluster.read.columns]\nid = \"id\"\ntext = \"text\"\n[cluster.method]\ndocuments = \"id\"\n",
    );
    let ran = run(&["run", job.to_str().unwrap(), "-q", "--week", DATES[0], "--input", input, "--store", store]);
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    let ran = run(&["avoid", store]);
    assert!(ran.code == Some(1) && ran.stderr.contains("not by URLs"), "{}", ran.stderr);
}
