//! Processes and threads: how the workers of a run come to be, find each other, and end.
//!
//! In reading order: `threads` (the workers of one process), `join` (processes connect), `process` (one
//! process of several, as its supervisor sees and steers it), `supervisor` (starts processes, and ends
//! them together). Nothing here knows what a job computes.
//!
//! One process or several, threads are the same; only what lies between them differs:
//!
//! ```text
//! supervisor ── pipes: start, roster ─▶ process 0 ◀── loopback sockets ──▶ process 1 …
//!            ◀── progress, outcome ───┘
//! ```

mod join;
mod process;
mod supervisor;
mod threads;

pub use process::{Outcome, Report, Start, serve};
pub use supervisor::supervise;
pub use threads::{Peers, exit_on_panic, run_workers};

/// The exit code of a process that panicked: a fault in this program.
pub const EXIT_PANIC: i32 = 70;
/// The exit code of a process that lost the connection to another one: a victim, not the cause.
pub const EXIT_PEER_LOST: i32 = 75;
