//! Datasets that are written again without duplicates.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;

use arrow_array::cast::AsArray as _;
use arrow_array::types::Int64Type;
use arrow_array::{ArrayRef, Int64Array, RecordBatch, StringArray};
use parquet::arrow::ArrowWriter;
use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;

use crate::program::{booleans, job, longs, nigh, ran, run, run_well, skipped, texts, week};
use crate::skips::Need;

const DATE: &str = "2024-01-08";
const FAMILIES: usize = 20;

/// Record `n`: of family `n % FAMILIES`, with a length, a date and a host of its own.
pub fn record(n: usize) -> serde_json::Value {
    let word = |place: usize| match place {
        70 => format!("own{n}"),
        _ => format!("w{}", ((n % FAMILIES + 1) * 7919 + place * 104_729) % 99_991),
    };
    let text = (0..140 + n * 7 % 5).map(word).collect::<Vec<_>>().join(" ");
    let date = format!("2024-01-{:02}", 1 + n * 11 % 28);
    let url = format!("http://h{}.example/{}{n}", n % 3, "x".repeat(n * 13 % 9));
    serde_json::json!({"id": n, "text": text, "url": url, "date": date, "more": {"kept": [n, null]}})
}

/// Shards of lines with 40 records each, the last two compressed; and a store of them.
pub struct LineShards {
    folder: tempfile::TempDir,
    pub lines: Vec<Vec<String>>,
}

impl LineShards {
    pub fn new() -> LineShards {
        let folder = tempfile::tempdir().unwrap();
        let shards = folder.path().join("shards");
        std::fs::create_dir_all(shards.join("deep")).unwrap();
        let mut lines = Vec::new();
        for (shard, name) in ["a.jsonl", "b.jsonl.gz", "deep/c.jsonl.zst"].iter().enumerate() {
            // A line that is no document, and a blank one, are in no file that is written.
            let of_shard: Vec<String> = (40 * shard..40 * (shard + 1)).map(|n| record(n).to_string()).collect();
            let text = format!("{}\nno json\n\n{}\n", of_shard[..20].join("\n"), of_shard[20..].join("\n"));
            let bytes = match shard {
                0 => text.into_bytes(),
                1 => {
                    let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::default());
                    std::io::Write::write_all(&mut gzip, text.as_bytes()).unwrap();
                    gzip.finish().unwrap()
                }
                _ => zstd::bulk::compress(text.as_bytes(), 1).unwrap(),
            };
            std::fs::write(shards.join(name), bytes).unwrap();
            lines.push(of_shard);
        }
        let dataset = LineShards { folder, lines };
        dataset.cluster(&dataset.path("shards"));
        dataset
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    pub fn cluster(&self, input: &Path) {
        self.cluster_as(input, "first", &[]);
    }

    fn cluster_as(&self, input: &Path, canonical: &str, flags: &[&str]) {
        let text = format!(
            "[cluster]\nweek = \"{DATE}\"\nmax-reject-share = 0.1\ncanonical = \"{canonical}\"\n[cluster.read.columns]\nid = \"id\"\ndate = \
             \"date\"\n[cluster.method]\nshards = 4\nsimilarity = 0.8\n"
        );
        let (job, store) = (job(self.folder.path(), &text), self.path("store"));
        let arguments = ["run", job.to_str().unwrap(), "-q", "--replace", "--store", store.to_str().unwrap()];
        run_well(&[&arguments[..], &["--input", input.to_str().unwrap()], flags].concat());
    }

    /// Exports to a folder; returns the lines of each shard.
    pub fn export(&self, out: &str, flags: &[&str]) -> Vec<Vec<String>> {
        let (store, folder) = (self.path("store"), self.path(out));
        let arguments = ["export", store.to_str().unwrap(), "--out", folder.to_str().unwrap()];
        run_well(&[&arguments[..], flags].concat());
        ["a.jsonl", "b.jsonl.gz", "deep/c.jsonl.zst"].map(|name| read(&folder.join(name))).to_vec()
    }

    /// The cluster of each record.
    pub fn clusters(&self) -> BTreeMap<usize, BTreeSet<usize>> {
        let week = week(&self.path("store"), DATE);
        let ids = texts(&week, "clusters", "id").into_iter().map(|id| id.parse::<usize>().unwrap());
        let mut clusters: BTreeMap<i64, BTreeSet<usize>> = BTreeMap::new();
        for (id, root) in ids.zip(longs(&week, "clusters", "similar_root")) {
            clusters.entry(root).or_default().insert(id);
        }
        let all =
            clusters.into_values().flat_map(|cluster| cluster.clone().into_iter().map(move |id| (id, cluster.clone())));
        all.collect()
    }

