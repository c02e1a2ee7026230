//! Starts the processes of a run, watches them, and restarts them.
//!
//! In reading order: `supervisor` (a run, over all restarts), `generation` (the processes of one start), `child` (one started
//! process), `watchdog` (notices silence and stalls), `process` (the side of the started process).

mod child;
mod generation;
mod process;
mod supervisor;
mod watchdog;

pub use self::process::{Outcome, serve};
pub use self::supervisor::supervise;
