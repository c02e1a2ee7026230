//! Pieces of files against the whole.

use std::fs::File;
use std::ops::Range;
use std::path::Path;

use nigh_kernels::records::mix;

use super::cuts::{Cuts, FindStart};
use super::members::{Led, UpToNext, packed_start};
use super::piece::PIECE;
use super::{InputPiece, open_piece, pieces};
use crate::readers::item::{Item, Reader as _, Unread};
use crate::readers::opened::FromOffset;
use crate::readers::streams::MemberPacking;
use crate::readers::warc::{Dialect, WarcReader};
use crate::readers::{Format, Input, Location, list, open};
use crate::reading::Reading;

/// Checks that the pieces of a file, whatever their number, have the items of the whole.
/// Returns how many pieces have items, at most.
fn assert_is_cut_well(path: &Path) -> u64 {
    let reading = Reading { max_page_bytes: crate::units::Bytes(1 << 16), ..Reading::default() };
    let mut most = 0;
    for input in list(&[path.display().to_string()], &reading).unwrap() {
        if !matches!(input.place, Location::File(_)) {
            continue;
        }
        let mut reader = open(&input, &reading).unwrap();
        let whole: Vec<Item> = std::iter::from_fn(|| reader.next().unwrap()).collect();
        let of_whole = reader.unread();
        for of in [1, 2, 3, 7, 50] {
            let mut all = Vec::new();
            let (mut bytes, mut unread, mut with_items) = (0, Unread::default(), 0);
            for number in 0..of {
                let mut reader = open_piece(&input, &reading, InputPiece { number, of }).unwrap();
                let before = all.len();
                let mut position = 0;
                while let Some(item) = reader.next().unwrap() {
                    all.push(item);
                    assert!(reader.position() >= position, "the position goes on");
                    position = reader.position();
                }
                with_items += u64::from(all.len() > before);
                assert!(reader.position() >= position);
                bytes += reader.position();
                unread.bytes += reader.unread().bytes;
                unread.ends_early |= reader.unread().ends_early;
            }
            assert_eq!(unread, of_whole, "{} in {of} pieces", input.name);
            assert!(all == whole, "{} in {of} pieces: {} of {} items", input.name, all.len(), whole.len());
            assert!(whole.is_empty() || bytes == reader.position(), "{}: {bytes}", input.name);
            most = most.max(with_items);
        }
    }
    most
}

#[test]
fn the_pieces_of_lines_have_all_lines() {
    let folder = tempfile::tempdir().unwrap();
    let mut cut = 0;
    for seed in 0..60 {
        let path = folder.path().join("lines.jsonl");
        let mut text = Vec::new();
        for line in 0..mix(seed) % 40 {
            let random = mix(seed << 8 | line);
            let words = "word ".repeat(random as usize >> 8 & 63);
            text.extend(match random % 9 {
                0 => b"\r".to_vec(),
                1 => b"no object".to_vec(),
                2 => vec![b'x'; 1 << 17],
                3 => vec![0x1f, 0x8b, 8, 0, 0xff],
                4 => vec![0x28, 0xb5, 0x2f, 0xfd, 0],
                _ => format!("{{\"url\":\"http://a.example/{line}\",\"text\":\"{words}\"}}").into_bytes(),
            });
            text.push(b'\n');
        }
        text.truncate(text.len().saturating_sub(seed as usize % 2));
        std::fs::write(&path, &text).unwrap();
        cut += u32::from(assert_is_cut_well(&path) > 1);
    }
    assert!(cut > 40, "{cut} of 60 files were cut");
}

