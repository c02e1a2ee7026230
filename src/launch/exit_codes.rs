//! The exit codes of started processes.

/// The exit code of a process that panicked: a fault in this program.
pub const EXIT_PANIC: i32 = 70;
/// The exit code of a process that lost the connection to another one: a victim, not the cause.
pub const EXIT_PEER_LOST: i32 = 75;
