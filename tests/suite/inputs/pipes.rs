//! What a user names as input: pipes, files that are cut short or changed, and folders with more
//! than inputs.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use flate2::Compression;
use flate2::write::GzEncoder;

use crate::program::{Ran, job, nigh, ran, texts};

/// A page of JSON Lines, the `number`th of a crawl.
fn line(number: usize) -> String {
    let words: Vec<String> = (0..40).map(|word| format!("w{}", (number * 7919 + word * 104_729) % 9973)).collect();
    format!("{{\"url\": \"http://host{}.example/{number}\", \"text\": \"{}\"}}\n", number % 50, words.join(" "))
}

/// This many pages of JSON Lines.
fn lines(pages: usize) -> Vec<u8> {
    (0..pages).map(line).collect::<String>().into_bytes()
}

fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut gzip = GzEncoder::new(Vec::new(), Compression::default());
    gzip.write_all(bytes).unwrap();
    gzip.finish().unwrap()
}

/// A job with four shards, and with this text in its table `[cluster]`.
fn small_job(folder: &Path, text: &str) -> PathBuf {
    job(folder, &format!("[cluster]\nweek = \"2024-01-08\"\n{text}\n[cluster.method]\nshards = 4\n"))
}

/// The command that makes a week in a new or existing store.
fn command(job: &Path, store: &Path, arguments: &[&str]) -> Command {
    let mut command = nigh(&["run", job.to_str().unwrap(), "--store", store.to_str().unwrap()]);
    command.args(arguments);
    command
}

/// Runs a command with these bytes in a pipe on its standard input.
fn piped(command: &mut Command, bytes: Vec<u8>) -> Ran {
    let (reader, mut writer) = std::io::pipe().unwrap();
    // A command that does not read its input to the end breaks the pipe.
    let writing = std::thread::spawn(move || drop(writer.write_all(&bytes)));
    let ran = ran(command.stdin(Stdio::from(reader)));
    command.stdin(Stdio::null());
    writing.join().unwrap();
    ran
}

/// The number of documents that a run reports, which must end well.
fn documents(ran: &Ran) -> u64 {
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    let summary: serde_json::Value = serde_json::from_str(&ran.stdout).unwrap();
    summary["counts"]["documents"].as_u64().unwrap()
}

/// Makes a FIFO, and writes these bytes to it once it is opened.
fn fifo(path: &Path, bytes: Vec<u8>) -> std::thread::JoinHandle<()> {
    rustix::fs::mknodat(rustix::fs::CWD, path, rustix::fs::FileType::Fifo, 0o600.into(), 0).unwrap();
    let path = path.to_owned();
    std::thread::spawn(move || std::fs::write(path, bytes).unwrap())
}

#[test]
fn a_pipe_gives_all_of_its_pages_to_any_number_of_workers_and_processes() {
    let folder = tempfile::tempdir().unwrap();
    let job = small_job(folder.path(), "");
    let settings = [["--workers", "1"], ["--workers", "2"], ["--processes", "2"]];
    for (number, setting) in settings.iter().enumerate() {
        for item in ["-", "/dev/stdin"] {
            for (kind, bytes) in [("plain", lines(1000)), ("gzip", gzip(&lines(1000)))] {
                let store = folder.path().join(format!("store-{number}-{kind}{}", item.replace('/', "-")));
                let temporary = folder.path().join("temporary");
                std::fs::create_dir_all(&temporary).unwrap();
                let mut command = command(&job, &store, &["--json", "--input", item]);
                let ran = piped(command.args(setting).env("TMPDIR", &temporary), bytes);
                assert_eq!(documents(&ran), 1000, "{setting:?} {item} {kind}");
                assert_eq!(texts(&store.join("week=2024-01-08"), "documents", "file"), [item; 1000]);
                assert_eq!(std::fs::read_dir(&temporary).unwrap().count(), 0, "no copy is left");
            }
        }
        let store = folder.path().join(format!("store-{number}-fifo"));
        let path = folder.path().join(format!("fifo-{number}"));
        let writing = fifo(&path, gzip(&lines(1000)));
        let mut command = command(&job, &store, &["--json", "--input", path.to_str().unwrap()]);
        assert_eq!(documents(&ran(command.args(setting))), 1000);
        writing.join().unwrap();
    }
}

