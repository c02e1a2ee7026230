//! Processes and threads: how the workers of a run come to be, find each other, and end.
//!
//! In reading order: `threads` (the workers of one process), `join` (processes connect: what is said, `hello`; how,
//! `speech`; by whom, `identity`; who is not known, `strangers`), `keys` (certificates of a pool), `tls`, `frames` and
//! `link` (connections as the engine takes them), `process` (one process of several, as its supervisor sees and steers
//! it), `hosts` (the machines, and how each is reached), `task`, `control`, `agents` and `agent` (processes that a
//! scheduler starts), `child` (a process, whoever started it), `watchdog` (who fell silent), `generation` (processes
//! that are started and ended together), `supervisor` (one generation after another, until one ends well), `check` and
//! `probe` (whether a pool is fit to run on). Nothing here knows what a job computes.
//!
//! One process or several, threads are the same; only what lies between them differs:
//!
//! ```text
//! supervisor ── pipes, ssh, agents: start, roster ─▶ process 0 ◀─ TLS, or loopback ─▶ process 1 …
//!            ◀── progress, outcome ────────────────┘
//! ```

mod agent;
mod agents;
mod check;
mod child;
mod control;
mod frames;
mod generation;
mod hello;
mod hosts;
mod identity;
mod join;
pub mod keys;
mod link;
mod probe;
mod process;
mod speech;
mod strangers;
mod supervisor;
mod task;
mod threads;
mod tls;
mod watchdog;

pub use agent::serve_task;
pub use agents::Agents;
pub use check::{Checked, check};
pub use frames::MAX_FRAME_BYTES;
pub use hosts::{Binary, Host, Launch, Place, Pool};
pub use identity::{Credentials, Identity, Secrets};
pub use join::{Deadlines, Roster, join, listen};
pub use link::Link;
pub use probe::{Answers, Questions, serve_probe};
pub use process::{Outcome, Report, Start, serve};
pub use supervisor::{Event, Plans, Voice, supervise};
pub use task::Task;
pub use threads::{Peers, exit_on_panic, run_workers};

/// The exit code of a process that panicked: a fault in this program.
pub const EXIT_PANIC: i32 = 70;
/// The exit code of a process that lost the connection to another one: a victim, not the cause.
pub const EXIT_PEER_LOST: i32 = 75;
