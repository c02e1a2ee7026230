//! Repeated passages: the tables of a dataset against all windows of its texts, and what an export
//! leaves of the texts.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use arrow_array::cast::AsArray as _;
use arrow_array::types::Int64Type;
use arrow_array::{ArrayRef, Int64Array, RecordBatch, StringArray};
use nigh::config::Method;
use nigh::features::WordReader;
use nigh::records::mix;
use parquet::arrow::ArrowWriter;
use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;

use crate::program::{Ran, booleans, data, job, longs, rows_of, run, run_well, tables, texts, week};

const DATE: &str = "2024-01-08";
/// The words of a passage at least.
const LEAST: usize = 20;
/// The files, and the number of the first text in each and of the one behind its last.
const FILES: [(&str, [usize; 2]); 3] = [("a.jsonl", [0, 25]), ("b.jsonl.gz", [25, 40]), ("c.parquet", [40, 60])];

/// Words that no other text has, `count` of them.
fn own(n: usize, part: usize, count: usize) -> String {
    (0..count).map(|word| format!("o{n}x{part}é{word} ")).collect()
}

/// A passage that several texts have; what is between its words is not the same everywhere.
fn passage(number: usize, n: usize) -> String {
    let between = [" ", ", ", "\n", " -- ", " "];
    let word = |word: usize| format!("Wort{}{}", number * 100 + word, between[(n + word) % 5]);
    (0..LEAST + number * 5).map(word).collect()
}

/// A text with some passages, at its beginning, at its end, twice, or alone.
fn text(n: usize) -> String {
    match n {
        // As text 7, and as nothing.
        50 => return text(7),
        51 => return String::new(),
        // A passage and nothing else; two that overlap; one that repeats itself.
        52 => return passage(3, n),
        53 => return format!("{}.\n{}", passage(2, n), passage(2, n)),
        54 => return format!("{}\nla la la", "tick tock ".repeat(40)),
        55 => return format!("{} tick {}", own(n, 0, 9), "tick tock ".repeat(25)),
        _ => {}
    }
    let mut text = if n.is_multiple_of(4) { String::new() } else { own(n, 0, 3 + n % 40) };
    for part in 0..mix(n as u64) as usize % 4 {
        text.push_str(&passage(mix((n * 8 + part) as u64) as usize % 9, n));
        if part < 2 {
            text.push_str(&own(n, part + 1, 1 + n % 7));
        }
    }
    if n.is_multiple_of(5) { text + ".\n" } else { text.trim_end().to_owned() }
}

/// The line of a text.
fn line(n: usize, text: &str) -> String {
    format!("{{\"id\":{n}, \"meta\" : {{\"text\":{}, \"x\":[1]}},\"after\":null}}\n", serde_json::json!(text))
}

/// Shards with the texts, and a store of them.
struct Corpus {
    folder: tempfile::TempDir,
    texts: Vec<String>,
}

impl Corpus {
    fn new() -> Corpus {
        let folder = tempfile::tempdir().unwrap();
        let corpus = Corpus { texts: (0..60).map(text).collect(), folder };
        corpus.write("shards", &corpus.texts.iter().map(|text| Some(text.clone())).collect::<Vec<_>>());
        corpus.cluster("store", &corpus.path("shards"), "");
        corpus
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn write(&self, name: &str, texts: &[Option<String>]) {
        let shards = self.path(name);
        std::fs::create_dir(&shards).unwrap();
        for (name, [from, to]) in FILES {
            let of_file = (from..to).filter_map(|n| Some((n, texts[n].as_ref()?)));
            if name.ends_with("parquet") {
                let (ids, texts): (Vec<i64>, Vec<&String>) = of_file.map(|(n, text)| (n as i64, text)).unzip();
                let columns: Vec<(&str, ArrayRef)> = vec![
                    ("id", Arc::new(Int64Array::from(ids))),
                    ("meta.text", Arc::new(StringArray::from_iter_values(texts))),
                ];
                let batch = RecordBatch::try_from_iter(columns).unwrap();
                let mut writer =
                    ArrowWriter::try_new(std::fs::File::create(shards.join(name)).unwrap(), batch.schema(), None)
                        .unwrap();
                writer.write(&batch).unwrap();
                writer.close().unwrap();
                continue;
            }
            let lines: String = of_file.map(|(n, text)| line(n, text)).collect();
            let bytes = match name.ends_with("gz") {
                true => {
                    let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::default());
                    std::io::Write::write_all(&mut gzip, lines.as_bytes()).unwrap();
                    gzip.finish().unwrap()
                }
                false => lines.into_bytes(),
            };
            std::fs::write(shards.join(name), bytes).unwrap();
        }
    }

