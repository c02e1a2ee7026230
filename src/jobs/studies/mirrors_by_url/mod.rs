//! The mirrors-by-url job.
//!
//! In reading order: `job` (the job from top to bottom), `compared` (mirrors by URL beside those by content), `tables`.

mod compared;
mod job;
mod tables;

pub(super) use self::job::mirrors_by_url;
