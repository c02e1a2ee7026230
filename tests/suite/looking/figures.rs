//! The figures of the papers: `nigh studies` and `nigh figures` against the tables, and in a
//! browser.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use html5gum::{Token, Tokenizer};
use nigh::figures::all_figures;
use nigh::studies::AnyStudy;
use serde_json::{Value, json};

use crate::browser::{Browser, complaints};
use crate::looking::table::records;
use crate::program::{Made, data, nigh, ran, rows_of, run, run_well, week};

/// A store of the three shipped weeks.
fn weeks() -> Made {
    let made = Made::new(&[]);
    for week in ["2024-01-15", "2024-01-22"] {
        let input = data(&format!("week-{week}/*.warc.gz"));
        let (store, input) = (made.store(), input.to_str().unwrap().to_owned());
        let flags = ["--quiet", "--store", store.to_str().unwrap(), "--week", week, "--input", &input];
        run_well(&[&["run", "jobs/example.toml"][..], &flags].concat());
    }
    made
}

/// A row of the CSV of a plot: the series, where it is from, and the two values.
type Point = (String, String, String, f64);

/// The rows of the CSV of a plot that are from the tables, or from somewhere else.
fn points(folder: &Path, file: &str, from: &str) -> Vec<Point> {
    let text = std::fs::read_to_string(folder.join(format!("{file}.csv"))).unwrap();
    let rows = records(&text, ',').split_off(1).into_iter();
    let rows = rows.map(|row| row.into_iter().map(Option::unwrap_or_default).collect::<Vec<String>>());
    let rows = rows.filter(|row| row[1] == from);
    rows.map(|row| (row[0].clone(), row[1].clone(), row[2].clone(), row[3].parse().unwrap())).collect()
}

/// What `x` and `y` make of the rows of a table, as a set of points; rows with a null are no
/// points.
fn of_rows(rows: &[Vec<String>], x: usize, y: usize, scale: f64) -> BTreeSet<(String, u64)> {
    let rows = rows.iter().filter(|row| row[y] != "null");
    rows.map(|row| (number(&row[x]), (scale * row[y].parse::<f64>().unwrap()).to_bits())).collect()
}

/// A number as a plot writes it: tables have whole ones.
fn number(text: &str) -> String {
    text.parse::<f64>().map_or_else(|_| text.to_owned(), |number| number.to_string())
}

fn set(points: &[Point]) -> BTreeSet<(String, u64)> {
    points.iter().map(|(_, _, x, y)| (x.clone(), y.to_bits())).collect()
}

