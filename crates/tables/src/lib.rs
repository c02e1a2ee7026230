#![doc = include_str!("../README.md")]
//!
//! # Modules
//!
//! ```text
//! tables                     declarations, writers, readers, and the log of commits that Delta readers follow
//! stats                      counts, fits and distributions, which tables and summaries have
//! ```

// `#[derive(Table)]` names the traits of `tables` as other packages do.
extern crate self as nigh_tables;

use nigh_kernels::records;
use nigh_readers::{objects, readers};

pub mod stats;
pub mod tables;
