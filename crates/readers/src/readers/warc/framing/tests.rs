//! Files of good and bad records.

use std::io::{Cursor, Write};

use flate2::Compression;
use flate2::write::GzEncoder;
use proptest::prelude::{Strategy, any, prop, proptest};

use super::{FramedRecord, Records};
use crate::readers::item::Unread;
use crate::readers::streams::{Members, Stored};
use crate::readers::warc::decoded::Dialect;

const CAP: u64 = 1000;

/// A record whose Content-Length is `length`.
fn record(name: &str, length: usize, block: &str) -> String {
    format!(
        "WARC/1.1\r\nWARC-Type: response\r\nWARC-Target-URI: {name}\r\nContent-Length: {length}\r\n\r\n{block}\r\n\r\n"
    )
}

fn good(name: &str) -> String {
    record(name, 7, "a block")
}

fn gzip(bytes: &str) -> Vec<u8> {
    let mut gzip = GzEncoder::new(Vec::new(), Compression::default());
    gzip.write_all(bytes.as_bytes()).unwrap();
    gzip.finish().unwrap()
}

#[test]
fn a_file_that_ends_early_is_told_apart_from_a_bad_record() {
    let unread = |file: &[u8]| {
        let stored = Stored::new(Box::new(Cursor::new(file.to_vec())));
        let members = Members::new(stored, Dialect::Warc.acceptable()).unwrap();
        let mut records = Records::new(members, Dialect::Warc, file.len() as u64, CAP, false);
        while records.advance().unwrap().is_some() {}
        (records.unread().bytes, records.unread().ends_early)
    };
    let (a, b) = (good("a"), good("b"));
    let both = a.clone() + &b;
    assert_eq!(unread(both.as_bytes()), (0, false));
    for cut in [6, 20, b.len() - 8] {
        assert_eq!(unread(&both.as_bytes()[..both.len() - cut]), ((b.len() - cut) as u64, true), "{cut}");
    }
    let wrong = record("x", 3, "a block");
    assert_eq!(unread((a.clone() + &wrong + &b).as_bytes()), (wrong.len() as u64, false));
    let (a, b) = (gzip(&a), gzip(&b));
    assert_eq!(unread(&[&a[..], &b].concat()), (0, false));
    assert_eq!(unread(&[&a[..], &b[..b.len() - 9]].concat()), (b.len() as u64 - 9, true));
    assert_eq!(unread(&gzip(&both[..both.len() - 6])), (0, true));
}

/// Reads a file to lines of offset, URL, and block length or reason.
fn records(file: &[u8]) -> Records {
    let members = Members::new(Stored::new(Box::new(Cursor::new(file.to_vec()))), Dialect::Warc.acceptable()).unwrap();
    Records::new(members, Dialect::Warc, file.len() as u64, CAP, false)
}

fn read(file: &[u8]) -> Vec<String> {
    let mut records = records(file);
    let mut lines = Vec::new();
    while let Some(frame) = records.advance().unwrap() {
        let (offset, url, rest) = match frame {
            FramedRecord::Record(record) => (
                record.offset,
                record.url,
                format!("{}{}", records.block().len(), if record.cut { " cut" } else { "" }),
            ),
            FramedRecord::Reject(reject) => (reject.offset, reject.url, reject.reason),
        };
        lines.push(format!("{offset} {} {rest}", url.unwrap_or_default()));
    }
    lines
}

#[test]
fn a_plain_file_loses_only_its_bad_records() {
    let (a, b) = (good("a"), good("b"));
    let n = a.len();
    let file = |bad: &str| format!("{a}{bad}{b}{}", good("c")).into_bytes();
    let expect = |bad: &str, reason: &str, url: &str| {
        let next = n + bad.len();
        let expected =
            ["0 a 7".to_owned(), format!("{n} {url} {reason}"), format!("{next} b 7"), format!("{} c 7", next + n)];
        assert_eq!(read(&file(bad)), expected, "{bad}");
    };
    expect(&record("x", 3, "a block"), "warc: Content-Length does not end the block", "x");
    expect(&record("x", 60, "a block"), "warc: Content-Length does not end the block", "x");
    expect(&record("x", 5000, "a block"), "warc: Content-Length larger than the file", "x");
    expect("no record\nat all\n", "warc: no version line where a record should begin", "");
    expect("WARC/9.9\r\nWARC-Type: response\r\n\r\n", "warc: unknown version", "");
    expect("WARC/1.1\r\nContent-Length: 1\r\n\r\nx\r\n", "warc: no WARC-Type", "");
    expect("WARC/1.1\r\nWARC-Type: response\r\n", "warc: a version line inside a head", "");
}

