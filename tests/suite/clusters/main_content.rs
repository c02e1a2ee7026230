//! `content = "main"`: clusters of pages by their main content, against clusters of their texts
//! alone; `nigh find`, `nigh why` and `nigh live` over such a store.

use std::collections::BTreeSet;
use std::path::Path;

use serde_json::{Value, json};

use crate::live::Live;
use crate::program::{job, roots, rows_of, run, run_well, tables, week};

const DATE: &str = "2024-01-08";
/// Texts, and templates.
const TEXTS: usize = 6;
const TEMPLATES: usize = 5;

/// The words of a text, in paragraphs.
fn paragraphs(text: usize) -> Vec<String> {
    (0..12)
        .map(|at| {
            let words: Vec<String> =
                (0..14).map(|word| format!("word{}of{text}", (at * 37 + word * 11) % 97)).collect();
            format!("{}, and so on.", words.join(" "))
        })
        .collect()
}

/// A text in a template: the menus and footers of a template are longer than a text.
fn page(text: usize, template: usize) -> String {
    let links = |of: &str, count: usize| -> String {
        (0..count).map(|n| format!("<li><a href=\"/{of}/{n}\">{of} {n} of template {template}</a></li>")).collect()
    };
    let text: String = paragraphs(text).iter().map(|text| format!("<p>{text}</p>\n")).collect();
    let (before, after) = (links("section", 60), links("footer", 60));
    format!(
        "<html><head><title>Site {template}</title></head><body><nav class=\"menu\"><ul>{before}</ul></nav><div class=\"main\"><article>{text}\
         </article></div><footer class=\"footer\"><ul>{after}</ul>Copyright of site {template}</footer></body></html>"
    )
}

/// The name of a page.
fn name(text: usize, template: usize) -> String {
    format!("text{text}-template{template}")
}

/// All pages, and one of which nothing is found.
fn pages() -> Vec<(String, String)> {
    let pages = (0..TEXTS).flat_map(|text| (0..TEMPLATES).map(move |template| (text, template)));
    let pages = pages.map(|(text, template)| (name(text, template), page(text, template)));
    pages.chain([("deep".to_owned(), format!("{}{}", "<div>".repeat(400), page(0, 0)))]).collect()
}

fn write(path: &Path) {
    let lines = pages().into_iter().map(|(id, html)| json!({"id": id, "html": html}).to_string() + "\n");
    std::fs::write(path, lines.collect::<String>()).unwrap();
}

/// The clusters of a week, as names.
fn clusters(week: &Path) -> BTreeSet<BTreeSet<String>> {
    let ids: Vec<Vec<String>> = rows_of(week, "clusters", &["doc", "id"]);
    let roots = roots(week, "similar");
    let mut sets: std::collections::BTreeMap<i64, BTreeSet<String>> = std::collections::BTreeMap::new();
    for row in ids {
        sets.entry(roots[&row[0].parse().unwrap()]).or_default().insert(row[1].clone());
    }
    sets.into_values().collect()
}

fn read(content: &str) -> String {
    format!(
        "[cluster.read]\n{content}\n[cluster.read.columns]\nid = \"id\"\nhtml = \"html\"\n[cluster.method]\nshards = 4\n"
    )
}

