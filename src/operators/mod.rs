//! The pipeline: the steps of a dataflow on timely, from crawl files to tables. Timely appears from here up.
//!
//! In reading order, each a folder:
//!
//! - [`exchange`]: how records reach the worker that owns them, and how a dataflow runs to its end;
//! - [`ingest`]: crawl files to durable waves of documents;
//! - [`scan`]: the tables of a week, back to the workers that own their shards;
//! - [`clustering`]: supershingles to edges between near-duplicates;
//! - [`components`]: edges to the root of every document;
//! - [`delta`]: last week's roots to this week's, from what changed;
//! - [`output`]: what the tables say of the clusters;
//! - [`evolution`]: how clusters of several weeks develop (Fetterly 2004, section 3).
//!
//! `in_process` lists what the workers of one process share in memory.
//!
//! No table depends on the number of workers or processes: what a step finds is a function of its input alone. Only the
//! amount of inexact, redundant records that a step sends may depend on how keys are cut.
//! Data structures that do not need timely are in [`crate::structures`].

pub mod clustering;
pub mod components;
pub mod delta;
pub mod evolution;
pub mod exchange;
mod in_process;
pub mod ingest;
pub mod output;
pub mod scan;

pub use self::in_process::InProcess;