/// A page as a record of WARC, the `number`th of a crawl.
fn record(number: usize) -> String {
    let page = format!("HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n\r\n<p>{}", line(number));
    let head = "WARC/1.0\r\nWARC-Type: response\r\nWARC-Date: 2024-01-08T00:00:00Z\r\nContent-Type: application/http; msgtype=response";
    let (url, length) = (format!("http://host{number}.example/"), page.len());
    format!("{head}\r\nWARC-Target-URI: {url}\r\nContent-Length: {length}\r\n\r\n{page}\r\n\r\n")
}

#[test]
fn a_file_that_grows_is_read_as_far_as_it_was_and_named() {
    let folder = tempfile::tempdir().unwrap();
    let job = small_job(folder.path(), "");
    let csv = |pages: std::ops::Range<usize>| -> Vec<u8> {
        pages.flat_map(|page| format!("http://h/{page},text {page} of this file\n").into_bytes()).collect()
    };
    let records = |pages: std::ops::Range<usize>| pages.map(record).collect::<String>().into_bytes();
    let kinds = [
        ("crawl.warc", records(0..30), records(30..90)),
        ("crawl.warc.gz", gzip(&records(0..30)), gzip(&records(30..90))),
        ("crawl.jsonl", lines(30), lines(90)),
        ("crawl.csv", [b"url,text\n".to_vec(), csv(0..30)].concat(), csv(30..90)),
    ];
    for (name, first, more) in kinds {
        let [file, pipe, store] = ["", ".fifo", ".store"].map(|ending| folder.path().join(format!("{name}{ending}")));
        std::fs::write(&file, first).unwrap();
        rustix::fs::mknodat(rustix::fs::CWD, &pipe, rustix::fs::FileType::Fifo, 0o600.into(), 0).unwrap();
        let growing = {
            let (file, pipe) = (file.clone(), pipe.clone());
            std::thread::spawn(move || {
                // The program opens the pipe once it has listed the file.
                let mut pipe = std::fs::File::options().write(true).open(pipe).unwrap();
                std::fs::File::options().append(true).open(file).unwrap().write_all(&more).unwrap();
                pipe.write_all(line(1000).as_bytes()).unwrap();
            })
        };
        let [file, pipe] = [&file, &pipe].map(|path| path.to_str().unwrap());
        let ran = ran(&mut command(&job, &store, &["--json", "--input", file, "--input", pipe]));
        growing.join().unwrap();
        assert_eq!(documents(&ran), 31, "{name}: {}", ran.stderr);
        let rejects = texts(&store.join("week=2024-01-08"), "rejects", "reason");
        assert!(rejects.is_empty(), "{name}: {rejects:?}");
        let warning = format!("{file} changed while this run read it");
        assert!(ran.stderr.contains(&warning), "{}", ran.stderr);
    }
}

#[test]
fn a_file_on_standard_input_is_read_by_every_process() {
    let folder = tempfile::tempdir().unwrap();
    let job = small_job(folder.path(), "");
    let file = folder.path().join("crawl");
    std::fs::write(&file, lines(1000)).unwrap();
    for item in ["-", "/dev/stdin"] {
        let store = folder.path().join(format!("store{}", item.replace('/', "-")));
        let mut command = command(&job, &store, &["--json", "--processes", "2", "--input", item]);
        assert_eq!(documents(&ran(command.stdin(std::fs::File::open(&file).unwrap()))), 1000, "{item}");
    }
}

