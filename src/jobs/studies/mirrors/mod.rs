//! The mirrors job.
//!
//! In reading order: `job` (the job from top to bottom), `pairs` (what is known of the pairs of a week), `tables`.

mod job;
mod pairs;
mod tables;

pub(super) use self::job::mirrors;
