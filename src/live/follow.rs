//! A followed folder: files of JSON Lines and WARC files that grow, whose new records become batches.
//!
//! ```text
//! *.jsonl *.ndjson       lines, as of a batch; a line counts when its end is there
//! *.warc *.warc.gz       pages, by their URLs; a record counts when the next one begins, or its length says that it is whole
//! ```
//!
//! The last line or record of a file that has not changed for some seconds counts, too, if it is whole. How far a file was read is written
//! with the batch, in the same record of the journal: so a record is taken once, whenever the process is killed.
//!
//! Files may only grow. A file that becomes shorter is not read any more.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{BufRead, BufReader, Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use anyhow::{Context as _, Result, ensure};

use super::batch::{Limits, read_batch};
use super::refusal::Refusal;
use crate::config::{Method, Reading};
use crate::readers::{self, Body, Format, Input, Item, Location, Page, Reader};
use crate::records::DocumentKey;
use crate::text::charset;

/// The records of a part.
const AT_ONCE: usize = 1000;
/// A file that has not changed for this long is not being written to.
const QUIET: Duration = Duration::from_secs(10);
/// Bad records that are reported of a part.
const REPORTED: usize = 5;

/// A part of a file, as a batch.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Part {
    /// The name of the file in the folder.
    pub file: String,
    /// The lines of the batch.
    pub lines: Vec<u8>,
    /// Where the next part begins.
    pub end: u64,
    /// Why records are passed over, each with its place.
    pub bad: Vec<String>,
}

/// Follows the files of a folder.
pub struct Follower {
    folder: PathBuf,
    method: Method,
    limits: Limits,
    quiet: Duration,
    /// Where the next part of each file begins.
    ends: BTreeMap<String, u64>,
    /// How long a file was when it was read to its end, and whether it was quiet then.
    looked: BTreeMap<String, (u64, bool)>,
}

/// Takes a part: when it returns, the part is in the journal.
pub type TakePart<'a> = dyn FnMut(&Part) -> Result<(), Refusal> + 'a;

impl Follower {
    /// Follows a folder from the places that a journal has.
    ///
    /// # Errors
    /// If it is not a folder.
    pub fn new(folder: &Path, method: Method, limits: Limits, ends: BTreeMap<String, u64>) -> Result<Follower> {
        ensure!(folder.is_dir(), "--follow {}: there is no such folder", folder.display());
        let looked = BTreeMap::new();
        Ok(Follower { folder: folder.to_owned(), method, limits, quiet: QUIET, ends, looked })
    }

    /// Reads what came to the files since the last look, in the order of their names, and gives it to `take` in parts.
    ///
    /// # Errors
    /// If a file cannot be read or has become shorter, or a part is not taken. Other files are read first; the next look tries it again.
    pub fn look(&mut self, take: &mut TakePart<'_>) -> Result<()> {
        let listed =
            std::fs::read_dir(&self.folder).with_context(|| format!("cannot list {}", self.folder.display()))?;
        let mut names: Vec<String> =
            listed.flatten().filter_map(|entry| entry.file_name().into_string().ok()).collect();
        names.sort();
        let mut failed = Ok(());
        for name in names.iter().filter(|name| !name.starts_with('.')) {
            let path = self.folder.join(name);
            let read = match ending(name) {
                Some(Ending::Lines) => self.look_at(name, &path, take, &mut Follower::lines),
                Some(Ending::Warc) => self.look_at(name, &path, take, &mut Follower::pages),
                None => Ok(()),
            };
            failed = failed.and(read.with_context(|| format!("--follow: {}", path.display())));
        }
        failed
    }

