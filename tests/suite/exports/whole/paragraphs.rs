//! Paragraphs that documents repeat: the first one stays.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use arrow_array::cast::AsArray as _;
use arrow_array::types::Int64Type;
use arrow_array::{ArrayRef, Int64Array, RecordBatch, StringArray};
use parquet::arrow::ArrowWriter;
use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;

use super::line_shards::{DATE, id, read};
use crate::program::{job, longs, run, run_well, week};

/// Texts of four to nine lines, some of which others have, too.
fn text_of_lines(n: usize) -> String {
    let own = |line: usize| {
        (0..30)
            .map(|place| format!("w{}", (n * 31 + line * 17 + place * 7919) * 104_729 % 99_991))
            .collect::<Vec<_>>()
            .join(" ")
    };
    let mut lines = Vec::new();
    for line in 0..4 + n % 6 {
        lines.push(match (n + line) % 7 {
            0 => "Sign up for our newsletter and get the news first.".to_owned(),
            1 => format!("  Page {} of our long series of articles \u{201c}on everything\u{201d}  ", n % 5),
            2 => "ok".to_owned(),
            3 => String::new(),
            _ => own(line),
        });
    }
    lines.join("\n")
}

/// What is left of texts whose paragraphs go: by a walk over all texts in order.
fn without_repeated(texts: &[String], least_count: usize, least_characters: usize) -> Vec<Option<String>> {
    let is_long = |line: &&str| !line.trim().is_empty() && line.trim().chars().count() >= least_characters;
    let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
    let all = texts.iter().flat_map(|text| text.split('\n')).filter(is_long);
    all.for_each(|line| *counts.entry(line.trim()).or_default() += 1);
    let mut seen: BTreeSet<&str> = BTreeSet::new();
    let left = texts.iter().map(|text| {
        let kept: Vec<&str> = text
            .split_inclusive('\n')
            .filter(|line| {
                let paragraph = line.trim();
                !is_long(&paragraph) || counts[paragraph] < least_count || seen.insert(paragraph)
            })
            .collect();
        let kept = kept.concat();
        let is_changed = kept != **text;
        // The line break before a last line that goes, goes with it.
        let kept = if text.ends_with('\n') { kept } else { kept.strip_suffix('\n').unwrap_or(&kept).to_owned() };
        (!is_changed || !kept.trim().is_empty()).then_some(kept)
    });
    left.collect()
}