/// Each plot again, from the tables.
fn check_plots(store: &Path, folder: &Path) {
    let ours = |file: &str| points(folder, file, "ours");
    let of_study = |study: &str, table: &str, columns: &[&str]| rows_of(&store.join(study), table, columns);
    let sizes_of = |date: &str, level: &str| {
        let mut rows = rows_of(&week(store, date), "sizes", &["level", "size", "clusters"]);
        rows.retain(|row| row[0] == level && row[1] != "1");
        of_rows(&rows, 1, 2, 1.0)
    };
    let (first, last) = ("2024-01-08", "2024-01-22");
    assert_eq!(set(&ours("fetterly-2004-fig-1")), sizes_of(last, "similar"));
    let both: Vec<Point> = ours("fetterly-2004-fig-2");
    for date in [first, last] {
        let of_week: Vec<Point> = both.iter().filter(|point| point.0 == date).cloned().collect();
        assert_eq!(set(&of_week), sizes_of(date, "similar"), "{date}");
    }
    let levels: Vec<Point> = ours("fetterly-2004-fig-3");
    for (level, title) in [("similar", "very similar"), ("identical", "virtually identical")] {
        let of_level: Vec<Point> = levels.iter().filter(|point| point.0 == title).cloned().collect();
        assert_eq!(set(&of_level), sizes_of(last, level), "{level}");
    }
    for (file, column) in [("4", "retention"), ("5", "similarity"), ("7", "reverse")] {
        let rows = of_study("evolution", "retention", &["week", column]);
        let found = ours(&format!("fetterly-2004-fig-{file}"));
        assert_eq!(set(&found), of_rows(&rows, 0, 1, 100.0), "{column}");
        assert_eq!(found.len(), rows.iter().filter(|row| row[1] != "null").count(), "{column}");
    }
    let hosts = of_study("evolution", "host-changes", &["change", "hosts"]);
    assert_eq!(set(&ours("fetterly-2004-fig-6")), of_rows(&hosts, 0, 1, 1.0));
    for (file, column, scale) in [("8", "share", 100.0), ("9", "relative", 1.0)] {
        let mut by_class: BTreeMap<String, Vec<Vec<String>>> = BTreeMap::new();
        for row in of_study("evolution", "amounts", &["amount", "class", column]) {
            by_class.entry(row[1].clone()).or_default().push(row);
        }
        // Classes without any pair are not drawn.
        by_class.retain(|_, rows| rows.iter().any(|row| row[2] != "null" && row[2] != "0"));
        let found = ours(&format!("fetterly-2004-fig-{file}"));
        let series: BTreeSet<&String> = found.iter().map(|point| &point.0).collect();
        assert_eq!(series.len(), by_class.len(), "{column}");
        let rows: Vec<Vec<String>> = by_class.into_values().flatten().collect();
        assert_eq!(set(&found), of_rows(&rows, 0, 2, scale), "{column}");
    }
    for (file, study, table) in [("10", "evolution", "change-classes"), ("11", "mirrors", "changes")] {
        let rows = of_study(study, table, &["class", "share"]);
        assert_eq!(set(&ours(&format!("fetterly-2004-fig-{file}"))), of_class(&rows), "{table}");
    }
    let mut mirrors = of_study("mirrors", "sizes", &["week", "size", "pairs"]);
    mirrors.retain(|row| row[0] == first || row[0] == last);
    let expected = of_rows(&mirrors, 1, 2, 1.0);
    assert_eq!(set(&ours("fetterly-2004-fig-13")), expected);
    mirrors.retain(|row| row[0] == first);
    assert_eq!(set(&ours("fetterly-2004-fig-12")), of_rows(&mirrors, 1, 2, 1.0));
    let replicas = of_study("overlap", "replicas", &["replicas", "share", "published"]);
    assert_eq!(set(&ours("shivakumar-1998-fig-1")), of_class(&replicas));
    let published = points(folder, "shivakumar-1998-fig-1", "published");
    let of_study_of: Vec<f64> = published.iter().map(|point| point.3).collect();
    assert_eq!(of_study_of, [64.0, 18.0, 5.0, 52.0], "the study's shares");
    let ranking = of_study("mirrors-by-url", "ranking", &["prefix", "levels13", "levels14"]);
    let scaled = |column: usize| {
        let rows = ranking.iter().filter(|row| row[column] != "null");
        rows.map(|row| {
            let [prefix, share] = [0, column].map(|of| 100.0 * row[of].parse::<f64>().unwrap());
            (prefix.to_string(), share.to_bits())
        })
        .collect::<BTreeSet<_>>()
    };
    assert_eq!(set(&ours("bharat-1999-fig-1")), scaled(1).union(&scaled(2)).cloned().collect());
    let similar = of_study("collections", "replicas", &["similar", "share"]);
    assert_eq!(set(&ours("cho-2000-fig-11")), of_class(&similar));
    let sizes = of_study("collections", "sizes", &["size", "cardinality"]);
    assert_eq!(set(&ours("cho-2000-fig-12")), of_rows(&sizes, 0, 1, 1.0));
    for (file, region) in [("2", "all"), ("3", "connected"), ("4", "disconnected")] {
        let mut rows = of_study("paragraphs", "sizes", &["region", "size", "clusters"]);
        rows.retain(|row| row[0] == region);
        assert_eq!(set(&ours(&format!("pereira-2006-fig-{file}"))), of_rows(&rows, 1, 2, 1.0), "{region}");
    }
    let growth = of_study("paragraphs", "growth", &["step", "clusters", "duplicates"]);
    let expected = of_rows(&growth, 0, 1, 1.0).union(&of_rows(&growth, 0, 2, 1.0)).cloned().collect();
    assert_eq!(set(&ours("pereira-2006-fig-5")), expected);
}

