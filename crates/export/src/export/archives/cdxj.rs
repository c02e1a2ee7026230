//! The indexes of an export: one of the captures that are written, and one of those that are not.
//!
//! Each input is read beside the file that was written for it. Both have their records in one
//! order, so a capture that the file does not have next, or has as a revisit, is one that is not
//! written. Nothing else is kept for it: an export that goes on after a kill has the same indexes.

use std::ffi::OsString;
use std::io::{BufWriter, Write as _};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use anyhow::{Context, Result, bail, ensure};

use super::capture::{Captures, IndexLine, IndexedCapture};
use crate::config::Reading;
use crate::export::place::{ExportFolder, Output, sync_parent};
use crate::readers::Input;
use crate::structures::ExternalSort;

/// The names that the list of an export has for its indexes, which are elsewhere.
const NAMES: [&str; 2] = [".nigh-export/written.cdxj", ".nigh-export/removed.cdxj"];

/// The indexes of an export.
pub struct IndexFiles {
    paths: [PathBuf; 2],
    sorts: Mutex<[ExternalSort<IndexLine>; 2]>,
}

impl IndexFiles {
    /// Checks that neither file is there, except as this export wrote it. The second one has
    /// `-removed` in its name. `memory` is that of both sorts, in bytes.
    ///
    /// # Errors
    /// If something else is there.
    pub fn open(path: &Path, folder: &ExportFolder, memory: u64) -> Result<IndexFiles> {
        let stem = path.file_stem().with_context(|| format!("--cdxj {} has no name of a file", path.display()))?;
        let folder_of = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
        ensure!(folder_of.is_dir(), "--cdxj {}: there is no folder {}", path.display(), folder_of.display());
        let mut name = stem.to_owned();
        name.push("-removed");
        if let Some(extension) = path.extension() {
            name.push(".");
            name.push(extension);
        }
        let paths = [path.to_owned(), path.with_file_name(name)];
        for (path, name) in paths.iter().zip(NAMES) {
            ensure!(
                std::fs::symlink_metadata(path).is_err() || folder.has_written(name, path)?,
                "{} was not written by this export, or has changed since: take it away, or give another --cdxj",
                path.display()
            );
        }
        let sort = |name: &str| ExternalSort::new(&folder.scratch().join(name), memory / 2);
        Ok(IndexFiles { paths, sorts: Mutex::new([sort("written"), sort("not-written")]) })
    }

    /// Adds the captures of an input, and of the file that was written for it, which has the name
    /// `file` in the index.
    ///
    /// # Errors
    /// If one of them cannot be read.
    pub(in crate::export) fn add(&self, input: &Input, written: &Input, file: &str, reading: &Reading) -> Result<()> {
        let reading = input.reading(reading);
        let (mut all, mut kept) = (Captures::open(input, &reading)?, Captures::open(written, &reading)?);
        let mut next = kept.record()?;
        while let Some(capture) = all.record()? {
            let is_kept = next.as_ref().is_some_and(|next| capture.is_written_as(next, input.format));
            let is_made_of =
                |next: &IndexedCapture| capture.is_replaced_by(next) || capture.is_readdressed_as(next, input.format);
            let is_written = is_kept || next.as_ref().is_some_and(is_made_of);
            if let Some(written) = next.take_if(|_| is_written) {
                self.push(0, &written, file)?;
                next = kept.record()?;
            }
            if !is_kept {
                self.push(1, &capture, &input.name)?;
            }
        }
        match next {
            None => Ok(()),
            Some(next) => {
                bail!("{} has a record of {} that {} has not: export it again", written.name, next.url, input.name)
            }
        }
    }

    fn push(&self, index: usize, capture: &IndexedCapture, file: &str) -> Result<()> {
        let line = capture.line(file)?;
        self.sorts.lock().unwrap_or_else(PoisonError::into_inner)[index].push(line)
    }

    /// Writes the indexes. Returns the numbers of their lines.
    ///
    /// # Errors
    /// If one cannot be written.
    pub(in crate::export) fn write(self, folder: &mut ExportFolder) -> Result<[u64; 2]> {
        let sorts = self.sorts.into_inner().unwrap_or_else(PoisonError::into_inner);
        let mut counts = [0; 2];
        for (((sort, path), name), count) in sorts.into_iter().zip(&self.paths).zip(NAMES).zip(&mut counts) {
            let failed = || format!("cannot write {}", path.display());
            // The folder of the export may be in another file system.
            let mut beside = OsString::from(".");
            beside.push(path.file_name().unwrap_or_default());
            beside.push(".nigh-export-part");
            let beside = path.with_file_name(beside);
            let mut out = BufWriter::new(Output::create(&beside).with_context(failed)?);
            let write = || -> Result<()> {
                let mut lines = sort.sorted()?;
                while let Some(IndexLine(line)) = lines.record()? {
                    writeln!(out, "{line}")?;
                    *count += 1;
                }
                let written = out.into_inner().map_err(std::io::IntoInnerError::into_error)?.finish()?;
                folder.note(name, written)?;
                std::fs::rename(&beside, path)?;
                Ok(sync_parent(path)?)
            };
            let done = write().with_context(failed);
            if done.is_err() {
                _ = std::fs::remove_file(&beside);
            }
            done?;
        }
        Ok(counts)
    }
}
