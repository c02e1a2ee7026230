//! Studies: jobs that read committed weeks of a store, and write tables about them into one folder,
//! which they replace as a whole.
//!
//! A study is a folder here, with one face: it implements [`Study`] in its `mod.rs`, and stands in
//! the list of this file. Job files, `nigh run`, `nigh show` and reports know no more of it. In a
//! folder:
//!
//! | file | what |
//! |---|---|
//! | `mod` | the face: [`Study`] |
//! | `job` | its table in a job file, with all keys and their defaults |
//! | `run` | the study from top to bottom, as every worker runs it |
//! | `steps` | the dataflows of `run`, where they are several files |
//! | `write` | the tables; their columns are in `tables::studies` |
//! | `summary`, `report` | `summary.json`, and how it is shown |
//! | `figures` | the figures and tables of the paper, drawn from the tables |
//! | `host_rows` | what `nigh browse` shows of a host |
//! | `bench` | its part of `nigh bench`, with the feature `bench` |
//!
//! In reading order: `plan` (what a run gets, and how it writes a table), `study` (the trait),
//! `committed` (what an earlier run left), `committed_leads` (what the mirrors job left of the
//! order of hosts), `shards` (tables with rows of each shard), `figure` and `figure_tables`
//! (what figures are, and what they are drawn from), `host_rows` (what a study found of a host),
//! `any_study` (any study of the list), `study_tables` (the tables of studies that figures are
//! drawn from), `run`; then the studies: `samplers` is the smallest.

mod any_study;
pub mod collections;
mod committed;
mod committed_leads;
pub mod decontamination;
pub mod evolution;
mod figure;
mod figure_tables;
mod host_rows;
pub mod mirrors;
pub mod mirrors_by_url;
pub mod overlap;
pub mod paragraphs;
pub mod passages;
mod plan;
mod run;
pub mod samplers;
mod shards;
mod study;
mod study_tables;

pub use self::any_study::{AnyStudy, StudySummary};
pub use self::committed::CommittedTables;
pub use self::committed_leads::{committed_leads, leads_of};
pub use self::evolution::Evolution;
pub use self::figure::{Cell, Drawn, Figure, Listing, Picture, percent};
pub use self::figure_tables::{FigureTables, RowValues};
pub use self::host_rows::{HostCell, HostCells, HostHead, HostRows};
pub use self::plan::{ReferenceFile, ReferenceStore, StudyFiles, StudyInput, StudyPlan};
pub use self::run::{StudyTask, run};
pub use self::study::{Runs, Study};
pub use self::study_tables::TablesUntil;

/// Calls a macro with the list of studies: each with what it does, and its type.
macro_rules! studies {
    ($callback:ident) => {
        $callback! {
            /// Measures how the clusters of a store change from week to week.
            Evolution: $crate::studies::evolution::Evolution;
            /// Finds hosts that mirror each other, by the content of their pages.
            Mirrors: $crate::studies::mirrors::Mirrors;
            /// Finds the pairs of pages or hosts that share chunks of text.
            Overlap: $crate::studies::overlap::Overlap;
            /// Finds pages that are copied together.
            Collections: $crate::studies::collections::Collections;
            /// Finds hosts that mirror each other, by their URLs.
            MirrorsByUrl: $crate::studies::mirrors_by_url::MirrorsByUrl;
            /// Finds duplicates by their paragraphs, and where in the web they are.
            Paragraphs: $crate::studies::paragraphs::Paragraphs;
            /// Finds passages of texts that stand more than once.
            Passages: $crate::studies::passages::Passages;
            /// Finds documents that match items of a reference.
            Decontamination: $crate::studies::decontamination::Decontamination;
            /// Compares samplers of shingles with exact resemblance.
            Samplers: $crate::studies::samplers::Samplers;
        }
    };
}
pub(crate) use studies;