    fn cluster(&self, store: &str, input: &Path, method: &str) {
        let text = format!(
            "[cluster]\nweek = \"{DATE}\"\n[cluster.read.columns]\nid = \"id\"\ntext = \"meta.text\"\n[cluster.method]\nshards = 8\n\
             similarity = 0.95\nverify = \"exact\"\n{method}"
        );
        let (job, store) = (job(self.folder.path(), &text), self.path(store));
        let arguments = ["run", job.to_str().unwrap(), "-q", "--store", store.to_str().unwrap(), "--input"];
        run_well(&[&arguments[..], &[input.to_str().unwrap()]].concat());
    }

    /// Finds passages; returns the bytes of the tables.
    fn passages(&self, store: &str, lines: &str, flags: &[&str]) -> BTreeMap<String, Vec<u8>> {
        let job = job(self.folder.path(), &format!("[passages]\nwords = {LEAST}\n{lines}"));
        let store = self.path(store);
        let arguments = ["run", job.to_str().unwrap(), "-q", "--store", store.to_str().unwrap()];
        run_well(&[&arguments[..], flags].concat());
        tables(&store.join("passages"))
    }

    fn export(&self, store: &str, out: &str, flags: &[&str]) -> Ran {
        let (store, out) = (self.path(store), self.path(out));
        run(&[&["export", store.to_str().unwrap(), "--out", out.to_str().unwrap()][..], flags].concat())
    }

    /// The texts of an export, by id. Other fields must be as they were.
    fn exported(&self, out: &str) -> BTreeMap<usize, String> {
        let mut found = BTreeMap::new();
        for (name, _) in FILES {
            let path = self.path(out).join(name);
            if name.ends_with("parquet") {
                let file = std::fs::File::open(path).unwrap();
                for batch in ParquetRecordBatchReaderBuilder::try_new(file).unwrap().build().unwrap() {
                    let batch = batch.unwrap();
                    let (ids, texts) = (batch["id"].as_primitive::<Int64Type>(), batch["meta.text"].as_string::<i32>());
                    found.extend(
                        (0..batch.num_rows()).map(|row| (ids.value(row) as usize, texts.value(row).to_owned())),
                    );
                }
                continue;
            }
            let bytes = std::fs::read(path).unwrap();
            let text = match name.ends_with("gz") {
                true => std::io::read_to_string(flate2::read::MultiGzDecoder::new(&bytes[..])).unwrap(),
                false => String::from_utf8(bytes).unwrap(),
            };
            for of_line in text.split_inclusive('\n') {
                let value: serde_json::Value = serde_json::from_str(of_line).unwrap();
                let (id, text) =
                    (value["id"].as_u64().unwrap() as usize, value["meta"]["text"].as_str().unwrap().to_owned());
                assert_eq!(of_line, line(id, &text));
                found.insert(id, text);
            }
        }
        found
    }

    /// The number of each document, and those that stay.
    fn documents(&self, store: &str) -> (BTreeMap<i64, usize>, BTreeSet<usize>) {
        let week = week(&self.path(store), DATE);
        let ids: Vec<usize> = texts(&week, "clusters", "id").into_iter().map(|id| id.parse().unwrap()).collect();
        let stay = ids.iter().zip(booleans(&week, "clusters", "canonical")).filter(|(_, stays)| *stays);
        let stay = stay.map(|(id, _)| *id).collect();
        (longs(&week, "clusters", "doc").into_iter().zip(ids).collect(), stay)
    }
}

fn words_of(text: &str) -> Vec<String> {
    let mut reader = WordReader::of_method(&Method::default()).unwrap();
    reader.text(text).iter().map(|word| String::from_utf8(word.to_vec()).unwrap()).collect()
}

