//! Exports without paragraphs and documents most of whose n-grams stand before: against a slow twin
//! over the texts.

use std::collections::{BTreeMap, HashSet};
use std::path::Path;
use std::sync::Arc;

use arrow_array::cast::AsArray as _;
use arrow_array::types::Int64Type;
use arrow_array::{ArrayRef, Int64Array, RecordBatch, StringArray};
use parquet::arrow::ArrowWriter;
use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;
use parquet::file::properties::WriterProperties;
use serde_json::{Value, json};

use crate::program::{run, run_well};
use crate::weeks::partial::Lcg;

const DATE: &str = "2024-01-08";
const WORDS: usize = 5;

/// Texts whose lines are stretches of a few long texts, some with words of their own.
fn texts() -> Vec<String> {
    let mut numbers = Lcg(11);
    let line = |numbers: &mut Lcg| {
        let (source, start, words) = (numbers.below(4), numbers.below(120), 3 + numbers.below(30));
        let changes = numbers.below(3) * 9;
        let word = |at: usize| match changes > 0 && numbers.below(changes) == 0 {
            true => format!("own{}", numbers.below(900)),
            false => format!("S{source}w{at}"),
        };
        (start..start + words).map(word).collect::<Vec<_>>().join([" ", ", "][source % 2])
    };
    let mut texts: Vec<String> = (0..90)
        .map(|n| {
            let lines: Vec<String> = (0..2 + n % 5).map(|_| line(&mut numbers)).collect();
            // Blank lines, and white space around lines, are no words.
            lines.join(["\n", "\n\n", "  \n"][n % 3])
        })
        .collect();
    // One that has each line of another, in other documents, and one that repeats itself.
    let second = texts[2].clone();
    texts.insert(40, format!("a line of its own\n{second}\nanother line"));
    texts.push(format!("{0}\n{0}\n{0}", (0..20).map(|n| format!("again{n}")).collect::<Vec<_>>().join(" ")));
    texts
}

/// What is left of each text by the rules, one paragraph after the other; none of one that goes.
fn twin(texts: &[String], share: f64) -> Vec<Option<String>> {
    let mut known: HashSet<Vec<&str>> = HashSet::new();
    let left = |text: &'_ str, own: &[bool]| {
        let lines: Vec<&str> = text.split('\n').zip(own).filter(|(_, stays)| **stays).map(|(line, _)| line).collect();
        let text = lines.join("\n");
        (!text.trim().is_empty()).then_some(text)
    };
    let mut all_left = Vec::new();
    for text in texts {
        let (mut own, mut stays) = (HashSet::new(), Vec::new());
        let (mut all, mut elsewhere) = (0, 0);
        for line in text.split('\n') {
            let words: Vec<&str> = line.split([' ', ',']).filter(|word| !word.is_empty()).collect();
            let grams: Vec<Vec<&str>> = words.windows(WORDS).map(<[&str]>::to_vec).collect();
            let before = grams.iter().filter(|gram| known.contains(*gram) || own.contains(*gram)).count();
            elsewhere += grams.iter().filter(|gram| known.contains(*gram)).count();
            all += grams.len();
            stays.push(grams.is_empty() || before as f64 / grams.len() as f64 <= share);
            if stays.last() == Some(&true) {
                own.extend(grams);
            }
        }
        if all > 0 && elsewhere as f64 / all as f64 > share {
            all_left.push(None);
        } else {
            known.extend(own);
            all_left.push(left(text, &stays));
        }
    }
    all_left
}

/// Writes texts to a Parquet file, in row groups of a few rows; every seventh row has no text, and
/// is no document. The other columns stay.
fn write_parquet(path: &Path, texts: &[String], first: usize) {
    let (mut ids, mut of_rows) = (Vec::new(), Vec::new());
    for (number, text) in (first..).zip(texts) {
        if number % 7 == 3 {
            ids.push(-1);
            of_rows.push(None);
        }
        ids.push(number as i64);
        of_rows.push(Some(text.as_str()));
    }
    let other = StringArray::from_iter_values(ids.iter().map(|_| "kept"));
    let columns: Vec<(&str, ArrayRef, bool)> = vec![
        ("id", Arc::new(Int64Array::from(ids)), true),
        ("text", Arc::new(StringArray::from(of_rows)), true),
        ("other", Arc::new(other), false),
    ];
    let batch = RecordBatch::try_from_iter_with_nullable(columns).unwrap();
    let properties = WriterProperties::builder().set_max_row_group_row_count(Some(8)).build();
    let file = std::fs::File::create(path).unwrap();
    let mut writer = ArrowWriter::try_new(file, batch.schema(), Some(properties)).unwrap();
    writer.write(&batch).unwrap();
    writer.close().unwrap();
}