#[test]
fn a_run_resumes_if_the_same_bytes_are_piped_again_and_starts_again_with_others() {
    let folder = tempfile::tempdir().unwrap();
    let store = folder.path().join("store");
    // The second wave has too many bad records: the run ends when both waves are kept.
    let bad = folder.path().join("bad.jsonl");
    std::fs::write(&bad, "no JSON\n".repeat(500)).unwrap();
    let strict = small_job(folder.path(), "wave-bytes = 1");
    let input = ["--input", "-", bad.to_str().unwrap()];
    let stopped = piped(&mut command(&strict, &store, &input), lines(1000));
    assert_eq!(stopped.code, Some(3), "{}", stopped.stderr);
    let other = piped(&mut command(&strict, &store, &input), lines(1001));
    assert!(other.code == Some(3) && other.stderr.contains("its 2 waves are dropped"), "{}", other.stderr);
    let tolerant = small_job(folder.path(), "wave-bytes = 1\nmax-reject-share = 1.0");
    let resumed = piped(command(&tolerant, &store, &input).arg("--json"), lines(1001));
    assert!(resumed.stderr.contains("resuming after wave 2 of 2"), "{}", resumed.stderr);
    assert_eq!(documents(&resumed), 1001);
    let again = piped(command(&tolerant, &store, &input).arg("--json"), lines(1001));
    assert!(again.stderr.contains("nothing to do"), "{}", again.stderr);
}

#[test]
fn a_dry_run_and_a_device_leave_standard_input_alone_and_say_so() {
    let folder = tempfile::tempdir().unwrap();
    let (job, store) = (small_job(folder.path(), ""), folder.path().join("store"));
    let dry = piped(&mut command(&job, &store, &["--dry-run", "--input", "-"]), lines(10));
    assert_eq!(dry.code, Some(1));
    assert!(dry.stderr.contains("- is a pipe") && dry.stderr.contains("a dry run would use it up"), "{}", dry.stderr);
    let device = ran(command(&job, &store, &["--input", "-"]).stdin(Stdio::null()));
    assert_eq!(device.code, Some(1));
    assert!(device.stderr.contains("a terminal, a folder or a device"), "{}", device.stderr);
    assert!(!store.exists());
}

#[test]
fn a_compressed_file_that_is_cut_short_fails_the_run_and_is_named() {
    let folder = tempfile::tempdir().unwrap();
    let (strict, tolerant) = (small_job(folder.path(), ""), folder.path().join("tolerant"));
    std::fs::create_dir(&tolerant).unwrap();
    let tolerant = small_job(&tolerant, "max-reject-share = 1.0");
    let zstd = |bytes: &[u8]| zstd::bulk::compress(bytes, 1).unwrap();
    for (name, whole) in [("a.jsonl.gz", gzip(&lines(4000))), ("b.jsonl.zst", zstd(&lines(4000)))] {
        let file = folder.path().join(name);
        std::fs::write(&file, &whole[..whole.len() / 2]).unwrap();
        let file = file.to_str().unwrap();
        for processes in ["1", "2"] {
            let store = folder.path().join(format!("store-{name}-{processes}"));
            let flags = ["--processes", processes, "--input", file];
            let failed = ran(&mut command(&strict, &store, &flags));
            assert_eq!(failed.code, Some(3), "{}", failed.stderr);
            let wanted = format!("of {file}, which ends early");
            assert!(
                failed.stderr.contains("could not be read (100.0%") && failed.stderr.contains(&wanted),
                "{}",
                failed.stderr
            );
            // Its pages are accepted if the job says so, and the summary still names the file.
            let accepted = ran(&mut command(&tolerant, &store, &flags));
            assert_eq!(accepted.code, Some(0), "{}", accepted.stderr);
            assert!(
                accepted.stdout.contains(&format!("not read of {file}: the file ends early")),
                "{}",
                accepted.stdout
            );
            let json = ran(command(&tolerant, &store, &flags).arg("--json"));
            let counts = &serde_json::from_str::<serde_json::Value>(&json.stdout).unwrap()["counts"];
            assert_eq!(counts["unread"][file], (whole.len() / 2) as u64);
            assert_eq!(counts["ends_early"], serde_json::json!([file]));
            let pages = counts["documents"].as_u64().unwrap();
            assert!((1..4000).contains(&pages), "{pages}");
        }
    }
}

