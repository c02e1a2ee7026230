//! What runs a job: `nigh run`, `nigh add` and `nigh studies`.
//!
//! - `run.rs` reads job and config, and chooses what runs the job; `tasks.rs` serves where a
//!   scheduler starts the processes.
//! - `week.rs` makes a week from a crawl; `chunks.rs` makes a table of a committed week; `study.rs`
//!   makes tables of committed weeks.
//! - `add.rs` is a run that keeps what the store has; `studies.rs` runs all studies on all weeks.
//! - `advice.rs` is what a run says about its method.

pub(super) mod add;
pub(super) mod advice;
mod chunks;
pub(super) mod run;
pub(super) mod studies;
mod study;
mod tasks;
pub(super) mod week;
