//! The parameters of the steps, for one worker.

use crate::studies::mirrors_by_url::MirrorsByUrl;

/// The parameters of the steps, for one worker.
#[derive(Clone)]
pub struct UrlStage {
    /// The URLs that a host has, at least.
    pub least_urls: u64,
    /// The paths that are sampled of a host with few URLs.
    pub paths: u64,
    /// A feature of more hosts is passed over.
    pub most_hosts: usize,
    /// Whether a sampled path is a feature as a whole, too.
    pub whole_paths: bool,
    /// The candidates that are listed, at most.
    pub most_candidates: usize,
}

impl UrlStage {
    /// The parameters of a job.
    pub fn new(job: &MirrorsByUrl) -> UrlStage {
        UrlStage {
            least_urls: job.least_urls.get().into(),
            paths: job.paths.get().into(),
            most_hosts: job.most_hosts as usize,
            whole_paths: job.whole_paths,
            most_candidates: job.most_candidates.get() as usize,
        }
    }

    /// The number of paths that are sampled of a host with this number of URLs: `paths`, and one
    /// more each time that the host has twice as many as five times `paths`.
    ///
    /// The study takes the paths whose hash is 0 modulo m. It begins with m = 5, and doubles m
    /// after the first 20 paths at thresholds that it does not give; it reports 20.8 paths a host.
    /// The smallest hashes are as many, and do not depend on an order.
    pub fn sample_size(&self, urls: u64) -> u64 {
        self.paths + (urls / (5 * self.paths)).checked_ilog2().unwrap_or(0) as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn samples_grow_by_one_path_each_time_a_host_doubles() {
        let stage = UrlStage::new(&MirrorsByUrl::default());
        let sizes: Vec<u64> = [1, 99, 100, 199, 200, 400, 102_400].map(|urls| stage.sample_size(urls)).into();
        assert_eq!(sizes, [20, 20, 20, 20, 21, 22, 30]);
    }
}