/// Points of classes, whose names stay, by shares in percent.
fn of_class(rows: &[Vec<String>]) -> BTreeSet<(String, u64)> {
    let rows = rows.iter().filter(|row| row[1] != "null");
    rows.map(|row| (row[0].clone(), (100.0 * row[1].parse::<f64>().unwrap()).to_bits())).collect()
}

/// Each table again, from the tables of the store.
fn check_listings(store: &Path, folder: &Path) {
    let csv = |file: &str| {
        let text = std::fs::read_to_string(folder.join(format!("{file}.csv"))).unwrap();
        let rows = records(&text, ',').split_off(1).into_iter();
        rows.map(|row| row.into_iter().map(|cell| cell.unwrap_or_else(|| "null".to_owned())).collect())
            .collect::<Vec<Vec<String>>>()
    };
    let last = week(store, "2024-01-22");
    for (file, level) in [("1", "similar"), ("2", "identical")] {
        let mut rows =
            rows_of(&last, "largest", &["level", "rank", "urls", "hosts", "machines", "unresolved", "title", "name"]);
        rows.retain(|row| row[0] == level);
        rows.iter_mut().for_each(|row| drop(row.remove(0)));
        assert_eq!(csv(&format!("fetterly-2004-table-{file}")), rows, "{level}");
    }
    let of_study = |study: &str, table: &str, columns: &[&str]| rows_of(&store.join(study), table, columns);
    for (file, study, table, columns) in [
        ("fetterly-2004-section-4", "mirrors", "classes", vec!["week", "class", "pairs", "study", "published"]),
        (
            "shivakumar-1998-table-2",
            "overlap",
            "most",
            vec!["chunking", "rank", "documents", "hosts", "machines", "title", "url"],
        ),
        ("bharat-1999-table-3", "mirrors-by-url", "domains", vec!["group", "domain_a", "domain_b", "pairs", "share"]),
    ] {
        assert_eq!(csv(file), of_study(study, table, &columns), "{file}");
    }
    // What the steps of the overlap job needed is in its summary.
    let summary = run_well(&["show", store.to_str().unwrap(), "--job", "overlap", "--json"]).stdout;
    let summary: Value = serde_json::from_str(&summary).unwrap();
    let steps = summary["steps"].as_array().unwrap().iter();
    let step = |step: &Value| {
        let text = |value: &Value| value.as_str().map_or_else(|| "all".to_owned(), str::to_owned);
        let records = step["records"].as_u64().map_or_else(|| "null".to_owned(), |records| records.to_string());
        vec![text(&step["chunking"]), text(&step["step"]), records]
    };
    let needs = csv("shivakumar-1998-table-1");
    let found: Vec<Vec<String>> = needs.iter().map(|row| [0, 1, 3].map(|at| row[at].clone()).to_vec()).collect();
    assert_eq!(found, steps.map(step).collect::<Vec<_>>());
    let published: Vec<&String> = needs.iter().map(|row| &row[5]).filter(|text| *text != "null").collect();
    assert_eq!((published.len(), published[0].as_str()), (6, "0.8 GB"));
    let levels = of_study("mirrors-by-url", "levels", &["level", "pairs", "published"]);
    assert_eq!(csv("bharat-1999-table-2")[..levels.len()], levels);
    let near = [
        "region",
        "near",
        "documents",
        "clusters",
        "duplicates",
        "share",
        "published_2003",
        "published_2004",
        "published_2005",
    ];
    let regions = of_study("paragraphs", "summary", &near);
    let of_all: Vec<Vec<String>> =
        [2, 3, 4].iter().flat_map(|number| csv(&format!("pereira-2006-table-{number}"))).collect();
    let near_of_parts = |row: &&Vec<String>| row[0] == "all" || row[1] == "null";
    let expected: BTreeSet<&Vec<String>> = regions.iter().filter(near_of_parts).collect();
    assert_eq!(of_all.iter().collect::<BTreeSet<_>>(), expected);
    let coverage = of_study("paragraphs", "coverage", &["region", "clusters", "clusters_there"]);
    let found: Vec<Vec<String>> = csv("pereira-2006-table-5").into_iter().map(|row| row[..3].to_vec()).collect();
    assert_eq!(found, coverage);
    // The largest that are not noise, and then the study's.
    let mut clusters = of_study("collections", "clusters", &["cardinality", "size", "noise"]);
    clusters.retain(|row| row[2] == "false");
    let found = csv("cho-2000-table-2");
    assert_eq!(found.len(), clusters.len().min(20) + 5);
    let cardinalities: Vec<u64> = found[..found.len() - 5].iter().map(|row| row[0].parse().unwrap()).collect();
    assert!(cardinalities.is_sorted_by(|a, b| a >= b), "{cardinalities:?}");
    assert_eq!(found[found.len() - 5][..2], ["360".to_owned(), "1052".to_owned()]);
}

