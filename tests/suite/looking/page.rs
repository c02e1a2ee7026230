//! The page that `nigh report` writes: what it has, that nothing of others acts in it, and that a
//! browser shows all of it.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::path::Path;

use html5gum::{Token, Tokenizer};
use serde_json::{Value, json};

use crate::browser::{Browser, complaints};
use crate::looking::figures::check_screens;
use crate::program::{Made, data, job, longs, run, run_well, texts, week};

/// A page stays below this size, whatever the store.
const LARGEST: usize = 3_000_000;

/// A store of the three shipped weeks, with a study; and the page of its last week.
pub fn three_weeks() -> (Made, std::path::PathBuf) {
    let made = Made::new(&[]);
    let store = made.store();
    let store = store.to_str().unwrap();
    for week in ["2024-01-15", "2024-01-22"] {
        let input = data(&format!("week-{week}/*.warc.gz"));
        run_well(&[
            "run",
            "jobs/example.toml",
            "--quiet",
            "--store",
            store,
            "--week",
            week,
            "--input",
            input.to_str().unwrap(),
        ]);
    }
    run_well(&["run", "jobs/evolution.toml", "--quiet", "--store", store]);
    let page = made.store().with_file_name("report.html");
    run_well(&["report", store, "--out", page.to_str().unwrap()]);
    (made, page)
}

/// The tags of a page and how often each begins; no tag may have an attribute that acts.
fn tags(html: &str) -> BTreeMap<String, usize> {
    let mut tags = BTreeMap::new();
    for token in Tokenizer::new(html) {
        let Ok(Token::StartTag(tag)) = token else { continue };
        let name = String::from_utf8(tag.name.0.clone()).unwrap();
        for (attribute, value) in &tag.attributes {
            let attribute = String::from_utf8(attribute.0.clone()).unwrap();
            let value = String::from_utf8(value.value.0.clone()).unwrap();
            assert!(!attribute.starts_with("on") && attribute != "style" && attribute != "src", "{name} {attribute}");
            if attribute == "href" {
                assert!(["#", "http://", "https://"].iter().any(|start| value.starts_with(start)), "{value}");
            }
        }
        *tags.entry(name).or_default() += 1;
    }
    tags
}

/// The elements that the program itself writes.
const WRITTEN: [&str; 50] = [
    "a",
    "article",
    "body",
    "br",
    "circle",
    "code",
    "dd",
    "div",
    "dl",
    "dt",
    "figcaption",
    "figure",
    "g",
    "footer",
    "h1",
    "h2",
    "h3",
    "head",
    "header",
    "html",
    "input",
    "label",
    "li",
    "line",
    "main",
    "mark",
    "meta",
    "nav",
    "ol",
    "p",
    "path",
    "polyline",
    "polygon",
    "rect",
    "script",
    "section",
    "small",
    "span",
    "strong",
    "style",
    "svg",
    "table",
    "tbody",
    "td",
    "text",
    "th",
    "thead",
    "title",
    "tr",
    "ul",
];

