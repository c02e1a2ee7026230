//! The folder that an export works in, beside what it writes: files that are not whole, and runs of
//! sorts. One export at a time has it.

use std::fs::{File, TryLockError};
use std::io::{ErrorKind, Write as _};
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};

use super::output::sync_parent;

/// The file that the export has locked.
const LOCK: &str = "lock";

/// The beginning of that file: what is in a folder without it is not nigh's.
const MARK: &str = "nigh export\n";

/// A folder that is removed with all that is in it when the export ends.
pub(crate) struct Workplace {
    folder: PathBuf,
    lock: File,
}

impl Workplace {
    /// Makes and locks the folder, or takes over what a killed export left. `target` is what the
    /// export writes, for messages.
    ///
    /// # Errors
    /// If another export has it; or the folder was not made by nigh; or it cannot be made.
    pub(crate) fn take(folder: PathBuf, target: &Path) -> Result<Workplace> {
        let failed = || format!("cannot write {}", folder.display());
        loop {
            match std::fs::create_dir(&folder) {
                Err(error) if error.kind() == ErrorKind::AlreadyExists => check_own(&folder)?,
                made => made.with_context(failed)?,
            }
            let path = folder.join(LOCK);
            let opened = File::options().read(true).write(true).create(true).truncate(false).open(&path);
            let lock = match opened {
                // Another export has ended and removed the folder.
                Err(error) if error.kind() == ErrorKind::NotFound => continue,
                opened => opened.with_context(failed)?,
            };
            match lock.try_lock() {
                Ok(()) => {}
                Err(TryLockError::WouldBlock) => {
                    let owner = std::fs::read_to_string(&path).unwrap_or_default();
                    let owner = owner.strip_prefix(MARK).unwrap_or_default().trim();
                    bail!("another export writes {} ({owner}): wait for it, or write elsewhere", target.display());
                }
                Err(TryLockError::Error(error)) => return Err(error).with_context(failed),
            }
            // The export that had it may have removed the file since.
            let of_lock = lock.metadata().with_context(failed)?;
            if !std::fs::metadata(&path).is_ok_and(|now| (now.dev(), now.ino()) == (of_lock.dev(), of_lock.ino())) {
                continue;
            }
            // From here on the folder goes with the export, also if that fails.
            let mut work = Workplace { folder: folder.clone(), lock };
            work.begin().with_context(failed)?;
            return Ok(work);
        }
    }

    /// Says in the lock whose it is, and removes what a killed export left.
    fn begin(&mut self) -> std::io::Result<()> {
        self.lock.set_len(0)?;
        writeln!(self.lock, "{MARK}process {}", std::process::id())?;
        clear(&self.folder)
    }

    /// The path of a file while it is written.
    pub(crate) fn unfinished(&self, number: usize) -> PathBuf {
        self.folder.join(format!("{number:05}"))
    }

    /// A folder for runs of sorts.
    pub(crate) fn scratch(&self) -> PathBuf {
        self.folder.join("scratch")
    }

    /// Puts a small file in the place of another one, durably.
    ///
    /// # Errors
    /// If it cannot be written.
    pub(crate) fn replace(&self, path: &Path, bytes: &[u8]) -> Result<()> {
        let unfinished = self.folder.join("small");
        let write = || -> std::io::Result<()> {
            let mut file = File::create(&unfinished)?;
            file.write_all(bytes)?;
            file.sync_all()?;
            std::fs::rename(&unfinished, path)?;
            sync_parent(path)
        };
        write().with_context(|| format!("cannot write {}", path.display()))
    }
}

impl Drop for Workplace {
    fn drop(&mut self) {
        // The lock goes last: a folder without it is not taken over. What cannot be removed, the
        // next export takes over.
        let _ = clear(&self.folder)
            .and_then(|()| std::fs::remove_file(self.folder.join(LOCK)))
            .and_then(|()| std::fs::remove_dir(&self.folder));
    }
}

/// Removes all but the lock from a folder.
fn clear(folder: &Path) -> std::io::Result<()> {
    for entry in std::fs::read_dir(folder)? {
        let entry = entry?;
        if entry.file_name() == LOCK {
            continue;
        }
        match entry.file_type()?.is_dir() {
            true => std::fs::remove_dir_all(entry.path())?,
            false => std::fs::remove_file(entry.path())?,
        }
    }
    Ok(())
}

/// Checks that a folder is one that an export made. An empty one is, too, and one with nothing but
/// an empty lock: a kill came before.
pub(crate) fn check_own(folder: &Path) -> Result<()> {
    let failed = || format!("cannot read {}", folder.display());
    let is_folder = match std::fs::symlink_metadata(folder) {
        // It was removed since.
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(()),
        metadata => metadata.with_context(failed)?.is_dir(),
    };
    let is_own = is_folder
        && match std::fs::read(folder.join(LOCK)) {
            Ok(text) if text.is_empty() => std::fs::read_dir(folder).with_context(failed)?.count() == 1,
            Ok(text) => text.starts_with(MARK.as_bytes()),
            Err(_) => std::fs::read_dir(folder).with_context(failed)?.next().is_none(),
        };
    if !is_own {
        bail!("{} is not a folder that nigh made: move it away, or write elsewhere", folder.display());
    }
    Ok(())
}