#[test]
fn all_studies_run_and_every_figure_has_the_numbers_of_the_tables() {
    let made = weeks();
    let store = made.store();
    let name = store.to_str().unwrap();
    // Before the studies: figures of clusters, and what makes the others.
    let folder = store.with_file_name("figures");
    let out = folder.to_str().unwrap();
    let before = run_well(&["figures", name, "--out", out]).stdout;
    assert!(before.contains("6 of 37 figures and tables are drawn"), "{before}");
    assert!(before.contains(&format!("This makes them: nigh run jobs/evolution.toml --store {name}")), "{before}");
    let index = std::fs::read_to_string(folder.join("index.html")).unwrap();
    assert!(index.contains(&format!("<code>nigh run jobs/overlap.toml --store {name} --week 2024-01-22</code>")));

    let plan = run_well(&["studies", name, "--dry-run"]).stdout;
    let commands: Vec<&str> = plan.lines().collect();
    assert_eq!(commands.len(), 2 + 3 * 3 + 3, "{plan}");
    assert!(commands[0].contains("evolution.toml") && commands[2].ends_with("--week 2024-01-08"), "{plan}");
    let json: Value = serde_json::from_str(&run_well(&["studies", name, "--dry-run", "--json"]).stdout).unwrap();
    assert_eq!(json["commands"], json!(commands));
    let ran = run_well(&["studies", name, "--workers", "2"]);
    assert!(ran.stdout.contains("Evolution of clusters from 2024-01-08 to 2024-01-22"), "{}", ran.stdout);
    assert!(ran.stderr.contains("of 14: nigh run jobs/overlap.toml"), "{}", ran.stderr);

    let written: Value = serde_json::from_str(&run_well(&["figures", name, "--out", out, "--json"]).stdout).unwrap();
    let written = written["figures"].as_array().unwrap();
    assert_eq!(written.len(), all_figures().len());
    let index = std::fs::read_to_string(folder.join("index.html")).unwrap();
    let mut files = BTreeSet::from(["index.html".to_owned()]);
    for figure in written {
        assert!(figure["missing"].is_null(), "{figure}");
        assert!(index.contains(&format!("<h3>{}. ", figure["name"].as_str().unwrap())), "{figure}");
        for file in figure["files"].as_array().unwrap() {
            assert!(index.contains(&format!("<a href={file}>")), "{file}");
            files.insert(file.as_str().unwrap().to_owned());
        }
    }
    let found = std::fs::read_dir(&folder).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap());
    assert_eq!(found.collect::<BTreeSet<String>>(), files, "no other file is left");
    check_plots(&store, &folder);
    check_listings(&store, &folder);
    for file in files.iter().filter(|file| file.ends_with(".svg")) {
        let svg = std::fs::read_to_string(folder.join(file)).unwrap();
        assert!(
            svg.len() < 200_000 && svg.starts_with("<svg xmlns=") && svg.ends_with("</svg>\n"),
            "{file}: {}",
            svg.len()
        );
        let mut depth = 0;
        for token in Tokenizer::new(&svg) {
            match token.unwrap() {
                Token::StartTag(tag) if !tag.self_closing => depth += 1,
                Token::EndTag(_) => depth -= 1,
                _ => {}
            }
        }
        assert_eq!(depth, 0, "{file} is not closed");
    }
    // The same store gives the same bytes, and figures of an earlier week know nothing of later
    // ones.
    let bytes = |folder: &Path| {
        files.iter().filter_map(|file| Some((file.clone(), std::fs::read(folder.join(file)).ok()?))).collect::<Vec<_>>()
    };
    let all = bytes(&folder);
    run_well(&["figures", name, "--out", out]);
    assert!(bytes(&folder) == all);
    let middle = run_well(&["figures", name, "--out", out, "--week", "2024-01-15", "--format", "csv"]).stdout;
    assert!(middle.contains("6 of 37") && middle.contains("know later weeks, until 2024-01-22"), "{middle}");
    assert!(!folder.join("fetterly-2004-fig-4.csv").exists() && !folder.join("fetterly-2004-fig-1.svg").exists());
    // Summaries of an older version lack what was added since.
    for (study, added) in [("overlap", ["steps", "workers"]), ("mirrors", ["study", "study_share"])] {
        let commits = std::fs::read_dir(store.join("_nigh").join(study)).unwrap();
        let file =
            commits.map(|commit| commit.unwrap().path().join("summary.json")).find(|file| file.exists()).unwrap();
        let mut summary: Value = serde_json::from_slice(&std::fs::read(&file).unwrap()).unwrap();
        let remove =
            |of: &mut Value| added.iter().filter(|name| of.as_object_mut().unwrap().remove(**name).is_some()).count();
        let removed = match summary["mirrors"].as_array_mut() {
            Some(weeks) => weeks.iter_mut().map(remove).sum(),
            None => remove(&mut summary),
        };
        assert!(removed >= 2, "{study} {removed}");
        std::fs::write(&file, summary.to_string()).unwrap();
        run_well(&["show", name, "--job", study]);
    }
    let older = run_well(&["figures", name, "--out", out]).stdout;
    assert!(older.contains("37 of 37"), "{older}");
    let index = std::fs::read_to_string(folder.join("index.html")).unwrap();
    assert!(index.contains("An older version made these tables"), "the times are not known");
    let needs = std::fs::read_to_string(folder.join("shivakumar-1998-table-1.csv")).unwrap();
    for row in ["document,fingerprints,", "document,pairs,", "4.6 GB", "434 min to sort, 162 min to count"] {
        assert!(needs.contains(row), "{row}: {needs}");
    }
    // The last week again, from other files: what studies found is of the week as it was.
    let inputs = data("week-2024-01-15/*.warc.gz");
    let replace = ["--week", "2024-01-22", "--replace", "--input", inputs.to_str().unwrap()];
    run_well(&[&["run", "jobs/example.toml", "--quiet", "--store", name][..], &replace].concat());
    let replaced = run_well(&["figures", name, "--out", out]).stdout;
    assert!(replaced.contains("6 of 37") && replaced.contains("made before week 2024-01-22 was changed"), "{replaced}");
    let report = store.with_file_name("report.html");
    run_well(&["report", name, "--out", report.to_str().unwrap()]);
    let report = std::fs::read_to_string(report).unwrap();
    assert!(report.contains("as it was before week 2024-01-22 was changed"), "studies are of another week");
    for looked in
        [&["show", name, "--job", "mirrors"][..], &["show", name, "--avoid"], &["table", name, "mirrors/pairs"]]
    {
        let stderr = run_well(looked).stderr;
        assert!(
            stderr.contains("were made before week 2024-01-22 was changed: `nigh run jobs/"),
            "{looked:?}: {stderr}"
        );
    }
    // A folder that is a file.
    let file = store.with_file_name("file");
    std::fs::write(&file, "").unwrap();
    let failed = run(&["figures", name, "--out", file.to_str().unwrap()]);
    assert!(failed.code == Some(1) && failed.stderr.contains("it is a file"), "{}", failed.stderr);
}