#[test]
fn a_report_has_the_totals_of_the_summary_and_every_section() {
    let (made, page) = three_weeks();
    let store = made.store();
    let html = std::fs::read_to_string(&page).unwrap();
    assert!(html.len() < LARGEST);
    let summary: Value = serde_json::from_str(&run_well(&["show", store.to_str().unwrap(), "--json"]).stdout).unwrap();
    for level in summary["levels"].as_array().unwrap() {
        for count in ["clusters", "clustered", "duplicates"] {
            let totals = section(&html, "totals");
            assert!(totals.contains(&format!("data-value=\"{}\"", level[count])), "{count} of {level}");
        }
    }
    for section in
        ["totals", "sizes", "accuracy", "similar", "identical", "exact", "clusters", "weeks", "evolution", "records"]
    {
        assert!(html.contains(&format!("<section id=\"{section}\">")), "{section}");
    }
    let tags = tags(&html);
    assert_eq!((tags["script"], tags["style"]), (1, 1));
    for tag in tags.keys() {
        assert!(WRITTEN.contains(&tag.as_str()), "{tag}");
    }
    // Sizes, accuracy, weeks, and the seven figures of evolution: each for a wide screen and for a
    // phone.
    assert_eq!(tags["svg"], 2 * (3 + 7));
    // The weeks are those of their summaries.
    let weeks = self::section(&html, "weeks");
    for week in ["2024-01-08", "2024-01-15", "2024-01-22"] {
        let of_week = run_well(&["show", store.to_str().unwrap(), "--week", week, "--json"]).stdout;
        let of_week: Value = serde_json::from_str(&of_week).unwrap();
        let row = weeks.split("<tr>").find(|row| row.contains(&format!("<td>{week}</td>"))).unwrap();
        let since = &of_week["since"];
        let events = ["birth", "death", "grow", "shrink", "merge", "split"];
        let events = events.map(|event| since["changes"][event][0].as_u64().unwrap_or(0));
        let mut expected = vec![of_week["counts"]["documents"].as_u64(), of_week["levels"][0]["duplicates"].as_u64()];
        if !since.is_null() {
            expected.extend([since["new_urls"].as_u64(), since["not_downloaded"].as_u64()]);
            expected.extend(events.map(Some));
        }
        let values = |row: &str| -> Vec<Option<u64>> {
            let cells = row.split("data-value=\"").skip(1);
            cells.map(|cell| cell.split('"').next().unwrap().parse().ok()).filter(Option::is_some).collect()
        };
        let found: Vec<Option<u64>> = values(row);
        assert_eq!(found, expected, "{row}");
    }
    // The largest clusters are those that `show` lists.
    let listed = run_well(&["show", store.to_str().unwrap(), "--level", "similar", "--top", "100", "--json"]).stdout;
    let listed: Value = serde_json::from_str(&listed).unwrap();
    let section = self::section(&html, "similar");
    assert_eq!(section.matches("<tr>").count(), listed.as_array().unwrap().len() + 1);
    for cluster in listed.as_array().unwrap() {
        assert!(section.contains(&format!("data-value=\"{}\">{0}</td>", cluster["cluster_id"])), "{cluster}");
    }
    // A week in the middle has its own page, and knows nothing of later ones.
    let middle = page.with_file_name("middle.html");
    run_well(&["report", store.to_str().unwrap(), "--week", "2024-01-15", "--out", middle.to_str().unwrap()]);
    let middle = std::fs::read_to_string(middle).unwrap();
    let weeks = self::section(&middle, "weeks");
    assert!(weeks.contains("2024-01-08") && weeks.contains("2024-01-15"));
    assert!(!middle.contains("2024-01-22"), "also the study of later weeks is left out");
}

/// A section of a page.
fn section<'a>(html: &'a str, id: &str) -> &'a str {
    let from = html.find(&format!("<section id=\"{id}\">")).unwrap_or_else(|| panic!("no section {id}"));
    let until = html[from..].find("</section>").unwrap();
    &html[from..from + until]
}

#[test]
fn a_report_shows_the_words_that_pages_do_not_share() {
    let (made, page) = three_weeks();
    let html = std::fs::read_to_string(&page).unwrap();
    let words = section(&html, "clusters");
    assert!(words.matches("<article").count() >= 5, "{words}");
    assert!(words.contains("<mark>"), "{words}");
    assert!(words.contains("One of the largest clusters."));
    // Without the crawl files the sketches are left.
    let missing = made.store().with_file_name("none.html");
    let empty = tempfile::tempdir().unwrap();
    let moved = empty.path().join("store");
    std::fs::rename(made.store(), &moved).unwrap();
    let input = empty.path().join("other.jsonl");
    std::fs::write(&input, "").unwrap();
    let (store, out) = (moved.to_str().unwrap(), missing.to_str().unwrap());
    run_well(&["report", store, "--out", out, "--input", input.to_str().unwrap()]);
    let html = std::fs::read_to_string(missing).unwrap();
    assert!(!section(&html, "clusters").contains("<mark>"));
    assert!(section(&html, "clusters").contains("by their sketches"));
}