    fn look_at(
        &mut self,
        name: &str,
        path: &Path,
        take: &mut TakePart<'_>,
        read: &mut dyn FnMut(&Follower, &Tail, &mut TakePart<'_>) -> Result<u64>,
    ) -> Result<()> {
        let metadata = path.metadata()?;
        let begin = self.ends.get(name).copied().unwrap_or_default();
        let age = metadata.modified().ok().and_then(|time| SystemTime::now().duration_since(time).ok());
        let (size, is_quiet) = (metadata.len(), age.is_some_and(|age| age >= self.quiet));
        if !metadata.is_file()
            || self.looked.get(name).is_some_and(|before| *before == (size, is_quiet) || before == &(size, true))
        {
            return Ok(());
        }
        let is_packed = name.ends_with(".gz");
        ensure!(
            size >= begin || is_packed,
            "the file has {size} bytes, and {begin} were read: files of a followed folder may only grow"
        );
        let tail = Tail { name: name.to_owned(), path: path.to_owned(), begin, size, is_quiet };
        // What was taken stays taken if a later part fails.
        let mut end = begin;
        let result = read(self, &tail, &mut |part| {
            take(part)?;
            end = part.end;
            Ok(())
        });
        if end != begin {
            self.ends.insert(name.to_owned(), end);
        }
        let size = result?;
        self.looked.insert(name.to_owned(), (size, is_quiet));
        Ok(())
    }

    /// Reads lines. Returns the size of the file when its end was seen.
    fn lines(&self, tail: &Tail, take: &mut TakePart<'_>) -> Result<u64> {
        let mut file = File::open(&tail.path)?;
        file.seek(SeekFrom::Start(tail.begin))?;
        let mut file = BufReader::with_capacity(1 << 20, file);
        let (mut parts, mut at) = (Parts::new(self, tail), tail.begin);
        loop {
            let mut line = Vec::new();
            let most = self.limits.line_bytes as u64 + 1;
            let read = (&mut file).take(most).read_until(b'\n', &mut line)? as u64;
            let mut end = at + read;
            let mut is_whole = line.last() == Some(&b'\n');
            let is_long = !is_whole && read == most;
            if is_long {
                // Its end may not be there yet.
                let skipped = skip_line(&mut file)?;
                (end, is_whole) = (end + skipped.bytes, skipped.has_end);
            }
            if read == 0 || (!is_whole && (is_long || !tail.is_quiet)) {
                break;
            }
            if is_long {
                parts.bad(at, end, &format!("the line has more than {} bytes", self.limits.line_bytes));
            } else if let Err(reason) = parts.check(&line) {
                if !is_whole {
                    break;
                }
                parts.bad(at, end, &reason);
            } else {
                parts.add(&line, end);
            }
            at = end;
            parts.give_if_full(take)?;
        }
        parts.give(take)?;
        Ok(tail.size)
    }

    /// Reads the pages of a WARC file. Returns the size of the file when its end was seen.
    fn pages(&self, tail: &Tail, take: &mut TakePart<'_>) -> Result<u64> {
        ensure!(
            self.method.documents == DocumentKey::Url,
            "pages of WARC files have no ids: this store knows documents by ids"
        );
        let mut items = tail.items()?;
        let (mut parts, mut last) = (Parts::new(self, tail), None);
        while let Some(item) = items.next()? {
            if item.offset() < tail.begin {
                continue;
            }
            let begins_at = item.offset();
            if let Some(before) = last.replace(item) {
                parts.item(before, begins_at);
                parts.give_if_full(take)?;
            }
        }
        // The last record may not be whole yet.
        if let Some(Item::Page(page)) = last
            && !page.cut
        {
            let end = page.entry.length.map(|length| page.offset + length);
            if tail.is_quiet || end == Some(tail.size) {
                let end = end.unwrap_or(page.offset + 1);
                parts.item(Item::Page(page), end);
            }
        }
        parts.give(take)?;
        Ok(tail.size)
    }
}

/// What a file holds, by its name.
enum Ending {
    Lines,
    Warc,
}

fn ending(name: &str) -> Option<Ending> {
    let ends = |endings: &[&str]| endings.iter().any(|ending| name.ends_with(ending));
    match name {
        _ if ends(&[".jsonl", ".ndjson"]) => Some(Ending::Lines),
        _ if ends(&[".warc", ".warc.gz"]) => Some(Ending::Warc),
        _ => None,
    }
}

/// What a file has from a place on.
struct Tail {
    name: String,
    path: PathBuf,
    begin: u64,
    size: u64,
    is_quiet: bool,
}

impl Tail {
    /// The items of a WARC file from the place on; of a file that is one gzip member, also those before it.
    fn items(&self) -> Result<Box<dyn Reader>> {
        let input = Input {
            name: self.path.display().to_string(),
            bytes: self.size,
            format: Format::Warc,
            place: Location::File(self.path.clone()),
            page_url: None,
            stamp: String::new(),
        };
        let reading = Reading::default();
        if self.begin > 0
            && let Some(mut items) = readers::open_at(&input, &reading, self.begin)?
        {
            match items.next()? {
                Some(item) if item.offset() == self.begin && !matches!(item, Item::Reject(_)) => {
                    return Ok(Box::new(After { first: Some(item), rest: items }));
                }
                // Nothing came, or only a part of a record.
                None => return Ok(items),
                Some(_) => {}
            }
        }
        readers::open(&input, &reading)
    }
}

/// A reader after its first item was read.
struct After {
    first: Option<Item>,
    rest: Box<dyn Reader>,
}

impl Reader for After {
    fn next(&mut self) -> Result<Option<Item>> {
        match self.first.take() {
            Some(item) => Ok(Some(item)),
            None => self.rest.next(),
        }
    }

