//! The tables of the shipped crawl, as text and as digests, as they were reviewed: `tests/golden`.
//!
//! Other suites compare runs of one build with each other. This one compares a build with the
//! builds before it: a change of a table fails here with the lines that differ, and a commit that
//! wants it writes the new lines:
//!
//! ```text
//! NIGH_GOLDEN=write cargo test --test suite golden::
//! ```
//!
//! Text: a folder a week, one for each study, and one for a week of damaged files; a file a table,
//! with a line a row. Lines are sorted, ids are written as shard.row, a null is `-`. No column of
//! these tables depends on the time or on the run; timings are in `summary.json`, which is not
//! compared. Left out are columns that repeat others (see [`TABLES`]) and tables whose rows are
//! long or many (`chunks`, `documents`, `features`, `links`, `urls`, `amounts`): the digests cover
//! them.
//!
//! Digests: the SHA-1 of every Parquet file of the three weeks and of the studies, as `sha1sum`
//! writes them. Parquet files name the version of nigh that wrote them, so that all digests change
//! with the version; and they change with a new release of zstd or of the parquet crate. They do
//! not depend on the machine: all kernels give the same bits, and the only figure that is computed
//! by logarithms, the exponent of the power law, is rounded.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use arrow_array::{Array, BooleanArray, Date32Array, Float32Array, Float64Array, Int32Array, Int64Array, StringArray};
use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;
use ring::digest::{SHA1_FOR_LEGACY_USE_ONLY, digest as digest_of};

use crate::program::{files, job, nigh, ran, tables};

/// How to write what is found instead of comparing it.
const REGENERATE: &str = "NIGH_GOLDEN=write cargo test --test suite golden::";

/// Differing lines that are printed of a file: enough to see what kind of change it is.
const SHOWN: usize = 5;

/// A table that is compared as text.
struct GoldenTable {
    name: &'static str,
    /// The columns that come first; rows are sorted by them, and then by the others.
    first: &'static [&'static str],
    left_out: &'static [&'static str],
}