/// Texts that would act if they were markup, or mislead.
pub const HOSTILE: [&str; 8] = [
    "</script><script>window.harmed = 1</script>",
    "\"><img src=x onerror=\"window.harmed = 1\">",
    "' onmouseover='window.harmed = 1",
    "<style>body { display: none }</style>",
    "<!-- ]]> <svg onload=window.harmed=1>",
    "\u{202e}lmth.gnihton\u{2066}\u{feff}",
    "&lt;script&gt;window.harmed = 1&lt;/script&gt;",
    "</textarea></title><base href=http://evil.example/><meta http-equiv=refresh content=0>",
];

/// A store of records whose ids, titles and words are hostile and long, and its page. Its clusters
/// are copies: every level has all of them.
pub fn hostile(folder: &Path) -> std::path::PathBuf {
    let mut lines = String::new();
    for cluster in 0..120 {
        let kind = cluster % 10;
        let title = match kind {
            8 => format!("{}\u{301}", "\u{301}".repeat(20_000)),
            9 => "<b>".repeat(34_000),
            kind => HOSTILE[kind].to_owned(),
        };
        let escaped = title.replace('&', "&amp;").replace('<', "&lt;");
        let words: String = (0..60).fold(String::new(), |mut words, word| {
            let _ = write!(words, "w{cluster}x{word} ");
            words
        });
        for page in 0..4 {
            // Two are copies of each other, two have other words.
            let own = match page {
                0 | 1 => HOSTILE[cluster % 8].to_owned(),
                _ => "z".repeat(100_000 * page),
            };
            let own = format!("{} {own}", words.repeat(8)).replace('&', "&amp;").replace('<', "&lt;");
            let html = format!("<html><head><title>{escaped}</title></head><body>{own}</body></html>");
            let id = match kind {
                7 => format!("{}{cluster}-{page}", "<i>".repeat(34_000)),
                8 => format!("http://one.example/{cluster}-{page}/{}", "\"'&".repeat(600)),
                9 => format!("http://one.example/{cluster}-{page}/{}", HOSTILE[cluster % 8].replace(' ', "+")),
                kind => format!("{}{cluster}-{page}", HOSTILE[kind]),
            };
            lines.push_str(&format!("{}\n", json!({"id": id, "html": html})));
        }
    }
    let input = folder.join("<img src=x onerror=window.harmed=1>.jsonl");
    std::fs::write(&input, lines).unwrap();
    let job = job(
        folder,
        "[cluster]\nstore = \"none\"\nweek = \"2024-01-08\"\ninput = []\n[cluster.read.columns]\nid = \"id\"\nhtml = \"html\"\n",
    );
    let store = folder.join("<script>window.harmed=1<'script'>");
    let (job, store, input) = (job.to_str().unwrap(), store.to_str().unwrap(), input.to_str().unwrap());
    run_well(&["run", job, "--quiet", "--store", store, "--input", input]);
    let page = folder.join("report.html");
    run_well(&["report", store, "--out", page.to_str().unwrap()]);
    page
}

