//! Datasets instead of crawls: documents that are known by an id, or by file and place.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use arrow_array::{ArrayRef, Int64Array, RecordBatch, StringArray};
use parquet::arrow::ArrowWriter;

use crate::program::{Ran, has_week, job, longs, roots, run, run_well, tables, texts, week};

const DATE: &str = "2024-01-08";

/// The texts of some families of near-duplicates: text `n` is of family `n % families`, and differs
/// from the others in one word.
pub fn text(number: usize, families: usize) -> String {
    let word = |place: usize| match place {
        70 => format!("own{number}"),
        _ => format!("w{}", ((number % families + 1) * 7919 + place * 104_729) % 99_991),
    };
    (0..140).map(word).collect::<Vec<_>>().join(" ")
}

/// A line of JSON for each of these texts, with the fields that `fields` gives before the text.
pub fn lines(texts: &[String], fields: impl Fn(usize) -> String) -> String {
    texts.iter().enumerate().map(|(number, text)| format!("{{{}\"text\": \"{text}\"}}\n", fields(number))).collect()
}

/// Runs a job with four shards and this text in its table `[cluster.read]` on some inputs.
fn made(folder: &Path, name: &str, read: &str, inputs: &[&Path], flags: &[&str]) -> (Ran, PathBuf) {
    let job = job(
        folder,
        &format!(
            "[cluster]\nweek = \"{DATE}\"\nmax-reject-share = 1.0\n[cluster.read]\n{read}\n[cluster.method]\nshards = 4\nsimilarity = 0.8\n"
        ),
    );
    let store = folder.join(name);
    let mut arguments = vec!["run", job.to_str().unwrap(), "--store", store.to_str().unwrap(), "--input"];
    arguments.extend(inputs.iter().map(|path| path.to_str().unwrap()));
    arguments.extend(flags);
    (run(&arguments), store)
}

/// The clusters of a week as sets of names, which a column of `documents` gives.
fn clusters(of: &Path, column: &str) -> BTreeSet<BTreeSet<String>> {
    let names: BTreeMap<i64, String> =
        longs(of, "documents", "doc").into_iter().zip(texts(of, "documents", column)).collect();
    let mut clusters: BTreeMap<i64, BTreeSet<String>> = BTreeMap::new();
    for (doc, root) in roots(of, "similar") {
        clusters.entry(root).or_default().insert(names[&doc].clone());
    }
    clusters.into_values().collect()
}

/// Whether a table names files and places in them, or depends on whether pages can be read again at
/// their places.
fn names_places(table: &str) -> bool {
    ["documents", "rejects", "accuracy"].iter().any(|name| table.contains(name))
}

/// The families, with what `name` calls the texts.
fn families(count: usize, families: usize, name: impl Fn(usize) -> String) -> BTreeSet<BTreeSet<String>> {
    (0..families).map(|family| (family..count).step_by(families).map(&name).collect()).collect()
}