    /// The document id of each record.
    fn docs(&self) -> BTreeMap<usize, i64> {
        let week = week(&self.path("store"), DATE);
        let ids = texts(&week, "clusters", "id").into_iter().map(|id| id.parse().unwrap());
        ids.zip(longs(&week, "clusters", "doc")).collect()
    }
}

/// The lines of a file, by the compression of its name.
fn read(path: &Path) -> Vec<String> {
    let bytes = std::fs::read(path).unwrap();
    let text = match path.extension().unwrap().to_str().unwrap() {
        "gz" => std::io::read_to_string(flate2::read::MultiGzDecoder::new(&bytes[..])).unwrap(),
        "zst" => String::from_utf8(zstd::stream::decode_all(&bytes[..]).unwrap()).unwrap(),
        _ => String::from_utf8(bytes).unwrap(),
    };
    text.lines().map(str::to_owned).collect()
}

/// The number of a line's record.
fn id(line: &str) -> usize {
    serde_json::from_str::<serde_json::Value>(line).unwrap()["id"].as_u64().unwrap() as usize
}

#[test]
fn each_policy_keeps_what_a_walk_over_the_clusters_keeps() {
    let dataset = LineShards::new();
    let (clusters, docs) = (dataset.clusters(), dataset.docs());
    assert!(clusters.values().filter(|cluster| cluster.len() > 1).count() > 60);
    let field = |n: usize, name: &str| record(n)[name].as_str().unwrap().to_owned();
    let words = |n: usize| field(n, "text").split(' ').count();
    for policy in ["first", "longest", "newest", "shortest-url", "per-host", "root"] {
        let best = |cluster: &BTreeSet<usize>, n: usize| match policy {
            "first" => *cluster.first().unwrap() == n,
            "longest" => {
                let key = |n: usize| (usize::MAX - words(n), usize::MAX - field(n, "text").len(), docs[&n]);
                cluster.iter().min_by_key(|n| key(**n)) == Some(&n)
            }
            "newest" => cluster.iter().max_by_key(|n| (field(**n, "date"), -docs[n])) == Some(&n),
            "shortest-url" => cluster.iter().min_by_key(|n| (field(**n, "url").len(), docs[n])) == Some(&n),
            "root" => cluster.iter().min_by_key(|n| docs[n]) == Some(&n),
            _ => cluster.iter().find(|other| **other % 3 == n % 3) == Some(&n),
        };
        let kept = dataset.export(&format!("kept-{policy}"), &["--keep", policy]);
        let removed = dataset.export(&format!("removed-{policy}"), &["--keep", policy, "--what", "removed"]);
        for (shard, lines) in dataset.lines.iter().enumerate() {
            let wanted = |stays: bool| {
                let lines = lines.iter().filter(|line| best(&clusters[&id(line)], id(line)) == stays);
                lines.cloned().collect::<Vec<String>>()
            };
            assert_eq!(kept[shard], wanted(true), "{policy}, shard {shard}");
            assert_eq!(removed[shard], wanted(false), "{policy}, shard {shard}");
        }
        // The policy of the job says what is canonical, and what stays if the command does not say
        // it.
        for flags in [["--workers", "1", "--processes", "1"], ["--workers", "2", "--processes", "2"]] {
            dataset.cluster_as(&dataset.path("shards"), policy, &flags);
            let week = week(&dataset.path("store"), DATE);
            let ids = texts(&week, "clusters", "id").into_iter().map(|id| id.parse::<usize>().unwrap());
            for (id, is_canonical) in ids.zip(booleans(&week, "clusters", "canonical")) {
                assert_eq!(is_canonical, best(&clusters[&id], id), "{policy}, {id}");
            }
        }
        assert_eq!(dataset.export(&format!("default-{policy}"), &[]), kept, "{policy}");
        let [store, shards, out] = ["store", "shards", &format!("default-{policy}")].map(|name| dataset.path(name));
        let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("scripts/check_export.py");
        let checked = Command::new("python3").arg(script).arg(store).args([DATE, "id"]).args([shards, out]).output();
        match checked {
            Ok(checked) if checked.status.code() == Some(0) => {
                let rows = kept.iter().map(Vec::len).sum::<usize>();
                let wanted = format!("{rows} of 120 rows are exported; 0 are missing, 0 should not be there\n");
                assert_eq!(String::from_utf8(checked.stdout).unwrap(), wanted);
            }
            Ok(checked) if checked.status.code() != Some(4) => panic!("{}", String::from_utf8_lossy(&checked.stdout)),
            _ => skipped(Need::Engines, "exports are not compared with an anti-join"),
        }
    }
}

