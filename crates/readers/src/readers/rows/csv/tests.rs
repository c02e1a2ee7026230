//! Records of many forms, damaged ones, and files without the columns of a job.

use std::io;
use std::io::{Read, Write as _};

use flate2::Compression;
use flate2::write::GzEncoder;

use super::CsvReader;
use crate::readers::item::{Body, Item, Page, Reader as _, Reject};
use crate::reading::{Columns, Reading};
use crate::units::Bytes;

fn reader(bytes: &[u8], delimiter: u8, reading: &Reading) -> anyhow::Result<CsvReader> {
    CsvReader::new(Box::new(io::Cursor::new(bytes.to_vec())), delimiter, "x.csv", reading)
}

/// Reads all items, each as one line.
fn read(bytes: &[u8], delimiter: u8, reading: &Reading) -> Vec<String> {
    let mut reader = reader(bytes, delimiter, reading).unwrap();
    let line = |item: Item| match item {
        Item::Page(Page { id, url, body: Body::Text(text), offset, .. }) => {
            format!("{offset} {id:?} {url:?} {text}")
        }
        Item::Reject(reject) => format!("{} {}", reject.offset, reject.reason),
        other => format!("{other:?}"),
    };
    std::iter::from_fn(|| reader.next().unwrap()).map(line).collect()
}

fn by_id() -> Reading {
    Reading { columns: Columns { id: Some("id".into()), ..Columns::default() }, ..Reading::default() }
}

#[test]
fn a_quote_that_is_not_closed_loses_one_record() {
    let csv = "id,text\n1,first row\n2,\"second row\n3,third row\n\n4,\"fourth\nrow\"\n5,\"fifth";
    for lines in [csv.to_owned(), csv.replace('\n', "\r\n")] {
        let last = lines.len() - "5,\"fifth".len();
        // All quotes of the rest are paired but the last one.
        let found = read(lines.as_bytes(), b',', &by_id());
        assert_eq!(found.last().unwrap(), &format!("{last} csv: a quote that is not closed"), "{found:?}");
    }
    let csv = "id,text\n1,first row\n2,\"second row\n3,third row\n4,fourth row\n";
    let found = read(csv.as_bytes(), b',', &by_id());
    let wanted = [
        "8 Some(\"1\") None first row",
        "20 csv: a quote that is not closed",
        "34 Some(\"3\") None third row",
        "46 Some(\"4\") None fourth row",
    ];
    assert_eq!(found, wanted);
}

#[test]
fn a_record_is_a_page_or_a_reject_with_its_place() {
    let records = "\u{feff}id,more,text\r\n1,x,\"one, \"\"two\"\"\nthree\"\r\n\r\n2,x\r\n3,,last \"word";
    let expected = [
        "17 Some(\"1\") None one, \"two\"\nthree",
        "45 csv: another number of fields than names",
        "50 Some(\"3\") None last \"word",
    ];
    assert_eq!(read(records.as_bytes(), b',', &by_id()), expected);
    let mut gzip = GzEncoder::new(Vec::new(), Compression::default());
    gzip.write_all(records.as_bytes()).unwrap();
    assert_eq!(read(&gzip.finish().unwrap(), b',', &by_id()), expected);
    let tabs = read(b"url\ttext\nhttp://a/\tone, two\n\t\n", b'\t', &Reading::default());
    assert_eq!(tabs, ["9 None Some(\"http://a/\") one, two", "28 None None "]);
}

#[test]
fn a_slow_twin_finds_the_same_records_wherever_the_bytes_are_cut() {
    // A source that gives a few bytes at a time.
    struct Few(Vec<u8>, usize);
    impl Read for Few {
        fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
            let count = out.len().min(self.1).min(self.0.len());
            out[..count].copy_from_slice(&self.0[..count]);
            self.0.drain(..count);
            Ok(count)
        }
    }
    let rows: Vec<[String; 2]> = (0..200)
        .map(|n| [format!("{n}"), ["a", "\"", "\n", ",", "\r\n", "\u{e4}"].map(|part| part.repeat(n % 4)).concat()])
        .collect();
    let quoted = |field: &String| format!("\"{}\"", field.replace('"', "\"\""));
    let mut file = "id,text\n".to_owned();
    let mut offsets = Vec::new();
    for row in &rows {
        offsets.push(file.len() as u64);
        file.push_str(&row.iter().map(quoted).collect::<Vec<_>>().join(","));
        file.push('\n');
    }
    for few in [1, 2, 3, 7, 1000] {
        let source = Box::new(Few(file.clone().into_bytes(), few));
        let mut reader = CsvReader::new(source, b',', "x.csv", &by_id()).unwrap();
        for (row, offset) in rows.iter().zip(&offsets) {
            let Some(Item::Page(page)) = reader.next().unwrap() else { panic!("no page") };
            assert_eq!((page.id.as_ref(), &page.body), (Some(&row[0]), &Body::Text(row[1].clone())));
            assert_eq!(page.offset, *offset);
        }
        assert_eq!(reader.next().unwrap(), None);
    }
}