#[test]
fn a_file_that_was_corrected_in_place_is_named_and_not_taken_for_the_same() {
    let folder = tempfile::tempdir().unwrap();
    let (job, store) = (small_job(folder.path(), ""), folder.path().join("store"));
    let (same, file) = (folder.path().join("a.jsonl"), folder.path().join("b.jsonl"));
    std::fs::write(&same, lines(20)).unwrap();
    std::fs::write(&file, line(20)).unwrap();
    let input = ["--json", "--input", same.to_str().unwrap(), file.to_str().unwrap()];
    assert_eq!(documents(&ran(&mut command(&job, &store, &input))), 21);
    let again = ran(&mut command(&job, &store, &input));
    assert!(again.code == Some(0) && again.stderr.contains("nothing to do"), "{}", again.stderr);
    // As many bytes, and another word.
    std::fs::write(&file, line(20).replace(" w1", " x1")).unwrap();
    let changed = ran(&mut command(&job, &store, &input));
    assert_eq!(changed.code, Some(1), "{}", changed.stderr);
    let wanted = format!("already, and {} changed since: --replace computes the week again", file.display());
    assert!(changed.stderr.contains(&wanted), "{}", changed.stderr);
    assert_eq!(documents(&ran(command(&job, &store, &input).arg("--replace"))), 21);
}

#[test]
fn an_unfinished_week_starts_again_if_a_file_changed_and_names_it() {
    let folder = tempfile::tempdir().unwrap();
    let (job, store) = (small_job(folder.path(), "wave-bytes = 1"), folder.path().join("store"));
    let (good, bad) = (folder.path().join("a.jsonl"), folder.path().join("b.jsonl"));
    std::fs::write(&good, lines(20)).unwrap();
    std::fs::write(&bad, "no JSON\n".repeat(20)).unwrap();
    let input = ["--json", "--input", good.to_str().unwrap(), bad.to_str().unwrap()];
    assert_eq!(ran(&mut command(&job, &store, &input)).code, Some(3));
    std::fs::write(&bad, line(20)).unwrap();
    let ran = ran(&mut command(&job, &store, &input));
    assert_eq!(documents(&ran), 21);
    let wanted = format!("made from other input ({} changed since): its 2 waves are dropped", bad.display());
    assert!(ran.stderr.contains(&wanted), "{}", ran.stderr);
}

#[test]
fn what_a_folder_holds_besides_inputs_is_counted_and_named() {
    let folder = tempfile::tempdir().unwrap();
    let crawl = folder.path().join("crawl");
    std::fs::create_dir(&crawl).unwrap();
    std::fs::write(crawl.join("a.jsonl"), lines(20)).unwrap();
    for name in ["b.txt", "c.txt", "d.md"] {
        std::fs::write(crawl.join(name), "words").unwrap();
    }
    std::os::unix::fs::symlink("nothing", crawl.join("dangling")).unwrap();
    rustix::fs::mknodat(rustix::fs::CWD, crawl.join("pipe.jsonl"), rustix::fs::FileType::Fifo, 0o600.into(), 0)
        .unwrap();
    let (job, store) = (small_job(folder.path(), ""), folder.path().join("store"));
    let ran = ran(&mut command(&job, &store, &["--json", "--input", crawl.to_str().unwrap()]));
    assert_eq!(documents(&ran), 20);
    for wanted in [
        "left out of folders, globs and WACZ files: *.txt: 2 (",
        "*.md: 1 (",
        "links to no file: 1 (",
        "pipes, sockets or devices: 1 (",
    ] {
        assert!(ran.stderr.contains(wanted), "{wanted}: {}", ran.stderr);
    }
}