#[test]
fn annotated_lines_have_cluster_size_rank_and_verdict() {
    let dataset = LineShards::new();
    let (clusters, docs) = (dataset.clusters(), dataset.docs());
    let annotated = dataset.export("annotated", &["--what", "annotated"]);
    for (of_shard, lines) in annotated.iter().zip(&dataset.lines) {
        assert_eq!(of_shard.len(), lines.len());
        for (line, before) in of_shard.iter().zip(lines) {
            let mut value: serde_json::Value = serde_json::from_str(line).unwrap();
            let cluster = &clusters[&id(line)];
            let rank = 1 + cluster.iter().position(|n| *n == id(line)).unwrap();
            let root = cluster.iter().map(|n| docs[n]).min().unwrap();
            let fields = value.as_object_mut().unwrap();
            let mut take = |name: &str| fields.remove(name).unwrap();
            assert_eq!(take("nigh_cluster"), root);
            assert_eq!((take("nigh_size"), take("nigh_rank")), (cluster.len().into(), rank.into()));
            assert_eq!(take("nigh_stays"), rank == 1);
            assert_eq!(value, serde_json::from_str::<serde_json::Value>(before).unwrap());
        }
    }
}

#[test]
fn rows_of_parquet_keep_all_columns_and_row_groups() {
    let dataset = LineShards::new();
    let input = dataset.path("rows.parquet");
    let columns: Vec<(&str, ArrayRef)> = vec![
        ("id", Arc::new(Int64Array::from_iter_values(0..60))),
        (
            "text",
            Arc::new(StringArray::from_iter_values((0..60).map(|n| record(n)["text"].as_str().unwrap().to_owned()))),
        ),
        ("date", Arc::new(StringArray::from(vec!["2024-01-01"; 60]))),
        ("more", Arc::new(Int64Array::from_iter((0..60).map(|n| (n % 7 > 0).then_some(n))))),
    ];
    let batch =
        RecordBatch::try_from_iter_with_nullable(columns.into_iter().map(|(name, array)| (name, array, true))).unwrap();
    let mut writer = ArrowWriter::try_new(std::fs::File::create(&input).unwrap(), batch.schema(), None).unwrap();
    writer.write(&batch).unwrap();
    writer.close().unwrap();
    dataset.cluster(&input);
    let clusters = dataset.clusters();
    let store = dataset.path("store");
    for (what, wanted) in [("kept", true), ("removed", false)] {
        let out = dataset.path(what);
        run_well(&["export", store.to_str().unwrap(), "--out", out.to_str().unwrap(), "--what", what]);
        let file = std::fs::File::open(out.join("rows.parquet")).unwrap();
        let reader = ParquetRecordBatchReaderBuilder::try_new(file).unwrap();
        assert_eq!(reader.schema().fields(), batch.schema().fields());
        let rows: Vec<usize> = (0..60).filter(|n| (clusters[n].first() == Some(n)) == wanted).collect();
        let mut next = 0;
        for found in reader.build().unwrap() {
            let found = found.unwrap();
            for row in 0..found.num_rows() {
                assert_eq!(found.slice(row, 1), batch.slice(rows[next], 1), "{what}");
                next += 1;
            }
        }
        assert_eq!(next, rows.len(), "{what}");
    }
    let out = dataset.path("annotated");
    run_well(&["export", store.to_str().unwrap(), "--out", out.to_str().unwrap(), "--what", "annotated"]);
    let reader =
        ParquetRecordBatchReaderBuilder::try_new(std::fs::File::open(out.join("rows.parquet")).unwrap()).unwrap();
    let names: Vec<String> = reader.schema().fields().iter().map(|field| field.name().clone()).collect();
    assert_eq!(names, ["id", "text", "date", "more", "nigh_cluster", "nigh_size", "nigh_rank", "nigh_stays"]);
    assert_eq!(reader.build().unwrap().map(|batch| batch.unwrap().num_rows()).sum::<usize>(), 60);
}

