//! The names of the key files of a pool.

use std::path::{Path, PathBuf};

/// The certificate of the authority.
pub(crate) const AUTHORITY: &str = "authority.pem";

/// The name in the certificate of a process.
pub fn name(process: usize) -> String {
    format!("process-{process}.nigh.internal")
}

/// The certificate of a process.
pub(crate) fn certificate(folder: &Path, process: usize) -> PathBuf {
    folder.join(format!("process-{process:03}.pem"))
}

/// The key of a process.
pub(crate) fn key(folder: &Path, process: usize) -> PathBuf {
    folder.join(format!("process-{process:03}.key"))
}
