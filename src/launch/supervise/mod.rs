//! Starts the processes of a run, watches them, and restarts them.
//!
//! In reading order: `supervisor` (runs one generation after another), `generation` (the processes of one start), `child` (one started
//! process), `watchdog` (finds processes that are silent or stalled), `process` (the code of the started process).

mod child;
mod generation;
mod process;
mod supervisor;
mod watchdog;

pub use self::process::{Outcome, serve};
pub use self::supervisor::supervise;