#[test]
fn mistaken_inputs_and_stores_get_a_sentence_that_says_what_to_do() {
    let folder = tempfile::tempdir().unwrap();
    let (job, store) = (small_job(folder.path(), ""), folder.path().join("store"));
    let failed = |name: &str, content: &[u8], flags: &[&str]| {
        let file = folder.path().join(name);
        std::fs::write(&file, content).unwrap();
        let ran = ran(command(&job, &store, &["--input", file.to_str().unwrap()]).args(flags));
        assert_eq!(ran.code, Some(1), "{}", ran.stderr);
        assert!(!store.join("week=2024-01-08").exists() && !store.join("manifest.json").exists());
        ran.stderr
    };
    for flags in [&[][..], &["--dry-run"]] {
        let stderr = failed("a.jsonl", b"{\"id\": 17, \"content\": \"one two\"}\n", flags);
        assert!(
            stderr.contains("no field `text`: it has content, id; set the names in [cluster.read.columns]"),
            "{stderr}"
        );
        let stderr = failed("b.json", b"[{\"url\": \"http://a.example/\", \"text\": \"one\"}]", flags);
        assert!(stderr.contains("is a JSON array") && stderr.contains("jq -c '.[]'"), "{stderr}");
        let pointer = b"version https://git-lfs.github.com/spec/v1\noid sha256:4d7a\nsize 12345\n";
        for name in ["c.parquet", "c.warc.gz", "c"] {
            assert!(failed(name, pointer, flags).contains("git-lfs pointer"), "{name}");
        }
    }
    for (name, content) in [("d.jsonl", &b""[..]), ("d.warc.gz", &gzip(b""))] {
        let stderr = failed(name, content, &[]);
        assert!(
            stderr.contains("the input has no page (0 records in 1 file") && stderr.contains("--allow-empty"),
            "{stderr}"
        );
    }
    let empty = folder.path().join("d.jsonl");
    let flags = ["--json", "--allow-empty", "--input", empty.to_str().unwrap()];
    assert_eq!(documents(&ran(&mut command(&job, &store, &flags))), 0);
    // A week, or a table of one, instead of its store.
    for inside in ["documents/week=2024-01-08", "documents"] {
        let inside = store.join(inside);
        let wanted = format!("{} is a folder inside of the store {}", inside.display(), store.display());
        for ran in [
            ran(&mut command(&job, &inside, &["--allow-empty", "--input", empty.to_str().unwrap()])),
            ran(&mut nigh(&["show", inside.to_str().unwrap()])),
        ] {
            assert!(ran.code == Some(2) && ran.stderr.contains(&wanted), "{}", ran.stderr);
        }
    }
}

/// A stream of Arrow with ids and texts, in batches of ten rows.
fn arrow(from: usize, rows: usize) -> Vec<u8> {
    use std::sync::Arc;

    use arrow_array::{ArrayRef, RecordBatch, StringArray};

    let batches = (from..from + rows).step_by(10).map(|from| {
        let texts = |text: fn(usize) -> String| -> ArrayRef {
            Arc::new(StringArray::from_iter_values((from..from + 10).map(text)))
        };
        let text = |row: usize| line(row).split('"').nth(7).unwrap().to_owned();
        RecordBatch::try_from_iter([("id", texts(|row| format!("id{row}"))), ("text", texts(text))]).unwrap()
    });
    let batches: Vec<RecordBatch> = batches.collect();
    let mut writer = arrow_ipc::writer::StreamWriter::try_new(Vec::new(), &batches[0].schema()).unwrap();
    batches.iter().for_each(|batch| writer.write(batch).unwrap());
    writer.finish().unwrap();
    writer.into_inner().unwrap()
}

#[test]
fn arrow_that_is_cut_is_named_and_streams_behind_each_other_are_read() {
    let folder = tempfile::tempdir().unwrap();
    let by_id = job(folder.path(), "[cluster]\nweek = \"2024-01-08\"\n[cluster.read.columns]\nid = \"id\"\n");
    let run = |store: &str, bytes: &[&[u8]]| {
        let write = |(number, bytes): (usize, &&[u8])| {
            let path = folder.path().join(format!("{number}.arrow"));
            std::fs::write(&path, bytes).unwrap();
            path.to_str().unwrap().to_owned()
        };
        let paths: Vec<String> = bytes.iter().enumerate().map(write).collect();
        let flags = [&["--json", "--input"][..], &paths.iter().map(String::as_str).collect::<Vec<_>>()].concat();
        ran(&mut command(&by_id, &folder.path().join(store), &flags))
    };
    let [a, b] = [arrow(0, 50), arrow(50, 50)];
    let joined = [&a[..], &b].concat();
    assert_eq!(documents(&run("joined", &[&joined])), 100);
    let cut = run("cut", &[&a, &b[..b.len() * 3 / 4]]);
    assert_eq!(cut.code, Some(3), "{}", cut.stderr);
    assert!(cut.stderr.contains("1.arrow, which ends early"), "{}", cut.stderr);
    let damaged = run("damaged", &[&a, &[&b[..], b"no stream at all, of some length".repeat(100).as_slice()].concat()]);
    assert_eq!(damaged.code, Some(3), "{}", damaged.stderr);
    assert!(damaged.stderr.contains("1.arrow"), "{}", damaged.stderr);
    let flags = ["--json", "--input", "-"];
    assert_eq!(documents(&piped(&mut command(&by_id, &folder.path().join("piped"), &flags), joined)), 100);
}

