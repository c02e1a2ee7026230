//! One input file, and the file that is written for it.

use std::fs::File;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};

use super::exported::{Exported, What};
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
}

impl Writing<'_> {
    /// Writes the file for an input, which gets its name when it is whole. A file that is one document, and goes, is not written.
    ///
    /// # Errors
    /// If the input cannot be read or has changed, or has a format that is not written; or the file cannot be written.
    pub fn write(&self, input: &Input, verdicts: &[Verdict], to: &Path) -> Result<Exported> {
        let Writing { reading, what, revisits } = *self;
        let failed = || format!("cannot write {}", to.display());
        let folder = to.parent().context("a file is in a folder")?;
        std::fs::create_dir_all(folder).with_context(failed)?;
        let unfinished = unfinished(to);
        let file = File::create(&unfinished).with_context(failed)?;
        let (exported, file) = match input.format {
            Format::Parquet => super::rows::export(input, reading, verdicts, what, file),
            Format::Failed | Format::Wacz => bail!("{} has no documents", input.name),
            Format::Arrow => bail!("{} is arrow, which is not written: --list has what is to be removed", input.name),
            _ => Spans { input, reading, what, revisits, verdicts }.export(file, to),
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
