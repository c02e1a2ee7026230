//! This program's file, and the end of a child with a time limit.

use std::path::PathBuf;
use std::process::{Child, ExitStatus};
use std::time::{Duration, Instant};

use anyhow::{Context, Result};

/// How a child ended; `None` where it had to be killed after so long.
pub(crate) fn ended(child: &mut Child, within: Duration) -> std::io::Result<Option<ExitStatus>> {
    let begun = Instant::now();
    loop {
        if let Some(status) = child.try_wait()? {
            return Ok(Some(status));
        }
        if begun.elapsed() > within {
            child.kill()?;
            child.wait()?;
            return Ok(None);
        }
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// Where this program is.
pub(crate) fn this_program() -> Result<PathBuf> {
    let path = std::env::current_exe().context("cannot tell where this program is")?;
    // The link leads to the program even when its file was replaced meanwhile.
    Ok(if path.exists() { path } else { PathBuf::from("/proc/self/exe") })
}