/// The words of each text that stand in a window twice, and those that are copies, by a walk over
/// all windows in order.
fn repeated(texts: &[String], is_in: impl Fn(usize) -> bool) -> (Vec<BTreeSet<usize>>, Vec<BTreeSet<usize>>) {
    let words: Vec<Vec<String>> = texts.iter().map(|text| words_of(text)).collect();
    let mut windows: BTreeMap<&[String], Vec<(usize, usize)>> = BTreeMap::new();
    for (n, words) in words.iter().enumerate().filter(|(n, _)| is_in(*n)) {
        words.windows(LEAST).enumerate().for_each(|(word, window)| windows.entry(window).or_default().push((n, word)));
    }
    let mut all = vec![BTreeSet::new(); texts.len()];
    let mut copies = all.clone();
    for places in windows.values().filter(|places| places.len() > 1) {
        let first = places[0];
        for (n, word) in places {
            all[*n].extend(*word..word + LEAST);
            let of_first = |at: &usize| *n == first.0 && *at < first.1 + LEAST;
            if (*n, *word) != first {
                copies[*n].extend((*word..word + LEAST).filter(|at| !of_first(at)));
            }
        }
    }
    (all, copies)
}

/// The lines of a text that have a word that stays, or no word at all.
fn lines_without(text: &str, gone: &BTreeSet<usize>) -> String {
    let (mut at, mut left) = (0, String::new());
    for line in text.split_inclusive('\n') {
        let words = at..at + words_of(line).len();
        at = words.end;
        if words.is_empty() || words.clone().any(|word| !gone.contains(&word)) {
            left.push_str(line);
        }
    }
    if text.ends_with('\n') { left } else { left.strip_suffix('\n').unwrap_or(&left).to_owned() }
}

#[test]
fn passages_of_a_dataset_are_those_of_all_windows() {
    let corpus = Corpus::new();
    let (numbers, stay) = corpus.documents("store");
    assert!(!stay.contains(&50) && stay.len() > 45);
    let of_texts: Vec<Vec<String>> = corpus.texts.iter().map(|text| words_of(text)).collect();
    for (lines, kept_only) in [("", true), ("documents = \"all\"\n", false)] {
        corpus.passages("store", lines, &[]);
        let (all, copies) = repeated(&corpus.texts, |n| !kept_only || stay.contains(&n));
        let folder = corpus.path("store").join("passages");
        let column = |name| longs(&folder, "passages", name);
        let (docs, firsts, occurrences) = (column("doc"), column("first_doc"), column("occurrences"));
        let (offsets, bytes, copied_bytes) = (column("offset"), column("bytes"), column("copied_bytes"));
        let [words, counts, first_words, copied] =
            ["word", "words", "first_word", "copied"].map(|name| numbers_of(&folder, name));
        assert!(docs.len() > 60, "{}", docs.len());
        let mut found = vec![BTreeSet::new(); corpus.texts.len()];
        let mut found_copies = found.clone();
        for row in 0..docs.len() {
            let (n, first) = (numbers[&docs[row]], numbers[&firsts[row]]);
            let (word, end) = (words[row], words[row] + counts[row]);
            found[n].extend(word..end);
            found_copies[n].extend(end - copied[row]..end);
            let of_passage = &of_texts[n][word..end];
            let of_first = &of_texts[first][first_words[row]..];
            let shared = of_passage.iter().zip(of_first).take_while(|(a, b)| a == b).count();
            assert!(shared >= LEAST && (n >= 54 || shared == counts[row]), "{n} {row}");
            assert!(first <= n && occurrences[row] >= 2);
            let text_end = (offsets[row] + bytes[row]) as usize;
            assert_eq!(words_of(&corpus.texts[n][offsets[row] as usize..text_end]), of_passage);
            let copy = &corpus.texts[n][text_end - copied_bytes[row] as usize..text_end];
            assert_eq!(words_of(copy), of_passage[counts[row] - copied[row]..]);
        }
        assert_eq!((&found, &found_copies), (&all, &copies));
        let sources: i64 = numbers_of_table(&folder, "sources", "words").iter().map(|words| *words as i64).sum();
        assert!(sources >= copies.iter().map(|words| words.len() as i64).sum::<i64>());
        let summary: serde_json::Value = serde_json::from_str(
            &run_well(&["show", corpus.path("store").to_str().unwrap(), "--job", "passages", "--json"]).stdout,
        )
        .unwrap();
        let sum = |sets: &[BTreeSet<usize>]| sets.iter().map(BTreeSet::len).sum::<usize>();
        assert_eq!((&summary["repeated_words"], &summary["copied_words"]), (&sum(&all).into(), &sum(&copies).into()));
    }
}

