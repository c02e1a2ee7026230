//! A store with documents and a benchmark of questions, some of which the documents have; and the
//! n-grams of both.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use arrow_array::builder::{ListBuilder, StringBuilder};
use arrow_array::{ArrayRef, Int64Array, RecordBatch, StringArray};
use nigh::records::mix;
use parquet::arrow::ArrowWriter;

use crate::program::{Ran, job, rows_of, run, run_well, tables};

pub const DATE: &str = "2024-01-08";
/// Words of an n-gram.
pub const GRAM: usize = 5;
pub const DOCUMENTS: usize = 60;
pub const QUESTIONS: usize = 40;

fn pick(seed: u64, from: usize) -> usize {
    (mix(seed) % from as u64) as usize
}

/// Some words; the same numbers give the same words.
pub fn words(seed: usize, count: usize) -> String {
    const WORDS: [&str; 10] = ["Wald", "river", "été", "stone", "light", "ÜBER", "seven", "cold", "moon", "salt"];
    let word =
        |at: usize| format!("{}{}", WORDS[pick((seed * 1000 + at) as u64, 10)], pick((seed + at * 7) as u64, 30));
    (0..count).map(word).collect::<Vec<_>>().join(" ")
}

/// A question with four choices and an answer. Some are short, some are there twice, and all begin
/// with words that many documents have.
pub struct QuizQuestion {
    pub question: String,
    pub choices: Vec<String>,
    pub answer: String,
}

impl QuizQuestion {
    pub fn new(number: usize) -> QuizQuestion {
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

    pub fn texts(&self) -> Vec<String> {
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
pub fn text(number: usize) -> String {
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
pub fn folded(text: &str) -> Vec<String> {
    let plain = text.to_lowercase().replace('é', "e").replace('ü', "u");
    let words = plain.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty());
    words.map(str::to_owned).collect()
}

pub fn grams(texts: &[String], shortest: usize) -> BTreeSet<Vec<String>> {
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
pub fn has(document: &[String], gram: &[String]) -> bool {
    document.windows(gram.len()).any(|window| window == gram)
}

/// A store with documents, and a benchmark.
pub struct QuizCorpus {
    pub folder: tempfile::TempDir,
}

impl QuizCorpus {
    pub fn new() -> QuizCorpus {
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

    pub fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    pub fn name(&self, name: &str) -> String {
        self.path(name).to_str().unwrap().to_owned()
    }

    pub fn cluster(&self, store: &str, input: &str, flags: &[&str]) {
        let method = ["--id", "id", "--similarity", "0.9", "--verify", "exact"];
        // CSV in a folder is no input by itself.
        let files = ["a.jsonl", "b.parquet", "c.csv"].map(|file| self.name(&format!("shards/{file}")));
        let inputs = if input == "shards" { files.to_vec() } else { vec![self.name(input)] };
        let inputs: Vec<&str> = inputs.iter().map(String::as_str).collect();
        run_well(&[&["add", &self.name(store), "-q", "--input"][..], &inputs, &method, flags].concat());
    }

    /// A job with these lines, besides the columns of the benchmark.
    pub fn job(&self, lines: &str) -> String {
        let text = format!(
            "[decontamination]\nwords = {GRAM}\nid = \"key\"\ncolumns = [\"question\", \"choices.text\", \"x.answer\"]\n{lines}"
        );
        job(self.folder.path(), &text).to_str().unwrap().to_owned()
    }

    pub fn run(&self, lines: &str, flags: &[&str]) -> Ran {
        let (job, store, evals) = (self.job(lines), self.name("store"), self.name("evals"));
        run(&[&["run", &job, "-q", "--store", &store, "--against", &evals][..], flags].concat())
    }

    pub fn run_well(&self, lines: &str, flags: &[&str]) -> BTreeMap<String, Vec<u8>> {
        let ran = self.run(lines, flags);
        assert_eq!(ran.code, Some(0), "{}", ran.stderr);
        tables(&self.path("store/decontamination"))
    }

    /// The rows of a table of the job.
    pub fn rows(&self, table: &str, columns: &[&str]) -> Vec<Vec<String>> {
        rows_of(&self.path("store/decontamination"), table, columns)
    }

    /// The numbers of documents by their ids in tables.
    pub fn numbers(&self) -> BTreeMap<String, usize> {
        let rows = rows_of(&crate::program::week(&self.path("store"), DATE), "documents", &["doc", "id"]);
        rows.into_iter().map(|row| (row[0].clone(), row[1].parse().unwrap())).collect()
    }

    pub fn export(&self, out: &str, flags: &[&str]) -> Ran {
        run(&[&["export", &self.name("store"), "--out", &self.name(out)][..], flags].concat())
    }
}

pub fn write_parquet(path: &Path, columns: Vec<(&str, ArrayRef)>) {
    let batch = RecordBatch::try_from_iter(columns).unwrap();
    let mut writer = ArrowWriter::try_new(std::fs::File::create(path).unwrap(), batch.schema(), None).unwrap();
    writer.write(&batch).unwrap();
    writer.close().unwrap();
}

/// The items, each with its key and its texts, as the job has them.
pub fn items(by_column: bool) -> Vec<(String, Vec<String>)> {
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