#[test]
fn hostile_titles_and_names_are_text_and_the_page_stays_small() {
    let folder = tempfile::tempdir().unwrap();
    let page = hostile(folder.path());
    let html = std::fs::read_to_string(page).unwrap();
    assert!(html.len() < LARGEST, "{}", html.len());
    let tags = tags(&html);
    for tag in tags.keys() {
        assert!(WRITTEN.contains(&tag.as_str()), "{tag}");
    }
    assert_eq!((tags["script"], tags["style"], tags["title"]), (1, 1, 1));
    for level in ["similar", "identical", "exact"] {
        assert_eq!(section(&html, level).matches("<tr>").count(), 101, "the clusters are there");
    }
    assert!(html.contains("&lt;/script&gt;&lt;script&gt;window.harmed"), "and so are their names");
    for c in ['\u{202e}', '\u{2066}', '\u{feff}'] {
        assert!(!html.contains(c), "{c:?}");
    }
    // So is the page of figures, which lists the titles of the largest clusters.
    let store = folder.path().join("<script>window.harmed=1<'script'>");
    let figures = folder.path().join("figures");
    run_well(&["figures", store.to_str().unwrap(), "--out", figures.to_str().unwrap()]);
    let html = std::fs::read_to_string(figures.join("index.html")).unwrap();
    assert!(html.contains("&lt;/script&gt;&lt;script&gt;window.harmed") && html.len() < LARGEST);
    assert_eq!((html.matches("<script").count(), html.matches("<style").count()), (1, 1));
    for markup in ["<img", "<base", "<svg onload", "<i>", "<b>"] {
        assert!(!html.contains(markup), "{markup}");
    }
}

#[test]
fn a_report_is_written_whole_or_not_at_all() {
    let made = Made::new(&[]);
    let store = made.store();
    let store = store.to_str().unwrap();
    let folder = tempfile::tempdir().unwrap();
    let nowhere = folder.path().join("missing/report.html");
    let failed = run(&["report", store, "--out", nowhere.to_str().unwrap()]);
    assert_eq!(failed.code, Some(1));
    assert!(failed.stderr.contains(nowhere.to_str().unwrap()), "{}", failed.stderr);
    // A folder is not replaced, and neither is a device.
    let inner = folder.path().join("inner");
    std::fs::create_dir(&inner).unwrap();
    let failed = run(&["report", store, "--out", inner.to_str().unwrap()]);
    assert_eq!(failed.code, Some(1));
    assert!(failed.stderr.contains("it is a folder"), "{}", failed.stderr);
    run_well(&["report", store, "--out", "/dev/null"]);
    assert!(!std::fs::metadata("/dev/null").unwrap().is_file());
    // A name that is too long for a file that is unfinished.
    let long = folder.path().join("a".repeat(250));
    let failed = run(&["report", store, "--out", long.to_str().unwrap()]);
    assert_eq!(failed.code, Some(1));
    let left: Vec<_> = std::fs::read_dir(folder.path()).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    assert_eq!(left, ["inner"], "nothing is left behind");
    std::fs::remove_dir(&inner).unwrap();
    // A link stays one.
    let (link, target) = (folder.path().join("link.html"), folder.path().join("target.html"));
    std::fs::write(&target, "old").unwrap();
    std::os::unix::fs::symlink(&target, &link).unwrap();
    run_well(&["report", store, "--out", link.to_str().unwrap()]);
    assert!(link.is_symlink() && std::fs::read(&target).unwrap().starts_with(b"<!doctype html>"));
    std::fs::remove_file(&link).unwrap();
    std::fs::remove_file(&target).unwrap();
    // An earlier page is replaced, and the same store gives the same bytes.
    let page = folder.path().join("report.html");
    std::fs::write(&page, "old").unwrap();
    run_well(&["report", store, "--out", page.to_str().unwrap()]);
    let first = std::fs::read(&page).unwrap();
    run_well(&["report", store, "--out", page.to_str().unwrap()]);
    assert_eq!(std::fs::read(&page).unwrap(), first);
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 1);
    // Neither a file nor JSON is asked for.
    assert_eq!(run(&["report", store]).code, Some(2));
    let found: Value = serde_json::from_str(&run_well(&["report", store, "--json"]).stdout).unwrap();
    assert_eq!(found["sizes"][0]["level"], "similar");
    let clusters: BTreeSet<i64> = longs(&made.week(), "clusters", "cluster_id").into_iter().collect();
    let shown = found["shown"].as_array().unwrap();
    assert!(!shown.is_empty() && shown.iter().all(|of| clusters.contains(&of["cluster_id"].as_i64().unwrap())));
}