#[test]
fn an_export_goes_on_where_it_was_stopped_and_gives_the_same_bytes() {
    let dataset = LineShards::new();
    let (store, out) = (dataset.path("store"), dataset.path("out"));
    let whole = dataset.export("whole", &["--workers", "1"]);
    let files = ["a.jsonl", "b.jsonl.gz", "deep/c.jsonl.zst", ".nigh-export/list.jsonl"];
    let bytes = |folder: &Path| files.map(|name| std::fs::read(folder.join(name)).unwrap());
    dataset.export("out", &["--workers", "4"]);
    assert!(bytes(&out) == bytes(&dataset.path("whole")));
    // As a kill leaves it: one file whole, one begun, the list cut.
    std::fs::remove_file(out.join("deep/c.jsonl.zst")).unwrap();
    std::fs::remove_file(out.join("b.jsonl.gz")).unwrap();
    std::fs::create_dir(out.join("_nigh-export-work")).unwrap();
    std::fs::write(out.join("_nigh-export-work/00001"), "half").unwrap();
    std::fs::write(out.join("_nigh-export-work/lock"), "nigh export\nprocess 1\n").unwrap();
    let list = std::fs::read_to_string(out.join(".nigh-export/list.jsonl")).unwrap();
    let lines: Vec<&str> = list.lines().filter(|line| line.contains("\"keep\"") || line.contains("a.jsonl")).collect();
    std::fs::write(out.join(".nigh-export/list.jsonl"), format!("{}\n{{\"file\":\"b.j", lines.join("\n"))).unwrap();
    let untouched = std::fs::metadata(out.join("a.jsonl")).unwrap().modified().unwrap();
    assert_eq!(dataset.export("out", &[]), whole);
    assert!(bytes(&out) == bytes(&dataset.path("whole")));
    assert_eq!(std::fs::metadata(out.join("a.jsonl")).unwrap().modified().unwrap(), untouched);
    assert!(!out.join("_nigh-export-work").exists());
    // Another export, and other files, are not written over.
    let arguments = ["export", store.to_str().unwrap(), "--out", out.to_str().unwrap(), "--keep", "longest"];
    let other = run(&arguments);
    assert!(other.code == Some(2) && other.stderr.contains("has files of another export"), "{}", other.stderr);
    let shards = dataset.path("shards");
    let other = run(&["export", store.to_str().unwrap(), "--out", shards.to_str().unwrap()]);
    assert!(other.code == Some(2) && other.stderr.contains("is not empty"), "{}", other.stderr);
}

#[test]
fn an_input_that_changed_is_named_and_its_file_is_not_written() {
    let dataset = LineShards::new();
    let (store, shard) = (dataset.path("store"), dataset.path("shards/a.jsonl"));
    let text = std::fs::read_to_string(&shard).unwrap();
    let content = "a.jsonl has changed since the week was made";
    let stamp = "a.jsonl has changed since week 2024-01-08 was made";
    for (number, changed) in [
        text.replacen("own3 ", "own9 ", 1),
        text.replacen("{\"date\"", "\n{\"date\"", 1).replacen("no json\n\n", "no json\n", 1),
        text[..text.len() / 2].to_owned(),
        text.replacen("own3 ", "own10 ", 1),
    ]
    .iter()
    .enumerate()
    {
        assert_ne!(*changed, text);
        std::fs::write(&shard, changed).unwrap();
        for (flags, wanted) in [(&[][..], stamp), (&["--touched"], content)] {
            let out = dataset.path(&format!("out-{number}-{}", flags.len()));
            let arguments = ["export", store.to_str().unwrap(), "--out", out.to_str().unwrap()];
            let ran = ran(&mut nigh(&[&arguments[..], flags].concat()));
            assert_eq!(ran.code, Some(1), "{}", ran.stderr);
            assert!(ran.stderr.contains(wanted), "{}", ran.stderr);
            assert!(!out.join("a.jsonl").exists());
        }
    }
    std::fs::remove_file(&shard).unwrap();
    let out = dataset.path("out");
    let ran = run(&["export", store.to_str().unwrap(), "--out", out.to_str().unwrap()]);
    assert!(ran.code == Some(1) && ran.stderr.contains("a.jsonl, not among the inputs now"), "{}", ran.stderr);
}

