//! The formats that records are written in.

use std::fmt;

use anyhow::{Result, bail};
use serde::{Deserialize, Serialize};

use crate::readers::{Dialect, Format, Input, LineKind, PageKind, RecordKind};

/// The format that records are written in.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, clap::ValueEnum)]
#[serde(rename_all = "kebab-case")]
pub enum ExportFormat {
    /// That of each input.
    #[default]
    Same,
    /// JSON Lines.
    Jsonl,
    /// Parquet.
    Parquet,
    /// WARC, of inputs that are WARC.
    Warc,
}

/// A format of rows that have fields.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum RowFormat {
    Jsonl,
    Parquet,
}

impl ExportFormat {
    /// The format that the rows of an input become; `None` if they stay in theirs.
    ///
    /// # Errors
    /// If this input is not written so.
    pub(crate) fn of(self, input: &Input) -> Result<Option<RowFormat>> {
        let own = RowFormat::of(input.format);
        Ok(match self {
            ExportFormat::Same if own.is_none() && input.format.records() == RecordKind::Rows => bail!(
                "{} is {}, which is not written: give --format parquet or jsonl, or --list for what is to be removed",
                input.name,
                input.format
            ),
            ExportFormat::Same => None,
            ExportFormat::Jsonl => Some(RowFormat::Jsonl).filter(|to| own != Some(*to)),
            ExportFormat::Parquet => Some(RowFormat::Parquet).filter(|to| own != Some(*to)),
            ExportFormat::Warc if input.format.dialect() == Some(Dialect::Warc) => None,
            ExportFormat::Warc => bail!(
                "{} is {}, which has no requests and answers to write as WARC: give --format same, jsonl or parquet",
                input.name,
                input.format
            ),
        })
    }

    /// The path of the file for an input, given that in the same format.
    ///
    /// # Errors
    /// If this input is not written so: its format or its compression is not.
    pub(crate) fn path(self, input: &Input, same: &str) -> Result<String> {
        let Some(to) = self.of(input)? else {
            check_compression(input, same)?;
            return Ok(same.to_owned());
        };
        let (folder, name) = same.rsplit_once('/').map_or(("", same), |(folder, name)| (folder, name));
        let mut stem = name;
        // The compression, and the format.
        for extension in ["gz", "zst", "bz2", "xz"] {
            stem = stem.strip_suffix(extension).and_then(|stem| stem.strip_suffix('.')).unwrap_or(stem);
        }
        let stem = stem.rsplit_once('.').map_or(stem, |(stem, _)| if stem.is_empty() { name } else { stem });
        let slash = if folder.is_empty() { "" } else { "/" };
        Ok(format!("{folder}{slash}{stem}.{}", to.extension()))
    }
}

/// Checks that lines, which are compressed again as the path says, can be.
fn check_compression(input: &Input, path: &str) -> Result<()> {
    let instead = match input.format.lines() {
        Some(LineKind::Json) => "--format parquet, or --shards",
        Some(LineKind::Delimited(_)) => "--format jsonl or parquet",
        None => return Ok(()),
    };
    let name = path.to_ascii_lowercase();
    if let Some(ending) = [".bz2", ".xz"].into_iter().find(|ending| name.ends_with(*ending)) {
        bail!(
            "{} would be written as {ending}, and nigh writes .gz and .zst: give {instead}, or --list for what is to be removed",
            input.name
        );
    }
    Ok(())
}

impl fmt::Display for RowFormat {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            RowFormat::Jsonl => "JSON Lines",
            RowFormat::Parquet => "Parquet",
        })
    }
}

impl RowFormat {
    /// The one of the records of inputs of this format, if they are written as they are.
    pub(crate) fn of(format: Format) -> Option<RowFormat> {
        match format {
            Format::Jsonl => Some(RowFormat::Jsonl),
            Format::Parquet => Some(RowFormat::Parquet),
            _ => None,
        }
    }

    fn extension(self) -> &'static str {
        match self {
            RowFormat::Jsonl => "jsonl",
            RowFormat::Parquet => "parquet",
        }
    }
}

/// Whether a part of the text can be taken out of a record of this format: the text is there in
/// UTF-8, by itself or in a field.
pub(crate) fn can_be_cut(format: Format) -> bool {
    RowFormat::of(format).is_some() || format.records() == RecordKind::WholeFile(PageKind::Text)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::readers::Location;

    #[test]
    fn files_get_the_name_of_their_format() {
        let path = |format: ExportFormat, input: Format, name: &str| {
            let place = Location::File(name.into());
            let input = Input {
                name: name.to_owned(),
                bytes: 0,
                format: input,
                place,
                page_url: None,
                stamp: String::new(),
                reading: None,
            };
            format.path(&input, name).map_err(|error| error.to_string())
        };
        let (jsonl, parquet) = (ExportFormat::Jsonl, ExportFormat::Parquet);
        assert_eq!(path(parquet, Format::Jsonl, "x/a.b.jsonl.gz").as_deref(), Ok("x/a.b.parquet"));
        assert_eq!(path(jsonl, Format::Jsonl, "x/a.jsonl.gz").as_deref(), Ok("x/a.jsonl.gz"));
        assert_eq!(path(jsonl, Format::Warc, "x.1/a.warc.gz").as_deref(), Ok("x.1/a.jsonl"));
        assert_eq!(path(jsonl, Format::Csv, "a").as_deref(), Ok("a.jsonl"));
        assert_eq!(path(jsonl, Format::Parquet, ".parquet").as_deref(), Ok(".parquet.jsonl"));
        assert_eq!(path(ExportFormat::Warc, Format::Warc, "a.warc").as_deref(), Ok("a.warc"));
        assert!(path(ExportFormat::Warc, Format::Jsonl, "a.jsonl").unwrap_err().contains("a.jsonl is jsonl"));
        assert!(path(ExportFormat::Same, Format::Arrow, "a.arrow").unwrap_err().contains("--format parquet"));
        // A compression that is not written is refused with the names, before a file is written.
        for (to, input, name, wanted) in [
            (ExportFormat::Same, Format::Jsonl, "a.jsonl.xz", "give --format parquet, or --shards"),
            (jsonl, Format::Jsonl, "x/a.jsonl.BZ2", "as .bz2, and nigh writes .gz and .zst"),
            (ExportFormat::Same, Format::Csv, "a.csv.bz2", "give --format jsonl or parquet"),
        ] {
            let refused = path(to, input, name).unwrap_err();
            assert!(refused.contains(wanted) && refused.contains(name), "{refused}");
            assert_eq!(path(parquet, input, name).unwrap().rsplit_once('.').unwrap().1, "parquet");
        }
        assert_eq!(path(ExportFormat::Same, Format::Warc, "a.warc.xz").as_deref(), Ok("a.warc.xz"));
    }
}