#[test]
fn documents_are_known_by_ids_of_every_kind() {
    let folder = tempfile::tempdir().unwrap();
    let texts_of: Vec<String> = (0..60).map(|number| text(number, 20)).collect();
    let name = |number: usize| (9_007_199_254_740_993 + number as u64).to_string();
    let json = |kind: &str| {
        let path = folder.path().join(format!("{kind}.jsonl"));
        let lines = lines(&texts_of, |number| match kind {
            "integers" => format!("\"id\": {}, ", name(number)),
            "strings" => format!("\"id\": \"{}\", ", name(number)),
            _ => format!("\"meta\": {{\"key\": \"{}\"}}, ", name(number)),
        });
        std::fs::write(&path, lines).unwrap();
        path
    };
    let ids: Vec<i64> = (0..60).map(|number| name(number).parse().unwrap()).collect();
    let columns: Vec<(&str, ArrayRef)> =
        vec![("id", Arc::new(Int64Array::from(ids))), ("text", Arc::new(StringArray::from(texts_of.clone())))];
    let batch = RecordBatch::try_from_iter(columns).unwrap();
    let parquet = folder.path().join("rows.parquet");
    let mut writer = ArrowWriter::try_new(std::fs::File::create(&parquet).unwrap(), batch.schema(), None).unwrap();
    writer.write(&batch).unwrap();
    writer.close().unwrap();

    let mut all = Vec::new();
    for (kind, input, column) in [
        ("integers", json("integers"), "id"),
        ("strings", json("strings"), "id"),
        ("nested", json("nested"), "meta.key"),
        ("parquet", parquet, "id"),
    ] {
        let (ran, store) = made(folder.path(), kind, &format!("columns = {{ id = \"{column}\" }}"), &[&input], &[]);
        assert_eq!(ran.code, Some(0), "{kind}: {}", ran.stderr);
        let week = week(&store, DATE);
        assert_eq!(clusters(&week, "id"), families(60, 20, name), "{kind}");
        for empty in ["url", "given_url", "host", "domain", "media_type"] {
            assert!(texts(&week, "documents", empty).iter().all(String::is_empty), "{kind}: {empty}");
        }
        assert_eq!(texts(&week, "clusters", "id"), texts(&week, "documents", "id"));
        assert_eq!(texts(&week, "urls", "id"), texts(&week, "documents", "id"));
        let mut tables = tables(&week);
        tables.retain(|name, _| !names_places(name));
        all.push((kind, tables));
    }
    for (kind, tables) in &all[1..] {
        assert!(tables == &all[0].1, "{kind}: the same ids give the same tables");
    }
}

#[test]
fn rows_without_an_id_are_known_by_file_and_place() {
    let folder = tempfile::tempdir().unwrap();
    let texts_of: Vec<String> = (0..40).map(|number| text(number, 10)).collect();
    let input = folder.path().join("rows.jsonl");
    std::fs::write(&input, lines(&texts_of, |_| String::new())).unwrap();
    let mut bytes = Vec::new();
    for (name, flags) in [
        ("one", &["--workers", "1"][..]),
        ("four", &["--workers", "4"]),
        ("processes", &["--workers", "1", "--processes", "2"]),
    ] {
        let (ran, store) = made(folder.path(), name, "", &[&input], flags);
        assert_eq!(ran.code, Some(0), "{}", ran.stderr);
        assert!(ran.stderr.contains("has no field `url`: each row is a document"), "{}", ran.stderr);
        bytes.push(tables(&week(&store, DATE)));
        // The screen names a document by file and place.
        assert!(ran.stdout.contains(&format!("{}:", input.display())), "{}", ran.stdout);
    }
    assert!(bytes.windows(2).all(|pair| pair[0] == pair[1]));
    let week = week(&folder.path().join("one"), DATE);
    assert_eq!(longs(&week, "documents", "doc").len(), 40);
    let sizes: Vec<usize> = clusters_by_offset(&week);
    assert_eq!(sizes, [4; 10]);
}

/// The sizes of the clusters of documents, of which each has an offset of its own.
fn clusters_by_offset(week: &Path) -> Vec<usize> {
    let offsets: BTreeSet<i64> = longs(week, "documents", "offset").into_iter().collect();
    assert_eq!(offsets.len(), longs(week, "documents", "doc").len());
    let mut sizes: BTreeMap<i64, usize> = BTreeMap::new();
    roots(week, "similar").into_values().for_each(|root| *sizes.entry(root).or_default() += 1);
    sizes.into_values().collect()
}