#[test]
fn records_of_csv_are_copied_as_they_are() {
    let dataset = LineShards::new();
    let (store, input) = (dataset.path("store"), dataset.path("table.csv"));
    // Fields with line breaks, quotes and line ends of both kinds; one record has too few fields.
    let line = |n: usize| {
        let end = if n.is_multiple_of(3) { "\r\n" } else { "\n" };
        format!("{n},2024-01-01,\"a \"\"quoted\"\"\nnote\",\"{}\"{end}", record(n)["text"].as_str().unwrap())
    };
    let lines: Vec<String> = (0..60).map(line).collect();
    let names = "\u{feff}id,date,note,text\n";
    std::fs::write(&input, format!("{names}{}short\n{}", lines[..30].concat(), lines[30..].concat())).unwrap();
    dataset.cluster(&input);
    let clusters = dataset.clusters();
    let export = |what: &str| {
        let out = dataset.path(what);
        run_well(&["export", store.to_str().unwrap(), "--out", out.to_str().unwrap(), "--what", what]);
        std::fs::read_to_string(out.join("table.csv")).unwrap()
    };
    for (what, wanted) in [("kept", true), ("removed", false)] {
        let of_what = (0..60).filter(|n| (clusters[n].first() == Some(n)) == wanted);
        let text = names.to_owned() + &of_what.map(|n| lines[n].clone()).collect::<String>();
        assert_eq!(export(what), text, "{what}");
    }
    let annotated = export("annotated");
    assert!(
        annotated.starts_with("\u{feff}id,date,note,text,nigh_cluster,nigh_size,nigh_rank,nigh_stays\n"),
        "{annotated}"
    );
    let docs = dataset.docs();
    for n in 0..60 {
        let cluster = &clusters[&n];
        let root = cluster.iter().map(|n| docs[n]).min().unwrap();
        let rank = 1 + cluster.iter().position(|other| *other == n).unwrap();
        let end = lines[n].find("\"\r\n").map_or("\n", |_| "\r\n");
        let body = lines[n].trim_end_matches(['\r', '\n']);
        let wanted = format!("{body},{root},{},{rank},{}{end}", cluster.len(), rank == 1);
        assert!(annotated.contains(&wanted), "{wanted}");
    }
}

/// Crawl files of one page each, in `form`: as stored bytes of records.
fn archive(form: &str) -> (Vec<Vec<u8>>, Vec<u8>) {
    let block = |n: usize| {
        let body = record(n % 4)["text"].as_str().unwrap().to_owned() + if n == 7 { " more" } else { "" };
        format!("HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n\r\n<p>{body}")
    };
    // Of the same bytes, in hexadecimal and in base32 of upper and lower case; of page 6, as if it
    // were stored in another way.
    let digest = |n: usize| match n {
        0..4 => format!("sha1:{:040x}", n + 1),
        6 => format!("sha1:{:040x}", 99),
        4 => format!("SHA1:{:A>31}B", ""),
        _ => format!("sha1:{}", format!("{:A>31}{}", "", ["a", "b", "c", "d", "e"][n % 4 + 1]).to_lowercase()),
    };
    let head = |n: usize, kind: &str, length: usize| {
        format!(
            "WARC/1.1\r\nWARC-Type: {kind}\r\nWARC-Record-ID: <urn:x:{n}-{kind}>\r\nWARC-Date: 2024-01-0{}T00:00:00Z\r\nWARC-Target-URI: \
             http://h.example/{n}\r\nWARC-Payload-Digest: {}\r\nContent-Type: application/http\r\nContent-Length: {length}\r\n\r\n",
            n + 1,
            digest(n)
        )
    };
    let mut records = Vec::new();
    for n in 0..8 {
        let request = "GET / HTTP/1.1\r\n\r\n";
        records.push(format!("{}{request}\r\n\r\n", head(n, "request", request.len())));
        records.push(format!("{}{}\r\n\r\n", head(n, "response", block(n).len()), block(n)));
    }
    let gzip = |bytes: &[u8]| {
        let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::default());
        std::io::Write::write_all(&mut gzip, bytes).unwrap();
        gzip.finish().unwrap()
    };
    let records: Vec<Vec<u8>> = records.into_iter().map(String::into_bytes).collect();
    match form {
        "plain.warc" => (records.clone(), records.concat()),
        "members.warc.gz" => {
            let records: Vec<Vec<u8>> = records.iter().map(|record| gzip(record)).collect();
            (records.clone(), records.concat())
        }
        "one.warc.gz" => (records.clone(), gzip(&records.concat())),
        _ => {
            let records: Vec<Vec<u8>> = records.iter().map(|record| zstd::bulk::compress(record, 1).unwrap()).collect();
            (records.clone(), records.concat())
        }
    }
}