/// A column of small numbers of `passages`.
fn numbers_of(folder: &Path, name: &str) -> Vec<usize> {
    numbers_of_table(folder, "passages", name)
}

fn numbers_of_table(folder: &Path, table: &str, name: &str) -> Vec<usize> {
    let mut all = Vec::new();
    crate::program::each(folder, table, name, |array: &arrow_array::Int32Array| {
        all.extend(array.values().iter().map(|value| *value as usize));
    });
    all
}

#[test]
fn workers_processes_and_memory_do_not_change_a_byte() {
    let corpus = Corpus::new();
    let little = corpus.path("little.toml");
    std::fs::write(&little, "memory = \"64KiB\"\n").unwrap();
    let one = corpus.passages("store", "", &["--workers", "1"]);
    assert!(one.values().map(Vec::len).sum::<usize>() > 2000, "{:?}", one.keys());
    for flags in [
        &["--workers", "2"][..],
        &["--workers", "4"],
        &["--workers", "1", "--processes", "2"],
        &["--workers", "2", "--processes", "2"],
        &["--workers", "2", "--config", little.to_str().unwrap()],
    ] {
        assert!(corpus.passages("store", "", flags) == one, "{flags:?}");
    }
}

#[test]
fn an_export_without_passages_has_no_passage() {
    let corpus = Corpus::new();
    corpus.passages("store", "", &[]);
    let (_, stay) = corpus.documents("store");
    let (all, copies) = repeated(&corpus.texts, |n| stay.contains(&n));
    for (number, (flags, gone, is_words)) in [
        (&["--drop-passages"][..], &copies, true),
        (&["--drop-passages=all", "--workers", "1"], &all, true),
        (&["--drop-passages", "--cut", "lines"], &copies, false),
        (&["--drop-passages=all", "--cut", "lines"], &all, false),
    ]
    .into_iter()
    .enumerate()
    {
        let out = format!("out-{number}");
        let ran = corpus.export("store", &out, &[flags, &["--json", "--card"]].concat());
        assert_eq!(ran.code, Some(0), "{}", ran.stderr);
        let exported = corpus.exported(&out);
        let mut emptied = 0;
        for n in &stay {
            let text = &corpus.texts[*n];
            let words = words_of(text).into_iter().enumerate().filter(|(word, _)| !gone[*n].contains(word));
            let words: Vec<String> = words.map(|(_, word)| word).collect();
            match exported.get(n) {
                Some(left) if gone[*n].is_empty() => assert_eq!(left, text),
                Some(left) if is_words => assert_eq!(words_of(left), words, "{flags:?} {n}"),
                Some(left) => assert_eq!(*left, lines_without(text, &gone[*n]), "{flags:?} {n}"),
                // A text without words stays, if nothing was taken out of it.
                None => {
                    assert!(
                        !gone[*n].is_empty() && words_of(&lines_without(text, &gone[*n])).is_empty(),
                        "{flags:?} {n}"
                    );
                    emptied += 1;
                }
            }
        }
        assert!(exported.keys().all(|n| stay.contains(n)));
        let before: usize = stay.iter().map(|n| corpus.texts[*n].len()).sum();
        let bytes = before - exported.values().map(String::len).sum::<usize>();
        let summary: serde_json::Value = serde_json::from_str(&ran.stdout).unwrap();
        assert_eq!((&summary["passage_bytes"], &summary["emptied"]), (&bytes.into(), &emptied.into()), "{flags:?}");
        assert_eq!(summary["written"].as_u64(), Some(exported.len() as u64));
        let card = std::fs::read_to_string(corpus.path(&out).join("README.md")).unwrap();
        assert!(
            card.contains("20 words and more that stand more than once") && card.contains(&format!("({bytes} bytes)"))
        );
        std::fs::remove_file(corpus.path(&out).join("README.md")).unwrap();
        // Found again in what is left: own words of each text stand beside what went, so nothing
        // was joined to a passage.
        if is_words {
            let store = format!("again-{number}");
            corpus.cluster(&store, &corpus.path(&out).join("[abc].*"), "");
            corpus.passages(&store, "documents = \"all\"\n", &[]);
            assert_eq!(longs(&corpus.path(&store).join("passages"), "passages", "doc"), Vec::<i64>::new(), "{flags:?}");
        }
        // The same command writes nothing more.
        let again = corpus.export("store", &out, &[flags, &["--json", "--card"]].concat());
        assert_eq!(again.code, Some(0), "{}", again.stderr);
        assert_eq!(again.stdout, ran.stdout);
    }
    let said = corpus.export("store", "said", &["--drop-passages"]).stdout;
    assert!(said.contains("copies of passages (") && said.contains("records of which nothing was left"), "{said}");
}

