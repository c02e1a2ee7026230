//! The summary of pages or hosts that share chunks, with the study's published numbers beside it
//! (Shivakumar and Garcia-Molina 1998).

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use super::Unit;
use crate::config::{Chunking, Mode};
use crate::records::Week;

/// The ranges by which replicas are counted, from none.
pub const REPLICAS: [&str; 7] = ["0", "1", "2", "3-9", "10-99", "100-999", "1000 and more"];

/// Where copies are, compared with the first page of their component.
pub const REASONS: [&str; 3] = ["same-host", "same-machine", "other"];

/// The place among [`REPLICAS`] of a number of replicas.
///
/// ```
/// use nigh_studies::studies::overlap::{REPLICAS, replica_class};
/// assert_eq!([0, 2, 3, 9, 10, 1000].map(|replicas| REPLICAS[replica_class(replicas)]), ["0", "2", "3-9", "3-9", "10-99", "1000 and more"]);
/// ```
pub fn replica_class(replicas: u64) -> usize {
    match replicas {
        0..=2 => replicas as usize,
        3..=9 => 3,
        10..=99 => 4,
        100..=999 => 5,
        _ => 6,
    }
}

/// The summary of an overlap job: kept as `summary.json` beside its tables, printed by `run` and
/// `show`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct OverlapSummary {
    /// The store, as the run named it.
    pub store: PathBuf,
    /// The parameters of the store, on one line.
    pub method: String,
    /// The week.
    pub first: Week,
    /// The week, again: a study has a first and a last one.
    pub last: Week,
    /// The number of the commit that made the week.
    #[serde(default)]
    pub week_commit: u64,
    /// How the pairs were found: `delta` from a former run and what changed since, or `full` from
    /// all pages.
    #[serde(default)]
    pub mode: Mode,
    /// The week of the former run.
    #[serde(default)]
    pub former: Option<Week>,
    /// The texts that changed since, over all.
    #[serde(default)]
    pub changed: Option<f64>,
    /// What was compared: `document` or `host`.
    pub unit: Unit,
    /// Pages with chunks; hosts of such pages if hosts were compared.
    pub documents: u64,
    /// Pages with words that have no row in the table `chunks`, and so are left out.
    pub without_chunks: u64,
    /// Each chunking of the job.
    pub chunkings: Vec<ChunkingSummary>,
    /// The workers of the run.
    #[serde(default)]
    pub workers: u64,
    /// What each step needed (Table 1), in the order of the steps. Empty in summaries of older
    /// versions. The time, and what is counted with few counters, are of this run alone.
    #[serde(default)]
    pub steps: Vec<StepNeeds>,
}

/// What a step of the job needed, of all workers together.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct StepNeeds {
    /// The step, of [`STEPS`].
    pub step: String,
    /// The chunking; `None` for a step of all of them.
    pub chunking: Option<Chunking>,
    /// Seconds by the clock, of the slowest worker; `None` if they are part of another step.
    pub seconds: Option<f64>,
    /// What the step makes; `None` if it is not counted.
    pub records: Option<u64>,
    /// Bytes of these records, in memory or on disk.
    pub bytes: Option<u64>,
}

/// The steps of a run.
///
/// `copies` reads the texts of pages; its records are pages. `fingerprints` are a chunk and a page
/// each, which are read and sent once or more. `common-chunks` and `counted` are of the methods
/// `sort` and `coarse`: chunks that two pages have in common, and those of them that are counted
/// exactly; `piloted` are the pairs that a pilot sample found. `pairs` finds the pairs, and has the
/// time of those before it. `components` joins them, and counts. `tables` writes.
pub const STEPS: [&str; 8] =
    ["copies", "fingerprints", "common-chunks", "piloted", "counted", "pairs", "components", "tables"];

impl StepNeeds {
    /// A step that makes records of so many bytes each; its time is part of another step.
    pub fn of_records(step: &str, records: Option<u64>, bytes_each: usize) -> StepNeeds {
        let bytes = records.map(|records| records * bytes_each as u64);
        StepNeeds { step: step.to_owned(), chunking: None, seconds: None, records, bytes }
    }
}

/// What one chunking gave.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ChunkingSummary {
    /// The chunking.
    pub chunking: Chunking,
    /// The least number of chunks that two units share.
    pub threshold: u32,
    /// Pairs in the table `overlap` or `host-overlap`.
    pub pairs: u64,
    /// Families in the table `families`.
    pub families: u64,
    /// Pairs of units of one family.
    pub family_pairs: u64,
    /// Units by their replicas: the rows of the table `replicas`.
    pub replicas: Vec<ReplicaCount>,
    /// What a crawl could leave out.
    pub saving: Saving,
    /// Copies by where they are.
    pub reasons: Vec<ReasonCount>,
    /// The largest components: the rows of the table `most`.
    pub most: Vec<LargestGroup>,
}

/// Units with so many replicas; see the columns of the table `replicas`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ReplicaCount {
    /// The range, of [`REPLICAS`].
    pub replicas: String,
    /// Units that so many others overlap with.
    pub documents: u64,
    /// Their share; `None` without units.
    pub share: Option<f64>,
    /// Units in components with so many others.
    pub by_cluster: u64,
    /// The study's share, if it has one.
    pub published: Option<f64>,
}

/// What a crawl could leave out; see the columns of the table `savings`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Saving {
    /// Units that are not the first of their component.
    pub copies: u64,
    /// Their share; `None` without units.
    pub share: Option<f64>,
    /// Their bytes.
    pub bytes: u64,
    /// The study's share.
    pub published: Option<f64>,
}

/// The copies of one reason.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ReasonCount {
    /// The reason, of [`REASONS`].
    pub reason: String,
    /// Copies with this reason.
    pub documents: u64,
}

/// A large component; see the columns of the table `most`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct LargestGroup {
    /// Its pages.
    pub documents: u64,
    /// Distinct hosts of these pages.
    pub hosts: u64,
    /// Machines of these hosts: hosts with an address in common are on one.
    pub machines: u64,
    /// The title of the first page.
    pub title: String,
    /// The URL of the first page.
    pub url: String,
    /// The id of the first page.
    pub doc: i64,
}

impl ReplicaCount {
    /// The study's share of pages with so many replicas (Fig. 1); only pages were counted.
    pub fn published(unit: Unit, chunking: Chunking, replicas: usize) -> Option<f64> {
        match (unit, chunking, replicas) {
            (Unit::Document, Chunking::Document, 0) => Some(0.64),
            (Unit::Document, Chunking::Document, 1) => Some(0.18),
            (Unit::Document, Chunking::Document, 4) => Some(0.05),
            (Unit::Document, Chunking::TwoLines, 0) => Some(0.52),
            _ => None,
        }
    }
}

impl Saving {
    /// The study's share of pages that a crawl could leave out (section 5).
    pub fn published(unit: Unit, chunking: Chunking) -> Option<f64> {
        match (unit, chunking) {
            (Unit::Host, _) => None,
            (_, Chunking::Document) => Some(0.22),
            (_, Chunking::FourLines) => Some(0.29),
            (_, Chunking::TwoLines) => Some(0.33),
        }
    }
}