#[test]
fn a_byte_order_mark_behind_a_quote_that_is_not_closed_is_text() {
    let csv = "text,id\n\"open,1\n\u{feff}\n\u{feff}text,2\n";
    let wanted = [
        "8 csv: a quote that is not closed",
        "16 csv: another number of fields than names",
        "20 Some(\"2\") None \u{feff}text",
    ];
    assert_eq!(read(csv.as_bytes(), b',', &by_id()), wanted);
}

#[test]
fn a_quote_that_is_not_closed_takes_bounded_memory() {
    let reading = Reading { max_page_bytes: Bytes(16), ..by_id() };
    let mut file = b"id,text\n1,\"".to_vec();
    file.resize(8 << 20, b'x');
    file.extend_from_slice(b"\"\n2,short\n");
    let mut reader = reader(&file, b',', &reading).unwrap();
    let Some(Item::Reject(reject)) = reader.next().unwrap() else { panic!("no reject") };
    let reason = "csv: record too long for max-page-bytes, or too many fields";
    assert_eq!((reject.offset, reject.reason.as_str()), (8, reason));
    assert!(reader.records.text.len() <= 4 << 20, "{}", reader.records.text.len());
    let Some(Item::Page(page)) = reader.next().unwrap() else { panic!("no page") };
    assert_eq!((page.id.as_deref(), page.body), (Some("2"), Body::Text("short".into())));
}

/// A member of gzip for each of some pieces, the `damaged`th without what `damage` takes.
fn members(text: &[u8], piece: usize, damaged: usize, damage: fn(&mut Vec<u8>)) -> Vec<u8> {
    let member = |(number, piece): (usize, &[u8])| {
        let mut gzip = GzEncoder::new(Vec::new(), Compression::default());
        gzip.write_all(piece).unwrap();
        let mut member = gzip.finish().unwrap();
        if number == damaged {
            damage(&mut member);
        }
        member
    };
    text.chunks(piece).enumerate().flat_map(member).collect()
}

/// Another checksum, and a beginning that is none.
const DAMAGES: [fn(&mut Vec<u8>); 2] = [
    |member| {
        let checksum = member.len() - 8;
        member[checksum] ^= 1;
    },
    |member| member[0] = 1,
];

#[test]
fn damage_loses_the_records_that_it_is_in_and_makes_no_others() {
    let text = |n: usize| format!("row {n} has, \"it\" and {} of its own", n * 7919);
    let row = |n: usize| format!("\"{}\",{n}\r\n", text(n).replace('"', "\"\""));
    let file = "text,id\r\n".to_owned() + &(0..2000).map(row).collect::<String>();
    for damaged in [5, 9] {
        for damage in DAMAGES {
            let found = read(&members(file.as_bytes(), 4096, damaged, damage), b',', &by_id());
            let rejects: Vec<&String> = found.iter().filter(|line| line.contains("gzip: ")).collect();
            assert_eq!(rejects.len(), 1, "{rejects:?}");
            let pages = found.iter().filter(|line| !line.contains("gzip: "));
            let known: std::collections::BTreeSet<String> =
                (0..2000).map(|n| format!("Some(\"{n}\") None {}", text(n))).collect();
            for page in pages.clone() {
                assert!(known.contains(page.split_once(' ').unwrap().1), "{page}");
            }
            // The others are in the member, or in the line in which the file goes on.
            assert_eq!(pages.count(), 1917);
        }
    }
}

