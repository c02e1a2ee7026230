//! Tables as other programs read them: `nigh table` against the Parquet files of the store.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{BufRead as _, BufReader};
use std::path::Path;
use std::process::Stdio;

use arrow_array::{Array as _, Int64Array, RecordBatch, StringArray};
use arrow_ipc::reader::{FileReader, StreamReader};
use nigh::query::NamedTable;
use nigh::tables::{Scan, ValueType, field};
use serde_json::Value;

use crate::program::{Made, data, files, nigh, of_features, output, rows_of, run, run_well, week};

/// The records of a text with separators, by the rules of CSV; `None` is a cell without a value.
pub fn records(text: &str, separator: char) -> Vec<Vec<Option<String>>> {
    let (mut records, mut record, mut cell) = (Vec::new(), Vec::new(), None::<String>);
    let mut is_quoted = false;
    let mut chars = text.chars().peekable();
    while let Some(c) = chars.next() {
        match c {
            '"' if is_quoted && chars.next_if_eq(&'"').is_none() => is_quoted = false,
            c if is_quoted => cell.get_or_insert_default().push(c),
            '"' => {
                is_quoted = true;
                cell.get_or_insert_default();
            }
            '\n' => {
                record.push(cell.take());
                records.push(std::mem::take(&mut record));
            }
            c if c == separator => record.push(cell.take()),
            c => cell.get_or_insert_default().push(c),
        }
    }
    assert!(record.is_empty() && cell.is_none() && !is_quoted, "every record ends with the end of a line");
    records
}

/// A store of two weeks with evolution. The second crawl has half of the pages, and the others
/// stay.
fn store() -> Made {
    let made = Made::new(&[]);
    let store = made.store();
    let store = store.to_str().unwrap();
    let input = data("week-2024-01-15/crawl-00000.warc.gz");
    let flags = ["--quiet", "--store", store, "--week", "2024-01-15", "--absent", "keep", "--input"];
    run_well(&[&["run", "jobs/example.toml"][..], &flags, &[input.to_str().unwrap()]].concat());
    run_well(&["run", "jobs/evolution.toml", "--quiet", "--store", store]);
    made
}

/// What the program writes for a table.
fn table(store: &Path, name: &str, flags: &[&str]) -> String {
    run_well(&[&["table", store.to_str().unwrap(), name][..], flags].concat()).stdout
}

#[test]
fn every_table_is_csv_with_the_values_of_its_files() {
    let made = store();
    let store = made.store();
    for named in NamedTable::all() {
        let name = named.name();
        let columns: Vec<&str> = named.spec().columns.iter().map(|column| column.name).collect();
        let (folder, short) = match name.split_once('/') {
            Some(("evolution", table)) => (store.join("evolution"), table.to_owned()),
            Some((study, _)) => {
                let failed = run(&["table", store.to_str().unwrap(), &name]);
                assert_eq!(failed.code, Some(1));
                assert!(failed.stderr.contains(&format!("nigh run jobs/{study}.toml --store ")), "{}", failed.stderr);
                continue;
            }
            None => (week(&store, "2024-01-15"), name.clone()),
        };
        if matches!(name.as_str(), "features" | "links" | "chunks") {
            // Rows of pages that stayed are in the files of the week before: see the test below.
            continue;
        }
        let csv = records(&table(&store, &name, &[]), ',');
        assert_eq!(csv[0], columns.iter().map(|name| Some((*name).to_owned())).collect::<Vec<_>>(), "{name}");
        // Moments are checked by their form: the twin does not read them.
        let is_moment = |column: usize| named.spec().columns[column].values == ValueType::Timestamp;
        let (moments, others): (Vec<usize>, Vec<usize>) = (0..columns.len()).partition(|column| is_moment(*column));
        let names: Vec<&str> = others.iter().map(|column| columns[*column]).collect();
        let expected = rows_of(&folder, &short, &names);
        assert_eq!(csv.len() - 1, expected.len(), "{name}");
        for (row, expected) in csv[1..].iter().zip(&expected) {
            for moment in moments.iter().filter_map(|column| row[*column].as_ref()) {
                assert!(moment.ends_with('Z') && moment.contains('T'), "{moment}");
            }
            for (column, expected) in others.iter().zip(expected) {
                let spec = &named.spec().columns[*column];
                check_cell(row[*column].as_deref(), expected, spec.values, &format!("{name}.{}", spec.name));
            }
        }
    }
}

/// Checks a cell against the value in the file, as the twin writes it.
fn check_cell(cell: Option<&str>, expected: &str, values: ValueType, name: &str) {
    let Some(cell) = cell else { return assert_eq!(expected, "null", "{name}") };
    match values {
        ValueType::Double | ValueType::Float => {
            assert_eq!(cell.parse::<f64>().unwrap(), expected.parse::<f64>().unwrap(), "{name}");
        }
        ValueType::Bytes | ValueType::FixedBytes(_) => {
            let byte = |at: usize| u8::from_str_radix(&cell[2 * at..2 * at + 2], 16).unwrap();
            let bytes: Vec<u8> = (0..cell.len() / 2).map(byte).collect();
            assert_eq!(format!("{bytes:?}"), expected, "{name}");
        }
        _ => assert_eq!(cell, expected, "{name}"),
    }
}