/// The texts below a folder by id; those of text files by their numbers.
fn exported(out: &Path) -> BTreeMap<u64, String> {
    let mut texts = BTreeMap::new();
    for entry in std::fs::read_dir(out).unwrap() {
        let path = entry.unwrap().path();
        match path.extension().and_then(std::ffi::OsStr::to_str) {
            Some("jsonl") => texts.extend(std::fs::read_to_string(path).unwrap().lines().map(|line| {
                let line: Value = serde_json::from_str(line).unwrap();
                (line["id"].as_u64().unwrap(), line["text"].as_str().unwrap().to_owned())
            })),
            Some("parquet") => {
                let file = std::fs::File::open(path).unwrap();
                for batch in ParquetRecordBatchReaderBuilder::try_new(file).unwrap().build().unwrap() {
                    let batch = batch.unwrap();
                    assert!(batch["other"].as_string::<i32>().iter().all(|other| other == Some("kept")));
                    let (ids, all) = (batch["id"].as_primitive::<Int64Type>(), batch["text"].as_string::<i32>());
                    texts.extend((0..batch.num_rows()).map(|row| (ids.value(row) as u64, all.value(row).to_owned())));
                }
            }
            Some("txt") => {
                let number = path.file_stem().unwrap().to_str().unwrap().parse().unwrap();
                texts.insert(number, std::fs::read_to_string(path).unwrap());
            }
            _ => {}
        }
    }
    texts
}

