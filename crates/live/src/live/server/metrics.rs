//! The numbers of a server, for Prometheus.

use std::fmt::Write as _;

use crate::live::engine::Counts;
use crate::live::service::Service;

/// The numbers of `/metrics`.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Shown {
    counts: Counts,
    journal: u64,
    pending: u64,
    commits: u64,
    restarts: u64,
    /// Whether nothing more is taken until the process starts again.
    pub(super) is_broken: bool,
    /// Whether nothing is taken until other processes run again.
    pub(super) has_fault: bool,
    pub(super) requests: u64,
    pub(super) refused: u64,
}

impl Shown {
    /// Takes the numbers of the service.
    pub(super) fn update(&mut self, service: &Service) {
        (self.counts, self.journal) = service.counts();
        (self.pending, self.commits) = (service.pending().lines, service.commits());
        self.restarts = service.restarts();
        (self.is_broken, self.has_fault) = (service.broken().is_some(), service.fault().is_some());
    }
}

/// The metrics for Prometheus.
pub(super) fn metrics(shown: Shown) -> String {
    let Shown { counts, journal, pending, commits, restarts, requests, refused, .. } = shown;
    let mut text = String::new();
    for (name, kind, help, value) in [
        ("nigh_live_documents", "gauge", "Documents.", counts.documents),
        ("nigh_live_vectors", "gauge", "Distinct vectors of documents.", counts.nodes),
        ("nigh_live_clusters", "gauge", "Clusters of two documents or more.", counts.clusters),
        (
            "nigh_live_records_total",
            "counter",
            "Records taken since the start, with those of the journal.",
            counts.records,
        ),
        ("nigh_live_changes_total", "counter", "The number of the last change of a cluster.", counts.changes),
        ("nigh_live_journal_bytes", "gauge", "Bytes of the journal.", journal),
        ("nigh_live_pending_lines", "gauge", "Lines of batches that no table has yet.", pending),
        ("nigh_live_commits_total", "counter", "Commits since the start.", commits),
        ("nigh_live_restarts_total", "counter", "How often other processes were started again.", restarts),
        ("nigh_live_requests_total", "counter", "Requests.", requests),
        ("nigh_live_refused_total", "counter", "Requests that were refused.", refused),
    ] {
        // Writing to a string does not fail.
        let _ = write!(text, "# HELP {name} {help}\n# TYPE {name} {kind}\n{name} {value}\n");
    }
    text
}