#[test]
fn a_compressed_file_with_a_damaged_beginning_is_unread() {
    let folder = tempfile::tempdir().unwrap();
    let (job, good) = (small_job(folder.path(), ""), folder.path().join("good.jsonl"));
    std::fs::write(&good, lines(100)).unwrap();
    let others: Vec<u8> = (400..800).map(line).collect::<String>().into_bytes();
    let files = [("a.gz", gzip(&others)), ("a.zst", zstd::bulk::compress(&others, 1).unwrap())];
    for (name, mut bytes) in files {
        bytes[..10].fill(0);
        let path = folder.path().join(name.replace('.', ".jsonl."));
        std::fs::write(&path, bytes).unwrap();
        let flags = ["--json", "--input", good.to_str().unwrap(), path.to_str().unwrap()];
        let failed = ran(&mut command(&job, &folder.path().join(format!("store-{name}")), &flags));
        assert_eq!(failed.code, Some(3), "{name}: {}", failed.stderr);
        assert!(failed.stderr.contains(path.to_str().unwrap()), "{}", failed.stderr);
        // So is one of CSV, of which the first line would be the names.
        let rows: Vec<u8> = (0..4000).flat_map(|row| format!("{row},some words of row {row}\n").into_bytes()).collect();
        let table = folder.path().join(name.replace('.', ".csv."));
        let mut bytes = if name == "a.gz" { gzip(&rows) } else { zstd::bulk::compress(&rows, 1).unwrap() };
        bytes[..10].fill(0);
        std::fs::write(&table, bytes).unwrap();
        let of_table = ["--json", "--input", good.to_str().unwrap(), table.to_str().unwrap()];
        let failed = ran(&mut command(&job, &folder.path().join(format!("table-{name}")), &of_table));
        assert_eq!(failed.code, Some(3), "{name}: {}", failed.stderr);
        assert!(failed.stderr.contains(table.to_str().unwrap()), "{}", failed.stderr);
        // Text is read, whatever the name says.
        std::fs::write(&path, &others).unwrap();
        assert_eq!(documents(&ran(&mut command(&job, &folder.path().join(format!("text-{name}")), &flags))), 500);
    }
}

#[test]
fn a_record_of_csv_that_is_not_utf8_is_a_reject_and_many_have_a_hint() {
    let folder = tempfile::tempdir().unwrap();
    let columns = "[cluster.read.columns]\nid = \"id\"";
    let (job, path) = (small_job(folder.path(), columns), folder.path().join("a.csv"));
    std::fs::write(&path, b"id,text\nx\xff,one two\nx\xfe,one two\ny,three four\n").unwrap();
    let flags = ["--json", "--input", path.to_str().unwrap()];
    let failed = ran(&mut command(&job, &folder.path().join("store"), &flags));
    assert_eq!(failed.code, Some(3), "{}", failed.stderr);
    for wanted in ["2 x csv: not UTF-8", "`iconv -f CHARSET -t UTF-8`"] {
        assert!(failed.stderr.contains(wanted), "{}", failed.stderr);
    }
    let job = small_job(folder.path(), &format!("max-reject-share = 1.0\n{columns}"));
    let done = ran(&mut command(&job, &folder.path().join("tolerant"), &flags));
    assert_eq!(documents(&done), 1);
    let summary: serde_json::Value = serde_json::from_str(&done.stdout).unwrap();
    let rejects = &summary["counts"]["rejects"];
    assert_eq!(rejects["csv: not UTF-8"], 2, "{rejects}");
}
