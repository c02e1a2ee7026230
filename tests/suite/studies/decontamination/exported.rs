//! What an export does with the documents that match.

use std::collections::{BTreeMap, BTreeSet};

use arrow_array::cast::AsArray as _;
use arrow_array::types::Int64Type;
use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;

use super::quiz::{DOCUMENTS, QuizCorpus};
use crate::program::run;

/// The ids of records that were written, with the number of items and the best one, if they are
/// annotated.
fn exported(corpus: &QuizCorpus, out: &str) -> BTreeMap<usize, (Option<i64>, Option<i64>)> {
    let mut found = BTreeMap::new();
    for line in std::fs::read_to_string(corpus.path(out).join("a.jsonl")).unwrap().lines() {
        let value: serde_json::Value = serde_json::from_str(line).unwrap();
        let id = value["id"].as_u64().unwrap() as usize;
        found.insert(id, (value["nigh_matches"].as_i64(), value["nigh_item"].as_i64()));
    }
    let file = std::fs::File::open(corpus.path(out).join("b.parquet")).unwrap();
    for batch in ParquetRecordBatchReaderBuilder::try_new(file).unwrap().build().unwrap() {
        let batch = batch.unwrap();
        let long = |name: &str, row: usize| {
            let column = batch.column_by_name(name)?.as_primitive::<Int64Type>();
            arrow_array::Array::is_valid(column, row).then(|| column.value(row))
        };
        for row in 0..batch.num_rows() {
            found.insert(long("id", row).unwrap() as usize, (long("nigh_matches", row), long("nigh_item", row)));
        }
    }
    let csv = std::fs::read_to_string(corpus.path(out).join("c.csv")).unwrap();
    let records = csv_records(&csv);
    for fields in &records[1..] {
        let long = |name: &str| {
            let column = records[0].iter().position(|field| field == name)?;
            fields[column].parse().ok()
        };
        found.insert(fields[0].parse().unwrap(), (long("nigh_matches"), long("nigh_item")));
    }
    found
}

/// The fields of the records of a CSV file without quotes within texts.
fn csv_records(csv: &str) -> Vec<Vec<String>> {
    let (mut records, mut is_quoted) = (vec![vec![String::new()]], false);
    for c in csv.trim_end().chars() {
        let record = records.last_mut().unwrap();
        match c {
            '"' => is_quoted = !is_quoted,
            ',' if !is_quoted => record.push(String::new()),
            '\n' if !is_quoted => records.push(vec![String::new()]),
            c => record.last_mut().unwrap().push(c),
        }
    }
    records
}

#[test]
fn an_export_drops_keeps_or_annotates_what_matches() {
    let corpus = QuizCorpus::new();
    let refused = corpus.export("none", &["--matched", "drop"]);
    assert_eq!(refused.code, Some(1));
    assert!(
        refused.stderr.contains("has no tables of decontamination: `nigh run jobs/decontamination.toml --store"),
        "{}",
        refused.stderr
    );
    corpus.run_well("", &[]);
    let numbers = corpus.numbers();
    let mut of_documents: BTreeMap<usize, Vec<(f64, i64)>> = BTreeMap::new();
    for row in corpus.rows("matches", &["doc", "item", "containment"]) {
        of_documents.entry(numbers[&row[0]]).or_default().push((row[2].parse().unwrap(), row[1].parse().unwrap()));
    }
    assert!(of_documents.len() > 8 && of_documents.len() < 40, "{}", of_documents.len());
    let plain = {
        assert_eq!(corpus.export("plain", &[]).code, Some(0));
        exported(&corpus, "plain")
    };
    assert!(plain.len() < DOCUMENTS, "some are duplicates");
    for (what, stays) in [("drop", false), ("only", true)] {
        let ran = corpus.export(what, &["--matched", what, "--card", "--json"]);
        assert_eq!(ran.code, Some(0), "{}", ran.stderr);
        let expected: BTreeSet<usize> =
            plain.keys().copied().filter(|number| of_documents.contains_key(number) == stays).collect();
        assert_eq!(exported(&corpus, what).into_keys().collect::<BTreeSet<_>>(), expected, "{what}");
        let summary: serde_json::Value = serde_json::from_str(&ran.stdout).unwrap();
        assert_eq!(
            (&summary["written"], &summary["matched"]),
            (&expected.len().into(), &of_documents.len().into()),
            "{what}"
        );
        assert!(
            std::fs::read_to_string(corpus.path(what).join("README.md")).unwrap().contains("an item of the reference")
        );
    }
    let ran = corpus.export("annotate", &["--matched", "annotate", "--most", "1000"]);
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    assert!(ran.stdout.contains(&format!("{} of the documents match an item", of_documents.len())), "{}", ran.stdout);
    let annotated = exported(&corpus, "annotate");
    assert_eq!(annotated.len(), DOCUMENTS);
    for (number, (count, best)) in annotated {
        let of_document = of_documents.get(&number).map_or(&[][..], |items| items);
        let largest = of_document.iter().map(|(share, _)| *share).fold(0.0, f64::max);
        let expected = of_document.iter().find(|(share, _)| *share == largest).map(|(_, item)| *item);
        assert_eq!((count, best), (Some(of_document.len() as i64), expected), "{number}");
    }
    // A list of what goes has what matches, too.
    let list = corpus.name("removed.txt");
    let ran = run(&["export", &corpus.name("store"), "--list", &list, "--matched", "drop"]);
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    let gone: BTreeSet<usize> =
        std::fs::read_to_string(&list).unwrap().lines().map(|line| line.parse().unwrap()).collect();
    let expected = (0..DOCUMENTS).filter(|n| !plain.contains_key(n) || of_documents.contains_key(n)).collect();
    assert_eq!(gone, expected);
    for flags in [&["--revisits", "--level", "exact"][..], &["--drop-passages"], &["--level", "paragraph"]] {
        let refused = corpus.export("refused", &[&["--matched", "drop"][..], flags].concat());
        assert_eq!(refused.code, Some(2), "{flags:?}");
        assert!(refused.stderr.contains("--matched chooses among documents as they are"), "{}", refused.stderr);
    }
}