#[test]
fn ids_of_equal_texts_are_one_document_in_any_wave_and_of_others_an_error() {
    let folder = tempfile::tempdir().unwrap();
    let inputs: Vec<PathBuf> = (0..3).map(|shard| folder.path().join(format!("s{shard}.jsonl"))).collect();
    for (shifted, waves) in [(false, false), (false, true), (true, false), (true, true)] {
        for (shard, input) in inputs.iter().enumerate() {
            let of_shard: Vec<String> =
                (0..10).map(|number| text(number + if shifted { 10 * shard } else { 0 }, 30)).collect();
            std::fs::write(input, lines(&of_shard, |number| format!("\"id\": {number}, "))).unwrap();
        }
        let wave = if waves { "wave-bytes = \"1B\"" } else { "" };
        let job = format!("[cluster]\n{wave}\n[cluster.read.columns]\nid = \"id\"\n");
        let name = format!("{shifted}-{waves}");
        let inputs: Vec<&Path> = inputs.iter().map(PathBuf::as_path).collect();
        let path = crate::program::job(folder.path(), &job);
        let store = folder.path().join(&name);
        let mut arguments = vec![
            "run",
            path.to_str().unwrap(),
            "--week",
            DATE,
            "--store",
            store.to_str().unwrap(),
            "--json",
            "--input",
        ];
        arguments.extend(inputs.iter().map(|input| input.to_str().unwrap()));
        let ran = crate::program::run(&arguments);
        if shifted {
            assert!(ran.code == Some(1) && ran.stderr.contains("with another text"), "{name}: {}", ran.stderr);
            continue;
        }
        assert_eq!(ran.code, Some(0), "{name}: {}", ran.stderr);
        let summary: serde_json::Value = serde_json::from_str(&ran.stdout).unwrap();
        assert_eq!(summary["counts"]["skipped"]["duplicate of an id"], 20, "{summary}");
        assert_eq!(longs(&week(&store, DATE), "documents", "doc").len(), 10);
    }
}

#[test]
fn two_records_with_one_id_are_one_document_or_a_bad_one_or_two() {
    let folder = tempfile::tempdir().unwrap();
    let texts_of: Vec<String> = (0..12).map(|number| text(number, 12)).collect();
    for key in ["id", "url"] {
        let named = |number: usize| match key {
            "id" => format!("\"id\": {}, ", number % 9),
            _ => format!("\"url\": \"http://a.example/{}\", ", number % 9),
        };
        let input = folder.path().join(format!("{key}.jsonl"));
        std::fs::write(&input, lines(&texts_of, named)).unwrap();
        let columns = format!("columns = {{ {key} = \"{key}\" }}");
        // Ids of different texts are an error by default; a URL may have several pages.
        if key == "id" {
            let (ran, store) = made(folder.path(), "by-default", &columns, &[&input], &[]);
            assert!(
                ran.code == Some(1) && ran.stderr.contains("3 of 12 records") && ran.stderr.contains("same-id"),
                "{}",
                ran.stderr
            );
            assert!(!has_week(&week(&store, DATE)));
            // It names the first one, with its place, also when it runs again with what was read.
            let lines = std::fs::read_to_string(&input).unwrap();
            let offset: usize = lines.lines().take(9).map(|line| line.len() + 1).sum();
            let first = format!("(the first: the id \"0\", at {offset} of ");
            assert!(ran.stderr.contains(&first) && ran.stderr.contains("id.jsonl)"), "{}", ran.stderr);
            let (ran, _) = made(folder.path(), "by-default", &columns, &[&input], &[]);
            assert!(ran.code == Some(1) && ran.stderr.contains(&first), "{}", ran.stderr);
        }
        let of_urls = if key == "url" { Some(("equal", 9, 0)) } else { None };
        for (same, documents, rejects) in [("first", 9, 0), ("reject", 9, 3), ("row", 12, 0)].into_iter().chain(of_urls)
        {
            let name = format!("{key}-{same}");
            let (ran, store) =
                made(folder.path(), &name, &format!("same-id = \"{same}\"\n{columns}"), &[&input], &["--json"]);
            assert_eq!(ran.code, Some(0), "{}", ran.stderr);
            let summary: serde_json::Value = serde_json::from_str(&ran.stdout).unwrap();
            let week = week(&store, DATE);
            let reasons = texts(&week, "rejects", "reason");
            let duplicate = if key == "id" { "duplicate of an id" } else { "duplicate of a URL" };
            assert_eq!((longs(&week, "documents", "doc").len(), reasons.len()), (documents, rejects), "{name}");
            assert!(reasons.iter().all(|reason| reason == duplicate), "{reasons:?}");
            let is_passed_over = matches!(same, "first" | "equal");
            let of_first = if key == "id" { "duplicate of an id, with another text" } else { duplicate };
            let passed_over = summary["counts"]["skipped"][of_first].as_u64().unwrap_or(0);
            assert_eq!(passed_over, if is_passed_over { 3 } else { 0 }, "{name}");
            assert_eq!(ran.stderr.contains("25.0% of the records"), key == "id" && same == "first", "{}", ran.stderr);
            // The first record is the document: its text is in the tables.
            let mut offsets = longs(&week, "documents", "offset");
            offsets.sort_unstable();
            let mut offset = 0;
            let expected: Vec<i64> = std::fs::read_to_string(&input)
                .unwrap()
                .lines()
                .map(|line| {
                    offset += line.len() as i64 + 1;
                    offset - line.len() as i64 - 1
                })
                .take(documents)
                .collect();
            assert_eq!(offsets, expected, "{name}");
        }
    }
}