#[test]
fn records_of_archives_are_copied_as_they_are_stored() {
    for form in ["plain.warc", "members.warc.gz", "one.warc.gz", "frames.warc.zst"] {
        let folder = tempfile::tempdir().unwrap();
        let (records, bytes) = archive(form);
        let (input, store) = (folder.path().join(form), folder.path().join("store"));
        std::fs::write(&input, bytes).unwrap();
        let arguments = ["run", "-q", "--week", DATE, "--store", store.to_str().unwrap(), "--input"];
        run_well(&[&arguments[..], &[input.to_str().unwrap()]].concat());
        let export = |name: &str, flags: &[&str]| {
            let out = folder.path().join(name);
            let arguments = ["export", store.to_str().unwrap(), "--out", out.to_str().unwrap()];
            let ran = run_well(&[&arguments[..], flags].concat());
            (std::fs::read(out.join(form)).unwrap(), ran.stdout)
        };
        // Pages 0 to 3 and their copies 4 to 6, and 7, which is near 3.
        let wanted = |is_wanted: &dyn Fn(usize, bool) -> bool| {
            let records = records.iter().enumerate().filter(|(number, _)| is_wanted(number / 2, number % 2 == 1));
            records.map(|(_, record)| record.clone()).collect::<Vec<_>>()
        };
        let decoded = |bytes: &[u8]| match form {
            "one.warc.gz" => {
                let mut text = Vec::new();
                std::io::Read::read_to_end(&mut flate2::read::MultiGzDecoder::new(bytes), &mut text).unwrap();
                text
            }
            _ => bytes.to_vec(),
        };
        let (kept, stdout) = export("kept", &[]);
        assert!(decoded(&kept) == wanted(&|page, _| page < 4).concat(), "{form}");
        assert!(
            stdout.contains("wrote 4 of 8 records") && stdout.contains("and 4 records that are no documents"),
            "{stdout}"
        );
        assert!(stdout.contains("left out: 4 requests and metadata"), "{stdout}");
        let (removed, _) = export("removed", &["--what", "removed", "--level", "exact"]);
        assert!(decoded(&removed) == wanted(&|page, _| (4..7).contains(&page)).concat(), "{form}");

        // A replayer finds what a page was in the record that stays.
        let (with_revisits, stdout) = export("revisits", &["--level", "exact", "--revisits"]);
        assert!(
            stdout.contains("and 2 revisits of") && stdout.contains("and 1 records that go, kept whole"),
            "{stdout}"
        );
        let text = match form {
            "plain.warc" => with_revisits,
            "frames.warc.zst" => zstd::stream::decode_all(&with_revisits[..]).unwrap(),
            _ => {
                let mut text = Vec::new();
                std::io::Read::read_to_end(&mut flate2::read::MultiGzDecoder::new(&with_revisits[..]), &mut text)
                    .unwrap();
                text
            }
        };
        let text = String::from_utf8(text).unwrap();
        assert_eq!(text.matches("WARC-Type: revisit\r\n").count(), 2, "{text}");
        assert_eq!(text.matches("WARC-Type: response\r\n").count(), 6, "{text}");
        let id = text.split("<urn:uuid:").nth(2).and_then(|rest| rest.split('>').next()).unwrap();
        let revisit = format!(
            "WARC/1.1\r\nWARC-Type: revisit\r\nWARC-Profile: \
             http://netpreserve.org/warc/1.1/revisit/identical-payload-digest\r\nWARC-Record-ID: <urn:uuid:{id}>\r\nWARC-Date: \
             2024-01-06T00:00:00Z\r\nWARC-Target-URI: http://h.example/5\r\nContent-Type: application/http\r\nWARC-Payload-Digest: \
             sha1:0000000000000000000000000000000000000002\r\nWARC-Refers-To: <urn:x:1-response>\r\nWARC-Refers-To-Target-URI: \
             http://h.example/1\r\nWARC-Refers-To-Date: 2024-01-02T00:00:00Z\r\nContent-Length: 44\r\n\r\nHTTP/1.1 200 \
             OK\r\nContent-Type: text/html\r\n\r\n\r\n\r\n"
        );
        assert!(text.contains(&revisit), "{text}");
        let again = export("again", &["--level", "exact", "--revisits", "--workers", "1", "--json"]);
        assert!(again.0 == std::fs::read(folder.path().join("revisits").join(form)).unwrap(), "the ids are the same");
        let counts: serde_json::Value = serde_json::from_str(&again.1).unwrap();
        assert_eq!([&counts["written"], &counts["revisits"], &counts["kept_whole"]], [5, 2, 1]);
        let refused = run(&["export", store.to_str().unwrap(), "--out", "x", "--revisits"]);
        assert!(refused.code == Some(2) && refused.stderr.contains("--level exact"), "{}", refused.stderr);
        let out = folder.path().join("annotated");
        let refused = run(&["export", store.to_str().unwrap(), "--out", out.to_str().unwrap(), "--what", "annotated"]);
        assert!(refused.code == Some(1) && refused.stderr.contains("--list"), "{}", refused.stderr);
    }
}