#[test]
fn what_stands_before_goes_as_a_slow_twin_says() {
    let folder = tempfile::tempdir().unwrap();
    let (folder, texts) = (folder.path(), texts());
    let run_of = |name: &str, input: &str, flags: &[&str]| {
        let store = folder.join(name).to_str().unwrap().to_owned();
        let arguments = ["run", "-q", "--no-accuracy", "--week", DATE, "--store", &store];
        run_well(&[&arguments[..], flags, &["--input", input]].concat());
        store
    };
    // Two files of lines, and a file for each text. All texts stay: exact copies there are none.
    let rows = folder.join("rows");
    std::fs::create_dir(&rows).unwrap();
    for (name, range) in [("a.jsonl", 0..50), ("b.jsonl", 50..texts.len())] {
        let line = |n: usize| json!({"id": n, "text": texts[n], "other": "kept"}).to_string() + "\n";
        std::fs::write(rows.join(name), range.map(line).collect::<String>()).unwrap();
    }
    let files = folder.join("files");
    std::fs::create_dir(&files).unwrap();
    for (number, text) in texts.iter().enumerate() {
        std::fs::write(files.join(format!("{number:03}.txt")), text).unwrap();
    }
    let parquet = folder.join("parquet");
    std::fs::create_dir(&parquet).unwrap();
    write_parquet(&parquet.join("a.parquet"), &texts[..50], 0);
    write_parquet(&parquet.join("b.parquet"), &texts[50..], 50);
    let job = crate::program::job(folder, "[cluster]\nmax-reject-share = 0.2\n[cluster.read.columns]\nid = \"id\"\n");
    let of_parquet = run_of("of-parquet", parquet.to_str().unwrap(), &[job.to_str().unwrap()]);
    let of_rows = run_of("of-rows", rows.to_str().unwrap(), &["--id", "id"]);
    let of_files = run_of("of-files", files.to_str().unwrap(), &[]);
    for (number, share) in [0.8, 0.5, 0.0, 1.0].into_iter().enumerate() {
        let expected: BTreeMap<u64, String> =
            (0..).zip(twin(&texts, share)).filter_map(|(number, left)| Some((number, left?))).collect();
        let changed = expected.iter().filter(|(number, left)| texts[**number as usize] != **left).count();
        assert!(number > 1 || changed > 10, "{share}: {changed}");
        assert!(share == 1.0 || expected.len() < texts.len(), "{share}: {}", expected.len());
        let stores = [(&of_rows, "1"), (&of_rows, "2"), (&of_rows, "4"), (&of_files, "3")];
        let same: (&[&str], &[&str]) = (&[], &["--format", "jsonl"]);
        let stores = stores.map(|(store, workers)| (store, workers, same.0));
        let of_parquet = [(&of_parquet, "1", same.0), (&of_parquet, "3", same.0), (&of_parquet, "2", same.1)];
        for (store, workers, format) in stores.into_iter().chain(of_parquet) {
            let name = Path::new(store).file_name().unwrap().to_str().unwrap();
            let out = folder.join(format!("out-{number}-{name}-{workers}"));
            let (share, words) = (share.to_string(), WORDS.to_string());
            let flags = ["--most", "4294967295", "--level", "paragraph", "--workers", workers, "--json", "--card"];
            let overlap = ["--overlap", &share, "--ngram", &words];
            let arguments = [&["export", store, "--out", out.to_str().unwrap()], &flags[..], &overlap, format].concat();
            let ran = run_well(&arguments);
            let found = exported(&out);
            let differs = expected.iter().find(|(number, text)| found.get(number) != Some(text));
            assert!(found.len() == expected.len() && differs.is_none(), "{share}, {store}: {differs:?}");
            let counts: Value = serde_json::from_str(&ran.stdout).unwrap();
            assert_eq!(counts["written"].as_u64(), Some(expected.len() as u64), "{counts}");
            assert_eq!(counts["emptied"].as_u64(), Some((texts.len() - expected.len()) as u64), "{counts}");
            let card = std::fs::read_to_string(out.join("README.md")).unwrap();
            let percent =
                format!("more than {}% of the runs of 5 words stand before", 100.0 * share.parse::<f64>().unwrap());
            assert!(card.contains(&percent), "{card}");
        }
    }
    // Shorter paragraphs neither go nor count, unless their document goes.
    let out = folder.join("long");
    let flags =
        ["--most", "4294967295", "--level", "paragraph", "--overlap", "0.8", "--ngram", "5", "--min-length", "100000"];
    run_well(&[&["export", &of_rows, "--out", out.to_str().unwrap()], &flags[..]].concat());
    assert!(exported(&out).into_values().eq(texts.iter().cloned()));
    // Short lines go with a document most of whose other n-grams stand before.
    let copied: Vec<String> = (0..30).map(|word| format!("copied{word}")).collect();
    let copied = copied.join(" ");
    let own = (0..30).map(|word| format!("own{word}")).collect::<Vec<_>>().join(" ");
    let with_short = [copied.clone(), format!("Menu\n{copied}\nfooter"), format!("Menu\n{copied} and\n{own}")];
    let lines: String =
        with_short.iter().enumerate().map(|(id, text)| format!("{}\n", json!({ "id": id, "text": text }))).collect();
    let (input, short, out) = (folder.join("short.jsonl"), folder.join("short"), folder.join("without-short"));
    std::fs::write(&input, lines).unwrap();
    let [input, short] = [&input, &short].map(|path| path.to_str().unwrap());
    run_well(&["run", "-q", "--store", short, "--week", "2024-01-08", "--id", "id", "--input", input]);
    let flags =
        ["--most", "4294967295", "--level", "paragraph", "--overlap", "0.8", "--ngram", "5", "--min-length", "15"];
    run_well(&[&["export", short, "--out", out.to_str().unwrap()], &flags[..]].concat());
    let left = exported(&out).into_values().collect::<Vec<_>>();
    assert_eq!(left, [copied, format!("Menu\n{own}")]);

    for (flags, wanted) in [
        (&["--overlap", "0.8"][..], "--overlap is for paragraphs"),
        (&["--min-count", "3"], "--min-count and --min-length are for paragraphs"),
        (&["--level", "paragraph", "--overlap", "1.5"], "allowed is 0.0 to 1.0"),
        (&["--level", "paragraph", "--overlap", "much"], "is not a number"),
        (&["--level", "paragraph", "--overlap", "0.8", "--min-count", "3"], "cannot be used with"),
        (&["--level", "paragraph", "--ngram", "3"], "--overlap"),
        (&["--level", "paragraph", "--overlap", "0.8", "--ngram", "0"], "1..=1000"),
    ] {
        let ran = run(&[&["export", &of_rows, "--out", folder.join("refused").to_str().unwrap()], flags].concat());
        assert!(ran.code == Some(2) && ran.stderr.contains(wanted), "{flags:?}: {}", ran.stderr);
    }
}