/// How many rows of a table are shown.
const ROWS_SHOWN: &str =
    "[...document.querySelectorAll('#table-similar tbody tr')].filter((row) => row.getClientRects().length > 0).length";
/// The numbers of its column of pages, from the top.
const PAGES: &str =
    "[...document.querySelectorAll('#table-similar tbody tr')].map((row) => Number(row.cells[1].dataset.value))";

#[test]
fn a_browser_shows_all_plots_and_tables_that_sort_and_filter() {
    let (_made, page) = three_weeks();
    let Some(mut browser) = Browser::start("a browser shows a report") else { return };
    let events = browser.open(&page);
    assert_eq!(complaints(&events), Vec::<Value>::new());
    check_screens(&mut browser, &page);
    browser.call("Emulation.clearDeviceMetricsOverride", json!({}));
    browser.open(&page);
    let requests = events.iter().filter(|event| event["method"] == "Network.requestWillBeSent");
    let requests: Vec<&str> = requests.filter_map(|event| event["params"]["request"]["url"].as_str()).collect();
    assert!(requests.len() == 1 && requests[0].starts_with("file://"), "{requests:?}");

    // Every plot has marks within it, and text that is not the browser's default black where the
    // page is dark.
    let drawn = "[...document.querySelectorAll('figure svg')].filter((svg) => svg.getClientRects().length > 0).map((svg) => { \
                 const of = svg.getBoundingClientRect(); return [...svg.querySelectorAll('.dot, .ring, .stroke, .bar')].map((mark) => { const at = mark.getBoundingClientRect(); \
                 return at.width + at.height > 0 && at.left >= of.left - 5 && at.right <= of.right + 5 && at.top >= of.top - 5 && at.bottom <= of.bottom + 5; \
                 }); })";
    let marks = browser.value(drawn);
    let marks = marks.as_array().unwrap();
    let is_drawn = |of: &Value| of.as_array().is_some_and(|of| !of.is_empty() && of.iter().all(|drawn| *drawn == true));
    assert!(marks.len() == 3 + 7 && marks.iter().all(is_drawn), "{marks:?}");

    let all = browser.value(ROWS_SHOWN).as_u64().unwrap();
    let filter = |text: &str| {
        format!(
            "(() => {{ const field = document.querySelector('input[data-filter=table-similar]'); field.value = {text:?}; \
             field.dispatchEvent(new Event('input')); return {ROWS_SHOWN}; }})()"
        )
    };
    let with = "[...document.querySelectorAll('#table-similar tbody tr')].filter((row) => row.textContent.toLowerCase().includes('guide')).length";
    let expected = browser.value(with).as_u64().unwrap();
    assert!(0 < expected && expected < all, "{expected} of {all}");
    assert_eq!(browser.value(&filter("GUIDE")).as_u64(), Some(expected));
    assert_eq!(browser.value(&filter("no page has this")).as_u64(), Some(0));
    assert_eq!(browser.value(&filter("")).as_u64(), Some(all));

    // By keyboard: the head of the column of pages, twice.
    let mut ascending: Vec<u64> = serde_json::from_value(browser.value(PAGES)).unwrap();
    ascending.sort_unstable();
    browser.value("document.querySelectorAll('#table-similar th button')[4].click()");
    assert_ne!(
        serde_json::from_value::<Vec<u64>>(browser.value(PAGES)).unwrap(),
        ascending.iter().rev().copied().collect::<Vec<_>>()
    );
    browser.value("document.querySelectorAll('#table-similar th button')[1].focus()");
    browser.press("Enter", Some("\r"));
    let descending: Vec<u64> = ascending.iter().rev().copied().collect();
    assert_eq!(serde_json::from_value::<Vec<u64>>(browser.value(PAGES)).unwrap(), descending);
    browser.press("Enter", Some("\r"));
    assert_eq!(serde_json::from_value::<Vec<u64>>(browser.value(PAGES)).unwrap(), ascending);
    let sorted = "document.querySelectorAll('#table-similar th')[1].getAttribute('aria-sort')";
    assert_eq!(browser.value(sorted), "ascending");
    // The first stop of the tabulator is the way past the list of sections.
    browser.value("document.activeElement.blur(); window.scrollTo(0, 0)");
    browser.open(&page);
    browser.press("Tab", None);
    assert_eq!(browser.value("document.activeElement.getAttribute('href')"), "#main");
    assert_eq!(browser.complaints(), Vec::<Value>::new());
}

