//! Documents against a reference: the tables against all n-grams of all pairs, planted leaks, and
//! what an export does with the documents that match.

mod exported;
mod quiz;
mod references;

use std::collections::{BTreeMap, BTreeSet};
use std::process::Stdio;
use std::time::Instant;

use self::quiz::{DATE, DOCUMENTS, GRAM, QUESTIONS, QuizCorpus, QuizQuestion, folded, grams, has, items, text};
use crate::program::{nigh, run_well, tables};

#[test]
fn matches_of_a_benchmark_are_those_of_all_n_grams() {
    let corpus = QuizCorpus::new();
    let numbers = corpus.numbers();
    assert_eq!(numbers.len(), DOCUMENTS);
    for (by_column, shortest, share, lines) in [
        (false, GRAM, 0.7, ""),
        (false, 2, 0.4, "shortest = 2\ncontainment = 0.4\n"),
        (true, GRAM, 1.0, "item = \"column\"\ncontainment = 1\n"),
        (true, 1, 0.05, "item = \"column\"\nshortest = 1\ncontainment = 0.05\n"),
    ] {
        corpus.run_well(lines, &[]);
        let items = items(by_column);
        let mut expected = BTreeSet::new();
        let mut first: BTreeMap<Vec<Vec<String>>, usize> = BTreeMap::new();
        let documents: Vec<Vec<String>> = (0..DOCUMENTS).map(|number| folded(&text(number))).collect();
        for (number, (_, texts)) in items.iter().enumerate() {
            let all = grams(texts, shortest);
            if all.is_empty()
                || *first.entry(texts.iter().map(|text| folded(text)).collect()).or_insert(number) < number
            {
                continue;
            }
            for (document, words) in documents.iter().enumerate() {
                let count = all.iter().filter(|gram| has(words, gram)).count();
                if count > 0 && count as f64 / all.len() as f64 >= share {
                    expected.insert((
                        document,
                        number,
                        count.to_string(),
                        (count as f64 / all.len() as f64).to_string(),
                    ));
                }
            }
        }
        assert!(expected.len() > 20, "{lines}: {}", expected.len());
        let rows = corpus.rows("matches", &["doc", "item", "grams", "containment"]);
        let found: BTreeSet<(usize, usize, String, String)> = rows
            .iter()
            .map(|row| (numbers[&row[0]], row[1].parse().unwrap(), row[2].clone(), row[3].clone()))
            .collect();
        assert_eq!(found, expected, "{lines}");
        assert_eq!(rows.len(), found.len());
        // The items say of how many documents each is a part, and which they are.
        let of_items = corpus.rows("items", &["item", "id", "first", "compared", "documents", "file", "record"]);
        assert_eq!(of_items.len(), items.len(), "{lines}");
        for (number, row) in of_items.iter().enumerate() {
            let (key, texts) = &items[number];
            assert_eq!((&row[0], &row[1]), (&number.to_string(), key));
            let is_compared = !grams(texts, shortest).is_empty();
            assert_eq!(row[3], is_compared.to_string(), "{lines} {number}");
            let item: usize = row[2].parse().unwrap();
            let documents = expected.iter().filter(|(_, of, ..)| *of == item).count();
            assert_eq!(row[4], documents.to_string(), "{lines} {number}");
            let question: usize = key[1..].parse().unwrap();
            let (file, record) = if question < 20 { ("a.jsonl", question) } else { ("b.parquet", question - 20) };
            assert!(row[5].ends_with(file) && row[6] == record.to_string(), "{row:?}");
        }
        let show = ["show", &corpus.name("store"), "--job", "decontamination", "--json"];
        let summary: serde_json::Value = serde_json::from_str(&run_well(&show).stdout).unwrap();
        let matched: BTreeSet<usize> = expected.iter().map(|(document, ..)| *document).collect();
        assert_eq!(summary["with_matches"], matched.len());
        assert_eq!(summary["matches"], expected.len());
        assert_eq!((&summary["items"]["items"], &summary["items"]["bad"]), (&items.len().into(), &1.into()));
        let counts = ["compared", "same", "short", "empty"].map(|name| summary["items"][name].as_u64().unwrap());
        assert_eq!(counts.iter().sum::<u64>(), items.len() as u64, "{counts:?}");
        assert!(counts[1] > 0, "{counts:?}");
        assert_eq!(summary["documents"], DOCUMENTS);
    }
}

