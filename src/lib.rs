//! `nigh` clusters near-duplicate web pages: it reads weekly crawls, fingerprints every page, finds the
//! clusters, and writes Parquet tables; on one machine or several processes, with the same bytes.
//!
//! What is computed comes from published studies, cited where it is computed; *Fetterly 2004* is
//! Fetterly, Manasse, Najork: On the evolution of clusters of near-duplicate web pages.
//!
//! Layers; imports point down only:
//!
//! ```text
//! main
//! cli   report   progress   log   metrics   bench
//! launch | jobs             neither knows the other
//! operators   summary       timely appears from here up
//! plan  stats  mirror       mirror: a store in a bucket, worked on in a folder
//! state  tables  readers  features  structures
//! text  objects             objects: the client of object stores
//! kernels                   the only unsafe code
//! records   config   watch
//! ```
//!
//! Read `jobs/cluster.rs` first: it is the program from top to bottom.

pub mod bench;
pub mod cli;
pub mod config;
pub mod features;
pub mod jobs;
pub mod kernels;
pub mod launch;
pub mod log;
pub mod metrics;
pub mod mirror;
pub mod objects;
pub mod operators;
pub mod plan;
pub mod progress;
pub mod readers;
pub mod records;
pub mod report;
pub mod state;
pub mod stats;
pub mod structures;
pub mod summary;
pub mod tables;
pub mod text;
pub mod watch;
