//! One input file, and the file that is written for it.

use std::fs::File;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};

use super::converted::{JsonColumns, convert};
use super::exported::{Exported, What};
use super::format::{ExportFormat, RowFormat, source_of};
use super::spans::Spans;
use super::verdicts::Verdict;
use crate::config::Reading;
use crate::readers::{Format, Input};

/// How inputs are written again.
pub struct Writing<'a> {
    /// How they were read.
    pub reading: &'a Reading,
    /// Which records are written.
    pub what: What,
    /// Whether WARC records that go are replaced by revisit records, which refer to the ones that stay.
    pub revisits: bool,
    /// The format of what is written.
    pub format: ExportFormat,
    /// The columns of all inputs that are lines, if these are written as Parquet.
    pub columns: Option<JsonColumns>,
}

impl Writing<'_> {
    /// Writes the file for an input, which gets its name when it is whole. A file that is one document, and goes, is not written.
    ///
    /// # Errors
    /// If the input cannot be read or has changed, or has a format that is not written; or the file cannot be written.
    pub fn write(&self, input: &Input, verdicts: &[Verdict], to: &Path) -> Result<Exported> {
        let Writing { reading, what, revisits, .. } = *self;
        let failed = || format!("cannot write {}", to.display());
        let folder = to.parent().context("a file is in a folder")?;
        std::fs::create_dir_all(folder).with_context(failed)?;
        let unfinished = unfinished(to);
        let file = File::create(&unfinished).with_context(failed)?;
        let spans = Spans { input, reading, what, revisits, verdicts };
        let (exported, file) = match (input.format, self.format.of(input)?) {
            (Format::Failed | Format::Wacz, _) => bail!("{} has no documents", input.name),
            (Format::Parquet | Format::Arrow, format) => {
                super::rows::export(input, reading, verdicts, what, format.unwrap_or(RowFormat::Parquet), file)
            }
            (_, None) => spans.export(file, to),
            (Format::Jsonl | Format::Csv | Format::Tsv, Some(format)) => {
                let source = source_of(to, input);
                let (exported, _) =
                    spans.export(File::create(&source).with_context(failed)?, &source).with_context(failed)?;
                let file = convert(&source, input, what, self.columns.as_ref(), format, file).with_context(failed)?;
                std::fs::remove_file(&source).with_context(failed)?;
                Ok((exported, file))
            }
            (_, Some(format)) => super::pages::export(input, reading, verdicts, what, format, file),
        }
        .with_context(failed)?;
        if matches!(input.format, Format::Html | Format::Text) && exported.written == 0 {
            std::fs::remove_file(&unfinished).with_context(failed)?;
            return Ok(exported);
        }
        file.sync_all().with_context(failed)?;
        std::fs::rename(&unfinished, to).with_context(failed)?;
        Ok(exported)
    }
}

/// The name of a file while it is written.
fn unfinished(path: &Path) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(".unfinished");
    name.into()
}