#[test]
fn files_of_every_version_lose_only_their_bad_records() {
    for version in ["WARC/0.17", "WARC/0.18", "WARC/1.0", "WARC/1.1 "] {
        let of_version = |record: String| record.replace("WARC/1.1", version);
        let records: Vec<String> = (0..20).map(|number| of_version(good(&format!("http://a/{number}")))).collect();
        let bad = of_version(record("x", 3, "a block"));
        let file = records[..1].concat() + &bad + &records[1..].concat();
        let mut bzip2 = bzip2::write::BzEncoder::new(Vec::new(), bzip2::Compression::default());
        bzip2.write_all(file.as_bytes()).unwrap();
        let mut xz = liblzma::write::XzEncoder::new(Vec::new(), 1);
        xz.write_all(file.as_bytes()).unwrap();
        let zstd = zstd::bulk::compress(file.as_bytes(), 1).unwrap();
        let files = [file.clone().into_bytes(), gzip(&file), bzip2.finish().unwrap(), xz.finish().unwrap(), zstd];
        for (packing, file) in files.iter().enumerate() {
            let lines = read(file);
            let found = lines.iter().filter(|line| line.ends_with(" 7")).count();
            assert_eq!((found, lines.len()), (20, 21), "{version} {packing}: {lines:?}");
        }
    }
}

#[test]
fn zeros_between_records_and_after_the_last_one_are_padding() {
    let (a, b) = (good("a").into_bytes(), good("b").into_bytes());
    for padding in [1, 512, 3 << 20] {
        let file = [&a[..], &vec![0; padding], &b, &vec![0; padding]].concat();
        let mut records = records(&file);
        let mut count = 0;
        while let Some(frame) = records.advance().unwrap() {
            assert!(matches!(frame, FramedRecord::Record(_)), "{frame:?}");
            count += 1;
        }
        assert_eq!((count, records.unread()), (2, Unread::default()), "{padding}");
    }
    let lines = read(&[&a[..], &[0; 100], b"garbage\n", &b].concat());
    assert!(lines.len() == 3 && lines[1].contains("no version line"), "{lines:?}");
}

#[test]
fn a_length_beyond_the_end_of_a_whole_compressed_file_loses_one_record() {
    let file = good("a") + &record("x", 250, "a block") + &good("b");
    let lines = read(&gzip(&file));
    let reason = "warc: the file ends inside a record";
    let (x, b) = (good("a").len(), file.len() - good("b").len());
    assert_eq!(lines, ["0 a 7".to_owned(), format!("{x} x {reason}"), format!("{b} b 7")]);
}

#[test]
fn version_lines_inside_good_blocks_are_content() {
    let inner = good("inner");
    let outer = record("outer", inner.len(), &inner);
    assert_eq!(read(outer.as_bytes()), [format!("0 outer {}", inner.len())]);
}

#[test]
fn offsets_of_records_are_those_of_a_cdx_index() {
    let (a, b) = (gzip(&good("a")), gzip(&good("b")));
    let file = [&a[..], &b, &gzip(&(good("c") + &good("d"))), &gzip(&good("e"))].concat();
    let both = a.len() + b.len();
    let offsets = [0, a.len(), both, both + 1];
    let lines = read(&file);
    for (line, offset) in lines.iter().zip(offsets) {
        assert_eq!(line.split(' ').next(), Some(offset.to_string().as_str()), "{lines:?}");
    }
    for offset in &offsets[..3] {
        assert!(read(&file[*offset..])[0].ends_with(" 7"));
    }
    let whole = good("a") + &good("b");
    assert_eq!(read(&gzip(&whole)), ["0 a 7".to_owned(), format!("{} b 7", good("a").len())]);
}

