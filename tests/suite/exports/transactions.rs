//! Exports as transactions: one at a time, whole or not there, and nothing of others is replaced or
//! removed.

use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

use crate::program::{job, run, run_well};

/// A store of three lines.
struct Small {
    folder: tempfile::TempDir,
}

impl Small {
    fn new() -> Small {
        let small = Small { folder: tempfile::tempdir().unwrap() };
        let lines = ["one two three four five six", "one two three four five six", "other words stand here for you"];
        let line = |(number, text): (usize, &&str)| {
            format!("{{\"id\":\"d{number}\",\"text\":\"{text}\",\"more\":{number}}}\n")
        };
        std::fs::write(small.path("u.jsonl"), lines.iter().enumerate().map(line).collect::<String>()).unwrap();
        small.cluster("");
        small
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn cluster(&self, fields: &str) {
        let job = job(self.folder.path(), &format!("[cluster]\n{fields}\n[cluster.read.columns]\nid = \"id\"\n"));
        let [job, store, input] = [job, self.path("store"), self.path("u.jsonl")];
        let [job, store, input] = [&job, &store, &input].map(|path| path.to_str().unwrap());
        run_well(&[
            "run",
            job,
            "-q",
            "--no-accuracy",
            "--replace",
            "--week",
            "2024-01-08",
            "--store",
            store,
            "--input",
            input,
        ]);
    }

    /// Exports with these flags: the exit code, and what was said.
    fn export(&self, flags: &[&str]) -> (i32, String) {
        let ran = run(&[&["export", self.path("store").to_str().unwrap()][..], flags].concat());
        (ran.code.unwrap(), ran.stdout + &ran.stderr)
    }

    fn out(&self, name: &str, flags: &[&str]) -> (i32, String) {
        self.export(&[&["--out", self.path(name).to_str().unwrap()][..], flags].concat())
    }

    fn list(&self, name: &str) -> (i32, String) {
        self.export(&["--list", self.path(name).to_str().unwrap()])
    }
}

fn names(folder: &Path) -> Vec<String> {
    let mut names: Vec<String> =
        std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

#[test]
fn what_is_missing_or_changed_is_written_again() {
    let small = Small::new();
    assert_eq!(small.out("o", &[]).0, 0);
    let whole = std::fs::read(small.path("o/u.jsonl")).unwrap();
    let time = |name: &str| std::fs::metadata(small.path(name)).unwrap().modified().unwrap();
    let before = time("o/u.jsonl");
    assert_eq!(small.out("o", &[]).0, 0);
    assert_eq!(time("o/u.jsonl"), before, "what is as it was written stays");
    let mut other = whole.clone();
    other[20] ^= 1;
    for content in [None, Some(&b""[..]), Some(&other[..]), Some(&whole[1..])] {
        match content {
            None => std::fs::remove_file(small.path("o/u.jsonl")).unwrap(),
            Some(content) => std::fs::write(small.path("o/u.jsonl"), content).unwrap(),
        }
        assert_eq!(small.out("o", &[]).0, 0);
        assert_eq!(std::fs::read(small.path("o/u.jsonl")).unwrap(), whole);
    }
    assert_eq!(names(&small.path("o")), [".nigh-export", "u.jsonl"]);
}

#[test]
fn nothing_of_others_is_replaced_or_removed() {
    let small = Small::new();
    let precious = |name: &str| {
        std::fs::create_dir_all(small.path(name).parent().unwrap()).unwrap();
        std::fs::write(small.path(name), "precious").unwrap();
    };
    let is_there = |name: &str| std::fs::read_to_string(small.path(name)).unwrap() == "precious";
    // Folders.
    for (out, file) in [
        ("a", "_nigh-scratch/thesis"),
        ("b", "_nigh-export-work/thesis"),
        ("c", ".nigh-export/list.jsonl"),
        ("d", "u.jsonl"),
        ("f", ".nigh-export/thesis"),
        ("g", ".nigh-export"),
    ] {
        precious(&format!("{out}/{file}"));
        let (code, said) = small.out(out, &[]);
        assert!(code == 2 && is_there(&format!("{out}/{file}")), "{out}: {said}");
        assert_eq!(names(&small.path(out)).len(), 1, "{out}");
    }
    // A file that came into the folder of an export.
    assert_eq!(small.out("e", &["--what", "removed"]).0, 0);
    let list = small.path("e/.nigh-export/list.jsonl");
    let key = std::fs::read_to_string(&list).unwrap().lines().next().unwrap().to_owned() + "\n";
    std::fs::write(&list, key).unwrap();
    precious("e/u.jsonl");
    let (code, said) = small.out("e", &["--what", "removed"]);
    assert!(code == 1 && said.contains("was not written by this export") && is_there("e/u.jsonl"), "{said}");
    // Lists.
    precious("l.txt.scratch/thesis");
    precious(".m.txt.nigh-export-work/thesis");
    precious("n.txt");
    std::fs::create_dir(small.path("o.txt")).unwrap();
    precious("target");
    symlink(small.path("target"), small.path("p.txt")).unwrap();
    // What a list has beside it.
    precious(".q.txt.nigh-export.jsonl");
    precious(".r.txt.nigh-export-work/thesis");
    std::fs::write(small.path(".r.txt.nigh-export-work/lock"), "").unwrap();
    for (name, wanted) in [
        ("l.txt", 0),
        ("m.txt", 2),
        ("n.txt", 2),
        ("o.txt", 2),
        ("p.txt", 2),
        ("q.txt", 2),
        ("r.txt", 2),
        ("u.jsonl", 2),
    ] {
        let (code, said) = small.list(name);
        assert_eq!(code, wanted, "{name}: {said}");
    }
    assert!(
        [
            "l.txt.scratch/thesis",
            ".m.txt.nigh-export-work/thesis",
            "n.txt",
            "target",
            ".q.txt.nigh-export.jsonl",
            ".r.txt.nigh-export-work/thesis"
        ]
        .iter()
        .all(|name| is_there(name))
    );
    assert!(small.path("p.txt").is_symlink() && small.path("u.jsonl").metadata().unwrap().len() > 100);
    // Its own list is replaced, until it was changed.
    assert_eq!(small.list("l.txt").0, 0);
    assert_eq!(std::fs::read_to_string(small.path("l.txt")).unwrap(), "d1\n");
    std::fs::write(small.path("l.txt"), "precious").unwrap();
    assert!(small.list("l.txt").0 == 2 && is_there("l.txt"));
    assert!(!names(small.folder.path()).iter().any(|name| name == ".l.txt.nigh-export-work"));
}

#[test]
fn one_export_at_a_time_has_a_folder() {
    let small = Small::new();
    let work = small.path("o/_nigh-export-work");
    std::fs::create_dir_all(&work).unwrap();
    std::fs::write(work.join("lock"), "nigh export\nprocess 4711\n").unwrap();
    std::fs::write(work.join("00000"), "half of a file").unwrap();
    let lock = std::fs::File::open(work.join("lock")).unwrap();
    lock.lock().unwrap();
    let (code, said) = small.out("o", &[]);
    assert!(code == 2 && said.contains("another export writes") && said.contains("process 4711"), "{said}");
    assert_eq!(names(&work), ["00000", "lock"]);
    // As after a kill.
    drop(lock);
    assert_eq!(small.out("o", &[]).0, 0);
    assert_eq!(names(&small.path("o")), [".nigh-export", "u.jsonl"]);
}

#[test]
fn a_field_that_changed_is_an_error_and_a_copy_is_compared() {
    let small = Small::new();
    let input = small.path("u.jsonl");
    let before = std::fs::read_to_string(&input).unwrap();
    let touch = |text: &str| {
        std::fs::write(&input, text).unwrap();
        let file = std::fs::File::options().append(true).open(&input).unwrap();
        file.set_modified(std::time::SystemTime::now() + std::time::Duration::from_secs(5)).unwrap();
    };
    touch(&before);
    let (code, said) = small.out("a", &[]);
    assert!(code == 1 && said.contains("u.jsonl has changed") && said.contains("--touched"), "{said}");
    assert_eq!(small.out("b", &["--touched"]).0, 0);
    // Ids that changed places, of the same size.
    touch(&before.replace("\"d0\"", "\"dx\"").replace("\"d1\"", "\"d0\"").replace("\"dx\"", "\"d1\""));
    let (code, said) = small.out("c", &["--touched"]);
    assert!(code == 1 && said.contains("u.jsonl has changed"), "{said}");
    assert!(!small.path("c/u.jsonl").exists());
}

#[test]
fn annotating_twice_is_an_error() {
    let small = Small::new();
    for format in ["same", "parquet"] {
        let out = format!("once-{format}");
        assert_eq!(small.out(&out, &["--what", "annotated", "--format", format]).0, 0);
    }
    for (input, format) in [
        ("once-same/u.jsonl", "same"),
        ("once-same/u.jsonl", "parquet"),
        ("once-parquet/u.parquet", "same"),
        ("once-parquet/u.parquet", "jsonl"),
    ] {
        let (input, store) = (small.path(input), small.path(&format!("store-{format}-{}", input.len())));
        let [input, store, job] =
            [&input, &store, &small.path("job.toml")].map(|path| path.to_str().unwrap().to_owned());
        run_well(&["run", &job, "-q", "--no-accuracy", "--week", "2024-01-08", "--store", &store, "--input", &input]);
        let out = small.path("twice");
        let ran = run(&["export", &store, "--out", out.to_str().unwrap(), "--what", "annotated", "--format", format]);
        assert!(ran.code == Some(1) && ran.stderr.contains("has `nigh_cluster` already"), "{format}: {}", ran.stderr);
        assert!(!out.exists(), "nothing was written, and no folder is left");
    }
}
