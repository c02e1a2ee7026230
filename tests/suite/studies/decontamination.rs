//! Documents against a reference: the tables against all n-grams of all pairs, planted leaks, and
//! what an export does with the documents that match.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::Arc;
use std::time::Instant;

use arrow_array::builder::{ListBuilder, StringBuilder};
use arrow_array::cast::AsArray as _;
use arrow_array::types::Int64Type;
use arrow_array::{ArrayRef, Int64Array, RecordBatch, StringArray};
use nigh::records::mix;
use parquet::arrow::ArrowWriter;
use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;

use crate::program::{Ran, job, nigh, rows_of, run, run_well, tables};

const DATE: &str = "2024-01-08";
/// Words of an n-gram.
const GRAM: usize = 5;
const DOCUMENTS: usize = 60;
const QUESTIONS: usize = 40;

fn pick(seed: u64, from: usize) -> usize {
    (mix(seed) % from as u64) as usize
}

/// Some words; the same numbers give the same words.
fn words(seed: usize, count: usize) -> String {
    const WORDS: [&str; 10] = ["Wald", "river", "été", "stone", "light", "ÜBER", "seven", "cold", "moon", "salt"];
    let word =
        |at: usize| format!("{}{}", WORDS[pick((seed * 1000 + at) as u64, 10)], pick((seed + at * 7) as u64, 30));
    (0..count).map(word).collect::<Vec<_>>().join(" ")
}

/// A question with four choices and an answer. Some are short, some are there twice, and all begin
/// with words that many documents have.
struct QuizQuestion {
    question: String,
    choices: Vec<String>,
    answer: String,
}

impl QuizQuestion {
    fn new(number: usize) -> QuizQuestion {
        let same = if number == 30 { 7 } else { number };
        let question = match number {
            11 => "Short one?".to_owned(),
            12 => String::new(),
            _ => format!("Which of the following is true: {}?", words(5000 + same, 6 + same % 9)),
        };
        let choices = (0..4).map(|choice| words(6000 + same * 4 + choice, 1 + same % 3)).collect();
        let answer = if same % 4 == 3 { words(7000 + same, 12) } else { "B".to_owned() };
        match number {
            12 => QuizQuestion { question, choices: vec!["-".into()], answer: "--".into() },
            _ => QuizQuestion { question, choices, answer },
        }
    }

    fn texts(&self) -> Vec<String> {
        vec![self.question.clone(), self.choices.join("\n"), self.answer.clone()]
    }
}

/// Another word in the place of one.
fn reworded(text: &str, at: usize) -> String {
    let changed = |(number, word): (usize, &str)| if number == at { "changed".to_owned() } else { word.to_owned() };
    text.split(' ').enumerate().map(changed).collect::<Vec<_>>().join(" ")
}

/// A document; some have a question, as it is, in other letters and between others, with a word
/// changed, in part, or several.
fn text(number: usize) -> String {
    let question = QuizQuestion::new(number % QUESTIONS);
    let whole = question.texts().join("\n");
    let own = |part: usize, count: usize| words(100 + number * 3 + part, count);
    match number % 10 {
        1 => format!("{}\n{}\n{}", own(0, 200), question.question.to_uppercase().replace(' ', " -- "), own(1, 150)),
        2 => whole,
        3 => format!("{} {} {}", own(0, 20), reworded(&question.question, 8), own(1, 9)),
        4 => format!("{} Which of the following is true: {}", own(0, 30), own(1, 30)),
        5 => (0..QUESTIONS).map(|number| QuizQuestion::new(number).question + "\n").collect(),
        6 => question.question.split(' ').take(9).collect::<Vec<_>>().join(" "),
        7 => format!("nothing here {number}"),
        _ => own(0, 40 + number),
    }
}

/// The words of a text, as the job compares them.
fn folded(text: &str) -> Vec<String> {
    let plain = text.to_lowercase().replace('é', "e").replace('ü', "u");
    let words = plain.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty());
    words.map(str::to_owned).collect()
}