#[test]
fn records_that_share_a_member_are_not_taken_apart() {
    let folder = tempfile::tempdir().unwrap();
    let (_, one) = archive("one.warc.gz");
    let (input, store) = (folder.path().join("two.warc.gz"), folder.path().join("store"));
    let other = archive("members.warc.gz").0.swap_remove(0);
    std::fs::write(&input, [other, one].concat()).unwrap();
    run_well(&["run", "-q", "--week", DATE, "--store", store.to_str().unwrap(), "--input", input.to_str().unwrap()]);
    let out = folder.path().join("out");
    let refused = run(&["export", store.to_str().unwrap(), "--out", out.to_str().unwrap()]);
    assert!(
        refused.code == Some(1) && refused.stderr.contains("several records in one compressed member"),
        "{}",
        refused.stderr
    );
    assert!(!out.join("two.warc.gz").exists());
}

#[test]
fn files_that_are_documents_stay_or_go() {
    let folder = tempfile::tempdir().unwrap();
    let (texts, store) = (folder.path().join("texts"), folder.path().join("store"));
    std::fs::create_dir_all(texts.join("deep")).unwrap();
    for n in 0..40 {
        let name = if n % 2 == 0 { format!("{n:02}.txt") } else { format!("deep/{n:02}.txt") };
        std::fs::write(texts.join(name), record(n)["text"].as_str().unwrap()).unwrap();
    }
    let job = job(folder.path(), "[cluster.method]\nsimilarity = 0.8\n");
    let arguments = ["run", job.to_str().unwrap(), "-q", "--week", DATE, "--store", store.to_str().unwrap()];
    run_well(&[&arguments[..], &["--input", texts.to_str().unwrap()]].concat());
    let out = folder.path().join("out");
    run_well(&["export", store.to_str().unwrap(), "--out", out.to_str().unwrap()]);
    for n in 0..40 {
        let name = if n % 2 == 0 { format!("{n:02}.txt") } else { format!("deep/{n:02}.txt") };
        let file = std::fs::read_to_string(out.join(name)).ok();
        assert_eq!(file, (n < 20).then(|| record(n)["text"].as_str().unwrap().to_owned()), "{n}");
    }
    let list = folder.path().join("removed.txt");
    run_well(&["export", store.to_str().unwrap(), "--list", list.to_str().unwrap()]);
    let list = std::fs::read_to_string(list).unwrap();
    assert_eq!(list.lines().count(), 20);
    assert!(list.lines().all(|line| line.ends_with(".txt\t0")), "{list}");
}

#[test]
fn a_list_has_what_goes_without_reading_the_inputs() {
    let dataset = LineShards::new();
    let (store, clusters) = (dataset.path("store"), dataset.clusters());
    let removed: Vec<usize> = (0..120).filter(|n| clusters[n].first() != Some(n)).collect();
    assert!(removed.len() > 60);
    let list = |name: &str, flags: &[&str]| {
        let path = dataset.path(name);
        let ran = run_well(&[&["export", store.to_str().unwrap(), "--list", path.to_str().unwrap()], flags].concat());
        assert!(ran.stdout.contains("of 120 records"), "{}", ran.stdout);
        path
    };
    let text = std::fs::read_to_string(list("removed.txt", &[])).unwrap();
    assert_eq!(text, removed.iter().map(|n| format!("{n}\n")).collect::<String>());
    let kept = std::fs::read_to_string(list("kept.txt", &["--what", "kept"])).unwrap();
    assert_eq!(kept.lines().count(), 120 - removed.len());
    let file = std::fs::File::open(list("all.parquet", &["--what", "annotated"])).unwrap();
    let mut rows = 0;
    for batch in ParquetRecordBatchReaderBuilder::try_new(file).unwrap().build().unwrap() {
        let batch = batch.unwrap();
        let texts = |name: &str| batch[name].as_string::<i32>();
        let longs = |name: &str| batch[name].as_primitive::<Int64Type>();
        for row in 0..batch.num_rows() {
            let n: usize = texts("id").value(row).parse().unwrap();
            assert_eq!(n, rows);
            assert_eq!(texts("url").value(row), record(n)["url"]);
            assert!(texts("file").value(row).ends_with(["a.jsonl", "b.jsonl.gz", "deep/c.jsonl.zst"][n / 40]));
            assert_eq!(longs("size").value(row), clusters[&n].len() as i64);
            assert_eq!(batch["stays"].as_boolean().value(row), clusters[&n].first() == Some(&n));
            assert_eq!(longs("doc").value(row), dataset.docs()[&n]);
            rows += 1;
        }
    }
    assert_eq!(rows, 120);
    let both = run(&["export", store.to_str().unwrap(), "--list", "x", "--out", "y"]);
    assert_eq!(both.code, Some(2), "{}", both.stderr);
}