const fn golden(name: &'static str, first: &'static [&'static str]) -> GoldenTable {
    GoldenTable { name, first, left_out: &[] }
}

/// Of every week.
const TABLES: [GoldenTable; 9] = [
    // The host is part of the URL.
    GoldenTable { name: "clusters", first: &["similar_root", "doc"], left_out: &["host"] },
    golden("evidence", &["doc"]),
    golden("changes", &["cluster_id", "event", "other_cluster_id"]),
    golden("sizes", &["level", "size"]),
    golden("summary", &["level"]),
    golden("largest", &["level", "rank"]),
    golden("missing", &["doc"]),
    golden("redirects", &["url"]),
    golden("host-failures", &["host", "reason"]),
];

/// Of the evolution job.
const EVOLUTION: [GoldenTable; 5] = [
    golden("retention", &["week", "class"]),
    golden("host-changes", &["change"]),
    golden("change-classes", &["class", "change"]),
    golden("births", &["week", "class"]),
    golden("deaths", &["week", "class"]),
];

/// Of the mirrors job.
const MIRRORS: [GoldenTable; 6] = [
    golden("classes", &["week"]),
    golden("pairs", &["week", "host_a", "host_b"]),
    golden("groups", &["week", "group"]),
    golden("mirrored", &["week"]),
    golden("sizes", &["week"]),
    golden("spans", &["host_a", "host_b"]),
];

/// Of the overlap job, for the last week, which it computes from the tables of the week before.
const OVERLAP: [GoldenTable; 8] = [
    golden("overlap", &["chunking", "doc_a", "doc_b"]),
    golden("families", &["chunking", "family", "doc"]),
    golden("family-chunks", &["chunking", "family", "chunk"]),
    golden("components", &["chunking", "component", "doc"]),
    golden("replicas", &["chunking", "replicas"]),
    golden("savings", &["chunking"]),
    golden("most", &["chunking", "rank"]),
    golden("reasons", &["chunking", "reason"]),
];

/// Of the collections job, for the second week and then for the last, which judges the list of the
/// second.
const COLLECTIONS: [GoldenTable; 8] = [
    golden("clusters", &["cluster"]),
    golden("collections", &["cluster", "collection"]),
    golden("pages", &["cluster", "collection", "doc"]),
    golden("replicas", &["similar"]),
    golden("sizes", &["cardinality", "size"]),
    golden("avoid", &["prefix"]),
    golden("judged", &["prefix"]),
    golden("savings", &["listed", "week"]),
];

/// Of the mirrors-by-url job, for the last week.
const MIRRORS_BY_URL: [GoldenTable; 8] = [
    golden("candidates", &["rank"]),
    golden("tests", &["rank"]),
    golden("levels", &["level"]),
    golden("ranking", &["prefix"]),
    golden("domains", &["group", "domain_a"]),
    golden("groups", &["group", "host"]),
    golden("probes", &["rank", "url"]),
    golden("compared", &["kind", "host_a", "host_b", "prefix_a", "prefix_b"]),
];

/// Of the paragraphs job, for the last week, which goes on from the tables of the week before.
const PARAGRAPHS: [GoldenTable; 14] = [
    golden("summary", &["region", "near"]),
    golden("coverage", &["region"]),
    golden("sizes", &["region", "size"]),
    golden("sites", &["size"]),
    golden("growth", &["step"]),
    golden("estimates", &["steps", "of_week"]),
    golden("pages", &["doc"]),
    golden("near", &["near", "doc"]),
    golden("seeds", &["rank"]),
    golden("boilerplate", &["paragraph"]),
    golden("births", &["doc"]),
    golden("parents", &["doc", "rank"]),
    golden("lifetimes", &["paragraph"]),
    golden("turnover", &["week"]),
];

/// Of the samplers job, for the last week.
const SAMPLERS: [GoldenTable; 2] = [golden("samplers", &["sampler"]), golden("sampler-errors", &["sampler", "low"])];

/// Of the week of damaged files.
const DIRTY: [GoldenTable; 1] = [golden("rejects", &["file", "offset"])];

/// Columns that hold ids of documents.
const IDS: [&str; 15] = [
    "doc",
    "neighbour",
    "cluster_id",
    "other_cluster_id",
    "similar_root",
    "identical_root",
    "exact_root",
    "target_doc",
    "doc_a",
    "doc_b",
    "family",
    "component",
    "cluster",
    "collection",
    "root",
];

/// A value of a table. Numbers are sorted as numbers.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum TableValue {
    Null,
    Number(i64),
    Id(i64),
    Text(String),
}

impl std::fmt::Display for TableValue {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            TableValue::Null => write!(f, "-"),
            TableValue::Number(number) => write!(f, "{number}"),
            // A row has 40 bits, as the documentation of `DocId` says.
            TableValue::Id(id) => write!(f, "{}.{}", id >> 40, id & ((1 << 40) - 1)),
            TableValue::Text(text) => {
                // A row stays one line, and a cell one cell.
                let escaped = text.replace('\\', "\\\\").replace('\t', "\\t").replace('\n', "\\n").replace('\r', "\\r");
                write!(f, "{escaped}")
            }
        }
    }
}

fn value(column: &dyn Array, name: &str, row: usize) -> TableValue {
    let any = column.as_any();
    if column.is_null(row) {
        TableValue::Null
    } else if let Some(longs) = any.downcast_ref::<Int64Array>() {
        if IDS.contains(&name) { TableValue::Id(longs.value(row)) } else { TableValue::Number(longs.value(row)) }
    } else if let Some(ints) = any.downcast_ref::<Int32Array>() {
        TableValue::Number(ints.value(row).into())
    } else if let Some(texts) = any.downcast_ref::<StringArray>() {
        TableValue::Text(texts.value(row).to_owned())
    } else if let Some(dates) = any.downcast_ref::<Date32Array>() {
        TableValue::Text(dates.value_as_date(row).expect("a date").to_string())
    } else if let Some(flags) = any.downcast_ref::<BooleanArray>() {
        TableValue::Text(flags.value(row).to_string())
    } else if let Some(floats) = any.downcast_ref::<Float32Array>() {
        TableValue::Text(floats.value(row).to_string())
    } else if let Some(doubles) = any.downcast_ref::<Float64Array>() {
        TableValue::Text(doubles.value(row).to_string())
    } else {
        panic!("the golden text has no form for column `{name}` of type {}", column.data_type())
    }
}