#[test]
fn urls_of_documents_with_ids_are_kept_as_they_were_written() {
    let folder = tempfile::tempdir().unwrap();
    let input = folder.path().join("x.jsonl");
    let urls = ["HTTP://Example.COM:80/a/../b?x=1#frag", "http://example.com/c", "no url", ""];
    let texts_of: Vec<String> = (0..4).map(|number| text(number, 4)).collect();
    std::fs::write(&input, lines(&texts_of, |number| format!("\"id\": {number}, \"url\": \"{}\", ", urls[number])))
        .unwrap();
    let (ran, store) = made(folder.path(), "store", "columns = { id = \"id\" }", &[&input], &[]);
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    let week = week(&store, DATE);
    let column = |name| texts(&week, "documents", name);
    let rows: BTreeSet<[String; 4]> =
        (0..4).map(|row| ["id", "url", "given_url", "host"].map(|name| column(name)[row].clone())).collect();
    let expected = [
        ["0", "http://example.com/b?x=1", urls[0], "example.com"],
        ["1", "http://example.com/c", "", "example.com"],
        ["2", "", "no url", ""],
        ["3", "", "", ""],
    ];
    assert_eq!(rows, expected.map(|row| row.map(str::to_owned)).into_iter().collect());
}

#[test]
fn what_does_not_fit_together_is_refused_with_what_to_do() {
    let folder = tempfile::tempdir().unwrap();
    let texts_of: Vec<String> = (0..6).map(|number| text(number, 6)).collect();
    let file = |name: &str, fields: &dyn Fn(usize) -> String| {
        let path = folder.path().join(name);
        std::fs::write(&path, lines(&texts_of, fields)).unwrap();
        path
    };
    let ids = file("ids.jsonl", &|number| format!("\"key\": {number}, "));
    let urls = file("urls.jsonl", &|number| format!("\"url\": \"http://a.example/{number}\", "));
    let pages = folder.path().join("page.html");
    std::fs::write(&pages, "<p>some words of a page that is long enough").unwrap();
    let by_key = "columns = { id = \"key\" }";
    for (read, inputs, code, wanted) in [
        ("columns = { id = \"id\" }", vec![&ids], 1, "has no field `id`: it has key, text; set the names"),
        (
            "",
            vec![&ids, &urls],
            2,
            "has none in a field `url`: set `url` or `id` in [cluster.read.columns], or same-id = \"row\"",
        ),
        (
            "columns = { id = \"key\" }\nbase-url = \"http://a.example/\"",
            vec![&ids, &pages],
            2,
            "page.html has no ids: leave",
        ),
        ("same-id = \"last\"", vec![&urls], 2, "expected one of `equal`, `first`, `reject`, `row`"),
    ] {
        let inputs: Vec<&Path> = inputs.into_iter().map(PathBuf::as_path).collect();
        let (ran, store) = made(folder.path(), "refused", read, &inputs, &[]);
        assert_eq!(ran.code, Some(code), "{}", ran.stderr);
        assert!(ran.stderr.contains(wanted), "{}", ran.stderr);
        assert!(!store.join("documents").exists());
    }
    // A store keeps what its documents are known by.
    let (ran, store) = made(folder.path(), "store", by_key, &[&ids], &[]);
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    let store = store.to_str().unwrap();
    let later = job(folder.path(), "[weekly]\nweek = \"2024-01-15\"\n");
    let ran = run(&["run", later.to_str().unwrap(), "--store", store, "--input", urls.to_str().unwrap()]);
    assert_eq!(ran.code, Some(1), "{}", ran.stderr);
    assert!(ran.stderr.contains("knows documents by their id, and"), "{}", ran.stderr);
    for (flags, wanted) in [
        (&["--host", "a.example"][..], "give --id or --ids"),
        (&["--id", "1", "--url", "http://a.example/"], "cannot be used with"),
    ] {
        let ran = run(&[&["delete", "--store", store][..], flags].concat());
        assert_eq!(ran.code, Some(2), "{}", ran.stderr);
        assert!(ran.stderr.contains(wanted), "{}", ran.stderr);
    }
    let study = job(folder.path(), "[mirrors]\n");
    let ran = run(&["run", study.to_str().unwrap(), "--store", store]);
    assert_eq!(ran.code, Some(1), "{}", ran.stderr);
    assert!(ran.stderr.contains("this study compares hosts"), "{}", ran.stderr);
}