#[test]
fn plots_are_made_as_png_where_there_are_fonts() {
    let made = Made::new(&[]);
    run_well(&["run", "jobs/example.toml", "--quiet", "--store", made.store().to_str().unwrap()]);
    let (store, folder) = (made.store(), made.store().with_file_name("figures"));
    let (name, out) = (store.to_str().unwrap(), folder.to_str().unwrap());
    let pictures = run(&["figures", name, "--out", out, "--format", "svg,png"]);
    if pictures.code != Some(0) {
        // A machine for tests need not have fonts; then nothing is written.
        assert!(pictures.stderr.contains("this machine has no fonts"), "{}", pictures.stderr);
        assert!(!folder.exists());
        return;
    }
    let files: BTreeSet<String> =
        std::fs::read_dir(&folder).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    let of_kind = |kind: &str| files.iter().filter_map(|file| file.strip_suffix(kind)).collect::<Vec<&str>>();
    assert!(!of_kind(".png").is_empty());
    assert_eq!(of_kind(".png"), of_kind(".svg"), "a plot has both, a table none");
    for plot in of_kind(".png") {
        let bytes = std::fs::read(folder.join(format!("{plot}.png"))).unwrap();
        assert!(bytes.starts_with(b"\x89PNG\r\n\x1a\n"), "{plot}");
        let number = |at: usize| u32::from_be_bytes(bytes[at..at + 4].try_into().unwrap());
        let svg = std::fs::read_to_string(folder.join(format!("{plot}.svg"))).unwrap();
        let of_svg = format!("width=\"{}\" height=\"{}\"", number(16) / 2, number(20) / 2);
        assert!(svg.contains(&of_svg), "{plot} has twice the pixels of its SVG: {of_svg}");
    }
    let first = std::fs::read(folder.join("fetterly-2004-fig-2.png")).unwrap();
    run_well(&["figures", name, "--out", out, "--format", "png"]);
    assert!(
        std::fs::read(folder.join("fetterly-2004-fig-2.png")).unwrap() == first,
        "the same machine, the same bytes"
    );
    assert!(!folder.join("fetterly-2004-fig-2.svg").exists());
}

