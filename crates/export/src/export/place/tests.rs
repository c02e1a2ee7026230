//! Exports to a bucket that fails, or that another export writes to.

use std::collections::BTreeSet;
use std::io::Write as _;

use anyhow::Result;

use super::folder::ExportFolder;
use super::output::Output;
use super::written_files::{ExportKey, LIST, WrittenFile, WrittenFiles};
use crate::export::dataset::Exported;
use crate::objects::faulty::{Fault, faulty};
use crate::objects::{Bucket, PATIENCE};

fn key(week: &str) -> ExportKey {
    let key = serde_json::json!({
        "week": week, "identity": "", "keep": "first", "level": "similar", "what": "kept", "revisits": false,
    });
    serde_json::from_value(key).unwrap()
}

/// Writes a file of an export.
fn add(folder: &mut ExportFolder, name: &str, bytes: &[u8]) -> Result<()> {
    let unfinished = folder.unfinished(0);
    let mut out = Output::create(&unfinished).unwrap();
    out.write_all(bytes).unwrap();
    let file = WrittenFile::new(name.to_owned(), Some(out.finish().unwrap()), Exported::default());
    folder.place().put(&unfinished, &file)?;
    folder.add(&unfinished, file)
}

fn keys(bucket: &Bucket) -> Vec<String> {
    bucket.list().unwrap().into_keys().collect()
}

#[test]
fn what_is_whole_is_put_and_the_list_says_so_at_the_end() {
    let (bucket, _) = faulty(PATIENCE);
    let machine = tempfile::tempdir().unwrap();
    let open = |week: &str| ExportFolder::over(bucket.clone(), &machine.path().join("staging"), &key(week));
    let mut folder = open("2024-01-08").unwrap();
    add(&mut folder, "a.jsonl", b"1\n").unwrap();
    add(&mut folder, "deep/b.jsonl", &vec![b'x'; 20 << 20]).unwrap();
    let files = |list: &[u8]| WrittenFiles::parse(std::str::from_utf8(list).unwrap(), "").unwrap().files.len();
    let list = || bucket.get_whole(LIST).unwrap().unwrap();
    assert_eq!((keys(&bucket).len(), files(&list())), (3, 0), "the list is not due yet");
    folder.finish().unwrap();
    assert_eq!(files(&list()), 2);
    assert!(!machine.path().join("staging").exists(), "nothing is left here");
    // The same bytes, whichever export it was.
    let text = list();
    let folder = open("2024-01-08").unwrap();
    let listed: BTreeSet<&str> = folder.names().collect();
    assert_eq!(listed, ["a.jsonl", "deep/b.jsonl"].into());
    let is_whole = |name: &str| folder.place().has(&folder.listed(name).unwrap()).unwrap();
    assert!(is_whole("a.jsonl") && is_whole("deep/b.jsonl"));
    bucket.put("a.jsonl", b"2\n".to_vec()).unwrap();
    bucket.remove("deep/b.jsonl").unwrap();
    assert!(!is_whole("a.jsonl") && !is_whole("deep/b.jsonl"));
    folder.finish().unwrap();
    assert_eq!(list(), text);
    let refused = open("2024-01-15").err().unwrap().to_string();
    assert!(refused.contains("has files of another export"), "{refused}");
}

#[test]
fn an_export_goes_on_after_another_one_that_then_ends() {
    let (bucket, _) = faulty(PATIENCE);
    let machines = [tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap()];
    let open = |machine: usize, week: &str| {
        ExportFolder::over(bucket.clone(), &machines[machine].path().join("staging"), &key(week))
    };
    let mut first = open(0, "2024-01-08").unwrap();
    let of_another = ".nigh-export/list.jsonl of another export that runs or was killed";
    let refused = open(1, "2024-01-15").err().unwrap().to_string();
    assert!(refused.contains(of_another) && keys(&bucket) == [LIST], "{refused}");
    add(&mut first, "a.jsonl", b"1\n").unwrap();
    let busy = open(0, "2024-01-08").err().unwrap().to_string();
    assert!(busy.contains("another export writes s3://bucket/a/store/"), "{busy}");
    // It was put, and is not on the list yet.
    let refused = open(1, "2024-01-15").err().unwrap().to_string();
    assert!(refused.contains(of_another), "{refused}");
    let mut second = open(1, "2024-01-08").unwrap();
    assert_eq!(second.names().count(), 0);
    add(&mut second, "a.jsonl", b"1\n").unwrap();
    add(&mut second, "b.jsonl", b"2\n").unwrap();
    let ended = first.finish().unwrap_err().to_string();
    assert!(ended.contains("another export has begun to write"), "{ended}");
    // One that fails leaves a list of what it has put.
    drop(second);
    assert_eq!(open(0, "2024-01-08").unwrap().names().collect::<Vec<_>>(), ["a.jsonl", "b.jsonl"]);

    let mut third = open(0, "2024-01-08").unwrap();
    third.remove(&["a.jsonl".to_owned()]).unwrap();
    assert_eq!(keys(&bucket), [LIST, "b.jsonl"]);
    drop(third);
    let (empty, faults) = faulty(PATIENCE);
    faults.set(Fault::NoConditions);
    for _ in 0..2 {
        let refused = ExportFolder::over(empty.clone(), &machines[0].path().join("staging"), &key("2024-01-08"));
        assert!(refused.err().unwrap().to_string().contains("ignores the condition of a put"));
    }
}

#[test]
fn what_others_have_put_is_not_touched() {
    let (bucket, _) = faulty(PATIENCE);
    let machine = tempfile::tempdir().unwrap();
    let open = || ExportFolder::over(bucket.clone(), &machine.path().join("staging"), &key("2024-01-08"));
    bucket.put("own.txt", b"1".to_vec()).unwrap();
    let refused = open().err().unwrap().to_string();
    assert!(refused.contains("s3://bucket/a/store/ is not empty, it has own.txt"), "{refused}");
    bucket.remove("own.txt").unwrap();
    // An export without a file leaves nothing.
    drop(open().unwrap());
    assert_eq!(keys(&bucket), [""; 0]);
    bucket.put(LIST, b"no list".to_vec()).unwrap();
    assert!(open().err().unwrap().to_string().contains("is not a list that nigh wrote"));
}
