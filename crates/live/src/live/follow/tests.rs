//! Files that grow in pieces, are cut, replaced, or refused.

use std::io::Write;

use super::*;
use crate::live::refusal::Refusal;
use crate::records::{DocumentKey, mix};

/// A folder, and what was taken of its files.
struct Followed {
    folder: tempfile::TempDir,
    follower: Follower,
    /// What the journal has of the places, as it is written there.
    journal: BTreeMap<String, String>,
    lines: Vec<String>,
    bad: Vec<String>,
}

impl Followed {
    fn new(documents: DocumentKey) -> Followed {
        let folder = tempfile::tempdir().unwrap();
        let limits = Limits { line_bytes: 2000, batch_bytes: 3000, records: 10 };
        let method = Method { documents, ..Method::default() };
        let mut follower = Follower::new(folder.path(), method, limits, BTreeMap::new()).unwrap();
        follower.quiet = Duration::from_secs(3600);
        Followed { folder, follower, journal: BTreeMap::new(), lines: Vec::new(), bad: Vec::new() }
    }

    fn append(&self, name: &str, bytes: &[u8]) {
        let path = self.folder.path().join(name);
        File::options().create(true).append(true).open(path).unwrap().write_all(bytes).unwrap();
    }

    /// Looks once. Returns what went wrong.
    fn faults(&mut self) -> Vec<String> {
        let (lines, bad, journal) = (&mut self.lines, &mut self.bad, &mut self.journal);
        self.follower.look(&mut |part| {
            let records = part.lines.split(|byte| *byte == b'\n').filter(|line| !line.is_empty());
            lines.extend(records.map(|line| String::from_utf8(line.to_vec()).unwrap()));
            bad.extend(part.bad.iter().cloned());
            journal.insert(part.file.clone(), serde_json::to_string(&part.next).unwrap());
            Ok(())
        })
    }

    fn look(&mut self) {
        assert_eq!(self.faults(), Vec::<String>::new());
    }

    /// As a process that starts again goes on: with the places of the journal alone.
    fn start_again(&mut self) {
        self.follower.state_at_last_look.clear();
        let read = |(name, place): (&String, &String)| (name.clone(), serde_json::from_str(place).unwrap());
        self.follower.places = self.journal.iter().map(read).collect();
    }
}

fn record(id: usize) -> String {
    format!("{{\"id\":{id},\"text\":\"one two {id}\"}}")
}

fn response(number: usize) -> Vec<u8> {
    let block = format!("HTTP/1.1 200 OK\r\nContent-Type: text/html; charset=iso-8859-1\r\n\r\n<p>caf\u{e9} {number}");
    // In Latin-1 the letter is one byte.
    let block: Vec<u8> = block.chars().map(|letter| letter as u8).collect();
    let head = format!(
        "WARC/1.0\r\nWARC-Type: response\r\nWARC-Record-ID: <urn:x:{number}>\r\nWARC-Date: 2024-01-02T03:04:05Z\r\n\
         WARC-Target-URI: http://a.example/{number}\r\nContent-Type: application/http\r\nContent-Length: {}\r\n\r\n",
        block.len()
    );
    [head.as_bytes(), &block, b"\r\n\r\n"].concat()
}

