//! Damaged and hostile files: each gives the pages and rejects that its manifest states.
//!
//! The items of each file, record by record, are tested in `readers`; here the whole program reads
//! them.

use std::collections::BTreeMap;
use std::path::Path;
use std::time::{Duration, Instant};

use crate::program::{Made, corpus, data, job, longs, nigh, output, texts};

/// A job that accepts any share of bad records.
fn tolerant(folder: &Path) -> std::path::PathBuf {
    job(
        folder,
        "[cluster]\nweek = \"2024-01-08\"\nmax-reject-share = 1.0\nmax-unknown-share = 1.0\nallow-empty = true\n[cluster.method]\nshards = 4\n",
    )
}

/// The pages and rejects that a row of the manifest asks for; `None` where it leaves a count open
/// (its column `expected` says in words what must hold). Three kinds of files have other counts
/// than their columns state.
fn wanted(row: &BTreeMap<String, String>) -> (Option<u64>, Option<u64>) {
    let number = |column: &str| row[column].parse::<u64>().ok();
    match row["file"].as_str() {
        // resource and conversion records are pages, too.
        "warc-types.warc.gz" => (Some(6), Some(0)),
        // The bomb is cut at the limit and read; so says the manifest, "or cut at the size limit".
        "http-gzip-bomb.warc.gz" => (Some(5), Some(0)),
        // No record, and no error.
        "empty.warc.gz" | "empty-member.warc.gz" => (Some(0), Some(0)),
        _ => (number("pages_to_read"), number("records_to_skip")),
    }
}

/// The rows of a manifest.
fn manifest(folder: &Path) -> Vec<BTreeMap<String, String>> {
    let text = std::fs::read_to_string(folder.join("manifest.tsv")).unwrap();
    let mut lines = text.lines().map(|line| line.split('\t').map(str::to_owned).collect::<Vec<_>>());
    let head = lines.next().unwrap();
    lines.map(|line| head.iter().cloned().zip(line).collect()).collect()
}

/// Runs the program over one dirty file, within 10 s and 1 GiB, and compares with its row.
fn assert_as_in_manifest(folder: &Path, row: &BTreeMap<String, String>, job: &Path) {
    let file = folder.join(&row["file"]);
    let store = tempfile::tempdir().unwrap();
    let store = store.path().join("store");
    let begun = Instant::now();
    let mut command = nigh(&[
        "run",
        job.to_str().unwrap(),
        "--json",
        "-q",
        "--workers",
        "1",
        "--input",
        file.to_str().unwrap(),
        "--store",
        store.to_str().unwrap(),
    ]);
    limit_memory(&mut command);
    let output = output(&mut command);
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{}: {stderr}", row["file"]);
    assert!(begun.elapsed() < Duration::from_secs(10), "{}: {:?}", row["file"], begun.elapsed());
    let summary: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    let counts = &summary["counts"];
    let rejected: u64 = counts["rejects"].as_object().unwrap().values().map(|count| count.as_u64().unwrap()).sum();
    let duplicates = counts["skipped"]["duplicate of a URL"].as_u64().unwrap_or(0);
    let pages = counts["documents"].as_u64().unwrap() + duplicates;
    let (wanted_pages, wanted_skips) = wanted(row);
    let found = format!("{}: {pages} pages, {rejected} rejected: {counts}; expected: {}", row["file"], row["expected"]);
    eprintln!("{}: {pages} pages ({duplicates} of the same URL), {rejected} rejected", row["file"]);
    if let Some(wanted) = wanted_pages {
        assert_eq!(pages, wanted, "{found}");
    }
    if let Some(wanted) = wanted_skips {
        assert_eq!(rejected, wanted, "{found}");
    }
    if wanted_pages.is_none() {
        assert!(pages >= 4, "the good pages are read: {found}");
    }
    // Every reject has its place and its reason.
    let week = store.join("week=2024-01-08");
    assert_eq!(texts(&week, "rejects", "reason").iter().filter(|reason| !reason.is_empty()).count() as u64, rejected);
    assert!(texts(&week, "rejects", "file").iter().all(|named| Path::new(named) == file));
    assert_eq!(longs(&week, "rejects", "offset").len() as u64, rejected);
}

/// 1 GiB of address space, as the system counts it, with what the program maps and never touches.
fn limit_memory(command: &mut std::process::Command) {
    // `ulimit` of the shell needs no unsafe code here.
    let program = command.get_program().to_owned();
    let arguments: Vec<_> = command.get_args().map(|argument| argument.to_owned()).collect();
    let folder = command.get_current_dir().unwrap().to_owned();
    let mut shell = std::process::Command::new("sh");
    shell.arg("-c").arg("ulimit -v 1048576; exec \"$0\" \"$@\"").arg(program).args(arguments).current_dir(folder);
    shell.stdin(std::process::Stdio::null());
    *command = shell;
}

