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

#[cfg(not(feature = "pool"))]
mod absent;
mod events;
mod exit_codes;
mod handshake;
mod hosts;
mod pipes;
#[cfg(feature = "pool")]
mod pool;
mod program;
#[cfg(feature = "pool")]
mod scheduler;
mod supervise;
mod threads;
pub mod wire;

#[cfg(not(feature = "pool"))]
use self::absent::Running;
#[cfg(not(feature = "pool"))]
pub use self::absent::{Agents, SchedulerTask, SshHost, make, serve_task};
pub use self::events::{EventSink, ProcessEvent};
pub use self::exit_codes::EXIT_PANIC;
pub use self::handshake::{Deadlines, Identity, Roster, join, listen};
pub use self::hosts::{HostReach, Pool, ProcessHost};
#[cfg(feature = "pool")]
pub use self::pool::{Checked, Questions, SshHost, check, serve_probe};
#[cfg(feature = "pool")]
use self::scheduler::Running;
#[cfg(feature = "pool")]
pub use self::scheduler::{Agents, SchedulerTask, serve_task};
pub use self::supervise::{Outcome, serve, supervise};
pub use self::threads::{Peers, exit_on_panic, run_workers};
#[cfg(feature = "pool")]
pub use self::wire::{DEFAULT_DAYS, MadeKeys, make};