/// A table of a folder as text: the names of its columns, then its sorted rows.
fn text(folder: &Path, table: &GoldenTable) -> String {
    let mut header = Vec::new();
    let mut rows: Vec<Vec<TableValue>> = Vec::new();
    for path in files(folder, table.name) {
        let file = std::fs::File::open(&path).unwrap();
        for batch in ParquetRecordBatchReaderBuilder::try_new(file).unwrap().build().unwrap() {
            let batch = batch.unwrap();
            let schema = batch.schema();
            let others = schema.fields().iter().map(|field| field.name().as_str());
            let others = others.filter(|name| !table.first.contains(name) && !table.left_out.contains(name));
            let columns: Vec<&str> = table.first.iter().copied().chain(others).collect();
            for row in 0..batch.num_rows() {
                let values = columns.iter().map(|name| value(batch.column_by_name(name).expect(name), name, row));
                rows.push(values.collect());
            }
            header = columns.into_iter().map(str::to_owned).collect();
        }
    }
    rows.sort();
    let lines = rows.iter().map(|row| row.iter().map(TableValue::to_string).collect::<Vec<_>>().join("\t"));
    let lines: Vec<String> = [header.join("\t")].into_iter().chain(lines).collect();
    lines.join("\n") + "\n"
}

/// What is compared with the files in `tests/golden`, by path there.
type Golden = BTreeMap<String, String>;

const WEEKS: [&str; 3] = ["2024-01-08", "2024-01-15", "2024-01-22"];

fn run_well(kernels: Option<&str>, arguments: &[&str]) {
    let mut command = nigh(arguments);
    command.envs(kernels.map(|kernels| ("NIGH_KERNELS", kernels)));
    let ran = ran(&mut command);
    assert_eq!(ran.code, Some(0), "{arguments:?}\n{}", ran.stderr);
}

/// Clusters the three weeks, and runs the studies. Inputs are relative to the repository, since
/// tables name them.
fn shipped_weeks(folder: &Path, kernels: Option<&str>) -> PathBuf {
    // Fewer shards than the default of 64: fewer digests.
    let first = job(folder, "[cluster]\n[cluster.method]\nshards = 8\n");
    std::fs::create_dir(folder.join("mirrors")).unwrap();
    let store = folder.join("store");
    for (week, job) in WEEKS.iter().zip([first.to_str().unwrap(), "jobs/weekly.toml", "jobs/weekly.toml"]) {
        let input = format!("tests/data/week-{week}");
        run_well(kernels, &["run", job, "-q", "--store", store.to_str().unwrap(), "--week", week, "--input", &input]);
        run_well(kernels, &["run", "jobs/overlap.toml", "-q", "--store", store.to_str().unwrap()]);
    }
    // Fewer pages than the default of 10: more pairs.
    let mirrors = job(&folder.join("mirrors"), "[mirrors]\nleast-pages = 2\n");
    for job in ["jobs/evolution.toml", mirrors.to_str().unwrap()] {
        run_well(kernels, &["run", job, "-q", "--store", store.to_str().unwrap()]);
    }
    std::fs::create_dir(folder.join("collections")).unwrap();
    let collections = job(&folder.join("collections"), "[collections]\nleast-size = 2\npurity = 0.6\nshare = 0.4\n");
    for week in &WEEKS[1..] {
        let flags = ["-q", "--store", store.to_str().unwrap(), "--week", week];
        run_well(kernels, &[&["run", collections.to_str().unwrap()][..], &flags].concat());
    }
    std::fs::create_dir(folder.join("mirrors-by-url")).unwrap();
    // Fewer URLs than the default of 100: some hosts. Fewer paths: fewer rows.
    let by_url = job(&folder.join("mirrors-by-url"), "[mirrors-by-url]\nleast-urls = 8\npaths = 8\ntests = 3\n");
    run_well(kernels, &["run", by_url.to_str().unwrap(), "-q", "--store", store.to_str().unwrap()]);
    std::fs::create_dir(folder.join("paragraphs")).unwrap();
    // Fewer parts than the default of 50: fewer rows.
    let paragraphs = job(&folder.join("paragraphs"), "[paragraphs]\nparts = 10\n");
    for week in &WEEKS[1..] {
        let flags = ["-q", "--store", store.to_str().unwrap(), "--week", week];
        run_well(kernels, &[&["run", paragraphs.to_str().unwrap()][..], &flags].concat());
    }
    std::fs::create_dir(folder.join("samplers")).unwrap();
    let samplers = job(&folder.join("samplers"), "[samplers]\nbits = [2]\nmoduli = [8]\nseeds = 3\n");
    run_well(kernels, &["run", samplers.to_str().unwrap(), "-q", "--store", store.to_str().unwrap()]);
    store
}