#[test]
fn shipped_dirty_files_do_what_their_manifest_says() {
    let folder = data("dirty");
    let jobs = tempfile::tempdir().unwrap();
    let rows = manifest(&folder);
    assert!(rows.len() >= 6);
    rows.iter().for_each(|row| assert_as_in_manifest(&folder, row, &tolerant(jobs.path())));
}

#[test]
fn all_dirty_files_of_the_corpus_do_what_their_manifest_says() {
    let Some(folder) = corpus("dirty", "51 hostile files") else { return };
    let jobs = tempfile::tempdir().unwrap();
    let rows = manifest(&folder);
    assert_eq!(rows.len(), 51);
    rows.iter().for_each(|row| assert_as_in_manifest(&folder, row, &tolerant(jobs.path())));
}

#[test]
fn dirty_files_beside_a_crawl_lose_none_of_its_pages() {
    let clean = Made::new(&[]);
    let folder = tempfile::tempdir().unwrap();
    let (crawl, dirty) = (data("week-2024-01-08"), data("dirty"));
    let flags = ["--workers", "2", "--input", crawl.to_str().unwrap(), dirty.to_str().unwrap()];
    let both = Made::with_job(&tolerant(folder.path()), &flags);
    let urls = |made: &Made| texts(&made.week(), "documents", "url");
    let all = urls(&both);
    assert!(urls(&clean).iter().all(|url| all.contains(url)));
    assert!(all.len() > urls(&clean).len() + 20);
    // The URLs that are answered twice are pages once, and rejects tell their URL where it could be
    // read.
    assert_eq!(all.iter().collect::<std::collections::BTreeSet<_>>().len(), all.len());
    assert!(texts(&both.week(), "rejects", "url").iter().any(|url| url.starts_with("http")));
}

#[test]
fn a_flood_of_bad_records_is_bounded_and_reported() {
    use std::io::Write;
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("flood.warc.gz");
    let mut stored =
        flate2::write::GzEncoder::new(std::fs::File::create(&file).unwrap(), flate2::Compression::default());
    for _ in 0..100_000 {
        stored.write_all(b"WARC/1.0\r\n\r\n").unwrap();
    }
    stored.finish().unwrap();
    let made = Made::with_job(&tolerant(folder.path()), &["--input", file.to_str().unwrap()]);
    let listed = texts(&made.week(), "rejects", "reason").len();
    let shown = crate::program::run_well(&["show", made.store().to_str().unwrap(), "--json"]).stdout;
    let summary: serde_json::Value = serde_json::from_str(&shown).unwrap();
    let rejects: u64 =
        summary["counts"]["rejects"].as_object().unwrap().values().map(|count| count.as_u64().unwrap()).sum();
    let unlisted: u64 =
        summary["counts"]["unlisted"].as_object().unwrap().values().map(|count| count.as_u64().unwrap()).sum();
    assert_eq!(listed, 10_000);
    assert_eq!(rejects, listed as u64 + unlisted);
    assert!(rejects > 90_000, "{rejects}");
}

#[test]
fn false_beginnings_of_members_cost_linear_time() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("false.warc.gz");
    // A damaged member, then two megabytes of headers whose names never end.
    let mut bytes = b"\x1f\x8b\x08\xff".to_vec();
    bytes.extend([7; 12]);
    while bytes.len() < 2 << 20 {
        bytes.extend(b"\x1f\x8b\x08\x08AAAAAA");
    }
    std::fs::write(&file, bytes).unwrap();
    let begun = Instant::now();
    Made::with_job(&tolerant(folder.path()), &["--input", file.to_str().unwrap()]);
    // Were it quadratic, this would take half a minute at the least.
    assert!(begun.elapsed() < Duration::from_secs(10), "{:?}", begun.elapsed());
}

#[test]
fn a_cut_parquet_file_is_one_reject_beside_good_files() {
    let folder = tempfile::tempdir().unwrap();
    let whole = std::fs::read(data("formats/pages.parquet")).unwrap();
    let file = folder.path().join("cut.parquet");
    std::fs::write(&file, &whole[..whole.len() / 2]).unwrap();
    let good = data("formats/pages.parquet");
    let flags = ["--input", file.to_str().unwrap(), good.to_str().unwrap()];
    let made = Made::with_job(&tolerant(folder.path()), &flags);
    assert_eq!(texts(&made.week(), "rejects", "reason"), ["parquet: not a whole file"]);
    assert_eq!(longs(&made.week(), "documents", "doc").len(), 40);
}