/// A store of records, by ids in the field `id`, each with a text of one of two families.
fn store_of_ids(folder: &Path, ids: &[(&str, bool)], flags: &[&str]) -> String {
    let text = |is_other: bool| (0..60).map(|n| format!("w{}", n + 1000 * u64::from(is_other))).collect::<Vec<_>>();
    let line = |(id, is_other): &(&str, bool)| {
        format!("{}\n", serde_json::json!({"id": id, "text": text(*is_other).join(" ")}))
    };
    let (input, store) = (folder.join("ids.jsonl"), folder.join("store"));
    std::fs::write(&input, ids.iter().map(line).collect::<String>()).unwrap();
    let [input, store] = [input, store].map(|path| path.to_str().unwrap().to_owned());
    let arguments = ["run", "--week", DATE, "--store", &store, "--id", "id", "--no-accuracy", "-q", "--input", &input];
    run_well(&[&arguments[..], flags].concat());
    store
}

#[test]
fn a_list_of_lines_never_stands_for_another_record() {
    for (odd, shown) in [("a\nb", "\"a\\nb\""), ("b\r", "\"b\\r\""), ("a\rb", "\"a\\rb\"")] {
        let folder = tempfile::tempdir().unwrap();
        let path = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
        let (lines, rows) = (path("l.txt"), path("l.parquet"));
        let store = store_of_ids(folder.path(), &[("0", false), (odd, false), ("z", false), ("b", true)], &[]);
        let refused = run(&["export", &store, "--list", &lines]);
        assert_eq!(refused.code, Some(1), "{}", refused.stderr);
        for wanted in [shown, "line break", "l.parquet"] {
            assert!(refused.stderr.contains(wanted), "{wanted}: {}", refused.stderr);
        }
        assert!(!Path::new(&lines).exists());
        // The form that it says is one that `nigh delete` reads.
        run_well(&["export", &store, "--list", &rows]);
        let deleted = run_well(&["delete", "--store", &store, "--ids", &rows]).stdout;
        assert!(deleted.contains("Deleted 2 pages") && !deleted.contains("Not found"), "{deleted}");
        let mut left: Vec<String> = texts(&week(Path::new(&store), DATE), "documents", "id").into_iter().collect();
        left.sort_unstable();
        assert_eq!(left, ["0", "b"]);
    }
}

#[test]
fn a_list_of_lines_has_no_ids_where_several_records_may_have_one() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    let (lines, rows) = (path("l.txt"), path("l.parquet"));
    let store = store_of_ids(folder.path(), &[("g1", false), ("g1", false), ("g2", true)], &["--same-id", "row"]);
    let refused = run(&["export", &store, "--list", &lines]);
    assert_eq!(refused.code, Some(1), "{}", refused.stderr);
    for wanted in ["\"g1\"", "known by file and place", "ids.jsonl", "l.parquet"] {
        assert!(refused.stderr.contains(wanted), "{wanted}: {}", refused.stderr);
    }
    assert!(!Path::new(&lines).exists());
    assert!(run_well(&["export", &store, "--list", &rows]).stdout.contains("listed 1 of 3 records"));
    let refused = run(&["delete", "--store", &store, "--ids", &rows]);
    assert!(refused.code == Some(2) && refused.stderr.contains("by file and place"), "{}", refused.stderr);
}

#[test]
fn an_export_since_a_date_after_the_last_week_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let store = store_of_ids(folder.path(), &[("0", false), ("1", false)], &[]);
    let out = folder.path().join("out");
    let refused = run(&["export", &store, "--out", out.to_str().unwrap(), "--since", "2024-01-09"]);
    assert!(refused.code == Some(2) && refused.stderr.contains("is 2024-01-08, and no batch"), "{}", refused.stderr);
    assert!(!out.exists());
}

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

/// The line of a text.
fn line_with(n: usize, text: &str) -> String {
    format!("{{\"id\":{n}, \"meta\" : {{\"text\":{}, \"x\":[1]}},\"after\":null}}", serde_json::json!(text))
}
