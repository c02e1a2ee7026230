//! Whole WARC and ARC files: what their records become together.

use std::io::{Cursor, Write as _};
use std::ops::Range;

use super::{Dialect, WarcReader};
use crate::readers::item::{Body, Item, Page, Reader as _, Skip};
use crate::reading::Reading;
use crate::units::Bytes;

fn record(kind: &str, fields: &str, block: &[u8]) -> Vec<u8> {
    let length = block.len();
    let head = format!("WARC/1.1\r\nWARC-Type: {kind}\r\n{fields}Content-Length: {length}\r\n\r\n");
    [head.as_bytes(), block, b"\r\n\r\n"].concat()
}

/// The field of an id, and that of a URL.
fn named(id: &str, url: &str) -> String {
    format!("WARC-Record-ID: <urn:{id}>\r\nWARC-Target-URI: {url}\r\n")
}

fn html(text: &str) -> Vec<u8> {
    format!("HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n\r\n{text}").into_bytes()
}

fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::default());
    gzip.write_all(bytes).unwrap();
    gzip.finish().unwrap()
}

/// The items of a file, whose places do not descend.
fn items_with(dialect: Dialect, file: &[u8], reading: &Reading) -> Vec<Item> {
    let size = file.len() as u64;
    let mut reader = WarcReader::new(Box::new(Cursor::new(file.to_vec())), dialect, size, "x", reading).unwrap();
    let items: Vec<Item> = std::iter::from_fn(|| reader.next().unwrap()).collect();
    assert!(items.is_sorted_by_key(Item::offset), "{items:?}");
    assert_eq!(reader.position(), size);
    items
}

/// The items of records: of a plain file, one that is one member, and one of a member for each
/// record, which are the same.
fn items(records: &[Vec<u8>]) -> Vec<Item> {
    let plain = items_with(Dialect::Warc, &records.concat(), &Reading::default());
    let members: Vec<u8> = records.iter().flat_map(|record| gzip(record)).collect();
    for file in [gzip(&records.concat()), members] {
        let mut others = items_with(Dialect::Warc, &file, &Reading::default());
        assert_eq!(others.len(), plain.len());
        for (item, other) in plain.iter().zip(&mut others) {
            if let (Item::Page(page), Item::Page(other)) = (item, &mut *other) {
                other.entry.length = page.entry.length;
            }
            let (place, other_place) = (item.offset(), other.offset());
            other.shift(place.wrapping_sub(other_place));
            assert_eq!(item, other);
        }
    }
    plain
}

fn pages(items: &[Item]) -> Vec<&Page> {
    items.iter().filter_map(|item| if let Item::Page(page) = item { Some(page) } else { None }).collect()
}

/// The texts of pages, and whether they are cut.
fn texts(items: &[Item]) -> Vec<(String, bool)> {
    let text = |page: &&Page| (String::from_utf8_lossy(page.body.as_bytes()).into_owned(), page.cut);
    pages(items).iter().map(text).collect()
}

fn first_segment(id: &str, fields: &str, part: &[u8]) -> Vec<u8> {
    record("response", &(named(id, &format!("http://a.example/{id}")) + fields + "WARC-Segment-Number: 1\r\n"), part)
}

fn segment(id: &str, number: u64, fields: &str, part: &[u8]) -> Vec<u8> {
    let fields = format!(
        "{}WARC-Segment-Number: {number}\r\nWARC-Segment-Origin-ID: <urn:{id}>\r\n{fields}",
        named(&format!("{id}-{number}"), &format!("http://a.example/{id}"))
    );
    record("continuation", &fields, part)
}

fn total(block: &[u8]) -> String {
    format!("WARC-Segment-Total-Length: {}\r\n", block.len())
}

fn other_page(number: usize) -> Vec<u8> {
    record("response", &named(&format!("o{number}"), &format!("http://b.example/{number}")), &html("<p>other"))
}

