//! Records with columns, what a choice by these columns keeps of some of them, and stores of them.

use std::cmp::Ordering;
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use arrow_array::{
    ArrayRef, BooleanArray, Date32Array, Float64Array, Int64Array, RecordBatch, StringArray, StructArray,
};
use parquet::arrow::ArrowWriter;
use serde_json::{Value, json};

use crate::program::{booleans, job, longs, run_well, texts, week};

pub(crate) const DATE: &str = "2024-01-08";
pub(crate) const FAMILIES: usize = 20;
pub(crate) const RECORDS: usize = 160;

/// Something of record `n` that looks random.
fn random(n: usize, salt: usize) -> usize {
    (n * 2_654_435_761 + salt * 40_503).wrapping_mul(2_246_822_519) >> 13
}

/// Record `n`: of family `n % FAMILIES`, with columns that have ties and nulls.
pub(crate) fn record(n: usize) -> Value {
    let word = |place: usize| match place {
        70 => format!("own{n}"),
        _ => format!("w{}", ((n % FAMILIES + 1) * 7919 + place * 104_729) % 99_991),
    };
    let text = (0..140 + random(n, 1) % 4).map(word).collect::<Vec<_>>().join(" ");
    let score = match random(n, 2) % 6 {
        0 => Value::Null,
        1 => json!(0.5),
        2 => json!(-1.25),
        other => json!(other as f64),
    };
    let source = [json!("a"), json!("b"), json!("c"), Value::Null][random(n, 3) % 4].clone();
    let flag = [json!(true), json!(false), Value::Null][random(n, 4) % 3].clone();
    let day = match random(n, 5) % 5 {
        0 => Value::Null,
        day => json!(format!("20{:02}-03-{:02}", 10 + day, 1 + random(n, 6) % 2)),
    };
    json!({"id": n, "text": text, "meta": {"score": score}, "source": source, "flag": flag, "day": day})
}

/// The value of a column of record `n`; none for null.
pub(crate) fn value(n: usize, column: &str) -> Option<Value> {
    let record = record(n);
    let value = match column {
        "length" => json!(record["text"].as_str().unwrap().len()),
        "words" => json!(record["text"].as_str().unwrap().split(' ').count()),
        "meta.score" => record["meta"]["score"].clone(),
        column => record[column].clone(),
    };
    Some(value).filter(|value| !value.is_null())
}