fn grams(texts: &[String], shortest: usize) -> BTreeSet<Vec<String>> {
    let of_text = |text: &String| {
        let words = folded(text);
        let length = if words.len() >= GRAM { GRAM } else { words.len() };
        let grams: Vec<Vec<String>> =
            if length >= shortest { words.windows(length).map(<[String]>::to_vec).collect() } else { Vec::new() };
        grams
    };
    texts.iter().flat_map(of_text).collect()
}

/// Whether a document has these words, one behind the other.
fn has(document: &[String], gram: &[String]) -> bool {
    document.windows(gram.len()).any(|window| window == gram)
}

/// A store with documents, and a benchmark.
struct QuizCorpus {
    folder: tempfile::TempDir,
}

impl QuizCorpus {
    fn new() -> QuizCorpus {
        let corpus = QuizCorpus { folder: tempfile::tempdir().unwrap() };
        std::fs::create_dir(corpus.path("shards")).unwrap();
        std::fs::create_dir(corpus.path("evals")).unwrap();
        let line = |n: usize| serde_json::json!({"id": n, "text": text(n), "n": [n]}).to_string() + "\n";
        let lines: String = (0..25).map(line).collect();
        std::fs::write(corpus.path("shards/a.jsonl"), lines).unwrap();
        let columns: Vec<(&str, ArrayRef)> = vec![
            ("id", Arc::new(Int64Array::from_iter_values(25..45))),
            ("text", Arc::new(StringArray::from_iter_values((25..45).map(text)))),
        ];
        write_parquet(&corpus.path("shards/b.parquet"), columns);
        let row = |n: usize| format!("{n},\"{}\"\n", text(n).replace('"', ""));
        let rows: String = (45..DOCUMENTS).map(row).collect();
        std::fs::write(corpus.path("shards/c.csv"), format!("id,text\n{rows}")).unwrap();

        let half = QUESTIONS / 2;
        let line = |n: usize| {
            let QuizQuestion { question, choices, answer } = QuizQuestion::new(n);
            let choices = serde_json::json!({"text": choices, "label": ["A", 2]});
            let object = serde_json::json!({"key": format!("q{n}"), "question": question, "choices": choices, "x": {"answer": answer}});
            object.to_string() + "\n"
        };
        let lines: String = (0..half).map(line).collect();
        std::fs::write(corpus.path("evals/a.jsonl"), lines + "{not JSON\n").unwrap();
        let mut choices = ListBuilder::new(StringBuilder::new());
        for n in half..QUESTIONS {
            choices.append_value(QuizQuestion::new(n).choices.iter().map(Some));
        }
        let of = |get: fn(QuizQuestion) -> String| -> ArrayRef {
            Arc::new(StringArray::from_iter_values((half..QUESTIONS).map(|n| get(QuizQuestion::new(n)))))
        };
        let columns: Vec<(&str, ArrayRef)> = vec![
            ("key", Arc::new(StringArray::from_iter_values((half..QUESTIONS).map(|n| format!("q{n}"))))),
            ("question", of(|question| question.question)),
            ("choices.text", Arc::new(choices.finish())),
            ("x.answer", of(|question| question.answer)),
            ("subset", Arc::new(Int64Array::from_iter_values(half as i64..QUESTIONS as i64))),
        ];
        write_parquet(&corpus.path("evals/b.parquet"), columns);
        corpus.cluster("store", "shards", &["--week", DATE]);
        corpus
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn name(&self, name: &str) -> String {
        self.path(name).to_str().unwrap().to_owned()
    }

    fn cluster(&self, store: &str, input: &str, flags: &[&str]) {
        let method = ["--id", "id", "--similarity", "0.9", "--verify", "exact"];
        // CSV in a folder is no input by itself.
        let files = ["a.jsonl", "b.parquet", "c.csv"].map(|file| self.name(&format!("shards/{file}")));
        let inputs = if input == "shards" { files.to_vec() } else { vec![self.name(input)] };
        let inputs: Vec<&str> = inputs.iter().map(String::as_str).collect();
        run_well(&[&["add", &self.name(store), "-q", "--input"][..], &inputs, &method, flags].concat());
    }

    /// A job with these lines, besides the columns of the benchmark.
    fn job(&self, lines: &str) -> String {
        let text = format!(
            "[decontamination]\nwords = {GRAM}\nid = \"key\"\ncolumns = [\"question\", \"choices.text\", \"x.answer\"]\n{lines}"
        );
        job(self.folder.path(), &text).to_str().unwrap().to_owned()
    }

    fn run(&self, lines: &str, flags: &[&str]) -> Ran {
        let (job, store, evals) = (self.job(lines), self.name("store"), self.name("evals"));
        run(&[&["run", &job, "-q", "--store", &store, "--against", &evals][..], flags].concat())
    }

    fn run_well(&self, lines: &str, flags: &[&str]) -> BTreeMap<String, Vec<u8>> {
        let ran = self.run(lines, flags);
        assert_eq!(ran.code, Some(0), "{}", ran.stderr);
        tables(&self.path("store/decontamination"))
    }

    /// The rows of a table of the job.
    fn rows(&self, table: &str, columns: &[&str]) -> Vec<Vec<String>> {
        rows_of(&self.path("store/decontamination"), table, columns)
    }

    /// The numbers of documents by their ids in tables.
    fn numbers(&self) -> BTreeMap<String, usize> {
        let rows = rows_of(&crate::program::week(&self.path("store"), DATE), "documents", &["doc", "id"]);
        rows.into_iter().map(|row| (row[0].clone(), row[1].parse().unwrap())).collect()
    }

    fn export(&self, out: &str, flags: &[&str]) -> Ran {
        run(&[&["export", &self.name("store"), "--out", &self.name(out)][..], flags].concat())
    }
}

fn write_parquet(path: &Path, columns: Vec<(&str, ArrayRef)>) {
    let batch = RecordBatch::try_from_iter(columns).unwrap();
    let mut writer = ArrowWriter::try_new(std::fs::File::create(path).unwrap(), batch.schema(), None).unwrap();
    writer.write(&batch).unwrap();
    writer.close().unwrap();
}

/// The items, each with its key and its texts, as the job has them.
fn items(by_column: bool) -> Vec<(String, Vec<String>)> {
    let mut items = Vec::new();
    for number in 0..QUESTIONS {
        let texts = QuizQuestion::new(number).texts();
        let key = format!("q{number}");
        match by_column {
            true => {
                items.extend(texts.into_iter().filter(|text| !text.is_empty()).map(|text| (key.clone(), vec![text])))
            }
            false => items.push((key, texts)),
        }
    }
    items
}

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

#[test]
fn a_reference_without_anything_to_compare_is_an_error() {
    let corpus = QuizCorpus::new();
    let write = |name: &str, text: &str| std::fs::write(corpus.path(name), text).unwrap();
    write("empty.jsonl", "");
    write("short.jsonl", "{\"text\":\"too short\"}\n{\"text\":\"\"}\n{\"text\":\"...\"}\n");
    write("array.jsonl", "[{\"text\":\"a b c d e f g h i j\"}]\n");
    write("other.jsonl", "{\"prompt\":\"a b c d e f g h i j\",\"n\":1}\n");
    write("bad.jsonl", "{\"text\":\n");
    write("null.jsonl", "{\"text\":null}\n{\"text\":7}\n");
    let store = corpus.name("store");
    for (file, wanted) in [
        ("empty.jsonl", "of its 0 items 0 have no words"),
        ("short.jsonl", "of its 3 items 2 have no words and 1 have fewer than 8 words (`shortest`"),
        ("array.jsonl", "array.jsonl of the reference is a JSON array"),
        ("other.jsonl", "has none of the columns `text`: it has `n`, `prompt`"),
        ("bad.jsonl", "bad.jsonl of the reference has 1 record, of which none can be read"),
        ("null.jsonl", "of its 2 items 2 have no words"),
        ("nothing.jsonl", "no input matches"),
        ("store", "is the store itself"),
    ] {
        // Without a job: its defaults.
        let ran = run(&["run", "-q", "--store", &store, "--against", &corpus.name(file)]);
        assert_eq!(ran.code, Some(1), "{file}: {}{}", ran.stdout, ran.stderr);
        assert!(ran.stderr.contains(wanted), "{file}: {}", ran.stderr);
    }
    for (lines, wanted) in [
        ("columns = [\"question\", \"anwser\"]\n", "no file of the reference has the column `anwser`"),
        ("columns = [\"question\"]\nid = \"nr\"\n", "no file of the reference has the column `nr`"),
    ] {
        let job = job(corpus.folder.path(), &format!("[decontamination]\n{lines}"));
        let ran = run(&["run", job.to_str().unwrap(), "-q", "--store", &store, "--against", &corpus.name("evals")]);
        assert_eq!(ran.code, Some(1), "{lines}");
        assert!(ran.stderr.contains(wanted) && ran.stderr.contains("`question`"), "{}", ran.stderr);
    }
    let nothing = run(&["run", &corpus.job(""), "-q", "--store", &store]);
    assert!(nothing.code == Some(1) && nothing.stderr.contains("give --against FILES"), "{}", nothing.stderr);
    for arguments in [
        &["run", "jobs/passages.toml", "--store", &store, "--against", "evals"][..],
        &["run", "jobs/cluster.toml", "--store", &store, "--against", "evals"],
        &["add", &store, "--against", "evals"],
    ] {
        let refused = run(arguments);
        assert_eq!(refused.code, Some(2), "{arguments:?}");
        assert!(refused.stderr.contains("--against"), "{}", refused.stderr);
    }
    assert!(!corpus.path("store/decontamination/matches").exists(), "a failed run leaves no table");
}

#[test]
fn the_documents_of_a_batch_against_another_store() {
    let corpus = QuizCorpus::new();
    // The second batch has one text of the first one with other words around it, and a new one.
    let line = |id: &str, text: &str| serde_json::json!({"id": id, "text": text}).to_string() + "\n";
    let batch = line("x", &format!("{} {}", text(8), words(9000, 3))) + &line("y", &words(9001, 50));
    std::fs::write(corpus.path("batch.jsonl"), batch).unwrap();
    corpus.cluster("store", "batch.jsonl", &["--week", "2024-02-01"]);
    // The reference is a store of its own.
    let others = line("p", &text(8)) + &line("q", &words(9001, 48)) + &line("r", &text(9)) + &line("s", "one two");
    std::fs::write(corpus.path("others.jsonl"), others).unwrap();
    corpus.cluster("others", "others.jsonl", &["--week", DATE]);
    let store = corpus.name("store");
    let run_job = |lines: &str| {
        let job = job(corpus.folder.path(), &format!("[decontamination]\nsimilarity = 0.8\n{lines}"));
        run(&["run", job.to_str().unwrap(), "-q", "--store", &store, "--against", &corpus.name("others"), "--json"])
    };
    let summary = |ran: &Ran| serde_json::from_str::<serde_json::Value>(&ran.stdout).unwrap();
    let all = run_job("");
    assert_eq!(all.code, Some(0), "{}", all.stderr);
    assert_eq!(summary(&all)["documents"], DOCUMENTS + 2);
    let rows = corpus.rows("matches", &["doc", "item", "containment", "similarity"]);
    // Documents 8, 9, x and y; no item is a document of the store.
    assert_eq!(rows.len(), 4, "{rows:?}");
    assert_eq!(rows.iter().filter(|row| row[2] == "1" && row[3] == "1").count(), 2, "{rows:?}");
    assert!(rows.iter().all(|row| row[3] != "null" && row[3].parse::<f64>().unwrap() >= 0.8), "{rows:?}");
    let items = corpus.rows("items", &["id", "compared", "documents"]);
    let items: Vec<[&str; 3]> = items.iter().map(|row| [&row[0][..], &row[1], &row[2]]).collect();
    // Of two words no n-gram is made; they are one shingle, which wraps around.
    assert_eq!(items, [["p", "true", "2"], ["q", "true", "1"], ["r", "true", "1"], ["s", "true", "0"]]);

    let new = run_job("since = \"2024-02-01\"\n");
    assert_eq!((summary(&new)["documents"].as_u64(), summary(&new)["with_matches"].as_u64()), (Some(2), Some(2)));
    let refused = corpus.export("all", &["--matched", "drop"]);
    assert_eq!(refused.code, Some(1));
    assert!(refused.stderr.contains("there are 62 documents, and 2 others were compared"), "{}", refused.stderr);
    let ran = corpus.export("new", &["--matched", "only", "--since", "2024-02-01"]);
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    let written = std::fs::read_to_string(corpus.path("new/batch.jsonl")).unwrap();
    assert_eq!(written.lines().count(), 2, "{written}");
    // What was not compared is no match, and no document without one.
    corpus.cluster("store", "others.jsonl", &["--week", "2024-03-01"]);
    let refused = corpus.export("later", &["--matched", "drop"]);
    assert!(refused.stderr.contains("has the decontamination of week 2024-02-01"), "{}", refused.stderr);
}

#[test]
fn a_store_as_a_reference_is_its_documents_as_they_are_now() {
    let corpus = QuizCorpus::new();
    let line = |id: &str, part: usize| serde_json::json!({"id": id, "text": words(9000 + part, 30)}).to_string() + "\n";
    let write = |name: &str, text: String| std::fs::write(corpus.path(name), text).unwrap();
    write("first.jsonl", line("deleted", 1) + &line("replaced", 2) + &line("stays", 3));
    write("second.jsonl", line("replaced", 4) + &line("new", 5));
    // A file of which the job has rejected all.
    write("bad.jsonl", "not JSON\n".to_owned());
    let others = corpus.name("others");
    let job = job(corpus.folder.path(), "[cluster]\nmax-reject-share = 1.0\n[cluster.read.columns]\nid = \"id\"\n");
    for (week, files) in [("2024-01-08", &["first.jsonl"][..]), ("2024-01-15", &["second.jsonl", "bad.jsonl"])] {
        let files: Vec<String> = files.iter().map(|file| corpus.name(file)).collect();
        let files: Vec<&str> = files.iter().map(String::as_str).collect();
        let flags = ["add", &others, job.to_str().unwrap(), "-q", "--week", week, "--input"];
        run_well(&[&flags[..], &files].concat());
    }
    run_well(&["delete", "-q", "--store", &others, "--id", "deleted"]);
    let arguments = ["run", "-q", "--store", &corpus.name("store"), "--against", &others];
    run_well(&arguments);
    let items = corpus.rows("items", &["id", "record"]);
    let items: BTreeSet<[&str; 2]> = items.iter().map(|row| [&row[0][..], &row[1]]).collect();
    // The records keep their numbers in their files.
    assert_eq!(items, BTreeSet::from([["stays", "2"], ["replaced", "0"], ["new", "1"]]));
    // A document that is not where it was is missed.
    write("second.jsonl", line("new", 5));
    let failed = run(&arguments);
    assert_eq!(failed.code, Some(1), "{}{}", failed.stdout, failed.stderr);
    assert!(failed.stderr.contains("second.jsonl") && failed.stderr.contains("Put the file back"), "{}", failed.stderr);
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

#[test]
fn a_reference_that_is_not_read_whole_is_an_error() {
    let corpus = QuizCorpus::new();
    let store = corpus.name("store");
    let texts: Vec<String> = (0..400).map(|number| words(number, 30)).collect();
    let lines: String = texts.iter().map(|text| serde_json::json!({ "text": text }).to_string() + "\n").collect();
    let columns: Vec<(&str, ArrayRef)> = vec![("text", Arc::new(StringArray::from(texts.clone())))];
    let batch = RecordBatch::try_from_iter(columns).unwrap();
    let mut writer = arrow_ipc::writer::StreamWriter::try_new(Vec::new(), &batch.schema()).unwrap();
    (0..20).for_each(|number| writer.write(&batch.slice(number * 20, 20)).unwrap());
    writer.finish().unwrap();
    let arrow = writer.into_inner().unwrap();
    let gzip = |bytes: &[u8]| {
        use std::io::Write as _;
        let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::default());
        gzip.write_all(bytes).unwrap();
        gzip.finish().unwrap()
    };
    let zstd = |bytes: &[u8]| zstd::bulk::compress(bytes, 1).unwrap();
    let half = |bytes: Vec<u8>| bytes[..bytes.len() / 2].to_vec();
    let mut zeroed = arrow.clone();
    zeroed[..20].fill(0);
    let middle = arrow.len() / 2;
    let csv = format!("text\n{}\n", texts.join("\n"));
    std::fs::write(corpus.path("good.jsonl"), &lines).unwrap();
    let early = "could not be read, for it ends early";
    for (name, bytes, wanted) in [
        ("zeroed.arrow", zeroed, "is damaged at its beginning"),
        ("cut.arrow", half(arrow.clone()), early),
        ("cut.arrow.zst", [zstd(&arrow[..middle]), half(zstd(&arrow[middle..]))].concat(), early),
        ("cut.jsonl.gz", half(gzip(lines.as_bytes())), early),
        ("cut.csv.gz", half(gzip(csv.as_bytes())), early),
        ("junk.arrow", [&arrow[..], b"no stream at all"].concat(), "16 B of"),
        ("other.arrow", Vec::new(), "is damaged at its beginning"),
        ("other.csv", b"prompt\none two\n".to_vec(), "has no column `text` (its columns: prompt)"),
    ] {
        std::fs::write(corpus.path(name), bytes).unwrap();
        let against = [corpus.name("good.jsonl"), corpus.name(name)];
        let flags = ["-q", "--store", &store, "--against", &against[0], &against[1]];
        let failed = run(&[&["run"][..], &flags].concat());
        assert_eq!(failed.code, Some(1), "{name}: {}{}", failed.stdout, failed.stderr);
        assert!(failed.stderr.contains(wanted) && failed.stderr.contains(&against[1]), "{name}: {}", failed.stderr);
        if name.starts_with("cut") {
            assert!(failed.stderr.contains("set max-unread-share in [decontamination]"), "{}", failed.stderr);
            let job = job(corpus.folder.path(), "[decontamination]\nmax-unread-share = 1.0\n");
            run_well(&[&["run", job.to_str().unwrap()][..], &flags].concat());
        }
    }
}

#[test]
fn bytes_of_parquet_that_say_nothing_of_text_are_texts_of_a_reference() {
    let corpus = QuizCorpus::new();
    let texts: Vec<String> = (0..10).map(text).collect();
    let bytes: Vec<&[u8]> = texts.iter().map(|text| text.as_bytes()).collect();
    let columns: Vec<(&str, ArrayRef)> = vec![
        ("binary", Arc::new(arrow_array::BinaryArray::from(bytes.clone()))),
        ("text", Arc::new(StringArray::from(texts.clone()))),
    ];
    write_parquet(&corpus.path("bytes.parquet"), columns);
    let matches = |column: &str| {
        let job = job(corpus.folder.path(), &format!("[decontamination]\ncolumns = [\"{column}\"]\n"));
        let [store, against] = [corpus.name("store"), corpus.name("bytes.parquet")];
        run_well(&["run", job.to_str().unwrap(), "-q", "--store", &store, "--against", &against]);
        corpus.rows("matches", &["doc", "item", "containment"])
    };
    let of_texts = matches("text");
    assert!(!of_texts.is_empty());
    assert_eq!(matches("binary"), of_texts);
}