/// The SHA-1 of every Parquet file of the weeks and of the studies, as `sha1sum` writes it.
fn digests(store: &Path) -> String {
    let digest = |bytes: &[u8]| {
        digest_of(&SHA1_FOR_LEGACY_USE_ONLY, bytes)
            .as_ref()
            .iter()
            .map(|byte| format!("{byte:02x}"))
            .collect::<String>()
    };
    tables(store).into_iter().map(|(path, bytes)| format!("{}  {path}\n", digest(&bytes))).collect()
}

/// What this build makes of the shipped weeks and of the damaged files; once for all tests.
fn found() -> &'static Golden {
    static FOUND: OnceLock<Golden> = OnceLock::new();
    FOUND.get_or_init(|| {
        let mut found = Golden::new();
        let mut add = |folder: &Path, name: &str, tables: &[GoldenTable]| {
            for table in tables.iter().filter(|table| !files(folder, table.name).is_empty()) {
                found.insert(format!("{name}/{}.tsv", table.name), text(folder, table));
            }
        };
        let folder = tempfile::tempdir().unwrap();
        let store = shipped_weeks(folder.path(), None);
        WEEKS.iter().for_each(|week| add(&crate::program::week(&store, week), week, &TABLES));
        add(&store.join("evolution"), "evolution", &EVOLUTION);
        add(&store.join("mirrors"), "mirrors", &MIRRORS);
        add(&store.join("overlap"), "overlap", &OVERLAP);
        add(&store.join("collections"), "collections", &COLLECTIONS);
        add(&store.join("mirrors-by-url"), "mirrors-by-url", &MIRRORS_BY_URL);
        add(&store.join("paragraphs"), "paragraphs", &PARAGRAPHS);
        add(&store.join("samplers"), "samplers", &SAMPLERS);

        let job = job(folder.path(), "[cluster]\nmax-reject-share = 1.0\n[cluster.method]\nshards = 8\n");
        let dirty = folder.path().join("dirty");
        let arguments = ["run", job.to_str().unwrap(), "-q", "--store", dirty.to_str().unwrap(), "--week", WEEKS[0]];
        run_well(None, &[&arguments[..], &["--input", "tests/data/dirty"]].concat());
        add(&crate::program::week(&dirty, WEEKS[0]), "dirty", &DIRTY);

        found.insert("digest.txt".into(), digests(&store));
        found
    })
}

fn golden_folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden")
}

