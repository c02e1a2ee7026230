//! What can be a reference: files of any columns, and the documents of a store.

use std::collections::BTreeSet;
use std::sync::Arc;

use arrow_array::{ArrayRef, RecordBatch, StringArray};

use super::quiz::{DATE, DOCUMENTS, QuizCorpus, text, words, write_parquet};
use crate::program::{Ran, job, run, run_well};

#[test]
fn a_reference_without_anything_to_compare_is_an_error() {
    let corpus = QuizCorpus::new();
    let write = |name: &str, text: &str| std::fs::write(corpus.path(name), text).unwrap();
    write("empty.jsonl", "");
    write("short.jsonl", "{\"text\":\"too short\"}\n{\"text\":\"\"}\n{\"text\":\"...\"}\n");
    write("array.jsonl", "[{\"text\":\"a b c d e f g h i j\"}]\n");
    write("other.jsonl", "{\"prompt\":\"a b c d e f g h i j\",\"n\":1}\n");
    write("bad.jsonl", "{\"text\":\n");
    write("null.jsonl", "{\"text\":null}\n{\"text\":7}\n");
    write("twice.csv", "text,text\na b c d e f g h i j,k\n");
    let texts: ArrayRef = Arc::new(StringArray::from(vec!["a b c d e f g h i j"]));
    write_parquet(&corpus.path("twice.parquet"), vec![("text", texts.clone()), ("text", texts)]);
    let store = corpus.name("store");
    for (file, wanted) in [
        ("empty.jsonl", "of its 0 items 0 have no words"),
        ("short.jsonl", "of its 3 items 2 have no words and 1 have fewer than 8 words (`shortest`"),
        ("array.jsonl", "array.jsonl of the reference is a JSON array"),
        ("other.jsonl", "has none of the columns `text`: it has `n`, `prompt`"),
        ("bad.jsonl", "bad.jsonl of the reference has 1 record, of which none can be read"),
        ("null.jsonl", "of its 2 items 2 have no words"),
        ("twice.csv", "twice.csv has 2 columns `text`: rename all of them except one"),
        ("twice.parquet", "twice.parquet has 2 columns `text`: rename all of them except one"),
        ("nothing.jsonl", "no input matches"),
        ("store", "is the store itself"),
    ] {
        // Without a job: its defaults.
        let ran = run(&["run", "-q", "--store", &store, "--against", &corpus.name(file)]);
        assert_eq!(ran.code, Some(1), "{file}: {}{}", ran.stdout, ran.stderr);
        assert!(ran.stderr.contains(wanted), "{file}: {}", ran.stderr);
    }
    for (lines, wanted) in [
        ("columns = [\"question\", \"anwser\"]\n", "no file of the reference has the column `anwser`"),
        ("columns = [\"question\"]\nid = \"nr\"\n", "no file of the reference has the column `nr`"),
    ] {
        let job = job(corpus.folder.path(), &format!("[decontamination]\n{lines}"));
        let ran = run(&["run", job.to_str().unwrap(), "-q", "--store", &store, "--against", &corpus.name("evals")]);
        assert_eq!(ran.code, Some(1), "{lines}");
        assert!(ran.stderr.contains(wanted) && ran.stderr.contains("`question`"), "{}", ran.stderr);
    }
    // Pages, texts and stores have no columns, and say nothing of those of files.
    write("notes.txt", "A text of more than eight words, which is no question at all.\n");
    let wrong = job(corpus.folder.path(), "[decontamination]\ncolumns = [\"question\", \"anwser\"]\n");
    let (evals, notes) = (corpus.name("evals"), corpus.name("notes.txt"));
    let ran = run(&["run", wrong.to_str().unwrap(), "-q", "--store", &store, "--against", &evals, &notes]);
    assert_eq!(ran.code, Some(1));
    assert!(ran.stderr.contains("no file of the reference has the column `anwser`"), "{}", ran.stderr);
    let nothing = run(&["run", &corpus.job(""), "-q", "--store", &store]);
    assert!(nothing.code == Some(1) && nothing.stderr.contains("give --against FILES"), "{}", nothing.stderr);
    for arguments in [
        &["run", "jobs/passages.toml", "--store", &store, "--against", "evals"][..],
        &["run", "jobs/cluster.toml", "--store", &store, "--against", "evals"],
        &["add", &store, "--against", "evals"],
    ] {
        let refused = run(arguments);
        assert_eq!(refused.code, Some(2), "{arguments:?}");
        assert!(refused.stderr.contains("--against"), "{}", refused.stderr);
    }
    assert!(!corpus.path("store/decontamination/matches").exists(), "a failed run leaves no table");
}