#[test]
fn a_browser_shows_the_page_on_a_phone_in_the_dark_and_on_paper() {
    let (_made, page) = three_weeks();
    let Some(mut browser) = Browser::start("a browser shows a report on a phone") else { return };
    browser.open(&page);
    let ground = "getComputedStyle(document.body).backgroundColor";
    let light = browser.value(ground);
    let dark = json!({"features": [{"name": "prefers-color-scheme", "value": "dark"}]});
    browser.call("Emulation.setEmulatedMedia", dark);
    assert_ne!(browser.value(ground), light);
    let ink = browser.value("getComputedStyle(document.querySelector('svg text')).fill");
    assert_eq!(ink, browser.value("getComputedStyle(document.body).color"), "the plots are dark, too");
    let phone = json!({"width": 360, "height": 640, "deviceScaleFactor": 2, "mobile": true});
    browser.call("Emulation.setDeviceMetricsOverride", phone);
    // Nothing but tables and plots is wider than the screen, and these scroll in themselves.
    assert_eq!(browser.value("document.documentElement.scrollWidth"), 360);
    let printed = browser.call("Page.printToPDF", json!({}));
    assert!(printed["data"].as_str().unwrap().len() > 10_000);
    browser.call("Emulation.setEmulatedMedia", json!({"media": "print"}));
    let cut = "[...document.querySelectorAll('.wide')].filter((of) => of.scrollHeight > of.clientHeight + 1).length";
    assert_eq!(browser.value(cut), 0, "on paper no table is cut");
}

#[test]
fn hostile_titles_and_names_do_nothing_in_a_browser() {
    let folder = tempfile::tempdir().unwrap();
    let page = hostile(folder.path());
    let Some(mut browser) = Browser::start("a browser shows hostile titles") else { return };
    let events = browser.open(&page);
    assert_eq!(complaints(&events), Vec::<Value>::new());
    assert_eq!(browser.value("window.harmed === undefined"), true);
    assert_eq!(browser.value("document.querySelectorAll('script, style, base, img, iframe, object').length"), 2);
    // The policy holds where escaping would fail: a script and a style of others do nothing.
    let other = "(() => { const script = document.createElement('script'); script.textContent = 'window.harmed = 1'; \
                 document.body.append(script); document.body.insertAdjacentHTML('beforeend', '<p id=late style=\"display:none\">late</p>'); \
                 return window.harmed === undefined && getComputedStyle(document.getElementById('late')).display !== 'none'; })()";
    assert_eq!(browser.value(other), true);
}

/// The clusters that are shown and why, as `{cluster_id: reasons}`.
fn shown(store: &str, week: &str) -> BTreeMap<i64, Vec<Value>> {
    let found: Value = serde_json::from_str(&run_well(&["report", store, "--week", week, "--json"]).stdout).unwrap();
    let shown = found["shown"].as_array().unwrap().iter();
    shown.map(|of| (of["cluster_id"].as_i64().unwrap(), of["reasons"].as_array().unwrap().clone())).collect()
}

