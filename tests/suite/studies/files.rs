//! The files of the tables of studies: one for each table, whatever the workers; and those of
//! versions that wrote one for each shard.

use std::collections::BTreeMap;
use std::path::Path;

use nigh::state::{Piece, Results, Store, TablePart, WeekFiles};
use nigh::tables::{RowRange, result_tables};

use crate::program::{copy_folder, job, run_well, tables};

const WEEKS: [&str; 2] = ["2024-01-08", "2024-01-15"];

/// Studies with tables that have rows of each shard.
const OF_SHARDS: [&str; 5] = ["collections", "decontamination", "overlap", "paragraphs", "passages"];

/// A store with two weeks.
fn two_weeks(store: &Path) {
    let job = job(store.parent().unwrap(), "[cluster]\naccuracy = false\n");
    for week in WEEKS {
        let input = format!("tests/data/week-{week}");
        let (job, store) = (job.to_str().unwrap(), store.to_str().unwrap());
        run_well(&["run", job, "-q", "--store", store, "--week", week, "--input", &input]);
    }
}

/// Runs a job of the shipped ones, with lines that differ in place of those that are there.
fn study(store: &Path, name: &str, keys: &str, flags: &[&str]) {
    let folder = tempfile::tempdir().unwrap();
    let job = job(folder.path(), &format!("[{name}]\n{keys}"));
    run_well(&[&["run", job.to_str().unwrap(), "-q", "--store", store.to_str().unwrap()], flags].concat());
}

#[test]
fn a_table_of_a_study_is_one_file_with_the_same_bytes() {
    let folder = tempfile::tempdir().unwrap();
    let weeks = folder.path().join("weeks");
    two_weeks(&weeks);
    let reference = folder.path().join("reference.jsonl");
    let sentence = "This is the text of a question that no page of the crawl has, as far as anyone knows.";
    std::fs::write(&reference, format!("{{\"question\":\"{sentence}\"}}\n")).unwrap();
    let made = |number: usize, flags: &[&str]| {
        let store = folder.path().join(format!("store{number}"));
        copy_folder(&weeks, &store);
        run_well(&[&["studies", store.to_str().unwrap(), "--last", "-q"], flags].concat());
        let against = ["--against", reference.to_str().unwrap()];
        study(&store, "decontamination", "columns = [\"question\"]\n", &[&against, flags].concat());
        store
    };
    let one = made(0, &["--workers", "1"]);
    let manifest = Store::at(&one).manifest().unwrap().unwrap();
    assert_eq!(manifest.results.len(), 9, "{:?}", manifest.results);
    let tables_of = |store: &Path| -> BTreeMap<&str, BTreeMap<String, Vec<u8>>> {
        manifest.results.keys().map(|name| (name.as_str(), tables(&store.join(name)))).collect()
    };
    let expected = tables_of(&one);
    for (name, files) in &expected {
        // Without the name of the study, which may be that of the table, too.
        let path = |table: &str| format!("{table}/00000.parquet").trim_start_matches(&format!("{name}/")).to_owned();
        let mut paths: Vec<String> = result_tables(name).iter().map(|table| path(table.name)).collect();
        paths.sort();
        assert_eq!(files.keys().collect::<Vec<_>>(), paths.iter().collect::<Vec<_>>(), "{name}");
    }
    for (number, flags) in [(1, ["--workers", "4", "--processes", "1"]), (2, ["--workers", "2", "--processes", "2"])] {
        let other = made(number, &flags);
        for (name, files) in tables_of(&other) {
            assert!(files == expected[name], "{name}: {flags:?}");
        }
        assert!(!other.join("_nigh/work").exists(), "bundles are not left");
    }
    for name in OF_SHARDS {
        let list = format!("_nigh/{name}/{:05}/tables.json", manifest.results[name]);
        assert!(one.join(&list).exists(), "{list}");
    }
}

