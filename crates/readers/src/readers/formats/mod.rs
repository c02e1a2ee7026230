//! What nigh does with the inputs of a format: one face, which each format has, and their list.
//!
//! A new format is a value of [`Format`], a type in one of the files here that implements
//! [`FormatReader`], and a line in [`Format::reader`] and [`ALL`]. How users name it, how it is
//! recognised, opened, checked and cut, and what its records are, is then known everywhere; only
//! `nigh export` has more to say of a format, if it writes it again in a way of its own.
//!
//! `face` is that face, `records` what others ask of a format; `archives` has WARC, ARC and WACZ,
//! `rows` JSON Lines, Parquet, Arrow, CSV and TSV; `files` HTML, texts and failed downloads.

mod archives;
mod face;
mod files;
mod records;
mod rows;

pub(crate) use self::face::{Cutting, FormatReader, InputColumns, is_packed};
pub use self::records::{LineKind, RecordKind};
use super::input::Format;
use super::warc::Dialect;
use super::whole::PageKind;

/// All formats, in the order in which they are looked for.
pub(crate) const ALL: [Format; 11] = [
    Format::Warc,
    Format::Arc,
    Format::Wacz,
    Format::Parquet,
    Format::Arrow,
    Format::Jsonl,
    Format::Failed,
    Format::Csv,
    Format::Tsv,
    Format::Html,
    Format::Text,
];

impl Format {
    /// What nigh does with inputs of this format.
    pub(crate) fn reader(self) -> &'static dyn FormatReader {
        match self {
            Format::Warc => &archives::ArchiveFormat(Dialect::Warc),
            Format::Arc => &archives::ArchiveFormat(Dialect::Arc),
            Format::Wacz => &archives::UnreadableWacz,
            Format::Jsonl => &rows::Jsonl,
            Format::Parquet => &rows::Parquet,
            Format::Arrow => &rows::Arrow,
            Format::Csv => &rows::Delimited(b','),
            Format::Tsv => &rows::Delimited(b'\t'),
            Format::Html => &files::OnePage(PageKind::Html),
            Format::Text => &files::OnePage(PageKind::Text),
            Format::Failed => &files::Failed,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_format_is_told_from_the_others_by_a_name_and_most_by_first_bytes() {
        let samples: [(&str, &[u8]); 11] = [
            ("a.wet", b"WARC/1.0\r\n"),
            ("a.arc", b"filedesc://a.arc 0.0.0.0"),
            ("a.wacz", b"PK\x03\x04"),
            ("a.parquet", b"PAR1"),
            ("a.feather", b"ARROW1"),
            ("a.ndjson", b" {\"url\": 1}"),
            ("failed-1.tsv", b"url\tip\tdate\treason\n"),
            ("a.csv", b""),
            ("a.tsv", b""),
            ("a.htm", b"<!doctype html>"),
            ("a.md", b""),
        ];
        for (format, (name, first)) in ALL.into_iter().zip(samples) {
            let named = ALL.into_iter().find(|format| format.reader().is_named(name, name));
            assert_eq!(named, Some(format), "{name}");
            let begins = |format: &Format| format.reader().begins(first) || format.reader().begins_stored(first);
            let expected = (!first.is_empty()).then_some(format);
            assert_eq!(ALL.into_iter().find(begins), expected, "{name}");
        }
    }
}
