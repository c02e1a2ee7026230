//! Records of archives.

use super::line_shards::{DATE, record};
use crate::program::{run, run_well};

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
fn records_that_share_members_are_all_kept_and_in_the_order_of_the_file() {
    let folder = tempfile::tempdir().unwrap();
    let (records, _) = archive("plain.warc");
    // Four texts of two pages each, and ten copies of the first page on hosts of their own.
    let copies = (0..10).flat_map(|n| {
        let text = String::from_utf8(records[1].clone()).unwrap();
        let text =
            text.replace("h.example/0", &format!("copy{n}.example/0")).replace("urn:x:0-", &format!("urn:x:copy{n}-"));
        [text.into_bytes()]
    });
    let all: Vec<Vec<u8>> = records.iter().cloned().chain(copies).collect();
    let gzip = |records: &[Vec<u8>]| {
        let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::default());
        std::io::Write::write_all(&mut gzip, &records.concat()).unwrap();
        gzip.finish().unwrap()
    };
    let layouts: [Vec<usize>; 4] =
        [vec![1; all.len()], vec![1, 1, all.len() - 2], vec![5, 5, all.len() - 10], vec![3, 1, 1, all.len() - 5]];
    let exports = layouts.map(|sizes| {
        let mut rest = &all[..];
        let members = sizes.iter().map(|size| {
            let (part, others) = rest.split_at(*size);
            rest = others;
            gzip(part)
        });
        let (input, store, out) =
            (folder.path().join("a.warc.gz"), folder.path().join("store"), folder.path().join("out"));
        std::fs::write(&input, members.collect::<Vec<_>>().concat()).unwrap();
        run_well(&[
            "run",
            "-q",
            "--week",
            DATE,
            "--store",
            store.to_str().unwrap(),
            "--input",
            input.to_str().unwrap(),
        ]);
        let export = |more: &[&str]| {
            run_well(
                &[&["export", store.to_str().unwrap(), "--out", out.to_str().unwrap(), "--format", "jsonl"], more]
                    .concat(),
            );
            let lines = std::fs::read_to_string(out.join("a.jsonl")).unwrap();
            std::fs::remove_dir_all(&out).unwrap();
            let place = |line: &str| {
                let row: serde_json::Value = serde_json::from_str(line).unwrap();
                row["url"].as_str().unwrap().to_owned()
            };
            lines.lines().map(place).collect::<Vec<_>>()
        };
        let rows =
            [&[][..], &["--what", "removed"], &["--most", "99"], &["--keep", "per-host"], &["--keep", "longest"]]
                .map(export);
        std::fs::remove_dir_all(&store).unwrap();
        rows
    });
    assert_eq!(exports[0].clone().map(|rows| rows.len()), [4, 14, 18, 14, 4]);
    for (layout, rows) in exports.iter().enumerate() {
        assert_eq!(rows, &exports[0], "{layout}");
    }
}
