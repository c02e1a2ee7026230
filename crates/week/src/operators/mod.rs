//! The steps of the pipeline, as dataflows on timely: from crawl files to tables. Timely appears
//! from here up.
//!
//! In reading order; the first is a package of its own, the others are folders:
//!
//! - [`nigh_exchange`]: how records reach the worker that owns them, and how a dataflow runs to its
//!   end;
//! - [`ingest`]: from crawl files to durable waves of documents;
//! - [`scan`]: reads the tables of a week at the workers that own their shards;
//! - [`clustering`]: from supershingles to edges between near-duplicates;
//! - [`components`]: from edges to the root of every document;
//! - [`delta`]: from last week's roots to this week's, by what changed;
//! - [`output`]: sizes, ids and evidence of the clusters, for the tables;
//! - [`set_join`]: all pairs of sets that have enough in common, for the studies that compare hosts
//!   and pages;
//! - [`verify`]: clusters of candidates fall apart where their pages are not similar enough;
//! - [`accuracy`]: samples of pairs, and how similar these are exactly.
//!
//!
//! No table depends on the number of workers or processes: the result of a step is a function of
//! its input alone. Only the number of redundant records that some inexact steps send may depend on
//! how keys are cut into ranges. Data structures that do not need timely are in
//! [`crate::structures`].

pub mod accuracy;
pub mod clustering;
pub mod components;
pub mod delta;
pub mod host_pages;
pub mod ingest;
pub mod output;
pub mod scan;
pub mod set_join;
mod sighting;
pub mod verify;