#[test]
fn rows_of_pages_that_stayed_are_those_of_the_weeks_pages() {
    let made = store();
    let store = made.store();
    let docs = |table_of: &str| {
        let mut docs: Vec<String> = records(&table(&store, table_of, &["--columns", "doc"]), ',')[1..]
            .iter()
            .map(|row| row[0].clone().unwrap())
            .collect();
        docs.dedup();
        docs.sort();
        docs
    };
    let (chunks, features) = (docs("chunks"), docs("features"));
    assert!(
        !chunks.is_empty() && chunks == features,
        "each page with words once: {} and {}",
        chunks.len(),
        features.len()
    );
    let of_week = week(&store, "2024-01-15");
    let with_words = rows_of(&of_week, "documents", &["doc", "words"]).into_iter().filter(|row| row[1] != "0");
    let with_words: BTreeSet<String> = with_words.map(|row| row[0].clone()).collect();
    assert!(features.iter().eq(&with_words), "those with words");
    for kept in ["chunks", "features"] {
        let own = rows_of(&of_week, kept, &["doc"]).len();
        assert!(own < chunks.len(), "some are in files of the week before");
    }
    let found = records(&table(&store, "features", &["--columns", "doc,supershingles"]), ',');
    let hex = |bytes: &Vec<u8>| bytes.iter().map(|byte| format!("{byte:02x}")).collect::<String>();
    let found: BTreeMap<i64, String> =
        found[1..].iter().map(|row| (row[0].clone().unwrap().parse().unwrap(), row[1].clone().unwrap())).collect();
    let expected = of_features(&of_week, "supershingles");
    assert!(found == expected.iter().map(|(doc, bytes)| (*doc, hex(bytes))).collect());
    let documents = docs("documents");
    assert!(docs("links").iter().all(|doc| documents.binary_search(doc).is_ok()), "no link of a page that is gone");
}

#[test]
fn formats_have_the_same_rows() {
    let made = store();
    let store = made.store();
    let folder = tempfile::tempdir().unwrap();
    let columns = ["--columns", "url,doc,cluster_id"];
    let csv = records(&table(&store, "clusters", &columns), ',');
    let tsv = records(&table(&store, "clusters", &[&columns[..], &["--format", "tsv"]].concat()), '\t');
    assert_eq!(csv, tsv);
    let lines = table(&store, "clusters", &[&columns[..], &["--format", "jsonl"]].concat());
    let text = |value: &Value| match value {
        Value::Null => None,
        Value::String(text) => Some(text.clone()),
        other => Some(other.to_string()),
    };
    let of_line = |line: &str| {
        let row: Value = serde_json::from_str(line).unwrap();
        assert_eq!(row.as_object().unwrap().len(), 3, "nulls are there: {line}");
        ["url", "doc", "cluster_id"].map(|name| text(&row[name])).to_vec()
    };
    assert_eq!(csv[1..], lines.lines().map(of_line).collect::<Vec<_>>());
    let of_batches = |batches: Vec<RecordBatch>| {
        let mut rows = Vec::new();
        for batch in batches {
            let (urls, docs): (&StringArray, &Int64Array) =
                (field(&batch, "url").unwrap(), field(&batch, "doc").unwrap());
            let ids: &Int64Array = field(&batch, "cluster_id").unwrap();
            rows.extend((0..batch.num_rows()).map(|row| {
                let id = ids.is_valid(row).then(|| ids.value(row).to_string());
                vec![Some(urls.value(row).to_owned()), Some(docs.value(row).to_string()), id]
            }));
        }
        rows
    };
    let out = |format: &str| {
        let path = folder.path().join(format!("rows.{format}"));
        let flags = ["--format", format, "--out", path.to_str().unwrap()];
        assert_eq!(table(&store, "clusters", &[&columns[..], &flags].concat()), "");
        path
    };
    let mut scan = Scan::open(out("parquet"), &["url", "doc", "cluster_id"]).unwrap();
    let mut batches = Vec::new();
    while let Some(batch) = scan.batch().unwrap() {
        batches.push(batch);
    }
    assert_eq!(of_batches(batches), csv[1..]);
    let file = FileReader::try_new(std::fs::File::open(out("arrow")).unwrap(), None).unwrap();
    assert_eq!(file.schema().metadata()["nigh.table"], "clusters");
    assert!(file.schema().field(1).metadata()["description"].contains("document id"));
    assert_eq!(of_batches(file.map(Result::unwrap).collect()), csv[1..]);
    let flags = [&["table", store.to_str().unwrap(), "clusters", "--format", "arrow"][..], &columns].concat();
    let piped = output(&mut nigh(&flags)).stdout;
    let stream = StreamReader::try_new(&piped[..], None).unwrap();
    assert_eq!(of_batches(stream.map(Result::unwrap).collect()), csv[1..]);
}

