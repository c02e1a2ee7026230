//! Reads side files of failed downloads: tables of the URLs that returned no response at all,
//! beside a crawl's records.
//!
//! The files are tab-separated, with one download in each line, under a header line that names at
//! least the columns `url` and `reason`, in any order and case. Other columns are ignored. There is
//! no standard for such files: the format is that of `failed.tsv` in `tests/data`. Lines may end in
//! CRLF. A line without URL or reason is a reject. A file whose header lacks one of the two columns
//! is one reject and is not read further, because the meaning of its lines is unknown.

use std::io;
use std::io::Read;

use anyhow::Context as _;

use super::item::{Failure, Item, Reader, Reject, Unread};
use crate::readers::streams::{LineReader, LineStep};

/// The longest line in bytes: eight times the longest URL that is accepted.
const LONGEST: usize = 64 << 10;
/// Longer reasons are cut at this many bytes: a reason is one of a few phrases.
const REASON_BYTES: usize = 200;

/// Reads the failed downloads of one side file, plain or compressed.
pub struct FailedReader {
    lines: LineReader,
    header: HeaderState,
    name: String,
}

/// The state of the header line.
#[derive(Clone, Copy)]
enum HeaderState {
    /// The first line that is not blank will be the header.
    NotRead,
    Read(FailedColumns),
    /// The header lacks a column: the file is not read further.
    Unusable,
}

/// The numbers of the two columns, from 0.
#[derive(Clone, Copy)]
struct FailedColumns {
    url: usize,
    reason: usize,
}

impl FailedReader {
    /// Makes the reader of `source`, named `name` in errors.
    ///
    /// # Errors
    /// If the first bytes cannot be read.
    pub fn new(source: Box<dyn Read + Send>, name: &str) -> io::Result<Self> {
        Ok(FailedReader {
            lines: LineReader::new(source, LONGEST)?,
            header: HeaderState::NotRead,
            name: name.to_owned(),
        })
    }

    fn item(&mut self) -> io::Result<Option<Item>> {
        loop {
            if matches!(self.header, HeaderState::Unusable) {
                return Ok(None);
            }
            let offset = match self.lines.advance()? {
                None => return Ok(None),
                Some(LineStep::Line(offset)) => offset,
                Some(LineStep::TooLong(offset)) => return Ok(Some(reject(offset, None, "tsv: line too long"))),
                Some(LineStep::Damage(offset, reason)) => return Ok(Some(reject(offset, None, reason))),
            };
            let line = self.lines.line();
            if line.trim_ascii().is_empty() {
                continue;
            }
            if let HeaderState::Read(columns) = self.header {
                return Ok(Some(failure(line, columns, offset)));
            }
            match columns(line) {
                Ok(columns) => self.header = HeaderState::Read(columns),
                Err(reason) => {
                    self.header = HeaderState::Unusable;
                    return Ok(Some(reject(offset, None, reason)));
                }
            }
        }
    }
}

impl Reader for FailedReader {
    fn next(&mut self) -> anyhow::Result<Option<Item>> {
        self.item().with_context(|| format!("cannot read {}", self.name))
    }

    fn position(&self) -> u64 {
        self.lines.position()
    }

    fn unread(&self) -> Unread {
        self.lines.unread()
    }
}

/// Whether a text begins with a header line that has both columns.
pub fn begins(text: &[u8]) -> bool {
    text.split(|byte| *byte == b'\n').next().is_some_and(|line| columns(line).is_ok())
}

/// Finds the columns in a header line; of two columns with the same name, the first.
///
/// # Errors
/// The reason of a reject, if a column is missing.
fn columns(line: &[u8]) -> Result<FailedColumns, &'static str> {
    let line = line.strip_prefix(b"\xef\xbb\xbf").unwrap_or(line);
    let column = |name: &[u8]| cells(line).position(|cell| cell.eq_ignore_ascii_case(name));
    let url = column(b"url").ok_or("tsv: no column url")?;
    Ok(FailedColumns { url, reason: column(b"reason").ok_or("tsv: no column reason")? })
}

/// Splits a line into its cells, without the white space around them.
fn cells(line: &[u8]) -> impl Iterator<Item = &[u8]> {
    line.split(|byte| *byte == b'\t').map(<[u8]>::trim_ascii)
}

/// Makes the failed download of a line, or a reject.
fn failure(line: &[u8], columns: FailedColumns, offset: u64) -> Item {
    let cell = |column: usize| cells(line).nth(column).filter(|cell| !cell.is_empty());
    let Some(url) = cell(columns.url).map(|url| super::fields::url(url).into_owned()) else {
        return reject(offset, None, "tsv: no url");
    };
    match cell(columns.reason) {
        Some(reason) => {
            let (reason, _) = super::fields::cut(super::fields::utf8(reason), REASON_BYTES);
            Item::Failed(Failure { url, reason, offset, redirect: None })
        }
        None => reject(offset, Some(url), "tsv: no reason"),
    }
}