/// Gives the tables of a study a file for each shard, as versions before wrote them.
fn split_by_shard(store: &Path, study: &str) {
    let commit = Store::at(store).manifest().unwrap().unwrap().results[study];
    let results = Results::of(&Store::at(store), study, commit);
    let list = results.committed_file("tables.json");
    let files: WeekFiles = serde_json::from_slice(&std::fs::read(&list).unwrap()).unwrap();
    for (table, parts) in files {
        let table = result_tables(study).iter().find(|of| of.name == table).unwrap();
        let folder = results.folder().join(table.name);
        for TablePart { file, pieces, .. } in parts {
            let whole = folder.join("whole.parquet");
            std::fs::rename(folder.join(file), &whole).unwrap();
            let (rows, mut first) = (RowRange::file(&whole), 0);
            for Piece(name, count) in pieces {
                let shard: usize =
                    name.strip_prefix("shard").unwrap().strip_suffix(".parquet").unwrap().parse().unwrap();
                let of_shard = results.committed_table(table.name, shard);
                (table.pack)(&[rows.part(first..first + count)], &of_shard, &[]).unwrap();
                first += count;
            }
            std::fs::remove_file(&whole).unwrap();
        }
    }
    std::fs::remove_file(list).unwrap();
}

#[test]
fn tables_with_a_file_for_each_shard_go_on_as_those_with_one_file() {
    let folder = tempfile::tempdir().unwrap();
    let [new, old] = ["new", "old"].map(|name| folder.path().join(name));
    two_weeks(&new);
    let both = |name: &str, keys: &str, flags: &[&str]| {
        [&new, &old].iter().for_each(|store| study(store, name, keys, flags));
        let [found, expected] = [&old, &new].map(|store| tables(&store.join(name)));
        assert!(found == expected && found.keys().all(|path| path.ends_with("00000.parquet")), "{name}");
    };
    for name in ["overlap", "paragraphs"] {
        study(&new, name, "", &["--week", WEEKS[0]]);
    }
    copy_folder(&new, &old);
    for name in ["overlap", "paragraphs"] {
        split_by_shard(&old, name);
        assert!(tables(&old.join(name)).len() > 2 * tables(&new.join(name)).len(), "{name} has files of shards");
    }
    // From the former tables: pairs, families and lifetimes.
    both("overlap", "mode = \"delta\"\n", &["--workers", "2"]);
    both("paragraphs", "mode = \"delta\"\n", &["--workers", "2", "--processes", "2"]);
    // From the components of pages that share texts.
    split_by_shard(&old, "overlap");
    both("collections", "level = \"overlap\"\nchunking = \"two-lines\"\nleast-size = 2\n", &["--workers", "2"]);
    // From the pages of collections.
    split_by_shard(&old, "collections");
    both("mirrors-by-url", "least-urls = 8\n", &["--workers", "2"]);
}

#[test]
fn a_damaged_list_of_files_is_named() {
    let folder = tempfile::tempdir().unwrap();
    let store = folder.path().join("store");
    two_weeks(&store);
    study(&store, "overlap", "", &["--week", WEEKS[0]]);
    let list = store.join("_nigh/overlap/00003/tables.json");
    let text = std::fs::read_to_string(&list).unwrap();
    let job = job(folder.path(), "[overlap]\nmode = \"delta\"\n");
    for (damaged, wanted) in [
        (
            text[..text.len() / 2].to_owned(),
            "tables.json is no list of files: the tables are damaged. Run the overlap job again",
        ),
        (text.replacen("\"families\"", "\"other\"", 1), "tables.json lacks the table `families`"),
        (text.replace("-00000.parquet", "-00009.parquet"), "-00009.parquet is missing"),
    ] {
        std::fs::write(&list, &damaged).unwrap();
        let ran = crate::program::run(&["run", job.to_str().unwrap(), "-q", "--store", store.to_str().unwrap()]);
        assert!(ran.code == Some(1) && ran.stderr.contains(wanted), "{wanted}: {:?} {}", ran.code, ran.stderr);
    }
}
