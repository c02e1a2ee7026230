//! The summary of the evolution of a store's clusters, with the study's published numbers beside it
//! (Fetterly 2004, section 3).

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use crate::records::Week;

/// The published share of hosts whose number of clusters did not change from the first to the last
/// week (Fetterly 2004, section 3).
pub const PUBLISHED_UNCHANGED: f64 = 0.918;

/// The summary of the evolution of clusters: kept as `summary.json` beside the job's tables,
/// printed by `run`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct EvolutionSummary {
    /// The store, as the run named it.
    pub store: PathBuf,
    /// The study's parameters, on one line.
    pub method: String,
    /// The first week.
    pub first: Week,
    /// The last week; the first one if the store has only one.
    pub last: Week,
    /// The number of weeks from the first to the last, both included.
    pub weeks: usize,
    /// URLs known in the last week.
    pub urls: u64,
    /// URLs with a page in the first week.
    pub documents: u64,
    /// The last week compared with the first, by class of cluster sizes in the first week; classes
    /// without URLs are left out.
    pub retention: Vec<ClassRetention>,
    /// The change of the number of clusters of hosts.
    pub hosts: HostChanges,
    /// Pairs of successive downloads by kind of change, from the largest change to none.
    pub changes: Vec<ChangeCount>,
    /// Births and deaths of every week except the first.
    pub turnover: Vec<Turnover>,
}

/// How well clusters of one size class keep together; see the columns of the table `retention`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ClassRetention {
    /// The class of cluster sizes.
    pub class: String,
    /// URLs of the class.
    pub documents: u64,
    /// Mean of Phi_1^m (Fig. 4).
    pub retention: f64,
    /// Mean of Psi_1^m (Fig. 5).
    pub similarity: f64,
    /// Mean of Phi_m^1 (Fig. 7).
    pub reverse: f64,
}

/// How the number of clusters of hosts changed from the first to the last week; see the table
/// `host-changes`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct HostChanges {
    /// Hosts with pages in the first or the last week.
    pub hosts: u64,
    /// Hosts with as many clusters in the last week as in the first.
    pub unchanged: u64,
    /// `unchanged / hosts`; `None` if there are no hosts.
    pub share: Option<f64>,
    /// The study's share, [`PUBLISHED_UNCHANGED`].
    pub published: f64,
}

/// The number of changes of one kind.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ChangeCount {
    /// The kind of change, as in the table `change-classes`.
    pub change: String,
    /// Pairs of successive downloads with this change.
    pub pairs: u64,
    /// `pairs` over all pairs; `None` if there are no pairs.
    pub share: Option<f64>,
}

/// Births and deaths of URLs in one week.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Turnover {
    /// The week.
    pub week: Week,
    /// URLs first seen in this week.
    pub births: u64,
    /// Births that join a cluster with pages of URLs known before.
    pub joined: u64,
    /// URLs with a page in the week before and none in this week.
    pub deaths: u64,
}
