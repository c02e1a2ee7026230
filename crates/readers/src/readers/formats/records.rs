//! What the records of a format are: all that code asks of a format that does not read it.

use crate::readers::input::Format;
use crate::readers::warc::Dialect;
use crate::readers::whole::PageKind;

/// What the records of a format are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RecordKind {
    /// Captures of a web archive.
    Captures(Dialect),
    /// There are none: an archive that cannot be read.
    UnreadableArchive,
    /// Lines with columns.
    Lines(LineKind),
    /// Rows whose columns have types.
    Rows,
    /// One: the whole file is a page.
    WholeFile(PageKind),
    /// Failed downloads, and no documents.
    Failures,
}

/// What a line with columns is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LineKind {
    /// A JSON object, which may have other fields than the one before.
    Json,
    /// The columns that the first line names, with this byte between them.
    Delimited(u8),
}

/// Questions about the records of a format.
///
/// ```
/// use nigh_readers::readers::{Dialect, Format, LineKind, RecordKind};
///
/// assert_eq!(Format::Warc.records(), RecordKind::Captures(Dialect::Warc));
/// assert_eq!(Format::Tsv.lines(), Some(LineKind::Delimited(b'\t')));
/// assert!(Format::Wacz.is_archive() && !Format::Wacz.has_documents());
/// ```
impl Format {
    /// What its records are.
    pub fn records(self) -> RecordKind {
        self.reader().records()
    }

    /// Whether an input may have documents.
    pub fn has_documents(self) -> bool {
        !matches!(self.records(), RecordKind::UnreadableArchive | RecordKind::Failures)
    }

    /// Whether an input is a web archive, also one that cannot be read.
    pub fn is_archive(self) -> bool {
        matches!(self.records(), RecordKind::Captures(_) | RecordKind::UnreadableArchive)
    }

    /// Whether its records are captures of a web archive.
    pub fn has_captures(self) -> bool {
        self.dialect().is_some()
    }

    /// The form of its captures.
    pub fn dialect(self) -> Option<Dialect> {
        if let RecordKind::Captures(dialect) = self.records() { Some(dialect) } else { None }
    }

    /// What its lines with columns are.
    pub fn lines(self) -> Option<LineKind> {
        if let RecordKind::Lines(kind) = self.records() { Some(kind) } else { None }
    }

    /// Whether its records are JSON objects, of which only the whole file says what columns there
    /// are.
    pub fn has_json_lines(self) -> bool {
        self.lines() == Some(LineKind::Json)
    }

    /// Whether its reader passes over records without decoding them, so that a few of a large file
    /// are read fast: see [`Reader::skip_to`](crate::readers::Reader::skip_to).
    pub fn can_skip(self) -> bool {
        self.reader().can_skip()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::readers::formats::ALL;

    /// The formats of which a question is answered with yes.
    fn those(question: impl Fn(Format) -> bool) -> Vec<Format> {
        ALL.into_iter().filter(|format| question(*format)).collect()
    }

    #[test]
    fn the_answers_are_those_of_lists_of_formats() {
        use Format::{Arc, Arrow, Csv, Failed, Html, Jsonl, Parquet, Text, Tsv, Wacz, Warc};
        assert_eq!(those(|format| !format.has_documents()), [Wacz, Failed]);
        assert_eq!(those(Format::is_archive), [Warc, Arc, Wacz]);
        assert_eq!(those(Format::has_captures), [Warc, Arc]);
        assert_eq!(those(|format| format.lines().is_some()), [Jsonl, Csv, Tsv]);
        assert_eq!(those(Format::has_json_lines), [Jsonl]);
        assert_eq!(those(|format| format.lines() == Some(LineKind::Delimited(b','))), [Csv]);
        assert_eq!(those(|format| format.records() == RecordKind::Rows), [Parquet, Arrow]);
        assert_eq!(those(|format| matches!(format.records(), RecordKind::WholeFile(_))), [Html, Text]);
        assert_eq!(those(Format::can_skip), [Parquet]);
    }
}