#[test]
fn a_parquet_file_on_which_its_crate_panics_is_rejects_beside_good_files() {
    let folder = tempfile::tempdir().unwrap();
    let (bad, good) = (data("dirty/parquet-negative.parquet"), data("formats/pages.parquet"));
    let input = ["--input", bad.to_str().unwrap(), good.to_str().unwrap()];
    for processes in ["1", "2"] {
        let flags = [&input[..], &["--processes", processes]].concat();
        let made = Made::with_job(&tolerant(folder.path()), &flags);
        let reason = "parquet: damaged row group: column start and length should not be negative";
        assert_eq!(texts(&made.week(), "rejects", "reason"), [reason; 2]);
        assert!(texts(&made.week(), "rejects", "file").iter().all(|file| Path::new(file) == bad));
        // The first row group of the damaged file is good.
        assert_eq!(longs(&made.week(), "documents", "doc").len(), 42);
    }
}

#[test]
fn a_dry_run_names_damaged_files() {
    let folder = tempfile::tempdir().unwrap();
    let whole = std::fs::read(data("formats/pages.wacz")).unwrap();
    let cut = folder.path().join("cut.wacz");
    std::fs::write(&cut, &whole[..whole.len() - 200]).unwrap();
    let bad = data("dirty/parquet-bounds.parquet");
    let job = job(folder.path(), "[cluster]\nweek = \"2024-01-08\"\n[cluster.read.columns]\nip = \"ip\"\n");
    let store = folder.path().join("store");
    let shown = crate::program::run_well(&[
        "run",
        job.to_str().unwrap(),
        "--dry-run",
        "--store",
        store.to_str().unwrap(),
        "--input",
        bad.to_str().unwrap(),
        cut.to_str().unwrap(),
    ]);
    let damaged: Vec<&str> = shown.stdout.lines().filter(|line| line.starts_with("Damaged")).collect();
    assert_eq!(damaged.len(), 2, "{}", shown.stdout);
    assert!(shown.stdout.contains(&format!("{}: parquet: damaged row group", bad.display())), "{}", shown.stdout);
    assert!(shown.stdout.contains(&format!("{}: zip: not a whole file", cut.display())), "{}", shown.stdout);
    assert!(!shown.stderr.contains("panicked"), "{}", shown.stderr);
}

#[test]
fn cut_and_damaged_files_of_the_other_formats_are_rejects_with_their_names() {
    let folder = tempfile::tempdir().unwrap();
    let cut = |name: &str, length: usize| {
        let whole = std::fs::read(data(&format!("formats/{name}"))).unwrap();
        let file = folder.path().join(name);
        std::fs::write(&file, &whole[..whole.len() - length]).unwrap();
        file
    };
    let changed = |name: &str, place: usize| {
        let mut whole = std::fs::read(data(&format!("formats/{name}"))).unwrap();
        whole[place] ^= 0x55;
        let file = folder.path().join(format!("changed-{name}"));
        std::fs::write(&file, whole).unwrap();
        file
    };
    for (file, reason, pages) in [
        (cut("pages.warc.bz2", 2000), "bzip2: the file ends inside a stream", 7),
        (cut("pages.warc.xz", 2000), "xz: the file ends inside a stream", 7),
        (cut("pages.arc.gz", 20), "gzip: the file ends inside a member", 9),
        (changed("pages.wacz", 3000), "zip: damaged entry", 7),
        (changed("pages.wacz", 9000), "zip: damaged entry", 5),
    ] {
        let made = Made::with_job(&tolerant(folder.path()), &["--input", file.to_str().unwrap()]);
        let reasons = texts(&made.week(), "rejects", "reason");
        assert!(reasons.iter().any(|found| found == reason), "{}: {reasons:?}", file.display());
        let files = texts(&made.week(), "rejects", "file");
        assert!(files.iter().all(|name| name.starts_with(file.to_str().unwrap())), "{files:?}");
        let found = longs(&made.week(), "documents", "doc").len();
        assert!(found >= pages && found < 10, "{}: {found} pages, {reasons:?}", file.display());
    }
}

#[test]
fn pages_without_words_are_in_a_cluster_only_if_they_are_equal() {
    let folder = tempfile::tempdir().unwrap();
    let rows = folder.path().join("rows.jsonl");
    let text = |i: usize| if i < 5 { " -- " } else { " --" };
    let empty = |i: usize| format!("{{\"url\": \"http://a.example/{i}\", \"text\": \"{}\"}}\n", text(i));
    std::fs::write(&rows, (0..6).map(empty).collect::<String>()).unwrap();
    let made = Made::with_job(&tolerant(folder.path()), &["--input", rows.to_str().unwrap()]);
    for level in ["similar_size", "identical_size", "exact_size"] {
        let mut sizes = longs(&made.week(), "clusters", level);
        sizes.sort_unstable();
        assert_eq!(sizes, [1, 5, 5, 5, 5, 5], "{level}");
    }
}

#[test]
fn a_file_of_another_format_is_one_reject() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("page.warc");
    std::fs::write(&file, "%PDF-1.4 this is no crawl\n").unwrap();
    let made = Made::with_job(&tolerant(folder.path()), &["--input", file.to_str().unwrap()]);
    assert_eq!(texts(&made.week(), "rejects", "reason").len(), 1);
}