#[test]
fn weeks_and_deletions_of_documents_with_ids_equal_a_full_run() {
    let folder = tempfile::tempdir().unwrap();
    let first: Vec<String> = (0..60).map(|number| text(number, 20)).collect();
    // Some texts move to other families, one id is gone, and two are new.
    let second: Vec<String> =
        (0..62).map(|number| if number % 7 == 0 { text(number + 3, 20) } else { text(number, 20) }).collect();
    let [week_1, week_2] = ["1", "2"].map(|name| folder.path().join(format!("{name}.jsonl")));
    std::fs::write(&week_1, lines(&first, |number| format!("\"id\": \"d{number}\", "))).unwrap();
    let all = lines(&second, |number| format!("\"id\": \"d{number}\", "));
    std::fs::write(&week_2, all.lines().skip(1).map(|line| format!("{line}\n")).collect::<String>()).unwrap();
    let read = "columns = { id = \"id\" }";
    let later = |store: &Path, mode: &str| {
        let text = format!("[weekly]\nweek = \"2024-01-15\"\nmode = \"{mode}\"\n[weekly.read]\n{read}\n");
        let (job, store) = (job(folder.path(), &text), store.to_str().unwrap());
        run_well(&["run", job.to_str().unwrap(), "--store", store, "--input", week_2.to_str().unwrap()]);
        run_well(&[
            "delete",
            "--store",
            store,
            "--id",
            "d5",
            "d61",
            "--workers",
            if mode == "full" { "1" } else { "2" },
        ]);
    };
    let mut weeks = Vec::new();
    for mode in ["full", "delta"] {
        let (ran, store) = made(folder.path(), mode, read, &[&week_1], &[]);
        assert_eq!(ran.code, Some(0), "{}", ran.stderr);
        later(&store, mode);
        weeks.push(week(&store, "2024-01-15"));
    }
    assert!(tables(&weeks[0]) == tables(&weeks[1]));
    let ids: BTreeSet<String> = texts(&weeks[0], "documents", "id").into_iter().collect();
    let expected: BTreeSet<String> =
        (1..62).filter(|number| *number != 5 && *number != 61).map(|n| format!("d{n}")).collect();
    assert_eq!(ids, expected);
    assert_eq!(texts(&weeks[0], "missing", "id"), ["d0"]);
}

#[test]
fn clusters_of_documents_with_ids_are_verified_and_their_accuracy_is_exact() {
    let folder = tempfile::tempdir().unwrap();
    let texts_of: Vec<String> = (0..60).map(|number| text(number, 20)).collect();
    let input = folder.path().join("x.jsonl");
    for (name, read, fields) in [("id", "columns = { id = \"id\" }", true), ("row", "", false)] {
        std::fs::write(
            &input,
            lines(&texts_of, |number| if fields { format!("\"id\": {number}, ") } else { String::new() }),
        )
        .unwrap();
        let job = job(
            folder.path(),
            &format!(
                "[cluster]\nweek = \"{DATE}\"\n[cluster.read]\n{read}\n[cluster.method]\nshards = 4\nsimilarity = 0.8\nverify = \"exact\"\n"
            ),
        );
        let store = folder.path().join(name);
        let arguments =
            ["run", job.to_str().unwrap(), "--store", store.to_str().unwrap(), "--input", input.to_str().unwrap()];
        let ran = run_well(&arguments);
        assert!(ran.stdout.contains("Accuracy 100.0% (100.0% to 100.0%) of the links"), "{}", ran.stdout);
        let found: BTreeSet<String> = texts(&week(&store, DATE), "evidence", "found").into_iter().collect();
        assert_eq!(found, ["shingles".to_owned()].into(), "{name}");
    }
}