#[test]
fn symbols_that_are_words_stay_if_they_are_in_no_passage() {
    let folder = tempfile::tempdir().unwrap();
    let [input, store] = ["a.jsonl", "store"].map(|name| folder.path().join(name));
    let passage = "alpha = beta + gamma ;";
    std::fs::write(&input, line(1, passage) + &line(2, &format!("start {{ {passage} }} ; end"))).unwrap();
    let method =
        "[cluster.read.columns]\nid = \"id\"\ntext = \"meta.text\"\n[cluster.method]\nshards = 4\nwords = \"code\"\n";
    let cluster = job(folder.path(), &format!("[cluster]\nweek = \"{DATE}\"\n{method}"));
    let [input, store] = [&input, &store].map(|path| path.to_str().unwrap());
    run_well(&["run", cluster.to_str().unwrap(), "-q", "--store", store, "--input", input]);
    let passages = job(folder.path(), "[passages]\nwords = 5\n");
    run_well(&["run", passages.to_str().unwrap(), "-q", "--store", store]);
    let out = folder.path().join("out");
    run_well(&["export", store, "--out", out.to_str().unwrap(), "--drop-passages"]);
    let written = std::fs::read_to_string(out.join("a.jsonl")).unwrap();
    assert_eq!(written, line(1, passage) + &line(2, "start { } ; end"));
}

#[test]
fn copies_of_an_older_batch_go() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name);
    let both = [(0, format!("{}{}", own(0, 0, 30), passage(5, 0))), (1, format!("{}{}", passage(5, 1), own(1, 0, 30)))];
    // The older batch is in the file that comes last by its name.
    std::fs::write(path("z.jsonl"), line(0, &both[0].1)).unwrap();
    std::fs::write(path("a.jsonl"), line(1, &both[1].1)).unwrap();
    let store = path("store");
    let store = store.to_str().unwrap();
    for (file, date) in [("z.jsonl", DATE), ("a.jsonl", "2024-01-15")] {
        let input = path(file);
        let columns = ["--id", "id", "--text", "meta.text"];
        run_well(&[&["add", store, "-q", "--week", date, "--input", input.to_str().unwrap()][..], &columns].concat());
    }
    let job = job(folder.path(), &format!("[passages]\nwords = {LEAST}\n"));
    run_well(&["run", job.to_str().unwrap(), "-q", "--store", store]);
    let read = |name: &str| {
        let text = std::fs::read_to_string(path(name)).unwrap();
        let value: serde_json::Value = serde_json::from_str(&text).unwrap();
        words_of(value["meta"]["text"].as_str().unwrap())
    };
    run_well(&["export", store, "--out", path("out").to_str().unwrap(), "--drop-passages"]);
    assert_eq!((read("out/z.jsonl"), read("out/a.jsonl")), (words_of(&both[0].1), words_of(&own(1, 0, 30))));
    let since = ["--since", "2024-01-15"];
    run_well(&[&["export", store, "--out", path("since").to_str().unwrap(), "--drop-passages"][..], &since].concat());
    assert_eq!(read("since/a.jsonl"), words_of(&own(1, 0, 30)));
    assert!(!path("since/z.jsonl").exists());
    // The last batch again with another text: the passages are of the one before.
    std::fs::write(path("a.jsonl"), line(1, &own(1, 0, 60))).unwrap();
    let input = path("a.jsonl");
    let flags = ["--week", "2024-01-15", "--replace", "--id", "id", "--text", "meta.text", "--input"];
    run_well(&[&["add", store, "-q"][..], &flags, &[input.to_str().unwrap()]].concat());
    let out = path("other");
    let refused = run(&["export", store, "--out", out.to_str().unwrap(), "--drop-passages"]);
    let says = "were found before week 2024-01-15 was changed";
    assert!(refused.code == Some(1) && refused.stderr.contains(says) && !out.exists(), "{}", refused.stderr);
}

