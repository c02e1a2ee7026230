//! Processes and threads: starts the workers of a run, connects them, watches them and ends them.
//!
//! In reading order: `threads` (the workers of one process), `process_hosts` (the processes of a
//! run and how each is reached), `handshake` (how processes find and check each other), `wire`
//! (connections: keys, TLS, frames), `supervise` (starts, watches and restarts processes), `pool`
//! (machines reached by ssh), `scheduler` (tasks of SLURM and Kubernetes); and the small `events`,
//! `exit_codes`, `pipes` and `program`. `pool` and `scheduler` need the feature `pool`; without it
//! `absent` stands in. Nothing here knows what a job computes.
//!
//! A run has one process or several. The threads are the same; only what connects them differs:
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
mod pipes;
#[cfg(feature = "pool")]
mod pool;
mod process_hosts;
mod program;
#[cfg(feature = "pool")]
mod scheduler;
mod supervise;
mod threads;
pub mod wire;

#[cfg(not(feature = "pool"))]
use self::absent::Running;
#[cfg(not(feature = "pool"))]
pub use self::absent::{Agents, SchedulerTask, SshHost, TaskNotice, make, serve_task};
pub use self::events::{EventSink, ProcessEvent};
pub use self::exit_codes::EXIT_PANIC;
pub use self::handshake::{Deadlines, Identity, Message, Roster, join, listen, receive};
#[cfg(feature = "pool")]
pub use self::pool::{CheckedHost, Questions, SshHost, check, serve_probe};
pub use self::process_hosts::{HostAddress, HostReach, Pool, ProcessAddresses, ProcessHost};
pub use self::program::program_command;
#[cfg(feature = "pool")]
use self::scheduler::Running;
#[cfg(feature = "pool")]
pub use self::scheduler::{Agents, SchedulerTask, TaskNotice, serve_task};
pub use self::supervise::{GenerationWork, Outcome, serve, supervise};
pub use self::threads::{Peers, exit_on_panic, run_workers};
#[cfg(feature = "pool")]
pub use self::wire::{DEFAULT_DAYS, MadeKeys, make};