#[test]
fn the_pieces_of_row_groups_have_all_rows() {
    use arrow_array::{RecordBatch, StringArray};
    use parquet::arrow::ArrowWriter;
    use parquet::file::properties::WriterProperties;

    let folder = tempfile::tempdir().unwrap();
    for (rows, group) in [(0, 3), (1, 3), (100, 7), (100, 100), (64, 1)] {
        let urls: Vec<String> = (0..rows).map(|row| format!("http://a.example/{row}")).collect();
        let text: std::sync::Arc<dyn arrow_array::Array> = std::sync::Arc::new(StringArray::from(urls));
        let batch = RecordBatch::try_from_iter([("url", text.clone()), ("text", text)]).unwrap();
        let path = folder.path().join(format!("{rows}-{group}.parquet"));
        let properties = WriterProperties::builder().set_max_row_group_row_count(Some(group)).build();
        let mut writer = ArrowWriter::try_new(File::create(&path).unwrap(), batch.schema(), Some(properties)).unwrap();
        writer.write(&batch).unwrap();
        writer.close().unwrap();
        assert_eq!(assert_is_cut_well(&path), (rows as u64).div_ceil(group as u64).min(50));
    }
    // Damaged files, and what is no Parquet file.
    for entry in std::fs::read_dir("../../tests/data/dirty").unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_some_and(|ending| ending == "parquet" || ending == "jsonl") {
            assert_is_cut_well(&path);
        }
    }
}

#[test]
fn the_pieces_of_members_have_all_records() {
    for folder in ["../../tests/data/week-2024-01-08", "../../tests/data/dirty"] {
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.extension().is_some_and(|ending| ending == "gz") {
                assert_is_cut_well(&path);
            }
        }
    }
}

/// The members of a file; where it is damaged, some bytes that are none.
fn members(path: &Path) -> Vec<Vec<u8>> {
    use crate::readers::streams::{MemberStep, Members, Stored};
    let stored = Stored::new(Box::new(File::open(path).unwrap()));
    let mut reader = Members::new(stored, Dialect::Warc.acceptable()).unwrap();
    let (mut members, mut bytes) = (Vec::new(), Vec::new());
    loop {
        let step = reader.step(&mut bytes).unwrap();
        if step == MemberStep::Bytes {
            continue;
        }
        members.push(std::mem::take(&mut bytes));
        match step {
            MemberStep::Damage { .. } => members.push(b"no record".to_vec()),
            MemberStep::End => return members,
            MemberStep::Start(_) | MemberStep::Bytes => {}
        }
    }
}

#[test]
fn the_pieces_of_plain_files_and_of_frames_have_all_records() {
    let folder = tempfile::tempdir().unwrap();
    let (plain, zst) = (folder.path().join("a.warc"), folder.path().join("a.warc.zst"));
    let dictionary = b"WARC/1.0\r\nWARC-Type: response\r\nContent-Type: application/http; msgtype=response\r\n";
    let mut with_dictionary = zstd::bulk::Compressor::with_dictionary(3, dictionary).unwrap();
    let skippable = |magic: u32, content: &[u8]| {
        [&magic.to_le_bytes()[..], &(content.len() as u32).to_le_bytes(), content].concat()
    };
    let mut most = [0; 3];
    for of in ["../../tests/data/week-2024-01-08", "../../tests/data/dirty"] {
        for entry in std::fs::read_dir(of).unwrap() {
            let path = entry.unwrap().path();
            if !path.to_string_lossy().contains(".warc") {
                continue;
            }
            let members = members(&path);
            std::fs::write(&plain, members.concat()).unwrap();
            most[0] = assert_is_cut_well(&plain).max(most[0]);
            let frames = members.iter().map(|member| match &member[..] {
                b"no record" => member.clone(),
                _ => [zstd::bulk::compress(member, 3).unwrap(), skippable(0x184D_2A50, b"skipped")].concat(),
            });
            std::fs::write(&zst, frames.collect::<Vec<_>>().concat()).unwrap();
            most[1] = assert_is_cut_well(&zst).max(most[1]);
            let frames = members.iter().map(|member| with_dictionary.compress(member).unwrap());
            let frames: Vec<u8> = frames.collect::<Vec<_>>().concat();
            for stored in [dictionary.to_vec(), zstd::bulk::compress(dictionary, 3).unwrap()] {
                std::fs::write(&zst, [skippable(0x184D_2A5D, &stored), frames.clone()].concat()).unwrap();
                most[2] = assert_is_cut_well(&zst).max(most[2]);
            }
        }
    }
    assert!(most.iter().all(|pieces| *pieces >= 3), "{most:?} pieces have records");
}

