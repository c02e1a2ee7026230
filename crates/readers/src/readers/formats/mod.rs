//! What nigh does with the inputs of a format: one face, which each format has, and their list.
//!
//! A new format is a value of [`Format`], a type in one of the files here that implements
//! [`FormatReader`], and a line in [`Format::reader`] and [`ALL`]. How users name it, how it is
//! recognised, opened, checked and cut is then known everywhere; only `nigh export`, which writes
//! formats again, has more to say of each.
//!
//! `archives` has WARC, ARC and WACZ; `rows` JSON Lines, Parquet, Arrow, CSV and TSV; `files` HTML,
//! texts and failed downloads.

mod archives;
mod files;
mod rows;

use std::fs::File;

use super::input::{Format, Input};
use super::item::Reader;
use super::open::KeysOfInput;
use super::warc::Dialect;
use crate::reading::Reading;

/// The names of the columns of an input, and which of those whose values are kept it has.
pub(crate) type Columns = (Vec<String>, Vec<bool>);

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

/// How inputs of a format are cut into pieces that several workers read.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Cutting {
    /// Not at all.
    Whole,
    /// At the ends of lines.
    Lines,
    /// At the beginnings of members or records.
    Members(Dialect),
    /// At row groups.
    RowGroups,
}

/// What nigh does with the inputs of one format.
pub(crate) trait FormatReader: Sync {
    /// Its name, as it begins the reasons of rejects.
    fn name(&self) -> &'static str;

    /// Whether a file of this name has it: `name` is the last part of a path in small letters,
    /// `plain` the same without the ending of a compression.
    fn is_named(&self, name: &str, plain: &str) -> bool;

    /// Whether a file that begins with these bytes, as they are stored, has it.
    fn begins_stored(&self, _first: &[u8]) -> bool {
        false
    }

    /// Whether a file that begins with these bytes, not compressed, has it.
    fn begins(&self, _first: &[u8]) -> bool {
        false
    }

    /// Whether lines are read, which are UTF-8.
    fn has_lines(&self) -> bool {
        false
    }

    /// The test whether a member of a compressed file that begins with some bytes can be one of it.
    fn acceptable(&self) -> fn(&[u8]) -> bool {
        |bytes| !bytes.is_empty()
    }

    /// Opens an input: see [`open`](super::open()).
    fn open(&self, input: &Input, reading: &Reading) -> anyhow::Result<Box<dyn Reader>>;

    /// Opens `file`, which is that of an input and stands at the place `offset`: see
    /// [`open_at`](super::open_at()). Places of items count from there.
    fn open_at(
        &self,
        _file: File,
        _input: &Input,
        _offset: u64,
        _reading: &Reading,
    ) -> anyhow::Result<Option<Box<dyn Reader>>> {
        Ok(None)
    }

    /// Checks that an input fits the job, as far as that is quick: see [`check`](super::check()).
    fn check(&self, input: &Input, reading: &Reading) -> anyhow::Result<KeysOfInput>;

    /// What the records have, also where that takes longer: see [`keys`](super::keys()).
    fn keys(&self, input: &Input, reading: &Reading) -> anyhow::Result<KeysOfInput> {
        super::open::check(input, reading)
    }

    /// The columns; `None` if it has none, or is damaged: see [`columns`](super::columns()).
    fn columns(&self, _input: &Input, _reading: &Reading) -> anyhow::Result<Option<Columns>> {
        Ok(None)
    }

    /// Why a local file cannot be read from its beginning: see [`damage`](super::damage()).
    fn damage(&self, _file: File, _input: &Input, _reading: &Reading) -> anyhow::Result<Option<String>> {
        Ok(None)
    }

    /// How a local file of this name, in small letters, is cut.
    fn cutting(&self, _name: &str) -> Cutting {
        Cutting::Whole
    }
}

impl Format {
    /// What nigh does with inputs of this format.
    pub(crate) fn reader(self) -> &'static dyn FormatReader {
        match self {
            Format::Warc => &archives::Records(Dialect::Warc),
            Format::Arc => &archives::Records(Dialect::Arc),
            Format::Wacz => &archives::Wacz,
            Format::Jsonl => &rows::Jsonl,
            Format::Parquet => &rows::Parquet,
            Format::Arrow => &rows::Arrow,
            Format::Csv => &rows::Delimited(b','),
            Format::Tsv => &rows::Delimited(b'\t'),
            Format::Html => &files::Page::Html,
            Format::Text => &files::Page::Text,
            Format::Failed => &files::Failed,
        }
    }
}

/// Whether a name has one of these endings after its last dot.
fn ends_in(name: &str, endings: &[&str]) -> bool {
    name.rsplit_once('.').is_some_and(|(_, ending)| endings.contains(&ending))
}

/// Whether a name, in small letters, has the ending of a compression.
fn is_packed(name: &str) -> bool {
    ends_in(name, &["gz", "zst", "zstd", "bz2", "xz", "lz4"])
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
