//! Lines of many forms, damaged ones, and files without the columns of a job.

use std::io;
use std::io::Write;

use flate2::Compression;
use flate2::write::GzEncoder;

use super::checked::SEARCHED;
use super::{JsonlReader, Searched, check, columns};
use crate::readers::item::{Body, Item, Page, Reader as _};
use crate::reading::{Columns, Reading};
use crate::units::Bytes;

fn read(bytes: &[u8], reading: &Reading) -> Vec<Item> {
    let mut reader = JsonlReader::new(Box::new(io::Cursor::new(bytes.to_vec())), "test", reading).unwrap();
    std::iter::from_fn(|| reader.next().unwrap()).collect()
}

/// Writes each item as one line.
fn short(items: &[Item]) -> Vec<String> {
    let line = |item: &Item| match item {
        Item::Page(Page { url, body: Body::Text(text), offset, .. }) => {
            format!("{offset} {} {text}", url.as_deref().unwrap_or("none"))
        }
        Item::Page(Page { url, body: Body::Html(html), offset, .. }) => {
            format!("{offset} {} html {}", url.as_deref().unwrap_or("none"), String::from_utf8_lossy(html))
        }
        Item::Reject(reject) => format!("{} {}", reject.offset, reject.reason),
        other => format!("{other:?}"),
    };
    items.iter().map(line).collect()
}

const LINES: &str = "{\"url\":\"http://a/\",\"text\":\"one\\ntwo\",\"more\":{\"x\":[1,2.5,null]}}\n\
    \n{\"url\":\"http://b/\"}\nno json\n{\"text\":\"x\"}\n[1]\n{\"text\":\"last\",\"url\":\"http://c/\"}";

#[test]
fn a_line_is_a_page_or_a_reject_with_its_place() {
    let expected = [
        "0 http://a/ one\ntwo",
        "65 jsonl: no text",
        "85 jsonl: no JSON object",
        "93 none x",
        "106 jsonl: no JSON object",
        "110 http://c/ last",
    ];
    assert_eq!(short(&read(LINES.as_bytes(), &Reading::default())), expected);
    let mut gzip = GzEncoder::new(Vec::new(), Compression::default());
    gzip.write_all(LINES.as_bytes()).unwrap();
    assert_eq!(short(&read(&gzip.finish().unwrap(), &Reading::default())), expected);
    assert_eq!(short(&read(&zstd::bulk::compress(LINES.as_bytes(), 1).unwrap(), &Reading::default())), expected);
}