#[test]
fn rows_are_chosen_by_conditions_weeks_and_a_limit() {
    let made = store();
    let store = made.store();
    let all = records(&table(&store, "sizes", &["--all-weeks"]), ',');
    assert_eq!(all[0][0].as_deref(), Some("week"));
    let of_week = |date: &str| {
        let rows = records(&table(&store, "sizes", &["--week", date]), ',').split_off(1);
        rows.into_iter().map(|row| [vec![Some(date.to_owned())], row].concat()).collect::<Vec<_>>()
    };
    assert_eq!(all[1..], [of_week("2024-01-08"), of_week("2024-01-15")].concat());
    let similar =
        table(&store, "sizes", &["--where", "level=similar", "--where", "size=2", "--columns", "clusters,level"]);
    let similar = records(&similar, ',');
    let expected: Vec<Vec<Option<String>>> = all
        .iter()
        .filter(|row| {
            row[0].as_deref() == Some("2024-01-15")
                && row[1].as_deref() == Some("similar")
                && row[2].as_deref() == Some("2")
        })
        .map(|row| vec![row[3].clone(), row[1].clone()])
        .collect();
    assert_eq!(similar[1..], expected);
    let alone =
        records(&table(&store, "clusters", &["--where", "cluster_id=", "--columns", "cluster_id,similar_size"]), ',');
    assert!(alone.len() > 1 && alone[1..].iter().all(|row| row[0].is_none() && row[1].as_deref() == Some("1")));
    // A row of one column is no empty line, which readers of CSV pass over.
    let ids = table(&store, "clusters", &["--where", "cluster_id=", "--columns", "cluster_id"]);
    assert_eq!(ids, format!("cluster_id\n{}", "\"\"\n".repeat(alone.len() - 1)));
    assert_eq!(records(&table(&store, "clusters", &["--limit", "3"]), ',').len(), 4);
    assert_eq!(records(&table(&store, "clusters", &["--limit", "0"]), ',').len(), 1, "the heads only");
    // A checksum by its hexadecimal digits.
    let sums = records(&table(&store, "documents", &["--columns", "checksum", "--limit", "1"]), ',');
    let condition = format!("checksum={}", sums[1][0].as_deref().unwrap());
    assert!(records(&table(&store, "documents", &["--where", &condition]), ',').len() > 1);
}

#[test]
fn mistakes_say_what_there_is() {
    let made = store();
    let store = made.store();
    let store = store.to_str().unwrap();
    let wrong = |flags: &[&str], wanted: &str| {
        let failed = run(&[&["table", store][..], flags].concat());
        assert_eq!(failed.code, Some(2), "{flags:?}: {}", failed.stderr);
        assert!(failed.stderr.contains(wanted), "{flags:?}: {}", failed.stderr);
    };
    wrong(&["cluster"], "the tables are accuracy, ");
    wrong(&["host_changes"], "evolution/host-changes is one");
    wrong(&["clusters", "--columns", "colour"], "it has id, url, host, doc");
    wrong(&["clusters", "--where", "doc=one"], "\"one\" is not a whole number");
    wrong(&["evolution/births", "--week", "2024-01-08"], "one version only");
    let list = run_well(&["table", store]).stdout;
    assert!(list.contains("\nclusters ") && list.contains("\nevolution/births "), "{list}");
    assert!(list.contains("No tables of overlap yet: `nigh run jobs/overlap.toml --store "), "{list}");
    let list: Value = serde_json::from_str(&run_well(&["table", store, "--json"]).stdout).unwrap();
    assert!(list["tables"].as_array().unwrap().iter().any(|table| table["name"] == "sizes"));
    let failed = run(&["table", store, "clusters", "--week", "2020-01-06"]);
    assert!(failed.code == Some(1) && failed.stderr.contains("it has 2024-01-08, 2024-01-15"), "{}", failed.stderr);
    // A file that cannot be written is as it was, and nothing is left beside it.
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("clusters.csv");
    std::fs::write(&out, "old").unwrap();
    assert_eq!(run(&["table", store, "overlap/most", "--out", out.to_str().unwrap()]).code, Some(1));
    assert_eq!(std::fs::read_to_string(&out).unwrap(), "old");
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 1);
}

#[test]
fn a_reader_may_stop_early() {
    let made = store();
    let store = made.store();
    let mut child = nigh(&["table", store.to_str().unwrap(), "links", "--all-weeks"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut first = String::new();
    let mut out = BufReader::with_capacity(64, child.stdout.take().unwrap());
    out.read_line(&mut first).unwrap();
    drop(out);
    let ended = child.wait_with_output().unwrap();
    assert!(first.starts_with("week,doc,") && ended.status.success(), "{first} {ended:?}");
    assert_eq!(String::from_utf8_lossy(&ended.stderr), "");
    assert!(!files(&week(&store, "2024-01-15"), "links").is_empty());
}