/// The files of `tests/golden` that this suite compares.
fn reviewed() -> Golden {
    let entries = walkdir::WalkDir::new(golden_folder()).into_iter().map(|entry| entry.unwrap().into_path());
    let compared = |path: &PathBuf| {
        let extension = path.extension().and_then(|extension| extension.to_str());
        extension == Some("tsv") || path.ends_with("digest.txt")
    };
    let named = entries.filter(compared).map(|path| {
        let name = path.strip_prefix(golden_folder()).unwrap().to_str().unwrap().to_owned();
        (name, std::fs::read_to_string(&path).unwrap())
    });
    named.collect()
}

/// The first lines in which two texts differ; `None` where they are equal.
fn difference(reviewed: &str, found: &str) -> Option<String> {
    if reviewed == found {
        return None;
    }
    let only = |sign: char, of: &str, other: &str| -> Vec<String> {
        let others: BTreeSet<&str> = other.lines().collect();
        let lines = of.lines().enumerate().filter(|(_, line)| !others.contains(line));
        let mut lines: Vec<String> = lines.map(|(at, line)| format!("{sign} line {}: {line}", at + 1)).collect();
        if lines.len() > SHOWN {
            let more = lines.len() - SHOWN;
            lines.truncate(SHOWN);
            lines.push(format!("{sign} and {more} more"));
        }
        lines
    };
    let mut lines = only('-', reviewed, found);
    lines.extend(only('+', found, reviewed));
    if lines.is_empty() {
        lines.push("the same lines in another order, or another number of times".to_owned());
    }
    Some(lines.join("\n"))
}

/// Compares what this build makes with the reviewed files that `wanted` chooses; or replaces them,
/// if so asked.
fn assert_reviewed(wanted: impl Fn(&str) -> bool) {
    if std::env::var_os("NIGH_GOLDEN").is_some_and(|value| value == "write") {
        assert!(std::env::var_os("CI").is_none(), "NIGH_GOLDEN=write compares nothing: not where CI is set");
        for name in reviewed().keys().filter(|name| wanted(name) && !found().contains_key(*name)) {
            std::fs::remove_file(golden_folder().join(name)).unwrap();
        }
        for (name, text) in found().iter().filter(|(name, _)| wanted(name)) {
            let path = golden_folder().join(name);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        }
        return;
    }
    let reviewed = reviewed();
    let names: BTreeSet<&String> = reviewed.keys().chain(found().keys()).filter(|name| wanted(name)).collect();
    let text = |golden: &Golden, name: &str| golden.get(name).cloned().unwrap_or_default();
    let differences = names.into_iter().filter_map(|name| {
        let difference = difference(&text(&reviewed, name), &text(found(), name))?;
        Some(format!("tests/golden/{name}:\n{difference}\n"))
    });
    let differences: Vec<String> = differences.collect();
    assert!(
        differences.is_empty(),
        "the tables are not as reviewed (- reviewed, + found):\n{}If this is wanted: {REGENERATE}, and commit the difference",
        differences.join("")
    );
}

#[test]
fn the_shipped_crawl_has_the_rows_of_the_reviewed_tables() {
    assert_reviewed(|name| name != "digest.txt");
}

#[test]
fn the_shipped_crawl_has_the_bytes_of_the_reviewed_digests() {
    assert_reviewed(|name| name == "digest.txt");
}

#[test]
fn the_scalar_kernels_give_the_bytes_of_the_fastest() {
    let folder = tempfile::tempdir().unwrap();
    let scalar = digests(&shipped_weeks(folder.path(), Some("scalar")));
    let difference = difference(&found()["digest.txt"], &scalar);
    assert_eq!(difference, None, "- as chosen for this machine, + NIGH_KERNELS=scalar");
}

#[test]
fn a_difference_names_its_lines() {
    assert_eq!(difference("a\nb\n", "a\nb\n"), None);
    assert_eq!(difference("a\nb\nc\n", "a\nc\nd\n").unwrap(), "- line 2: b\n+ line 3: d");
    assert_eq!(difference("", "1\n2\n3\n4\n5\n6\n7\n").unwrap().lines().last(), Some("+ and 2 more"));
    assert!(difference("a\nb\n", "b\na\n").unwrap().contains("another order"));
}
