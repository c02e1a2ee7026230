//! The exit codes of processes that a supervisor started.

/// The exit code of a process that panicked: a fault in this program.
pub const EXIT_PANIC: i32 = 70;
/// The exit code of a process that lost the connection to another process: it is not the cause of
/// the failure.
pub const EXIT_PEER_LOST: i32 = 75;