#[test]
fn a_record_inside_a_page_of_a_plain_file_is_an_error_or_no_beginning() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.warc");
    let inner: Vec<u8> = (0..40).flat_map(|n| record(n, 3000)).collect();
    let head = format!(
        "WARC/1.1\r\nWARC-Type: resource\r\nWARC-Target-URI: http://a.example/\r\nContent-Type: text/plain\r\n\
         Content-Length: {}\r\n\r\n",
        inner.len()
    );
    let outer = [head.as_bytes(), &inner, b"\r\n\r\n"].concat();
    std::fs::write(&path, [outer.clone(), record(50, 3000), outer].concat()).unwrap();
    let reading = Reading::default();
    let input = list(&[path.display().to_string()], &reading).unwrap().remove(0);
    let mut reader = open_piece(&input, &reading, InputPiece { number: 0, of: 4 }).unwrap();
    let failed = loop {
        match reader.next() {
            Ok(Some(_)) => {}
            Ok(None) => break None,
            Err(error) => break Some(error.to_string()),
        }
    };
    assert!(failed.is_some_and(|error| error.contains("split-files = false")));
}

#[test]
fn plain_files_full_of_versions_are_cut_well() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.warc");
    for line in [
        "WARC/1.0\n",
        "WARC/1.0\nContent-Length: 9999999\n\n",
        "\nWARC/1.0\r\nWARC-Type: response\r\nContent-Length: 1\r\n\r\n",
    ] {
        let lines = line.repeat((1 << 20) / line.len());
        std::fs::write(&path, [record(1, 100), lines.into_bytes(), record(2, 100)].concat()).unwrap();
        assert_is_cut_well(&path);
    }
}

fn noise(seed: u64, bytes: usize) -> Vec<u8> {
    (0..bytes as u64).map(|place| b'a' + (mix(seed << 32 | place) % 26) as u8).collect()
}

fn record(seed: u64, bytes: usize) -> Vec<u8> {
    let body = noise(seed, bytes);
    let http = b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n\r\n";
    let head = format!(
        "WARC/1.1\r\nWARC-Type: response\r\nWARC-Target-URI: http://a.example/{seed}\r\nContent-Type: application/http\r\n\
         Content-Length: {}\r\n\r\n",
        http.len() + body.len()
    );
    [head.as_bytes(), http, &body, b"\r\n\r\n"].concat()
}

fn gzip(bytes: &[u8]) -> Vec<u8> {
    use std::io::Write as _;
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

#[test]
fn members_of_many_records_keep_all_of_them() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.warc.gz");
    let many = |from: u64, count: u64| gzip(&(from..from + count).flat_map(|n| record(n, 3000)).collect::<Vec<u8>>());
    for sizes in [&[300, 300][..], &[1, 200, 1, 1, 300], &[500], &[300, 1, 1, 1], &[30, 300, 1], &[2900, 30]] {
        let mut from = 0;
        let mut file = Vec::new();
        for count in sizes {
            file.extend(many(from, *count));
            from += count;
        }
        std::fs::write(&path, &file).unwrap();
        // The last members are short, but nothing follows them: that proves them, too. A file that
        // begins with a large member of many records is one piece, for its places are in decoded
        // bytes.
        let is_cut = sizes.len() > 1 && sizes[0] < 2900;
        assert_eq!(assert_is_cut_well(&path) > 1, is_cut, "{sizes:?}");
        // Bytes that are no record after the last one, and a file that ends early.
        std::fs::write(&path, [&file[..], b"no record"].concat()).unwrap();
        assert_is_cut_well(&path);
        std::fs::write(&path, &file[..file.len() - 100]).unwrap();
        assert_is_cut_well(&path);
    }
}