#[test]
fn pages_of_one_text_are_alike_whatever_their_template_and_others_are_not() {
    let folder = tempfile::tempdir().unwrap();
    let (folder, input) = (folder.path(), folder.path().join("in.jsonl"));
    write(&input);
    let of_texts: BTreeSet<BTreeSet<String>> = (0..TEXTS)
        .map(|text| (0..TEMPLATES).map(|template| name(text, template)).collect())
        .chain([BTreeSet::from(["deep".to_owned()])])
        .collect();
    let mut first = None;
    for (workers, processes) in [("1", "1"), ("2", "1"), ("4", "1"), ("1", "2")] {
        let store = folder.join(format!("main{workers}{processes}"));
        let job = job(folder, &format!("[cluster]\n{}", read("content = \"main\"")));
        let [job, path, store_name] = [&job, &input, &store].map(|path| path.to_str().unwrap());
        let flags = ["--workers", workers, "--processes", processes, "--json"];
        let arguments = ["run", job, "-q", "--week", DATE, "--input", path, "--store", store_name];
        let summary: Value = serde_json::from_str(&run_well(&[&arguments[..], &flags].concat()).stdout).unwrap();
        assert_eq!(summary["counts"]["whole_pages"], 1, "the one that is too deep");
        let week = week(&store, DATE);
        assert_eq!(clusters(&week), of_texts);
        assert!(*first.get_or_insert_with(|| tables(&week)) == tables(&week), "{workers} {processes}");
        let shown = run_well(&["show", store_name]).stdout;
        assert!(shown.contains("1  pages without a main content: all of their text counts"), "{shown}");
    }
    // Links are those of the whole page, whatever its text is.
    let job = job(folder, &format!("[cluster]\n{}", read("")));
    let store = folder.join("page");
    let [job, path, store] = [&job, &input, &store].map(|path| path.to_str().unwrap());
    run_well(&["run", job, "-q", "--week", DATE, "--input", path, "--store", store]);
    let whole = week(Path::new(store), DATE);
    assert_ne!(clusters(&whole), of_texts);
    let counts = |week: &Path| rows_of(week, "pages", &["id", "links"]);
    assert_eq!(counts(&week(&folder.join("main11"), DATE)), counts(&whole));
}

#[test]
fn a_store_keeps_its_content_and_all_that_reads_pages_follows_it() {
    let folder = tempfile::tempdir().unwrap();
    let (folder, store) = (folder.path(), folder.path().join("store"));
    let (input, store_name) = (folder.join("in.jsonl"), store.to_str().unwrap());
    write(&input);
    let run_with = |content: &str, date: &str, command: &[&str]| {
        let job = job(folder, &format!("[cluster]\n{}", read(content)));
        let rest = ["-q", "--week", date, "--input", input.to_str().unwrap(), "--store", store_name];
        run(&[command, &[job.to_str().unwrap()], &rest].concat())
    };
    assert_eq!(run_with("content = \"main\"", DATE, &["run"]).code, Some(0));
    let other = run_with("content = \"page\"", "2024-01-15", &["run"]);
    let wanted = "has content = \"main\", and the job has content = \"page\" in [cluster.read]: leave it out, or use another --store";
    assert!(other.code != Some(0) && other.stderr.contains(wanted), "{}", other.stderr);
    let unknown = run_with("content = \"body\"", "2024-01-15", &["run"]);
    assert!(unknown.stderr.contains("expected `page` or `main`"), "{}", unknown.stderr);
    // A job that does not say it has that of the store, and the same job again changes nothing.
    for content in ["", "content = \"main\""] {
        let again = run_with(content, DATE, &["run"]);
        assert_eq!(again.code, Some(0), "{}", again.stderr);
        let later = run_with(content, "2024-01-15", &["run"]);
        assert_eq!(later.code, Some(0), "{}", later.stderr);
    }
    assert_eq!(clusters(&week(&store, DATE)), clusters(&week(&store, "2024-01-15")));

    // The text of another template, of which only the text counts.
    let asked = folder.join("asked.html");
    std::fs::write(&asked, page(3, 99)).unwrap();
    let found = run_well(&["find", store_name, "--text", asked.to_str().unwrap(), "--json"]).stdout;
    let found: Value = serde_json::from_str(&found).unwrap();
    let ids: BTreeSet<&str> =
        found["found"].as_array().unwrap().iter().map(|page| page["page"]["name"].as_str().unwrap()).collect();
    let names: Vec<String> = (0..TEMPLATES).map(|template| name(3, template)).collect();
    assert_eq!(ids, names.iter().map(String::as_str).collect());
    let why = run_well(&["why", store_name, &names[0], &names[1], "--json"]).stdout;
    let why: Value = serde_json::from_str(&why).unwrap();
    assert_eq!(why["texts"]["shared"], why["texts"]["either"], "{why}");

    let live = Live::start(&store, &[]);
    let answers = live.post("1", &[json!({"id": "new", "html": page(3, 98)})]);
    assert_eq!(live.get("/documents/new")["size"], TEMPLATES as u64 + 1, "{answers:?}");
    assert_eq!(live.send("POST", "/commit", &[], b"").status, 200);
    drop(live);
    // A commit is a week of its own.
    let why = run_well(&["why", store_name, &names[0], "new", "--json"]).stdout;
    let why: Value = serde_json::from_str(&why).unwrap();
    assert_eq!(why["together"][0][1], true, "{why}");
}
