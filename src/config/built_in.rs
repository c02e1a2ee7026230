//! The job files that come with nigh, for those who have no clone.

/// Each kind of job that a store is used with, and the commented file of it.
const JOBS: [(&str, &str); 11] = [
    ("cluster", include_str!("../../jobs/cluster.toml")),
    ("weekly", include_str!("../../jobs/weekly.toml")),
    ("chunks", include_str!("../../jobs/chunks.toml")),
    ("evolution", include_str!("../../jobs/evolution.toml")),
    ("mirrors", include_str!("../../jobs/mirrors.toml")),
    ("mirrors-by-url", include_str!("../../jobs/mirrors-by-url.toml")),
    ("overlap", include_str!("../../jobs/overlap.toml")),
    ("collections", include_str!("../../jobs/collections.toml")),
    ("paragraphs", include_str!("../../jobs/paragraphs.toml")),
    ("samplers", include_str!("../../jobs/samplers.toml")),
    ("example", include_str!("../../jobs/example.toml")),
];

/// The commented job file of this name, with every field and its default.
///
/// ```
/// use nigh::config::built_in_job;
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
    use crate::config::{Cluster, Job};

    #[test]
    fn every_job_is_built_in_and_is_read() {
        let mut files: Vec<String> = std::fs::read_dir("jobs")
            .unwrap()
            .map(|file| file.unwrap().path().file_stem().unwrap().to_string_lossy().into_owned())
            .collect();
        files.sort();
        let mut names: Vec<&str> = built_in_jobs().collect();
        names.sort_unstable();
        assert_eq!(names, files);
        for (name, text) in JOBS {
            let job = toml::from_str::<Job>(text);
            assert!(job.is_ok(), "{name}: {job:?}");
        }
    }

    #[test]
    fn the_commented_job_has_the_defaults() {
        let Ok(Job::Cluster(job)) = toml::from_str(JOBS[0].1) else { panic!("it is a [cluster] job") };
        let Cluster { method, .. } = &job;
        assert_eq!(method.clone().unwrap_or_default(), Default::default());
        let written = |job: Cluster| toml::to_string(&Job::Cluster(job)).unwrap();
        assert_eq!(written(Cluster { method: None, ..job }), written(Cluster::default()));
    }
}