#[test]
fn tables_with_commas_and_tabs_give_the_clusters_of_lines_of_json() {
    let folder = tempfile::tempdir().unwrap();
    let texts_of: Vec<String> = (0..60).map(|number| text(number, 20)).collect();
    let name = |number: usize| format!("d{number}");
    let table = |delimiter: &str| {
        let row = |(number, text): (usize, &String)| format!("{}{delimiter}\"{text}\"\n", name(number));
        format!("id{delimiter}text\n{}", texts_of.iter().enumerate().map(row).collect::<String>()).into_bytes()
    };
    let json = lines(&texts_of, |number| format!("\"id\": \"{}\", ", name(number))).into_bytes();
    let files = [
        ("x.jsonl", json),
        ("x.csv", table(",")),
        ("x.tsv", table("\t")),
        ("x.csv.zst", zstd::bulk::compress(&table(","), 1).unwrap()),
    ];
    let mut all = Vec::new();
    for (file, bytes) in files {
        let path = folder.path().join(file);
        std::fs::write(&path, bytes).unwrap();
        let (ran, store) = made(folder.path(), &format!("{file}-store"), "columns = { id = \"id\" }", &[&path], &[]);
        assert_eq!(ran.code, Some(0), "{file}: {}", ran.stderr);
        let week = week(&store, DATE);
        assert_eq!(clusters(&week, "id"), families(60, 20, name), "{file}");
        let mut tables = tables(&week);
        tables.retain(|name, _| !names_places(name));
        all.push(tables);
    }
    assert!(all.windows(2).all(|pair| pair[0] == pair[1]));
}

#[test]
fn the_files_of_a_folder_of_texts_are_documents() {
    let folder = tempfile::tempdir().unwrap();
    let input = folder.path().join("texts");
    std::fs::create_dir(&input).unwrap();
    for number in 0..30 {
        let ending = ["txt", "md"][number % 2];
        std::fs::write(input.join(format!("{number:02}.{ending}")), text(number, 10)).unwrap();
    }
    let (ran, store) = made(folder.path(), "store", "", &[&input], &[]);
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    let week_of = week(&store, DATE);
    let name = |number: usize| format!("{}/{number:02}.{}", input.display(), ["txt", "md"][number % 2]);
    assert_eq!(clusters(&week_of, "file"), families(30, 10, name));
    assert!(texts(&week_of, "documents", "media_type").iter().all(|media| media == "text/plain"));
    // With a base URL they are pages.
    let base = "base-url = \"http://a.example/t/\"";
    let (ran, store) = made(folder.path(), "pages", base, &[&input], &[]);
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    let name = |number: usize| format!("http://a.example/t/{number:02}.{}", ["txt", "md"][number % 2]);
    assert_eq!(clusters(&week(&store, DATE), "url"), families(30, 10, name));
}

/// Texts of ten clauses of twelve letters of a script without blanks: text `n + 30` is text `n`
/// with three other letters.
fn clauses(first: u32, letters: u32, stop: &str) -> Vec<String> {
    let letter = |n: usize, place: usize| {
        let number = (n + 1) as u64 * 0x9E37_79B9 + place as u64 * 0x85EB_CA6B;
        char::from_u32(first + ((number ^ number >> 13).wrapping_mul(0xC2B2_AE35) >> 16) as u32 % letters).unwrap()
    };
    let text = |n: usize, changed: bool| {
        let clause = |clause: usize| {
            let place = |place: usize| 12 * clause + place;
            let is_changed = |at: usize| changed && clause == 4 && (5..8).contains(&at);
            (0..12)
                .map(|at| if is_changed(at) { letter(n + 1000, place(at)) } else { letter(n, place(at)) })
                .collect::<String>()
        };
        (0..10).map(clause).collect::<Vec<_>>().join(stop)
    };
    (0..60).map(|n| text(n % 30, n >= 30)).collect()
}