#[test]
fn each_record_has_a_place_of_its_own_behind_those_before() {
    let names: Vec<String> = (0..12).map(|number| format!("http://a.example/{number}")).collect();
    let all: Vec<String> = names.iter().map(|name| good(name)).collect();
    let packed = |sizes: &[usize]| {
        let (mut rest, mut members) = (&all[..], Vec::new());
        for size in sizes {
            let (part, others) = rest.split_at(*size);
            (rest, _) = (others, members.push(gzip(&part.concat())));
        }
        assert!(rest.is_empty());
        members
    };
    let starts: Vec<usize> = all.iter().scan(0, |at, record| Some(std::mem::replace(at, *at + record.len()))).collect();
    let places = |file: &[u8]| {
        let lines = read(file).into_iter();
        let line = |line: String| line.split_once(' ').map(|(place, rest)| (place.parse().unwrap(), rest.to_owned()));
        lines.map(|text| line(text).unwrap()).unzip::<usize, String, Vec<_>, Vec<_>>()
    };
    let wanted: Vec<String> = names.iter().map(|name| format!("{name} 7")).collect();
    // Those of a file that is one member are in its decoded bytes.
    assert_eq!(places(&packed(&[12]).concat()), (starts.clone(), wanted.clone()));
    // Else they are in the members.
    for sizes in [&[1, 11][..], &[1, 1, 3, 4, 1, 2], &[2, 1, 9], &[5, 5, 1, 1]] {
        let members = packed(sizes);
        let begin = |member: usize| members[..member].iter().map(Vec::len).sum::<usize>();
        let of_member = |(member, size): (usize, &usize)| (0..*size).map(move |number| (member, number));
        let expected: Vec<usize> =
            sizes.iter().enumerate().flat_map(of_member).map(|(member, number)| begin(member) + number).collect();
        assert_eq!(places(&members.concat()), (expected, wanted.clone()), "{sizes:?}");
    }
    // A large first member of several records may be all of the file; one of a large record is not.
    let long = record("long", 9 << 20, &"x".repeat(9 << 20));
    let (first, rest) = (&all[0], all[1].clone() + &all[2]);
    let (a, b) = (gzip(&(first.clone() + &long + &all[1])), gzip(&all[2]));
    let ends = [first.len(), first.len() + long.len(), first.len() + long.len() + all[1].len()];
    assert_eq!(places(&[&a[..], &b].concat()).0, [&[0], &ends[..]].concat());
    let (a, b) = (gzip(&long), gzip(&rest));
    assert_eq!(places(&[&a[..], &b].concat()).0, [0, a.len(), a.len() + 1]);
    // Damage behind such a member has a place among those of the file.
    let (a, mut b) = (gzip(&(first.clone() + &long)), gzip(&rest));
    b.truncate(b.len() - 6);
    let (found, lines) = places(&[&a[..], &b, &gzip(&all[3])].concat());
    assert!(found.is_sorted() && found[2] >= ends[1] && found.len() == 4, "{found:?} {lines:?}");
    assert!(lines[2].contains("gzip: ") && lines[3] == wanted[3], "{lines:?}");
}

#[test]
fn records_for_which_a_member_has_too_few_bytes_are_rejects() {
    let crowd = gzip(&good("a").repeat(2000));
    let file = [gzip(&good("first")), crowd.clone(), gzip(&good("b")), gzip(&good("c"))].concat();
    let lines = read(&file);
    assert!(crowd.len() < 1800, "{}", crowd.len());
    let rejects: Vec<&String> = lines.iter().filter(|line| !line.ends_with(" 7")).collect();
    assert_eq!(lines.len(), 2003);
    let begin = file.len() - gzip(&good("b")).len() - gzip(&good("c")).len();
    let reason = "warc: the compressed member before has more records than bytes";
    assert_eq!(rejects, [&format!("{begin} b {reason}"), &format!("{} c {reason}", begin + gzip(&good("b")).len())]);
}

#[test]
fn a_record_is_found_alone_by_its_place_and_length() {
    let names = ["a", "a/longer/name", "c", "d", "e"];
    let all: Vec<String> = names.iter().map(|name| good(name)).collect();
    let two_in_one = [gzip(&all[0]), gzip(&(all[1].clone() + &all[2])), gzip(&all[3]), gzip(&all[4])].concat();
    let (begin, end) = all[3].split_at(40);
    let one_in_two = [gzip(&all[0]), gzip(begin), gzip(end), vec![0; 100], gzip(&all[4])].concat();
    let zstd = all.iter().flat_map(|record| zstd::bulk::compress(record.as_bytes(), 3).unwrap()).collect();
    let files = [(all.concat().into_bytes(), vec![]), (two_in_one, vec![1, 2]), (one_in_two, vec![]), (zstd, vec![])];
    for (file, shared) in files {
        let (mut read_again, mut number) = (records(&file), 0);
        while let Some(FramedRecord::Record(record)) = read_again.advance().unwrap() {
            let alone = record.entry.length.map(|length| read(&file[record.offset as usize..][..length as usize]));
            let expected = (!shared.contains(&number)).then(|| vec![format!("0 {} 7", record.url.unwrap())]);
            assert_eq!(alone, expected, "{number}");
            number += 1;
        }
        assert!(number >= 3);
    }
}