#[test]
fn a_study_that_cannot_run_does_not_keep_others_from_running() {
    let made = Made::new(&[]);
    let store = made.store();
    let jobs = store.with_file_name("jobs");
    std::fs::create_dir(&jobs).unwrap();
    // More pairs than the job allows.
    std::fs::write(jobs.join("overlap.toml"), "[overlap]\nmax-pairs = 1\n").unwrap();
    let name = store.to_str().unwrap();
    // Variables are for `nigh run`.
    let mut studies = nigh(&["studies", name, "--quiet", "--jobs", jobs.to_str().unwrap()]);
    let ran = ran(studies.envs([("NIGH_WORKERS", "auto"), ("NIGH_REPLACE", "true"), ("NIGH_INPUT", "no-such-crawl")]));
    assert_eq!(ran.code, Some(1), "{}", ran.stderr);
    // All but those that need a reference.
    let mut studies: BTreeSet<&str> =
        AnyStudy::all().iter_mut().filter_map(|study| study.against().is_none().then(|| study.name())).collect();
    let failed = format!("1 of {} runs failed: nigh run ", studies.len());
    assert!(ran.stderr.contains(&failed) && ran.stderr.contains("jobs/overlap.toml"), "{}", ran.stderr);
    let manifest: Value = serde_json::from_slice(&std::fs::read(store.join("_nigh/manifest.json")).unwrap()).unwrap();
    let made: BTreeSet<&str> = manifest["results"].as_object().unwrap().keys().map(String::as_str).collect();
    assert!(studies.remove("overlap") && studies.contains("mirrors"));
    assert_eq!(made, studies);
    std::fs::write(jobs.join("mirrors.toml"), "[evolution]\n").unwrap();
    let wrong = run(&["studies", name, "--jobs", jobs.to_str().unwrap()]);
    assert!(wrong.code == Some(2) && wrong.stderr.contains("has no table [mirrors]"), "{}", wrong.stderr);
}

