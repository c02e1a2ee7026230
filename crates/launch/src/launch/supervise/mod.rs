//! Starts the processes of a run, watches them, and restarts them.
//!
//! In reading order: `supervisor` (runs one generation after another), `pool_hosts` (which hosts a
//! run has now), `restart_limit` (how often it may be restarted), `generation` (one start and what
//! comes of it), `processes` (its processes), `lookout` (looks for hosts that are back), `child`
//! (one started process), `watchdog` (finds processes that are silent or stalled), `process` (the
//! code of the started process).

mod child;
mod generation;
mod lookout;
mod pool_hosts;
mod process;
mod processes;
mod restart_limit;
mod supervisor;
mod watchdog;

pub use self::process::{Outcome, serve};
pub use self::supervisor::{GenerationWork, supervise};
