//! The lock of a store: one run writes at a time.
//!
//! It is an advisory lock of the system (`flock`) on the file `_nigh/lock`, so a kill releases it.
//! The file also names the process that took the lock, for messages. (A store in a bucket has a
//! lease instead: `mirror/lease`.)
//!
//! A process that holds the lock can lend it to a command that it starts, as the standard input of
//! that command. The lock belongs to the open file, which both then have: so it is never free
//! between the commands of a commit of `nigh live`.

use std::fs::{File, TryLockError};
use std::io::Write;
use std::os::fd::AsFd as _;
use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};

use super::folders::{LOCK, ORPHANS_END, Store};
use crate::config::age;

impl Store {
    /// Locks the store for writing.
    ///
    /// Processes that are started while the lock is held inherit it. It is free again when the
    /// returned file is dropped and all of them have ended: so a process that outlives a killed run
    /// never writes at the same time as the next run. If the process that took the lock no longer
    /// runs, this waits up to 10 seconds for the processes that inherited it.
    ///
    /// If the process that holds the lock has given it to this one as standard input, this returns
    /// it.
    ///
    /// # Errors
    /// If another run has the lock; the message says which, since when, on which machine.
    pub fn lock(&self) -> Result<File> {
        std::fs::create_dir_all(self.own())
            .with_context(|| format!("cannot make the store {}: use another --store", self.root.display()))?;
        let path = self.own().join(LOCK);
        let failed = || format!("cannot lock {}", path.display());
        let mut file =
            File::options().read(true).write(true).create(true).truncate(false).open(&path).with_context(failed)?;
        if let Some(lent) = lent_lock(&file).with_context(failed)? {
            return Ok(lent);
        }
        let begun = Instant::now();
        loop {
            match file.try_lock() {
                Ok(()) => break,
                Err(TryLockError::Error(error)) => return Err(error).with_context(failed),
                Err(TryLockError::WouldBlock) => {
                    let owner = std::fs::read_to_string(&path).unwrap_or_default();
                    // A live owner keeps the lock; orphans of a dead one end soon.
                    if is_running(&owner) || begun.elapsed() > ORPHANS_END {
                        // The owner wrote its name into the file when it took the lock.
                        let locked_at = file.metadata().and_then(|metadata| metadata.modified());
                        let locked_for = locked_at.ok().and_then(|time| time.elapsed().ok()).unwrap_or_default();
                        bail!(
                            "another run writes to the store {} ({}, for {}): wait for it, or end it if it is `nigh live`, or use another --store",
                            self.root.display(),
                            owner.trim(),
                            age(locked_for.as_secs() as i64)
                        );
                    }
                    std::thread::sleep(Duration::from_millis(10));
                }
            }
        }
        inherit(&file).with_context(failed)?;
        let host = rustix::system::uname();
        let owner = format!(
            "process {} on {} since {}\n",
            std::process::id(),
            host.nodename().to_string_lossy(),
            jiff::Timestamp::now().strftime("%F %T UTC")
        );
        file.set_len(0).and_then(|()| file.write_all(owner.as_bytes())).with_context(failed)?;
        Ok(file)
    }

    /// Whether the standard input of this process is the lock: the process that started it has lent
    /// it.
    pub fn lock_is_lent(&self) -> bool {
        let lock = File::open(self.own().join(LOCK)).map(|lock| lent_lock(&lock));
        matches!(lock, Ok(Ok(Some(_))))
    }
}

/// The lock that standard input is; `None` if it is another file than `lock`, or another process
/// has the lock.
fn lent_lock(lock: &File) -> std::io::Result<Option<File>> {
    let stdin = std::io::stdin();
    let (own, Ok(given)) = (rustix::fs::fstat(lock)?, rustix::fs::fstat(&stdin)) else { return Ok(None) };
    if (own.st_dev, own.st_ino) != (given.st_dev, given.st_ino) {
        return Ok(None);
    }
    let lent = File::from(stdin.as_fd().try_clone_to_owned()?);
    // This succeeds for the open file that has the lock, and for another one if the lock is free.
    match lent.try_lock() {
        Ok(()) => inherit(&lent).map(|()| Some(lent)),
        Err(TryLockError::WouldBlock) => Ok(None),
        Err(TryLockError::Error(error)) => Err(error),
    }
}

/// Lets child processes inherit the lock: the file is not closed when they start.
fn inherit(file: &File) -> std::io::Result<()> {
    Ok(rustix::io::fcntl_setfd(file, rustix::io::FdFlags::empty())?)
}

/// Whether the process named in a lock file still runs; true if the system cannot say (no `/proc`,
/// or no process named).
fn is_running(owner: &str) -> bool {
    let id =
        owner.strip_prefix("process ").and_then(|rest| rest.split(' ').next()).and_then(|id| id.parse::<u32>().ok());
    match id {
        Some(id) if Path::new("/proc/self").exists() => Path::new(&format!("/proc/{id}")).exists(),
        _ => true,
    }
}