#[test]
fn segments_are_joined() {
    let (a, b) = (html("<p>first second third"), html("<p>one two"));
    let (a1, rest) = a.split_at(60);
    let (a2, a3) = rest.split_at(5);
    let (b1, b2) = b.split_at(20);
    let whole = |text: &str| (text.to_owned(), false);
    let (of_a, of_b, other) = (whole("<p>first second third"), whole("<p>one two"), whole("<p>other"));
    let [first, second, third] = [first_segment("a", "", a1), segment("a", 2, "", a2), segment("a", 3, &total(&a), a3)];
    assert_eq!(texts(&items(&[first.clone(), second.clone(), third.clone()])), vec![of_a.clone()]);
    // Records between, and in another order.
    let mixed = [first.clone(), other_page(1), third.clone(), second.clone(), other_page(2)];
    assert_eq!(texts(&items(&mixed)), [of_a.clone(), other.clone(), other.clone()]);
    // A segment twice counts once.
    let twice = [first.clone(), second.clone(), second.clone(), third.clone()];
    assert_eq!(texts(&items(&twice)), vec![of_a.clone()]);
    // Two records at a time.
    let two = [first_segment("b", "", b1), first.clone(), second, segment("b", 2, &total(&b), b2), third];
    assert_eq!(texts(&items(&two)), [of_b, of_a]);
    // A body that is encoded as a whole.
    let packed =
        [b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Encoding: gzip\r\n\r\n".to_vec(), gzip(b"<p>words")]
            .concat();
    let (start, end) = packed.split_at(packed.len() - 12);
    let encoded = [first_segment("c", "", start), segment("c", 2, &total(&packed), end)];
    assert_eq!(texts(&items(&encoded)), [whole("<p>words")]);
    let found = items(&[first_segment("a", "", a1), segment("a", 2, &total(&a), &a[60..]), other_page(1)]);
    let kinds: Vec<bool> = found.iter().map(|item| matches!(item, Item::Page(_))).collect();
    assert_eq!(kinds, [true, false, true], "the later segment is a record that is passed over");
}

#[test]
fn a_page_without_all_of_its_segments_is_cut() {
    let a = html("<p>first second third");
    let (a1, rest) = a.split_at(56);
    let (a2, a3) = rest.split_at(5);
    let cut = |text: &str| vec![(text.to_owned(), true)];
    let first = || first_segment("a", "", a1);
    let [start, middle] = [56, 61].map(|end| String::from_utf8(a[44..end].to_vec()).unwrap());
    assert_eq!(texts(&items(&[first()])), cut(&start));
    assert_eq!(texts(&items(&[first(), segment("a", 2, "", a2)])), cut(&middle));
    assert_eq!(texts(&items(&[first(), segment("a", 3, &total(&a), a3)])), cut(&start));
    assert_eq!(texts(&items(&[first(), segment("b", 2, &total(&a), rest)])), cut(&start));
    // A length that is not that of the parts, and marks.
    let all = "<p>first second third";
    assert_eq!(texts(&items(&[first(), segment("a", 2, &total(&a[1..]), rest)])), cut(all));
    let marked = first_segment("a", "WARC-Truncated: time\r\n", a1);
    assert_eq!(texts(&items(&[marked, segment("a", 2, &total(&a), rest)])), cut(all));
    let last_marked = segment("a", 2, &(total(&a) + "WARC-Truncated: length\r\n"), rest);
    assert_eq!(texts(&items(&[first(), last_marked])), cut(all));
    // Without an id, no record can name it.
    let fields = "WARC-Target-URI: http://a.example/a\r\nWARC-Segment-Number: 1\r\n";
    assert_eq!(texts(&items(&[record("response", fields, a1), segment("a", 2, &total(&a), rest)])), cut(&start));
    let no_number = named("a", "http://a.example/a") + "WARC-Segment-Number: x\r\n";
    assert_eq!(texts(&items(&[record("response", &no_number, a1)])), cut(&start));
    let text = record(
        "conversion",
        &(named("t", "http://a.example/t") + "Content-Type: text/plain\r\nWARC-Segment-Number: 1\r\n"),
        b"words",
    );
    assert_eq!(texts(&items(&[text])), cut("words"));
}

#[test]
fn segments_take_bounded_memory() {
    let a = html("<p>first second third");
    let (a1, rest) = a.split_at(56);
    let image =
        record("response", &named("i", "http://a.example/i"), b"HTTP/1.1 200 OK\r\nContent-Type: image/png\r\n\r\n");
    let file = |between: usize| {
        [first_segment("a", "", a1), image.repeat(between), segment("a", 2, &total(&a), rest), other_page(1)].concat()
    };
    for (between, is_cut) in [(4000, false), (5000, true)] {
        let found = items_with(Dialect::Warc, &file(between), &Reading::default());
        assert_eq!(found.len(), between + 3);
        assert_eq!(pages(&found)[0].cut, is_cut, "{between}");
    }
    // The joined body is cut where a page is.
    let reading = Reading { max_page_bytes: Bytes(1000), ..Reading::default() };
    let body = html(&format!("<p>{}", "word ".repeat(1 << 20)));
    let (start, rest) = body.split_at(1 << 10);
    let parts: Vec<&[u8]> = rest.chunks(100_000).collect();
    let mut file = first_segment("a", "", start);
    for (part, number) in parts.iter().zip(2..) {
        let fields = if number as usize == parts.len() + 1 { total(&body) } else { String::new() };
        file.extend(segment("a", number, &fields, part));
    }
    let found = items_with(Dialect::Warc, &file, &reading);
    assert_eq!((found.len(), pages(&found)[0].cut, pages(&found)[0].body.bytes()), (parts.len() + 1, true, 1000));
}

fn request(method: &str, id: &str, url: &str, fields: &str) -> Vec<u8> {
    record("request", &(named(id, url) + fields), format!("{method} / HTTP/1.1\r\nHost: a\r\n\r\n").as_bytes())
}

fn response(id: &str, url: &str, fields: &str) -> Vec<u8> {
    record("response", &(named(id, url) + fields), &html(&format!("<p>{id}")))
}

fn with(id: &str) -> String {
    format!("WARC-Concurrent-To: <urn:{id}>\r\n")
}

/// Which pages are answers to GET, by the last part of their ids.
fn of_get(records: &[Vec<u8>]) -> String {
    let sign = |page: &&Page| if page.is_of_get { 'g' } else { 'p' };
    pages(&items(records)).iter().map(sign).collect()
}

#[test]
fn requests_say_which_pages_are_answers_to_get() {
    let (u, v) = ("http://a.example/u", "http://a.example/v");
    let metadata = || record("metadata", &(named("m", u) + &with("1")), b"fetchTimeMs: 1");
    // By id: in either direction, before and after, beside and apart.
    assert_eq!(of_get(&[response("1", u, ""), request("POST", "2", u, &with("1"))]), "p");
    assert_eq!(of_get(&[request("POST", "2", u, &with("1")), response("1", u, "")]), "p");
    assert_eq!(of_get(&[response("1", u, &with("2")), request("POST", "2", u, "")]), "p");
    assert_eq!(of_get(&[request("PUT", "2", u, ""), response("1", u, &with("2"))]), "p");
    assert_eq!(of_get(&[response("1", u, &(with("9") + &with("2"))), request("POST", "2", u, "")]), "p");
    let apart = [
        response("1", u, ""),
        response("3", u, ""),
        request("GET", "4", u, &with("3")),
        metadata(),
        request("POST", "2", u, &with("1")),
    ];
    assert_eq!(of_get(&apart), "pg");
    let before = [
        request("POST", "2", u, &with("1")),
        request("GET", "4", u, &with("3")),
        response("3", u, ""),
        response("5", v, ""),
        response("1", u, ""),
    ];
    assert_eq!(of_get(&before), "ggp");
    // By place: the request before or after, of the same URL.
    assert_eq!(of_get(&[response("1", u, ""), request("POST", "2", u, "")]), "p");
    assert_eq!(of_get(&[response("1", u, ""), metadata(), request("POST", "2", u, "")]), "p");
    assert_eq!(of_get(&[request("POST", "2", u, ""), metadata(), response("1", u, "")]), "p");
    let (get, post) = (|| request("GET", "2", u, ""), || request("POST", "4", u, ""));
    let (one, two) = (|| response("1", u, ""), || response("3", u, ""));
    assert_eq!(of_get(&[one(), post(), two(), get()]), "pg");
    assert_eq!(of_get(&[one(), get(), two(), post()]), "gp");
    assert_eq!(of_get(&[post(), one(), get(), two()]), "pg");
    assert_eq!(of_get(&[get(), one(), post(), two()]), "gp");
    // A form that leads back to its own URL: the answer to POST is not a page.
    let found = record("response", &named("1", u), b"HTTP/1.1 302 Found\r\nLocation: /u\r\n\r\n");
    assert_eq!(of_get(&[found.clone(), post(), two(), get()]), "g");
    assert_eq!(of_get(&[post(), found, get(), two()]), "g");
    // Of another URL, of another record, or none.
    assert_eq!(of_get(&[request("POST", "2", v, ""), response("1", u, ""), request("POST", "3", v, "")]), "g");
    assert_eq!(of_get(&[request("POST", "2", u, &with("7")), response("1", u, "")]), "g");
    assert_eq!(of_get(&[one(), two()]), "gg");
}

#[test]
fn a_page_waits_for_its_request_for_a_bounded_time() {
    let file = |between: usize| -> Vec<Vec<u8>> {
        let mut records = vec![response("1", "http://a.example/u", "")];
        records.extend((0..between).map(other_page));
        records.push(request("POST", "2", "http://a.example/u", &with("1")));
        records
    };
    assert!(of_get(&file(15)).starts_with('p'));
    assert!(of_get(&file(40)).starts_with('g'));
}

#[test]
fn a_response_is_http_if_it_begins_so_whatever_its_label_says() {
    let of = |kind: &str, label: &str, block: &[u8]| {
        let fields = named("1", "http://a.example/") + &format!("Content-Type: {label}\r\n");
        items(&[record(kind, &fields, block)])
    };
    for label in
        ["text/html", "message/http", "application/http", "application/http; msgtype=response", "text/plain", "", "x"]
    {
        assert_eq!(texts(&of("response", label, &html("<p>words"))), [("<p>words".to_owned(), false)], "{label}");
        let gone = of("response", label, b"HTTP/1.1 404 Not Found\r\nContent-Type: text/html\r\n\r\n<p>");
        assert!(matches!(gone[..], [Item::Failed(_)]), "{label}: {gone:?}");
    }
    assert_eq!(texts(&of("response", "text/html", b"<p>HTTP/1.1")), [("<p>HTTP/1.1".to_owned(), false)]);
    assert_eq!(
        texts(&of("response", "text/html", b"HTTP/ is a protocol")),
        [("HTTP/ is a protocol".to_owned(), false)]
    );
    let charset = of("response", "text/html", b"HTTP/1.1 200 OK\r\nContent-Type: text/html; charset=koi8-r\r\n\r\n<p>");
    assert_eq!(pages(&charset)[0].charset.as_deref(), Some("koi8-r"));
    // A resource has no head.
    assert_eq!(
        texts(&of("resource", "text/html", b"HTTP/1.1 200 OK\r\n\r\n")),
        [("HTTP/1.1 200 OK\r\n\r\n".to_owned(), false)]
    );
    assert_eq!(texts(&of("resource", "", b"<!doctype html><p>words")), [("<!doctype html><p>words".to_owned(), false)]);
    assert!(matches!(of("resource", "", b"words")[..], [Item::Skip(_)]));
}

#[test]
fn records_of_other_schemes_are_passed_over() {
    let of = |kind: &str, url: &str| {
        let fields = named("1", url) + "Content-Type: text/html\r\n";
        items(&[record(kind, &fields, b"<p>words")]).remove(0)
    };
    for url in [
        "onreadydom:http://a.example/",
        "ftp://a.example/x.html",
        "file:///C:/x.html",
        "urn:text:http://a.example/",
        "gemini://a.example/",
        "data:text/html,x",
        "dns:a.example",
        "screenshot:https://a.example/",
        "x-app.y://a",
    ] {
        for kind in ["response", "resource", "conversion", "revisit"] {
            assert!(matches!(of(kind, url), Item::Skip(skipped) if skipped.why == Skip::Scheme), "{kind} {url}");
        }
        assert!(matches!(of("metadata", url), Item::Skip(skipped) if skipped.why == Skip::RecordType), "{url}");
    }
    // What is not a URL is left to the caller, which may want one.
    for url in [
        "HTTP://a.example/",
        "https://a.example/",
        "a.example/x",
        "a.example:80/x",
        "localhost:8080",
        "C:\\x.html",
        "//a",
    ] {
        assert!(matches!(of("resource", url), Item::Page(page) if page.url.as_deref() == Some(url)), "{url}");
    }
}

#[test]
fn pages_with_different_bytes_in_their_urls_are_two() {
    let of = |byte: u8| {
        let fields =
            [b"WARC-Target-URI: http://a.example/caf".as_slice(), &[byte], b"\r\nContent-Type: text/html\r\n"].concat();
        let head = [b"WARC/1.0\r\nWARC-Type: resource\r\nContent-Length: 3\r\n", &fields[..], b"\r\n<p>\r\n\r\n"];
        head.concat()
    };
    let found = items(&[of(0xe9), of(0xe8)]);
    let urls: Vec<_> = pages(&found).iter().map(|page| page.url.clone().unwrap()).collect();
    assert_eq!(urls, ["http://a.example/caf%E9", "http://a.example/caf%E8"]);
}

#[test]
fn old_arc_files_are_read_and_lose_only_bad_records() {
    let block = "HTTP/1.0 200 OK\r\nContent-Type: text/html\r\n\r\n<p>words";
    let line = |number: usize, middle: &str, length: usize| {
        format!("http://a.example/{number} {middle} text/html {length}\n{block}\n")
    };
    let middles = [
        "192.0.2.1 200008230541",
        "192.0.2.1 2000082305410012",
        "- 20000823054100",
        "192.0.2.1 20000823054100x",
        "192.0.2.1 39a36d4f",
        "20000823054100 192.0.2.1",
    ];
    let head = "filedesc:// - - - 15\n1 0 Alexa\nURL \n\n";
    let mut file = head.to_owned();
    for (number, middle) in middles.iter().enumerate() {
        file += &line(number, middle, block.len());
    }
    for file in [file.clone().into_bytes(), gzip(file.as_bytes())] {
        let found = items_with(Dialect::Arc, &file, &Reading::default());
        let dates: Vec<_> = pages(&found).iter().map(|page| page.fetched.map(|time| time / 1_000_000)).collect();
        let time = Some(967_009_260);
        assert_eq!(dates, [time, time, time, time, None, time], "{found:?}");
        assert!(found.iter().all(|item| !matches!(item, Item::Reject(_))), "{found:?}");
        assert!(pages(&found).iter().all(|page| page.body == Body::Html(b"<p>words".to_vec())));
    }
    // After a wrong length, the next line with an address and a date.
    let file = line(0, middles[0], block.len()) + &line(1, middles[0], 20) + &line(2, middles[0], block.len());
    let found = items_with(Dialect::Arc, file.as_bytes(), &Reading::default());
    assert_eq!((found.len(), pages(&found).len()), (3, 2), "{found:?}");
}

/// What a server of HTTP/0.9 sends has no head: the line says what it is.
#[test]
fn arc_records_without_an_http_head_are_what_their_line_says() {
    let file = |media: &str, block: &str| {
        format!("http://a.example/ 192.0.2.1 20000823054100 {media} {}\n{block}\n", block.len()).into_bytes()
    };
    let item = |media: &str, block: &str| {
        let mut items = items_with(Dialect::Arc, &file(media, block), &Reading::default());
        assert_eq!(items.len(), 1, "{items:?}");
        items.remove(0)
    };
    for media in ["text/html", "Text/HTML; charset=koi8-r", "text/html 200 - - 0 x.arc.gz"] {
        let Item::Page(page) = item(media, "<p>words") else { panic!("{media}") };
        assert_eq!((page.media_type.as_deref(), page.body), (Some("text/html"), Body::Html(b"<p>words".to_vec())));
        assert_eq!(page.charset.as_deref(), media.contains("koi8").then_some("koi8-r"));
    }
    assert!(matches!(item("image/gif", "GIF89a"), Item::Skip(skipped) if skipped.why == Skip::MediaType));
    assert!(matches!(item("no-type", "<p>words"), Item::Reject(_)));
    // Where a head begins, it must be one.
    for block in ["HTTP/1.0\r\n\r\n<p>words", "http/1.0 OK\r\n\r\n<p>words"] {
        assert!(matches!(item("text/html", block), Item::Reject(_)), "{block}");
    }
    assert!(matches!(item("text/html", "HTTP/1.0 404 No\r\n\r\n<p>words"), Item::Failed(_)));
}

#[test]
fn zeros_inside_of_a_member_are_padding() {
    let of_page = |name: &str| record("response", &named(name, &format!("http://a.example/{name}")), &html("<p>words"));
    let padded = |padding: &[u8]| {
        let first = gzip(&[of_page("a"), padding.to_vec()].concat());
        [first, gzip(&of_page("b"))].concat()
    };
    for padding in [&[0; 1][..], &[0; 700], b"\0\r\n\0", b"\r\n\0\0"] {
        let found = items_with(Dialect::Warc, &padded(padding), &Reading::default());
        assert_eq!((found.len(), pages(&found).len()), (2, 2), "{padding:?}: {found:?}");
    }
    // Other bytes can be damage.
    let found = items_with(Dialect::Warc, &padded(b"\0x"), &Reading::default());
    assert!(found.iter().any(|item| matches!(item, Item::Reject(_))), "{found:?}");
}

#[test]
fn what_answers_head_is_no_page() {
    let u = "http://a.example/u";
    let skips = |records: &[Vec<u8>]| {
        let is_skip = |item: &&Item| matches!(item, Item::Skip(skipped) if skipped.why == Skip::Head);
        (items(records).iter().filter(is_skip).count(), of_get(records))
    };
    for records in [
        [response("1", u, ""), request("HEAD", "2", u, &with("1"))],
        [response("1", u, ""), request("head", "2", u, "")],
        [request("HEAD", "2", u, ""), response("1", u, "")],
        [request("HEAD", "2", u, &with("1")), response("1", u, "")],
    ] {
        assert_eq!(skips(&records), (1, String::new()));
    }
    let apart = [request("HEAD", "2", u, &with("1")), response("3", u, ""), response("1", u, "")];
    assert_eq!(skips(&apart), (1, "g".to_owned()));
}

#[test]
fn a_damaged_member_gives_none_of_its_records_and_a_reject_with_the_first_url() {
    let page = |n: usize| {
        let text = format!("<p>page {n} of {} and {}", n * 7919, n * 104_729);
        record("response", &named(&n.to_string(), &format!("http://a.example/{n}")), &html(&text))
    };
    let member = |numbers: Range<usize>| gzip(&numbers.flat_map(page).collect::<Vec<u8>>());
    let read = |members: &[&Vec<u8>]| {
        let file: Vec<u8> = members.iter().flat_map(|member| member.iter().copied()).collect();
        items_with(Dialect::Warc, &file, &Reading::default())
    };
    let (first, second, third) = (member(0..1), member(1..11), member(11..21));
    let (whole, without) = (texts(&read(&[&first, &second, &third])), texts(&read(&[&first, &third])));
    assert_eq!((whole.len(), without.len()), (21, 11));
    let mut damaged = 0;
    for place in (10..second.len()).step_by(3) {
        let mut bad = second.clone();
        bad[place] ^= 1;
        let items = read(&[&first, &bad, &third]);
        let (found, rejects) = (texts(&items), items.iter().filter(|item| matches!(item, Item::Reject(_))).count());
        // Some bits have no meaning.
        assert!(found == without && rejects == 1 || found == whole && rejects == 0, "{place} {items:?}");
        damaged += rejects;
    }
    assert!(damaged > 50, "{damaged}");

    let large = record("response", &named("1", "http://a.example/1"), &html(&"x".repeat(9 << 20)));
    let of_large = "gzip: damaged member (what was read of it may be wrong)";
    for (mut bad, pages, reason) in
        [(member(1..2), 10, "gzip: damaged member"), (gzip(&[page(0), large].concat()), 11, of_large)]
    {
        let checksum = bad.len() - 8;
        bad[checksum] ^= 1;
        let items = read(&[&bad, &third]);
        assert_eq!(texts(&items).len(), pages);
        let rejects = items.iter().filter_map(|item| if let Item::Reject(reject) = item { Some(reject) } else { None });
        let rejects: Vec<_> = rejects.map(|reject| (reject.url.as_deref(), reject.reason.as_str())).collect();
        assert_eq!(rejects, [(Some("http://a.example/1"), reason)]);
    }
}
