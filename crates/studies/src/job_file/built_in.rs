//! The job files that come with nigh, for those who have no clone.

use crate::studies::{Study, studies};

macro_rules! jobs {
    ($($(#[$what:meta])* $Name:ident: $Study:ty;)*) => {
        &[
            ("cluster", include_str!("../../../../jobs/cluster.toml")),
            ("weekly", include_str!("../../../../jobs/weekly.toml")),
            ("chunks", include_str!("../../../../jobs/chunks.toml")),
            $((<$Study>::NAME, <$Study>::JOB),)*
            ("example", include_str!("../../../../jobs/example.toml")),
        ]
    };
}

/// Each kind of job that a store is used with, and the commented file of it.
const JOBS: &[(&str, &str)] = studies!(jobs);

/// The commented job file of this name, with every field and its default.
///
/// ```
/// use nigh_studies::job_file::built_in_job;
/// assert!(built_in_job("overlap").unwrap().contains("[overlap]"));
/// assert_eq!(built_in_job("overlaps"), None);
/// ```
pub fn built_in_job(name: &str) -> Option<&'static str> {
    JOBS.iter().find(|(other, _)| *other == name).map(|(_, text)| *text)
}

/// The names of the job files.
pub fn built_in_jobs() -> impl Iterator<Item = &'static str> {
    JOBS.iter().map(|(name, _)| *name)
}