#[test]
fn zstd_frames_are_members_with_or_without_a_dictionary() {
    let records: Vec<String> = (0..200).map(|i| good(&format!("http://a.example/{i}"))).collect();
    let samples: Vec<&[u8]> = records.iter().map(String::as_bytes).collect();
    let dictionary = zstd::dict::from_samples(&samples, 2000).unwrap();
    let framed = |dictionary: &[u8]| {
        let mut compressor = zstd::bulk::Compressor::with_dictionary(3, dictionary).unwrap();
        records.iter().flat_map(|record| compressor.compress(record.as_bytes()).unwrap()).collect::<Vec<u8>>()
    };
    let skippable =
        |content: &[u8]| [&[0x5d, 0x2a, 0x4d, 0x18][..], &(content.len() as u32).to_le_bytes(), content].concat();
    let packed = zstd::bulk::compress(&dictionary, 3).unwrap();
    let files = [
        framed(&[]),
        [skippable(&dictionary), framed(&dictionary)].concat(),
        [skippable(&packed), framed(&dictionary)].concat(),
    ];
    for file in files {
        let lines = read(&file);
        assert_eq!(lines.len(), 200);
        assert!(lines.iter().all(|line| line.ends_with(" 7")), "{lines:?}");
        let mut damaged = file.clone();
        let middle = file.len() / 2;
        damaged[middle..middle + 3].fill(0);
        let lines = read(&damaged);
        let lost = lines.iter().filter(|line| line.contains("zstd: ")).count();
        assert!((1..=2).contains(&lost) && lines.len() >= 199, "{lines:?}");
    }
}

#[test]
fn a_block_longer_than_the_cap_is_cut_and_the_next_record_is_read() {
    let file = good("a") + &record("long", 5_000_000, &"x".repeat(5_000_000)) + &good("b");
    let lines = read(file.as_bytes());
    assert!(lines[1].ends_with(" long 1000 cut") && lines[2].ends_with(" b 7"), "{lines:?}");
    let file = [gzip(&good("a")), gzip(&record("long", 5_000_000, &"x".repeat(4_999_999))), gzip(&good("b"))].concat();
    let lines = read(&file);
    assert!(lines[2].ends_with(" b 7") && lines.len() == 3, "{lines:?}");
}

#[test]
fn members_cut_short_in_a_row_are_rejects_in_linear_time() {
    let mut cut = gzip(&good("a"));
    cut.truncate(cut.len() - 9);
    let lines = read(&[&cut.repeat(50_000)[..], &gzip(&good("b"))].concat());
    assert!(
        lines.len() > 20_000 && lines.iter().all(|line| !line.contains(" a 7")),
        "{} {:?}",
        lines.len(),
        &lines[..6]
    );
    assert!(lines[lines.len() - 1].ends_with(" b 7"));
}

#[test]
fn garbage_before_the_first_member_is_one_reject() {
    let file = [&b"garbage\r\n"[..], &gzip(&good("a"))].concat();
    assert_eq!(read(&file), ["0  gzip: bytes that are no member", "9 a 7"]);
    let file = [&gzip(&good("a"))[..], &[0; 5000]].concat();
    assert_eq!(read(&file), ["0 a 7"]);
}

/// Files of good and bad records, compressed or not, some bytes of them changed.
fn mangled() -> impl Strategy<Value = Vec<u8>> {
    let part = (0..5_usize, 0..40_usize, "[ -~\r\n]{0,40}").prop_map(|(kind, length, text)| match kind {
        0 => good("a"),
        1 => record("b", length, &text),
        2 => record("c", length * 100, &text),
        3 => text,
        _ => "WARC/1.0\r\n".to_owned(),
    });
    let changes = prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 0..4);
    (prop::collection::vec(part, 0..12), 0..4_u8, changes).prop_map(|(parts, packing, changes)| {
        let mut file: Vec<u8> = match packing {
            0 => parts.concat().into_bytes(),
            1 => gzip(&parts.concat()),
            2 => parts.iter().flat_map(|part| gzip(part)).collect(),
            _ => parts.iter().flat_map(|part| zstd::bulk::compress(part.as_bytes(), 1).unwrap()).collect(),
        };
        for (index, byte) in changes {
            if !file.is_empty() {
                let changed = index.index(file.len());
                file[changed] = byte;
            }
        }
        file
    })
}

proptest! {
    #[test]
    fn no_file_makes_it_panic_or_run_forever(file in mangled()) {
        let lines = read(&file);
        assert!(lines.len() <= 60, "{lines:?}");
    }
}