#[test]
fn texts_of_scripts_without_blanks_are_found_by_their_letters() {
    for (script, first, letters, stop) in
        [("han", 0x4E00, 3000, "，"), ("kana", 0x3042, 80, "。"), ("thai", 0xE01, 46, " ")]
    {
        let folder = tempfile::tempdir().unwrap();
        let texts = clauses(first, letters, stop);
        let input = folder.path().join("texts.jsonl");
        std::fs::write(&input, lines(&texts, |n| format!("\"id\": {n}, "))).unwrap();
        let read = "[cluster.read.columns]\nid = \"id\"";
        let (ran, store) = made(folder.path(), "store", read, &[&input], &[]);
        assert_eq!(ran.code, Some(0), "{}", ran.stderr);
        assert_eq!(clusters(&week(&store, DATE), "id"), families(60, 30, |n| n.to_string()), "{script}");
        assert!(longs(&week(&store, DATE), "documents", "words").iter().all(|words| *words == 120), "{script}");
        // By the study's definition a clause is a word.
        let job = job(
            folder.path(),
            "[cluster]\n[cluster.read.columns]\nid = \"id\"\n[cluster.method]\nsimilarity = 0.8\nspaceless = \"runs\"\n",
        );
        let store = folder.path().join("runs");
        let arguments = ["run", job.to_str().unwrap(), "--week", DATE, "--store", store.to_str().unwrap(), "--input"];
        run_well(&[&arguments[..], &[input.to_str().unwrap()]].concat());
        assert_eq!(longs(&week(&store, DATE), "documents", "words"), [10; 60], "{script}");
        // Pairs have a similarity of 0.33 by that, and hardly one is found.
        let sizes = longs(&week(&store, DATE), "clusters", "similar_size");
        assert!(sizes.iter().filter(|size| **size > 1).count() < 10, "{script}: {sizes:?}");
    }
}

#[test]
fn the_form_of_texts_says_which_words_are_the_same() {
    let folder = tempfile::tempdir().unwrap();
    let base = |n: usize| {
        (0..120).map(|place| format!("Élan{}", (n + 1) * 7919 + place * 104_729)).collect::<Vec<_>>().join(" ")
    };
    // Each text in four spellings.
    let spelled = |n: usize| match n / 10 {
        0 => base(n % 10),
        1 => base(n % 10).replace('É', "é"),
        2 => base(n % 10).replace('É', "E\u{301}"),
        _ => base(n % 10).replace('É', "E"),
    };
    let input = folder.path().join("texts.jsonl");
    let texts: Vec<String> = (0..40).map(spelled).collect();
    std::fs::write(&input, lines(&texts, |n| format!("\"id\": {n}, "))).unwrap();
    for (form, together) in [
        ("", vec![1, 1, 1, 1]),
        ("fold-case = true", vec![2, 2, 1, 1]),
        ("unicode = \"nfc\"", vec![2, 1, 2, 1]),
        ("unicode = \"nfc\"\nfold-case = true", vec![3, 3, 3, 1]),
        ("strip-diacritics = true", vec![3, 1, 3, 3]),
        ("strip-diacritics = true\nfold-case = true", vec![4, 4, 4, 4]),
    ] {
        let text =
            format!("[cluster]\n[cluster.read.columns]\nid = \"id\"\n[cluster.method]\nsimilarity = 0.8\n{form}\n");
        let (job, store) = (job(folder.path(), &text), folder.path().join("store"));
        let _ = std::fs::remove_dir_all(&store);
        let arguments = ["run", job.to_str().unwrap(), "--week", DATE, "--store", store.to_str().unwrap(), "--input"];
        run_well(&[&arguments[..], &[input.to_str().unwrap()]].concat());
        let of = week(&store, DATE);
        for (id, size) in self::texts(&of, "clusters", "id").iter().zip(longs(&of, "clusters", "similar_size")) {
            assert_eq!(size, together[id.parse::<usize>().unwrap() / 10], "{form}: {id}");
        }
    }
}