    fn position(&self) -> u64 {
        self.rest.position()
    }
}

/// The part that is being made.
struct Parts<'a> {
    follower: &'a Follower,
    part: Part,
    records: usize,
    /// Records that are passed over.
    passed_over: usize,
}

impl<'a> Parts<'a> {
    fn new(follower: &'a Follower, tail: &Tail) -> Parts<'a> {
        let part = Part { file: tail.name.clone(), end: tail.begin, ..Part::default() };
        Parts { follower, part, records: 0, passed_over: 0 }
    }

    /// Why a line is not a record.
    fn check(&self, line: &[u8]) -> Result<(), String> {
        let read = read_batch(line, &self.follower.method, &Limits::none());
        read.map(drop).map_err(|refusal| refusal.text.trim_start_matches("line 1: ").to_owned())
    }

    /// Adds a line that is a record, or empty.
    fn add(&mut self, line: &[u8], end: u64) {
        let line = line.trim_ascii();
        if !line.is_empty() {
            self.part.lines.extend_from_slice(line);
            self.part.lines.push(b'\n');
            self.records += 1;
        }
        self.part.end = end;
    }

    /// Passes over a record.
    fn bad(&mut self, at: u64, end: u64, reason: &str) {
        self.part.end = end;
        self.passed_over += 1;
        if self.passed_over <= REPORTED {
            self.part.bad.push(format!("{}, byte {at}: {reason}", self.part.file));
        }
    }

    /// Adds a page; other items are passed over.
    fn item(&mut self, item: Item, end: u64) {
        let at = item.offset();
        match item {
            Item::Page(page) => {
                let line = line_of(&page);
                match self.check(&line) {
                    Ok(()) => self.add(&line, end),
                    Err(reason) => self.bad(at, end, &reason),
                }
            }
            Item::Reject(reject) => self.bad(at, end, &reject.reason),
            Item::Failed(_) | Item::Revisit(_) | Item::Skip(_) => self.part.end = end,
        }
    }

    fn give_if_full(&mut self, take: &mut TakePart<'_>) -> Result<(), Refusal> {
        let is_full = self.records >= AT_ONCE || self.part.lines.len() >= self.follower.limits.batch_bytes / 2;
        if is_full { self.give(take) } else { Ok(()) }
    }

    fn give(&mut self, take: &mut TakePart<'_>) -> Result<(), Refusal> {
        if self.records == 0 && self.passed_over == 0 {
            return Ok(());
        }
        if self.passed_over > REPORTED {
            let text = format!("{}: {} more records are passed over", self.part.file, self.passed_over - REPORTED);
            self.part.bad.push(text);
        }
        take(&self.part)?;
        (self.part.lines, self.part.bad) = (Vec::new(), Vec::new());
        (self.records, self.passed_over) = (0, 0);
        Ok(())
    }
}

/// A page as a line of a batch.
fn line_of(page: &Page) -> Vec<u8> {
    let label = page.charset.as_deref();
    let (field, text) = match &page.body {
        Body::Html(bytes) => ("html", charset::decode(bytes, label).0),
        Body::Plain(bytes) => ("text", charset::decode(bytes, label).0),
        Body::Text(text) => ("text", text.as_str().into()),
    };
    let mut line = serde_json::json!({ "url": page.url, field: text }).to_string().into_bytes();
    line.push(b'\n');
    line
}

/// What is skipped of a line.
struct SkippedLine {
    bytes: u64,
    has_end: bool,
}

/// Skips the rest of a line.
fn skip_line(file: &mut impl BufRead) -> std::io::Result<SkippedLine> {
    let mut skipped = SkippedLine { bytes: 0, has_end: false };
    loop {
        let buffer = file.fill_buf()?;
        let end = memchr::memchr(b'\n', buffer);
        let bytes = end.map_or(buffer.len(), |end| end + 1);
        file.consume(bytes);
        skipped.bytes += bytes as u64;
        if bytes == 0 || end.is_some() {
            skipped.has_end = end.is_some();
            return Ok(skipped);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;

    /// A folder, and what was taken of its files.
    struct Followed {
        folder: tempfile::TempDir,
        follower: Follower,
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
            Followed { folder, follower, lines: Vec::new(), bad: Vec::new() }
        }

        fn append(&self, name: &str, bytes: &[u8]) {
            let path = self.folder.path().join(name);
            File::options().create(true).append(true).open(path).unwrap().write_all(bytes).unwrap();
        }

        fn look(&mut self) -> Result<()> {
            let (lines, bad) = (&mut self.lines, &mut self.bad);
            self.follower.look(&mut |part| {
                lines.extend(
                    part.lines
                        .split(|byte| *byte == b'\n')
                        .filter(|line| !line.is_empty())
                        .map(|line| String::from_utf8(line.to_vec()).unwrap()),
                );
                bad.extend(part.bad.iter().cloned());
                Ok(())
            })
        }

        /// As a process that starts again goes on: with the places alone.
        fn start_again(&mut self) {
            self.follower.looked.clear();
        }
    }

    fn record(id: usize) -> String {
        format!("{{\"id\":{id},\"text\":\"one two {id}\"}}")
    }

    fn response(number: usize) -> Vec<u8> {
        let block =
            format!("HTTP/1.1 200 OK\r\nContent-Type: text/html; charset=iso-8859-1\r\n\r\n<p>caf\u{e9} {number}");
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
                followed.look().unwrap();
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
        followed.look().unwrap();
        assert_eq!(followed.lines.len(), 9);
        followed.follower.quiet = Duration::ZERO;
        followed.look().unwrap();
        assert_eq!((followed.lines.len(), &followed.lines[9]), (10, &record(10)));
        followed.append("50.jsonl", b"\"text\":\"\"}\n");
        followed.look().unwrap();
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
        followed.look().unwrap();
        assert_eq!(followed.lines, [record(1), record(2)]);
        assert!(followed.bad[0].starts_with("a.jsonl, byte 28: not a JSON object"), "{:?}", followed.bad);
        assert!(followed.bad[1].starts_with("a.jsonl, byte 38: the line has more than 2000"), "{:?}", followed.bad);
        // The rest of a long line comes later.
        followed.append("b.jsonl", format!("{}\n{}\n", &long[4000..], record(4)).as_bytes());
        followed.look().unwrap();
        assert!(followed.lines[2..] == [record(4)] && followed.bad.len() == 3, "{:?}", followed.bad);
        std::fs::write(followed.folder.path().join("a.jsonl"), "short").unwrap();
        followed.append("c.jsonl", (record(5) + "\n").as_bytes());
        let error = format!("{:#}", followed.look().unwrap_err());
        assert!(error.contains("a.jsonl") && error.contains("may only grow"), "{error}");
        assert_eq!(followed.lines[3], record(5), "other files are read");
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
            if looked.is_ok() {
                break;
            }
            followed.start_again();
        }
        assert_eq!(taken, all);
    }

    #[test]
    fn pages_of_archives_that_grow_are_taken_once() {
        let url = |line: &String| {
            serde_json::from_str::<serde_json::Value>(line).unwrap()["url"].as_str().unwrap().to_owned()
        };
        let urls = |count: usize| (0..count).map(|number| format!("http://a.example/{number}")).collect::<Vec<_>>();
        for (name, is_packed) in [("a.warc", false), ("a.warc.gz", true)] {
            for piece in [100, 1000] {
                let mut followed = Followed::new(DocumentKey::Url);
                let records = (0..6).map(response);
                let records = records.map(|record| if is_packed { gzipped(&record) } else { record });
                let all: Vec<u8> = records.flatten().collect();
                for part in all.chunks(piece) {
                    followed.append(name, part);
                    followed.look().unwrap();
                    followed.start_again();
                }
                followed.follower.quiet = Duration::ZERO;
                followed.look().unwrap();
                followed.start_again();
                followed.look().unwrap();
                assert_eq!(followed.lines.iter().map(url).collect::<Vec<_>>(), urls(6), "{name} {piece}");
                assert!(followed.lines[0].contains("<p>caf\u{e9} 0"), "{}", followed.lines[0]);
                assert_eq!(followed.bad, Vec::<String>::new());
            }
        }
        // A file that is one member.
        let mut followed = Followed::new(DocumentKey::Url);
        followed.append("a.warc.gz", &gzipped(&(0..4).flat_map(response).collect::<Vec<u8>>()));
        followed.follower.quiet = Duration::ZERO;
        for _ in 0..3 {
            followed.look().unwrap();
            followed.start_again();
        }
        assert_eq!(followed.lines.iter().map(url).collect::<Vec<_>>(), urls(4));
        let mut of_ids = Followed::new(DocumentKey::Id);
        of_ids.append("a.warc", &response(1));
        assert!(format!("{:#}", of_ids.look().unwrap_err()).contains("have no ids"));
    }
}
