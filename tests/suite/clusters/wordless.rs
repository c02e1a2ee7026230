//! Texts without words: those with the same bytes are exact copies, week over week, whichever way
//! their clusters are found.

use std::collections::BTreeMap;
use std::path::Path;

use crate::program::{job, longs, roots, rows_of, run_well, tables, week};
use crate::weeks::partial::Lcg;

const DOCUMENTS: usize = 60;
const WORDLESS: [&str; 6] = ["", "!!!", "😀😀", "→ ←", "{ } ( ) ;", "!!! "];
const WEEKS: [&str; 3] = ["2024-01-01", "2024-01-08", "2024-01-15"];

/// The texts of a week by id: a third changes from week to week, from and to texts without words.
fn change(texts: &mut BTreeMap<String, String>, numbers: &mut Lcg, share: usize) {
    for id in 0..DOCUMENTS {
        if numbers.below(100) < share {
            let text = match numbers.below(3) {
                0 => format!("words that are much alike in all of these texts {}", numbers.below(4)),
                _ => WORDLESS[numbers.below(WORDLESS.len())].to_owned(),
            };
            match numbers.below(8) {
                0 => texts.remove(&format!("d{id}")),
                _ => texts.insert(format!("d{id}"), text),
            };
        }
    }
}

/// Checks a week against the texts.
fn check(folder: &Path, texts: &BTreeMap<String, String>, what: &str) {
    let by_id: BTreeMap<String, i64> = rows_of(folder, "documents", &["id", "doc"])
        .into_iter()
        .map(|row| (row[0].clone(), row[1].parse().unwrap()))
        .collect();
    assert_eq!(by_id.len(), texts.len(), "{what}");
    let is_wordless = |text: &str| WORDLESS.contains(&text);
    let mut smallest: BTreeMap<&str, i64> = BTreeMap::new();
    for (id, text) in texts.iter().filter(|(_, text)| is_wordless(text)) {
        smallest.entry(text).and_modify(|doc| *doc = by_id[id].min(*doc)).or_insert(by_id[id]);
    }
    let mut copies: Vec<i64> = Vec::new();
    for level in ["similar", "identical", "exact"] {
        let roots = roots(folder, level);
        for (id, text) in texts {
            let (doc, root) = (by_id[id], roots[&by_id[id]]);
            let wanted = smallest.get(text.as_str());
            assert!(
                wanted.map_or_else(|| !smallest.values().any(|doc| *doc == root), |wanted| *wanted == root),
                "{what}, {level}, {id} {text}"
            );
            copies.extend((level == "exact" && wanted.is_some() && root != doc).then_some(doc));
        }
    }
    copies.sort_unstable();
    let evidence = rows_of(folder, "evidence", &["doc", "neighbour", "agreements", "similarity", "found"]);
    let without_words = evidence.iter().filter(|row| copies.binary_search(&row[0].parse().unwrap()).is_ok());
    let exact = roots(folder, "exact");
    let mut rows = 0;
    for row in without_words {
        let neighbour = exact[&row[0].parse().unwrap()].to_string();
        assert_eq!(row[1..], [neighbour.as_str(), "0", "1", "bytes"], "{what}");
        rows += 1;
    }
    assert_eq!(rows, copies.len(), "{what}");
}

#[test]
fn equal_texts_without_words_are_exact_copies_through_the_weeks() {
    let kinds = [
        "",
        "method.similarity = 0.8\nmethod.verify = \"estimate\"\n",
        "method.similarity = 0.8\nmethod.verify = \"exact\"\n",
    ];
    for (seed, kind) in kinds.iter().enumerate() {
        let folder = tempfile::tempdir().unwrap();
        let (mut texts, mut numbers) = (BTreeMap::new(), Lcg(seed as u64));
        for (number, date) in WEEKS.iter().enumerate() {
            change(&mut texts, &mut numbers, if number == 0 { 100 } else { 30 });
            let lines = texts.iter().map(|(id, text)| serde_json::json!({"id": id, "text": text}).to_string() + "\n");
            let input = folder.path().join(format!("{date}.jsonl"));
            std::fs::write(&input, lines.collect::<String>()).unwrap();
            let mut first = None;
            for (mode, workers) in [("full", "1"), ("full", "4"), ("delta", "1"), ("delta", "2")] {
                let columns = "[cluster.read.columns]\ntext = \"text\"\nid = \"id\"\n";
                let job =
                    job(folder.path(), &format!("[cluster]\nmode = \"{mode}\"\nmethod.shards = 4\n{kind}{columns}"));
                let store = folder.path().join(format!("{mode}{workers}"));
                let [job, input, path] = [&job, &input, &store].map(|path| path.to_str().unwrap());
                run_well(&["run", job, "--week", date, "--workers", workers, "--input", input, "--store", path]);
                let what = format!("{kind:?}, {date}, {mode}, {workers} workers");
                let folder = week(&store, date);
                check(&folder, &texts, &what);
                assert!(*first.get_or_insert_with(|| tables(&folder)) == tables(&folder), "{what}");
                assert!(!longs(&folder, "clusters", "doc").is_empty());
            }
        }
    }
}

#[test]
fn an_export_keeps_one_of_equal_texts_without_words() {
    let folder = tempfile::tempdir().unwrap();
    let job = job(folder.path(), "[cluster.read.columns]\ntext = \"text\"\nid = \"id\"\n");
    let texts = ["!!!", "!!!", "😀😀", "😀😀", "", "", "→ ←", "→ ←", "{ } ( ) ;", "{ } ( ) ;", "!!"];
    let line = |(id, text): (usize, &&str)| serde_json::json!({"id": id.to_string(), "text": text}).to_string() + "\n";
    let input = folder.path().join("in.jsonl");
    std::fs::write(&input, texts.iter().enumerate().map(line).collect::<String>()).unwrap();
    let [job, input, store, out] = [job, input, folder.path().join("store"), folder.path().join("out")]
        .map(|path| path.to_str().unwrap().to_owned());
    run_well(&["run", &job, "--week", "2024-01-01", "--input", &input, "--store", &store]);
    for level in ["similar", "identical", "exact"] {
        let out = format!("{out}-{level}");
        run_well(&["export", &store, "--out", &out, "--level", level]);
        let kept = std::fs::read_to_string(Path::new(&out).join("in.jsonl")).unwrap();
        let mut kept: Vec<String> = kept
            .lines()
            .map(|line| serde_json::from_str::<serde_json::Value>(line).unwrap()["text"].as_str().unwrap().to_owned())
            .collect();
        kept.sort();
        let mut wanted: Vec<&str> = texts.to_vec();
        wanted.sort_unstable();
        wanted.dedup();
        assert_eq!(kept, wanted, "{level}");
    }
    let why = run_well(&["why", &store, "0", "1"]).stdout;
    assert!(why.contains("compared by their bytes"), "{why}");
}
