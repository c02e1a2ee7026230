//! One dataflow a file: what a job computes, read from top to bottom as the study has it.
//!
//! A job knows nothing of how its processes were launched; it gets a worker and a plan.

pub mod cluster;
pub mod evolution;
