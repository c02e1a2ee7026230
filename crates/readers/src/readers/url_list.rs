//! Lists of URLs: files with one URL in each line, and CDX indexes of crawls, plain or compressed.
//!
//! What a line is shows by itself:
//!
//! ```text
//! http://a.example/b                                                a URL; what follows after white space is passed over
//!  CDX N b a m s k r M S V g                                        the header of a CDX index: `a` is the URL, `s` the status
//! example,a)/b 20240108000000 http://a.example/b text/html 200 …    a line of it, or of one without header
//! example,a)/b 20240108000000 {"url": "http://a.example/b", …}      a line of a CDXJ index
//! ```
//!
//! Blank lines, lines that begin with `#`, `!` or `@`, and headers are passed over. Other lines are
//! refused, and counted.

use anyhow::{Context, Result, bail, ensure};
use nigh_text::text::canonical;
use serde::{Deserialize, Serialize};

use super::fields;
use super::input::{Location, cannot};
use super::opened::source;
use crate::readers::streams::{LineReader, LineStep};

/// The longest line in bytes: a line of a CDXJ index has some fields besides the URL.
const LONGEST: usize = 256 << 10;
/// The fields of a CDX line without a header: those of the format with nine fields, and the first
/// ones of that with eleven.
const USUAL: CdxFields = CdxFields { delimiter: b' ', url: 2, status: Some(4) };

/// A file with URLs.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct UrlFile {
    /// Path or URL, as messages show it.
    pub name: String,
    /// Size in bytes, as stored.
    pub bytes: u64,
    /// Where it is.
    pub place: Location,
}

/// What a list says of a URL.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Listed {
    /// That it is one.
    Named,
    /// That it was fetched with status 200.
    Fetched,
    /// That the host does not have it: status 404 or 410.
    Gone,
}

/// The number of lines of a list.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct ListLines {
    /// Lines with a URL.
    pub urls: u64,
    /// Lines that are none: their URL is no `http` or `https` URL, or they have none.
    pub refused: u64,
}

/// The places of the fields of a CDX line.
#[derive(Clone, Copy)]
struct CdxFields {
    delimiter: u8,
    url: usize,
    status: Option<usize>,
}

/// Calls `take` with the canonical form of every URL of a file, in the order of its lines.
///
/// # Errors
/// If the file cannot be read to its end, or has lines and none of them has a URL; names the file.
/// Or the first error of `take`.
pub fn each_listed_url(file: &UrlFile, mut take: impl FnMut(&str, Listed) -> Result<()>) -> Result<ListLines> {
    let name = &file.name;
    let failed = || cannot("read", name);
    let mut lines = LineReader::new(source(name, file.bytes, &file.place)?, LONGEST).with_context(failed)?;
    let (mut counts, mut fields, mut is_first) = (ListLines::default(), None, true);
    while let Some(step) = lines.advance().with_context(failed)? {
        match step {
            LineStep::Line(_) => {}
            LineStep::TooLong(_) => {
                counts.refused += 1;
                continue;
            }
            LineStep::Damage(offset, reason) => {
                bail!("the list {name} cannot be read from byte {offset} on: {reason}. Restore the file")
            }
        }
        // A file may begin with a byte order mark.
        let line = match lines.line().strip_prefix(b"\xef\xbb\xbf") {
            Some(line) if is_first => line,
            _ => lines.line(),
        };
        is_first = false;
        if let Some(header) = header(line) {
            let named =
                header.with_context(|| format!("the header of the CDX index {name} has no field `a`, the URL"))?;
            fields = Some(named);
            continue;
        }
        let line = line.trim_ascii();
        if line.first().is_none_or(|first| matches!(first, b'#' | b'!' | b'@')) {
            continue;
        }
        match listed(line, fields) {
            Some((url, listed)) => {
                counts.urls += 1;
                take(&url, listed)?;
            }
            None => counts.refused += 1,
        }
    }
    let unread = lines.unread();
    ensure!(
        unread.bytes == 0 && !unread.ends_early,
        "the list {name} is damaged or incomplete: its last bytes cannot be read. Restore the file"
    );
    ensure!(
        counts.urls > 0 || counts.refused == 0,
        "{name} is no list of URLs: none of its {} lines has an http or https URL; a line is a URL, or a line of a CDX index",
        counts.refused
    );
    Ok(counts)
}

/// Whether a text begins with a line of a CDX or CDXJ index, or with the header of one.
pub fn begins_index(text: &[u8]) -> bool {
    let mut lines = text.split(|byte| *byte == b'\n');
    let Some(line) = lines.find(|line| !line.trim_ascii().is_empty() && !line.starts_with(b"@")) else { return false };
    let has_key_and_time = |line: &[u8]| {
        let mut fields = line.split(|byte| *byte == b' ');
        let (key, time) = (fields.next().unwrap_or_default(), fields.next().unwrap_or_default());
        !key.is_empty() && (4..=17).contains(&time.len()) && time.iter().all(u8::is_ascii_digit)
    };
    let is_line = has_key_and_time(line) && listed(line.trim_ascii(), None).is_some();
    header(line).is_some() || line.starts_with(b"!OpenWayback-CDXJ") || is_line
}

/// The fields that a header names, if the line is one; `Some(None)` if it is one without a URL.
fn header(line: &[u8]) -> Option<Option<CdxFields>> {
    let delimiter = *line.first()?;
    let rest = line[1..].strip_prefix(b"CDX")?;
    if delimiter.is_ascii_alphanumeric() || rest.first() != Some(&delimiter) {
        return None;
    }
    let letters: Vec<&[u8]> = rest[1..].trim_ascii_end().split(|byte| *byte == delimiter).collect();
    let place = |letter: &[u8]| letters.iter().position(|of| *of == letter);
    Some(place(b"a").map(|url| CdxFields { delimiter, url, status: place(b"s") }))
}