#[test]
fn the_documents_of_a_batch_against_another_store() {
    let corpus = QuizCorpus::new();
    // The second batch has one text of the first one with other words around it, and a new one.
    let line = |id: &str, text: &str| serde_json::json!({"id": id, "text": text}).to_string() + "\n";
    let batch = line("x", &format!("{} {}", text(8), words(9000, 3))) + &line("y", &words(9001, 50));
    std::fs::write(corpus.path("batch.jsonl"), batch).unwrap();
    corpus.cluster("store", "batch.jsonl", &["--week", "2024-02-01"]);
    // The reference is a store of its own.
    let others = line("p", &text(8)) + &line("q", &words(9001, 48)) + &line("r", &text(9)) + &line("s", "one two");
    std::fs::write(corpus.path("others.jsonl"), others).unwrap();
    corpus.cluster("others", "others.jsonl", &["--week", DATE]);
    let store = corpus.name("store");
    let run_job = |lines: &str| {
        let job = job(corpus.folder.path(), &format!("[decontamination]\nsimilarity = 0.8\n{lines}"));
        run(&["run", job.to_str().unwrap(), "-q", "--store", &store, "--against", &corpus.name("others"), "--json"])
    };
    let summary = |ran: &Ran| serde_json::from_str::<serde_json::Value>(&ran.stdout).unwrap();
    let all = run_job("");
    assert_eq!(all.code, Some(0), "{}", all.stderr);
    assert_eq!(summary(&all)["documents"], DOCUMENTS + 2);
    let rows = corpus.rows("matches", &["doc", "item", "containment", "similarity"]);
    // Documents 8, 9, x and y; no item is a document of the store.
    assert_eq!(rows.len(), 4, "{rows:?}");
    assert_eq!(rows.iter().filter(|row| row[2] == "1" && row[3] == "1").count(), 2, "{rows:?}");
    assert!(rows.iter().all(|row| row[3] != "null" && row[3].parse::<f64>().unwrap() >= 0.8), "{rows:?}");
    let items = corpus.rows("items", &["id", "compared", "documents"]);
    let items: Vec<[&str; 3]> = items.iter().map(|row| [&row[0][..], &row[1], &row[2]]).collect();
    // Of two words no n-gram is made; they are one shingle, which wraps around.
    assert_eq!(items, [["p", "true", "2"], ["q", "true", "1"], ["r", "true", "1"], ["s", "true", "0"]]);

    let new = run_job("since = \"2024-02-01\"\n");
    assert_eq!((summary(&new)["documents"].as_u64(), summary(&new)["with_matches"].as_u64()), (Some(2), Some(2)));
    let refused = corpus.export("all", &["--matched", "drop"]);
    assert_eq!(refused.code, Some(1));
    assert!(refused.stderr.contains("there are 62 documents, and 2 others were compared"), "{}", refused.stderr);
    let ran = corpus.export("new", &["--matched", "only", "--since", "2024-02-01"]);
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    let written = std::fs::read_to_string(corpus.path("new/batch.jsonl")).unwrap();
    assert_eq!(written.lines().count(), 2, "{written}");
    // What was not compared is no match, and no document without one.
    corpus.cluster("store", "others.jsonl", &["--week", "2024-03-01"]);
    let refused = corpus.export("later", &["--matched", "drop"]);
    assert!(refused.stderr.contains("has the decontamination of week 2024-02-01"), "{}", refused.stderr);
}

#[test]
fn a_store_as_a_reference_is_its_documents_as_they_are_now() {
    let corpus = QuizCorpus::new();
    let line = |id: &str, part: usize| serde_json::json!({"id": id, "text": words(9000 + part, 30)}).to_string() + "\n";
    let write = |name: &str, text: String| std::fs::write(corpus.path(name), text).unwrap();
    write("first.jsonl", line("deleted", 1) + &line("replaced", 2) + &line("stays", 3));
    write("second.jsonl", line("replaced", 4) + &line("new", 5));
    // A file of which the job has rejected all.
    write("bad.jsonl", "not JSON\n".to_owned());
    let others = corpus.name("others");
    let job = job(corpus.folder.path(), "[cluster]\nmax-reject-share = 1.0\n[cluster.read.columns]\nid = \"id\"\n");
    for (week, files) in [("2024-01-08", &["first.jsonl"][..]), ("2024-01-15", &["second.jsonl", "bad.jsonl"])] {
        let files: Vec<String> = files.iter().map(|file| corpus.name(file)).collect();
        let files: Vec<&str> = files.iter().map(String::as_str).collect();
        let flags = ["add", &others, job.to_str().unwrap(), "-q", "--week", week, "--input"];
        run_well(&[&flags[..], &files].concat());
    }
    run_well(&["delete", "-q", "--store", &others, "--id", "deleted"]);
    let arguments = ["run", "-q", "--store", &corpus.name("store"), "--against", &others];
    run_well(&arguments);
    let items = corpus.rows("items", &["id", "record"]);
    let items: BTreeSet<[&str; 2]> = items.iter().map(|row| [&row[0][..], &row[1]]).collect();
    // The records keep their numbers in their files.
    assert_eq!(items, BTreeSet::from([["stays", "2"], ["replaced", "0"], ["new", "1"]]));
    // A document that is not where it was is missed.
    write("second.jsonl", line("new", 5));
    let failed = run(&arguments);
    assert_eq!(failed.code, Some(1), "{}{}", failed.stdout, failed.stderr);
    assert!(failed.stderr.contains("second.jsonl") && failed.stderr.contains("Put the file back"), "{}", failed.stderr);
}

