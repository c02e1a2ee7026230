//! A file that a command writes whole, or not at all.

use std::fs::File;
use std::io::Write as _;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, ensure};

use crate::records::short_hash;

/// Where a file is to be written whole, or not at all.
pub(super) struct Destination {
    /// The path that the user gave.
    path: PathBuf,
    /// The file that is replaced, if the path is a link.
    file: PathBuf,
    /// Whether that is a pipe or a device, which is written in place.
    in_place: bool,
}

impl Destination {
    /// Checks that a file can be there.
    pub(super) fn at(path: &Path) -> Result<Destination> {
        let failed = || format!("cannot write {}", path.display());
        let file = std::fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
        let found = std::fs::metadata(&file).ok();
        ensure!(
            !found.as_ref().is_some_and(std::fs::Metadata::is_dir),
            "cannot write {}: it is a folder",
            path.display()
        );
        let in_place = found.is_some_and(|found| !found.is_file());
        let folder = match file.parent() {
            Some(folder) if !folder.as_os_str().is_empty() => folder,
            _ => Path::new("."),
        };
        std::fs::metadata(folder).with_context(failed)?;
        Ok(Destination { path: path.to_owned(), file, in_place })
    }

    /// The path that the user gave.
    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// Whether two paths are of one file that is replaced.
    pub(super) fn is_same_file(&self, other: &Destination) -> bool {
        let whole = |of: &Destination| std::path::absolute(&of.file).unwrap_or_else(|_| of.file.clone());
        !self.in_place && whole(self) == whole(other)
    }

    /// Whether this is a file of which any part can be read.
    pub(super) fn is_file(&self) -> bool {
        !self.in_place
    }

    /// Writes the file.
    pub(super) fn write(&self, bytes: &[u8]) -> Result<()> {
        let failed = || format!("cannot write {}", self.path.display());
        self.write_by(|mut file| file.write_all(bytes).with_context(failed))
    }

    /// Writes the file by `write`. If that fails, the file is as it was.
    pub(super) fn write_by(&self, write: impl FnOnce(File) -> Result<()>) -> Result<()> {
        let failed = || format!("cannot write {}", self.path.display());
        if self.in_place {
            return write(File::options().write(true).open(&self.file).with_context(failed)?);
        }
        let name = self.file.file_name().with_context(|| format!("{} is no name of a file", self.path.display()))?;
        // In containers all processes may have one number.
        let host = rustix::system::uname().nodename().to_string_lossy().into_owned();
        let writer = format!("{host} {} {}", std::process::id(), jiff::Timestamp::now());
        let writer = short_hash(writer.as_bytes());
        let unfinished = self.file.with_file_name(format!(".{}.{writer}.unfinished", name.to_string_lossy()));
        let file = File::options().write(true).create_new(true).open(&unfinished).with_context(failed)?;
        let written = file.try_clone().with_context(failed).and_then(write).and_then(|()| {
            file.sync_all().and_then(|()| std::fs::rename(&unfinished, &self.file)).with_context(failed)
        });
        if written.is_err() {
            // What is left of it is of no use; the first error counts.
            let _ = std::fs::remove_file(&unfinished);
        }
        written
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_unfinished_file_of_another_process_is_left_alone() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("report.html");
        let left = folder.path().join(format!(".report.html.{}.unfinished", std::process::id()));
        std::fs::write(&left, "another").unwrap();
        let destination = Destination::at(&path).unwrap();
        destination.write(b"whole").unwrap();
        assert!(destination.write_by(|_| anyhow::bail!("the disk is full")).is_err());
        assert_eq!(
            (std::fs::read(&path).unwrap(), std::fs::read(&left).unwrap()),
            (b"whole".to_vec(), b"another".to_vec())
        );
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 2);
    }
}