#[test]
fn repeated_paragraphs_go_and_the_first_stays() {
    let folder = tempfile::tempdir().unwrap();
    let store = folder.path().join("store");
    let texts: Vec<String> = (0..90)
        .map(text_of_lines)
        .chain(["ok\n Page 3 of our long series of articles \u{201c}on everything\u{201d}\n".to_owned()])
        .collect();
    let shards = folder.path().join("shards");
    std::fs::create_dir(&shards).unwrap();
    let line = |n: usize| line_with(n, &texts[n]) + "\n";
    std::fs::write(shards.join("a.jsonl"), (0..40).map(line).collect::<String>()).unwrap();
    std::fs::write(shards.join("b.jsonl"), (40..60).map(line).collect::<String>()).unwrap();
    let columns: Vec<(&str, ArrayRef)> = vec![
        ("id", Arc::new(Int64Array::from_iter_values(60..91))),
        ("meta.text", Arc::new(StringArray::from_iter_values(&texts[60..]))),
    ];
    let batch = RecordBatch::try_from_iter(columns).unwrap();
    let file = std::fs::File::create(shards.join("c.parquet")).unwrap();
    let mut writer = ArrowWriter::try_new(file, batch.schema(), None).unwrap();
    writer.write(&batch).unwrap();
    writer.close().unwrap();
    let text =
        "[cluster.read.columns]\nid = \"id\"\ntext = \"meta.text\"\n[cluster.method]\nshards = 4\nsimilarity = 0.95\n";
    let job = job(folder.path(), &format!("[cluster]\nweek = \"{DATE}\"\n{text}"));
    let arguments = ["run", job.to_str().unwrap(), "-q", "--store", store.to_str().unwrap(), "--input"];
    run_well(&[&arguments[..], &[shards.to_str().unwrap()]].concat());
    assert!(longs(&week(&store, DATE), "clusters", "similar_size").iter().all(|size| *size == 1));
    for (number, (flags, count, characters)) in
        [(&[][..], 2, 1), (&["--min-count", "9"], 9, 1), (&["--min-length", "10", "--workers", "1"], 2, 10)]
            .into_iter()
            .enumerate()
    {
        let out = folder.path().join(format!("out-{number}"));
        let arguments =
            ["export", store.to_str().unwrap(), "--out", out.to_str().unwrap(), "--level", "paragraph", "--json"];
        let ran = run_well(&[&arguments[..], flags].concat());
        let left = without_repeated(&texts, count, characters);
        let mut found: BTreeMap<usize, String> = BTreeMap::new();
        for name in ["a.jsonl", "b.jsonl"] {
            for line in read(&out.join(name)) {
                let value: serde_json::Value = serde_json::from_str(&line).unwrap();
                let text = value["meta"]["text"].as_str().unwrap().to_owned();
                // Only the text is another one.
                assert_eq!(line, self::line_with(id(&line), &text));
                found.insert(id(&line), text);
            }
        }
        let file = std::fs::File::open(out.join("c.parquet")).unwrap();
        for batch in ParquetRecordBatchReaderBuilder::try_new(file).unwrap().build().unwrap() {
            let batch = batch.unwrap();
            let (ids, texts) = (batch["id"].as_primitive::<Int64Type>(), batch["meta.text"].as_string::<i32>());
            found.extend((0..batch.num_rows()).map(|row| (ids.value(row) as usize, texts.value(row).to_owned())));
        }
        let wanted: BTreeMap<usize, String> =
            left.iter().enumerate().filter_map(|(n, text)| Some((n, text.clone()?))).collect();
        assert_eq!(found, wanted, "{flags:?}");
        let summary: serde_json::Value = serde_json::from_str(&ran.stdout).unwrap();
        assert_eq!(summary["emptied"], texts.len() - wanted.len());
        let bytes = texts.iter().map(String::len).sum::<usize>() - wanted.values().map(String::len).sum::<usize>();
        assert_eq!(summary["paragraph_bytes"], bytes);
        assert!(summary["paragraphs"].as_u64().unwrap() > 20, "{summary}");
    }
    let refused = run(&["export", store.to_str().unwrap(), "--out", "x", "--level", "paragraph", "--what", "removed"]);
    assert_eq!(refused.code, Some(2), "{}", refused.stderr);
}

#[test]
fn texts_of_which_something_goes_are_compressed_as_their_names_say() {
    let folder = tempfile::tempdir().unwrap();
    let [input, store, out] = ["in", "store", "out"].map(|name| folder.path().join(name));
    std::fs::create_dir(&input).unwrap();
    let own = |n: usize| (0..60).map(|word| format!("w{n}x{word} ")).collect::<String>();
    let text = |n: usize| format!("A menu line\n{}\n", own(n));
    let gzip = |text: String| {
        let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::default());
        std::io::Write::write_all(&mut gzip, text.as_bytes()).unwrap();
        gzip.finish().unwrap()
    };
    std::fs::write(input.join("a.txt.gz"), gzip(text(0))).unwrap();
    std::fs::write(input.join("b.txt.gz"), gzip(text(1))).unwrap();
    std::fs::write(input.join("c.md.zst"), zstd::bulk::compress(text(2).as_bytes(), 1).unwrap()).unwrap();
    std::fs::write(input.join("d.txt"), text(3)).unwrap();
    let [input_name, store, out_name] = [&input, &store, &out].map(|path| path.to_str().unwrap());
    run_well(&["run", "-q", "--no-accuracy", "--week", DATE, "--store", store, "--input", input_name]);
    run_well(&["export", store, "--out", out_name, "--level", "paragraph"]);
    let stored = |name: &str| std::fs::read(out.join(name)).unwrap();
    assert_eq!(stored("a.txt.gz"), std::fs::read(input.join("a.txt.gz")).unwrap());
    let second = std::io::read_to_string(flate2::read::GzDecoder::new(&stored("b.txt.gz")[..])).unwrap();
    assert_eq!(second, own(1) + "\n");
    assert_eq!(zstd::stream::decode_all(&stored("c.md.zst")[..]).unwrap(), (own(2) + "\n").as_bytes());
    assert_eq!(stored("d.txt"), (own(3) + "\n").as_bytes());
}

/// The line of a text.
fn line_with(n: usize, text: &str) -> String {
    format!("{{\"id\":{n}, \"meta\" : {{\"text\":{}, \"x\":[1]}},\"after\":null}}", serde_json::json!(text))
}
