//! The pipes to a started process, wherever it runs, and how it ended.

use std::io::{Read, Write};
use std::process::ExitStatus;

/// What a process is told through, and heard.
pub(crate) struct Pipes {
    /// What is to be written to its stdin before anything else.
    pub first: Vec<u8>,
    /// When it is dropped, the process ends by itself.
    pub stdin: Box<dyn Write + Send>,
    pub stdout: Box<dyn Read + Send>,
    pub stderr: Box<dyn Read + Send>,
}

/// How a process went.
pub(crate) enum ProcessExit {
    /// As the system says.
    Exited(ExitStatus),
    /// With its task, and why that is taken for gone.
    Lost(String),
}
