//! The overlap job.
//!
//! In reading order: `job` (from top to bottom), `former` (the run that a later week follows), `counts`, `tables`.

mod counts;
mod former;
mod job;
mod tables;

pub use self::former::former_overlap;
pub(super) use self::job::overlap;