fn reject(offset: u64, url: Option<String>, reason: &str) -> Item {
    Item::Reject(Reject { offset, url, reason: reason.to_owned() })
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;

    use flate2::Compression;
    use flate2::write::GzEncoder;

    use super::*;

    fn read(bytes: &[u8]) -> Vec<String> {
        let mut reader = FailedReader::new(Box::new(io::Cursor::new(bytes.to_vec())), "failed.tsv").unwrap();
        let line = |item: Item| match item {
            Item::Failed(Failure { url, reason, offset, .. }) => format!("{offset} {url} {reason}"),
            Item::Reject(Reject { offset, url, reason }) => format!("{offset} {url:?} rejected: {reason}"),
            other => format!("{other:?}"),
        };
        std::iter::from_fn(|| reader.next().unwrap()).map(line).collect()
    }

    fn gzip(bytes: &[u8]) -> Vec<u8> {
        let mut gzip = GzEncoder::new(Vec::new(), Compression::default());
        gzip.write_all(bytes).unwrap();
        gzip.finish().unwrap()
    }

    #[test]
    fn columns_are_found_by_name_in_any_order() {
        let expected = ["16 http://a/ timeout", "44 http://b/ dns"];
        let rows = "http://a/\t192.0.2.1\ttimeout\nhttp://b/\t\tdns";
        assert_eq!(read(format!("url\tip\treason  \n{rows}").as_bytes()), expected);
        assert_eq!(read(format!("URL \tip\tReason\r\n{}\r\n", rows.replace('\n', "\r\n")).as_bytes())[0], expected[0]);
        let turned = read(b"reason\tdate\turl\ndns\t\thttp://b/\n");
        assert_eq!(turned, ["16 http://b/ dns"]);
        assert_eq!(read(b"\xef\xbb\xbfurl\treason\nhttp://a/\tdns\n"), ["14 http://a/ dns"]);
    }

    #[test]
    fn compressed_files_read_like_plain_ones() {
        let text = b"url\treason\r\nhttp://a/\ttimeout\r\n\r\nhttp://b/\tdns\r\n";
        let expected = ["12 http://a/ timeout", "33 http://b/ dns"];
        assert_eq!(read(text), expected);
        assert_eq!(read(&gzip(text)), expected);
        assert_eq!(read(&zstd::bulk::compress(text, 1).unwrap()), expected);
    }

    #[test]
    fn bad_lines_are_rejects_with_their_place() {
        let mut text =
            b"ip\turl\treason\n\n1\thttp://a/\n1\n1\t \tdns\n1\thttp://b/\t\t\n1\thttp://\xff/\tdns\n".to_vec();
        let long = text.len();
        text.extend(vec![b'x'; LONGEST + 1]);
        text.push(b'\n');
        let last = text.len();
        text.extend(b"1\thttp://c/\td\xffs\textra");
        let expected = [
            "15 Some(\"http://a/\") rejected: tsv: no reason".to_owned(),
            "27 None rejected: tsv: no url".to_owned(),
            "29 None rejected: tsv: no url".to_owned(),
            "37 Some(\"http://b/\") rejected: tsv: no reason".to_owned(),
            "51 http://%FF/ dns".to_owned(),
            format!("{long} None rejected: tsv: line too long"),
            format!("{last} http://c/ d\u{fffd}s"),
        ];
        assert_eq!(read(&text), expected);
    }

    #[test]
    fn reasons_are_cut_at_the_end_of_a_character() {
        let items = read(format!("url\treason\nhttp://a/\tx{}\n", "ü".repeat(300)).as_bytes());
        assert_eq!(items, [format!("11 http://a/ x{}", "ü".repeat(99))]);
    }

    #[test]
    fn an_empty_file_and_a_header_alone_have_no_failures() {
        for text in [&b""[..], b"\n\r\n", b"url\tip\treason", b"url\tip\treason\r\n"] {
            assert_eq!(read(text), [""; 0]);
        }
    }

    #[test]
    fn a_file_without_the_columns_is_one_reject() {
        assert_eq!(read(b"\nname\treason\na\tb\nc\td\n"), ["1 None rejected: tsv: no column url"]);
        assert_eq!(read(b"url\twhy\nhttp://a/\tdns\n"), ["0 None rejected: tsv: no column reason"]);
        assert_eq!(read(b"http://a/\tdns\n"), ["0 None rejected: tsv: no column url"]);
        assert_eq!(read(b"url reason\n"), ["0 None rejected: tsv: no column url"]);
    }

    #[test]
    fn damage_loses_the_lines_of_its_member() {
        let mut bytes = gzip(b"url\treason\nhttp://a/\tdns\n");
        bytes.extend(gzip(b"http://d/\tdns\nhttp://b/\tti"));
        bytes.truncate(bytes.len() - 8);
        bytes.extend(gzip(b"http://c/\ttimeout\n"));
        let expected = ["11 http://a/ dns", "25 None rejected: gzip: damaged member", "25 http://c/ timeout"];
        assert_eq!(read(&bytes), expected);
    }

    #[test]
    fn a_header_is_recognised_by_its_columns() {
        assert!(begins(b"date\turl\treason\r\nrest") && begins(b"url\treason"));
        assert!(!begins(b"") && !begins(b"url\n\treason") && !begins(b"<html>"));
    }
}
