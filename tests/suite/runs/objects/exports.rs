//! Datasets in a bucket: read from one, and written to one.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use super::cloud::{Cloud, WEEKS};
use crate::program::run_well;

/// The files below a folder, by name, without what begins with a point.
fn files_below(folder: &Path) -> BTreeMap<String, Vec<u8>> {
    let files =
        walkdir::WalkDir::new(folder).into_iter().map(Result::unwrap).filter(|entry| entry.file_type().is_file());
    let named = files.map(|entry| {
        let name = entry.path().strip_prefix(folder).unwrap().to_str().unwrap().to_owned();
        (name, std::fs::read(entry.path()).unwrap())
    });
    named.filter(|(name, _)| !name.starts_with('.')).collect()
}

/// Writes records as lines and as Parquet, of which some are copies; a Parquet file has more than a
/// part of an upload.
fn write_shards(folder: &Path) {
    use arrow_array::{ArrayRef, Int64Array, RecordBatch, StringArray};
    let text = |n: usize| (0..70).map(|word| format!("w{}", n % 6 * 7919 + word * 31)).collect::<Vec<_>>().join(" ");
    std::fs::create_dir_all(folder.join("deep")).unwrap();
    let line = |n: usize| serde_json::json!({"id": n, "text": text(n)}).to_string() + "\n";
    std::fs::write(folder.join("a.jsonl"), (0..20).map(line).collect::<String>()).unwrap();
    for (name, ids) in [("deep/b.parquet", 20..30), ("c.parquet", 30..36)] {
        let noise = |n: i64| {
            let next = |state: &mut u64| {
                *state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
                Some((*state >> 40).to_string())
            };
            std::iter::repeat_n(n as u64 + 1, 1)
                .flat_map(|mut state| (0..160_000).filter_map(move |_| next(&mut state)))
                .collect::<String>()
        };
        let columns: Vec<(&str, ArrayRef)> = vec![
            ("id", Arc::new(Int64Array::from_iter_values(ids.clone()))),
            (
                "text",
                Arc::new(StringArray::from_iter_values(ids.clone().map(|n| text(n as usize + 3 * (n == 31) as usize)))),
            ),
            ("noise", Arc::new(StringArray::from_iter_values(ids.map(noise)))),
        ];
        let batch = RecordBatch::try_from_iter(columns).unwrap();
        let file = std::fs::File::create(folder.join(name)).unwrap();
        let mut writer = parquet::arrow::ArrowWriter::try_new(file, batch.schema(), None).unwrap();
        writer.write(&batch).unwrap();
        writer.close().unwrap();
    }
}

#[test]
fn an_export_to_a_bucket_has_the_files_of_one_to_a_folder() {
    let Some(server) = Cloud::start("an export to a bucket") else { return };
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    let (shards, store, machine) = (folder.path().join("shards"), path("store"), folder.path().join("machine"));
    write_shards(&shards);
    let flags = ["-q", "--week", WEEKS[0], "--id", "id", "--similarity", "0.8", "--input", shards.to_str().unwrap()];
    run_well(&[&["run", "--store", &store][..], &flags].concat());
    // A file of Parquet has 10 MB and more: an upload in parts.
    for (number, flags) in [
        &["--card", "--keep", "newest", "--most", "2"][..],
        &["--format", "jsonl", "--rename", "text=body"],
        &["--shard-bytes", "9MB", "--format", "jsonl", "--card", "--most", "9"],
    ]
    .into_iter()
    .enumerate()
    {
        let (out, url) = (path(&format!("out-{number}")), format!("s3://bucket/out/{number}"));
        run_well(&[&["export", &store, "--out", &out][..], flags].concat());
        let wanted = files_below(Path::new(&out));
        let arguments = [&["export", &store, "--out", &url, "--workers", "3"][..], flags].concat();
        let of_bucket = |what: &str| {
            let keys = server.keys(&format!("out/{number}"));
            let keys: Vec<&String> = keys.iter().filter(|key| !key.starts_with('.')).collect();
            assert_eq!(keys, wanted.keys().collect::<Vec<_>>(), "{what}");
            for (key, bytes) in &wanted {
                assert!(server.get(&format!("/out/{number}/{key}")) == *bytes, "{what}: {key}");
            }
        };
        let written = server.run_well(&machine, &arguments);
        assert!(written.stdout.contains(&url), "{}", written.stdout);
        of_bucket("first");
        // Again: what is whole stays; what is missing or another is written, by any machine.
        let list = server.get(&format!("/out/{number}/.nigh-export/list.jsonl"));
        let changed = wanted.keys().next_back().unwrap();
        server.put(&format!("/out/{number}/{changed}"), b"x");
        for what in ["again", "when all is whole"] {
            server.run_well(&folder.path().join("another-machine"), &arguments);
            of_bucket(what);
            assert!(server.get(&format!("/out/{number}/.nigh-export/list.jsonl")) == list, "{what}");
        }
        // Nothing is left on a machine.
        let left = std::fs::read_dir(machine.join("nigh/exports")).unwrap().count();
        assert_eq!(left, 0);
        let refused = server.run(&machine, &["export", &store, "--out", &url, "--what", "removed"]);
        assert!(
            refused.code == Some(2) && refused.stderr.contains("has files of another export"),
            "{}",
            refused.stderr
        );
    }
    let refused = server.run(&machine, &["export", &store, "--out", "s3://bucket/x", "--cdxj", "x.cdxj"]);
    assert_eq!(refused.code, Some(2), "{}", refused.stderr);
    for (flag, url) in
        [("--out", "hf://datasets/a/b"), ("--out", "s3://me:secret@bucket/x"), ("--list", "s3://bucket/list")]
    {
        let refused = server.run(&machine, &["export", &store, flag, url]);
        assert!(refused.code == Some(2) && !refused.stderr.contains("secret@"), "{url}: {}", refused.stderr);
    }
}

#[test]
fn a_dataset_in_a_bucket_is_exported_as_one_in_a_folder() {
    let Some(server) = Cloud::start("a dataset in a bucket") else { return };
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    let (shards, machine) = (folder.path().join("shards"), folder.path().join("machine"));
    write_shards(&shards);
    for (name, bytes) in files_below(&shards) {
        server.put(&format!("/shards/{name}"), &bytes);
    }
    let run = |store: &str, input: &str| {
        let flags = ["-q", "--week", WEEKS[0], "--id", "id", "--similarity", "0.8", "--input", input];
        server.run_well(&machine, &[&["run", "--store", store][..], &flags].concat());
    };
    let (here, there) = (path("here"), path("there"));
    run(&here, shards.to_str().unwrap());
    run(&there, "s3://bucket/shards/");
    for (number, flags) in [&[][..], &["--shards", "3", "--format", "jsonl"]].into_iter().enumerate() {
        let [out, of_bucket] = ["of-here", "of-there"].map(|name| path(&format!("{name}-{number}")));
        server.run_well(&machine, &[&["export", &here, "--out", &out][..], flags].concat());
        server.run_well(&machine, &[&["export", &there, "--out", &of_bucket][..], flags].concat());
        let [wanted, found] = [&out, &of_bucket].map(|out| files_below(Path::new(out)));
        assert_eq!(found.keys().collect::<Vec<_>>(), wanted.keys().collect::<Vec<_>>());
        assert!(found == wanted);
    }
}