fn gzipped(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

#[test]
fn lines_count_when_their_end_is_there() {
    let mut followed = Followed::new(DocumentKey::Id);
    let all: String = (0..9).map(|id| record(id) + "\n").collect();
    // Whatever the pieces are in which they are written.
    for piece in [1, 7, 50, 400] {
        followed.lines.clear();
        let name = format!("{piece}.jsonl");
        for (number, part) in all.as_bytes().chunks(piece).enumerate() {
            followed.append(&name, part);
            followed.look();
            let written = (number * piece + part.len()).min(all.len());
            assert_eq!(followed.lines.len(), all[..written].matches('\n').count());
            if number % 3 == 0 {
                followed.start_again();
            }
        }
        assert_eq!(followed.lines.join("\n") + "\n", all);
    }
    // A last line without an end counts when the file stopped growing, if it is whole.
    followed.append("7.jsonl", record(10).as_bytes());
    followed.append("50.jsonl", b"{\"id\":11,");
    followed.look();
    assert_eq!(followed.lines.len(), 9);
    followed.follower.quiet = Duration::ZERO;
    followed.look();
    assert_eq!((followed.lines.len(), &followed.lines[9]), (10, &record(10)));
    followed.append("50.jsonl", b"\"text\":\"\"}\n");
    followed.look();
    assert_eq!(followed.lines[10], "{\"id\":11,\"text\":\"\"}");
    assert_eq!(followed.bad, Vec::<String>::new());
}

#[test]
fn bad_lines_are_named_and_passed_over() {
    let mut followed = Followed::new(DocumentKey::Id);
    let long = format!("{{\"id\":1,\"text\":\"{}\"}}", "x".repeat(5000));
    followed.append("a.jsonl", format!("{}\nnot JSON\n\n{long}\n{}\n", record(1), record(2)).as_bytes());
    followed.append("b.jsonl", &long.as_bytes()[..4000]);
    followed.append(".hidden.jsonl", record(3).as_bytes());
    followed.append("notes.txt", b"dear diary\n");
    followed.look();
    assert_eq!(followed.lines, [record(1), record(2)]);
    assert!(followed.bad[0].starts_with("a.jsonl, byte 28: not a JSON object"), "{:?}", followed.bad);
    assert!(followed.bad[1].starts_with("a.jsonl, byte 38: the line has more than 2000"), "{:?}", followed.bad);
    // The rest of a long line comes later.
    followed.append("b.jsonl", format!("{}\n{}\n", &long[4000..], record(4)).as_bytes());
    followed.look();
    assert!(followed.lines[2..] == [record(4)] && followed.bad.len() == 3, "{:?}", followed.bad);
    std::fs::write(followed.folder.path().join("a.jsonl"), "short").unwrap();
    followed.append("c.jsonl", (record(5) + "\n").as_bytes());
    let [fault] = &followed.faults()[..] else { panic!("one fault") };
    assert!(fault.contains("a.jsonl: the file was cut") && fault.contains("may only grow"), "{fault}");
    assert_eq!(followed.lines[3], record(5), "other files are read");
    // It is the same fault while the file grows again, so it is said once.
    followed.append("a.jsonl", b", and longer\n");
    assert_eq!(followed.faults(), [fault.as_str()]);
}

#[test]
fn a_part_that_is_not_taken_is_given_again() {
    let mut followed = Followed::new(DocumentKey::Id);
    let all: Vec<String> = (0..300).map(record).collect();
    followed.append("a.jsonl", (all.join("\n") + "\n").as_bytes());
    let mut taken = Vec::new();
    for turn in 0.. {
        let mut given = 0;
        let looked = followed.follower.look(&mut |part| {
            given += 1;
            if turn < 4 && given > turn {
                return Err(Refusal::unable("the disk is full"));
            }
            taken.extend(String::from_utf8(part.lines.clone()).unwrap().lines().map(str::to_owned));
            Ok(())
        });
        if looked.is_empty() {
            break;
        }
        assert!(looked[0].contains("a.jsonl: the disk is full"), "{looked:?}");
        followed.follower.state_at_last_look.clear();
    }
    assert_eq!(taken, all);
}

#[test]
fn pages_of_archives_that_grow_are_taken_once() {
    let urls = |count: usize| (0..count).map(|number| format!("http://a.example/{number}")).collect::<Vec<_>>();
    for (name, is_packed) in [("a.warc", false), ("a.warc.gz", true)] {
        for piece in [100, 1000] {
            let mut followed = Followed::new(DocumentKey::Url);
            let records = (0..6).map(response);
            let records = records.map(|record| if is_packed { gzipped(&record) } else { record });
            let all: Vec<u8> = records.flatten().collect();
            for part in all.chunks(piece) {
                followed.append(name, part);
                followed.look();
                followed.start_again();
            }
            followed.follower.quiet = Duration::ZERO;
            followed.look();
            followed.start_again();
            followed.look();
            assert_eq!(urls_of(&followed.lines), urls(6), "{name} {piece}");
            assert!(followed.lines[0].contains("<p>caf\u{e9} 0"), "{}", followed.lines[0]);
            assert_eq!(followed.bad, Vec::<String>::new());
        }
    }
    // A file that is one member.
    let mut followed = Followed::new(DocumentKey::Url);
    followed.append("a.warc.gz", &gzipped(&(0..4).flat_map(response).collect::<Vec<u8>>()));
    followed.follower.quiet = Duration::ZERO;
    for _ in 0..3 {
        followed.look();
        followed.start_again();
    }
    assert_eq!(urls_of(&followed.lines), urls(4));
    let mut of_ids = Followed::new(DocumentKey::Id);
    of_ids.append("a.warc", &response(1));
    assert!(of_ids.faults()[0].contains("have no ids"));
}

/// The URLs of what was taken, in order.
fn urls_of(lines: &[String]) -> Vec<String> {
    let url =
        |line: &String| serde_json::from_str::<serde_json::Value>(line).unwrap()["url"].as_str().unwrap().to_owned();
    lines.iter().map(url).collect()
}

#[test]
fn pages_of_members_with_several_records_are_taken_once() {
    // As `gzip -c part.warc >>all.warc.gz` makes them: places in the first member are not those of
    // the file.
    for members in [&[8, 2, 1, 3][..], &[1, 6, 6, 1], &[1, 1, 9, 3], &[14]] {
        for piece in [17, 150, 400, 5000] {
            for starts_again in [false, true] {
                let mut followed = Followed::new(DocumentKey::Url);
                let mut next = 0..14;
                let member = |count: &usize| {
                    // A page is longer than its compressed form, so that places of both kinds
                    // differ.
                    let long = |number: usize| {
                        let text = format!("{number} ").repeat(300);
                        let block = format!("HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n\r\n<p>{text}");
                        format!(
                            "WARC/1.0\r\nWARC-Type: response\r\nWARC-Record-ID: <urn:x:{number}>\r\n\
                             WARC-Date: 2024-01-02T03:04:05Z\r\nWARC-Target-URI: http://a.example/{number}\r\n\
                             Content-Type: application/http\r\nContent-Length: {}\r\n\r\n{block}\r\n\r\n",
                            block.len()
                        )
                    };
                    gzipped(next.by_ref().take(*count).map(long).collect::<String>().as_bytes())
                };
                let all: Vec<u8> = members.iter().flat_map(member).collect();
                let what = format!("{members:?} {piece} {starts_again}");
                for part in all.chunks(piece) {
                    followed.append("a.warc.gz", part);
                    followed.look();
                    if starts_again {
                        followed.start_again();
                    }
                }
                followed.follower.quiet = Duration::ZERO;
                (0..2).for_each(|_| followed.look());
                assert_eq!(followed.bad, Vec::<String>::new(), "{what}");
                let wanted: Vec<String> = (0..14).map(|number| format!("http://a.example/{number}")).collect();
                assert_eq!(urls_of(&followed.lines), wanted, "{what}");
            }
        }
    }
}

#[test]
fn a_file_that_was_cut_or_replaced_is_not_taken_for_one_that_grew() {
    let lines = |from: usize, count: usize| (from..from + count).map(|id| record(id) + "\n").collect::<String>();
    let pages = |from: usize, count: usize| (from..from + count).flat_map(|id| gzipped(&response(id))).collect();
    let member = |from: usize, count: usize| gzipped(&(from..from + count).flat_map(response).collect::<Vec<u8>>());
    let longer = format!("{}{{\"id\":\"{}\",\"text\":\"\"}}\n", lines(0, 200), "q".repeat(1900));
    for (name, before, now) in [
        ("cut and written again.jsonl", lines(0, 20).into_bytes(), lines(50, 30).into_bytes()),
        ("of the same length.jsonl", lines(10, 20).into_bytes(), lines(50, 20).into_bytes()),
        ("cut.jsonl", lines(0, 20).into_bytes(), lines(0, 10).into_bytes()),
        ("cut in the middle.jsonl", lines(0, 500).into_bytes(), (lines(0, 250) + &lines(600, 300)).into_bytes()),
        ("another line in the end.jsonl", longer.clone().into_bytes(), longer.replace('q', "z").into_bytes()),
        ("replaced.warc.gz", pages(0, 3), pages(10, 9)),
        ("one member.warc.gz", member(0, 3), member(20, 9)),
    ] {
        let by = if name.ends_with("gz") { DocumentKey::Url } else { DocumentKey::Id };
        let mut followed = Followed::new(by);
        followed.follower.quiet = Duration::ZERO;
        followed.append(name, &before);
        followed.look();
        let taken = followed.lines.len();
        assert!(taken > 0, "{name}");
        let path = followed.folder.path().join(name);
        std::fs::write(&path, &now).unwrap();
        // The time of a file may be coarse.
        let before = SystemTime::now() - Duration::from_secs(5);
        File::options().write(true).open(&path).unwrap().set_modified(before).unwrap();
        for _ in 0..2 {
            let faults = followed.faults();
            assert!(faults.len() == 1 && faults[0].contains("may only grow") && faults[0].contains(name), "{faults:?}");
            followed.start_again();
        }
        assert_eq!(followed.lines.len(), taken, "{name}");
        // With another name it is read.
        std::fs::rename(&path, followed.folder.path().join(format!("new {name}"))).unwrap();
        followed.look();
        assert!(followed.lines.len() > taken, "{name}");
    }
}

#[test]
fn each_file_that_cannot_be_read_is_named() {
    use std::os::unix::ffi::OsStrExt as _;
    let mut followed = Followed::new(DocumentKey::Id);
    followed.append("a.jsonl", (record(1) + "\n").as_bytes());
    followed.append("b.warc", &response(1));
    followed.append("c.warc", &response(2));
    let name = std::ffi::OsStr::from_bytes(b"\xff.jsonl");
    std::fs::write(followed.folder.path().join(name), record(2)).unwrap();
    let faults = followed.faults();
    assert_eq!(faults.len(), 3, "{faults:?}");
    for (fault, wanted) in faults.iter().zip(["not UTF-8", "b.warc: pages of WARC files have no ids", "c.warc"]) {
        assert!(fault.contains(wanted), "{fault}");
    }
    assert_eq!(followed.lines, [record(1)]);
}

/// A record of a page with more fields in its head, and all bytes of its block.
fn page_record(number: usize, kind: &str, fields: &str, block: &str) -> Vec<u8> {
    let head = format!(
        "WARC/1.0\r\nWARC-Type: {kind}\r\nWARC-Record-ID: <urn:x:{number}>\r\nWARC-Date: 2024-01-02T03:04:05Z\r\n\
         WARC-Target-URI: http://a.example/{number}\r\nContent-Type: application/http\r\n{fields}Content-Length: {}\r\n\r\n",
        block.len()
    );
    format!("{head}{block}\r\n\r\n").into_bytes()
}

#[test]
fn a_last_page_that_is_cut_is_taken_when_the_file_is_quiet() {
    const HEAD: &str = "HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n";
    let page = |fields: &str| format!("{HEAD}{fields}\r\n<p>some words of a page");
    // Its download was cut; it ends inside a chunk; it is longer than pages may be; later segments
    // are not there.
    let long = page("") + &"long ".repeat(4 << 20);
    let cut = [
        page_record(1, "response", "WARC-Truncated: length\r\n", &page("")),
        page_record(1, "response", "", &format!("{HEAD}Transfer-Encoding: chunked\r\n\r\n40\r\n<p>some words")),
        page_record(1, "response", "", &long),
        page_record(1, "response", "WARC-Segment-Number: 1\r\n", &page("")),
    ];
    for (case, record) in cut.iter().enumerate() {
        for is_packed in [false, true] {
            let mut followed = Followed::new(DocumentKey::Url);
            let name = if is_packed { "a.warc.gz" } else { "a.warc" };
            let packed = |record: &[u8]| if is_packed { gzipped(record) } else { record.to_vec() };
            followed.append(name, &[packed(&response(0)), packed(record)].concat());
            followed.look();
            assert_eq!(urls_of(&followed.lines), [""; 0], "the request of the first page may follow: {case}");
            followed.follower.quiet = Duration::ZERO;
            for _ in 0..2 {
                followed.look();
                followed.start_again();
            }
            // What comes later is taken, and nothing twice.
            let fields = "WARC-Segment-Number: 2\r\nWARC-Segment-Origin-ID: <urn:x:1>\r\n";
            followed.append(name, &packed(&page_record(2, "continuation", fields, "more words")));
            followed.append(name, &packed(&response(3)));
            for _ in 0..2 {
                followed.look();
                followed.start_again();
            }
            let wanted = [0, 1, 3].map(|number| format!("http://a.example/{number}"));
            assert_eq!(urls_of(&followed.lines), wanted, "{case} {is_packed}");
            assert_eq!(followed.bad, Vec::<String>::new(), "{case} {is_packed}");
        }
    }
}

#[test]
fn a_file_that_is_replaced_while_it_is_opened_is_not_read_from_the_old_place() {
    let followed = Followed::new(DocumentKey::Url);
    followed.append("a.warc", &[response(0), response(1)].concat());
    followed.append("b.warc", &[response(7), response(8), response(9)].concat());
    let [path, other] = ["a.warc", "b.warc"].map(|name| followed.folder.path().join(name));
    for is_replaced in [false, true] {
        let file = File::open(&path).unwrap();
        let size = file.metadata().unwrap().len();
        let seen = Seen::of(&file, size).unwrap();
        let place = Place { at: response(0).len() as u64, items: 0, back: 0, seen };
        if is_replaced {
            std::fs::rename(&other, &path).unwrap();
        }
        let tail = Tail { name: "a.warc".to_owned(), path: path.clone(), file, place, size, is_quiet: true, seen };
        let mut lines = Vec::new();
        let result = tail.pages(&followed.follower, &mut |part: &Part| {
            lines.extend(String::from_utf8(part.lines.clone()).unwrap().lines().map(str::to_owned));
            Ok(())
        });
        if is_replaced {
            assert!(lines.is_empty());
            let error = result.unwrap_err().to_string();
            assert!(error.contains("another file was given this name"), "{error}");
        } else {
            result.unwrap();
            assert_eq!(urls_of(&lines), ["http://a.example/1"]);
        }
    }
}

#[test]
fn requests_count_wherever_they_stand_and_whenever_they_were_read() {
    const PAGE: &str = "HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n\r\n<p>some words of a page";
    let page = |number: usize| page_record(number, "response", "", PAGE);
    let request = |of: usize, method: &str| {
        let fields = format!("WARC-Concurrent-To: <urn:x:{of}>\r\n");
        page_record(100 + of, "request", &fields, &format!("{method} / HTTP/1.1\r\n\r\n"))
    };
    // Behind their responses; before one, with others between; and of one that follows at once.
    let mut records = vec![page(0), request(0, "GET"), page(1), request(1, "POST"), request(2, "POST"), page(3)];
    records.extend([page(4), page(2), page(5), request(5, "HEAD"), page(6)]);
    let many = (7..60).flat_map(|number| [page(number), request(number, if number % 3 == 0 { "POST" } else { "GET" })]);
    records.extend(many);
    let wanted: Vec<String> = [0, 3, 4, 6]
        .into_iter()
        .chain((7..60).filter(|number| number % 3 > 0))
        .map(|number| format!("http://a.example/{number}"))
        .collect();
    for (name, packed) in [("a.warc", false), ("a.warc.gz", true)] {
        let records = records.iter().map(|record| if packed { gzipped(record) } else { record.clone() });
        let all: Vec<u8> = records.flatten().collect();
        for piece in [170, 1111, 5000, all.len()] {
            let mut followed = Followed::new(DocumentKey::Url);
            for part in all.chunks(piece) {
                followed.append(name, part);
                followed.look();
                followed.start_again();
            }
            followed.follower.quiet = Duration::ZERO;
            for _ in 0..2 {
                followed.look();
                followed.start_again();
            }
            assert_eq!(urls_of(&followed.lines), wanted, "{name} {piece}");
            assert_eq!(followed.bad, Vec::<String>::new());
        }
    }
}

#[test]
fn requests_count_beyond_the_bytes_that_are_read_again() {
    const COUNT: usize = 90;
    let request = |of: usize| {
        let (fields, method) =
            (format!("WARC-Concurrent-To: <urn:x:{of}>\r\n"), if of % 5 == 2 { "POST" } else { "GET" });
        page_record(1000 + of, "request", &fields, &format!("{method} / HTTP/1.1\r\n\r\n"))
    };
    let page = |number: usize| {
        let words = (0..1500).map(|word| format!("{:x} ", mix((number * 1500 + word) as u64)));
        let block = format!("HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n\r\n{}", words.collect::<String>());
        page_record(number, "response", "", &block)
    };
    // Each second request stands behind its response, the others before the page before theirs.
    let records = (0..COUNT).step_by(2).flat_map(|at| [request(at + 1), page(at), request(at), page(at + 1)]);
    let records: Vec<Vec<u8>> = records.collect();
    let wanted: Vec<String> =
        (0..COUNT).filter(|number| number % 5 != 2).map(|number| format!("http://a.example/{number}")).collect();
    for name in ["a.warc", "a.warc.gz"] {
        let packed = records.iter().map(|record| if name == "a.warc" { record.clone() } else { gzipped(record) });
        let all: Vec<u8> = packed.flatten().collect();
        for (piece, is_of_version_before) in [(60_001, false), (200_003, false), (60_001, true)] {
            let mut followed = Followed::new(DocumentKey::Url);
            let mut is_read_from_the_middle = false;
            for part in all.chunks(piece).chain([&[][..]]) {
                followed.append(name, part);
                if part.is_empty() {
                    followed.follower.quiet = Duration::ZERO;
                }
                followed.look();
                for place in followed.journal.values_mut() {
                    let mut fields: serde_json::Value = serde_json::from_str(place).unwrap();
                    let back = fields["back"].as_u64().unwrap_or_default();
                    is_read_from_the_middle |= fields["at"].as_u64().unwrap() > back && back > 0;
                    if is_of_version_before {
                        fields.as_object_mut().unwrap().remove("back");
                    }
                    *place = fields.to_string();
                }
                followed.start_again();
            }
            let mut taken = urls_of(&followed.lines);
            if is_of_version_before {
                // It forgot requests.
                taken.retain(|url| wanted.contains(url));
            }
            assert!(is_read_from_the_middle && taken == wanted, "{name} {piece}: {taken:?}");
            assert_eq!(followed.bad, Vec::<String>::new());
        }
    }
}

#[test]
fn damage_in_an_archive_that_grows_is_passed_over_once() {
    let garbage: Vec<u8> = (0..64 << 10).map(|at| mix(at) as u8).collect();
    let member = |number: usize| {
        let words: String = (0..3000).map(|word| format!("{:x} ", mix((number * 3000 + word) as u64))).collect();
        gzipped(&page_record(
            number,
            "response",
            "",
            &format!("HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n\r\n{words}"),
        ))
    };
    let mut all: Vec<u8> = (0..3).flat_map(member).collect();
    all.extend(garbage);
    all.extend((3..40).flat_map(member));
    let mut followed = Followed::new(DocumentKey::Url);
    for part in all.chunks(70_001).chain([&[][..]]) {
        followed.append("a.warc.gz", part);
        if part.is_empty() {
            followed.follower.quiet = Duration::ZERO;
        }
        followed.look();
        followed.start_again();
    }
    let wanted: Vec<String> = (0..40).map(|number| format!("http://a.example/{number}")).collect();
    assert_eq!(urls_of(&followed.lines), wanted);
    assert!(!followed.bad.is_empty());
}
