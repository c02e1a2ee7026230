//! Errors to exit codes, and which errors may pass with another attempt.

use crate::operators::ingest::TooManyRejects;

/// An error of whoever called: exit code 2.
#[derive(Debug)]
pub(crate) struct WrongUse(pub(crate) String);

impl std::fmt::Display for WrongUse {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for WrongUse {}

pub(crate) fn exit_code(error: &anyhow::Error) -> u8 {
    if error.is::<WrongUse>() {
        2
    } else if error.is::<TooManyRejects>() {
        3
    } else {
        1
    }
}

/// Whether an error may be gone at the next attempt: what comes from a network, or from a file system that is on one.
pub(crate) fn passes(error: &anyhow::Error) -> bool {
    use std::io::ErrorKind;
    let network = |error: &std::io::Error| {
        matches!(
            error.kind(),
            ErrorKind::TimedOut
                | ErrorKind::ConnectionReset
                | ErrorKind::ConnectionAborted
                | ErrorKind::BrokenPipe
                | ErrorKind::NetworkUnreachable
                | ErrorKind::HostUnreachable
                | ErrorKind::StaleNetworkFileHandle
        ) || error.raw_os_error() == Some(rustix::io::Errno::IO.raw_os_error())
    };
    error.chain().any(|cause| cause.downcast_ref().is_some_and(network))
}