#[test]
fn what_cannot_be_read_of_a_large_damaged_member_is_the_same() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.warc.gz");
    let stored = |bytes: &[u8]| {
        use std::io::Write as _;
        let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::none());
        encoder.write_all(bytes).unwrap();
        encoder.finish().unwrap()
    };
    for (seed, shift) in [(1, 100 << 10), (2, 200 << 10), (3, 1 << 20)] {
        let small: Vec<u8> = (0..100).flat_map(|n| gzip(&record(n, shift / 100))).collect();
        let mut large = stored(&record(seed, 3 << 20));
        let place = large.len() - 1000 * seed as usize;
        large[place] ^= 1;
        let file = [&small[..], &gzip(&record(200, 200 << 10)), &large, &small, &large, &small].concat();
        std::fs::write(&path, file).unwrap();
        assert!(assert_is_cut_well(&path) > 1);
    }
}

#[test]
fn files_that_are_full_of_false_beginnings_are_read_in_time() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.warc.gz");
    let good = gzip(&record(1, 3000));
    let unfinished = &good[..40];
    for false_beginning in [&[0x1f, 0x8b, 8, 0][..], &[0x1f, 0x8b, 8, 0xff], unfinished] {
        // Not one more good member: a reader of the whole passes over some places of so many,
        // and might miss it, which is an error.
        let file = [&good[..], &false_beginning.repeat((4 << 20) / false_beginning.len())].concat();
        std::fs::write(&path, &file).unwrap();
        assert_is_cut_well(&path);
    }
    let path = folder.path().join("a.jsonl");
    std::fs::write(&path, noise(1, 4 << 20)).unwrap();
    assert_is_cut_well(&path);
}

#[test]
fn the_pieces_know_the_requests_that_the_whole_knows() {
    let folder = tempfile::tempdir().unwrap();
    let (mut cut, mut posted) = (0, 0);
    for seed in 0..40_u64 {
        let mut file = Vec::new();
        for number in 0..60_u64 {
            let random = mix(seed << 8 | number);
            let url = format!("http://a.example/{}", random % 5);
            let method = ["GET", "POST"][random as usize >> 8 & 1];
            let body = String::from_utf8_lossy(&noise(random, random as usize >> 16 & 4095)).replace(['\0', 'W'], "x");
            let body = format!("HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n\r\n<p>{body}");
            let named =
                if random >> 32 & 1 == 0 { String::new() } else { format!("WARC-Concurrent-To: <urn:{number}>\r\n") };
            let record = |kind: &str, fields: &str, block: &str| {
                let length = block.len();
                format!(
                    "WARC/1.0\r\nWARC-Type: {kind}\r\nWARC-Target-URI: {url}\r\n{fields}Content-Length: {length}\r\n\r\n{block}\r\n\r\n"
                )
            };
            let request = record("request", &named, &format!("{method} / HTTP/1.1\r\n\r\n"));
            let response = record("response", &format!("WARC-Record-ID: <urn:{number}>\r\n"), &body);
            let pair = if random >> 40 & 1 == 0 { [request, response] } else { [response, request] };
            for record in pair {
                file.extend(if seed % 2 == 0 { gzip(record.as_bytes()) } else { record.into_bytes() });
            }
        }
        let path = folder.path().join(["a.warc.gz", "a.warc"][seed as usize % 2]);
        std::fs::write(&path, &file).unwrap();
        cut += u32::from(assert_is_cut_well(&path) > 5);
        let input = list(&[path.display().to_string()], &Reading::default()).unwrap().remove(0);
        let mut reader = open(&input, &Reading::default()).unwrap();
        let pages = std::iter::from_fn(|| reader.next().unwrap());
        posted += pages.filter(|item| matches!(item, Item::Page(page) if !page.is_of_get)).count();
    }
    assert!(cut == 40 && (800..1600).contains(&posted), "{cut} {posted}");
}

