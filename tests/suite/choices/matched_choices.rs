//! What matches a reference, beside an order by columns that are read from the inputs; and where
//! words are those of source code.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use serde_json::{Value, json};

use crate::choices::chosen::{CHOICES, DATE, RECORDS, cluster, clusters, record, write};
use crate::choices::chosen_at_export::ids;
use crate::program::{job, rows_of, run_well, week};

/// The numbers of the documents that match.
fn matched(store: &Path, numbers: &BTreeMap<i64, usize>) -> BTreeSet<usize> {
    let rows = rows_of(&store.join("decontamination"), "matches", &["doc"]);
    rows.into_iter().map(|row| numbers[&row[0].parse().unwrap()]).collect()
}

#[test]
fn matches_go_from_what_an_order_by_columns_keeps() {
    let folder = tempfile::tempdir().unwrap();
    let (folder, store) = (folder.path(), folder.path().join("store"));
    let store_name = store.to_str().unwrap();
    let reference = folder.join("reference.jsonl");
    let line = |n: usize| json!({"text": record(n)["text"]}).to_string() + "\n";
    std::fs::write(&reference, [3, 25, 67].map(line).concat()).unwrap();
    for format in ["jsonl", "parquet"] {
        let input = write(folder, format, 0..RECORDS);
        cluster(folder, "\"first\"", "", &input, &[]);
        run_well(&["run", "-q", "--store", store_name, "--against", reference.to_str().unwrap()]);
        let (clusters, docs, _) = clusters(&store, DATE);
        let matched = matched(&store, &docs.iter().map(|(n, doc)| (*doc, *n)).collect());
        assert!([3, 25, 67].iter().all(|n| matched.contains(n)) && matched.len() < RECORDS / 2, "{matched:?}");
        for (number, choice) in CHOICES.iter().enumerate() {
            let kept = choice.kept(&clusters, &docs);
            let (dropped, only): (BTreeSet<usize>, BTreeSet<usize>) = kept.iter().partition(|n| !matched.contains(n));
            for (what, expected) in [("drop", &dropped), ("only", &only), ("annotate", &kept)] {
                let flags = [choice.flags, &["--matched", what]].concat();
                if what != "annotate" {
                    let list = folder.join(format!("{format}-{number}-{what}.txt"));
                    let arguments = ["export", store_name, "--list", list.to_str().unwrap(), "--what", "kept"];
                    run_well(&[&arguments[..], &flags].concat());
                    assert_eq!(ids(&list), *expected, "{format} {flags:?}");
                }
                let out = folder.join(format!("{format}-{number}-{what}"));
                let arguments = ["export", store_name, "--out", out.to_str().unwrap(), "--format", "jsonl"];
                run_well(&[&arguments[..], &flags].concat());
                let file =
                    std::fs::read_dir(&out).unwrap().map(|file| file.unwrap().path()).find(|path| path.is_file());
                let text = std::fs::read_to_string(file.unwrap()).unwrap();
                let rows: Vec<Value> = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
                let written: BTreeSet<usize> = rows.iter().map(|row| row["id"].as_u64().unwrap() as usize).collect();
                assert_eq!(written, *expected, "{format} {flags:?}");
                for row in rows.iter().filter(|_| what == "annotate") {
                    let id = row["id"].as_u64().unwrap() as usize;
                    assert_eq!(row["nigh_matches"].as_u64().unwrap() > 0, matched.contains(&id), "{row}");
                }
            }
        }
    }
}

/// A function of source code.
fn function(n: usize) -> String {
    let lines = (0..8).map(|line| format!("    total_{n} += item_{line}[{n}] * (rate - {line}); // step {}", n * line));
    format!("def f_{n}(rate):\n{}\n    return total_{n}\n", lines.collect::<Vec<_>>().join("\n"))
}

/// Program `n`: some have a function of the reference, written in another way.
fn program(n: usize) -> String {
    let other = |part: usize| function(1000 + n * 7 + part);
    match n % 4 {
        0 => format!("{}{}", other(0), other(1)),
        1 => format!("{}{}{}", other(0), function(n / 4), other(1)),
        2 => format!("{}\n{}", function(n / 4).to_uppercase().replace("    ", "\t\t").replace('[', " [ "), other(2)),
        _ => format!("{}{}", function(n / 4).replace(['*', '+', '[', '('], "-"), other(3)),
    }
}

/// The words of source code, without case.
fn code(text: &str) -> Vec<String> {
    let (mut words, mut word) = (Vec::new(), String::new());
    for c in text.to_lowercase().chars() {
        if c.is_alphanumeric() || c == '_' {
            word.push(c);
            continue;
        }
        words.push(std::mem::take(&mut word));
        words.extend((!c.is_whitespace()).then(|| c.to_string()));
    }
    words.push(word);
    words.retain(|word| !word.is_empty());
    words
}

#[test]
fn source_code_matches_by_its_own_words() {
    const GRAM: usize = 9;
    let folder = tempfile::tempdir().unwrap();
    let (folder, store) = (folder.path(), folder.path().join("store"));
    let store_name = store.to_str().unwrap();
    let write = |name: &str, texts: Vec<String>| {
        let lines = texts.into_iter().enumerate().map(|(id, text)| json!({"id": id, "text": text}).to_string() + "\n");
        std::fs::write(folder.join(name), lines.collect::<String>()).unwrap();
        folder.join(name).to_str().unwrap().to_owned()
    };
    let programs: Vec<String> = (0..40).map(program).collect();
    let reference: Vec<String> = (0..10).map(function).collect();
    let (input, against) = (write("programs.jsonl", programs.clone()), write("reference.jsonl", reference.clone()));
    let columns = ["--id", "id", "--text", "text", "--words", "code", "--similarity", "0.9", "--verify", "exact"];
    run_well(&[&["run", "-q", "--week", DATE, "--store", store_name, "--input", &input], &columns[..]].concat());
    let job = job(folder, &format!("[decontamination]\nwords = {GRAM}\ncontainment = 0.6\n"));
    run_well(&["run", job.to_str().unwrap(), "-q", "--store", store_name, "--against", &against]);

    let grams = |text: &str| -> BTreeSet<Vec<String>> { code(text).windows(GRAM).map(<[String]>::to_vec).collect() };
    let mut expected = BTreeSet::new();
    for (n, program) in programs.iter().enumerate() {
        let of_program = grams(program);
        for (item, function) in reference.iter().enumerate() {
            let of_item = grams(function);
            let shared = of_item.intersection(&of_program).count();
            if shared as f64 / of_item.len() as f64 >= 0.6 {
                expected.insert((n, item, shared.to_string()));
            }
        }
    }
    let numbers: BTreeMap<String, usize> = rows_of(&week(&store, DATE), "documents", &["doc", "id"])
        .into_iter()
        .map(|row| (row[0].clone(), row[1].parse().unwrap()))
        .collect();
    let rows = rows_of(&store.join("decontamination"), "matches", &["doc", "item", "grams"]);
    let found: BTreeSet<(usize, usize, String)> =
        rows.iter().map(|row| (numbers[&row[0]], row[1].parse().unwrap(), row[2].clone())).collect();
    assert_eq!(found, expected);
    // As it is and in another layout; with other symbols it is other code.
    let of: BTreeSet<usize> = found.iter().map(|(n, ..)| *n).collect();
    assert_eq!(of, (0..40).filter(|n| matches!(n % 4, 1 | 2)).collect());
}