#[test]
fn folded_words_are_no_characters() {
    let corpus = QuizCorpus::new();
    let matches = || {
        let numbers = corpus.numbers();
        let rows = corpus.rows("matches", &["doc", "item", "grams", "containment"]).into_iter();
        rows.map(|row| (numbers[&row[0]], row[1..].to_vec())).collect::<BTreeSet<_>>()
    };
    corpus.run_well("", &[]);
    let expected = matches();
    assert!(expected.len() > 20, "{}", expected.len());
    std::fs::remove_dir_all(corpus.path("store")).unwrap();
    corpus.cluster("store", "shards", &["--week", DATE, "--words", "characters"]);
    corpus.run_well("", &[]);
    assert_eq!(matches(), expected);
    let refused = corpus.run("similarity = 0.8\n", &[]);
    assert_eq!(refused.code, Some(1), "{}", refused.stderr);
    assert!(refused.stderr.contains("form = \"store\""), "{}", refused.stderr);
    corpus.run_well("similarity = 0.8\nform = \"store\"\n", &[]);
}

#[test]
fn planted_leaks_are_found_and_nothing_else() {
    let corpus = QuizCorpus::new();
    corpus.run_well("item = \"column\"\n", &[]);
    let numbers = corpus.numbers();
    let questions: Vec<String> = corpus.rows("items", &["id"]).into_iter().map(|row| row[0].clone()).collect();
    let mut found: BTreeSet<(usize, usize)> = BTreeSet::new();
    for row in corpus.rows("matches", &["doc", "item"]) {
        let question = questions[row[1].parse::<usize>().unwrap()][1..].parse().unwrap();
        found.insert((numbers[&row[0]], question));
    }
    for number in 0..DOCUMENTS {
        let question = number % QUESTIONS;
        // The thirtieth is the seventh again.
        let question = if question == 30 { 7 } else { question };
        if matches!(number % 10, 1 | 2) && !matches!(question, 11 | 12) {
            assert!(found.contains(&(number, question)), "{number}: {}", text(number));
        }
        if matches!(number % 10, 0 | 4 | 7 | 8 | 9) {
            assert!(!found.iter().any(|(document, _)| *document == number), "{number}: {}", text(number));
        }
    }
    // The place of a leak in a long document is that of the question.
    let rows = corpus.rows("matches", &["doc", "item", "word", "words", "offset", "bytes"]);
    let row = rows.iter().find(|row| numbers[&row[0]] == 1).unwrap();
    let [word, words, offset, bytes] = [2, 3, 4, 5].map(|column| row[column].parse::<usize>().unwrap());
    let (document, question) = (text(1), QuizQuestion::new(1).question);
    assert_eq!((word, folded(&question).len()), (200, words));
    assert_eq!(folded(&document[offset..offset + bytes]), folded(&question));
}

#[test]
fn workers_processes_and_memory_do_not_change_a_byte_of_matches() {
    let corpus = QuizCorpus::new();
    let little = corpus.path("little.toml");
    // A slice of 64 KiB has a part of the reference.
    std::fs::write(&little, "memory = \"64KiB\"\n").unwrap();
    let lines = "shortest = 2\ncontainment = 0.3\npassage = 9\nsimilarity = 0.2\n";
    let one = corpus.run_well(lines, &["--workers", "1"]);
    assert!(one.values().map(Vec::len).sum::<usize>() > 2000, "{:?}", one.keys());
    for flags in [
        &["--workers", "2"][..],
        &["--workers", "4"],
        &["--workers", "1", "--processes", "2"],
        &["--workers", "2", "--processes", "2"],
        &["--workers", "2", "--config", little.to_str().unwrap()],
    ] {
        assert!(corpus.run_well(lines, flags) == one, "{flags:?}");
    }
    let said = corpus.run(lines, &[]).stdout;
    assert!(
        said.contains("60 documents against 40 items of a reference") && said.contains("by similarity 0.2"),
        "{said}"
    );
}

#[test]
fn a_run_killed_at_any_moment_leaves_the_former_tables_or_the_new_ones() {
    let corpus = QuizCorpus::new();
    let (former, new) = ("containment = 1\n", "containment = 0.3\npassage = 6\n");
    let begun = Instant::now();
    let new_tables = corpus.run_well(new, &[]);
    let whole = begun.elapsed();
    let former_tables = corpus.run_well(former, &[]);
    assert!(former_tables != new_tables);
    let folder = corpus.path("store/decontamination");
    let mut is_former = 0;
    for (round, processes) in (0..10).zip(["1", "2"].into_iter().cycle()) {
        let job = corpus.job(new);
        let arguments = ["run", &job, "-q", "--store", &corpus.name("store"), "--against", &corpus.name("evals")];
        let mut child = nigh(&[&arguments[..], &["--workers", "2", "--processes", processes]].concat())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        std::thread::sleep(whole * round / 8);
        child.kill().unwrap();
        child.wait().unwrap();
        let found = tables(&folder);
        is_former += u32::from(found == former_tables);
        if found != former_tables {
            assert!(found == new_tables, "round {round}");
            assert!(corpus.run_well(former, &[]) == former_tables);
        }
    }
    assert!(is_former > 0, "no kill came before the end");
    assert!(corpus.run_well(new, &[]) == new_tables);
}