/// The URL of a line that is no header, and what the line says of it. `fields` are those that a
/// header named.
fn listed(line: &[u8], fields: Option<CdxFields>) -> Option<(String, Listed)> {
    let url = |bytes: &[u8]| canonical(&fields::url(bytes)).map(String::from);
    let is_web = |bytes: &[u8]| {
        let starts = |scheme: &[u8]| bytes.get(..scheme.len()).is_some_and(|start| start.eq_ignore_ascii_case(scheme));
        starts(b"http://") || starts(b"https://")
    };
    if fields.is_none() && is_web(line) {
        return Some((url(line.split(u8::is_ascii_whitespace).next()?)?, Listed::Named));
    }
    if let Some(start) = memchr::memmem::find(line, b" {").filter(|_| fields.is_none()) {
        let captured: Captured = serde_json::from_slice(&line[start..]).ok()?;
        let of_status = captured.status.as_ref().map_or(Listed::Named, |status| match status {
            Status::Text(text) => of_status(text.as_bytes()),
            Status::Number(number) => of_status(number.to_string().as_bytes()),
        });
        return Some((url(captured.url.as_bytes())?, of_status));
    }
    let fields = fields.unwrap_or(USUAL);
    let all: Vec<&[u8]> = line.split(|byte| *byte == fields.delimiter).collect();
    let field = all.get(fields.url).filter(|field| is_web(field))?;
    let status = fields.status.and_then(|status| all.get(status));
    Some((url(field)?, status.map_or(Listed::Named, |status| of_status(status))))
}

fn of_status(status: &[u8]) -> Listed {
    match status {
        b"200" => Listed::Fetched,
        b"404" | b"410" => Listed::Gone,
        _ => Listed::Named,
    }
}

/// What is read of the object of a CDXJ line.
#[derive(Deserialize)]
struct Captured {
    url: String,
    status: Option<Status>,
}

/// A status, which some programs write as text and some as a number.
#[derive(Deserialize)]
#[serde(untagged)]
enum Status {
    Text(String),
    Number(u16),
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;
    use std::path::PathBuf;

    use super::*;

    fn read(path: PathBuf) -> Result<(Vec<(String, Listed)>, ListLines)> {
        let file = UrlFile { name: "list".into(), bytes: path.metadata()?.len(), place: Location::File(path) };
        let mut found = Vec::new();
        let lines = each_listed_url(&file, |url, listed| {
            found.push((url.to_owned(), listed));
            Ok(())
        })?;
        Ok((found, lines))
    }

    fn read_bytes(bytes: &[u8]) -> Result<(Vec<(String, Listed)>, ListLines)> {
        let folder = tempfile::tempdir()?;
        let path = folder.path().join("list");
        std::fs::write(&path, bytes)?;
        read(path)
    }

    #[test]
    fn urls_are_read_line_by_line() {
        let text = "http://A.example/b\r\n\n# a comment\nHTTPS://b.example\tnote\nftp://c.example/\nwords\n";
        for mark in ["", "\u{feff}"] {
            let (found, lines) = read_bytes(format!("{mark}{text}").as_bytes()).unwrap();
            let named = |url: &str| (url.to_owned(), Listed::Named);
            assert_eq!(found, [named("http://a.example/b"), named("https://b.example/")]);
            assert_eq!(lines, ListLines { urls: 2, refused: 2 });
        }
    }

    #[test]
    fn indexes_give_the_url_and_the_status() {
        let eleven = " CDX N b a m s k r M S V g\na)/ 20240108000000 http://a/ text/html 200 X - - 1 2 f\na)/b 2024 http://a/b text/html 404 X - - 1 2 f\n";
        let other = "|CDX|a|N|s\nhttp://a/|a)/|200\nhttp://a/b|a)/b|410\n";
        let json = "a)/ 2024 {\"url\": \"http://a/\", \"status\": \"200\"}\na)/b 2024 {\"url\": \"http://a/b\", \"status\": 404}\n";
        let none = "a)/ 2024 http://a/ text/html 200 X 1 2 f\na)/b 2024 http://a/b text/html 404 X 1 2 f\n";
        for text in [eleven, other, json, none] {
            let (found, lines) = read_bytes(text.as_bytes()).unwrap();
            assert_eq!(
                found,
                [("http://a/".to_owned(), Listed::Fetched), ("http://a/b".to_owned(), Listed::Gone)],
                "{text}"
            );
            assert_eq!(lines.refused, 0, "{text}");
        }
    }

    #[test]
    fn a_file_without_urls_or_with_damage_is_an_error() {
        let error = |bytes: &[u8]| read_bytes(bytes).unwrap_err().to_string();
        assert!(error(b"one\ntwo\n").contains("none of its 2 lines"));
        assert!(error(b" CDX N b m s\nx\n").contains("no field `a`"));
        assert_eq!(read_bytes(b"").unwrap(), (vec![], ListLines::default()));
        let mut packed = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::default());
        (0..1000).for_each(|number| writeln!(packed, "http://a.example/{number}").unwrap());
        let packed = packed.finish().unwrap();
        assert_eq!(read_bytes(&packed).unwrap().1.urls, 1000);
        let cut = error(&packed[..packed.len() / 2]);
        assert!(cut.contains("Restore the file"), "{cut}");
    }
}