/// Of all plots that are shown: the names within them that overlap or reach beyond the plot.
pub const BAD_LABELS: &str = "(() => { const bad = []; \
    for (const svg of document.querySelectorAll('figure svg')) { \
      if (svg.getClientRects().length === 0) continue; \
      const of = svg.getBoundingClientRect(); \
      const names = [...svg.querySelectorAll('text')].map((name) => [name.textContent, name.getBoundingClientRect()]); \
      names.forEach(([text, a], number) => { \
        if (a.left < of.left - 1 || a.right > of.right + 1 || a.top < of.top - 1 || a.bottom > of.bottom + 1) bad.push('beyond: ' + text); \
        for (const [other, b] of names.slice(number + 1)) { \
          if (a.left < b.right - 1 && b.left < a.right - 1 && a.top < b.bottom - 1 && b.top < a.bottom - 1) bad.push(text + ' over ' + other); \
        } }); } \
    return bad; })()";

/// Opens a page on screens of several widths, light and dark, and checks that all of it is seen.
pub fn check_screens(browser: &mut Browser, page: &Path) {
    for scheme in ["light", "dark"] {
        let media = json!({"features": [{"name": "prefers-color-scheme", "value": scheme}]});
        browser.call("Emulation.setEmulatedMedia", media);
        for width in [390, 800, 1400] {
            let screen = json!({"width": width, "height": 800, "deviceScaleFactor": 1, "mobile": width < 600});
            browser.call("Emulation.setDeviceMetricsOverride", screen);
            let events = browser.open(page);
            assert_eq!(complaints(&events), Vec::<Value>::new(), "{width} {scheme}");
            let beyond = "document.documentElement.scrollWidth - document.documentElement.clientWidth";
            assert_eq!(browser.value(beyond), 0, "{width} {scheme}: the page scrolls sideways");
            assert_eq!(browser.value(BAD_LABELS), json!([]), "{width} {scheme}");
            let least = "Math.min(...[...document.querySelectorAll('figure svg')].filter((svg) => svg.getClientRects().length > 0) \
                         .map((svg) => svg.getBoundingClientRect().width / svg.viewBox.baseVal.width * parseFloat(svg.getAttribute('font-size'))))";
            let letters = browser.value(least).as_f64().unwrap();
            assert!(letters >= 10.0, "letters of {letters} pixels at {width}");
        }
    }
}

#[test]
fn a_browser_shows_all_figures_on_any_screen() {
    let made = weeks();
    let store = made.store();
    let Some(mut browser) = Browser::start("a browser shows the figures of the papers") else { return };
    let name = store.to_str().unwrap();
    run_well(&["studies", name, "--quiet"]);
    let folder: PathBuf = store.with_file_name("figures");
    run_well(&["figures", name, "--out", folder.to_str().unwrap()]);
    check_screens(&mut browser, &folder.join("index.html"));
    // A file of its own is drawn, too.
    let events = browser.open(&folder.join("fetterly-2004-fig-8.svg"));
    assert_eq!(complaints(&events), Vec::<Value>::new());
    assert!(browser.value("document.querySelectorAll('rect.bar').length").as_u64().unwrap() > 10);
}
