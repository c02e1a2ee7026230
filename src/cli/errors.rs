//! Exit codes of errors, and which errors may not occur again at the next attempt.

use crate::objects::ServiceError;
use crate::operators::ingest::TooManyRejects;

/// A mistake in the command, the job or the config: exit code 2.
#[derive(Debug)]
pub(crate) struct WrongUse(pub(crate) String);

impl std::fmt::Display for WrongUse {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for WrongUse {}

impl WrongUse {
    /// Makes any error one of wrong use, with the same message.
    pub(crate) fn from_error(error: anyhow::Error) -> WrongUse {
        WrongUse(format!("{error:#}"))
    }
}

/// The exit code of an error: 2 for wrong use, 3 for too many rejects, 1 for all others.
pub(crate) fn exit_code(error: &anyhow::Error) -> u8 {
    if error.is::<WrongUse>() {
        2
    } else if error.is::<TooManyRejects>() {
        3
    } else {
        1
    }
}

/// Whether another attempt may succeed: the error came from a network, or from a file system that
/// may be on one.
pub(crate) fn is_transient(error: &anyhow::Error) -> bool {
    use std::io::ErrorKind;
    let is_from_network = |error: &std::io::Error| {
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
    let of_service = |cause: &(dyn std::error::Error + 'static)| {
        cause
            .downcast_ref::<ServiceError>()
            .is_some_and(|error| error.chain().any(|cause| cause.downcast_ref().is_some_and(is_from_network)))
    };
    error.chain().any(|cause| cause.downcast_ref().is_some_and(is_from_network) || of_service(cause))
}
