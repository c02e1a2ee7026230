//! This program's file, and the end of a child with a time limit.

use std::path::PathBuf;
use std::process::{Child, ExitStatus};
use std::time::{Duration, Instant};

use anyhow::{Context, Result};

/// Waits for a child and returns its status; `None` if it did not end within this time and was
/// killed.
pub(crate) fn ended(child: &mut Child, within: Duration) -> std::io::Result<Option<ExitStatus>> {
    let start = Instant::now();
    loop {
        if let Some(status) = child.try_wait()? {
            return Ok(Some(status));
        }
        if start.elapsed() > within {
            child.kill()?;
            child.wait()?;
            return Ok(None);
        }
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// The path of this program.
pub(crate) fn this_program() -> Result<PathBuf> {
    let path = std::env::current_exe().context("cannot find the file of this program")?;
    // The link leads to the running program even if its file was replaced.
    Ok(if path.exists() { path } else { PathBuf::from("/proc/self/exe") })
}
