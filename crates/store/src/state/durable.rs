//! Files that survive a power cut: atomic replacement of a file, and a sync of a whole folder.

use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::Path;

use anyhow::{Context, Result};

/// Replaces the file at `path` by `bytes`, atomically and durably: after a kill or a power cut the
/// file has the old bytes or the new ones.
///
/// The bytes go to a temporary file beside it (extension `tmp`), which is synced and renamed; then
/// the folder is synced.
///
/// # Errors
/// Names the file that cannot be written.
pub fn replace(path: &Path, bytes: &[u8]) -> Result<()> {
    replace_with(path, |file| Ok(file.write_all(bytes)?))
}

/// As [`replace`], by what `write` writes.
///
/// # Errors
/// As [`replace`], and those of `write`.
pub fn replace_with(path: &Path, write: impl FnOnce(&mut BufWriter<File>) -> Result<()>) -> Result<()> {
    let temporary = path.with_extension("tmp");
    let replace = || -> Result<()> {
        let mut file = BufWriter::new(File::create(&temporary)?);
        write(&mut file)?;
        file.into_inner()?.sync_all()?;
        std::fs::rename(&temporary, path)?;
        Ok(File::open(path.parent().unwrap_or(Path::new(".")))?.sync_all()?)
    };
    replace().with_context(|| format!("cannot write {}", path.display()))
}

/// Makes everything written below a folder durable.
///
/// On Linux this is one call for the whole file system, since a call for each file would wait for
/// the disk hundreds of times. Elsewhere the files are synced one by one.
///
/// # Errors
/// Names the folder, or the file, that the system cannot sync.
pub fn sync_folder(folder: &Path) -> Result<()> {
    let failed = || format!("cannot make {} durable", folder.display());
    #[cfg(target_os = "linux")]
    {
        let handle = File::open(folder).with_context(failed)?;
        rustix::fs::syncfs(&handle).with_context(failed)
    }
    #[cfg(not(target_os = "linux"))]
    {
        for entry in walkdir::WalkDir::new(folder) {
            let entry = entry.with_context(failed)?;
            File::open(entry.path()).and_then(|file| file.sync_all()).with_context(failed)?;
        }
        Ok(())
    }
}
