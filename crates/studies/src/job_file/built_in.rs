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

#[cfg(test)]
mod tests {
    use super::*;

    /// Checks that the file of a study has every key, and says its default.
    fn has_all_keys<S: Study + Default>() {
        let file: toml::Table = S::JOB.parse().unwrap();
        let keys = |study: S| toml::Table::try_from(study).unwrap();
        let (written, defaults) = (keys(file[S::NAME].clone().try_into().unwrap()), keys(S::default()));
        assert_eq!(written, defaults, "{}", S::NAME);
        let is_in_file = |key: &String| file[S::NAME].get(key).is_some() || S::JOB.contains(&format!("\n# {key} = "));
        assert_eq!(defaults.keys().find(|key| !is_in_file(key)), None, "{}", S::NAME);
    }

    macro_rules! check_all {
        ($($(#[$what:meta])* $Name:ident: $Study:ty;)*) => {
            $(has_all_keys::<$Study>();)*
        };
    }

    #[test]
    fn the_file_of_a_study_has_every_key_with_its_default() {
        studies!(check_all);
    }
}
