//! The lock of a store: one run writes at a time.

use std::fs::{File, TryLockError};
use std::io::Write;
use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};

use super::folders::{ORPHANS_END, Store};
use crate::config::age;

impl Store {
    /// Takes the store for writing. It is free again when the file returned is dropped and every process that was
    /// started meanwhile has ended: they inherit the lock, so that what outlives a killed run cannot meet the next one.
    ///
    /// # Errors
    /// Where another run has it: says which, as it wrote itself.
    pub fn lock(&self) -> Result<File> {
        std::fs::create_dir_all(&self.root)
            .with_context(|| format!("cannot make the store {}: take another --store", self.root.display()))?;
        let path = self.root.join("lock");
        let failed = || format!("cannot lock {}", path.display());
        let mut file =
            File::options().read(true).write(true).create(true).truncate(false).open(&path).with_context(failed)?;
        let begun = Instant::now();
        loop {
            match file.try_lock() {
                Ok(()) => break,
                Err(TryLockError::Error(error)) => return Err(error).with_context(failed),
                Err(TryLockError::WouldBlock) => {
                    let owner = std::fs::read_to_string(&path).unwrap_or_default();
                    if is_running(&owner) || begun.elapsed() > ORPHANS_END {
                        // The owner wrote itself into the file when it took it.
                        let taken = file.metadata().and_then(|metadata| metadata.modified());
                        let held = taken.ok().and_then(|taken| taken.elapsed().ok()).unwrap_or_default();
                        bail!(
                            "another run writes to the store {} ({}, for {}): wait for it, or take another --store",
                            self.root.display(),
                            owner.trim(),
                            age(held.as_secs() as i64)
                        );
                    }
                    std::thread::sleep(Duration::from_millis(10));
                }
            }
        }
        rustix::io::fcntl_setfd(&file, rustix::io::FdFlags::empty()).with_context(failed)?;
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
}

/// Whether the process that wrote itself into a lock still runs; taken as true where the system does not tell.
fn is_running(owner: &str) -> bool {
    let id =
        owner.strip_prefix("process ").and_then(|rest| rest.split(' ').next()).and_then(|id| id.parse::<u32>().ok());
    match id {
        Some(id) if Path::new("/proc/self").exists() => Path::new(&format!("/proc/{id}")).exists(),
        _ => true,
    }
}