#[test]
fn a_name_with_dots_counts_before_a_path_wherever_it_stands() {
    let reading: Reading = toml::from_str("[columns]\ntext = \"a.b.c\"").unwrap();
    for (line, text) in [
        (r#"{"a.b.c":"one","a":{"b":{"c":"two"}}}"#, "one"),
        (r#"{"a":{"b":{"c":"two"}},"a.b.c":"one"}"#, "one"),
        (r#"{"a":{"b.c":"one","b":{"c":"two"}}}"#, "one"),
        (r#"{"a":{"b":{"c":"two"},"b.c":"one"}}"#, "one"),
        (r#"{"a":{"b":{"c":"two"}}}"#, "two"),
    ] {
        assert_eq!(short(&read(line.as_bytes(), &reading)), [format!("0 none {text}")], "{line}");
    }
}

#[test]
fn ids_have_all_their_digits_or_are_rejects() {
    let columns = Columns { id: Some("id".into()), ..Columns::default() };
    let reading = Reading { columns, ..Reading::default() };
    let reject = "jsonl: an id that is neither text nor a whole number";
    for (id, wanted) in [
        ("18446744073709551615", Some("18446744073709551615")),
        ("123456789012345678901234567890", Some("123456789012345678901234567890")),
        ("-7", Some("-7")),
        ("-0", Some("0")),
        ("\"007\"", Some("007")),
        ("\" 7\"", Some(" 7")),
        ("\"\\u00e9\\n\"", Some("\u{e9}\n")),
        ("\"\"", None),
        ("null", None),
        ("1e3", Some(reject)),
        ("1.0", Some(reject)),
        ("true", Some(reject)),
        ("[1]", Some(reject)),
        ("007", Some("jsonl: no JSON object")),
        ("NaN", Some("jsonl: no JSON object")),
    ] {
        let items = read(format!("{{\"text\":\"x\",\"id\":{id}}}").as_bytes(), &reading);
        let found = match &items[..] {
            [Item::Page(page)] => page.id.as_deref(),
            [Item::Reject(reject)] => Some(reject.reason.as_str()),
            other => panic!("{other:?}"),
        };
        assert_eq!(found, wanted, "{id}");
    }
}

#[test]
fn bytes_that_are_no_text_count_only_in_a_field_that_is_read() {
    let reading = Reading::default();
    let line = |field: &str| {
        [b"{\"url\":\"http://h/\",\"".as_slice(), field.as_bytes(), b"\":\"a\xff\",\"text\":\"b\"}\n"].concat()
    };
    let items = read(&[line("other"), line("text"), line("url")].concat(), &reading);
    assert!(matches!(&items[0], Item::Page(page) if page.body.as_bytes() == b"b"), "{items:?}");
    assert_eq!(items.iter().filter(|item| matches!(item, Item::Page(_))).count(), 1, "{items:?}");
    assert_eq!(items.len(), 3);
}

#[test]
fn bytes_that_are_no_text_are_replaced_in_values() {
    let line = b"{\"url\":\"http://h/\",\"text\":\"b\",\"a\":\"x\xff\xc3\",\"m\":{\"n\":1.50},\"other\":\"\xff\"}\n";
    let values = vec!["a".to_owned(), "m.n".to_owned(), "none".to_owned()];
    let reading = Reading { columns: Columns { values, ..Columns::default() }, ..Reading::default() };
    let items = read(line, &reading);
    let [Item::Page(page)] = &items[..] else { panic!("{items:?}") };
    assert_eq!(page.values, [Some("x\u{fffd}\u{fffd}".to_owned()), Some("1.50".to_owned()), None]);
    // A field of the page is read as without values.
    let values = vec!["url".to_owned(), "text".to_owned()];
    let reading = Reading { columns: Columns { values, ..Columns::default() }, ..Reading::default() };
    let items = read(b"{\"url\":\"http://h/\",\"text\":\"b\xff\"}\n", &reading);
    assert!(matches!(items[..], [Item::Reject(_)]), "{items:?}");
}

#[test]
fn a_column_that_begins_late_is_found_in_all_lines() {
    let mut lines = "{\"url\":\"http://h/\",\"text\":\"b\"}\n".repeat(SEARCHED);
    lines.push_str("{\"late\":{\"in\":1}}\n");
    let values = vec!["text".to_owned(), "late.in".to_owned()];
    let reading = Reading { columns: Columns { values, ..Columns::default() }, ..Reading::default() };
    let columns = |searched| {
        let source = Box::new(io::Cursor::new(lines.as_bytes().to_vec()));
        columns(source, "test", &reading, searched).unwrap()
    };
    assert_eq!(columns(Searched::First), (vec!["text".to_owned(), "url".to_owned()], vec![true, false]));
    assert_eq!(columns(Searched::All).1, [true, true]);
}

#[test]
fn fields_are_read_from_the_columns_of_the_job() {
    let columns = Columns {
        id: Some("metadata.key".into()),
        url: Some("metadata.url".into()),
        text: "content".into(),
        html: Some("raw".into()),
        ip: Some("ip".into()),
        date: Some("metadata.date".into()),
        ..Columns::default()
    };
    let reading = Reading { columns, ..Reading::default() };
    let line = r#"{"raw":"<p>","content":"p","ip":"192.0.2.1","metadata":{"date":"2024-01-08T12:00:00.5Z","url":"http://a/","key":9007199254740993,"x":1}}"#;
    let items = read(line.as_bytes(), &reading);
    let [Item::Page(page)] = &items[..] else { panic!("{items:?}") };
    assert_eq!((page.url.as_deref(), &page.body), (Some("http://a/"), &Body::Html(b"<p>".to_vec())));
    assert_eq!(page.id.as_deref(), Some("9007199254740993"));
    assert_eq!((page.ip, page.fetched), (Some("192.0.2.1".parse().unwrap()), Some(1_704_715_200_500_000)));
    assert_eq!(page.charset.as_deref(), Some("utf-8"));
}

#[test]
fn a_column_may_be_a_text_and_the_id_or_the_url() {
    let names = ["key", "url", "text"].map(str::to_owned);
    for values in [vec![], vec!["key".to_owned(), "url".to_owned()]] {
        let columns = Columns { id: Some("key".into()), text: names.iter().cloned().collect(), ..Columns::default() };
        let reading = Reading { columns: Columns { values, ..columns }, ..Reading::default() };
        let items = read(br#"{"key":"a","url":"http://h/","text":"b"}"#, &reading);
        let [Item::Page(page)] = &items[..] else { panic!("{items:?}") };
        assert_eq!((page.id.as_deref(), page.url.as_deref()), (Some("a"), Some("http://h/")));
        assert_eq!(page.body.as_bytes(), b"a\nhttp://h/\nb");
    }
}

#[test]
fn a_column_may_be_the_id_and_the_url() {
    for (url, has_url) in [(None, true), (Some("url".to_owned()), true), (Some("key".to_owned()), false)] {
        let reading =
            Reading { columns: Columns { id: Some("url".into()), url, ..Columns::default() }, ..Reading::default() };
        let items = read(br#"{"text":"b","url":"http://h/"}"#, &reading);
        let [Item::Page(page)] = &items[..] else { panic!("{items:?}") };
        let wanted = Some("http://h/");
        assert_eq!((page.id.as_deref(), page.url.as_deref()), (wanted, wanted.filter(|_| has_url)));
    }
}

#[test]
fn a_column_inside_what_is_no_object_is_missing() {
    let columns = Columns { text: ["a", "m.n.o"].map(str::to_owned).into_iter().collect(), ..Columns::default() };
    let reading = Reading { columns, ..Reading::default() };
    for inner in ["null", "\"x\"", "1", "-1", "1.5", "true", "[{\"n\":{\"o\":\"c\"}}]", "{\"n\":null}", "{\"n\":[1]}"] {
        let line = format!("{{\"url\":\"http://h/\",\"m\":{inner},\"a\":\"b\"}}");
        let items = read(line.as_bytes(), &reading);
        let [Item::Page(page)] = &items[..] else { panic!("{inner}: {items:?}") };
        assert_eq!(page.body.as_bytes(), b"b\n", "{inner}");
    }
}

#[test]
fn a_file_without_the_columns_of_the_job_is_found_before_the_run() {
    let check_for = |columns: Columns, lines: &str| {
        let source = Box::new(io::Cursor::new(lines.as_bytes().to_vec()));
        check(source, "x.jsonl", &Reading { columns, ..Reading::default() }).map_err(|error| format!("{error:#}"))
    };
    let check = |lines: &str| check_for(Columns::default(), lines);
    let error = |lines: &str| check(lines).unwrap_err();
    let line = r#"{"id":1,"meta":{"url":"http://a/"},"text":"x"}"#;
    for columns in [
        Columns { id: Some("key".into()), ..Columns::default() },
        Columns { url: Some("key".into()), ..Columns::default() },
    ] {
        let named = "x.jsonl has no field `key`: it has id, meta, meta.url, text; set the names in [cluster.read.columns], or by --id, --url and --text";
        assert_eq!(check_for(columns, line).unwrap_err(), named);
    }
    assert_eq!(check(line), Ok(Some(false)));
    assert_eq!(check_for(Columns { url: Some("meta.url".into()), ..Columns::default() }, line), Ok(Some(true)));
    assert!(
        error("{\"url\":\"http://a/\",\"content\":\"x\"}\n")
            .starts_with("x.jsonl has no field `text`: it has content, url")
    );
    assert!(error("\n[\n{\"url\":1}]").contains("jq -c '.[]'"));
    // A line of another kind is bad data, and no reason to refuse the file; nor is a null.
    for lines in ["", "\n", "no JSON", "{\"id\":1}\n[1]"] {
        assert_eq!(check(lines), Ok(None), "{lines}");
    }
    assert_eq!(check("{\"id\":1}\n{\"url\":null,\"text\":null}"), Ok(Some(true)));
}

#[test]
fn lines_that_are_too_long_are_rejects() {
    let reading = Reading { max_page_bytes: Bytes(4), ..Reading::default() };
    let mut lines = format!("{{\"url\":\"http://long/\",\"text\":\"{}\"}}\n", "x".repeat(3 << 20)).into_bytes();
    let after = lines.len();
    lines.extend_from_slice(b"{\"url\":\"http://a/\",\"text\":\"words\"}\n");
    let items = read(&lines, &reading);
    let wanted = ["0 jsonl: line too long for max-page-bytes".to_owned(), format!("{after} http://a/ word")];
    assert_eq!(short(&items), wanted);
    // A gzip member that is inflated at once appends the whole line, more than is allowed.
    let mut gzip = GzEncoder::new(Vec::new(), Compression::default());
    gzip.write_all(&lines).unwrap();
    assert_eq!(short(&read(&gzip.finish().unwrap(), &reading)), wanted);
}

fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut gzip = GzEncoder::new(Vec::new(), Compression::default());
    gzip.write_all(bytes).unwrap();
    gzip.finish().unwrap()
}

#[test]
fn damage_loses_the_lines_of_its_member_and_the_end_of_a_file_the_line_that_it_cuts() {
    let line = |name: char| format!("{{\"url\":\"http://{name}/\",\"text\":\"{name}\"}}\n");
    let (a, c) = (gzip(line('a').as_bytes()), gzip(line('c').as_bytes()));
    let mut b = gzip(format!("{}{{\"url\":\"http://d/\",\"te", line('b')).as_bytes());
    b.truncate(b.len() - 8);
    let items = short(&read(&[&a[..], &b, &c].concat(), &Reading::default()));
    assert_eq!(items, ["0 http://a/ a", "31 gzip: damaged member", "31 http://c/ c"]);
    let items = short(&read(&[a, b].concat(), &Reading::default()));
    assert_eq!(items, ["0 http://a/ a", "31 http://b/ b", "62 gzip: the file ends inside a member"]);
}

#[test]
fn a_damaged_member_gives_no_line_that_the_file_does_not_have() {
    let line =
        |n: usize| format!("{{\"url\":\"http://a/{n}\",\"text\":\"row {n} of {} and {}\"}}\n", n * 7919, n * 104_729);
    let member = |from: usize| gzip((from..from + 100).map(line).collect::<String>().as_bytes());
    let (first, second, third) = (member(0), member(100), member(200));
    let texts = |file: &[u8]| -> Vec<String> {
        let text = |line: String| line.split_once(' ').unwrap().1.to_owned();
        short(&read(file, &Reading::default())).into_iter().map(text).collect()
    };
    let (whole, without) = (texts(&[&first[..], &second, &third].concat()), texts(&[&first[..], &third].concat()));
    assert_eq!((whole.len(), without.len()), (300, 200));
    let mut damaged = 0;
    for place in (10..second.len()).step_by(7) {
        let mut bad = second.clone();
        bad[place] ^= 1;
        let found = texts(&[&first[..], &bad, &third].concat());
        let (rejects, lines): (Vec<String>, Vec<String>) =
            found.into_iter().partition(|text| text.starts_with("gzip: "));
        // Some bits have no meaning.
        assert!(lines == without && rejects.len() == 1 || lines == whole && rejects.is_empty(), "{place} {rejects:?}");
        damaged += rejects.len();
    }
    assert!(damaged > 100, "{damaged}");
}