#[test]
fn an_export_that_has_no_passages_says_why() {
    let corpus = Corpus::new();
    let refused = |flags: &[&str], code: i32, text: &str| {
        let ran = corpus.export("store", &flags.concat(), flags);
        assert_eq!(ran.code, Some(code), "{flags:?} {}", ran.stderr);
        assert!(ran.stderr.contains(text), "{flags:?} {}", ran.stderr);
    };
    refused(&["--drop-passages"], 1, "nigh run jobs/passages.toml --store");
    corpus.passages("store", "", &[]);
    refused(
        &["--drop-passages", "--keep", "longest", "--most", "0"],
        1,
        "other documents: run jobs/passages.toml again",
    );
    refused(&["--drop-passages", "--what", "removed"], 2, "--what kept");
    refused(&["--drop-passages", "--level", "paragraph"], 2, "--level paragraph");
    refused(&["--drop-passages", "--weights"], 2, "--weights");
    refused(&["--cut", "lines"], 2, "--drop-passages");
    // All texts, with those that go: so many stay of each cluster.
    corpus.passages("store", "documents = \"all\"\n", &[]);
    refused(&["--drop-passages"], 1, "other documents");
    let all = corpus.export("store", "all", &["--drop-passages", "--most", "4294967295"]);
    assert_eq!(all.code, Some(0), "{}", all.stderr);
    // Other texts under the same ids.
    let shards = corpus.path("shards/a.jsonl");
    let changed = std::fs::read_to_string(&shards).unwrap().replace("Wort500", "Wort501");
    std::fs::write(&shards, changed).unwrap();
    let job = job(corpus.folder.path(), &format!("[passages]\nwords = {LEAST}\n"));
    let store = corpus.path("store");
    let ran = run(&["run", job.to_str().unwrap(), "-q", "--store", store.to_str().unwrap()]);
    assert_eq!(ran.code, Some(1), "{}", ran.stderr);
    assert!(ran.stderr.contains("a.jsonl") && ran.stderr.contains("has changed"), "{}", ran.stderr);
}

#[test]
fn pages_of_a_crawl_have_passages_without_places() {
    let folder = tempfile::tempdir().unwrap();
    let store = folder.path().join("store");
    let store = store.to_str().unwrap();
    let crawl = data("week-2024-01-08");
    let arguments = ["run", "jobs/example.toml", "-q", "--week", DATE, "--store", store, "--input"];
    run_well(&[&arguments[..], &[crawl.to_str().unwrap()]].concat());
    let said = run_well(&["run", "jobs/passages.toml", "--store", store]).stdout;
    assert!(said.starts_with("Passages of 50 words and more on week 2024-01-08: "), "{said}");
    let passages = folder.path().join("store/passages");
    let (docs, bytes) = (longs(&passages, "passages", "doc"), longs(&passages, "passages", "bytes"));
    assert!(docs.len() > 100 && bytes.iter().all(|bytes| *bytes == 0), "{} {said}", docs.len());
    let ran = run(&["export", store, "--out", folder.path().join("out").to_str().unwrap(), "--drop-passages"]);
    assert_eq!(ran.code, Some(1), "{}", ran.stderr);
    assert!(ran.stderr.contains("cannot be taken out"), "{}", ran.stderr);
}

#[test]
fn words_of_a_pattern_can_have_blanks() {
    let folder = tempfile::tempdir().unwrap();
    let line = |id: &str, text: &str| serde_json::json!({"id": id, "meta": {"text": text}}).to_string() + "\n";
    let same = "<p class=\"x\"> one two <b id=\"y\"> three </p>";
    let lines = line("1", same) + &line("2", &format!("{same} and other words")) + &line("3", "nothing of all that");
    let input = folder.path().join("texts.jsonl");
    std::fs::write(&input, lines).unwrap();
    let corpus = Corpus { folder, texts: Vec::new() };
    corpus.cluster("store", &input, "words = { pattern = '(?s)<[^>]*>|\\S+' }\n");
    let job = job(corpus.folder.path(), "[passages]\nwords = 2\ndocuments = \"all\"\n");
    run_well(&["run", job.to_str().unwrap(), "-q", "--store", corpus.path("store").to_str().unwrap()]);
    // A tag is one word: six words stand twice.
    let rows = rows_of(&corpus.path("store/passages"), "passages", &["words"]);
    assert_eq!(rows, [["6"], ["6"]]);
}