/// A term of an order, as a person would say it.
#[derive(Clone, Copy)]
pub(crate) enum SpokenTerm {
    Up(&'static str),
    Down(&'static str),
    In(&'static str, &'static [&'static str]),
}

/// Compares two records.
fn compared(a: usize, b: usize, terms: &[SpokenTerm]) -> Ordering {
    let of = |term: &SpokenTerm| {
        let column = match term {
            SpokenTerm::Up(column) | SpokenTerm::Down(column) | SpokenTerm::In(column, _) => column,
        };
        match (value(a, column), value(b, column)) {
            (None, None) => Ordering::Equal,
            (None, _) => Ordering::Greater,
            (_, None) => Ordering::Less,
            (Some(a), Some(b)) => match term {
                SpokenTerm::Up(_) => by_value(&a, &b),
                SpokenTerm::Down(_) => by_value(&b, &a),
                SpokenTerm::In(_, listed) => {
                    let place = |value: &Value| listed.iter().position(|one| value == one).unwrap_or(usize::MAX);
                    place(&a).cmp(&place(&b))
                }
            },
        }
    };
    terms.iter().map(of).find(|order| order.is_ne()).unwrap_or(Ordering::Equal)
}

fn by_value(a: &Value, b: &Value) -> Ordering {
    match (a, b) {
        (Value::Number(a), Value::Number(b)) => a.as_f64().partial_cmp(&b.as_f64()).unwrap(),
        (Value::Bool(a), Value::Bool(b)) => a.cmp(b),
        (Value::String(a), Value::String(b)) => a.cmp(b),
        _ => panic!("{a} and {b}"),
    }
}

/// A choice: as a job has it, as flags of an export, and as the twin has it.
pub(crate) struct ChoiceCase {
    pub(crate) job: &'static str,
    pub(crate) flags: &'static [&'static str],
    pub(crate) terms: &'static [SpokenTerm],
    pub(crate) most: usize,
    pub(crate) each: Option<&'static str>,
}

pub(crate) const CHOICES: [ChoiceCase; 7] = [
    ChoiceCase {
        job: "{ by = [\"meta.score desc\"] }",
        flags: &["--keep", "meta.score desc"],
        terms: &[SpokenTerm::Down("meta.score")],
        most: 1,
        each: None,
    },
    ChoiceCase {
        job: "{ by = [\"meta.score desc\", \"length desc\", 'source in [\"c\",\"a\"]'] }",
        flags: &["--keep", "meta.score desc, length desc, source in [\"c\",\"a\"]"],
        terms: &[SpokenTerm::Down("meta.score"), SpokenTerm::Down("length"), SpokenTerm::In("source", &["c", "a"])],
        most: 1,
        each: None,
    },
    ChoiceCase {
        job: "{ by = [\"day\", \"flag desc\"], most = 2 }",
        flags: &["--keep", "day, flag desc", "--most", "2"],
        terms: &[SpokenTerm::Up("day"), SpokenTerm::Down("flag")],
        most: 2,
        each: None,
    },
    ChoiceCase {
        job: "{ by = \"longest\", each = \"source\" }",
        flags: &["--keep", "longest", "--each", "source"],
        terms: &[SpokenTerm::Down("words"), SpokenTerm::Down("length")],
        most: 1,
        each: Some("source"),
    },
    ChoiceCase {
        job: "{ by = [\"flag\", \"meta.score\"], most = 2, each = \"source\" }",
        flags: &["--keep", "flag asc, meta.score", "--most", "2", "--each", "source"],
        terms: &[SpokenTerm::Up("flag"), SpokenTerm::Up("meta.score")],
        most: 2,
        each: Some("source"),
    },
    ChoiceCase {
        job: "{ by = ['source in [\"b\"]', \"source desc\"], each = \"meta.score\" }",
        flags: &["--keep", "source in [\"b\"], source desc", "--each", "meta.score"],
        terms: &[SpokenTerm::In("source", &["b"]), SpokenTerm::Down("source")],
        most: 1,
        each: Some("meta.score"),
    },
    ChoiceCase { job: "{ most = 0 }", flags: &["--keep", "first", "--most", "0"], terms: &[], most: 0, each: None },
];

impl ChoiceCase {
    /// The records that stay, given the cluster and the document of each.
    pub(crate) fn kept(&self, clusters: &RecordsByRoot, docs: &BTreeMap<usize, i64>) -> BTreeSet<usize> {
        let mut kept = BTreeSet::new();
        for cluster in clusters.values() {
            if cluster.len() == 1 {
                kept.extend(cluster);
                continue;
            }
            let mut groups: BTreeMap<Option<String>, Vec<usize>> = BTreeMap::new();
            for n in cluster {
                let group = self.each.and_then(|column| value(*n, column)).map(|value| value.to_string());
                groups.entry(group).or_default().push(*n);
            }
            for group in groups.values_mut() {
                group.sort_by(|a, b| compared(*a, *b, self.terms).then(docs[a].cmp(&docs[b])));
                kept.extend(group.iter().take(self.most));
            }
        }
        kept
    }
}

/// The records of each cluster, by its root.
pub(crate) type RecordsByRoot = BTreeMap<i64, BTreeSet<usize>>;

/// The clusters of a week, the documents of its records, and those that are canonical.
pub(crate) fn clusters(store: &Path, date: &str) -> (RecordsByRoot, BTreeMap<usize, i64>, BTreeSet<usize>) {
    let week = week(store, date);
    let ids: Vec<usize> = texts(&week, "clusters", "id").into_iter().map(|id| id.parse().unwrap()).collect();
    let mut clusters = RecordsByRoot::new();
    for (id, root) in ids.iter().zip(longs(&week, "clusters", "similar_root")) {
        clusters.entry(root).or_default().insert(*id);
    }
    let docs = ids.iter().copied().zip(longs(&week, "clusters", "doc")).collect();
    let canonical = ids.iter().zip(booleans(&week, "clusters", "canonical"));
    let canonical = canonical.filter_map(|(id, is_canonical)| is_canonical.then_some(*id)).collect();
    (clusters, docs, canonical)
}

/// Writes records as a file of a format.
pub(crate) fn write(folder: &Path, format: &str, records: std::ops::Range<usize>) -> PathBuf {
    let path = folder.join(format!("{}-{}.{format}", records.start, records.end));
    let all: Vec<usize> = records.collect();
    let text = |n: &usize| record(*n)["text"].as_str().unwrap().to_owned();
    match format {
        "jsonl" => {
            // A null and a field that is missing are the same.
            let line = |n: &usize| {
                let mut record = record(*n);
                if n.is_multiple_of(2) {
                    record.as_object_mut().unwrap().retain(|_, value| !value.is_null());
                }
                record.to_string() + "\n"
            };
            std::fs::write(&path, all.iter().map(line).collect::<String>()).unwrap();
        }
        "csv" => {
            let field = |n: usize, column: &str| match value(n, column) {
                None => String::new(),
                Some(Value::String(text)) => format!("\"{text}\""),
                Some(value) => value.to_string(),
            };
            let line = |n: &usize| {
                let columns = ["meta.score", "source", "flag", "day"].map(|column| field(*n, column));
                format!("{n},{},{}\n", text(n), columns.join(","))
            };
            let lines: String = all.iter().map(line).collect();
            std::fs::write(&path, format!("id,text,meta.score,source,flag,day\n{lines}")).unwrap();
        }
        _ => {
            let scores = all.iter().map(|n| value(*n, "meta.score").map(|value| value.as_f64().unwrap()));
            let scores: ArrayRef = Arc::new(scores.collect::<Float64Array>());
            let sources = all.iter().map(|n| value(*n, "source").map(|value| value.as_str().unwrap().to_owned()));
            let day = |n: &usize| {
                let day: jiff::civil::Date = value(*n, "day")?.as_str().unwrap().parse().unwrap();
                Some(day.duration_since(jiff::civil::date(1970, 1, 1)).as_hours() as i32 / 24)
            };
            let batch = RecordBatch::try_from_iter([
                ("id", Arc::new(all.iter().map(|n| *n as i64).collect::<Int64Array>()) as ArrayRef),
                ("text", Arc::new(all.iter().map(text).map(Some).collect::<StringArray>())),
                ("meta", Arc::new(StructArray::try_from(vec![("score", scores)]).unwrap())),
                ("source", Arc::new(sources.collect::<StringArray>())),
                ("flag", Arc::new(all.iter().map(|n| value(*n, "flag")?.as_bool()).collect::<BooleanArray>())),
                ("day", Arc::new(all.iter().map(day).collect::<Date32Array>())),
            ])
            .unwrap();
            let file = std::fs::File::create(&path).unwrap();
            if format == "parquet" {
                let mut writer = ArrowWriter::try_new(file, batch.schema(), None).unwrap();
                writer.write(&batch).unwrap();
                writer.close().unwrap();
            } else {
                let mut writer = arrow_ipc::writer::StreamWriter::try_new(file, &batch.schema()).unwrap();
                writer.write(&batch).unwrap();
                writer.finish().unwrap();
            }
        }
    }
    path
}

/// A job with this choice.
pub(crate) fn job_of(folder: &Path, canonical: &str, columns: &str) -> PathBuf {
    let text = format!(
        "[cluster]\ncanonical = {canonical}\n[cluster.read.columns]\nid = \"id\"\n{columns}\n[cluster.method]\nshards = 4\nsimilarity = 0.8\n"
    );
    job(folder, &text)
}

pub(crate) fn cluster(folder: &Path, canonical: &str, columns: &str, input: &Path, flags: &[&str]) {
    let job = job_of(folder, canonical, columns);
    let store = folder.join("store");
    let arguments =
        ["run", job.to_str().unwrap(), "-q", "--replace", "--week", DATE, "--store", store.to_str().unwrap()];
    run_well(&[&arguments[..], &["--input", input.to_str().unwrap()], flags].concat());
}
