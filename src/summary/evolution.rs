//! The numbers of a store's weeks that a person asks for first, beside those that the study published.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use crate::records::Week;

/// The share of hosts whose number of clusters did not change from the first to the last week (Fetterly 2004,
/// section 3).
pub const PUBLISHED_UNCHANGED: f64 = 0.918;

/// The summary of the evolution of clusters: kept as `summary.json` beside the tables, printed by `run`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct EvolutionSummary {
    /// The store, as the run named it.
    pub store: PathBuf,
    /// The parameters, as one line.
    pub method: String,
    /// The first week.
    pub first: Week,
    /// The last week: the first, where the store has one week only.
    pub last: Week,
    /// Weeks from the first to the last.
    pub weeks: usize,
    /// URLs known in the last week.
    pub urls: u64,
    /// URLs with a page in the first week.
    pub documents: u64,
    /// Last week against the first, by class of cluster sizes in the first; classes without URLs are left out.
    pub retention: Vec<ClassRetention>,
    /// Hosts and their clusters.
    pub hosts: HostChanges,
    /// Pairs of successive downloads by class of changes, from the largest.
    pub changes: Vec<ChangeCount>,
    /// What comes and goes, week by week; nothing of the first.
    pub turnover: Vec<Turnover>,
}

/// How clusters of one class keep together; see the columns of the table `retention`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ClassRetention {
    /// The class of cluster sizes.
    pub class: String,
    /// URLs.
    pub documents: u64,
    /// Mean of Phi_1^m.
    pub retention: f64,
    /// Mean of Psi_1^m.
    pub similarity: f64,
    /// Mean of Phi_m^1.
    pub reverse: f64,
}

/// Hosts with pages in the first or the last week.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct HostChanges {
    /// How many.
    pub hosts: u64,
    /// Those with as many clusters in the last week as in the first.
    pub unchanged: u64,
    /// These over all; nothing of no hosts.
    pub share: Option<f64>,
    /// The study's share.
    pub published: f64,
}

/// Changes of one class.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ChangeCount {
    /// The class: see the table `change-classes`.
    pub change: String,
    /// Pairs of downloads.
    pub pairs: u64,
    /// These over all pairs; nothing of no pairs.
    pub share: Option<f64>,
}

/// URLs that come and go in one week.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Turnover {
    /// The week.
    pub week: Week,
    /// URLs first seen in it.
    pub births: u64,
    /// Those of them that join a cluster with pages of URLs known before.
    pub joined: u64,
    /// URLs with a page in the week before and none in it.
    pub deaths: u64,
}