#[test]
fn a_beginning_inside_a_record_is_an_error() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.warc.gz");
    std::fs::write(&path, (0..40).flat_map(|n| gzip(&record(n, 3000))).collect::<Vec<u8>>()).unwrap();
    let reading = Reading::default();
    let input = list(&[path.display().to_string()], &reading).unwrap().remove(0);
    let read = |search: FindStart| -> anyhow::Result<usize> {
        let file = File::open(&path).unwrap();
        let piece = InputPiece { number: 0, of: 2 };
        let cuts = Cuts { file: file.try_clone()?, packing: MemberPacking::Gzip, bytes: input.bytes, piece };
        let inner = WarcReader::new(Box::new(file), Dialect::Warc, input.bytes, &input.name, &reading)?;
        let led = Led::at(FromOffset::new(Box::new(inner), 0));
        let mut reader = UpToNext::new(cuts, search, led, 0, false);
        let mut items = 0;
        while reader.next()?.is_some() {
            items += 1;
        }
        Ok(items)
    };
    let found = read(|cuts, range| packed_start(cuts, range, Dialect::Warc));
    assert!((15..25).contains(&found.unwrap()));
    for search in
        [|_: &Cuts, range: Range<u64>| Ok(Some(range.start + 1)), |_: &Cuts, range: Range<u64>| Ok(Some(range.end - 1))]
    {
        let error = read(search).unwrap_err().to_string();
        assert!(error.contains("split-files = false"), "{error}");
    }
}

#[test]
fn a_file_is_read_as_far_as_it_was_and_one_that_became_shorter_is_an_error() {
    let folder = tempfile::tempdir().unwrap();
    let reading = Reading::default();
    for (name, most) in [("a.jsonl", Some(101)), ("a.parquet", None)] {
        let path = folder.path().join(name);
        std::fs::write(&path, "{}\n".repeat(100)).unwrap();
        let input = list(&[path.display().to_string()], &reading).unwrap().remove(0);
        let open = |number| open_piece(&input, &reading, InputPiece { number, of: 2 });
        for lines in [99, 101] {
            std::fs::write(&path, "{}\n".repeat(lines)).unwrap();
            if most == Some(lines) {
                let items = |number| {
                    let mut reader = open(number).unwrap();
                    std::iter::from_fn(move || reader.next().unwrap()).count()
                };
                assert_eq!(items(0) + items(1), 100);
                continue;
            }
            let error = open(1).err().unwrap().to_string();
            assert!(error.contains(&format!("has {} bytes, and had 300", 3 * lines)), "{error}");
        }
    }
}

#[test]
fn only_large_files_that_can_be_cut_are() {
    let count = |name: &str, format, bytes| {
        let place = Location::File(name.into());
        let (name, stamp) = (name.to_owned(), String::new());
        pieces(&Input { name, bytes, format, place, page_url: None, stamp, reading: None }).count()
    };
    assert_eq!(count("a.jsonl", Format::Jsonl, 2 * PIECE - 1), 1);
    assert_eq!(count("a.jsonl", Format::Jsonl, 2 * PIECE), 2);
    assert_eq!(count("a.jsonl.GZ", Format::Jsonl, 20 * PIECE), 1);
    assert_eq!(count("a.parquet", Format::Parquet, 20 * PIECE), 20);
    assert_eq!(count("a.warc.gz", Format::Warc, 20 * PIECE), 20);
    assert_eq!(count("a.warc", Format::Warc, 20 * PIECE), 20);
    assert_eq!(count("a.warc.zst", Format::Warc, 20 * PIECE), 20);
    assert_eq!(count("a.warc.xz", Format::Warc, 20 * PIECE), 1);
    assert_eq!(count("a.arc", Format::Arc, 20 * PIECE), 1);
    assert_eq!(count("a.jsonl", Format::Jsonl, 0), 1);
}