#[test]
fn a_file_that_is_damaged_from_its_beginning_is_one_reject() {
    let file = b"id,text\n1,one\n2,two\n3,thr";
    let found = |damage| read(&members(file, 1000, 0, damage), b',', &by_id());
    assert_eq!(found(DAMAGES[0]), ["0 gzip: damaged member"]);
    let cut: fn(&mut Vec<u8>) = |member| member.truncate(member.len() - 8);
    let pages = ["8 Some(\"1\") None one", "14 Some(\"2\") None two", "20 gzip: the file ends inside a member"];
    assert_eq!(found(cut), pages);
    // Its magic bytes stay, and what follows is no block.
    let no_block: fn(&mut Vec<u8>) = |member| member[10..].fill(0xff);
    assert_eq!(found(no_block), ["0 gzip: damaged member"]);
    let reader = || reader(&members(file, 1000, 0, no_block), b',', &by_id()).unwrap();
    assert_eq!((reader().columns(), reader().has_url().unwrap()), (None, None));
    let more = [&members(file, 1000, 0, no_block)[..], &members(b"x\n1,one\n", 1000, 9, no_block)].concat();
    let more = read(&more, b',', &by_id());
    assert_eq!(more, ["0 gzip: damaged member", "2 csv: another number of fields than names"]);
}

#[test]
fn a_record_that_is_not_utf8_is_a_reject_and_names_that_are_not_are_an_error() {
    // In all columns, also those that are not read; and a character that a delimiter divides.
    let rows: [&[u8]; 6] = [
        b"a\xe9,x,http://a/,one",
        b"b,x,http://b/\xe9,one",
        b"c,x,http://c/,one \xe9",
        b"d,x\xe9,http://d/,one",
        b"e,\xc3,\xa9,one",
        "\u{e9},\u{e9},http://f/\u{e9},\u{e9}".as_bytes(),
    ];
    for (delimiter, format) in [(b',', "csv"), (b'\t', "tsv")] {
        let file = [&b"id,more,url,text"[..]].into_iter().chain(rows).collect::<Vec<_>>().join(&b'\n');
        let file: Vec<u8> = file.iter().map(|byte| if *byte == b',' { delimiter } else { *byte }).collect();
        let values = vec!["more".to_owned()];
        let mut reading = Reading { columns: Columns { values, ..by_id().columns }, ..Reading::default() };
        let mut reader = CsvReader::new(Box::new(io::Cursor::new(file.clone())), delimiter, "x", &reading).unwrap();
        let items: Vec<Item> = std::iter::from_fn(|| reader.next().unwrap()).collect();
        let of = |item: &Item| match item {
            Item::Reject(Reject { url, reason, .. }) => (url.clone(), reason.clone()),
            Item::Page(page) => (page.url.clone(), page.values[0].clone().unwrap()),
            other => panic!("{other:?}"),
        };
        let reject = |url: Option<&str>| (url.map(str::to_owned), format!("{format}: not UTF-8"));
        let urls = [Some("http://a/"), None, Some("http://c/"), Some("http://d/"), None];
        let wanted: Vec<(Option<String>, String)> =
            urls.map(reject).into_iter().chain([(Some("http://f/\u{e9}".into()), "\u{e9}".into())]).collect();
        assert_eq!(items.iter().map(of).collect::<Vec<_>>(), wanted);
        // Whether the values of a column are kept makes no difference.
        reading.columns.values.clear();
        assert_eq!(read(&file, delimiter, &reading).iter().filter(|line| line.ends_with("not UTF-8")).count(), 5);
    }
    let error = reader(b"id,text,pr\xe9nom\n1,x,y\n", b',', &by_id()).err().unwrap().to_string();
    assert!(error.starts_with("the names of the columns of x.csv are not UTF-8: `iconv "), "{error}");
}

#[test]
fn a_missing_column_is_an_error_that_names_the_columns_of_the_file() {
    let error = reader(b"id,content\n1,x\n", b',', &Reading::default()).err().unwrap().to_string();
    let named = "x.csv has no column `text` (its columns: id, content); set the names in [cluster.read.columns], or by --id, --url and --text";
    assert_eq!(error, named);
    let has_url = |bytes: &[u8]| reader(bytes, b',', &Reading::default()).unwrap().has_url().unwrap();
    assert_eq!(has_url(b"url,text\nhttp://a/,x\n"), Some(true));
    assert_eq!(has_url(b"id,text\n1,x\n"), Some(false));
    assert_eq!((has_url(b""), has_url(b"id,text\n")), (None, None));
}
