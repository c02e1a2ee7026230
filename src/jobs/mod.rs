//! One dataflow a file: what a job computes, read from top to bottom as the study has it.
//!
//! A job knows nothing of how its processes were launched; it gets a worker and a plan. `cluster` is the main job, for the first week of a
//! store and for later ones; `roots`, `tables` and `missing` are its parts, and
//! `deletion` what it does instead of reading a crawl where pages are deleted.

pub mod cluster;
pub mod deletion;
pub mod evolution;
pub mod missing;
pub mod roots;
pub mod tables;
pub mod week;

pub use self::evolution::{EvolutionPlan, FOLDER};
