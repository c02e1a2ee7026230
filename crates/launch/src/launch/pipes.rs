//! The pipes of a started process, and its exit.

use std::io::{Read, Write};
use std::process::ExitStatus;

/// The pipes of a started process, on this machine or another.
pub(crate) struct ProcessPipes {
    /// Bytes to write to its stdin before anything else.
    pub first: Vec<u8>,
    /// Its stdin. The process ends by itself when this is dropped.
    pub stdin: Box<dyn Write + Send>,
    pub stdout: Box<dyn Read + Send>,
    pub stderr: Box<dyn Read + Send>,
}

/// The end of a process.
pub(crate) enum ProcessExit {
    /// The process ended with this status of the system.
    Exited(ExitStatus),
    /// The task of the process was lost, for this reason; the process is taken for ended.
    Lost(String),
}