#[test]
fn a_reference_that_is_not_read_whole_is_an_error() {
    let corpus = QuizCorpus::new();
    let store = corpus.name("store");
    let texts: Vec<String> = (0..400).map(|number| words(number, 30)).collect();
    let lines: String = texts.iter().map(|text| serde_json::json!({ "text": text }).to_string() + "\n").collect();
    let columns: Vec<(&str, ArrayRef)> = vec![("text", Arc::new(StringArray::from(texts.clone())))];
    let batch = RecordBatch::try_from_iter(columns).unwrap();
    let mut writer = arrow_ipc::writer::StreamWriter::try_new(Vec::new(), &batch.schema()).unwrap();
    (0..20).for_each(|number| writer.write(&batch.slice(number * 20, 20)).unwrap());
    writer.finish().unwrap();
    let arrow = writer.into_inner().unwrap();
    let gzip = |bytes: &[u8]| {
        use std::io::Write as _;
        let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::default());
        gzip.write_all(bytes).unwrap();
        gzip.finish().unwrap()
    };
    let zstd = |bytes: &[u8]| zstd::bulk::compress(bytes, 1).unwrap();
    let half = |bytes: Vec<u8>| bytes[..bytes.len() / 2].to_vec();
    let mut zeroed = arrow.clone();
    zeroed[..20].fill(0);
    let middle = arrow.len() / 2;
    let csv = format!("text\n{}\n", texts.join("\n"));
    std::fs::write(corpus.path("good.jsonl"), &lines).unwrap();
    let early = "could not be read, for it ends early";
    for (name, bytes, wanted) in [
        ("zeroed.arrow", zeroed, "is damaged at its beginning"),
        ("cut.arrow", half(arrow.clone()), early),
        ("cut.arrow.zst", [zstd(&arrow[..middle]), half(zstd(&arrow[middle..]))].concat(), early),
        ("cut.jsonl.gz", half(gzip(lines.as_bytes())), early),
        ("cut.csv.gz", half(gzip(csv.as_bytes())), early),
        ("junk.arrow", [&arrow[..], b"no stream at all"].concat(), "16 B of"),
        ("other.arrow", Vec::new(), "is damaged at its beginning"),
        ("other.csv", b"prompt\none two\n".to_vec(), "has no column `text` (its columns: prompt)"),
    ] {
        std::fs::write(corpus.path(name), bytes).unwrap();
        let against = [corpus.name("good.jsonl"), corpus.name(name)];
        let flags = ["-q", "--store", &store, "--against", &against[0], &against[1]];
        let failed = run(&[&["run"][..], &flags].concat());
        assert_eq!(failed.code, Some(1), "{name}: {}{}", failed.stdout, failed.stderr);
        assert!(failed.stderr.contains(wanted) && failed.stderr.contains(&against[1]), "{name}: {}", failed.stderr);
        if name.starts_with("cut") {
            assert!(failed.stderr.contains("set max-unread-share in [decontamination]"), "{}", failed.stderr);
            let job = job(corpus.folder.path(), "[decontamination]\nmax-unread-share = 1.0\n");
            run_well(&[&["run", job.to_str().unwrap()][..], &flags].concat());
        }
    }
}

#[test]
fn bytes_of_parquet_that_say_nothing_of_text_are_texts_of_a_reference() {
    let corpus = QuizCorpus::new();
    let texts: Vec<String> = (0..10).map(text).collect();
    let bytes: Vec<&[u8]> = texts.iter().map(|text| text.as_bytes()).collect();
    let columns: Vec<(&str, ArrayRef)> = vec![
        ("binary", Arc::new(arrow_array::BinaryArray::from(bytes.clone()))),
        ("text", Arc::new(StringArray::from(texts.clone()))),
    ];
    write_parquet(&corpus.path("bytes.parquet"), columns);
    let matches = |column: &str| {
        let job = job(corpus.folder.path(), &format!("[decontamination]\ncolumns = [\"{column}\"]\n"));
        let [store, against] = [corpus.name("store"), corpus.name("bytes.parquet")];
        run_well(&["run", job.to_str().unwrap(), "-q", "--store", &store, "--against", &against]);
        corpus.rows("matches", &["doc", "item", "containment"])
    };
    let of_texts = matches("text");
    assert!(!of_texts.is_empty());
    assert_eq!(matches("binary"), of_texts);
}
