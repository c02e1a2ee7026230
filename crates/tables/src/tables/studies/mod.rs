//! The tables that studies make of committed weeks, with their columns: one file for each study.
//!
//! They are declared here, and not in the folders of the studies in `nigh-studies`, because the
//! store is below the studies and acts on these tables without them: it sweeps what killed runs
//! left, lists them for views and logs, and removes those that name pages when pages are deleted.

use super::store_table::ResultTables;

pub mod collections;
pub mod decontamination;
pub mod evolution;
pub mod genealogy;
pub mod mirrors;
pub mod mirrors_by_url;
pub mod overlap;
pub mod paragraphs;
pub mod passages;
pub mod samplers;

/// The tables of all studies, in the order of their folders.
pub static RESULTS: &[ResultTables] = &[
    collections::TABLES,
    decontamination::TABLES,
    evolution::TABLES,
    mirrors::TABLES,
    mirrors_by_url::TABLES,
    overlap::TABLES,
    paragraphs::TABLES,
    passages::TABLES,
    samplers::TABLES,
];