#[test]
fn the_clusters_that_are_shown_are_those_of_the_tables() {
    let (made, _) = three_weeks();
    let store = made.store();
    let found = shown(store.to_str().unwrap(), "2024-01-22");
    let ids = |is: &dyn Fn(&Value) -> bool| -> BTreeSet<i64> {
        found.iter().filter(|(_, reasons)| reasons.iter().any(is)).map(|(id, _)| *id).collect()
    };
    let week = week(&store, "2024-01-22");
    let (events, changed) = (texts(&week, "changes", "event"), longs(&week, "changes", "cluster_id"));
    let (before, after) = (longs(&week, "changes", "before"), longs(&week, "changes", "after"));
    let mut grown: Vec<(i64, i64, i64)> = (0..events.len())
        .filter(|row| events[*row] == "grow")
        .map(|row| (before[row] - after[row], changed[row], before[row]))
        .collect();
    grown.sort_unstable();
    grown.truncate(5);
    assert!(!grown.is_empty());
    for (_, id, before) in &grown {
        assert!(found[id].contains(&json!({"grown": before})), "{id}: {:?}", found[id]);
    }
    assert_eq!(ids(&|why| !why["grown"].is_null()), grown.iter().map(|(_, id, _)| *id).collect());
    // Pages that are alone have no id.
    let of_cluster = longs(&week, "clusters", "cluster_id").into_iter().zip(longs(&week, "clusters", "similar_size"));
    let sizes: BTreeMap<i64, i64> = of_cluster.filter(|(_, size)| *size > 1).collect();
    let least_of_largest = ids(&|why| *why == "largest").iter().map(|id| sizes[id]).min().unwrap();
    assert_eq!(ids(&|why| *why == "largest").len(), 5);
    assert!(sizes.values().filter(|size| **size > least_of_largest).count() < 5);
    assert!(!ids(&|why| !why["loosest"].is_null()).is_empty());

    // The changes stay when their cluster goes: the week before is removed, then all pages of a
    // cluster that had grown.
    let store = store.to_str().unwrap();
    run_well(&["vacuum", "--store", store, "--keep", "1"]);
    let gone = grown[0].1;
    let pages = run_well(&["show", store, "--cluster", &gone.to_string(), "--json"]).stdout;
    let pages: Value = serde_json::from_str(&pages).unwrap();
    let mut delete = vec!["delete".to_owned(), "--store".to_owned(), store.to_owned()];
    for page in pages["listed"].as_array().unwrap() {
        delete.extend(["--url".to_owned(), page["page"]["name"].as_str().unwrap().to_owned()]);
    }
    run_well(&delete.iter().map(String::as_str).collect::<Vec<_>>());
    assert!(!shown(store, "2024-01-22").contains_key(&gone));
}

#[test]
fn a_week_without_accuracy_and_records_without_names_have_a_report() {
    let folder = tempfile::tempdir().unwrap();
    let input = folder.path().join("texts.jsonl");
    let text = |n: u32| (0..80).map(|word| format!("w{}x{word} ", n / 2)).collect::<String>();
    let lines: String = (0..40).map(|n| format!("{}\n", json!({"text": text(n)}))).collect();
    std::fs::write(&input, lines).unwrap();
    let job = job(folder.path(), "[cluster]\nweek = \"2024-01-08\"\naccuracy = false\n");
    let made = Made::with_job(&job, &["--input", input.to_str().unwrap()]);
    let page = folder.path().join("report.html");
    run_well(&["report", made.store().to_str().unwrap(), "--out", page.to_str().unwrap()]);
    let html = std::fs::read_to_string(page).unwrap();
    assert!(section(&html, "accuracy").contains("was not measured"));
    assert!(section(&html, "similar").matches("<tr>").count() == 21);
    assert!(section(&html, "similar").contains("texts.jsonl at "));
    assert!(!html.contains("<section id=\"weeks\">"));
}
